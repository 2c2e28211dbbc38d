"""Blocks of linear rows whose coefficients are known exactly, exponentials of epsilons included, and their programs.

A coefficient is ``value * exp(power)``, both floats. Solvers get it in floats. A proof gets a rational on the safe
side: one that relaxes the row for a bound of the optimum, one that tightens it for a table that must keep the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from optrand.base._arithmetic import exp_bracket
from optrand.base._validation import Floats

Names = tuple[str, ...]

Entry = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
"""Rows, columns, values and powers of some coefficients: arrays that broadcast against each other."""

ExactRow = tuple[int, list[tuple[int, fmpq]], fmpq]
"""Number of a row, its coefficients by their columns, and its right-hand side."""


def rational(x: float | Fraction) -> fmpq:
    """Return the exact value of a number as a rational of flint, with which sums take a fifth of the time.

    Examples
    --------
    >>> rational(0.75)
    3/4
    """
    return fmpq(*x.as_integer_ratio())


class Sense(Enum):
    """Relation of a row to its bound."""

    LESS = "<="
    EQUAL = "=="
    GREATER = ">="


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``sum_j coefficient[i, j] x[j]  sense  bound[i]`` of one kind, whose multipliers are found by the name.

    Attributes
    ----------
    name : str
    sense : Sense
    row, column, value, power : (m,) arrays
        The coefficients ``value * exp(power)``, in the order of the rows. Those at one position add up.
    bound : (rows,) array
    bound_power : float
        The right-hand sides are ``bound * exp(bound_power)``.
    axes : tuple
        Names along each axis of the block's multipliers: ``("0 > 1", ...), ("v=-1.5", ...)``.
    """

    name: str
    sense: Sense
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: Floats
    power: Floats
    bound: Floats
    bound_power: float
    axes: tuple[Names, ...]

    @classmethod
    def of(
        cls, name: str, sense: Sense, entries: Sequence[Entry], bound: ArrayLike, *axes: Names, bound_power: float = 0.0
    ) -> Rows:
        """Collect entries and sort them by row."""
        flat = [[part.ravel() for part in np.broadcast_arrays(*entry)] for entry in entries]
        row, column, value, power = (np.concatenate(parts) for parts in zip(*flat, strict=True))
        used = value != 0
        # By row: :meth:`exact` cuts the entries at the first one of each row.
        order = np.argsort(row[used], kind="stable")
        row, column, value, power = (part[used][order] for part in (row, column, value, power))
        bounds = np.broadcast_to(np.asarray(bound, dtype=np.float64), tuple(map(len, axes))).ravel()
        floats = value.astype(np.float64), power.astype(np.float64)
        return cls(name, sense, row.astype(np.intp), column.astype(np.intp), *floats, bounds, bound_power, axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the block's multipliers."""
        return tuple(map(len, self.axes))

    def row_names(self) -> list[str]:
        """Return the names of the rows, such as ``mean[2]`` or ``privacy[0 > 1, v=-1.5]``."""
        return [f"{self.name}[{', '.join(parts)}]" for parts in product(*self.axes)]

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.bound.size

    def matrix(self, columns: int) -> sparse.csr_array:
        """Return coefficients in floats, shape ``(count, columns)``."""
        data = self.value * np.exp(self.power)
        return sparse.csr_array(sparse.coo_array((data, (self.row, self.column)), shape=(self.count, columns)))

    def limits(self) -> tuple[Floats, Floats]:
        """Return the lower and upper limits of the rows in floats, infinite if there is no limit."""
        bound = self.bound * np.exp(self.bound_power)
        none = np.full(self.count, np.inf)
        return -none if self.sense is Sense.LESS else bound, none if self.sense is Sense.GREATER else bound

    def exact(self, *, relaxed: bool, chosen: NDArray[np.bool_] | None = None) -> Iterator[ExactRow]:
        """Yield rows in rationals, all of them or those `chosen`, with exponentials that relax or tighten them.

        Variables are never negative, so a row ``<=`` is relaxed by smaller coefficients and a larger right-hand side.
        """
        # The coefficients of a relaxed row `<=` are rounded down, those of a relaxed row `>=` up,
        # and right-hand sides the other way.
        up = (self.sense is Sense.GREATER) == relaxed
        starts = np.searchsorted(self.row, np.arange(self.count + 1)).tolist()
        columns, values, powers = self.column.tolist(), self.value.tolist(), self.power.tolist()
        for i in range(self.count) if chosen is None else np.flatnonzero(chosen).tolist():
            entries = [
                (columns[j], _round_coefficient(values[j], powers[j], up)) for j in range(starts[i], starts[i + 1])
            ]
            yield i, entries, _round_coefficient(float(self.bound[i]), self.bound_power, not up)


@lru_cache(maxsize=1 << 16)
def _round_coefficient(value: float, power: float, up: bool) -> fmpq:
    """Return a rational at least ``value * exp(power)`` if it is rounded up, otherwise at most. Exact if power is 0."""
    if power == 0 or value == 0:
        return rational(value)
    low, high = exp_bracket(power)
    # A negative value rises as its exponential falls.
    return rational(value) * rational(-_round_down(-high) if (value > 0) == up else _round_down(low))


def _round_down(x: Fraction) -> Fraction:
    """Return the largest fraction with 96 significant bits and a power of two below it that is at most `x`."""
    # Far more digits than those of a float, and still cheap to add up.
    shift = 96 - (abs(x.numerator).bit_length() - x.denominator.bit_length())
    scale = Fraction(2) ** shift
    return math.floor(x * scale) / scale


class Model:
    """A linear program over a table whose rows are distributions, and further variables between 0 and 1.

    Attributes
    ----------
    labels, prior, outputs : arrays
        Empty for a program without a table.
    maximize : bool
    k, n : int
        Shape of the table, ``(0, 0)`` for a program without one.
    variable_names : tuple of str
        Names of the table's entries row by row, and of the variables behind it.
    cost : (variables,) array
        Coefficients of the objective, in floats.
    blocks : dict of Rows
        By their names, in the order of the rows.
    private, added : tuples of str
        Names of the blocks that belong to notions of privacy, and of those that were added to the stated program.
    """

    def __init__(self, labels: Floats, prior: Floats, outputs: Floats, *, maximize: bool) -> None:
        self.labels = labels
        self.prior = prior
        self.outputs = outputs
        self.maximize = maximize
        self.k, self.n = labels.size, outputs.size
        self.variable_names: Names = ()
        self.cost: Floats = np.zeros(0)
        self.blocks: dict[str, Rows] = {}
        self.private: Names = ()
        self.added: Names = ()

    def _append(self, *blocks: Rows) -> None:
        """Add blocks. If the name of one is taken, number it."""
        for block in blocks:
            name, number = block.name, 1
            while name in self.blocks:
                number += 1
                name = f"{block.name} {number}"
            # A new dict, so that rows that are added to a program do not change a copy of it.
            self.blocks = {**self.blocks, name: replace(block, name=name)}

    @property
    def label_names(self) -> Names:
        """Labels, as they stand in names of rows and variables."""
        return tuple(f"{y:.12g}" for y in self.labels)

    @property
    def output_names(self) -> Names:
        """Outputs, as they stand in names of rows and variables."""
        return tuple(f"v={v:.12g}" for v in self.outputs)

    @property
    def cells(self) -> int:
        """Number of entries of the table."""
        return self.k * self.n

    @property
    def variables(self) -> int:
        """Number of variables: the entries of the table, and those that notions of privacy need beside it."""
        return len(self.variable_names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(block.count for block in self.blocks.values())

    def row_names(self) -> list[str]:
        """Return the names of all rows, such as ``privacy[0 > 1, v=-1.5]`` or ``mean[2]``."""
        return [name for block in self.blocks.values() for name in block.row_names()]

    def matrices(self) -> tuple[sparse.csr_array, Floats, Floats]:
        """Return the coefficients of all rows in floats, and the lower and upper limits of the rows."""
        blocks = self.blocks.values()
        matrix = sparse.csr_array(sparse.vstack([block.matrix(self.variables) for block in blocks]))
        low, high = (np.concatenate(side) for side in zip(*(block.limits() for block in blocks), strict=True))
        return matrix, low, high

    def upper(self) -> Floats:
        """Return the variables' upper bounds: infinity for entries of the table, whose rows sum to 1, otherwise 1."""
        return np.where(np.arange(self.variables) < self.cells, np.inf, 1.0)

    def slacks(
        self, point: Sequence[fmpq], names: Iterable[str] | None = None
    ) -> Iterator[tuple[Rows, int, list[tuple[int, fmpq]], fmpq]]:
        """Generate block, number, coefficients and slack of each row at a point, exactly.

        The slack is that of a row with tightened exponentials: below 0 if the row is violated, 0 for equations that
        hold. Rows of all blocks by default.
        """
        for name in self.blocks if names is None else names:
            block = self.blocks[name]
            for number, entries, limit in block.exact(relaxed=False):
                residual = sum((a * point[j] for j, a in entries), fmpq(0)) - limit
                slack = residual if block.sense is Sense.GREATER else -residual
                yield block, number, entries, -abs(residual) if block.sense is Sense.EQUAL else slack
