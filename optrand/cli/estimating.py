"""``optrand estimate``: mean and histogram of the labels behind a released table, with standard errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optrand.base.numerals import shown_above
from optrand.cli.console import also, command_line, lines, progress, show
from optrand.cli.saved import read_record, tell_total
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.release.record import ReleaseRecord

__all__ = ["estimate"]


@command_line
def estimate(
    saved: Annotated[Path, typer.Argument(metavar="RECORD", help="Record of the release, OUT.release.json.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The released table, unchanged.")],
) -> None:
    """Estimate the mean and the histogram of the labels behind a released table.

    The errors are standard deviations of the noise alone: they do not contain the spread of people. Missing labels are
    left out. If the mechanism admits no estimate of the mean or of the histogram, the reason is printed in its place;
    if it admits neither, the exit code is 2.
    """
    from optrand.estimate import histogram, mean

    record = read_record(saved)
    record.verify_table(table)
    # Classes are read as their places, numbers like any others.
    numbered = replace(record, classes=None)
    counts: list[tuple[str, float, float]] = []
    with progress() as announce:
        announce("reading the table")
        values, groups = _read(table, record)
        announce("estimating")
        facts: dict[str, object] = {"rows": record.rows}
        if record.groups:
            facts["groups"] = f"{len(record.mechanisms)} by {', '.join(record.groups)}"
        if record.classes is None:
            try:
                found = mean(values, numbered, groups=groups)
                facts["mean"] = f"{found.value:.6g} ± {shown_above(found.noise_error, 3)}"
            except InvalidInput as error:
                facts["mean"] = f"not estimated: {error}"
        try:
            shares = histogram(values, numbered, groups=groups)
            names = record.classes or tuple(f"{label:g}" for label in record.labels)
            errors = shares.noise_errors.tolist()
            counts = [
                ("" if name is None else str(name), share, error)
                for name, share, error in zip(names, shares.shares.tolist(), errors, strict=True)
            ]
            facts["largest error"] = f"{shown_above(max(errors), 3)} of a share"
        except InvalidInput as error:
            facts["histogram"] = f"not estimated: {error}"
    tell_total(record)
    show(facts)
    if counts:
        also(histogram=[{"label": name, "share": share, "error": error} for name, share, error in counts])
        lines("label,share,standard error", *[f"{n},{s:.6g},{shown_above(e, 3)}" for n, s, e in counts])
    elif "mean" not in facts or str(facts["mean"]).startswith("not estimated"):
        raise InvalidInput("nothing can be estimated from this release")


def _read(path: Path, record: ReleaseRecord) -> tuple[Any, Any]:
    """Return released labels, classes by their places and NaN for missing ones, and the table of their groups."""
    import numpy as np
    import pyarrow as pa

    from optrand.release.batches import find_column
    from optrand.release.files import open_table

    stated = record.table
    signs = {} if stated is None else {"separator": stated.separator, "decimal": stated.decimal}
    table = open_table(path, **signs)
    label = find_column(table, record.label)
    column = record.column(table.schema.field(label).type, table.decimal)
    parts, groups = [], []
    for _, batch in table.batches([label, *record.groups]):
        parts.append(column.numbers(batch.column(batch.schema.get_field_index(label))))
        if record.groups:
            groups.append(batch.select(list(record.groups)))
    return np.concatenate(parts), pa.Table.from_batches(groups) if record.groups else None
