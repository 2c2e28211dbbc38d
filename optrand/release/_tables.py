"""Tables in files, whose kind is the suffix of their name: separated values, Parquet, and partitioned folders.

Columns other than the labels keep their types and values, and in separated values their bytes, in any encoding like
ASCII. There a cell is quoted only if it has to be, lines end in a line feed, and a byte-order mark and blank lines are
left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from optrand.base._files import temporary_file
from optrand.base._suggestions import missing
from optrand.errors import InvalidInput
from optrand.release._batches import Table, label_column
from optrand.release._cells import MISSING, NO_LABEL, UNDECLARED, contents, is_bytes
from optrand.release._question import Question

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a path in lower case, or raise InvalidInput if it is of no known kind."""
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise InvalidInput(f"{path} is of an unknown kind: expected a name that ends in {', '.join(SUFFIXES)}")


def signs_of(path: Path, separator: str | None = None, decimal: str | None = None) -> tuple[str, str] | None:
    """Return separator and decimal point of text, by default those of its name, or None for Parquet."""
    if not all(isinstance(each, str | None) for each in (separator, decimal)):
        raise InvalidInput("separator and decimal are one character each, expected text")
    if (path.is_dir() and not path.name.lower().endswith(SUFFIXES[:-1])) or suffix_of(path) == ".parquet":
        if separator is not None or decimal is not None:
            raise InvalidInput("separator and decimal are for separated text, not for Parquet: leave them out")
        return None
    by_name = "\t" if ".tsv" in suffix_of(path) else ","
    chosen = by_name if separator is None else {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    return chosen, "." if decimal is None else decimal


def open_table(
    path: str | os.PathLike[str], *, separator: str | None = None, decimal: str | None = None
) -> CsvTable | ParquetTable:
    """Open a CSV file with a header, a Parquet file, or a folder of Parquet files, to be read in batches."""
    file = Path(path)
    signs = signs_of(file, separator, decimal)
    if signs is None and (file.is_dir() or file.is_file()):
        return ParquetTable(file)
    if signs is None or not file.is_file():
        raise InvalidInput(f"{file} is {missing(file)}: expected a table")
    return CsvTable(file, *signs)


def diagnose_table(
    source: str | os.PathLike[str], question: Question, *, separator: str | None = None, decimal: str | None = None
) -> dict[str, int]:
    """Count the labels of a table that a release would refuse. The counts are for their owner alone.

    Returns
    -------
    dict of str to int
        ``rows``, and the numbers of labels that are ``missing``, ``not_numbers`` or ``undeclared``. Not private.
    """
    table = open_table(source, separator=separator, decimal=decimal)
    column, counts = label_column(table, question), np.zeros(4, dtype=np.intp)
    for _, batch in table.batches([question.column]):
        counts += np.bincount(-np.minimum(column.places(batch.column(0)), 0), minlength=4)
    found = {"missing": MISSING, "not_numbers": NO_LABEL, "undeclared": UNDECLARED}
    return {"rows": int(counts.sum()), **{name: int(counts[-code]) for name, code in found.items()}}


class CsvTable(Table):
    """A CSV or TSV file, perhaps gzipped. Batches hold bytes, null for an empty cell without quotes.

    pyarrow reads a quote that is never closed up to the next one, so that labels would become part of a public cell.
    The file is therefore cut into blocks of whole records, whose quotes are checked on the way: of `block` bytes, or as
    long as a record. A record is at most `longest` bytes: a quote that is never closed makes one of the rest of the
    file.
    """

    path: Path
    decimal: str
    block = 1 << 20
    longest = 1 << 26

    def __init__(self, path: Path, separator: str, decimal: str) -> None:
        self.path, self.files = path, (path,)
        self.separator, self.decimal = separator, decimal
        if len(separator) != 1 or not separator.isascii() or separator.isalnum() or separator in '"\r\n.+- \\\0':
            raise InvalidInput(
                f"the separator is {separator!r}, expected one character such as a comma, ';', '|' or a tab"
            )
        if decimal not in (".", ","):
            raise InvalidInput(f"the decimal point is {decimal!r}, expected '.' or ','")
        between = re.escape(separator.encode())
        closed = rb'"(?:[^"]++|"")*+"'
        cell = rb"(?:" + closed + rb'|(?!")[^' + between + rb"\r\n]*+)"
        line = rb"(?:" + cell + between + rb")*+"
        # A carriage return at the end of the data so far may be half of a line end.
        self._records = re.compile(rb"(?:" + line + cell + rb"(?:\r\n|\n|\r(?!\n|\Z)))*+", re.DOTALL)
        self._last = re.compile(line + cell + rb"(?:\r\n?|\n)?")
        self._stray = re.compile(line + closed + rb'[^"' + between + rb"\r\n]")
        text = io.StringIO(next(self._blocks()).decode("utf-8", "surrogateescape"), newline="")
        try:
            cells = next(csv.reader(text, delimiter=separator))
        except csv.Error:
            raise self._unreadable() from None
        self.header = [cell.encode("utf-8", "surrogateescape") for cell in cells]
        names = [name.decode("utf-8", "backslashreplace") for name in self.header]
        self.schema = pa.schema([(name, pa.binary()) for name in names])

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield 0, the number of the only file, and batches of some columns, by default of all."""
        names = self.schema.names
        wanted = [i for i, name in enumerate(names) if columns is None or name in columns]
        header, rows = True, 0
        for block in self._blocks():
            table = self._parse(block, wanted)
            if header:
                table, header = table.slice(1), False
            rows += table.num_rows
            self.cut = not block.endswith((b"\n", b"\r"))
            for batch in table.rename_columns([names[i] for i in wanted]).to_batches():
                yield 0, batch
        if rows == 0:
            raise InvalidInput(f"{self.path.name} has a header and no rows: there is nothing to randomize")

    def _blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole records, unpacked. The first begins with the header, without a byte-order mark."""
        with self.path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            source: Any = gzip.GzipFile(fileobj=stream) if packed else stream
            held = piece = self._read_start(source)
            while piece:
                end = self._whole(held)
                if end:
                    yield held[:end]
                    held = held[end:]
                elif len(held) > self.longest:
                    if b'"' in held:
                        raise self._quote_error()
                    raise InvalidInput(
                        f"{self.path.name} cannot be read as CSV: a line is longer than {self.longest} bytes"
                    )
                # A long record is searched again only when it has doubled.
                piece = self._read(source, max(self.block, len(held)))
                held += piece
            if held:
                # The pattern of records omits a last one without a line end, or with a lone carriage return.
                if self._last.fullmatch(held) is None:
                    raise self._quote_error()
                yield held

    def _read_start(self, source: Any) -> bytes:
        data: bytes = self._read(source, self.block)
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InvalidInput(f"{self.path.name} is UTF-16 text: save it as UTF-8")
        data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if not data.strip():
            raise InvalidInput(f"{self.path.name} is empty, expected a header and rows")
        return data

    def _read(self, source: Any, size: int) -> Any:
        try:
            return source.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InvalidInput(f"{self.path.name} is a damaged gzip file: it cannot be unpacked") from None

    def _whole(self, data: bytes) -> int:
        """Return the length of the whole records at the beginning of some data."""
        if b'"' not in data:
            # Mixed line ends may be cut at any of them. A lone carriage return at the end may be half of one.
            return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1
        match = self._records.match(data)
        end = match.end() if match else 0
        if self._stray.match(data, end):
            raise self._quote_error()
        return end

    def _parse(self, block: bytes, wanted: Sequence[int]) -> Any:
        """Parse all records of a block as columns of bytes."""
        width = len(self.schema)
        names = [f"f{i}" for i in range(width)]
        read = pa.csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
        parse = pa.csv.ParseOptions(
            delimiter=self.separator,
            newlines_in_values=True,
            # In a table of one column a blank line is a missing label.
            ignore_empty_lines=width != 1,
        )
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=[names[i] for i in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        )
        try:
            return pa.csv.read_csv(pa.BufferReader(block), read, parse, convert)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            # pyarrow's own message quotes the row.
            if re.search(r"Expected \d+ columns, got \d+", str(error)):
                raise InvalidInput(
                    f"{self.path.name} has at least one row with more or fewer cells than its header, which has "
                    f"{width}: quote cells that hold {self.separator!r}"
                ) from None
            raise self._unreadable() from None

    def _quote_error(self) -> InvalidInput:
        return InvalidInput(
            f"{self.path.name} has a quoted cell that is never closed, or that goes on after its closing quote: write "
            'a quote inside a quoted cell as ""'
        )

    def _unreadable(self) -> InvalidInput:
        return InvalidInput(
            f"{self.path.name} cannot be read as CSV: expected text with a header and {self.separator!r} between cells"
        )


def check_writable(kind: Any, name: str) -> None:
    """Refuse a column whose cells have no form in CSV."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        if isinstance(plain, pa.BaseExtensionType) and is_bytes(plain.storage_type):
            raise pa.ArrowNotImplementedError
        # Only a time of day needs its zone looked up.
        _text(pa.array([0] if pa.types.is_timestamp(plain) else [], plain), ".")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InvalidInput(
            f"column {name!r} is of type {kind}, which CSV cannot hold: drop it, or write Parquet"
        ) from None


@contextmanager
def write_csv(
    path: Path, header: Sequence[bytes], separator: str, decimal: str, *, compress: bool
) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends a batch to a new CSV file, which only its owner can read.

    Bytes are written as they are, other types as text, floats in full precision. The file is compressed without a name
    or a time, so that equal tables have equal bytes.
    """
    between, end = pa.scalar(separator.encode()), pa.scalar(b"\n")

    def write(batch: Any) -> None:
        cells = [_quote(_text(column, decimal), separator) for column in batch.columns]
        cells[-1] = pc.binary_join_element_wise(cells[-1], end, pa.scalar(b""))
        stream.write(_bytes_of(pc.binary_join_element_wise(*cells, between)))

    with temporary_file(path) as file:
        stream: Any = gzip.GzipFile("", "wb", 6, file, mtime=0) if compress else file
        try:
            names = _quote(pa.array([name or None for name in header], pa.binary()), separator)
            stream.write(separator.encode().join(names.to_pylist()) + b"\n")
            yield write
            if compress:
                stream.close()
        except BaseException:
            # Close the raw file: flushing the buffers to a full disk would fail again.
            file.raw.close()  # type: ignore[attr-defined]
            raise


def _text(column: Any, decimal: str) -> Any:
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if pa.types.is_floating(column.type):
        encoded = column.cast(pa.float64()).dictionary_encode()
        texts = [repr(number).replace(".", decimal).encode() for number in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.binary()).take(encoded.indices)
    return (column if is_bytes(column.type) else column.cast(pa.string())).cast(pa.binary())


def _quote(cells: Any, separator: str) -> Any:
    """Quote cells that hold a separator, a quote or the end of a line, or that are empty text."""
    content, empty = _bytes_of(cells), pc.equal(cells, b"")
    if not any(mark in content for mark in (b'"', b"\r", b"\n", separator.encode())) and not pc.any(empty).as_py():
        return pc.fill_null(cells, b"")
    special = pc.or_(pc.match_substring_regex(cells, f'["\r\n\\x{ord(separator):02x}]'), empty)
    quote = pa.scalar(b'"')
    quoted = pc.binary_join_element_wise(quote, pc.replace_substring(cells, '"', '""'), quote, pa.scalar(b""))
    return pc.fill_null(pc.if_else(special, quoted, cells), b"")


def _bytes_of(cells: Any) -> bytes:
    data, places = contents(cells)
    return data[places[0] : places[-1]].tobytes()


class ParquetTable(Table):
    """A Parquet file, or all of a folder, whose columns must have the same names and types that can be unified."""

    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path
        _refuse_table_formats(path)
        # Names that begin with a dot or an underscore are not part of a partitioned table.
        below = [(file, file.relative_to(path).parts) for file in sorted(path.rglob("*.parquet")) if file.is_file()]
        shown = [file for file, parts in below if not any(part.startswith((".", "_")) for part in parts)]
        self.files = tuple(shown) if path.is_dir() else (path,)
        if not self.files:
            raise InvalidInput(f"{path.name} is a folder without files whose names end in .parquet: expected a table")
        schemas = []
        for file in self.files:
            with self._open(file) as opened:
                schemas.append(opened.schema_arrow)
        try:
            unified = pa.unify_schemas([schema.remove_metadata() for schema in schemas], promote_options="permissive")
            if any(schema.names != unified.names for schema in schemas):
                raise pa.ArrowInvalid
        except pa.ArrowException:
            raise InvalidInput(
                f"the files of {path.name} differ in their columns or types: expected those of one table"
            ) from None
        self.schema = schemas[0] if len(schemas) == 1 else unified.with_metadata(schemas[0].metadata)
        self._folders = [_partition(file.relative_to(path).parts[:-1]) for file in self.files] if path.is_dir() else []
        self.partitions = tuple(
            name
            for name in (self._folders[0] if self._folders else {})
            if name not in self.schema.names and all(name in found for found in self._folders)
        )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the number of a file, and batches of some columns, by default of all that are in the file."""
        rows = 0
        # A batch without columns loses its number of rows.
        read = [name for name in self.schema.names if columns is None or name in columns] or self.schema.names[:1]
        partitions = [name for name in self.partitions if columns is not None and name in columns]
        wanted = [self.schema.field(name).type for name in read] if columns is not None else self.schema.types
        for part, file in enumerate(self.files):
            with self._open(file) as opened:
                for batch in opened.iter_batches(1 << 16, columns=None if columns is None else read):
                    rows += batch.num_rows
                    arrays = [c.cast(kind) if c.type != kind else c for c, kind in zip(batch, wanted, strict=True)]
                    for name in partitions:
                        value = pa.scalar(self._folders[part][name], pa.string())
                        arrays.append(pa.repeat(value, batch.num_rows))
                    yield part, pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *partitions])
        if rows == 0:
            raise InvalidInput(f"{self.path.name} has no rows: there is nothing to randomize")

    @staticmethod
    @contextmanager
    def _open(file: Path) -> Iterator[Any]:
        """Open a file. Errors of Arrow and of the system become one that names the file alone."""
        try:
            # Read through buffers of a fixed size in place of whole column chunks.
            with pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
                yield opened
        except (pa.ArrowException, OSError):
            raise InvalidInput(f"{file.name} cannot be read as Parquet: it is damaged or of another kind") from None


def _partition(folders: Sequence[str]) -> dict[str, str | None]:
    """Return columns and their values in the names of folders, as Hive writes them."""
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder)
    return {unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for name, value in pairs}


# A row group ends at the first of these limits, in rows and in bytes of memory.
GROUP_ROWS, GROUP_BYTES = 1 << 18, 1 << 26


@contextmanager
def write_parquet(schema: Any, path: Path, *, distinct: Sequence[str] = ()) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends a batch to a new Parquet file, which only its owner can read.

    Columns are cast to the types of the schema. No two cells of `distinct` columns, such as record ids, are equal, so a
    dictionary of them would only cost time and space.
    """
    held: list[Any] = []

    def write(batch: Any) -> None:
        held.append(conform(batch, schema))
        rows, size = (sum(getattr(one, name) for one in held) for name in ("num_rows", "nbytes"))
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            flush()

    def flush() -> None:
        # Each call makes a row group.
        writer.write_table(pa.Table.from_batches(held, schema))
        held.clear()

    # Parquet renames the parts of nested columns.
    flat = not any(pa.types.is_nested(field.type) for field in schema)
    repeated = [name for name in schema.names if name not in distinct] if flat else True
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_file(path) as file, pa.parquet.ParquetWriter(file, schema, use_dictionary=repeated) as writer:
        yield write
        if held:
            flush()


def conform(batch: Any, schema: Any) -> Any:
    """Return a batch with the types and names of a schema."""
    try:
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
    except pa.ArrowInvalid:
        raise InvalidInput("at least one cell is not UTF-8 text, as Parquet needs: save the table as UTF-8") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def make_schema(schema: Any, column: str, kind: Any) -> Any:
    """Make the schema of a released table: the label's column with a new type, and no metadata except those of pandas.

    These describe the other columns, an index among them. All others may hold a statistic of the true labels.
    """
    fields = schema.set(schema.names.index(column), pa.field(column, kind)).with_metadata(None)
    notes, described = _pandas_notes(schema)
    if not described:
        return fields
    if column in described:
        # The label's entry is made anew, as pandas needs it if the labels are an index.
        described[column] = {
            "name": column,
            "field_name": column,
            "metadata": None,
            "pandas_type": str(kind).replace("double", "float64"),
            "numpy_type": kind.to_pandas_dtype().__name__,
        }
    kept: dict[str, Any] = {
        name: notes[name] for name in ("column_indexes", "creator", "pandas_version") if name in notes
    }
    kept["columns"] = [note for name, note in described.items() if name in schema.names]
    # An index is a released column, or a range that is not named like the label.
    kept["index_columns"] = [
        entry
        for entry in notes.get("index_columns", [])
        if (entry in schema.names if isinstance(entry, str) else entry.get("name") != column)
    ]
    return fields.with_metadata({"pandas": json.dumps(kept)})


def _pandas_notes(schema: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of pandas on a frame, and on its columns by their names in the file."""
    try:
        notes = json.loads((schema.metadata or {})[b"pandas"])
        return notes, {note.get("field_name") or note["name"]: note for note in notes["columns"]}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}, {}


def check_storable(schema: Any) -> None:
    """Refuse a column whose type Parquet does not have."""
    for field in schema:
        try:
            pa.parquet.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowException:
            raise InvalidInput(
                f"column {field.name!r} is of type {field.type}, which Parquet cannot hold: drop it"
            ) from None


def find_namesakes(schema: Any, column: str) -> tuple[str, ...]:
    """Return other columns that pandas names like the labels, such as an index of their values."""
    _, described = _pandas_notes(schema)
    return tuple(name for name in schema.names if name != column and described.get(name, {}).get("name") == column)


def _refuse_table_formats(path: Path) -> None:
    """Refuse a table with a log of its files, as rows that the log has removed would be released."""
    marks = {
        "_delta_log": "Delta",
        ".hoodie": "Hudi",
        "_spark_metadata": "Spark",
        "metadata/*.metadata.json*": "Iceberg",
    }
    folders = [folder for folder in (path, *path.rglob("*"), *path.resolve().parents) if folder.is_dir()]
    found = [name for mark, name in marks.items() if any(any(folder.glob(mark)) for folder in folders)]
    if all((path / name).is_dir() for name in ("snapshot", "manifest", "schema")):
        found.append("Paimon")
    if found:
        raise InvalidInput(
            f"{path.name} belongs to a table of {found[0]}, whose log lists the files that count: read it with a "
            "library of that format and release the frame, or export it as plain Parquet"
        )
