"""Optimal unbiased randomizers: on a grid, as printed, existence and number of outputs ([B23], Algorithm 1, Theorem 6).

Exactly on a grid, over all ``2**k - 2`` staircase columns, and by the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from functools import lru_cache, partial
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
from flint import fmpq

import optrand
from optrand.errors import Infeasible, InvalidInput
from optrand.model._problem import OutputSet, Problem
from optrand.programs import Pairwise, Program, Unbiased
from optrand.studies._paths import count_outputs
from optrand.theory._engine import TOLERANCE, Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import Row, Setting, dot, label_set, prior, settings, shares, total

Members = tuple[bool, ...]
"""Labels that a column favours: they have its output with `E` times the probability of the others."""

Cost = Callable[[F, F], F]


@dataclass(frozen=True)
class Column:
    """A column of a randomizer: its output has probability ``mass * E`` for its members and ``mass`` for the others."""

    members: Members
    output: F | float
    mass: F | float


def sets(k: int) -> list[Members]:
    """Return all sets of labels except the empty and the full one."""
    return [members for members in product((False, True), repeat=k) if 0 < sum(members) < k]


def half_square(output: F, label: F) -> F:
    return (output - label) ** 2 / 2


def absolute(output: F, label: F) -> F:
    return abs(output - label)


def response_ends(labels: Sequence[F], ratio: F) -> tuple[F, F]:
    """Return the lowest and the highest output of debiased randomized response: [B23], Algorithm 2."""
    low, high = (((ratio + len(labels) - 1) * end - total(labels)) / (ratio - 1) for end in (labels[0], labels[-1]))
    return low, high


def best_on_grid(setting: Setting, outputs: Iterable[F], loss: Cost) -> tuple[F, list[Column]]:
    """Return the least loss of an unbiased epsilon-DP randomizer with these outputs, and the columns of one."""
    places = list(product(sets(setting.k), outputs))
    costs, columns = price_columns(setting, places, loss)
    value, amounts = minimise(costs, columns, [*[F(1)] * setting.k, *setting.labels])
    return value, [Column(*place, mass) for place, mass in zip(places, amounts, strict=True) if mass]


def weigh(members: Members, ratio: F) -> list[F]:
    """Return the probabilities of an output of mass 1, label by label."""
    return [ratio if member else F(1) for member in members]


def price_columns(setting: Setting, places: Iterable[tuple[Members, F]], loss: Cost) -> tuple[list[F], list[list[F]]]:
    """Return the loss of each column of mass 1, and its part in the rows: probabilities, then expected outputs."""
    costs, columns = [], []
    for members, output in places:
        weights = weigh(members, setting.ratio)
        losses = [p * loss(output, y) for p, y in zip(setting.prior, setting.labels, strict=True)]
        costs.append(dot(weights, losses))
        columns.append([*weights, *(weight * output for weight in weights)])
    return costs, columns


def minimise(costs: Sequence[F], columns: Sequence[Sequence[F]], right: Sequence[F]) -> tuple[F, Row]:
    """Minimise ``costs @ x`` subject to ``columns @ x == right`` and ``x >= 0``. Return the value and a vertex.

    The simplex method in rationals. Artificial columns have the costs (1, 0), and others (0, cost), which are compared
    in this order.
    """
    count, sides = len(columns), len(right)
    exact = np.frompyfunc(lambda number: fmpq(*F(number).as_integer_ratio()), 1, 1)
    rows = exact(np.hstack([np.array(columns, object).T, np.eye(sides, dtype=int), np.array(right)[:, np.newaxis]]))
    rows[np.ix_([side < 0 for side in right], [*range(count), -1])] *= -1
    prices = exact(np.array([[0] * (count + sides + 1), [*costs, *[0] * (sides + 1)]], object))
    prices[0] -= rows.sum(axis=0)
    prices[0, count:-1] = fmpq(0)
    basis = list(range(count, count + sides))
    for step in itertools.count():
        falling = [j for j, price in enumerate(prices[:, :count].T.tolist()) if tuple(price) < (0, 0)]
        if not falling:
            break
        # The least reduced cost at first, later the first negative one, which cannot cycle (Bland's rule).
        entering = min(falling, key=lambda j: tuple(prices[:, j])) if step < 60 else falling[0]
        limits = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(rows) if row[entering] > 0]
        if not limits:
            raise InvalidInput("the cost has no lower bound: expected a program with an optimum")
        leaving = min(limits)[2]
        basis[leaving] = entering
        pivot = rows[leaving] / rows[leaving, entering]
        used = np.flatnonzero(pivot)
        for table in (rows, prices):
            touched = np.flatnonzero(table[:, entering])
            table[np.ix_(touched, used)] -= np.outer(table[touched, entering], pivot[used])
        rows[leaving] = pivot
    if prices[0, -1]:
        raise Infeasible("no amounts of the columns add up to the right-hand side: allow more columns")
    value, *amounts = (F(int(each.p), int(each.q)) for each in (-prices[1, -1], *rows[:, -1]))
    found = dict(zip(basis, amounts, strict=True))
    return value, tuple(found.get(j, F(0)) for j in range(count))


THREE = tuple(map(F, range(3)))
SMALL = [
    (Setting(THREE[:2], shares((1, 1)), F(2)), 2),
    *((Setting(THREE, shares((1, 1, 1)), F(3)), n) for n in (2, 3, 6)),
    # All the prior between two outputs: as E grows, the excess is that of rounding at its worst place.
    *((Setting(THREE, shares((0, 1, 0)), F(ratio)), n) for ratio, n in ((1_000, 2), (3, 3))),
]


def _draw_setting(draw: Random, most: int = 4) -> Setting:
    k = draw.randint(2, most)
    return Setting(label_set(draw, k), prior(draw, k), 1 + F(draw.randint(1, 60), 10))


def meshes(most: int, count: int) -> tuple[Any, ...]:
    """Return settings and `n`, that of outputs from the lowest to the highest one of debiased randomized response."""
    return cases("setting n", *SMALL), draws(count, setting=partial(_draw_setting, most=most), n=range(2, 11))


def mesh_size(setting: Setting, n: int) -> F:
    low, high = response_ends(setting.labels, setting.ratio)
    return (high - low) / (n - 1)


def float_outputs(setting: Setting, n: int) -> optrand.Grid:
    """Return the package's outputs of Algorithm 2."""
    return optrand.feasible_output_set(setting.floats[0], math.log(setting.ratio), n)


@lru_cache(maxsize=1_000)
def least_on_mesh(setting: Setting, n: int, loss: Cost = half_square) -> F:
    low, high = response_ends(setting.labels, setting.ratio)
    return best_on_grid(setting, [low + (high - low) * i / (n - 1) for i in range(n)], loss)[0]


def pose(setting: Setting, outputs: OutputSet | None = None) -> Problem:
    """Return unbiased regression of the package, of halved squared loss, with outputs on the line by default."""
    return optrand.unbiased_regression(*setting.floats, math.log(setting.ratio), outputs=outputs)


def prove(problem: Problem, gap: float = TOLERANCE.proven) -> tuple[optrand.Mechanism, optrand.Certificate]:
    """Return the optimum of the package, tabulated, and its verified proof. Raise `NotCertified` beyond a gap."""
    mechanism = optrand.solve(problem)
    return mechanism, optrand.certify(mechanism).require(gap)


@lru_cache(maxsize=1_000)
def least_on_line(setting: Setting) -> float:
    """Return the least halved squared loss on the line, certified."""
    return prove(pose(setting))[1].upper


@claim(
    "B23 Algorithm 1",
    *meshes(4, 4),
    given="halved squared loss, outputs of Algorithm 2, three or four labels",
    where=lambda setting: setting.k > 2,
)
@false("The same if privacy holds between neighbouring labels only.", apart=1)
def printed_program_is_right(setting: Setting, n: int, apart: int = 10) -> Comparison:
    """The program, solved as printed, has the loss of the best sum of staircase columns on its outputs."""
    outputs, places = float_outputs(setting, n), np.arange(setting.k)
    problem, distance = pose(setting, outputs), np.abs(places[:, np.newaxis] - places)
    epsilons = np.where(distance <= apart, problem.epsilon * (distance > 0), np.inf)
    unbiased = [Unbiased()]
    program = Program(problem.labels, problem.prior, outputs.values, privacy=Pairwise(epsilons), constraints=unbiased)
    return equal(program.solve("CLARABEL").value, float(least_on_mesh(setting, n)), tolerance=TOLERANCE.cones)


@claim(
    "B23 Theorem 6: outputs",
    [Setting((F(3),), (F(1),), F(2)), *settings(0)[0]][::5],
    settings(8)[1],
    given="halved squared loss, any finite labels and prior, epsilon above 0 and at most log(3000), optima on the real "
    "line, proven to 1e-9",
    where=lambda setting: setting.ratio <= 3000,
)
@false("The same with `2 k - 3` for three labels or more.", most=lambda k: max(2 * k - 3, min(k, 2)))
def twice_as_many_outputs(setting: Setting, most: Callable[[int], int] = lambda k: 2 * k) -> Comparison:
    """For halved squared loss there is an optimal unbiased randomizer with at most `2 k` outputs."""
    return at_most(count_outputs(prove(pose(setting))[0]), most(setting.k))


FAR = F(10) ** 200
"""Within this distance of the labels the infimum is attained if it is attained at all.

A basis of the program with outputs at a distance has entries that are polynomials in it, of degree 8 at most and with
coefficients below 10^110 (Cramer's rule, labels and priors as drawn here): beyond their roots nothing changes.
"""


@lru_cache(maxsize=1_000)
def absolute_infimum(setting: Setting) -> F:
    """Return the infimum of absolute losses of unbiased randomizers on the line.

    Being convex, the loss gains nothing from outputs between two labels. An output at distance `d` beyond the last
    label, of mass `c`, has the same part in the rows and the loss as mass `c` at that label and a moment ``c d`` beside
    it. A moment without mass is an output at infinity.
    """
    members = sets(setting.k)
    costs, columns = price_columns(setting, product(members, setting.labels), absolute)
    for weights, side in product((weigh(each, setting.ratio) for each in members), (-1, 1)):
        costs.append(dot(weights, setting.prior))
        columns.append([*[F(0)] * setting.k, *(side * weight for weight in weights)])
    return minimise(costs, columns, [*[F(1)] * setting.k, *setting.labels])[0]


def absolute_within(setting: Setting, reach: F) -> F:
    """Return the least absolute loss with outputs at most `reach` beyond the labels."""
    labels = setting.labels
    return best_on_grid(setting, [labels[0] - reach, *labels, labels[-1] + reach], absolute)[0]


def _box_has_an_optimum(setting: Setting) -> Comparison:
    """Compare the corners of a box, where a convex piecewise linear loss has its optimum, with a finer grid."""
    box = sorted({*setting.labels, *response_ends(setting.labels, setting.ratio)})
    least, columns = best_on_grid(setting, box, absolute)
    finer = best_on_grid(setting, [*box, *((a + b) / 2 for a, b in pairwise(box))], absolute)[0]
    return at_most([least, len(columns)], [finer, 2 * setting.k])


@claim(
    "B23 Theorem 6: existence",
    grid(
        setting=[
            Setting(THREE[: len(weights)], shares(weights), F(ratio))
            for ratio in (2, 100)
            for weights in ((1, 1), (0, 1), (1, 1, 1), (5, 5, 1), (1, 1, 0), (0, 1, 0))
        ]
    ),
    draws(5, setting=_draw_setting),
    given="absolute loss, which is convex and least at the label, any finite labels, prior and epsilon (counted is "
    "whether outputs within 10^200 of the labels leave more than the infimum)",
)
@corrected("For outputs in a feasible box an optimal one exists, with at most `2 k` outputs.", _box_has_an_optimum)
@false("Of absolute loss one exists if no label has the prior 0.", where=lambda setting: all(setting.prior))
def there_is_an_optimum(setting: Setting) -> Comparison:
    """For any convex loss that is least at the label, absolute loss for one, an optimal unbiased randomizer exists."""
    return equal(int(absolute_within(setting, FAR) > absolute_infimum(setting)), 0)
