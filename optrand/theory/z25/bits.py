"""Labels as vectors of random bits: privacy, and what the bits say on average ([Z25]_, Theorem 1, eqs. 24 and 44).

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

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, listed, prior

__all__ = ["CLAIMS", "Bits", "bit_mean", "gain", "law"]

Law = dict[tuple[int, ...], Fraction]

ROUNDING = 1e-12
"""What floats are forgiven."""

OUTPUTS = tuple(Fraction(n, 12) for n in range(1, 12))
"""What a model may say of a bit, beside what it should say."""


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

    @cached_property
    def _first_bits(self) -> list[tuple[int, float]]:
        """The bit of the first class in each vector, and the probability of the vector together with the label."""
        return [
            (z[0], float(p * chance)) for p, each in zip(self.eta, self.laws, strict=True) for z, chance in each.items()
        ]

    def loss(self, output: Fraction) -> float:
        """The expected cross entropy of an output for the bit of the first class, summed over labels and vectors."""
        of_bit = -math.log(1 - output), -math.log(output)
        return math.fsum(share * of_bit[bit] for bit, share in self._first_bits)

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


def cross_entropy_is_least_at_the_mean(bits: Bits) -> Comparison:
    """Output `u` for a bit of mean `m` has the expected loss ``-m ln u - (1 - m) ln(1 - u)``, which is least at `m`.

    The loss is the binary cross entropy. Compared with the sum over all labels and vectors, for the first class.
    """
    return _least_at(bits, bit_mean(bits.eta[0], bits.odds))


def cross_entropy_is_least_at_the_class(bits: Bits) -> Comparison:
    """The same with the probability of the class in place of the mean of its bit."""
    return _least_at(bits, bits.eta[0])


def _least_at(bits: Bits, mean: Fraction) -> Comparison:
    least = _cross_entropy(mean, mean)
    outputs = [*OUTPUTS, *(u for u in (mean, mean * Fraction(99, 100)) if 0 < u < 1)]
    losses = [(bits.loss(u), _cross_entropy(mean, u)) for u in outputs]
    return worst(
        *(equal(loss, formula, tolerance=ROUNDING) for loss, formula in losses),
        *(at_most(least, loss, tolerance=ROUNDING) for loss, _ in losses),
    )


def _cross_entropy(mean: Fraction, output: Fraction) -> float:
    return -sum(float(share) * math.log(said) for share, said in ((mean, output), (1 - mean, 1 - output)) if share)


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
        number="Equation 24",
        hypothesis="any distribution of the label, any epsilon above 0",
        instances=_bits,
        printed=bits_tell_the_class,
        false=bits_tell_more,
    ),
    Claim(
        paper="Z25",
        number="Equation 44",
        hypothesis="any distribution of the label, any epsilon above 0; least: as said just after it",
        instances=_bits,
        printed=cross_entropy_is_least_at_the_mean,
        false=cross_entropy_is_least_at_the_class,
    ),
)
