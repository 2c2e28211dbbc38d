r"""Interval staircase columns as arcs on a line: what an optimal randomizer of a convex loss is made of.

For a convex loss the columns of an optimal private table are, without loss, *interval* staircases ([B23], Claims 11 to
14): output :math:`v_j` has probability :math:`c_j E` for the labels from ``first[j]`` to ``last[j]`` and :math:`c_j`
for all others. Read as an arc from node ``first[j]`` to node ``last[j] + 1`` of the nodes :math:`0 \ldots k`, such a
column touches two places only, and a table of ``k`` by ``n`` entries is ``O(n)`` numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, frozen
from optrand.errors import InvalidInput

__all__ = ["Arcs", "Indices"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arcs:
    """Columns ``(interval, output, mass)`` over ``k`` labels.

    Attributes
    ----------
    k : int
        The number of labels.
    first, last : (n,) arrays of int
        The labels that each arc favours, both ends in.
    outputs : (n,) array
        What each arc produces; arcs may share an output.
    masses : (n,) array
        Its probability for the labels that it does not favour; not negative.
    rests : (n,) array, optional
        What each output exceeds its float by, the nearest one, where labels lie so far from zero that floats lack
        digits.

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
        """The number of arcs."""
        return self.first.size

    def offsets(self, origin: float) -> Floats:
        """The outputs less a number near them."""
        offsets: Floats = (self.outputs - origin) + self.rests
        return offsets

    def inside(self, weights: Floats) -> Floats:
        """The sum of some weights of the labels, shape ``(k,)``, over the interval of each arc."""
        sums = np.concatenate(([0.0], np.cumsum(weights)))
        inside: Floats = sums[self.last + 1] - sums[self.first]
        return inside

    def over(self, amounts: Floats) -> Floats:
        """The sum of some amounts of the arcs, shape ``(n,)``, over the arcs that favour each label."""
        steps = np.bincount(self.first, amounts, self.k + 1) - np.bincount(self.last + 1, amounts, self.k + 1)
        over: Floats = np.cumsum(steps[:-1])
        return over

    @property
    def coverage(self) -> Floats:
        """The mass that favours each label; equal for all where the rows of the table sum to one."""
        return self.over(self.masses)

    def only(self, kept: NDArray[np.bool_]) -> Arcs:
        """Some of the arcs."""
        rests = self.rests[kept]
        return Arcs(self.k, self.first[kept], self.last[kept], self.outputs[kept], self.masses[kept], rests)

    def table(self, ratio: float) -> tuple[Floats, Floats]:
        """Distinct outputs in increasing order, and the dense ``(k, n)`` table of their probabilities."""
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


def _indices(given: ArrayLike) -> Indices:
    array = np.array(given, dtype=np.int64)
    array.flags.writeable = False
    return array
