"""``optrand verify``: a saved mechanism or saved noise, of which nothing is believed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optrand.base.numerals import shown_above, shown_below, shown_spent
from optrand.cli.options import read_gap
from optrand.cli.questions import holds_record, read_mechanism
from optrand.cli.release_options import ReleasedSeparator
from optrand.cli.reporting import progress, reported, say, show, told_gap
from optrand.cli.table_asked import csv_layout
from optrand.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from optrand.certificates.certificate import Certificate
    from optrand.mechanism.mechanism import Mechanism

__all__ = ["proven", "verify"]


@reported
def verify(
    saved: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved mechanism, saved additive noise, or a release's record.")
    ],
    gap: Annotated[
        str | None, typer.Option("--gap", metavar="SHARE", help="Fail unless the verified gap is at most this.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", metavar="FILE", help="Fail unless this is, byte by byte, the table of the release."),
    ] = None,
    separator: ReleasedSeparator = None,
) -> None:
    """Prove a saved mechanism private and near optimal, or saved noise private, or a release to be what it says.

    Nothing but the file is trusted. A mechanism is checked in exact arithmetic, and `python -m optrand.checker` does
    the same with none of this code. Of noise the parameters are checked; nobody claims that it is optimal. The record
    of a release, OUT.release.json, states the total epsilon, and its randomizer is verified too.
    """
    from optrand.release.randomizer_file import holds_noise

    required = math.inf if gap is None else read_gap(gap)
    if holds_record(saved):
        *others, saved = _verify_record(saved, table, separator)
        for other in others:
            _verify_mechanism(other, required)
    elif table is not None or separator is not None:
        raise InvalidInput(f"{saved} is no record of a release, which alone knows its table: give OUT.release.json")
    if saved.is_file() and holds_noise(saved):
        if gap is not None:
            raise InvalidInput(f"{saved} holds additive noise, which nobody claims to be optimal: leave out --gap")
        _verify_noise(saved)
        return
    _verify_mechanism(saved, required)
    say("verified")


def _verify_mechanism(path: Path, required: float) -> None:
    from optrand.certificates.certificate import certify

    loaded = read_mechanism(path)
    with progress() as announce:
        announce("proving")
        proof = certify(loaded)
    show({**proven(loaded, proof), "digest": loaded.digest})
    proof.require(gap=required)


def _verify_record(path: Path, table: Path | None, separator: str | None) -> list[Path]:
    """Check the record of a release and its table, and say what it states; paths of its randomizers, verified too."""
    from optrand.release.record import load_release
    from optrand.release.streams.source import digest_of

    record = load_release(path)
    distinct = list({one.name: one for one in record.randomizers}.values())
    if not distinct:
        raise InvalidInput(f"{path} names no randomizer: there is nothing to verify")
    for one in distinct:
        record.read(one)
    facts: dict[str, object] = {
        "total epsilon": f"{record.epsilon!r}: prior {record.parts.prior!r}, labels {record.parts.labels!r}",
        "rows": record.rows,
        "prior": record.prior,
        "estimates": record.estimates.words,
        "table": "not compared: name it with --table",
    }
    if record.circumstances.groups:
        facts["groups"] = f"{len(record.randomizers)} by {', '.join(record.circumstances.groups)}"
    if record.relative_loss is not None:
        facts["objective"] = f"{shown_above(record.relative_loss, 4)} of that of one randomizer for all rows"
    if not record.private:
        facts["private"] = "NO: the noise came from a source that others can repeat"
    if table is not None:
        if not table.exists():
            raise InvalidInput(f"{table} is not there: expected the released table")
        record.verify_table(table)
        stated = record.table
        if stated is not None and _rows(table, separator) != stated.rows:
            raise InvalidFile(f"{table} has another number of rows than the record states, {stated.rows}")
        facts["table"] = f"{table}, SHA-256 {digest_of(table)}"
    show(facts)
    return [path.parent / one.name for one in distinct]


def _rows(path: Path, separator: str | None) -> int:
    """Number of rows of a table."""
    from optrand.release.table import open_table

    table = open_table(path, layout=csv_layout(path, separator, None))
    return sum(batch.num_rows for _, batch in table.batches(table.names[:1]))


def _verify_noise(path: Path) -> None:
    from optrand.release.randomizer_file import kind_of, load_randomizer

    noise = load_randomizer(path)
    facts: dict[str, object] = {
        "noise": kind_of(noise),
        "epsilon": f"{noise.epsilon!r} for labels that differ by at most {noise.sensitivity!r}",
        "clipped to": "nothing" if noise.clip is None else f"{noise.clip.low!r} to {noise.clip.high!r}",
        "privacy": "exact: drawn with the very probabilities that are proven private"
        if noise.exact
        else "holds for real numbers ONLY: the noise is drawn in floats, so that epsilon is not guaranteed",
    }
    show(facts)
    say("verified" if noise.exact else "verified, for real numbers only")


def proven(mechanism: Mechanism, proof: Certificate) -> dict[str, object]:
    """Facts that a proof states of a mechanism, to be printed."""
    from optrand.model.outputs import in_words

    return {
        "labels": mechanism.labels.size,
        "outputs": f"{mechanism.n}, {in_words(mechanism.problem.outputs)}",
        "realised epsilon": f"{shown_spent(proof.epsilon, proof.target_epsilon)} of {proof.target_epsilon!r} "
        "(verified in integers)",
        "largest bias": shown_above(proof.bias, 3),
        "verified gap": told_gap(proof.gap),
        "optimal value": f"between {shown_below(proof.lower, 10)} and {shown_above(proof.upper, 10)}",
        **_meaning(mechanism),
    }


def _meaning(mechanism: Mechanism) -> dict[str, object]:
    """Numbers that mean something to those who use noisy labels, in floats."""
    found = mechanism.summary()
    if found.deviation is None:
        return {"value is the": found.value_name}
    return {
        "value is the": found.value_name,
        "noise of one label": f"standard deviation {found.deviation:.6g}, in units of the labels",
        "noise of a mean": f"standard deviation {found.mean_deviation:.6g} over {found.rows:,} rows",
    }
