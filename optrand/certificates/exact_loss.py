"""Exact loss of a feasible mechanism, or of the exact repair of a randomizer that is feasible up to rounding.

This is the upper end of a certificate, in rational arithmetic, rounded up where a loss is irrational
(``docs/mathematics.md``, section 2). Interval columns get integer masses that conserve flow and exact moments
(:mod:`optrand.mechanism.exact_means`). Tables in floats are lifted until columns keep within the ratio and evened until
rows have one total; they and tables in integers get their means from two outputs (:mod:`optrand.mechanism.completion`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np

from optrand.base.arithmetic import Integers, exp_bracket, log_bracket, places, privacy_ratio, scaled
from optrand.base.validation import Floats
from optrand.errors import Infeasible, NotCertified
from optrand.mechanism.completion import Completion
from optrand.mechanism.exact_means import with_exact_means
from optrand.mechanism.flow_tabulation import exact_flow
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.arcs import IntegerArcs
from optrand.model.exact_columns import ExactColumns, charged, deviations
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["of_each_label", "of_mechanism", "of_randomizer"]

NEGLIGIBLE = Fraction(1, 10**11)
"""Share of the loss that a repair of a table may cost before that of its columns is tried."""


def of_mechanism(problem: Problem, mechanism: Mechanism) -> Fraction | None:
    """Objective of the minimisation at a mechanism, or at its repair; None where it cannot be repaired.

    Outputs that were split between neighbouring floats count as their mean, except on a grid: as private and as
    unbiased, and what the floats stand for.
    """
    if problem.loss == losses.squared and _keeps_by_column(problem, mechanism):
        flow = _repaired(problem, _joined(problem, mechanism))
        return None if flow is None else flow.squared_error(problem.prior) / 2 + _charge(problem, flow.biases)
    biases = mechanism.exact_biases
    if problem.unbiased and any(biases):
        return _Table.of_mechanism(problem, mechanism).completed(problem)
    expected = _expected(problem, mechanism.outputs, mechanism.table, mechanism.ratio)
    return expected / mechanism.total + _charge(problem, biases)


def of_randomizer(problem: Problem, randomizer: Randomizer) -> Fraction | None:
    """Objective at the repair of a randomizer in floats that is feasible within rounding; None where there is none."""
    if randomizer.arcs is None:
        return _of_table(problem, randomizer)
    flow = _flow_of(problem, randomizer)
    if flow is None:
        return None
    if problem.loss == losses.squared:
        return flow.squared_error(problem.prior) / 2 + _charge(problem, flow.biases)
    outputs, integers = flow.in_floats()
    expected = _expected(problem, outputs, integers, flow.ratio)
    return expected / integers.total(flow.ratio) + _charge(problem, flow.biases)


def _of_table(problem: Problem, randomizer: Randomizer) -> Fraction | None:
    """Objective at the repair of a table in floats: of the whole table, or of its columns where that costs less."""
    completed = _Table.of_floats(problem, randomizer).completed(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        claimed = problem.sign * problem.value(randomizer)
    if not math.isfinite(claimed):
        return completed
    if completed is not None and completed - Fraction(claimed) <= NEGLIGIBLE * abs(Fraction(claimed)):
        return completed
    try:
        mechanism = tabulate(problem, randomizer)
    except (Infeasible, NotCertified):
        return completed
    expected = of_mechanism(problem, mechanism)
    return min((loss for loss in (completed, expected) if loss is not None), default=None)


def of_each_label(problem: Problem, answer: Randomizer | Mechanism) -> list[Fraction] | None:
    """Loss of each label, half its squared error and the penalty on its bias; None where there is no repair."""
    if isinstance(answer, Mechanism):
        if _keeps_by_column(problem, answer):
            flow = _repaired(problem, _joined(problem, answer))
        elif problem.unbiased and any(answer.exact_biases):
            return _Table.of_mechanism(problem, answer).of_each_label(problem)
        else:
            return answer.exact_losses(problem.bias_penalty)
    else:
        if answer.arcs is None:
            return _Table.of_floats(problem, answer).of_each_label(problem)
        flow = _flow_of(problem, answer)
    return None if flow is None else charged(flow.squared_errors(), flow.biases, problem.bias_penalty)


def _keeps_by_column(problem: Problem, mechanism: Mechanism) -> bool:
    """Whether each interval column of a mechanism keeps the budget of the problem by itself.

    Arcs of a larger ratio may keep it together, at outputs that they share; taken apart they do not.
    """
    return mechanism.arcs is not None and mechanism.ratio <= exp_bracket(problem.epsilon)[0]


def _joined(problem: Problem, mechanism: Mechanism) -> ExactColumns:
    """Columns of a mechanism of arcs, neighbouring floats joined where outputs between them are allowed."""
    return mechanism.columns(joined=not isinstance(problem.outputs, Grid))


def _flow_of(problem: Problem, randomizer: Randomizer) -> ExactColumns | None:
    """Exact columns of a randomizer of arcs, whose rows are right at the budget that it claims."""
    try:
        return exact_flow(problem.within(randomizer.epsilon), randomizer.arcs)  # type: ignore[arg-type]
    except (Infeasible, NotCertified):
        return None


def _repaired(problem: Problem, flow: ExactColumns) -> ExactColumns | None:
    """Exact columns without bias where none is allowed."""
    return with_exact_means(problem, flow) if problem.unbiased and flow.largest_bias else flow


def _charge(problem: Problem, biases: Sequence[Fraction]) -> Fraction:
    """Penalty on the biases; nothing where it is infinite, for there all biases are 0."""
    if problem.unbiased or not problem.bias_penalty:
        return Fraction(0)
    charges = zip(map(Fraction, problem.prior.tolist()), biases, strict=True)
    return Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2


def _expected(problem: Problem, outputs: Floats, table: IntegerArcs | Integers, ratio: Fraction) -> Fraction:
    """Expected loss times the row total, rounded up where it is not rational.

    Not for squared loss of arcs, which `ExactColumns` has. Of arcs ``O(k + n log k)`` integer operations, and ``n``
    logarithms for Poisson log loss; of tables, and of a loss that is a table or the user's own, ``O(k n)``.
    """
    if problem.loss == losses.zero_one:
        kept = zip(map(Fraction, problem.prior.tolist()), _kept(problem.labels, outputs, table, ratio), strict=True)
        return -sum((p * weight for p, weight in kept), Fraction(0))
    if problem.loss == losses.poisson_log:
        return _expected_poisson(problem, outputs, table, ratio)
    if isinstance(table, IntegerArcs):
        if problem.loss == losses.absolute:
            exact = ExactColumns.of_integers(problem.labels, outputs, table, ratio, joined=False)
            return exact.absolute_error(problem.prior) * exact.total
        table = table.table(ratio)
    finer = places(problem.prior)
    parts = scaled(problem.prior, finer)
    if problem.loss in (losses.squared, losses.absolute):
        digits = max(places(problem.labels), places(outputs))
        rows, columns = (np.array(scaled(x, digits), dtype=object) for x in (problem.labels, outputs))
        apart, power = columns - rows[:, np.newaxis], 2 if problem.loss == losses.squared else 1
        sums = (table * (apart * apart if power == 2 else np.abs(apart))).sum(axis=1)
        return Fraction(sum(map(mul, parts, sums.tolist())), power << (finer + power * digits))
    if isinstance(problem.loss, losses.Loss):
        return _expected_of_any_loss(problem, problem.loss, outputs, table)
    entries = problem.loss_table(outputs)
    digits = places(entries.ravel())
    costs = np.array(scaled(entries.ravel(), digits), dtype=object).reshape(entries.shape)
    return Fraction(sum(map(mul, parts, (table * costs).sum(axis=1).tolist())), 1 << (finer + digits))


def _expected_poisson(problem: Problem, outputs: Floats, table: IntegerArcs | Integers, ratio: Fraction) -> Fraction:
    """Expected ``v - y log v``, from the weight of each output, and that weight times the label."""
    finer, line = places(problem.prior), places(problem.labels)
    parts = scaled(problem.prior, finer)
    pulls = list(map(mul, parts, scaled(problem.labels, line)))
    if isinstance(table, IntegerArcs):
        low, more = ratio.denominator, ratio.numerator - ratio.denominator
        weights, pulled = ([0] * outputs.size for _ in range(2))
        sums = [list(accumulate(amounts, initial=0)) for amounts in (parts, pulls)]
        columns = zip(table.first.tolist(), table.last.tolist(), table.at.tolist(), table.masses.tolist(), strict=True)
        for first, last, at, mass in columns:
            for into, running in zip((weights, pulled), sums, strict=True):
                into[at] += mass * (low * running[-1] + more * (running[last + 1] - running[first]))
    else:
        weights, pulled = ((np.array(amounts, dtype=object) @ table).tolist() for amounts in (parts, pulls))
    expected = Fraction(0)
    for v, weight, pull in zip(map(Fraction, outputs.tolist()), weights, pulled, strict=True):
        expected += v * weight - log_bracket(v)[0] * Fraction(pull, 1 << line)
    return expected / (1 << finer)


def _expected_of_any_loss(problem: Problem, loss: losses.Loss, outputs: Floats, table: Integers) -> Fraction:
    """Expected loss of which only the brackets are known; cost ``O(k n)`` fractions."""
    expected, values = Fraction(0), list(map(Fraction, outputs.tolist()))
    for y, p, row in zip(problem.labels.tolist(), problem.prior.tolist(), table.tolist(), strict=True):
        if p:
            costs = (weight * loss.bracket(v, Fraction(y))[1] for v, weight in zip(values, row, strict=True))
            expected += Fraction(p) * sum(costs, Fraction(0))
    return expected


def _kept(labels: Floats, outputs: Floats, table: IntegerArcs | Integers, ratio: Fraction) -> list[int]:
    """Weight of each label as its own output; 0 for labels that are none."""
    where = np.minimum(np.searchsorted(labels, outputs), labels.size - 1)
    kept = [0] * labels.size
    if not isinstance(table, IntegerArcs):
        for i in np.flatnonzero(labels[where] == outputs).tolist():
            kept[where[i]] = table[where[i], i]
        return kept
    low, high = ratio.denominator, ratio.numerator
    own, same = where[table.at], (labels[where] == outputs)[table.at]
    favoured = (table.first <= own) & (own <= table.last)
    for i in np.flatnonzero(same).tolist():
        kept[own[i]] += (high if favoured[i] else low) * table.masses[i]
    return kept


@dataclass(frozen=True, eq=False)
class _Table:
    """Table in integers whose columns keep within a ratio and whose rows have one total."""

    outputs: Floats
    weights: Integers
    total: int
    ratio: Fraction

    @classmethod
    def of_mechanism(cls, problem: Problem, mechanism: Mechanism) -> _Table:
        """Table of an exact mechanism that keeps the budget, whatever ratio it declares."""
        ratio = max(privacy_ratio(problem.epsilon), mechanism.realised_ratio)
        return cls(mechanism.outputs, mechanism.weights, mechanism.total, ratio)

    @classmethod
    def of_floats(cls, problem: Problem, randomizer: Randomizer) -> _Table:
        """Table of floats as rationals, columns that exceed the ratio lifted and rows made even."""
        used = randomizer.matrix.max(axis=0) > 0
        matrix, ratio = randomizer.matrix[:, used], privacy_ratio(problem.epsilon)
        weights = np.array(scaled(matrix.ravel(), places(matrix.ravel())), dtype=object).reshape(matrix.shape)
        excess = weights.max(axis=0) * ratio.denominator - weights.min(axis=0) * ratio.numerator
        lifted = weights * (ratio.numerator - ratio.denominator) + np.maximum(excess, 0)
        even = _evened(lifted)
        return cls(randomizer.outputs[used], even, int(even[0].sum()), ratio)

    def completed(self, problem: Problem) -> Fraction | None:
        """Objective, with means made right where bias is not allowed; None if they cannot be."""
        expected = _expected(problem, self.outputs, self.weights, self.ratio) / self.total
        biases = self.moments(problem, 1)
        if not (problem.unbiased and any(biases)):
            return expected + _charge(problem, biases)
        found = Completion.of_biases(problem, biases, self.ratio)
        if found is None:
            return None
        return (
            found.kept * expected + _lost(problem, found.low, found.at_low) + _lost(problem, found.high, found.at_high)
        )

    def of_each_label(self, problem: Problem) -> list[Fraction] | None:
        """Loss of each label so completed, for squared loss."""
        errors, biases = self.moments(problem, 2), self.moments(problem, 1)
        if not (problem.unbiased and any(biases)):
            return charged(errors, biases, problem.bias_penalty)
        found = Completion.of_biases(problem, biases, self.ratio)
        if found is None:
            return None
        low, high = Fraction(found.low), Fraction(found.high)
        rows = zip(map(Fraction, problem.labels.tolist()), errors, found.at_low, found.at_high, strict=True)
        return [(found.kept * error + u * (low - y) ** 2 + w * (high - y) ** 2) / 2 for y, error, u, w in rows]

    def moments(self, problem: Problem, power: int) -> list[Fraction]:
        """Expectation of ``(output - label)**power`` for each label."""
        return deviations(self.weights, problem.labels, self.outputs, power, total=self.total)


def _evened(weights: Integers) -> Integers:
    """Rows raised to the largest of their totals, entry by entry, none beyond the largest of its column.

    No ratio grows. There is room for it: the largest entries of all columns sum to at least the largest total.
    """
    rows, even = weights.sum(axis=1).tolist(), weights.copy()
    for y in np.flatnonzero([row < max(rows) for row in rows]).tolist():
        lack, room = max(rows) - rows[y], weights.max(axis=0) - weights[y]
        for i in sorted(range(weights.shape[1]), key=room.__getitem__, reverse=True):
            more = min(lack, room[i])
            even[y, i] += more
            lack -= more
            if not lack:
                break
    return even


def _lost(problem: Problem, output: float, chances: list[Fraction]) -> Fraction:
    """Loss of an output that labels get with some probabilities, rounded up."""
    if isinstance(problem.loss, losses.Loss):
        value = Fraction(output)
        costs = [problem.loss.bracket(value, Fraction(y))[1] for y in problem.labels.tolist()]
    else:
        costs = [Fraction(cost) for cost in problem.loss_table(np.array([output]))[:, 0].tolist()]
    parts = zip(map(Fraction, problem.prior.tolist()), chances, costs, strict=True)
    return sum((p * chance * cost for p, chance, cost in parts), Fraction(0))
