"""Several changed labels, and examples that are drawn several times ([G21], Fact 14 and Lemma 16).

An event is one bit of what an algorithm puts out, so the most that all algorithms together can do to it is a chain of
numbers: how likely it can be on a data set, given how likely it is on the neighbour. :func:`likeliest` follows that
chain; it is attained, so it is the truth that bounds are compared with.

The population risk of the uniform distribution on a data set is its empirical risk, so an algorithm for populations
minimises empirical risk as well if it is given draws with replacement. (The argument of Lemma 16 is from Bassily,
Feldman, Talwar and Guha Thakurta, 2019, for ordinary privacy.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["group_delta", "likeliest", "occurrences"]

TOLERANCE = 1e-9

Real = TypeVar("Real", Fraction, float)


def likeliest(event: Fraction, ratio: Fraction, *, delta: Fraction) -> Fraction:
    r"""Largest probability of an event on a neighbouring data set, where it is `event` here.

    .. math:: \min\left( E q + \delta, \; 1 - \frac{1 - q - \delta}{E}, \; 1 \right)

    The first term is the promise for the event, the second the promise for its complement. Any number up to the least
    of the three is attained by an algorithm of two outputs.

    Examples
    --------
    >>> [str(likeliest(event, Fraction(3), delta=Fraction(0))) for event in (Fraction(1, 4), Fraction(1, 2))]
    ['3/4', '5/6']
    """
    return min(ratio * event + delta, 1 - (1 - event - delta) / ratio, Fraction(1))


def group_delta(ratio: Real, delta: Real, *, labels: int) -> Real:
    """Delta that Fact 14 adds for so many changed labels: ``delta (E^k - 1) / (E - 1)``."""
    return delta * (ratio**labels - 1) / (ratio - 1)


class Event(Instance, event="probability"):
    """An event that is this likely on one data set, and data sets that differ from it in `labels` labels."""

    event: Fraction
    ratio: Fraction
    delta: Fraction
    labels: int


def _events(budget: Budget) -> Iterator[Event]:
    chances = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**6)]
    deltas = (Fraction(0), Fraction(1, 10**5), Fraction(1, 10))
    for labels, ratio, delta, event in product((1, 2, 3, 20), RATIOS, deltas, chances):
        yield Event(event, ratio, delta, labels)
    random = seeded(14)
    for _ in range(budget.pick(quick=1_000, full=20_000)):
        event, delta = (Fraction(random.randint(0, 1_000), 10 ** random.randint(3, 7)) for _ in range(2))
        ratio = 1 + Fraction(random.randint(1, 99), 10 ** random.randint(0, 3))
        yield Event(event, ratio, delta, random.randint(1, 12))


ADDED = Variant("The same with ``k delta`` for what is added.", summed=True)


@claim("G21", "Fact 14", on=_events, given="epsilon above 0, data sets that differ in k labels", false=ADDED)
def groups_are_protected(event: Event, *, summed: bool = False) -> Comparison:
    """Where `k` labels differ, no event is likelier than ``E^k`` times as likely, plus ``delta (E^k - 1) / (E - 1)``.

    Of algorithms that are (epsilon, delta)-LabelDP. The paper writes that the output is a subset of the event; it is an
    element of it.
    """
    reached = event.event
    for _ in range(event.labels):
        reached = likeliest(reached, event.ratio, delta=event.delta)
    added = event.labels * event.delta if summed else group_delta(event.ratio, event.delta, labels=event.labels)
    return at_most(reached, event.ratio**event.labels * event.event + added)


def occurrences(n: int, most: int) -> list[Fraction]:
    """Probabilities of an example to be among `n` draws from `n` examples 0 times, once, and so on up to `most` times.

    Examples
    --------
    >>> [str(chance) for chance in occurrences(2, 2)]
    ['1/4', '1/2', '1/4']
    """
    return [Fraction(math.comb(n, j) * (n - 1) ** (n - j), n**n) for j in range(min(n, most) + 1)]


class Drawn(Instance):
    """So many examples, drawn as often, and a budget for the data set."""

    n: int
    epsilon: float
    delta: Fraction

    @property
    def copies(self) -> float:
        """Lemma 16's ``4 log(2 / delta)``."""
        return 4 * math.log(2 / self.delta)

    def spent(self, delta: float) -> float:
        """The delta of the whole, at epsilon, where the algorithm's is this one and its epsilon that of Lemma 16."""
        likely = occurrences(self.n, 3 * math.ceil(self.copies))
        groups = _group_deltas(self.epsilon / self.copies, delta, epsilon=self.epsilon, most=len(likely) - 1)
        costs = (float(chance) * cost for chance, cost in zip(likely, groups, strict=True))
        return math.fsum((*costs, float(1 - total(likely))))


def _group_deltas(step: float, delta: float, *, epsilon: float, most: int) -> list[float]:
    """The least delta, at `epsilon`, of 0, 1, ... changed labels, for an algorithm of budget ``(step, delta)``.

    That is the most that ``p - exp(epsilon) q`` can be, where `q` is how likely an event is and `p` follows from it by
    the chain of :func:`likeliest`. The chain is concave and of straight pieces; the corners of its powers are what it
    takes to the two corners of one step.
    """
    ratio = math.exp(step)
    corners = np.array([(1 - delta) / (ratio + 1), 1 - delta])
    events: Floats = np.array([0.0])
    for _ in range(most):
        events = np.concatenate([events, corners])
        corners = np.where(
            corners <= (ratio + delta) / (ratio + 1), (corners - delta) / ratio, 1 - delta - ratio * (1 - corners)
        )
    events = events[(events >= 0) & (events <= 1)]
    reached, found = events, [0.0]
    for _ in range(most):
        reached = np.minimum(np.minimum(ratio * reached + delta, 1 - (1 - reached - delta) / ratio), 1.0)
        found.append(float((reached - math.exp(epsilon) * events).max()))
    return found


def _draws(budget: Budget) -> Iterator[Drawn]:
    sizes = budget.pick(quick=(1, 2, 3, 10, 300), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000, 3_000))
    deltas = map(Fraction, ("49/100", "1/10", "1/1000", "1/1000000"))
    for n, delta, epsilon in product(sizes, deltas, (1.0, 1e-6, 0.01, 0.3, 3.0, 10.0, 50.0)):
        yield Drawn(n, epsilon, delta)


@claim("G21", "Lemma 16", on=_draws, given="delta below 1/2; all algorithms for populations")
def resampling_is_private(drawn: Drawn) -> Comparison:
    """What is LabelDP for (epsilon / (4 l), exp(-epsilon) delta / (8 l)), given draws, is so for (epsilon, delta).

    Here ``l = log(2 / delta)``; an algorithm for populations is given `n` draws with replacement from `n` examples.
    Compared is the delta of the whole, of all such algorithms, averaged over how often the changed example is drawn.
    """
    delta = float(drawn.delta)
    return at_most(drawn.spent(math.exp(-drawn.epsilon) * delta / (2 * drawn.copies)), delta, tolerance=TOLERANCE)


@resampling_is_private.false
def _(drawn: Drawn) -> Comparison:
    """What is LabelDP for (epsilon / (4 l), delta), given draws, is so for (epsilon, delta)."""
    return at_most(drawn.spent(float(drawn.delta)), float(drawn.delta), tolerance=TOLERANCE)


FEW = Variant("The same with ``log(2 / delta)``.", factor=0.25)


@claim("G21", "Lemma 16: draws", kind="ours", on=_draws, given="delta below 1/2", false=FEW)
def examples_are_drawn_seldom(drawn: Drawn, *, factor: float = 1.0) -> Comparison:
    """An example is drawn more than ``4 log(2 / delta)`` times with probability at most ``delta / 2``."""
    return at_most(1 - total(occurrences(drawn.n, math.floor(factor * drawn.copies))), drawn.delta / 2)
