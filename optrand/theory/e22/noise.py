"""Exact laws of what Algorithm 1 of [E22] releases of one cluster, with noise in whole rows as the package draws it.

Neighbouring counts have the rational ratio `B = exp(1 / sigma)`, and clipping makes the laws finite.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TypeVar

import numpy as np

from optrand.base.validation import Floats
from optrand.baselines.cluster import cluster_distribution
from optrand.theory.sums import pushed, times

TOLERANCE = 1e-9
"""Of sums, quantiles, logarithms and inverses in floats."""

Distribution = tuple[Fraction, ...]
Histogram = tuple[int, ...]
Key = TypeVar("Key", bound=Hashable)


@cache
def noisy_law(histogram: Histogram, threshold: Fraction, ratio: Fraction) -> dict[Distribution, Fraction]:
    """Return the law of the noisy distribution of a cluster with these counts of labels; `ratio` is `B`.

    Examples
    --------
    >>> law = noisy_law((1, 0), Fraction(1, 4), Fraction(2))
    >>> {tuple(map(str, q)): str(mass) for q, mass in law.items()}
    {('1/2', '1/2'): '4/9', ('1/4', '3/4'): '1/9', ('3/4', '1/4'): '4/9'}
    """
    size = sum(histogram)
    noisy = product(*(_clipped(count, math.floor(threshold * size), size, ratio).items() for count in histogram))
    counts = ((tuple(count for count, _ in each), times(mass for _, mass in each)) for each in noisy)
    return pushed(counts, lambda row: cluster_distribution([Fraction(count, size) for count in row], threshold))


def _clipped(count: int, low: int, size: int, ratio: Fraction) -> dict[int, Fraction]:
    """Return the law of a noisy count: `low` stands for all from there down, the size for all from there up."""

    def tail(x: int) -> Fraction:
        return ratio**x * ratio / (1 + ratio) if x < 0 else 1 - ratio**-x / (1 + ratio)

    inner = {x: (ratio - 1) / (ratio + 1) * ratio ** -abs(x - count) for x in range(low + 1, size)}
    return {low: tail(low - count), size: tail(count - size)} | inner


def renormalized(clipped: Floats, threshold: float) -> Floats:
    """Return clipped shares as distributions, in floats and many at a time: lines 9 to 19 of Algorithm 1."""
    missing = 1 - clipped.sum(axis=-1, keepdims=True)
    room = np.where(missing < 0, clipped - threshold, 1 - clipped)
    whole = room.sum(axis=-1, keepdims=True)
    step: Floats = np.divide(missing, whole, out=np.zeros_like(missing), where=whole > 0)
    return clipped + room * step


def histograms(k: int, size: int) -> Iterator[Histogram]:
    """Yield all counts of `k` labels that sum to `size`."""
    return (counts for counts in product(range(size + 1), repeat=k) if sum(counts) == size)
