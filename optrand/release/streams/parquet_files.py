"""Tables as Parquet, one file or a partitioned folder: every column but the labels keeps its type and its values.

Of the metadata only those of other columns are written again: the rest may hold a figure of the true labels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from optrand.errors import InvalidInput
from optrand.release.streams.source import BATCH_ROWS, Sink, Source, files_below

__all__ = ["ParquetSink", "ParquetSource", "released_schema"]

ENDING = ".parquet"

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

ROW_GROUP = 1 << 18
"""Rows of a row group."""


class ParquetSource(Source):
    """A Parquet file, or all of a folder, which must agree in their columns and types.

    Parameters
    ----------
    path : path

    Raises
    ------
    InvalidInput
        A damaged file, a folder without Parquet files, or one whose files differ in their columns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files = files_below(path, ENDING) if path.is_dir() else (path,)
        if not self._files:
            raise InvalidInput(f"{path.name} is a folder without files whose names end in {ENDING}: expected a table")
        schemas = [self._opened(file, lambda opened: opened.schema_arrow) for file in self._files]
        self._schema = schemas[0]
        if any(not other.equals(self._schema, check_metadata=False) for other in schemas):
            raise InvalidInput(
                f"the files of {path.name} differ in their columns or types: expected those of one table"
            )
        self.names = tuple(self._schema.names)
        self._folders = [_partition(file.relative_to(path).parts[:-1]) for file in self._files] if path.is_dir() else []
        self.partitions = tuple(
            name
            for name in (self._folders[0] if self._folders else {})
            if name not in self.names and all(name in found for found in self._folders)
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """The file, or all files of the folder in the order of their paths."""
        return self._files

    @property
    def schema(self) -> Any:
        """Schema of the first file, with its metadata."""
        return self._schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """See :meth:`Source.batches`."""
        rows = 0
        stored = None if columns is None else [name for name in columns if name not in self.partitions]
        # A batch without columns would not know its rows.
        read = stored or (None if stored is None else list(self.names[:1]))
        for part, file in enumerate(self._files):
            try:
                # Buffers of a fixed size in place of whole column chunks.
                with pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
                    for batch in opened.iter_batches(BATCH_ROWS, columns=read):
                        rows += batch.num_rows
                        plain = columns is None or list(columns) == read
                        yield part, batch if plain else self._with_partitions(batch, part, columns or ())
            except (pa.ArrowException, OSError):
                raise self._damaged(file) from None
        if rows == 0:
            raise InvalidInput(f"{self.path.name} has no rows: there is nothing to randomize")

    def _with_partitions(self, batch: Any, part: int, columns: Sequence[str]) -> Any:
        """Columns of a batch, those in the names of its folders among them."""
        arrays = [
            pa.repeat(pa.scalar(self._folders[part][name], pa.string()), batch.num_rows)
            if name in self.partitions
            else batch.column(name)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _opened(self, file: Path, read: Callable[[Any], Any]) -> Any:
        try:
            with pa.parquet.ParquetFile(file) as opened:
                return read(opened)
        except (pa.ArrowException, OSError):
            raise self._damaged(file) from None

    @staticmethod
    def _damaged(file: Path) -> InvalidInput:
        return InvalidInput(f"{file.name} cannot be read as Parquet: it is damaged or of another kind")


def _partition(folders: Sequence[str]) -> dict[str, str | None]:
    """Columns and their values in the names of folders, as Hive writes them."""
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder)
    return {unquote(name): None if value == HIVE_NULL else unquote(value) for name, value in pairs}


class ParquetSink(Sink):
    """A Parquet file or folder that is being written, one file for each file of the table that is read.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the batches.
    paths : sequence of path
        A file for each index that :meth:`write` is given; folders are made.
    distinct : str, optional
        Column no two of whose cells are equal, as record ids: a dictionary of them would only cost time and space.
    """

    def __init__(self, schema: Any, paths: Sequence[Path], *, distinct: str | None = None) -> None:
        self.schema, self.paths, self.part = schema, list(paths), -1
        # Writers know the parts of nested columns by other names.
        flat = not any(pa.types.is_nested(field.type) for field in schema)
        self.repeated = [name for name in schema.names if name != distinct] if flat else True
        self.writer: Any = None
        self.file: Any = None
        self.held: list[Any] = []

    def write(self, part: int, batch: Any) -> None:
        """See :meth:`Sink.write`."""
        while self.part < part:
            self._next()
        self.held.append(batch)
        if sum(held.num_rows for held in self.held) >= BATCH_ROWS:
            self._flush()

    def close(self) -> None:
        """See :meth:`Sink.close`."""
        while self.part < len(self.paths) - 1:
            self._next()
        self._finish()

    def abandon(self) -> None:
        """See :meth:`Sink.abandon`."""
        if self.writer is not None:
            with suppress(OSError, ValueError, pa.ArrowException):
                self.writer.close()
            with suppress(OSError):
                self.file.close()

    def _next(self) -> None:
        self._finish()
        self.part += 1
        path = self.paths[self.part]
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.file = os.fdopen(descriptor, "wb")
        self.writer = pa.parquet.ParquetWriter(self.file, self.schema, use_dictionary=self.repeated)

    def _flush(self) -> None:
        if self.held:
            batch = pa.Table.from_batches(self.held, self.schema)
            self.held = []
            for piece in batch.to_batches():
                self.writer.write_batch(piece, ROW_GROUP)

    def _finish(self) -> None:
        if self.writer is not None:
            self._flush()
            self.writer.close()
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            self.writer = None


def released_schema(schema: Any, label: str, kind: Any) -> Any:
    """Schema of a released table: the label's column of a new type, and metadata that say nothing of the true labels.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the private table, perhaps without some columns.
    label : str
    kind : pyarrow.DataType
        Of the noisy labels.

    Returns
    -------
    pyarrow.Schema
        What pandas notes of other columns is kept, its index among it; all else that was said of the table goes.
    """
    at = schema.names.index(label)
    noted = (schema.metadata or {}).get(b"pandas")
    fields = schema.set(at, pa.field(label, kind)).with_metadata(None)
    try:
        frame = json.loads(noted) if noted else None
        columns = [column for column in frame["columns"] if column["name"] in schema.names] if frame else []
    except (ValueError, TypeError, KeyError):
        frame = None
    if not frame:
        return fields
    known = {"name": label, "field_name": label, "metadata": None}
    types = {"pandas_type": str(kind).replace("double", "float64"), "numpy_type": kind.to_pandas_dtype().__name__}
    index = [entry for entry in frame.get("index_columns", []) if not isinstance(entry, str) or entry in schema.names]
    kept = {
        "index_columns": index,
        "column_indexes": frame.get("column_indexes", []),
        "columns": [{**known, **types} if column["name"] == label else column for column in columns],
        "creator": frame.get("creator"),
        "pandas_version": frame.get("pandas_version"),
    }
    return fields.with_metadata({"pandas": json.dumps(kept)})
