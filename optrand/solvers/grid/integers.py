r"""Programs on a grid in integers: equations and biases of columns, to as many digits as the problem asks for.

With :math:`e = e^{-\epsilon}` a column is :math:`s_y = 1` on a set of labels and :math:`e` elsewhere. Its rows are
:math:`s_y`, and :math:`s_y (v - y)` where bias is not free: measured from each label, so that no digits cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import Integers, exp_bracket, places
from optrand.base.validation import Floats
from optrand.model.outputs import Grid
from optrand.model.problem import Problem

__all__ = ["Columns", "Numbers"]

SPARE = 384
"""Binary digits beyond those that the problem's own numbers take."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of a problem as integers in units of ``2**-digits``.

    Attributes
    ----------
    costs, apart : (k, n) arrays of int
        Losses times the prior, over `unit`; outputs less labels, over `width`.
    charges : (k,) array of int
        ``penalty * prior * width**2 / unit``; empty unless the penalty is positive and finite.
    least : int
        ``exp(-epsilon)``.
    hard : int
        Number of equations: of rows, and of means where no bias is allowed.
    """

    costs: Integers
    apart: Integers
    charges: Integers
    least: int
    hard: int
    digits: int
    labels: Floats
    outputs: Floats
    width: Fraction
    unit: Fraction

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.costs.shape[0])

    @property
    def rows(self) -> int:
        """Number of equations and of biases that have a price."""
        return self.hard + self.charges.size

    @classmethod
    def of(cls, problem: Problem) -> Numbers:
        """Scale a problem on a grid."""
        grid = problem.outputs.values if isinstance(problem.outputs, Grid) else problem.labels
        table = problem.prior[:, np.newaxis] * problem.loss_table(grid)
        sizes = np.abs(table[table != 0])
        unit, smallest = (Fraction(float(x)) for x in (sizes.max(), sizes.min())) if sizes.size else (Fraction(1),) * 2
        width = Fraction(float(np.abs(grid - problem.labels[:, np.newaxis]).max())) or Fraction(1)
        line = max(places(grid), places(problem.labels)) + _exponent(width)
        digits = (
            SPARE
            + 6 * math.ceil(problem.epsilon * math.log2(math.e))
            + 2 * max(line, 0)
            + 2 * (_exponent(unit) - _exponent(smallest))
        )
        one = 1 << digits
        labels, values = ([Fraction(x) / width for x in some.tolist()] for some in (problem.labels, grid))
        priced = bool(problem.bias_penalty) and not problem.unbiased
        factor = Fraction(problem.bias_penalty) * width**2 / unit if priced else Fraction(0)
        return cls(
            costs=np.array([[int(Fraction(x) / unit * one) for x in row] for row in table.tolist()], dtype=object),
            apart=np.array([[int((v - y) * one) for v in values] for y in labels], dtype=object),
            charges=np.array([int(factor * Fraction(p) * one) for p in problem.prior.tolist() if priced], dtype=object),
            least=int(one / exp_bracket(problem.epsilon, 60 + digits // 3)[0]),
            hard=2 * problem.k if problem.unbiased else problem.k,
            digits=digits,
            labels=problem.labels,
            outputs=grid,
            width=width,
            unit=unit,
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns with a row for each equation and each bias that has a price; artificial ones have no output (-1)."""

    members: NDArray[np.bool_]
    at: NDArray[np.intp]
    matrix: Integers
    costs: Integers

    @classmethod
    def of(cls, numbers: Numbers, members: NDArray[np.bool_], at: NDArray[np.intp]) -> Columns:
        """Columns of some sets at some outputs."""
        steep = np.array([numbers.least, 1 << numbers.digits], dtype=object)[members.astype(np.intp)]
        costs = ((steep * numbers.costs[:, at]) >> numbers.digits).sum(axis=0)
        parts = [steep]
        if numbers.rows > members.shape[0]:
            parts.append((steep * numbers.apart[:, at]) >> numbers.digits)
        return cls(members, at, np.vstack(parts), np.asarray(costs, dtype=object).reshape(at.size))

    @classmethod
    def artificial(cls, numbers: Numbers, cost: int) -> Columns:
        """One column an equation, with nothing in any other."""
        k, hard = numbers.k, numbers.hard
        matrix = np.full((numbers.rows, hard), 0, dtype=object)
        matrix[np.arange(hard), np.arange(hard)] = 1 << numbers.digits
        return cls(np.zeros((k, hard), dtype=bool), np.full(hard, -1), matrix, np.full(hard, cost, dtype=object))

    def with_one(self, other: Columns) -> Columns:
        """These and other columns."""
        return Columns(
            np.hstack((self.members, other.members)),
            np.append(self.at, other.at),
            np.hstack((self.matrix, other.matrix)),
            np.append(self.costs, other.costs),
        )

    def exchanged(self, i: int, column: Columns) -> Columns:
        """These with another column in the place of one."""
        new = Columns(self.members.copy(), self.at.copy(), self.matrix.copy(), self.costs.copy())
        new.members[:, i], new.at[i] = column.members[:, 0], column.at[0]
        new.matrix[:, i], new.costs[i] = column.matrix[:, 0], column.costs[0]
        return new

    def only(self, kept: NDArray[np.intp]) -> Columns:
        """Some of the columns."""
        return Columns(self.members[:, kept], self.at[kept], self.matrix[:, kept], self.costs[kept])


def _exponent(number: Fraction) -> int:
    """About the binary logarithm of a positive number."""
    return number.numerator.bit_length() - number.denominator.bit_length()
