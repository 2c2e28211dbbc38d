"""What training on bits aims at: the cross entropy, its least value, and models near it ([Z25]_, Appendix C.2).

References
----------
.. [Z25] Zhao et al., *Enhancing Learning with Label Local Differential Privacy by Vector Approximation*, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal
from optrand.theory.instances import listed
from optrand.theory.z25.bits import bit_mean, law

__all__ = ["CLAIMS"]

ROUNDING = 1e-12
"""What floats are forgiven."""

OUTPUTS = tuple(Fraction(n, 12) for n in range(1, 12))
"""What a model may say at a point, beside what it should say."""


@dataclass(frozen=True)
class Bit:
    """Points, the probability of the first of two classes at each, and the bit of that class.

    Attributes
    ----------
    masses : tuple of Fraction
        Of the points.
    etas : tuple of Fraction
        The probability of the class there.
    odds : Fraction
        ``exp(epsilon / 2)``.
    """

    masses: tuple[Fraction, ...]
    etas: tuple[Fraction, ...]
    odds: Fraction

    @cached_property
    def means(self) -> tuple[Fraction, ...]:
        """Of the bit, at every point ([Z25]_, eq. 24)."""
        return tuple(bit_mean(eta, self.odds) for eta in self.etas)

    def loss(self, point: int, output: Fraction) -> float:
        """The expected cross entropy at a point, summed over labels and vectors of two bits."""
        total = 0.0
        for y, share in enumerate((self.etas[point], 1 - self.etas[point])):
            for bits, chance in law(y, 2, self.odds).items():
                said = output if bits[0] else 1 - output
                if share:
                    total -= float(share * chance) * (math.log(said) if said else -math.inf)
        return total

    def mean_loss(self, outputs: tuple[Fraction, ...]) -> float:
        """The expected cross entropy of a model: an output for each point."""
        return sum(
            float(mass) * self.loss(x, said) for x, (mass, said) in enumerate(zip(self.masses, outputs, strict=True))
        )

    def __str__(self) -> str:
        return f"points {listed(self.masses)} of eta {listed(self.etas)}, exp(epsilon/2) = {self.odds}"


def _bits(budget: Budget) -> Iterator[Bit]:
    for eta in map(Fraction, ("1/3", "1/2", "0", "1")):
        for odds in (Fraction(2), Fraction(11, 10), Fraction(20)):
            yield Bit((Fraction(1),), (eta,), odds)
    random = Random(44)  # noqa: S311
    for _ in range(budget.pick(quick=20, full=500)):
        size = random.randint(1, 2)
        weights = [random.randint(1, 5) for _ in range(size)]
        masses = tuple(Fraction(weight, sum(weights)) for weight in weights)
        etas = tuple(Fraction(random.randint(0, 10), 10) for _ in range(size))
        yield Bit(masses, etas, 1 + Fraction(random.randint(1, 30), 10))


def each_point_is_learned_on_its_own(bit: Bit) -> Comparison:
    """The least expected loss of all models is the mean, over points, of the least expected loss at each."""
    best = sum(float(mass) * min(bit.loss(x, said) for said in OUTPUTS) for x, mass in enumerate(bit.masses))
    return equal(min(map(bit.mean_loss, product(OUTPUTS, repeat=len(bit.masses)))), best, tolerance=ROUNDING)


def all_points_are_learned_alike(bit: Bit) -> Comparison:
    """The same of models that say one thing everywhere."""
    best = sum(float(mass) * min(bit.loss(x, said) for said in OUTPUTS) for x, mass in enumerate(bit.masses))
    return equal(min(bit.mean_loss((said,) * len(bit.masses)) for said in OUTPUTS), best, tolerance=ROUNDING)


def the_mean_of_the_bit_is_learned(bit: Bit) -> Comparison:
    """At each point the expected cross entropy is least at the mean of the bit, there."""
    return _least_at(bit, bit.means)


def the_class_probability_is_learned(bit: Bit) -> Comparison:
    """At each point the expected cross entropy is least at the probability of the class."""
    return _least_at(bit, bit.etas)


def _least_at(bit: Bit, outputs: tuple[Fraction, ...]) -> Comparison:
    others = (min(bit.loss(x, said) for said in (*OUTPUTS, bit.means[x])) for x in range(len(outputs)))
    least = sum(float(mass) * other for mass, other in zip(bit.masses, others, strict=True))
    return at_most(bit.mean_loss(outputs), least, tolerance=ROUNDING)


@dataclass(frozen=True)
class Excess:
    """The excess loss of a continuous model along the unit interval: straight lines between evenly spread values."""

    values: tuple[Fraction, ...]

    @property
    def parts(self) -> int:
        """The number of lines."""
        return len(self.values) - 1

    @property
    def mean(self) -> Fraction:
        """What a model that is near the least expected loss keeps small."""
        return sum(((a + b) / 2 for a, b in pairwise(self.values)), Fraction(0)) / self.parts

    @property
    def slope(self) -> Fraction:
        """How fast it changes, at most."""
        return max(abs(b - a) for a, b in pairwise(self.values)) * self.parts

    def __str__(self) -> str:
        above = (f"{value} at {place}/{self.parts}" for place, value in enumerate(self.values) if value)
        return f"excess {', '.join(above)}, else 0, in straight lines from one {self.parts}-th to the next"


def _excesses(budget: Budget) -> Iterator[Excess]:
    for parts in (1, 2, 10, 201):
        zero = (Fraction(0),) * parts
        yield Excess((Fraction(1), *zero))
        yield Excess((Fraction(1),) * (parts + 1))
        yield Excess((*zero, Fraction(1, 1_000)))
    random = Random(42)  # noqa: S311
    for _ in range(budget.pick(quick=200, full=5_000)):
        ceiling = random.choice((1, 3, 100))
        values = [random.randint(0, ceiling) * random.randint(0, 1) for _ in range(random.randint(2, 12))]
        yield Excess(tuple(map(Fraction, values)))


def a_small_mean_is_small_everywhere(excess: Excess) -> Comparison:
    """An excess loss of small mean that changes at a bounded rate is small everywhere.

    Of features uniform on the unit interval, mean ``delta`` and rate ``M``: at most ``sqrt(2 M delta)`` or ``4 delta``.
    Half of the interval is on one side of any point; there the excess falls no faster than at rate ``M``, so that its
    mean is at least ``h**2 / (2 M)``, or ``h / 4``, if it is ``h`` at that point.
    """
    largest = max(excess.values)
    return at_most(largest**2, max(2 * excess.slope * excess.mean, 16 * excess.mean**2))


def continuity_is_enough(excess: Excess) -> Comparison:
    """The same without a rate: an excess loss of mean ``delta`` is nowhere above ``100 delta``."""
    return at_most(max(excess.values) ** 2, 100**2 * excess.mean**2)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Equation 39",
        part="last step",
        hypothesis="finitely many points, finitely many outputs, any function between them",
        instances=_bits,
        printed=each_point_is_learned_on_its_own,
        false=all_points_are_learned_alike,
    ),
    Claim(
        paper="Z25",
        number="Equation 42",
        hypothesis="an excess loss that changes at a bounded rate; the paper's continuity alone is not enough",
        instances=_excesses,
        printed=a_small_mean_is_small_everywhere,
        false=continuity_is_enough,
        quantifier="nearly equal, for networks large enough and samples large enough",
    ),
    Claim(
        paper="Z25",
        number="Equation 44",
        part="least",
        hypothesis="cross entropy, any class probability",
        instances=_bits,
        printed=the_mean_of_the_bit_is_learned,
        false=the_class_probability_is_learned,
    ),
)
