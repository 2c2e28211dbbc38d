"""From a distribution back to a data set: draw examples from it with replacement ([G21], Lemma 16).

The population risk of the uniform distribution on a data set is its empirical risk, so an algorithm for populations
minimises empirical risk as well if it is given draws with replacement. What that costs in privacy is how often one
example is drawn. (The argument is from Bassily, Feldman, Talwar and Guha Thakurta, 2019, for ordinary privacy.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS", "occurrences"]

TOLERANCE = 1e-9


def occurrences(n: int, most: int) -> list[Fraction]:
    """How likely an example is to be among `n` draws from `n` examples 0 times, once, and so on up to `most` times.

    Examples
    --------
    >>> [str(chance) for chance in occurrences(2, 2)]
    ['1/4', '1/2', '1/4']
    """
    return [Fraction(math.comb(n, j) * (n - 1) ** (n - j), n**n) for j in range(min(n, most) + 1)]


@dataclass(frozen=True)
class _Drawn:
    """So many examples, drawn as often, and a budget for the data set."""

    n: int
    epsilon: float
    delta: Fraction

    @property
    def copies(self) -> float:
        """Lemma 16's ``4 log(2 / delta)``."""
        return 4 * math.log(2 / self.delta)

    def beyond(self, copies: float) -> Fraction:
        """How likely an example is to be drawn more often than that."""
        return 1 - sum(occurrences(self.n, math.floor(copies)), Fraction(0))

    def spent(self, delta: float) -> float:
        """The delta of the whole, at epsilon, where the algorithm's is this one and its epsilon that of Lemma 16."""
        likely = occurrences(self.n, 3 * math.ceil(self.copies))
        groups = _group_deltas(self.epsilon / self.copies, delta, epsilon=self.epsilon, most=len(likely) - 1)
        rest = 1 - sum(likely, Fraction(0))
        return math.fsum(float(chance) * cost for chance, cost in zip(likely, groups, strict=True)) + float(rest)

    @cached_property
    def lemma_delta(self) -> float:
        """Lemma 16's ``exp(-epsilon) delta / (8 log(2 / delta))``."""
        return math.exp(-self.epsilon) * float(self.delta) / (2 * self.copies)

    def __str__(self) -> str:
        return f"n = {self.n}, epsilon {self.epsilon:g}, delta {self.delta}"


def _group_deltas(step: float, delta: float, *, epsilon: float, most: int) -> list[float]:
    """The least delta, at `epsilon`, of 0, 1, ... changed labels, for an algorithm of budget ``(step, delta)``.

    That is the most that ``p - exp(epsilon) q`` can be, where `q` is how likely an event is and `p` follows from it by
    the chain of :func:`optrand.theory.g21.groups.likeliest`. The chain is concave and of straight pieces; the corners
    of its powers are what it takes to the two corners of one step.
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


def _draws(budget: Budget) -> Iterator[_Drawn]:
    deltas = ("49/100", "1/10", "1/1000", "1/1000000")
    for n in budget.pick(quick=(1, 2, 3, 10, 300), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000, 3_000)):
        for delta in deltas:
            yield from (_Drawn(n, epsilon, Fraction(delta)) for epsilon in (1.0, 1e-6, 0.01, 0.3, 3.0, 10.0, 50.0))


def resampling_is_private(drawn: _Drawn) -> Comparison:
    """What is LabelDP for (epsilon / (4 l), exp(-epsilon) delta / (8 l)), given draws, is so for (epsilon, delta).

    Here ``l = log(2 / delta)``; an algorithm for populations is given `n` draws with replacement from `n` examples.
    Compared is the delta of the whole, of all such algorithms, averaged over how often the changed example is drawn.
    """
    return at_most(drawn.spent(drawn.lemma_delta), float(drawn.delta), tolerance=TOLERANCE)


def resampling_keeps_delta(drawn: _Drawn) -> Comparison:
    """What is LabelDP for (epsilon / (4 log(2 / delta)), delta), given draws, is so for (epsilon, delta)."""
    return at_most(drawn.spent(float(drawn.delta)), float(drawn.delta), tolerance=TOLERANCE)


def examples_are_drawn_seldom(drawn: _Drawn) -> Comparison:
    """An example is drawn more than ``4 log(2 / delta)`` times with probability at most ``delta / 2``."""
    return at_most(drawn.beyond(drawn.copies), drawn.delta / 2)


def examples_are_drawn_less(drawn: _Drawn) -> Comparison:
    """An example is drawn more than ``log(2 / delta)`` times with probability at most ``delta / 2``."""
    return at_most(drawn.beyond(drawn.copies / 4), drawn.delta / 2)


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 16",
        hypothesis="delta below 1/2; all algorithms for populations",
        instances=_draws,
        printed=resampling_is_private,
        false=resampling_keeps_delta,
    ),
    Claim(
        paper="G21",
        number="Lemma 16",
        part="draws",
        hypothesis="delta below 1/2",
        instances=_draws,
        printed=examples_are_drawn_seldom,
        false=examples_are_drawn_less,
    ),
)
