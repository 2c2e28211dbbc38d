"""The columns that a randomizer uses, and what complementary slackness with them asks of multipliers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.model.staircase import Staircase

__all__ = ["Support"]


class Support:
    """The columns in use, and the pairs of a label and a column of which slackness asks something.

    Outputs are in units of their range. Variables are sums of multipliers up to each label: of a set of neighbours only
    the ends then count.
    """

    def __init__(self, problem: Problem, columns: Staircase) -> None:
        self.problem, self.members, self.outputs = problem, columns.members, columns.outputs
        self.centre = (self.outputs.min() + self.outputs.max()) / 2
        self.width = float(np.ptp(self.outputs)) / 2 or 1.0
        self.label, self.column = _decisive(columns)
        self.sign = np.where(self.members[self.label, self.column], -1.0, 1.0)
        """Negative for a label's own columns, whose ``h`` is to be negative."""
        each, inner = np.arange(self.label.size), self.label > 0
        values = np.concatenate((self.sign, -self.sign[inner]))
        where = np.concatenate((each, each[inner])), np.concatenate((self.label, self.label[inner] - 1))
        self.singles = sparse.csr_array((values, where), shape=(each.size, problem.k))
        """The signed multiplier of each pair's label."""

    @property
    def share(self) -> float:
        """What the bound gains by a lowest price of one."""
        return self.problem.k / (1 + (self.problem.k - 1) * math.exp(-self.problem.epsilon))

    def scaled(self, outputs: Floats) -> Floats:
        """Outputs from the middle of those in use, in units of half their range."""
        scaled: Floats = (outputs - self.centre) / self.width
        return scaled

    def steepness(self, members: NDArray[np.bool_]) -> Floats:
        """Entries of columns: 1 for their members, ``1 / E`` for the others."""
        return np.where(members, 1.0, math.exp(-self.problem.epsilon))

    def weighted(self, members: NDArray[np.bool_]) -> sparse.csr_array:
        """The steep sums of multipliers, one row a column of `members`."""
        steps = members.astype(np.int8)
        steps[:-1] -= members[1:]
        label, row = np.nonzero(steps)
        k, least = steps.shape[0], math.exp(-self.problem.epsilon)
        rows, last = np.arange(steps.shape[1]), np.full(steps.shape[1], k - 1)
        values = np.concatenate(((1 - least) * steps[label, row], np.full(rows.size, least)))
        where = np.concatenate((row, rows)), np.concatenate((label, last))
        return sparse.csr_array((values, where), shape=(rows.size, k))

    def with_slopes(self, sums: sparse.csr_array, outputs: Floats) -> sparse.csr_array:
        """Rows of ``alpha + beta v``, each at its output, for rows of `alpha`."""
        return sparse.csr_array(sparse.hstack((sums, sparse.diags_array(self.scaled(outputs)) @ sums)))

    def gain(self, means: Floats) -> Floats:
        """What the bound gains by each variable, for the mean outputs of the rows."""
        totals, places = np.zeros(means.size), self.scaled(means)
        totals[-1] = 1.0
        return np.concatenate((totals, places - np.append(places[1:], 0.0)))

    def reduced(self, dual: Dual, outputs: Floats) -> Floats:
        """The ``h`` of each label at each output."""
        table = self.problem.prior[:, np.newaxis] * self.problem.loss_table(outputs)
        reduced: Floats = table - dual.alpha[:, np.newaxis] - dual.beta[:, np.newaxis] * outputs
        return reduced


def _decisive(support: Staircase) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a label and an arc whose slackness implies the others', since each ``h`` is convex in the output."""
    # Of a label's own arcs those of the lowest and the highest output; of the others their nearest neighbours outside.
    pairs = []
    for label, own in enumerate(support.members):
        arcs = np.flatnonzero(own)
        if arcs.size:
            first, last = arcs[support.outputs[arcs].argmin()], arcs[support.outputs[arcs].argmax()]
            below = np.flatnonzero(support.outputs < support.outputs[first])
            above = np.flatnonzero(support.outputs > support.outputs[last])
            pairs += [(label, first), (label, last)]
            pairs += [(label, below[support.outputs[below].argmax()])] if below.size else []
            pairs += [(label, above[support.outputs[above].argmin()])] if above.size else []
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
