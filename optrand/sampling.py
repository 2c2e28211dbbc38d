"""Exact draws from an integer table: probability ``weights[y, i] / total``, neither more nor less.

A draw is a stream of random words read as the binary digits of a uniform number ``x`` in ``[0, 1)``. With the running
sums ``C_0 = 0, C_1, ..., C_n = total`` of a row, the output is the one with ``C_i <= total * x < C_{i+1}``, and a
prefix of ``x`` decides as soon as every number that begins with it gives the same output. Nearly always one word does:

1. the first dozen bits pick a cell of a guide table, and most cells lie inside one output ([CA74]_);
2. otherwise the whole word is compared with the thresholds ``floor(C_i * 2**width / total)``, exact integers; a word
   that equals none of them is decided;
3. a word that equals a threshold (about ``n`` in ``2**width``) is settled in integers of any size, with as many further
   words as it takes.

No float takes part in the decision: floats are only the names of labels and outputs.

References
----------
.. [CA74] Chen and Asau, *On generating random variates from an empirical distribution*, AIIE Transactions 6, 1974.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.entropy import EntropySource, SystemEntropy, Words, checked_width, checked_words
from optrand.errors import InvalidInput
from optrand.validation import MAX_INTEGER, Floats, frozen
from optrand.validation import values as checked_values

__all__ = ["Sampler"]

Indices = NDArray[np.intp]

BLOCK = 1 << 15
"""Values drawn at a time: the temporaries of a block stay in the processor's cache."""

GUIDE_BITS = 12
"""Leading bits that pick a cell of the guide table; fewer where the table has very many labels."""

GUIDE_CELLS = 1 << 22
"""The most cells that all guide tables of a sampler have together."""

LABEL_SPAN = 1 << 16
"""Integer labels are looked up in a table if they span at most this many integers."""


class _LabelIndex:
    """From a value to the row of the label that it equals exactly."""

    def __init__(self, labels: Floats) -> None:
        self.labels = labels
        self.rows = {label: row for row, label in enumerate(labels.tolist())}
        self.low, self.high = float(labels[0]), float(labels[-1])
        self.table: Indices | None = None
        if self.high - self.low < LABEL_SPAN and max(-self.low, self.high) <= MAX_INTEGER and self._integers(labels):
            self.table = np.full(int(self.high - self.low) + 1, -1, dtype=np.intp)
            self.table[(labels - self.low).astype(np.intp)] = np.arange(labels.size)

    @staticmethod
    def _integers(labels: Floats) -> bool:
        return bool((labels == np.floor(labels)).all())

    def find(self, values: NDArray[Any]) -> Indices:
        """The row of each value, -1 where it is no label."""
        # Python's numbers compare exactly, whatever the type of the array. A NaN fails, and nothing that passes can
        # overflow an integer.
        if self.table is None or not (self.low <= values.min().item() and values.max().item() <= self.high):
            return self._search(values)
        integers = values.astype(np.intp)
        rows: Indices = self.table.take(integers - int(self.low))
        if values.dtype.kind == "f":
            rows[integers != values] = -1
        return rows

    def _search(self, values: NDArray[Any]) -> Indices:
        floats = values.astype(np.float64)
        rows = np.searchsorted(self.labels, floats).clip(max=self.labels.size - 1)
        rows[self.labels[rows] != floats] = -1
        if values.dtype.kind in "iu":
            # Two integers of this size may become the same float; as a key of a dictionary they stay themselves.
            large = np.flatnonzero((values > MAX_INTEGER) | (values < -MAX_INTEGER))
            rows[large] = [self.rows.get(value, -1) for value in values[large].tolist()]
        return rows


@dataclass(frozen=True, eq=False)
class _Tables:
    """What decides a draw from one word of `width` bits, for all rows of a table, laid end to end.

    ``guide`` has for each row one entry per cell and one more. An entry counts the thresholds below its cell; where the
    cell has thresholds of its own, so that more bits are needed, the count is stored as its bitwise complement, which
    is negative. ``thresholds`` has ``n - 1`` entries per row and a last one that is only ever read, never used.
    """

    width: int
    shift: int
    stride: int
    guide: NDArray[np.int16] | NDArray[np.int32]
    thresholds: Words
    step: int

    @classmethod
    def build(cls, weights: NDArray[np.object_], total: int, width: int) -> _Tables:
        """Compute the exact thresholds; cost ``O(k n)`` divisions of integers and ``O(k 2**12)`` memory."""
        k, n = weights.shape
        sums = np.cumsum(weights, axis=1)[:, :-1]
        # An output of weight zero at the end of a row has its threshold at 2**width, which no word holds. One less is
        # safe: words below it are decided rightly, and the one that equals it is settled in integers.
        exact = np.minimum((sums << width) // total, (1 << width) - 1)
        thresholds = exact.astype(np.uint64).reshape(k, n - 1)
        bits = min(width, max(1, min(GUIDE_BITS, (GUIDE_CELLS // k).bit_length() - 1)))
        shift, stride = width - bits, (1 << bits) + 1
        cells = (thresholds >> np.uint64(shift)).astype(np.intp) + 1 + stride * np.arange(k)[:, np.newaxis]
        below = np.bincount(cells.ravel(), minlength=k * stride).reshape(k, stride).cumsum(axis=1)
        mixed = np.diff(below, axis=1, append=n - 1) != 0
        guide = np.where(mixed, ~below, below).ravel()
        small = guide.astype(np.int16) if n <= np.iinfo(np.int16).max else guide.astype(np.int32)
        return cls(width, shift, stride, small, np.append(thresholds.ravel(), np.uint64(0)), n - 1)

    def guess(self, rows: Indices, words: Words) -> Indices:
        """The place in the guide of each row's word."""
        places: Indices = (words >> np.uint64(self.shift)).view(np.intp)
        places += rows * self.stride
        return places

    def search(self, rows: Indices, places: Indices, words: Words) -> tuple[Indices, NDArray[np.bool_]]:
        """The number of thresholds at or below each word, and whether the word equals one of them."""
        base = rows * self.step
        counts = self.guide[places], self.guide[places + 1]
        start, stop = (base + np.where(count < 0, ~count, count) for count in counts)
        low, high = start, stop
        for _ in range(int((stop - start).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            passed = (low < high) & (self.thresholds[middle] <= words)
            low, high = np.where(passed, middle + 1, low), np.where(passed, high, middle)
        return low - base, (low > start) & (self.thresholds[low - 1] == words)


@dataclass(frozen=True, eq=False)
class Sampler:
    r"""Draws outputs for labels, with exactly the probabilities of a table of integers.

    .. math:: \Pr[\text{output } v_i \mid \text{label } y] = \mathtt{weights[y, i]} / \mathtt{total}

    Parameters
    ----------
    labels : (k,) array
        Strictly increasing.
    outputs : (n,) array
        Strictly increasing.
    weights : (k, n) array of Python integers
        At least 0, of any size; each row sums to `total`.
    total : int
        Above 0.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, weights that are no integers or negative, or a row with another sum.

    Notes
    -----
    The tables are prepared at the first draw and kept: 3 ms for 53 labels and 104 outputs, 0.2 s for 401 and 800. From
    then on a draw costs about as much as the random word that it needs. Memory beyond the values and the outputs does
    not grow with their number.

    The time that a draw takes depends a little on the label and on the output, as with every table in memory: where an
    adversary can time single draws, draw in batches.

    Examples
    --------
    >>> from optrand.entropy import SeededEntropy
    >>> coin = Sampler([0, 1], [0, 1], [[3, 1], [1, 3]], 4)
    >>> coin.sample([0, 0, 0, 0, 1, 1, 1, 1], source=SeededEntropy(3)).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """

    labels: Floats
    outputs: Floats
    weights: NDArray[np.object_] = field(repr=False)
    total: int = field(repr=False)
    _tables: dict[int, _Tables] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit together."""
        for name in ("labels", "outputs"):
            array = frozen(checked_values(getattr(self, name), name))
            if (np.diff(array) <= 0).any():
                raise InvalidInput(f"{name} of a sampler must strictly increase")
            object.__setattr__(self, name, array)
        weights = np.array(self.weights, dtype=object)
        expected = (self.labels.size, self.outputs.size)
        if weights.shape != expected:
            raise InvalidInput(f"weights have shape {weights.shape}, expected {expected}: one row per label")
        if type(self.total) is not int or any(type(weight) is not int for weight in weights.flat):
            raise InvalidInput("weights and total must be Python integers: floats and machine integers round or wrap")
        if self.total <= 0 or weights.min() < 0:
            raise InvalidInput("weights must be at least 0, and their total above 0")
        wrong = int((weights.sum(axis=1) != self.total).sum())
        if wrong:
            raise InvalidInput(f"{wrong} row(s) of weights do not sum to the total, expected every row to")
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

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
            Where random words come from; by default the operating system, the only choice for a release.

        Returns
        -------
        array of outputs, of the shape of `values`; one float for one number

        Raises
        ------
        InvalidInput
            Values that are no numbers, or no labels; the message counts them and repeats none.
        """
        if source is None:
            source = SystemEntropy()
        tables = self._prepared(checked_width(source))
        number = values.item() if isinstance(values, np.number) else values
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return self._sample_one(number, tables, source)
        array = np.asarray(values)
        if array.size and (array.dtype.kind not in "iuf" or array.dtype.itemsize > np.float64().itemsize):
            raise InvalidInput(f"values are of type {array.dtype}, expected integers or floats of at most 64 bits")
        flat = array.reshape(-1)
        drawn = np.empty(flat.size)
        for block in _blocks(flat.size):
            rows = self._index.find(flat[block])
            if rows.min() < 0:
                strangers = sum(int((self._index.find(flat[other]) < 0).sum()) for other in _blocks(flat.size))
                raise self._unknown(strangers, flat.size)
            self._draw(rows, tables, source, drawn[block])
        return drawn.reshape(array.shape)

    def _prepared(self, width: int) -> _Tables:
        if width not in self._tables:
            self._tables[width] = _Tables.build(self.weights, self.total, width)
        return self._tables[width]

    @cached_property
    def _index(self) -> _LabelIndex:
        return _LabelIndex(self.labels)

    def _unknown(self, count: int, size: int) -> InvalidInput:
        return InvalidInput(
            f"{count} of {size} value(s) are not among the {self.labels.size} labels: "
            "declare them as labels, clip them, or leave them out"
        )

    def _sample_one(self, value: float, tables: _Tables, source: EntropySource) -> np.float64:
        """The same draw as in a batch of one, without the price of arrays."""
        row = self._index.rows.get(value)
        if row is None:
            raise self._unknown(1, 1)
        word: int = checked_words(source, 1).item()
        output = int(tables.guide[row * tables.stride + (word >> tables.shift)])
        if output < 0:
            output = self._settle(row, word, tables.width, source)
        drawn: np.float64 = self.outputs[output]
        return drawn

    def _draw(self, rows: Indices, tables: _Tables, source: EntropySource, drawn: Floats) -> None:
        """Write an output for every row into `drawn`."""
        words = checked_words(source, rows.size)
        places = tables.guess(rows, words)
        guess = tables.guide.take(places)
        # The complements of undecided cells wrap to some output, which is overwritten below.
        self.outputs.take(guess, out=drawn, mode="wrap")
        open_ = np.flatnonzero(guess < 0)
        if open_.size:
            rows, words = rows[open_], words[open_]
            found, equal = tables.search(rows, places[open_], words)
            for at in np.flatnonzero(equal).tolist():
                found[at] = self._settle(int(rows[at]), int(words[at]), tables.width, source)
            drawn[open_] = self.outputs[found]

    def _settle(self, row: int, bits: int, width: int, source: EntropySource) -> int:
        """The output of a draw that begins with `bits`, in integers of any size; more words only if it needs them.

        All ``x`` from ``bits / 2**length`` up to, but not at, ``(bits + 1) / 2**length`` agree when as many sums are at
        or below ``total`` times the first as are below ``total`` times the second.
        """
        sums = list(accumulate(self.weights[row, :-1]))
        length = width
        while True:
            surely = bisect_right(sums, (bits * self.total) >> length)
            possibly = bisect_left(sums, -(-(bits + 1) * self.total >> length))
            if surely == possibly:
                return surely
            bits = bits << width | int(checked_words(source, 1)[0])
            length += width


def _blocks(size: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))
