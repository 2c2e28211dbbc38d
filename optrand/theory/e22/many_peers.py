"""What peers in large clusters spend ([E22], Theorem 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from optrand.baselines import PeerToPeer
from optrand.baselines.peer_accounting import PeerPair
from optrand.baselines.peer_to_peer import theorem3, theorem3_flip
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst

__all__ = ["CLAIMS", "ManyPeers"]


@dataclass(frozen=True)
class ManyPeers:
    """A cluster whose flip follows from its size and its rate, as in the theorem.

    Attributes
    ----------
    size : int
        `s`.
    rate : float
        `theta`.
    """

    size: int
    rate: float

    @property
    def flip(self) -> float:
        """`alpha = 4 sqrt(2) log(s) / sqrt(theta s)`."""
        return theorem3_flip(self.size, self.rate)

    @property
    def epsilon(self) -> float:
        """What the proof has before its last line."""
        return theorem3(PeerToPeer(self.flip, self.rate), self.size)

    @property
    def last_line(self) -> float:
        """The epsilon of the theorem with the constants in the last line of its proof."""
        small = 3 * math.pow(self.rate, 1.5) / (math.e * math.sqrt(self.size) * math.log(self.size))
        return self.rate + small + 3 * math.pow(2 * self.rate, 0.75) / math.pow(self.size, 0.25)

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


def _many(budget: Budget) -> Iterator[ManyPeers]:
    """Clusters in which the flip is at most 1/2, where all users send copies, and where about as few as that allows."""
    more = ((50_000, 1.0), (50_000, 0.3), (100_000, 1.0), (100_000, 0.18))
    cases = ((11_700, 1.0), (20_000, 1.0), (20_000, 0.7), *budget.pick(quick=(), full=more))
    return (ManyPeers(size, rate) for size, rate in cases)


def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / (sqrt(s) log s) + theta**(3/4) / s**(1/4).

    Tried with the constants of the proof, whose last line is above what Lemma 9 gives, and that above the truth.
    """
    private = at_most(peers.delta(peers.epsilon)[1], 1 / peers.size**2)
    return worst(private, at_most(peers.epsilon, peers.last_line))


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
