"""Proof of privacy of an integer table, without rounding.

Rows of positive integers with one total are distributions; if no column holds a ratio above a rational ``R``, and ``R``
is proven to be at most ``exp(epsilon)``, the table is epsilon-DP.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import DIGITS, Integers, exp_bracket
from optrand.base.strict_json import MAX_DIGITS
from optrand.errors import InvalidInput

__all__ = ["LARGEST", "checked_integers", "verified_ratio", "verified_total"]

LARGEST = 10**MAX_DIGITS
"""Limit that no integer of a mechanism may reach, so that every mechanism can be saved."""


def checked_integers(given: ArrayLike, k: int, n: int) -> Integers:
    """Read-only ``(k, n)`` copy in Python integers, or :class:`InvalidInput`."""
    array = given if isinstance(given, np.ndarray) else np.array(given, dtype=object)
    if array.shape != (k, n):
        raise InvalidInput(
            f"weights has shape {array.shape}, expected ({k}, {n}): one row per label, one column per output"
        )
    integers = array.dtype.kind in "iu" or (array.dtype == object and all(type(weight) is int for weight in array.flat))
    if not integers:
        raise InvalidInput("weights must be Python integers (or an integer array): floats and booleans are not exact")
    copy = array.astype(object)
    copy.flags.writeable = False
    return copy


def verified_total(weights: Integers, ratio: Fraction) -> int:
    """Common total of the rows of a (k, n) table of integers whose columns are proven to keep within `ratio`.

    All in integers: ``max * denominator <= min * numerator`` for each column, the definition of epsilon-DP with
    ``exp(epsilon) = ratio``. Cost ``O(n k)``.

    Raises
    ------
    InvalidInput
        A weight below 1, rows with different totals, or a column in which ``max > ratio * min``. A column of zeros is
        refused as well: an output that never occurs is no output.

    Examples
    --------
    >>> verified_total(np.array([[2, 1], [1, 2]], dtype=object), Fraction(2))
    3
    >>> verified_total(np.array([[2, 1], [1, 2]], dtype=object), Fraction(19, 10))
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: 2 column(s) of weights break the ratio 19/10, the first at output 0: the
    mechanism would not be private
    """
    smallest = weights.min(axis=0)
    if (smallest < 1).any():
        raise InvalidInput(_explain_small_weights(weights))
    totals = weights.sum(axis=1)
    if (totals != totals[0]).any():
        row = int(np.flatnonzero(totals != totals[0])[0])
        raise InvalidInput(f"row {row} of weights has another total than row 0, expected one total for all rows")
    broken = weights.max(axis=0) * ratio.denominator > smallest * ratio.numerator
    if broken.any():
        raise InvalidInput(
            f"{int(broken.sum())} column(s) of weights break the ratio {_shown(ratio)}, the first at output "
            f"{int(np.flatnonzero(broken)[0])}: the mechanism would not be private"
        )
    return int(totals[0])


def _explain_small_weights(weights: Integers) -> str:
    if (weights < 0).any():
        y, i = (int(index[0]) for index in np.nonzero(weights < 0))
        return f"weights[{y}, {i}] is negative, expected integers above 0"
    unused = (weights == 0).all(axis=0)
    if unused.any():
        return (
            f"{int(unused.sum())} column(s) of weights are all zero, the first at output "
            f"{int(np.flatnonzero(unused)[0])}: leave out outputs that never occur"
        )
    y, i = (int(index[0]) for index in np.nonzero(weights == 0))
    return f"weights[{y}, {i}] is 0 where another label's weight is not: the mechanism would not be private"


def _shown(ratio: Fraction) -> str:
    """Ratio in a message: itself if it is short."""
    if ratio.numerator < 10**6:
        return str(ratio)
    return f"(about {float(ratio):.6g})" if ratio < 10**308 else "(beyond 1e308)"


def verified_ratio(ratio: Fraction, epsilon: float) -> Fraction:
    """Return `ratio`, proven to lie above 1 and below ``exp(epsilon)``.

    The exponential of a rational other than 0 is irrational, so brackets of growing precision always decide.

    Raises
    ------
    InvalidInput
        A ratio outside that range.

    Examples
    --------
    >>> verified_ratio(Fraction(19, 7), 1.0)
    Fraction(19, 7)
    >>> verified_ratio(Fraction(193, 71), 1.0)
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: ratio is 193/71, expected at most exp(epsilon) at epsilon = 1.0: take
    optrand.base.arithmetic.privacy_ratio(epsilon)
    """
    if not isinstance(ratio, Fraction):
        raise InvalidInput(f"ratio is of type {type(ratio).__name__}, expected a fractions.Fraction")
    if ratio <= 1:
        raise InvalidInput(f"ratio is {_shown(ratio)}, expected more than 1")
    if ratio.numerator >= LARGEST:
        raise InvalidInput(f"ratio has more than {MAX_DIGITS} digits, expected a simpler fraction")
    for doubling in itertools.count():
        low, high = exp_bracket(epsilon, DIGITS << doubling)
        if ratio <= low:
            break
        if ratio >= high:
            raise InvalidInput(
                f"ratio is {_shown(ratio)}, expected at most exp(epsilon) at epsilon = {epsilon!r}: "
                "take optrand.base.arithmetic.privacy_ratio(epsilon)"
            )
    return ratio
