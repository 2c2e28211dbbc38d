r"""How a classifier learns from a release: by its likelihood, or by the losses of the papers.

============================  ================================================================================
:class:`Likelihood`           :math:`-\log \sum_y \Pr[z \mid y] \, p(y \mid x)`, by expectation maximisation
:class:`NoisyLabels`          noisy labels as they are ([G21], Algorithm 3)
:class:`Debiased`             losses at all labels, with weights that undo the noise on average ([G21], [E22])
:class:`SoftLabels`           posteriors under the uniform prior ([Z25], eq. 29: ALIBI without a model)
:class:`BinaryBits`           a model for each bit, the largest estimate wins ([Z25], Section 4)
============================  ================================================================================

A target trains through `sample_weight`: each row is repeated for each label that it may have. An estimator with the
methods ``fit_likelihood(X, table)``, ``fit_weights(X, weights)`` or ``fit_bits(X, bits)``, such as
:class:`~optrand.learning.torch.TorchClassifier`, is given the likelihood, the weights or the bits themselves; where
clusters have priors the weights, for the likelihood too.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from optrand.base.validation import Floats, integer, real
from optrand.baselines.vector import UnaryBits
from optrand.errors import InvalidInput
from optrand.estimate.histograms import project_to_simplex
from optrand.learning.debiased import debiased_weights
from optrand.learning.release import LabelRelease

__all__ = [
    "BinaryBits",
    "Debiased",
    "Likelihood",
    "NoisyLabels",
    "SoftLabels",
    "Start",
    "Target",
    "probabilities",
    "target_of",
]


@dataclass(frozen=True, eq=False)
class Start:
    """What is known of some rows before a model of their releases is trained.

    Attributes
    ----------
    beliefs : (n, K) array or None
        Probabilities of labels, by an earlier model or priors that were paid for.
    model : object or None
        The earlier model.
    informed : bool
        Whether beliefs, or those of an earlier stage, are priors that the likelihood of labels knows nothing of.
    """

    beliefs: Floats | None = None
    model: Any = None
    informed: bool = False


class Target(Protocol):
    """A loss on releases."""

    vectors: ClassVar[bool]
    """Whether it can learn from noisy vectors, rather than noisy labels alone."""

    weighted: ClassVar[bool]
    """Whether the estimator must take `sample_weight`."""

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:
        """Train a clone of an estimator.

        Parameters
        ----------
        estimator : classifier
        X : (n, d) array or frame
            Rows of all releases, in their order.
        releases : list of LabelRelease
        start : Start
            What is known before.
        """
        ...


@dataclass(frozen=True)
class Likelihood:
    r"""Maximum likelihood through the noise, by expectation maximisation.

    .. math:: w_{iy} = \frac{\Pr[z_i \mid y] \, p(y \mid x_i)}{\sum_{y'} \Pr[z_i \mid y'] \, p(y' \mid x_i)}

    Each round fits the estimator with the weights :math:`w`, and takes its probabilities for :math:`p`. The first has
    what an earlier stage believes, or priors that were paid for, or the uniform distribution: the likeliest shares of
    labels, which at a small epsilon are zero for some, would leave these labels out for good.

    A network descends on the likelihood itself, unless there are priors: noisy labels in good clusters say little that
    the priors of the clusters do not, so that a network that begins elsewhere never learns what these have cost.

    Parameters
    ----------
    rounds : int
        Fits, at least 1.
    smallest : float
        Weights below this share of the largest weight of their row are left out, from 0 to 0.5: fewer repeated rows.
    """

    vectors: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    rounds: int = 5
    smallest: float = 1e-3

    def __post_init__(self) -> None:
        """Check both."""
        integer(self.rounds, "rounds", 1)
        if not 0 <= real(self.smallest, "smallest") <= 0.5:
            raise InvalidInput(f"smallest is {self.smallest:g}, expected a weight from 0 to 0.5")

    def descends(self, estimator: Any, *, informed: bool) -> bool:
        """Whether an estimator is given the likelihood itself, in place of weights; `informed` as in :class:`Start`."""
        return hasattr(estimator, "fit_likelihood") and not informed

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:
        """Train a clone, as :meth:`Target.fit`."""
        table = np.concatenate([release.likelihood for release in releases])
        if self.descends(estimator, informed=start.informed):
            return begun(estimator, start.model).fit_likelihood(X, table)
        belief = np.ones_like(table) if start.beliefs is None else start.beliefs
        model = start.model
        for step in range(self.rounds):
            if step:
                belief = probabilities(model, X, table.shape[1])
            # Every round begins from the earlier stage's model: going on with the model of the round before would keep
            # what that model has learnt from weights that are out of date.
            weights = posterior(table, belief)
            model = fit_weighted(estimator, X, weights, before=start.model, smallest=self.smallest)
        return model


@dataclass(frozen=True)
class NoisyLabels:
    """Noisy labels, as if they were true: the model learns the distribution of the *noisy* label."""

    vectors: ClassVar[bool] = False
    weighted: ClassVar[bool] = False

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:
        """Train a clone, as :meth:`Target.fit`."""
        values = np.concatenate([release.values for release in releases])
        return fit_classes(begun(estimator, start.model), X, values)


@dataclass(frozen=True)
class Debiased:
    """Unbiased losses, whose weights may be negative: the estimator has to take these."""

    vectors: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:
        """Train a clone, as :meth:`Target.fit`."""
        weights = np.concatenate([debiased_weights(release) for release in releases])
        return fit_weighted(estimator, X, weights, before=start.model)


@dataclass(frozen=True)
class SoftLabels:
    """Posterior of the label under the uniform prior, as weights: one round, and no model in it."""

    vectors: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:
        """Train a clone, as :meth:`Target.fit`."""
        table = np.concatenate([release.likelihood for release in releases])
        return fit_weighted(estimator, X, posterior(table, np.ones_like(table)), before=start.model)


@dataclass(frozen=True)
class BinaryBits:
    """Binary cross entropy on each random bit, by a model of its own, and the largest estimate wins."""

    vectors: ClassVar[bool] = True
    weighted: ClassVar[bool] = False

    def fit(self, estimator: Any, X: Any, releases: list[LabelRelease], start: Start) -> Any:  # noqa: ARG002
        """Train a clone for each bit."""
        randomizer = releases[0].randomizer
        if not isinstance(randomizer, UnaryBits):
            raise InvalidInput("binary targets need bits: take plan=Bits()")
        bits = np.concatenate([release.values for release in releases])
        if hasattr(estimator, "fit_bits"):
            return BitModel(clone(estimator).fit_bits(X, bits), randomizer)
        models = tuple(fit_classes(clone(estimator), X, bits[:, j]) for j in range(bits.shape[1]))
        return BitModel(BitModels(models), randomizer)


@dataclass(frozen=True)
class BitModels:
    """A classifier of each bit."""

    models: tuple[Any, ...]

    def predict_bits(self, X: Any) -> Floats:
        """Probabilities that the noisy bits are 1, shape ``(n, K)``."""
        return np.column_stack([probabilities(model, X, 2)[:, 1] for model in self.models])


@dataclass(frozen=True)
class BitModel:
    """Labels by a model of noisy bits; `classes_` are the numbers of all labels."""

    model: Any
    randomizer: UnaryBits

    @property
    def classes_(self) -> Any:
        """Numbers of labels."""
        return np.arange(self.randomizer.k)

    def predict_proba(self, X: Any) -> Floats:
        """Debiased estimates of all labels, projected to the nearest distribution."""
        return simplex_rows(self.randomizer, self.model.predict_bits(X))


def simplex_rows(randomizer: UnaryBits, ones: Floats) -> Floats:
    """Distributions of labels nearest to what debiased shares of ones say, a row each."""
    low, high = randomizer.estimates
    return np.array([project_to_simplex(low + (high - low) * row) for row in ones])


NAMES: dict[str, Target] = {
    "likelihood": Likelihood(),
    "labels": NoisyLabels(),
    "debiased": Debiased(),
    "soft": SoftLabels(),
    "bits": BinaryBits(),
}


def target_of(given: str | Target) -> Target:
    """The target of a name, or itself.

    Examples
    --------
    >>> target_of("likelihood")
    Likelihood(rounds=5, smallest=0.001)
    """
    if isinstance(given, str):
        if given not in NAMES:
            raise InvalidInput(f"target is {given!r}, expected one of {', '.join(NAMES)}, or a record of targets")
        return NAMES[given]
    if not hasattr(given, "fit") or not hasattr(given, "vectors"):
        raise InvalidInput(
            f"target is of type {type(given).__name__}, expected a name or a record such as Likelihood()"
        )
    return given


def check_estimator_fits(estimator: Any, target: Target, *, informed: bool = False) -> None:
    """Refuse an estimator that cannot be trained by a target, with priors if `informed`.

    Raises
    ------
    InvalidInput
        It lacks a method, or does not take weights.
    """
    if isinstance(target, Likelihood) and target.descends(estimator, informed=informed):
        return
    missing = [name for name in ("fit", "predict_proba") if not hasattr(estimator, name)]
    if missing:
        raise InvalidInput(
            f"the estimator {type(estimator).__name__} has no {' and no '.join(missing)}, expected a classifier with "
            "probabilities"
        )
    if target.weighted and not has_fit_parameter(estimator, "sample_weight"):
        raise InvalidInput(
            f"the estimator {type(estimator).__name__} takes no sample_weight, which target={type(target).__name__} "
            "needs: take another estimator, put the steps of a pipeline before this classifier, or target='labels'"
        )


def posterior(table: Floats, belief: Floats) -> Floats:
    """Posterior of each label, shape ``(n, K)``; the normalised likelihood where belief excludes all that is likely.

    Examples
    --------
    >>> posterior(np.array([[1.0, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0]]
    """
    joint = table * belief
    totals = joint.sum(axis=1, keepdims=True)
    joint = np.where(totals > 0, joint, table)
    weights: Floats = joint / joint.sum(axis=1, keepdims=True)
    return weights


@dataclass(frozen=True, eq=False)
class ConstantModel:
    """Model of rows that all have one class, which many estimators refuse to learn.

    Attributes
    ----------
    classes_ : (1,) array of int
        That class.
    """

    classes_: NDArray[np.int64]

    def predict_proba(self, X: Any) -> Floats:
        """Return probability 1 of the class for every row."""
        return np.ones((_num_samples(X), 1))


def fit_classes(model: Any, X: Any, labels: NDArray[Any], **options: Any) -> Any:
    """Train a model on class numbers, or return a constant one if there is a single class."""
    classes = np.unique(labels)
    return ConstantModel(classes.astype(np.int64)) if classes.size == 1 else model.fit(X, labels, **options)


def begun(estimator: Any, before: Any) -> Any:
    """Return a clone to be trained, or a copy of the earlier model if the estimator goes on from one (`warm_start`).

    Ensembles of trees do not: with `warm_start` they keep their trees and add those that `n_estimators` or `max_iter`
    ask for beyond them, which are none.
    """
    trees = hasattr(estimator, "n_estimators") or hasattr(estimator, "max_bins")
    warm = getattr(estimator, "warm_start", False) and not trees
    return deepcopy(before) if warm and not (before is None or isinstance(before, ConstantModel)) else clone(estimator)


def fit_weighted(estimator: Any, X: Any, weights: Floats, *, before: Any = None, smallest: float = 0.0) -> Any:
    """Train a clone on each row once for every label whose weight is above a share of the largest of its row."""
    if hasattr(estimator, "fit_weights"):
        return begun(estimator, before).fit_weights(X, weights)
    sizes = np.abs(weights)
    rows, labels = np.nonzero(sizes > smallest * sizes.max(axis=1, keepdims=True))
    # A model of other classes cannot be gone on with.
    same = before is not None and np.array_equal(np.unique(labels), before.classes_)
    model = begun(estimator, before if same else None)
    return fit_classes(model, _safe_indexing(X, rows), labels, sample_weight=weights[rows, labels])


def probabilities(model: Any, X: Any, k: int) -> Floats:
    """Probabilities of the labels ``0 ... k-1``, shape ``(n, k)``, zero for those that the model never met."""
    found = np.asarray(model.predict_proba(X), dtype=np.float64)
    table = np.zeros((found.shape[0], k))
    table[:, np.asarray(model.classes_, dtype=np.intp)] = found
    return table
