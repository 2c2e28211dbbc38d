"""Three commands: solve, randomize, plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.base.numerals import shown_above, shown_spent
from optrand.cli.options import (
    BiasPenalty,
    Epsilon,
    Force,
    Labels,
    Outputs,
    Prior,
    Saved,
    read_epsilon,
    read_penalty,
)
from optrand.cli.questions import answered, read_problem, read_released
from optrand.cli.reporting import progress, reported, show, tell_diagnosis, tell_total, tell_warning, told_gap
from optrand.cli.verifying import proven
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.release.job import Summary

__all__ = ["plot", "randomize", "solve"]


@reported
def solve(
    labels: Labels,
    prior: Prior,
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to save the mechanism.")],
    outputs: Outputs = "line",
    bias_penalty: BiasPenalty = "inf",
    force: Force = False,
) -> None:
    """Compute and prove the optimal randomizer of a prior: unbiased and on the real line, unless options say else."""
    from optrand.base.files import check_target

    problem = read_problem(
        labels,
        prior,
        epsilon,
        outputs=outputs,
        bias_penalty=bias_penalty,
        check=lambda: check_target(output, prior, overwrite=force),
    )
    with progress() as announce:
        mechanism, proof = answered(problem, announce)
    mechanism.save(output, overwrite=force)
    show({**proven(mechanism, proof), "mechanism": output})


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
    labels: Labels,
    epsilon: Epsilon,
    prior_epsilon: Annotated[
        str | None,
        typer.Option(
            "--prior-epsilon",
            metavar="NATS",
            help="What the prior may spend of the budget; by default sqrt(k / n), at most a twentieth of it.",
        ),
    ] = None,
    public_prior: Annotated[
        Path | None,
        typer.Option(
            "--public-prior",
            metavar="FILE",
            help="A prior that spends nothing and is TRUSTED to be public. Two columns: label, count or probability.",
        ),
    ] = None,
    paid_prior: Annotated[
        Path | None,
        typer.Option(
            "--paid-prior",
            metavar="FILE",
            help="The prior that a run which broke off has paid for, OUT.prior.csv: it is not paid for again.",
        ),
    ] = None,
    outputs: Outputs = "line",
    bias_penalty: BiasPenalty = "inf",
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    randomizer: Annotated[
        str | None,
        typer.Option(
            "--randomizer",
            metavar="NAME",
            help="In place of the optimal randomizer one that needs no prior: rr, debiased-rr, discrete-laplace, "
            "discrete-staircase or, with --allow-inexact, laplace or staircase.",
        ),
    ] = None,
    clip_outputs: Annotated[
        str | None,
        typer.Option(
            "--clip-outputs",
            metavar="LOW:HIGH",
            help="Clip noisy labels of an additive --randomizer to this interval: less noise, and a bias.",
        ),
    ] = None,
    allow_inexact: Annotated[
        bool,
        typer.Option(
            "--allow-inexact", help="Let noise be drawn in floats, whose privacy holds for real numbers ONLY."
        ),
    ] = False,
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
    of rows, which is public, and whether all labels are declared; --diagnose alone tells more. Every run spends the
    budget again: a second release of the same labels, or what a killed run left behind, adds to the first. A prior that
    was paid for before a run broke off is kept as OUT.prior.csv, from which --paid-prior goes on.
    """
    from optrand.base.lean import lean_process
    from optrand.release.declared import parse_clip, parse_labels, parse_outputs, read_prior
    from optrand.release.job import BaselineJob, Job, LabelJob
    from optrand.release.named import named_randomizer
    from optrand.release.paid_prior import load_paid_prior
    from optrand.release.table_job import TableJob, record_path

    names, budget = parse_labels(labels), read_epsilon(epsilon)
    lean_process(names.size)
    job: Job
    if randomizer is not None:
        for_the_optimal_one = {
            "--prior-epsilon": prior_epsilon is not None,
            "--public-prior": public_prior is not None,
            "--paid-prior": paid_prior is not None,
            "--outputs": outputs != "line",
            "--bias-penalty": bias_penalty != "inf",
        }
        if unused := [option for option, given in for_the_optimal_one.items() if given]:
            raise InvalidInput(f"{', '.join(unused)} means nothing to {randomizer!r}, only to the optimal randomizer")
        interval = None if clip_outputs is None else parse_clip(clip_outputs)
        named = named_randomizer(randomizer, names, epsilon=budget, clip_outputs=interval)
        job = BaselineJob(labels=names, randomizer=named, clip=clip, allow_inexact=allow_inexact)
    elif clip_outputs is not None:
        raise InvalidInput("--clip-outputs is for an additive --randomizer: use --outputs interval:LOW:HIGH")
    else:
        job = LabelJob(
            labels=names,
            epsilon=budget,
            prior_epsilon=None if prior_epsilon is None else read_epsilon(prior_epsilon, "--prior-epsilon"),
            public_prior=None if public_prior is None else read_prior(public_prior, names),
            paid_prior=None if paid_prior is None else load_paid_prior(paid_prior),
            outputs=parse_outputs(outputs),
            bias_penalty=read_penalty(bias_penalty),
            clip=clip,
        )
    on_file = TableJob(job=job, column=label, overwrite=force)
    if diagnose:
        tell_diagnosis(on_file.diagnose(source), names.size)
        return
    with progress() as announce:
        summary = on_file.run(source, target, announce=announce, warn=tell_warning)
    beside, record = on_file.beside(target), record_path(target)
    if randomizer is None:
        show({**_told(summary), "table": target, "mechanism": beside, "record": record})
    else:
        told = _told_without_prior(summary)
        show({"randomizer": randomizer, **told, "table": target, "saved": beside, "record": record})


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


@reported
def plot(
    mechanism: Saved,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    force: Force = False,
) -> None:
    """Draw a saved mechanism, or that of a release.

    One probability mass function per label, and the table with its staircase signature.
    """
    from optrand.certificates.certificate import certify
    from optrand.plotting import mechanism_figure, save_figure

    loaded, record = read_released(mechanism)
    total = None if record is None else record.epsilon
    with progress() as announce:
        announce("drawing")
        save_figure(mechanism_figure(loaded, certify(loaded), total=total), output, overwrite=force)
    tell_total(record)
    typer.echo(f"picture  {output}")
