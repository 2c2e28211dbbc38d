"""The two passes over a table: one that counts labels and looks for what must be refused, one that replaces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.errors import InputChanged, InvalidInput
from optrand.release.ahead import Behind, ahead
from optrand.release.batch import BatchRandomizer, Draw
from optrand.release.diagnosis import Diagnosis
from optrand.release.ids import RowDigest, UniqueIds
from optrand.release.streams.source import Sink, Source, Whereabouts

__all__ = ["Pass", "Scan"]

RowsCallback = Callable[[int], object]
"""Told how many rows of a pass are done."""


@dataclass(frozen=True, eq=False)
class Scan:
    """What the first pass has found. Private, but for `rows`.

    Attributes
    ----------
    rows : int
        Those of the released table.
    counts : (groups, k) array
        How often each declared label occurs in each group.
    digest : str
        Keyed digest of ids, labels and missing ones in their order.
    states : tuple of FileState
        Of the files, as they were read.
    cut : bool
        Whether the last line of a CSV file had no end.
    """

    rows: int
    counts: NDArray[np.intp] = field(repr=False)
    digest: str = field(repr=False)
    states: Whereabouts = field(repr=False)
    cut: bool = field(default=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A table, and the way in which its labels are to be replaced.

    Parameters
    ----------
    source : Source
    randomizer : BatchRandomizer
    digest_key, id_key : bytes
        Secrets: of the digest of the rows, and of the hash of ids that are text.
    groups : int
        How many groups there are.
    rows_done : callable, optional
    """

    source: Source
    randomizer: BatchRandomizer
    digest_key: bytes = field(repr=False)
    id_key: bytes = field(default=b"", repr=False)
    groups: int = 1
    rows_done: RowsCallback | None = None

    def scan(self, *, temporary: Path | None = None) -> Scan:
        """Read the labels, and refuse what cannot be released; nothing is drawn.

        Parameters
        ----------
        temporary : path, optional
            Folder for the check of ids, which needs 8 to 16 bytes of disk for each.

        Raises
        ------
        InvalidInput
            A label that cannot be released: neither which nor how many is said. An id that is missing or comes twice,
            or no rows.
        InputChanged
            The table was written to meanwhile.
        """
        states, k = self.source.states, self.randomizer.declared.labels.size
        digest, rows, trouble = RowDigest(self.digest_key), 0, None
        counts = np.zeros((self.groups, k), dtype=np.intp)
        with UniqueIds(temporary) as unique:
            with Behind(unique.add) as add:
                for _, batch, first in self._batches(self.randomizer.columns):
                    records = self.randomizer.read(batch, first_row=first, id_key=self.id_key)
                    trouble = trouble or self._trouble(records)
                    found = records.counts(self.groups, k)
                    rows += records.places.size if self.randomizer.nulls != "drop" else int(found.sum())
                    counts += found
                    digest.add(records.ids, records.places, records.groups)
                    if self.randomizer.id_column is not None:
                        add(records.ids)
            # The whole table is read in any case: how soon an error comes would tell where the first such label is.
            if trouble is not None:
                raise trouble
            unique.check()
        if rows == 0:
            raise InvalidInput(f"{self.source.path.name} has no rows with a label: there is nothing to randomize")
        self.source.check_unchanged(states)
        return Scan(rows, counts, digest.hexdigest(), states, self.source.cut)

    def _trouble(self, records: Any) -> InvalidInput | None:
        try:
            self.randomizer.check(records)
        except InvalidInput as error:
            return error
        return None

    def diagnose(self) -> Diagnosis:
        """Exact counts of labels that :meth:`scan` may refuse: for their owner alone."""
        found = Diagnosis(0, 0, 0, 0)
        for _, batch, _ in self._batches((self.randomizer.column,)):
            found += self.randomizer.diagnosis(batch)
        return found

    def replace(self, scan: Scan, draws: Sequence[Draw], sink: Sink) -> None:
        """Write the table with noisy labels.

        Parameters
        ----------
        scan : Scan
            Of the same table.
        draws : sequence of Draw
            One for each group.
        sink : Sink

        Raises
        ------
        InputChanged
            The table is not the one that was scanned; what was written must be thrown away.
        """
        try:
            self._replace(scan, draws, sink)
        except BaseException:
            sink.abandon()
            raise

    def _replace(self, scan: Scan, draws: Sequence[Draw], sink: Sink) -> None:
        digest = RowDigest(self.digest_key)
        self.source.check_unchanged(scan.states)
        released = self.randomizer.released
        needed = None if released is None else tuple(dict.fromkeys((*released, *self.randomizer.columns)))
        with Behind(sink.write) as write:
            for part, batch, first in self._batches(needed):
                records = self.randomizer.read(batch, first_row=first, id_key=self.id_key)
                digest.add(records.ids, records.places, records.groups)
                if self._trouble(records) is not None:
                    raise self._changed()
                write(part, self.randomizer(batch, draws, records=records))
        sink.close()
        self.source.check_unchanged(scan.states)
        if digest.hexdigest() != scan.digest:
            raise self._changed()

    def _changed(self) -> InputChanged:
        return InputChanged(
            f"{self.source.path.name} holds other labels or ids than when it was first read: nothing was released; "
            "start again once nobody writes to it"
        )

    def _batches(self, columns: Sequence[str] | None) -> Iterator[tuple[int, Any, int]]:
        """Files by their index, batches of their rows, and the number of each batch's first row in the table."""
        first = 0
        for part, batch in ahead(self.source.batches(columns)):
            yield part, batch, first
            first += batch.num_rows
            if self.rows_done is not None:
                self.rows_done(first)
