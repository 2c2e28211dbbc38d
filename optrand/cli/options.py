"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Epsilon", "Force", "Labels", "LedgerName", "Outputs", "Prior", "Saved"]

LABEL_FORMS = "LOW:HIGH[:STEP] (both ends included), a list such as 1,2.5,7, or @FILE."
OUTPUT_FORMS = "line, interval:LOW:HIGH, values:1,2.5,7, or grid:N for N evenly spaced outputs"

Labels = Annotated[str, typer.Option("--labels", metavar="SET", help=f"All numbers that can occur: {LABEL_FORMS}")]
Epsilon = Annotated[str, typer.Option("--epsilon", metavar="NATS", help="Privacy budget, above 0 and at most 700.")]
Prior = Annotated[
    Path,
    typer.Option(
        "--prior", metavar="FILE", help="CSV of two columns, label and count (or probability). It must be PUBLIC."
    ),
]
Outputs = Annotated[str, typer.Option("--outputs", metavar="SET", help=f"Where outputs may lie: {OUTPUT_FORMS}.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Saved = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release, OUT.release.json.")
]
LedgerName = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE|URL",
        help="Ledger: a file, by default $XDG_STATE_HOME/optrand/ledger.sqlite, or postgresql://USER@HOST/DATABASE.",
    ),
]
