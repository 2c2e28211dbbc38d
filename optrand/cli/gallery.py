"""``optrand gallery``: every picture of one mechanism, saved before or solved for the occasion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optrand.cli.options import LABEL_FORMS, BiasPenalty, Force, Outputs
from optrand.cli.questions import answered, read_problem, read_released
from optrand.cli.reporting import progress, reported, say, show, tell_total
from optrand.errors import InvalidInput

__all__ = ["gallery"]


@reported
def gallery(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder of the pictures.")],
    mechanism: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A saved mechanism, or a release's record; or --labels, --prior and --epsilon."
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="SET", help=f"The declared set of labels: {LABEL_FORMS}")
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option("--prior", metavar="FILE", help="Two columns: label, count or probability. Taken as PUBLIC."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="NATS", help="The privacy budget.")] = None,
    outputs: Outputs = "line",
    bias_penalty: BiasPenalty = "inf",
    force: Force = False,
) -> None:
    """Draw everything there is to see of a mechanism, each picture as .png and as .pdf.

    Its probability mass functions, its table and signature, its joint distribution with the labels, its flow, the
    mixture of randomized responses that it is, its bins by a public phase, and the proof that nothing is better.
    """
    from optrand.plotting.gallery import gallery as drawn
    from optrand.plotting.gallery import refuse_gallery

    given = sum(text is not None for text in (labels, prior, epsilon))
    if given != (0 if mechanism else 3) or (mechanism and (outputs, bias_penalty) != ("line", "inf")):
        raise InvalidInput("a gallery is of a saved mechanism, or else of --labels, --prior and --epsilon, all three")
    if mechanism is not None:
        refuse_gallery(output, overwrite=force)
        loaded, record = read_released(mechanism)
        tell_total(record)
        with progress() as announce:
            made = drawn(loaded, output, overwrite=force, announce=announce)
    else:
        problem = read_problem(
            labels or "",
            prior or Path(),
            epsilon or "",
            outputs=outputs,
            bias_penalty=bias_penalty,
            check=lambda: refuse_gallery(output, overwrite=force),
        )
        with progress() as announce:
            made = drawn(answered(problem, announce)[0], output, overwrite=force, announce=announce)
    for name, reason in made.left_out:
        say(f"note: no picture of the {name}: {reason}")
    show({"pictures": len(made.pictures), "folder": output})
