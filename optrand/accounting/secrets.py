"""Keys of releases, and the secret of a ledger, in files that only their owner can read."""

from __future__ import annotations

import errno
import fcntl
import hmac
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from optrand.base.files import sync_directory, temporary_file
from optrand.errors import InvalidFile, InvalidInput
from optrand.sampling.keyed import KEY_BYTES, checked_key

__all__ = ["Lock", "Vault", "open_private"]

SECRET = "ledger.secret"  # noqa: S105
TAG_BYTES = 32
CHARGED = b"charged\n"


class Vault:
    """Folder of the keys that a ledger's releases draw with, and of the secret that seals the ledger.

    Parameters
    ----------
    folder : Path
        Made with mode 0700 where it is missing.

    Raises
    ------
    InvalidFile
        A folder or a file that is a link, or that others could read or write, or of another size.

    Notes
    -----
    A file holds 32 bytes of the operating system, a key with a tag that ties it to its release under the secret, and
    appears whole or not at all. Destroying overwrites it and removes its name; a journaling file system, a solid state
    disk or a backup may keep a copy all the same.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vault = Vault(Path(folder) / "keys")
    ...     release = str(uuid.uuid4())
    ...     key = vault.new_key(release)
    ...     vault.key(release) == key, vault.destroy(release), vault.has_key(release)
    (True, None, False)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _private_folder(folder)
        with self.opening():
            if not (folder / SECRET).exists():
                self._write(SECRET, os.urandom(KEY_BYTES))
            self.secret = self._read(SECRET, KEY_BYTES)

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Keep other processes from making the secret or the ledger at the same time."""
        descriptor = open_private(self.folder / "opening.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def new_key(self, release: str, key: bytes | None = None) -> bytes:
        """Make the key of a release; a given one is for tests.

        Raises
        ------
        InvalidInput
            A key of another length.
        FileExistsError
            The release has a key.
        """
        made = os.urandom(KEY_BYTES) if key is None else checked_key(key)
        self._write(_name(release, "key"), made + self._tag(release, made))
        return made

    def key(self, release: str) -> bytes:
        """Key of a release.

        Raises
        ------
        InvalidFile
            It is missing, damaged, of another release, or others could read it.
        """
        content = self._read(_name(release, "key"), KEY_BYTES + TAG_BYTES)
        key, tag = content[:KEY_BYTES], content[KEY_BYTES:]
        if not hmac.compare_digest(tag, self._tag(release, key)):
            raise InvalidFile(f"the key of the release {release} is damaged or another's: restore it from a backup")
        return key

    def has_key(self, release: str) -> bool:
        """Whether a release has a key."""
        return (self.folder / _name(release, "key")).is_file()

    def destroy(self, release: str) -> None:
        """Overwrite the key of a release and remove it; nothing happens where there is none."""
        path = self.folder / _name(release, "key")
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.write(descriptor, bytes(KEY_BYTES + TAG_BYTES))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            path.unlink()
        for unused in self.folder.glob(f".{path.name}.*.tmp"):
            unused.unlink(missing_ok=True)
        sync_directory(self.folder)

    def lock(self, release: str) -> Lock | None:
        """Lock of a release, held until it is closed or the process ends; None while another holds it."""
        descriptor = open_private(self.folder / _name(release, "lock"))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return None
            raise
        return Lock(descriptor)

    def charged(self) -> set[str]:
        """Releases whose charge was durable before they drew anything."""
        marked = {path.stem for path in self.folder.glob("*.lock") if _is_release(path.stem) and path.stat().st_size}
        return marked | {path.stem for path in self.folder.glob("*.key") if _is_release(path.stem)}

    def _tag(self, release: str, key: bytes) -> bytes:
        return hmac.digest(self.secret, b"key of " + release.encode() + key, "sha256")

    def _write(self, name: str, content: bytes) -> None:
        """Make a file that appears whole, and never replaces one."""
        temporary = self.folder / f".{name}.{uuid.uuid4().hex}.tmp"
        try:
            with temporary_file(temporary) as stream:
                stream.write(content)
            target = self.folder / name
            if target.exists() or target.is_symlink():
                raise FileExistsError(errno.EEXIST, "exists", str(target))
            # Only the holder of a lock comes here, so that nobody else can have taken the name since; a hard link,
            # which needs no lock, would leave a key with two names where a process is killed.
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(self.folder)

    def _read(self, name: str, size: int) -> bytes:
        try:
            descriptor = open_private(self.folder / name, create=False)
        except FileNotFoundError:
            raise InvalidFile(f"{self.folder / name} is missing: restore it from a backup") from None
        with os.fdopen(descriptor, "rb") as stream:
            content = stream.read(size + 1)
        if len(content) != size:
            raise InvalidFile(f"{self.folder / name} is not of {size} bytes: restore it from a backup")
        return content


class Lock:
    """Lock of a running release."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def mark(self) -> None:
        """Note durably that the charge of the release was."""
        if not os.fstat(self._descriptor).st_size:
            os.write(self._descriptor, CHARGED)
            os.fsync(self._descriptor)

    def require(self) -> None:
        """Refuse to go on without the lock."""
        if self._descriptor < 0:
            raise InvalidInput("the release was closed: begin it again, which goes on where it stopped")

    def close(self) -> None:
        """Give the lock up."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        """Give a lock up that nobody can reach any more."""
        self.close()


def open_private(path: Path, *, create: bool = True) -> int:
    """Descriptor of a file that nobody but its owner can read or write.

    Raises
    ------
    InvalidFile
        A link, no regular file, or a file that others own, read or write.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
            raise InvalidFile(f"{path} is a link, a folder or a device, expected a regular file") from None
        raise
    found = os.fstat(descriptor)
    wrong = None
    if not stat.S_ISREG(found.st_mode):
        wrong = "no regular file"
    elif found.st_uid != os.geteuid():
        wrong = "owned by another user"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        wrong = f"open to others (mode {stat.S_IMODE(found.st_mode):o}): chmod 600 it, if nobody else has used it"
    elif found.st_nlink > 1:
        wrong = "known under a second name"
    if wrong:
        os.close(descriptor)
        raise InvalidFile(f"{path} is {wrong}")
    return descriptor


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise InvalidFile(f"{folder} is a link, expected a folder")
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise InvalidFile(f"{folder} holds keys and is open to others: chmod 700 it, if nobody else has used it")


def _is_release(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _name(release: str, kind: str) -> str:
    if not _is_release(release):
        raise InvalidInput("a release is named by a UUID in lower case")
    return f"{release}.{kind}"
