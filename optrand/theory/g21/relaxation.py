"""The steps of the proof of [G21], Theorem 3: from LP1 to LP2, and to the vertices of LP2."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none
from optrand.theory.g21.programs import ANY_PRIOR, Task, task, tied_tasks
from optrand.theory.g21.response import Rows, top_k_rows
from optrand.theory.instances import RATIOS, listed, prior, settings

__all__ = ["CLAIMS", "vertices_of_lp2"]

Point = tuple[Fraction, ...]


@dataclass(frozen=True)
class _Channel:
    """A randomizer from labels to labels that is epsilon-DP and otherwise arbitrary."""

    size: int
    ratio: Fraction
    seed: int

    def __str__(self) -> str:
        return f"E = {self.ratio}, table {'; '.join(map(listed, self.rows))}"

    @cached_property
    def rows(self) -> Rows:
        """A mixture of randomized responses on some labels, their outputs renamed at random."""
        random = Random(self.seed)  # noqa: S311
        parts = random.randint(1, 3)
        shares = prior(random, parts)
        rows = [[Fraction(0)] * self.size for _ in range(self.size)]
        for share in shares:
            part = top_k_rows(prior(random, self.size), random.randint(1, self.size), self.ratio)
            names = list(range(self.size))
            if random.random() < 0.5:
                names = [random.randrange(self.size) for _ in names]
            for y, v in itertools.product(range(self.size), repeat=2):
                rows[y][names[v]] += share * part[y][v]
        return tuple(map(tuple, rows))

    def row_of_lp2(self, discount: Fraction) -> Fraction:
        """The largest ``q_y + discount * (the other q)`` over the labels."""
        diagonal = [self.rows[y][y] for y in range(self.size)]
        return max(own + discount * (sum(diagonal) - own) for own in diagonal)


def _channels(budget: Budget) -> Iterator[_Channel]:
    count = budget.pick(quick=12, full=300)
    return (_Channel(size, ratio, seed) for size in range(1, 6) for ratio in RATIOS for seed in range(count))


def lp1_implies_lp2(channel: _Channel) -> Comparison:
    """The diagonal `q` of an epsilon-DP table has ``q_y + exp(-epsilon) * (sum of the other q) <= 1`` for every `y`."""
    return at_most(channel.row_of_lp2(1 / channel.ratio), 1)


def lp1_implies_more_than_lp2(channel: _Channel) -> Comparison:
    """The same with weights that are closer to 1, ``2 / (1 + exp(epsilon))``."""
    return at_most(channel.row_of_lp2(2 / (1 + channel.ratio)), 1)


@dataclass(frozen=True)
class _Polytope:
    """LP2 without its objective."""

    size: int
    ratio: Fraction

    def __str__(self) -> str:
        return f"{self.size} labels, E = {self.ratio}"

    @property
    def vertices(self) -> frozenset[Point]:
        """All vertices."""
        return vertices_of_lp2(self.size, self.ratio)

    def responses(self, *, size: int | None = None) -> frozenset[Point]:
        """Zero, and the diagonals of randomized response on each subset, or with the chances of one on `size`."""
        found = set()
        for inside in itertools.product((False, True), repeat=self.size):
            others = (sum(inside) if size is None else size) - 1
            found.add(tuple(self.ratio / (self.ratio + others) if kept else Fraction(0) for kept in inside))
        return frozenset(found)


@lru_cache(maxsize=256)
def vertices_of_lp2(size: int, ratio: Fraction) -> frozenset[Point]:
    """The vertices of LP2: the common point of each `size` independent constraints, where it meets the others too.

    Examples
    --------
    >>> sorted(tuple(map(str, point)) for point in vertices_of_lp2(2, Fraction(2)))
    [('0', '0'), ('0', '1'), ('1', '0'), ('2/3', '2/3')]
    """
    rows = [([Fraction(1) if z == y else 1 / ratio for z in range(size)], Fraction(1)) for y in range(size)]
    signs = [([Fraction(int(z == y)) for z in range(size)], Fraction(0)) for y in range(size)]
    found = set()
    for tight in itertools.combinations(rows + signs, size):
        point = _common_point(tight)
        if point and min(point) >= 0 and all(_dot(row, point) <= least for row, least in rows):
            found.add(point)
    return frozenset(found)


def _common_point(equations: Sequence[tuple[list[Fraction], Fraction]]) -> Point | None:
    """The one solution of as many equations as unknowns, by elimination; none where they are not independent."""
    table = [[*row, right] for row, right in equations]
    size = len(table)
    for at in range(size):
        pivot = next((i for i in range(at, size) if table[i][at]), None)
        if pivot is None:
            return None
        table[at], table[pivot] = table[pivot], table[at]
        table[at] = [entry / table[at][at] for entry in table[at]]
        for i in range(size):
            if i != at and table[i][at]:
                table[i] = [one - table[i][at] * other for one, other in zip(table[i], table[at], strict=True)]
    return tuple(row[-1] for row in table)


def _dot(row: Sequence[Fraction], point: Point) -> Fraction:
    return sum((weight * entry for weight, entry in zip(row, point, strict=True)), Fraction(0))


def _polytopes(budget: Budget) -> Iterator[_Polytope]:
    most = budget.pick(quick=4, full=6)
    return (_Polytope(size, ratio) for size in range(1, most + 1) for ratio in (Fraction(1), *RATIOS))


def vertices_are_responses(polytope: _Polytope) -> Comparison:
    """A vertex of LP2 is zero, or ``E / (E + |Y| - 1)`` on a non-empty set `Y` of labels and 0 elsewhere.

    Counted are those that are not.
    """
    return none(len(polytope.vertices - polytope.responses()))


def vertices_are_responses_of_all(polytope: _Polytope) -> Comparison:
    """The same with ``E / (E + K - 1)``, the chance of randomized response on all `K` labels."""
    return none(len(polytope.vertices - polytope.responses(size=polytope.size)))


def some_optimum_is_a_vertex(instance: Task) -> Comparison:
    """An optimal solution of LP2 is found at a vertex: the best vertex attains what a dual says no solution exceeds."""
    vertices = vertices_of_lp2(instance.size, instance.ratio)
    return at_most(instance.bound_of_lp2, max(_dot(instance.prior, point) for point in vertices))


def all_optima_are_vertices(instance: Task) -> Comparison:
    """Every optimal solution of LP2 is a vertex.

    Counted are optimal solutions that are none: points halfway between two vertices that are both optimal.
    """
    vertices = vertices_of_lp2(instance.size, instance.ratio)
    best = [point for point in vertices if _dot(instance.prior, point) == instance.bound_of_lp2]
    halfway = {tuple((x + y) / 2 for x, y in zip(*pair, strict=True)) for pair in itertools.combinations(best, 2)}
    return none(len(halfway - vertices))


def _enumerable_priors(budget: Budget) -> Iterator[Task]:
    yield from tied_tasks()
    for setting in settings(budget.pick(quick=10, full=100), most=budget.pick(quick=4, full=5), seed=6):
        yield task(setting)


CLAIMS = (
    Claim(
        paper="G21",
        number="Theorem 3",
        part="LP1 implies LP2",
        hypothesis="any epsilon-DP randomizer from labels to labels",
        instances=_channels,
        printed=lp1_implies_lp2,
        false=lp1_implies_more_than_lp2,
    ),
    Claim(
        paper="G21",
        number="Theorem 3",
        part="vertices of LP2",
        hypothesis="epsilon at least 0",
        instances=_polytopes,
        printed=vertices_are_responses,
        false=vertices_are_responses_of_all,
    ),
    Claim(
        paper="G21",
        number="Theorem 3",
        part="optima at vertices",
        hypothesis=ANY_PRIOR,
        instances=_enumerable_priors,
        printed=some_optimum_is_a_vertex,
        false=all_optima_are_vertices,
    ),
)
