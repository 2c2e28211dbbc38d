"""Cells of neighbouring labels and outputs, for tables too large to be shown entry by entry.

Means over groups come from the interval columns where there are any; the whole table is never written out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model.randomizer import Randomizer

__all__ = ["Cells", "group_edges", "grouped_rows", "row_chances"]

MOST = 500
"""Largest number of rows, and of columns, in a picture of a table."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Table in groups of labels and outputs, as it is shown.

    Attributes
    ----------
    rows, columns : arrays of int
        Edges of the groups of labels and of outputs, the end of the last one included.
    chances : (R, C) array
        Mean probability of an output of the group, for a label of the group.
    letters : (R, C) array of one-character strings
        Signature of the label and the output in the middle of the group.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    chances: Floats
    letters: NDArray[np.str_]

    @classmethod
    def of(cls, table: Randomizer) -> Cells:
        """Cells of a table, one an entry where it is small enough; cost ``O((k + n) MOST)`` for interval columns."""
        rows, columns = group_edges(table.k, MOST), group_edges(table.n, MOST)
        if max(table.k, table.n) <= MOST:
            return cls(rows, columns, table.matrix, table.signature())
        sums = grouped_rows(table, np.ones(table.k), rows)
        totals = np.add.reduceat(sums, columns[:-1], axis=1)
        chances = totals / np.diff(rows)[:, np.newaxis] / np.diff(columns)
        middles = [(edges[:-1] + edges[1:]) // 2 for edges in (rows, columns)]
        return cls(rows, columns, chances, _some_columns(table, middles[1]).signature()[middles[0]])

    @property
    def grouped(self) -> str:
        """Size of a cell, in words; empty where each entry has its own."""
        sizes = [math.ceil(np.diff(edges).max()) for edges in (self.rows, self.columns)]
        return "" if sizes == [1, 1] else f"cells of up to {sizes[0]:,} by {sizes[1]:,}"


def group_edges(count: int, most: int) -> NDArray[np.intp]:
    """Edges of at most `most` groups of neighbours, nearly equally large, the end of the last one included.

    Examples
    --------
    >>> group_edges(3, 5).tolist(), group_edges(10, 4).tolist()
    ([0, 1, 2, 3], [0, 2, 5, 8, 10])
    """
    return np.linspace(0, count, min(count, most) + 1).round().astype(np.intp)


def grouped_rows(table: Randomizer, weights: Floats, edges: NDArray[np.intp]) -> Floats:
    """Weighted sum of the rows of each group of labels, shape ``(groups, n)``.

    The `edges` are those of :func:`group_edges`. Interval columns cost ``O(groups n)``, whatever the number of labels.
    """
    if table.arcs is None:
        sums: Floats = np.add.reduceat(weights[:, np.newaxis] * table.matrix, edges[:-1], axis=0)
        return sums
    arcs, gain = table.arcs, math.expm1(table.epsilon)
    at = np.searchsorted(table.outputs, arcs.outputs)
    below = np.concatenate(([0.0], np.cumsum(weights)))
    sums = np.empty((edges.size - 1, table.n))
    for group, (begin, end) in enumerate(pairwise(edges.tolist())):
        favoured = below[np.clip(arcs.last + 1, begin, end)] - below[np.clip(arcs.first, begin, end)]
        amounts = arcs.masses * (below[end] - below[begin] + gain * favoured)
        sums[group] = np.bincount(at, amounts, table.n)
    return sums


def row_chances(table: Randomizer, row: int) -> Floats:
    """Probabilities of one label, shape ``(n,)``, without the rest of the table."""
    if table.arcs is None:
        chances: Floats = table.matrix[row]
        return chances
    arcs = table.arcs
    inside = (arcs.first <= row) & (row <= arcs.last)
    amounts = np.where(inside, math.exp(table.epsilon), 1.0) * arcs.masses
    return np.bincount(np.searchsorted(table.outputs, arcs.outputs), amounts, table.n).astype(np.float64)


def _some_columns(table: Randomizer, columns: NDArray[np.intp]) -> Randomizer:
    if table.arcs is None:
        return Randomizer(table.labels, table.outputs[columns], table.matrix[:, columns], table.epsilon)
    chosen = np.isin(table.arcs.outputs, table.outputs[columns])
    return Randomizer.of_arcs(table.labels, table.arcs.only(chosen), table.epsilon)
