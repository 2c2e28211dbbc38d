"""Least excess risk of private algorithms ([G21], Proposition 13), groups of labels and draws (Fact 14 and Lemma 16).

Example `i` of `n` is the direction ``e_i`` with a label that is a fair coin, 1 or 2, read as a sign. The loss is ``L``
times the inner product with the parameter, under that sign; parameters are a ball of diameter ``D``. Excess risk is
``D L / (2 sqrt(n)) (1 - correlation)`` with the correlation of the parameter and the signs, which is at most the root
mean square of what an algorithm knows of each sign. That argues about all algorithms and is sharper than the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from operator import mul
from typing import TypeVar

import numpy as np
from scipy.optimize import linprog

from optrand.errors import SolverFailed
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["group_delta", "known_of_a_sign", "likeliest", "occurrences"]

Real = TypeVar("Real", Fraction, float)


def known_of_a_sign(ratio: Real, delta: Real) -> Real:
    r"""Largest mean square of what an (epsilon, delta)-DP algorithm knows of a fair sign.

    It is ``delta + (1 - delta) t^2`` with ``t = (E - 1) / (E + 1)``; from a delta of 1 on the sign is known.

    An output of probabilities `p` and `q` under the two signs adds ``f(p, q) = (p - q)^2 / (2 (p + q))``, which is
    convex and homogeneous, so at most the sum over any two parts of the pair. Where ``p > E q`` the parts ``(p - E q,
    0)`` and ``(E q, q)`` have ``(p - E q) / 2`` and ``t^2 (E q + q) / 2``; likewise where ``q > E p``; elsewhere `f` is
    at most ``t^2 (p + q) / 2``. All ``p - E q`` above 0 sum to at most delta, and so do all ``q - E p``. Attained where
    the sign is shown with probability delta, and kept with odds `E` else.
    """
    if delta >= 1:
        return type(delta)(1)
    return delta + (1 - delta) * ((ratio - 1) / (ratio + 1)) ** 2


class Signs(Instance, diameter="D", lipschitz="L"):
    """The data set: labels 1 or 2 of the directions, in a ball of some diameter, with a Lipschitz constant."""

    labels: tuple[int, ...]
    diameter: Fraction
    lipschitz: Fraction

    def risk(self, parameter: Sequence[int]) -> Fraction:
        """The empirical risk: label 1 counts the inner product, label 2 its negative."""
        turned = sum(map(mul, parameter, (3 - 2 * y for y in self.labels)))
        return self.lipschitz * Fraction(turned, len(self.labels))


def _data_sets(budget: Budget) -> Iterator[Signs]:
    sizes = [(Fraction(1), Fraction(1)), (Fraction(3, 2), Fraction(1, 7)), (Fraction(1, 10), Fraction(20))]
    for n in range(1, budget.pick(quick=7, full=10)):
        yield from (Signs(labels, *size) for labels in product((1, 2), repeat=n) for size in sizes)


of_text = partial(claim, "G21", kind="text")
FALLS = Variant("The same with ``-D L / (2 n)``.", power=2)
FEW = Variant("The same with ``log(2 / delta)``.", factor=0.25)
ADDED = Variant("The same with ``k delta`` for what is added.", summed=True)
FULL = Variant("What is LabelDP for (epsilon / (4 l), delta), given draws, is so for (epsilon, delta).", full=True)
FLIPS = Variant("No algorithm beats flipping each label with odds ``E + delta`` to ``1 - delta``.", flips=True)
HELPLESS = Variant("The same with ``E / (E + 1)``.", helps=0)
SHARED = Variant("Risk is at least ``-(L / n) (D / 2)`` times their number over ``sqrt(n)``.", shared=True)


@of_text(
    "Proposition 13: construction",
    on=_data_sets,
    given="any labels, any D and L",
    sides=("squared risk, or the risk, at the claimed place", "square of the claimed least risk, or zero"),
    false=FALLS,
)
def least_risk_is_at_the_sum_of_signs(given: Signs, *, power: int = 1) -> Comparison:
    """The least empirical risk in the ball is ``-D L / (2 sqrt(n))``, where the signed directions add up."""
    n, radius = len(given.labels), given.diameter**2 / 4
    slopes = (given.risk([i == j for j in range(n)]) for i in range(n))
    there = given.risk([2 * label - 3 for label in given.labels])
    squares = radius * total(slope**2 for slope in slopes), radius * there**2 / n
    claimed = radius * given.lipschitz**2 / n**power
    return worst(*(equal(square, claimed) for square in squares), at_most(there, 0))


class Private(Instance):
    """So many examples under a budget."""

    n: int
    ratio: Fraction
    delta: Fraction

    @cached_property
    def guessed(self) -> float:
        """Largest probability of a parameter on the right side, by a linear program over its sides (or neither)."""
        events, both = np.array(list(product((0.0, 1.0), repeat=3))), np.array([[1, 0], [0, 1]])
        promises = np.kron(both - float(self.ratio) * both[::-1], events)
        right, sums = [-0.5, 0, 0, 0, 0, -0.5], np.kron(both, np.ones(3))
        program = linprog(right, promises, np.full(len(promises), float(self.delta)), sums, [1, 1])
        if program.fun is None:
            raise SolverFailed(f"HiGHS did not solve the program of a sign: {program.message}")
        return -float(program.fun)

    @cached_property
    def attained(self) -> float:
        """The correlation where each label is shown with probability delta, else answered by randomized response."""
        told, delta, n = known_of_a_sign(float(self.ratio), 0.0), float(self.delta), self.n
        chances = (math.comb(n, shown) * delta**shown * (1 - delta) ** (n - shown) for shown in range(n + 1))
        return math.fsum(p * math.sqrt((shown + (n - shown) * told) / n) for shown, p in enumerate(chances))


def _coins(budget: Budget) -> Iterator[Private]:
    deltas = (Fraction(0), Fraction(1, 100), Fraction(1, 2), Fraction(1))
    yield from (Private(1, ratio, delta) for ratio, delta in product(RATIOS[:-1], deltas))
    random = seeded(13)
    for _ in range(budget.pick(quick=70, full=3_000)):
        yield Private(1, 1 + Fraction(random.randint(1, 999), 100), Fraction(random.randint(0, 100), 100))


@of_text(
    "Proposition 13: equation 13",
    on=_coins,
    given="any channel of a fair label",
    sides=("probability that a side is guessed right", "bound"),
    false=HELPLESS,
)
def a_sign_is_hard_to_guess(private: Private, *, helps: int = 1) -> Comparison:
    """A private parameter is on the right side of a direction with probability at most ``(E + delta) / (E + 1)``."""
    most = float((private.ratio + helps * private.delta) / (private.ratio + 1))
    return at_most(private.guessed, most, tolerance=1e-7)


class Parameter(Instance):
    """A parameter on the sphere, as multiples of an orthogonal direction each, and signs."""

    parameter: tuple[int, ...]
    signs: tuple[int, ...]


def _parameters(budget: Budget) -> Iterator[Parameter]:
    for n in (1, 2, 3):
        pairs = product(product((0, 1, -1), repeat=n), product((1, -1), repeat=n))
        yield from (Parameter(parts, signs) for parts, signs in pairs if any(parts))
    random = seeded(15)
    for _ in range(budget.pick(quick=300, full=10_000)):
        n = random.randint(1, 12)
        parts = (*(random.randint(-9, 9) for _ in range(n - 1)), 1)
        yield Parameter(parts, tuple(random.choice((1, -1)) for _ in range(n)))


@of_text(
    "Proposition 13: equation 15",
    on=_parameters,
    given="any parameter and labels",
    sides=("squared gain in risk, in units of L D / (2 n)", "directions on the right side, as the form counts them"),
    false=SHARED,
)
def right_signs_bound_what_is_gained(given: Parameter, *, shared: bool = False) -> Comparison:
    """Risk is at least ``-(L / n) (D / 2)`` times the root of how many directions have the parameter on their side."""
    products = list(map(mul, given.signs, given.parameter))
    right = sum(each > 0 for each in products)
    gained = Fraction(max(sum(products), 0) ** 2, sum(each**2 for each in products))
    return at_most(gained, Fraction(right**2, len(products)) if shared else right)


def _budgets(budget: Budget) -> Iterator[Private]:
    deltas = (Fraction(0), Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100))
    sizes = budget.pick(quick=(1, 2, 3, 10, 100), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000))
    return (Private(n, ratio, delta) for n, ratio, delta in product(sizes, RATIOS, deltas))


@claim(
    "G21 Proposition 13: least excess risk",
    on=_budgets,
    given="all algorithms, constructed data sets",
    sides=("squared correlation that is attained", "largest squared correlation, or what the bound allows"),
    false=FLIPS,
)
def private_risk_exceeds_the_least(private: Private, *, flips: bool = False) -> Comparison:
    """The excess risk is on average at least ``(1 - sqrt((E + delta) / (E + 1))) D L / (2 sqrt(n))``.

    Of any algorithm, over fair labels; the bound is the last line of the proof. Compared as squares of correlations:
    what an algorithm attains, what none exceeds (randomized response attains it without delta), what the bound allows.
    """
    most, allowed = known_of_a_sign(private.ratio, private.delta), (private.ratio + private.delta) / (private.ratio + 1)
    attained = at_most(private.attained**2, float((2 * allowed - 1) ** 2 if flips else most), tolerance=1e-12)
    return attained if flips else worst(attained, at_most(most, allowed))


def likeliest(event: Fraction, ratio: Fraction, *, delta: Fraction) -> Fraction:
    """Largest probability of an event on a neighbouring data set, where it is `event` here.

    By the promise for the event, and that for its complement; an algorithm of two outputs attains it.
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


@claim(
    "G21 Fact 14",
    on=_events,
    given="epsilon above 0, data sets that differ in k labels",
    sides=("largest probability of the event", "bound"),
    false=ADDED,
)
def groups_are_protected(event: Event, *, summed: bool = False) -> Comparison:
    """Where `k` labels differ, an event is at most ``E^k`` times as likely, plus ``delta (E^k - 1) / (E - 1)``."""
    reached = event.event
    for _ in range(event.labels):
        reached = likeliest(reached, event.ratio, delta=event.delta)
    added = event.labels * event.delta if summed else group_delta(event.ratio, event.delta, labels=event.labels)
    return at_most(reached, event.ratio**event.labels * event.event + added)


def occurrences(n: int, most: int) -> list[Fraction]:
    """Probabilities that an example is 0, 1, ... `most` times among `n` draws from `n` examples."""
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
        return math.fsum((*map(mul, map(float, likely), groups), float(1 - total(likely))))


def _group_deltas(step: float, delta: float, *, epsilon: float, most: int) -> list[float]:
    """The least delta, at `epsilon`, of 0, 1, ... changed labels, for an algorithm of budget ``(step, delta)``.

    That is the most that ``p - exp(epsilon) q`` can be, where `q` is how likely an event is and `p` follows from it by
    the chain of :func:`likeliest`. The chain is concave and of straight pieces; the corners of its powers are what it
    takes to the two corners of one step.
    """
    ratio, events = math.exp(step), np.array([0.0])
    corners = np.array([(1 - delta) / (ratio + 1), 1 - delta])
    for _ in range(most):
        events = np.concatenate([events, corners])
        low = corners <= (ratio + delta) / (ratio + 1)
        corners = np.where(low, (corners - delta) / ratio, 1 - delta - ratio * (1 - corners))
    events = events[(events >= 0) & (events <= 1)]
    reached, found = events, [0.0]
    for _ in range(most):
        reached = np.minimum(np.minimum(ratio * reached + delta, 1 - (1 - reached - delta) / ratio), 1.0)
        found.append(float((reached - math.exp(epsilon) * events).max()))
    return found


def _draws(budget: Budget) -> Iterator[Drawn]:
    sizes = budget.pick(quick=(1, 2, 3, 10, 300), full=(1, 2, 3, 4, 5, 10, 30, 100, 300, 1_000, 3_000))
    deltas, epsilons = map(Fraction, ("49/100", "1/10", "1/1000", "1/1000000")), (1.0, 1e-6, 0.01, 0.3, 3.0, 10.0, 50.0)
    return (Drawn(n, epsilon, delta) for n, delta, epsilon in product(sizes, deltas, epsilons))


@claim(
    "G21 Lemma 16",
    on=_draws,
    given="delta below 1/2; all algorithms for populations",
    sides=("delta of the whole", "delta that was asked"),
    false=FULL,
)
def resampling_is_private(drawn: Drawn, *, full: bool = False) -> Comparison:
    """What is LabelDP for (epsilon / (4 l), exp(-epsilon) delta / (8 l)), given draws, is so for (epsilon, delta).

    Here ``l = log(2 / delta)``; an algorithm for populations is given `n` draws with replacement from `n` examples.
    Compared is the delta of the whole, of all such algorithms, averaged over how often the changed example is drawn.
    """
    share = 1.0 if full else math.exp(-drawn.epsilon) / (2 * drawn.copies)
    return at_most(drawn.spent(share * float(drawn.delta)), float(drawn.delta), tolerance=1e-9)


@claim(
    "G21 Lemma 16: draws",
    kind="ours",
    on=_draws,
    given="delta below 1/2",
    sides=("probability of more draws", "delta / 2"),
    false=FEW,
)
def examples_are_drawn_seldom(drawn: Drawn, *, factor: float = 1.0) -> Comparison:
    """An example is drawn more than ``4 log(2 / delta)`` times with probability at most ``delta / 2``."""
    return at_most(1 - total(occurrences(drawn.n, math.floor(factor * drawn.copies))), drawn.delta / 2)
