r"""Dual bounds for tabulated losses and for classification, in integers.

:math:`f` (:mod:`optrand.certificates.certificate`) is evaluated at every value of the grid: ``k n`` steps for a table,
``k + n`` for classification, where an output gains at one label at most. Only :math:`E = e^\epsilon`, upward, and the
charge of a finite bias penalty are rounded.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import places, scaled
from optrand.base.validation import Floats
from optrand.certificates.bound import assembled, excess_above, measured, multipliers_below
from optrand.model.losses import Tabulated
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["lower_bound", "lower_bound_of_classes"]


def lower_bound(problem: Problem, dual: Dual, loss: Tabulated, grid: Floats) -> Fraction:
    """Bound of :mod:`optrand.certificates.certificate` for a problem with the tabulated `loss` on the `grid`.

    Multipliers must be zero where ``bias_penalty * prior`` is.

    Examples
    --------
    With ``alpha = 0`` and no loss below 0 the bound is the least mean of a column, over ``E``:

    >>> from optrand.model.problem import regression
    >>> problem = regression([0, 1], [0.5, 0.5], 1.0, loss=Tabulated([[0, 4], [2, 2]]), outputs=[0, 1])
    >>> bound = lower_bound(problem, Dual([0.0, 0.0], [0.0, 0.0]), problem.loss, problem.outputs.values)
    >>> float(bound) == 1 / np.e
    True
    """
    more, shift = excess_above(problem.epsilon)
    line = max(map(places, (problem.labels, loss.entries, grid, np.array([dual.origin]))))
    mass = max(places(problem.prior), places(dual.alpha) - line, places(dual.beta))
    points = np.array(measured(grid, dual, line), dtype=object)
    costs = np.zeros(grid.size, dtype=object)
    columns = (problem.prior, mass), (dual.alpha, mass + line), (dual.beta, mass)
    for row, p, alpha, beta in zip(loss.entries, *(scaled(*column) for column in columns), strict=True):
        reduced = p * np.array(scaled(row, line), dtype=object) - alpha
        if beta:
            reduced -= beta * points
        costs += (reduced << shift) + more * np.minimum(reduced, 0)
    base = multipliers_below(problem, dual, mass + line)
    return assembled(base, min(costs.tolist()), problem.k, excess=(more, shift), digits=mass + line)


def lower_bound_of_classes(problem: Problem, dual: Dual, grid: Floats) -> Fraction:
    """Bound for ``zero_one``, where bias is free and `dual` has no ``beta``; cost ``O(k + n)``."""
    more, shift = excess_above(problem.epsilon)
    mass = max(places(problem.prior), places(dual.alpha))

    def weighted(cost: int) -> int:
        return (cost << shift) + more * min(cost, 0)

    prior, alpha = scaled(problem.prior, mass), scaled(dual.alpha, mass)
    elsewhere = [weighted(-a) for a in alpha]
    total = sum(elsewhere)
    own = np.flatnonzero(np.isin(problem.labels, grid)).tolist()
    costs = [total + weighted(-prior[y] - alpha[y]) - elsewhere[y] for y in own]
    least = min(costs if len(own) == grid.size else [*costs, total])
    return assembled(sum(alpha), least, problem.k, excess=(more, shift), digits=mass)
