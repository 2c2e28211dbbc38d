"""Tables of probabilities in CSV files: numbers alone, or with names of outputs above and of labels on the left."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from optrand.errors import InvalidInput
from optrand.release.decimals import decimal

__all__ = ["Sheet", "read_sheet"]

Names = tuple[str | float, ...]


@dataclass(frozen=True)
class Sheet:
    """Table of a file, its entries as text, and the names that stand around it.

    Attributes
    ----------
    entries : list of list of str
        One row a label.
    labels, outputs : tuple or None
        Numbers where all of them are, else text; None where the file names none.
    """

    entries: list[list[str]]
    labels: Names | None
    outputs: Names | None


def read_sheet(path: Path) -> Sheet:
    """Read a comma-separated table.

    With a first line of names (its first cell is empty, or no number) its first column holds the labels.

    Raises
    ------
    InvalidInput
        A file that cannot be read, is empty or separated by something else, or lines of different lengths.
    """
    if not path.is_file():
        raise InvalidInput(f"{path} is {'no file' if path.exists() else 'not there'}: expected a CSV of probabilities")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text: expected a CSV of probabilities") from None
    lines = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline="")) if row]
    if not lines:
        raise InvalidInput(f"{path} is empty: expected a CSV of probabilities, one line a label")
    if len(lines[0]) == 1 and any(mark in lines[0][0] for mark in ";\t"):
        raise InvalidInput(f"{path} is separated by semicolons or tabs: expected commas")
    longer = next((i for i, row in enumerate(lines, 1) if len(row) != len(lines[0])), None)
    if longer is not None:
        raise InvalidInput(f"line {longer} of {path} has {len(lines[longer - 1])} cells, the first has {len(lines[0])}")
    if _number(lines[0][0]) is not None:
        return Sheet(lines, None, None)
    if len(lines) == 1 or len(lines[0]) == 1:
        raise InvalidInput(f"{path} holds names and no probabilities: expected one line a label below the first line")
    return Sheet([row[1:] for row in lines[1:]], _names([row[0] for row in lines[1:]]), _names(lines[0][1:]))


def _names(cells: list[str]) -> Names:
    numbers = [_number(cell) for cell in cells]
    whole = [number for number in numbers if number is not None]
    return tuple(whole) if len(whole) == len(cells) else tuple(cells)


def _number(cell: str) -> float | None:
    """Number that a cell holds, a fraction of two included."""
    try:
        parts = [decimal(part, "a cell") for part in cell.split("/")]
    except InvalidInput:
        return None
    return float(parts[0] / (parts[1] if len(parts) > 1 else 1))
