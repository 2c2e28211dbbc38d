"""The exchange by which the proof of [B23], Claim 13, puts outputs in order: one row, three outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.theory.b23.columns import absolute, dot, half_square
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import label_set, listed

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Step:
    """Three labels, three outputs, and one label, of some prior, whose probabilities move to the middle output."""

    labels: tuple[Fraction, ...]
    outputs: tuple[Fraction, ...]
    label: Fraction
    prior: Fraction
    square: bool

    def __str__(self) -> str:
        loss = "halved squared" if self.square else "absolute"
        return (
            f"labels {listed(self.labels)}, outputs {listed(self.outputs)}, {loss} loss, "
            f"label {self.label} of prior {self.prior}"
        )

    def moved(self, by: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        """What the three probabilities change by, in units of eta."""
        return (by[1] - by[2], by[2] - by[0], by[0] - by[1])

    @property
    def change(self) -> Fraction:
        """Of the loss, in units of eta, where the distances of the outputs are used."""
        cost = half_square if self.square else absolute
        return self.prior * dot(self.moved(self.outputs), [cost(output, self.label) for output in self.outputs])


def _steps(budget: Budget) -> Iterator[_Step]:
    random = Random(14)  # noqa: S311
    numbers = tuple(map(Fraction, (0, 1, 3)))
    yield _Step((*numbers[:2], Fraction(2)), tuple(map(Fraction, (0, 1, 2))), Fraction(1), Fraction(1, 3), square=True)
    yield _Step(numbers, tuple(map(Fraction, (-1, 0, 4))), Fraction(1), Fraction(1, 3), square=True)
    yield _Step(numbers, tuple(map(Fraction, (-1, 0, 4))), Fraction(1), Fraction(0), square=True)
    yield _Step(numbers, tuple(map(Fraction, (4, 5, 6))), Fraction(1), Fraction(1, 3), square=False)
    for number in range(budget.pick(quick=200, full=5_000)):
        labels, outputs = label_set(random, 3), label_set(random, 3)
        yield _Step(labels, outputs, random.choice(labels), Fraction(random.randint(0, 3), 4), square=bool(number % 2))


def the_step_gains(step: _Step) -> Comparison:
    """Moving probability to the middle output, by the distances of outputs, keeps the mean and makes the loss smaller.

    Any convex loss.
    """
    return worst(_mean_stays(step), none(int(step.change >= 0)))


def the_step_never_loses(step: _Step) -> Comparison:
    """Moving probability to the middle output keeps the mean and makes no convex loss larger.

    It makes the loss smaller if it is strictly convex and the prior of the label is positive.
    """
    strict = step.prior and step.square
    return worst(_mean_stays(step), none(int(step.change >= 0)) if strict else at_most(step.change, 0))


def _mean_stays(step: _Step) -> Comparison:
    return equal(dot(step.moved(step.outputs), step.outputs), 0)


def labels_weigh_the_step(step: _Step) -> Comparison:
    """Moving probability by the distances of three labels in place of the three outputs keeps the mean."""
    return equal(dot(step.moved(step.labels), step.outputs), 0)


CLAIMS = (
    Claim(
        paper="B23",
        number="Claim 13",
        part="step",
        hypothesis="a label favoured by the first and the last of three outputs, and not by the middle one; halved "
        "squared or absolute loss",
        instances=_steps,
        printed=the_step_gains,
        corrected=the_step_never_loses,
        false=labels_weigh_the_step,
    ),
)
