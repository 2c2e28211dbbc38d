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
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS", "ManyPeers", "theorem3_epsilon"]


@dataclass(frozen=True)
class ManyPeers:
    """A cluster whose rate follows from its size and its flip: `alpha = 4 sqrt(2) log(s) / sqrt(theta s)`.

    Attributes
    ----------
    size : int
        `s`.
    flip : float
        `alpha`.
    """

    size: int
    flip: float

    @property
    def rate(self) -> float:
        """`theta`; the flip is such that it is at most 1 but for rounding."""
        root = theorem3_flip(self.size, 1.0) / self.flip
        return min(1.0, root * root)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Two numbers between which delta lies where all other users have the label 0, or half of them.

        A bound that is below the first is broken; one that is above the second holds for these labels.
        """
        lows, highs = zip(*(pair.delta(epsilon) for pair in _pairs(self.size, self.flip, self.rate)), strict=True)
        return max(lows), max(highs)

    def __str__(self) -> str:
        return f"s = {self.size}, alpha = {self.flip:.6g}, theta = {self.rate:.6g}"


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
    """Clusters in which the flip is at most 1/2, with all users sending copies or as few as that allows."""
    for size in budget.pick(quick=(11_700, 20_000), full=(11_700, 20_000, 50_000, 100_000)):
        yield ManyPeers(size, theorem3_flip(size, 1.0))
        if size > 11_700:
            yield ManyPeers(size, 0.5)


def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / (sqrt(s) log s) + theta**(3/4) / s**(1/4).

    Tried with the constants in the last line of the proof.
    """
    return at_most(peers.delta(theorem3_epsilon(peers.size, peers.rate))[1], 1 / peers.size**2)


def many_peers_are_as_private_as_their_mean(peers: ManyPeers) -> Comparison:
    """The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are forgotten."""
    return at_most(peers.delta(peers.rate / math.sqrt(peers.size))[0], 1 / peers.size**2)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 3",
        hypothesis="alpha = 4 sqrt(2) log(s) / sqrt(theta s) of at most 1/2; of the others' labels none is 1, or half",
        instances=_many,
        printed=many_peers_are_private,
        false=many_peers_are_as_private_as_their_mean,
    ),
)
