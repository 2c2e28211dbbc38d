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

from optrand.base.validation import Floats, frozen
from optrand.errors import InvalidInput
from optrand.release.cells import as_arrow, check_numeric, distinct_cells, names_of, numbers_of
from optrand.release.diagnosis import REMEDY, Diagnosis, declared_index, undeclared
from optrand.release.ids import Ids, column_ids, row_ids

__all__ = [
    "MISSING",
    "NO_LABEL",
    "UNDECLARED",
    "BatchRandomizer",
    "DeclaredClasses",
    "DeclaredNumbers",
    "Draw",
    "Grouping",
    "Nulls",
    "Records",
]

MISSING, NO_LABEL, UNDECLARED = -1, -2, -3
"""In place of the place of a label: none was given, a cell that holds none, one that was not declared."""

Nulls = Literal["refuse", "drop", "pass", "class"]
"""A missing label: stops the release; its row is left out; it stays missing; or it is a class of its own.

`drop` and `pass` make public which labels are missing.
"""

Places = NDArray[np.int32]


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
