r"""Multipliers that satisfy cuts, as near as can be to where they were: a small quadratic program.

A multiplier is a place :math:`x_y` between its two bounds, from 0 to 1 (:mod:`optrand.solvers.bins.dual`). With ten
thousand labels there is no need for as many unknowns: over each bin the *change* of :math:`x` is linear between a few
*knots*, evenly spread over its labels. A smooth change keeps the labels' reach in order, and one that satisfies one cut
satisfies its neighbours as well. So what is kept small is the change at the knots, and above all its steps,

.. math:: \sum_i z_i^2 + \frac{n^2}{10} \sum_i (z_{i+1} - z_i)^2,

for the :math:`n` knots of a bin, subject to the sums over the bins, to :math:`0 \leq x \leq 1`, and to the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import ConicProgram
from optrand.solvers.bins.costs import Starts

__all__ = ["BinKnots", "Cut", "quotient"]

STEPS = 0.1
"""Weight of steps from knot to knot, beside the change of a knot itself."""

ENGINE = Clarabel(tolerance=1e-12)


@dataclass(frozen=True, eq=False)
class Cut:
    """Upper limit on a weighted sum of the places of some labels."""

    labels: NDArray[np.intp]
    weights: Floats
    limit: float


@dataclass(frozen=True, eq=False)
class BinKnots:
    """Knots for the labels of each bin: `most` of them, or as many as there are labels.

    Attributes
    ----------
    starts : (m,) array of int
        The first label of each bin.
    k : int
        The number of labels.
    most : int
        At least 2.

    Examples
    --------
    >>> BinKnots(np.array([0, 1]), 6, 3).basis.toarray().tolist()[1:4]
    [[0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """

    starts: Starts
    k: int
    most: int

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of labels of each bin."""
        return np.diff(np.append(self.starts, self.k))

    @property
    def exhausted(self) -> bool:
        """Whether every label has its knot."""
        return bool(self.most >= self.sizes.max())

    @property
    def finer(self) -> BinKnots:
        """Twice as many."""
        return BinKnots(self.starts, self.k, 2 * self.most)

    @cached_property
    def bins(self) -> NDArray[np.intp]:
        """The bin of each knot."""
        return np.repeat(np.arange(self.starts.size), np.minimum(self.most, self.sizes))

    @cached_property
    def basis(self) -> sparse.csr_array:
        """Changes of labels from those of knots, shape ``(k, knots)``."""
        sizes, knots = self.sizes, np.minimum(self.most, self.sizes)
        rank = np.arange(self.k) - np.repeat(self.starts, sizes)
        own = np.repeat(knots, sizes)
        place = rank * ((own - 1) / np.maximum(np.repeat(sizes, sizes) - 1, 1))
        left = np.clip(place.astype(np.intp), 0, np.maximum(own - 2, 0))
        right = np.minimum(left + 1, own - 1)
        offset = np.repeat(np.cumsum(knots) - knots, sizes)
        share, label = place - left, np.arange(self.k)
        entries = np.concatenate((1 - share, share))
        where = np.concatenate((label, label)), np.concatenate((offset + left, offset + right))
        return sparse.csr_array((entries, where), shape=(self.k, self.bins.size))

    @property
    def metric(self) -> sparse.csr_array:
        """The quadratic form that says how large a change is."""
        count = np.bincount(self.bins).astype(np.float64)[self.bins]
        knots = self.bins.size
        steps = sparse.eye_array(knots, format="csr") - sparse.eye_array(knots, k=1, format="csr")
        same = np.append(self.bins[1:] == self.bins[:-1], False)
        weighted = steps.T @ sparse.diags_array(np.where(same, STEPS * count**2, 0.0)) @ steps
        return sparse.csr_array(sparse.eye_array(knots) + weighted)

    def nearest(self, middle: Floats, widths: Floats, sums: Floats, cuts: list[Cut]) -> Floats | None:
        """The places nearest to some others that satisfy all cuts.

        Parameters
        ----------
        middle : (k,) array
            The others.
        widths : (k,) array
            From the lower bound of each multiplier to the upper one.
        sums : (m,) array
            How far above their lower bounds the multipliers of each bin must be, together.
        cuts : list of Cut

        Returns
        -------
        (k,) array or None
            None where the engine finds none.
        """
        ends = np.append(self.starts, self.k)
        bins = sparse.csr_array((widths, np.arange(self.k), ends), shape=(self.starts.size, self.k))
        equal, equal_to = _scaled(bins @ self.basis, sums - bins @ middle)
        sets = self._rows(cuts)
        less, less_than = _scaled(sets @ self.basis, np.array([cut.limit for cut in cuts]) - sets @ middle)
        free = np.flatnonzero(widths)
        box = self.basis[free]
        program = ConicProgram(
            quadratic=sparse.csc_array(sparse.triu(self.metric)),
            cost=np.zeros(self.bins.size),
            equal=sparse.csc_array(equal),
            equal_to=equal_to,
            less=sparse.csc_array(sparse.vstack((less, box, -box))),
            less_than=np.concatenate((less_than, 1 - middle[free], middle[free])),
        )
        try:
            answer = ENGINE.solve(program)
        except SolverFailed:
            return None
        return None if "nfeasible" in answer.status else np.clip(middle + self.basis @ answer.x, 0.0, 1.0)

    def _rows(self, cuts: list[Cut]) -> sparse.csr_array:
        """The weights of each cut."""
        ends = np.concatenate(([0], np.cumsum([cut.labels.size for cut in cuts])))
        entries = np.concatenate([cut.weights for cut in cuts]), np.concatenate([cut.labels for cut in cuts])
        return sparse.csr_array((*entries, ends), shape=(len(cuts), self.k))


def quotient(above: Floats, below: Floats) -> Floats:
    """A quotient that is 0 where there is nothing to divide by."""
    ratio: Floats = np.divide(above, below, out=np.zeros(above.shape), where=below > 0)
    return ratio


def _scaled(rows: sparse.csr_array, right: Floats) -> tuple[sparse.csr_array, Floats]:
    """Rows scaled to magnitudes that sum to one, so that all are of one size."""
    unit = quotient(np.ones(right.size), np.asarray(abs(rows).sum(axis=1), dtype=np.float64))
    return sparse.csr_array(sparse.diags_array(unit) @ rows), right * unit
