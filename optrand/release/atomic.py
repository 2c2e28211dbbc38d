"""A file that is written in pieces and appears whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from optrand.errors import InvalidInput
from optrand.files import publish, refuse_target

__all__ = ["check_target", "new_file"]


def check_target(path: Path, source: Path, *, overwrite: bool = False) -> None:
    """Refuse a target before any work: the input under whatever name, a link, a folder, or something that exists.

    Raises
    ------
    InvalidInput
    """
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent} is not a folder: make it first, or write elsewhere")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path.parent} is a folder that you may not write to: write elsewhere")
    if path.is_symlink():
        raise InvalidInput(f"{path} is a symbolic link: name the file itself")
    if path.exists():
        if source.exists() and path.samefile(source):
            raise InvalidInput(f"{path} is the input itself: choose another name for the output")
        if not path.is_file():
            raise InvalidInput(f"{path} is not a regular file: choose another name for the output")
    refuse_target(path, overwrite=overwrite)


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A stream whose content appears under `path` when the block ends, and only if it ends well.

    Raises
    ------
    InvalidInput
        `path` is a symbolic link, or exists without `overwrite`.
    OSError
        The disk is full, the folder is read-only, ... Nothing is left behind.

    Notes
    -----
    As :func:`optrand.files.write_atomically`, for what does not fit in memory twice. A process that is killed leaves at
    most a temporary file beside the target, whose name begins with a dot and which its owner alone can read: half a
    release that nobody knows of must not add to one that everybody sees.
    """
    refuse_target(path, overwrite=overwrite)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        publish(temporary, path, overwrite=overwrite)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """The permissions that the user withholds from new files; it can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
