"""Poisson regression that takes labels of either sign, as unbiased randomizers release them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin

from optrand.base.validation import Floats

__all__ = ["PoissonLinear", "poisson_loss"]

STEEPEST = 20.0
"""Exponents are cut here, so that no trial step overflows."""


class PoissonLinear(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Means ``exp(X w + b)`` of the least Poisson log loss with a ridge: convex whatever the signs of labels are.

    Parameters
    ----------
    alpha : float
        Ridge beside the sum of losses.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 400)[:, np.newaxis]
    >>> noise = np.where(np.arange(400) % 2, 3.0, -3.0)
    >>> model = PoissonLinear(1e-3).fit(X, np.exp(X[:, 0]) + noise)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([1.0], -0.0)
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> PoissonLinear:
        """Minimise by L-BFGS."""
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        weights = np.ones(labels.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

        def loss(point: Floats) -> tuple[float, Floats]:
            exponents = np.minimum(rows @ point[:-1] + point[-1], STEEPEST)
            means = np.exp(exponents)
            slopes = weights * (means - labels)
            ridge = self.alpha * point[:-1]
            value = weights @ (means - labels * exponents) + ridge @ point[:-1] / 2
            return float(value / labels.size), np.append(rows.T @ slopes + ridge, slopes.sum()) / labels.size

        found = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B")
        self.coef_, self.intercept_ = found.x[:-1], float(found.x[-1])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Means."""
        means: Floats = np.exp(np.minimum(np.asarray(X, dtype=np.float64) @ self.coef_ + self.intercept_, STEEPEST))
        return means


def poisson_loss(guesses: Any, y: Any) -> float:
    """Mean of ``f - y log f``, [B23]'s Poisson log loss; guesses below a hundredth count as one.

    Examples
    --------
    >>> poisson_loss(np.array([1.0, 1.0]), np.array([0, 2]))
    1.0
    """
    means = np.maximum(guesses, 0.01)
    return float((means - y * np.log(means)).mean())
