"""Tables as Parquet, one file or a partitioned folder. Every column except the labels keeps its type and values.

Only the metadata of other columns is copied, as the rest may hold a statistic of the true labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from optrand.base._files import temporary_file
from optrand.errors import InvalidInput
from optrand.release._batches import Table


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
            with _readable(file):
                schemas.append(pa.parquet.read_schema(file))
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
            # Read through buffers of a fixed size in place of whole column chunks.
            with _readable(file), pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
                for batch in opened.iter_batches(1 << 16, columns=None if columns is None else read):
                    rows += batch.num_rows
                    arrays = [c.cast(kind) if c.type != kind else c for c, kind in zip(batch, wanted, strict=True)]
                    for name in partitions:
                        value = pa.scalar(self._folders[part][name], pa.string())
                        arrays.append(pa.repeat(value, batch.num_rows))
                    yield part, pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *partitions])
        if rows == 0:
            raise InvalidInput(f"{self.path.name} has no rows: there is nothing to randomize")


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn errors of Arrow and of the system into one that names only the file."""
    try:
        yield
    except (pa.ArrowException, OSError):
        raise InvalidInput(f"{file.name} cannot be read as Parquet: it is damaged or of another kind") from None


def _partition(folders: Sequence[str]) -> dict[str, str | None]:
    """Return columns and their values in the names of folders, as Hive writes them."""
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder)
    return {unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for name, value in pairs}


GROUP_ROWS, GROUP_BYTES = 1 << 18, 1 << 26
"""A row group ends at the first of these limits, in rows and in bytes of memory."""


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

    These describe the other columns, an index among them. Any others may hold a statistic of the true labels.
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
    marks = {"_delta_log": "Delta", ".hoodie": "Hudi", "_spark_metadata": "Spark's streams"}
    above = (path.resolve(), *path.resolve().parents)
    below = [folder for folder in (path, *path.rglob("*")) if folder.is_dir()]
    found = [name for mark, name in marks.items() if any((folder / mark).is_dir() for folder in (*above, *below))]
    for folder in (*below, *(folder.parent for folder in above if folder.name == "data")):
        found += ["Iceberg"] if any((folder / "metadata").glob("*.metadata.json*")) else []
    if all((path / name).is_dir() for name in ("snapshot", "manifest", "schema")):
        found.append("Paimon")
    if found:
        raise InvalidInput(
            f"{path.name} belongs to a table of {found[0]}, whose log lists the files that count: read it with a "
            "library of that format and release the frame, or export it as plain Parquet"
        )
