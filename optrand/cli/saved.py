"""Files that commands take: a saved mechanism, or the record of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optrand.base.suggestions import missing
from optrand.cli.console import say
from optrand.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from optrand.mechanism.mechanism import Mechanism
    from optrand.release.record import ReleaseRecord

__all__ = ["read_mechanism", "read_record", "read_saved", "stated_kind", "tell_total"]


def stated_kind(path: Path) -> str:
    """Return the format that a file states.

    Raises
    ------
    InvalidInput
        There is no such file.
    InvalidFile
        It is no file of optrand.
    """
    from optrand.base.strict_json import stated_format

    if not path.is_file():
        raise InvalidInput(f"{path} is {missing(path)}: expected a saved mechanism or the record of a release")
    try:
        kind = stated_format(path.read_bytes())
    except InvalidFile:
        kind = None
    if kind is None:
        raise InvalidFile(f"{path} is no saved mechanism and no record of a release")
    return kind


def read_mechanism(path: Path) -> Mechanism:
    """Read a saved mechanism, verified as it is loaded."""
    from optrand.mechanism.mechanism import load

    stated_kind(path)
    return load(path)


def read_record(path: Path) -> ReleaseRecord:
    """Read the record of a release of one column."""
    from optrand.release import FORMAT, load_release

    if stated_kind(path) != FORMAT:
        raise InvalidInput(f"{path} is no record of one release: expected OUT.release.json, which stands beside OUT")
    record: ReleaseRecord = load_release(path)
    return record


def read_saved(path: Path) -> tuple[Mechanism | None, ReleaseRecord | None]:
    """Return a saved mechanism, or that of a release and its record; no mechanism if each group has its own."""
    from optrand.release import FORMAT

    if stated_kind(path) != FORMAT:
        return read_mechanism(path), None
    record = read_record(path)
    return (None if record.groups else record.mechanism), record


def tell_total(record: ReleaseRecord | None) -> None:
    """Say what the release of a record has spent in all."""
    if record is not None:
        say(f"total epsilon  {record.epsilon!r}: prior {record.parts.prior!r}, labels {record.parts.labels!r}")
