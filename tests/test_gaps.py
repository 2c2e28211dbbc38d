"""Gaps that solvers stop at, in floats: about those of the certificate, and infinite for every answer that is off."""

from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error
from test_bounds import random_problem

import optrand
from optrand.certificates._certificate import PROVEN
from optrand.errors import NotCertified
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Interval
from optrand.model._randomizer import Arcs, Randomizer
from optrand.solvers import design
from optrand.solvers._dispatch import exact_mechanism
from optrand.solvers._gaps import decide_gap, estimated_bound, estimated_gap


@pytest.mark.parametrize("place", ["line", "interval", "grid"])
@pytest.mark.parametrize("kind", ["squared", "absolute", "poisson_log", "table", "classes"])
@pytest.mark.parametrize("seed", range(4))
def test_estimated_bounds_are_about_the_proven_ones(seed, kind, place):
    """Hold for any multipliers: the best ones, and others beside them."""
    rng = np.random.default_rng([seed, 5])
    labels, prior, epsilon = np.arange(1.0, 9), rng.dirichlet(np.ones(8)), float(rng.choice([0.1, 1.0, 4.0]))
    if kind == "classes":
        problem = optrand.classification(prior, epsilon)
    else:
        outputs = {"line": None, "interval": Interval(2.5, 7.0), "grid": np.linspace(0.5, 9, 20)}[place]
        loss = getattr(optrand.losses, kind, None)
        if kind == "table":
            loss, outputs = optrand.losses.Tabulated(rng.normal(size=(8, 20))), np.linspace(0.5, 9, 20)
        problem = optrand.regression(labels, prior, epsilon, loss=loss, outputs=outputs)
    best = design(problem).dual
    for noise in (0.0, 1e-6, 0.3):
        dual = optrand.Dual(best.alpha * (1 + noise * rng.normal(size=8)), best.beta, best.origin)
        proven = optrand.lower_bound(problem, dual)
        assert estimated_bound(problem, dual) == pytest.approx(proven, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("penalty", [0.3, 30.0, np.inf])
def test_estimated_bounds_charge_bias(penalty):
    rng = np.random.default_rng(3)
    for outputs in (None, Interval(-40, 40), np.linspace(-40, 40, 30)):
        problem = optrand.regression(
            np.arange(9.0), np.arange(1.0, 10) / 45, 1.0, bias_penalty=penalty, outputs=outputs
        )
        dual = optrand.Dual(rng.normal(size=9), problem.prior * rng.normal(size=9), 3.25)
        assert estimated_bound(problem, dual) == pytest.approx(optrand.lower_bound(problem, dual), rel=1e-12)
    charged = optrand.regression([0, 1, 2], [0.5, 0.5, 0], 1.0, bias_penalty=1.0)
    assert estimated_bound(charged, optrand.Dual(np.zeros(3), [0.0, 0.0, 0.1])) == -np.inf


def test_labels_of_prior_zero_may_have_multipliers():
    problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0.5, 0], 1.0)
    dual = design(problem).dual
    assert dual.beta[0] != 0 != dual.beta[-1]
    assert abs(optrand.lower_bound(problem, dual) - estimated_bound(problem, dual)) < 1e-12


def test_gap_of_a_solution_that_is_off_is_infinite():
    problem = optrand.unbiased_regression(np.arange(20), np.arange(1.0, 21) / 210, 2.0)
    solution = design(problem)
    assert estimated_gap(solution) < 1e-11
    assert abs(estimated_gap(solution) - tabulate(solution).certificate.gap) < 1e-11
    arcs = solution.randomizer.arcs
    for masses, outputs in (
        (arcs.masses * (1 + 1e-9 * np.arange(arcs.n)), arcs.outputs),
        (arcs.masses, arcs.outputs + 1e-9),
        (np.where(np.arange(arcs.n) == 3, -arcs.masses, arcs.masses), arcs.outputs),
    ):
        wrong = Randomizer.of_arcs(problem.labels, Arcs(arcs.k, arcs.first, arcs.last, outputs, masses), 2.0)
        assert estimated_gap(replace(solution, randomizer=wrong)) == np.inf
    assert estimated_gap(replace(solution, dual=None)) == np.inf


@pytest.mark.parametrize("kind", ["squared", "absolute", "poisson_log", "classes"])
@pytest.mark.parametrize("seed", range(6))
def test_free_gaps_are_about_those_of_the_certificate(seed, kind):
    solution = design(random_problem(np.random.default_rng([seed, 6]), kind, "plain"))
    assert abs(estimated_gap(solution) - tabulate(solution).certificate.gap) <= 1e-12


@pytest.mark.parametrize("kind", ["squared", "absolute", "poisson_log"])
def test_gaps_of_bins_that_are_off_are_infinite(kind):
    loss = getattr(optrand.losses, kind)
    problem = optrand.regression(range(1, 21), np.arange(1.0, 21) / 210, 1.0, loss=loss)
    solution = design(problem)
    arcs = solution.randomizer.arcs
    assert estimated_gap(solution) < 1e-12
    for first, last, masses in (
        (arcs.first, arcs.last, arcs.masses * (1 + 1e-9)),
        (arcs.first, np.maximum(arcs.first, arcs.last - 1), arcs.masses),
        (arcs.first, arcs.last, np.where(np.arange(arcs.n) == 1, -arcs.masses, arcs.masses)),
    ):
        wrong = Randomizer.of_arcs(problem.labels, Arcs(20, first, last, arcs.outputs, masses), 1.0)
        assert estimated_gap(replace(solution, randomizer=wrong)) == np.inf
    narrow = replace(problem, outputs=Interval(arcs.outputs[0] + 1e-9, 21.0))
    assert estimated_gap(replace(solution, problem=narrow)) == np.inf
    moved = Randomizer.of_arcs(problem.labels, Arcs(20, arcs.first, arcs.last, arcs.outputs + 0.5, arcs.masses), 1.0)
    worse = replace(solution, randomizer=moved)
    assert estimated_gap(worse) == pytest.approx(tabulate(worse).certificate.gap, rel=1e-9)
    assert estimated_gap(worse) > 1e-4


def test_gaps_of_tables_that_are_off_are_infinite():
    solution = design(optrand.classification([0.5, 0.3, 0.2], 1.0))
    given = solution.randomizer
    assert estimated_gap(solution) < 1e-12
    stretched = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]])
    for table, outputs in (
        (given.matrix * (1 + 1e-9), given.outputs),
        (stretched, given.outputs),
        (np.array([[1.0, 0.0]] * 3) - [[1e-13, -1e-13]] * np.eye(3)[:, :1], given.outputs),
        (given.matrix, [0.0, 1.5]),
    ):
        wrong = Randomizer(given.labels, outputs, table, 1.0)
        assert estimated_gap(replace(solution, randomizer=wrong)) == np.inf
    turned = Randomizer(given.labels, given.outputs, given.matrix[:, ::-1], 1.0)
    assert estimated_gap(replace(solution, randomizer=turned)) > 0.1


@pytest.mark.parametrize("penalty", [0.3, 30.0, np.inf])
def test_gaps_at_a_price_of_bias_and_in_an_interval_are_those_of_the_certificate(penalty):
    labels, prior = np.arange(9.0), np.arange(1.0, 10.0) / 45
    low, high = optrand.unbiased_range(labels, 1.0)
    box = optrand.Interval(low - 1, high + 1)
    solution = design(optrand.regression(labels, prior, 1.0, bias_penalty=penalty, outputs=box))
    assert abs(estimated_gap(solution) - tabulate(solution).certificate.gap) < 1e-11
    worse = replace(solution, dual=optrand.Dual(solution.dual.alpha - 0.01, solution.dual.beta))
    assert estimated_gap(worse) == pytest.approx(tabulate(worse).certificate.gap, rel=1e-9)
    outputs = solution.randomizer.outputs
    narrow = replace(solution.problem, outputs=optrand.Interval(low - 1, float(outputs.max()) - 1e-9))
    assert estimated_gap(replace(solution, problem=narrow)) == np.inf


def test_an_estimate_alone_decides_nothing(monkeypatch):
    """An answer whose bound floats overstate is not accepted on their word."""
    solution = design(optrand.unbiased_regression(np.arange(20), np.arange(1.0, 21) / 210, 2.0))
    assert exact_mechanism(solution).certificate.gap <= PROVEN
    far = optrand.Dual(solution.dual.alpha - solution.value, solution.dual.beta, solution.dual.origin)
    worse = replace(solution, dual=far)
    monkeypatch.setattr("optrand.solvers._gaps.estimated_bound", lambda *_: solution.value)
    assert estimated_gap(worse) <= PROVEN
    assert_error("the verified gap", exact_mechanism, worse, error=NotCertified)
    monkeypatch.setattr("optrand.solvers._gaps.estimated_bound", lambda *_: 2 * solution.value)
    assert decide_gap(worse) == tabulate(worse).certificate.gap


def test_gaps_are_decided_in_exact_arithmetic_where_floats_have_no_digits():
    """At an epsilon of 30 the loss of randomized response is 1e-12, and its estimate in floats is off by 1e-5."""
    rng = np.random.default_rng(5)
    problem = optrand.regression(range(9), rng.dirichlet(np.ones(9)), 30.0, bias_penalty=0.001)
    solution = design(problem)
    assert estimated_gap(solution) > 1e-7
    assert decide_gap(solution) == tabulate(solution).certificate.gap <= PROVEN
