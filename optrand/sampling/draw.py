r"""Exact draws from a :class:`~optrand.model.table.Table`, small or large, and exact uniform integers.

A draw reads random words as the binary digits of a uniform number ``x`` in ``[0, 1)``. The weights of a label, in some
fixed order, have running sums ``S_0 = 0, S_1, ..., S_m = total``, and the draw is the output of the weight ``i`` with
``S_i <= total * x < S_{i+1}``. Nearly always the first word decides. If a threshold ``S_i / total`` lies within its
precision, the draw is decided in integers, with further words if they are needed. So every probability is
exactly ``weight / total``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.records import Record
from optrand.base.validation import MAX_INTEGER, Floats, as_doubles, exactly, rectangular
from optrand.errors import InvalidInput
from optrand.model.table import Table
from optrand.sampling._weights import Rows, Thresholds, Weights, settle
from optrand.sampling.entropy import (
    EntropySource,
    RecordEntropy,
    SystemEntropy,
    Words,
    check_first_words,
    check_width,
    check_words,
)
from optrand.sampling.keyed import check_ids

__all__ = ["LabelIndex", "Rows", "Sampler", "check_numbers", "check_records", "draw_integers", "split_blocks"]

BLOCK = 1 << 15
"""Values drawn at a time, so that the temporaries of a block stay in the processor's cache."""

DENSE = 1 << 18
"""Largest number of entries of a table that is always written out, even if it has few steps.

Rows that are written out are drawn from faster, by a third for interval columns and by more for others, but take about
half a microsecond and thirty bytes an entry. At this size that is a tenth of a second, which a million draws repay.
"""


@dataclass(frozen=True, eq=False)
class Sampler(Record):
    r"""Sampler with exactly the probabilities of a table.

    .. math:: \Pr[\text{output } v_i \mid \text{label } y] = \mathtt{weights[y, i]} / \mathtt{total}

    Parameters
    ----------
    table : Table

    Raises
    ------
    InvalidInput
        Another object than a table.

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
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> coin = Sampler(Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]))
    >>> coin.sample([0, 0, 0, 0, 1, 1, 1, 1], source=SeededEntropy(3)).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """

    table: Table

    def __post_init__(self) -> None:
        """Refuse anything but a table."""
        if not isinstance(self.table, Table):
            raise InvalidInput(f"table is of type {type(self.table).__name__}, expected a Table")
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
    def sample(
        self, values: float | np.integer[Any] | np.floating[Any], *, source: EntropySource | None = None
    ) -> np.float64: ...

    @overload
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats: ...

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats | np.float64:
        """Draw one output for every label in `values`: see ``Mechanism.sample``."""
        if source is None:
            source = SystemEntropy()
        width = check_width(source)
        number = values.item() if isinstance(values, np.number) else values
        if isinstance(values, (np.float16, np.float32)):
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
        """Draw one output for every label, which the streams, the id and the label determine.

        See ``Mechanism.sample_records``.
        """
        width = check_width(streams)
        flat, ids = check_records(values, ids)
        drawn = np.empty(flat.size)
        for block in split_blocks(flat.size):
            rows = self._find_rows(flat[block])
            own = ids[block]
            self._draw(rows, check_first_words(streams, own), width, _further_words(streams, own), drawn[block])
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


def _further_words(streams: RecordEntropy, ids: NDArray[np.uint64]) -> Callable[[int], EntropySource]:
    return lambda at: streams.substream(ids[at])


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
            # Two integers of this size may become the same float; as a key of a dictionary they stay themselves.
            large = np.flatnonzero((values > MAX_INTEGER) | (values < -MAX_INTEGER))
            rows[large] = [self.rows.get(value, -1) for value in values[large].tolist()]
        return rows


def split_blocks(size: int) -> Iterator[slice]:
    """Yield slices of at most :data:`BLOCK` that cover `size` values."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


def check_numbers(values: ArrayLike) -> NDArray[Any]:
    """Return private values as an array of any shape, floats of fewer digits as :func:`as_doubles`.

    Raises
    ------
    InvalidInput
        Values that are not integers or floats of at most 64 bits.
    """
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


def draw_integers(sizes: NDArray[np.int64], source: EntropySource) -> NDArray[np.int64]:
    """Draw uniform integers from 0 to ``size - 1``, exactly, for each of the (n,) array of `sizes` above 0.

    Words beyond the last multiple of the size are rejected; the number of words used depends on the sizes and on the
    words alone.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> draw_integers(np.array([1, 6, 6, 100]), SeededEntropy(2)).tolist()
    [0, 0, 0, 35]
    """
    width = check_width(source)
    parts = -(-int(sizes.max(initial=1)).bit_length() // width)
    # Sizes have at most 63 bits: the last of several words contributes only the bits that fit into 64.
    bits = min(64, width * parts)
    last_bits = bits - width * (parts - 1)
    # The last number before the cut at a multiple of the size: up to it every remainder is equally likely.
    distinct, index = np.unique(sizes, return_inverse=True)
    last = np.array([(1 << bits) // int(size) * int(size) - 1 for size in distinct], dtype=np.uint64)[index]
    drawn = np.zeros(sizes.size, dtype=np.uint64)
    pending = np.arange(sizes.size)
    while pending.size:
        numbers = np.zeros(pending.size, dtype=np.uint64)
        for _ in range(parts - 1):
            numbers = (numbers << np.uint64(width)) | check_words(source, pending.size)
        numbers = (numbers << np.uint64(last_bits % 64)) | (
            check_words(source, pending.size) >> np.uint64(width - last_bits)
        )
        drawn[pending] = numbers
        pending = pending[numbers > last[pending]]
    return (drawn % sizes.astype(np.uint64)).astype(np.int64)
