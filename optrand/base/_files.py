"""Atomic writes, which overwrite a file only on request."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from optrand.base._validation import check_flag
from optrand.errors import InvalidInput


def refuse_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise if `path` must not be written: a link, a folder, a device, or a file that may not be overwritten.

    This is an early check, before long work. :func:`publish` decides.
    """
    target = Path(path)
    check_flag(overwrite, "overwrite")
    if target.is_symlink():
        raise InvalidInput(f"{target} is a symbolic link: name the file itself")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{target} is a folder or a device, not a file: choose another name")
    if not overwrite and target.exists():
        raise InvalidInput(f"{target} exists: choose another name, or overwrite it with overwrite=True")


def write_atomically(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write `data` to `path`: every reader sees all of it or nothing, even after a crash. See :func:`new_file`."""
    with new_file(Path(path), overwrite=overwrite) as stream:
        stream.write(data)


def publish(temporary: Path, target: Path, *, overwrite: bool = False) -> None:
    """Give a finished temporary file its final name in the same folder, in one step, and flush the folder."""
    refuse_target(target, overwrite=overwrite)
    if overwrite:
        temporary.replace(target)
    else:
        try:
            take_name(temporary, target)
        except FileExistsError:
            refuse_target(target)
            raise
    sync_directory(target.parent)


def take_name(source: Path, target: Path) -> None:
    """Give a file or a folder a name that is free.

    A file may keep its old name as well: a hard link fails if the new one is taken. For a folder, and if a file system
    has no hard links (FAT, some network disks), the name is looked up before the rename, and only a lock of the caller
    keeps others out. No empty file ever stands under the new name. A taken name raises ``FileExistsError``.
    """
    if not source.is_dir():
        try:
            os.link(source, target)
        except OSError as error:
            # A file system may have no hard links, or no more of them: there are other ways.
            if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}:
                raise
        else:
            return
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.replace(target)


def sync_directory(directory: Path) -> None:
    """Flush the names in a folder to the disk, if the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot flush a folder.
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is missing or that cannot be written to."""
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder: make it first, or write elsewhere")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput(f"{folder} is a folder that you may not write to: write elsewhere")


def check_target(path: Path, read: Path, *, overwrite: bool = False) -> None:
    """Refuse a target before any work: the file that is `read`, a link, a folder, or something that exists."""
    check_folder(path.parent)
    if not path.is_symlink() and path.exists() and read.exists() and path.samefile(read):
        raise InvalidInput(f"{path} is the input itself: choose another name for the output")
    refuse_target(path, overwrite=overwrite)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a stream to a file that appears under `path`, atomically, when the block ends without an error.

    A file that exists is replaced only with `overwrite`. Without it even one that appears meanwhile is safe. A process
    that is killed leaves at most a temporary file, whose name begins with a dot and which only its owner can read. An
    error, such as a full disk, leaves nothing.
    """
    refuse_target(path, overwrite=overwrite)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the folder is not there: make it first, or write elsewhere", str(path.parent)
        )
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary_file(temporary) as stream:
            yield stream
        temporary.chmod(public_mode())
        publish(temporary, path, overwrite=overwrite)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_file(path: Path) -> Iterator[BinaryIO]:
    """Open a stream to a new file that only its owner can read, flushed when the block ends without an error.

    Any other error leaves the file behind.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def public_mode(like: Path | None = None) -> int:
    """Return permissions of a new file: those of the umask, and at most those of another file."""
    mask = os.umask(0o077)
    os.umask(mask)
    allowed = 0o666 if like is None else stat.S_IMODE(like.stat().st_mode) & 0o666 | 0o600
    return allowed & ~mask | 0o600
