"""Descent with a biased oracle ([B23], Lemma 15), and mechanisms as defined (Appendix F, Definitions 17 to 23)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, product
from random import Random

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from optrand.baselines.noise import ContinuousStaircase, DiscreteLaplaceNoise, LatticeStaircase
from optrand.closed_forms.debiased import design_debiased_rr
from optrand.mechanism.paths import merge_neighbours
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.b23.predictors import Law, Noise, bins, debiased, response
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.draws import agrees
from optrand.theory.instances import RATIOS, Instance, prior, seeded
from optrand.theory.sums import largest_ratio, total

__all__ = ["Descent", "Place", "Stairs", "Walk", "stairs_are_a_distribution", "tightness"]

WITHOUT_BIAS = Variant("It is at most R sqrt(((L + alpha)^2 + sigma^2) / T).", share=0)


class Descent(Instance, slope="L", root="sqrt((L + bias)^2 + sigma^2)", steps="sqrt(T)", target="c"):
    """Descent of ``L |w - c|`` on ``[0, 1]`` from the end that is farther from `c`; noise is plus or minus `sigma`.

    If `curved`, the loss is ``L (w - c)**2 / 2``; the bias points away from `c` or, if not `away`, up.
    """

    slope: Fraction
    bias: Fraction
    sigma: Fraction
    root: Fraction
    steps: int
    target: Fraction
    curved: bool = False
    away: bool = True

    def loss(self, w: Fraction) -> Fraction:
        """Convex, with slopes of at most `L` on the interval."""
        return self.slope * ((w - self.target) ** 2 / 2 if self.curved else abs(w - self.target))

    def gradient(self, w: Fraction) -> Fraction:
        """Of the loss, with the bias."""
        side = (w > self.target) - (w < self.target)
        return self.slope * (w - self.target if self.curved else side) - self.bias * (side or 1 if self.away else 1)

    @cached_property
    def excess(self) -> Fraction:
        """The expected loss of the mean of all `T` places, over all paths; the least loss is 0."""
        start, step = Fraction(int(2 * self.target <= 1)), 1 / (self.root * self.steps)
        paths: Counter[tuple[Fraction, Fraction]] = Counter({(start, start): 1})
        for _ in range(self.steps**2 - 1):
            before, paths = paths, Counter()
            for ((w, passed), count), noise in product(before.items(), {-self.sigma, self.sigma}):
                moved = min(max(w - step * (self.gradient(w) + noise), Fraction(0)), Fraction(1))
                paths[moved, passed + moved] += count
        return total(self.loss(passed / self.steps**2) * n for (_, passed), n in paths.items()) / paths.total()


def _descents(budget: Budget) -> Iterator[Descent]:
    zero, one = Fraction(0), Fraction(1)
    yield Descent(one, zero, zero, one, 1, zero)
    yield from (Descent(one, 2 * one, zero, 3 * one, steps, zero) for steps in (1, 2, 10, 30))
    random, count = seeded(81), budget.pick(quick=3, full=8)
    # Whole numbers with a**2 + b**2 == c**2, so that the printed step size is a rational.
    triples = ((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17))
    for (whole, sigma, root), curved, away, _ in product(triples, (False, True), (False, True), range(count)):
        bias = Fraction(random.randint(0, 4 * whole - 1), 4)
        steps = random.randint(1, budget.pick(quick=3, full=4) if sigma else 12)
        rest = (Fraction(sigma), Fraction(root), steps, Fraction(random.randint(0, 4), 4))
        yield Descent(whole - bias, bias, *rest, curved=curved, away=away)


@claim(
    "B23 Lemma 15",
    on=_descents,
    given="one dimension, R = 1, harmful biases, two-valued noise",
    sides=("expected excess loss", "bound"),
    false=WITHOUT_BIAS,
)
def descent_comes_near(descent: Descent, share: int = 1) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    return at_most(descent.excess, descent.root / descent.steps + share * descent.bias)


class Walk(Instance, slope="L", time="T"):
    """Descent of ``L |w - c|`` in the ball of diameter 1 around 0, from opposite to `c`, with Gaussian noise."""

    dimensions: int
    slope: float
    bias: float
    sigma: float
    time: int
    runs: int = 200

    @property
    def rate(self) -> float:
        """``R sqrt(((L + alpha)**2 + sigma**2) / T)``; the printed step size is ``R**2 / (T * rate)``."""
        return math.sqrt(((self.slope + self.bias) ** 2 + self.sigma**2) / self.time)

    @cached_property
    def excess(self) -> tuple[float, float]:
        """The mean excess loss of the mean of all places, over runs, and its standard error."""
        rng = np.random.default_rng([82, self.dimensions, self.time])
        target = np.eye(self.dimensions)[0] / 2
        place = np.tile(-target, (self.runs, 1))
        passed = place.copy()
        for _ in range(self.time - 1):
            away = place - target
            direction = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
            noise = rng.normal(0, self.sigma / math.sqrt(self.dimensions), place.shape)
            place = place - ((self.slope - self.bias) * direction + noise) / (self.time * self.rate)
            place /= np.maximum(2 * np.linalg.norm(place, axis=1, keepdims=True), 1)
            passed += place
        losses = self.slope * np.linalg.norm(passed / self.time - target, axis=1)
        return float(losses.mean()), float(losses.std(ddof=1) / math.sqrt(self.runs))


def _walks(budget: Budget) -> Iterator[Walk]:
    times = budget.pick(quick=(1, 25, 400), full=(1, 4, 25, 100, 400, 2_500, 10_000))
    for time, bias, dimensions, sigma in product(times, (0.0, 0.5, 1.5), (1, 3), (0.0, 1.0, 4.0)):
        yield Walk(dimensions, 1.0, bias, sigma, time)


@claim(
    "B23 Lemma 15: simulation",
    on=_walks,
    given="in a ball, harmful biases, 5 standard errors",
    sides=("mean excess loss, less five errors", "bound"),
    false=WITHOUT_BIAS,
)
def walks_come_near(walk: Walk, share: int = 1) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    mean, error = walk.excess
    return at_most(mean - 5 * error, (walk.rate + share * walk.bias) * (1 + 1e-12))


class Place(Instance, bias="alpha", reach="R"):
    """A place on ``[0, R]``, where ``alpha w / 2`` and ``-alpha w / 2`` are to be made small."""

    bias: Fraction
    reach: Fraction
    w: Fraction


def _places(budget: Budget) -> Iterator[Place]:
    random = seeded(82)
    yield from (Place(Fraction(1), Fraction(1), Fraction(i, 4)) for i in range(5))
    for _ in range(budget.pick(quick=100, full=2_000)):
        reach = Fraction(random.randint(1, 50), 7)
        yield Place(Fraction(random.randint(1, 50), 3), reach, reach * Fraction(random.randint(0, 100), 100))


@claim(
    "B23 Lemma 15: tightness",
    kind="text",
    on=_places,
    given="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
    sides=("alpha R / 4, or as the form has it", "excess loss"),
    corrected=Variant("Anywhere the larger of the two excess losses is at least alpha R / 4.", which=max),
    false=Variant("Anywhere the larger of the two excess losses is at least 3 alpha R / 8.", which=max, eighths=3),
)
def tightness(place: Place, which: Callable[..., Fraction] = min, eighths: int = 2) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    excess = which(place.w, place.reach - place.w) * place.bias / 2
    return at_most(eighths * place.bias * place.reach / 8, excess)


FLOATS = 1e-11
"""What the package's densities, in floats, are forgiven."""


class Query(Instance, kind=""):
    """Answers of a query on two datasets, whose distance is its sensitivity, and noise for each coordinate."""

    kind: type[Laplace] | type[DiscreteLaplace]
    answer: tuple[int, ...]
    other: tuple[int, ...]
    epsilon: float

    def hides(self, norm: Callable[[Iterable[int]], int]) -> Comparison:
        """Noise for a sensitivity so measured is epsilon-DP: densities at both answers, between and beyond them."""
        apart = norm(abs(a - b) for a, b in zip(self.answer, self.other, strict=True))
        noise, ratio = self.kind([0, apart], self.epsilon).noise, 1.0
        for a, b in zip(self.answer, self.other, strict=True):
            places = np.arange(2 * min(a, b) - 6, 2 * max(a, b) + 7)[:: 2 if self.kind is DiscreteLaplace else 1] / 2
            ratio *= float((noise.density(places - a) / noise.density(places - b)).max())
        return at_most(ratio, math.exp(self.epsilon), tolerance=FLOATS)


def _queries(kind: type[Laplace] | type[DiscreteLaplace], budget: Budget) -> Iterator[Query]:
    random = seeded(63)
    yield from (Query(kind, answer, (0, 0), 1.0) for answer in ((1, 0), (1, 1), (2, -1)))
    for _ in range(budget.pick(quick=60, full=1_000)):
        answer, other = (tuple(random.randint(-9, 9) for _ in range(3)) for _ in range(2))
        if answer != other:
            yield Query(kind, answer, other, random.randint(1, 80) / 10)


BY_MAXIMUM = Variant("The same with the largest change of a coordinate.", norm=max)
VECTORS = "two or three coordinates; densities of the package"


@claim(
    "B23 Definition 17",
    on=partial(_queries, DiscreteLaplace),
    given=VECTORS,
    sides=("largest ratio of densities", "exp(epsilon)"),
    false=BY_MAXIMUM,
)
def discrete_laplace_hides(query: Query, norm: Callable[[Iterable[int]], int] = sum) -> Comparison:
    """Discrete Laplace noise of scale sensitivity over epsilon makes a vector of integers epsilon-DP.

    The sensitivity is the sum of the changes of all coordinates.
    """
    return query.hides(norm)


@claim(
    "B23 Definition 18",
    on=partial(_queries, Laplace),
    given=VECTORS,
    sides=("largest ratio of densities", "exp(epsilon)"),
    false=BY_MAXIMUM,
)
def laplace_hides(query: Query, norm: Callable[[Iterable[int]], int] = sum) -> Comparison:
    """Laplace noise of scale sensitivity over epsilon makes a vector epsilon-DP, by the sum of all changes."""
    return query.hides(norm)


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
        epsilon, length = math.log1p(float(self.ratio - 1)), float(self.length)
        lattice = LatticeStaircase(epsilon, int(self.length), int(self.jump))
        noise = lattice if self.whole else ContinuousStaircase(epsilon, length, float(self.jump / self.length))
        computed = noise.density(np.array([float(x) for x in places])).tolist()
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
    "B23 Definition 19",
    on=_discrete,
    given="any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b, not defined, is exp(-epsilon)",
    sides=("total, largest ratio, or a probability by the package", "1, exp(epsilon), or the probability as printed"),
    false=Variant("It is epsilon-DP on a query of sensitivity Delta + 1.", lambda s: s.holds(s.length + 1)),
)
def stairs_are_a_distribution(stairs: Stairs) -> Comparison:
    """The discrete staircase sums to 1 and is epsilon-DP on a query of sensitivity Delta."""
    return stairs.holds(stairs.length)


@claim(
    "B23 Definition 20",
    on=_continuous,
    given="any Delta above 0, gamma strictly between 0 and 1, any epsilon above 0",
    sides=("total, largest ratio, or a density by the package", "1, exp(epsilon), or the density as printed"),
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


def _drawn(budget: Budget) -> Iterator[Drawn]:
    yield from (Drawn(1, None, 1), Drawn(3, 2, 1), Drawn(2, 1, 2))
    yield from budget.pick(quick=(), full=(Drawn(2, None, 1), Drawn(4, 2, 3), Drawn(3, 3, 1)))


@claim(
    "B23 Appendix F: drawn",
    kind="ours",
    on=_drawn,
    given="discrete Laplace and staircase noise of the package; all sequences of 12 random bits",
    sides=("probability, or its least value by the bits drawn", "its largest value by the bits drawn, or probability"),
    false=Variant("The same with a zero that comes up with both signs.", zeros=2),
)
def drawn_as_defined(each: Drawn, zeros: int = 1) -> Comparison:
    """Noise in integers is drawn with the probabilities of its definition, as far as the bits decide it."""
    noise: DiscreteLaplaceNoise | LatticeStaircase = DiscreteLaplaceNoise(each.epsilon / each.length)
    sample = DiscreteLaplace([0, each.length], each.epsilon).sample
    if each.rise is not None:
        noise = LatticeStaircase(each.epsilon, each.length, each.rise)
        sample = DiscreteStaircase([0, each.length], each.epsilon, rise=each.rise).sample
    whole = 1 + (zeros - 1) * noise.atom

    def chance(x: int) -> float:
        return float(noise.density(np.array([x]))[0]) * (1 if x else zeros) / whole

    return agrees(lambda bits: int(sample(0, source=bits)), chance, 12)


DRAWS = 4_000


@claim(
    "B23 Appendix F: drawn in floats",
    kind="ours",
    on=_continuous,
    given=f"continuous staircase noise of the package; {DRAWS} seeded draws",
    sides=("distance of a frequency from its probability", "five standard errors"),
    false=Variant("The same with levels as likely as they are long.", level=False),
)
def drawn_in_floats_as_defined(stairs: Stairs, level: bool = True) -> Comparison:
    """Staircase noise is beyond its first stair, and on upper levels, as often as defined: five standard errors."""
    length, share, b = float(stairs.length), float(stairs.jump / stairs.length), float(1 / stairs.ratio)
    kind = Staircase([0, length], math.log1p(float(stairs.ratio - 1)), gamma=share)
    sizes = np.abs(kind.sample(np.zeros(DRAWS), source=SeededEntropy(5))) / length
    upper = share / (share + (b if level else 1.0) * (1 - share))
    sides = ((np.mean(sizes >= 1), b), (np.mean(sizes % 1 < share), upper))
    return worst(*(at_most(abs(float(seen) - p), 5 * math.sqrt(p * (1 - p) / DRAWS)) for seen, p in sides))


MORE = Variant("The same with one more for the number of labels, or bins.", less=0)
EXACT = "any epsilon above 0; the released table of the package, exactly"


def _answers(release: Callable[[Noise], Law], _: Budget) -> Iterator[Noise]:
    random = seeded(64)
    for epsilon, k in product((0.5, 1.0, 1e-3, 5.0), (2, 3, 5, 9)):
        yield Noise(tuple(sorted(random.sample(range(1, 40), k))), prior(random, k), epsilon, release)


@claim(
    "B23 Definition 21",
    on=partial(_answers, response),
    given=f"labels of any number; {EXACT}",
    sides=("probability of an answer, or the largest ratio", "probability as printed, or exp(epsilon)"),
    false=MORE,
)
def answers_as_defined(noise: Noise, less: int = 1) -> Comparison:
    """Randomized response says the label with probability exp(epsilon) / (exp(epsilon) + q - 1), and is epsilon-DP."""
    outputs, rows = noise.law
    rise, count = math.exp(noise.epsilon), len(outputs)
    own, other = (float(side) / (rise + count - less) for side in (rise, 1))
    at = [max(range(count), key=row.__getitem__) for row in rows]
    printed = ([own if i == here else other for i in range(count)] for here in at)
    pairs = zip(chain(*rows), chain(*printed), strict=True)
    said = (equal(float(p), chance, tolerance=FLOATS) for p, chance in pairs)
    return worst(*said, at_most(largest_ratio(rows), exp_bracket(noise.epsilon)[0]))


@claim(
    "B23 Definition 22",
    on=partial(_answers, bins),
    given=f"the best bins under some prior; {EXACT}",
    sides=("probability of an answer, or the largest ratio", "probability as printed, or exp(epsilon)"),
    false=MORE,
)
def bins_as_defined(noise: Noise, less: int = 1) -> Comparison:
    """Randomized response on bins says the own bin with probability exp(epsilon) / (exp(epsilon) + |bins| - 1)."""
    return answers_as_defined(noise, less=less)


@claim(
    "B23 Definition 23",
    on=partial(_answers, debiased),
    given=f"two labels or more; {EXACT}",
    sides=("output of the package, or the largest ratio", "output as printed, or exp(epsilon)"),
    false=MORE,
)
def response_is_debiased(noise: Noise, less: int = 1) -> Comparison:
    """With outputs ((exp(epsilon) + k - 1) y - sum) / (exp(epsilon) - 1) it is unbiased and epsilon-DP."""
    k, rise = len(noise.labels), math.exp(noise.epsilon)
    made = optrand.debiased_rr(noise.labels, noise.epsilon)
    designed = design_debiased_rr(noise.labels, noise.epsilon)
    outputs = [((rise + k - less) * y - sum(noise.labels)) / math.expm1(noise.epsilon) for y in noise.labels]
    given, span = (designed.randomizer.outputs, merge_neighbours(made)[0]), outputs[-1] - outputs[0]
    pairs = (pair for each in given for pair in zip(each.tolist(), outputs, strict=True))
    private = at_most(made.realised_ratio, exp_bracket(noise.epsilon)[0])
    unbiased = none(sum(map(bool, made.exact_biases)))
    return worst(private, unbiased, *(equal(*pair, tolerance=FLOATS, scale=span) for pair in pairs))
