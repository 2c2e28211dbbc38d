r"""Dual of a problem of few labels over columns, in long numbers.

The columns are all intervals of labels, and other sets of labels that pricing has found, each at its best output. With
:math:`s_y = 1` in the set of a column and :math:`1 / E` elsewhere, its reduced cost is :math:`\sum_y s_y (p_y g(v, y) -
\alpha_y - \beta_y v)`. An end of the outputs clips the best output, and the cost keeps a continuous slope; a price of
bias is a square of the multipliers. Unknowns are the sums of the multipliers up to each label: an interval asks three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.solvers.long_numbers.arithmetic import Arithmetic, Long

__all__ = ["Columns", "LongProgram", "bits_for"]

MARGIN = 240
"""Bits beyond those that epsilon, the prior and the gaps between labels take."""

Set = tuple[bool, ...]
"""Members of a column that is no interval."""


class Columns(NamedTuple):
    """Reduced costs of columns at their outputs, and whether these may move."""

    costs: Long
    outputs: Long
    free: NDArray[np.bool_]


def bits_for(problem: Problem) -> int:
    """Bits that a problem takes: epsilon four times, thin priors and close labels twice."""
    prior, gaps = problem.prior[problem.prior > 0], np.diff(problem.labels)
    thin = math.log2(float(np.ptp(problem.labels)) / float(gaps.min())) - math.log2(float(prior.min()))
    return MARGIN + math.ceil(4 * problem.epsilon / math.log(2) + 2 * thin)


@dataclass(frozen=True, eq=False)
class LongProgram:
    """Program over the intervals and some sets; its labels are measured from the lowest, in their range.

    Attributes
    ----------
    problem : Problem
        Squared loss, a positive bias penalty, and outputs on the line or an interval.
    sets : tuple of Set
        Columns that are no intervals.
    """

    problem: Problem
    sets: tuple[Set, ...] = ()

    @cached_property
    def numbers(self) -> Arithmetic:
        """Arithmetic with enough bits."""
        return Arithmetic(bits_for(self.problem))

    @cached_property
    def lowest(self) -> Fraction:
        """Origin of labels and outputs."""
        return Fraction(float(self.problem.labels[0]))

    @cached_property
    def range(self) -> Fraction:
        """Unit of labels and outputs."""
        return Fraction(float(self.problem.labels[-1])) - self.lowest

    def placed(self, outputs: list[float]) -> Long:
        """Labels or outputs in this unit."""
        return self.numbers.longs((Fraction(v) - self.lowest) / self.range for v in outputs)

    @cached_property
    def labels(self) -> Long:
        """The labels."""
        return self.placed(self.problem.labels.tolist())

    @cached_property
    def box(self) -> tuple[int, int] | None:
        """Ends of the outputs, if there are any."""
        ends = self.problem.outputs.low, self.problem.outputs.high
        if not all(map(math.isfinite, ends)):
            return None
        low, high = self.placed([float(end) for end in ends]).tolist()
        return low, high

    @cached_property
    def prior(self) -> Long:
        """The prior, which sums to 1."""
        prior = [Fraction(p) for p in self.problem.prior.tolist()]
        total = sum(prior, Fraction(0))
        return self.numbers.longs(p / total for p in prior)

    @cached_property
    def least(self) -> int:
        """``1 / E``."""
        return self.numbers.long(1 / exp_bracket(self.problem.epsilon, self.numbers.bits)[0])

    @cached_property
    def intervals(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and end node of every interval."""
        first, end = np.triu_indices(self.problem.k + 1, 1)
        return first, end

    @cached_property
    def members(self) -> Long:
        """Members of the sets as 0 and 1, shape ``(sets, k)``."""
        members = np.array(self.sets, dtype=np.int64).reshape(-1, self.problem.k)
        return members.astype(object)

    def _over_intervals(self, sums: Long) -> Long:
        sums = np.concatenate((np.array([0], dtype=object), sums))
        first, end = self.intervals
        return self._mixed(sums[end] - sums[first], sums[-1])

    def _over_sets(self, amounts: Long) -> Long:
        return self._mixed(self.members @ amounts, amounts.sum())

    def _mixed(self, inside: Long, total: int) -> Long:
        product = self.numbers.product
        mixed: Long = product(self.numbers.one - self.least, inside) + product(self.least, total)
        return mixed

    def weighted(self, sums: Long) -> Long:
        """For each column ``sum_y s_y x_y`` of amounts whose sums up to each label are given."""
        within = self._over_intervals(sums)
        return np.concatenate((within, self._over_sets(np.diff(sums, prepend=0)))) if self.sets else within

    def gathered(self, amounts: Long) -> Long:
        """The transpose of :meth:`weighted`: for each sum, from amounts of columns."""
        product, table = self.numbers.product, self._table(amounts)
        inside: Long = (table.sum(axis=0) - table.sum(axis=1))[1:]
        if self.sets:
            each = amounts[-len(self.sets) :] @ self.members
            inside = inside + each
            inside[:-1] -= each[1:]
        gathered: Long = product(self.numbers.one - self.least, inside)
        gathered[-1] += product(self.least, amounts.sum())
        return gathered

    def squared(self, amounts: Long) -> Long:
        """The matrix of ``sum_j a_j (weighted_j)**2`` over the sums."""
        product, table, k = self.numbers.product, self._table(amounts), self.problem.k
        share, least = self.numbers.one - self.least, self.least
        matrix = -table - table.T
        matrix[np.arange(k + 1), np.arange(k + 1)] = table.sum(axis=0) + table.sum(axis=1)
        matrix = product(share, share, matrix)
        mixed = product(share, least, table.sum(axis=0) - table.sum(axis=1))
        matrix[:, -1] += mixed
        matrix[-1] += mixed
        some = amounts[: amounts.size - len(self.sets)]
        matrix[-1, -1] += product(least, least, some.sum())
        matrix = matrix[1:, 1:]
        if self.sets:
            rows = self.members * share
            rows[:, :-1] -= self.members[:, 1:] * share
            rows[:, -1] += least
            matrix = matrix + product(rows.T, 1 << self.numbers.bits) @ product(
                rows, amounts[some.size :, np.newaxis]
            ) // (self.numbers.one)
        squared: Long = matrix
        return squared

    def _table(self, amounts: Long) -> Long:
        """Amounts of intervals by first and end node."""
        k = self.problem.k
        table = np.zeros((k + 1, k + 1), dtype=object)
        table[self.intervals] = amounts[: amounts.size - len(self.sets)]
        return table

    @cached_property
    def moments(self) -> tuple[Long, Long, Long]:
        """Weight, weight times mean, and half the weight times square of the labels of each column."""
        product = self.numbers.product
        weights, firsts, squares = (
            self.weighted(np.cumsum(amounts))
            for amounts in (self.prior, product(self.prior, self.labels), product(self.prior, self.labels, self.labels))
        )
        return weights, firsts, squares >> 1

    def columns(self, sums: Long) -> Columns:
        """Columns under multipliers whose sums are given, ``(2, k)``."""
        product = self.numbers.product
        alpha, beta = self.weighted(sums[0]), self.weighted(sums[1])
        weights, firsts, squares = self.moments
        slopes = firsts + beta
        best = self.numbers.quotient(slopes, weights)
        outputs = best if self.box is None else np.clip(best, *self.box)
        costs = squares - alpha + product(product(weights, outputs) // 2 - slopes, outputs)
        return Columns(costs, outputs, (outputs == best).astype(np.bool_))

    @cached_property
    def gain(self) -> Long:
        """What is maximised but for the price of bias, as coefficients of the sums."""
        gain = np.zeros((2, self.problem.k), dtype=object)
        gain[0, -1] = self.numbers.one
        gain[1] = self.labels
        gain[1, :-1] -= self.labels[1:]
        return gain

    @cached_property
    def charges(self) -> Long | None:
        """What the squared multiplier of a bias costs, twice."""
        if self.problem.unbiased:
            return None
        penalty = self.numbers.long(Fraction(self.problem.bias_penalty))
        charges: Long = self.numbers.quotient(
            self.numbers.one, np.maximum(self.numbers.product(penalty, self.prior), 1)
        )
        return charges

    def value(self, sums: Long) -> int:
        """What is maximised."""
        value = int(self.numbers.product(self.gain, sums).sum())
        if self.charges is not None:
            beta = np.diff(sums[1], prepend=0)
            value -= int(self.numbers.product(self.charges, beta, beta).sum()) >> 1
        return value

    def dual(self, sums: Long) -> Dual:
        """The multipliers in the units of the problem, as floats."""
        total = sum((Fraction(p) for p in self.problem.prior.tolist()), Fraction(0))
        unit = total * self.range
        alpha, beta = (list(map(self.numbers.rational, np.diff(some, prepend=0).tolist())) for some in sums)
        slopes = [unit * b for b in beta]
        heights = [unit * self.range * a - b * self.lowest for a, b in zip(alpha, slopes, strict=True)]
        return Dual(np.array(list(map(float, heights))), np.array(list(map(float, slopes))))
