"""Labels of an interval, rounded to knots without bias before they are randomized ([B23], Section 3.1, Appendix E)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.sampling.entropy import EntropySource
from optrand.sampling.rounding import unbiased_rounding
from optrand.theory.b23.optima import dot, exact_law
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.draws import drawn
from optrand.theory.instances import Instance
from optrand.theory.sums import largest_ratio, pushed, total

__all__ = ["Rounded", "rounding_is_unbiased", "variance_shrinks"]

LENGTH = 48
"""Labels lie between 0 and this, knots at whole numbers."""

BITS = 24

WIDTH = 4
"""Of a word: of longer ones than a bit most decide by floats, as those of 64 bits do."""


class Rounded(Instance, knots="even gaps from 0 to 48"):
    """A label, and into how many gaps its interval is divided."""

    value: Fraction
    knots: int

    def law(self, gaps: int) -> dict[float, Fraction]:
        """What the package rounds it to, over all random bits; what many bits do not decide goes to the lower knot."""
        knots = [LENGTH * i / gaps for i in range(gaps + 1)]

        def rounded(bits: EntropySource) -> float:
            return float(unbiased_rounding(float(self.value), knots, source=bits))

        law, rest = drawn(rounded, BITS, width=WIDTH)
        law[min(law)] += rest
        return law

    def variance(self, gaps: int) -> Fraction:
        """Of the rounded label."""
        return total(chance * (Fraction(knot) - self.value) ** 2 for knot, chance in self.law(gaps).items())

    @property
    def mesh(self) -> Fraction:
        """The distance of two knots."""
        return Fraction(LENGTH, self.knots)


def _rounded(budget: Budget) -> Iterator[Rounded]:
    values = [Fraction(n, 2) for n in range(0, 97, budget.pick(quick=15, full=1))]
    yield from (Rounded(value, knots) for knots in (1, 2, 3, 4, 6, 12, 24) for value in (Fraction(24), *values))


@claim(
    "B23",
    "Section 3.1: rounding",
    on=_rounded,
    given="labels of an interval, even knots; all random bits of the package's rounding",
    false=Variant("The same with the two probabilities exchanged.", exchanged=True),
)
def rounding_is_unbiased(rounded: Rounded, exchanged: bool = False) -> Comparison:
    """A label is rounded to one of its two neighbours, right on average; it moves by the mesh at most."""
    law, y = rounded.law(rounded.knots), rounded.value
    chances = reversed(law.values()) if exchanged else law.values()
    mean = dot(list(map(Fraction, law)), list(chances))
    far = max(abs(Fraction(knot) - y) for knot in law)
    return worst(
        equal(float(mean), float(y), tolerance=1e-6, scale=LENGTH), at_most(len(law), 2), at_most(far, rounded.mesh)
    )


@claim(
    "B23",
    "Section 3.1: variance of rounding",
    on=_rounded,
    given="labels of an interval, even knots; all random bits of the package's rounding",
)
def variance_shrinks(rounded: Rounded) -> Comparison:
    """As the gap between knots decreases, the variance that rounding adds to a label does not grow: one gap more."""
    return _no_larger(rounded.variance(rounded.knots + 1), rounded.variance(rounded.knots))


@variance_shrinks.corrected
def _(rounded: Rounded) -> Comparison:
    """It does not grow as knots are added to others, and is at most a quarter of the squared gap."""
    finer = rounded.variance(2 * rounded.knots)
    return worst(_no_larger(finer, rounded.variance(rounded.knots)), _no_larger(finer, rounded.mesh**2 / 16))


@variance_shrinks.false
def _(rounded: Rounded) -> Comparison:
    """Of each label it becomes a quarter as the gap is halved."""
    return _no_larger(rounded.variance(2 * rounded.knots), rounded.variance(rounded.knots) / 4)


def _no_larger(left: Fraction, right: Fraction) -> Comparison:
    """Up to what is left undecided by the bits."""
    return at_most(float(left), float(right) + LENGTH**2 / 2**BITS)


class Composed(Instance, knots="knots at", weights="of weights"):
    """Knots, the optimal unbiased randomizer of the package for their weights, and labels between them."""

    knots: tuple[int, ...]
    weights: tuple[int, ...]
    epsilon: float

    @cached_property
    def mechanism(self) -> optrand.studies.ContinuousMechanism:
        """Rounding, then the randomizer."""
        prior = [weight / sum(self.weights) for weight in self.weights]
        problem = optrand.unbiased_regression(self.knots, prior, self.epsilon)
        return optrand.studies.ContinuousMechanism(optrand.tabulate(optrand.solve(problem)))

    @property
    def values(self) -> list[float]:
        """Labels at eighths of each gap."""
        return [a + (b - a) * i / 8 for a, b in zip(self.knots, self.knots[1:], strict=False) for i in (0, 1, 4, 7)]

    def law(self, value: float, *, nearest: bool = False) -> dict[Fraction, Fraction]:
        """Of what is released for a label: the bits of the rounding, times the rows of the table."""
        knots = np.array(self.knots, dtype=float)
        if nearest:
            rounding = {float(knots[np.abs(knots - value).argmin()]): Fraction(1)}
        else:
            rounding, _ = drawn(lambda bits: float(unbiased_rounding(value, knots, source=bits)), BITS, width=WIDTH)
        outputs, rows = exact_law(self.mechanism.mechanism)
        pairs = ((knots.tolist().index(knot), share) for knot, share in rounding.items())
        return pushed(((v, share * p) for i, share in pairs for v, p in zip(outputs, rows[i], strict=True)), Fraction)


def _composed(budget: Budget) -> Iterator[Composed]:
    for knots, weights in (
        ((0, 8), (1, 1)),
        ((0, 1, 3), (3, 1, 2)),
        *budget.pick(quick=(), full=(((0, 2, 3, 9), (1,) * 4),)),
    ):
        yield from (Composed(knots, weights, epsilon) for epsilon in (1.0, 0.25, 3.0))


@claim(
    "B23",
    "Section 3.1: continuous labels",
    on=_composed,
    given="optimal unbiased randomizers of the package for the knots, labels at eighths of each gap",
    false=Variant("The same with labels rounded to the nearest knot.", nearest=True),
)
def rounding_keeps_the_mean(composed: Composed, nearest: bool = False) -> Comparison:
    """`E[M(URR(y))] = y` for every label between the knots, and the two together are epsilon-DP.

    The package's sampler of both draws that law, as far as eight random bits tell.
    """
    laws = {value: composed.law(value, nearest=nearest) for value in composed.values}
    means = (float(total(v * p for v, p in law.items())) for law in laws.values())
    private = at_most(largest_ratio(list(laws.values())), exp_bracket(composed.epsilon)[0])
    value, law = list(laws.items())[1]
    seen, rest = drawn(lambda bits: Fraction(float(composed.mechanism.sample(value, source=bits))), 8)
    within = [pair for v, p in law.items() for pair in ((seen.get(v, Fraction(0)), p), (p, seen.get(v, 0) + rest))]
    right = (equal(mean, y, tolerance=1e-12, scale=1) for mean, y in zip(means, laws, strict=True))
    return worst(*right, private, *(at_most(*pair) for pair in within))
