"""The independent draws by which Lemma 9 of [E22] stands for labels that peers exchange."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

from optrand.baselines import PeerToPeer
from optrand.baselines.peer_to_peer import lemma9_at
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Draws:
    """The proof's model: `t` independent draws, and one of `n` labels that changes from 0 to 1.

    Attributes
    ----------
    n, t : int
    ones : int
        The draws are 1 with probability `p = ones / n`, or `p' = (ones + 1) / n`.
    low : int
        `alpha` times `n`; both probabilities lie between `alpha` and `1 - alpha`.
    square : Fraction
        The square of `xi`.
    """

    n: int
    t: int
    ones: int
    low: int
    square: Fraction

    @property
    def p(self) -> Fraction:
        """The probability of a 1."""
        return Fraction(self.ones, self.n)

    @property
    def after(self) -> Fraction:
        """The same after the change."""
        return self.p + Fraction(1, self.n)

    @property
    def delta(self) -> float:
        """Of Lemma 9, with `s = n`."""
        return lemma9_at(PeerToPeer(self.low / self.n, self.t / self.n), math.sqrt(self.square), self.n)[1]

    def beyond(self, centre: Fraction) -> Fraction:
        """The probability, after the change, of more than the centre plus `xi sqrt(t p)` ones."""
        p, reach = self.after, self.square * self.t * self.p
        counts = (k for k in range(self.t + 1) if k > centre and (k - centre) ** 2 > reach)
        return sum((math.comb(self.t, k) * p**k * (1 - p) ** (self.t - k) for k in counts), Fraction(0))

    def __str__(self) -> str:
        return (
            f"{self.t} draws at {self.p} or {self.after}, n = {self.n}, alpha = {Fraction(self.low, self.n)}, "
            f"xi**2 = {self.square}"
        )


def _draws(budget: Budget) -> Iterator[_Draws]:
    for n in (*range(5, 15), 20, 30, *budget.pick(quick=(), full=(40, 60, 100, 150))):
        for t in {n, n // 2}:
            for low in {2, n // 4, n // 2}:
                for ones in sorted({low, n // 2, n - low - 1}):
                    if 2 <= low <= ones < n - low:
                        most = Fraction(9 * low**2 * t * (n - low), n**3)
                        yield from (_Draws(n, t, ones, low, most * part**2) for part in (Fraction(1, 3), Fraction(1)))


def counts_are_centred_where_they_were(draws: _Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than counts beyond t p' + xi sqrt(t p)."""
    return at_most(draws.beyond(draws.t * draws.p), draws.beyond(draws.t * draws.after))


def counts_beyond_are_rare(draws: _Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than Lemma 9's delta."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.delta)


def counts_beyond_are_normal(draws: _Draws) -> Comparison:
    """The same with the square of that delta, as if binomial tails were as thin as normal ones."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.delta**2)


@dataclass(frozen=True)
class _Copies:
    """A cluster of which every user sends a copy: Algorithm 2 without subsampling."""

    labels: tuple[int, ...]
    flip: Fraction

    @property
    def mean(self) -> Fraction:
        """The probability that a copy is 1."""
        return sum((self.flip if y == 0 else 1 - self.flip for y in self.labels), Fraction(0)) / len(self.labels)

    @cached_property
    def variance(self) -> Fraction:
        """The variance of the number of ones, over all flips and all choices of users."""
        n = len(self.labels)
        first = second = Fraction(0)
        for flips in product((0, 1), repeat=n):
            mass = math.prod((self.flip if f else 1 - self.flip for f in flips), start=Fraction(1, n**n))
            for chosen in product(range(n), repeat=n):
                ones = sum(self.labels[user] ^ flips[user] for user in chosen)
                first, second = first + mass * ones, second + mass * ones**2
        return second - first**2

    def __str__(self) -> str:
        return f"labels {', '.join(map(str, self.labels))}, alpha = {self.flip}"


def _copies(budget: Budget) -> Iterator[_Copies]:
    for n in budget.pick(quick=(1, 2, 3), full=(1, 2, 3, 4, 5)):
        for ones in range(n // 2 + 1):
            for flip in ("1/4", "1/10", "0", "1/2"):
                yield _Copies((1,) * ones + (0,) * (n - ones), Fraction(flip))


def copies_are_independent(copies: _Copies) -> Comparison:
    """The ones among t copies are binomial, with the variance t p (1 - p)."""
    return equal(copies.variance, len(copies.labels) * copies.mean * (1 - copies.mean))


def copies_of_one_label_agree(copies: _Copies) -> Comparison:
    """The variance of the ones among t copies is t p (1 - p) + t (t - 1) alpha (1 - alpha) / n: some copy the same."""
    t = len(copies.labels)
    shared = (t - 1) * copies.flip * (1 - copies.flip)
    return equal(copies.variance, t * copies.mean * (1 - copies.mean) + shared)


def copies_agree_as_if_labels_did(copies: _Copies) -> Comparison:
    """The variance of the ones among t copies is t p (1 - p) (1 + (t - 1) / n), what it is where all labels agree."""
    t = len(copies.labels)
    return equal(copies.variance, (2 * t - 1) * copies.mean * (1 - copies.mean))


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 9",
        part="number of ones",
        hypothesis="every user of the cluster sends a copy",
        instances=_copies,
        printed=copies_are_independent,
        corrected=copies_of_one_label_agree,
        false=copies_agree_as_if_labels_did,
    ),
    Claim(
        paper="E22",
        number="Lemma 9",
        part="upper tail",
        hypothesis="n = s users, alpha <= p < p + 1/n <= 1 - alpha, xi up to its limit",
        instances=_draws,
        printed=counts_are_centred_where_they_were,
        corrected=counts_beyond_are_rare,
        false=counts_beyond_are_normal,
    ),
)
