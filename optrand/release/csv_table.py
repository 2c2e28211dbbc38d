"""Tables as CSV: every cell but the labels keeps its text, byte for byte, in any encoding that extends ASCII.

On writing, a cell is quoted only where it has to be, lines end in a line feed, a byte-order mark and blank lines go.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.release.diagnosis import Readings
from optrand.release.table_base import Table

__all__ = ["CsvTable"]

ROWS_AT_A_TIME = 1 << 16

BLOCK_SIZE = 1 << 24
"""No record may be longer than this many bytes."""

GZIP_MAGIC = b"\x1f\x8b"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")

_WELL_QUOTED = re.compile(rb'(?:(?:"(?:[^"]++|"")*+"|(?!")[^,\r\n]*+)(?:[,\r\n]|\Z))*+')
"""Fields whose quotes are closed, with a comma or the end of the line right behind them."""

_NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"


@dataclass(frozen=True)
class CsvTable(Table):
    """A CSV file in memory.

    Attributes
    ----------
    readings : Readings
        Of the labels.
    header : list of bytes or None
        The first record of the file; None for an empty name without quotes.
    column : int
        Where the labels stand.
    cells : pyarrow.Table
        Every column as bytes, the header among the rows no more; null for an empty cell without quotes.
    """

    readings: Readings
    header: list[bytes | None]
    column: int
    cells: Any = field(repr=False)

    @classmethod
    def read(cls, path: Path, label: str) -> CsvTable:
        """See :func:`optrand.release.table.read_table`."""
        data = _contents(path)
        if _WELL_QUOTED.fullmatch(data) is None:
            # Read on regardless, the text up to the next quote would become one public cell, labels and all.
            raise InvalidInput(
                f"{path.name} has a quoted cell that is never closed, or that goes on after its closing quote: write a "
                'quote inside a quoted cell as ""'
            )
        records = _parsed(data, path.name)
        header = [column[0].as_py() for column in records.columns]
        cells = records.slice(1)
        column = _position(label, header, path.name)
        if cells.num_rows == 0:
            raise InvalidInput(f"{path.name} has a header and no rows: there is nothing to randomize")
        return cls(_readings(cells.column(column)), header, column, cells)

    def write(self, stream: BinaryIO, values: Floats, *, compress: bool = False) -> None:
        """Write the table with `values` in place of the labels, each as the shortest text that reads back the same."""
        if compress:
            # No name and no time of day in the header: the same table gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                self._write(packed, values)
        else:
            self._write(stream, values)

    def _write(self, stream: Any, values: Floats) -> None:
        stream.write(b",".join(_quoted(pa.array(self.header, pa.binary())).to_pylist()) + b"\n")
        texts = _texts(values)
        for start in range(0, self.cells.num_rows, ROWS_AT_A_TIME):
            block = self.cells.slice(start, ROWS_AT_A_TIME)
            columns = [_quoted(column.combine_chunks()) for column in block.columns]
            columns[self.column] = texts.slice(start, ROWS_AT_A_TIME)
            lines = pc.binary_join_element_wise(*columns, pa.scalar(b",")).to_pylist()
            stream.write(b"\n".join(lines) + b"\n")


def _contents(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise InvalidInput(f"{path.name} is a damaged gzip file: it cannot be unpacked") from None
    if data.startswith(UTF_16_MARKS):
        raise InvalidInput(f"{path.name} is UTF-16 text: save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise InvalidInput(f"{path.name} is empty, expected a header and rows")
    return data


def _parsed(data: bytes, name: str) -> Any:
    """All records, the header included, as columns of bytes."""
    ragged = False

    def skip(_: object) -> str:
        nonlocal ragged
        ragged = True
        return "skip"

    read = pa.csv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK_SIZE)

    def parse(columns: int) -> Any:
        # Where a table has one column, a blank line is a missing label; anywhere else it is nothing.
        return pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip, ignore_empty_lines=columns > 1)

    try:
        names = pa.csv.open_csv(pa.BufferReader(data), read, parse(2)).schema.names
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        )
        ragged = False
        records = pa.csv.read_csv(pa.BufferReader(data), read, parse(len(names)), convert)
    except pa.ArrowInvalid:
        # pyarrow's own message quotes the row.
        raise InvalidInput(f"{name} cannot be read as CSV: expected comma-separated text with a header") from None
    if ragged:
        raise InvalidInput(
            f"{name} has at least one row with more or fewer cells than its header, which has {len(names)}: quote "
            "cells that hold commas"
        )
    return records


def _position(label: str, header: list[bytes | None], name: str) -> int:
    # A name typed in another encoding than UTF-8 reaches Python with its bytes escaped.
    wanted = label.encode(errors="surrogateescape")
    found = header.count(wanted)
    if found == 0:
        raise InvalidInput(
            f"{name} has no column {label!r}: the first line must name the columns, and it names {len(header)} others"
        )
    if found > 1:
        raise InvalidInput(f"{name} has {found} columns named {label!r}, expected one: rename the others")
    return header.index(wanted)


def _readings(column: Any) -> Readings:
    present = column.filter(_where(column, r"[^ \t]"))
    texts = pc.utf8_trim(present.filter(_where(present, _NUMBER)).cast(pa.string()), characters=" \t")
    numbers: Floats = texts.cast(pa.float64()).to_numpy() + 0.0
    return Readings(numbers[np.isfinite(numbers)], len(column), len(column) - len(present))


def _where(column: Any, pattern: str) -> Any:
    return pc.fill_null(pc.match_substring_regex(column, pattern), False)


def _quoted(cells: Any) -> Any:
    """Cells as they are written: in quotes if they hold a comma, a quote or the end of a line, or are empty text."""
    special = pc.or_(pc.match_substring_regex(cells, '[",\r\n]'), pc.equal(cells, b""))
    quote = pa.scalar(b'"')
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(cells, '"', '""'), quote, pa.scalar(b""))
    return pc.fill_null(pc.if_else(special, quoted, cells), b"")


def _texts(values: Floats) -> Any:
    """The shortest text of each number that reads back the same; few distinct numbers, many rows."""
    distinct, places = np.unique(values, return_inverse=True)
    return pa.array([repr(number).encode() for number in distinct.tolist()], pa.binary()).take(pa.array(places))
