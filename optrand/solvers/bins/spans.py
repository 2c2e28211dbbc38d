r"""Sums over any run of labels in constant time, without cancellation.

Differences of running totals lose the digits of light runs beside heavy ones. Here the labels are halved again and
again, and for each halving the sums from each label to the middle are kept: a run that crosses a middle is two of them,
and all terms are positive. ``O(k log k)`` numbers, as many to work out, and about a dozen look-ups a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats

__all__ = ["Half", "Places", "Spans"]

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Half:
    """Sums of the labels between some labels and the middles of their runs.

    Attributes
    ----------
    mass : array
        Sums of the prior.
    moment : array
        Sums of distances from the middle: the first label right of it.
    own : array
        Sums of distances from the label at which the half ends.
    inner : array
        Half the squared distances from their mean.
    """

    mass: Floats
    moment: Floats
    own: Floats
    inner: Floats


@dataclass(frozen=True, eq=False)
class Spans:
    """Labels, increasing, with a positive prior.

    Examples
    --------
    >>> spans = Spans(np.array([0.0, 1.0, 5.0]), np.array([0.25, 0.25, 0.5]))
    >>> mass, anchor, offset, inner = spans.bins(np.array([1]), np.array([3]))
    >>> [round(float(x[0]), 6) for x in (mass, anchor + offset, inner)]
    [0.75, 3.666667, 1.333333]
    """

    labels: Floats
    prior: Floats

    @property
    def size(self) -> int:
        """Power of two from the number of labels on."""
        return 1 << (self.labels.size - 1).bit_length()

    @cached_property
    def _bits(self) -> Places:
        """Binary digits of each number below `size`."""
        return np.frexp(np.arange(self.size, dtype=np.float64))[1].astype(np.intp) * self.size

    @cached_property
    def _padded(self) -> tuple[Floats, Floats]:
        missing = self.size - self.labels.size
        return np.append(self.labels, np.full(missing, self.labels[-1])), np.append(self.prior, np.zeros(missing))

    @cached_property
    def left(self) -> Half:
        """From each label to before the middle, a row for each halving; row 0 is the label alone."""
        labels, prior = self._padded
        size = self.size
        rows = [[part[::-1] for part in row] for row in _prefixes(-labels[::-1], prior[::-1])]
        moved = rows[:1]
        for row, (mass, moment, own, inner) in enumerate(rows[:-1]):
            # So far the moment is about the last label before the middle.
            last = np.arange(size) | ((1 << row) - 1)
            step = labels[np.minimum(last + 1, size - 1)] - labels[last]
            moved.append([mass, moment + mass * step, own, inner])
        return _stack(moved)

    @cached_property
    def right(self) -> Half:
        """From the middle to each label, which is of the half; row 0 is empty."""
        rows = _prefixes(*self._padded)[:-1]
        return _stack([[np.zeros(self.size)] * 4, *rows])

    @cached_property
    def anchors(self) -> Floats:
        """The middle, for a last label and a halving."""
        labels, _ = self._padded
        index = np.arange(self.size)
        rows = [labels[index]] + [labels[index >> row << row] for row in range(self.size.bit_length() - 1)]
        return np.concatenate(rows)

    @cached_property
    def _means(self) -> tuple[Floats, Floats]:
        """Mean distances from the middle."""
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = (half.moment / half.mass for half in (self.left, self.right))
        return np.where(self.left.mass > 0, left, 0.0), np.where(self.right.mass > 0, right, 0.0)

    def places(self, first: Places, last: Places) -> tuple[Places, Places]:
        """Where the two halves of the runs from `first` to `last` stand."""
        row = self._bits[first ^ last]
        return row + first, row + last

    def bins(self, first: Places, after: Places) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mass, a label near the mean, mean less that label, and inner sum of labels ``first ... after-1``."""
        a, b = self.places(first, after - 1)
        left, right = self.left.mass[a], self.right.mass[b]
        before, behind = self._means
        offset = before[a]
        mass = left + right
        apart = offset + behind[b]
        right /= mass
        offset = right * apart - offset
        apart *= apart
        apart *= left
        apart *= right
        apart *= 0.5
        apart += self.left.inner[a]
        apart += self.right.inner[b]
        return mass, self.anchors[b], offset, apart

    def masses(self, first: Places, last: Places) -> Floats:
        """Return the prior of the labels ``first ... last``."""
        a, b = self.places(first, last)
        masses: Floats = self.left.mass[a] + self.right.mass[b]
        return masses

    def above(self, first: Places, last: Places) -> Floats:
        """Return the prior times distance from label `first`, summed over ``first ... last``."""
        a, b = self.places(first, last)
        sums: Floats = self.left.own[a] + self.right.moment[b]
        sums += self.right.mass[b] * (self.anchors[b] - self.labels[first])
        return sums

    def below(self, first: Places, last: Places) -> Floats:
        """Return the prior times distance from label `last`, summed over ``first ... last``."""
        a, b = self.places(first, last)
        sums: Floats = self.right.own[b] + self.left.moment[a]
        sums += self.left.mass[a] * (self.labels[last] - self.anchors[b])
        return sums


def _prefixes(labels: Floats, prior: Floats) -> list[list[Floats]]:
    """Return mass, moment, own and inner sums from the start of each block of ``1, 2, 4 ...`` labels to each label."""
    size = labels.size
    rows = [[prior.copy(), np.zeros(size), np.zeros(size), np.zeros(size)]]
    width = 1
    while width < size:
        mass, moment, own, inner = (part.reshape(-1, 2, width).copy() for part in rows[-1])
        place = labels.reshape(-1, 2, width)
        start, total = place[:, :, :1], mass[:, 0, -1:]
        step = start[:, 1] - start[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = total + mass[:, 1]
            apart = step + moment[:, 1] / mass[:, 1] - moment[:, 0, -1:] / total
            joined = inner[:, 0, -1:] + total * (mass[:, 1] / whole) * apart**2 / 2
        inner[:, 1] += np.where((total > 0) & (mass[:, 1] > 0), joined, inner[:, 0, -1:])
        own[:, 1] += own[:, 0, -1:] + total * (place[:, 1] - place[:, 0, -1:])
        moment[:, 1] += moment[:, 0, -1:] + mass[:, 1] * step
        mass[:, 1] = whole
        rows.append([part.reshape(-1) for part in (mass, moment, own, inner)])
        width *= 2
    return rows


def _stack(rows: list[list[Floats]]) -> Half:
    return Half(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))
