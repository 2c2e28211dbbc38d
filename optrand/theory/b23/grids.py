"""Grids that carry an unbiased randomizer, and their cost ([B23], Proposition 7, Algorithms 2 and 3, Lemma 8, G.3)."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, cached_property, lru_cache

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.data import weeks_worked_counts_path
from optrand.model.outputs import feasible_output_set
from optrand.theory.b23.optima import (
    PROVEN,
    Row,
    absolute,
    best_on_grid,
    grid,
    half_square,
    posed,
    proven,
    response_ends,
    response_loss,
    two_end_loss,
)
from optrand.theory.b23.structure import AbsoluteLoss
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import RATIOS, Instance, Setting, label_set, prior, seeded, settings, shares

__all__ = ["Mesh", "Weeks", "finer_is_better", "smallest_ratio", "weeks_loss"]


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


@claim("B23", "Proposition 7", part="last step", on=_triples, given="three positive numbers")
def a_summand_shrinks_a_ratio(triple: Triple) -> Comparison:
    """Of positive numbers, `(a + b) / (a + c) <= b / c`."""
    return at_most((triple.a + triple.b) / (triple.a + triple.c), triple.b / triple.c)


@a_summand_shrinks_a_ratio.corrected
def _(triple: Triple) -> Comparison:
    """Of positive numbers with `b >= c`, `(a + b) / (a + c) <= b / c`; in the proof `b / c` is exp(epsilon)."""
    larger, smaller = max(triple.b, triple.c), min(triple.b, triple.c)
    return at_most((triple.a + larger) / (triple.a + smaller), larger / smaller)


@a_summand_shrinks_a_ratio.false
def _(triple: Triple) -> Comparison:
    """Of positive numbers with `a >= c`, `(a + b) / (a + c) <= b / c`."""
    larger, smaller = max(triple.a, triple.c), min(triple.a, triple.c)
    return at_most((larger + triple.b) / (larger + smaller), triple.b / smaller)


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


class Mesh(Instance, setting="", n="outputs from end to end"):
    """A setting and `n` outputs from the lowest to the highest one of debiased randomized response."""

    setting: Setting
    n: int

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """`L` and `U`."""
        return response_ends(self.setting.labels, self.setting.ratio)

    @property
    def size(self) -> Fraction:
        """`Delta`."""
        return (self.ends[1] - self.ends[0]) / (self.n - 1)

    def least(self, n: int) -> Fraction:
        """The least halved squared loss with `n` outputs."""
        return best_on_grid(self.setting, grid(self.setting, n), half_square)[0]

    @cached_property
    def absolute_loss(self) -> Fraction:
        """The least absolute loss."""
        return best_on_grid(self.setting, grid(self.setting, self.n), absolute)[0]

    @cached_property
    def absolute_excess(self) -> Fraction:
        """Over the interval, where the loss is piecewise linear and outputs at ends and labels suffice."""
        everywhere = sorted({*self.ends, *self.setting.labels})
        return self.absolute_loss - best_on_grid(self.setting, everywhere, absolute)[0]

    @cached_property
    def squared_excess(self) -> float:
        """Of halved squared loss: from the bound that is proven for the interval to what is achieved on the grid."""
        outputs = feasible_output_set([float(y) for y in self.setting.labels], math.log(self.setting.ratio), self.n)
        interval = proven(posed(self.setting, optrand.Interval(outputs.low, outputs.high)))[1].lower
        return proven(posed(self.setting, outputs))[1].require(PROVEN).upper - interval


@lru_cache(maxsize=6)
def _meshes(budget: Budget, most: int, quick: int) -> tuple[Mesh, ...]:
    """Shared by several claims, which so find each optimum once."""
    three = Setting(tuple(map(Fraction, range(3))), (Fraction(1, 3),) * 3, Fraction(3))
    made = [
        Mesh(Setting(three.labels[:2], (Fraction(1, 2),) * 2, Fraction(2)), 2),
        *(Mesh(three, n) for n in (2, 3, 6)),
    ]
    # All the prior between two outputs: as E grows, the excess is that of rounding at its worst place.
    made.append(Mesh(Setting(three.labels, shares((0, 1, 0)), Fraction(1_000)), 2))
    # The best outputs lie beyond the ends.
    made.append(Mesh(Setting(three.labels, three.prior, Fraction(2)), 80))
    random = seeded(31)
    for _ in range(budget.pick(quick=quick, full=20 * quick)):
        k = random.randint(2, most)
        setting = Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(1, 60), 10))
        made.append(Mesh(setting, random.randint(2, 10)))
    return tuple(made)


def _exact(budget: Budget) -> tuple[Mesh, ...]:
    return _meshes(budget, 4, 25)


def _certified(budget: Budget) -> tuple[Mesh, ...]:
    return _meshes(budget, 6, 25)


def _short(budget: Budget) -> Iterator[Mesh]:
    return (mesh for mesh in _meshes(budget, 3, 12) if mesh.n < 20)


@claim(
    "B23",
    "Lemma 8",
    on=_exact,
    given="absolute loss, whose slopes are at most 1; outputs from end to end of debiased randomized response",
)
def loss_grows_by_the_mesh(mesh: Mesh) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta more."""
    return at_most(mesh.absolute_excess, mesh.size)


@loss_grows_by_the_mesh.false
def _(mesh: Mesh) -> Comparison:
    """The same of a grid between the ends against outputs anywhere on the line."""
    return at_most(mesh.absolute_loss - AbsoluteLoss(mesh.setting).infimum, mesh.size)


@claim(
    "B23",
    "Lemma 8",
    part="half is enough",
    kind="ours",
    on=_exact,
    given="as of Lemma 8; half of what the paper says",
    false=Variant("It costs at most 49/100 of Delta more.", share=Fraction(49, 100)),
)
def loss_grows_by_half(mesh: Mesh, share: Fraction = Fraction(1, 2)) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta / 2 more.

    Rounding an output to its neighbours on the grid moves it by at most as much on average.
    """
    return at_most(mesh.absolute_excess, mesh.size * share)


def _squared(mesh: Mesh, bound: Fraction) -> Comparison:
    return at_most(mesh.squared_excess - PROVEN * float(bound), float(bound))


@claim(
    "B23",
    "Lemma 8",
    part="squared loss",
    on=_certified,
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
    "Lemma 8",
    part="how loose",
    kind="ours",
    on=_certified,
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
    "Appendix G.3",
    part="finer grids",
    on=_short,
    given="halved squared loss, grids as Algorithm 2 makes them; exact optima",
    corrected=Variant(
        "It does not grow as the mesh is halved: the new grid holds the old one.",
        lambda mesh: at_most(mesh.least(2 * mesh.n - 1), mesh.least(mesh.n)),
    ),
    false=Variant(
        "It gets smaller as the mesh is halved.",
        lambda mesh: none(int(mesh.least(2 * mesh.n - 1) >= mesh.least(mesh.n))),
    ),
)
def finer_is_better(mesh: Mesh) -> Comparison:
    """The least loss on a grid does not grow as its mesh is made smaller, by one more output."""
    return at_most(mesh.least(mesh.n + 1), mesh.least(mesh.n))


MESHES = (52, 416, 1_664, 104, 208, 832)
"""Mesh sizes, those of [B23], Appendix G.3, first."""


@lru_cache(maxsize=2)
def _weeks(lowest: int) -> tuple[list[float], list[float]]:
    """Labels from `lowest` to 52, and their shares."""
    with weeks_worked_counts_path().open(newline="") as file:
        rows = [(float(row["label"]), float(row["count"])) for row in csv.DictReader(file)]
    labels, counts = np.array(rows)[lowest:].T
    return labels.tolist(), (counts / counts.sum()).tolist()


@cache
def weeks_loss(lowest: int, n: int) -> float:
    """Least halved squared loss of weeks worked at epsilon 1 with `n` outputs; of bins for 0 outputs."""
    labels, weights = _weeks(lowest)
    if not n:
        return optrand.certify(optrand.rr_on_bins(labels, weights, 1.0)).require(PROVEN).upper
    outputs = optrand.feasible_output_set(labels, 1.0, n)
    return proven(optrand.unbiased_regression(labels, weights, 1.0, outputs=outputs))[1].require(PROVEN).upper


class Weeks(Instance, lowest="weeks worked 1994-95, epsilon 1, labels to 52 from"):
    """A label set of weeks worked, and two numbers of outputs."""

    lowest: int
    coarse: int
    fine: int


def _two_meshes(budget: Budget) -> Iterator[Weeks]:
    sizes = sorted(MESHES[: budget.pick(quick=2, full=len(MESHES))])
    yield from (Weeks(lowest, a, b) for lowest in (0, 1) for b in sizes for a in sizes if a < b)


@claim(
    "B23",
    "Appendix G.3",
    part="trend",
    on=_two_meshes,
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper and those of the data, 0 to 52",
    quantifier="the figures are of the 1940 census, which cannot be had here: only the trend is tried",
)
def finer_meshes_lose_less(weeks: Weeks) -> Comparison:
    """On weeks worked the least loss falls as the mesh gets finer."""
    return at_most(weeks_loss(weeks.lowest, weeks.fine), weeks_loss(weeks.lowest, weeks.coarse))


@finer_meshes_lose_less.false
def _(weeks: Weeks) -> Comparison:
    """No finer mesh lowers the loss by more than one in a hundred."""
    return at_most(weeks_loss(weeks.lowest, weeks.coarse), 1.01 * weeks_loss(weeks.lowest, weeks.fine))


TABLE = {0: 79.71, 52: 1288.21, 416: 1275.22, 1_664: 1274.71}
"""Noisy label losses of [B23], Appendix G.3, by the mesh size; 0 stands for bins."""


def _figures(budget: Budget) -> Iterator[Weeks]:
    yield from (Weeks(1, n, n) for n in budget.pick(quick=(0, 52), full=tuple(TABLE)))


@claim(
    "B23",
    "Appendix G.3",
    part="figures",
    on=_figures,
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper",
    quantifier="the figures are of the 1940 census: no more than their size is tried",
    false=Variant("The same of the labels 0 to 52.", lowest=0),
)
def losses_are_near(weeks: Weeks, lowest: int = 1) -> Comparison:
    """Bins and meshes lose what the paper's table says, up to one in thirty."""
    return equal(weeks_loss(lowest, weeks.fine), TABLE[weeks.fine], tolerance=1 / 30)


class Solved(Instance, setting=""):
    """A setting and its certified optimum on the line."""

    setting: Setting

    @cached_property
    def loss(self) -> float:
        """The least halved squared loss, certified."""
        return proven(posed(self.setting))[1].require(PROVEN).upper

    @property
    def occurring(self) -> Setting:
        """Without the labels between the two end labels that never occur."""
        kept = [i for i, p in enumerate(self.setting.prior) if p or i in (0, self.setting.k - 1)]
        labels, weights = (tuple(row[i] for i in kept) for row in (self.setting.labels, self.setting.prior))
        return Setting(labels, weights, self.setting.ratio)


def _large(budget: Budget) -> Iterator[Solved]:
    """The two end labels occur; priors of others are zero or not small, and labels are not far from even."""
    three, large = tuple(map(Fraction, range(3))), Fraction(10**7)
    yield from (Solved(Setting(three, shares(weights), large)) for weights in ((1, 1, 1), (1, 0, 1)))
    random = seeded(51)
    for _ in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(1, 9), *(random.randint(0, 9) for _ in range(k - 2)), random.randint(1, 9)]
        steps = [Fraction(random.randint(2, 4), 2) for _ in range(k)]
        labels = tuple(sum(steps[:i], Fraction(0)) for i in range(k))
        yield Solved(Setting(labels, shares(weights), large))


@claim(
    "B23",
    "Section 3.1",
    part="large epsilon",
    on=_large,
    given="halved squared loss, end labels that occur, labels not far from even",
    quantifier="an observation that names no epsilon: tried at exp(epsilon) = 10^7",
    false=Variant(
        "It has that over all labels, also those that never occur.",
        lambda solved: equal(float(response_loss(solved.setting)), solved.loss, tolerance=PROVEN),
    ),
)
def response_is_approached(solved: Solved) -> Comparison:
    """At large epsilon the optimal unbiased randomizer has the loss of debiased randomized response.

    Over the two end labels and those that occur; the others are rounded to their neighbours, without bias.
    """
    return equal(float(response_loss(solved.occurring)), solved.loss, tolerance=PROVEN)


def _small(budget: Budget) -> Iterator[Solved]:
    """Epsilons of about 0.01, 0.1 and 1, and any priors."""
    ratios, three = (Fraction(101, 100), Fraction(11, 10), Fraction(27, 10)), tuple(map(Fraction, range(3)))
    yield from (Solved(Setting(three, shares(w), r)) for r in ratios for w in ((1, 1, 1), (0, 1, 0), (1, 0, 0)))
    random = seeded(52)
    for number in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(0, 9) for _ in range(k)]
        yield Solved(Setting(label_set(random, k), shares(weights if any(weights) else [1] * k), ratios[number % 3]))


@claim(
    "B23",
    "Section 3.1",
    part="small epsilon",
    on=_small,
    given="halved squared loss, any labels and prior, epsilon up to 1",
    quantifier="an observation that names no epsilon and no rate: the rate tried is what was measured here",
    false=Variant("They lose at most a share of epsilon^2 / 5 more than the optimum.", part=5),
)
def two_outputs_are_approached(solved: Solved, part: int = 2) -> Comparison:
    """At small epsilon the two outputs of debiased randomized response over the two end labels are nearly optimal.

    For epsilon up to 1 they lose at most a share of epsilon^2 / 2 more than the optimum, which keeps more outputs, in
    general 2 k - 2; they gather at the two.
    """
    setting = solved.setting
    ends = response_ends((setting.labels[0], setting.labels[-1]), setting.ratio)
    return at_most(float(two_end_loss(setting, *ends)) / solved.loss - 1 - PROVEN, math.log(setting.ratio) ** 2 / part)
