"""Classes on a circle, more and more of them: [Z25], Figures 2, 3 and 4, by nearest neighbours.

Means are equally spaced on the unit circle, with normal noise of deviation 0.05 (panel a) or ``2 / K`` (panel b).
Beside the methods of the paper stand neighbours by the likelihood, on bits and on noisy labels. [Z25] prints pictures,
not numbers, of 1,000 trials, and does not state how LP-2ST is tempered or filtered. Here it is neither.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors

from benchmarks.learning.experiment import Cell, Experiment, Setup, fit_classifier
from benchmarks.learning.reports import report
from optrand.base._validation import Floats
from optrand.learning import Alibi, Bits, NearestNeighbour, Stages

BAYES = "Bayes"
"""Arm that predicts by the true distribution."""

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
        """Find the shares under which the releases of the nearest rows are likeliest, from `table`, ``(n, K)``."""
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


def find_means(k: int) -> Floats:
    """Return the means of the classes, shape ``(K, 2)``."""
    angles = 2 * math.pi * np.arange(k) / k
    return np.column_stack([np.cos(angles), np.sin(angles)])


def draw_points(k: int, deviation: float, rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
    """Draw points and their classes."""
    y = rng.integers(0, k, rows)
    return find_means(k)[y] + deviation * rng.normal(size=(rows, 2)), y


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the percentage of test points that are right, by panel and number of classes."""
    deviations = {
        f"{panel} {k}": (k, 0.05 if panel == "a" else 2 / k) for panel in "ab" for k in setup.settings["classes"]
    }
    return {name: measure_accuracy(setup, cell, *one) for name, one in deviations.items()}


def measure_accuracy(setup: Setup, cell: Cell, k: int, deviation: float) -> float:
    """Measure the percentage of test points that are right."""
    settings = setup.settings
    rng = np.random.default_rng([cell.seed, k])
    X, y = draw_points(k, deviation, settings["train"], rng)
    test, truth = draw_points(k, deviation, settings["test"], rng)
    if cell.arm == BAYES:
        return 100 * float(((test @ find_means(k).T).argmax(axis=1) == truth).mean())
    plans: dict[str, tuple[Any, str]] = {
        "bits": (NearestNeighbour(settings["neighbours"]), "bits"),
        "randomized response": (Stages(1), "labels"),
        "two stages": (Stages(2, least=1), "labels"),
        "ALIBI": (Alibi(), "soft"),
        "bits, likelihood": (Bits(), "likelihood"),
        "two stages, likelihood": (Stages(2), "likelihood"),
    }
    model = fit_classifier(cell, Neighbours(settings["neighbours"]), X, y, k, *plans.get(cell.arm, (None, "")))
    return 100 * float((model.predict(test) == truth).mean())


EXPERIMENTS = {
    f"circle{number}": Experiment(
        f"[Z25], Figure {number}: classes on a circle, {what}",
        measure,
        partial(report, error="test accuracy (percent)"),
    )
    for number, what in {2: "epsilon 1", 3: "epsilon 2, 100 neighbours", 4: "epsilon 1, 100 neighbours"}.items()
}
