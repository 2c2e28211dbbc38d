r"""Unbiased estimation behind a mechanism, by values of the outputs whose expectation is a function of the label.

Let ``M`` be the ``(k, n)`` table of a mechanism, ``f`` a function of the label, ``p`` a prior and :math:`q = p^\top M`
the chances of the outputs under it. Values ``w`` of the outputs estimate ``f`` without bias if :math:`M w = f`. Among
these the module uses those of the least variance under the prior, which minimise :math:`\sum_i q_i w_i^2`. Whatever
the prior, they are unbiased for every label.

*In differences.* With :math:`x = \sqrt q \, w`, the equations :math:`M w = f` are equivalent to

.. math:: \textstyle\sum_i \sqrt{q_i}\, x_i = p^\top f, \qquad
          B x = \Delta f, \quad B_{y i} = (M_{y+1, i} - M_{y i}) / \sqrt{q_i}.

The first row is orthogonal to all others, since rows of ``M`` have one sum, so :math:`w = p^\top f + q^{-1/2} \circ B^+
\Delta f`. Differences of rows are the steps of the columns, which are integers: nothing cancels, however small epsilon
is. For interval columns ``B`` is sparse, with two entries for each arc: :math:`B B^\top` is the Laplacian of a graph
whose edges are the arcs.

*The histogram* that fits the frequencies :math:`\hat c` of the outputs best, :math:`\sum_i (\hat c_i - (M^\top h)_i)^2
/ q_i` being least, is the transpose, :math:`h = p + \Delta^\top (B^\top)^+ (\hat c / \sqrt q)`. It sums to 1, and
:math:`h^\top f = \hat c^\top w`.

*Losses.* Train on :math:`\tilde\ell(x, v) = \sum_y w_{v y} \, \ell(x, y)` in place of :math:`\ell(x, v)`. If
:math:`\sum_v \Pr[v \mid y] \, w_{v y'} = [y = y']`, its expectation over the noise is :math:`\ell(x, y)`, and likewise
for gradients. With `losses` of shape ``(batch, k)`` it is ``(weights[numbers] * losses).sum(axis=1)``.

*Rank.* ``M`` must have rank ``k``. Arcs with an output of their own each have it if and only if no two neighbouring
labels have equal rows: every arc lies on a path of arcs from node 0 to node ``k`` (masses are a flow), so every node
that an arc touches is connected to those two ends, and a connected graph's Laplacian, its ends grounded, is
invertible. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.sparse.linalg import norm, splu

from optrand.base._arithmetic import places, quotient, scale_to_integers
from optrand.base._validation import Floats, check_classes, check_epsilon, check_prior, freeze_array, rectangular
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released, mechanism_of
from optrand.model._table import Table


@dataclass(frozen=True)
class DebiasingOptions:
    """Sizes and tolerances of the factorisation."""

    factored: int = 1 << 22  # entries of the largest dense table that is factored: 32 MB, about 10 s for a square one
    weights: int = 1 << 24  # entries of the largest table of weights: 128 MB
    dense: int = 1 << 18  # entries of a sparse table up to which it is factored densely, to detect dependent rows best
    dependent: float = 1e-12  # distance to the span of the others below which a row of length 1 depends on them
    block: int = 1 << 21  # values of outputs per block while squares are computed
    sparse_dependent: float = 1e-11  # squared length of such a row, if a sparse matrix of products is factored


OPTIONS = DebiasingOptions()

ADVICE = (
    "the histogram of its labels, and losses of them, cannot be estimated from its outputs. Release with a mechanism "
    "whose rows are independent (optrand.rr, or for numbers optrand.debiased_rr or an optimal unbiased randomizer for "
    "a prior without zeros). The mean of numbers can be estimated from any unbiased mechanism"
)
"""Advice on a singular mechanism."""

Matrix = Floats | sparse.csr_array | sparse.csc_array


class Factor(NamedTuple):
    """A matrix whose rows are of length 1 and independent, with two solvers by its factors."""

    rows: Floats | sparse.csr_array
    least: Callable[[Floats], Floats]  # the shortest x with rows @ x = right, for each column of `right`
    fitting: Callable[[Floats], Floats]  # the least-squares solution of rows.T @ u = right


@dataclass(frozen=True, eq=False)
class Debiasing:
    """Factors of the differences of a mechanism's rows, for a prior.

    Attributes
    ----------
    mechanism : Mechanism
    prior : (k,) array
        Prior under which the variance is minimised.
    chances : (n,) array
        Probabilities of the outputs under the prior.
    lengths : (k - 1,) array
        Lengths of the rows of ``B``, by which they are divided.
    factor : Factor or None
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
        ``O(k + n)`` integers and a sparse factorisation if the columns of the table have few steps, else a QR
        factorisation, ``O(k**2 n)``.
        """
        if not isinstance(mechanism, Mechanism):
            mechanism = mechanism_of(mechanism)
        table = mechanism.table
        given = mechanism.problem.prior if prior is None else check_prior(prior, table.k)
        weights = freeze_array(given / math.fsum(given))
        if table.n < table.k:
            raise InvalidInput(
                f"the mechanism has {table.n} output{'s' if table.n > 1 else ''} for {table.k} labels: {ADVICE}"
            )
        dense = _is_dense(table)
        rows, chances = _differences(table, weights)
        lengths = np.asarray(norm(rows, axis=1), dtype=np.float64) if table.k > 1 else np.zeros(0)
        # Tabulation adds tiny amounts to make rows exact, which distinguish labels too weakly for any estimate.
        same = np.flatnonzero(lengths <= OPTIONS.dependent * lengths.max(initial=0.0))
        if same.size:
            more = f", and so have {same.size - 1} more pairs of neighbours" if same.size > 1 else ""
            raise InvalidInput(
                f"the labels numbered {same[0]} and {same[0] + 1} (from 0) have the same row of the mechanism{more}: "
                f"{ADVICE}"
            )
        factor = None
        if table.k > 1:
            unit = sparse.csr_array(sparse.diags_array(1 / lengths) @ rows)
            factor = _factor_dense(unit.toarray()) if dense else _factor_sparse(unit)
        return cls(mechanism, weights, freeze_array(chances), freeze_array(lengths), factor)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts of a pickle. SciPy's factors cannot be pickled, and are computed again."""
        return Debiasing.of, (self.mechanism, self.prior)

    def values(self, functions: ArrayLike) -> Floats:
        """Return (n,) or (n, m) values of the outputs, whose expectations are (k,) or (k, m) functions of the label."""
        given = rectangular(functions, "functions", np.float64)
        k = self.mechanism.labels.size
        if given.ndim not in (1, 2) or given.shape[0] != k:
            raise InvalidInput(f"functions have shape {given.shape}, expected ({k},) or ({k}, m): one row per label")
        if not np.isfinite(given).all():
            raise InvalidInput("functions hold NaN or infinite values, expected finite numbers")
        columns = given.reshape(k, -1)
        values = np.broadcast_to(self.prior @ columns, (self.mechanism.outputs.size, columns.shape[1]))
        if self.factor is not None:
            # Rows are scaled to length 1, so both sides of the equations are divided by their lengths.
            steps = np.diff(columns, axis=0) / self.lengths[:, np.newaxis]
            values = values + _refine(self.factor.least, self.factor.rows, steps) / self._roots[:, np.newaxis]
        return np.array(values).reshape(-1, *given.shape[1:])

    def indicators(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield blocks of `m` labels, their indicators ``(k, m)``, and unbiased values ``(n, m)`` of the indicators.

        The values for all labels at once would be a table of ``k`` columns for each output.
        """
        k = self.mechanism.labels.size
        step = max(1, OPTIONS.block // self.mechanism.outputs.size)
        for start in range(0, k, step):
            block = slice(start, min(start + step, k))
            indicators = np.eye(k, block.stop - start, -start)
            yield block, indicators, self.values(indicators)

    def moments(
        self, tallies: NDArray[Any], values: Floats, functions: Floats, squares: Floats
    ) -> tuple[Floats, Floats]:
        """Compute mean squares over a release of unbiased values of functions, and the mean variances of their noise.

        `squares` are estimates of the mean squares of the functions. Variances are those given the label, clipped to
        the least and the largest of a label.
        """
        variances = np.maximum(self.expectations(values**2) - functions**2, 0.0)
        found: Floats = tallies @ values**2 / tallies.sum()
        return found, np.clip(found - squares, variances.min(axis=0), variances.max(axis=0))

    def expectations(self, values: Floats) -> Floats:
        """Compute ``M @ values`` for (n,) or (n, m) values of the outputs, by differences of rows."""
        columns = values.reshape(values.shape[0], -1)
        expected = np.zeros((self.mechanism.labels.size, columns.shape[1]))
        if self.factor is not None:
            steps = self.factor.rows @ (columns * self._roots[:, np.newaxis])
            np.cumsum(steps * self.lengths[:, np.newaxis], axis=0, out=expected[1:])
        # Differences determine the values up to a constant, which the mean under the prior fixes.
        expected += self.chances @ columns - self.prior @ expected
        return expected.reshape(-1, *values.shape[1:])

    def shares(self, tallies: ArrayLike) -> Floats:
        """Fit a histogram of the labels, shape ``(k,)``, to the counts of the outputs.

        It sums to 1, and some shares may be negative.
        """
        counts = rectangular(tallies, "tallies", np.float64)
        if self.factor is None:
            return np.ones(1)
        fitted = counts / counts.sum() / self._roots
        potentials = _refine(self.factor.fitting, self.factor.rows.T, fitted[:, np.newaxis])[:, 0] / self.lengths
        return np.asarray(self.prior - np.diff(potentials, prepend=0.0, append=0.0))

    @property
    def _roots(self) -> Floats:
        return np.asarray(np.sqrt(self.chances))


def _is_dense(table: Table) -> bool:
    """Decide whether to factor densely. Raise InvalidInput if the table is too large for that and not sparse."""
    size = table.k * table.n
    # Two steps of one column make one entry of the products of rows.
    few_steps = sum(len(column) ** 2 for column in table.columns) <= OPTIONS.factored
    if size > OPTIONS.factored and not few_steps:
        raise InvalidInput(
            f"the mechanism is a table of {table.k} labels and {table.n} outputs whose columns have many steps, "
            f"expected at most {OPTIONS.factored} entries: use a mechanism of interval columns, such as that of "
            "solve(problem) on the line, or fewer labels"
        )
    return size <= OPTIONS.dense or not few_steps


def _differences(table: Table, prior: Floats) -> tuple[sparse.csr_array, Floats]:
    """Return differences of neighbouring rows, divided by the roots of the chances of outputs, and those chances."""
    digits = places(prior)
    # Chances are sums of integers, rounded once, in which a column's step at y counts for all labels from y on.
    sums = list(accumulate(scale_to_integers(prior, digits), initial=0))
    tallies = [sum(height * (sums[-1] - sums[y]) for y, height in column) for column in table.columns]
    chances = np.array([quotient(tally, table.total << digits) for tally in tallies])
    steps = [(y - 1, o, quotient(h, table.total)) for o, column in enumerate(table.columns) for y, h in column if y]
    labels, outputs, heights = (np.array(part) for part in zip(*steps, strict=True)) if steps else ([], [], [])
    entries = np.asarray(heights, dtype=np.float64) / np.sqrt(chances)[np.asarray(outputs, dtype=np.intp)]
    return sparse.csr_array((entries, (labels, outputs)), shape=(max(table.k - 1, 1), table.n)), chances


def _factor_dense(table: Floats) -> Factor:
    """Factor by QR with pivoting, ``table.T[:, order] = Q R``, whose falling diagonal shows the rank."""
    orthogonal, triangle, order = qr(table.T, mode="economic", pivoting=True)
    independent = int((np.abs(np.diag(triangle)) > OPTIONS.dependent).sum())
    if independent < order.size:
        raise InvalidInput(
            f"the rows of the mechanism have rank {independent + 1} for {order.size + 1} labels: {ADVICE}"
        )
    inverse = np.empty_like(orthogonal)
    inverse[:, order] = solve_triangular(triangle, orthogonal.T).T
    return Factor(table, lambda right: inverse @ right, lambda right: inverse.T @ right)


def _factor_sparse(rows: sparse.csr_array) -> Factor:
    """Factor the sparse matrix of products of rows."""
    try:
        products = splu(
            sparse.csc_array(rows @ rows.T),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        dependent = bool((np.abs(products.U.diagonal()) < OPTIONS.sparse_dependent).any())
    except RuntimeError:
        dependent = True
    if dependent:
        labels = rows.shape[0] + 1
        raise InvalidInput(f"the rows of the mechanism have a rank below {labels}, the number of labels: {ADVICE}")
    return Factor(
        rows, lambda right: rows.T @ products.solve(right), lambda right: np.asarray(products.solve(rows @ right))
    )


def _refine(solve: Callable[[Floats], Floats], matrix: Matrix, right: Floats) -> Floats:
    """Solve ``matrix @ x = right``, or the nearest to it, with two steps of iterative refinement."""
    found = solve(right)
    for _ in range(2):
        found = found + solve(right - matrix @ found)
    return found


def unbiased_values(mechanism: Mechanism | Released, functions: ArrayLike, *, prior: ArrayLike | None = None) -> Floats:
    """Compute values of the outputs, (n,) or (n, m), whose expectations are functions of the label.

    Parameters
    ----------
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    functions : (k,) or (k, m) array
        One function of the label, or one per column.
    prior : (k,) array, optional
        Prior under which the variance is minimised, by default that of the mechanism's problem.

    Raises
    ------
    InvalidInput
        A singular mechanism.

    Notes
    -----
    Squared loss ``(z - y)**2 / 2`` is linear in ``y`` and ``y**2``: their unbiased values replace a table of weights at
    any number of labels.

    Examples
    --------
    >>> import math, optrand
    >>> mechanism = optrand.rr([0, 1], math.log(3))
    >>> unbiased_values(mechanism, [[0, 0], [1, 1]]).round(12).tolist()
    [[-0.5, -0.5], [1.5, 1.5]]
    """
    return Debiasing.of(mechanism_of(mechanism), prior).values(functions)


def loss_weights(mechanism: Mechanism | Released, *, prior: ArrayLike | None = None) -> Floats:
    """Compute weights that make any loss unbiased under a mechanism's noise.

    Parameters
    ----------
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    prior : (k,) array, optional
        Prior under which the variance is minimised, by default that of the mechanism's problem.

    Returns
    -------
    (n, k) array
        The right inverse of the least variance, for a square table the inverse ([E22], Algorithm 1, line 30). Rows sum
        to 1. ``loss_weights(m)[output_numbers(released, m)]`` has one row per released value.

    Raises
    ------
    InvalidInput
        A singular mechanism, or a table beyond 128 MB.

    Examples
    --------
    Randomized response at ``exp(epsilon) = 3`` has the weights of [G21], eq. (7):

    >>> import math, optrand
    >>> loss_weights(optrand.rr([0, 1, 2], math.log(3))).round(12).tolist()
    [[2.0, -0.5, -0.5], [-0.5, 2.0, -0.5], [-0.5, -0.5, 2.0]]
    """
    mechanism = mechanism_of(mechanism)
    debiasing = Debiasing.of(mechanism, prior)
    k, n = mechanism.labels.size, mechanism.outputs.size
    if k * n > OPTIONS.weights:
        raise InvalidInput(
            f"the weights of {k} labels and {n} outputs have {k * n} entries, expected at most {OPTIONS.weights}: pass "
            "the few functions of the label that the loss needs to unbiased_values(mechanism, functions)"
        )
    return debiasing.values(np.eye(k))


def top_k_loss_weights(released: ArrayLike, kept: ArrayLike, epsilon: float) -> Floats:
    r"""Compute weights (N, K) for RRTop-k and, with all labels kept, for randomized response.

    .. math:: w_{j y} = \frac{[v_j = y] - p \, [y \text{ kept}]}{1 - k p}, \qquad p = \frac{1}{e^\epsilon + k - 1}.

    They are unbiased if the true label is kept ([G21], Lemma 18: equation 17 has these weights). Otherwise the
    expectation is the mean loss over the kept labels, which no weights can correct: the releases of all other labels
    have the same distribution.

    Parameters
    ----------
    released : (N,) array of int
        Noisy labels, from 0 to ``K - 1``, each of them kept.
    kept : (K,) or (N, K) array of bool
        The ``k`` labels that can be released, for all examples or for each. ``k`` may differ between rows, as for
        RRWithPrior.
    epsilon : float
        Privacy budget in nats.

    Raises
    ------
    InvalidInput
        Labels out of range or not kept, or rows that keep no label.

    Examples
    --------
    >>> import math
    >>> top_k_loss_weights([2, 0], [True, False, True], math.log(3)).round(12).tolist()
    [[-0.5, 0.0, 1.5], [1.5, 0.0, -0.5]]
    """
    budget = check_epsilon(epsilon)
    mask = rectangular(kept, "kept")
    if mask.dtype != np.bool_ or mask.ndim not in (1, 2) or not mask.size:
        raise InvalidInput(
            f"kept is of type {mask.dtype} and shape {mask.shape}, expected booleans of shape (K,) or (N, K)"
        )
    counts = mask.sum(axis=-1, keepdims=True)
    if not counts.all():
        raise InvalidInput(f"{int((counts == 0).sum())} row(s) of kept hold no label, expected one per row or more")
    numbers = rectangular(released, "released labels")
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidInput(
            f"released labels are of type {numbers.dtype} and shape {numbers.shape}, expected a vector of integers"
        )
    if mask.ndim == 2 and mask.shape[0] != numbers.size:
        raise InvalidInput(f"{mask.shape[0]} rows were given for {numbers.size} released labels, expected one each")
    numbers, each = check_classes(numbers, mask.shape[-1]), np.arange(numbers.size)
    kept = np.broadcast_to(mask, (numbers.size, mask.shape[-1]))
    strangers = int((~kept[each, numbers]).sum())
    if strangers:
        raise InvalidInput(f"{strangers} released label(s) are not among those kept: RRTop-k cannot have released them")
    # 1 - k p = (exp(epsilon) - 1) / (exp(epsilon) + k - 1), without cancellation.
    gain = math.expm1(budget)
    if math.isinf((gain + mask.shape[-1]) / gain):
        raise InvalidInput(f"epsilon is {budget:g}, at which weights of {mask.shape[-1]} classes overflow: raise it")
    weights: Floats = 0.0 - kept / gain
    weights[each, numbers] += 1 + counts[..., 0] / gain
    return weights
