"""Tables of any kind, which a release reads twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from optrand.errors import InputChanged
from optrand.release.batches import Account, Listener, Reader, Scan, Sink
from optrand.release.ids import UniqueIds
from optrand.release.record import Drawing

__all__ = ["Table"]


class Table:
    """A private table that can be read as often as needed.

    Attributes
    ----------
    path : Path or None
        None in memory.
    files : tuple of Path
    schema : pyarrow.Schema
    decimal : str or None
        The decimal point, if cells are text.
    partitions : tuple of str
        Columns in the names of folders (``state=CA/``) alone.
    cut : bool
        Whether the last line that was read lacked its end.
    """

    path: Path | None = None
    files: tuple[Path, ...] = ()
    schema: Any
    decimal: str | None = None
    partitions: tuple[str, ...] = ()
    cut: bool = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the number of a file and a record batch of its next rows, of some columns, by default of all."""
        raise NotImplementedError

    def scan(self, reader: Reader, sink: Sink, account: Account, listener: Listener) -> Scan:
        """Make the first pass: count labels, check ids, sum rows.

        Raises
        ------
        InvalidInput
            A label, an id or a cell that cannot be released.
        """
        found = Scan.empty(reader)
        columns = tuple(dict.fromkeys((*reader.needed, *sink.checked)))
        with UniqueIds(sink.folder) as unique:
            for _, batch in self.batches(columns):
                rows = reader.read(batch, found.rows)
                sink.check(batch, rows)
                found.add(rows, reader.sums(rows, account.secret))
                if reader.id_columns:
                    unique.add(rows.ids)
                listener.rows(found.rows)
            unique.check()
        return found

    def draw(
        self,
        reader: Reader,
        sink: Sink,
        account: Account,
        found: Scan,
        drawings: Sequence[Drawing],
        listener: Listener,
    ) -> None:
        """Make the second pass: read again, draw and write.

        Raises
        ------
        InputChanged
            The rows are not those of the first pass.
        """
        again = Scan.empty(reader)
        wanted = sink.columns
        columns = None if wanted is None else tuple(dict.fromkeys((*wanted, *reader.needed)))
        for part, batch in self.batches(columns):
            rows = reader.read(batch, again.rows)
            again.add(rows, reader.sums(rows, account.secret))
            sink.write(part, batch, reader.draw(rows, drawings), rows)
            listener.rows(again.rows)
        if again.sums != found.sums:
            raise InputChanged(
                "the table was changed while it was read: nothing was released; start again once nobody writes to it"
            )
