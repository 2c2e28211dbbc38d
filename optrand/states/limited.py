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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

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
        """Table, its entries above 0, inputs and price of a bit from Clarabel, about right to its tolerance."""
        import clarabel

        worth = self.worth
        k, n = worth.shape
        scale = float(np.abs(worth).max()) or 1.0
        # Variables: the table, the floor of each output, the distribution of outputs, and k n terms of divergences.
        size = 2 * k * n + 2 * n
        one, table, floor = sparse.eye_array(k * n), (0, k * n), (k * n, k * n + n)
        share, terms = (floor[1], floor[1] + n), (floor[1] + n, size)
        each = sparse.kron(np.ones((k, 1)), sparse.eye_array(n))
        rows = sparse.kron(sparse.eye_array(k), np.ones((1, n)))
        ratio = math.exp(self.problem.epsilon)
        equal = [_placed(size, (table, rows)), _placed(size, (share, sparse.csr_array(np.ones((1, n)))))]
        less = [
            _placed(size, (table, one), (floor, -ratio * each)),
            _placed(size, (table, -one), (floor, each)),
            _placed(size, (terms, rows)),
        ]
        # An exponential cone holds (x, y, z) with y exp(x / y) <= z: minus a term, the entry, the share.
        mixed = sparse.vstack(
            [_placed(size, (terms, one)), _placed(size, (table, -one)), _placed(size, (share, -each))]
        ).tocsr()[np.arange(3 * k * n).reshape(3, -1).T.ravel()]
        kinds: list[Any] = [clarabel.ZeroConeT(k + 1), clarabel.NonnegativeConeT(2 * k * n + k)]
        kinds += [clarabel.ExponentialConeT()] * (k * n)
        limits = np.concatenate((np.ones(k + 1), np.zeros(2 * k * n), np.full(k, self.capacity * math.log(2))))
        cost = np.concatenate((-worth.ravel() / scale, np.zeros(size - k * n)))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = 300
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        answer = clarabel.DefaultSolver(
            sparse.csc_array((size, size)),
            cost,
            sparse.csc_array(sparse.vstack([*equal, *less, mixed])),
            np.concatenate((limits, np.zeros(3 * k * n))),
            kinds,
            settings,
        ).solve()
        x, z = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(x).all() and np.isfinite(z).all()):
            raise SolverFailed(f"Clarabel ended with the status {answer.status} and no answer to read")
        prices = np.maximum(z[k + 1 + 2 * k * n : 2 * k + 1 + 2 * k * n], 0.0)
        inputs = prices / prices.sum() if prices.sum() > 0 else np.full(k, 1 / k)
        return np.maximum(x[: k * n].reshape(k, n), TINY), inputs, float(prices.sum()) * scale * math.log(2)

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


def _placed(size: int, *blocks: tuple[tuple[int, int], Any]) -> sparse.csr_array:
    """Rows in which blocks stand at ranges of the variables, in increasing order, and zeros elsewhere."""
    height, parts, at = blocks[0][1].shape[0], list[Any](), 0
    for (begin, end), block in sorted(blocks, key=lambda one: one[0]):
        parts += [sparse.csr_array((height, begin - at)), block]
        at = end
    return sparse.csr_array(sparse.hstack([*parts, sparse.csr_array((height, size - at))]))


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
