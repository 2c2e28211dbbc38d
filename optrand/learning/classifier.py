"""A scikit-learn classifier that is trained on private labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, validate_data

from optrand.base.validation import Floats
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidInput
from optrand.learning.domain import Domain
from optrand.learning.likelihood import (
    BinaryBits,
    Debiased,
    Likelihood,
    Target,
    check_estimator_fits,
    probabilities,
    target_of,
)
from optrand.learning.plans import Bits, NearestNeighbour, Plan, Stages
from optrand.learning.private_fit import PrivateFit, refuse_private_score, rehearsed_rows
from optrand.learning.training import Training

__all__ = ["LabelDPClassifier"]


class LabelDPClassifier(ClassifierMixin, PrivateFit):  # type: ignore[misc]
    """Classifier whose training spends at most `epsilon` of label privacy on any row.

    Parameters
    ----------
    estimator : classifier
        With `fit`, `predict_proba` and, but for ``target="labels"`` and ``"bits"``, `sample_weight`; or with
        ``fit_likelihood(X, table)``, which is enough where clusters have no priors, and ``check_input(X, k)`` to refuse
        features before anything is drawn. It is cloned. None for :class:`~optrand.learning.NearestNeighbour`.
    epsilon : float
        What one fit charges each row, in nats.
    classes : sequence
        Labels, declared: those of the domain of the labels, in its order. Predictions have their types.
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
        The declared classes in increasing order, as scikit-learn's metrics expect them; classes that cannot be compared
        stay in the declared order.
    estimator_ : object
        The last model, on the numbers of classes in the declared order.
    releases_ : list of LabelRelease
        Everything that was drawn for labels; there too if training failed after the draw.
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

    declares: ClassVar[str] = "classes"

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

    def fit(self, X: Any, y: Any) -> LabelDPClassifier:
        """Release labels by the plan, and train on the releases.

        Parameters
        ----------
        X : (n, d) array or frame
            Public features.
        y : PrivateLabels
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
        seed = self._seed()
        self._check(X, y, plan, target, domain)
        holder = self._holder(y, domain)
        training = Training(X, holder, self.estimator, target, checked_epsilon(self.epsilon), seed, plan.informed)
        self._order = domain.order
        self.classes_ = domain.array[self._order]
        self.estimator_ = self._train(training, lambda: plan.train(training))
        self.certificates_ = training.certificates
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, shape ``(n, K)``."""
        asked = self._asked(X)
        return probabilities(self.estimator_, asked, self.classes_.size)[:, self._order]

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
        refuse_private_score(y)
        return float(super().score(X, y, sample_weight))

    def _check(self, X: Any, labels: Any, plan: Plan, target: Target, domain: Domain) -> None:
        """Refuse what cannot work, before anything is drawn."""
        self._check_labels(X, labels, domain)
        if plan.vectors and not target.vectors:
            raise InvalidInput(f"{plan} releases vectors, which target={self.target!r} cannot use: take 'likelihood'")
        if isinstance(target, BinaryBits) and not isinstance(plan, (Bits, NearestNeighbour)):
            raise InvalidInput(f"binary targets need bits, which {plan} does not release: take plan=Bits()")
        plan.check(_num_samples(X), len(domain))
        if plan.trains:
            check_estimator_fits(self.estimator, target, informed=plan.informed)
            self._rehearse(X, target, len(domain), informed=plan.informed)

    def _rehearse(self, X: Any, target: Target, k: int, *, informed: bool) -> None:
        """Raise what the estimator would raise at these features, of labels that mean nothing."""
        rows = rehearsed_rows(X)
        if hasattr(self.estimator, "check_input"):
            self.estimator.check_input(_safe_indexing(X, rows), k)
            return
        if isinstance(target, Likelihood) and target.descends(self.estimator, informed=informed):
            return
        repeated, labels = np.repeat(rows, 2), np.column_stack([rows % k, (rows + 1) % k]).reshape(-1)
        # Negative weights are refused by some estimators: better now than after the draw.
        weights = np.tile([1.5, -0.5 if isinstance(target, Debiased) else 0.5], rows.size)
        options = {"sample_weight": weights} if target.weighted else {}
        clone(self.estimator).fit(_safe_indexing(X, repeated), labels, **options).predict_proba(X)
