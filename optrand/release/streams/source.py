"""Streams of a table's rows: what readers and writers of every kind of file share."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optrand.errors import InputChanged

__all__ = ["BATCH_ROWS", "FileState", "Sink", "Source", "Whereabouts", "digest_of", "files_below"]

BATCH_ROWS = 1 << 16
"""Rows of a batch."""


@dataclass(frozen=True)
class FileState:
    """Size, time of the last change and inode of a file: they differ where it was appended to, cut or replaced.

    Attributes
    ----------
    size, mtime_ns, inode : int
    """

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, file: Path | int) -> FileState:
        """State of a path, or of an open file."""
        found = os.stat(file)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


Whereabouts = tuple[FileState, ...]
"""States of all files of a table, in their order."""


class Source(ABC):
    """A table on disk, read as often as needed.

    Attributes
    ----------
    path : Path
    names : tuple of str
        All columns, in their order.
    text : str or None
        The decimal point, where cells are text; None where they have types.
    partitions : tuple of str
        Columns in the names of the folders (``state=CA/``) alone, which batches have where they are asked for.
    """

    path: Path
    names: tuple[str, ...]
    text: str | None = None
    partitions: tuple[str, ...] = ()

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """All files of the table."""

    @property
    @abstractmethod
    def schema(self) -> Any:
        """Arrow schema of the batches, all columns."""

    @abstractmethod
    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the index of a file of the table, and a record batch of its next rows.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns to read, all by default.

        Raises
        ------
        InvalidInput
            The file is damaged or of another kind; no message repeats what a cell holds.
        """

    @property
    def cut(self) -> bool:
        """Whether the last line, once it has been read, lacked its end: a copy may have broken off in it."""
        return False

    @property
    def states(self) -> Whereabouts:
        """States of all files, now."""
        return tuple(FileState.of(path) for path in self.files)

    def check_unchanged(self, before: Whereabouts) -> None:
        """Compare the states of all files with earlier ones.

        Raises
        ------
        InputChanged
            A file was appended to, cut, replaced or removed in between.
        """
        try:
            same = self.states == before
        except OSError:
            same = False
        if not same:
            raise InputChanged(
                f"{self.path.name} was changed or replaced while it was read: nothing was released; start again once "
                "nobody writes to it"
            )


class Sink(ABC):
    """A table that is being written."""

    @abstractmethod
    def write(self, part: int, batch: Any) -> None:
        """Append the rows of a batch, of the file with the index `part` of the table that is read."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left and flush it to the disk."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the files as they are; what was written is of no use."""


def files_below(folder: Path, ending: str) -> tuple[Path, ...]:
    """Files of a partitioned table, sorted by their paths; names that begin with a dot or an underscore are no part."""
    found = sorted(path for path in folder.rglob(f"*{ending}") if path.is_file())
    return tuple(
        path for path in found if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )


def digest_of(path: str | os.PathLike[str]) -> str:
    r"""SHA-256 of a file in hexadecimal; of a folder, that of what ``sha256sum`` says of its files, sorted by path.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"abc")
    ...     digest_of(f"{folder}/a")[:8], digest_of(folder) == hashlib.sha256(
    ...         f"{digest_of(f'{folder}/a')}  a\n".encode()
    ...     ).hexdigest()
    ('ba7816bf', True)
    """
    target = Path(path)
    if target.is_dir():
        below = sorted(file for file in target.rglob("*") if file.is_file())
        lines = "".join(f"{digest_of(file)}  {file.relative_to(target).as_posix()}\n" for file in below)
        return hashlib.sha256(os.fsencode(lines)).hexdigest()
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
