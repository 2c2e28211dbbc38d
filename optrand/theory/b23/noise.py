"""Descent with a biased oracle ([B23], Lemma 15), and mechanisms as defined (Appendix F, Definitions 19 and 20)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

from optrand.theory._engine import Comparison, Draws, at_most, claim, corrected, equal, false, grid
from optrand.theory._shared import RATIOS, total


@dataclass(frozen=True)
class Descent:
    """Descent of ``L |w - c|`` on ``[0, 1]`` from the end that is farther from `c`; noise is plus or minus `sigma`.

    If `curved`, the loss is ``L (w - c)**2 / 2``; the bias points away from `c` or, if not `away`, up. `root` is
    ``sqrt((L + alpha)**2 + sigma**2)``, and there are ``steps**2`` places.
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
        """Return the loss, convex with slopes of at most `L` on the interval."""
        return self.slope * ((w - self.target) ** 2 / 2 if self.curved else abs(w - self.target))

    def gradient(self, w: Fraction) -> Fraction:
        """Return the gradient of the loss, with the bias."""
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


def _plain_descents() -> Iterator[Descent]:
    zero, one = Fraction(0), Fraction(1)
    yield Descent(one, zero, zero, one, 1, zero)
    yield from (Descent(one, 2 * one, zero, 3 * one, steps, zero) for steps in (1, 2, 10, 30))


def _draw_descent(draw: Random) -> Descent:
    # Whole numbers with a**2 + b**2 == c**2, so that the printed step size is a rational.
    whole, sigma, root = draw.choice(((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17)))
    bias = Fraction(draw.randint(0, 4 * whole - 1), 4)
    steps, target = draw.randint(1, 3 if sigma else 12), Fraction(draw.randint(0, 4), 4)
    shape = {"curved": draw.random() < 0.5, "away": draw.random() < 0.5}
    return Descent(whole - bias, bias, Fraction(sigma), Fraction(root), steps, target, **shape)


@claim(
    "B23 Lemma 15",
    _plain_descents,
    Draws(30, _draw_descent),
    given="one dimension, R = 1, harmful biases, two-valued noise",
)
@false("It is at most R sqrt(((L + alpha)^2 + sigma^2) / T).", share=0)
def descent_comes_near(descent: Descent, share: int = 1) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    return at_most(descent.excess, descent.root / descent.steps + share * descent.bias)


def _draw_place(draw: Random) -> dict[str, Any]:
    reach, part = Fraction(draw.randint(1, 50), 7), Fraction(draw.randint(0, 100), 100)
    return {"alpha": Fraction(draw.randint(1, 50), 3), "R": reach, "w": reach * part}


@claim(
    "B23 Lemma 15: tightness",
    grid(alpha=[Fraction(1)], R=[Fraction(1)], w=[Fraction(i, 4) for i in range(5)]),
    Draws(100, _draw_place),
    given="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
)
@corrected("Anywhere the larger of the two excess losses is at least alpha R / 4.", which=max)
@false("Anywhere the larger of the two excess losses is at least 3 alpha R / 8.", which=max, eighths=3)
def tightness(
    alpha: Fraction, R: Fraction, w: Fraction, which: Callable[..., Fraction] = min, eighths: int = 2
) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    return at_most(eighths * alpha * R / 8, which(w, R - w) * alpha / 2)


@dataclass(frozen=True)
class Stairs:
    """The staircase: two levels on each stair of length `length`, the upper one as far as the jump."""

    length: Fraction
    jump: Fraction
    ratio: Fraction
    whole: bool

    def level(self, x: Fraction) -> int:
        """Return the number of factors `b` by which the density is below its height."""
        return int(abs(x) // self.length) + (abs(x) % self.length >= self.jump)

    def density(self, x: Fraction) -> Fraction:
        """Return the density by the definition, with ``b = 1/E``; in integers the probability."""
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
        """Return the largest ratio of densities at most `reach` apart, at integers near 0, or beside steps near it."""
        steps = [side * (i * self.length + part) for i in range(2) for part in (0, self.jump) for side in (-1, 1)]
        beside = min(self.jump, self.length - self.jump) / 8
        near = map(Fraction, range(-2 * int(self.length) - 1, 2 * int(self.length) + 2))
        places = set(near) if self.whole else {step + side for step in steps for side in (-beside, 0, beside)}
        # The level grows with the distance from 0, so that it is largest at an end of the reach.
        most: int = max(self.level(x + side * reach) - self.level(x) for x in places for side in (-1, 1))
        return self.ratio**most


def _draw_ratio(draw: Random) -> Fraction:
    return 1 + Fraction(draw.randint(1, 99), draw.choice((1, 10, 100)))


def _draw_discrete(draw: Random) -> Stairs:
    length = draw.randint(2, 10)
    return Stairs(Fraction(length), Fraction(draw.randint(1, length)), _draw_ratio(draw), whole=True)


def _draw_continuous(draw: Random) -> Stairs:
    length = Fraction(draw.randint(1, 50), draw.choice((1, 7)))
    return Stairs(length, length * Fraction(draw.randint(1, 19), 20), _draw_ratio(draw), whole=False)


DISCRETE = (
    [
        Stairs(Fraction(length), Fraction(jump), ratio, whole=True)
        for ratio in RATIOS
        for length in (1, 2, 3)
        for jump in range(1, length + 1)
    ],
    Draws(40, _draw_discrete),
)
CONTINUOUS = (
    [Stairs(Fraction(1), Fraction(1, 2), ratio, whole=False) for ratio in RATIOS],
    Draws(12, _draw_continuous),
)
ANY_DELTA = "any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b, not defined, is exp(-epsilon)"
ANY_GAMMA = "any Delta above 0, gamma strictly between 0 and 1, any epsilon above 0"


@claim("B23 Definition 19", *DISCRETE, given=ANY_DELTA)
@false("It is epsilon-DP on a query of sensitivity Delta + 1.", more=1)
def discrete_stairs_are_private(stairs: Stairs, more: int = 0) -> Comparison:
    """The discrete staircase is epsilon-DP on a query of sensitivity Delta."""
    return at_most(stairs.largest_ratio(stairs.length + more), stairs.ratio)


@claim("B23 Definition 19: total", *DISCRETE, given=ANY_DELTA)
@false("Its values sum to 1 without the term that counts 0 once.", lambda s: equal(s.total + s.density(Fraction(0)), 1))
def discrete_stairs_sum_to_one(stairs: Stairs) -> Comparison:
    """The discrete staircase sums to 1."""
    return equal(stairs.total, 1)


@claim("B23 Definition 20", *CONTINUOUS, given=ANY_GAMMA)
@false("It is epsilon-DP on one of 9/8 of Delta.", times=Fraction(9, 8))
def steps_are_private(stairs: Stairs, times: Fraction = Fraction(1)) -> Comparison:
    """The continuous staircase is epsilon-DP on a query of sensitivity Delta."""
    return at_most(stairs.largest_ratio(times * stairs.length), stairs.ratio)


@claim("B23 Definition 20: total", *CONTINUOUS, given=ANY_GAMMA)
@false("The integral without the first step is 1.", lambda s: equal(s.total - s.jump * s.density(Fraction(0)), 1))
def steps_integrate_to_one(stairs: Stairs) -> Comparison:
    """The continuous staircase integrates to 1."""
    return equal(stairs.total, 1)
