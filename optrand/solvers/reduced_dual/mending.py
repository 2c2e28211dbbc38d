"""Masses, outputs and multipliers that are right to rounding, next to those where the interior point ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.solvers.compiled import compiled
from optrand.solvers.reduced_dual.newton import factored, gathered, limited, seen, slope_rows, solved
from optrand.solvers.reduced_dual.strip import Arcs, Terms

__all__ = ["lowered", "mended", "outputs_of", "potentials", "raised", "required"]

MENDED, JOINTLY, AGAIN = 2, 4, 12
"""Rounds of each restoration, of both at once, and at most while masses ask to be negative."""

CUT = 0.5
"""Share of a mass that a round may add or take away."""

FAINTEST = 1e-40
"""Mass that counts in a restoration, at least."""


@compiled
def outputs_of(arcs: Arcs, terms: Terms, slopes: Floats) -> Floats:
    """Return the best allowed output of each arc."""
    output = seen(arcs, terms.excess, slopes) / seen(arcs, terms.excess, terms.before)
    best: Floats = np.minimum(np.maximum(output, arcs.low), arcs.high)
    return best


@compiled
def mended(arcs: Arcs, terms: Terms, slopes: Floats, mass: Floats, free: float) -> tuple[Floats, Floats]:
    """Masses whose flow is right to rounding, and outputs whose means are, or the best ones: the least changes.

    In squares weighted by masses; on an interval, where outputs on an end stay, both at once if there is no bias. There
    changes of masses count `free` times less than those of outputs: if that is large, what is in use stays cheapest.
    """
    k, excess = arcs.k, terms.excess
    boxed, charged = np.isfinite(arcs.low).any() or np.isfinite(arcs.high).any(), terms.charges.size > 0
    weight = seen(arcs, excess, terms.before)
    output, bend = outputs_of(arcs, terms, slopes), 1 / weight
    nothing, none, target = np.zeros(k + 1), np.zeros(mass.size), np.zeros(k + 1)
    if arcs.unknown == k:
        target[k] = 1.0
    faint = np.maximum(mass, FAINTEST)
    if boxed and not charged:
        return _mended_jointly(arcs, terms, mass, output, target, free)
    if boxed:
        bend = np.where((output > arcs.low) & (output < arcs.high), bend, 0.0)
    soft = limited(terms)
    factors = factored(arcs, soft, faint * bend, none, faint)
    if not factors.well:
        return mass, output
    for number in range(AGAIN):
        _, potential = solved(arcs, factors, nothing, target - gathered(arcs, excess, mass))
        growth = seen(arcs, excess, potential)
        mass = mass * (1 + np.minimum(np.maximum(growth, -CUT), CUT))
        cut = _cut(mass, growth)
        if number + 1 >= MENDED and not cut:
            break
        if cut:
            # What a mass cannot give others must: it weighs less in the next round.
            again = factored(arcs, soft, np.maximum(mass, FAINTEST) * bend, none, np.maximum(mass, FAINTEST))
            if not again.well:
                break
            factors = again
    # Sums in floats do not tell the biases of labels next to no weight.
    told = np.ones(k + 1)
    stiff = np.flatnonzero(terms.charges > soft.charges)
    told[stiff], told[stiff + 1] = 0.0, 0.0
    for _ in range(MENDED):
        potential, _ = solved(arcs, factors, -told * slope_rows(arcs, terms, slopes, mass * output), nothing)
        slopes = slopes + potential
        output = np.minimum(np.maximum(output + seen(arcs, excess, potential) * bend, arcs.low), arcs.high)
    return mass, output


@compiled
def _mended_jointly(
    arcs: Arcs, terms: Terms, mass: Floats, output: Floats, target: Floats, free: float
) -> tuple[Floats, Floats]:
    """Masses and outputs at once, where outputs have ends and there is no bias."""
    excess, weight, faint = terms.excess, seen(arcs, terms.excess, terms.before), np.maximum(mass, FAINTEST)
    for number in range(AGAIN):
        bend = np.where((output > arcs.low) & (output < arcs.high), 1 / weight, 0.0)
        factors = factored(arcs, terms, faint * (free * output * output + bend), free * faint * output, free * faint)
        if not factors.well:
            break
        means = -terms.gaps - gathered(arcs, excess, mass * output)
        tilt, potential = solved(arcs, factors, means, target - gathered(arcs, excess, mass))
        turn = seen(arcs, excess, tilt)
        growth = free * (seen(arcs, excess, potential) + turn * output)
        mass = mass * (1 + np.minimum(np.maximum(growth, -CUT), CUT))
        output = np.minimum(np.maximum(output + turn * bend, arcs.low), arcs.high)
        faint = np.maximum(mass, FAINTEST)
        if number + 1 >= JOINTLY and not _cut(mass, growth):
            break
    return mass, output


@compiled
def _cut(mass: Floats, growth: Floats) -> bool:
    """Whether some mass was to change by more than it may."""
    return bool(np.any((mass > 0) & (np.abs(growth) > CUT)))


@compiled
def required(terms: Terms, slopes: Floats, total: float, first: slice, end: slice) -> Floats:
    """By how much sums ``c`` must grow over intervals, of which one end is a single node, for them not to be cheap."""
    weight = terms.before[end] - terms.before[first] + terms.excess
    slope = slopes[end] - slopes[first] + terms.excess * slopes[-1]
    output = np.minimum(np.maximum(slope / weight, terms.low), terms.high)
    growth: Floats = (slope - weight * output / 2) * output - terms.excess * total
    return growth


@compiled
def raised(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """Return the least sums ``c``, none below the given ones, that violate no interval."""
    costs = costs.copy()
    for j in range(1, costs.size):
        costs[j] = max(costs[j], np.max(costs[:j] + required(terms, slopes, total, slice(0, j), slice(j, j + 1))))
    return costs


@compiled
def lowered(terms: Terms, slopes: Floats, costs: Floats, total: float) -> Floats:
    """Return the largest sums ``c``, none above the given ones, that violate no interval."""
    costs = costs.copy()
    k = costs.size - 1
    for j in range(k - 1, -1, -1):
        costs[j] = min(
            costs[j], np.min(costs[j + 1 :] - required(terms, slopes, total, slice(j, j + 1), slice(j + 1, k + 1)))
        )
    return costs


@compiled
def potentials(terms: Terms, slopes: Floats, costs: Floats, fixed: NDArray[np.bool_]) -> Floats:
    """Return sums ``c`` near given ones, equal to them at fixed nodes, that violate no interval; ``O(k**2)``.

    Intervals ask that the sum at a node exceed that at another by some number: lower bounds go up the line, upper
    bounds come down, and the mean of what is raised and what is lowered keeps both.
    """
    total = costs[-1]
    least = raised(terms, slopes, np.where(fixed, costs, -np.inf), total)
    most = lowered(terms, slopes, np.where(fixed, costs, np.inf), total)
    near = np.where(fixed, costs, np.minimum(np.maximum(costs, least), most))
    mean: Floats = (raised(terms, slopes, near, total) + lowered(terms, slopes, near, total)) / 2
    return mean
