"""Exact tables of arcs: rows of one total, whatever was rounded, and means right to the rounding of the outputs."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from flows import arcs_of, forward, mixed

import optrand
from optrand import Interval, Problem
from optrand.base.arithmetic import privacy_ratio
from optrand.mechanism.flow_tabulation import _conserved, rounded_flow, tabulated_flow
from optrand.mechanism.tabulation import tabulate
from optrand.model.arcs import Arcs, IntegerArcs
from optrand.model.randomizer import Randomizer
from optrand.model.staircase import decompose
from optrand.solvers import design
from tests.tables import mechanism_of

EPSILONS = (0.01, 0.1, 1.0, 4.0, 8.0, 12.0)


def some_prior(rng: np.random.Generator, k: int) -> np.ndarray:
    """Rough, and a third of it zero."""
    prior = rng.dirichlet(np.full(k, 0.5)) * (rng.random(k) < 0.67)
    prior[rng.integers(k)] += 0.1
    return prior / prior.sum()


def brute_biases(problem: Problem, outputs: np.ndarray, flow: IntegerArcs) -> list[Fraction]:
    """``E[M(y)] - y`` from the definition of the table, column by column, in fractions."""
    ratio = privacy_ratio(problem.epsilon)
    biases = []
    for y, label in enumerate(problem.labels.tolist()):
        weights = [
            int(mass) * (ratio if first <= y <= last else 1)
            for first, last, mass in zip(flow.first, flow.last, flow.masses, strict=True)
        ]
        moment = sum(w * Fraction(v) for w, v in zip(weights, outputs[flow.at].tolist(), strict=True))
        biases.append(moment / sum(weights) - Fraction(label))
    return biases


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


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_flows_become_unbiased_to_the_last_bit(epsilon: float) -> None:
    rng = np.random.default_rng(int(1000 * epsilon))
    for k in (2, 3, 5, 17, 60):
        for _ in range(2):
            labels = np.cumsum(rng.exponential(size=k)) - 3
            problem = optrand.unbiased_regression(labels, some_prior(rng, k), epsilon)
            arcs = arcs_of(problem, forward(rng, k))
            anywhere = np.sort(rng.normal(size=arcs.n))
            arcs = Arcs(k, arcs.first, arcs.last, anywhere, arcs.masses)
            outputs, flow, _ = tabulated_flow(problem, arcs)
            assert len(set(flow.coverage)) == 1
            # Some columns lie between two floats, and are split between them.
            assert flow.masses.size <= 2 * arcs.n
            assert not any(brute_biases(problem, outputs, flow))


def test_no_mass_moves_by_more_than_the_nodes_were_off() -> None:
    """Of flows that are broken at every node, dead ends among them, whose arcs come to nothing."""
    rng = np.random.default_rng(14)
    emptied = 0
    for _ in range(1_000):
        k = int(rng.integers(1, 6))
        arcs = [(a, b) for a in range(k) for b in range(a + 1, k + 1) if rng.random() < 0.5] or [(0, k)]
        first, end = (np.array(side) for side in zip(*arcs, strict=True))
        wanted = rng.integers(0, 6, len(arcs))
        masses = np.array(_conserved(k, first, end, wanted.tolist()))
        assert (masses >= 0).all()
        entering, leaving = (
            [np.bincount(side, amounts, k + 1)[1:k] for amounts in (wanted, masses)] for side in (end, first)
        )
        assert entering[1].tolist() == leaving[1].tolist()
        assert np.abs(masses - wanted).max() <= np.abs(entering[0] - leaving[0]).sum()
        emptied += bool(((masses == 0) & (wanted > 0)).any())
    assert emptied > 250


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_outputs_move_to_where_the_loss_is_least(epsilon: float) -> None:
    # It starts from the best of all outputs, so that the least change ends at the best of the unbiased.
    rng = np.random.default_rng(5)
    for k in (3, 6, 12):
        problem = optrand.unbiased_regression(np.sort(rng.normal(size=k)), rng.dirichlet(np.ones(k)), epsilon)
        arcs = arcs_of(problem, forward(rng, k))
        outputs, flow, _ = tabulated_flow(problem, arcs)
        table = Randomizer.of_arcs(problem.labels, arcs, epsilon)
        expected = Arcs(k, arcs.first, arcs.last, best_outputs(problem, arcs), arcs.masses)
        unbiased = Randomizer.of_arcs(problem.labels, expected, epsilon)
        assert problem.value(table) < problem.value(unbiased)
        mechanism = mechanism_of(problem, None, outputs, flow, privacy_ratio(epsilon))
        assert problem.value(mechanism.randomizer) == pytest.approx(problem.value(unbiased), rel=1e-9)


@pytest.mark.parametrize("columns", [forward, mixed], ids=["forward", "nested"])
def test_any_flow_is_rounded_to_one_that_is_exact_and_near(columns: object) -> None:
    rng = np.random.default_rng(11)
    for k in (1, 2, 7, 40, 300):
        for size in (2, 5):
            problem = optrand.regression(np.arange(k), np.full(k, 1 / k), 1.0)
            arcs = arcs_of(problem, forward(rng, k, size) if columns is forward else mixed(rng, k, size))
            outputs, flow = rounded_flow(1.0, arcs)
            assert len(set(flow.coverage)) == 1
            assert np.array_equal(outputs, np.unique(arcs.outputs))
            unit = arcs.masses.sum() / sum(flow.masses.tolist())
            table = arcs.table(math.e)[1]
            integers = (flow.table(privacy_ratio(1.0)) / privacy_ratio(1.0).denominator * unit).astype(float)
            np.testing.assert_allclose(integers, table, rtol=1e-12, atol=1e-15)


def test_arcs_that_round_to_nothing_vanish() -> None:
    arcs = Arcs(2, [0, 1, 0], [0, 1, 1], [-0.5, 1.5, 7.0], [0.25, 0.25, 1e-22])
    outputs, flow = rounded_flow(math.log(3), arcs)
    assert outputs.tolist() == [-0.5, 1.5]
    assert flow.masses.tolist() == [2**59, 2**59]


def test_shared_outputs_move_together_and_masses_where_outputs_are_too_few() -> None:
    """Randomized response of labels 0 and 4, label 1 rounded at random to its neighbours: two outputs, three labels."""
    third = 1 / (1 + math.e)
    arcs = Arcs(3, [0, 0, 1, 2], [0, 1, 2, 2], [-2.3, -2.3, 6.3, 6.3], np.array([0.25, 0.75, 0.25, 0.75]) * third)
    problem = optrand.unbiased_regression([0, 1, 4], [0.5, 0.0, 0.5], 1.0)
    outputs, flow, ratio = tabulated_flow(problem, arcs)
    assert not any(brute_biases(problem, outputs, flow))
    # At the exact ratio the outputs of debiased randomized response on 0 and 4.
    overhang = 4 / float(ratio - 1)
    nearest = np.where(outputs < 2, -overhang, 4 + overhang)
    assert outputs.tolist() == pytest.approx(nearest.tolist(), rel=1e-14)


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
        outputs, flow, ratio = tabulated_flow(problem, Arcs(k, arcs.first, arcs.last, outputs, arcs.masses))
        assert box.low <= outputs[0] < outputs[-1] <= box.high
        # On the very ends of the range a ratio that falls short of exp(epsilon) leaves a bias of its own.
        allowed = 2.0**-50 * (high - low) + np.spacing(max(abs(low), abs(high)))
        assert mechanism_of(problem, None, outputs, flow, ratio).bias <= allowed


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
        used, flow, ratio = tabulated_flow(problem, arcs)
        assert used.tolist() == [grid[0], grid[2]]
        assert mechanism_of(problem, None, used, flow, ratio).bias <= 1e-15 * (high - low)


def test_a_problem_that_cares_for_bias_only_so_much_keeps_its_outputs() -> None:
    rng = np.random.default_rng(2)
    for penalty in (0.0, 2.0):
        problem = optrand.regression(np.arange(9), some_prior(rng, 9), 1.0, bias_penalty=penalty)
        arcs = arcs_of(problem, mixed(rng, 9, 3))
        solution_table = Randomizer.of_arcs(problem.labels, arcs, 1.0)
        mechanism = tabulate(problem, solution_table)
        assert np.array_equal(mechanism.outputs, solution_table.outputs)
        assert problem.value(mechanism.randomizer) == pytest.approx(problem.value(solution_table), rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_what_was_optimal_stays_proven_optimal(epsilon: float) -> None:
    for k, penalty in ((2, math.inf), (7, math.inf), (20, math.inf), (7, 0.0), (7, 3.0)):
        problem = optrand.regression(
            np.arange(k), np.arange(1, k + 1) / (k * (k + 1) / 2), epsilon, bias_penalty=penalty
        )
        solution = design(problem)
        columns = decompose(solution.randomizer, math.exp(epsilon), negligible=1e-9)
        first, last = columns.members.argmax(axis=0), k - 1 - columns.members[::-1].argmax(axis=0)
        assert np.array_equal(columns.members.sum(axis=0), last - first + 1)
        arcs = Arcs(k, first, last, columns.outputs, columns.masses)
        mechanism = tabulate(problem, Randomizer.of_arcs(problem.labels, arcs, epsilon), solution.dual)
        proof = optrand.certify(mechanism).require(gap=1e-9)
        assert proof.upper <= tabulate(solution).value * (1 + 1e-9)
        assert penalty < math.inf or mechanism.bias == 0


@pytest.mark.parametrize(
    ("masses", "reason"),
    [
        ([0.25, 0.25 + 1e-8], "differences of 4e-08 of the coverage"),
        ([0.3, 0.3], "rows are off 1 by 0.2"),
        ([0.0, 0.0], "differences of inf"),
    ],
)
def test_designs_that_are_broken_by_more_than_rounding_are_refused(masses: list[float], reason: str) -> None:
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], math.log(3))
    arcs = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], masses)
    with pytest.raises(optrand.errors.NotCertified, match=reason):
        tabulated_flow(problem, arcs)
    negative = Arcs(2, [0, 1, 0, 0], [0, 1, 1, 1], [-0.5, 1.5, 2.0, 3.0], [0.25, 0.25, 1e-4, -1e-4])
    with pytest.raises(optrand.errors.NotCertified, match=r"negative ones reach 0\.0004"):
        tabulated_flow(problem, negative)


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 700.0])
def test_budgets_outside_the_solved_range_are_exact_all_the_same(epsilon: float) -> None:
    problem = optrand.unbiased_regression([0, 1, 3], [0.2, 0.5, 0.3], epsilon)
    share = math.exp(-epsilon) / (1 + 2 * math.exp(-epsilon))
    arcs = Arcs(3, [0, 1, 2], [0, 1, 2], [-1.0, 1.0, 4.0], np.full(3, share))
    outputs, flow, ratio = tabulated_flow(problem, arcs)
    assert mechanism_of(problem, None, outputs, flow, ratio).bias == 0


@pytest.mark.nightly
def test_ten_thousand_labels_fit() -> None:
    k = 10_001
    rng = np.random.default_rng(7)
    problem = optrand.unbiased_regression(np.arange(k), rng.dirichlet(np.ones(k)), 1.0)
    arcs = arcs_of(problem, forward(rng, k, 6))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, 1.0)
    tracemalloc.start()
    mechanism = tabulate(problem, randomizer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A dense table of floats alone would take a gigabyte.
    assert peak < 200e6
    assert mechanism.bias == 0
