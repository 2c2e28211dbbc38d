"""Linear programs of a few rows in exact rationals: optima that no tolerance has touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optrand.errors import Infeasible, InvalidInput

__all__ = ["Vertex", "minimise"]

GREEDY = 60
"""Steps by the steepest price; after that the first price that helps is taken, which cannot cycle (Bland's rule)."""


@dataclass(frozen=True)
class Vertex:
    """An optimal basic solution.

    Attributes
    ----------
    value : Fraction
    amounts : tuple of Fraction
        One a column, not negative; at most as many are positive as there are rows.
    """

    value: Fraction
    amounts: tuple[Fraction, ...]


def minimise(costs: Sequence[Fraction], columns: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> Vertex:
    """Minimise ``costs @ x`` subject to ``columns @ x == right`` and ``x >= 0``, by the simplex method in two phases.

    Raises
    ------
    Infeasible
        No ``x`` satisfies the rows.
    InvalidInput
        The cost has no lower bound.

    Examples
    --------
    >>> one, two = Fraction(1), Fraction(2)
    >>> minimise([two, one], [[one], [one]], [two])
    Vertex(value=Fraction(2, 1), amounts=(Fraction(0, 1), Fraction(2, 1)))
    """
    tableau = _Tableau(columns, right)
    if tableau.descend([Fraction(0)] * len(columns) + [Fraction(1)] * len(right)):
        raise Infeasible("no amounts of the columns add up to the right-hand side: allow more columns")
    tableau.drop_artificial(len(columns))
    value = tableau.descend(list(costs))
    amounts = [Fraction(0)] * len(columns)
    for row, basic in zip(tableau.rows, tableau.basis, strict=True):
        amounts[basic] = row[-1]
    return Vertex(value, tuple(amounts))


class _Tableau:
    """Rows in terms of the basic columns, the right-hand side last."""

    def __init__(self, columns: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> None:
        count = len(right)
        self.basis = [len(columns) + i for i in range(count)]
        self.rows = []
        for i, side in enumerate(right):
            sign = -1 if side < 0 else 1
            unit = [Fraction(int(i == j)) for j in range(count)]
            self.rows.append([*(sign * column[i] for column in columns), *unit, abs(side)])

    def descend(self, costs: list[Fraction]) -> Fraction:
        """Go to the vertex of least cost; columns without a cost stay out."""
        prices = [*costs, *[Fraction(0)] * (len(self.rows[0]) - len(costs))] if self.rows else [*costs, Fraction(0)]
        for i, basic in enumerate(self.basis):
            prices = _reduced(prices, self.rows[i], prices[basic])
        steps = 0
        while True:
            falling = [j for j in range(len(costs)) if prices[j] < 0]
            if not falling:
                return -prices[-1]
            steps += 1
            entering = min(falling, key=prices.__getitem__) if steps < GREEDY else falling[0]
            limits = [
                (row[-1] / row[entering], self.basis[i], i) for i, row in enumerate(self.rows) if row[entering] > 0
            ]
            if not limits:
                raise InvalidInput("the cost has no lower bound: expected a program with an optimum")
            leaving = min(limits)[2]
            self._enter(entering, leaving)
            prices = _reduced(prices, self.rows[leaving], prices[entering])

    def drop_artificial(self, count: int) -> None:
        """Exchange columns that only stood for rows; a row that no column of the program can carry says nothing new."""
        for i in range(len(self.rows)):
            if self.basis[i] >= count:
                entering = next((j for j in range(count) if self.rows[i][j]), None)
                if entering is not None:
                    self._enter(entering, i)
        kept = [i for i, basic in enumerate(self.basis) if basic < count]
        self.rows = [[*self.rows[i][:count], self.rows[i][-1]] for i in kept]
        self.basis = [self.basis[i] for i in kept]

    def _enter(self, entering: int, leaving: int) -> None:
        pivot = self.rows[leaving][entering]
        row = [entry / pivot for entry in self.rows[leaving]]
        self.rows = [
            row if i == leaving else _reduced(other, row, other[entering]) for i, other in enumerate(self.rows)
        ]
        self.basis[leaving] = entering


def _reduced(row: list[Fraction], other: list[Fraction], times: Fraction) -> list[Fraction]:
    return [a - times * b if b else a for a, b in zip(row, other, strict=True)] if times else row
