"""Table of private labels in memory, whatever kind of file it came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO

from optrand.base.validation import Floats
from optrand.release.diagnosis import Readings

__all__ = ["Table"]


class Table(ABC):
    """A table whose label column has been read."""

    readings: Readings
    """Cells of the label column, read as numbers."""

    @property
    def labels(self) -> Floats:
        """The label of each row, finite numbers, shape ``(rows,)``."""
        return self.readings.numbers

    @abstractmethod
    def write(self, stream: BinaryIO, values: Floats, *, compress: bool = False) -> None:
        """Write the whole table to `stream` with `values` in place of the labels, gzipped if asked (CSV only)."""
