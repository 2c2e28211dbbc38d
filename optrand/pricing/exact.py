r"""The bound of :mod:`optrand.certificate` for every loss, and the value of a mechanism, in rationals, rounded safely.

Labels, priors and multipliers are floats, so they are exact dyadic rationals. :math:`E = e^\epsilon` is rounded *up*
(a larger :math:`E` admits more randomizers, so the bound is still true). Each loss has a module of its own:
:mod:`~optrand.pricing.squared`, :mod:`~optrand.pricing.absolute`, :mod:`~optrand.pricing.poisson`,
:mod:`~optrand.pricing.tables`. One of the user's own is evaluated everywhere on its grid, from lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul

import numpy as np

from optrand import losses
from optrand.arcs.channel import IntervalChannel
from optrand.dyadic import places, scaled
from optrand.mechanism import Mechanism
from optrand.outputs import Grid
from optrand.pricing import absolute as exact_absolute
from optrand.pricing import poisson as exact_poisson
from optrand.pricing import squared as exact_squared
from optrand.pricing import tables
from optrand.pricing.bound import excess_above
from optrand.problem import Problem
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["cheap", "lower_bound", "value"]


def rationals(numbers: Floats) -> list[Fraction]:
    """The floats as the rationals that they are."""
    return [Fraction(x) for x in numbers.tolist()]


def cheap(problem: Problem) -> bool:
    """Whether exact arithmetic costs no more than floats, so that nothing else is used: squared and absolute loss."""
    return problem.loss in (losses.squared, losses.absolute)


def lower_bound(problem: Problem, dual: Dual) -> Fraction:
    """The bound as a rational; multipliers must be zero where ``bias_penalty * prior`` is.

    Notes
    -----
    For ``k`` labels, and on a grid of ``n`` values:

    ===============  ==================  ==================
    loss             off a grid          on a grid
    ===============  ==================  ==================
    squared          ``O(k log k)``      ``O(k log n)``
    absolute         ``O(k log k)``      ``O(k log n + n)``
    Poisson log      ``O(k log k)``      ``O(k log n + n)``
    classification                       ``O(k + n)``
    any other                            ``O(k n)``
    ===============  ==================  ==================
    """
    loss, outputs = problem.loss, problem.outputs
    if loss == losses.squared:
        return exact_squared.lower_bound(problem, dual)
    if loss == losses.absolute:
        return exact_absolute.lower_bound(problem, dual)
    if loss == losses.poisson_log:
        return exact_poisson.lower_bound(problem, dual)
    grid = outputs.values if isinstance(outputs, Grid) else np.empty(0)
    if isinstance(loss, losses.Tabulated):
        return tables.lower_bound(problem, dual, loss, grid)
    if loss == losses.zero_one:
        return tables.lower_bound_of_classes(problem, dual, grid)
    return _of_any_loss(problem, dual, grid)


def _of_any_loss(problem: Problem, dual: Dual, grid: Floats) -> Fraction:
    """The bound for a loss of which nothing is known but its brackets."""
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    origin = Fraction(dual.origin)
    total = sum(alpha, Fraction(0)) + sum((b * (y - origin) for b, y in zip(beta, labels, strict=True)), Fraction(0))
    if not problem.unbiased:
        penalty = Fraction(problem.bias_penalty)
        total -= sum((b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b), Fraction(0))
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 1 << shift)
    lowest = _lowest_on_grid(problem, dual, ratio, grid)
    return total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)


def value(problem: Problem, mechanism: Mechanism) -> Fraction:
    """The objective at an exact mechanism (of the minimisation), rounded up where the loss is not rational."""
    arcs, outputs = mechanism.arcs, mechanism.outputs
    if arcs is not None and problem.loss in (losses.squared, losses.absolute):
        intervals = arcs.first, arcs.last
        channel = IntervalChannel.of_integers(
            problem.labels, outputs[arcs.at], intervals, arcs.masses.tolist(), mechanism.ratio
        )
        squared = problem.loss == losses.squared
        expected = channel.squared_error(problem.prior) / 2 if squared else channel.absolute_error(problem.prior)
    else:
        expected = _expected_loss(problem, mechanism)
    if problem.bias_penalty and not problem.unbiased:
        charges = zip(rationals(problem.prior), mechanism.exact_biases, strict=True)
        expected += Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2
    return expected


def _expected_loss(problem: Problem, mechanism: Mechanism) -> Fraction:
    """The expected loss, rounded up where it is not rational; cost ``O(k n)``, of classes ``O(k + n)``."""
    if problem.loss == losses.zero_one:
        kept = zip(rationals(problem.prior), _kept(mechanism), strict=True)
        return -sum((p * weight for p, weight in kept), Fraction(0)) / mechanism.total
    if problem.loss in (losses.squared, losses.absolute):
        digits, finer = max(places(problem.labels), places(mechanism.outputs)), places(problem.prior)
        labels, outputs = (np.array(scaled(x, digits), dtype=object) for x in (problem.labels, mechanism.outputs))
        distances = np.abs(outputs - labels[:, np.newaxis])
        power = 2 if problem.loss == losses.squared else 1
        means = (mechanism.weights * distances**power).sum(axis=1)
        error = sum(map(mul, scaled(problem.prior, finer), means.tolist()))
        return Fraction(error, power * mechanism.total << (finer + power * digits))
    exact_labels, prior, exact_outputs = (rationals(x) for x in (problem.labels, problem.prior, mechanism.outputs))
    expected = Fraction(0)
    for y, (label, p) in enumerate(zip(exact_labels, prior, strict=True)):
        if p:
            bounds = _loss_bounds(problem, y, label, exact_outputs)
            expected += p * sum(w * g for w, (_, g) in zip(mechanism.weights[y].tolist(), bounds, strict=True))
    return expected / mechanism.total


def _kept(mechanism: Mechanism) -> list[int]:
    """The weight of each label as its own output; 0 for labels that are none."""
    labels, outputs, arcs = mechanism.labels, mechanism.outputs, mechanism.arcs
    where = np.minimum(np.searchsorted(labels, outputs), labels.size - 1)
    kept = [0] * labels.size
    if arcs is None:
        for i in np.flatnonzero(labels[where] == outputs).tolist():
            kept[where[i]] = mechanism.weights[where[i], i]
        return kept
    low, high = mechanism.ratio.denominator, mechanism.ratio.numerator
    own, same = where[arcs.at], (labels[where] == outputs)[arcs.at]
    favoured = (arcs.first <= own) & (own <= arcs.last)
    for i in np.flatnonzero(same).tolist():
        kept[own[i]] += (high if favoured[i] else low) * arcs.masses[i]
    return kept


def _loss_bounds(
    problem: Problem, y: int, label: Fraction, outputs: Sequence[Fraction]
) -> Iterable[tuple[Fraction, Fraction]]:
    """Rational bounds of the loss of each output for label number `y`."""
    if isinstance(problem.loss, losses.Loss):
        return (problem.loss.bracket(v, label) for v in outputs)
    row = problem.loss_table(np.array([float(v) for v in outputs]))[y]
    return ((g, g) for g in rationals(row))


def _lowest_on_grid(problem: Problem, dual: Dual, ratio: Fraction, grid: Floats) -> Fraction:
    """``f`` at every value of a grid, from lower bounds of the losses; cost ``O(n k)``."""
    outputs, origin = rationals(grid), Fraction(dual.origin)
    costs = [Fraction(0)] * len(outputs)
    alpha, beta, labels, prior = (rationals(x) for x in (dual.alpha, dual.beta, problem.labels, problem.prior))
    for y, label in enumerate(labels):
        for i, (low, _) in enumerate(_loss_bounds(problem, y, label, outputs)):
            reduced = prior[y] * low - alpha[y] - beta[y] * (outputs[i] - origin)
            costs[i] += reduced * ratio if reduced < 0 else reduced
    return min(costs)
