"""Tables of private labels on disk, CSV or Parquet: the label column as numbers, every other column as it is.

No error message repeats what a cell holds: a table without a header, or with a stray quote, may have a label anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from optrand.errors import InvalidInput
from optrand.release.diagnosis import Readings
from optrand.release.table_base import Table

__all__ = ["SUFFIXES", "read_column", "read_table", "suffix_of"]

SUFFIXES = (".csv", ".csv.gz", ".parquet")
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


def read_table(path: str | os.PathLike[str], label: str) -> Table:
    """Read a table whose column `label` holds the private labels.

    Parameters
    ----------
    path : path
        A CSV file with a header (``.csv``, ``.csv.gz``) or a Parquet file (``.parquet``).
    label : str
        The name of the column, exactly as the file spells it.

    Raises
    ------
    InvalidInput
        No such file, another kind of file, a damaged one, one without rows, or one whose label column is missing,
        repeated, or not made of finite numbers throughout: then neither how many are not is said nor which.

    Examples
    --------
    >>> from optrand.data import weeks_worked_path
    >>> table = read_table(weeks_worked_path(), "weeks")
    >>> table.labels.size, table.labels.max()
    (20000, np.float64(52.0))
    """
    table = _read(Path(path), label)
    table.readings.whole(label)
    return table


def read_column(path: str | os.PathLike[str], label: str) -> Readings:
    """Readings of the column of private labels, numbers or not; for the owner of the labels alone.

    Parameters
    ----------
    path, label
        As in :func:`read_table`.

    Raises
    ------
    InvalidInput
        As :func:`read_table`, but for what the cells of the column hold.
    """
    return _read(Path(path), label).readings


def _read(path: Path, label: str) -> Table:
    suffix = suffix_of(path)
    if not path.is_file():
        raise InvalidInput(f"{path} is {'not a regular file' if path.exists() else 'not there'}: expected a table")
    if suffix == ".parquet":
        from optrand.release.parquet_table import ParquetTable

        return ParquetTable.read(path, label)
    from optrand.release.csv_table import CsvTable

    return CsvTable.read(path, label)
