"""Projected gradient descent with a biased and noisy oracle ([B23], Lemma 15): all its paths, and simulations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import total

__all__ = ["Descent", "Place", "Walk", "tightness"]

TRIPLES = ((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17))
"""Whole numbers with ``a**2 + b**2 == c**2``, so that the printed step size is a rational."""


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

    @property
    def start(self) -> Fraction:
        """The end that is farther from the target."""
        return Fraction(int(2 * self.target <= 1))

    @property
    def step(self) -> Fraction:
        """The printed step size, ``R / sqrt(((L + alpha)**2 + sigma**2) T)``."""
        return 1 / (self.root * self.steps)

    def loss(self, w: Fraction) -> Fraction:
        """Convex, with slopes of at most `L` on the interval."""
        return self.slope * ((w - self.target) ** 2 / 2 if self.curved else abs(w - self.target))

    def gradient(self, w: Fraction) -> Fraction:
        """Of the loss, with the bias."""
        side = (w > self.target) - (w < self.target)
        true = self.slope * (w - self.target if self.curved else side)
        return true - self.bias * (side or 1 if self.away else 1)

    @cached_property
    def excess(self) -> Fraction:
        """The expected loss of the mean of all `T` places, over all paths; the least loss is 0."""
        paths: Counter[tuple[Fraction, Fraction]] = Counter({(self.start, self.start): 1})
        for _ in range(self.steps**2 - 1):
            after: Counter[tuple[Fraction, Fraction]] = Counter()
            for (w, passed), count in paths.items():
                for noise in {-self.sigma, self.sigma}:
                    moved = min(max(w - self.step * (self.gradient(w) + noise), Fraction(0)), Fraction(1))
                    after[moved, passed + moved] += count
            paths = after
        return total(self.loss(passed / self.steps**2) * n for (_, passed), n in paths.items()) / sum(paths.values())


def _descents(budget: Budget) -> Iterator[Descent]:
    zero, one = Fraction(0), Fraction(1)
    yield Descent(one, zero, zero, one, 1, zero)
    yield from (Descent(one, 2 * one, zero, 3 * one, steps, zero) for steps in (1, 2, 10, 30))
    random = seeded(81)
    for (whole, sigma, root), curved, away in product(TRIPLES, (False, True), (False, True)):
        for _ in range(budget.pick(quick=3, full=8)):
            bias = Fraction(random.randint(0, 4 * whole - 1), 4)
            steps = random.randint(1, budget.pick(quick=3, full=4) if sigma else 12)
            rest = (Fraction(sigma), Fraction(root), steps, Fraction(random.randint(0, 4), 4))
            yield Descent(whole - bias, bias, *rest, curved=curved, away=away)


@claim(
    "B23",
    "Lemma 15",
    on=_descents,
    given="one dimension, R = 1, two convex losses, noise of two values, biases that do harm; T up to 900",
    false=Variant("It is at most R sqrt(((L + alpha)^2 + sigma^2) / T).", share=0),
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
        target = np.zeros(self.dimensions)
        target[0] = 0.5
        place: Floats = np.tile(-target, (self.runs, 1))
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
    for time, bias in product(
        budget.pick(quick=(1, 25, 400), full=(1, 4, 25, 100, 400, 2_500, 10_000)), (0.0, 0.5, 1.5)
    ):
        yield from (Walk(dimensions, 1.0, bias, sigma, time) for dimensions in (1, 3) for sigma in (0.0, 1.0, 4.0))


@claim(
    "B23",
    "Lemma 15: simulation",
    on=_walks,
    given="a ball in one or three dimensions, Gaussian noise, bias away from the optimum; 5 standard errors",
    false=Variant("It is at most R sqrt(((L + alpha)^2 + sigma^2) / T).", share=0),
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

    @property
    def excesses(self) -> tuple[Fraction, Fraction]:
        """Of the two losses; an oracle that always says 0 has a bias of alpha / 2 for either, and tells nothing."""
        return self.bias * self.w / 2, self.bias * (self.reach - self.w) / 2


def _places(budget: Budget) -> Iterator[Place]:
    random = seeded(82)
    yield from (Place(Fraction(1), Fraction(1), Fraction(i, 4)) for i in range(5))
    for _ in range(budget.pick(quick=100, full=2_000)):
        reach = Fraction(random.randint(1, 50), 7)
        yield Place(Fraction(random.randint(1, 50), 3), reach, reach * Fraction(random.randint(0, 100), 100))


@claim(
    "B23",
    "Lemma 15: tightness",
    kind="text",
    on=_places,
    given="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
    corrected=Variant(
        "Anywhere the larger of the two excess losses is at least alpha R / 4.",
        lambda place: at_most(place.bias * place.reach / 4, max(place.excesses)),
    ),
    false=Variant(
        "Anywhere the larger of the two excess losses is at least 3 alpha R / 8.",
        lambda place: at_most(3 * place.bias * place.reach / 8, max(place.excesses)),
    ),
)
def tightness(place: Place) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    return at_most(place.bias * place.reach / 4, min(place.excesses))
