"""``optrand theory``: try the claims of the papers, and say of each whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optrand.cli.console import UNVERIFIED, command_line, progress, say
from optrand.cli.options import Force, option
from optrand.errors import InvalidInput

__all__ = ["theory"]


@command_line
def theory(
    paper: Annotated[
        str | None, option("--paper", "KEY", "Only the claims of one paper: G21, E22, Z25 or B23.")
    ] = None,
    claim: Annotated[
        str | None,
        option("--claim", "NAME", "Only one claim, by its printed name ('Lemma 8') or a part of it (LP1), in detail."),
    ] = None,
    times: Annotated[
        int, typer.Option("--times", metavar="N", min=1, help="Try N times as many random instances of each claim.")
    ] = 1,
    page: Annotated[Path | None, option("--page", "FILE", "Write all findings as a page of Markdown.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the claims and their statements, and try none.")] = False,
    force: Force = False,
) -> None:
    """Test the numbered claims of the papers and print a finding for each.

    A claim holds, holds as corrected, is refuted by a counterexample, or is undecided because no computation settles
    one of its quantifiers. Every test must also refute a deliberately false variant of its claim.
    """
    from optrand.base.files import refuse_target, write_atomically
    from optrand.theory import BlindCheck, Finding, check, find, writing

    chosen = find(paper=paper, number=claim)
    if listed:
        say("\n".join(f"{each.name}: {each.printed.wording}" for each in chosen))
        return
    if page is not None:
        refuse_target(page, overwrite=force)
        if not page.parent.is_dir():
            raise InvalidInput(f"{page.parent} is not a folder: choose another name for the page")
    findings: list[Finding] = []
    failed = False
    with progress() as announce:
        for number, each in enumerate(chosen, 1):
            announce(f"{each.name} ({number} of {len(chosen)})")
            try:
                finding = check(each, times)
            except BlindCheck as error:
                failed = True
                say(str(error))
                continue
            failed = failed or finding.verdict is not each.verdict
            findings.append(finding)
            say(writing.one_line(finding) if claim is None else f"{writing.details(finding)}\n")
    if findings:
        say(f"{writing.tally(findings)}")
    if failed:
        say("at least one claim has another verdict than its code declares, or could not be tried")
        raise typer.Exit(UNVERIFIED)
    if page is not None:
        write_atomically(page, writing.page(findings).encode(), overwrite=force)
