r"""Multipliers of neighbouring labels that no column in use tells apart.

At a finite bias penalty the columns in use fix the multipliers of the biases, and of those of the rows only the sums
over such groups of labels. An interior point ends in the middle of all shares at which no *interval* column is too
cheap; but where a label's two zeros are out of order, other columns may be. A label that is favoured by the columns of
the outputs :math:`v_i` to :math:`v_j`, and by no others, asks for a zero between :math:`v_{i-1}` and :math:`v_i` and one
between :math:`v_j` and :math:`v_{j+1}`: with :math:`\varphi_y(v) = p_y (v - y)^2 / 2 - \beta_y v`,

.. math:: \max(\varphi_y(v_i), \varphi_y(v_j)) \leq \alpha_y \leq \min(\varphi_y(v_{i-1}), \varphi_y(v_{j+1})).

All labels of a group are put at the same share of the way from the lower end to the upper one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optrand.base.validation import Floats
from optrand.model.arcs import Arcs
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["evened"]


def evened(problem: Problem, arcs: Arcs, dual: Dual) -> Dual:
    """Multipliers with the same sums over the labels between two nodes of the arcs in use, evenly shared.

    Parameters
    ----------
    problem : Problem
        With squared loss.
    arcs : Arcs
        Those in use, in increasing order of outputs, their ends in order, too.
    dual : Dual

    Returns
    -------
    Dual
        A claim as good or as bad as `dual` where no two labels share all arcs.
    """
    each, first, end, outputs = np.arange(problem.k), arcs.first, arcs.last + 1, arcs.outputs
    start = np.searchsorted(np.maximum.accumulate(end), each, side="right")
    stop = np.searchsorted(np.minimum.accumulate(first[::-1])[::-1], each, side="right") - 1
    start = np.minimum(start, arcs.n - 1)
    stop = np.maximum(stop, start)

    def asked(at: np.ndarray) -> Floats:
        inside = (at >= 0) & (at < arcs.n)
        output = outputs[np.clip(at, 0, arcs.n - 1)]
        value = problem.prior * (output - problem.labels) ** 2 / 2 - dual.beta * (output - dual.origin)
        return np.where(inside, value, np.inf)

    least = np.maximum(asked(start), asked(stop))
    room = np.minimum(asked(start - 1), asked(stop + 1)) - least
    room = np.where(np.isfinite(room), np.maximum(room, 0.0), 1 + np.abs(least))
    borders = np.zeros(problem.k + 1, dtype=bool)
    borders[first] = borders[end] = True
    group = np.cumsum(borders[:-1]) - 1
    counts, rooms, above = (np.bincount(group, amounts) for amounts in (None, room, dual.alpha - least))
    share = np.where(rooms > 0, above / np.where(rooms > 0, rooms, 1.0), 0.0)
    shared = least + share[group] * room + ((above - share * rooms) / counts)[group]
    return replace(dual, alpha=np.where(counts[group] > 1, shared, dual.alpha))
