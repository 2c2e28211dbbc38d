r"""Equations of a flow, written for the nodes between labels, and the least change that satisfies them.

Column ``j`` favours the labels ``first[j] ... last[j]``: an arc from node ``first[j]`` to node ``last[j] + 1`` of the
nodes :math:`0 \ldots k`. Rows sum to 1 if and only if as much mass enters each inner node as leaves it and the first
label's row does; means are right if and only if the moments :math:`c_j v_j` that leave a node exceed those that enter
it by the step between its labels over :math:`E - 1`, and the first mean is right. Differenced in this way the equations
touch an arc at its two nodes only, so that ten thousand labels are one sparse factorisation.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.arcs import Arcs, Indices
from optrand.base.validation import Floats
from optrand.outputs import Grid
from optrand.problem import Problem

__all__ = ["balanced", "column_weights", "imbalance", "least_change", "node_equations"]

RIDGE = 1e-14
"""Ridge on the diagonal of equations scaled to 1: those that depend on others have a solution, too."""

FEW = 256
"""Up to so many unknowns, and four times as many equations, these are solved as they are."""

BALANCED = 1e-14
"""Rows and means off by no more than this need no change."""

ROUNDS = 3
"""Changes at most."""

NOTHING = 1e-100
"""Masses, times ``E``, below this are none: nothing that is known to sixteen digits depends on them."""


def node_equations(k: int, first: Indices, last: Indices, epsilon: float) -> sparse.csr_array:
    """Outflow of a node less its inflow, of an amount an arc; the first row is the sum at the first label.

    All rows are divided by ``1 - exp(-epsilon)``, and amounts are measured where arcs favour a label.

    Examples
    --------
    Randomized response of two labels, at ``E = 3``, favours each with probability 3/4:

    >>> (node_equations(2, np.array([0, 1]), np.array([0, 1]), math.log(3)) @ [0.75, 0.75]).round(12).tolist()
    [1.5, 0.0]
    """
    end, every = last + 1, np.arange(first.size)
    starts, ends = first > 0, end < k
    return sparse.csr_array(
        (
            np.concatenate((1 / math.expm1(epsilon) + ~starts, np.ones(starts.sum()), -np.ones(ends.sum()))),
            (
                np.concatenate((np.zeros(every.size, dtype=np.int64), first[starts], end[ends])),
                np.concatenate((every, every[starts], every[ends])),
            ),
        ),
        shape=(k, every.size),
    )


def column_weights(prior: Floats, first: Indices, last: Indices, epsilon: float) -> Floats:
    """``P / E`` of each arc, ``P = sum_y s(y) p_y``: what the square of a step of its output costs."""
    inside = np.concatenate(([0.0], np.cumsum(prior)))
    others = math.exp(-epsilon)
    weights: Floats = others + (1 - others) * (inside[last + 1] - inside[first])
    return weights


def least_change(system: sparse.csr_array, reach: Floats, residual: Floats) -> Floats:
    """The ``x`` of least ``sum(x**2 / reach)`` with ``system @ x = residual``, but for what rounding leaves.

    Cost that of a sparse factorisation, unless a few unknowns touch all equations, as where many arcs share an output.
    """
    if system.shape[1] <= min(FEW, system.shape[0] // 4):
        scaled = system.toarray() * np.sqrt(reach)
        few: Floats = np.sqrt(reach) * np.linalg.lstsq(scaled, residual, rcond=RIDGE)[0]
        return few
    normal = sparse.csc_array(system @ sparse.diags_array(reach) @ system.T)
    size = normal.diagonal()
    scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    even = sparse.diags_array(scale) @ normal @ sparse.diags_array(scale)
    ridged = sparse.csc_array(even + sparse.diags_array(np.where(size > 0, RIDGE, 1.0)))
    factors = splu(ridged, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    change: Floats = reach * (system.T @ (scale * factors.solve(scale * residual)))
    return change


def balanced(problem: Problem, arcs: Arcs) -> Arcs:
    r"""Arcs whose rows sum to 1 and whose means are right to rounding, from arcs that are nearly so.

    Masses change by the least sum of :math:`\Delta c^2 / c`, and outputs that may move at the least cost. Of all that
    were tried the arcs of the least error are returned.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], math.log(3))
    >>> rough = Arcs(2, [0, 1], [0, 1], [-0.51, 1.52], [0.24, 0.25])
    >>> balanced(problem, rough).outputs.round(12).tolist()
    [-0.5, 1.5]
    """
    best, least = arcs, np.inf
    for _ in range(ROUNDS + 1 if arcs.n else 0):
        error = imbalance(problem, arcs)
        if error < least:
            best, least = arcs, error
        if error <= BALANCED or not np.isfinite(error):
            break
        arcs = _changed(problem, arcs)
    return best


def imbalance(problem: Problem, arcs: Arcs) -> float:
    """Largest residual of rows from 1, and of means from their labels as a share of how far outputs lie apart."""
    return float(max(np.abs(residual).max() for residual in _residuals(problem, arcs)))


def _width(problem: Problem, arcs: Arcs) -> float:
    """The unit of outputs: how far they lie from the labels."""
    return float(max(np.ptp(problem.labels), np.ptp(arcs.outputs))) or 1.0


def _residuals(problem: Problem, arcs: Arcs) -> tuple[Floats, Floats]:
    """Residuals of the equations of rows, and of those of means in the unit of outputs; none where bias is allowed."""
    equations = node_equations(arcs.k, arcs.first, arcs.last, problem.epsilon)
    favoured, share = math.exp(problem.epsilon) * arcs.masses, -math.expm1(-problem.epsilon)
    rows = -(equations @ favoured)
    rows[0] += 1 / share
    if not problem.unbiased:
        return rows, np.zeros(1)
    origin = problem.labels[0]
    steps = np.diff(problem.labels, prepend=origin) / share
    means: Floats = steps - equations @ (favoured * (arcs.outputs - origin))
    return rows, means / _width(problem, arcs)


def _changed(problem: Problem, arcs: Arcs) -> Arcs:
    """The masses that make the rows right, and then the outputs that make the means right.

    All at once where some outputs must stay: on an end of their interval, or on a grid.
    """
    arcs = arcs.only(math.exp(problem.epsilon) * arcs.masses > NOTHING)
    low, high = problem.outputs.low, problem.outputs.high
    free = (arcs.outputs > low) & (arcs.outputs < high) & (not isinstance(problem.outputs, Grid))
    rows, means = _residuals(problem, arcs)
    if not problem.unbiased:
        return _after(problem, arcs, least_change(_equations(problem, arcs), _reach(problem, arcs)[0], rows))
    if free.all():
        arcs = _after(problem, arcs, least_change(_equations(problem, arcs), _reach(problem, arcs)[0], rows))
        change = least_change(_equations(problem, arcs), _reach(problem, arcs)[1], _residuals(problem, arcs)[1])
        return _after(problem, arcs, np.zeros(arcs.n), change)
    nodes, pull = _equations(problem, arcs), (arcs.outputs - problem.labels[0]) / _width(problem, arcs)
    pulls, none = sparse.csr_array(nodes @ sparse.diags_array(pull)), sparse.csr_array((arcs.k, int(free.sum())))
    joint = sparse.csr_array(sparse.block_array([[nodes, none], [pulls, sparse.csr_array(nodes[:, free])]]))
    reach = _reach(problem, arcs)
    both = least_change(joint, np.append(reach[0], reach[1][free]), np.append(rows, means))
    moved = np.zeros(arcs.n)
    moved[free] = both[arcs.n :]
    return _after(problem, arcs, both[: arcs.n], moved)


def _equations(problem: Problem, arcs: Arcs) -> sparse.csr_array:
    """The node equations of relative changes of masses."""
    favoured = math.exp(problem.epsilon) * arcs.masses
    nodes = node_equations(arcs.k, arcs.first, arcs.last, problem.epsilon)
    return sparse.csr_array(nodes @ sparse.diags_array(favoured))


def _reach(problem: Problem, arcs: Arcs) -> tuple[Floats, Floats]:
    """Inverse costs of a squared change of masses, and of outputs."""
    favoured = math.exp(problem.epsilon) * arcs.masses
    return 1 / favoured, 1 / (favoured * column_weights(problem.prior, arcs.first, arcs.last, problem.epsilon))


def _after(problem: Problem, arcs: Arcs, shares: Floats, moved: Floats | None = None) -> Arcs:
    """Arcs with masses changed by some shares, and outputs by some widths."""
    masses, outputs = arcs.masses * (1 + np.clip(shares, -0.5, 1.0)), arcs.outputs
    if moved is not None:
        outputs = np.clip(outputs + _width(problem, arcs) * moved, problem.outputs.low, problem.outputs.high)
    order = np.lexsort((arcs.last, arcs.first, outputs))
    return Arcs(arcs.k, arcs.first[order], arcs.last[order], outputs[order], masses[order])
