r"""Interval staircase columns with integer masses: a private table that need not be written out.

With integer masses :math:`C_j` and a rational :math:`R = r / d`, ``d`` and ``r`` integers, label ``y`` has the weight

.. math:: W_{y i} = \sum_{j : \mathrm{at}_j = i} C_j \, (r \text{ if } \mathrm{first}_j \leq y \leq \mathrm{last}_j
          \text{ else } d)

at output ``i``. Whatever the masses, no two labels' weights have a ratio above ``R`` at any output; and where the mass
that favours a label (its *coverage* :math:`t`) is the same for every label, all rows have one total,
:math:`d \sum_j C_j + (r - d) t`. Both are decided in ``O(k + n)`` integer operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.arcs import Indices
from optrand.errors import InvalidInput
from optrand.privacy import Integers

__all__ = ["IntegerArcs"]


@dataclass(frozen=True, eq=False)
class IntegerArcs:
    """Columns ``(interval, output, integer mass)`` over ``k`` labels, in increasing order of outputs.

    Attributes
    ----------
    k : int
        The number of labels.
    first, last : (arcs,) arrays of int
        The labels that each arc favours, both ends in.
    at : (arcs,) array of int
        The number of the output that each arc produces: it starts at 0, never falls, and leaves none out.
    masses : (arcs,) array of Python int
        Above 0.

    Examples
    --------
    >>> from fractions import Fraction
    >>> coin = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])
    >>> coin.table(Fraction(3)).tolist(), coin.coverage
    ([[3, 1], [1, 3]], [1, 1])
    """

    k: int
    first: Indices
    last: Indices
    at: Indices
    masses: Integers

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit together."""
        for name in ("first", "last", "at"):
            object.__setattr__(self, name, _frozen(np.array(getattr(self, name), dtype=np.int64)))
        masses = np.array(self.masses, dtype=object)
        object.__setattr__(self, "masses", _frozen(masses))
        if masses.ndim != 1 or not masses.size:
            raise InvalidInput("arcs need a vector of masses, at least one")
        if {array.shape for array in (self.first, self.last, self.at)} != {masses.shape}:
            raise InvalidInput("arcs need an interval, an output and a mass each")
        if not all(type(mass) is int and mass > 0 for mass in masses.tolist()):
            raise InvalidInput("masses of arcs must be Python integers above 0: leave out arcs without mass")
        if ((self.first < 0) | (self.first > self.last) | (self.last >= self.k)).any():
            raise InvalidInput(f"every arc must favour an interval of the labels 0 ... {self.k - 1}")
        if self.at[0] != 0 or not np.isin(np.diff(self.at), (0, 1)).all():
            raise InvalidInput("arcs must be in the order of their outputs and leave no output out")

    @property
    def n(self) -> int:
        """The number of outputs."""
        return int(self.at[-1]) + 1

    def over(self, amounts: list[int]) -> list[int]:
        """The sum of some integers, one an arc, over the arcs that favour each label."""
        steps = [0] * (self.k + 1)
        for first, last, amount in zip(self.first.tolist(), self.last.tolist(), amounts, strict=True):
            steps[first] += amount
            steps[last + 1] -= amount
        return list(accumulate(steps[:-1]))

    @property
    def coverage(self) -> list[int]:
        """The mass that favours each label."""
        return self.over(self.masses.tolist())

    def total(self, ratio: Fraction) -> int:
        """The total that all rows of the table have; :class:`InvalidInput` where they have not."""
        coverage = self.coverage
        other = next((y for y, mass in enumerate(coverage) if mass != coverage[0]), None)
        if other is not None:
            raise InvalidInput(f"label {other} is not covered as label 0 is: the rows would have different totals")
        low, high = ratio.denominator, ratio.numerator
        total: int = low * sum(self.masses.tolist()) + (high - low) * coverage[0]
        return total

    def table(self, ratio: Fraction) -> Integers:
        """The dense ``(k, n)`` table of integers, read-only."""
        low, high = ratio.denominator, ratio.numerator
        weights = np.zeros((self.k, self.n), dtype=object)
        for first, last, at, mass in zip(
            self.first.tolist(), self.last.tolist(), self.at.tolist(), self.masses.tolist(), strict=True
        ):
            weights[:, at] += low * mass
            weights[first : last + 1, at] += (high - low) * mass
        return _frozen(weights)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
