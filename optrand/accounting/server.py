"""Transactions of a ledger on a PostgreSQL server, which a team shares.

All transactions of a database take one lock, so that they follow each other as those of a file do. The server writes a
charge to its disk before it answers (``synchronous_commit``, its default).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from optrand.errors import MissingExtra

__all__ = ["SCHEMES", "Server"]

SCHEMES = ("postgresql://", "postgres://")
LOCK = 0x6F70_7472
"""Number of the lock, the letters "optr"."""


class Server:
    """A database by its URL, ``postgresql://user@host/database``; libpq finds the password in ``~/.pgpass``.

    Raises
    ------
    MissingExtra
        psycopg is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra("a ledger on a server needs psycopg: pip install 'optrand[server]'") from error
        self._psycopg, self._url = psycopg, url
        parts = urlsplit(url)
        self.name = f"{parts.hostname or 'localhost'}{parts.path}"

    @contextmanager
    def transaction(self) -> Iterator[_Database]:
        """Yield a connection that holds the lock; commit at the end, or roll back on an error.

        Raises
        ------
        OSError
            The server cannot be reached, or is busy for a minute.
        """
        try:
            with self._psycopg.connect(self._url, connect_timeout=10) as connection:
                connection.execute("SET LOCAL lock_timeout = '60s'")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                yield _Database(connection)
        except self._psycopg.Error as error:
            raise OSError(f"the ledger {self.name} cannot be used ({type(error).__name__})") from error


class _Database:
    """A connection that takes the parameters of SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[object] = ()) -> Any:
        """Run one statement."""
        plain = [int(value) if isinstance(value, bool) else value for value in values]
        return self._connection.execute(query.replace("?", "%s"), plain)
