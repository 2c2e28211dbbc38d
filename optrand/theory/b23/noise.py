"""Distributions of noise and debiased randomized response, as defined ([B23], Definitions 19, 20 and 23)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import numpy as np

import optrand
from optrand.baselines.noise import ContinuousStaircase, LatticeStaircase
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Setting, settings

__all__ = ["CLAIMS", "Stairs", "Steps"]

FLOATS = 1e-11
"""What the package's densities, in floats, are forgiven."""


@dataclass(frozen=True)
class Stairs:
    """The discrete staircase: `rise` of the `length` integers of a stair are on its upper level."""

    length: int
    rise: int
    ratio: Fraction

    def __str__(self) -> str:
        return f"Delta = {self.length}, r = {self.rise}, E = {self.ratio}"

    @property
    def height(self) -> Fraction:
        """``a(r)``, with ``b = 1/E``."""
        b = 1 / self.ratio
        return (1 - b) / (2 * self.rise + 2 * b * (self.length - self.rise) - (1 - b))

    def probability(self, i: int) -> Fraction:
        """Of an integer, by the definition."""
        stair, place = divmod(abs(i), self.length)
        return self.height / self.ratio ** (stair + (place >= self.rise))

    @property
    def total(self) -> Fraction:
        """The sum over all integers: both sides, each a geometric series of stairs, and 0 once."""
        stair = self.rise + (self.length - self.rise) / self.ratio
        return self.height * (2 * stair / (1 - 1 / self.ratio) - 1)


def _stairs(budget: Budget) -> Iterator[Stairs]:
    random = Random(61)  # noqa: S311
    for ratio in RATIOS:
        yield from (Stairs(length, rise, ratio) for length in (1, 2, 3) for rise in range(1, length + 1))
    for _ in range(budget.pick(quick=60, full=600)):
        length = random.randint(2, budget.pick(quick=12, full=30))
        yield Stairs(
            length, random.randint(1, length), 1 + Fraction(random.randint(1, 99), random.choice((1, 10, 100)))
        )


def stairs_are_a_distribution(stairs: Stairs) -> Comparison:
    """The discrete staircase sums to 1 and is epsilon-DP on a query of sensitivity Delta.

    With exp(-epsilon) for `b`, which is not defined where it is used.
    """
    places = range(3 * stairs.length)
    computed = LatticeStaircase(_epsilon(stairs.ratio), stairs.length, stairs.rise).density(np.array(places, float))
    here = (equal(a, float(stairs.probability(i)), tolerance=FLOATS) for i, a in zip(places, computed, strict=True))
    return worst(equal(stairs.total, 1), at_most(_ratio(stairs, stairs.length), stairs.ratio), *here)


def longer_shifts_are_private(stairs: Stairs) -> Comparison:
    """The discrete staircase is epsilon-DP on a query of sensitivity Delta + 1."""
    return at_most(_ratio(stairs, stairs.length + 1), stairs.ratio)


def _ratio(stairs: Stairs, most: int) -> Fraction:
    """The largest ratio of probabilities of integers at most so far apart, near 0; farther out they repeat."""
    near = [stairs.probability(i) for i in range(-2 * stairs.length - 1, 2 * stairs.length + 2)]
    return max(max(near[i : i + most + 1]) / min(near[i : i + most + 1]) for i in range(len(near) - most))


def _epsilon(ratio: Fraction) -> float:
    return math.log1p(float(ratio - 1))


@dataclass(frozen=True)
class Steps:
    """The continuous staircase: a share `gamma` of each stair of length `length` is on its upper level."""

    length: Fraction
    gamma: Fraction
    ratio: Fraction

    def __str__(self) -> str:
        return f"Delta = {self.length}, gamma = {self.gamma}, E = {self.ratio}"

    @property
    def height(self) -> Fraction:
        """``a(gamma)``."""
        b = 1 / self.ratio
        return (1 - b) / (2 * self.length * (self.gamma + b * (1 - self.gamma)))

    def density(self, x: Fraction) -> Fraction:
        """By the definition."""
        stair = abs(x) // self.length
        return self.height / self.ratio ** (stair + (abs(x) - stair * self.length >= self.gamma * self.length))

    @property
    def total(self) -> Fraction:
        """The integral over the line: twice a geometric series of stairs."""
        stair = self.length * (self.gamma + (1 - self.gamma) / self.ratio)
        return 2 * self.height * stair / (1 - 1 / self.ratio)

    def largest_ratio(self, reach: Fraction) -> Fraction:
        """Of densities at most `reach` apart: at all steps, a little beside them, and as far away as is allowed."""
        tiny = self.length * min(self.gamma, 1 - self.gamma) / 8
        jumps = [side * (stair + self.gamma) * self.length for stair in range(3) for side in (-1, 1)]
        jumps += [side * stair * self.length for stair in range(3) for side in (-1, 1)]
        places = [jump + side for jump in jumps for side in (-tiny, Fraction(0), tiny)]
        pairs = ((x, y) for x in places for y in (*places, x - reach, x + reach) if abs(x - y) <= reach)
        return max(self.density(x) / self.density(y) for x, y in pairs)


def _steps(budget: Budget) -> Iterator[Steps]:
    random = Random(62)  # noqa: S311
    yield from (Steps(Fraction(1), Fraction(1, 2), ratio) for ratio in RATIOS)
    for _ in range(budget.pick(quick=12, full=600)):
        length = Fraction(random.randint(1, 50), random.choice((1, 7)))
        gamma = Fraction(random.randint(1, 19), 20)
        yield Steps(length, gamma, 1 + Fraction(random.randint(1, 99), random.choice((1, 10, 100))))


def steps_are_a_density(steps: Steps) -> Comparison:
    """The continuous staircase integrates to 1 and is epsilon-DP on a query of sensitivity Delta."""
    places = [steps.length * Fraction(i, 8) + steps.length / 1000 for i in range(20)]
    noise = ContinuousStaircase(_epsilon(steps.ratio), float(steps.length), float(steps.gamma))
    computed = noise.density(np.array([float(x) for x in places])).tolist()
    here = (equal(value, float(steps.density(x)), tolerance=FLOATS) for value, x in zip(computed, places, strict=True))
    return worst(equal(steps.total, 1), at_most(steps.largest_ratio(steps.length), steps.ratio), *here)


def longer_steps_are_a_density(steps: Steps) -> Comparison:
    """The continuous staircase integrates to 1 and is epsilon-DP on a query of sensitivity 9/8 of Delta."""
    return worst(equal(steps.total, 1), at_most(steps.largest_ratio(steps.length * Fraction(9, 8)), steps.ratio))


def _settings(budget: Budget) -> Iterator[Setting]:
    return settings(budget.pick(quick=100, full=3_000))


def _debiased(setting: Setting, count: int) -> Comparison:
    """That the outputs of Definition 23, with `count` for the number of labels, are unbiased."""
    total, ratio = sum(setting.labels, Fraction(0)), setting.ratio
    outputs = [((ratio + count - 1) * y - total) / (ratio - 1) for y in setting.labels]
    means = [(sum(outputs, Fraction(0)) + (ratio - 1) * own) / (ratio + setting.k - 1) for own in outputs]
    return worst(*(equal(mean, y) for mean, y in zip(means, setting.labels, strict=True)))


def response_is_debiased(setting: Setting) -> Comparison:
    """Debiased randomized response is unbiased and epsilon-DP."""
    made = optrand.debiased_rr([float(y) for y in setting.labels], _epsilon(setting.ratio)).randomizer
    far = float(np.abs(made.biases).max() / np.ptp(made.outputs))
    private = at_most(made.realised_epsilon, _epsilon(setting.ratio) * (1 + FLOATS) + FLOATS)
    return worst(_debiased(setting, setting.k), private, at_most(far, FLOATS))


def one_label_more(setting: Setting) -> Comparison:
    """Debiased randomized response is unbiased with `k` in place of `k - 1`."""
    return _debiased(setting, setting.k + 1)


CLAIMS = (
    Claim(
        paper="B23",
        number="Definition 19",
        hypothesis="any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b = exp(-epsilon)",
        instances=_stairs,
        printed=stairs_are_a_distribution,
        false=longer_shifts_are_private,
    ),
    Claim(
        paper="B23",
        number="Definition 20",
        hypothesis="any Delta above 0, gamma strictly between 0 and 1, any epsilon above 0",
        instances=_steps,
        printed=steps_are_a_density,
        false=longer_steps_are_a_density,
    ),
    Claim(
        paper="B23",
        number="Definition 23",
        hypothesis="at least two labels, any epsilon above 0",
        instances=_settings,
        printed=response_is_debiased,
        false=one_label_more,
    ),
)
