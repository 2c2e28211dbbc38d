"""Private tables as sums of staircase columns, the extreme rays of the cone of epsilon-DP columns.

A staircase column is ``E`` for the labels in a set ``S`` and ``1`` for the others ([KOV16]; [B23], Appendix B). Sums of
them are private whatever their masses are, as long as none is negative (``docs/mathematics.md``, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats
from optrand.model._randomizer import Arcs, Randomizer

Masses = NDArray[Any]
"""Floats, or Python integers in an array of objects."""


@dataclass(frozen=True, eq=False)
class Staircase:
    """Arcs ``(S, v, c)``: output ``v`` with probability ``c E`` for the labels in ``S`` and ``c`` for the others.

    Attributes
    ----------
    members : (k, arcs) array of bool
        Membership of the labels in each ``S``.
    outputs : (arcs,) array
        Arcs may share an output.
    masses : (arcs,) array of float or int
        Not negative.
    """

    members: NDArray[np.bool_]
    outputs: Floats
    masses: Masses

    @classmethod
    def of_arcs(cls, arcs: Arcs) -> Staircase:
        """Return the interval columns with their sets of labels written out."""
        labels = np.arange(arcs.k)[:, np.newaxis]
        return cls((arcs.first <= labels) & (labels <= arcs.last), arcs.outputs, arcs.masses)

    @property
    def arcs(self) -> Arcs | None:
        """Arcs of the staircase, in increasing order of outputs, if every set is an interval of labels."""
        k, n = self.members.shape
        if not n or not self.members.any(axis=0).all():
            return None
        first, last = self.members.argmax(axis=0), k - 1 - self.members[::-1].argmax(axis=0)
        if (self.members.sum(axis=0) != last - first + 1).any():
            return None
        order = np.lexsort((last, first, self.outputs))
        return Arcs(k, first[order], last[order], self.outputs[order], self.masses[order])

    @property
    def coverage(self) -> Masses:
        """Mass that favours each label."""
        coverage: Masses = np.where(self.members, self.masses, 0).sum(axis=1)
        return coverage

    def cover(self, short: NDArray[np.bool_]) -> Staircase:
        """Add singletons for labels that fall short, at the output where each of them weighs most."""
        labels, coverage = np.flatnonzero(short), self.coverage
        heaviest = np.where(self.members[labels], self.masses, -1).argmax(axis=1) if labels.size else labels
        members = np.hstack((self.members, np.eye(coverage.size, dtype=bool)[:, labels]))
        masses = np.concatenate((self.masses, coverage.max() - coverage[labels]))
        return Staircase(members, np.concatenate((self.outputs, self.outputs[heaviest])), masses)

    def columns(self, high: float, low: float = 1) -> Masses:
        """Return the column of each arc, shape ``(k, arcs)``: `high` for labels in its set, `low` for others."""
        columns: Masses = np.where(self.members, high * self.masses, low * self.masses)
        return columns

    def table(self, high: float, low: float = 1) -> tuple[Floats, Masses]:
        """Return the distinct outputs, increasing, and the ``(k, n)`` table of their probabilities or weights."""
        return merge_columns(self.outputs, self.columns(high, low))

    def only(self, kept: NDArray[np.bool_]) -> Staircase:
        """Select some of the arcs."""
        return Staircase(self.members[:, kept], self.outputs[kept], self.masses[kept])


def merge_columns(outputs: Floats, columns: Masses) -> tuple[Floats, Masses]:
    """Sort columns by their outputs, and add up those of one output."""
    distinct, where = np.unique(outputs, return_inverse=True)
    table = np.zeros((columns.shape[0], distinct.size), dtype=columns.dtype)
    np.add.at(table.T, where, columns.T)
    return distinct, table


def rounding_noise(epsilon: float) -> float:
    """Return the relative difference of a column's entries that rounding alone can make."""
    return min(1e-3, float(-64 * np.finfo(float).eps / math.expm1(-epsilon)))


def decompose(randomizer: Randomizer, ratio: float, negligible: float = 0.0) -> Staircase:
    """Write a table as staircase columns: each column becomes the chain of its upper level sets.

    Differences of neighbours among the sorted entries, divided by ``ratio - 1``, are the masses of the nested level
    sets; the rest of the smallest entry is the mass of the full set. A column whose ratio exceeds `ratio` is lifted
    first, its low entries to the largest over `ratio`.

    Parameters
    ----------
    randomizer : Randomizer
    ratio : float
        At most ``exp(epsilon)``, above 1.
    negligible : float
        Level sets whose share of their column is at most this are merged into their neighbour.

    Returns
    -------
    Staircase
        At most ``k`` arcs a column; one for a column that is a staircase already.

    Examples
    --------
    >>> table = Randomizer([0, 1], [0, 1], [[0.75, 0.25], [0.25, 0.75]], 2.0)
    >>> arcs = decompose(table, 3.0)
    >>> arcs.members.T.tolist(), arcs.masses.tolist()
    ([[True, False], [False, True]], [0.25, 0.25])
    """
    members, outputs, masses = [], [], []
    for output, column in zip(randomizer.outputs.tolist(), randomizer.matrix.T, strict=True):
        high = float(column.max())
        if high <= 0:
            continue
        low = max(float(column.min()), high / ratio)
        levels = np.unique(np.clip(column, low, high))[::-1]
        if negligible and levels.size > 1:
            keep = np.append(levels[:-1] - levels[1:] > negligible * (high - low), True)
            keep[0] = True
            levels = levels[keep]
        steps = (levels[:-1] - levels[1:]) / (ratio - 1)
        rest = (low - steps.sum()) / ratio
        middles = np.append((levels[:-1] + levels[1:]) / 2, -np.inf)
        for middle, mass in zip(middles, np.append(steps, max(0.0, rest)), strict=True):
            if mass > negligible * high / ratio:
                members.append(column > middle)
                outputs.append(output)
                masses.append(mass)
    return Staircase(np.array(members).T, np.array(outputs), np.array(masses))
