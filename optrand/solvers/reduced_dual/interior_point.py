"""Interior point on the arcs of one level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.compiled import compiled
from optrand.solvers.reduced_dual.newton import Factors, factored, gathered, limited, seen, slope_rows, solved
from optrand.solvers.reduced_dual.strip import Arcs, Terms

__all__ = [
    "Point",
    "Residuals",
    "Step",
    "Target",
    "centre_of",
    "interior_point",
    "longest",
    "newton_step",
    "residuals_of",
]

STEPS = 60
"""At most so many."""

HEAD_START = 0.99
"""Share of the way from the centre to given sums at which steps begin."""

ROWS, SLACKS = 1e-8, 1e-3
"""Weights of the errors of rows, which masses are mended of, and of slacks, where the best step is looked for."""

NEAR = 1e-3
"""Error of rows below which a step may be the best one."""

DAMPING = 0.995
"""Share of the way to the boundary that a step may go."""

TINY = 1e-300
"""Least multiplier and slack."""

LOST, PATIENCE, MANY = 1e3, 15, 1000
"""Error of slacks beyond which so many steps that lessen no error of rows are the last: arcs hold no randomizer.

Where biases are charged they hold one; and of fewer arcs than so many all steps cost next to nothing.
"""

HALVINGS = 12
"""How often a cautious step is halved, at most."""

CORRECTIONS = 2
"""Of the products of multipliers and slacks that stray, where steps are short."""


class Point(NamedTuple):
    """Sums ``b, c`` of the multipliers up to each node, and the masses and slacks of the arcs."""

    slopes: Floats
    costs: Floats
    mass: Floats
    slack: Floats


class Residuals(NamedTuple):
    """The outputs of the arcs at a point, and by how much its equations are off.

    Attributes
    ----------
    output, bend : (n,) arrays
        Best output of each arc, and the derivative of that by what the arc sees of the sums ``b``; 0 at an end.
    off : (n,) array
        Prices less slacks.
    slope_row, cost_row : (k + 1,) arrays
        Derivatives by the sums; those of ``c`` with the other sign.
    """

    output: Floats
    bend: Floats
    off: Floats
    slope_row: Floats
    cost_row: Floats


class Step(NamedTuple):
    """Changes of a point, what each arc sees of those of the sums ``b``, and how long the two kinds may be."""

    point: Point
    moved: Floats
    to_slack: float
    to_mass: float


class Target(NamedTuple):
    """Products of masses and slacks that a step aims at, and terms of second order of the rows and of the slacks."""

    products: Floats
    curve: Floats
    square: Floats


@compiled
def longest(amounts: Floats, changes: Floats) -> float:
    """Length of the longest step that leaves all amounts nonnegative."""
    steepest = -(changes / amounts).min()
    return 1 / steepest if steepest > 0 else np.inf


def _residuals(arcs: Arcs, terms: Terms, weight: Floats, point: Point) -> Residuals:
    """Residuals at a point, of arcs that see some weight."""
    excess = terms.excess
    slope = seen(arcs, excess, point.slopes)
    best, bend = slope / weight, 1 / weight
    output: Floats = np.minimum(np.maximum(best, arcs.low), arcs.high)
    off = seen(arcs, excess, point.costs) - slope * best / 2 - point.slack
    # Beyond an end a price is linear in the sums.
    if (beyond := best != output).any():
        off[beyond] += (weight * (best - output) ** 2 / 2)[beyond]
        bend[beyond] = 0.0
    slope_row = slope_rows(arcs, terms, point.slopes, point.mass * output)
    return Residuals(output, bend, off, slope_row, -gathered(arcs, excess, point.mass))


def _newton_step(
    arcs: Arcs, excess: float, factors: Factors, point: Point, residuals: Residuals, target: Target
) -> Step:
    """Newton's step from a point, by the factors of its equations."""
    output, mass, slack = residuals.output, point.mass, point.slack
    off = residuals.off - target.square
    towards = (target.products - mass * off) / slack - mass
    slope_right = residuals.slope_row + gathered(arcs, excess, towards * output + target.curve)
    cost_right = residuals.cost_row - gathered(arcs, excess, towards)
    slopes, costs = solved(arcs, factors, -slope_right, -cost_right)
    moved = seen(arcs, excess, slopes)
    turned = seen(arcs, excess, costs) - output * moved
    changes = Point(slopes, costs, towards - mass / slack * turned, turned + off)
    return Step(changes, moved, longest(slack, changes.slack), longest(mass, changes.mass))


def _residuals_in_loops(arcs: Arcs, terms: Terms, weight: Floats, point: Point) -> Residuals:
    k, n, excess, first, end = arcs.k, arcs.n, terms.excess, arcs.first, arcs.end
    slopes, costs, mass, slack = point
    output, bend, off = np.empty(n), np.empty(n), np.empty(n)
    slope_row, cost_row = terms.gaps.copy(), np.zeros(k + 1)
    total, pull = 0.0, 0.0
    last_slope, last_cost = excess * slopes[k], excess * costs[k]
    for i in range(n):
        a, b = first[i], end[i]
        slope = slopes[b] - slopes[a] + last_slope
        bend[i] = 1 / weight[i]
        best = slope * bend[i]
        output[i] = min(max(best, arcs.low[i]), arcs.high[i])
        off[i] = costs[b] - costs[a] + last_cost - slope * best / 2 - slack[i]
        if output[i] != best:
            bend[i] = 0.0
            off[i] += weight[i] * (best - output[i]) ** 2 / 2
        moment = mass[i] * output[i]
        slope_row[b] += moment
        slope_row[a] -= moment
        cost_row[b] -= mass[i]
        cost_row[a] += mass[i]
        total += mass[i]
        pull += moment
    slope_row[k] += excess * pull
    cost_row[k] -= excess * total
    for j in range(terms.charges.size):
        tension = terms.charges[j] * (slopes[j + 1] - slopes[j])
        slope_row[j + 1] += tension
        slope_row[j] -= tension
    return Residuals(output, bend, off, slope_row, cost_row)


def _newton_step_in_loops(
    arcs: Arcs, excess: float, factors: Factors, point: Point, residuals: Residuals, target: Target
) -> Step:
    k, n, first, end = arcs.k, arcs.n, arcs.first, arcs.end
    output, mass, slack = residuals.output, point.mass, point.slack
    slope_right, cost_right = -residuals.slope_row, -residuals.cost_row
    mass_step, slack_step, moved = np.empty(n), np.empty(n), np.empty(n)
    pulls, total = 0.0, 0.0
    for i in range(n):
        slack_step[i] = residuals.off[i] - target.square[i]
        towards = (target.products[i] - mass[i] * slack_step[i]) / slack[i] - mass[i]
        mass_step[i] = towards
        pull = towards * output[i] + target.curve[i]
        slope_right[end[i]] -= pull
        slope_right[first[i]] += pull
        cost_right[end[i]] += towards
        cost_right[first[i]] -= towards
        pulls += pull
        total += towards
    slope_right[k] -= excess * pulls
    cost_right[k] += excess * total
    slopes, costs = solved(arcs, factors, slope_right, cost_right)
    last_slope, last_cost = excess * slopes[k], excess * costs[k]
    steepest_slack, steepest_mass = 0.0, 0.0
    for i in range(n):
        moved[i] = slopes[end[i]] - slopes[first[i]] + last_slope
        turned = costs[end[i]] - costs[first[i]] + last_cost - output[i] * moved[i]
        mass_step[i] -= mass[i] / slack[i] * turned
        slack_step[i] += turned
        steepest_slack = max(steepest_slack, -slack_step[i] / slack[i])
        steepest_mass = max(steepest_mass, -mass_step[i] / mass[i])
    return Step(Point(slopes, costs, mass_step, slack_step), moved, 1 / steepest_slack, 1 / steepest_mass)


residuals_of = compiled(_residuals_in_loops, _residuals)
newton_step = compiled(_newton_step_in_loops, _newton_step)


def centre_of(terms: Terms) -> tuple[Floats, Floats]:
    """Return sums ``b, c`` at which the reduced cost of each arc is half of its weight."""
    return np.zeros(terms.before.size), terms.before / 2


@compiled
def interior_point(
    arcs: Arcs, terms: Terms, gap: float, tolerance: float, start: tuple[Floats, Floats], cautious: bool = False
) -> tuple[Floats, Floats, Floats, Floats, int]:
    """Return sums ``b, c`` of the multipliers, masses, slacks and the number of steps, negative if floats failed.

    Slacks are concave in the sums, so that a Newton step overestimates them. A `cautious` step is halved until the
    slacks are off by at most a tenth of the largest slack, or by twice their error before the step.

    Products sum to `gap` at the end, and equations hold to `tolerance`. Steps begin between the centre and the sums
    `start`, or at the centre, if these leave some arc too cheap: prices are concave in the sums, and so have a share of
    what they are at the centre.
    """
    k, n, excess, unknown = arcs.k, arcs.n, terms.excess, slice(1, arcs.unknown + 1)
    # What larger charges ask for is held by multipliers of their own.
    charges, held = terms.charges, np.zeros(terms.charges.size)
    terms = limited(terms)
    weight = seen(arcs, excess, terms.before)
    slopes, costs = HEAD_START * start[0], terms.before / 2 + HEAD_START * (start[1] - terms.before / 2)
    slack = residuals_of(arcs, terms, weight, Point(slopes, costs, weight, np.zeros(n))).off
    if not (slack > 0).all():
        slopes, costs, slack = np.zeros(k + 1), terms.before / 2, weight / 2
    point = Point(slopes, costs, 1 / (n * slack), slack)
    # Rows sum to one; where the total is fixed their scale is free.
    total_row = np.zeros(k + 1)
    if arcs.unknown == k:
        total_row[k] = 1.0
        point = Point(point.slopes, point.costs, point.mass / gathered(arcs, excess, point.mass)[k], slack)
    limit = max(0.02 * gap, tolerance)
    last_row, last_slack, least = np.inf, np.inf, np.inf
    best = point
    step, idle = 0, 0
    none = Target(np.zeros(n), np.zeros(n), np.zeros(n))
    for step in range(STEPS + 1):
        residuals = residuals_of(arcs, terms, weight, point)
        output, mass, slack = residuals.output, point.mass, point.slack
        residuals.cost_row[:] += total_row
        if charges.size:
            residuals.slope_row[1:] += held
            residuals.slope_row[:-1] -= held
        total = (mass * slack).sum()
        slack_error = np.abs(residuals.off).max()
        row_error = max(np.abs(residuals.slope_row[unknown]).max(), np.abs(residuals.cost_row[unknown]).max())
        if not np.isfinite(total):
            step = -step - 1
            break
        error = total + ROWS * row_error + SLACKS * slack_error
        near = row_error < NEAR
        if error < least and (near or least == np.inf):
            best = point
            if near:
                least = error
        exact = slack_error < limit and row_error < limit
        stuck = total < 0.01 * gap and row_error > 0.5 * last_row and slack_error > 0.5 * last_slack
        lost = n > MANY and not charges.size and slack_error > LOST and row_error > 0.9 * last_row
        idle = idle + 1 if lost else 0
        if step == STEPS or idle == PATIENCE or (total < gap and (exact or stuck or total < 1e-6 * gap)):
            break
        last_row, last_slack = row_error, slack_error
        ratio = mass / slack
        pull = ratio * output
        factors = factored(arcs, terms, pull * output + mass * residuals.bend, -pull, ratio)
        if not factors.well:
            step = -step - 1
            break
        mean = total / n

        # The predictor, the corrector, and what strays from it.
        target = none
        trial = newton_step(arcs, excess, factors, point, residuals, target)
        near_slack, near_mass = min(1.0, trial.to_slack), min(1.0, trial.to_mass)
        reached = ((mass + near_mass * trial.point.mass) * (slack + near_slack * trial.point.slack)).sum()
        centring = max(min(max(reached / total, 0.0) ** 3, 1.0), 1e-8)
        both = near_slack * near_mass
        target = Target(
            centring * mean - both * trial.point.mass * trial.point.slack,
            both * trial.point.mass * trial.moved * residuals.bend,
            near_slack * near_slack * trial.moved * trial.moved * residuals.bend / 2,
        )
        taken = newton_step(arcs, excess, factors, point, residuals, target)
        for _ in range(CORRECTIONS):
            near_slack, near_mass = min(1.0, taken.to_slack), min(1.0, taken.to_mass)
            length = min(near_slack, near_mass)
            if length > 0.9:
                break
            near_slack, near_mass = min(1.0, 1.08 * near_slack + 0.08), min(1.0, 1.08 * near_mass + 0.08)
            product = (mass + near_mass * taken.point.mass) * (slack + near_slack * taken.point.slack)
            lowest, highest = 0.1 * centring * mean, 10 * centring * mean
            strays = np.maximum(np.minimum(np.maximum(product, lowest), highest) - product, -highest)
            target = Target(target.products + strays, target.curve, target.square)
            trial = newton_step(arcs, excess, factors, point, residuals, target)
            if min(1.0, trial.to_slack, trial.to_mass) < length + 0.01:
                break
            taken = trial
        to_slack, to_mass = min(1.0, DAMPING * taken.to_slack), min(1.0, DAMPING * taken.to_mass)
        if cautious:
            allowed = max(0.1 * max(1.0, slack.max()), 2 * slack_error)
            for _ in range(HALVINGS):
                trial_point = Point(
                    point.slopes + to_slack * taken.point.slopes,
                    point.costs + to_slack * taken.point.costs,
                    mass,
                    np.maximum(slack + to_slack * taken.point.slack, TINY),
                )
                if np.abs(residuals_of(arcs, terms, weight, trial_point).off).max() <= allowed:
                    break
                to_slack, to_mass = to_slack / 2, to_mass / 2
        point = Point(
            point.slopes + to_slack * taken.point.slopes,
            point.costs + to_slack * taken.point.costs,
            np.maximum(mass + to_mass * taken.point.mass, TINY),
            np.maximum(slack + to_slack * taken.point.slack, TINY),
        )
        if charges.size:
            held = (terms.charges * np.diff(point.slopes) + held) * (1 - terms.charges / charges)
    return best.slopes, best.costs, best.mass, best.slack, step
