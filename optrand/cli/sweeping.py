"""``optrand sweep``: one certified row for every epsilon and bias penalty, as a table, a file and a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.base.numerals import shown_above
from optrand.cli.options import Force, Labels, Outputs, Prior, read_epsilon, read_penalty, read_several
from optrand.cli.reporting import also, lines, progress, reported, say, tell_prior
from optrand.errors import InvalidInput, NotCertified

if TYPE_CHECKING:
    from optrand.studies.sweeps import Sweep

__all__ = ["sweep"]

COLUMNS = ("epsilon", "bias_penalty", "value", "gap", "variance", "squared_bias", "outputs", "seconds", "status")
"""Columns that are printed; the file holds every column."""

ROUNDED_UP = ("value", "gap", "variance", "squared_bias")

SEVERAL = "One or more: a list such as 0.5,1,2 or LOW:HIGH:N for N evenly spaced ones, or both."


@reported
def sweep(
    labels: Labels,
    prior: Prior,
    epsilons: Annotated[str, typer.Option("--epsilon", metavar="NATS", help=f"The privacy budget. {SEVERAL}")],
    bias_penalties: Annotated[
        str,
        typer.Option("--bias-penalty", metavar="PENALTIES", help=f"From 0 (no care for bias) to inf (none). {SEVERAL}"),
    ] = "inf",
    outputs: Outputs = "line",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to save all columns: .csv or .parquet.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Where to draw variance against bias: .png, .svg or .pdf."),
    ] = None,
    force: Force = False,
) -> None:
    """Compute what privacy and unbiasedness cost: one certified row for every epsilon and bias penalty.

    A grid is the same in every row: that of the smallest epsilon, the widest of them. Rows whose outputs admit no
    unbiased randomizer say so; a row without a proof ends the command with exit code 3, when all others are done.
    """
    from optrand.base.files import check_target, write_atomically
    from optrand.model.problem import regression
    from optrand.release.declared import allowed_outputs, parse_labels, parse_outputs, read_prior
    from optrand.studies.sweeps import sweep as swept

    budgets = read_several(epsilons, "--epsilon", read_epsilon)
    penalties = read_several(bias_penalties, "--bias-penalty", read_penalty)
    names = parse_labels(labels)
    allowed = allowed_outputs(parse_outputs(outputs), names, min(budgets))
    public = read_prior(prior, names)
    # The least demanding of all: where it is refused, no row has an answer.
    problem = regression(names, public.probabilities, max(budgets), bias_penalty=min(penalties), outputs=allowed)
    if output is not None:
        if output.suffix.lower() not in WRITERS:
            ending = f"ends in {output.suffix}" if output.suffix else "has no ending"
            raise InvalidInput(f"{output.name} {ending}: rows are written as {' or '.join(WRITERS)}, name such a file")
        check_target(output, prior, overwrite=force)
    if picture is not None:
        from optrand.plotting.saving import check_ending

        check_ending(picture)
        check_target(picture, prior, overwrite=force)
    tell_prior(prior, public)
    with progress() as announce:
        table = swept(
            problem,
            epsilons=budgets,
            bias_penalties=penalties,
            progress=lambda done, total: announce(f"{done} of {total} problems solved"),
        )
    _print(table)
    if output is not None:
        write_atomically(output, WRITERS[output.suffix.lower()](table), overwrite=force)
    if picture is not None:
        from optrand.plotting import save_figure

        save_figure(table.plot(), picture, overwrite=force)
    failed = sum(row.status == "failed" for row in table)
    if failed:
        raise NotCertified(f"{failed} of {len(table)} problems have no proof: see their notes")


def _print(table: Sweep) -> None:
    also(rows=list(table.records()))
    rows = [[name.replace("_", " ") for name in COLUMNS]]
    rows += [[_cell(name, getattr(row, name)) for name in COLUMNS] for row in table]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(COLUMNS))]
    for cells in rows:
        lines("  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    for row in table:
        if row.reason:
            say(f"note: epsilon {row.epsilon:g}, bias penalty {row.bias_penalty:g}: {row.reason}")


def _cell(name: str, fact: object) -> str:
    if not isinstance(fact, float):
        return str(fact)
    return shown_above(fact, 6) if name in ROUNDED_UP else f"{fact:.6g}"


def _parquet(table: Sweep) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(table.records()), stream)
    return stream.getvalue()


def _csv(table: Sweep) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.records())
    return text.getvalue().encode()


WRITERS: dict[str, Callable[[Sweep], bytes]] = {".csv": _csv, ".parquet": _parquet}
"""Form of the saved rows by the ending of the file."""
