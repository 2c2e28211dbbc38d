"""Rows per second and peak memory of a release, for tables of up to 100 million rows with the weeks worked.

A keyed release, charged to a ledger, runs in a process of its own: CSV and Parquet, ids that are integers or text. Its
result is checked: the record verifies with the table, and the mean of the noisy labels is that of the private ones,
within six of the standard errors that the record states.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Row
from optrand.cli._reading import parse_labels, read_prior
from optrand.data import weeks_worked_counts_path
from optrand.release import load_release
from optrand.release._files import record_path
from optrand.release._tables import open_table

PROGRAM = """
import atexit
from optrand.cli import main
# The harness is not imported, since its memory would count.
peak = lambda: [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")][0]
atexit.register(lambda: print(peak()))
main()
"""
RELEASE = ("--column", "weeks", "--labels", "0:52", "--epsilon", "1", "--ids", "id", "--dataset", "census", "--ledger")
TABLE = (
    "import sys; from benchmarks.release import *; write_table(Path(sys.argv[1]), int(sys.argv[2]), ids=sys.argv[3])"
)


def write_table(path: Path, rows: int, *, ids: str = "integer") -> None:
    """Write columns `id`, `weeks` and `age` as CSV or Parquet, by the end of the name, block by block."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    named = pa.int64() if ids == "integer" else pa.string()
    schema = pa.schema([("id", named), ("weeks", pa.int8()), ("age", pa.int8())])
    prior = read_prior(weeks_worked_counts_path(), parse_labels("0:52"))
    rng, block = np.random.default_rng(rows), 1 << 20
    writer: Any = pq.ParquetWriter(path, schema) if path.suffix == ".parquet" else pyarrow.csv.CSVWriter(path, schema)
    with writer:
        for start in range(0, rows, block):
            places = np.arange(start, min(rows, start + block), dtype=np.uint64)
            # Multiples of an odd number modulo a power of two are distinct, and out of order.
            spread = ((places * np.uint64(6364136223846793005)) & np.uint64((1 << 62) - 1)).astype(np.int64)
            names = pa.array(spread) if ids == "integer" else pa.array([f"u{each:x}" for each in spread.tolist()])
            weeks = rng.choice(prior.size, places.size, p=prior).astype(np.int8)
            ages = rng.integers(0, 90, places.size).astype(np.int8)
            writer.write(pa.record_batch([names, pa.array(weeks), pa.array(ages)], schema=schema))


def measure_release(table: Path, output: Path, ledger: Path) -> Row:
    """Release a table of weeks worked at epsilon 1 in another process, and check its output."""
    before, start = os.times(), time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "randomize", str(table), str(output), *RELEASE, str(ledger)],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds, after = time.perf_counter() - start, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    row: Row = {"seconds": seconds, "processor": processor}
    if run.returncode:
        return row | {"right": False, "verdict": run.stderr.strip()[-300:]}
    record = load_release(record_path(output))
    record.verify_table(output)
    error = math.nan if record.estimates.mean is None else record.estimates.mean
    away = abs(_mean(output) - _mean(table)) / error
    row |= {"megabytes": int(run.stdout.split()[-1]) * 1024 / 1e6, "deviations": away, "right": away < 6}
    return row | {"verdict": "right" if row["right"] else "WRONG MEAN"}


def _mean(path: Path) -> float:
    import pyarrow as pa
    import pyarrow.compute as pc

    total, rows = 0.0, 0
    for _, batch in open_table(path).batches(("weeks",)):
        column = pc.cast(pc.cast(batch.column(0), pa.string()), pa.float64())
        total, rows = total + pc.sum(column).as_py(), rows + len(column)
    return total / rows


def measure(given: Any) -> Iterator[Row]:
    """Release every kind of table and number of rows."""
    for rows in given.rows or ((20_000,) if given.smoke else (1_000_000, 10_000_000, 100_000_000)):
        for kind, ids in (("parquet", "integer"), ("parquet", "text"), ("csv", "integer"), ("csv", "text")):
            with tempfile.TemporaryDirectory() as name:
                table, output, ledger = (Path(name, one) for one in (f"private.{kind}", f"out.{kind}", "ledger.sqlite"))
                # In another process, since the memory that makes a table does not count.
                subprocess.run([sys.executable, "-c", TABLE, str(table), str(rows), ids], check=True)
                row: Row = {"table": kind, "ids": ids, "count": rows} | measure_release(table, output, ledger)
                yield row | {"rate": rows / row["seconds"], "processor_rate": rows / row["processor"]}


def arguments(parser: Any) -> None:
    """Add the numbers of rows."""
    parser.add_argument("--rows", type=lambda text: int(float(text)), nargs="+", help="numbers of rows")


TABLES = {
    "Releases (deviations of the mean in standard errors)": (
        "table ids count seconds processor rate processor_rate megabytes deviations:.2f verdict"
    ),
}
main = Benchmark("release", __doc__, measure, TABLES, arguments=arguments, one_core=False).run
