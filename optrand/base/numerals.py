"""Numbers as they are shown: decimal numerals that are rounded in a stated direction, never to the nearest.

What a certificate states is a bound, and a bound whose numeral is rounded to the nearest may be false. A lower bound is
shown by a numeral at or below it; an upper bound, a gap, a bias or a realised epsilon by one at or above it.
"""

from __future__ import annotations

import decimal
import itertools
import math

__all__ = ["shown_above", "shown_below", "shown_spent"]


def shown_below(x: float, digits: int | None = None) -> str:
    """The largest numeral of so many significant digits that is at most `x`.

    Parameters
    ----------
    x : float
    digits : int, optional
        At least 1. Without it, the shortest numeral that reads back as `x`, among those at or below it.

    Returns
    -------
    str
        In the look of ``format(x, ".3g")``: no zeros at its end, an exponent where numbers are large or tiny.

    Examples
    --------
    >>> shown_below(2 / 3, 3), shown_below(-2 / 3, 3), shown_below(1e9, 3)
    ('0.666', '-0.667', '1e+09')
    >>> shown_below(0.1), shown_below(0.3)
    ('0.1', '0.29999999999999998')
    """
    return _shown(float(x), digits, decimal.ROUND_FLOOR)


def shown_above(x: float, digits: int | None = None) -> str:
    """The smallest numeral of so many significant digits that is at least `x`.

    Parameters
    ----------
    x, digits
        As in :func:`shown_below`.

    Returns
    -------
    str

    Examples
    --------
    >>> shown_above(2 / 3, 3), shown_above(-2 / 3, 3), shown_above(0.1, 1), shown_above(0.0, 3)
    ('0.667', '-0.666', '0.2', '0')
    >>> shown_above(1.0), shown_above(0.1), shown_above(0.3)
    ('1', '0.10000000000000001', '0.3')
    """
    return _shown(float(x), digits, decimal.ROUND_CEILING)


def shown_spent(epsilon: float, target: float) -> str:
    """A realised budget, rounded up; but if it is the one that was asked for, by the name that this one has.

    The float 0.1 is a little above 1/10, and a mechanism that was asked for it and spends all of it spends 0.1.

    Examples
    --------
    >>> shown_spent(0.1, 0.1), shown_spent(0.1, 0.2), shown_spent(1.0, 1.0), shown_spent(0.95, 1.0)
    ('0.1', '0.10000000000000001', '1.0', '0.95')
    """
    return repr(target) if epsilon == target else shown_above(epsilon)


def _shown(x: float, digits: int | None, rounding: str) -> str:
    if x == 0 or not math.isfinite(x):
        return f"{x + 0.0:g}"
    if digits is None:
        # Numerals of 17 digits are so dense, or nearly, that both neighbours of a float read back as it.
        candidates = (_shown(x, count, rounding) for count in itertools.count(1))
        return next(numeral for numeral in candidates if float(numeral) == x)
    context = decimal.Context(prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    # A Decimal holds every float exactly; only this sum with zero rounds.
    return _written(context.plus(decimal.Decimal(x)), digits)


def _written(number: decimal.Decimal, digits: int) -> str:
    """Text that ``format(float, f".{digits}g")`` would write of a number that is not zero."""
    exponent = number.adjusted()
    if -4 <= exponent < digits:
        return _trimmed(f"{number:f}")
    sign, figures, _ = number.as_tuple()
    mantissa = decimal.Decimal((sign, figures, 1 - len(figures)))
    return f"{_trimmed(f'{mantissa:f}')}e{exponent:+03d}"


def _trimmed(numeral: str) -> str:
    return numeral.rstrip("0").rstrip(".") if "." in numeral else numeral
