"""Any randomizer becomes one of staircase columns, and these are put in order ([B23], Appendix B, Claims 11 to 14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise, product, starmap
from operator import itemgetter
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from optrand.baselines import Staircase
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import Cones, ConicProgram
from optrand.theory.b23.optima import Column, Cost, Members, Row, absolute, best_on_grid, dot, grid, half_square, sets
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import RATIOS, Instance, Setting, label_set, prior, seeded, settings, shares
from optrand.theory.sums import pushed

__all__ = ["Channel", "Exchange", "any_randomizer", "improved", "staircases"]

FLOATS = 1e-6
"""What cone programs in floats are forgiven, as a share of the range of the outputs."""


class Channel(Instance, setting=""):
    """A randomizer, unbiased or not, whose ratios are at most `E`; a row is a label's probabilities."""

    setting: Setting
    outputs: Row
    rows: tuple[Row, ...]

    @staticmethod
    def of(setting: Setting, columns: Sequence[Column]) -> Channel:
        """The randomizer of some columns."""
        rows = ([Fraction(c.mass) * (setting.ratio if c.members[y] else 1) for c in columns] for y in range(setting.k))
        return Channel(setting, tuple(Fraction(c.output) for c in columns), tuple(map(tuple, rows)))

    @property
    def means(self) -> list[Fraction]:
        """The expected output of each label."""
        return [dot(row, self.outputs) for row in self.rows]

    def loss(self, cost: Cost) -> Fraction:
        """The expected loss."""
        losses = ([cost(output, y) for output in self.outputs] for y in self.setting.labels)
        return dot(self.setting.prior, [dot(*pair) for pair in zip(self.rows, losses, strict=True)])

    @cached_property
    def columns(self) -> list[Column]:
        """One output for each staircase column: the mean of the outputs where the column is used."""
        parts = [[*staircases(column, self.setting.ratio)] for column in zip(*self.rows, strict=True)]
        masses = pushed(chain(*parts), tuple)
        moments = pushed(((who, v * m) for v, part in zip(self.outputs, parts, strict=True) for who, m in part), tuple)
        made = [Column(members, moments[members] / mass, mass) for members, mass in masses.items()]
        return sorted(made, key=lambda column: column.output)

    @cached_property
    def merged(self) -> Channel:
        """The randomizer of these columns."""
        return Channel.of(self.setting, self.columns)

    @cached_property
    def best(self) -> list[Column]:
        """The columns of :func:`improved`, with all that an interior-point method leaves of unused ones."""
        return improved(self.merged)

    @cached_property
    def ordered(self) -> list[Column]:
        """Those that are used, in order; where outputs coincide in floats, by the labels that they favour.

        A column is used from a probability of 5e-4 at its favoured labels on; outputs coincide within 3e-5.
        """
        rank = sorted(range(self.setting.k), key=self.means.__getitem__)
        used = [column for column in self.best if column.mass * self.setting.ratio > 5e-4]
        group = accumulate((b.output - a.output > 3e-5 * _range(self) for a, b in pairwise(used)), initial=0)
        favoured = ([place for place, y in enumerate(rank) if column.members[y]] for column in used)
        keys = ((i, places[0], places[-1]) for i, places in zip(group, favoured, strict=True))
        return [column for _, column in sorted(zip(keys, used, strict=True), key=itemgetter(0))]

    @property
    def favouring(self) -> list[list[int]]:
        """Which of these outputs favour each label, by their places: the sets `T(y)`."""
        return [[i for i, column in enumerate(self.ordered) if column.members[y]] for y in range(self.setting.k)]


def staircases(column: Sequence[Fraction], ratio: Fraction) -> list[tuple[Members, Fraction]]:
    """A column as a sum of staircase columns, layer by layer; what labels have in common favours each of them alike."""
    k, made, rest = len(column), [], min(column)
    for low, high in pairwise(sorted(set(column))):
        mass = (high - low) / (ratio - 1)
        made.append((tuple(entry >= high for entry in column), mass))
        rest -= mass
    if rest:
        made += [(tuple(i == y for i in range(k)), rest / (ratio + k - 1)) for y in range(k)]
    return made


def improved(channel: Channel) -> list[Column]:
    r"""Columns of least expected squares among those that lose no more under any convex loss, at the same means.

    Column :math:`S` has mass :math:`c_S`, moment :math:`m_S` and square :math:`q_S \geq m_S^2 / c_S`. The given
    randomizer's law is a mean-preserving spread of the new one for each label, by couplings :math:`\pi^y_{S j}`.
    """
    setting, k, count = channel.setting, channel.setting.k, len(channel.outputs)
    middle, unit = float(channel.outputs[0] + channel.outputs[-1]) / 2, _range(channel)
    members, places = np.array(sets(k)), (np.array(channel.outputs, dtype=float) - middle) / unit
    # Columns in units of 1/E, so that masses are shares of the probability of the favoured labels.
    weights = np.where(members, 1.0, 1 / float(setting.ratio)).T
    n = len(members)
    size, eye = 3 * n + k * n * count, np.eye(n)
    # Of each label: couplings of a column sum to its mass, and to its moment; those of an old output to its row.
    sums = np.vstack([np.kron(eye, np.ones(count)), np.kron(eye, places), np.kron(np.ones(n), np.eye(count))])
    left = [np.vstack([np.kron(np.eye(2, 3), -np.diag(w)), np.zeros((count, 3 * n))]) for w in weights]
    rows = [np.r_[np.zeros(2 * n), np.array(row, dtype=float)] for row in channel.rows]
    # q + c >= hypot(q - c, 2 m), one cone a column: three rows that are neighbours.
    cone = np.einsum("rv,ij->irvj", [[-1, 0, -1], [1, 0, -1], [0, -2, 0]], eye).reshape(3 * n, 3 * n)
    program = ConicProgram(
        quadratic=sparse.csc_array((size, size)),
        cost=np.r_[np.zeros(2 * n), weights.mean(axis=0), np.zeros(size - 3 * n)],
        equal=sparse.csc_array(np.hstack([np.vstack(left), np.kron(np.eye(k), sums)])),
        equal_to=np.concatenate(rows),
        less=sparse.csc_array(-sparse.eye_array(size - 3 * n, size, k=3 * n)),
        less_than=np.zeros(size - 3 * n),
        cones=Cones(sparse.csc_array(np.pad(cone, ((0, 0), (0, size - 3 * n)))), np.zeros(3 * n)),
    )
    masses, moments = Clarabel().solve(program).x[: 2 * n].reshape(2, n)
    found = zip(members.tolist(), (moments / masses).tolist(), (masses / float(setting.ratio)).tolist(), strict=True)
    made = [Column(tuple(who), middle + unit * place, mass) for who, place, mass in found if mass > 0]
    return sorted(made, key=lambda column: column.output)


def _range(channel: Channel) -> float:
    return float(channel.outputs[-1] - channel.outputs[0]) or 1.0


def any_randomizer(random: Random, setting: Setting) -> Channel:
    """Random shares as rows, mixed with equal ones until no ratio exceeds `E`; outputs beyond the labels, too."""
    k, ratio, n = setting.k, setting.ratio, random.randint(2, 6)
    part = (ratio - 1) / (ratio - 1 + n)
    rows = tuple(tuple((1 - part) / n + part * share for share in prior(random, n)) for _ in range(k))
    span = setting.labels[-1] - setting.labels[0]
    outputs = sorted(setting.labels[0] + span * Fraction(random.randint(-20, 40), 20) for _ in range(n))
    return Channel(setting, tuple(outputs), rows)


def _unbiased(random: Random, setting: Setting) -> Channel:
    """A mixture of the best randomizers for random costs on a grid, and the one with two outputs."""
    uniform, outputs = replace(setting, prior=shares([1] * setting.k)), grid(setting, random.randint(3, 6))
    parts = []
    for values in (outputs, outputs, [outputs[0], outputs[-1]]):
        costs = {(v, y): Fraction(random.randint(1, 9)) for v in values for y in setting.labels}
        parts.append(best_on_grid(uniform, values, lambda v, y, costs=costs: costs[v, y])[1])  # type: ignore[misc]
    mixed = zip(shares([random.randint(1, 9) for _ in parts]), parts, strict=True)
    columns = sorted((replace(c, mass=share * c.mass) for share, part in mixed for c in part), key=lambda c: c.output)
    return Channel.of(setting, columns)


def _even(random: Random, k: int) -> Setting:
    """Labels not far from even, and a ratio between 1.1 and 100: floats can tell which columns are used."""
    steps = [Fraction(random.randint(2, 6), 2) for _ in range(k - 1)]
    labels = accumulate(steps, initial=Fraction(random.randint(-9, 9)))
    return Setting(tuple(labels), prior(random, k), 1 + Fraction(random.randint(1, 99), random.choice((1, 10))))


def _channels(budget: Budget) -> Iterator[Channel]:
    one, random = Fraction(1), seeded(12)
    yield Channel(Setting((-one, one), shares((1, 1)), 2 * one), (0 * one,), ((one,), (one,)))
    first = (Setting(label_set(random, k), prior(random, k), ratio) for ratio, k in product(RATIOS, (2, 3)))
    for setting in (*first, *settings(budget.pick(quick=60, full=2_000), most=5, seed=12)):
        yield any_randomizer(random, setting)


def _tighter(before: Channel, after: Channel, forgiven: float = 0.0) -> Comparison:
    """Rows sum to 1, no mean moves, no convex loss grows: no expected excess over any place does."""
    number: Any = float if forgiven else object
    places = np.array([*before.outputs, *after.outputs], dtype=number)
    sides = []
    for channel in (before, after):
        outputs, rows = np.array(channel.outputs, dtype=number), np.array(channel.rows, dtype=number)
        sides.append((rows @ np.maximum(outputs[:, np.newaxis] - places, 0), rows @ outputs, rows.sum(axis=1)))
    (old, old_means, _), (new, new_means, sums) = sides
    room = forgiven * _range(before)
    return worst(
        at_most(abs(sums - 1).max(), forgiven),
        at_most(abs(new_means - old_means).max(), room),
        at_most((new - old).max(), room),
    )


@claim(
    "B23 Claim 12",
    on=_channels,
    given="any randomizer with finitely many outputs, ratios up to exp(epsilon)",
    sides=("outputs (count), or what changed of a row", "2**k, or rounding"),
)
def columns_merge(channel: Channel) -> Comparison:
    """At the same means and no larger convex loss, `2^k` outputs with a staircase column of its own each are enough.

    The outputs are a sequence: the same number comes twice where two of its columns are no staircase together.
    """
    return worst(at_most(len(channel.columns), 2**channel.setting.k), _tighter(channel, channel.merged))


@columns_merge.false
def _(channel: Channel) -> Comparison:
    """At the same means as many outputs are enough for no larger loss of any kind, such as the root of the distance."""

    def root(output: Fraction, label: Fraction) -> Fraction:
        return Fraction(math.isqrt(int(abs(output - label) * 10**6)), 1_000)

    return at_most(channel.merged.loss(root), channel.loss(root))


class Density(Instance):
    """Labels, and the additive staircase mechanism of the package on them."""

    labels: tuple[int, ...]
    epsilon: float

    @cached_property
    def channel(self) -> Channel:
        """Its density, constant from jump to jump; a piece counts at its middle; what is below 1e-8 is left out."""
        noise, k = Staircase(list(self.labels), self.epsilon).noise, len(self.labels)
        length = self.labels[-1] - self.labels[0]
        stairs = product(range(int(20 / self.epsilon) + 2), (Fraction(0), Fraction(noise.jump)), self.labels, (-1, 1))
        ends = sorted({y + side * (i * length + part) for i, part, y, side in stairs})
        pieces = [((a + b) / 2, b - a) for a, b in pairwise(ends)]
        setting = Setting(
            tuple(map(Fraction, self.labels)), shares([1] * k), Fraction(math.exp(self.epsilon) * (1 + 1e-12))
        )
        rows = (noise.density(np.array([float(middle - y) for middle, _ in pieces])).tolist() for y in self.labels)
        exact = (tuple(Fraction(p) * width for p, (_, width) in zip(row, pieces, strict=True)) for row in rows)
        return Channel(setting, tuple(middle for middle, _ in pieces), tuple(exact))


def _densities(budget: Budget) -> Iterator[Density]:
    sets_of_labels = ((0, 1), (0, 1, 2), (0, 1, 5), *budget.pick(quick=(), full=((0, 1, 2, 3), (-3, 0, 2, 9))))
    return starmap(Density, product(sets_of_labels, (2.0, 1.0, 4.0)))


@claim(
    "B23 Appendix B: densities",
    on=_densities,
    given="additive staircase noise of the package, whose density is a sum of staircase columns from jump to jump",
    sides=("outputs (count), what changed, or the loss", "bound, rounding, or loss of the density"),
    false=Variant("The same with at most k outputs.", most=lambda k: k),
)
def densities_merge(density: Density, most: Callable[[int], int] = lambda k: 2**k) -> Comparison:
    """Claim 12 holds of densities as well: finitely many outputs have the same means and no larger convex loss."""
    before, after, k = density.channel, density.channel.merged, len(density.labels)
    moments = Staircase(list(density.labels), density.epsilon).moments(list(density.labels))
    return worst(
        at_most(len(after.outputs), most(k)),
        _tighter(before, after, FLOATS),
        at_most(float(after.loss(half_square)), moments.loss([1 / k] * k), tolerance=FLOATS),
    )


class Exchange(Instance, prior="prior of the label"):
    """A label favoured by the first and the last of three outputs, whose probability moves to the middle one."""

    labels: Row
    outputs: Row
    label: Fraction
    prior: Fraction
    loss: Cost

    def moved(self, by: Row) -> Row:
        """Changes of the three probabilities, in units of eta."""
        return (by[1] - by[2], by[2] - by[0], by[0] - by[1])


def _exchanges(budget: Budget) -> Iterator[Exchange]:
    random, one, third = seeded(14), Fraction(1), Fraction(1, 3)
    numbers, outputs = tuple(map(Fraction, (0, 1, 3))), tuple(map(Fraction, (-1, 0, 4)))
    yield from (Exchange(numbers, outputs, one, chance, half_square) for chance in (third, Fraction(0)))
    yield Exchange(numbers, tuple(map(Fraction, (4, 5, 6))), one, third, absolute)
    for number in range(budget.pick(quick=200, full=5_000)):
        labels, outputs = label_set(random, 3), label_set(random, 3)
        chance = Fraction(random.randint(0, 3), 4)
        yield Exchange(labels, outputs, random.choice(labels), chance, half_square if number % 2 else absolute)


@claim(
    "B23 Claim 13: symbols",
    kind="text",
    on=_exchanges,
    given="three labels; a label favoured by the first and the last of three outputs, and not by the middle one",
    sides=("change of the mean", "zero"),
    corrected=Variant("The same by the distances of the three outputs.", by=lambda each: each.outputs),
    false=Variant(
        "The same by those, the first and the last one exchanged.",
        by=lambda each: (each.outputs[0], each.outputs[0] + each.outputs[2] - each.outputs[1], each.outputs[2]),
    ),
)
def labels_weigh_the_step(exchange: Exchange, by: Callable[[Exchange], Row] = lambda each: each.labels) -> Comparison:
    """Moving probability to the middle output by the distances of three labels keeps the mean."""
    return equal(dot(exchange.moved(by(exchange)), exchange.outputs), 0)


@claim(
    "B23 Claim 13: step",
    kind="text",
    on=_exchanges,
    given="the exchange by the distances of the outputs; halved squared or absolute loss",
    sides=("change of the loss, or whether it is no gain", "zero"),
    corrected=Variant(
        "It makes no convex loss larger, and smaller one that is strictly convex if the prior is positive.",
        strict=lambda each: each.prior > 0 and each.loss is half_square,
    ),
    false=Variant(
        "It makes no convex loss larger, and smaller if the prior of the label is positive.",
        strict=lambda each: each.prior > 0,
    ),
)
def the_step_gains(exchange: Exchange, strict: Callable[[Exchange], bool] = lambda _: True) -> Comparison:
    """Moving probability of a label to the middle output makes any convex loss smaller."""
    losses = [exchange.loss(output, exchange.label) for output in exchange.outputs]
    change = exchange.prior * dot(exchange.moved(exchange.outputs), losses)
    return none(int(change >= 0)) if strict(exchange) else at_most(change, 0)


@lru_cache(maxsize=2)
def _ordered(budget: Budget) -> tuple[Channel, ...]:
    """Unbiased ones, shared by claims."""
    random = seeded(11)
    return tuple(_unbiased(random, _even(random, 2 + number % 3)) for number in range(budget.pick(quick=24, full=500)))


def _with_means(budget: Budget) -> Iterator[Channel]:
    random = seeded(13)
    for number in range(budget.pick(quick=24, full=500)):
        channel = any_randomizer(random, _even(random, 2 + number % 3))
        means = sorted(channel.means)
        if len(set(channel.outputs)) > 2 and min(b - a for a, b in pairwise(means)) > _range(channel) / 50:
            yield channel
    yield from _ordered(budget)


def _no_worse(channel: Channel) -> Comparison:
    return _tighter(channel.merged, Channel.of(channel.setting, channel.best), FLOATS)


@claim(
    "B23 Claim 13",
    on=_with_means,
    given="any randomizer whose means differ, with three outputs or more",
    sides=("labels favoured otherwise (count), or what changed", "zero, or rounding"),
)
def rows_are_runs(channel: Channel) -> Comparison:
    """At the same means and no larger convex loss each label is favoured by outputs in a row, and by one at least."""
    broken = sum(not row or row[-1] - row[0] + 1 != len(row) for row in channel.favouring)
    return worst(none(broken), _no_worse(channel))


@rows_are_runs.false
def _(channel: Channel) -> Comparison:
    """At the same means and no larger convex loss each label is favoured by one output or by two."""
    return worst(none(sum(not 1 <= len(row) <= 2 for row in channel.favouring)), _no_worse(channel))


@claim(
    "B23 Claim 14",
    on=_ordered,
    given="any unbiased randomizer, put in order as by Claim 13, not optima only",
    sides=("sets that are nested or go back (count)", "zero"),
)
def sets_of_outputs_advance(channel: Channel) -> Comparison:
    """Of two labels neither's favouring outputs include the other's; those of the larger start and end later."""
    nested = sum(set(a) <= set(b) for a, b in product(channel.favouring, repeat=2) if a is not b)
    back = sum(not (a[0] < b[0] and a[-1] < b[-1]) for a, b in pairwise(channel.favouring))
    return at_most(float(nested + back), 0.0)


@sets_of_outputs_advance.false
def _(channel: Channel) -> Comparison:
    """Those of the larger label start after those of the smaller one end."""
    return none(sum(not a[-1] < b[0] for a, b in pairwise(channel.favouring)))


@claim(
    "B23 Claim 11",
    on=_ordered,
    given="any unbiased randomizer, finitely many outputs, at least two labels",
    sides=("intervals that are none or go back (count), or change", "zero, or rounding"),
)
def intervals_move_forward(channel: Channel) -> Comparison:
    """At no larger convex loss each output favours neighbouring labels, and these move forward, output by output."""
    ends = _ends(channel)
    odd = sum(b - a + 1 != sum(column.members) for (a, b), column in zip(ends, channel.ordered, strict=True))
    back = sum(not (a[0] <= b[0] and a[1] <= b[1] and a != b) for a, b in pairwise(ends))
    return worst(none(odd + back), _no_worse(channel))


@intervals_move_forward.false
def _(channel: Channel) -> Comparison:
    """The same with both the first and the last favoured label advancing."""
    return none(sum(not (a[0] < b[0] and a[1] < b[1]) for a, b in pairwise(_ends(channel))))


def _ends(channel: Channel) -> list[tuple[int, int]]:
    """The first and the last label that each output favours."""
    k = channel.setting.k
    return [(c.members.index(True), k - 1 - c.members[::-1].index(True)) for c in channel.ordered]
