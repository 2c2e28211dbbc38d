"""Nearest neighbours that learn from noisy labels, from weights of labels, or from their likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors

from optrand.base._validation import Floats

CHUNK = 50
"""Rows that are predicted at a time."""


def likeliest_shares(table: Floats, rounds: int = 20) -> Floats:
    """Find the shares of labels under which some independent releases are likeliest, by expectation maximisation.

    Parameters
    ----------
    table : (..., n, K) array
        Likelihood of each release for each label, the factors of rows left open.
    rounds : int
        Steps from uniform shares.

    Examples
    --------
    >>> likeliest_shares(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(3).tolist()
    [0.667, 0.333]
    """
    shares: Floats = np.full((*table.shape[:-2], table.shape[-1]), 1 / table.shape[-1])
    for _ in range(rounds):
        evidence = table @ shares[..., np.newaxis]
        shares = shares * (table / evidence).mean(axis=-2)
    return shares


class Neighbours(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier by the labels, weights or likelihoods of the nearest rows, `neighbours` of them."""

    def __init__(self, neighbours: int = 200) -> None:
        self.neighbours = neighbours

    def fit(self, X: Floats, y: NDArray[Any], sample_weight: Floats | None = None) -> Neighbours:
        """Vote with labels, the numbers from 0 on."""
        weights = np.eye(int(np.max(y)) + 1)[y]
        return self.fit_weights(X, weights if sample_weight is None else weights * sample_weight[:, np.newaxis])

    def fit_weights(self, X: Floats, weights: Floats) -> Neighbours:
        """Vote with weights of labels, shape ``(n, K)``."""
        return self._keep(X, weights, by_likelihood=False)

    def fit_likelihood(self, X: Floats, table: Floats) -> Neighbours:
        """Find the shares under which the releases of the nearest rows are likeliest; `table` is ``(n, K)``."""
        return self._keep(X, table, by_likelihood=True)

    def _keep(self, X: Floats, table: Floats, *, by_likelihood: bool) -> Neighbours:
        self.index_ = NearestNeighbors(n_neighbors=self.neighbours).fit(X)
        self.table_, self.by_likelihood_ = np.asarray(table, dtype=np.float64), by_likelihood
        self.classes_ = np.arange(self.table_.shape[1])
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Predict shares of labels, shape ``(n, K)``."""
        near = self.index_.kneighbors(X, return_distance=False)
        parts = np.array_split(near, max(1, len(near) // CHUNK))
        if self.by_likelihood_:
            return np.concatenate([likeliest_shares(self.table_[part]) for part in parts])
        return np.concatenate([self.table_[part].mean(axis=1) for part in parts])

    def predict(self, X: Floats) -> NDArray[np.intp]:
        """Predict the likeliest labels."""
        likeliest: NDArray[np.intp] = self.predict_proba(X).argmax(axis=1)
        return likeliest
