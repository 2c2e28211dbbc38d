"""Third-party tables of probabilities, read without rounding: floats, fractions, or decimals as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.arithmetic import Integers, exact_integers, places, scaled
from optrand.base.decimals import decimal
from optrand.base.records import Record
from optrand.base.validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.model.table import Table

__all__ = ["TOLERANCE", "ExactTable", "Extremes", "deviations"]

Shares = NDArray[Any]
"""Probabilities as fractions."""

TOLERANCE = 1e-9
"""Relative tolerance of rows and ratios of a table of floats."""

PRINTED = 15
"""Significant digits of text from which on it is taken for a printed float."""


class Extremes(NamedTuple):
    """Largest and smallest probability of a column, and the rows that they stand in."""

    column: int
    high: int
    low: int
    largest: Fraction
    smallest: Fraction

    @property
    def ratio(self) -> Fraction | None:
        """Ratio of the two. None if it is infinite, or if a probability is negative."""
        return None if self.smallest <= 0 < self.largest or self.smallest < 0 else self.largest / self.smallest


@dataclass(frozen=True, eq=False)
class ExactTable(Record):
    """Table of rationals over one denominator, one row per label.

    Attributes
    ----------
    weights : (k, m) array of int
        Read-only.
    unit : int
        Sum of a row that counts as probability 1.
    rounded : bool
        Whether a float is among the entries, or text of :data:`PRINTED` digits, so that the table may be a rounded one.

    Examples
    --------
    >>> table = ExactTable.of([["0.75", "0.25"], ["1/4", "3/4"]])
    >>> table.weights.tolist(), table.unit, table.rounded
    ([[3, 1], [1, 3]], 4, False)
    """

    weights: Integers
    unit: int
    rounded: bool

    def __post_init__(self) -> None:
        """Copy the weights, and freeze them."""
        object.__setattr__(self, "weights", exact_integers(self.weights, "weights"))

    @classmethod
    def of(cls, given: ArrayLike | Sequence[Sequence[object]]) -> ExactTable:
        """Read a table, or raise :class:`InvalidInput`: another shape, entries that are not numbers, an empty row."""
        array = rectangular(given, "matrix")
        if array.ndim != 2 or not array.size:
            raise InvalidInput(f"matrix has shape {array.shape}, expected (labels, outputs): one row of it per label")
        elements = given if isinstance(given, (list, tuple)) else array.tolist()
        entries = [_exact(entry, y, i) for y, row in enumerate(elements) for i, entry in enumerate(row)]
        unit = math.lcm(*(entry.denominator for entry in entries))
        whole = [entry.numerator * (unit // entry.denominator) for entry in entries]
        weights = np.array(whole, dtype=object).reshape(array.shape)
        empty = np.flatnonzero(weights.sum(axis=1) <= 0)
        if empty.size:
            raise InvalidInput(f"row {empty[0]} of the matrix sums to 0 or less, expected probabilities")
        return cls(weights, unit, any(_is_float(entry) for row in elements for entry in row))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of labels and of outputs."""
        k, m = self.weights.shape
        return k, m

    @cached_property
    def sums(self) -> tuple[Fraction, ...]:
        """Sum of each row."""
        return tuple(Fraction(total, self.unit) for total in self.weights.sum(axis=1))

    @cached_property
    def negative(self) -> int:
        """Number of negative entries."""
        return int((self.weights < 0).sum())

    @cached_property
    def shares(self) -> Shares:
        """Rows divided by their sums, shape ``(k, m)``."""
        return np.array(
            [[Fraction(weight, total) for weight in row] for row, total in self._rows], dtype=object
        ).reshape(self.shape)

    @cached_property
    def normalised(self) -> Table:
        """Rows divided by their sums, in integers, without outputs that never occur.

        Raises
        ------
        InvalidInput
            A probability is negative.
        """
        unit = math.lcm(*(total for _, total in self._rows))
        k, m = self.shape
        return Table.of_rows(range(k), range(m), [[w * (unit // total) for w in row] for row, total in self._rows])

    @property
    def _rows(self) -> list[tuple[list[int], int]]:
        """Weights of each row, and their sum."""
        return [(row, sum(row)) for row in self.weights.tolist()]

    @cached_property
    def worst(self) -> Extremes:
        """Rows and column with the largest ratio."""
        return _worst(self.weights, self.unit)

    @cached_property
    def normalised_worst(self) -> Extremes:
        """Rows and column, as :attr:`worst`, of :attr:`shares`."""
        return _worst(self.shares, 1)


def _worst(weights: Integers | Shares, unit: int) -> Extremes:
    """Find the column of the largest ratio. Infinite ones come first, that of the most probable event before others."""
    highs, lows = weights.argmax(axis=0).tolist(), weights.argmin(axis=0).tolist()
    columns = [
        Extremes(o, high, low, Fraction(weights[high, o]) / unit, Fraction(weights[low, o]) / unit)
        for o, (high, low) in enumerate(zip(highs, lows, strict=True))
        if weights[high, o] or weights[low, o]
    ]
    return max(columns, key=lambda one: (one.ratio is None, one.largest if one.ratio is None else one.ratio))


def _is_float(entry: object) -> bool:
    digits = sum(map(str.isdigit, entry.lower().partition("e")[0].lstrip("+-0."))) if isinstance(entry, str) else 0
    return isinstance(entry, (float, np.floating)) or digits >= PRINTED


def _exact(entry: Any, y: int, i: int) -> Fraction:
    where = f"the entry in row {y}, column {i} of the matrix"
    if isinstance(entry, np.generic):
        entry = entry.item()
    if isinstance(entry, str):
        over, slash, under = entry.partition("/")
        below = decimal(under, where) if slash else Fraction(1)
        if not below:
            raise InvalidInput(f"{where} is divided by 0, expected a probability")
        return decimal(over, where) / below
    if isinstance(entry, bool) or not isinstance(entry, (Real, Decimal)):
        raise InvalidInput(f"{where} is of type {type(entry).__name__}, expected a number, or a decimal as text")
    if isinstance(entry, Rational):
        return Fraction(entry)
    if not (entry.is_finite() if isinstance(entry, Decimal) else math.isfinite(entry)):
        raise InvalidInput(f"{where} is {entry}, expected a probability")
    # Floats with more digits than Python's keep all of them.
    return Fraction(*entry.as_integer_ratio()) if isinstance(entry, (Decimal, np.floating)) else Fraction(float(entry))


def deviations(
    weights: Integers, labels: Floats, outputs: Floats, power: int = 1, *, total: int | None = None
) -> list[Fraction]:
    """Compute ``E[(v - y)**power]`` of each row of an integer table, over a total, by default the row's own.

    Examples
    --------
    >>> table = np.array([[3, 1], [1, 3]], dtype=object), np.array([0.0, 1.0]), np.array([-0.5, 1.5])
    >>> deviations(*table), deviations(*table, power=2)
    ([Fraction(0, 1), Fraction(0, 1)], [Fraction(3, 4), Fraction(3, 4)])
    """
    digits, totals = max(places(labels), places(outputs)), weights.sum(axis=1)
    rows, columns = (np.array(scaled(x, digits), dtype=object) for x in (labels, outputs))
    if power == 1:
        sums = weights @ columns - totals * rows
    else:
        sums = (weights * (columns - rows[:, np.newaxis]) ** power).sum(axis=1)
    pairs = zip(sums.tolist(), totals.tolist(), strict=True)
    return [Fraction(moment, (total or own) << (power * digits)) for moment, own in pairs]
