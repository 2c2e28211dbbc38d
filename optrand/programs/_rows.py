"""Blocks of linear rows whose coefficients are known exactly, exponentials of epsilons included, and their programs.

A coefficient is ``value * exp(power)``, both floats. Solvers get it in floats. A proof gets a rational on the safe
side: one that relaxes the row for a bound of the optimum, one that tightens it for a table that must keep the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import floor

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from optrand.base._arithmetic import exp_bracket
from optrand.base._validation import Floats


def rational(x: float | Fraction) -> fmpq:
    """Return the exact value of a number as a rational of flint, with which sums take a fifth of the time.

    Examples
    --------
    >>> rational(0.75)
    3/4
    """
    return fmpq(*x.as_integer_ratio())


Entry = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
"""Rows, columns, values and powers of some coefficients: arrays that broadcast against each other."""


class Sense(Enum):
    """Relation of a row to its bound."""

    LESS = "<="
    EQUAL = "=="
    GREATER = ">="


class Side(Enum):
    """Direction in which exponentials are rounded."""

    RELAXED = 1
    TIGHTENED = -1


@dataclass(frozen=True)
class CellNames:
    """Names ``2, v=-1.5`` of rows that belong to one label and one output each, label by label."""

    labels: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, i: int) -> str:
        """Return the name of a row."""
        return f"{self.labels[i // len(self.outputs)]}, v={self.outputs[i % len(self.outputs)]}"


@dataclass(frozen=True)
class PairNames:
    """Names ``0 > 1, v=-1.5`` of rows that belong to an ordered pair of labels, and to an output if there are any."""

    labels: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    outputs: tuple[str, ...] = ()

    def __call__(self, i: int) -> str:
        """Return the name of a row."""
        y, z = self.pairs[i // max(1, len(self.outputs))]
        pair = f"{self.labels[y]} > {self.labels[z]}"
        return f"{pair}, v={self.outputs[i % len(self.outputs)]}" if self.outputs else pair


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``sum_j coefficient[i, j] x[j]  sense  bound[i]`` of one kind.

    Attributes
    ----------
    name : str
        Name of the block, under which multipliers are found.
    sense : Sense
    row, column : (m,) arrays of int
        Positions of the coefficients, in the order of the rows. Coefficients at one position add up.
    value, power : (m,) arrays
        The coefficients ``value * exp(power)``.
    bound, bound_power : (rows,) arrays
        The right-hand sides ``bound * exp(bound_power)``.
    shape : tuple of int
        Shape of the block's multipliers.
    label : callable
        Text that describes a row, by its number: ``"0 > 1, v=-1.5"`` in ``privacy[0 > 1, v=-1.5]``.
    """

    name: str
    sense: Sense
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: Floats
    power: Floats
    bound: Floats
    bound_power: Floats
    shape: tuple[int, ...]
    label: Callable[[int], str]

    @classmethod
    def of(
        cls,
        name: str,
        sense: Sense,
        entries: Sequence[Entry],
        bound: ArrayLike,
        *,
        shape: tuple[int, ...],
        label: Callable[[int], str],
        bound_power: float = 0.0,
    ) -> Rows:
        """Collect entries and sort them by row."""
        flat = [[part.ravel() for part in np.broadcast_arrays(*entry)] for entry in entries]
        row, column, value, power = (np.concatenate(parts) for parts in zip(*flat, strict=True))
        used = value != 0
        # By row: :meth:`exact` cuts the entries at the first one of each row.
        order = np.argsort(row[used], kind="stable")
        row, column, value, power = (part[used][order] for part in (row, column, value, power))
        count = int(np.prod(shape))
        bounds = np.broadcast_to(np.asarray(bound, dtype=np.float64), shape).ravel()
        return cls(
            name,
            sense,
            row.astype(np.intp),
            column.astype(np.intp),
            value.astype(np.float64),
            power.astype(np.float64),
            bounds,
            np.full(count, bound_power),
            shape,
            label,
        )

    def row_name(self, i: int) -> str:
        """Return the name of a row, such as ``mean[2]``."""
        return f"{self.name}[{self.label(i)}]"

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
        low = -none if self.sense is Sense.LESS else bound
        high = none if self.sense is Sense.GREATER else bound
        return low, high

    def violation(self, residual: fmpq) -> fmpq:
        """Return by how much a row of some residual (left side less right side) is broken. At most 0 if it holds."""
        if self.sense is Sense.EQUAL:
            return abs(residual)
        return residual if self.sense is Sense.LESS else -residual

    def exact(
        self, side: Side, chosen: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[int, list[tuple[int, fmpq]], fmpq]]:
        """Yield number, coefficients and right-hand side of rows in rationals.

        Variables are never negative, so a row ``<=`` is relaxed by smaller coefficients and a larger right-hand side.

        Parameters
        ----------
        side : Side
        chosen : (count,) array of bool, optional
            Rows to yield, all by default.
        """
        # The coefficients of a relaxed row `<=` are rounded down, those of a relaxed row `>=` up,
        # and right-hand sides the other way.
        up = side.value if self.sense is Sense.GREATER else -side.value
        starts = np.searchsorted(self.row, np.arange(self.count + 1)).tolist()
        columns, values, powers = self.column.tolist(), self.value.tolist(), self.power.tolist()
        numbers = range(self.count) if chosen is None else np.flatnonzero(chosen).tolist()
        for i in numbers:
            entries = [(columns[j], _coefficient(values[j], powers[j], up)) for j in range(starts[i], starts[i + 1])]
            yield i, entries, _coefficient(float(self.bound[i]), float(self.bound_power[i]), -up)


@lru_cache(maxsize=1 << 16)
def _coefficient(value: float, power: float, up: int) -> fmpq:
    """Return a rational at least ``value * exp(power)`` if `up` is 1, at most if it is -1. Exact if power is 0."""
    if power == 0 or value == 0:
        return rational(value)
    low, high = exp_bracket(power)
    # A negative value rises as its exponential falls.
    larger = (value > 0) == (up > 0)
    return rational(value) * rational(_above(high) if larger else _below(low))


def _below(x: Fraction) -> Fraction:
    """Return the largest fraction with 96 significant bits and a power of two below it that is at most `x`."""
    # Far more digits than those of a float, and still cheap to add up.
    shift = 96 - (abs(x.numerator).bit_length() - x.denominator.bit_length())
    scale = Fraction(2) ** shift
    return floor(x * scale) / scale


def _above(x: Fraction) -> Fraction:
    return -_below(-x)


@dataclass(frozen=True)
class Variables:
    """The variables of a program: a table whose rows are distributions, and more variables between 0 and 1.

    Attributes
    ----------
    k, n : int
        Shape of the table, ``(0, 0)`` for a program without one.
    names : tuple of str
        Names of the table's entries row by row, and of the variables behind it.
    """

    k: int
    n: int
    names: tuple[str, ...]

    @property
    def cells(self) -> int:
        """Number of entries of the table."""
        return self.k * self.n


class Model:
    """A linear program: variables, an objective in floats, and named blocks of rows.

    Attributes
    ----------
    variables : Variables
    cost : (variables,) array
        Coefficients of the objective.
    maximize : bool
    blocks : dict of Rows
        By their names, in the order of the rows.
    """

    maximize: bool

    def _begin(self, variables: Variables, cost: Floats) -> None:
        self.variables = variables
        self.cost = cost
        self.blocks = dict[str, Rows]()

    def _append(self, block: Rows) -> None:
        """Add a block. If its name is taken, number it."""
        name, number = block.name, 1
        while name in self.blocks:
            number += 1
            name = f"{block.name} {number}"
        # A new dict, so that rows that are added to a program do not change a copy of it.
        self.blocks = {**self.blocks, name: replace(block, name=name)}

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(block.count for block in self.blocks.values())

    def matrices(self) -> tuple[sparse.csr_array, Floats, Floats]:
        """Return the coefficients of all rows in floats, and the lower and upper limits of the rows."""
        columns, blocks = len(self.variables.names), self.blocks.values()
        limits = [block.limits() for block in blocks]
        matrix = sparse.csr_array(sparse.vstack([block.matrix(columns) for block in blocks]))
        low, high = (np.concatenate(side) for side in zip(*limits, strict=True))
        return matrix, low, high

    def residuals(
        self, point: Sequence[fmpq], names: Iterable[str] | None = None
    ) -> Iterator[tuple[Rows, int, list[tuple[int, fmpq]], fmpq]]:
        """Generate block, number, coefficients and residual of each row at a point, exactly.

        The residual is the left side less the right side, with tightened exponentials. Rows of all blocks by default.
        """
        for name in self.blocks if names is None else names:
            block = self.blocks[name]
            for number, entries, limit in block.exact(Side.TIGHTENED):
                yield block, number, entries, sum((a * point[j] for j, a in entries), fmpq(0)) - limit

    def slacks(self, point: Sequence[fmpq]) -> list[fmpq]:
        """Return how far each row is from its limit at a point, exactly: below 0 if it is broken, 0 for equations."""
        signs = {Sense.LESS: -1, Sense.EQUAL: 0, Sense.GREATER: 1}
        return [signs[block.sense] * residual for block, _, _, residual in self.residuals(point)]

    def row_names(self) -> list[str]:
        """Return the names of all rows, such as ``privacy[0 > 1, v=-1.5]`` or ``mean[2]``."""
        return [block.row_name(i) for block in self.blocks.values() for i in range(block.count)]

    def split_duals(self, duals: Floats) -> dict[str, Floats]:
        """Cut multipliers of all rows into those of each block, in the block's shape."""
        ends = np.cumsum([block.count for block in self.blocks.values()])
        parts = np.split(duals, ends[:-1])
        return {name: part.reshape(self.blocks[name].shape) for name, part in zip(self.blocks, parts, strict=True)}

    def upper(self) -> Floats:
        """Return the variables' upper bounds: infinity for entries of the table, whose rows sum to 1, otherwise 1."""
        bounds = np.ones(len(self.variables.names))
        bounds[: self.variables.cells] = math.inf
        return bounds
