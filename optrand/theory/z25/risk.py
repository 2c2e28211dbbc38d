"""Excess risk of classifiers learned from noisy vectors ([Z25], Proposition 1, Theorem 2, eq. 27).

Features are finitely many points, so that risks are sums and the best classifier can be found by trying all of them.
What training on different samples gives is a few models, each with its probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import listed
from optrand.theory.z25.bits import bit_mean, gain

__all__ = ["CLAIMS", "Point", "Task"]

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class Point:
    """What is known of a model at a point.

    Attributes
    ----------
    mass : Fraction
        The probability of the point together with that of the model.
    eta : tuple of Fraction
        The probability of each class there.
    predicted : int
        The class that the model names.
    error : Fraction
        How far it is, at most, from the probability of a class once its bits are debiased: the ``Delta_epsilon``.
    """

    mass: Fraction
    eta: Row
    predicted: int
    error: Fraction

    @property
    def best(self) -> Fraction:
        """The largest probability of a class."""
        return max(self.eta)

    @property
    def runner_up(self) -> Fraction:
        """The largest probability of a class other than the first one that is best; the same in case of a tie."""
        return sorted(self.eta)[-2]


@dataclass(frozen=True)
class Task:
    """Points, class probabilities, and models that approximate the means of bits.

    Attributes
    ----------
    masses : tuple of Fraction
        Of the points.
    etas : tuple of tuple of Fraction
        For each point, the probability of each class.
    odds : Fraction
        ``exp(epsilon / 2)``.
    models : tuple of (Fraction, tuple of tuple of Fraction)
        The probability of each, and its outputs ``g``: a row a point. It names the first class with the largest output.
    """

    masses: Row
    etas: tuple[Row, ...]
    odds: Fraction
    models: tuple[tuple[Fraction, tuple[Row, ...]], ...]

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every model at every point."""
        return tuple(
            Point(chance * mass, eta, row.index(max(row)), self._error(eta, row))
            for chance, rows in self.models
            for mass, eta, row in zip(self.masses, self.etas, rows, strict=True)
        )

    def _error(self, eta: Row, row: Row) -> Fraction:
        return max(abs(g - bit_mean(p, self.odds)) for g, p in zip(row, eta, strict=True)) / gain(self.odds)

    @cached_property
    def excess(self) -> Fraction:
        """The probability of a wrong class, less the least that any classifier has: all of them are tried."""
        classes = range(len(self.etas[0]))
        least = min(self._risk(classifier) for classifier in product(classes, repeat=len(self.masses)))
        risk = sum(
            (chance * self._risk(tuple(row.index(max(row)) for row in rows)) for chance, rows in self.models),
            Fraction(0),
        )
        return risk - least

    def _risk(self, classifier: tuple[int, ...]) -> Fraction:
        return sum(
            (
                mass * p
                for mass, eta, named in zip(self.masses, self.etas, classifier, strict=True)
                for y, p in enumerate(eta)
                if y != named
            ),
            Fraction(0),
        )

    def __str__(self) -> str:
        etas = "; ".join(map(listed, self.etas))
        models = " or ".join(f"{'; '.join(map(listed, rows))} (probability {chance})" for chance, rows in self.models)
        return f"points {listed(self.masses)} of eta {etas}; exp(epsilon/2) = {self.odds}; g = {models}"


def _tasks(budget: Budget) -> Iterator[Task]:
    one = (Fraction(1),)
    for eta in (_shares(2, 3), _shares(1, 1), _shares(1, 2, 2), _shares(1, 3, 2), _shares(0, 1)):
        for odds in map(Fraction, ("2", "3", "11/10", "1000001/1000000", "10000000000")):
            for error in map(Fraction, ("1/10", "3/20", "0", "1/20", "1/2")):
                yield Task(one, (eta,), odds, ((Fraction(1), (_misled(eta, odds, error),)),))
    random = Random(2)  # noqa: S311
    for _ in range(budget.pick(quick=400, full=5_000)):
        k, size = random.randint(2, 4), random.randint(1, 3)
        etas = tuple(_random_eta(random, k) for _ in range(size))
        odds = 1 + Fraction(random.randint(1, 40), 10)
        chances = _shares(*(random.randint(1, 4) for _ in range(random.randint(1, 3))))
        models = tuple((chance, tuple(_approximated(random, eta, odds) for eta in etas)) for chance in chances)
        yield Task(_shares(*(random.randint(1, 5) for _ in range(size))), etas, odds, models)


def _shares(*weights: int) -> Row:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def _random_eta(random: Random, k: int) -> Row:
    """Small weights, so that ties are common."""
    weights = [random.randint(0, 4) for _ in range(k)]
    return _shares(*(weights if any(weights) else [1] * k))


def _misled(eta: Row, odds: Fraction, error: Fraction) -> Row:
    """Outputs as wrong as `error` allows: all classes that are best too low, all others too high."""
    return tuple(bit_mean(p + (error if p < max(eta) else -error), odds) for p in eta)


def _approximated(random: Random, eta: Row, odds: Fraction) -> Row:
    size = Fraction(random.choice((0, 1, 2, 4, 8)), 40)
    if random.random() < 0.3:
        return _misled(eta, odds, size)
    return tuple(bit_mean(p + size * random.randint(-2, 2) / 2, odds) for p in eta)


def excess_is_what_classes_lack(task: Task) -> Comparison:
    """The excess risk is the mean, over points and models, of how far the named class is from the likeliest one.

    Compared with the risk, counted label by label, less the least risk of all classifiers: so it says too that the
    least risk is that of naming the likeliest class everywhere.
    """
    lacks = sum((point.mass * (point.best - point.eta[point.predicted]) for point in task.points), Fraction(0))
    return equal(task.excess, lacks)


def excess_is_that_of_the_commonest_class(task: Task) -> Comparison:
    """The same of the class that is named most often at each point, rather than the mean over models."""
    total = Fraction(0)
    for x, (mass, eta) in enumerate(zip(task.masses, task.etas, strict=True)):
        votes = [Fraction(0)] * len(eta)
        for chance, rows in task.models:
            votes[rows[x].index(max(rows[x]))] += chance
        total += mass * (max(eta) - eta[votes.index(max(votes))])
    return equal(task.excess, total)


def excess_needs_a_small_gap(task: Task) -> Comparison:
    """The excess risk is at most the mean of ``2 Delta_epsilon`` where the two likeliest classes are no further apart.

    ``Delta_epsilon`` is the largest error of a bit's mean times ``(r + 1) / (r - 1)``, where ``r = exp(epsilon / 2)``.
    """
    return _bounded(task, lambda point: point.best - point.runner_up <= 2 * point.error)


def excess_needs_a_smaller_gap(task: Task) -> Comparison:
    """The same where the gap is less than ``2 Delta_epsilon``."""
    return _bounded(task, lambda point: point.best - point.runner_up < 2 * point.error)


def _bounded(task: Task, counts: Callable[[Point], bool]) -> Comparison:
    return at_most(
        task.excess, sum((point.mass * 2 * point.error for point in task.points if counts(point)), Fraction(0))
    )


def mistakes_need_a_small_gap(task: Task) -> Comparison:
    """At each point the named class lacks at most ``2 Delta_epsilon``, and nothing where the gap is larger than that.

    What it lacks is how far its probability is from the largest; the gap is that of the two largest.
    """
    return _lacking(task, lambda point: point.best - point.runner_up <= 2 * point.error)


def mistakes_need_half_the_gap(task: Task) -> Comparison:
    """The same with nothing lacking where the gap is larger than ``Delta_epsilon``, as Section 1 has it in words."""
    return _lacking(task, lambda point: point.best - point.runner_up <= point.error)


def _lacking(task: Task, may_lack: Callable[[Point], bool]) -> Comparison:
    return worst(
        *(
            at_most(point.best - point.eta[point.predicted], 2 * point.error if may_lack(point) else Fraction(0))
            for point in task.points
        )
    )


CLAIMS = (
    Claim(
        paper="Z25",
        number="Proposition 1",
        hypothesis="a classifier learned from a sample that is independent of what it is tested on",
        instances=_tasks,
        printed=excess_is_what_classes_lack,
        false=excess_is_that_of_the_commonest_class,
    ),
    Claim(
        paper="Z25",
        number="Theorem 2",
        hypothesis="any model of the means of bits, any epsilon above 0",
        instances=_tasks,
        printed=excess_needs_a_small_gap,
        false=excess_needs_a_smaller_gap,
    ),
    Claim(
        paper="Z25",
        number="Equation 27",
        hypothesis="as in Theorem 2, whose proof it is",
        instances=_tasks,
        printed=mistakes_need_a_small_gap,
        false=mistakes_need_half_the_gap,
    ),
)
