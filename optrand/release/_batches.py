"""One release of a table, from beginning to end: read and check everything public, charge, plan, draw, publish.

A table is read twice as Arrow batches, which are checked and counted, then drawn and handed to a sink.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.accounting._ledger import Charge, Ledger, check_name
from optrand.accounting._spent import Spent, as_budget
from optrand.base._arithmetic import decimal_value
from optrand.base._suggestions import nearest_name
from optrand.base._validation import check_flag
from optrand.errors import InputChanged, InvalidInput, SpentNote
from optrand.release._cells import LabelColumn, Places, as_arrow, refuse_labels
from optrand.release._plan import draw_histograms, find_mechanisms, rehearse
from optrand.release._question import Question
from optrand.release._record import ReleaseRecord
from optrand.release._rows import Groups, Ids, Indices, UniqueIds, column_ids
from optrand.sampling._entropy import KeyedEntropy, encrypt_blocks, subkey

Sums = NDArray[np.uint64]
"""Shape ``(..., 3)``: a number of rows, and the sums of both halves of their hashes, modulo 2**64."""


@dataclass(frozen=True)
class Listener:
    """Callbacks of a release, for the name of each stage, the number of rows that a pass has read, and warnings.

    Warnings are for the owner of the labels alone: of a table that looks damaged, and of estimates that the release
    will not admit. They come before anything is charged, unless they depend on the private prior.
    """

    stage: Callable[[str], object] = lambda _: None
    rows: Callable[[int], object] = lambda _: None
    warn: Callable[[str], object] = lambda _: None


@dataclass(frozen=True)
class Account:
    """Ledger to charge for a dataset, if there is one, and the secret key of digests and of the hash of ids."""

    ledger: Ledger | None
    dataset: str | None
    again: bool = False
    budget: Spent | None = None
    secret: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    @classmethod
    def open(
        cls, dataset: str | None, ledger: Any, *, again: bool = False, budget: Spent | float | None = None
    ) -> Account:
        """Open the ledger, by default the user's own, if a dataset is named."""
        check_flag(again, "again")
        if ledger is not None and not isinstance(ledger, Ledger | str | os.PathLike):
            raise InvalidInput(f"the ledger is of type {type(ledger).__name__}, expected a Ledger, a path or None")
        if dataset is None and ledger not in (None, "default"):
            raise InvalidInput("a ledger charges named datasets: name the one that the labels belong to, dataset=...")
        if dataset is None or ledger is None:
            if again or budget is not None:
                raise InvalidInput("again and budget need a ledger: name a dataset, or leave them out")
            return cls(None, None if dataset is None else check_name(dataset, "the dataset"))
        limit = as_budget(budget)
        name = check_name(dataset, "the dataset")
        opened = ledger if isinstance(ledger, Ledger) else Ledger(None if ledger == "default" else ledger)
        return cls(opened, name, again, limit, opened.digest_key)

    def describe(self, charges: Sequence[Charge], *, sure: bool = True) -> SpentNote | None:
        """Return a note on the epsilon that an interrupted release has spent. With `sure` it was certainly charged."""
        if self.ledger is None:
            priors = sum((charge.prior_epsilon for charge in charges), Fraction(0))
            return SpentNote(f"a prior was drawn for {Spent(priors)}, in no ledger") if priors else None
        total = Spent.total(charge.total for charge in charges)
        return SpentNote(
            f"{total} {'is' if sure else 'may be'} charged to dataset {self.dataset!r}, once. Once the cause is gone, "
            "the same command goes on from there with the same noise, and does not pay for it again"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a batch: places of labels and keyed sums for each question, ids, groups, and a mask of released rows.

    Places of rows that are left out are negative. `kept` is None if all rows are released. Private.
    """

    places: tuple[Places, ...]
    ids: Ids
    codes: Indices
    sums: Sums
    kept: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        return len(self.ids) if self.kept is None else int(self.kept.sum())

    def counts(self, number: int, groups: int, k: int) -> NDArray[np.intp]:
        """Return how often each declared label occurs in each group, shape ``(groups, k)``."""
        places = self.places[number]
        present = slice(None) if places.min(initial=0) >= 0 else places >= 0
        cells = places[present] if groups == 1 else self.codes[present] * k + places[present]
        found: NDArray[np.intp] = np.bincount(cells, minlength=groups * k).reshape(groups, k)
        return found


def sum_rows(key: bytes, ids: Ids, codes: NDArray[Any] | None = None) -> Sums:
    """Count rows, and sum keyed hashes of their ids, with the codes of their labels if given.

    A multiset hash: sums over batches add up, in any order. An id is hashed by AES-256, a pseudorandom permutation, and
    a row by its CBC-MAC of two blocks, the id and the code, under another key. If tables differ and ids occur once in
    each, the difference of sums contains a hash with factor 1 or -1, which is uniform for whoever does not have the
    key.
    """
    own = hmac.digest(key, b"ids" if codes is None else b"rows", "sha256")
    hashes = encrypt_blocks(own, ids)
    if codes is not None:
        hashes[:, 0] ^= codes.astype(np.int64).view(np.uint64)
        hashes = encrypt_blocks(own, hashes)
    # Each column by itself: a sum over the rows of a narrow array takes twenty times as long.
    return np.array([len(ids), hashes[:, 0].sum(), hashes[:, 1].sum()], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Reader:
    """Reader of batches with a column for each question, which also draws once it has their records and keys of labels.

    All questions have the same ids and groups. Row numbers are the ids if there are no columns of ids. A pickle of it
    holds the keys.
    """

    columns: tuple[LabelColumn, ...]
    groups: Groups
    secret: bytes = field(repr=False)
    records: tuple[ReleaseRecord, ...] = ()
    keys: tuple[tuple[bytes, ...], ...] = field(default=(), repr=False)

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(column.question for column in self.columns)

    @property
    def source_columns(self) -> tuple[str, ...]:
        labels = (question.column for question in self.questions)
        return tuple(dict.fromkeys((*labels, *self.groups.columns, *self.id_columns)))

    @property
    def id_columns(self) -> tuple[str, ...]:
        return self.questions[0].ids

    def read(self, batch: Any, first_row: int = 0) -> Rows:
        """Read the rows of a batch, and refuse labels that cannot be released."""
        places = []
        for column in self.columns:
            found = column.places(batch.column(column.question.column))
            refuse_labels(found, column.question)
            places.append(found)
        if self.id_columns:
            ids = column_ids([batch.column(name) for name in self.id_columns], self.id_columns, key=self.secret)
        else:
            ids = np.zeros((batch.num_rows, 2), dtype=np.uint64)
            ids[:, 0] = np.arange(first_row, first_row + batch.num_rows)
        codes = self.groups.codes(batch)
        # The place of a missing label is -1.
        sums = [
            sum_rows(self.secret, ids, codes * (question.k + 1) + found if self.groups.columns else found)
            for found, question in zip(places, self.questions, strict=True)
        ]
        dropping = [p >= 0 for p, q in zip(places, self.questions, strict=True) if q.nulls == "drop"]
        kept = np.logical_and.reduce(dropping) if dropping else np.array(True)
        if kept.all():
            return Rows(tuple(places), ids, codes, np.array(sums))
        return Rows(tuple(np.where(kept, found, np.int32(-1)) for found in places), ids, codes, np.array(sums), kept)

    def draw(self, batch: Any, rows: Rows) -> tuple[Any, list[Any]]:
        """Return the rows of a batch that are released, and their noisy labels, an Arrow array for each question."""
        noisy = []
        for column, record, keys, places in zip(self.columns, self.records, self.keys, rows.places, strict=True):
            noisy.append(column.to_arrow(record.draw(keys, places, rows.ids, rows.codes), places < 0))
        if rows.kept is None:
            return batch, noisy
        kept = as_arrow(rows.kept)
        return batch.filter(kept), [each.filter(kept) for each in noisy]


class Sink:
    """Noisy labels in memory, put by a function into the object of the private ones. Subclasses write them elsewhere.

    A retry is recognised by the `output`. A sink may have columns whose cells are `checked` in the first pass, and
    `columns` that the second pass reads beside those of the reader (None: all). Temporary files are put into its folder
    (None: the system's).
    """

    output: str = "in memory"
    checked: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = ()
    folder: Path | None = None

    def __init__(self, put: Callable[[Sequence[Any], NDArray[np.bool_] | None], Any]) -> None:
        self._put = put
        self._kept: list[NDArray[np.bool_]] = []
        self._noisy: list[Sequence[Any]] = []
        self.table: Any = None

    def check(self, batch: Any, rows: Rows) -> None:
        """Check a batch of the first pass, with the columns in `checked`."""
        self._kept.append(np.ones(batch.num_rows, dtype=bool) if rows.kept is None else rows.kept)

    def rehearse(self, reader: Reader) -> None:
        """Write labels that depend on no private one, so that an error comes before anything is charged."""
        kept = np.concatenate(self._kept)
        rows = int(kept.sum())
        most = max(question.k for question in reader.questions)
        gaps = any(question.nulls in ("pass", "class") for question in reader.questions)
        # Every label once, and a missing one if there may be any.
        for start in range(0, most + gaps, rows):
            turn = np.arange(start, start + rows)
            missing = (turn == most) & gaps
            cells = [c.to_arrow(c.question.values[turn % c.question.k], missing) for c in reader.columns]
            self._put(cells, None if kept.all() else kept)

    def open_output(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def write(self, part: int, batch: Any, noisy: Sequence[Any]) -> None:  # noqa: ARG002
        """Write the released rows of a batch of the second pass, with noisy labels."""
        self._noisy.append(noisy)

    def close(self, records: Sequence[ReleaseRecord], rows: int) -> Sequence[ReleaseRecord]:  # noqa: ARG002
        """Finish the table, and return the records of the release, which may describe it."""
        kept = np.concatenate(self._kept)
        columns = [pa.chunked_array(list(parts)).combine_chunks() for parts in zip(*self._noisy, strict=True)]
        self.table = self._put(columns, None if kept.all() else kept)
        return records

    def publish(self) -> None:
        """Give the table its final name."""


class Table:
    """A private table that can be read as often as needed, in files or, without a path, in memory.

    Text has a decimal point, and is `cut` if its last line lacked a line end. Partitions are columns in the
    names of folders (``state=CA/``) alone.
    """

    path: Path | None = None
    files: tuple[Path, ...] = ()
    schema: Any
    decimal: str | None = None
    partitions: tuple[str, ...] = ()
    cut: bool = False

    @property
    def folders(self) -> list[str]:
        # The folders between the table's own and its files.
        above = 0 if self.path is None else len(self.path.parts)
        return [part for file in self.files for part in file.parts[above:-1]]

    def __init__(self, data: Any) -> None:
        self._data, self.schema = data, data.schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the number of a file and a record batch of its next rows, with some columns, by default all."""
        chosen = self._data if columns is None else self._data.select(list(columns))
        for batch in chosen.to_batches(max_chunksize=1 << 20):
            yield 0, batch

    def scan(self, reader: Reader, sink: Sink, listener: Listener) -> tuple[list[NDArray[np.intp]], Sums, int]:
        """Make the first pass: count labels, check ids, sum rows.

        Return the counts ``(groups, k)`` of labels and keyed sums over rows, for each question, and the number of
        released rows. Private, except the numbers of rows.
        """
        counts = [np.zeros((len(reader.groups.names), question.k), dtype=np.intp) for question in reader.questions]
        sums, released = np.zeros((len(counts), 3), dtype=np.uint64), 0
        columns = tuple(dict.fromkeys((*reader.source_columns, *sink.checked)))
        with UniqueIds(sink.folder) if reader.id_columns else nullcontext() as unique:
            for _, batch in self.batches(columns):
                rows = reader.read(batch, int(sums[0, 0]))
                sink.check(batch, rows)
                for number, found in enumerate(counts):
                    found += rows.counts(number, *found.shape)
                sums += rows.sums
                released += rows.size
                if unique is not None:
                    unique.add(rows.ids)
                listener.rows(int(sums[0, 0]))
            if unique is not None:
                unique.check()
        return counts, sums, released

    def draw(self, reader: Reader, sink: Sink, sums: Sums, listener: Listener) -> None:
        """Make the second pass: read again, draw and write. The sums are those of the first pass."""
        again = np.zeros_like(sums)
        columns = None if sink.columns is None else tuple(dict.fromkeys((*sink.columns, *reader.source_columns)))
        with sink.open_output():
            for part, batch in self.batches(columns):
                rows = reader.read(batch, int(again[0, 0]))
                again += rows.sums
                sink.write(part, *reader.draw(batch, rows))
                listener.rows(int(again[0, 0]))
        if not np.array_equal(again, sums):
            raise InputChanged(
                "the table was changed while it was read: nothing was released. Start again once nobody writes to it"
            )


def check_column(table: Table, name: str, *, public: bool = False) -> None:
    """Refuse a name that no column has, or more than one. A `public` column may be in the names of folders."""
    names = table.schema.names
    if names.count(name) == 1 or (public and name in table.partitions):
        return
    subject = "the table" if table.path is None else table.path.name
    if any(part.startswith(f"{name}=") for part in table.folders):
        raise InvalidInput(
            f"{subject} has folders named by {name!r}, whose names disclose it: release one without them"
        )
    if name in names:
        raise InvalidInput(f"{subject} has {names.count(name)} columns named {name!r}, expected one: rename the others")
    header = "header" if table.decimal is not None else "schema"
    count = "1 column" if len(names) == 1 else f"{len(names)} columns"
    # The message names only a near match: a first line that is not a header may hold labels.
    separators = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    line = names[0] if table.decimal is not None and len(names) == 1 else ""
    held = [words for sign, words in separators.items() if sign in line]
    hint = ""
    if held:
        hint = f". That line has no separator but holds {held[0]}: name the separator, separator=..."
    elif (near := nearest_name(name, names)) is not None:
        hint = f" (did you mean {near!r}?)"
    raise InvalidInput(f"{subject} has no column {name!r}: its {header} names {count}{hint}")


def label_column(table: Table, question: Question) -> LabelColumn:
    check_column(table, question.column)
    return LabelColumn(question, table.schema.field(question.column).type, table.decimal)


def release(
    table: Table, questions: Sequence[Question], sink: Sink, account: Account, listener: Listener
) -> Sequence[ReleaseRecord]:
    """Release columns of a table with the same ids and groups, each charged for its epsilon before anything is drawn.

    Errors are those of :func:`optrand.randomize`.
    """
    listener.stage("reading the table")
    # The first pass. A refusal costs nothing before the charge, so everything public is checked first.
    reader = make_reader(table, questions, account)
    counts, sums, released = table.scan(reader, sink, listener)
    if not all(found.any() for found in counts):
        raise InvalidInput("there are no rows with a label: there is nothing to randomize")
    if table.cut and table.path is not None:
        listener.warn(
            f"the last line of {table.path.name} has no end: if a copy of the table broke off there, its label may be "
            "cut, such as 44 to 4"
        )
    sink.rehearse(reader)
    # In a loop, since a comprehension is a frame of its own before Python 3.12, and warnings count frames.
    listeners = []
    for question, found in zip(questions, counts, strict=True):
        listeners.append(_rehearse(question, int(found.sum()), listener))
    charges = begin_release(reader, counts, sums, sink.output, account)
    # From here on epsilon is spent, whatever happens: errors state it, and the same call resumes.
    try:
        planned = []
        for question, found, charge, quiet in zip(questions, counts, charges, listeners, strict=True):
            planned.append(make_record(question, reader.groups, found, charge, account, quiet))
        listener.stage("drawing labels")
        # The second pass: noise is a function of keys and ids, so rows and batches may come in any order.
        keys = tuple(one.label_keys(charge.key or b"") for one, charge in zip(planned, charges, strict=True))
        table.draw(replace(reader, records=tuple(planned), keys=keys), sink, sums, listener)
        records = sink.close(planned, released)
        listener.stage("publishing")
        if account.ledger is None:
            sink.publish()
        else:
            # Publish inside the ledger's transaction, so that only one of two concurrent runs does.
            account.ledger.complete(charges, sink.publish)
    except BaseException as error:
        if not getattr(error, "released", False) and (note := account.describe(charges)):
            error.add_note(note)
        raise
    return records


def make_reader(table: Table, questions: Sequence[Question], account: Account) -> Reader:
    """Check the columns of a table against the questions, and find its groups."""
    columns = tuple(label_column(table, question) for question in questions)
    by, ids = questions[0].groups, questions[0].ids
    for public in (*by, *ids):
        check_column(table, public, public=True)
    groups = Groups.among(by, (batch for _, batch in table.batches(by))) if by else Groups()
    return Reader(columns, groups, account.secret)


def _rehearse(question: Question, rows: int, listener: Listener) -> Listener:
    """Solve the problem for a public prior, so that a failure costs nothing, and warn of missing estimates.

    A caller may turn warnings into errors. Return a listener that does not repeat them.
    """
    if not (obstacle := rehearse(question, rows)):
        return listener
    prior = " under a uniform prior" if question.buys_prior else ""
    listener.warn(f"no histogram, no loss of a label{prior}: {obstacle}")
    return replace(listener, warn=lambda _: None)


def begin_release(
    reader: Reader, counts: Sequence[NDArray[np.intp]], sums: Sums, output: str, account: Account
) -> list[Charge]:
    """Charge all questions, in the ledger if there is one."""
    charges = []
    # Groups come from public columns, which the sums over rows do not cover.
    names = json.dumps(reader.groups.names).encode()
    for question, found, total in zip(reader.questions, counts, sums, strict=True):
        split = question.split(int(found.sum()))
        charges.append(
            Charge(
                dataset=account.dataset or "",
                column=question.column,
                # The exact decimal of the question. Rounding leaves the labels slightly less than the rest.
                epsilon=decimal_value(question.epsilon if split.prior else split.labels),
                prior_epsilon=decimal_value(split.prior) if split.prior else Fraction(0),
                question=question.digest,
                input=hmac.digest(account.secret, total.astype("<u8").tobytes() + names, "sha256").hex(),
                output=output,
            )
        )
    if account.ledger is None:
        return [replace(charge, id=os.urandom(16).hex(), key=os.urandom(32)) for charge in charges]
    try:
        return account.ledger.begin(charges, again=account.again, budget=account.budget)
    except OSError as error:
        # The disk may have failed after the charge was written.
        if note := account.describe(charges, sure=False):
            error.add_note(note)
        raise


def make_record(
    question: Question, groups: Groups, counts: NDArray[Any], charge: Charge, account: Account, listener: Listener
) -> ReleaseRecord:
    """Estimate the prior and find the mechanisms, or read them from the ledger if this release has done so before."""
    if charge.record is not None:
        return ReleaseRecord.from_bytes(charge.record.encode())
    listener.stage("estimating the prior")
    names = {"release": charge.id, "dataset": account.dataset or "", "column": question.column}
    source = KeyedEntropy(subkey(charge.key or b"", **names, purpose="prior"), private=True)
    # A function of the key, the same for every retry: nobody can draw until a prior suits them.
    noisy = draw_histograms(question, counts, source)
    planned = (question, groups, counts.sum(axis=1), noisy)
    charged = None if account.ledger is None else account.dataset
    fits, relative_loss = find_mechanisms(*planned, listener.stage)
    listener.stage("proving")
    made = ReleaseRecord.of(*planned, fits, relative_loss, release=charge.id, dataset=charged)
    if not made.estimates.histogram:
        listener.warn(made.estimates.words)
    if account.ledger is None:
        return made
    # Another run of this release may have drawn first.
    text = made.to_bytes().decode()
    entered = account.ledger.draw(charge, text)
    return made if entered == text else ReleaseRecord.from_bytes(entered.encode())
