"""Many biased coins at once, with exactly the stated rational probability, packed eight to an octet."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optrand.sampling.entropy import MAX_WIDTH, EntropySource, check_width, check_words

__all__ = ["Octets", "coins", "octets"]

Octets = NDArray[np.uint8]


def octets(source: EntropySource, count: int) -> Octets:
    """Draw `count` uniform octets from the words of a source, of any width. Drop the rest of the last word.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> octets(SeededEntropy(0), 3).tolist()
    [112, 138, 120]
    """
    width = check_width(source)
    words = check_words(source, -(-8 * count // width))
    # A fixed order of bytes, so that a seed means the same on every machine.
    drawn = words.astype("<u8", copy=False).view(np.uint8)
    if width < MAX_WIDTH:
        bits = np.unpackbits(drawn.reshape(-1, 8), axis=1, count=width, bitorder="little")
        drawn = np.packbits(bits.reshape(-1))
    return drawn[:count]


def coins(probability: Fraction, count: int, source: EntropySource) -> Octets:
    """Draw `count` octets of eight independent coins: each bit is 1 with exactly the given probability, below 1.

    Notes
    -----
    A coin shows heads where a uniform number in ``[0, 1)`` lies below the probability `q`: at the first binary digit in
    which the two differ, the number must have the 0.

    *Proof.* After ``t`` rounds a coin is open with probability ``2**-t``: all its digits so far are those of `q`. If
    the next digit of `q` is 1, a drawn 0 makes heads. If it is 0, a drawn 1 makes tails. Otherwise the coin stays open.
    Heads has probability ``sum of 2**-t`` over the digits 1 of `q`, which is `q`. The digits come from long division in
    integers, so nothing is rounded. An octet is open after ``t`` rounds with probability ``1 - (1 - 2**-t)**8``, whose
    sum over ``t`` is 4.4: the mean number of random octets for eight coins.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> drawn = coins(Fraction(1, 3), 100_000, SeededEntropy(0))
    >>> round(float(np.unpackbits(drawn).mean()), 3)
    0.333
    """
    heads = np.zeros(count, dtype=np.uint8)
    at, undecided = np.arange(count), np.full(count, 255, dtype=np.uint8)
    remainder = probability.numerator
    while at.size:
        digit, remainder = divmod(2 * remainder, probability.denominator)
        drawn = octets(source, at.size)
        if digit:
            heads[at] |= undecided & ~drawn
            undecided = undecided & drawn
        else:
            undecided = undecided & ~drawn
        still = undecided != 0
        at, undecided = at[still], undecided[still]
    return heads
