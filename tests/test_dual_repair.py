"""Multipliers found again from the randomizer: they certify against all sets of labels, and never get worse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from optrand import Dual, Interval, certify, regression, tabulate, unbiased_range, unbiased_regression
from optrand.certificates.certificate import lower_bound
from optrand.errors import InvalidInput
from optrand.model.solution import Solution
from optrand.model.staircase import Staircase
from optrand.solvers import Flow, dual_repair, solve
from optrand.solvers.dual_refinement import Changes, Proven
from optrand.solvers.dual_repair import relative_gap, repair
from optrand.solvers.flow.solver import OUT_OF_TIME
from optrand.solvers.slackness import Support


def priced(seed, k=40, penalty=3.0, **options):
    """A rough prior and a finite price of bias, where the arcs in use leave the multipliers open."""
    prior = np.random.default_rng(seed).dirichlet(np.full(k, 0.5)) + 1e-4
    return regression(np.arange(float(k)), prior / prior.sum(), 1.0, bias_penalty=penalty, **options)


@pytest.mark.parametrize("outputs", [None, Interval(5.0, 30.0)], ids=["line", "interval"])
@pytest.mark.parametrize("seed", range(5))
def test_an_optimal_randomizer_is_enough_to_find_multipliers_that_prove_it(seed, outputs):
    problem = priced(seed, outputs=outputs)
    arcs, _, _, _ = Flow().arcs(problem)
    nothing = Dual(np.zeros(problem.k), np.zeros(problem.k))
    assert relative_gap(problem, arcs, nothing) > 0.1
    found = repair(problem, arcs, nothing, gap=1e-10)
    assert relative_gap(problem, arcs, found) <= 1e-10
    assert (found.beta == repair(problem, arcs, found, gap=1e-10).beta).all()


@pytest.mark.parametrize("seed", range(5))
def test_noise_in_the_outputs_costs_no_more_of_the_proof_than_of_the_loss(seed, monkeypatch):
    """The noise costs its square, but biases and slopes are off by the noise itself: they have to change."""
    problem = priced(seed)
    arcs, _, _, _ = Flow().arcs(problem)
    noise = np.random.default_rng(seed).normal(size=arcs.outputs.size)
    noisy = replace(arcs, outputs=arcs.outputs * (1 + 1e-6 * noise))
    nothing = Dual(np.zeros(problem.k), np.zeros(problem.k))
    found = repair(problem, noisy, nothing, gap=1e-10)
    assert relative_gap(problem, noisy, found) <= 1e-10
    monkeypatch.setattr(dual_repair, "refined", lambda _changes, best, *_: best.dual)
    assert relative_gap(problem, noisy, repair(problem, noisy, nothing, gap=1e-10)) > 1e-9


def test_multipliers_that_prove_nothing_are_not_changed():
    problem = priced(0, k=9)
    nothing, support = Dual(np.zeros(9), np.zeros(9)), Staircase(np.eye(9, dtype=bool), np.arange(9.0), np.full(9, 0.1))
    changes = Changes(problem, Support(problem, support), 1.0)
    assert changes.changed(Proven(nothing, -math.inf)) is None


@pytest.mark.parametrize("seed", range(3))
def test_unbiased_multipliers_are_found_with_their_slopes(seed):
    rng = np.random.default_rng(seed)
    problem = unbiased_regression(np.sort(rng.random(12)), rng.dirichlet(np.ones(12)), 1.0)
    arcs, dual, _, _ = Flow().arcs(problem)
    found = repair(problem, arcs, Dual(np.zeros(12), np.zeros(12)), gap=1e-9)
    assert relative_gap(problem, arcs, found) <= 1e-8
    assert found.beta == pytest.approx(dual.beta, rel=1e-4, abs=1e-4 * np.abs(dual.beta).max())


def test_a_randomizer_that_is_not_optimal_gets_no_proof_and_nothing_is_lost():
    problem = priced(0)
    arcs, dual, _, _ = Flow().arcs(problem)
    other, _, _, _ = Flow().arcs(priced(1))
    found = repair(problem, other, dual, gap=1e-10, rounds=4)
    assert lower_bound(problem, found) >= lower_bound(problem, dual)
    assert relative_gap(problem, other, found) > 1e-6
    assert relative_gap(problem, arcs, found) > -1e-12


@pytest.mark.parametrize("stop", [{"rounds": 0}, {"seconds": -1.0}])
def test_without_rounds_or_time_the_multipliers_stay_or_get_better(stop):
    problem = priced(2)
    arcs, dual, _, _ = Flow().arcs(problem)
    worse = Dual(dual.alpha * 0.9, dual.beta)
    assert lower_bound(problem, repair(problem, arcs, worse, gap=0.0, **stop)) >= lower_bound(problem, worse)


def test_what_is_no_randomizer_leaves_the_multipliers():
    # Hardly any mass at outputs far away: what an engine in floats made of labels 0 to 3, prior 0, 0.2, 0.3, 0.5 and
    # epsilon 24.
    problem = priced(2, k=9)
    nothing = Staircase(np.eye(9, dtype=bool), 1e20 * np.arange(9.0), np.full(9, 1e-30))
    dual = Dual(np.zeros(9), np.zeros(9))
    assert relative_gap(problem, nothing, dual) > 0.1
    assert repair(problem, nothing, dual, gap=1e-10) is dual


def test_rows_are_sums_over_columns_of_any_set_of_labels():
    problem = priced(0, k=9)
    rng = np.random.default_rng(1)
    members = rng.random((9, 30)) < 0.5
    support = Staircase(np.eye(9, dtype=bool), np.arange(9.0), np.full(9, 0.1))
    alpha = rng.normal(size=9)
    found = Support(problem, support).weighted(members) @ np.cumsum(alpha)
    assert found == pytest.approx(alpha @ np.where(members, 1.0, math.exp(-1.0)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "problem",
    [priced(3), priced(3, outputs=Interval(10.0, 20.0)), priced(3, penalty=math.inf)],
    ids=["priced", "boxed", "unbiased"],
)
def test_out_of_time_the_answer_is_private_and_says_how_far_it_is_proven(problem):
    early = solve(problem, Flow(time_limit=0.0))
    assert early.stats.status == OUT_OF_TIME == "time limit"
    proof = certify(tabulate(early))
    assert proof.findings == ()
    best = certify(solve(problem))
    assert proof.lower <= best.upper
    assert proof.upper >= best.lower * (1 - 1e-9)
    assert math.isfinite(proof.gap)


def test_unbiased_within_the_smallest_interval_out_of_time():
    labels = np.arange(10.0)
    box = Interval(*unbiased_range(labels, 0.5))
    early = solve(unbiased_regression(labels, np.full(10, 0.1), 0.5, outputs=box), Flow(time_limit=0.0))
    assert certify(early).findings == ()
    assert isinstance(early, Solution)


def test_labels_that_floats_cannot_tell_apart_are_refused_by_their_positions():
    with pytest.raises(InvalidInput, match=r"labels number 1 and 2 .* 1e-14 of the labels' range .* merge them"):
        solve(unbiased_regression([0.0, 0.5, 0.5 + 1e-14, 1.0], [0.25] * 4, 2.0))
    close = unbiased_regression([0.0, 0.5, 0.5 + 1e-12, 1.0], [0.25] * 4, 1.0)
    apart = unbiased_regression([0.0, 0.5, 1.0], [0.25, 0.5, 0.25], 1.0)
    assert certify(solve(close)).upper == pytest.approx(certify(solve(apart)).upper, rel=1e-9)
