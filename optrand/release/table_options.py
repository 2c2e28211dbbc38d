"""The way in which a table is read and written in a release: its format, its columns, its missing labels, its ids."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optrand.base.validation import Floats, integer
from optrand.errors import InputChanged, InvalidInput, UnexpectedInput
from optrand.release.batch import BatchRandomizer, Nulls
from optrand.release.column_groups import ColumnGroups
from optrand.release.declared_sets import DeclaredClasses, DeclaredNumbers
from optrand.release.streams.records import CsvFormat
from optrand.release.streams.source import Sink, Source, digest_of
from optrand.release.table import SUFFIXES, column_named, format_of, suffix_of

__all__ = ["TableOptions", "open_sink"]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of a release of a table, beside what its labels become.

    Parameters
    ----------
    id_column : str, optional
        Of the record ids; row numbers by default.
    nulls : {"refuse", "drop", "pass", "class"}
        What becomes of a missing label. `drop` and `pass` make public which are missing.
    classes : tuple of str or None, optional
        Names of the classes that the job's labels ``0, 1, ...`` stand for; None among them for missing labels.
    keep, drop : tuple of str, optional
        Other columns to release, or not to release; all are released by default.
    layout, released_layout : CsvFormat, optional
        Of the private and of the released table, where they are CSV; by default that of their names.
    grouping : ColumnGroups, optional
        Of rows into groups with a prior of their own; small ones are pooled.
    expect_rows : int, optional
    expect_sha256 : str, optional
        Refuse a table of another number of rows, or another SHA-256 (of a folder, see
        :func:`~optrand.release.streams.source.digest_of`).

    Raises
    ------
    InvalidInput
        Options that exclude each other, or a digest of another form.
    """

    id_column: str | None = None
    nulls: Nulls = "refuse"
    classes: tuple[str | None, ...] | None = None
    keep: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    layout: CsvFormat | None = None
    released_layout: CsvFormat | None = None
    grouping: ColumnGroups | None = None
    expect_rows: int | None = None
    expect_sha256: str | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without the table."""
        if self.keep is not None and self.drop:
            raise InvalidInput("columns are either kept or dropped by name: give one of the two, not both")
        if self.expect_rows is not None:
            integer(self.expect_rows, "the expected number of rows", 1)
        if self.expect_sha256 is not None and not re.fullmatch(r"(sha256:)?[0-9a-fA-F]{64}", self.expect_sha256):
            raise InvalidInput("the expected SHA-256 is no digest: expected 64 hexadecimal digits")

    def randomizer(self, source: Source, column: str, labels: Floats, *, clip: bool) -> BatchRandomizer:
        """The randomizer of batches of a table.

        Parameters
        ----------
        source : Source
        column : str
            Of the labels.
        labels : (k,) array
            The declared set.
        clip : bool
            Whether numbers beyond its ends count as the nearest end.

        Raises
        ------
        InvalidInput
            A column that the table does not have, or has twice, or whose type holds no labels.
        """
        label = column_named(source, column)
        declared: DeclaredNumbers | DeclaredClasses
        if self.classes is None:
            declared = DeclaredNumbers(labels, clip=clip)
        else:
            declared = DeclaredClasses(self.classes)
            if declared.labels.tolist() != labels.tolist():
                raise InvalidInput(f"there are {len(self.classes)} classes, expected the labels 0, 1, ... of the job")
        kind = source.schema.field(label).type
        declared.released_type(kind, label, text=source.text is not None)
        if any(part.startswith(f"{column}=") for file in source.files for part in file.parts[len(source.path.parts) :]):
            raise InvalidInput(f"{source.path.name} has folders named by {column!r}: their names disclose labels")
        return BatchRandomizer(
            column=label,
            declared=declared,
            nulls=self.nulls,
            id_column=None if self.id_column is None else column_named(source, self.id_column, public=True),
            grouping=self._groups(source, label),
            text=source.text,
            released=self._released(source, label),
        )

    def _groups(self, source: Source, label: str) -> ColumnGroups | None:
        if self.grouping is None:
            return None
        columns = tuple(column_named(source, name, public=True) for name in self.grouping.columns)
        if label in columns:
            raise InvalidInput(f"column {label!r} holds the labels, which are private: group by public columns")
        return ColumnGroups(columns).of(source)

    def _released(self, source: Source, label: str) -> tuple[str, ...] | None:
        if self.keep is None and not self.drop:
            # Columns in the names of folders stay there.
            public = (self.id_column, *(() if self.grouping is None else self.grouping.columns))
            return source.names if any(name in source.partitions for name in public) else None
        named = [column_named(source, name) for name in (self.keep if self.keep is not None else self.drop)]
        if self.drop and label in named:
            raise InvalidInput(f"column {label!r} holds the labels: it cannot be dropped from their release")
        wanted = {*named, label} if self.keep is not None else set(source.names) - set(named)
        return tuple(name for name in source.names if name in wanted)

    def check_digest(self, source: Source) -> None:
        """Compare the table with the expected SHA-256.

        Raises
        ------
        UnexpectedInput
            It is another.
        """
        if self.expect_sha256 is None:
            return
        expected = self.expect_sha256.lower().removeprefix("sha256:")
        if not hmac.compare_digest(expected, digest_of(source.path)):
            raise UnexpectedInput(f"{source.path.name} is not the table that was expected: its SHA-256 is another")

    def check_rows(self, rows: int, name: str) -> None:
        """Compare a number of rows with the expected one.

        Raises
        ------
        InputChanged
            It is another.
        """
        if self.expect_rows is not None and rows != self.expect_rows:
            raise InputChanged(f"{name} has {rows} rows, expected {self.expect_rows}")


def open_sink(
    source: Source, randomizer: BatchRandomizer, target: Path, staged: Path, *, layout: CsvFormat | None
) -> Sink:
    """A table to write the batches of a randomizer to.

    Parameters
    ----------
    source : Source
        The table that is read.
    randomizer : BatchRandomizer
    target, staged : path
        The name that the table will have, which decides on its format, and the one to write it under. A folder of
        Parquet files becomes one with the same files, unless `target` is CSV.
    layout : CsvFormat, optional

    Raises
    ------
    InvalidInput
        Columns that the other format cannot hold.
    """
    label, names = randomizer.column, randomizer.released or source.names
    kind = randomizer.declared.released_type(source.schema.field(label).type, label, text=source.text is not None)
    if not _folder(source, target) and suffix_of(target) != ".parquet":
        return _csv_sink(source, names, target, staged, layout)
    from optrand.release.streams.parquet_files import ParquetSink, released_schema

    if len(set(names)) < len(names):
        raise InvalidInput(f"{source.path.name} has two columns of one name: rename them, or write CSV")
    fields = [source.schema.field(name) for name in names]
    if source.text is not None:
        fields = [pa.field(field.name, pa.string()) for field in fields]
        kind = pa.string() if pa.types.is_binary(kind) else kind
    schema = released_schema(pa.schema(fields, source.schema.metadata), label, kind)
    paths = [staged / file.relative_to(source.path) for file in source.files] if _folder(source, target) else [staged]
    if len(paths) < len(source.files):
        raise InvalidInput(
            f"{source.path.name} is a folder of files: name a folder, or a CSV file, for the released table"
        )
    sink = ParquetSink(schema, paths, distinct=randomizer.id_column)
    return _Converted(sink, lambda batch: _as_text(batch, schema)) if source.text is not None else sink


def _folder(source: Source, target: Path) -> bool:
    return source.path.is_dir() and not target.name.lower().endswith(SUFFIXES[:-1])


def _csv_sink(source: Source, names: tuple[str, ...], target: Path, staged: Path, layout: CsvFormat | None) -> Sink:
    from optrand.release.streams.csv_files import CsvSink, CsvSource

    if any("=" in part for file in source.files for part in file.parts[len(source.path.parts) : -1]):
        raise InvalidInput(f"{source.path.name} has columns in the names of its folders: release it as a folder")
    header: list[bytes | None] = [name.encode() for name in names]
    if isinstance(source, CsvSource):
        header = [raw for raw, name in zip(source.header, source.names, strict=True) if name in names]
        layout = layout or (source.layout if suffix_of(target)[:4] == suffix_of(source.path)[:4] else None)
    stream = os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    return CsvSink(stream, header, layout or format_of(target), compress=suffix_of(target).endswith(".gz"))


@dataclass(frozen=True)
class _Converted(Sink):
    """A table whose batches are converted before they are written."""

    sink: Sink
    convert: Callable[[Any], Any]

    def write(self, part: int, batch: Any) -> None:
        """See :meth:`Sink.write`."""
        self.sink.write(part, self.convert(batch))

    def close(self) -> None:
        """See :meth:`Sink.close`."""
        self.sink.close()

    def abandon(self) -> None:
        """See :meth:`Sink.abandon`."""
        self.sink.abandon()


def _as_text(batch: Any, schema: Any) -> Any:
    try:
        columns = [
            column if column.type == f.type else pc.cast(column, f.type)
            for column, f in zip(batch, schema, strict=True)
        ]
    except pa.ArrowInvalid:
        raise InvalidInput("at least one cell is no UTF-8 text, as Parquet needs: save the table as UTF-8") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)
