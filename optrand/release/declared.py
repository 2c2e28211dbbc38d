"""Public declarations before a release, as a user writes them: labels, perhaps a prior, and where outputs may lie.

Labels are the floats nearest to the decimals that are written.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

import numpy as np

from optrand.base.suggestions import missing
from optrand.base.validation import MAX_INTEGER, Floats, frozen, integer
from optrand.base.validation import labels as checked_labels
from optrand.errors import InvalidInput
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid, Interval, Line, OutputSet, feasible_output_set
from optrand.release.decimals import decimal, number, whole

__all__ = [
    "MAX_LABELS",
    "DeclaredOutputs",
    "EvenGrid",
    "PublicPrior",
    "allowed_outputs",
    "parse_clip",
    "parse_in_order",
    "parse_labels",
    "parse_outputs",
    "read_loss",
    "read_prior",
]

MAX_LABELS = 100_000
"""More labels than any solver here can treat; beyond it a range is more likely a slip."""


def parse_labels(text: str) -> Floats:
    """The set of labels that a text declares, in increasing order.

    Parameters
    ----------
    text : str
        ``LOW:HIGH`` (steps of 1), ``LOW:HIGH:STEP`` (both ends in), a list ``1,2.5,7``, or ``@FILE`` with labels
        separated by commas or line ends.

    Returns
    -------
    (k,) array

    Raises
    ------
    InvalidInput
        Text of another form, a range that runs downwards or whose steps miss its end, a repeated label, an integer
        beyond ``2**53``, or a file that cannot be read.

    Examples
    --------
    >>> parse_labels("0:1:0.25").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> parse_labels("7,-1,2.5").tolist()
    [-1.0, 2.5, 7.0]
    """
    return np.sort(parse_in_order(text))


def parse_in_order(text: str) -> Floats:
    """Distinct numbers in the forms of :func:`parse_labels`, in the order in which they are written.

    Examples
    --------
    >>> parse_in_order("7,-1,2.5").tolist()
    [7.0, -1.0, 2.5]
    """
    if text.startswith("@"):
        tokens = [token.strip() for token in _text(text[1:]).replace("\n", ",").split(",")]
        numbers = [decimal(token, f"entry {i + 1} of {text[1:]}") for i, token in enumerate(tokens) if token]
    elif ":" in text:
        numbers = _range(text)
    else:
        numbers = [decimal(token.strip(), f"label {i + 1} of --labels") for i, token in enumerate(text.split(","))]
    return checked_labels([_float(number) for number in numbers])


def _range(text: str) -> list[Fraction]:
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise InvalidInput(f"labels {text!r} have {len(parts)} parts, expected LOW:HIGH or LOW:HIGH:STEP")
    low, high = (decimal(part, f"an end of {text!r}") for part in parts[:2])
    step = decimal(parts[2], f"the step of {text!r}") if len(parts) == 3 else Fraction(1)
    if low > high:
        raise InvalidInput(f"labels {text!r} run downwards: write the lower end first, {parts[1]}:{parts[0]}")
    if step <= 0:
        raise InvalidInput(f"labels {text!r} have a step that is not above 0")
    steps = (high - low) / step
    if steps.denominator != 1:
        raise InvalidInput(f"labels {text!r} do not reach their high end in whole steps: choose another end or step")
    if steps >= MAX_LABELS:
        raise InvalidInput(f"labels {text!r} are {steps + 1} labels, expected at most {MAX_LABELS}: use a larger step")
    return [low + i * step for i in range(int(steps) + 1)]


def _float(number: Fraction) -> float:
    if number.denominator == 1 and abs(number) > MAX_INTEGER:
        raise InvalidInput("labels hold integers beyond 2**53, which floats cannot tell apart: rescale them")
    return float(number)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        state = "not readable" if Path(path).is_file() else missing(Path(path))
        raise InvalidInput(f"{path} cannot be read, it is {state}: expected a file of UTF-8 text") from None


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """A prior that was taken from a public file, without spending any of the budget.

    Attributes
    ----------
    probabilities : (k,) array
        In increasing order of the labels.
    absent : int
        How many declared labels the file does not list; their probability is 0.
    """

    probabilities: Floats
    absent: int = 0

    def __post_init__(self) -> None:
        """Freeze the array."""
        object.__setattr__(self, "probabilities", frozen(self.probabilities))


def read_prior(path: str | os.PathLike[str], labels: Floats) -> PublicPrior:
    """The prior of a file of two columns: a label, and how often or with which probability it occurs.

    Nothing is spent, so the file must be public: were it computed from the private labels, the release would not be
    private.

    Parameters
    ----------
    path : path
        Comma-separated, with or without a header, in any order.
    labels : (k,) array
        The declared labels.

    Returns
    -------
    PublicPrior
        Normalised.

    Raises
    ------
    InvalidInput
        A row that is no pair of numbers, a label that is not declared or comes twice, a negative entry, or nothing
        above 0.

    Examples
    --------
    >>> from optrand.data import weeks_worked_counts_path
    >>> prior = read_prior(weeks_worked_counts_path(), parse_labels("0:52"))
    >>> round(float(prior.probabilities[0]), 4), prior.absent
    (0.4811, 0)
    """
    rows = [(line, row) for line, row in enumerate(csv.reader(io.StringIO(_text(path), newline="")), 1) if row]
    if rows and not _is_number(rows[0][1][0]):
        rows = rows[1:]
    declared = {label: i for i, label in enumerate(labels.tolist())}
    weights: dict[int, Fraction] = {}
    for line, row in rows:
        where = f"line {line} of {path}"
        if len(row) != 2:
            raise InvalidInput(f"{where} has {len(row)} cells, expected two: a label and a count or probability")
        place = declared.get(float(decimal(row[0].strip(), f"the label in {where}")))
        weight = decimal(row[1].strip(), f"the count in {where}")
        if place is None or place in weights:
            raise InvalidInput(f"the label in {where} {'comes twice' if place is not None else 'is not declared'}")
        if weight < 0:
            raise InvalidInput(f"the count in {where} is negative, expected a count or a probability")
        weights[place] = weight
    total = sum(weights.values())
    if not total:
        raise InvalidInput(f"{path} holds no count above 0, expected a label and a count or probability a line")
    shares = np.array([float(weights.get(i, Fraction(0)) / total) for i in range(labels.size)])
    return PublicPrior(shares, absent=labels.size - len(weights))


def _is_number(token: str) -> bool:
    """Whether this may be meant as a number: then the line is no header, and is refused if it is not one."""
    try:
        Decimal(token.strip())
    except InvalidOperation:
        return False
    return True


@dataclass(frozen=True)
class EvenGrid:
    """So many evenly spaced outputs, from the lowest to the highest of debiased randomized response.

    Which they are depends on the epsilon that they will serve: :func:`optrand.feasible_output_set`.

    Parameters
    ----------
    n : int
        At least 2.

    Raises
    ------
    InvalidInput
    """

    n: int

    def __post_init__(self) -> None:
        """Refuse anything but a whole number of at least 2."""
        integer(self.n, "the size of the mesh", 2, why=": no single output is unbiased for two labels")


DeclaredOutputs = OutputSet | EvenGrid
"""Known before the epsilon is."""


def parse_outputs(text: str) -> DeclaredOutputs:
    """Parse the allowed outputs: ``line``, ``grid:N``, ``interval:LOW:HIGH`` or ``values:`` and a set as of labels.

    Raises
    ------
    InvalidInput
        Text of another form, a mesh of fewer than 2, or an interval that is empty.

    Examples
    --------
    >>> parse_outputs("line"), parse_outputs("grid:417"), parse_outputs("interval:-10:62.5")
    (Line(low=-inf, high=inf), EvenGrid(n=417), Interval(low=-10.0, high=62.5))
    """
    kind, *parts = text.split(":")
    if kind == "line" and not parts:
        return Line()
    if kind == "grid" and len(parts) == 1 and (n := whole(parts[0])) is not None:
        return EvenGrid(n)
    if kind == "values" and parts:
        return Grid(parse_labels(":".join(parts)))
    if kind == "interval" and len(parts) == 2:
        return _interval(parts, f"the outputs {text!r}")
    raise InvalidInput(
        f"outputs are {text!r}, expected line, grid:N such as grid:417, interval:LOW:HIGH, or values:1,2.5,7"
    )


def read_loss(path: str | os.PathLike[str]) -> Tabulated:
    """Loss of a CSV file of numbers: a row for each label and a column for each output, both in increasing order.

    Raises
    ------
    InvalidInput
        A file that cannot be read, rows of several lengths, or a cell that is no number.
    """
    rows = [row for row in csv.reader(io.StringIO(_text(path), newline="")) if row]
    if not rows or len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{path} has rows of several lengths, or none: expected a number for each output")
    return Tabulated(
        np.array(
            [
                [float(decimal(cell.strip(), f"a cell in row {i} of {path}")) for cell in row]
                for i, row in enumerate(rows, 1)
            ]
        )
    )


def allowed_outputs(declared: DeclaredOutputs, labels: Floats, epsilon: float) -> OutputSet:
    """The outputs that were declared, for a randomizer of `labels` with this epsilon."""
    return feasible_output_set(labels, epsilon, declared.n) if isinstance(declared, EvenGrid) else declared


def parse_clip(text: str) -> Interval:
    """The interval that noisy labels are clipped to: ``LOW:HIGH``.

    Raises
    ------
    InvalidInput
        Text of another form, or an interval that is empty.

    Examples
    --------
    >>> parse_clip("-10:62.5")
    Interval(low=-10.0, high=62.5)
    """
    ends = text.split(":")
    if len(ends) != 2:
        raise InvalidInput(f"noisy labels are clipped to {text!r}, expected LOW:HIGH such as -10:62.5")
    return _interval(ends, f"the interval {text!r}")


def _interval(ends: list[str], where: str) -> Interval:
    low, high = (number(end, f"an end of {where}", "a number such as -10 or 62.5") for end in ends)
    return Interval(low, high)
