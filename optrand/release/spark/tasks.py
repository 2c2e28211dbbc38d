"""What tasks of a cluster do with one partition: functions from record batches to one row that reports on them.

No exception of a task repeats what a cell holds: Spark writes exceptions to its logs. A label or an id that cannot be
released is therefore no exception but a word in the report.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput, OptrandError
from optrand.mechanism.mechanism import Mechanism
from optrand.release.batch import BatchRandomizer
from optrand.release.ids import column_ids
from optrand.release.spark.rows import RowSums
from optrand.release.streams.parquet_files import ParquetSink
from optrand.sampling.keyed import RecordStreams

__all__ = ["REPORT", "Batches", "Drawing", "Held", "Report", "Secret", "Task", "checking_ids", "counting", "writing"]

REPORT = "rows long, released long, sums binary, counts binary, refused string, file string"
"""Schema of a report, as Spark writes one."""

_SCHEMA = pa.schema(
    [
        ("rows", pa.int64()),
        ("released", pa.int64()),
        ("sums", pa.binary()),
        ("counts", pa.binary()),
        ("refused", pa.string()),
        ("file", pa.string()),
    ]
)

Batches = Iterable[Any]
Task = Callable[[Batches], Iterator[Any]]


class Held(Protocol):
    """Broadcast variable: plans and logs name it by a number, and tasks fetch its value."""

    @property
    def value(self) -> Any:
        """What was broadcast."""


class Secret:
    """Bytes that are never printed.

    Examples
    --------
    >>> Secret(b"key")
    Secret()
    """

    def __init__(self, value: bytes) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret()"


@dataclass(frozen=True)
class Drawing:
    """What a task needs to read rows and to draw for them; only broadcast.

    Attributes
    ----------
    digest_key, id_key : Secret
        Of the sums of rows, and of the hash of ids that are text.
    labels_key : Secret, optional
        Of the noise.
    randomizer : Mechanism or Additive, optional
    private : bool
        Whether nobody else can know the key of the noise.
    """

    digest_key: Secret
    id_key: Secret
    labels_key: Secret | None = None
    randomizer: Mechanism | Additive | None = field(default=None, repr=False)
    private: bool = False

    def draw(self, values: NDArray[np.float64], ids: NDArray[np.uint64]) -> NDArray[np.float64]:
        """One noisy label for each of some records."""
        if self.labels_key is None or self.randomizer is None:
            raise InvalidInput("there is no key yet: nothing can be drawn")
        streams = RecordStreams(self.labels_key.value, private=self.private)
        return self.randomizer.sample_records(values, ids, streams)


@dataclass(frozen=True)
class Report:
    """What became of a partition, or of several. Private, but for `rows` and `released`.

    Attributes
    ----------
    sums : RowSums
    released : int
        Rows of the released table.
    counts : (k,) array, optional
        How often each declared label occurs.
    refused : str, optional
        Why the table cannot be released.
    files : tuple of str
        What was written, in the order of partitions.
    """

    sums: RowSums
    released: int = 0
    counts: NDArray[np.int64] | None = field(default=None, repr=False)
    refused: str | None = None
    files: tuple[str, ...] = ()

    def to_batch(self) -> Any:
        """One row of :data:`REPORT`."""
        counts = None if self.counts is None else self.counts.astype("<i8").tobytes()
        file = self.files[0] if self.files else None
        cells = (self.sums.rows, self.released, self.sums.to_bytes(), counts, self.refused, file)
        return pa.record_batch([pa.array([cell], one.type) for cell, one in zip(cells, _SCHEMA, strict=True)], _SCHEMA)

    @classmethod
    def collected(cls, rows: Sequence[Any], k: int) -> Report:
        """Reports of all partitions, added up."""
        total, released, counts = RowSums.none(), 0, np.zeros(k, dtype=np.int64)
        for row in rows:
            total += RowSums.from_bytes(row.rows, bytes(row.sums))
            released += row.released
            if row.counts is not None:
                counts += np.frombuffer(bytes(row.counts), dtype="<i8")
        refused = min((row.refused for row in rows if row.refused is not None), default=None)
        return cls(total, released, counts, refused, tuple(sorted(row.file for row in rows if row.file is not None)))


def counting(randomizer: BatchRandomizer, held: Held) -> Task:
    """Task that counts labels, and looks for those that cannot be released; it reads all rows in any case."""

    def count_labels(batches: Batches) -> Iterator[Any]:
        with _mute():
            drawing, sums, refused = held.value, RowSums.none(), None
            counts = np.zeros(randomizer.declared.labels.size, dtype=np.int64)
            released = 0
            for batch in batches:
                try:
                    records = randomizer.read(batch, id_key=drawing.id_key.value)
                    randomizer.check(records)
                except InvalidInput as error:
                    refused = refused or str(error)
                    continue
                present = records.places >= 0
                counts += np.bincount(records.places[present], minlength=counts.size)
                sums += RowSums.of(drawing.digest_key.value, records.ids, records.places)
                released += int(present.sum()) if randomizer.nulls == "drop" else present.size
            yield Report(sums, released, counts, refused).to_batch()

    return count_labels


def checking_ids(id_column: str, held: Held) -> Task:
    """Task that looks at distinct ids with a column ``count`` of how often each occurs."""

    def check_ids(batches: Batches) -> Iterator[Any]:
        with _mute():
            drawing, sums, refused = held.value, RowSums.none(), None
            for batch in batches:
                if int(np.max(batch.column("count").to_numpy(zero_copy_only=False), initial=0)) > 1:
                    refused = "at least two records have the same id: ids must be unique over the whole table"
                try:
                    ids = column_ids(batch.column(0), name=id_column, key=drawing.id_key.value)
                except InvalidInput as error:
                    refused = str(error)
                    continue
                sums += RowSums.of(drawing.digest_key.value, ids)
            yield Report(sums, refused=refused).to_batch()

    return check_ids


def writing(randomizer: BatchRandomizer, held: Held, folder: str) -> Task:
    """Task that writes its partition with noisy labels to a Parquet file of its own in a folder that all machines see.

    A task may run twice: each attempt writes another file, and only those count whose report is collected.
    """

    def write_labels(batches: Batches) -> Iterator[Any]:
        with _mute():
            yield _written(randomizer, held.value, Path(folder), batches).to_batch()

    return write_labels


def _written(randomizer: BatchRandomizer, drawing: Drawing, folder: Path, batches: Batches) -> Report:
    sums, released, refused, sink = RowSums.none(), 0, None, None
    name = f"{_partition():08}.{uuid.uuid4().hex}"
    try:
        for batch in batches:
            try:
                records = randomizer.read(batch, id_key=drawing.id_key.value)
                randomizer.check(records)
            except InvalidInput as error:
                refused = refused or str(error)
                continue
            sums += RowSums.of(drawing.digest_key.value, records.ids, records.places)
            noisy = _plain(randomizer(batch, [drawing.draw], records=records))
            released += noisy.num_rows
            if noisy.num_rows == 0:
                continue
            if sink is None:
                if not folder.is_dir():
                    raise OSError(f"{folder} is not there: the output must be on a disk that all machines share")
                sink = ParquetSink(noisy.schema, [folder / name], distinct=randomizer.id_column)
            sink.write(0, noisy)
        if sink is not None:
            sink.close()
        return Report(sums, released, refused=refused, files=(name,) if sink is not None else ())
    except BaseException:
        if sink is not None:
            sink.abandon()
            (folder / name).unlink(missing_ok=True)
        raise


def _plain(batch: Any) -> Any:
    """Without what the engine notes of columns: the rest may hold a figure of the true labels."""
    fields = [one.remove_metadata() for one in batch.schema]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@contextmanager
def _mute() -> Iterator[None]:
    """Replace errors that may repeat what a cell holds."""
    try:
        yield
    except (OptrandError, OSError, MemoryError, GeneratorExit):
        raise
    except Exception as error:
        raise RuntimeError(f"a task of the release failed with {type(error).__name__}") from None
