"""One pointer and its delayed copy (``docs/mathematics.md``, section 12), beside the mixture of paths."""

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import optrand
from optrand.closed_forms import debiased_rr, gap_response
from optrand.mechanism._mechanism import Mechanism
from optrand.studies import decompose_paths


class Phases:
    """Columns of a mechanism laid end to end along a monotone path, in integers."""

    def __init__(self, mechanism: Mechanism) -> None:
        arcs = mechanism.arcs
        order = np.lexsort((arcs.at, arcs.last, arcs.first))
        self.labels, self.ratio = mechanism.labels, mechanism.ratio
        self.first, self.last, self.outputs = arcs.first[order], arcs.last[order], mechanism.outputs[arcs.at[order]]
        # The path is monotone: neither end of the interval moves back.
        assert (np.diff(self.first) >= 0).all()
        assert (np.diff(self.last) >= 0).all()
        self.times = [0, *np.cumsum(arcs.masses[order]).tolist()]
        self.total = self.times[-1]
        labels = np.arange(self.labels.size)
        self.passing = [self.times[place] for place in np.searchsorted(self.last, labels).tolist()]
        self.leaving = [self.times[place] for place in np.searchsorted(self.first, labels, side="right").tolist()]
        self.delay = self.leaving[0]

    def columns(self, theta: int) -> list[int]:
        """Columns at theta, theta + delay, ..."""
        return [bisect_right(self.times, time) - 1 for time in range(theta, self.total, self.delay)]


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


def pieces(found: Phases) -> list[tuple[int, int]]:
    """Runs of phases with the same bins."""
    ends = sorted({time % found.delay for time in found.times} | {0, found.delay})
    return list(pairwise(ends))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_delay_is_one_for_all_labels_and_is_their_coverage(name):
    mechanism = MECHANISMS[name]
    found = Phases(mechanism)
    assert {later - time for time, later in zip(found.passing, found.leaving, strict=True)} == {found.delay}
    assert set(mechanism.arcs.coverage) == {found.delay}
    assert list(found.passing) == sorted(found.passing)
    assert found.passing[0] == 0
    assert found.leaving[-1] == found.total == sum(mechanism.arcs.masses.tolist())


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_bins_of_a_phase_are_those_of_the_path_there(name):
    """They end where times of labels are the phase modulo the delay."""
    found, paths = Phases(MECHANISMS[name]), decompose_paths(MECHANISMS[name])
    assert paths.phases[-1] == found.delay
    for start, end in pieces(found):
        for theta in {start, end - 1}:
            columns, path = found.columns(theta), paths[bisect_right(paths.phases, theta) - 1]
            np.testing.assert_array_equal(found.first[columns], path.first)
            np.testing.assert_array_equal(found.last[columns], path.last)
            # A path has one of two neighbouring floats between which an output was split.
            np.testing.assert_allclose(found.outputs[columns], path.outputs, rtol=1e-15)
            crossed = [
                (later - 1 - theta) // found.delay != (time - 1 - theta) // found.delay
                for time, later in pairwise(found.passing)
            ]
            np.testing.assert_array_equal(np.flatnonzero(crossed) + 1, path.first[1:])


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "response"])
def test_the_output_of_an_optimum_has_one_mean_and_one_variance_at_all_phases(name):
    mechanism = MECHANISMS[name]
    found, ratio, prior = Phases(mechanism), float(mechanism.ratio), mechanism.problem.prior
    mean = prior @ mechanism.labels
    square = 2 * mechanism.value + prior @ (mechanism.labels - mean) ** 2
    below = np.concatenate(([0], np.cumsum(prior)))
    for start, _ in pieces(found):
        bins = found.columns(start)
        likely = 1 + (ratio - 1) * (below[found.last[bins] + 1] - below[found.first[bins]])
        likely /= len(bins) + ratio - 1
        assert likely.sum() == pytest.approx(1)
        apart = found.outputs[bins] - mean
        assert likely @ apart == pytest.approx(0, abs=1e-6 * np.sqrt(square))
        assert likely @ apart**2 == pytest.approx(square, rel=1e-6)


def test_borders_and_outputs_of_many_labels_move_as_a_geodesic():
    """801 labels, a smooth prior: rates of change between two phases against the printed ones, to 1e-3 and to 4 %."""
    labels, step = np.linspace(0, 1, 801, retstep=True)
    shape = 0.3 + np.exp(-0.5 * ((labels - 0.35) / 0.2) ** 2)
    prior = shape / shape.sum()
    mechanism = optrand.solve(optrand.unbiased_regression(labels, prior, 1.0))
    found, gain = Phases(mechanism), float(mechanism.ratio) - 1
    passing, times, delay = (
        np.array([float(Fraction(found.ratio.denominator * time, mechanism.total)) for time in given])
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
