"""One release from beginning to end: read and check everything public, charge, plan, draw, publish."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.accounting.ledger import Charge, Ledger, check_name
from optrand.accounting.spent import Spent
from optrand.base.arithmetic import decimal_value
from optrand.base.validation import flag
from optrand.errors import InvalidInput, SpentNote
from optrand.release.cells import LabelColumn, Places, refuse_labels
from optrand.release.groups import ONE_GROUP, Groups, Indices
from optrand.release.ids import Ids, RowSums, column_ids, row_ids
from optrand.release.plan import Drawing, Plan, draw_histograms, rehearse
from optrand.release.question import Question
from optrand.release.record import ReleaseRecord
from optrand.release.sources import Scan, Table
from optrand.release.tables import find_column
from optrand.sampling.keyed import KeyedEntropy, subkey

__all__ = [
    "Account",
    "Listener",
    "Reader",
    "Rows",
    "Sink",
    "begin_release",
    "make_plan",
    "release",
]


def _ignore(_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Listener:
    """Callbacks of a release.

    Attributes
    ----------
    stage : callable
        Called with the name of each stage.
    rows : callable
        Called with the number of rows of a pass that are done.
    warn : callable
        Called with warnings for the owner of the labels alone: a table that looks damaged and, before anything is
        drawn, estimates that the release will not admit.
    """

    stage: Callable[[str], object] = _ignore
    rows: Callable[[int], object] = _ignore
    warn: Callable[[str], object] = _ignore


@dataclass(frozen=True)
class Account:
    """Ledger that is charged for a dataset, or none, and the secret key of digests and of the hash of ids."""

    ledger: Ledger | None
    dataset: str | None
    again: bool = False
    budget: Spent | float | None = None
    secret: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    @classmethod
    def open(
        cls, dataset: str | None, ledger: Any, *, again: bool = False, budget: Spent | float | None = None
    ) -> Account:
        """Open the ledger, by default the user's own, if a dataset is named.

        Raises
        ------
        InvalidInput
            A ledger without a dataset, or options of a ledger without one.
        """
        flag(again, "again")
        if ledger is not None and not isinstance(ledger, Ledger | str | os.PathLike):
            raise InvalidInput(f"the ledger is of type {type(ledger).__name__}, expected a Ledger, a path or None")
        if dataset is None and ledger not in (None, "default"):
            raise InvalidInput("a ledger charges named datasets: name the one that the labels belong to, dataset=...")
        if dataset is None or ledger is None:
            if again or budget is not None:
                raise InvalidInput("no ledger knows what was spent: name a dataset, or leave out again and budget")
            return cls(None, None if dataset is None else check_name(dataset, "the dataset"))
        limit = budget if budget is None or isinstance(budget, Spent) else Spent(budget)
        name = check_name(dataset, "the dataset")
        opened = ledger if isinstance(ledger, Ledger) else Ledger(None if ledger == "default" else ledger)
        return cls(opened, name, again, limit, opened.digest_key)

    @property
    def charged(self) -> str | None:
        """Dataset that a ledger charges; None without one."""
        return None if self.ledger is None else self.dataset

    def begin(self, charges: Sequence[Charge]) -> list[Charge]:
        """Charge releases, or go on with unfinished ones; without a ledger each has a key of its own."""
        if self.ledger is None:
            return [_unaccounted(charge) for charge in charges]
        return self.ledger.begin(charges, again=self.again, budget=self.budget)


def _unaccounted(charge: Charge) -> Charge:
    return replace(charge, id=os.urandom(16).hex(), key=os.urandom(32))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a batch. Private.

    Attributes
    ----------
    places : tuple of (rows,) arrays
        For each question, of the labels in the declared set, negative for a missing one.
    ids : (rows, 2) array
    codes : tuple of (rows,) arrays
        For each question, the groups of the rows.
    kept : (rows,) array of bool or None
        Rows that are released; None for all.
    """

    places: tuple[Places, ...] = field(repr=False)
    ids: Ids = field(repr=False)
    codes: tuple[Indices, ...] = field(repr=False)
    kept: NDArray[np.bool_] | None = None

    def drawn_places(self, number: int) -> Places:
        """Return the places of labels of one question that are drawn: negative in rows that are left out, too."""
        places = self.places[number]
        return places if self.kept is None else np.where(self.kept, places, np.int32(-1))

    def counts(self, number: int, groups: int, k: int) -> NDArray[np.intp]:
        """Return how often each declared label occurs in each group, shape ``(groups, k)``."""
        places = self.drawn_places(number)
        present = slice(None) if places.min(initial=0) >= 0 else places >= 0
        cells = places[present] if groups == 1 else self.codes[number][present] * k + places[present]
        found: NDArray[np.intp] = np.bincount(cells, minlength=groups * k).reshape(groups, k)
        return found


@dataclass(frozen=True, eq=False)
class Reader:
    """Reading and drawing of batches, with a column and groups for each question. It can be pickled.

    Row numbers are the ids if there are no columns of ids.
    """

    columns: tuple[LabelColumn, ...]
    groups: tuple[Groups, ...]
    id_columns: tuple[str, ...]
    id_key: bytes = field(repr=False)

    @classmethod
    def of(cls, table: Table, questions: Sequence[Question], account: Account) -> Reader:
        """Check the columns of a table against the questions, and find its groups.

        Raises
        ------
        InvalidInput
            A column that is missing, twice there, or of another type.
        """
        columns = []
        for question in questions:
            name = find_column(table, question.label)
            columns.append(LabelColumn(question, table.schema.field(name).type, table.decimal))
            for public in (*question.groups, *question.ids):
                find_column(table, public, public=True)
        found: dict[tuple[str, ...], Groups] = {(): ONE_GROUP}
        for question in questions:
            if question.groups not in found:
                batches = (batch for _, batch in table.batches(question.groups))
                found[question.groups] = Groups.among(question.groups, batches)
        groups = tuple(found[question.groups] for question in questions)
        return cls(tuple(columns), groups, questions[0].ids, account.secret)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Questions, one for each column."""
        return tuple(column.question for column in self.columns)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that :meth:`read` needs."""
        public = (name for question in self.questions for name in (*question.groups, *question.ids))
        return tuple(dict.fromkeys((*(question.label for question in self.questions), *public)))

    def read(self, batch: Any, first_row: int = 0) -> Rows:
        """Read the rows of a batch, and refuse labels that cannot be released."""
        places = []
        for column in self.columns:
            found = column.places(batch.column(batch.schema.get_field_index(column.question.label)))
            refuse_labels(found, column.question)
            places.append(found)
        if self.id_columns:
            ids = column_ids([batch.column(name) for name in self.id_columns], self.id_columns, key=self.id_key)
        else:
            ids = row_ids(first_row, batch.num_rows)
        dropping = [p >= 0 for p, q in zip(places, self.questions, strict=True) if q.nulls == "drop"]
        kept = np.logical_and.reduce(dropping) if dropping else None
        codes = tuple(groups.codes(batch) for groups in self.groups)
        return Rows(tuple(places), ids, codes, None if kept is None or kept.all() else kept)

    def sums(self, rows: Rows, key: bytes) -> tuple[RowSums, ...]:
        """Return keyed sums over the rows of a batch, for each question."""
        return tuple(
            RowSums.of(key, rows.ids, places if len(groups) == 1 else codes * (question.k + 1) + places)
            for places, codes, groups, question in zip(
                rows.places, rows.codes, self.groups, self.questions, strict=True
            )
        )

    def draw(self, rows: Rows, drawings: Sequence[Drawing]) -> list[Any]:
        """Return the noisy labels of a batch, an Arrow array for each question."""
        noisy = []
        for number, column in enumerate(self.columns):
            places = rows.drawn_places(number)
            drawn = drawings[number](places, rows.ids, rows.codes[number])
            noisy.append(column.written(drawn, places < 0))
        return noisy


class Sink:
    """Place where noisy labels go.

    Attributes
    ----------
    output : str
        By which a retry is recognised.
    checked : tuple of str
        Columns with cells that it may not hold.
    columns : tuple of str or None
        Columns that the second pass reads beside those of the reader; None for all.
    folder : Path or None
        For temporary files; None for the system's.
    """

    output: str
    checked: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = ()
    folder: Path | None = None

    def check(self, batch: Any, rows: Rows) -> None:
        """Look at a batch of the first pass, with the columns to check."""

    def rehearse(self, reader: Reader) -> None:
        """Refuse what cannot be written, before anything is charged."""

    def write(self, part: int, batch: Any, noisy: Sequence[Any], rows: Rows) -> None:
        """Write a batch of the second pass with noisy labels."""
        raise NotImplementedError

    def close(self, plans: Sequence[Plan], charges: Sequence[Charge], account: Account) -> list[ReleaseRecord]:
        """Finish the table, and return the records of the release."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close what was written, which is of no use."""

    def publish(self) -> None:
        """Give the table its final name."""


def release(
    table: Table, questions: Sequence[Question], sink: Sink, account: Account, listener: Listener
) -> list[ReleaseRecord]:
    """Release columns of a table with the same ids, each charged for its epsilon before anything is drawn.

    Raises
    ------
    InvalidInput
        Something public or a label that cannot be released. Nothing was charged.
    AlreadySpent, OverBudget, InputChanged
        As from :meth:`.Ledger.begin`, or the table changed while it was read.
    NotCertified
        The gap of a mechanism is above that of its question. A note says what was spent.
    """
    listener.stage("reading the table")
    reader = Reader.of(table, questions, account)
    found = table.scan(reader, sink, account, listener)
    if not all(counts.any() for counts in found.counts):
        raise InvalidInput("there are no rows with a label: there is nothing to randomize")
    if table.cut and table.path is not None:
        listener.warn(
            f"the last line of {table.path.name} has no end: a copy of the table may have broken off in it and its "
            "label be cut, as 44 to 4"
        )
    sink.rehearse(reader)
    charges = begin_release(reader, found, sink.output, account)
    try:
        plans = [
            make_plan(question, groups, counts, charge, account, listener)
            for question, groups, counts, charge in zip(
                reader.questions, reader.groups, found.counts, charges, strict=True
            )
        ]
        listener.stage("drawing labels")
        drawings = [
            plan.drawing(charge.key or b"", release=charge.id, dataset=account.dataset or "")
            for plan, charge in zip(plans, charges, strict=True)
        ]
        table.draw(reader, sink, account, found, drawings, listener)
        records = sink.close(plans, charges, account)
        listener.stage("publishing")
        if account.ledger is None:
            sink.publish()
        else:
            account.ledger.complete(charges, sink.publish)
    except BaseException as error:
        sink.abandon()
        if not getattr(error, "released", False) and (note := _spent_note(charges, account)):
            error.add_note(note)
        raise
    return records


def begin_release(reader: Reader, scan: Scan, output: str, account: Account) -> list[Charge]:
    """Solve each problem for a uniform prior, so that a failure costs nothing, then charge all questions."""
    charges = []
    for question, groups, found, total in zip(reader.questions, reader.groups, scan.counts, scan.sums, strict=True):
        rows = int(found.sum())
        rehearse(question, rows)
        split = question.split(rows)
        names = json.dumps(groups.names).encode()
        charges.append(
            Charge(
                dataset=account.dataset or "",
                label=question.label,
                # The decimal of the question. Rounding leaves the labels a little less.
                epsilon=decimal_value(question.epsilon if split.prior else split.labels),
                prior_epsilon=decimal_value(split.prior) if split.prior else Fraction(0),
                question=question.digest,
                input=total.digest(account.secret, names),
                output=output,
            )
        )
    return account.begin(charges)


def make_plan(
    question: Question, groups: Groups, counts: NDArray[Any], charge: Charge, account: Account, listener: Listener
) -> Plan:
    """Estimate the prior and find the mechanisms, or read them from the ledger if this release has done so before."""
    sizes = counts.sum(axis=1)
    document = charge.plan
    if document is None:
        listener.stage("estimating the prior")
        names = {"release": charge.id, "dataset": account.dataset or "", "column": question.label}
        source = KeyedEntropy(subkey(charge.key or b"", **names, purpose="prior"), private=True)
        # The same for every retry, as a function of the key: nobody can draw until the prior is likely.
        noisy = draw_histograms(question, counts, source)
        plan = Plan.make(question, sizes, noisy, groups=groups, announce=listener.stage)
        if not plan.possible:
            listener.warn(plan.histogram_words)
        listener.stage("proving")
        _ = plan.proofs
        if account.ledger is None:
            return plan
        made = json.dumps(plan.document())
        document = account.ledger.draw(charge, made)
        if document == made:
            return plan
    return Plan.of_document(question, sizes, groups, json.loads(document))


def _spent_note(charges: Sequence[Charge], account: Account) -> SpentNote | None:
    """Return what has been spent when a release breaks off after it was charged."""
    if account.ledger is None:
        priors = sum((charge.prior_epsilon for charge in charges), Fraction(0))
        return SpentNote(f"a prior was drawn for {Spent(priors)}, in no ledger") if priors else None
    total = Spent.total(charge.total for charge in charges)
    return SpentNote(
        f"{total} is charged to dataset {account.dataset!r}, once. Once the cause is gone, the same command goes on "
        "from there with the same noise, and does not pay for it again"
    )
