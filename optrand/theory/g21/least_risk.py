"""What private algorithms lose at least on labels that are signs ([G21], Proposition 13).

No algorithm correlates better than by the root mean square of what it knows of each sign (its mean, given what is put
out), and of one sign nobody knows more than :func:`known_of_a_sign` says. This argues about all algorithms at once; it
is not the paper's argument, and its bound is sharper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.instances import RATIOS

__all__ = ["CLAIMS", "known_of_a_sign"]

TOLERANCE = 1e-12

Real = TypeVar("Real", Fraction, float)


def known_of_a_sign(ratio: Real, delta: Real) -> Real:
    r"""The mean square of what any (epsilon, delta)-DP algorithm knows of a fair sign; at most 1.

    .. math:: \max E\left[ E[s \mid \mathrm{output}]^2 \right]
              = \delta + (1 - \delta) t^2, \qquad t = \frac{E - 1}{E + 1}

    Parameters
    ----------
    ratio : Fraction or float
        ``E = exp(epsilon)``.
    delta : Fraction or float
        From 1 on the sign is known.

    Notes
    -----
    An output of probabilities `p` and `q` under the two signs adds ``f(p, q) = (p - q)^2 / (2 (p + q))``, which is
    convex and homogeneous, so at most the sum over any two parts of the pair. Where ``p > E q`` the parts ``(p - E q,
    0)`` and ``(E q, q)`` have ``(p - E q) / 2`` and ``t^2 (E q + q) / 2``; likewise where ``q > E p``; elsewhere `f` is
    at most ``t^2 (p + q) / 2``. All ``p - E q`` above 0 sum to at most delta, and so do all ``q - E p``. Attained where
    the sign is shown with probability delta, and kept with odds `E` else.

    Examples
    --------
    >>> known_of_a_sign(Fraction(3), Fraction(0)), known_of_a_sign(Fraction(3), Fraction(1, 3))
    (Fraction(1, 4), Fraction(1, 2))
    """
    if delta >= 1:
        return type(delta)(1)
    return delta + (1 - delta) * ((ratio - 1) / (ratio + 1)) ** 2


@dataclass(frozen=True)
class _Private:
    """So many examples under a budget."""

    n: int
    ratio: Fraction
    delta: Fraction

    @property
    def allowed(self) -> Fraction:
        """The square of the correlation that the paper's bound allows: ``(E + delta) / (E + 1)``."""
        return (self.ratio + self.delta) / (self.ratio + 1)

    @cached_property
    def attained(self) -> float:
        """The correlation of an algorithm: it is shown each label with probability delta, else randomized response's.

        The parameter is the sum of the directions by what is known of their signs, on the sphere. With `R` labels shown
        the correlation is the root of ``(R + (n - R) t^2) / n``, where ``t = (E - 1) / (E + 1)``.
        """
        told, delta = known_of_a_sign(float(self.ratio), 0.0), float(self.delta)
        return math.fsum(
            math.comb(self.n, shown)
            * delta**shown
            * (1 - delta) ** (self.n - shown)
            * math.sqrt((shown + (self.n - shown) * told) / self.n)
            for shown in range(self.n + 1)
        )

    def __str__(self) -> str:
        return f"n = {self.n}, E = {self.ratio}, delta {self.delta}"


def _budgets(budget: Budget) -> Iterator[_Private]:
    deltas = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100))
    for n in budget.pick(quick=(1, 2, 3, 10, 100), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000)):
        yield from (_Private(n, ratio, delta) for ratio in RATIOS for delta in deltas)


def private_risk_exceeds_the_least(private: _Private) -> Comparison:
    """The excess risk is on average at least ``(1 - sqrt((E + delta) / (E + 1))) D L / (2 sqrt(n))``.

    Of any algorithm, over fair labels, and so of some data set; the bound is the last line of the proof, where the
    proposition leaves the constant open. Compared as squares of correlations: what an algorithm attains, what none
    exceeds, what the bound allows. Without delta the second is attained by randomized response: the least excess risk
    is ``D L / (sqrt(n) (E + 1))``.
    """
    most = known_of_a_sign(private.ratio, private.delta)
    return worst(
        at_most(private.attained**2, float(most), tolerance=TOLERANCE),
        at_most(most, private.allowed),
    )


def randomized_response_is_best(private: _Private) -> Comparison:
    """No algorithm has less excess risk than the one that flips each label with odds ``E + delta`` to ``1 - delta``."""
    kept = 2 * private.allowed - 1
    return at_most(private.attained**2, float(kept**2), tolerance=TOLERANCE)


CLAIMS = (
    Claim(
        paper="G21",
        number="Proposition 13",
        part="least excess risk",
        hypothesis="all (epsilon, delta)-LabelDP algorithms, on the constructed data sets",
        instances=_budgets,
        printed=private_risk_exceeds_the_least,
        false=randomized_response_is_best,
    ),
)
