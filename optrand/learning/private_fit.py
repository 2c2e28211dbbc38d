"""What estimators on private labels share: the account of a fit, permission for one on plain labels, clones."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from optrand.accounting.spent import Spent
from optrand.base.arithmetic import float_above
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidInput, OverBudget
from optrand.learning.domain import Domain
from optrand.learning.holder import PrivateLabels

__all__ = ["OneFit", "PrivateFit", "refuse_private_score", "rehearsed_rows"]


REHEARSED = 1000
GAPS = 10
"""Rows with a gap among those rehearsed, at most, beside the first."""


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

    def _account(self, holder: PrivateLabels) -> None:
        """Set what was spent."""
        self.spent_ = holder.spent
        self.epsilon_ = float_above(self.spent_.epsilon)

    def _permission(self) -> OneFit:
        if not hasattr(self, "_one_fit"):
            self._one_fit = OneFit()
        return self._one_fit

    def _seed(self) -> int:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        return int(np.random.SeedSequence().generate_state(1)[0] >> 1) if state is None else int(state)

    def __sklearn_clone__(self) -> Any:
        """Clone that shares the permission for one fit."""
        made = _clone_parametrized(self)
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
    if hasattr(X, "isna"):
        gaps = np.asarray(X.isna())
    elif getattr(getattr(X, "dtype", None), "kind", "") == "f" and isinstance(X, np.ndarray):
        gaps = ~np.isfinite(X)
    else:
        return first
    odd = np.flatnonzero(gaps.reshape(len(gaps), -1).any(axis=1))[:GAPS]
    return np.union1d(first, odd)


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
