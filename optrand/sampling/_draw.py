r"""Exact draws from a :class:`~optrand.model._table.Table`, small or large.

A draw reads random words as the binary digits of a uniform number ``x`` in ``[0, 1)``. The weights of a label, in some
fixed order, have running sums ``S_0 = 0, S_1, ..., S_m = total``, and the draw is the output of the weight ``i`` with
``S_i <= total * x < S_{i+1}``. Nearly always the first word decides. If a threshold ``S_i / total`` lies within its
precision, the draw is decided in integers, with further words if they are needed. So every probability is
exactly ``weight / total``.

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
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import MAX_INTEGER, Floats, Record, as_doubles, exactly, rectangular
from optrand.errors import InvalidInput
from optrand.model._table import Table, split_column
from optrand.sampling._entropy import (
    EntropySource,
    RecordEntropy,
    SystemEntropy,
    Words,
    check_first_words,
    check_ids,
    check_width,
    check_words,
)

Rows = NDArray[np.intp]
Number = float | np.integer[Any] | np.floating[Any]


class Weights(NamedTuple):
    """Weights of a table in one list, and the ranges of it that make up each row of a table."""

    masses: list[int]
    outputs: NDArray[np.int32]  # (members,): output that each weight belongs to
    starts: NDArray[np.int32]  # (k, levels): row y consists of masses[starts[y, i] : stops[y, i]] for all i
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
        bases: list[tuple[int, int]] = []
        intervals: list[tuple[int, int, int, int]] = []
        for output, column in enumerate(table.columns):
            base, found = split_column(column, table.k)
            bases += [(output, base)] if base else []
            intervals += [(output, start, stop - 1, mass) for start, stop, mass in found]
        outputs = [each[0] for each in (*bases, *intervals)]
        masses = [each[-1] for each in (*bases, *intervals)]
        first, last = (np.array([each[end] for each in intervals], dtype=np.intp) for end in (1, 2))
        levels = list(_arrange(len(bases), first, last, table.k))
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

    A bisection finds the level of a word. A cell of the guide then holds the output, unless an edge is in the cell or
    near it: then a bisection finds the place of the word among the edges in the cell.
    """

    CELLS = 4
    """Number of guide cells for each weight, as a power of two."""

    MOST_CELLS = 20
    """Largest number of guide cells, as a power of two, unless there are more weights than these."""

    def __init__(self, weights: Weights, table: Table, width: int) -> None:
        levels = weights.starts.shape[1]
        size = len(weights.masses)
        # The running sums may be many times the total: use only as many leading bits of a word as keep them in range.
        bits = min(width, 62 - (sum(weights.masses) // table.total).bit_length())
        scaled = ((mass << bits) // table.total for mass in accumulate(weights.masses, initial=0))
        edges = np.append(np.fromiter(scaled, np.int64, size + 1), np.iinfo(np.int64).max)
        # A row is its levels, one after another: their lengths, the position of each in the row, and the distance from
        # there to its place among all edges.
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
        # 1. The level of the row in which the word lies, and its place among all edges.
        level = rows
        if self._levels > 1:
            base = rows * self._levels
            level = _bisect(base + 1, base + self._levels, lambda at: self._lows[at] <= target) - 1
        target += self._origins.take(level)
        # 2. The guide, which holds the output of most words.
        cell = target >> self._cell
        found = self._guide.take(cell)
        open_ = np.flatnonzero(found < 0)
        if open_.size:
            # 3. For the others the last edge at or below the word. Next to an edge it stays undecided.
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
    below ``total`` times the first as are below ``total`` times the second. The sums are the running sums of the
    weights but the last, which is the total, and `word` is a pair of the first word and its width in bits.
    """
    bits, width = word
    length = width
    while True:
        surely = bisect_right(sums, (bits * total) >> length)
        possibly = bisect_left(sums, -(-(bits + 1) * total >> length))
        if surely == possibly:
            return surely
        # An edge lies within the interval that the word stands for: a further word makes it 2**width times shorter.
        bits = bits << width | int(check_words(source, 1)[0])
        length += width


BLOCK = 1 << 15
"""Values drawn at a time, so that the temporaries of a block stay in the processor's cache."""

DENSE = 1 << 18
"""Largest number of entries of a table that is always written out, even if it has few steps.

Rows that are written out are drawn from faster, by a third for interval columns and by more for others, but take about
half a microsecond and thirty bytes per entry. At this size that is a tenth of a second, which a million draws repay.
"""


@dataclass(frozen=True, eq=False)
class Sampler(Record):
    """Sampler with exactly the probabilities of a table, ``weights[y, i] / total`` for label ``y`` and output ``i``.

    Notes
    -----
    The first draw prepares the table, with a guide for its running sums ([CA74]_), and the sampler keeps both. A table
    of at most ``2**18`` entries, or of at most four entries for each of its steps, is written out. Others take
    ``O(steps + k)`` memory if hardly any interval of their columns lies inside another, as in optima on the line, and
    at most ``O(steps + k log k)``.

    The time of a draw depends a little on the label and on the output, as with every table in memory. If an adversary
    can time single draws, draw in batches.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> coin = Sampler(Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]))
    >>> coin.sample([0, 0, 0, 0, 1, 1, 1, 1], source=SeededEntropy(3)).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """

    table: Table

    def __post_init__(self) -> None:
        exactly(self.table, Table, "table")

    @property
    def labels(self) -> Floats:
        """Labels by which values are looked up."""
        return self.table.labels

    @property
    def outputs(self) -> Floats:
        """Outputs that are drawn."""
        return self.table.outputs

    @overload
    def sample(self, values: Number, *, source: EntropySource | None = None) -> np.float64: ...

    @overload
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats: ...

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats | np.float64:
        """Draw one output for every label in `values`, a float for one number: see ``Mechanism.sample``."""
        if source is None:
            source = SystemEntropy()
        width = check_width(source)
        number = values.item() if isinstance(values, np.number) else values
        if isinstance(values, (np.float16, np.float32)):
            # Narrow floats mean their shortest decimals, in arrays as well.
            number = float(as_doubles(np.array(values)))
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return self._sample_number(number, width, source)
        array = check_numbers(values)
        flat = array.reshape(-1)
        drawn = np.empty(flat.size)
        for block in split_blocks(flat.size):
            rows = self._find_rows(flat[block])
            self._draw(rows, check_words(source, rows.size), width, lambda _: source, drawn[block])
        return drawn.reshape(array.shape)

    def sample_records(self, values: ArrayLike, ids: NDArray[np.uint64], streams: RecordEntropy) -> Floats:
        """Draw one output for every label, which streams, id and label determine: see ``Mechanism.sample_records``."""
        width = check_width(streams)
        flat, ids = check_records(values, ids)
        drawn = np.empty(flat.size)
        for block in split_blocks(flat.size):
            rows, own = self._find_rows(flat[block]), ids[block]
            further = lambda at, own=own: streams.substream(own[at])  # noqa: E731
            self._draw(rows, check_first_words(streams, own), width, further, drawn[block])
        return drawn

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex(self.labels)

    @cached_property
    def _weights(self) -> Weights:
        steps = sum(map(len, self.table.columns))
        is_small = self.table.k * self.table.n <= max(DENSE, 4 * steps)
        return Weights.of_rows(self.table) if is_small else Weights.of_columns(self.table)

    @cached_property
    def _thresholds(self) -> dict[int, Thresholds]:
        return {}

    def _prepare(self, width: int) -> Thresholds:
        if width not in self._thresholds:
            self._thresholds[width] = Thresholds(self._weights, self.table, width)
        return self._thresholds[width]

    def _find_rows(self, values: NDArray[Any]) -> Rows:
        rows = self._index.find(values)
        if rows.min() < 0:
            raise self._unknown()
        return rows

    def _unknown(self) -> InvalidInput:
        # Even the number of such values would reveal private labels.
        return InvalidInput(
            f"at least one value is not among the {self.labels.size} labels: "
            "declare all that may occur, clip the values, or leave out those that are not labels"
        )

    def _draw(
        self, rows: Rows, words: Words, width: int, further: Callable[[int], EntropySource], drawn: Floats
    ) -> None:
        """Write an output for every row into `drawn`, given its first word and the source of its further words."""
        found, undecided = self._prepare(width).find(rows, words)
        self.outputs.take(found, out=drawn, mode="wrap")
        for at in undecided.tolist():
            drawn[at] = self.outputs[self._settle(int(rows[at]), (int(words[at]), width), further(at))]

    def _sample_number(self, value: float, width: int, source: EntropySource) -> np.float64:
        """Draw for one value, as in a batch of one, without the overhead of arrays."""
        row = self._index.rows.get(value)
        if row is None:
            raise self._unknown()
        word: int = check_words(source, 1).item()
        output = self._prepare(width).find_one(row, word)
        if output < 0:
            output = self._settle(row, (word, width), source)
        drawn: np.float64 = self.outputs[output]
        return drawn

    def _settle(self, row: int, word: tuple[int, int], source: EntropySource) -> int:
        masses, outputs = self._weights.row(row)
        sums = list(accumulate(masses))
        return outputs[settle(sums[:-1], self.table.total, word, source)]


class LabelIndex:
    """Index from values to the rows of the labels that they equal exactly."""

    SPAN = 1 << 16
    """Largest span of integer labels that are looked up in an array."""

    def __init__(self, labels: Floats) -> None:
        self.labels = labels
        self.rows = {label: row for row, label in enumerate(labels.tolist())}
        self.low, self.high = float(labels[0]), float(labels[-1])
        self.table: Rows | None = None
        if (
            self.high - self.low < self.SPAN
            and max(-self.low, self.high) <= MAX_INTEGER
            and bool((labels == np.floor(labels)).all())
        ):
            self.table = np.full(int(self.high - self.low) + 1, -1, dtype=np.intp)
            self.table[(labels - self.low).astype(np.intp)] = np.arange(labels.size)

    def find(self, values: NDArray[Any]) -> Rows:
        """Find the row of each value, -1 if it is not a label."""
        # Python's numbers compare exactly, whatever the type of the array. A NaN fails, and no number that passes can
        # overflow an integer.
        if self.table is None or not (self.low <= values.min().item() and values.max().item() <= self.high):
            return self._search(values)
        integers = values.astype(np.intp)
        rows: Rows = self.table.take(integers - int(self.low))
        if values.dtype.kind == "f":
            rows[integers != values] = -1
        return rows

    def _search(self, values: NDArray[Any]) -> Rows:
        floats = values.astype(np.float64)
        rows = np.searchsorted(self.labels, floats).clip(max=self.labels.size - 1)
        rows[self.labels[rows] != floats] = -1
        if values.dtype.kind in "iu":
            # Two integers of this size may become the same float. As a key of a dictionary they stay themselves.
            large = np.flatnonzero((values > MAX_INTEGER) | (values < -MAX_INTEGER))
            rows[large] = [self.rows.get(value, -1) for value in values[large].tolist()]
        return rows


def split_blocks(size: int) -> Iterator[slice]:
    """Yield slices of at most :data:`BLOCK` that cover `size` values."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


def check_numbers(values: ArrayLike) -> NDArray[Any]:
    """Return private values as an array of any shape, narrow floats as by :func:`as_doubles`."""
    array = rectangular(values, "values")
    if array.size and (array.dtype.kind not in "iuf" or array.dtype.itemsize > np.float64().itemsize):
        raise InvalidInput(
            f"values are of type {array.dtype.type.__name__}, expected integers or floats of at most 64 bits"
        )
    return as_doubles(array) if array.dtype in (np.float16, np.float32) else array


def check_records(values: ArrayLike, ids: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the private values of records, one-dimensional, and their ids."""
    array = check_numbers(values)
    if array.ndim != 1 or array.shape != check_ids(ids).shape[:1]:
        raise InvalidInput(
            f"values have shape {array.shape} and ids {ids.shape}, expected (n,) and (n, 2): an id for each record"
        )
    return array, ids
