"""Options of a table, as they are written on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.release.streams.records import CsvFormat
    from optrand.release.table_options import TableOptions

__all__ = ["csv_layout", "table_options"]


def table_options(source: Path, **given: Any) -> TableOptions:
    """Options of the table from texts, None where they were not given."""
    from optrand.release.batch import Nulls
    from optrand.release.column_groups import ColumnGroups
    from optrand.release.table_options import TableOptions

    separator, decimal, group = given.pop("separator"), given.pop("decimal"), given.pop("group")
    if given["nulls"] not in get_args(Nulls):
        raise InvalidInput(f"--nulls is {given['nulls']!r}, expected one of {', '.join(get_args(Nulls))}")
    return TableOptions(
        **{
            **given,
            "layout": csv_layout(source, separator, decimal),
            "grouping": None if group is None else ColumnGroups(_columns(group, "--group")),
            "keep": None if given["keep"] is None else _columns(given["keep"], "--keep"),
            "drop": () if given["drop"] is None else _columns(given["drop"], "--drop"),
            "expect_rows": None if given["expect_rows"] is None else _rows(given["expect_rows"]),
        }
    )


def csv_layout(table: Path, separator: str | None, decimal: str | None) -> CsvFormat | None:
    """Layout of a table of separated text; None, that of its name, where neither option was given."""
    from optrand.release.streams.records import CsvFormat
    from optrand.release.table import format_of, suffix_of

    if separator is None and decimal is None:
        return None
    if table.is_dir() or suffix_of(table) == ".parquet":
        raise InvalidInput("--separator and --decimal are for separated text, not for Parquet: leave them out")
    between = format_of(table).separator if separator is None else separator
    return CsvFormat(
        separator={"\\t": "\t", "tab": "\t"}.get(between, between), decimal="." if decimal is None else decimal
    )


def _columns(text: str, name: str) -> tuple[str, ...]:
    """Names of columns, quoted as in CSV where they hold a comma."""
    import csv
    import io

    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        rows = []
    if len(rows) != 1 or not all(rows[0]) or len(set(rows[0])) < len(rows[0]):
        raise InvalidInput(f"{name} is no list of different columns: write a,b with quotes as in CSV")
    return tuple(rows[0])


def _rows(text: str) -> int:
    from optrand.release.decimals import whole

    rows = whole(text)
    if rows is None or rows < 1:
        raise InvalidInput(f"--expect-rows is {text!r}, expected a whole number above 0")
    return rows
