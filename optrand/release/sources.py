"""Tables to be read and to be written, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Table", "Writer"]


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


class Writer(Protocol):
    """A table that is being written."""

    def write(self, part: int, batch: Any) -> None:
        """Append the rows of a batch of a part."""

    def close(self) -> None:
        """Write what is left and flush it to the disk."""

    def abandon(self) -> None:
        """Close the files as they are; what was written is of no use."""
