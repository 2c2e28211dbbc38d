"""Candidates of solvers: judged by the certificate of their exact mechanism, which is made once."""

from dataclasses import replace

import numpy as np
import pytest

import optrand
from optrand import Dual
from optrand.mechanism._tabulation import tabulate
from optrand.model._randomizer import Arcs, Randomizer
from optrand.solvers import design

PRIOR = np.arange(1.0, 21) / 210


@pytest.mark.parametrize("penalty", [0.0, 0.3, 30.0, np.inf])
def test_the_gap_is_that_of_the_certificate(penalty):
    solution = design(optrand.regression(np.arange(20), PRIOR, 2.0, bias_penalty=penalty))
    assert solution.gap == tabulate(solution).certificate.gap < 1e-11
    worse = solution.with_dual(Dual(solution.dual.alpha - 0.01, solution.dual.beta, solution.dual.origin))
    assert worse.gap == optrand.certify(worse.mechanism).gap > 1e-3
    assert worse.mechanism.table is solution.mechanism.table


def test_an_answer_that_is_off_is_mended_or_has_no_gap():
    problem = optrand.unbiased_regression(np.arange(20), PRIOR, 2.0)
    solution = design(problem)
    assert replace(solution, dual=None).gap == np.inf
    arcs = solution.randomizer.arcs
    for masses, outputs, low, high in (
        (arcs.masses * (1 + 1e-9 * np.arange(arcs.n)), arcs.outputs, 0.0, 1e-9),
        (arcs.masses, arcs.outputs + 0.5, 1e-3, 0.1),
        (arcs.masses * (1 + 1e-3 * np.arange(arcs.n)), arcs.outputs, np.inf, np.inf),
        (np.where(np.arange(arcs.n) == 3, -arcs.masses, arcs.masses), arcs.outputs, np.inf, np.inf),
    ):
        wrong = Randomizer.of_arcs(problem.labels, Arcs(arcs.k, arcs.first, arcs.last, outputs, masses), 2.0)
        assert low <= replace(solution, randomizer=wrong).gap <= high


def test_multipliers_that_do_not_fit_are_refused():
    solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    with pytest.raises(optrand.errors.InvalidInput, match="one entry per label"):
        solution.with_dual(Dual([0.0], [0.0]))


def test_other_statistics_keep_the_mechanism():
    solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    made = solution.mechanism
    renamed = solution.with_stats(solver="another")
    assert renamed.stats == replace(solution.stats, solver="another")
    assert renamed.mechanism is made
    assert "mechanism" not in vars(replace(solution, dual=None).with_stats(status="none"))


def test_gaps_are_exact_where_floats_have_no_digits():
    """At an epsilon of 30 the loss of randomized response is 1e-12, and floats would estimate it off by 1e-5."""
    rng = np.random.default_rng(5)
    problem = optrand.regression(range(9), rng.dirichlet(np.ones(9)), 30.0, bias_penalty=0.001)
    assert design(problem).gap <= 1e-9


def test_labels_of_prior_zero_may_have_multipliers():
    solution = design(optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0.5, 0], 1.0))
    assert solution.dual.beta[0] != 0 != solution.dual.beta[-1]
    assert solution.gap <= 1e-12
