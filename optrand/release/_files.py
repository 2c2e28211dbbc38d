"""Releases of tables in files: from a table of private labels to a table of noisy ones and its record.

Everything about the output that depends on schema and options is checked before anything is charged. No message repeats
the content of a cell: a table without a header, or with a stray quote, may have a label anywhere.

Everything is written to a hidden folder beside the output, which is locked while a release runs. Then the record is
renamed, and the table last: nothing else is ever visible. A run that is killed leaves at most that folder, which the
next one takes over.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from optrand.accounting._spent import Spent
from optrand.base._files import check_folder, public_mode, sync_directory, take_name, temporary_file
from optrand.base._validation import check_flag, expect, suggest_parameters
from optrand.errors import Interrupted, InvalidFile, InvalidInput
from optrand.release._batches import Account, Listener, Rows, Sink, Table, check_column, label_column, release
from optrand.release._question import Question, check_names
from optrand.release._record import ReleaseRecord, TableFile, digest_of
from optrand.release._rows import as_group_texts
from optrand.release._spark import open_frame
from optrand.release._tables import (
    SUFFIXES,
    CsvTable,
    check_storable,
    check_writable,
    conform,
    find_namesakes,
    make_schema,
    open_table,
    signs_of,
    suffix_of,
    write_csv,
    write_parquet,
)


def record_path(target: str | os.PathLike[str]) -> Path:
    """Return the path of the record beside a released table."""
    path = Path(target)
    return path.with_name(f"{path.name}.release.json")


@suggest_parameters
def randomize_table(
    source: Any,
    target: str | os.PathLike[str],
    question: Question,
    *,
    dataset: str | None = None,
    ledger: Any = "default",
    again: bool = False,
    budget: Spent | float | None = None,
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    force: bool = False,
    listener: Listener | None = None,
) -> ReleaseRecord:
    """Release a table of private labels as another table, with its record ``TARGET.release.json`` beside it.

    Every other column is copied as it is: one that was computed from the labels discloses them.

    Parameters
    ----------
    source : path or pyspark.sql.DataFrame
        CSV or Parquet, by the end of its name. Or a frame of Spark, which its workers read, draw and write: it is
        computed three times, so cache it if that is slow.
    target : path
        CSV or Parquet, whatever the source is. A folder of Parquet files becomes a folder. Of a frame of Spark the
        absolute path of a folder on a disk that the driver and all workers share.
    question : Question
        With `ids` for a frame of Spark: frames have no order, so row numbers do not identify records.
    dataset, ledger, again, budget
        As in :func:`optrand.randomize`.
    keep, drop : sequence of str, optional
        The only other columns to release, or those not to release.
    separator, decimal : str, optional
        Marks of separated text in `source`, if not those of its name.
    force : bool
        Replace an output that exists.
    listener : Listener, optional

    Raises
    ------
    InvalidInput
        Something that cannot be read, released or written. Nothing was charged.
    AlreadySpent, OverBudget, InputChanged
        As from :meth:`.Ledger.begin`, or the table changed while it was read.
    NotCertified
        The gap of a mechanism is above that of the question.
    Interrupted
        A signal. The message states whether the table was released.
    OSError
        The disk is full, ... A note states the epsilon that was spent.

    Notes
    -----
    A file is read twice, in batches: memory does not grow with its rows. All of epsilon is charged before the prior
    is drawn. A run that was killed, wherever it was, is resumed by the same call, at no further cost and with the same
    noise. Nothing stands under the final names until all of it is complete and on the disk.

    Examples
    --------
    >>> import tempfile
    >>> from optrand.data import weeks_worked_path
    >>> question = Question(column="weeks", labels=range(53), epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = randomize_table(weeks_worked_path(), f"{folder}/noisy.csv", question)
    ...     record.verify_table(f"{folder}/noisy.csv")
    >>> record.rows, record.epsilon
    (20000, 1.0)
    """
    check_flag(force, "force")
    expect(question, Question, "question", "a Question")
    expect(listener, (Listener, type(None)), "listener", "a Listener")
    path = _check_path(source, "source") if isinstance(source, str | os.PathLike) else None
    output, listener = _check_path(target, "target"), listener or Listener(warn=warnings.warn)
    account = Account.open(dataset, ledger, again=again, budget=budget)
    check_place(output, path)
    with Signals() as signals, staging_folder(output) as staging, ExitStack() as jobs:
        replaced, done = check_output(output, question, account, force=force)
        if done is not None:
            return done
        if path is None:
            if separator is not None or decimal is not None:
                raise InvalidInput("separator and decimal are for separated text, not for a frame: leave them out")
            table = jobs.enter_context(open_frame(source, output, question, listener))
        else:
            table = open_table(path, separator=separator, decimal=decimal)
        sink = FileSink(table, question, output, staging, signals, keep=keep, drop=drop, replace=replaced)
        for name in question.groups:
            if name in table.schema.names and name not in sink.names:
                listener.warn(
                    f"{output.name} will have no column {name!r}: nothing can be estimated from a release by groups "
                    "without them"
                )
        (record,) = release(table, [question], sink, account, listener)
    return record


def _check_path(given: object, what: str) -> Path:
    try:
        path = Path(given)  # type: ignore[arg-type]
        os.fsencode(path)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} is of type {type(given).__name__}, expected a path that can name a file") from None
    return path


def check_output(
    output: Path, question: Question, account: Account, *, force: bool
) -> tuple[bool, ReleaseRecord | None]:
    """Check that files of these names may be replaced, and find the record of a release that is published already.

    A run that was stopped after it published its files, but before the ledger marked it complete, is completed. A
    table, or the record of another release, that has the name already is refused.
    """
    path, unfinished = record_path(output), None
    # The ledger marks a release complete after it is published, so a run may have been stopped between the two.
    if account.ledger is not None and path.is_file():
        with suppress(InvalidFile, InvalidInput):
            record = ReleaseRecord.from_bytes(path.read_bytes())
            charge = account.ledger.find_unfinished(record.release)
            unfinished = charge if charge is not None and charge.dataset == account.dataset else None
            if unfinished is not None and unfinished.question == question.digest and record.is_of(output):
                account.ledger.complete([unfinished])
                return False, record
    if output.exists() and not force:
        raise InvalidInput(f"{output} exists: choose another name, or overwrite it with force=True")
    if path.exists() and unfinished is None and not force:
        raise InvalidInput(
            f"{path} is left over from another release: remove it, or choose another name for the output"
        )
    return force or path.exists(), None


class FileSink(Sink):
    """Sink that writes a table to a staging folder, and publishes it with its record.

    The name of the target decides the format. A folder of Parquet files becomes one with the same files.
    """

    folder: Path

    def __init__(
        self,
        table: Table,
        question: Question,
        target: Path,
        staging: Path,
        signals: Signals,
        *,
        keep: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        replace: bool = False,
    ) -> None:
        self.target, self.folder, self.staged = target, staging, staging / "table"
        self.signals, self.replace, self.column = signals, replace, question.column
        self.output = str(target.absolute())
        self.names = _select_names(table, self.column, keep, drop)
        # Columns with one name cannot be read by that name.
        self.columns = self.names if len(set(self.names)) == len(self.names) else None
        # The permissions of the table do not exceed those of the source.
        self._like = table.files[0] if table.files else None
        self._signs: tuple[str, ...] = ()
        self._texts: Any = None
        self._whole = False
        self._groups: tuple[str, ...] = ()
        self._stack = ExitStack()
        self._writers: list[Callable[[], Any]] = []
        self._part = -1
        self._write: Callable[[Any], None]
        self._record: ReleaseRecord
        if table.path is None:
            # On Spark the workers write.
            check_storable(pa.schema([table.schema.field(name) for name in self.names]))
            return
        same = () if isinstance(table, CsvTable) else find_namesakes(table.schema, self.column)
        if copies := [name for name in same if name in self.names]:
            raise InvalidInput(
                f"column {copies[0]!r} of {table.path.name} is an index of pandas that is named {self.column!r}, like "
                "the labels: drop it, or save the frame after reset_index(drop=True)"
            )
        folder = table.path.is_dir() and not target.name.lower().endswith(SUFFIXES[:-1])
        if folder or suffix_of(target) == ".parquet":
            self._plan_parquet(table, table.path, question, folder=folder)
        else:
            self._plan_csv(table, table.path)
            # Names are written as they are declared, and groups as the record names them: integers beside missing
            # cells are floats in a column of pandas.
            self._whole = question.nominal and pa.types.is_floating(label_column(table, question).released_kind)
            kinds = {name: table.schema.field(name).type for name in question.groups if name in self.names}
            self._groups = tuple(name for name, kind in kinds.items() if pa.types.is_floating(kind))

    def _plan_parquet(self, table: Table, source: Path, question: Question, *, folder: bool) -> None:
        if self.columns is None:
            raise InvalidInput(f"{source.name} has two columns of one name: rename them, or write CSV")
        if len(table.files) > 1 and not folder:
            raise InvalidInput(
                f"{source.name} is a folder of files: name a folder, or a CSV file, for the released table"
            )
        kind = label_column(table, question).released_kind
        fields = [table.schema.field(name) for name in self.names]
        if isinstance(table, CsvTable):
            fields = [pa.field(name, pa.string()) for name in self.names]
            kind = pa.string() if pa.types.is_binary(kind) else kind
            self._texts = pa.schema([field for field in fields if field.name != self.column])
            self.checked = tuple(self._texts.names)
        schema = make_schema(pa.schema(fields, table.schema.metadata), self.column, kind)
        check_storable(schema)
        paths = [self.staged / file.relative_to(source) for file in table.files] if folder else [self.staged]
        self._writers = [partial(write_parquet, schema, path, distinct=question.ids) for path in paths]

    def _plan_csv(self, table: Table, source: Path) -> None:
        if any("=" in part for part in table.folders):
            raise InvalidInput(f"{source.name} has columns in the names of its folders: release it as a folder")
        header = [name.encode() for name in self.names]
        signs = signs_of(self.target)
        if isinstance(table, CsvTable):
            header = [raw for raw, name in zip(table.header, table.schema.names, strict=True) if name in self.names]
            if suffix_of(self.target)[:4] == suffix_of(source)[:4]:
                signs = (table.separator, table.decimal)
        if signs is None:
            raise InvalidInput(f"{self.target} is a folder: name a file for the released table")
        for name in self.names:
            if name != self.column:
                check_writable(table.schema.field(table.schema.names.index(name)).type, name)
        self._signs = signs
        packed = suffix_of(self.target).endswith(".gz")
        # All files of a folder go into one.
        self._writers = [partial(write_csv, self.staged, header, *signs, compress=packed)]

    def check(self, batch: Any, rows: Rows) -> None:  # noqa: ARG002
        if self.checked:
            conform(batch.select(list(self.checked)), self._texts)

    def rehearse(self, reader: Any) -> None:
        """Do nothing, since the schema was checked."""

    def open_output(self) -> AbstractContextManager[Any]:
        return self._stack

    def _advance(self) -> None:
        self._part += 1
        self._stack.close()
        self._write = self._stack.enter_context(self._writers[self._part]())

    def write(self, part: int, batch: Any, noisy: Sequence[Any]) -> None:
        while self._part < min(part, len(self._writers) - 1):
            self._advance()
        names = set(self.names)
        chosen = [(i, name) for i, name in enumerate(batch.schema.names) if name in names]
        written = {self.column: noisy[0].cast(pa.int64()) if self._whole else noisy[0]}
        for name in self._groups:
            written[name] = as_group_texts(batch.column(name), name)
        columns = [written[name] if name in written else batch.column(i) for i, name in chosen]
        self._write(pa.RecordBatch.from_arrays(columns, names=[name for _, name in chosen]))

    def close(self, records: Sequence[ReleaseRecord], rows: int) -> list[ReleaseRecord]:
        while self._part < len(self._writers) - 1:
            # Files without rows.
            self._advance()
        self._stack.close()
        table = TableFile(self.target.name, digest_of(self.staged), rows, self.names, *self._signs)
        self._record = replace(records[0], table=table)
        return [self._record]

    def publish(self) -> None:
        with self.signals.hold():
            publish(self.folder, self._record.to_bytes(), self.target, replace=self.replace, like=self._like)
            self.signals.outcome, self.signals.released = f"the release was complete by then: {self.target}", True


def _select_names(table: Table, column: str, keep: Sequence[str] | None, drop: Sequence[str]) -> tuple[str, ...]:
    """Select the columns of a released table, in their order."""
    given = check_names(drop, "drop") if keep is None else check_names(keep, "keep")
    if keep is not None and len(drop):
        raise InvalidInput("columns are either kept or dropped by name: pass keep or drop, not both")
    if column in given:
        raise InvalidInput(f"columns to keep or drop are distinct, and {column!r} is not among them")
    if set(given) & set(table.partitions):
        raise InvalidInput("a column in the names of folders stays there: neither keep nor drop it")
    for name in given:
        check_column(table, name)
    return tuple(name for name in table.schema.names if name == column or (name in given) == (keep is not None))


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


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Lock and empty the hidden folder in which one release of an output is prepared, and remove it at the end."""
    folder = target.with_name(f".{target.name}.release")
    while (lock := _lock(folder, target)) is None:
        pass
    try:
        for left in folder.iterdir():
            if left.name != "lock":
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield folder
    finally:
        # Remove the folder before unlocking, so that no other run locks it in between. Windows cannot remove open
        # files, so there it is removed after.
        if os.name == "posix":
            shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path, target: Path) -> sqlite3.Connection | None:
    """Lock the folder by a lock of SQLite, which ends with the process. Return None if it was removed meanwhile."""
    if folder.is_symlink():
        raise InvalidInput(f"{folder} is a symbolic link: remove it")
    folder.mkdir(mode=0o700, exist_ok=True)
    path, lock = folder / "lock", None
    try:
        path.touch(mode=0o600)
        before = path.stat().st_ino
        lock = sqlite3.connect(path, timeout=0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        # If another run has removed the folder and made a new one, this lock guards nothing.
        if path.stat().st_ino == before:
            return lock
    except sqlite3.OperationalError as error:
        if lock is not None:
            lock.close()
        if "locked" in str(error):
            raise InvalidInput(
                f"another process prepares a release of {target}: wait for it, or end it and try again"
            ) from None
        # Another run removed the folder, or the disk is full.
        if path.exists():
            raise OSError(f"{folder} cannot be locked: {error}") from None
    except FileNotFoundError:
        pass
    if lock is not None:
        lock.close()
    return None


def publish(folder: Path, record: bytes, target: Path, *, replace: bool, like: Path | None) -> None:
    """Give a record its name, then the table, whose permissions do not exceed those of the file `like`."""
    staged, table = folder / "record", folder / "table"
    with temporary_file(staged) as stream:
        stream.write(record)
    # Flush to the disk first: a crash leaves either nothing under a final name, or whole files.
    staged.chmod(public_mode())
    _set_permissions(table, public_mode(like))
    sync_directory(folder)
    # The record first: a released table without its record looks like a private one.
    for new, name in ((staged, record_path(target)), (table, target)):
        try:
            if not replace:
                take_name(new, name)
            else:
                if name.is_dir() or (name.exists() and new.is_dir()):
                    name.replace(folder / f"old.{name.name}")
                new.replace(name)
        except FileExistsError:
            raise InvalidInput(f"{name} exists: choose another name, or overwrite it with force=True") from None
        sync_directory(folder.parent)


def _set_permissions(path: Path, mode: int) -> None:
    """Set the permissions of a file, or of a folder and all in it."""
    if not path.is_dir():
        path.chmod(mode)
        return
    for below in (*path.rglob("*"), path):
        if below.is_dir():
            sync_directory(below)
        below.chmod(mode | (mode & 0o444) >> 2 if below.is_dir() else mode)


class Signals:
    """Context in which SIGINT, SIGTERM or SIGHUP raises :class:`~optrand.errors.Interrupted`, once. Later ones wait.

    Outside the main thread, which alone receives signals, it changes nothing. A signal that was ignored before
    stays ignored. The message states the `outcome`: whether the release is complete, or which parts remain.
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

    def _receive(self, number: int, _: FrameType | None = None) -> None:
        if self._waiting:
            self._pending = number
            return
        self._waiting = True
        raise Interrupted(f"stopped by {signal.Signals(number).name}: {self.outcome}", released=self.released)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Defer signals to the end of the block. One that came meanwhile is raised then, unless an error ends it."""
        self._waiting = True
        yield
        self._waiting = False
        if self._pending is not None:
            self._receive(self._pending)
