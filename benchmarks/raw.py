"""Answers of other solvers as they are: the engine's own table, judged in integers, with nothing of ours in between.

:class:`optrand.solvers.LinearProgram` clips, repairs and, where floats prove too little, solves again what a backend
answers. That is right for a user and wrong for a comparison. Here a program is built, an engine solves it, and the
judge reads the numbers that the engine left. The judge uses Python's integers and shares no code with the package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.certificates.certificate import lower_bound
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.programs import Program, Pure, Unbiased, lp1, lp2
from optrand.programs.backends import Backend

__all__ = [
    "LP2",
    "Floor",
    "Pairwise",
    "RawAnswer",
    "RawProgram",
    "Truth",
    "judge",
    "judge_metric_table",
    "judge_table",
]

STRICT, LOOSE = 1e-9, 1e-6
"""Distances from the truth that verdicts name."""


@dataclass(frozen=True, eq=False)
class RawAnswer:
    """What an engine answered.

    Attributes
    ----------
    problem : Problem
    table : (k, n) array or None
        Probabilities, with whatever is wrong with them; None for LP2, whose variables are a diagonal.
    diagonal : (k,) array or None
        The variables of LP2.
    multipliers : array
        Of the equations: derivatives of the least loss by the sum of each row, then by the mean of each label.
    status : str
        The engine's own word.
    """

    problem: Problem
    table: Floats | None
    diagonal: Floats | None
    multipliers: Floats
    status: str

    @property
    def said_optimal(self) -> bool:
        """Whether the engine itself claims success, in the words of each."""
        status = self.status.lower()
        return status in ("optimal", "solved") or status.startswith("optimization terminated successfully")

    def proven_gap(self, value: float) -> float:
        """Relative distance between a value and the bound that the engine's own multipliers prove, for a table."""
        k = self.problem.k
        beta = self.multipliers[k:] if self.multipliers.size > k else np.zeros(k)
        bound = lower_bound(self.problem, Dual(self.multipliers[:k], beta))
        return abs(value - self.problem.sign * bound) / (abs(value) or 1.0)


@dataclass(frozen=True)
class Pairwise:
    """The table's program as printed, a row for each output and pair of labels."""

    form = "pairwise"

    def build(self, problem: Problem) -> Program:
        """Build the program of a problem on a grid."""
        if problem.loss == losses.zero_one:
            return lp1(problem.prior, problem.epsilon, form=self.form)
        assert isinstance(problem.outputs, Grid)
        return Program(
            problem.labels,
            problem.prior,
            problem.outputs.values,
            loss=problem.loss,
            privacy=Pure(problem.epsilon, form=self.form),
            constraints=[Unbiased()] if problem.unbiased else [],
        )


@dataclass(frozen=True)
class Floor(Pairwise):
    """The table's program with a floor for each output."""

    form = "floor"


@dataclass(frozen=True)
class LP2:
    """The relaxation of [G21] with the diagonal alone."""

    def build(self, problem: Problem) -> Program:
        """Build the program of a problem of classes."""
        return lp2(problem.prior, problem.epsilon)


@dataclass(frozen=True)
class RawProgram:
    """A program that is built by us and solved by an engine; called with a problem, it returns a `RawAnswer`.

    Examples
    --------
    >>> from optrand import classification
    >>> from optrand.programs import Highs
    >>> answer = RawProgram(Floor(), Highs())(classification([0.6, 0.4], 1.0))
    >>> answer.said_optimal, answer.table.round(3).tolist()
    (True, [[0.731, 0.269], [0.269, 0.731]])
    """

    program: Floor | Pairwise | LP2
    backend: Backend

    def __call__(self, problem: Problem) -> RawAnswer:
        """Build, solve, and read the variables without a change."""
        answer = self.program.build(problem).solve(self.backend)
        if not answer.point.size:
            raise SolverFailed(f"{answer.backend} ended with the status {answer.message!r} and no answer to read")
        if isinstance(self.program, LP2):
            return RawAnswer(problem, None, answer.point, np.zeros(0), answer.message)
        equations = [answer.duals[name] for name in ("sum", "mean") if name in answer.duals]
        return RawAnswer(problem, answer.table, None, problem.sign * np.concatenate(equations), answer.message)


@dataclass(frozen=True)
class Truth:
    """What is true of an answer, computed without rounding and rounded once.

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
        """Largest error of rows, of means (by the range of the labels), of epsilon, and of the value (relative)."""
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
    if answer.diagonal is not None:
        return _judge_diagonal(answer.problem, answer.diagonal)
    assert answer.table is not None
    outputs = answer.problem.outputs.values if isinstance(answer.problem.outputs, Grid) else answer.problem.labels
    return judge_table(answer.problem, outputs, answer.table)


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
    entries, unit = _integers(table)
    losses, loss_unit = _integers(problem.loss_table(outputs))
    per_label = (entries * losses).sum(axis=1)
    value = sum(Fraction(float(p)) * int(loss) for p, loss in zip(problem.prior, per_label, strict=True))
    top, bottom = entries.max(axis=0).tolist(), entries.min(axis=0).tolist()
    return Truth(
        float(max(abs(Fraction(int(total) - unit, unit)) for total in entries.sum(axis=1))),
        _bias(problem, outputs, entries, unit) if problem.unbiased else 0.0,
        _log(max(map(_ratio, top, bottom))),
        _delta(top, bottom, unit, problem.epsilon),
        problem.sign * float(value / (unit * loss_unit)),
    )


def judge_metric_table(problem: Problem, table: Floats) -> Truth:
    """Judge a table whose outputs are the labels by metric privacy, with the problem's epsilon per unit of the labels.

    Neighbours decide: their ratios multiply, and their distances add up. The realised epsilon is the largest over
    neighbours, per unit. Delta is the largest sum of ``max(0, M[y, o] - exp(epsilon |y - z|) M[z, o])`` over the
    outputs.

    Examples
    --------
    >>> from optrand import regression
    >>> table = np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    >>> found = judge_metric_table(regression([0, 1, 3], np.full(3, 1 / 3), 0.5, outputs=[0, 1, 3]), table)
    >>> round(found.epsilon, 12) == round(math.log(2), 12), round(found.delta, 12)
    (True, 0.087819682325)
    """
    entries, unit = _integers(table)
    epsilons, deltas = [], []
    for (y, above), (z, below) in pairwise(zip(problem.labels.tolist(), entries.tolist(), strict=True)):
        for top, bottom in ((above, below), (below, above)):
            epsilons.append(_log(max(map(_ratio, top, bottom))) / (z - y))
            deltas.append(_delta(top, bottom, unit, problem.epsilon * (z - y)))
    return replace(judge_table(problem, problem.labels, table), epsilon=max(epsilons), delta=max(deltas))


def _integers(numbers: Floats) -> tuple[NDArray[Any], int]:
    """Floats as Python's integers, in units of one over the number that is returned with them."""
    pairs = [float(number).as_integer_ratio() for number in numbers.ravel()]
    unit = max(denominator for _, denominator in pairs)
    whole = [numerator * (unit // denominator) for numerator, denominator in pairs]
    return np.array(whole, dtype=object).reshape(numbers.shape), unit


def _bias(problem: Problem, outputs: Floats, entries: NDArray[Any], unit: int) -> float:
    places, place_unit = _integers(outputs)
    means = (entries * places).sum(axis=1)
    return max(
        abs(float(Fraction(int(mean), unit * place_unit) - Fraction(float(label))))
        for mean, label in zip(means, problem.labels, strict=True)
    )


def _ratio(top: int, bottom: int) -> Fraction | float:
    if bottom > 0:
        return Fraction(top, bottom)
    return 1.0 if top == bottom == 0 else math.inf


def _log(ratio: Fraction | float) -> float:
    try:
        return math.log(float(ratio))
    except OverflowError:
        return math.log(ratio.numerator) - math.log(ratio.denominator)  # type: ignore[union-attr]


def _delta(top: list[int], bottom: list[int], unit: int, epsilon: float) -> float:
    """Excess over ``exp(epsilon)`` as a float, off by half a unit in the last place."""
    factor = Fraction(math.exp(epsilon))
    return float(sum(max(Fraction(0), high - factor * low) for high, low in zip(top, bottom, strict=True)) / unit)


def _judge_diagonal(problem: Problem, diagonal: Floats) -> Truth:
    """Judge the variables of LP2, which has no table: rows as printed, ``exp(-epsilon)`` as a float, and the value."""
    factor = Fraction(math.exp(-problem.epsilon))
    kept = [Fraction(float(q)) for q in diagonal]
    total = sum(kept)
    excess = max(q + factor * (total - q) - 1 for q in kept)
    value = sum(Fraction(float(p)) * q for p, q in zip(problem.prior, kept, strict=True))
    return Truth(float(max(excess, -min(kept), Fraction(0))), 0.0, None, 0.0, float(value))
