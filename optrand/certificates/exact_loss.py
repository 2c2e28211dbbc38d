"""The exact loss of a mechanism that is feasible, or of the exact repair of a randomizer that rounding keeps from it.

This is the upper end of a certificate. It knows no multipliers: it is what one private, normalised and (where the
problem asks for it) unbiased mechanism loses, in rational arithmetic, rounded up where a loss is irrational. What a
repair costs is thereby counted. Three forms, three repairs:

* interval columns, whose masses become integers that conserve flow and whose moments become exact
  (:mod:`optrand.mechanism.exact_means`): private and normalised by construction;
* a table in integers, private and normalised already, whose means a share of two outputs makes right
  (:mod:`optrand.mechanism.completion`);
* a table in floats, whose columns are lifted until they keep within the ratio, whose rows are then given one total, and
  whose means are made right in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from optrand.model import losses
from optrand.model.exact_flow import ExactFlow
from optrand.model.integer_arcs import IntegerArcs
from optrand.model.interval_channel import IntervalChannel
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["as_it_is", "of_each_label", "of_mechanism", "of_randomizer"]


def of_mechanism(problem: Problem, mechanism: Mechanism) -> Fraction | None:
    """The objective of the minimisation at a mechanism, or at its repair; None where it cannot be repaired.

    Outputs that were split between neighbouring floats count as what they are on average, except on a grid: with them
    the mechanism is as private and as unbiased, and it is what the floats stand for.
    """
    if problem.loss == losses.squared and _keeps_by_column(problem, mechanism):
        flow = _repaired(problem, _columns(problem, mechanism))
        return None if flow is None else flow.squared_error(problem.prior) / 2 + _charge(problem, flow.biases)
    biases = mechanism.exact_biases
    if problem.unbiased and any(biases):
        return _Table.of_mechanism(problem, mechanism).completed(problem)
    expected = _expected(problem, mechanism.outputs, mechanism.table, mechanism.ratio)
    return expected / mechanism.total + _charge(problem, biases)


def of_randomizer(problem: Problem, randomizer: Randomizer) -> Fraction | None:
    """The same of a randomizer in floats that is feasible within rounding."""
    if randomizer.arcs is None:
        return _Table.of_floats(problem, randomizer).completed(problem)
    flow = _flow_of(problem, randomizer)
    if flow is None:
        return None
    if problem.loss == losses.squared:
        return flow.squared_error(problem.prior) / 2 + _charge(problem, flow.biases)
    outputs, integers = flow.in_floats()
    expected = _expected(problem, outputs, integers, flow.ratio)
    return expected / integers.total(flow.ratio) + _charge(problem, flow.biases)


def of_each_label(problem: Problem, answer: Randomizer | Mechanism) -> list[Fraction] | None:
    """What each label loses, half its squared error and the penalty on its bias; None where there is no repair."""
    if isinstance(answer, Mechanism):
        if not _keeps_by_column(problem, answer):
            return _Table.of_mechanism(problem, answer).of_each_label(problem)
        flow = _repaired(problem, _columns(problem, answer))
    else:
        if answer.arcs is None:
            return _Table.of_floats(problem, answer).of_each_label(problem)
        flow = _flow_of(problem, answer)
    return None if flow is None else _each(problem.bias_penalty, flow.squared_errors(), flow.biases)


def as_it_is(mechanism: Mechanism, bias_penalty: float) -> list[Fraction]:
    """The same of a mechanism without any repair, at a price of bias that may be infinite."""
    problem = mechanism.problem
    if mechanism.arcs is not None:
        errors = _columns(problem, mechanism, joined=False).squared_errors()
    else:
        table = _Table(mechanism.outputs, mechanism.weights, mechanism.total, mechanism.ratio)
        errors = table.moments(problem, 2)
    return _each(bias_penalty, errors, mechanism.exact_biases)


def _keeps_by_column(problem: Problem, mechanism: Mechanism) -> bool:
    """Whether a mechanism is made of interval columns that keep the budget of the problem each by itself.

    Arcs of a larger ratio may keep it together, at outputs that they share; taken apart they do not.
    """
    return mechanism.arcs is not None and mechanism.ratio <= exp_bracket(problem.epsilon)[0]


def _columns(problem: Problem, mechanism: Mechanism, *, joined: bool = True) -> ExactFlow:
    """Those of a mechanism of arcs, neighbouring floats joined where what lies between them is allowed."""
    arcs, joined = mechanism.arcs, joined and not isinstance(problem.outputs, Grid)
    return ExactFlow.of_integers(
        mechanism.labels,
        mechanism.outputs,
        arcs,  # type: ignore[arg-type]
        mechanism.ratio,
        joined=joined,
    )


def _flow_of(problem: Problem, randomizer: Randomizer) -> ExactFlow | None:
    """The exact columns of a randomizer of arcs, whose rows are right at the budget that it claims."""
    try:
        problem = replace(problem, epsilon=min(problem.epsilon, randomizer.epsilon))
        return exact_flow(problem, randomizer.arcs, corrected=False)  # type: ignore[arg-type]
    except (Infeasible, NotCertified):
        return None


def _repaired(problem: Problem, flow: ExactFlow) -> ExactFlow | None:
    """Exact columns without bias where none is allowed."""
    return with_exact_means(problem, flow) if problem.unbiased and any(flow.biases) else flow


def _each(bias_penalty: float, errors: Sequence[Fraction], biases: Sequence[Fraction]) -> list[Fraction]:
    """Half of squared errors, and what biases cost where they are allowed."""
    penalty = Fraction(bias_penalty) if bias_penalty < math.inf else Fraction(0)
    return [(error + penalty * bias**2) / 2 for error, bias in zip(errors, biases, strict=True)]


def _charge(problem: Problem, biases: Sequence[Fraction]) -> Fraction:
    """The bias penalty; nothing where it is infinite, for there all biases are 0."""
    if problem.unbiased or not problem.bias_penalty:
        return Fraction(0)
    charges = zip(map(Fraction, problem.prior.tolist()), biases, strict=True)
    return Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2


def _expected(problem: Problem, outputs: Floats, table: IntegerArcs | Integers, ratio: Fraction) -> Fraction:
    """The expected loss times the row total, rounded up where it is not rational.

    Not for squared loss of arcs, which :class:`~optrand.model.exact_flow.ExactFlow` has. Of arcs ``O(k + n log k)``
    integer operations, and ``n`` logarithms for Poisson log loss; of tables, and of a loss that is a table or the
    user's own, ``O(k n)``.
    """
    if problem.loss == losses.zero_one:
        kept = zip(map(Fraction, problem.prior.tolist()), _kept(problem.labels, outputs, table, ratio), strict=True)
        return -sum((p * weight for p, weight in kept), Fraction(0))
    if problem.loss == losses.poisson_log:
        return _expected_poisson(problem, outputs, table, ratio)
    if isinstance(table, IntegerArcs):
        if problem.loss == losses.absolute:
            ends, masses = (table.first, table.last), table.masses.tolist()
            channel = IntervalChannel.of_integers(problem.labels, outputs[table.at], ends, masses, ratio)
            return channel.absolute_error(problem.prior) * channel.total
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
    """``v - y log v``: of each output its weight, and that weight times the label, are all that counts."""
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
    """Of a loss of which nothing is known but its brackets; cost ``O(k n)`` fractions."""
    expected, values = Fraction(0), list(map(Fraction, outputs.tolist()))
    for y, p, row in zip(problem.labels.tolist(), problem.prior.tolist(), table.tolist(), strict=True):
        if p:
            costs = (weight * loss.bracket(v, Fraction(y))[1] for v, weight in zip(values, row, strict=True))
            expected += Fraction(p) * sum(costs, Fraction(0))
    return expected


def _kept(labels: Floats, outputs: Floats, table: IntegerArcs | Integers, ratio: Fraction) -> list[int]:
    """The weight of each label as its own output; 0 for labels that are none."""
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
    """A table in integers whose columns keep within a ratio and whose rows have one total.

    Attributes
    ----------
    outputs : (n,) array
    weights : (k, n) array of int
    total : int
    ratio : Fraction
    """

    outputs: Floats
    weights: Integers
    total: int
    ratio: Fraction

    @classmethod
    def of_mechanism(cls, problem: Problem, mechanism: Mechanism) -> _Table:
        """Of an exact mechanism that keeps the budget, whatever ratio it declares."""
        ratio = max(privacy_ratio(problem.epsilon), mechanism.realised_ratio)
        return cls(mechanism.outputs, mechanism.weights, mechanism.total, ratio)

    @classmethod
    def of_floats(cls, problem: Problem, randomizer: Randomizer) -> _Table:
        """Of floats, as the rationals that they are, columns that exceed the ratio lifted and rows made even."""
        used = randomizer.matrix.max(axis=0) > 0
        matrix, ratio = randomizer.matrix[:, used], privacy_ratio(problem.epsilon)
        weights = np.array(scaled(matrix.ravel(), places(matrix.ravel())), dtype=object).reshape(matrix.shape)
        excess = weights.max(axis=0) * ratio.denominator - weights.min(axis=0) * ratio.numerator
        lifted = weights * (ratio.numerator - ratio.denominator) + np.maximum(excess, 0)
        even = _evened(lifted)
        return cls(randomizer.outputs[used], even, int(even[0].sum()), ratio)

    def completed(self, problem: Problem) -> Fraction | None:
        """The objective, with means made right where bias is not allowed; None if they cannot be."""
        expected = _expected(problem, self.outputs, self.weights, self.ratio) / self.total
        biases = self.moments(problem, 1)
        if not (problem.unbiased and any(biases)):
            return expected + _charge(problem, biases)
        found = self._completion(problem, biases)
        if found is None:
            return None
        return (
            found.kept * expected + _lost(problem, found.low, found.at_low) + _lost(problem, found.high, found.at_high)
        )

    def of_each_label(self, problem: Problem) -> list[Fraction] | None:
        """The same of each label, for squared loss."""
        errors, biases = self.moments(problem, 2), self.moments(problem, 1)
        if not (problem.unbiased and any(biases)):
            return _each(problem.bias_penalty, errors, biases)
        found = self._completion(problem, biases)
        if found is None:
            return None
        low, high = Fraction(found.low), Fraction(found.high)
        rows = zip(map(Fraction, problem.labels.tolist()), errors, found.at_low, found.at_high, strict=True)
        return [(found.kept * error + u * (low - y) ** 2 + w * (high - y) ** 2) / 2 for y, error, u, w in rows]

    def moments(self, problem: Problem, power: int) -> list[Fraction]:
        """The expectation of ``(output - label)**power`` for each label."""
        digits = max(places(problem.labels), places(self.outputs))
        rows, columns = (np.array(scaled(x, digits), dtype=object) for x in (problem.labels, self.outputs))
        moments = (self.weights * (columns - rows[:, np.newaxis]) ** power).sum(axis=1)
        return [Fraction(moment, self.total << (power * digits)) for moment in moments.tolist()]

    def _completion(self, problem: Problem, biases: list[Fraction]) -> Completion | None:
        middle = Fraction(float(problem.labels[problem.k // 2]))
        labels = [Fraction(y) - middle for y in problem.labels.tolist()]
        means = [y + bias for y, bias in zip(labels, biases, strict=True)]
        ends = problem.outputs.low, problem.outputs.high
        return Completion.of(ends, labels, means, self.ratio, origin=middle)


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
    """What an output loses that labels get with some chances, rounded up."""
    if isinstance(problem.loss, losses.Loss):
        value = Fraction(output)
        costs = [problem.loss.bracket(value, Fraction(y))[1] for y in problem.labels.tolist()]
    else:
        costs = [Fraction(cost) for cost in problem.loss_table(np.array([output]))[:, 0].tolist()]
    parts = zip(map(Fraction, problem.prior.tolist()), chances, costs, strict=True)
    return sum((p * chance * cost for p, chance, cost in parts), Fraction(0))
