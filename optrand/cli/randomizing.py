"""``optrand randomize``: a table of private labels in, a table of noisy ones out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from optrand.cli import release_options as option
from optrand.cli.asked import Asked
from optrand.cli.options import Epsilon, Force, read_epsilon
from optrand.cli.reporting import (
    also,
    progress,
    released,
    reported,
    show,
    tell_diagnosis,
    tell_warning,
)
from optrand.cli.summaries import drawn_with, figures, told
from optrand.cli.table_asked import table_options
from optrand.errors import Finished, InvalidInput

__all__ = ["DEMO", "randomize"]

DEMO = "demo"
"""Name under which the bundled table is charged, unless it is given another."""


@reported
def randomize(
    source: option.Source,
    target: option.Target,
    label: option.Label,
    epsilon: Epsilon,
    dataset: option.Dataset = None,
    labels: option.Labels = None,
    classes: option.Classes = None,
    task: option.Task = None,
    loss: option.Loss = None,
    outputs: option.Outputs = None,
    bias_penalty: option.BiasPenalty = None,
    randomizer: option.Randomizer = None,
    minimax: option.Minimax = False,
    k: option.TopK = None,
    clip: option.Clip = False,
    clip_outputs: option.ClipOutputs = None,
    allow_inexact: option.AllowInexact = False,
    allow_gap: option.AllowGap = None,
    prior_epsilon: option.PriorEpsilon = None,
    public_prior: option.PublicPrior = None,
    paid_prior: option.PaidPrior = None,
    nulls: option.Nulls = "refuse",
    group: option.Group = None,
    id_column: option.IdColumn = None,
    keep: option.Keep = None,
    drop: option.Drop = None,
    separator: option.Separator = None,
    decimal: option.Decimal = None,
    expect_rows: option.ExpectRows = None,
    expect_sha256: option.ExpectSha256 = None,
    ledger: option.Ledger = None,
    no_ledger: option.NoLedger = False,
    spend_again: option.SpendAgain = False,
    budget: option.Budget = None,
    entropy: option.Entropy = None,
    no_progress: option.NoProgress = False,
    diagnose: option.Diagnose = False,
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
        minimax=minimax,
        k=k,
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
    options = table_options(
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
                running = replace(on_file, rows_done=announce.rows)
                summary = running.run(source, target, announce=announce, warn=tell_warning, **accounted)
        except Finished as finished:
            _show_finished(
                finished, target, column=label, dataset=accounted.get("dataset"), budget=read_epsilon(epsilon)
            )
            return
        released(target)
        signals.outcome, signals.released = f"the release was complete by then: {target}", True
        name = "minimax" if minimax else randomizer
        classes_ = task == "classification" or names is not None
        show(
            {
                **({} if name is None else {"randomizer": name}),
                **told(summary, bought=isinstance(job, LabelJob), classes=classes_),
                "copied": ", ".join(summary.copied) or "no other column",
                "table": target,
                **drawn_with(on_file, target, summary),
                "record": record_path(target),
            }
        )
        also(**figures(summary))


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
