"""Feasible answers: typical losses, one answer in closed form, and rows and means restored by least changes.

Typical losses are the units of outputs and costs in programs.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._bound import lower_bound
from optrand.closed_forms._regression import design_gap_response
from optrand.errors import InvalidInput
from optrand.mechanism._columns import DENSE, dense_change, least_change, node_equations
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Dual, Grid, Problem, unbiased_range
from optrand.model._randomizer import Arcs, Indices, Randomizer


def reach(problem: Problem) -> float:
    """About how far outputs lie from the middle of the labels: unbiased ones overhang them by up to ``1 / (E - 1)``."""
    overhang = 1 / math.expm1(problem.epsilon)
    penalty = problem.bias_penalty
    # A heuristic in between: without a penalty outputs need not overhang at all, and with a large one they do as if no
    # bias were allowed.
    willing = 1.0 if problem.unbiased else penalty and penalty / (penalty + overhang**2)
    spread = float(np.ptp(problem.labels)) or 1.0
    return spread * (0.5 + overhang * willing)


def typical_loss(problem: Problem, outputs: Floats) -> float:
    """About what an answer costs: the loss of a constant output as far off as :func:`reach` says.

    In classification, where outputs are no distances, the largest prior.
    """
    if problem.loss == losses.zero_one:
        return float(problem.prior.max())
    centre = float(problem.labels[0] + problem.labels[-1]) / 2
    nearest = [int(np.abs(outputs - end).argmin()) for end in (centre - reach(problem), centre + reach(problem))]
    typical = float(np.abs(problem.prior @ problem.loss_table(outputs[nearest])).mean())
    # These outputs may lose nothing, but others do.
    return typical or float(np.abs(problem.prior @ problem.loss_table(outputs)).max()) or 1.0


def attainable_loss(problem: Problem) -> float:
    """Return the least half squared error, bias charged, of some closed-form randomizers, an estimate of the optimum.

    These are the unbiased randomizer of the two end labels, debiased randomized response ([B23], Section 3.1), and at a
    finite bias penalty the constant output. Outputs are taken to be free, as this is a unit and not a bound. The result
    is not below the loss of labels beyond the ends of the outputs, which no randomizer avoids.
    """
    apart = problem.labels - problem.labels[0]
    # Some randomizers' losses overflow if labels are next to the largest floats.
    with np.errstate(over="ignore", invalid="ignore"):
        losses = np.stack(_compute_losses(problem, float(problem.prior @ apart)))
        attained = _cap_overflow(losses @ problem.prior)
    # A unit must not be zero, as losses of about exp(-epsilon) may be in floats.
    return max(float(attained.min()), _bound_unavoidable(problem), 1e-24 * (float(apart[-1]) or 1.0) ** 2)


def attainable_largest_loss(problem: Problem) -> float:
    """Return the least of the largest losses over labels, as :func:`attainable_loss` but without a prior."""
    middle = float(np.ptp(problem.labels)) / 2
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.stack(_compute_losses(problem, middle)).max(axis=1)
    return float(_cap_overflow(largest).min())


def _cap_overflow(amounts: Floats) -> Floats:
    """Replace losses that are not finite by about the largest one that floats can state."""
    largest = 1e300
    capped: Floats = np.nan_to_num(amounts, nan=largest, posinf=largest)
    return capped


def _bound_unavoidable(problem: Problem) -> float:
    """Bound the cost of labels beyond the ends of the outputs from below, by 0 if no bias is allowed."""
    beyond = problem.labels - np.clip(problem.labels, problem.outputs.low, problem.outputs.high)
    with np.errstate(over="ignore", invalid="ignore"):
        cost = 0.0 if problem.unbiased else (1 + problem.bias_penalty) * problem.prior @ beyond**2 / 2
    return float(_cap_overflow(np.asarray(cost)))


def _compute_losses(problem: Problem, constant: float) -> list[Floats]:
    """Compute the losses of each label under these randomizers. The constant output is counted from the first label."""
    apart, excess = problem.labels - problem.labels[0], math.expm1(problem.epsilon)
    spread, k = float(apart[-1]) or 1.0, problem.k
    overhang = spread / excess
    # Half the variance of an answer at either end of the narrowest interval: (y - L) (U - y) / 2 (section 6).
    two_ends = (apart + overhang) * (apart[-1] - apart + overhang) / 2
    # Debiased randomized response has the outputs y + k (y - mean label) / (E - 1).
    outputs = apart + k * (apart - apart.mean()) / excess
    others = np.sum(outputs**2) - 2 * apart * outputs.sum() + k * apart**2
    response = (others + excess * (outputs - apart) ** 2) / (2 * (excess + k))
    if problem.unbiased:
        return [two_ends, response]
    return [two_ends, response, (1 + problem.bias_penalty) * (apart - constant) ** 2 / 2]


def feasible_answer(problem: Problem) -> Solution:
    """Return a private and, if the problem requires it, unbiased randomizer in closed form, optimal or not.

    It is the answer when time is over: a gap and a bit, or the two outputs that an unbiased randomizer needs if these
    are not allowed, or with a price of bias the best constant output. Its multipliers are the better ones of its own
    and of zeros.
    """
    found, none = None, Dual(np.zeros(problem.k), np.zeros(problem.k))
    low, high = problem.outputs.low, problem.outputs.high
    if problem.unbiased:
        # A gap and a bit is unbiased at every epsilon (section 11), but floats may not hold its outputs, or the problem
        # may not allow them.
        with suppress(InvalidInput):
            found = design_gap_response(problem.labels, problem.prior, problem.epsilon)
        if found and found.dual and low <= found.randomizer.outputs[0] and found.randomizer.outputs[-1] <= high:
            dual = max((found.dual, none), key=lambda dual: lower_bound(problem, dual))
            return replace(found, problem=problem, dual=dual)
        # Else the ends of the narrowest interval, drawn so that means are right (section 6). Rounding may put them, or
        # the shares, slightly outside of their bounds.
        outputs = np.clip(unbiased_range(problem.labels, problem.epsilon), low, high)
        shares = np.clip((problem.labels - outputs[0]) / np.ptp(outputs), 0.0, 1.0)
        table = np.column_stack((1 - shares, shares))
    else:
        # Squared error and charge of a constant output are parabolas, whose weighted sum is least at the mean label.
        outputs = np.clip([problem.prior @ problem.labels], low, high)
        table = np.ones((problem.k, 1))
    randomizer = Randomizer(problem.labels, outputs, table, problem.epsilon)
    return Solution(problem, randomizer, none, Stats("feasible answer"))


@dataclass(frozen=True)
class BalanceOptions:
    """Tuning of restored rows and means.

    Attributes
    ----------
    balanced : float
        Residual of rows and means that needs no change.
    rounds : int
        Largest number of changes.
    nothing : float
        Masses, times ``E``, that count as zero: nothing that is known to sixteen digits depends on them.
    """

    balanced: float = 1e-14
    rounds: int = 3
    nothing: float = 1e-100


OPTIONS = BalanceOptions()


def column_weights(prior: Floats, first: Indices, last: Indices, epsilon: float) -> Floats:
    """Return ``P / E`` of each arc, ``P = sum_y s(y) p_y``: the cost of a squared step of its output."""
    inside = np.concatenate(([0.0], np.cumsum(prior)))
    # Over E all terms are at most 1, where powers of E would overflow.
    others = math.exp(-epsilon)
    weights: Floats = others + (1 - others) * (inside[last + 1] - inside[first])
    return weights


def balance_arcs(problem: Problem, arcs: Arcs) -> Arcs:
    r"""Restore rows that sum to 1 and means that are right, to rounding, of arcs that nearly have them.

    Masses change by the least sum of :math:`\Delta c^2 / c`, and outputs that may move at the least cost. Of several
    rounds the arcs of the least error are returned.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], math.log(3))
    >>> rough = Arcs(2, [0, 1], [0, 1], [-0.51, 1.52], [0.24, 0.25])
    >>> balance_arcs(problem, rough).outputs.round(12).tolist()
    [-0.5, 1.5]
    """
    best, least = arcs, np.inf
    # Clipped changes leave some residual to the next round. A round may also add rounding, so the best arcs are kept.
    for _ in range(OPTIONS.rounds + 1):
        if not arcs.n:
            break
        error = imbalance(problem, arcs)
        if error < least:
            best, least = arcs, error
        if error <= OPTIONS.balanced or not np.isfinite(error):
            break
        arcs = _change_arcs(problem, arcs)
    return best


def imbalance(problem: Problem, arcs: Arcs) -> float:
    """Return the largest residual of rows, and of means as a share of the spread of outputs."""
    return float(max(np.abs(residual).max() for residual in _evaluate_residuals(problem, arcs)))


def _width(problem: Problem, arcs: Arcs) -> float:
    """Return the unit of outputs: the range of the labels or of the outputs, if that is larger."""
    return float(max(np.ptp(problem.labels), np.ptp(arcs.outputs))) or 1.0


def _evaluate_residuals(problem: Problem, arcs: Arcs) -> tuple[Floats, Floats]:
    """Return residuals of rows, and of means in the unit of outputs, which are zero if bias is allowed."""
    equations = node_equations(arcs.k, arcs.first, arcs.last, problem.epsilon)
    favoured, share = math.exp(problem.epsilon) * arcs.masses, -math.expm1(-problem.epsilon)
    rows = -(equations @ favoured)
    # The right sides of Proposition 7 (docs/mathematics.md, section 6), over 1 - 1 / E as the equations are.
    rows[0] += 1 / share
    if not problem.unbiased:
        return rows, np.zeros(1)
    # Outputs are measured from the first label, whose own mean then has the right side 0.
    origin = problem.labels[0]
    steps = np.diff(problem.labels, prepend=origin) / share
    means: Floats = steps - equations @ (favoured * (arcs.outputs - origin))
    return rows, means / _width(problem, arcs)


def flow_change(
    nodes: sparse.csr_array,
    weights: Floats,
    favoured: Floats,
    at: Indices,
    *,
    rows: Floats | None = None,
    means: Floats | None = None,
    pull: Floats | None = None,
    free: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Floats]:
    """Find the least change of columns that removes residuals of rows by masses, of means by outputs, or both by both.

    Parameters
    ----------
    nodes : (k, n) sparse array
        Node equations of the columns.
    weights : (n,) array
        Cost of a squared step of each column's output.
    favoured, at : (n,) arrays
        Probability of each column where it favours a label, and the index of its output.
    rows, means : (k,) arrays, optional
        Residuals of the node equations, in floats.
    pull, free : (n,) and bool arrays
        Outputs in the unit of `means`, needed with both residuals, and the mask of those that may move.

    Returns
    -------
    shares, moves : (n,) array and array
        Changes of masses as shares of themselves, and of outputs in the unit of `means`. Zeros without their residuals.
    """
    # Changes are shares of the masses: a light column then changes no more than it has.
    scaled = sparse.csr_array(nodes @ sparse.diags_array(favoured))
    if means is None or free is None:
        change = least_change(scaled, 1 / favoured, rows if rows is not None else np.zeros(scaled.shape[0]))
        return change, np.zeros(int(at.max()) + 1)
    moves = np.zeros(free.size)
    to_output = sparse.csr_array((np.ones(at.size), (np.arange(at.size), at)), shape=(at.size, free.size))
    costs = np.bincount(at, favoured * weights, free.size)
    system, reach = sparse.csr_array(scaled @ to_output)[:, free], 1 / costs[free]
    if rows is None or pull is None:
        moves[free] = least_change(sparse.csr_array(system), reach, means)
        return np.zeros(at.size), moves
    pulls = sparse.csr_array(scaled @ sparse.diags_array(pull))
    none = sparse.csr_array((scaled.shape[0], reach.size))
    joint = sparse.csr_array(sparse.block_array([[scaled, none], [pulls, system]]))
    widths = np.append(1 / favoured, reach)
    if joint.shape[0] * joint.shape[1] <= DENSE:
        both = dense_change(joint.toarray(), widths, rows, means)
    else:
        both = least_change(joint, widths, np.append(rows, means))
    moves[free] = both[at.size :]
    return both[: at.size], moves


def _change_arcs(problem: Problem, arcs: Arcs) -> Arcs:
    """Make the rows right by masses, and then the means by outputs.

    All at once where some outputs must stay: on an end of their interval, or on a grid.
    """
    arcs = arcs.only(math.exp(problem.epsilon) * arcs.masses > OPTIONS.nothing)
    if not arcs.n:
        return arcs
    low, high = problem.outputs.low, problem.outputs.high
    free = (arcs.outputs > low) & (arcs.outputs < high) & (not isinstance(problem.outputs, Grid))

    def change(arcs: Arcs, **residuals: Any) -> Arcs:
        nodes = node_equations(arcs.k, arcs.first, arcs.last, problem.epsilon)
        weights = column_weights(problem.prior, arcs.first, arcs.last, problem.epsilon)
        favoured = math.exp(problem.epsilon) * arcs.masses
        return _apply_change(problem, arcs, *flow_change(nodes, weights, favoured, np.arange(arcs.n), **residuals))

    rows, means = _evaluate_residuals(problem, arcs)
    if problem.unbiased and not free.all():
        pull = (arcs.outputs - problem.labels[0]) / _width(problem, arcs)
        return change(arcs, rows=rows, means=means, pull=pull, free=free)
    # Changed masses move the means, so residuals of these are computed again.
    arcs = change(arcs, rows=rows)
    return change(arcs, means=_evaluate_residuals(problem, arcs)[1], free=free) if problem.unbiased else arcs


def _apply_change(problem: Problem, arcs: Arcs, shares: Floats, moved: Floats) -> Arcs:
    """Change masses by some shares, and outputs by some widths."""
    # No mass becomes negative by a step that is too long: the other columns change by the rest in the next round.
    masses, outputs = arcs.masses * (1 + np.clip(shares, -0.5, 1.0)), arcs.outputs
    if moved.any():
        outputs = np.clip(outputs + _width(problem, arcs) * moved, problem.outputs.low, problem.outputs.high)
    order = np.lexsort((arcs.last, arcs.first, outputs))
    return Arcs(arcs.k, arcs.first[order], arcs.last[order], outputs[order], masses[order])
