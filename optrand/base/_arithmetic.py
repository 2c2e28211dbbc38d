"""Rational brackets of exp and log, and the rational ratio that makes privacy exact.

``decimal`` rounds ``exp`` and ``ln`` correctly (half even), so neighbours of its answer are proven bounds.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats, has_masked_cells
from optrand.errors import InvalidInput

Integers = NDArray[np.object_]
"""Array of Python integers, which do not overflow."""


def exact_integers(given: ArrayLike, name: str, shape: tuple[int, ...] | None = None, means: str = "") -> Integers:
    """Return a read-only copy of an array in Python integers, which keeps no subclass and no mask.

    Raise `InvalidInput` for a masked array, other numbers, or another shape than `shape`, which `means` explains.
    """
    if has_masked_cells(given):
        raise InvalidInput(f"{name} is a masked array, expected integers without a mask: fill or leave out its cells")
    # Unlike asarray, this copies the numbers and leaves the methods of a subclass behind.
    array = np.array(given, dtype=None if isinstance(given, np.ndarray) else object, subok=False)
    if shape is not None and array.shape != shape:
        raise InvalidInput(f"{name} has shape {array.shape}, expected {shape}{means}")
    integers = array.dtype.kind in "iu" or (array.dtype == object and all(type(number) is int for number in array.flat))
    if not integers:
        raise InvalidInput(f"{name} must be Python integers (or an integer array): floats and booleans are not exact")
    copy = array.astype(object)
    copy.flags.writeable = False
    return copy


DIGITS = 60
"""Significant decimal digits of the brackets."""


def _bracket(function: str, x: float | decimal.Decimal, digits: int) -> tuple[Fraction, Fraction]:
    """Return numbers one unit in the last place below and above ``exp`` or ``ln``, which are correctly rounded."""
    context = decimal.Context(digits, decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    value = getattr(context, function)(decimal.Decimal(x))
    return Fraction(context.next_minus(value)), Fraction(context.next_plus(value))


def decimal_value(x: float) -> Fraction:
    """Return the exact value of the shortest decimal that reads back as a float: the number as it was written.

    Examples
    --------
    >>> decimal_value(0.1), Fraction(0.1) == decimal_value(0.1)
    (Fraction(1, 10), False)
    """
    return Fraction(repr(float(x)))


def least_reading(epsilon: float) -> decimal.Decimal:
    """Return a budget, or the shortest decimal that reads back as it, whichever is smaller, exactly.

    A cost of at most this keeps the budget under both readings: as a float, and as the decimal that is charged.
    """
    return min(decimal.Decimal(epsilon), decimal.Decimal(repr(float(epsilon))))


def decimal_below(x: Fraction) -> float:
    """Return the largest float whose :func:`decimal_value` is at most ``x``."""
    found = float_below(x)
    above = math.nextafter(found, math.inf)
    if decimal_value(above) <= x:
        return above
    while decimal_value(found) > x:
        found = math.nextafter(found, -math.inf)
    return found


@lru_cache(maxsize=256)
def exp_bracket(x: float | decimal.Decimal, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Return rationals ``low < exp(x) < high``, ``high / low - 1`` about ``10**(1 - digits)``.

    Examples
    --------
    >>> low, high = exp_bracket(1.0)
    >>> low < high, float(low)
    (True, 2.718281828459045)
    """
    return _bracket("exp", x, digits)


def log_bracket(x: Fraction, digits: int = DIGITS) -> tuple[Fraction, Fraction]:
    """Return rationals ``low <= log(x) <= high`` for a rational ``x > 0``."""
    if x <= 0:
        raise InvalidInput("log_bracket needs a positive number")
    if x == 1:
        return Fraction(0), Fraction(0)
    closeness = x.denominator.bit_length() - abs(x.numerator - x.denominator).bit_length()
    digits += max(0, closeness)
    low, high = _bracket("ln", x.numerator, digits) if x.numerator != 1 else (Fraction(0), Fraction(0))
    below, above = _bracket("ln", x.denominator, digits) if x.denominator != 1 else (Fraction(0), Fraction(0))
    return low - above, high - below


def float_below(x: Fraction) -> float:
    """Return the largest float that is at most ``x``."""
    try:
        nearest = float(x)
    except OverflowError:
        return math.nextafter(math.inf, 0) if x > 0 else -math.inf
    return nearest if Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)


def float_above(x: Fraction) -> float:
    """Return the smallest float that is at least ``x``, 0 without a sign."""
    return 0.0 - float_below(-x)


def log_above(x: Fraction) -> float:
    """Return the smallest float that is at least ``log(x)``, as is its shortest decimal, for a rational ``x >= 1``."""
    return budget_above(log_bracket(x)[1])


def budget_above(x: Fraction) -> float:
    """Return the smallest float that is at least ``x``, and whose :func:`decimal_value` is, too."""
    return max(float_above(x), decimal_above(x))


def decimal_above(x: Fraction) -> float:
    """Return the smallest float whose :func:`decimal_value` is at least ``x``."""
    return -decimal_below(-x)


@lru_cache(maxsize=256)
def privacy_ratio(epsilon: float) -> Fraction:
    """Return the rational ratio of mechanisms, below ``exp(epsilon)`` by at most ``2**-50`` of ``exp(epsilon) - 1``.

    Here `epsilon` is the float or its shortest decimal, whichever is smaller, so that a mechanism of epsilon 0.1 costs
    no more than the tenth that it is charged for. Rounded *down*, so that the mechanism is epsilon-DP in exact
    arithmetic: ``1 + q * 2**s`` with an integer ``q`` of 52 to 54 bits. `epsilon` is in nats, above 0.

    Examples
    --------
    >>> ratio = privacy_ratio(1.0)
    >>> low, high = exp_bracket(1.0)
    >>> ratio < low, (high - ratio) * 2**50 <= high - 1
    (True, True)
    """
    low = exp_bracket(least_reading(epsilon), DIGITS if epsilon > 1e-9 else 400)[0] - 1
    bits = low.numerator.bit_length() - low.denominator.bit_length()
    # `low` is above ``2**(bits - 1)``, so that one step is below ``2**-52`` of it.
    step = Fraction(2) ** (bits - 53)
    return 1 + math.floor(low / step) * step


def is_at_most_exp(x: Fraction | None, power: float | decimal.Decimal) -> bool:
    """Decide whether a rational is at most ``exp(power)``. None stands for infinity.

    The exponential of a rational other than 0 is irrational, so brackets of growing precision always decide.
    """
    if x is None or not power:
        return x is not None and x <= 1
    digits = DIGITS
    while True:
        low, high = exp_bracket(power, digits)
        if not low < x < high:
            return x <= low
        digits *= 2


def check_ratio(ratio: Fraction, epsilon: float) -> None:
    """Check that a ratio is at most ``exp(epsilon)``, in rationals.

    Here `epsilon` is the float or its shortest decimal, whichever is smaller, as in :func:`privacy_ratio`.
    """
    if not is_at_most_exp(ratio, least_reading(epsilon)):
        about = f"(about {float(ratio):.6g})" if ratio < 10**308 else "(beyond 1e308)"
        raise InvalidInput(
            f"a ratio of two weights of one output is {ratio if ratio.numerator < 10**6 else about}, expected at most "
            f"exp(epsilon) at epsilon = {epsilon!r}: the mechanism would not be private"
        )


def divide_budget(epsilon: float, parts: int) -> float:
    """Return the largest float that, spent `parts` times, costs at most `epsilon`, both as :func:`decimal_value`.

    Division in floats may round up, and then all parts together cost more than there is.
    """
    return decimal_below(decimal_value(epsilon) / parts)


def noise_scale(sensitivity: float, epsilon: float) -> float:
    """Return the smallest float that is at least ``sensitivity / epsilon``: less noise would cost more than `epsilon`.

    Here `epsilon` is its :func:`decimal_value`.
    """
    return float_above(Fraction(sensitivity) / decimal_value(epsilon))


def places(numbers: Floats) -> int:
    """Return the smallest ``e >= 0`` for which ``numbers * 2**e`` are integers."""
    odd, exponents = _split(numbers)
    return max(0, -int(exponents.min(initial=0, where=odd != 0)))


def scale_to_integers(numbers: Floats, digits: int) -> list[int]:
    """Return integers ``numbers * 2**digits``, for at least as many digits as :func:`places` counts."""
    odd, exponents = _split(numbers)
    shifts = np.where(odd == 0, 0, exponents + digits)
    return [integer << shift for integer, shift in zip(odd.tolist(), shifts.tolist(), strict=True)]


def add_exactly(numbers: Floats, other: float) -> tuple[Floats, Floats]:
    """Return the nearest floats to some sums, and the errors of these, exactly (Knuth, TAOCP 4.2.2, Theorem B)."""
    sums = numbers + other
    moved = sums - numbers
    rests: Floats = (numbers - (sums - moved)) + (other - moved)
    return sums, rests


def quotient(numerator: int, denominator: int) -> float:
    """Return the float nearest to ``numerator / denominator``, infinite beyond the range of floats."""
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if (numerator > 0) == (denominator > 0) else -float("inf")


def _split(numbers: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the odd integers, or 0, and exponents of two whose products are the numbers."""
    mantissa = 53  # binary digits of a float
    fractions, exponents = np.frexp(numbers)
    integers = np.ldexp(fractions, mantissa).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1].astype(np.int64) - 1
    zeros = np.maximum(lowest, 0)
    return integers >> zeros, exponents.astype(np.int64) - mantissa + zeros
