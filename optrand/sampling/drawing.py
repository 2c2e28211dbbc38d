"""Shared steps of all samplers: look up labels, draw words in blocks, decide ties in integers.

A draw is a stream of random words read as the binary digits of a uniform number ``x`` in ``[0, 1)``. With the running
sums ``C_0 = 0, C_1, ..., C_n = total`` of integer weights, the answer is the ``i`` with ``C_i <= total * x < C_{i+1}``.
The first word decides unless some threshold lies within its precision; :func:`settled` decides the others exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import MAX_INTEGER, Floats, frozen, rectangular
from optrand.base.validation import values as checked_values
from optrand.errors import InvalidInput
from optrand.sampling.entropy import (
    EntropySource,
    RecordEntropy,
    SystemEntropy,
    Words,
    checked_first_words,
    checked_width,
    checked_words,
)
from optrand.sampling.keyed import checked_ids

__all__ = [
    "BLOCK",
    "Draws",
    "LabelIndex",
    "LabelSampler",
    "Rows",
    "bisected",
    "blocks",
    "checked_numbers",
    "checked_records",
    "increasing",
    "settled",
    "thresholds",
]

Rows = NDArray[np.intp]

Tables = TypeVar("Tables")

BLOCK = 1 << 15
"""Values drawn at a time, so that the temporaries of a block stay in the processor's cache."""

LABEL_SPAN = 1 << 16
"""Largest span of integer labels that are looked up in a table."""


def increasing(given: ArrayLike, name: str) -> Floats:
    """Read-only copy of the labels or outputs of a sampler."""
    array = frozen(checked_values(given, name))
    if (np.diff(array) <= 0).any():
        raise InvalidInput(f"{name} of a sampler must strictly increase")
    return array


def thresholds(sums: NDArray[np.object_], total: int, width: int) -> NDArray[np.uint64]:
    """``floor(sum * 2**width / total)`` for running sums: a word below it is surely below the sum, one above is not.

    A sum that is all of the total would have ``2**width``, which no word holds. One less is safe: a word that equals it
    is settled in integers.
    """
    exact = np.minimum((sums << width) // total, (1 << width) - 1)
    words: NDArray[np.uint64] = exact.astype(np.uint64)
    return words


def bisected(low: Rows, high: Rows, passed: Callable[[Rows], NDArray[np.bool_]]) -> Rows:
    """First place in ``[low, high)`` that is not passed, or `high`, for each pair of places: one bisection for all."""
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        onward = (low < high) & passed(middle)
        low, high = np.where(onward, middle + 1, low), np.where(onward, high, middle)
    return low


def settled(sums: Sequence[int], total: int, start: tuple[int, int], source: EntropySource) -> int:
    """Answer of a draw that begins with given bits, in integers of any size, with further words only if needed.

    All ``x`` from ``bits / 2**length`` up to, but not at, ``(bits + 1) / 2**length`` agree when as many sums are at or
    below ``total`` times the first as are below ``total`` times the second.

    Parameters
    ----------
    sums : sequence of int
        Running sums of the weights but the last, which is the total.
    total : int
    start : pair of int
        The first word, and its width in bits.
    source : EntropySource
        Of further words of that width.
    """
    bits, width = start
    length = width
    while True:
        surely = bisect_right(sums, (bits * total) >> length)
        possibly = bisect_left(sums, -(-(bits + 1) * total >> length))
        if surely == possibly:
            return surely
        bits = bits << width | int(checked_words(source, 1)[0])
        length += width


@dataclass(frozen=True)
class Draws:
    """First words of many draws, and where a draw takes further words from if its first is a tie."""

    words: Words
    further: Callable[[int], EntropySource]

    @classmethod
    def of_source(cls, count: int, source: EntropySource) -> Draws:
        """Draws whose words all come from one source, those of ties after the first words."""
        return cls(checked_words(source, count), lambda _: source)

    @classmethod
    def of_records(cls, ids: NDArray[np.uint64], streams: RecordEntropy) -> Draws:
        """Draws that belong to records: no word depends on which others are drawn with them."""
        return cls(checked_first_words(streams, ids), lambda place: streams.substream(ids[place]))


class LabelIndex:
    """Index from values to the rows of the labels that they equal exactly."""

    def __init__(self, labels: Floats) -> None:
        self.labels = labels
        self.rows = {label: row for row, label in enumerate(labels.tolist())}
        self.low, self.high = float(labels[0]), float(labels[-1])
        self.table: Rows | None = None
        if self.high - self.low < LABEL_SPAN and max(-self.low, self.high) <= MAX_INTEGER and self._integers(labels):
            self.table = np.full(int(self.high - self.low) + 1, -1, dtype=np.intp)
            self.table[(labels - self.low).astype(np.intp)] = np.arange(labels.size)

    @staticmethod
    def _integers(labels: Floats) -> bool:
        return bool((labels == np.floor(labels)).all())

    def find(self, values: NDArray[Any]) -> Rows:
        """Row of each value, -1 where it is no label."""
        # Python's numbers compare exactly, whatever the type of the array. A NaN fails, and nothing that passes can
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
            # Two integers of this size may become the same float; as a key of a dictionary they stay themselves.
            large = np.flatnonzero((values > MAX_INTEGER) | (values < -MAX_INTEGER))
            rows[large] = [self.rows.get(value, -1) for value in values[large].tolist()]
        return rows


class LabelSampler(ABC, Generic[Tables]):
    """Base of the samplers that draw outputs for labels."""

    labels: Floats
    outputs: Floats

    @overload
    def sample(
        self, values: float | np.integer[Any] | np.floating[Any], *, source: EntropySource | None = None
    ) -> np.float64: ...

    @overload
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats: ...

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats | np.float64:
        """One output for every label in `values`.

        Parameters
        ----------
        values : array of integers or floats, any shape, or one number
            Each equal to one of the labels.
        source : EntropySource, optional
            By default the operating system, the only choice for a release.

        Returns
        -------
        array of outputs, of the shape of `values`; one float for one number

        Raises
        ------
        InvalidInput
            Values that are no numbers, or no labels; the message tells neither which nor how many.
        """
        if source is None:
            source = SystemEntropy()
        tables = self._prepared(checked_width(source))
        number = values.item() if isinstance(values, np.number) else values
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return self._sample_number(number, tables, source)
        array = checked_numbers(values)
        flat = array.reshape(-1)
        drawn = np.empty(flat.size)
        for block in blocks(flat.size):
            rows = self._rows(flat[block])
            self._draw(rows, tables, Draws.of_source(rows.size, source), drawn[block])
        return drawn.reshape(array.shape)

    def sample_records(self, values: ArrayLike, ids: NDArray[np.uint64], streams: RecordEntropy) -> Floats:
        """One output for every label in `values`, which the key of the streams, the id and the label determine.

        Neither the order of records nor what else is drawn with them makes a difference.

        Parameters
        ----------
        values : (n,) array of integers or floats
            Each equal to one of the labels.
        ids : (n, 2) array of uint64
            Ids of the records, distinct over the whole release: see :class:`~optrand.sampling.keyed.RecordStreams`.
        streams : RecordEntropy
            Such as :class:`~optrand.sampling.keyed.RecordStreams`.

        Returns
        -------
        (n,) array of outputs

        Raises
        ------
        InvalidInput
            Values that are no numbers, or no labels; the message tells neither which nor how many. Ids of another
            type or number.
        """
        tables = self._prepared(checked_width(streams))
        flat, ids = checked_records(values, ids)
        drawn = np.empty(flat.size)
        for block in blocks(flat.size):
            self._draw(self._rows(flat[block]), tables, Draws.of_records(ids[block], streams), drawn[block])
        return drawn

    def _rows(self, values: NDArray[Any]) -> Rows:
        rows = self._index.find(values)
        if rows.min() < 0:
            raise self._unknown()
        return rows

    @cached_property
    def _tables(self) -> dict[int, Tables]:
        return {}

    def _prepared(self, width: int) -> Tables:
        if width not in self._tables:
            self._tables[width] = self._build(width)
        return self._tables[width]

    @cached_property
    def _index(self) -> LabelIndex:
        return LabelIndex(self.labels)

    def _unknown(self) -> InvalidInput:
        # How many, let alone which, would be an exact figure of private labels.
        return InvalidInput(
            f"at least one value is not among the {self.labels.size} labels: "
            "declare all that may occur, clip the values, or leave out those that are no labels"
        )

    def _sample_number(self, value: float, tables: Tables, source: EntropySource) -> np.float64:
        """Draw for one value, as in a batch of one, without the overhead of arrays."""
        row = self._index.rows.get(value)
        if row is None:
            raise self._unknown()
        drawn: np.float64 = self.outputs[self._draw_one(row, tables, source)]
        return drawn

    @abstractmethod
    def _build(self, width: int) -> Tables:
        """Tables that decide a draw from one word of `width` bits."""

    @abstractmethod
    def _draw(self, rows: Rows, tables: Tables, draws: Draws, drawn: Floats) -> None:
        """Write an output for every row into `drawn`."""

    @abstractmethod
    def _draw_one(self, row: int, tables: Tables, source: EntropySource) -> int:
        """Index of the output for one row."""


def blocks(size: int) -> Iterator[slice]:
    """Slices of at most :data:`BLOCK` that cover `size` values."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


def checked_numbers(values: ArrayLike) -> NDArray[Any]:
    """Private values as an array of any shape, refused unless they are integers or floats of at most 64 bits."""
    array = rectangular(values, "values")
    if array.size and (array.dtype.kind not in "iuf" or array.dtype.itemsize > np.float64().itemsize):
        raise InvalidInput(
            f"values are of type {array.dtype.type.__name__}, expected integers or floats of at most 64 bits"
        )
    return array


def checked_records(values: ArrayLike, ids: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Private values of records, one-dimensional, and as many ids."""
    array = checked_numbers(values)
    if array.ndim != 1 or array.shape != checked_ids(ids).shape[:1]:
        raise InvalidInput(
            f"values have shape {array.shape} and ids {ids.shape}, expected (n,) and (n, 2): an id for each record"
        )
    return array, ids
