"""Grids that carry an unbiased randomizer, and their cost ([B23], Proposition 7, Algorithms 2 and 3, Lemma 8, G.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, product, starmap

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.data import weeks_worked_counts_path
from optrand.model.outputs import feasible_output_set
from optrand.solvers.grid.column_generation import ColumnGeneration
from optrand.theory.b23.optima import PROVEN, Mesh, Row, absolute, best_on_grid, meshes, posed, proven, response_ends
from optrand.theory.b23.structure import AbsoluteLoss
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import RATIOS, Instance, Setting, label_set, seeded, settings, shares
from optrand.theory.sums import total

__all__ = ["Weeks", "finer_is_better", "smallest_ratio", "weeks_loss"]


def smallest_ratio(labels: Row, low: Fraction, high: Fraction) -> Fraction | float:
    """Smallest ratio of an unbiased randomizer with outputs between two ends; infinite where a label is an end.

    The two ends alone have it: see :func:`optrand.unbiased_range`.
    """
    if low >= labels[0] or high <= labels[-1]:
        return math.inf
    return max((high - labels[0]) / (high - labels[-1]), (labels[-1] - low) / (labels[0] - low))


@claim(
    "B23 Proposition 7",
    on=lambda budget: settings(budget.pick(quick=300, full=5_000)),
    given="at least two labels, any epsilon above 0",
    sides=("least ratio at which the two outputs are feasible", "exp(epsilon)"),
    false=Variant("The same with both ends a tenth nearer to the labels.", nearer=Fraction(1, 10)),
)
def two_ends_are_enough(setting: Setting, nearer: Fraction = Fraction(0)) -> Comparison:
    """The lowest and the highest output of debiased randomized response carry an unbiased epsilon-DP randomizer."""
    (low, high), first, last = response_ends(setting.labels, setting.ratio), setting.labels[0], setting.labels[-1]
    low, high = low + nearer * (first - low), high - nearer * (high - last)
    return at_most(smallest_ratio(setting.labels, low, high), setting.ratio)


class Triple(Instance):
    """Three positive numbers."""

    a: Fraction
    b: Fraction
    c: Fraction


def _triples(budget: Budget) -> Iterator[Triple]:
    random = seeded(7)
    yield from (Triple(*each) for each in product(map(Fraction, ("1", "2", "1/3")), repeat=3))
    for _ in range(budget.pick(quick=500, full=20_000)):
        yield Triple(*(Fraction(random.randint(1, 1_000), random.randint(1, 1_000)) for _ in range(3)))


@claim(
    "B23 Proposition 7: last step",
    on=_triples,
    given="three positive numbers",
    sides=("(a + b) / (a + c)", "b / c"),
    corrected=Variant(
        "Of positive numbers with `b >= c` it is; in the proof `b / c` is exp(epsilon).",
        order=lambda a, b, c: (a, max(b, c), min(b, c)),
    ),
    false=Variant("Of positive numbers with `a >= c` it is.", order=lambda a, b, c: (max(a, c), b, min(a, c))),
)
def a_summand_shrinks_a_ratio(triple: Triple, order: Callable[..., Row] = lambda *row: row) -> Comparison:
    """Of positive numbers, `(a + b) / (a + c) <= b / c`."""
    a, b, c = order(triple.a, triple.b, triple.c)
    return at_most((a + b) / (a + c), b / c)


class InFloats(Instance):
    """Labels and an epsilon that are floats."""

    labels: tuple[float, ...]
    epsilon: float


def _in_floats(budget: Budget) -> Iterator[InFloats]:
    random = seeded(41)
    yield from (InFloats((0.0, 1.0), epsilon) for epsilon in (0.5, 1.0, 2.0, 5.0, 1e-6, 1e-3, 20.0))
    for _ in range(budget.pick(quick=200, full=10_000)):
        start, k = random.randint(-9, 9), random.choice((2, 2, 3, 6))
        labels = accumulate([random.randint(1, 40) / 8 for _ in range(k)], initial=float(start))
        yield InFloats(tuple(labels)[:k], round(random.uniform(0.05, 8), 2))


@claim(
    "B23 Algorithm 2",
    on=_in_floats,
    given="at least two labels; labels and epsilon are floats, the ends rounded outward as the package does",
    sides=("least ratio at which the two outputs are feasible", "exp(epsilon)"),
    false=Variant("The same with every operation rounded to the nearest float.", nearest=True),
)
def outward_ends_are_enough(given: InFloats, nearest: bool = False) -> Comparison:
    """The lowest and the highest output of Algorithm 2 carry an unbiased epsilon-DP randomizer."""
    labels, outputs = given.labels, feasible_output_set(given.labels, given.epsilon, 2)
    ends, rise = [outputs.low, outputs.high], math.exp(given.epsilon)
    if nearest:
        ends = [((rise + len(labels) - 1) * y - math.fsum(labels)) / (rise - 1) for y in (labels[0], labels[-1])]
    return at_most(smallest_ratio(tuple(map(Fraction, labels)), *map(Fraction, ends)), exp_bracket(given.epsilon)[0])


class Split(Instance, first="exp(epsilon_1)", second="exp(epsilon_2)"):
    """Labels, and the ratios of two budgets: the prior's and the randomizer's."""

    labels: Row
    first: Fraction
    second: Fraction


def _splits(budget: Budget) -> Iterator[Split]:
    random, two = seeded(42), (Fraction(0), Fraction(1))
    yield from (Split(two, *ratios) for ratios in product(RATIOS, repeat=2))
    for _ in range(budget.pick(quick=100, full=3_000)):
        ratios = [1 + Fraction(random.randint(1, 60), random.choice((1, 10))) for _ in range(2)]
        yield Split(label_set(random, random.randint(2, 6)), *ratios)


@claim(
    "B23 Algorithm 3",
    on=_splits,
    given="at least two labels, any two budgets above 0",
    sides=("least ratio at which the two outputs are feasible", "exp(epsilon_2)"),
    corrected=Variant("The grid for epsilon_2, the budget of the labels, does.", ratio=lambda split: split.second),
    false=Variant(
        "The grid for epsilon_1 + epsilon_2, the whole budget, does.", ratio=lambda split: split.first * split.second
    ),
)
def budget_of_the_prior_decides(
    split: Split, ratio: Callable[[Split], Fraction] = lambda split: split.first
) -> Comparison:
    """The grid that Algorithm 2 makes for epsilon_1, the prior's budget, carries a randomizer for epsilon_2."""
    return at_most(smallest_ratio(split.labels, *response_ends(split.labels, ratio(split))), split.second)


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
    "B23 Lemma 8",
    on=_exact,
    given="absolute loss; outputs from end to end of debiased randomized response",
    sides=("loss on the grid above the least one", "mesh"),
)
def loss_grows_by_the_mesh(mesh: Mesh) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta more."""
    return at_most(_absolute_excess(mesh), mesh.size)


@loss_grows_by_the_mesh.false
def _(mesh: Mesh) -> Comparison:
    """The same of a grid between the ends against outputs anywhere on the line."""
    return at_most(mesh.least(absolute) - AbsoluteLoss(mesh.setting).infimum, mesh.size)


@claim(
    "B23 Lemma 8: half is enough",
    kind="ours",
    on=_exact,
    given="as of Lemma 8; half of what the paper says",
    sides=("loss on the grid above the least one", "share of the mesh"),
    false=Variant("It costs at most 49/100 of Delta more.", share=Fraction(49, 100)),
)
def loss_grows_by_half(mesh: Mesh, share: Fraction = Fraction(1, 2)) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta / 2 more."""
    return at_most(_absolute_excess(mesh), mesh.size * share)


def _squared(mesh: Mesh, bound: Fraction) -> Comparison:
    return at_most(_squared_excess(mesh) - PROVEN * float(bound), float(bound))


@claim(
    "B23 Lemma 8: squared loss",
    kind="text",
    on=lambda budget: meshes(budget, 6, 20),
    given="halved squared loss; outputs between the ends of debiased randomized response",
    sides=("loss above the least one, or the steepest slope", "bound"),
    false=Variant("The same with (U - L) / 2 for `U - L`.", share=Fraction(1, 2)),
)
def squared_loss_grows_by_range_and_mesh(mesh: Mesh, share: Fraction = Fraction(1)) -> Comparison:
    """Of halved squared loss, whose slopes are at most U - L, a grid of mesh Delta costs at most (U - L) Delta more."""
    width = (mesh.ends[1] - mesh.ends[0]) * share
    steepest = max(abs(end - y) for end in mesh.ends for y in mesh.setting.labels)
    return worst(at_most(steepest, width), _squared(mesh, width * mesh.size))


@claim(
    "B23 Lemma 8: how loose",
    kind="ours",
    on=lambda budget: meshes(budget, 6, 20),
    given="halved squared loss; sharper than the paper, whose bound is linear in the mesh",
    sides=("loss on the grid above the least one", "bound"),
    false=Variant("It costs at most 49/50 of that more.", share=Fraction(49, 50)),
)
def squared_loss_grows_by_a_square(mesh: Mesh, share: Fraction = Fraction(1)) -> Comparison:
    """Of halved squared loss a grid of mesh Delta costs at most Delta^2 / 8 more."""
    return _squared(mesh, share * mesh.size**2 / 8)


@claim(
    "B23 Appendix G.3: finer grids",
    on=lambda budget: meshes(budget, 3, 12),
    given="halved squared loss, grids as Algorithm 2 makes them; exact optima",
    sides=("least loss on the finer grid", "least loss on the coarser grid"),
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

ROUNDS = 12
"""Most masters of a mesh: two are enough, unless the first columns are wrong, where each new one takes longer."""


@cache
def weeks_loss(lowest: int, n: int) -> float:
    """Least halved squared loss of weeks worked, from `lowest` to 52, at epsilon 1 with `n` outputs; of bins for 0."""
    table = np.loadtxt(weeks_worked_counts_path(), delimiter=",", skiprows=1)[lowest:]
    labels, prior = table[:, 0], table[:, 1] / table[:, 1].sum()
    if not n:
        return optrand.certify(optrand.rr_on_bins(labels, prior, 1.0)).require(PROVEN).upper
    problem = optrand.unbiased_regression(labels, prior, 1.0, outputs=optrand.feasible_output_set(labels, 1.0, n))
    return proven(problem, ColumnGeneration(rounds=ROUNDS))[1].require(PROVEN).upper


class Weeks(Instance, lowest="weeks worked 1994-95, epsilon 1, labels to 52 from", n="outputs"):
    """A label set of weeks worked, and a number of outputs, 0 for bins."""

    lowest: int
    n: int


@claim(
    "B23 Appendix G.3: trend",
    on=lambda budget: starmap(Weeks, product((0, 1), budget.pick(quick=(52,), full=(52, 104, 208, 416)))),
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper and those of the data, 0 to 52",
    sides=("least loss on the finer grid, or most of the other", "least loss on the coarser grid, or of the finer"),
    quantifier="the figures are of the 1940 census, which cannot be had here: only the trend is tried",
    false=Variant("It falls by at most one in a hundred.", least=0.99),
)
def finer_meshes_lose_less(weeks: Weeks, least: float = 0.94) -> Comparison:
    """On weeks worked the least loss falls as the mesh gets finer by a factor of eight, by less than 6 in a hundred."""
    coarse, fine = (weeks_loss(weeks.lowest, n) for n in (weeks.n, 8 * weeks.n))
    return worst(at_most(least * coarse, fine), at_most(fine, coarse))


@claim(
    "B23 Appendix G.3: figures",
    on=lambda budget: [Weeks(1, n) for n in tuple(TABLE)[: budget.pick(quick=2, full=4)]],
    given="weeks worked of another census, epsilon 1, the labels 1 to 52 of the paper",
    sides=("loss as computed", "loss as printed"),
    quantifier="the figures are of the 1940 census: no more than their size is tried",
    false=Variant("The same of the labels 0 to 52.", lowest=0),
)
def losses_are_near(weeks: Weeks, lowest: int = 1) -> Comparison:
    """Bins and meshes lose what the paper's table says, up to one in thirty."""
    return equal(weeks_loss(lowest, weeks.n), TABLE[weeks.n], tolerance=1 / 30)


def two_end_loss(setting: Setting, low: Fraction, high: Fraction) -> Fraction:
    """Halved squared loss of the only unbiased randomizer with two outputs: the variance ``(high - y) (y - low)``."""
    return total(p * (high - y) * (y - low) / 2 for p, y in zip(setting.prior, setting.labels, strict=True))


def response_loss(setting: Setting) -> float:
    """Halved squared loss of the package's debiased randomized response."""
    labels, weights = ([float(x) for x in row] for row in (setting.labels, setting.prior))
    return optrand.debiased_rr(labels, math.log(setting.ratio), prior=weights).value


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
        labels = accumulate([Fraction(random.randint(2, 4), 2) for _ in range(k)], initial=Fraction(0))
        yield Setting(tuple(labels)[:k], shares(weights), large)


@claim(
    "B23 Section 3.1: large epsilon",
    on=_large,
    given="halved squared loss, end labels that occur, labels not far from even",
    sides=("loss of debiased randomized response", "optimum"),
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
    "B23 Section 3.1: small epsilon",
    on=_small,
    given="halved squared loss, any labels and prior, epsilon up to 1",
    sides=("relative loss of two outputs above the optimum", "bound, in epsilon^2"),
    quantifier="an observation that names no epsilon and no rate: the rate tried is what was measured here",
    false=Variant("They lose at most a share of epsilon^2 / 5 more than the optimum.", part=5),
)
def two_outputs_are_approached(setting: Setting, part: int = 2) -> Comparison:
    """At small epsilon the two outputs of debiased randomized response over the two end labels are nearly optimal.

    For epsilon up to 1 they lose at most a share of epsilon^2 / 2 more than the optimum.
    """
    ends = response_ends((setting.labels[0], setting.labels[-1]), setting.ratio)
    return at_most(
        float(two_end_loss(setting, *ends)) / _on_line(setting) - 1 - PROVEN, math.log(setting.ratio) ** 2 / part
    )
