"""Best unbiased decoder of a channel from classes to symbols: weighted least squares under a prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from optrand.base import _validation
from optrand.base._validation import Floats, freeze_array, rectangular
from optrand.errors import Infeasible, InvalidInput


@dataclass(frozen=True, eq=False)
class Decoder:
    """Vectors that stand for the symbols of a channel.

    Attributes
    ----------
    vectors : (n, K) array
        Their mean is ``e_y`` under each class ``y``, up to rounding.
    value : float
        Half the expected squared distance from the one-hot vector, under the prior.
    """

    vectors: Floats
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", freeze_array(self.vectors))


def best_decoder(matrix: ArrayLike, prior: ArrayLike) -> Decoder:
    r"""Compute the unbiased decoder of a channel with the least expected squared distance from the one-hot vector.

    .. math:: v_i = J^{-1} Q_i / w_i, \qquad J = \sum_i Q_i Q_i^T / w_i, \quad w_i = \sum_y p_y Q_{yi},
              \qquad \text{value } \tfrac12 (\mathrm{tr} J^{-1} - 1)

    Parameters
    ----------
    matrix : (K, n) array
        Probabilities ``Q[y, i]`` of the symbols, a row for each class.
    prior : (K,) array

    Raises
    ------
    InvalidInput
        Rows that are not probability distributions, or shapes that do not fit.
    Infeasible
        Rows that are linearly dependent: no decoder is unbiased.

    Notes
    -----
    Proof: ``docs/mathematics.md``, section 14. Computed from singular values, without the square of their
    condition. Symbols that occur only under classes of prior 0 cost nothing, and are used first. Cost ``O(K**2 n)``.

    Examples
    --------
    Randomized response on three classes, decoded for a prior:

    >>> channel = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> decoder = best_decoder(channel, [0.8, 0.1, 0.1])
    >>> np.allclose(np.array(channel) @ decoder.vectors, np.eye(3))
    True
    >>> round(decoder.value, 6)
    1.75
    """
    weights = _validation.check_prior(prior)
    table = rectangular(matrix, "matrix")
    if table.dtype.kind not in "iuf" or table.ndim != 2 or table.shape[0] != weights.size:
        raise InvalidInput(
            f"matrix is of type {table.dtype} and shape {table.shape}, expected numbers and a row for each of the "
            f"{weights.size} classes"
        )
    channel = table.astype(np.float64)
    if not (channel >= 0).all() or not (np.abs(channel.sum(axis=1) - 1) <= _validation.PRIOR_SUM_TOLERANCE).all():
        raise InvalidInput("matrix has entries that are negative or NaN, or rows that do not sum to 1")
    vectors = _least_squares(channel, weights / weights.sum())
    distances = ((vectors[np.newaxis] - np.eye(weights.size)[:, np.newaxis]) ** 2).sum(axis=2)
    return Decoder(vectors, float(weights @ (channel * distances).sum(axis=1)) / 2)


def _least_squares(channel: Floats, prior: Floats) -> Floats:
    """Find ``V`` with ``channel @ V = 1`` and the least squares under the probabilities of the symbols."""
    k, chances = prior.size, prior @ channel
    # A channel with smaller singular values, relative to the largest, does not distinguish all classes in floats.
    singular = 1e-13
    used, free = chances > 0, (chances == 0) & channel.any(axis=0)
    vectors = np.zeros((channel.shape[1], k))
    rest = null_space(channel[:, free].T, rcond=singular).T if free.any() else np.eye(k)
    # Symbols that cost nothing cover some directions. The others are left to weighted least squares.
    root = np.sqrt(chances[used])
    whitened = rest @ channel[:, used] / root
    if np.linalg.matrix_rank(whitened, rtol=singular) < rest.shape[0]:
        raise Infeasible("the rows of the matrix are linearly dependent: no decoder of this channel is unbiased")
    vectors[used] = np.linalg.pinv(whitened, rcond=0) / root[:, np.newaxis] @ rest
    if free.any():
        vectors[free] = np.linalg.pinv(channel[:, free]) @ (np.eye(k) - channel[:, used] @ vectors[used])
    return vectors
