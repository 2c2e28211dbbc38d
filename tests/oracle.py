"""Definitions in rationals, by brute force, of quantities that the package computes fast.

Nothing here is shared with the package: channels, losses, bounds and logarithms from their definitions.
"""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from optrand import Dual, Grid, Problem, losses

CONTEXT = decimal.Context(prec=120, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exactly(numbers) -> list[Fraction]:
    return [Fraction(x) for x in numbers]


LOGARITHM_DIGITS = 450
"""Digits of the logarithms of :func:`reference_bound`: a ratio of 10^304 leaves 140 of them."""


def around(value: decimal.Decimal) -> tuple[Fraction, Fraction]:
    return Fraction(CONTEXT.next_minus(value)), Fraction(CONTEXT.next_plus(value))


def exponential(x: float | decimal.Decimal) -> tuple[Fraction, Fraction]:
    """Rationals below and above ``exp(x)``."""
    return around(CONTEXT.exp(decimal.Decimal(x)))


def logarithm(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals between which ``log(x)`` lies."""
    numerator, denominator = (around(CONTEXT.ln(decimal.Decimal(n))) if n > 1 else (0, 0) for n in x.as_integer_ratio())
    return Fraction(numerator[0] - denominator[1]), Fraction(numerator[1] - denominator[0])


def largest_ratio(matrix) -> float:
    """Largest ratio of two probabilities of one output, in floats."""
    return max(float(column.max() / column.min()) for column in matrix.T if column.max() > 0)


def grid_of(problem) -> list[float] | None:
    values = getattr(problem.outputs, "values", None)
    return None if values is None else values.tolist()


def loss(problem, y: int, v: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals that hold the loss of an output between them."""
    label = Fraction(float(problem.labels[y]))
    if problem.loss == losses.poisson_log:
        low, high = logarithm(v)
        return v - label * high, v - label * low
    if isinstance(problem.loss, losses.Tabulated):
        return (Fraction(float(problem.loss.entries[y, grid_of(problem).index(float(v))])),) * 2
    return (exact_loss(problem.loss, v, label),) * 2


@dataclass(frozen=True)
class Channel:
    """Outputs, and the probabilities of each label to get them, in rationals."""

    outputs: list[Fraction]
    rows: list[list[Fraction]]

    @classmethod
    def of_table(cls, table) -> Channel:
        """Probabilities from the steps of each column, by their definition."""
        weights = [
            [sum(height for at, height in column if at <= y) for column in table.columns]
            for y in range(table.labels.size)
        ]
        return cls(exactly(table.outputs.tolist()), [[Fraction(w, sum(row)) for w in row] for row in weights])

    def largest_bias(self, labels) -> Fraction:
        moments = (
            sum(p * (v - y) for p, v in zip(row, self.outputs, strict=True))
            for row, y in zip(self.rows, exactly(labels.tolist()), strict=True)
        )
        return max(map(abs, moments))

    @property
    def ratio(self) -> Fraction | None:
        """The largest of a column, or None if it is infinite or a probability is negative."""
        columns = [column for column in zip(*self.rows, strict=True) if any(column)]
        if any(min(column) <= 0 for column in columns):
            return None
        return max((max(column) / min(column) for column in columns), default=Fraction(1))

    @property
    def worst_row(self) -> Fraction:
        return max(abs(sum(row) - 1) for row in self.rows)

    def is_allowed(self, problem) -> bool:
        grid = grid_of(problem)
        if grid is not None:
            return set(self.outputs) <= set(exactly(grid))
        low, high = problem.outputs.low, problem.outputs.high
        return all(low <= v <= high and (v > 0 or problem.loss.name != "poisson_log") for v in self.outputs)

    def is_feasible(self, problem) -> bool:
        ratio = self.ratio
        private = ratio is not None and ratio <= exponential(problem.epsilon)[0]
        biased = problem.bias_penalty == math.inf and self.largest_bias(problem.labels)
        return private and not self.worst_row and not biased and self.is_allowed(problem)

    def objective(self, problem) -> tuple[Fraction, Fraction]:
        """Rationals that hold the objective of the minimisation between them, with the penalty only if it is finite."""
        bounds = [Fraction(0), Fraction(0)]
        for y, (label, prior, row) in enumerate(
            zip(problem.labels.tolist(), problem.prior.tolist(), self.rows, strict=True)
        ):
            p = Fraction(prior)
            for v, q in zip(self.outputs, row, strict=True):
                for side, cost in enumerate(loss(problem, y, v)):
                    bounds[side] += p * q * cost
            if problem.bias_penalty < math.inf:
                bias = sum(q * (v - Fraction(label)) for v, q in zip(self.outputs, row, strict=True))
                bounds = [bound + p * Fraction(problem.bias_penalty) * bias**2 / 2 for bound in bounds]
        return bounds[0], bounds[1]


def split_cost(mechanism) -> float:
    """Half the largest variance of an output that is split between two floats: an eighth of their distance squared."""
    return max(math.ulp(v) for v in mechanism.outputs.tolist()) ** 2 / 8


def least_float(exact: Fraction) -> float:
    """The smallest float that is at least a rational."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def reference_bound(problem: Problem, dual: Dual, ratio: Fraction) -> Fraction:
    """The bound of a dual from its definition, in rationals, by brute force: every set of labels, one at a time.

    ``min f`` is the least over all sets ``S`` of the least value of ``sum_y s_y h_y``, which is one convex function.
    """
    alpha, beta, prior, labels = (
        [Fraction(x) for x in array.tolist()] for array in (dual.alpha, dual.beta, problem.prior, problem.labels)
    )
    alpha = [a - b * Fraction(dual.origin) for a, b in zip(alpha, beta, strict=True)]
    total = sum(alpha) + sum(b * y for b, y in zip(beta, labels, strict=True))
    if 0 < problem.bias_penalty < math.inf:
        total -= sum(b * b / (2 * Fraction(problem.bias_penalty) * p) for b, p in zip(beta, prior, strict=True) if b)
    if isinstance(problem.outputs, Grid):
        lowest = min(_price_on_grid(problem, dual, i, ratio) for i in range(problem.outputs.values.size))
    else:
        columns = itertools.product([Fraction(1), ratio], repeat=problem.k)
        lowest = min(_least_on_line(problem, dual, steepness) for steepness in columns)
    return total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)


def _price_on_grid(problem, dual, i, ratio):
    output, cost = Fraction(problem.outputs.values[i]), Fraction(0)
    rows = zip(
        *(map(Fraction, x.tolist()) for x in (problem.labels, problem.prior, dual.alpha, dual.beta)), strict=True
    )
    for y, (label, p, alpha, beta) in enumerate(rows):
        if isinstance(problem.loss, losses.Tabulated):
            loss = Fraction(problem.loss.entries[y, i])
        else:
            loss = exact_loss(problem.loss, output, label)
        reduced = p * loss - alpha - beta * (output - Fraction(dual.origin))
        cost += reduced * (ratio if reduced < 0 else 1)
    return cost


def exact_loss(loss, v, y):
    if loss == losses.squared:
        return (v - y) ** 2 / 2
    if loss == losses.absolute:
        return abs(v - y)
    if loss == losses.zero_one:
        return Fraction(-1 if v == y else 0)
    return v - (y * exact_log(v) if y else 0)


@lru_cache(maxsize=100_000)
def exact_log(v):
    with decimal.localcontext() as context:
        context.prec = LOGARITHM_DIGITS
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        return Fraction(decimal.Decimal(v.numerator).ln()) - Fraction(decimal.Decimal(v.denominator).ln())


def _least_on_line(problem, dual, steepness):
    """The least value of one staircase column over the line or the interval."""
    prior, labels = ([Fraction(x) for x in array.tolist()] for array in (problem.prior, problem.labels))
    alpha, beta = ([Fraction(x) for x in array.tolist()] for array in (dual.alpha, dual.beta))
    alpha = [a - b * Fraction(dual.origin) for a, b in zip(alpha, beta, strict=True)]
    low, high = problem.outputs.low, problem.outputs.high

    def value(v):
        terms = zip(steepness, prior, labels, alpha, beta, strict=True)
        return sum(s * ((p * exact_loss(problem.loss, v, y) if p else 0) - a - b * v) for s, p, y, a, b in terms)

    weight = sum(s * p for s, p in zip(steepness, prior, strict=True))
    mean = sum(s * p * y for s, p, y in zip(steepness, prior, labels, strict=True)) / weight
    points = [mean + sum(s * b for s, b in zip(steepness, beta, strict=True)) / weight]
    if problem.loss == losses.absolute:
        points = labels
    elif problem.loss == losses.poisson_log and mean == 0 and low <= 0:
        # Only the label 0 counts, and its least loss is 0, at an output of 0 that is not quite allowed.
        return -sum(s * a for s, a in zip(steepness, alpha, strict=True))
    ends = [Fraction(x) for x in (low, high) if math.isfinite(x)]
    inside = [v for v in points if low <= v <= high]
    return min(value(v) for v in inside + ends)


def cone_program(problem, columns):
    """Return the optimum over randomizers with some columns and free outputs, by a cone program in cvxpy."""
    import cvxpy

    unit = float(np.ptp(problem.labels))
    labels = (problem.labels - problem.labels[0]) / unit
    masses, moments, squares = (cvxpy.Variable(columns.shape[1]) for _ in range(3))
    weights = problem.prior @ columns
    means = (problem.prior * labels) @ columns / weights
    spreads = ((problem.prior * labels**2) @ columns - weights * means**2) / 2
    loss = spreads @ masses + weights @ squares
    apart = math.sqrt(2) * (moments - cvxpy.multiply(means, masses))
    bias = columns @ moments - labels
    rows = [columns @ masses == 1, cvxpy.SOC(masses + squares, cvxpy.vstack([masses - squares, apart]))]
    if problem.unbiased:
        rows.append(bias == 0)
    else:
        loss += problem.bias_penalty / 2 * problem.prior @ cvxpy.square(bias)
    for end, side in ((problem.outputs.low, 1.0), (problem.outputs.high, -1.0)):
        if math.isfinite(end):
            rows.append(side * moments >= side * (end - problem.labels[0]) / unit * masses)
    program = cvxpy.Problem(cvxpy.Minimize(loss), rows)
    program.solve(solver="CLARABEL")
    return float(program.value) * unit**2
