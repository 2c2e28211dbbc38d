"""Batches of a release: how they are read, summed and drawn, and where they go."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.accounting.ledger import Charge, Ledger, check_name
from optrand.accounting.spent import Spent
from optrand.base.validation import flag
from optrand.errors import InvalidInput
from optrand.release.cells import LabelColumn, Places, refuse_labels
from optrand.release.groups import Groups, Indices
from optrand.release.ids import Ids, RowSums, column_ids, row_ids
from optrand.release.question import Question
from optrand.release.record import Drawing, ReleaseRecord

__all__ = ["Account", "Listener", "Reader", "Rows", "Scan", "Sink"]


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

    def close(self, records: Sequence[ReleaseRecord]) -> Sequence[ReleaseRecord]:
        """Finish the table, and return the records of the release, which may describe it."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close what was written, which is of no use."""

    def publish(self) -> None:
        """Give the table its final name."""


@dataclass
class Scan:
    """Counts of labels, shape ``(groups, k)``, and keyed sums over the rows of a table, for each question.

    Private, except the number of rows.
    """

    rows: int
    counts: list[NDArray[np.intp]]
    sums: list[RowSums]

    @classmethod
    def empty(cls, reader: Reader) -> Scan:
        """Return the scan of no rows."""
        shapes = [(len(g), q.k) for g, q in zip(reader.groups, reader.questions, strict=True)]
        return cls(0, [np.zeros(shape, dtype=np.intp) for shape in shapes], [RowSums() for _ in shapes])

    def add(self, rows: Rows, sums: Sequence[RowSums]) -> None:
        """Add the rows of a batch."""
        self.rows += len(rows.ids)
        for number, counts in enumerate(self.counts):
            counts += rows.counts(number, *counts.shape)
            self.sums[number] = self.sums[number] + sums[number]
