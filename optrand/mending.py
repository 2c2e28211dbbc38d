r"""Small corrections that make a nearly feasible set of staircase columns feasible to the last digit.

A backend's masses and outputs satisfy the equations of a problem to its tolerance only. Two corrections, both linear
and both relative to what is there, so that nothing small changes sign:

* masses: the least relative change that restores coverage, normalisation and (where outputs may not move) means;
* outputs: the change of least cost that restores the means, :math:`\Delta v = D M^\top (M D M^\top)^{-1} r` with
  :math:`D = \mathrm{diag}(1 / \text{curvature})`. With squared loss it leads to the best outputs for the given masses.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.problem import Problem
from optrand.staircase import Staircase

__all__ = ["mass_equations", "mend_masses", "movable_outputs", "moved_outputs"]

RANK = 1e-13
"""Singular values below this share of the largest count as zero."""


def mass_equations(problem: Problem, arcs: Staircase, ratio: float, means: bool) -> tuple[Floats, Floats]:
    """The equations ``A @ (masses, coverage) = b`` that a feasible set of columns satisfies.

    Coverage of each label is the same, ``sum_{S has y} c = t``; a row sums to 1, ``sum c + (ratio - 1) t = 1``; and
    with `means`, ``sum_y c s_y v = y`` in units of the outputs' spread around their middle.

    Returns
    -------
    (rows, arcs + 1) array, (rows,) array
    """
    k, n = arcs.members.shape
    rows = [np.column_stack((arcs.members.astype(np.float64), -np.ones(k)))]
    rows.append(np.append(np.ones(n), ratio - 1)[np.newaxis, :])
    right = [np.zeros(k), np.ones(1)]
    if means:
        centre = (arcs.outputs.min() + arcs.outputs.max()) / 2
        width = float(np.ptp(arcs.outputs)) / 2 or 1.0
        scaled = (arcs.outputs - centre) / width
        rows.append(np.column_stack((np.where(arcs.members, ratio, 1.0) * scaled, np.zeros(k))))
        right.append((problem.labels - centre) / width)
    return np.vstack(rows), np.concatenate(right)


def mend_masses(problem: Problem, arcs: Staircase, *, means: bool, rounds: int = 3) -> Staircase:
    """Restore the equations of :func:`mass_equations` by the least relative change of the masses.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> off = Staircase(np.eye(2, dtype=bool), np.array([-0.6, 1.6]), np.array([0.27, 0.268]))
    >>> bool(abs(mend_masses(problem, off, means=False).masses - 1 / (1 + math.e)).max() < 1e-15)
    True
    """
    ratio = math.exp(problem.epsilon)
    matrix, right = mass_equations(problem, arcs, ratio, means)
    masses = arcs.masses
    for _ in range(rounds):
        coverage = (1 - masses.sum()) / (ratio - 1)
        amounts = np.append(masses, coverage)
        scaled = matrix * amounts
        residual = right - matrix @ amounts
        weight = 1 / np.maximum(np.abs(scaled).max(axis=1), np.finfo(float).tiny)
        change = np.linalg.lstsq(scaled * weight[:, np.newaxis], residual * weight, rcond=RANK)[0][:-1]
        masses = masses * np.clip(1 + change, 0.5, 2.0)
    return _top_up(Staircase(arcs.members, arcs.outputs, masses), ratio)


def _top_up(arcs: Staircase, ratio: float) -> Staircase:
    """Make coverage equal to the last digit by singletons for labels that fall short; then normalise."""
    coverage = arcs.members @ arcs.masses
    short = coverage.max() - coverage
    labels = np.flatnonzero(short > 4 * np.finfo(float).eps * coverage.max())
    heaviest = np.where(arcs.members[labels], arcs.masses, -1.0).argmax(axis=1)
    members = np.hstack((arcs.members, np.eye(arcs.members.shape[0], dtype=bool)[:, labels]))
    masses = np.concatenate((arcs.masses, short[labels]))
    total = masses.sum() + (ratio - 1) * coverage.max()
    return Staircase(members, np.concatenate((arcs.outputs, arcs.outputs[heaviest])), masses / total)


def movable_outputs(problem: Problem, outputs: Floats) -> NDArray[np.bool_]:
    """Mask of the outputs strictly inside the allowed range, with some room to move."""
    room = 1e-9 * (float(np.ptp(outputs)) or 1.0)
    movable: NDArray[np.bool_] = (outputs > problem.outputs.low + room) & (outputs < problem.outputs.high - room)
    return movable


def moved_outputs(
    problem: Problem, table: Floats, outputs: Floats, residual: Floats, movable: NDArray[np.bool_]
) -> Floats:
    """Outputs moved at the least cost so that the mean of each label changes by `residual`."""
    curvature = table.T @ np.maximum(problem.prior, 1 / (1e6 * problem.k))
    reach = np.where(movable, 1 / np.sqrt(curvature), 0.0)
    step = np.linalg.lstsq(table * reach, residual, rcond=RANK)[0]
    moved: Floats = np.clip(outputs + reach * step, problem.outputs.low, problem.outputs.high)
    return moved
