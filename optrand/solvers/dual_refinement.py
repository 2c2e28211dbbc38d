r"""Multipliers refined at a finite penalty, slopes as well, by small changes.

The biases of a randomizer in floats are known to some digits only, and where multipliers are not unique the bound has a
kink: with :math:`\beta_y = -\lambda p_y b_y` fixed it may stay below the optimum. So a program over *changes* of
:math:`\alpha` and :math:`\beta`, in units of the gap that is left, so that even rough answers make it smaller, and with
the squares of the changes as a cost, so that few other columns become too cheap: iterative refinement (Gleixner, Steffy
and Wolter, "Iterative refinement for linear programming", INFORMS J. Comput. 2016) by a proximal bundle method
(Lemaréchal, "An extension of Davidon methods to non differentiable problems", Math. Programming Study 1975).
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.certificates.certificate import lower_bound
from optrand.certificates.prices import price
from optrand.errors import SolverFailed
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import ConicProgram
from optrand.solvers.slackness import Support

__all__ = ["Changes", "Proven", "refined"]

FREEDOM = 0.1
"""Slack of changed multipliers, in units of the gap that is left, from what slackness asks."""

NEARNESS, LOOSER, PART = 1.0, 0.3, 0.5
"""Weight of the squares of changes at first, in that unit, for small ones leave few other columns too cheap; its factor
after one for the better that promised less than a part of the gap, and the inverse of that after one for the worse.
"""

SMALL = 12
"""Rounds of small changes; where these do not lead to the end, any are taken."""

ROUGH = Clarabel(tolerance=1e-10)
"""The engine of changes, whose last digits do not count."""


class Proven(NamedTuple):
    """Multipliers and their lower bound."""

    dual: Dual
    bound: float

    @classmethod
    def of(cls, problem: Problem, dual: Dual) -> Self:
        """Any multipliers, with what they prove."""
        return cls(dual, lower_bound(problem, dual))


def refined(changes: Changes, best: Proven, target: float, rounds: int, end: float) -> Dual:
    """The best multipliers of at most so many rounds of changes."""
    changes.cut(best.dual)
    for number in range(rounds):
        if number == SMALL:
            changes.nearness = 0.0
        if best.bound >= target or time.perf_counter() > end:
            break
        dual = changes.changed(best)
        if dual is None:
            break
        changes.cut(dual)
        found = Proven.of(changes.problem, dual)
        if found.bound <= best.bound:
            changes.nearness /= LOOSER
        elif changes.promise < PART:
            changes.nearness *= LOOSER
        best = max(best, found, key=lambda some: some.bound)
    return best.dual


class Changes:
    """The program over changes of the multipliers, in units of the gap that is left, growing by the columns of each."""

    def __init__(self, problem: Problem, support: Support, value: float) -> None:
        self.problem, self.support, self.value, self.nearness = problem, support, value, NEARNESS
        self.members, self.outputs = support.members, support.outputs
        self.promise = 0.0
        """What the last changes would gain, in that unit, were no other column too cheap."""

    def cut(self, dual: Dual) -> None:
        """Add the columns that these multipliers price below zero."""
        prices = price(self.problem, dual)
        violated = prices.improving(0.0)
        self.members = np.hstack((self.members, prices.signatures(violated)))
        self.outputs = np.append(self.outputs, prices.outputs[violated])

    def changed(self, base: Proven) -> Dual | None:
        """Better multipliers for the columns known, not far from the old ones; None where the engine finds none.

        Changes of `beta` at the label `y` are ``sqrt(penalty p_y)`` times a variable of their own, whose square is the
        charge: nothing is divided by a small prior.
        """
        unit, k = self.value - base.bound, self.problem.k
        if not math.isfinite(unit):
            return None
        support, dual, weights = self.support, base.dual, self.problem.bias_weights
        means = self.problem.labels - np.divide(dual.beta, weights, out=np.zeros(k), where=weights > 0)
        less, limits = self._limits(dual, unit)
        own = sparse.diags_array(support.width * np.sqrt(weights / unit))
        steps = sparse.eye_array(k) - sparse.eye_array(k, k=-1)
        squares = self.nearness * (steps.T @ steps)
        program = ConicProgram(
            quadratic=sparse.csc_array(
                sparse.triu(sparse.block_diag((squares, squares, sparse.eye_array(k), sparse.csc_array((1, 1)))))
            ),
            cost=-np.concatenate((support.gain(means), np.zeros(k), [support.share])),
            equal=sparse.csc_array(sparse.hstack((sparse.csc_array((k, k)), steps, -own, sparse.csc_array((k, 1))))),
            equal_to=np.zeros(k),
            less=less,
            less_than=limits,
        )
        try:
            answer = ROUGH.solve(program)
        except SolverFailed:
            return None
        charge = answer.x[2 * k : 3 * k]
        self.promise = float(-program.cost @ answer.x - charge @ charge / 2)
        sums = answer.x[: 2 * k].reshape(2, k)
        alpha, beta = np.diff(sums, prepend=0.0) * [[unit], [unit / support.width]]
        return Dual(dual.alpha + alpha - beta * support.centre, np.where(weights > 0, dual.beta + beta, 0.0))

    def _limits(self, dual: Dual, unit: float) -> tuple[sparse.csc_array, Floats]:
        """What prices and slackness leave to changes of these multipliers, the last of them the lowest price."""
        support, k = self.support, self.problem.k
        prices = (support.steepness(self.members) * support.reduced(dual, self.outputs)).sum(axis=0) / unit
        slack = support.sign * support.reduced(dual, support.outputs)[support.label, support.column] / unit
        sums = support.with_slopes(support.weighted(self.members), self.outputs)
        singles = support.with_slopes(support.singles, support.outputs[support.column])
        sides: list[list[sparse.csr_array | None]] = [
            [sums, sparse.csr_array((prices.size, k)), sparse.csr_array(np.ones((prices.size, 1)))],
            [singles, None, None],
            [None, None, sparse.csr_array(np.ones((1, 1)))],
        ]
        limits = np.concatenate((prices, np.maximum(slack, 0.0) + FREEDOM, [0.0]))
        return sparse.csc_array(sparse.block_array(sides)), limits
