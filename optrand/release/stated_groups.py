"""Groups of a release as its record names them, found again in the public columns of its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.errors import InputChanged, InvalidFile, InvalidInput
from optrand.release.column_groups import ColumnGroups
from optrand.release.frames import has_columns, opened

__all__ = ["group_batch", "group_codes", "stated_groups"]


def stated_groups(columns: tuple[str, ...], names: Sequence[str | None]) -> ColumnGroups:
    """Partition by columns into groups that a record names, in its order.

    Raises
    ------
    InvalidFile
        A name that is no list of texts, one for each column.

    Examples
    --------
    >>> stated_groups(("state",), ['["NY"]', '["CA"]']).codes(pa.record_batch({"state": ["CA", "NY"]})).tolist()
    [1, 0]
    """
    keys = []
    for name in names:
        try:
            key = json.loads(name or "")
        except ValueError:
            key = None
        if not isinstance(key, list) or len(key) != len(columns):
            raise InvalidFile("a group of the record has no name of one value for each of its columns")
        if not all(part is None or isinstance(part, str) for part in key):
            raise InvalidFile("a group of the record is named by something else than text")
        keys.append(tuple(key))
    return ColumnGroups(columns, tuple(keys))


def group_batch(given: Any, columns: tuple[str, ...]) -> Any:
    """Record batch of columns of groups: of a frame or a mapping by their names, of one column the column itself.

    Raises
    ------
    InvalidInput
        No such columns, or of several lengths.
    """
    if given is None:
        raise InvalidInput(f"the release is by groups of {', '.join(columns)}: pass their columns, groups=...")
    if isinstance(given, Mapping):
        if missing := [name for name in columns if name not in given]:
            raise InvalidInput(f"groups are missing for {', '.join(missing)}: pass a column for each")
        arrays = [opened(given[name]).labels for name in columns]
    elif has_columns(given):
        arrays = [opened(given, name).labels for name in columns]
    elif len(columns) == 1:
        arrays = [opened(given).labels]
    else:
        raise InvalidInput(f"groups are made by {len(columns)} columns: pass a frame, or a mapping of their names")
    if len({len(array) for array in arrays}) > 1:
        raise InvalidInput("columns of groups have several lengths, expected one value for each row")
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def group_codes(groups: ColumnGroups, batch: Any, rows: int) -> NDArray[np.intp]:
    """Index of the group of each of so many released rows.

    Raises
    ------
    InvalidInput
        Another number of rows, or a group that the release does not know.
    """
    if batch.num_rows != rows:
        raise InvalidInput(f"there are {batch.num_rows} groups for {rows} released values, expected one for each")
    try:
        return groups.codes(batch)
    except InputChanged:
        raise InvalidInput(
            "at least one row is of a group that the release does not know: pass the columns as they were released"
        ) from None
