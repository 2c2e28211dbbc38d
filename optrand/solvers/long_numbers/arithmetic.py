"""Integers over a power of two in numpy's arrays of objects, and symmetric systems of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arithmetic", "Long", "longest", "scaled"]

Long = NDArray[np.object_]
"""Integers over ``2**bits``."""


@dataclass(frozen=True)
class Arithmetic:
    """Numbers with so many bits after the point; all operations round down.

    Examples
    --------
    >>> numbers = Arithmetic(100)
    >>> third = numbers.long(Fraction(1, 3))
    >>> numbers.product(third, 3 * numbers.one) == numbers.one - 1
    True
    """

    bits: int

    @property
    def one(self) -> int:
        """The number 1."""
        return 1 << self.bits

    def long(self, number: Fraction) -> int:
        """A rational in this arithmetic."""
        return (number.numerator << self.bits) // number.denominator

    def longs(self, numbers: Iterable[Fraction]) -> Long:
        """Rationals in this arithmetic."""
        found = [self.long(x) for x in numbers]
        array: Long = np.empty(len(found), dtype=object)
        array[:] = found
        return array

    def rational(self, number: int) -> Fraction:
        """The number itself."""
        return Fraction(number, self.one)

    def product(self, *factors: Any) -> Any:
        """Product of numbers or arrays."""
        first, *rest = factors
        for factor in rest:
            first = (first * factor) >> self.bits
        return first

    def quotient(self, above: Any, below: Any) -> Any:
        """Quotient of numbers or arrays."""
        return (above << self.bits) // below

    def factored(self, matrix: Long) -> tuple[Long, Long]:
        """Unit lower triangle and diagonal of a symmetric, positive matrix."""
        matrix = matrix.copy()
        for at in range(matrix.shape[0]):
            if matrix[at, at] <= 0:
                # An unknown that rounding has left without curvature stays where it is.
                matrix[at, at] = self.one**4
            below = self.quotient(matrix[at + 1 :, at], matrix[at, at])
            matrix[at + 1 :, at + 1 :] -= self.product(below[:, np.newaxis], matrix[at, at + 1 :])
            matrix[at + 1 :, at] = below
        return np.tril(matrix, -1), matrix.diagonal().copy()

    def substituted(self, factors: tuple[Long, Long], right: Long) -> Long:
        """Solution of the system whose factors these are."""
        lower, diagonal = factors
        found: Long = right.copy()
        for at in range(found.size - 1):
            found[at + 1 :] -= self.product(lower[at + 1 :, at], found[at])
        found = self.quotient(found, diagonal)
        for at in range(found.size - 1, 0, -1):
            found[:at] -= self.product(lower[at, :at], found[at])
        return found


def longest(amounts: Long, changes: Long) -> float:
    """Length of the longest step that leaves all amounts positive."""
    pairs = zip(amounts.tolist(), changes.tolist(), strict=True)
    falling = [(a, -b) for a, b in pairs if b < 0]
    lengths = [a / b for a, b in falling if a.bit_length() - b.bit_length() < 1000]
    return min(lengths, default=math.inf)


def scaled(amounts: Long, share: float) -> Long:
    """Amounts times a float."""
    above, below = share.as_integer_ratio()
    changed: Long = (amounts * above) >> (below.bit_length() - 1)
    return changed
