"""Four commands: solve, verify, randomize, plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.cli.options import (
    BiasPenalty,
    Epsilon,
    Force,
    Labels,
    Outputs,
    Prior,
    Saved,
    read_epsilon,
    read_gap,
    read_penalty,
)
from optrand.cli.reporting import progress, reported, show, tell_prior, told_gap
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.certificate import Certificate
    from optrand.mechanism import Mechanism
    from optrand.release.job import Summary

__all__ = ["plot", "randomize", "solve", "verify"]


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
    from optrand.certificate import certify
    from optrand.problem import regression
    from optrand.release.atomic import check_target
    from optrand.release.declared import parse_labels, read_prior
    from optrand.release.outputs import allowed_outputs, parse_outputs
    from optrand.solvers import solve as solved
    from optrand.tabulation import tabulate

    budget, penalty = read_epsilon(epsilon), read_penalty(bias_penalty)
    names = parse_labels(labels)
    allowed = allowed_outputs(parse_outputs(outputs), names, budget)
    public = read_prior(prior, names)
    problem = regression(names, public.probabilities, budget, bias_penalty=penalty, outputs=allowed)
    check_target(output, prior, overwrite=force)
    tell_prior(prior, public)
    with progress() as announce:
        announce("solving")
        solution = solved(problem)
        announce("making it exact")
        mechanism = tabulate(solution)
        announce("proving")
        proof = certify(mechanism, exact=True).require(gap=math.inf)
    mechanism.save(output, overwrite=force)
    show({**_proven(mechanism, proof), "mechanism": output})


def _proven(mechanism: Mechanism, proof: Certificate) -> dict[str, object]:
    from optrand.release.outputs import in_words

    return {
        "labels": mechanism.labels.size,
        "outputs": f"{mechanism.outputs.size}, {in_words(mechanism.problem.outputs)}",
        "realised epsilon": f"{proof.epsilon!r} of {proof.asked!r} (verified in integers)",
        "largest bias": f"{proof.bias:.3g}",
        "verified gap": told_gap(proof.gap),
        "optimal value": f"between {proof.lower:.10g} and {proof.upper:.10g}",
    }


@reported
def verify(
    mechanism: Saved,
    gap: Annotated[
        str | None, typer.Option("--gap", metavar="SHARE", help="Fail unless the verified gap is at most this.")
    ] = None,
) -> None:
    """Prove a saved mechanism private and near optimal.

    Nothing but the file is trusted, and all of it is checked in exact arithmetic. `python -m optrand.checker` does the
    same with none of this code.
    """
    from optrand.certificate import certify

    required = math.inf if gap is None else read_gap(gap)
    loaded = _loaded(mechanism)
    with progress() as announce:
        announce("proving")
        proof = certify(loaded, exact=True)
    show({**_proven(loaded, proof), "digest": loaded.digest})
    proof.require(gap=required)
    typer.echo("verified")


@reported
def randomize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The table: .csv, .csv.gz or .parquet.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The released table, of the same kind.")],
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
    outputs: Outputs = "line",
    bias_penalty: BiasPenalty = "inf",
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    force: Force = False,
) -> None:
    """Replace every label of a table by a private one.

    The mechanism is saved beside OUT, as OUT.mechanism.json. Every other column is copied as it is: drop columns that
    were computed from the labels. Nothing that is printed or saved is computed from the true labels, but for the prior,
    which is paid for, and the number of rows, which is public. Every run spends the budget again: a second release of
    the same labels, or what a killed run left behind, adds to the first.
    """
    from optrand.release.declared import parse_labels, read_prior
    from optrand.release.job import LabelJob
    from optrand.release.outputs import parse_outputs
    from optrand.release.table_job import TableJob, mechanism_path

    names = parse_labels(labels)
    job = LabelJob(
        labels=names,
        epsilon=read_epsilon(epsilon),
        prior_epsilon=None if prior_epsilon is None else read_epsilon(prior_epsilon, "--prior-epsilon"),
        public_prior=None if public_prior is None else read_prior(public_prior, names),
        outputs=parse_outputs(outputs),
        bias_penalty=read_penalty(bias_penalty),
        clip=clip,
    )
    with progress() as announce:
        summary = TableJob(job=job, column=label, overwrite=force).run(source, target, announce=announce)
    show({**_told(summary), "table": target, "mechanism": mechanism_path(target)})


def _told(summary: Summary) -> dict[str, object]:
    split = summary.split
    return {
        "rows": summary.rows,
        "labels": f"{summary.labels} declared",
        "prior": summary.prior,
        "budget": f"{summary.epsilon!r}: prior {split.prior!r}, labels {split.labels!r}",
        "outputs": f"{summary.outputs}, {summary.allowed}",
        "largest bias": f"{summary.bias:.3g}",
        "verified gap": told_gap(summary.gap),
        "realised epsilon": f"{summary.realised_epsilon!r} (prior and labels together, rounded up)",
        "noisy label loss": f"{summary.noisy_label_loss:.6g} (expected, under the prior above)",
    }


@reported
def plot(
    mechanism: Saved,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    force: Force = False,
) -> None:
    """Draw a saved mechanism.

    One probability mass function per label, and the table with its staircase signature.
    """
    from optrand.certificate import certify
    from optrand.plotting import mechanism_figure, save_figure

    loaded = _loaded(mechanism)
    with progress() as announce:
        announce("drawing")
        save_figure(mechanism_figure(loaded, certify(loaded)), output, overwrite=force)
    typer.echo(f"picture  {output}")


def _loaded(path: Path) -> Mechanism:
    from optrand.mechanism import load

    if not path.is_file():
        raise InvalidInput(f"{path} is {'not a regular file' if path.exists() else 'not there'}: expected a mechanism")
    return load(path)
