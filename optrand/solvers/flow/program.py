r"""Optimal randomizers with outputs anywhere on a line: flows on a line, as a cone program.

For half squared error, and a positive price of bias, the columns of an optimal table are, without loss, *interval*
staircases, and each needs one output only ([B23], Claims 11 to 14). Read the interval of the labels ``a ... b`` as an
arc from node ``a`` to node ``b + 1`` of the nodes ``0 ... k``. A randomizer is then a mass :math:`c_j \geq 0` and an
output :math:`v_j` an arc, and that its rows sum to one says that mass is conserved at every inner node.

This module writes the *dual*, which is smaller: the multipliers of the labels are differences of potentials at the
nodes (:mod:`optrand.solvers.flow.nodes`), so an arc reads two nodes and the total. Its reduced cost at the output
:math:`\mu_j + u`, over :math:`E`, is a parabola whose coefficients are linear in the potentials, and nowhere negative
if and only if

.. math:: T_j - B_j u + \tfrac12 P_j u^2 \geq T_j - \frac{B_j^2}{2 P_j} \geq 0:

one second-order cone an arc, whose multiplier is the mass. Where outputs are boxed, a parabola need only be above a
line of slope :math:`r \geq 0` that vanishes at an end of the box: one more variable an arc and end, its *lean*.

For a given prior (:class:`FlowProgram`), with the weight, mean and spread of the labels as the arc sees them,

.. math:: P_j = \sum_y s_y p_y, \quad \mu_j = \frac{1}{P_j} \sum_y s_y p_y y, \quad
          V_j = \frac12 \sum_y s_y p_y (y - \mu_j)^2, \quad T_j = V_j - A_j - \mu_j B_j,

where :math:`A_j, B_j` are the sums :math:`\sum_y s_y \alpha_y, \sum_y s_y \beta_y` of the multipliers of the rows and
of the biases. The program is to maximise :math:`\sum \alpha_y + \sum \beta_y y - \sum \beta_y^2 / (2 \lambda p_y)`, the
last sum only where the bias penalty :math:`\lambda` is finite.

Everything is divided by :math:`E`, measured from a label in the middle, and in a unit in which an optimal loss is about
one; at large epsilon, where spreads are a small difference of large sums, these are carried in extended precision.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.arcs import Arcs, Indices
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.solvers.backends.conic import Cones, ConicProgram, ConicSolution
from optrand.solvers.flow.nodes import Aligned, Nodes, Rows, beside, composed, diagonal
from optrand.solvers.scales import attainable_loss

__all__ = ["TINY", "ArcProgram", "FlowProgram", "Point"]

TINY = np.finfo(float).tiny
"""Floor of multipliers and slacks."""

FAINT = 1e-20
"""Biases are charged as if no weight of one were smaller."""

Coefficients = tuple["float | Floats", ...]
"""Of each potential of a node in a row."""


class Moments(NamedTuple):
    """Constant parts of ``P_j``, ``mu_j`` and ``T_j`` of the arcs, over ``E``."""

    weights: Floats
    means: Floats
    spreads: Floats


@dataclass(frozen=True, eq=False)
class Point:
    """A primal and a dual answer to an :class:`ArcProgram`, in its units.

    Attributes
    ----------
    potentials : (k, sides) array
        As :class:`~optrand.solvers.flow.nodes.Nodes` has them.
    multipliers : (n + bounded + n * ends,) array
        Masses of the arcs, times ``E``; then, where the prior is a variable, by how much each label's loss stays below
        the largest; then how far an arc is from an end of the outputs, times its mass.
    slacks : (n + bounded + n * ends,) array
        Reduced costs of the arcs, over ``E``; then a variable prior, less its floor; then the leans.
    biases : (k,) array
        Of each label; zero where no bias is allowed.
    """

    potentials: Floats
    multipliers: Floats
    slacks: Floats
    biases: Floats

    @property
    def complementarity(self) -> Floats:
        """Logarithm of multiplier over slack: of an arc, how much more it looks used than unused."""
        ratio: Floats = np.log10(self.multipliers) - np.log10(self.slacks)
        return ratio


@dataclass(frozen=True, eq=False)
class ArcProgram(ABC):
    """A cone program over some arcs, for squared loss and a positive bias penalty.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval.
    first, last : (n,) arrays of int
        The interval of labels of each arc, both ends in.
    """

    problem: Problem
    first: Indices
    last: Indices

    sides: ClassVar[int]
    """The number of potentials of a node."""

    @property
    def k(self) -> int:
        """The number of labels."""
        return self.problem.k

    @property
    def n(self) -> int:
        """The number of arcs."""
        return self.first.size

    @cached_property
    def nodes(self) -> Nodes:
        """The arcs as matrices."""
        return Nodes(self.k, self.first, self.last, self.problem.epsilon)

    @property
    @abstractmethod
    def centre(self) -> float:
        """Origin from which labels and outputs are measured."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Unit in which labels and outputs are measured; losses in its square."""

    @property
    @abstractmethod
    def gain(self) -> Floats:
        """The linear part of what is maximised, as coefficients of the potentials, shape ``(k, sides)``."""

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """Weight, mean and spread of each arc, as far as they are no variables; over ``E``."""

    @property
    @abstractmethod
    def curves_by(self) -> tuple[Coefficients, Coefficients, Coefficients]:
        """Coefficients of the potentials in ``T_j``, ``B_j`` and ``P_j``."""

    @property
    @abstractmethod
    def bias_weights(self) -> Floats:
        """``bias_penalty * prior`` of each label, as far as the prior is no variable."""

    @property
    @abstractmethod
    def charges_by(self) -> tuple[Coefficients, Coefficients]:
        """Coefficients of the potentials in ``beta`` and the prior of each label."""

    @cached_property
    def labels(self) -> Floats:
        """The labels from :attr:`centre` in :attr:`unit`."""
        labels: Floats = (self.problem.labels - self.centre) / self.unit
        return labels

    @cached_property
    def box(self) -> tuple[float, float]:
        """The ends of the outputs, measured likewise; infinite on the line."""
        outputs = self.problem.outputs
        return (outputs.low - self.centre) / self.unit, (outputs.high - self.centre) / self.unit

    @cached_property
    def ends(self) -> list[tuple[float, float]]:
        """Finite ends of the box, each after the direction in which outputs lie, short where the end is far."""
        ends = zip((1.0, -1.0), self.box, strict=True)
        return [(side / max(1.0, abs(end)), end) for side, end in ends if math.isfinite(end)]

    @property
    def columns(self) -> int:
        """The number of potentials and leans."""
        return self.sides * self.k + self.n * len(self.ends)

    @cached_property
    def curve_rows(self) -> tuple[Rows, Rows, Rows]:
        """The linear parts of ``T_j``, ``B_j`` and ``P_j``, as rows over potentials and leans."""
        means = self.moments.means
        leans = [diagonal(side * (end - means)) for side, end in self.ends]
        sides = [diagonal(np.full(self.n, side)) for side, _ in self.ends]
        parts = [composed(self.nodes.arcs, *by) for by in self.curves_by]
        costs, slopes, weights = (
            beside(part, *more, columns=self.columns) for part, more in zip(parts, (leans, sides, ()), strict=True)
        )
        return costs, slopes, weights

    @cached_property
    def aligned_curves(self) -> Aligned:
        """The linear parts of ``T_j``, ``B_j`` and ``P_j`` on one pattern of entries."""
        return Aligned.of(*self.curve_rows)

    @cached_property
    def label_rows(self) -> tuple[Rows, Rows]:
        """``beta`` and the variable part of the prior of each label, as rows over potentials and leans."""
        slopes, shares = (beside(composed(self.nodes.labels, *by), columns=self.columns) for by in self.charges_by)
        return slopes, shares

    @cached_property
    def lean_rows(self) -> Rows:
        """The leans, as rows over potentials and leans."""
        leans = self.n * len(self.ends)
        return sparse.csr_array(sparse.eye_array(leans, self.columns, k=self.columns - leans))

    def curves(self, potentials: Floats, leans: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """``T``, ``B`` and ``P`` of each arc; without leans, as the line would have them."""
        x = np.zeros(self.columns)
        x[: potentials.size] = potentials.ravel()
        x[potentials.size :] = 0.0 if leans is None else leans
        cost, slope, weight = (np.asarray(rows @ x) for rows in self.curve_rows)
        return self.moments.spreads + cost, slope, self.moments.weights + weight

    def reduced_costs(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Reduced cost of each arc at its best allowed output, over ``E``, and that output."""
        cost, slope, weight = self.curves(potentials)
        outputs = np.clip(self.moments.means + slope / weight, *self.box)
        steps = outputs - self.moments.means
        return cost - slope * steps + weight * steps**2 / 2, outputs

    def leans(self, point: Point) -> Floats:
        """The leans at a point."""
        return point.slacks[point.slacks.size - self.n * len(self.ends) :]

    def only(self, kept: NDArray[np.bool_]) -> Self:
        """The program on some of the arcs."""
        return replace(self, first=self.first[kept], last=self.last[kept])

    @property
    def bounded(self) -> int:
        """The number of labels whose prior is a variable with a lower bound."""
        return 0

    @property
    def floor(self) -> float:
        """``k`` times the lower bound of a variable prior."""
        return 0.0

    @property
    def fixed(self) -> int | None:
        """The potential that stays as it is."""
        return None

    def without_floor(self) -> Self:
        """The program with no other bound of a variable prior than 0."""
        return self

    @abstractmethod
    def folded(self, potentials: Floats) -> Floats:
        """Potentials of ``p y**2 / 2 - alpha``, ``p y + beta`` and ``p``, shape ``(k, 3)``."""

    def arc_cones(self, variables: int) -> tuple[Rows, Floats]:
        """``B**2 <= 2 P T`` for every arc: the rows over so many variables, and the right side."""
        weights, _, spreads = self.moments
        right = np.stack((spreads + weights / 2, spreads - weights / 2, np.zeros(self.n)), axis=1)
        return beside(second_order(*self.curve_rows), columns=variables), right.ravel()

    @abstractmethod
    def build(self) -> ConicProgram:
        """Conic minimisation; the variables are the potentials, node by node, the leans, and one a priced bias."""

    def read(self, answer: ConicSolution) -> Point:
        """The engine's answer in these units; multipliers and slacks are kept above 0."""
        potentials, leans = np.split(answer.x[: self.columns], [self.sides * self.k])
        potentials = potentials.reshape(self.k, self.sides)
        high, low, side = answer.cone_slack[: self.n].T
        _, slopes, weights = self.curves(potentials, leans)
        outputs = self.moments.means + slopes / weights
        # At an epsilon of hundreds a weight may be next to nothing, and no cost too high.
        with np.errstate(over="ignore"):
            slacks = (high - np.hypot(low, side)) * (high + np.hypot(low, side)) / (2 * weights)
        masses = answer.cone_dual[: self.n, 0] + answer.cone_dual[: self.n, 1]
        biases = np.zeros(self.k) if self.problem.unbiased else self.averages(masses, outputs) - self.labels
        away = [masses * side * (outputs - end) for side, end in self.ends]
        losses, priors = self._bounded(potentials, masses, outputs, biases)
        return Point(
            potentials=potentials,
            multipliers=np.maximum(np.concatenate((masses, losses, *away)), TINY),
            slacks=np.clip(np.concatenate((slacks, priors, leans)), TINY, 1 / TINY),
            biases=biases,
        )

    def averages(self, masses: Floats, values: Floats) -> Floats:
        """The average over each label's row of one value an arc."""
        arcs = Arcs(self.k, self.first, self.last, values, masses)
        averages: Floats = self.nodes.least * (masses @ values) + self.nodes.excess * arcs.over(masses * values)
        return averages

    def arcs(self, point: Point) -> Arcs:
        """The randomizer of a point in the units of the problem, in increasing order of outputs."""
        outputs = self.centre + self.unit * self.reduced_costs(point.potentials)[1]
        outputs = np.clip(outputs, self.problem.outputs.low, self.problem.outputs.high)
        order = np.lexsort((self.last, self.first, outputs))
        masses = self.nodes.least * point.multipliers[: self.n]
        return Arcs(self.k, self.first[order], self.last[order], outputs[order], masses[order])

    def _bounded(
        self,
        potentials: Floats,  # noqa: ARG002
        masses: Floats,  # noqa: ARG002
        outputs: Floats,  # noqa: ARG002
        biases: Floats,  # noqa: ARG002
    ) -> tuple[Floats, Floats]:
        """Multipliers and slacks of the bounds of a variable prior; none here."""
        return np.zeros(0), np.zeros(0)


@dataclass(frozen=True, eq=False)
class FlowProgram(ArcProgram):
    """The cone program over some arcs under the problem's prior; its potentials are those of ``alpha`` and ``beta``.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> program = FlowProgram(problem, np.array([0, 1]), np.array([0, 1]))
    >>> program.build().cones.rows.shape
    (6, 4)
    """

    sides = 2

    @cached_property
    def centre(self) -> float:
        """Labels and outputs are measured from the label nearest to the mean of the prior."""
        labels = self.problem.labels
        mean = labels[0] + self.problem.prior @ (labels - labels[0])
        return float(labels[np.abs(labels - mean).argmin()])

    @cached_property
    def unit(self) -> float:
        """The root of the least loss of some closed forms."""
        return math.sqrt(attainable_loss(self.problem))

    @cached_property
    def gain(self) -> Floats:
        """Coefficients of ``sum alpha + sum beta y``."""
        return self.nodes.gain(np.column_stack((np.ones(self.k), self.labels)))

    @cached_property
    def moments(self) -> Moments:
        """Weight, mean and spread of each arc."""
        prior, labels = self.problem.prior.astype(np.longdouble), self.labels.astype(np.longdouble)
        prior /= prior.sum()
        mean = prior @ labels
        sums = _prefix_sums(prior, prior * (labels - mean), prior * (labels - mean) ** 2)
        mass, moment, square = sums[:, self.last + 1] - sums[:, self.first]
        weights = self.nodes.least + self.nodes.excess * mass
        means = self.nodes.excess * moment / weights
        inside = np.maximum(square - 2 * means * moment + means**2 * mass, 0)
        spreads = (self.nodes.least * (sums[2, -1] + means**2) + self.nodes.excess * inside) / 2
        return Moments(*(x.astype(np.float64) for x in (weights, means + mean, spreads)))

    @property
    def curves_by(self) -> tuple[Coefficients, Coefficients, Coefficients]:
        """``T = V - A - mu B``; ``B``; ``P`` is no variable."""
        return (-1.0, -self.moments.means), (0.0, 1.0), (0.0, 0.0)

    @property
    def charges_by(self) -> tuple[Coefficients, Coefficients]:
        """``beta``; the prior is no variable."""
        return (0.0, 1.0), (0.0, 0.0)

    @cached_property
    def bias_weights(self) -> Floats:
        """``bias_penalty * prior`` of each label, or :data:`FAINT`."""
        return np.maximum(self.problem.bias_weights, FAINT)

    def build(self) -> ConicProgram:
        """Conic minimisation; the variables are the potentials, node by node, the leans, and one a priced bias."""
        roots = np.zeros(0) if self.problem.unbiased else np.sqrt(self.bias_weights)
        variables = self.columns + roots.size
        leans, (cones, right) = beside(self.lean_rows, columns=variables), self.arc_cones(variables)
        # The last variables are beta over the root of its weight.
        charged = beside(self.label_rows[0][: roots.size], diagonal(-roots), columns=variables)
        return ConicProgram(
            quadratic=sparse.csc_array(sparse.diags_array(np.repeat([0.0, 1.0], [self.columns, roots.size]))),
            cost=np.concatenate((-self.gain.ravel(), np.zeros(variables - self.gain.size))),
            equal=sparse.csc_array(charged),
            equal_to=np.zeros(roots.size),
            less=sparse.csc_array(-leans),
            less_than=np.zeros(leans.shape[0]),
            cones=Cones(sparse.csc_array(cones), right),
        )

    def folded(self, potentials: Floats) -> Floats:
        """The potentials with the moments of the prior."""
        prior, labels = self.problem.prior / self.problem.prior.sum(), self.labels.astype(np.longdouble)
        sums = _prefix_sums(prior * labels**2 / 2, prior * labels, prior)[:, 1:].T
        sums[:-1] *= self.nodes.excess
        sums[:, :2] += potentials * np.array([-1.0, 1.0])
        return sums.astype(np.float64)

    def dual(self, potentials: Floats) -> Dual:
        """The multipliers in the units of the problem."""
        alpha, beta = self.nodes.amounts(potentials).T * np.array([[self.unit**2], [self.unit]])
        if not self.problem.unbiased:
            beta *= self.problem.bias_weights / self.bias_weights
        return Dual(alpha - beta * self.centre, beta)


def second_order(costs: Rows, slopes: Rows, weights: Rows) -> Rows:
    """The cones ``slopes**2 <= 2 weights costs``, one after the other."""
    half: Rows = weights * 0.5
    stacked = sparse.csr_array(-sparse.vstack([sparse.csr_array(costs + half), sparse.csr_array(costs - half), slopes]))
    return sparse.csr_array(stacked[np.arange(stacked.shape[0]).reshape(3, -1).T.ravel()])


def _prefix_sums(*amounts: NDArray[np.floating]) -> NDArray[np.longdouble]:
    """Sums of amounts of the labels up to each node, in extended precision."""
    sums = np.zeros((len(amounts), amounts[0].size + 1), np.longdouble)
    np.cumsum(np.stack(amounts), axis=1, out=sums[:, 1:])
    return sums
