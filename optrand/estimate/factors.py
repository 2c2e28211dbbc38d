"""Factors of a matrix with independent rows, dense or sparse: its shortest solutions and its least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.sparse.linalg import SuperLU, norm, splu

from optrand.base.validation import Floats, frozen
from optrand.errors import InvalidInput

__all__ = ["ADVICE", "DEPENDENT", "LARGEST", "DenseFactor", "Factor", "SparseFactor", "factored", "row_lengths"]

LARGEST = 1 << 22
"""Largest size of a table that is factored: 32 MB, and some 10 s for a square one."""

DEPENDENT = 1e-12
"""Distance to the span of the others below which a row of length 1 depends on them."""

SPARSE_DEPENDENT = 1e-11
"""Squared length below which a row depends on the others, where a sparse matrix of products is factored."""

ADVICE = (
    "the histogram of its labels, and losses of them, cannot be told from what it releases. Release with a mechanism "
    "whose rows are independent (optrand.debiased_rr, optrand.rr, or an optimal unbiased randomizer for a prior "
    "without zeros); the mean of the labels can be estimated from any unbiased mechanism"
)
"""Advice on a singular mechanism."""


class Factor(Protocol):
    """Factors of a matrix ``rows``, whose rows are of length 1 and independent."""

    @property
    def rows(self) -> Floats | sparse.csr_array:
        """Matrix ``B``."""
        ...

    def least(self, right: Floats) -> Floats:
        """Shortest ``x`` with ``B x = right``, for each column of `right`."""
        ...

    def fitting(self, right: Floats) -> Floats:
        """Least-squares solution ``u`` of ``B.T u = right``, for each column of `right`."""
        ...


@dataclass(frozen=True, eq=False)
class DenseFactor:
    """QR factors, ``B.T[:, order] = Q R``."""

    rows: Floats
    orthogonal: Floats
    triangle: Floats
    order: NDArray[np.intp]

    def least(self, right: Floats) -> Floats:
        """See :class:`Factor`."""
        shortest: Floats = self.orthogonal @ solve_triangular(self.triangle, right[self.order], trans="T")
        return shortest

    def fitting(self, right: Floats) -> Floats:
        """See :class:`Factor`."""
        found = np.empty((self.order.size, right.shape[1]))
        found[self.order] = solve_triangular(self.triangle, self.orthogonal.T @ right)
        return found


@dataclass(frozen=True, eq=False)
class SparseFactor:
    """Sparse triangular factors of ``B @ B.T``."""

    rows: sparse.csr_array
    products: SuperLU

    def least(self, right: Floats) -> Floats:
        """See :class:`Factor`."""
        shortest: Floats = self.rows.T @ self.products.solve(right)
        return shortest

    def fitting(self, right: Floats) -> Floats:
        """See :class:`Factor`."""
        return np.asarray(self.products.solve(self.rows @ right))


def row_lengths(rows: Floats | sparse.csr_array) -> Floats:
    """Euclidean length of each row."""
    if isinstance(rows, sparse.csr_array):
        return np.asarray(norm(rows, axis=1), dtype=np.float64)
    lengths: Floats = np.linalg.norm(rows, axis=1)
    return lengths


def factored(rows: Floats | sparse.csr_array, lengths: Floats) -> Factor:
    """Factors of a matrix after its rows are divided by their lengths.

    Raises
    ------
    InvalidInput
        Rows that depend on each other, or products of them that fill a large matrix.
    """
    labels = lengths.size + 1
    if not isinstance(rows, sparse.csr_array):
        table = rows / lengths[:, np.newaxis]
        orthogonal, triangle, order = qr(table.T, mode="economic", pivoting=True)
        independent = int((np.abs(np.diag(triangle)) > DEPENDENT).sum())
        if independent < lengths.size:
            raise InvalidInput(f"the rows of the mechanism have rank {independent + 1} for {labels} labels: {ADVICE}")
        return DenseFactor(table, frozen(orthogonal), frozen(triangle), order.astype(np.intp))
    if (np.bincount(rows.indices).astype(np.float64) ** 2).sum() > LARGEST:
        raise InvalidInput(
            f"the arcs of the mechanism share outputs so much that their equations at {labels} labels are no longer "
            "sparse: release with a mechanism whose arcs have outputs of their own, or fewer labels"
        )
    unit = sparse.csr_array(sparse.diags_array(1 / lengths) @ rows)
    try:
        products = splu(
            sparse.csc_array(unit @ unit.T),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        dependent = bool((np.abs(products.U.diagonal()) < SPARSE_DEPENDENT).any())
    except RuntimeError:
        dependent = True
    if dependent:
        raise InvalidInput(f"the rows of the mechanism have a rank below {labels}, the number of labels: {ADVICE}")
    return SparseFactor(unit, products)
