"""Descent with a biased oracle ([B23], Lemma 15), and mechanisms as defined (Appendix F, Definition 19)."""

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
    """The discrete staircase: two levels on each stair of `length` integers, the upper one as far as the jump."""

    length: int
    jump: int
    ratio: Fraction

    def level(self, i: int) -> int:
        """Return the number of factors `b` by which an integer is less likely than 0."""
        return abs(i) // self.length + (abs(i) % self.length >= self.jump)

    def probability(self, i: int) -> Fraction:
        """Return the probability by the definition, with ``b = 1/E``."""
        b = 1 / self.ratio
        height = (1 - b) / (2 * self.jump + 2 * b * (self.length - self.jump) - (1 - b))
        return height * b ** self.level(i)

    @property
    def total(self) -> Fraction:
        """The sum: both sides, each a geometric series of stairs, where 0 counts once."""
        return 2 * total(map(self.probability, range(self.length))) / (1 - 1 / self.ratio) - self.probability(0)

    def largest_ratio(self, reach: int) -> Fraction:
        """Return the largest ratio of two probabilities at most `reach` apart, near 0."""
        near = range(-2 * self.length - 1, 2 * self.length + 2)
        # The level grows with the distance from 0, so that it is largest at an end of the reach.
        return self.ratio ** max(self.level(x + side * reach) - self.level(x) for x in near for side in (-1, 1))


def _draw_stairs(draw: Random) -> Stairs:
    length = draw.randint(2, 10)
    return Stairs(length, draw.randint(1, length), 1 + Fraction(draw.randint(1, 99), draw.choice((1, 10, 100))))


STAIRS = (
    [Stairs(length, jump, ratio) for ratio in RATIOS for length in (1, 2, 3) for jump in range(1, length + 1)],
    Draws(40, _draw_stairs),
)
ANY_DELTA = "any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b, not defined, is exp(-epsilon)"


@claim("B23 Definition 19", *STAIRS, given=ANY_DELTA)
@false("It is epsilon-DP on a query of sensitivity Delta + 1.", more=1)
def discrete_stairs_are_private(stairs: Stairs, more: int = 0) -> Comparison:
    """The discrete staircase is epsilon-DP on a query of sensitivity Delta."""
    return at_most(stairs.largest_ratio(stairs.length + more), stairs.ratio)


@claim("B23 Definition 19: total", *STAIRS, given=ANY_DELTA)
@false("Its values sum to 1 without the term that counts 0 once.", lambda s: equal(s.total + s.probability(0), 1))
def discrete_stairs_sum_to_one(stairs: Stairs) -> Comparison:
    """The discrete staircase sums to 1."""
    return equal(stairs.total, 1)
