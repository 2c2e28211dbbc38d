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
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import Integers
from optrand.errors import InvalidInput
from optrand.model.arcs import Indices

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
        if type(self.k) is not int:
            raise InvalidInput(f"k is of type {type(self.k).__name__}, expected the number of labels as an int")
        masses = np.array(self.masses, dtype=object)
        object.__setattr__(self, "masses", _frozen(masses))
        if masses.ndim != 1 or not masses.size:
            raise InvalidInput("arcs need a vector of masses, at least one")
        for name in ("first", "last", "at"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu" or given.shape != masses.shape:
                raise InvalidInput(f"{name} is no vector of integers, one for each of the {masses.size} masses")
            object.__setattr__(self, name, _frozen(given.astype(np.int64)))
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

    def row_sums(self, ratio: Fraction, amounts: list[int]) -> list[int]:
        """For each label, the sum of some integers, one an arc: times ``r`` where the arc favours it, else times ``d``.

        The sums of the masses are the totals of the rows, those of ``mass * output`` the rows' first moments. Cost
        ``O(k + n)``.
        """
        low, more = ratio.denominator, ratio.numerator - ratio.denominator
        base = low * sum(amounts)
        return [base + more * favoured for favoured in self.over(amounts)]

    def total(self, ratio: Fraction) -> int:
        """The total that all rows of the table have; :class:`InvalidInput` where they have not."""
        totals = self.row_sums(ratio, self.masses.tolist())
        other = next((y for y, total in enumerate(totals) if total != totals[0]), None)
        if other is not None:
            raise InvalidInput(f"row {other} is not covered as row 0 is: the rows of weights would have other totals")
        return totals[0]

    def largest_ratio(self, ratio: Fraction) -> Fraction:
        """The largest ratio of two weights of one output; `ratio` as soon as an arc that is alone favours only some.

        Cost ``O(n log n)``: the arcs of an output are swept from end to end, labels are not.

        Examples
        --------
        >>> IntegerArcs(3, [0, 1, 0], [1, 2, 2], [0, 0, 1], [1, 1, 5]).largest_ratio(Fraction(3))
        Fraction(3, 2)
        """
        low, more = ratio.denominator, ratio.numerator - ratio.denominator
        alone = (np.bincount(self.at) == 1)[self.at]
        if (alone & ((self.first > 0) | (self.last < self.k - 1))).any():
            return ratio
        largest = Fraction(1)
        columns = zip(self.at.tolist(), self.first.tolist(), self.last.tolist(), self.masses.tolist(), strict=True)
        for _, arcs in groupby(columns, key=itemgetter(0)):
            steps, base = {0: 0, self.k: 0}, 0
            for _, first, last, mass in arcs:
                steps[first] = steps.get(first, 0) + mass
                steps[last + 1] = steps.get(last + 1, 0) - mass
                base += low * mass
            favoured = list(accumulate(steps[y] for y in sorted(steps)))[:-1]
            largest = max(largest, Fraction(base + more * max(favoured), base + more * min(favoured)))
        return largest

    def table(self, ratio: Fraction) -> Integers:
        """The dense ``(k, n)`` table of integers, read-only."""
        low, high = ratio.denominator, ratio.numerator
        favoured = np.zeros((self.k + 1, self.n), dtype=object)
        np.add.at(favoured, (self.first, self.at), self.masses)
        np.subtract.at(favoured, (self.last + 1, self.at), self.masses)
        every = np.zeros(self.n, dtype=object)
        np.add.at(every, self.at, self.masses)
        return _frozen(low * every + (high - low) * np.cumsum(favoured[:-1], axis=0))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
