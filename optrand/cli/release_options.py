"""Options of ``optrand randomize``, with what they say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from optrand.cli.options import LABEL_FORMS

__all__ = [
    "AllowGap",
    "AllowInexact",
    "BiasPenalty",
    "Budget",
    "Classes",
    "Clip",
    "ClipOutputs",
    "Dataset",
    "Decimal",
    "Diagnose",
    "Drop",
    "Entropy",
    "ExpectRows",
    "ExpectSha256",
    "Group",
    "IdColumn",
    "Keep",
    "Label",
    "Labels",
    "Ledger",
    "Loss",
    "Minimax",
    "NoLedger",
    "NoProgress",
    "Nulls",
    "Outputs",
    "PaidPrior",
    "PriorEpsilon",
    "PublicPrior",
    "Randomizer",
    "ReleasedDecimal",
    "ReleasedSeparator",
    "Separator",
    "Source",
    "SpendAgain",
    "Target",
    "Task",
    "TopK",
]


def _text(name: str, metavar: str, help_: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help_)


Source = Annotated[
    Path,
    typer.Argument(
        metavar="IN", help="The table: .csv, .tsv, either with .gz, .parquet, or a folder of Parquet files."
    ),
]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="The released table, of any of these kinds.")]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column of private labels.")]
Dataset = Annotated[
    str | None,
    _text("--dataset", "NAME", "Whose labels these are, to the ledger: more rows or another order make no new one."),
]
Labels = Annotated[str | None, _text("--labels", "SET", f"The declared set of labels that are numbers: {LABEL_FORMS}")]
Classes = Annotated[
    str | None,
    _text("--classes", "NAMES", "The declared classes by their names: yes,no or @FILE with a name a line."),
]
Task = Annotated[
    str | None,
    _text("--task", "TASK", "classification or regression; by default that of --classes or of --labels."),
]
Loss = Annotated[
    str | None,
    _text(
        "--loss",
        "LOSS",
        "What an error costs: squared, absolute, poisson or, for classes, zero-one; or @FILE, a CSV table of numbers "
        "with a row for each label and a column for each output.",
    ),
]
Outputs = Annotated[
    str | None,
    _text(
        "--outputs",
        "SET",
        "Where outputs may lie: line (the default), interval:LOW:HIGH, grid:N, or values: and a list as for --labels.",
    ),
]
BiasPenalty = Annotated[
    str | None,
    _text("--bias-penalty", "PENALTY", "From 0 (no care for bias: bins) to inf (no bias), the default of squares."),
]
Randomizer = Annotated[
    str | None,
    _text(
        "--randomizer",
        "NAME",
        "In place of the best one that is fit for histograms. For a prior: optimal (the best one, as it is), "
        "rr-with-prior, rr-top-k, rr-on-bins or gap-response. Without a prior: rr (the default of --classes), "
        "debiased-rr, minimax, discrete-laplace, discrete-staircase or, with --allow-inexact, laplace or staircase. Or "
        "a mechanism, FILE.json, that was saved for these labels.",
    ),
]
Minimax = Annotated[
    bool,
    typer.Option("--minimax", help="As --randomizer minimax: no prior, and the largest loss of all labels is least."),
]
TopK = Annotated[
    str | None,
    _text("--k", "K", "How many of the likeliest labels --randomizer rr-top-k keeps; by default the best number."),
]
Clip = Annotated[
    bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
]
ClipOutputs = Annotated[
    str | None,
    _text("--clip-outputs", "LOW:HIGH", "Clip noisy labels of an additive --randomizer: less noise, and a bias."),
]
AllowInexact = Annotated[
    bool,
    typer.Option("--allow-inexact", help="Let noise be drawn in floats, whose privacy holds for real numbers ONLY."),
]
AllowGap = Annotated[
    str | None,
    _text("--allow-gap", "SHARE", "Release although the verified gap is above 1e-6, if it is at most this."),
]
PriorEpsilon = Annotated[
    str | None,
    _text("--prior-epsilon", "NATS", "What the prior may spend of epsilon; by default sqrt(k / n), at most a 20th."),
]
PublicPrior = Annotated[
    Path | None,
    _text("--public-prior", "FILE", "A prior that spends nothing and is TRUSTED to be public: label, count."),
]
PaidPrior = Annotated[
    Path | None,
    _text("--paid-prior", "FILE", "With --no-ledger: OUT.prior.csv, which a run that broke off has paid for."),
]
Nulls = Annotated[
    str,
    _text(
        "--nulls",
        "WHAT",
        "A missing label: refuse (the default) stops, which reveals that there is one; drop leaves its row out and "
        "pass leaves it missing, which both make PUBLIC which labels are missing; class, with --classes, makes it "
        "a class of its own and reveals nothing.",
    ),
]
Group = Annotated[
    str | None,
    _text(
        "--group",
        "COLUMNS",
        "Public columns, a,b: one prior and one optimal randomizer for each of their groups, all for one epsilon.",
    ),
]
IdColumn = Annotated[
    str | None, _text("--id", "COLUMN", "Record ids, one of a kind; by default the numbers of the rows.")
]
Keep = Annotated[str | None, _text("--keep", "COLUMNS", "The only other columns to copy: a,b.")]
Drop = Annotated[str | None, _text("--drop", "COLUMNS", "Columns that are not copied: a,b.")]
Separator = Annotated[str | None, _text("--separator", "CHARACTER", "Between cells of IN, if not that of its kind.")]
Decimal = Annotated[str | None, _text("--decimal", "CHARACTER", "The decimal point of labels in IN: . or ,")]
ReleasedSeparator = Annotated[
    str | None, _text("--separator", "CHARACTER", "Between cells of the released table, if not that of its kind.")
]
ReleasedDecimal = Annotated[str | None, _text("--decimal", "CHARACTER", "The decimal point of its labels: . or ,")]
ExpectRows = Annotated[str | None, _text("--expect-rows", "N", "Refuse a table of another number of rows.")]
ExpectSha256 = Annotated[str | None, _text("--expect-sha256", "HEX", "Refuse a table of another digest.")]
Ledger = Annotated[Path | None, _text("--ledger", "FILE", "By default $XDG_STATE_HOME/optrand/ledger.sqlite.")]
NoLedger = Annotated[
    bool, typer.Option("--no-ledger", help="Charge nobody: YOU keep account of epsilon; the record says so.")
]
SpendAgain = Annotated[
    bool, typer.Option("--spend-again", help="Release a column that was released before: the epsilons add up.")
]
Budget = Annotated[
    str | None, _text("--budget", "NATS", "Refuse if all releases of the dataset would cost more together.")
]
Entropy = Annotated[
    str | None,
    _text(
        "--entropy",
        "SOURCE",
        "keyed (the default): a run that broke off goes on with the same noise, private against bounded "
        "computation; system: the operating system's own, and a run that broke off has to pay again.",
    ),
]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Do not tell how far the release is.")]
Diagnose = Annotated[
    bool,
    typer.Option(
        "--diagnose",
        help="Only count, for the owner of the labels, how many are missing, no numbers or not declared. The "
        "counts are NOT private. Nothing is released and nothing spent.",
    ),
]
