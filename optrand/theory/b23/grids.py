"""Grids that carry an unbiased randomizer, and rounding, noisy priors and descents around it ([B23]).

Proposition 7, Algorithms 2 to 4, Lemmas 8 and 15, Sections 3.1 and G.3, Definition 19.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cached_property, lru_cache
from itertools import permutations, product
from random import Random
from typing import Any

import optrand
from optrand.base._arithmetic import exp_bracket
from optrand.closed_forms import debiased_rr, two_ends
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, Row, Setting, label_set, largest_ratio, settings, shares, times, total
from optrand.theory.b23 import optima


def smallest_ratio(labels: Row, low: F, high: F) -> F | float:
    """Return the least ratio of an unbiased randomizer with outputs between two ends, infinite if a label is an end.

    The two ends alone have it: see :func:`optrand.unbiased_range`.
    """
    if low >= labels[0] or high <= labels[-1]:
        return math.inf
    return max((high - labels[0]) / (high - labels[-1]), (labels[-1] - low) / (labels[0] - low))


@claim("B23 Proposition 7", *settings(100), given="at least two labels, any epsilon above 0")
@false("The same with both ends a tenth nearer to the labels.", nearer=F(1, 10))
def two_ends_are_enough(setting: Setting, nearer: F = F(0)) -> Comparison:
    """The lowest and the highest output of debiased randomized response carry an unbiased epsilon-DP randomizer."""
    first, *_, last = setting.labels
    low, high = optima.response_ends(setting.labels, setting.ratio)
    nearer_ends = low + nearer * (first - low), high - nearer * (high - last)
    return at_most(smallest_ratio(setting.labels, *nearer_ends), setting.ratio)


NUMBERS = tuple(map(F, ("1", "2", "1/3")))


@claim(
    "B23 Proposition 7: last step",
    grid(a=NUMBERS, b=NUMBERS, c=NUMBERS),
    Draws(200, lambda draw: {name: F(draw.randint(1, 1_000), draw.randint(1, 1_000)) for name in "abc"}),
    given="three positive numbers",
)
@corrected("For positive numbers with `b >= c` it is. In the proof `b / c` is exp(epsilon).", where=lambda b, c: b >= c)
@false("For positive numbers with `a >= c` it is.", where=lambda a, c: a >= c)
def a_summand_shrinks_a_ratio(a: F, b: F, c: F) -> Comparison:
    """For positive numbers, `(a + b) / (a + c) <= b / c`."""
    return at_most((a + b) / (a + c), b / c)


@claim(
    "B23 Algorithm 3",
    grid(labels=[optima.THREE[:2]], first=RATIOS, second=RATIOS),
    draws(100, labels=lambda draw: label_set(draw, draw.randint(2, 6)), first=RATIOS, second=RATIOS),
    given="at least two labels, the ratios exp(epsilon_1) of the prior and exp(epsilon_2) of the labels",
)
@corrected("The grid for epsilon_2, the budget of the labels, does.", budget=lambda _, second: second)
@false("The grid for epsilon_1 + epsilon_2, the whole budget, does.", budget=lambda first, second: first * second)
def budget_of_the_prior_decides(labels: Row, first: F, second: F, budget: Any = lambda first, _: first) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_1, the prior's budget, carries a randomizer for epsilon_2."""
    return at_most(smallest_ratio(labels, *optima.response_ends(labels, budget(first, second))), second)


MESHES = *optima.meshes(4, 4), [{"setting": Setting(optima.THREE, shares((1, 1, 1)), F(2)), "n": 80}]
"""The last is so fine that a grid between the ends loses more than a mesh against outputs on the line."""


@lru_cache(maxsize=1_000)
def _absolute_excess(setting: Setting, n: int) -> F:
    """Return the excess of a grid's absolute loss over the interval's, for which ends and labels suffice as outputs."""
    everywhere = sorted({*optima.response_ends(setting.labels, setting.ratio), *setting.labels})
    least = optima.best_on_grid(setting, everywhere, optima.absolute)[0]
    return optima.least_on_mesh(setting, n, optima.absolute) - least


@claim("B23 Lemma 8", *MESHES, given="absolute loss, outputs from end to end of debiased randomized response")
@false(
    "The same of a grid between the ends against outputs anywhere on the line.",
    lambda setting, n: at_most(
        optima.least_on_mesh(setting, n, optima.absolute) - optima.absolute_infimum(setting),
        optima.mesh_size(setting, n),
    ),
)
def loss_grows_by_the_mesh(setting: Setting, n: int) -> Comparison:
    """For a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta more."""
    return at_most(_absolute_excess(setting, n), optima.mesh_size(setting, n))


@claim("B23 Lemma 8: how loose", *MESHES[:2], given="as in Lemma 8, statements of ours that are sharper than the paper")
@false("It costs at most 49/50 of either more.", share=F(49, 50))
def loss_grows_by_less(setting: Setting, n: int, share: F = F(1)) -> Comparison:
    """A grid of mesh Delta costs at most Delta / 2 more for absolute loss, Delta^2 / 8 more for halved squared loss."""
    outputs, size = optima.float_outputs(setting, n), optima.mesh_size(setting, n)
    interval = optima.prove(optima.pose(setting, optrand.Interval(outputs.low, outputs.high)))[1].lower
    excess = optima.prove(optima.pose(setting, outputs))[1].upper - interval
    bounds = [float(share * size / 2), float(share * size**2 / 8)]
    return at_most([float(_absolute_excess(setting, n)), excess], bounds, tolerance=TOLERANCE.proven)


@claim(
    "B23 Appendix G.3: finer grids",
    *optima.meshes(3, 8),
    given="halved squared loss, grids of Algorithm 2, exact optima",
)
@corrected("It does not grow as the mesh is halved: the new grid holds the old one.", more=lambda n: n - 1)
@false("It shrinks as the mesh is halved.", more=lambda n: n - 1, strict=F(1, 10**12))
def finer_is_better(setting: Setting, n: int, more: Callable[[int], int] = lambda _: 1, strict: F = F(0)) -> Comparison:
    """The least loss on a grid does not grow as its mesh is made smaller, by one more output."""
    return at_most(optima.least_on_mesh(setting, n + more(n)) * (1 + strict), optima.least_on_mesh(setting, n))


def _loss(closed_form: Callable[..., optrand.Mechanism], setting: Setting) -> float:
    labels, prior = setting.floats
    return closed_form(labels, prior=prior, epsilon=math.log(setting.ratio)).value


LARGE = F(10**7)


@claim(
    "B23 Section 3.1: large epsilon",
    [Setting(optima.THREE, shares(weights), LARGE) for weights in ((1, 1, 1), (1, 0, 1))],
    [Setting(tuple(map(F, range(8))), shares(weights), LARGE) for weights in ([1] * 8, [*range(8, 0, -1)])],
    given="halved squared loss, end labels that occur, labels not far from even",
    undecided="an observation that names no epsilon: tried at exp(epsilon) = 10^7",
)
@false(
    "It has that over all labels, also those that never occur.",
    lambda setting: equal(_loss(debiased_rr, setting), optima.least_on_line(setting), tolerance=TOLERANCE.proven),
)
def response_is_approached(setting: Setting) -> Comparison:
    """At large epsilon the optimal unbiased randomizer has the loss of debiased randomized response.

    Over the labels that occur, the two ends among them. The others are rounded to their neighbours, without bias.
    """
    kept = [i for i, p in enumerate(setting.prior) if p or i in (0, setting.k - 1)]
    labels, prior = (tuple(row[i] for i in kept) for row in (setting.labels, setting.prior))
    found = _loss(debiased_rr, Setting(labels, prior, setting.ratio))
    return equal(found, optima.least_on_line(setting), tolerance=TOLERANCE.proven)


@claim(
    "B23 Section 3.1: small epsilon",
    [
        Setting(labels, shares(weights), ratio)
        for ratio in map(F, ("101/100", "11/10", "27/10"))
        for labels, weights in (
            *((optima.THREE, each) for each in ((1, 1, 1), (0, 1, 0), (1, 0, 0))),
            (tuple(map(F, ("-3", "0", "1/7", "2", "100"))), (2, 9, 0, 4, 1)),
        )
    ],
    given="halved squared loss, any labels and prior, epsilon up to 1",
    undecided="an observation that names no epsilon and no rate: the rate tried is the one measured here",
)
@false("They lose at most a share of epsilon^2 / 5 more than the optimum.", part=5)
def two_outputs_are_approached(setting: Setting, part: int = 2) -> Comparison:
    """At small epsilon the two outputs of debiased randomized response over the two end labels are nearly optimal.

    For epsilon up to 1 they lose at most a share of epsilon^2 / 2 more than the optimum.
    """
    more = _loss(two_ends, setting) / optima.least_on_line(setting) - 1
    return at_most(more - TOLERANCE.proven, math.log(setting.ratio) ** 2 / part)


Counts = tuple[int, ...]
ONE = F(1)


def variance(value: F, gaps: int) -> F:
    """Return the variance of a label rounded to even knots from 0 to 48: the product of its distances from both."""
    gap = F(48, gaps)
    return value % gap * (gap - value % gap)


@claim(
    "B23 Section 3.1: variance of rounding",
    gaps=(1, 2, 3, 4, 6, 12, 24),
    value=[F(24), *(F(n, 2) for n in range(0, 97, 5))],
    given="labels of an interval, even knots to which knots are added",
)
@corrected(
    "It does not grow as knots are added to others, and is at most a quarter of the squared gap.",
    lambda value, gaps: at_most(variance(value, 2 * gaps), [variance(value, gaps), F(48, 2 * gaps) ** 2 / 4]),
)
@false(
    "Of each label it becomes a quarter as the gap is halved.",
    lambda value, gaps: at_most(variance(value, 2 * gaps), variance(value, gaps) / 4),
)
def variance_shrinks(value: F, gaps: int) -> Comparison:
    """As the gap between knots decreases, the variance that rounding adds to a label does not grow: one gap more."""
    return at_most(variance(value, gaps + 1), variance(value, gaps))


def _histogram_law(counts: Counts, q: F) -> dict[Counts, F]:
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
    given="two histograms that differ in one label, discrete noise, exact laws of clipped histograms",
)
@false("The same with noise of scale 1 / epsilon.", power=2)
def prior_is_private(counts: Counts, moved: Counts, epsilon: float, power: int = 1) -> Comparison:
    """Noise of scale 2 / epsilon makes the clipped histogram, and so the prior, epsilon-DP."""
    laws = [_histogram_law(each, exp_bracket(epsilon / 2)[0] ** -power) for each in (counts, moved)]
    return at_most(largest_ratio(laws), exp_bracket(epsilon)[1])


def _lose_labels(first: float, epsilon: float) -> float:
    """Return the expected loss of two labels, whose randomizer needs no prior, after the prior's budget is spent."""
    gain = math.expm1(epsilon - first)
    return (gain + 1) / gain**2 / 2


@claim(
    "B23 Appendix C: split",
    root=[F(1, part) for part in (10, 50, 250)],
    epsilon=(0.5, 1.0, 4.0),
    factor=[F(1, 2), F(2), F(1, 3), F(3, 2)],
    given="two labels, n = 2 / root**2: the root is the budget sqrt(k / n), other budgets are a factor away",
    undecided="the argument is quoted from another paper and leaves factors open: only its bound is tried",
)
@false(
    "No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all.",
    lambda root, epsilon, factor: at_most(*(_lose_labels(float(each), epsilon) for each in (root, factor * root))),
)
def the_root_is_best_for_the_bound(root: F, factor: F) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does."""
    return at_most(root + root**2 / root, factor * root + root**2 / (factor * root))


@dataclass(frozen=True)
class Descent:
    """Descent of ``L |w - c|`` on ``[0, 1]`` from the end that is farther from `c`.

    The noise is plus or minus `sigma`, and the bias points away from `c`. `root` is ``sqrt((L + alpha)**2 +
    sigma**2)``, and there are ``steps**2`` iterates.
    """

    slope: F
    bias: F
    sigma: F
    root: F
    target: F
    steps: int

    def gradient(self, w: F) -> F:
        """Return the gradient of the loss, with the bias."""
        side = (w > self.target) - (w < self.target)
        return self.slope * side - self.bias * (side or 1)

    @cached_property
    def excess(self) -> F:
        """Expected loss of the mean of all `T` iterates, over all paths. The least loss is 0."""
        start, step = F(int(2 * self.target <= 1)), 1 / (self.root * self.steps)
        paths: Counter[tuple[F, F]] = Counter({(start, start): 1})
        for _ in range(self.steps**2 - 1):
            before, paths = paths, Counter()
            for ((w, passed), count), noise in product(before.items(), {-self.sigma, self.sigma}):
                moved = min(max(w - step * (self.gradient(w) + noise), F(0)), F(1))
                paths[moved, passed + moved] += count
        lost = (abs(passed / self.steps**2 - self.target) * count for (_, passed), count in paths.items())
        return self.slope * total(lost) / paths.total()


def _draw_descent(draw: Random) -> Descent:
    # Whole numbers with a**2 + b**2 == c**2, so that the printed step size is a rational.
    whole, sigma, root = draw.choice(((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17)))
    bias = F(draw.randint(0, 4 * whole - 1), 4)
    steps, target = draw.randint(1, 3 if sigma else 12), F(draw.randint(0, 4), 4)
    return Descent(whole - bias, bias, F(sigma), F(root), target, steps)


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
    grid(alpha=[F(1)], R=[F(1)], w=[F(i, 4) for i in range(5)]),
    draws(
        100,
        alpha=[F(n, 3) for n in range(1, 51)],
        R=[F(n, 7) for n in range(1, 51)],
        w=lambda draw, R: R * draw.randint(0, 9) / 9,
    ),
    given="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
)
@corrected("Anywhere the larger of the two excess losses is at least alpha R / 4.", which=max)
@false("Anywhere the larger of the two excess losses is at least 3 alpha R / 8.", which=max, eighths=3)
def tightness(alpha: F, R: F, w: F, which: Callable[..., F] = min, eighths: int = 2) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    return at_most(eighths * alpha * R / 8, which(w, R - w) * alpha / 2)


def fall(x: int, length: int, jump: int) -> int:
    """Return the number of factors ``b = exp(-epsilon)`` by which an integer is less likely than 0."""
    return abs(x) // length + (abs(x) % length >= jump)


def stair_chance(x: int, length: int, jump: int, ratio: F) -> F:
    """Return the probability of an integer by the definition."""
    b = 1 / ratio
    return (1 - b) / (2 * jump + 2 * b * (length - jump) - (1 - b)) * b ** fall(x, length, jump)


STAIRS = [{"length": length, "jump": jump} for length in range(1, 11) for jump in range(1, length + 1)]
ANY_DELTA = "any Delta of at least 1, any r from 1 to Delta, any epsilon above 0 (b, not defined, is exp(-epsilon))"


@claim("B23 Definition 19", STAIRS, given=ANY_DELTA)
@false("It is epsilon-DP on a query of sensitivity Delta + 1.", more=1)
def discrete_stairs_are_private(length: int, jump: int, more: int = 0) -> Comparison:
    """The discrete staircase is epsilon-DP on a query of sensitivity Delta."""
    # It falls with the distance from 0, so that the largest ratio is at the ends of the reach.
    pairs = product(range(-2 * length - 1, 2 * length + 2), (-length - more, length + more))
    return at_most(max(fall(x + reach, length, jump) - fall(x, length, jump) for x, reach in pairs), 1)


@claim("B23 Definition 19: total", [each | {"ratio": r} for each in STAIRS for r in RATIOS], given=ANY_DELTA)
@false("Its values sum to 1 without the term that counts 0 once.", once=0)
def discrete_stairs_sum_to_one(length: int, jump: int, ratio: F, once: int = 1) -> Comparison:
    """The discrete staircase sums to 1."""
    # Both sides, each a geometric series of stairs.
    side = total(stair_chance(x, length, jump, ratio) for x in range(length)) / (1 - 1 / ratio)
    return equal(2 * side - once * stair_chance(0, length, jump, ratio), 1)
