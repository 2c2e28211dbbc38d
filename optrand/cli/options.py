"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def option(name: str, metavar: str, help_: str, *, short: str | None = None) -> Any:
    """Return an option with an argument."""
    return typer.Option(*([name] if short is None else [name, short]), metavar=metavar, help=help_)


LABEL_FORMS = "LOW:HIGH[:STEP] (both ends included), a list such as 1,2.5,7, or @FILE."
OUTPUT_FORMS = "line, interval:LOW:HIGH, values:1,2.5,7, or grid:N for N evenly spaced outputs"

Labels = Annotated[str, option("--labels", "SET", f"All numbers that can occur: {LABEL_FORMS}")]
Epsilon = Annotated[str, option("--epsilon", "NATS", "Privacy budget, above 0 and at most 700.")]
Prior = Annotated[
    Path, option("--prior", "FILE", "CSV of two columns, label and count (or probability). It must be PUBLIC.")
]
Outputs = Annotated[str, option("--outputs", "SET", f"Where outputs may lie: {OUTPUT_FORMS}.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Saved = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release, OUT.release.json.")
]
LedgerName = Annotated[
    str | None,
    option(
        "--ledger",
        "FILE|URL",
        "Ledger: a file, by default $XDG_STATE_HOME/optrand/ledger.sqlite, or postgresql://USER@HOST/DATABASE.",
    ),
]
