"""Journal of a publication: which hidden files take which names, so that one that broke off can be finished.

From when it is on the disk a release can only be finished; before, only withdrawn.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from optrand.base import strict_json
from optrand.base.files import write_atomically
from optrand.base.strict_json import fields
from optrand.errors import InvalidFile

__all__ = ["JOURNAL", "Journal", "JournalEntry", "load_journal", "save_journal"]

JOURNAL, FORMAT = "journal.json", "optrand.publication"
"""Name of the file in the folder of staged files, and its kind."""


@dataclass(frozen=True)
class JournalEntry:
    """A file of a release: its name in the hidden folder, its final name, its digest."""

    staged: str
    target: str
    sha256: str


@dataclass(frozen=True)
class Journal:
    """What a publication has committed to.

    Attributes
    ----------
    release : str
        Its UUID.
    overwrite : bool
        Whether files of an earlier release may be replaced.
    entries : tuple of JournalEntry
        In the order in which they take their names, the table last.
    retired : tuple of str
        Names of what goes with the table that is replaced.
    """

    release: str
    overwrite: bool
    entries: tuple[JournalEntry, ...]
    retired: tuple[str, ...]


def save_journal(journal: Journal, folder: Path) -> None:
    """Write the journal of a folder, whole or not at all."""
    content = {
        "release": journal.release,
        "overwrite": journal.overwrite,
        "files": [{"staged": e.staged, "target": e.target, "sha256": e.sha256} for e in journal.entries],
        "retired": list(journal.retired),
    }
    write_atomically(folder / JOURNAL, strict_json.canonical(strict_json.sealed(content, kind=FORMAT)))


def load_journal(folder: Path) -> Journal | None:
    """The journal of a folder, if it has one.

    Raises
    ------
    InvalidFile
        It is damaged, or names something outside the folder of the output.
    """
    path = folder / JOURNAL
    if not os.path.lexists(path):
        return None
    if not stat.S_ISREG(path.lstat().st_mode):
        raise InvalidFile(f"{path} is no journal of a release")
    content = strict_json.unsealed(path.read_bytes(), ("release", "overwrite", "files", "retired"), kind=FORMAT)
    listed, retired = content["files"], content["retired"]
    if not (
        isinstance(listed, list) and listed and isinstance(retired, list) and content["overwrite"] in (True, False)
    ):
        raise InvalidFile(f"{path} is no journal of a release")
    names = [fields(entry, "files", ("staged", "target", "sha256")) for entry in listed]
    for name in (*(entry[key] for entry in names for key in ("staged", "target")), *retired):
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
            raise InvalidFile(f"{path} names a file that is not beside the output")
    entries = tuple(JournalEntry(**entry) for entry in names)
    return Journal(str(content["release"]), content["overwrite"], entries, tuple(retired))
