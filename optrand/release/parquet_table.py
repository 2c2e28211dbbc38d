"""Tables as Parquet: every column but the labels keeps its type and its values.

The metadata of the file are dropped: they may hold a figure of the true labels, such as a number of categories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from optrand.base.validation import MAX_INTEGER, Floats
from optrand.errors import InvalidInput
from optrand.release.diagnosis import Readings
from optrand.release.table_base import Table

__all__ = ["ParquetTable"]


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file in memory.

    Attributes
    ----------
    readings : Readings
        Of the labels.
    column : int
        Where the labels stand.
    columns : pyarrow.Table
    """

    readings: Readings
    column: int
    columns: Any = field(repr=False)

    @classmethod
    def read(cls, path: Path, label: str) -> ParquetTable:
        """See :func:`optrand.release.table.read_table`."""
        try:
            with pa.parquet.ParquetFile(path) as file:
                columns = file.read()
        except (pa.ArrowException, OSError):
            raise InvalidInput(f"{path.name} cannot be read as Parquet: it is damaged or of another kind") from None
        found = columns.column_names.count(label)
        if found != 1:
            raise InvalidInput(f"{path.name} has {found} columns named {label!r}, expected one")
        if columns.num_rows == 0:
            raise InvalidInput(f"{path.name} has no rows: there is nothing to randomize")
        column = columns.column_names.index(label)
        return cls(_readings(columns.column(column), label), column, columns)

    def write(self, stream: BinaryIO, values: Floats, *, compress: bool = False) -> None:
        """Write the table with `values` in place of the labels, as a column of floats."""
        if compress:
            raise InvalidInput("a Parquet file compresses itself: it cannot be gzipped as well")
        name = self.columns.column_names[self.column]
        noisy = self.columns.set_column(self.column, pa.field(name, pa.float64()), pa.array(values, pa.float64()))
        pa.parquet.write_table(noisy.replace_schema_metadata(None), stream)


def _readings(column: Any, label: str) -> Readings:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidInput(f"column {label!r} is of type {kind}, expected numbers")
    present = column.drop_null()
    if pa.types.is_integer(kind):
        integers = present.to_numpy()
        # Floats cannot tell larger ones apart.
        numbers: Floats = integers[(integers >= -MAX_INTEGER) & (integers <= MAX_INTEGER)].astype(np.float64)
        return Readings(numbers, len(column), column.null_count)
    if kind in (pa.float16(), pa.float32()):
        # Through the shortest text: 0.1 was meant, not the double nearest to the float nearest to it.
        present = present.cast(pa.string())
    numbers = present.cast(pa.float64(), safe=False).to_numpy() + 0.0
    return Readings(numbers[np.isfinite(numbers)], len(column), column.null_count)
