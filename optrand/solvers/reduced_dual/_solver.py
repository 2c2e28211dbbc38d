"""Squared loss on the line or an interval: two attempts of the interior point on candidate arcs, level by level.

A coarse level requires the sums of the multipliers to be linear in the prior between kept nodes. This restricts the
dual, so a feasible point of a coarse level is feasible, and its cheapest intervals are the candidate arcs of the finer
level. Labels that are heavy, or far from their neighbours, are not merged, nor, in an interval without bias, those near
the ends.

In an interval that is hardly wider than the narrowest one, nearly all outputs of an unbiased randomizer are its ends.
There the slacks are not differentiable, and Newton's method may cycle. Problems of few labels that both attempts leave
unproven go to the cone program (:mod:`optrand.solvers._cones`), which has a variable for each end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.closed_forms._regression import design_two_ends
from optrand.errors import Infeasible, InvalidInput, SolverFailed
from optrand.mechanism._tabulation import Solution
from optrand.model._problem import Grid, Problem
from optrand.solvers._cones import solve_cones
from optrand.solvers._feasibility import feasible_answer
from optrand.solvers._interface import GuardedSolver
from optrand.solvers._optimality import candidates
from optrand.solvers.reduced_dual._answers import Reduced, best_outputs, better, find_answer
from optrand.solvers.reduced_dual._arcs import (
    Arcs,
    Level,
    Nodes,
    Terms,
    all_arcs,
    arcs_near_path,
    build_arcs,
    coarsen_to,
    end_arcs,
    find_violated_arcs,
    order_nodes,
    unite_arcs,
)
from optrand.solvers.reduced_dual._interior_point import KernelOptions, Point, interior_point
from optrand.solvers.reduced_dual._multipliers import Groups, Sums

Start = tuple[Floats, Floats]
"""Sums ``b, c`` of the multipliers up to each node, near which the iteration of a level begins."""


@dataclass(frozen=True)
class Attempt:
    """Tuning of one attempt, on 2,000 random problems of up to 400 labels.

    Attributes
    ----------
    reach : int
        Steps from the path at which arcs are kept, and one more in an interval without bias.
    fewest : int
        Labels of the coarsest level, at most. There all intervals are arcs. With 24, up to 64 labels take half as long
        again, and more labels just as long.
    floor : float
        Share of the prior that is spread evenly over the labels on coarse levels: where a prior is zero, reduced costs
        do not show which arcs are next.
    gap, least : float
        Complementarity of the finest level, as a share of the minimum, and its lower bound.
    many : int
        Number of labels beyond which `gap` falls with its square. Otherwise it does not show at 30,000 labels which
        arcs are in use: tables are larger by an eighth, and proofs take as much longer.
    coarse : float
        Complementarity of a coarse level, times the number of labels and over the smallest prior, and 1e-4 at most.
    tolerance : float
        Residual to which the equations of a level hold.
    failure : float
        Multiple of its target above which the complementarity of a level means that the level has failed: its arcs hold
        no randomizer, or some that matter are missing.
    coarse_rounds, rounds : int
        Largest number of times that violated arcs are added, on a coarse level and on the finest one.
    patience : int
        Number of these after which each must halve the gap.
    lack : float
        Violation above which an arc of the finest level is added.
    kernel : KernelOptions
    priced : bool
        Whether violated arcs are added to coarse levels that have not failed as well.
    most_priced : int
        Largest number of nodes of which all pairs are priced: that takes the square of it.
    hub : int
        Number of arcs on one side above which a node is moved from the band to its border.
    work : tuple of float
        Largest number of operations of a factorization, in all, per label, and per pair of labels.
    steep : float
        In an interval without bias labels are not merged across gaps that, times this, exceed the distance to an end.
    """

    reach: int = 2
    fewest: int = 64
    floor: float = 1e-7
    gap: float = 1e-15
    least: float = 1e-18
    many: int = 10_000
    coarse: float = 3e-4
    tolerance: float = 1e-11
    failure: float = 1e3
    coarse_rounds: int = 2
    rounds: int = 8
    patience: int = 2
    lack: float = 1e-15
    kernel: KernelOptions = field(default_factory=KernelOptions)
    priced: bool = False
    most_priced: int = 20_000
    hub: int = 48
    work: tuple[float, float, float] = (2e8, 4e4, 200.0)
    steep: float = 2.0


FIRST = Attempt()
"""It proves 99 % of random problems."""

SECOND = Attempt(
    reach=3,
    fewest=32,
    floor=1e-6,
    kernel=KernelOptions(head_start=0.99, damping=0.995, cautious=True),
    priced=True,
)
"""It proves most of the others. Further attempts proved none."""


class TimeOver(Exception):
    """The limit has passed within a descent."""


class TooWide(Exception):
    """The band is too wide to factorize in reasonable time. Usually a failed coarse level has pointed at wrong arcs."""


@dataclass(frozen=True)
class Descent:
    """One attempt at a problem. No level is begun after the time `end`, as of :func:`time.perf_counter`."""

    reduced: Reduced
    options: Attempt
    end: float = math.inf

    @property
    def levels(self) -> list[Level]:
        """All levels, the finest first."""
        steep = self.options.steep if self.reduced.boxed else 0.0
        return coarsen_to(self.reduced.level(self.options.floor), self.options.fewest, steep)

    def best_answer(self) -> Solution | None:
        """Return the best answer of the finest level, None if floats fail."""
        nodes, start, whole, steps = self.candidate_arcs()
        found, count = self._solve_finest(nodes, start, whole=whole)
        return None if found is None else found.with_stats(iterations=steps + count)

    def candidate_arcs(self) -> tuple[Nodes, Start, bool, int]:
        """Solve all coarser levels, and return the arcs of the finest one that their answer points at.

        Returns
        -------
        nodes : tuple of arrays
            First and end nodes of the arcs.
        start : tuple of arrays
            Sums of the multipliers near which the iteration of the finest level begins.
        whole : bool
            Whether the arcs are all intervals.
        steps : int
            Number of iterations on the coarser levels.
        """
        levels, reach = self.levels, self.options.reach + self.reduced.boxed
        # Of few labels all intervals are arcs, so the coarsest level needs no guess. Its answer is interpolated to the
        # next finer one, and points at the arcs that matter there.
        coarsest = self.reduced.terms(*levels[-1][:2])
        nodes, start, steps = all_arcs(levels[-1].before.size - 1), coarsest.centre, 0
        for number in range(len(levels) - 1, -1, -1):
            terms, whole = self.reduced.terms(*levels[number][:2]), number == len(levels) - 1
            if not whole:
                slopes, costs = (levels[number + 1].prolong(sums) for sums in start)
                start = slopes, costs
                nodes = arcs_near_path(terms, slopes, costs, reach)
            # In an interval without bias the spread prior is solved first, to see whether its arcs hold a randomizer.
            if number or (self.reduced.boxed and not whole):
                start, count = self._solve_level(terms, nodes, start, whole=whole)
                steps += count
        if self.reduced.boxed and not whole:
            nodes = arcs_near_path(terms, *start, reach)
        return nodes, start, whole, steps

    def _check_time(self) -> None:
        if time.perf_counter() >= self.end:
            raise TimeOver

    def _solve_level(self, terms: Terms, nodes: Nodes, start: Start, *, whole: bool) -> tuple[Start, int]:
        """Solve a coarse level. Return its sums and the number of iterations."""
        options, steps = self.options, 0
        # A label's share of the sums is of the size of its prior: the lightest label decides how exact they must be.
        gap = min(1e-4, options.coarse * float(np.diff(terms.before).min()) / (terms.before.size - 1))
        for number in range(1 + options.coarse_rounds):
            arcs, point, count, failed = self.solve(terms, nodes, gap, start, whole=whole)
            steps += count
            more = self._add_arcs(terms, nodes, point, gap, failed=failed) if failed or options.priced else None
            if more is None or number == options.coarse_rounds:
                break
            nodes = more
        # At a price of bias the sums c of unused nodes are free within bounds, and the interior point ends in the
        # middle of these, where the path of cheapest intervals cannot be read. The sums of groups show it.
        costs = point.costs
        if terms.charges.size:
            ends = arcs.first, arcs.end, best_outputs(arcs, terms, point.slopes)
            sums = Sums(terms.before, point.slopes, costs)
            groups = Groups.of_used(terms, sums, ends, point.in_use)
            costs = next(groups.candidates()).astype(np.float64, copy=False)
        return (point.slopes, costs), steps

    def _solve_finest(self, nodes: Nodes, start: Start, *, whole: bool) -> tuple[Solution | None, int]:
        """Return the best answer by some arcs of the finest level and those that it violates, and the iterations."""
        reduced, options = self.reduced, self.options
        steps, best, last = 0, None, math.inf
        terms = reduced.terms(*reduced.finest[:2])
        gap = options.gap * reduced.share * min(1.0, options.many / reduced.problem.k) ** 2
        gap = max(options.least, gap)
        try:
            for number in range(1 + options.rounds):
                arcs, point, count, failed = self.solve(terms, nodes, gap, start, whole=whole)
                steps += count
                # An answer may be proven although the iteration did not converge, so it is judged by its gap alone.
                found = find_answer(reduced, arcs, point)
                proven = math.inf if found is None else found.gap
                best, falls, last = better(best, found), proven < last / 2, proven
                # Proven, or no longer converging: further arcs would cost more than they gain.
                if proven <= PROVEN or (number >= options.patience and not falls):
                    break
                more = self._add_arcs(terms, nodes, point, options.lack, failed=failed)
                if more is None:
                    break
                nodes = more
        except (TimeOver, TooWide):
            if best is None:
                raise
        return best, steps

    def solve(
        self,
        terms: Terms,
        nodes: Nodes,
        gap: float,
        start: Start,
        *,
        whole: bool,
        values: Floats | None = None,
        mass: Floats | None = None,
    ) -> tuple[Arcs, Point, int, bool]:
        """Solve on some arcs. Return the arcs, the last point, the number of iterations, and whether it failed.

        With `values`, the output of each arc is fixed. With `mass`, the iteration begins near these masses.
        """
        self._check_time()
        options = self.options
        arcs = self._order(terms, nodes, values, whole=whole)
        point, count, _ = interior_point(arcs, terms, gap, options.tolerance, start, options.kernel, mass)
        return arcs, point, count, not point.complementarity < options.failure * gap

    def _order(self, terms: Terms, nodes: Nodes, values: Floats | None, *, whole: bool) -> Arcs:
        """Return the arcs with an order of their nodes, which stays as it is if they are all intervals."""
        k, options = terms.before.size - 1, self.options
        places, hubs = np.concatenate(([-1], np.arange(k - 1), [-1])), 0
        if not whole:
            places, hubs = order_nodes(*nodes, k, options.hub, not self.reduced.problem.unbiased)
        if not self.reduced.stretched:
            places[k], hubs = k - 1, hubs + 1
        bounds = np.full(nodes[0].size, terms.low), np.full(nodes[0].size, terms.high)
        if values is not None:
            bounds = values, values
        arcs = build_arcs(nodes, bounds, terms, places, hubs)
        # The factorization takes about the number of unknowns times the square of the width.
        border = 0 if self.reduced.stretched else 2 * hubs
        fixed, per_label, per_pair = options.work
        if arcs.size // 2 * (arcs.width + border) ** 2 > fixed + k * (per_label + k * per_pair):
            raise TooWide
        return arcs

    def _add_arcs(self, terms: Terms, nodes: Nodes, point: Point, lack: float, *, failed: bool) -> Nodes | None:
        """Return the arcs with those violated by more than `lack`, or None if no arc is violated, or too many are.

        If the arcs hold no unbiased randomizer within the outputs, those at the ends are added first.
        """
        slopes, costs = point.slopes, point.costs
        if failed and self.reduced.boxed:
            more = unite_arcs(nodes, end_arcs(slopes.size - 1))
            if more[0].size > nodes[0].size:
                return more
        if slopes.size > self.options.most_priced or not point.is_finite():
            return None
        more = unite_arcs(nodes, find_violated_arcs(terms, slopes, costs, -lack))
        return more if more[0].size > nodes[0].size else None


OUT_OF_TIME = "time limit"
"""Status of a solution that is the best so far."""


@dataclass(frozen=True)
class ReducedDual(GuardedSolver):
    """Interior point on the arcs near the path of cheapest intervals, level by level, in at most two attempts.

    Attributes
    ----------
    gap : float
        Proven relative gap at which an answer is taken. Otherwise it is the best one.
    time_limit : float
        Seconds, looked at between levels. When they have passed, the answer is the best one so far, or a feasible one
        in closed form, and its status is "time limit".
    attempts : tuple of Attempt
        Options of the attempts, the second one with more arcs and safeguarded steps.

    Notes
    -----
    ``O(k log k)`` time in practice, and ``O(k)`` memory.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.solve(problem, ReducedDual()).certificate
    >>> proof.gap < 1e-12, round(proof.upper, 6)
    (True, 1.945447)
    """

    gap: float = PROVEN
    time_limit: float = math.inf
    attempts: tuple[Attempt, ...] = field(default=(FIRST, SECOND), repr=False)

    refusal = (
        "ReducedDual() takes squared loss with a bias penalty above 0, outputs on the line or an interval, and at "
        "least two labels: use GridDual() for a grid and BinPath() where bias is free"
    )

    def accepts(self, problem: Problem) -> bool:
        """Return the squared loss, a positive bias penalty, outputs that are not a grid, and at least two labels."""
        squared = problem.loss == losses.squared and problem.bias_penalty > 0
        return squared and not isinstance(problem.outputs, Grid) and problem.k > 1

    def _check(self, problem: Problem) -> None:
        """Refuse as well labels that are too close together."""
        super()._check(problem)
        _refuse_close_labels(problem)

    def _solution(self, problem: Problem) -> Solution:
        end = time.perf_counter() + self.time_limit
        best, steps = None, 0
        with suppress(TimeOver):
            for found in self._answers(Reduced(problem), end):
                steps += found.stats.iterations
                # An answer that cannot be made exact, or has no bound, is worse than what is returned without any.
                if found.gap < math.inf:
                    best = better(best, found)
                if found.gap <= self.gap:
                    break
        late = time.perf_counter() >= end and not (best is not None and best.gap <= self.gap)
        if best is not None:
            return best.with_stats(solver="", iterations=steps, status=OUT_OF_TIME if late else best.stats.status)
        if late:
            return feasible_answer(problem).with_stats(solver="", status=OUT_OF_TIME)
        if not problem.unbiased:
            # Multipliers of a huge penalty overflow. Those of the unbiased problem prove nearly the same optimum.
            with suppress(Infeasible):
                return replace(self._solution(replace(problem, bias_penalty=math.inf)), problem=problem)
        raise SolverFailed("the interior point has no answer")

    def _answers(self, reduced: Reduced, end: float) -> Iterator[Solution]:
        """Generate the answer of each attempt, and in an interval without bias those of cones and two ends."""
        # A failed attempt is no failure of the problem: the next one has other arcs and other steps.
        for attempt in self.attempts:
            with suppress(TooWide, np.linalg.LinAlgError):
                found = Descent(reduced, attempt, end).best_answer()
                if found is not None:
                    yield found
        if not (reduced.boxed and self.attempts):
            return
        # For more labels the cone program would need levels of its own: up to here all intervals are arcs.
        few = 64
        if reduced.problem.k <= few and time.perf_counter() < end:
            with suppress(SolverFailed):
                yield from candidates(*solve_cones(reduced.problem))
        # From an epsilon of 14 or so on rounding of the narrowest interval's ends costs more than is asked, and leaves
        # nothing to iterate on.
        yield design_two_ends(reduced.problem)


def _refuse_close_labels(problem: Problem) -> None:
    """Refuse labels that are too close together, by their positions."""
    gaps = np.diff(problem.labels)
    closest = int(gaps.argmin())
    share = float(gaps[closest] / np.ptp(problem.labels))
    # As a share of the range, of which floats leave three digits to a gap of this size.
    least = 1e-13
    if share < least:
        raise InvalidInput(
            f"labels number {closest} and {closest + 1} in increasing order are {share:.1g} of the labels' range "
            f"apart, too close for floats to tell apart in a solution (at least {least:g}): merge them"
        )
