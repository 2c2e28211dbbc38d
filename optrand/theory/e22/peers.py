"""What is proven of labels that peers exchange, beside exact binomial privacy ([E22], Lemmas 8 and 9)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random

from optrand.base.arithmetic import exp_bracket
from optrand.baselines import PeerToPeer
from optrand.baselines.peer_to_peer import lemma9_at
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS", "Peers"]

LEAST_DELTA = 1e-20
"""Smaller deltas are not tried: what binomial sums leave out would begin to count."""


@dataclass(frozen=True)
class _Power:
    """A number `x` by its power `x**a`, a fraction; `a` is 1 or 1/2."""

    power: Fraction
    root: bool
    sign: int

    @property
    def x(self) -> Fraction:
        """At least 2."""
        return self.power**2 if self.root else self.power

    def __str__(self) -> str:
        return f"x = {self.x}, s = {self.sign}, a = {'1/2' if self.root else 1}"


def _powers(budget: Budget) -> Iterator[_Power]:
    random = Random(2)  # noqa: S311
    whole = [*range(2, 30), 100, 500]
    found = [Fraction(n) for n in whole]
    found += [
        Fraction(random.randint(2 * q, 60 * q), q) for q in (2, 3, 5, 7) for _ in range(budget.pick(quick=10, full=200))
    ]
    for power, root, sign in product(found, (False, True), (-1, 1)):
        yield _Power(power, root, sign)
    for sign in (-1, 1):
        yield _Power(Fraction(3, 2), True, sign)


def powers_are_within_three(power: _Power) -> Comparison:
    """(1 + s/x)**(s x**a) is at most e**(2a - 1) + 3 / x**a, for x of 2 and more; compared in whole powers."""
    return _powered(power, Fraction(3))


def powers_are_within_two_and_a_half(power: _Power) -> Comparison:
    """The same with 5/2 for 3."""
    return _powered(power, Fraction(5, 2))


def _powered(power: _Power, constant: Fraction) -> Comparison:
    base, r = 1 + power.sign / power.x, power.power
    limit = Fraction(1) if power.root else exp_bracket(1.0)[0]
    return at_most(base ** (power.sign * r.numerator), (limit + constant / r) ** r.denominator)


@dataclass(frozen=True)
class Peers:
    """Algorithm 2 in one cluster, and how far Lemma 9's `xi` reaches.

    Attributes
    ----------
    size : int
        `s`, that all clusters have at least.
    flip, rate : Fraction
        `alpha` and `theta`.
    reach : Fraction
        `xi` as a share of the largest that the lemma allows.
    users : int
        Of the cluster.
    """

    size: int
    flip: Fraction
    rate: Fraction
    reach: Fraction
    users: int

    @property
    def mechanism(self) -> PeerToPeer:
        """The mechanism."""
        return PeerToPeer(float(self.flip), float(self.rate))

    @property
    def xi(self) -> float:
        """The `xi` of the lemma."""
        return 3 * float(self.reach * self.flip) * math.sqrt(float(self.rate * self.size * (1 - self.flip)))

    @property
    def bounds(self) -> tuple[float, float]:
        """What the lemma promises."""
        return lemma9_at(self.mechanism, self.xi, self.size)

    def delta(self, epsilon: float) -> float:
        """The exact delta for the worst labels of the others; of more than 128 users, for the worst that are tried."""
        return self.mechanism.delta(epsilon, self.users).delta

    def __str__(self) -> str:
        setting = f"alpha = {self.flip}, theta = {self.rate}, xi at {self.reach} of its range"
        return f"{self.users} users, s = {self.size}, {setting}"


def _peers(budget: Budget) -> Iterator[Peers]:
    """Small clusters with all flips that the lemma allows, then larger ones."""
    reaches = (Fraction(1, 2), Fraction(1), Fraction(1, 10))
    cases = product((4, 5, 10, 20), ("2/5", "1/2", "1/5", "1/3", "9/20"), ("1", "1/10"), reaches)
    sizes = [(60, "1/10"), (100, "1/5"), *budget.pick(quick=[], full=[(128, "1/2"), (1_000, "3/10"), (2_000, "1/5")])]
    cases_of_many = product(sizes, budget.pick(quick=("1",), full=("1", "1/3")), (Fraction(3, 10), Fraction(1)))
    found = [(size, flip, rate, reach) for size, flip, rate, reach in cases]
    found += [(size, flip, rate, reach) for (size, flip), rate, reach in cases_of_many]
    for size, flip, rate, reach in found:
        peers = Peers(size, Fraction(flip), Fraction(rate), reach, size)
        if size * peers.flip >= 2 and peers.bounds[1] >= LEAST_DELTA:
            yield peers
            if size <= budget.pick(quick=5, full=20):
                yield replace(peers, users=2 * size + 1)


def peers_are_private(peers: Peers) -> Comparison:
    """Delta is at most exp(-alpha xi**2 / (4 (alpha + 1/s) (1 - alpha))) at Lemma 9's epsilon.

    This epsilon is theta log(e + 3 / (s alpha)) + sqrt(theta) xi log(1 + 3 / sqrt(s alpha)).
    """
    return at_most(peers.delta(peers.bounds[0]), peers.bounds[1])


def peers_are_private_without_roots(peers: Peers) -> Comparison:
    """The same with no more than epsilon = sqrt(theta) xi log(1 + 1 / (s alpha))."""
    epsilon = math.sqrt(peers.rate) * peers.xi * math.log1p(1 / float(peers.size * peers.flip))
    return at_most(peers.delta(epsilon), peers.bounds[1])


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 8",
        hypothesis="x of 2 and more, s of -1 or 1, a of 1/2 or 1",
        instances=_powers,
        printed=powers_are_within_three,
        false=powers_are_within_two_and_a_half,
    ),
    Claim(
        paper="E22",
        number="Lemma 9",
        hypothesis="2 / s <= alpha <= 1/2, clusters of s users and more, xi <= 3 alpha sqrt(theta s (1 - alpha))",
        instances=_peers,
        printed=peers_are_private,
        false=peers_are_private_without_roots,
    ),
)
