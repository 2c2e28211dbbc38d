"""Exact comparison of the largest ratio of a table with ``exp(epsilon)``."""

from __future__ import annotations

import itertools
from fractions import Fraction

from optrand.base.arithmetic import DIGITS, exp_bracket, least_reading
from optrand.base.strict_json import MAX_DIGITS
from optrand.errors import InvalidInput

__all__ = ["LARGEST", "check_ratio"]

LARGEST = 10**MAX_DIGITS
"""Limit that no integer of a mechanism may reach, so that every mechanism can be saved."""


def _shown(ratio: Fraction) -> str:
    """Return the ratio in a message: itself if it is short."""
    if ratio.numerator < 10**6:
        return str(ratio)
    return f"(about {float(ratio):.6g})" if ratio < 10**308 else "(beyond 1e308)"


def check_ratio(ratio: Fraction, epsilon: float) -> None:
    """Check that a ratio is at most ``exp(epsilon)``, in rationals.

    Here `epsilon` is the float or its shortest decimal, whichever is smaller, as in
    :func:`~optrand.base.arithmetic.privacy_ratio`. The exponential of a rational other than 0 is irrational, so that
    brackets of growing precision always decide.

    Raises
    ------
    InvalidInput
        A larger ratio.

    Examples
    --------
    >>> check_ratio(Fraction(19, 7), 1.0)
    >>> check_ratio(Fraction(193, 71), 1.0)
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: a ratio of two weights of one output is 193/71, expected at most exp(epsilon) at
    epsilon = 1.0: the mechanism would not be private
    """
    for doubling in itertools.count():
        low, high = exp_bracket(least_reading(epsilon), DIGITS << doubling)
        if ratio <= low:
            return
        if ratio >= high:
            raise InvalidInput(
                f"a ratio of two weights of one output is {_shown(ratio)}, expected at most exp(epsilon) at epsilon = "
                f"{epsilon!r}: the mechanism would not be private"
            )
