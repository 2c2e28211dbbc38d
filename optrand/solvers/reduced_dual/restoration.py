"""Masses and outputs that satisfy the equations of a randomizer to rounding, next to those of the interior point."""

from __future__ import annotations

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.reduced_dual.arcs import Arcs, Terms
from optrand.solvers.reduced_dual.kernel import (
    apply_incidence,
    apply_transpose,
    cap_charges,
    factorize,
    slope_residual,
    solve_system,
)

__all__ = ["best_outputs", "restore_feasibility"]

ROUNDS, JOINT_ROUNDS, MOST_ROUNDS = 2, 4, 12
"""Rounds of each restoration, of both at once, and at most while masses would become negative."""

CUT = 0.5
"""Share of a mass that a round may add or take away."""

FAINTEST = 1e-40
"""Least mass that counts in a restoration."""


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
    there, and masses and outputs change together; changes of masses then cost `freedom` times less than those of
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
    try:
        mass = _restore_rows(arcs, terms, mass, bend, target)
        output = _restore_means(arcs, terms, slopes, (mass, output), bend)
    except np.linalg.LinAlgError:
        pass
    return mass, output


def _restore_rows(arcs: Arcs, terms: Terms, mass: Floats, bend: Floats, target: Floats) -> Floats:
    """Return masses whose rows sum to one, up to a common factor."""
    terms, none = cap_charges(terms), np.zeros(mass.size)
    faint = np.maximum(mass, FAINTEST)
    factors = factorize(arcs, terms, faint * bend, none, faint)
    for number in range(MOST_ROUNDS):
        missing = target - apply_transpose(arcs, terms.excess, mass)
        _, potential = solve_system(arcs, factors, np.zeros(arcs.k + 1), missing)
        growth = apply_incidence(arcs, terms.excess, potential)
        mass = mass * (1 + np.minimum(np.maximum(growth, -CUT), CUT))
        if not _is_cut(mass, growth):
            if number + 1 >= ROUNDS:
                break
            continue
        # Other masses must change by what this one cannot: it weighs less in the next round.
        faint = np.maximum(mass, FAINTEST)
        factors = factorize(arcs, terms, faint * bend, none, faint)
    return mass


def _restore_means(arcs: Arcs, terms: Terms, slopes: Floats, columns: tuple[Floats, Floats], bend: Floats) -> Floats:
    """Return outputs at which the means of all labels are right, for the masses and outputs of some columns."""
    mass, output = columns
    capped, faint = cap_charges(terms), np.maximum(mass, FAINTEST)
    factors = factorize(arcs, capped, faint * bend, np.zeros(mass.size), faint)
    # The mean of a label of negligible prior is below rounding: its row is not corrected.
    resolved = np.ones(arcs.k + 1)
    stiff = np.flatnonzero(terms.charges > capped.charges)
    resolved[stiff] = resolved[stiff + 1] = 0.0
    for _ in range(ROUNDS):
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
    for number in range(MOST_ROUNDS):
        faint = np.maximum(mass, FAINTEST)
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
        mass = mass * (1 + np.minimum(np.maximum(growth, -CUT), CUT))
        output = np.minimum(np.maximum(output + turn * bend, arcs.low), arcs.high)
        if number + 1 >= JOINT_ROUNDS and not _is_cut(mass, growth):
            break
    return mass, output


def _is_cut(mass: Floats, growth: Floats) -> bool:
    """Whether some mass would change by more than it may."""
    return bool(np.any((mass > 0) & (np.abs(growth) > CUT)))
