r"""Squared loss in doubles, compiled: a twentieth of the time of :mod:`optrand.certificates.quick`, whose formulas it has.

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
    labels, prior, excess = asked.labels, asked.prior, asked.excess
    k, middle = labels.size, labels[labels.size // 2]
    shift = middle - origin
    b, c, off_b, off_c = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    # Twice the reduced costs, by the distance from the middle label; and the terms of the bound that need no column.
    base, base_lost, sizes, largest = 0.0, 0.0, 0.0, abs(origin)
    weight, pulls, costs = 0.0, 0.0, 0.0
    for y in range(k):
        place = labels[y] - middle
        off_place = UNIT * (abs(place) + abs(shift))
        pull, drift = prior[y] * place, 2 * (alpha[y] + beta[y] * shift)
        b[y], c[y] = pull + beta[y], pull * place - drift
        off_b[y] = 2 * UNIT * (abs(pull) + abs(beta[y])) + prior[y] * off_place
        off_c[y] = 4 * UNIT * (abs(pull * place) + 2 * abs(alpha[y]) + 2 * abs(beta[y] * shift))
        off_c[y] += 2 * abs(pull) * off_place + 2 * abs(beta[y]) * UNIT * abs(shift)
        weight, pulls, costs = weight + prior[y], pulls + 2 * abs(b[y]), costs + 2 * abs(c[y])
        lever, charge = beta[y] * (labels[y] - origin), 0.0
        if asked.penalty < np.inf and beta[y] != 0:
            charge = beta[y] * beta[y] / (2 * asked.penalty * prior[y])
        base, base_lost = _added(base, base_lost, alpha[y])
        base, base_lost = _added(base, base_lost, lever)
        base, base_lost = _added(base, base_lost, -charge)
        sizes += abs(alpha[y]) + abs(lever) + charge + abs(beta[y]) * (abs(labels[y]) + abs(origin))
        largest = max(largest, abs(labels[y]), abs(alpha[y]), abs(beta[y]))
        if prior[y] > 0:
            largest = max(largest, 1 / prior[y])
    base += base_lost - 16 * UNIT * sizes

    # Beyond `far` no price is below what half of the weights and twice the rest come to.
    pulls, costs = (excess + 1) * pulls, (excess + 1) * costs
    far = 4 * (pulls + np.sqrt(pulls * pulls + weight * costs)) / weight
    beyond = (weight / 2 * far - 2 * pulls) * far - costs
    if not max(largest, far, excess) <= FAR:
        return -np.inf
    low, high = asked.low - middle, asked.high - middle
    low, high = max(low - UNIT * abs(low), -far), min(high + UNIT * abs(high), far)

    # How far reduced costs fall below zero outside of what is taken for their roots, or rise above it inside.
    slack, count = 0.0, 0
    events, owners, signs = np.empty(2 * k), np.empty(2 * k, np.int64), np.empty(2 * k)
    for y in range(k):
        each = _Quadratic(prior[y], b[y], c[y], 0.0, off_b[y], off_c[y])
        square, vertex, off = b[y] * b[y] - prior[y] * c[y], 0.0, 0.0
        if prior[y] > 0:
            vertex, off = b[y] / prior[y], off_b[y] / prior[y]
        if abs(vertex) <= 2 * far or abs(b[y]) <= 4 * off_b[y]:
            slack += prior[y] * (8 * UNIT * abs(vertex) + 2 * off) ** 2
        if not square > 0:
            slack += max(b[y] * vertex - c[y], 0.0) + _at(each, vertex)[1]
            continue
        outer = b[y] + math.copysign(np.sqrt(square), b[y])
        one, other = outer / prior[y], c[y] / outer
        first, second = min(one, other), max(one, other)
        left, right = min(max(first, low), high), min(max(second, low), high)
        for root, end, sign in ((first, left, 1.0), (second, right, -1.0)):
            height, off = _at(each, end)
            if not left < right:
                height = -height
            slack += off + (abs(height) if end == root else max(height, 0.0))
            events[count], owners[count], signs[count] = end, y, sign
            count += 1

    # Sums from the lowest output to the highest: each piece is one quadratic.
    a, a_lost, b_sum, b_lost, c_sum, c_lost = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    off_a, off_b_sum, off_c_sum = 0.0, 0.0, 0.0
    for y in range(k):
        a, a_lost = _added(a, a_lost, prior[y])
        b_sum, b_lost = _added(b_sum, b_lost, b[y])
        c_sum, c_lost = _added(c_sum, c_lost, c[y])
        off_a += 4 * UNIT * (1 + 2 * excess) * prior[y]
        off_b_sum += (1 + 2 * excess) * (off_b[y] + 4 * UNIT * abs(b[y]))
        off_c_sum += (1 + 2 * excess) * (off_c[y] + 4 * UNIT * abs(c[y]))
    more = 1 + 4 * k * UNIT
    off_a, off_b_sum, off_c_sum = off_a * more, off_b_sum * more, off_c_sum * more
    within, left = np.inf, low
    order = np.argsort(events[:count], kind="mergesort")
    for i in range(count + 1):
        right = high if i == count else events[order[i]]
        piece = _Quadratic(a + a_lost, b_sum + b_lost, c_sum + c_lost, off_a, off_b_sum, off_c_sum)
        if not piece.a > 4 * off_a:
            return -np.inf
        best = min(max(piece.b / piece.a, left), right)
        height, off = _at(piece, best)
        off += off_a * best * best + 2 * off_b_sum * off_b_sum / piece.a + piece.a * (8 * UNIT * best) ** 2
        within = min(within, height - off)
        if i < count:
            y, rise = owners[order[i]], signs[order[i]] * excess
            a, a_lost = _added(a, a_lost, rise * prior[y])
            b_sum, b_lost = _added(b_sum, b_lost, rise * b[y])
            c_sum, c_lost = _added(c_sum, c_lost, rise * c[y])
            left = right
    lowest = min(within - excess * (1 + 8 * k * UNIT) * slack, beyond) / 2
    share = k / (excess + k) if lowest < 0 else 1 / (excess + 1)
    bound: float = base + share * lowest
    return bound - 8 * UNIT * (abs(base) + abs(lowest)) - UNDERFLOW


@compiled_strictly
def loss_above(
    asked: Asked, first: Indices, last: Indices, outputs: Floats, masses: Floats, close: float
) -> tuple[float, float]:
    """Upper bound of the loss of arcs, and of how far their means are off; infinite where rows are off by `close`.

    The loss is that of the middle label for all, a sum without cancellation, less what means and rows take from it.
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
    if not largest <= FAR:
        return np.inf, np.inf
    more = 1 + 8 * k * UNIT
    loss = squares - (taken + taken_lost) + 32 * UNIT * (squares + sizes) + off_taken * more
    if asked.penalty < np.inf:
        loss += asked.penalty * charged * more
    return loss / 2 + UNDERFLOW, most
