r"""The least of the largest losses over labels, and the prior under which nothing better is possible: one cone program.

For a given prior the dual of the flow program (:mod:`optrand.solvers.flow.program`) has two multipliers a label, of its
row and of its bias. Without a prior the largest loss over labels is the largest average over priors, so the prior
becomes a third variable. Fold its moments into the multipliers, :math:`a_y = p_y y^2 / 2 - \alpha_y` and :math:`b_y =
p_y y + \beta_y`; then the reduced cost of an interval column at the output :math:`v` is a parabola whose coefficients
are linear in the variables,

.. math:: A_j - B_j v + \tfrac12 P_j v^2 \geq 0, \qquad A_j = \sum_y s_y a_y, \quad B_j = \sum_y s_y b_y, \quad
          P_j = \sum_y s_y p_y,

and is nowhere negative if and only if :math:`B_j^2 \leq 2 P_j A_j`: one second-order cone an arc. The program is

.. math:: \max \sum_y b_y y - \sum_y a_y - \tfrac12 \sum_y p_y y^2 - \sum_y \frac{(b_y - p_y y)^2}{2 \lambda p_y},
          \qquad p \geq 0, \quad \sum_y p_y = 1,

the last sum, another cone a label, only where the bias penalty :math:`\lambda` is finite. The multipliers of the arcs'
cones are the masses of the randomizer; its outputs :math:`v = B_j / P_j` are always determined, since :math:`P_j \geq
\sum p_y = 1`, also where the prior vanishes; and the multiplier of :math:`p_y \geq 0` is by how much the loss of the
label stays below the largest one.

A worst prior often vanishes at half of the labels, and then many randomizers are optimal. With :math:`p_y \geq \delta /
k` instead, what is minimised is :math:`(1 - \delta)` times the largest loss and :math:`\delta` times the average one:
that picks a randomizer with few outputs, and costs at most :math:`\delta` of the value.

Labels are measured from their middle, in a unit in which an optimal largest loss is about one; sums over arcs are
divided by :math:`E`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.model.arcs import Arcs, Indices
from optrand.model.solution import Dual
from optrand.solvers.backends.conic import Cones, ConicProgram, ConicSolution
from optrand.solvers.flow.arc_program import ArcProgram
from optrand.solvers.flow.interval_prices import cheap
from optrand.solvers.flow.nodes import Nodes, Rows, beside, composed
from optrand.solvers.scales import attainable_largest_loss

__all__ = ["TINY", "MinimaxPoint", "MinimaxProgram"]

TINY = np.finfo(float).tiny
"""Floor of multipliers and slacks."""


@dataclass(frozen=True, eq=False)
class MinimaxPoint:
    """A primal and a dual answer to a :class:`MinimaxProgram`, in its units.

    Attributes
    ----------
    potentials : (k, 3) array
        Of ``a``, ``b`` and ``p`` as :class:`~optrand.solvers.flow.nodes.Nodes` has them.
    multipliers : (n + k + n * ends,) array
        Masses of the arcs, times ``E``; then by how much each label's loss stays below the largest; then how far an arc
        is from an end of the outputs, times its mass.
    slacks : (n + k + n * ends,) array
        Reduced costs of the arcs, over ``E``; then the prior, less its floor; then how much an arc leans on an end.
    biases : (k,) array
        Of each label; zero where no bias is allowed.
    """

    potentials: Floats
    multipliers: Floats
    slacks: Floats
    biases: Floats

    @property
    def bound(self) -> NDArray[np.bool_]:
        """Constraints that hold with equality: of the arcs in use, and of the labels that lose less than others."""
        return self.multipliers > self.slacks


@dataclass(frozen=True, eq=False)
class MinimaxProgram(ArcProgram):
    """The cone program over some arcs, for squared loss and a positive bias penalty.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval. Its prior is not looked at.
    first, last : (n,) arrays of int
        The interval of labels of each arc, both ends in.
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

    @cached_property
    def nodes(self) -> Nodes:
        """The arcs as matrices."""
        return Nodes(self.k, self.first, self.last, self.problem.epsilon)

    @cached_property
    def centre(self) -> float:
        """Labels and outputs are measured from the middle of the labels."""
        return float(self.problem.labels[0] + np.ptp(self.problem.labels) / 2)

    @cached_property
    def unit(self) -> float:
        """Labels and outputs are measured in this; losses, and so potentials of ``a``, in its square."""
        return math.sqrt(attainable_largest_loss(self.problem))

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Finite ends of the box, each after the direction, 1 or -1, in which outputs lie."""
        return [(side, end) for side, end in zip((1.0, -1.0), self.box, strict=True) if math.isfinite(end)]

    @cached_property
    def gain(self) -> Floats:
        """The linear part of what is maximised, as coefficients of the potentials, shape ``(k, 3)``."""
        amounts = np.column_stack((-np.ones(self.k), self.labels, -(self.labels**2) / 2))
        return np.asarray(self.nodes.labels.T @ amounts)

    def amounts(self, potentials: Floats) -> Floats:
        """``a``, ``b`` and the prior of each label, shape ``(k, 3)``."""
        return np.asarray(self.nodes.labels @ potentials)

    def curves(self, potentials: Floats, leans: Floats) -> tuple[Floats, Floats, Floats]:
        """The least reduced cost of each arc, the output at which it is least, and the weight; over ``E``.

        Where outputs are boxed, a parabola need only be above a line with the slope ``r >= 0`` that vanishes at one end
        of the box; `leans` holds these slopes, one an end and arc.
        """
        a, b, weights = np.asarray(self.nodes.arcs @ potentials).T
        for (side, end), lean in zip(self.ends, leans.reshape(-1, self.n), strict=True):
            a, b = a + side * end * lean, b + side * lean
        return a - b**2 / (2 * weights), b / weights, weights

    def only(self, kept: NDArray[np.bool_]) -> MinimaxProgram:
        """The program on some of the arcs."""
        return replace(self, first=self.first[kept], last=self.last[kept])

    def build(self) -> ConicProgram:
        """Conic minimisation; the variables are the potentials, row by row, one an arc and end, and the charges."""
        k, n, ends = self.k, self.n, self.ends
        slopes, charges = len(ends) * n, 0 if self.problem.unbiased else k
        variables = 3 * k + slopes + charges
        every = sparse.eye_array(n, format="csr")
        a, b, weights = (composed(self.nodes.arcs, *side) for side in _sides(n))
        cones = [
            _cones(
                beside(a, *(side * end * every for side, end in ends), columns=variables),
                beside(b, *(side * every for side, _ in ends), columns=variables),
                beside(weights, columns=variables),
            )
        ]
        _, pull, prior = (composed(self.nodes.labels, *side) for side in _sides(k))
        prior = beside(prior, columns=variables)
        if charges:
            charge = sparse.eye_array(k, variables, k=variables - k, format="csr")
            beta = beside(pull, columns=variables) - sparse.diags_array(self.labels) @ prior
            cones.append(_cones(charge, beta, self.problem.bias_penalty * prior))
        rows = sparse.csc_array(sparse.vstack(cones))
        positive = sparse.csr_array(sparse.eye_array(slopes, variables, k=3 * k))
        return ConicProgram(
            quadratic=sparse.csc_array((variables, variables)),
            cost=np.concatenate((-self.gain.ravel(), np.zeros(slopes), np.ones(charges))),
            equal=sparse.csc_array(sparse.eye_array(1, variables, k=3 * k - 1)),
            equal_to=np.ones(1),
            less=sparse.csc_array(-sparse.vstack([prior, positive])),
            less_than=np.concatenate((np.full(k, -self.floor / k), np.zeros(slopes))),
            cones=Cones(rows, np.zeros(rows.shape[0])),
        )

    def read(self, answer: ConicSolution) -> MinimaxPoint:
        """The engine's answer in these units; multipliers and slacks are kept above 0."""
        k, n = self.k, self.n
        potentials, leans = answer.x[: 3 * k].reshape(k, 3), answer.x[3 * k : 3 * k + n * len(self.ends)]
        high, low, side = answer.cone_slack[:n].T
        _, outputs, weights = self.curves(potentials, leans)
        slacks = (high - np.hypot(low, side)) * (high + np.hypot(low, side)) / (2 * weights)
        masses = answer.cone_dual[:n, 0] + answer.cone_dual[:n, 1]
        means, squares = (self.averages(masses, outputs**power) for power in (1, 2))
        biases = np.zeros(k) if self.problem.unbiased else means - self.labels
        # Where no bias is allowed, losses are read as if there were none.
        losses = squares / 2 - self.labels * (self.labels + biases) + self.labels**2 / 2
        if not self.problem.unbiased:
            losses += self.problem.bias_penalty * biases**2 / 2
        prior = self.amounts(potentials)[:, 2]
        away = [masses * side * (outputs - end) for side, end in self.ends]
        return MinimaxPoint(
            potentials=potentials,
            multipliers=np.maximum(np.concatenate((masses, losses.max() - losses, *away)), TINY),
            slacks=np.maximum(np.concatenate((slacks, prior - self.floor / k, leans)), TINY),
            biases=biases,
        )

    def averages(self, masses: Floats, values: Floats) -> Floats:
        """The average over each label's row of one value an arc."""
        arcs = Arcs(self.k, self.first, self.last, values, masses)
        averages: Floats = self.nodes.least * (masses @ values) + self.nodes.excess * arcs.over(masses * values)
        return averages

    def lacking(self, potentials: Floats, tolerance: float) -> tuple[Indices, Indices]:
        """The intervals that cost less than ``-tolerance`` (:func:`optrand.solvers.flow.interval_prices.cheap`)."""
        inner = np.concatenate((np.zeros((1, 3)), potentials[:-1], self.nodes.excess * potentials[-1:]))
        return cheap(self.nodes.least * potentials[-1, ::-1], inner.T[::-1], self.box, tolerance)

    def prior(self, point: MinimaxPoint) -> Floats:
        """The worst prior, for a floor of zero: nothing at labels whose loss stays below the largest.

        Raises
        ------
        SolverFailed
            If that leaves no label.
        """
        prior = np.where(point.bound, 0.0, point.slacks)[self.n : self.n + self.k]
        if not 0 < prior.sum() < math.inf:
            raise SolverFailed("all labels seem to lose less than the largest loss: epsilon is too large for floats")
        return np.asarray(prior / prior.sum())

    def dual(self, point: MinimaxPoint, prior: Floats) -> Dual:
        """The multipliers of the problem under `prior`, in its units."""
        a, b, _ = self.amounts(point.potentials).T
        alpha, beta = prior * self.labels**2 / 2 - a, b - prior * self.labels
        if not self.problem.unbiased:
            beta = np.where(prior > 0, beta, 0.0)
        alpha, beta = alpha * self.unit**2, beta * self.unit
        return Dual(alpha - beta * self.centre, beta)

    def arcs(self, point: MinimaxPoint) -> Arcs:
        """The randomizer of a point in the units of the problem, in increasing order of outputs."""
        outputs = self.centre + self.unit * self.curves(point.potentials, point.slacks[self.n + self.k :])[1]
        outputs = np.clip(outputs, self.problem.outputs.low, self.problem.outputs.high)
        order = np.lexsort((self.last, self.first, outputs))
        masses = self.nodes.least * point.multipliers[: self.n]
        return Arcs(self.k, self.first[order], self.last[order], outputs[order], masses[order])


def _sides(n: int) -> Floats:
    """Coefficients of `n` rows that read one of the three potentials, for each of them."""
    return np.repeat(np.eye(3)[:, :, np.newaxis], n, axis=2)


def _cones(a: Rows, b: Rows, weights: Rows) -> Rows:
    """The cones ``(a + weights / 2, a - weights / 2, b)``, that is ``b**2 <= 2 weights a``, one after the other."""
    half: Rows = weights * 0.5
    stacked = sparse.csr_array(-sparse.vstack([sparse.csr_array(a + half), sparse.csr_array(a - half), b]))
    return sparse.csr_array(stacked[np.arange(stacked.shape[0]).reshape(3, -1).T.ravel()])
