"""States of event-level reports: the published numbers, an enumeration by brute force, and certified optima."""

import itertools
import math

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand.states import best, capacity, channel_capacity, noise_rate, trigger_states
from optrand.states._optimum import bound_utility

COUNTS = [
    (3, [3] * 8, 2925),
    (1, [1, 1], 3),
    (1, [1], 2),
    (5, [1], 6),
    (2, [1, 1, 2, 2], 28),
    (3, [1, 1, 2, 2, 3, 3], 455),
    (20, [5] * 8, 4191844505805495),
    (20, [5] * 32, (9494472 << 64) + 10758590974061625903),
]
"""Numbers of states in the tests of the browser's implementation: reports, windows of each trigger datum, states."""


@by_case("reports, windows, count", *COUNTS)
def test_the_published_numbers_of_states_come_out(reports: int, windows: list[int], count: int) -> None:
    states = trigger_states(reports, windows)
    assert states.size == count == math.comb(sum(windows) + reports, reports)
    for place in {0, 1, count // 2, count - 1}:
        assert states.index(states[place]) == place


def test_the_published_numbers_come_out() -> None:
    """Cases of the tests ``privacy.test.ts`` of the specification's repository and of their copies in two browsers."""
    assert (noise_rate(2, math.log(3)), noise_rate(3, math.log(3))) == pytest.approx((0.5, 0.6), rel=1e-15)
    assert noise_rate(2925, 14) == pytest.approx(0.0024263221679834087, rel=1e-14)
    assert noise_rate(3, 14) == pytest.approx(0.000002494582008677539, rel=1e-14)
    assert noise_rate(2**32 - 1, 14) == pytest.approx(0.99972007548289821, rel=1e-14)
    assert capacity(2, math.log(3)) == pytest.approx(0.18872187554086717, rel=1e-14)
    assert capacity(trigger_states(3, 3, 8), 14) == pytest.approx(11.461727965384876, rel=1e-14)
    assert capacity(trigger_states(1, 1, 2), 14) == pytest.approx(1.584926511508231, rel=1e-14)
    assert capacity(455, 14) == pytest.approx(8.821556150827456, rel=1e-14)
    assert capacity(2, 14) == pytest.approx(0.9999820053790732, rel=1e-14)
    assert (capacity(1, 14), capacity(1024, math.inf), capacity(3, math.inf)) == (0, 10, math.log2(3))


@pytest.mark.parametrize(
    ("reports", "windows", "limits"),
    [(2, [1, 2], None), (3, [2, 1, 2], [1, 3, 2]), (4, [2, 2], [3, 1]), (1, [3], [5]), (5, [1, 1, 1], 1)],
)
def test_states_are_those_of_brute_force(reports: int, windows: list[int], limits: list[int] | int | None) -> None:
    states = trigger_states(reports, windows, limits=limits)
    cells = [(datum, window) for datum, count in enumerate(windows) for window in range(count)]
    most = states.limits
    expected = {
        chosen
        for size in range(reports + 1)
        for chosen in itertools.combinations_with_replacement(cells, size)
        if all(sum(datum == one for one, _ in chosen) <= most[datum] for datum in range(len(windows)))
    }
    listed = list(states)
    assert len(listed) == len(states) == states.size
    assert set(listed) == expected
    assert [states.index(state) for state in listed] == list(range(states.size))
    assert (states[1:3], states[-1]) == (listed[1:3], listed[-1])
    assert listed[-1] in states


@by_case(
    "call, words",
    (lambda: trigger_states(0, 1, 2), "max_reports"),
    (lambda: trigger_states(1, 1), "data_cardinality"),
    (lambda: trigger_states(1, [1, 2], 3), "for 2 trigger data"),
    (lambda: trigger_states(1, [1, 0]), "windows is 0"),
    (lambda: trigger_states(1, [1, 1], limits=[1]), "1 limits for 2"),
    (lambda: capacity(0, 1), "states is 0"),
    (lambda: capacity(2, -1), "epsilon is -1"),
    (lambda: channel_capacity([[0.5, 0.4]]), "sum to 1"),
    (lambda: channel_capacity([[0.5, 0.5]], gap=-1.0), "gap is -1"),
    (lambda: channel_capacity([[0.5, 0.5]], gap=None), "gap is of type NoneType"),
    (lambda: best([[1, 2]], [0.5, 0.5], 1), "1 rows and prior 2"),
    (lambda: best([1, 2], [0.5, 0.5], 1), "shape"),
    (lambda: best([[1], [2]], [0.5, 0.5], 1, 0), "capacity is 0"),
)
def test_bad_input_is_refused(call, words: str) -> None:
    assert_error(words, call)


# -------------------------------------------------------------------------------------------------------- capacity
@pytest.mark.parametrize("count", [2, 3, 20])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 14.0])
def test_the_formula_is_the_capacity(count: int, epsilon: float) -> None:
    other = 1 / (count - 1 + math.exp(epsilon))
    table = np.full((count, count), other) + (math.exp(epsilon) - 1) * other * np.eye(count)
    assert 0 <= channel_capacity(table) - capacity(count, epsilon) < 1e-9


# --------------------------------------------------------------------------------------------------------- optimum
def test_only_the_true_state_makes_it_rr_with_prior() -> None:
    prior = [0.4, 0.3, 0.2, 0.1]
    found = best(np.eye(4), prior, 1.0)
    assert found.lower == pytest.approx(optrand.rr_with_prior(prior, 1.0).value)
    assert found.gap < 1e-9
    assert found.epsilon <= 1.0


def test_merging_changes_nothing() -> None:
    utility = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 4.0]])
    prior = np.array([0.5, 0.3, 0.2])
    small = best(utility, prior, 1.0)
    kinds, columns = [0, 1, 0, 2, 1, 0], [2, 0, 0, 1, 2]
    shares = np.array([prior[kind] / kinds.count(kind) for kind in kinds])
    large = best(utility[np.ix_(kinds, columns)], shares, 1.0)
    assert (large.kinds.tolist(), large.columns.tolist()) == (kinds, [0, 1, 3])
    assert large.lower == pytest.approx(small.lower, rel=1e-12)
    assert set(large.sample([0, 1, 3] * 100).tolist()) <= {0, 1, 3}


def exact_utility(found, utility: np.ndarray, prior: np.ndarray) -> float:
    table = (found.mechanism.weights / found.mechanism.total).astype(float)
    used = found.columns[found.mechanism.outputs.astype(int)]
    return float(sum(p * table[found.kinds[y]] @ utility[y, used] for y, p in enumerate(prior)))


@by_case("shape, epsilon, bits", ((3, 3), 2.0, 0.3), ((8, 6), 2.0, 0.3), ((4, 5), 1.0, 0.01), ((2, 2), 9.0, 1e-6))
def test_a_capacity_is_met_at_a_certified_optimum(shape: tuple[int, int], epsilon: float, bits: float) -> None:
    utility, prior = np.random.default_rng(5).random(shape), np.full(shape[0], 1 / shape[0])
    free, found = best(utility, prior, epsilon), best(utility, prior, epsilon, bits)
    assert free.capacity > bits >= found.capacity
    assert found.gap < 1e-6
    assert found.lower < free.lower
    assert found.epsilon <= epsilon
    assert found.lower == pytest.approx(exact_utility(found, utility, prior), rel=1e-12)
    table = (found.mechanism.weights / found.mechanism.total).astype(float)
    assert channel_capacity(table, gap=1e-7) <= bits + 1e-6


def test_any_multiplier_bounds_the_utility() -> None:
    utility, prior = np.random.default_rng(5).random((4, 4)), np.full(4, 0.25)
    found = best(utility, prior, 2.0, 0.2)
    worth = prior[:, np.newaxis] * utility
    rng = np.random.default_rng(0)
    for multiplier in (0.0, 0.3, 2.0):
        inputs = rng.dirichlet(np.ones(4))
        # Any distribution over states at each output, as r_y 2^b.
        backward = rng.dirichlet(np.ones(4), size=4).T
        cut = inputs[:, np.newaxis] * np.log2(backward / inputs[:, np.newaxis])
        assert bound_utility(worth, 2.0, 0.2, cut, multiplier) >= found.lower
    assert found.upper < bound_utility(worth, 2.0, 0.2, np.zeros((4, 4)), 0.0)


def test_many_kinds_take_a_lower_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optrand.states._optimum.LARGEST", 4)
    found = best(np.eye(8), np.full(8, 1 / 8), 3.0, 0.5)
    assert found.capacity <= 0.5
    assert found.epsilon < 3.0
    assert capacity(8, found.epsilon) == pytest.approx(0.5, abs=1e-4)
