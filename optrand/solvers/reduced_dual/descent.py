r"""One descent: a problem in the unit of the kernel, solved on the arcs near a path, level by level.

Without bias and ends, shifting and stretching the line of outputs maps dual-feasible points to such points, so the
total of all labels' terms can be fixed (:mod:`optrand.solvers.reduced_dual.strip`); from a point of value :math:`W`
the best stretch gives the bound :math:`(W^2 - \operatorname{Var} Y) / 2`. Elsewhere the total is unknown. With sums
that are piecewise linear in the prior between every second node, a problem is one of half as many labels, whose
feasible points stay feasible; its path of cheapest intervals points at the arcs of the next level. Labels that are
heavy, or far from their neighbours, are not merged, nor, in an interval without bias, those near the ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.certificates.quick import quick_gap
from optrand.model.arcs import Arcs, Indices
from optrand.model.outputs import Line
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.reduced_dual.levels import Level
from optrand.solvers.scales import attainable_loss

if TYPE_CHECKING:
    from optrand.solvers.reduced_dual import strip
    from optrand.solvers.reduced_dual.groups import Groups

__all__ = ["Claim", "Reduced", "Rung", "TimeOver", "TooWide"]

MOST = 48
"""Nodes of more arcs on a side border the band."""

IDLE = 1e-3
"""Arcs with less mass than this share of their slack are not in use."""

FAINTLY_USED = 0.0, 1e-9, 1e-6
"""Arcs of no more mass fix no multipliers: the ones of the least may be in use by rounding alone."""

PROVEN = 5e-10
"""Relative gap with which the fewest arcs are taken."""

WORK = 2e8, 4e4, 150.0
"""Operations of a factor, those for each label and for each pair of them, at most; a path that needs more is none."""

LEAST = 1e-18
"""Gap of the finest level, at least."""

STEEP = 2.0
"""In an interval without bias labels are not merged across gaps that are wider, times this, than it is to an end."""

FREELY = 1e6, 1.0
"""How much more freely than outputs masses move in an interval without bias; the last one elsewhere."""

SHRUNK = 0.9
"""A coarser level with more than this share of the nodes is none."""

FAINT = 1e-20
"""Biases are charged as if no weight of one were smaller."""

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

LACK = 1e-14
"""Slack of which arcs of the finest level lack more where they are too cheap."""

NEAR = 1e-3
"""Relative gap below which a few more arcs are likely to be all that lacks."""

MOST_PRICED = 20_000
"""Nodes of which all pairs are looked at, at most."""

NEARLY = 1e-9
"""Relative gap that is open by rounding, and not for lack of arcs."""

SOLVED = Stats("Reduced", status="solved")
"""Of what is found on the way."""

Nodes = tuple[Indices, Indices]
"""First and end nodes of arcs."""


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
    """

    reach: int = 2
    fewest: int = 24
    floor: float = 1e-7
    gap: float = 1e-15
    priced: bool = True


class Claim(NamedTuple):
    """An answer of one descent, none where floats gave out; its proven gap in floats, and the number of steps."""

    solution: Solution | None
    gap: float
    steps: int


class TimeOver(Exception):
    """The limit has passed within a descent."""


class TooWide(Exception):
    """A band that costs more than the flow, often of arcs that only look cheap to a level that has failed."""


def _before(end: float, numbers: Iterable[int]) -> Iterator[int]:
    """Some numbers, as long as there is time."""
    for number in numbers:
        if time.perf_counter() >= end:
            raise TimeOver
        yield number


@dataclass(frozen=True)
class Reduced:
    """A problem in the unit of the kernel."""

    problem: Problem

    @cached_property
    def total(self) -> float:
        """Sum of the prior."""
        return float(self.problem.prior.sum())

    @cached_property
    def stretched(self) -> bool:
        """Whether outputs may be shifted and stretched, so that the sums of the last node are fixed."""
        return self.problem.unbiased and isinstance(self.problem.outputs, Line)

    @property
    def boxed(self) -> bool:
        """Whether no bias is allowed in an interval: there the arcs of a descent often lack many that matter."""
        return self.problem.unbiased and not self.stretched

    @cached_property
    def mean(self) -> float:
        """Mean label, or the allowed output next to it, measured from the lowest label."""
        lowest, outputs = self.problem.labels[0], self.problem.outputs
        mean = float(self.problem.prior @ (self.problem.labels - lowest)) / self.total
        return float(np.clip(mean, outputs.low - lowest, outputs.high - lowest))

    @cached_property
    def offsets(self) -> Floats:
        """Labels less :attr:`mean`."""
        offsets: Floats = (self.problem.labels - self.problem.labels[0]) - self.mean
        return offsets

    @cached_property
    def box(self) -> tuple[float, float]:
        """Ends of the outputs, measured from :attr:`mean` in the unit of the kernel."""
        low, high = (
            (end - self.problem.labels[0] - self.mean) / self.unit
            for end in (self.problem.outputs.low, self.problem.outputs.high)
        )
        return float(low), float(high)

    def terms(self, before: Floats, gaps: Floats) -> strip.Terms:
        """A level for the kernel."""
        from optrand.solvers.reduced_dual.strip import Terms

        penalty, charges = self.problem.bias_penalty, np.zeros(0)
        if not self.problem.unbiased:
            charges = 1 / np.maximum(penalty * np.diff(before), FAINT)
        return Terms(before, gaps, 1 / math.expm1(self.problem.epsilon), charges, *self.box)

    @cached_property
    def finest(self) -> Level:
        """All nodes."""
        return self.level(0.0)

    def level(self, floor: float) -> Level:
        """All nodes, where a share of the prior is spread evenly."""
        k, prior = self.problem.k, self.problem.prior / self.total
        before = np.append(0.0, np.cumsum((1 - floor) * prior + floor / k))
        before /= before[-1]
        return Level(before, self.gaps, np.zeros(0, np.int64), np.zeros(0))

    @cached_property
    def gaps(self) -> Floats:
        """Distance of the labels beside each node, as in :class:`Level`; with a price of bias, what it is charged."""
        gaps: Floats = np.concatenate(([0.0], np.diff(self.problem.labels), [-self.offsets[-1]])) / self.unit
        return gaps if self.problem.unbiased else gaps * (1 + 1 / self.problem.bias_penalty)

    @cached_property
    def variance(self) -> float:
        """Of the labels."""
        return float(self.problem.prior @ self.offsets**2) / self.total

    @cached_property
    def unit(self) -> float:
        """The root of twice a loss that is attained and of the variance."""
        if not self.stretched:
            return math.sqrt(2 * attainable_loss(self.problem) + self.variance)
        before = np.cumsum(self.problem.prior)[:-1] / self.total
        excess = math.expm1(self.problem.epsilon)
        roots = np.sqrt(1 + excess + excess**2 * before * (1 - before))
        return float(np.diff(self.problem.labels) @ roots) / excess

    @cached_property
    def share(self) -> float:
        """Of the square of the unit that is not the variance: about that of the loss in what is minimised."""
        return max(0.0, 1 - self.variance / self.unit**2)

    def _levels(self, rung: Rung) -> list[Level]:
        """All levels, the finest first."""
        levels = [self.level(rung.floor)]
        while levels[-1].before.size - 1 > rung.fewest:
            coarser = levels[-1].coarser(STEEP if self.boxed else 0.0)
            if coarser.before.size > SHRUNK * levels[-1].before.size:
                break
            levels.append(coarser)
        return levels

    def solution(self, rung: Rung, *, end: float = math.inf) -> Claim:
        """A claim by one descent.

        No level is begun after the time `end`, as of :func:`time.perf_counter`.
        """
        # Loading the compiler takes longer than solving: it waits for the first problem.
        from optrand.solvers.reduced_dual import interior_point, mending, strip
        from optrand.solvers.reduced_dual.groups import Groups

        levels, reach = self._levels(rung), rung.reach + self.boxed
        steps, slopes, costs = 0, np.zeros(0), np.zeros(0)
        for number in _before(end, range(len(levels) - 1, -1, -1)):
            before, gaps, *_ = levels[number]
            terms, k = self.terms(before, gaps), before.size - 1
            whole = number == len(levels) - 1
            if whole:
                nodes = strip.nodes_of(*strip.all_arcs(k))
            else:
                slopes, costs = levels[number + 1].prolonged(slopes), levels[number + 1].prolonged(costs)
                nodes = strip.nodes_of(*strip.strip_around(*strip.path(terms, slopes, costs), reach))
            if not number and (whole or not self.boxed):
                break
            gap = min(1e-4, FIRM * float(np.diff(before).min()) / k)
            for _ in _before(end, range(1 + AGAIN)):
                arcs = self._arcs(terms, nodes, whole=whole)
                slopes, costs, mass, slack, count = interior_point.interior_point(arcs, terms, gap, EXACT)
                steps += abs(count)
                failed = not mass @ slack < FAR * gap
                more = self._more(terms, nodes, (slopes, costs), gap, failed=failed) if failed or rung.priced else None
                if more is None:
                    break
                nodes = more
            if terms.charges.size:
                outputs = mending.outputs_of(arcs, terms, slopes)
                groups = Groups.of_used(terms, slopes, costs, (arcs.first, arcs.end, outputs), mass > IDLE * slack)
                costs = next(groups.candidates())
        else:
            nodes = strip.nodes_of(*strip.strip_around(*strip.path(terms, slopes, costs), reach))
        claim = self._priced(nodes, max(LEAST, rung.gap * self.share), end, whole=whole)
        return claim._replace(steps=steps + claim.steps)

    def _priced(self, nodes: Nodes, gap: float, end: float, *, whole: bool) -> Claim:
        """The best claim by some arcs of the finest level and those that its answers leave too cheap."""
        from optrand.solvers.reduced_dual import interior_point

        terms, steps = self.terms(self.finest.before, self.finest.gaps), 0
        best = Claim(None, math.inf, 0)
        for number in _before(end, range(1 + CLOSING)):
            arcs = self._arcs(terms, nodes, whole=whole)
            slopes, costs, mass, slack, count = interior_point.interior_point(arcs, terms, gap, EXACT)
            steps += abs(count)
            failed = not mass @ slack < FAR * gap
            claim = self._claim(arcs, (slopes, costs, mass, slack))
            if best.solution is None or claim.gap < best.gap:
                best = claim
            if best.gap <= NEARLY or (number >= PRICED and not claim.gap < NEAR):
                break
            more = self._more(terms, nodes, (slopes, costs), LACK, failed=failed)
            if more is None:
                break
            nodes = more
        return best._replace(steps=steps)

    def _arcs(self, terms: strip.Terms, nodes: Nodes, *, whole: bool) -> strip.Arcs:
        """Arcs of a level; where they are all, their nodes stay in order."""
        from optrand.solvers.reduced_dual import strip

        k = terms.before.size - 1
        places, stars = np.concatenate(([-1], np.arange(k - 1), [-1])), 0
        if not whole:
            places, stars = strip.near_order(*nodes, k, MOST, not self.problem.unbiased)
        if not self.stretched:
            places[k], stars = k - 1, stars + 1
        arcs = strip.arcs_of(*nodes, places, stars, terms.charges.size > 0)
        border = 0 if self.stretched else 2 * stars
        if arcs.banded * (arcs.width + border) ** 2 > WORK[0] + k * (WORK[1] + k * WORK[2]):
            raise TooWide
        return arcs

    def _more(
        self, terms: strip.Terms, nodes: Nodes, sums: tuple[Floats, Floats], lack: float, *, failed: bool
    ) -> Nodes | None:
        """Arcs with those that lack more of a slack than given; None where there are none, or too many to look at.

        Arcs that hold no unbiased randomizer within the outputs get those at the ends first.
        """
        from optrand.solvers.reduced_dual import pricing

        slopes, costs = sums
        if failed and self.boxed:
            more = pricing.united(nodes, pricing.end_arcs(slopes.size - 1))
            if more[0].size > nodes[0].size:
                return more
        if slopes.size > MOST_PRICED or not (np.isfinite(slopes).all() and np.isfinite(costs).all()):
            return None
        more = pricing.united(nodes, pricing.cheap_arcs(terms, slopes, costs, -lack))
        return more if more[0].size > nodes[0].size else None

    def _claim(self, arcs: strip.Arcs, point: tuple[Floats, Floats, Floats, Floats]) -> Claim:
        """A claim by the sums, masses and slacks where the interior point ends on some arcs."""
        from optrand.solvers.reduced_dual import mending
        from optrand.solvers.reduced_dual.groups import Groups

        terms = self.terms(self.finest.before, self.finest.gaps)
        slopes, costs, mass, slack = point
        if not (np.isfinite(slopes).all() and np.isfinite(costs).all() and np.isfinite(mass).all()):
            return Claim(None, math.inf, 0)
        ratios, enough = mass / slack, 2 * self.problem.k - 2 * self.stretched
        used = ratios > IDLE
        # Some optimum has no more arcs than that; where these are not its arcs, all that look in use are kept.
        few = used & (ratios >= np.partition(ratios, -enough)[-enough]) if used.sum() > enough else used
        best, least = None, math.inf
        kept = (few, used) if few.sum() < used.sum() else (used,)
        for some, free in product(kept, FREELY if self.boxed else FREELY[-1:]):
            masses, outputs = mending.mended(arcs, terms, slopes, np.where(some, mass, 0.0), free)
            if not (masses > 0).any():
                break
            randomizer = self._randomizer(arcs, masses, outputs)
            found = Solution(self.problem, randomizer, self._dual(slopes, np.diff(costs)), SOLVED)
            gap = quick_gap(found)
            for faint in FAINTLY_USED if not self.stretched and gap < math.inf else ():
                if gap <= PROVEN:
                    break
                groups = Groups.of_used(terms, slopes, costs, (arcs.first, arcs.end, outputs), masses > faint)
                found, gap = self._settled(found, gap, groups)
            if best is None or gap < least:
                best, least = found, gap
            if least <= PROVEN:
                break
        return Claim(best, least, 0)

    def _randomizer(self, arcs: strip.Arcs, mass: Floats, outputs: Floats) -> Randomizer:
        """The masses as probabilities, and the outputs in the unit of the labels."""
        problem, excess = self.problem, math.expm1(self.problem.epsilon)
        used = np.flatnonzero(mass > 0)
        first, end, mass, outputs = arcs.first[used], arcs.end[used], mass[used], outputs[used]
        scale = 1 / (mass.sum() + excess * mass[first == 0].sum())
        mass = mass * scale
        if self.stretched:
            outputs = outputs * (self.unit / (excess * scale))
            below = mass @ outputs + excess * (mass @ np.where(first == 0, outputs, 0.0))
            outputs += problem.labels[0] - below
        else:
            low, high = problem.outputs.low, problem.outputs.high
            there = problem.labels[0] + (self.mean + self.unit * outputs)
            there = np.where(outputs <= self.box[0], low, np.where(outputs >= self.box[1], high, there))
            outputs = np.clip(there, low, high)
        order = np.lexsort((end, first, outputs))
        some = Arcs(problem.k, first[order], end[order] - 1, outputs[order], mass[order])
        return Randomizer.of_arcs(problem.labels, some, problem.epsilon)

    def _dual(self, slopes: Floats, cost: Floats) -> Dual:
        """The multipliers of sums ``b`` and of each label's share of the sums ``c``; at their best stretch, if free."""
        problem, total = self.problem, self.total
        stretch = -float(self.finest.gaps @ slopes) * self.unit if self.stretched else self.unit
        prior = problem.prior / total
        beta = stretch * np.diff(slopes) - prior * self.offsets
        if not problem.unbiased:
            beta = np.where(prior * problem.bias_penalty >= FAINT, beta, 0.0)
        alpha = prior * self.offsets**2 / 2 - stretch**2 * cost
        alpha -= beta * (problem.labels[0] + self.mean)
        return Dual(total * alpha, total * beta)

    def _settled(self, found: Solution, gap: float, groups: Groups) -> tuple[Solution, float]:
        """The solution with those multipliers of the groups that prove most, and its gap."""
        for cost in chain((groups.clipped,), map(np.diff, groups.candidates())):
            other = replace(found, dual=self._dual(groups.slopes, cost))
            proven = quick_gap(other)
            if proven < gap:
                found, gap = other, proven
            if gap <= PROVEN:
                break
        return found, gap
