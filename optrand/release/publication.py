"""Files of one release, which appear together or not at all: staged, entered in a journal, then given their names.

Everything stands in one hidden folder beside the output until it is complete and on the disk. From when the journal is
written a release can only be finished; before, only withdrawn. The table takes its name last: what stands under it is
always described by what stands beside it. The folder is locked while a release runs, and one that a killed run has left
is finished or withdrawn by :func:`recover`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from optrand.base.files import public_mode, sync_directory, take_name
from optrand.errors import Finished, Interrupted, InvalidFile, InvalidInput
from optrand.release.journal import JOURNAL, Journal, JournalEntry, load_journal, save_journal
from optrand.release.streams.source import digest_of

__all__ = ["Publication", "Recovered", "recover", "staging_folder"]


@dataclass(frozen=True)
class Recovered:
    """What became of a release that an earlier run had left unfinished.

    Attributes
    ----------
    state : {"nothing", "withdrawn", "finished"}
        There was none; nothing of it had been published and what was staged is gone; all of it is published now.
    release : str or None
        Its uuid, if it was finished.
    files : tuple of str
        Names of what was published, the table last.
    unfinished : tuple of str
        UUIDs of releases of the same output that the ledger holds as begun and neither published nor given up.
    """

    state: Literal["nothing", "withdrawn", "finished"]
    release: str | None = None
    files: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def staging_folder(target: Path) -> Path:
    """Hidden folder in which a release of `target` is prepared.

    Examples
    --------
    >>> staging_folder(Path("out/census.csv")).name
    '.census.csv.release'
    """
    return target.with_name(f".{target.name}.release")


class Publication:
    """One release that is being prepared; a context that withdraws what was not published.

    Parameters
    ----------
    target : path
        The released table, a file or a folder: its final name.
    release : str
        The uuid of the release.
    overwrite : bool
        Whether files of an earlier release may be replaced, all of them together.

    Raises
    ------
    InvalidInput
        Another release of this output is running; :class:`.Finished`, one that was left unfinished is finished now.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder, "out.csv")
    ...     with Publication(out, release="7") as publication:
    ...         _ = publication.stage(out.with_name("out.json")).write_text("{}")
    ...         _ = publication.stage(out).write_text("y")
    ...         publication.publish()
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['out.csv', 'out.json']
    """

    def __init__(self, target: Path, *, release: str, overwrite: bool = False) -> None:
        self.target, self.release, self.overwrite = target, release, overwrite
        self.folder = staging_folder(target)
        self._staged: dict[Path, tuple[Path, Path | None]] = {}
        self._digests: dict[Path, str] = {}
        self.published = False
        self._lock = _locked(self.folder, make=True)
        try:
            self.found = _resolved(self.folder)
        except BaseException:
            os.close(self._lock)
            raise
        if self.found.state == "finished":
            os.close(self._lock)
            raise Finished(target, self.found.files)

    def __enter__(self) -> Publication:
        return self

    def __exit__(self, *_: object) -> None:
        # What the journal has committed to can only be finished.
        if not self.folder.joinpath(JOURNAL).exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def stage(self, target: Path, *, like: Path | None = None) -> Path:
        """Path at which to write what will be `target`, in the order of publication: the table comes last.

        Parameters
        ----------
        target : path
            In the folder of the table.
        like : path, optional
            A file whose permissions its own will not exceed.

        Raises
        ------
        InvalidInput
            Another folder than the table's.
        """
        if target.parent != self.target.parent:
            raise InvalidInput(f"{target} is not beside {self.target}: files of one release stand in one folder")
        staged = self.folder / f"{self.release}.{len(self._staged)}"
        self._staged[target] = staged, like
        return staged

    def digest(self, target: Path) -> str:
        """SHA-256 of a staged file that is complete, or of a folder: see :func:`.digest_of`."""
        if target not in self._digests:
            self._digests[target] = digest_of(self._staged[target][0])
        return self._digests[target]

    def publish(self, *, retire: Sequence[Path] = ()) -> None:
        """Give everything staged its final name.

        Parameters
        ----------
        retire : sequence of path
            What else described the table that is replaced, and goes with it.

        Raises
        ------
        InvalidInput
            A name is taken; what was there before is there again.
        OSError
            As from the operating system; what was there before is there again.
        Interrupted
            All is published, but the disk did not confirm it.
        """
        for staged, like in self._staged.values():
            _open_up(staged, public_mode(like))
        entries = tuple(
            JournalEntry(staged.name, name.name, self.digest(name)) for name, (staged, _) in self._staged.items()
        )
        journal = Journal(self.release, self.overwrite, entries, tuple(path.name for path in retire))
        sync_directory(self.folder)
        save_journal(journal, self.folder)
        try:
            _advance(self.folder, journal)
        except BaseException:
            _retreat(self.folder, journal)
            raise
        self.published = True
        _settle(self.folder)


def recover(target: str | os.PathLike[str]) -> Recovered:
    """Finish or withdraw a release of `target` that an earlier run has left.

    Raises
    ------
    InvalidInput
        A release of `target` is running, or something that is not part of the release has one of its names: nothing
        was changed.
    InvalidFile
        What was left is damaged: nothing was changed.
    OSError
        As from the operating system; it can be tried again.
    """
    folder = staging_folder(Path(target))
    if not os.path.lexists(folder):
        return Recovered("nothing")
    lock = _locked(folder, make=False)
    try:
        found = _resolved(folder)
        if found.state != "finished":
            shutil.rmtree(folder)
            return Recovered("withdrawn")
        return found
    finally:
        os.close(lock)


def _locked(folder: Path, *, make: bool) -> int:
    """Open folder that no other process holds."""
    while True:
        if make:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise InvalidInput(f"{folder} belongs to another user: choose another name for the output")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(folder) and os.path.samestat(os.stat(folder), os.fstat(descriptor)):
                return descriptor
            # The run that held it has just ended.
            os.close(descriptor)
            if not make:
                raise FileNotFoundError(f"{folder} is gone")
        except BlockingIOError:
            os.close(descriptor)
            name = folder.name.removeprefix(".").removesuffix(".release")
            raise InvalidInput(f"another release of {name} is running: wait for it, or choose another name") from None
        except InvalidInput:
            os.close(descriptor)
            raise


def _resolved(folder: Path) -> Recovered:
    """Finish what a journal has committed to; clear the folder otherwise."""
    journal = load_journal(folder)
    if journal is None:
        found = list(folder.iterdir())
        for path in found:
            _remove(path)
        return Recovered("withdrawn" if found else "nothing")
    for entry in journal.entries:
        staged = folder / entry.staged
        if staged.exists() and digest_of(staged) != entry.sha256:
            raise InvalidFile(f"{entry.target} of an interrupted release is damaged: it cannot be finished")
    _advance(folder, journal)
    _settle(folder)
    return Recovered("finished", journal.release, tuple(entry.target for entry in journal.entries))


def _advance(folder: Path, journal: Journal) -> None:
    """Give every file its name, the table last; nothing is lost wherever this breaks off, and it can be repeated."""
    waiting = [entry for entry in journal.entries if not _placed(folder, entry)]
    if journal.overwrite:
        # The old table goes first: it never stands beside a new mechanism.
        for name in (*(entry.target for entry in reversed(waiting)), *journal.retired):
            old, aside = folder.with_name(name), folder / f"old.{name}"
            if os.path.lexists(old):
                if os.path.lexists(aside):
                    raise InvalidInput(f"{old} appeared while it was replaced: move it away")
                old.replace(aside)
    for entry in waiting:
        staged, target = folder / entry.staged, folder.with_name(entry.target)
        if entry is journal.entries[-1]:
            sync_directory(folder.parent)
        try:
            take_name(staged, target)
        except FileExistsError:
            raise InvalidInput(
                f"{target} exists: choose another name, or overwrite it (--force, or overwrite=True)"
            ) from None
    for entry in journal.entries:
        staged = folder / entry.staged
        if not staged.is_dir():
            staged.unlink(missing_ok=True)


def _placed(folder: Path, entry: JournalEntry) -> bool:
    staged, target = folder / entry.staged, folder.with_name(entry.target)
    return not staged.exists() or (target.exists() and staged.samefile(target))


def _retreat(folder: Path, journal: Journal) -> None:
    """Put everything back, unless the table has its name: then what describes it stays, too."""
    if _placed(folder, journal.entries[-1]):
        raise Interrupted(
            "all files of the release are under their final names, but an error followed: run `optrand recover`",
            released=True,
        )
    for entry in journal.entries:
        staged, target = folder / entry.staged, folder.with_name(entry.target)
        if _placed(folder, entry):
            target.replace(staged) if not staged.exists() else target.unlink()
    for name in (*(entry.target for entry in journal.entries), *journal.retired):
        old = folder / f"old.{name}"
        if os.path.lexists(old):
            take_name(old, folder.with_name(name))
            if not old.is_dir():
                old.unlink(missing_ok=True)
    folder.joinpath(JOURNAL).unlink()


def _settle(folder: Path) -> None:
    """Flush the names, then remove the hidden folder and the old release with it."""
    try:
        sync_directory(folder.parent)
    except OSError as error:
        raise Interrupted(
            "all files of the release are under their final names, but the disk did not confirm it "
            f"({error.strerror}): check them before you rely on them",
            released=True,
        ) from error
    # The journal goes last: with it, what remains is still a release that is finished.
    for path in folder.iterdir():
        if path.name != JOURNAL:
            with suppress(OSError):
                _remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _open_up(path: Path, mode: int) -> None:
    """Set the permissions of a file, or of a folder and all in it."""
    if not path.is_dir():
        path.chmod(mode)
        return
    for below in path.rglob("*"):
        if below.is_dir():
            sync_directory(below)
        below.chmod(mode | (mode & 0o444) >> 2 if below.is_dir() else mode)
    sync_directory(path)
    path.chmod(mode | (mode & 0o444) >> 2)
