r"""A problem in the unit of the kernel, and its answers in that of the labels.

Without bias and ends, shifting and stretching the line of outputs maps dual-feasible points to such points, so the
total of all labels' terms can be fixed (:mod:`optrand.solvers.reduced_dual._arcs`). From a point of value :math:`W`
the best stretch gives the bound :math:`(W^2 - \operatorname{Var} Y) / 2`. Elsewhere the total is unknown.

The interior point ends near a solution. Masses and outputs next to its own are restored that satisfy the equations of a
randomizer to rounding, and combined with the multipliers that may prove it: the candidates, of which the best is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.model._problem import Dual, Line, Problem
from optrand.model._randomizer import Arcs as ArcColumns
from optrand.model._randomizer import Randomizer, Solution, Stats
from optrand.solvers._feasibility import attainable_loss
from optrand.solvers._gaps import Extended, estimated_gap
from optrand.solvers._positions import Numbers
from optrand.solvers.reduced_dual._arcs import Arcs, Level, Terms
from optrand.solvers.reduced_dual._interior_point import (
    Point,
    apply_incidence,
    apply_transpose,
    factorize,
    slope_residual,
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
    rounds, joint_rounds, most_rounds : int
        Rounds of each restoration, of both at once, and at most while masses would become negative.
    cut : float
        Share of a mass that a round may add or take away.
    faintest : float
        Least mass that counts in a restoration.
    unused : tuple of float
        Arcs of no more mass fix no multipliers: the ones of the least may be in use by rounding alone. Each is tried.
    patience : int
        Number of repaired multipliers after which one must have had a smaller gap.
    freedoms : tuple of float
        Freedoms of masses against outputs to try in an interval without bias. Elsewhere the last one is used.
    """

    faint: float = 1e-20
    light: float = 1e-12
    rounds: int = 2
    joint_rounds: int = 4
    most_rounds: int = 12
    cut: float = 0.5
    faintest: float = 1e-40
    unused: tuple[float, ...] = (0.0, 1e-9, 1e-6)
    patience: int = 6
    freedoms: tuple[float, ...] = (1e6, 1.0)


OPTIONS = AnswerOptions()


class Candidate(NamedTuple):
    """A candidate solution (None if floats failed), its estimated gap, and the number of iterations."""

    solution: Solution | None
    gap: float
    steps: int


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
    output = apply_incidence(arcs, terms.excess, slopes) / apply_incidence(arcs, terms.excess, terms.before)
    best: Floats = np.minimum(np.maximum(output, arcs.low), arcs.high)
    return best


def restore_feasibility(
    arcs: Arcs, terms: Terms, slopes: Floats, mass: Floats, freedom: float = 1.0
) -> tuple[Floats, Floats]:
    """Return masses whose rows are right to rounding, and outputs whose means are, or the best ones.

    Changes are the least ones in squares weighted by the masses. In an interval without bias, outputs at a bound stay
    there, and masses and outputs change together. Changes of masses then cost `freedom` times less than those of
    outputs. If it is large, the columns in use keep reduced costs near zero.
    """
    k, excess = arcs.k, terms.excess
    boxed, charged = bool(np.isfinite([terms.low, terms.high]).any()), terms.charges.size > 0
    weight = apply_incidence(arcs, excess, terms.before)
    output, bend = best_outputs(arcs, terms, slopes), 1 / weight
    target = np.zeros(k + 1)
    if arcs.unknown == k:
        target[k] = 1.0
    if boxed and not charged:
        return _restore_jointly(arcs, terms, mass, output, target, freedom)
    if boxed:
        bend = np.where((output > arcs.low) & (output < arcs.high), bend, 0.0)
    # First rows, at fixed outputs, then means, at fixed masses: each is linear, and a change of masses is small enough
    # for the outputs to follow.
    try:
        mass = _restore_rows(arcs, terms, mass, bend, target)
        output = _restore_means(arcs, terms, slopes, (mass, output), bend)
    except np.linalg.LinAlgError:
        pass
    return mass, output


def _restore_rows(arcs: Arcs, terms: Terms, mass: Floats, bend: Floats, target: Floats) -> Floats:
    """Return masses whose rows sum to one, up to a common factor."""
    terms, none = terms.capped, np.zeros(mass.size)
    faint = np.maximum(mass, OPTIONS.faintest)
    factors = factorize(arcs, terms, faint * bend, none, faint)
    # Each round is the least change that makes the rows right, changes of a mass weighed by the mass.
    for number in range(OPTIONS.most_rounds):
        missing = target - apply_transpose(arcs, terms.excess, mass)
        _, potential = solve_system(arcs, factors, np.zeros(arcs.k + 1), missing)
        growth = apply_incidence(arcs, terms.excess, potential)
        mass = mass * (1 + np.minimum(np.maximum(growth, -OPTIONS.cut), OPTIONS.cut))
        if not _is_cut(mass, growth):
            if number + 1 >= OPTIONS.rounds:
                break
            continue
        # Other masses must change by what this one cannot: it weighs less in the next round.
        faint = np.maximum(mass, OPTIONS.faintest)
        factors = factorize(arcs, terms, faint * bend, none, faint)
    return mass


def _restore_means(arcs: Arcs, terms: Terms, slopes: Floats, columns: tuple[Floats, Floats], bend: Floats) -> Floats:
    """Return outputs at which the means of all labels are right, for the masses and outputs of some columns."""
    mass, output = columns
    capped, faint = terms.capped, np.maximum(mass, OPTIONS.faintest)
    factors = factorize(arcs, capped, faint * bend, np.zeros(mass.size), faint)
    # The mean of a label of negligible prior is below rounding: its row is not corrected.
    resolved = np.ones(arcs.k + 1)
    stiff = np.flatnonzero(terms.charges > capped.charges)
    resolved[stiff] = resolved[stiff + 1] = 0.0
    for _ in range(OPTIONS.rounds):
        missing = -resolved * slope_residual(arcs, terms, slopes, mass * output)
        change, _ = solve_system(arcs, factors, missing, np.zeros(arcs.k + 1))
        slopes = slopes + change
        output = output + apply_incidence(arcs, terms.excess, change) * bend
        output = np.minimum(np.maximum(output, arcs.low), arcs.high)
    return output


def _restore_jointly(
    arcs: Arcs, terms: Terms, mass: Floats, output: Floats, target: Floats, freedom: float
) -> tuple[Floats, Floats]:
    """Return masses and outputs changed together, for outputs that have bounds and no bias."""
    excess, weight = terms.excess, apply_incidence(arcs, terms.excess, terms.before)
    # Gauss-Newton steps for rows and means at once: outputs at a bound have no bend, and stay there.
    for number in range(OPTIONS.most_rounds):
        faint = np.maximum(mass, OPTIONS.faintest)
        bend = np.where((output > arcs.low) & (output < arcs.high), 1 / weight, 0.0)
        blocks = faint * (freedom * output * output + bend), freedom * faint * output, freedom * faint
        try:
            factors = factorize(arcs, terms, *blocks)
        except np.linalg.LinAlgError:
            break
        means = -terms.gaps - apply_transpose(arcs, excess, mass * output)
        tilt, potential = solve_system(arcs, factors, means, target - apply_transpose(arcs, excess, mass))
        turn = apply_incidence(arcs, excess, tilt)
        growth = freedom * (apply_incidence(arcs, excess, potential) + turn * output)
        mass = mass * (1 + np.minimum(np.maximum(growth, -OPTIONS.cut), OPTIONS.cut))
        output = np.minimum(np.maximum(output + turn * bend, arcs.low), arcs.high)
        if number + 1 >= OPTIONS.joint_rounds and not _is_cut(mass, growth):
            break
    return mass, output


def _is_cut(mass: Floats, growth: Floats) -> bool:
    """Return whether some mass would change by more than it may."""
    return bool(np.any((mass > 0) & (np.abs(growth) > OPTIONS.cut)))


def find_candidate(reduced: Reduced, arcs: Arcs, point: Point) -> Candidate:
    """Return the best candidate by the masses, slacks and sums at which the interior point ends."""
    best = Candidate(None, math.inf, 0)
    if not point.is_finite():
        return best
    end = _End(reduced, arcs, point)
    freedoms = OPTIONS.freedoms if reduced.boxed else OPTIONS.freedoms[-1:]
    for some, free in product(end.kept, freedoms):
        # Primal side: an exact randomizer near the masses. Dual side: every choice of multipliers that may prove it.
        masses, outputs = restore_feasibility(arcs, end.terms, point.slopes, np.where(some, point.mass, 0.0), free)
        if not (masses > 0).any():
            break
        randomizer = reduced.randomizer(arcs, masses, outputs)
        for duals in end.duals(masses, outputs, randomizer.biases):
            found = _best_of(duals, reduced.problem, randomizer)
            if best.solution is None or found.gap < best.gap:
                best = found
            if best.gap <= PROVEN:
                return best
            if found.gap == math.inf:
                break
    return best


def _best_of(duals: Iterator[Dual], problem: Problem, randomizer: Randomizer) -> Candidate:
    """Return the best candidate of one randomizer, up to one that is proven or until repairs no longer help."""
    best, idle = Candidate(None, math.inf, 0), 0
    for dual in duals:
        solution = Solution(problem, randomizer, dual, Stats("", status="solved"))
        gap = estimated_gap(solution)
        idle += 1
        if best.solution is None or gap < best.gap:
            best, idle = Candidate(solution, gap, 0), 0
        if best.gap <= PROVEN or gap == math.inf or idle == OPTIONS.patience:
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
        used, enough = self.point.in_use, 2 * (self.reduced.problem.k - self.reduced.stretched)
        if used.sum() <= enough:
            return [used]
        # Some optimum has no more arcs than that.
        ratios = self.point.mass / self.point.slack
        few = used & (ratios >= np.partition(ratios, -enough)[-enough])
        return [few, used] if few.sum() < used.sum() else [used]

    def duals(self, masses: Floats, outputs: Floats, biases: Floats) -> Iterator[Iterator[Dual]]:
        """Generate families of candidate multipliers, those that most often prove the answer first.

        They are those of the interior point in floats, the same in extended precision, and those of groups of labels
        that the arcs in use do not separate. With a price of bias the first of the groups come first: those of the
        interior point then prove one answer in five.
        """
        sums, arcs = Sums(self.terms.before, *self.point[:2]), (self.arcs.first, self.arcs.end, outputs)

        def duals_of(sums: Sums, costs: Iterable[Numbers]) -> Iterator[Dual]:
            return (self.reduced.dual(sums.slopes, cost, biases) for cost in costs)

        if not self.reduced.problem.unbiased:
            groups = Groups.of_used(self.terms, sums, arcs, masses > 0)
            yield duals_of(sums, [np.diff(next(groups.candidates()))])
        yield duals_of(sums, [np.diff(sums.costs)])
        yield duals_of(self.refined, [np.diff(self.refined.costs)])
        for faint in () if self.reduced.stretched else OPTIONS.unused:
            groups = Groups.of_used(self.terms, self.refined, arcs, masses > faint)
            yield duals_of(self.refined, chain((groups.clipped,), map(np.diff, groups.candidates())))
