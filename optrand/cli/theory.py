"""``optrand theory``: the numbered claims of the papers, each tried and each with its finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.cli.console import FAILED, UNVERIFIED, progress, reported, say
from optrand.cli.options import Force
from optrand.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optrand.theory import Claim, Finding
    from optrand.theory.running import Outcome

__all__ = ["theory"]

KEPT = Path("optrand-theory")
"""Path at which a full run keeps what it has found, unless told otherwise."""


@reported
def theory(
    paper: Annotated[
        str | None, typer.Option("--paper", metavar="KEY", help="Only the claims of one paper: G21, E22, Z25 or B23.")
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            "--claim",
            metavar="NAME",
            help="Only one claim, by its printed name ('Lemma 8') or a part of it (LP1), in detail.",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget", metavar="quick|full", help="Effort: quick takes half a minute at most, full some minutes."
        ),
    ] = "quick",
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help=f"Folder in which findings are kept, so that a run can be resumed. A full run uses {KEPT} by default.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write all findings as a page of Markdown.")
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            "--pictures", metavar="DIR", help="Folder for a picture of each claim: the truth against the claim."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="Number of processes. Default: one per processor.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the claims and their statements, and try none.")] = False,
    force: Force = False,
) -> None:
    """Test the numbered claims of the papers and print a finding for each.

    A claim holds, holds as corrected, is refuted by a counterexample, or is undecided because no computation settles
    one of its quantifiers. Every test must also refute a deliberately false variant of its claim.
    """
    from optrand.theory import Budget, Finding, find
    from optrand.theory.running import run
    from optrand.theory.writing import details, one_line, tally

    if budget.lower() not in [each.value for each in Budget]:
        raise InvalidInput(f"the budget is {budget!r}, expected quick or full")
    chosen = find(paper=paper, number=claim)
    if listed:
        say("\n".join(f"{each.name}: {each.statement}" for each in chosen))
        return
    amount = Budget(budget.lower())
    kept = KEPT if keep is None and amount is Budget.FULL else keep
    _refuse(chosen, page, pictures, overwrite=force)
    if kept is not None:
        _refuse_kept(kept, page)
        typer.echo(f"note: findings are kept in {kept}: the same command goes on from there", err=True)
    outcomes: list[Outcome] = []
    with progress() as announce:
        made = run(chosen, amount, jobs=jobs, kept=kept)
        for each in chosen:
            announce(f"{each.name} ({len(outcomes) + 1} of {len(chosen)})")
            outcome = next(made)
            outcomes.append(outcome)
            if isinstance(outcome, Finding) and claim is None:
                say(one_line(outcome))
            elif isinstance(outcome, Finding):
                say(details(each, outcome) + "\n")
            else:
                say(f"{each.name:<42} not tried: {outcome.reason}")
    findings = [outcome for outcome in outcomes if isinstance(outcome, Finding)]
    say(tally(findings))
    # Of a run in which a check failed nothing is published: a page would leave out the claim.
    _judge(outcomes, asked_for_one=claim is not None)
    _publish(chosen, findings, page, pictures, overwrite=force)


def _refuse(chosen: Sequence[Claim], page: Path | None, pictures: Path | None, *, overwrite: bool) -> None:
    """Raise now what would else be raised after a long run."""
    from optrand.base.files import refuse_target

    if page is not None:
        refuse_target(page, overwrite=overwrite)
        if not page.parent.is_dir():
            raise InvalidInput(f"{page.parent} is not a folder: choose another name for the page")
    if pictures is not None:
        if not pictures.is_dir() and (pictures.exists() or not pictures.parent.is_dir()):
            raise InvalidInput(f"{pictures} cannot be made a folder: choose another name for the pictures")
        for claim in chosen:
            refuse_target(pictures / f"{claim.key}.png", overwrite=overwrite)


def _refuse_kept(kept: Path, page: Path | None) -> None:
    if not kept.parent.is_dir():
        raise InvalidInput(f"{kept.parent} is not a folder: choose another name for the findings")
    if page is not None and page.resolve() == kept.resolve():
        raise InvalidInput(f"{page} is both the page and the folder of findings: choose another name for one of them")


def _publish(
    chosen: Sequence[Claim], findings: Sequence[Finding], page: Path | None, pictures: Path | None, *, overwrite: bool
) -> None:
    from optrand.base.files import write_atomically
    from optrand.theory.writing import page as written

    by_name = {finding.claim: finding for finding in findings}
    found = [claim for claim in chosen if claim.name in by_name]
    if page is not None:
        write_atomically(page, written(by_name, found).encode(), overwrite=overwrite)
    if pictures is not None:
        from optrand.plotting import save_figure
        from optrand.theory.pictures import claim_figure

        pictures.mkdir(exist_ok=True)
        for claim in found:
            save_figure(claim_figure(claim, by_name[claim.name]), pictures / f"{claim.key}.png", overwrite=overwrite)


def _judge(outcomes: Sequence[Outcome], *, asked_for_one: bool) -> None:
    """End with an error where a check sees nothing or broke off, or where what was asked for could not be tried."""
    from optrand.theory.running import NotFound

    missing = [outcome for outcome in outcomes if isinstance(outcome, NotFound)]
    if any(outcome.blind for outcome in missing):
        raise typer.Exit(UNVERIFIED)
    if any(outcome.failed for outcome in missing):
        raise typer.Exit(FAILED)
    if missing and asked_for_one:
        raise MissingExtra(missing[0].reason)
