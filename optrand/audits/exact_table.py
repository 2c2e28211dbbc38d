"""Third-party tables of probabilities, read without rounding: floats, fractions, or decimals as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.arithmetic import Integers, exact_integers
from optrand.base.numerals import read_decimal
from optrand.base.records import Record
from optrand.base.validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.model.table import Table

__all__ = ["TOLERANCE", "ExactTable", "Worst", "read_fraction"]

TOLERANCE = 1e-9
"""Relative tolerance of rows and ratios of a table of floats."""

PRINTED = 15
"""Significant digits of text from which on it is taken for a printed float."""


@dataclass(frozen=True)
class Worst:
    """Output with the largest privacy loss, and the two labels that it distinguishes.

    Attributes
    ----------
    output : object
        Name of the output, or its column.
    likely, unlikely : object
        Names of the labels, or their rows: the output is most probable if the label is `likely`.
    largest, smallest : Fraction
        Probabilities of the output for the two.
    """

    output: Any
    likely: Any
    unlikely: Any
    largest: Fraction
    smallest: Fraction

    @property
    def ratio(self) -> Fraction | None:
        """Ratio of the two probabilities. None if it is infinite, or if a probability is negative."""
        return None if self.smallest <= 0 < self.largest or self.smallest < 0 else self.largest / self.smallest

    def __str__(self) -> str:
        """Return one sentence."""
        return (
            f"output {self.output} has probability {_show(self.largest)} where the label is {self.likely}, "
            f"and {_show(self.smallest)} where it is {self.unlikely}"
        )


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
    def normalised(self) -> Table:
        """Rows divided by their sums, in integers, without outputs that never occur.

        Raises
        ------
        InvalidInput
            A probability is negative.
        """
        k, m = self.shape
        return self.over(np.arange(k), np.arange(m))

    def over(self, labels: Floats | NDArray[np.intp], outputs: Floats | NDArray[np.intp]) -> Table:
        """Return the normalised table of distinct numbers in any order, with rows and columns in increasing order."""
        totals = self.weights.sum(axis=1)
        whole = self.weights * (math.lcm(*totals.tolist()) // totals)[:, np.newaxis]
        rows, columns = np.argsort(labels), np.argsort(outputs)
        return Table.of_rows(labels[rows], outputs[columns], whole[np.ix_(rows, columns)])

    @cached_property
    def worst(self) -> Worst:
        """Rows and column with the largest ratio. Of infinite ones, that of the most probable event."""
        pairs = zip(self.weights.argmax(axis=0).tolist(), self.weights.argmin(axis=0).tolist(), strict=True)
        columns = [
            Worst(o, y, z, Fraction(self.weights[y, o], self.unit), Fraction(self.weights[z, o], self.unit))
            for o, (y, z) in enumerate(pairs)
            if self.weights[y, o] or self.weights[z, o]
        ]
        return max(columns, key=lambda one: (one.ratio is None, one.largest if one.ratio is None else one.ratio))


def _show(probability: Fraction) -> str:
    return str(probability) if probability.denominator == 1 else f"{float(probability):.6g}"


def _is_float(entry: object) -> bool:
    digits = sum(map(str.isdigit, entry.lower().partition("e")[0].lstrip("+-0."))) if isinstance(entry, str) else 0
    return isinstance(entry, (float, np.floating)) or digits >= PRINTED


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
