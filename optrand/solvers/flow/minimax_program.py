r"""The least of the largest losses over labels, and the prior under which nothing better is possible: one cone program.

Without a prior the largest loss over labels is the largest average over priors, so the prior becomes a third variable
of the flow program (:mod:`optrand.solvers.flow.program`). Fold its moments into the multipliers, :math:`a_y = p_y y^2 /
2 - \alpha_y` and :math:`b_y = p_y y + \beta_y`; then the reduced cost of an interval column at the output :math:`v` is
a parabola whose coefficients are linear in the variables,

.. math:: A_j - B_j v + \tfrac12 P_j v^2 \geq 0, \qquad A_j = \sum_y s_y a_y, \quad B_j = \sum_y s_y b_y, \quad
          P_j = \sum_y s_y p_y.

The program is

.. math:: \max \sum_y b_y y - \sum_y a_y - \tfrac12 \sum_y p_y y^2 - \sum_y \frac{(b_y - p_y y)^2}{2 \lambda p_y},
          \qquad p \geq 0, \quad \sum_y p_y = 1,

the last sum, another cone a label, only where the bias penalty :math:`\lambda` is finite. Outputs :math:`v = B_j / P_j`
are always determined, since :math:`P_j \geq \sum p_y = 1`, also where the prior vanishes; and the multiplier of
:math:`p_y \geq 0` is by how much the loss of the label stays below the largest one.

A worst prior often vanishes at half of the labels, and then many randomizers are optimal. With :math:`p_y \geq \delta /
k` instead, what is minimised is :math:`(1 - \delta)` times the largest loss and :math:`\delta` times the average one:
that picks a randomizer with few outputs, and costs at most :math:`\delta` of the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.model.solution import Dual
from optrand.solvers.backends.conic import Cones, ConicProgram
from optrand.solvers.flow.nodes import beside
from optrand.solvers.flow.program import ArcProgram, Coefficients, Moments, Point, second_order
from optrand.solvers.scales import attainable_largest_loss

__all__ = ["MinimaxProgram"]


@dataclass(frozen=True, eq=False)
class MinimaxProgram(ArcProgram):
    """The cone program over some arcs whose prior is a variable; its potentials are those of ``a``, ``b`` and ``p``.

    Parameters
    ----------
    problem : Problem
        Its prior is not looked at.
    first, last : (n,) arrays of int
    floor : float
        ``k`` times the least prior that a label may have.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> program = MinimaxProgram(problem, np.array([0, 1]), np.array([0, 1]))
    >>> program.build().cones.rows.shape
    (6, 6)
    """

    floor: float = 0.0

    sides = 3

    @cached_property
    def centre(self) -> float:
        """Labels and outputs are measured from the middle of the labels."""
        return float(self.problem.labels[0] + np.ptp(self.problem.labels) / 2)

    @cached_property
    def unit(self) -> float:
        """The root of the least of the largest losses of some closed forms."""
        return math.sqrt(attainable_largest_loss(self.problem))

    @cached_property
    def gain(self) -> Floats:
        """Coefficients of ``sum b y - sum a - sum p y**2 / 2``."""
        return self.nodes.gain(np.column_stack((-np.ones(self.k), self.labels, -(self.labels**2) / 2)))

    @cached_property
    def moments(self) -> Moments:
        """Zeros: weight, mean and spread are variables."""
        return Moments(*np.zeros((3, self.n)))

    @property
    def curves_by(self) -> tuple[Coefficients, Coefficients, Coefficients]:
        """``A``, ``B`` and ``P``."""
        return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

    @property
    def charges_by(self) -> tuple[Coefficients, Coefficients]:
        """``b - p y`` and ``p``."""
        return (0.0, 1.0, -self.labels), (0.0, 0.0, 1.0)

    @cached_property
    def bias_weights(self) -> Floats:
        """Zeros: the prior is a variable."""
        return np.zeros(self.k)

    @property
    def fixed(self) -> int:
        """The total prior."""
        return 3 * self.k - 1

    def without_floor(self) -> MinimaxProgram:
        """The program with no other bound of the prior than 0."""
        return replace(self, floor=0.0)

    @property
    def bounded(self) -> int:
        """All labels."""
        return self.k

    def build(self) -> ConicProgram:
        """Conic minimisation; the variables are the potentials, node by node, the leans, and one a priced bias."""
        k, charges = self.k, 0 if self.problem.unbiased else self.k
        variables = self.columns + charges
        arcs, right = self.arc_cones(variables)
        cones = [arcs]
        beta, prior = (beside(rows, columns=variables) for rows in self.label_rows)
        if charges:
            charge = sparse.csr_array(sparse.eye_array(k, variables, k=self.columns))
            cones.append(second_order(charge, beta, self.problem.bias_penalty * prior))
        positive = beside(self.lean_rows, columns=variables)
        return ConicProgram(
            quadratic=sparse.csc_array((variables, variables)),
            cost=np.concatenate((-self.gain.ravel(), np.zeros(self.columns - 3 * k), np.ones(charges))),
            equal=sparse.csc_array(sparse.eye_array(1, variables, k=3 * k - 1)),
            equal_to=np.ones(1),
            less=sparse.csc_array(-sparse.vstack([prior, positive])),
            less_than=np.concatenate((np.full(k, -self.floor / k), np.zeros(positive.shape[0]))),
            cones=Cones(sparse.csc_array(sparse.vstack(cones)), np.append(right, np.zeros(3 * charges))),
        )

    def _bounded(self, potentials: Floats, masses: Floats, outputs: Floats, biases: Floats) -> tuple[Floats, Floats]:
        """By how much labels' losses stay below the largest, and the prior above its floor."""
        # Where no bias is allowed, losses are read as if there were none.
        losses = self.averages(masses, outputs**2) / 2 - self.labels * (self.labels / 2 + biases)
        if not self.problem.unbiased:
            losses += self.problem.bias_penalty * biases**2 / 2
        return losses.max() - losses, self.nodes.amounts(potentials)[:, 2] - self.floor / self.k

    def folded(self, potentials: Floats) -> Floats:
        """The potentials as they are."""
        return potentials

    def prior(self, point: Point) -> Floats:
        """The worst prior, for a floor of zero: nothing at labels whose loss stays below the largest.

        Raises
        ------
        SolverFailed
            If that leaves no label.
        """
        prior = np.where(point.multipliers > point.slacks, 0.0, point.slacks)[self.n : self.n + self.k]
        if not 0 < prior.sum() < math.inf:
            raise SolverFailed("all labels seem to lose less than the largest loss: epsilon is too large for floats")
        return np.asarray(prior / prior.sum())

    def dual(self, potentials: Floats, prior: Floats) -> Dual:
        """The multipliers of the problem under `prior`, in its units."""
        a, b, _ = self.nodes.amounts(potentials).T
        alpha, beta = prior * self.labels**2 / 2 - a, b - prior * self.labels
        if not self.problem.unbiased:
            beta = np.where(prior > 0, beta, 0.0)
        alpha, beta = alpha * self.unit**2, beta * self.unit
        return Dual(alpha - beta * self.centre, beta)
