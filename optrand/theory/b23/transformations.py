"""How any randomizer becomes one of staircase columns, and these are put in order ([B23], Claims 12 and 13)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from random import Random

from optrand.theory.b23.columns import Column, Cost, Members, absolute, best_on_line, dot, half_square
from optrand.theory.b23.structure import favouring
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Setting, label_set, listed, prior, shares

__all__ = ["CLAIMS", "Channel", "staircases"]

FLOATS = 1e-8
"""What optima of cone programs in floats are forgiven, relatively."""


@dataclass(frozen=True)
class Channel:
    """A randomizer, unbiased or not, whose ratios are at most `E`.

    Attributes
    ----------
    setting : Setting
    outputs : tuple of Fraction
        Increasing.
    rows : tuple of tuples of Fraction
        What each label's probabilities are.
    """

    setting: Setting
    outputs: tuple[Fraction, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def __str__(self) -> str:
        rows = "; ".join(listed(row) for row in self.rows)
        return f"{self.setting}, outputs {listed(self.outputs)}, rows {rows}"

    @property
    def means(self) -> list[Fraction]:
        """The expected output of each label."""
        return [dot(row, self.outputs) for row in self.rows]

    def loss(self, cost: Cost) -> Fraction:
        """The expected loss."""
        losses = [[cost(output, y) for output in self.outputs] for y in self.setting.labels]
        return dot(self.setting.prior, [dot(*pair) for pair in zip(self.rows, losses, strict=True)])

    @cached_property
    def merged(self) -> list[Column]:
        """One output for each staircase column: the mean of the outputs where the column is used."""
        masses: Counter[Members] = Counter()
        moments: Counter[Members] = Counter()
        for i, output in enumerate(self.outputs):
            for members, mass in staircases([row[i] for row in self.rows], self.setting.ratio):
                masses[members] += mass  # type: ignore[assignment]  # a counter of fractions
                moments[members] += mass * output  # type: ignore[assignment]
        made = [Column(members, Fraction(moments[members]) / mass, mass) for members, mass in masses.items()]
        return sorted(made, key=lambda column: column.output)

    @cached_property
    def remade(self) -> Channel:
        """The randomizer of the merged columns."""
        ratio = self.setting.ratio
        rows = (
            tuple(Fraction(column.mass) * (ratio if column.members[y] else 1) for column in self.merged)
            for y in range(self.setting.k)
        )
        return Channel(self.setting, tuple(Fraction(column.output) for column in self.merged), tuple(rows))


def staircases(column: list[Fraction], ratio: Fraction) -> list[tuple[Members, Fraction]]:
    """A column as a sum of staircase columns, layer by layer: sets of labels, none empty or full, and their masses.

    What all labels have in common is spread over the columns that favour one label.

    Examples
    --------
    >>> [(members, str(mass)) for members, mass in staircases([Fraction(1), Fraction(3)], Fraction(3))]
    [((False, True), '1')]
    """
    k = len(column)
    made = []
    rest = min(column)
    for low, high in pairwise(sorted(set(column))):
        mass = (high - low) / (ratio - 1)
        made.append((tuple(entry >= high for entry in column), mass))
        rest -= mass
    if rest:
        made += [(tuple(i == y for i in range(k)), rest / (ratio + k - 1)) for y in range(k)]
    return made


def _channels(budget: Budget) -> Iterator[Channel]:
    one = Fraction(1)
    halves = (one / 2, one / 2)
    yield Channel(Setting((-one, one), halves, Fraction(2)), (Fraction(0),), ((one,), (one,)))
    random = Random(12)  # noqa: S311
    for ratio in RATIOS:
        yield from (_channel(random, k, prior, ratio) for k in (2, 3))
    for _ in range(budget.pick(quick=60, full=2_000)):
        yield _channel(random, random.randint(2, 5), prior, _some_ratio(random))


def _some_ratio(random: Random) -> Fraction:
    return 1 + Fraction(random.randint(1, 99), random.choice((1, 10, 100)))


def _channel(random: Random, k: int, draw: Callable[[Random, int], tuple[Fraction, ...]], ratio: Fraction) -> Channel:
    """Random shares as prior and as rows; the rows are mixed with equal ones until no ratio exceeds `ratio`."""
    n = random.randint(2, 6)
    setting = Setting(label_set(random, k), draw(random, k), ratio)
    part = (setting.ratio - 1) / (setting.ratio - 1 + n)
    rows = tuple(tuple((1 - part) / n + part * share for share in draw(random, n)) for _ in range(k))
    span = setting.labels[-1] - setting.labels[0]
    outputs = sorted(setting.labels[0] + span * Fraction(random.randint(-20, 40), 20) for _ in range(n))
    return Channel(setting, tuple(outputs), rows)


def _positive(random: Random, k: int) -> tuple[Fraction, ...]:
    """Shares without zeros, none of them tiny."""
    return shares([random.randint(1, 50) for _ in range(k)])


def _kept(channel: Channel, *costs: Cost) -> Comparison:
    """Rows still sum to 1, no mean moves, no loss grows."""
    before, after = channel, channel.remade
    return worst(
        *(equal(sum(row, Fraction(0)), 1) for row in after.rows),
        *(equal(*pair) for pair in zip(after.means, before.means, strict=True)),
        *(at_most(after.loss(cost), before.loss(cost)) for cost in costs),
    )


def columns_merge(channel: Channel) -> Comparison:
    """At the same means and no larger convex loss, `2^k` outputs with a staircase column of its own each are enough.

    The outputs are a sequence: the same number comes twice where two of its columns are no staircase together.
    """
    return worst(at_most(len(channel.merged), 2**channel.setting.k), _kept(channel, half_square, absolute))


def _root(output: Fraction, label: Fraction) -> Fraction:
    return Fraction(math.isqrt(int(abs(output - label) * 10**6)), 1_000)


def columns_merge_at_any_loss(channel: Channel) -> Comparison:
    """At the same means as many outputs are enough for no larger loss of any kind, convex or not.

    Tried with the square root of the distance, rounded down to thousandths.
    """
    return _kept(channel, _root)


@dataclass(frozen=True)
class _Ordered:
    """A channel of other means than its labels, merged; and the best randomizer on the line that has its means."""

    channel: Channel

    def __str__(self) -> str:
        return str(self.channel)

    @cached_property
    def best(self) -> tuple[float, list[Column]]:
        """Its loss and its columns, in the order of their outputs."""
        return best_on_line(self.channel.setting, self.channel.means)

    @property
    def rows(self) -> list[list[int]]:
        """Which outputs favour each label."""
        return favouring(self.best[1], self.channel.setting.k)


def _ordered(budget: Budget) -> Iterator[_Ordered]:
    random = Random(13)  # noqa: S311
    for number in range(budget.pick(quick=80, full=1_500)):
        channel = _channel(random, 2 + number % 4, _positive, _some_ratio(random))
        if channel.setting.ratio >= Fraction(11, 10) and len(set(channel.means)) > 1:
            yield _Ordered(channel)


def _no_worse(ordered: _Ordered) -> Comparison:
    return at_most(ordered.best[0], ordered.channel.remade.loss(half_square), tolerance=FLOATS)


def rows_are_runs(ordered: _Ordered) -> Comparison:
    """At the same means and no larger loss each label is favoured by outputs in a row, and by one at least."""
    broken = sum(not row or row[-1] - row[0] + 1 != len(row) for row in ordered.rows)
    return worst(_no_worse(ordered), at_most(float(broken), 0.0))


def rows_are_single(ordered: _Ordered) -> Comparison:
    """At the same means and no larger loss each label is favoured by one output."""
    return worst(_no_worse(ordered), at_most(float(sum(len(row) != 1 for row in ordered.rows)), 0.0))


CLAIMS = (
    Claim(
        paper="B23",
        number="Claim 12",
        hypothesis="at least two labels; any randomizer with finitely many outputs and ratios at most exp(epsilon); "
        "squared and absolute loss",
        instances=_channels,
        printed=columns_merge,
        false=columns_merge_at_any_loss,
    ),
    Claim(
        paper="B23",
        number="Claim 13",
        hypothesis="at least two labels, halved squared loss, a prior without zeros; means need not be the labels",
        instances=_ordered,
        printed=rows_are_runs,
        false=rows_are_single,
    ),
)
