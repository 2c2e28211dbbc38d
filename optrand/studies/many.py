"""Many problems at once: each different one is solved once, on as many workers as an executor has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import closing
from typing import Literal, TypeVar, overload

from optrand.errors import InvalidInput, OptrandError, SomeFailed
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import Solver, solve

__all__ = ["completed", "solve_many"]

TASKS = 16
"""Tasks for each worker of an executor whose size is known, so that none is idle for long."""

LARGEST_TASK = 64
"""Problems in one task, at most."""

T = TypeVar("T")
R = TypeVar("R")


@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["raise"] = ...,
) -> list[Solution]: ...
@overload
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = ...,
    *,
    executor: Executor | None = ...,
    on_error: Literal["return"],
) -> list[Solution | OptrandError]: ...
def solve_many(
    problems: Iterable[Problem],
    solver: Solver | None = None,
    *,
    executor: Executor | None = None,
    on_error: Literal["raise", "return"] = "raise",
) -> list[Solution] | list[Solution | OptrandError]:
    """Best randomizers for many problems: priors of groups, users or rows, epsilons, penalties.

    Parameters
    ----------
    problems : iterable of Problem
        Equal ones are solved once.
    solver : Solver, optional
        As for :func:`optrand.solve`.
    executor : concurrent.futures.Executor, optional
        Solves in threads, processes or on a cluster; by default here, in turn. Of threads the kernels that numba
        compiles make use.
    on_error : {"raise", "return"}
        Whether to raise, once all others are solved, or to return an error in the place of its solution.

    Returns
    -------
    list of Solution
        In the order of the problems; each has been certified, as :func:`optrand.solve` does.

    Raises
    ------
    InvalidInput
        Something that is no problem, named by its position, before anything is solved.
    SomeFailed
        Problems without a certified answer, by their positions; all other solutions are attached as ``results``.

    Examples
    --------
    >>> import optrand
    >>> priors = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    >>> solutions = optrand.solve_many(optrand.unbiased_regression([0, 1, 2], prior, 1.0) for prior in priors)
    >>> [round(solution.value, 6) for solution in solutions], solutions[0] is solutions[2]
    ([1.945447, 1.945447, 1.945447], True)
    """
    if on_error not in ("raise", "return"):
        raise InvalidInput(f"on_error is {on_error!r}, expected 'raise' or 'return'")
    given = _checked(problems)
    different = list(dict.fromkeys(given))
    tasks = [(part, solver) for part in _parts(different, executor)]
    answers = dict[Problem, Solution | OptrandError]()
    with closing(completed(_solved, tasks, executor)) as done:
        for i, found in done:
            answers.update(zip(tasks[i][0], found, strict=True))
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
    function: Callable[[T], R], items: Sequence[T], executor: Executor | None
) -> Generator[tuple[int, R], None, None]:
    """Place and result of each item, in the order in which they are done.

    Closing the generator, or an exception of a task, cancels what has not begun.
    """
    if executor is None:
        for i, item in enumerate(items):
            yield i, function(item)
        return
    places = {}
    try:
        for i, item in enumerate(items):
            places[executor.submit(function, item)] = i
        for future in as_completed(places):
            yield places[future], future.result()
    finally:
        for future in places:
            future.cancel()


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


def _parts(problems: list[Problem], executor: Executor | None) -> Iterator[list[Problem]]:
    """Problems in tasks."""
    workers = getattr(executor, "_max_workers", 0)
    size = max(1, min(LARGEST_TASK, -(-len(problems) // (TASKS * workers)) if workers else 1))
    if executor is None:
        size = len(problems) or 1
    for start in range(0, len(problems), size):
        yield problems[start : start + size]


def _solved(task: tuple[list[Problem], Solver | None]) -> list[Solution | OptrandError]:
    """A solution, or why there is none, for each problem of a task."""
    problems, solver = task
    found = list[Solution | OptrandError]()
    for problem in problems:
        try:
            found.append(solve(problem, solver))
        except OptrandError as error:
            found.append(error)
    return found
