r"""The bound of :mod:`optrand.certificate` once more, in integers and rationals, every rounding in the safe direction.

Labels, priors and multipliers are floats, so they are exact dyadic rationals. :math:`E = e^\epsilon` is rounded *up*
(a larger :math:`E` admits more randomizers, so the bound is still true). Squared and absolute loss have modules of
their own, :mod:`optrand.pricing.squared` and :mod:`optrand.pricing.absolute`. For Poisson log loss off a grid
the roots of each :math:`h_y` are bracketed *outward*. Treating :math:`h_y` as negative up to such a bracket overstates
:math:`f` by at most :math:`(E - 1)` times the value of :math:`h_y` at the outer end, which is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np

from optrand import losses
from optrand.arcs.channel import IntervalChannel
from optrand.dyadic import places, scaled
from optrand.exact import log_bracket
from optrand.mechanism import Mechanism
from optrand.outputs import Grid
from optrand.pricing import absolute as exact_absolute
from optrand.pricing import squared as exact_squared
from optrand.pricing.bound import excess_above
from optrand.pricing.prices import negative_ranges
from optrand.problem import Problem
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["cheap", "lower_bound", "value"]

BITS = 200
"""Binary digits to which roots are rounded."""

SMALLEST = Fraction(1, 2**1100)
"""Below every positive float. Roots of Poisson log loss nearer to 0 than this are not looked for."""


def rationals(numbers: Floats) -> list[Fraction]:
    """The floats as the rationals that they are."""
    return [Fraction(x) for x in numbers.tolist()]


def cheap(problem: Problem) -> bool:
    """Whether exact arithmetic costs no more than floats, so that nothing else is used: squared and absolute loss."""
    return problem.loss in (losses.squared, losses.absolute)


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """The bound as a rational; multipliers must be zero where ``bias_penalty * prior`` is."""
    if cheap(problem):
        squared = problem.loss == losses.squared
        return exact_squared.lower_bound(problem, dual) if squared else exact_absolute.lower_bound(problem, dual)
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    total = sum(alpha, Fraction(0)) + sum((b * y for b, y in zip(beta, labels, strict=True)), Fraction(0))
    if not problem.unbiased:
        penalty = Fraction(problem.bias_penalty)
        total -= sum((b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b), Fraction(0))
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 1 << shift)
    lowest = _lowest(problem, dual, ratio)
    return total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)


def value(problem: Problem, mechanism: Mechanism) -> Fraction:
    """The objective at an exact mechanism (of the minimisation), rounded up where the loss is not rational."""
    arcs, outputs = mechanism.arcs, mechanism.outputs
    if arcs is not None and problem.loss in (losses.squared, losses.absolute):
        intervals = arcs.first, arcs.last
        channel = IntervalChannel.of_integers(
            problem.labels, outputs[arcs.at], intervals, arcs.masses.tolist(), mechanism.ratio
        )
        squared = problem.loss == losses.squared
        expected = channel.squared_error(problem.prior) / 2 if squared else channel.absolute_error(problem.prior)
    else:
        expected = _expected_loss(problem, mechanism)
    if problem.bias_penalty and not problem.unbiased:
        charges = zip(rationals(problem.prior), mechanism.exact_biases, strict=True)
        expected += Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2
    return expected


def _expected_loss(problem: Problem, mechanism: Mechanism) -> Fraction:
    """The expected loss, rounded up where it is not rational; cost ``O(k n)``, of classes ``O(k + n)``."""
    if problem.loss == losses.zero_one:
        kept = zip(rationals(problem.prior), _kept(mechanism), strict=True)
        return -sum((p * weight for p, weight in kept), Fraction(0)) / mechanism.total
    if problem.loss in (losses.squared, losses.absolute):
        digits, finer = max(places(problem.labels), places(mechanism.outputs)), places(problem.prior)
        labels, outputs = (np.array(scaled(x, digits), dtype=object) for x in (problem.labels, mechanism.outputs))
        distances = np.abs(outputs - labels[:, np.newaxis])
        power = 2 if problem.loss == losses.squared else 1
        means = (mechanism.weights * distances**power).sum(axis=1)
        error = sum(map(mul, scaled(problem.prior, finer), means.tolist()))
        return Fraction(error, power * mechanism.total << (finer + power * digits))
    exact_labels, prior, exact_outputs = (rationals(x) for x in (problem.labels, problem.prior, mechanism.outputs))
    expected = Fraction(0)
    for y, (label, p) in enumerate(zip(exact_labels, prior, strict=True)):
        if p:
            bounds = _loss_bounds(problem, y, label, exact_outputs)
            expected += p * sum(w * g for w, (_, g) in zip(mechanism.weights[y].tolist(), bounds, strict=True))
    return expected / mechanism.total


def _kept(mechanism: Mechanism) -> list[int]:
    """The weight of each label as its own output; 0 for labels that are none."""
    labels, outputs, arcs = mechanism.labels, mechanism.outputs, mechanism.arcs
    where = np.minimum(np.searchsorted(labels, outputs), labels.size - 1)
    kept = [0] * labels.size
    if arcs is None:
        for i in np.flatnonzero(labels[where] == outputs).tolist():
            kept[where[i]] = mechanism.weights[where[i], i]
        return kept
    low, high = mechanism.ratio.denominator, mechanism.ratio.numerator
    own, same = where[arcs.at], (labels[where] == outputs)[arcs.at]
    favoured = (arcs.first <= own) & (own <= arcs.last)
    for i in np.flatnonzero(same).tolist():
        kept[own[i]] += (high if favoured[i] else low) * arcs.masses[i]
    return kept


def _loss_bounds(
    problem: Problem, y: int, label: Fraction, outputs: Sequence[Fraction]
) -> Iterable[tuple[Fraction, Fraction]]:
    """Rational bounds of the loss of each output for label number `y`."""
    if isinstance(problem.loss, losses.Loss):
        return (problem.loss.bracket(v, label) for v in outputs)
    row = problem.loss_table(np.array([float(v) for v in outputs]))[y]
    return ((g, g) for g in rationals(row))


def _lowest(problem: Problem, dual: Dual, ratio: Fraction) -> Fraction:
    """A rational lower bound of ``min f`` over the allowed outputs."""
    if isinstance(problem.outputs, Grid):
        if problem.loss == losses.zero_one:
            return _lowest_of_classes(problem, dual, ratio, problem.outputs.values)
        return _lowest_on_grid(problem, dual, ratio, problem.outputs.values)
    return _lowest_poisson(problem, dual, ratio)


def _lowest_of_classes(problem: Problem, dual: Dual, ratio: Fraction, grid: Floats) -> Fraction:
    """The same for ``zero_one``: an output gains at the one label that it is, if it is any; cost ``O(k + n)``."""

    def weighted(cost: Fraction) -> Fraction:
        return cost * ratio if cost < 0 else cost

    alpha, prior = rationals(dual.alpha), rationals(problem.prior)
    elsewhere = [weighted(-a) for a in alpha]
    base = sum(elsewhere, Fraction(0))
    own = np.flatnonzero(np.isin(problem.labels, grid)).tolist()
    costs = [base + weighted(-prior[y] - alpha[y]) - elsewhere[y] for y in own]
    return min(costs if len(own) == grid.size else [*costs, base])


def _lowest_on_grid(problem: Problem, dual: Dual, ratio: Fraction, grid: Floats) -> Fraction:
    """``f`` at every value of a grid, from lower bounds of the losses; cost ``O(n k)``."""
    outputs = rationals(grid)
    costs = [Fraction(0)] * len(outputs)
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    for y, label in enumerate(labels):
        for i, (low, _) in enumerate(_loss_bounds(problem, y, label, outputs)):
            reduced = prior[y] * low - alpha[y] - beta[y] * outputs[i]
            costs[i] += reduced * ratio if reduced < 0 else reduced
    return min(costs)


@dataclass(frozen=True)
class _Curve:
    """One :math:`h_y`, negative at most inside ``(start, end)``, None where unlimited; `slack` pays for the bracket.

    The coefficients are those of ``v, -log v, 1``.
    """

    coefficients: tuple[Fraction, Fraction, Fraction]
    start: Fraction | None = None
    end: Fraction | None = None
    negative: bool = False
    slack: Fraction = Fraction(0)


def _lowest_poisson(problem: Problem, dual: Dual, ratio: Fraction) -> Fraction:
    """Poisson log loss off a grid: one pass over the sorted brackets. Cost ``O(k log k)``."""
    columns = [rationals(x) for x in (problem.prior, problem.labels, dual.alpha)]
    guesses = zip(*(x.tolist() for x in negative_ranges(problem, dual)), strict=True)
    low, below = Fraction(max(problem.outputs.low, 0.0)), Fraction(0)
    if not low:
        # Between 0 and there every h falls but that of the label 0, which rises by p v: f is at most so much lower.
        low, below = SMALLEST, 2 * ratio * SMALLEST
    high = Fraction(problem.outputs.high) if math.isfinite(problem.outputs.high) else None
    curves = [_poisson((p, y, a), guess, (low, high)) for p, y, a, guess in zip(*columns, guesses, strict=True)]
    totals = [sum((c.coefficients[j] for c in curves), Fraction(0)) for j in range(3)]
    events: list[tuple[Fraction, int, _Curve]] = []
    for curve in filter(lambda c: c.negative, curves):
        if curve.end is not None and curve.end <= low:
            continue
        if curve.start is None or curve.start <= low:
            _add(totals, curve, ratio - 1)
        else:
            events.append((curve.start, 1, curve))
        if curve.end is not None:
            events.append((curve.end, -1, curve))
    least, left = [], low
    for where, direction, curve in sorted(events, key=lambda event: event[0]):
        if high is not None and where >= high:
            break
        if where != left:
            least.append(_poisson_minimum((totals[0], totals[1], totals[2]), left, where))
            left = where
        _add(totals, curve, direction * (ratio - 1))
    least.append(_poisson_minimum((totals[0], totals[1], totals[2]), left, high))
    return min(least) - (ratio - 1) * sum((c.slack for c in curves), Fraction(0)) - below


def _add(totals: list[Fraction], curve: _Curve, factor: Fraction) -> None:
    for j, coefficient in enumerate(curve.coefficients):
        totals[j] += factor * coefficient


def _poisson(
    parameters: tuple[Fraction, Fraction, Fraction],
    guess: tuple[float, float],
    limits: tuple[Fraction, Fraction | None],
) -> _Curve:
    """The curve ``p v - p y log v - alpha``: roots guessed in floats, moved outward until the sign there is proven.

    A root beyond a limit of the outputs, which the sign at the limit tells, is not looked for.
    """
    p, y, alpha = parameters
    coefficients = (p, p * y, -alpha)
    if p == 0:
        return _Curve(coefficients, negative=alpha > 0)
    if y == 0:
        return _Curve(coefficients, end=alpha / p, negative=True) if alpha > 0 else _Curve(coefficients)
    if math.isnan(guess[0]) and _poisson_bounds(parameters, y)[0] >= 0:
        return _Curve(coefficients)
    ends: list[Fraction | None] = [None, None]
    slack = Fraction(0)
    for side, (x, limit, sign) in enumerate(zip(guess, limits, (-1, 1), strict=True)):
        if limit is not None and (sign * (limit - y) <= 0 or _poisson_bounds(parameters, limit)[0] < 0):
            continue
        near = Fraction(x) if math.isfinite(x) and sign * (Fraction(x) - y) > 0 else y
        ends[side] = v = _beyond_root(parameters, near, sign)
        slack = max(slack, _poisson_bounds(parameters, v)[1])
    return _Curve(coefficients, ends[0], ends[1], negative=True, slack=slack)


def _poisson_bounds(parameters: tuple[Fraction, Fraction, Fraction], v: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of ``p v - p y log v - alpha``."""
    p, y, alpha = parameters
    low, high = losses.poisson_log.bracket(v, y)
    return p * low - alpha, p * high - alpha


def _beyond_root(parameters: tuple[Fraction, Fraction, Fraction], v: Fraction, sign: int) -> Fraction:
    """A number just beyond the root on the given side of ``y``, from a guess: the curve is proven not negative there.

    Pushed outward until that is so, then drawn in by Newton's method, which from outside never crosses a root.
    """
    p, y, _ = parameters
    push = Fraction(1, 2**52)
    while _poisson_bounds(parameters, v)[0] < 0:
        v = v / (1 + push) if sign < 0 else v * (1 + push)
        push *= 2
    while v != y:
        nearer = v - _poisson_bounds(parameters, v)[0] / (p * (1 - y / v))
        quantum = Fraction(2) ** (nearer.numerator.bit_length() - nearer.denominator.bit_length() - BITS)
        nearer = quantum * (math.floor(nearer / quantum) if sign < 0 else math.ceil(nearer / quantum))
        if abs(nearer - v) * 2**64 < v:
            break
        v = nearer
    return v


def _poisson_minimum(totals: tuple[Fraction, Fraction, Fraction], left: Fraction, right: Fraction | None) -> Fraction:
    """A lower bound of ``w v - f log v + c`` between two ends: its minimum is at the weighted mean ``f / w``."""
    w, f, c = totals
    v = max(f / w, left)
    if right is not None:
        v = min(v, right)
    return w * v + c - (f * log_bracket(v)[1] if f else 0)
