"""Interval columns on a monotone path as one pointer and its delayed copy: randomized response on bins, by a phase.

Lay the columns of a mechanism end to end along their path, each as long as its mass. The end of the interval passes a
label at some time, and its beginning passes the label the coverage later, whatever the label is
(``docs/mathematics.md``, Proposition 20). So labels have times, :attr:`Phases.passing`, all columns together one delay,
and the columns at ``theta``, ``theta + delay``, ``theta + 2 delay``, ... are bins that partition the labels.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from optrand.base.records import Record, freeze
from optrand.base.validation import Floats, check_integer, frozen
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.randomizer import Indices

__all__ = ["Bins", "Phases", "phases_of"]


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins at one phase, a partition of the labels.

    Attributes
    ----------
    first, last : (bins,) arrays of int
        First and last label of each bin.
    outputs : (bins,) array
        Output of each bin.
    """

    first: Indices
    last: Indices
    outputs: Floats

    def __len__(self) -> int:
        return int(self.first.size)


@dataclass(frozen=True, eq=False)
class Phases(Record):
    """Columns of an exact mechanism along a monotone path, in integers.

    Attributes
    ----------
    labels : (k,) array
    first, last : (columns,) arrays of int
        First and last label that each column favours; neither ever falls along the path.
    outputs : (columns,) array
    masses : tuple of int
    ratio : Fraction

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> found = phases_of(optrand.solve(problem))
    >>> [round(time / found.delay, 3) for time in found.passing], round(found.total / found.delay, 3)
    ([0.0, 0.748, 1.222, 1.748], 2.748)
    >>> half = found.bins(found.delay // 2)
    >>> half.first.tolist(), half.last.tolist(), half.outputs.round(3).tolist()
    ([0, 1, 3], [0, 2, 3], [-0.748, 1.301, 4.023])
    """

    labels: Floats
    first: Indices
    last: Indices
    outputs: Floats
    masses: tuple[int, ...]
    ratio: Fraction

    def __post_init__(self) -> None:
        """Copy and freeze the arrays, and refuse columns that are not on a monotone path."""
        freeze(self, "labels", "first", "last", "outputs")
        crossed = np.flatnonzero((np.diff(self.first) < 0) | (np.diff(self.last) < 0))
        if crossed.size:
            at = int(crossed[0])
            inner, outer = ((int(self.first[j]), int(self.last[j])) for j in (at + 1, at))
            raise InvalidInput(
                f"the columns are on no monotone path: one favours the labels number {outer[0]} to {outer[1]}, another "
                f"{inner[0]} to {inner[1]}, inside; optima on the line have phases, those on a grid may have none"
            )

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Time at which each column begins, and the total mass."""
        return tuple(accumulate(self.masses, initial=0))

    @property
    def total(self) -> int:
        """Mass of all columns: the length of the path."""
        return self.times[-1]

    @property
    def row_total(self) -> int:
        """Total of a row of the mechanism's table: that of the weights of all phases."""
        return self.ratio.denominator * self.total + (self.ratio.numerator - self.ratio.denominator) * self.delay

    @cached_property
    def passing(self) -> tuple[int, ...]:
        """Time at which the end of the interval passes each label; the beginning passes it :attr:`delay` later."""
        places = np.searchsorted(self.last, np.arange(self.labels.size))
        return tuple(self.times[place] for place in places.tolist())

    @cached_property
    def leaving(self) -> tuple[int, ...]:
        """Time at which the beginning of the interval passes each label."""
        places = np.searchsorted(self.first, np.arange(self.labels.size), side="right")
        return tuple(self.times[place] for place in places.tolist())

    @property
    def delay(self) -> int:
        """Time between the two, one for all labels: the mass that favours a label."""
        return self.leaving[0] - self.passing[0]

    def bins(self, theta: int) -> Bins:
        """Return bins and outputs at a phase, from 0 to ``delay - 1``."""
        phase = check_integer(theta, "theta", 0, self.delay - 1)
        columns = [bisect_right(self.times, time) - 1 for time in range(phase, self.total, self.delay)]
        return Bins(self.first[columns], self.last[columns], self.outputs[columns])

    def weight(self, theta: int) -> int:
        """Return the weight of a phase: the number of bins plus ``ratio - 1``, times a constant.

        The weights of all phases sum to the row total of the mechanism's table.
        """
        count = len(range(check_integer(theta, "theta", 0, self.delay - 1), self.total, self.delay))
        return self.ratio.denominator * (count - 1) + self.ratio.numerator


def phases_of(mechanism: Mechanism) -> Phases:
    """Return phases of a mechanism whose columns are intervals on a monotone path.

    Raises
    ------
    InvalidInput
        A mechanism that is a table, or whose columns are on no monotone path.
    """
    if mechanism.arcs is None:
        raise InvalidInput("the mechanism is a table: only interval columns have phases")
    arcs = mechanism.arcs
    order = np.lexsort((arcs.at, arcs.last, arcs.first))
    masses = tuple(arcs.masses[order].tolist())
    outputs = frozen(mechanism.outputs[arcs.at[order]])
    return Phases(mechanism.labels, arcs.first[order], arcs.last[order], outputs, masses, mechanism.ratio)
