"""Exact uniform integers, many at once, each below a bound of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.sampling.entropy import EntropySource, checked_width, checked_words

__all__ = ["integers_below"]


def integers_below(sizes: NDArray[np.int64], source: EntropySource) -> NDArray[np.int64]:
    """Uniform integers from 0 to ``size - 1``, exactly, for each of the (n,) array of `sizes` above 0.

    Words beyond the last multiple of the size are rejected; the number of words used depends on the sizes and on the
    words alone.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> integers_below(np.array([1, 6, 6, 100]), SeededEntropy(2)).tolist()
    [0, 0, 0, 35]
    """
    width = checked_width(source)
    parts = -(-int(sizes.max(initial=1)).bit_length() // width)
    # The last number before the cut at a multiple of the size: up to it every remainder is equally likely.
    distinct, index = np.unique(sizes, return_inverse=True)
    numbers = 1 << (width * parts)
    last = np.array([numbers // int(size) * int(size) - 1 for size in distinct], dtype=np.uint64)[index]
    drawn = np.zeros(sizes.size, dtype=np.uint64)
    pending = np.arange(sizes.size)
    while pending.size:
        numbers_drawn = np.zeros(pending.size, dtype=np.uint64)
        for _ in range(parts):
            numbers_drawn = (numbers_drawn << np.uint64(width % 64)) | checked_words(source, pending.size)
        drawn[pending] = numbers_drawn
        pending = pending[numbers_drawn > last[pending]]
    return (drawn % sizes.astype(np.uint64)).astype(np.int64)
