"""What estimators on private labels share: the account of a fit, permission for one on plain labels, clones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from optrand.accounting.spent import Spent
from optrand.base.arithmetic import float_above
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import integer
from optrand.errors import InvalidInput, OverBudget
from optrand.learning.domain import Domain
from optrand.learning.holder import PrivateLabels

__all__ = ["OneFit", "PrivateFit", "refuse_private_score", "rehearsed_rows"]


REHEARSED = 1000
GAPS = 10
"""Rows with a gap among those rehearsed, at most, beside the first."""


class OneFit:
    """Permission for one fit, in the process that it was made in, which all clones of an estimator share."""

    def __init__(self) -> None:
        self._taken = False
        self._process = os.getpid()
        self._lock = threading.Lock()

    def take(self) -> None:
        """Use it up."""
        with self._lock:
            if self._taken or os.getpid() != self._process:
                raise OverBudget(
                    "this estimator, or one that it was cloned or copied from, was fitted with one_fit=True, or came "
                    "from another process: another fit on plain labels would spend epsilon again, unseen; pass "
                    "PrivateLabels, whose account is exact, or make the estimator anew for other labels"
                )
            self._taken = True

    @staticmethod
    def used() -> OneFit:
        """Permission that is used up, for copies that would otherwise have one of their own."""
        permission = OneFit()
        permission.take()
        return permission

    def __reduce__(self) -> tuple[Any, ...]:
        """Parts of a pickle, once it is used."""
        if not self._taken:
            raise InvalidInput(
                "an estimator with one_fit=True cannot be copied to another process before its fit: pass "
                "PrivateLabels, or fit with n_jobs=1"
            )
        return OneFit.used, ()


class PrivateFit(BaseEstimator):  # type: ignore[misc]
    """Base of estimators with the parameters `epsilon`, `one_fit` and `random_state`."""

    declares: ClassVar[str]
    """Name of the parameter that declares the domain."""

    def _check_labels(self, X: Any, labels: Any, domain: Domain) -> None:
        """Refuse labels that are of other rows or another domain, cannot pay, or are plain without permission."""
        epsilon = checked_epsilon(self.epsilon)
        if labels is None:
            raise InvalidInput("labels are None (requires y to be passed, but the target y is None)")
        rows = _num_samples(X)
        if rows != _num_samples(labels):
            raise InvalidInput(f"X has {rows} samples and labels {_num_samples(labels)}, expected a label for each row")
        if isinstance(labels, PrivateLabels):
            if labels.domain != domain:
                raise InvalidInput(
                    f"the labels' domain of {len(labels.domain)} labels is not the {len(domain)} declared "
                    f"{self.declares} in their order: pass {self.declares}=labels.domain"
                )
            labels.require(Spent(epsilon))
        elif not self.one_fit:
            raise InvalidInput(
                f"labels are of type {type(labels).__name__}, expected PrivateLabels, whose account outlives this fit: "
                f"pass PrivateLabels(y, epsilon, {self.declares}), or make the estimator with one_fit=True"
            )

    def _holder(self, labels: Any, domain: Domain) -> PrivateLabels:
        """The holder that was passed, or one of plain labels, once."""
        if isinstance(labels, PrivateLabels):
            return labels
        holder = PrivateLabels(labels, self.epsilon, domain)
        self._permission().take()
        return holder

    def _asked(self, X: Any) -> Any:
        """Features that predictions are asked for, once there is a model."""
        check_is_fitted(self)
        X = indexable(X)[0]
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            raise InvalidInput("X has one dimension, expected (n, d). Reshape your data: X.reshape(1, -1)")
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _train(self, training: Any, train: Callable[[], Any]) -> Any:
        """Return the model of a training; releases and account are kept even if it raises, since they are paid for."""
        for name in ("estimator_", "certificates_"):
            self.__dict__.pop(name, None)
        self.releases_, self.priors_ = training.releases, training.priors
        try:
            return train()
        finally:
            self.spent_ = training.labels.spent
            self.epsilon_ = float_above(self.spent_.epsilon)

    def _permission(self) -> OneFit:
        # Atomic: threads that fit one estimator at once get one permission.
        permission: OneFit = self.__dict__.setdefault("_one_fit", OneFit())
        return permission

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31 - 1))
        return (
            int(np.random.SeedSequence().generate_state(1)[0] >> 1)
            if state is None
            else integer(state, "random_state", 0)
        )

    def __sklearn_clone__(self) -> Any:
        """Clone that shares the permission for one fit."""
        made = _clone_parametrized(self)
        # Without one_fit too: a search could set it on every clone.
        made._one_fit = self._permission()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Parts of a pickle; refused where a copy could be fitted once more."""
        permission = self._permission()
        state: dict[str, Any] = super().__getstate__()
        return state if self.one_fit else {**state, "_one_fit": permission.used()}

    def __sklearn_tags__(self) -> Any:
        """What features may be, as the estimator has it."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "estimator_")


def rehearsed_rows(X: Any) -> NDArray[np.intp]:
    """Rows of public features on which an estimator is tried before anything is drawn: the first, and some with gaps.

    Examples
    --------
    >>> X = np.zeros((3000, 2))
    >>> X[2500, 1] = np.nan
    >>> rows = rehearsed_rows(X)
    >>> rows.size, int(rows[-1])
    (1001, 2500)
    """
    first = np.arange(min(_num_samples(X), REHEARSED))
    return np.union1d(first, _rows_with_gaps(X)[:GAPS])


def _rows_with_gaps(X: Any) -> NDArray[np.intp]:
    """Return the numbers of rows with a missing or infinite entry, as far as that can be told."""
    if sparse.issparse(X):
        entries: Any = sparse.coo_array(X)  # type: ignore[call-overload]
        return np.unique(entries.row[~np.isfinite(entries.data)]).astype(np.intp)
    if hasattr(X, "isna"):
        gaps = np.asarray(X.isna())
    else:
        try:
            gaps = ~np.isfinite(np.asarray(X, dtype=np.float64))
        except (TypeError, ValueError):
            return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(gaps.reshape(len(gaps), -1).any(axis=1))


def refuse_private_score(y: Any) -> None:
    """Refuse to score on private labels.

    Raises
    ------
    InvalidInput
        They are private: a score would leak.
    """
    if isinstance(y, PrivateLabels):
        raise InvalidInput(
            "a score on private labels would leak: score on public ones, or on a release of held-out rows"
        )
