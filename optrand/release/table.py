"""Tables of private labels on disk, CSV or Parquet: opened as streams, and their label column as numbers.

No error message repeats what a cell holds: a table without a header, or with a stray quote, may have a label anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from optrand.base.suggestions import missing, same_but_spelling
from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.release.diagnosis import Readings
from optrand.release.streams.records import CsvFormat
from optrand.release.streams.source import Source

__all__ = ["SUFFIXES", "column_named", "format_of", "open_table", "read_column", "read_labels", "suffix_of"]

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
"""Signs that separate cells in files of other conventions, in words."""

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
"""The kinds of file, by the end of their names."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Suffix of a path, one of :data:`SUFFIXES`, whatever the case of its letters.

    Raises
    ------
    InvalidInput
        None of them.

    Examples
    --------
    >>> suffix_of("census.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise InvalidInput(f"{path} is of no known kind: expected a name that ends in {', '.join(SUFFIXES)}")


def format_of(path: str | os.PathLike[str]) -> CsvFormat:
    r"""Format of a file of separated values, by the end of its name.

    Examples
    --------
    >>> format_of("a.csv").separator, format_of("a.tsv.gz").separator
    (',', '\t')
    """
    return CsvFormat(separator="\t" if ".tsv" in suffix_of(path) else ",")


def open_table(path: str | os.PathLike[str], *, layout: CsvFormat | None = None) -> Source:
    """A table, to be read in batches.

    Parameters
    ----------
    path : path
        A CSV file with a header (``.csv``, ``.tsv``, ``.gz`` added to either), a Parquet file (``.parquet``), or a
        folder of Parquet files.
    layout : CsvFormat, optional
        By default :func:`format_of` the path.

    Raises
    ------
    InvalidInput
        No such file, another kind of file, or a damaged one.

    Examples
    --------
    >>> from optrand.data import weeks_worked_path
    >>> table = open_table(weeks_worked_path())
    >>> sum(batch.num_rows for _, batch in table.batches(["weeks"])), table.names[-1]
    (20000, 'weeks')
    """
    file = Path(path)
    suffix = ".parquet" if file.is_dir() and not _names_text(file) else suffix_of(file)
    if suffix == ".parquet" and (file.is_dir() or file.is_file()):
        from optrand.release.streams.parquet_files import ParquetSource

        return ParquetSource(file)
    if not file.is_file():
        raise InvalidInput(f"{file} is {missing(file)}: expected a table")
    from optrand.release.streams.csv_files import CsvSource

    return CsvSource(file, layout or format_of(file))


def _names_text(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES[:-1])


def column_named(table: Source, name: str, *, public: bool = False) -> str:
    """Name by which batches of a table have a column.

    Parameters
    ----------
    table : Source
    name : str
        Exactly as the file spells it. In another encoding than UTF-8 it reaches Python with its bytes escaped.
    public : bool
        Whether a column in the names of folders will do.

    Raises
    ------
    InvalidInput
        The table has no column of that name, or more than one.
    """
    wanted = os.fsencode(name).decode("utf-8", "backslashreplace")
    if public and wanted in table.partitions:
        return wanted
    found = table.names.count(wanted)
    if found == 0:
        first = "the first line must name the columns, and it names" if table.text else "it has"
        raise InvalidInput(
            f"{table.path.name} has no column {name!r}: {first} {len(table.names)} others{_hint(table, name)}"
        )
    if found > 1:
        raise InvalidInput(f"{table.path.name} has {found} columns named {name!r}, expected one: rename the others")
    return wanted


def _hint(table: Source, name: str) -> str:
    """Way out, without a name of the table but one that was given: a first line without names may hold labels."""
    near = same_but_spelling(name, table.names)
    if near is not None:
        return f"; one of them is spelled {near!r}"
    if table.text and len(table.names) == 1:
        signs = [word for sign, word in SEPARATORS.items() if sign in table.names[0]]
        if signs:
            return f"; that line has no separator but holds {signs[0]}: name the separator (--separator)"
    return ""


def read_column(path: str | os.PathLike[str], label: str, *, layout: CsvFormat | None = None) -> Readings:
    """Readings of the column of private labels, numbers or not; for the owner of the labels alone.

    Parameters
    ----------
    path, layout
        As in :func:`open_table`.
    label : str
        The name of the column, exactly as the file spells it.

    Raises
    ------
    InvalidInput
        As :func:`open_table`, or a column that is missing, repeated or of no numeric type.
    """
    from optrand.release.cells import distinct_cells, numbers_of

    table = open_table(path, layout=layout)
    column, rows, missing, parts = column_named(table, label), 0, 0, []
    for _, batch in table.batches([column]):
        cells, places = distinct_cells(batch.column(0), text=table.text)
        numbers = numbers_of(cells, column=label, text=table.text)
        found = numbers[places[places >= 0]]
        rows, missing = rows + places.size, missing + int((places < 0).sum())
        parts.append(found[~np.isnan(found)])
    return Readings(np.concatenate(parts), rows, missing)


def read_labels(path: str | os.PathLike[str], label: str, *, layout: CsvFormat | None = None) -> Floats:
    """The labels of a table, as numbers in memory.

    Parameters
    ----------
    path, label, layout
        As in :func:`read_column`.

    Raises
    ------
    InvalidInput
        As :func:`read_column`, or a column that is not made of finite numbers throughout: then neither how many are
        not is said nor which.

    Examples
    --------
    >>> from optrand.data import weeks_worked_path
    >>> labels = read_labels(weeks_worked_path(), "weeks")
    >>> labels.size, labels.max()
    (20000, np.float64(52.0))
    """
    return read_column(path, label, layout=layout).whole(label)
