"""Mistakes found in public code and in solvers' answers, as tables of floats: each must be caught by an audit."""

import math

import numpy as np
import pytest

import optrand
from optrand.closed_forms._regression import design_debiased_rr
from optrand.errors import NotCertified
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Randomizer

PRIOR = np.array([0.5, 0.2, 0.15, 0.1, 0.05])


def test_top_k_that_samples_from_all_labels_when_the_label_is_outside() -> None:
    """[G21] Algorithm 1 draws from the top k there. Drawing from all K gives outputs that top labels never produce."""
    epsilon, k = 1.0, 2
    keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    matrix = np.zeros((5, 5))
    matrix[:k, :k] = (1 - keep) / (k - 1)
    matrix[range(k), range(k)] = keep
    matrix[k:, :] = 1 / 5
    assert optrand.audit(matrix, epsilon).epsilon == math.inf
    problem = optrand.classification(PRIOR, epsilon)
    with pytest.raises(NotCertified, match="not 1-DP"):
        tabulate(Solution(problem, Randomizer(problem.labels, problem.labels, matrix, epsilon)))


def test_a_staircase_whose_selector_takes_the_values_minus_and_plus_one() -> None:
    """Columns ``1 + (E - 1) b`` with ``b`` in {-1, +1} instead of {0, 1} are not even probabilities."""
    epsilon = 0.5
    selector = np.array([[1, -1], [-1, 1]])
    columns = 1 + math.expm1(epsilon) * selector
    matrix = columns / columns.sum(axis=1, keepdims=True)
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], epsilon)
    outputs = design_debiased_rr([0, 1], epsilon).randomizer.outputs
    with pytest.raises(NotCertified, match=r"not 0\.5-DP"):
        tabulate(Solution(problem, Randomizer(problem.labels, outputs, matrix, epsilon)))


def test_clip_at_zero_and_renormalise() -> None:
    """The usual way to mend a simplex answer leaves zeros that should be tiny: infinite ratios."""
    problem = optrand.classification([0.7, 0.2, 0.1], 1.0)
    matrix = np.array([[0.999999, 1e-6, -1e-9], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]])
    clipped = np.maximum(matrix, 0)
    clipped /= clipped.sum(axis=1, keepdims=True)
    assert optrand.audit(clipped, 1.0).epsilon == math.inf
    with pytest.raises(NotCertified, match="not 1-DP"):
        tabulate(Solution(problem, Randomizer(problem.labels, problem.labels, clipped, 1.0)))


@pytest.mark.parametrize("epsilon", [17.0, 30.0])
def test_the_identity_is_no_private_answer_at_large_epsilon(epsilon: float) -> None:
    """Rows ``exp(-epsilon) M <= M'`` below a solver's tolerance let the identity through. The certificate does not."""
    assert optrand.audit(np.eye(3), epsilon).epsilon == math.inf
    mechanism = optrand.solve(optrand.programs.lp1([0.5, 0.3, 0.2], epsilon, form="floor"))
    assert mechanism.certificate.require(gap=1e-6).realised[0][1] <= epsilon


def test_the_bound_without_its_third_term_certifies_a_falsehood() -> None:
    """At a finite bias penalty the first two terms alone lie above the optimum. The certified bound does not."""
    problem = optrand.regression([0, 1, 2, 3], [0.1, 0.4, 0.4, 0.1], 0.5, bias_penalty=10.0)
    mechanism = optrand.solve(problem)
    dual, proof = mechanism.dual, mechanism.certificate.require(gap=1e-6)
    uncorrected = proof.lower + float((dual.beta**2 / (2 * problem.bias_weights)).sum())
    assert uncorrected > proof.upper * 1.01
