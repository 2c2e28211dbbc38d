r"""Optimal randomizers with outputs anywhere on a line: flows on a line, as a cone program.

For half squared error, and any care for bias, the columns of an optimal table are, without loss, *interval* staircases,
and each needs one output only ([B23], Claims 11 to 14). Read the interval of the labels ``a ... b`` as an arc from
node ``a`` to node ``b + 1`` of the nodes ``0 ... k``. A randomizer is then a mass :math:`c_j \geq 0` and an output
:math:`v_j` an arc, and that its rows sum to one says that mass is conserved at every inner node.

This module writes the *dual*, which is smaller: the multipliers :math:`\alpha_y, \beta_y` of the rows and of the biases
are differences of potentials at the nodes, and an arc prices at

.. math:: A_j = \sum_y s_y \alpha_y = \sum_y \alpha_y + (E - 1)(\pi_{b+1} - \pi_a), \qquad B_j \text{ likewise from }
          \beta,

so it touches two nodes and the total. With the weight, mean and spread of the labels as the arc sees them,

.. math:: P_j = \sum_y s_y p_y, \quad \mu_j = \frac{1}{P_j} \sum_y s_y p_y y, \quad
          V_j = \frac12 \sum_y s_y p_y (y - \mu_j)^2,

the least reduced cost of the arc over all outputs :math:`v` is, at :math:`v = \mu_j + B_j / P_j`,

.. math:: V_j - A_j - \mu_j B_j - \frac{B_j^2}{2 P_j} \; \geq \; 0:

one second-order cone an arc. The program is to maximise :math:`\sum \alpha_y + \sum \beta_y y - \sum \beta_y^2 / (2
\lambda p_y)`, the last sum only where the bias penalty :math:`\lambda` is finite; the masses are the multipliers of the
cones. Where outputs are boxed, :math:`v` is clipped, and the cones gain a multiplier for each end.

Everything is divided by :math:`E`, measured from a label in the middle, and in a unit in which an optimal loss is about
one; at large epsilon, where spreads are a small difference of large sums, these are carried in extended precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.arcs import Arcs
from optrand.model.solution import Dual
from optrand.solvers.backends.conic import Cones, ConicProgram, ConicSolution
from optrand.solvers.flow.arc_program import ArcProgram
from optrand.solvers.scales import attainable_loss

__all__ = ["FlowPoint", "FlowProgram"]

FAINT = 1e-12
"""Biases are charged as if no weight of one were smaller: potentials, which are sums, have no digits for less."""


@dataclass(frozen=True, eq=False)
class FlowPoint:
    """A primal and a dual answer to a :class:`FlowProgram`, in its units.

    Attributes
    ----------
    potentials : (k, 2) array
        Of ``alpha`` and ``beta`` at the inner nodes ``1 ... k - 1``, times ``1 - exp(-epsilon)``, that of node 0 being
        0; the last row holds the totals ``sum alpha`` and ``sum beta``.
    masses : (n,) array
        Of the arcs, times ``E``.
    slacks : (n,) array
        Reduced costs of the arcs, over ``E``.
    """

    potentials: Floats
    masses: Floats
    slacks: Floats

    @property
    def complementarity(self) -> Floats:
        """Logarithm of mass over reduced cost: how much more an arc looks used than unused."""
        ratio: Floats = np.log10(self.masses) - np.log10(self.slacks)
        return ratio


@dataclass(frozen=True, eq=False)
class FlowProgram(ArcProgram):
    """The cone program over some arcs, for squared loss and a positive bias penalty.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval.
    first, last : (n,) arrays of int
        The interval of labels of each arc, both ends in.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> program = FlowProgram(problem, np.array([0, 1]), np.array([0, 1]))
    >>> program.build().cones.rows.shape
    (6, 4)
    """

    @cached_property
    def least(self) -> float:
        """``1 / E``."""
        return math.exp(-self.problem.epsilon)

    @cached_property
    def excess(self) -> float:
        """``1 - 1 / E``."""
        return -math.expm1(-self.problem.epsilon)

    @cached_property
    def centre(self) -> float:
        """Labels and outputs are measured from the label nearest to the mean of the prior."""
        labels = self.problem.labels
        mean = labels[0] + self.problem.prior @ (labels - labels[0])
        return float(labels[np.abs(labels - mean).argmin()])

    @cached_property
    def unit(self) -> float:
        """Labels and outputs are measured in this; losses, and so potentials of ``alpha``, in its square."""
        return math.sqrt(attainable_loss(self.problem))

    @cached_property
    def charges(self) -> Floats | None:
        """``1 / (bias_penalty * prior)`` for each label, up to a limit; None where bias is forbidden."""
        return None if self.problem.unbiased else 1 / np.maximum(self.problem.bias_weights, FAINT)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Weight, mean and spread of each arc."""
        prior, labels = self.problem.prior.astype(np.longdouble), self.labels.astype(np.longdouble)
        prior /= prior.sum()
        mean = prior @ labels
        powers = np.stack((prior, prior * (labels - mean), prior * (labels - mean) ** 2))
        sums = np.concatenate((np.zeros((3, 1), powers.dtype), np.cumsum(powers, axis=1)), axis=1)
        mass, moment, square = sums[:, self.last + 1] - sums[:, self.first]
        weights = self.least + self.excess * mass
        means = self.excess * moment / weights
        inside = np.maximum(square - 2 * means * moment + means**2 * mass, 0)
        spreads = (self.least * (sums[2, -1] + means**2) + self.excess * inside) / 2
        return tuple(x.astype(np.float64) for x in (weights, means + mean, spreads))

    @property
    def weights(self) -> Floats:
        """``P_j / E``."""
        return self._moments[0]

    @property
    def means(self) -> Floats:
        """``mu_j``."""
        return self._moments[1]

    @property
    def spreads(self) -> Floats:
        """``V_j / E``."""
        return self._moments[2]

    @cached_property
    def totals(self) -> Floats:
        """The coefficient of the total in each arc's price: that of node ``k`` is a part of it."""
        totals: Floats = self.least + self.excess * (self.last == self.k - 1)
        return totals

    @cached_property
    def gain(self) -> Floats:
        """The linear part of what is maximised, as coefficients of the potentials, shape ``(k, 2)``."""
        gain = np.zeros((self.k, 2))
        gain[:-1, 1] = -np.diff(self.labels) / self.excess
        gain[-1] = 1.0, self.labels[-1]
        return gain

    def prices(self, potentials: Floats) -> Floats:
        """``A_j`` and ``B_j`` over ``E`` of every arc, shape ``(n, 2)``."""
        nodes = np.concatenate((np.zeros((1, 2)), potentials[:-1], self.excess * potentials[-1:]))
        prices: Floats = self.least * potentials[-1] + nodes[self.last + 1] - nodes[self.first]
        return prices

    def gather(self, amounts: Floats) -> Floats:
        """The transpose of :meth:`prices`: amounts of the arcs, shape ``(n, 2)``, summed at the nodes."""
        gathered = np.empty((self.k, 2))
        for side in (0, 1):
            nodes = np.bincount(self.last + 1, amounts[:, side], self.k + 1)
            nodes -= np.bincount(self.first, amounts[:, side], self.k + 1)
            gathered[:-1, side] = nodes[1:-1]
            gathered[-1, side] = self.least * amounts[:, side].sum() + self.excess * nodes[-1]
        return gathered

    def slopes(self, potentials: Floats) -> Floats:
        """``beta`` of every label."""
        nodes = np.concatenate(([0.0], potentials[:-1, 1], [self.excess * potentials[-1, 1]]))
        slopes: Floats = np.diff(nodes) / self.excess
        return slopes

    def charge_gradient(self, potentials: Floats) -> Floats:
        """The derivative of ``sum charges beta^2 / 2`` by the potentials."""
        gradient = np.zeros((self.k, 2))
        if self.charges is not None:
            pull = self.charges * self.slopes(potentials) / self.excess
            gradient[:-1, 1] = pull[:-1] - pull[1:]
            gradient[-1, 1] = self.excess * pull[-1]
        return gradient

    def reduced_costs(self, potentials: Floats) -> tuple[Floats, Floats]:
        """The least reduced cost of each arc over ``E``, and the output at which it is least."""
        a, b = self.prices(potentials).T
        outputs = np.clip(self.means + b / self.weights, *self.box)
        return self.spreads + self.weights * (outputs - self.means) ** 2 / 2 - a - b * outputs, outputs

    def build(self) -> ConicProgram:
        """The dual as a minimisation; variables are the potentials, row by row, and where boxed one an arc and end.

        The cone ``(tau + P / 2, tau - P / 2, b)`` says that ``b^2 <= 2 P tau``.
        """
        boxed = [(side, end) for side, end in ((1.0, self.box[0]), (-1.0, self.box[1])) if math.isfinite(end)]
        extra = len(boxed) * self.n
        ends = 2 * self.k + extra
        charged = 0 if self.charges is None else self.k
        variables = ends + charged
        half = self.weights / 2
        right = np.stack((self.spreads + half, self.spreads - half, np.zeros(self.n)), axis=1)
        return ConicProgram(
            quadratic=sparse.csc_array(sparse.diags_array(np.repeat([0.0, 1.0], [ends, charged]))),
            cost=np.concatenate((-self.gain.ravel(), np.zeros(extra + charged))),
            equal=self._charging(variables),
            equal_to=np.zeros(charged),
            less=sparse.csc_array(
                (-np.ones(extra), (np.arange(extra), np.arange(2 * self.k, ends))), shape=(extra, variables)
            ),
            less_than=np.zeros(extra),
            cones=Cones(self._cone_rows(boxed, variables), right.ravel()),
        )

    def _cone_rows(self, boxed: list[tuple[float, float]], variables: int) -> sparse.csc_array:
        """The three rows of each cone; every entry is ``(arc, variable of alpha, variable of beta, coefficient)``."""
        arcs = np.arange(self.n)
        inner, left = self.last < self.k - 1, self.first > 0
        arc = np.concatenate((arcs, arcs[inner], arcs[left]))
        node = np.concatenate((np.full(self.n, self.k - 1), self.last[inner], self.first[left] - 1))
        value = np.concatenate((self.totals, np.ones(int(inner.sum())), -np.ones(int(left.sum()))))
        means = self.means[arc] * value
        # In the first two rows a + mean * b, in the third -b.
        parts = [
            (3 * arc, 2 * node, value),
            (3 * arc + 1, 2 * node, value),
            (3 * arc, 2 * node + 1, means),
            (3 * arc + 1, 2 * node + 1, means),
            (3 * arc + 2, 2 * node + 1, -value),
        ]
        for number, (side, end) in enumerate(boxed):
            column = 2 * self.k + number * self.n + arcs
            offset = side * (self.means - end)
            parts += [(3 * arcs, column, offset), (3 * arcs + 1, column, offset)]
            parts.append((3 * arcs + 2, column, np.full(self.n, -side)))
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sparse.csc_array((values, (rows, columns)), shape=(3 * self.n, variables))

    def _charging(self, variables: int) -> sparse.csc_array:
        """Rows that say what the last variables are: ``beta`` over the root of its weight, a label."""
        if self.charges is None:
            return sparse.csc_array((0, variables))
        node = np.arange(self.k)
        values = np.where(node < self.k - 1, 1.0, self.excess) / self.excess
        entries = np.concatenate((values, np.full(self.k - 1, -1 / self.excess), -1 / np.sqrt(self.charges)))
        rows = np.concatenate((node, node[1:], node))
        columns = np.concatenate((2 * node + 1, 2 * node[:-1] + 1, variables - self.k + node))
        return sparse.csc_array((entries, (rows, columns)), shape=(self.k, variables))

    def read(self, answer: ConicSolution) -> FlowPoint:
        """The engine's answer in these units; masses and slacks are kept above 0."""
        potentials = answer.x[: 2 * self.k].reshape(self.k, 2)
        high, low, side = answer.cone_slack.T
        # At an epsilon of hundreds a weight may be next to nothing, and no cost too high.
        with np.errstate(over="ignore"):
            slacks = (high - np.hypot(low, side)) * (high + np.hypot(low, side)) / (2 * self.weights)
        masses = answer.cone_dual[:, 0] + answer.cone_dual[:, 1]
        tiny = np.finfo(float).tiny
        return FlowPoint(potentials, np.maximum(masses, tiny), np.clip(slacks, tiny, 1 / tiny))

    def dual(self, potentials: Floats) -> Dual:
        """The multipliers in the units of the problem."""
        nodes = np.concatenate((np.zeros((1, 2)), potentials[:-1], self.excess * potentials[-1:]))
        alpha, beta = np.diff(nodes, axis=0).T / self.excess * np.array([[self.unit**2], [self.unit]])
        if self.charges is not None:
            beta *= self.problem.bias_weights * self.charges
        return Dual(alpha - beta * self.centre, beta)

    def arcs(self, point: FlowPoint) -> Arcs:
        """The randomizer of a point in the units of the problem, in increasing order of outputs."""
        outputs = self.centre + self.unit * self.reduced_costs(point.potentials)[1]
        outputs = np.clip(outputs, self.problem.outputs.low, self.problem.outputs.high)
        order = np.lexsort((self.last, self.first, outputs))
        return Arcs(self.k, self.first[order], self.last[order], outputs[order], self.least * point.masses[order])
