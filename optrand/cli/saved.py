"""Files that commands take: a saved mechanism, or the record of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optrand.base.suggestions import missing
from optrand.cli.console import say
from optrand.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from optrand.mechanism.mechanism import Mechanism
    from optrand.programs.mechanism import ProgramMechanism
    from optrand.release.record import ReleaseRecord


def read_saved(path: Path) -> Mechanism | ProgramMechanism | ReleaseRecord:
    """Read a file by the format that it states, and verify it.

    Raises
    ------
    InvalidInput
        There is no such file.
    InvalidFile
        It is no file of optrand, or a damaged one.
    """
    from optrand.base.strict_json import read_format
    from optrand.mechanism.mechanism import Mechanism
    from optrand.programs.mechanism import ProgramMechanism
    from optrand.release import FORMAT

    if not path.is_file():
        raise InvalidInput(f"{path} is {missing(path)}: expected a saved mechanism or the record of a release")
    data = path.read_bytes()
    try:
        kind = read_format(data)
    except InvalidFile:
        kind = None
    if kind is None:
        raise InvalidFile(f"{path} is no saved mechanism and no record of a release")
    if kind == FORMAT:
        # Needs the extra `release`, which a mechanism does not.
        from optrand.release import load_release

        record: ReleaseRecord = load_release(path)
        return record
    return ProgramMechanism.from_bytes(data) if kind == ProgramMechanism.FORMAT else Mechanism.from_bytes(data)


def read_mechanism(path: Path) -> Mechanism:
    """Read a saved mechanism."""
    from optrand.mechanism.mechanism import Mechanism

    found = read_saved(path)
    if not isinstance(found, Mechanism):
        raise InvalidFile(f"{path} is not an optrand mechanism: expected one that was saved by optrand solve")
    return found


def read_record(path: Path) -> ReleaseRecord:
    """Read the record of a release of one column."""
    from optrand.release.record import ReleaseRecord

    found = read_saved(path)
    if not isinstance(found, ReleaseRecord):
        raise InvalidInput(f"{path} is no record of one release: expected OUT.release.json, which stands beside OUT")
    return found


def tell_total(record: ReleaseRecord | None) -> None:
    """Print the total epsilon that the release of a record has spent."""
    if record is not None:
        say(f"total epsilon  {record.epsilon!r}: prior {record.parts.prior!r}, labels {record.parts.labels!r}")
