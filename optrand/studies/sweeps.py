"""Sweeps: one certified row for every pair of an epsilon and a bias penalty, as a table for pandas or :mod:`csv`."""

from __future__ import annotations

import importlib
import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import expect
from optrand.certificates.certificate import Certificate
from optrand.errors import Infeasible, InvalidInput, NotCertified, OptrandError
from optrand.mechanism.paths import count_outputs
from optrand.model.problem import Problem
from optrand.solvers import Solver, solve
from optrand.solvers.dispatch import USEFUL_GAP, check_solver
from optrand.studies.many import completed

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["Sweep", "SweepRow", "sweep"]

ProgressCallback = Callable[[int, int], object]
"""Callback for the number of problems done and that of all."""


@dataclass(frozen=True)
class SweepRow:
    """One problem of a sweep: its parameters, and the certificate of its exact mechanism.

    Attributes
    ----------
    epsilon, bias_penalty : float
    value : float
        Objective of the mechanism; NaN if there is none.
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
        Number of outputs in use; 0 without a mechanism.
    seconds : float
        Wall-clock time to solve and certify.
    status : str
        ``certified``; ``infeasible`` where no randomizer meets the constraints; ``failed`` without a certificate.
    reason : str
        Why a row is not certified; else empty.
    """

    epsilon: float
    bias_penalty: float
    value: float
    lower: float
    upper: float
    gap: float
    realised_epsilon: float
    bias: float
    variance: float
    squared_bias: float
    outputs: int
    seconds: float
    status: str
    reason: str


@dataclass(frozen=True)
class Sweep(Sequence[SweepRow]):
    """Rows in the order of the parameters; ``pandas.DataFrame(sweep)`` is the table."""

    rows: tuple[SweepRow, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in fields(SweepRow))

    def records(self) -> list[dict[str, Any]]:
        """One dict for each row."""
        return [asdict(row) for row in self.rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """One array for each column."""
        return {name: np.array([getattr(row, name) for row in self.rows]) for name in self.columns}

    def plot(self, **options: Any) -> FigureBase:
        """Frontier of variance and bias: :func:`optrand.plotting.frontier_figure` with its `ax`, `title` and `size`.

        Loads matplotlib.
        """
        # By name: pictures are a floor above.
        drawn: FigureBase = importlib.import_module("optrand.plotting").frontier_figure(self, **options)
        return drawn

    @overload
    def __getitem__(self, index: int) -> SweepRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sweep: ...
    def __getitem__(self, index: int | slice) -> SweepRow | Sweep:
        """One row, or a sweep of a slice."""
        return Sweep(self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __repr__(self) -> str:
        """One line, without the rows."""
        proven = sum(row.status == "certified" for row in self.rows)
        return f"<Sweep: {len(self.rows)} rows, {proven} certified>"

    def __eq__(self, other: object) -> bool:
        """Equal where all rows are; what neither knows, NaN, is equal."""
        # Floats are written so that none is lost.
        return isinstance(other, Sweep) and repr(self.rows) == repr(other.rows)

    def __hash__(self) -> int:
        """Hash of the rows as they are written."""
        return hash(repr(self.rows))


def sweep(
    problem: Problem,
    *,
    epsilons: Iterable[float] | None = None,
    bias_penalties: Iterable[float] | None = None,
    solver: Solver | None = None,
    executor: Executor | None = None,
    progress: bool | ProgressCallback = False,
) -> Sweep:
    """Answer a problem at every pair of an epsilon and a bias penalty.

    Parameters
    ----------
    problem : Problem
        Its labels, prior, loss and outputs are those of every row.
    epsilons : iterable of float, optional
        In nats; by default the problem's own.
    bias_penalties : iterable of float, optional
        From 0 to ``math.inf``; by default the problem's own.
    solver : Solver, optional
        As for :func:`optrand.solve`.
    executor : concurrent.futures.Executor, optional
        Solves problems in threads, processes or on a cluster, one task each. By default here, in turn.
    progress : bool or callable
        ``True`` draws a bar on the standard error; a callable gets the number of problems done and that of all, once
        before the first and after each.

    Returns
    -------
    Sweep
        One row for each problem, penalties varying fastest. A problem that is infeasible or not proven makes a row with
        that status.

    Raises
    ------
    InvalidInput
        A parameter without meaning, before anything is solved.

    Notes
    -----
    Rows are those of the exact mechanism. Equal problems are answered once. An exception of a task or of the callable,
    or an interrupt, cancels the tasks that have not begun.

    Examples
    --------
    Variance against bias, from the least loss to none:

    >>> import math
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> frontier = sweep(problem, bias_penalties=[0.0, 1.0, 10.0, math.inf])
    >>> for row in frontier:
    ...     print(f"{row.bias_penalty:4} {row.variance:.3f} {row.squared_bias:.3f} {row.gap < 1e-9}")
     0.0 0.082 0.423 True
     1.0 0.224 0.326 True
    10.0 1.470 0.084 True
     inf 3.891 0.000 True
    """
    expect(problem, Problem, "problem", "one of optrand.regression, unbiased_regression or classification")
    check_solver(solver)
    cases = [
        _case(problem, epsilon, penalty)
        for epsilon, penalty in itertools.product(
            _listed(epsilons, problem.epsilon, "epsilons"),
            _listed(bias_penalties, problem.bias_penalty, "bias_penalties"),
        )
    ]
    rows: list[SweepRow | None] = [case if isinstance(case, SweepRow) else None for case in cases]
    problems = {i: case for i, case in enumerate(cases) if isinstance(case, Problem)}
    done = len(rows) - len(problems)
    with _callback(progress) as report, closing(_answers(problems, solver, executor)) as answers:
        report(done, len(rows))
        for i, row in answers:
            rows[i], done = row, done + 1
            report(done, len(rows))
    return Sweep(tuple(row for row in rows if row is not None))


def _listed(given: object, own: float, name: str) -> list[float]:
    if given is None:
        return [own]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected a list of numbers")
    numbers = list(given)
    if not numbers:
        raise InvalidInput(f"{name} is empty, expected at least one number")
    return numbers


def _case(problem: Problem, epsilon: float, penalty: float) -> Problem | SweepRow:
    """Problem with these parameters, or the row of an infeasible one."""
    try:
        return replace(problem, epsilon=epsilon, bias_penalty=penalty)
    except Infeasible as error:
        return _empty(float(epsilon), float(penalty), "infeasible", str(error))


def _answers(
    problems: dict[int, Problem], solver: Solver | None, executor: Executor | None
) -> Generator[tuple[int, SweepRow]]:
    """All rows with their places, in the order in which they are done; equal problems are answered once."""
    places = dict[Problem, list[int]]()
    for i, problem in problems.items():
        places.setdefault(problem, []).append(i)
    tasks = [(problem, solver) for problem in places]
    with closing(completed(_answer, tasks, executor)) as answers:
        for number, row in answers:
            for i in places[tasks[number][0]]:
                yield i, row


def _answer(task: tuple[Problem, Solver | None]) -> SweepRow:
    """Row of one problem, solved, tabulated and certified; a solver's failure is a row, too."""
    problem, solver = task
    start = time.perf_counter()
    try:
        mechanism = solve(problem, solver)
        proof = mechanism.certificate
        proof.require(gap=USEFUL_GAP)
    except OptrandError as error:
        status = "infeasible" if isinstance(error, Infeasible) else "failed"
        row = _empty(problem.epsilon, problem.bias_penalty, status, str(error))
        known = error.certificate if isinstance(error, NotCertified) else None
        return replace(row, seconds=time.perf_counter() - start, **({} if known is None else _proven(known)))
    seconds = time.perf_counter() - start
    biases = np.array([float(bias) for bias in mechanism.exact_biases])
    return SweepRow(
        epsilon=problem.epsilon,
        bias_penalty=problem.bias_penalty,
        value=proof.lower if proof.maximised else proof.upper,
        **_proven(proof),
        variance=float(problem.prior @ mechanism.table.variances),
        squared_bias=float(problem.prior @ biases**2),
        outputs=count_outputs(mechanism),
        seconds=seconds,
        status="certified",
        reason="",
    )


def _proven(proof: Certificate) -> dict[str, Any]:
    names = ("lower", "upper", "gap", "bias")
    return {"realised_epsilon": proof.epsilon, **{name: getattr(proof, name) for name in names}}


def _empty(epsilon: float, penalty: float, status: str, reason: str) -> SweepRow:
    unknown = dict.fromkeys(
        ("value", "lower", "upper", "gap", "realised_epsilon", "bias", "variance", "squared_bias"), math.nan
    )
    return SweepRow(epsilon, penalty, **unknown, outputs=0, seconds=0.0, status=status, reason=reason)


@contextmanager
def _callback(progress: bool | ProgressCallback) -> Iterator[ProgressCallback]:
    """Callback for the progress: the caller's own, a bar that is erased at the end, or one that does nothing."""
    if not isinstance(progress, bool):
        if not callable(progress):
            raise InvalidInput(f"progress is of type {type(progress).__name__}, expected a bool or a function")
        yield progress
    elif not progress:
        yield lambda *_: None
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("solving", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
