"""Arrays and frames in memory as Arrow columns, and back: the kind that goes in comes out.

numpy, lists, pandas, polars and Arrow keep their kind. Anything else that exports Arrow by the PyCapsule protocol
(DuckDB, narwhals, Ibis, ...) comes back as an Arrow table. Public columns are kept as they are. Metadata of a frame and
the label's own dictionary are not, since they may hold a figure of the true labels.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.base._validation import has_masked_cells
from optrand.errors import InvalidInput

Kept = NDArray[np.bool_]

ARRAYS: Any = np.ndarray | list | tuple | range
ARROW: Any = pa.Array | pa.ChunkedArray
PANDAS = ("Series", "Index", "ExtensionArray")
"""Classes of pandas that are columns."""


def is_frame(data: object) -> bool:
    """Decide whether an object has columns, rather than being one."""
    if _is_of(data, "polars", "LazyFrame"):
        raise InvalidInput("a LazyFrame is computed again at each use: collect it first")
    if isinstance(data, ARRAYS | ARROW) or _is_of(data, "pandas", *PANDAS) or _is_of(data, "polars", "Series"):
        return False
    if isinstance(data, pa.RecordBatch) or _is_of(data, "pandas", "DataFrame") or hasattr(data, "__arrow_c_stream__"):
        return True
    if hasattr(data, "__arrow_c_array__"):
        return False
    raise InvalidInput(
        f"labels are of type {type(data).__name__}, expected an array, a list, a column or frame of pandas or polars, "
        "or anything that exports Arrow"
    )


def arrow_column(data: Any, name: Any = None) -> Any:
    """Return a column of a frame, or an object that is a column, as an Arrow array."""
    if is_frame(data):
        if name is None:
            raise InvalidInput(f"labels are a column of a {type(data).__name__}: name it, column=...")
        if _is_of(data, "pandas", "DataFrame"):
            return arrow_column(data.iloc[:, _single(data.columns, name)])
        if _is_of(data, "polars", "DataFrame"):
            return arrow_column(data.to_series(_single(data.columns, name)))
        table = as_table(data)
        return _one_chunk(table.column(_single(table.schema.names, name)))
    if isinstance(data, ARRAYS):
        return _from_array(_cells(data))
    if _is_of(data, "polars", "Series"):
        return _from_polars(data)
    if str(getattr(data, "dtype", "")).startswith("Sparse"):
        data = data.astype(data.dtype.subtype)
    return _one_chunk(data if isinstance(data, ARROW) else _import(pa.array, data))


def check_frame(data: Any, column: Any, labels: Any) -> None:
    """Refuse a frame of pandas whose index is named like the labels or equals them, since it would be released too."""
    if not _is_of(data, "pandas", "DataFrame", "Series"):
        return
    own = column if _is_of(data, "pandas", "DataFrame") else data.name
    for name in {column, own} - {None}:
        if name in list(data.index.names):
            raise InvalidInput(
                f"the index is named {name!r}, like the labels, and would be released with them: reset_index(drop=True)"
            )
    for number in range(data.index.nlevels):
        level = data.index.get_level_values(number)
        # A range from 0 in steps of 1 numbers the rows; other ranges may be labels.
        if type(level).__name__ == "RangeIndex" and (level.start, level.step) == (0, 1):
            continue
        if _are_equal(level, labels):
            raise InvalidInput(
                "the index equals the labels, cell by cell, and would be released with them: reset_index(drop=True)"
            )


def replace_labels(data: Any, noisy: Mapping[Any, Any], kept: Kept | None) -> Any:
    """Return an object of the kind that was given, with noisy labels in place of the private ones.

    They are Arrow arrays by the name of their column, None for an object that is a column: a cell for each `kept` row.
    """
    if is_frame(data):
        if _is_of(data, "pandas", "DataFrame"):
            return _replace_in_pandas(data, noisy, kept)
        if _is_of(data, "polars", "DataFrame"):
            rest = data if kept is None else data.filter(kept.tolist())
            return rest.with_columns([_to_polars(labels, rest.get_column(name)) for name, labels in noisy.items()])
        table = _replace_in_table(as_table(data), noisy, kept)
        return table.combine_chunks().to_batches()[0] if isinstance(data, pa.RecordBatch) else table
    (labels,) = noisy.values()
    if _is_of(data, "pandas", "Series"):
        return _to_pandas(labels, data if kept is None else data[kept])
    if _is_of(data, "pandas", *PANDAS):
        return labels.to_pandas().array
    if _is_of(data, "polars", "Series"):
        return _to_polars(labels, data)
    if isinstance(data, ARRAYS):
        return _to_array(labels, data, kept)
    return pa.chunked_array([labels]) if isinstance(data, pa.ChunkedArray) else labels


def _is_of(data: object, library: str, *names: str) -> bool:
    """Decide whether an object is of a class of a library, which need not be there."""
    known = ((base.__module__.partition(".")[0], base.__name__) for base in type(data).__mro__)
    return any(module == library and name in names for module, name in known)


def _import(make: Callable[..., Any], cells: Any, **options: Any) -> Any:
    """Import cells or a frame to Arrow, UUIDs as bytes."""
    objects = getattr(getattr(cells, "dtype", None), "kind", "") == "O"
    if objects and len(cells) and all(isinstance(cell, uuid.UUID) for cell in cells):
        return pa.array([cell.bytes for cell in cells], pa.binary(16))
    try:
        return make(cells, **options)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # The message would quote a cell.
        raise InvalidInput(
            "the column mixes types, such as numbers and text, or holds what is neither: expected one type"
        ) from None


def _one_chunk(column: Any) -> Any:
    """Return one array. Categories and their order may depend on the labels, so they are not taken as declared."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _single(columns: Sequence[Any], wanted: Any) -> int:
    # A comparison with pandas.NA is NA, not a bool.
    places = [place for place, name in enumerate(columns) if type(name == wanted) is bool and name == wanted]
    if len(places) != 1:
        raise InvalidInput(f"there are {len(places)} columns named {wanted!r} among {len(columns)}, expected one")
    return places[0]


def as_table(data: Any) -> Any:
    """Return a frame as an Arrow table."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    return _import(pa.table, data)


def _cells(data: Any) -> Any:
    if np.ma.isMaskedArray(data):
        return np.ma.asarray(data)
    if isinstance(data, range):
        return np.arange(data.start, data.stop, data.step)
    if has_masked_cells(data):
        raise InvalidInput("labels are a list with masked cells: pass one masked array, or None in their place")
    try:
        cells = np.asarray(data)
    except ValueError:
        raise InvalidInput("labels are a ragged list: expected as many in each row") from None
    # numpy would make one type of several in a list, such as 1 and 7 of True and 7.
    return cells if isinstance(data, np.ndarray) else np.array(data, dtype=object)


def _from_array(cells: Any) -> Any:
    gaps = np.ma.getmaskarray(cells).ravel() if np.ma.isMaskedArray(cells) else None
    flat = np.ma.getdata(cells).ravel()
    if flat.dtype.kind not in "biufUOM" or flat.dtype == np.longdouble:
        raise InvalidInput(f"labels are of type {flat.dtype}, expected numbers, booleans or text")
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    return _import(pa.array, flat, mask=gaps)


def _to_array(labels: Any, data: Any, kept: Kept | None) -> Any:
    given, gaps = _cells(data), np.asarray(labels.is_null())
    masked = np.ma.isMaskedArray(given)
    if masked and gaps.any() and not gaps.all():
        # Masked cells get any drawn label, so that integers stay integers.
        labels = labels.fill_null(labels.drop_null()[0])
    if labels.null_count and not pa.types.is_floating(labels.type):
        # numpy would convert integers to floats, which cannot represent large ones.
        cells = np.array(labels.to_pylist(), dtype=object)
    else:
        cells = labels.to_numpy(zero_copy_only=False)
    if given.dtype.kind == "U" and not labels.null_count:
        cells = cells.astype(np.str_)
    if masked:
        cells = np.ma.array(cells, mask=gaps)
    if kept is None or kept.all():
        cells = cells.reshape(given.shape)
    return cells if isinstance(data, np.ndarray | range) else cells.tolist()


def _replace_in_table(table: Any, noisy: Mapping[Any, Any], kept: Kept | None) -> Any:
    rest = table if kept is None else table.filter(pa.array(kept))
    for name, labels in noisy.items():
        rest = rest.set_column(_single(rest.schema.names, name), pa.field(name, labels.type), labels)
    return rest.replace_schema_metadata(None)


def materialize(data: Any) -> Any:
    """Return a frame that can be read more than once: an Arrow table in place of an object that only exports Arrow."""
    known = isinstance(data, pa.Table | pa.RecordBatch) or _is_of(data, "pandas", "DataFrame")
    return as_table(data) if is_frame(data) and not (known or _is_of(data, "polars", "DataFrame")) else data


def _replace_in_pandas(data: Any, noisy: Mapping[Any, Any], kept: Kept | None) -> Any:
    frame = data.copy() if kept is None else data[kept].copy()
    frame.attrs = {}
    for name, labels in noisy.items():
        place = _single(frame.columns, name)
        frame.isetitem(place, _to_pandas(labels, frame.iloc[:, place]))
    return frame


def _to_pandas(labels: Any, like: Any) -> Any:
    """Return a Series with the index and the name of another, and its type unless labels are floats."""
    cells = labels.to_pandas(integer_object_nulls=True)
    kind = like.dtype
    if str(kind) == "category":
        cells = cells.astype("category")
    elif not pa.types.is_floating(labels.type) and not (
        labels.null_count and isinstance(kind, np.dtype) and kind.kind in "iub"
    ):
        cells = cells.astype(kind)
    # Subclasses of Series construct themselves.
    return like._constructor(cells.array, index=like.index, name=like.name)


def _are_equal(level: Any, labels: Any) -> bool:
    """Decide whether a level of an index holds the labels, row by row."""
    try:
        held = arrow_column(level)
        same = pc.all(pc.equal(held, labels)).as_py() is not False
    except (InvalidInput, pa.ArrowException):
        # The types do not compare.
        return False
    return bool(same and held.null_count < len(held) and held.is_null().equals(labels.is_null()))


def _from_polars(series: Any) -> Any:
    try:
        found = series.to_arrow()
        if str(found.type).startswith("extension<_pl"):
            raise pa.ArrowInvalid
    except pa.ArrowException:
        raise InvalidInput(f"a column is of type {series.dtype}, which Arrow does not have: cast it first") from None
    return _one_chunk(found)


def _to_polars(labels: Any, like: Any) -> Any:
    """Return a Series with the name of another, and its type unless labels are floats."""
    noisy = type(like)(like.name, labels)
    if pa.types.is_floating(labels.type):
        return noisy
    known = getattr(like.dtype, "categories", None)
    if known is not None and type(like.dtype).__name__ == "Enum":
        unknown = set(labels.drop_null().to_pylist()) - set(known.to_list())
        if unknown:
            raise InvalidInput("a declared class is not in the column's Enum: cast it to text first")
    return noisy.cast(like.dtype)
