"""The optimal unbiased randomizer of a real prior on finer and finer grids, and on the real line.

Weeks worked (53 labels), epsilon 1, half squared error; grids by Algorithm 2 of [B23]. The paper's program, with a row
for every pair of labels, goes to cvxpy; the floor form to HiGHS; `ColumnGeneration` makes columns when a certificate
asks for them; `Flow` needs no grid. Every solve runs in a process of its own that is killed at the time limit:
building, compiling and reading a program count, the import of libraries does not. Every answer is certified, in floats
and as the exact mechanism that is made from it.

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import RESULTS, machine, print_table, use_one_core
from optrand import certify, feasible_output_set, tabulate, unbiased_regression
from optrand.certificate import Certificate
from optrand.errors import OptrandError
from optrand.problem import Problem
from optrand.programs import Floor, Pairwise
from optrand.solution import Solution
from optrand.solvers import ColumnGeneration, Flow, LinearProgram, Solver
from optrand.solvers.backends import Cvxpy, Highs

__all__ = [
    "OVER_LIMIT",
    "Measurement",
    "Worker",
    "circumstances",
    "duration",
    "measure",
    "said_optimal",
    "weeks_problem",
    "write_json",
]

EPSILON = 1.0
MESHES = (52, 416, 1_664)
REQUIRED_GAP = 1e-6
"""What our own solvers must prove, or the benchmark fails."""

PATIENCE = 5.0
"""Seconds after which a solve is not repeated for the sake of a median."""

REHEARSAL_LIMIT = 120.0
"""Seconds for the first import of a library and a tiny solve with it."""

OVER_LIMIT = "over the limit"

ON_GRIDS: dict[str, Solver] = {
    "pairwise, cvxpy (Clarabel)": LinearProgram(Pairwise(), Cvxpy()),
    "pairwise, cvxpy (HiGHS)": LinearProgram(Pairwise(), Cvxpy("HIGHS")),
    "floor, HiGHS": LinearProgram(Floor(), Highs()),
    "column generation": ColumnGeneration(),
}
ON_THE_LINE: dict[str, Solver] = {"real line, Flow": Flow()}
OURS = ("column generation", "real line, Flow")
COLUMNS = ("method", "mesh", "time", "runs", "time / line", "value", "verified gap", "exact gap", "said", "verdict")


class Worker:
    """A process that answers calls one at a time, and is killed and replaced when one takes too long."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, function: Callable[..., Any], *arguments: object, limit: float) -> tuple[Any, str]:
        """What `function` returned and no error, or None and what went wrong."""
        try:
            self._connection.send((function, arguments))
            if self._connection.poll(limit):
                answer: tuple[Any, str] = self._connection.recv()
                return answer
            error = f"{OVER_LIMIT} of {limit:g} s"
        except (EOFError, ConnectionError):
            error = "the process died (out of memory?)"
        self.close()
        self._start()
        return None, error

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _serve(connection: Connection[Any, Any]) -> None:
    """Answer calls until nobody is left to ask."""
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = function(*arguments), ""
        except (OptrandError, MemoryError, ArithmeticError, ValueError) as error:
            answer = None, f"{type(error).__name__}: {error}"
        connection.send(answer)


def timed(solver: Solver, problem: Problem) -> tuple[float, Solution]:
    """A solve and its wall-clock time."""
    start = time.perf_counter()
    solution = solver(problem)
    return time.perf_counter() - start, solution


@dataclass(frozen=True)
class Measurement:
    """Times of one solver on one problem, and its answer; or why there is none."""

    times: tuple[float, ...]
    solution: Solution | None
    error: str = ""

    @property
    def seconds(self) -> float:
        """The median time; infinite if no solve ended."""
        return statistics.median(self.times) if self.times else math.inf


def measure(worker: Worker, solver: Solver, problem: Problem, *, rehearsal: Problem, limit: float) -> Measurement:
    """Solve in the worker, up to five times while that is quick; a tiny rehearsal before it pays for imports."""
    _, error = worker.call(timed, solver, rehearsal, limit=REHEARSAL_LIMIT)
    if error:
        return Measurement((), None, f"rehearsal: {error}")
    times: list[float] = []
    solution = None
    while len(times) < 5 and sum(times) < PATIENCE:
        answer, error = worker.call(timed, solver, problem, limit=limit)
        if error:
            break
        seconds, solution = answer
        times.append(seconds)
    return Measurement(tuple(times), solution, "" if times else error)


def said_optimal(solution: Solution) -> bool:
    """Whether the engine itself claims success, in the words of each."""
    status = solution.stats.status.lower()
    return status in ("optimal", "solved", "closed form") or status.startswith("optimization terminated successfully")


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
    """What times depend on: the machine, its load, and the versions of what was measured."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    packages = ("optrand", "highspy", "scipy", "clarabel", "cvxpy", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return (
        f"{machine()}{load}; one core\n{versions}\nTimes are noisy medians of few runs; gaps are verified on every run."
    )


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


def weeks_problem(mesh: int | None, k: int = priors.WEEKS) -> Problem:
    """The unbiased problem of the weeks-worked prior on `mesh` outputs ([B23], Algorithm 2), or on the line for None.

    Examples
    --------
    >>> weeks_problem(None).k, weeks_problem(52).outputs.values.size
    (53, 52)
    """
    labels = np.arange(float(k))
    outputs = None if mesh is None else feasible_output_set(labels, EPSILON, mesh)
    return unbiased_regression(labels, priors.weeks(k), EPSILON, outputs=outputs)


def exact_proof(solution: Solution) -> tuple[Certificate | None, str]:
    """The certificate of the exact mechanism made from an answer, or why none could be made."""
    try:
        return certify(tabulate(solution)), ""
    except OptrandError as error:
        return None, str(error)


def judged(method: str, mesh: int | None, found: Measurement) -> dict[str, Any]:
    """A measurement with its certificates, as one flat record."""
    record: dict[str, Any] = {"method": method, "mesh": mesh, "seconds": found.seconds, "runs": len(found.times)}
    if found.solution is None:
        return record | {"verdict": found.error}
    proof = certify(found.solution)
    exact, refusal = exact_proof(found.solution)
    exact_gap = math.inf if exact is None or exact.findings else exact.gap
    closed = exact_gap <= REQUIRED_GAP
    doubts = [*proof.findings, *(exact.findings if exact else (refusal,))]
    verdict = "; ".join(
        (*doubts, "the exact mechanism closes") if closed else (*doubts, f"not closed within {REQUIRED_GAP:g}")
    )
    return record | {
        "value": found.solution.value,
        "gap": proof.gap,
        "exact_gap": exact_gap,
        "lower": proof.lower,
        "upper": proof.upper if exact is None else exact.upper,
        "status": found.solution.stats.status,
        "said_optimal": said_optimal(found.solution),
        "verdict": verdict if doubts or not closed else f"proven within {REQUIRED_GAP:g}",
    }


def row(record: dict[str, Any], line: float) -> list[str]:
    """A row of the table."""
    mesh = "none" if record["mesh"] is None else f"{record['mesh']:,}"
    if "value" not in record:
        return [record["method"], mesh, *("-" * 7), record["verdict"]]
    ratio = f"{record['seconds'] / line:.3g}" if math.isfinite(line) else "-"
    gaps = [f"{record[name]:.1e}" for name in ("gap", "exact_gap")]
    start = [record["method"], mesh, duration(record["seconds"]), str(record["runs"]), ratio]
    return [*start, f"{record['value']:.4f}", *gaps, record["status"], record["verdict"]]


def records(k: int, meshes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """Every method on every grid, then the line."""
    worker = Worker()
    tasks = [(method, solver, mesh) for mesh in meshes for method, solver in ON_GRIDS.items()]
    for method, solver, mesh in [*tasks, *((name, solver, None) for name, solver in ON_THE_LINE.items())]:
        print(f"{method}, mesh {mesh or 'none'} ...", flush=True)
        rehearsal = weeks_problem(None if mesh is None else 5, k=3)
        yield judged(method, mesh, measure(worker, solver, weeks_problem(mesh, k), rehearsal=rehearsal, limit=limit))
    worker.close()


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and return 1 if an answer of ours is not proven."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mesh", description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version, of a few seconds")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each solve (default: 60)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the rows are left as JSON")
    options = parser.parse_args(arguments)
    use_one_core()
    k, meshes = (6, (8, 24)) if options.smoke else (priors.WEEKS, MESHES)
    found = list(records(k, meshes, options.limit))
    line = next(record["seconds"] for record in found if record["mesh"] is None)
    title = f"Optimal unbiased randomizers of {k} labels, weeks worked, epsilon {EPSILON:g}, half squared error"
    print_table(f"{title}\n{circumstances()}", COLUMNS, [row(record, line) for record in found])
    write_json(options.results, "mesh-smoke" if options.smoke else "mesh", found)
    proven = [record.get("exact_gap", math.inf) <= REQUIRED_GAP for record in found if record["method"] in OURS]
    return 0 if all(proven) else 1
