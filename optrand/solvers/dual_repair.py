r"""Multipliers that certify against *all* columns, from a good randomizer and multipliers that may not.

With clustered labels or a finite bias penalty the optimal multipliers of the interval program are not unique, and those
of a solver may price columns outside the program below zero, though the randomizer is optimal. Given the randomizer,
most of the dual is known: at a finite penalty :math:`\beta_y = -\lambda p_y (E[v] - y)`, without one :math:`\beta = 0`;
and by complementary slackness an output :math:`v` in use with the column of :math:`S` asks :math:`h_y(v) \leq 0` for
the labels in :math:`S` and :math:`h_y(v) \geq 0` for the others, which confines every :math:`\alpha_y` to an interval.
What is left is the linear program

.. math:: \max_{\alpha, m \leq 0} \sum_y \alpha_y + \frac{k}{E + k - 1} m \quad\text{s.t.}\quad
          \sum_y s_y (p_y g(v, y) - \beta_y v - \alpha_y) \geq m \text{ for every column } (s, v),

solved by cutting planes: price, add the columns that cost less than nothing, solve again, by an interior-point method,
whose central answers need two or three rounds where vertices would need many.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand import losses
from optrand.arcs import Arcs
from optrand.certificate import lower_bound
from optrand.errors import SolverFailed
from optrand.pricing import price
from optrand.problem import Problem
from optrand.programs.conic import ConicProgram
from optrand.randomizer import Randomizer
from optrand.solution import Dual
from optrand.solvers.backends.cones import Clarabel
from optrand.staircase import Staircase
from optrand.validation import Floats

__all__ = ["repair"]

NEGLIGIBLE = 1e-5
"""Columns with less mass (times ``E``) have no say in where the multipliers may lie."""

INDEPENDENT = 1e-10
"""Columns in use that differ by less than this share count as one."""

FIRST_SLACK = 1e-9
"""How far, in units of the loss, multipliers may leave what slackness asks; widened when that is too little."""


def repair(problem: Problem, arcs: Staircase | Arcs, dual: Dual, *, gap: float, rounds: int = 40) -> Dual:
    """The best multipliers found, starting from `dual`.

    Parameters
    ----------
    problem : Problem
    arcs : Staircase or Arcs
        A feasible randomizer, best an optimal one.
    dual : Dual
        Any multipliers; their `beta` is kept where the bias penalty is infinite.
    gap : float
        Relative gap at which to stop.
    rounds : int
        At most so many linear programs of ``k + 1`` variables.

    Returns
    -------
    Dual
        Never worse than `dual`.
    """
    if isinstance(arcs, Arcs):
        randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    else:
        randomizer = Randomizer(problem.labels, *arcs.table(math.exp(problem.epsilon)), problem.epsilon)
    value = problem.sign * problem.value(randomizer)
    best, bound = dual, lower_bound(problem, dual)
    target = value - gap * (abs(value) or 1.0)
    if bound >= target:
        return best
    if isinstance(arcs, Arcs):
        arcs = Staircase.of_arcs(arcs)
    if not problem.unbiased:
        dual = Dual(dual.alpha, -problem.bias_weights * randomizer.biases)
    cuts = _Cuts(problem, arcs.only(arcs.masses * math.exp(problem.epsilon) > NEGLIGIBLE), dual, abs(value) or 1.0)
    current: Dual | None = dual
    for _ in range(rounds):
        if current is not None:
            for candidate in (current, cuts.snapped(current)):
                here = lower_bound(problem, candidate)
                if here > bound:
                    best, bound = candidate, here
            if bound >= min(target, cuts.limit - 0.1 * gap * (abs(value) or 1.0)):
                break
            cuts.add(current)
        current = cuts.solve()
    return best


class _Cuts:
    r"""The linear program in :math:`\alpha`, :math:`\beta` and :math:`m`, growing by the columns that a price finds.

    Its variables are scaled: the multipliers by the loss, outputs by their spread around their middle.
    """

    def __init__(self, problem: Problem, support: Staircase, dual: Dual, unit: float) -> None:
        self.problem, self.dual, self.unit = problem, dual, unit
        self.slack = FIRST_SLACK
        self.limit = math.inf
        charged = problem.bias_weights > 0
        self.ceiling = -float((dual.beta[charged] ** 2 / (2 * problem.bias_weights[charged])).sum())
        self.support, self.outputs, self.members = support, support.outputs, support.members
        self.centre = (support.outputs.min() + support.outputs.max()) / 2
        self.width = float(np.ptp(support.outputs)) / 2 or 1.0
        k = problem.k
        self.slackness = self._slackness()
        self.fixed = np.zeros((0, 2 * k + 1)) if problem.unbiased else np.eye(2 * k + 1)[k : 2 * k]

    def _losses(self, outputs: Floats) -> Floats:
        table: Floats = self.problem.prior[:, np.newaxis] * self.problem.loss_table(outputs) / self.unit
        return table

    def _slackness(self) -> tuple[sparse.csr_array, Floats]:
        """What complementary slackness with the support asks, as rows ``A @ x <= b``."""
        k, support = self.problem.k, self.support
        label, arc = _decisive(support)
        sign = np.where(support.members[label, arc], -1.0, 1.0)
        each = np.arange(label.size)
        values = np.concatenate((sign, sign * self._scaled(support.outputs)[arc]))
        where = np.concatenate((each, each)), np.concatenate((label, k + label))
        rows = sparse.csr_array((values, where), shape=(label.size, 2 * k + 1))
        right = sign * self._losses(support.outputs)[label, arc]
        if self.problem.loss != losses.squared or not self.problem.unbiased:
            return rows, right
        inside = (support.outputs > self.problem.outputs.low) & (support.outputs < self.problem.outputs.high)
        steepness = self._steepness(support.members[:, inside])
        slopes = self.problem.prior[:, np.newaxis] * (support.outputs[inside] - self.problem.labels[:, np.newaxis])
        none = np.zeros((int(inside.sum()), k))
        flat = np.hstack((none, steepness.T, none[:, :1]))
        level = (steepness * slopes).sum(axis=0) * self.width / self.unit
        both = sparse.csr_array(np.vstack((flat, -flat)))
        return sparse.csr_array(sparse.vstack((rows, both))), np.concatenate((right, level, -level))

    def _scaled(self, outputs: Floats) -> Floats:
        scaled: Floats = (outputs - self.centre) / self.width
        return scaled

    def _steepness(self, members: NDArray[np.bool_]) -> Floats:
        return np.where(members, 1.0, math.exp(-self.problem.epsilon))

    def add(self, dual: Dual) -> None:
        """Add every column that `dual` prices below zero."""
        prices = price(self.problem, dual)
        violated = np.flatnonzero(prices.costs < 0)
        self.outputs = np.concatenate((self.outputs, prices.outputs[violated]))
        self.members = np.hstack((self.members, prices.signatures(violated)))

    def snapped(self, dual: Dual) -> Dual:
        """The nearest multipliers of the rows at which the columns in use cost exactly nothing."""
        support = self.support
        steepness = self._steepness(support.members)
        table = self.problem.prior[:, np.newaxis] * self.problem.loss_table(support.outputs)
        table = table - dual.alpha[:, np.newaxis] - dual.beta[:, np.newaxis] * support.outputs
        missing = (steepness * table).sum(axis=0)
        change = np.linalg.lstsq(steepness.T, missing, rcond=INDEPENDENT)[0]
        return Dual(dual.alpha + change, dual.beta)

    def solve(self) -> Dual | None:
        """Central multipliers, or None where slackness admits none (it is relaxed for the next time)."""
        problem, k = self.problem, self.problem.k
        steepness = self._steepness(self.members)
        columns = np.column_stack((steepness.T, (steepness * self._scaled(self.outputs)).T, np.ones(self.outputs.size)))
        limits = (steepness * self._losses(self.outputs)).sum(axis=0)
        rows, right = self.slackness
        no_profit = np.eye(2 * k + 1)[2 * k :]
        share = k / (1 + (k - 1) * math.exp(-problem.epsilon))
        program = ConicProgram(
            quadratic=sparse.csc_array((2 * k + 1, 2 * k + 1)),
            cost=-np.concatenate((np.ones(k), self._scaled(problem.labels), [share])),
            equal=sparse.csc_array(self.fixed),
            equal_to=self.dual.beta[: self.fixed.shape[0]] * self.width / self.unit,
            less=sparse.csc_array(sparse.vstack((sparse.csr_array(np.vstack((columns, no_profit))), rows))),
            less_than=np.concatenate((limits, [0.0], right + self.slack)),
        )
        try:
            answer = Clarabel().solve(program)
        except SolverFailed:
            answer = None
        if answer is None or "nfeasible" in answer.status:
            self.slack *= 30
            return None
        self.limit = self.ceiling - self.unit * float(np.dot(program.cost, answer.x))
        beta = answer.x[k : 2 * k] * self.unit / self.width
        if not problem.unbiased:
            beta = self.dual.beta
        return Dual(answer.x[:k] * self.unit - beta * self.centre, beta)


def _decisive(support: Staircase) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a label and an arc whose slackness implies the others', since each ``h`` is convex in the output.

    Of a label's own arcs those of the lowest and the highest output; of the others their nearest neighbours outside.
    """
    pairs = []
    for label, own in enumerate(support.members):
        arcs = np.flatnonzero(own)
        if arcs.size:
            first, last = arcs[support.outputs[arcs].argmin()], arcs[support.outputs[arcs].argmax()]
            below = np.flatnonzero(support.outputs < support.outputs[first])
            above = np.flatnonzero(support.outputs > support.outputs[last])
            pairs += [(label, first), (label, last)]
            pairs += [(label, below[support.outputs[below].argmax()])] if below.size else []
            pairs += [(label, above[support.outputs[above].argmin()])] if above.size else []
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
