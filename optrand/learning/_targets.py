"""Targets of a classifier on releases: their likelihood, or the losses of the papers.

A target trains through `sample_weight`: each row is repeated for each label that it may have. An estimator with the
methods ``fit_likelihood(X, table)``, ``fit_weights(X, weights)`` or ``fit_bits(X, bits)``, such as
:class:`~optrand.learning.torch.TorchClassifier`, receives the likelihood, the weights or the bits themselves. If
clusters have priors it receives the weights, for the likelihood too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from optrand.base._validation import Floats, check_integer, check_real
from optrand.baselines._vector import UnaryBits
from optrand.errors import InvalidInput
from optrand.estimate._histograms import project_to_simplex
from optrand.learning._likelihoods import LabelRelease, label_inputs

Releases = Sequence[LabelRelease]


class Start(NamedTuple):
    """Knowledge of the labels before a model of the releases is trained."""

    beliefs: Floats | None = None
    model: Any = None
    informed: bool = False


START = Start()


class Target:
    """Loss on releases, the base of all targets."""

    vectors: ClassVar[bool] = True  # learns from noisy vectors, besides noisy labels
    weighted: ClassVar[bool] = True  # the estimator must take `sample_weight`

    def descends(self, estimator: Any, *, informed: bool) -> bool:  # noqa: ARG002
        """Return whether an estimator receives the likelihood itself, in place of weights."""
        return False

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:
        """Train a clone of an estimator on the rows of all releases, in their order."""
        raise NotImplementedError


@dataclass(frozen=True)
class Likelihood(Target):
    r"""Maximum likelihood through the noise, by expectation maximisation.

    .. math:: w_{iy} = \frac{\Pr[z_i \mid y] \, p(y \mid x_i)}{\sum_{y'} \Pr[z_i \mid y'] \, p(y' \mid x_i)}

    Each round fits the estimator with the weights :math:`w`, and takes its probabilities for :math:`p`. Round 1 starts
    from the previous stage's predictions, from paid-for cluster priors, or from the uniform distribution.
    Maximum-likelihood label shares are not used: at small epsilon some are 0, and EM cannot raise a zero.

    A network descends on the likelihood itself, unless there are cluster priors: with good clusters most of the
    information is in them, and a network that does not start from them wastes the budget spent on them.

    Parameters
    ----------
    rounds : int
        Fits, at least 1.
    smallest : float
        Weights below this share of the largest weight of their row are left out, from 0 to 0.5, to repeat fewer rows.
    """

    rounds: int = 5
    smallest: float = 1e-3

    def __post_init__(self) -> None:
        check_integer(self.rounds, "rounds", 1)
        if not 0 <= check_real(self.smallest, "smallest") <= 0.5:
            raise InvalidInput(f"smallest is {self.smallest:g}, expected a weight from 0 to 0.5")

    def descends(self, estimator: Any, *, informed: bool) -> bool:
        """Return whether an estimator has the method `fit_likelihood`, and there are no cluster priors."""
        return hasattr(estimator, "fit_likelihood") and not informed

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:
        table = likelihood_of(releases)
        if self.descends(estimator, informed=start.informed):
            return continue_from(estimator, start.model).fit_likelihood(X, table)
        belief = np.ones_like(table) if start.beliefs is None else start.beliefs
        model = start.model
        for step in range(self.rounds):
            if step:
                belief = probabilities(model, X, table.shape[1])
            # Every round begins from the earlier stage's model: a start from the model of the round before would keep
            # the effect of outdated weights.
            model = fit_weighted(estimator, X, posterior(table, belief), before=start.model, smallest=self.smallest)
        return model


@dataclass(frozen=True)
class NoisyLabels(Target):
    """Noisy labels as if they were true, so that the model learns the distribution of the *noisy* label."""

    vectors: ClassVar[bool] = False
    weighted: ClassVar[bool] = False

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:
        values = np.concatenate([_class_numbers(release) for release in releases])
        return fit_classes(continue_from(estimator, start.model), X, values)


@dataclass(frozen=True)
class Debiased(Target):
    """Unbiased losses. The estimator must accept their negative weights."""

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:
        weights = np.concatenate([release.loss_weights for release in releases])
        return fit_weighted(estimator, X, weights, before=start.model)


@dataclass(frozen=True)
class SoftLabels(Target):
    """Posterior of the label under the uniform prior, as weights of a single round."""

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:
        table = likelihood_of(releases)
        return fit_weighted(estimator, X, posterior(table, np.ones_like(table)), before=start.model)


@dataclass(frozen=True)
class BinaryBits(Target):
    """Binary cross entropy on each random bit, by a model of its own. The largest estimate is the predicted class."""

    weighted: ClassVar[bool] = False

    def fit(self, estimator: Any, X: Any, releases: Releases, start: Start = START) -> Any:  # noqa: ARG002
        """Train a clone for each bit, or one network for all."""
        randomizer = releases[0].randomizer
        if not isinstance(randomizer, UnaryBits):
            raise InvalidInput("binary targets need bits: use plan=Bits()")
        bits = np.concatenate([release.values for release in releases])
        if hasattr(estimator, "fit_bits"):
            return BitModel(clone(estimator).fit_bits(X, bits).predict_bits, randomizer)
        models = [fit_classes(clone(estimator), X, column) for column in bits.T]
        return BitModel(partial(_predict_bits, models), randomizer)


@dataclass(frozen=True)
class BitModel:
    """Model of labels by expected noisy bits, shape ``(n, K)``: debiased, and projected to the nearest distribution."""

    predict_bits: Callable[[Any], Floats]
    randomizer: UnaryBits

    @property
    def classes_(self) -> NDArray[np.intp]:
        return np.arange(self.randomizer.k)

    def predict_proba(self, X: Any) -> Floats:
        return np.array([project_to_simplex(self.randomizer.estimate(row)) for row in self.predict_bits(X)])


def _predict_bits(models: Sequence[Any], X: Any) -> Floats:
    return np.column_stack([probabilities(model, X, 2)[:, 1] for model in models])


NAMES: dict[str, Target] = {
    "likelihood": Likelihood(),
    "labels": NoisyLabels(),
    "debiased": Debiased(),
    "soft": SoftLabels(),
    "bits": BinaryBits(),
}


def target_of(given: str | Target) -> Target:
    """Return the target with a name, or the given target."""
    found = NAMES.get(given) if isinstance(given, str) else given
    if not isinstance(found, Target):
        # A column of labels, given by mistake, is not repeated.
        wrong = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
        raise InvalidInput(f"target is {wrong}, expected one of {', '.join(NAMES)}, or a Target such as Likelihood()")
    return found


def check_estimator_fits(estimator: Any, target: Target, *, informed: bool = False) -> None:
    """Refuse an estimator that cannot be trained by a target, with cluster priors if `informed`."""
    if not target.descends(estimator, informed=informed):
        needs = f"target={type(target).__name__} needs" if target.weighted else None
        way = "this classifier, or target='labels'"
        check_estimator(estimator, "predict_proba", "a classifier with probabilities", needs, way)


def check_estimator(estimator: Any, predict: str, kind: str, weighted: str | None, way: str) -> None:
    """Refuse an estimator without `fit` or `predict`, or without a needed `sample_weight`."""
    name = type(estimator).__name__
    missing = [each for each in ("fit", predict) if not hasattr(estimator, each)]
    if missing:
        raise InvalidInput(f"the estimator {name} has no {' and no '.join(missing)}, expected {kind}")
    if weighted and not has_fit_parameter(estimator, "sample_weight"):
        raise InvalidInput(
            f"the estimator {name} takes no sample_weight, which {weighted}: use another estimator, put the steps of "
            f"a pipeline before {way}"
        )


def likelihood_of(releases: Releases) -> Floats:
    return np.concatenate([release.likelihood for release in releases])


def posterior(table: Floats, belief: Floats) -> Floats:
    """Compute the posterior of each label, shape ``(n, K)``."""
    joint = table * belief
    # A belief of exactly 0 at every possible label is wrong: use the likelihood alone.
    joint = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, table)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ConstantModel:
    """Model of rows that all have one class, which many estimators refuse to learn."""

    classes_: NDArray[np.int64]

    def predict_proba(self, X: Any) -> Floats:
        return np.ones((_num_samples(X), 1))


def fit_classes(model: Any, X: Any, labels: NDArray[Any], **options: Any) -> Any:
    """Train a model on class indices, or return a constant one if there is a single class."""
    classes = np.unique(labels)
    return ConstantModel(classes.astype(np.int64)) if classes.size == 1 else model.fit(X, labels, **options)


def continue_from(estimator: Any, before: Any) -> Any:
    """Return a clone to be trained, or a copy of the earlier model if the estimator has `warm_start`."""
    # Ensembles would keep their trees and add none, since `n_estimators` or `max_iter` counts all of them.
    trees = hasattr(estimator, "n_estimators") or hasattr(estimator, "max_bins")
    warm = getattr(estimator, "warm_start", False) and not trees
    return deepcopy(before) if warm and not (before is None or isinstance(before, ConstantModel)) else clone(estimator)


def fit_weighted(estimator: Any, X: Any, weights: Floats, *, before: Any = None, smallest: float = 0.0) -> Any:
    """Train a clone on a copy of each row for every label whose weight is above a share of the row's largest."""
    if hasattr(estimator, "fit_weights"):
        return continue_from(estimator, before).fit_weights(X, weights)
    sizes = np.abs(weights)
    rows, labels = np.nonzero(sizes > smallest * sizes.max(axis=1, keepdims=True))
    # A model of other classes cannot be continued.
    same = before is not None and np.array_equal(np.unique(labels), before.classes_)
    model = continue_from(estimator, before if same else None)
    return fit_classes(model, _safe_indexing(X, rows), labels, sample_weight=weights[rows, labels])


def probabilities(model: Any, X: Any, k: int) -> Floats:
    """Predict probabilities of the labels ``0 ... k-1``, shape ``(n, k)``, zero for labels that were not trained on."""
    found = np.asarray(model.predict_proba(X), dtype=np.float64)
    table = np.zeros((found.shape[0], k))
    table[:, np.asarray(model.classes_, dtype=np.intp)] = found
    return table


def _class_numbers(release: LabelRelease) -> NDArray[np.intp]:
    """Return noisy labels as class indices, for outputs of a mechanism that of the nearest label."""
    values = np.asarray(release.values)
    if values.dtype.kind in "iu":
        return values.astype(np.intp)
    inputs = label_inputs(release.randomizer, release.domain)
    return np.asarray(np.abs(values[:, np.newaxis] - inputs).argmin(axis=1))
