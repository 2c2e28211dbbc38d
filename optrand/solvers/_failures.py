"""Guarded calls of solvers: refuse other kinds of problems, and raise failures of libraries and arithmetic as one."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from optrand.errors import Infeasible, InvalidInput, OptrandError, SolverFailed
from optrand.model._problem import Problem
from optrand.model._randomizer import Solution


@contextmanager
def solver_failures(solver: object) -> Iterator[None]:
    """Around the work on a problem that a solver accepts.

    A number that leaves the range of floats becomes an infinity or a NaN, in silence: of such an answer there is no
    proof, and where it reaches a randomizer or its multipliers these refuse it, which is no fault of the problem.

    Raises
    ------
    SolverFailed
        In the place of numpy's, scipy's or Python's errors of arithmetic and of shape, and of `InvalidInput`. Their
        words are no help to users. The error itself is the cause.

    Examples
    --------
    >>> import numpy as np
    >>> with solver_failures("ReducedDual()"):
    ...     np.linalg.solve(np.zeros((2, 2)), np.ones(2))
    Traceback (most recent call last):
    optrand.errors.SolverFailed: ReducedDual() has no answer: numbers left the range or the precision of floats
    """
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    # That there is no feasible randomizer is a fact about the problem, not a failure in floats.
    except Infeasible:
        raise
    except (InvalidInput, ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        # Some of our own errors are RuntimeErrors or ValueErrors as well. Except for InvalidInput they say more than
        # the message below.
        if isinstance(error, OptrandError) and not isinstance(error, InvalidInput):
            raise
        name = type(solver).__name__ + "()" if not isinstance(solver, str) else solver
        raise SolverFailed(f"{name} has no answer: numbers left the range or the precision of floats") from error


class _SingleThread:
    """Limits BLAS to one thread while any solve runs, and restores its threads after the last one.

    The factorizations are of many small blocks. With a second thread they take longer, and on a busy machine up to
    twenty times as long, as threads wait for each other in a loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._limiter = _blas().limit(limits=1, user_api="blas")
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._limiter.restore_original_limits()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_SINGLE_THREAD = _SingleThread()


class GuardedSolver(ABC):
    """A solver that refuses problems that it does not accept, and states its time."""

    refusal: ClassVar[str]
    """Problems that the solver takes, in the words of an error."""

    @abstractmethod
    def accepts(self, problem: Problem) -> bool:
        """Return whether the problem is of the kind that this solver answers."""

    def _check(self, problem: Problem) -> None:
        """Refuse problems that are not to be solved."""
        if not self.accepts(problem):
            raise InvalidInput(self.refusal)

    @abstractmethod
    def _solution(self, problem: Problem) -> Solution:
        """Answer a problem that it accepts. Statistics without a name are this solver's own."""

    def __call__(self, problem: Problem) -> Solution:
        """Solve `problem`. The answer is a claim, to be certified.

        Raises
        ------
        InvalidInput
            A problem that it does not accept.
        SolverFailed
            If arithmetic in floats fails.
        """
        self._check(problem)
        start = time.perf_counter()
        with _SINGLE_THREAD, solver_failures(self):
            solution = self._solution(problem)
        # The answer of a solver that this one called keeps the name of that solver.
        name = solution.stats.solver or repr(self)
        stats = replace(solution.stats, solver=name, seconds=time.perf_counter() - start)
        return replace(solution, stats=stats)
