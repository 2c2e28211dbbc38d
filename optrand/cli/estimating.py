"""``optrand estimate``: mean and histogram of the labels behind a released table, with standard errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from optrand.base.numerals import shown_above
from optrand.cli.questions import holds_record
from optrand.cli.reporting import also, lines, progress, reported, show, tell_total
from optrand.errors import InvalidInput

__all__ = ["estimate"]


@reported
def estimate(
    saved: Annotated[Path, typer.Argument(metavar="RECORD", help="The record of the release, OUT.release.json.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The released table, as it was released.")],
) -> None:
    """Estimate the mean and the histogram of the labels behind a released table.

    Errors are those of the noise, about the table that was released: the spread of people is not in them. What the
    mechanism does not admit is said in its place.
    """
    from optrand.estimate import histogram, mean
    from optrand.release.record import load_release
    from optrand.release.table import read_labels

    if not holds_record(saved):
        raise InvalidInput(f"{saved} is no record of a release: expected OUT.release.json, which stands beside OUT")
    if not table.exists():
        raise InvalidInput(f"{table} is not there: expected the released table")
    record = load_release(saved)
    record.verify_table(table)
    column = record.circumstances.column
    if column is None:
        raise InvalidInput(f"{saved} names no column of labels")
    classes, columns = record.circumstances.classes, record.circumstances.groups
    # Classes are read as their places, numbers like any others.
    numbered = replace(record, circumstances=replace(record.circumstances, classes=None))
    with progress() as announce:
        announce("reading the table")
        released = read_labels(table, column) if classes is None else _places(table, column, classes)
        groups = _columns(table, columns) if columns else None
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


def _columns(path: Path, columns: tuple[str, ...]) -> Any:
    """Columns of groups of a released table."""
    import pyarrow as pa

    from optrand.release.table import column_named, open_table

    table = open_table(path)
    names = [column_named(table, name, public=True) for name in columns]
    parts = [batch.select(names) for _, batch in table.batches(names)]
    return pa.Table.from_batches(parts).rename_columns(list(columns))


def _places(path: Path, column: str, classes: tuple[str | int | bool, ...]) -> NDArray[np.float64]:
    """Places of released classes among the declared ones; a missing label is the class without a name."""
    from optrand.release.declared_sets import DeclaredClasses
    from optrand.release.table import column_named, open_table

    table, declared = open_table(path), DeclaredClasses(tuple(str(name) or None for name in classes))
    name = column_named(table, column)
    parts = [declared.places(batch.column(0), column=column, text=table.text) for _, batch in table.batches([name])]
    places = np.concatenate(parts).astype(np.float64)
    if (places < 0).any():
        raise InvalidInput(f"{path} has labels that are missing or of no declared class")
    return places
