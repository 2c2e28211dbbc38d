"""Private tables, in files or in memory, as Arrow batches, and the files that noisy ones are written to.

All that the schema and the options settle about the output is settled before anything is charged. No message repeats
the content of a cell: a table without a header, or with a stray quote, may have a label anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from optrand.base.suggestions import missing
from optrand.errors import InvalidInput
from optrand.release.batches import Table, find_column, label_column
from optrand.release.csv_tables import CsvFormat, CsvTable, CsvWriter, check_writable
from optrand.release.parquet_tables import (
    ParquetTable,
    ParquetWriter,
    check_storable,
    columns_named_by_pandas,
    make_schema,
)
from optrand.release.question import Question

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a path, whatever the case of its letters, by which its kind is known."""
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise InvalidInput(f"{path} is of no known kind: expected a name that ends in {', '.join(SUFFIXES)}")


def format_of(path: Path, separator: str | None = None, decimal: str | None = None) -> CsvFormat | None:
    """Return the signs of a file of separated values, by default those of its name; None for Parquet."""
    if _is_parquet(path):
        if separator is not None or decimal is not None:
            raise InvalidInput("separator and decimal are for separated text, not for Parquet: leave them out")
        return None
    by_name = "\t" if ".tsv" in suffix_of(path) else ","
    chosen = by_name if separator is None else {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    return CsvFormat(separator=chosen, decimal="." if decimal is None else decimal)


def _is_parquet(path: Path) -> bool:
    if path.is_dir() and not path.name.lower().endswith(SUFFIXES[:-1]):
        return True
    return suffix_of(path) == ".parquet"


def open_table(
    path: str | os.PathLike[str], *, separator: str | None = None, decimal: str | None = None
) -> CsvTable | ParquetTable:
    """Open a table, to be read in batches.

    Parameters
    ----------
    path : path
        A CSV file with a header (``.csv``, ``.tsv``, ``.gz`` added to either), a Parquet file (``.parquet``), or a
        folder of Parquet files.
    separator, decimal : str, optional
        Marks of separated text, if not those of its name.

    Raises
    ------
    InvalidInput
        No such file, another kind of file, or a damaged one.

    Examples
    --------
    >>> from optrand.data import weeks_worked_path
    >>> table = open_table(weeks_worked_path())
    >>> sum(batch.num_rows for _, batch in table.batches(["weeks"])), table.schema.names[-1]
    (20000, 'weeks')
    """
    file = Path(path)
    layout = format_of(file, separator, decimal)
    if layout is None and (file.is_dir() or file.is_file()):
        return ParquetTable(file)
    if layout is None or not file.is_file():
        raise InvalidInput(f"{file} is {missing(file)}: expected a table")
    return CsvTable(file, layout)


@dataclass(frozen=True)
class Output:
    """A released table that can be written.

    Attributes
    ----------
    names : tuple of str
        Its columns, in their order.
    begin : callable
        Opens it under a name that nobody sees yet; nothing if others write it.
    layout : CsvFormat or None
        None for Parquet.
    texts : pyarrow.Schema or None
        Columns of bytes that the format holds as UTF-8 text only.
    """

    names: tuple[str, ...]
    begin: Callable[[Path], Any] = lambda _: None
    layout: CsvFormat | None = None
    texts: Any = None


def plan_output(
    table: Table,
    question: Question,
    target: Path,
    *,
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> Output:
    """Plan the file or folder to write a released table to.

    The name of the target decides on the format. A folder of Parquet files becomes one with the same files.
    """
    label, column = question.label, label_column(table, question)
    names = _select_names(table, label, keep, drop)
    source = table.path
    if source is None:
        # The workers of Spark write.
        check_storable(pa.schema([table.schema.field(name) for name in names]))
        return Output(names)
    copies = [name for name in columns_named_by_pandas(table.schema, label) if name in names]
    if copies:
        raise InvalidInput(
            f"column {copies[0]!r} of {source.name} is an index of pandas that is named {label!r}, like the "
            "labels: drop it, or save the frame after reset_index(drop=True)"
        )
    folder = source.is_dir() and not target.name.lower().endswith(SUFFIXES[:-1])
    if not folder and suffix_of(target) != ".parquet":
        return _plan_csv(table, source, label, names, target)
    if len(set(names)) < len(names):
        raise InvalidInput(f"{source.name} has two columns of one name: rename them, or write CSV")
    if len(table.files) > 1 and not folder:
        raise InvalidInput(f"{source.name} is a folder of files: name a folder, or a CSV file, for the released table")
    text = isinstance(table, CsvTable)
    fields = [pa.field(name, pa.string()) if text else table.schema.field(name) for name in names]
    kind = pa.string() if text and pa.types.is_binary(column.released_kind) else column.released_kind
    schema = make_schema(pa.schema(fields, table.schema.metadata), label, kind)
    check_storable(schema)

    def begin(staged: Path) -> ParquetWriter:
        paths = [staged / file.relative_to(source) for file in table.files] if folder else [staged]
        return ParquetWriter(schema, paths, distinct=question.ids)

    texts = pa.schema([(name, pa.string()) for name in names if name != label]) if text else None
    return Output(names, begin, texts=texts)


def _select_names(table: Table, label: str, keep: Sequence[str] | None, drop: Sequence[str]) -> tuple[str, ...]:
    """Select the columns of a released table, in their order."""
    if keep is not None and drop:
        raise InvalidInput("columns are either kept or dropped by name: give one of the two, not both")
    for given in (keep or (), drop):
        if len(set(given)) < len(given) or label in given:
            raise InvalidInput(f"columns to keep or drop are other columns than {label!r}, none of them twice")
    if table.partitions and (set(drop) | set(keep or ())) & set(table.partitions):
        raise InvalidInput("a column in the names of folders stays there: neither keep nor drop it")
    chosen = {find_column(table, name) for name in (keep if keep is not None else drop)}
    names = table.schema.names
    return tuple(name for name in names if name == label or (name in chosen) == (keep is not None))


def _plan_csv(table: Table, source: Path, label: str, names: tuple[str, ...], target: Path) -> Output:
    if any("=" in part for part in table.folders):
        raise InvalidInput(f"{source.name} has columns in the names of its folders: release it as a folder")
    header = [name.encode() for name in names]
    layout = format_of(target)
    if isinstance(table, CsvTable):
        header = [raw for raw, name in zip(table.header, table.schema.names, strict=True) if name in names]
        if suffix_of(target)[:4] == suffix_of(source)[:4]:
            layout = table.layout
    if layout is None:
        raise InvalidInput(f"{target} is a folder: name a file for the released table")
    for name in names:
        if name != label:
            check_writable(table.schema.field(table.schema.names.index(name)).type, name)
    chosen, packed = layout, suffix_of(target).endswith(".gz")
    return Output(names, lambda staged: CsvWriter(staged, header, chosen, compress=packed), layout)
