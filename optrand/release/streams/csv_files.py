"""Tables of separated values: every cell but the labels keeps its text, byte for byte, in any encoding like ASCII.

On writing, a cell is quoted only where it has to be, lines end in a line feed, a byte-order mark and blank lines go.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from optrand.errors import InvalidInput
from optrand.release.streams.records import CsvFormat, RecordBlocks
from optrand.release.streams.source import Sink, Source

__all__ = ["CsvSink", "CsvSource"]


class CsvSource(Source):
    """A CSV or TSV file, perhaps gzipped; batches hold bytes, null for an empty cell without quotes.

    Parameters
    ----------
    path : path
    layout : CsvFormat

    Raises
    ------
    InvalidInput
        The file cannot be read as CSV, or is empty.
    """

    def __init__(self, path: Path, layout: CsvFormat) -> None:
        self.path, self.layout, self.text, self._cut = path, layout, layout.decimal, False
        with path.open("rb") as stream:
            first = self._parsed(next(iter(RecordBlocks(stream, path.name, layout))), None)
        self.header: list[bytes | None] = [column[0].as_py() for column in first.columns]
        self.names = tuple((name or b"").decode("utf-8", "backslashreplace") for name in self.header)

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    @property
    def schema(self) -> Any:
        """Binary columns."""
        return pa.schema([(name, pa.binary()) for name in self.names])

    @property
    def cut(self) -> bool:
        """Whether the last line that was read had no end."""
        return self._cut

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """See :meth:`Source.batches`."""
        wanted = [i for i, name in enumerate(self.names) if columns is None or name in columns]
        header, rows = True, 0
        with self.path.open("rb") as stream:
            blocks = RecordBlocks(stream, self.path.name, self.layout)
            for block in blocks:
                table = self._parsed(block, wanted)
                if header:
                    table, header = table.slice(1), False
                rows += table.num_rows
                table = table.rename_columns([self.names[i] for i in wanted])
                for batch in table.to_batches():
                    yield 0, batch
            self._cut = blocks.cut
        if rows == 0:
            raise InvalidInput(f"{self.path.name} has a header and no rows: there is nothing to randomize")

    def _parsed(self, block: bytes, wanted: Sequence[int] | None) -> Any:
        """All records of a block as columns of bytes; of the first alone, where nothing is known of them yet."""
        ragged = False

        def skip(_: object) -> str:
            nonlocal ragged
            ragged = True
            return "skip"

        # Of rows in another encoding pyarrow would print a traceback before it called this.
        handler = skip if _is_utf8(block) else None
        known = wanted is not None
        names = [f"f{i}" for i in range(len(self.names))] if known else None
        try:
            if names is None:
                names = self._open(block, 2, handler).schema.names
                ragged = False
            read = pa.csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
            convert = pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=[names[i] for i in wanted] if wanted is not None else None,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            )
            table = pa.csv.read_csv(pa.BufferReader(block), read, self._layout(len(names), handler), convert)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            # pyarrow's own message quotes the row.
            raise InvalidInput(
                f"{self.path.name} cannot be read as CSV: expected text with a header and {self.layout.separator!r} "
                "between cells"
            ) from None
        if ragged and known:
            raise InvalidInput(
                f"{self.path.name} has at least one row with more or fewer cells than its header, which has "
                f"{len(names)}: quote cells that hold {self.layout.separator!r}"
            )
        return table

    def _open(self, block: bytes, columns: int, skip: Any) -> Any:
        read = pa.csv.ReadOptions(autogenerate_column_names=True, block_size=len(block) + 1, use_threads=False)
        return pa.csv.open_csv(pa.BufferReader(block), read, self._layout(columns, skip))

    def _layout(self, columns: int, skip: Any) -> Any:
        # Where a table has one column, a blank line is a missing label; anywhere else it is nothing.
        return pa.csv.ParseOptions(
            delimiter=self.layout.separator,
            newlines_in_values=True,
            invalid_row_handler=skip,
            ignore_empty_lines=columns > 1,
        )


class CsvSink(Sink):
    """A CSV file that is being written: bytes as they are, other types as text, floats as they read back.

    Parameters
    ----------
    stream : binary file
        Closed by :meth:`close`, on the disk by then.
    header : list of bytes or None
        Names of the columns; None for an empty one without quotes.
    layout : CsvFormat
    compress : bool
        Whether to gzip: with no name and no time of day, so that the same table gives the same bytes.
    """

    def __init__(
        self, stream: BinaryIO, header: Sequence[bytes | None], layout: CsvFormat, *, compress: bool = False
    ) -> None:
        self.file, self.layout = stream, layout
        self.stream: Any = (
            gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0, compresslevel=6) if compress else stream
        )
        self._special = [b'"', b"\r", b"\n", layout.separator.encode()]
        self._pattern = '["\r\n' + f"\\x{ord(layout.separator):02x}]"
        names = self._quoted(pa.array(header, pa.binary()))
        self.stream.write(layout.separator.encode().join(names.to_pylist()) + b"\n")

    def write(self, part: int, batch: Any) -> None:  # noqa: ARG002
        """See :meth:`Sink.write`."""
        cells = [self._text(column) for column in batch.columns]
        ends = pa.scalar(b"\n")
        cells[-1] = pc.binary_join_element_wise(cells[-1], ends, pa.scalar(b""))
        lines = pc.binary_join_element_wise(*cells, pa.scalar(self.layout.separator.encode()))
        self.stream.write(_bytes_of(lines))

    def close(self) -> None:
        """See :meth:`Sink.close`."""
        if self.stream is not self.file:
            self.stream.close()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def abandon(self) -> None:
        """See :meth:`Sink.abandon`."""
        # Past the buffers: a disk that is full would refuse them again.
        self.file.raw.close() if isinstance(self.file, io.BufferedWriter) else self.file.close()

    def _text(self, column: Any) -> Any:
        """Cells as they are written."""
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = kind.value_type
        if pa.types.is_floating(kind):
            return self._quoted(_distinct(column.cast(pa.float64()), self._number))
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            try:
                column = column.cast(pa.string())
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise InvalidInput(
                    f"a column of type {kind} cannot be written as CSV: drop it, or write Parquet"
                ) from None
        return self._quoted(column.cast(pa.binary()))

    def _number(self, value: float) -> bytes:
        """Shortest text that reads back as a float, with the decimal point of the format."""
        return repr(value).replace(".", self.layout.decimal).encode()

    def _quoted(self, cells: Any) -> Any:
        """Cells in quotes if they hold a separator, a quote or the end of a line, or are empty text."""
        content = _bytes_of(cells)
        empty = pc.equal(cells, b"")
        if not any(mark in content for mark in self._special) and not pc.any(empty).as_py():
            return pc.fill_null(cells, b"")
        special = pc.or_(pc.match_substring_regex(cells, self._pattern), empty)
        quote = pa.scalar(b'"')
        quoted = pc.binary_join_element_wise(quote, pc.replace_substring(cells, '"', '""'), quote, pa.scalar(b""))
        return pc.fill_null(pc.if_else(special, quoted, cells), b"")


def _bytes_of(cells: Any) -> bytes:
    """All bytes of a binary array, one cell behind the other."""
    if len(cells) == 0:
        return b""
    _, ends, data = cells.buffers()
    if data is None:
        return b""
    bounds = memoryview(ends).cast("i")
    return memoryview(data)[bounds[cells.offset] : bounds[cells.offset + len(cells)]].tobytes()


def _distinct(column: Any, text: Any) -> Any:
    """Texts of few distinct numbers in many rows."""
    encoded = column.dictionary_encode()
    return pa.array([text(number) for number in encoded.dictionary.to_pylist()], pa.binary()).take(encoded.indices)


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False
