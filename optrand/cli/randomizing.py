"""``optrand randomize``: a table of private labels in, a table of noisy ones out."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from optrand.base.numerals import shown_above, shown_spent
from optrand.cli.console import WRONG_INPUT, also, command_line, gap_words, in_options, note_release, progress, show
from optrand.cli.options import LABEL_FORMS, OUTPUT_FORMS, Epsilon, Force, LedgerName, option
from optrand.cli.reading import (
    parse_classes,
    parse_columns,
    parse_epsilon,
    parse_labels,
    parse_outputs,
    parse_penalty,
    read_loss,
    read_prior,
)
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.release.question import Question
    from optrand.release.record import ReleaseRecord

__all__ = ["randomize"]

DEMO = "demo"
"""Name under which the bundled table is charged, unless it is given another."""

POOL = "ARROW_DEFAULT_MEMORY_POOL"


@command_line
def randomize(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Table: .csv, .tsv, either with .gz, .parquet, or a Parquet folder.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The table to write, of any of these kinds.")],
    label: Annotated[str, option("--label", "COLUMN", "Column of private labels.")],
    epsilon: Epsilon,
    labels: Annotated[
        str | None, option("--labels", "SET", f"All numbers that can occur: {LABEL_FORMS} For text use --classes.")
    ] = None,
    classes: Annotated[
        str | None, option("--classes", "NAMES", "All classes that can occur: yes,no, or @FILE with one name per line.")
    ] = None,
    dataset: Annotated[
        str | None,
        option(
            "--dataset",
            "NAME",
            "Name under which the ledger counts epsilon. Use the same name for every release of these people's labels, "
            "also after adding or reordering rows.",
        ),
    ] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Charge no ledger. You must keep account of epsilon yourself.")
    ] = False,
    ledger: LedgerName = None,
    again: Annotated[
        bool, typer.Option("--again", help="Release a column that was released before. The epsilons add up.")
    ] = False,
    budget: Annotated[
        str | None,
        option("--budget", "NATS", "Refuse the release if all releases of the dataset together would cost more."),
    ] = None,
    nulls: Annotated[
        Literal["refuse", "drop", "pass", "class"],
        typer.Option(
            "--nulls",
            help="Missing labels. refuse: stop, which reveals that there is one. drop: leave out their rows. pass: "
            "keep them missing. Both drop and pass make PUBLIC which labels are missing. class (with --classes): treat "
            "missing as one more class, which reveals nothing.",
        ),
    ] = "refuse",
    groups: Annotated[
        str | None,
        option(
            "--groups",
            "COLUMNS",
            "Public columns a,b. Each group of rows gets a prior and a randomizer of its own, all for one epsilon.",
        ),
    ] = None,
    ids: Annotated[
        str | None, option("--ids", "COLUMNS", "Columns that together identify a record. Default: row numbers.")
    ] = None,
    keep: Annotated[str | None, option("--keep", "COLUMNS", "Copy only these other columns. Default: all.")] = None,
    drop: Annotated[str | None, option("--drop", "COLUMNS", "Do not copy these other columns.")] = None,
    randomizer: Annotated[
        str | None,
        option(
            "--randomizer",
            "NAME",
            "Default: the optimal randomizer, mixed slightly so that histograms can be estimated; rr for classes. "
            "Others that use a prior: optimal (never mixed), rr-with-prior, rr-top-k[:K], rr-on-bins, gap-response. "
            "Without a prior: rr, debiased-rr, minimax. Or FILE.json, a mechanism saved for these labels.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        option(
            "--prior",
            "NATS|FILE",
            "Part of epsilon spent on estimating the label distribution. Default: sqrt(labels / rows), at most "
            "epsilon / 20. Or a CSV of two columns, label and count, which costs nothing and must be PUBLIC.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        option(
            "--loss",
            "LOSS",
            "Cost of an error: squared, absolute, poisson, zero-one, or @FILE, a CSV with one row per label and one "
            "column per output.",
        ),
    ] = None,
    bias_penalty: Annotated[
        str | None,
        option(
            "--bias-penalty",
            "PENALTY",
            "Weight of squared bias. inf (default for squared loss): unbiased. 0: ignore bias.",
        ),
    ] = None,
    outputs: Annotated[
        str | None, option("--outputs", "SET", f"Where noisy numbers may lie: {OUTPUT_FORMS}. Default: line.")
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    separator: Annotated[
        str | None,
        option("--separator", "CHARACTER", "Character between the cells of IN. Default: comma for .csv, tab for .tsv."),
    ] = None,
    decimal: Annotated[
        Literal[".", ","] | None, typer.Option("--decimal", help="Decimal point of the labels in IN. Default: .")
    ] = None,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Release nothing. Print how many labels are missing, no numbers or not declared, for the owner of the "
            "labels. These counts are NOT private.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Replace every label of a table by a private one.

    OUT.release.json beside OUT records the budget that was spent, the estimates that are possible, and the mechanisms
    with their proofs. The commands verify, plot and estimate read it. All other columns are copied unchanged: drop
    those that were computed from the labels. Nothing printed or saved is computed from the true labels except the
    prior, which is paid for, the number of rows, and whether all labels are declared. Only --diagnose prints more.

    All of epsilon is charged to the ledger before anything is drawn, and never refunded. A second release of the same
    column of the same dataset is refused unless you add --again. To continue an interrupted run, repeat the command: it
    costs nothing more and draws the same noise.
    """
    _use_system_memory_pool()
    from optrand.release.batches import Listener
    from optrand.release.files import diagnose_table, randomize_table, record_path
    from optrand.release.question import Question

    names = None if classes is None else (*parse_classes(classes), *((None,) if nulls == "class" else ()))
    declared = None if labels is None else parse_labels(labels)
    question = Question(
        label=_column_name(label),
        epsilon=parse_epsilon(epsilon),
        labels=declared,
        classes=names,
        prior=None if prior is None else _prior(prior, declared if names is None else names),
        randomizer=_randomizer(randomizer),
        loss=read_loss(loss[1:]) if loss is not None and loss.startswith("@") else loss,
        bias_penalty=None if bias_penalty is None else parse_penalty(bias_penalty),
        outputs=None if outputs is None else parse_outputs(outputs),
        clip=clip,
        nulls=nulls,
        groups=parse_columns(groups, "--groups"),
        ids=parse_columns(ids, "--ids"),
    )
    if diagnose:
        _tell_diagnosis(diagnose_table(source, question, separator=separator, decimal=decimal), question.k)
        return
    charged = _account(source, dataset, ledger, budget, again=again, no_ledger=no_ledger)
    with progress() as announce:
        listener = Listener(stage=announce, rows=announce.rows, warn=_tell_warning)
        record = randomize_table(
            source,
            target,
            question,
            **charged,
            keep=None if keep is None else parse_columns(keep, "--keep"),
            drop=parse_columns(drop, "--drop"),
            separator=separator,
            decimal=decimal,
            force=force,
            listener=listener,
        )
    note_release(target)
    _tell(record, question)
    show({"table": target, "record": record_path(target)})


def _column_name(label: str) -> str:
    # In another encoding than UTF-8 a name reaches Python with its bytes escaped.
    return os.fsencode(label).decode("utf-8", "backslashreplace")


def _prior(text: str, labels: Any) -> Any:
    """Return the part of epsilon for the prior, or a public prior; a file of that name is taken as a file."""
    if not Path(text).is_file():
        try:
            return parse_epsilon(text, "--prior")
        except InvalidInput:
            if text.lstrip("+-")[:1].isdigit() or text.strip() in ("", "nan", "inf"):
                raise
    if labels is None:
        return None
    return read_prior(text, labels)


def _randomizer(name: str | None) -> Any:
    from optrand.cli.saved import read_mechanism

    return read_mechanism(Path(name)) if name is not None and name.endswith(".json") else name


def _account(
    source: Path, dataset: str | None, ledger: str | None, budget: str | None, *, again: bool, no_ledger: bool
) -> dict[str, Any]:
    if no_ledger:
        given = {"--dataset": dataset, "--ledger": ledger, "--budget": budget, "--again": again or None}
        if useless := [name for name, one in given.items() if one is not None]:
            raise InvalidInput(f"{', '.join(useless)} belongs to a ledger: leave out --no-ledger")
        return {"ledger": None}
    return {
        "dataset": _dataset(dataset, source),
        "ledger": "default" if ledger is None else ledger,
        "again": again,
        "budget": None if budget is None else parse_epsilon(budget, "--budget"),
    }


def _dataset(name: str | None, source: Path) -> str:
    from optrand.data import weeks_worked_path

    if name is not None:
        return name
    if source.exists() and source.samefile(weeks_worked_path()):
        return DEMO
    raise InvalidInput(
        "no dataset is named: say with --dataset NAME whose labels these are, the same name whenever any of them are "
        "released, so that the ledger can count what they have cost; or count yourself, --no-ledger"
    )


def _tell(record: ReleaseRecord, question: Question) -> None:
    """Print the facts of a release; all of them are public."""
    parts = record.parts
    spent = f"prior {parts.prior!r}, labels {parts.labels!r}" if parts.prior else "all of it for the labels"
    facts: dict[str, object] = {
        "rows": record.rows,
        "labels": f"{len(record.labels)} declared",
        "prior": record.prior,
        "budget": f"{record.epsilon!r}: {spent}",
        "randomizer": record.randomizer,
    }
    if question.classes is None:
        facts["largest bias"] = shown_above(record.bias, 3)
    facts["verified gap"] = gap_words(record.gap)
    facts["realised epsilon"] = f"{shown_spent(record.realised_epsilon, record.epsilon)} (verified, rounded up)"
    lost = shown_above(record.noisy_label_loss, 6)
    if question.classes is None:
        facts["noisy label loss"] = f"{lost} (expected under the prior above)"
    else:
        facts["label changes"] = f"with probability {lost} (expected under the prior above)"
    if record.relative_loss is not None:
        facts["expected loss"] = f"{shown_above(record.relative_loss, 3)} of that of one randomizer for all groups"
    facts["estimates"] = record.estimates.words
    copied = [] if record.table is None else [name for name in record.table.columns if name != record.label]
    facts["copied"] = ", ".join(copied) or "no other column"
    show(facts)
    also(
        epsilon=record.epsilon,
        prior_epsilon=parts.prior,
        labels_epsilon=parts.labels,
        labels=len(record.labels),
        largest_bias=record.bias,
        verified_gap=record.gap if math.isfinite(record.gap) else "unknown",
        realised_epsilon=record.realised_epsilon,
        noisy_label_loss=record.noisy_label_loss,
        copied=copied,
    )


def _tell_warning(message: str) -> None:
    typer.echo(f"warning: {in_options(message)}", err=True)


def _tell_diagnosis(found: Any, declared: int) -> None:
    """Print the faults that a release would refuse to the standard error, for the owner; end with 2 if any."""
    typer.echo(
        "note: these counts are facts about the TRUE labels: no noise is on them, and no budget pays for them. Do not "
        "share them.",
        err=True,
    )
    facts = {
        "rows": found.rows,
        "missing": found.missing,
        "no numbers": found.not_numbers,
        "not declared": f"{found.undeclared} (not among the {declared} labels)",
    }
    show(facts, err=True)
    typer.echo("nothing was released and nothing spent", err=True)
    if not found.fine:
        raise typer.Exit(WRONG_INPUT)


def _use_system_memory_pool() -> None:
    """Let Arrow allocate from the system: its own pools hold on to memory that batches of other columns could use."""
    if POOL not in os.environ:
        os.environ[POOL] = "system"
        if (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.set_memory_pool(arrow.system_memory_pool())
