"""Answers on a grid that floats leave open, finished by the active-set method in integers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optrand.certificates.certificate import certify
from optrand.errors import InvalidInput, SolverFailed
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Solution, Stats
from optrand.model.staircase import Staircase, decompose, rounding_noise
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.grid.active_set import active_set

__all__ = ["finishable", "finished"]

PROVEN = 1e-9
"""Relative gap, certified, with which an answer in floats is left as it is."""

MOST = 4e6
"""Largest product of equations, entries and digits, in units of 500 digits, of what is finished in integers."""


def finished(problem: Problem, in_floats: Callable[[Problem], Solution]) -> Solution:
    """Answer of a solver in floats, or the optimum in integers where there is none or its certificate is short.

    Raises
    ------
    SolverFailed
        Where the solver in floats raises it and the problem is too large for integers.
    """
    small = finishable(problem)
    try:
        solution = in_floats(problem)
        gap = _gap(solution) if small else 0.0
        if gap <= PROVEN:
            return solution
    except SolverFailed:
        if not small:
            raise
        solution, gap = None, math.inf
    start = Staircase(np.zeros((problem.k, 0), dtype=bool), np.zeros(0), np.zeros(0))
    if solution is not None:
        ratio, noise = math.exp(problem.epsilon), rounding_noise(problem.epsilon)
        start = decompose(solution.randomizer, ratio, negligible=noise)
    found = active_set(problem, start)
    if found is not None and found.columns.masses.size:
        stats = Stats("", iterations=found.steps, status="optimal in integers")
        exact = Solution(problem, randomizer_of(problem, found.columns), found.dual, stats)
        if solution is None or _gap(exact) < gap:
            return exact
    if solution is None:
        raise SolverFailed("no optimum was found in floats or in integers: round labels and outputs to fewer digits")
    return solution


def _gap(solution: Solution) -> float:
    """Certified relative gap; infinite where the randomizer is not feasible."""
    try:
        proof = certify(solution)
    except InvalidInput:
        return math.inf
    return math.inf if proof.findings else proof.gap


def finishable(problem: Problem) -> bool:
    """Whether the outputs are a grid and a step of each equation, in numbers of hundreds of digits, takes seconds."""
    if not isinstance(problem.outputs, Grid):
        return False
    k, n = problem.k, problem.outputs.values.size
    equations = 2 * k if problem.bias_penalty else k
    return equations * (16 * k**2 + 2 * k * n) * (1 + 9 * problem.epsilon / 500) <= MOST
