"""Privacy of labels that peers exchange, by binomial sums ([E22], Lemmas 8 and 9, Theorem 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product

from optrand.base.arithmetic import exp_bracket
from optrand.baselines import PeerToPeer
from optrand.baselines.peer_accounting import PeerPair
from optrand.baselines.peer_to_peer import lemma9_at, theorem3, theorem3_flip
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, none
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import total

__all__ = ["Peers"]

LEAST_DELTA = 1e-20
"""Smaller deltas are not tried: what binomial sums leave out would begin to count."""


class Power(Instance, power="x**a", sign="s"):
    """A number `x` of at least 2 by its power `x**a`, a fraction; `a` is 1 or 1/2."""

    power: Fraction
    a: Fraction
    sign: int

    def within(self, constant: Fraction) -> Comparison:
        """Compare with ``e**(2a - 1)`` and a constant over ``x**a``, in whole powers."""
        r = self.power
        base, limit = (1 + self.sign / r, exp_bracket(1.0)[0]) if self.a == 1 else (1 + self.sign / r**2, Fraction(1))
        return at_most(base ** (self.sign * r.numerator), (limit + constant / r) ** r.denominator)


def _powers(budget: Budget) -> Iterator[Power]:
    random, half = seeded(2), Fraction(1, 2)
    found = [Fraction(n) for n in (*range(2, 30), 100, 500)]
    found += [
        Fraction(random.randint(2 * q, 60 * q), q) for q in (2, 3, 5, 7) for _ in range(budget.pick(quick=10, full=200))
    ]
    yield from (Power(power, a, sign) for power, a, sign in product(found, (Fraction(1), half), (-1, 1)))
    yield from (Power(Fraction(3, 2), half, sign) for sign in (-1, 1))


@claim(
    "E22",
    "Lemma 8",
    on=_powers,
    given="x of 2 and more, s of -1 or 1, a of 1/2 or 1",
    false=Variant("The same with 5/2 for 3.", lambda power: power.within(Fraction(5, 2))),
)
def powers_are_within_three(power: Power) -> Comparison:
    """(1 + s/x)**(s x**a) is at most e**(2a - 1) + 3 / x**a, for x of 2 and more; compared in whole powers."""
    return power.within(Fraction(3))


class Peers(Instance, size="s", flip="alpha", rate="theta", reach="xi as a share of its limit", users="users"):
    """Algorithm 2 in one cluster of so many users, where all clusters have at least `s`."""

    size: int
    flip: Fraction
    rate: Fraction
    reach: Fraction
    users: int

    def bounds(self, flip: Fraction) -> tuple[float, float]:
        """Epsilon and delta that the lemma promises at a flip."""
        xi = 3 * float(self.reach * flip) * math.sqrt(float(self.rate * self.size * (1 - flip)))
        return lemma9_at(PeerToPeer(float(flip), float(self.rate)), xi, self.size)

    @property
    def lesser(self) -> Fraction:
        """The lesser of `alpha` and `1 - alpha`."""
        return min(self.flip, 1 - self.flip)

    def delta(self, epsilon: float) -> float:
        """The exact delta for the worst labels of the others; of more than 128 users, for the worst that are tried."""
        return PeerToPeer(float(self.flip), float(self.rate)).delta(epsilon, self.users).delta

    def delta_of_flips(self, epsilon: float) -> float:
        """The delta where all users send their own flipped label."""
        return float(self.rate) * max(0.0, float(1 - self.lesser) - math.exp(epsilon) * float(self.lesser))


def _peers(budget: Budget) -> Iterator[Peers]:
    """Small clusters with all flips that the lemma allows, then larger ones."""
    reaches = (Fraction(1, 2), Fraction(1), Fraction(1, 10))
    flips = ("2/5", "1/2", "1/5", "1/3", "9/20", "3/5", "4/5", "99/100")
    cases = [*product((3, 4, 5, 10, 20), flips, ("1", "1/10"), reaches)]
    sizes = [(60, "1/10"), (60, "9/10"), (100, "1/5"), (400, "1/50")]
    sizes += budget.pick(quick=[], full=[(128, "1/2"), (1_000, "3/10"), (2_000, "1/5")])
    rates = budget.pick(quick=("1",), full=("1", "1/3"))
    cases += [(*each, rate, reach) for each, rate, reach in product(sizes, rates, (Fraction(3, 10), Fraction(1)))]
    for size, flip, rate, reach in cases:
        peers = Peers(size, Fraction(flip), Fraction(rate), reach, size)
        if size * peers.flip >= 2 and min(peers.bounds(each)[1] for each in (peers.flip, peers.lesser)) >= LEAST_DELTA:
            yield peers
            if size <= budget.pick(quick=5, full=20):
                yield replace(peers, users=2 * size + 1)


@claim("E22", "Lemma 9", on=_peers, given="alpha >= 2 / s, clusters of s users and more, any xi that the lemma allows")
def peers_are_private(peers: Peers) -> Comparison:
    """Delta is at most exp(-alpha xi**2 / (4 (alpha + 1/s) (1 - alpha))) at Lemma 9's epsilon.

    This epsilon is theta log(e + 3 / (s alpha)) + sqrt(theta) xi log(1 + 3 / sqrt(s alpha)).
    """
    epsilon, delta = peers.bounds(peers.flip)
    return at_most(peers.delta(epsilon), delta)


@peers_are_private.corrected
def _(peers: Peers) -> Comparison:
    """The same with the lesser of alpha and 1 - alpha for alpha, where it is at least 2 / s.

    Nothing is said of other flips.
    """
    epsilon, delta = peers.bounds(peers.lesser)
    return at_most(peers.delta(epsilon), delta) if peers.size * peers.lesser >= 2 else none(0)


@peers_are_private.false
def _(peers: Peers) -> Comparison:
    """The same, alpha being at most 1/2, where users send their own flipped label: the exchange is left out."""
    epsilon, delta = peers.bounds(peers.lesser)
    return at_most(peers.delta_of_flips(epsilon), delta) if peers.flip <= Fraction(1, 2) else none(0)


class Draws(Instance, p="p", low="alpha n", square="xi**2"):
    """The proof's model: `t` independent draws, and one of `n` labels that changes from 0 to 1.

    Before and after, the draws are 1 with a probability between `alpha` and `1 - alpha`.
    """

    n: int
    t: int
    p: Fraction
    low: int
    square: Fraction

    @property
    def delta(self) -> float:
        """Of Lemma 9, with `s = n`."""
        return lemma9_at(PeerToPeer(self.low / self.n, self.t / self.n), math.sqrt(self.square), self.n)[1]

    def beyond(self, centre: Fraction) -> Fraction:
        """The probability, after the change, of more than the centre plus `xi sqrt(t p)` ones."""
        p, reach = self.p + Fraction(1, self.n), self.square * self.t * self.p
        counts = (k for k in range(self.t + 1) if k > centre and (k - centre) ** 2 > reach)
        return total(math.comb(self.t, k) * p**k * (1 - p) ** (self.t - k) for k in counts)


def _draws(budget: Budget) -> Iterator[Draws]:
    for n in (*range(5, 15), 20, 30, *budget.pick(quick=(), full=(40, 60, 100, 150))):
        for t, low in product(sorted({n // 2, n}), sorted({2, n // 4, n // 2} - {0, 1})):
            for ones in sorted({low, n // 2, n - low - 1} & {*range(low, n - low)}):
                most = Fraction(9 * low**2 * t * (n - low), n**3)
                yield from (Draws(n, t, Fraction(ones, n), low, most * part) for part in (Fraction(1, 9), Fraction(1)))


@claim("E22", "Lemma 9: upper tail", kind="text", on=_draws, given="n = s, alpha <= p < p' <= 1 - alpha, any xi")
def counts_are_centred_where_they_were(draws: Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than counts beyond t p' + xi sqrt(t p).

    With xi up to its limit.
    """
    return at_most(draws.beyond(draws.t * draws.p), draws.beyond(draws.t * (draws.p + Fraction(1, draws.n))))


@counts_are_centred_where_they_were.corrected
def _(draws: Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than Lemma 9's delta."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.delta)


@counts_are_centred_where_they_were.false
def _(draws: Draws) -> Comparison:
    """The same with the square of that delta, as if binomial tails were as thin as normal ones."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.delta**2)


class ManyPeers(Instance, size="s", rate="theta"):
    """A cluster whose flip follows from its size and its rate, as in the theorem."""

    size: int
    rate: float

    @property
    def mechanism(self) -> PeerToPeer:
        """With `alpha = 4 sqrt(2) log(s) / sqrt(theta s)`."""
        return PeerToPeer(theorem3_flip(self.size, self.rate), self.rate)

    @property
    def epsilon(self) -> float:
        """What the proof has before its last line."""
        return theorem3(self.mechanism, self.size)

    def last_line(self, power: float) -> float:
        """The last line of the proof, with a power of 2 in its last summand."""
        small = 3 * math.pow(self.rate, 1.5) / (math.e * math.sqrt(self.size) * math.log(self.size))
        return self.rate + small + 3 * math.pow(2, power) * math.pow(self.rate, 0.75) / math.pow(self.size, 0.25)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Two numbers between which delta lies where all other users have the label 0, or half of them.

        A bound that is below the first is broken; one that is above the second holds for these labels.
        """
        lows, highs = zip(*(pair.delta(epsilon) for pair in self._pairs), strict=True)
        return max(lows), max(highs)

    @cached_property
    def _pairs(self) -> list[PeerPair]:
        flip, rate = self.mechanism.flip, self.rate
        return [PeerPair.of(self.size, flip, rate, ones=ones) for ones in (0, (self.size - 1) // 2)]


def _many(budget: Budget) -> Iterator[ManyPeers]:
    """Clusters in which the flip is at most 1/2, where all users send copies, and where about as few as that allows."""
    more = ((50_000, 1.0), (50_000, 0.3), (100_000, 1.0), (100_000, 0.18))
    cases = *((size, 1.0) for size in (11_700, 12_000, 13_000, 15_000, 17_000, 20_000, 30_000)), (11_700, 0.97)
    return (ManyPeers(size, rate) for size, rate in (*cases, *budget.pick(quick=(), full=more)))


@claim(
    "E22", "Theorem 3", on=_many, given="Theorem 3's alpha, of at most 1/2; of the others' labels none is 1, or half"
)
def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / (sqrt(s) log s) + theta**(3/4) / s**(1/4).

    Tried with `alpha = 4 sqrt(2) log(s) / sqrt(theta s)` and what the proof has before its last line.
    """
    return at_most(peers.delta(peers.epsilon)[1], 1 / peers.size**2)


@many_peers_are_private.false
def _(peers: ManyPeers) -> Comparison:
    """The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are forgotten."""
    return at_most(peers.delta(peers.rate / math.sqrt(peers.size))[0], 1 / peers.size**2)


def _all_many(budget: Budget) -> Iterator[ManyPeers]:
    sizes = (
        11_700,
        20_000,
        10**5,
        10**6,
        10**9,
        10**12,
        *budget.pick(quick=(), full=tuple(10**n for n in range(13, 40))),
    )
    for size, part in product(sizes, (0.0, 0.2, 0.6, 1.0)):
        least = (2 * theorem3_flip(size, 1.0)) ** 2
        yield ManyPeers(size, min(1.0, least * (1 + 1e-9) + part * (1 - least)))


@claim(
    "E22",
    "Theorem 3: last line",
    kind="text",
    on=_all_many,
    given="alpha = 4 sqrt(2) log(s) / sqrt(theta s) of at most 1/2",
    false=Variant("The same with 2**(1/2) for 2**(3/4).", power=1 / 2),
)
def last_line_is_above(peers: ManyPeers, power: float = 3 / 4) -> Comparison:
    """Lemma 9's epsilon is at most theta + 3 theta**(3/2) / (e sqrt(s) log s) + 3 2**(3/4) theta**(3/4) / s**(1/4)."""
    return at_most(peers.epsilon, peers.last_line(power))
