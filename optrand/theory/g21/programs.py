r"""Nothing keeps the label more often than RRWithPrior ([G21], Theorem 3), nor do the optima of the proof's programs.

LP1 asks for the ``K x K`` table of an epsilon-DP randomizer, LP2 for its diagonal only. Both optima are :math:`S =
\max_{\emptyset \neq Y} E / (E + |Y| - 1) \sum_{y \in Y} p_y`, here the largest over all subsets, in fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, product
from operator import mul
from random import Random
from typing import Any

import numpy as np

from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.programs import lp1, lp2
from optrand.theory.engine import Comparison, Space, at_most, claim, corrected, draws, equal, false
from optrand.theory.g21.response import ANY_PRIOR, Rows, Task, best_k, kept_labels, objective, tasks, top_k_rows
from optrand.theory.instances import RATIOS, prior
from optrand.theory.sums import total

SOLVER = 1e-7
"""Tolerance of an LP solver: its own for feasibility."""

LARGEST_FOR_SOLVERS = Fraction(3000)
"""Beyond this ratio the coefficients of LP1 as printed span more than a solver in floats can tell apart."""

SMALL = f"{ANY_PRIOR} and at most log({LARGEST_FOR_SOLVERS})"

Point = tuple[Fraction, ...]


def kept_by(task: Task, kept: Sequence[int], *, others: int = -1) -> Fraction:
    """Return the probability that randomized response on some labels keeps the label."""
    return task.ratio * total(task.prior[y] for y in kept) / (task.ratio + len(kept) + others)


def best_subset(task: Task, *, others: int = -1) -> Fraction:
    """Return `S`, over all subsets of labels."""
    subsets = chain(*(combinations(range(task.size), k) for k in range(1, task.size + 1)))
    return max(kept_by(task, kept, others=others) for kept in subsets)


def bounds(task: Task, multipliers: Point = ()) -> tuple[Fraction, Fraction]:
    """Return upper bounds of all epsilon-DP randomizers, and of all feasible points of LP2, from any multipliers.

    Without multipliers, from those that sum to `S`. A column of a table is `c s` with `s` in ``[1, E]^K`` and masses
    `c` that sum to at most 1; no entry of LP2 is above 1.
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


def _ties(_: int) -> Iterable[Task]:
    """Yield priors for which keeping one label more is exactly as good: ``E p_(k+1)`` is the objective."""
    for size, ratio in product((2, 3, 4), RATIOS):
        last = Fraction(size - 1) / (ratio + size - 2)
        yield Task(tuple(weight / (size - 1 + last) for weight in [Fraction(1)] * (size - 1) + [last]), ratio)


def _all_tasks(count: int, most: int) -> tuple[Space, ...]:
    return (lambda _: [Task((Fraction(1),), Fraction(2))]), _ties, tasks(count, most=most)


ANY = _all_tasks(60, most=7)


def _keep_by_another_rule(task: Task) -> Comparison:
    kept = kept_labels(task.prior, best_k(task.prior, task.ratio, others=0))
    return at_most(bounds(task)[0], kept_by(task, kept))


@claim("G21 Theorem 3", *ANY, given=f"{ANY_PRIOR}; RRWithPrior as printed, and with the labels that the package keeps")
@false(
    "The same where the number of labels is that of the largest ``E / (E + k)`` times their prior.",
    _keep_by_another_rule,
)
def nothing_is_better(task: Task) -> Comparison:
    """No epsilon-DP randomizer keeps the label more often than RRWithPrior."""
    kept = rr_with_prior(task.floats, task.epsilon).randomizer.outputs.astype(int).tolist()
    return at_most(bounds(task)[0], [objective(task.prior, task.listed), kept_by(task, kept)])


@claim(
    "G21 Theorem 3: closed form", *ANY, given=f"{ANY_PRIOR}; values that the package states, of one prior and a batch"
)
@false("The same of the labels that are at least as likely as the average one.", average=True)
def closed_form_is_best(task: Task, *, average: bool = False) -> Comparison:
    """RRWithPrior keeps the label as often as the best subset of labels."""
    above = [y for y, p in enumerate(task.prior) if p * task.size >= 1]
    one = rr_with_prior(task.floats, task.epsilon).value
    batch = float(rr_with_prior_batch([task.floats], task.epsilon).objective[0])
    return equal([one, batch], kept_by(task, above) if average else best_subset(task), tolerance=1e-12)


def _is_small(task: Task) -> bool:
    return task.ratio <= LARGEST_FOR_SOLVERS


@claim("G21 Theorem 3: LP1", *_all_tasks(20, most=4), given=SMALL, where=_is_small)
@false("The same with ``E / (E + |Y|)`` for ``E / (E + |Y| - 1)``.", others=0)
def lp1_is_best_subset(task: Task, *, others: int = -1) -> Comparison:
    """The optimum of LP1, with a row for each output and each pair of labels, is that of RRWithPrior."""
    return equal(lp1(task.floats, task.epsilon).solve().value, best_subset(task, others=others), tolerance=SOLVER)


@claim("G21 Theorem 3: LP2", *_all_tasks(20, most=4), given=SMALL, where=_is_small)
@false("The same with ``E / (E + |Y|)`` for ``E / (E + |Y| - 1)``.", others=0)
def lp2_is_best_subset(task: Task, *, others: int = -1) -> Comparison:
    """The optimum of LP2, whose variables are the diagonal only, is that of RRWithPrior."""
    return equal(lp2(task.floats, task.epsilon).solve().value, best_subset(task, others=others), tolerance=SOLVER)


def _draw_channel(draw: Random) -> dict[str, Any]:
    """Return a mixture of randomized responses on some labels, their outputs renamed at random."""
    size, ratio = draw.randint(1, 5), draw.choice(RATIOS)
    rows = [[Fraction(0)] * size for _ in range(size)]
    for share in prior(draw, draw.randint(1, 3)):
        part = top_k_rows(prior(draw, size), draw.randint(1, size), ratio)
        names = list(range(size)) if draw.random() < 0.5 else [draw.randrange(size) for _ in range(size)]
        for y, v in product(range(size), repeat=2):
            rows[y][names[v]] += share * part[y][v]
    return {"ratio": ratio, "rows": tuple(map(tuple, rows))}


@claim("G21 Theorem 3: LP1 implies LP2", draws(200, _draw_channel), given="any epsilon-DP table")
@false(
    "The same with weights that are closer to 1, ``2 / (1 + exp(epsilon))``.", discount=lambda ratio: 2 / (1 + ratio)
)
def lp1_implies_lp2(
    ratio: Fraction, rows: Rows, discount: Callable[[Fraction], Fraction] = lambda ratio: 1 / ratio
) -> Comparison:
    """The diagonal `q` of an epsilon-DP table has ``q_y + exp(-epsilon) * (sum of the other q) <= 1`` for every `y`."""
    diagonal = [row[y] for y, row in enumerate(rows)]
    return at_most([own + discount(ratio) * (sum(diagonal) - own) for own in diagonal], 1)


@lru_cache(maxsize=256)
def vertices_of_lp2(size: int, ratio: Fraction) -> frozenset[Point]:
    """Return the vertices of LP2: common points of `size` independent constraints that meet the others too."""
    rows = [[Fraction(1) if z == y else 1 / ratio for z in range(size)] for y in range(size)]
    signs = [[Fraction(z == y) for z in range(size + 1)] for y in range(size)]
    found = (_common_point(tight) for tight in combinations([*([*row, Fraction(1)] for row in rows), *signs], size))
    inside = (point for point in found if point and min(point) >= 0)
    return frozenset(point for point in inside if all(total(map(mul, row, point)) <= 1 for row in rows))


def _common_point(equations: Sequence[Sequence[Fraction]]) -> Point | None:
    """Return the one solution of as many equations as unknowns, by elimination; None if they are not independent."""
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


@claim("G21 Theorem 3: vertices of LP2", size=range(1, 5), ratio=(Fraction(1), *RATIOS), given="epsilon at least 0")
@false("The same with ``E / (E + K - 1)``, of randomized response on all `K` labels.", of_all=True)
def vertices_are_responses(size: int, ratio: Fraction, *, of_all: bool = False) -> Comparison:
    """A vertex of LP2 is zero, or ``E / (E + |Y| - 1)`` on a non-empty set `Y` of labels and 0 elsewhere."""
    responses = set()
    for inside in product((0, 1), repeat=size):
        chance = ratio / (ratio + ((size if of_all else sum(inside)) or 1) - 1)
        responses.add(tuple(kept * chance for kept in inside))
    return equal(len(vertices_of_lp2(size, ratio) - responses), 0)


def _gain(task: Task, point: Point) -> Fraction:
    return total(map(mul, task.prior, point))


def _compare_vertices(task: Task, sizes: Iterable[int]) -> Comparison:
    """Compare the bound of LP2 with the best vertex that has one of these numbers of labels."""
    ends = [point for point in vertices_of_lp2(task.size, task.ratio) if sum(map(bool, point)) in sizes]
    return at_most(bounds(task)[1], max(_gain(task, point) for point in ends))


@claim("G21 Theorem 3: optima at vertices", *_all_tasks(10, most=4), given=f"{ANY_PRIOR}; middles of two best vertices")
@corrected(
    "Some optimal solution of LP2 is a vertex: the best vertex attains what a dual says no solution exceeds.",
    lambda task: _compare_vertices(task, range(task.size + 1)),
)
@false(
    "Some optimal solution is a vertex of one label or of all of them.",
    lambda task: _compare_vertices(task, (1, task.size)),
)
def all_optima_are_vertices(task: Task) -> Comparison:
    """Every optimal solution of LP2 is a vertex."""
    vertices, optimum = vertices_of_lp2(task.size, task.ratio), bounds(task)[1]
    best = [point for point in vertices if _gain(task, point) == optimum]
    halfway = {tuple((x + y) / 2 for x, y in zip(*pair, strict=True)) for pair in combinations(best, 2)}
    return equal(len(halfway - vertices), 0)
