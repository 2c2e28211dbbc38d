"""``optrand randomize``, ``estimate`` and ``ledger``: releases of tables, estimates from them, and their costs."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

import optrand
from optrand.base._numerals import format_above, format_closely, format_spent
from optrand.cli._console import (
    WRONG_INPUT,
    add_members,
    command_line,
    gap_words,
    in_options,
    note,
    note_release,
    print_line,
    print_rows,
    progress,
    show,
)
from optrand.cli._reading import (
    LABEL_FORMS,
    OUTPUT_FORMS,
    Epsilon,
    Force,
    LedgerName,
    csv_text,
    join_columns,
    loss_by_groups,
    option,
    parse_columns,
    parse_declared,
    parse_epsilon,
    parse_outputs,
    parse_penalty,
    read_loss,
    read_mechanism,
    read_prior,
    read_record,
    record_facts,
)
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optrand.accounting import Charge, Spent
    from optrand.release._record import ReleaseRecord


@command_line
def randomize(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Table: .csv, .tsv, either with .gz, .parquet, or a Parquet folder.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The table to write, of any of these kinds.")],
    column: Annotated[str, option("--column COLUMN", "Column of private labels.")],
    epsilon: Epsilon,
    labels: Annotated[
        str,
        option(
            "--labels SET",
            f"All labels that can occur. Numbers: {LABEL_FORMS} Names: yes,no, or @FILE with one name per line.",
        ),
    ],
    task: Annotated[
        Literal["regression", "classification"] | None,
        typer.Option(
            "--task",
            help="Default: regression if all labels are numbers, else classification. With classification, numbers are "
            "names: the classes 0,1,2.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        option(
            "--dataset NAME",
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
        option("--budget NATS", "Refuse the release if all releases of the dataset together would cost more."),
    ] = None,
    nulls: Annotated[
        Literal["refuse", "drop", "pass", "class"],
        typer.Option(
            "--nulls",
            help="Missing labels. refuse: stop, which reveals that there is one. drop: leave out their rows. pass: "
            "keep them missing. Both drop and pass make PUBLIC which labels are missing. class (of names): treat "
            "missing as one more class, which reveals nothing.",
        ),
    ] = "refuse",
    groups: Annotated[
        str | None,
        option(
            "--groups COLUMNS",
            "Public columns a,b. Each group of rows gets a prior and a randomizer of its own, all for one epsilon.",
        ),
    ] = None,
    ids: Annotated[
        str | None, option("--ids COLUMNS", "Columns that together identify a record. Default: row numbers.")
    ] = None,
    keep: Annotated[str | None, option("--keep COLUMNS", "Copy only these other columns. Default: all.")] = None,
    drop: Annotated[str | None, option("--drop COLUMNS", "Do not copy these other columns.")] = None,
    randomizer: Annotated[
        str | None,
        option(
            "--randomizer NAME",
            "Default: rr for names, otherwise the optimal randomizer (mixed slightly, unless the prior is public, so "
            "that histograms can be estimated). Others that use a prior: optimal (never mixed), rr-with-prior, "
            "rr-top-k[:K], rr-on-bins, gap-response. Without a prior: rr, debiased-rr, minimax. Or FILE.json, a "
            "mechanism saved for these labels.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        option(
            "--prior NATS|FILE",
            "Part of epsilon spent on estimating the label distribution. Default: sqrt(labels / rows), at most "
            "epsilon / 20. Or a CSV of two columns, label and count, which costs nothing and must be PUBLIC.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        option(
            "--loss LOSS",
            "Cost of an error: squared, absolute, poisson, zero-one, or @FILE, a CSV with one row per label and one "
            "column per output.",
        ),
    ] = None,
    bias_penalty: Annotated[
        str | None,
        option(
            "--bias-penalty PENALTY",
            "Weight of squared bias. inf (default for squared loss): unbiased. 0: ignore bias.",
        ),
    ] = None,
    outputs: Annotated[
        str | None, option("--outputs SET", f"Where noisy numbers may lie: {OUTPUT_FORMS}. Default: line.")
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    separator: Annotated[
        str | None,
        option("--separator CHARACTER", "Character between the cells of IN. Default: comma for .csv, tab for .tsv."),
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
    from optrand.release._batches import Listener
    from optrand.release._files import randomize_table, record_path
    from optrand.release._question import Question
    from optrand.release._tables import diagnose_table

    declared: Any = parse_declared(labels, task)
    if nulls == "class" and isinstance(declared, tuple):
        declared = (*declared, None)
    question = Question(
        column=column,
        epsilon=parse_epsilon(epsilon),
        labels=declared,
        task=task,
        prior=None if prior is None else _prior(prior, declared),
        randomizer=read_mechanism(Path(randomizer)) if randomizer and randomizer.endswith(".json") else randomizer,
        loss=read_loss(loss[1:]) if loss is not None and loss.startswith("@") else loss,
        bias_penalty=None if bias_penalty is None else parse_penalty(bias_penalty),
        outputs=None if outputs is None else parse_outputs(outputs),
        clip=clip,
        nulls=nulls,
        groups=parse_columns(groups, "--groups"),
        ids=parse_columns(ids, "--ids"),
    )
    if diagnose:
        _show_diagnosis(diagnose_table(source, question, separator=separator, decimal=decimal), question.k)
        return
    charged = _account(source, dataset, ledger, budget, again=again, no_ledger=no_ledger)
    with progress() as announce:
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
            listener=Listener(announce, announce.rows, lambda words: note(words, kind="warning")),
        )
    note_release(target)
    _show_record(record)
    show({"table": target, "record": record_path(target)})


def _prior(text: str, labels: Any) -> Any:
    """Return the part of epsilon for the prior or, if a file has this name, a public prior."""
    if not Path(text).is_file():
        try:
            return parse_epsilon(text, "--prior")
        except InvalidInput:
            if text.lstrip("+-")[:1].isdigit() or text.strip() in ("", "nan", "inf"):
                raise
    return read_prior(text, labels)


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
    if name is not None:
        return name
    # The bundled table is public.
    if source.exists() and source.samefile(optrand.data.weeks_worked_path()):
        return "demo"
    raise InvalidInput(
        "no dataset is named: add --dataset NAME, the same name for every release of these people's labels, so that "
        "the ledger can add up their costs, or keep account yourself, --no-ledger"
    )


def _show_record(record: ReleaseRecord) -> None:
    """Print the facts of a release. All of them are public."""
    facts = {
        **record_facts(record),
        "labels": (len(record.labels), f"{len(record.labels)} declared"),
        "prior": record.prior,
        "randomizer": record.randomizer,
    }
    if record.task == "regression":
        facts["largest bias"] = (record.bias, format_closely(record.bias, 3))
    facts["verified gap"] = (record.gap, gap_words(record.gap))
    realised = f"{format_spent(record.realised_epsilon, record.epsilon)} (verified, rounded up)"
    facts["realised epsilon"] = (record.realised_epsilon, realised)
    lost = f"{format_above(record.noisy_label_loss, 6)} (expected under the prior above)"
    if record.task == "regression":
        facts["noisy label loss"] = (record.noisy_label_loss, lost)
    else:
        facts["label changes"] = (record.noisy_label_loss, f"with probability {lost}")
    if record.relative_loss is not None:
        facts["expected loss"] = loss_by_groups(record.relative_loss)
    facts["estimates"] = in_options(record.estimates.words)
    copied = [] if record.table is None else [name for name in record.table.columns if name != record.column]
    facts["copied"] = join_columns(copied) or "no other column"
    show(facts)
    add_members(copied=copied)


def _show_diagnosis(found: dict[str, int], declared: int) -> None:
    """Print the faults that a release would refuse to the standard error, for the owner. Exit with 2 if any."""
    note("these counts are facts about the TRUE labels, without noise and outside any budget. Do not share them.")
    facts = {
        "rows": found["rows"],
        "missing": found["missing"],
        "no numbers": found["not_numbers"],
        "not declared": f"{found['undeclared']} (not among the {declared} labels)",
    }
    for name, count in facts.items():
        typer.echo(f"{name:<12}  {count}", err=True)
    typer.echo("nothing was released or spent", err=True)
    if any(found[name] for name in ("missing", "not_numbers", "undeclared")):
        raise typer.Exit(WRONG_INPUT)


def _use_system_memory_pool() -> None:
    """Let Arrow allocate from the system, as its own pools keep memory that batches of other columns could use."""
    pool = "ARROW_DEFAULT_MEMORY_POOL"
    if pool not in os.environ:
        os.environ[pool] = "system"
        if (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.set_memory_pool(arrow.system_memory_pool())


@command_line
def estimate(
    saved: Annotated[Path, typer.Argument(metavar="RECORD", help="Record of the release, OUT.release.json.")],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="The released table, unchanged, or the saved labels of a release in memory."
        ),
    ],
) -> None:
    """Estimate the mean and the histogram of the labels behind a released table.

    The errors are standard deviations of the noise alone: they do not contain the spread of people. Missing labels are
    left out. If the mechanism admits no estimate of the mean or of the histogram, the reason is printed in its place.
    If it admits neither, the exit code is 2.
    """
    from optrand.release._question import name_text

    record = read_record(saved)
    if record.table is not None:
        record.verify_table(table)
    # Names are read as their indices, which are numbers like any others.
    numbered = replace(record, labels=record.values, task="regression")
    counts: list[tuple[str, float, float]] = []
    with progress() as announce:
        announce("reading the table")
        values, groups = _read(table, record)
        announce("estimating")
        facts = record_facts(record)
        if record.table is None:
            facts["table"] = "not compared: the record is of a release in memory, which has no file"
        if record.task == "regression":
            try:
                found = optrand.estimate.mean(values, numbered, groups=groups)
                error = format_above(found.noise_error, 3)
                facts["mean"] = (found.value, f"{found.value:.6g} ± {error}")
                add_members(mean_error=found.noise_error)
            except InvalidInput as error:
                facts["mean"] = f"not estimated: {in_options(str(error))}"
        try:
            shares = optrand.estimate.histogram(values, numbered, groups=groups)
            names = [f"{y:g}" if record.task == "regression" else name_text(y) or "" for y in record.labels]
            errors = shares.noise_errors.tolist()
            counts = list(zip(names, shares.shares.tolist(), errors, strict=True))
            facts["largest error"] = (max(errors), f"{format_above(max(errors), 3)} of a share")
        except InvalidInput as error:
            facts["histogram"] = f"not estimated: {in_options(str(error))}"
    show(facts)
    if counts:
        add_members(histogram=[{"label": name, "share": share, "error": error} for name, share, error in counts])
        rows = [(n, f"{s:.6g}", format_above(e, 3)) for n, s, e in counts]
        print_rows(csv_text([("label", "share", "standard error"), *rows]).removesuffix("\n"))
    elif not isinstance(facts.get("mean"), tuple):
        raise InvalidInput("nothing can be estimated from this release")


def _read(path: Path, record: ReleaseRecord) -> tuple[Any, Any]:
    """Return released labels, names by their indices and NaN for missing ones, and the table of their groups."""
    import pyarrow as pa

    from optrand.release._batches import check_column
    from optrand.release._tables import open_table

    stated = record.table
    signs = {} if stated is None else {"separator": stated.separator, "decimal": stated.decimal}
    table = open_table(path, **signs)
    check_column(table, record.column)
    for name in record.groups:
        if name not in (*table.schema.names, *table.partitions):
            raise InvalidInput(
                f"the release is by groups of {name!r}, a column that {path} does not have: nothing can be estimated "
                "without it"
            )
    cells = record.reader(table.schema.field(record.column).type, table.decimal)
    parts, groups = [], []
    for _, batch in table.batches([record.column, *record.groups]):
        parts.append(cells.numbers(batch.column(record.column)))
        if record.groups:
            groups.append(batch.select(list(record.groups)))
    return np.concatenate(parts), pa.Table.from_batches(groups) if record.groups else None


@command_line
def ledger(
    path: LedgerName = None,
    dataset: Annotated[str | None, option("--dataset NAME", "Only releases of this dataset.")] = None,
    withdraw: Annotated[
        str | None, option("--withdraw ID", "Give up an unfinished release: erase its key. Its cost stays spent.")
    ] = None,
) -> None:
    """List every release with its cost, and the totals of each dataset and column.

    Every release that is listed is spent in full, also if it is unfinished or withdrawn.
    """
    from optrand.accounting import Ledger, default_path
    from optrand.accounting._ledger import SCHEMES, check_name

    chosen = str(default_path()) if path is None else path
    owner = None if dataset is None else check_name(dataset, "--dataset")
    found = Ledger(chosen) if chosen.startswith(SCHEMES) or os.path.lexists(chosen) else None
    name = chosen if found is None else found.name
    if withdraw is not None:
        if found is None:
            raise InvalidInput(f"there is no ledger {name}")
        found.withdraw(withdraw)
        print_line(f"withdrawn  {withdraw}")
    charges: Sequence[Charge] = () if found is None else found.entries(owner)
    totals = _totals(charges)
    texts = ("dataset", "column", "begun", "output", "epsilon", "prior_epsilon")
    add_members(
        ledger=name,
        entries=[
            {"release": one.id, "state": one.status, **{text: str(getattr(one, text)) for text in texts}}
            for one in charges
        ],
        totals=[
            {"dataset": table, "column": column, "epsilon": str(total.epsilon)}
            for (table, column), total in totals.items()
        ],
    )
    if not charges:
        print_rows(f"nothing was spent{'' if owner is None else f' on dataset {owner!r}'} (ledger {name})")
        return
    for charge in charges:
        parts = ", ".join(f"{part} {spent}" for part, spent in charge.parts.items())
        line = f"{charge.begun}  {charge.dataset}, column {charge.column!r}: {charge.total} ({parts}), "
        place = charge.output if charge.output == "in memory" else f"to {charge.output}"
        print_rows(f"{line}{charge.status}, {place}, release {charge.id}")
    for (table, column), total in totals.items():
        print_rows(f"total of {table}, {f'column {column!r}' if column is not None else 'all columns'}: {total}")


def _totals(charges: Sequence[Charge]) -> dict[tuple[str, str | None], Spent]:
    """Return totals of each column, and of each dataset with several columns."""
    totals: dict[tuple[str, str | None], Spent] = {}
    for charge in charges:
        for unit in ((charge.dataset, charge.column), (charge.dataset, None)):
            totals[unit] = totals.get(unit, optrand.accounting.Spent()) + charge.total
    several = {table for table, _ in totals if sum(table == other for other, _ in totals) > 2}
    return {unit: total for unit, total in totals.items() if unit[1] is not None or unit[0] in several}
