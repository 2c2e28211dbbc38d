"""Equations of a flow, written for the nodes between labels, and the least change that satisfies them.

They are those of ``docs/mathematics.md``, Proposition 7: an arc touches the equations of its two nodes only, so that
ten thousand labels are one sparse factorisation.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base._validation import Floats
from optrand.model._randomizer import Indices

RIDGE = 1e-14
"""Ridge on the diagonal of equations scaled to 1, so that dependent ones have a solution, too."""

DENSE = 1 << 13
"""Largest number of entries of a system for masses and outputs that is solved as a dense one."""


def node_equations(k: int, first: Indices, last: Indices, epsilon: float) -> sparse.csr_array:
    """Return the outflow of a node less its inflow, of an amount an arc. The first row is the sum at the first label.

    All rows are divided by ``1 - exp(-epsilon)``, and amounts are measured where arcs favour a label.

    Examples
    --------
    Randomized response of two labels, at ``E = 3``, favours each with probability 3/4:

    >>> (
    ...     node_equations(2, np.array([0, 1]), np.array([0, 1]), math.log(3)) @ [0.75, 0.75]
    ... ).round(12).tolist()
    [1.5, 0.0]
    """
    # An arc leaves the node before its first label and enters the one after its last. At the nodes at both ends of the
    # line nothing is balanced: the first row is the sum at the first label in their place.
    end, every = last + 1, np.arange(first.size)
    starts, ends = first > 0, end < k
    # At the first label an amount counts in full if it is favoured there, and exp(-epsilon) times if not. Divided by
    # 1 - exp(-epsilon) that is 1 / expm1(epsilon), and 1 more where it is favoured.
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


def least_change(system: sparse.csr_array, reach: Floats, residual: Floats) -> Floats:
    """Compute the vector ``x`` of least ``sum(x**2 / reach)`` with ``system @ x = residual``, up to rounding.

    Cost that of a sparse factorisation, unless a few unknowns touch all equations, as where many arcs share an output.
    """
    # Least squares of a dense system are more exact than its normal equations, and of a few unknowns as quick.
    if system.shape[1] <= min(256, system.shape[0] // 4):
        # In units of the root of its reach the least change is the shortest solution.
        scaled = system.toarray() * np.sqrt(reach)
        few: Floats = np.sqrt(reach) * np.linalg.lstsq(scaled, residual, rcond=RIDGE)[0]
        return few
    # Else by Lagrange multipliers z: x = reach * (A' z), with the normal equations (A reach A') z = residual.
    normal = sparse.csc_array(system @ sparse.diags_array(reach) @ system.T)
    # With a diagonal of 1 the ridge is the same share of every equation, however light its arcs are.
    size = normal.diagonal()
    scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    even = sparse.diags_array(scale) @ normal @ sparse.diags_array(scale)
    ridged = sparse.csc_array(even + sparse.diags_array(np.where(size > 0, RIDGE, 1.0)))
    # The matrix is symmetric and positive definite: pivots may stay on the diagonal, in an order of little fill.
    factors = splu(ridged, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    change: Floats = reach * (system.T @ (scale * factors.solve(scale * residual)))
    return change


def change_masses(nodes: sparse.csr_array, favoured: Floats, outputs: Floats, means: Floats) -> Floats:
    """Find the least relative change of masses that removes residuals of means at the nodes and keeps the rows.

    `favoured` holds the probability of each column where it favours a label, and `outputs` are in the unit of `means`.
    Changes are returned as shares of the masses.
    """
    rows = np.zeros(means.size)
    if 2 * nodes.shape[0] * nodes.shape[1] <= DENSE:
        few = nodes.toarray() * favoured
        return dense_change(np.concatenate((few, few * outputs)), 1 / favoured, rows, means)
    scaled = sparse.csr_array(nodes @ sparse.diags_array(favoured))
    joint = sparse.csr_array(sparse.vstack([scaled, scaled @ sparse.diags_array(outputs)]))
    return least_change(joint, 1 / favoured, np.append(rows, means))


def dense_change(joint: Floats, reach: Floats, rows: Floats, means: Floats) -> Floats:
    """Find the least change by the equations of labels, which are sums of those of nodes.

    If not all residuals can be removed, as at degenerate vertices on a grid, one label's does not spread to others.
    """
    of_labels = np.cumsum(joint.reshape(2, rows.size, -1), axis=1).reshape(joint.shape)
    residual = np.append(np.cumsum(rows), np.cumsum(means))
    change: Floats = np.sqrt(reach) * np.linalg.lstsq(of_labels * np.sqrt(reach), residual, rcond=RIDGE)[0]
    return change
