"""Releases of tables in files: a table of private labels in, a table of noisy ones and its record out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from optrand.accounting.ledger import Charge
from optrand.accounting.spent import Spent
from optrand.base.suggestions import suggest_parameters
from optrand.base.validation import check_flag
from optrand.errors import InvalidFile, InvalidInput
from optrand.release.batches import Account, Listener, Rows, Sink, label_column
from optrand.release.cells import MISSING, NO_LABEL, UNDECLARED
from optrand.release.parquet_tables import conform
from optrand.release.publish import Signals, Staging, check_place, digest_of
from optrand.release.question import Question
from optrand.release.record import ENDING, ReleaseRecord, TableFile, load_release
from optrand.release.run import release
from optrand.release.spark import open_frame
from optrand.release.tables import Output, open_table, plan_output

__all__ = [
    "Diagnosis",
    "FileSink",
    "check_output",
    "diagnose_table",
    "randomize_table",
    "record_path",
]


def record_path(target: str | os.PathLike[str]) -> Path:
    """Return the path of the record beside a released table.

    Examples
    --------
    >>> record_path("out/census.csv").name
    'census.csv.release.json'
    """
    path = Path(target)
    return path.with_name(path.name + ENDING)


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
        CSV or Parquet, whatever the source is; a folder of Parquet files becomes a folder. Of a frame of Spark the
        absolute path of a folder on a disk that the driver and all workers share.
    question : Question
        With `ids` for a frame of Spark: frames have no order, so row numbers do not identify records.
    dataset : str, optional
        Name under which a ledger charges the release. Without one nothing is charged.
    ledger : Ledger, path, URL or None
        By default the user's own. Or a file, or ``postgresql://user@host/database``.
    again : bool
        Release a column that was released before. Costs add up.
    budget : float or Spent, optional
        Largest total cost of all releases of the dataset.
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
        A signal; the message says whether the table was released.
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
    >>> question = Question(label="weeks", labels=range(53), epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = randomize_table(weeks_worked_path(), f"{folder}/noisy.csv", question)
    ...     record.verify_table(f"{folder}/noisy.csv")
    >>> record.rows, record.epsilon
    (20000, 1.0)
    """
    check_flag(force, "force")
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    output, listener = Path(target), listener or Listener(warn=warnings.warn)
    account = Account.open(dataset, ledger, again=again, budget=budget)
    check_place(output, path)
    with Signals() as signals, Staging(output) as staging, ExitStack() as jobs:
        replaced, done = check_output(output, question, account, force=force)
        if done is not None:
            return done
        if path is None:
            if separator is not None or decimal is not None:
                raise InvalidInput("separator and decimal are for separated text, not for a frame: leave them out")
            table = jobs.enter_context(open_frame(source, output, question, listener))
        else:
            table = open_table(path, separator=separator, decimal=decimal)
        planned = plan_output(table, question, output, keep=keep, drop=drop)
        like = table.files[0] if table.files else None
        sink = FileSink(staging, planned, output, like, signals, question.label, replace=replaced)
        (record,) = release(table, [question], sink, account, listener)
    return record


def check_output(
    output: Path, question: Question, account: Account, *, force: bool
) -> tuple[bool, ReleaseRecord | None]:
    """Decide whether files of these names may be replaced, and find the record of a release that is published already.

    A run that was stopped after it published its files, but before the ledger marked it complete, is completed.

    Raises
    ------
    InvalidInput
        A table, or the record of another release, has the name already.
    """
    path = record_path(output)
    unfinished = _find_unfinished(path, account)
    if unfinished is not None and account.ledger is not None:
        record, charge = unfinished
        if charge.question == question.digest and _is_table_of(record, output):
            account.ledger.complete([charge])
            return False, record
    if output.exists() and not force:
        raise InvalidInput(f"{output} exists: choose another name, or overwrite it with force=True")
    if path.exists() and unfinished is None and not force:
        raise InvalidInput(
            f"{path} is left over from another release: remove it, or choose another name for the output"
        )
    return force or path.exists(), None


def _find_unfinished(path: Path, account: Account) -> tuple[ReleaseRecord, Charge] | None:
    """Return the record of a release and its charge, if the ledger has it as unfinished."""
    try:
        record = load_release(path)
    except (InvalidFile, InvalidInput):
        return None
    if account.ledger is None or not isinstance(record, ReleaseRecord):
        return None
    charges = account.ledger.entries(account.dataset)
    return next(((record, one) for one in charges if one.open and one.id == record.release), None)


def _is_table_of(record: ReleaseRecord, output: Path) -> bool:
    try:
        record.verify_table(output)
    except (InvalidFile, InvalidInput):
        return False
    return True


class FileSink(Sink):
    """A table that is written to a staging folder, and published with its record."""

    def __init__(
        self,
        staging: Staging,
        planned: Output,
        target: Path,
        like: Path | None,
        signals: Signals,
        label: str,
        *,
        replace: bool,
    ) -> None:
        self.staging, self.planned, self.target, self.like = staging, planned, target, like
        self.signals, self.label, self.replace = signals, label, replace
        self.output, self.folder = str(target.absolute()), staging.folder
        self.checked = () if planned.texts is None else tuple(planned.texts.names)
        self._names = set(planned.names)
        # A name that is there twice cannot be read by it.
        self.columns = planned.names if len(self._names) == len(planned.names) else None
        self.rows = 0
        self._writer: Any = None
        self._record: ReleaseRecord | None = None

    def check(self, batch: Any, rows: Rows) -> None:  # noqa: ARG002
        """Refuse cells that the format cannot hold."""
        if self.checked:
            conform(batch.select(list(self.checked)), self.planned.texts)

    def write(self, part: int, batch: Any, noisy: Sequence[Any], rows: Rows) -> None:
        """Write a batch."""
        if self._writer is None:
            self._writer = self.planned.begin(self.staging.table)
        chosen = [i for i, name in enumerate(batch.schema.names) if name in self._names]
        columns = [noisy[0] if batch.schema.names[i] == self.label else batch.column(i) for i in chosen]
        fields = [pa.field(batch.schema.names[i], column.type) for i, column in zip(chosen, columns, strict=True)]
        released = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        if rows.kept is not None:
            released = released.filter(pa.array(rows.kept))
        self.rows += released.num_rows
        self._writer.write(part, released)

    def close(self, records: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
        """Finish the table, and return its record."""
        if self._writer is not None:
            self._writer.close()
        layout = self.planned.layout
        signs = (None, None) if layout is None else (layout.separator, layout.decimal)
        table = TableFile(self.target.name, digest_of(self.staging.table), self.rows, self.planned.names, *signs)
        self._record = replace(records[0], table=table)
        return [self._record]

    def abandon(self) -> None:
        """Close unfinished files after an error."""
        if self._writer is not None:
            self._writer.abandon()

    def publish(self) -> None:
        """Give the record its name, then the table."""
        if self._record is None:
            raise InvalidInput("there is nothing to publish yet")
        with self.signals.held():
            path = record_path(self.target)
            self.staging.publish(path, self._record.to_bytes(), replace=self.replace, like=self.like)
            self.signals.outcome, self.signals.released = f"the release was complete by then: {self.target}", True


@dataclass(frozen=True)
class Diagnosis:
    """Exact counts of private labels that a release would refuse. Not private: not to be shared.

    Attributes
    ----------
    rows, missing, not_numbers, undeclared : int
    """

    rows: int = 0
    missing: int = 0
    not_numbers: int = 0
    undeclared: int = 0

    @property
    def fine(self) -> bool:
        """Whether every label could be released."""
        return self.missing == self.not_numbers == self.undeclared == 0


def diagnose_table(
    source: str | os.PathLike[str], question: Question, *, separator: str | None = None, decimal: str | None = None
) -> Diagnosis:
    """Count the labels of a table that a release would refuse: for their owner alone, not to be shared."""
    table = open_table(source, separator=separator, decimal=decimal)
    column, counts = label_column(table, question), np.zeros(4, dtype=np.intp)
    for _, batch in table.batches([question.label]):
        counts += np.bincount(-np.minimum(column.places(batch.column(0)), 0), minlength=4)
    return Diagnosis(int(counts.sum()), *(int(counts[-code]) for code in (MISSING, NO_LABEL, UNDECLARED)))
