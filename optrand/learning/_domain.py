"""Domains of labels, declared before any private label is read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats, as_declared, as_doubles, freeze_array, rectangular
from optrand.errors import InvalidInput

Codes = NDArray[np.int64]
"""Indices of labels in their domain."""


@dataclass(frozen=True)
class Domain:
    """Distinct labels, numbered from 0 in the order given.

    Parameters
    ----------
    labels : tuple
        Numbers, texts or other hashable values, at least two.
    nominal : bool
        Whether labels are names even if they are numbers, as the classes of a release are.

    Raises
    ------
    InvalidInput
        Fewer than two labels, labels that repeat, or a missing value among them.

    Examples
    --------
    >>> domain = Domain.of(["no", "yes"])
    >>> domain.codes(["yes", "yes", "no"]).tolist(), domain.numbers is None
    ([1, 1, 0], True)
    >>> domain.codes(["yes", "perhaps"])
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: at least one label is missing or outside the 2 declared labels: declare it,
    or leave its rows out by a rule that looks at no label
    """

    labels: tuple[Any, ...]
    nominal: bool = False

    def __post_init__(self) -> None:
        if not all(isinstance(label, Hashable) for label in self.labels) or any(
            label is None or label != label for label in self.labels
        ):
            raise InvalidInput("labels hold a missing or unhashable value, expected numbers or texts")
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise InvalidInput(
                f"labels has {len(set(self.labels))} distinct label(s) of {len(self.labels)} class(es), expected "
                "at least two, each once"
            )

    @classmethod
    def of(cls, labels: ArrayLike | Domain) -> Domain:
        """Make the domain of a sequence of labels. Scalars of numpy become Python's."""
        if isinstance(labels, Domain):
            return labels
        array = rectangular(labels, "labels") if isinstance(labels, np.ndarray) else _objects(labels)
        # Also from pandas and polars, whose cells have become doubles.
        kind = str(getattr(labels, "dtype", "")).lower()
        if kind in ("float16", "float32"):
            array = as_doubles(array.astype(kind))
        if array.ndim != 1:
            raise InvalidInput(f"labels has shape {array.shape}, expected one dimension: all labels that can occur")
        return cls(tuple(_plain(one) for one in array.tolist()))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def numbers(self) -> Floats | None:
        """Labels as floats if all are numbers, else None."""
        if self.nominal or not self._all_numbers:
            return None
        numbers = freeze_array(self.labels)
        return numbers if np.isfinite(numbers).all() and np.unique(numbers).size == numbers.size else None

    @property
    def _all_numbers(self) -> bool:
        return all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in self.labels)

    @cached_property
    def array(self) -> NDArray[Any]:
        """Labels as an array of numbers, truth values, texts or objects."""
        alike = any(all(isinstance(one, kind) for one in self.labels) for kind in (str, bool))
        array = np.array(self.labels) if alike or self._all_numbers else _objects(self.labels)
        array.flags.writeable = False
        return array

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Permutation that sorts the labels, or the identity if they cannot be compared."""
        try:
            return np.argsort(self.array, kind="stable")
        except TypeError:
            return np.arange(len(self))

    def codes(self, values: ArrayLike) -> Codes:
        """Return the index of each label in the domain, shape ``(n,)``. The message of an error discloses no label.

        Raises
        ------
        InvalidInput
            Labels that are not declared, or missing, or another shape than ``(n,)``.
        """
        array = rectangular(values, "labels")
        if array.ndim != 1 or array.size == 0:
            raise InvalidInput(f"labels have shape {array.shape}, expected one dimension and at least one label")
        if self.numbers is not None and array.dtype.kind in "iufb":
            near = as_declared(as_doubles(array), np.sort(self.numbers))
            # Integers that are too large for floats stay as they are.
            array = near if (near != array).any() else array
        distinct, at = (array, slice(None)) if array.dtype == object else np.unique(array, return_inverse=True)
        known = {label: code for code, label in enumerate(self.labels)}
        try:
            found = np.array([known.get(_plain(one), -1) for one in distinct.tolist()], dtype=np.int64)[at]
        except TypeError:
            # A label that cannot be hashed is not declared.
            found = np.array([-1])
        if (found < 0).any():
            raise InvalidInput(
                f"at least one label is missing or outside the {len(self)} declared labels: declare it, or "
                "leave its rows out by a rule that looks at no label"
            )
        return found


def _objects(labels: Any) -> NDArray[Any]:
    if isinstance(labels, (str, bytes)):
        raise InvalidInput("labels is one text, expected a sequence of labels")
    try:
        # None keeps numpy from reading cells of one length as a second dimension.
        return np.array([*labels, None], dtype=object)[:-1]
    except TypeError:
        raise InvalidInput(f"labels is of type {type(labels).__name__}, expected a sequence of labels") from None


def _plain(label: Any) -> Any:
    """Convert a scalar of numpy to one of Python."""
    if isinstance(label, np.floating):
        return float(as_doubles(np.array(label)))
    return label.item() if isinstance(label, np.generic) else label
