"""Logarithms of binary fractions in integers, rounded up, each computed once."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from fractions import Fraction

from optrand.base.arithmetic import log_bracket

__all__ = ["WIDTH", "Logarithms", "logarithms_below"]

WIDTH = 2
"""Bound of the error of a rounded logarithm, in units."""


class Logarithms:
    """``log(v / 2**line)`` of integers `v`, rounded up, in units of ``2**-bits``.

    Notes
    -----
    Two logarithms that :mod:`decimal` rounds correctly are subtracted. Both are below ``10**5`` and have ``places + 6``
    digits, so cutting them off after `places` leaves at most two units of ``10**-places`` each, which are added; they
    are a small part of one unit of ``2**-bits``.

    Examples
    --------
    >>> logarithms = Logarithms(line=1, bits=20)
    >>> logarithms.above(2), logarithms.above(4) / 2**20 - math.log(2) < WIDTH / 2**20
    (1, True)
    """

    def __init__(self, line: int, bits: int) -> None:
        self._bits, self._known = bits, dict[int, int]()
        self._places = math.ceil(bits * math.log10(2)) + 6
        self._context = decimal.Context(
            prec=self._places + 6, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
        )
        self._unit = 10**self._places
        self._offset = self._natural(1 << line)

    def above(self, v: int) -> int:
        """Upper bound of ``log(v / 2**line)``, by less than :data:`WIDTH` units; `v` is positive."""
        if v not in self._known:
            logarithm = self._natural(v) - self._offset + 4
            self._known[v] = (logarithm << self._bits) // self._unit + 1
        return self._known[v]

    def _natural(self, v: int) -> int:
        return int(self._context.ln(decimal.Decimal(v)).scaleb(self._places, self._context))


def logarithms_below(numbers: Iterable[Fraction], bits: int) -> list[int]:
    """Lower bound of the logarithm of each positive rational, in units of ``2**-bits``, by less than two units.

    With weights that are not negative, an expected loss ``v - y log v`` is so rounded up.

    Examples
    --------
    >>> logarithms_below([Fraction(1), Fraction(1, 3)], 20)
    [0, -1151979]
    """
    digits = math.ceil(bits * math.log10(2)) + 10
    return [math.floor(log_bracket(v, digits)[0] * (1 << bits)) for v in numbers]
