r"""The bound of :mod:`optrand.certificate` once more, in integers and rationals, every rounding in the safe direction.

Labels, priors and multipliers are floats, so they are exact dyadic rationals, and a common power of two turns them into
integers. :math:`E = e^\epsilon` is rounded *up* (a larger :math:`E` admits more randomizers, so the bound is still
true). On the line the roots of each :math:`h_y` are bracketed *outward*. Treating :math:`h_y` as negative up to such a
bracket overstates :math:`f` by at most :math:`(E - 1)` times the value of :math:`h_y` at the outer end, which is
subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand import losses
from optrand.exact import exp_bracket, log_bracket
from optrand.mechanism import Mechanism
from optrand.outputs import Grid
from optrand.pricing import negative_ranges
from optrand.problem import Problem
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["lower_bound", "value"]

BITS = 200
"""Binary digits to which ``exp(epsilon)`` and roots are rounded."""

SMALLEST = Fraction(1, 2**1100)
"""Below every positive float. Roots of Poisson log loss nearer to 0 than this are not looked for."""


def rationals(numbers: Floats) -> list[Fraction]:
    """The floats as the rationals that they are."""
    return [Fraction(x) for x in numbers.tolist()]


def ratio_above(epsilon: float) -> Fraction:
    """``exp(epsilon)`` rounded up to a dyadic rational."""
    return Fraction(math.ceil(exp_bracket(epsilon)[1] * 2**BITS), 2**BITS)


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """The bound as a rational; multipliers must be zero where ``bias_penalty * prior`` is."""
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    total = sum(alpha, Fraction(0)) + sum((b * y for b, y in zip(beta, labels, strict=True)), Fraction(0))
    if not problem.unbiased:
        penalty = Fraction(problem.bias_penalty)
        total -= sum((b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b), Fraction(0))
    ratio = ratio_above(problem.epsilon)
    lowest = _lowest(problem, dual, ratio)
    return total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)


def value(problem: Problem, mechanism: Mechanism) -> Fraction:
    """The objective at an exact mechanism (of the minimisation), rounded up where the loss is not rational."""
    labels, prior, outputs = (rationals(x) for x in (problem.labels, problem.prior, mechanism.outputs))
    expected = Fraction(0)
    for y, (label, p) in enumerate(zip(labels, prior, strict=True)):
        if p:
            bounds = _loss_bounds(problem, y, label, outputs)
            expected += p * sum(w * g for w, (_, g) in zip(mechanism.weights[y].tolist(), bounds, strict=True) if w)
    expected /= mechanism.total
    if problem.bias_penalty and not problem.unbiased:
        squares = sum((p * b * b for p, b in zip(prior, mechanism.exact_biases, strict=True)), Fraction(0))
        expected += Fraction(problem.bias_penalty) * squares / 2
    return expected


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
        return _lowest_on_grid(problem, dual, ratio, problem.outputs.values)
    if problem.loss == losses.absolute:
        return _lowest_absolute(problem, dual, ratio)
    pieces = _squared_pieces if problem.loss == losses.squared else _poisson_pieces
    return _sweep(problem, pieces(problem, dual), ratio)


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


def _lowest_absolute(problem: Problem, dual: Dual, ratio: Fraction) -> Fraction:
    """Absolute loss without multipliers of bias: ``f`` is piecewise linear, so labels, roots and ends suffice."""
    alpha, prior, labels = (rationals(x) for x in (dual.alpha, problem.prior, problem.labels))
    points = set(labels)
    for y, a, p in zip(labels, alpha, prior, strict=True):
        if a > 0 and p > 0:
            points |= {y - a / p, y + a / p}
    low, high = problem.outputs.low, problem.outputs.high
    points |= {Fraction(x) for x in (low, high) if math.isfinite(x)}

    def cost(v: Fraction) -> Fraction:
        reduced = [p * abs(v - y) - a for y, a, p in zip(labels, alpha, prior, strict=True)]
        return sum((h * ratio if h < 0 else h for h in reduced), Fraction(0))

    return min(cost(v) for v in points if low <= v <= high)


@dataclass(frozen=True)
class _Curve:
    """One :math:`h_y` as three coefficients, negative at most inside ``(start, end)``; `slack` pays for the bracket.

    The coefficients are those of ``v^2, v, 1`` (squared loss) or of ``v, -log v, 1`` (Poisson log loss).
    """

    coefficients: tuple[Fraction, Fraction, Fraction]
    start: Fraction | None = None
    end: Fraction | None = None
    negative: bool = False
    slack: Fraction = Fraction(0)


Minimum = Callable[[tuple[Fraction, Fraction, Fraction], Fraction | None, Fraction | None], Fraction]


def _sweep(problem: Problem, pieces: tuple[list[_Curve], Minimum], ratio: Fraction) -> Fraction:
    """Lower bound of ``f`` by one pass over the sorted brackets; ends of None are infinite. Cost ``O(k log k)``."""
    curves, minimum = pieces
    low, high = (Fraction(x) if math.isfinite(x) else None for x in (problem.outputs.low, problem.outputs.high))
    below = Fraction(0)
    if low is None and problem.loss.positive_outputs:
        # Between 0 and there every h falls but that of the label 0, which rises by p v: f is at most so much lower.
        low, below = SMALLEST, 2 * ratio * SMALLEST
    totals = [sum((c.coefficients[j] for c in curves), Fraction(0)) for j in range(3)]
    events: list[tuple[Fraction, int, _Curve]] = []
    for curve in filter(lambda c: c.negative, curves):
        if curve.start is None or (low is not None and curve.start <= low):
            _add(totals, curve, ratio - 1)
        else:
            events.append((curve.start, 1, curve))
        if curve.end is not None and (low is None or curve.end > low):
            events.append((curve.end, -1, curve))
        elif curve.end is not None:
            _add(totals, curve, 1 - ratio)
    best, left = None, low
    for where, direction, curve in sorted(events, key=lambda event: event[0]):
        if high is not None and where >= high:
            break
        if where != left:
            here = minimum((totals[0], totals[1], totals[2]), left, where)
            best = here if best is None else min(best, here)
            left = where
        _add(totals, curve, direction * (ratio - 1))
    last = minimum((totals[0], totals[1], totals[2]), left, high)
    slack = sum((c.slack for c in curves), Fraction(0))
    return (last if best is None else min(best, last)) - (ratio - 1) * slack - below


def _add(totals: list[Fraction], curve: _Curve, factor: Fraction) -> None:
    for j, coefficient in enumerate(curve.coefficients):
        totals[j] += factor * coefficient


def _squared_pieces(problem: Problem, dual: Dual) -> tuple[list[_Curve], Minimum]:
    spread = float(np.ptp(problem.labels)) or abs(float(problem.labels[0])) or 1.0
    quantum = Fraction(2) ** (math.frexp(spread)[1] - BITS)
    columns = (rationals(x) for x in (problem.prior, problem.labels, dual.alpha, dual.beta))
    return [
        _quadratic((p / 2, -p * y - b, p * y * y / 2 - a), quantum) for p, y, a, b in zip(*columns, strict=True)
    ], _quadratic_minimum


def _quadratic(coefficients: tuple[Fraction, Fraction, Fraction], quantum: Fraction) -> _Curve:
    """The curve ``a v^2 + b v + c``, ``a >= 0``, with its roots rounded outward to multiples of `quantum`."""
    a, b, c = coefficients

    def at(v: Fraction | None) -> Fraction:
        return Fraction(0) if v is None else max(Fraction(0), (a * v + b) * v + c)

    def outward(v: Fraction, direction: int) -> Fraction:
        return quantum * (math.floor(v / quantum) if direction < 0 else math.ceil(v / quantum))

    start: Fraction | None = None
    end: Fraction | None = None
    if a == 0:
        if b == 0:
            return _Curve(coefficients, negative=c < 0)
        if b < 0:
            start = outward(-c / b, -1)
        else:
            end = outward(-c / b, 1)
    else:
        discriminant = b * b - 4 * a * c
        if discriminant <= 0:
            return _Curve(coefficients)
        product = discriminant.numerator * discriminant.denominator
        shift = max(0, BITS - product.bit_length() // 2)
        root = Fraction(math.isqrt(product << (2 * shift)) + 1, discriminant.denominator << shift)
        start, end = outward((-b - root) / (2 * a), -1), outward((-b + root) / (2 * a), 1)
    return _Curve(coefficients, start, end, negative=True, slack=max(at(start), at(end)))


def _quadratic_minimum(
    totals: tuple[Fraction, Fraction, Fraction], left: Fraction | None, right: Fraction | None
) -> Fraction:
    """The least value of ``a v^2 + b v + c`` between two ends; ``a > 0``, since some prior is positive."""
    a, b, c = totals
    v = -b / (2 * a)
    if left is not None:
        v = max(v, left)
    if right is not None:
        v = min(v, right)
    return (a * v + b) * v + c


def _poisson_pieces(problem: Problem, dual: Dual) -> tuple[list[_Curve], Minimum]:
    columns = [rationals(x) for x in (problem.prior, problem.labels, dual.alpha)]
    guesses = zip(*(x.tolist() for x in negative_ranges(problem, dual)), strict=True)
    low, high = problem.outputs.low, problem.outputs.high
    limits = Fraction(low) if math.isfinite(low) else SMALLEST, Fraction(high) if math.isfinite(high) else None
    curves = [_poisson((p, y, a), guess, limits) for p, y, a, guess in zip(*columns, guesses, strict=True)]
    return curves, _poisson_minimum


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


def _poisson_minimum(
    totals: tuple[Fraction, Fraction, Fraction], left: Fraction | None, right: Fraction | None
) -> Fraction:
    """A lower bound of ``w v - f log v + c`` between two ends: its minimum is at the weighted mean ``f / w``."""
    w, f, c = totals
    v = f / w
    if left is not None:
        v = max(v, left)
    if right is not None:
        v = min(v, right)
    return w * v + c - (f * log_bracket(v)[1] if f else 0)
