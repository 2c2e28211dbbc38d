"""Labels as vectors of random bits: privacy, and what the bits say on average ([Z25]_, Theorem 1 and eq. 24).

Every law here is written out, vector by vector, from the probabilities of single bits, and compared in fractions.

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
from itertools import permutations, product
from random import Random

from optrand.baselines import UnaryBits
from optrand.exact import exp_bracket
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, listed, prior

__all__ = ["CLAIMS", "Bits", "bit_mean", "gain", "law"]

Law = dict[tuple[int, ...], Fraction]

ROUNDING = 1e-12
"""What the package's floats are forgiven."""


def law(y: int, k: int, odds: Fraction) -> Law:
    """The probability of every vector of `k` bits under label `y`.

    Examples
    --------
    >>> {bits: str(chance) for bits, chance in law(0, 2, Fraction(2)).items()}
    {(0, 0): '2/9', (0, 1): '1/9', (1, 0): '4/9', (1, 1): '2/9'}
    """
    right, wrong = odds / (1 + odds), 1 / (1 + odds)
    return {
        bits: math.prod((right if bit == (j == y) else wrong for j, bit in enumerate(bits)), start=Fraction(1))
        for bits in product((0, 1), repeat=k)
    }


def gain(odds: Fraction) -> Fraction:
    """How much the mean of a bit grows with the probability of its class: ``(r - 1) / (r + 1)``."""
    return (odds - 1) / (odds + 1)


def bit_mean(eta: Fraction, odds: Fraction) -> Fraction:
    """The mean of a bit whose class has probability `eta` ([Z25]_, eq. 24)."""
    return 1 / (1 + odds) + gain(odds) * eta


@dataclass(frozen=True)
class Bits:
    """A distribution of the label, and how much likelier each bit is right than wrong.

    Attributes
    ----------
    eta : tuple of Fraction
        The probability of each class.
    odds : Fraction
        ``r = exp(epsilon / 2)``.
    """

    eta: tuple[Fraction, ...]
    odds: Fraction

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.eta)

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """One for each label."""
        return tuple(law(y, self.k, self.odds) for y in range(self.k))

    def __str__(self) -> str:
        return f"K = {self.k}, eta = {listed(self.eta)}, exp(epsilon/2) = {self.odds}"


def _bits(budget: Budget) -> Iterator[Bits]:
    random = Random(24)  # noqa: S311
    for k in (2, 3):
        for odds in RATIOS:
            for weights in ([1] * k, [1] + [0] * (k - 1), list(range(k, 0, -1))):
                yield Bits(tuple(Fraction(weight, sum(weights)) for weight in weights), odds)
    for _ in range(budget.pick(quick=60, full=1_000)):
        yield Bits(
            prior(random, random.randint(2, budget.pick(quick=5, full=8))), 1 + Fraction(random.randint(1, 99), 20)
        )


def largest_ratio(laws: tuple[Law, ...]) -> Fraction:
    """Of the probabilities of one vector under two labels."""
    return max(one[bits] / other[bits] for one, other in permutations(laws, 2) for bits in one)


def changing_the_label_costs_two_bits(bits: Bits) -> Comparison:
    """If each bit is exp(epsilon / 2) times likelier right than wrong, no vector has a ratio above exp(epsilon).

    That is, the probabilities of one vector under two labels.
    """
    return at_most(largest_ratio(bits.laws), bits.odds**2)


def changing_the_label_costs_one_bit(bits: Bits) -> Comparison:
    """The same with each bit exp(epsilon) times likelier right than wrong."""
    squared = tuple(law(y, bits.k, bits.odds**2) for y in range(bits.k))
    return at_most(largest_ratio(squared), bits.odds**2)


@dataclass(frozen=True)
class Drawn:
    """The package's randomizer at some budget."""

    randomizer: UnaryBits

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """Of the coins that are thrown."""
        return tuple(law(y, self.randomizer.k, self.randomizer.odds) for y in range(self.randomizer.k))

    def __str__(self) -> str:
        return str(self.randomizer)


def _drawn(budget: Budget) -> Iterator[Drawn]:
    for k in budget.pick(quick=(2, 3, 4), full=(2, 3, 4, 5, 6, 7)):
        for epsilon in (1.0, 0.5, 1e-6, 2.0, math.log(2), 8.0, 40.0, 1e-12, 300.0):
            yield Drawn(UnaryBits(k, epsilon))


def what_is_drawn_is_private(drawn: Drawn) -> Comparison:
    """The coins of :class:`optrand.baselines.UnaryBits`, which are rational, make no ratio above ``exp(epsilon)``.

    That is compared with a rational just below it.
    """
    return at_most(largest_ratio(drawn.laws), exp_bracket(drawn.randomizer.epsilon)[0])


def what_is_drawn_spends_less(drawn: Drawn) -> Comparison:
    """The same coins spend a hundredth less than epsilon."""
    return at_most(largest_ratio(drawn.laws), exp_bracket(drawn.randomizer.epsilon * 0.99)[0])


def what_is_drawn_is_debiased(drawn: Drawn) -> Comparison:
    """``((1 + r) Z(j) - 1) / (r - 1)`` has the mean ``[j = y]`` and, for any label, the variance ``r / (r - 1)**2``.

    Eq. 24 solved for ``eta``, as :class:`optrand.baselines.UnaryBits` does it; the truth is summed over all vectors.
    """
    return worst(
        *(
            comparison
            for y, j in product(range(drawn.randomizer.k), repeat=2)
            for mean, variance in [_of_one_bit(drawn, drawn.laws[y], j)]
            for comparison in (
                equal(mean, Fraction(j == y), tolerance=ROUNDING, scale=Fraction(drawn.randomizer.estimates[1])),
                equal(variance, drawn.randomizer.variance, tolerance=ROUNDING),
            )
        )
    )


def the_label_adds_no_variance(drawn: Drawn) -> Comparison:
    """The variance is ``r / (r - 1)**2`` also if the label is drawn: uniformly, say."""
    k = drawn.randomizer.k
    mixed = {bits: sum((each[bits] for each in drawn.laws), Fraction(0)) / k for bits in drawn.laws[0]}
    return equal(_of_one_bit(drawn, mixed, 0)[1], drawn.randomizer.variance, tolerance=ROUNDING)


def _of_one_bit(drawn: Drawn, chances: Law, j: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of the debiased bit `j`, with the two values that the package gives it."""
    values = tuple(map(Fraction, drawn.randomizer.estimates))
    mean = sum((chance * values[bits[j]] for bits, chance in chances.items()), Fraction(0))
    return mean, sum((chance * (values[bits[j]] - mean) ** 2 for bits, chance in chances.items()), Fraction(0))


def bits_tell_the_class(bits: Bits) -> Comparison:
    """Bit ``j`` is 1 with probability ``1 / (1 + r) + eta_j (r - 1) / (r + 1)``, where ``r = exp(epsilon / 2)``."""
    return _means_are(bits, gain(bits.odds))


def bits_tell_more(bits: Bits) -> Comparison:
    """The same with ``r / (r + 1)`` in place of ``(r - 1) / (r + 1)``: the noise of the other bits forgotten."""
    return _means_are(bits, bits.odds / (bits.odds + 1))


def _means_are(bits: Bits, slope: Fraction) -> Comparison:
    return worst(
        *(
            equal(
                sum(
                    (
                        p * chance
                        for p, each in zip(bits.eta, bits.laws, strict=True)
                        for z, chance in each.items()
                        if z[j]
                    ),
                    Fraction(0),
                ),
                1 / (1 + bits.odds) + slope * bits.eta[j],
            )
            for j in range(bits.k)
        )
    )


CLAIMS = (
    Claim(
        paper="Z25",
        number="Theorem 1",
        hypothesis="at least two classes, any epsilon above 0",
        instances=_bits,
        printed=changing_the_label_costs_two_bits,
        false=changing_the_label_costs_one_bit,
    ),
    Claim(
        paper="Z25",
        number="Theorem 1",
        part="as drawn",
        hypothesis="the coins of this package",
        instances=_drawn,
        printed=what_is_drawn_is_private,
        false=what_is_drawn_spends_less,
    ),
    Claim(
        paper="Z25",
        number="Equation 24",
        hypothesis="any distribution of the label, any epsilon above 0",
        instances=_bits,
        printed=bits_tell_the_class,
        false=bits_tell_more,
    ),
    Claim(
        paper="Z25",
        number="Equation 24",
        part="debiased",
        hypothesis="the coins and estimates of this package",
        instances=_drawn,
        printed=what_is_drawn_is_debiased,
        false=the_label_adds_no_variance,
    ),
)
