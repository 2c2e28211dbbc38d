"""Pictures of an answer to a problem, and of what is too large to be drawn entry by entry: that they show the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import optrand
from optrand import Dual, Grid, Interval, losses
from optrand.closed_forms import debiased_rr, rr_with_prior
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import decompose_paths, merge_neighbours
from optrand.model.arcs import Arcs
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.table import Table
from optrand.plotting import (
    dual_figure,
    flow_figure,
    joint_figure,
    matrix_figure,
    mechanism_figure,
    paths_figure,
    pmf_figure,
    save_figure,
)
from optrand.plotting.cells import Cells, group_edges
from optrand.plotting.dual import best_prices
from optrand.plotting.flow import Bundles
from optrand.plotting.style import above, below
from optrand.solvers import design
from optrand.solvers.prices import price

IMAGES = Path(__file__).parent / "images"
SIX = optrand.load(IMAGES / "six.json")
WEEKS = optrand.load(IMAGES / "weeks.json")


def windows(k: int) -> Randomizer:
    """Windows over a third of `k` labels that move forward, each of the same mass."""
    width = k // 3
    steps = np.arange(1 - width, k)
    first, last = np.maximum(steps, 0), np.minimum(steps + width - 1, k - 1)
    masses = np.full(steps.size, 1 / (steps.size + (math.e - 1) * width))
    return Randomizer.of_arcs(np.arange(k), Arcs(k, first, last, np.linspace(-k, 2 * k, steps.size), masses), 1.0)


def written_out(table: Randomizer) -> Randomizer:
    return Randomizer(table.labels, table.outputs, table.matrix, table.epsilon)


def line(axes: Axes, label: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    (found,) = [artist for artist in axes.lines if artist.get_label() == label]
    return np.asarray(found.get_xydata())


def shown_on(axes: Axes) -> Any:
    """The axes, whose artists know more than their types tell."""
    return axes


# The joint distribution.


@pytest.mark.parametrize("mechanism", [SIX, WEEKS], ids=["six", "weeks"])
def test_the_joint_distribution_has_the_prior_and_the_outputs_as_its_margins(mechanism: Mechanism) -> None:
    figure = joint_figure(mechanism)
    top, heat, right = (shown_on(axes) for axes in figure.axes[:3])
    mesh = heat.collections[0]
    shown = np.ma.filled(mesh.get_array(), 0)
    prior, table = mechanism.problem.prior, mechanism.randomizer
    np.testing.assert_allclose(shown.sum(axis=0), prior, atol=1e-12)
    (bars,) = [patch.get_data() for patch in top.patches]
    np.testing.assert_allclose(bars.values, prior, atol=1e-12)
    levels = mesh.get_coordinates()[:, 0, 1]
    expected, _ = np.histogram(table.outputs, levels, weights=prior @ table.matrix)
    np.testing.assert_allclose(shown.sum(axis=1), expected, atol=1e-12)
    np.testing.assert_allclose(right.patches[0].get_data().values, expected, atol=1e-12)
    assert [heat.get_xlabel(), heat.get_ylabel(), top.get_ylabel()] == ["label", "noisy label (label units)", "prior"]
    ends = mechanism.labels[[0, -1]]
    np.testing.assert_array_equal(line(heat, "noisy label = label"), np.stack((ends, ends), axis=1))


def test_the_mean_squared_error_is_that_of_the_table() -> None:
    error = sum(
        float(p) * float(row @ (SIX.outputs - y) ** 2)
        for p, row, y in zip(SIX.prior, SIX.matrix, SIX.labels, strict=True)
    )
    title = joint_figure(SIX).get_suptitle().splitlines()[0]
    said, _, stated = title.rpartition(" ")
    assert said == "ε = 2, 6 labels: mean squared error"
    # Rounded up to six digits.
    assert error * (1 - 1e-12) <= float(stated) <= error * (1 + 1e-5)


def test_the_joint_distribution_needs_a_prior_and_numbers() -> None:
    with pytest.raises(InvalidInput, match="shows a prior"):
        joint_figure(design(SIX.problem))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="classes"):
        joint_figure(rr_with_prior([0.5, 0.5], 1.0))


# The flow.


def test_every_column_is_an_arc_over_the_labels_that_it_favours() -> None:
    paths = decompose_paths(SIX)
    bundles = Bundles.of(paths)
    matrix = SIX.randomizer.matrix
    assert bundles.masses.size == merge_neighbours(SIX)[0].size == 10
    for begin, end, output, mass in zip(bundles.begins, bundles.ends, bundles.outputs, bundles.masses, strict=True):
        column = matrix[:, np.isclose(SIX.outputs, output)].sum(axis=1)
        under = (SIX.labels > begin) & (SIX.labels < end)
        np.testing.assert_allclose(column, np.where(under, math.exp(2) * mass, mass), rtol=1e-12)


def test_many_arcs_are_drawn_in_bundles_that_keep_all_mass() -> None:
    table = windows(3_000)
    assert table.arcs is not None
    bundles = Bundles.of(decompose_paths(table))
    assert bundles.masses.size < 400 < table.arcs.n
    assert bundles.masses.sum() == pytest.approx(table.arcs.masses.sum())
    assert bundles.masses @ bundles.outputs == pytest.approx(table.arcs.masses @ table.arcs.outputs, abs=1e-6)
    title = flow_figure(table).get_suptitle()
    assert f"drawn in {bundles.masses.size} bundles, between groups of up to {bundles.grouped} labels" in title


# The proof.


def test_the_price_touches_zero_at_the_outputs_and_nowhere_dips_below() -> None:
    for mechanism in (SIX, WEEKS):
        assert mechanism.dual is not None
        figure = dual_figure(mechanism)
        scale = float(line(figure.axes[0], "price of the best column")[:, 1].max())
        shown = set[float]()
        for axes in figure.axes:
            curve = line(axes, "price of the best column")
            marks = line(axes, "output of the randomizer")
            assert curve[:, 1].min() > -1e-12 * scale
            assert (marks[:, 1] == 0).all()
            at = np.searchsorted(curve[:, 0], marks[:, 0])
            np.testing.assert_array_equal(curve[at, 0], marks[:, 0])
            assert np.abs(curve[at, 1]).max() < 1e-12 * scale
            shown |= set(marks[:, 0].tolist())
        assert shown == set(merge_neighbours(mechanism)[0].tolist())


def test_outputs_that_lie_close_are_seen_from_close() -> None:
    all_outputs, *close = dual_figure(WEEKS).axes
    assert all_outputs.get_title() == "104 outputs"
    assert [axes.get_title() for axes in close] == ["Close: 24 of 104 outputs"] * 2
    for axes in close:
        # So close that the curve between neighbours can be seen.
        assert axes.get_ylim()[1] < all_outputs.get_ylim()[1] / 1000
        low, high = axes.get_xlim()
        marks = line(axes, "output of the randomizer")[:, 0]
        assert marks.size == 24
        assert low < marks.min() < marks.max() < high
        assert set(marks) <= set(WEEKS.outputs)


def test_the_numbers_of_the_proof_are_certified_and_rounded_outward() -> None:
    proof = WEEKS.certificate
    title = dual_figure(WEEKS).get_suptitle().replace("\N{MINUS SIGN}", "-")
    low, high = (float(word) for word in title.split("between ")[1].split(" and "))
    assert low <= proof.lower <= proof.upper <= high
    assert high - low < 2e-6 * high
    floor = float(title.split("≥ ")[1].split(" ")[0])
    assert WEEKS.dual is not None
    assert floor <= price(WEEKS.problem, WEEKS.dual).lowest <= 0


def test_a_bad_dual_is_seen_to_prove_nothing() -> None:
    assert SIX.dual is not None
    spoiled = Dual(SIX.dual.alpha + 0.05, SIX.dual.beta)
    mechanism = Mechanism(SIX.problem, SIX.table, spoiled)
    figure = dual_figure(mechanism)
    assert line(figure.axes[0], "price of the best column")[:, 1].min() < -0.01
    low, high = (float(word) for word in figure.get_suptitle().split("between ")[1].split(" and "))
    assert low < 2.5 < 2.5077 < high


@pytest.mark.parametrize("outputs", [Interval(0.5, 4.0), Grid(np.arange(1.0, 5.0))])
def test_prices_beyond_floats_are_no_proof_to_be_drawn(outputs: Interval | Grid) -> None:
    problem = optrand.regression([1, 2, 3], [0.5, 0.3, 0.2], 1.0, outputs=outputs, loss=losses.poisson_log)
    answer = optrand.solve(problem)
    huge = Dual(1.7e308 * np.array([1, -1, 1]), np.zeros(3))
    with pytest.raises(InvalidInput, match="prices leave the range of floats"):
        dual_figure(Mechanism(problem, answer.table, huge))


def test_a_problem_without_a_feasible_answer_has_no_certified_optimum() -> None:
    biased = Mechanism(SIX.problem, Table(SIX.labels, SIX.outputs + 0.5, SIX.table.columns), SIX.dual)
    assert dual_figure(biased).get_suptitle().endswith("no optimum is certified")


PROBLEMS = {
    "grid": optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=np.linspace(-3, 5, 17)),
    "interval": optrand.regression(range(4), [0.4, 0.3, 0.2, 0.1], 1.0, outputs=Interval(0.5, 2.0)),
    "penalty": optrand.regression([0, 1, 5], [0.5, 0.0, 0.5], 1.0, bias_penalty=0.5),
    "absolute": optrand.regression([0, 1, 5], [0.2, 0.3, 0.5], 1.0, loss=losses.absolute),
    "poisson": optrand.regression(
        [0, 1, 5], [0.2, 0.3, 0.5], 1.0, loss=losses.poisson_log, outputs=Grid(np.array([0.5, 1, 2]))
    ),
    "poisson on the line": optrand.regression([0, 1, 5], [0.2, 0.3, 0.5], 1.0, loss=losses.poisson_log),
    "classes": optrand.classification([0.5, 0.3, 0.2], 1.0),
    "one label": optrand.unbiased_regression([3.5], [1.0], 1.0),
    "tiny epsilon": optrand.unbiased_regression([0, 1, 2], [0.4, 0.3, 0.3], 1e-6),
    "large epsilon": optrand.unbiased_regression(range(-5, 6), np.full(11, 1 / 11), 17.0),
    "far from zero": optrand.unbiased_regression([1e9, 1e9 + 1, 1e9 + 2], [0.4, 0.3, 0.3], 1.0),
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_kind_of_problem_is_drawn_with_its_proof(problem: Problem, tmp_path: Path) -> None:
    mechanism = optrand.solve(problem)
    assert mechanism.dual is not None
    figure = dual_figure(mechanism)
    curve = line(figure.axes[0], "price of the best column")
    proof = mechanism.certificate.require(1e-6)
    np.testing.assert_array_equal(curve[:, 1], best_prices(problem, mechanism.dual, curve[:, 0]))
    if isinstance(problem.outputs, Grid):
        assert set(curve[:, 0]) <= set(problem.outputs.values)
    assert problem.outputs.low <= curve[0, 0] <= curve[-1, 0] <= problem.outputs.high
    if problem == PROBLEMS["classes"]:
        assert line(figure.axes[0], "output of the randomizer")[:, 0].tolist() == [0, 1]
    assert curve[:, 1].min() > -1e-6 * max(1.0, abs(proof.upper))
    # All of it is seen: rounding alone is not drawn as a height.
    assert figure.axes[0].get_ylim()[1] >= curve[:, 1].max()
    # A layout that does not fit its figure warns, and warnings are errors here.
    save_figure(figure, tmp_path / "dual.png")
    if problem.loss != losses.zero_one:
        save_figure(joint_figure(mechanism), tmp_path / "joint.png")


def test_rounding_is_not_drawn_as_a_mountain() -> None:
    ends = list(optrand.unbiased_range([0, 1], 1.0))
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, outputs=ends)
    low, high = dual_figure(optrand.solve(problem)).axes[0].get_ylim()
    assert low < 0
    assert high == 1


def test_prices_are_those_of_the_definition() -> None:
    problem, dual = SIX.problem, SIX.dual
    assert dual is not None
    for v in (-3.0, 0.25, 4.5):
        reduced = problem.prior * (v - problem.labels) ** 2 / 2 - dual.alpha - dual.beta * v
        least = min(
            sum(s * h for s, h in zip(column, reduced, strict=True))
            for column in np.stack(np.meshgrid(*[[1, math.exp(2)]] * 6), axis=-1).reshape(-1, 6)
        )
        assert best_prices(problem, dual, np.array([v]))[0] == pytest.approx(least, abs=1e-12)


# What is too large to be drawn entry by entry.


def test_cells_are_means_over_neighbours_however_the_table_is_given() -> None:
    table = windows(1_201)
    cells, dense = Cells.of(table), Cells.of(written_out(table))
    np.testing.assert_allclose(cells.chances, dense.chances, rtol=1e-12)
    np.testing.assert_array_equal(cells.letters, dense.letters)
    r, c = 17, 130
    block = table.matrix[cells.rows[r] : cells.rows[r + 1], cells.columns[c] : cells.columns[c + 1]]
    assert cells.chances[r, c] == pytest.approx(block.mean())
    assert cells.chances.shape == cells.letters.shape == (500, 500)
    sizes = np.diff(cells.rows)[:, np.newaxis] * np.diff(cells.columns)
    assert (cells.chances * sizes).sum() == pytest.approx(table.k)
    middle = [(edges[i] + edges[i + 1]) // 2 for edges, i in ((cells.rows, r), (cells.columns, c))]
    assert cells.letters[r, c] == table.signature()[middle[0], middle[1]]


def test_groups_are_nearly_equal_and_leave_nobody_out() -> None:
    for count in (1, 2, 53, 499, 500, 501, 10_000):
        edges = group_edges(count, 500)
        assert (edges[0], edges[-1]) == (0, count)
        assert np.ptp(np.diff(edges)) <= 1
        assert np.diff(edges).min() >= 1


def test_a_heat_map_of_cells_says_so_and_keeps_its_axes() -> None:
    table = windows(1_500)
    figure = matrix_figure(table)
    heat, signature = figure.axes[:2]
    assert figure.get_suptitle() == "ε = 1, 1,500 labels, 1,999 outputs"
    assert heat.get_title() == "Mean probability in cells of up to 3 by 4"
    assert signature.get_title() == "Staircase signature in the middle of each cell"
    assert list(heat.images[0].get_extent()) == [-0.5, table.n - 0.5, -0.5, 1_499.5]
    assert heat.get_yticklabels()[-1].get_text() == "1499"


def test_many_outputs_are_counted_in_bins_that_say_so() -> None:
    table = windows(1_000)
    figure = pmf_figure(table)
    assert figure.get_suptitle().startswith("Labels 0, 333, 666, 999 of 1,000; 1,332 outputs in 120 bins")
    assert figure.get_supylabel() == "probability of the outputs of a bin"
    for axes, row in zip(figure.axes, (0, 333, 666, 999), strict=True):
        (bars,) = [patch.get_data() for patch in shown_on(axes).patches]
        expected, _ = np.histogram(table.outputs, bars.edges, weights=table.matrix[row])
        np.testing.assert_allclose(bars.values, expected, atol=1e-12)
        assert bars.values.sum() == pytest.approx(1)
        assert line(axes, "mean output")[0, 0] == pytest.approx(table.means[row])


@pytest.mark.parametrize("draw", [mechanism_figure, flow_figure, paths_figure])
def test_ten_thousand_labels_are_drawn_without_their_table(draw: Callable[[Randomizer], Figure]) -> None:
    table = windows(10_000)
    assert draw(table).axes
    assert "matrix" not in vars(table)


@pytest.mark.nightly
def test_ten_thousand_labels_have_a_joint_distribution_and_a_proof() -> None:
    mechanism = debiased_rr(range(10_000), 9.0)
    title = joint_figure(mechanism).get_suptitle()
    assert "labels in groups of up to 84" in title
    assert "10,000 outputs" in [axes.get_title() for axes in dual_figure(mechanism).axes]
    assert "weights" not in vars(mechanism.table)


# Numbers.


@given(st.floats(-1e300, 1e300), st.integers(1, 12))
def test_numbers_are_rounded_outward(number: float, digits: int) -> None:
    low, high = (float(text.replace("\N{MINUS SIGN}", "-")) for text in (below(number, digits), above(number, digits)))
    assert low <= number <= high
    assert high - low <= abs(number) * 10 ** (1 - digits) * 1.0001 + 5e-324
