"""What optimal unbiased randomizers look like ([B23], Theorem 6, Claims 11 and 14), on optima that assume nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from random import Random

import optrand
from optrand.theory.b23.columns import (
    Column,
    absolute,
    best_on_grid,
    best_on_line,
    grid,
    half_square,
    response_ends,
    sets,
    two_end_loss,
)
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Setting, label_set, prior, settings, shares

__all__ = ["CLAIMS", "OnLine", "favouring", "places", "response_loss"]

PROVEN = 1e-9
"""The largest relative gap of an optimum that counts as proven."""

FLOATS = 1e-8
"""What optima of cone programs in floats are forgiven, relatively."""


@dataclass(frozen=True)
class _Certified:
    """A problem on the line, zero priors and a single label included, and an answer with its proof."""

    setting: Setting

    def __str__(self) -> str:
        return str(self.setting)

    @cached_property
    def found(self) -> tuple[int, float]:
        """The number of outputs, and the verified gap: the bound prices every set of labels at every real output."""
        prior, labels = ([float(x) for x in row] for row in (self.setting.prior, self.setting.labels))
        problem = optrand.unbiased_regression(labels, prior, math.log(self.setting.ratio))
        mechanism = optrand.tabulate(optrand.solve(problem))
        return mechanism.n, optrand.certify(mechanism).gap


def _certified(budget: Budget) -> Iterator[_Certified]:
    """A single label, edge cases, then random ones with priors that are zero or not tiny."""
    yield _Certified(Setting((Fraction(3),), (Fraction(1),), Fraction(2)))
    yield from map(_Certified, settings(0))
    random = Random(4)  # noqa: S311
    for _ in range(budget.pick(quick=40, full=1_000)):
        k = random.randint(2, 12)
        weights = [random.randint(-4, 20) for _ in range(k)]
        weights = [max(weight, 0) for weight in weights] if max(weights) > 0 else [1] * k
        yield _Certified(Setting(label_set(random, k), shares(weights), random.choice(RATIOS[:-1])))


def _at_most(certified: _Certified, outputs: int) -> Comparison:
    """That an optimum, proven in floats, has no more outputs."""
    count, gap = certified.found
    return worst(at_most(float(count), outputs), at_most(gap, PROVEN))


def twice_as_many_outputs_as_labels(certified: _Certified) -> Comparison:
    """Of halved squared loss there is an optimal unbiased randomizer with at most `2 k` outputs."""
    return _at_most(certified, 2 * certified.setting.k)


def three_fewer(certified: _Certified) -> Comparison:
    """Of halved squared loss and three labels or more the optimal unbiased randomizer has at most `2 k - 3` outputs."""
    k = certified.setting.k
    return _at_most(certified, max(2 * k - 3, min(k, 2)))


def positive(budget: Budget, *, seed: int, quick: int = 60) -> Iterator[Setting]:
    """Settings whose priors have no zero and whose ratios lie between 1.1 and 100: floats can tell what is used."""
    thirds = (Fraction(1, 3),) * 3
    yield Setting((Fraction(0), Fraction(1)), (Fraction(1, 2),) * 2, Fraction(2))
    yield Setting((Fraction(0), Fraction(1), Fraction(2)), thirds, Fraction(2))
    random = Random(seed)  # noqa: S311
    for _ in range(budget.pick(quick=quick, full=20 * quick)):
        k = random.randint(2, 5)
        weights = [random.randint(1, 50) for _ in range(k)]
        yield Setting(
            label_set(random, k), shares(weights), 1 + Fraction(random.randint(1, 99), random.choice((1, 10)))
        )


@dataclass(frozen=True)
class OnLine:
    """The optimum on the line, of all staircase columns."""

    setting: Setting

    def __str__(self) -> str:
        return str(self.setting)

    @cached_property
    def found(self) -> tuple[float, list[Column]]:
        """Its loss, and its columns in the order of their outputs."""
        return best_on_line(self.setting)

    @cached_property
    def favoured(self) -> list[tuple[int, int]]:
        """The first and the last label that each output favours."""
        return [(places(column)[0], places(column)[-1]) for column in self.found[1]]

    @cached_property
    def favouring(self) -> list[list[int]]:
        """Which outputs favour each label, by their places: the sets `T(y)`."""
        return favouring(self.found[1], self.setting.k)


def places(column: Column) -> list[int]:
    """The labels that a column favours, by their places."""
    return [i for i, member in enumerate(column.members) if member]


def favouring(columns: list[Column], k: int) -> list[list[int]]:
    """Which columns favour each label, by their places."""
    return [[i for i, column in enumerate(columns) if column.members[y]] for y in range(k)]


def _on_line(budget: Budget) -> Iterator[OnLine]:
    return map(OnLine, positive(budget, seed=11))


def _none(found: int) -> Comparison:
    """That nothing was found among columns that floats say are used."""
    return at_most(float(found), 0.0)


def _no_worse(line: OnLine) -> Comparison:
    """Than the randomizer with two outputs, and than debiased randomized response."""
    setting = line.setting
    loss = two_end_loss(setting, *response_ends(setting.labels, setting.ratio))
    return at_most(line.found[0], min(loss, response_loss(setting)), tolerance=FLOATS)


def response_loss(setting: Setting) -> Fraction:
    """Of debiased randomized response, whose outputs are `y + (k y - t) / (E - 1)` with `t` the sum of the labels."""
    total, gain = sum(setting.labels, Fraction(0)), setting.ratio - 1
    outputs = [y + (setting.k * y - total) / gain for y in setting.labels]
    everywhere = [sum(((v - y) ** 2 for v in outputs), Fraction(0)) for y in setting.labels]
    own = [(v - y) ** 2 for v, y in zip(outputs, setting.labels, strict=True)]
    sums = (p * (all_ + gain * mine) for p, all_, mine in zip(setting.prior, everywhere, own, strict=True))
    return sum(sums, Fraction(0)) / (2 * (setting.ratio + setting.k - 1))


def intervals_move_forward(line: OnLine) -> Comparison:
    """At no larger loss each output favours neighbouring labels, and these move forward from output to output.

    All columns have two levels; neither the first nor the last favoured label goes back, and one of them advances.
    """
    forward = [a[0] <= b[0] and a[1] <= b[1] and a != b for a, b in pairwise(line.favoured)]
    odd = sum(not column.interval for column in line.found[1])
    return worst(_no_worse(line), _none(odd), _none(forward.count(False)))


def one_label_an_output(line: OnLine) -> Comparison:
    """At no larger loss each output favours one label."""
    return worst(_no_worse(line), _none(sum(len(places(column)) > 1 for column in line.found[1])))


def sets_of_outputs_advance(line: OnLine) -> Comparison:
    """Of two labels neither's favouring outputs include the other's; those of the larger start and end later."""
    nested = sum(set(a) <= set(b) for a in line.favouring for b in line.favouring if a is not b)
    late = sum(not (a[0] < b[0] and a[-1] < b[-1]) for a, b in pairwise(line.favouring))
    return _none(nested + late)


def sets_of_outputs_are_apart(line: OnLine) -> Comparison:
    """No output favours two labels: those of the larger label start after those of the smaller one end."""
    return _none(sum(not a[-1] < b[0] for a, b in pairwise(line.favouring)))


@dataclass(frozen=True)
class _OnGrid:
    """A setting, zero priors among them, and one of two losses on a grid."""

    setting: Setting
    n: int
    square: bool

    def __str__(self) -> str:
        loss = "halved squared" if self.square else "absolute"
        return f"{self.setting}, {loss} loss, {self.n} outputs from end to end of debiased randomized response"

    @cached_property
    def least(self) -> Fraction:
        """Of all columns."""
        return self._least(sets(self.setting.k))

    @cached_property
    def least_of_intervals(self) -> Fraction:
        """Of columns that favour neighbours."""
        return self._least([members for members in sets(self.setting.k) if Column(members, 0, 1).interval])

    @cached_property
    def least_of_halves(self) -> Fraction:
        """Of columns that favour all labels up to one, or all from one on."""
        return self._least(
            [members for members in sets(self.setting.k) if sorted(members) in (list(members), list(reversed(members)))]
        )

    def _least(self, among: list[tuple[bool, ...]]) -> Fraction:
        loss = half_square if self.square else absolute
        return best_on_grid(self.setting, grid(self.setting, self.n), loss, among=among)[0]


def _on_grid(budget: Budget) -> Iterator[_OnGrid]:
    random = Random(5)  # noqa: S311
    for ratio in (Fraction(2), min(RATIOS), max(RATIOS)):
        for weights in ((1, 1), (0, 1), (1, 1, 1), (1, 0, 1), (0, 1, 0)):
            setting = Setting(tuple(map(Fraction, range(len(weights)))), shares(weights), ratio)
            yield from (_OnGrid(setting, 5, square) for square in (True, False))
    for i in range(budget.pick(quick=20, full=400)):
        k = random.randint(3, 4)
        ratio = 1 + Fraction(random.randint(1, 99), random.choice((1, 10, 100)))
        setting = Setting(label_set(random, k), prior(random, k), ratio)
        yield _OnGrid(setting, random.randint(4, 8), square=bool(i % 2))


def intervals_are_enough(posed: _OnGrid) -> Comparison:
    """No unbiased randomizer does better than those whose outputs favour neighbouring labels."""
    return equal(posed.least_of_intervals, posed.least)


def halves_are_enough(posed: _OnGrid) -> Comparison:
    """No unbiased randomizer does better than those whose outputs favour all labels up to one, or from one on."""
    return equal(posed.least_of_halves, posed.least)


CLAIMS = (
    Claim(
        paper="B23",
        number="Theorem 6",
        part="outputs",
        hypothesis="halved squared loss, any finite labels and prior, any epsilon above 0",
        instances=_certified,
        printed=twice_as_many_outputs_as_labels,
        false=three_fewer,
    ),
    Claim(
        paper="B23",
        number="Claim 11",
        part="on the line",
        hypothesis="halved squared loss, a prior without zeros; optima of all 2^k - 2 columns",
        instances=_on_line,
        printed=intervals_move_forward,
        false=one_label_an_output,
    ),
    Claim(
        paper="B23",
        number="Claim 11",
        part="on a grid",
        hypothesis="halved squared or absolute loss, any prior, outputs on a grid; exact optima",
        instances=_on_grid,
        printed=intervals_are_enough,
        false=halves_are_enough,
    ),
    Claim(
        paper="B23",
        number="Claim 14",
        hypothesis="unbiased, columns of two levels, no two alike, each label favoured by consecutive outputs",
        instances=_on_line,
        printed=sets_of_outputs_advance,
        false=sets_of_outputs_are_apart,
    ),
)
