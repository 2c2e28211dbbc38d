"""How far averages stray from means, over a whole class of functions at once ([G21], Lemma 21).

All of it is exact: the classes and the distributions are finite, samples are enumerated up to their order, and so are
the random signs of the Rademacher complexity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from random import Random

from optrand.base.arithmetic import log_bracket
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS", "Bound", "Function", "deviation", "exceeded", "rademacher", "samples"]

Function = tuple[Fraction, ...]
"""A function on finitely many points: its values."""


@dataclass(frozen=True)
class Bound:
    """A number and the square root of another, ``offset + sqrt(squared)``: what averages may be off by.

    Examples
    --------
    >>> bound = Bound.failing(Fraction(1, 10), offset=Fraction(1), size=50)
    >>> round(bound.value, 6), bound.exceeded_by(Fraction(11, 10)), bound.exceeded_by(Fraction(6, 5))
    (1.173082, False, True)
    """

    offset: Fraction
    squared: Fraction

    @classmethod
    def failing(cls, beta: Fraction, *, offset: Fraction, size: Fraction | int) -> Bound:
        """The bound ``offset + sqrt(log(2 / beta) / (2 size))``; the logarithm is rounded down."""
        return cls(offset, log_bracket(2 / beta)[0] / (2 * size))

    @property
    def value(self) -> float:
        """As a float."""
        return float(self.offset) + math.sqrt(self.squared)

    def exceeded_by(self, off: Fraction) -> bool:
        """Whether a deviation is larger, decided without floats."""
        rest = off - self.offset
        return rest > 0 and rest**2 > self.squared


def samples(chances: Sequence[Fraction], size: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every independent sample up to its order, as how often each point occurs, and its probability.

    Parameters
    ----------
    chances : sequence of Fraction
        Of the points.
    size : int

    Examples
    --------
    >>> [(counts, str(chance)) for counts, chance in samples([Fraction(1, 4), Fraction(3, 4)], 2)]
    [((2, 0), '1/16'), ((1, 1), '3/8'), ((0, 2), '9/16')]
    """
    for points in combinations_with_replacement(range(len(chances)), size):
        tally = Counter(points)
        counts = tuple(tally[point] for point in range(len(chances)))
        orders = math.factorial(size) // math.prod(map(math.factorial, counts))
        chance = math.prod((share**count for share, count in zip(chances, counts, strict=True)), start=Fraction(orders))
        if chance:
            yield counts, chance


def deviation(functions: Sequence[Function], targets: Sequence[Fraction], counts: Sequence[int]) -> Fraction:
    """How far, of some function, the average over a sample is from its target."""
    size = sum(counts)
    return max(
        abs(target - sum((value * count for value, count in zip(function, counts, strict=True)), Fraction(0)) / size)
        for function, target in zip(functions, targets, strict=True)
    )


def rademacher(functions: Sequence[Function], chances: Sequence[Fraction], size: int) -> Fraction:
    """The Rademacher complexity of a class, equations 20 and 21, for samples of a size.

    Examples
    --------
    Of all two functions on one point the larger correlates with one random sign by 1/2:

    >>> rademacher([(Fraction(0),), (Fraction(1),)], [Fraction(1)], 1)
    Fraction(1, 2)
    """
    return sum((chance * _of_sample(functions, counts) for counts, chance in samples(chances, size)), Fraction(0))


def _of_sample(functions: Sequence[Function], counts: Sequence[int]) -> Fraction:
    """Equation 20. Points that occur more than once share their sum of signs, whose weights are binomial."""
    total = Fraction(0)
    for ups in product(*(range(count + 1) for count in counts)):
        weight = math.prod(math.comb(count, up) for count, up in zip(counts, ups, strict=True))
        sums = [2 * up - count for count, up in zip(counts, ups, strict=True)]
        total += weight * max(
            sum((value * each for value, each in zip(function, sums, strict=True) if each), Fraction(0))
            for function in functions
        )
    return total / (sum(counts) << sum(counts))


def exceeded(deviations: Iterable[tuple[Fraction, Fraction]], bound: Bound) -> Fraction:
    """How likely a deviation is to exceed a bound, of pairs of a deviation and its probability."""
    return sum((chance for off, chance in deviations if bound.exceeded_by(off)), Fraction(0))


@dataclass(frozen=True)
class _Class:
    """Functions into [0, 1] on a few points, samples of a size, and a probability of failure."""

    functions: tuple[Function, ...]
    chances: tuple[Fraction, ...]
    size: int
    beta: Fraction

    @cached_property
    def deviations(self) -> list[tuple[Fraction, Fraction]]:
        """How far averages are off, with probabilities."""
        targets = [
            sum((v * chance for v, chance in zip(function, self.chances, strict=True)), Fraction(0))
            for function in self.functions
        ]
        return [
            (deviation(self.functions, targets, counts), chance) for counts, chance in samples(self.chances, self.size)
        ]

    @cached_property
    def complexity(self) -> Fraction:
        """Of the functions."""
        return rademacher(self.functions, self.chances, self.size)

    def failure(self, *, complexities: int, root: Fraction) -> Fraction:
        """How likely some average is off by more than so many complexities and ``sqrt(root log(2 / beta) / n)``."""
        bound = Bound.failing(self.beta, offset=complexities * self.complexity, size=self.size / (2 * root))
        return exceeded(self.deviations, bound)

    def __str__(self) -> str:
        functions = "; ".join(map(listed, self.functions))
        return f"functions {functions} under {listed(self.chances)}, n = {self.size}, beta {self.beta}"


BETAS = (Fraction(1, 2), Fraction(9, 10), Fraction(1, 10), Fraction(1, 1000))


def _classes(budget: Budget) -> Iterator[_Class]:
    zero, one = Fraction(0), Fraction(1)
    for points in (1, 2, 3):
        flat = (Fraction(1, points),) * points
        single: Function = (one,) + (zero,) * (points - 1)
        for functions in ((single,), tuple(product((zero, one), repeat=points))):
            yield from (_Class(functions, flat, size, beta) for size in (1, 2, 5) for beta in BETAS)
    unseen = tuple(
        tuple(Fraction(point not in seen) for point in range(6)) for seen in combinations_with_replacement(range(6), 2)
    )
    yield _Class(unseen, (Fraction(1, 6),) * 6, 2, Fraction(95, 100))
    random = Random(21)  # noqa: S311
    for _ in range(budget.pick(quick=60, full=1_500)):
        points = random.randint(1, 4)
        functions = tuple(
            tuple(Fraction(random.randint(0, 6), 6) for _ in range(points)) for _ in range(random.randint(1, 4))
        )
        yield _Class(functions, prior(random, points), random.randint(1, 4), random.choice(BETAS))


def averages_are_near_means(each: _Class) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / n)`` of their means.

    Compared are the probability that some are not, and beta.
    """
    return at_most(each.failure(complexities=2, root=Fraction(1)), each.beta)


def averages_are_nearer_means(each: _Class) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / (2 n))`` of their means.

    The root is the one of Theorem 17, not that of Lemma 21.
    """
    return at_most(each.failure(complexities=2, root=Fraction(1, 2)), each.beta)


def a_class_costs_nothing(each: _Class) -> Comparison:
    """But for probability beta, all averages are within ``sqrt(log(2 / beta) / (2 n))`` of their means."""
    return at_most(each.failure(complexities=0, root=Fraction(1, 2)), each.beta)


def the_class_costs_nothing_at_a_wider_root(each: _Class) -> Comparison:
    """But for probability beta, all averages are within ``sqrt(log(2 / beta) / n)`` of their means."""
    return at_most(each.failure(complexities=0, root=Fraction(1)), each.beta)


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 21",
        hypothesis="functions into [0, 1], independent samples; R is the Rademacher complexity",
        instances=_classes,
        printed=averages_are_near_means,
        false=the_class_costs_nothing_at_a_wider_root,
    ),
    Claim(
        paper="G21",
        number="Lemma 21",
        part="as Theorem 17 uses it",
        hypothesis="functions into [0, 1], independent samples; R is the Rademacher complexity",
        instances=_classes,
        printed=averages_are_nearer_means,
        false=a_class_costs_nothing,
    ),
)
