"""Blocks of linear rows whose coefficients are known exactly, exponentials of epsilons included.

A coefficient is ``value * exp(power)``, both floats. Solvers get it in floats. A proof gets a rational on the safe
side: one that relaxes the row for a bound of the optimum, one that tightens it for a table that must keep the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
        """Return by how much a row of some residual (left side less right side) is broken; at most 0 if it holds."""
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
    """Return a rational at least ``value * exp(power)`` if `up` is 1, at most if it is -1; exact if power is 0."""
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
