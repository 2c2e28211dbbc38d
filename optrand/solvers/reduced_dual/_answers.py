r"""A problem in the unit of the kernel, and its answers in that of the labels.

Without bias and ends, shifting and stretching the line of outputs maps dual-feasible points to such points, so the
total of all labels' terms can be fixed (:mod:`optrand.solvers.reduced_dual._arcs`). From a point of value :math:`W`
the best stretch gives the bound :math:`(W^2 - \operatorname{Var} Y) / 2`. Elsewhere the total is unknown.

The interior point ends near a solution. Its masses and outputs, restored where tabulation could not make them exact at
little cost, are combined with the multipliers that may prove them. The certificate says which ones do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.mechanism._tabulation import NO_MECHANISM, Solution, Stats
from optrand.model._problem import Dual, Line, Problem
from optrand.model._randomizer import Arcs as ArcColumns
from optrand.model._randomizer import Extended, Randomizer
from optrand.solvers._feasibility import attainable_loss
from optrand.solvers._positions import Numbers
from optrand.solvers.reduced_dual._arcs import Arcs, Level, Terms
from optrand.solvers.reduced_dual._interior_point import (
    Point,
    add_forces,
    factorize,
    row_residuals,
    solve_system,
)
from optrand.solvers.reduced_dual._multipliers import Groups, Sums, refine_sums


@dataclass(frozen=True)
class AnswerOptions:
    """Tuning of candidates, on 2,000 random problems of up to 400 labels.

    Attributes
    ----------
    faint : float
        Biases are charged as if no weight of one were smaller.
    light : float
        Weight of a bias below which its multiplier follows from the bias.
    rounds : int
        Largest number of rounds of a restoration.
    enough : tuple of float
        Residual of rows and means that is left to tabulation, and in an interval without bias.
    restored : float
        Charge of a bias above which a restoration leaves it as it is.
    cut : float
        Share of a mass that a round may add or take away.
    faintest : float
        Least mass that counts in a restoration.
    unused : tuple of float
        Arcs of no more mass fix no multipliers: the ones of the least may be in use by rounding alone. Each is tried.
    patience : int
        Number of multipliers of a family after which one must have been better.
    freedom : float
        How much less a restoration pays for changes of masses than for those of outputs.
    """

    faint: float = 1e-20
    light: float = 1e-12
    rounds: int = 12
    enough: tuple[float, float] = (1e-11, 1e-13)
    restored: float = 1e8
    cut: float = 0.5
    faintest: float = 1e-40
    unused: tuple[float, ...] = (0.0, 1e-9, 1e-6)
    patience: int = 6
    freedom: float = 1e6


OPTIONS = AnswerOptions()


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
        lowest, outputs = float(self.problem.labels[0]), self.problem.outputs
        mean = float(self.problem.prior @ (self.problem.labels - lowest)) / self.total
        return min(max(mean, outputs.low - lowest), outputs.high - lowest)

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

    def terms(self, before: Floats, gaps: Floats) -> Terms:
        """Build a level for the kernel."""
        penalty, charges = self.problem.bias_penalty, np.zeros(0)
        if not self.problem.unbiased:
            # The conjugate of the charge penalty p bias^2 / 2 is half the squared multiplier over penalty p.
            charges = 1 / np.maximum(penalty * np.diff(before), OPTIONS.faint)
        return Terms(before, gaps, 1 / math.expm1(self.problem.epsilon), charges, *self.box)

    @cached_property
    def finest(self) -> Level:
        """All nodes."""
        return self.level(0.0)

    def level(self, floor: float) -> Level:
        """All nodes, where a share of the prior is spread evenly."""
        k, prior = self.problem.k, self.problem.prior / self.total
        before = np.zeros(k + 1)
        np.cumsum((1 - floor) * prior + floor / k, out=before[1:])
        before /= before[-1]
        return Level(before, self.gaps)

    @cached_property
    def before(self) -> Extended:
        """Prior before each node, in extended precision."""
        sums: Extended = np.append(np.longdouble(0), np.cumsum(self.problem.prior, dtype=np.longdouble)) / self.total
        return sums

    @cached_property
    def gaps(self) -> Floats:
        """Distance of the labels beside each node, as in :class:`Level`, and with a bias penalty its charge."""
        gaps, labels = np.zeros(self.problem.k + 1), self.problem.labels
        gaps[1:-1], gaps[-1] = labels[1:] - labels[:-1], -self.offsets[-1]
        gaps /= self.unit
        return gaps if self.problem.unbiased else gaps * (1 + 1 / self.problem.bias_penalty)

    @cached_property
    def variance(self) -> float:
        """Variance of the labels."""
        return float(self.problem.prior @ self.offsets**2) / self.total

    @cached_property
    def unit(self) -> float:
        """The root of twice a loss that is attained and of the variance."""
        if not self.stretched:
            return math.sqrt(2 * attainable_loss(self.problem) + self.variance)
        # The root of twice the loss and the variance if a gap had one label on either side: exact for two labels.
        before, labels = np.cumsum(self.problem.prior)[:-1] / self.total, self.problem.labels
        excess = math.expm1(self.problem.epsilon)
        roots = np.sqrt(1 + excess + excess**2 * before * (1 - before))
        return float((labels[1:] - labels[:-1]) @ roots) / excess

    @cached_property
    def share(self) -> float:
        """Share of the squared unit that is not the variance: about that of the loss in the minimised sum."""
        return max(0.0, 1 - self.variance / self.unit**2)

    def randomizer(self, arcs: Arcs, mass: Floats, outputs: Floats) -> Randomizer:
        """Return the masses as probabilities, and the outputs in the unit of the labels."""
        # A row of the table is one for each mass, and E - 1 more for those that favour its label.
        problem, excess = self.problem, math.expm1(self.problem.epsilon)
        used = np.flatnonzero(mass > 0)
        first, end, mass, outputs = arcs.first[used], arcs.end[used], mass[used], outputs[used]
        # Restored rows agree with each other to rounding. That of the first label is scaled to one.
        scale = 1 / (mass.sum() + excess * mass[first == 0].sum())
        mass = mass * scale
        if self.stretched:
            outputs = outputs * (self.unit / (excess * scale))
            # The mean of the first label is put right, and with it, up to rounding, those of all others.
            below = mass @ outputs + excess * (mass @ np.where(first == 0, outputs, 0.0))
            outputs += problem.labels[0] - below
        else:
            low, high = problem.outputs.low, problem.outputs.high
            there = problem.labels[0] + (self.mean + self.unit * outputs)
            there = np.where(outputs <= self.box[0], low, np.where(outputs >= self.box[1], high, there))
            outputs = np.clip(there, low, high)
        order = np.lexsort((end, first, outputs))
        columns = ArcColumns(problem.k, first[order], end[order] - 1, outputs[order], mass[order])
        return Randomizer.of_arcs(problem.labels, columns, problem.epsilon)

    def dual(self, slopes: Numbers, cost: Numbers, biases: Floats) -> Dual:
        """Return the multipliers of sums ``b`` and of shares of the sums ``c``, at their best scale if free.

        With a bias penalty, labels of small weight take the multipliers that belong to the biases of the randomizer,
        ``-penalty * prior * bias``: a difference of two sums has no digits of them.
        """
        problem, kind = self.problem, slopes.dtype
        stretch = -(self.finest.gaps @ slopes) * self.unit if self.stretched else self.unit
        prior = problem.prior.astype(kind) / self.total
        offsets = problem.labels.astype(kind) - problem.labels[0] - self.mean
        beta = stretch * np.diff(slopes) - prior * offsets
        if not problem.unbiased:
            weights = prior * problem.bias_penalty
            beta = np.where(weights >= OPTIONS.light, beta, -weights * biases)
        alpha = prior * offsets**2 / 2 - stretch**2 * cost
        # What rounding takes from a label's slope is made up for at the label, where its price is near zero.
        rounded = (self.total * beta).astype(np.float64)
        alpha = self.total * (alpha + beta * offsets) - rounded * problem.labels
        return Dual(alpha.astype(np.float64), rounded)


def best_outputs(arcs: Arcs, terms: Terms, slopes: Floats) -> Floats:
    """Return the best allowed output of each arc."""
    output = arcs.apply_incidence(slopes) / arcs.apply_incidence(terms.before)
    best: Floats = np.minimum(np.maximum(output, arcs.low), arcs.high)
    return best


def restore_feasibility(
    arcs: Arcs, terms: Terms, slopes: Floats, mass: Floats, output: Floats
) -> tuple[Floats, Floats]:
    """Return masses and outputs at which rows and means are right, up to what tabulation makes right.

    At a price of bias they are right if biases are those that belong to the multipliers, which change as well. Changes
    are the least ones in squares weighted by the masses. Those of masses are cheaper, so that the columns in use keep
    reduced costs near zero. Outputs at a bound stay there. Tabulation sees to that on a grid, but in an interval
    without bias it needs residuals of the size of rounding.
    """
    weight, freedom = arcs.apply_incidence(terms.before), OPTIONS.freedom
    is_boxed = math.isfinite(terms.high - terms.low) and not (terms.charges.size or terms.values.size)
    # A bias is its charge times a difference of sums: floats leave that of a light label too few digits.
    light = np.flatnonzero(terms.charges > OPTIONS.restored)
    # Gauss-Newton steps for rows and means at once.
    for _ in range(OPTIONS.rounds):
        means, rows = row_residuals(arcs, terms, mass, output)
        if terms.charges.size:
            add_forces(means, terms.charges * np.diff(slopes))
            means[light] = means[light + 1] = 0.0
        missing = np.array((-means, rows))
        if np.abs(missing[:, arcs.free]).max() <= OPTIONS.enough[is_boxed]:
            break
        faint = np.maximum(mass, OPTIONS.faintest)
        bend = np.where((output > arcs.low) & (output < arcs.high), 1 / weight, 0.0)
        blocks = faint * (freedom * output * output + bend), freedom * faint * output, freedom * faint
        try:
            factors = factorize(arcs, terms.capped, *blocks)
        except np.linalg.LinAlgError:
            break
        change = solve_system(arcs, factors, missing)
        turn, growth = arcs.apply_incidence(change)
        slopes = slopes + change[0]
        growth = freedom * (growth + turn * output)
        # What a mass may not change by is left to the next round.
        mass = mass * (1 + np.minimum(np.maximum(growth, -OPTIONS.cut), OPTIONS.cut))
        output = np.minimum(np.maximum(output + turn * bend, arcs.low), arcs.high)
    return mass, output


def better(one: Solution | None, other: Solution | None) -> Solution | None:
    """Return the answer of the smaller gap, and the first one of equal ones."""
    if one is None or other is None:
        return one or other
    return other if other.gap < one.gap else one


def prove(answer: Solution, families: Iterable[Iterable[Dual]], gap: float = PROVEN) -> Solution:
    """Return an answer with the best of some multipliers, or the first ones that prove it up to a gap.

    Of a family no more are tried if some of them in a row have not been better.
    """
    try:
        answer.mechanism  # noqa: B018
    except NO_MECHANISM:
        return answer
    best, least = answer, math.inf
    for duals in families:
        least_of_family, idle = math.inf, 0
        for dual in duals:
            found, idle = answer.with_dual(dual), idle + 1
            if found.gap < least_of_family:
                least_of_family, idle = found.gap, 0
            if found.gap < least:
                best, least = found, found.gap
            if least <= gap:
                return best
            if idle == OPTIONS.patience:
                break
    return best


def find_answer(reduced: Reduced, arcs: Arcs, point: Point) -> Solution | None:
    """Return the best answer by the masses, slacks and sums at which the interior point ends, if they are finite."""
    if not point.is_finite():
        return None
    terms, best = reduced.terms(*reduced.finest[:2]), None
    for some in _choose_arcs(point, 2 * (reduced.problem.k - reduced.stretched)):
        # Primal side: a randomizer near the masses. Dual side: multipliers that may prove it.
        masses, outputs = np.where(some, point.mass, 0.0), best_outputs(arcs, terms, point.slopes)
        masses, outputs = restore_feasibility(arcs, terms, point.slopes, masses, outputs)
        if not (masses > 0).any():
            break
        answer = Solution(reduced.problem, reduced.randomizer(arcs, masses, outputs), stats=Stats("", status="solved"))
        duals = _generate_duals(reduced, arcs, point, masses, outputs, answer.randomizer.biases)
        best = better(best, prove(answer, duals))
        if best is not None and best.gap <= PROVEN:
            break
    return best


def _choose_arcs(point: Point, most: int) -> Iterator[NDArray[np.bool_]]:
    """Generate masks of the arcs that may be in use: `most` of them, as some optimum has no more, and then all."""
    used = point.in_use
    if used.sum() > most:
        ratios = point.mass / point.slack
        yield used & (ratios >= np.partition(ratios, -most)[-most])
    yield used


def _generate_duals(
    reduced: Reduced, arcs: Arcs, point: Point, masses: Floats, outputs: Floats, biases: Floats
) -> Iterator[Iterator[Dual]]:
    """Generate families of multipliers, those that most often prove the answer first.

    Without bias they are those of the interior point, in floats and in extended precision. With a price of bias they
    are those of groups of labels that the arcs in use do not separate: the first ones prove nine answers of ten.
    """

    def duals_of(sums: Sums, costs: Iterable[Numbers]) -> Iterator[Dual]:
        return (reduced.dual(sums.slopes, np.diff(cost), biases) for cost in costs)

    terms = reduced.terms(*reduced.finest[:2])
    sums, columns = Sums(terms.before, point.slopes, point.costs), (arcs.first, arcs.end, outputs)
    if not reduced.problem.unbiased:
        yield duals_of(sums, [next(Groups.of_used(terms, sums, columns, masses > 0).candidates())])
    yield duals_of(sums, [sums.costs])
    refined = refine_sums(arcs, terms, point, reduced.before)
    if reduced.problem.unbiased:
        yield duals_of(refined, [refined.costs])
        return
    for faint in OPTIONS.unused:
        yield duals_of(refined, Groups.of_used(terms, refined, columns, masses > faint).candidates())
