"""Numbers as people write them: digits, a point, perhaps an exponent; not ``1_000``, ``nan`` or ``infinity``."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

from optrand.errors import InvalidInput

__all__ = ["decimal", "number", "whole"]

LARGEST_EXPONENT, SMALLEST_EXPONENT = 307, -400
"""Beyond these exponents lie no floats, or no relevant ones. They are refused before their power of ten is computed."""

_DECIMAL = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?\s*")
_WHOLE = re.compile(r"[0-9]{1,9}")


def decimal(text: str, where: str) -> Fraction:
    """Return the exact value of a decimal. Errors name it by `where` and never repeat the text of a file.

    Raises
    ------
    InvalidInput
        Text of another form, or a number beyond the range of floats.

    Examples
    --------
    >>> decimal("-2.5e-1", "the step")
    Fraction(-1, 4)
    """
    if _DECIMAL.fullmatch(text) is None:
        if text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise InvalidInput(f"{where} is beyond the range of floats, expected a finite number")
        raise InvalidInput(f"{where} is not a number: expected something like 7, -0.5 or 1e3")
    value = Decimal(text)
    if not SMALLEST_EXPONENT <= value.adjusted() <= LARGEST_EXPONENT:
        raise InvalidInput(f"{where} is beyond the range of floats, expected a finite number")
    return Fraction(value)


def number(text: str, name: str, expected: str) -> float:
    """Return the float nearest to a decimal, which is public: errors repeat it.

    Raises
    ------
    InvalidInput
        Text of another form, or a number beyond the range of floats: not `expected`.

    Examples
    --------
    >>> number("0.1", "--epsilon", "a number above 0 (nats)")
    0.1
    """
    value = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{name} is {text!r}, expected {expected}")
    return value


def whole(text: str) -> int | None:
    """Return the integer that a text denotes, or None if it denotes no integer of a useful size.

    Examples
    --------
    >>> whole("416"), whole("4e2"), whole("-1")
    (416, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None
