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

At a finite penalty the biases of a randomizer in floats may keep that optimum below its value, by a share of the square
of their errors.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.certificates.certificate import lower_bound
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer
from optrand.model.staircase import Staircase
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import ConicProgram
from optrand.solvers.prices import price

__all__ = ["randomizer_of", "relative_gap", "repair"]

NEGLIGIBLE = 1e-5
"""Columns with less mass (times ``E``) have no say in where the multipliers may lie."""

INDEPENDENT = 1e-10
"""Columns in use that differ by less than this share count as one."""

Rows = tuple[sparse.csr_array, Floats]
"""The rows and the right sides of inequalities."""

LARGEST = 1 << 23
"""More entries than this of a table of all columns are not written out: multipliers then stay as they are."""

FIRST_SLACK = 1e-9
"""Slack of multipliers, in units of the loss, from what slackness asks; widened when that is too little."""

LEAST_STAKE = 1e-4
"""Multipliers of labels that can cost less than a unit may leave it by less, down to this share."""


def repair(
    problem: Problem, arcs: Staircase | Arcs, dual: Dual, *, gap: float, rounds: int = 40, seconds: float = math.inf
) -> Dual:
    """Return the best multipliers found, starting from `dual`.

    Parameters
    ----------
    problem : Problem
    arcs : Staircase or Arcs
        A feasible randomizer, best an optimal one.
    dual : Dual
        Any multipliers, best of a gap that is small.
    gap : float
        Relative gap at which to stop.
    rounds : int
        At most so many programs of up to ``3k + 1`` variables.
    seconds : float
        No program is begun later.

    Returns
    -------
    Dual
        Never worse than `dual`; the same where the randomizer's table would have more than :data:`LARGEST` entries.
    """
    end = time.perf_counter() + seconds
    randomizer = randomizer_of(problem, arcs)
    value = problem.sign * problem.value(randomizer)
    unit = abs(value) or 1.0
    best, bound = dual, lower_bound(problem, dual)
    target = value - gap * unit
    if bound >= target or problem.k * arcs.masses.size > LARGEST:
        return dual
    if isinstance(arcs, Arcs):
        arcs = Staircase.of_arcs(arcs)
    if not problem.unbiased:
        slopes = -problem.bias_weights * randomizer.biases
        if not np.isfinite(slopes).all():
            return dual
        dual = Dual(dual.alpha, slopes)
    used = arcs.only(arcs.masses * math.exp(problem.epsilon) > NEGLIGIBLE)
    if not used.masses.size:  # No randomizer: an engine out of digits has left nothing.
        return best
    cuts = _Cuts(problem, Support(problem, used), dual, unit)
    for _ in range(rounds):
        for candidate in cuts.candidates:
            reached = lower_bound(problem, candidate)
            if reached > bound:
                best, bound = candidate, reached
        if bound >= target or bound >= cuts.limit - 0.1 * gap * unit or time.perf_counter() > end:
            break
        cuts.tighten()
    return best


def relative_gap(problem: Problem, arcs: Staircase | Arcs, dual: Dual) -> float:
    """Relative gap between the randomizer's value and the bound of the multipliers, as a share of that value."""
    value = problem.sign * problem.value(randomizer_of(problem, arcs))
    return (value - lower_bound(problem, dual)) / (abs(value) or 1.0)


def randomizer_of(problem: Problem, arcs: Staircase | Arcs) -> Randomizer:
    """Return the randomizer with these columns."""
    if isinstance(arcs, Arcs):
        return Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    return Randomizer(problem.labels, *arcs.table(math.exp(problem.epsilon)), problem.epsilon)


class Support:
    """The columns in use, and the pairs of a label and a column of which slackness asks something.

    Outputs are in units of their range. Variables are sums of multipliers up to each label: of a set of neighbours only
    the ends then count.
    """

    def __init__(self, problem: Problem, columns: Staircase) -> None:
        self.problem, self.members, self.outputs = problem, columns.members, columns.outputs
        self.centre = (self.outputs.min() + self.outputs.max()) / 2
        self.width = float(np.ptp(self.outputs)) / 2 or 1.0
        self.label, self.column = _decisive(columns)
        self.sign = np.where(self.members[self.label, self.column], -1.0, 1.0)
        """Negative for a label's own columns, whose ``h`` is to be negative."""
        each, inner = np.arange(self.label.size), self.label > 0
        values = np.concatenate((self.sign, -self.sign[inner]))
        where = np.concatenate((each, each[inner])), np.concatenate((self.label, self.label[inner] - 1))
        self.singles = sparse.csr_array((values, where), shape=(each.size, problem.k))
        """The signed multiplier of each pair's label."""

    @property
    def share(self) -> float:
        """What the bound gains by a lowest price of one."""
        return self.problem.k / (1 + (self.problem.k - 1) * math.exp(-self.problem.epsilon))

    def scaled(self, outputs: Floats) -> Floats:
        """Measure outputs from the middle of those in use, in units of half their range."""
        scaled: Floats = (outputs - self.centre) / self.width
        return scaled

    def steepness(self, members: NDArray[np.bool_]) -> Floats:
        """Entries of columns: 1 for their members, ``1 / E`` for the others."""
        return np.where(members, 1.0, math.exp(-self.problem.epsilon))

    def weighted(self, members: NDArray[np.bool_]) -> sparse.csr_array:
        """Return the steep sums of multipliers, one row for each column of `members`."""
        steps = members.astype(np.int8)
        steps[:-1] -= members[1:]
        label, row = np.nonzero(steps)
        k, least = steps.shape[0], math.exp(-self.problem.epsilon)
        rows, last = np.arange(steps.shape[1]), np.full(steps.shape[1], k - 1)
        values = np.concatenate(((1 - least) * steps[label, row], np.full(rows.size, least)))
        where = np.concatenate((row, rows)), np.concatenate((label, last))
        return sparse.csr_array((values, where), shape=(rows.size, k))

    def with_slopes(self, sums: sparse.csr_array, outputs: Floats) -> sparse.csr_array:
        """Rows of ``alpha + beta v``, each at its output, for rows of `alpha`."""
        return sparse.csr_array(sparse.hstack((sums, sparse.diags_array(self.scaled(outputs)) @ sums)))

    def gain(self, means: Floats) -> Floats:
        """Return the derivative of the bound by each variable, for the mean outputs of the rows."""
        totals, places = np.zeros(means.size), self.scaled(means)
        totals[-1] = 1.0
        return np.concatenate((totals, places - np.append(places[1:], 0.0)))

    def reduced(self, dual: Dual, outputs: Floats) -> Floats:
        """Return ``h`` of each label at each output."""
        table = self.problem.prior[:, np.newaxis] * self.problem.loss_table(outputs)
        reduced: Floats = table - dual.alpha[:, np.newaxis] - dual.beta[:, np.newaxis] * outputs
        return reduced


def _decisive(support: Staircase) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a label and an arc whose slackness implies the others', since each ``h`` is convex in the output."""
    # Of a label's own arcs those of the lowest and the highest output; of the others their nearest neighbours outside.
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


class _Cuts:
    """The linear program over multipliers, growing by the columns that prices find."""

    def __init__(self, problem: Problem, support: Support, dual: Dual, unit: float) -> None:
        self.problem, self.support, self.dual, self.unit = problem, support, dual, unit
        self.current: Dual | None = dual
        self.slack = FIRST_SLACK
        self.limit = math.inf
        self.known, self.known_part = np.cumsum(dual.beta) * support.width / unit, 0.0
        if not problem.unbiased:
            charged = problem.bias_weights > 0
            charges = dual.beta[charged] ** 2 / (2 * problem.bias_weights[charged])
            self.known_part = float(dual.beta @ (problem.labels - support.centre) - charges.sum())
        self.slackness = self._slackness()
        self.columns = [self._priced(support.members, support.outputs)]

    def _losses(self, outputs: Floats) -> Floats:
        table: Floats = self.problem.prior[:, np.newaxis] * self.problem.loss_table(outputs) / self.unit
        return table

    def _rows(self, sums: sparse.csr_array, outputs: Floats, right: Floats) -> Rows:
        """Sum ``alpha + beta v``, each at its output, of at most `right`."""
        if not self.problem.unbiased:
            return sums, right - self.support.scaled(outputs) * (sums @ self.known)
        return self.support.with_slopes(sums, outputs), right

    def _priced(self, members: NDArray[np.bool_], outputs: Floats) -> Rows:
        """Rows that keep the prices of columns from being negative, if they are to add nothing."""
        limits = (self.support.steepness(members) * self._losses(outputs)).sum(axis=0)
        return self._rows(self.support.weighted(members), outputs, limits)

    def _slackness(self) -> Rows:
        """Rows of complementary slackness with the support."""
        support = self.support
        label, column = support.label, support.column
        table = self._losses(support.outputs)
        rows, right = self._rows(support.singles, support.outputs[column], support.sign * table[label, column])
        self.give = np.clip(table.max(axis=1), LEAST_STAKE, 1.0)[label]
        if self.problem.loss != losses.squared or not self.problem.unbiased:
            return rows, right
        inside = (support.outputs > self.problem.outputs.low) & (support.outputs < self.problem.outputs.high)
        members, outputs = support.members[:, inside], support.outputs[inside]
        slopes = self.problem.prior[:, np.newaxis] * (outputs - self.problem.labels[:, np.newaxis])
        level = (support.steepness(members) * slopes).sum(axis=0) * support.width / self.unit
        flat = support.weighted(members)
        flat = sparse.hstack((sparse.csr_array(flat.shape), flat))
        self.give = np.append(self.give, np.ones(2 * level.size))
        return sparse.csr_array(sparse.vstack((rows, flat, -flat))), np.concatenate((right, level, -level))

    @property
    def candidates(self) -> list[Dual]:
        """Multipliers of the last program, and the same with the columns in use at no cost."""
        return [] if self.current is None else [self.current, self._snapped(self.current)]

    def tighten(self) -> None:
        """Add the columns that the last multipliers price below zero, and find others."""
        if self.current is not None:
            prices = price(self.problem, self.current)
            violated = prices.improving(0.0)
            if violated.size:
                self.columns.append(self._priced(prices.signatures(violated), prices.outputs[violated]))
        self.current = self._solved()

    def _snapped(self, dual: Dual) -> Dual:
        """Find the nearest multipliers of the rows at which the columns in use have reduced cost zero."""
        support = self.support
        steepness = support.steepness(support.members)
        missing = (steepness * support.reduced(dual, support.outputs)).sum(axis=0)
        change = np.linalg.lstsq(steepness.T, missing, rcond=INDEPENDENT)[0]
        return Dual(dual.alpha + change, dual.beta)

    def _solved(self) -> Dual | None:
        """Central multipliers, or None where slackness admits none (it is relaxed for the next time)."""
        problem, support, k = self.problem, self.support, self.problem.k
        rows = sparse.vstack([rows for rows, _ in self.columns])
        limits = np.concatenate([right for _, right in self.columns])
        gain = support.gain(problem.labels)[: 2 * k if problem.unbiased else k]
        less, tight = self.slackness
        lowest, none = sparse.csr_array(np.ones((limits.size, 1))), sparse.csr_array((tight.size, 1))
        sides = [[rows, lowest], [sparse.csr_array((1, gain.size)), lowest[:1]], [less, none]]
        program = ConicProgram(
            quadratic=sparse.csc_array((gain.size + 1, gain.size + 1)),
            cost=-np.append(gain, support.share),
            equal=sparse.csc_array((0, gain.size + 1)),
            equal_to=np.zeros(0),
            less=sparse.csc_array(sparse.block_array(sides)),
            less_than=np.concatenate((limits, [0.0], tight + self.slack * self.give)),
        )
        try:
            answer = Clarabel().solve(program)
        except SolverFailed:
            answer = None
        if answer is None or "nfeasible" in answer.status:
            self.slack *= 30
            return None
        self.limit = self.known_part - self.unit * float(np.dot(program.cost, answer.x))
        sums = answer.x[:-1].reshape(-1, k)
        alpha = np.diff(sums[0], prepend=0.0) * self.unit
        beta = np.diff(sums[1], prepend=0.0) * self.unit / support.width if problem.unbiased else self.dual.beta
        return Dual(alpha - beta * support.centre, beta)
