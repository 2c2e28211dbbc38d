r"""Optimal randomizers with outputs anywhere on a line, as programs over staircase columns.

For a convex loss the columns of an optimal table are, without loss, *interval* staircases, and each needs one output
only ([B23]_, Claims 11 to 14). So a randomizer is a mass :math:`c_S \geq 0` and a first moment :math:`m_S = c_S v_S`
for each interval :math:`S` of labels, and with :math:`P_S = \sum_y s_y p_y`, :math:`F_S = \sum_y s_y p_y y` the squared
loss is

.. math:: \tfrac12 \sum_S P_S \frac{m_S^2}{c_S} - \sum_S F_S m_S + \tfrac12 \sum_y p_y y^2,

jointly convex in :math:`(c, m)`: one second-order cone a column. Rows summing to one are linear in :math:`c` and biases
linear in :math:`m`; written as differences of neighbouring labels they are flow conservation on a line, in which an
interval touches two rows only. With a finite bias penalty the biases are variables of their own with a quadratic cost.
Without any care for bias each column has its best output in closed form, and a linear program over the masses is left.

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand import losses
from optrand.problem import Problem
from optrand.programs.conic import ConicProgram, ConicSolution
from optrand.programs.linear import LP, LPSolution
from optrand.solution import Dual
from optrand.staircase import Staircase
from optrand.validation import Floats

__all__ = ["ConicFlow", "LinearFlow", "all_intervals", "differences", "reach", "typical_loss", "undifferenced"]

UNUSED = 1e-11
"""Columns with less mass (times ``E``) than this are what an interior-point method leaves of zero."""


def all_intervals(k: int) -> NDArray[np.bool_]:
    """Every non-empty interval of ``k`` labels, shape ``(k, k (k + 1) / 2)``."""
    first, last = np.triu_indices(k)
    labels = np.arange(k)[:, np.newaxis]
    return (first <= labels) & (labels <= last)


def differences(table: sparse.csr_array) -> sparse.csr_array:
    """The first row of a table, then each row less the one before it."""
    k = table.shape[0]
    step = sparse.eye_array(k, format="csr") - sparse.eye_array(k, k=-1, format="csr")
    result = sparse.csr_array(step @ table)
    result.eliminate_zeros()
    return result


def reach(problem: Problem) -> float:
    """About how far outputs lie from the middle of the labels: unbiased ones overhang them by up to ``1 / (E - 1)``."""
    overhang = 1 / math.expm1(problem.epsilon)
    penalty = problem.bias_penalty
    willing = 1.0 if problem.unbiased else penalty / (penalty + overhang**2)
    spread = float(np.ptp(problem.labels)) or 1.0
    return spread * (0.5 + overhang * willing)


def typical_loss(problem: Problem, outputs: Floats) -> float:
    """About what an answer costs: the loss of a constant output as far off as :func:`reach` says.

    In classification, where outputs are no distances, the largest prior.
    """
    if problem.loss == losses.zero_one:
        return float(problem.prior.max())
    centre = float(problem.labels[0] + problem.labels[-1]) / 2
    nearest = [int(np.abs(outputs - end).argmin()) for end in (centre - reach(problem), centre + reach(problem))]
    return float(np.abs(problem.prior @ problem.loss_table(outputs[nearest])).mean()) or 1.0


def undifferenced(multipliers: Floats) -> Floats:
    """Multipliers of the rows themselves from those of their differences."""
    own: Floats = multipliers - np.append(multipliers[1:], 0.0)
    return own


@dataclass(frozen=True, eq=False)
class LinearFlow:
    """The linear program over masses that is left where there is no care for bias.

    Attributes
    ----------
    problem : Problem
        With squared, absolute or Poisson log loss, a bias penalty of 0, and outputs on the line or an interval.
    members : (k, arcs) array of bool
        The sets of labels that columns may favour.
    """

    problem: Problem
    members: NDArray[np.bool_]

    @cached_property
    def weights(self) -> Floats:
        """The columns over ``E``, times the prior."""
        return _steepness(self.problem, self.members) * self.problem.prior[:, np.newaxis]

    @cached_property
    def outputs(self) -> Floats:
        """The best output of each column: a weighted mean of the labels, or a weighted median, within the interval."""
        problem, weights = self.problem, self.weights
        if problem.loss == losses.absolute:
            middle = (weights.cumsum(axis=0) >= weights.sum(axis=0) / 2).argmax(axis=0)
            best = problem.labels[middle]
        else:
            best = problem.labels[0] + (problem.labels - problem.labels[0]) @ weights / weights.sum(axis=0)
        within: Floats = np.clip(best, problem.outputs.low, problem.outputs.high)
        return within

    @cached_property
    def costs(self) -> Floats:
        """The loss of each column at its best output, over ``E``."""
        costs: Floats = (self.weights * self.problem.loss_table(self.outputs)).sum(axis=0)
        return costs

    @property
    def unit(self) -> float:
        """What the costs are divided by."""
        return float(np.abs(self.costs).max()) or 1.0

    def build(self) -> LP:
        """The program; ``x`` are the masses times ``E``."""
        first = np.zeros(self.problem.k)
        first[0] = 1.0
        rows = differences(sparse.csr_array(_steepness(self.problem, self.members)))
        return LP(self.costs / self.unit, rows, first, sparse.csr_array((0, self.costs.size)), np.zeros(0))

    def read(self, answer: LPSolution) -> tuple[Staircase, Dual]:
        """The columns in use and the multipliers of the rows."""
        used = answer.x > 0
        masses = np.maximum(answer.x, 0.0) * math.exp(-self.problem.epsilon)
        dual = Dual(self.unit * undifferenced(answer.equal_dual), np.zeros(self.problem.k))
        return Staircase(self.members, self.outputs, masses).only(used), dual


@dataclass(frozen=True, eq=False)
class ConicFlow:
    """The cone program in masses, moments and their quotients ``q >= m^2 / c``, for squared loss and any bias penalty.

    Attributes
    ----------
    problem : Problem
        With squared loss, a positive bias penalty, and outputs on the line or an interval.
    members : (k, arcs) array of bool
        The sets of labels that columns may favour.
    """

    problem: Problem
    members: NDArray[np.bool_]

    @property
    def centre(self) -> float:
        """Labels and outputs are measured from here."""
        return float(self.problem.labels[0] + self.problem.labels[-1]) / 2

    @property
    def unit(self) -> float:
        """Labels and outputs are measured in this."""
        return reach(self.problem)

    def build(self) -> ConicProgram:
        """The program; variables are the masses times ``E``, the moments, the quotients, and finite biases."""
        problem, arcs = self.problem, self.members.shape[1]
        steepness = _steepness(problem, self.members)
        labels = (problem.labels - self.centre) / self.unit
        weights = steepness * problem.prior[:, np.newaxis]
        free = 0 if problem.unbiased else problem.k
        cost = np.concatenate((np.zeros(arcs), -labels @ weights, weights.sum(axis=0) / 2, np.zeros(free)))
        quadratic = sparse.diags_array(np.concatenate((np.zeros(3 * arcs), problem.bias_weights[:free])))
        rows = differences(sparse.csr_array(steepness))
        biases = -differences(sparse.eye_array(problem.k, format="csr"))[:, :free]
        no_quotients = sparse.csr_array((problem.k, arcs))
        equal = sparse.block_array([[rows, None, no_quotients, None], [None, rows, None, biases]])
        first = np.zeros(problem.k)
        first[0] = 1.0
        equal_to = np.concatenate((first, np.append(labels[:1], np.diff(labels))))
        box = self._box(arcs, free)
        return ConicProgram(
            sparse.csc_array(quadratic), cost, sparse.csc_array(equal), equal_to, box, np.zeros(box.shape[0]), arcs
        )

    def _box(self, arcs: int, free: int) -> sparse.csc_array:
        """Rows ``low c <= m <= high c`` as ``rows @ x <= 0``."""
        one, rest = sparse.eye_array(arcs), sparse.csr_array((arcs, arcs + free))
        blocks = []
        if math.isfinite(self.problem.outputs.high):
            blocks.append(sparse.hstack((-(self.problem.outputs.high - self.centre) / self.unit * one, one, rest)))
        if math.isfinite(self.problem.outputs.low):
            blocks.append(sparse.hstack(((self.problem.outputs.low - self.centre) / self.unit * one, -one, rest)))
        return sparse.csc_array(sparse.vstack(blocks)) if blocks else sparse.csc_array((0, 3 * arcs + free))

    def read(self, answer: ConicSolution) -> tuple[Staircase, Dual]:
        """The columns in use and the multipliers of rows and biases, in the units of the problem."""
        problem, k, arcs = self.problem, self.problem.k, self.members.shape[1]
        masses, moments = np.maximum(answer.x[:arcs], 0.0), answer.x[arcs : 2 * arcs]
        used = masses > UNUSED
        outputs = self.centre + self.unit * moments[used] / masses[used]
        outputs = np.clip(outputs, problem.outputs.low, problem.outputs.high)
        staircase = Staircase(self.members[:, used], outputs, masses[used] * math.exp(-problem.epsilon))
        labels = (problem.labels - self.centre) / self.unit
        alpha = undifferenced(answer.equal_dual[:k]) + problem.prior * labels**2 / 2
        beta = np.where(problem.bias_weights > 0, undifferenced(answer.equal_dual[k:]), 0.0)
        beta *= self.unit
        return staircase, Dual(self.unit**2 * alpha - beta * self.centre, beta)


def _steepness(problem: Problem, members: NDArray[np.bool_]) -> Floats:
    """Staircase columns over ``E``: 1 for the favoured labels and ``exp(-epsilon)`` for the others."""
    return np.where(members, 1.0, math.exp(-problem.epsilon))
