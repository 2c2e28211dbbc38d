"""``optrand audit``: somebody else's randomizer, given as a table of probabilities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.base.numerals import shown_above
from optrand.cli.console import also, command_line, lines, progress
from optrand.cli.options import LABEL_FORMS, Epsilon, option
from optrand.cli.reading import parse_epsilon, parse_in_order, read_prior
from optrand.errors import InvalidInput, NotCertified

if TYPE_CHECKING:
    from optrand.audits.findings import Audit

__all__ = ["audit"]


@command_line
def audit(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV of probabilities, one row per label. A first row may name outputs, a first column labels.",
        ),
    ],
    epsilon: Epsilon,
    labels: Annotated[str | None, option("--labels", "SET", f"Labels of the rows, in order: {LABEL_FORMS}")] = None,
    outputs: Annotated[str | None, option("--outputs", "SET", "Outputs of the columns, in the same forms.")] = None,
    prior: Annotated[
        Path | None,
        option(
            "--prior", "FILE", "CSV of two columns, label and count (or probability): the losses are computed for it."
        ),
    ] = None,
) -> None:
    """Audit somebody else's randomizer: its exact epsilon, rows, bias, and distance from the optimum.

    The exit code is 3 if it is not private as stated. Entries of 15 digits or more are taken for printed floats: what
    their rounding costs, up to a billionth of epsilon, is reported and allowed.
    """
    import numpy as np

    from optrand.audits import audit as audited
    from optrand.audits.reading import read_sheet

    budget, sheet = parse_epsilon(epsilon), read_sheet(table)
    rows = sheet.labels if labels is None else tuple(parse_in_order(labels).tolist())
    columns = sheet.outputs if outputs is None else tuple(parse_in_order(outputs).tolist())
    shares = None
    if prior is not None:
        numbers = range(len(sheet.entries)) if rows is None else rows
        if any(isinstance(name, str) for name in numbers):
            raise InvalidInput(f"--prior names labels by numbers, and those of {table} are text: give --labels")
        shares = read_prior(prior, np.array(numbers, dtype=float))
    with progress() as announce:
        announce("auditing")
        found = audited(sheet.entries, budget, labels=rows, outputs=columns, prior=shares)
    lines(str(found))
    if found.maximal_leakage is not None and found.guess is not None:
        prior_known = "under the prior" if found.prior is not None else "if all labels are as likely"
        lines(
            f"maximal leakage {shown_above(found.maximal_leakage, 6)} nats; the label is guessed with a chance of at "
            f"most {shown_above(found.guess, 6)} {prior_known}"
        )
    also(**_members(found))
    if not found.private_but_for_rounding:
        raise NotCertified(f"{table} is not private as stated: {found.findings[-1]}")


def _members(found: Audit) -> dict[str, object]:
    """Return the findings for a JSON answer."""
    worst = found.worst
    same = ("private", "private_but_for_rounding", "stated_epsilon", "maximal_leakage", "guess", "findings")
    members: dict[str, object] = {
        **{name: getattr(found, name) for name in same},
        "epsilon": max(found.epsilon, found.normalised_epsilon),
        "pair_epsilons": None if found.pair_epsilons is None else found.pair_epsilons.tolist(),
        "delta_at_stated_epsilon": found.delta(found.stated_epsilon),
        "worst": {
            "output": worst.output,
            "likely_label": worst.likely,
            "unlikely_label": worst.unlikely,
            "probabilities": [float(worst.largest), float(worst.smallest)],
        },
        "row_errors": [float(error) for error in found.row_errors],
        "largest_bias": found.bias,
        "biases": None if found.biases is None else [float(bias) for bias in found.biases],
    }
    compared = found.comparison
    if compared is not None:
        members |= {
            "value": float(compared.value),
            "optimum": {
                "kind": compared.kind,
                "epsilon": compared.epsilon,
                "between": [compared.optimum.lower, compared.optimum.upper],
            },
            "gap": compared.gap if math.isfinite(compared.gap) else shown_above(compared.gap),
        }
    return members
