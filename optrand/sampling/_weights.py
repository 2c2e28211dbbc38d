"""Weights in one list with approximate thresholds, by which a random word is mapped to an output.

The weights of a table are written in one list, of which each row is a few ranges. In a small table these are the rows,
end to end. In a large one every column is split into a *base*, its smallest weight, and *intervals* of labels with a
mass each. The bases are one range that is common to all labels. The intervals are sorted into levels in which those
that cover a label are consecutive, the last of them the levels of an interval tree (Edelsbrunner, 1980), so that
``O(steps + k log k)`` numbers are stored. One running sum and one guide (Chen and Asau 1974) serve the whole list.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.model.table import Column, Table
from optrand.sampling.entropy import EntropySource, Words, check_words

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Weights:
    """Weights of a table in one list, and the ranges of it that make up each row of a table.

    Attributes
    ----------
    masses : list of int
    outputs : (members,) array of int
        Output that each weight belongs to.
    starts, stops : (k, levels) arrays of int
        Row ``y`` consists of ``masses[starts[y, i] : stops[y, i]]`` for all `i`, in this order.
    """

    masses: list[int]
    outputs: NDArray[np.int32]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]

    @classmethod
    def of_rows(cls, table: Table) -> Weights:
        """Write all rows out."""
        starts = np.arange(table.k, dtype=np.int32)[:, np.newaxis] * np.int32(table.n)
        outputs = np.tile(np.arange(table.n, dtype=np.int32), table.k)
        return cls(table.weights.ravel().tolist(), outputs, starts, starts + np.int32(table.n))

    @classmethod
    def of_columns(cls, table: Table) -> Weights:
        """Split all columns, and arrange the bases and intervals in levels."""
        outputs: list[int] = []
        bases: list[int] = []
        favoured: list[int] = []
        first: list[int] = []
        last: list[int] = []
        masses: list[int] = []
        for output, column in enumerate(table.columns):
            base, intervals = split_column(column, table.k)
            if base:
                outputs.append(output)
                bases.append(base)
            for start, stop, mass in intervals:
                favoured.append(output)
                first.append(start)
                last.append(stop - 1)
                masses.append(mass)
        outputs += favoured
        masses = bases + masses
        levels = list(_arrange(len(bases), np.array(first, dtype=np.intp), np.array(last, dtype=np.intp), table.k))
        order = np.concatenate([order for order, _, _ in levels])
        offsets = np.cumsum([0, *(order.size for order, _, _ in levels[:-1])])
        starts, stops = (np.stack(ends, axis=1) + offsets for ends in list(zip(*levels, strict=True))[1:])
        return cls(
            [masses[member] for member in order.tolist()],
            np.array(outputs, dtype=np.int32)[order],
            starts.astype(np.int32),
            stops.astype(np.int32),
        )

    def row(self, y: int) -> tuple[list[int], list[int]]:
        """Return the weights of a row and the output of each."""
        ranges = [slice(*ends) for ends in zip(self.starts[y].tolist(), self.stops[y].tolist(), strict=True)]
        masses = [mass for part in ranges for mass in self.masses[part]]
        return masses, [output for part in ranges for output in self.outputs[part].tolist()]


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
    risen: list[tuple[int, int]] = []
    intervals = []
    oldest = 0
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


def _arrange(common: int, first: Rows, last: Rows, k: int) -> Iterator[tuple[Rows, Rows, Rows]]:
    """Arrange the bases, which come first, and then the intervals, in levels ``(order, starts, stops)``.

    Those of a level that cover label ``y`` are ``order[starts[y] : stops[y]]``.

    Intervals of which none lies inside another are one level, sorted by either end. In optima on the line these are
    all intervals, or nearly all. Such intervals are split off as long as they are at least half of those that are left.
    The others are arranged by the highest bit in which their first and last label differ: these two are on either side
    of the middle of an aligned block of labels. A label on the left side is covered by those intervals that begin at or
    before it, a label on the right side by those that end at or after it, so such a level has two orders, end to end.
    """
    labels = np.arange(k)
    yield np.arange(common), np.zeros_like(labels), np.full_like(labels, common)
    left = np.lexsort((last, first))
    while left.size:
        is_outer = np.maximum.accumulate(last[left]) == last[left]
        if 2 * np.count_nonzero(is_outer) < left.size:
            break
        outer = left[is_outer]
        left = left[~is_outer]
        yield outer + common, np.searchsorted(last[outer], labels), np.searchsorted(first[outer], labels, "right")
    # The exponent of a float is the number of bits of the integer, 0 for an interval of one label.
    bits = np.frexp((first[left] ^ last[left]).astype(np.float64))[1]
    for level in np.unique(bits).tolist():
        by_first = left[bits == level]
        by_last = by_first[np.argsort(last[by_first], kind="stable")]
        block = labels >> level << level
        is_left = labels - block < (1 << level) / 2
        starts = np.searchsorted(last[by_last], labels) + by_first.size
        stops = np.searchsorted(last[by_last], block + (1 << level)) + by_first.size
        yield (
            np.concatenate((by_first, by_last)) + common,
            np.where(is_left, np.searchsorted(first[by_first], block), starts),
            np.where(is_left, np.searchsorted(first[by_first], labels, "right"), stops),
        )


class Thresholds:
    """Approximate thresholds between the weights of one list, and a guide to them, for words of one width.

    Edges are the running sums of the whole list in units of ``total / 2**bits``, rounded down, so that a difference of
    two is right to within one unit. In its row, the threshold before a weight is a sum of at most as many differences
    as there are levels. So a word, of which ``bits`` bits are read, is decided if it is more than one unit per level
    away from the two thresholds around it, and otherwise it is left undecided, once in ``2**50`` words or so.

    A bisection finds the level of a word. A cell of the guide then knows the output, unless an edge is in the cell or
    near it: then a bisection finds the place of the word among the edges in the cell.
    """

    CELLS = 4
    """Number of guide cells for each weight, as a power of two."""

    MOST_CELLS = 20
    """Largest number of guide cells, as a power of two, unless there are more weights than these."""

    def __init__(self, weights: Weights, table: Table, width: int) -> None:
        levels = weights.starts.shape[1]
        size = len(weights.masses)
        # The running sums may be many times the total: use only the leading bits of a word that leave room for them.
        bits = min(width, 62 - (sum(weights.masses) // table.total).bit_length())
        scaled = ((mass << bits) // table.total for mass in accumulate(weights.masses, initial=0))
        edges = np.append(np.fromiter(scaled, np.int64, size + 1), np.iinfo(np.int64).max)
        lengths = edges[weights.stops] - edges[weights.starts]
        lows = np.cumsum(lengths, axis=1) - lengths
        self._levels = levels
        self._shift = width - bits
        # The last entry is read, but never used, as the last two edges are.
        self._lows = np.append(lows.ravel(), 0)
        self._origins = (edges[weights.starts] - lows).ravel()
        self._edges = edges
        self._outputs = np.append(weights.outputs, np.int32(0))
        end = int(edges[size]) + levels
        cells = max(size.bit_length() + 1, min(size.bit_length() + self.CELLS, self.MOST_CELLS))
        self._cell = max(0, end.bit_length() - cells)
        # Count the edges below each corner, and mark cells without an edge inside or so near that errors could matter.
        corners = (end >> self._cell) + 2
        self._below = _count_below(edges[: size + 1] >> self._cell, corners)
        most = _count_below(edges[: size + 1] - levels >> self._cell, corners)
        is_clear = _count_below(edges[: size + 1] + levels >> self._cell, corners)[:-1] == most[1:]
        guide = np.where(is_clear, self._outputs[self._below[:-1] - 1], -1)
        self._guide: NDArray[Any] = guide.astype(np.int16 if table.n <= np.iinfo(np.int16).max else np.int32)

    def find(self, rows: Rows, words: Words) -> tuple[NDArray[Any], Rows]:
        """Return the output of each row, any one if its word leaves it undecided, and the places of those."""
        target = (words >> np.uint64(self._shift)).view(np.int64)
        level = rows
        if self._levels > 1:
            base = rows * self._levels
            level = _bisect(base + 1, base + self._levels, lambda at: self._lows[at] <= target) - 1
        target += self._origins.take(level)
        cell = target >> self._cell
        found = self._guide.take(cell)
        open_ = np.flatnonzero(found < 0)
        if open_.size:
            target, cell = target[open_], cell[open_]
            after = _bisect(self._below[cell], self._below[cell + 1], lambda at: self._edges[at] <= target)
            found[open_] = self._outputs[after - 1]
            nearest = np.minimum(target - self._edges[after - 1], self._edges[after] - target)
            open_ = open_[nearest <= self._levels]
        return found, open_

    def find_one(self, row: int, word: int) -> int:
        """Return the output of one row, -1 if its word leaves it undecided."""
        digits = word >> self._shift
        level = row
        if self._levels > 1:
            level = row * self._levels
            level = bisect_right(self._lows, digits, level + 1, level + self._levels) - 1
        target = digits + self._origins.item(level)
        cell = target >> self._cell
        found: int = self._guide.item(cell)
        if found >= 0:
            return found
        after = bisect_right(self._edges, target, self._below.item(cell), self._below.item(cell + 1))
        nearest = min(target - self._edges.item(after - 1), self._edges.item(after) - target)
        return -1 if nearest <= self._levels else self._outputs.item(after - 1)


def _count_below(cells: Rows, corners: int) -> NDArray[np.int32]:
    """Count the numbers in the cells before each corner."""
    return np.cumsum(np.bincount(cells.clip(0) + 1, minlength=corners)[:corners], dtype=np.int32)


def _bisect(low: Rows, high: Rows, is_passed: Callable[[Rows], NDArray[np.bool_]]) -> Rows:
    """Find the first place in ``[low, high)`` that is not passed, or `high`, in one bisection for all pairs."""
    for _ in range(max(0, int((high - low).max(initial=0))).bit_length()):
        middle = (low + high) >> 1
        onward = (low < high) & is_passed(middle)
        low = np.where(onward, middle + 1, low)
        high = np.where(onward, high, middle)
    return low


def settle(sums: Sequence[int], total: int, word: tuple[int, int], source: EntropySource) -> int:
    """Decide a draw that begins with a given word, in integers of any size, with further words only if needed.

    All ``x`` from ``bits / 2**length`` up to, but not at, ``(bits + 1) / 2**length`` agree if as many sums are at or
    below ``total`` times the first as are below ``total`` times the second.

    Parameters
    ----------
    sums : sequence of int
        Running sums of the weights but the last, which is the total.
    total : int
    word : pair of int
        The first word, and its width in bits.
    source : EntropySource
        Further words of that width.
    """
    bits, width = word
    length = width
    while True:
        surely = bisect_right(sums, (bits * total) >> length)
        possibly = bisect_left(sums, -(-(bits + 1) * total >> length))
        if surely == possibly:
            return surely
        bits = bits << width | int(check_words(source, 1)[0])
        length += width
