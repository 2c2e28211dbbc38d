"""Dispatch of each problem to the solver that answers it."""

from __future__ import annotations

import difflib
import math
import re
from contextlib import suppress
from typing import Protocol, TypeVar

from optrand.base.numerals import shown_above
from optrand.certificates.certificate import Certificate, certify
from optrand.certificates.quick import quick_gap
from optrand.errors import InvalidInput, NotCertified, SolverFailed
from optrand.model.outputs import Interval
from optrand.model.problem import Problem, unbiased_range
from optrand.model.solution import Solution
from optrand.solvers.bins.path import BinPath
from optrand.solvers.closed_form import ClosedForm
from optrand.solvers.flow.solver import Flow
from optrand.solvers.grid.column_generation import ColumnGeneration
from optrand.solvers.grid.finish import finishable
from optrand.solvers.grid.linear_program import LinearProgram
from optrand.solvers.long_numbers.solver import LongNumbers
from optrand.solvers.merging import Merging
from optrand.solvers.presolve import Reduction
from optrand.solvers.reduced_dual.solver import ReducedDual
from optrand.solvers.translation import near_zero

__all__ = ["USEFUL_GAP", "Solver", "accepted", "choose", "solve"]

USEFUL_GAP = 1.0
"""A bound that leaves the optimum open by more than the value itself is of no use."""

PROVEN = 1e-9
"""Relative gap, proven in floats, with which an answer needs no exact certificate before it is returned."""

AIM = 1e-10
"""Relative gap above which an answer for few labels is looked for in long numbers."""

LARGE = 20.0
"""From this epsilon on floats rarely have digits to spare."""

FEW, LARGE_FOR_FEW = 10, 15.0
"""So few labels take long numbers tenths of a second: from this epsilon on they are asked where floats do not tell."""

SMALL = 2_000
"""Up to so many entries of the table one linear program is quicker than columns."""


Answer = TypeVar("Answer", bound=Solution)

MORE_TIME = "; minutes of the cone program may close it: solve(problem, ReducedDual(flow=Flow(time_limit=600)))"
WIDER = "; the outputs leave unbiased answers next to no room: widen them by a billionth of their width at both ends"
"""What to do about an answer that is not certified."""

TIGHT = 5e-10
"""Share of their width that outputs must reach beyond what unbiased answers need for :data:`WIDER` not to be said."""


class Solver(Protocol):
    """An algorithm and its options: a frozen record, called on a problem."""

    def accepts(self, problem: Problem) -> bool:
        """Whether the problem is of the kind that this solver answers."""
        ...

    def __call__(self, problem: Problem) -> Solution:
        """Answer it: a claim, to be certified."""
        ...


def choose(problem: Problem) -> Solver:
    """The solver that :func:`solve` uses by default.

    1. Classification over the labels, or off a grid one label or :func:`~optrand.closed_forms.gap_response` where it is
       optimal: `ClosedForm`.
    2. Outputs on the line or an interval and no care for bias: `BinPath`.
    3. Squared loss, a price on bias or none allowed, a few labels, and an epsilon of 20 or more: `LongNumbers`.
    4. Squared loss without bias or at a price of it, and outputs on the line or an interval: `ReducedDual`, and behind
       it `Flow`.
    5. A grid without bias and at most 2,000 entries of the table: `LinearProgram` (the floor form on HiGHS).
    6. Any other grid: `ColumnGeneration`.

    Examples
    --------
    >>> import optrand
    >>> choose(optrand.classification([0.5, 0.5], 1.0))
    ClosedForm()
    """
    large: tuple[Solver, ...] = (LongNumbers(),) if problem.epsilon >= LARGE else ()
    first: tuple[Solver, ...] = (ClosedForm(), BinPath(), *large, ReducedDual())
    for solver in first:
        if solver.accepts(problem):
            return solver
    linear = LinearProgram()
    small = problem.k * getattr(problem.outputs, "values", problem.labels).size <= SMALL
    return linear if small and linear.accepts(problem) and problem.unbiased else ColumnGeneration()


def solve(problem: Problem, solver: Solver | None = None) -> Solution:
    """The best epsilon-DP randomizer for a problem, with the multipliers that prove it.

    Parameters
    ----------
    problem : Problem
    solver : Solver, optional
        One of :mod:`optrand.solvers`; by default :func:`~optrand.solvers.dispatch.choose` picks it. First
        :mod:`optrand.solvers.translation` measures labels far from zero from one of them,
        :mod:`optrand.solvers.merging` makes one label of those beyond an end of the outputs, and
        :mod:`optrand.solvers.presolve` takes those of no consequence out. Where the default's answer for few labels is
        not proven to 1e-10, `LongNumbers` is asked as well.

    Returns
    -------
    Solution
        A claim: :func:`optrand.certify` states what is proven of it.

    Raises
    ------
    NotCertified
        If the answer is not feasible, or no useful bound was found; the best solution is attached.

    Examples
    --------
    >>> import optrand
    >>> solution = solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> proof = optrand.certify(solution)
    >>> proof.gap < 1e-9, round(solution.value, 6)
    (True, 1.945447)
    """
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"solve needs a problem, not a {type(problem).__name__}: make one by "
            "unbiased_regression(labels, prior, epsilon), regression(...) or classification(prior, epsilon)"
        )
    given: object = solver
    if given is not None and (isinstance(given, type) or not callable(given)):
        raise InvalidInput(_no_solver(solver))
    try:
        solution = near_zero(problem, lambda centred: _reduced_and_solved(centred, solver))
    except SolverFailed as error:
        raise NotCertified(f"no solution: {error}{_advice(problem)}") from error
    return solution if quick_gap(solution) <= PROVEN else accepted(solution, certify(solution))


def _no_solver(given: object) -> str:
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    kinds = (BinPath, ClosedForm, ColumnGeneration, Flow, LinearProgram, LongNumbers, ReducedDual)
    found = {re.sub("[^a-z]", "", kind.__name__.lower()): kind.__name__ for kind in kinds}
    near = difflib.get_close_matches(re.sub("[^a-z]", "", name.lower()), found, n=1)
    means = f"optrand.solvers.{found[near[0]]}()" if near else "an object of optrand.solvers, such as ReducedDual()"
    told = f"the text {given!r}" if isinstance(given, str) else f"of type {type(given).__name__}"
    return f"solver is {told}, expected a solver with its options: pass {means}, or None to have one chosen"


def accepted(solution: Answer, proof: Certificate) -> Answer:
    """A solution whose certificate says that it is feasible and bounds the optimum to some use.

    Raises
    ------
    NotCertified
        Where it does not.
    """
    if proof.findings or not proof.gap <= USEFUL_GAP:
        reason = "; ".join(proof.findings) or f"the verified gap is {shown_above(proof.gap, 3)}"
        raise NotCertified(
            f"the solver's answer could not be certified ({reason}): the best solution is attached as .solution"
            + _advice(solution.problem),
            certificate=proof,
            solution=solution,
        )
    return solution


def _advice(problem: Problem) -> str:
    """What to do about a problem without a proven answer."""
    if problem.unbiased and isinstance(problem.outputs, Interval):
        low, high = unbiased_range(problem.labels, problem.epsilon)
        if min(low - problem.outputs.low, problem.outputs.high - high) < TIGHT * (high - low):
            return WIDER
    return MORE_TIME if ReducedDual().accepts(problem) else ""


def _reduced_and_solved(problem: Problem, solver: Solver | None) -> Solution:
    """Solution with labels beyond an end of the outputs as one, and without those of no consequence."""
    merging = Merging(problem)
    reduction: Reduction | None = Reduction(merging.merged)
    # Once more with some of the latter where they turn out to be of some.
    while reduction is not None:
        found = solver(reduction.reduced) if solver else _proven(reduction.reduced)
        solution = reduction.extend(found)
        reduction = reduction.closer(found, solution)
    solution = merging.extend(solution)
    if solver is None and found.problem is not problem and finishable(problem) and _gap(solution) > PROVEN:
        # What is negligible beside labels is not beside a loss of rounding alone.
        return _better(solution, problem)
    return solution


def _better(solution: Solution, problem: Problem) -> Solution:
    """The better one of a solution and that of the problem with all of its labels."""
    try:
        whole = _proven(problem)
    except SolverFailed:
        return solution
    return whole if _gap(whole) < _gap(solution) else solution


def _proven(problem: Problem) -> Solution:
    """Solution by default; where few labels are not proven in floats, the better one of that and of long numbers."""
    solver, long_numbers = choose(problem), LongNumbers()
    if solver == long_numbers or not long_numbers.accepts(problem):
        return solver(problem)
    try:
        found = solver(problem)
    except SolverFailed:
        return long_numbers(problem)
    least, small = _gap(found), problem.k <= FEW and problem.epsilon >= LARGE_FOR_FEW
    if least > AIM or (small and quick_gap(found) > AIM):
        with suppress(SolverFailed):
            longer = long_numbers(problem)
            if not least <= _gap(longer):
                return longer
    return found


def _gap(solution: Solution) -> float:
    """Proven relative gap; infinite for a solution that is not feasible."""
    gap = quick_gap(solution)
    if gap <= AIM:
        return gap
    proof = certify(solution)
    return math.inf if proof.findings else proof.gap
