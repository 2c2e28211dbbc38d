"""Whether there is an optimal unbiased randomizer at all ([B23], Theorem 6): of absolute loss there may be none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.errors import Infeasible
from optrand.theory.b23.columns import Members, absolute, best_on_grid, response_ends, sets
from optrand.theory.b23.simplex import minimise
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none
from optrand.theory.instances import RATIOS, Setting, label_set, prior, shares

__all__ = ["CLAIMS", "AbsoluteLoss", "Part"]


@dataclass(frozen=True)
class Part:
    """Mass that a column has at a label, or a moment that it has beyond all labels (`side` is -1 or 1)."""

    members: Members
    label: Fraction
    side: int = 0


@dataclass(frozen=True)
class AbsoluteLoss:
    """Absolute loss with outputs anywhere on the line, as a linear program in mass at labels and moments beyond them.

    An output at distance `d` beyond the last label, of mass `c`, is to the rows and to the loss the same as mass `c` at
    that label and a moment `c d` beside it. A moment without mass is an output at infinity: the least loss is attained
    if and only if some optimum of the program has none. Convex in the distances, the loss gains nothing from outputs
    between two labels.
    """

    setting: Setting

    def __str__(self) -> str:
        return f"absolute loss, {self.setting}"

    @cached_property
    def parts(self) -> list[Part]:
        """All variables of the program."""
        first, last = self.setting.labels[0], self.setting.labels[-1]
        ends = [(label, 0) for label in self.setting.labels] + [(first, -1), (last, 1)]
        return [Part(members, *end) for members in sets(self.setting.k) for end in ends]

    @cached_property
    def infimum(self) -> Fraction:
        """What no unbiased randomizer goes below, and some come as near to as one likes."""
        return self._optimum(frozenset())[0]

    @cached_property
    def lost(self) -> list[Part]:
        """Moments that every optimum needs, of columns that have no mass beside them in any optimum.

        Of each moment in one optimum: is the least loss without it larger, and is the most mass beside it, over all
        optima, zero?
        """
        used = self._optimum(frozenset())[1]
        moments = [part for part in used if part.side and Part(part.members, part.label) not in used]
        return [part for part in moments if self._needed(part) and not self._mass(part)]

    @cached_property
    def outputs_in_box(self) -> int:
        """How many outputs a vertex has whose outputs stay between the ends of debiased randomized response."""
        ends = response_ends(self.setting.labels, self.setting.ratio)
        _, columns = best_on_grid(self.setting, sorted({*self.setting.labels, *ends}), absolute)
        return len({column.output for column in columns})

    def loss_within(self, reach: Fraction) -> Fraction:
        """The least loss with outputs at most `reach` beyond the labels."""
        first, last = self.setting.labels[0], self.setting.labels[-1]
        return best_on_grid(self.setting, [first - reach, *self.setting.labels, last + reach], absolute)[0]

    def _optimum(self, without: frozenset[Part]) -> tuple[Fraction, list[Part]]:
        kept = [part for part in self.parts if part not in without]
        vertex = minimise([self._cost(part) for part in kept], [self._column(part) for part in kept], self._right)
        return vertex.value, [part for part, amount in zip(kept, vertex.amounts, strict=True) if amount]

    def _needed(self, part: Part) -> bool:
        try:
            return self._optimum(frozenset({part}))[0] > self.infimum
        except Infeasible:
            return True

    def _mass(self, moment: Part) -> Fraction:
        """The most mass at the label from which a moment starts, over all optima."""
        beside = Part(moment.members, moment.label)
        columns = [[*self._column(part), self._cost(part)] for part in self.parts]
        costs = [Fraction(-1 if part == beside else 0) for part in self.parts]
        return -minimise(costs, columns, [*self._right, self.infimum]).value

    @property
    def _right(self) -> list[Fraction]:
        return [*[Fraction(1)] * self.setting.k, *self.setting.labels]

    def _weights(self, part: Part) -> list[Fraction]:
        return [self.setting.ratio if member else Fraction(1) for member in part.members]

    def _column(self, part: Part) -> list[Fraction]:
        weights = self._weights(part)
        if part.side:
            return [*[Fraction(0)] * self.setting.k, *(part.side * weight for weight in weights)]
        return [*weights, *(part.label * weight for weight in weights)]

    def _cost(self, part: Part) -> Fraction:
        losses = [Fraction(1) if part.side else absolute(part.label, y) for y in self.setting.labels]
        terms = zip(self._weights(part), self.setting.prior, losses, strict=True)
        return sum((weight * p * loss for weight, p, loss in terms), Fraction(0))


def _settings(budget: Budget) -> Iterator[Setting]:
    three = tuple(map(Fraction, range(3)))
    for ratio in (Fraction(2), min(RATIOS), max(RATIOS)):
        for weights in ((1, 1), (0, 1), (1, 1, 1), (5, 5, 1), (1, 1, 0), (0, 1, 0)):
            yield Setting(three[: len(weights)], shares(weights), ratio)
    random = Random(2)  # noqa: S311
    for _ in range(budget.pick(quick=12, full=200)):
        k = random.randint(2, 4)
        yield Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(1, 60), 10))


def _instances(budget: Budget) -> Iterator[AbsoluteLoss]:
    return map(AbsoluteLoss, _settings(budget))


def there_is_an_optimum(posed: AbsoluteLoss) -> Comparison:
    """Of any convex loss that is least at the label, absolute loss for one, an optimal unbiased randomizer exists."""
    return none(len(posed.lost))


def there_is_one_in_a_box(posed: AbsoluteLoss) -> Comparison:
    """Of any convex loss and outputs in a feasible box an optimal one exists, with at most `2 k` outputs.

    Without a box there is one if the loss grows faster than linearly, as squared loss does.
    """
    return at_most(posed.outputs_in_box, 2 * posed.setting.k)


def there_is_an_optimum_if_all_labels_occur(posed: AbsoluteLoss) -> Comparison:
    """Of absolute loss an optimal unbiased randomizer exists if no label has the prior 0."""
    return none(len(posed.lost) if all(posed.setting.prior) else 0)


CLAIMS = (
    Claim(
        paper="B23",
        number="Theorem 6",
        part="existence",
        hypothesis="absolute loss, which is convex and least at the label; any finite labels, prior and epsilon",
        instances=_instances,
        printed=there_is_an_optimum,
        corrected=there_is_one_in_a_box,
        false=there_is_an_optimum_if_all_labels_occur,
    ),
)
