"""Releases on Spark, on the cores of this machine: rows a second, by the stages of a release.

The table has ids and labels drawn from the histogram of weeks worked, and a column that is copied. Two passes and the
check of ids are of Spark; the noise is randomized response's, so that solving takes no part in it. Run it as
``python -m benchmarks.release_spark``: it needs pyspark and Java.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.harness import duration, options, print_table, rate, write_json
from optrand import rr, tabulate
from optrand.data import weeks_worked_counts_path
from optrand.release.baseline_job import BaselineJob
from optrand.release.spark import randomize
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions

__all__ = ["missing", "reading", "write_table"]

ROWS, SMOKE = 10_000_000, 20_000
FILES = 8
SEED = 53
COLUMNS = ("ids", "rows", "reading", "drawing and writing", "all", "rows a second")


def missing() -> str | None:
    """What keeps Spark from running here, if anything."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: make spark"
    return None if shutil.which("java") else "java is not installed: make system-deps"


def write_table(folder: Path, rows: int, *, text: bool) -> None:
    """Write a table of private labels as several Parquet files."""
    rng = np.random.default_rng(SEED)
    labels, counts = np.loadtxt(weeks_worked_counts_path(), delimiter=",", skiprows=1).T
    folder.mkdir()
    for part in range(FILES):
        size = rows // FILES
        ids = pa.array(np.arange(part * size, (part + 1) * size) * 7 + 3)
        weeks = rng.choice(labels.astype(np.int64), size, p=counts / counts.sum())
        if text:
            ids = pa.compute.binary_join_element_wise("p", ids.cast(pa.string()), "")
        table = pa.table({"person": ids, "weeks": weeks, "copied": rng.random(size)})
        pa.parquet.write_table(table, folder / f"{part}.parquet")


def reading(session: Any, rows: int, *, text: bool) -> dict[str, Any]:
    """Seconds of one release, by its stages."""
    labels = np.arange(53.0)
    job = BaselineJob(labels=labels, randomizer=tabulate(rr(labels, epsilon=1.0)))
    task = TableJob(job=job, column="weeks", options=TableOptions(id_column="person"))
    told: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder, "private"), rows, text=text)
        frame = session.read.parquet(f"{folder}/private")
        randomize(
            frame,
            Path(folder, "noisy"),
            task,
            announce=lambda words: told.append((words, time.perf_counter())),
            warn=lambda _: None,
        )
        told.append(("done", time.perf_counter()))
    stages = {words: end - start for (words, start), (_, end) in itertools.pairwise(told)}
    seconds = told[-1][1] - told[0][1]
    return {
        "ids": "text" if text else "integers",
        "rows": rows // FILES * FILES,
        "reading": stages["reading the table"],
        "drawing": stages["drawing labels"] + stages["writing"],
        "seconds": seconds,
        "rate": rows / seconds,
    }


def main(arguments: Sequence[str]) -> int:
    """Print and leave the rows; 0 where Spark is not installed, and it says so."""
    chosen = options("release_spark", __doc__).parse_args(arguments)
    name = "release_spark-smoke" if chosen.smoke else "release_spark"
    lacking = missing()
    if lacking is not None:
        print(lacking)
        return 0
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("optrand")
    for option, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.io.encryption.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(option, value)
    session = builder.getOrCreate()
    try:
        # Virtual machine and Python processes are started before anything is timed.
        reading(session, SMOKE, text=False)
        rows = [reading(session, SMOKE if chosen.smoke else ROWS, text=text) for text in (False, True)]
    finally:
        session.stop()
    write_json(chosen.results, name, rows)
    print_table("Releases on Spark, local[*]", COLUMNS, [_cells(row) for row in rows])
    return 0


def _cells(row: dict[str, Any]) -> list[str]:
    seconds = [duration(row[name]) for name in ("reading", "drawing", "seconds")]
    return [row["ids"], f"{row['rows']:,}", *seconds, rate(row["rate"])]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
