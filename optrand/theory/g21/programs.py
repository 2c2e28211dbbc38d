r"""Nothing keeps the label more often than RRWithPrior ([G21], Theorem 3), nor do the optima of the proof's programs.

LP1 asks for the ``K x K`` table of an epsilon-DP randomizer, LP2 for its diagonal only. Both optima are :math:`S =
\max_{\emptyset \neq Y} E / (E + |Y| - 1) \sum_{y \in Y} p_y`, here the largest over all subsets, in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, product
from operator import mul

import numpy as np

from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.programs import lp1, lp2
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.g21.response import ANY_PRIOR, Rows, Task, best_k, kept_labels, objective, tasks, top_k_rows
from optrand.theory.instances import RATIOS, Instance, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["best_subset", "bounds", "vertices_of_lp2"]

SOLVER = 1e-7
"""What an LP solver is forgiven: its own tolerance for feasibility."""

LARGEST_FOR_SOLVERS = Fraction(3000)
"""Beyond this ratio the coefficients of LP1 as printed span more than a solver in floats can tell apart."""

SMALL = f"{ANY_PRIOR} and at most log({LARGEST_FOR_SOLVERS})"
CLOSER = Variant("The same with weights that are closer to 1, ``2 / (1 + exp(epsilon))``.", twice=True)
OFF_BY_ONE = Variant("The same with ``E / (E + |Y|)`` for ``E / (E + |Y| - 1)``.", others=0)
AVERAGE = Variant("The same of the labels that are at least as likely as the average one.", average=True)
ALL = Variant("The same with ``E / (E + K - 1)``, of randomized response on all `K` labels.", of_all=True)

Point = tuple[Fraction, ...]


def kept_by(task: Task, kept: Sequence[int], *, others: int = -1) -> Fraction:
    """Probability that randomized response on some labels keeps the label."""
    return task.ratio * total(task.prior[y] for y in kept) / (task.ratio + len(kept) + others)


def best_subset(task: Task, *, others: int = -1) -> Fraction:
    """`S`, over all subsets of labels."""
    subsets = chain(*(combinations(range(task.size), k) for k in range(1, task.size + 1)))
    return max(kept_by(task, kept, others=others) for kept in subsets)


def bounds(task: Task, multipliers: Point = ()) -> tuple[Fraction, Fraction]:
    """Upper bounds of all epsilon-DP randomizers, and of all feasible points of LP2, whatever the multipliers are.

    Without them, of those that sum to `S`. A column of a table is `c s` with `s` in ``[1, E]^K`` and masses `c` that
    sum to at most 1; no entry of LP2 is above 1.
    """
    if not multipliers:
        best = best_subset(task)
        multipliers = tuple(max(Fraction(0), (task.ratio * p - best) / (task.ratio - 1)) for p in task.prior)
    mass, least = total(multipliers), Fraction(0)
    for v, p in enumerate(task.prior):
        costs = [mu - p * (y == v) for y, mu in enumerate(multipliers)]
        least = min(least, total(costs) + (task.ratio - 1) * total(min(cost, Fraction(0)) for cost in costs))
    slack = (p - mu - (mass - mu) / task.ratio for p, mu in zip(task.prior, multipliers, strict=True))
    return mass - least, mass + total(max(Fraction(0), each) for each in slack)


def _tasks(count: int, *, most: int, seed: int) -> Iterator[Task]:
    """Priors of which keeping one label more is exactly as good, ``E p_(k+1) = w_k``, and others."""
    for size, ratio in product((2, 3, 4), RATIOS):
        last = Fraction(size - 1) / (ratio + size - 2)
        yield Task(tuple(weight / (size - 1 + last) for weight in [Fraction(1)] * (size - 1) + [last]), ratio)
    yield from tasks(count, most=most, seed=seed)


def _any_tasks(budget: Budget) -> Iterator[Task]:
    yield Task((Fraction(1),), Fraction(2))
    yield from _tasks(budget.pick(quick=100, full=3_000), most=budget.pick(quick=7, full=10), seed=4)


def _few_tasks(budget: Budget) -> Iterator[Task]:
    return _tasks(budget.pick(quick=10, full=100), most=budget.pick(quick=4, full=5), seed=6)


def _small_tasks(budget: Budget) -> Iterator[Task]:
    found = _tasks(budget.pick(quick=40, full=600), most=budget.pick(quick=4, full=7), seed=5)
    return (task for task in found if task.ratio <= LARGEST_FOR_SOLVERS)


@claim(
    "G21 Theorem 3",
    on=_any_tasks,
    given=ANY_PRIOR,
    sides=("least bound, or what RRWithPrior's table attains", "what RRWithPrior keeps (probability)"),
)
def nothing_is_better(task: Task) -> Comparison:
    """No epsilon-DP randomizer keeps the label more often than RRWithPrior."""
    kept = rr_with_prior(task.floats, task.epsilon).randomizer.outputs.astype(int).tolist()
    bound, _ = bounds(task)
    return worst(at_most(bound, objective(task.prior, task.listed)), at_most(bound, kept_by(task, kept)))


@nothing_is_better.false
def _(task: Task) -> Comparison:
    """The same where the number of labels is that of the largest ``E / (E + k)`` times their prior."""
    kept = kept_labels(task.prior, best_k(task.prior, task.ratio, others=0))
    return at_most(bounds(task)[0], kept_by(task, kept))


@claim(
    "G21 Theorem 3: closed form",
    kind="ours",
    on=_any_tasks,
    given=ANY_PRIOR,
    sides=("probability kept by the best subset of labels", "probability kept by the package"),
    false=AVERAGE,
)
def closed_form_is_best(task: Task, *, average: bool = False) -> Comparison:
    """The package's RRWithPrior, of one prior and of a batch, keeps the label as often as the best subset of labels."""
    above = [y for y, p in enumerate(task.prior) if p * task.size >= 1]
    wanted = kept_by(task, above) if average else best_subset(task)
    one = rr_with_prior(task.floats, task.epsilon).value
    batch = float(rr_with_prior_batch([task.floats], task.epsilon).objective[0])
    return worst(*(equal(wanted, value, tolerance=1e-12) for value in (one, batch)))


@claim(
    "G21 Theorem 3: LP1",
    kind="text",
    on=_small_tasks,
    given=SMALL,
    sides=("optimum of LP1", "probability kept by the best subset of labels"),
    false=OFF_BY_ONE,
)
def lp1_is_best_subset(task: Task, *, others: int = -1) -> Comparison:
    """The optimum of LP1, with a row for each output and each pair of labels, is that of RRWithPrior."""
    found = lp1(task.floats, task.epsilon).solve().value
    return equal(found, best_subset(task, others=others), tolerance=SOLVER)


@claim(
    "G21 Theorem 3: LP2",
    kind="text",
    on=_small_tasks,
    given=SMALL,
    sides=("optimum of LP2", "probability kept by the best subset of labels"),
    false=OFF_BY_ONE,
)
def lp2_is_best_subset(task: Task, *, others: int = -1) -> Comparison:
    """The optimum of LP2, whose variables are the diagonal only, is that of RRWithPrior."""
    found = lp2(task.floats, task.epsilon).solve().value
    return equal(found, best_subset(task, others=others), tolerance=SOLVER)


class Channel(Instance):
    """A randomizer from labels to labels that is epsilon-DP and otherwise arbitrary."""

    ratio: Fraction
    rows: Rows


def _channels(budget: Budget) -> Iterator[Channel]:
    """Mixtures of randomized responses on some labels, their outputs renamed at random."""
    count = budget.pick(quick=12, full=300)
    for size, ratio, seed in product(range(1, 6), RATIOS, range(count)):
        random = seeded(seed)
        rows = [[Fraction(0)] * size for _ in range(size)]
        for share in prior(random, random.randint(1, 3)):
            part = top_k_rows(prior(random, size), random.randint(1, size), ratio)
            names = list(range(size)) if random.random() < 0.5 else [random.randrange(size) for _ in range(size)]
            for y, v in product(range(size), repeat=2):
                rows[y][names[v]] += share * part[y][v]
        yield Channel(ratio, tuple(map(tuple, rows)))


@claim(
    "G21 Theorem 3: LP1 implies LP2",
    kind="text",
    on=_channels,
    given="any epsilon-DP table",
    sides=("largest row of LP2 at the diagonal", "1"),
    false=CLOSER,
)
def lp1_implies_lp2(channel: Channel, *, twice: bool = False) -> Comparison:
    """The diagonal `q` of an epsilon-DP table has ``q_y + exp(-epsilon) * (sum of the other q) <= 1`` for every `y`."""
    diagonal = [row[y] for y, row in enumerate(channel.rows)]
    discount = 2 / (1 + channel.ratio) if twice else 1 / channel.ratio
    return at_most(max(own + discount * (sum(diagonal) - own) for own in diagonal), 1)


@lru_cache(maxsize=256)
def vertices_of_lp2(size: int, ratio: Fraction) -> frozenset[Point]:
    """The vertices of LP2: the common point of each `size` independent constraints, where it meets the others too."""
    rows = [[Fraction(1) if z == y else 1 / ratio for z in range(size)] for y in range(size)]
    signs = [[Fraction(z == y) for z in range(size + 1)] for y in range(size)]
    found = (_common_point(tight) for tight in combinations([*([*row, Fraction(1)] for row in rows), *signs], size))
    inside = (point for point in found if point and min(point) >= 0)
    return frozenset(point for point in inside if all(total(map(mul, row, point)) <= 1 for row in rows))


def _common_point(equations: Sequence[Sequence[Fraction]]) -> Point | None:
    """The one solution of as many equations as unknowns, by elimination; none where they are not independent."""
    rows = np.array(equations)
    for at in range(len(rows)):
        pivot = next((i for i in range(at, len(rows)) if rows[i, at]), None)
        if pivot is None:
            return None
        rows[[at, pivot]] = rows[[pivot, at]]
        rows[at] = rows[at] / rows[at, at]
        rest = np.arange(len(rows)) != at
        rows[rest] = rows[rest] - np.outer(rows[rest, at], rows[at])
    return tuple(rows[:, -1])


def _flat(budget: Budget) -> Iterator[Task]:
    sizes = range(1, budget.pick(quick=5, full=7))
    return (Task(shares([1] * size), ratio) for size, ratio in product(sizes, (Fraction(1), *RATIOS)))


@claim(
    "G21 Theorem 3: vertices of LP2",
    kind="text",
    on=_flat,
    given="epsilon at least 0",
    sides=("vertices of another form (count)", "zero"),
    false=ALL,
)
def vertices_are_responses(task: Task, *, of_all: bool = False) -> Comparison:
    """A vertex of LP2 is zero, or ``E / (E + |Y| - 1)`` on a non-empty set `Y` of labels and 0 elsewhere."""
    responses = set()
    for inside in product((0, 1), repeat=task.size):
        chance = task.ratio / (task.ratio + ((task.size if of_all else sum(inside)) or 1) - 1)
        responses.add(tuple(kept * chance for kept in inside))
    return none(len(vertices_of_lp2(task.size, task.ratio) - responses))


def _value(task: Task, point: Point) -> Fraction:
    return total(map(mul, task.prior, point))


@claim(
    "G21 Theorem 3: optima at vertices",
    kind="text",
    on=_few_tasks,
    given=ANY_PRIOR,
    sides=("optimum by a dual, or optima that are no vertices (count)", "value at the best vertex, or zero"),
)
def all_optima_are_vertices(task: Task) -> Comparison:
    """Every optimal solution of LP2 is a vertex."""
    vertices, optimum = vertices_of_lp2(task.size, task.ratio), bounds(task)[1]
    best = [point for point in vertices if _value(task, point) == optimum]
    halfway = {tuple((x + y) / 2 for x, y in zip(*pair, strict=True)) for pair in combinations(best, 2)}
    return none(len(halfway - vertices))


@all_optima_are_vertices.corrected
def _(task: Task) -> Comparison:
    """Some optimal solution of LP2 is a vertex: the best vertex attains what a dual says no solution exceeds."""
    return at_most(bounds(task)[1], max(_value(task, point) for point in vertices_of_lp2(task.size, task.ratio)))


@all_optima_are_vertices.false
def _(task: Task) -> Comparison:
    """Some optimal solution is a vertex of one label or of all of them."""
    ends = (point for point in vertices_of_lp2(task.size, task.ratio) if sum(map(bool, point)) in (1, task.size))
    return at_most(bounds(task)[1], max(_value(task, point) for point in ends))
