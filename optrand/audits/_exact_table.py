"""Third-party tables of probabilities, read without rounding: floats, fractions, or decimals as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import Integers, exact_integers
from optrand.base._numerals import read_decimal
from optrand.base._records import Record
from optrand.base._validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.model._table import Table

TOLERANCE = 1e-9
"""Relative tolerance of rows and ratios of a table of floats."""


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
        Whether a float is among the entries, or text of 15 digits, so that the table may be a rounded one.

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
    def negative(self) -> bool:
        """Whether a probability is negative."""
        return bool((self.weights < 0).any())

    def over(self, labels: Floats | NDArray[np.intp], outputs: Floats | NDArray[np.intp]) -> Table:
        """Return the table of distinct numbers in any order: rows divided by their sums, all in increasing order."""
        totals = self.weights.sum(axis=1)
        whole = self.weights * (math.lcm(*totals.tolist()) // totals)[:, np.newaxis]
        rows, columns = np.argsort(labels), np.argsort(outputs)
        return Table.of_rows(labels[rows], outputs[columns], whole[np.ix_(rows, columns)])


def _is_float(entry: object) -> bool:
    if isinstance(entry, str):
        # Text of 15 significant digits or more is a printed float.
        return sum(map(str.isdigit, entry.lower().partition("e")[0].lstrip("+-0."))) >= 15
    return isinstance(entry, (float, np.floating))


def read_fraction(text: str, where: str) -> Fraction:
    """Read a decimal, or a fraction of two. Raise :class:`InvalidInput` that begins with `where` otherwise."""
    over, slash, under = text.partition("/")
    below = read_decimal(under, where) if slash else Fraction(1)
    if not below:
        raise InvalidInput(f"{where} is divided by 0, expected a probability")
    return read_decimal(over, where) / below


def _exact(entry: Any, y: int, i: int) -> Fraction:
    where = f"the entry in row {y}, column {i} of the matrix"
    if isinstance(entry, np.generic):
        entry = entry.item()
    if isinstance(entry, str):
        return read_fraction(entry, where)
    if isinstance(entry, bool) or not isinstance(entry, (Real, Decimal)):
        raise InvalidInput(f"{where} is of type {type(entry).__name__}, expected a number, or a decimal as text")
    if isinstance(entry, Rational):
        return Fraction(entry)
    if not (entry.is_finite() if isinstance(entry, Decimal) else math.isfinite(entry)):
        raise InvalidInput(f"{where} is {entry}, expected a probability")
    # Floats with more digits than Python's keep all of them.
    return Fraction(*entry.as_integer_ratio()) if isinstance(entry, (Decimal, np.floating)) else Fraction(float(entry))
