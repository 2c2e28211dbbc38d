"""What the benchmarks share: options, timing by medians, the machine, tables, and rows that are left as files."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = [
    "RESULTS",
    "circumstances",
    "duration",
    "machine",
    "median_seconds",
    "options",
    "print_table",
    "rate",
    "use_one_core",
    "write_json",
]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process with one thread of arithmetic: others would take processor time while they wait."""

RESULTS = Path(__file__).parent / "results"
"""Where benchmarks may leave files; not under version control."""

FILE_WIDTH = 200
"""Columns of a table that is not printed on a terminal."""


def options(name: str, summary: str | None, *, limit: float | None = None) -> argparse.ArgumentParser:
    """What every benchmark with rows takes: a small version, a time limit if it has one, and where its files go."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=(summary or "").split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="a small version, of a few seconds")
    if limit is not None:
        parser.add_argument("--limit", type=float, default=limit, help=f"seconds for each solve (default: {limit:g})")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where rows are left as JSON, and pictures")
    return parser


def median_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The median wall-clock time of `run` over `repeats` calls, after one that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rate(per_second: float | None) -> str:
    """A number of events a second for a table: ``37.2 M``, ``1.40 M``, ``15.0 k``.

    Examples
    --------
    >>> rate(37_215_000), rate(14_960), rate(None)
    ('37.2 M', '15.0 k', '-')
    """
    if per_second is None:
        return "-"
    scale, unit = (1e6, "M") if per_second >= 1e6 else (1e3, "k")
    return f"{per_second / scale:.3g} {unit}" if per_second < 10 * scale else f"{per_second / scale:.1f} {unit}"


def use_one_core() -> None:
    """Keep this process, and those that it starts, to one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def machine() -> str:
    """The processor and the Python that a time was measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {platform.python_implementation()} {platform.python_version()}"


def duration(seconds: float) -> str:
    """A time for a table.

    Examples
    --------
    >>> [duration(t) for t in (0.0000931, 0.0123, 2.5, 61.2)]
    ['93.1 µs', '12.3 ms', '2.5 s', '61.2 s']
    """
    if not math.isfinite(seconds):
        return "-"
    scale, unit = (1e6, "µs") if seconds < 1e-3 else (1e3, "ms") if seconds < 1 else (1.0, "s")
    return f"{seconds * scale:.3g} {unit}"


def circumstances() -> str:
    """What times depend on: the machine, its load, the cores in use, and the versions of what was measured."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    packages = ("optrand", "highspy", "scipy", "clarabel", "cvxpy", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    used = "one core" if cores == 1 else f"{cores} cores"
    return f"{machine()}{load}; {used}\n{versions}\nTimes are noisy medians of few runs."


def write_json(directory: Path, name: str, records: Sequence[dict[str, Any]]) -> None:
    """Leave the rows where a script can read them."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    content = {"circumstances": circumstances().splitlines(), "rows": [_plain(record) for record in records]}
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(f"rows written to {path}")


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Infinite and missing numbers as null, which strict readers take."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, and so is the last, all others are numbers.

    A table that goes to a file is as wide as it needs to be. Brackets and colons in cells are printed as they are.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in (0, len(columns) - 1) else "right")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(markup=False, emoji=False, width=FILE_WIDTH)
    console.print(table)
