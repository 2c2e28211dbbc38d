"""Gap between the value of an answer and the bound of its dual: estimated in floats, for solvers to stop at.

The estimates are *unproven*: they evaluate the formulas of :mod:`optrand.certificates.certificate` in extended
precision, with an allowance for rounding that is a rule of thumb. The proven bound is :func:`optrand.lower_bound`,
computed once for an answer.
"""

from __future__ import annotations

import math

import numpy as np

from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.outputs import Grid, Line
from optrand.model.problem import Dual, Problem, unbiased_range
from optrand.model.randomizer import Arcs, Solution
from optrand.solvers.prices import Extended, price

__all__ = ["PROVEN", "decide_gap", "estimated_bound", "estimated_gap", "worst_case_gap"]

PROVEN = 1e-9
"""Relative gap with which an answer counts as optimal: every solver, and `solve`, stops at it."""

ROUNDING = 1e-5
"""Relative gap in floats above which their rounding is not all that is missing. It is tuned on random problems."""

LARGE = 20.0
"""Epsilon above which a product of ``E`` and the rounding of floats leaves nothing decided."""

CLOSE = 1e-12
"""Errors of rows and ratios, and of means as a share of the spread of outputs, that count as rounding."""

LARGEST = 1 << 20
"""Entries of a table that is evaluated, at most."""


def decide_gap(solution: Solution, estimate: float | None = None) -> float:
    """Return the relative gap of an answer, infinite if it is not feasible.

    It is estimated in floats, and computed in exact arithmetic if floats leave open whether it is at most
    :data:`PROVEN`: at small gaps, at an epsilon above 20, and if outputs end nearer to those that unbiased answers need
    than floats can tell. `estimate` is :func:`estimated_gap` of the answer, if it is known.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> decide_gap(solution) <= PROVEN
    True
    """
    gap = estimated_gap(solution) if estimate is None else estimate
    if solution.problem.epsilon <= LARGE and (abs(gap) <= PROVEN or ROUNDING <= gap < math.inf):
        return gap
    try:
        proof = tabulate(solution).certificate
    except (Infeasible, InvalidInput, NotCertified):
        return math.inf
    return math.inf if proof.findings else proof.gap


def worst_case_gap(solution: Solution) -> float:
    """Return the relative gap that is proven of the largest loss over labels, infinite if it is not feasible."""
    try:
        proof = tabulate(solution).certify(worst_case=True)
    except (Infeasible, InvalidInput, NotCertified):
        return math.inf
    return math.inf if proof.findings else proof.gap


def estimated_gap(solution: Solution) -> float:
    """Estimate the relative gap of squared loss off grids, of other losses of arcs without bias, or of classification.

    Infinite for other problems, and for answers whose rows, ratio, outputs or means, if they must be right, are off by
    more than rounding.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> abs(estimated_gap(design(optrand.classification([0.5, 0.3, 0.2], 1.0)))) < 1e-14
    True
    """
    if solution.dual is None:
        return math.inf
    return _gap(_value(solution), estimated_bound(solution.problem, solution.dual))


def _gap(value: float, bound: float) -> float:
    return (value - bound) / abs(value) if math.isfinite(value) and value and bound > -math.inf else math.inf


def estimated_bound(problem: Problem, dual: Dual) -> float:
    """Estimate :func:`optrand.lower_bound` in floats; ``-inf`` if they overflow or the multipliers prove nothing.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> proven = optrand.lower_bound(solution.problem, solution.dual)
    >>> abs(estimated_bound(solution.problem, solution.dual) - proven) < 1e-12
    True
    """
    weights = problem.bias_weights.astype(np.longdouble)
    if (dual.beta[weights == 0] != 0).any():
        return -math.inf
    alpha, beta = dual.alpha.astype(np.longdouble), dual.beta.astype(np.longdouble)
    prices, more = price(problem, dual), np.expm1(np.longdouble(problem.epsilon))
    with np.errstate(all="ignore"):
        lowest = np.longdouble((prices.costs - prices.rounding).min())
        charges = np.divide(beta**2, 2 * weights, out=np.zeros_like(beta), where=beta != 0)
        base = (alpha + beta * (problem.labels.astype(np.longdouble) - dual.origin) - charges).sum()
        bound = float(base + (lowest * problem.k / (more + problem.k) if lowest < 0 else lowest / (more + 1)))
    return bound if math.isfinite(bound) else -math.inf


def _value(solution: Solution) -> float:
    """Objective of the minimisation; infinite for randomizers that are off, and for other problems."""
    problem, randomizer = solution.problem, solution.randomizer
    arcs, is_grid = randomizer.arcs, isinstance(problem.outputs, Grid)
    if arcs is not None and problem.loss == losses.squared:
        return _squared_loss(problem, arcs)
    is_judged = problem.loss == losses.zero_one or (arcs is not None and not is_grid)
    if problem.bias_penalty or not is_judged or problem.k * randomizer.outputs.size > LARGEST:
        return math.inf
    table, outputs = randomizer.matrix, randomizer.outputs
    low, high = table.min(axis=0), table.max(axis=0)
    is_private = (low >= 0).all() and (high <= math.exp(problem.epsilon) * (1 + CLOSE) * low).all()
    is_allowed = problem.outputs.low <= outputs.min() and outputs.max() <= problem.outputs.high
    if isinstance(problem.outputs, Grid):
        is_allowed = np.isin(outputs, problem.outputs.values).all()
    if not (is_private and is_allowed and abs(table.sum(axis=1) - 1).max() <= CLOSE):
        return math.inf
    with np.errstate(all="ignore"):
        return float(problem.sign * problem.value(randomizer))


def _squared_loss(problem: Problem, arcs: Arcs) -> float:
    """Squared loss of arcs in extended precision: without bias, at a price of it, or free of it."""
    if not problem.outputs.low <= arcs.outputs.min() <= arcs.outputs.max() <= problem.outputs.high:
        return math.inf
    if isinstance(problem.outputs, Grid) and not np.isin(arcs.outputs, problem.outputs.values).all():
        return math.inf
    ratio, middle = np.longdouble(math.exp(problem.epsilon)), problem.labels[problem.k // 2]
    masses, outputs = arcs.masses.astype(np.longdouble), (arcs.outputs.astype(np.longdouble) - middle) + arcs.rests
    labels, prior = problem.labels.astype(np.longdouble) - middle, problem.prior.astype(np.longdouble)

    def sum_by_label(amounts: Extended) -> Extended:
        """Sum some amounts under each label."""
        steps = np.zeros(arcs.k + 1, np.longdouble)
        np.add.at(steps, arcs.first, amounts)
        np.subtract.at(steps, arcs.last + 1, amounts)
        sums: Extended = amounts.sum() + (ratio - 1) * np.cumsum(steps[:-1])
        return sums

    width = max(np.ptp(problem.labels), np.ptp(outputs)) or 1.0
    rows, means = sum_by_label(masses), sum_by_label(masses * outputs)
    if not (abs(rows - 1).max() <= CLOSE and (masses >= 0).all()):
        return math.inf
    value = float(prior @ (sum_by_label(masses * outputs**2) - 2 * labels * means + labels**2 * rows)) / 2
    if problem.unbiased:
        is_right = abs(means - labels).max() <= CLOSE * width and _has_room(problem, CLOSE * width)
        return value if is_right and value > 0 else math.inf
    value += problem.bias_penalty * float(prior @ (means - labels) ** 2) / 2
    return value if value > 0 else math.inf


def _has_room(problem: Problem, error: float) -> bool:
    """Whether outputs may lie further out than some unbiased randomizer needs, by more than an error of its means."""
    if isinstance(problem.outputs, Line):
        return True
    low, high = unbiased_range(problem.labels, problem.epsilon)
    return problem.outputs.low < low - error and high + error < problem.outputs.high
