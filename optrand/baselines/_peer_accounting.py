r"""Privacy of resampled labels against a learner: two laws, and the delta between them at every epsilon.

In a cluster of `n` users the label of one is 0 or 1, and `ones` of the others have the label 1. Every label is flipped
once, with probability :math:`\alpha`; let :math:`Z` be the number of ones afterwards. Each user copies the flipped
label of a user drawn uniformly, and sends the copy to the learner with probability :math:`\theta`. So the number of
copies is :math:`T \sim \mathrm{Bin}(n, \theta)` whatever the labels are, and the number of ones among them

.. math:: J \mid T, Z \sim \mathrm{Bin}(T, Z / n), \qquad
          Z \sim \mathrm{Bin}(\mathtt{ones}, 1 - \alpha) + \mathrm{Bin}(n - 1 - \mathtt{ones}, \alpha) + \text{the one
          user's}.

Given :math:`(T, J)` all orders are equally likely. So the pair is a sufficient statistic, and

.. math:: \delta(\epsilon) = \sum_t \Pr[T = t] \sum_j \max\big(0, \Pr[j | t] - e^\epsilon \Pr{}'[j | t]\big).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from optrand.base._validation import MAX_EPSILON, Floats

LEAST_DELTA = 1e-25
"""Least supported delta: far above the mass that the sums omit, which is then negligible."""


@dataclass(frozen=True)
class Sums:
    """Where the sums of :class:`PeerPair` are cut, and how many terms are taken together."""

    omitted: float = 1e-29  # upper bound of the mass that the sums for one pair omit
    rows: int = 64  # binomials that are tabulated at a time, over the numbers of ones that count for them
    single: int = 128  # numbers of copies up to which they are summed one by one
    # Cuts of larger sums over the number of copies, in standard deviations from its mean.
    offsets: tuple[float, ...] = (-12, -8, -6, -5, *np.arange(-4, 4.1, 0.25).tolist(), 5, 6, 8)


SUMS = Sums()


@dataclass(frozen=True, eq=False)
class PeerPair:
    """Distributions of a learner's view of one cluster, if a user's label is 0 and if it is 1."""

    numbers: tuple[int, ...]  # of copies, increasing
    masses: Floats  # probability that the number of copies is at most each number and above the one before it
    laws: tuple[tuple[Floats, Floats], ...]  # of the ones among each number of copies, without negligible ones

    @classmethod
    def of(cls, size: int, flip: float, rate: float, *, ones: int) -> PeerPair:
        """Sum over the flips of all users, of whom `ones` others have the label 1.

        `flip` is at most 1/2, and `rate` the probability that a copy is sent to the learner. Each factor of the sums
        is cut about 12 standard deviations from its mean, so that the cost is ``O(size)`` for each of at most 128
        numbers of copies. Probabilities are floats with relative errors of about 1e-11.
        """
        start, copies = _binomial(size, rate)
        edges = _edges(start, copies, size, rate)
        sums = np.concatenate(([0.0], np.cumsum(copies)))
        masses = np.diff(sums[np.concatenate(([0], edges - start + 1))])
        # The flipped ones among the other users, of both labels.
        (low, p), (high, q) = _binomial(ones, 1 - flip), _binomial(size - 1 - ones, flip)
        flipped = low + high, np.convolve(p, q)
        laws = tuple(_laws(int(t), size, flip, flipped) for t in edges)
        return cls(tuple(edges.tolist()), masses, laws)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Enclose the least delta between two numbers, for the worse of both directions.

        Fewer copies are a function of more copies, so that delta grows with their number: of numbers taken together the
        largest bounds delta from above, and the largest of the numbers before from below.
        """
        # Hockey-stick divergences in both directions, for each number of copies.
        ratio = math.exp(epsilon)
        deltas = np.array(
            [[np.maximum(p - ratio * q, 0).sum(), np.maximum(q - ratio * p, 0).sum()] for p, q in self.laws]
        )
        alone = np.diff(self.numbers, prepend=self.numbers[0] - 1) == 1
        before = np.concatenate((np.zeros((1, 2)), deltas[:-1]))
        low = self.masses @ np.where(alone[:, np.newaxis], deltas, before)
        return float(low.max()), float((self.masses @ deltas).max()) + SUMS.omitted

    def epsilon(self, delta: float, most: float, least: float = 0.0) -> float:
        """Find the least epsilon, to 1e-9 and rounded up, at which the upper end is at most `delta`.

        It is at most `most`, an epsilon that needs no delta, and infinite if none is large enough. `least` is returned
        in place of a smaller one, without a search. `delta` is at least :data:`LEAST_DELTA`.
        """
        if self.delta(least)[1] <= delta:
            return least
        # Double until delta is reached, then bisect.
        low, high = least, max(1.0, 2 * least)
        while high < most and self.delta(high)[1] > delta:
            if high > MAX_EPSILON / 2:
                return math.inf
            low, high = high, 2 * high
        high = min(high, most)
        while high - low > 1e-9 * max(1.0, high):
            middle = (low + high) / 2
            if self.delta(middle)[1] > delta:
                low = middle
            else:
                high = middle
        return high


def _half_width(variance: float) -> int:
    """Bound the distance of a binomial from its mean, except for a mass of 1e-30 (Bernstein)."""
    tail = math.log(2e30)
    return 0 if variance == 0 else math.ceil(tail / 3 + math.sqrt(tail**2 / 9 + 2 * tail * variance))


def _log_choose(n: int, j: NDArray[np.int64]) -> Floats:
    logs: Floats = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    return logs


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """Compute the probabilities of a binomial, and the value at which they begin."""
    half = _half_width(n * p * (1 - p))
    start, stop = max(0, math.floor(n * p) - half), min(n, math.ceil(n * p) + half)
    j = np.arange(start, stop + 1)
    mass: Floats = np.exp(_log_choose(n, j) + xlogy(j, p) + xlog1py(n - j, -p))
    # All of the mass is here, so that dividing by its sum removes an error of the logarithms of factorials.
    return start, mass / mass.sum()


def _edges(start: int, copies: Floats, size: int, rate: float) -> NDArray[np.int64]:
    """Choose numbers of copies, each of which stands for itself and those before it."""
    last = start + copies.size - 1
    if copies.size <= SUMS.single:
        return np.arange(start, last + 1)
    cuts = np.round(size * rate + np.array(SUMS.offsets) * math.sqrt(size * rate * (1 - rate))).astype(np.int64)
    return np.unique(np.append(cuts[(cuts > start) & (cuts < last)], last))


def _laws(t: int, size: int, flip: float, flipped: tuple[int, Floats]) -> tuple[Floats, Floats]:
    """Compute the laws of the number of ones among `t` copies, with the user's label 0 and with it 1."""
    first, law = flipped
    shares = np.arange(first, first + law.size + 1) / size
    half = _half_width(t * float((shares * (1 - shares)).max()))
    begin, end = max(0, math.floor(t * shares[0]) - half), min(t, math.ceil(t * shares[-1]) + half)
    mixed = np.zeros((2, end - begin + 1))
    # Rows of the mixture: the user's flipped label is 0, and it is 1.
    weights = np.zeros((2, shares.size))
    weights[0, :-1], weights[1, 1:] = law, law
    for at in range(0, shares.size, SUMS.rows):
        part = shares[at : at + SUMS.rows]
        j = np.arange(max(begin, math.floor(t * part[0]) - half), min(end, math.ceil(t * part[-1]) + half) + 1)
        # A share of 0 or 1 has a logarithm for which only zero ones, or only ones, keep a mass above 1e-300.
        some, none = (np.log(np.maximum(x, 1e-300)) for x in (part, 1 - part))
        table = np.outer(some, j)
        table += np.outer(none, t - j)
        table += _log_choose(t, j)
        np.exp(table, out=table)
        mixed[:, j - begin] += (weights[:, at : at + SUMS.rows] / table.sum(axis=1)) @ table
    without, with_one = mixed
    return (1 - flip) * without + flip * with_one, flip * without + (1 - flip) * with_one
