r"""Labels that peers exchange without a server ([E22], Algorithm 2), how private that is, and the bounds of [E22]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import float_above, log_above, log_bracket
from optrand.base._records import freeze
from optrand.base._validation import Floats, check_epsilon, check_integer, check_real
from optrand.baselines._groups import Groups
from optrand.baselines._peer_accounting import LEAST_DELTA, PeerPair
from optrand.baselines._randomization import LabelRandomization, check_fraction
from optrand.errors import InvalidInput
from optrand.sampling._draw import draw_integers
from optrand.sampling._entropy import EntropySource, SystemEntropy
from optrand.sampling._rounding import unbiased_rounding

EXHAUSTIVE = 128
"""Up to this cluster size every number of ones among the other users is tried."""


@dataclass(frozen=True)
class PeerPrivacy:
    """An epsilon and a delta of one cluster, against the learner.

    Attributes
    ----------
    epsilon, delta : float
    ones : int
        Number of the other users with the label 1 in the worst case; by symmetry the same number with the label 0.
    exhaustive : bool
        Whether all such numbers were tried; otherwise powers of two and a search between them.
    """

    epsilon: float
    delta: float
    ones: int
    exhaustive: bool


@dataclass(frozen=True, eq=False)
class PeerRelease:
    """Labels that reach the learner, and the users that sent them.

    Attributes
    ----------
    rows : (m,) array of int
        The users that sent a label, increasing.
    labels : (m,) array of int
        The label that each of them sent: the flipped label of some user of their cluster.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Copy the arrays, and freeze the copies."""
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

    Raises
    ------
    InvalidInput
        Probabilities outside [0, 1].

    Notes
    -----
    :attr:`epsilon` is pure and holds against any observer, because of the flips alone. The learner does not see who
    copied from whom. Against the learner :meth:`at_delta` is far smaller, and depends on the size of the cluster.
    :mod:`optrand.baselines._peer_accounting` derives the sums.

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
        """Check both."""
        for name in ("flip", "rate"):
            object.__setattr__(self, name, float(check_fraction(getattr(self, name), name, most=1)))

    @property
    def epsilon(self) -> float:
        r"""The privacy of the flips, against any observer: :math:`\log \frac{1 - \alpha}{\alpha}`, rounded up."""
        rarer = min(Fraction(self.flip), 1 - Fraction(self.flip))
        return log_above((1 - rarer) / rarer) if rarer else math.inf

    @property
    def exact_epsilon(self) -> Fraction:
        """Rational upper bound of the true :attr:`epsilon`, at most 1e-58 above it, for privacy accounts.

        Raises
        ------
        InvalidInput
            Labels that are never or always flipped: epsilon is infinite.
        """
        rarer = min(Fraction(self.flip), 1 - Fraction(self.flip))
        if not rarer:
            raise InvalidInput("labels that are never flipped, or always, are not private: take a rate between")
        return log_bracket((1 - rarer) / rarer)[1]

    @property
    def channel(self) -> LabelRandomization:
        """The flip: a fair coin in place of the label, with probability 2 alpha."""
        return LabelRandomization((Fraction(1, 2), Fraction(1, 2)), 2 * Fraction(self.flip))

    def likelihood(self, sent: ArrayLike) -> Floats:
        """Return the probability of each label that was sent under both labels of the user it was copied from."""
        return self.channel.likelihood(sent)

    def loss_weights(self, sent: ArrayLike) -> Floats:
        """Return the weights that undo the flip, as :meth:`LabelRandomization.loss_weights`."""
        return self.channel.loss_weights(sent)

    def peer_delta(self, size: int) -> float:
        r"""Compute the delta of one user's view, in addition to :attr:`epsilon`: :math:`|1 - 2\alpha| / n`, rounded up.

        Notes
        -----
        A user receives one flipped label, which is that of a given user with probability :math:`1/n` ([E22], Section
        5.1, prints :math:`1/s`).
        """
        return float_above(abs(1 - 2 * Fraction(self.flip)) / check_integer(size, "the size of a cluster", 1))

    def delta(self, epsilon: float, size: int) -> PeerPrivacy:
        """Compute the delta at an epsilon in a cluster of some size, for the worst labels of the other users.

        It is the upper end of :meth:`~optrand.baselines._peer_accounting.PeerPair.delta`. By the symmetry of labels 0
        and 1 only half of the numbers of ones are tried.
        """
        budget = check_epsilon(epsilon)
        delta, ones, exhaustive = self._worst(size, lambda pair, _: pair.delta(budget)[1])
        return PeerPrivacy(budget, delta, ones, exhaustive)

    def at_delta(self, delta: float, size: int) -> PeerPrivacy:
        """Compute the epsilon at a delta from 1e-25 to below 1, for the worst labels of the other users.

        A table is as private as the worst of its clusters, so compute this for each size that occurs. The result is the
        least epsilon by the upper end of :meth:`~optrand.baselines._peer_accounting.PeerPair.delta`, to 1e-9. At a
        smaller delta take the pure :attr:`epsilon`.

        Examples
        --------
        >>> round(PeerToPeer(0.1, 1.0).at_delta(1e-4, 60).epsilon, 3)
        0.808
        """
        target = check_real(delta, "delta")
        if not LEAST_DELTA <= target < 1:
            raise InvalidInput(
                f"delta is {target:g}, expected at least {LEAST_DELTA:g} and below 1: at a smaller delta "
                "take the pure epsilon of the flips"
            )
        # The pure epsilon needs no delta. The sums would consist of rounding errors there.
        epsilon, ones, exhaustive = self._worst(size, lambda pair, least: pair.epsilon(target, self.epsilon, least))
        return PeerPrivacy(epsilon, target, ones, exhaustive)

    def _worst(self, size: int, measure: Callable[[PeerPair, float], float]) -> tuple[float, int, bool]:
        """Maximise a measure over the labels of others. It may return the number it is given in place of a smaller."""
        n = check_integer(size, "the size of a cluster", 1)
        flip = min(self.flip, 1 - self.flip)

        @cache
        def at(ones: int, least: float = 0.0) -> float:
            return measure(PeerPair.of(n, flip, self.rate, ones=ones), least)

        # Labels 0 and 1 are symmetric.
        half = (n - 1) // 2
        if n <= EXHAUSTIVE:
            best, worst = 0, at(0)
            for ones in range(1, half + 1):
                if (found := at(ones, worst)) > worst:
                    best, worst = ones, found
            return worst, best, True
        # A heuristic for larger clusters: bracket the largest value by powers of two, and search between, as if there
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
        """Simulate all users at once.

        Arguments are those of :meth:`optrand.baselines.ClusterRR.release`; labels are 0 or 1. Flips, choices of users
        and subsampling are exact: probabilities are the rational numbers that the floats are.

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
        # Users cluster by cluster: a copy is that of a uniform place within the own cluster.
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
    r"""Compute the epsilon of [E22], Lemma 9, at a delta; infinite if its hypotheses do not hold.

    .. math:: \epsilon = \theta \log\Big(e + \frac{3}{s\alpha}\Big) + \sqrt\theta\, \xi \log\Big(1 +
              \frac{3}{\sqrt{s\alpha}}\Big), \qquad
              \delta = \exp\Big(-\frac{\alpha \xi^2}{4 (\alpha + 1/s) (1 - \alpha)}\Big)

    `size` is `s`, that of the smallest cluster. Hypotheses: :math:`s \alpha \geq 2` and :math:`\xi \leq 3 \alpha
    \sqrt{\theta s (1 - \alpha)}`; also :math:`\alpha \leq 1/2`, which the proof needs and the lemma omits.
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
    r"""Compute the epsilon of [E22], Theorem 3, with the constants of its proof; infinite without its hypotheses.

    Lemma 9 at :math:`\xi = 4 \sqrt{\log s}`, which gives :math:`\delta \leq 1/s^2`.

    Notes
    -----
    The theorem takes :math:`\alpha = 4 \sqrt 2 \log s / \sqrt{\theta s} \leq 1/2`, which takes more than 10,000
    users even at :math:`\theta = 1`; a larger flip, up to 1/2, serves its proof as well.
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
