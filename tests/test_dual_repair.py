"""Multipliers found again from the randomizer: they certify against all sets of labels, and never get worse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optrand import Dual, Interval, certify, regression, unbiased_regression
from optrand.certificates.certificate import lower_bound
from optrand.errors import InvalidInput
from optrand.mechanism.tabulation import tabulate
from optrand.model.staircase import Staircase
from optrand.solvers import ReducedDual, design, solve
from optrand.solvers.cones import solve_cones
from optrand.solvers.dual_repair import relative_gap, repair
from optrand.solvers.optimality import candidates
from optrand.solvers.reduced_dual.solver import OUT_OF_TIME


def priced(seed, k=40, penalty=3.0, **options):
    """A rough prior and a finite price of bias, where the arcs in use leave the multipliers open."""
    prior = np.random.default_rng(seed).dirichlet(np.full(k, 0.5)) + 1e-4
    return regression(np.arange(float(k)), prior / prior.sum(), 1.0, bias_penalty=penalty, **options)


def answer_of(problem):
    """Optimal arcs, and the multipliers that the cone program has."""
    solution = next(candidates(*solve_cones(problem)))
    return solution.randomizer.arcs, solution.dual


@pytest.mark.parametrize("outputs", [None, Interval(5.0, 30.0)], ids=["line", "interval"])
@pytest.mark.parametrize("seed", range(2))
def test_an_optimal_randomizer_is_enough_to_find_multipliers_that_prove_it(seed, outputs):
    problem = priced(seed, outputs=outputs)
    arcs = answer_of(problem)[0]
    nothing = Dual(np.zeros(problem.k), np.zeros(problem.k))
    assert relative_gap(problem, arcs, nothing) > 0.1
    found = repair(problem, arcs, nothing, gap=1e-10)
    assert relative_gap(problem, arcs, found) <= 1e-10
    assert (found.beta == repair(problem, arcs, found, gap=1e-10).beta).all()


def test_a_randomizer_that_is_not_optimal_gets_no_proof_and_nothing_is_lost():
    problem = priced(0)
    arcs, dual = answer_of(problem)
    other = answer_of(priced(1))[0]
    found = repair(problem, other, dual, gap=1e-10, rounds=4)
    assert lower_bound(problem, found) >= lower_bound(problem, dual)
    assert relative_gap(problem, other, found) > 1e-6
    assert relative_gap(problem, arcs, found) > -1e-12


def test_what_is_no_randomizer_leaves_the_multipliers():
    # Hardly any mass at outputs far away: what an engine in floats made of labels 0 to 3, prior 0, 0.2, 0.3, 0.5 and
    # epsilon 24.
    problem = priced(2, k=9)
    nothing = Staircase(np.eye(9, dtype=bool), 1e20 * np.arange(9.0), np.full(9, 1e-30))
    dual = Dual(np.zeros(9), np.zeros(9))
    assert relative_gap(problem, nothing, dual) > 0.1
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
