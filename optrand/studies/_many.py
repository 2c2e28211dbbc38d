"""Many problems at once, each distinct one solved once, on the workers of an executor, and sweeps, tables of them."""

from __future__ import annotations

import importlib
import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import check_real, expect, suggest_parameters
from optrand.certificates._certificate import Certificate
from optrand.errors import Infeasible, InvalidInput, OptrandError, OutOfTime, SomeFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem
from optrand.solvers import Solver, solve
from optrand.solvers._dispatch import USEFUL_GAP, check_solver
from optrand.studies._paths import count_outputs

ProgressCallback = Callable[[int, int], object]
"""Function of the number of solved problems and of their total."""

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
        Processes or a cluster, such as Dask's ``client.get_executor()``. By default problems are solved one by one.
    on_error : {"raise", "return"}
        Whether to raise, once all others are solved, or to return an error in the place of its mechanism.
    time_limit : float
        Seconds, after which no other problem is begun, and each without an answer has the error
        :class:`~optrand.errors.OutOfTime`. Running tasks of an executor are not waited for.
    progress : callable, optional
        Called with the number of solved distinct problems and their total, before the first and after each task.

    Returns
    -------
    list of Mechanism
        In the order of the problems. Each is exact, as from :func:`optrand.solve`.

    Raises
    ------
    InvalidInput
        An item that is not a problem, or an invalid solver or time limit, before anything is solved.
    SomeFailed
        Some problems, named by their positions, have no certified answer. The results are attached as ``results``.

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
    limit = time_limit if time_limit == math.inf else check_real(time_limit, "time_limit")
    if limit < 0:
        raise InvalidInput(f"time_limit is {limit:g}, expected seconds from 0 to math.inf")
    # The wall clock, which workers in other processes can read, too.
    end = time.time() + limit
    given = _check_problems(problems)
    late = OutOfTime(f"no answer within the time limit of {time_limit:g} s: pass a larger time_limit, or an executor")
    # Equal problems are one key. All count as late until they are answered.
    answers = dict[Problem, Answer](dict.fromkeys(given, late))
    work = partial(_answer_all, solver=solver, end=end, late=late)
    distinct = list(answers)
    # Up to 256 tasks, so that few workers are idle for long, and more if these would have over 64 problems each.
    size = 1 if executor is None else max(1, min(64, -(-len(distinct) // 256)))
    parts = [distinct[start : start + size] for start in range(0, len(distinct), size)]
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
            f"({error}): pass on_error='return', or read the others from .results",
            ordered,
        ) from error
    return ordered


def _complete(
    work: Callable[[list[Problem]], list[Answer]], parts: list[list[Problem]], executor: Executor | None, end: float
) -> Generator[tuple[list[Problem], list[Answer]], None, None]:
    """Yield the problems of each task with their answers, in the order in which they are done.

    Closing the generator, an exception of a task, or the time `end` cancels tasks that have not begun.
    """
    if executor is None:
        for part in parts:
            yield part, work(part)
        return
    # Tasks are submitted within the try, so that an interrupt cancels those already submitted.
    futures = {}
    try:
        for part in parts:
            futures[executor.submit(work, part)] = part
        left = None if end == math.inf else max(0.0, end - time.time())
        for future in as_completed(futures, timeout=left):
            yield futures[future], future.result()
    # Before the end the error is that of a task, after it that of as_completed.
    except TimeoutError:
        if time.time() < end:
            raise
    finally:
        for future in futures:
            future.cancel()


def _check_problems(problems: Iterable[Problem]) -> list[Problem]:
    if isinstance(problems, Problem) or not isinstance(problems, Iterable):
        raise InvalidInput(f"problems is of type {type(problems).__name__}, expected a list of them")
    given = list(problems)
    for i, problem in enumerate(given):
        way = "one of optrand.regression, optrand.unbiased_regression or optrand.classification"
        expect(problem, Problem, f"problem number {i}", way)
    return given


def _answer_all(problems: list[Problem], solver: Solver | None, end: float, late: OutOfTime) -> list[Answer]:
    answers: list[Answer] = []
    for problem in problems:
        try:
            answers.append(late if time.time() >= end else solve(problem, solver))
        except OptrandError as error:
            answers.append(error)
    return answers


if TYPE_CHECKING:
    from matplotlib.figure import FigureBase


@suggest_attributes({"sweep.results": "mechanism randomizer solution"})
@dataclass(frozen=True)
class SweepRow:
    """One problem of a sweep: its parameters, and the certificate of its exact mechanism.

    Attributes
    ----------
    epsilon, bias_penalty : float
    value : float
        Objective of the mechanism. NaN without a mechanism.
    lower, upper : float
        Proven bounds of the optimal value.
    gap : float
        ``upper - lower`` relative to the value.
    realised_epsilon : float
        Privacy loss of the mechanism, rounded up.
    bias : float
        Largest ``|E[M(y)] - y|`` over the labels.
    variance, squared_bias : float
        Means under the prior, in floats. Half their sum is the mean half squared error.
    outputs : int
        Number of outputs in use. 0 without a mechanism.
    status : str
        ``certified``, ``infeasible`` if no randomizer meets the constraints, or ``failed`` without a certificate.
    reason : str
        The reason if a row is not certified, else empty.
    """

    epsilon: float
    bias_penalty: float
    value: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    gap: float = math.nan
    realised_epsilon: float = math.nan
    bias: float = math.nan
    variance: float = math.nan
    squared_bias: float = math.nan
    outputs: int = 0
    status: str = "certified"
    reason: str = ""

    @classmethod
    def of(cls, epsilon: float, penalty: float, result: Mechanism | OptrandError) -> SweepRow:
        """Describe a mechanism, or the error in its place."""
        given = cls(float(epsilon), float(penalty))
        try:
            if isinstance(result, OptrandError):
                raise result
            proof = result.certificate.require(gap=USEFUL_GAP)
        except OptrandError as error:
            status = "infeasible" if isinstance(error, Infeasible) else "failed"
            return replace(given, **_bounds(getattr(error, "certificate", None)), status=status, reason=str(error))
        biases = np.array(result.exact_biases, dtype=float)
        return replace(
            given,
            # This bound is the value of the mechanism, the other one that of its dual.
            value=proof.lower if proof.maximised else proof.upper,
            **_bounds(proof),
            variance=float(result.prior @ result.table.variances),
            squared_bias=float(result.prior @ biases**2),
            outputs=count_outputs(result),
        )


@suggest_attributes(
    {
        "pandas.DataFrame(sweep.records())": "to_csv to_frame to_pandas",
        "results": "mechanisms solutions",
        "arrays()": "values",
    }
)
@dataclass(frozen=True)
class Sweep(Sequence[SweepRow]):
    """Rows in the order of the parameters, as a table by ``pandas.DataFrame(sweep)``.

    Attributes
    ----------
    rows : tuple of SweepRow
    results : tuple of Mechanism or OptrandError
        The mechanism of each row, or the error in its place.
    """

    rows: tuple[SweepRow, ...]
    results: tuple[Mechanism | OptrandError, ...] = field(default=(), compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in fields(SweepRow))

    def records(self) -> list[dict[str, Any]]:
        """Return one dict for each row."""
        return [asdict(row) for row in self.rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return one array for each column."""
        return {name: np.array([getattr(row, name) for row in self.rows]) for name in self.columns}

    def plot(self, **options: Any) -> FigureBase:
        """Draw standard deviation against bias by :func:`optrand.plotting.frontier_figure`, on the axes `ax`."""
        # Import by name, since plotting is a higher layer.
        drawn: FigureBase = importlib.import_module("optrand.plotting").frontier_figure(self, **options)
        return drawn

    @overload
    def __getitem__(self, index: int) -> SweepRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sweep: ...
    def __getitem__(self, index: int | slice) -> SweepRow | Sweep:
        """Return one row, or a sweep of a slice."""
        return Sweep(self.rows[index], self.results[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        proven = sum(row.status == "certified" for row in self.rows)
        return f"<Sweep: {len(self.rows)} rows, {proven} certified>"


@suggest_parameters
def sweep(
    problem: Problem,
    *,
    epsilons: Iterable[float] | None = None,
    bias_penalties: Iterable[float] | None = None,
    solver: Solver | None = None,
    executor: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> Sweep:
    """Solve a problem at every pair of an epsilon and a bias penalty.

    Parameters
    ----------
    problem : Problem
        Its labels, prior, loss and outputs are those of every row.
    epsilons : iterable of float, optional
        In nats, by default the problem's own.
    bias_penalties : iterable of float, optional
        From 0 to ``math.inf``, by default the problem's own.
    solver, executor, progress
        As for :func:`optrand.solve_many`. An exception of a task or of the callable, or an interrupt, cancels the tasks
        that have not begun.

    Returns
    -------
    Sweep
        One row for each problem, penalties varying fastest, and its mechanism. A problem that is infeasible or not
        proven has a row with that status.

    Raises
    ------
    InvalidInput
        An invalid parameter, before anything is solved.

    Examples
    --------
    Variance against bias, from the least loss to none:

    >>> import math
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> frontier = sweep(problem, bias_penalties=[0.0, 1.0, 10.0, math.inf])
    >>> for row in frontier:
    ...     print(
    ...         f"{row.bias_penalty:4} {row.variance:.3f} {row.squared_bias:.3f}",
    ...         row.gap < 1e-9,
    ...     )
     0.0 0.082 0.423 True
     1.0 0.224 0.326 True
    10.0 1.470 0.084 True
     inf 3.891 0.000 True
    """
    expect(problem, Problem, "problem", "one of optrand.regression, unbiased_regression or classification")
    check_solver(solver)
    budgets = _list_numbers(epsilons, problem.epsilon, "epsilons")
    pairs = list(itertools.product(budgets, _list_numbers(bias_penalties, problem.bias_penalty, "bias_penalties")))
    cases = [_case(problem, epsilon, penalty) for epsilon, penalty in pairs]
    # An infeasible problem has a row, but is not solved.
    posed = [case for case in cases if isinstance(case, Problem)]
    # Equal problems are solved once.
    done, report = len(cases) - len(set(posed)), progress or (lambda *_: None)
    found = solve_many(
        posed,
        solver,
        executor=executor,
        on_error="return",
        progress=lambda solved, _: report(done + solved, len(cases)),
    )
    answers = dict(zip(posed, found, strict=True))
    results = tuple(case if isinstance(case, Infeasible) else answers[case] for case in cases)
    return Sweep(tuple(SweepRow.of(*pair, result) for pair, result in zip(pairs, results, strict=True)), results)


def _list_numbers(given: object, own: float, name: str) -> list[float]:
    if given is None:
        return [own]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected a list of numbers")
    numbers = list(given)
    if not numbers:
        raise InvalidInput(f"{name} is empty, expected at least one number")
    return numbers


def _case(problem: Problem, epsilon: float, penalty: float) -> Problem | Infeasible:
    try:
        return replace(problem, epsilon=epsilon, bias_penalty=penalty)
    except Infeasible as error:
        return error


def _bounds(proof: Certificate | None) -> dict[str, Any]:
    if proof is None:
        return {}
    names = {"realised_epsilon": "epsilon", "lower": "lower", "upper": "upper", "gap": "gap", "bias": "bias"}
    return {column: getattr(proof, name) for column, name in names.items()}
