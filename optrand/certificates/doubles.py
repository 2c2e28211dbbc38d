r"""Squared loss in doubles, compiled: by the formulas of :mod:`optrand.certificates.quick`, in a twentieth of its time.

Every operation is charged an error of :math:`2^{-52}`, twice what it may have. Running sums carry what their additions
lose (:func:`_added`): of :math:`n` terms they err by :math:`2^{-53}` of the sum and :math:`n^2 2^{-106}` of the sizes
of the terms (Ogita, Rump and Oishi, *Accurate sum and dot product*, 2005), next to nothing up to :data:`MOST` terms.

Products that underflow are off by less than :math:`10^{-323}`, and no factor is beyond :math:`10^{120}` where numbers
stay within :data:`FAR`: :data:`UNDERFLOW` is more than all of them together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optrand.base.compiled import compiled_strictly
from optrand.base.validation import Floats
from optrand.model.arcs import Indices

__all__ = ["MOST", "Asked", "bound_below", "loss_above"]

UNIT = float(np.finfo(np.float64).eps)
"""Twice the largest relative error of an operation."""

MOST = 4_000_000
"""Labels and columns, at most."""

FAR = 1e30
"""Numbers beyond this, and positive priors below its inverse, are left to extended precision."""

UNDERFLOW = 1e-150
"""More than what all underflows come to."""


class Asked(NamedTuple):
    """Numbers of a problem with squared loss off grids, without bias or at a price of it.

    Attributes
    ----------
    labels, prior : (k,) arrays
    excess : float
        ``exp(epsilon) - 1``, rounded up.
    penalty : float
        On bias; infinite where none is allowed.
    low, high : float
        Ends of the outputs.
    """

    labels: Floats
    prior: Floats
    excess: float
    penalty: float
    low: float
    high: float


class _Quadratic(NamedTuple):
    """``a x^2 - 2 b x + c``, and bounds of the errors of its coefficients."""

    a: float
    b: float
    c: float
    off_a: float
    off_b: float
    off_c: float


class _Costs(NamedTuple):
    """Quadratics of all labels: twice their reduced costs, by the distance from the middle one."""

    a: Floats
    b: Floats
    c: Floats
    off_b: Floats
    off_c: Floats


class _Signs(NamedTuple):
    """Where reduced costs change their signs, in increasing order: the output, the label, and 1 where it gets cheap.

    `slack` is how far they fall below zero elsewhere, or rise above it where they are taken for cheap.
    """

    outputs: Floats
    labels: Indices
    rises: Floats
    slack: float


@compiled_strictly
def _added(total: float, lost: float, term: float) -> tuple[float, float]:
    """A sum with one more term, and what all additions have lost."""
    found = total + term
    taken = found - total
    return found, lost + ((total - (found - taken)) + (term - taken))


@compiled_strictly
def _at(quadratic: _Quadratic, x: float) -> tuple[float, float]:
    """Value at some output, and a bound of its error."""
    a, b, c, off_a, off_b, off_c = quadratic
    rounding = 4 * UNIT * (a * x * x + 2 * abs(b * x) + abs(c))
    return (a * x - 2 * b) * x + c, rounding + off_a * x * x + 2 * off_b * abs(x) + off_c


@compiled_strictly
def bound_below(asked: Asked, alpha: Floats, beta: Floats, origin: float) -> float:
    """Lower bound of the loss of every private randomizer, as :func:`optrand.certificates.quick.quick_bound`."""
    excess, k, middle = asked.excess, asked.labels.size, asked.labels[asked.labels.size // 2]
    costs = _costs(asked, alpha, beta, origin)
    # Beyond `far` no price is below what half of the weights and twice the rest come to.
    weight = costs.a.sum()
    pull, cost = 2 * (excess + 1) * np.abs(costs.b).sum(), 2 * (excess + 1) * np.abs(costs.c).sum()
    far = 4 * (pull + np.sqrt(pull * pull + weight * cost)) / weight
    beyond = (weight / 2 * far - 2 * pull) * far - cost
    if not max(_largest(asked, alpha, beta, origin), far, excess) <= FAR:
        return -np.inf
    low, high = asked.low - middle, asked.high - middle
    low, high = max(low - UNIT * abs(low), -far), min(high + UNIT * abs(high), far)
    signs = _signs(costs, low, high, far)
    within = _lowest(costs, signs, excess, low, high) - excess * (1 + 8 * k * UNIT) * signs.slack
    lowest, base = min(within, beyond) / 2, _base_below(asked, alpha, beta, origin)
    share = k / (excess + k) if lowest < 0 else 1 / (excess + 1)
    bound: float = base + share * lowest - 8 * UNIT * (abs(base) + abs(lowest)) - UNDERFLOW
    return bound


@compiled_strictly
def _largest(asked: Asked, alpha: Floats, beta: Floats, origin: float) -> float:
    """The largest of all numbers, the inverses of positive priors among them."""
    largest: float = max(abs(origin), np.abs(asked.labels).max(), np.abs(alpha).max(), np.abs(beta).max())
    for weight in asked.prior:
        if weight > 0:
            largest = max(largest, 1 / weight)
    return largest


@compiled_strictly
def _base_below(asked: Asked, alpha: Floats, beta: Floats, origin: float) -> float:
    """Lower bound of the terms that need no column."""
    total, lost, sizes = 0.0, 0.0, 0.0
    for y in range(alpha.size):
        lever, charge = beta[y] * (asked.labels[y] - origin), 0.0
        if asked.penalty < np.inf and beta[y] != 0:
            charge = beta[y] * beta[y] / (2 * asked.penalty * asked.prior[y])
        total, lost = _added(total, lost, alpha[y])
        total, lost = _added(total, lost, lever)
        total, lost = _added(total, lost, -charge)
        sizes += abs(alpha[y]) + abs(lever) + charge + abs(beta[y]) * (abs(asked.labels[y]) + abs(origin))
    base: float = total + (lost - 16 * UNIT * sizes)
    return base


@compiled_strictly
def _costs(asked: Asked, alpha: Floats, beta: Floats, origin: float) -> _Costs:
    """Reduced costs."""
    labels, prior, k = asked.labels, asked.prior, asked.labels.size
    middle = labels[k // 2]
    b, c, off_b, off_c = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    shift = middle - origin
    for y in range(k):
        place = labels[y] - middle
        off_place = UNIT * (abs(place) + abs(shift))
        pull, drift = prior[y] * place, 2 * (alpha[y] + beta[y] * shift)
        b[y], c[y] = pull + beta[y], pull * place - drift
        off_b[y] = 2 * UNIT * (abs(pull) + abs(beta[y])) + prior[y] * off_place
        off_c[y] = 4 * UNIT * (abs(pull * place) + 2 * abs(alpha[y]) + 2 * abs(beta[y] * shift))
        off_c[y] += 2 * abs(pull) * off_place + 2 * abs(beta[y]) * UNIT * abs(shift)
    return _Costs(prior, b, c, off_b, off_c)


@compiled_strictly
def _signs(costs: _Costs, low: float, high: float, far: float) -> _Signs:
    """Where labels are taken for cheap: between their roots as doubles find them, whose errors are slack."""
    a, b, c, off_b, off_c = costs
    slack, count = 0.0, 0
    outputs, labels, rises = np.empty(2 * a.size), np.empty(2 * a.size, np.int64), np.empty(2 * a.size)
    for y in range(a.size):
        each = _Quadratic(a[y], b[y], c[y], 0.0, off_b[y], off_c[y])
        square, vertex, off = b[y] * b[y] - a[y] * c[y], 0.0, 0.0
        # Labels of prior zero have no vertex, and at most one root.
        if a[y] > 0:
            vertex, off = b[y] / a[y], off_b[y] / a[y]
        # A vertex beyond all outputs, for sure, is outside of no root.
        if abs(vertex) <= 2 * far or abs(b[y]) <= 4 * off_b[y]:
            slack += a[y] * (8 * UNIT * abs(vertex) + 2 * off) ** 2
        if not square > 0:
            slack += max(b[y] * vertex - c[y], 0.0) + _at(each, vertex)[1]
            continue
        outer = b[y] + math.copysign(np.sqrt(square), b[y])
        one, other = outer / a[y], c[y] / outer
        first, second = min(one, other), max(one, other)
        left, right = min(max(first, low), high), min(max(second, low), high)
        for root, end, rise in ((first, left, 1.0), (second, right, -1.0)):
            height, off = _at(each, end)
            # A root among the outputs is a zero; at an end of the outputs the sign is what counts.
            if not left < right:
                height = -height
            slack += off + (abs(height) if end == root else max(height, 0.0))
            outputs[count], labels[count], rises[count] = end, y, rise
            count += 1
    order = np.argsort(outputs[:count], kind="mergesort")
    return _Signs(outputs[order], labels[order], rises[order], slack)


@compiled_strictly
def _lowest(costs: _Costs, signs: _Signs, excess: float, low: float, high: float) -> float:
    """Lower bound of twice the least price of a column, with the slack of signs: of one quadratic a piece."""
    a, a_lost, b, b_lost, c, c_lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for y in range(costs.a.size):
        a, a_lost = _added(a, a_lost, costs.a[y])
        b, b_lost = _added(b, b_lost, costs.b[y])
        c, c_lost = _added(c, c_lost, costs.c[y])
    # Every sum along the line has each label at most 1 + 2 excess times.
    times = (1 + 2 * excess) * (1 + 4 * costs.a.size * UNIT)
    off_a = times * 4 * UNIT * costs.a.sum()
    off_b = times * (costs.off_b.sum() + 4 * UNIT * np.abs(costs.b).sum())
    off_c = times * (costs.off_c.sum() + 4 * UNIT * np.abs(costs.c).sum())
    lowest, left = np.inf, low
    for i in range(signs.outputs.size + 1):
        right = high if i == signs.outputs.size else signs.outputs[i]
        piece = _Quadratic(a + a_lost, b + b_lost, c + c_lost, off_a, off_b, off_c)
        if not piece.a > 4 * off_a:
            return -np.inf
        best = min(max(piece.b / piece.a, left), right)
        height, off = _at(piece, best)
        off += off_a * best * best + 2 * off_b * off_b / piece.a + piece.a * (8 * UNIT * best) ** 2
        lowest = min(lowest, height - off)
        if i < signs.outputs.size:
            y, rise, left = signs.labels[i], signs.rises[i] * excess, right
            a, a_lost = _added(a, a_lost, rise * costs.a[y])
            b, b_lost = _added(b, b_lost, rise * costs.b[y])
            c, c_lost = _added(c, c_lost, rise * costs.c[y])
    return lowest


@compiled_strictly
def loss_above(
    asked: Asked, first: Indices, last: Indices, outputs: Floats, masses: Floats, close: float
) -> tuple[float, float]:
    """Upper bound of the loss of some arcs, and the error of their means that it stands; infinite where they are off.

    Rows may be off by `close`, means of unbiased ones by as much of the width of labels and outputs. The loss is that
    of the middle label for all, a sum without cancellation, less what means and rows take from it.
    """
    labels, prior, excess = asked.labels, asked.prior, asked.excess
    k, middle = labels.size, labels[labels.size // 2]
    before, sum_before, lost = np.zeros(k + 1), 0.0, 0.0
    for y in range(k):
        sum_before, lost = _added(sum_before, lost, prior[y])
        before[y + 1] = sum_before + lost
    row_steps, mean_steps = np.zeros(k + 1), np.zeros(k + 1)
    lost_rows, lost_means = np.zeros(k + 1), np.zeros(k + 1)
    mass, mass_lost, moment, moment_lost = 0.0, 0.0, 0.0, 0.0
    squares, square_lost, mass_size, moment_size, largest = 0.0, 0.0, 0.0, 0.0, excess
    lowest, highest = np.inf, -np.inf
    for i in range(masses.size):
        if not masses[i] >= 0:
            return np.inf, np.inf
        a, b, output = first[i], last[i] + 1, outputs[i] - middle
        pull = masses[i] * output
        row_steps[a], lost_rows[a] = _added(row_steps[a], lost_rows[a], masses[i])
        row_steps[b], lost_rows[b] = _added(row_steps[b], lost_rows[b], -masses[i])
        mean_steps[a], lost_means[a] = _added(mean_steps[a], lost_means[a], pull)
        mean_steps[b], lost_means[b] = _added(mean_steps[b], lost_means[b], -pull)
        mass, mass_lost = _added(mass, mass_lost, masses[i])
        moment, moment_lost = _added(moment, moment_lost, pull)
        favoured = before[k] + excess * (before[b] - before[a]) + 4 * UNIT * (1 + excess) * before[k]
        squares, square_lost = _added(squares, square_lost, pull * output * favoured)
        mass_size, moment_size = mass_size + masses[i], moment_size + abs(pull)
        lowest, highest = min(lowest, outputs[i]), max(highest, outputs[i])
        largest = max(largest, abs(outputs[i]), masses[i])
    squares, mass, moment = squares + square_lost, mass + mass_lost, moment + moment_lost
    # An amount of a label is a sum over all columns, and `excess` times one over those that favour it.
    rounding = 16 * UNIT * (1 + 2 * excess)
    off_row, off_mean = rounding * mass_size, rounding * moment_size
    row, row_lost, mean, mean_lost, most, charged = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    taken, taken_lost, sizes, off_taken = 0.0, 0.0, 0.0, 0.0
    for y in range(k):
        row, row_lost = _added(row, row_lost + lost_rows[y], row_steps[y])
        mean, mean_lost = _added(mean, mean_lost + lost_means[y], mean_steps[y])
        total, place = mass + excess * (row + row_lost), labels[y] - middle
        expected = moment + excess * (mean + mean_lost)
        if not abs(total - 1) + off_row <= close:
            return np.inf, np.inf
        bias = abs(expected - place) + off_mean + UNIT * abs(place)
        most = max(most, bias)
        charged += prior[y] * bias * bias
        taken, taken_lost = _added(taken, taken_lost, prior[y] * place * (2 * expected - place * total))
        sizes += prior[y] * abs(place) * (2 * abs(expected) + abs(place) * total)
        off_taken += prior[y] * abs(place) * (2 * off_mean + abs(place) * off_row)
        largest = max(largest, abs(labels[y]))
    error = close * max(highest - lowest, labels[k - 1] - labels[0])
    inside = asked.low <= lowest and highest <= asked.high
    if not (largest <= FAR and inside and (most <= error or asked.penalty < np.inf)):
        return np.inf, error
    more = 1 + 8 * k * UNIT
    loss = squares - (taken + taken_lost) + 32 * UNIT * (squares + sizes) + off_taken * more
    if asked.penalty < np.inf:
        loss += asked.penalty * charged * more
    return loss / 2 + UNDERFLOW, error
