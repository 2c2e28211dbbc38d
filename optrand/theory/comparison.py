"""Comparisons: one number is at most another, or they are equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = ["Comparison", "Number", "at_most", "equal", "none", "worst"]

Number = int | float | Fraction


@dataclass(frozen=True)
class Comparison:
    """Two sides, claimed `alike`, or the left one at most the right one; numbers without a float are compared exactly.

    Floats are forgiven a `tolerance`, a share of the larger side or of `scale`: of sides near zero, the size of the
    numbers that they are differences of. The worst of several may be `beside_floats`: some of them were not exact.
    """

    left: Number
    right: Number
    alike: bool = False
    tolerance: float = 0.0
    scale: Number = 0
    beside_floats: bool = False

    @property
    def exact(self) -> bool:
        """Whether no float and no tolerance is involved."""
        floats = isinstance(self.left, float) or isinstance(self.right, float)
        return not (self.tolerance or floats or self.beside_floats)

    @property
    def margin(self) -> float:
        """Distance of the claim from failing, as a share of the larger side; for equality, minus the difference."""
        if self.left == self.right:
            return 0.0
        if self.left != self.left or self.right != self.right:
            return -math.inf
        if math.inf in (abs(self.left), abs(self.right)):
            room = 1.0 if self.left < self.right else -1.0
        else:
            left, right = Fraction(self.left), Fraction(self.right)
            room = float((right - left) / max(abs(left), abs(right), Fraction(self.scale)))
        return -abs(room) if self.alike else room

    @property
    def holds(self) -> bool:
        """Whether what is claimed is true."""
        if not self.tolerance:
            return self.left == self.right if self.alike else self.left <= self.right
        return self.margin >= -self.tolerance


def at_most(left: Number, right: Number, *, tolerance: float = 0.0) -> Comparison:
    """The claim that the left side is at most the right one."""
    return Comparison(left, right, tolerance=tolerance)


def equal(left: Number, right: Number, *, tolerance: float = 0.0, scale: Number = 0) -> Comparison:
    """The claim that two sides are equal, up to a share of the larger one or of `scale`."""
    return Comparison(left, right, alike=True, tolerance=tolerance, scale=scale)


def none(found: int) -> Comparison:
    """The claim that nothing was found of what is claimed not to exist."""
    return Comparison(found, 0)


def worst(*comparisons: Comparison) -> Comparison:
    """Of several things that a claim says of one instance, the one that fails, or comes nearest to it."""
    least = min(comparisons, key=lambda each: (each.holds, each.margin + each.tolerance))
    return replace(least, beside_floats=not all(each.exact for each in comparisons))
