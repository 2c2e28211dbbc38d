r"""Exact laws of the noisy distribution of one cluster ([E22], Algorithm 1, lines 1 to 20).

Noise on counts is geometric with a rational ratio `B = exp(1 / sigma)` between neighbouring whole numbers: the law of
continuous Laplace noise at whole distances, and what the package draws. Clipping lumps the tails together, so that the
laws are finite, and all of them are fractions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from optrand.base.validation import Floats
from optrand.baselines.cluster import cluster_distribution

__all__ = ["Distribution", "channel", "histograms", "label_ratio", "law_of_distributions", "renormalized"]

Distribution = tuple[Fraction, ...]


@cache
def law_of_distributions(
    histogram: tuple[int, ...], threshold: Fraction, ratio: Fraction
) -> dict[Distribution, Fraction]:
    """The law of the noisy distribution of a cluster.

    Parameters
    ----------
    histogram : tuple of int
        How many rows have each label.
    threshold : Fraction
        `tau`.
    ratio : Fraction
        `B = exp(1 / sigma)`, above 1.

    Notes
    -----
    All counts below `tau` count alike, and so do all from the size of the cluster up: ``(n + 2)**k`` cases at most.

    Examples
    --------
    >>> law = law_of_distributions((1, 0), Fraction(1, 4), Fraction(2))
    >>> {tuple(map(str, q)): str(mass) for q, mass in law.items()}
    {('1/2', '1/2'): '4/9', ('1/4', '3/4'): '1/9', ('3/4', '1/4'): '4/9'}
    """
    size = sum(histogram)
    laws = [_clipped(count, math.floor(threshold * size), size, ratio) for count in histogram]
    law: defaultdict[Distribution, Fraction] = defaultdict(Fraction)
    for counts in product(*laws):
        mass = math.prod((each[count] for each, count in zip(laws, counts, strict=True)), start=Fraction(1))
        law[cluster_distribution([Fraction(count, size) for count in counts], threshold)] += mass
    return dict(law)


def _clipped(count: int, low: int, size: int, ratio: Fraction) -> dict[int, Fraction]:
    """A noisy count: `low` stands for all from there down, the size for all from there up."""
    law = {low: _at_most(low - count, ratio), size: _at_most(count - size, ratio)}
    for value in range(low + 1, size):
        law[value] = (ratio - 1) / (ratio + 1) * ratio ** -abs(value - count)
    return law


def _at_most(x: int, ratio: Fraction) -> Fraction:
    """The probability of noise up to `x`."""
    return ratio**x * ratio / (1 + ratio) if x < 0 else 1 - ratio**-x / (1 + ratio)


def renormalized(clipped: Floats, threshold: float) -> Floats:
    """Clipped shares as distributions, in floats and many at a time: lines 9 to 19 of Algorithm 1.

    Parameters
    ----------
    clipped : (..., K) array
        From the threshold to 1.
    threshold : float
        `tau`.

    Examples
    --------
    >>> renormalized(np.array([[1.0, 1.0], [0.5, 0.25]]), 0.25).tolist()
    [[0.5, 0.5], [0.6, 0.4]]
    """
    missing = 1 - clipped.sum(axis=-1, keepdims=True)
    room = np.where(missing < 0, clipped - threshold, 1 - clipped)
    total = room.sum(axis=-1, keepdims=True)
    step: Floats = np.divide(missing, total, out=np.zeros_like(missing), where=total > 0)
    return clipped + room * step


def channel(out: int, true: int, distribution: Distribution, resampling: Fraction) -> Fraction:
    """The probability of a noisy label, given the true one and the distribution of its cluster."""
    return (1 - resampling) * (out == true) + resampling * distribution[out]


def label_ratio(distribution: Distribution, resampling: Fraction) -> Fraction:
    """The largest ratio of two probabilities of one noisy label, where the distribution is public; label by label.

    Examples
    --------
    >>> label_ratio((Fraction(1, 3), Fraction(2, 3)), Fraction(1, 2))
    Fraction(4, 1)
    """
    labels = range(len(distribution))
    law = [[channel(out, true, distribution, resampling) for out in labels] for true in labels]
    return max(law[a][out] / law[b][out] for a, b, out in product(labels, repeat=3))


def histograms(k: int, size: int) -> Iterator[tuple[int, ...]]:
    """All numbers of rows with each of `k` labels that sum to `size`.

    Examples
    --------
    >>> list(histograms(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    return (counts for counts in product(range(size + 1), repeat=k) if sum(counts) == size)
