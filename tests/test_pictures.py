"""Pictures of one randomizer and of its proof: the artists hold the numbers that they should show."""

import itertools
import math

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand import Dual, Grid, Interval, losses
from optrand.baselines import DiscreteLaplace, Laplace
from optrand.certificates._bound import lowest_price
from optrand.closed_forms import debiased_rr, gap_response, rr_with_prior
from optrand.closed_forms._regression import design_debiased_rr
from optrand.mechanism._mechanism import Mechanism
from optrand.model._randomizer import Arcs, Randomizer
from optrand.model._table import Table
from optrand.plotting import (
    dual_figure,
    flow_figure,
    groups_figure,
    joint_figure,
    matrix_figure,
    phases_figure,
    pmf_figure,
    shares_figure,
)
from optrand.plotting._structure import Bundles
from optrand.studies._paths import decompose_paths, merge_neighbours
from tests.pictures import SIX, WEEKS, collected, legend_texts, line, read_number, stairs, windows, written_out

THREE = debiased_rr([0, 1, 2], 0.5)
"""The labels of [B23], Table 1, at the epsilon of its Figure 2."""

UNEVEN = optrand.solve(optrand.unbiased_regression([0, 1, 3, 4, 9], [0.3, 0.2, 0.2, 0.2, 0.1], 3.0))


def stems(axes):
    """Place and height of every stem of a panel."""
    segments = [s for letter in "ULS0" for each in collected(axes, letter) for s in each.get_segments()]
    for (x0, y0), (x1, _) in segments:
        assert (x0, y0) == (x1, 0)
    return {float(s[1][0]): float(s[1][1]) for s in segments}


def test_each_label_has_a_panel_with_its_own_stems():
    # Outputs that are split between two floats are drawn as one.
    figure, table = pmf_figure(THREE), design_debiased_rr([0, 1, 2], 0.5).randomizer
    for row, axes in enumerate(figure.axes):
        assert axes.get_title(loc="left") == f"label {row}"
        np.testing.assert_allclose(sorted(stems(axes).items()), np.stack((table.outputs, table.matrix[row]), 1), 1e-12)
        assert line(axes, "the label")[:, 0].tolist() == [row, row]
        np.testing.assert_allclose(line(axes, "mean output"), [[row, 0]], atol=1e-14)
        low, high = axes.get_xlim()
        assert low < table.outputs[0] < table.outputs[-1] < high
        assert axes.get_ylim()[1] > table.matrix.max()
    assert figure.axes[-1].get_xlabel() == "output (label units)"
    assert figure.get_supylabel() == "probability of the output"
    assert figure.get_suptitle() == "Labels 0, 1, 2, ε = 0.5"
    assert [axes.get_title(loc="left") for axes in pmf_figure(THREE, labels=[2, 0]).axes] == ["label 0", "label 2"]


def test_many_outputs_stand_by_rank_on_a_broken_axis_with_the_label_between_them():
    figure = pmf_figure(WEEKS)
    outputs, table = merge_neighbours(WEEKS)[0], WEEKS.randomizer
    assert figure.get_suptitle() == "Labels 0, 13, 26, 39, 52 of 53, ε = 1"
    assert figure.axes[-1].get_xlabel() == "output (label units), by rank"
    places = np.array(sorted(stems(figure.axes[0])))
    assert places.size == outputs.size == 104
    steps = np.diff(places)
    assert np.delete(steps, 51) == pytest.approx(1)
    assert steps[51] > 4
    for axes, label in zip(figure.axes, (0, 13, 26, 39, 52), strict=True):
        heights = np.array([stems(axes)[place] for place in places])
        expected = [table.matrix[label, np.isclose(table.outputs, v, rtol=1e-12)].sum() for v in outputs]
        np.testing.assert_allclose(heights, expected, rtol=1e-9)
        # Every label lies inside the break, at the position of its distances to both sides.
        share = (label - outputs[51]) / (outputs[52] - outputs[51])
        place = line(axes, "the label")[0, 0]
        assert place == pytest.approx(places[51] + share * steps[51], rel=1e-6)
        assert line(axes, "mean output")[0, 0] == pytest.approx(place, rel=1e-4)
    named = {t.get_text().replace("\N{MINUS SIGN}", "-") for t in figure.axes[-1].get_xticklabels()}
    assert {f"{outputs[rank]:.3g}" for rank in (0, 51, 52, 103)} <= named
    breaks = [each for each in figure.axes[-1].lines if each.get_label() == "_break"]
    assert len(breaks) == 2
    # The mean of the last label stands on the break.
    (mean,) = (each for each in figure.axes[-1].lines if each.get_label() == "mean output")
    assert mean.get_zorder() > max(each.get_zorder() for each in breaks)


def test_classes_have_no_mean():
    figure = pmf_figure(rr_with_prior([0.5, 0.3, 0.2], 1.0))
    assert "mean output" not in legend_texts(figure)
    assert "S: neither of the two" in legend_texts(figure)
    assert all(artist.get_label() != "mean output" for axes in figure.axes for artist in axes.lines)


CLASSES = ["$1 $2", "no", "a name of more than sixteen letters", None]


def test_classes_of_a_release_have_their_names():
    people = np.array(CLASSES, dtype=object)[np.arange(400) % 4]
    noisy, record = optrand.randomize(people, 1.0, labels=CLASSES, nulls="class")
    shown = ["$1 $2", "no", "a name of more …", "missing"]
    pmf, matrix = pmf_figure(record), matrix_figure(record).axes[0]
    shares = shares_figure(optrand.estimate.histogram(noisy, record), names=record.labels).axes[0]
    dual, flow = dual_figure(record).axes[0], flow_figure(record).axes[0]
    assert [axes.get_title(loc="left") for axes in pmf.axes] == [f"class {name}" for name in shown]
    for axis in (pmf.axes[-1].xaxis, matrix.xaxis, matrix.yaxis, shares.xaxis, dual.xaxis, flow.xaxis):
        assert [text.get_text() for text in axis.get_ticklabels()] == shown
        # Dollar signs are no formula.
        assert not any(text.get_parse_math() for text in axis.get_ticklabels())
    assert not any(text.get_parse_math() for text in (pmf._suptitle, pmf.axes[0]._left_title))


def test_groups_are_named_by_their_values():
    mechanisms = {'["a"]': THREE, '["b", null]': THREE, "5": THREE, "c": THREE, "[]": THREE}
    assert groups_figure(mechanisms).axes[0].get_title(loc="left") == "a, b, missing, 5, c, "
    assert groups_figure({"[]": THREE}).axes[0].get_title(loc="left") == ""


def test_the_density_of_noise_is_its_own_and_has_no_stripes():
    figure = pmf_figure(Laplace(optrand.Interval(0, 11), 2.0), labels=[0, 11])
    for label, axes in zip((0, 11), figure.axes, strict=True):
        ((heights, edges, _),) = [each for each in stairs(axes, "density") if each.edges.size > 2]
        assert np.diff(edges) @ heights == pytest.approx(1)
        middle = (edges[:-1] + edges[1:]) / 2
        inner = np.abs(middle - label) < 20
        # Mean over a step of exp(-|v| / b) / (2 b) with b = 11 / 2, up to the grid that noise is rounded to.
        b = 5.5
        ends = np.array(
            [0.5 * math.exp((v - label) / b) if v < label else 1 - 0.5 * math.exp((label - v) / b) for v in edges]
        )
        np.testing.assert_allclose(heights[inner], (np.diff(ends) / np.diff(edges))[inner], rtol=0.02)
        # A density that rises to the label and falls after it: no stripes of bins with one output more.
        assert (np.diff(heights[inner & (edges[1:] <= label)]) > 0).all()
        assert (np.diff(heights[inner & (edges[:-1] >= label)]) < 0).all()
    low, high = figure.axes[0].get_xlim()
    assert -40 < low < -15
    assert 26 < high < 51


@pytest.mark.parametrize("clip", [None, Interval(-3.0, 4.0)])
def test_noise_on_a_lattice_is_drawn_at_its_own_outputs(clip):
    noise = DiscreteLaplace([0, 1], 2.0, step=0.1, clip=clip)
    for label, axes in zip((0, 1), pmf_figure(noise, labels=[0, 1]).axes, strict=True):
        found = stems(axes)
        steps = np.array(sorted(found)) / 0.1
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
        # Noise of 2 nats at a distance of 10 steps: the mass falls by exp(-0.2) with each step from the label.
        assert sum(found.values()) == pytest.approx(1)
        assert found[label] == pytest.approx(math.tanh(0.1), rel=1e-6)
        assert found[label + 0.5] == pytest.approx(math.tanh(0.1) * math.exp(-1), rel=1e-6)


def test_many_outputs_are_drawn_as_a_density_that_sums_to_one():
    table = windows(1_000)
    figure = pmf_figure(table)
    for axes, row in zip(figure.axes, (0, 333, 666, 999), strict=True):
        (values, edges, _), *_ = stairs(axes, "density")
        expected, _ = np.histogram(table.outputs, edges, weights=table.matrix[row])
        np.testing.assert_allclose(values * np.diff(edges), expected, atol=1e-12)
        assert line(axes, "mean output")[0, 0] == pytest.approx(table.means[row])


def outline(axes):
    """Edges of cells that the outline runs along."""
    (found,) = collected(axes, "U")
    return {tuple(np.round(np.asarray(segment).ravel(), 9)) for segment in found.get_segments()}


def test_the_matrix_is_a_heat_map_with_its_highest_entries_outlined():
    table = rr_with_prior([0.25, 0.25, 0.25, 0.25], 2.0).randomizer
    axes = matrix_figure(table).axes[0]
    (mesh,) = collected(axes, "probabilities")
    np.testing.assert_array_equal(mesh.get_array(), table.matrix)
    assert (mesh.norm.vmin, mesh.norm.vmax) == (table.matrix.min(), table.matrix.max())
    # Four squares on the diagonal: all their sides.
    sides = set()
    for i in range(4):
        low, high = i - 0.5, i + 0.5
        sides |= {(low, low, low, high), (high, low, high, high), (low, low, high, low), (low, high, high, high)}
    assert outline(axes) == sides
    assert axes.get_ylim() == (-0.5, 3.5)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0", "1", "2", "3"]
    assert len(axes.texts) == 16


def test_columns_far_apart_have_a_break_between_them():
    figure = matrix_figure(WEEKS)
    axes = figure.axes[0]
    (mesh,) = collected(axes, "probabilities")
    shown = mesh.get_array()
    assert shown.shape == (53, 105)
    hidden = np.ma.getmaskarray(shown)
    assert hidden[:, 52].all()
    assert not np.delete(hidden, 52, axis=1).any()
    # The likeliest entries are dark, the least likely nearly white, and never yellow.
    light, dark = (mesh.cmap(mesh.norm(extreme)) for extreme in (shown.min(), shown.max()))
    assert min(light[:3]) > 0.9
    assert max(dark[:3]) < 0.35
    steps = np.diff([int(text.get_text()) for text in axes.get_yticklabels()])
    assert set(steps) == {5}


@pytest.mark.parametrize("draw", [matrix_figure, joint_figure])
def test_only_zeros_are_white(draw):
    # At epsilon 12 columns differ by more than the five powers of ten of the scale.
    figure = draw(debiased_rr([0, 1, 2], 12.0, prior=[0.6, 0.399999, 0.000001]))
    ((mesh,),) = (found for axes in figure.axes if (found := collected(axes, "probabilities")))
    chances = mesh.get_array()
    assert 0 < chances.min() < mesh.norm.vmin
    assert mesh.cmap(mesh.norm(chances))[..., :3].max() < 0.95
    assert mesh.colorbar.extend == "min"
    assert mesh.colorbar.ax.get_xlabel().endswith("(lightest: that or less, not 0)")


def test_zeros_and_entries_between_have_marks_of_their_own():
    # The table of an implementation that answers from all labels if the label is not among the likeliest.
    broken = Randomizer([0, 1, 2], [0, 1, 2], [[0.7, 0.3, 0], [0.3, 0.7, 0], [0.3, 0.3, 0.4]], 1.0)
    axes = matrix_figure(broken).axes[0]
    (mesh,) = collected(axes, "probabilities")
    assert np.array_equal(np.ma.getmaskarray(mesh.get_array()), broken.matrix == 0)
    assert line(axes, "0").tolist() == [[2, 0], [2, 1]]
    assert "0: never, where another label may" in legend_texts(pmf_figure(broken))
    between = matrix_figure(rr_with_prior([0.5, 0.3, 0.2], 1.0))
    assert line(between.axes[0], "S").tolist() == [[0, 2], [1, 2]]
    assert "S: neither of the two" in legend_texts(between)


def test_text_in_cells_can_be_read():
    axes = matrix_figure(rr_with_prior([0.3, 0.25, 0.25, 0.1, 0.1], 2.0)).axes[0]
    (mesh,) = collected(axes, "probabilities")
    grey = np.array([0.299, 0.587, 0.114])
    assert axes.texts
    for text in axes.texts:
        x, y = text.get_position()
        behind = mesh.cmap(mesh.norm(mesh.get_array()[round(y), round(x)]))[:3] @ grey
        assert abs(behind - (1 if text.get_color() == "white" else 0.1)) > 0.35


def test_a_heat_map_of_cells_says_so_and_keeps_its_axes():
    table = windows(1_500)
    figure = matrix_figure(table)
    axes, bar = figure.axes
    assert figure.get_suptitle() == "ε = 1, 1,500 labels, 1,999 outputs"
    assert bar.get_xlabel() == "mean probability in cells of up to 3 by 4"
    assert (*axes.get_xlim(), *axes.get_ylim()) == (-0.5, table.n - 0.5, -0.5, 1_499.5)
    assert axes.get_yticklabels()[1].get_text() in {"100", "200"}
    assert matrix_figure(table, labels=[1, 3]).axes[0].get_yticks().tolist() == [1, 3]


@pytest.mark.parametrize("mechanism", [SIX, WEEKS], ids=["six", "weeks"])
def test_the_joint_distribution_has_the_prior_and_the_outputs_as_its_margins(mechanism):
    top, heat, right = joint_figure(mechanism).axes[:3]
    (mesh,) = collected(heat, "probabilities")
    shown = mesh.get_array()
    outputs, prior, table = merge_neighbours(mechanism)[0], mechanism.problem.prior, mechanism.randomizer
    rows = shown[~np.ma.getmaskarray(shown).all(axis=1)]
    # A row per output, without bins, whose shades depend on nothing but its probability.
    assert rows.shape == (outputs.size, mechanism.labels.size)
    expected = [prior * table.matrix[:, np.isclose(table.outputs, v, rtol=1e-12)].sum(axis=1) for v in outputs.tolist()]
    np.testing.assert_allclose(rows, expected, rtol=1e-9)
    np.testing.assert_allclose(stairs(top, "prior")[0].values, prior, atol=1e-12)
    margin = stairs(right, "probability")[0].values
    np.testing.assert_allclose(margin[margin > 0], rows.sum(axis=1), rtol=1e-9)
    assert [heat.get_xlabel(), top.get_ylabel()] == ["label", "prior"]
    assert heat.get_ylabel() == "noisy label (label units), by rank"
    places = line(heat, "noisy label = label")[:, 1]
    assert (np.diff(places) > 0).all()
    low, high = heat.get_ylim()
    assert low < places[0] < places[-1] < high


def test_the_mean_squared_error_is_that_of_the_table():
    error = sum(
        float(p) * float(row @ (SIX.outputs - y) ** 2)
        for p, row, y in zip(SIX.prior, SIX.matrix, SIX.labels, strict=True)
    )
    said, _, stated = joint_figure(SIX).get_suptitle().rpartition(" ")
    assert said == "ε = 2, 6 labels, 10 outputs: mean squared error"
    # Rounded up to six digits.
    assert error * (1 - 1e-12) <= float(stated) <= error * (1 + 1e-5)


@pytest.mark.nightly
def test_ten_thousand_labels_have_a_joint_distribution_and_a_proof():
    mechanism = debiased_rr(range(10_000), 9.0)
    assert "cells of up to 67 by 67" in joint_figure(mechanism).axes[-1].get_xlabel()
    assert line(dual_figure(mechanism).axes[0], "output of the randomizer").shape == (10_000, 2)
    assert "weights" not in vars(mechanism.table)


def test_groups_show_their_priors_and_their_noise_on_axes_that_hold_all_of_them():
    problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 0.5)
    far = optrand.solve(optrand.unbiased_regression(problem.labels, problem.prior[::-1], 0.05))
    panels = np.array(groups_figure({"a": optrand.solve(problem), "b": far}).axes).reshape(2, 2)
    for (left, right), mechanism in zip(panels, (optrand.solve(problem), far), strict=True):
        (bars,) = collected(left, "prior")
        assert [segment[1][1] for segment in bars.get_segments()] == mechanism.prior.tolist()
        deviations = line(right, "noise")[:, 1]
        np.testing.assert_allclose(deviations**2, mechanism.table.variances, rtol=1e-9)
        assert (left.get_ylabel(), right.get_ylabel()) == ("prior", "std. dev.")
    for column in panels.T:
        assert (column[0].get_ylim(), column[0].get_ylim()[0]) == (column[1].get_ylim(), 0)
        # The highest mark is not cut.
        assert column[0].get_ylim()[1] > 1.02 * max(float(each.dataLim.y1) for each in column)


def test_every_column_is_an_arc_over_the_labels_that_it_favours():
    bundles = Bundles.of(decompose_paths(SIX))
    matrix = SIX.randomizer.matrix
    assert bundles.masses.size == merge_neighbours(SIX)[0].size == 10
    for begin, end, output, mass in zip(bundles.begins, bundles.ends, bundles.outputs, bundles.masses, strict=True):
        column = matrix[:, np.isclose(SIX.outputs, output)].sum(axis=1)
        under = (SIX.labels > begin) & (SIX.labels < end)
        np.testing.assert_allclose(column, np.where(under, math.exp(2) * mass, mass), rtol=1e-12)
    axes = flow_figure(SIX).axes[0]
    (arcs,) = collected(axes, "arcs")
    ends = {tuple(segment[[0, -1], 0].round(9)) for segment in arcs.get_segments()}
    assert ends == set(zip(bundles.begins.tolist(), bundles.ends.tolist(), strict=True))
    assert axes.get_xticks().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("subject", [WEEKS, windows(3_000)], ids=["weeks", "windows"])
def test_many_arcs_are_drawn_in_bundles_that_keep_all_mass(subject):
    paths = decompose_paths(subject)
    bundles, flow = Bundles.of(paths), paths.flow
    assert bundles.masses.size <= 60 < flow.masses.size
    masses = (flow.masses * paths.ratio.denominator / flow.total(paths.ratio)).astype(float)
    assert bundles.masses.sum() == pytest.approx(masses.sum())
    assert bundles.masses @ bundles.outputs == pytest.approx(masses @ paths.outputs[flow.at], abs=1e-6)
    title = flow_figure(subject).get_suptitle()
    assert f"in {bundles.masses.size} bundles, between groups of up to {bundles.grouped} labels" in title


def test_bundles_end_where_their_arcs_do_on_average():
    bundles, flow = Bundles.of(decompose_paths(WEEKS)), decompose_paths(WEEKS).flow
    assert bundles.begins.min() == pytest.approx(-0.5)
    assert bundles.ends.max() == pytest.approx(52.5)
    spans = bundles.ends - bundles.begins
    # No arc is shorter than a label, and so no bundle.
    assert spans.min() >= 1
    shares = flow.masses.astype(float) / float(flow.masses.sum())
    assert spans @ bundles.masses / bundles.masses.sum() == pytest.approx((flow.last + 1 - flow.first) @ shares)


FAINT = Randomizer.of_arcs(
    [0, 1], Arcs(2, [0, 0, 1, 1], [0, 0, 1, 1], [-9, -1, 2, 9], np.array([1e-12, 1, 1, 1e-12]) / (1 + math.e)), 1.0
)
"""Two outputs that occur, and two next to impossible ones."""


@pytest.mark.parametrize("subject", [FAINT, written_out(FAINT)], ids=["arcs", "table"])
def test_outputs_next_to_impossible_are_not_drawn(subject):
    assert matrix_figure(subject).get_suptitle() == "ε = 1, 2 labels, 2 outputs"
    assert sorted(stems(pmf_figure(subject).axes[0])) == [-1, 2]
    flow = flow_figure(subject)
    assert flow.get_suptitle() == "The flow of a randomizer: 2 arcs over 2 labels, ε = 1"
    assert flow.axes[1].get_ylim() == (-1, 2)
    assert phases_figure(subject).get_suptitle() == "Randomized response on 2 bins: 2 labels, ε = 1"


def heights(patches, number):
    """Values of stairs at a number, without those that are not there."""
    values = [float(each.values[np.searchsorted(each.edges, number) - 1]) for each in patches]
    return sorted(value for value in values if not math.isnan(value))


@pytest.mark.parametrize("mechanism", [SIX, UNEVEN, WEEKS], ids=["six", "uneven", "weeks"])
def test_borders_and_outputs_are_those_of_the_bins_at_each_public_number(mechanism):
    (axes,) = phases_figure(mechanism).axes
    labels, paths = mechanism.labels, decompose_paths(mechanism)
    tops = np.cumsum(np.array(paths.weights, dtype=float))
    bars = [np.asarray(each) for one in collected(axes, "outputs") for each in one.get_segments()]
    for path, low, high in zip(paths, [0, *tops], tops, strict=False):
        number = (low + high) / 2
        between = (labels[path.first[1:]] + labels[path.last[:-1]]) / 2
        np.testing.assert_allclose(heights(stairs(axes, "border"), number), between)
        shown = sorted(bar[0, 1] for bar in bars if bar[0, 0] <= number <= bar[1, 0])
        np.testing.assert_allclose(shown, path.outputs)
    # No border runs along the end of the labels.
    assert max(np.nanmax(each.values) for each in stairs(axes, "border")) < labels[-1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("public random number", "label, and output (label units)")
    assert axes.get_xlim() == (0, 1)


@by_case(
    "mechanism, mixture, borders",
    (
        gap_response([0, 1, 2, 4, 5, 9], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1], 0.9),
        "A mixture of 5 randomized responses on 2 bins: 6 labels, ε = 0.9",
        [[0.5, 1.5, 3, 4.5, 7]],
    ),
    (debiased_rr(range(5), 3.0), "Randomized response on 5 bins: 5 labels, ε = 3", [[0.5], [1.5], [2.5], [3.5]]),
    ids=["gap response", "randomized response"],
)
def test_closed_forms_are_their_bins(mechanism, mixture, borders):
    figure = phases_figure(mechanism)
    assert figure.get_suptitle() == mixture
    assert [each.values.tolist() for each in stairs(figure.axes[0], "border")] == borders


def test_of_many_components_those_at_even_numbers_are_drawn():
    table = windows(3_001)
    figure, paths = phases_figure(table), decompose_paths(table)
    assert len(paths) > 400
    assert figure.get_suptitle().endswith("400 of them drawn, at evenly spread numbers")
    middle = paths[int(np.searchsorted(np.cumsum(np.array(paths.weights, dtype=float)), 200.5 / 400))]
    shown = [np.asarray(s) for one in collected(figure.axes[0], "outputs") for s in one.get_segments()]
    assert sorted(bar[0, 1] for bar in shown if bar[0, 0] == pytest.approx(0.5)) == middle.outputs.tolist()


@pytest.mark.parametrize("mechanism", [SIX, WEEKS], ids=["six", "weeks"])
def test_the_price_touches_zero_at_the_outputs_and_nowhere_dips_below(mechanism):
    (axes,) = dual_figure(mechanism).axes
    curve, marks = line(axes, "least reduced cost"), line(axes, "output of the randomizer")
    scale = float(np.abs(mechanism.dual.alpha).max())
    assert curve[:, 1].min() > -1e-12 * scale
    assert (marks[:, 1] == 0).all()
    at = np.abs(curve[:, 0] - marks[:, :1]).argmin(axis=1)
    np.testing.assert_allclose(curve[at, 0], marks[:, 0], atol=1e-9)
    assert np.abs(curve[at, 1]).max() < 1e-12 * scale
    assert marks.shape[0] == merge_neighbours(mechanism)[0].size


def test_outputs_far_apart_are_all_seen_from_close():
    (axes,) = dual_figure(WEEKS).axes
    curve, marks = line(axes, "least reduced cost"), line(axes, "output of the randomizer")[:, 0]
    # So close that the curve between neighbours fills the picture, and the hill between the parts leaves it.
    between = [curve[(a < curve[:, 0]) & (curve[:, 0] < b), 1].max() for a, b in itertools.pairwise(marks)]
    hill, inner = between[51], max(between[:51] + between[52:])
    low, high = axes.get_ylim()
    assert low < 0 < inner < high < 1.2 * inner < hill / 1000
    # Within a part places are in proportion to outputs.
    outputs = merge_neighbours(WEEKS)[0]
    for part in (slice(0, 52), slice(52, 104)):
        assert np.ptp(np.diff(marks[part]) / np.diff(outputs[part])) < 1e-6


def test_the_numbers_of_the_proof_are_certified_and_rounded_outward():
    proof = WEEKS.certificate
    title = dual_figure(WEEKS).get_suptitle()
    low, gap = map(read_number, title.split("at least ")[1].split(", gap "))
    assert 1277.87 == low <= proof.lower
    assert proof.gap <= gap <= 1.1 * proof.gap
    floor = read_number(title.split("≥ ")[1].split(" ")[0])
    assert floor <= lowest_price(WEEKS.problem, WEEKS.dual) <= 0


def test_a_bad_dual_is_seen_to_prove_nothing():
    figure = dual_figure(Mechanism(SIX.problem, SIX.table, Dual(SIX.dual.alpha + 0.05, SIX.dual.beta)))
    assert line(figure.axes[0], "least reduced cost")[:, 1].min() < -0.01
    assert figure.axes[0].get_ylim()[0] < -0.01
    low, gap = (float(word) for word in figure.get_suptitle().split("at least ")[1].split(", gap "))
    assert low < 2.5 < 2.5077 < low / (1 - gap)


@pytest.mark.parametrize("outputs", [Interval(0.5, 4.0), Grid(np.arange(1.0, 5.0))])
def test_prices_beyond_floats_are_no_proof_to_be_drawn(outputs):
    problem = optrand.regression([1, 2, 3], [0.5, 0.3, 0.2], 1.0, outputs=outputs, loss=losses.poisson_log)
    answer = optrand.solve(problem)
    huge = Dual(1.7e308 * np.array([1, -1, 1]), np.zeros(3))
    assert_error("reduced costs leave the range of floats", dual_figure, Mechanism(problem, answer.table, huge))
    assert_error("no dual", dual_figure, Mechanism(problem, answer.table))


def test_a_problem_without_a_feasible_answer_has_no_certified_optimum():
    biased = Mechanism(SIX.problem, Table(SIX.labels, SIX.outputs + 0.5, SIX.table.steps), SIX.dual)
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
def test_every_kind_of_problem_is_drawn_with_its_proof(problem):
    mechanism = optrand.solve(problem)
    figure = dual_figure(mechanism)
    curve = line(figure.axes[0], "least reduced cost")
    proof = mechanism.certificate.require(1e-6)
    dual, (places, prices) = mechanism.dual, curve.T
    reduced = (problem.prior * problem.loss_table(places).T - dual.alpha - np.outer(places - dual.origin, dual.beta)).T
    expected = reduced.sum(axis=0) + math.expm1(problem.epsilon) * np.minimum(reduced, 0).sum(axis=0)
    size = math.exp(problem.epsilon) * np.abs(reduced).sum(axis=0).max()
    np.testing.assert_allclose(prices, expected, atol=1e-12 * size)
    if isinstance(problem.outputs, Grid):
        assert set(curve[:, 0]) <= set(problem.outputs.values)
    assert problem.outputs.low <= curve[0, 0] <= curve[-1, 0] <= problem.outputs.high
    if problem == PROBLEMS["classes"]:
        assert line(figure.axes[0], "output of the randomizer")[:, 0].tolist() == [0, 1]
    assert curve[:, 1].min() > -1e-6 * max(1.0, abs(proof.upper))
    # All of it is seen: rounding alone is not drawn as a height.
    assert figure.axes[0].get_ylim()[1] >= curve[:, 1].max()
    figure.draw_without_rendering()
    if problem.loss != losses.zero_one:
        joint_figure(mechanism).draw_without_rendering()


def test_rounding_is_not_drawn_as_a_mountain():
    ends = list(optrand.unbiased_range([0, 1], 1.0))
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, outputs=ends)
    low, high = dual_figure(optrand.solve(problem)).axes[0].get_ylim()
    assert low < 0
    assert high >= 1
