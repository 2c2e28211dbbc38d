"""Convex curves in ball arithmetic: the reduced cost of a label as a function of the output, for each smooth loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flint import arb

Curve = tuple[arb, arb, arb]
"""Three coefficients of a convex function of an output, as a :class:`Form` reads them."""

Place = tuple[arb, arb]
"""Value of a curve at a place, and a number with the sign of its slope there."""

Enclosure = tuple[arb, arb]
"""A lower and an upper bound."""

ZERO = arb(0)
INFINITY = arb("inf")


class Form(NamedTuple):
    """Operations on convex curves of one kind.

    Attributes
    ----------
    at : callable
        Value at a place, and a number with the sign of the slope there. The logarithm of the place may be given.
    depth : callable
        Upper bound of how far the curve falls below zero anywhere.
    roots : callable
        About where the curve is negative; None if it is so nowhere, or hardly.
    least : callable
        Lower bound of the curve between two places, which is attained or nearly so.
    """

    at: Callable[[Curve, arb, arb | None], tuple[arb, arb]]
    depth: Callable[[Curve], arb]
    roots: Callable[[Curve], Enclosure | None]
    least: Callable[[Curve, arb, arb], arb]


def _parabola_at(curve: Curve, x: arb, _log: arb | None) -> Place:
    """Return ``a x^2 - 2 b x + c``."""
    a, b, c = curve
    slope = a * x - b
    return (slope - b) * x + c, slope


def _parabola_depth(curve: Curve) -> arb:
    a, b, c = curve
    # A parabola is least at b / a. A line falls without limit unless it is level.
    if a > 0:
        return b * b / a - c
    return -c if b == 0 else INFINITY


def _parabola_roots(curve: Curve) -> Enclosure | None:
    a, b, c = curve
    if a == 0:
        return _line_roots(-b - b, c)
    square = b * b - a * c
    if not square > ZERO:
        return None
    root = square.sqrt()
    return (b - root) / a, (b + root) / a


def _line_roots(slope: arb, c: arb) -> Enclosure | None:
    if slope == 0:
        return (-INFINITY, INFINITY) if c < 0 else None
    return (-INFINITY, -c / slope) if slope > 0 else (-c / slope, INFINITY)


def _parabola_least(curve: Curve, left: arb, right: arb) -> arb:
    a, b, c = curve
    middle = b / a
    if middle <= left:
        return _parabola_at(curve, left, None)[0]
    if middle >= right:
        return _parabola_at(curve, right, None)[0]
    return c - b * middle


def _poisson_at(curve: Curve, x: arb, log: arb | None) -> Place:
    """Return ``b x - d log x + c``."""
    d, b, c = curve
    t = b * x
    return t + c if d == 0 else t + c - d * (x.log() if log is None else log), t - d


def _poisson_depth(curve: Curve) -> arb:
    d, b, c = curve
    # Least at d / b if both are positive; without a logarithm a line over positive outputs.
    if d > 0:
        return d * (d / b).log() - d - c if b > 0 else INFINITY
    return -c if b >= 0 else INFINITY


def _poisson_roots(curve: Curve) -> Enclosure | None:
    """Return roots by both branches of Lambert's W, for ``b >= 0``, as it is off a grid."""
    d, b, c = curve
    if d == 0:
        return _line_roots(b, c)
    if not _poisson_depth(curve) > 0:
        return None
    # With w = -b x / d the equation is w exp(w) = -b / d exp(c / d). The principal branch is the smaller root.
    argument, unit = -b / d * (c / d).exp(), -d / b
    return unit * argument.lambertw(), unit * argument.lambertw(-1)


def _poisson_least(curve: Curve, left: arb, right: arb) -> arb:
    d, b, c = curve
    if b * left >= d:
        return _poisson_at(curve, left, None)[0]
    if b * right <= d:
        return _poisson_at(curve, right, None)[0]
    return d + c - d * (d / b).log()


def _line_at(curve: Curve, x: arb, _log: arb | None) -> Place:
    return curve[1] * x + curve[2], curve[1]


PARABOLA = Form(_parabola_at, _parabola_depth, _parabola_roots, _parabola_least)
POISSON = Form(_poisson_at, _poisson_depth, _poisson_roots, _poisson_least)
FORMS = {"squared": PARABOLA, "absolute": PARABOLA._replace(at=_line_at), "poisson_log": POISSON}
