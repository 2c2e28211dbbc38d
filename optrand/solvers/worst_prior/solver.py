r"""Squared loss without a prior, by the reduced dual with the prior as a third sum, level by level.

Without a prior the largest loss over labels is the largest average over priors, which is concave in the prior. So the
sums :math:`F_j` of the prior are unknowns next to the sums :math:`b_j, c_j` of the multipliers
(:mod:`optrand.solvers.reduced_dual.descent`), and a slack stays what it is, a concave function of all three
(``docs/mathematics.md``, section 13). On coarse levels neighbouring labels share their prior evenly, and a share of the
prior is spread over all labels: a worst prior often vanishes at half of them, where no price tells which arcs are next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.model import losses
from optrand.model.arcs import Arcs
from optrand.model.feasibility import balanced
from optrand.model.outputs import Grid, Line
from optrand.model.problem import Problem
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.dual_repair import randomizer_of, repair
from optrand.solvers.failures import GuardedSolver
from optrand.solvers.flow.minimax_solver import MinimaxFlow
from optrand.solvers.gaps import PROVEN, estimated_bound, estimated_gap, worst_case_gap
from optrand.solvers.reduced_dual.descent import MOST
from optrand.solvers.reduced_dual.levels import Level
from optrand.solvers.scales import attainable_largest_loss
from optrand.solvers.worst_prior.interior_point import Point, Terms, centred
from optrand.solvers.worst_prior.network import Network

__all__ = ["WorstPrior"]

IDLE = 1e-3
"""Arcs with less mass than this share of their slack are not in use."""

USELESS = 0.1
"""Answers of a larger gap are none."""

VANISHED = 1e-11
"""A prior that moves no price by more than this is zero where the label loses less than the largest loss."""

GAP, EXACT = 1e-14, 1e-13
"""Gap of the finest level, and errors of its equations, in units of the loss."""

ROUGH = 1e-6
"""Errors of the equations of coarse levels."""

COARSEST = 1e-4
"""Gap of a coarse level, at most."""

SHRUNK = 0.9
"""A coarser level with more than this share of the nodes is none."""


class Rung(NamedTuple):
    """How wide and how firm a descent is.

    Attributes
    ----------
    reach : int
        Steps from the path at which arcs are kept.
    fewest : int
        Labels of the coarsest level, at most; there all intervals are arcs.
    firm : float
        The gap of a coarse level of ``k`` labels is ``firm / k**2``, and :data:`COARSEST` at most.
    spread : float
        Share of the prior that coarse levels spread evenly.
    floor : float
        Share that the finest level spreads, while it looks for few arcs that do.
    proximal : float
        Least ratio of slack to multiplier in Newton's equations.
    """

    reach: int = 2
    fewest: int = 24
    firm: float = 3e-3
    spread: float = 1e-2
    floor: float = 1e-7
    proximal: float = 1e-7


ATTEMPTS = (Rung(), Rung(3, 32, 3e-5, 1e-3, proximal=1e-9))
"""A descent, and one that is wider and firmer."""


@dataclass(frozen=True)
class WorstPrior(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals, the prior being an unknown, and `MinimaxFlow`.

    Attributes
    ----------
    gap : float
        Relative gap between the largest loss and its bound at which an answer is taken; the best one otherwise.
    flow : MinimaxFlow
        Solver to call if both attempts prove too little.

    Notes
    -----
    Time ``O(k)`` on each level at a small epsilon, and more the more outputs are private noise around a label: the
    equations are a band whose width grows with epsilon.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> solution = WorstPrior()(problem)
    >>> solution.problem.prior.round(6).tolist(), round(solution.value, 6)
    ([0.25, 0.5, 0.25], 1.966347)
    """

    gap: float = PROVEN
    flow: MinimaxFlow = field(default_factory=MinimaxFlow)

    refusal = (
        "WorstPrior() takes two or more labels, squared loss with a bias penalty above 0, and outputs on the line or "
        "an interval"
    )

    def accepts(self, problem: Problem) -> bool:
        """Squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def _solution(self, problem: Problem) -> Solution:
        best, least = self._best(problem)
        if best is not None and least <= PROVEN:
            return best
        # An answer that is proven less well is better than none.
        with suppress(SolverFailed):
            other = self.flow(problem)
            if not least <= worst_case_gap(other):
                return other
        if best is None or least > USELESS:
            raise SolverFailed("no answer is nearly proven: epsilon is too large for floats")
        return best

    def _best(self, problem: Problem) -> tuple[Solution | None, float]:
        """Return the best claim of the attempts, and its gap."""
        scaled, best, least = Scaled(problem), None, math.inf
        for rung in ATTEMPTS:
            with suppress(np.linalg.LinAlgError):
                for found in scaled.claims(rung):
                    # A randomizer may be proven by the multipliers of another claim.
                    others = () if best is None else (_crossed(found, best), _crossed(best, found))
                    for one in (found, *others):
                        gap = largest_gap(one, self.gap)
                        if gap < least:
                            best, least = one, gap
                    if least <= self.gap:
                        return best, least
            if problem.k <= rung.fewest:
                break
        arcs = None if best is None else best.randomizer.arcs
        if best is not None and best.dual is not None and arcs is not None:
            best = replace(best, dual=repair(best.problem, arcs, best.dual, gap=self.gap))
            least = worst_case_gap(best)
        return best, least


def largest_gap(solution: Solution, enough: float) -> float:
    """Relative gap between the largest loss and its bound, in floats, or exactly where these do not prove enough."""
    if solution.dual is None or not math.isfinite(estimated_gap(solution)):
        return worst_case_gap(solution)
    largest = float(solution.randomizer.losses(bias_penalty=solution.problem.bias_penalty).max())
    gap = (largest - estimated_bound(solution.problem, solution.dual)) / largest
    return gap if gap <= enough else worst_case_gap(solution)


def _crossed(one: Solution, other: Solution) -> Solution:
    """The randomizer of the one with the prior and the multipliers of the other."""
    return replace(other, randomizer=one.randomizer)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A problem in units of a loss that is attained, counted from the middle of the labels."""

    problem: Problem

    @cached_property
    def centre(self) -> float:
        """Middle of the labels."""
        return float(self.problem.labels[0] + np.ptp(self.problem.labels) / 2)

    @cached_property
    def unit(self) -> float:
        """Root of twice the least of the largest losses of some closed forms."""
        return math.sqrt(2 * attainable_largest_loss(self.problem))

    @cached_property
    def places(self) -> Floats:
        """Labels in this unit."""
        places: Floats = (self.problem.labels - self.centre) / self.unit
        return places

    @cached_property
    def box(self) -> tuple[float, float]:
        """Ends of the outputs in this unit."""
        low, high = self.problem.outputs.low, self.problem.outputs.high
        return (low - self.centre) / self.unit, (high - self.centre) / self.unit

    @property
    def excess(self) -> float:
        """``1 / (E - 1)``."""
        return 1 / math.expm1(self.problem.epsilon)

    def terms(self, level: Level, floor: float) -> Terms:
        """A level for the interior point."""
        k = self.problem.k
        starts = np.rint(level.before[:-1] * k).astype(np.int64)
        counts = np.diff(np.append(starts, k))
        places = np.add.reduceat(self.places, starts) / counts
        apart = np.add.reduceat((self.places - np.repeat(places, counts)) ** 2, starts) / counts
        prices = (places**2 + apart) / 2
        if not self.problem.unbiased:
            prices = prices + apart / (2 * self.problem.bias_penalty)
        shares = counts / k
        return Terms(places, places**2 + apart, prices, floor * shares, shares, self.problem.bias_penalty, *self.box)

    def levels(self, rung: Rung) -> list[Level]:
        """All levels, the finest first, with the labels in place of the prior."""
        k = self.problem.k
        gaps = np.concatenate(([0.0], np.diff(self.places), [-self.places[-1]]))
        levels = [Level(np.arange(k + 1) / k, gaps, np.zeros(0, np.int64), np.zeros(0))]
        while levels[-1].before.size - 1 > rung.fewest:
            coarser = levels[-1].coarser()
            if coarser.before.size > SHRUNK * levels[-1].before.size:
                break
            levels.append(coarser)
        return levels

    def network(self, rung: Rung) -> tuple[Network, int]:
        """Arcs of the finest level near the path of the coarser ones, and the number of steps."""
        levels = self.levels(rung)
        network, steps = self._all(levels[-1].before.size - 1), 0
        for number in range(len(levels) - 1, 0, -1):
            size = network.k
            gap = min(COARSEST, rung.firm / size**2)
            terms = self.terms(levels[number], rung.spread)
            point, count = centred(network, terms, gap, ROUGH, proximal=rung.proximal)
            network, steps = self._near(levels[number], point.sums, rung.reach), steps + count
        return network, steps

    def _all(self, k: int) -> Network:
        """All intervals."""
        from optrand.solvers.reduced_dual import strip

        low, high = strip.all_arcs(k)
        places = np.concatenate(([-1], np.arange(k - 1), [-1]))
        return Network(k, *strip.nodes_of(low, high), places, 0, self.excess)

    def _near(self, coarser: Level, sums: Floats, reach: int) -> Network:
        """Intervals of a level near the path of the sums of a coarser one; where outputs end, prefixes and suffixes.

        Without these there might be no randomizer on the arcs. They end at the first or the last node, not in the band.
        """
        before, slopes, costs = (coarser.prolonged(side) for side in sums)
        from optrand.solvers.reduced_dual import strip

        terms = strip.Terms(before, np.zeros(before.size), self.excess, np.zeros(0), *self.box)
        k = before.size - 1
        first, end = strip.near(terms, slopes, costs, reach)
        places, stars = strip.near_order(first, end, k, MOST, True)
        if not (self.problem.unbiased and isinstance(self.problem.outputs, Line)):
            each = np.arange(1, k)
            code = np.concatenate((first * (k + 1) + end, each, each * (k + 1) + k))
            first, end = np.divmod(np.unique(code), k + 1)
        return Network(k, first, end, places, stars, self.excess)

    def claims(self, rung: Rung) -> Iterator[Solution]:
        """On the arcs that are in use under a floor, and on all: without a floor."""
        network, steps = self.network(rung)
        finest = self.levels(rung)[0]

        def at(arcs: Network, floor: float) -> Point:
            nonlocal steps
            point, count = centred(arcs, self.terms(finest, floor), GAP, EXACT, proximal=rung.proximal)
            steps += count
            return point

        used = _used(network, at(network, rung.floor))
        if used.any():
            few = network.only(np.flatnonzero(used))
            yield self._claim(few, at(few, 0.0), np.ones(few.n, dtype=bool), steps)
        point = at(network, 0.0)
        used = _used(network, point)
        if used.any():
            yield self._claim(network, point, used, steps)

    def _claim(self, network: Network, point: Point, used: NDArray[np.bool_], steps: int) -> Solution:
        """The claim of a point: a worst prior, the randomizer of some arcs, and multipliers."""
        problem, n, unit = self.problem, network.n, self.unit
        weight, slope, _ = network.seen(point.sums)
        outputs = np.clip(slope / weight, *self.box)
        farthest = float(np.abs(outputs).max())
        prior = point.slacks[n:]
        idle = (point.multipliers[n:] > prior) & (prior * farthest**2 < VANISHED)
        prior = np.where(idle, 0.0, prior)
        prior = prior / prior.sum()
        _, slopes, costs = np.diff(point.sums)
        beta = slopes - prior * self.places
        if not problem.unbiased:
            beta = np.where(prior > 0, beta, 0.0)
        alpha, beta = (prior * self.places**2 / 2 - costs) * unit**2, beta * unit
        worst = replace(problem, prior=prior)
        low, high = problem.outputs.low, problem.outputs.high
        there = np.where(
            outputs <= self.box[0], low, np.where(outputs >= self.box[1], high, self.centre + unit * outputs)
        )
        order = np.flatnonzero(used)
        order = order[np.lexsort((network.end[order], network.first[order], there[order]))]
        masses = self.excess * point.multipliers[order]
        arcs = Arcs(problem.k, network.first[order], network.end[order] - 1, np.clip(there, low, high)[order], masses)
        randomizer = randomizer_of(worst, balanced(worst, arcs))
        stats = Stats("", iterations=steps, status="solved")
        return Solution(worst, randomizer, Dual(alpha - beta * self.centre, beta), stats)


def _used(network: Network, point: Point) -> NDArray[np.bool_]:
    """Arcs whose mass is not far below their slack."""
    n = network.n
    used: NDArray[np.bool_] = point.multipliers[:n] > IDLE * point.slacks[:n]
    return used
