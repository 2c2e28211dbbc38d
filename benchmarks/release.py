"""Rows a second and peak memory of a release, for tables of up to 100 million rows with the weeks worked.

A keyed release, charged to a ledger, runs in a process of its own: CSV and Parquet, ids that are integers or text.
What it leaves is checked: the record verifies with the table, and the mean of the noisy labels is that of the private
ones, within six of the standard errors that the record states.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clock import peak_memory
from benchmarks.harness import circumstances, duration, options, print_table, rate, write_json
from optrand.release.paths import record_path
from optrand.release.record import load_release
from optrand.release.table import open_table

__all__ = ["Measured", "measured", "verified"]

ROWS, SMOKE_ROWS = (1_000_000, 10_000_000, 100_000_000), (20_000,)
KINDS = (("parquet", "integer"), ("parquet", "text"), ("csv", "integer"), ("csv", "text"))
DEVIATIONS = 6.0
MEGABYTE = 1e6

GOAL_RATE, GOAL_MEGABYTES = 3e6, 300.0
"""Of Parquet with integer ids, and of every table."""

COLUMNS = (
    "table",
    "ids",
    "rows",
    "wall",
    "processor",
    "rows/s",
    "rows/s of processor",
    "peak MB",
    "mean, in sds",
    "verdict",
)

PROGRAM = """
import sys
from optrand.base.lean import lean_process
lean_process(53)
import numpy as np
from optrand.release.job import LabelJob
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions
table, output, ledger = sys.argv[1:]
job = LabelJob(labels=np.arange(53.0), epsilon=1.0)
job = TableJob(job=job, column="weeks", options=TableOptions(id_column="id"))
job.run(table, output, dataset="census", ledger=ledger)
from benchmarks.clock import peak_memory
print(peak_memory())
"""


@dataclass(frozen=True)
class Measured:
    """What a process took.

    Attributes
    ----------
    seconds, processor : float
        On the wall, and of the processor in all threads.
    peak : int
        Largest memory, in bytes.
    error : str
        Of a process that failed.
    """

    seconds: float
    processor: float
    peak: int
    error: str = ""


def measured(table: Path, output: Path, ledger: Path) -> Measured:
    """Release a table of weeks worked at epsilon 1 in another process, with keyed noise."""
    before, start = os.times(), time.perf_counter()
    script = [sys.executable, "-c", PROGRAM, str(table), str(output), str(ledger)]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - start, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    if run.returncode:
        return Measured(seconds, processor, 0, run.stderr.strip()[-300:])
    return Measured(seconds, processor, int(run.stdout.split()[-1]))


def verified(table: Path, output: Path) -> float:
    """How far the mean of the noisy labels is from the private one, in standard errors of the record, once it verifies.

    Raises
    ------
    InvalidFile
        The record or its mechanism is not right, or the table is not the one that it describes.
    """
    record = load_release(record_path(output))
    record.verify_table(output)
    _ = record.drawn
    error = record.estimates.mean
    return abs(_mean(output) - _mean(table)) / (math.nan if error is None else error)


def _mean(path: Path) -> float:
    """Mean of the column of weeks, read in batches."""
    import pyarrow as pa
    import pyarrow.compute as pc

    total, rows = 0.0, 0
    for _, batch in open_table(path).batches(("weeks",)):
        column = batch.column(0)
        if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
            column = pc.cast(pc.cast(column, pa.string()), pa.float64())
        total += pc.sum(column).as_py()
        rows += len(column)
    return total / rows


def records(rows: Sequence[int], folder: Path) -> Iterator[dict[str, Any]]:
    """A release of every kind of table and number of rows."""
    for count in rows:
        for kind, ids in KINDS:
            table, output = folder / f"private.{kind}", folder / f"released.{kind}"
            # In another process: what it takes to make a table does not count.
            subprocess.run([sys.executable, "-m", "benchmarks.tables", str(table), str(count), ids], check=True)
            state = folder / f"state-{kind}-{ids}-{count}"
            state.mkdir(mode=0o700)
            found = measured(table, output, state / "ledger.sqlite")
            away = math.nan if found.error else verified(table, output)
            yield {
                "table": kind,
                "ids": ids,
                "rows": count,
                "seconds": found.seconds,
                "processor": found.processor,
                "rate": count / found.seconds,
                "processor_rate": count / found.processor,
                "megabytes": found.peak / MEGABYTE,
                "mean_in_deviations": away,
                "right": not found.error and away < DEVIATIONS,
                "verdict": found.error or _verdict(kind, ids, count, found, right=away < DEVIATIONS),
            }
            for path in folder.glob(f"*.{kind}*"):
                path.unlink()


def _verdict(kind: str, ids: str, rows: int, found: Measured, *, right: bool) -> str:
    missed = []
    if (kind, ids) == ("parquet", "integer") and rows > min(ROWS) and rows / found.seconds < GOAL_RATE:
        missed.append(f"below {rate(GOAL_RATE)} rows/s")
    if found.peak > GOAL_MEGABYTES * MEGABYTE:
        missed.append(f"above {GOAL_MEGABYTES:g} MB")
    return ("right" if right else "WRONG") + (f", but {' and '.join(missed)}" if missed else "")


def row(record: dict[str, Any]) -> tuple[str, ...]:
    """A record as cells."""
    return (
        record["table"],
        record["ids"],
        f"{record['rows']:,}",
        duration(record["seconds"]),
        duration(record["processor"]),
        rate(record["rate"]),
        rate(record["processor_rate"]),
        f"{record['megabytes']:.0f}",
        f"{record['mean_in_deviations']:.2f}",
        record["verdict"],
    )


def main(arguments: Sequence[str]) -> int:
    """Measure every size; 1 if an answer was wrong."""
    parser = options("release", __doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), nargs="+", help="numbers of rows")
    given = parser.parse_args(arguments)
    chosen = given.rows or (SMOKE_ROWS if given.smoke else ROWS)
    found = []
    with tempfile.TemporaryDirectory() as name:
        for record in records(chosen, Path(name)):
            print(*row(record), sep="  ", flush=True)
            found.append(record)
    print_table("Releases", COLUMNS, [row(record) for record in found])
    print(f"this process: {peak_memory() / MEGABYTE:.0f} MB")
    print(circumstances())
    write_json(given.results, "release-smoke" if given.smoke else "release", found)
    return int(not all(record["right"] for record in found))
