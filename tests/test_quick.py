"""The bound in floats is never above the exact one of the same multipliers, and hardly below it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand.certificates import quick, quick_convex
from optrand.certificates.exact import lower_bound
from optrand.certificates.quick import quick_bound, quick_gap
from optrand.model.arcs import Arcs
from optrand.model.outputs import Interval

EPSILONS = [0.05, 0.5, 1.0, 3.0, 6.0, 10.0]


def problem_of(rng, penalty=np.inf, kind=None):
    """A random problem: spread or clustered labels, spiked, thin-tailed or partly zero priors."""
    k = int(rng.integers(2, 40))
    labels = np.sort(rng.choice(900, k, replace=False)) * float(rng.choice([1e-3, 1.0, 1e5]))
    prior = rng.dirichlet(np.full(k, rng.uniform(0.1, 2))) + 1e-15
    kind = kind or rng.choice(["plain", "zeros", "tails"])
    if kind == "zeros":
        prior[rng.random(k) < 0.3] = 0
        prior[0] += 0.1
    elif kind == "tails":
        prior *= 10.0 ** -rng.uniform(0, 30, k)
    return optrand.regression(labels, prior / prior.sum(), float(rng.choice(EPSILONS)), bias_penalty=penalty)


@pytest.mark.parametrize("penalty", [np.inf, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(25))
def test_never_above_the_exact_bound(seed, penalty):
    rng = np.random.default_rng([seed, 1])
    problem = problem_of(rng, penalty)
    best = optrand.solve(problem).dual
    noise = [np.zeros(problem.k), 1e-9, 1e-3, 1.0][seed % 4] * rng.normal(size=problem.k)
    dual = optrand.Dual(best.alpha * (1 + noise), best.beta * (1 + noise[::-1]), best.origin)
    assert Fraction(quick_bound(problem, dual)) <= lower_bound(problem, dual)


@pytest.mark.parametrize("seed", range(40))
def test_hardly_below_it_for_good_multipliers(seed):
    problem = problem_of(np.random.default_rng([seed, 2]))
    solution = optrand.solve(replace(problem, epsilon=min(problem.epsilon, 6.0)))
    exact = lower_bound(solution.problem, solution.dual)
    assert exact - Fraction(quick_bound(solution.problem, solution.dual)) <= Fraction(1, 10**10) * Fraction(
        solution.value
    )


@pytest.mark.parametrize("seed", range(10))
def test_holds_with_outputs_in_an_interval(seed):
    problem = problem_of(np.random.default_rng([seed, 3]), 10.0, "plain")
    low, high = problem.labels[0], problem.labels[-1]
    inside = replace(problem, outputs=Interval(low + 0.1 * (high - low), high))
    dual = optrand.solve(problem).dual
    narrow, wide = quick_bound(inside, dual), quick_bound(problem, dual)
    assert Fraction(narrow) <= lower_bound(inside, dual)
    assert narrow >= wide - 1e-9 * abs(wide)


@pytest.mark.parametrize("off", [1e-9, 1e-2, -1e-2, 3.0])
def test_rests_on_no_root(monkeypatch, off):
    """With all roots wrong by some share the bound is worse, and still one."""
    right = np.copysign
    problem = problem_of(np.random.default_rng(4), kind="plain")
    dual = optrand.solve(problem).dual
    good = quick_bound(problem, dual)
    monkeypatch.setattr(quick.np, "copysign", lambda x, y: right(x, y) * np.longdouble(1 + off))
    wrong = quick_bound(problem, optrand.Dual(dual.alpha, dual.beta, dual.origin))
    assert wrong < good
    assert Fraction(wrong) <= lower_bound(problem, dual)


def test_labels_of_prior_zero_may_have_multipliers():
    problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0.5, 0], 1.0)
    dual = optrand.solve(problem).dual
    assert dual.beta[0] != 0 != dual.beta[-1]
    assert float(lower_bound(problem, dual)) - quick_bound(problem, dual) < 1e-12


def test_proves_nothing_elsewhere():
    labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    nothing = optrand.Dual(np.zeros(3), np.zeros(3))
    for problem in (
        optrand.regression(labels, prior, 1.0, loss=optrand.losses.absolute, outputs=[0, 1]),
        optrand.regression(labels, prior, 1.0, outputs=[0, 1]),
        optrand.regression(labels, prior, 1.0, loss=optrand.losses.Tabulated(np.eye(3)), outputs=labels),
    ):
        assert quick_bound(problem, nothing) == -np.inf
    biased = optrand.regression(labels, [0.5, 0.5, 0], 1.0, bias_penalty=1.0)
    assert quick_bound(biased, optrand.Dual(np.zeros(3), [0.0, 0.0, 0.1])) == -np.inf
    free = optrand.regression(labels, prior, 1.0, loss=optrand.losses.poisson_log)
    assert quick_bound(free, optrand.Dual(np.zeros(3), [0.0, 0.0, 0.1])) == -np.inf
    many = optrand.regression(range(1_100), np.full(1_100, 1 / 1_100), 1.0, loss=optrand.losses.absolute)
    assert quick_bound(many, optrand.Dual(np.zeros(1_100), np.zeros(1_100))) == -np.inf


def test_gap_of_a_solution_that_is_off_is_infinite():
    problem = optrand.unbiased_regression(np.arange(20), np.arange(1.0, 21) / 210, 2.0)
    solution = optrand.solve(problem)
    assert quick_gap(solution) < 1e-11
    assert abs(quick_gap(solution) - optrand.certify(solution).gap) < 1e-11
    arcs = solution.randomizer.arcs
    for masses, outputs in (
        (arcs.masses * (1 + 1e-9 * np.arange(arcs.n)), arcs.outputs),
        (arcs.masses, arcs.outputs + 1e-9),
        (np.where(np.arange(arcs.n) == 3, -arcs.masses, arcs.masses), arcs.outputs),
    ):
        wrong = optrand.Randomizer.of_arcs(problem.labels, Arcs(arcs.k, arcs.first, arcs.last, outputs, masses), 2.0)
        assert quick_gap(replace(solution, randomizer=wrong)) == np.inf
    assert quick_gap(replace(solution, dual=None)) == np.inf


# ------------------------------------------------------------------------------------- bias is free, and classification

FREE = ["squared", "absolute", "poisson_log", "classes"]


def free_problem_of(rng, kind, spread=None):
    """A random problem in which bias is free."""
    given = problem_of(rng, 0.0, spread)
    epsilon = min(given.epsilon, 6.0)
    if kind == "classes":
        return optrand.classification(given.prior, epsilon)
    labels = given.labels + float(rng.choice([0.0, 1e-3, 10.0]))
    low, high = labels[0], labels[-1]
    inside = Interval(low + 0.2 * (high - low), high - 0.1 * (high - low)) if rng.random() < 0.4 else None
    return optrand.regression(labels, given.prior, epsilon, loss=getattr(optrand.losses, kind), outputs=inside)


@pytest.mark.parametrize("kind", FREE)
@pytest.mark.parametrize("seed", range(40))
def test_free_bounds_are_never_above_the_exact_ones(seed, kind):
    rng = np.random.default_rng([seed, 5])
    problem = free_problem_of(rng, kind)
    best = optrand.solve(problem).dual
    for noise in (0.0, 1e-12, 1e-3, 3.0):
        alpha = best.alpha * (1 + noise * rng.normal(size=problem.k)) + noise * rng.normal() * best.alpha.mean()
        dual = optrand.Dual(alpha, best.beta, best.origin)
        assert Fraction(quick_bound(problem, dual)) <= lower_bound(problem, dual)


@pytest.mark.parametrize("kind", FREE)
@pytest.mark.parametrize("seed", range(20))
def test_free_gaps_are_about_those_of_the_certificate(seed, kind):
    solution = optrand.solve(free_problem_of(np.random.default_rng([seed, 6]), kind, "plain"))
    assert abs(quick_gap(solution) - optrand.certify(solution).gap) <= 1e-12


@pytest.mark.parametrize("off", [1e-9, 1e-2, -1e-2, 3.0, np.nan])
def test_poisson_bounds_rest_on_no_root(monkeypatch, off):
    right = quick_convex.negative_ranges
    prior = np.random.default_rng(7).dirichlet(np.ones(12))
    problem = optrand.regression(range(1, 13), prior, 1.0, loss=optrand.losses.poisson_log)
    dual = optrand.solve(problem).dual
    good = quick_bound(problem, dual)
    wrong_range = lambda *given: tuple(root * (1 + off) for root in right(*given))  # noqa: E731
    monkeypatch.setattr(quick_convex, "negative_ranges", wrong_range)
    wrong = quick_bound(problem, optrand.Dual(dual.alpha, dual.beta))
    assert wrong < good
    assert Fraction(wrong) <= lower_bound(problem, dual)


@pytest.mark.parametrize("kind", ["squared", "absolute", "poisson_log"])
def test_gaps_of_bins_that_are_off_are_infinite(kind):
    loss = getattr(optrand.losses, kind)
    problem = optrand.regression(range(1, 21), np.arange(1.0, 21) / 210, 1.0, loss=loss)
    solution = optrand.solve(problem)
    arcs = solution.randomizer.arcs
    assert quick_gap(solution) < 1e-12
    for first, last, masses in (
        (arcs.first, arcs.last, arcs.masses * (1 + 1e-9)),
        (arcs.first, np.maximum(arcs.first, arcs.last - 1), arcs.masses),
        (np.minimum(arcs.last, arcs.first + 1), arcs.last, arcs.masses),
        (arcs.first, arcs.last, np.where(np.arange(arcs.n) == 1, -arcs.masses, arcs.masses)),
    ):
        wrong = optrand.Randomizer.of_arcs(problem.labels, Arcs(20, first, last, arcs.outputs, masses), 1.0)
        assert quick_gap(replace(solution, randomizer=wrong)) == np.inf
    narrow = replace(problem, outputs=Interval(arcs.outputs[0] + 1e-9, 21.0))
    assert quick_gap(replace(solution, problem=narrow)) == np.inf
    moved = optrand.Randomizer.of_arcs(
        problem.labels, Arcs(20, arcs.first, arcs.last, arcs.outputs + 0.5, arcs.masses), 1.0
    )
    worse = replace(solution, randomizer=moved)
    assert quick_gap(worse) == pytest.approx(optrand.certify(worse).gap, rel=1e-9)
    assert quick_gap(worse) > 1e-4
    table = optrand.Randomizer(problem.labels, solution.randomizer.outputs, solution.randomizer.matrix, 1.0)
    assert quick_gap(replace(solution, randomizer=table)) == np.inf


def test_gaps_of_tables_that_are_off_are_infinite():
    solution = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
    given = solution.randomizer
    assert quick_gap(solution) < 1e-12
    stretched = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]])
    for table, outputs in (
        (given.matrix * (1 + 1e-9), given.outputs),
        (stretched, given.outputs),
        (np.array([[1.0, 0.0]] * 3) - [[1e-13, -1e-13]] * np.eye(3)[:, :1], given.outputs),
        (given.matrix, [0.0, 1.5]),
    ):
        wrong = optrand.Randomizer(given.labels, outputs, table, 1.0)
        assert quick_gap(replace(solution, randomizer=wrong)) == np.inf
    turned = optrand.Randomizer(given.labels, given.outputs, given.matrix[:, ::-1], 1.0)
    assert quick_gap(replace(solution, randomizer=turned)) > 0.1


def test_an_output_that_is_no_class_counts():
    """With every prior at its own label the last value of the grid, which is no label, has the cheapest column."""
    problem = optrand.regression([0, 1], [0.5, 0.5], 1.0, loss=optrand.losses.zero_one, outputs=[0, 1, 2])
    dual = optrand.Dual([1.0, 1.0], [0.0, 0.0])
    exact = lower_bound(problem, dual)
    assert 0 <= exact - Fraction(quick_bound(problem, dual)) < 1e-12
    own = replace(problem, outputs=optrand.Grid([2.0]))
    alone = lower_bound(own, dual)
    assert 0 <= alone - Fraction(quick_bound(own, dual)) < 1e-12
    assert alone > exact


@pytest.mark.parametrize("penalty", [0.3, 30.0, np.inf])
def test_gaps_at_a_price_of_bias_and_in_an_interval_are_those_of_the_certificate(penalty):
    labels, prior = np.arange(9.0), np.arange(1.0, 10.0) / 45
    low, high = optrand.unbiased_range(labels, 1.0)
    box = optrand.Interval(low - 1, high + 1)
    solution = optrand.solve(optrand.regression(labels, prior, 1.0, bias_penalty=penalty, outputs=box))
    assert abs(quick_gap(solution) - optrand.certify(solution).gap) < 1e-11
    worse = replace(solution, dual=optrand.Dual(solution.dual.alpha - 0.01, solution.dual.beta))
    assert quick_gap(worse) == pytest.approx(optrand.certify(worse).gap, rel=1e-9)
    outputs = solution.randomizer.outputs
    narrow = replace(solution.problem, outputs=optrand.Interval(low - 1, float(outputs.max()) - 1e-9))
    assert quick_gap(replace(solution, problem=narrow)) == np.inf
