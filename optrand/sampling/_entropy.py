"""Sources of random words, the operating system or a seeded generator for tests, and exact uniform integers.

The operating system's source keeps no words for later: a buffer would be copied by a fork, and two processes would
release noise drawn from the same words.
"""

from __future__ import annotations

import os
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import check_integer
from optrand.errors import InvalidInput

Words = NDArray[np.uint64]

MAX_WIDTH = 64
"""Largest number of bits in a word."""


@runtime_checkable
class EntropySource(Protocol):
    """Source of random words for a sampler."""

    @property
    def width(self) -> int:
        """Number of bits in a word, from 1 to 64."""
        ...

    @property
    def private(self) -> bool:
        """Whether nobody can predict or repeat the words. False for anything seeded or written down."""
        ...

    def words(self, count: int) -> Words:
        """Return independent words, each uniform on ``[0, 2**width)``, shape ``(count,)``."""
        ...


class RecordEntropy(Protocol):
    """Random words that belong to records: the same for one id at every request, independent over ids."""

    @property
    def width(self) -> int:
        """Number of bits in a word, from 1 to 64."""
        ...

    def first_words(self, ids: NDArray[np.uint64]) -> Words:
        """Return the first word of each of the ``(n, 2)`` ids, shape ``(n,)``."""
        ...

    def substream(self, record: NDArray[np.uint64]) -> EntropySource:
        """Return further words of one id of shape ``(2,)``, independent of its first, always from the beginning."""
        ...


class SystemEntropy:
    """Words of 64 bits from the operating system's cryptographic generator, the only source fit for a release.

    Examples
    --------
    >>> source = SystemEntropy()
    >>> source.private, source.words(3).shape
    (True, (3,))
    """

    width: ClassVar[int] = 64
    private: ClassVar[bool] = True

    def words(self, count: int) -> Words:
        """Return the fresh words, requested from the operating system at the time of the call."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemEntropy()"


class SeededEntropy:
    """Words of 64 bits that anybody who knows the seed can repeat: for tests and notebooks, never for a release.

    Parameters
    ----------
    seed : int
        At least 0. Equal seeds give equal words on every machine.

    Examples
    --------
    >>> source = SeededEntropy(7)
    >>> source
    SeededEntropy(seed=7, private=False: not for a release)
    >>> bool((SeededEntropy(7).words(4) == source.words(4)).all())
    True
    """

    width: ClassVar[int] = 64
    private: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self._seed = check_integer(seed, "seed", 0)
        self._generator = np.random.PCG64DXSM(self._seed)

    def words(self, count: int) -> Words:
        """Return the next `count` words of the stream."""
        words: Words = self._generator.random_raw(count)
        return words

    def __repr__(self) -> str:
        return f"SeededEntropy(seed={self._seed}, private=False: not for a release)"


def check_width(source: EntropySource | RecordEntropy) -> int:
    """Return the width of `source`. Raise unless it is an integer from 1 to 64."""
    if not hasattr(source, "width"):
        raise InvalidInput(
            f"source is of type {type(source).__name__}, expected a source of random words: leave it out, or in an "
            "experiment pass optrand.sampling.SeededEntropy(seed)"
        )
    return check_integer(source.width, "the width of the entropy source's words", 1, MAX_WIDTH)


def check_words(source: EntropySource, count: int) -> Words:
    """Return words of `source`. Raise if their number, type or width is wrong.

    A word that is too wide would be read as a draw for another label.
    """
    return _check(source.words(count), count, source.width)


def check_first_words(streams: RecordEntropy, ids: NDArray[np.uint64]) -> Words:
    """Return the first words of records, checked as by :func:`check_words`."""
    return _check(streams.first_words(ids), len(ids), streams.width)


def _check(words: Words, count: int, width: int) -> Words:
    given: object = words
    if not isinstance(given, np.ndarray) or given.dtype != np.uint64 or given.shape != (count,):
        raise InvalidInput(f"the entropy source did not return {count} words as a one-dimensional array of uint64")
    if width < MAX_WIDTH and count and int(words.max()) >> width:
        raise InvalidInput(f"the entropy source returned a word of more than its {width} bits")
    return words


def draw_integers(sizes: NDArray[np.int64], source: EntropySource) -> NDArray[np.int64]:
    """Draw uniform integers from 0 to ``size - 1``, exactly, for each of the (n,) array of `sizes` above 0.

    Words beyond the last multiple of the size are rejected. The number of words used depends on the sizes and on the
    words alone.
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
