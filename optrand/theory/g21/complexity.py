"""How far averages stray from means, over a whole class of functions at once ([G21], Lemmas 21 and 22).

Classes and distributions are finite: samples, up to their order, and random signs are enumerated, in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from operator import mul

from optrand.base.arithmetic import log_bracket
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import times, total

__all__ = ["Deviations", "Function", "correlation", "exceeded", "log_term", "rademacher", "samples"]

Function = tuple[Fraction, ...]
"""A function on finitely many points: its values."""

Deviations = Iterable[tuple[Fraction, Fraction]]
"""Pairs of a deviation and its probability."""


def samples(chances: Sequence[Fraction], size: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every independent sample up to its order, as how often each point occurs, and its probability.

    Examples
    --------
    >>> [(counts, str(chance)) for counts, chance in samples([Fraction(1, 4), Fraction(3, 4)], 2)]
    [((2, 0), '1/16'), ((1, 1), '3/8'), ((0, 2), '9/16')]
    """
    for points in combinations_with_replacement(range(len(chances)), size):
        counts = tuple(map(points.count, range(len(chances))))
        orders = math.factorial(size) // math.prod(map(math.factorial, counts))
        if chance := orders * times(map(pow, chances, counts)):
            yield counts, chance


def rademacher(functions: Sequence[Function], chances: Sequence[Fraction], size: int) -> Fraction:
    """Rademacher complexity of a class, equations 20 and 21, for samples of a size.

    Examples
    --------
    Of all two functions on one point the larger correlates with one random sign by 1/2:

    >>> rademacher([(Fraction(0),), (Fraction(1),)], [Fraction(1)], 1)
    Fraction(1, 2)
    """
    return total(chance * correlation(functions, counts) for counts, chance in samples(chances, size))


def correlation(functions: Sequence[Function], counts: Sequence[int]) -> Fraction:
    """Equation 20. Points that occur more than once share their sum of signs, whose weights are binomial."""
    found = Fraction(0)
    for ups in product(*(range(count + 1) for count in counts)):
        signs = [2 * up - count for count, up in zip(counts, ups, strict=True)]
        found += math.prod(map(math.comb, counts, ups)) * max(total(map(mul, each, signs)) for each in functions)
    return found / (sum(counts) << sum(counts))


def exceeded(deviations: Deviations, offset: Fraction, squared: Fraction) -> Fraction:
    """Probability of a deviation above ``offset + sqrt(squared)``.

    Examples
    --------
    >>> deviations = [(Fraction(11, 10), Fraction(1, 3)), (Fraction(6, 5), Fraction(2, 3))]
    >>> exceeded(deviations, Fraction(1), log_term(Fraction(1, 10), 50))
    Fraction(2, 3)
    """
    return total(chance for off, chance in deviations if off > offset and (off - offset) ** 2 > squared)


def log_term(beta: Fraction, size: Fraction | int) -> Fraction:
    """``log(2 / beta) / (2 size)``, or hardly less."""
    return log_bracket(2 / beta)[0] / (2 * size)


class Class(Instance, size="n"):
    """Functions into [0, 1] on a few points, samples of a size, and a probability of failure."""

    functions: tuple[Function, ...]
    chances: Function
    size: int
    beta: Fraction

    @cached_property
    def deviations(self) -> Deviations:
        """How far averages are off, of the worst function, with probabilities."""
        found = []
        for counts, chance in samples(self.chances, self.size):
            off = [Fraction(count, self.size) - p for count, p in zip(counts, self.chances, strict=True)]
            found.append((max(abs(total(map(mul, each, off))) for each in self.functions), chance))
        return found

    @cached_property
    def complexity(self) -> Fraction:
        """Rademacher complexity of the functions."""
        return rademacher(self.functions, self.chances, self.size)


BETAS = (Fraction(1, 2), Fraction(9, 10), Fraction(1, 10), Fraction(1, 1000))


def _classes(budget: Budget) -> Iterator[Class]:
    zero, one = Fraction(0), Fraction(1)
    for points in (1, 2, 3):
        single: Function = (one,) + (zero,) * (points - 1)
        for functions in ((single,), tuple(product((zero, one), repeat=points))):
            yield from (Class(functions, shares([1] * points), *each) for each in product((1, 2, 5), BETAS))
    pairs = combinations_with_replacement(range(6), 2)
    unseen = tuple(tuple(Fraction(point not in seen) for point in range(6)) for seen in pairs)
    yield Class(unseen, shares([1] * 6), 2, Fraction(95, 100))
    random = seeded(21)
    for _ in range(budget.pick(quick=60, full=1_500)):
        points = random.randint(1, 4)
        functions = tuple(
            tuple(Fraction(random.randint(0, 6), 6) for _ in range(points)) for _ in range(random.randint(1, 4))
        )
        yield Class(functions, prior(random, points), random.randint(1, 4), random.choice(BETAS))


SAMPLES = "functions into [0, 1], independent samples; R is the Rademacher complexity"


@claim("G21", "Lemma 21", on=_classes, given=SAMPLES, false=Variant("The same without ``2 R``.", complexities=0))
def averages_are_near_means(each: Class, complexities: int = 2) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / n)`` of their means.

    Compared are the probability that some are not, and beta.
    """
    return _near(each, complexities, 2)


def _near(each: Class, complexities: int, root: int) -> Comparison:
    squared = root * log_term(each.beta, each.size)
    return at_most(exceeded(each.deviations, complexities * each.complexity, squared), each.beta)


@claim(
    "G21",
    "Lemma 21",
    part="as Theorem 17 uses it",
    kind="ours",
    on=_classes,
    given=SAMPLES,
    false=Variant("The same without ``2 R``.", complexities=0),
)
def averages_are_nearer_means(each: Class, complexities: int = 2) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / (2 n))`` of their means.

    The root is the one of Theorem 17, not that of Lemma 21.
    """
    return _near(each, complexities, 1)


CURVES: dict[str, Callable[[Fraction], Fraction]] = {
    "constant 1": lambda _: Fraction(1),
    "falling line": lambda slope: -slope,
    "distance": abs,
    "hinge": lambda slope: max(slope, Fraction(0)),
    "clipped line": lambda slope: min(max(slope, Fraction(-1)), Fraction(1)),
    "hat": lambda slope: max(1 - abs(slope), Fraction(0)),
}


class Contraction(Instance, functions="values", steepness="L"):
    """Values of functions at the points of a sample, and for each point a curve that is no steeper than `steepness`."""

    functions: tuple[Function, ...]
    curves: tuple[str, ...]
    centres: Function
    steepness: Fraction

    @property
    def curved(self) -> tuple[Function, ...]:
        """Values of the functions through the curves."""
        points = list(zip(self.curves, self.centres, strict=True))
        return tuple(
            tuple(CURVES[curve](self.steepness * (v - centre)) for v, (curve, centre) in zip(each, points, strict=True))
            for each in self.functions
        )


def _contractions(budget: Budget) -> Iterator[Contraction]:
    zero, one = Fraction(0), Fraction(1)
    for curve, values in product(CURVES, ((zero,), (zero, one), (-one, zero, Fraction(2)))):
        yield Contraction(tuple((value,) for value in values), (curve,), (zero,), one)
    random = seeded(22)
    for _ in range(budget.pick(quick=200, full=5_000)):
        size, steepness = random.randint(1, 5), Fraction(random.randint(1, 12), 4)
        rows = [tuple(Fraction(random.randint(-6, 6), 3) for _ in range(size)) for _ in range(random.randint(2, 6))]
        curves = tuple(random.choice(tuple(CURVES)) for _ in range(size))
        yield Contraction(tuple(rows[1:]), curves, rows[0], steepness)


@claim(
    "G21",
    "Lemma 22",
    on=_contractions,
    given="finite classes",
    false=Variant("The same with the largest absolute correlation on both sides.", absolute=True),
)
def curves_contract(contraction: Contraction, absolute: bool = False) -> Comparison:
    """Curves no steeper than L, one for each point, make a class at most L times as complex."""
    turns = (1, -1) if absolute else (1,)
    plain, curved = (
        correlation([tuple(turn * v for v in row) for row in rows for turn in turns], (1,) * len(contraction.curves))
        for rows in (contraction.functions, contraction.curved)
    )
    return at_most(curved, contraction.steepness * plain)
