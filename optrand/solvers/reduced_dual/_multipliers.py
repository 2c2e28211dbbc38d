r"""Multipliers of neighbouring labels that no column in use separates.

At a finite bias penalty the columns in use determine all sums :math:`b_j`, but of the sums :math:`c_j` only those of
the nodes where one of them begins or ends. The labels between two such nodes are a *group*: the total of their shares
of :math:`c` is known, and each share has bounds. Take a label that the columns in use with the outputs :math:`v_i <
\ldots < v_j` favour, and no others. Its reduced cost :math:`\frac12 p_y v^2 - s_y v + \gamma_y` must not be positive
at :math:`v_i` and :math:`v_j`, nor negative at the outputs in use beside them, so that

.. math:: \max(s_y v - \tfrac12 p_y v^2 : v = v_{i-1}, v_{j+1}) \leq \gamma_y
          \leq \min(s_y v - \tfrac12 p_y v^2 : v = v_i, v_j).

The interior point ends in the middle of the shares at which no *interval* is violated. Other sets of labels may be, if
the zeros of the reduced costs do not increase with the label. So the first candidate puts all labels of a group at one
position between their bounds. The next ones remove violated intervals and put zeros in order, by turns, as for bins
(:mod:`optrand.solvers._bins`). The first candidate, or one soon after it, proves most answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats
from optrand.model._randomizer import Extended, Indices
from optrand.solvers._positions import Numbers, Positions, divide
from optrand.solvers.reduced_dual._arcs import OPTIONS, Arcs, Terms, fit_increasing, violation
from optrand.solvers.reduced_dual._interior_point import (
    NewtonSystem,
    Point,
    Residuals,
    Target,
    evaluate_residuals,
)


class Sums(NamedTuple):
    """Sums over the labels before each node: of the prior, and of both kinds of multipliers."""

    before: Numbers
    slopes: Numbers
    costs: Numbers


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels between two nodes of the arcs in use.

    Parameters
    ----------
    terms : Terms
    sums : Sums
        Up to each node, in floats or in extended precision.
    first, end : (n,) arrays
        Nodes of the arcs in use, in increasing order of their outputs.
    outputs : (n,) array
    """

    terms: Terms
    sums: Sums
    first: Indices
    end: Indices
    outputs: Floats

    @classmethod
    def of_used(
        cls,
        terms: Terms,
        sums: Sums,
        arcs: tuple[Indices, Indices, Floats],
        used: NDArray[np.bool_],
    ) -> Groups:
        """Group first nodes, end nodes and outputs of arcs in any order, of which some are in use."""
        at = np.flatnonzero(used)
        # In increasing order of outputs, the arcs that favour a label are neighbours.
        at = at[np.argsort(arcs[2][at], kind="stable")]
        first, end, outputs = arcs[0][at], arcs[1][at], arcs[2][at]
        return cls(terms, sums, first, end, outputs)

    def candidates(self) -> Iterator[Numbers]:
        """Return sums `c` that agree with the given ones at the nodes of the arcs in use."""
        position = self._positions.even()
        yield self._sum_up(position)
        # Each repair may undo some of the other, so both take turns, and every stage is a candidate. Of 400 random
        # problems one took 46 turns.
        for turn in range(64):
            position = self._order_zeros(position) if turn % 2 else self._repair_costs(position)
            yield self._sum_up(position)

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
    def _positions(self) -> Positions:
        """Each label's share of the sums `c` between its bounds."""
        each, last = np.arange(self._mass.size), self.outputs.size - 1
        # Arcs start ... stop are those in use that favour the label: the first whose end lies beyond it, the last that
        # begins at or before it.
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

        # A label's price must not be positive at the outermost outputs of its arcs, nor negative at those beside them.
        most = np.minimum(zero_at(start), zero_at(stop))
        least = np.maximum(zero_at(start - 1), zero_at(stop + 1))
        least = np.where(np.isfinite(least), np.minimum(least, most), most - 1 - np.abs(most))
        starts = np.flatnonzero(self._fixed[:-1])
        return Positions(starts, least, most - least, np.add.reduceat(np.diff(self.sums.costs) - least, starts))

    def _sum_up(self, position: Numbers) -> Numbers:
        """Return sums up to each node, unchanged at fixed nodes."""
        positions = self._positions
        # Rounding leaves a little, which every label of the group takes alike.
        cost = positions.multipliers(position) + positions.share_equally(positions.lacking(position))
        return np.where(self._fixed, self.sums.costs, np.append(0.0, np.cumsum(cost)))

    def _repair_costs(self, position: Numbers) -> Numbers:
        """Move positions so that no interval has a negative reduced cost."""
        slopes, costs = self.sums.slopes.astype(np.float64), self._sum_up(position).astype(np.float64)
        return self._positions.place(np.diff(feasible_costs(self.terms, slopes, costs, self._fixed)))

    def _order_zeros(self, position: Numbers) -> Numbers:
        """Move positions so that both zeros increase with the label, or nearly so."""
        # The zeros of p v^2 / 2 - s v + c lie around s / p, at the root of (s / p)^2 - 2 c / p on either side.
        middle = divide(self._slope, self._mass)
        square = 2 * divide(np.diff(self._sum_up(position)), self._mass)
        apart = np.sqrt(np.maximum(middle**2 - square, 0.0))
        ends, weights = np.array([middle - apart, middle + apart], dtype=np.float64), np.diff(self.terms.before)
        lower, upper = (fit_increasing(each, np.maximum(weights, OPTIONS.faint)) for each in ends)
        apart = np.maximum(upper - lower, 0.0) / 2
        return self._positions.place(self._mass * (middle - apart) * (middle + apart) / 2)


def _raise_costs(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """Return the least sums ``c``, none below the given ones, that violate no interval."""
    costs = costs.copy()
    for j in range(1, costs.size):
        costs[j] = max(costs[j], np.max(costs[:j] + violation(terms, slopes, total, slice(0, j), slice(j, j + 1))))
    return costs


def _lower_costs(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """Return the largest sums ``c``, none above the given ones, that violate no interval."""
    costs = costs.copy()
    k = costs.size - 1
    for j in range(k - 1, -1, -1):
        costs[j] = min(
            costs[j], np.min(costs[j + 1 :] - violation(terms, slopes, total, slice(j, j + 1), slice(j + 1, k + 1)))
        )
    return costs


def feasible_costs(terms: Terms, slopes: Floats, costs: Floats, fixed: NDArray[np.bool_]) -> Floats:
    """Return sums ``c`` near given ones, equal to them at fixed nodes, at which no interval is violated.

    Cost ``O(k**2)``.

    For each pair of nodes the sum at one must exceed that at the other by some number. Lower bounds are propagated up
    the line and upper bounds down it. The mean of the raised and of the lowered sums satisfies both.
    """
    total = costs[-1]
    # Fixed sums first, to find between which bounds the others may lie, then the given ones, moved between them.
    least = _raise_costs(terms, slopes, np.where(fixed, costs, -np.inf), total)
    most = _lower_costs(terms, slopes, np.where(fixed, costs, np.inf), total)
    near = np.where(fixed, costs, np.minimum(np.maximum(costs, least), most))
    mean: Floats = (_raise_costs(terms, slopes, near, total) + _lower_costs(terms, slopes, near, total)) / 2
    return mean


def refine_sums(arcs: Arcs, terms: Terms, point: Point, before: Extended) -> Sums:
    """Refine the sums of a point by Newton steps whose residuals are in extended precision.

    A column pays `E` times for rounding of its labels' multipliers: 1e-16 of the sums is a billionth of the loss at an
    epsilon of 8 and a thousand labels. A step is dropped if its system is singular in floats or the residuals grow.
    `before` is the prior before each node.
    """
    weight = arcs.apply_incidence(before)
    # Rows beyond the cap have multipliers of their own, which stay as they are.
    stiff = np.flatnonzero(terms.charges > terms.capped.charges)

    def residuals_at(sums: Extended) -> tuple[Residuals, float]:
        residuals = evaluate_residuals(arcs, terms, weight, point._replace(sums=sums))
        residuals.rows[0, stiff] = residuals.rows[0, stiff + 1] = 0.0
        return residuals, float(point.mass @ np.abs(residuals.slack))

    sums = point.sums.astype(np.longdouble)
    residuals, off = residuals_at(sums)
    # Each of the two steps adds the digits that the matrix in floats allows.
    for _ in range(2):
        # The matrix stays in floats: only residuals need more digits, as in iterative refinement of a linear system.
        try:
            system = NewtonSystem(arcs, terms.capped, point, residuals)
        except np.linalg.LinAlgError:
            break
        moved = sums + system.step_to(Target(point.mass * point.slack)).change.sums
        residuals, less = residuals_at(moved)
        if not less < off:
            break
        sums, off = moved, less
    return Sums(before, *sums)
