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
from optrand.model.arcs import Arcs
from optrand.model.kept import content, kept
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.failures import GuardedSolver

__all__ = ["ClosedForm", "debiased_rr_within", "gap_response_within", "priced_rr_within"]

LIGHTEST = 1e-2
"""Of a lighter label, times ``E``, no response of its own is best."""

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
            classes = rr_with_prior(problem.prior, problem.epsilon)
            outputs = problem.labels[classes.randomizer.outputs.astype(np.intp)]
            randomizer = Randomizer(problem.labels, outputs, classes.randomizer.matrix, problem.epsilon)
            return Solution(problem, randomizer, classes.dual, Stats(repr(self)))
        if problem.k == 1:
            return Solution(problem, *_one_label(problem), Stats(repr(self)))
        found = gap_response_within(problem)
        if found is None:
            raise InvalidInput(self.refusal)
        return found


def gap_response_within(problem: Problem) -> Solution | None:
    """:func:`gap_response` as an answer to an unbiased problem; None where its outputs are not allowed."""
    # Whoever asks whether it is the answer asks for it next.
    found = kept(problem, "_gap_response", content(problem), lambda: _gap_response(problem))
    if found is None:
        return None
    outputs = found.randomizer.outputs
    inside = problem.outputs.low <= outputs[0] and outputs[-1] <= problem.outputs.high
    return replace(found, problem=problem) if inside and found.dual is not None else None


def _gap_response(problem: Problem) -> Solution | None:
    try:
        return gap_response(problem.labels, problem.prior, problem.epsilon)
    except InvalidInput:
        return None


def debiased_rr_within(problem: Problem) -> Solution | None:
    """Debiased randomized response where its dual proves it optimal: from some epsilon on it always is."""
    if not problem.unbiased or isinstance(problem.outputs, Grid) or math.expm1(problem.epsilon) < problem.k:
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


def priced_rr_within(problem: Problem) -> Solution | None:
    r"""Randomized response at its best outputs under a finite penalty, where its dual proves it optimal.

    The output of label :math:`y` is :math:`y + d_y`. With :math:`c = 1 / (E + k - 1)` its bias is
    :math:`b_y = c ((E - 1) d_y + \sum_z (z + d_z - y))`, and where no end of the outputs is in the way

    .. math:: (y + d_y - \bar y) + (E - 1) p_y (d_y + \lambda b_y) + \lambda \sum_z p_z b_z = 0:

    linear equations, joined by the two sums only. Then :math:`\beta_y = -\lambda p_y b_y`, and :math:`\alpha` is such
    that the columns in use cost nothing. Optimal from some epsilon on, as :func:`debiased_rr`; cost ``O(k)``.
    """
    if problem.unbiased or not problem.bias_penalty or problem.loss != losses.squared:
        return None
    k, excess = problem.k, math.expm1(problem.epsilon)
    if isinstance(problem.outputs, Grid) or excess < k or excess * float(problem.prior.min()) < LIGHTEST:
        return None
    prior, penalty, share = problem.prior, problem.bias_penalty, 1 / (excess + k)
    labels = problem.labels - problem.labels[0]
    mean, total, weight = float(prior @ labels), float(labels.sum()), excess * share
    pulls = prior * (penalty * weight)
    curvature = 1 + excess * prior + excess * pulls
    ends = problem.outputs.low - problem.labels, problem.outputs.high - problem.labels
    steps, free = np.zeros(k), np.ones(k, dtype=bool)
    for _ in range(k + 1):
        fixed = np.where(free, (mean - labels - pulls * (total - k * labels)) / curvature, steps)
        by_sum, by_bias = (np.where(free, -x / curvature, 0.0) for x in (pulls, penalty))
        matrix = np.array(
            [
                [1 - by_sum.sum(), -by_bias.sum()],
                [-weight * (prior @ by_sum) - share, 1 - weight * (prior @ by_bias)],
            ]
        )
        right = np.array([fixed.sum(), weight * (prior @ fixed) + share * (total - k * mean)])
        joint, bias = np.linalg.solve(matrix, right)
        steps = np.where(free, fixed + by_sum * joint + by_bias * bias, steps)
        outside = (steps < ends[0]) | (steps > ends[1])
        if not outside.any():
            break
        steps, free = np.clip(steps, *ends), free & ~outside
    biases = share * (excess * steps + steps.sum() + total - k * labels)
    beta = -penalty * prior * biases
    outputs = labels + steps
    costs = excess * (prior * steps**2 / 2 - beta * outputs) - outputs * beta.sum()
    costs += ((outputs - mean) ** 2 + prior @ (labels - mean) ** 2) / 2
    alpha = (costs - costs.sum() / (excess + k)) / excess
    dual = Dual(alpha - beta * problem.labels[0], beta)
    places = np.clip(problem.labels + steps, problem.outputs.low, problem.outputs.high)
    if (np.diff(places) < 0).any():
        return None
    arcs = Arcs(k, np.arange(k), np.arange(k), places, np.full(k, share))
    found = Solution(problem, Randomizer.of_arcs(problem.labels, arcs, problem.epsilon), dual, Stats("priced_rr"))
    return found if lower_bound(problem, dual) >= (1 - PROVEN) * found.value else None


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
