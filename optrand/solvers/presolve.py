"""Labels of no consequence: solve without them, then give them rows that cost nothing to speak of.

A label of prior zero adds nothing to the loss, so the optimum without it is a lower bound of the optimum with it; and a
row that is a mixture of its neighbours' rows is as private as they are. Where bias is allowed any neighbour's row will
do; an unbiased problem keeps its two end labels, and interior labels mix the rows of the kept labels around them, which
is unbiased randomized rounding, or, of arcs, have the columns of one below and those of the other above some share
(:mod:`optrand.solvers.handover`). Their multipliers are zero.

At a finite bias penalty the same is done with the thinnest tails of a prior: labels that, together, add no more than
rounding to the loss, whatever their rows. Left in they do harm, since the multiplier of a bias is charged
``beta**2 / (2 * bias_penalty * prior)``, in numbers too far apart for floats. What they do cost is in the value, and so
in the gap of the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model import losses
from optrand.model.losses import Tabulated
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer, Solution
from optrand.solvers.handover import handed_over
from optrand.solvers.merging import without_deficit
from optrand.solvers.scales import attainable_loss, reach

__all__ = ["Reduction"]

NEGLIGIBLE = 1e-12
"""Labels that together add no more than about this share to the loss are of no consequence."""

SPENT = 1e-10
"""A larger share of the loss is of some."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem without its labels of no consequence, and the way back.

    Parameters
    ----------
    problem : Problem
    value : float, optional
        About the least loss, a small share of which is of no consequence; by default what some closed form attains.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0, 0.5], 1.0)
    >>> Reduction(problem).reduced.labels.tolist()
    [0.0, 1.0, 3.0]
    """

    problem: Problem
    value: float | None = None

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """The labels that matter; in classification, whose outputs are the labels, all of them."""
        kept = (self.problem.prior > 0) & ~self._negligible | (self.problem.loss == losses.zero_one)
        if self.problem.unbiased:
            kept[[0, -1]] = True
        return kept

    @property
    def _negligible(self) -> NDArray[np.bool_]:
        """The labels that hardly cost anything even at the output that suits all others."""
        problem = self.problem
        if problem.loss != losses.squared or not problem.bias_penalty:
            return np.zeros(problem.k, dtype=bool)
        # Each is charged its share of the loss, at least.
        if self.value is None and problem.prior.min() > NEGLIGIBLE:
            return np.zeros(problem.k, dtype=bool)
        unit = attainable_loss(problem) if self.value is None else self.value
        if problem.unbiased:
            costs = problem.prior * reach(problem) ** 2
        else:
            apart = problem.labels - problem.labels[0]
            squares = (apart - problem.prior @ apart) ** 2
            # What overflows, times a prior of 0 among it, is not negligible.
            with np.errstate(over="ignore", invalid="ignore"):
                costs = problem.prior * ((1 + problem.bias_penalty) * squares / 2 + unit)
        order = np.argsort(costs)
        negligible = np.zeros(problem.k, dtype=bool)
        negligible[order] = np.cumsum(costs[order]) <= NEGLIGIBLE * unit
        return negligible

    @cached_property
    def reduced(self) -> Problem:
        """The problem on the kept labels."""
        problem, kept = self.problem, self.kept
        if kept.all():
            return problem
        loss = Tabulated(problem.loss.entries[kept]) if isinstance(problem.loss, Tabulated) else problem.loss
        return replace(problem, labels=problem.labels[kept], prior=problem.prior[kept], loss=loss)

    def closer(self, found: Solution, whole: Solution) -> Reduction | None:
        """Reduction to try instead, once, where the labels that were left out cost more than they were thought to.

        Parameters
        ----------
        found, whole : Solution
            To the reduced problem, and to the whole one.
        """
        if self.value is not None or found.problem is self.problem:
            return None
        # Of labels next to the largest floats the value may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            value, spent = found.value, whole.problem.sign * (whole.value - found.value)
        if not SPENT * abs(value) < spent < np.inf:
            return None
        closer = Reduction(self.problem, value)
        return closer if (closer.kept != self.kept).any() else None

    def extend(self, solution: Solution) -> Solution:
        """Extend the answer to the reduced problem to all labels."""
        if solution.problem is self.problem:
            return solution
        given = solution.randomizer
        columns = self._mixing() @ given.matrix if given.arcs is None else self._extended(given.arcs)
        randomizer = Randomizer(self.problem.labels, given.outputs, columns, given.epsilon)
        dual = None
        if solution.dual is not None:
            alpha, beta = np.zeros(self.problem.k), np.zeros(self.problem.k)
            alpha[self.kept], beta[self.kept] = without_deficit(solution.problem, solution.dual), solution.dual.beta
            dual = Dual(alpha, beta, solution.dual.origin)
        return replace(solution, problem=self.problem, randomizer=randomizer, dual=dual)

    def _neighbours(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Return the kept labels around each label, itself on the left if kept, and the share of the right one."""
        labels, kept = self.problem.labels, self.problem.labels[self.kept]
        left = np.clip(np.searchsorted(kept, labels, side="right") - 1, 0, kept.size - 1)
        right = np.minimum(left + 1, kept.size - 1)
        width = np.where(right > left, kept[right] - kept[left], 1.0)
        share = np.clip((labels - kept[left]) / width, 0.0, 1.0)
        return left, right, share if self.problem.unbiased else np.round(share)

    def _mixing(self) -> Floats:
        """Each label as a mixture of kept ones, shape ``(k, kept)``."""
        left, right, share = self._neighbours()
        mixing = np.zeros((left.size, int(self.kept.sum())))
        rows = np.arange(left.size)
        np.add.at(mixing, (rows, left), 1 - share)
        np.add.at(mixing, (rows, right), share)
        return mixing

    def _extended(self, arcs: Arcs) -> Arcs:
        """Arcs over all labels."""
        if self.problem.unbiased:
            return handed_over(arcs, np.flatnonzero(self.kept), self.problem.labels)
        left, right, share = self._neighbours()
        nearest = np.where(share > 0, right, left)
        first, last = np.searchsorted(nearest, arcs.first), np.searchsorted(nearest, arcs.last, side="right") - 1
        return Arcs(self.problem.k, first, last, arcs.outputs, arcs.masses, arcs.rests)
