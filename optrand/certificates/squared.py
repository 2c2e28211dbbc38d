r"""Dual bound for squared loss, in integers.

With :math:`h_y` and :math:`f` as in :mod:`optrand.certificates.certificate`, and places measured from the origin of the
dual, twice :math:`h_y` is the quadratic :math:`p_y v^2 - 2 (p_y y + \beta_y) v + (p_y y^2 - 2 \alpha_y)`, negative
between its roots. Between neighbours of all sorted roots :math:`f` is one quadratic, whose minimum has a closed form;
on a grid it is at a neighbour of the vertex. Rounding (:math:`E` up, roots outward, quotients down) and why the bound
stays true: ``docs/mathematics.md``, section 3.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats
from optrand.certificates.bound import assembled, excess_above, measured, multipliers_below
from optrand.errors import InvalidInput
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["least_price", "local_minima", "lower_bound"]

BITS = 128
"""Binary digits by which roots are finer than the labels' spread over E."""

Quadratic = tuple[int, int, int]
"""Coefficients ``a, b, c`` of ``a v^2 - 2 b v + c``."""


@dataclass(frozen=True)
class _Scaled:
    """Problem and dual in integers.

    Attributes
    ----------
    labels, prior, alpha, beta : list of int
        In units of ``2**-line``, ``2**-mass``, ``2**-(mass + 2 line)`` and ``2**-(mass + line)``.
    origin : int
        That of the dual, in units of ``2**-line``; `labels`, `low` and `high` are measured from it.
    low, high : int or float
        Ends of the allowed outputs, in units of ``2**-line``; floats where they are infinite.
    grid : list of float
        Allowed outputs, unscaled; empty off a grid.
    excess, shift : int
        ``exp(epsilon) - 1`` is at most ``excess / 2**shift``.
    """

    labels: list[int]
    prior: list[int]
    alpha: list[int]
    beta: list[int]
    origin: int
    low: int | float
    high: int | float
    grid: list[float]
    excess: int
    shift: int
    line: int
    mass: int

    @classmethod
    def of(cls, problem: Problem, dual: Dual) -> _Scaled:
        """Scale to units that are fine enough for every number, and for roots that are as good as exact."""
        excess, shift = excess_above(problem.epsilon)
        ends = np.array([x for x in (problem.outputs.low, problem.outputs.high) if math.isfinite(x)])
        origin = np.array([dual.origin])
        spread = float(np.ptp(problem.labels)) or abs(float(problem.labels[0]) - dual.origin) or 1.0
        finer = BITS + max(0, excess.bit_length() - shift) - math.frexp(spread)[1]
        grid = problem.outputs.values if isinstance(problem.outputs, Grid) else ends
        line = max(finer, places(problem.labels), places(grid), places(origin))
        mass = max(places(problem.prior), places(dual.beta) - line, places(dual.alpha) - 2 * line)
        low, high = measured(ends, dual, line) if ends.size else (-math.inf, math.inf)
        return cls(
            labels=measured(problem.labels, dual, line),
            prior=scaled(problem.prior, mass),
            alpha=scaled(dual.alpha, mass + 2 * line),
            beta=scaled(dual.beta, mass + line),
            origin=scaled(origin, line)[0],
            low=low,
            high=high,
            grid=grid.tolist() if grid is not ends else [],
            excess=excess,
            shift=shift,
            line=line,
            mass=mass,
        )

    def place(self, value: float) -> int:
        """Value of the grid in integers, measured from the origin."""
        above, below = value.as_integer_ratio()
        return (above << self.line) // below - self.origin

    def quadratics(self) -> Iterator[Quadratic]:
        """Twice each :math:`h_y`, in units of ``2**-(mass + 2 line)``."""
        for y, p, alpha, beta in zip(self.labels, self.prior, self.alpha, self.beta, strict=True):
            pull = p * y
            yield p, pull + beta, pull * y - 2 * alpha


@dataclass(frozen=True)
class _Sweep:
    """Quadratics that :math:`f` is made of, from left to right.

    Attributes
    ----------
    case : _Scaled
    total : quadratic
        Twice the sum of all :math:`h_y`, in units of ``2**-(mass + 2 line)``.
    curves : list of quadratic
        Twice each :math:`h_y` that is negative somewhere.
    events : list of (root, int)
        The ends of the ranges where they are, increasing, with twice the index of the curve, and 1 more at its end.
    slack : int
        Largest overstatement of :math:`f` by the quadratics, in units of ``2**-(mass + 2 line + shift)``.
    """

    case: _Scaled
    total: Quadratic
    curves: list[Quadratic]
    events: list[tuple[int | float, int]]
    slack: int

    @classmethod
    def of(cls, case: _Scaled) -> _Sweep:
        """One pass over the labels, and a sort of the roots; cost ``O(k log k)``."""
        events, curves = list[tuple[int | float, int]](), list[Quadratic]()
        a, b, c, slack = 0, 0, 0, 0
        for curve in case.quadratics():
            a, b, c = a + curve[0], b + curve[1], c + curve[2]
            found = _roots(*curve)
            if found is None:
                continue
            # Between a root and its rounded place the curve is positive, and yet counted as negative.
            slack += max([0, *(_at(curve, root) for root in found if isinstance(root, int))])
            where = 2 * len(curves)
            events += [(found[0], where), (found[1], where + 1)]
            curves.append(curve)
        events.sort()
        return cls(case, (a, b, c), curves, events, case.excess * slack)

    def pieces(self) -> Iterator[tuple[Quadratic, int | float, int | float]]:
        """Twice :math:`f`, in units of ``2**-(mass + 2 line + shift)``, and both its ends, which belong to it."""
        case, start, none = self.case, self.case.low, True
        a, b, c = (x << case.shift for x in self.total)
        for root, which in self.events:
            end = min(max(root, case.low), case.high)
            # A grid of one value is a piece without length.
            if start < end or (root > case.low and none):
                yield (a, b, c), start, end
                start, none = end, False
            curve, more = self.curves[which >> 1], -case.excess if which & 1 else case.excess
            a, b, c = a + more * curve[0], b + more * curve[1], c + more * curve[2]
        if start < case.high or none:
            yield (a, b, c), start, case.high

    def minima(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Minimisers of the pieces, as quotients in units of ``2**-line``, and their values there, rounded down.

        One a piece; on a grid the values on both sides of its vertex, as far as they belong to it: ``O(k log n)``.
        """
        for piece in self.pieces():
            yield from (self._on_grid(*piece) if self.case.grid else [_minimum(*piece)])

    def _on_grid(self, curve: Quadratic, start: int | float, end: int | float) -> Iterator[tuple[tuple[int, int], int]]:
        grid = self.case.grid
        vertex = min(max(curve[1] // curve[0], start), end)
        after = bisect_right(grid, vertex, key=self.case.place)
        for value in grid[max(after - 1, 0) : after + 1]:
            place = self.case.place(value)
            if start <= place <= end:
                yield (place, 1), _at(curve, place)


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """Bound of :mod:`optrand.certificates.certificate` for squared loss.

    Multipliers must be zero where ``bias_penalty * prior`` is.

    Examples
    --------
    With ``alpha = beta = 0`` the bound is half the variance of the prior, over ``E``:

    >>> from optrand.model.problem import regression
    >>> bound = lower_bound(regression([0, 1], [0.5, 0.5], 1.0), Dual([0.0, 0.0], [0.0, 0.0]))
    >>> float(bound) == 0.125 / math.e
    True
    """
    case = _Scaled.of(problem, dual)
    sweep = _Sweep.of(case)
    least = min(value for _, value in sweep.minima()) - sweep.slack
    digits = case.mass + 2 * case.line + 1
    base = multipliers_below(problem, dual, digits)
    return assembled(base, least, problem.k, excess=(case.excess, case.shift), digits=digits)


def least_price(
    problem: Problem, alpha: Sequence[Fraction], beta: Sequence[Fraction], ratio: Fraction, *, bits: int
) -> Fraction:
    """Lower bound of the minimum of :math:`f` on the line at a rational ratio, for dyadic multipliers.

    Roots are finer than the labels' spread over the ratio by `bits` binary digits.

    Examples
    --------
    >>> from optrand.model.problem import unbiased_regression
    >>> problem = unbiased_regression([0, 1], [0.5, 0.5], math.log(3))
    >>> dual = [Fraction(3, 16), Fraction(-9, 16)], [Fraction(-3, 4), Fraction(3, 4)]
    >>> -Fraction(1, 1 << 90) < least_price(problem, *dual, Fraction(3), bits=100) <= 0
    True
    >>> least_price(problem, [Fraction(1, 4), Fraction(-1, 2)], dual[1], Fraction(3), bits=100) < -1 / 10
    True
    """
    spread = float(np.ptp(problem.labels)) or abs(float(problem.labels[0])) or 1.0
    finer = bits + math.ceil(ratio).bit_length() - math.frexp(spread)[1]
    line = max(finer, places(problem.labels))
    mass = max(places(problem.prior), _digits(beta) - line, _digits(alpha) - 2 * line)
    shift = bits
    case = _Scaled(
        labels=scaled(problem.labels, line),
        prior=scaled(problem.prior, mass),
        alpha=[int(x * (1 << (mass + 2 * line))) for x in alpha],
        beta=[int(x * (1 << (mass + line))) for x in beta],
        origin=0,
        low=-math.inf,
        high=math.inf,
        grid=[],
        excess=math.ceil((ratio - 1) * (1 << shift)),
        shift=shift,
        line=line,
        mass=mass,
    )
    sweep = _Sweep.of(case)
    least = min(value for _, value in sweep.minima()) - sweep.slack
    return Fraction(least, 1 << (mass + 2 * line + shift + 1))


def _digits(numbers: Sequence[Fraction]) -> int:
    """Binary digits after the point of dyadic numbers."""
    if any(x.denominator & (x.denominator - 1) for x in numbers):
        raise InvalidInput("multipliers off a grid must be integers over powers of two")
    return max(x.denominator.bit_length() - 1 for x in numbers)


def local_minima(problem: Problem, dual: Dual) -> tuple[Floats, Floats, float]:
    """Minimum of :math:`f` on every piece between neighbouring roots, for squared loss.

    Returns
    -------
    outputs : (n,) array
        Up to ``2k + 1`` minimisers, not falling, rounded to floats; on a grid up to twice as many of its values.
    costs : (n,) array
        The minima, each rounded to the nearest float.
    slack : float
        Largest overstatement of :math:`f` by the minima.

    Notes
    -----
    Cost ``O(k log k)``, and ``O(k log n)`` on a grid.
    """
    case = _Scaled.of(problem, dual)
    sweep = _Sweep.of(case)
    places_least, least = zip(*sweep.minima(), strict=True)
    outputs = [quotient(above + case.origin * below, below << case.line) for above, below in places_least]
    unit = 1 << (case.mass + 2 * case.line + case.shift + 1)
    limits = max(problem.outputs.low, -np.finfo(float).max), min(problem.outputs.high, np.finfo(float).max)
    costs = np.array([quotient(value, unit) for value in least])
    return np.clip(np.array(outputs), *limits), costs, quotient(sweep.slack, unit)


def _roots(a: int, b: int, c: int) -> tuple[int | float, int | float] | None:
    """Range where ``a v^2 - 2 b v + c``, ``a >= 0``, is negative, rounded outward; None if it is so nowhere."""
    if a:
        square = b * b - a * c
        if square <= 0:
            return None
        root = math.isqrt(square) + 1
        return (b - root) // a, -((-b - root) // a)
    if b == 0:
        return (-math.inf, math.inf) if c < 0 else None
    return (c // (2 * b), math.inf) if b > 0 else (-math.inf, -(-c // (2 * b)))


def _at(curve: Quadratic, v: int) -> int:
    return (curve[0] * v - 2 * curve[1]) * v + curve[2]


def _minimum(curve: Quadratic, start: int | float, end: int | float) -> tuple[tuple[int, int], int]:
    """Minimiser, as a quotient, and minimum, rounded down, between two ends; ``a > 0``."""
    a, b, c = curve
    vertex = b // a
    if start <= vertex < end:
        return (b, a), c - -(-b * b // a)
    # An infinite end is beyond every vertex.
    nearest = int(start if vertex < start else end)
    return (nearest, 1), _at(curve, nearest)
