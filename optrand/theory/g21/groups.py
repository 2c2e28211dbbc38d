"""What several changed labels cost: group privacy, in full ([G21], Fact 14).

An event is one bit of what an algorithm puts out, so the most that all algorithms together can do to it is a chain of
numbers: how likely it can be on a data set, given how likely it is on the neighbour. :func:`likeliest` follows that
chain; it is attained, so it is the truth that the bound is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import TypeVar

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import RATIOS

__all__ = ["CLAIMS", "group_delta", "likeliest"]

Real = TypeVar("Real", Fraction, float)


def likeliest(event: Fraction, ratio: Fraction, *, delta: Fraction) -> Fraction:
    r"""How likely an event can be on a neighbouring data set.

    .. math:: \min\left( E q + \delta, \; 1 - \frac{1 - q - \delta}{E}, \; 1 \right)

    Parameters
    ----------
    event : Fraction
        How likely it is here, ``q``.
    ratio : Fraction
        ``E = exp(epsilon)``.
    delta : Fraction

    Notes
    -----
    The first term is the promise for the event, the second the promise for its complement. Any number up to the least
    of the three is attained by an algorithm of two outputs.

    Examples
    --------
    >>> [str(likeliest(event, Fraction(3), delta=Fraction(0))) for event in (Fraction(1, 4), Fraction(1, 2))]
    ['3/4', '5/6']
    """
    return min(ratio * event + delta, 1 - (1 - event - delta) / ratio, Fraction(1))


def group_delta(ratio: Real, delta: Real, *, labels: int) -> Real:
    """What Fact 14 adds for that many changed labels: ``delta (E^k - 1) / (E - 1)``."""
    return delta * (ratio**labels - 1) / (ratio - 1)


@dataclass(frozen=True)
class _Event:
    """An event that is this likely on one data set, and data sets that differ from it in `labels` labels."""

    event: Fraction
    ratio: Fraction
    delta: Fraction
    labels: int

    @cached_property
    def reached(self) -> Fraction:
        """How likely any algorithm can make it on the other data set."""
        found = self.event
        for _ in range(self.labels):
            found = likeliest(found, self.ratio, delta=self.delta)
        return found

    def __str__(self) -> str:
        return f"event {self.event}, E = {self.ratio}, delta {self.delta}, {self.labels} labels"


def _events(budget: Budget) -> Iterator[_Event]:
    chances = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**6)]
    for labels in (1, 2, 3, 20):
        for ratio in RATIOS:
            for delta in (Fraction(0), Fraction(1, 10**5), Fraction(1, 10)):
                yield from (_Event(event, ratio, delta, labels) for event in chances)
    random = Random(14)  # noqa: S311
    for _ in range(budget.pick(quick=1_000, full=20_000)):
        event, delta = (Fraction(random.randint(0, 1_000), 10 ** random.randint(3, 7)) for _ in range(2))
        ratio = 1 + Fraction(random.randint(1, 99), 10 ** random.randint(0, 3))
        yield _Event(event, ratio, delta, random.randint(1, 12))


def groups_are_protected(event: _Event) -> Comparison:
    """Where `k` labels differ, no event is likelier than ``E^k`` times as likely, plus ``delta (E^k - 1) / (E - 1)``.

    Of algorithms that are (epsilon, delta)-LabelDP. The paper writes that the output is a subset of the event; it is an
    element of it.
    """
    added = group_delta(event.ratio, event.delta, labels=event.labels)
    return at_most(event.reached, event.ratio**event.labels * event.event + added)


def deltas_add_up(event: _Event) -> Comparison:
    """The same with ``k delta`` for what is added."""
    return at_most(event.reached, event.ratio**event.labels * event.event + event.labels * event.delta)


CLAIMS = (
    Claim(
        paper="G21",
        number="Fact 14",
        hypothesis="epsilon above 0, delta at least 0, data sets that differ in k labels",
        instances=_events,
        printed=groups_are_protected,
        false=deltas_add_up,
    ),
)
