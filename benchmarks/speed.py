"""How long the best randomizers take: every row with a limit, a median time, and the proof that makes it count.

Each row is solved in one warm process, five times; the clock runs over `solve` and `certify`, so that building,
solving, polishing and proving are all in it, and `tabulate` is timed beside it. What counts is the exact mechanism: its
verified gap must be within 1e-9 (1e-8 from epsilon 6 on), relative, or the time does not count. The processor's time
stands beside the clock's: where it is much less, the machine had other things to do. Rows with a memory limit run in a
fresh process each, and their peak is that of the whole process, libraries and the exact table included.

Labels are 0 ... k-1. The priors are those of `benchmarks.priors`; beyond 401 labels "log-normal" stands for revenue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.clock import Reading, read_clock, required_gap
from benchmarks.harness import circumstances, duration, options, print_table, write_json
from benchmarks.worker import Worker
from optrand import feasible_output_set, regression, unbiased_regression
from optrand.base.validation import Floats
from optrand.model.problem import Problem

__all__ = ["PRIORS", "Task", "judged", "tasks"]

REPEATS = 5
PATIENCE = 120.0
"""Seconds on the clock after which a row is not repeated."""

PENALTIES = np.concatenate(([0.0], np.geomspace(1e-3, 1e5, 23), [math.inf]))
MEGABYTE = 1e6

PRIORS: dict[str, Callable[[int], Floats]] = {
    "Dirichlet": priors.dirichlet,
    "exponential": priors.exponential,
    "spike": priors.spike,
    "revenue": priors.revenue,
    "log-normal": priors.log_normal,
    "weeks": priors.weeks,
}
COLUMNS = (
    "what",
    "prior",
    "epsilon",
    "at most",
    "median",
    "ratio",
    "processor",
    "runs",
    "tabulate",
    "outputs",
    "peak",
    "exact gap",
    "verdict",
)


@dataclass(frozen=True)
class Task:
    """A row of the table: problems to solve one after the other, and the limits.

    Attributes
    ----------
    what, prior : str
    problems : tuple of Problem
    seconds : float
        The limit of the median.
    megabytes : float
        The limit of the peak, which is only looked at in a process of its own; infinite where there is none.
    """

    what: str
    prior: str
    problems: tuple[Problem, ...]
    seconds: float
    megabytes: float = math.inf


def posed(prior: str, k: int, epsilon: float, *, penalty: float = math.inf, mesh: int | None = None) -> Problem:
    """The problem of a named prior on the labels 0 ... k-1, on the line or, without bias, on a grid of `mesh` outputs.

    Examples
    --------
    >>> posed("weeks", 53, 1.0, mesh=52).outputs.values.size
    52
    """
    labels, chances = np.arange(float(k)), PRIORS[prior](k)
    if mesh is not None:
        return unbiased_regression(labels, chances, epsilon, outputs=feasible_output_set(labels, epsilon, mesh))
    return regression(labels, chances, epsilon, bias_penalty=penalty)


def tasks() -> Iterator[Task]:
    """The rows, small problems first."""
    for prior in ("weeks", "Dirichlet", "exponential", "spike"):
        yield Task("k = 53, line", prior, (posed(prior, 53, 1.0),), 0.03)
    for mesh in (52, 416, 1_664, 10_000):
        yield Task(f"k = 53, mesh {mesh:,}", "weeks", (posed("weeks", 53, 1.0, mesh=mesh),), 0.1)
    for epsilon, limit in ((0.1, 0.4), (1.0, 0.4), (4.0, 1.0), (8.0, 1.5)):
        for prior in ("Dirichlet", "exponential", "spike", "revenue"):
            yield Task("k = 401, line", prior, (posed(prior, 401, epsilon),), limit)
    yield Task("k = 53, 25 penalties", "weeks", tuple(posed("weeks", 53, 1.0, penalty=x) for x in PENALTIES), 1.0)
    for k, limit in ((401, 0.05), (4_001, 3.0)):
        for prior in ("Dirichlet", "exponential", "log-normal"):
            yield Task(f"k = {k:,}, RR-on-Bins", prior, (posed(prior, k, 1.0, penalty=0.0),), limit)
    large: tuple[tuple[int, float, float], ...] = ((1_001, 1.2, math.inf), (4_001, 6.0, 500.0), (10_001, 30.0, 1000.0))
    for k, limit, megabytes in large:
        for prior in ("Dirichlet", "exponential", "log-normal"):
            yield Task(f"k = {k:,}, line", prior, (posed(prior, k, 1.0),), limit, megabytes)


def small_tasks() -> Iterator[Task]:
    """A row of each kind, of some labels, that no time is too long for, and one that no machine can do in time."""
    penalties = tuple(posed("weeks", 12, 1.0, penalty=x) for x in PENALTIES[::8])
    yield Task("k = 12, line", "weeks", (posed("weeks", 12, 1.0),), math.inf)
    yield Task("k = 12, mesh 24", "weeks", (posed("weeks", 12, 1.0, mesh=24),), math.inf)
    yield Task("k = 12, 4 penalties", "weeks", penalties, math.inf)
    yield Task("k = 12, RR-on-Bins", "Dirichlet", (posed("Dirichlet", 12, 1.0, penalty=0.0),), math.inf)
    yield Task("k = 30, line", "revenue", (posed("revenue", 30, 6.0),), 0.0, math.inf)


def judged(task: Task, found: Reading) -> dict[str, Any]:
    """A row with its verdict, as one flat record."""
    memory = found.peak / MEGABYTE if math.isfinite(task.megabytes) else math.nan
    record: dict[str, Any] = {
        "what": task.what,
        "prior": task.prior,
        "epsilon": task.problems[0].epsilon,
        "limit": task.seconds,
        "seconds": found.median,
        "processor": found.median_processor,
        "runs": len(found.seconds),
        "tabulating": found.median_tabulating,
        "outputs": max(found.outputs, default=0),
        "megabytes": memory,
        "memory_limit": task.megabytes,
        "exact_gap": found.gap,
    }
    if found.error:
        return record | {"counts": False, "verdict": found.error}
    needed = [required_gap(problem) for problem in task.problems]
    missed = sum(gap > need for gap, need in zip(found.gaps, needed, strict=True))
    faults = []
    if missed:
        faults.append(f"does not count: {missed} of {len(needed)} not proven within {max(needed):g}")
    if found.median > task.seconds:
        faults.append("too slow")
    if memory > task.megabytes:
        faults.append("too much memory")
    return record | {"counts": not missed, "verdict": "; ".join(faults) or "within limits"}


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    start = [record["what"], record["prior"], f"{record['epsilon']:g}", duration(record["limit"])]
    if not record["runs"]:
        return [*start, *("-" * (len(COLUMNS) - 5)), record["verdict"]]
    ratio = f"{record['seconds'] / record['limit']:.2f}" if 0 < record["limit"] < math.inf else "-"
    peak = "-" if math.isnan(record["megabytes"]) else f"{record['megabytes']:.0f} of {record['memory_limit']:.0f} MB"
    return [
        *start,
        duration(record["seconds"]),
        ratio,
        duration(record["processor"]),
        str(record["runs"]),
        duration(record["tabulating"]),
        str(record["outputs"]),
        peak,
        f"{record['exact_gap']:.1e}",
        record["verdict"],
    ]


def records(posed_tasks: Sequence[Task], limit: float) -> Iterator[dict[str, Any]]:
    """One row after the other, in one warm process, or in a fresh one where memory is looked at."""
    shared = Worker()
    for task in posed_tasks:
        fresh = math.isfinite(task.megabytes)
        worker = Worker() if fresh else shared
        small = (posed("weeks", 5, 1.0), posed("weeks", 5, 1.0, mesh=9), posed("weeks", 5, 1.0, penalty=1.0))
        read_clock(worker, small, repeats=1, patience=0.0, limit=limit)
        found = read_clock(worker, task.problems, repeats=REPEATS, patience=PATIENCE, limit=limit)
        yield judged(task, found)
        if fresh:
            worker.close()
    shared.close()


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and return 1 if a row is not proven; no time is required."""
    parser = options("speed", __doc__, limit=120.0)
    parser.add_argument("--only", default="", help="only rows whose name holds this")
    given = parser.parse_args(arguments)
    chosen = [task for task in (small_tasks() if given.smoke else tasks()) if given.only in task.what]
    found = []
    for record in records(chosen, given.limit):
        found.append(record)
        print(f"{record['what']}, {record['prior']}, epsilon {record['epsilon']:g}: {record['verdict']}", flush=True)
    print_table(f"Solving and proving, seconds by the clock\n{circumstances()}", COLUMNS, [row(r) for r in found])
    within = sum(record["verdict"] == "within limits" for record in found)
    print(f"{within} of {len(found)} rows within their limits; {sum(record['counts'] for record in found)} proven")
    write_json(given.results, "speed-smoke" if given.smoke else "speed", found)
    return 0 if all(record["counts"] for record in found) else 1
