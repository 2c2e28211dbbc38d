"""Mechanisms as defined ([B23], Appendix F, Definitions 17 to 23), those of the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from optrand.baselines.noise import ContinuousStaircase, DiscreteLaplaceNoise, LatticeStaircase
from optrand.sampling.entropy import EntropySource, SeededEntropy
from optrand.theory.b23.predictors import Law, Noise, bins, debiased, response
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.draws import drawn
from optrand.theory.instances import RATIOS, Instance, prior, seeded
from optrand.theory.sums import total

__all__ = ["Stairs", "stairs_are_a_distribution"]

FLOATS = 1e-11
"""What the package's densities, in floats, are forgiven."""


class Query(Instance, kind=""):
    """Answers of a query on two datasets, whose distance is its sensitivity, and noise for each coordinate."""

    kind: type[Laplace] | type[DiscreteLaplace]
    answer: tuple[int, ...]
    other: tuple[int, ...]
    epsilon: float

    def largest_ratio(self, sensitivity: int) -> float:
        """Of densities of the noisy answers, coordinate by coordinate: at both answers, between and beyond them."""
        noise = self.kind([0, sensitivity], self.epsilon).noise
        ratio = 1.0
        for a, b in zip(self.answer, self.other, strict=True):
            places = np.arange(2 * min(a, b) - 6, 2 * max(a, b) + 7)[:: 2 if self.kind is DiscreteLaplace else 1] / 2
            ratio *= float((noise.density(places - a) / noise.density(places - b)).max())
        return ratio

    def hides(self, norm: Callable[[Iterable[int]], int]) -> Comparison:
        """That noise for a sensitivity so measured is epsilon-DP."""
        apart = norm(abs(a - b) for a, b in zip(self.answer, self.other, strict=True))
        return at_most(self.largest_ratio(apart), math.exp(self.epsilon), tolerance=FLOATS)


def _queries(kind: type[Laplace] | type[DiscreteLaplace], budget: Budget) -> Iterator[Query]:
    random = seeded(63)
    yield from (Query(kind, answer, (0, 0), 1.0) for answer in ((1, 0), (1, 1), (2, -1)))
    for _ in range(budget.pick(quick=60, full=1_000)):
        answer, other = (tuple(random.randint(-9, 9) for _ in range(3)) for _ in range(2))
        if answer != other:
            yield Query(kind, answer, other, random.randint(1, 80) / 10)


@claim(
    "B23",
    "Definition 17",
    on=lambda budget: _queries(DiscreteLaplace, budget),
    given="two or three coordinates; densities of the package",
    false=Variant("The same with the largest change of a coordinate.", lambda query: query.hides(max)),
)
def discrete_laplace_hides(query: Query) -> Comparison:
    """Discrete Laplace noise of scale sensitivity over epsilon makes a vector of integers epsilon-DP.

    The sensitivity is the sum of the changes of all coordinates.
    """
    return query.hides(sum)


@claim(
    "B23",
    "Definition 18",
    on=lambda budget: _queries(Laplace, budget),
    given="two or three coordinates; densities of the package",
    false=Variant("The same with the largest change of a coordinate.", lambda query: query.hides(max)),
)
def laplace_hides(query: Query) -> Comparison:
    """Laplace noise of scale sensitivity over epsilon makes a vector epsilon-DP, by the sum of all changes."""
    return query.hides(sum)


class Stairs(Instance, length="Delta", jump="upper level up to", whole="in integers"):
    """The staircase: two levels on each stair of length `length`, the upper one as far as the jump."""

    length: Fraction
    jump: Fraction
    ratio: Fraction
    whole: bool

    def level(self, x: Fraction) -> int:
        """How many factors `b` the density is below its height."""
        return int(abs(x) // self.length) + (abs(x) % self.length >= self.jump)

    def density(self, x: Fraction) -> Fraction:
        """By the definition, with ``b = 1/E``; in integers the probability."""
        b = 1 / self.ratio
        height = (1 - b) / (2 * self.jump + 2 * b * (self.length - self.jump) - (1 - b) * self.whole)
        return height * b ** self.level(x)

    @property
    def total(self) -> Fraction:
        """The sum or the integral: both sides, each a geometric series of stairs; of integers 0 counts once."""
        if self.whole:
            stair = total(self.density(Fraction(i)) for i in range(int(self.length)))
        else:
            stair = self.density(Fraction(0)) * self.jump + self.density(self.jump) * (self.length - self.jump)
        return 2 * stair / (1 - 1 / self.ratio) - self.density(Fraction(0)) * self.whole

    @property
    def noise(self) -> LatticeStaircase | ContinuousStaircase:
        """The package's."""
        epsilon = math.log1p(float(self.ratio - 1))
        if self.whole:
            return LatticeStaircase(epsilon, int(self.length), int(self.jump))
        return ContinuousStaircase(epsilon, float(self.length), float(self.jump / self.length))

    def largest_ratio(self, reach: Fraction) -> Fraction:
        """Of densities at most `reach` apart: at integers near 0, or at and beside the steps near it."""
        jumps = [side * (i * self.length + part) for i in range(2) for part in (0, self.jump) for side in (-1, 1)]
        beside = min(self.jump, self.length - self.jump) / 8
        near = map(Fraction, range(-2 * int(self.length) - 1, 2 * int(self.length) + 2))
        places = set(near) if self.whole else {jump + side for jump in jumps for side in (-beside, 0, beside)}
        levels = {x: self.level(x) for place in places for x in (place, place - reach, place + reach)}
        most: int = max(levels[y] - levels[x] for x in places for y in levels if abs(x - y) <= reach)
        return self.ratio**most

    def holds(self, reach: Fraction) -> Comparison:
        """That it is a distribution, epsilon-DP for such distances, and the package's."""
        places = [Fraction(i) if self.whole else self.length * Fraction(125 * i + 1, 1_000) for i in range(20)]
        computed = self.noise.density(np.array([float(x) for x in places])).tolist()
        alike = (equal(p, float(self.density(x)), tolerance=FLOATS) for p, x in zip(computed, places, strict=True))
        return worst(equal(self.total, 1), at_most(self.largest_ratio(reach), self.ratio), *alike)


def _ratio(random: Random) -> Fraction:
    return 1 + Fraction(random.randint(1, 99), random.choice((1, 10, 100)))


def _discrete(budget: Budget) -> Iterator[Stairs]:
    random = seeded(61)
    first = ((length, rise, ratio) for ratio in RATIOS for length in (1, 2, 3) for rise in range(1, length + 1))
    lengths = [random.randint(2, budget.pick(quick=10, full=30)) for _ in range(budget.pick(quick=40, full=600))]
    for length, rise, ratio in (*first, *((n, random.randint(1, n), _ratio(random)) for n in lengths)):
        yield Stairs(Fraction(length), Fraction(rise), ratio, whole=True)


def _continuous(budget: Budget) -> Iterator[Stairs]:
    random = seeded(62)
    yield from (Stairs(Fraction(1), Fraction(1, 2), ratio, whole=False) for ratio in RATIOS)
    for _ in range(budget.pick(quick=12, full=600)):
        length = Fraction(random.randint(1, 50), random.choice((1, 7)))
        yield Stairs(length, length * Fraction(random.randint(1, 19), 20), _ratio(random), whole=False)


@claim(
    "B23",
    "Definition 19",
    on=_discrete,
    given="any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b, not defined, is exp(-epsilon)",
    false=Variant("It is epsilon-DP on a query of sensitivity Delta + 1.", lambda s: s.holds(s.length + 1)),
)
def stairs_are_a_distribution(stairs: Stairs) -> Comparison:
    """The discrete staircase sums to 1 and is epsilon-DP on a query of sensitivity Delta."""
    return stairs.holds(stairs.length)


@claim(
    "B23",
    "Definition 20",
    on=_continuous,
    given="any Delta above 0, gamma strictly between 0 and 1, any epsilon above 0",
    false=Variant("It is epsilon-DP on one of 9/8 of Delta.", lambda s: s.holds(s.length * Fraction(9, 8))),
)
def steps_are_a_density(stairs: Stairs) -> Comparison:
    """The continuous staircase integrates to 1 and is epsilon-DP on a query of sensitivity Delta."""
    return stairs.holds(stairs.length)


class Drawn(Instance, rise="r", length="Delta"):
    """Noise in integers, staircase noise or, without `rise`, discrete Laplace noise."""

    length: int
    rise: int | None
    epsilon: int

    def draw(self, bits: EntropySource) -> int:
        """One draw of the package."""
        if self.rise is None:
            return int(DiscreteLaplace([0, self.length], self.epsilon).sample(0, source=bits))
        return int(DiscreteStaircase([0, self.length], self.epsilon, rise=self.rise).sample(0, source=bits))

    @cached_property
    def noise(self) -> DiscreteLaplaceNoise | LatticeStaircase:
        """Its probabilities."""
        if self.rise is None:
            return DiscreteLaplaceNoise(self.epsilon / self.length)
        return LatticeStaircase(self.epsilon, self.length, self.rise)


def _drawn(budget: Budget) -> Iterator[Drawn]:
    yield from (Drawn(1, None, 1), Drawn(3, 2, 1), Drawn(2, 1, 2))
    yield from budget.pick(quick=(), full=(Drawn(2, None, 1), Drawn(4, 2, 3), Drawn(3, 3, 1)))


@claim(
    "B23",
    "Appendix F: drawn",
    kind="ours",
    on=_drawn,
    given="discrete Laplace and staircase noise of the package; all sequences of 12 random bits",
    false=Variant("The same with a zero that comes up with both signs.", zeros=2),
)
def drawn_as_defined(each: Drawn, zeros: int = 1) -> Comparison:
    """Noise in integers is drawn with the probabilities of its definition, as far as the bits decide it."""
    law, rest = drawn(each.draw, 12)
    whole = 1 + (zeros - 1) * each.noise.atom
    chances = {x: float(each.noise.density(np.array([x]))[0]) * (1 if x else zeros) / whole for x in law}
    pairs = ((float(law[x]), chances[x], float(law[x] + rest)) for x in law)
    return worst(*(worst(at_most(low, p), at_most(p, high)) for low, p, high in pairs))


DRAWS = 4_000


@claim(
    "B23",
    "Appendix F: drawn in floats",
    kind="ours",
    on=_continuous,
    given=f"continuous staircase noise of the package; {DRAWS} seeded draws",
    false=Variant("The same with levels as likely as they are long.", level=False),
)
def drawn_in_floats_as_defined(stairs: Stairs, level: bool = True) -> Comparison:
    """Staircase noise is beyond its first stair, and on upper levels, as often as defined: five standard errors."""
    length, share = float(stairs.length), float(stairs.jump / stairs.length)
    kind = Staircase([0, length], math.log1p(float(stairs.ratio - 1)), gamma=share)
    sizes = np.abs(kind.sample(np.zeros(DRAWS), source=SeededEntropy(5))) / length
    b = float(1 / stairs.ratio) if level else 1.0
    sides = (
        (np.mean(sizes >= 1), float(1 / stairs.ratio)),
        (np.mean(sizes % 1 < share), share / (share + b * (1 - share))),
    )
    return worst(*(at_most(abs(float(seen) - p), 5 * math.sqrt(p * (1 - p) / DRAWS)) for seen, p in sides))


def _answers(release: Callable[[Noise], Law]) -> Iterator[Noise]:
    random = seeded(64)
    for epsilon in (0.5, 1.0, 1e-3, 5.0):
        for k in (2, 3, 5, 9):
            yield Noise(tuple(sorted(random.sample(range(1, 40), k))), prior(random, k), epsilon, release)


@claim(
    "B23",
    "Definition 21",
    on=lambda _: _answers(response),
    given="labels of any number; the released table of the package, exactly",
    false=Variant("The same with q for q - 1.", less=0),
)
def answers_as_defined(noise: Noise, less: int = 1) -> Comparison:
    """Randomized response says the label with probability exp(epsilon) / (exp(epsilon) + q - 1), and is epsilon-DP.

    There are q outputs; each other one has probability 1 / (exp(epsilon) + q - 1).
    """
    return _answers_alike(noise, less)


def _answers_alike(noise: Noise, less: int) -> Comparison:
    outputs, rows = noise.law
    rise, count = math.exp(noise.epsilon), len(outputs)
    own, other = (float(side) / (rise + count - less) for side in (rise, 1))
    at = [max(range(count), key=row.__getitem__) for row in rows]
    said = [
        equal(float(p), own if i == here else other, tolerance=FLOATS)
        for row, here in zip(rows, at, strict=True)
        for i, p in enumerate(row)
    ]
    ratio = max(max(column) / min(column) for column in zip(*rows, strict=True))
    return worst(*said, at_most(ratio, exp_bracket(noise.epsilon)[0]))


@claim(
    "B23",
    "Definition 22",
    on=lambda _: _answers(bins),
    given="the best bins of the package under some prior; its released table, exactly",
    false=Variant("The same with the number of bins for that less 1.", less=0),
)
def bins_as_defined(noise: Noise, less: int = 1) -> Comparison:
    """Randomized response on bins says the own bin with probability exp(epsilon) / (exp(epsilon) + |bins| - 1).

    Each other one has probability 1 / (exp(epsilon) + |bins| - 1), and all is epsilon-DP.
    """
    return _answers_alike(noise, less)


@claim(
    "B23",
    "Definition 23",
    on=lambda _: _answers(debiased),
    given="at least two labels, any epsilon above 0; the released table of the package, exactly",
    false=Variant("The same with k for k - 1.", less=0),
)
def response_is_debiased(noise: Noise, less: int = 1) -> Comparison:
    """With outputs ((exp(epsilon) + k - 1) y - sum) / (exp(epsilon) - 1) it is unbiased and epsilon-DP."""
    k, rise = len(noise.labels), math.exp(noise.epsilon)
    solution = optrand.debiased_rr(noise.labels, noise.epsilon)
    made = optrand.tabulate(solution)
    outputs = [((rise + k - less) * y - sum(noise.labels)) / math.expm1(noise.epsilon) for y in noise.labels]
    span = outputs[-1] - outputs[0]
    near = (
        equal(*pair, tolerance=FLOATS, scale=span)
        for given in (solution.randomizer, made.design)
        for pair in zip(given.outputs.tolist(), outputs, strict=True)
    )
    private = at_most(made.realised_ratio, exp_bracket(noise.epsilon)[0])
    return worst(*near, private, at_most(float(max(map(abs, made.exact_biases))), FLOATS))
