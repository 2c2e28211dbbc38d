r"""Arcs between nodes, as matrices: what an arc reads off potentials, and what a label does.

An interval column of the labels ``a ... b`` is an arc from node ``a`` to node ``b + 1`` of the nodes ``0 ... k``. Any
amounts :math:`x_y` of the labels, as the arc weights them and over :math:`E`,

.. math:: \frac1E \sum_y s_y x_y = \frac1E \sum_y x_y + X_{b+1} - X_a, \qquad X_i = (1 - \tfrac1E) \sum_{y < i} x_y,

touch two nodes and the total once they are written as potentials :math:`X` at the inner nodes ``1 ... k - 1``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.arcs import Indices

__all__ = ["Nodes", "Rows", "beside", "composed", "diagonal", "scaled"]

Rows = sparse.csr_array[np.float64, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Potentials of ``k`` labels, as some arcs see them: ``k - 1`` inner nodes, and the total in the last place.

    Parameters
    ----------
    k : int
        The number of labels, at least two.
    first, last : (n,) arrays of int
        The interval of labels of each arc, both ends in.
    epsilon : float

    Examples
    --------
    >>> nodes = Nodes(3, np.array([0, 1]), np.array([1, 1]), math.log(2))
    >>> potentials = np.array([2.5, 3.0, 9.0])
    >>> nodes.labels @ potentials, (nodes.arcs @ potentials).tolist()
    (array([5., 1., 3.]), [7.5, 5.0])
    """

    k: int
    first: Indices
    last: Indices
    epsilon: float

    @property
    def n(self) -> int:
        """The number of arcs."""
        return self.first.size

    @cached_property
    def least(self) -> float:
        """``1 / E``."""
        return math.exp(-self.epsilon)

    @cached_property
    def excess(self) -> float:
        """``1 - 1 / E``."""
        return -math.expm1(-self.epsilon)

    @cached_property
    def arcs(self) -> Rows:
        """From potentials to sums over the arcs, over ``E``; shape ``(n, k)``."""
        arcs = np.arange(self.n)
        inner, left = self.last < self.k - 1, self.first > 0
        rows = np.concatenate((arcs, arcs[inner], arcs[left]))
        columns = np.concatenate((np.full(self.n, self.k - 1), self.last[inner], self.first[left] - 1))
        totals = self.least + self.excess * (self.last == self.k - 1)
        values = np.concatenate((totals, np.ones(int(inner.sum())), -np.ones(int(left.sum()))))
        return sparse.csr_array((values, (rows, columns)), shape=(self.n, self.k))

    @cached_property
    def labels(self) -> Rows:
        """From potentials to the amounts of the labels; shape ``(k, k)``."""
        node = np.arange(self.k)
        diagonal = np.where(node < self.k - 1, 1 / self.excess, 1.0)
        values = np.concatenate((diagonal, np.full(self.k - 1, -1 / self.excess)))
        places = np.concatenate((node, node[1:])), np.concatenate((node, node[:-1]))
        return sparse.csr_array((values, places), shape=(self.k, self.k))

    def ends(self, potentials: Floats) -> Floats:
        """Potentials at all nodes ``0 ... k``, shape ``(k + 1, sides)``."""
        return np.concatenate((np.zeros((1, potentials.shape[1])), potentials[:-1], self.excess * potentials[-1:]))

    def amounts(self, potentials: Floats) -> Floats:
        """Amounts of the labels for several potentials a node, shape ``(k, sides)``."""
        amounts: Floats = np.diff(self.ends(potentials), axis=0) / self.excess
        return amounts

    def gain(self, weights: Floats) -> Floats:
        """Transpose of :meth:`amounts`: coefficients of the potentials in the weighted sum of the amounts."""
        return np.concatenate((-np.diff(weights, axis=0) / self.excess, weights[-1:]))


def composed(incidence: Rows, *coefficients: Floats | float) -> Rows:
    """Rows that read several potentials a node, node by node, each times a coefficient of the row.

    Parameters
    ----------
    incidence : (n, k) sparse array
        How each row reads one potential a node.
    *coefficients : (n,) arrays, or numbers

    Returns
    -------
    (n, k * len(coefficients)) sparse array

    Examples
    --------
    >>> both = sparse.csr_array(np.array([[1.0, -1.0]]))
    >>> composed(both, np.array([1.0]), np.array([5.0])).toarray().tolist()
    [[1.0, 5.0, -1.0, -5.0]]
    """
    sides, (n, k) = len(coefficients), incidence.shape
    rows = np.repeat(np.arange(n), np.diff(incidence.indptr))
    factors = np.stack([np.broadcast_to(some, n) for some in coefficients], axis=1)
    values = (incidence.data[:, np.newaxis] * factors[rows]).ravel()
    columns: NDArray[np.int64] = (sides * incidence.indices[:, np.newaxis] + np.arange(sides)).ravel()
    there = values != 0
    return sparse.csr_array((values[there], (np.repeat(rows, sides)[there], columns[there])), shape=(n, sides * k))


def diagonal(values: Floats) -> Rows:
    """A diagonal matrix."""
    return sparse.csr_array((values, np.arange(values.size), np.arange(values.size + 1)), shape=(values.size,) * 2)


def scaled(factors: Floats, rows: Rows) -> Rows:
    """Rows times a factor each."""
    made = rows.copy()
    made.data *= np.repeat(factors, np.diff(rows.indptr))
    return made


def beside(*blocks: Rows, columns: int) -> Rows:
    """Blocks one beside the other, then columns of zeros up to so many."""
    missing = columns - sum(block.shape[1] for block in blocks)
    if len(blocks) == 1 and not missing:
        return blocks[0]
    return sparse.csr_array(sparse.hstack([*blocks, sparse.csr_array((blocks[0].shape[0], missing))]))


def without(rows: Rows, column: int | None) -> Rows:
    """Rows without one of their columns, if one is named."""
    if column is None:
        return rows
    kept = rows.indices != column
    indices = rows.indices[kept]
    indptr = np.concatenate(([0], np.cumsum(kept)))[rows.indptr]
    shape = rows.shape[0], rows.shape[1] - 1
    return sparse.csr_array((rows.data[kept], indices - (indices > column), indptr), shape=shape)


@dataclass(frozen=True)
class Aligned:
    """Sparse matrices of one shape with their entries, zeros among them, at the union of their places."""

    shape: tuple[int, int]
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    entries: tuple[Floats, ...]

    @classmethod
    def of(cls, *matrices: Rows) -> Aligned:
        """Align some matrices."""
        rows, columns = matrices[0].shape
        places = [np.repeat(np.arange(rows), np.diff(m.indptr)) * columns + m.indices for m in matrices]
        union = np.unique(np.concatenate(places))
        entries = []
        for matrix, at in zip(matrices, places, strict=True):
            some = np.zeros(union.size)
            np.add.at(some, np.searchsorted(union, at), matrix.data)
            entries.append(some)
        return cls(
            (rows, columns), union % columns, np.searchsorted(union, np.arange(rows + 1) * columns), tuple(entries)
        )

    def each(self, factors: Floats) -> Floats:
        """A factor a row, repeated for each entry of the row."""
        return np.repeat(factors, np.diff(self.indptr))

    def matrix(self, entries: Floats) -> Rows:
        """The matrix of these entries."""
        return sparse.csr_array((entries, self.indices, self.indptr), shape=self.shape)
