"""Optimal unbiased randomizers: exactly on a grid, over all ``2**k - 2`` staircase columns, and by the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from random import Random

import numpy as np

import optrand
from optrand.errors import Infeasible, InvalidInput
from optrand.model.outputs import OutputSet
from optrand.model.problem import Problem
from optrand.theory.engine import Space, draws
from optrand.theory.instances import Setting, label_set, prior, shares
from optrand.theory.sums import total

Members = tuple[bool, ...]
"""Which labels a column favours: they give its output `E` times as often as the others do."""

Row = tuple[Fraction, ...]
Cost = Callable[[Fraction, Fraction], Fraction]

PROVEN = 1e-9
"""The largest relative gap of an optimum that counts as proven."""


@dataclass(frozen=True)
class Column:
    """A column of a randomizer: its output has probability ``mass * E`` for its members and ``mass`` for the others."""

    members: Members
    output: Fraction | float
    mass: Fraction | float


def sets(k: int) -> list[Members]:
    """Return all sets of labels except the empty and the full one."""
    return [members for members in product((False, True), repeat=k) if 0 < sum(members) < k]


def dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """Return the sum of products."""
    return total(a * b for a, b in zip(first, second, strict=True))


def half_square(output: Fraction, label: Fraction) -> Fraction:
    """Return the halved squared loss."""
    return (output - label) ** 2 / 2


def absolute(output: Fraction, label: Fraction) -> Fraction:
    """Return the absolute loss."""
    return abs(output - label)


def response_ends(labels: Sequence[Fraction], ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Return the lowest and the highest output of debiased randomized response: [B23], Algorithm 2."""
    low, high = (((ratio + len(labels) - 1) * end - total(labels)) / (ratio - 1) for end in (labels[0], labels[-1]))
    return low, high


def evenly_spaced(setting: Setting, n: int) -> list[Fraction]:
    """Return `n` evenly spaced values between those ends."""
    low, high = response_ends(setting.labels, setting.ratio)
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def best_on_grid(
    setting: Setting, outputs: Iterable[Fraction], loss: Cost, *, among: Sequence[Members] | None = None
) -> tuple[Fraction, list[Column]]:
    """Return the least loss of an unbiased epsilon-DP randomizer with these outputs, and the columns of one."""
    places = [(members, output) for output in outputs for members in (sets(setting.k) if among is None else among)]
    weights = [[setting.ratio if member else Fraction(1) for member in members] for members, _ in places]
    losses = [[p * loss(v, y) for p, y in zip(setting.prior, setting.labels, strict=True)] for _, v in places]
    costs = [dot(*pair) for pair in zip(weights, losses, strict=True)]
    columns = [[*row, *(w * output for w in row)] for row, (_, output) in zip(weights, places, strict=True)]
    value, amounts = minimise(costs, columns, [*[Fraction(1)] * setting.k, *setting.labels])
    return value, [Column(*place, mass) for place, mass in zip(places, amounts, strict=True) if mass]


def minimise(
    costs: Sequence[Fraction], columns: Sequence[Sequence[Fraction]], right: Sequence[Fraction]
) -> tuple[Fraction, Row]:
    """Minimise ``costs @ x`` subject to ``columns @ x == right`` and ``x >= 0``. Return the value and a vertex.

    The simplex method in fractions. Artificial columns have the costs (1, 0), and others (0, cost), which are compared
    in this order.
    """
    count, sides = len(columns), len(right)
    rows = np.hstack([np.array(columns).T, np.full((sides, sides), Fraction(0)), np.array(right)[:, np.newaxis]])
    rows[[side < 0 for side in right]] *= -1
    rows[:, count:-1] = np.diag([Fraction(1)] * sides)
    prices = np.array([[Fraction(0)] * (count + sides + 1), [*costs, *[Fraction(0)] * (sides + 1)]])
    prices[0] -= rows.sum(axis=0)
    prices[0, count:-1] = Fraction(0)
    basis = list(range(count, count + sides))
    for step in itertools.count():
        falling = [j for j in range(count) if tuple(prices[:, j]) < (0, 0)]
        if not falling:
            break
        # First by the steepest price; then the first one that helps, which cannot cycle (Bland's rule).
        entering = min(falling, key=lambda j: tuple(prices[:, j])) if step < 60 else falling[0]
        limits = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(rows) if row[entering] > 0]
        if not limits:
            raise InvalidInput("the cost has no lower bound: expected a program with an optimum")
        leaving = min(limits)[2]
        basis[leaving] = entering
        pivot = rows[leaving] / rows[leaving, entering]
        rows -= np.outer(rows[:, entering], pivot)
        prices -= np.outer(prices[:, entering], pivot)
        rows[leaving] = pivot
    if prices[0, -1]:
        raise Infeasible("no amounts of the columns add up to the right-hand side: allow more columns")
    amounts = dict(zip(basis, rows[:, -1], strict=True))
    return -prices[1, -1], tuple(amounts.get(j, Fraction(0)) for j in range(count))


@dataclass(frozen=True)
class Mesh:
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

    @property
    def in_floats(self) -> optrand.Grid:
        """The package's outputs of Algorithm 2."""
        return optrand.feasible_output_set(self.setting.floats[0], math.log(self.setting.ratio), self.n)

    @lru_cache(maxsize=1_000)  # noqa: B019
    def least(self, loss: Cost = half_square, n: int = 0, kept: Callable[[Members], bool] | None = None) -> Fraction:
        """Return the least loss on the grid, or with another number of outputs, of all columns or of some."""
        among = list(filter(kept, sets(self.setting.k)))
        return best_on_grid(self.setting, evenly_spaced(self.setting, n or self.n), loss, among=among)[0]


THREE = tuple(map(Fraction, range(3)))


def _small_meshes(_: int) -> Iterator[Mesh]:
    yield Mesh(Setting(THREE[:2], shares((1, 1)), Fraction(2)), 2)
    yield from (Mesh(Setting(THREE, shares((1, 1, 1)), Fraction(3)), n) for n in (2, 3, 6))
    # All the prior between two outputs: as E grows, the excess is that of rounding at its worst place.
    yield from (Mesh(Setting(THREE, shares((0, 1, 0)), Fraction(ratio)), 2 + ratio % 2) for ratio in (1_000, 3))


@cache
def _draw_mesh(number: int, most: int) -> Mesh:
    draw = Random(number)  # noqa: S311
    k = draw.randint(2, most)
    setting = Setting(label_set(draw, k), prior(draw, k), 1 + Fraction(draw.randint(1, 60), 10))
    return Mesh(setting, draw.randint(2, 10))


def meshes(most: int, count: int) -> tuple[Space, ...]:
    """Return spaces of meshes of at most `most` labels; claims share them, so that each optimum is found once."""
    return _small_meshes, draws(count, lambda draw: _draw_mesh(draw.randint(0, 10**9), most))


def pose(setting: Setting, outputs: OutputSet | None = None) -> Problem:
    """Return unbiased regression of the package, of halved squared loss, with outputs on the line by default."""
    return optrand.unbiased_regression(*setting.floats, math.log(setting.ratio), outputs=outputs)


def prove(problem: Problem, gap: float = PROVEN) -> tuple[optrand.Mechanism, optrand.Certificate]:
    """Return the optimum of the package, tabulated, and its verified proof. Raise `NotCertified` beyond a gap."""
    mechanism = optrand.solve(problem)
    return mechanism, optrand.certify(mechanism).require(gap)


@lru_cache(maxsize=1_000)
def least_on_line(setting: Setting) -> float:
    """Return the least halved squared loss on the line, certified."""
    return prove(pose(setting))[1].upper


def exact_law(mechanism: optrand.Mechanism) -> tuple[Row, tuple[Row, ...]]:
    """Return outputs and rows of a released table."""
    rows = tuple(tuple(Fraction(weight, mechanism.total) for weight in row) for row in mechanism.weights)
    return tuple(map(Fraction, mechanism.outputs.tolist())), rows
