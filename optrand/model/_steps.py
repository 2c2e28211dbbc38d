"""Columns of integers as step functions of the label, or as intervals: the forms in which a table is kept."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base._arithmetic import Integers
from optrand.errors import InvalidInput
from optrand.model._randomizer import Indices

Column = tuple[tuple[int, int], ...]
"""Steps ``(y, height)`` of a column: from label ``y`` on its weight is higher by ``height``."""


class IntegerArcs(NamedTuple):
    """Columns ``(interval, output, integer mass)`` over ``k`` labels, in increasing order of outputs.

    At a ratio ``r / d`` an arc has the weight ``mass * r`` for the labels that it favours, and ``mass * d`` for others.

    Attributes
    ----------
    k : int
        Number of labels.
    first, last : (arcs,) arrays of int
        First and last label that each arc favours.
    at : (arcs,) array of int
        Index of the output of each arc: it starts at 0, never falls, and leaves none out.
    masses : (arcs,) array of Python int
        Above 0.
    """

    k: int
    first: Indices
    last: Indices
    at: Indices
    masses: Integers

    @property
    def n(self) -> int:
        """Number of outputs."""
        return int(self.at[-1]) + 1

    @property
    def coverage(self) -> list[int]:
        """Mass that favours each label, the same for all if the rows of the table have one total."""
        changes = np.zeros(self.k + 1, dtype=object)
        np.add.at(changes, self.first, self.masses)
        np.subtract.at(changes, self.last + 1, self.masses)
        sums: list[int] = np.cumsum(changes)[:-1].tolist()
        return sums

    def total(self, ratio: Fraction) -> int:
        """Return the total of the first row of the table."""
        low, high = ratio.denominator, ratio.numerator
        total: int = low * sum(self.masses.tolist()) + (high - low) * self.coverage[0]
        return total


class Steps(NamedTuple):
    """Steps of the columns of several outputs, in increasing order of the output and then of the label.

    Attributes
    ----------
    places : (steps,) array of int
        Label from which on the weight is higher.
    outputs : (steps,) array of int
        Index of the output.
    heights : (steps,) array of Python int
        Other than 0.
    """

    places: Indices
    outputs: Indices
    heights: Integers

    def take(self, chosen: Indices | NDArray[np.bool_]) -> Steps:
        """Select some of the steps, in the order of their indices."""
        return Steps(self.places[chosen], self.outputs[chosen], self.heights[chosen])


def add_steps(k: int, steps: Steps) -> Steps:
    """Sort steps in any order, add up those at one place, and leave out those of height 0 or beyond the labels."""
    places, outputs, heights = steps.take(np.lexsort(steps[:2]))
    first = np.flatnonzero(np.append(True, (places[1:] != places[:-1]) | (outputs[1:] != outputs[:-1])))
    sums = Steps(places[first], outputs[first], np.add.reduceat(heights, first))
    return sums.take((sums.heights != 0) & (sums.places < k))


def split_column(column: Column, k: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Write a column of a table as its smallest weight and a sum of intervals ``(start, stop, mass)``, half-open.

    The step that rises first falls first, so that no interval of the column lies inside another. There are at most as
    many intervals as steps.

    Examples
    --------
    >>> split_column(((0, 2), (1, 3), (2, 1), (4, -2)), 6)
    (2, [(1, 4, 2), (1, 6, 1), (2, 6, 1)])
    """
    base = 0
    if column[0][0] == 0:
        base = min(accumulate(height for _, height in column))
    risen, intervals, oldest = list[tuple[int, int]](), list[tuple[int, int, int]](), 0
    for y, height in column:
        change = height - base if y == 0 else height
        if change > 0:
            risen.append((y, change))
        while change < 0:
            start, mass = risen[oldest]
            if mass + change > 0:
                risen[oldest] = (start, mass + change)
                intervals.append((start, y, -change))
                break
            intervals.append((start, y, mass))
            oldest += 1
            change += mass
    intervals += [(start, k, mass) for start, mass in risen[oldest:]]
    return base, intervals


def check_steps(steps: Steps, k: int, n: int) -> tuple[list[int], list[int]]:
    """Check the steps of all columns, and return the smallest weights of the columns and the largest ones."""
    places, outputs, heights = steps

    def refuse(faulty: NDArray[np.bool_], reason: str) -> None:
        if faulty.any():
            at = int(faulty.argmax())
            # A column before it may have another fault.
            check_steps(steps.take(outputs < at), k, at)
            raise InvalidInput(reason.format(at=at))

    if not n:
        return [], []
    if not places.shape == outputs.shape == heights.shape == (heights.size,):
        raise InvalidInput("labels, outputs and heights of steps must be arrays of one length")
    is_exact = heights.dtype == object and set(map(type, heights.tolist())) <= {int}
    if not (is_exact and places.dtype.kind == outputs.dtype.kind == "i"):
        raise InvalidInput("labels, outputs and heights of steps must be integers")
    if outputs.min(initial=0) < 0 or (outputs[1:] < outputs[:-1]).any():
        raise InvalidInput("outputs of steps must be in order, from 0 on")
    most = outputs.max(initial=0)
    if most >= n:
        raise InvalidInput(f"there are {most + 1} columns for {n} outputs, expected one each")
    counts = np.bincount(outputs, minlength=n)
    refuse(counts == 0, "output {at} never occurs: leave it out")
    starts = np.cumsum(counts) - counts
    before = np.empty_like(places)
    before[1:], before[starts] = places[:-1], -1
    is_sound = (before < places) & (places < k) & (heights != 0)
    reason = f"integers other than 0 at increasing labels from 0 to {k - 1}"
    refuse(~np.logical_and.reduceat(is_sound, starts), f"steps of output {{at}} must be {reason}")
    sums = np.cumsum(heights)
    others = sums[starts] - heights[starts]
    low, high = (extreme.reduceat(sums, starts) - others for extreme in (np.minimum, np.maximum))
    low[(places[starts] > 0) & (low > 0)] = 0
    refuse(low < 0, "output {at} has a negative weight, expected integers of at least 0")
    refuse(high == 0, "output {at} never occurs: leave it out")
    return low.tolist(), high.tolist()
