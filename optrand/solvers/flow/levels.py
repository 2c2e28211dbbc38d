"""Coarse problems for fine ones: from the arcs that every second label uses to those that all labels may use.

The support of an optimal flow hardly changes its shape when labels are left out, so the answer for every second label,
whose prior is moved to its neighbours by unbiased randomized rounding, points at the few arcs among all ``k (k + 1) /
2`` that are worth a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optrand.model.arcs import Indices
from optrand.model.problem import Problem
from optrand.solvers.flow.program import FlowPoint, FlowProgram

__all__ = ["Intervals", "all_arcs", "coarsened", "refined", "united", "widened"]

Intervals = tuple[Indices, Indices]
"""The first and the last label of each interval, both ends in."""

KEPT = 2
"""Arcs of a coarse answer that are worth keeping, for each coarse label."""


TOGETHER = 2
"""Labels, in sum, by which the ends of an interval are moved."""


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


def refined(program: FlowProgram, point: FlowPoint, kept: Indices, k: int) -> Intervals:
    """Arcs for ``k`` labels, of which the program's are those at the places `kept`.

    The arcs that look most in use with either end moved by up to one label, by up to two if they are in use; and the
    singletons, the prefixes and the suffixes, without which there might be no feasible flow.
    """
    likely = np.argsort(-point.complementarity)[: KEPT * program.k]
    used = np.flatnonzero(point.complementarity > 0)
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
