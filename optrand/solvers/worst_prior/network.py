"""Arcs between nodes of three sums each, and Newton's equations on them: a band of 3 by 3 blocks and a border.

The sums are those of the prior, and of the multipliers' slopes and costs, up to each node. Those of the first node are
zero and the whole prior is one; the other two sums of the last node, which every arc sees, come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from optrand.base.validation import Floats
from optrand.model.arcs import Indices

__all__ = ["Blocks", "Factors", "Network", "differences", "gathered_differences"]

RIDGES, LEAST = (1e-16, 1e-13, 1e-10), 1e-10
"""Relative additions to the diagonal, the first that will do, and an absolute one; solutions are corrected for them."""

SIDES = 3
"""Sums of a node."""

ENTRY = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Which of six numbers is the entry of a symmetric block."""

Blocks = tuple[Floats, Floats, Floats, Floats, Floats, Floats]
"""Entries of the symmetric block of each link, row by row from the diagonal on."""


def differences(sums: Floats) -> Floats:
    """Amounts of the labels, of their sums up to each node."""
    amounts: Floats = sums[..., 1:] - sums[..., :-1]
    return amounts


def gathered_differences(amounts: Floats) -> Floats:
    """Transpose of :func:`differences`, for one sum."""
    sums = np.zeros(amounts.size + 1)
    sums[1:] += amounts
    sums[:-1] -= amounts
    return sums


class Factors(NamedTuple):
    """Cholesky's factor of the band, its inverse times the border, and the inverse of what is left."""

    band: Floats
    beside: Floats
    inverse: Floats


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs, and the order in which nodes are eliminated.

    Parameters
    ----------
    k : int
        Number of labels; nodes are 0 to k.
    first, end : (n,) arrays of int
        Nodes of each arc.
    places : (k + 1,) array of int
        Place of each inner node in the order, -1 for both ends.
    stars : int
        Number of inner nodes that come last, beside the band.
    excess : float
        ``1 / (E - 1)``.
    """

    k: int
    first: Indices
    end: Indices
    places: Indices
    stars: int
    excess: float

    @property
    def n(self) -> int:
        """Number of arcs."""
        return int(self.first.size)

    def only(self, some: Indices) -> Network:
        """Some of the arcs, in the same order of nodes."""
        return Network(self.k, self.first[some], self.end[some], self.places, self.stars, self.excess)

    def seen(self, sums: Floats) -> Floats:
        """Weighted sums over all labels of each arc's column, over ``E - 1``: shape ``(3, n)``."""
        amounts: Floats = sums[:, self.end] - sums[:, self.first] + self.excess * sums[:, -1:]
        return amounts

    def gathered(self, amounts: Floats) -> Floats:
        """Transpose of :meth:`seen`."""
        sums = np.stack([self._node_sums(side) for side in amounts])
        sums[:, -1] += self.excess * amounts.sum(axis=1)
        return sums

    def _node_sums(self, amounts: Floats) -> Floats:
        sums: Floats = np.zeros(self.k + 1)
        sums += np.bincount(self.end, amounts, self.k + 1)
        sums -= np.bincount(self.first, amounts, self.k + 1)
        return sums

    @cached_property
    def _links(self) -> tuple[Indices, Indices]:
        """Nodes of each arc, then of each label."""
        each = np.arange(self.k)
        return np.concatenate((self.first, each)), np.concatenate((self.end, each + 1))

    @property
    def _size(self) -> int:
        """Number of unknowns in the band."""
        return SIDES * (self.k - 1 - self.stars)

    @cached_property
    def _nodes(self) -> tuple[Indices, Indices]:
        """Inner nodes in the band, and beside it."""
        inside = self.places[1:-1] < self.k - 1 - self.stars
        return 1 + np.flatnonzero(inside), 1 + np.flatnonzero(~inside)

    @cached_property
    def _joined(self) -> tuple[Indices, Indices, Indices]:
        """Links between inner nodes, and the later and the earlier of their places."""
        one, other = (self.places[nodes] for nodes in self._links)
        both = np.flatnonzero((one >= 0) & (other >= 0))
        return both, np.maximum(one, other)[both], np.minimum(one, other)[both]

    @cached_property
    def _band(self) -> tuple[Indices, int, Indices]:
        """Links in the band, its width, and where their entries go in ``band[column, row - column]``."""
        both, late, early = self._joined
        near = late < self.k - 1 - self.stars
        both, late, early = both[near], late[near], early[near]
        width = SIDES * (int(np.max(late - early, initial=0)) + 1)
        spots = [
            (SIDES * early + i) * width + SIDES * (late - early) + j - i for i in range(SIDES) for j in range(SIDES)
        ]
        return both, width, np.concatenate(spots)

    @cached_property
    def _border(self) -> tuple[Indices, Indices]:
        """Links to stars, and where their entries go in rows of all inner nodes."""
        both, late, early = self._joined
        near = late < self.k - 1 - self.stars
        row, column = SIDES * (late[~near] - (self.k - 1 - self.stars)), SIDES * early[~near]
        size = SIDES * (self.k - 1)
        spots = [(row + j) * size + column + i for i in range(SIDES) for j in range(SIDES)]
        return both[~near], np.concatenate(spots)

    def factored(self, blocks: Blocks) -> Factors:
        """Factors of the sum over links of ``d' B d``, with ``d`` what an arc sees, or a label adds.

        Raises
        ------
        LinAlgError
            A matrix that is not positive definite in floats.
        """
        size, stars = self._size, SIDES * self.stars
        inside, width, spots = self._band
        own = [np.bincount(self._links[0], x, self.k + 1) + np.bincount(self._links[1], x, self.k + 1) for x in blocks]
        band: Floats = -np.bincount(spots, self._entries(blocks, inside), size * width).astype(np.float64)
        band = band.reshape(size, width)
        border, corner = np.zeros((stars + 2, size)), np.zeros((stars + 2, stars + 2))
        near, far = self._nodes
        at, there = SIDES * self.places[near], SIDES * self.places[far] - size
        if stars:
            beside, spots = self._border
            rows = -np.bincount(spots, self._entries(blocks, beside), stars * SIDES * (self.k - 1))
            rows = rows.reshape(stars, -1)
            border[:stars] = rows[:, :size]
            lower = np.tril(rows[:, size:], -1)
            corner[:stars, :stars] = lower + lower.T
        for i in range(SIDES):
            for j in range(i, SIDES):
                amounts = own[ENTRY[i, j]]
                band[at + i, j - i] = amounts[near]
                corner[there + i, there + j] = corner[there + j, there + i] = amounts[far]
        self._see_total(blocks, border, corner)
        diagonal = np.arange(stars + 2)
        for ridge in RIDGES:
            firm = corner.copy()
            firm[diagonal, diagonal] = corner[diagonal, diagonal] * (1 + ridge) + LEAST
            factor = band.copy()
            factor[:, 0] = band[:, 0] * (1 + ridge) + LEAST
            if not size:
                return Factors(factor.T, np.zeros((0, stars + 2)), np.linalg.inv(firm).astype(np.float64))
            triangle, failed = lapack.dpbtrf(factor.T, lower=1, overwrite_ab=1)
            if not failed:
                solved = lapack.dtbtrs(triangle, border.T, uplo="L")[0]
                return Factors(triangle, solved, np.linalg.inv(firm - solved.T @ solved).astype(np.float64))
        raise np.linalg.LinAlgError("Newton's equations are not positive definite in floats")

    @staticmethod
    def _entries(blocks: Blocks, links: Indices) -> Floats:
        return np.concatenate([blocks[ENTRY[i, j]][links] for i in range(SIDES) for j in range(SIDES)])

    def _see_total(self, blocks: Blocks, border: Floats, corner: Floats) -> None:
        """Fill the rows and columns of the last node's two unknown sums."""
        size, stars, n = border.shape[1], corner.shape[0] - 2, self.n
        total = (self.end == self.k) + self.excess
        inner = SIDES * self.places[1:-1]
        for side in (1, 2):
            row = stars + side - 1
            for i in range(SIDES):
                amounts = blocks[ENTRY[side, i]]
                sums = self._node_sums(amounts[:n] * total)[1:-1]
                if self.k > 1:
                    sums[-1] -= amounts[-1]
                near = inner + i < size
                border[row, (inner + i)[near]] = sums[near]
                there = (inner + i)[~near] - size
                corner[row, there] = corner[there, row] = sums[~near]
            for other in (1, 2):
                amounts = blocks[ENTRY[side, other]]
                corner[row, stars + other - 1] = amounts[:n] @ total**2 + amounts[-1]

    def solved(self, factors: Factors, right: Floats) -> Floats:
        """Sums at all nodes, zero where they are fixed, for right sides of all nodes."""
        size, inner = self._size, SIDES * self.places[1:-1]
        target = np.empty((SIDES * (self.k - 1) + 2, 1))
        for i in range(SIDES):
            target[inner + i, 0] = right[i, 1:-1]
        target[-2:, 0] = right[1:, -1]
        if size:
            near = lapack.dtbtrs(factors.band, target[:size], uplo="L")[0]
            target[size:] = factors.inverse @ (target[size:] - factors.beside.T @ near)
            near = near - factors.beside @ target[size:]
            target[:size] = lapack.dtbtrs(factors.band, near, uplo="L", trans="T")[0]
        else:
            target = factors.inverse @ target
        sums = np.zeros((SIDES, self.k + 1))
        for i in range(SIDES):
            sums[i, 1:-1] = target[inner + i, 0]
        sums[1:, -1] = target[-2:, 0]
        return sums
