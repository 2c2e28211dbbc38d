"""Answers of other solvers as they are: the engine's own table, judged without rounding, and not repaired first.

:class:`optrand.solvers.LinearProgram` clips and repairs the answer of a backend, and solves again if floats prove too
little. That is right for a user and wrong for a comparison. Here a program is built, an engine solves it, and the judge
reads the numbers that the engine left, in rationals, as :func:`optrand.audit` reads other people's tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optrand.audits.exact_table import ExactTable, deviations
from optrand.base.arithmetic import places, scaled
from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.programs import Program, Pure, Unbiased, lp1, lp2
from optrand.programs.backends import Backend

STRICT, LOOSE = 1e-9, 1e-6
"""Distances from the truth that verdicts name."""


@dataclass(frozen=True, eq=False)
class RawAnswer:
    """The answer of an engine: a table of shape ``(k, n)`` or, of LP2, a diagonal of shape ``(k,)``, and its status."""

    problem: Problem
    point: Floats
    status: str

    @property
    def said_optimal(self) -> bool:
        """Whether the engine itself claims success, in the words of each."""
        status = self.status.lower()
        return status in ("optimal", "solved") or status.startswith("optimization terminated successfully")


def pairwise_form(problem: Problem) -> Program:
    """State the table's program as printed, with a row for each output and pair of labels."""
    return _table_program(problem, "pairwise")


def floor_form(problem: Problem) -> Program:
    """State the table's program with a floor for each output."""
    return _table_program(problem, "floor")


def diagonal_form(problem: Problem) -> Program:
    """State LP2, the relaxation of [G21] with the diagonal alone."""
    return lp2(problem.prior, problem.epsilon)


def _table_program(problem: Problem, form: str) -> Program:
    if problem.loss == losses.zero_one:
        return lp1(problem.prior, problem.epsilon, form=form)
    assert isinstance(problem.outputs, Grid)
    return Program(
        problem.labels,
        problem.prior,
        problem.outputs.values,
        loss=problem.loss,
        privacy=Pure(problem.epsilon, form=form),
        constraints=[Unbiased()] if problem.unbiased else [],
    )


@dataclass(frozen=True)
class RawProgram:
    """A program that is built by us and solved by an engine; called with a problem, it returns a `RawAnswer`.

    Examples
    --------
    >>> from optrand import classification
    >>> from optrand.programs import Highs
    >>> answer = RawProgram(floor_form, Highs())(classification([0.6, 0.4], 1.0))
    >>> answer.said_optimal, answer.point.round(3).tolist()
    (True, [[0.731, 0.269], [0.269, 0.731]])
    """

    state: Callable[[Problem], Program]
    backend: Backend

    def __call__(self, problem: Problem) -> RawAnswer:
        """Build, solve, and read the variables without a change."""
        answer = self.state(problem).solve(self.backend)
        if not answer.point.size:
            raise SolverFailed(f"{answer.backend} ended with the status {answer.message!r} and no answer to read")
        point = answer.point if self.state is diagonal_form else answer.table
        return RawAnswer(problem, point, answer.message)


@dataclass(frozen=True)
class Truth:
    """The errors and the value of an answer, computed without rounding and rounded once.

    Attributes
    ----------
    rows : float
        Largest ``|sum of a row - 1|``; of LP2 the largest violation of a row.
    bias : float
        Largest ``|mean of a row - label|``; 0 where bias is allowed.
    epsilon : float or None
        Realised epsilon, the logarithm of the largest ratio of two entries of a column. It is infinite if one is
        positive and another is not, or if an entry is negative. None for LP2, which has no table.
    delta : float
        Sum over the outputs of ``max(0, largest - exp(epsilon) smallest)``, at most which the table exceeds its epsilon
        as (epsilon, delta)-DP.
    value : float
        Loss (for classes: the probability of keeping a class) under the prior.
    """

    rows: float
    bias: float
    epsilon: float | None
    delta: float
    value: float

    def distance(self, problem: Problem, optimum: float) -> float:
        """Return the largest error of rows, means (by the range of the labels), epsilon and value (relative)."""
        value = abs(self.value - optimum) / (abs(optimum) or 1.0)
        return max(self.rows, self.bias / _range(problem), self._excess(problem), value)

    def _excess(self, problem: Problem) -> float:
        return 0.0 if self.epsilon is None else self.epsilon - problem.epsilon

    def verdict(self, problem: Problem, optimum: float) -> str:
        """Name the distance, and each error above the smallest distance that has a name."""
        distance = self.distance(problem, optimum)
        if distance <= STRICT:
            return f"right to {STRICT:g}"
        found = []
        if self.rows > STRICT:
            found.append(f"rows off by {self.rows:.0e}")
        if self.bias > STRICT * _range(problem):
            found.append(f"biased by {self.bias:.0e}")
        if self._excess(problem) > STRICT:
            found.append(f"epsilon {self.epsilon:.4g} (delta up to {self.delta:.0e})")
        if abs(self.value - optimum) > STRICT * abs(optimum):
            found.append(f"value off by {(self.value - optimum) / (abs(optimum) or 1.0):+.0e}")
        return (f"right to {LOOSE:g}: " if distance <= LOOSE else "") + ", ".join(found)


def _range(problem: Problem) -> float:
    return float(np.ptp(problem.labels)) or 1.0


def judge(answer: RawAnswer) -> Truth:
    """Judge an answer of :class:`RawProgram`."""
    if answer.point.ndim == 1:
        return _judge_diagonal(answer.problem, answer.point)
    outputs = answer.problem.outputs.values if isinstance(answer.problem.outputs, Grid) else answer.problem.labels
    return judge_table(answer.problem, outputs, answer.point)


def judge_table(problem: Problem, outputs: Floats, table: Floats) -> Truth:
    """Judge a table of probabilities, a row per label; the loss of an output is taken as a float, all else is exact.

    Examples
    --------
    >>> from optrand import classification
    >>> table = np.array([[0.75, 0.25], [0.25, 0.5]])
    >>> found = judge_table(classification([0.6, 0.4], 1.0), np.array([0.0, 1.0]), table)
    >>> found.rows, found.value, round(found.epsilon, 12) == round(math.log(3), 12), round(found.delta, 12)
    (0.25, 0.65, True, 0.070429542885)
    """
    exact, bias = ExactTable.of(table), 0.0
    if problem.unbiased:
        bias = float(max(map(abs, deviations(exact.weights, problem.labels, outputs, total=exact.unit))))
    losses_of = problem.loss_table(outputs)
    digits = places(losses_of.ravel())
    costs = np.array(scaled(losses_of.ravel(), digits), dtype=object).reshape(table.shape)
    per_label = (exact.weights * costs).sum(axis=1).tolist()
    value = sum(Fraction(float(p)) * loss for p, loss in zip(problem.prior, per_label, strict=True))
    return Truth(
        float(max(abs(total - 1) for total in exact.sums)),
        bias,
        _log_ratio(exact),
        _delta(exact, problem.epsilon),
        problem.sign * float(value / (exact.unit << digits)),
    )


def judge_metric_table(problem: Problem, table: Floats) -> Truth:
    """Judge a table whose outputs are the labels by metric privacy, with the problem's epsilon per unit of the labels.

    Neighbours decide: their ratios multiply, and their distances add up. The realised epsilon is the largest over
    neighbours, per unit. Delta is the largest sum of ``max(0, M[y, o] - exp(epsilon |y - z|) M[z, o])`` over the
    outputs, with the larger of the two labels' entries first.

    Examples
    --------
    >>> from optrand import regression
    >>> table = np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    >>> found = judge_metric_table(regression([0, 1, 3], np.full(3, 1 / 3), 0.5, outputs=[0, 1, 3]), table)
    >>> round(found.epsilon, 12) == round(math.log(2), 12), round(found.delta, 12)
    (True, 0.087819682325)
    """
    epsilons, deltas = [], []
    for (y, above), (z, below) in pairwise(zip(problem.labels.tolist(), table.tolist(), strict=True)):
        pair = ExactTable.of([above, below])
        epsilons.append(_log_ratio(pair) / (z - y))
        deltas.append(_delta(pair, problem.epsilon * (z - y)))
    return replace(judge_table(problem, problem.labels, table), epsilon=max(epsilons), delta=max(deltas))


def _log_ratio(table: ExactTable) -> float:
    ratio = table.worst.ratio
    return math.inf if ratio is None else math.log(ratio.numerator) - math.log(ratio.denominator)


def _delta(table: ExactTable, epsilon: float) -> float:
    """Return the excess over ``exp(epsilon)``, which is taken as a float."""
    factor = Fraction(math.exp(epsilon))
    extremes = zip(table.weights.max(axis=0).tolist(), table.weights.min(axis=0).tolist(), strict=True)
    return float(sum(max(Fraction(0), high - factor * low) for high, low in extremes) / table.unit)


def _judge_diagonal(problem: Problem, diagonal: Floats) -> Truth:
    """Judge the variables of LP2, which has no table: rows as printed, ``exp(-epsilon)`` as a float, and the value."""
    factor = Fraction(math.exp(-problem.epsilon))
    kept = [Fraction(float(q)) for q in diagonal]
    total = sum(kept)
    excess = max(q + factor * (total - q) - 1 for q in kept)
    value = sum(Fraction(float(p)) * q for p, q in zip(problem.prior, kept, strict=True))
    return Truth(float(max(excess, -min(kept), Fraction(0))), 0.0, None, 0.0, float(value))
