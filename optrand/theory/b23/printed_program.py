"""The linear program as it is printed, against an optimum that is found without it ([B23], Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

import optrand
from optrand.model.problem import Problem
from optrand.solvers.backends import Cvxpy
from optrand.solvers.backends.linear import LP
from optrand.solvers.grid import Pairwise
from optrand.theory.b23.columns import best_on_grid, grid, half_square
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, equal
from optrand.theory.instances import Setting, label_set, prior

__all__ = ["CLAIMS", "Printed"]

INTERIOR_POINT = 1e-6
"""What the answer of an interior-point method is forgiven, as a share of the loss."""


@dataclass(frozen=True)
class Printed:
    """The program of Algorithm 1 for halved squared loss, with `n` outputs of Algorithm 2.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> program = Printed(Setting((Fraction(0), Fraction(1), Fraction(2)), (third, third, third), Fraction(3)), 5)
    >>> str(program.optimum), round(program.value(program.all_pairs), 6)
    ('163/96', 1.697917)
    """

    setting: Setting
    n: int

    def __str__(self) -> str:
        return f"{self.setting}, {self.n} outputs of Algorithm 2"

    @cached_property
    def optimum(self) -> Fraction:
        """The least loss, exactly: over all staircase columns, without any row for privacy."""
        return best_on_grid(self.setting, grid(self.setting, self.n), half_square)[0]

    @cached_property
    def problem(self) -> Problem:
        """The same in floats."""
        labels = [float(y) for y in self.setting.labels]
        epsilon = math.log(self.setting.ratio)
        outputs = optrand.feasible_output_set(labels, epsilon, self.n)
        return optrand.unbiased_regression(labels, [float(p) for p in self.setting.prior], epsilon, outputs=outputs)

    @cached_property
    def all_pairs(self) -> LP:
        """A row of privacy for each output and each ordered pair of labels."""
        return Pairwise().build(self.problem)

    @cached_property
    def neighbours(self) -> LP:
        """Rows of privacy for neighbouring labels only."""
        k = self.setting.k
        first, second = np.nonzero(~np.eye(k, dtype=bool))
        kept = np.repeat(np.abs(first - second) == 1, self.n)
        return replace(self.all_pairs, less=self.all_pairs.less[kept], less_than=self.all_pairs.less_than[kept])

    def value(self, program: LP) -> float:
        """The loss of what cvxpy answers to one of these."""
        return self.problem.value(Pairwise().read(self.problem, Cvxpy().solve(program))[0])


def the_printed_program_is_right(program: Printed) -> Comparison:
    """The program, solved as printed by cvxpy, has the loss of the best sum of staircase columns on its outputs."""
    return equal(program.value(program.all_pairs), float(program.optimum), tolerance=INTERIOR_POINT)


def neighbouring_labels_are_enough(program: Printed) -> Comparison:
    """The same where privacy is asked of neighbouring labels only."""
    return equal(program.value(program.neighbours), float(program.optimum), tolerance=INTERIOR_POINT)


def _programs(budget: Budget) -> Iterator[Printed]:
    three = Setting(tuple(map(Fraction, range(3))), (Fraction(1, 3),) * 3, Fraction(3))
    yield from (Printed(three, n) for n in (2, 5))
    random = Random(13)  # noqa: S311
    for _ in range(budget.pick(quick=8, full=150)):
        k = random.randint(3, 4)
        setting = Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(5, 90), 10))
        yield Printed(setting, random.randint(3, 8))


CLAIMS = (
    Claim(
        paper="B23",
        number="Algorithm 1",
        hypothesis="halved squared loss, outputs of Algorithm 2",
        instances=_programs,
        printed=the_printed_program_is_right,
        false=neighbouring_labels_are_enough,
        needs=("cvxpy",),
    ),
)
