"""Grids of outputs on which an unbiased randomizer exists ([B23], Proposition 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.theory.b23.columns import response_ends
from optrand.theory.b23.feasibility import smallest_ratio
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import Setting, settings

__all__ = ["CLAIMS"]


def _settings(budget: Budget) -> Iterator[Setting]:
    return settings(budget.pick(quick=300, full=5_000))


def two_ends_are_enough(setting: Setting) -> Comparison:
    """The lowest and the highest output of debiased randomized response carry an unbiased epsilon-DP randomizer.

    With two outputs `L < U` there is only one unbiased randomizer: `U` with probability `(y - L) / (U - L)`. Its ratios
    are largest between the two end labels.
    """
    return _carry(setting, *response_ends(setting.labels, setting.ratio))


def nearer_ends_are_enough(setting: Setting) -> Comparison:
    """The same with both ends a tenth nearer to the labels."""
    low, high = response_ends(setting.labels, setting.ratio)
    first, last = setting.labels[0], setting.labels[-1]
    return _carry(setting, low + (first - low) / 10, high - (high - last) / 10)


def _carry(setting: Setting, low: Fraction, high: Fraction) -> Comparison:
    return at_most(smallest_ratio(setting.labels, low, high), setting.ratio)


@dataclass(frozen=True)
class _Triple:
    """Three positive numbers."""

    a: Fraction
    b: Fraction
    c: Fraction

    def __str__(self) -> str:
        return f"a = {self.a}, b = {self.b}, c = {self.c}"


def _triples(budget: Budget) -> Iterator[_Triple]:
    random = Random(7)  # noqa: S311
    numbers = [Fraction(1), Fraction(2), Fraction(1, 3)]
    yield from (_Triple(a, b, c) for a in numbers for b in numbers for c in numbers)
    for _ in range(budget.pick(quick=500, full=20_000)):
        yield _Triple(*(Fraction(random.randint(1, 1_000), random.randint(1, 1_000)) for _ in range(3)))


def a_common_summand_shrinks_a_ratio(triple: _Triple) -> Comparison:
    """Of positive numbers, `(a + b) / (a + c) <= b / c`."""
    return at_most((triple.a + triple.b) / (triple.a + triple.c), triple.b / triple.c)


def a_common_summand_shrinks_a_ratio_above_one(triple: _Triple) -> Comparison:
    """Of positive numbers with `b >= c`, `(a + b) / (a + c) <= b / c`; in the proof `b / c` is exp(epsilon)."""
    larger, smaller = max(triple.b, triple.c), min(triple.b, triple.c)
    return at_most((triple.a + larger) / (triple.a + smaller), larger / smaller)


def a_common_summand_grows_a_ratio(triple: _Triple) -> Comparison:
    """Of positive numbers, `b / c <= (a + b) / (a + c)`."""
    return at_most(triple.b / triple.c, (triple.a + triple.b) / (triple.a + triple.c))


CLAIMS = (
    Claim(
        paper="B23",
        number="Proposition 7",
        hypothesis="at least two labels, any epsilon above 0",
        instances=_settings,
        printed=two_ends_are_enough,
        false=nearer_ends_are_enough,
    ),
    Claim(
        paper="B23",
        number="Proposition 7",
        part="last step",
        hypothesis="three positive numbers",
        instances=_triples,
        printed=a_common_summand_shrinks_a_ratio,
        corrected=a_common_summand_shrinks_a_ratio_above_one,
        false=a_common_summand_grows_a_ratio,
    ),
)
