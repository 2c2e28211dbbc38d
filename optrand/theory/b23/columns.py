"""Unbiased randomizers as sums of staircase columns, all ``2**k - 2`` of them: no structure is taken for granted.

On finitely many outputs the best one is a linear program, solved here in exact rationals; on the line it is a cone
program with one cone a column, in floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.backends.conic import Cones, ConicProgram
from optrand.theory.b23.simplex import minimise
from optrand.theory.instances import Setting

__all__ = [
    "Column",
    "Members",
    "absolute",
    "best_on_grid",
    "best_on_line",
    "dot",
    "grid",
    "half_square",
    "response_ends",
    "sets",
    "two_end_loss",
]

Members = tuple[bool, ...]
"""Which labels a column favours: they give its output `E` times as often as the others do."""

Cost = Callable[[Fraction, Fraction], Fraction]

USED = 1e-5
"""The least share of the probability of its favoured labels that a column has if it is used, in floats."""


@dataclass(frozen=True)
class Column:
    """A column of a randomizer: its output has probability ``mass * E`` for its members and ``mass`` for the others."""

    members: Members
    output: Fraction | float
    mass: Fraction | float

    @property
    def interval(self) -> bool:
        """Whether the members are neighbours."""
        places = [i for i, member in enumerate(self.members) if member]
        return places[-1] - places[0] + 1 == len(places)


def sets(k: int) -> list[Members]:
    """All sets of labels but the empty and the full one.

    Examples
    --------
    >>> len(sets(3)), len(sets(1))
    (6, 0)
    """
    return [members for members in product((False, True), repeat=k) if 0 < sum(members) < k]


def dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """The sum of products."""
    return sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))


def half_square(output: Fraction, label: Fraction) -> Fraction:
    """Squared loss, halved."""
    return (output - label) ** 2 / 2


def absolute(output: Fraction, label: Fraction) -> Fraction:
    """Absolute loss."""
    return abs(output - label)


def response_ends(labels: Sequence[Fraction], ratio: Fraction) -> tuple[Fraction, Fraction]:
    """The lowest and the highest output of debiased randomized response: [B23], Algorithm 2.

    Examples
    --------
    >>> [str(end) for end in response_ends((Fraction(0), Fraction(1), Fraction(2)), Fraction(3))]
    ['-3/2', '7/2']
    """
    total, count = sum(labels, Fraction(0)), len(labels)
    low, high = (((ratio + count - 1) * end - total) / (ratio - 1) for end in (labels[0], labels[-1]))
    return low, high


def two_end_loss(setting: Setting, low: Fraction, high: Fraction) -> Fraction:
    """The halved squared loss of the only unbiased randomizer with two outputs: the variance `(high - y) (y - low)`."""
    losses = ((high - y) * (y - low) * p for y, p in zip(setting.labels, setting.prior, strict=True))
    return sum(losses, Fraction(0)) / 2


def grid(setting: Setting, n: int) -> list[Fraction]:
    """`n` evenly spaced values between those ends."""
    low, high = response_ends(setting.labels, setting.ratio)
    return [low + (high - low) * i / (n - 1) for i in range(n)]


def best_on_grid(
    setting: Setting, outputs: Iterable[Fraction], loss: Cost, *, among: Sequence[Members] | None = None
) -> tuple[Fraction, list[Column]]:
    """The least loss of an unbiased epsilon-DP randomizer with these outputs, and one that has it, exactly.

    Parameters
    ----------
    setting : Setting
    outputs : iterable of Fraction
    loss : callable
    among : sequence of Members, optional
        The columns that may be used; by default all of them.

    Examples
    --------
    >>> setting = Setting((Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2)), Fraction(3))
    >>> value, columns = best_on_grid(setting, grid(setting, 5), half_square)
    >>> str(value), [str(column.output) for column in columns]
    ('3/8', ['-1/2', '3/2'])
    """
    used = sets(setting.k) if among is None else among
    places = [(members, output) for output in outputs for members in used]
    weights = [[setting.ratio if member else Fraction(1) for member in members] for members, _ in places]
    costs = [
        sum((w * p * loss(output, y) for w, p, y in zip(row, setting.prior, setting.labels, strict=True)), Fraction(0))
        for row, (_, output) in zip(weights, places, strict=True)
    ]
    columns = [[*row, *(w * output for w in row)] for row, (_, output) in zip(weights, places, strict=True)]
    vertex = minimise(costs, columns, [*[Fraction(1)] * setting.k, *setting.labels])
    made = [Column(*place, mass) for place, mass in zip(places, vertex.amounts, strict=True) if mass]
    return vertex.value, made


def best_on_line(setting: Setting, means: Sequence[Fraction] | None = None) -> tuple[float, list[Column]]:
    r"""The least halved squared loss with outputs anywhere and these expected outputs, and one that has it, in floats.

    With mass :math:`c_S` and first moment :math:`m_S` of the column :math:`S` and :math:`P_S = \sum_y p_y s_S(y)`,

    .. math:: \min \tfrac12 \sum_S P_S q_S - \sum_S m_S \sum_y s_S(y) p_y y + \tfrac12 \sum_y p_y y^2, \quad
              q_S c_S \geq m_S^2, \quad \sum_S c_S s_S(y) = 1, \quad \sum_S m_S s_S(y) = \mu_y.

    Columns whose output coincides in floats stay apart. Labels are counted from their middle, and the columns come in
    the order of their outputs.

    Parameters
    ----------
    setting : Setting
    means : sequence of Fraction, optional
        The labels by default.

    Examples
    --------
    >>> setting = Setting((Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2)), Fraction(3))
    >>> value, columns = best_on_line(setting)
    >>> round(value, 9), [(column.members, round(column.output, 6)) for column in columns]
    (0.375, [((True, False), -0.5), ((False, True), 1.5)])
    """
    middle, unit = (setting.labels[0] + setting.labels[-1]) / 2, setting.labels[-1] - setting.labels[0]
    labels, targets = (
        np.array([float((y - middle) / unit) for y in row]) for row in (setting.labels, means or setting.labels)
    )
    members = np.array(sets(setting.k))
    # Columns in units of 1/E, so that masses are shares of the probability of the favoured labels.
    rows = np.where(members, 1.0, 1 / float(setting.ratio)).T
    prior = np.array([float(p) for p in setting.prior])
    answer = Clarabel().solve(_program(rows, prior, labels, targets))
    masses, moments, _ = answer.x.reshape(3, -1)
    used = masses > USED
    outputs = moments[used] / masses[used]
    spread = prior * rows[:, used].T
    value = float((masses[used] * ((outputs[:, np.newaxis] - labels) ** 2 * spread).sum(axis=1)).sum()) / 2
    made = [
        Column(tuple(map(bool, row)), float(middle) + float(unit) * output, mass / float(setting.ratio))
        for row, output, mass in zip(members[used], outputs.tolist(), masses[used].tolist(), strict=True)
    ]
    return value * float(unit) ** 2, sorted(made, key=lambda column: column.output)


def _program(rows: Floats, prior: Floats, labels: Floats, means: Floats) -> ConicProgram:
    """Variables: all masses, all moments, all ``q``."""
    k, n = rows.shape
    none, unit = sparse.csc_array((k, n)), sparse.eye_array(n, format="csc")
    equal = sparse.block_array([[sparse.csc_array(rows), none, none], [none, sparse.csc_array(rows), none]])
    # q + c >= hypot(q - c, 2 m), one cone a column: three rows that are neighbours.
    blank = sparse.csc_array((n, n))
    stacked = sparse.block_array([[-unit, blank, -unit], [unit, blank, -unit], [blank, -2 * unit, blank]]).tocsr()
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    costs = np.concatenate((np.zeros(n), -(prior * labels) @ rows, prior @ rows / 2))
    return ConicProgram(
        quadratic=sparse.csc_array((3 * n, 3 * n)),
        cost=costs,
        equal=sparse.csc_array(equal),
        equal_to=np.concatenate((np.ones(k), means)),
        less=sparse.csc_array((0, 3 * n)),
        less_than=np.zeros(0),
        cones=Cones(sparse.csc_array(stacked[order]), np.zeros(3 * n)),
    )
