"""What a plan works with while a regressor is fitted: features, the holder of labels, and what was released so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from optrand.base.validation import Floats
from optrand.certificates.certificate import Certificate, certify
from optrand.learning.domain import Domain
from optrand.learning.holder import PrivateLabels
from optrand.learning.release import LabelRelease, PriorRelease, Rows
from optrand.model.problem import Problem, regression
from optrand.studies.many import solve_many

__all__ = ["Asked", "Noisy", "RegressionTraining"]


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows that one randomizer is to be drawn for.

    Attributes
    ----------
    rows : (m,) array of int
    prior : (K,) array
        Of the increasing labels.
    epsilon : float
        In nats, for the labels.
    bias_penalty : float
        ``math.inf`` for an unbiased randomizer.
    """

    rows: Rows
    prior: Floats
    epsilon: float
    bias_penalty: float

    def problem(self, labels: Floats) -> Problem:
        """Problem of the best randomizer for them."""
        return regression(labels, self.prior, self.epsilon, bias_penalty=self.bias_penalty)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy labels, and what a model has to average out of each: twice the value of its randomizer."""

    release: LabelRelease
    noise: float


@dataclass(eq=False)
class RegressionTraining:
    """One fit.

    Attributes
    ----------
    X : (n, d) array or frame
        Public features.
    labels : PrivateLabels
        Of a domain of numbers.
    estimator : regressor
        Cloned for every model.
    epsilon : float
        What each row may pay.
    seed : int
        Of choices that are public.
    """

    X: Any
    labels: PrivateLabels
    estimator: Any
    epsilon: float
    seed: int
    releases: list[LabelRelease] = field(default_factory=list)
    priors: list[PriorRelease] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin the public random choices."""
        self.generator = np.random.default_rng(self.seed)
        self.increasing = Domain(tuple(sorted(self.labels.domain.labels)))
        self.numbers: Floats = np.array(self.increasing.labels, dtype=np.float64)

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.numbers.size

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def features(self, rows: Rows) -> Any:
        """Features of some rows."""
        return _safe_indexing(self.X, rows)

    def prior(self, rows: Rows, epsilon: float, *, bins: NDArray[np.intp] | None = None) -> PriorRelease:
        """Private histogram of some rows over the increasing labels or bins of them, kept in :attr:`priors`."""
        self.priors.append(self.labels.prior(rows, self.increasing, epsilon, bins=bins))
        return self.priors[-1]

    def release(self, asked: Sequence[Asked]) -> list[Noisy]:
        """Draws from the best randomizer of each, kept in :attr:`releases`; all are solved before any is drawn."""
        mechanisms = solve_many([one.problem(self.numbers) for one in asked])
        found = []
        for one, mechanism in zip(asked, mechanisms, strict=True):
            release = self.labels.release(one.rows, mechanism)
            self.releases.append(release)
            found.append(Noisy(release, 2 * mechanism.value))
        return found

    def learn(self, stages: Sequence[Sequence[Noisy]], *, spread: float = 0.0, estimator: Any = None) -> Any:
        """Model of the noisy labels of some stages.

        Parameters
        ----------
        stages : sequence of sequences of Noisy
            Rows of a stage weigh the same: the inverse of their mean noise plus `spread`. As a stage is a random part
            of all rows, its weight moves no model away from what it would learn of all.
        spread : float
            Variance of the labels.
        estimator : regressor, optional
            By default :attr:`estimator`.
        """
        noisy = [one for stage in stages for one in stage]
        rows = np.concatenate([one.release.rows for one in noisy])
        values = np.concatenate([one.release.values.astype(np.float64) for one in noisy])
        model = clone(self.estimator if estimator is None else estimator)
        if len(stages) == 1:
            return model.fit(self.features(rows), values)
        sizes = [[len(one.release) for one in stage] for stage in stages]
        noise = [
            np.average([one.noise for one in stage], weights=size) for stage, size in zip(stages, sizes, strict=True)
        ]
        weights = np.repeat(1 / (np.array(noise) + spread), [sum(size) for size in sizes])
        return model.fit(self.features(rows), values, sample_weight=weights / weights.mean())

    def variance(self, prior: Floats) -> float:
        """Variance of the increasing labels under a prior."""
        return float(prior @ (self.numbers - prior @ self.numbers) ** 2)

    def predict(self, model: Any, rows: Rows) -> Floats:
        """Predictions for some rows, clipped to the range of labels."""
        return clipped(model.predict(self.features(rows)), self.numbers)

    @property
    def certificates(self) -> list[Certificate]:
        """Certificate of every randomizer that labels were released by."""
        return [certify(one.randomizer) for one in self.releases]


def clipped(predictions: Any, labels: Floats) -> Floats:
    """Predictions within the range of labels.

    Examples
    --------
    >>> clipped([-1.0, 3.5, 9.0], np.array([0.0, 2.0, 5.0])).tolist()
    [0.0, 3.5, 5.0]
    """
    found: Floats = np.clip(np.asarray(predictions, dtype=np.float64), labels[0], labels[-1])
    return found
