r"""Labels that peers exchange without a server ([E22], Algorithm 2), their privacy, and the bounds of [E22].

In a cluster of `n` users the label of one is 0 or 1, and `ones` of the others have the label 1. Every label is flipped
once, with probability :math:`\alpha`. Let :math:`Z` be the number of ones afterwards. Each user copies the flipped
label of a user drawn uniformly, and sends the copy to the learner with probability :math:`\theta`. So the number of
copies is :math:`T \sim \mathrm{Bin}(n, \theta)` whatever the labels, and the number of ones among them

.. math:: J \mid T, Z \sim \mathrm{Bin}(T, Z / n), \qquad
          Z \sim \mathrm{Bin}(\mathtt{ones}, 1 - \alpha) + \mathrm{Bin}(n - 1 - \mathtt{ones}, \alpha) + \text{the one
          user's}.

Given :math:`(T, J)` all orders are equally likely. So the pair is a sufficient statistic, and

.. math:: \delta(\epsilon) = \sum_t \Pr[T = t] \sum_j \max\big(0, \Pr[j | t] - e^\epsilon \Pr{}'[j | t]\big).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py, xlogy

from optrand.base._arithmetic import float_above, log_above, log_bracket
from optrand.base._validation import MAX_EPSILON, Floats, check_epsilon, check_integer, check_real, freeze
from optrand.baselines._groups import Groups
from optrand.baselines._randomization import LabelRandomization, check_fraction
from optrand.errors import InvalidInput
from optrand.sampling._entropy import EntropySource, SystemEntropy, draw_integers
from optrand.sampling._rounding import unbiased_rounding

LEAST_DELTA = 1e-25
"""Least supported delta: far above the mass that the sums omit, which is then negligible."""


@dataclass(frozen=True)
class Sums:
    """Limits of the sums of :class:`PeerPair`: omitted mass, terms per block, and pairs."""

    omitted: float = 1e-29  # upper bound of the mass that the sums for one pair omit
    rows: int = 64  # binomials that are tabulated at a time, each without negligible numbers of ones
    single: int = 128  # numbers of copies up to which they are summed one by one
    exhaustive: int = 128  # cluster size up to which every number of ones among the other users is tried
    # Cuts of larger sums over the number of copies, in standard deviations from its mean.
    offsets: tuple[float, ...] = (-12, -8, -6, -5, *np.arange(-4, 4.1, 0.25).tolist(), 5, 6, 8)


SUMS = Sums()


@dataclass(frozen=True, eq=False)
class PeerPair:
    """Distributions of a learner's view of one cluster, for a user's label 0 and for the label 1."""

    numbers: tuple[int, ...]  # of copies, increasing
    masses: Floats  # probability that the number of copies is at most each number and above the one before it
    laws: tuple[tuple[Floats, Floats], ...]  # of the ones among each number of copies, without negligible ones

    @classmethod
    def of(cls, size: int, flip: float, rate: float, *, ones: int) -> PeerPair:
        """Sum over the flips of all users, with `ones` labels 1 among the others.

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
        """Enclose the least delta for both directions between two numbers.

        Fewer copies are a function of more copies, so that delta grows with their number. In a block of numbers the
        largest bounds delta from above, and the largest of the block before from below.
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

        It is at most `most`, an epsilon that needs no delta. `least` is returned in place of a smaller one, without a
        search. `delta` is at least :data:`LEAST_DELTA`.
        """
        if self.delta(least)[1] <= delta:
            return least
        steps = range(math.floor(least * 1e9), math.ceil(min(most, MAX_EPSILON) * 1e9))
        found = bisect_left(steps, True, key=lambda step: self.delta(step / 1e9)[1] <= delta)
        return steps[found] / 1e9 if found < len(steps) else most


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
    # Dividing by the sum of the mass, which is 1, removes errors of the logarithms of factorials.
    return start, mass / mass.sum()


def _edges(start: int, copies: Floats, size: int, rate: float) -> NDArray[np.int64]:
    """Choose numbers of copies, each of which represents itself and those before it."""
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
        # A share of 0 or 1 has a finite logarithm with which all other numbers of ones have a mass below 1e-300.
        some, none = (np.log(np.maximum(x, 1e-300)) for x in (part, 1 - part))
        table = np.outer(some, j)
        table += np.outer(none, t - j)
        table += _log_choose(t, j)
        np.exp(table, out=table)
        mixed[:, j - begin] += (weights[:, at : at + SUMS.rows] / table.sum(axis=1)) @ table
    without, with_one = mixed
    return (1 - flip) * without + flip * with_one, flip * without + (1 - flip) * with_one


@dataclass(frozen=True)
class PeerPrivacy:
    """An epsilon and a delta of one cluster, against the learner.

    Attributes
    ----------
    epsilon, delta : float
    ones : int
        Number of the other users with one of the labels, 0 or 1, in the worst case.
    exhaustive : bool
        Whether all such numbers were tried, or only powers of two and a search between them.
    """

    epsilon: float
    delta: float
    ones: int
    exhaustive: bool


@dataclass(frozen=True, eq=False)
class PeerRelease:
    """The users who sent a label to the learner, increasing, and the labels that they sent, both of shape (m,)."""

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        freeze(self, "rows", "labels")


@dataclass(frozen=True)
class PeerToPeer:
    r"""The peer-to-peer mechanism of [E22], Algorithm 2, for labels 0 and 1.

    1. Every user flips their own label, once, with probability :math:`\alpha`.
    2. Every user copies the flipped label of a user drawn uniformly from their cluster, possibly themselves.
    3. Every user sends the copy to the learner with probability :math:`\theta`.

    Parameters
    ----------
    flip : float
        :math:`\alpha`, from 0 to 1.
    rate : float
        :math:`\theta`, from 0 to 1.

    Notes
    -----
    :attr:`epsilon` is pure and holds against any observer, because of the flips alone. Against the learner, who does
    not see who copied from whom, :meth:`at_delta` is far smaller, and depends on the size of the cluster.

    [E22] proves Lemma 9 for labels that are independent draws of one probability, and for a fixed number
    :math:`\theta n` of them. But users who copy from the same user get the same flipped label, and the number of labels
    that are sent is random. This class computes the privacy of Algorithm 2 as printed.

    Examples
    --------
    >>> mechanism = PeerToPeer(0.2, 0.5)
    >>> round(mechanism.epsilon, 6)
    1.386294
    >>> privacy = mechanism.at_delta(1e-4, 30)
    >>> round(privacy.epsilon, 4), privacy.exhaustive
    (0.4102, True)
    """

    exact: ClassVar[Literal[True]] = True

    flip: float
    rate: float

    def __post_init__(self) -> None:
        for name in ("flip", "rate"):
            object.__setattr__(self, name, float(check_fraction(getattr(self, name), name, most=1)))

    @property
    def epsilon(self) -> float:
        r"""The privacy of the flips, against any observer: :math:`\log \frac{1 - \alpha}{\alpha}`, rounded up."""
        rarer = min(Fraction(self.flip), 1 - Fraction(self.flip))
        return log_above((1 - rarer) / rarer) if rarer else math.inf

    @property
    def exact_epsilon(self) -> Fraction:
        """Rational upper bound of a finite :attr:`epsilon`, at most 1e-58 above it, for privacy accounts."""
        rarer = min(Fraction(self.flip), 1 - Fraction(self.flip))
        if not rarer:
            raise InvalidInput("labels that are never flipped, or always, are not private: use a flip between 0 and 1")
        return log_bracket((1 - rarer) / rarer)[1]

    @property
    def channel(self) -> LabelRandomization:
        """The flip, as a fair coin in place of the label with probability 2 alpha."""
        return LabelRandomization((Fraction(1, 2), Fraction(1, 2)), 2 * Fraction(self.flip))

    def likelihood(self, sent: ArrayLike) -> Floats:
        """Return the probability of each sent label under both labels of the user from whom it was copied."""
        return self.channel.likelihood(sent)

    def loss_weights(self, sent: ArrayLike) -> Floats:
        """Return the weights that undo the flip, as :meth:`LabelRandomization.loss_weights`."""
        return self.channel.loss_weights(sent)

    def peer_delta(self, size: int) -> float:
        r"""Compute the delta of one user's view, in addition to :attr:`epsilon`: :math:`|1 - 2\alpha| / n`, rounded up.

        A user receives one flipped label, which is that of a given user with probability :math:`1/n`.
        """
        return float_above(abs(1 - 2 * Fraction(self.flip)) / check_integer(size, "the size of a cluster", 1))

    def delta(self, epsilon: float, size: int) -> PeerPrivacy:
        """Compute the delta at an epsilon in a cluster, rounded up, for the worst labels of the other users."""
        budget = check_epsilon(epsilon)
        delta, ones, exhaustive = self._worst(size, lambda pair, _: pair.delta(budget)[1])
        return PeerPrivacy(budget, delta, ones, exhaustive)

    def at_delta(self, delta: float, size: int) -> PeerPrivacy:
        """Compute the epsilon at a delta from 1e-25 to below 1, for the worst labels of the other users.

        It is rounded up, by at most 1e-9. A table is as private as the worst of its clusters, so compute this for each
        size that occurs. For a delta below 1e-25 use the pure :attr:`epsilon`.

        Examples
        --------
        >>> round(PeerToPeer(0.1, 1.0).at_delta(1e-4, 60).epsilon, 3)
        0.808
        """
        target = check_real(delta, "delta")
        if not LEAST_DELTA <= target < 1:
            raise InvalidInput(
                f"delta is {target:g}, expected at least {LEAST_DELTA:g} and below 1: at a smaller delta "
                "use the pure epsilon of the flips"
            )
        # The pure epsilon needs no delta. The sums would consist of rounding errors there.
        epsilon, ones, exhaustive = self._worst(size, lambda pair, least: pair.epsilon(target, self.epsilon, least))
        return PeerPrivacy(epsilon, target, ones, exhaustive)

    def _worst(self, size: int, measure: Callable[[PeerPair, float], float]) -> tuple[float, int, bool]:
        """Maximise a measure over the labels of others. A result below its second argument may be replaced by that."""
        n = check_integer(size, "the size of a cluster", 1)
        flip = min(self.flip, 1 - self.flip)

        @cache
        def at(ones: int, least: float = 0.0) -> float:
            return measure(PeerPair.of(n, flip, self.rate, ones=ones), least)

        # Labels 0 and 1 are symmetric.
        half = (n - 1) // 2
        if n <= SUMS.exhaustive:
            best, worst = 0, at(0)
            for ones in range(1, half + 1):
                if (found := at(ones, worst)) > worst:
                    best, worst = ones, found
            return worst, best, True
        # A heuristic for larger clusters: bracket the largest value by powers of two, and search between as if there
        # were one peak.
        tried = [0, *(1 << bit for bit in range(half.bit_length()) if 1 << bit <= half), half]
        place = max(range(len(tried)), key=lambda position: at(tried[position]))
        low, high = tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)]
        while high - low > 2:
            one, two = low + (high - low) // 3, high - (high - low) // 3
            low, high = (low, two) if at(one) >= at(two) else (one, high)
        best = max({*tried, *range(low, high + 1)}, key=at)
        return at(best), best, False

    def release(self, labels: ArrayLike, groups: Groups, *, source: EntropySource | None = None) -> PeerRelease:
        """Simulate all users at once, whose labels are 0 or 1, with exactly the probabilities that the floats are.

        Arguments are those of :meth:`optrand.baselines.ClusterRR.release`.

        Examples
        --------
        >>> from optrand.sampling import SeededEntropy
        >>> groups = Groups.of_ids(["a", "a", "a", "b", "b", "b"])
        >>> release = PeerToPeer(0.1, 0.5).release(
        ...     [0, 0, 0, 1, 1, 1], groups, source=SeededEntropy(1)
        ... )
        >>> release.rows.tolist(), release.labels.tolist()
        ([0, 4], [0, 1])
        """
        array = groups.check_labels(labels, 2)
        words = SystemEntropy() if source is None else source
        flipped = array ^ self._coins(self.flip, groups.n, words)
        # Users are sorted by cluster, so a copy comes from a uniform position within the own cluster.
        members = np.argsort(groups.index, kind="stable")
        starts = np.concatenate(([0], np.cumsum(groups.sizes)[:-1]))
        chosen = draw_integers(groups.sizes[groups.index].astype(np.int64), words)
        copies = flipped[members[starts[groups.index] + chosen]]
        rows = np.flatnonzero(self._coins(self.rate, groups.n, words)).astype(np.int64)
        return PeerRelease(rows, copies[rows].astype(np.int64))

    @staticmethod
    def _coins(probability: float, count: int, source: EntropySource) -> NDArray[np.intp]:
        return unbiased_rounding(np.full(count, probability), [0.0, 1.0], source=source).astype(np.intp)


def lemma9(mechanism: PeerToPeer, delta: float, size: int) -> float:
    r"""Compute the epsilon of [E22], Lemma 9, at a delta, infinite if its hypotheses do not hold.

    .. math:: \epsilon = \theta \log\Big(e + \frac{3}{s\alpha}\Big) + \sqrt\theta\, \xi \log\Big(1 +
              \frac{3}{\sqrt{s\alpha}}\Big), \qquad
              \delta = \exp\Big(-\frac{\alpha \xi^2}{4 (\alpha + 1/s) (1 - \alpha)}\Big)

    `size` is `s`, that of the smallest cluster. Hypotheses: :math:`s \alpha \geq 2` and :math:`\xi \leq 3 \alpha
    \sqrt{\theta s (1 - \alpha)}`. Another is :math:`\alpha \leq 1/2`, which the proof needs and the lemma omits.
    """
    s, alpha, theta = check_integer(size, "the size of a cluster", 1), mechanism.flip, mechanism.rate
    target = check_real(delta, "delta")
    if not 0 < target < 1:
        raise InvalidInput(f"delta is {target:g}, expected a number above 0 and below 1")
    if not 2 / s <= alpha <= 1 / 2:
        return math.inf
    xi = math.sqrt(-4 * (alpha + 1 / s) * (1 - alpha) * math.log(target) / alpha)
    return lemma9_at(mechanism, xi, s)[0] if xi <= 3 * alpha * math.sqrt(theta * s * (1 - alpha)) else math.inf


def lemma9_at(mechanism: PeerToPeer, xi: float, size: int) -> tuple[float, float]:
    r"""Compute epsilon and delta of [E22], Lemma 9, at a :math:`\xi`, whether or not its hypotheses hold.

    The larger :math:`\xi \geq 0`, the larger is epsilon, and the smaller delta. The flip is above 0 and below 1.
    """
    flip, rate = mechanism.flip, mechanism.rate
    least = size * flip
    spread = math.sqrt(rate) * xi * math.log1p(3 / math.sqrt(least))
    delta = math.exp(-flip * xi**2 / (4 * (flip + 1 / size) * (1 - flip)))
    return rate * math.log(math.e + 3 / least) + spread, delta


def theorem3(mechanism: PeerToPeer, size: int) -> float:
    r"""Compute the epsilon of [E22], Theorem 3, with the constants of its proof, infinite without its hypotheses.

    It is Lemma 9 at :math:`\xi = 4 \sqrt{\log s}`, for which :math:`\delta \leq 1/s^2`.

    Notes
    -----
    The theorem has :math:`\alpha = 4 \sqrt 2 \log s / \sqrt{\theta s} \leq 1/2`, which needs more than 10,000
    users even at :math:`\theta = 1`. Its proof also holds for a larger flip, up to 1/2.
    """
    s = check_integer(size, "the size of a cluster", 2)
    if not theorem3_flip(s, mechanism.rate) <= mechanism.flip <= 1 / 2:
        return math.inf
    return lemma9_at(mechanism, 4 * math.sqrt(math.log(s)), s)[0]


def theorem3_flip(size: int, rate: float) -> float:
    r"""Compute the flip of [E22], Theorem 3, :math:`\alpha = 4 \sqrt 2 \log s / \sqrt{\theta s}`, if at most 1/2.

    Examples
    --------
    >>> round(theorem3_flip(20_000, 1.0), 4), round(theorem3_flip(1_000, 1.0), 4)
    (0.3961, 1.2357)
    """
    return 4 * math.sqrt(2) * math.log(size) / math.sqrt(rate * size) if rate else math.inf
