"""Declared sets of labels, numbers or classes: the place in them of each cell, and the column of noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.base.validation import Floats, flag, frozen
from optrand.errors import InvalidInput
from optrand.release.cells import as_arrow, check_numeric, names_of, numbers_of
from optrand.release.diagnosis import declared_index

__all__ = ["MISSING", "NO_LABEL", "UNDECLARED", "DeclaredClasses", "DeclaredNumbers", "Places"]

MISSING, NO_LABEL, UNDECLARED = -1, -2, -3
"""In place of the place of a label: none was given, a cell that holds none, one that was not declared."""

Places = NDArray[np.int32]
"""Index in a declared set, or one of the above."""


@dataclass(frozen=True, eq=False)
class DeclaredNumbers:
    """A declared set of numbers.

    Attributes
    ----------
    labels : (k,) array
        Increasing.
    clip : bool
        Whether labels beyond its ends count as the nearest end.
    """

    labels: Floats
    clip: bool = False

    def __post_init__(self) -> None:
        """Freeze the array."""
        flag(self.clip, "clip")
        object.__setattr__(self, "labels", frozen(self.labels))

    @property
    def missing(self) -> int:
        """Place of a missing label."""
        return MISSING

    def released_type(self, kind: Any, column: str, *, text: bool) -> Any:
        """Arrow type of the noisy labels, for private ones of a type.

        Raises
        ------
        InvalidInput
            A type of no numbers.
        """
        if not text:
            check_numeric(kind, column)
        return pa.float64()

    def places(self, cells: Any, *, column: str, text: str | None) -> Places:
        """Place in the declared set of each cell, negative where it is none."""
        numbers = numbers_of(cells, column=column, text=text)
        nothing = np.isnan(numbers)
        found = declared_index(np.where(nothing, self.labels[0], numbers), self.labels, clip=self.clip)
        return np.where(nothing, NO_LABEL, np.where(found < 0, UNDECLARED, found)).astype(np.int32)

    def written(self, noisy: Floats, missing: NDArray[np.bool_], kind: Any) -> Any:  # noqa: ARG002
        """Column of noisy labels, null where one is missing."""
        return as_arrow(noisy, missing if missing.any() else None)


@dataclass(frozen=True)
class DeclaredClasses:
    """Declared classes by their names, which a mechanism knows by their places ``0, 1, ..., k - 1``.

    Attributes
    ----------
    names : tuple of str or None
        As text; integers and booleans (``true``, ``false``) as they are written. None is the class of missing labels.
    """

    names: tuple[str | None, ...]

    def __post_init__(self) -> None:
        """Check that they are distinct."""
        if len(set(self.names)) < len(self.names) or not self.names:
            raise InvalidInput(f"there are {len(self.names)} classes, expected at least one and no name twice")

    @property
    def labels(self) -> Floats:
        """The places, shape ``(k,)``."""
        return np.arange(len(self.names), dtype=np.float64)

    @property
    def missing(self) -> int:
        """Place of a missing label."""
        return self.names.index(None) if None in self.names else MISSING

    def released_type(self, kind: Any, column: str, *, text: bool) -> Any:
        """Arrow type of the noisy labels: that of the private ones, without a dictionary.

        Raises
        ------
        InvalidInput
            A type that cannot hold the classes.
        """
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if text:
            return pa.binary()
        names_of(pa.array([], kind), column=column, text=None)
        try:
            pa.array(self.names, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            raise InvalidInput(
                f"column {column!r} is of type {kind}, which does not hold the declared classes"
            ) from None
        return kind

    def places(self, cells: Any, *, column: str, text: str | None) -> Places:
        """Place of each cell among the classes, negative where it is none."""
        index = {name: place for place, name in enumerate(self.names) if name is not None}
        found = [index.get(name, UNDECLARED) for name in names_of(cells, column=column, text=text) if name is not None]
        return np.array(found, dtype=np.int32) if len(found) == len(cells) else self._with_nulls(cells, column, text)

    def _with_nulls(self, cells: Any, column: str, text: str | None) -> Places:
        index = {name: place for place, name in enumerate(self.names)}
        index.setdefault(None, MISSING)
        return np.array([index.get(name, UNDECLARED) for name in names_of(cells, column=column, text=text)], np.int32)

    def written(self, noisy: Floats, missing: NDArray[np.bool_], kind: Any) -> Any:
        """Column of noisy classes, null where one is missing."""
        if pa.types.is_binary(kind):
            names = [None if name is None else name.encode("utf-8", "surrogateescape") for name in self.names]
            classes = pa.array(names, kind)
        else:
            classes = pa.array(self.names, pa.string()).cast(kind)
        return classes.take(as_arrow(noisy.astype(np.int64), missing if missing.any() else None))
