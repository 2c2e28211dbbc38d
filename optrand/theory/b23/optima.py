"""Optimal unbiased randomizers: exactly on a grid, over all ``2**k - 2`` staircase columns, and by the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import optrand
from optrand.errors import Infeasible, InvalidInput
from optrand.model.outputs import OutputSet
from optrand.model.problem import Problem
from optrand.theory.claim import Budget
from optrand.theory.instances import Instance, Setting, label_set, prior, seeded, shares
from optrand.theory.sums import total

__all__ = [
    "PROVEN",
    "Column",
    "Cost",
    "Members",
    "Mesh",
    "Row",
    "best_on_grid",
    "meshes",
    "minimise",
    "posed",
    "proven",
]

Members = tuple[bool, ...]
"""Which labels a column favours: they give its output `E` times as often as the others do."""

Row = tuple[Fraction, ...]
Cost = Callable[[Fraction, Fraction], Fraction]

GREEDY = 60
"""Steps by the steepest price; after that the first price that helps is taken, which cannot cycle (Bland's rule)."""

PROVEN = 1e-9
"""The largest relative gap of an optimum that counts as proven."""


@dataclass(frozen=True)
class Column:
    """A column of a randomizer: its output has probability ``mass * E`` for its members and ``mass`` for the others."""

    members: Members
    output: Fraction | float
    mass: Fraction | float

    @property
    def places(self) -> list[int]:
        """The labels that it favours, by their places."""
        return [i for i, member in enumerate(self.members) if member]


def sets(k: int) -> list[Members]:
    """All sets of labels but the empty and the full one."""
    return [members for members in product((False, True), repeat=k) if 0 < sum(members) < k]


def dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """Sum of products."""
    return total(a * b for a, b in zip(first, second, strict=True))


def half_square(output: Fraction, label: Fraction) -> Fraction:
    """Squared loss, halved."""
    return (output - label) ** 2 / 2


def absolute(output: Fraction, label: Fraction) -> Fraction:
    """Absolute loss."""
    return abs(output - label)


def response_ends(labels: Sequence[Fraction], ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Lowest and highest output of debiased randomized response: [B23], Algorithm 2."""
    low, high = (((ratio + len(labels) - 1) * end - total(labels)) / (ratio - 1) for end in (labels[0], labels[-1]))
    return low, high


def grid(setting: Setting, n: int) -> list[Fraction]:
    """`n` evenly spaced values between those ends."""
    low, high = response_ends(setting.labels, setting.ratio)
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def two_end_loss(setting: Setting, low: Fraction, high: Fraction) -> Fraction:
    """Halved squared loss of the only unbiased randomizer with two outputs: the variance ``(high - y) (y - low)``."""
    return dot(setting.prior, [(high - y) * (y - low) / 2 for y in setting.labels])


def response_loss(setting: Setting) -> float:
    """Halved squared loss of the package's debiased randomized response."""
    labels, weights = ([float(x) for x in row] for row in (setting.labels, setting.prior))
    return optrand.debiased_rr(labels, math.log(setting.ratio), prior=weights).value


def best_on_grid(
    setting: Setting, outputs: Iterable[Fraction], loss: Cost, *, among: Sequence[Members] | None = None
) -> tuple[Fraction, list[Column]]:
    """Least loss of an unbiased epsilon-DP randomizer with these outputs, of some or all columns, and one that has it.

    Examples
    --------
    >>> setting = Setting((Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2)), Fraction(3))
    >>> value, columns = best_on_grid(setting, grid(setting, 5), half_square)
    >>> str(value), [str(column.output) for column in columns]
    ('3/8', ['-1/2', '3/2'])
    """
    used = sets(setting.k) if among is None else among
    places = [(members, output) for output in outputs for members in used]
    weights = [[setting.ratio if member else Fraction(1) for member in members] for members, _ in places]
    costs = [
        total(w * p * loss(output, y) for w, p, y in zip(row, setting.prior, setting.labels, strict=True))
        for row, (_, output) in zip(weights, places, strict=True)
    ]
    columns = [[*row, *(w * output for w in row)] for row, (_, output) in zip(weights, places, strict=True)]
    value, amounts = minimise(costs, columns, [*[Fraction(1)] * setting.k, *setting.labels])
    return value, [Column(*place, mass) for place, mass in zip(places, amounts, strict=True) if mass]


def minimise(
    costs: Sequence[Fraction], columns: Sequence[Sequence[Fraction]], right: Sequence[Fraction]
) -> tuple[Fraction, Row]:
    """Minimise ``costs @ x`` subject to ``columns @ x == right`` and ``x >= 0``: the value, and a vertex that has it.

    Raises
    ------
    Infeasible
        No ``x`` satisfies the rows.
    InvalidInput
        The cost has no lower bound.

    Examples
    --------
    >>> one, two = Fraction(1), Fraction(2)
    >>> minimise([two, one], [[one], [one]], [two])
    (Fraction(2, 1), (Fraction(0, 1), Fraction(2, 1)))
    """
    tableau = _Tableau(columns, right)
    if tableau.descend([Fraction(0)] * len(columns) + [Fraction(1)] * len(right)):
        raise Infeasible("no amounts of the columns add up to the right-hand side: allow more columns")
    tableau.drop_artificial(len(columns))
    value = tableau.descend(list(costs))
    basic = dict(zip(tableau.basis, (row[-1] for row in tableau.rows), strict=True))
    return value, tuple(basic.get(i, Fraction(0)) for i in range(len(columns)))


class _Tableau:
    """Simplex method in two phases: rows in terms of the basic columns, the right-hand side last."""

    def __init__(self, columns: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> None:
        count = len(right)
        self.basis = [len(columns) + i for i in range(count)]
        self.rows = []
        for i, side in enumerate(right):
            sign, unit = -1 if side < 0 else 1, [Fraction(int(i == j)) for j in range(count)]
            self.rows.append([*(sign * column[i] for column in columns), *unit, abs(side)])

    def descend(self, costs: list[Fraction]) -> Fraction:
        """Go to the vertex of least cost; columns without a cost stay out."""
        prices = [*costs, *[Fraction(0)] * ((len(self.rows[0]) if self.rows else len(costs) + 1) - len(costs))]
        for i, basic in enumerate(self.basis):
            prices = _reduced(prices, self.rows[i], prices[basic])
        steps = 0
        while falling := [j for j in range(len(costs)) if prices[j] < 0]:
            steps += 1
            entering = min(falling, key=prices.__getitem__) if steps < GREEDY else falling[0]
            limits = [
                (row[-1] / row[entering], self.basis[i], i) for i, row in enumerate(self.rows) if row[entering] > 0
            ]
            if not limits:
                raise InvalidInput("the cost has no lower bound: expected a program with an optimum")
            leaving = min(limits)[2]
            self._enter(entering, leaving)
            prices = _reduced(prices, self.rows[leaving], prices[entering])
        return -prices[-1]

    def drop_artificial(self, count: int) -> None:
        """Exchange columns that only stood for rows; a row that no column of the program can carry says nothing new."""
        for i in range(len(self.rows)):
            if self.basis[i] >= count:
                entering = next((j for j in range(count) if self.rows[i][j]), None)
                if entering is not None:
                    self._enter(entering, i)
        kept = [i for i, basic in enumerate(self.basis) if basic < count]
        self.rows = [[*self.rows[i][:count], self.rows[i][-1]] for i in kept]
        self.basis = [self.basis[i] for i in kept]

    def _enter(self, entering: int, leaving: int) -> None:
        pivot = self.rows[leaving][entering]
        row = [entry / pivot for entry in self.rows[leaving]]
        self.rows = [
            row if i == leaving else _reduced(other, row, other[entering]) for i, other in enumerate(self.rows)
        ]
        self.basis[leaving] = entering


def _reduced(row: list[Fraction], other: list[Fraction], times: Fraction) -> list[Fraction]:
    return [a - times * b if b else a for a, b in zip(row, other, strict=True)] if times else row


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

    @property
    def in_floats(self) -> optrand.Grid:
        """The package's outputs of Algorithm 2."""
        labels = [float(y) for y in self.setting.labels]
        return optrand.feasible_output_set(labels, math.log(self.setting.ratio), self.n)

    @lru_cache(maxsize=1_000)  # noqa: B019
    def least(self, loss: Cost = half_square, n: int = 0, kept: Callable[[Members], bool] | None = None) -> Fraction:
        """The least loss on the grid, or with another number of outputs, of all columns or of some."""
        among = list(filter(kept, sets(self.setting.k)))
        return best_on_grid(self.setting, grid(self.setting, n or self.n), loss, among=among)[0]


@lru_cache(maxsize=8)
def meshes(budget: Budget, most: int, quick: int) -> tuple[Mesh, ...]:
    """Meshes of at most so many labels, shared by several claims, which so find each optimum once."""
    three, third = tuple(map(Fraction, range(3))), shares((1, 1, 1))
    made = [Mesh(Setting(three[:2], shares((1, 1)), Fraction(2)), 2)]
    made += [Mesh(Setting(three, third, Fraction(3)), n) for n in (2, 3, 6)]
    # All the prior between two outputs: as E grows, the excess is that of rounding at its worst place.
    made += [Mesh(Setting(three, shares((0, 1, 0)), Fraction(ratio)), 2 + ratio % 2) for ratio in (1_000, 3)]
    random = seeded(31)
    for _ in range(budget.pick(quick=quick, full=20 * quick)):
        k = random.randint(2, most)
        setting = Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(1, 60), 10))
        made.append(Mesh(setting, random.randint(2, 10)))
    return tuple(made)


def posed(setting: Setting, outputs: OutputSet | None = None) -> Problem:
    """Unbiased regression of the package, of halved squared loss, with outputs on the line by default."""
    labels, prior = ([float(x) for x in row] for row in (setting.labels, setting.prior))
    return optrand.unbiased_regression(labels, prior, math.log(setting.ratio), outputs=outputs)


def proven(problem: Problem) -> tuple[optrand.Mechanism, optrand.Certificate]:
    """Optimum of the package, tabulated, and its verified proof."""
    mechanism = optrand.tabulate(optrand.solve(problem))
    return mechanism, optrand.certify(mechanism)


def exact_law(mechanism: optrand.Mechanism) -> tuple[Row, tuple[Row, ...]]:
    """Outputs and rows of a released table."""
    rows = tuple(tuple(Fraction(weight, mechanism.total) for weight in row) for row in mechanism.weights)
    return tuple(map(Fraction, mechanism.outputs.tolist())), rows
