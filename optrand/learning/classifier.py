"""A scikit-learn classifier that is trained on private labels."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _clone_parametrized, clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from optrand.accounting.spent import Spent
from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidInput, OverBudget
from optrand.learning.domain import Domain
from optrand.learning.holder import PrivateLabels
from optrand.learning.likelihood import Debiased, Likelihood, Target, check_estimator_fits, probabilities, target_of
from optrand.learning.plans import Plan, Stages
from optrand.learning.training import Training

__all__ = ["LabelDPClassifier"]

REHEARSED = 1000
"""Rows of public features on which an estimator is tried before anything is drawn."""


class OneFit:
    """Permission for one fit, which all clones of an estimator share."""

    def __init__(self) -> None:
        self._taken = False
        self._lock = threading.Lock()

    def take(self) -> None:
        """Use it up."""
        with self._lock:
            if self._taken:
                raise OverBudget(
                    "this estimator, or a clone of it, was fitted with one_fit=True: another fit on plain labels would "
                    "spend epsilon again, unseen; pass PrivateLabels, whose account is exact"
                )
            self._taken = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Parts of a pickle, once it is used."""
        if not self._taken:
            raise InvalidInput(
                "an estimator with one_fit=True cannot be copied to another process before its fit: pass "
                "PrivateLabels, or fit with n_jobs=1"
            )
        return _taken, ()


def _taken() -> OneFit:
    used = OneFit()
    used.take()
    return used


class LabelDPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose training spends at most `epsilon` of label privacy on any row.

    Parameters
    ----------
    estimator : classifier
        With `fit`, `predict_proba` and, but for ``target="labels"`` and ``"bits"``, `sample_weight`; or with
        ``fit_likelihood(X, table)``, and ``check_input(X, k)`` to refuse features before anything is drawn. It is
        cloned. None for :class:`~optrand.learning.NearestNeighbour`.
    epsilon : float
        What one fit charges each row, in nats.
    classes : sequence
        Labels, declared: those of the domain of the labels, in its order.
    plan : Plan, optional
        Which rows are asked by which randomizer; by default ``Stages(1)``.
    target : str or Target, optional
        "likelihood", "labels", "debiased", "soft" or "bits", or a record of :mod:`optrand.learning.likelihood`.
    one_fit : bool, optional
        Allow plain labels, once: neither this estimator nor a clone can be fitted a second time.
    random_state : int, optional
        Of the split into stages and the clusters. It protects nothing.

    Attributes
    ----------
    classes_ : (K,) array
    estimator_ : object
        The last model, on the numbers of classes.
    releases_ : list of LabelRelease
        Everything that was drawn for labels.
    priors_ : list of PriorRelease
        Private histograms.
    certificates_ : list of sequences
        For each release by RRWithPrior a certificate a row, computed when asked for.
    spent_ : Spent
        The most that a row has paid, exactly, all releases of its holder counted.
    epsilon_ : float
        Its epsilon, rounded up. The guarantee is the budget of the labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from optrand.learning import LabelDPClassifier, PrivateLabels, Stages
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> X, y = load_iris(return_X_y=True)
    >>> labels = PrivateLabels(y, 2.0, [0, 1, 2], source=SeededEntropy(1))
    >>> model = LabelDPClassifier(LogisticRegression(max_iter=1000), 2.0, [0, 1, 2], plan=Stages(2), random_state=0)
    >>> bool((model.fit(X, labels).predict(X) == y).mean() > 0.8), model.epsilon_
    (True, 2.0)
    >>> model.certificates_[1][0].require(gap=1e-9).epsilon <= 2.0
    True
    """

    def __init__(
        self,
        estimator: Any,
        epsilon: float,
        classes: ArrayLike,
        plan: Plan | None = None,
        target: str | Target = "likelihood",
        *,
        one_fit: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.classes = classes
        self.plan = plan
        self.target = target
        self.one_fit = one_fit
        self.random_state = random_state

    def fit(self, X: Any, labels: Any) -> LabelDPClassifier:
        """Release labels by the plan, and train on the releases.

        Parameters
        ----------
        X : (n, d) array or frame
            Public features.
        labels : PrivateLabels
            Of these rows; or plain labels, with ``one_fit=True``.

        Raises
        ------
        OverBudget
            A row cannot pay epsilon. Nothing was drawn.
        InvalidInput
            Plain labels, other classes than declared, an estimator or a plan that does not fit. Nothing was drawn.
        Exception
            What the estimator raises at these features, on stand-ins for labels, before anything is drawn.
        """
        X = indexable(X)[0]
        validate_data(self, X, skip_check_array=True)
        plan: Plan = Stages(1) if self.plan is None else self.plan
        target = target_of(self.target)
        domain = Domain.of(self.classes)
        self._check(X, labels, plan, target, domain)
        holder = self._holder(labels, domain)
        training = Training(X, holder, self.estimator, target, checked_epsilon(self.epsilon), self._seed())
        self.estimator_ = plan.train(training)
        self.classes_ = np.array(domain.array)
        self.releases_, self.priors_ = training.releases, training.priors
        self.certificates_ = training.certificates
        self.spent_ = holder.spent
        self.epsilon_ = float_above(self.spent_.epsilon)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, shape ``(n, K)``."""
        check_is_fitted(self)
        X = indexable(X)[0]
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            raise InvalidInput("X has one dimension, expected (n, d). Reshape your data: X.reshape(1, -1)")
        validate_data(self, X, reset=False, skip_check_array=True)
        return probabilities(self.estimator_, X, self.classes_.size)

    def predict(self, X: Any) -> NDArray[Any]:
        """Likeliest classes, shape ``(n,)``."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[likeliest]
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labels that are public.

        Raises
        ------
        InvalidInput
            The labels are private: their accuracy would leak.
        """
        if isinstance(y, PrivateLabels):
            raise InvalidInput(
                "a score on private labels would leak: score on public ones, or on a release of held-out rows"
            )
        return float(super().score(X, y, sample_weight))

    def _check(self, X: Any, labels: Any, plan: Plan, target: Target, domain: Domain) -> None:
        """Refuse what cannot work, before anything is drawn."""
        epsilon = checked_epsilon(self.epsilon)
        if labels is None:
            raise InvalidInput("labels are None (requires y to be passed, but the target y is None)")
        rows = _num_samples(X)
        if rows != _num_samples(labels):
            raise InvalidInput(f"X has {rows} samples and labels {_num_samples(labels)}, expected a label for each row")
        if isinstance(labels, PrivateLabels):
            if labels.domain != domain:
                raise InvalidInput(
                    f"the labels' domain of {len(labels.domain)} labels is not the {len(domain)} declared classes in "
                    "their order: pass classes=labels.domain"
                )
            labels.require(Spent(epsilon))
        elif not self.one_fit:
            raise InvalidInput(
                f"labels are of type {type(labels).__name__}, expected PrivateLabels, whose account outlives this fit: "
                "pass PrivateLabels(y, epsilon, classes), or make the estimator with one_fit=True"
            )
        if plan.vectors and not target.vectors:
            raise InvalidInput(f"{plan} releases vectors, which target={self.target!r} cannot use: take 'likelihood'")
        plan.check(rows, len(domain))
        if plan.trains:
            check_estimator_fits(self.estimator, target)
            self._rehearse(X, target, len(domain))

    def _rehearse(self, X: Any, target: Target, k: int) -> None:
        """Raise what the estimator would raise at these features, of labels that mean nothing."""
        rows = np.arange(min(_num_samples(X), REHEARSED))
        if hasattr(self.estimator, "check_input"):
            self.estimator.check_input(_safe_indexing(X, rows), k)
            return
        if isinstance(target, Likelihood) and hasattr(self.estimator, "fit_likelihood"):
            return
        repeated, labels = np.repeat(rows, 2), np.column_stack([rows % k, (rows + 1) % k]).reshape(-1)
        # Negative weights are refused by some estimators: better now than after the draw.
        weights = np.tile([1.5, -0.5 if isinstance(target, Debiased) else 0.5], rows.size)
        options = {"sample_weight": weights} if target.weighted else {}
        clone(self.estimator).fit(_safe_indexing(X, repeated), labels, **options).predict_proba(X)

    def _holder(self, labels: Any, domain: Domain) -> PrivateLabels:
        if isinstance(labels, PrivateLabels):
            return labels
        holder = PrivateLabels(labels, self.epsilon, domain)
        self._permission().take()
        return holder

    def _permission(self) -> OneFit:
        if not hasattr(self, "_one_fit"):
            self._one_fit = OneFit()
        return self._one_fit

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1) if state is None else int(state)

    def __sklearn_clone__(self) -> LabelDPClassifier:
        """Clone that shares the permission for one fit."""
        made: LabelDPClassifier = _clone_parametrized(self)
        if self.one_fit:
            made._one_fit = self._permission()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Parts of a pickle; refused where a copy could be fitted once more."""
        if self.one_fit:
            self._permission()
        state: dict[str, Any] = super().__getstate__()
        return state

    def __sklearn_tags__(self) -> Any:
        """What features may be, as the estimator has it."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "estimator_")
