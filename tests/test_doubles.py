"""Bounds in compiled doubles: never above the exact bound of the same multipliers, nor below the exact loss."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand.certificates import doubles, quick
from optrand.certificates.doubles import bound_below, loss_above
from optrand.certificates.exact import lower_bound
from optrand.certificates.extended import excess_above
from optrand.model.arcs import Arcs
from optrand.model.outputs import Interval
from tests.test_quick import problem_of


@pytest.fixture(autouse=True)
def _as_compiled():
    """Without numba the loops are numpy's, which warns of divisions by zero."""
    with np.errstate(all="ignore"):
        yield


def asked(problem):
    """Numbers of a problem."""
    ends = problem.outputs.low, problem.outputs.high
    excess = float(excess_above(problem.epsilon))
    return doubles.Asked(problem.labels, problem.prior, excess, problem.bias_penalty, *ends)


def bound_of(problem, dual):
    return bound_below(asked(problem), dual.alpha, dual.beta, dual.origin)


def loss_of(problem, arcs):
    return loss_above(asked(problem), arcs.first, arcs.last, arcs.outputs, arcs.masses, quick.CLOSE)[0]


def exact_loss(problem, arcs):
    """By the definition, in rationals, with the same ratio of probabilities."""
    ratio, loss = 1 + Fraction(asked(problem).excess), Fraction(0)
    for y, (label, weight) in enumerate(zip(problem.labels, problem.prior, strict=True)):
        favoured = (arcs.first <= y) & (y <= arcs.last)
        masses = [Fraction(c) * (ratio if f else 1) for c, f in zip(arcs.masses, favoured, strict=True)]
        apart = [Fraction(v) - Fraction(label) for v in arcs.outputs]
        expected = sum(m * d * d for m, d in zip(masses, apart, strict=True))
        if not problem.unbiased:
            bias = sum(m * d for m, d in zip(masses, apart, strict=True))
            expected += Fraction(problem.bias_penalty) * bias * bias
        loss += Fraction(weight) * expected / 2
    return loss


@pytest.mark.parametrize("penalty", [np.inf, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(25))
def test_never_above_the_exact_bound(seed, penalty):
    rng = np.random.default_rng([seed, 21])
    problem = problem_of(rng, penalty)
    best = optrand.solve(problem).dual
    for noise in (0.0, 1e-12, 1e-3, 1.0):
        shares = noise * rng.normal(size=problem.k)
        dual = optrand.Dual(best.alpha * (1 + shares), best.beta * (1 + shares[::-1]), best.origin)
        bound = bound_of(problem, dual)
        assert bound == -np.inf or Fraction(bound) <= lower_bound(problem, dual)


@pytest.mark.parametrize("penalty", [np.inf, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_never_below_the_exact_loss(seed, penalty):
    problem = problem_of(np.random.default_rng([seed, 22]), penalty)
    arcs = optrand.solve(problem).randomizer.arcs
    loss = loss_of(problem, arcs)
    if loss < np.inf:
        # Rows are off by rounding, and so by 1e-12 of a label's loss at most.
        assert Fraction(loss) >= exact_loss(problem, arcs)
    elif not arcs.rests.any():
        assert problem.epsilon > 3 or problem.prior.min() < 1e-8


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("k", [2, 11, 53, 301])
def test_proves_ordinary_problems(k, epsilon):
    prior = np.random.default_rng(k).dirichlet(np.ones(k)) + 0.1 / k
    solution = optrand.solve(optrand.unbiased_regression(np.arange(k), prior / prior.sum(), epsilon))
    loss = loss_of(solution.problem, solution.randomizer.arcs)
    assert 0 <= loss - solution.value <= 1e-11 * loss
    exact = float(lower_bound(solution.problem, solution.dual))
    assert 0 <= exact - bound_of(solution.problem, solution.dual) <= 1e-10 * exact


def test_holds_with_outputs_in_an_interval():
    for seed in range(10):
        problem = problem_of(np.random.default_rng([seed, 23]), 10.0, "plain")
        low, high = problem.labels[0], problem.labels[-1]
        inside = replace(problem, outputs=Interval(low + 0.1 * (high - low), high))
        solution = optrand.solve(problem)
        assert Fraction(bound_of(inside, solution.dual)) <= lower_bound(inside, solution.dual)
        outputs = solution.randomizer.outputs
        beyond = outputs[0] < inside.outputs.low or outputs[-1] > inside.outputs.high
        assert (loss_of(inside, solution.randomizer.arcs) == np.inf) == beyond


@pytest.mark.parametrize("off", [1e-9, 1e-2, -1e-2, 3.0])
def test_rests_on_no_root(monkeypatch, off):
    """With all roots wrong by some share the bound is worse, and still one."""

    class Wrong:
        copysign = staticmethod(lambda x, y: (-x if y < 0 else x) * (1 + off))

    problem = problem_of(np.random.default_rng(4), kind="plain")
    dual = optrand.solve(problem).dual
    good = bound_of(problem, dual)
    monkeypatch.setattr(doubles, "math", Wrong)
    monkeypatch.setattr(doubles, "_signs", getattr(doubles._signs, "py_func", doubles._signs))
    interpreted = getattr(bound_below, "py_func", bound_below)
    wrong = interpreted(asked(problem), dual.alpha, dual.beta, dual.origin)
    assert wrong < good
    assert Fraction(wrong) <= lower_bound(problem, dual)


def test_answers_that_are_off_have_no_loss():
    problem = optrand.unbiased_regression(np.arange(20), np.arange(1.0, 21) / 210, 2.0)
    arcs = optrand.solve(problem).randomizer.arcs
    assert loss_of(problem, arcs) < np.inf
    for masses, outputs in (
        (arcs.masses * (1 + 1e-9 * np.arange(arcs.n)), arcs.outputs),
        (arcs.masses, arcs.outputs + 1e-9),
        (np.where(np.arange(arcs.n) == 3, -arcs.masses, arcs.masses), arcs.outputs),
        (np.where(np.arange(arcs.n) == 3, np.nan, arcs.masses), arcs.outputs),
    ):
        assert loss_of(problem, Arcs(arcs.k, arcs.first, arcs.last, outputs, masses)) == np.inf


def test_numbers_whose_products_may_underflow_or_overflow_prove_nothing():
    labels, nothing = np.array([0.0, 1.0, 2.0]), np.zeros(3)
    faint = optrand.unbiased_regression(labels, [0.5, 0.5 - 1e-40, 1e-40], 1.0)
    assert bound_of(faint, optrand.Dual(nothing, nothing)) == -np.inf
    far = optrand.unbiased_regression(labels * 1e40, [0.5, 0.3, 0.2], 1.0)
    assert bound_of(far, optrand.Dual(nothing, nothing)) == -np.inf
    large = optrand.unbiased_regression(labels, [0.5, 0.3, 0.2], 1.0)
    assert bound_of(large, optrand.Dual(nothing, np.array([1e40, 0, 0]))) == -np.inf
    assert bound_of(large, optrand.Dual(nothing, nothing)) > -np.inf
    biased = optrand.regression(labels, [0.5, 0.5, 0], 1.0, bias_penalty=1.0)
    assert not bound_of(biased, optrand.Dual(nothing, np.array([0, 0, 0.1]))) > -np.inf


def test_sums_carry_what_they_lose():
    total, lost = 0.0, 0.0
    for term in (1e16, 1.0, 1e-3, -1e16):
        total, lost = doubles._added(total, lost, term)
    assert total + lost == 1.001


def test_are_asked_first_where_kernels_are_loaded(monkeypatch):
    problem = optrand.unbiased_regression(np.arange(30), np.arange(1.0, 31) / 465, 1.0)
    solution = optrand.solve(problem)
    proof = optrand.certify(solution)
    calls = []
    monkeypatch.setattr(quick, "_bound", lambda *given: calls.append(given) or float(proof.lower))
    for compiled, expected in ((True, 0), (False, 1)):
        monkeypatch.setattr(sys.modules["optrand.base.compiled"], "COMPILED", compiled)
        fresh = replace(solution, dual=optrand.Dual(solution.dual.alpha, solution.dual.beta))
        calls.clear()
        assert proof.gap - 1e-13 <= quick.quick_gap(fresh) <= quick.SMALL
        assert len(calls) == expected
