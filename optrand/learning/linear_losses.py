"""Convex losses of linear models: gradients for all labels at once, how steep they are, and how far apart.

Scores are ``W x``, with weights of shape ``(m, d)``. The gradient for a label is an outer product ``c x`` of a vector
`c` of length `m`, one a label, and the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats, integer
from optrand.errors import InvalidInput

__all__ = ["AbsoluteLoss", "LinearLoss", "LogisticLoss", "SquaredLoss"]


class LinearLoss(Protocol):
    """Convex loss of scores."""

    @property
    def k(self) -> int:
        """Number of labels."""
        ...

    @property
    def width(self) -> int:
        """Number of scores, `m`."""
        ...

    def coefficients(self, scores: Floats) -> Floats:
        """Derivatives in the scores for every label, shape ``(K, m)``, from scores of shape ``(m,)``."""
        ...

    def lipschitz(self, largest: float, radius: float) -> float:
        """Largest norm of a gradient, where features have norms up to `largest` and weights up to `radius`."""
        ...

    def distance(self, largest: float) -> float:
        """Largest distance of the gradients of two labels, at most twice the Lipschitz constant."""
        ...

    def values(self, scores: Floats) -> Floats:
        """Losses for every label, shape ``(n, K)``, from scores of shape ``(n, m)``."""
        ...


@dataclass(frozen=True)
class LogisticLoss:
    """Multinomial logistic loss ``-log softmax(W x)[y]`` of `k` classes.

    Examples
    --------
    >>> LogisticLoss(3).coefficients(np.zeros(3)).round(3)[0].tolist()
    [-0.667, 0.333, 0.333]
    """

    k: int

    def __post_init__(self) -> None:
        """Check the number of classes."""
        integer(self.k, "k", 2)

    @property
    def width(self) -> int:
        """A score for each class."""
        return self.k

    def coefficients(self, scores: Floats) -> Floats:
        """Probabilities less the one-hot vector of each label."""
        powers = np.exp(scores - scores.max())
        table: Floats = powers / powers.sum() - np.eye(self.k)
        return table

    def lipschitz(self, largest: float, radius: float) -> float:  # noqa: ARG002
        """``sqrt(2)`` times the norm of the features."""
        return math.sqrt(2) * largest

    def distance(self, largest: float) -> float:
        """Distance of two one-hot vectors, times the norm of the features."""
        return math.sqrt(2) * largest

    def values(self, scores: Floats) -> Floats:
        """Losses for every label."""
        shifted = scores - scores.max(axis=1, keepdims=True)
        losses: Floats = np.log(np.exp(shifted).sum(axis=1, keepdims=True)) - shifted
        return losses


@dataclass(frozen=True)
class AbsoluteLoss:
    """Absolute loss ``abs(w x - y)`` of labels that are numbers."""

    labels: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the labels."""
        _checked(self.labels)

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def width(self) -> int:
        """One score, the prediction."""
        return 1

    def coefficients(self, scores: Floats) -> Floats:
        """Side of each label that the prediction is on; at the label the upper one."""
        return np.where(scores[0] >= np.array(self.labels), 1.0, -1.0)[:, np.newaxis]

    def lipschitz(self, largest: float, radius: float) -> float:  # noqa: ARG002
        """Norm of the features."""
        return largest

    def distance(self, largest: float) -> float:
        """Gradients on both sides."""
        return 2 * largest

    def values(self, scores: Floats) -> Floats:
        """Losses for every label."""
        losses: Floats = np.abs(scores - np.array(self.labels))
        return losses


@dataclass(frozen=True)
class SquaredLoss:
    """Half squared loss ``(w x - y)**2 / 2`` of labels that are numbers."""

    labels: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the labels."""
        _checked(self.labels)

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def width(self) -> int:
        """One score, the prediction."""
        return 1

    def coefficients(self, scores: Floats) -> Floats:
        """Differences of the prediction from each label."""
        differences: Floats = (scores[0] - np.array(self.labels))[:, np.newaxis]
        return differences

    def lipschitz(self, largest: float, radius: float) -> float:
        """Norm of the features, times the largest difference of a prediction from a label."""
        return largest * (largest * radius + max(map(abs, self.labels)))

    def distance(self, largest: float) -> float:
        """Range of the labels, times the norm of the features."""
        return largest * (max(self.labels) - min(self.labels))

    def values(self, scores: Floats) -> Floats:
        """Losses for every label."""
        losses: Floats = (scores - np.array(self.labels)) ** 2 / 2
        return losses


def _checked(labels: tuple[float, ...]) -> None:
    array: NDArray[np.float64] = np.array(labels, dtype=np.float64)
    if array.ndim != 1 or np.unique(array).size != array.size or array.size < 2 or not np.isfinite(array).all():
        raise InvalidInput(f"the loss has {array.size} labels, expected at least two distinct finite numbers")
