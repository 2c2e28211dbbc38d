"""Groups of rows by what public columns hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.errors import InputChanged, InvalidInput
from optrand.release.streams.source import Source

__all__ = ["ColumnGroups"]

Key = tuple[str | None, ...]


@dataclass(frozen=True)
class ColumnGroups:
    """Partition of a table by public columns, which were not computed from the labels.

    Parameters
    ----------
    columns : tuple of str
        Integers, booleans or text; a missing value is one of its own.
    keys : tuple of tuple of str or None
        The groups, by their values as text; :meth:`of` finds them.

    Raises
    ------
    InvalidInput
        No columns, or one twice.

    Examples
    --------
    >>> batch = pa.record_batch({"state": ["CA", "NY", "CA"], "y": [1, 2, 3]})
    >>> groups = ColumnGroups(("state",)).among([batch])
    >>> groups.names, groups.codes(batch).tolist()
    (('["CA"]', '["NY"]'), [0, 1, 0])
    """

    columns: tuple[str, ...]
    keys: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        """Check the columns."""
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidInput("groups are made by one column or several, none of them twice")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """Each group's values as a JSON list, which no other group has."""
        return tuple(json.dumps(key, ensure_ascii=False) for key in self.keys)

    def of(self, source: Source) -> ColumnGroups:
        """The same columns, with the groups of a table: a pass over these columns alone.

        Raises
        ------
        InvalidInput
            A column of another type.
        """
        return self.among(batch for _, batch in source.batches(self.columns))

    def among(self, batches: Iterable[Any]) -> ColumnGroups:
        """The same columns, with the groups of some batches, in an order that does not depend on that of rows."""
        found: set[Key] = set()
        for batch in batches:
            found.update(self._keys(batch)[0])
        return replace(
            self, keys=tuple(sorted(found, key=lambda key: [(part is not None, part or "") for part in key]))
        )

    def codes(self, batch: Any) -> NDArray[np.intp]:
        """Index of the group of each row.

        Raises
        ------
        InputChanged
            A group that was not there before.
        """
        keys, codes = self._keys(batch)
        places = {key: place for place, key in enumerate(self.keys)}
        if any(key not in places for key in keys):
            raise InputChanged("the table holds another group of rows than when it was first read: start again")
        return np.array([places[key] for key in keys], dtype=np.intp)[codes]

    def _keys(self, batch: Any) -> tuple[list[Key], NDArray[np.intp]]:
        """Distinct groups of a batch, and which of them each row belongs to."""
        keys: list[Key] = [()]
        codes = np.zeros(batch.num_rows, dtype=np.intp)
        for name in self.columns:
            texts, of_rows = _distinct(batch.column(name), name)
            combined, codes = np.unique(codes * max(len(texts), 1) + of_rows, return_inverse=True)
            keys = [(*keys[code // len(texts)], texts[code % len(texts)]) for code in combined.tolist()]
        return keys, codes.astype(np.intp)


def _distinct(cells: Any, name: str) -> tuple[list[str | None], NDArray[np.intp]]:
    """Distinct values of a column as text, and which of them each row has."""
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not (text or binary or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InvalidInput(f"column {name!r} is of type {kind}, expected integers, booleans or text to group by")
    encoded = cells.cast(kind).dictionary_encode(null_encoding="encode")
    try:
        values = encoded.dictionary.cast(pa.string()).to_pylist()
    except pa.ArrowInvalid:
        raise InvalidInput(f"at least one cell of column {name!r} is no UTF-8 text to group by") from None
    return values, encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
