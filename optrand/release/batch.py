"""One record batch of private labels in, one of noisy labels out: the step that every way of running a release shares.

A :class:`BatchRandomizer` holds nothing secret and can be pickled; what draws is handed to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.release.cells import distinct_cells
from optrand.release.declared_sets import MISSING, NO_LABEL, UNDECLARED, DeclaredClasses, DeclaredNumbers, Places
from optrand.release.diagnosis import REMEDY, Diagnosis, undeclared
from optrand.release.ids import Ids, column_ids, row_ids

__all__ = ["BatchRandomizer", "Draw", "Grouping", "Nulls", "Records"]

Nulls = Literal["refuse", "drop", "pass", "class"]
"""A missing label: stops the release; its row is left out; it stays missing; or it is a class of its own.

`drop` and `pass` make public which labels are missing.
"""


class Draw(Protocol):
    """One noisy label for each of some labels."""

    def __call__(self, values: Floats, ids: Ids, /) -> Floats:
        """Draw for `values`, shape ``(n,)``, of the records with these ids, shape ``(n, 2)``."""


class Grouping(Protocol):
    """A partition of rows by public columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""

    def codes(self, batch: Any) -> NDArray[np.intp]:
        """Index of the group of each row."""


@dataclass(frozen=True, eq=False)
class Records:
    """The labels of a batch by their places, whose records they are, and their groups. Private.

    Attributes
    ----------
    places : (rows,) array
        In the declared set, or negative.
    ids : (rows, 2) array
    groups : (rows,) array or None
        None for a single group.
    """

    places: Places = field(repr=False)
    ids: Ids = field(repr=False)
    groups: NDArray[np.intp] | None = field(default=None, repr=False)

    def counts(self, groups: int, k: int) -> NDArray[np.intp]:
        """How often each of `k` declared labels occurs in each group, shape ``(groups, k)``."""
        present = slice(None) if self.places.min(initial=0) >= 0 else self.places >= 0
        cells = self.places[present]
        if self.groups is not None:
            cells = self.groups[present] * k + cells
        found: NDArray[np.intp] = np.bincount(cells, minlength=groups * k).reshape(groups, k)
        return found


@dataclass(frozen=True, kw_only=True)
class BatchRandomizer:
    """Replacement of the labels of a record batch.

    Parameters
    ----------
    column : str
        Of the labels.
    declared : DeclaredNumbers or DeclaredClasses
    nulls : Nulls
        What becomes of a missing label.
    id_column : str, optional
        Of the record ids; row numbers by default.
    grouping : Grouping, optional
        One group by default.
    text : str, optional
        The decimal point, where labels are text.
    released : tuple of str, optional
        The columns of the released batch, in their order; all by default.

    Raises
    ------
    InvalidInput
        An unknown policy for missing labels, or one that needs a class for them which was not declared.

    Examples
    --------
    >>> from optrand import rr, tabulate
    >>> table = tabulate(rr(range(3), epsilon=1.0))
    >>> replace = BatchRandomizer(column="y", declared=DeclaredNumbers(np.arange(3.0)))
    >>> batch = pa.record_batch({"a": ["p", "q"], "y": [2, 0]})
    >>> noisy = replace(batch, [lambda values, ids: table.sample(values)])
    >>> noisy.schema.names, noisy["a"].to_pylist(), set(noisy["y"].to_pylist()) <= {0.0, 1.0, 2.0}
    (['a', 'y'], ['p', 'q'], True)
    """

    column: str
    declared: DeclaredNumbers | DeclaredClasses
    nulls: Nulls = "refuse"
    id_column: str | None = None
    grouping: Grouping | None = None
    text: str | None = None
    released: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the policy for missing labels."""
        if self.nulls not in ("refuse", "drop", "pass", "class"):
            raise InvalidInput(f"missing labels are treated as {self.nulls!r}, expected refuse, drop, pass or class")
        if (self.nulls == "class") != (self.declared.missing != MISSING):
            raise InvalidInput("missing labels are a class exactly if None is among the declared classes: declare both")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that :meth:`read` needs."""
        groups = self.grouping.columns if self.grouping else ()
        return tuple(dict.fromkeys((self.column, *([self.id_column] if self.id_column else []), *groups)))

    def read(self, batch: Any, *, first_row: int = 0, id_key: bytes = b"") -> Records:
        """Places of the labels of a batch, with their ids and groups.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            With :attr:`columns`.
        first_row : int
            Number of its first row in the table.
        id_key : bytes
            Of the hash of ids that are text.

        Raises
        ------
        InvalidInput
            A record id is missing, or a column of another type.
        """
        places = self._places(batch)
        if self.id_column is None:
            ids = row_ids(first_row, batch.num_rows)
        else:
            ids = column_ids(_only(batch, self.id_column), name=self.id_column, key=id_key)
        return Records(places, ids, self.grouping.codes(batch) if self.grouping else None)

    def _places(self, batch: Any) -> Places:
        cells, at = distinct_cells(_only(batch, self.column), text=self.text)
        of_cells = np.append(self.declared.places(cells, column=self.column, text=self.text), self.declared.missing)
        found: Places = of_cells.astype(np.int32)[at]
        return found

    def check(self, records: Records) -> None:
        """Refuse labels that cannot be released.

        Raises
        ------
        InvalidInput
            A label is missing and may not be, holds no label, or is not declared: neither which nor how many is said.
        """
        lowest = int(records.places.min(initial=0))
        if lowest == 0 or (lowest == MISSING and self.nulls in ("drop", "pass")):
            return
        if (records.places == NO_LABEL).any() or (self.nulls == "refuse" and (records.places == MISSING).any()):
            if isinstance(self.declared, DeclaredNumbers):
                raise InvalidInput(
                    f"at least one label in column {self.column!r} is missing or no finite number that floats can "
                    f"hold, such as 7, -0.5 or 1e3: fill or drop such rows; {REMEDY}"
                )
            raise InvalidInput(
                f"at least one label in column {self.column!r} is missing: fill or drop such rows; {REMEDY}"
            )
        clip = isinstance(self.declared, DeclaredNumbers) and self.declared.clip
        raise undeclared(self.declared.labels.size, clip=clip)

    def diagnosis(self, batch: Any) -> Diagnosis:
        """Exact counts of labels of a batch that :meth:`check` may refuse. Not private."""
        codes = self._places(batch)
        counts = (int((codes == code).sum()) for code in (MISSING, NO_LABEL, UNDECLARED))
        return Diagnosis(codes.size, *counts)

    def __call__(
        self,
        batch: Any,
        draws: Sequence[Draw],
        *,
        first_row: int = 0,
        id_key: bytes = b"",
        records: Records | None = None,
    ) -> Any:
        """Replace the labels of a batch.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        draws : sequence of Draw
            One for each group.
        first_row, id_key
            As for :meth:`read`.
        records : Records, optional
            What :meth:`read` has found in the batch, if it was read before.

        Returns
        -------
        pyarrow.RecordBatch
            Without metadata; other columns as they are.

        Raises
        ------
        InvalidInput
            As :meth:`read` and :meth:`check`.
        """
        if records is None:
            records = self.read(batch, first_row=first_row, id_key=id_key)
        self.check(records)
        missing = records.places < 0
        noisy = self._drawn(records, missing, draws)
        text = self.text is not None
        kind = self.declared.released_type(_only(batch, self.column).type, self.column, text=text)
        at = batch.schema.names.index(self.column)
        columns, fields = list(batch.columns), list(batch.schema)
        columns[at] = self.declared.written(noisy, missing, kind)
        fields[at] = pa.field(self.column, columns[at].type)
        if self.released is not None:
            kept = [i for i, name in enumerate(batch.schema.names) if name in self.released]
            columns, fields = [columns[i] for i in kept], [fields[i] for i in kept]
        released = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        if self.nulls == "drop" and missing.any():
            released = released.filter(pa.array(~missing))
        return released

    def _drawn(self, records: Records, missing: NDArray[np.bool_], draws: Sequence[Draw]) -> Floats:
        labels = self.declared.labels
        present = slice(None) if not missing.any() else ~missing
        if records.groups is None:
            noisy = np.zeros(missing.size)
            noisy[present] = draws[0](labels[records.places[present]], records.ids[present])
            return noisy
        noisy = np.zeros(missing.size)
        # Groups that share what draws are drawn together.
        distinct = list({id(draw): draw for draw in draws}.values())
        place = {id(draw): i for i, draw in enumerate(distinct)}
        drawing = np.array([place[id(draw)] for draw in draws], dtype=np.intp)[records.groups]
        for i in np.unique(drawing):
            rows = np.flatnonzero((drawing == i) & ~missing)
            noisy[rows] = distinct[i](labels[records.places[rows]], records.ids[rows])
        return noisy


def _only(batch: Any, name: str) -> Any:
    """The one column of a name."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        raise InvalidInput(f"the table has {len(found)} columns named {name!r}, expected one")
    return batch.column(found[0])
