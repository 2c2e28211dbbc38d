r"""The restricted program of column generation: masses of some staircase columns, each at a value of the grid.

.. math:: \min_{c \geq 0,\, b} \sum_j c_j \sum_y s_{j y} p_y g(v_j, y) + \tfrac{\lambda}{2} \sum_y p_y b_y^2
          \quad\text{s.t.}\quad \sum_j c_j s_{j y} = 1, \qquad \sum_j c_j s_{j y} v_j - b_y = y.

The means are left out where there is no care for bias, and ``b`` where none is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base._validation import Floats
from optrand.model._problem import Dual, Problem
from optrand.model._randomizer import Staircase
from optrand.programs._backends import Form
from optrand.solvers._scales import reach, typical_loss
from optrand.solvers.backends._cones import ConicProgram


@dataclass(frozen=True, eq=False)
class Master:
    """Columns ``(S, v)`` of a problem on a grid; variables are the masses times ``E``, then finite biases."""

    problem: Problem
    members: NDArray[np.bool_]
    outputs: Floats
    bounds: tuple[Floats, Floats] | None = None
    """Lower and upper bounds of the multipliers of a problem without bias penalty, for :meth:`conic`."""

    @cached_property
    def costs(self) -> Floats:
        """The loss of each column over ``E``."""
        table = self.problem.prior[:, np.newaxis] * self.problem.loss_table(self.outputs)
        costs: Floats = (self._steepness * table).sum(axis=0)
        return costs

    @cached_property
    def unit(self) -> float:
        """Unit by which costs are divided."""
        return typical_loss(self.problem, self.outputs)

    @property
    def centre(self) -> float:
        """Outputs are measured from here, in units of :attr:`width`."""
        return float(self.problem.labels[0] + self.problem.labels[-1]) / 2

    @property
    def width(self) -> float:
        """About how far from the centre the outputs in use lie."""
        return reach(self.problem)

    @cached_property
    def _steepness(self) -> Floats:
        return np.where(self.members, 1.0, math.exp(-self.problem.epsilon))

    @property
    def _biases(self) -> int:
        return 0 if self.problem.unbiased or not self.problem.bias_penalty else self.problem.k

    @property
    def _magnify(self) -> Floats:
        """Factors of the differences of neighbouring rows: at small epsilon rows hardly differ."""
        return np.append(1.0, np.full(self.problem.k - 1, -1 / math.expm1(-self.problem.epsilon)))

    def _equations(self) -> tuple[Floats, Floats]:
        """Return the first row of each kind and the scaled differences of the others, finite biases included."""
        k, free = self.problem.k, self._biases
        rows = [np.hstack((self._steepness, np.zeros((k, free))))]
        right = [np.ones(k)]
        # Means are rows of their own; a finite bias is a variable that makes up for what they lack.
        if self.problem.bias_penalty:
            moments = self._steepness * ((self.outputs - self.centre) / self.width)
            rows.append(np.hstack((moments, -np.eye(k)[:, :free])))
            right.append((self.problem.labels - self.centre) / self.width)
        # At a small epsilon rows hardly differ: their differences, magnified, have entries near one again.
        magnify = self._magnify
        return (
            np.vstack([magnify[:, np.newaxis] * np.diff(part, axis=0, prepend=0.0) for part in rows]),
            np.concatenate([magnify * np.diff(part, prepend=0.0) for part in right]),
        )

    def linear(self) -> Form:
        """Return the program for a linear backend, for a bias penalty of 0 or infinity."""
        rows, right = self._equations()
        return Form(self.costs / self.unit, sparse.csr_array(rows), right, right, np.full(self.outputs.size, np.inf))

    def conic(self) -> ConicProgram:
        """Return the program for the interior-point engine, for any bias penalty."""
        problem, columns, free = self.problem, self.outputs.size, self._biases
        rows, right = self._equations()
        costs = self.costs
        if self.bounds is not None:
            # A bound of a multiplier is the cost of a column of its label alone, of negative mass if it is a lower one.
            lowest, highest = (np.flatnonzero(np.isfinite(bound)) for bound in self.bounds)
            alone = self._magnify[:, np.newaxis] * np.diff(np.eye(problem.k), axis=0, prepend=0.0)
            rows = np.hstack((rows, -alone[:, lowest], alone[:, highest]))
            costs = np.concatenate((costs, -self.bounds[0][lowest], self.bounds[1][highest]))
            columns = costs.size
        # In the units of the program, lengths over the width and losses over their unit.
        price_of_bias = problem.bias_weights[:free] * (self.width**2 / self.unit)
        return ConicProgram(
            quadratic=sparse.csc_array(sparse.diags_array(np.concatenate((np.zeros(columns), price_of_bias)))),
            cost=np.concatenate((costs / self.unit, np.zeros(free))),
            equal=sparse.csc_array(rows),
            equal_to=right,
            less=sparse.csc_array(-sparse.eye_array(columns, columns + free)),
            less_than=np.zeros(columns),
        )

    def read(self, x: Floats, multipliers: Floats) -> tuple[Staircase, Dual]:
        """Return the columns with their masses, and the multipliers in the units of the problem."""
        problem, k = self.problem, self.problem.k
        masses = np.maximum(x[: self.outputs.size], 0.0) * math.exp(-problem.epsilon)
        alpha, beta = self.unit * undo_differences(self._magnify * multipliers[:k]), np.zeros(k)
        if problem.bias_penalty:
            # Labels without weight have no charge of bias to belong to, so that their multiplier must be zero.
            slopes = self.unit / self.width * undo_differences(self._magnify * multipliers[k:])
            beta = np.where(problem.bias_weights > 0, slopes, 0.0)
        return Staircase(self.members, self.outputs, masses), Dual(alpha - beta * self.centre, beta)


def all_intervals(k: int) -> NDArray[np.bool_]:
    """Every non-empty interval of ``k`` labels, shape ``(k, k (k + 1) / 2)``."""
    first, last = np.triu_indices(k)
    labels = np.arange(k)[:, np.newaxis]
    return (first <= labels) & (labels <= last)


def undo_differences(multipliers: Floats) -> Floats:
    """Compute the multipliers of the rows from those of their differences."""
    own: Floats = multipliers - np.append(multipliers[1:], 0.0)
    return own
