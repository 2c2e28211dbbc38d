r"""Any torch module as a classifier on releases: likelihood, weighted and binary losses (``optrand[torch]``).

===========================  ==============================================================
target                       loss of a batch
===========================  ==============================================================
``"likelihood"``             :math:`-\log \sum_y L_{iy} \, p(y \mid x_i)`
``"debiased"``, ``"soft"``,  :math:`-\sum_y w_{iy} \log p(y \mid x_i)`, weights of any sign
``"labels"``
``"bits"``                   binary cross entropy of one network on all bits ([Z25])
===========================  ==============================================================

torch is imported only when a network is trained.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from optrand.base._validation import Floats
from optrand.errors import InvalidInput, MissingExtra

__all__ = ["TorchClassifier"]

Loss = Callable[[Any, Any], Any]
"""Losses of rows, from scores and targets of shape ``(batch, K)``."""


class TorchClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Network that is trained by Adam with a one-cycle schedule.

    Parameters
    ----------
    module : torch.nn.Module
        From ``(batch, ...)`` float features to ``(batch, K)`` scores. A copy is trained, from the given parameters.
    epochs : int, optional
        Passes over the rows of a release. They cost no privacy.
    batch_size : int, optional
    learning_rate : float, optional
        The largest rate of the schedule.
    weight_decay : float, optional
    mixup : float, optional
        Parameter of the beta distribution by which pairs of rows are mixed, or 0 for no mixing.
    warm_start : bool, optional
        Whether a later stage starts from the network of the stage before.
    seed : int, optional
        Seed of batches, mixing and dropout. It protects nothing.

    Notes
    -----
    Negative weights can drive a network's loss below any bound. The loss of a batch is kept above 0, as that on true
    labels is, by descent on its absolute value.

    Examples
    --------
    >>> TorchClassifier(None, epochs=3).get_params()["epochs"]
    3
    """

    def __init__(
        self,
        module: Any,
        *,
        epochs: int = 10,
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        mixup: float = 0.0,
        warm_start: bool = False,
        seed: int = 0,
    ) -> None:
        self.module = module
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.mixup = mixup
        self.warm_start = warm_start
        self.seed = seed

    def check_input(self, X: ArrayLike, k: int) -> None:
        """Refuse features that the module cannot score, before anything is drawn.

        Raises
        ------
        InvalidInput
            Features are not finite numbers, or scores have another shape than ``(n, K)``.
        """
        features = _tensor(X)
        if not bool(_torch().isfinite(features).all()):
            raise InvalidInput("X contains NaN or infinity, expected finite numbers")
        found = tuple(_scores(deepcopy(self.module), features).shape)
        if found != (features.shape[0], k):
            raise InvalidInput(f"the module has scores of shape {found}, expected {(features.shape[0], k)}")

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TorchClassifier:
        """Train on class indices ``0 ... K-1`` by cross entropy with weights of any sign."""
        codes = np.asarray(y, dtype=np.intp)
        k = _scores(deepcopy(self.module), _tensor(np.asarray(X)[:1])).shape[1]
        sizes = np.ones(codes.size) if sample_weight is None else np.asarray(sample_weight)
        return self.fit_weights(X, np.eye(k)[codes] * sizes[:, np.newaxis])

    def fit_weights(self, X: ArrayLike, weights: Floats) -> TorchClassifier:
        """Train on a weight, of any sign, for each label of each row, shape ``(n, K)``."""
        log_softmax, flooded = _torch().log_softmax, bool((np.asarray(weights) < 0).any())
        return self._train(X, weights, lambda scores, each: -(each * log_softmax(scores, 1)).sum(1), flooded=flooded)

    def fit_likelihood(self, X: ArrayLike, table: Floats) -> TorchClassifier:
        """Train by the likelihood of a release, shape ``(n, K)``."""
        torch, logs = _torch(), np.log(np.maximum(table, np.finfo(np.float32).tiny))
        return self._train(X, logs, lambda scores, each: -torch.logsumexp(torch.log_softmax(scores, 1) + each, 1))

    def fit_bits(self, X: ArrayLike, bits: NDArray[Any]) -> TorchClassifier:
        """Train by binary cross entropy on noisy bits, shape ``(n, K)``."""
        entropy = _torch().nn.functional.binary_cross_entropy_with_logits
        return self._train(X, bits, lambda scores, each: entropy(scores, each, reduction="none").sum(1))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probabilities of the classes, shape ``(n, K)``."""
        check_is_fitted(self)
        return np.asarray(_torch().softmax(_scores(self.network_, _tensor(X)).double(), 1))

    def predict_bits(self, X: ArrayLike) -> Floats:
        """Return the probabilities that the noisy bits are 1, by a network of :meth:`fit_bits`, shape ``(n, K)``."""
        check_is_fitted(self)
        return np.asarray(_torch().sigmoid(_scores(self.network_, _tensor(X)).double()))

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return the likeliest class indices, shape ``(n,)``."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def _train(self, X: ArrayLike, targets: ArrayLike, loss: Loss, *, flooded: bool = False) -> TorchClassifier:
        torch = _torch()
        features, goals = _tensor(X), _tensor(targets)
        if not (self.warm_start and hasattr(self, "network_")):
            self.network_ = deepcopy(self.module)
        self.classes_ = np.arange(goals.shape[1])
        mixing = np.random.default_rng(self.seed)
        optimizer = torch.optim.Adam(self.network_.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        steps = self.epochs * -(-len(features) // self.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.learning_rate, total_steps=steps)
        self.network_.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            for _ in range(self.epochs):
                for rows in torch.randperm(len(features)).split(self.batch_size):
                    share = float(mixing.beta(self.mixup, self.mixup)) if self.mixup else 1.0
                    others = rows[torch.randperm(len(rows))] if self.mixup else rows
                    scores = self.network_(share * features[rows] + (1 - share) * features[others])
                    each = share * loss(scores, goals[rows]) + (1 - share) * loss(scores, goals[others])
                    total = each.mean().abs() if flooded else each.mean()
                    optimizer.zero_grad()
                    total.backward()
                    optimizer.step()
                    schedule.step()
        self.network_.eval()
        return self


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra("networks need torch: pip install 'optrand[torch]'") from error


def _tensor(array: ArrayLike) -> Any:
    return _torch().from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def _scores(module: Any, features: Any) -> Any:
    torch = _torch()
    module.eval()
    # Batches of 4,096 rows bound the memory of the hidden layers.
    with torch.no_grad():
        return torch.cat([module(part) for part in features.split(4096)])
