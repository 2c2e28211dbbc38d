"""Publication of a released table: its record is renamed first, then the table, and nothing else is ever visible.

Everything is written to a hidden folder beside the output, which is locked while a release runs. A run that is killed
leaves at most that folder, which the next one takes over.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from optrand.base._files import check_folder, public_mode, sync_directory, take_name, temporary_file
from optrand.errors import Interrupted, InvalidInput


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file; of a folder, that of the output of ``sha256sum`` on its files, sorted by path."""
    target = Path(path)
    if target.is_dir():
        below = sorted(file for file in target.rglob("*") if file.is_file())
        lines = "".join(f"{digest_of(file)}  {file.relative_to(target).as_posix()}\n" for file in below)
        return hashlib.sha256(os.fsencode(lines)).hexdigest()
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_place(target: Path, source: Path | None) -> None:
    """Refuse an output that cannot be written, or that is the input, in it, or around it."""
    check_folder(target.parent)
    if target.is_symlink():
        raise InvalidInput(f"{target} is a symbolic link: name the file itself")
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise InvalidInput(f"{target} is a device, not a file: choose another name")
    if source is None:
        return
    here, there = target.resolve(), source.resolve()
    if here == there:
        raise InvalidInput(f"{target} is the input itself: choose another name for the output")
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise InvalidInput(
            f"{target} and the input are one inside the other, so that noisy rows would be read as those of people: "
            "write elsewhere"
        )


class Staging:
    """Hidden folder in which one release of an output is prepared; a context that removes unpublished files."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target.with_name(f".{target.name}.release")
        self.table = self.folder / "table"
        self._lock: sqlite3.Connection | None = None

    def __enter__(self) -> Staging:
        while self._lock is None:
            self._lock = self._acquire()
        for left in self.folder.iterdir():
            if left.name != "lock":
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        return self

    def _acquire(self) -> sqlite3.Connection | None:
        """Lock the folder, by a lock of SQLite that ends with the process; None if it was removed meanwhile."""
        if self.folder.is_symlink():
            raise InvalidInput(f"{self.folder} is a symbolic link: remove it")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / "lock"
        try:
            path.touch(mode=0o600)
            before = path.stat().st_ino
            lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        except (FileNotFoundError, sqlite3.OperationalError):
            return None
        try:
            lock.execute("BEGIN EXCLUSIVE")
            # Another run may have removed the folder and made a new one meanwhile: this lock would guard nothing.
            if path.stat().st_ino == before:
                return lock
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                lock.close()
                raise InvalidInput(
                    f"another process prepares a release of {self.target}: wait for it, or end it and try again"
                ) from None
        except FileNotFoundError:
            pass
        lock.close()
        return None

    def __exit__(self, *_: object) -> None:
        # Removed before it is unlocked, so that no other run locks a folder that is about to go. Windows cannot remove
        # files that are open, so there it goes after.
        if os.name == "posix":
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def publish(self, record: Path, content: bytes, *, replace: bool, like: Path | None = None) -> None:
        """Give the record its name, then the table, whose permissions do not exceed those of the file `like`."""
        staged = self.folder / "record"
        with temporary_file(staged) as stream:
            stream.write(content)
        # On the disk before any name is given: a crash leaves either nothing under a final name, or whole files.
        staged.chmod(public_mode())
        _open_up(self.table, public_mode(like))
        sync_directory(self.folder)
        # The record first: a table without its record could not be told from a private one.
        for new, name in ((staged, record), (self.table, self.target)):
            try:
                if replace:
                    self._replace(new, name)
                else:
                    take_name(new, name)
            except FileExistsError:
                raise InvalidInput(f"{name} exists: choose another name, or overwrite it with force=True") from None
            sync_directory(self.folder.parent)

    def _replace(self, new: Path, name: Path) -> None:
        if name.is_dir() or (name.exists() and new.is_dir()):
            name.replace(self.folder / f"old.{name.name}")
        new.replace(name)


def _open_up(path: Path, mode: int) -> None:
    """Set the permissions of a file, or of a folder and all in it."""
    if not path.is_dir():
        path.chmod(mode)
        return
    for below in (*path.rglob("*"), path):
        if below.is_dir():
            sync_directory(below)
        below.chmod(mode | (mode & 0o444) >> 2 if below.is_dir() else mode)


class Signals:
    """SIGINT, SIGTERM and SIGHUP raise :class:`~optrand.errors.Interrupted` inside the block, once; later ones wait.

    Outside the main thread, which alone receives signals, the block changes nothing. A signal that was ignored before
    it stays ignored. The message states the `outcome`: whether the release is complete, or what is left of it.
    """

    def __init__(self) -> None:
        self.outcome, self.released = "nothing was released", False
        self._waiting = False
        self._pending: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting = True
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._waiting:
            self._pending = number
            return
        self._waiting = True
        raise self._describe_interruption(number)

    def _describe_interruption(self, number: int) -> Interrupted:
        return Interrupted(f"stopped by {signal.Signals(number).name}: {self.outcome}", released=self.released)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back until the block has ended; one that came in it is raised then, unless an error ends it."""
        before, self._waiting = self._waiting, True
        yield
        self._waiting = before
        if self._pending is not None and not before:
            self._waiting = True
            raise self._describe_interruption(self._pending)
