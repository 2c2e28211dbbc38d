"""``optrand plot``: a picture, a page or a folder of every picture of a mechanism or of a release."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optrand.cli.console import command_line, gap_words, progress, say, show
from optrand.cli.options import Force, Saved, option
from optrand.cli.saved import read_saved, tell_total
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.mechanism.mechanism import Mechanism
    from optrand.release.record import ReleaseRecord

__all__ = ["plot"]


@command_line
def plot(
    saved: Saved,
    output: Annotated[
        Path,
        option(
            "--output",
            "FILE",
            "A picture (.png, .svg, .pdf), a page (.html), or a folder for every picture (a name without ending).",
            short="-o",
        ),
    ],
    force: Force = False,
) -> None:
    """Draw a saved mechanism, or that of a release.

    A picture shows the probabilities of the outputs of up to six labels. For a release by groups it shows the prior of
    each group and the noise of its mechanism. A page of HTML needs no network and no script: it holds the facts that
    `verify` proves, the meaning of the budget, and every picture. If the proof fails, the page says so and the exit
    code is 3.
    """
    from optrand.mechanism.mechanism import Mechanism
    from optrand.programs.mechanism import ProgramMechanism

    found = read_saved(saved)
    if isinstance(found, ProgramMechanism):
        raise InvalidInput(f"{saved} holds the mechanism of a linear program, of which there are no pictures")
    record = None if isinstance(found, Mechanism) else found
    mechanism = found if isinstance(found, Mechanism) else None if found.groups else found.mechanism
    ending = output.suffix.lower()
    if ending in (".html", ".htm"):
        _write_page(mechanism, record, saved.name, output, force=force)
    elif ending or output.is_file():
        _draw_picture(mechanism, record, output, force=force)
    else:
        _draw_all(mechanism, record, output, force=force)


def _draw_picture(mechanism: Mechanism | None, record: ReleaseRecord | None, output: Path, *, force: bool) -> None:
    from optrand.base.numerals import shown_above
    from optrand.plotting import groups_figure, pmf_figure, save_figure

    with progress() as announce:
        announce("drawing")
        if mechanism is not None:
            figure = pmf_figure(mechanism)
            if record is not None:
                figure.suptitle(f"{figure.get_suptitle()}, of a total of {shown_above(record.epsilon, 6)}", fontsize=8)
        elif record is not None:
            figure = groups_figure(record.mechanisms, total=record.epsilon)
        save_figure(figure, output, overwrite=force)
    tell_total(record)
    show({"picture": output})


def _write_page(
    mechanism: Mechanism | None, record: ReleaseRecord | None, name: str, output: Path, *, force: bool
) -> None:
    from optrand.base.files import refuse_target, write_atomically
    from optrand.certificates.certificate import certify
    from optrand.plotting.report import group_report_page, report_page

    refuse_target(output, overwrite=force)
    with progress() as announce:
        announce("proving")
        mechanisms = [mechanism] if mechanism is not None else record.distinct if record is not None else []
        proofs = [certify(one) for one in mechanisms]
        announce("drawing")
        if mechanism is not None:
            page = report_page(mechanism, proofs[0], name=name, parts=None if record is None else record.parts)
        elif record is not None:
            page = group_report_page(record.mechanisms, record.parts, relative_loss=record.relative_loss)
    write_atomically(output, page.encode(), overwrite=force)
    tell_total(record)
    say(f"page  {output}")
    for proof in proofs:
        proof.require(gap=math.inf)
    say(f"verified, gap {gap_words(max(proof.gap for proof in proofs))}")


def _draw_all(mechanism: Mechanism | None, record: ReleaseRecord | None, output: Path, *, force: bool) -> None:
    from optrand.plotting.saving import gallery

    if mechanism is None:
        raise InvalidInput("the release is by groups, each with a mechanism of its own: draw a picture or a page")
    with progress() as announce:
        made = gallery(mechanism, output, overwrite=force, announce=announce)
    tell_total(record)
    for name, reason in made.left_out:
        say(f"note: no picture of the {name}: {reason}")
    show({"pictures": len(made.pictures), "folder": output})
