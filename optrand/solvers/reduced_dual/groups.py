r"""Multipliers of neighbouring labels that no column in use tells apart.

At a finite bias penalty the columns in use fix the sums :math:`b_j`, and of the sums :math:`c_j` those of the nodes at
which they begin or end; in between, the interior point ends in the middle of all that leaves no *interval* too cheap.
Where the zeros of the labels' prices are not in their order, other sets are. With the outputs in increasing order, a
label that the columns from the output :math:`v_i` to :math:`v_j` favour, and no others, has
:math:`h_y(v) = \frac12 p_y v^2 - s_y v + \gamma_y` of one zero between :math:`v_{i-1}` and :math:`v_i` and one between
:math:`v_j` and :math:`v_{j+1}`, so that

.. math:: \max(s_y v - \tfrac12 p_y v^2 : v = v_{i-1}, v_{j+1}) \leq \gamma_y
          \leq \min(s_y v - \tfrac12 p_y v^2 : v = v_i, v_j).

First all labels of a group are put at one share of the way between these. As for bins
(:mod:`optrand.solvers.bins.dual`) intervals are mended next, then zeros put in order, by turns: most duals prove their
bound at once or soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices
from optrand.solvers.reduced_dual import mending, operations, strip
from optrand.solvers.reduced_dual.refinement import Numbers, Sums

__all__ = ["Groups"]

TURNS = 12
"""Intervals are mended, or zeros ordered, at most so many times."""

BALANCED = 8
"""Rounds in which labels at an end of their range leave the rest to others."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels between two nodes of the arcs in use.

    Parameters
    ----------
    terms : strip.Terms
    sums : Sums
        Up to each node, in floats or in extended precision.
    first, end : (n,) arrays
        Nodes of the arcs in use, in increasing order of their outputs.
    outputs : (n,) array
    """

    terms: strip.Terms
    sums: Sums
    first: Indices
    end: Indices
    outputs: Floats

    @classmethod
    def of_used(
        cls,
        terms: strip.Terms,
        sums: Sums,
        arcs: tuple[Indices, Indices, Floats],
        used: NDArray[np.bool_],
    ) -> Groups:
        """Group first nodes, end nodes and outputs of arcs in any order, of which some are in use."""
        at = np.flatnonzero(used)
        at = at[np.argsort(arcs[2][at], kind="stable")]
        first, end, outputs = arcs[0][at], arcs[1][at], arcs[2][at]
        return cls(terms, sums, first, end, outputs)

    @property
    def clipped(self) -> Numbers:
        """Each label's share of the sums `c`, moved into its range: nothing is left of rounding in the sums."""
        return np.clip(np.diff(self.sums.costs), self._least, self._least + self._room)

    def candidates(self) -> Iterator[Numbers]:
        """Return sums `c` that agree with the given ones at the nodes of the arcs in use."""
        position = self._balanced(self._spread(np.clip(_quotient(self._above, self._sums(self._room)), 0.0, 1.0)))
        yield self._totals(position)
        for turn in range(TURNS):
            position = self._ordered(position) if turn % 2 else self._mended(position)
            yield self._totals(position)

    @cached_property
    def _mass(self) -> Numbers:
        return np.diff(self.sums.before)

    @cached_property
    def _slope(self) -> Numbers:
        return np.diff(self.sums.slopes)

    @cached_property
    def _fixed(self) -> NDArray[np.bool_]:
        """Whether arcs begin or end at a node."""
        fixed = np.zeros(self.sums.costs.size, dtype=bool)
        fixed[self.first] = fixed[self.end] = fixed[0] = fixed[-1] = True
        return fixed

    @cached_property
    def _group(self) -> Indices:
        """Number of each label's group."""
        return np.cumsum(self._fixed[:-1]) - 1

    def _sums(self, amounts: Numbers) -> Numbers:
        sums: Numbers = np.add.reduceat(amounts, np.flatnonzero(self._fixed[:-1]))
        return sums

    def _spread(self, amounts: Numbers) -> Numbers:
        return amounts[self._group]

    @cached_property
    def _range(self) -> tuple[Numbers, Numbers]:
        """The lower ends of the labels' ranges, and how wide these are."""
        each, last = np.arange(self._mass.size), self.outputs.size - 1
        start = np.searchsorted(np.maximum.accumulate(self.end), each, side="right")
        stop = np.searchsorted(np.minimum.accumulate(self.first[::-1])[::-1], each, side="right") - 1
        start = np.minimum(start, last)
        stop = np.maximum(stop, start)

        def zero_at(arc: Indices) -> Numbers:
            output = self.outputs[np.clip(arc, 0, last)]
            zero: Numbers = np.where(
                (arc >= 0) & (arc <= last), (self._slope - self._mass * output / 2) * output, -np.inf
            )
            return zero

        most = np.minimum(zero_at(start), zero_at(stop))
        least = np.maximum(zero_at(start - 1), zero_at(stop + 1))
        least = np.where(np.isfinite(least), np.minimum(least, most), most - 1 - np.abs(most))
        return least, most - least

    @property
    def _least(self) -> Numbers:
        return self._range[0]

    @property
    def _room(self) -> Numbers:
        return self._range[1]

    @cached_property
    def _above(self) -> Numbers:
        """Sum over each group above the lower ends."""
        return self._sums(np.diff(self.sums.costs) - self._least)

    def _balanced(self, position: Numbers) -> Numbers:
        """Places between both ends, near some others, that have the sums of the groups."""
        for _ in range(BALANCED):
            lacking = self._above - self._sums(self._room * position)
            free = np.where(self._spread(lacking) > 0, position < 1, position > 0)
            moved = position + free * self._spread(_quotient(lacking, self._sums(self._room * free)))
            position = np.clip(moved, 0.0, 1.0)
            if np.array_equal(moved, position):
                break
        return position

    def _totals(self, position: Numbers) -> Numbers:
        """Return sums up to each node, unchanged at fixed nodes."""
        cost = self._least + self._room * position
        cost += self._spread((self._above - self._sums(self._room * position)) / self._sums(np.ones(cost.size)))
        return np.where(self._fixed, self.sums.costs, np.append(0.0, np.cumsum(cost)))

    def _places(self, cost: Numbers) -> Numbers:
        return self._balanced(np.clip(_quotient(cost - self._least, self._room), 0.0, 1.0))

    def _mended(self, position: Numbers) -> Numbers:
        """Places near some others where no interval is too cheap."""
        slopes, costs = self.sums.slopes.astype(np.float64), self._totals(position).astype(np.float64)
        return self._places(np.diff(mending.potentials(self.terms, slopes, costs, self._fixed)))

    def _ordered(self, position: Numbers) -> Numbers:
        """Places near some others where both zeros move up with the label, or nearly so."""
        middle = _quotient(self._slope, self._mass)
        square = 2 * _quotient(np.diff(self._totals(position)), self._mass)
        apart = np.sqrt(np.maximum(middle**2 - square, 0.0))
        ends, weights = np.array([middle - apart, middle + apart], dtype=np.float64), np.diff(self.terms.before)
        lower, upper = (operations.isotonic(each, np.maximum(weights, strip.FAINT)) for each in ends)
        apart = np.maximum(upper - lower, 0.0) / 2
        return self._places(self._mass * (middle - apart) * (middle + apart) / 2)


def _quotient(above: Numbers, below: Numbers) -> Numbers:
    """Divide, with 0 as the quotient of 0 by 0."""
    ratio: Numbers = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return ratio
