"""The definitions of the mathematics page in plain rationals, for small problems; nothing of the package computes here.

A problem is read through its fields only. Exponentials and logarithms are brackets of the standard library's decimals.
"""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

CONTEXT = decimal.Context(prec=120, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exactly(numbers) -> list[Fraction]:
    return [Fraction(x) for x in numbers]


def around(value: decimal.Decimal) -> tuple[Fraction, Fraction]:
    return Fraction(CONTEXT.next_minus(value)), Fraction(CONTEXT.next_plus(value))


def exponential(x: float) -> tuple[Fraction, Fraction]:
    """Rationals below and above ``exp(x)``."""
    return around(CONTEXT.exp(decimal.Decimal(x)))


def logarithm(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals between which ``log(x)`` lies."""
    numerator, denominator = (around(CONTEXT.ln(decimal.Decimal(n))) if n > 1 else (0, 0) for n in x.as_integer_ratio())
    return Fraction(numerator[0] - denominator[1]), Fraction(numerator[1] - denominator[0])


def grid_of(problem) -> list[float] | None:
    values = getattr(problem.outputs, "values", None)
    return None if values is None else values.tolist()


def loss(problem, y: int, v: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals that hold the loss of an output between them."""
    label, name = Fraction(float(problem.labels[y])), problem.loss.name
    if name == "poisson_log":
        low, high = logarithm(v)
        return v - label * high, v - label * low
    if name == "tabulated":
        value = Fraction(float(problem.loss.entries[y, grid_of(problem).index(float(v))]))
    else:
        value = {"squared": (v - label) ** 2 / 2, "absolute": abs(v - label), "zero_one": -Fraction(v == label)}[name]
    return value, value


@dataclass(frozen=True)
class Channel:
    """Outputs, and the probabilities of each label to get them, in rationals."""

    outputs: list[Fraction]
    rows: list[list[Fraction]]

    @classmethod
    def of_mechanism(cls, mechanism) -> Channel:
        outputs, arcs = exactly(mechanism.outputs.tolist()), mechanism.arcs
        if arcs is None:
            table = mechanism.weights.tolist()
        else:
            table = [[Fraction(0)] * len(outputs) for _ in range(arcs.k)]
            for a, b, i, mass in zip(arcs.first, arcs.last, arcs.at, arcs.masses, strict=True):
                for y, row in enumerate(table):
                    row[i] += mass * (mechanism.ratio if a <= y <= b else 1)
        return cls(outputs, [[Fraction(w) / sum(row) for w in row] for row in table])

    @classmethod
    def of_floats(cls, randomizer) -> Channel:
        arcs = randomizer.arcs
        if arcs is None:
            return cls(exactly(randomizer.outputs.tolist()), [exactly(row) for row in randomizer.matrix.tolist()])
        # The float that stands for exp(epsilon) is part of what arcs in floats mean.
        ratio, masses = Fraction(math.exp(randomizer.epsilon)), exactly(arcs.masses.tolist())
        outputs = [
            Fraction(v) + Fraction(rest) for v, rest in zip(arcs.outputs.tolist(), arcs.rests.tolist(), strict=True)
        ]
        distinct = sorted(set(outputs))
        rows = [[Fraction(0)] * len(distinct) for _ in range(arcs.k)]
        for a, b, v, mass in zip(arcs.first, arcs.last, outputs, masses, strict=True):
            for y, row in enumerate(rows):
                row[distinct.index(v)] += mass * (ratio if a <= y <= b else 1)
        return cls(distinct, rows)

    def largest_bias(self, labels) -> Fraction:
        moments = (
            sum(p * (v - y) for p, v in zip(row, self.outputs, strict=True))
            for row, y in zip(self.rows, exactly(labels.tolist()), strict=True)
        )
        return max(map(abs, moments))

    @property
    def ratio(self) -> Fraction | None:
        """The largest of a column; None where it is infinite or a probability is negative."""
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
        """Rationals that hold the objective of the minimisation between them; the penalty only where it is finite."""
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


def proven(problem, dual) -> Fraction:
    """What the multipliers prove (Theorem 3): all sets of labels, one by one, at a ratio above ``exp(epsilon)``."""
    ratio, k = exponential(problem.epsilon)[1], problem.labels.size
    labels, prior = exactly(problem.labels.tolist()), exactly(problem.prior.tolist())
    alpha, beta, origin = exactly(dual.alpha.tolist()), exactly(dual.beta.tolist()), Fraction(dual.origin)
    bound = sum(alpha) + sum(b * (y - origin) for b, y in zip(beta, labels, strict=True))
    if problem.bias_penalty < math.inf:
        penalty = Fraction(problem.bias_penalty)
        bound -= sum(b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b)

    def reduced(y: int, v: Fraction) -> Fraction:
        price = prior[y] * loss(problem, y, v)[0] if prior[y] else Fraction(0)
        return price - alpha[y] - beta[y] * (v - origin)

    grid = grid_of(problem)
    if grid is not None:
        costs = ([reduced(y, v) for y in range(k)] for v in exactly(grid))
        least = min(sum(h * (ratio if h < 0 else 1) for h in column) for column in costs)
    else:
        sets = itertools.product([Fraction(1), ratio], repeat=k)
        least = min(
            sum(s * reduced(y, v) for y, s in enumerate(steps)) for steps in sets for v in _turns(problem, steps, beta)
        )
    return bound + (least * k / (ratio + k - 1) if least < 0 else least / ratio)


def _turns(problem, steps, beta) -> list[Fraction]:
    """Where one staircase column off a grid may cost least: its cost is convex, and its minimum is known."""
    labels, prior = exactly(problem.labels.tolist()), exactly(problem.prior.tolist())
    weight = sum(s * p for s, p in zip(steps, prior, strict=True))
    pull = sum(s * (p * y + b) for s, p, y, b in zip(steps, prior, labels, beta, strict=True))
    low, high = problem.outputs.low, problem.outputs.high
    found = labels if problem.loss.name == "absolute" else [pull / weight]
    return [min(max(v, Fraction(low)), Fraction(high)) if math.isfinite(low) else v for v in found]
