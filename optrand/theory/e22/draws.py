"""The independent draws by which Lemma 9 of [E22]_ stands for labels that peers exchange.

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.peers import bounds

__all__ = ["CLAIMS"]

TOLERANCE = 1e-9
"""Of binomial sums in floats."""


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
    def bounds(self) -> tuple[float, float]:
        """Of Lemma 9, with `s = n`."""
        return bounds(self.n, self.low / self.n, self.t / self.n, math.sqrt(self.square))

    def delta(self, epsilon: float) -> float:
        """The delta between the two binomials at an epsilon."""
        k = np.arange(self.t + 1)
        one, two = (binom.pmf(k, self.t, float(p)) for p in (self.p, self.after))
        ratio = math.exp(epsilon)
        return float(max(np.maximum(one - ratio * two, 0).sum(), np.maximum(two - ratio * one, 0).sum()))

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


def draws_are_private(draws: _Draws) -> Comparison:
    """Of theta n independent draws at p or p + 1/n, as in the proof, delta at Lemma 9's epsilon is at most its own."""
    epsilon, delta = draws.bounds
    return at_most(draws.delta(epsilon), delta, tolerance=TOLERANCE)


def draws_are_private_on_average(draws: _Draws) -> Comparison:
    """The same without the second term of epsilon, which pays for counts far from their mean."""
    rate, least = draws.t / draws.n, draws.low
    return at_most(draws.delta(rate * math.log(math.e + 3 / least)), draws.bounds[1], tolerance=TOLERANCE)


def counts_are_centred_where_they_were(draws: _Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than counts beyond t p' + xi sqrt(t p)."""
    return at_most(draws.beyond(draws.t * draws.p), draws.beyond(draws.t * draws.after))


def counts_beyond_are_rare(draws: _Draws) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than Lemma 9's delta."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.bounds[1])


def counts_beyond_are_normal(draws: _Draws) -> Comparison:
    """The same with the square of that delta, as if binomial tails were as thin as normal ones."""
    return at_most(float(draws.beyond(draws.t * draws.p)), draws.bounds[1] ** 2)


def variances_grow(draws: _Draws) -> Comparison:
    """The variance of a draw does not fall when p rises by 1/n: p (1 - p) is at most p' (1 - p')."""
    return at_most(draws.p * (1 - draws.p), draws.after * (1 - draws.after))


def variances_hardly_fall(draws: _Draws) -> Comparison:
    """The variance of a draw falls by at most max(0, p + p' - 1) / n when p rises by 1/n."""
    fall = max(Fraction(0), draws.p + draws.after - 1) / draws.n
    return at_most(draws.p * (1 - draws.p), draws.after * (1 - draws.after) + fall)


def variances_fall(draws: _Draws) -> Comparison:
    """The variance of a draw does not rise when p rises by 1/n."""
    return at_most(draws.after * (1 - draws.after), draws.p * (1 - draws.p))


MODEL = "n = s users, alpha <= p < p + 1/n <= 1 - alpha, xi up to its limit"

CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 9",
        part="independent draws",
        hypothesis=MODEL,
        instances=_draws,
        printed=draws_are_private,
        false=draws_are_private_on_average,
    ),
    Claim(
        paper="E22",
        number="Lemma 9",
        part="upper tail",
        hypothesis=MODEL,
        instances=_draws,
        printed=counts_are_centred_where_they_were,
        corrected=counts_beyond_are_rare,
        false=counts_beyond_are_normal,
    ),
    Claim(
        paper="E22",
        number="Lemma 9",
        part="variances",
        hypothesis=MODEL,
        instances=_draws,
        printed=variances_grow,
        corrected=variances_hardly_fall,
        false=variances_fall,
    ),
)
