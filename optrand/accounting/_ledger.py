"""Durable account of releases: each is charged before anything is drawn, never refunded, and drawn once.

The ledger is one SQLite file in WAL mode, or tables of a PostgreSQL server. Every noisy label is a function of the key
and the record's id, so a release that broke off goes on with the same noise.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import unicodedata
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from optrand.accounting._spent import Spent, as_budget
from optrand.base._validation import check_flag
from optrand.errors import AlreadySpent, InputChanged, InvalidFile, InvalidInput, MissingExtra, OverBudget

APPLICATION = 0x6F70_746C
"""The letters "optl": application id of the file, by which other SQLite files are refused, and lock of a server."""

SCHEMES = ("postgresql://", "postgres://")

SCHEMA = """
CREATE TABLE release (
  {serial} id TEXT PRIMARY KEY, dataset TEXT NOT NULL, "column" TEXT NOT NULL,
  epsilon TEXT NOT NULL, prior_epsilon TEXT NOT NULL,
  question TEXT NOT NULL, input TEXT NOT NULL, output TEXT NOT NULL, again INTEGER NOT NULL, begun TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('charged', 'drawn', 'complete')), key {bytes}, record TEXT) {strict};
CREATE INDEX of_dataset ON release (dataset, "column", epsilon);
CREATE TABLE secret (key {bytes} NOT NULL) {strict}
"""


class State(StrEnum):
    """Progress of a release. Whatever the state, all of its epsilon is spent."""

    # Its epsilon is on the disk, and nothing has been drawn.
    CHARGED = "charged"
    # Its noisy histogram and its mechanisms are in the ledger. Labels may have been drawn.
    DRAWN = "drawn"
    # Its table is published, and its key is erased.
    COMPLETE = "complete"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One release in the ledger.

    Attributes
    ----------
    dataset, column : str
        The table and its column of labels.
    epsilon, prior_epsilon : Fraction
        The total in nats, and the part of it that is spent on the prior.
    question, input : str
        Digests of the question, and of the private input under a key of the ledger.
    output : str
        Where the noisy labels go.
    id : str
        UUID of the release, in hexadecimal.
    again : bool
        Whether the user requested another release of the same labels.
    begun : str
        Time of the charge, in UTC.
    state : State
    key : bytes or None
        Master key of the noise. None once it is erased.
    record : str or None
        Record of the release, its mechanisms included, while it is drawn.
    """

    dataset: str
    column: str
    epsilon: Fraction
    prior_epsilon: Fraction
    question: str
    input: str
    output: str
    id: str = ""
    again: bool = False
    begun: str = ""
    state: State = State.CHARGED
    key: bytes | None = field(default=None, repr=False)
    record: str | None = field(default=None, repr=False)

    @property
    def total(self) -> Spent:
        """Cost of the release."""
        return Spent(self.epsilon)

    @property
    def parts(self) -> dict[str, Spent]:
        """The total, split between the prior, if there is one, and the labels."""
        prior = {"prior": Spent(self.prior_epsilon)} if self.prior_epsilon else {}
        return {**prior, "labels": Spent(self.epsilon - self.prior_epsilon)}

    @property
    def open(self) -> bool:
        """Whether the release can go on."""
        return self.key is not None

    @property
    def status(self) -> str:
        """State in words: a release without a key that is not complete was withdrawn."""
        return self.state.value if self.open or self.state is State.COMPLETE else f"{self.state.value}, withdrawn"


Execute = Callable[..., Any]
"""Callable that runs one statement with parameters, such as ``sqlite3.Connection.execute``."""

FIELDS = tuple(Charge.__dataclass_fields__)
COLUMNS = ", ".join(f'"{name}"' for name in FIELDS)


class Ledger:
    """Account of the releases of named datasets: their costs, and the keys of those that are unfinished.

    Parameters
    ----------
    path : path or str, optional
        A file on a local disk, made if it is missing, by default :func:`default_path`. Or the URL of a
        PostgreSQL database, ``postgresql://user@host/database``, which may hold one ledger.

    Raises
    ------
    InvalidFile
        Another kind of file, a damaged one, or one that other users may read.
    InvalidInput
        The folder is missing.

    Attributes
    ----------
    name : str
        The file, or host and database without a password.

    Notes
    -----
    Each call opens the file anew, so a ledger may be shared by threads and survives a fork. The cost of a call does not
    grow with the number of releases. An older copy of the file that is restored from a backup is not noticed.

    SQLite overwrites the keys that are erased. PostgreSQL keeps old versions of rows until it vacuums, and the log of
    its writes for as long as its administrator chose: who can read either can undo noise until then.

    Examples
    --------
    >>> import optrand, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/ledger.sqlite")
    ...     release = optrand.randomize(
    ...         [0, 1] * 50, 1.0, labels=[0, 1], dataset="census", ledger=ledger
    ...     )
    ...     str(ledger.spent("census")), [entry.status for entry in ledger.entries()]
    ('epsilon 1', ['complete'])
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if isinstance(path, str) and path.startswith(SCHEMES):
            parts = urlsplit(path)
            self.name = f"{parts.hostname or 'localhost'}{parts.path}"
            self._transaction = partial(_server_transaction, path, self.name)
        elif isinstance(path, str) and "://" in path:
            # The rest may hold a password.
            raise InvalidInput(
                f"the ledger is a URL of {path.partition('://')[0]!r}, expected postgresql://USER@HOST/DATABASE, "
                "or a file"
            )
        else:
            file = Path(path) if path is not None else default_path()
            self.name = str(file)
            if path is None:
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_file(file)
            self._transaction = partial(_file_transaction, file)
        with self._transaction(create=True) as execute:
            (self._secret,) = execute("SELECT key FROM secret").fetchone()

    @property
    def digest_key(self) -> bytes:
        """Key of the digests of inputs. A plain digest would disclose a label to anyone who knows all others."""
        return hmac.digest(self._secret, b"digests of inputs", "sha256")

    def begin(
        self, charges: Sequence[Charge], *, again: bool = False, budget: Spent | float | None = None
    ) -> list[Charge]:
        """Charge releases of columns of one dataset durably, all of them or none, or go on with unfinished ones.

        Parameters
        ----------
        charges : sequence of Charge
            Without id, key and state.
        again : bool
            Release labels that were released before. Costs add up.
        budget : Spent or float, optional
            Largest total cost of all releases of the dataset.

        Returns
        -------
        list of Charge
            With their keys. An unfinished release of the same question, input and output costs nothing more.

        Raises
        ------
        AlreadySpent
            A column was released before.
        OverBudget
            Together they would cost more than the budget has left.
        InputChanged
            An unfinished release of the same question began with other labels or ids.
        """
        check_flag(again, "again")
        limit = as_budget(budget)
        with self._transaction() as execute:
            found = [_find_unfinished(execute, charge, again=again) for charge in charges]
            new = [charge for charge, old in zip(charges, found, strict=True) if old is None]
            for charge in new if not again else ():
                _check_first(execute, charge, limit)
            if limit is not None and new:
                spent, cost = _sum_costs(execute, new[0].dataset), Spent.total(charge.total for charge in new)
                if not (spent + cost).within(limit):
                    raise OverBudget(
                        f"the release costs {cost} and dataset {new[0].dataset!r} has cost {spent}, together "
                        f"{spent + cost}, over the budget of {limit}: it was not charged"
                    )
            return [
                old or _insert(execute, replace(charge, again=again))
                for charge, old in zip(charges, found, strict=True)
            ]

    def draw(self, charge: Charge, record: str) -> str:
        """Enter the record that labels are drawn with. Return it, or that of another run that entered one before."""
        with self._transaction() as execute:
            execute(
                "UPDATE release SET record = ?, state = 'drawn' WHERE id = ? AND state = 'charged' AND key IS NOT NULL",
                (record, charge.id),
            )
            row = execute("SELECT record FROM release WHERE id = ?", (charge.id,)).fetchone()
        if row is None or row[0] is None:
            raise AlreadySpent("another run has completed this release, or withdrawn it: see `optrand ledger`")
        return str(row[0])

    def complete(self, charges: Sequence[Charge], publish: Callable[[], object] | None = None) -> None:
        """Publish releases, then mark them complete and erase their keys.

        Parameters
        ----------
        charges : sequence of Charge
        publish : callable, optional
            Gives the files their final names, while no other run can complete or withdraw these releases.

        Raises
        ------
        AlreadySpent
            Another run has completed or withdrawn one of them. Nothing was published.
        """
        ids = [(charge.id,) for charge in charges]
        with self._transaction() as execute:
            if not all(_select(execute, "id = ? AND key IS NOT NULL", one) for one in ids):
                raise AlreadySpent("another run has completed this release, or withdrawn it: see `optrand ledger`")
            if publish is not None:
                publish()
            for one in ids:
                execute("UPDATE release SET state = 'complete', key = NULL, record = NULL WHERE id = ?", one)

    def withdraw(self, release: str) -> None:
        """Give up an unfinished release: its key is erased, its cost stays spent. Refuse an id of no such release."""
        with self._transaction() as execute:
            change = "UPDATE release SET key = NULL, record = NULL WHERE id = ? AND key IS NOT NULL"
            if execute(change, (check_name(release, "the release"),)).rowcount != 1:
                raise InvalidInput("the ledger has no unfinished release of that id: see `optrand ledger`")

    def find_unfinished(self, release: str) -> Charge | None:
        """Return the release of an id if it can go on, else None."""
        with self._transaction() as execute:
            return next(iter(_select(execute, "id = ? AND key IS NOT NULL", (release,))), None)

    def entries(self, dataset: str | None = None) -> tuple[Charge, ...]:
        """Return all releases, or those of one dataset, the oldest first."""
        name = None if dataset is None else check_name(dataset, "the dataset")
        with self._transaction() as execute:
            return tuple(_select(execute, "dataset = COALESCE(?, dataset)", (name,))[::-1])

    def spent(self, dataset: str, column: str | None = None) -> Spent:
        """Return the cost of all releases of a dataset, or of one column of it, by basic composition."""
        with self._transaction() as execute:
            return _sum_costs(execute, check_name(dataset, "the dataset"), column)


def default_path() -> Path:
    """Return ``optrand/ledger.sqlite`` in the user's folder of state, ``$XDG_STATE_HOME`` or ``~/.local/state``."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The XDG specification ignores relative paths.
    folder = state if state.is_absolute() else Path.home() / ".local" / "state"
    return folder / "optrand" / "ledger.sqlite"


def check_name(name: object, what: str) -> str:
    """Check a name, and return it without its case, since `Census` and `census` are one dataset."""
    if not isinstance(name, str) or not name or name != name.strip() or len(name) > 200 or not name.isprintable():
        raise InvalidInput(f"{what} is not a name: expected one line of at most 200 characters, no space at the ends")
    return unicodedata.normalize("NFC", name.casefold())


def _select(execute: Execute, condition: str, values: Sequence[object]) -> list[Charge]:
    """Return the releases that meet a condition, the newest first."""
    query = f"SELECT {COLUMNS} FROM release WHERE {condition} ORDER BY rowid DESC"  # noqa: S608
    found = []
    for row in execute(query, values).fetchall():
        fields: dict[str, Any] = dict(zip(FIELDS, row, strict=True))
        exact = {name: Fraction(fields[name]) for name in ("epsilon", "prior_epsilon")}
        found.append(Charge(**{**fields, **exact, "again": bool(fields["again"]), "state": State(fields["state"])}))
    return found


def _insert(execute: Execute, charge: Charge) -> Charge:
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    made = replace(charge, id=uuid.uuid4().hex, key=os.urandom(32), begun=begun)
    values = [getattr(made, name) for name in FIELDS]
    texts = [str(value) if isinstance(value, Fraction | State) else value for value in values]
    execute(f"INSERT INTO release ({COLUMNS}) VALUES ({', '.join('?' * len(texts))})", texts)  # noqa: S608
    return made


def _find_unfinished(execute: Execute, charge: Charge, *, again: bool) -> Charge | None:
    """Find the open release that the request continues. With `again`, only one that was itself another release."""
    same = 'key IS NOT NULL AND dataset = ? AND "column" = ? AND question = ? AND output = ? AND again >= ?'
    values = (charge.dataset, charge.column, charge.question, charge.output, int(again))
    open_ones = _select(execute, same, values)
    found = next((one for one in open_ones if one.input == charge.input), None)
    if found is None and open_ones and not again:
        raise InputChanged(
            f"an unfinished release of column {charge.column!r} of dataset {charge.dataset!r} began with other labels "
            "or ids: restore that input, or pay for another release with again=True"
        )
    return found


def _sum_costs(execute: Execute, dataset: str, column: str | None = None) -> Spent:
    rows = execute(
        'SELECT epsilon, COUNT(*) FROM release WHERE dataset = ? AND "column" = COALESCE(?, "column") GROUP BY epsilon',
        (dataset, column),
    )
    return Spent(sum((Fraction(epsilon) * count for epsilon, count in rows), Fraction()))


def _check_first(execute: Execute, charge: Charge, limit: Spent | None) -> None:
    spent = _sum_costs(execute, charge.dataset, charge.column)
    if not spent.epsilon:
        return
    allowed = limit is None or (_sum_costs(execute, charge.dataset) + charge.total).within(limit)
    message = (
        f"column {charge.column!r} of dataset {charge.dataset!r} was released before, for {spent} in total: another "
        f"release adds {charge.total}, to {spent + charge.total}, "
        f"{'and needs again=True' if allowed else f'and would exceed the budget of {limit} of the dataset'}"
    )
    if _select(execute, 'dataset = ? AND "column" = ? AND key IS NOT NULL', (charge.dataset, charge.column)):
        message += ". One of these is unfinished: the command that began it goes on with it, at no further cost"
    raise AlreadySpent(message, spent=spent)


def _check_file(path: Path) -> None:
    """Make the file, readable by its owner alone, or check that an existing one may be a ledger."""
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent} is not a folder: make it first, or keep the ledger elsewhere")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except ValueError:
        raise InvalidInput("the path of the ledger cannot name a file") from None
    except FileExistsError:
        if not path.is_file():
            raise InvalidFile(f"{path} is not a file, expected a ledger") from None
        with path.open("rb") as stream:
            if stream.read(16) not in (b"", b"SQLite format 3\0"):
                raise InvalidFile(f"{path} is not a ledger: name another file, or one that is new") from None
        mode = path.stat().st_mode & 0o777
        if os.name == "posix" and mode & 0o077:
            raise InvalidFile(
                f"{path} can be read by other users (mode {mode:o}), and it holds keys: chmod 600 it"
            ) from None


@contextmanager
def _file_transaction(path: Path, *, create: bool = False) -> Iterator[Execute]:
    """Hold a file's lock of writers, and commit or, on an error, roll back. With `create`, make missing tables."""
    try:
        # A file that was removed meanwhile is not made anew: the epsilon that it had counted is spent.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=60, isolation_level=None)) as database:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
                database.execute(f"PRAGMA {pragma}")
            database.execute("BEGIN IMMEDIATE")
            try:
                if create and database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                    if database.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]:
                        raise InvalidFile(f"{path} is the database of another program: name another file")
                    _create(database.execute, serial="", bytes="BLOB", strict="STRICT")
                    database.execute(f"PRAGMA application_id = {APPLICATION}")
                yield database.execute
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
            # The log would keep pages with erased keys. If this fails, the transaction stays committed, and the
            # next one tries again.
            with suppress(sqlite3.OperationalError):
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise OSError(f"the ledger {path} cannot be used: {error}") from error
        raise InvalidFile(f"{path} is damaged, or not a ledger: {error}") from error


@contextmanager
def _server_transaction(url: str, name: str, *, create: bool = False) -> Iterator[Execute]:
    """Do the same on a PostgreSQL server. libpq finds the password in ``~/.pgpass``.

    All transactions take one lock, so that they follow each other as those of a file do. The server writes a charge to
    its disk before it answers (``synchronous_commit``, its default). A server that cannot be reached, or is busy for a
    minute, raises OSError.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("a ledger on a server needs psycopg: pip install 'optrand[server]'") from error
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:

            def execute(query: str, values: Sequence[object] = ()) -> Any:
                plain = [int(value) if isinstance(value, bool) else value for value in values]
                return connection.execute(query.replace("?", "%s"), plain)

            execute("SET LOCAL lock_timeout = '60s'")
            execute("SELECT pg_advisory_xact_lock(?)", (APPLICATION,))
            if create and execute("SELECT to_regclass('secret')").fetchone()[0] is None:
                _create(execute, serial="rowid BIGSERIAL,", bytes="BYTEA", strict="")
            yield execute
    except psycopg.Error as error:
        # Errors other than those of the connection may quote entered values.
        reason = str(error).partition("\n")[0] if isinstance(error, psycopg.OperationalError) else ""
        if password := urlsplit(url).password:
            reason = reason.replace(password, "***").replace(unquote(password), "***")
        raise OSError(f"the ledger {name} cannot be used: {reason or type(error).__name__}") from error


def _create(execute: Execute, **words: str) -> None:
    for statement in SCHEMA.format(**words).split(";"):
        execute(statement)
    execute("INSERT INTO secret VALUES (?)", (os.urandom(32),))
