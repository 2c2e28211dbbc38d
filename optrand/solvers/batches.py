"""Randomized response on bins for many priors and epsilons: their shortest paths at once.

With a few dozen labels most of the time of one path goes into calls. Here each step of a path is one call for all
priors. The gap of each answer is small in floats (:func:`~optrand.solvers.gaps.estimated_gap`), or the problem is left
to :func:`~optrand.solvers.dispatch.solve`. The bound is proven when the answer is certified.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress

import numpy as np

from optrand.errors import SolverFailed
from optrand.model.problem import Problem
from optrand.model.randomizer import Solution
from optrand.solvers.bins.costs import Starts
from optrand.solvers.bins.many import LARGEST_EPSILON, best_cuts
from optrand.solvers.bins.path import BinPath
from optrand.solvers.failures import solver_failures
from optrand.solvers.gaps import PROVEN, estimated_gap

__all__ = ["batch_key", "solve_at_once"]

MOST_LABELS = 256
"""Labels of priors whose bins are found at once: each takes ``O(k^2)`` numbers."""

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
    small = 1 < problem.k <= MOST_LABELS and problem.epsilon <= LARGEST_EPSILON
    if not small or not BINS.accepts(problem) or problem.origin or not (problem.prior > 0).all():
        return None
    return problem.loss, problem.labels.tobytes(), problem.outputs


def solve_at_once(problems: Sequence[Problem]) -> list[Solution | None]:
    """Solve some problems together. Return proven answers, and None for those that must be solved alone.

    Examples
    --------
    >>> import optrand
    >>> from optrand.mechanism.tabulation import tabulate
    >>> given = [optrand.regression([0, 1, 2], prior, 1.0) for prior in ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])]
    >>> [tabulate(solution).certificate.gap < 1e-9 for solution in solve_at_once(given)]
    [True, True]
    """
    groups = dict[Hashable, list[int]]()
    for i, problem in enumerate(problems):
        groups.setdefault(batch_key(problem), []).append(i)
    found: list[Solution | None] = [None] * len(problems)
    for key, places in groups.items():
        if key is None or len(places) == 1:
            continue
        for i, solution in zip(places, _solve_bins([problems[i] for i in places]), strict=True):
            found[i] = solution
    return found


def _solve_bins(problems: list[Problem]) -> list[Solution | None]:
    """Randomized response on bins for each of some problems of the same labels, loss and outputs."""
    priors, epsilons = (np.array([getattr(one, name) for one in problems]) for name in ("prior", "epsilon"))
    # Where floats are too coarse, `solve` gives the reason.
    try:
        with solver_failures(BINS):
            cuts = best_cuts(problems[0], priors, epsilons)
    except SolverFailed:
        return [None] * len(problems)
    return [_proven(problem, np.flatnonzero(cuts[i])) for i, problem in enumerate(problems)]


def _proven(problem: Problem, starts: Starts) -> Solution | None:
    """Return the solution of some bins if its gap is small."""
    with suppress(SolverFailed):
        solution = BINS.proven(problem, starts)
        return solution if estimated_gap(solution) <= PROVEN else None
    return None
