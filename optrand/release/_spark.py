"""Releases of frames on a Spark cluster: two passes of ``mapInArrow`` with the reader and the plan of every release.

No exception of a task repeats the content of a cell, since Spark writes exceptions to its logs. A label or an id that
cannot be released is therefore stated in the report of the task.

The master key stays with the driver. Tasks get the key of the labels alone, in a broadcast variable that is destroyed
at the end: no plan, log or page of Spark shows it. Its bytes cross the network and lie in temporary files of Spark
meanwhile. ``spark.network.crypto.enabled`` and ``spark.io.encryption.enabled`` have Spark encrypt both.

Sums of keyed hashes over all rows show that the counted, the checked and the written rows are the same. If a task ran
twice, only the file whose rows were summed is published.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.base._files import sync_directory
from optrand.errors import InputChanged, InvalidInput, OptrandError
from optrand.release._batches import Listener, Reader, Rows, Sums, Table, sum_rows
from optrand.release._question import Question
from optrand.release._rows import column_ids
from optrand.release._tables import write_parquet

Batches = Iterable[Any]
Report = dict[str, list[Any]]
"""Result of one partition or more: sums over the rows with their labels (`sums`) or of ids alone (`ids`), counts
of labels, numbers of released rows, reasons to refuse the table, and files. Private, except `released`."""

Work = partial[Report]

CHANGED = (
    "the frame held other labels or ids when it was computed again: nothing was released. Write it to a table "
    "first, or cache it, and start again"
)


@contextmanager
def open_frame(frame: Any, target: Path, question: Question, listener: Listener) -> Iterator[Table]:
    """Open a Spark frame as a table. Broadcast variables are destroyed at the end, and jobs cancelled on an error.

    The target is an absolute path of a folder on a disk that the driver and all workers share. The frame is computed
    three times: for its labels, for its ids, and to be written. Sessions of Spark Connect, which has no broadcast
    variables, are refused.
    """
    classic = sys.modules.get("pyspark.sql.classic.dataframe")
    if classic is None or not isinstance(frame, classic.DataFrame):
        raise InvalidInput(
            f"the table is of type {type(frame).__name__}, expected a path, or a frame of a Spark session with a "
            "driver in this process (not Spark Connect, which has no broadcast variables). optrand.randomize takes "
            "arrays and frames in memory"
        )
    if frame.isStreaming:
        raise InvalidInput("the table is a stream, which cannot be read twice: write it to a table first")
    if not question.ids:
        raise InvalidInput("frames have no order: name columns that identify a record, ids=...")
    if not target.is_absolute():
        raise InvalidInput(f"{target} is not an absolute path: name a folder on a disk that all machines share")
    if target.name.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        raise InvalidInput(f"{target} is named like a text file: a release on Spark is a folder of Parquet files")
    context = frame.sparkSession.sparkContext
    if context.getConf().get("spark.io.encryption.enabled", "false") != "true":
        listener.warn(
            "Spark does not encrypt its temporary files: the key of the noise is in one of them until the release "
            "ends. Start the session with spark.io.encryption.enabled=true"
        )
    sent: list[Any] = []

    def broadcast(work: Work) -> Any:
        sent.append(context.broadcast(work))
        return sent[-1]

    tag = f"optrand-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield _SparkTable(frame, broadcast)
    except BaseException:
        context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        for variable in sent:
            variable.destroy(blocking=True)


class _SparkTable(Table):
    """A Spark frame: the driver reads the distinct values of its groups, tasks read its rows in both passes."""

    def __init__(self, frame: Any, broadcast: Callable[[Work], Any]) -> None:
        from pyspark.errors import PySparkException
        from pyspark.sql.pandas.types import to_arrow_schema

        self.frame, self.broadcast = frame, broadcast
        if len({name.lower() for name in frame.columns}) < len(frame.columns):
            raise InvalidInput("the frame has two columns with the same name up to case: rename one")
        try:
            self.schema = to_arrow_schema(frame.schema)
        except PySparkException as error:
            raise InvalidInput("the frame has a column of a type that Arrow does not have: drop or cast it") from error

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the distinct values of public columns, the only ones that the driver reads."""
        for batch in self.select(columns).distinct().toArrow().to_batches():
            yield 0, batch

    def select(self, columns: Sequence[str] | None) -> Any:
        return self.frame if columns is None else self.frame.select([_quote(name) for name in columns])

    def _distinct_ids(self, reader: Reader) -> Any:
        """Return the frame of distinct ids."""
        from pyspark.sql import functions

        cells = []
        for name in reader.id_columns:
            cell = functions.col(_quote(name))
            # As bytes, since a collation may equate different texts.
            text = self.frame.schema[name].dataType.typeName() == "string"
            cells.append((cell.cast("binary") if text else cell).alias(name))
        return self.frame.select(cells).distinct()

    def scan(self, reader: Reader, sink: Any, listener: Listener) -> tuple[list[NDArray[np.intp]], Sums, int]:  # noqa: ARG002
        """Make the first pass: count labels, check ids, and refuse invalid ones."""
        found = self._collect(self.select(reader.source_columns), partial(_count_labels, reader))
        # Labels first: if one is refused, the ids need no check.
        ids = found if found["refused"] else self._collect(self._distinct_ids(reader), partial(_sum_ids, reader))
        if ids["refused"]:
            raise InvalidInput(min(ids["refused"]))
        distinct, every = _total(ids["ids"]), _total(found["ids"])
        if distinct[0] < every[0]:
            raise InvalidInput(
                "at least two records have the same id, or the frame lost rows when it was computed again: ids must be "
                "unique over the whole table, and a frame that changes is written to a table first"
            )
        if not np.array_equal(distinct, every):
            raise InputChanged(CHANGED)
        counts = np.sum(np.array(found["counts"], dtype=np.intp), axis=0)
        return [counts], _total(found["sums"])[np.newaxis], sum(found["released"])

    def draw(self, reader: Reader, sink: Any, sums: Sums, listener: Listener) -> None:  # noqa: ARG002
        """Make the second pass: write a file for each partition, under its hidden name."""
        names, staged = sink.names, sink.staged
        attempts = sink.folder / "attempts"
        attempts.mkdir(mode=0o700)
        frame = self.select(tuple(dict.fromkeys((*names, *reader.source_columns))))
        written = self._collect(frame, partial(_write_labels, reader, names, attempts))
        if written["refused"] or not np.array_equal(_total(written["sums"]), sums[0]):
            raise InputChanged(CHANGED)
        staged.mkdir(mode=0o700)
        for number, file in enumerate(sorted(written["files"])):
            if not (attempts / file).is_file():
                raise InvalidInput("a worker wrote its part elsewhere: name a folder on a disk that all machines share")
            (attempts / file).rename(staged / f"part-{number:05}.parquet")
        sync_directory(staged)

    def _collect(self, frame: Any, work: Work) -> Report:
        """Run work on all partitions, and merge the reports.

        The work is broadcast, since plans and logs show the objects in a function's closure.
        """
        task = _task(self.broadcast(work), work.func.__name__)
        found: Report = defaultdict(list)
        for row in frame.mapInArrow(task, "report string").collect():
            for name, parts in json.loads(row.report).items():
                found[name] += parts
        return found


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _total(sums: Sequence[Any]) -> Sums:
    total: Sums = np.array(sums, dtype=np.uint64).reshape(-1, 3).sum(axis=0)
    return total


def _read(reader: Reader, batches: Batches, report: Report) -> Iterator[tuple[Any, Rows]]:
    """Yield batches and their rows, and sum them. All are read, even if one of them is refused."""
    for batch in batches:
        try:
            rows = reader.read(batch)
        except InvalidInput as error:
            report["refused"].append(str(error))
        else:
            report["sums"].append(rows.sums[0].tolist())
            report["released"].append(rows.size)
            yield batch, rows


def _task(held: Any, name: str) -> Callable[[Batches], Iterator[Any]]:
    """Return the task that runs broadcast work on a partition and yields its report as a row."""

    def run(batches: Batches) -> Iterator[Any]:
        try:
            yield pa.record_batch({"report": [json.dumps(held.value(batches))]})
        except (OptrandError, OSError, MemoryError, GeneratorExit):
            raise
        except Exception as error:
            # The message of the error may repeat the content of a cell.
            raise RuntimeError(f"a task of the release failed with {type(error).__name__}") from None

    # Plans and pages of Spark show the function's name.
    run.__name__ = name
    return run


def _count_labels(reader: Reader, batches: Batches) -> Report:
    report: Report = defaultdict(list)
    counts = np.zeros((len(reader.groups.names), reader.questions[0].k), dtype=np.int64)
    for _, rows in _read(reader, batches, report):
        counts += rows.counts(0, *counts.shape)
        report["ids"].append(sum_rows(reader.secret, rows.ids).tolist())
    report["counts"] = [counts.tolist()]
    return report


def _sum_ids(reader: Reader, batches: Batches) -> Report:
    report: Report = defaultdict(list)
    for batch in batches:
        try:
            ids = column_ids(batch.columns, reader.id_columns, key=reader.secret)
        except InvalidInput as error:
            report["refused"].append(str(error))
        else:
            report["ids"].append(sum_rows(reader.secret, ids).tolist())
    return report


def _write_labels(reader: Reader, names: Sequence[str], folder: Path, batches: Batches) -> Report:
    """Write a partition to its own file in a folder that all machines share.

    A task may run twice: each attempt writes another file, and only those count whose report is collected.
    """
    from pyspark import TaskContext

    report: Report = defaultdict(list)
    context = TaskContext.get()
    path = folder / f"{0 if context is None else context.partitionId():08}.{uuid.uuid4().hex}"
    column = reader.questions[0].column
    try:
        with ExitStack() as stack:
            write = None
            for batch, rows in _read(reader, batches, report):
                kept, (noisy,) = reader.draw(batch, rows)
                if kept.num_rows == 0:
                    continue
                arrays = [noisy if name == column else kept.column(name) for name in names]
                table = pa.RecordBatch.from_arrays(arrays, names=list(names))
                if write is None:
                    if not folder.is_dir():
                        raise OSError(f"{folder} is not there: the output must be on a disk that all machines share")
                    write = stack.enter_context(write_parquet(table.schema, path, distinct=reader.id_columns))
                    report["files"] = [path.name]
                write(table)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return report
