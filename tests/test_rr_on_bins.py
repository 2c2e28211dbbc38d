"""Randomized response on bins: the optimum without care for bias, by its definition, other solvers and its dual."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from conftest import label_sets, priors, solved_epsilons
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from references import reference_bound

import optrand
from benchmarks.bins import CubicProgram
from optrand import Dual, Interval, Problem, Randomizer, certify, losses, regression, rr_on_bins
from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.certificates.certificate import lower_bound
from optrand.model.arcs import Arcs
from optrand.solvers import ColumnGeneration, LinearProgram
from optrand.solvers.bins.costs import bin_costs
from optrand.solvers.bins.cuts import BinKnots, Cut
from optrand.solvers.bins.dual import bin_dual
from optrand.solvers.bins.graph import BinGraph
from optrand.solvers.bins.path import BinPath, best_partition

LOSSES = {loss.name: loss for loss in (losses.squared, losses.absolute, losses.poisson_log)}
by_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)

GAP = 1e-9


# ------------------------------------------------------------------------------------------ references from definitions


def partitions(k: int) -> Iterator[list[range]]:
    """All ways to cut ``k`` labels into consecutive bins."""
    for cuts in itertools.product([False, True], repeat=k - 1):
        nodes = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), k]
        yield [range(a, b) for a, b in itertools.pairwise(nodes)]


def column(problem: Problem, bin_: range) -> tuple[float, float]:
    """The best output of the staircase column of some labels, and what it costs there, from the definition."""
    weights = problem.prior * np.where(np.isin(np.arange(problem.k), bin_), math.exp(problem.epsilon), 1.0)
    candidates = problem.labels[problem.prior > 0]
    if problem.loss != losses.absolute:
        candidates = np.array([weights @ problem.labels / weights.sum()])
    candidates = np.clip(candidates, problem.outputs.low, problem.outputs.high)
    costs = weights[problem.prior > 0] @ problem.loss_table(candidates)[problem.prior > 0]
    return float(candidates[costs.argmin()]), float(costs.min())


def rounding(problem: Problem) -> float:
    """What references in floats may be wrong by: of the loss of a constant output, and of that output itself."""
    loss = problem.loss_table(np.array([column(problem, range(0))[0]]))[:, 0]
    return float(1e-14 * problem.prior @ np.abs(loss) + (4 * np.spacing(np.abs(problem.labels).max())) ** 2)


def loss_of(problem: Problem, bins: list[range]) -> float:
    """Randomized response on some bins, each with its best output."""
    return sum(column(problem, one)[1] for one in bins) / (math.exp(problem.epsilon) + len(bins) - 1)


def response(problem: Problem, bins: list[range]) -> Randomizer:
    """The same as a randomizer."""
    first, last = [one[0] for one in bins], [one[-1] for one in bins]
    mass = 1 / (math.exp(problem.epsilon) + len(bins) - 1)
    outputs = [column(problem, one)[0] for one in bins]
    arcs = Arcs(problem.k, first, last, outputs, [mass] * len(bins))
    return Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)


@st.composite
def cases(draw, max_size=6, budgets=solved_epsilons):
    """Problems without care for bias, on the line or an interval; Poisson log loss has a label above 0 at least."""
    loss = draw(st.sampled_from(list(LOSSES.values())))
    labels = draw(label_sets(2, max_size))
    prior = draw(priors(labels.size))
    if loss == losses.poisson_log:
        labels = labels - min(0.0, labels[0]) + (1.0 if prior[0] == 1 else 0.0)
    low, spread = labels[0], float(np.ptp(labels))
    inside = Interval(low + 0.2 * spread, low + draw(st.sampled_from([0.6, 0.9])) * spread)
    outputs = draw(st.sampled_from([None, None, inside]))
    return regression(labels, prior, draw(budgets), loss=loss, outputs=outputs)


def random_problem(seed: int, trial: int, loss: losses.Loss, largest: int = 60) -> Problem:
    """Labels even, uneven, in clusters or far from 0; priors rough, smooth, tied, spiked, with zeros or specks."""
    rng = np.random.default_rng([seed, trial])
    k = int(rng.integers(2, largest + 1))
    labels = [
        np.arange(k) * 1.0,
        100 * np.sort(rng.random(k)),
        np.sort(10 * rng.integers(0, 4, k) + 1e-3 * rng.random(k)),
        1000 + np.sort(rng.random(k)),
    ][rng.integers(4)]
    weights = [
        rng.dirichlet(np.full(k, 0.3)) + 1e-12,
        np.exp(-rng.uniform(0, 8) * np.arange(k) / k),
        rng.integers(1, 4, k) * 1.0,
        np.where(np.arange(k) == rng.integers(k), 10.0 * k, 1.0),
        np.where(np.arange(k) == rng.integers(1, k), 1.0, (rng.random(k) < 0.5) * rng.random(k)),
        10.0 ** rng.integers(-12, 1, k),
    ][rng.integers(6)]
    epsilon = rng.choice([0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
    return regression(labels, weights / weights.sum(), float(epsilon), loss=loss)


# ---------------------------------------------------------------------------------------------------------- the optimum


@settings(max_examples=150)
@given(cases())
def test_no_partition_into_bins_is_better(problem):
    found = BinPath()(problem).value
    best = min(loss_of(problem, bins) for bins in partitions(problem.k))
    assert found == pytest.approx(best, rel=1e-11, abs=rounding(problem))


@settings(max_examples=40)
@given(cases(budgets=st.sampled_from([0.1, 0.7, 2.0, 5.0])))
def test_no_private_table_is_better_on_a_grid_that_holds_its_outputs(problem):
    """The floor LP and column generation: any grid is worse than the line, unless it holds the best outputs."""
    assume(problem.prior[problem.prior > 0].min() > 1e-6)
    solution = BinPath()(problem)
    outputs = solution.randomizer.outputs
    around = np.linspace(*np.clip([0.05, problem.labels[-1] + 1], problem.outputs.low, problem.outputs.high), 7)
    on_grid = replace(problem, outputs=optrand.Grid(np.union1d(outputs, around)))
    scale = float(np.abs(problem.loss_table(on_grid.outputs.values)).max())
    for solver in (LinearProgram(), ColumnGeneration()):
        assert optrand.solve(on_grid, solver).value == pytest.approx(solution.value, abs=1e-7 * scale)


@by_loss
@pytest.mark.parametrize("trial", range(10))
def test_the_cubic_program_of_gkk23_finds_the_same_bins(loss, trial):
    """Every number of bins, every place for the last one."""
    problem = random_problem(3, trial, loss, largest=30)
    problem = replace(problem, labels=problem.labels[problem.prior > 0], prior=problem.prior[problem.prior > 0])
    here, there = BinPath()(problem), CubicProgram()(problem)
    assert here.value == pytest.approx(there.value, rel=1e-9)
    certify(problem, there.randomizer, here.dual).require(1e-7)


@by_loss
def test_coarser_outputs_are_worse(loss):
    labels, prior = np.arange(1.0, 7.0), np.array([0.3, 0.05, 0.25, 0.2, 0.05, 0.15])
    line = rr_on_bins(labels, prior, 2.0, loss=loss).value
    grid = optrand.solve(regression(labels, prior, 2.0, loss=loss, outputs=[0.8, 2.7, 7.2])).value
    assert grid > line * (1 + 1e-3)


def test_the_example_of_b23():
    """[B23] Table 1 and what follows it: Phi(0) = 0.396, Phi(1) = Phi(2) = 0.720, and Bayes predictors 0.542, 0.558."""
    given_x = np.array([[0.35, 0.1, 0.05], [0.25, 0.15, 0.1]])
    solution = rr_on_bins([0, 1, 2], given_x.sum(axis=0), 0.5)
    arcs = solution.randomizer.arcs
    assert (arcs.first.tolist(), arcs.last.tolist()) == ([0, 1], [0, 2])
    assert arcs.outputs == pytest.approx([0.396, 0.720], abs=5e-4)
    predictors = given_x @ (solution.randomizer.matrix @ arcs.outputs) / 0.5
    assert predictors == pytest.approx([0.542, 0.558], abs=5e-4)
    # "or even Poisson": a weighted mean is the best output there, too.
    assert rr_on_bins([0, 1, 2], given_x.sum(axis=0), 0.5, loss=losses.poisson_log).randomizer.outputs == pytest.approx(
        [0.396, 0.720], abs=5e-4
    )


def test_two_labels_by_hand():
    """E = 3, even prior: bins of one label, outputs 1/4 and 3/4, right three times in four."""
    solution = rr_on_bins([0, 1], [0.5, 0.5], math.log(3))
    assert solution.randomizer.outputs == pytest.approx([0.25, 0.75])
    assert solution.randomizer.matrix == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert solution.value == pytest.approx((0.75 * 0.25**2 + 0.25 * 0.75**2) / 2)


def test_the_ends_of_epsilon():
    labels, prior = np.arange(6.0), np.array([0.1, 0.2, 0.25, 0.15, 0.2, 0.1])
    for loss in LOSSES.values():
        large = rr_on_bins(labels + 1, prior, 30.0, loss=loss)
        assert large.randomizer.n == 6
        assert large.randomizer.outputs == pytest.approx(labels + 1)
    # The mean is 2.45; the median 2.
    for loss in (losses.squared, losses.poisson_log):
        arcs = rr_on_bins(labels, prior, 1e-4, loss=loss).randomizer.arcs
        assert arcs.first.tolist() == [0, 3]
        assert arcs.outputs == pytest.approx([2.45, 2.45], abs=1e-3)
    assert rr_on_bins(labels, prior, 1e-4, loss=losses.absolute).randomizer.outputs.tolist() == [2.0]


# --------------------------------------------------------------------------------------------------------- the evidence


@settings(max_examples=60)
@given(cases(max_size=5, budgets=st.sampled_from([0.05, 0.5, 1.0, 3.0, 6.0])))
def test_the_dual_holds_against_every_set_of_labels_and_every_real_output(problem):
    """By brute force over all 2^k columns, in rationals, E rounded up."""
    solution = BinPath()(problem)
    bound = float(reference_bound(problem, solution.dual, exp_bracket(problem.epsilon)[1]))
    scale = abs(solution.value) or float(problem.prior @ np.abs(problem.labels)) or 1.0
    assert bound <= solution.value + 1e-14 * scale
    assert bound >= solution.value - GAP * scale


@by_loss
def test_nearly_all_duals_close_and_none_overstates(loss):
    """Several hundred partitions; of each loss at most one in a hundred may stay open, and not by much."""
    gaps = []
    for trial in range(200):
        problem = random_problem(2023, trial, loss)
        solution = BinPath()(problem)
        proof = certify(solution)
        assert not proof.findings
        assert proof.lower <= proof.upper * (1 + 1e-13) + 1e-300 or loss == losses.poisson_log
        gaps.append(proof.gap)
    assert np.mean(np.array(gaps) <= GAP) >= 0.99
    assert max(gaps) <= 1e-3


@by_loss
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 12.0, 25.0, 40.0])
def test_outside_the_solved_range_it_closes_as_well(loss, epsilon):
    rng = np.random.default_rng(7)
    spike = np.where(np.arange(30) == 11, 300.0, 1.0)
    for weights in (rng.dirichlet(np.ones(30)), spike, 10.0 ** rng.integers(-9, 1, 30), np.arange(30) % 3 * 1.0):
        labels = np.sort(1 + 50 * rng.random(30))
        assert certify(rr_on_bins(labels, weights / weights.sum(), epsilon, loss=loss)).gap <= GAP


@by_loss
def test_the_exact_mechanism_is_proven(loss):
    problem = random_problem(5, 3, loss, largest=40)
    proof = certify(optrand.tabulate(BinPath()(problem)), exact=True).require(GAP)
    assert proof.epsilon <= problem.epsilon


@pytest.mark.parametrize("outputs", [None, Interval(15.0, 60.0)])
@by_loss
def test_many_labels_are_arcs_and_no_table(loss, outputs):
    k = 1500
    prior = np.random.default_rng(3).dirichlet(np.full(k, 0.5)) + 1e-6
    solution = rr_on_bins(np.linspace(1, 100, k), prior / prior.sum(), 6.0, loss=loss, outputs=outputs)
    certify(solution).require(GAP)
    assert "matrix" not in vars(solution.randomizer)
    assert solution.randomizer.arcs.n < 60


@by_loss
def test_cuts_close_what_neither_the_first_try_nor_potentials_do(loss):
    """Absolute loss needs them most: without rounds of cuts some of these stay open, with them none does."""
    problems = [random_problem(2023, trial, loss) for trial in range(60)]
    with_cuts = [certify(BinPath()(problem)).gap for problem in problems]
    without = [certify(BinPath(rounds=1)(problem)).gap for problem in problems]
    assert max(with_cuts) <= GAP
    assert all(a <= b + GAP for a, b in zip(with_cuts, without, strict=True))
    if loss == losses.absolute:
        assert max(without) > 1e-6


# ------------------------------------------------------------------------------------------------- what must be refused


@by_loss
def test_a_neighbouring_partition_is_feasible_and_not_optimal(loss):
    problem = regression(np.arange(1.0, 9.0), np.arange(8, 0, -1) / 36, 2.0, loss=loss)
    solution = BinPath()(problem)
    first = solution.randomizer.arcs.first
    assert first.size > 1
    for at in range(1, first.size):
        for step in (-1, 1):
            moved = first.copy()
            moved[at] += step
            if (np.diff(np.append(moved, 8)) <= 0).any():
                continue
            bins = [range(a, b) for a, b in itertools.pairwise([*moved.tolist(), 8])]
            proof = certify(problem, response(problem, bins), solution.dual)
            assert not proof.findings
            assert proof.gap > 1e-6
            with pytest.raises(optrand.errors.NotCertified, match="verified gap"):
                proof.require(GAP)


@by_loss
def test_other_multipliers_prove_less(loss):
    problem = regression(np.arange(1.0, 9.0), np.arange(8, 0, -1) / 36, 2.0, loss=loss)
    solution = BinPath()(problem)
    bound = lower_bound(problem, solution.dual)
    for y in range(8):
        for factor in (0.97, 1.03):
            alpha = solution.dual.alpha.copy()
            alpha[y] *= factor
            assert lower_bound(problem, Dual(alpha, np.zeros(8))) < bound
    swapped = solution.dual.alpha[::-1].copy()
    assert lower_bound(problem, Dual(swapped, np.zeros(8))) < bound - 1e-3 * abs(bound)


def test_more_than_epsilon_is_caught():
    problem = regression(np.arange(4.0), [0.4, 0.3, 0.2, 0.1], 1.0)
    stronger = BinPath()(regression(np.arange(4.0), [0.4, 0.3, 0.2, 0.1], 1.01))
    assert any("not 1-DP" in finding for finding in certify(problem, stronger.randomizer).findings)


def test_problems_that_bins_do_not_answer_are_refused():
    labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    for problem in (
        optrand.unbiased_regression(labels, prior, 1.0),
        regression(labels, prior, 1.0, bias_penalty=1e-3),
        regression(labels, prior, 1.0, outputs=[0, 1]),
        optrand.classification(prior, 1.0),
    ):
        assert not BinPath().accepts(problem)
        with pytest.raises(optrand.errors.InvalidInput, match="bias penalty of 0"):
            BinPath()(problem)
    with pytest.raises(optrand.errors.InvalidInput, match="bias penalty of 0"):
        rr_on_bins(labels, prior, 1.0, outputs=optrand.Grid(np.array([0.0, 1.0])))
    with pytest.raises(optrand.errors.InvalidInput, match="zero_one, and bins have a closed form for squared"):
        bin_costs(optrand.classification(prior, 1.0))


def test_a_label_of_zero_for_sure_has_no_best_output_under_poisson_log_loss():
    with pytest.raises(optrand.errors.Infeasible, match="pass outputs="):
        rr_on_bins([0, 1], [1.0, 0.0], 1.0, loss=losses.poisson_log)
    found = rr_on_bins([0, 1], [1.0, 0.0], 1.0, loss=losses.poisson_log, outputs=Interval(0.1, 2.0))
    assert found.randomizer.outputs.tolist() == [0.1]
    assert found.value == pytest.approx(0.1)


# ------------------------------------------------------------------------------------------------- what does not matter


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
@pytest.mark.parametrize("trial", range(8))
def test_shift_scale_and_reflection(loss, trial):
    problem = random_problem(11, trial, loss, largest=25)
    value, outputs = BinPath()(problem).value, BinPath()(problem).randomizer.outputs
    power = 2 if loss == losses.squared else 1
    moved = BinPath()(regression(4 * problem.labels - 3, problem.prior, problem.epsilon, loss=loss))
    assert moved.value == pytest.approx(4**power * value, rel=1e-9)
    assert moved.randomizer.outputs == pytest.approx(4 * outputs - 3, rel=1e-9)
    turned = BinPath()(regression(-problem.labels, problem.prior, problem.epsilon, loss=loss))
    assert turned.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("trial", range(8))
def test_scale_of_poisson_log_loss(trial):
    """``4 v - 4 y log(4 v)`` is four times ``v - y log v``, less a constant."""
    problem = random_problem(12, trial, losses.poisson_log, largest=25)
    here, there = (
        BinPath()(regression(c * problem.labels, problem.prior, problem.epsilon, loss=losses.poisson_log))
        for c in (1, 4)
    )
    mean = float(problem.prior @ problem.labels)
    assert there.value == pytest.approx(4 * here.value - 4 * math.log(4) * mean, rel=1e-12)
    assert there.randomizer.outputs == pytest.approx(4 * here.randomizer.outputs)


@by_loss
def test_the_loss_falls_with_epsilon_and_rises_with_a_smaller_interval(loss):
    labels, prior = np.arange(1.0, 21.0), np.random.default_rng(9).dirichlet(np.ones(20))
    values = [rr_on_bins(labels, prior, epsilon, loss=loss).value for epsilon in (0.1, 0.5, 1, 2, 4, 8)]
    assert (np.diff(values) <= 0).all()
    boxes = [None, Interval(2.0, 19.0), Interval(5.0, 15.0), Interval(9.0, 10.0)]
    values = [rr_on_bins(labels, prior, 3.0, loss=loss, outputs=box).value for box in boxes]
    assert (np.diff(values) >= -1e-13).all()
    assert values[-1] > values[0]


@by_loss
def test_labels_of_prior_zero_have_no_say(loss):
    labels, prior = np.array([1.0, 2.0, 4.0, 5.0, 9.0, 10.0]), np.array([0.0, 0.4, 0.0, 0.35, 0.25, 0.0])
    whole, kept = rr_on_bins(labels, prior, 3.0, loss=loss), rr_on_bins([2, 5, 9], [0.4, 0.35, 0.25], 3.0, loss=loss)
    assert whole.value == kept.value
    assert whole.randomizer.outputs.tolist() == kept.randomizer.outputs.tolist()
    assert (whole.dual.alpha[prior == 0] == 0).all()
    certify(whole).require(GAP)


@by_loss
def test_a_prior_that_knows_the_label(loss):
    solution = rr_on_bins([1, 3, 4], [0, 1, 0], 1.0, loss=loss)
    assert solution.randomizer.outputs.tolist() == [3.0]
    certify(solution).require(GAP)


# ------------------------------------------------------------------------------------------------------------ the parts


def graph_of(problem: Problem) -> BinGraph:
    kept = problem.prior > 0
    return BinGraph(replace(problem, labels=problem.labels[kept], prior=problem.prior[kept]))


@given(cases())
@example(regression([0.0, 1.0], [1e-8, 1 - 1e-8], 0.01))
def test_costs_of_bins_are_those_of_the_definition(problem):
    """``G_S = Phi* + (E - 1) K_S``."""
    graph = graph_of(problem)
    problem, gain = graph.problem, graph.gain
    assert graph.costs.least == pytest.approx(column(problem, range(0))[1], rel=1e-12, abs=rounding(problem))
    for start, rows in graph._blocks():
        for i, a in enumerate(range(start, start + rows.shape[0])):
            assert np.isinf(rows[i, :i]).all()
            for b in range(a, problem.k):
                cost = column(problem, range(a, b + 1))[1]
                found = graph.costs.least + gain * rows[i, b - start]
                assert found == pytest.approx(cost, rel=1e-11, abs=10 * rounding(problem) * (1 + gain))


def test_squared_costs_keep_their_digits_at_large_epsilon():
    """At E = e^30 a bin of two close labels costs 1e-9 of the variance; against rationals."""
    labels, prior = np.array([0.0, 1.0, 1.0 + 1e-5, 7.0]), np.array([0.25, 0.25, 0.25, 0.25])
    graph = BinGraph(regression(labels, prior, 30.0))
    y, gain = [Fraction(x) for x in labels.tolist()], Fraction(graph.gain)
    mean = sum(y) / 4
    pair, inside = (y[1] + y[2]) / 2, (y[1] - y[2]) ** 2 / 16
    exact = inside + (pair - mean) ** 2 / 4 / (1 + gain / 2)
    (_, rows), *_ = graph._blocks()
    assert rows[1, 2] == pytest.approx(float(exact), rel=1e-13)


@given(cases(), st.floats(-1, 1))
def test_shortest_paths_are_the_best_of_all(problem, share):
    graph = graph_of(problem)
    penalty = share * graph.costs.least / (graph.gain + 1)
    found = graph.lengths(graph.shortest(penalty))
    every = [graph.lengths(np.array([one[0] for one in bins])) for bins in partitions(graph.problem.k)]
    best = min(math.fsum(lengths) + penalty * lengths.size for lengths in every)
    size = max(float(np.abs(lengths).sum()) for lengths in every) + abs(penalty)
    assert math.fsum(found) + penalty * found.size == pytest.approx(best, abs=1e-13 * size)


@pytest.mark.parametrize("trial", range(6))
@by_loss
def test_potentials_are_near_and_no_arc_is_too_short(loss, trial):
    graph = graph_of(random_problem(21, trial, loss, largest=30))
    starts, _ = best_partition(graph)
    penalty, k = graph.penalty(starts), graph.problem.k
    lengths = np.full((k, k + 1), math.inf)
    for a, row in graph._rows():
        lengths[a, a + 1 :] = row + penalty
    total = math.fsum(graph.lengths(starts)) + starts.size * penalty
    unit = float(np.abs(lengths[np.isfinite(lengths)]).max())
    near = np.linspace(0, total, k + 1) + 0.01 * unit * np.random.default_rng(trial).standard_normal(k + 1)
    found = graph.potentials(near, penalty)
    assert (found - found[:k, np.newaxis] <= lengths + 1e-13 * unit)[np.isfinite(lengths)].all()
    nodes = np.append(starts, k)
    assert np.diff(found[nodes]) == pytest.approx(lengths[nodes[:-1], nodes[1:]], abs=1e-12 * unit)
    assert graph.potentials(found, penalty) == pytest.approx(found, abs=1e-12 * unit)


@by_loss
def test_small_blocks_and_costs_that_are_not_kept_change_nothing(loss, monkeypatch):
    problem = random_problem(31, 2, loss, largest=60)
    whole = BinPath()(problem)
    monkeypatch.setattr("optrand.solvers.bins.graph.BLOCK", 64)
    monkeypatch.setattr("optrand.solvers.bins.graph.KEPT", 0)
    blocks = BinPath()(problem)
    assert blocks.randomizer.arcs.first.tolist() == whole.randomizer.arcs.first.tolist()
    assert blocks.dual.alpha == pytest.approx(whole.dual.alpha, rel=1e-9)
    assert not graph_of(problem)._kept


def test_bins_of_one_output_are_one_bin():
    """On an interval that clips them both, the two lower bins have one output; merging them saves a column."""
    problem = regression([0, 1, 20, 21], [0.25] * 4, 4.0, outputs=Interval(10.0, 30.0))
    graph = BinGraph(problem)
    assert graph.value(np.array([0, 2, 3])) < graph.value(np.array([0, 1, 2, 3]))
    starts, _ = best_partition(graph)
    assert (np.diff(graph.outputs(starts)) > 0).all()


def test_knots_that_satisfy_cuts_are_the_nearest_ones():
    """Two bins of three and two labels; one cut on the last label of the first bin and all of the second."""
    starts, widths, sums = np.array([0, 3]), np.array([1.0, 1.0, 2.0, 1.0, 1.0]), np.array([2.0, 1.0])
    middle = np.full(5, 0.5)
    knots = BinKnots(starts, 5, 3)
    assert knots.exhausted
    assert knots.finer.most == 6
    free = knots.nearest(middle, widths, sums, [Cut(np.array([0]), np.array([1.0]), 1.0)])
    assert free == pytest.approx(middle, abs=1e-6)
    cut = Cut(np.array([2, 3]), np.array([2.0, 1.0]), 1.3)
    places = knots.nearest(middle, widths, sums, [cut])
    assert cut.weights @ places[cut.labels] <= 1.3 + 1e-9
    assert np.add.reduceat(widths * places, starts) == pytest.approx(sums)
    assert ((places >= 0) & (places <= 1)).all()
    impossible = [Cut(np.array([0, 1, 2]), widths[:3], 1.0)]
    assert knots.nearest(middle, widths, sums, impossible) is None


@by_loss
def test_multipliers_sum_to_the_loss_and_lie_between_their_bounds(loss):
    graph = graph_of(random_problem(41, 4, loss, largest=40))
    starts, _ = best_partition(graph)
    alpha = bin_dual(graph, starts, gap=2e-10, rounds=80)
    problem, outputs = graph.problem, graph.outputs(starts)
    assert math.fsum(alpha) == pytest.approx(graph.value(starts), rel=1e-11)
    table = problem.prior[:, np.newaxis] * problem.loss_table(outputs)
    own = np.repeat(np.arange(starts.size), np.diff(np.append(starts, problem.k)))
    slack = 1e-9 * np.abs(table).max()
    assert (alpha >= table[np.arange(problem.k), own] - slack).all()
    if starts.size > 1:
        others = np.where(np.arange(starts.size) == own[:, np.newaxis], math.inf, table)
        assert (alpha <= others.min(axis=1) + slack).all()


def test_stats_and_the_ratio_of_the_mechanism():
    solution = rr_on_bins(np.arange(10.0), np.full(10, 0.1), 2.0)
    assert solution.stats.solver == repr(BinPath())
    assert 1 <= solution.stats.iterations <= 10
    mechanism = optrand.tabulate(solution)
    assert mechanism.ratio == privacy_ratio(2.0)
    assert mechanism.arcs is not None
