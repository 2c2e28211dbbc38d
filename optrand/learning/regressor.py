"""A scikit-learn regressor that is trained on private labels."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, has_fit_parameter, validate_data

from optrand.base.validation import Floats, real
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidInput
from optrand.learning.domain import Domain
from optrand.learning.private_fit import PrivateFit, refuse_private_score, rehearsed_rows
from optrand.learning.regression_plans import RegressionPlan, TwoStages, default_plan
from optrand.learning.regression_training import RegressionTraining, clipped

__all__ = ["LabelDPRegressor"]


class LabelDPRegressor(RegressorMixin, PrivateFit):  # type: ignore[misc]
    """Regressor whose training spends at most `epsilon` of label privacy on any row.

    Parameters
    ----------
    estimator : regressor
        With `fit` and `predict`; for two stages also with `sample_weight`. It is cloned.
    epsilon : float
        What one fit charges each row, in nats.
    labels : sequence of numbers
        Declared: the domain of the labels, in its order.
    bias_penalty : float, optional
        Price of squared bias beside half the squared error: 0 for randomized response on bins, ``math.inf`` for no
        bias. By default by the rule of the plan, from the number of rows alone.
    plan : RegressionPlan, optional
        :class:`~optrand.learning.OnePrior`, :class:`~optrand.learning.PublicClusters` or
        :class:`~optrand.learning.TwoStages`; by default two stages from 8,000 rows on at an epsilon below 2, else one
        prior.
    one_fit : bool, optional
        Allow plain labels, once: neither this estimator nor a clone can be fitted a second time.
    random_state : int, optional
        Of the split into stages and the clusters. It protects nothing.

    Attributes
    ----------
    estimator_ : object
        The last model.
    releases_ : list of LabelRelease
        Everything that was drawn for labels; there too if training failed after the draw.
    priors_ : list of PriorRelease
        Private histograms.
    certificates_ : list of Certificate
        One a release: that its randomizer is private, and best for its prior.
    spent_ : Spent
        The most that a row has paid, exactly, all releases of its holder counted.
    epsilon_ : float
        Its epsilon, rounded up. The guarantee is the budget of the labels.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from optrand.learning import LabelDPRegressor, PrivateLabels, TwoStages
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = np.clip(np.rint(10 + 3 * X[:, 0] + rng.normal(size=2000)), 0, 20)
    >>> labels = PrivateLabels(y, 2.0, range(21), source=SeededEntropy(1))
    >>> model = LabelDPRegressor(Ridge(), 2.0, range(21), plan=TwoStages(groups=4), random_state=0).fit(X, labels)
    >>> bool(((model.predict(X) - y) ** 2).mean() < 1.5), model.epsilon_
    (True, 2.0)
    >>> max(proof.require(gap=1e-9).epsilon for proof in model.certificates_) < 2.0
    True
    """

    declares: ClassVar[str] = "labels"

    def __init__(
        self,
        estimator: Any,
        epsilon: float,
        labels: ArrayLike | Domain,
        bias_penalty: float | None = None,
        plan: RegressionPlan | None = None,
        *,
        one_fit: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.labels = labels
        self.bias_penalty = bias_penalty
        self.plan = plan
        self.one_fit = one_fit
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> LabelDPRegressor:
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
            Plain labels, other labels than declared, an estimator or a plan that does not fit. Nothing was drawn.
        Exception
            What the estimator raises at these features, on stand-ins for labels, before anything is drawn.
        """
        X = indexable(X)[0]
        validate_data(self, X, skip_check_array=True)
        domain = Domain.of(self.labels)
        if domain.numbers is None:
            raise InvalidInput(f"the {len(domain)} declared labels are not all finite numbers: take LabelDPClassifier")
        seed = self._seed()
        self._check_labels(X, y, domain)
        rows = _num_samples(X)
        budget = checked_epsilon(self.epsilon)
        plan: RegressionPlan = default_plan(rows, budget) if self.plan is None else self.plan
        penalty = plan.penalty(rows) if self.bias_penalty is None else checked_penalty(self.bias_penalty)
        plan.check(rows)
        for estimator in (self.estimator, getattr(plan, "first", None)):
            if estimator is not None or estimator is self.estimator:
                self._rehearse(X, estimator, domain, weighted=isinstance(plan, TwoStages))
        training = RegressionTraining(X, self._holder(y, domain), self.estimator, budget, seed)
        self.range_ = (float(training.numbers[0]), float(training.numbers[-1]))
        self.estimator_ = self._train(training, lambda: plan.train(training, penalty))
        self.certificates_ = training.certificates
        return self

    def predict(self, X: Any) -> Floats:
        """Predictions of the last model, clipped to the range of the labels, shape ``(n,)``."""
        asked = self._asked(X)
        return clipped(self.estimator_.predict(asked), np.array(self.range_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination on labels that are public.

        Raises
        ------
        InvalidInput
            The labels are private: a score would leak.
        """
        refuse_private_score(y)
        return float(super().score(X, y, sample_weight))

    def _rehearse(self, X: Any, estimator: Any, domain: Domain, *, weighted: bool) -> None:
        """Raise what an estimator would raise at these features, of labels that mean nothing."""
        missing = [name for name in ("fit", "predict") if not hasattr(estimator, name)]
        if missing:
            raise InvalidInput(
                f"the estimator {type(estimator).__name__} has no {' and no '.join(missing)}, expected a regressor"
            )
        if weighted and not has_fit_parameter(estimator, "sample_weight"):
            raise InvalidInput(
                f"the estimator {type(estimator).__name__} takes no sample_weight, which two stages need: "
                "take another estimator, put the steps of a pipeline before this regressor, or take OnePrior"
            )
        rows = rehearsed_rows(X)
        weights = {"sample_weight": np.ones(rows.size)} if weighted else {}
        some = _safe_indexing(X, rows)
        clone(estimator).fit(some, np.array(domain.numbers)[rows % len(domain)], **weights).predict(some)


def checked_penalty(penalty: object) -> float:
    """A price of bias.

    Raises
    ------
    InvalidInput
        It is below 0 or no number.
    """
    if penalty == math.inf:
        return math.inf
    if real(penalty, "bias_penalty") < 0:
        raise InvalidInput(f"bias_penalty is {penalty}, expected 0, a positive number or math.inf")
    return float(penalty)  # type: ignore[arg-type]
