"""Allowed outputs of a randomizer: the real line, an interval of it, or a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, distinct, frozen, real, squarable, values
from optrand.errors import InvalidInput

__all__ = ["Grid", "Interval", "Line", "OutputSet", "as_output_set"]


@dataclass(frozen=True)
class Line:
    """All real numbers."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        """Refuse a line with ends: that is an :class:`Interval`."""
        if (self.low, self.high) != (-math.inf, math.inf):
            raise InvalidInput("a line has no ends: use Interval(low, high)")


@dataclass(frozen=True)
class Interval:
    """All real numbers from ``low`` to ``high``, both ends in.

    Examples
    --------
    >>> Interval(-10, 60)
    Interval(low=-10.0, high=60.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse anything but two finite ends in order."""
        object.__setattr__(self, "low", real(self.low, "the interval's low end") + 0.0)
        object.__setattr__(self, "high", real(self.high, "the interval's high end") + 0.0)
        squarable(np.array([self.low, self.high]), "the interval's ends")
        if self.low >= self.high:
            raise InvalidInput(f"the interval from {self.low:g} to {self.high:g} is empty: its low end must be lower")


@dataclass(frozen=True, eq=False)
class Grid:
    """Exactly the given values, kept in increasing order.

    Examples
    --------
    >>> Grid([3, 1, 2]).values.tolist()
    [1.0, 2.0, 3.0]
    """

    values: Floats

    def __post_init__(self) -> None:
        """Sort, freeze, and refuse repeated values."""
        array = values(self.values, "outputs")
        distinct(array, "outputs")
        squarable(array, "outputs")
        object.__setattr__(self, "values", frozen(np.sort(array)))

    @property
    def low(self) -> float:
        """The smallest value."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        """The largest value."""
        return float(self.values[-1])

    def __eq__(self, other: object) -> bool:
        """Two grids are equal where their values are."""
        return isinstance(other, Grid) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        """Hash of the values."""
        return hash(self.values.tobytes())


OutputSet = Line | Interval | Grid


def as_output_set(given: OutputSet | ArrayLike | None) -> OutputSet:
    """``None`` is the line, an array is a grid, and an output set is itself."""
    if given is None:
        return Line()
    if isinstance(given, (Line, Interval, Grid)):
        return given
    return Grid(np.asarray(given))
