r"""Most expected utility under an epsilon and a channel capacity: one cone program, and a bound by its multipliers.

The capacity of a channel is the least, over distributions `w` of the outputs, of the largest divergence of a row from
`w`. So a table keeps within `c` bits if and only if some `w` has :math:`\sum_i M[y, i] \log_2 (M[y, i] / w_i) \leq c`
for every row: convex in table and `w` together.

For any inputs `r` and numbers with :math:`\sum_y r_y 2^{b_{y i}} \leq 1` at each output,

.. math:: c \geq I(r; M) \geq \sum_{y i} r_y M[y, i] \, b_{y i}

holds of every table within the capacity. With a multiplier this constraint makes of the utility another one, whose
certified optimum over private randomizers bounds the optimum under both (``docs/mathematics.md``, Channels of limited
capacity). Its best `r`, multiplier and `b` are read off the program; any would do.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats
from optrand.certificates.certificate import certify
from optrand.errors import SolverFailed
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid
from optrand.model.problem import Problem, regression
from optrand.solvers import solve
from optrand.states.channel import balanced

__all__ = ["Limited"]

SHY = 1e-7
"""Share of the capacity that is left unused, for what rounding to an exact mechanism adds."""

TOLERANCE = 1e-11
"""Relative gap and feasibility at which the engine stops; short of it, it answers with what it has."""

SLACK = 1e-12
"""Bits by which logarithms are lowered, so that the constraint holds in spite of their rounding."""

NOISE = 2.0**-48
"""Share by which sums of products are raised, so that their rounding loosens the bound and never breaks it."""

TINY = 1e-30
"""Least entry of a table whose logarithms are taken."""


@dataclass(frozen=True, eq=False)
class Limited:
    """Utility under a capacity.

    Attributes
    ----------
    problem : Problem
        On a grid, its loss minus the utility.
    capacity : float
        Bits, above 0.
    """

    problem: Problem
    capacity: float

    @property
    def outputs(self) -> Floats:
        """Numbers of the outputs."""
        return self.problem.outputs.values if isinstance(self.problem.outputs, Grid) else self.problem.labels

    @property
    def worth(self) -> Floats:
        """Utility of each entry of a table, weighted by the prior, shape ``(k, n)``."""
        worth: Floats = -self.problem.prior[:, np.newaxis] * self.problem.loss_table(self.outputs)
        return worth

    def solve(self) -> tuple[Floats, Floats, float]:
        """Table of nearly most utility within both limits, inputs that it tells most of, and a bound of the utility.

        The bound is certified, of all tables within both.

        Raises
        ------
        SolverFailed
            The engine has no answer.
        """
        raw, inputs, multiplier = self._answer()
        inside = self._inside(_private(raw, math.exp(self.problem.epsilon)), inputs)
        # Of outputs that are not used, ratios of what the interior point has left of them are as good as any.
        return inside, inputs, self._bound(_supporting(raw, inputs), multiplier)

    def _answer(self) -> tuple[Floats, Floats, float]:
        """Solve the cone program: a table with entries above 0, inputs, and the price of a bit."""
        import cvxpy

        worth, ratio = self.worth, math.exp(self.problem.epsilon)
        scale = float(np.abs(worth).max()) or 1.0
        table = cvxpy.Variable(worth.shape)
        floor, share = cvxpy.Variable((1, worth.shape[1])), cvxpy.Variable((1, worth.shape[1]))
        each = np.ones((worth.shape[0], 1))
        told = cvxpy.sum(cvxpy.rel_entr(table, each @ share), axis=1) <= self.capacity * math.log(2)
        private = [table >= each @ floor, table <= ratio * each @ floor, cvxpy.sum(table, axis=1) == 1]
        asked = cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(worth / scale, table)))
        program = cvxpy.Problem(asked, [told, *private, cvxpy.sum(share) == 1])
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE)
        with warnings.catch_warnings():
            # An answer short of the tolerance is judged by the certificate.
            warnings.simplefilter("ignore")
            try:
                program.solve(solver="CLARABEL", max_iter=300, **options)
            except cvxpy.error.SolverError as error:
                raise SolverFailed(f"Clarabel has no answer: {error}") from error
        if table.value is None or told.dual_value is None:
            raise SolverFailed(f"Clarabel ended with the status {program.status} and no answer to read")
        prices = np.maximum(told.dual_value, 0.0)
        inputs = prices / prices.sum() if prices.sum() > 0 else np.full(prices.size, 1 / prices.size)
        return np.maximum(table.value, TINY), inputs, float(prices.sum()) * scale * math.log(2)

    def _inside(self, table: Floats, inputs: Floats) -> Floats:
        """Last channel on the way from the best constant one to a table that keeps within the capacity."""
        constant = np.zeros_like(table)
        constant[:, int(np.argmax(self.worth.sum(axis=0)))] = 1.0
        allowed = self.capacity * (1 - SHY)
        found = balanced(table, limit=allowed, inputs=inputs)
        low, high = (1.0, 1.0) if found.upper <= allowed else (0.0, 1.0)
        while high - low > SHY:
            middle = (low + high) / 2
            found = balanced(constant + middle * (table - constant), limit=allowed, inputs=found.inputs)
            low, high = (middle, high) if found.upper <= allowed else (low, middle)
        return constant + low * (table - constant)

    def _bound(self, cut: Floats, multiplier: float) -> float:
        """Upper bound of the utility of every private randomizer within the capacity, by any multiplier."""
        noise = NOISE * (np.abs(self.worth) + multiplier * np.abs(cut))
        k, labels = self.problem.k, self.problem.labels
        loss = Tabulated(-k * (self.worth - multiplier * cut + noise))
        share = np.full(k, 1 / k)
        proof = certify(solve(regression(labels, share, self.problem.epsilon, loss=loss, outputs=Grid(self.outputs))))
        # Inputs sum to 1 but for rounding.
        allowed = Fraction(self.capacity) * (1 + Fraction(NOISE))
        return float_above(Fraction(multiplier) * allowed - Fraction(proof.lower))


def _private(table: Floats, ratio: float) -> Floats:
    """Table whose entries are lifted to the largest of their column over the ratio, rows normalised."""
    used = np.where(table.max(axis=0) > 1e-9, np.maximum(table, 0.0), 0.0)
    lifted = np.maximum(used, used.max(axis=0) / ratio)
    private: Floats = lifted / lifted.sum(axis=1, keepdims=True)
    return private


def _supporting(table: Floats, inputs: Floats) -> Floats:
    """Numbers ``r_y b_yi`` of the constraint that touches the information at a channel, shape ``(k, n)``."""
    cut: Floats = inputs[:, np.newaxis] * (np.log2(table / (inputs @ table)) - SLACK)
    return cut
