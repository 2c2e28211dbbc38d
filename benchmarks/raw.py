"""Judge tables of probabilities as other solvers leave them: in integers, without rounding, and not repaired first.

Nothing here is shared with the judges of the package: floats are read as the rationals that they are, and results are
rounded once.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._validation import Floats
from optrand.model._problem import Problem

STRICT, LOOSE = 1e-9, 1e-6
"""Distances from the truth that verdicts name."""

Integers = NDArray[Any]
"""Python's integers, in an array of objects."""

Judgement = dict[str, Any]


def read_floats(numbers: ArrayLike) -> tuple[Integers, int]:
    """Return floats as integers over one power of two.

    Examples
    --------
    >>> weights, unit = read_floats([0.75, 0.5])
    >>> [Fraction(weight, unit) for weight in weights]
    [Fraction(3, 4), Fraction(1, 2)]
    """
    mantissas, exponents = np.frexp(np.asarray(numbers, dtype=np.float64))
    least = min(int(exponents.min()), 53)
    digits = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    return digits << (exponents.astype(object) - least), 1 << (53 - least)


def largest_ratio(weights: Integers) -> Fraction | None:
    """Return the largest ratio of two entries of a column, or None if it is infinite, or if an entry is negative."""
    largest = Fraction(1)
    for column in weights.T.tolist():
        low, high = min(column), max(column)
        if low < 0 or low == 0 < high:
            return None
        if high > low * largest:
            largest = Fraction(high, low)
    return largest


def largest_bias(weights: Integers, totals: Integers, labels: Floats, outputs: Floats) -> Fraction:
    """Return the largest ``|mean of a row - label|``, of rows that count as probability 1 at their totals."""
    values, unit = read_floats(outputs)
    means = [Fraction(row, int(total) * unit) for row, total in zip(weights @ values, totals, strict=True)]
    return max(abs(mean - Fraction(y)) for mean, y in zip(means, labels.tolist(), strict=True))


def judge_table(problem: Problem, outputs: Floats, table: Floats, optimum: float) -> Judgement:
    """Judge a table, a row per label, of a problem with the loss ``zero_one`` or ``squared``, beside the optimum.

    Returns
    -------
    dict
        ``rows`` is the largest ``|sum of a row - 1|``. ``bias`` is 0 if bias is allowed. ``realised`` is the epsilon of
        the largest ratio of two entries of a column. ``delta`` is the sum over the outputs of ``max(0, largest -
        exp(epsilon) smallest)``: the table is (epsilon, delta)-DP. ``value`` is the loss under the prior (for classes:
        the probability of keeping a class). Then follow the ``distance`` from the truth and a ``verdict`` in words.

    Examples
    --------
    >>> from optrand import classification
    >>> table = np.array([[0.75, 0.25], [0.25, 0.5]])
    >>> found = judge_table(classification([0.6, 0.4], 1.0), np.array([0.0, 1.0]), table, 0.7)
    >>> found["rows"], found["value"], round(found["realised"], 12) == round(math.log(3), 12)
    (0.25, 0.65, True)
    >>> round(found["delta"], 12), found["verdict"]
    (0.070429542885, 'rows off by 2e-01, epsilon 1.099 (delta up to 7e-02), value off by -7e-02')
    """
    weights, unit = read_floats(table)
    factor, bias = Fraction(math.exp(problem.epsilon)), Fraction(0)
    if problem.unbiased:
        bias = largest_bias(weights, np.full(problem.k, unit), problem.labels, outputs)
    found = {
        "rows": float(max(abs(Fraction(sum(row), unit) - 1) for row in weights.tolist())),
        "bias": float(bias),
        "realised": _log(largest_ratio(weights)),
        "delta": float(_excess(weights, factor) / unit),
        "value": float(_value(problem, outputs, weights) / unit),
    }
    return measure_distance(problem, optimum, found)


def judge_metric_table(problem: Problem, table: Floats, optimum: float) -> Judgement:
    """Judge a table whose outputs are the labels by metric privacy, with the problem's epsilon per unit of the labels.

    Neighbours decide: their ratios multiply, and their distances add up. The realised epsilon is the largest over
    neighbours, per unit. Delta is the largest sum of ``max(0, M[y, o] - exp(epsilon |y - z|) M[z, o])`` over the
    outputs, with the larger of the two labels' entries first.

    Examples
    --------
    >>> from optrand import regression
    >>> table = np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    >>> problem = regression([0, 1, 3], np.full(3, 1 / 3), 0.5, outputs=[0, 1, 3])
    >>> found = judge_metric_table(problem, table, 0.0)
    >>> round(found["realised"], 12) == round(math.log(2), 12), round(found["delta"], 12)
    (True, 0.087819682325)
    """
    weights, unit = read_floats(table)
    epsilons, deltas = [], []
    for y, distance in enumerate(np.diff(problem.labels).tolist()):
        pair = weights[y : y + 2]
        epsilons.append(_log(largest_ratio(pair)) / distance)
        deltas.append(float(_excess(pair, Fraction(math.exp(problem.epsilon * distance))) / unit))
    found = judge_table(problem, problem.labels, table, optimum)
    return measure_distance(problem, optimum, found | {"realised": max(epsilons), "delta": max(deltas)})


def measure_distance(problem: Problem, optimum: float, found: Judgement) -> Judgement:
    """Add the largest error, of rows, means (by the range of the labels), epsilon and value (relative), and words."""
    off = (found["value"] - optimum) / (abs(optimum) or 1.0)
    errors = {
        f"rows off by {found['rows']:.0e}": found["rows"],
        f"biased by {found['bias']:.0e}": found["bias"] / (float(np.ptp(problem.labels)) or 1.0),
        f"epsilon {found['realised']:.4g} (delta up to {found['delta']:.0e})": found["realised"] - problem.epsilon,
        f"value off by {off:+.0e}": abs(off),
    }
    # Without a proven optimum the error of the value is not a number, and neither is the distance.
    distance = float(np.max(list(errors.values())))
    words = ", ".join(word for word, error in errors.items() if not error <= STRICT)
    near = f"right to {LOOSE:g}: " if distance <= LOOSE else ""
    return found | {"distance": distance, "verdict": near + words if words else f"right to {STRICT:g}"}


def _log(ratio: Fraction | None) -> float:
    return math.inf if ratio is None else math.log(ratio.numerator) - math.log(ratio.denominator)


def _excess(weights: Integers, factor: Fraction) -> Fraction:
    columns = weights.T.tolist()
    return sum((max(Fraction(0), max(column) - factor * min(column)) for column in columns), Fraction(0))


def _value(problem: Problem, outputs: Floats, weights: Integers) -> Fraction:
    numbers, unit = read_floats(np.concatenate([outputs, problem.labels]))
    away = numbers[: outputs.size] - numbers[outputs.size :, np.newaxis]
    costs, scale = (away == 0, 1) if problem.loss == losses.zero_one else (away**2, 2 * unit**2)
    rows = (weights * costs).sum(axis=1).tolist()
    return sum((Fraction(p) * row for p, row in zip(problem.prior.tolist(), rows, strict=True)), Fraction(0)) / scale
