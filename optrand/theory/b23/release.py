"""Labels rounded, and released with a noisy prior; descents on them; the staircase ([B23], 3.1, Appendices C to F)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from random import Random

from optrand.base._arithmetic import exp_bracket
from optrand.theory._engine import Comparison, Draws, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, largest_ratio, times, total

Counts = tuple[int, ...]
ONE = Fraction(1)


def variance(value: Fraction, gaps: int) -> Fraction:
    """Return the variance of a label rounded to even knots from 0 to 48: the product of its distances from both."""
    gap = Fraction(48, gaps)
    return value % gap * (gap - value % gap)


@claim(
    "B23 Section 3.1: variance of rounding",
    gaps=(1, 2, 3, 4, 6, 12, 24),
    value=[Fraction(24), *(Fraction(n, 2) for n in range(0, 97, 5))],
    given="labels of an interval, even knots; knots are added",
)
@corrected(
    "It does not grow as knots are added to others, and is at most a quarter of the squared gap.",
    lambda value, gaps: at_most(variance(value, 2 * gaps), [variance(value, gaps), Fraction(48, 2 * gaps) ** 2 / 4]),
)
@false(
    "Of each label it becomes a quarter as the gap is halved.",
    lambda value, gaps: at_most(variance(value, 2 * gaps), variance(value, gaps) / 4),
)
def variance_shrinks(value: Fraction, gaps: int) -> Comparison:
    """As the gap between knots decreases, the variance that rounding adds to a label does not grow: one gap more."""
    return at_most(variance(value, gaps + 1), variance(value, gaps))


def _noise(epsilon: float) -> Fraction:
    """Return the factor ``exp(-epsilon / 2)`` between neighbouring integers: noise of scale ``2 / epsilon``."""
    return 1 / exp_bracket(epsilon / 2)[0]


def _histogram_law(counts: Counts, q: Fraction) -> dict[Counts, Fraction]:
    near = range(sum(counts) + 2)
    laws = [[(1 - q) / (1 + q) * q ** abs(x - count) if x else q**count / (1 + q) for x in near] for count in counts]
    return {seen: times(law[x] for law, x in zip(laws, seen, strict=True)) for seen in product(near, repeat=len(laws))}


def _move_one_label(counts: Counts) -> list[Counts]:
    moves = ((a, b) for a, b in permutations(range(len(counts)), 2) if counts[a])
    return [tuple(c + (i == b) - (i == a) for i, c in enumerate(counts)) for a, b in moves]


@claim(
    "B23 Algorithm 4: privacy",
    *(
        grid(counts=[counts], moved=_move_one_label(counts), epsilon=(1.0, 0.1))
        for counts in ((1, 0), (2, 0), (1, 1), (0, 3), (1, 0, 0), (1, 2, 0))
    ),
    given="two histograms that differ in one label; discrete noise, exact laws of clipped histograms",
)
@false("The same with noise of scale 1 / epsilon.", power=2)
def prior_is_private(counts: Counts, moved: Counts, epsilon: float, power: int = 1) -> Comparison:
    """Noise of scale 2 / epsilon makes the clipped histogram, and so the prior, epsilon-DP."""
    laws = [_histogram_law(each, _noise(epsilon) ** power) for each in (counts, moved)]
    return at_most(largest_ratio(laws), exp_bracket(epsilon)[1])


def _lose_labels(first: float, epsilon: float) -> float:
    """Return the expected loss of two labels, which leave the prior unused, after its budget is spent."""
    gain = math.expm1(epsilon - first)
    return (gain + 1) / gain**2 / 2


@claim(
    "B23 Appendix C: split",
    root=[Fraction(1, part) for part in (10, 50, 250)],
    epsilon=(0.5, 1.0, 4.0),
    factor=[Fraction(1, 2), Fraction(2), Fraction(1, 3), Fraction(3, 2)],
    given="two labels, n = 2 / root**2; the root is the budget sqrt(k / n), other budgets a factor away",
    undecided="the argument is quoted from another paper and leaves factors open: only its bound is tried",
)
@false(
    "No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all.",
    lambda root, epsilon, factor: at_most(*(_lose_labels(float(each), epsilon) for each in (root, factor * root))),
)
def the_root_is_best_for_the_bound(root: Fraction, factor: Fraction) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does."""
    return at_most(root + root**2 / root, factor * root + root**2 / (factor * root))


@dataclass(frozen=True)
class Descent:
    """Descent of ``L |w - c|`` on ``[0, 1]`` from the end that is farther from `c`; noise is plus or minus `sigma`.

    The bias points away from `c`. `root` is ``sqrt((L + alpha)**2 + sigma**2)``, and there are ``steps**2`` places.
    """

    slope: Fraction
    bias: Fraction
    sigma: Fraction
    root: Fraction
    target: Fraction
    steps: int

    def gradient(self, w: Fraction) -> Fraction:
        """Return the gradient of the loss, with the bias."""
        side = (w > self.target) - (w < self.target)
        return self.slope * side - self.bias * (side or 1)

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
        lost = (abs(passed / self.steps**2 - self.target) * count for (_, passed), count in paths.items())
        return self.slope * total(lost) / paths.total()


def _draw_descent(draw: Random) -> Descent:
    # Whole numbers with a**2 + b**2 == c**2, so that the printed step size is a rational.
    whole, sigma, root = draw.choice(((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17)))
    bias = Fraction(draw.randint(0, 4 * whole - 1), 4)
    steps, target = draw.randint(1, 3 if sigma else 12), Fraction(draw.randint(0, 4), 4)
    return Descent(whole - bias, bias, Fraction(sigma), Fraction(root), target, steps)


@claim(
    "B23 Lemma 15",
    [Descent(ONE, bias, 0 * ONE, 1 + bias, 0 * ONE, steps) for bias in (0 * ONE, 2 * ONE) for steps in (1, 2, 30)],
    Draws(30, _draw_descent),
    given="one dimension, R = 1, harmful biases, two-valued noise",
)
@false("It is at most R sqrt(((L + alpha)^2 + sigma^2) / T).", share=0)
def descent_comes_near(descent: Descent, share: int = 1) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    return at_most(descent.excess, descent.root / descent.steps + share * descent.bias)


@claim(
    "B23 Lemma 15: tightness",
    grid(alpha=[Fraction(1)], R=[Fraction(1)], w=[Fraction(i, 4) for i in range(5)]),
    draws(
        100,
        alpha=[Fraction(n, 3) for n in range(1, 51)],
        R=[Fraction(n, 7) for n in range(1, 51)],
        w=lambda draw, R: R * draw.randint(0, 9) / 9,
    ),
    given="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
)
@corrected("Anywhere the larger of the two excess losses is at least alpha R / 4.", which=max)
@false("Anywhere the larger of the two excess losses is at least 3 alpha R / 8.", which=max, eighths=3)
def tightness(
    alpha: Fraction, R: Fraction, w: Fraction, which: Callable[..., Fraction] = min, eighths: int = 2
) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    return at_most(eighths * alpha * R / 8, which(w, R - w) * alpha / 2)


def fall(x: int, length: int, jump: int) -> int:
    """Return the number of factors ``b = exp(-epsilon)`` by which an integer is less likely than 0."""
    return abs(x) // length + (abs(x) % length >= jump)


def stair_chance(x: int, length: int, jump: int, ratio: Fraction) -> Fraction:
    """Return the probability of an integer by the definition."""
    b = 1 / ratio
    return (1 - b) / (2 * jump + 2 * b * (length - jump) - (1 - b)) * b ** fall(x, length, jump)


STAIRS = [{"length": length, "jump": jump} for length in range(1, 11) for jump in range(1, length + 1)]
ANY_DELTA = "any Delta of at least 1, any r from 1 to Delta, any epsilon above 0; b, not defined, is exp(-epsilon)"


@claim("B23 Definition 19", STAIRS, given=ANY_DELTA)
@false("It is epsilon-DP on a query of sensitivity Delta + 1.", more=1)
def discrete_stairs_are_private(length: int, jump: int, more: int = 0) -> Comparison:
    """The discrete staircase is epsilon-DP on a query of sensitivity Delta."""
    # It falls with the distance from 0, so that the largest ratio is at the ends of the reach.
    pairs = product(range(-2 * length - 1, 2 * length + 2), (-length - more, length + more))
    return at_most(max(fall(x + reach, length, jump) - fall(x, length, jump) for x, reach in pairs), 1)


@claim("B23 Definition 19: total", [each | {"ratio": r} for each in STAIRS for r in RATIOS], given=ANY_DELTA)
@false("Its values sum to 1 without the term that counts 0 once.", once=0)
def discrete_stairs_sum_to_one(length: int, jump: int, ratio: Fraction, once: int = 1) -> Comparison:
    """The discrete staircase sums to 1."""
    # Both sides, each a geometric series of stairs.
    side = total(stair_chance(x, length, jump, ratio) for x in range(length)) / (1 - 1 / ratio)
    return equal(2 * side - once * stair_chance(0, length, jump, ratio), 1)
