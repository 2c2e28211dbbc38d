r"""Newton's equations of a flow at its nodes: sparse but for the two totals, which are bordered off.

Every arc couples the potentials of its two nodes and the total. Written as one matrix the totals would fill it; with
them set apart, what is left has the sparsity of the flow, and a support that is a monotone path of arcs, as optimal
ones are, factors with hardly any fill, whatever its length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base.validation import Floats
from optrand.programs.flow import FlowProgram

__all__ = ["NodeSystem"]

PAIRS = ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2))
"""Row and column of a symmetric two by two matrix, and where its three numbers hold that entry."""

OWN_RIDGE = 1e-14
"""Every diagonal entry grows by this share of itself: where arcs in use depend on each other the matrix is singular."""


class NodeSystem:
    """The matrix ``sum_j w_j [A_j, B_j]' [A_j, B_j]`` over potentials, for weights that change and arcs that do not.

    Parameters
    ----------
    program : FlowProgram
        Its arcs, and its charges on bias, which add to the ``beta`` side.
    """

    def __init__(self, program: FlowProgram) -> None:
        self.program = program
        inner = program.k - 1
        left, right = program.first - 1, program.last
        self.linked = (left >= 0) & (right < inner)
        nodes = np.arange(inner)
        keys = [nodes * (inner + 1), left[self.linked] * inner + right[self.linked]]
        if program.charges is not None:
            keys.append(nodes[:-1] * inner + nodes[1:])
        self.blocks = np.unique(np.concatenate(keys))
        self.diagonal, self.links = (np.searchsorted(self.blocks, key) for key in keys[:2])
        self.neighbours = np.searchsorted(self.blocks, nodes[:-1] * inner + nodes[1:])
        self.order: NDArray[np.intp] | None = None

    @cached_property
    def _entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Row, column and source of every entry of the full matrix."""
        row, column = np.divmod(self.blocks, self.program.k - 1)
        above = np.flatnonzero(row != column)
        rows = np.concatenate((row, column[above]))
        columns = np.concatenate((column, row[above]))
        source = np.concatenate((np.arange(row.size), above))
        parts = [(2 * rows + i, 2 * columns + j, 3 * source + at) for i, j, at in PAIRS]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]

    def _arrange(self) -> None:
        """Lay out the entries by columns, in the order of elimination once that is known."""
        rows, columns, source = self._entries
        if self.order is not None:
            place = np.argsort(self.order)
            rows, columns = place[rows], place[columns]
        by_column = np.lexsort((rows, columns))
        counts = np.bincount(columns, minlength=2 * self.program.k - 2)
        self.rows, self.starts = rows[by_column], np.concatenate(([0], np.cumsum(counts)))
        self.source, self.counts = source[by_column], counts

    def _factor(self, entries: Floats, scale: Floats) -> Callable[[Floats], Floats]:
        """Solve with the inner part; the order of elimination is chosen once."""
        size = scale.size

        def matrix(scale: Floats) -> sparse.csc_array:
            data = entries[self.source] * scale[self.rows] * np.repeat(scale, self.counts)
            return sparse.csc_array((data, self.rows, self.starts), shape=(size, size))

        options = {"SymmetricMode": True}
        if self.order is None:
            self._arrange()
            found = splu(matrix(scale), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
            self.order = np.argsort(found.perm_c)
            self._arrange()
        order = self.order
        factors = splu(matrix(scale[order]), permc_spec="NATURAL", diag_pivot_thresh=0.0, options=options)

        def solve(right: Floats) -> Floats:
            solved = np.empty_like(right)
            solved[order] = factors.solve((scale * right.T).T[order])
            return (scale * solved.T).T

        return solve

    def solver(self, weights: Floats, *, ridge: float = 0.0) -> Callable[[Floats], Floats]:
        """Solver of the equations for arc weights ``(aa, ab, bb)``, shape ``(n, 3)``, and right sides ``(k, 2)``.

        A `ridge`, as a share of the largest entries, decides what the arcs leave open: it is not moved.

        Raises
        ------
        RuntimeError, numpy.linalg.LinAlgError
            A matrix that is singular in floats.
        """
        program, k = self.program, self.program.k
        entries = np.zeros((self.blocks.size, 3))
        border, corner = np.empty((k - 1, 3)), np.empty(3)
        for at in range(3):
            amount = weights[:, at]
            ends = [np.bincount(nodes, amount, k + 1) for nodes in (program.first, program.last + 1)]
            entries[self.diagonal, at] = (ends[0] + ends[1])[1:-1]
            entries[:, at] -= np.bincount(self.links, amount[self.linked], self.blocks.size)
            toll = program.totals * amount
            through = [np.bincount(nodes, toll, k + 1) for nodes in (program.first, program.last + 1)]
            border[:, at], corner[at] = (through[1] - through[0])[1:-1], program.totals @ toll
        if program.charges is not None:
            charges = program.charges / program.excess**2
            entries[self.diagonal, 2] += charges[:-1] + charges[1:]
            entries[self.neighbours, 2] -= charges[1:-1]
            border[-1, 2] -= program.excess * charges[-1]
            corner[2] += program.excess**2 * charges[-1]
        entries[self.diagonal] *= 1 + np.array([OWN_RIDGE, 0.0, OWN_RIDGE])
        entries[self.diagonal] += ridge * entries[self.diagonal].max(axis=0) * np.array([1.0, 0.0, 1.0])
        own = entries[self.diagonal][:, (0, 2)].ravel()
        if not (own > 0).all():
            raise np.linalg.LinAlgError("a node's own weight has been lost to rounding")
        scale = 1 / np.sqrt(own)
        inner = self._factor(entries.ravel(), scale)
        sides = np.zeros((2 * k - 2, 2))
        square = np.empty((2, 2))
        for i, j, at in PAIRS:
            sides[i::2, j], square[i, j] = border[:, at], corner[at]
        spread = inner(sides)
        reduced = square - sides.T @ spread

        def once(right: Floats) -> Floats:
            middle = inner(right[:-1].ravel())
            last = np.linalg.solve(reduced, right[-1] - sides.T @ middle)
            return np.concatenate(((middle - spread @ last).reshape(-1, 2), last[np.newaxis]))

        def solve(right: Floats) -> Floats:
            first = once(right)
            return first + once(right - self._product(weights, first))

        return solve

    def _product(self, weights: Floats, potentials: Floats) -> Floats:
        a, b = self.program.prices(potentials).T
        pulls = np.column_stack((weights[:, 0] * a + weights[:, 1] * b, weights[:, 1] * a + weights[:, 2] * b))
        return self.program.gather(pulls) + self.program.charge_gradient(potentials)
