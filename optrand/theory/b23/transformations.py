"""Any randomizer becomes one of staircase columns, and these are put in order ([B23], Appendix B, Claims 11 to 14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction as F
from functools import cache, cached_property
from itertools import accumulate, chain, groupby, pairwise, product
from operator import itemgetter
from random import Random
from typing import Any

import cvxpy
import numpy as np

from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, cases, claim, corrected, draws, equal, false
from optrand.theory._shared import Row, Setting, dot, draw_setting, label_set, prior, push_forward, total
from optrand.theory.b23.optima import Column, Cost, Members, absolute, half_square, sets


@dataclass(frozen=True)
class Channel:
    """Randomizer, unbiased or not, whose ratios are at most `E`, one row of probabilities per label."""

    setting: Setting
    outputs: Row
    rows: tuple[Row, ...]

    @staticmethod
    def of(setting: Setting, columns: Sequence[Column]) -> Channel:
        rows = ([F(c.mass) * (setting.ratio if c.members[y] else 1) for c in columns] for y in range(setting.k))
        return Channel(setting, tuple(F(c.output) for c in columns), tuple(map(tuple, rows)))

    @property
    def means(self) -> list[F]:
        return [dot(row, self.outputs) for row in self.rows]

    def loss(self, cost: Cost) -> F:
        losses = ([cost(output, y) for output in self.outputs] for y in self.setting.labels)
        return dot(self.setting.prior, [dot(*pair) for pair in zip(self.rows, losses, strict=True)])

    @cached_property
    def columns(self) -> list[Column]:
        """One output for each staircase column: the mean of the outputs where the column is used."""
        parts = [[*staircases(column, self.setting.ratio)] for column in zip(*self.rows, strict=True)]
        masses = push_forward(chain(*parts), tuple)
        moments = push_forward(
            ((who, v * m) for v, part in zip(self.outputs, parts, strict=True) for who, m in part), tuple
        )
        made = [Column(members, moments[members] / mass, mass) for members, mass in masses.items()]
        return sorted(made, key=lambda column: column.output)

    @cached_property
    def staircase(self) -> Channel:
        """Randomizer of these columns."""
        return Channel.of(self.setting, self.columns)

    @cached_property
    def best(self) -> list[Column]:
        """Columns of :func:`improve`, with the small masses that an interior-point method leaves to unused ones."""
        return improve(self.staircase)

    @cached_property
    def sequence(self) -> list[Column]:
        """Used columns in order. Those whose outputs coincide in floats are split by :func:`move_forward`.

        Columns in a row that favour the same labels are merged, as by Claim 12. A column is used from a probability of
        5e-4 at its favoured labels on. Outputs coincide within 3e-5.
        """
        used = [column for column in self.best if column.mass * self.setting.ratio > 5e-4]
        numbers = accumulate((b.output - a.output > 3e-5 * _range(self) for a, b in pairwise(used)), initial=0)
        groups = groupby(zip(numbers, used, strict=True), key=itemgetter(0))
        split = (column for _, group in groups for column in move_forward([column for _, column in group]))
        alike = ((who, list(group)) for who, group in groupby(split, key=lambda column: column.members))
        made = (Column(who, group[0].output, sum(column.mass for column in group)) for who, group in alike)
        return [column for column in made if column.mass * self.setting.ratio > 5e-4]

    @property
    def favour_sets(self) -> list[list[int]]:
        """Indices of the outputs in this sequence that favour each label: the sets `T(y)`."""
        return [[i for i, column in enumerate(self.sequence) if column.members[y]] for y in range(self.setting.k)]


def staircases(column: Sequence[F], ratio: F) -> list[tuple[Members, F]]:
    """Return a column as a sum of staircase columns, layer by layer. A common part favours each label alike."""
    k, made, rest = len(column), [], min(column)
    for low, high in pairwise(sorted(set(column))):
        mass = (high - low) / (ratio - 1)
        made.append((tuple(entry >= high for entry in column), mass))
        rest -= mass
    if rest:
        made += [(tuple(i == y for i in range(k)), rest / (ratio + k - 1)) for y in range(k)]
    return made


def move_forward(columns: Sequence[Column]) -> list[Column]:
    """Replace columns of one output by ones with the same sum, whose sets of labels move forward.

    Labels before the one that all favour leave, and later ones join. If there is no such label, columns are sorted.
    """
    masses, k = [F(column.mass) for column in columns], len(columns[0].members)
    favoured = [dot(masses, [column.members[y] for column in columns]) for y in range(k)]
    whole, top = total(masses), favoured.index(max(favoured))
    if favoured[top] < whole:
        return sorted(columns, key=lambda column: _ends(column.members))
    joins = [0 if y <= top else whole - favoured[y] for y in range(k)]
    leaves = [favoured[y] if y <= top else whole for y in range(k)]
    made = []
    for low, high in pairwise(sorted({*joins, *leaves})):
        members = tuple(joins[y] <= low < leaves[y] for y in range(k))
        made.append(Column(members, columns[0].output, high - low))
    return made


def improve(channel: Channel) -> list[Column]:
    r"""Find columns of least expected squares among those that lose no more under any convex loss, at the same means.

    Column :math:`S` has mass :math:`c_S`, moment :math:`m_S` and square :math:`q_S \geq m_S^2 / c_S`. The given
    randomizer's law is a mean-preserving spread of the new one for each label, by couplings :math:`\pi^y_{S j}`.
    """
    setting, unit = channel.setting, _range(channel)
    middle = float(channel.outputs[0] + channel.outputs[-1]) / 2
    places = (np.array(channel.outputs, dtype=float) - middle) / unit
    members = np.array(sets(setting.k))
    # Columns in units of 1/E, so that masses are shares of the probability of the favoured labels.
    weights = np.where(members, 1.0, 1 / float(setting.ratio)).T
    mass, moment, square = (cvxpy.Variable(len(members)) for _ in range(3))
    constraints = [cvxpy.SOC(square + mass, cvxpy.vstack([square - mass, 2 * moment]), axis=0)]
    for row, weight in zip(channel.rows, weights, strict=True):
        coupling = cvxpy.Variable((len(members), len(places)), nonneg=True)
        constraints += [
            cvxpy.sum(coupling, axis=1) == cvxpy.multiply(weight, mass),
            coupling @ places == cvxpy.multiply(weight, moment),
            cvxpy.sum(coupling, axis=0) == np.array(row, dtype=float),
        ]
    cvxpy.Problem(cvxpy.Minimize(weights.mean(axis=0) @ square), constraints).solve(solver="CLARABEL")
    found = zip(members.tolist(), (moment.value / mass.value).tolist(), mass.value.tolist(), strict=True)
    made = [Column(tuple(who), middle + unit * at, c / float(setting.ratio)) for who, at, c in found if c > 0]
    return sorted(made, key=lambda column: column.output)


def _range(channel: Channel) -> float:
    return float(channel.outputs[-1] - channel.outputs[0]) or 1.0


def any_randomizer(draw: Random, setting: Setting) -> Channel:
    """Return random rows, mixed with equal ones until no ratio exceeds `E`. Outputs may lie beyond the labels."""
    k, ratio, n = setting.k, setting.ratio, draw.randint(2, 6)
    part = (ratio - 1) / (ratio - 1 + n)
    rows = tuple(tuple((1 - part) / n + part * share for share in prior(draw, n)) for _ in range(k))
    span = setting.labels[-1] - setting.labels[0]
    outputs = sorted(setting.labels[0] + span * F(draw.randint(-20, 40), 20) for _ in range(n))
    return Channel(setting, tuple(outputs), rows)


def _spread(before: Channel, after: Channel, tolerance: float = 0.0) -> Any:
    """Return the largest error of a row's sum, move of a mean, and growth of an expected excess over a place.

    Means and excesses are shares of the range of the outputs. No convex loss grows if no excess does.
    """
    number: Any = float if tolerance else object
    places = np.array([*before.outputs, *after.outputs], dtype=number)
    sides = []
    for channel in (before, after):
        outputs, rows = np.array(channel.outputs, dtype=number), np.array(channel.rows, dtype=number)
        sides.append((rows @ np.maximum(outputs[:, np.newaxis] - places, 0), rows @ outputs, rows.sum(axis=1)))
    (old, old_means, _), (new, new_means, sums) = sides
    unit = _range(before) if tolerance else 1
    return [abs(sums - 1).max(), abs(new_means - old_means).max() / unit, (new - old).max() / unit]


ONE, THIRD = F(1), F(1, 3)


def _root(output: F, label: F) -> F:
    return F(math.isqrt(int(abs(output - label) * 10**6)), 1_000)


@claim(
    "B23 Claim 12",
    [Channel(Setting((-ONE, ONE), (ONE / 2, ONE / 2), 2 * ONE), (0 * ONE,), ((ONE,), (ONE,)))],
    Draws(45, lambda draw: any_randomizer(draw, draw_setting(draw, 5))),
    given="any randomizer with finitely many outputs, ratios up to exp(epsilon)",
)
@false(
    "At the same means as many outputs are enough for no larger loss of any kind, such as the root of the distance.",
    lambda channel: at_most(channel.staircase.loss(_root), channel.loss(_root)),
)
def columns_merge(channel: Channel) -> Comparison:
    """At the same means and no larger convex loss, `2^k` outputs with a staircase column of its own each are enough.

    The outputs are a sequence: the same number comes twice if two of its columns are no staircase together.
    """
    spare = len(channel.columns) - 2**channel.setting.k
    return at_most([spare, *_spread(channel, channel.staircase)], 0)


def _move(by: Row) -> Row:
    """Return the changes of three probabilities, in units of eta, if the first and the last move to the middle one."""
    return (by[1] - by[2], by[2] - by[0], by[0] - by[1])


NUMBERS, WIDE, ABOVE = (tuple(map(F, each)) for each in ((0, 1, 3), (-1, 0, 4), (4, 5, 6)))

EXCHANGES = (
    cases(
        "labels outputs label prior cost",
        (NUMBERS, WIDE, ONE, THIRD, half_square),
        (NUMBERS, WIDE, ONE, 0 * ONE, half_square),
        (NUMBERS, ABOVE, ONE, THIRD, absolute),
    ),
    draws(
        100,
        labels=lambda draw: label_set(draw, 3),
        outputs=lambda draw: label_set(draw, 3),
        label=lambda draw, labels: draw.choice(labels),
        prior=[F(n, 4) for n in range(4)],
        cost=(half_square, absolute),
    ),
)


@claim("B23 Claim 13: symbols", *EXCHANGES, given="three labels, one favoured by the outer two of three outputs")
@corrected("The same by the distances of the three outputs.", by=lambda _, outputs: outputs)
@false(
    "The same by those, the first and the last one exchanged.",
    by=lambda _, outputs: (outputs[0], outputs[0] + outputs[2] - outputs[1], outputs[2]),
)
def labels_weigh(labels: Row, outputs: Row, by: Callable[[Row, Row], Row] = lambda labels, _: labels) -> Comparison:
    """Moving probability to the middle output by the distances of three labels keeps the mean."""
    return equal(dot(_move(by(labels, outputs)), outputs), 0)


@claim("B23 Claim 13: step", *EXCHANGES, given="the exchange by distances of outputs, halved squared or absolute loss")
@corrected(
    "It makes no convex loss larger, and a strictly convex one smaller if the prior is positive.",
    strict=lambda prior, cost: prior > 0 and cost is half_square,
)
@false("It makes no convex loss larger, and smaller if the label has a prior.", strict=lambda prior, _: prior > 0)
def the_step_gains(
    outputs: Row, label: F, prior: F, cost: Cost, strict: Callable[[F, Cost], bool] = lambda *_: True
) -> Comparison:
    """Moving probability of a label to the middle output makes any convex loss smaller."""
    least = F(1, 10**12) if strict(prior, cost) else F(0)
    return at_most(prior * dot(_move(outputs), [cost(output, label) for output in outputs]), -least)


@cache
def _draw_ordered(number: int) -> Channel:
    """Return any randomizer whose means increase with the label. It is unbiased for its means as labels."""
    draw = Random(number)  # noqa: S311
    # Labels not far from even and a ratio between 1.1 and 100: floats can decide which columns are used.
    k = draw.randint(2, 4)
    labels = accumulate([F(draw.randint(2, 6), 2) for _ in range(k - 1)], initial=F(draw.randint(-9, 9)))
    ratio = 1 + F(draw.randint(1, 99), draw.choice((1, 10)))
    found = any_randomizer(draw, Setting(tuple(labels), prior(draw, k), ratio))
    rows = sorted(found.rows, key=lambda row: dot(row, found.outputs))
    means = tuple(dot(row, found.outputs) for row in rows)
    return Channel(replace(found.setting, labels=means), found.outputs, tuple(rows))


ORDERED = Draws(48, lambda draw: _draw_ordered(draw.randint(0, 10**9)))
DIFFERENT = "any randomizer whose means differ, with three outputs or more, unbiased for labels that are its means"


def _means_differ(channel: Channel) -> bool:
    gaps = [b - a for a, b in pairwise(channel.setting.labels)]
    return len(set(channel.outputs)) > 2 and min(gaps) > _range(channel) / 50


def _improve(channel: Channel) -> Any:
    return _spread(channel.staircase, Channel.of(channel.setting, channel.best), TOLERANCE.cones)


@claim("B23 Claim 13", ORDERED, given=f"{DIFFERENT}, counted are labels favoured otherwise", where=_means_differ)
@false("At no larger convex loss each label is favoured by one output or by two.", runs=lambda row: 1 <= len(row) <= 2)
def rows_are_runs(
    channel: Channel, runs: Callable[[list[int]], bool] = lambda row: bool(row) and row[-1] - row[0] + 1 == len(row)
) -> Comparison:
    """At the same means and no larger convex loss each label is favoured by outputs in a row, and by one at least."""
    others = sum(not runs(row) for row in channel.favour_sets)
    return at_most([others, *_improve(channel)], [0, *[TOLERANCE.cones] * 3])


@claim("B23 Claim 14", ORDERED, given=f"{DIFFERENT}, put in order as by Claim 13", where=_means_differ)
@false(
    "Those of the larger label start after those of the smaller one end.",
    lambda channel: equal(sum(not a[-1] < b[0] for a, b in pairwise(channel.favour_sets)), 0),
)
def sets_of_outputs_advance(channel: Channel) -> Comparison:
    """For two labels, neither's favouring outputs include the other's, and those of the larger start and end later."""
    nested = sum(set(a) <= set(b) for a, b in product(channel.favour_sets, repeat=2) if a is not b)
    back = sum(not (a[0] < b[0] and a[-1] < b[-1]) for a, b in pairwise(channel.favour_sets))
    return equal(nested + back, 0)


@claim("B23 Claim 11", ORDERED, given=DIFFERENT, where=_means_differ)
@false("The same with both the first and the last favoured label advancing.", both=True)
def intervals_move_forward(channel: Channel, *, both: bool = False) -> Comparison:
    """At no larger convex loss each output favours neighbouring labels, and these move forward, output by output."""
    ends = [_ends(column.members) for column in channel.sequence]
    odd = sum(b - a + 1 != sum(column.members) for (a, b), column in zip(ends, channel.sequence, strict=True))
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(ends)]
    back = sum(min(step) < (1 if both else 0) or step == (0, 0) for step in steps)
    return at_most([odd + back, *_improve(channel)], [0, *[TOLERANCE.cones] * 3])


def _ends(members: Members) -> tuple[int, int]:
    return members.index(True), len(members) - 1 - members[::-1].index(True)
