"""Third-party tables of probabilities, read without rounding: floats, fractions, decimals as text, and CSV files.

A file may have the names of outputs in its first line, and the names of labels in its first column.
"""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import Integers
from optrand.base._numerals import read_decimal
from optrand.base._validation import Floats, Record, freeze, rectangular
from optrand.errors import InvalidInput
from optrand.model._table import Table

Names = tuple[str | float, ...]
Line = Sequence[str]

TOLERANCE = 1e-9
"""Relative tolerance of rows and ratios of a table of floats."""

NEARLY_ONE = Fraction(1, 20)
"""Rows whose sums miss 1 by less than this may be probabilities, printed with few digits or in error."""

LABEL_TITLES = frozenset({"", "label", "labels", "y", "class", "classes", "index", "input", "unnamed: 0", "rownames"})
"""Titles of a column of labels, in lower case. Writers of data frames leave it empty."""

REMEDY = (
    "write names of the outputs in the first line and of the labels in the first column, and leave the first cell empty"
)


@dataclass(frozen=True, eq=False)
class ExactTable(Record):
    """Table of rationals over one denominator, with one row per label.

    `unit` counts as probability 1. The table is `rounded` if a float is among its entries, or text of 15 digits.

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
        """Freeze the weights."""
        freeze(self, "weights")

    @classmethod
    def of(cls, given: ArrayLike | Sequence[Sequence[object]]) -> ExactTable:
        """Read a table. Raise :class:`InvalidInput` for another shape, an entry that is no number, or an empty row."""
        # A mechanism has its table, and needs no audit.
        if hasattr(type(given), "certificate"):
            raise InvalidInput(
                f"matrix is of type {type(given).__name__}, which optrand.certify proves: pass a table of "
                "probabilities, such as its matrix"
            )
        array = rectangular(given, "matrix")
        if array.ndim != 2 or not array.size:
            raise InvalidInput(f"matrix has shape {array.shape}, expected (labels, outputs), one row per label")
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
        """Divide rows by their sums, and sort labels and outputs, which are distinct."""
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
    number: Any = entry
    try:
        # Floats with more digits than Python's keep all of them.
        return Fraction(*number.as_integer_ratio())
    except (ValueError, OverflowError):
        raise InvalidInput(f"{where} is {entry}, expected a probability") from None


class Sheet(NamedTuple):
    """Entries of a file as text, and the names of rows and columns: numbers if all of them are."""

    entries: list[list[str]]
    labels: Names | None
    outputs: Names | None


def read_sheet(path: Path) -> Sheet:
    """Read a comma-separated table, as pandas, polars, R or NumPy write it, with an index or without.

    Every column is either the first one, with the labels, or an output. A file whose first line or first column may be
    either names or probabilities is refused.
    """
    lines = _lines(path)
    first, rows = lines[0], lines[1:]
    if all(_number(cell) is not None for cell in first):
        if not _is_probabilities(lines):
            raise InvalidInput(f"{path} may begin with names or with probabilities: {REMEDY}")
        return Sheet([list(line) for line in lines], None, None)
    if not rows:
        raise InvalidInput(f"{path} holds names and no probabilities: expected one line per label below the first")
    if len(rows[0]) == len(first) + 1:
        # R names the outputs only.
        first = ["", *first]
    if not _are_names(first, rows):
        raise InvalidInput(f"the first line of {path} may hold names or probabilities: {REMEDY}")
    labelled = _has_labels(first, rows)
    if labelled is None:
        raise InvalidInput(f"the first column of {path} may hold labels or probabilities: {REMEDY}")
    start = int(labelled)
    if len(first) == start:
        raise InvalidInput(f"{path} holds names and no probabilities: expected a column for each output")
    labels = _names([row[0] for row in rows]) if labelled else None
    return Sheet([list(row[start:]) for row in rows], labels, _names(first[start:]))


def _lines(path: Path) -> list[list[str]]:
    """Return the cells of the lines. All lines have one length, except that the first may have one cell less."""
    if not path.is_file():
        raise InvalidInput(f"{path} is {'no file' if path.exists() else 'not there'}: expected a CSV of probabilities")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text: expected a CSV of probabilities") from None
    # NumPy marks a line of names by "# ".
    cells = csv.reader(io.StringIO(text.removeprefix("#"), newline=""), strict=True)
    try:
        lines = [[cell.strip() for cell in row] for row in cells if row]
    except csv.Error as error:
        raise InvalidInput(f"line {cells.line_num} of {path} is not comma-separated text: {error}") from None
    if any("\n" in cell or "\r" in cell for line in lines for cell in line):
        raise InvalidInput(f"{path} holds a quoted cell of several lines, which may hide some of the table: fix it")
    if not lines:
        raise InvalidInput(f"{path} is empty: expected a CSV of probabilities, one line per label")
    if len(lines[0]) == 1 and any(mark in lines[0][0] for mark in ";\t"):
        raise InvalidInput(f"{path} is separated by semicolons or tabs: expected commas")
    width = len(lines[0])
    if len(lines) > 1 and len(lines[1]) == width + 1 and _number(lines[0][0]) is None:
        width += 1
    for number, row in enumerate(lines[1:], 2):
        if len(row) != width:
            raise InvalidInput(f"line {number} of {path} has {len(row)} cells, expected {width} as above it")
    return lines


def _is_probabilities(lines: Sequence[Line]) -> bool:
    """Return whether lines of numbers are all probabilities, without names above them or labels on the left."""
    first, rows = lines[0], lines[1:]
    if len(first) > 1 and _is_counted(first):
        return False
    if rows and _sum_error(rows) < NEARLY_ONE <= _sum_error([first]):
        return False
    return _sum_error(lines) < NEARLY_ONE or len(first) == 1 or _sum_error([line[1:] for line in lines]) >= NEARLY_ONE


def _are_names(first: Line, rows: Sequence[Line]) -> bool:
    """Return whether a first line, not all of it numbers, holds names and no probability."""
    title, rest = first[0].lower(), first[1:]
    # Above names of labels, "y" may mean yes, and the line may hold its probabilities, which need not sum to 1.
    titled = title in LABEL_TITLES and (title != "y" or all(_number(row[0]) is not None for row in rows))
    if rest and all(map(_may_be_probability, rest)):
        # It may be the row of a label with such a name, or without a name.
        return titled and (_is_counted(rest) or _sum_error([rest]) >= NEARLY_ONE)
    numbers = [number for number in map(_number, first) if number is not None]
    return titled or not numbers or (len(numbers) == len(rest) and _number(first[0]) is None)


def _has_labels(first: Line, rows: Sequence[Line]) -> bool | None:
    """Return whether the first column below a line of names holds labels, or None if that is ambiguous."""
    cells, title = [row[0] for row in rows], first[0].lower()
    numbers = [number for number in map(_number, cells) if number is not None]
    outputs, labels = _read_both_ways(rows)
    # Cells that may be unreadable probabilities, such as 5 % or 1e-500, count as names only below an empty title.
    unread = any(_number(cell) is None and _may_be_probability(cell) for cell in cells)
    if title in LABEL_TITLES:
        return None if outputs or (title and unread) else True
    if unread:
        return None
    if not numbers:
        return True
    if all(0 <= number <= 1 for number in numbers):
        return False if outputs and not labels else None
    return True if labels and not outputs else None


def _read_both_ways(rows: Sequence[Line]) -> tuple[bool, bool]:
    """Return whether rows are probabilities with the first column, and without it. Exact sums decide if both may be."""
    outputs, labels = _sum_error(rows), _sum_error([row[1:] for row in rows])
    if max(outputs, labels) < NEARLY_ONE and min(outputs, labels) <= TOLERANCE < max(outputs, labels):
        return outputs <= TOLERANCE, labels <= TOLERANCE
    return outputs < NEARLY_ONE, labels < NEARLY_ONE


def _sum_error(rows: Sequence[Line]) -> Fraction | float:
    """Return the largest distance of the sum of a row from 1, infinite if an entry is not a number."""
    try:
        sums = [sum((read_fraction(cell, "a cell") for cell in row), Fraction(-1)) for row in rows]
    except InvalidInput:
        return math.inf
    return max(map(abs, sums))


def _is_counted(names: Line) -> bool:
    """Return whether names are numbers from 0 or from 1 on."""
    return any(list(names) == [str(start + i) for i in range(len(names))] for start in (0, 1))


def _may_be_probability(cell: str) -> bool:
    """Return whether a cell is a number from 0 to 1, or text that may stand for one: 5 %, <0.001, 0,5, 0x1p-3, nan."""
    number = _number(cell)
    if number is not None:
        return 0 <= number <= 1
    # The normal form of one half in one character is 1, a fraction slash and 2.
    plain = unicodedata.normalize("NFKC", cell).lower().replace("\N{FRACTION SLASH}", "/").replace(",", ".")
    parts = [part.strip(" %\N{PER MILLE SIGN}") for part in plain.strip(" <>=~\N{LESS-THAN OR EQUAL TO}").split("/")]
    try:
        written = [float.fromhex(part) if "x" in part else float(part) for part in parts]
    except (ValueError, OverflowError):
        return False
    # A fraction of two that could not be read has a part that is not finite, or divides by 0. NaN is not above 0.5.
    return (
        len(parts) == 2 or plain[-1] in "%\N{PER MILLE SIGN}" or (len(parts) == 1 and not abs(written[0] - 0.5) > 0.5)
    )


def _names(cells: Line) -> Names:
    try:
        return tuple(float(read_fraction(cell, "a cell")) for cell in cells)
    except InvalidInput:
        return tuple(cells)


def _number(cell: str) -> Fraction | None:
    """Read the number that a cell holds, a fraction of two included."""
    try:
        return read_fraction(cell, "a cell")
    except InvalidInput:
        return None
