"""Atomic writes; never overwrites unless asked."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from optrand.errors import InvalidInput

__all__ = ["check_target", "new_file", "publish", "refuse_target", "write_atomically"]

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


def refuse_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Raise if `path` must not be written: a link, a folder, a device, or a file that may not be overwritten.

    An early check, before long work; :func:`publish` decides.
    """
    target = Path(path)
    if target.is_symlink():
        raise InvalidInput(f"{target} is a symbolic link: name the file itself")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{target} is a folder or a device, not a file: choose another name")
    if not overwrite and target.exists():
        raise InvalidInput(f"{target} exists: choose another name, or overwrite it (--force, or overwrite=True)")


def write_atomically(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = False) -> None:
    """Write `data` to `path` atomically: every reader sees all of it or nothing, even after a crash.

    Parameters
    ----------
    path : path
        Its directory must exist.
    data : bytes
    overwrite : bool
        Whether an existing file may be replaced; if not, even one that appears during the call is safe.

    Raises
    ------
    InvalidInput
        `path` is a symbolic link, or exists without `overwrite`.
    OSError
        The disk is full, the directory is missing or read-only, ... Nothing is left behind.

    Notes
    -----
    A temporary file beside the target is flushed to the disk and renamed, and the directory flushed. A process that is
    killed leaves at most that file, whose name begins with a dot.
    """
    with new_file(Path(path), overwrite=overwrite, readable=True) as stream:
        stream.write(data)


def publish(temporary: Path, target: Path, *, overwrite: bool = False) -> None:
    """Give a finished temporary file, flushed to the disk, its final name in the same directory, in one step.

    The temporary file may or may not exist afterwards.

    Raises
    ------
    InvalidInput
        `target` is a symbolic link, or exists without `overwrite`.
    OSError
        The rename was refused.
    """
    refuse_target(target, overwrite=overwrite)
    if overwrite:
        temporary.replace(target)
    else:
        try:
            _take_name(temporary, target)
        except FileExistsError:
            refuse_target(target)
            raise
    _sync_directory(target.parent)


def _take_name(temporary: Path, target: Path) -> None:
    """Rename without ever replacing: a hard link fails where the name is taken."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # No hard links here (FAT, some network disks): reserve the name first, then rename over our own empty file.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        try:
            temporary.replace(target)
        except BaseException:
            target.unlink()
            raise


def _sync_directory(directory: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def check_target(path: Path, read: Path, *, overwrite: bool = False) -> None:
    """Refuse a target before any work: the file that is `read`, a link, a folder, or something that exists."""
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent} is not a folder: make it first, or write elsewhere")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path.parent} is a folder that you may not write to: write elsewhere")
    if path.is_symlink():
        raise InvalidInput(f"{path} is a symbolic link: name the file itself")
    if path.exists():
        if read.exists() and path.samefile(read):
            raise InvalidInput(f"{path} is the input itself: choose another name for the output")
        if not path.is_file():
            raise InvalidInput(f"{path} is not a regular file: choose another name for the output")
    refuse_target(path, overwrite=overwrite)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False, readable: bool = False) -> Iterator[BinaryIO]:
    """Stream to a file that appears under `path`, atomically, when the block ends without an error.

    Raises
    ------
    InvalidInput
        `path` is a symbolic link, or exists without `overwrite`.
    OSError
        The disk is full, the folder is read-only, ... Nothing is left behind.

    Notes
    -----
    For content that does not fit in memory twice; else :func:`optrand.base.files.write_atomically`. A process that is
    killed leaves at most a temporary file, whose name begins with a dot and which, unless it is `readable`, only its
    owner can read: half a release must not add to a whole one.
    """
    refuse_target(path, overwrite=overwrite)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    # Created here rather than by tempfile, whose files only their owner can read: a mechanism is public.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if readable else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if not readable:
            temporary.chmod(0o666 & ~_umask())
        publish(temporary, path, overwrite=overwrite)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Permissions withheld from new files, which can be read only by setting them."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
