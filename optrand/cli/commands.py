"""Two commands: solve, plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optrand.cli.options import (
    BiasPenalty,
    Epsilon,
    Force,
    Labels,
    Outputs,
    Prior,
    Saved,
)
from optrand.cli.questions import answered, read_groups, read_problem, read_released
from optrand.cli.reporting import progress, reported, show, tell_total
from optrand.cli.verifying import proven

__all__ = ["plot", "solve"]


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
def plot(
    mechanism: Saved,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    force: Force = False,
) -> None:
    """Draw a saved mechanism, or that of a release.

    One probability mass function per label, and the table with its staircase signature. Of a release by groups, the
    prior of each and the noise of its mechanism.
    """
    from optrand.certificates.certificate import certify
    from optrand.plotting import groups_figure, mechanism_figure, save_figure

    by_groups = read_groups(mechanism)
    if by_groups is not None:
        with progress() as announce:
            announce("drawing")
            save_figure(groups_figure(by_groups.mechanisms, total=by_groups.epsilon), output, overwrite=force)
        tell_total(by_groups)
        show({"picture": output})
        return
    loaded, record = read_released(mechanism)
    total = None if record is None else record.epsilon
    with progress() as announce:
        announce("drawing")
        save_figure(mechanism_figure(loaded, certify(loaded), total=total), output, overwrite=force)
    tell_total(record)
    show({"picture": output})
