"""A Spark frame in the place of a table on disk: its columns and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from optrand.errors import InvalidInput
from optrand.release.streams.source import Source

__all__ = ["SparkFrame"]


class SparkFrame(Source):
    """Columns of a Spark frame, for options that are checked against a table.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame

    Raises
    ------
    InvalidInput
        Two columns whose names Spark does not tell apart, or a type that Arrow does not have.
    """

    def __init__(self, frame: Any) -> None:
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import to_arrow_schema

        self.frame, self.path, self.names = frame, Path("the frame"), tuple(frame.columns)
        if len({name.lower() for name in self.names}) < len(self.names):
            raise InvalidInput("the frame has two columns whose names differ in their case at most: rename one")
        try:
            self._schema = to_arrow_schema(frame.schema)
        except PySparkException as error:
            raise InvalidInput("the frame has a column of a type that Arrow does not have: drop or cast it") from error

    @property
    def files(self) -> tuple[Path, ...]:
        """None that Spark would tell."""
        return ()

    @property
    def schema(self) -> Any:
        """Schema of the batches that tasks see."""
        return self._schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:  # noqa: ARG002
        """Refused: rows stay with the workers."""
        raise InvalidInput("rows of a Spark frame are read by its workers alone")

    def selected(self, columns: Sequence[str] | None) -> Any:
        """Frame of some columns, all by default."""
        return self.frame if columns is None else self.frame.select([_quoted(name) for name in columns])

    def distinct(self, column: str) -> Any:
        """Frame of the distinct values of a column, and ``count``, how often each occurs."""
        from pyspark.sql import functions

        cell = functions.col(_quoted(column))
        if self.frame.schema[column].dataType.typeName() == "string":
            # As bytes: a collation may hold two texts equal.
            cell = cell.cast("binary")
        return self.frame.select(cell.alias("id")).groupBy("id").count()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
