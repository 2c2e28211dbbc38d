"""Candidate solutions from the last point of the kernel on some arcs of the finest level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.model.problem import Dual
from optrand.model.randomizer import Solution, Stats
from optrand.solvers.gaps import PROVEN, estimated_gap
from optrand.solvers.reduced_dual.arcs import Arcs, Terms
from optrand.solvers.reduced_dual.kernel import Point
from optrand.solvers.reduced_dual.multipliers import Groups, Sums, refine_sums
from optrand.solvers.reduced_dual.reduced import IDLE, Candidate, Reduced
from optrand.solvers.reduced_dual.restoration import restore_feasibility

__all__ = ["find_candidate"]

FAINTLY_USED = 0.0, 1e-9, 1e-6
"""Arcs of no more mass fix no multipliers: the ones of the least may be in use by rounding alone."""

FREELY = 1e6, 1.0
"""How much more freely than outputs masses move in an interval without bias; the last one elsewhere."""

SOLVED = Stats("", status="solved")
"""Statistics of answers, without the number of steps."""


def find_candidate(reduced: Reduced, arcs: Arcs, point: Point) -> Candidate:
    """Return the best candidate by the masses, slacks and sums at which the interior point ends."""
    best = Candidate(None, math.inf, 0)
    if not point.is_finite():
        return best
    end = _End(reduced, arcs, point)
    for some, free in product(end.kept, FREELY if reduced.boxed else FREELY[-1:]):
        masses, outputs = restore_feasibility(arcs, end.terms, point.slopes, np.where(some, point.mass, 0.0), free)
        if not (masses > 0).any():
            break
        randomizer = reduced.randomizer(arcs, masses, outputs)
        for dual in end.duals(masses, outputs, randomizer.biases):
            solution = Solution(reduced.problem, randomizer, dual, SOLVED)
            gap = estimated_gap(solution)
            if best.solution is None or gap < best.gap:
                best = Candidate(solution, gap, 0)
            if best.gap <= PROVEN:
                return best
            if gap == math.inf:
                break
    return best


@dataclass(frozen=True, eq=False)
class _End:
    """Where the interior point ends on some arcs of the finest level."""

    reduced: Reduced
    arcs: Arcs
    point: Point

    @cached_property
    def terms(self) -> Terms:
        """The finest level."""
        return self.reduced.terms(self.reduced.finest.before, self.reduced.finest.gaps)

    @cached_property
    def refined(self) -> Sums:
        """Sums in extended precision."""
        return refine_sums(self.arcs, self.terms, self.point, self.reduced.before)

    @property
    def kept(self) -> list[NDArray[np.bool_]]:
        """Which arcs may be in use: the fewest, then all that look so."""
        ratios, enough = self.point.mass / self.point.slack, 2 * (self.reduced.problem.k - self.reduced.stretched)
        used = ratios > IDLE
        if used.sum() <= enough:
            return [used]
        # Some optimum has no more arcs than that.
        few = used & (ratios >= np.partition(ratios, -enough)[-enough])
        return [few, used] if few.sum() < used.sum() else [used]

    def duals(self, masses: Floats, outputs: Floats, biases: Floats) -> Iterator[Dual]:
        """Generate candidate multipliers, those that most often prove the answer first.

        They are those of the interior point in floats, the same in extended precision, and those of groups of labels
        that the arcs in use do not tell apart. With a price of bias the first of the groups come first: those of the
        interior point then prove one answer in five.
        """
        sums, arcs = Sums(self.terms.before, *self.point[:2]), (self.arcs.first, self.arcs.end, outputs)
        if not self.reduced.problem.unbiased:
            groups = Groups.of_used(self.terms, sums, arcs, masses > 0)
            yield self.reduced.dual(sums.slopes, np.diff(next(groups.candidates())), biases)
        yield self.reduced.dual(sums.slopes, np.diff(sums.costs), biases)
        yield self.reduced.dual(self.refined.slopes, np.diff(self.refined.costs), biases)
        for faint in () if self.reduced.stretched else FAINTLY_USED:
            groups = Groups.of_used(self.terms, self.refined, arcs, masses > faint)
            for cost in chain((groups.clipped,), map(np.diff, groups.candidates())):
                yield self.reduced.dual(self.refined.slopes, cost, biases)
