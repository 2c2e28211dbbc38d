"""Arrays and frames in memory as Arrow columns, and back: what goes in comes out as the same kind of thing.

Of a frame, public columns are kept as they are; the metadata of the frame and the label's own dictionary are not, for
they may hold a figure of the true labels. pandas and polars are looked at only where they are already loaded.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.errors import InvalidInput

__all__ = ["Opened", "has_columns", "opened"]

Kept = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Opened(ABC):
    """An array, a column or a frame whose labels are to be replaced.

    Attributes
    ----------
    given : object
        As it was given. Private.
    column : object
        The name of the labels; None of a single column.
    """

    given: Any = field(repr=False)
    column: Any = None

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of labels."""

    @abstractmethod
    def arrow(self, column: Any) -> Any:
        """A column as an Arrow array, a gap as null.

        Raises
        ------
        InvalidInput
            No such column, or cells that no Arrow type holds together; none is repeated.
        """

    @property
    def labels(self) -> Any:
        """The private labels as an Arrow array."""
        return self.arrow(self.column)

    def check_holds(self, classes: Any) -> None:  # noqa: B027
        """Refuse classes, an Arrow array, that the column's own type does not know, :class:`InvalidInput`."""

    @abstractmethod
    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        """A new object of the kind that was given, with other labels.

        Parameters
        ----------
        labels : pyarrow.Array
            One for each row that is kept.
        kept : (rows,) array of bool, optional
            Which rows those are; all by default.
        """


def opened(given: Any, column: Any = None) -> Opened:
    """What to read labels from, and how to put others in their place.

    Parameters
    ----------
    given : object
        An array of numpy or a list; a Series or DataFrame of pandas or polars; an Array, ChunkedArray, RecordBatch or
        Table of Arrow.
    column : optional
        The name of the labels, where there are several columns.

    Raises
    ------
    InvalidInput
        Something else, a lazy frame, a frame without a column named, or a column where there is no frame.

    Examples
    --------
    >>> given = opened(pa.table({"a": ["p", "q"], "y": [2, 0]}), "y")
    >>> given.labels.to_pylist(), given.replaced(pa.array([1.0, 2.0])).to_pydict()
    ([2, 0], {'a': ['p', 'q'], 'y': [1.0, 2.0]})
    >>> opened(np.array([[1, 2], [3, 4]])).replaced(pa.array([0.0, 1.0, 2.0, 3.0])).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    found = _kind(given)
    if found is None:
        raise InvalidInput(
            f"labels are of type {type(given).__name__}, expected an array of numpy, a Series or DataFrame of pandas "
            "or polars, or an array or table of Arrow; a lazy frame draws anew each time it is asked: collect it first"
        )
    kind, framed = found
    if framed and column is None:
        raise InvalidInput(f"labels are a column of a {type(given).__name__}: name it, column=...")
    if column is not None and not framed:
        raise InvalidInput(f"labels are of type {type(given).__name__}, which has no columns: leave out column")
    return kind(given, column)


def has_columns(given: object) -> bool:
    """Whether an object is a frame or a table, rather than one column.

    Examples
    --------
    >>> has_columns(pa.table({"y": [1]})), has_columns([1])
    (True, False)
    """
    found = _kind(given)
    return found is not None and found[1]


def _kind(given: Any) -> tuple[type[Opened], bool] | None:
    """The adapter of an object, and whether it has columns."""
    if isinstance(given, (pa.Table, pa.RecordBatch)):
        return _ArrowTable, True
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _ArrowColumn, False
    for module, adapters in (("pandas", (_PandasColumn, _PandasFrame)), ("polars", (_PolarsColumn, _PolarsFrame))):
        library = sys.modules.get(module)
        for adapter, name in zip(adapters, ("Series", "DataFrame"), strict=True):
            if library is not None and isinstance(given, getattr(library, name)):
                return adapter, name == "DataFrame"
    return (_Array, False) if isinstance(given, (np.ndarray, list, tuple)) else None


def _as_arrow(cells: Any, **options: Any) -> Any:
    try:
        return pa.array(cells, **options)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # The message would quote a cell.
        raise InvalidInput(
            "the column mixes types, such as numbers and text, or holds what is neither: expected one type"
        ) from None


def _single(columns: Sequence[Any], wanted: Any) -> int:
    """Place of a name that occurs once."""
    names = list(columns)
    if names.count(wanted) != 1:
        raise InvalidInput(f"there are {names.count(wanted)} columns named {wanted!r} among {len(names)}, expected one")
    return names.index(wanted)


class _Array(Opened):
    """Numpy arrays of any shape, masked ones with their gaps, and lists."""

    @property
    def rows(self) -> int:
        return int(self._cells.size)

    @property
    def _cells(self) -> Any:
        try:
            if np.ma.isMaskedArray(self.given):
                return np.ma.asarray(self.given)
            cells = np.asarray(self.given)
        except ValueError:
            raise InvalidInput("labels are a ragged list: expected as many in each row") from None
        # Of cells of several types in a list numpy would make one, as True and 7 to 1 and 7.
        return cells if isinstance(self.given, np.ndarray) else np.array(self.given, dtype=object)

    def arrow(self, column: Any) -> Any:
        if column is not None:
            raise InvalidInput(f"an array has no column named {column!r}: give it as an array of its own")
        cells = self._cells
        gaps = np.ma.getmaskarray(cells).ravel() if np.ma.isMaskedArray(cells) else None
        flat = np.ma.getdata(cells).ravel()
        if flat.dtype.kind not in "biufUO" or flat.dtype == np.longdouble:
            raise InvalidInput(f"labels are of type {flat.dtype}, expected numbers, booleans or text")
        return _as_arrow(flat, mask=gaps)

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        given, gaps = self._cells, np.asarray(labels.is_null())
        masked = np.ma.isMaskedArray(given)
        if masked and gaps.any() and not gaps.all():
            # What stands behind a mask is any label that was drawn, so that integers stay such.
            labels = labels.fill_null(labels.drop_null()[0])
        cells = labels.to_numpy(zero_copy_only=False)
        if given.dtype.kind == "U" and not labels.null_count:
            cells = cells.astype(np.str_)
        if masked:
            cells = np.ma.array(cells, mask=gaps)
        if kept is None or kept.all():
            cells = cells.reshape(given.shape)
        return cells if isinstance(self.given, np.ndarray) else cells.tolist()


class _ArrowColumn(Opened):
    @property
    def rows(self) -> int:
        return len(self.given)

    def arrow(self, column: Any) -> Any:
        if column is not None:
            raise InvalidInput(f"an Arrow array has no column named {column!r}: give a table")
        return self.given.combine_chunks() if isinstance(self.given, pa.ChunkedArray) else self.given

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:  # noqa: ARG002
        return pa.chunked_array([labels]) if isinstance(self.given, pa.ChunkedArray) else labels


class _ArrowTable(Opened):
    @property
    def rows(self) -> int:
        return int(self.given.num_rows)

    def arrow(self, column: Any) -> Any:
        found = self.given.column(_single(self.given.schema.names, column))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        rest = self.given if kept is None else self.given.filter(pa.array(kept))
        place = _single(rest.schema.names, self.column)
        return rest.set_column(place, pa.field(self.column, labels.type), labels).replace_schema_metadata(None)


class _PandasColumn(Opened):
    @property
    def rows(self) -> int:
        return len(self.given)

    def arrow(self, column: Any) -> Any:
        if column is not None:
            raise InvalidInput(f"a Series has no column named {column!r}: give a DataFrame")
        return _from_pandas(self.given)

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        rest = self.given if kept is None else self.given[kept]
        return _to_pandas(labels, rest)


class _PandasFrame(Opened):
    @property
    def rows(self) -> int:
        return len(self.given)

    def arrow(self, column: Any) -> Any:
        return _from_pandas(self.given.iloc[:, _single(self.given.columns, column)])

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        place = _single(self.given.columns, self.column)
        frame = self.given.copy() if kept is None else self.given[kept].copy()
        frame.attrs = {}
        frame.isetitem(place, _to_pandas(labels, frame.iloc[:, place]))
        return frame


def _from_pandas(series: Any) -> Any:
    if str(series.dtype) == "category":
        # Categories are what occurred: they are never taken as declared, nor is their order.
        categories = series.cat.categories
        # Integers have no gaps.
        series = series.astype(object if series.hasnans and categories.dtype.kind in "iub" else categories.dtype)
    found = _as_arrow(series, from_pandas=True)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _to_pandas(labels: Any, like: Any) -> Any:
    """A Series with the index and the name of another, and its type where labels are no floats."""
    cells = labels.to_pandas(integer_object_nulls=True)
    kind = like.dtype
    if str(kind) == "category":
        cells = cells.astype("category")
    elif not pa.types.is_floating(labels.type) and not (
        labels.null_count and isinstance(kind, np.dtype) and kind.kind in "iub"
    ):
        cells = cells.astype(kind)
    return type(like)(cells.array, index=like.index, name=like.name)


class _PolarsColumn(Opened):
    @property
    def rows(self) -> int:
        return len(self.given)

    def arrow(self, column: Any) -> Any:
        if column is not None:
            raise InvalidInput(f"a Series has no column named {column!r}: give a DataFrame")
        return _from_polars(self.given)

    def check_holds(self, classes: Any) -> None:
        _check_known(classes, self.given)

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:  # noqa: ARG002
        return _to_polars(labels, self.given)


class _PolarsFrame(Opened):
    @property
    def rows(self) -> int:
        return int(self.given.height)

    def arrow(self, column: Any) -> Any:
        return _from_polars(self.given.to_series(_single(self.given.columns, column)))

    def check_holds(self, classes: Any) -> None:
        _check_known(classes, self.given.to_series(_single(self.given.columns, self.column)))

    def replaced(self, labels: Any, kept: Kept | None = None) -> Any:
        place = _single(self.given.columns, self.column)
        noisy = _to_polars(labels, self.given.to_series(place))
        rest = self.given if kept is None else self.given.filter(kept.tolist())
        return rest.with_columns(noisy)


def _from_polars(series: Any) -> Any:
    found = series.to_arrow()
    return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found


def _to_polars(labels: Any, like: Any) -> Any:
    """A Series with the name of another, and its type where labels are no floats."""
    noisy = type(like)(like.name, labels)
    return noisy if pa.types.is_floating(labels.type) else noisy.cast(like.dtype)


def _check_known(classes: Any, like: Any) -> None:
    """Refuse classes that an Enum of polars does not list."""
    known = getattr(like.dtype, "categories", None)
    if known is not None and type(like.dtype).__name__ == "Enum":
        unknown = set(classes.drop_null().to_pylist()) - set(known.to_list())
        if unknown:
            raise InvalidInput(f"{len(unknown)} declared classes are not in the column's Enum: cast it to text first")
