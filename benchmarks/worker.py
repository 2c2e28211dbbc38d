"""Solves in a process of their own, which is killed when one takes too long, and their times."""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from optrand.errors import OptrandError
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import Solver

__all__ = ["OVER_LIMIT", "Measurement", "Worker", "measure", "said_optimal"]

PATIENCE = 5.0
"""Seconds after which a solve is not repeated for the sake of a median."""

REHEARSAL_LIMIT = 120.0
"""Seconds for the first import of a library and a tiny solve with it."""

OVER_LIMIT = "over the limit"


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
