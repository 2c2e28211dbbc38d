"""Randomized response on bins: the optimum without a bias penalty, by its definition, other solvers and its dual."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from strategies import label_sets, priors, solved_epsilons

import optrand
from optrand import Interval, Problem, certify, losses, regression, rr_on_bins
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Arcs, Randomizer
from optrand.solvers import ColumnGeneration
from optrand.solvers._bin_costs import Bins, Partition
from optrand.solvers._bins import BinPath, best_partition, best_steps, bin_dual, potentials_above, shortest_distances

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
    """The best output of the staircase column of some labels, and its cost there, from the definition."""
    weights = problem.prior * np.where(np.isin(np.arange(problem.k), bin_), math.exp(problem.epsilon), 1.0)
    candidates = problem.labels[problem.prior > 0]
    if problem.loss != losses.absolute:
        candidates = np.array([weights @ problem.labels / weights.sum()])
    candidates = np.clip(candidates, problem.outputs.low, problem.outputs.high)
    costs = column_costs(problem, weights, candidates)
    return float(candidates[costs.argmin()]), float(costs.min())


def column_costs(problem: Problem, weights: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Cost of a column at some outputs: sums that are rounded once, so that equal terms have equal sums."""
    kept = problem.prior > 0
    table = weights[kept, np.newaxis] * problem.loss_table(outputs)[kept]
    return np.array([math.fsum(terms) for terms in table.T])


def rounding(problem: Problem) -> float:
    """Errors of references in floats: of the loss of a constant output, and of that output itself."""
    loss = problem.loss_table(np.array([column(problem, range(0))[0]]))[:, 0]
    return float(1e-14 * problem.prior @ np.abs(loss) + (4 * np.spacing(np.abs(problem.labels).max())) ** 2)


def clamped(problem: Problem, bin_: range) -> float:
    """Cost of a staircase column at the best output from the label before its bin to the one after it."""
    weights = problem.prior * np.where(np.isin(np.arange(problem.k), bin_), math.exp(problem.epsilon), 1.0)
    low, high = problem.outputs.low, problem.outputs.high
    first = problem.labels[bin_[0] - 1] if bin_[0] else low
    last = problem.labels[bin_[-1] + 1] if bin_[-1] + 1 < problem.k else high
    candidates = problem.labels if problem.loss == losses.absolute else [weights @ problem.labels / weights.sum()]
    outputs = np.clip(candidates, *np.clip([first, last], low, high))
    return float(column_costs(problem, weights, outputs).min())


def loss_of(problem: Problem, bins: list[range]) -> float:
    """Randomized response on some bins, each with its best output."""
    return sum(column(problem, one)[1] for one in bins) / (math.exp(problem.epsilon) + len(bins) - 1)


def response(problem: Problem, bins: list[range]) -> Randomizer:
    """Return it as a randomizer."""
    first, last = [one[0] for one in bins], [one[-1] for one in bins]
    mass = 1 / (math.exp(problem.epsilon) + len(bins) - 1)
    outputs = [column(problem, one)[0] for one in bins]
    arcs = Arcs(problem.k, first, last, outputs, [mass] * len(bins))
    return Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)


@st.composite
def cases(draw, max_size=6, budgets=solved_epsilons):
    """Problems without a bias penalty, on the line or an interval. Poisson log loss has a label above 0 at least."""
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
    """Labels even, uneven, in clusters or far from 0, and priors rough, smooth, tied, spiked, with zeros or specks."""
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
@settings(max_examples=60)
@given(cases())
def test_no_partition_into_bins_is_better(problem):
    found = BinPath()(problem).value
    best = min(loss_of(problem, bins) for bins in partitions(problem.k))
    assert found == pytest.approx(best, rel=1e-11, abs=rounding(problem))


@settings(max_examples=20)
@given(cases(budgets=st.sampled_from([0.1, 0.7, 2.0, 5.0])))
def test_no_private_table_is_better_on_a_grid_that_holds_its_outputs(problem):
    """Any grid is worse than the line, unless it holds the best outputs."""
    assume(problem.prior[problem.prior > 0].min() > 1e-6)
    solution = BinPath()(problem)
    outputs = solution.randomizer.outputs
    around = np.linspace(*np.clip([0.05, problem.labels[-1] + 1], problem.outputs.low, problem.outputs.high), 7)
    on_grid = replace(problem, outputs=optrand.Grid(np.union1d(outputs, around)))
    scale = float(np.abs(problem.loss_table(on_grid.outputs.values)).max())
    assert optrand.solve(on_grid, ColumnGeneration()).value == pytest.approx(solution.value, abs=1e-7 * scale)


def test_the_example_of_b23():
    """[B23] Table 1 and the text below: Phi(0) = 0.396, Phi(1) = Phi(2) = 0.720, and Bayes predictors 0.542, 0.558."""
    given_x = np.array([[0.35, 0.1, 0.05], [0.25, 0.15, 0.1]])
    mechanism = rr_on_bins([0, 1, 2], given_x.sum(axis=0), 0.5)
    assert (mechanism.arcs.first.tolist(), mechanism.arcs.last.tolist()) == ([0, 1], [0, 2])
    assert mechanism.outputs == pytest.approx([0.396, 0.720], abs=5e-4)
    predictors = given_x @ (mechanism.matrix @ mechanism.outputs) / 0.5
    assert predictors == pytest.approx([0.542, 0.558], abs=5e-4)
    # "or even Poisson": a weighted mean is the best output there, too.
    assert rr_on_bins([0, 1, 2], given_x.sum(axis=0), 0.5, loss=losses.poisson_log).outputs == pytest.approx(
        [0.396, 0.720], abs=5e-4
    )


def test_two_labels_by_hand():
    """E = 3, even prior: bins of one label, outputs 1/4 and 3/4, right three times in four."""
    mechanism = rr_on_bins([0, 1], [0.5, 0.5], math.log(3))
    assert mechanism.outputs == pytest.approx([0.25, 0.75])
    assert mechanism.matrix == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert mechanism.value == pytest.approx((0.75 * 0.25**2 + 0.25 * 0.75**2) / 2)


def test_the_ends_of_epsilon():
    labels, prior = np.arange(6.0), np.array([0.1, 0.2, 0.25, 0.15, 0.2, 0.1])
    for loss in LOSSES.values():
        large = rr_on_bins(labels + 1, prior, 30.0, loss=loss)
        assert large.outputs == pytest.approx(labels + 1)
    # The mean is 2.45, the median 2.
    for loss in (losses.squared, losses.poisson_log):
        small = rr_on_bins(labels, prior, 1e-4, loss=loss)
        assert small.arcs.first.tolist() == [0, 3]
        assert small.outputs == pytest.approx([2.45, 2.45], abs=1e-3)
    assert rr_on_bins(labels, prior, 1e-4, loss=losses.absolute).outputs.tolist() == [2.0]


# --------------------------------------------------------------------------------------------------------- the evidence
@by_loss
@pytest.mark.parametrize("trials", [range(30), pytest.param(range(200), marks=pytest.mark.nightly)])
def test_nearly_all_duals_close_and_none_overstates(loss, trials):
    """For each loss at most one partition in a hundred may stay open, and not by much."""
    gaps = []
    for trial in trials:
        problem = random_problem(2023, trial, loss)
        proof = certify(tabulate(BinPath()(problem)))
        assert not proof.findings
        assert proof.lower <= proof.upper
        gaps.append(proof.gap)
    assert np.mean(np.array(gaps) <= GAP) >= 0.99
    assert max(gaps) <= 1e-3


@pytest.mark.parametrize("outputs", [None, Interval(15.0, 60.0)])
@by_loss
def test_many_labels_are_arcs_and_no_table(loss, outputs):
    k = 700
    prior = np.random.default_rng(3).dirichlet(np.full(k, 0.5)) + 1e-6
    mechanism = rr_on_bins(np.linspace(1, 100, k), prior / prior.sum(), 6.0, loss=loss, outputs=outputs)
    certify(mechanism).require(GAP)
    assert mechanism.arcs.n < 60
    assert "weights" not in vars(mechanism.table)


@pytest.mark.nightly
@by_loss
@pytest.mark.parametrize("prior", ["rough", "specks", "tail", "spike", "zeros"])
def test_thousands_of_labels_are_proven(loss, prior):
    k = 4001
    rng = np.random.default_rng(17)
    weights = {
        "rough": rng.dirichlet(np.ones(k)),
        "specks": 10.0 ** rng.integers(-12, 1, k),
        "tail": np.exp(-69 * np.arange(k) / k),
        "spike": np.where(np.arange(k) == k // 3, 10.0 * k, 1.0),
        "zeros": np.where(rng.random(k) < 0.5, rng.random(k), 0.0),
    }[prior]
    certify(rr_on_bins(np.arange(1.0, k + 1), weights / weights.sum(), 4.0, loss=loss)).require(GAP)


@by_loss
@pytest.mark.parametrize("trial", range(6))
def test_labels_far_apart_and_priors_of_1e_30_are_proven(loss, trial):
    rng = np.random.default_rng([30, trial])
    k, epsilon = int(rng.integers(2, 80)), (1e-6, 1e-3, 1.0, 12.0, 25.0, 40.0)[trial]
    # At a large budget the loss of such labels and priors has fewer digits than the labels.
    mild = epsilon > 20
    weights = 10.0 ** rng.integers(-9 if mild else -30, 1, k)
    labels = np.sort(1 + 50 * rng.random(k) if mild else 10 ** rng.uniform(-8, 8, k))
    certify(rr_on_bins(labels, weights / weights.sum(), epsilon, loss=loss)).require(GAP)


# ----------------------------------------------------------------------------------------------------------- refusals
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
            proof = certify(tabulate(Solution(problem, response(problem, bins), solution.dual)))
            assert not proof.findings
            assert proof.gap > 1e-6
            assert_error("verified gap", proof.require, GAP, error=optrand.errors.NotCertified)


def test_problems_that_bins_do_not_answer_are_refused():
    labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    for problem in (
        optrand.unbiased_regression(labels, prior, 1.0),
        regression(labels, prior, 1.0, bias_penalty=1e-3),
        regression(labels, prior, 1.0, outputs=[0, 1]),
        optrand.classification(prior, 1.0),
    ):
        assert not BinPath().accepts(problem)
        assert_error("bias penalty of 0", BinPath(), problem)
    assert_error("bias penalty of 0", rr_on_bins, labels, prior, 1.0, outputs=optrand.Grid(np.array([0.0, 1.0])))


def test_a_label_of_zero_for_sure_has_no_best_output_under_poisson_log_loss():
    with pytest.raises(optrand.errors.Infeasible, match="pass outputs="):
        rr_on_bins([0, 1], [1.0, 0.0], 1.0, loss=losses.poisson_log)
    found = rr_on_bins([0, 1], [1.0, 0.0], 1.0, loss=losses.poisson_log, outputs=Interval(0.1, 2.0))
    assert found.outputs.tolist() == [0.1]
    assert found.value == pytest.approx(0.1)


# ---------------------------------------------------------------------------------------------------------- invariance
# The solver puts the positions of number 50 in order for squared loss.
@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
@pytest.mark.parametrize("trial", [0, 1, 2, 50])
def test_shift_scale_and_reflection(loss, trial):
    problem = random_problem(11, trial, loss, largest=25)
    value, outputs = BinPath()(problem).value, BinPath()(problem).randomizer.outputs
    power = 2 if loss == losses.squared else 1
    moved = BinPath()(regression(4 * problem.labels - 3, problem.prior, problem.epsilon, loss=loss))
    assert moved.value == pytest.approx(4**power * value, rel=1e-9)
    assert moved.randomizer.outputs == pytest.approx(4 * outputs - 3, rel=1e-9)
    turned = BinPath()(regression(-problem.labels, problem.prior, problem.epsilon, loss=loss))
    assert turned.value == pytest.approx(value, rel=1e-9)


@by_loss
def test_labels_of_prior_zero_have_no_say(loss):
    labels, prior = np.array([1.0, 2.0, 4.0, 5.0, 9.0, 10.0]), np.array([0.0, 0.4, 0.0, 0.35, 0.25, 0.0])
    whole, kept = rr_on_bins(labels, prior, 3.0, loss=loss), rr_on_bins([2, 5, 9], [0.4, 0.35, 0.25], 3.0, loss=loss)
    assert (whole.value, whole.outputs.tolist()) == (kept.value, kept.outputs.tolist())
    assert (whole.dual.alpha[prior == 0] == 0).all()
    certify(whole).require(GAP)


# ------------------------------------------------------------------------------------------------------------ the parts
def bins_of(problem: Problem) -> Bins:
    kept = problem.prior > 0
    return Bins.of(replace(problem, labels=problem.labels[kept], prior=problem.prior[kept]))


@given(cases())
@example(regression([0.0, 1.0], [1e-8, 1 - 1e-8], 0.01))
@example(
    regression([0, 1, 2, 2.5, 3.5], [9.99960002e-06] * 3 + [9.99960002e-01, 9.99960002e-06], 8.0, loss=losses.absolute)
)
def test_costs_of_bins_are_those_of_the_definition(problem):
    """The cost of a column over ``E - 1``."""
    bins = bins_of(problem)
    problem, gain = bins.problem, math.expm1(problem.epsilon)
    first, last = np.triu_indices(problem.k)
    for a, b, found in zip(first.tolist(), last.tolist(), bins.costs(first, last + 1).tolist(), strict=True):
        cost = clamped(problem, range(a, b + 1))
        assert gain * found == pytest.approx(cost, rel=1e-11, abs=10 * rounding(problem) * (1 + gain))
        assert cost >= column(problem, range(a, b + 1))[1] - rounding(problem)


@given(cases(), st.floats(0, 1))
def test_shortest_distances_are_those_of_the_best_bins(problem, share):
    """At a loss up to that of the best constant output the best clamped bins are as good as the best bins."""
    bins = bins_of(problem)
    problem, gain = bins.problem, math.expm1(problem.epsilon)
    least = column(problem, range(0))[1]
    value = least - share * abs(least) * gain / (gain + 1)
    offers = np.append(0.0, np.full(problem.k, np.inf))
    found = shortest_distances(lambda i, j: bins.costs(i, j) - value / gain, offers)[-1]
    lengths = [[(column(problem, one)[1] - value) / gain for one in bins_] for bins_ in partitions(problem.k)]
    size = max(math.fsum(map(abs, each)) for each in lengths)
    assert found == pytest.approx(min(map(math.fsum, lengths)), abs=1e-13 * size + problem.k * rounding(problem) / gain)


def fractions(rng: np.random.Generator, n: int, top: int) -> list[Fraction]:
    return [Fraction(int(x), 16) for x in rng.integers(1, top, n)]


def exact_cost(labels, prior, gain, a, b, *, free=False, absolute=False) -> Fraction:
    """``K`` of the labels ``a ... b-1`` in rationals, its output clamped or free."""

    def cost(v: Fraction) -> Fraction:
        each = [abs(v - y) if absolute else (v - y) ** 2 / 2 for y in labels]
        return sum(
            (p * g * (1 / gain + (a <= i < b)) for i, (p, g) in enumerate(zip(prior, each, strict=True))), start=0
        )

    low, high = labels[a - 1] if a and not free else None, labels[b] if b < len(labels) and not free else None
    weights = [p * (1 + gain * (a <= i < b)) for i, p in enumerate(prior)]
    mean = sum(w * y for w, y in zip(weights, labels, strict=True)) / sum(weights)
    outputs = labels if absolute else [mean]
    outputs = [v if low is None else max(v, low) for v in outputs]
    outputs = [v if high is None else min(v, high) for v in outputs]
    return min(cost(v) for v in outputs)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("trial", range(5))
def test_clamped_costs_are_concave_monge(absolute, trial):
    """In rationals, labels of very low probability among them: every quadrangle."""
    rng = np.random.default_rng([77, trial])
    k = int(rng.integers(3, 8))
    labels = list(itertools.accumulate(fractions(rng, k, 64)))
    weights = [
        w * Fraction(1, 10 ** int(e)) for w, e in zip(fractions(rng, k, 32), rng.choice([0, 1, 9, 30], k), strict=True)
    ]
    prior, gain = [w / sum(weights) for w in weights], Fraction(int(rng.integers(1, 400)), 8)
    costs = {
        (a, b): exact_cost(labels, prior, gain, a, b, absolute=absolute) for a in range(k) for b in range(a + 1, k + 1)
    }
    for a, b, c, d in itertools.combinations(range(k + 1), 4):
        assert costs[a, c] + costs[b, d] <= costs[a, d] + costs[b, c]


def test_plain_costs_are_not_monge():
    """A light label 2 between 0 and the heavy 9: the bin of 2 alone would rather answer near 9."""
    labels, prior, gain = [Fraction(y) for y in (0, 1, 2, 9)], [Fraction(n, 100) for n in (1, 1, 1, 97)], Fraction(1)

    def excess(free: bool) -> Fraction:
        cost = {nodes: exact_cost(labels, prior, gain, *nodes, free=free) for nodes in ((0, 2), (1, 3), (0, 3), (1, 2))}
        return cost[0, 2] + cost[1, 3] - cost[0, 3] - cost[1, 2]

    assert excess(free=True) > 0
    assert excess(free=False) <= 0


@pytest.mark.parametrize("trial", range(6))
def test_shortest_distances_over_monge_lengths(trial):
    """Any offers: distances are those of the plain recursion."""
    rng = np.random.default_rng([78, trial])
    k = int(rng.integers(1, 400))
    places = np.cumsum(rng.random(k + 1) ** 3)
    rent = 10.0 ** rng.uniform(-2, 3)

    def lengths(i, j):
        return (places[j] - places[i]) ** 2 + rent

    offers = np.full(k + 1, np.inf) if trial % 2 else 100 * rent * rng.random(k + 1)
    offers[0] = 0.0
    expected = offers.copy()
    for j in range(1, k + 1):
        expected[j] = min(offers[j], (expected[:j] + lengths(np.arange(j), j)).min())
    assert shortest_distances(lengths, offers) == pytest.approx(expected, rel=1e-12)
    known = expected[: k // 2 + 1]
    table = known + lengths(np.arange(k // 2 + 1), np.arange(k // 2 + 1, k + 1)[:, np.newaxis])
    distances = np.append(known, np.full(k - k // 2, np.inf))
    assert best_steps(lengths, distances, 0, known.size, k + 1) == pytest.approx(table.min(axis=1), rel=1e-14)


@pytest.mark.parametrize("trial", range(3))
def test_sums_over_runs_of_labels_keep_their_digits(trial):
    """Next to a sum of 1 a float has 16 of them, of which labels of 1e-16 would leave none."""
    rng = np.random.default_rng([79, trial])
    k = int(rng.integers(2, 40))
    labels, weights = np.cumsum(10.0 ** rng.integers(-3, 3, k)), 10.0 ** rng.integers(-16, 1, k)
    # At an epsilon of 600 labels outside of a bin weigh 1e-261.
    bins = Bins.of(regression(labels, weights / weights.sum(), 600.0))
    first, last = np.triu_indices(k)
    for a, b, *found in zip(first.tolist(), last.tolist(), *bins.weigh(first, last + 1), strict=True):
        prior = [Fraction(float(p)) for p in bins.prior[a : b + 1]]
        apart = [Fraction(float(y)) - Fraction(float(bins.center)) for y in labels[a : b + 1]]
        for power, sum_ in enumerate(found):
            terms = [p * y**power for p, y in zip(prior, apart, strict=True)]
            size = float(sum(map(abs, terms)))
            assert float(sum_) == pytest.approx(float(sum(terms)), abs=1e-14 * size + 1e-200)


@pytest.mark.parametrize("trial", range(3))
@by_loss
def test_potentials_hold_on_every_arc(loss, trial):
    """Those below and above some numbers, which lie between the extremes."""
    bins = bins_of(random_problem(21, trial, loss, largest=30))
    best, _ = best_partition(bins)
    k = bins.problem.k
    lengths = np.full((k, k + 1), math.inf)
    first, last = np.triu_indices(k)
    lengths[first, last + 1] = best.lengths(first, last + 1)
    unit = float(np.abs(lengths[np.isfinite(lengths)]).max())
    unbounded = np.full(k, math.inf)
    most = shortest_distances(best.lengths, np.append(0.0, unbounded))
    least = potentials_above(best.lengths, np.append(-unbounded, most[-1]))
    assert [most[-1], least[0]] == pytest.approx([best.value, 0.0], abs=1e-12 * unit)
    noise = 0.01 * unit * np.random.default_rng(trial).standard_normal(k + 1)
    near = np.clip(np.linspace(0, most[-1], k + 1) + noise, least, most)
    below, above = shortest_distances(best.lengths, near), potentials_above(best.lengths, near)
    assert (below <= near).all()
    assert (near <= above).all()
    nodes = np.append(best.starts, k)
    for found in (below, above):
        assert (least - 1e-13 * unit <= found).all()
        assert (found <= most + 1e-13 * unit).all()
        assert (found - found[:k, np.newaxis] <= lengths + 1e-13 * unit)[np.isfinite(lengths)].all()
        assert np.diff(found[nodes]) == pytest.approx(lengths[nodes[:-1], nodes[1:]], abs=1e-12 * unit)


def test_bins_of_one_output_are_one_bin():
    """On an interval that clips them both, the two lower bins have one output. Merging them saves a column."""
    problem = regression([0, 1, 20, 21], [0.25] * 4, 4.0, outputs=Interval(10.0, 30.0))
    bins = Bins.of(problem)
    assert Partition(bins, np.array([0, 2, 3])).value < Partition(bins, np.array([0, 1, 2, 3])).value
    best, _ = best_partition(bins)
    assert (np.diff(best.outputs) > 0).all()


@by_loss
def test_multipliers_sum_to_the_loss_and_lie_between_their_bounds(loss):
    bins = bins_of(random_problem(41, 4, loss, largest=40))
    best, _ = best_partition(bins)
    starts, alpha = best.starts, bin_dual(best)
    problem, outputs = bins.problem, best.outputs
    assert math.fsum(alpha) == pytest.approx(best.value, rel=1e-11)
    table = problem.prior[:, np.newaxis] * problem.loss_table(outputs)
    own = np.repeat(np.arange(starts.size), np.diff(np.append(starts, problem.k)))
    slack = 1e-9 * np.abs(table).max()
    assert (alpha >= table[np.arange(problem.k), own] - slack).all()
    if starts.size > 1:
        others = np.where(np.arange(starts.size) == own[:, np.newaxis], math.inf, table)
        assert (alpha <= others.min(axis=1) + slack).all()


@pytest.mark.parametrize("epsilon", [300.0, 700.0])
def test_a_large_epsilon_times_large_labels_does_not_overflow(epsilon):
    """With a mean of NaN the search for a path did not end at 700, and the proof failed at 300."""
    prior = [0.02, 0.01, 0.23, 0.45 - 1e-5, 0.06, 1e-5, 0.19, 0.035, 0.005]
    proof = rr_on_bins(np.array([6, 43, 56, 71, 72, 81, 119, 129, 195]) * 1e12, prior, epsilon).certificate
    assert proof.findings == ()
    assert 0 < proof.lower <= proof.upper
    assert proof.gap < 1e-12
