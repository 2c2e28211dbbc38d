"""Many problems at once: each different one is solved once, on as many workers as an executor has.

Problems that differ in prior and epsilon only are answered together where that is known how
(:mod:`optrand.solvers.batches`), the others one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import closing
from typing import Literal, NamedTuple, TypeVar, overload

from optrand.base.validation import real
from optrand.errors import InvalidInput, OptrandError, OutOfTime, SomeFailed
from optrand.mechanism.mechanism import Mechanism
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import Solver, solve
from optrand.solvers.batches import batch_key, solved_at_once
from optrand.solvers.dispatch import check_solver, exact_mechanism

__all__ = ["completed", "solve_many"]

TASKS = 16
"""Tasks for each worker of an executor whose size is known, so that none is idle for long."""

LARGEST_TASK = 64
"""Problems in one task, at most."""

WORKERS = 16
"""Workers that an executor is taken to have that does not tell, as that of a cluster."""

T = TypeVar("T")
R = TypeVar("R")


@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["raise"] = ...,
    time_limit: float = ...,
) -> list[Mechanism]: ...
@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["return"],
    time_limit: float = ...,
) -> list[Mechanism | OptrandError]: ...
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = None,
    *,
    executor: Executor | None = None,
    on_error: Literal["raise", "return"] = "raise",
    time_limit: float = math.inf,
) -> list[Mechanism] | list[Mechanism | OptrandError]:
    """Best randomizers for many problems: priors of groups, users or rows, epsilons, penalties.

    Parameters
    ----------
    problems : iterable of Problem
        Equal ones are solved once.
    solver : Solver, optional
        As for :func:`optrand.solve`.
    executor : concurrent.futures.Executor, optional
        Solves in threads, processes or on a cluster, such as Dask's ``client.get_executor()``; by default here, in
        turn. Of threads the kernels that numba compiles make use.
    on_error : {"raise", "return"}
        Whether to raise, once all others are solved, or to return an error in the place of its mechanism.
    time_limit : float
        Seconds, looked at between problems. When they have passed, no other is begun, and each without an answer has
        the error :class:`~optrand.errors.OutOfTime`. Of an executor running tasks are not waited for; workers look at
        their own clocks.

    Returns
    -------
    list of Mechanism
        In the order of the problems; each is exact, as that of :func:`optrand.solve`.

    Raises
    ------
    InvalidInput
        Something that is no problem, named by its position, or a solver or a time limit without meaning, before
        anything is solved.
    SomeFailed
        Problems without a certified answer, by their positions; all other mechanisms are attached as ``results``.

    Examples
    --------
    >>> import optrand
    >>> priors = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    >>> found = optrand.solve_many(optrand.unbiased_regression([0, 1, 2], prior, 1.0) for prior in priors)
    >>> [round(mechanism.value, 6) for mechanism in found], found[0] is found[2]
    ([1.945447, 1.945447, 1.945447], True)
    """
    if on_error not in ("raise", "return"):
        raise InvalidInput(f"on_error is {on_error!r}, expected 'raise' or 'return'")
    check_solver(solver)
    end = time.time() + _checked_limit(time_limit)
    given = _checked(problems)
    late = OutOfTime(f"no answer within the time limit of {time_limit:g} s: pass a larger time_limit, or an executor")
    answers = dict[Problem, Mechanism | OptrandError](dict.fromkeys(given, late))
    parts = _parts(_ordered(list(answers), solver), executor)
    tasks = [_Task(part, solver, end, late) for part in parts]
    with closing(completed(_solved, tasks, executor, end=end)) as done:
        for i, found in done:
            answers.update(zip(tasks[i].problems, found, strict=True))
    results = [answers[problem] for problem in given]
    failed = {i: result for i, result in enumerate(results) if isinstance(result, OptrandError)}
    if failed and on_error == "raise":
        first, error = next(iter(failed.items()))
        raise SomeFailed(
            f"{len(failed):,} of {len(results):,} problems have no certified answer, the first of them number {first} "
            f"({error}): pass on_error='return', or take the others from .results",
            results,
        ) from error
    return results


def completed(
    function: Callable[[T], R], items: Sequence[T], executor: Executor | None, *, end: float = math.inf
) -> Generator[tuple[int, R], None, None]:
    """Place and result of each item, in the order in which they are done.

    Closing the generator, an exception of a task, or the time `end` of an executor's, as of :func:`time.time`, cancels
    what has not begun. Without an executor functions look at the clock themselves.
    """
    if executor is None:
        for i, item in enumerate(items):
            yield i, function(item)
        return
    places = {}
    try:
        for i, item in enumerate(items):
            places[executor.submit(function, item)] = i
        left = None if end == math.inf else max(0.0, end - time.time())
        for future in as_completed(places, timeout=left):
            yield places[future], future.result()
    except TimeoutError:
        if time.time() < end:
            raise
    finally:
        for future in places:
            future.cancel()


class _Task(NamedTuple):
    """Problems for one worker, and the error of those that it has no time for after `end`."""

    problems: list[Problem]
    solver: Solver | None
    end: float
    late: OutOfTime


def _checked_limit(time_limit: float) -> float:
    limit = time_limit if time_limit == math.inf else real(time_limit, "time_limit")
    if limit < 0:
        raise InvalidInput(f"time_limit is {limit:g}, expected seconds from 0 to math.inf")
    return limit


def _checked(problems: Iterable[Problem]) -> list[Problem]:
    if isinstance(problems, Problem) or not isinstance(problems, Iterable):
        raise InvalidInput(f"problems is of type {type(problems).__name__}, expected a list of them")
    given = list(problems)
    for i, problem in enumerate(given):
        if not isinstance(problem, Problem):
            raise InvalidInput(
                f"problem number {i} is of type {type(problem).__name__}, expected one of optrand.regression, "
                "optrand.unbiased_regression or optrand.classification"
            )
    return given


def _ordered(problems: list[Problem], solver: Solver | None) -> list[Problem]:
    """Problems that are answered at once side by side, so that they meet in one task."""
    if solver is not None:
        return problems
    groups = dict[Hashable, list[Problem]]()
    for problem in problems:
        groups.setdefault(batch_key(problem), []).append(problem)
    return [problem for group in groups.values() for problem in group]


def _parts(problems: list[Problem], executor: Executor | None) -> Iterator[list[Problem]]:
    """Problems in tasks."""
    workers = getattr(executor, "_max_workers", WORKERS)
    size = max(1, min(LARGEST_TASK, -(-len(problems) // (TASKS * workers))))
    if executor is None:
        size = len(problems) or 1
    for start in range(0, len(problems), size):
        yield problems[start : start + size]


def _solved(task: _Task) -> list[Mechanism | OptrandError]:
    """Return a mechanism, or why there is none, for each problem of a task."""
    found = list[Mechanism | OptrandError]()
    for start in range(0, len(task.problems), LARGEST_TASK):
        some = task.problems[start : start + LARGEST_TASK]
        late = time.time() >= task.end
        known = solved_at_once(some) if task.solver is None and not late else [None] * len(some)
        found += [_answer(problem, task, answer) for problem, answer in zip(some, known, strict=True)]
    return found


def _answer(problem: Problem, task: _Task, known: Solution | None) -> Mechanism | OptrandError:
    """Return a mechanism, or why there is none; `known` is a candidate that a batch has found."""
    if known is None and time.time() >= task.end:
        return task.late
    try:
        return solve(problem, task.solver) if known is None else exact_mechanism(known)
    except OptrandError as error:
        return error
