"""Grids that carry an unbiased randomizer, and their cost ([B23], Proposition 7, Algorithms 2 and 3, Lemma 8, G.3)."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.data import weeks_worked_counts_path
from optrand.model.outputs import feasible_output_set
from optrand.theory.b23.optima import (
    PROVEN,
    Mesh,
    Row,
    absolute,
    best_on_grid,
    meshes,
    posed,
    proven,
    response_ends,
    response_loss,
    two_end_loss,
)
from optrand.theory.b23.structure import AbsoluteLoss
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import RATIOS, Instance, Setting, label_set, seeded, settings, shares

__all__ = ["Weeks", "finer_is_better", "smallest_ratio", "weeks_loss"]


def smallest_ratio(labels: Row, low: Fraction, high: Fraction) -> Fraction | float:
    """Smallest ratio of an unbiased randomizer with outputs between two ends; infinite where a label is an end.

    The two ends alone have it: see :func:`optrand.unbiased_range`.

    Examples
    --------
    >>> smallest_ratio((Fraction(0), Fraction(1)), Fraction(-1), Fraction(2))
    Fraction(2, 1)
    """
    if low >= labels[0] or high <= labels[-1]:
        return math.inf
    return max((high - labels[0]) / (high - labels[-1]), (labels[-1] - low) / (labels[0] - low))


def _settings(budget: Budget) -> Iterator[Setting]:
    return settings(budget.pick(quick=300, full=5_000))


@claim(
    "B23",
    "Proposition 7",
    on=_settings,
    given="at least two labels, any epsilon above 0",
    false=Variant("The same with both ends a tenth nearer to the labels.", nearer=Fraction(1, 10)),
)
def two_ends_are_enough(setting: Setting, nearer: Fraction = Fraction(0)) -> Comparison:
    """The lowest and the highest output of debiased randomized response carry an unbiased epsilon-DP randomizer.

    With two outputs `L < U` there is only one unbiased randomizer: `U` with probability `(y - L) / (U - L)`. Its ratios
    are largest between the two end labels.
    """
    (low, high), first, last = response_ends(setting.labels, setting.ratio), setting.labels[0], setting.labels[-1]
    low, high = low + nearer * (first - low), high - nearer * (high - last)
    return at_most(smallest_ratio(setting.labels, low, high), setting.ratio)


class Triple(Instance):
    """Three positive numbers."""

    a: Fraction
    b: Fraction
    c: Fraction


def _triples(budget: Budget) -> Iterator[Triple]:
    random, numbers = seeded(7), (Fraction(1), Fraction(2), Fraction(1, 3))
    yield from (Triple(a, b, c) for a in numbers for b in numbers for c in numbers)
    for _ in range(budget.pick(quick=500, full=20_000)):
        yield Triple(*(Fraction(random.randint(1, 1_000), random.randint(1, 1_000)) for _ in range(3)))


@claim(
    "B23",
    "Proposition 7: last step",
    on=_triples,
    given="three positive numbers",
    corrected=Variant(
        "Of positive numbers with `b >= c` it is; in the proof `b / c` is exp(epsilon).",
        lambda t: _shrinks(t.a, max(t.b, t.c), min(t.b, t.c)),
    ),
    false=Variant("Of positive numbers with `a >= c` it is.", lambda t: _shrinks(max(t.a, t.c), t.b, min(t.a, t.c))),
)
def a_summand_shrinks_a_ratio(triple: Triple) -> Comparison:
    """Of positive numbers, `(a + b) / (a + c) <= b / c`."""
    return _shrinks(triple.a, triple.b, triple.c)


def _shrinks(a: Fraction, b: Fraction, c: Fraction) -> Comparison:
    return at_most((a + b) / (a + c), b / c)


class InFloats(Instance):
    """Labels and an epsilon that are floats."""

    labels: tuple[float, ...]
    epsilon: float

    def nearest(self) -> tuple[float, float]:
        """The ends of Algorithm 2, every operation rounded to the nearest float."""
        rise = math.exp(self.epsilon)
        low, high = (
            ((rise + len(self.labels) - 1) * end - math.fsum(self.labels)) / (rise - 1)
            for end in (self.labels[0], self.labels[-1])
        )
        return low, high

    def outward(self) -> tuple[float, float]:
        """The ends of the package's grid."""
        outputs = feasible_output_set(self.labels, self.epsilon, 2)
        return outputs.low, outputs.high


def _in_floats(budget: Budget) -> Iterator[InFloats]:
    random = seeded(41)
    yield from (InFloats((0.0, 1.0), epsilon) for epsilon in (0.5, 1.0, 2.0, 5.0, 1e-6, 1e-3, 20.0))
    for _ in range(budget.pick(quick=200, full=10_000)):
        start, k = random.randint(-9, 9), random.choice((2, 2, 3, 6))
        steps = [random.randint(1, 40) / 8 for _ in range(k)]
        yield InFloats(tuple(start + sum(steps[:i]) for i in range(k)), round(random.uniform(0.05, 8), 2))


@claim(
    "B23",
    "Algorithm 2",
    on=_in_floats,
    given="at least two labels; labels and epsilon are floats, the ends rounded outward as the package does",
    false=Variant("The same with every operation rounded to the nearest float.", ends=InFloats.nearest),
)
def outward_ends_are_enough(
    given: InFloats, ends: Callable[[InFloats], tuple[float, float]] = InFloats.outward
) -> Comparison:
    """The lowest and the highest output of Algorithm 2 carry an unbiased epsilon-DP randomizer."""
    low, high = map(Fraction, ends(given))
    return at_most(smallest_ratio(tuple(map(Fraction, given.labels)), low, high), exp_bracket(given.epsilon)[0])


class Split(Instance, first="exp(epsilon_1)", second="exp(epsilon_2)"):
    """Labels, and the ratios of two budgets: the prior's and the randomizer's."""

    labels: Row
    first: Fraction
    second: Fraction

    def carries(self, ratio: Fraction) -> Comparison:
        """Whether the grid of Algorithm 2 with this ratio carries a randomizer of the second one."""
        return at_most(smallest_ratio(self.labels, *response_ends(self.labels, ratio)), self.second)


def _splits(budget: Budget) -> Iterator[Split]:
    random, two = seeded(42), (Fraction(0), Fraction(1))
    yield from (Split(two, first, second) for first in RATIOS for second in RATIOS)
    for _ in range(budget.pick(quick=100, full=3_000)):
        ratios = [1 + Fraction(random.randint(1, 60), random.choice((1, 10))) for _ in range(2)]
        yield Split(label_set(random, random.randint(2, 6)), *ratios)


@claim(
    "B23",
    "Algorithm 3",
    on=_splits,
    given="at least two labels, any two budgets above 0",
    corrected=Variant(
        "The grid for epsilon_2, the budget of the labels, does.", lambda split: split.carries(split.second)
    ),
    false=Variant(
        "The grid for epsilon_1 + epsilon_2, the whole budget, does.",
        lambda split: split.carries(split.first * split.second),
    ),
)
def budget_of_the_prior_decides(split: Split) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_1, the prior's budget, carries a randomizer for epsilon_2."""
    return split.carries(split.first)


def _exact(budget: Budget) -> tuple[Mesh, ...]:
    """Of the last one the best outputs lie beyond the ends."""
    beyond = Setting(tuple(map(Fraction, range(3))), shares((1, 1, 1)), Fraction(2))
    return (*meshes(budget, 4, 12), Mesh(beyond, 80))


@lru_cache(maxsize=1_000)
def _absolute_excess(mesh: Mesh) -> Fraction:
    """Over the interval, where the loss is piecewise linear and outputs at ends and labels suffice."""
    everywhere = sorted({*mesh.ends, *mesh.setting.labels})
    return mesh.least(absolute) - best_on_grid(mesh.setting, everywhere, absolute)[0]


@lru_cache(maxsize=1_000)
def _squared_excess(mesh: Mesh) -> float:
    """From the bound of halved squared loss that is proven for the interval to what is achieved on the grid."""
    outputs = mesh.in_floats
    interval = proven(posed(mesh.setting, optrand.Interval(outputs.low, outputs.high)))[1].lower
    return proven(posed(mesh.setting, outputs))[1].require(PROVEN).upper - interval


@claim(
    "B23",
    "Lemma 8",
    on=_exact,
    given="absolute loss, whose slopes are at most 1; outputs from end to end of debiased randomized response",
)
def loss_grows_by_the_mesh(mesh: Mesh) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta more."""
    return at_most(_absolute_excess(mesh), mesh.size)


@loss_grows_by_the_mesh.false
def _(mesh: Mesh) -> Comparison:
    """The same of a grid between the ends against outputs anywhere on the line."""
    return at_most(mesh.least(absolute) - AbsoluteLoss(mesh.setting).infimum, mesh.size)


@claim(
    "B23",
    "Lemma 8: half is enough",
    kind="ours",
    on=_exact,
    given="as of Lemma 8; half of what the paper says",
    false=Variant("It costs at most 49/100 of Delta more.", share=Fraction(49, 100)),
)
def loss_grows_by_half(mesh: Mesh, share: Fraction = Fraction(1, 2)) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta / 2 more.

    Rounding an output to its neighbours on the grid moves it by at most as much on average.
    """
    return at_most(_absolute_excess(mesh), mesh.size * share)


def _squared(mesh: Mesh, bound: Fraction) -> Comparison:
    return at_most(_squared_excess(mesh) - PROVEN * float(bound), float(bound))


@claim(
    "B23",
    "Lemma 8: squared loss",
    kind="text",
    on=lambda budget: meshes(budget, 6, 20),
    given="halved squared loss; outputs between the ends of debiased randomized response",
    false=Variant("The same with (U - L) / 2 for `U - L`.", share=Fraction(1, 2)),
)
def squared_loss_grows_by_range_and_mesh(mesh: Mesh, share: Fraction = Fraction(1)) -> Comparison:
    """Of halved squared loss, whose slopes are at most U - L, a grid of mesh Delta costs at most (U - L) Delta more."""
    width = (mesh.ends[1] - mesh.ends[0]) * share
    steepest = max(abs(end - y) for end in mesh.ends for y in mesh.setting.labels)
    return worst(at_most(steepest, width), _squared(mesh, width * mesh.size))


@claim(
    "B23",
    "Lemma 8: how loose",
    kind="ours",
    on=lambda budget: meshes(budget, 6, 20),
    given="halved squared loss; sharper than the paper, whose bound is linear in the mesh",
    false=Variant("It costs at most 49/50 of that more.", share=Fraction(49, 50)),
)
def squared_loss_grows_by_a_square(mesh: Mesh, share: Fraction = Fraction(1)) -> Comparison:
    """Of halved squared loss a grid of mesh Delta costs at most Delta^2 / 8 more.

    Rounding an output to its two neighbours on the grid is unbiased and adds a variance of at most Delta^2 / 4.
    """
    return _squared(mesh, share * mesh.size**2 / 8)


@claim(
    "B23",
    "Appendix G.3: finer grids",
    on=lambda budget: meshes(budget, 3, 12),
    given="halved squared loss, grids as Algorithm 2 makes them; exact optima",
    corrected=Variant(
        "It does not grow as the mesh is halved: the new grid holds the old one.",
        lambda mesh: at_most(mesh.least(n=2 * mesh.n - 1), mesh.least()),
    ),
    false=Variant(
        "It gets smaller as the mesh is halved.", lambda mesh: none(int(mesh.least(n=2 * mesh.n - 1) >= mesh.least()))
    ),
)
def finer_is_better(mesh: Mesh) -> Comparison:
    """The least loss on a grid does not grow as its mesh is made smaller, by one more output."""
    return at_most(mesh.least(n=mesh.n + 1), mesh.least())


TABLE = {0: 79.71, 52: 1288.21, 416: 1275.22, 1_664: 1274.71}
"""Noisy label losses of [B23], Appendix G.3, by the mesh size; 0 stands for bins."""


@cache
def weeks_loss(lowest: int, n: int) -> float:
    """Least halved squared loss of weeks worked, from `lowest` to 52, at epsilon 1 with `n` outputs; of bins for 0."""
    with weeks_worked_counts_path().open(newline="") as file:
        labels, counts = np.array([(float(row["label"]), float(row["count"])) for row in csv.DictReader(file)])[
            lowest:
        ].T
    if not n:
        return optrand.certify(optrand.rr_on_bins(labels, counts / counts.sum(), 1.0)).require(PROVEN).upper
    outputs = optrand.feasible_output_set(labels, 1.0, n)
    return proven(optrand.unbiased_regression(labels, counts / counts.sum(), 1.0, outputs=outputs))[1].upper


class Weeks(Instance, lowest="weeks worked 1994-95, epsilon 1, labels to 52 from", n="outputs"):
    """A label set of weeks worked, and a number of outputs, 0 for bins."""

    lowest: int
    n: int


@claim(
    "B23",
    "Appendix G.3: trend",
    on=lambda budget: [
        Weeks(lowest, n) for n in budget.pick(quick=(52,), full=(52, 104, 208, 416)) for lowest in (0, 1)
    ],
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper and those of the data, 0 to 52",
    quantifier="the figures are of the 1940 census, which cannot be had here: only the trend is tried",
    false=Variant("It falls by at most one in a hundred.", lambda weeks: _falls(weeks, 0.99, 1.0)),
)
def finer_meshes_lose_less(weeks: Weeks) -> Comparison:
    """On weeks worked the least loss falls as the mesh gets finer by a factor of eight, by less than 6 in a hundred."""
    return _falls(weeks, 0.94, 1.0)


def _falls(weeks: Weeks, least: float, most: float) -> Comparison:
    coarse, fine = (weeks_loss(weeks.lowest, n) for n in (weeks.n, 8 * weeks.n))
    return worst(at_most(least * coarse, fine), at_most(fine, most * coarse))


@claim(
    "B23",
    "Appendix G.3: figures",
    on=lambda budget: [Weeks(1, n) for n in tuple(TABLE)[: budget.pick(quick=2, full=4)]],
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper",
    quantifier="the figures are of the 1940 census: no more than their size is tried",
    false=Variant("The same of the labels 0 to 52.", lowest=0),
)
def losses_are_near(weeks: Weeks, lowest: int = 1) -> Comparison:
    """Bins and meshes lose what the paper's table says, up to one in thirty."""
    return equal(weeks_loss(lowest, weeks.n), TABLE[weeks.n], tolerance=1 / 30)


@lru_cache(maxsize=1_000)
def _on_line(setting: Setting) -> float:
    """The least halved squared loss on the line, certified."""
    return proven(posed(setting))[1].require(PROVEN).upper


def _large(budget: Budget) -> Iterator[Setting]:
    """The two end labels occur; priors of others are zero or not small, and labels are not far from even."""
    three, large = tuple(map(Fraction, range(3))), Fraction(10**7)
    yield from (Setting(three, shares(weights), large) for weights in ((1, 1, 1), (1, 0, 1)))
    random = seeded(51)
    for _ in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(1, 9), *(random.randint(0, 9) for _ in range(k - 2)), random.randint(1, 9)]
        steps = [Fraction(random.randint(2, 4), 2) for _ in range(k)]
        labels = tuple(sum(steps[:i], Fraction(0)) for i in range(k))
        yield Setting(labels, shares(weights), large)


@claim(
    "B23",
    "Section 3.1: large epsilon",
    on=_large,
    given="halved squared loss, end labels that occur, labels not far from even",
    quantifier="an observation that names no epsilon: tried at exp(epsilon) = 10^7",
    false=Variant(
        "It has that over all labels, also those that never occur.",
        lambda setting: equal(response_loss(setting), _on_line(setting), tolerance=PROVEN),
    ),
)
def response_is_approached(setting: Setting) -> Comparison:
    """At large epsilon the optimal unbiased randomizer has the loss of debiased randomized response.

    Over the two end labels and those that occur; the others are rounded to their neighbours, without bias.
    """
    kept = [i for i, p in enumerate(setting.prior) if p or i in (0, setting.k - 1)]
    labels, weights = (tuple(row[i] for i in kept) for row in (setting.labels, setting.prior))
    occurring = Setting(labels, weights, setting.ratio)
    return equal(response_loss(occurring), _on_line(setting), tolerance=PROVEN)


def _small(budget: Budget) -> Iterator[Setting]:
    """Epsilons of about 0.01, 0.1 and 1, and any priors."""
    ratios, three = (Fraction(101, 100), Fraction(11, 10), Fraction(27, 10)), tuple(map(Fraction, range(3)))
    yield from (Setting(three, shares(w), r) for r in ratios for w in ((1, 1, 1), (0, 1, 0), (1, 0, 0)))
    random = seeded(52)
    for number in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(0, 9) for _ in range(k)]
        yield Setting(label_set(random, k), shares(weights if any(weights) else [1] * k), ratios[number % 3])


@claim(
    "B23",
    "Section 3.1: small epsilon",
    on=_small,
    given="halved squared loss, any labels and prior, epsilon up to 1",
    quantifier="an observation that names no epsilon and no rate: the rate tried is what was measured here",
    false=Variant("They lose at most a share of epsilon^2 / 5 more than the optimum.", part=5),
)
def two_outputs_are_approached(setting: Setting, part: int = 2) -> Comparison:
    """At small epsilon the two outputs of debiased randomized response over the two end labels are nearly optimal.

    For epsilon up to 1 they lose at most a share of epsilon^2 / 2 more than the optimum, which keeps more outputs, in
    general 2 k - 2; they gather at the two.
    """
    ends = response_ends((setting.labels[0], setting.labels[-1]), setting.ratio)
    return at_most(
        float(two_end_loss(setting, *ends)) / _on_line(setting) - 1 - PROVEN, math.log(setting.ratio) ** 2 / part
    )
