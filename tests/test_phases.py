"""One pointer and its delayed copy: times and bins of a public phase, against the table of the mechanism."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import optrand
from optrand.closed_forms import debiased_rr, gap_response, rr_with_prior
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.theory.b23.phases import Phases, phases_of


def solved(seed: int) -> Mechanism:
    rng = np.random.default_rng([161803, seed])
    k = int(rng.integers(2, 9))
    labels, prior = np.cumsum(rng.uniform(0.2, 1.8, k)), rng.dirichlet(np.full(k, 0.7)) + 1e-3
    return optrand.solve(optrand.unbiased_regression(labels, prior / prior.sum(), rng.uniform(0.2, 4)))


MECHANISMS = {
    **{f"solved-{seed}": solved(seed) for seed in range(6)},
    "gaps": gap_response([0, 1, 3, 4], [0.3, 0.3, 0.2, 0.2], 0.6),
    "ties": gap_response([0, 1, 3, 4], [0.5, 0.0, 0.0, 0.5], 0.6),
    "response": debiased_rr(range(5), 3.0),
}


def small() -> Phases:
    """Three labels, masses of a few units: all draws can be counted."""
    first, last = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2])
    return Phases(np.arange(3.0), first, last, np.array([-2.0, 0.0, 1.0, 2.0, 5.0]), (2, 1, 1, 1, 2), Fraction(5, 2))


def pieces(found: Phases) -> list[tuple[int, int]]:
    """Runs of phases with the same bins."""
    ends = sorted({time % found.delay for time in found.times} | {0, found.delay})
    return list(pairwise(ends))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_delay_is_one_for_all_labels_and_is_their_coverage(name):
    mechanism = MECHANISMS[name]
    found = phases_of(mechanism)
    assert {later - time for time, later in zip(found.passing, found.leaving, strict=True)} == {found.delay}
    assert set(mechanism.arcs.coverage) == {found.delay}
    assert list(found.passing) == sorted(found.passing)
    assert found.passing[0] == 0
    assert found.leaving[-1] == found.total == sum(mechanism.arcs.masses.tolist())


@pytest.mark.parametrize("name", MECHANISMS)
def test_bins_partition_the_labels_where_times_are_the_phase_modulo_the_delay(name):
    found = phases_of(MECHANISMS[name])
    for start, end in pieces(found):
        for theta in {start, end - 1}:
            bins = found.bins(theta)
            assert (bins.first[0], bins.last[-1]) == (0, found.labels.size - 1)
            np.testing.assert_array_equal(bins.first[1:], bins.last[:-1] + 1)
            crossed = [
                (later - 1 - theta) // found.delay != (time - 1 - theta) // found.delay
                for time, later in pairwise(found.passing)
            ]
            np.testing.assert_array_equal(np.flatnonzero(crossed) + 1, bins.first[1:])


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_mixture_over_phases_is_the_table(name):
    mechanism = MECHANISMS[name]
    found, table = phases_of(mechanism), np.zeros(mechanism.weights.shape, dtype=object)
    total, low, high = 0, mechanism.ratio.denominator, mechanism.ratio.numerator
    for start, end in pieces(found):
        bins = found.bins(start)
        assert found.weight(start) == low * (len(bins) - 1) + high
        total += (end - start) * found.weight(start)
        for first, last, output in zip(bins.first, bins.last, bins.outputs, strict=True):
            column = np.searchsorted(mechanism.outputs, output)
            table[:, column] += (end - start) * low
            table[first : last + 1, column] += (end - start) * (high - low)
    assert total == mechanism.total
    assert (table == mechanism.weights).all()


def test_what_has_no_monotone_path_is_refused():
    with pytest.raises(InvalidInput, match="a table"):
        phases_of(rr_with_prior([0.5, 0.3, 0.2], 1.0))
    wide = np.array([[0, 0], [2, 2], [0, 2], [1, 1]])
    with pytest.raises(InvalidInput, match=r"labels number 0 to 2, another 1 to 1, inside"):
        Phases(np.arange(3.0), np.sort(wide[:, 0]), np.array([0, 2, 1, 2]), np.arange(4.0), (1, 1, 1, 1), Fraction(2))
    for theta in (-1, small().delay, 0.5):
        with pytest.raises(InvalidInput, match="theta"):
            small().bins(theta)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "response"])
def test_the_output_of_an_optimum_has_one_mean_and_one_variance_at_all_phases(name):
    mechanism = MECHANISMS[name]
    found, ratio, prior = phases_of(mechanism), float(mechanism.ratio), mechanism.problem.prior
    mean = prior @ mechanism.labels
    square = 2 * mechanism.value + prior @ (mechanism.labels - mean) ** 2
    below = np.concatenate(([0], np.cumsum(prior)))
    for start, _ in pieces(found):
        bins = found.bins(start)
        likely = (1 + (ratio - 1) * (below[bins.last + 1] - below[bins.first])) / (len(bins) + ratio - 1)
        assert likely.sum() == pytest.approx(1)
        apart = bins.outputs - mean
        assert likely @ apart == pytest.approx(0, abs=1e-6 * np.sqrt(square))
        assert likely @ apart**2 == pytest.approx(square, rel=1e-6)


def test_borders_and_outputs_of_many_labels_move_as_a_geodesic():
    """801 labels, a smooth prior: rates of change between two phases against the printed ones, to 1e-3 and to 4 %."""
    labels, step = np.linspace(0, 1, 801, retstep=True)
    shape = 0.3 + np.exp(-0.5 * ((labels - 0.35) / 0.2) ** 2)
    prior = shape / shape.sum()
    mechanism = optrand.solve(optrand.unbiased_regression(labels, prior, 1.0))
    found, gain = phases_of(mechanism), float(mechanism.ratio) - 1
    passing, times, delay = (
        np.array([float(Fraction(found.ratio.denominator * time, found.row_total)) for time in given])
        for given in (found.passing, found.times, [found.delay])
    )
    middles, below = (times[1:] + times[:-1]) / 2, np.concatenate(([0], np.cumsum(prior)))

    def state(theta):
        moments = np.arange(theta, times[-1], delay[0])
        return np.interp(moments[:-1], passing, labels), np.interp(moments, middles, found.outputs)

    apart, last = 0.03 * delay[0], times[-1] % delay[0]
    assert 0.2 < last / delay[0] < 0.8
    for low, high in ((0, last), (last, delay[0])):
        for theta in np.linspace(low + 2 * apart, high - 2 * apart, 15):
            (before, behind), (borders, outputs), (after, ahead) = map(state, (theta - apart, theta, theta + apart))
            gaps = np.diff(outputs)
            np.testing.assert_allclose((after - before) / (2 * apart), gain * gaps, rtol=1e-3)
            cuts = np.interp(borders, np.append(labels - step / 2, labels[-1] + step / 2), below)
            weights = 1 + gain * np.diff(cuts, prepend=0, append=1)
            pushed = np.interp(borders, labels, prior / step) * gaps**2
            expected = gain**2 / 2 * (np.append(pushed, 0) + np.insert(pushed, 0, 0))
            np.testing.assert_allclose(weights * (ahead - behind) / (2 * apart), expected, rtol=0.04)
