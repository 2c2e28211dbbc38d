"""``optrand randomize``: a table of private labels in, a table of noisy ones out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from optrand.base.numerals import shown_above, shown_spent
from optrand.cli.asked import Asked
from optrand.cli.options import LABEL_FORMS, Epsilon, Force, read_epsilon
from optrand.cli.reporting import (
    also,
    progress,
    released,
    reported,
    show,
    tell_diagnosis,
    tell_warning,
    told_gap,
)
from optrand.errors import Finished, InvalidInput

if TYPE_CHECKING:
    from optrand.release.plan import Summary
    from optrand.release.table_job import TableJob
    from optrand.release.table_options import TableOptions

__all__ = ["DEMO", "randomize"]

DEMO = "demo"
"""Name under which the bundled table is charged, unless it is given another."""


def _text(name: str, metavar: str, help_: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help_)


@reported
def randomize(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="The table: .csv, .tsv, either with .gz, .parquet, or a folder of Parquet files."
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The released table, of any of these kinds.")],
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column of private labels.")],
    epsilon: Epsilon,
    dataset: Annotated[
        str | None,
        _text(
            "--dataset", "NAME", "Whose labels these are, to the ledger: more rows or another order make no new one."
        ),
    ] = None,
    labels: Annotated[
        str | None, _text("--labels", "SET", f"The declared set of labels that are numbers: {LABEL_FORMS}")
    ] = None,
    classes: Annotated[
        str | None,
        _text("--classes", "NAMES", "The declared classes by their names: yes,no or @FILE with a name a line."),
    ] = None,
    task: Annotated[
        str | None,
        _text("--task", "TASK", "classification or regression; by default that of --classes or of --labels."),
    ] = None,
    loss: Annotated[
        str | None,
        _text("--loss", "LOSS", "What an error costs: squared, absolute, poisson or, for classes, zero-one."),
    ] = None,
    outputs: Annotated[
        str | None, _text("--outputs", "SET", "Where outputs may lie: line (the default), interval:LOW:HIGH or grid:N.")
    ] = None,
    bias_penalty: Annotated[
        str | None,
        _text("--bias-penalty", "PENALTY", "From 0 (no care for bias: bins) to inf (no bias), the default of squares."),
    ] = None,
    randomizer: Annotated[
        str | None,
        _text(
            "--randomizer",
            "NAME",
            "In place of the optimal one: rr-with-prior or rr-on-bins; one that needs no prior: rr (the default of "
            "--classes), debiased-rr, minimax, discrete-laplace, discrete-staircase or, with --allow-inexact, laplace "
            "or staircase; or a mechanism, FILE.json, that was saved for these labels.",
        ),
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    clip_outputs: Annotated[
        str | None,
        _text("--clip-outputs", "LOW:HIGH", "Clip noisy labels of an additive --randomizer: less noise, and a bias."),
    ] = None,
    allow_inexact: Annotated[
        bool,
        typer.Option(
            "--allow-inexact", help="Let noise be drawn in floats, whose privacy holds for real numbers ONLY."
        ),
    ] = False,
    allow_gap: Annotated[
        str | None,
        _text("--allow-gap", "SHARE", "Release although the verified gap is above 1e-6, if it is at most this."),
    ] = None,
    prior_epsilon: Annotated[
        str | None,
        _text(
            "--prior-epsilon", "NATS", "What the prior may spend of epsilon; by default sqrt(k / n), at most a 20th."
        ),
    ] = None,
    public_prior: Annotated[
        Path | None,
        _text("--public-prior", "FILE", "A prior that spends nothing and is TRUSTED to be public: label, count."),
    ] = None,
    paid_prior: Annotated[
        Path | None,
        _text("--paid-prior", "FILE", "With --no-ledger: OUT.prior.csv, which a run that broke off has paid for."),
    ] = None,
    nulls: Annotated[
        str,
        _text(
            "--nulls",
            "WHAT",
            "A missing label: refuse (the default) stops, which reveals that there is one; drop leaves its row out and "
            "pass leaves it missing, which both make PUBLIC which labels are missing; class, with --classes, makes it "
            "a class of its own and reveals nothing.",
        ),
    ] = "refuse",
    group: Annotated[
        str | None,
        _text(
            "--group",
            "COLUMNS",
            "Public columns, a,b: one prior and one optimal randomizer for each of their groups, all for one epsilon.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, _text("--id", "COLUMN", "Record ids, one of a kind; by default the numbers of the rows.")
    ] = None,
    keep: Annotated[str | None, _text("--keep", "COLUMNS", "The only other columns to copy: a,b.")] = None,
    drop: Annotated[str | None, _text("--drop", "COLUMNS", "Columns that are not copied: a,b.")] = None,
    separator: Annotated[
        str | None, _text("--separator", "CHARACTER", "Between cells of IN, if not that of its kind.")
    ] = None,
    decimal: Annotated[str | None, _text("--decimal", "CHARACTER", "The decimal point of labels in IN: . or ,")] = None,
    expect_rows: Annotated[str | None, _text("--expect-rows", "N", "Refuse a table of another number of rows.")] = None,
    expect_sha256: Annotated[str | None, _text("--expect-sha256", "HEX", "Refuse a table of another digest.")] = None,
    ledger: Annotated[
        Path | None, _text("--ledger", "FILE", "By default $XDG_STATE_HOME/optrand/ledger.sqlite.")
    ] = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Charge nobody: YOU keep account of epsilon; the record says so.")
    ] = False,
    spend_again: Annotated[
        bool, typer.Option("--spend-again", help="Release a column that was released before: the epsilons add up.")
    ] = False,
    budget: Annotated[
        str | None, _text("--budget", "NATS", "Refuse if all releases of the dataset would cost more together.")
    ] = None,
    entropy: Annotated[
        str | None,
        _text(
            "--entropy",
            "SOURCE",
            "keyed (the default): a run that broke off goes on with the same noise, private against bounded "
            "computation; system: the operating system's own, and a run that broke off has to pay again.",
        ),
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Do not tell how far the release is.")] = False,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Only count, for the owner of the labels, how many are missing, no numbers or not declared. The "
            "counts are NOT private. Nothing is released and nothing spent.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Replace every label of a table by a private one.

    The mechanism is saved beside OUT, as OUT.mechanism.json; additive noise, as OUT.randomizer.json; what was spent in
    total and what can be estimated, as OUT.release.json, which verify, plot, report and estimate read. Every other
    column is copied as it is: drop columns that were computed from the labels. Nothing that is printed or saved,
    whether the run ends well or not, is computed from the true labels, but for the prior, which is paid for, the number
    of rows, which is public, and whether all labels are declared; --diagnose alone tells more.

    All of epsilon is entered in the ledger before anything is drawn, and never refunded. The same column of the same
    dataset again is refused unless you say --spend-again. A run that broke off goes on with the same command, at no
    further cost and with the same noise.
    """
    from optrand.accounting import Ledger
    from optrand.base.lean import lean_process
    from optrand.release.interruption import Signals
    from optrand.release.job import LabelJob
    from optrand.release.paths import record_path
    from optrand.release.table_job import TableJob

    asked = Asked(
        labels=labels,
        classes=classes,
        task=task,
        loss=loss,
        randomizer=randomizer,
        epsilon=epsilon,
        prior_epsilon=prior_epsilon,
        public_prior=public_prior,
        paid_prior=paid_prior,
        outputs=outputs,
        bias_penalty=bias_penalty,
        clip=clip,
        clip_outputs=clip_outputs,
        allow_inexact=allow_inexact,
        allow_gap=allow_gap,
        group=group,
        nulls=nulls,
    )
    job, names = asked.job()
    if group is None:
        lean_process(job.labels.size)
    options = _options(
        source,
        id_column=id_column,
        group=group,
        nulls=nulls,
        classes=names,
        keep=keep,
        drop=drop,
        separator=separator,
        decimal=decimal,
        expect_rows=expect_rows,
        expect_sha256=expect_sha256,
    )
    on_file = TableJob(job=job, column=label, overwrite=force, options=options)
    if diagnose:
        tell_diagnosis(on_file.diagnose(source), job.labels.size)
        return
    with ExitStack() as stack:
        signals = stack.enter_context(Signals("nothing was released, and nothing spent"))
        accounted: dict[str, Any] = {}
        if no_ledger:
            given = {"--dataset": dataset, "--ledger": ledger, "--budget": budget, "--spend-again": spend_again or None}
            if useless := [name for name, one in given.items() if one is not None]:
                raise InvalidInput(f"{', '.join(useless)} belongs to a ledger: leave out --no-ledger")
        else:
            accounted = {
                "dataset": _dataset(dataset, source),
                "spend_again": spend_again,
                "budget": None if budget is None else read_epsilon(budget, "--budget"),
            }
        if entropy is not None:
            if entropy not in ("keyed", "system"):
                raise InvalidInput(f"--entropy is {entropy!r}, expected keyed or system")
            accounted["entropy"] = entropy
        if not no_ledger:
            accounted["ledger"] = stack.enter_context(Ledger.open(ledger))
        try:
            with progress(quiet=no_progress) as announce:
                told = replace(on_file, rows_done=announce.rows)
                summary = told.run(source, target, announce=announce, warn=tell_warning, **accounted)
        except Finished as finished:
            _show_finished(
                finished, target, column=label, dataset=accounted.get("dataset"), budget=read_epsilon(epsilon)
            )
            return
        released(target)
        signals.outcome, signals.released = f"the release was complete by then: {target}", True
        facts = _told(summary) if isinstance(job, LabelJob) else _told_without_prior(summary)
        show(
            {
                **({} if randomizer is None else {"randomizer": randomizer}),
                **facts,
                "copied": ", ".join(summary.copied) or "no other column",
                "table": target,
                **_drawn_with(on_file, target, summary),
                "record": record_path(target),
            }
        )
        also(**_exactly(summary))


def _show_finished(finished: Finished, target: Path, *, column: str, dataset: object, budget: float) -> None:
    """Tell of an earlier run's release that is complete now: an error, unless it is the one that was asked for."""
    from optrand.release.paths import record_path
    from optrand.release.record import load_release

    record = load_release(record_path(target))
    around = record.circumstances
    if (around.column, around.dataset, record.epsilon) != (column, dataset, budget):
        raise finished
    released(target)
    show({"finished": str(finished), "table": target, "record": record_path(target)})
    also(finished=True, epsilon=record.epsilon)


def _dataset(name: str | None, source: Path) -> str:
    """The dataset that is charged; the bundled table has a name."""
    from optrand.data import weeks_worked_path

    if name is not None:
        return name
    if source.exists() and source.samefile(weeks_worked_path()):
        return DEMO
    raise InvalidInput(
        "no dataset is named: say with --dataset NAME whose labels these are, the same name whenever any of them are "
        "released, so that the ledger can count what they have cost"
    )


def _options(source: Path, **given: Any) -> TableOptions:
    """Options of the table from texts, None where they were not given."""
    from optrand.release.batch import Nulls
    from optrand.release.column_groups import ColumnGroups
    from optrand.release.streams.records import CsvFormat
    from optrand.release.table import format_of, suffix_of
    from optrand.release.table_options import TableOptions

    separator, decimal, group = given.pop("separator"), given.pop("decimal"), given.pop("group")
    if given["nulls"] not in get_args(Nulls):
        raise InvalidInput(f"--nulls is {given['nulls']!r}, expected one of {', '.join(get_args(Nulls))}")
    layout = None
    if separator is not None or decimal is not None:
        if source.is_dir() or suffix_of(source) == ".parquet":
            raise InvalidInput("--separator and --decimal are for separated text, not for Parquet: leave them out")
        separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
        layout = CsvFormat(
            separator=format_of(source).separator if separator is None else separator,
            decimal="." if decimal is None else decimal,
        )
    return TableOptions(
        **{
            **given,
            "layout": layout,
            "grouping": None if group is None else ColumnGroups(_columns(group, "--group")),
            "keep": None if given["keep"] is None else _columns(given["keep"], "--keep"),
            "drop": () if given["drop"] is None else _columns(given["drop"], "--drop"),
            "expect_rows": None if given["expect_rows"] is None else _rows(given["expect_rows"]),
        }
    )


def _drawn_with(on_file: TableJob, target: Path, summary: Summary) -> dict[str, object]:
    """Paths of the randomizers, and what they gained over one for all."""
    from optrand.release.job import LabelJob

    if summary.relative_loss is None:
        return {"mechanism" if isinstance(on_file.job, LabelJob) else "saved": on_file.beside(target)}
    share = f"{shown_above(summary.relative_loss, 3)} of that of one randomizer for all groups"
    return {"expected loss": share, "mechanisms": on_file.beside(target)}


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


def _exactly(summary: Summary) -> dict[str, object]:
    """Figures of a summary for a JSON answer."""
    return {
        "epsilon": summary.epsilon,
        "prior_epsilon": summary.split.prior,
        "labels_epsilon": summary.split.labels,
        "labels": summary.labels,
        "largest_bias": summary.bias,
        "verified_gap": summary.gap,
        "realised_epsilon": summary.realised_epsilon,
        "noisy_label_loss": summary.noisy_label_loss,
        "copied": summary.copied,
    }


def _told(summary: Summary) -> dict[str, object]:
    split = summary.split
    return {
        "rows": summary.rows,
        "labels": f"{summary.labels} declared",
        "prior": summary.prior,
        "budget": f"{summary.epsilon!r}: prior {split.prior!r}, labels {split.labels!r}",
        "outputs": f"{summary.outputs}, {summary.allowed}",
        "largest bias": shown_above(summary.bias, 3),
        "verified gap": told_gap(summary.gap),
        "realised epsilon": f"{shown_spent(summary.realised_epsilon, summary.epsilon)} "
        "(prior and labels together, rounded up)",
        "noisy label loss": f"{shown_above(summary.noisy_label_loss, 6)} (expected, under the prior above)",
        "estimates": summary.histograms,
    }


def _told_without_prior(summary: Summary) -> dict[str, object]:
    if summary.exact:
        privacy = "exact: labels were drawn with the very probabilities that are proven private"
    else:
        privacy = (
            "holds for real numbers ONLY: the noise was drawn in floats, whose last bits may tell labels apart, "
            "so that epsilon is not guaranteed"
        )
    return {
        "rows": summary.rows,
        "labels": f"{summary.labels} declared",
        "budget": f"{summary.epsilon!r}: all of it for the labels, no prior is needed",
        "outputs": summary.allowed,
        "largest bias": shown_above(summary.bias, 3),
        "largest variance": shown_above(summary.variance, 6),
        "privacy": privacy,
        "realised epsilon": f"{shown_spent(summary.realised_epsilon, summary.epsilon)} "
        f"(at most{'' if summary.exact else ', for real numbers'})",
        "noisy label loss": f"{shown_above(summary.noisy_label_loss, 6)} "
        "(expected, were all declared labels equally frequent)",
        "estimates": summary.histograms,
    }
