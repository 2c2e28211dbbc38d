"""What the picture of phases shows: the borders, outputs and densities of a mechanism at its public phases."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import matplotlib.patches
import numpy as np
import pytest

import optrand
from optrand.closed_forms import rr_with_prior
from optrand.errors import InvalidInput
from optrand.mechanism.phases import phases_of
from optrand.plotting import phases as module
from optrand.plotting import phases_figure
from tests.tables import mechanism_of

SIX = optrand.load(Path(__file__).parent / "images" / "six.json")
UNEVEN = optrand.solve(optrand.unbiased_regression([0, 1, 3, 4, 9], [0.3, 0.2, 0.2, 0.2, 0.1], 3.0))


def lines(axes, told):
    (found,) = [artist for artist in axes.collections if artist.get_label() == told]
    return [np.asarray(each) for each in found.get_segments()]


def height(segments, phase):
    """Heights at a phase of lines that are level around it."""
    found = (np.interp(phase, each[:, 0], each[:, 1]) for each in segments if each[0, 0] <= phase <= each[-1, 0])
    return sorted(found)


@pytest.mark.parametrize("mechanism", [SIX, UNEVEN], ids=["six", "uneven"])
def test_borders_and_outputs_are_those_of_the_bins_at_each_phase(mechanism):
    found = phases_of(mechanism)
    density, bins, outputs = phases_figure(mechanism).axes
    borders, answers = lines(bins, "borders of bins"), lines(outputs, "under the outputs")
    labels = mechanism.labels
    (steps,) = [patch for patch in density.patches if isinstance(patch, matplotlib.patches.StepPatch)]
    values, edges, _ = steps.get_data()
    assert np.diff(edges) @ values == pytest.approx(1)
    for low, high, value in zip(edges[:-1], edges[1:], values, strict=True):
        phase = (low + high) / 2
        theta = math.floor(phase * found.delay)
        expected = found.bins(theta)
        between = (labels[expected.first[1:]] + labels[expected.last[:-1]]) / 2
        top = [y for y in height(borders, phase) if y < labels[-1]]
        np.testing.assert_allclose(top, between)
        np.testing.assert_allclose(height(answers, phase), expected.outputs)
        assert value == pytest.approx(float(Fraction(found.weight(theta) * found.delay, mechanism.total)))
        (mesh,) = [each for each in bins.collections if type(each).__name__ == "QuadMesh"]
        column = np.searchsorted(edges, phase) - 1
        rows = np.concatenate([np.full(b - a + 1, v) for a, b, v in zip(*_of(expected), strict=True)])
        np.testing.assert_array_equal(mesh.get_array()[:, column], rows)


def _of(bins):
    return bins.first, bins.last, bins.outputs


def test_axes_state_their_units():
    density, bins, outputs = phases_figure(SIX).axes
    assert density.get_ylabel() == "density"
    assert bins.get_xlabel() == outputs.get_xlabel() == "public phase, as a share of the delay"
    assert (bins.get_ylabel(), outputs.get_ylabel()) == ("label (label units)", "output (label units)")


def test_of_many_phases_those_that_are_evenly_spread_are_shown(monkeypatch):
    monkeypatch.setattr(module, "MOST", 10)
    figure = phases_figure(optrand.solve(optrand.unbiased_regression(range(30), [1 / 30] * 30, 3.0)))
    assert figure.get_suptitle().endswith("drawn at 10 phases, evenly spread")
    (steps,) = figure.axes[0].patches
    np.testing.assert_allclose(steps.get_data().edges, np.linspace(0, 1, 11))


def test_randomized_response_has_one_phase():
    figure = phases_figure(optrand.debiased_rr(range(5), 3.0))
    assert figure.get_suptitle() == "Randomized response on 5 bins at a public phase: 5 labels, ε = 3"
    assert [each[0, 1] for each in lines(figure.axes[1], "borders of bins")] == [0.5, 1.5, 2.5, 3.5]


def test_what_has_no_phases_is_not_drawn():
    with pytest.raises(InvalidInput, match="in integers, not a Randomizer"):
        phases_figure(SIX.randomizer)
    with pytest.raises(InvalidInput, match="classes have no order"):
        phases_figure(rr_with_prior([0.5, 0.3, 0.2], 1.0))
    problem = optrand.unbiased_regression([0, 1, 2], [0.4, 0.3, 0.3], 1.0)
    with pytest.raises(InvalidInput, match="is a table"):
        phases_figure(
            mechanism_of(problem, None, [0.0, 1.0], np.array([[1, 2], [2, 1], [1, 2]], dtype=object), Fraction(2))
        )
