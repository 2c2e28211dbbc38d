"""Deviation of averages over a class of functions, and of noisy empirical risks ([G21], Theorem 17, Lemmas 20 to 22).

Finite classes and distributions: samples, up to their order, and random signs are enumerated, in fractions. Theorem 17
takes Lemma 21 for functions into [0, 1], an interval that debiased losses leave; so its deviation term is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, combinations_with_replacement, product

import numpy as np

from optrand.base.arithmetic import log_bracket
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.debiased import TopK
from optrand.theory.g21.response import ROUNDING, Table
from optrand.theory.instances import RATIOS, Instance, prior, seeded, shares
from optrand.theory.sums import times, total

__all__ = ["exceeded", "log_term", "rademacher", "samples"]

Function = tuple[Fraction, ...]
"""A function on finitely many points: its values."""

Deviations = Iterable[tuple[Fraction, Fraction]]
"""Pairs of a deviation and its probability."""


def samples(chances: Sequence[Fraction], size: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every independent sample up to its order, as how often each point occurs, and its probability."""
    for points in combinations_with_replacement(range(len(chances)), size):
        counts = tuple(map(points.count, range(len(chances))))
        orders = math.factorial(size) // math.prod(map(math.factorial, counts))
        if chance := orders * times(map(pow, chances, counts)):
            yield counts, chance


def rademacher(functions: Sequence[Function] | Table, chances: Sequence[Fraction], size: int) -> Fraction:
    """Rademacher complexity of a class, equations 20 and 21, for samples of a size."""
    return total(chance * correlation(functions, counts) for counts, chance in samples(chances, size))


def correlation(functions: Sequence[Function] | Table, counts: Sequence[int]) -> Fraction:
    """Equation 20. Points that occur more than once share their sum of signs, whose weights are binomial."""
    found, table = Fraction(0), np.array(functions)
    for ups in product(*(range(count + 1) for count in counts)):
        found += math.prod(map(math.comb, counts, ups)) * max(table @ (2 * np.array(ups) - counts))
    return found / (sum(counts) << sum(counts))


def exceeded(deviations: Deviations, offset: Fraction, squared: Fraction) -> Fraction:
    """Probability of a deviation above ``offset + sqrt(squared)``."""
    return total(chance for off, chance in deviations if off > offset and (off - offset) ** 2 > squared)


def log_term(beta: Fraction, size: Fraction | int) -> Fraction:
    """``log(2 / beta) / (2 size)``, or hardly less."""
    return log_bracket(2 / beta)[0] / (2 * size)


HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
BETAS = (HALF, Fraction(9, 10), TENTH, Fraction(1, 1000))


class Learning(Instance, steepness="L", joint="chances", size="n"):
    """Functions, losses ``L abs(f(x) - c)`` up to 1, chances of features and labels, and what the package releases."""

    functions: tuple[Function, ...]
    centres: tuple[Function, ...]
    steepness: Fraction
    joint: tuple[Function, ...]
    responses: tuple[TopK, ...]
    size: int
    beta: Fraction

    @cached_property
    def losses(self) -> Table:
        """Losses of functions, at features, under labels."""
        losses = self.steepness * abs(np.array(self.functions)[:, :, np.newaxis] - np.array(self.centres))
        losses[losses > 1] = Fraction(1)
        return np.array(losses)

    @cached_property
    def risks(self) -> Table:
        """Mean loss of each function on true labels."""
        risks: Table = (self.losses * np.array(self.joint)).sum(axis=(1, 2))
        return risks

    @cached_property
    def released(self) -> Function:
        """Chances of features and released labels, feature by feature."""
        pairs = zip(self.joint, self.responses, strict=True)
        return tuple(chain(*((chances @ np.array(each.tabulated))[list(each.kept)] for chances, each in pairs)))

    @cached_property
    def debiased(self) -> Table:
        """Debiased losses on these, a row a function."""
        features = enumerate(self.responses)
        return np.hstack([self.losses[:, x] @ each.weights().T for x, each in features])

    @cached_property
    def noisy(self) -> list[tuple[Table, Fraction]]:
        """Noisy empirical risks of the functions, with probabilities."""
        return [(self.debiased @ counts / self.size, p) for counts, p in samples(self.released, self.size)]

    @cached_property
    def complexity(self) -> Fraction:
        """Rademacher complexity ``R`` of the functions."""
        return rademacher(self.functions, list(map(total, self.joint)), self.size)

    @cached_property
    def outside(self) -> Fraction:
        """Probability of a label that is not kept."""
        return 1 - total(p[y] for p, each in zip(self.joint, self.responses, strict=True) for y in each.kept)

    def near(self, off: Deviations, *, spread: bool, outside: int = 1, times: int = 1) -> Comparison:
        """How often deviations exceed `times` the bound of Theorem 17, its root with a factor or without, and beta."""
        response = self.responses[0]
        offset = 2 * self.steepness * response.slope() * self.complexity + outside * self.outside
        squared = (times * (response.spread if spread else 1)) ** 2 * log_term(self.beta, self.size)
        return at_most(exceeded(off, times * offset, squared), self.beta)


def _one_feature(response: TopK, label: int, size: int, beta: Fraction, functions: Sequence[int] = (0,)) -> Learning:
    """Constant functions on one feature, which always has the same label; that label alone is lost by 0, by 1."""
    only = tuple(Fraction(y == label) for y in range(response.size))
    constants = tuple((Fraction(each),) for each in functions)
    return Learning(constants, (only,), Fraction(1), (only,), (response,), size, beta)


def _settings(budget: Budget) -> Iterator[Learning]:
    sizes = (1, HALF), (2, Fraction(9, 10)), (1, TENTH), (4, TENTH)
    for (labels, k), ratio, size in product(((2, 2), (2, 1), (3, 3), (3, 2), (1, 1)), RATIOS[:-1], sizes):
        yield from (_one_feature(TopK(shares([1] * labels), ratio, k), y, *size) for y in range(labels))
    for n in budget.pick(quick=(100,), full=(100, 400)):
        yield _one_feature(TopK((HALF, HALF), Fraction(272, 100), 2), 1, n, TENTH)
    yield from _randomly(budget, 18)


def _randomly(budget: Budget, seed: int) -> Iterator[Learning]:
    random = seeded(seed)

    def predictions(count: int) -> Function:
        return tuple(Fraction(random.randint(0, 4), 4) for _ in range(count))

    for _ in range(budget.pick(quick=60, full=1_500)):
        features, labels = random.randint(1, 2), random.randint(2, 3)
        joint = prior(random, features * labels)
        k, ratio = random.randint(1, labels), 1 + Fraction(random.randint(1, 300), 10 ** random.randint(0, 2))
        yield Learning(
            functions=tuple(predictions(features) for _ in range(random.randint(1, 4))),
            centres=tuple(predictions(labels) for _ in range(features)),
            steepness=Fraction(random.randint(1, 6), 4),
            joint=tuple(joint[x * labels : (x + 1) * labels] for x in range(features)),
            responses=tuple(TopK(prior(random, labels), ratio, k) for _ in range(features)),
            size=random.randint(1, 4),
            beta=random.choice((HALF, Fraction(9, 10), TENTH)),
        )


FINITE = "losses in [0, 1], L-Lipschitz in the prediction; finite classes and finitely many features"
of_theorem_17 = partial(claim, "G21", given=FINITE)
SPREAD = Variant("The same with ``(1 + (k - 2) p) / (1 - k p)`` times the root: the range of the losses.", spread=True)
INSIDE = Variant("The same with that factor, without the probability of other labels.", spread=True, outside=0)
FACTOR = Variant("The same with the factor of Theorem 17 as corrected.", spread=True)
ONCE = Variant("They lose at most that bound itself, as corrected.", spread=True, times=1)
LESS_STEEP = Variant("The same with ``L / (1 - k p)``.", others=0)
SMALLER = Variant("The same with ``1 - p`` times that chance.", lost=1)


@of_theorem_17(
    "Theorem 17", on=_settings, sides=("probability of a larger deviation", "beta"), corrected=SPREAD, false=INSIDE
)
def noisy_risks_are_near_risks(learning: Learning, spread: bool = False, outside: int = 1) -> Comparison:
    """All noisy empirical risks are near the risks: within ``2 slope R + sqrt(log(2 / beta) / (2 n)) + outside``.

    But for probability beta; ``slope = L (1 + k p) / (1 - k p)``, and ``outside`` is the probability of a label that is
    not kept.
    """
    off = ((max(abs(noisy - learning.risks)), p) for noisy, p in learning.noisy)
    return learning.near(off, spread=spread, outside=outside)


def _minimizers(budget: Budget) -> Iterator[Learning]:
    """Two functions of which noise makes the worse one look better, or strangers do; then random classes."""
    zero, one = Fraction(0), Fraction(1)
    ends = ((zero,), (one,))
    both = TopK((HALF, HALF), Fraction(2), 2)
    yield Learning(ends, ((zero, one),), one, ((HALF, HALF),), (both,), 2, HALF)
    rare = Fraction(1, 100)
    yield Learning(ends, ((zero, one),), one, ((1 - rare, rare),), (both,), 200, Fraction(1, 10**7))
    first = TopK((Fraction(2, 3), Fraction(1, 3)), Fraction(3000), 1)
    joint = ((zero, Fraction(3, 5)), (Fraction(2, 5), zero))
    yield Learning(((zero, one), (one, zero)), ((zero, one),) * 2, one, joint, (first, first), 24, HALF)
    yield from _randomly(budget, 27)


@of_theorem_17(
    "Theorem 17: empirical risk minimizer",
    kind="text",
    on=_minimizers,
    sides=("probability that more is lost", "beta"),
    corrected=FACTOR,
    false=ONCE,
)
def minimizers_lose_twice_the_bound(learning: Learning, spread: bool = False, times: int = 2) -> Comparison:
    """But for probability beta, minimizers of the noisy empirical risk lose at most twice the bound of Theorem 17."""
    lost = learning.risks - min(learning.risks)
    chosen = ((max(lost[noisy == min(noisy)]), p) for noisy, p in learning.noisy)
    return learning.near(chosen, spread=spread, times=times)


def _small(budget: Budget) -> Iterator[Learning]:
    plain = _one_feature(TopK((HALF, HALF), Fraction(3), 2), 1, 1, HALF, (0, 1))
    yield from (plain, replace(plain, size=3), replace(plain, steepness=Fraction(2)))
    yield _one_feature(TopK(shares([1] * 3), Fraction(10), 3), 0, 1, HALF, (0, 1))
    yield from _randomly(budget, 26)


@of_theorem_17(
    "Theorem 17: equation 25",
    kind="text",
    on=_small,
    sides=("Rademacher complexity of the debiased losses", "bound"),
    false=LESS_STEEP,
)
def debiased_losses_are_hardly_more_complex(learning: Learning, others: int = 1) -> Comparison:
    """Debiased losses on released labels are at most ``L (1 + k p) / (1 - k p)`` times as complex as the functions."""
    found = rademacher(learning.debiased, learning.released, learning.size)
    slope = learning.steepness * learning.responses[0].slope(others)
    return at_most(found, slope * learning.complexity, tolerance=ROUNDING)


@claim(
    "G21 Lemma 20",
    on=_settings,
    given="losses in [0, 1]; any function, any distribution",
    sides=("distance of the two risks", "bound"),
    false=SMALLER,
)
def only_other_labels_cost(learning: Learning, lost: int = 0) -> Comparison:
    """The risk of the debiased loss on released labels is off by at most the chance of a label that is not kept."""
    response, error = learning.responses[0], max(abs(learning.risks - learning.debiased @ learning.released))
    most = (1 - lost * response.other) * learning.outside
    return Comparison(error, most, tolerance=ROUNDING, scale=response.spread)


class Class(Instance, size="n"):
    """Functions into [0, 1] on a few points, samples of a size, and a probability of failure."""

    functions: tuple[Function, ...]
    chances: Function
    size: int
    beta: Fraction

    @cached_property
    def deviations(self) -> Deviations:
        """How far averages are off, of the worst function, with probabilities."""
        functions, chances = np.array(self.functions), np.array(self.chances)
        drawn = samples(self.chances, self.size)
        return [(max(abs(functions @ (Fraction(1, self.size) * np.array(n) - chances))), p) for n, p in drawn]


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
SIMPLE = Variant("The same without ``2 R``.", complexities=0)
of_averages = partial(claim, "G21", on=_classes, given=SAMPLES, false=SIMPLE)
ABSOLUTE = Variant("The same with the largest absolute correlation on both sides.", absolute=True)


@of_averages("Lemma 21", sides=("probability of a larger deviation", "beta"))
def averages_are_near_means(each: Class, complexities: int = 2, root: int = 2) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / n)`` of their means."""
    offset = complexities * rademacher(each.functions, each.chances, each.size)
    return at_most(exceeded(each.deviations, offset, root * log_term(each.beta, each.size)), each.beta)


@of_averages("Lemma 21: as Theorem 17 uses it", sides=("probability of a larger deviation", "beta"), kind="ours")
def averages_are_nearer_means(each: Class, complexities: int = 2) -> Comparison:
    """But for probability beta, all averages are within ``2 R + sqrt(log(2 / beta) / (2 n))`` of their means."""
    return averages_are_near_means(each, complexities=complexities, root=1)


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

    def curved(self, values: Function) -> Function:
        """Values through the curves."""
        points = zip(self.curves, values, self.centres, strict=True)
        return tuple(CURVES[curve](self.steepness * (value - centre)) for curve, value, centre in points)


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
    "G21 Lemma 22",
    on=_contractions,
    given="finite classes",
    sides=("Rademacher complexity behind the curves", "bound"),
    false=ABSOLUTE,
)
def curves_contract(contraction: Contraction, absolute: bool = False) -> Comparison:
    """Curves no steeper than L, one for each point, make a class at most L times as complex."""
    classes = np.array(contraction.functions), np.array([*map(contraction.curved, contraction.functions)])
    signed = ([*rows, *-rows] if absolute else rows for rows in classes)
    plain, curved = (correlation(rows, (1,) * len(contraction.curves)) for rows in signed)
    return at_most(curved, contraction.steepness * plain)
