"""Cells of a label column: each distinct one is read once, as a number or as the name of a class.

No error message repeats what a cell holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.base.validation import MAX_INTEGER, Floats
from optrand.errors import InvalidInput

__all__ = ["as_arrow", "check_numeric", "distinct_cells", "names_of", "numbers_of"]

_NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"

SPAN = 1 << 12
"""Largest span of integer cells that are told apart without a table of hashes."""


def as_arrow(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Any:
    """Arrow array on the memory of an array of numbers; :func:`pyarrow.array` would load pandas for it.

    Parameters
    ----------
    values : (n,) array of integers or floats
    missing : (n,) array of bool, optional
        Which cells are null; none by default.

    Examples
    --------
    >>> as_arrow(np.array([1.5, 2.5]), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    held = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, values.size, [held, pa.py_buffer(np.ascontiguousarray(values))])


def distinct_cells(column: Any, *, text: str | None) -> tuple[Any, NDArray[np.intp]]:
    """Cells of a column without repetition, and the place among them of each row's, -1 where it is missing.

    Cells that no row holds may be among them.

    Parameters
    ----------
    column : pyarrow array
    text : str or None
        The decimal point if cells are text, where blank ones count as missing.

    Examples
    --------
    >>> cells, places = distinct_cells(pa.array([b"7", None, b" ", b"7"]), text=".")
    >>> cells.to_pylist(), places.tolist()
    ([b'7', b' '], [0, -1, -1, 0])
    """
    if pa.types.is_integer(column.type) and len(column) and not column.null_count:
        integers = np.from_dlpack(column)
        lowest, highest = int(integers.min()), int(integers.max())
        # Few integers near each other: all between them are cells, which saves a table of hashes.
        if highest - lowest < SPAN and max(-lowest, highest) <= MAX_INTEGER:
            return as_arrow(np.arange(lowest, highest + 1, dtype=integers.dtype)), integers.astype(np.intp) - lowest
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    cells = encoded.dictionary
    places: NDArray[np.intp] = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    missing = cells.is_null()
    if text is not None:
        missing = pc.or_(missing, pc.invert(pc.fill_null(pc.match_substring_regex(cells, r"[^ \t]"), False)))
    gone: NDArray[np.bool_] = missing.to_numpy(zero_copy_only=False)
    if gone.any():
        places = np.where((places >= 0) & ~gone[places], places, -1)
    return cells, places


def check_numeric(kind: Any, column: str) -> None:
    """Refuse a column whose type is of no numbers.

    Raises
    ------
    InvalidInput
        Text, booleans, dates, ...
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidInput(f"column {column!r} is of type {kind}, expected numbers")


def numbers_of(cells: Any, *, column: str, text: str | None) -> Floats:
    """Cells as floats, NaN where a cell holds no finite number that floats can tell from others.

    Parameters
    ----------
    cells : pyarrow array
    column : str
        Its name, for errors.
    text : str or None
        The decimal point if cells are text.

    Raises
    ------
    InvalidInput
        A column of another type.

    Examples
    --------
    >>> numbers_of(pa.array([b"1,5", b"x"]), column="y", text=",").tolist()
    [1.5, nan]
    """
    if text is not None:
        read = _parsed(cells, text)
    else:
        check_numeric(cells.type, column)
        read = _converted(cells)
    return np.where(np.isfinite(read), read, np.nan) + 0.0


def _parsed(cells: Any, decimal: str) -> Floats:
    if decimal == ",":
        plain = pc.match_substring(cells, ".")
        cells = pc.if_else(plain, pa.scalar(b"x"), pc.replace_substring(cells, ",", "."))
    good = pc.fill_null(pc.match_substring_regex(cells, _NUMBER), False)
    texts = pc.utf8_trim(pc.if_else(good, cells, pa.scalar(b"nan")).cast(pa.string()), characters=" \t")
    found: Floats = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _converted(cells: Any) -> Floats:
    kind = cells.type
    if pa.types.is_integer(kind):
        # Unlike to_numpy, DLPack does not load pandas.
        integers = np.from_dlpack(pc.fill_null(cells, 0) if cells.null_count else cells)
        # Floats cannot tell larger ones apart.
        small = (integers <= MAX_INTEGER) & (integers >= -MAX_INTEGER)
        return np.where(small, integers.astype(np.float64), np.nan)
    if kind in (pa.float16(), pa.float32()):
        # Through the shortest text: 0.1 was meant, not the double nearest to the float nearest to it.
        cells = cells.cast(pa.string())
    found: Floats = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def names_of(cells: Any, *, column: str, text: str | None) -> list[str | None]:
    """Cells as names of classes: text as it is, integers and booleans as they are written; None where it is none.

    Raises
    ------
    InvalidInput
        A column of floats, dates, ...

    Examples
    --------
    >>> names_of(pa.array([True, False]), column="y", text=None)
    ['true', 'false']
    """
    kind = cells.type
    if text is not None:
        return [None if cell is None else cell.decode("utf-8", "surrogateescape") for cell in cells.to_pylist()]
    known = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
    if not any(of_kind(kind) for of_kind in known):
        raise InvalidInput(f"column {column!r} is of type {kind}, expected text, integers or booleans for classes")
    found: list[str | None] = cells.cast(pa.string()).to_pylist()
    return found
