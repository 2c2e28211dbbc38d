"""Optimal unbiased randomizers for small epsilon: a public gap, then a private bit, exactly where a chord is short."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise, product

import optrand
from optrand.closed_forms import gap_response
from optrand.solvers import ReducedDual
from optrand.theory.b23.optima import PROVEN, posed
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import Setting, label_set, prior, seeded, shares

__all__ = ["Form"]

CHORDS = (Fraction(99, 100), Fraction(1), Fraction(26, 25), Fraction(3, 2))
FURTHER = Fraction(1, 50)
"""Beyond so much of a longer chord the loss is proven to be larger."""


class Form(Setting):
    """Labels, a prior and a ratio, and the closed form as it is printed."""

    @property
    def nodes(self) -> list[tuple[Fraction, float]]:
        """`P` and `r` between neighbouring labels, points of a half circle of diameter ``E + 1``."""
        heights = (1 + (self.ratio - 1) * below for below in list(accumulate(self.prior))[:-1])
        return [(P, math.sqrt(P * (self.ratio + 1 - P))) for P in heights]

    @property
    def chord(self) -> float:
        """Distance of the first point from the last one."""
        (start, low), (end, high) = self.nodes[0], self.nodes[-1]
        return math.hypot(end - start, high - low)

    def value(self, power: int = 1) -> float:
        """Loss of the mechanism that draws a gap with a probability in proportion to its length times ``r**power``.

        The outputs are those that are unbiased: apart by what the bit and the gap's probability make of its length.
        """
        mean = sum(p * y for p, y in zip(self.prior, self.labels, strict=True))
        variance = sum(p * (y - mean) ** 2 for p, y in zip(self.prior, self.labels, strict=True))
        sizes = [
            (float(after - before), r)
            for (before, after), (_, r) in zip(pairwise(self.labels), self.nodes, strict=True)
        ]
        length = sum(d * r**power for d, r in sizes)
        square = length * sum(d * r ** (2 - power) for d, r in sizes) / float(self.ratio - 1) ** 2
        return (square - float(variance)) / 2

    @cached_property
    def optimum(self) -> optrand.Certificate:
        """Least loss on the real line, by the solver that knows no closed form."""
        return optrand.certify(optrand.solve(posed(self), ReducedDual())).require(PROVEN)


def _forms(budget: Budget) -> Iterator[Form]:
    """Uniform priors with chords next to 1, and random ones."""
    for k, chord in product(range(2, 7), CHORDS):
        # A uniform prior has the chord (E - 1)(k - 2) / k.
        ratio = 1 + chord * Fraction(k, k - 2) if k > 2 else 1 + 9 * chord
        yield Form(tuple(map(Fraction, range(k))), shares([1] * k), ratio)
    random = seeded(17)
    for _ in range(budget.pick(quick=25, full=1_000)):
        k = random.randint(2, 12)
        yield Form(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(5, 300), 100))


@claim(
    "B23 Algorithm 1: closed form",
    kind="ours",
    on=_forms,
    given="halved squared loss, outputs anywhere on the line, a chord of at most 1",
    sides=("half squared error by the formula", "optimum"),
    false=Variant("The same where the chord is at most 21/20.", most=1.05),
)
def gap_response_is_best(form: Form, most: float = 1.0) -> Comparison:
    """A public gap between labels, drawn in proportion to its length times `r`, then one private bit, is an optimum."""
    if form.chord > most:
        return none(0)
    solution = gap_response(*_floats(form))
    return worst(
        equal(form.value(), form.optimum.upper, tolerance=PROVEN),
        equal(solution.value, form.optimum.upper, tolerance=PROVEN),
    )


@claim(
    "B23 Algorithm 1: closed form elsewhere",
    kind="ours",
    on=_forms,
    given="as of the closed form, a chord that is longer than 1 by more than 1/50",
    sides=("optimum", "half squared error by the formula"),
    false=Variant("The same where the chord is longer than 4/5.", least=Fraction(4, 5)),
)
def gap_response_is_best_nowhere_else(form: Form, least: Fraction = 1 + FURTHER) -> Comparison:
    """A public gap, then one private bit, loses more than the optimum, by more than the proof leaves open."""
    if form.chord <= least:
        return none(0)
    return at_most(form.optimum.upper, form.value() * (1 - 2 * PROVEN))


@claim(
    "B23 Algorithm 1: gaps",
    kind="ours",
    on=_forms,
    given="halved squared loss, outputs anywhere on the line; any epsilon",
    sides=("loss of gaps in proportion to length times r", "loss of other gaps"),
    false=Variant("The same of gaps drawn in proportion to their length times the square of `r`.", power=2),
)
def no_other_gaps_are_better(form: Form, power: int = 1) -> Comparison:
    """Of gaps drawn in proportion to their length times `r`, or to their length, the former lose no more."""
    return at_most(form.value(power), min(form.value(0), form.value(1)), tolerance=1e-12)


def _floats(form: Form) -> tuple[list[float], list[float], float]:
    labels, weights = ([float(x) for x in row] for row in (form.labels, form.prior))
    return labels, weights, math.log(form.ratio)
