"""Labels that are signs of orthogonal directions: the data set from which nothing private learns much ([G21], F.4).

Example `i` of `n` is the direction ``e_i`` with a label that is a fair coin, 1 or 2, read as a sign. The loss is ``L``
times the inner product with the parameter, under that sign; parameters are a ball of diameter ``D``. What an algorithm
loses is a matter of how well its parameter correlates with the signs:

``excess risk = D L / (2 sqrt(n)) (1 - correlation)``.

How well private algorithms correlate at best: :mod:`optrand.theory.g21.least_risk`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.errors import SolverFailed
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, listed

__all__ = ["CLAIMS"]

LP_TOLERANCE = 1e-7
"""What HiGHS is forgiven on a program of a dozen rows."""


@dataclass(frozen=True)
class _Signs:
    """The data set: labels 1 or 2 of the directions, in a ball of some diameter, with a loss of some steepness."""

    labels: tuple[int, ...]
    diameter: Fraction
    steepness: Fraction

    @property
    def n(self) -> int:
        """How many examples."""
        return len(self.labels)

    @property
    def signs(self) -> tuple[int, ...]:
        """Labels 1 and 2 as -1 and 1."""
        return tuple(2 * label - 3 for label in self.labels)

    def risk(self, parameter: tuple[Fraction, ...]) -> Fraction:
        """The empirical risk: label 1 counts the inner product, label 2 its negative, times the steepness."""
        turned = {1: self.steepness, 2: -self.steepness}
        return sum((turned[y] * w for y, w in zip(self.labels, parameter, strict=True)), Fraction(0)) / self.n

    @cached_property
    def gradient(self) -> tuple[Fraction, ...]:
        """Of the risk, which is linear: its values at the directions."""
        return tuple(self.risk(tuple(Fraction(i == j) for j in range(self.n))) for i in range(self.n))

    def __str__(self) -> str:
        return f"labels {', '.join(map(str, self.labels))}, D = {self.diameter}, L = {self.steepness}"


def _data_sets(budget: Budget) -> Iterator[_Signs]:
    sizes = [(Fraction(1), Fraction(1)), (Fraction(3, 2), Fraction(1, 7)), (Fraction(1, 10), Fraction(20))]
    for n in range(1, budget.pick(quick=7, full=10)):
        for labels in product((1, 2), repeat=n):
            yield from (_Signs(labels, *size) for size in sizes)


def the_minimiser_is_the_sum_of_signs(signs: _Signs) -> Comparison:
    """The least empirical risk in the ball is ``-D L / (2 sqrt(n))``, where the signed directions add up.

    Compared in squares: a linear function of slope `g` is least at ``-D |g| / 2``, and the point named must be as low.
    """
    squared = (signs.diameter * signs.steepness) ** 2 / (4 * signs.n)
    return _least_and_at_the_sum(signs, squared)


def the_least_risk_falls_with_the_examples(signs: _Signs) -> Comparison:
    """The least empirical risk in the ball is ``-D L / (2 n)``, where the signed directions add up."""
    return _least_and_at_the_sum(signs, (signs.diameter * signs.steepness / (2 * signs.n)) ** 2)


def _least_and_at_the_sum(signs: _Signs, squared: Fraction) -> Comparison:
    there = signs.risk(tuple(map(Fraction, signs.signs)))
    return worst(
        equal(signs.diameter**2 / 4 * sum((slope**2 for slope in signs.gradient), Fraction(0)), squared),
        equal(there**2 * signs.diameter**2 / (4 * signs.n), squared),
        at_most(there, 0),
    )


@dataclass(frozen=True)
class _Coin:
    """A budget under which one sign is to be guessed."""

    ratio: Fraction
    delta: Fraction

    @cached_property
    def guessed(self) -> float:
        """The largest probability, over all algorithms, of a parameter on the right side of the direction.

        Of a linear program: the probabilities of a parameter on the left, on neither side and on the right, for both
        signs, under the promise for each of the eight events.
        """
        import numpy as np
        from scipy.optimize import linprog

        events = np.array(list(product((0.0, 1.0), repeat=3)))
        ratio = float(self.ratio)
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

    def __str__(self) -> str:
        return f"E = {self.ratio}, delta {self.delta}"


def _coins(budget: Budget) -> Iterator[_Coin]:
    random = Random(13)  # noqa: S311
    for ratio in RATIOS[:-1]:
        yield from (_Coin(ratio, delta) for delta in (Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(1)))
    for _ in range(budget.pick(quick=100, full=3_000)):
        yield _Coin(1 + Fraction(random.randint(1, 999), 100), Fraction(random.randint(0, 100), 100))


def a_sign_is_hard_to_guess(coin: _Coin) -> Comparison:
    """A private parameter is on the right side of a direction with probability at most ``(E + delta) / (E + 1)``."""
    return at_most(coin.guessed, float((coin.ratio + coin.delta) / (coin.ratio + 1)), tolerance=LP_TOLERANCE)


def delta_does_not_help_to_guess(coin: _Coin) -> Comparison:
    """The same with ``E / (E + 1)``."""
    return at_most(coin.guessed, float(coin.ratio / (coin.ratio + 1)), tolerance=LP_TOLERANCE)


@dataclass(frozen=True)
class _Parameter:
    """A parameter on the sphere, as multiples of an orthogonal direction each, and signs."""

    parts: tuple[Fraction, ...]
    signs: tuple[int, ...]

    @cached_property
    def products(self) -> tuple[Fraction, ...]:
        """Of each sign with its part."""
        return tuple(sign * part for sign, part in zip(self.signs, self.parts, strict=True))

    @property
    def right(self) -> int:
        """How many parts have the sign of the label."""
        return sum(product > 0 for product in self.products)

    @property
    def gained(self) -> Fraction:
        """The square of the correlation where it is positive: of ``-n`` times the risk in units of ``|w| L``."""
        return max(sum(self.products, Fraction(0)), Fraction(0)) ** 2 / sum(
            (part**2 for part in self.parts), Fraction(0)
        )

    def __str__(self) -> str:
        return f"parameter {listed(self.parts)}, signs {', '.join(map(str, self.signs))}"


def _parameters(budget: Budget) -> Iterator[_Parameter]:
    for n in (1, 2, 3):
        for parts in product((Fraction(0), Fraction(1), Fraction(-1)), repeat=n):
            if any(parts):
                yield from (_Parameter(parts, signs) for signs in product((1, -1), repeat=n))
    random = Random(15)  # noqa: S311
    for _ in range(budget.pick(quick=300, full=10_000)):
        n = random.randint(1, 12)
        parts = tuple(Fraction(random.randint(-9, 9)) for _ in range(n - 1))
        yield _Parameter((*parts, Fraction(1)), tuple(random.choice((1, -1)) for _ in range(n)))


def right_signs_bound_what_is_gained(parameter: _Parameter) -> Comparison:
    """Risk is at least ``-(L / n) (D / 2)`` times the root of how many directions have the parameter on their side.

    Compared in squares, for the length that the parameter has.
    """
    return at_most(parameter.gained, parameter.right)


def right_signs_count_by_their_share(parameter: _Parameter) -> Comparison:
    """Risk is at least ``-(L / n) (D / 2)`` times their number over ``sqrt(n)``."""
    return at_most(parameter.gained, Fraction(parameter.right**2, len(parameter.signs)))


CLAIMS = (
    Claim(
        paper="G21",
        number="Proposition 13",
        part="construction",
        hypothesis="any labels, any D and L",
        instances=_data_sets,
        printed=the_minimiser_is_the_sum_of_signs,
        false=the_least_risk_falls_with_the_examples,
    ),
    Claim(
        paper="G21",
        number="Proposition 13",
        part="equation 13",
        hypothesis="all (epsilon, delta)-DP channels of one fair label",
        instances=_coins,
        printed=a_sign_is_hard_to_guess,
        false=delta_does_not_help_to_guess,
    ),
    Claim(
        paper="G21",
        number="Proposition 13",
        part="equation 15",
        hypothesis="any parameter of the ball, any labels",
        instances=_parameters,
        printed=right_signs_bound_what_is_gained,
        false=right_signs_count_by_their_share,
    ),
)
