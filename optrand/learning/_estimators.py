"""A classifier and a regressor of scikit-learn that train on private labels, or on a release of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from optrand.accounting._spent import Spent
from optrand.base._arithmetic import float_above
from optrand.base._validation import Floats, check_epsilon, check_integer, check_real, expect, suggest_parameters
from optrand.errors import InvalidInput
from optrand.learning._domain import Domain
from optrand.learning._likelihoods import LabelRelease
from optrand.learning._number_plans import TwoStagePlan, default_plan
from optrand.learning._plans import Bits, Plan, Stages
from optrand.learning._private_labels import PrivateLabels
from optrand.learning._targets import (
    BinaryBits,
    Debiased,
    Start,
    Target,
    check_estimator,
    check_estimator_fits,
    probabilities,
    target_of,
)
from optrand.learning._training import (
    Training,
    account_of,
    clip_to_range,
    fit_numbers,
    is_release,
    priors_of,
    releases_of,
)
from optrand.model._problem import unbiased_range


class _PrivateFit(MetaEstimatorMixin):  # type: ignore[misc]
    """Base of the two estimators: a fit, its account, and a public score."""

    def __init__(
        self, estimator: Any, epsilon: float | None, plan: Plan | None, labels: Any, random_state: Any
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.plan = plan
        self.labels = labels
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Any:
        """Release labels by the plan and train on the releases, or train on a release that was made before.

        Parameters
        ----------
        X : (n, d) array or frame
            Public features.
        y : PrivateLabels, release or (n,) array
            Labels of these rows. Released labels are trained on by the likelihood of their mechanism, and are never
            randomized again: ``(noisy, record)`` from :func:`optrand.randomize`, with a record that may come from
            :func:`optrand.load_release`, ``(noisy, record, groups)`` from a release by groups, with their column, or a
            :class:`LabelRelease`, or several of one holder. An array is accepted if `labels` are declared, with a new
            account for this fit: another fit on it spends epsilon again, and only :class:`PrivateLabels` adds it up.

        Raises
        ------
        OverBudget
            A row cannot pay epsilon. Nothing was drawn.
        InvalidInput
            Labels that are not declared, labels of other rows, an estimator or a plan that does not fit. Nothing was
            drawn.
        Exception
            An error of the estimator at these features, with dummy labels, before anything is drawn.
        """
        X = indexable(X)[0]
        rows = _num_samples(X)
        validate_data(self, X, skip_check_array=True)
        if y is None:
            raise InvalidInput("y is None (requires y to be passed, but the target y is None)")
        if is_release(y):
            given = releases_of(y, rows)
            self._set_domain(given[0].domain)
            return self._train(lambda: self._learn(X, given), given, [], lambda: account_of(given, rows))
        labels = self._holder(y)
        self._set_domain(labels.domain)
        if rows != len(labels):
            raise InvalidInput(f"X has {rows} samples and y {len(labels)}, expected a label for each row")
        labels.require(Spent(self._budget()))
        regresses, plan = isinstance(self, RegressorMixin), self.plan
        if plan is None:
            plan = default_plan(rows, self._budget()) if regresses else Stages(1)
        one = "TwoStages()" if regresses else "Stages(2)"
        expect(plan, Plan, "plan", f"a plan such as {one}")
        if plan.for_numbers != regresses:
            raise InvalidInput(f"{plan} is a plan for {'numbers' if plan.for_numbers else 'classes'}: use {one}")
        self._check_plan(X, plan, labels.domain)
        training = self._training(X, labels, plan)
        return self._train(lambda: plan.train(training), training.releases, training.priors, lambda: labels.spent)

    def _train(
        self, train: Callable[[], Any], releases: list[Any], priors: list[Any], spent: Callable[[], Spent]
    ) -> Any:
        """Train a model. Releases and account are kept even if it raises, since they are paid for."""
        self.__dict__.pop("estimator_", None)
        self.releases_, self.priors_ = releases, priors
        try:
            self.estimator_ = train()
        finally:
            self.spent_ = spent()
            self.epsilon_ = float_above(self.spent_.epsilon)
        return self

    def _holder(self, y: Any) -> PrivateLabels:
        if isinstance(y, PrivateLabels):
            if self.labels is not None and Domain.of(self.labels) != y.domain:
                raise InvalidInput(
                    f"labels declares other labels than the {len(y.domain)} of y, or another order: leave it out, as "
                    "PrivateLabels declares its own"
                )
            return y
        if self.labels is None:
            raise InvalidInput(
                f"y is of type {type(y).__name__}, expected PrivateLabels(y, epsilon, labels) or a release. Or declare "
                "in the estimator, by labels=, all labels that can occur"
            )
        return PrivateLabels(y, self._budget(), self.labels)

    def _budget(self) -> float:
        if self.epsilon is None:
            raise InvalidInput("epsilon is None, expected the budget of a fit: only a release needs none")
        return check_epsilon(self.epsilon)

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        X = indexable(X)[0]
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            raise InvalidInput("X has one dimension, expected (n, d). Reshape your data: X.reshape(1, -1)")
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if state is None or isinstance(state, np.random.Generator):
            return int(np.random.default_rng(state).integers(2**31 - 1))
        return check_integer(state, "random_state", 0)

    def __sklearn_tags__(self) -> Any:
        # Features may be whatever the estimator takes.
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions on public labels: accuracy, or for a regressor the coefficient of determination.

        Raises
        ------
        InvalidInput
            The labels are private: a score would leak.
        """
        if isinstance(y, PrivateLabels):
            raise InvalidInput(
                "a score on private labels would leak: score on public ones, or on a release of held-out rows"
            )
        scored: Any = super()
        return float(scored.score(X, y, sample_weight))


class LabelDPClassifier(_PrivateFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose training spends at most `epsilon` of label privacy on any row.

    Parameters
    ----------
    estimator : classifier
        With `fit`, `predict_proba` and, except for ``target="labels"`` and ``"bits"``, `sample_weight`. Or with
        ``fit_likelihood(X, table)``, which is enough if clusters have no priors, and ``check_input(X, k)`` to refuse
        features before anything is drawn. It is cloned. None for :class:`~optrand.learning.NearestNeighbour`.
    epsilon : float, optional
        Charge of one fit for each row, in nats. Not needed for releases, which cost nothing further.
    plan : Plan, optional
        Assignment of rows to randomizers, by default ``Stages(1)``.
    target : str or Target, optional
        "likelihood", "labels", "debiased", "soft" or "bits", or an object such as
        :class:`~optrand.learning.Likelihood`.
    labels : sequence, optional
        All labels that can occur, for `y` as an array. :class:`PrivateLabels` and releases declare their own.
    random_state : int, optional
        Seed of the split into stages and of the clusters. It protects nothing.

    Attributes
    ----------
    classes_ : (K,) array
        The domain in increasing order, as scikit-learn's metrics expect it. Classes that cannot be compared stay in the
        order of the domain.
    estimator_ : object
        The last model, on class indices in the order of the domain.
    releases_ : list of LabelRelease
        Everything that was drawn for labels, also if training failed after the draw. For a release by RRWithPrior
        ``releases_[i].randomizer[row].certificate`` proves a row's randomizer private and best for its prior.
    priors_ : list of PriorRelease
        Private histograms.
    spent_ : Spent
        The most that a row has paid, exactly, all releases of its holder counted.
    epsilon_ : float
        Its epsilon, rounded up. The guarantee is the budget of the labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from optrand.learning import LabelDPClassifier, PrivateLabels, Stages
    >>> from optrand.sampling import SeededEntropy
    >>> X, y = load_iris(return_X_y=True)
    >>> labels = PrivateLabels(y, 2.0, [0, 1, 2], source=SeededEntropy(1))
    >>> model = LabelDPClassifier(
    ...     LogisticRegression(max_iter=1000), 2.0, plan=Stages(2), random_state=0
    ... )
    >>> bool((model.fit(X, labels).predict(X) == y).mean() > 0.8), model.epsilon_
    (True, 2.0)
    >>> model.releases_[1].randomizer[0].certificate.require(gap=1e-9).epsilon <= 2.0
    True
    """

    @suggest_parameters
    def __init__(
        self,
        estimator: Any,
        epsilon: float | None = None,
        plan: Plan | None = None,
        target: str | Target = "likelihood",
        *,
        labels: ArrayLike | Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(estimator, epsilon, plan, labels, random_state)
        self.target = target

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, shape ``(n, K)``, in the order of ``classes_``."""
        features = self._features(X)
        return probabilities(self.estimator_, features, self.classes_.size)[:, self._order]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row, shape ``(n,)``."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def _set_domain(self, domain: Domain) -> None:
        self._order = domain.order
        self.classes_ = domain.array[self._order]

    def _training(self, X: Any, labels: PrivateLabels, plan: Plan) -> Training:
        epsilon, target = self._budget(), target_of(self.target)
        return Training(X, labels, self.estimator, epsilon, self._seed(), labels.domain, target, plan.informed)

    def _learn(self, X: Any, releases: list[LabelRelease]) -> Any:
        target, priors = target_of(self.target), priors_of(releases)
        informed = priors is not None and len(releases) > 1
        check_estimator_fits(self.estimator, target, informed=informed)
        features = _safe_indexing(X, np.concatenate([release.rows for release in releases]))
        return target.fit(self.estimator, features, releases, Start(priors, None, informed))

    def _check_plan(self, X: Any, plan: Plan, domain: Domain) -> None:
        target = target_of(self.target)
        if plan.vectors and not target.vectors:
            raise InvalidInput(f"{plan} releases vectors, which target={self.target!r} cannot use: use 'likelihood'")
        if isinstance(target, BinaryBits) and not isinstance(plan, Bits):
            raise InvalidInput(f"binary targets need bits, which {plan} does not release: use plan=Bits()")
        plan.check(_num_samples(X), len(domain))
        if plan.trains:
            check_estimator_fits(self.estimator, target, informed=plan.informed)
            self._rehearse(X, target, len(domain), informed=plan.informed)

    def _rehearse(self, X: Any, target: Target, k: int, *, informed: bool) -> None:
        """Raise the errors that the estimator raises at these features, with arbitrary labels."""
        rows = _rehearsal_rows(X)
        if hasattr(self.estimator, "check_input"):
            self.estimator.check_input(_safe_indexing(X, rows), k)
        elif not target.descends(self.estimator, informed=informed):
            labels = np.column_stack([rows % k, (rows + 1) % k]).reshape(-1)
            # Some estimators refuse negative weights: find out before the draw.
            weights = np.tile([1.5, -0.5 if isinstance(target, Debiased) else 0.5], rows.size)
            options = {"sample_weight": weights} if target.weighted else {}
            clone(self.estimator).fit(_safe_indexing(X, np.repeat(rows, 2)), labels, **options).predict_proba(X)


class LabelDPRegressor(_PrivateFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regressor whose training spends at most `epsilon` of label privacy on any row.

    Parameters
    ----------
    estimator : regressor
        With `fit` and `predict`, for plans of two stages also with `sample_weight`. It is cloned.
    epsilon : float, optional
        Charge of one fit for each row, in nats. Not needed for releases, which cost nothing further.
    plan : Plan, optional
        :class:`~optrand.learning.OnePrior`, :class:`~optrand.learning.PublicClusters`,
        :class:`~optrand.learning.TwoStages` or :class:`~optrand.learning.RowPriors`. By default two stages from 8,000
        rows on at an epsilon below 2, else one prior.
    bias_penalty : float, optional
        Weight of squared bias beside half the squared error: 0 for randomized response on bins, ``math.inf`` for no
        bias. By default by the rule of the plan, from the number of rows alone.
    labels : sequence, optional
        All labels that can occur, for `y` as an array. :class:`PrivateLabels` and releases declare their own.
    random_state : int, optional
        Seed of the split into stages and of the clusters. It protects nothing.

    Attributes
    ----------
    estimator_ : object
        The last model.
    releases_ : list of LabelRelease
        Everything that was drawn for labels, also if training failed after the draw.
    priors_ : list of PriorRelease
        Private histograms.
    certificates_ : list of Certificate
        One per release, which proves that its randomizer is private, and best for its prior.
    spent_ : Spent
        The most that a row has paid, exactly, all releases of its holder counted.
    epsilon_ : float
        Its epsilon, rounded up. The guarantee is the budget of the labels.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from optrand.learning import LabelDPRegressor, PrivateLabels, TwoStages
    >>> from optrand.sampling import SeededEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = np.clip(np.rint(10 + 3 * X[:, 0] + rng.normal(size=2000)), 0, 20)
    >>> labels = PrivateLabels(y, 2.0, range(21), source=SeededEntropy(1))
    >>> model = LabelDPRegressor(Ridge(), 2.0, plan=TwoStages(groups=4), random_state=0).fit(
    ...     X, labels
    ... )
    >>> bool(((model.predict(X) - y) ** 2).mean() < 1.5), model.epsilon_
    (True, 2.0)
    >>> max(proof.require(gap=1e-9).epsilon for proof in model.certificates_) < 2.0
    True
    """

    @suggest_parameters
    def __init__(
        self,
        estimator: Any,
        epsilon: float | None = None,
        plan: Plan | None = None,
        bias_penalty: float | None = None,
        *,
        labels: ArrayLike | Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(estimator, epsilon, plan, labels, random_state)
        self.bias_penalty = bias_penalty

    def predict(self, X: Any) -> Floats:
        """Return the predictions of the last model, clipped to the range of the labels, shape ``(n,)``."""
        features = self._features(X)
        return clip_to_range(self.estimator_.predict(features), np.array(self.range_))

    @property
    def certificates_(self) -> Any:
        """Certificates of the mechanisms of all releases."""
        return [release.randomizer.certificate for release in self.releases_]

    def _set_domain(self, domain: Domain) -> None:
        if domain.numbers is None:
            raise InvalidInput(f"the {len(domain)} labels are classes, or not all finite: use LabelDPClassifier")
        self.range_ = (float(domain.numbers.min()), float(domain.numbers.max()))

    def _training(self, X: Any, labels: PrivateLabels, plan: Plan) -> Training:
        increasing = Domain(tuple(sorted(labels.domain.labels)))
        penalty = self._penalty(plan, len(labels))
        return Training(X, labels, self.estimator, self._budget(), self._seed(), increasing, bias_penalty=penalty)

    def _penalty(self, plan: Plan, rows: int) -> float:
        given = self.bias_penalty
        if given is None:
            return plan.penalty(rows)
        if given != math.inf and check_real(given, "bias_penalty") < 0:
            raise InvalidInput(f"bias_penalty is {given}, expected 0, a positive number or math.inf")
        return float(given)

    def _learn(self, X: Any, releases: list[LabelRelease]) -> Any:
        return fit_numbers(self.estimator, X, releases)

    def _check_plan(self, X: Any, plan: Plan, domain: Domain) -> None:
        penalty = self._penalty(plan, _num_samples(X))
        plan.check(_num_samples(X), len(domain))
        two_stages = isinstance(plan, TwoStagePlan)
        # Unbiased noisy labels lie outside the range of the labels. The first of two stages is always unbiased.
        unbiased = two_stages or penalty == math.inf
        ends = unbiased_range(np.array(domain.numbers), self._budget()) if unbiased else self.range_
        needs, first = "two stages need" if two_stages else None, getattr(plan, "first", None)
        for estimator in (self.estimator,) if first is None else (self.estimator, first):
            check_estimator(estimator, "predict", "a regressor", needs, "this regressor, or use OnePrior")
            # Raise the errors that it raises at these features, with arbitrary noisy labels.
            rows = _rehearsal_rows(X)
            some = _safe_indexing(X, rows)
            weights = {"sample_weight": np.ones(rows.size)} if two_stages else {}
            clone(estimator).fit(some, np.linspace(*ends, 8)[rows % 8], **weights).predict(some)


def _rehearsal_rows(X: Any) -> NDArray[np.intp]:
    """Return rows for the rehearsal of an estimator: the first thousand, and up to ten more with gaps."""
    return np.union1d(np.arange(min(_num_samples(X), 1000)), _rows_with_gaps(X)[:10])


def _rows_with_gaps(X: Any) -> NDArray[np.intp]:
    """Return the indices of rows with a missing or infinite entry, as far as numpy can decide it."""
    cells: Any = X
    if sparse.issparse(X):
        # The sum of a sparse row is finite if all of its entries are.
        cells = cells.sum(axis=1)
    try:
        gaps = np.asarray(X.isna()) if hasattr(X, "isna") else ~np.isfinite(np.asarray(cells, dtype=np.float64))
    except (TypeError, ValueError):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(gaps.reshape(len(gaps), -1).any(axis=1))
