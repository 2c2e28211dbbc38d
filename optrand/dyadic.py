"""Floats as integers: a vector of floats is a vector of integers, divided by one power of two.

Sums and products of such vectors are exact in Python's integers, without the common divisors that fractions look for
at every step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.validation import Floats

__all__ = ["places", "quotient", "scaled"]

MANTISSA = 53
"""Binary digits of a float."""


def places(numbers: Floats) -> int:
    """The smallest ``e >= 0`` for which ``numbers * 2**e`` are integers.

    Examples
    --------
    >>> places(np.array([3.0, 0.5, -0.375]))
    3
    """
    odd, exponents = _split(numbers)
    return max(0, -int(exponents.min(initial=0, where=odd != 0)))


def scaled(numbers: Floats, digits: int) -> list[int]:
    """The integers ``numbers * 2**digits``, for at least as many digits as :func:`places` counts.

    Examples
    --------
    >>> scaled(np.array([3.0, 0.5, -0.375]), 3)
    [24, 4, -3]
    """
    odd, exponents = _split(numbers)
    shifts = np.where(odd == 0, 0, exponents + digits)
    return [integer << shift for integer, shift in zip(odd.tolist(), shifts.tolist(), strict=True)]


def quotient(numerator: int, denominator: int) -> float:
    """The float nearest to ``numerator / denominator``, infinite beyond the range of floats."""
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if (numerator > 0) == (denominator > 0) else -float("inf")


def _split(numbers: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Odd integers, or 0, and exponents of two whose products are the numbers."""
    fractions, exponents = np.frexp(numbers)
    integers = np.ldexp(fractions, MANTISSA).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1].astype(np.int64) - 1
    zeros = np.maximum(lowest, 0)
    return integers >> zeros, exponents.astype(np.int64) - MANTISSA + zeros
