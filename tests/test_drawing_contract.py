"""The contract of every drawing function, and additive noise.

Each takes a place, a title or none, a size and labels to show, warns of nothing, and keeps the session as it was.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure, FigureBase, SubFigure

import optrand
from optrand import plotting
from optrand.baselines import Laplace
from optrand.errors import InvalidInput
from optrand.plotting.table import _gaps

LABELS, PRIOR = np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1])
PROBLEM = optrand.unbiased_regression(LABELS, PRIOR, 0.5)
MECHANISM = optrand.solve(PROBLEM)
SWEEP = optrand.studies.sweep(PROBLEM, bias_penalties=[0.0, 1.0])
ROWS = [{"method": "LP", "k": k, "seconds": 1.0 * k} for k in (1, 2)]

DRAWN: dict[str, Callable[..., FigureBase]] = {
    "chord": partial(plotting.chord_figure, PROBLEM),
    "composition": partial(plotting.composition_figure, {"one": MECHANISM}, releases=3),
    "dual": partial(plotting.dual_figure, MECHANISM),
    "flow": partial(plotting.flow_figure, MECHANISM),
    "frontier": partial(plotting.frontier_figure, SWEEP),
    "gap": partial(plotting.gap_figure, PROBLEM),
    "groups": partial(plotting.groups_figure, {"a": MECHANISM}),
    "joint": partial(plotting.joint_figure, MECHANISM),
    "matrix": partial(plotting.matrix_figure, MECHANISM),
    "mechanism": partial(plotting.mechanism_figure, MECHANISM),
    "moments": partial(
        plotting.moments_figure, {"one": lambda e: Laplace(LABELS, e)}, PRIOR, epsilons=[1], labels=LABELS
    ),
    "paths": partial(plotting.paths_figure, MECHANISM),
    "phases": partial(plotting.phases_figure, MECHANISM),
    "pmf": partial(plotting.pmf_figure, MECHANISM),
    "rr_with_prior": partial(plotting.rr_with_prior_figure, PRIOR, epsilons=[1.0]),
    "shares": partial(plotting.shares_figure, optrand.estimate.histogram(np.repeat(MECHANISM.outputs, 3), MECHANISM)),
    "times": partial(plotting.times_figure, ROWS, by="k", series="method"),
}


def test_every_drawing_function_is_exported_and_tried() -> None:
    assert {f"{name}_figure" for name in DRAWN} == {name for name in plotting.__all__ if name.endswith("_figure")} - {
        "save_figure"
    }
    for name in DRAWN:
        options = inspect.signature(getattr(plotting, f"{name}_figure")).parameters
        assert {"ax", "size", "title"} <= set(options)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_takes_the_place_of_axes_and_returns_it(name: str) -> None:
    page = Figure(figsize=(9, 5), layout="constrained")
    place, other = page.subplots(1, 2)
    part = DRAWN[name](ax=place)
    assert isinstance(part, SubFigure)
    panels = [axes for each in (part, *part.subfigs) for axes in each.axes]
    assert panels
    assert set(page.axes) == {other, *panels}


@pytest.mark.parametrize("name", DRAWN)
def test_size_is_that_of_a_new_figure_and_the_title_can_be_left_out(name: str, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    figure = DRAWN[name](size=(7, 6), **({} if name == "times" else {"title": False}))
    assert isinstance(figure, Figure)
    assert figure.get_size_inches().tolist() == [7, 6]
    assert figure.get_suptitle() == ""
    if name != "times":
        assert DRAWN[name]().get_suptitle()
    axes = [each for part in (figure, *figure.subfigs) for each in part.axes]
    assert any(each.get_xlabel() for each in axes)
    assert all(each.get_ylabel() or each.get_title() or each.get_xlabel() for each in axes)
    # A layout that does not fit its figure warns, and warnings are errors here.
    plotting.save_figure(figure, tmp_path / "picture.png")
    assert dict(matplotlib.rcParams) == before


def test_no_picture_opens_a_window() -> None:
    code = (
        "import sys, test_drawing_contract as t; t.DRAWN['mechanism'](), t.DRAWN['dual'](), t.DRAWN['frontier'](); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=False).returncode == 0


@pytest.mark.parametrize("name", ["dual", "mechanism"])
def test_certified_numbers_are_in_the_title_rounded_outward(name: str) -> None:
    proof = optrand.certify(MECHANISM)
    title = (
        DRAWN[name]().get_suptitle() if name == "dual" else plotting.mechanism_figure(MECHANISM, proof).get_suptitle()
    )
    if name == "dual":
        low, high = (float(word) for word in title.split("between ")[1].split(" and "))
        assert low <= proof.lower <= proof.upper <= high
    else:
        assert float(title.split("certified gap ")[1].split(",")[0]) >= proof.gap
        assert float(title.rsplit(" ", 1)[1]) >= proof.epsilon


EXTREMES = {
    "one label": optrand.debiased_rr([3.5], 1.0),
    "tiny epsilon": optrand.debiased_rr([0, 1], 1e-6),
    "large epsilon": optrand.debiased_rr(range(-5, 6), 40.0),
    "far from zero": optrand.debiased_rr([1e9, 1e9 + 1, 1e9 + 2], 1e-6),
    "one output": optrand.rr_with_prior([0.9, 0.05, 0.05], 1.0),
}


@pytest.mark.parametrize("subject", EXTREMES.values(), ids=EXTREMES)
def test_extremes_are_drawn_without_a_warning_from_a_randomizer_alone(subject: Any, tmp_path: Path) -> None:
    for draw in (plotting.mechanism_figure, plotting.paths_figure):
        figure = draw(subject.randomizer)
        plotting.save_figure(figure, tmp_path / f"{draw.__name__}.png")
    assert figure.get_suptitle().split(": ")[1] == draw(subject).get_suptitle().split(": ")[1]
    for stranger in ([[0.5, 0.5]], None):
        with pytest.raises(InvalidInput, match="needs a mechanism"):
            plotting.pmf_figure(stranger)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ax": 3}, "ax is of type int, expected Axes or a figure"),
        ({"size": (3,)}, "size has to be a width and a height"),
        ({"size": (3, -1)}, "size has to be a width and a height"),
        ({"ax": Figure(), "size": (3, 3)}, "leave it out with ax"),
        ({"ax": Figure().add_axes((0, 0, 1, 1))}, "make it with plt.subplots"),
        ({"labels": [7]}, "7 is none of the labels, the nearest is 3"),
    ],
)
def test_other_places_sizes_and_labels_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        plotting.pmf_figure(MECHANISM, **options)


def test_labels_to_show_have_panels_or_ticks() -> None:
    assert [axes.get_ylabel() for axes in plotting.pmf_figure(MECHANISM, labels=[3, 1]).axes] == ["label 1", "label 3"]
    assert plotting.matrix_figure(MECHANISM, labels=[1, 3]).axes[0].get_yticks().tolist() == [1, 3]
    for draw in (plotting.flow_figure, plotting.paths_figure):
        assert draw(MECHANISM, labels=[0, 2]).axes[0].get_xticks().tolist() == [0, 2]


def test_a_sweep_draws_itself(tmp_path: Any) -> None:
    page = Figure(layout="constrained")
    place, _ = page.subplots(1, 2)
    part = SWEEP.plot(ax=place, penalties=False)
    assert len(part.axes) == 1
    # A part of a page is saved with all of it.
    plotting.save_figure(part, tmp_path / "page.svg")
    plotting.save_figure(page, tmp_path / "same.svg")
    assert (tmp_path / "page.svg").read_bytes() == (tmp_path / "same.svg").read_bytes()


def test_laplace_is_drawn_with_its_own_probabilities() -> None:
    noise = Laplace(LABELS, 1.0)
    figure = plotting.pmf_figure(noise, labels=[0, 3])
    for label, axes in zip((0, 3), figure.axes, strict=True):
        heights, edges, _ = next(p for p in axes.patches if p.get_label() == "bins").get_data()
        assert heights.sum() == pytest.approx(1)
        middle = (edges[:-1] + edges[1:]) / 2
        # The mean of the bins is the label, their second moment the variance, up to the width of a bin.
        assert heights @ middle == pytest.approx(label, abs=0.3)
        assert heights @ (middle - label) ** 2 == pytest.approx(2 * 3.0**2, rel=0.05)
    with pytest.raises(InvalidInput, match="pass labels"):
        plotting.pmf_figure(noise)


def test_gaps_of_outputs_are_marked_only_where_they_are_wide() -> None:
    assert _gaps(np.array([0.0, 1, 2, 3])) == []
    assert _gaps(np.array([0.0, 0.1, 0.2, 0.3, 8, 8.1, 8.2])) == [3.5]
    # Six times the median step, but a hundredth of the range.
    assert _gaps(np.array([0.0, 0.1, 0.2, 1.0, 1.1, 80, 80.1, 80.2])) == [4.5]


def test_groups_share_axes_that_hold_all_of_them() -> None:
    far = optrand.solve(optrand.unbiased_regression(LABELS, PRIOR[::-1], 0.05))
    axes = np.array(plotting.groups_figure({"a": MECHANISM, "b": far}).axes).reshape(2, 2)
    for column in axes.T:
        assert column[0].get_ylim() == column[1].get_ylim()
        drawn = max(float(np.max(each.dataLim.y1)) for each in column)
        assert column[0].get_ylim()[0] == 0
        assert column[0].get_ylim()[1] > drawn
