r"""Excess risk of nearest neighbours where two classes are always as likely, and a third is hardly less so somewhere.

The first two classes have probability :math:`a(x) = \min(1/3 + x, 1/2)` each, for features `x` in the unit interval.
The gap between the two likeliest classes is 0 everywhere, so that the margin condition of [Z25] (Appendix C.1) says
nothing; yet the third class is wrong, and as likely as the others at 0.

Given how many neighbours are of the third class, the others are of the first one or the second by the toss of a coin,
and the three outputs are independent given the three numbers. So the excess risk is a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.z25.bit_sums import binomials, bit_sums
from optrand.theory.z25.votes import Records

__all__ = ["Ties"]

PLACES = 100
"""Where the excess risk is computed: at squares of evenly spread numbers, for it is large near 0 alone."""


@dataclass(frozen=True)
class Ties(Records):
    """Records of which the first two classes are as likely everywhere, and more so than the third but at 0.

    Examples
    --------
    >>> ties = Ties(256, 1.0)
    >>> ties.k, round(ties.excess, 4)
    (40, 0.0185)
    """

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; in case of a tie not the third."""
        roots = (np.arange(PLACES) + 0.5) / PLACES
        records = self.places
        total = 0.0
        for place, weight in zip((roots**2).tolist(), (2 * roots / PLACES).tolist(), strict=True):
            first = int(np.searchsorted(records, place)) - self.k
            window = records[max(0, first) : max(0, first) + 2 * self.k]
            nearest = np.sort(np.abs(window - place).argsort(kind="stable")[: self.k])
            thirds = bit_sums(1 - 2 * _tied(window[nearest]))
            total += weight * (3 * float(_tied(np.array(place))) - 1) * float(thirds @ self._third)
        return total

    @cached_property
    def _third(self) -> Floats:
        """The probability that the third class is named, for each number of neighbours that are of it."""
        k, right = self.k, 1 / (1 + math.exp(-self.epsilon / 2))
        own, other, halves = (binomials(k, chance) for chance in (right, 1 - right, 0.5))
        outputs = np.array([np.convolve(own[m], other[k - m]) for m in range(k + 1)])
        below = np.cumsum(outputs, axis=1) - outputs
        named = np.empty(k + 1)
        for thirds in range(k + 1):
            rest = k - thirds
            both = halves[rest] @ (below[: rest + 1] * below[rest::-1])
            named[thirds] = outputs[thirds] @ both
        return named

    def __str__(self) -> str:
        return f"three classes of which two tie, N = {self.size}, epsilon = {self.epsilon}, k = {self.k}"


def _tied(places: Floats) -> Floats:
    """The probability of either of the first two classes."""
    return np.minimum(1 / 3 + places, 0.5)
