"""Decimal numerals: read those that people write, and write bounds that rounding keeps true.

A numeral has digits, a point and perhaps an exponent. ``1_000``, ``nan`` and ``infinity`` are refused. Bounds are
rounded in a stated direction, lower ones down and upper ones up.
"""

from __future__ import annotations

import decimal
import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction

from optrand.base._arithmetic import quotient
from optrand.errors import InvalidInput

_DECIMAL = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?\s*")


def read_decimal(text: str, where: str) -> Fraction:
    """Return the exact value of a decimal. Errors name it by `where` and never repeat the text of a file.

    Examples
    --------
    >>> read_decimal("-2.5e-1", "the step")
    Fraction(-1, 4)
    """
    if _DECIMAL.fullmatch(text) is None:
        if text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise InvalidInput(f"{where} is beyond the range of floats, expected a finite number")
        raise InvalidInput(f"{where} is not a number: expected something like 7, -0.5 or 1e3")
    value = Decimal(text)
    # Beyond these exponents lie no floats, or no relevant ones: refuse them before their power of ten is computed.
    if not -400 <= value.adjusted() <= 307:
        raise InvalidInput(f"{where} is beyond the range of floats, expected a finite number")
    return Fraction(value)


def read_number(text: str, name: str, expected: str) -> float:
    """Return the float nearest to a public decimal, which errors repeat together with the `expected` form."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{name} is {text!r}, expected {expected}")
    return value


def read_whole(text: str) -> int | None:
    """Return the integer that a text denotes, or None if it denotes no integer of a useful size."""
    is_whole = text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if is_whole else None


def format_below(x: float | Fraction, digits: int | None = None) -> str:
    """Return the largest numeral of `digits` significant digits that is at most `x`, as ``format(x, ".3g")`` writes it.

    Without `digits`, the shortest numeral that reads back as `x`, or as the float nearest to it, among those at or
    below it.

    Examples
    --------
    >>> format_below(2 / 3, 3), format_below(-2 / 3, 3), format_below(1e9, 3)
    ('0.666', '-0.667', '1e+09')
    >>> format_below(0.1), format_below(0.3), format_below(Fraction(3, 10))
    ('0.1', '0.29999999999999998', '0.3')
    """
    return _format(x, digits, decimal.ROUND_FLOOR)


def format_above(x: float | Fraction, digits: int | None = None) -> str:
    """Return the smallest numeral of `digits` significant digits that is at least `x`, as :func:`format_below`.

    Examples
    --------
    >>> [format_above(x, 3) for x in (2 / 3, -2 / 3, 0.0, 0.4, Fraction(2, 5))]
    ['0.667', '-0.666', '0', '0.401', '0.4']
    >>> format_above(1.0), format_above(0.1), format_above(0.3)
    ('1', '0.10000000000000001', '0.3')
    """
    return _format(x, digits, decimal.ROUND_CEILING)


def format_closely(x: float | Fraction, digits: int) -> str:
    """Return the numeral of :func:`format_above`, with six more digits if `x` is up to a millionth above a shorter one.

    So the rounding of a float does not add a unit to the last digit.

    Examples
    --------
    >>> format_closely(0.4, 3), format_closely(Fraction(2, 5), 3), format_closely(0.4001, 3)
    ('0.400000001', '0.4', '0.401')
    """
    if not math.isfinite(x):
        return format_above(x, digits)
    excess = Fraction(x) - Fraction(format_below(x, digits))
    return format_above(x, digits + 6 if 0 < excess <= abs(Fraction(x)) / 10**6 else digits)


def format_spent(epsilon: float, target: float) -> str:
    """Return the realised budget rounded up, or in the numeral of the requested one if the two are equal floats.

    The float 0.1 is a little above 1/10, so a mechanism of that budget that spends all of it spends 0.1.

    Examples
    --------
    >>> format_spent(0.1, 0.1), format_spent(0.1, 0.2), format_spent(1.0, 1.0)
    ('0.1', '0.10000000000000001', '1.0')
    """
    return repr(target) if epsilon == target else format_above(epsilon)


def _format(given: float | Fraction, digits: int | None, rounding: str) -> str:
    if isinstance(given, Fraction):
        exact = given
    elif given == 0 or not math.isfinite(given):
        return f"{given + 0.0:g}"
    else:
        exact = Fraction(given)
    if not exact:
        return "0"
    if digits is None:
        nearest = quotient(exact.numerator, exact.denominator)
        # Numerals approach the number from one side, until they read back as the nearest float.
        candidates = (_format(exact, count, rounding) for count in itertools.count(1))
        return next(numeral for numeral in candidates if float(numeral) == nearest)
    context = decimal.Context(prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    return _write(context.divide(decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)), digits)


def _write(number: decimal.Decimal, digits: int) -> str:
    """Return the text that ``format(float, f".{digits}g")`` would write of a number that is not zero."""
    exponent = number.adjusted()
    if -4 <= exponent < digits:
        return _trim(f"{number:f}")
    sign, figures, _ = number.as_tuple()
    mantissa = decimal.Decimal((sign, figures, 1 - len(figures)))
    return f"{_trim(f'{mantissa:f}')}e{exponent:+03d}"


def _trim(numeral: str) -> str:
    return numeral.rstrip("0").rstrip(".") if "." in numeral else numeral
