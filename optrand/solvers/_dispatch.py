"""Solve a problem: by one of the closed forms, tried in order, or else by the iterative solver of its kind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast, overload

import numpy as np

from optrand import losses
from optrand.base._numerals import format_above
from optrand.base._suggestions import nearest_name
from optrand.base._validation import suggest_parameters
from optrand.certificates._certificate import PROVEN, Certificate
from optrand.closed_forms._regression import (
    condition_holds,
    design_debiased_rr,
    design_gap_response,
    design_one_label,
    design_two_ends,
)
from optrand.closed_forms._response import respond_exactly
from optrand.errors import Infeasible, InvalidInput, NotCertified, SolverFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, Stats, tabulate
from optrand.model._problem import Dual, Grid, Interval, Problem, unbiased_range
from optrand.model._randomizer import Arcs, Randomizer
from optrand.programs._backends import Backend
from optrand.programs._mechanism import ProgramMechanism, solve_program
from optrand.programs._program import Program
from optrand.solvers._bins import BinPath
from optrand.solvers._interface import Reduction, Solver, near_zero, solver_failures
from optrand.solvers.grid._column_generation import ColumnGeneration
from optrand.solvers.grid._dual import GridDual
from optrand.solvers.reduced_dual._solver import ReducedDual

USEFUL_GAP = 1.0
"""A bound that leaves the optimum open by more than the value itself is of no use."""


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
    return ClosedForm() if ClosedForm().accepts(problem) else _choose_iterative(problem)


def _choose_iterative(problem: Problem) -> Solver:
    """Return the solver of :func:`choose` for a problem that no closed form answers."""
    # At most one of these accepts a problem, so that their order does not matter.
    special: tuple[type[Solver], ...] = (ReducedDual, BinPath, GridDual)
    return next((kind for kind in special if kind().accepts(problem)), ColumnGeneration)()


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
            "unbiased_regression(labels, prior, epsilon), regression(...) or classification(prior, epsilon), or state "
            "a program of optrand.programs"
        )
    check_solver(solver)
    # RRWithPrior needs no design in floats: its table is written in integers, and its dual is a formula (Theorem 5 of
    # docs/mathematics.md).
    if is_over_labels(problem) and (solver is None or isinstance(solver, ClosedForm)):
        return respond_exactly(problem)
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
        raise NotCertified(f"no solution: {error}{_advise(problem)}") from error


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
            f"the solver's answer could not be made exact ({error}){_advise(solution.problem)}"
        ) from error
    check_useful(mechanism, mechanism.certificate)
    return mechanism


def check_solver(given: object) -> None:
    """Raise :class:`InvalidInput` if something is neither None nor a solver, and name the solver that it may mean."""
    if given is None or (callable(given) and not isinstance(given, type)):
        return
    name = given if isinstance(given, str) else getattr(given, "__name__", "")
    near = nearest_name(name, ("BinPath", "ClosedForm", "ColumnGeneration", "GridDual", "ReducedDual"))
    means = f"optrand.solvers.{near}()" if near else "an object of optrand.solvers, such as ReducedDual()"
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
        reason = "; ".join(proof.findings) or f"the verified gap is {format_above(proof.gap, 3)}"
        raise NotCertified(
            f"the solver's answer could not be certified ({reason}): the best mechanism is attached as .mechanism"
            + _advise(mechanism.problem),
            certificate=proof,
            mechanism=mechanism,
        )


def _advise(problem: Problem) -> str:
    """Advise on a problem without a proven answer."""
    if problem.unbiased and isinstance(problem.outputs, Interval):
        low, high = unbiased_range(problem.labels, problem.epsilon)
        # Half of the width that the advice names, so that outputs that follow it are not given it again.
        if min(low - problem.outputs.low, problem.outputs.high - high) < 5e-4 * (high - low):
            return (
                ". The outputs are nearly the narrowest that allow no bias: widen them by a thousandth of their width "
                "at both ends"
            )
    return _name_extremes(problem)


def _name_extremes(problem: Problem) -> str:
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
    return f". Less extreme numbers than {' and '.join(found)} can be proven" if found else ""


def _reduce_and_solve(problem: Problem, solver: Solver | None) -> Solution:
    """Solve without idle labels, and extend the answer to all labels."""
    reduction = Reduction(problem)
    return reduction.invert((solver or _solve_by_default)(reduction.apply()))


def _solve_by_default(problem: Problem) -> Solution:
    """Solve by a closed form if there is one, or else by the iterative solver of :func:`choose`."""
    return ClosedForm().answer(problem) or _choose_iterative(problem)(problem)


@dataclass(frozen=True)
class ClosedForm:
    """Return the answer of the first of :data:`CLOSED_FORMS` that has one.

    Examples
    --------
    >>> import optrand
    >>> optrand.solve(
    ...     optrand.classification([0.5, 0.3, 0.2], 1.0), ClosedForm()
    ... ).certificate.gap < 1e-12
    True
    """

    def accepts(self, problem: Problem) -> bool:
        """Return whether a closed form answers the problem. The formulas are evaluated to decide it."""
        return is_over_labels(problem) or self.answer(problem) is not None

    def answer(self, problem: Problem) -> Solution | None:
        """Answer a problem, or return None if no closed form does."""
        start = time.perf_counter()
        for form in CLOSED_FORMS:
            # Where floats cannot hold the numbers of a formula, another solver may still have an answer.
            with suppress(SolverFailed), solver_failures(self):
                found = form(problem)
                if found is not None:
                    return found.with_stats(solver=repr(self), seconds=time.perf_counter() - start)
        return None

    def __call__(self, problem: Problem) -> Solution:
        """Answer a problem.

        Raises
        ------
        InvalidInput
            If no closed form answers it.
        """
        found = self.answer(problem)
        if found is None:
            raise InvalidInput(
                "ClosedForm() takes classification over the labels, a grid of one output, one label with outputs that "
                "are not a grid, and squared loss on the line or an interval where a closed form is proven optimal: "
                "use optrand.solve"
            )
        return found


def is_over_labels(problem: Problem) -> bool:
    """Return whether a problem is classification whose outputs are the labels themselves."""
    if problem.loss != losses.zero_one or not isinstance(problem.outputs, Grid):
        return False
    return np.array_equal(problem.outputs.values, problem.labels)


def rr_with_prior_within(problem: Problem) -> Solution | None:
    """Return RRWithPrior, which is optimal for classification over the labels."""
    if not is_over_labels(problem):
        return None
    mechanism = respond_exactly(problem)
    return Solution(problem, mechanism.randomizer, mechanism.dual, Stats("rr_with_prior"))


def gap_response_within(problem: Problem) -> Solution | None:
    """Return a gap and a bit if they are optimal on the line, and their outputs are allowed."""
    if not _is_unbiased_off_grids(problem) or not condition_holds(problem):
        return None
    return _restrict_to(problem, design_gap_response(problem.labels, problem.prior, problem.epsilon))


def debiased_rr_within(problem: Problem) -> Solution | None:
    """Return debiased randomized response if its dual proves it optimal: for positive priors from some epsilon on."""
    # That E - 1 must be at least k is a heuristic that saves work: of 150 random problems of 3 to 7 labels below it
    # none was proven. If it errs, an iterative solver answers.
    if not _is_unbiased_off_grids(problem) or math.expm1(problem.epsilon) < problem.k:
        return None
    found = _restrict_to(problem, design_debiased_rr(problem.labels, problem.epsilon, prior=problem.prior))
    return found if found is not None and _is_optimal(found) else None


def two_ends_within(problem: Problem) -> Solution | None:
    """Return two outputs at the ends of an interval if it is, within rounding, the narrowest one.

    Whether it is that narrow is decided by the certificate of the answer, in exact arithmetic.
    """
    if not _is_unbiased_off_grids(problem) or not isinstance(problem.outputs, Interval):
        return None
    low, high = unbiased_range(problem.labels, problem.epsilon)
    # Floats hold the ends of the narrowest interval up to rounding only. In a wider one the two ends are no longer the
    # best (see the notes of two_ends).
    if max(low - problem.outputs.low, problem.outputs.high - high) > 1e-10 * (high - low):
        return None
    found = design_two_ends(problem)
    return found if found.gap <= PROVEN else None


def _is_unbiased_off_grids(problem: Problem) -> bool:
    """Return whether a problem is unbiased regression of squared loss on two labels or more, and not on a grid."""
    squared = problem.loss == losses.squared and problem.unbiased
    return squared and problem.k > 1 and not isinstance(problem.outputs, Grid)


def _restrict_to(problem: Problem, found: Solution) -> Solution | None:
    """Return an answer on the line as one to a problem if it has a dual and the problem allows its outputs."""
    outputs = found.randomizer.outputs
    inside = problem.outputs.low <= outputs[0] and outputs[-1] <= problem.outputs.high
    return replace(found, problem=problem) if inside and found.dual is not None else None


def priced_rr_within(problem: Problem) -> Solution | None:
    """Return randomized response at its best outputs under a finite penalty, if its dual proves it optimal.

    The equations are in ``docs/mathematics.md``, section 8. It is optimal from some epsilon on for positive priors, as
    :func:`~optrand.closed_forms.debiased_rr`. Cost ``O(k)``.
    """
    if problem.unbiased or not problem.bias_penalty or problem.loss != losses.squared:
        return None
    k, excess = problem.k, math.expm1(problem.epsilon)
    # A heuristic that saves work: at a small epsilon, or with a label this light, some label has no response of its own
    # at the optimum. Of 400 random problems of 3 to 7 labels below either limit none was proven. If it errs, an
    # iterative solver answers.
    if isinstance(problem.outputs, Grid) or excess < k or excess * float(problem.prior.min()) < 1e-2:
        return None
    prior, penalty, share = problem.prior, problem.bias_penalty, 1 / (excess + k)
    labels = problem.labels - problem.labels[0]
    mean, total, weight = float(prior @ labels), float(labels.sum()), excess * share
    # The equation of a label has its own step, times its curvature, and two sums over all labels: of the steps, and of
    # the biases under the prior.
    pulls = prior * (penalty * weight)
    curvature = 1 + excess * prior + excess * pulls
    equations = -np.stack((labels - mean + pulls * (total - k * labels), pulls, np.full(k, penalty))) / curvature
    ends = problem.outputs.low - problem.labels, problem.outputs.high - problem.labels
    # An active-set heuristic: outputs that would leave the interval stay at its ends for good. Each round but the last
    # fixes one at least, so that k + 1 are enough.
    for _ in range(k + 1):
        # Every step is a linear function of one and the two sums. Put into their definitions, two equations are left.
        by_sum, by_bias = equations.sum(axis=1), weight * (equations @ prior)
        by_bias += share * (by_sum + np.array([total - k * mean, 0.0, 0.0]))
        sums = np.linalg.solve(np.eye(2) - np.stack((by_sum[1:], by_bias[1:])), [by_sum[0], by_bias[0]])
        steps = equations[0] + sums @ equations[1:]
        outside = (steps < ends[0]) | (steps > ends[1])
        if not outside.any():
            break
        equations[:, outside] = 0.0
        equations[0, outside] = np.clip(steps, *ends)[outside]
    # Equality in Theorem 3 of docs/mathematics.md: the multiplier of a mean is the charge of its bias, and columns in
    # use cost nothing. These are singletons: E - 1 times the alpha of a label, and the sum of all, make up its cost.
    biases = share * (excess * steps + steps.sum() + total - k * labels)
    beta = -penalty * prior * biases
    outputs = labels + steps
    costs = excess * (prior * steps**2 / 2 - beta * outputs) - outputs * beta.sum()
    costs += ((outputs - mean) ** 2 + prior @ (labels - mean) ** 2) / 2
    alpha = (costs - costs.sum() / (excess + k)) / excess
    dual = Dual(alpha - beta * problem.labels[0], beta)
    places = np.clip(problem.labels + steps, problem.outputs.low, problem.outputs.high)
    # Some optimum has its outputs in the order of the labels (Theorem 6). An answer that has not is left to a solver.
    if (np.diff(places) < 0).any():
        return None
    arcs = Arcs(k, np.arange(k), np.arange(k), places, np.full(k, share))
    found = Solution(problem, Randomizer.of_arcs(problem.labels, arcs, problem.epsilon), dual, Stats("priced_rr"))
    return found if _is_optimal(found) else None


def _is_optimal(response: Solution) -> bool:
    """Return whether the dual proves a response of single labels optimal.

    The columns that favour two neighbours are priced first: of 1,500 random responses, those of which no such column
    costs less than nothing were optimal, and no others.
    """
    problem, dual = response.problem, response.dual
    if dual is None:
        return False
    slopes = problem.prior * problem.labels + dual.beta
    levels = problem.prior * problem.labels**2 / 2 - dual.alpha + dual.beta * dual.origin
    parabolas = np.stack((problem.prior, slopes, levels))
    pairs = parabolas[:, 1:] + parabolas[:, :-1]
    weight, slope, level = parabolas.sum(axis=1, keepdims=True) + math.expm1(problem.epsilon) * pairs
    best = np.clip(slope / weight, problem.outputs.low, problem.outputs.high)
    # Up to rounding, which the proof decides on.
    if (level - (slope - weight * best / 2) * best < -1e-6 * abs(response.value)).any():
        return False
    return response.gap <= PROVEN


def one_output_within(problem: Problem) -> Solution | None:
    """Return the only allowed output, or on the line or an interval the one nearest to a single label.

    The `alpha` of a label is what that output costs, and its `beta` pulls towards the label, measured from
    the output so that no digits cancel far from zero.
    """
    if isinstance(problem.outputs, Grid):
        if problem.outputs.values.size > 1:
            return None
        output = float(problem.outputs.values[0])
    elif problem.k > 1:
        return None
    else:
        output = float(np.clip(problem.labels[0], problem.outputs.low, problem.outputs.high))
        # Smaller and smaller outputs are better and better, and none is best: the exception of Theorem 8.
        if problem.loss.positive_outputs and output <= 0:
            raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=[...]")
    randomizer = Randomizer(problem.labels, np.array([output]), np.ones((problem.k, 1)), problem.epsilon)
    # Unbiased randomizers with one output have one label, which is that output.
    penalty = 0.0 if problem.unbiased else problem.bias_penalty
    beta = -penalty * problem.prior * (output - problem.labels)
    alpha = problem.prior * problem.loss_table(randomizer.outputs)[:, 0]
    return Solution(problem, randomizer, Dual(alpha, beta, output), Stats("one output"))


def one_label_within(problem: Problem) -> Solution | None:
    """Return the best mixture of outputs on a grid for a single label."""
    return design_one_label(problem) if problem.k == 1 and isinstance(problem.outputs, Grid) else None


# The first four need no gap: their answers are optimal by a theorem, or by a condition that is decided exactly.
CLOSED_FORMS: tuple[Callable[[Problem], Solution | None], ...] = (
    rr_with_prior_within,
    one_output_within,
    one_label_within,
    gap_response_within,
    debiased_rr_within,
    priced_rr_within,
    two_ends_within,
)
"""Functions that return the answer to a problem, or None if they cannot prove it optimal, in the order of trial."""
