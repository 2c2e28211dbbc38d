"""Least excess risk of private algorithms on labels that are signs of orthogonal directions ([G21], Proposition 13).

Example `i` of `n` is the direction ``e_i`` with a label that is a fair coin, 1 or 2, read as a sign. The loss is ``L``
times the inner product with the parameter, under that sign; parameters are a ball of diameter ``D``. Excess risk is
``D L / (2 sqrt(n)) (1 - correlation)`` with the correlation of the parameter and the signs. No algorithm correlates
better than by the root mean square of what it knows of each sign, which :func:`known_of_a_sign` bounds: this argues
about all algorithms at once, is not the paper's argument, and is sharper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np
from scipy.optimize import linprog

from optrand.errors import SolverFailed
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["known_of_a_sign"]

TOLERANCE = 1e-12

LP_TOLERANCE = 1e-7
"""What HiGHS is forgiven on a program of a dozen rows."""

Real = TypeVar("Real", Fraction, float)


def known_of_a_sign(ratio: Real, delta: Real) -> Real:
    r"""Largest mean square of what an (epsilon, delta)-DP algorithm knows of a fair sign.

    .. math:: \max E\left[ E[s \mid \mathrm{output}]^2 \right]
              = \delta + (1 - \delta) t^2, \qquad t = \frac{E - 1}{E + 1}

    An output of probabilities `p` and `q` under the two signs adds ``f(p, q) = (p - q)^2 / (2 (p + q))``, which is
    convex and homogeneous, so at most the sum over any two parts of the pair. Where ``p > E q`` the parts ``(p - E q,
    0)`` and ``(E q, q)`` have ``(p - E q) / 2`` and ``t^2 (E q + q) / 2``; likewise where ``q > E p``; elsewhere `f` is
    at most ``t^2 (p + q) / 2``. All ``p - E q`` above 0 sum to at most delta, and so do all ``q - E p``. Attained where
    the sign is shown with probability delta, and kept with odds `E` else. From a delta of 1 on the sign is known.

    Examples
    --------
    >>> known_of_a_sign(Fraction(3), Fraction(0)), known_of_a_sign(Fraction(3), Fraction(1, 3))
    (Fraction(1, 4), Fraction(1, 2))
    """
    if delta >= 1:
        return type(delta)(1)
    return delta + (1 - delta) * ((ratio - 1) / (ratio + 1)) ** 2


class Signs(Instance, diameter="D", lipschitz="L"):
    """The data set: labels 1 or 2 of the directions, in a ball of some diameter, with a Lipschitz constant."""

    labels: tuple[int, ...]
    diameter: Fraction
    lipschitz: Fraction

    def risk(self, parameter: Sequence[int]) -> Fraction:
        """The empirical risk: label 1 counts the inner product, label 2 its negative."""
        turned = (w if y == 1 else -w for y, w in zip(self.labels, parameter, strict=True))
        return self.lipschitz * Fraction(sum(turned), len(self.labels))


def _data_sets(budget: Budget) -> Iterator[Signs]:
    sizes = [(Fraction(1), Fraction(1)), (Fraction(3, 2), Fraction(1, 7)), (Fraction(1, 10), Fraction(20))]
    for n in range(1, budget.pick(quick=7, full=10)):
        yield from (Signs(labels, *size) for labels in product((1, 2), repeat=n) for size in sizes)


FALLS = Variant("The same with ``-D L / (2 n)``.", power=2)


@claim("G21", "Proposition 13: construction", kind="text", on=_data_sets, given="any labels, any D and L", false=FALLS)
def least_risk_is_at_the_sum_of_signs(given: Signs, *, power: int = 1) -> Comparison:
    """The least empirical risk in the ball is ``-D L / (2 sqrt(n))``, where the signed directions add up.

    Compared in squares: a linear function of slope `g` is least at ``-D |g| / 2``, and the point named must be as low.
    """
    n = len(given.labels)
    squared = (given.diameter * given.lipschitz) ** 2 / (4 * n**power)
    slopes = (given.risk([i == j for j in range(n)]) for i in range(n))
    there = given.risk([2 * label - 3 for label in given.labels])
    return worst(
        equal(given.diameter**2 / 4 * total(slope**2 for slope in slopes), squared),
        equal(there**2 * given.diameter**2 / (4 * n), squared),
        at_most(there, 0),
    )


class Coin(Instance):
    """A budget under which one sign is to be guessed."""

    ratio: Fraction
    delta: Fraction

    @cached_property
    def guessed(self) -> float:
        """Largest probability, over all algorithms, of a parameter on the right side of the direction.

        Of a linear program: the probabilities of a parameter on the left, on neither side and on the right, for both
        signs, under the promise for each of the eight events.
        """
        events, ratio = np.array(list(product((0.0, 1.0), repeat=3))), float(self.ratio)
        program = linprog(
            [-0.5, 0, 0, 0, 0, -0.5],
            A_ub=np.vstack([np.hstack([events, -ratio * events]), np.hstack([-ratio * events, events])]),
            b_ub=np.full(2 * len(events), float(self.delta)),
            A_eq=np.kron(np.eye(2), np.ones(3)),
            b_eq=[1, 1],
        )
        if program.fun is None:
            raise SolverFailed(f"HiGHS did not solve the program of a sign: {program.message}")
        return -float(program.fun)


def _coins(budget: Budget) -> Iterator[Coin]:
    deltas = (Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(1))
    yield from (Coin(ratio, delta) for ratio, delta in product(RATIOS[:-1], deltas))
    random = seeded(13)
    for _ in range(budget.pick(quick=70, full=3_000)):
        yield Coin(1 + Fraction(random.randint(1, 999), 100), Fraction(random.randint(0, 100), 100))


HELPLESS = Variant("The same with ``E / (E + 1)``.", helps=0)


@claim(
    "G21", "Proposition 13: equation 13", kind="text", on=_coins, given="any channel of a fair label", false=HELPLESS
)
def a_sign_is_hard_to_guess(coin: Coin, *, helps: int = 1) -> Comparison:
    """A private parameter is on the right side of a direction with probability at most ``(E + delta) / (E + 1)``."""
    most = float((coin.ratio + helps * coin.delta) / (coin.ratio + 1))
    return at_most(coin.guessed, most, tolerance=LP_TOLERANCE)


class Parameter(Instance):
    """A parameter on the sphere, as multiples of an orthogonal direction each, and signs."""

    parameter: tuple[int, ...]
    signs: tuple[int, ...]


def _parameters(budget: Budget) -> Iterator[Parameter]:
    for n in (1, 2, 3):
        for parts, signs in product(product((0, 1, -1), repeat=n), product((1, -1), repeat=n)):
            if any(parts):
                yield Parameter(parts, signs)
    random = seeded(15)
    for _ in range(budget.pick(quick=300, full=10_000)):
        n = random.randint(1, 12)
        parts = (*(random.randint(-9, 9) for _ in range(n - 1)), 1)
        yield Parameter(parts, tuple(random.choice((1, -1)) for _ in range(n)))


SHARED = Variant("Risk is at least ``-(L / n) (D / 2)`` times their number over ``sqrt(n)``.", shared=True)


@claim(
    "G21", "Proposition 13: equation 15", kind="text", on=_parameters, given="any parameter and labels", false=SHARED
)
def right_signs_bound_what_is_gained(given: Parameter, *, shared: bool = False) -> Comparison:
    """Risk is at least ``-(L / n) (D / 2)`` times the root of how many directions have the parameter on their side.

    Compared in squares, for the length that the parameter has.
    """
    products = [sign * part for sign, part in zip(given.signs, given.parameter, strict=True)]
    right = sum(each > 0 for each in products)
    gained = Fraction(max(sum(products), 0) ** 2, sum(part**2 for part in given.parameter))
    return at_most(gained, Fraction(right**2, len(products)) if shared else right)


class Private(Instance):
    """So many examples under a budget."""

    n: int
    ratio: Fraction
    delta: Fraction

    @property
    def allowed(self) -> Fraction:
        """Square of the correlation that the paper's bound allows: ``(E + delta) / (E + 1)``."""
        return (self.ratio + self.delta) / (self.ratio + 1)

    @cached_property
    def attained(self) -> float:
        """The correlation of an algorithm: it is shown each label with probability delta, else randomized response's.

        The parameter is the sum of the directions by what is known of their signs, on the sphere. With `R` labels shown
        the correlation is the root of ``(R + (n - R) t^2) / n``, where ``t = (E - 1) / (E + 1)``.
        """
        told, delta, n = known_of_a_sign(float(self.ratio), 0.0), float(self.delta), self.n
        chances = (math.comb(n, shown) * delta**shown * (1 - delta) ** (n - shown) for shown in range(n + 1))
        return math.fsum(p * math.sqrt((shown + (n - shown) * told) / n) for shown, p in enumerate(chances))


def _budgets(budget: Budget) -> Iterator[Private]:
    deltas = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100))
    sizes = budget.pick(quick=(1, 2, 3, 10, 100), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000))
    return (Private(n, ratio, delta) for n, ratio, delta in product(sizes, RATIOS, deltas))


@claim("G21", "Proposition 13: least excess risk", on=_budgets, given="all algorithms, on the constructed data sets")
def private_risk_exceeds_the_least(private: Private) -> Comparison:
    """The excess risk is on average at least ``(1 - sqrt((E + delta) / (E + 1))) D L / (2 sqrt(n))``.

    Of any algorithm, over fair labels, and so of some data set; the bound is the last line of the proof, where the
    proposition leaves the constant open. Compared as squares of correlations: what an algorithm attains, what none
    exceeds, what the bound allows. Without delta the second is attained by randomized response: the least excess risk
    is ``D L / (sqrt(n) (E + 1))``.
    """
    most = known_of_a_sign(private.ratio, private.delta)
    return worst(at_most(private.attained**2, float(most), tolerance=TOLERANCE), at_most(most, private.allowed))


@private_risk_exceeds_the_least.false
def _(private: Private) -> Comparison:
    """No algorithm has less excess risk than the one that flips each label with odds ``E + delta`` to ``1 - delta``."""
    return at_most(private.attained**2, float((2 * private.allowed - 1) ** 2), tolerance=TOLERANCE)
