"""Problems that differ in prior and epsilon only, answered at once where that is known how.

Randomized response on bins and RRWithPrior are array programs over all priors of the same labels: with a few dozen
labels most of the time of one problem goes into calls. The gap of each answer is small in floats
(:func:`~optrand.solvers.gaps.estimated_gap`), or the problem is left to :func:`~optrand.solvers.dispatch.solve`. The
bound is proven when the answer is certified.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.closed_forms.response import many_rr_with_prior
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Arcs, Randomizer, Solution, Stats
from optrand.solvers.bins.first_duals import first_duals
from optrand.solvers.bins.many import LARGEST_EPSILON, many_bins
from optrand.solvers.bins.path import BinPath
from optrand.solvers.closed_form import ClosedForm, is_over_labels
from optrand.solvers.failures import solver_failures
from optrand.solvers.gaps import PROVEN, estimated_gap

__all__ = ["batch_key", "solved_at_once"]

MOST_LABELS = 256
"""Labels of priors whose bins are found at once: each takes ``O(k^2)`` numbers."""

CLASSES = ClosedForm()
BINS = BinPath()


def batch_key(problem: Problem) -> Hashable:
    """Equal for problems that are answered at once; None for those that are answered alone.

    Examples
    --------
    >>> import optrand
    >>> one, other = (optrand.regression([0, 1], [0.4, 0.6], epsilon) for epsilon in (1.0, 2.0))
    >>> batch_key(one) == batch_key(other), batch_key(optrand.unbiased_regression([0, 1], [0.4, 0.6], 1.0))
    (True, None)
    """
    if problem.loss == losses.zero_one:
        return (problem.loss, problem.labels.tobytes()) if is_over_labels(problem) else None
    small = 1 < problem.k <= MOST_LABELS and problem.epsilon <= LARGEST_EPSILON
    if not small or not BINS.accepts(problem) or problem.origin or not (problem.prior > 0).all():
        return None
    return problem.loss, problem.labels.tobytes(), problem.outputs


def solved_at_once(problems: Sequence[Problem]) -> list[Solution | None]:
    """Proven answers to some problems; None for those that are answered alone.

    Examples
    --------
    >>> import optrand
    >>> from optrand.mechanism.tabulation import tabulate
    >>> given = [optrand.regression([0, 1, 2], prior, 1.0) for prior in ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])]
    >>> [tabulate(solution).certificate.gap < 1e-9 for solution in solved_at_once(given)]
    [True, True]
    """
    groups = dict[Hashable, list[int]]()
    for i, problem in enumerate(problems):
        groups.setdefault(batch_key(problem), []).append(i)
    found: list[Solution | None] = [None] * len(problems)
    for key, places in groups.items():
        if key is None or len(places) == 1:
            continue
        some = [problems[i] for i in places]
        answer = _classes if some[0].loss == losses.zero_one else _bins
        for i, solution in zip(places, answer(some), strict=True):
            found[i] = solution
    return found


def _closed(solution: Solution | None) -> Solution | None:
    return solution if solution is not None and estimated_gap(solution) <= PROVEN else None


def _tried(solver: object, answer: Callable[..., Any], *given: Any) -> Any:
    """Return the answer, or None if floats are too coarse, for which `solve` gives the reason."""
    try:
        with solver_failures(solver):
            return answer(*given)
    except SolverFailed:
        return None


def _classes(problems: list[Problem]) -> list[Solution | None]:
    """RRWithPrior for each of some problems of the same labels."""
    solutions = _tried(CLASSES, many_rr_with_prior, problems)
    if solutions is None:
        return [None] * len(problems)
    return [_closed(replace(solution, stats=Stats(repr(CLASSES)))) for solution in solutions]


def _bins(problems: list[Problem]) -> list[Solution | None]:
    """Randomized response on bins for each of some problems of the same labels, loss and outputs."""
    priors, epsilons = (np.array([getattr(one, name) for one in problems]) for name in ("prior", "epsilon"))
    found = _tried(BINS, many_bins, problems[0], priors, epsilons)
    if found is None:
        return [None] * len(problems)
    first = _tried(BINS, first_duals, found) if problems[0].loss == losses.squared else None
    solutions = list[Solution | None]()
    for i, problem in enumerate(problems):
        solution = None
        if first is not None:
            solution = _closed(_tried(BINS, _on_bins, problem, found.cuts[i], *(part[i] for part in first)))
        solutions.append(solution or _closed(_tried(BINS, BINS.proven, problem, found.starts(i))))
    return solutions


def _on_bins(problem: Problem, cuts: NDArray[np.bool_], outputs: Floats, alpha: Floats) -> Solution:
    """Solution of bins, the output of each label and its multiplier."""
    first = np.flatnonzero(cuts)
    last = np.append(first[1:] - 1, problem.k - 1)
    least = np.exp(-problem.epsilon)
    masses = np.full(first.size, least / (1 + (first.size - 1) * least))
    randomizer = Randomizer.of_arcs(
        problem.labels, Arcs(problem.k, first, last, outputs[first], masses), problem.epsilon
    )
    return Solution(problem, randomizer, Dual(alpha, np.zeros(problem.k)), Stats(repr(BINS), status="the path repeats"))
