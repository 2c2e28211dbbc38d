"""Multipliers found again from the randomizer: they certify against all sets of labels, and never get worse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optrand import Dual, Interval, certify, losses, regression, unbiased_regression
from optrand.certificates._bound import lower_bound
from optrand.errors import InvalidInput
from optrand.mechanism._tabulation import tabulate
from optrand.model._randomizer import Staircase, decompose
from optrand.solvers import ColumnGeneration, ReducedDual, design, solve
from optrand.solvers._dual_repair import randomizer_of, repair
from optrand.solvers.reduced_dual._solver import OUT_OF_TIME


def priced(seed, k=40, penalty=3.0, **options):
    """A rough prior and a finite price of bias, where the arcs in use leave the multipliers open."""
    prior = np.random.default_rng(seed).dirichlet(np.full(k, 0.5)) + 1e-4
    return regression(np.arange(float(k)), prior / prior.sum(), 1.0, bias_penalty=penalty, **options)


def free(seed, k=30):
    """No care for bias on a grid, where the columns in use leave the multipliers open."""
    prior = np.random.default_rng(seed).dirichlet(np.full(k, 0.5)) + 1e-4
    return regression(np.arange(float(k)), prior / prior.sum(), 1.0, bias_penalty=0, outputs=np.linspace(0, k, 40))


def answer_of(problem):
    """Optimal columns."""
    return decompose(ColumnGeneration()(problem).randomizer, math.exp(problem.epsilon), negligible=1e-12)


def relative_gap(problem, columns, dual):
    """Gap between the value of columns and the bound of multipliers, as a share of the value."""
    value = problem.value(randomizer_of(problem, columns))
    return (value - lower_bound(problem, dual)) / value


@pytest.mark.parametrize("seed", range(2))
def test_an_optimal_randomizer_is_enough_to_find_multipliers_that_prove_it(seed):
    problem = free(seed)
    columns = answer_of(problem)
    nothing = Dual(np.zeros(problem.k), np.zeros(problem.k))
    assert relative_gap(problem, columns, nothing) > 0.1
    found = repair(problem, columns, nothing, gap=1e-10)
    assert relative_gap(problem, columns, found) <= 1e-10
    assert (found.alpha == repair(problem, columns, found, gap=1e-10).alpha).all()


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute], ids=["squared", "absolute"])
def test_at_a_price_of_bias_the_biases_give_one_kind_of_multipliers_and_the_columns_the_other(loss):
    problem = priced(4, k=20, loss=loss, outputs=np.linspace(-3.0, 22.0, 40))
    columns = answer_of(problem)
    nothing = Dual(np.zeros(problem.k), np.zeros(problem.k))
    found = repair(problem, columns, nothing, gap=1e-9)
    assert relative_gap(problem, columns, found) <= 1e-9
    biases = randomizer_of(problem, columns).biases
    assert found.beta == pytest.approx(-3.0 * problem.prior * biases, abs=1e-12)


def test_a_randomizer_that_is_not_optimal_gets_no_proof_and_nothing_is_lost():
    problem = free(0)
    dual, columns, other = ColumnGeneration()(problem).dual, answer_of(problem), answer_of(free(1))
    found = repair(problem, other, dual, gap=1e-10, rounds=4)
    assert lower_bound(problem, found) >= lower_bound(problem, dual)
    assert relative_gap(problem, other, found) > 1e-6
    assert relative_gap(problem, columns, found) > -1e-12


def test_what_is_no_randomizer_leaves_the_multipliers():
    problem = free(2, k=9)
    nothing = Staircase(np.eye(9, dtype=bool), np.arange(9.0), np.full(9, 1e-30))
    dual = Dual(np.zeros(9), np.zeros(9))
    assert repair(problem, nothing, dual, gap=1e-10) is dual


@pytest.mark.parametrize(
    "problem",
    [priced(3), priced(3, outputs=Interval(10.0, 20.0)), priced(3, penalty=math.inf)],
    ids=["priced", "boxed", "unbiased"],
)
def test_out_of_time_the_answer_is_private_and_says_how_far_it_is_proven(problem):
    early = design(problem, ReducedDual(time_limit=0.0))
    assert early.stats.status == OUT_OF_TIME == "time limit"
    proof = certify(tabulate(early))
    assert proof.findings == ()
    best = certify(solve(problem))
    assert proof.lower <= best.upper
    assert proof.upper >= best.lower * (1 - 1e-9)
    assert math.isfinite(proof.gap)


def test_labels_that_floats_cannot_tell_apart_are_refused_by_their_positions():
    with pytest.raises(InvalidInput, match=r"labels number 1 and 2 .* 1e-14 of the labels' range .* merge them"):
        solve(unbiased_regression([0.0, 0.5, 0.5 + 1e-14, 1.0], [0.25] * 4, 2.0))
    close = unbiased_regression([0.0, 0.5, 0.5 + 1e-12, 1.0], [0.25] * 4, 1.0)
    apart = unbiased_regression([0.0, 0.5, 1.0], [0.25, 0.5, 0.25], 1.0)
    assert certify(solve(close)).upper == pytest.approx(certify(solve(apart)).upper, rel=1e-9)
