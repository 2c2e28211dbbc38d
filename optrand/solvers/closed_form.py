"""Problems whose answer is a formula: classification, a single label, and a gap and a bit where they are best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optrand.certificates.certificate import lower_bound
from optrand.certificates.quick import quick_gap
from optrand.closed_forms import debiased_rr, gap_response, rr_with_prior
from optrand.closed_forms.gap import condition_holds
from optrand.errors import Infeasible, InvalidInput
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.failures import GuardedSolver

__all__ = ["ClosedForm", "debiased_rr_within", "gap_response_within"]

PROVEN = 1e-12
"""A closed form within this share of its bound is the answer."""


@dataclass(frozen=True)
class ClosedForm(GuardedSolver):
    """RRWithPrior for classification, the best output of one label, and :func:`gap_response` where it is optimal.

    Examples
    --------
    >>> import optrand
    >>> solution = ClosedForm()(optrand.classification([0.5, 0.3, 0.2], 1.0))
    >>> optrand.certify(solution).gap < 1e-12
    True
    """

    refusal = (
        "ClosedForm() takes classification, one label with outputs that are not a grid, and unbiased regression for "
        "which gap_response_is_optimal with outputs where they are allowed"
    )

    def accepts(self, problem: Problem) -> bool:
        """Classification over the labels themselves; off a grid one label, or a gap and a bit that are optimal."""
        if problem.loss == losses.zero_one:
            return isinstance(problem.outputs, Grid) and np.array_equal(problem.outputs.values, problem.labels)
        if isinstance(problem.outputs, Grid):
            return False
        return problem.k == 1 or _best_is_a_gap(problem)

    def _solution(self, problem: Problem) -> Solution:
        if problem.loss == losses.zero_one:
            found = rr_with_prior(problem.prior, problem.epsilon)
            outputs = problem.labels[found.randomizer.outputs.astype(np.intp)]
            randomizer = Randomizer(problem.labels, outputs, found.randomizer.matrix, problem.epsilon)
            return Solution(problem, randomizer, found.dual, Stats(repr(self)))
        if problem.k == 1:
            return Solution(problem, *_one_label(problem), Stats(repr(self)))
        return replace(gap_response(problem.labels, problem.prior, problem.epsilon), problem=problem)


def gap_response_within(problem: Problem) -> Solution | None:
    """:func:`gap_response` as an answer to an unbiased problem; None where its outputs are not allowed."""
    try:
        found = gap_response(problem.labels, problem.prior, problem.epsilon)
    except InvalidInput:
        return None
    outputs = found.randomizer.outputs
    inside = problem.outputs.low <= outputs[0] and outputs[-1] <= problem.outputs.high
    return replace(found, problem=problem) if inside and found.dual is not None else None


def debiased_rr_within(problem: Problem) -> Solution | None:
    """Debiased randomized response where its dual proves it optimal: from some epsilon on it always is."""
    if not problem.unbiased or math.expm1(problem.epsilon) < problem.k:
        return None
    try:
        found = debiased_rr(problem.labels, problem.epsilon, prior=problem.prior)
    except InvalidInput:
        return None
    outputs = found.randomizer.outputs
    inside = problem.outputs.low <= outputs[0] and outputs[-1] <= problem.outputs.high
    if not inside or found.dual is None:
        return None
    value, dual, found = found.value, found.dual, replace(found, problem=problem)
    if quick_gap(found) <= PROVEN:
        return found
    return found if lower_bound(problem, dual) >= value - PROVEN * value else None


def _best_is_a_gap(problem: Problem) -> bool:
    """Whether :func:`gap_response` answers a problem of two labels or more, not on a grid."""
    if problem.loss != losses.squared or not problem.unbiased:
        return False
    if not condition_holds(problem):
        return False
    return gap_response_within(problem) is not None


def _one_label(problem: Problem) -> tuple[Randomizer, Dual]:
    """The allowed output nearest to the label; ``alpha`` is what it costs, and ``beta`` pulls towards it."""
    label = float(problem.labels[0])
    output = float(np.clip(label, problem.outputs.low, problem.outputs.high))
    if problem.loss.positive_outputs and output <= 0:
        raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=")
    randomizer = Randomizer(problem.labels, [output], [[1.0]], problem.epsilon)
    beta = 0.0 if problem.unbiased else -problem.bias_penalty * float(problem.prior[0]) * (output - label)
    cost = float(problem.prior[0]) * float(problem.loss_table(randomizer.outputs)[0, 0]) - beta * output
    return randomizer, Dual(np.array([cost]), np.array([beta]))
