"""What the pictures of a gap and a bit show: the points, the chord and the outputs of the closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optrand
from optrand.closed_forms import rr_with_prior
from optrand.closed_forms.gap import design_gap_response
from optrand.errors import InvalidInput
from optrand.plotting import chord_figure, gap_figure

PROBLEM = optrand.unbiased_regression([0, 1, 2, 4, 5, 9], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1], 0.9)


def curve(axes, told):
    (found,) = [line for line in axes.lines if line.get_label().startswith(told)]
    return np.asarray(found.get_xydata())


def test_the_points_lie_on_the_half_circle_and_the_chord_joins_the_outer_ones():
    (axes,) = chord_figure(PROBLEM).axes
    points, chord, circle = (curve(axes, told) for told in ("points", "chord", "half circle"))
    radius = (math.exp(0.9) + 1) / 2
    for found in (points, circle):
        np.testing.assert_allclose(np.hypot(found[:, 0] - radius, found[:, 1]), radius, rtol=1e-12)
    assert points[:, 0] == pytest.approx(1 + math.expm1(0.9) * np.cumsum(PROBLEM.prior)[:-1])
    np.testing.assert_array_equal(chord, points[[0, -1]])
    assert np.ptp(curve(axes, "length 1")[:, 0]) == 1


def test_the_title_says_what_is_decided():
    for epsilon, told in ((0.9, "so a gap and a bit are optimal"), (2.0, "longer than 1\nso a gap and a bit are not")):
        problem = optrand.unbiased_regression(PROBLEM.labels, PROBLEM.prior, epsilon)
        assert told in chord_figure(problem).get_suptitle()
        assert gap_figure(problem).get_suptitle().endswith("not optimal" if epsilon > 1 else "labels, optimal")


def test_gaps_are_as_wide_as_they_are_likely_and_the_outputs_those_of_the_closed_form():
    for subject in (PROBLEM, optrand.solve(PROBLEM)):
        (axes,) = gap_figure(subject).axes
        arcs = design_gap_response(PROBLEM.labels, PROBLEM.prior, 0.9).randomizer.arcs
        yes, no = curve(axes, "output of a yes"), curve(axes, "output of a no")
        np.testing.assert_allclose(np.diff(yes[:, 0]), arcs.masses[:5] / arcs.masses[:5].sum(), rtol=1e-9)
        np.testing.assert_array_equal(yes[:-1, 1], arcs.outputs[5:])
        np.testing.assert_array_equal(no[:-1, 1], arcs.outputs[:5])
        (strips,) = [patch for patch in axes.collections if patch.get_label() == "gap"]
        heights = strips.get_paths()[0].vertices[:, 1]
        assert set(heights) == set(PROBLEM.labels)


@pytest.mark.parametrize("draw", [chord_figure, gap_figure])
def test_only_unbiased_problems_of_squared_error_are_drawn(draw):
    biased, alone = optrand.regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0), optrand.unbiased_regression([0], [1], 1.0)
    for other in (biased, alone, rr_with_prior([0.5, 0.5], 1.0)):
        with pytest.raises(InvalidInput, match="see unbiased_regression"):
            draw(other)
    with pytest.raises(InvalidInput, match="needs a mechanism"):
        draw(optrand.solve(PROBLEM).randomizer)
    many = optrand.unbiased_regression(range(10_000), np.full(10_000, 1e-4), 0.5)
    assert draw(many).axes
