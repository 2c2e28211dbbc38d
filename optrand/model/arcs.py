r"""Interval staircase columns as arcs on a line, the form of optimal randomizers for convex losses.

Output :math:`v_j` has probability :math:`c_j E` for the labels from ``first[j]`` to ``last[j]`` and :math:`c_j` for all
others ([B23], Claims 11 to 14): an arc from node ``first[j]`` to node ``last[j] + 1`` of the nodes :math:`0 \ldots k`.
A table of ``k`` by ``n`` entries is ``O(n)`` numbers.

With integer masses :math:`C_j` and a rational :math:`R = r / d` the weights are :math:`C_j r` and :math:`C_j d`, so
that all ratios at an output are at most ``R``; where every label has one *coverage* :math:`t`, the mass that favours
it, all rows have the total :math:`d \sum_j C_j + (r - d) t`. Both are decided in ``O(k + n)`` integer operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.arithmetic import Integers, exact_integers
from optrand.base.records import Record
from optrand.base.validation import Floats, frozen
from optrand.errors import InvalidInput

__all__ = ["Arcs", "Indices", "IntegerArcs"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arcs(Record):
    """Columns ``(interval, output, mass)`` over ``k`` labels.

    Attributes
    ----------
    k : int
        Number of labels.
    first, last : (n,) arrays of int
        First and last label that each arc favours.
    outputs : (n,) array
        Output of each arc; arcs may share one.
    masses : (n,) array
        Probability for the labels that the arc does not favour; not negative.
    rests : (n,) array, optional
        Exact output less its nearest float, for labels so far from zero that floats lack digits.

    Raises
    ------
    InvalidInput
        Arrays of different lengths, an interval that is empty or leaves the labels, or rests to which another float is
        nearer.

    Examples
    --------
    Randomized response of two labels at ``E = 3``:

    >>> arcs = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.25, 0.25])
    >>> arcs.table(3.0)[1].tolist(), arcs.coverage.tolist()
    ([[0.75, 0.25], [0.25, 0.75]], [0.25, 0.25])
    """

    k: int
    first: Indices
    last: Indices
    outputs: Floats
    masses: Floats
    rests: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit together."""
        object.__setattr__(self, "first", _indices(self.first))
        object.__setattr__(self, "last", _indices(self.last))
        object.__setattr__(self, "outputs", frozen(self.outputs))
        object.__setattr__(self, "masses", frozen(self.masses))
        object.__setattr__(self, "rests", frozen(self.rests if np.size(self.rests) else np.zeros(self.outputs.shape)))
        shapes = {array.shape for array in (self.first, self.last, self.outputs, self.masses, self.rests)}
        if len(shapes) != 1 or self.first.ndim != 1:
            raise InvalidInput(f"arcs need vectors of one length, not of shapes {sorted(shapes)}")
        if ((self.first < 0) | (self.first > self.last) | (self.last >= self.k)).any():
            raise InvalidInput(f"every arc must favour an interval of the labels 0 ... {self.k - 1}")
        if (self.outputs + self.rests != self.outputs).any():
            raise InvalidInput("rests of arcs are what rounding to a float took from their outputs, not more")

    @property
    def n(self) -> int:
        """Number of arcs."""
        return self.first.size

    @property
    def places(self) -> Indices:
        """Index of each arc's output among the distinct ones, in increasing order."""
        order = np.lexsort((self.rests, self.outputs))
        new = (np.diff(self.outputs[order]) != 0) | (np.diff(self.rests[order]) != 0)
        places = np.empty(self.n, dtype=np.int64)
        places[order] = np.concatenate(([0], np.cumsum(new))) if self.n else []
        return places

    @property
    def numbers(self) -> tuple[NDArray[Any], ...]:
        """All arrays."""
        return self.first, self.last, self.outputs, self.masses, self.rests

    def offsets(self, origin: float) -> Floats:
        """Return outputs less a number near them."""
        offsets: Floats = (self.outputs - origin) + self.rests
        return offsets

    def inside(self, weights: Floats) -> Floats:
        """Sum of some weights of the labels, shape ``(k,)``, over the interval of each arc."""
        sums = np.concatenate(([0.0], np.cumsum(weights)))
        inside: Floats = sums[self.last + 1] - sums[self.first]
        return inside

    def over(self, amounts: Floats) -> Floats:
        """Sum of some amounts of the arcs, shape ``(n,)``, over the arcs that favour each label."""
        steps = np.bincount(self.first, amounts, self.k + 1) - np.bincount(self.last + 1, amounts, self.k + 1)
        over: Floats = np.cumsum(steps[:-1])
        return over

    @property
    def coverage(self) -> Floats:
        """Mass that favours each label; equal for all where the rows of the table sum to one."""
        return self.over(self.masses)

    def only(self, kept: NDArray[np.bool_]) -> Arcs:
        """Select some of the arcs."""
        rests = self.rests[kept]
        return Arcs(self.k, self.first[kept], self.last[kept], self.outputs[kept], self.masses[kept], rests)

    def table(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the distinct outputs in increasing order, and the dense ``(k, n)`` table of their probabilities."""
        outputs, where = np.unique(self.outputs, return_inverse=True)
        labels = np.arange(self.k)[:, np.newaxis]
        table = np.zeros((self.k, outputs.size))
        if outputs.size == self.n:
            inside = (self.first <= labels) & (labels <= self.last)
            table[:, where] = np.where(inside, ratio * self.masses, self.masses)
            return outputs, table
        for first, last, at, mass in zip(self.first, self.last, where, self.masses, strict=True):
            table[:, at] += mass
            table[first : last + 1, at] += (ratio - 1) * mass
        return outputs, table


@dataclass(frozen=True, eq=False)
class IntegerArcs(Record):
    """Columns ``(interval, output, integer mass)`` over ``k`` labels, in increasing order of outputs.

    Attributes
    ----------
    k : int
        Number of labels.
    first, last : (arcs,) arrays of int
        First and last label that each arc favours.
    at : (arcs,) array of int
        Index of the output of each arc: it starts at 0, never falls, and leaves none out.
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
        masses = exact_integers(self.masses, "masses of arcs")
        object.__setattr__(self, "masses", masses)
        if masses.ndim != 1 or not masses.size:
            raise InvalidInput("arcs need a vector of masses, at least one")
        for name in ("first", "last", "at"):
            given = exact_integers(getattr(self, name), name)
            if given.shape != masses.shape:
                raise InvalidInput(f"{name} is no vector of integers, one for each of the {masses.size} masses")
            try:
                object.__setattr__(self, name, _frozen(given.astype(np.int64)))
            except OverflowError:
                raise InvalidInput(f"{name} holds integers beyond 2**63, expected indices") from None
        if not all(mass > 0 for mass in masses.tolist()):
            raise InvalidInput("masses of arcs must be integers above 0: leave out arcs without mass")
        if ((self.first < 0) | (self.first > self.last) | (self.last >= self.k)).any():
            raise InvalidInput(f"every arc must favour an interval of the labels 0 ... {self.k - 1}")
        if self.at[0] != 0 or not np.isin(np.diff(self.at), (0, 1)).all():
            raise InvalidInput("arcs must be in the order of their outputs and leave no output out")

    @property
    def n(self) -> int:
        """Number of outputs."""
        return int(self.at[-1]) + 1

    @property
    def coverage(self) -> list[int]:
        """Mass that favours each label."""
        steps = [0] * (self.k + 1)
        for first, last, mass in zip(self.first.tolist(), self.last.tolist(), self.masses.tolist(), strict=True):
            steps[first] += mass
            steps[last + 1] -= mass
        return list(accumulate(steps[:-1]))

    def total(self, ratio: Fraction) -> int:
        """Return the common total of all rows of the table; :class:`InvalidInput` where they differ."""
        coverage = self.coverage
        other = next((y for y, covered in enumerate(coverage) if covered != coverage[0]), None)
        if other is not None:
            raise InvalidInput(f"row {other} is not covered as row 0 is: the rows of weights would have other totals")
        low, high = ratio.denominator, ratio.numerator
        total: int = low * sum(self.masses.tolist()) + (high - low) * coverage[0]
        return total

    def table(self, ratio: Fraction) -> Integers:
        """Return the dense ``(k, n)`` table of integers, read-only."""
        low, high = ratio.denominator, ratio.numerator
        favoured = np.zeros((self.k + 1, self.n), dtype=object)
        np.add.at(favoured, (self.first, self.at), self.masses)
        np.subtract.at(favoured, (self.last + 1, self.at), self.masses)
        every = np.zeros(self.n, dtype=object)
        np.add.at(every, self.at, self.masses)
        return _frozen(low * every + (high - low) * np.cumsum(favoured[:-1], axis=0))


def _indices(given: ArrayLike) -> Indices:
    array = np.array(given, dtype=np.int64)
    array.flags.writeable = False
    return array


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
