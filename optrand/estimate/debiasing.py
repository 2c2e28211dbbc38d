r"""Unbiased estimation behind a mechanism: values of the outputs whose expectation is a function of the label.

Let ``M`` be the ``(k, n)`` table of a mechanism, ``f`` a function of the label, ``p`` a prior and :math:`q = p^\top M`
the chances of the outputs under it. Values ``w`` of the outputs estimate ``f`` without bias if :math:`M w = f`; of
these the module takes those of the least variance under the prior, which minimise :math:`\sum_i q_i w_i^2`. Whatever
the prior, they are unbiased for every label.

*In differences.* With :math:`x = \sqrt q \, w`, the equations :math:`M w = f` are equivalent to

.. math:: \textstyle\sum_i \sqrt{q_i}\, x_i = p^\top f, \qquad
          B x = \Delta f, \quad B_{y i} = (M_{y+1, i} - M_{y i}) / \sqrt{q_i}.

The first row is orthogonal to all others, for rows of ``M`` have one sum, so :math:`w = p^\top f + q^{-1/2} \circ B^+
\Delta f`. Differences of rows are taken in the mechanism's integers: nothing cancels, however small epsilon is. And of
arcs ``B`` is sparse, two entries an arc: :math:`B B^\top` is the Laplacian of a graph whose edges are the arcs.

*The histogram* that fits the frequencies :math:`\hat c` of the outputs best, :math:`\sum_i (\hat c_i - (M^\top h)_i)^2
/ q_i` being least, is the transpose, :math:`h = p + \Delta^\top (B^\top)^+ (\hat c / \sqrt q)`; it sums to 1, and
:math:`h^\top f = \hat c^\top w`.

*Rank.* ``M`` must have rank ``k``. Arcs with an output of their own each have it if and only if no two neighbouring
labels have equal rows: every arc lies on a path of arcs from node 0 to node ``k`` (masses are a flow), so every node
that an arc touches is connected to those two ends, and a connected graph's Laplacian, its ends grounded, is
invertible. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats, frozen, rectangular
from optrand.base.validation import prior as checked_prior
from optrand.errors import InvalidInput
from optrand.estimate.factors import ADVICE, DEPENDENT, LARGEST, Factor, factored, row_lengths
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.released import Released, mechanism_of
from optrand.model.arcs import IntegerArcs

__all__ = ["DENSE", "Debiasing"]

DENSE = 1 << 18
"""Largest size of a table of arcs that is factored as a table, which detects dependent rows best."""

Matrix = Floats | sparse.csr_array | sparse.csc_array

ROUNDS = 2
"""Steps of iterative refinement."""


@dataclass(frozen=True, eq=False)
class Debiasing:
    """Factors of the differences of a mechanism's rows, for a prior.

    Attributes
    ----------
    mechanism : Mechanism
    prior : (k,) array
        Under which the variance is least.
    chances : (n,) array
        Probabilities of the outputs under the prior.
    lengths : (k - 1,) array
        Lengths of the rows of ``B``, by which they are divided.
    factor : DenseFactor or SparseFactor or None
        None for a single label.

    Examples
    --------
    >>> import optrand
    >>> coin = optrand.rr([0, 1], math.log(3))
    >>> Debiasing.of(coin).values([0.0, 1.0]).round(12).tolist()
    [-0.5, 1.5]
    """

    mechanism: Mechanism
    prior: Floats
    chances: Floats
    lengths: Floats
    factor: Factor | None

    @classmethod
    def of(cls, mechanism: Mechanism | Released, prior: ArrayLike | None = None) -> Debiasing:
        """Factor the table of a mechanism.

        Parameters
        ----------
        mechanism : Mechanism or ReleaseRecord
        prior : (k,) array, optional
            By default that of the mechanism's problem. For unbiased estimates it must not depend on the release.

        Raises
        ------
        InvalidInput
            The table is singular, or too large to be factored.

        Notes
        -----
        Of arcs ``O(k + n)`` integers and a sparse factorisation; of a table a QR factorisation, ``O(k**2 n)``.
        """
        mechanism = mechanism_of(mechanism)
        k, n = mechanism.labels.size, mechanism.outputs.size
        given = mechanism.problem.prior if prior is None else checked_prior(prior, k)
        weights = frozen(given / math.fsum(given))
        if n < k:
            raise InvalidInput(f"the mechanism has {n} outputs for {k} labels: {ADVICE}")
        if mechanism.arcs is None and k * n > LARGEST:
            raise InvalidInput(
                f"the mechanism is a table of {k} labels and {n} outputs, expected at most {LARGEST} entries: "
                "use a mechanism of interval columns, such as that of solve(problem) on the line, or fewer labels"
            )
        if mechanism.arcs is not None:
            rows, chances = _differences_of_arcs(mechanism, mechanism.arcs, weights)
        else:
            rows, chances = _differences_of_table(mechanism, weights)
        lengths = row_lengths(rows)
        # What tabulation adds to make rows exact tells labels apart by nothing that could be estimated.
        same = np.flatnonzero(lengths <= DEPENDENT * lengths.max(initial=0.0))
        if same.size:
            raise InvalidInput(
                f"the labels numbered {same[0]} and {same[0] + 1} (from 0) have the same row of the mechanism"
                f"{f', and so have {same.size - 1} more pairs of neighbours' if same.size > 1 else ''}: {ADVICE}"
            )
        return cls(mechanism, weights, frozen(chances), frozen(lengths), factored(rows, lengths) if k > 1 else None)

    def values(self, functions: ArrayLike) -> Floats:
        """Values of the outputs, (n,) or (n, m), whose expectations are functions of the label, (k,) or (k, m)."""
        given = rectangular(functions, "functions", np.float64)
        k = self.mechanism.labels.size
        if given.ndim not in (1, 2) or given.shape[0] != k:
            raise InvalidInput(f"functions have shape {given.shape}, expected ({k},) or ({k}, m): one row per label")
        if not np.isfinite(given).all():
            raise InvalidInput("functions hold NaN or infinite values, expected finite numbers")
        columns = given.reshape(k, -1)
        values = np.broadcast_to(self.prior @ columns, (self.mechanism.outputs.size, columns.shape[1]))
        if self.factor is not None:
            steps = np.diff(columns, axis=0) / self.lengths[:, np.newaxis]
            values = values + _refined(self.factor.least, self.factor.rows, steps) / self._roots[:, np.newaxis]
        return np.array(values).reshape(-1, *given.shape[1:])

    def expectations(self, values: Floats) -> Floats:
        """Expectation ``M @ values`` for each label of (n,) or (n, m) values of the outputs, by differences of rows."""
        columns = values.reshape(values.shape[0], -1)
        expected = np.zeros((self.mechanism.labels.size, columns.shape[1]))
        if self.factor is not None:
            steps = self.factor.rows @ (columns * self._roots[:, np.newaxis])
            np.cumsum(steps * self.lengths[:, np.newaxis], axis=0, out=expected[1:])
        expected += self.chances @ columns - self.prior @ expected
        return expected.reshape(-1, *values.shape[1:])

    def shares(self, tallies: ArrayLike) -> Floats:
        """Histogram of the labels, shape ``(k,)``, that fits the counts of the outputs best.

        It sums to 1, and some shares may be negative.
        """
        counts = rectangular(tallies, "tallies", np.float64)
        if self.factor is None:
            return np.ones(1)
        fitted = counts / counts.sum() / self._roots
        potentials = _refined(self.factor.fitting, self.factor.rows.T, fitted[:, np.newaxis])[:, 0] / self.lengths
        shares: Floats = self.prior - np.diff(potentials, prepend=0.0, append=0.0)
        return shares

    @property
    def _roots(self) -> Floats:
        roots: Floats = np.sqrt(self.chances)
        return roots


def _differences_of_table(mechanism: Mechanism, prior: Floats) -> tuple[Floats, Floats]:
    """Differences of neighbouring rows, divided by the roots of the chances, and those chances."""
    weights, total = mechanism.weights, mechanism.total
    chances = prior @ (weights / total).astype(np.float64)
    steps = ((weights[1:] - weights[:-1]) / total).astype(np.float64)
    return steps / np.sqrt(chances), chances


def _differences_of_arcs(
    mechanism: Mechanism, arcs: IntegerArcs, prior: Floats
) -> tuple[Floats | sparse.csr_array, Floats]:
    """Differences of neighbouring rows of arcs: an arc adds where its interval begins, and subtracts after its end."""
    low, more = mechanism.ratio.denominator, mechanism.ratio.numerator - mechanism.ratio.denominator
    digits = places(prior)
    sums = list(accumulate(scaled(prior, digits), initial=0))
    tallies, steps = [0] * arcs.n, dict[tuple[int, int], int]()
    columns = zip(arcs.first.tolist(), arcs.last.tolist(), arcs.at.tolist(), arcs.masses.tolist(), strict=True)
    for first, last, at, mass in columns:
        tallies[at] += mass * (low * sums[-1] + more * (sums[last + 1] - sums[first]))
        for row, change in ((first - 1, mass), (last, -mass)):
            if 0 <= row < arcs.k - 1:
                steps[row, at] = steps.get((row, at), 0) + change
    chances = np.array([quotient(tally, mechanism.total << digits) for tally in tallies])
    where = np.array(list(steps), dtype=np.intp).reshape(-1, 2)
    entries = np.array([quotient(more * step, mechanism.total) for step in steps.values()])
    entries = entries / np.sqrt(chances)[where[:, 1]]
    rows = sparse.csr_array((entries, (where[:, 0], where[:, 1])), shape=(arcs.k - 1, arcs.n))
    return rows.toarray() if arcs.k * arcs.n <= DENSE else rows, chances


def _refined(solve: Callable[[Floats], Floats], matrix: Matrix, right: Floats) -> Floats:
    """Solution of ``matrix @ x = right``, or the nearest to one, with iterative refinement."""
    found = solve(right)
    for _ in range(ROUNDS):
        found = found + solve(right - matrix @ found)
    return found
