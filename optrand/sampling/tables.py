"""Exact draws from an integer table, with probabilities ``weights[y, i] / total``.

Of a uniform number ``x`` and the running sums ``C_0 = 0, C_1, ..., C_n = total`` of a row, the output is the one with
``C_i <= total * x < C_{i+1}`` (:mod:`optrand.sampling.drawing`). Nearly always the first word of ``x`` decides:

1. its first dozen bits pick a cell of a guide table, and most cells lie inside one output ([CA74]);
2. otherwise it is compared with the thresholds ``floor(C_i * 2**width / total)``, exact integers;
3. a word that equals a threshold (about ``n`` in ``2**width``) is settled in integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.sampling.drawing import Draws, LabelSampler, Rows, bisected, increasing, settled, thresholds
from optrand.sampling.entropy import EntropySource, Words, checked_words

__all__ = ["Sampler"]

GUIDE_BITS = 12
"""Leading bits that pick a cell of the guide table; fewer where the table has very many labels."""

GUIDE_CELLS = 1 << 22
"""Largest number of cells in all guide tables of a sampler."""


@dataclass(frozen=True, eq=False)
class _Tables:
    """Guides and thresholds of all rows, laid end to end, which decide a draw from one word of `width` bits.

    ``guide`` has for each row one entry per cell and one more: the number of thresholds below the cell, or, where the
    cell has thresholds of its own, the bitwise complement of that number. ``thresholds`` has ``n - 1`` entries per row
    and a last one that is read but never used.
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
        edges = thresholds(sums, total, width).reshape(k, n - 1)
        bits = min(width, max(1, min(GUIDE_BITS, (GUIDE_CELLS // k).bit_length() - 1)))
        shift, stride = width - bits, (1 << bits) + 1
        cells = (edges >> np.uint64(shift)).astype(np.intp) + 1 + stride * np.arange(k)[:, np.newaxis]
        below = np.bincount(cells.ravel(), minlength=k * stride).reshape(k, stride).cumsum(axis=1)
        mixed = np.diff(below, axis=1, append=n - 1) != 0
        guide = np.where(mixed, ~below, below).ravel()
        small = guide.astype(np.int16) if n <= np.iinfo(np.int16).max else guide.astype(np.int32)
        return cls(width, shift, stride, small, np.append(edges.ravel(), np.uint64(0)), n - 1)

    def guess(self, rows: Rows, words: Words) -> Rows:
        """Place in the guide of each row's word."""
        places: Rows = (words >> np.uint64(self.shift)).view(np.intp)
        places += rows * self.stride
        return places

    def search(self, rows: Rows, cells: Rows, words: Words) -> tuple[Rows, NDArray[np.bool_]]:
        """Number of thresholds at or below each word, and whether the word equals one of them."""
        base = rows * self.step
        counts = self.guide[cells], self.guide[cells + 1]
        start, stop = (base + np.where(count < 0, ~count, count) for count in counts)
        found = bisected(start, stop, lambda places: self.thresholds[places] <= words)
        return found - base, (found > start) & (self.thresholds[found - 1] == words)


@dataclass(frozen=True, eq=False)
class Sampler(LabelSampler[_Tables]):
    r"""Sampler with exactly the probabilities of a table of integers.

    .. math:: \Pr[\text{output } v_i \mid \text{label } y] = \mathtt{weights[y, i]} / \mathtt{total}

    Parameters
    ----------
    labels, outputs : (k,) and (n,) arrays
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
    Tables are prepared at the first draw and kept: 3 ms for 53 labels and 104 outputs, 0.2 s for 401 and 800. From then
    on a draw costs about as much as its random word; temporary memory does not grow with the number of values.

    The time of a draw depends a little on the label and on the output, as with every table in memory: where an
    adversary can time single draws, draw in batches.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> coin = Sampler([0, 1], [0, 1], [[3, 1], [1, 3]], 4)
    >>> coin.sample([0, 0, 0, 0, 1, 1, 1, 1], source=SeededEntropy(3)).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """

    labels: Floats
    outputs: Floats
    weights: NDArray[np.object_] = field(repr=False)
    total: int = field(repr=False)

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit together."""
        for name in ("labels", "outputs"):
            object.__setattr__(self, name, increasing(getattr(self, name), name))
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

    @classmethod
    def of_proven(cls, labels: Floats, outputs: Floats, weights: NDArray[np.object_], total: int) -> Sampler:
        """Sampler of parts that a mechanism has proven and frozen: they are not checked again."""
        sampler = object.__new__(cls)
        vars(sampler).update(labels=labels, outputs=outputs, weights=weights, total=total)
        return sampler

    def _build(self, width: int) -> _Tables:
        return _Tables.build(self.weights, self.total, width)

    def _draw_one(self, row: int, tables: _Tables, source: EntropySource) -> int:
        word: int = checked_words(source, 1).item()
        output = int(tables.guide[row * tables.stride + (word >> tables.shift)])
        return output if output >= 0 else self._settle(row, word, tables.width, source)

    def _draw(self, rows: Rows, tables: _Tables, draws: Draws, drawn: Floats) -> None:
        """Write an output for every row into `drawn`."""
        words = draws.words
        places = tables.guess(rows, words)
        guess = tables.guide.take(places)
        # The complements of undecided cells wrap to some output, which is overwritten below.
        self.outputs.take(guess, out=drawn, mode="wrap")
        open_ = np.flatnonzero(guess < 0)
        if open_.size:
            rows, words = rows[open_], words[open_]
            found, equal = tables.search(rows, places[open_], words)
            for at in np.flatnonzero(equal).tolist():
                found[at] = self._settle(int(rows[at]), int(words[at]), tables.width, draws.further(int(open_[at])))
            drawn[open_] = self.outputs[found]

    def _settle(self, row: int, word: int, width: int, source: EntropySource) -> int:
        return settled(list(accumulate(self.weights[row, :-1])), self.total, (word, width), source)
