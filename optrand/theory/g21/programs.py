r"""Nothing keeps the label more often than RRWithPrior ([G21], Theorem 3), nor do the optima of the proof's programs.

LP1 asks for the ``K x K`` table of an epsilon-DP randomizer, LP2 for its diagonal only. Both optima are

.. math:: S = \max_{\emptyset \neq Y} \frac{E}{E + |Y| - 1} \sum_{y \in Y} p_y,

which is computed here over all subsets, in fractions, and compared with what a dual, the solvers and the closed form of
the package say. The steps from one program to the other are in :mod:`optrand.theory.g21.relaxation`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.model.problem import Problem, classification
from optrand.solvers import LinearProgram
from optrand.solvers.backends import Highs
from optrand.solvers.grid import LP2, Pairwise
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import best_k, objective, top_k_rows
from optrand.theory.instances import RATIOS, Setting, listed, settings

__all__ = ["ANY_PRIOR", "CLAIMS", "Task", "task", "tied_tasks"]

ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"

CLOSED_FORM = 1e-12
"""What the floats of the closed form are forgiven."""

SOLVER = 1e-7
"""What an LP solver is forgiven: its own tolerance for feasibility."""

LARGEST_FOR_SOLVERS = Fraction(3000)
"""Beyond this ratio the coefficients of LP1 as printed span more than a solver in floats can tell apart."""


@dataclass(frozen=True)
class Task:
    """A prior and a privacy ratio."""

    prior: tuple[Fraction, ...]
    ratio: Fraction

    def __str__(self) -> str:
        return f"prior {listed(self.prior)}, E = {self.ratio}"

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.prior)

    @cached_property
    def best_subset(self) -> Fraction:
        """`S`, over all subsets of labels."""
        return max(
            self.of_response(kept)
            for size in range(1, self.size + 1)
            for kept in itertools.combinations(range(self.size), size)
        )

    def of_response(self, kept: Sequence[int]) -> Fraction:
        """How often randomized response on some labels keeps the label."""
        return self.ratio * sum((self.prior[y] for y in kept), Fraction(0)) / (self.ratio + len(kept) - 1)

    @cached_property
    def multipliers(self) -> tuple[Fraction, ...]:
        """Row multipliers of LP1, and of LP2, that sum to `S`."""
        return tuple(max(Fraction(0), (self.ratio * p - self.best_subset) / (self.ratio - 1)) for p in self.prior)

    @cached_property
    def bound(self) -> Fraction:
        """A number that no epsilon-DP randomizer exceeds, whatever the multipliers are.

        A column is `c s` with `s` in ``[1, E]^K`` and masses `c` that sum to at most 1.
        """
        least = Fraction(0)
        for v in range(self.size):
            costs = [mu - (self.prior[y] if y == v else 0) for y, mu in enumerate(self.multipliers)]
            least = min(least, sum(costs) + (self.ratio - 1) * sum(min(cost, Fraction(0)) for cost in costs))
        return sum(self.multipliers, -least)

    @cached_property
    def bound_of_lp2(self) -> Fraction:
        """A number that no feasible point of LP2 exceeds, whatever the multipliers are: no entry is above 1."""
        total = sum(self.multipliers, Fraction(0))
        reach = (mu + (total - mu) / self.ratio for mu in self.multipliers)
        excess = (max(Fraction(0), p - at) for p, at in zip(self.prior, reach, strict=True))
        return sum(excess, total)

    @property
    def _problem(self) -> Problem:
        return classification([float(p) for p in self.prior], math.log(self.ratio))

    @cached_property
    def lp1(self) -> float:
        """How often the label is kept by what HiGHS answers to LP1 with all pairs of rows, as printed."""
        return LinearProgram(Pairwise())(self._problem).value

    @cached_property
    def lp2(self) -> float:
        """The optimum of LP2 by HiGHS."""
        program = LP2().build(self._problem)
        return -Highs().solve(program).value(program)

    @cached_property
    def closed_form(self) -> tuple[float, float]:
        """The value of the package's closed form: of one prior, and of a batch of priors."""
        floats, epsilon = [float(p) for p in self.prior], math.log(self.ratio)
        return rr_with_prior(floats, epsilon).value, float(rr_with_prior_batch([floats], epsilon).objective[0])


def task(setting: Setting) -> Task:
    """Of a setting, all but the names of the labels."""
    return Task(setting.prior, setting.ratio)


def _tasks(budget: Budget) -> Iterator[Task]:
    yield Task((Fraction(1),), Fraction(2))
    yield from tied_tasks()
    yield from map(task, settings(budget.pick(quick=100, full=3_000), most=budget.pick(quick=7, full=10), seed=4))


def tied_tasks() -> Iterator[Task]:
    """Priors of which keeping one label more is exactly as good: ``E p_(k+1) = w_k``."""
    for size in (2, 3, 4):
        for ratio in RATIOS:
            weights = [Fraction(1)] * (size - 1)
            weights.append(sum(weights) / (ratio + size - 2))
            yield Task(tuple(weight / sum(weights) for weight in weights), ratio)


def _small_tasks(budget: Budget) -> Iterator[Task]:
    most = budget.pick(quick=4, full=7)
    for instance in itertools.chain(
        tied_tasks(), map(task, settings(budget.pick(quick=60, full=600), most=most, seed=5))
    ):
        if instance.ratio <= LARGEST_FOR_SOLVERS:
            yield instance


def nothing_is_better(instance: Task) -> Comparison:
    """No epsilon-DP randomizer keeps the label more often than RRWithPrior.

    Compared are the bound that a dual proves for all of them, with outputs of any kind, and the table of Algorithm 2.
    """
    rows = top_k_rows(instance.prior, best_k(instance.prior, instance.ratio), instance.ratio)
    return at_most(instance.bound, objective(instance.prior, rows))


def nothing_is_better_than_all_labels(instance: Task) -> Comparison:
    """No epsilon-DP randomizer keeps the label more often than randomized response on all labels."""
    return at_most(instance.bound, instance.of_response(range(instance.size)))


def closed_form_is_best(instance: Task) -> Comparison:
    """The package's RRWithPrior, of one prior and of a batch, keeps the label as often as the best subset of labels."""
    return worst(*(equal(instance.best_subset, value, tolerance=CLOSED_FORM) for value in instance.closed_form))


def closed_form_is_above_average(instance: Task) -> Comparison:
    """The same of the labels that are at least as likely as the average one."""
    kept = [y for y, p in enumerate(instance.prior) if p * instance.size >= 1]
    return worst(*(equal(instance.of_response(kept), value, tolerance=CLOSED_FORM) for value in instance.closed_form))


def lp1_is_best_subset(instance: Task) -> Comparison:
    """The optimum of LP1, with a row for each output and each pair of labels, is that of RRWithPrior."""
    return equal(instance.lp1, instance.best_subset, tolerance=SOLVER)


def lp1_is_all_labels(instance: Task) -> Comparison:
    """The optimum of LP1 is that of randomized response on all labels."""
    return equal(instance.lp1, instance.of_response(range(instance.size)), tolerance=SOLVER)


def lp2_is_best_subset(instance: Task) -> Comparison:
    """The optimum of LP2, whose variables are the diagonal only, is that of RRWithPrior."""
    return equal(instance.lp2, instance.best_subset, tolerance=SOLVER)


def lp2_is_all_labels(instance: Task) -> Comparison:
    """The optimum of LP2 is that of randomized response on all labels."""
    return equal(instance.lp2, instance.of_response(range(instance.size)), tolerance=SOLVER)


CLAIMS = (
    Claim(
        paper="G21",
        number="Theorem 3",
        hypothesis=ANY_PRIOR,
        instances=_tasks,
        printed=nothing_is_better,
        false=nothing_is_better_than_all_labels,
    ),
    Claim(
        paper="G21",
        number="Theorem 3",
        part="closed form",
        hypothesis=ANY_PRIOR,
        instances=_tasks,
        printed=closed_form_is_best,
        false=closed_form_is_above_average,
    ),
    Claim(
        paper="G21",
        number="Theorem 3",
        part="LP1",
        hypothesis=f"{ANY_PRIOR} and at most log({LARGEST_FOR_SOLVERS})",
        instances=_small_tasks,
        printed=lp1_is_best_subset,
        false=lp1_is_all_labels,
    ),
    Claim(
        paper="G21",
        number="Theorem 3",
        part="LP2",
        hypothesis=f"{ANY_PRIOR} and at most log({LARGEST_FOR_SOLVERS})",
        instances=_small_tasks,
        printed=lp2_is_best_subset,
        false=lp2_is_all_labels,
    ),
)
