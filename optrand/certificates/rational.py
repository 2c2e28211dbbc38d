r"""Enclosures of the optimum at a rational privacy ratio, from rational mechanisms and multipliers of any precision.

The bound is that of :mod:`optrand.certificates.certificate` with :math:`E` the ratio itself instead of the exponential
of a float. On a grid it has no rounding; on the line roots, quotients and the ratio are rounded outward as in
:mod:`optrand.certificates.squared`, to as many binary digits as asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np

from optrand.base.arithmetic import Integers
from optrand.certificates import squared
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.model import losses
from optrand.model.losses import Loss
from optrand.model.outputs import Grid
from optrand.model.problem import Problem

__all__ = ["RationalDual", "enclosure", "exact_costs", "expected_loss", "lower_bound"]


@dataclass(frozen=True)
class RationalDual:
    """Multipliers of rows and means, one of each a label; signs are those of :class:`optrand.Dual`, at origin 0.

    Examples
    --------
    >>> RationalDual((Fraction(1, 8),), (Fraction(0),)).alpha
    (Fraction(1, 8),)
    """

    alpha: tuple[Fraction, ...]
    beta: tuple[Fraction, ...]


def enclosure(
    problem: Problem, mechanism: RationalMechanism, dual: RationalDual, ratio: Fraction, *, bits: int
) -> tuple[Fraction, Fraction]:
    """Proven bounds of the least loss: that of the dual, and the loss of the mechanism.

    Off a grid both are rounded outward by about ``2**-bits``, on a grid not at all.

    Raises
    ------
    NotCertified
        A mechanism that breaks the ratio, has a bias where none is allowed, or an output that is not allowed.

    Examples
    --------
    >>> from optrand.model.problem import unbiased_regression
    >>> coin = RationalMechanism((Fraction(0), Fraction(1)), (Fraction(-1, 2), Fraction(3, 2)), ((3, 1), (1, 3)))
    >>> problem = unbiased_regression([0, 1], [0.5, 0.5], math.log(3), outputs=[-0.5, 1.5])
    >>> dual = RationalDual((Fraction(3, 16), Fraction(-9, 16)), (Fraction(-3, 4), Fraction(3, 4)))
    >>> enclosure(problem, coin, dual, Fraction(3), bits=100)
    (Fraction(3, 8), Fraction(3, 8))
    """
    if list(mechanism.labels) != [Fraction(y) for y in problem.labels.tolist()]:
        raise NotCertified("the mechanism's labels are not those of the problem")
    if mechanism.ratio > ratio:
        raise NotCertified("the mechanism breaks the ratio: it is not private")
    if problem.unbiased and any(mechanism.biases):
        raise NotCertified("the mechanism has a bias, and the problem allows none")
    if isinstance(problem.outputs, Grid) and not set(mechanism.outputs) <= set(
        map(Fraction, problem.outputs.values.tolist())
    ):
        raise NotCertified("the mechanism has outputs that are not on the grid")
    lower = lower_bound(problem, dual, ratio, bits=bits)
    return lower, expected_loss(problem, mechanism, bits=bits)


def exact_costs(problem: Problem, outputs: Sequence[Fraction]) -> list[list[Fraction]]:
    """Loss of each output for each label, shape ``(k, n)``, for losses whose values are rational.

    Raises
    ------
    InvalidInput
        A loss with an irrational value.
    """
    labels = [Fraction(y) for y in problem.labels.tolist()]
    if not isinstance(problem.loss, Loss):
        return [
            [Fraction(x) for x in row] for row in problem.loss_table(np.array([float(v) for v in outputs])).tolist()
        ]
    found = [[problem.loss.bracket(v, y) for v in outputs] for y in labels]
    if any(low != high for row in found for low, high in row):
        raise InvalidInput(
            f"{problem.loss.name} has irrational values: an exact optimum needs squared, absolute, zero_one or "
            "Tabulated loss; optrand.certify bounds this one in floats"
        )
    return [[low for low, _ in row] for row in found]


def expected_loss(problem: Problem, mechanism: RationalMechanism, *, bits: int) -> Fraction:
    """Expected loss of a mechanism, exact on a grid; else that of each output is rounded up to ``2**-bits``."""
    prior = [Fraction(p) for p in problem.prior.tolist()]
    if isinstance(problem.outputs, Grid):
        costs = exact_costs(problem, mechanism.outputs)
        rows = zip(prior, costs, mechanism.weights, strict=True)
        return sum((p * sum(map(mul, row, cost)) for p, cost, row in rows), Fraction(0)) / mechanism.total
    if problem.loss != losses.squared:
        raise InvalidInput(f"off a grid exact losses are squared, not {problem.loss.name}: pass outputs=")
    middle = mechanism.labels[problem.k // 2]
    parts = [(p, p * (y - middle), p * (y - middle) ** 2) for p, y in zip(prior, mechanism.labels, strict=True)]
    sums = Fraction(0)
    for output, column in zip(mechanism.outputs, zip(*mechanism.weights, strict=True), strict=True):
        a, b, c = (sum((w * part[i] for w, part in zip(column, parts, strict=True)), Fraction(0)) for i in range(3))
        v = output - middle
        sums += _rounded_up(((a * v - 2 * b) * v + c) / (2 * mechanism.total), bits)
    return sums


def _rounded_up(x: Fraction, bits: int) -> Fraction:
    return Fraction(-((-x.numerator << bits) // x.denominator), 1 << bits)


def lower_bound(problem: Problem, dual: RationalDual, ratio: Fraction, *, bits: int) -> Fraction:
    """Lower bound of the loss of every randomizer within the ratio, by any multipliers.

    Multipliers off a grid must be dyadic. Cost ``O(k n)`` on a grid, else ``O(k log k)``.

    Raises
    ------
    InvalidInput
        A finite bias penalty above 0, slopes where bias is free, or off a grid a loss that is not squared.
    """
    if not problem.unbiased and (problem.bias_penalty or any(dual.beta)):
        raise InvalidInput("rational bounds are of problems without bias, or with free bias and beta = 0")
    labels = [Fraction(y) for y in problem.labels.tolist()]
    base = sum(dual.alpha, Fraction(0)) + sum(map(mul, dual.beta, labels), Fraction(0))
    if isinstance(problem.outputs, Grid):
        least = _least_on_grid(problem, dual, ratio)
    else:
        least = squared.least_price(problem, dual.alpha, dual.beta, ratio, bits=bits)
    return base + (least * problem.k / (ratio + problem.k - 1) if least < 0 else least / ratio)


def _least_on_grid(problem: Problem, dual: RationalDual, ratio: Fraction) -> Fraction:
    """Price of the cheapest column of all values of a grid."""
    values = [Fraction(v) for v in problem.outputs.values.tolist()]  # type: ignore[union-attr]
    prior = [Fraction(p) for p in problem.prior.tolist()]
    costs = [[p * cost for cost in row] for p, row in zip(prior, exact_costs(problem, values), strict=True)]
    unit = math.lcm(*(x.denominator for row in [*costs, values] for x in row))
    common = math.lcm(*(x.denominator for x in (*dual.alpha, *dual.beta)))
    high, low = ratio.as_integer_ratio()
    prices: Integers = (
        np.array([whole(row, unit) for row in costs], dtype=object) * common
        - np.array(whole(dual.alpha, common), dtype=object)[:, np.newaxis] * unit
        - np.outer(np.array(whole(dual.beta, common), dtype=object), np.array(whole(values, unit), dtype=object))
    )
    cheapest = low * prices.sum(axis=0) + (high - low) * np.minimum(prices, 0).sum(axis=0)
    return Fraction(min(cheapest.tolist()), common * unit * low)


def whole(numbers: Sequence[Fraction], unit: int) -> list[int]:
    """Integers ``numbers * unit``, for a common multiple of their denominators."""
    return [x.numerator * (unit // x.denominator) for x in numbers]
