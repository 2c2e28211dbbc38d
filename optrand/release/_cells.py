"""Columns of arrays and frames as Arrow, the place of each label among the declared ones, and noisy labels as Arrow.

Data comes from numpy, lists, pandas, polars, Arrow, or anything that exports Arrow by the PyCapsule protocol. Each
distinct cell is read once. No message repeats the content of a cell.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.base._suggestions import nearest_name
from optrand.base._validation import MAX_INTEGER, Floats, as_declared, as_doubles, has_masked_cells
from optrand.errors import InvalidInput
from optrand.release._question import Question

MISSING, NO_LABEL, UNDECLARED = -1, -2, -3
"""Negative places, for a missing label, a cell that holds no label, and a label that was not declared."""

Places = NDArray[np.int32]
"""Indices in the declared set, or one of the above."""

ARRAYS: Any = np.ndarray | list | tuple | range
ARROW: Any = pa.Array | pa.ChunkedArray
PANDAS = ("Series", "Index", "ExtensionArray")
"""Column classes of pandas."""


def is_frame(data: object) -> bool:
    """Decide whether an object has columns, rather than being one."""
    if is_of(data, "polars", "LazyFrame"):
        raise InvalidInput("a LazyFrame is computed again at each use: collect it first")
    if isinstance(data, ARRAYS | ARROW) or is_of(data, "pandas", *PANDAS) or is_of(data, "polars", "Series"):
        return False
    if isinstance(data, pa.RecordBatch) or is_of(data, "pandas", "DataFrame") or hasattr(data, "__arrow_c_stream__"):
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
        if is_of(data, "pandas", "DataFrame"):
            return arrow_column(data.iloc[:, single_place(data.columns, name)])
        if is_of(data, "polars", "DataFrame"):
            return arrow_column(data.to_series(single_place(data.columns, name)))
        table = as_table(data)
        return _one_chunk(table.column(single_place(table.schema.names, name)))
    if isinstance(data, ARRAYS):
        return _from_array(array_of(data))
    if is_of(data, "polars", "Series"):
        return _from_polars(data)
    if str(getattr(data, "dtype", "")).startswith("Sparse"):
        data = data.astype(data.dtype.subtype)
    return _one_chunk(data if isinstance(data, ARROW) else _import(pa.array, data))


def as_table(data: Any) -> Any:
    """Return a frame as an Arrow table."""
    return data if isinstance(data, pa.Table) else _import(pa.table, data)


def is_of(data: object, library: str, *names: str) -> bool:
    """Decide whether an object is of a class of a library, which need not be installed."""
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
            "the column mixes types, such as numbers and text, or holds other objects: expected one type"
        ) from None


def _one_chunk(column: Any) -> Any:
    """Return one array. Categories and their order may depend on the labels, so they are not taken as declared."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def single_place(columns: Sequence[Any], wanted: Any) -> int:
    # A comparison with pandas.NA is NA, not a bool.
    places = [place for place, name in enumerate(columns) if type(name == wanted) is bool and name == wanted]
    if len(places) != 1:
        near = nearest_name(str(wanted), [name for name in columns if isinstance(name, str)]) if not places else None
        hint = "" if near is None else f" (did you mean {near!r}?)"
        raise InvalidInput(f"there are {len(places)} columns named {wanted!r} among {len(columns)}, expected one{hint}")
    return places[0]


def array_of(data: Any) -> Any:
    if np.ma.isMaskedArray(data):
        return np.ma.asarray(data)
    if isinstance(data, range):
        return np.arange(data.start, data.stop, data.step)
    if has_masked_cells(data):
        raise InvalidInput("labels are a list with masked cells: pass one masked array, or None in their place")
    try:
        cells = np.asarray(data)
    except ValueError:
        raise InvalidInput("labels are a ragged list: expected rows of one length") from None
    # numpy would convert a list of several types to one type, such as True and 7 to 1 and 7.
    return cells if isinstance(data, np.ndarray) else np.array(data, dtype=object)


def _from_array(cells: Any) -> Any:
    gaps = np.ma.getmaskarray(cells).ravel() if np.ma.isMaskedArray(cells) else None
    flat = np.ma.getdata(cells).ravel()
    if flat.dtype.kind == "T":
        flat = flat.astype(object)
    if flat.dtype.kind not in "biufUOM" or flat.dtype == np.longdouble:
        raise InvalidInput(f"labels are of type {flat.dtype}, expected numbers of at most 64 bits, booleans or text")
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    if flat.dtype.kind == "O":
        # NaN among text is a missing label, as in a column of pandas.
        return _import(pa.array, flat, mask=gaps, from_pandas=True)
    return _import(pa.array, flat, mask=gaps)


def _from_polars(series: Any) -> Any:
    try:
        found = series.to_arrow()
        if not str(found.type).startswith("extension<_pl"):
            return _one_chunk(found)
    except pa.ArrowException:
        pass
    raise InvalidInput(f"a column is of type {series.dtype}, which Arrow does not have: cast it first")


@dataclass(frozen=True)
class LabelColumn:
    """Codec of one column of labels, of an Arrow type, or of text with a decimal point, as in CSV."""

    question: Question
    kind: Any
    decimal: str | None = None

    def __post_init__(self) -> None:
        kind, names = _plain_type(self.kind), self.question.names
        words = f"column {self.question.column!r} is of type {self.kind}"
        if self.decimal is not None or pa.types.is_null(kind):
            return
        numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if names is None:
            if not (numbers or pa.types.is_decimal(kind)):
                raise InvalidInput(f"{words}, expected numbers")
            return
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_bytes(kind)
        if not (text or numbers or pa.types.is_boolean(kind)):
            raise InvalidInput(f"{words}, expected text, integers or booleans for names")
        try:
            held = pa.array(names, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            held = None
        # Arrow reads the text of 0 and 1 as booleans, too.
        truths = {name.lower() for name in names if name is not None} <= {"true", "false"}
        if held is None or (pa.types.is_boolean(kind) and not truths):
            raise InvalidInput(f"{words}, which does not hold the declared labels")

    @property
    def released_kind(self) -> Any:
        """Arrow type of the noisy labels: floats for numbers, the type of the column for names."""
        if self.question.names is None:
            return pa.float64()
        kind = pa.binary() if self.decimal is not None else _plain_type(self.kind)
        return pa.string() if pa.types.is_null(kind) else kind

    def places(self, column: Any) -> Places:
        """Return the place of each cell in the declared set, negative if the set does not contain it."""
        cells, at = distinct_cells(plain(column))
        nowhere = self.question.labels.index(None) if self.question.nulls == "class" else MISSING
        if pa.types.is_null(cells.type):
            return np.full(len(column), nowhere, dtype=np.int32)
        missing = np.zeros(len(cells), dtype=bool)
        if self.decimal is not None:
            # Text that stands for a missing number. A name is missing if the cell is empty.
            no_number = r"(?i)^[ \t]*(|na|n/a|nan|null|none)[ \t]*$"
            missing = _matches(cells, no_number if self.question.names is None else r"^[ \t]*$")
        elif pa.types.is_floating(cells.type):
            missing = np.isnan(as_numpy(cells))
        found = self._numbers(cells) if self.question.names is None else self._names(cells)
        of_cells = np.append(np.where(missing, nowhere, found), nowhere)
        return of_cells.astype(np.int32)[at]

    def numbers(self, column: Any) -> Floats:
        """Return released cells as numbers, and names as their places, NaN for a missing one."""
        if self.question.names is None:
            cells, at = distinct_cells(plain(column))
            return np.append(_read_numbers(cells, self.decimal), np.nan)[at]
        found = self.places(column)
        strangers = int((found < (MISSING if self.question.nulls == "pass" else 0)).sum())
        if strangers:
            raise InvalidInput(
                f"{strangers} of {found.size} released values are not labels of the record: pass the released column"
            )
        return np.where(found < 0, np.nan, found)

    def _numbers(self, cells: Any) -> NDArray[np.intp]:
        # Declared labels are found by bisection. Numbers match them up to the rounding of floats (as_declared).
        labels = self.question.values
        numbers = _read_numbers(cells, self.decimal)
        nothing = np.isnan(numbers)
        values = as_declared(np.where(nothing, labels[0], numbers), labels)
        if self.question.clip:
            values = np.clip(values, labels[0], labels[-1])
        at = np.minimum(np.searchsorted(labels, values), labels.size - 1)
        return np.where(nothing, NO_LABEL, np.where(labels[at] == values, at, UNDECLARED))

    def _names(self, cells: Any) -> NDArray[np.intp]:
        names, texts = self.question.names or (), _read_texts(cells)
        if pa.types.is_boolean(_plain_type(self.kind)) or any(isinstance(name, bool) for name in self.question.labels):
            # Arrow writes true, and pandas True.
            names = tuple(name and name.lower() for name in names)
            texts = [text and text.lower() for text in texts]
        index = {name: place for place, name in enumerate(names) if name is not None}
        found = [UNDECLARED if name is None else index.get(name, UNDECLARED) for name in texts]
        return np.array(found, dtype=np.intp)

    def to_arrow(self, noisy: Floats, missing: NDArray[np.bool_]) -> Any:
        """Return the column of noisy labels, null for a missing one."""
        gaps, names = missing if missing.any() else None, self.question.names
        if names is None:
            return as_arrow(noisy, gaps)
        if is_bytes(self.released_kind):
            encoded = [None if name is None else name.encode("utf-8", "surrogateescape") for name in names]
            declared = pa.array(encoded, self.released_kind)
        else:
            declared = pa.array(names, pa.string()).cast(self.released_kind)
        return declared.take(as_arrow(noisy.astype(np.int64), gaps))


def refuse_labels(places: Places, question: Question) -> None:
    """Refuse labels that cannot be released. The message discloses neither which nor how many."""
    lowest = int(places.min(initial=0))
    if lowest == 0 or (lowest == MISSING and question.nulls in ("drop", "pass")):
        return
    advice = "Nothing was released or spent. Their owner can count such labels: optrand.release.diagnose_table()"
    if (places == NO_LABEL).any() or (question.nulls == "refuse" and (places == MISSING).any()):
        what = "missing" if question.names is not None else "missing or no finite number that floats can tell apart"
        raise InvalidInput(
            f"at least one label in column {question.column!r} is {what}: fill or drop such rows, or name a policy, "
            f"nulls=..., for missing labels. {advice}"
        )
    remedy = "round them first" if question.clip else "declare all that may occur"
    if not (question.clip or question.nominal):
        remedy += ", or clip those beyond its ends"
    if question.names is None and question.k == 2:
        remedy += ". Two numbers are two labels, and a range is labels=range(53)"
    raise InvalidInput(f"at least one label is not among the {question.k} declared ones: {remedy}. {advice}")


def plain(column: Any) -> Any:
    """Return a column in a basic layout: no extensions, dictionaries, views or runs, decimals of at least 128 bits."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if pa.types.is_dictionary(column.type):
        column = plain(column.dictionary).take(column.indices)
    kind = _plain_type(column.type)
    return column if kind == column.type else column.cast(kind)


def _plain_type(kind: Any) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        # Narrow decimals have no hash tables.
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def is_bytes(kind: Any) -> bool:
    known = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(of_kind(kind) for of_kind in known)


def contents(column: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the concatenated cells of a column of bytes or text, and the offsets at which they begin.

    There is one more offset than cells: the end of the last one.
    """
    cells = column.cast(pa.large_binary())
    _, places, data = cells.buffers()
    held = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    if len(cells) == 0:
        # Arrow may leave out the offsets of an array without cells.
        return held, np.zeros(1, dtype=np.int64)
    return held, np.frombuffer(places, dtype=np.int64)[cells.offset : cells.offset + len(cells) + 1]


def as_numpy(cells: Any) -> NDArray[Any]:
    """Return numbers or booleans as an array, anything for a null. Unlike Arrow's methods it does not load pandas."""
    if pa.types.is_boolean(cells.type):
        return as_numpy(cells.cast(pa.uint8())).view(np.bool_)
    kind = np.dtype(cells.type.to_pandas_dtype())
    if len(cells) == 0:
        return np.zeros(0, dtype=kind)
    return np.frombuffer(cells.buffers()[1], kind, len(cells), cells.offset * kind.itemsize)


def as_arrow(cells: NDArray[Any], gaps: NDArray[np.bool_] | None = None) -> Any:
    """Return numbers or booleans as a column, null in the gaps. This does not load pandas either."""
    present = None if gaps is None else pa.py_buffer(np.packbits(~gaps, bitorder="little"))
    data = np.packbits(cells, bitorder="little") if cells.dtype == np.bool_ else cells
    return pa.Array.from_buffers(pa.from_numpy_dtype(cells.dtype), cells.size, [present, pa.py_buffer(data)])


def distinct_cells(column: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return the distinct cells of a plain column, none of them null, and the index of each row's, -1 if it is null.

    Integers that occur in no row may be among them.
    """
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        integers = as_numpy(column)
        lowest, highest = int(integers.min()), int(integers.max())
        # A short range is indexed directly, without a hash table.
        if highest - lowest < 4096 and max(-lowest, highest) <= MAX_INTEGER:
            return as_arrow(np.arange(lowest, highest + 1, dtype=integers.dtype)), integers.astype(np.intp) - lowest
    if pa.types.is_null(column.type):
        return column, np.full(len(column), -1, dtype=np.intp)
    # Half floats by their bits: hash tables support them in later versions of pyarrow only.
    half = pa.types.is_float16(column.type)
    encoded = (column.view(pa.int16()) if half else column).dictionary_encode()
    cells = encoded.dictionary.view(pa.float16()) if half else encoded.dictionary
    places = np.where(as_numpy(encoded.indices.is_valid()), as_numpy(encoded.indices), -1)
    return cells, places.astype(np.intp)


def _matches(cells: Any, pattern: str) -> NDArray[np.bool_]:
    return as_numpy(pc.match_substring_regex(cells, pattern))


def _read_numbers(cells: Any, decimal: str | None) -> Floats:
    """Return cells as floats, NaN for a cell without a finite number and for integers beyond 2**53."""
    read = _convert_numbers(cells) if decimal is None else _parse_numbers(cells, decimal)
    return np.where(np.isfinite(read), read, np.nan) + 0.0


def _parse_numbers(cells: Any, decimal: str) -> Floats:
    if decimal == ",":
        # A point in such a table separates thousands, and is refused.
        cells = pc.if_else(pc.match_substring(cells, "."), pa.scalar(b"x"), pc.replace_substring(cells, ",", "."))
    number = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
    texts = pc.if_else(_matches(cells, number), cells, pa.scalar(b"nan")).cast(pa.string())
    return _read_decimals(pc.utf8_trim(texts, characters=" \t"))


def _read_decimals(texts: Any) -> Floats:
    """Return well-formed decimals as floats, NaN for other text and for integers beyond 2**53.

    A number with an exponent is read as a float, however large it is.
    """
    numbers: Floats = as_numpy(texts.cast(pa.float64())).copy()
    for row in np.flatnonzero(np.abs(numbers) >= MAX_INTEGER).tolist():
        # The float alone does not show whether a digit was lost.
        text = texts[row].as_py()
        if re.fullmatch(r"[+-]?[0-9]+\.?0*", text) and abs(Decimal(text)) > MAX_INTEGER:
            numbers[row] = np.nan
    return numbers


def _convert_numbers(cells: Any) -> Floats:
    if cells.type in (pa.float16(), pa.float32()):
        return as_doubles(as_numpy(cells))
    if pa.types.is_integer(cells.type) or pa.types.is_decimal(cells.type):
        # Through text, since Arrow does not round correctly from decimals.
        return _read_decimals(cells.cast(pa.string()))
    return as_numpy(cells.cast(pa.float64(), safe=False))


def _read_texts(cells: Any) -> list[str | None]:
    """Return cells as names: text as it is, integers, whole floats and booleans as they are written."""
    kind = cells.type
    if is_bytes(kind):
        return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in cells.to_pylist()]
    if pa.types.is_floating(kind):
        # Integers beside missing cells are floats in pandas.
        return [
            str(int(cell)) if cell is not None and cell == cell and float(cell).is_integer() else None
            for cell in cells.to_pylist()
        ]
    texts: list[str | None] = cells.cast(pa.string()).to_pylist()
    return texts
