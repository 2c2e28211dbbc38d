"""Public groups of rows in memory: a column of a frame, several, or a column of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.errors import InvalidInput
from optrand.release.column_groups import ColumnGroups
from optrand.release.frames import has_columns, opened

__all__ = ["RowGroups"]


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups, and which of them each row belongs to.

    Attributes
    ----------
    grouping : ColumnGroups
    codes : (rows,) array of int
    """

    grouping: ColumnGroups
    codes: NDArray[np.intp]

    @classmethod
    def read(cls, given: Any, groups: Any, rows: int, *, private: Sequence[Hashable] = ()) -> RowGroups:
        """Groups as a user passes them.

        Parameters
        ----------
        given : object
            The labels, or a frame that holds them.
        groups : str, int, list of str or array
            Of a frame the name of a column, or a list of names; otherwise one value for each row.
        rows : int
        private : sequence
            Names of columns that hold labels.

        Raises
        ------
        InvalidInput
            No such column, one of labels, another number of rows, or values of another type.

        Examples
        --------
        >>> found = RowGroups.read([2, 0, 1], ["b", "a", "b"], 3)
        >>> found.grouping.names, found.codes.tolist()
        (('["a"]', '["b"]'), [1, 0, 1])
        """
        framed = has_columns(given)
        if framed and isinstance(groups, str | int | list | tuple):
            named = list(groups) if isinstance(groups, list | tuple) else [groups]
            if any(name in private for name in named):
                raise InvalidInput("a column of groups holds labels, which are private: group by public columns")
            columns = {str(name): opened(given, name).labels for name in named}
            if len(columns) < len(named):
                raise InvalidInput("a column of groups is named twice, expected each once")
        elif isinstance(groups, str | int):
            raise InvalidInput("labels have no columns that could hold groups: pass the groups themselves")
        else:
            own = getattr(groups, "name", None)
            columns = {own if isinstance(own, str) and own else "groups": opened(groups).labels}
        if any(len(column) != rows for column in columns.values()):
            raise InvalidInput(f"groups are not one for each of the {rows} labels: pass one value for each row")
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        grouping = ColumnGroups(tuple(columns)).among([batch])
        return cls(grouping, grouping.codes(batch))
