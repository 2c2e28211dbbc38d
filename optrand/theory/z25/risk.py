"""Excess risk of classifiers learned from noisy vectors ([Z25], Proposition 1, Theorem 2, Sections 1 and 4.2).

Features are finitely many points, so that risks are sums and the best classifier is found by trying all of them. What
training on different samples gives is a few models, each with its probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random
from typing import NamedTuple

from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance, seeded, shares
from optrand.theory.sums import total
from optrand.theory.z25.bits import bit_mean, gain

__all__ = ["Point", "Task"]

Row = tuple[Fraction, ...]


class Point(NamedTuple):
    """A model at a point: probabilities of both, of the best, second and named class, and the ``Delta`` of eq. 18."""

    mass: Fraction
    best: Fraction
    second: Fraction
    named: Fraction
    error: Fraction

    @property
    def lack(self) -> Fraction:
        """Distance of the named class from the likeliest one."""
        return self.best - self.named

    @property
    def gap(self) -> Fraction:
        """Distance of the two likeliest classes."""
        return self.best - self.second


class Task(Instance, masses="points", etas="eta", odds="exp(epsilon/2)", models="(probability, g) of models"):
    """Points, class probabilities there, and models of the means of bits: a row of outputs ``g`` a point."""

    masses: Row
    etas: tuple[Row, ...]
    odds: Fraction
    models: tuple[tuple[Fraction, tuple[Row, ...]], ...]

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every model at every point; it names the first class with the largest output."""
        return tuple(
            Point(
                chance * mass,
                max(eta),
                sorted(eta)[-2],
                eta[row.index(max(row))],
                max(abs(g - bit_mean(p, self.odds)) for g, p in zip(row, eta, strict=True)),
            )
            for chance, rows in self.models
            for mass, eta, row in zip(self.masses, self.etas, rows, strict=True)
        )

    @cached_property
    def excess(self) -> Fraction:
        """The probability of a wrong class, less the least that any classifier has: all of them are tried."""
        classifiers = product(range(len(self.etas[0])), repeat=len(self.masses))
        models = ((chance, tuple(row.index(max(row)) for row in rows)) for chance, rows in self.models)
        return total(chance * self._risk(named) for chance, named in models) - min(map(self._risk, classifiers))

    def _risk(self, classifier: tuple[int, ...]) -> Fraction:
        cases = zip(self.masses, self.etas, classifier, strict=True)
        return total(mass * p for mass, eta, named in cases for y, p in enumerate(eta) if y != named)


def _tasks(budget: Budget) -> Iterator[Task]:
    for weights in ((2, 3), (1, 1), (1, 2, 2), (1, 3, 2), (0, 1)):
        for odds in map(Fraction, ("2", "3", "11/10", "1000001/1000000", "10000000000")):
            for error in map(Fraction, ("1/10", "3/20", "0", "1/20", "1/2")):
                eta = shares(weights)
                yield Task((Fraction(1),), (eta,), odds, ((Fraction(1), (_misled(eta, odds, error),)),))
    random = seeded(2)
    for _ in range(budget.pick(quick=400, full=5_000)):
        k, size = random.randint(2, 4), random.randint(1, 3)
        # Small weights, so that ties are common.
        drawn = [[random.randint(0, 4) for _ in range(k)] for _ in range(size)]
        etas = tuple(shares(each if any(each) else [1] * k) for each in drawn)
        odds = 1 + Fraction(random.randint(1, 40), 10)
        chances = shares([random.randint(1, 4) for _ in range(random.randint(1, 3))])
        models = tuple((chance, tuple(_approximated(random, eta, odds) for eta in etas)) for chance in chances)
        yield Task(shares([random.randint(1, 5) for _ in range(size)]), etas, odds, models)


def _misled(eta: Row, odds: Fraction, error: Fraction) -> Row:
    """Outputs as wrong as `error` allows: all classes that are best too low, all others too high."""
    return tuple(bit_mean(p + (error if p < max(eta) else -error), odds) for p in eta)


def _approximated(random: Random, eta: Row, odds: Fraction) -> Row:
    size = Fraction(random.choice((0, 1, 2, 4, 8)), 40)
    if random.random() < 0.3:
        return _misled(eta, odds, size)
    return tuple(bit_mean(p + size * random.randint(-2, 2) / 2, odds) for p in eta)


@claim(
    "Z25", "Proposition 1", on=_tasks, given="a classifier learned from a sample independent of what it is tested on"
)
def excess_is_what_classes_lack(task: Task) -> Comparison:
    """The excess risk is the mean, over points and models, of how far the named class is from the likeliest one.

    Compared with the risk, counted label by label, less the least risk of all classifiers: so it says too that the
    least risk is that of naming the likeliest class everywhere.
    """
    return equal(task.excess, total(point.mass * point.lack for point in task.points))


@excess_is_what_classes_lack.false
def _(task: Task) -> Comparison:
    """The same of the class that is named most often at each point, rather than the mean over models."""
    lacking = Fraction(0)
    for x, (mass, eta) in enumerate(zip(task.masses, task.etas, strict=True)):
        votes = [total(c for c, rows in task.models if rows[x].index(max(rows[x])) == y) for y in range(len(eta))]
        lacking += mass * (max(eta) - eta[votes.index(max(votes))])
    return equal(task.excess, lacking)


@claim(
    "Z25",
    "Theorem 2",
    on=_tasks,
    given="any model of the means of bits, any epsilon above 0",
    false=Variant("The same where the gap is less than ``2 Delta_epsilon``.", ties=False),
)
def excess_needs_a_small_gap(task: Task, *, ties: bool = True) -> Comparison:
    """The excess risk is at most the mean of ``2 Delta_epsilon`` where the two likeliest classes are no further apart.

    ``Delta_epsilon`` is the largest error of a bit's mean times ``(r + 1) / (r - 1)``, where ``r = exp(epsilon / 2)``.
    """
    limits = [(point, 2 * point.error / gain(task.odds)) for point in task.points]
    return at_most(
        task.excess, total(point.mass * x for point, x in limits if point.gap < x or (ties and point.gap == x))
    )


@claim(
    "Z25",
    "Section 1: gap",
    on=_tasks,
    given="estimates of class probabilities from the outputs, debiased; the error is the largest over the classes",
    corrected=Variant("The named class is best wherever twice the error is below the gap.", factor=2),
    false=Variant("The named class is best wherever twice the error is at most the gap.", factor=2, ties=True),
)
def errors_below_the_gap_do_no_harm(task: Task, *, factor: int = 1, ties: bool = False) -> Comparison:
    """The named class is best wherever the error is below the gap of the two likeliest classes."""
    limits = [(point, factor * point.error / gain(task.odds)) for point in task.points]
    return at_most(max((p.lack for p, x in limits if x < p.gap or (ties and x == p.gap)), default=Fraction(0)), 0)


@claim(
    "Z25",
    "Equation 27",
    on=_tasks,
    given="as in Theorem 2, whose proof it is",
    false=Variant("The same with ``2 Delta``, which is not debiased.", debiased=False),
)
def mistakes_need_a_small_gap(task: Task, *, debiased: bool = True) -> Comparison:
    """At each point the named class lacks at most ``2 Delta_epsilon``, and nothing where the gap is larger than that.

    What it lacks is how far its probability is from the largest; the gap is that of the two largest.
    """
    limits = [(point, 2 * point.error / (gain(task.odds) if debiased else 1)) for point in task.points]
    return worst(*(at_most(point.lack, limit if point.gap <= limit else 0) for point, limit in limits))
