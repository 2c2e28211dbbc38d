"""``optrand verify``: a saved mechanism or the record of a release, of which nothing is believed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.base.numerals import shown_above, shown_below, shown_spent
from optrand.cli.console import command_line, gap_words, progress, say, show
from optrand.cli.options import option
from optrand.cli.reading import parse_gap
from optrand.cli.saved import read_saved
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.certificates.certificate import Certificate
    from optrand.mechanism.mechanism import Mechanism
    from optrand.programs.mechanism import ProgramMechanism
    from optrand.release.record import ReleaseRecord

__all__ = ["proof_facts", "verify"]


@command_line
def verify(
    saved: Annotated[Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release.")],
    gap: Annotated[str | None, option("--gap", "SHARE", "Fail unless the verified gap is at most this.")] = None,
    table: Annotated[
        Path | None, option("--table", "FILE", "Fail unless this file is the released table, byte by byte.")
    ] = None,
) -> None:
    """Verify a saved mechanism or a release record.

    Everything is computed again from the file, in exact arithmetic. `python -m optrand.checker` checks a mechanism
    with code of its own. The record of a release, OUT.release.json, states the total epsilon and holds its mechanisms,
    which are verified too.
    """
    from optrand.mechanism.mechanism import Mechanism
    from optrand.programs.mechanism import ProgramMechanism

    required = math.inf if gap is None else parse_gap(gap)
    found = read_saved(saved)
    if table is not None and isinstance(found, Mechanism | ProgramMechanism):
        raise InvalidInput(f"{saved} is no record of a release, which alone knows its table: give OUT.release.json")
    if isinstance(found, ProgramMechanism):
        show({**_program_facts(found), "digest": found.digest})
        found.certificate.require(gap=required)
    elif isinstance(found, Mechanism):
        _verify_mechanism(found, required)
    else:
        _tell_record(found, table)
        for mechanism in found.distinct:
            _verify_mechanism(mechanism, required)
    say("verified")


def _verify_mechanism(mechanism: Mechanism, required: float) -> None:
    from optrand.certificates.certificate import certify

    with progress() as announce:
        announce("proving")
        proof = certify(mechanism)
    show({**proof_facts(mechanism, proof), "digest": mechanism.digest})
    proof.require(gap=required)


def _tell_record(record: ReleaseRecord, table: Path | None) -> None:
    facts: dict[str, object] = {
        "total epsilon": f"{record.epsilon!r}: prior {record.parts.prior!r}, labels {record.parts.labels!r}",
        "rows": record.rows,
        "prior": record.prior,
        "estimates": record.estimates.words,
        "table": "not compared: name it with --table",
    }
    if record.groups:
        facts["groups"] = f"{len(record.mechanisms)} by {', '.join(record.groups)}"
    if record.relative_loss is not None:
        facts["objective"] = f"{shown_above(record.relative_loss, 4)} of that of one randomizer for all rows"
    if table is not None:
        record.verify_table(table)
        facts["table"] = f"{table}, SHA-256 {'' if record.table is None else record.table.sha256}"
    show(facts)


def proof_facts(mechanism: Mechanism, proof: Certificate) -> dict[str, object]:
    """Return the facts that a proof states of a mechanism, to be printed."""
    from optrand.model.outputs import in_words

    found = mechanism.summary()
    facts: dict[str, object] = {
        "labels": mechanism.labels.size,
        "outputs": f"{mechanism.n}, {in_words(mechanism.problem.outputs)}",
        "realised epsilon": f"{shown_spent(proof.epsilon, proof.target_epsilon)} of {proof.target_epsilon!r} "
        "(verified in integers)",
        "largest bias": shown_above(proof.bias, 3),
        "verified gap": gap_words(proof.gap),
        "optimal value": f"between {shown_below(proof.lower, 10)} and {shown_above(proof.upper, 10)}",
        "value is the": found.value_name,
    }
    if found.deviation is not None:
        facts["noise of one label"] = f"standard deviation {found.deviation:.6g}, in units of the labels"
        facts["noise of a mean"] = f"standard deviation {found.mean_deviation:.6g} over {found.rows:,} rows"
    return facts


def _program_facts(mechanism: ProgramMechanism) -> dict[str, object]:
    """Return the facts that are proven of the mechanism of a linear program, to be printed."""
    proof = mechanism.certificate
    facts: dict[str, object] = {"labels": mechanism.labels.size, "outputs": mechanism.outputs.size}
    for name, number in proof.realised:
        facts[name] = f"kept, at most {shown_above(number, 10)} (verified in integers)"
    return {
        **facts,
        "verified gap": gap_words(proof.gap),
        "optimal value": f"between {shown_below(proof.lower, 10)} and {shown_above(proof.upper, 10)}",
    }
