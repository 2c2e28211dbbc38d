"""The harness of all benchmarks: one table of cases and methods, one clock, one runner, and the peers' environments.

A benchmark is a module whose ``main`` is ``Benchmark(...).run``: rows that are measured one after the other, and tables
of their columns. A row that is not ``right`` makes the exit code 1. :func:`compare` makes the rows that
time solvers, from :class:`Case` and :class:`Method`: it solves in a process of its own, which is killed at the time
limit, and judges the answers off the clock. Building and compiling a program count, the import of libraries does not.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.raw import judge_table
from optrand import Mechanism, certify, solve
from optrand.errors import SolverFailed
from optrand.model._problem import Grid, Problem
from optrand.programs import Program
from optrand.programs._backends import Backend
from optrand.programs._certificate import Answer, Status
from optrand.studies._paths import count_outputs

RESULTS = Path(__file__).parent / "results"
"""Folder for the rows of benchmarks, not under version control."""

PEERS = Path(__file__).parent / "peers"
"""Scripts and pinned versions of other libraries."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a process with one thread of arithmetic: others take processor time while they wait."""

Row = dict[str, Any]
"""A record of one measurement. ``right`` is whether it is as expected. It counts as true if it is missing."""


# ---- tables


UNITS = {"time": "s", "rate": ""}
"""Formats of numbers with a prefix such as milli or mega, and their units."""

COLUMNS = {
    "k": "labels:,",
    "count": "count:,",
    "epsilon": "epsilon:g",
    "seconds": "time:time",
    "processor": "processor:time",
    "slowest": "slowest:time",
    "single": "one by one /s:rate",
    "batch": "in batches /s:rate",
    "draws": "draws per second:rate",
    "rate": "rows/s:rate",
    "processor_rate": "rows/s of processor:rate",
    "megabytes": "peak MB:.0f",
    "outputs": "outputs:,",
    "mesh": "mesh:,",
    "value": "value:.8g",
    "gap": "gap:.1e",
    "exact_gap": "exact gap:.1e",
    "excess": "above the optimum:.1e",
    "rows": "rows off by:.0e",
    "bias": "bias:.1e",
    "realised": "realised epsilon:.12g",
    "distance": "error:.0e",
    "status": "status",
}
"""Heading and format of columns that several benchmarks have. Any other is headed by its key, as it is."""


def cell(row: Mapping[str, Any], column: str) -> str:
    """Write the entry of a column, which is ``key`` or ``key:format``, or a dash if the row has no number.

    Examples
    --------
    >>> row = {"k": 4001, "seconds": 0.012, "gap": None, "share": 0.5}
    >>> [cell(row, column) for column in ("k", "seconds", "gap", "bias", "share:.0%")]
    ['4,001', '12.00 ms', '-', '-', '50%']
    """
    from matplotlib.ticker import EngFormatter

    key, _, form = column.partition(":")
    form = form or COLUMNS.get(key, "").partition(":")[2]
    value = row.get(key)
    if value is None or (form in UNITS and not math.isfinite(value)):
        return "-"
    return EngFormatter(UNITS[form], places=2)(value) if form in UNITS else format(value, form)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with text in its first and last column and numbers between them, as wide as needed in a file."""
    from rich.console import Console
    from rich.table import Table as Printed

    table = Printed(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in (0, len(columns) - 1) else "right")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, emoji=False)
    (console if console.is_terminal else Console(markup=False, emoji=False, width=200)).print(table)


def circumstances() -> str:
    """Describe the machine, its load, the cores in use, and the versions of the packages, on which times depend."""
    model, cpuinfo = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    packages = ("optrand", "highspy", "scipy", "clarabel", "cvxpy", "numpy")
    versions = ", ".join(f"{package} {find_version(package)}" for package in packages)
    return (
        f"{model}, Python {platform.python_version()}{load}; {cores} cores\n{versions}\nTimes are medians of few runs."
    )


def find_version(package: str) -> str:
    """Return the version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


# ---- the runner


def show_columns(title: str, columns: str, rows: Sequence[Row]) -> None:
    """Print a table of the rows that have its first column, if any, with columns separated by spaces."""
    names = columns.split()
    keys = [name.partition(":")[0] for name in names]
    mine = [[cell(row, name) for name in names] for row in rows if keys[0] in row]
    if mine:
        print_table(title, [COLUMNS.get(key, key).partition(":")[0].replace("_", " ") for key in keys], mine)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its rows, and tables of them by title, as :func:`show_columns` prints them.

    ``measure(options)`` yields rows, each as soon as it is known. ``arguments(parser)`` adds options. With `limit`
    there is an option ``--limit`` in seconds. With `one_core` this process and those that it starts keep to one core.
    """

    name: str
    summary: str | None
    measure: Callable[[Any], Iterable[Row]]
    tables: Mapping[str, str]
    limit: float | None = None
    arguments: Callable[[argparse.ArgumentParser], object] = lambda _: None
    one_core: bool = True

    def run(self, arguments: Sequence[str]) -> int:
        """Measure, print and leave the rows. Return 1 if a row is not right, or if there is no row."""
        summary = (self.summary or "").split("\n")[0]
        parser = argparse.ArgumentParser(prog=f"python -m benchmarks {self.name}", description=summary)
        parser.add_argument("--smoke", action="store_true", help="a small version, of a few seconds")
        parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the rows, as JSON")
        if self.limit is not None:
            parser.add_argument("--limit", type=float, default=self.limit, help=f"seconds of a solve ({self.limit:g})")
        self.arguments(parser)
        given = parser.parse_args(arguments)
        if self.one_core and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        rows = []
        for row in self.measure(given):
            rows.append(row)
            if not row.get("right", True):
                print(f"NOT RIGHT: {row}", flush=True)
        print(circumstances())
        for title, columns in self.tables.items():
            show_columns(title, columns, rows)
        # JSON has no numbers that are not finite.
        plain = [{k: v for k, v in row.items() if not isinstance(v, float) or math.isfinite(v)} for row in rows]
        content = {"circumstances": circumstances().splitlines(), "rows": plain}
        path = given.results / f"{self.name}{'-smoke' if given.smoke else ''}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        print(f"rows written to {path}")
        return 0 if rows and all(row.get("right", True) for row in rows) else 1


# ---- the clock


def peak_memory() -> int:
    """Return the most memory that this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # For a process that another one started, getrusage also counts the memory of that one.
        peaks = [line.split()[1] for line in status.read_text(encoding="ascii").splitlines() if line[:6] == "VmHWM:"]
        return 1024 * int(peaks[0])
    import resource

    return (1 if sys.platform == "darwin" else 1024) * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def median_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Return the median wall-clock time of `run` over `repeats` calls, after one that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Worker:
    """A process that answers calls one at a time, and is killed and replaced when one takes too long."""

    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def call(self, function: Callable[..., Any], *arguments: object, limit: float) -> tuple[Any, str]:
        """Return the value of the call and no error, or None and the error."""
        try:
            return self._process.submit(_answer, function, *arguments).result(limit)
        except TimeoutError:
            error = f"over the limit of {limit:g} s"
        except BrokenProcessPool:
            error = "the process died (out of memory?)"
        self.close()
        self.__init__()  # type: ignore[misc]
        return None, error

    def close(self) -> None:
        """End the process at any point of its work."""
        for process in (self._process._processes or {}).values():
            process.kill()
        self._process.shutdown()


def _answer(function: Callable[..., Any], *arguments: object) -> tuple[Any, str]:
    try:
        return function(*arguments), ""
    except (Exception, SystemExit) as error:
        return None, f"{type(error).__name__}: {error}"


_last: list[Any] = []
"""The last answer of a worker, which is judged there off the clock."""


def _solve(solver: Callable[[Any], Any], problem: Any) -> tuple[float, float]:
    """Solve a problem and keep the answer. Return the wall-clock time and the processor's time."""
    start, busy = time.perf_counter(), time.process_time()
    _last[:] = [solver(problem)]
    return time.perf_counter() - start, time.process_time() - busy


def _judge(judge: Callable[..., Row], problem: Any, optimum: float) -> Row:
    return judge(problem, *_last, optimum)


@dataclass(frozen=True)
class Clock:
    """How long and how often a solve is timed, in seconds.

    A run is killed at `limit`. The median of at most five runs counts, and a solve is not repeated once `patience`
    seconds are on the clock. Before them a `rehearsal` on a tiny problem pays for imports and compilation.
    """

    limit: float
    patience: float = 5.0
    rehearsal: float = 300.0

    def measure(self, worker: Worker, method: Method, case: Case, optimum: float = math.nan) -> Row:
        """Solve in a worker, and judge its last answer off the clock.

        Returns ``seconds``, ``processor`` and ``runs`` with the entries of the judge. If it fails ``seconds`` is None,
        and ``verdict`` the error.
        """
        failed: Row = {"seconds": None, "runs": 0, "right": method.is_peer}
        _, error = worker.call(_solve, method.solver, case.rehearsal, limit=self.rehearsal)
        if error:
            return failed | {"verdict": f"rehearsal: {error}"}
        times: list[tuple[float, float]] = []
        while len(times) < 5 and sum(one for one, _ in times) < self.patience:
            found, error = worker.call(_solve, method.solver, case.problem, limit=self.limit)
            if error:
                return failed | {"verdict": error}
            times.append(found)
        seconds, processor = (statistics.median(column) for column in zip(*times, strict=True))
        row = {"seconds": seconds, "processor": processor, "runs": len(times), "right": method.is_peer}
        judged, error = worker.call(_judge, method.judge, case.problem, optimum, limit=self.rehearsal)
        return row | ({"verdict": error, "right": False} if error else judged)


# ---- cases and methods


GAP = 1e-9
"""Relative gap within which an exact mechanism must be proven, or its time does not count."""


def solve_and_certify(problem: Problem) -> Mechanism:
    """Solve and prove, as a user does."""
    mechanism = solve(problem)
    certify(mechanism)
    return mechanism


def prove(_problem: Any, answer: Mechanism | Sequence[Mechanism], _optimum: float = math.nan) -> Row:
    """Certify our mechanism, or several: a row is right if all are proven."""
    gaps, outputs, doubts = [], [], list[str]()
    mechanisms = [answer] if isinstance(answer, Mechanism) else answer
    for mechanism in mechanisms:
        proof = certify(mechanism)
        doubts += proof.findings
        gaps.append(math.inf if proof.findings else proof.gap)
        outputs.append(count_outputs(mechanism))
    missed = sum(gap > GAP for gap in gaps)
    doubts += [f"{missed} of {len(gaps)} not proven within {GAP:g}"] * (missed > 0)
    return {
        "value": mechanisms[0].value,
        "lower": proof.lower,
        "upper": proof.upper,
        "exact_gap": max(gaps),
        "outputs": max(outputs),
        "megabytes": peak_memory() / 1e6,
        "right": not missed,
        "proven": not missed,
        "verdict": "; ".join(doubts) or f"proven within {GAP:g}",
    }


def solve_program(state: Callable[[Problem], Program], backend: Backend, problem: Problem) -> Answer:
    """State a program of a problem, solve it, and return the engine's own answer, unchecked."""
    answer = state(problem).solve(backend)
    if not answer.point.size:
        raise SolverFailed(f"{answer.backend} ended with the status {answer.message!r} and no answer to read")
    return answer


def show(problem: Problem, answer: Answer, optimum: float) -> Row:
    """Judge the unrepaired table of an engine beside the proven optimum. No result makes the row wrong."""
    outputs = problem.outputs.values if isinstance(problem.outputs, Grid) else problem.labels
    return judge_table(problem, outputs, answer.table, optimum) | describe(answer)


def describe(answer: Answer) -> Row:
    """Return the status that the engine reported."""
    return {"status": answer.message, "said_optimal": answer.status is Status.OPTIMAL}


@dataclass(frozen=True)
class Method:
    """A way to solve: ``solver(problem)`` in another process, judged there by ``judge(problem, answer, optimum)``.

    A peer is not run beyond `largest` labels.
    """

    name: str
    solver: Callable[[Any], Any]
    judge: Callable[[Any, Any, float], Row] = prove
    is_peer: bool = False
    largest: float = math.inf


@dataclass(frozen=True)
class Case:
    """A problem to solve, and a tiny one of the same kind for the rehearsal.

    `key` holds the columns that name the case. A peer that went over the limit at some `size` is not run again. With
    `fresh` a process of its own solves the case, so that its peak of memory is known.
    """

    key: Row
    problem: Any
    rehearsal: Any
    size: str = ""
    fresh: bool = False


def compare(cases: Iterable[Case], methods: Sequence[Method], clock: Clock) -> Iterator[Row]:
    """Yield a row for each case and method. Ours are measured first, and their optimum judges the peers."""
    shared, late = Worker(), dict[str, str]()
    for case in cases:
        worker = Worker() if case.fresh else shared
        found, optimum = dict[str, Row](), math.nan
        for method in sorted(methods, key=lambda one: one.is_peer):
            if case.key.get("k", 0) > method.largest:
                continue
            row: Row = {"method": method.name, **case.key, "limit": clock.limit}
            if method.name in late:
                row |= {"seconds": None, "runs": 0, "right": True, "verdict": f"not run again: {late[method.name]}"}
            else:
                row |= clock.measure(worker, method, case, optimum)
                if not method.is_peer:
                    optimum = row.get("value", math.nan)
                elif not row["runs"]:
                    late[method.name] = f"{row['verdict']} at {case.size}"
            found[method.name] = row
        yield from (found[method.name] for method in methods if method.name in found)
        if case.fresh:
            worker.close()
    shared.close()


# ---- environments of the peers


def add_setup(parser: argparse.ArgumentParser) -> None:
    """Add the option that installs the peers."""
    parser.add_argument("--setup-peers", action="store_true", help="install the other libraries first")


@dataclass(frozen=True)
class Peer:
    """Another library in an environment of its own, with pinned versions: made once, called over a pipe."""

    name: str

    @property
    def _python(self) -> Path:
        return RESULTS / "peers" / self.name / "bin" / "python"

    def set_up(self) -> None:
        """Make the environment anew. An error is left in its log."""
        folder, log = RESULTS / "peers" / self.name, RESULTS / "peers" / f"{self.name}.log"
        folder.parent.mkdir(parents=True, exist_ok=True)
        print(f"installing {self.name} ...", flush=True)
        requirements = str(PEERS / f"{self.name}.txt")
        install = [str(self._python), "-m", "pip", "install", "--quiet", "--requirement", requirements]
        with log.open("w") as stream:
            for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
                if subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False).returncode:
                    print(f"{self.name} could not be installed: see {log}")
                    return

    def run(self, script: str, *arguments: str, limit: float) -> Row:
        """Return the JSON that a script of the folder ``peers`` prints on its last line, or ``{"error": ...}``."""
        if not self._python.exists():
            return {"error": "not installed: run with --setup-peers"}
        command = [str(self._python), str(PEERS / script), *arguments]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"error": f"over the limit of {limit:g} s"}
        if run.returncode:
            return {"error": run.stderr.strip()[-300:] or f"exit code {run.returncode}"}
        answer: Row = json.loads(run.stdout.splitlines()[-1])
        return answer
