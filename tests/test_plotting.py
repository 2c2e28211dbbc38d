"""The contract of every drawing function: axes, two widths, arguments, and the parts of a figure that it keeps."""

import inspect
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.spines import Spine
from matplotlib.text import Text

import optrand
from optrand import plotting
from optrand.baselines import Laplace, Moments
from optrand.closed_forms import rr_with_prior
from optrand.errors import InvalidInput
from optrand.model._randomizer import Randomizer
from optrand.plotting import _style as style
from optrand.plotting._saving import DRAWINGS
from optrand.plotting._table import Cells, Ranks, wide_gaps
from tests.pictures import WEEKS, read_number, windows, written_out

LABELS, PRIOR = np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1])
PROBLEM = optrand.unbiased_regression(LABELS, PRIOR, 0.5)
MECHANISM = optrand.solve(PROBLEM)
SWEEP = optrand.studies.sweep(PROBLEM, bias_penalties=[0.0, 1.0])
ROWS = [{"method": "LP", "k": k, "seconds": 1.0 * k} for k in (1, 2)]

DRAWN = {
    "composition": partial(plotting.composition_figure, {"one": MECHANISM}, releases=3),
    "dual": partial(plotting.dual_figure, MECHANISM),
    "flow": partial(plotting.flow_figure, MECHANISM),
    "frontier": partial(plotting.frontier_figure, SWEEP),
    "groups": partial(plotting.groups_figure, {"a": MECHANISM}),
    "joint": partial(plotting.joint_figure, MECHANISM),
    "matrix": partial(plotting.matrix_figure, MECHANISM),
    "moments": partial(
        plotting.moments_figure, {"one": lambda e: Laplace(LABELS, e)}, PRIOR, epsilons=[1], labels=LABELS
    ),
    "phases": partial(plotting.phases_figure, MECHANISM),
    "pmf": partial(plotting.pmf_figure, MECHANISM),
    "rr_with_prior": partial(plotting.rr_with_prior_figure, PRIOR, epsilons=[1.0]),
    "shares": partial(plotting.shares_figure, optrand.estimate.histogram(np.repeat(MECHANISM.outputs, 3), MECHANISM)),
    "times": partial(plotting.times_figure, ROWS, by="k", series="method"),
}


def test_every_drawing_function_is_exported_and_tried():
    assert {f"{name}_figure" for name in DRAWN} == set(plotting.__all__) - {"save_figure"}
    for name in DRAWN:
        assert inspect.signature(getattr(plotting, f"{name}_figure")).parameters["ax"].default is None


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_takes_the_place_of_axes_and_returns_it(name):
    page = Figure(figsize=(9, 5), layout="constrained")
    place, other = page.subplots(1, 2)
    part = DRAWN[name](ax=place)
    assert isinstance(part, SubFigure)
    assert part.axes
    assert set(page.axes) == {place, other, *part.axes}
    assert not place.axison


@pytest.mark.parametrize("chosen", [None, "tight"])
def test_letters_are_laid_out_unless_the_user_chose_how(chosen):
    page = Figure(figsize=(3.3, 2.8), layout=chosen)
    plotting.matrix_figure(MECHANISM, ax=page.subplots())
    assert type(page.get_layout_engine()).__name__ == f"{(chosen or 'constrained').title()}LayoutEngine"


def test_a_second_picture_replaces_the_first_below_the_title_of_their_axes():
    page = Figure(figsize=(7, 4))
    nested = page.add_gridspec(1, 2)[1].subgridspec(2, 1)[1]
    place = page.add_subplot(nested)
    first = plotting.matrix_figure(MECHANISM, ax=place)
    # Before it is laid out, too, a picture knows the size of its place: a quarter of the page.
    assert style.inches(first) == pytest.approx((3.5, 2.0))
    title = place.set_title("(a)")
    second = plotting.pmf_figure(MECHANISM, ax=place)
    page.draw_without_rendering()
    assert set(page.axes) == {place, *second.axes}
    assert "label 0" in [axes.get_title(loc="left") for axes in second.axes]
    assert title.get_window_extent().y0 > second._suptitle.get_window_extent().y1


def test_a_low_picture_has_fewer_panels():
    heights = {2.8: 2, 4.2: 4}
    for height, panels in heights.items():
        assert len(plotting.pmf_figure(WEEKS, ax=Figure(figsize=(3.3, height))).axes) == panels


@pytest.mark.parametrize("height", [2.8, 4.2])
@pytest.mark.parametrize("width", [3.3, pytest.param(7.2, marks=pytest.mark.nightly)], ids=["column", "page"])
@pytest.mark.parametrize("name", [*DRAWN, *(f"{name} of weeks" for name in DRAWINGS)])
def test_letters_stay_inside_and_apart_at_the_width_of_a_column_and_of_a_page(name, width, height):
    before = dict(matplotlib.rcParams)
    figure = Figure(figsize=(width, height))
    name, _, weeks = name.partition(" of ")
    draw = partial(DRAWINGS[name], WEEKS) if weeks else DRAWN[name]
    assert draw(ax=figure) is figure
    assert dict(matplotlib.rcParams) == before
    # A layout that does not fit its figure warns, and warnings are errors here.
    figure.draw_without_rendering()
    axes = figure.axes
    texts = [text for each in axes for text in (each.xaxis.label, each.yaxis.label, each.title, each._left_title)]
    texts = [text for text in (figure._suptitle, figure._supylabel, *texts) if text is not None and text.get_text()]
    boxes = [each.get_window_extent() for each in (*texts, *figure.legends)]
    paper = figure.bbox.padded(2)
    assert all(paper.x0 <= box.x0 <= box.x1 <= paper.x1 and paper.y0 <= box.y0 <= box.y1 <= paper.y1 for box in boxes)
    apart = [box.padded(-1) for box in boxes]
    assert not [1 for i, box in enumerate(apart) if box.count_overlaps(apart[i + 1 :])]
    for axis in [axis for each in axes for axis in (each.xaxis, each.yaxis)]:
        ticks = [each for each in axis.get_ticklabels() if each.get_visible() and each.get_text()]
        ends = [np.sort(each.get_window_extent().get_points()[:, "xy".index(axis.axis_name)]) for each in ticks]
        ends.sort(key=lambda pair: pair[0])
        assert all(left[1] <= right[0] + 1 for left, right in pairwise(ends))


def test_settings_of_the_session_are_not_used_except_its_font():
    with matplotlib.rc_context({"font.size": 30, "axes.labelsize": 30, "font.family": "serif"}):
        label = plotting.matrix_figure(MECHANISM).axes[0].xaxis.label
    assert label.get_size() == 8
    # The second has the raised digits that others lack.
    assert label.get_fontfamily() == ["serif", "DejaVu Sans"]


@pytest.mark.parametrize("name", DRAWN)
def test_paper_is_white_and_letters_are_dark_on_a_dark_page(name):
    with matplotlib.style.context("dark_background"):
        part = DRAWN[name](ax=Figure(figsize=(7, 5)).subplots())
    assert {each.get_facecolor() for each in (part, *part.axes)} == {(1.0, 1.0, 1.0, 1.0)}
    marks = [*part.findobj(Text), *part.findobj(Spine)]
    inks = [each.get_color() if isinstance(each, Text) else each.get_edgecolor()[:3] for each in marks]
    # White letters stand in dark cells.
    assert not [ink for ink in inks if brightness(ink) > 0.5 and ink != "white"]


def columns_that_are_no_intervals():
    third = np.array([[1, 2], [2, 1], [1, 2]]) / 3
    return Randomizer([0, 1, 2], [0, 1], third, math.log(2))


def shares_of(**options):
    return plotting.shares_figure(optrand.estimate.histogram(MECHANISM.sample(LABELS), MECHANISM), **options)


def moments_of(answer):
    return plotting.moments_figure({"it": lambda _: answer}, PRIOR, epsilons=[1.0])


def times_of(rows=ROWS, by="k", **changed):
    return plotting.times_figure([{**row, **changed} for row in rows], by=by, series="method")


CLASSES = rr_with_prior([0.5, 0.3, 0.2], 1.0)

REFUSED = (
    (lambda: plotting.pmf_figure(MECHANISM, ax=3), "ax is of type int, expected Axes or a figure"),
    (lambda: plotting.pmf_figure(MECHANISM, ax=Figure().add_axes((0, 0, 1, 1))), "make it with plt.subplots"),
    (lambda: plotting.pmf_figure(MECHANISM, labels=[7]), "7 is not one of the labels, the nearest is 3"),
    (lambda: plotting.pmf_figure([[0.5, 0.5]]), "needs a mechanism"),
    (lambda: plotting.pmf_figure(None), "needs a mechanism"),
    (lambda: plotting.pmf_figure(Laplace(LABELS, 1.0)), "pass labels"),
    (lambda: plotting.joint_figure(MECHANISM.randomizer), "shows a prior"),
    (lambda: plotting.joint_figure(CLASSES), "classes"),
    (lambda: plotting.phases_figure(CLASSES), "classes have no order"),
    (lambda: plotting.phases_figure(columns_that_are_no_intervals()), "not an interval"),
    (lambda: plotting.flow_figure(columns_that_are_no_intervals()), "not an interval"),
    (lambda: plotting.phases_figure(5), "need a Mechanism"),
    (lambda: plotting.flow_figure(5), "need a Mechanism"),
    (lambda: plotting.frontier_figure([replace(SWEEP[0], status="failed")]), "none of 1 rows is certified"),
    (lambda: moments_of([1.0, 2.0]), "'it' returned a list, expected moments, a mechanism"),
    (lambda: moments_of(Moments([0.0], [1.0])), "'it' has 1 labels, expected 4 as in the prior"),
    (lambda: plotting.moments_figure({"it": MECHANISM}, PRIOR, epsilons=[1]), "'it' is a Mechanism, expected a func"),
    (lambda: plotting.moments_figure({}, PRIOR, epsilons=[]), "epsilons is empty"),
    (lambda: plotting.rr_with_prior_figure(PRIOR, epsilons=[]), "epsilons is empty"),
    (lambda: shares_of(names=["no"]), "there are 1 names for 4 labels"),
    (lambda: shares_of(truth=PRIOR[:3]), "prior"),
    (lambda: plotting.shares_figure(np.array(PRIOR)), "histogram is of type ndarray"),
    (lambda: times_of(seconds=0.0), r"seconds 0\.0, expected a positive number or None"),
    (lambda: times_of(seconds=math.inf), "seconds inf"),
    (lambda: times_of(k="52"), "k '52', expected a positive number or None"),
    (lambda: times_of(by="mesh"), "a row has no mesh"),
    (lambda: times_of(rows=[]), "^0 series"),
)


@by_case("draw, message", *REFUSED)
def test_what_cannot_be_drawn_is_refused(draw, message):
    assert_error(message, draw)


def test_a_sweep_draws_itself_and_a_part_is_saved_with_all_of_its_page(tmp_path):
    for name in ("part", "page"):
        page = Figure(layout="constrained")
        place, _ = page.subplots(1, 2)
        part = SWEEP.plot(ax=place)
        assert len(part.axes) == 1
        plotting.save_figure(part if name == "part" else page, tmp_path / f"{name}.svg")
    assert (tmp_path / "part.svg").read_bytes() == (tmp_path / "page.svg").read_bytes()


EXTREMES = {
    "one label": optrand.debiased_rr([3.5], 1.0),
    "tiny epsilon": optrand.debiased_rr([0, 1], 1e-6),
    "large epsilon": optrand.debiased_rr(range(-5, 6), 40.0),
    "far from zero": optrand.debiased_rr([1e9, 1e9 + 1, 1e9 + 2], 1e-6),
    "one output": rr_with_prior([0.9, 0.05, 0.05], 1.0),
}


@pytest.mark.parametrize("subject", EXTREMES.values(), ids=EXTREMES)
def test_extremes_are_drawn_without_a_warning_from_a_randomizer_alone(subject):
    for draw in (plotting.pmf_figure, plotting.matrix_figure, plotting.phases_figure):
        draw(subject.randomizer).draw_without_rendering()


def brightness(colour):
    """Return how light a colour is on paper without colour, from 0 to 1 (Rec. 601)."""
    return float(np.asarray(to_rgb(colour)) @ [0.299, 0.587, 0.114])


@pytest.mark.parametrize("shades", [style.PROBABILITIES, style.OUTPUTS])
def test_shades_darken_in_grey_and_hold_no_yellow(shades):
    colours = shades(np.linspace(0, 1, 33))[:, :3]
    grey = [brightness(colour) for colour in colours]
    assert all(light > dark for light, dark in pairwise(grey))
    assert not [colour for colour in colours if colour[0] > 0.7 and colour[1] > 0.7 and colour[2] < 0.5]


def test_curves_differ_by_marker_and_neighbours_in_grey():
    some = style.looks(range(len(style.MARKERS)), "curves")
    assert len({look["marker"] for look in some}) == len(some)
    assert len({look["color"] for look in some}) == 8
    assert np.abs(np.diff([brightness(look["color"]) for look in some])).min() > 0.15
    for count in (0, len(style.MARKERS) + 1):
        with pytest.raises(InvalidInput, match=rf"^{count} randomizers for one picture, expected 1 to 12"):
            style.looks(range(count), "randomizers")
    assert len({(mark.marker, mark.fill) for mark in style.MARKS}) == len(style.MARKS)


@given(st.floats(-1e300, 1e300), st.integers(1, 12))
def test_numbers_are_rounded_outward(number, digits):
    texts = style.below(number, digits), style.above(number, digits)
    low, high = map(read_number, texts)
    assert low <= number <= high
    assert high - low <= abs(number) * 10 ** (1 - digits) * 1.0001 + 5e-324


def test_numbers_are_told_apart():
    assert style.number_texts(np.array([-2.5, 0.0, 1 / 3])) == ["\N{MINUS SIGN}2.5", "0", "0.333"]
    assert len(set(style.number_texts(1e9 + np.arange(5)))) == 5
    assert style.number_texts(np.array([7.0])) == ["7"]


def test_positions_are_evenly_spread_if_possible():
    for count in range(1, 300):
        for most in range(2, 9):
            positions = style.spread(count, most)
            assert (positions[0], positions[-1]) == (0, count - 1)
            assert len(set(positions.tolist())) == positions.size <= max(most, min(count, most))
            steps = np.diff(positions)
            assert steps.size == 0 or steps.max() - steps.min() <= 1


@pytest.mark.parametrize("length", [1.0, 2.5, 6.0])
@pytest.mark.parametrize("k", [1, 5, 12, 53, 10_000])
def test_ticks_of_labels_have_one_step_and_skip_none_if_there_is_room(k, length):
    axes = Figure().add_subplot()
    style.tick_labels(axes.xaxis, np.arange(k, dtype=float), length)
    ranks = axes.get_xticks().astype(int).tolist()
    step = ranks[1] if len(ranks) > 1 else 1
    assert ranks == list(range(0, k, step))
    assert str(step).strip("0") in {"1", "2", "5"}
    assert [int(text.get_text()) for text in axes.get_xticklabels()] == ranks
    assert (k, length) != (12, 6.0) or step == 1


@pytest.mark.parametrize("draw", [plotting.matrix_figure, plotting.flow_figure])
def test_a_figure_without_room_for_ticks_has_one(draw):
    mechanism = optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    figure = draw(mechanism, ax=Figure(figsize=(0.5, 0.5), layout="constrained"))
    axis = figure.axes[0].yaxis if draw is plotting.matrix_figure else figure.axes[0].xaxis
    assert [text.get_text() for text in axis.get_ticklabels()] == ["0"]


def test_axes_are_broken_only_at_wide_gaps():
    assert wide_gaps(np.arange(4.0)).tolist() == []
    # Six times the median step, but a hundredth of the range.
    assert wide_gaps(np.array([0.0, 0.1, 0.2, 1.0, 1.1, 80, 80.1, 80.2])).tolist() == [4]
    assert wide_gaps(np.array([5.0])).tolist() == []


def test_outputs_stand_by_rank_and_numbers_between_them_in_proportion():
    outputs = np.array([0.0, 0.1, 0.2, 0.3, 8, 8.1, 8.2])
    ranks = Ranks.of(outputs, 3.0, 100)
    steps = np.diff(ranks.places)
    assert np.delete(steps, 3) == pytest.approx(1)
    assert steps[3] > 1.5
    assert ranks.place(outputs).tolist() == ranks.places.tolist()
    assert ranks.place(np.array([0.3 + 7.7 / 4]))[0] == pytest.approx(ranks.places[3] + steps[3] / 4)
    beyond = ranks.place(np.array([-1e9, -1.0, 9.0, 1e9]))
    assert beyond[0] <= beyond[1] < ranks.places[0] < ranks.places[-1] < beyond[2] <= beyond[3]
    edges, shown = ranks.cells(np.arange(8))
    assert shown.tolist() == [0, 1, 2, 3, -1, 4, 5, 6]
    assert (edges[:-1] < edges[1:]).all()
    scaled = Ranks.of(outputs**2, 3.0, 100, even=False).places
    assert np.diff(scaled)[:3] / np.diff(scaled)[0] == pytest.approx([1, 3, 5])


def test_cells_are_means_over_neighbours_however_the_table_is_given():
    table = windows(1_201)
    weights = np.linspace(1, 2, table.k)
    cells, dense = Cells.of(table, weights, 500), Cells.of(written_out(table), weights, 500)
    np.testing.assert_allclose(cells.chances, dense.chances, rtol=1e-12)
    r, c = 17, 130
    rows = slice(cells.rows[r], cells.rows[r + 1])
    block = (weights[:, np.newaxis] * table.matrix)[rows, cells.columns[c] : cells.columns[c + 1]]
    assert cells.chances[r, c] == pytest.approx(block.mean())
    sizes = np.diff(cells.rows)[:, np.newaxis] * np.diff(cells.columns)
    assert (cells.chances * sizes).sum() == pytest.approx(weights.sum())
    assert cells.size == "cells of up to 3 by 4"


@by_case("draw", plotting.pmf_figure, plotting.matrix_figure, plotting.flow_figure, plotting.phases_figure)
def test_ten_thousand_labels_are_drawn_without_their_table(draw):
    table = windows(10_000)
    assert draw(table).axes
    assert "matrix" not in vars(table)
