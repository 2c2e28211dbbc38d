"""Exact optima on grids: from a solution in floats to the basis that it suggests, and on to the optimal one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from optrand.base.validation import Floats
from optrand.certificates.rational import RationalDual
from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.model.solution import Solution
from optrand.studies.exact.simplex import Column, GridProgram, first_basis, minimised

__all__ = ["optimum_on_grid"]

USED = 1e-11
"""Mass of a column that is taken to be in use."""

SPARE = 4
"""Unused columns to choose from, cheapest first, for each row."""


def optimum_on_grid(solution: Solution, ratio: Fraction) -> tuple[RationalMechanism, RationalDual, int]:
    """Exact optimum of a problem on a grid, its dual, and the number of pivots from the solution in floats."""
    problem = solution.problem
    program = GridProgram(problem, ratio)
    vertex = first_basis(program, candidates(solution, float(ratio)))
    multipliers, common = vertex.proven() or minimised(vertex)
    total = math.lcm(*(int(x.q) for x in vertex.values))
    labels = [Fraction(y) for y in problem.labels.tolist()]
    columns = [
        (program.values[c.output], int(x * total), [bool(c.favoured >> y & 1) for y in range(problem.k)])
        for c, x in zip(vertex.columns, vertex.values, strict=True)
        if c is not None
    ]
    k = problem.k
    alpha = tuple(Fraction(x, common * program.unit) for x in multipliers[:k])
    beta = tuple(Fraction(x, common) for x in multipliers[k:]) or (Fraction(0),) * k
    return RationalMechanism.of_columns(labels, columns, ratio), RationalDual(alpha, beta), vertex.pivots


def candidates(solution: Solution, ratio: float) -> Iterator[Column]:
    """Columns for a first basis: those in use, by mass, then the cheapest others, then some that span all rows."""
    problem, randomizer = solution.problem, solution.randomizer
    grid = problem.outputs.values  # type: ignore[union-attr]
    where = np.searchsorted(grid, randomizer.outputs).tolist()
    used = list[tuple[float, Column]]()
    for i, probabilities in zip(where, randomizer.matrix.T, strict=True):
        used += [(mass, Column(i, favoured)) for mass, favoured in _nested(probabilities, ratio) if mass > USED]
    yield from (column for _, column in sorted(used, key=lambda pair: -pair[0]))
    yield from _cheap(solution, ratio)
    ends = (0, grid.size - 1)
    yield from (Column(i, (1 << y) - 1) for y in range(problem.k) for i in ends)


def _nested(probabilities: Floats, ratio: float) -> Iterator[tuple[float, int]]:
    """Column of probabilities as masses of nested sets of labels."""
    order, favoured = np.argsort(-probabilities), 0
    levels = probabilities[order]
    for j, label in enumerate(order[:-1].tolist()):
        favoured |= 1 << label
        yield (levels[j] - levels[j + 1]) / (ratio - 1), favoured
    yield levels[-1] - (levels[0] - levels[-1]) / (ratio - 1), 0


def _cheap(solution: Solution, ratio: float) -> list[Column]:
    """Cheapest columns at the multipliers of a solution, of sets that grow by the label cheapest to add."""
    problem, dual = solution.problem, solution.dual
    if dual is None:
        return []
    grid = problem.outputs.values  # type: ignore[union-attr]
    offsets = np.outer(dual.beta, grid - dual.origin)
    prices = problem.prior[:, np.newaxis] * problem.loss_table(grid) - dual.alpha[:, np.newaxis] - offsets
    order = np.argsort(prices, axis=0)
    totals = prices.sum(axis=0) + (ratio - 1) * np.cumsum(np.take_along_axis(prices, order, axis=0), axis=0)
    masks = np.cumsum(np.array([1 << y for y in range(problem.k)], dtype=object)[order], axis=0)
    best = np.argsort(totals, axis=None)[: SPARE * 2 * problem.k]
    return [Column(int(j % grid.size), int(masks.flat[j])) for j in best.tolist()]
