"""Labels of prior zero: solve without them, then give them rows that cost nothing.

A label of prior zero adds nothing to the loss, so the optimum without it is a lower bound of the optimum with it; and a
row that is a mixture of its neighbours' rows is as private as they are. Where there is no care for bias any neighbour's
row will do; an unbiased problem keeps its two end labels, and interior labels mix the rows of the kept labels around
them, which is unbiased randomized rounding. Their multipliers are zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.losses import Tabulated
from optrand.problem import Problem
from optrand.randomizer import Randomizer
from optrand.solution import Dual, Solution
from optrand.validation import Floats

__all__ = ["Reduction"]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem without its idle labels, and the way back.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0, 0.5], 1.0)
    >>> Reduction(problem).reduced.labels.tolist()
    [0.0, 1.0, 3.0]
    """

    problem: Problem

    @property
    def kept(self) -> NDArray[np.bool_]:
        """The labels that matter; in classification, whose outputs are the labels, all of them."""
        kept = (self.problem.prior > 0) | (self.problem.loss == losses.zero_one)
        if self.problem.unbiased:
            kept[[0, -1]] = True
        return kept

    @property
    def reduced(self) -> Problem:
        """The problem on the kept labels."""
        problem, kept = self.problem, self.kept
        if kept.all():
            return problem
        loss = Tabulated(problem.loss.entries[kept]) if isinstance(problem.loss, Tabulated) else problem.loss
        return replace(problem, labels=problem.labels[kept], prior=problem.prior[kept], loss=loss)

    def extend(self, solution: Solution) -> Solution:
        """The answer to the whole problem, from one to the reduced problem."""
        if solution.problem is self.problem:
            return solution
        given = solution.randomizer
        randomizer = Randomizer(self.problem.labels, given.outputs, self._mixing() @ given.matrix, given.epsilon)
        dual = None
        if solution.dual is not None:
            alpha, beta = np.zeros(self.problem.k), np.zeros(self.problem.k)
            alpha[self.kept], beta[self.kept] = solution.dual.alpha, solution.dual.beta
            dual = Dual(alpha, beta)
        return replace(solution, problem=self.problem, randomizer=randomizer, dual=dual)

    def _mixing(self) -> Floats:
        """Each label as a mixture of kept ones, shape ``(k, kept)``: linear interpolation, or the nearest."""
        labels, kept = self.problem.labels, self.problem.labels[self.kept]
        right = np.clip(np.searchsorted(kept, labels), 1, max(1, kept.size - 1))
        left = right - 1
        right = np.minimum(right, kept.size - 1)
        width = np.where(right > left, kept[right] - kept[left], 1.0)
        share = np.clip((labels - kept[left]) / width, 0.0, 1.0)
        if not self.problem.unbiased:
            share = np.round(share)
        mixing = np.zeros((labels.size, kept.size))
        rows = np.arange(labels.size)
        np.add.at(mixing, (rows, left), 1 - share)
        np.add.at(mixing, (rows, right), share)
        return mixing
