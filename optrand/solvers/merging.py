r"""Labels beyond the ends of the outputs: the best randomizer treats all of them beyond one end alike.

For half squared error and a finite bias penalty let two or more labels lie at or above the largest allowed output. To
any multipliers belongs the reduced cost :math:`h_y(v) = p_y (v - y)^2 / 2 - \alpha_y - \beta_y v`, and at an optimum
:math:`\beta_y = -\lambda p_y (m_y - y) \geq 0` with the mean :math:`m_y` of the row: over the allowed outputs
:math:`h_y` falls. So each of these labels is favoured by the columns above some output of its own; all labels have the
same coverage; and so they are favoured by the same columns. As one label they cost

.. math:: \sum_y p_y \Big( \frac{(v - y)^2}{2} + \frac{\lambda}{2} (m - y)^2 \Big)
          = P \Big( \frac{(v - z)^2}{2} + \frac{\lambda}{2} (m - z)^2 \Big) + \frac{1 + \lambda}{2} \sum_y p_y (y - z)^2

with :math:`P = \sum_y p_y` and :math:`z = \sum_y p_y y / P`: a label at :math:`z` with the prior :math:`P`. Likewise
below. A thin tail beyond an end, which no float arithmetic resolves label by label, becomes one heavy label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model import losses
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer, Solution
from optrand.solvers.prices import price

__all__ = ["Merging", "without_deficit"]


@dataclass(frozen=True, eq=False)
class Merging:
    """A problem whose labels beyond an end are one label, and the way back.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 4, 6], [0.5, 0.1, 0.3, 0.1], 1.0, bias_penalty=1, outputs=[0, 1, 2, 3])
    >>> merged = Merging(problem).merged
    >>> merged.labels.tolist(), merged.prior.round(12).tolist()
    ([0.0, 1.0, 4.5], [0.5, 0.1, 0.4])
    """

    problem: Problem

    @cached_property
    def groups(self) -> NDArray[np.intp]:
        """For each label the place of the one that stands for it."""
        problem, every = self.problem, np.arange(self.problem.k)
        if problem.loss != losses.squared or problem.unbiased or not problem.bias_penalty:
            return every
        below, above = (problem.labels <= problem.outputs.low), (problem.labels >= problem.outputs.high)
        alone = np.ones(problem.k, dtype=bool)
        for beyond in (below, above):
            if problem.prior[beyond].any():
                alone &= ~(beyond & np.roll(beyond, 1))
        alone[0] = True
        groups: NDArray[np.intp] = np.cumsum(alone) - 1
        return groups

    @cached_property
    def merged(self) -> Problem:
        """The problem in which a group of labels is one."""
        problem, groups = self.problem, self.groups
        if groups[-1] == problem.k - 1:
            return problem
        labels, prior = [], []
        for own in np.split(np.arange(problem.k), np.flatnonzero(np.diff(groups)) + 1):
            some, weights = problem.labels[own], problem.prior[own]
            total = math.fsum(weights)
            apart = some - some[0]
            labels.append(float(some[0]) + (math.fsum(weights / total * apart) if own.size > 1 else 0.0))
            prior.append(total)
        return replace(problem, labels=np.array(labels), prior=np.array(prior))

    def extend(self, solution: Solution) -> Solution:
        """Extend the answer to the merged problem to all labels. It stays as far from the optimum as it was."""
        if solution.problem is self.problem:
            return solution
        given, groups = solution.randomizer, self.groups
        columns = given.matrix[groups] if given.arcs is None else self._extended(given.arcs)
        randomizer = Randomizer(self.problem.labels, given.outputs, columns, given.epsilon)
        dual = None if solution.dual is None else self._dual(solution.problem, solution.dual)
        return replace(solution, problem=self.problem, randomizer=randomizer, dual=dual)

    def _extended(self, arcs: Arcs) -> Arcs:
        """Arcs over groups as arcs over labels."""
        every = np.arange(arcs.k)
        starts, ends = np.searchsorted(self.groups, every), np.searchsorted(self.groups, every, side="right") - 1
        return Arcs(self.problem.k, starts[arcs.first], ends[arcs.last], arcs.outputs, arcs.masses)

    def _dual(self, merged: Problem, dual: Dual) -> Dual:
        """Share the multipliers of a group among its labels, so that the signs of their reduced costs never differ."""
        # The mean of the row is taken to be the one that the group's beta speaks of, which makes the reduced costs add
        # up to the group's at every output; at the one where that vanishes each of them is given its share of nothing.
        problem, groups = self.problem, self.groups
        grouped = np.bincount(groups)[groups] > 1
        shares = problem.prior[grouped] / merged.prior[groups[grouped]]
        apart = problem.labels[grouped] - merged.labels[groups[grouped]]
        dual = replace(dual, alpha=without_deficit(merged, dual))
        alpha, beta = dual.alpha[groups], dual.beta[groups]
        beta[grouped] = shares * beta[grouped] + problem.bias_penalty * problem.prior[grouped] * apart
        zeros = self._sign_changes(merged, dual)
        left = merged.prior * (zeros - merged.labels) ** 2 / 2 - dual.alpha - dual.beta * (zeros - dual.origin)
        at = zeros[groups[grouped]]
        own = problem.prior[grouped] * (at - problem.labels[grouped]) ** 2 / 2
        alpha[grouped] = own - beta[grouped] * (at - dual.origin) - shares * left[groups[grouped]]
        return replace(dual, alpha=alpha, beta=beta)

    def _sign_changes(self, merged: Problem, dual: Dual) -> Floats:
        """For each merged label the allowed output at which its reduced cost changes sign, or nearly does."""
        prior, labels = merged.prior, merged.labels
        curved = prior > 0
        weight, pull = np.where(curved, prior, 1.0), dual.beta
        inside = np.maximum(pull**2 + 2 * weight * (dual.alpha + pull * (labels - dual.origin)), 0.0)
        towards = np.where(labels >= self.problem.outputs.high, -1.0, 1.0)
        steps = np.where(curved, (pull + towards * np.sqrt(inside)) / weight, 0.0)
        zeros: Floats = np.clip(labels + steps, self.problem.outputs.low, self.problem.outputs.high)
        return zeros


def without_deficit(problem: Problem, dual: Dual) -> Floats:
    """`alpha` with the same bound and no price below zero, which would weigh more among more labels.

    The bound takes a price ``m < 0`` times ``k / (E + k - 1)``; lowering each of the ``k`` multipliers by its share
    costs as much, and raises the price of every non-empty set by at least ``-m``.
    """
    deficit = min(0.0, price(problem, dual).lowest)
    alpha: Floats = dual.alpha + deficit / (math.expm1(problem.epsilon) + problem.k)
    return alpha
