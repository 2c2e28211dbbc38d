"""What a plan works with while a classifier is fitted: features, the holder of labels, and what was released so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from optrand.base.validation import Floats
from optrand.baselines.groups import Groups
from optrand.baselines.vector import UnaryBits
from optrand.certificates.certificate import Certificate
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.learning.holder import PrivateLabels
from optrand.learning.likelihood import Start, Target, probabilities, simplex_rows
from optrand.learning.release import LabelRelease, PriorRelease, Rows

__all__ = ["BitNeighbours", "RowCertificates", "Training"]


class RowCertificates(Sequence[Certificate]):
    """Certificates of a release by RRWithPrior, a row each: that its randomizer is private, and best for its prior.

    They are computed when they are asked for: some milliseconds each.
    """

    def __init__(self, batch: RRWithPriorBatch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, row: Any) -> Any:
        """Certificate of one row."""
        return self.batch[range(len(self))[row]].certificate

    def __iter__(self) -> Iterator[Certificate]:
        """All of them, one at a time."""
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<certificates of {len(self)} rows, epsilon {self.batch.epsilon:g}>"


@dataclass(eq=False)
class Training:
    """One fit.

    Attributes
    ----------
    X : (n, d) array or frame
        Public features.
    labels : PrivateLabels
    estimator : classifier
        Cloned for every model.
    target : Target
    epsilon : float
        What each row may pay.
    seed : int
        Of choices that are public.
    informed : bool
        Whether the first model begins with priors of clusters.
    """

    X: Any
    labels: PrivateLabels
    estimator: Any
    target: Target
    epsilon: float
    seed: int
    informed: bool = False
    releases: list[LabelRelease] = field(default_factory=list)
    priors: list[PriorRelease] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin the public random choices."""
        self.generator = np.random.default_rng(self.seed)

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels.domain)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def features(self, rows: Rows) -> Any:
        """Features of some rows."""
        return _safe_indexing(self.X, rows)

    def release(self, rows: Rows, randomizer: Any, *, groups: Groups | None = None) -> LabelRelease:
        """Release of the labels of some rows, kept in :attr:`releases`."""
        self.releases.append(self.labels.release(rows, randomizer, groups=groups))
        return self.releases[-1]

    def prior(self, rows: Rows, epsilon: float) -> PriorRelease:
        """Private histogram of some rows, kept in :attr:`priors`."""
        self.priors.append(self.labels.prior(rows, self.labels.domain, epsilon))
        return self.priors[-1]

    def beliefs(self, model: Any, rows: Rows) -> Floats:
        """Probabilities of labels by a model, shape ``(m, K)``."""
        return probabilities(model, self.features(rows), self.k)

    def learn(self, releases: list[LabelRelease], *, before: Any = None, beliefs: Floats | None = None) -> Any:
        """Model of some releases.

        Parameters
        ----------
        releases : list of LabelRelease
        before : classifier, optional
            Model of an earlier stage, from whose beliefs, and from which itself where estimators have `warm_start`,
            this one begins.
        beliefs : (n, K) array, optional
            Priors of all rows of the releases, where there is no earlier model.
        """
        rows = np.concatenate([release.rows for release in releases])
        start = Start(beliefs if before is None else self.beliefs(before, rows), before, self.informed)
        return self.target.fit(self.estimator, self.features(rows), releases, start)

    def neighbours(self, rows: Rows, randomizer: UnaryBits, count: int) -> BitNeighbours:
        """Nearest-neighbour model of the bits of some rows; features that cannot serve are refused before the draw."""
        index = NearestNeighbors(n_neighbors=count).fit(self.features(rows))
        return BitNeighbours(index, self.release(rows, randomizer).values.astype(np.float64), randomizer)

    @property
    def certificates(self) -> list[RowCertificates]:
        """Certificates of every release by RRWithPrior."""
        batches = [one.randomizer for one in self.releases if isinstance(one.randomizer, RRWithPriorBatch)]
        return [RowCertificates(batch) for batch in batches]


@dataclass(frozen=True, eq=False)
class BitNeighbours:
    """Mean bits of the nearest rows; `classes_` are the numbers of all labels."""

    index: Any
    bits: Floats
    randomizer: UnaryBits

    @property
    def classes_(self) -> Any:
        """Numbers of labels."""
        return np.arange(self.randomizer.k)

    def predict_proba(self, X: Any) -> Floats:
        """Debiased shares of labels among the neighbours, projected to the nearest distribution."""
        near = self.index.kneighbors(X, return_distance=False)
        return simplex_rows(self.randomizer, self.bits[near].mean(axis=1))
