"""``optrand report``: a saved mechanism, its certificate, its budget and its pictures as one page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from optrand.cli.options import Force, Saved
from optrand.cli.questions import read_groups, read_released
from optrand.cli.reporting import progress, reported, say, tell_total, told_gap

__all__ = ["report"]


@reported
def report(
    mechanism: Saved,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page: .html.")],
    force: Force = False,
) -> None:
    """Describe a saved mechanism, or that of a release, on one page of HTML.

    The page needs no network and no script. It holds what `verify` proves, what the budget means, and every picture.
    Where the proof fails the page says so, and the command ends with exit code 3.
    """
    from optrand.base.files import refuse_target, write_atomically
    from optrand.certificates.certificate import certify
    from optrand.errors import InvalidInput
    from optrand.plotting.report import group_report_page, report_page

    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{output.name} is not the name of a page, expected one that ends in .html")
    by_groups = read_groups(mechanism)
    if by_groups is not None:
        refuse_target(output, overwrite=force)
        with progress() as announce:
            announce("drawing")
            page = group_report_page(by_groups.mechanisms, by_groups.parts, relative_loss=by_groups.relative_loss)
        write_atomically(output, page.encode(), overwrite=force)
        tell_total(by_groups)
        say(f"page  {output}")
        for one in {one.digest: one for one in by_groups.mechanisms.values()}.values():
            certify(one).require(gap=math.inf)
        say("verified")
        return
    loaded, record = read_released(mechanism)
    refuse_target(output, overwrite=force)
    with progress() as announce:
        announce("proving")
        proof = certify(loaded)
        announce("drawing")
        page = report_page(loaded, proof, name=mechanism.name, parts=None if record is None else record.parts)
    write_atomically(output, page.encode(), overwrite=force)
    tell_total(record)
    say(f"page  {output}")
    proof.require(gap=math.inf)
    say(f"verified, gap {told_gap(proof.gap)}")
