"""Slow references in rationals for what the package computes fast: the bound of a dual, and feasible randomizers."""

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from conftest import epsilons, label_sets, priors
from hypothesis import strategies as st

from optrand import Dual, Grid, Interval, Problem, classification, losses, regression
from optrand.base.arithmetic import float_above, float_below, privacy_ratio


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
    output = problem.outputs.values[i]
    cost = Fraction(0)
    for y in range(problem.k):
        label, p = problem.labels[y], Fraction(problem.prior[y])
        if isinstance(problem.loss, losses.Tabulated):
            loss = Fraction(problem.loss.entries[y, i])
        else:
            loss = exact_loss(problem.loss, Fraction(output), Fraction(label))
        reduced = (
            p * loss - Fraction(dual.alpha[y]) - Fraction(dual.beta[y]) * (Fraction(output) - Fraction(dual.origin))
        )
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


def exact_log(v):
    with decimal.localcontext() as context:
        context.prec = 80
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


@dataclass(frozen=True)
class Feasible:
    """A problem, and a randomizer in rationals that is feasible for it beyond doubt."""

    problem: Problem
    outputs: list[Fraction]
    rows: list[list[Fraction]]

    @property
    def value(self) -> Fraction:
        """The objective of the minimisation, from its definition."""
        problem, total = self.problem, Fraction(0)
        for y, (label, p, row) in enumerate(zip(problem.labels, problem.prior, self.rows, strict=True)):
            y_exact, p_exact = Fraction(label), Fraction(p)
            for v, q in zip(self.outputs, row, strict=True):
                total += p_exact * q * self._loss(y, y_exact, v)
            if 0 < problem.bias_penalty < math.inf:
                mean = sum(q * v for q, v in zip(row, self.outputs, strict=True))
                total += p_exact * Fraction(problem.bias_penalty) * (mean - y_exact) ** 2 / 2
        return total

    def _loss(self, y, label, v):
        if isinstance(self.problem.loss, losses.Tabulated):
            return Fraction(self.problem.loss.entries[y, np.searchsorted(self.problem.outputs.values, float(v))])
        return exact_loss(self.problem.loss, v, label)


@st.composite
def feasible(draw):
    """A random sum of staircase columns, and a problem around it whose constraints it meets exactly."""
    kind = draw(st.sampled_from(["squared", "squared", "absolute", "poisson_log", "tabulated", "classification"]))
    labels, epsilon = draw(label_sets(1, 5)), draw(epsilons)
    k, ratio = labels.size, privacy_ratio(epsilon)
    prior = draw(priors(k))
    penalty = draw(st.sampled_from([0.0, 0.5, 20.0, math.inf])) if kind == "squared" else 0.0
    if kind == "poisson_log":
        labels = labels - min(0.0, labels[0])
    values = labels if kind == "classification" else labels[0] + np.arange(-3.0, 8.0) * 0.75 * (np.ptp(labels) or 1.0)
    if kind == "poisson_log":
        values = values[values > 0]
    sets = draw(st.lists(st.tuples(*[st.booleans()] * k), min_size=1, max_size=5))
    masses = draw(st.lists(st.integers(1, 100), min_size=len(sets) + k, max_size=len(sets) + k))
    choice = st.sampled_from([Fraction(v) for v in values.tolist()])
    arcs = [(members, draw(choice), mass) for members, mass in zip(sets, masses, strict=False)]
    # Singletons make all labels covered equally; one unit more of each leaves room to move their outputs.
    covered = [sum(mass for members, _, mass in arcs if members[y]) for y in range(k)]
    unit = [tuple(z == y for z in range(k)) for y in range(k)]
    arcs += [(unit[y], draw(choice), max(covered) - covered[y] + masses[-1]) for y in range(k)]
    rows = [[mass * (ratio if members[y] else 1) for members, _, mass in arcs] for y in range(k)]
    total = sum(rows[0])
    rows = [[Fraction(w) / total for w in row] for row in rows]
    outputs = [v for _, v, _ in arcs]
    if penalty == math.inf:
        outputs[-k:] = _unbiased_ends(labels, rows, outputs, ratio)
    allowed = draw(_allowed(kind, outputs, penalty))
    if kind == "classification":
        return Feasible(classification(prior, epsilon, labels=labels), outputs, rows)
    loss = losses.by_name.get(kind)
    if kind == "tabulated":
        entries = draw(st.lists(st.integers(-5, 5), min_size=k * allowed.values.size, max_size=k * allowed.values.size))
        loss = losses.Tabulated(np.array(entries).reshape(k, -1))
    return Feasible(regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=allowed), outputs, rows)


def _unbiased_ends(labels, rows, outputs, ratio):
    """Outputs of the last k columns, singletons, that make every mean right: a system that a formula solves."""
    k = labels.size
    light = [rows[(y + 1) % k][-k + y] / (1 if k > 1 else ratio) for y in range(k)]
    missing = [
        Fraction(labels[y]) - sum(q * v for q, v in zip(rows[y][:-k], outputs[:-k], strict=True)) for y in range(k)
    ]
    shared = sum(missing) / (ratio - 1 + k)
    return [(missing[y] - shared) / (light[y] * (ratio - 1)) for y in range(k)]


@st.composite
def _allowed(draw, kind, outputs, penalty):
    low, high = float_below(min(outputs)), float_above(max(outputs))
    choices = ["grid"] if kind == "tabulated" else ["line", "interval", "grid"]
    where = draw(st.sampled_from(["line", "interval"] if penalty == math.inf else choices))
    if where == "line":
        return None
    if where == "interval":
        return Interval(low, high if high > low else low + 1)
    extra = [high + 1.0] if draw(st.booleans()) else []
    return Grid(np.unique([*(float(v) for v in outputs), *extra]))
