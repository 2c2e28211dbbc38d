"""Exact loss of a table under a prior, the upper end of a certificate.

The loss is that of the table that is drawn, entry by entry, in rational arithmetic; where a loss is irrational it is
rounded up (``docs/mathematics.md``, section 2). A step of a column counts for all labels from its place on, so that
sums over labels are differences of running sums, and interval columns cost ``O(k + n log k)`` integer operations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from operator import mul

from optrand.base.arithmetic import log_bracket, places, scaled
from optrand.model import losses
from optrand.model.losses import Tabulated
from optrand.model.problem import Problem
from optrand.model.table import Table

__all__ = ["exact_objective", "expected_loss"]


def exact_objective(problem: Problem, table: Table) -> Fraction:
    """Compute the objective of the minimisation: the expected loss and the penalty on bias.

    An infinite penalty is not charged: the caller refuses biased tables.

    Examples
    --------
    >>> from optrand.model.problem import unbiased_regression
    >>> coin = Table.of_rows([0, 1], [-1, 2], [[2, 1], [1, 2]])
    >>> exact_objective(unbiased_regression([0, 1], [0.5, 0.5], 0.7), coin)
    Fraction(1, 1)
    """
    loss = expected_loss(problem, table)
    if problem.unbiased or not problem.bias_penalty:
        return loss
    charges = zip(map(Fraction, problem.prior.tolist()), table.biases, strict=True)
    return loss + Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2


def expected_loss(problem: Problem, table: Table) -> Fraction:
    """Compute the expected loss, for classification minus the probability to keep the class."""
    finer = places(problem.prior)
    parts = scaled(problem.prior, finer)
    if problem.loss in (losses.squared, losses.absolute):
        digits = max(places(problem.labels), places(table.outputs))
        labels, outputs = scaled(problem.labels, digits), scaled(table.outputs, digits)
        # Measured from a label, numbers far from zero stay short.
        zero = labels[len(labels) // 2]
        labels, outputs = [y - zero for y in labels], [v - zero for v in outputs]
        squared = problem.loss == losses.squared
        whole = (_squared if squared else _absolute)(parts, labels, outputs, table)
        return Fraction(whole, table.total * (2 << (finer + 2 * digits) if squared else 1 << (finer + digits)))
    if problem.loss == losses.poisson_log:
        return _poisson(problem, parts, table) / (table.total << finer)
    return _tabulated(problem, parts, table) / (table.total << finer)


def _squared(parts: list[int], labels: list[int], outputs: list[int], table: Table) -> int:
    pulls = list(map(mul, parts, labels))
    zeroth, once, twice = (_sums_from(amounts) for amounts in (parts, pulls, map(mul, pulls, labels)))
    whole = 0
    for v, column in zip(outputs, table.columns, strict=True):
        weight = pull = rest = 0
        for y, step in column:
            weight += step * zeroth[y]
            pull += step * once[y]
            rest += step * twice[y]
        whole += (v * weight - 2 * pull) * v + rest
    return whole


def _absolute(parts: list[int], labels: list[int], outputs: list[int], table: Table) -> int:
    zeroth, once = _sums_from(parts), _sums_from(map(mul, parts, labels))
    whole = 0
    for v, column in zip(outputs, table.columns, strict=True):
        turn = bisect_left(labels, v)
        for y, step in column:
            # Labels before `turn` lie below the output, all others at it or above.
            middle = max(y, turn)
            weight, pull = (sums[y] - 2 * sums[middle] for sums in (zeroth, once))
            whole += step * (v * weight - pull)
    return whole


def _poisson(problem: Problem, parts: list[int], table: Table) -> Fraction:
    """Sum of ``v - y log v``, from the weight of each output, and that weight times the label."""
    line = places(problem.labels)
    zeroth, once = _sums_from(parts), _sums_from(map(mul, parts, scaled(problem.labels, line)))
    whole = Fraction(0)
    for v, column in zip(map(Fraction, table.outputs.tolist()), table.columns, strict=True):
        weight, pull = (sum(step * sums[y] for y, step in column) for sums in (zeroth, once))
        whole += v * weight - log_bracket(v)[0] * Fraction(pull, 1 << line)
    return whole


def _tabulated(problem: Problem, parts: list[int], table: Table) -> Fraction:
    """Sum of a loss that is known entry by entry; cost ``O(k n)``, for classes ``O(n)``."""
    if problem.loss == losses.zero_one:
        rows = {y: i for i, y in enumerate(problem.labels.tolist())}
        own = (rows.get(v) for v in table.outputs.tolist())
        return Fraction(
            -sum(
                parts[row] * sum(step for y, step in column if y <= row)
                for row, column in zip(own, table.columns, strict=True)
                if row is not None
            )
        )
    if isinstance(problem.loss, Tabulated):
        entries = problem.loss_table(table.outputs)
        digits = places(entries.ravel())
        whole = 0
        for costs, column in zip(entries.T, table.columns, strict=True):
            sums = _sums_from(map(mul, parts, scaled(costs, digits)))
            whole += sum(step * sums[y] for y, step in column)
        return Fraction(whole, 1 << digits)
    bracket, labels = problem.loss.bracket, list(map(Fraction, problem.labels.tolist()))
    total = Fraction(0)
    for v, weights in zip(map(Fraction, table.outputs.tolist()), table.weights.T.tolist(), strict=True):
        entries_of = zip(parts, labels, weights, strict=True)
        total += sum((p * weight * bracket(v, y)[1] for p, y, weight in entries_of if p), Fraction(0))
    return total


def _sums_from(amounts: Iterable[int]) -> list[int]:
    """Return sums of the amounts of all labels from each one on, and 0 at the end."""
    return list(accumulate(reversed(list(amounts)), initial=0))[::-1]
