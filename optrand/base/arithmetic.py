"""Rational brackets of exp and log, and the rational ratio that makes privacy exact.

``decimal`` rounds ``exp`` and ``ln`` correctly (half even), so neighbours of its answer are proven bounds.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import InvalidInput

__all__ = [
    "Integers",
    "common_scale",
    "exp_bracket",
    "float_above",
    "float_below",
    "log_above",
    "log_bracket",
    "places",
    "privacy_ratio",
    "quotient",
    "quotients",
    "scaled",
]

Integers = NDArray[np.object_]
"""Array of Python integers, which do not overflow."""

DIGITS = 60
"""Significant decimal digits of the brackets."""

SHORTFALL_BITS = 50
"""``exp(epsilon) - R`` is at most ``2**-50`` of ``exp(epsilon) - 1``."""


def _context(digits: int) -> decimal.Context:
    return decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def _decimal_neighbours(value: decimal.Decimal, context: decimal.Context) -> tuple[Fraction, Fraction]:
    """Numbers one unit in the last place below and above a correctly rounded ``value``."""
    return Fraction(context.next_minus(value)), Fraction(context.next_plus(value))


@lru_cache(maxsize=256)
def exp_bracket(x: float, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Rationals ``low < exp(x) < high``, ``high / low - 1`` about ``10**(1 - digits)``.

    Examples
    --------
    >>> low, high = exp_bracket(1.0)
    >>> low < high, float(low)
    (True, 2.718281828459045)
    """
    context = _context(digits)
    return _decimal_neighbours(context.exp(decimal.Decimal(x)), context)


def log_bracket(x: Fraction, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Rationals ``low <= log(x) <= high`` for a rational ``x > 0``.

    Examples
    --------
    >>> low, high = log_bracket(Fraction(2))
    >>> low < high, float(low)
    (True, 0.6931471805599453)
    """
    if x <= 0:
        raise InvalidInput("log_bracket needs a positive number")
    if x == 1:
        return Fraction(0), Fraction(0)
    closeness = x.denominator.bit_length() - abs(x.numerator - x.denominator).bit_length()
    context = _context(digits + max(0, closeness))
    low, high = Fraction(0), Fraction(0)
    if x.numerator != 1:
        low, high = _decimal_neighbours(context.ln(decimal.Decimal(x.numerator)), context)
    if x.denominator != 1:
        below, above = _decimal_neighbours(context.ln(decimal.Decimal(x.denominator)), context)
        low, high = low - above, high - below
    return low, high


def float_below(x: Fraction) -> float:
    """Largest float that is at most ``x``."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.nextafter(math.inf, 0) if x > 0 else -math.inf
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)


def float_above(x: Fraction) -> float:
    """Smallest float that is at least ``x``; 0 without a sign."""
    return 0.0 - float_below(-x)


def log_above(x: Fraction) -> float:
    """Smallest float that provably is at least ``log(x)``, for a rational ``x >= 1``.

    Examples
    --------
    >>> log_above(privacy_ratio(1.0))
    1.0
    """
    return float_above(log_bracket(x)[1])


@lru_cache(maxsize=256)
def privacy_ratio(epsilon: float) -> Fraction:
    """Rational ratio ``R <= exp(epsilon)`` of mechanisms, less by at most ``2**-50`` of ``exp(epsilon) - 1``.

    Rounded *down*, so that the mechanism is epsilon-DP in exact arithmetic: ``1 + q * 2**s`` with an integer ``q`` of
    52 to 54 bits. `epsilon` is in nats, above 0.

    Examples
    --------
    >>> ratio = privacy_ratio(1.0)
    >>> low, high = exp_bracket(1.0)
    >>> ratio < low, (high - ratio) * 2**50 <= high - 1
    (True, True)
    """
    low = exp_bracket(epsilon, DIGITS if epsilon > 1e-9 else 400)[0] - 1
    bits = low.numerator.bit_length() - low.denominator.bit_length()
    step = Fraction(2) ** (bits - SHORTFALL_BITS - 3)
    return 1 + math.floor(low / step) * step


def common_scale(numbers: Iterable[float]) -> int:
    """Smallest ``2**s`` that turns every given float into an integer when multiplied by it."""
    return max((float(x).as_integer_ratio()[1] for x in numbers), default=1)


MANTISSA = 53
"""Binary digits of a float."""


def places(numbers: Floats) -> int:
    """Smallest ``e >= 0`` for which ``numbers * 2**e`` are integers.

    Examples
    --------
    >>> places(np.array([3.0, 0.5, -0.375]))
    3
    """
    odd, exponents = _split(numbers)
    return max(0, -int(exponents.min(initial=0, where=odd != 0)))


def scaled(numbers: Floats, digits: int) -> list[int]:
    """Integers ``numbers * 2**digits``, for at least as many digits as :func:`places` counts.

    Examples
    --------
    >>> scaled(np.array([3.0, 0.5, -0.375]), 3)
    [24, 4, -3]
    """
    odd, exponents = _split(numbers)
    shifts = np.where(odd == 0, 0, exponents + digits)
    return [integer << shift for integer, shift in zip(odd.tolist(), shifts.tolist(), strict=True)]


def quotient(numerator: int, denominator: int) -> float:
    """Float nearest to ``numerator / denominator``, infinite beyond the range of floats."""
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if (numerator > 0) == (denominator > 0) else -float("inf")


def quotients(numerators: Iterable[int], denominator: int) -> Floats:
    """Floats nearest to integers over one denominator."""
    return np.array([quotient(numerator, denominator) for numerator in numerators])


def _split(numbers: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Odd integers, or 0, and exponents of two whose products are the numbers."""
    fractions, exponents = np.frexp(numbers)
    integers = np.ldexp(fractions, MANTISSA).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1].astype(np.int64) - 1
    zeros = np.maximum(lowest, 0)
    return integers >> zeros, exponents.astype(np.int64) - MANTISSA + zeros
