"""What the benchmarks share: timing by medians, one core, and tables."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["RESULTS", "machine", "median_seconds", "print_table", "rate", "use_one_core"]

RESULTS = Path(__file__).parent / "results"
"""Where benchmarks may leave files; not under version control."""

FILE_WIDTH = 200
"""Columns of a table that is not printed on a terminal."""


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


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, and so is the last, all others are numbers.

    A table that goes to a file is as wide as it needs to be.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in (0, len(columns) - 1) else "right")
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    console.print(table)
