"""Many problems at once: each distinct one is solved once, on the workers of an executor."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from contextlib import closing
from functools import partial
from typing import Literal, overload

from optrand.base._validation import check_real, expect, suggest_parameters
from optrand.errors import InvalidInput, OptrandError, OutOfTime, SomeFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem
from optrand.solvers import Solver, solve
from optrand.solvers._dispatch import check_solver

ProgressCallback = Callable[[int, int], object]
"""Function of the number of problems done and that of all."""

Answer = Mechanism | OptrandError


@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["raise"] = ...,
    time_limit: float = ...,
    progress: ProgressCallback | None = ...,
) -> list[Mechanism]: ...
@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["return"],
    time_limit: float = ...,
    progress: ProgressCallback | None = ...,
) -> list[Mechanism | OptrandError]: ...
@suggest_parameters
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = None,
    *,
    executor: Executor | None = None,
    on_error: Literal["raise", "return"] = "raise",
    time_limit: float = math.inf,
    progress: ProgressCallback | None = None,
) -> list[Mechanism] | list[Mechanism | OptrandError]:
    """Find the best mechanisms for many problems: priors of groups, users or rows, epsilons, penalties.

    Parameters
    ----------
    problems : iterable of Problem
        Equal ones are solved once.
    solver : Solver, optional
        As for :func:`optrand.solve`.
    executor : concurrent.futures.Executor, optional
        Solves in threads, processes or on a cluster, such as Dask's ``client.get_executor()``; by default in this
        process, one by one. Threads gain little.
    on_error : {"raise", "return"}
        Whether to raise, once all others are solved, or to return an error in the place of its mechanism.
    time_limit : float
        Seconds, checked between problems. When they have passed, no other is begun, and each without an answer has
        the error :class:`~optrand.errors.OutOfTime`. With an executor, tasks already running are not waited for; each
        worker checks the limit itself.
    progress : callable, optional
        Called with the number of different problems done and that of all, before the first and after each task.

    Returns
    -------
    list of Mechanism
        In the order of the problems; each is exact, as that of :func:`optrand.solve`.

    Raises
    ------
    InvalidInput
        An item that is not a problem, named by its position, or an invalid solver or time limit. It is raised before
        anything is solved.
    SomeFailed
        Problems without a certified answer, by their positions; all other mechanisms are attached as ``results``.

    Examples
    --------
    >>> import optrand
    >>> priors = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    >>> found = optrand.solve_many(
    ...     optrand.unbiased_regression([0, 1, 2], prior, 1.0) for prior in priors
    ... )
    >>> [round(mechanism.value, 6) for mechanism in found], found[0] is found[2]
    ([1.945447, 1.945447, 1.945447], True)
    """
    if on_error not in ("raise", "return"):
        raise InvalidInput(f"on_error is {on_error!r}, expected 'raise' or 'return'")
    check_solver(solver)
    # By the wall clock, which workers in other processes read as well.
    end = time.time() + _check_limit(time_limit)
    given = _check_problems(problems)
    late = OutOfTime(f"no answer within the time limit of {time_limit:g} s: pass a larger time_limit, or an executor")
    # Equal problems are one key. All are late until they are answered.
    answers = dict[Problem, Answer](dict.fromkeys(given, late))
    work = partial(_answer_all, solver=solver, end=end, late=late)
    parts = list(_parts(list(answers), executor))
    report, done = progress or (lambda *_: None), 0
    report(done, len(answers))
    with closing(_complete(work, parts, executor, end)) as results:
        for part, found in results:
            answers.update(zip(part, found, strict=True))
            done += len(found)
            report(done, len(answers))
    ordered = [answers[problem] for problem in given]
    failed = {i: result for i, result in enumerate(ordered) if isinstance(result, OptrandError)}
    if failed and on_error == "raise":
        first, error = next(iter(failed.items()))
        raise SomeFailed(
            f"{len(failed):,} of {len(ordered):,} problems have no certified answer, the first of them number {first} "
            f"({error}): pass on_error='return', or take the others from .results",
            ordered,
        ) from error
    return ordered


def _complete(
    work: Callable[[list[Problem]], list[Answer]], parts: list[list[Problem]], executor: Executor | None, end: float
) -> Generator[tuple[list[Problem], list[Answer]], None, None]:
    """Yield the problems of each task with their answers, in the order in which they are done.

    Closing the generator, an exception of a task, or the time `end` of :func:`time.time` cancels tasks of an executor
    that have not begun.
    """
    if executor is None:
        for part in parts:
            yield part, work(part)
        return
    # Tasks are submitted within the try, so that an interrupt cancels those that were.
    futures = {}
    try:
        for part in parts:
            futures[executor.submit(work, part)] = part
        left = None if end == math.inf else max(0.0, end - time.time())
        for future in as_completed(futures, timeout=left):
            yield futures[future], future.result()
    # Before the end it is an error of a task, after it that of as_completed.
    except TimeoutError:
        if time.time() < end:
            raise
    finally:
        for future in futures:
            future.cancel()


def _check_limit(time_limit: float) -> float:
    limit = time_limit if time_limit == math.inf else check_real(time_limit, "time_limit")
    if limit < 0:
        raise InvalidInput(f"time_limit is {limit:g}, expected seconds from 0 to math.inf")
    return limit


def _check_problems(problems: Iterable[Problem]) -> list[Problem]:
    if isinstance(problems, Problem) or not isinstance(problems, Iterable):
        raise InvalidInput(f"problems is of type {type(problems).__name__}, expected a list of them")
    given = list(problems)
    for i, problem in enumerate(given):
        way = "one of optrand.regression, optrand.unbiased_regression or optrand.classification"
        expect(problem, Problem, f"problem number {i}", way)
    return given


def _parts(problems: list[Problem], executor: Executor | None) -> Iterator[list[Problem]]:
    """Split problems into tasks: one each in this process, some for each worker of an executor."""
    size = 1
    if executor is not None:
        # 16 tasks for each worker, so that none is idle for long. An executor without a known size, such as
        # that of a cluster, is taken to have 16 workers.
        workers = getattr(executor, "_max_workers", 16)
        size = max(1, min(64, -(-len(problems) // (16 * workers))))
    for start in range(0, len(problems), size):
        yield problems[start : start + size]


def _answer_all(problems: list[Problem], solver: Solver | None, end: float, late: OutOfTime) -> list[Answer]:
    return [late if time.time() >= end else _answer(problem, solver) for problem in problems]


def _answer(problem: Problem, solver: Solver | None) -> Answer:
    try:
        return solve(problem, solver)
    except OptrandError as error:
        return error
