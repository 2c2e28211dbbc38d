"""Exact mechanisms from designs in floats: private, normalised and unbiased to the last integer, for any design."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error, by_case
from flows import arcs_of, forward, mixed
from oracle import Channel

import optrand
from optrand import Interval, Problem
from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.closed_forms._regression import design_debiased_rr
from optrand.errors import NotCertified
from optrand.mechanism._tabulation import Solution, round_randomizer, tabulate
from optrand.model._randomizer import Arcs, Randomizer, decompose
from optrand.solvers import ColumnGeneration, design

EPSILONS = (1e-6, 1e-3, 0.01, 0.1, 1.0, 4.0, 8.0, 20.0, 40.0)
UTILITY = 1e-6
"""Within the solved range a mechanism loses at most this share of its design's utility."""


def spiky(rng: np.random.Generator, k: int) -> np.ndarray:
    prior = rng.dirichlet(np.full(k, rng.choice([0.05, 0.5, 5.0]))) * (rng.random(k) < 0.7)
    prior[rng.integers(k)] += 0.3
    prior[prior < 1e-300] = 0
    prior /= prior.sum()
    prior[prior < 1e-300] = 0
    return prior


def cone_matrix(rng: np.random.Generator, k: int, n: int, epsilon: float) -> np.ndarray:
    """A private table: a mixture of randomized responses onto the outputs, and of one common row."""
    ratio = math.exp(epsilon)
    table = np.zeros((k, n))
    for weight in rng.dirichlet(np.ones(4)):
        image = rng.integers(n, size=k)
        used = np.unique(image)
        part = np.zeros((k, n))
        part[:, used] = 1 / (ratio + used.size - 1)
        part[np.arange(k), image] *= ratio
        table += weight * part
    common = rng.dirichlet(np.ones(n))
    share = rng.choice([0.0, 0.1])
    return (1 - share) * table + share * common


def check_exact(mechanism: optrand.Mechanism, epsilon: float) -> None:
    """The promise, recomputed here from nothing but the integers."""
    channel = Channel.of_table(mechanism.table)
    assert channel.worst_row == 0
    assert channel.ratio <= privacy_ratio(epsilon) <= exp_bracket(epsilon, 400)[0]
    assert not mechanism.problem.unbiased or channel.largest_bias(mechanism.labels) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_thousand_designs_become_private_to_the_last_integer(epsilon: float) -> None:
    rng = np.random.default_rng(int(epsilon * 1e6) % 2**32)
    for _ in range(230):
        k, n = int(rng.integers(2, 65)), int(rng.integers(2, 129))
        labels = np.sort(rng.choice(np.arange(-200, 200), size=k, replace=False) / rng.choice([1, 7]))
        outputs = np.sort(rng.choice(np.arange(-500, 500), size=n, replace=False)).astype(float)
        problem = optrand.regression(labels, spiky(rng, k), epsilon, outputs=outputs)
        floats = Randomizer(problem.labels, outputs, cone_matrix(rng, k, n, epsilon), epsilon)
        mechanism = tabulate(Solution(problem, floats))
        check_exact(mechanism, epsilon)
        if 0.01 <= epsilon <= 8:
            assert mechanism.value == pytest.approx(problem.value(floats), rel=UTILITY)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_tables_become_unbiased_to_the_last_integer(epsilon: float) -> None:
    """No bias of 1e-30 is left."""
    labels = [0.0, 1.0, 2.5, 7.0]
    on_the_line = optrand.unbiased_regression(labels, [0.4, 0.1, 0.3, 0.2], epsilon)
    on_a_grid = replace(on_the_line, outputs=optrand.feasible_output_set(labels, epsilon, 9))
    response = design_debiased_rr(labels, epsilon).randomizer
    columns = ColumnGeneration()(on_a_grid).randomizer
    for problem, floats in (
        (on_the_line, Randomizer(labels, response.outputs, response.matrix, epsilon)),
        (on_a_grid, Randomizer(labels, columns.outputs, columns.matrix, epsilon)),
    ):
        assert floats.arcs is None
        assert 0 < np.abs(floats.biases).max() < 1e-12
        assert tabulate(Solution(problem, floats)).bias == 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 30))])
def test_unbiased_optima_of_any_loss_are_exact_and_as_good(seed: int) -> None:
    """Sets of labels are no intervals for a loss that is drawn at random: every promise from the integers alone."""
    rng = np.random.default_rng(seed)
    kinds = set()
    for _ in range(12):
        k, epsilon = int(rng.integers(2, 8)), float(rng.choice([0.1, 1.0, 3.0]))
        labels = np.cumsum(rng.exponential(size=k))
        outputs = optrand.feasible_output_set(labels, epsilon, int(rng.integers(4, 12)))
        loss = optrand.losses.Tabulated(rng.exponential(size=(k, outputs.values.size)))
        prior = rng.dirichlet(np.full(k, float(rng.choice([0.3, 3.0]))))
        problem = optrand.regression(labels, prior, epsilon, loss=loss, bias_penalty=math.inf, outputs=outputs)
        solution = design(problem)
        mechanism = tabulate(solution)
        check_exact(mechanism, epsilon)
        assert set(mechanism.outputs.tolist()) <= set(outputs.values.tolist())
        assert mechanism.value == pytest.approx(solution.value, rel=1e-9)
        kinds.add(mechanism.arcs is None)
    assert kinds == {True, False}


def test_the_ratio_falls_short_of_the_budget_by_2_to_the_minus_50_at_most() -> None:
    for epsilon in EPSILONS:
        mechanism = optrand.rr([0, 1, 2], epsilon)
        high = exp_bracket(epsilon, 400)[1]
        assert (high - mechanism.ratio) * 2**50 <= high - 1
        assert mechanism.realised_ratio == mechanism.ratio
        assert optrand.certify(mechanism).epsilon <= epsilon


def test_zeros_of_a_simplex_answer_are_mended_and_a_broken_design_is_not() -> None:
    problem = optrand.classification([0.5, 0.3, 0.2], 1.0)
    matrix = np.array(optrand.solve(problem).matrix)
    off = matrix.copy()
    off[0, 0] += 1e-9
    off[0, 1] -= 1e-9
    mended = tabulate(Solution(problem, Randomizer(problem.labels, problem.labels[: matrix.shape[1]], off, 1.0)))
    check_exact(mended, 1.0)
    tiny = np.array([[0.5, 0.5, 0.0], [0.5, 0.5 - 1e-11, 1e-11], [0.5, 0.5, 0.0]])
    check_exact(tabulate(Solution(problem, Randomizer(problem.labels, problem.labels, tiny, 1.0))), 1.0)
    broken = Randomizer(problem.labels, problem.labels, np.eye(3), 1.0)
    assert_error("not 1-DP", tabulate, Solution(problem, broken), error=optrand.errors.NotCertified)
    with pytest.raises(optrand.errors.InvalidInput, match="labels"):
        tabulate(Solution(problem, Randomizer([5, 6, 7], problem.labels, np.full((3, 3), 1 / 3), 1.0)))


# ------------------------------------------------------------------------------------------------- interval columns
def some_prior(rng: np.random.Generator, k: int) -> np.ndarray:
    """Rough, and a third of it zero."""
    prior = rng.dirichlet(np.full(k, 0.5)) * (rng.random(k) < 0.67)
    prior[rng.integers(k)] += 0.1
    return prior / prior.sum()


def best_outputs(problem: Problem, arcs: Arcs) -> np.ndarray:
    """The outputs of least loss among those that make these masses unbiased, from dense equations."""
    ratio = math.exp(problem.epsilon)
    inside = (arcs.first <= np.arange(arcs.k)[:, np.newaxis]) & (np.arange(arcs.k)[:, np.newaxis] <= arcs.last)
    table = np.where(inside, ratio, 1.0) * arcs.masses
    curvature = np.diag(problem.prior @ table)
    system = np.block([[curvature, table.T], [table, np.zeros((arcs.k, arcs.k))]])
    right = np.concatenate(((problem.prior * problem.labels) @ table, problem.labels))
    return np.linalg.lstsq(system, right, rcond=None)[0][: arcs.n]


def two_ends(labels: np.ndarray, epsilon: float, low: float, high: float) -> Arcs:
    """Randomized response of the lowest and the highest label, the others rounded at random to these: 2 k - 2 arcs."""
    k, steps = labels.size, np.diff(labels) / np.ptp(labels) / (1 + math.exp(epsilon))
    first = np.concatenate((np.zeros(k - 1, dtype=int), np.arange(1, k)))
    last = np.concatenate((np.arange(k - 1), np.full(k - 1, k - 1)))
    return Arcs(k, first, last, np.repeat([low, high], k - 1), np.concatenate((steps, steps)))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 8.0, 12.0])
def test_flows_become_unbiased_to_the_last_bit(epsilon: float) -> None:
    rng = np.random.default_rng(int(1000 * epsilon))
    for k in (2, 3, 5, 17, 60):
        for _ in range(2):
            labels = np.cumsum(rng.exponential(size=k)) - 3
            problem = optrand.unbiased_regression(labels, some_prior(rng, k), epsilon)
            arcs = arcs_of(problem, forward(rng, k))
            arcs = Arcs(k, arcs.first, arcs.last, np.sort(rng.normal(size=arcs.n)), arcs.masses)
            mechanism = tabulate(Solution(problem, Randomizer.of_arcs(labels, arcs, epsilon)))
            check_exact(mechanism, epsilon)
            # Some columns lie between two floats, and are split between them.
            assert mechanism.n <= 2 * arcs.n


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_cost_of_taking_a_bias_out_is_quadratic(epsilon: float) -> None:
    """Biases of a size t in random outputs, less the first-order term: halving t divides the cost by four."""
    rng = np.random.default_rng(5)
    for k in (3, 6, 12):
        problem = optrand.unbiased_regression(np.sort(rng.normal(size=k)), rng.dirichlet(np.ones(k)), epsilon)
        arcs = arcs_of(problem, forward(rng, k))
        best = best_outputs(problem, arcs)
        least = problem.value(Randomizer.of_arcs(problem.labels, replace(arcs, outputs=best), epsilon))
        direction = rng.normal(size=arcs.n)
        costs = []
        for size in (0.1, 0.05):
            off = replace(arcs, outputs=best + size * direction)
            costs.append(tabulate(Solution(problem, Randomizer.of_arcs(problem.labels, off, epsilon))).value - least)
        assert costs[0] > 0
        assert costs[0] == pytest.approx(4 * costs[1], rel=1e-3)


@pytest.mark.parametrize("columns", [forward, mixed], ids=["forward", "nested"])
def test_any_flow_is_rounded_to_one_that_is_exact_and_near(columns: object) -> None:
    rng = np.random.default_rng(11)
    for k in (1, 2, 7, 40, 300):
        for size in (2, 5):
            problem = optrand.regression(np.arange(k), np.full(k, 1 / k), 1.0, bias_penalty=2.0)
            arcs = arcs_of(problem, forward(rng, k, size) if columns is forward else mixed(rng, k, size))
            randomizer = Randomizer.of_arcs(problem.labels, arcs, 1.0)
            table = round_randomizer(randomizer)
            assert tabulate(Solution(problem, randomizer)).table == table
            assert np.array_equal(table.outputs, np.unique(arcs.outputs))
            np.testing.assert_allclose(table.matrix, arcs.table(math.e)[1], rtol=1e-12, atol=1e-15)


def test_arcs_that_round_to_nothing_vanish() -> None:
    arcs = Arcs(2, [0, 1, 0], [0, 1, 1], [-0.5, 1.5, 7.0], [0.25, 0.25, 1e-22])
    table = round_randomizer(Randomizer.of_arcs([0, 1], arcs, math.log(3)))
    assert (table.outputs.tolist(), table.biases[0]) == ([-0.5, 1.5], -table.biases[1])


def test_masses_that_are_next_to_nothing_do_not_unbalance_a_flow() -> None:
    problem = optrand.regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, bias_penalty=1.0)
    even = 1 / (math.e + 2)
    arcs = Arcs(3, [0, 1, 2, 0], [0, 1, 2, 1], [0.0, 1.0, 2.0, 3.0], [even, even, even * (1 + 1e-6), 1e-320])
    check_exact(tabulate(Solution(problem, Randomizer.of_arcs(problem.labels, arcs, 1.0))), 1.0)


def test_outputs_that_are_too_few_get_company() -> None:
    """Randomized response of labels 0 and 4, label 1 rounded at random to its neighbours: two outputs, three labels."""
    third = 1 / (1 + math.e)
    arcs = Arcs(3, [0, 0, 1, 2], [0, 1, 2, 2], [-2.3, -2.3, 6.3, 6.3], np.array([0.25, 0.75, 0.25, 0.75]) * third)
    problem = optrand.unbiased_regression([0, 1, 4], [0.5, 0.0, 0.5], 1.0)
    check_exact(tabulate(Solution(problem, Randomizer.of_arcs(problem.labels, arcs, 1.0))), 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("overhang", [0.0, 1e-3, 0.1, 1.0])
def test_outputs_in_a_box_stay_in_it_and_masses_make_up_for_those_on_its_ends(epsilon: float, overhang: float) -> None:
    rng = np.random.default_rng(17)
    for k in (3, 8, 20):
        labels = np.sort(rng.normal(size=k))
        low, high = optrand.unbiased_range(labels, epsilon)
        box = Interval(low - overhang * (high - low), high + overhang * (high - low))
        problem = optrand.unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon, outputs=box)
        arcs = two_ends(labels, epsilon, low, high)
        nearly = arcs.outputs + 1e-7 * (high - low) * rng.normal(size=arcs.n)
        outputs = np.clip(nearly, box.low, box.high)
        arcs = Arcs(k, arcs.first, arcs.last, outputs, arcs.masses)
        mechanism = tabulate(Solution(problem, Randomizer.of_arcs(labels, arcs, epsilon)))
        assert box.low <= mechanism.outputs[0] < mechanism.outputs[-1] <= box.high
        assert mechanism.bias == 0


def test_on_a_grid_outputs_stay_and_masses_bring_the_means() -> None:
    labels = np.arange(8.0)
    for epsilon in (0.3, 1.0, 4.0):
        # Debiased randomized response of the two ends for half the budget: prefixes, suffixes, and all labels at once.
        low, high = optrand.unbiased_range(labels, epsilon / 2)
        upper = (labels - low) / (high - low)
        design = Randomizer(labels, [low, high], np.column_stack((1 - upper, upper)), epsilon)
        columns = decompose(design, math.exp(epsilon))
        first, last = columns.members.argmax(axis=0), 7 - columns.members[::-1].argmax(axis=0)
        # The values of the grid are not quite those that the masses were made for.
        grid = [low - 1e-4, 3.0, high + 2e-4]
        outputs = np.where(columns.outputs < 3, grid[0], grid[2])
        problem = optrand.unbiased_regression(labels, np.full(8, 1 / 8), epsilon, outputs=grid)
        arcs = Arcs(8, first, last, outputs, columns.masses)
        assert np.abs(Randomizer.of_arcs(labels, arcs, epsilon).biases).max() > 1e-5
        mechanism = tabulate(Solution(problem, Randomizer.of_arcs(labels, arcs, epsilon)))
        assert (mechanism.outputs.tolist(), mechanism.bias) == ([grid[0], grid[2]], 0)


def test_a_grid_that_barely_reaches_far_enough_costs_nothing() -> None:
    # To take out a bias, two outputs need a share of it over the distance of the tight end from the last feasible
    # place, here a billionth. Biases of 1e-16 would cost 1e-7 of the loss: masses need more digits than floats have.
    for seed in range(6):
        rng = np.random.default_rng([8, seed])
        k, epsilon = int(rng.integers(2, 12)), float(10 ** rng.uniform(-1.5, 0.7))
        labels, prior = np.sort(rng.uniform(0, 50, k)), rng.dirichlet(np.ones(k))
        reach = np.ptp(labels) / float(privacy_ratio(epsilon) - 1)
        ends = [labels[0] - reach * (1 + 1e-9), labels[-1] + 2 * reach]
        grid = np.sort(np.append(ends, rng.uniform(*ends, 10)))
        mechanism = optrand.solve(optrand.unbiased_regression(labels, prior, epsilon, outputs=grid))
        assert mechanism.certificate.gap < 1e-9
        assert not any(mechanism.table.biases)


@by_case(
    "masses, reason",
    ([0.25, 0.25 + 1e-5], r"rows are off 1 by 3e-05"),
    ([0.3, 0.3], r"rows are off 1 by 0\.2"),
    ([0.0, 0.0], "rows are off 1 by 1"),
)
def test_designs_that_are_broken_by_more_than_rounding_are_refused(masses: list[float], reason: str) -> None:
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], math.log(3))
    arcs = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], masses)
    with pytest.raises(optrand.errors.NotCertified, match=reason):
        tabulate(Solution(problem, Randomizer.of_arcs([0, 1], arcs, math.log(3))))
    negative = Arcs(2, [0, 1, 0, 0], [0, 1, 1, 1], [-0.5, 1.5, 2.0, 3.0], [0.25, 0.25, 1e-4, -1e-4])
    with pytest.raises(optrand.errors.NotCertified, match=r"negative masses account for 0\.0003"):
        tabulate(Solution(problem, Randomizer.of_arcs([0, 1], negative, math.log(3))))


def test_an_output_of_the_smallest_probabilities_is_left_out() -> None:
    # The middle of two neighbouring floats is one of them, and above the upper one there is no label.
    rare = [[0.5, 0.5, 1e-323], [0.5, 0.5, 5e-324]]
    assert round_randomizer(Randomizer([0, 1], [0, 1, 2], rare, 1.0)).outputs.tolist() == [0, 1]


def test_labels_of_all_sizes_overflow_nothing() -> None:
    """Outputs in units of the finest label would overflow."""
    labels = [1e-300, 1.0, 1e100]
    problem = optrand.regression(labels, [0.25, 0.5, 0.25], 1.0, bias_penalty=math.inf)
    arcs = Arcs(3, [0, 1, 2], [0, 1, 2], [-1e100, -1e100 + 1, 2e100], np.full(3, 1 / (2 + math.e)))
    check_exact(tabulate(Solution(problem, Randomizer.of_arcs(labels, arcs, 1.0))), 1.0)


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 700.0])
def test_budgets_outside_the_solved_range_are_exact_all_the_same(epsilon: float) -> None:
    problem = optrand.unbiased_regression([0, 1, 3], [0.2, 0.5, 0.3], epsilon)
    share = math.exp(-epsilon) / (1 + 2 * math.exp(-epsilon))
    arcs = Arcs(3, [0, 1, 2], [0, 1, 2], [-1.0, 1.0, 4.0], np.full(3, share))
    assert tabulate(Solution(problem, Randomizer.of_arcs([0, 1, 3], arcs, epsilon))).bias == 0


@pytest.mark.nightly
def test_ten_thousand_labels_fit() -> None:
    k = 10_001
    rng = np.random.default_rng(7)
    problem = optrand.unbiased_regression(np.arange(k), rng.dirichlet(np.ones(k)), 1.0)
    arcs = arcs_of(problem, forward(rng, k, 6))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, 1.0)
    tracemalloc.start()
    mechanism = tabulate(Solution(problem, randomizer))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A dense table of floats alone would take a gigabyte.
    assert peak < 200e6
    assert mechanism.bias == 0


def test_outputs_that_leave_no_room_are_refused() -> None:
    low, high = optrand.unbiased_range([0, 1, 2], 1.0)
    short = Interval(math.nextafter(low, 0), math.nextafter(high, 0))
    problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=short)
    assert_error("nearly the narrowest that allow no bias: widen them", optrand.solve, problem, error=NotCertified)
    ends = Arcs(
        3, [0, 0, 1, 2], [0, 1, 2, 2], [short.low, short.low, short.high, short.high], np.full(4, 1 / (2 + 2 * math.e))
    )
    with pytest.raises(NotCertified, match="are too narrow to remove it: let them reach a little further"):
        tabulate(Solution(problem, Randomizer.of_arcs([0, 1, 2], ends, 1.0)))
