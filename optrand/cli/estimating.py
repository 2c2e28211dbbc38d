"""``optrand estimate``: mean and histogram of the labels behind a released table, with standard errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from optrand.base.numerals import shown_above
from optrand.cli.questions import holds_record
from optrand.cli.release_options import ReleasedDecimal, ReleasedSeparator
from optrand.cli.reporting import also, lines, progress, reported, show, tell_total
from optrand.cli.table_asked import csv_layout
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.release.circumstances import Circumstances
    from optrand.release.record import ReleaseRecord
    from optrand.release.streams.records import CsvFormat

__all__ = ["estimate"]


@reported
def estimate(
    saved: Annotated[Path, typer.Argument(metavar="RECORD", help="The record of the release, OUT.release.json.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The released table, as it was released.")],
    separator: ReleasedSeparator = None,
    decimal: ReleasedDecimal = None,
) -> None:
    """Estimate the mean and the histogram of the labels behind a released table.

    Errors are those of the noise, about the table that was released: the spread of people is not in them. What the
    mechanism does not admit is said in its place. Labels that were passed on as missing are left out.
    """
    from optrand.estimate import histogram, mean
    from optrand.release.record import load_release

    if not holds_record(saved):
        raise InvalidInput(f"{saved} is no record of a release: expected OUT.release.json, which stands beside OUT")
    if not table.exists():
        raise InvalidInput(f"{table} is not there: expected the released table")
    record = load_release(saved)
    record.verify_table(table)
    if record.circumstances.column is None:
        raise InvalidInput(f"{saved} names no column of labels")
    classes, columns = record.circumstances.classes, record.circumstances.groups
    # Classes are read as their places, numbers like any others.
    numbered = replace(record, circumstances=replace(record.circumstances, classes=None))
    with progress() as announce:
        announce("reading the table")
        released, groups = _read(table, record, csv_layout(table, separator, decimal))
        announce("estimating")
        facts: dict[str, object] = {"rows": record.rows}
        if columns:
            facts["groups"] = f"{len(record.randomizers)} by {', '.join(columns)}"
        try:
            if classes is not None:
                raise InvalidInput("classes are no numbers")
            found = mean(released, numbered, groups=groups)
            facts["mean"] = f"{found.value:.6g} ± {shown_above(found.noise_error, 3)}"
        except InvalidInput as error:
            facts["mean"] = f"not estimated: {error}"
        counts: list[tuple[str, float, float]] = []
        try:
            shares = histogram(released, numbered, groups=groups)
            names = record.circumstances.classes or tuple(f"{label:g}" for label in record.labels)
            errors = shares.noise_errors
            counts = [
                (str(name), share, error) for name, share, error in zip(names, shares.shares, errors, strict=True)
            ]
            facts["largest error"] = f"{shown_above(float(np.max(errors)), 3)} of a share"
        except InvalidInput as error:
            facts["histogram"] = f"not estimated: {error}"
    tell_total(record)
    show(facts)
    if counts:
        also(histogram=[{"label": name, "share": share, "error": float(error)} for name, share, error in counts])
        lines("label,share,standard error", *[f"{n},{s:.6g},{shown_above(float(e), 3)}" for n, s, e in counts])


def _read(path: Path, record: ReleaseRecord, layout: CsvFormat | None) -> tuple[NDArray[np.float64], Any]:
    """Released labels, classes by their places, and the columns of their groups; None without groups.

    Rows whose label was passed on as missing are left out.
    """
    import pyarrow as pa

    from optrand.release.table import column_named, open_table

    around, table = record.circumstances, open_table(path, layout=layout)
    label = column_named(table, around.column or "")
    names = [column_named(table, name, public=True) for name in around.groups]
    parts, groups = [], []
    for _, batch in table.batches([label, *names]):
        values, missing = _values(batch.column(label), around, text=table.text)
        kept = ~missing if around.nulls == "pass" else np.ones(missing.size, dtype=bool)
        if np.isnan(values[kept]).any():
            raise InvalidInput(f"{path} has labels that are missing or that no such release has")
        parts.append(values[kept])
        groups.append(batch.select(names).filter(pa.array(kept)))
    found = pa.Table.from_batches(groups).rename_columns(list(around.groups)) if names else None
    return np.concatenate(parts), found


def _values(cells: Any, around: Circumstances, *, text: str | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers, or places of classes, NaN for what is neither, and which are missing."""
    from optrand.release.cells import distinct_cells, numbers_of
    from optrand.release.declared_sets import MISSING, DeclaredClasses

    column = around.column or ""
    if around.classes is None:
        distinct, places = distinct_cells(cells, text=text)
        return np.append(numbers_of(distinct, column=column, text=text), np.nan)[places], places < 0
    # A missing label is the class without a name.
    declared = DeclaredClasses(tuple(str(name) or None for name in around.classes))
    found = declared.places(cells, column=column, text=text)
    return np.where(found < 0, np.nan, found), found == MISSING
