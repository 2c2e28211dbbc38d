"""Integer noise of many records at once, each from words of its own: exact, and the same whatever is drawn with it.

The coins are those of :mod:`optrand.sampling.discrete_noise` ([CKS20]), thrown for all records together. Each record
counts the words that it has used, so that what it draws depends on its key and id alone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optrand.sampling.entropy import RecordEntropy

__all__ = ["LARGEST", "RecordCoins", "fits", "record_laplace", "record_staircase"]

Integers = NDArray[np.int64]
Coins = NDArray[np.bool_]

LARGEST = 1 << 62
"""Bounds of uniform integers are below it; noise of longer fractions is drawn record by record."""

MOST = 1 << 9
"""Whole units of a geometric number are fewer, but with probability ``exp(-512)``."""


class RecordCoins:
    """Exact coins and uniform integers for records by their places.

    Parameters
    ----------
    ids : (n, 2) array of uint64
    streams : RecordEntropy
        Of words of 64 bits.

    Examples
    --------
    >>> from optrand.sampling.keyed import RecordStreams
    >>> ids = np.array([[1, 0], [2, 0]], dtype=np.uint64)
    >>> both, second = RecordCoins(ids, RecordStreams(bytes(32))), RecordCoins(ids[1:], RecordStreams(bytes(32)))
    >>> both.below(6, np.arange(2))[1] == second.below(6, np.arange(1))[0]
    np.True_
    """

    def __init__(self, ids: NDArray[np.uint64], streams: RecordEntropy) -> None:
        self._ids, self._streams = ids, streams
        self._used = np.zeros(len(ids), dtype=np.intp)

    def _words(self, at: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Next word of each record at some distinct places."""
        words = np.empty(at.size, dtype=np.uint64)
        used = self._used[at]
        for number in np.unique(used).tolist():
            among = np.flatnonzero(used == number)
            words[among] = self._streams.later_words(self._ids[at[among]], number)
        self._used[at] += 1
        return words

    def below(self, bound: int, at: NDArray[np.intp]) -> Integers:
        """Uniform integers from 0 to ``bound - 1``, by rejection; `bound` is at most :data:`LARGEST`."""
        drawn = np.zeros(at.size, dtype=np.int64)
        if bound == 1:
            return drawn
        last = np.uint64((1 << 64) // bound * bound - 1)
        pending = np.arange(at.size)
        while pending.size:
            words = self._words(at[pending])
            drawn[pending] = (words % np.uint64(bound)).astype(np.int64)
            pending = pending[words > last]
        return drawn

    def bernoulli_exp(self, numerators: Integers, denominator: int, at: NDArray[np.intp]) -> Coins:
        """Coins with probability ``exp(-numerator / denominator)``, for fractions from 0 to 1."""
        true = np.zeros(at.size, dtype=np.bool_)
        going, trial = np.arange(at.size), 1
        while going.size:
            # A coin of probability fraction / trial is two coins.
            on = self.below(denominator, at[going]) < numerators[going]
            if trial > 1:
                on[on] = self.below(trial, at[going[on]]) == 0
            true[going[~on]] = trial % 2 == 1
            going, trial = going[on], trial + 1
        return true

    def _over_e(self, at: NDArray[np.intp]) -> Coins:
        """Coins with probability ``exp(-1)``."""
        return self.bernoulli_exp(np.ones(at.size, dtype=np.int64), 1, at)

    def _two_over_e(self, at: NDArray[np.intp]) -> Coins:
        """Coins with probability ``2 exp(-1) = 1 - 1 / 3 + 1 / (3 * 4) - ...``."""
        true = np.zeros(at.size, dtype=np.bool_)
        going, trial = np.arange(at.size), 3
        while going.size:
            on = self.below(trial, at[going]) == 0
            true[going[~on]] = trial % 2 == 1
            going, trial = going[on], trial + 1
        return true

    def lower(self, epsilon: Fraction, halves: int, at: NDArray[np.intp]) -> Coins:
        """Coins with probability ``2**halves * exp(-epsilon)``, for at most `epsilon` halves."""
        whole, rest = divmod((epsilon - halves).numerator, (epsilon - halves).denominator)
        going = np.arange(at.size)
        for coin in (self._two_over_e,) * halves + (self._over_e,) * whole:
            going = going[coin(at[going])]
        numerators = np.full(going.size, rest, dtype=np.int64)
        going = going[self.bernoulli_exp(numerators, (epsilon - halves).denominator, at[going])]
        true = np.zeros(at.size, dtype=np.bool_)
        true[going] = True
        return true

    def geometric(self, scale: Fraction, at: NDArray[np.intp]) -> Integers:
        """Integers of at least 0 with ``Pr[x]`` proportional to ``exp(-x / scale)``."""
        steps, stride = scale.numerator, scale.denominator
        within, whole = np.zeros(at.size, dtype=np.int64), np.zeros(at.size, dtype=np.int64)
        going = np.arange(at.size)
        while going.size:
            within[going] = self.below(steps, at[going])
            going = going[~self.bernoulli_exp(within[going], steps, at[going])]
        going = np.arange(at.size)
        while (going := going[self._over_e(at[going])]).size:
            whole[going] += 1
        if int(whole.max(initial=0)) >= MOST:
            raise OverflowError("a geometric number of 512 units or more: probability exp(-512)")
        quotient, rest = divmod(steps, stride)
        # In two parts, so that no product leaves 64 bits.
        return whole * quotient + (within // stride) + (within % stride + whole * rest) // stride

    def signed(self, size: Callable[[NDArray[np.intp]], Integers]) -> Integers:
        """Sizes with signs, one for each record; a negative zero is drawn again."""
        drawn, going = np.zeros(self._used.size, dtype=np.int64), np.arange(self._used.size)
        while going.size:
            sizes, negative = size(going), self.below(2, going) == 1
            drawn[going] = np.where(negative, -sizes, sizes)
            going = going[(sizes == 0) & negative]
        return drawn


def fits(*scales: Fraction) -> bool:
    """Whether geometric numbers of these scales, and what they are made of, are integers of 64 bits."""
    return all(scale.numerator <= LARGEST and scale.denominator <= 1 << 53 and scale <= 1 << 52 for scale in scales)


def record_laplace(scale: Fraction, ids: NDArray[np.uint64], streams: RecordEntropy) -> Integers | None:
    """Noise of :func:`~optrand.sampling.discrete_noise.discrete_laplace` for each record; None if it does not fit.

    Examples
    --------
    >>> from optrand.sampling.keyed import RecordStreams
    >>> ids = np.array([[1, 0], [2, 0], [3, 0]], dtype=np.uint64)
    >>> noise = record_laplace(Fraction(3, 2), ids, RecordStreams(bytes(32)))
    >>> (record_laplace(Fraction(3, 2), ids[::-1], RecordStreams(bytes(32))) == noise[::-1]).all()
    np.True_
    """
    if not fits(scale):
        return None
    coins = RecordCoins(ids, streams)
    return coins.signed(lambda at: coins.geometric(scale, at))


def record_staircase(
    epsilon: Fraction, ids: NDArray[np.uint64], streams: RecordEntropy, *, sensitivity: int, rise: int
) -> Integers | None:
    """Noise of :func:`~optrand.sampling.discrete_noise.discrete_staircase` for each record; None if it does not fit."""
    lower = sensitivity - rise
    halves = min(int(epsilon), (-(-lower // rise) - 1).bit_length() if lower else 0)
    bound = max(rise << halves, lower)
    if not fits(1 / epsilon, sensitivity / epsilon) or bound > LARGEST:
        return None
    coins = RecordCoins(ids, streams)

    def within(at: NDArray[np.intp]) -> Integers:
        found, going = np.zeros(at.size, dtype=np.int64), np.arange(at.size)
        while going.size:
            upper, place = coins.below(2, at[going]) == 0, coins.below(bound, at[going])
            above = going[upper & (place < rise << halves)]
            below = going[~upper & (place < lower)]
            below = below[coins.lower(epsilon, halves, at[below])]
            found[above] = coins.below(rise, at[above])
            if below.size:
                found[below] = rise + coins.below(lower, at[below])
            going = np.setdiff1d(going, np.concatenate((above, below)), assume_unique=True)
        return found

    return coins.signed(lambda at: within(at) + sensitivity * coins.geometric(1 / epsilon, at))
