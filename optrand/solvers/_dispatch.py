"""Dispatch of each problem to the solver that answers it."""

from __future__ import annotations

import difflib
import re
from typing import Protocol, cast, overload

import numpy as np

from optrand.base._numerals import shown_above
from optrand.base._validation import suggest_parameters
from optrand.certificates._certificate import Certificate
from optrand.closed_forms._response import kept_labels, respond_exactly
from optrand.errors import InvalidInput, NotCertified, SolverFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Interval, Problem, unbiased_range
from optrand.model._randomizer import Solution
from optrand.programs._backends import Backend
from optrand.programs._mechanism import ProgramMechanism, solve_program
from optrand.programs._program import Program
from optrand.solvers._bins import BinPath
from optrand.solvers._closed_form import ClosedForm, is_over_labels
from optrand.solvers._reductions import Reduction, near_zero
from optrand.solvers.grid._column_generation import ColumnGeneration
from optrand.solvers.grid._dual import GridDual
from optrand.solvers.reduced_dual._solver import ReducedDual

USEFUL_GAP = 1.0
"""A bound that leaves the optimum open by more than the value itself is of no use."""


class Solver(Protocol):
    """An algorithm and its options: a frozen record, called on a problem."""

    def accepts(self, problem: Problem) -> bool:
        """Return whether the problem is of the kind that this solver answers."""
        ...

    def __call__(self, problem: Problem) -> Solution:
        """Answer it: a claim, to be certified."""
        ...


def choose(problem: Problem) -> Solver:
    """Return the solver that :func:`solve` uses by default.

    1. A problem that a closed form is proven to answer: `ClosedForm`. The formulas are evaluated to decide it.
    2. Squared loss without bias or with a bias penalty, and outputs on the line or an interval: `ReducedDual`.
    3. Outputs on the line or an interval and a bias penalty of 0: `BinPath`.
    4. The problems of 2 on a grid: `GridDual`.
    5. Any other grid: `ColumnGeneration`.

    Examples
    --------
    >>> import optrand
    >>> choose(optrand.classification([0.5, 0.5], 1.0))
    ClosedForm()
    """
    return ClosedForm() if ClosedForm().accepts(problem) else _iterative(problem)


def _iterative(problem: Problem) -> Solver:
    """Return the solver of :func:`choose` for a problem that no closed form answers."""
    # At most one of these accepts a problem, so that their order does not matter.
    first: tuple[type[Solver], ...] = (ReducedDual, BinPath, GridDual)
    for kind in first:
        solver = kind()
        if solver.accepts(problem):
            return solver
    return ColumnGeneration()


@overload
def solve(problem: Problem, solver: Solver | None = ...) -> Mechanism: ...
@overload
def solve(problem: Program, solver: str | Backend | None = ...) -> ProgramMechanism: ...
@suggest_parameters
def solve(problem: Problem | Program, solver: Solver | str | Backend | None = None) -> Mechanism | ProgramMechanism:
    """Solve a problem or a linear program, and return its best mechanism with the multipliers that prove it.

    Parameters
    ----------
    problem : Problem or Program
        A problem, or a :class:`~optrand.programs.Program`: its mechanism keeps every row of the program exactly.
    solver : Solver, optional
        One of :mod:`optrand.solvers`, by default that of :func:`~optrand.solvers.choose`. For a program, a backend,
        such as "highs" (:meth:`Program.solve <optrand.programs.Program.solve>`).

    Returns
    -------
    Mechanism or ProgramMechanism
        An exact table. Its :attr:`~optrand.Mechanism.certificate` states the proven bounds.

    Raises
    ------
    NotCertified
        If the answer is not feasible, or no useful bound was found. The best mechanism is attached, if there is one.

    Notes
    -----
    Labels far from zero are shifted towards it for the solve. Labels of negligible prior are dropped, and get rows
    afterwards.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> mechanism = optrand.solve(problem)
    >>> mechanism.certificate.gap < 1e-9, round(mechanism.value, 6)
    (True, 1.945447)

    The same with outputs from a list, by the linear program of [B23]:

    >>> from optrand.programs import algorithm1
    >>> program = algorithm1([0, 1, 2], [0.5, 0.3, 0.2], 1.0, [-1.5, 0, 1, 2, 3.5])
    >>> mechanism = optrand.solve(program)
    >>> mechanism.certificate.gap < 1e-9, round(mechanism.value, 6)
    (True, 2.10539)
    """
    if isinstance(problem, Program):
        return solve_program(problem, "highs" if solver is None else cast("str | Backend", solver))
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"solve needs a problem, not a {type(problem).__name__}: make one by "
            "unbiased_regression(labels, prior, epsilon), regression(...) or classification(prior, epsilon); or state "
            "a program of optrand.programs"
        )
    check_solver(solver)
    # RRWithPrior needs no design in floats: its table is written in integers, and its dual is a formula (Theorem 5 of
    # docs/mathematics.md).
    if is_over_labels(problem) and (solver is None or isinstance(solver, ClosedForm)):
        return respond_exactly(problem, kept_labels(problem.prior[np.newaxis], problem.epsilon)[0])
    return exact_mechanism(design(problem, cast("Solver | None", solver)))


def design(problem: Problem, solver: Solver | None = None) -> Solution:
    """Solve a problem in floats: a candidate, which :func:`solve` makes exact and proves.

    Raises
    ------
    NotCertified
        The solver has no answer.
    """
    try:
        return near_zero(problem, lambda centred: _reduce_and_solve(centred, solver))
    except SolverFailed as error:
        raise NotCertified(f"no solution: {error}{_advice(problem)}") from error


def exact_mechanism(solution: Solution) -> Mechanism:
    """Make a candidate exact, and refuse it if it is not feasible or has no useful bound.

    Raises
    ------
    NotCertified
        The best mechanism is attached, if there is one.
    """
    try:
        mechanism = tabulate(solution)
    except NotCertified as error:
        raise NotCertified(
            f"the solver's answer could not be made exact ({error}){_advice(solution.problem)}"
        ) from error
    check_useful(mechanism, mechanism.certificate)
    return mechanism


def check_solver(given: object) -> None:
    """Raise :class:`InvalidInput` if something is neither None nor a solver, and name the solver that it may mean."""
    if given is None or (callable(given) and not isinstance(given, type)):
        return
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    kinds = (BinPath, ClosedForm, ColumnGeneration, GridDual, ReducedDual)
    # By letters alone, since names are often given as in "reduced_dual" or "Reduced Dual".
    found = {re.sub("[^a-z]", "", kind.__name__.lower()): kind.__name__ for kind in kinds}
    near = difflib.get_close_matches(re.sub("[^a-z]", "", name.lower()), found, n=1)
    means = f"optrand.solvers.{found[near[0]]}()" if near else "an object of optrand.solvers, such as ReducedDual()"
    described = f"the text {given!r}" if isinstance(given, str) else f"of type {type(given).__name__}"
    raise InvalidInput(
        f"solver is {described}, expected a solver with its options: pass {means}, or None to have one chosen"
    )


def check_useful(mechanism: Mechanism, proof: Certificate) -> None:
    """Check that a mechanism is feasible and that its certificate bounds the optimum to some use.

    Raises
    ------
    NotCertified
        If it is not.
    """
    # Losses of about exp(-epsilon) may be smaller than their rounding. Bounds that are nearer to each other than this
    # are useful whatever their ratio is.
    rounding = 1e-24 * float(np.ptp(mechanism.labels)) ** 2
    useful = proof.gap <= USEFUL_GAP or proof.upper - proof.lower <= rounding
    if proof.findings or not useful:
        reason = "; ".join(proof.findings) or f"the verified gap is {shown_above(proof.gap, 3)}"
        raise NotCertified(
            f"the solver's answer could not be certified ({reason}): the best mechanism is attached as .mechanism"
            + _advice(mechanism.problem),
            certificate=proof,
            mechanism=mechanism,
        )


def _advice(problem: Problem) -> str:
    """Advise on a problem without a proven answer."""
    if problem.unbiased and isinstance(problem.outputs, Interval):
        low, high = unbiased_range(problem.labels, problem.epsilon)
        # Half of the width that the advice names, so that outputs that follow it are not given it again.
        if min(low - problem.outputs.low, problem.outputs.high - high) < 5e-10 * (high - low):
            return (
                "; the outputs are nearly the narrowest that allow no bias: widen them by a billionth of their width "
                "at both ends"
            )
    return _extremes(problem)


def _extremes(problem: Problem) -> str:
    """Name the numbers of a problem for which floats have too few digits or too small a range.

    The limits are a heuristic: of random problems, nearly all that end without a proof lie beyond one of them.
    """
    least = float(problem.prior[problem.prior > 0].min())
    found = []
    if not 1e-5 <= problem.epsilon <= 28:
        found.append(f"epsilon {problem.epsilon:g}")
    if least < 1e-12:
        found.append(f"a prior of {least:.3g}")
    if problem.bias_penalty and not (problem.unbiased or 1e-6 <= problem.bias_penalty <= 1e6):
        found.append(f"the bias penalty {problem.bias_penalty:g}")
    return f"; less extreme numbers than {' and '.join(found)} can be proven" if found else ""


def _reduce_and_solve(problem: Problem, solver: Solver | None) -> Solution:
    """Solve without idle labels, and extend the answer to all labels."""
    reduction = Reduction(problem)
    return reduction.invert((solver or _proven)(reduction.apply()))


def _proven(problem: Problem) -> Solution:
    """Solve by a closed form if there is one, or else by the iterative solver of :func:`choose`."""
    closed = ClosedForm().answer(problem)
    if closed is not None:
        return closed
    return _iterative(problem)(problem)
