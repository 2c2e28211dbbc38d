r"""A problem in the unit of the kernel, and its answers in that of the labels.

Without bias and ends, shifting and stretching the line of outputs maps dual-feasible points to such points, so the
total of all labels' terms can be fixed (:mod:`optrand.solvers.reduced_dual.arcs`); from a point of value :math:`W`
the best stretch gives the bound :math:`(W^2 - \operatorname{Var} Y) / 2`. Elsewhere the total is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.model.outputs import Line
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer, Solution
from optrand.solvers.prices import Extended
from optrand.solvers.reduced_dual.arcs import Arcs as ArcOrder
from optrand.solvers.reduced_dual.arcs import Level, Terms
from optrand.solvers.scales import attainable_loss

if TYPE_CHECKING:
    from optrand.solvers.reduced_dual.multipliers import Numbers

__all__ = ["IDLE", "Candidate", "Reduced"]

IDLE = 1e-3
"""Arcs with less mass than this share of their slack are not in use."""

FAINT = 1e-20
"""Biases are charged as if no weight of one were smaller."""

LIGHT = 1e-12
"""Weight of a bias below which its multiplier follows from the bias."""


class Candidate(NamedTuple):
    """A candidate solution, None if floats failed; its estimated gap, and the number of iterations."""

    solution: Solution | None
    gap: float
    steps: int


@dataclass(frozen=True)
class Reduced:
    """A problem in the unit of the kernel."""

    problem: Problem

    @cached_property
    def total(self) -> float:
        """Sum of the prior."""
        return float(self.problem.prior.sum())

    @cached_property
    def stretched(self) -> bool:
        """Whether outputs may be shifted and stretched, so that the sums of the last node are fixed."""
        return self.problem.unbiased and isinstance(self.problem.outputs, Line)

    @property
    def boxed(self) -> bool:
        """Whether no bias is allowed in an interval: there the arcs of a descent often lack many that matter."""
        return self.problem.unbiased and not self.stretched

    @cached_property
    def mean(self) -> float:
        """Mean label, or the allowed output next to it, measured from the lowest label."""
        lowest, outputs = float(self.problem.labels[0]), self.problem.outputs
        mean = float(self.problem.prior @ (self.problem.labels - lowest)) / self.total
        return min(max(mean, outputs.low - lowest), outputs.high - lowest)

    @cached_property
    def offsets(self) -> Floats:
        """Labels less :attr:`mean`."""
        offsets: Floats = (self.problem.labels - self.problem.labels[0]) - self.mean
        return offsets

    @cached_property
    def box(self) -> tuple[float, float]:
        """Ends of the outputs, measured from :attr:`mean` in the unit of the kernel."""
        low, high = (
            (end - self.problem.labels[0] - self.mean) / self.unit
            for end in (self.problem.outputs.low, self.problem.outputs.high)
        )
        return float(low), float(high)

    def terms(self, before: Floats, gaps: Floats) -> Terms:
        """Build a level for the kernel."""
        penalty, charges = self.problem.bias_penalty, np.zeros(0)
        if not self.problem.unbiased:
            charges = 1 / np.maximum(penalty * np.diff(before), FAINT)
        return Terms(before, gaps, 1 / math.expm1(self.problem.epsilon), charges, *self.box)

    @cached_property
    def finest(self) -> Level:
        """All nodes."""
        return self.level(0.0)

    def level(self, floor: float) -> Level:
        """All nodes, where a share of the prior is spread evenly."""
        k, prior = self.problem.k, self.problem.prior / self.total
        before = np.zeros(k + 1)
        np.cumsum((1 - floor) * prior + floor / k, out=before[1:])
        before /= before[-1]
        return Level(before, self.gaps)

    @cached_property
    def before(self) -> Extended:
        """Prior before each node, in extended precision."""
        sums: Extended = np.append(np.longdouble(0), np.cumsum(self.problem.prior, dtype=np.longdouble)) / self.total
        return sums

    @cached_property
    def gaps(self) -> Floats:
        """Distance of the labels beside each node, as in :class:`Level`; with a bias penalty, its charge."""
        gaps, labels = np.zeros(self.problem.k + 1), self.problem.labels
        gaps[1:-1], gaps[-1] = labels[1:] - labels[:-1], -self.offsets[-1]
        gaps /= self.unit
        return gaps if self.problem.unbiased else gaps * (1 + 1 / self.problem.bias_penalty)

    @cached_property
    def variance(self) -> float:
        """Variance of the labels."""
        return float(self.problem.prior @ self.offsets**2) / self.total

    @cached_property
    def unit(self) -> float:
        """The root of twice a loss that is attained and of the variance."""
        if not self.stretched:
            return math.sqrt(2 * attainable_loss(self.problem) + self.variance)
        before, labels = np.cumsum(self.problem.prior)[:-1] / self.total, self.problem.labels
        excess = math.expm1(self.problem.epsilon)
        roots = np.sqrt(1 + excess + excess**2 * before * (1 - before))
        return float((labels[1:] - labels[:-1]) @ roots) / excess

    @cached_property
    def share(self) -> float:
        """Share of the squared unit that is not the variance: about that of the loss in the minimised sum."""
        return max(0.0, 1 - self.variance / self.unit**2)

    def randomizer(self, arcs: ArcOrder, mass: Floats, outputs: Floats) -> Randomizer:
        """Return the masses as probabilities, and the outputs in the unit of the labels."""
        problem, excess = self.problem, math.expm1(self.problem.epsilon)
        used = np.flatnonzero(mass > 0)
        first, end, mass, outputs = arcs.first[used], arcs.end[used], mass[used], outputs[used]
        scale = 1 / (mass.sum() + excess * mass[first == 0].sum())
        mass = mass * scale
        if self.stretched:
            outputs = outputs * (self.unit / (excess * scale))
            below = mass @ outputs + excess * (mass @ np.where(first == 0, outputs, 0.0))
            outputs += problem.labels[0] - below
        else:
            low, high = problem.outputs.low, problem.outputs.high
            there = problem.labels[0] + (self.mean + self.unit * outputs)
            there = np.where(outputs <= self.box[0], low, np.where(outputs >= self.box[1], high, there))
            outputs = np.clip(there, low, high)
        order = np.lexsort((end, first, outputs))
        some = Arcs(problem.k, first[order], end[order] - 1, outputs[order], mass[order])
        return Randomizer.of_arcs(problem.labels, some, problem.epsilon)

    def dual(self, slopes: Numbers, cost: Numbers, biases: Floats) -> Dual:
        """Return the multipliers of sums ``b`` and of shares of the sums ``c``, at their best scale if free.

        With a bias penalty, labels of small weight take the multipliers that belong to the biases of the randomizer,
        ``-penalty * prior * bias``: a difference of two sums has no digits of them.
        """
        problem, kind = self.problem, slopes.dtype
        stretch = -(self.finest.gaps @ slopes) * self.unit if self.stretched else self.unit
        prior = problem.prior.astype(kind) / self.total
        offsets = problem.labels.astype(kind) - problem.labels[0] - self.mean
        beta = stretch * np.diff(slopes) - prior * offsets
        if not problem.unbiased:
            weights = prior * problem.bias_penalty
            beta = np.where(weights >= LIGHT, beta, -weights * biases)
        alpha = prior * offsets**2 / 2 - stretch**2 * cost
        # What rounding takes from a label's slope is made up for at the label, where its price is near zero.
        rounded = (self.total * beta).astype(np.float64)
        alpha = self.total * (alpha + beta * offsets) - rounded * problem.labels
        return Dual(alpha.astype(np.float64), rounded)
