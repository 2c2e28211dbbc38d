"""Multipliers in extended precision: floats of running sums leave too little of the differences of neighbours.

A column pays for its labels :math:`E` times over, and with the multipliers for their rounding: one of :math:`10^{-16}`
of the sums, label by label, is a billionth of the loss at an epsilon of 8 and a thousand labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optrand.solvers.prices import Extended
from optrand.solvers.reduced_dual.interior_point import Point, Residuals, Target, newton_step
from optrand.solvers.reduced_dual.newton import factored, gathered, limited
from optrand.solvers.reduced_dual.strip import Arcs, Terms

__all__ = ["Numbers", "Sums", "refined"]

ROUNDS = 2
"""Steps of refinement."""

Numbers = NDArray[np.floating[Any]]
"""In floats or in extended precision."""


class Sums(NamedTuple):
    """Sums over the labels before each node: of the prior, and of both kinds of multipliers."""

    before: Numbers
    slopes: Numbers
    costs: Numbers


def refined(arcs: Arcs, terms: Terms, point: Point, before: Extended) -> Sums:
    """Refine the sums of a point by Newton steps whose residuals are in extended precision.

    What it had where its equations are singular in floats, or where a step makes them worse. `before` is the prior
    before each node.
    """
    soft, mass, slack = limited(terms), point.mass, point.slack
    sums = Sums(before, point.slopes.astype(np.longdouble), point.costs.astype(np.longdouble))
    residuals, off = _residuals(arcs, terms, point, sums)
    for _ in range(ROUNDS):
        pull = mass / slack * residuals.output
        factors = factored(arcs, soft, pull * residuals.output + mass * residuals.bend, -pull, mass / slack)
        if not factors.well:
            break
        none = np.zeros(arcs.n)
        step = newton_step(arcs, terms.excess, factors, point, residuals, Target(mass * slack, none, none)).point
        moved = Sums(before, sums.slopes + step.slopes, sums.costs + step.costs)
        residuals, less = _residuals(arcs, terms, point, moved)
        if not less < off:
            break
        sums, off = moved, less
    return sums


def _residuals(arcs: Arcs, terms: Terms, point: Point, sums: Sums) -> tuple[Residuals, float]:
    """Residuals of the equations at some sums, and how far arcs are off their slacks, weighted by their masses."""
    excess, mass = terms.excess, point.mass

    def seen(sums: Numbers) -> Numbers:
        amounts: Numbers = sums[arcs.end[: arcs.n]] - sums[arcs.first[: arcs.n]] + excess * sums[-1]
        return amounts

    weight, slope, cost = map(seen, sums)
    output = np.clip(slope / weight, arcs.low, arcs.high)
    off = (cost - (slope - weight * output / 2) * output - point.slack).astype(np.float64)
    bend = np.where(slope / weight == output, 1 / weight, 0.0).astype(np.float64)
    output = output.astype(np.float64)
    slope_row = terms.gaps + gathered(arcs, terms.excess, mass * output)
    if terms.charges.size:
        # What is held by multipliers of its own stays as it is.
        tension = np.diff(sums.slopes) * terms.charges
        slope_row[1:] += tension
        slope_row[:-1] -= tension
        stiff = np.flatnonzero(terms.charges > limited(terms).charges)
        slope_row[stiff] = slope_row[stiff + 1] = 0.0
    cost_row = -gathered(arcs, terms.excess, mass)
    if arcs.unknown == arcs.k:
        cost_row[-1] += 1.0
    return Residuals(output, bend, off, slope_row, cost_row), float(mass @ np.abs(off))
