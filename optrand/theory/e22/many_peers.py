"""What peers in large clusters spend ([E22]_, Theorem 3).

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from optrand.baselines.peer_accounting import PeerPair
from optrand.baselines.peer_bounds import theorem3_flip
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst

__all__ = ["CLAIMS", "ManyPeers", "theorem3_epsilon"]

TOLERANCE = 1e-9
"""Of sums and roots in floats."""

PAPERS_CONSTANT = 4 * math.sqrt(2)
"""The constant `C` of the proof of Theorem 3."""


@dataclass(frozen=True)
class ManyPeers:
    """A cluster whose flip is set by its size and its rate, `alpha = C log(s) / sqrt(theta s)`.

    Attributes
    ----------
    size : int
        `s`.
    constant : float
        `C`.
    flip : float
        `alpha`, which decides the rate.
    """

    size: int
    constant: float
    flip: float

    @property
    def rate(self) -> float:
        """`theta`; the flip is such that it is at most 1 but for rounding."""
        root = self.constant * math.log(self.size) / self.flip
        return min(1.0, root * root / self.size)

    def delta(self, epsilon: float, flip: float) -> tuple[float, float]:
        """Two numbers between which delta lies where all other users have the label 0, or half of them.

        A bound that is below the first is broken; one that is above the second holds for these labels.
        """
        pairs = _pairs(self.size, min(flip, 1 - flip), self.rate)
        lows, highs = zip(*(pair.delta(epsilon) for pair in pairs), strict=True)
        return max(lows), max(highs)

    def __str__(self) -> str:
        return f"s = {self.size}, C = {self.constant:.6g}, alpha = {self.flip:.6g}, theta = {self.rate:.6g}"


@lru_cache(maxsize=8)
def _pairs(size: int, flip: float, rate: float) -> tuple[PeerPair, ...]:
    return tuple(PeerPair.of(size, flip, rate, ones=ones) for ones in (0, (size - 1) // 2))


def theorem3_epsilon(size: int, rate: float) -> float:
    """The epsilon of Theorem 3 with the constants in the last line of its proof.

    Examples
    --------
    >>> round(theorem3_epsilon(20_000, 1.0), 4)
    1.4251
    """
    small = 3 * rate * math.sqrt(rate / size) / (math.e * math.log(size))
    return rate + small + 3 * math.pow(2 * rate, 3 / 4) / math.pow(size, 1 / 4)


def _many(budget: Budget) -> Iterator[ManyPeers]:
    """Flips of 1 and near it at several constants, then clusters in which the proof's flip is at most 1/2."""
    for constant, size in ((0.25, 10), (0.5, 100), (1.0, 100), (2.0, 500), (PAPERS_CONSTANT, 4_000)):
        yield from (ManyPeers(size, constant, flip) for flip in ((1.0, 0.95) if size < 500 else (1.0,)))
    sizes = budget.pick(quick=(11_700, 20_000), full=(11_700, 20_000, 50_000, 100_000))
    for size in sizes:
        yield ManyPeers(size, PAPERS_CONSTANT, theorem3_flip(size, 1.0))
        if budget is Budget.FULL and size > 20_000:
            yield ManyPeers(size, PAPERS_CONSTANT, 0.5)


def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / sqrt(s log s) + theta**(3/4) / s**(1/4).

    For some C. Tried at ten times that sum; where alpha is 1 no multiple of it would do, whatever C.
    """
    size, rate = peers.size, peers.rate
    order = rate + rate**1.5 / math.sqrt(size * math.log(size)) + rate**0.75 / size**0.25
    return at_most(peers.delta(10 * order, peers.flip)[0], 1 / size**2)


def many_peers_that_flip_less_than_half_are_private(peers: ManyPeers) -> Comparison:
    """The same for the least of 1/2 and that alpha at C = 4 sqrt(2), at the epsilon in the last line of the proof."""
    epsilon = theorem3_epsilon(peers.size, peers.rate)
    return at_most(peers.delta(epsilon, _proven_flip(peers))[1], 1 / peers.size**2)


def many_peers_are_as_private_as_their_mean(peers: ManyPeers) -> Comparison:
    """The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are forgotten."""
    epsilon = peers.rate / math.sqrt(peers.size)
    return at_most(peers.delta(epsilon, _proven_flip(peers))[0], 1 / peers.size**2)


def _proven_flip(peers: ManyPeers) -> float:
    return min(0.5, theorem3_flip(peers.size, peers.rate))


@dataclass(frozen=True)
class _Proven:
    """Where the proof of Theorem 3 speaks."""

    size: int
    rate: float

    @property
    def flip(self) -> float:
        """`alpha`, at most 1/2."""
        return theorem3_flip(self.size, self.rate)

    @property
    def xi(self) -> float:
        """`4 sqrt(log s)`."""
        return 4 * math.sqrt(math.log(self.size))

    def __str__(self) -> str:
        return f"s = {self.size}, theta = {self.rate}, alpha = {self.flip:.6g}"


def _proven(budget: Budget) -> Iterator[_Proven]:
    for size in (11_340, 20_000, 10**6, 10**14, 10**20, *budget.pick(quick=(), full=(10**9, 10**40))):
        yield from (_Proven(size, rate) for rate in (1.0, 0.3, 1e-2) if theorem3_flip(size, rate) <= 0.5)


def xi_is_allowed_by_logs(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most 4 log s, and that at most alpha sqrt(theta s) / 2."""
    most = proven.flip * math.sqrt(proven.rate * proven.size) / 2
    logs = 4 * math.log(proven.size)
    return worst(at_most(proven.xi, logs), at_most(logs, most))


def xi_is_allowed(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most 3 alpha sqrt(theta s (1 - alpha)), as Lemma 9 asks."""
    return at_most(proven.xi, 3 * proven.flip * math.sqrt(proven.rate * proven.size * (1 - proven.flip)))


def xi_is_allowed_by_an_eighth(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most alpha sqrt(theta s) / 8."""
    return at_most(proven.xi, proven.flip * math.sqrt(proven.rate * proven.size) / 8)


def the_first_logarithm_holds_root_72(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = sqrt(72 theta) / (sqrt(s) log s)."""
    return _inside(proven, 72.0)


def the_first_logarithm_holds_less(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = sqrt(9 theta / 32) / (sqrt(s) log s)."""
    return _inside(proven, 9 / 32)


def the_first_logarithm_holds_three(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = 3 sqrt(theta) / (sqrt(s) log s), as in the line that follows it."""
    return _inside(proven, 9.0)


def _inside(proven: _Proven, square: float) -> Comparison:
    right = math.sqrt(square * proven.rate / proven.size) / math.log(proven.size)
    return equal(3 / (proven.size * proven.flip), right, tolerance=TOLERANCE)


PROVEN = "C = 4 sqrt(2) and alpha at most 1/2, as in the proof"

CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 3",
        hypothesis="a cluster of s users, alpha = C log(s) / sqrt(theta s)",
        instances=_many,
        printed=many_peers_are_private,
        corrected=many_peers_that_flip_less_than_half_are_private,
        false=many_peers_are_as_private_as_their_mean,
    ),
    Claim(
        paper="E22",
        number="Theorem 3",
        part="range of xi",
        hypothesis=PROVEN,
        instances=_proven,
        printed=xi_is_allowed_by_logs,
        corrected=xi_is_allowed,
        false=xi_is_allowed_by_an_eighth,
    ),
    Claim(
        paper="E22",
        number="Theorem 3",
        part="equation 33",
        hypothesis=PROVEN,
        instances=_proven,
        printed=the_first_logarithm_holds_root_72,
        corrected=the_first_logarithm_holds_less,
        false=the_first_logarithm_holds_three,
    ),
)
