"""Sealed lines in a SQLite file: one writer at a time, durable when a transaction ends, every change noticed."""

from __future__ import annotations

import errno
import hmac
import os
import sqlite3
import struct
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from optrand.accounting.charge import Charge
from optrand.accounting.secrets import Vault, open_private
from optrand.base.files import sync_directory
from optrand.errors import InvalidFile, InvalidInput

__all__ = ["Store"]

APPLICATION = 0x6F70746C
"""Letters ``optl`` in the header of the file, by which it is told from others."""

SCHEMA = 1
WAIT = 60.0
"""Seconds to wait for another writer."""

HEADER = 100
MAGIC = b"SQLite format 3\0"

TABLE = "CREATE TABLE charges (sequence INTEGER PRIMARY KEY, content BLOB NOT NULL, seal BLOB NOT NULL)"


class Store:
    """File of a ledger.

    Lines are numbered without gaps, and each is sealed with its number by a MAC under the secret of the vault. Releases
    that the vault knows of and the file does not show that lines were lost.

    Raises
    ------
    InvalidFile
        No ledger, one of a newer optrand, or a damaged or edited one.
    OSError
        The file cannot be read or written, or another process writes for a minute.
    """

    def __init__(self, path: Path, vault: Vault) -> None:
        self.path, self._vault = path, vault
        self._process = os.getpid()
        self._threads = threading.RLock()
        self._key = hmac.digest(vault.secret, b"lines of the ledger", "sha256")
        with vault.opening():
            if not os.path.lexists(path):
                self._create()
            _check_header(path)
        with self._faults():
            self._connection = _connect(path)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._check_whole()
        self.charges()

    def _create(self) -> None:
        """Make an empty ledger under another name, and give it its own when it is whole and on the disk."""
        if self._vault.charged():
            raise InvalidFile(
                f"{self.path} is missing, and {self._vault.folder} has keys of its releases: restore it from a backup"
            )
        temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.tmp")
        try:
            os.close(open_private(temporary))
            with self._faults(), closing(_connect(temporary)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute(f"PRAGMA user_version={SCHEMA}")
                connection.execute(TABLE)
                connection.execute("PRAGMA journal_mode=WAL")
            temporary.rename(self.path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(self.path.parent)

    def _check_whole(self) -> None:
        if self._connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            raise self._damaged()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Block that alone may write, durable as a whole when it ends, undone where it raises."""
        if os.getpid() != self._process:
            raise InvalidInput("a ledger was carried into a forked process: open it there")
        with self._threads, self._faults():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def charges(self) -> list[Charge]:
        """All lines, each verified.

        Raises
        ------
        InvalidFile
            A line was edited, moved or lost.
        """
        known = self._vault.charged()
        with self._threads, self._faults():
            rows = self._connection.execute("SELECT sequence, content, seal FROM charges ORDER BY sequence").fetchall()
        found = []
        for place, (sequence, content, seal) in enumerate(rows, start=1):
            if sequence != place:
                raise InvalidFile(f"{self.path} has lost a line: restore it from a backup")
            if type(content) is not bytes or type(seal) is not bytes:
                raise InvalidFile(f"line {place} of {self.path} is damaged: restore it from a backup")
            if not hmac.compare_digest(seal, self._seal(place, content)):
                raise InvalidFile(
                    f"line {place} of {self.path} was edited, or its secret was: restore both from a backup"
                )
            found.append(Charge.of_content(content))
        if known - {charge.release for charge in found}:
            raise InvalidFile(f"{self.path} lacks a release that has a key or a lock: restore it from a backup")
        return found

    def append(self, charge: Charge) -> None:
        """Add a line, inside a transaction."""
        (last,) = self._connection.execute("SELECT COALESCE(MAX(sequence), 0) FROM charges").fetchone()
        content = charge.content()
        values = (last + 1, content, self._seal(last + 1, content))
        self._connection.execute("INSERT INTO charges VALUES (?, ?, ?)", values)

    def replace(self, charge: Charge) -> None:
        """Replace the line of a release, inside a transaction."""
        place = next(i for i, each in enumerate(self.charges(), start=1) if each.release == charge.release)
        content = charge.content()
        values = (content, self._seal(place, content), place)
        self._connection.execute("UPDATE charges SET content = ?, seal = ? WHERE sequence = ?", values)

    def close(self) -> None:
        """Close the file."""
        if os.getpid() == self._process:
            self._connection.close()

    def _seal(self, sequence: int, content: bytes) -> bytes:
        return hmac.digest(self._key, struct.pack("<Q", sequence) + content, "sha256")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn errors of SQLite into errors of the file or of the system."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            system = {
                sqlite3.SQLITE_BUSY: (errno.EBUSY, "another process keeps the ledger locked"),
                sqlite3.SQLITE_FULL: (errno.ENOSPC, "no space left for the ledger"),
                sqlite3.SQLITE_IOERR: (errno.EIO, "the ledger cannot be read or written"),
            }
            if code in system:
                raise OSError(*system[code], str(self.path)) from None
            raise self._damaged() from None
        except UnicodeDecodeError:
            # Raised by sqlite3 while it makes an error of its own of a damaged name.
            raise self._damaged() from None

    def _damaged(self) -> InvalidFile:
        return InvalidFile(f"{self.path} is damaged, or no ledger: restore it from a backup")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _check_header(path: Path) -> None:
    """Refuse what is no ledger before SQLite touches it."""
    with os.fdopen(open_private(path, create=False), "rb") as stream:
        header = stream.read(HEADER)
    if len(header) < HEADER or not header.startswith(MAGIC):
        raise InvalidFile(f"{path} is no ledger, or was cut off: name another file, or restore it from a backup")
    (schema,), (application,) = struct.unpack(">I", header[60:64]), struct.unpack(">I", header[68:72])
    if application != APPLICATION:
        raise InvalidFile(f"{path} is the SQLite file of another program: name another file")
    if schema > SCHEMA:
        raise InvalidFile(f"{path} was written by a newer optrand (schema {schema}): update optrand")
    if schema < 1:
        raise InvalidFile(f"{path} has no schema: restore it from a backup")
