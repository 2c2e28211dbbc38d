"""One descent: a problem in the unit of the kernel, solved on the arcs near a path, level by level.

With sums that are piecewise linear in the prior between every second node, a problem is one of half as many labels,
whose feasible points stay feasible; its path of cheapest intervals points at the arcs of the next level. Labels that
are heavy, or far from their neighbours, are not merged, nor, in an interval without bias, those near the ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices
from optrand.solvers.gaps import PROVEN
from optrand.solvers.reduced_dual.levels import Level
from optrand.solvers.reduced_dual.reduced import IDLE, Claim, Reduced

if TYPE_CHECKING:
    from optrand.solvers.reduced_dual import strip
    from optrand.solvers.reduced_dual.interior_point import Point

__all__ = ["Descent", "Rung", "TimeOver", "TooWide"]

MOST = 48
"""Nodes of more arcs on a side border the band."""

WORK = 2e8, 4e4, 200.0
"""Operations of a factor, those for each label and for each pair of them, at most; a path that needs more is none."""

LEAST = 1e-18
"""Gap of the finest level, at least."""

STEEP = 2.0
"""In an interval without bias labels are not merged across gaps that are wider, times this, than it is to an end."""

SHRUNK = 0.9
"""A coarser level with more than this share of the nodes is none."""

EXACT = 1e-11
"""Errors of equations at the end of a level, in the unit of the kernel."""

FAR = 1e3
"""A level that ends at so many times its gap has failed: its arcs hold no randomizer, or lack some that matter."""

FIRM = 3e-5
"""Gap of a coarse level, times the number of labels, over the prior of the rarest; 1e-4 at most."""

AGAIN = 2
"""How often arcs that are too cheap are added to a coarse level."""

PRICED, CLOSING = 2, 8
"""How often arcs that are too cheap are added to the finest level, far off or near."""

FALLING = 0.5
"""Share of the last gap at which the finest level comes closer: more arcs are added, far off as it may be."""

ASIDE = 1, 3, 8
"""Nodes by which one end of arcs that are too cheap is moved, too, where the first such arcs left a level far off."""

LACK = 1e-15
"""Slack of which arcs of the finest level lack more where they are too cheap."""

NEAR = 1e-3
"""Relative gap below which a few more arcs are likely to be all that lacks."""

MOST_PRICED = 20_000
"""Nodes of which all pairs are looked at, at most."""
Nodes = tuple[Indices, Indices]
"""First and end nodes of arcs."""

Start = tuple[Floats, Floats]
"""Sums ``b, c`` of the multipliers up to each node, near which the steps of a level begin."""


class Rung(NamedTuple):
    """How wide and how firm a descent is.

    Attributes
    ----------
    reach : int
        Steps from the path at which arcs are kept; one more in an interval without bias.
    fewest : int
        Labels of the coarsest level, at most; there all intervals are arcs.
    floor : float
        Share of the prior that coarse levels spread evenly: of labels without any, their answers would tell nothing.
    gap : float
        That of the finest level, as a share of what is to be minimised.
    priced : bool
        Whether arcs that are too cheap are added to coarse levels that have not failed, too.
    cautious : bool
        Whether steps that overestimate concave slacks are halved.
    """

    reach: int = 2
    fewest: int = 24
    floor: float = 1e-7
    gap: float = 1e-15
    priced: bool = True
    cautious: bool = False


class TimeOver(Exception):
    """The limit has passed within a descent."""


class TooWide(Exception):
    """A band that costs more than the flow, often of arcs that only look cheap to a level that has failed."""


@dataclass(frozen=True)
class Descent:
    """A descent of some width; no level is begun after the time `end`, as of :func:`time.perf_counter`."""

    reduced: Reduced
    rung: Rung
    end: float = math.inf

    @property
    def levels(self) -> list[Level]:
        """All levels, the finest first."""
        levels = [self.reduced.level(self.rung.floor)]
        while levels[-1].before.size - 1 > self.rung.fewest:
            coarser = levels[-1].coarser(STEEP if self.reduced.boxed else 0.0)
            if coarser.before.size > SHRUNK * levels[-1].before.size:
                break
            levels.append(coarser)
        return levels

    def claim(self) -> Claim:
        """Return the best candidate of the finest level."""
        nodes, start, whole, steps = self.candidate_arcs()
        claim = self._on_finest(nodes, start, whole=whole)
        return claim._replace(steps=steps + claim.steps)

    def candidate_arcs(self) -> tuple[Nodes, Start, bool, int]:
        """Solve all coarser levels, and return the arcs of the finest one that their answer points at.

        Returns
        -------
        nodes : tuple of arrays
            First and end nodes of the arcs.
        start : tuple of arrays
            Sums of the multipliers near which the steps of the finest level begin.
        whole : bool
            Whether the arcs are all intervals.
        steps : int
            Number of steps of the coarser levels.
        """
        # Loading the compiler takes longer than solving: it waits for the first problem.
        from optrand.solvers.reduced_dual import strip
        from optrand.solvers.reduced_dual.interior_point import centre_of

        levels, reach = self.levels, self.rung.reach + self.reduced.boxed
        steps, start = 0, (np.zeros(0), np.zeros(0))
        for number in self._in_time(range(len(levels) - 1, -1, -1)):
            before, gaps, *_ = levels[number]
            terms, whole = self.reduced.terms(before, gaps), number == len(levels) - 1
            if whole:
                start = centre_of(terms)
                nodes = strip.nodes_of(*strip.all_arcs(before.size - 1))
            else:
                slopes, costs = start
                start = levels[number + 1].prolonged(slopes), levels[number + 1].prolonged(costs)
                nodes = strip.near(terms, *start, reach)
            if not number and (whole or not self.reduced.boxed):
                break
            start, count = self._on_level(terms, nodes, start, whole=whole)
            steps += count
        else:
            nodes = strip.near(terms, *start, reach)
        return nodes, start, whole, steps

    def _in_time(self, numbers: Iterable[int]) -> Iterator[int]:
        """Yield numbers until the time limit has passed."""
        for number in numbers:
            if time.perf_counter() >= self.end:
                raise TimeOver
            yield number

    def _on_level(self, terms: strip.Terms, nodes: Nodes, start: Start, *, whole: bool) -> tuple[Start, int]:
        """Return the sums on some arcs of a level, the arcs that they violate, and the number of steps."""
        from optrand.solvers.reduced_dual import mending
        from optrand.solvers.reduced_dual.groups import Groups
        from optrand.solvers.reduced_dual.refinement import Sums

        gap, steps = min(1e-4, FIRM * float(np.diff(terms.before).min()) / (terms.before.size - 1)), 0
        for _ in self._in_time(range(1 + AGAIN)):
            arcs, point, count, failed = self.solve(terms, nodes, gap, start, whole=whole)
            steps += count
            more = self._more(terms, nodes, point, gap, failed=failed) if failed or self.rung.priced else None
            if more is None:
                break
            nodes = more
        costs = point.costs
        if terms.charges.size:
            ends = arcs.first, arcs.end, mending.outputs_of(arcs, terms, point.slopes)
            sums = Sums(terms.before, point.slopes, costs)
            groups = Groups.of_used(terms, sums, ends, point.mass > IDLE * point.slack)
            costs = next(groups.candidates()).astype(np.float64, copy=False)
        return (point.slopes, costs), steps

    def _on_finest(self, nodes: Nodes, start: Start, *, whole: bool) -> Claim:
        """Return the best candidate by some arcs of the finest level and those that its answers violate."""
        from optrand.solvers.reduced_dual.claims import claimed

        reduced, steps, best, last = self.reduced, 0, Claim(None, math.inf, 0), math.inf
        terms = reduced.terms(reduced.finest.before, reduced.finest.gaps)
        gap = max(LEAST, self.rung.gap * reduced.share)
        try:
            for number in self._in_time(range(1 + CLOSING)):
                arcs, point, count, failed = self.solve(terms, nodes, gap, start, whole=whole)
                steps += count
                claim = claimed(reduced, arcs, point)
                if best.solution is None or claim.gap < best.gap:
                    best = claim
                far, falls, last = not claim.gap < NEAR, claim.gap < FALLING * last, claim.gap
                if best.gap <= PROVEN or (number >= PRICED and far and not falls):
                    break
                more = self._more(terms, nodes, point, LACK, failed=failed, aside=ASIDE if number and far else ())
                if more is None:
                    break
                nodes = more
        except (TimeOver, TooWide):
            if best.solution is None:
                raise
        return best._replace(steps=steps)

    def solve(
        self, terms: strip.Terms, nodes: Nodes, gap: float, start: Start, *, whole: bool, values: Floats | None = None
    ) -> tuple[strip.Arcs, Point, int, bool]:
        """Arcs between some nodes, the point where the interior point ends, its steps, and whether it failed.

        With `values`, the output of each arc is fixed.
        """
        from optrand.solvers.reduced_dual.interior_point import Point, interior_point

        arcs = self._arcs(terms, nodes, values, whole=whole)
        *numbers, count = interior_point(arcs, terms, gap, EXACT, start, self.rung.cautious)
        point = Point(*numbers)
        return arcs, point, abs(count), not point.mass @ point.slack < FAR * gap

    def _arcs(self, terms: strip.Terms, nodes: Nodes, values: Floats | None, *, whole: bool) -> strip.Arcs:
        """Arcs of a level; where they are all, their nodes stay in order."""
        from optrand.solvers.reduced_dual import strip

        k = terms.before.size - 1
        places, stars = np.concatenate(([-1], np.arange(k - 1), [-1])), 0
        if not whole:
            places, stars = strip.near_order(*nodes, k, MOST, not self.reduced.problem.unbiased)
        if not self.reduced.stretched:
            places[k], stars = k - 1, stars + 1
        bounds = np.full(nodes[0].size, terms.low), np.full(nodes[0].size, terms.high)
        if values is not None:
            bounds = values, values
        arcs = strip.arcs_of(*nodes, bounds, places, stars, terms.charges.size > 0)
        border = 0 if self.reduced.stretched else 2 * stars
        if arcs.banded * (arcs.width + border) ** 2 > WORK[0] + k * (WORK[1] + k * WORK[2]):
            raise TooWide
        return arcs

    def _more(
        self,
        terms: strip.Terms,
        nodes: Nodes,
        point: Point,
        lack: float,
        *,
        failed: bool,
        aside: tuple[int, ...] = (),
    ) -> Nodes | None:
        """Arcs with those that lack more of a slack than given; None where there are none, or too many to look at.

        Those that lack come with arcs of which one end is so many nodes `aside`. Arcs that hold no unbiased randomizer
        within the outputs get those at the ends first.
        """
        from optrand.solvers.reduced_dual import pricing

        slopes, costs = point.slopes, point.costs
        if failed and self.reduced.boxed:
            more = pricing.united(nodes, pricing.end_arcs(slopes.size - 1))
            if more[0].size > nodes[0].size:
                return more
        if slopes.size > MOST_PRICED or not (np.isfinite(slopes).all() and np.isfinite(costs).all()):
            return None
        cheap = pricing.cheap_arcs(terms, slopes, costs, -lack)
        if aside and cheap[0].size:
            cheap = pricing.spread(cheap, slopes.size - 1, aside)
        more = pricing.united(nodes, cheap)
        return more if more[0].size > nodes[0].size else None
