"""Coarse problems for fine ones: from the arcs that every second label uses to those that all labels may use.

The support of an optimal flow hardly changes its shape when labels are left out, so the answer for every second label,
whose prior is moved to its neighbours by unbiased randomized rounding, points at the few arcs among all ``k (k + 1) /
2`` that are worth a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from optrand.model.arcs import Indices
from optrand.model.problem import Problem
from optrand.solvers.backends.conic import ConicProgram, ConicSolution
from optrand.solvers.flow.interval_prices import violated_intervals
from optrand.solvers.flow.program import ArcProgram, Point

__all__ = ["Answer", "Intervals", "all_arcs", "coarsened", "descended", "growing", "refined", "united", "widened"]

Intervals = tuple[Indices, Indices]
"""The first and the last label of each interval, both ends in."""

KEPT = 2
"""Arcs of a coarse answer that are worth keeping, for each coarse label."""

TOGETHER = 2
"""Labels, in sum, by which the ends of an interval are moved."""

WIDENED = 2
"""A missing arc brings those whose ends are up to so many labels away."""

VIOLATED = 1e-11
"""Arcs that cost less than minus this, in units of the loss, are missing from a program."""

COARSE_VIOLATED = 1e-6
"""Violation above which arcs are missing where the answer only points at the arcs of the next level."""

Program = TypeVar("Program", bound=ArcProgram)
Engine = Callable[[ConicProgram], ConicSolution]


class Answer(NamedTuple, Generic[Program]):
    """An answer on some arcs, after so many calls of the engine; final if no more arcs will be added."""

    program: Program
    point: Point
    status: str
    calls: int
    final: bool


def growing(
    program_of: Callable[[Intervals], Program],
    intervals: Intervals,
    engine: Engine,
    *,
    rounds: int,
    polish: Callable[[Program, Point], tuple[Program, Point]] | None = None,
) -> Iterator[Answer[Program]]:
    """Answers on ever more arcs: after each those are added that it prices below zero, and their neighbours.

    Without a `polish` the answers are coarse.
    """
    for call in range(1, rounds + 1):
        program = program_of(intervals)
        answer = engine(program.build())
        some, point = program, program.read(answer)
        if polish:
            some, point = polish(some, point)
        missing = violated_intervals(some, point.potentials, VIOLATED if polish else COARSE_VIOLATED)
        intervals = united(program.k, intervals, widened(program.k, *missing, by=WIDENED))
        final = call == rounds or intervals[0].size == program.n
        yield Answer(some, point, answer.status, call, final)
        if final:
            return


def descended(
    problem: Problem,
    fewest: int,
    program_of: Callable[[Problem, Intervals], Program],
    engine: Engine,
    *,
    rounds: int,
) -> tuple[Intervals, int]:
    """Arcs for a problem from coarse answers level by level, the first on all arcs; and the calls of the engine."""
    levels = list(coarsened(problem, fewest))
    sizes = [problem.k, *(coarse.k for coarse, _ in levels)]
    intervals, calls = all_arcs(sizes[-1]), 0
    for level, (coarse, kept) in reversed(list(enumerate(levels))):
        *_, answer = growing(partial(program_of, coarse), intervals, engine, rounds=rounds)
        intervals = refined(answer.program, answer.point, kept, sizes[level])
        calls += answer.calls
    return intervals, calls


def all_arcs(k: int) -> Intervals:
    """Every interval of ``k`` labels."""
    first, last = np.triu_indices(k)
    return first, last


def coarsened(problem: Problem, fewest: int) -> Iterator[tuple[Problem, Indices]]:
    """The problem on ever fewer labels, down to at most `fewest`, each with the places of its labels in the one before.

    Both end labels stay. The prior of a label that is left out goes to its neighbours so that its mean is kept.
    """
    while problem.k > fewest:
        kept = np.unique(np.append(np.arange(0, problem.k, 2), problem.k - 1))
        labels = problem.labels[kept]
        right = np.clip(np.searchsorted(kept, np.arange(problem.k), side="right"), 1, kept.size - 1)
        share = (problem.labels - labels[right - 1]) / (labels[right] - labels[right - 1])
        prior = np.bincount(right - 1, problem.prior * (1 - share), kept.size)
        prior += np.bincount(right, problem.prior * share, kept.size)
        problem = replace(problem, labels=labels, prior=prior / prior.sum())
        yield problem, kept


def refined(program: ArcProgram, point: Point, kept: Indices, k: int) -> Intervals:
    """Arcs for ``k`` labels, of which the program's are those at the places `kept`.

    The arcs that look most in use with either end moved by up to one label, by up to two if they are in use; and the
    singletons, the prefixes and the suffixes, without which there might be no feasible flow.
    """
    complementarity = point.complementarity[: program.n]
    likely = np.argsort(-complementarity)[: KEPT * program.k]
    used = np.flatnonzero(complementarity > 0)
    near, far = (
        widened(k, kept[program.first[some]], kept[program.last[some]], by) for some, by in ((likely, 1), (used, 2))
    )
    labels, zeros = np.arange(k), np.zeros(k, dtype=np.int64)
    return united(k, near, far, (labels, labels), (zeros, labels), (labels, zeros + k - 1))


def widened(k: int, first: Indices, last: Indices, by: int) -> Intervals:
    """Intervals with either end moved by up to `by` labels, and both together by up to :data:`TOGETHER`."""
    before, after = np.mgrid[-by : by + 1, -by : by + 1].reshape(2, -1)
    close = np.abs(before) + np.abs(after) <= TOGETHER
    firsts = (first[:, np.newaxis] + before[close]).ravel()
    lasts = (last[:, np.newaxis] + after[close]).ravel()
    inside = (firsts >= 0) & (firsts <= lasts) & (lasts < k)
    return firsts[inside], lasts[inside]


def united(k: int, *families: Intervals) -> Intervals:
    """All intervals of some families, each once."""
    codes = np.unique(np.concatenate([first * k + last for first, last in families]))
    first, last = np.divmod(codes, k)
    return first, last
