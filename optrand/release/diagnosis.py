"""Diagnosis of private labels, for their owner alone and only on request.

How many labels are missing or undeclared is an exact figure of the true labels: no error message holds one.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import MAX_INTEGER, Floats
from optrand.errors import InvalidInput

__all__ = ["REMEDY", "WARNING", "Diagnosis", "Readings", "declared_index", "declared_places", "undeclared"]

WARNING = (
    "these counts are facts about the TRUE labels: no noise is on them, and no budget pays for them. Do not share them."
)

REMEDY = "the owner of the labels can have all that is wrong counted (--diagnose, or diagnose() of the job)"


@dataclass(frozen=True, eq=False)
class Readings:
    """Cells read where labels should be: numbers, and what is none. Private.

    Attributes
    ----------
    numbers : array
        The finite numbers among the cells, in their order; all cells if nothing is wrong.
    rows : int
        How many cells there are.
    missing : int
        How many of them are empty.
    """

    numbers: Floats
    rows: int
    missing: int

    @property
    def not_numbers(self) -> int:
        """Count of cells that hold something else than a finite number that floats can tell from others."""
        return self.rows - self.missing - self.numbers.size

    @classmethod
    def of_array(cls, values: ArrayLike) -> Readings:
        """The readings of an array, of which None is missing, and NaN no number.

        Examples
        --------
        >>> readings = Readings.of_array([1, None, float("nan"), "x", 2**53 + 1])
        >>> readings.numbers.tolist(), readings.missing, readings.not_numbers
        ([1.0], 1, 3)
        """
        cells = np.asarray(values, dtype=object).ravel().tolist()
        real: list[Any] = [cell for cell in cells if isinstance(cell, Real) and not isinstance(cell, bool)]
        whole = [float(cell) for cell in real if not (isinstance(cell, int) and abs(cell) > MAX_INTEGER)]
        numbers = np.array(whole, dtype=np.float64) + 0.0
        return cls(numbers[np.isfinite(numbers)], len(cells), sum(cell is None for cell in cells))

    def whole(self, label: str) -> Floats:
        """The labels, if every cell of the column `label` holds one.

        Raises
        ------
        InvalidInput
            At least one does not: neither which nor how many is said.
        """
        if self.numbers.size < self.rows:
            raise InvalidInput(
                f"at least one label in column {label!r} is missing or no finite number that floats can hold, such as "
                f"7, -0.5 or 1e3: fill or drop such rows; {REMEDY}"
            )
        return self.numbers


@dataclass(frozen=True)
class Diagnosis:
    """Exact counts of private labels that a release would refuse. Not private: not to be shared.

    Attributes
    ----------
    rows : int
    missing, not_numbers : int
        See :class:`Readings`.
    undeclared : int
        How many numbers are not in the declared set, once those beyond its ends are clipped if that was asked for.
    """

    rows: int
    missing: int
    not_numbers: int
    undeclared: int

    @classmethod
    def of(cls, readings: Readings, labels: Floats, *, clip: bool) -> Diagnosis:
        """Count what a release with these declared labels would refuse.

        Examples
        --------
        >>> Diagnosis.of(Readings.of_array([0, 0.5, 9, None]), np.arange(3.0), clip=True)
        Diagnosis(rows=4, missing=1, not_numbers=0, undeclared=1)
        """
        undeclared = (
            int((declared_index(readings.numbers, labels, clip=clip) < 0).sum()) if readings.numbers.size else 0
        )
        return cls(readings.rows, readings.missing, readings.not_numbers, undeclared)

    def __add__(self, other: Diagnosis) -> Diagnosis:
        """Counts of two parts of a table together."""
        return Diagnosis(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def fine(self) -> bool:
        """Whether every label could be released."""
        return self.missing == self.not_numbers == self.undeclared == 0


def declared_places(values: Floats, labels: Floats, *, clip: bool) -> NDArray[np.intp]:
    """Index in the declared set of each private label.

    Parameters
    ----------
    values : (rows,) array
        Private.
    labels : (k,) array
        The declared set, increasing.
    clip : bool
        Whether labels beyond its ends count as the nearest end.

    Raises
    ------
    InvalidInput
        Labels outside the set; the message says neither which nor how many.

    Examples
    --------
    >>> declared_places(np.array([7.0, -1.0, 2.0]), np.array([0.0, 2.0, 5.0]), clip=True).tolist()
    [2, 0, 1]
    """
    places = declared_index(values, labels, clip=clip)
    if (places < 0).any():
        raise undeclared(labels.size, clip=clip)
    return places


def undeclared(count: int, *, clip: bool) -> InvalidInput:
    """Error for labels that are not among so many declared ones."""
    remedy = "round them first" if clip else "declare all that may occur, or clip those beyond its ends"
    return InvalidInput(
        f"at least one label is not among the {count} declared ones; nothing was written and nothing spent: "
        f"{remedy}; {REMEDY}"
    )


def declared_index(values: Floats, labels: Floats, *, clip: bool) -> NDArray[np.intp]:
    """Index in the declared set of each value, -1 where it is none of them."""
    if clip:
        values = np.clip(values, labels[0], labels[-1])
    places = np.minimum(np.searchsorted(labels, values), labels.size - 1)
    return np.where(labels[places] == values, places, -1).astype(np.intp)
