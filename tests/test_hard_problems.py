"""Problems that once broke a solver or a certificate: solved and proven, or refused, and never claimed falsely."""

import math

import numpy as np
import pytest

from optrand import Dual, certify, feasible_output_set, regression, solve, unbiased_regression
from optrand.certificates._bound import lower_bound
from optrand.errors import NotCertified
from optrand.solvers import ReducedDual
from optrand.solvers._interface import Reduction

FAINT = 4.9999999975e-10

PROBLEMS = {
    "a faint label under a price of bias": ([2, 102, 202], [0.5 - FAINT / 2, FAINT, 0.5 - FAINT / 2], 0.1, 1.0),
    "the same far from 0": ([1000, 1001, 2001], [0.5 - FAINT / 2, FAINT, 0.5 - FAINT / 2], 1.0, 100.0),
    "priors and gaps of very different sizes": (
        [100, 200, 201, 203],
        [0.5 - 5e-7, 5e-10, 5e-7 - 5e-10, 0.5],
        0.5,
        10.0,
    ),
    "two faint labels at a large epsilon": ([10, 20, 21], [1 - 1e-6 - 1e-9, 1e-9, 1e-6], 8.0, 1e4),
    "clusters at a small epsilon": (
        [1.0, 2.0, 3.0, 3.00001, 4.00001],
        [0.00025, 0.25, 0.4995, 0.00025, 0.25],
        0.0118,
        1e4,
    ),
    "unbiased, idle labels, far and close": ([1000.0, 1000.00001, 1000.00002], [0, 0, 1], 0.076, math.inf),
    "a spike at a small price of bias": (
        [0.29426658, 0.44957944, 0.45598622, 0.49873595, 0.52746737, 0.65347393, 0.95878177],
        [*[1e-12] * 5, 1 - 6e-12, 1e-12],
        0.1,
        1e-6,
    ),
    "two labels far and close": ([1000.0, 1000.00001], [0.3, 0.7], 1.0, math.inf),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_is_solved_and_proven(name):
    labels, prior, epsilon, penalty = PROBLEMS[name]
    problem = regression(labels, np.array(prior) / sum(prior), epsilon, bias_penalty=penalty)
    proof = certify(solve(problem)).require(gap=1e-6)
    assert proof.lower <= proof.upper


@pytest.mark.parametrize("epsilon", [25.0, 32.0, 40.0])
@pytest.mark.parametrize(
    ("labels", "prior"),
    [([1e6, 1e6 + 1, 1e6 + 3], [0.2, 0.5, 0.3]), ([0, 1, 2, 3], [0.5, 0, 0.5, 0]), (range(9), [0.5, *[0] * 7, 0.5])],
)
def test_where_floats_end_it_says_so(labels, prior, epsilon):
    """Outputs differ from labels by less than floats resolve, or the ends are idle: proven or refused, and quietly."""
    problem = unbiased_regression(list(labels), prior, epsilon)
    try:
        proof = certify(solve(problem))
    except NotCertified as refusal:
        proof = refusal.certificate
        assert proof is None or proof.findings or proof.gap > 0.1
    else:
        assert proof.findings == ()
        assert proof.lower <= proof.upper


def test_a_deficit_of_the_reduced_dual_costs_no_more_among_more_labels():
    """A price below zero is taken times ``k / (E + k - 1)``, and `k` grows by the labels that were left out."""
    problem = unbiased_regression(np.arange(12.0), [0.2, *[0] * 9, 0.5, 0.3], 0.05)
    reduction = Reduction(problem)
    found = ReducedDual()(reduction.apply())
    lowered = Dual(found.dual.alpha + 1e-3 * found.value, found.dual.beta)
    before = lower_bound(found.problem, lowered)
    claim = type(found)(found.problem, found.randomizer, lowered, found.stats)
    after = lower_bound(problem, reduction.invert(claim).dual)
    assert before * (1 - 1e-12) <= after < found.value


@pytest.mark.parametrize("penalty", [0.001, 1.0, 1000.0])
@pytest.mark.parametrize(("low", "high"), [(-0.3, 1.3), (-0.6, 2.6)])
def test_a_loss_of_rounding_alone_is_an_answer(low, high, penalty):
    """The grid misses the one label of any weight by 1e-16, so that the ratio of the bounds means nothing."""
    problem = regression([0, 1], [1, 0], 0.5, bias_penalty=penalty, outputs=np.linspace(low, high, 17))
    proof = certify(solve(problem))
    assert proof.findings == ()
    assert 0 < proof.upper < 1e-28


@pytest.mark.parametrize("k", [100, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_table_of_labels_that_double_is_unbiased_or_says_what_it_is(k):
    """Labels, each twice the one before, on ten values: floats do not hold the numbers of a solver."""
    labels = 2.0 ** np.arange(k)
    grid = feasible_output_set(labels, 0.001, 10)
    problem = unbiased_regression(labels, np.full(k, 1 / k), 0.001, outputs=grid)
    try:
        mechanism = solve(problem)
    except NotCertified as error:
        mechanism = error.mechanism
    assert not any(mechanism.exact_biases)
    assert certify(mechanism).findings == ()
