"""Restore rows that sum to 1 and right means of a design in floats, by the least change of its columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base._validation import Floats
from optrand.mechanism._columns import DENSE, dense_change, least_change, node_equations
from optrand.model._problem import Grid, Problem
from optrand.model._randomizer import Arcs, Indices


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
    return float(max(np.abs(residual).max() for residual in _residuals(problem, arcs)))


def _width(problem: Problem, arcs: Arcs) -> float:
    """Return the unit of outputs: the range of the labels or of the outputs, if that is larger."""
    return float(max(np.ptp(problem.labels), np.ptp(arcs.outputs))) or 1.0


def _residuals(problem: Problem, arcs: Arcs) -> tuple[Floats, Floats]:
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
        Changes of masses as shares of themselves, and of outputs in the unit of `means`; zeros without their residuals.
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
        return _after(problem, arcs, *flow_change(nodes, weights, favoured, np.arange(arcs.n), **residuals))

    rows, means = _residuals(problem, arcs)
    if problem.unbiased and not free.all():
        pull = (arcs.outputs - problem.labels[0]) / _width(problem, arcs)
        return change(arcs, rows=rows, means=means, pull=pull, free=free)
    # Changed masses move the means, so residuals of these are computed again.
    arcs = change(arcs, rows=rows)
    return change(arcs, means=_residuals(problem, arcs)[1], free=free) if problem.unbiased else arcs


def _after(problem: Problem, arcs: Arcs, shares: Floats, moved: Floats) -> Arcs:
    """Change masses by some shares, and outputs by some widths."""
    # No mass becomes negative by a step that is too long: the other columns change by the rest in the next round.
    masses, outputs = arcs.masses * (1 + np.clip(shares, -0.5, 1.0)), arcs.outputs
    if moved.any():
        outputs = np.clip(outputs + _width(problem, arcs) * moved, problem.outputs.low, problem.outputs.high)
    order = np.lexsort((arcs.last, arcs.first, outputs))
    return Arcs(arcs.k, arcs.first[order], arcs.last[order], outputs[order], masses[order])
