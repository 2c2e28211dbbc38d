r"""Active-set method in integers, for problems on a grid whose numbers lie too far apart for floats.

With :math:`e = e^{-\epsilon}`, columns :math:`s_y = 1` on a set and :math:`e` elsewhere, and biases measured from each
label, so that no digits cancel, it solves

.. math:: \min_{x \geq 0} \sum_j x_j \sum_y s_{jy} p_y g(v_j, y) + \tfrac{\lambda}{2} \sum_y p_y b_y^2
          \quad\text{s.t.}\quad \sum_j x_j s_{jy} = 1, \qquad b_y = \sum_j x_j s_{jy} (v_j - y).

A step prices the columns, takes in the cheapest, and moves to the optimum over the columns in use, as far as none of
them is used up. The inverse of the optimality conditions

.. math:: \begin{pmatrix} B^\top \Lambda B & M^\top \\ M & 0 \end{pmatrix}
          \begin{pmatrix} x \\ \nu \end{pmatrix} = \begin{pmatrix} -c \\ r \end{pmatrix}, \qquad
          \Lambda = \mathrm{diag}(\lambda p_y),

with `M` the equations and `B` the biases that have a price, is kept up to date by changes of rank one and two: a step
costs ``O(k**2 + k n)``. Numbers are integers in units of ``2**-digits``, with digits to spare: as good as exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import Integers
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.model.staircase import Staircase
from optrand.solvers.grid.integers import Columns, Numbers

__all__ = ["ActiveSet", "active_set"]

STEPS = 60
"""As many times the number of equations it steps at most."""

CLOSED = Fraction(1, 10**11)
"""Relative gap at which it ends."""


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Answer of :func:`active_set`: the columns in use, the multipliers, and the number of steps."""

    columns: Staircase
    dual: Dual
    steps: int


def active_set(problem: Problem, start: Staircase) -> ActiveSet | None:
    """Optimum of a problem on a grid, first over the columns of `start`; None where it is not found.

    Examples
    --------
    >>> import optrand
    >>> grid = optrand.Grid([-2, -1, 0, 1, 2, 3, 4])
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=grid)
    >>> nothing = Staircase(np.zeros((3, 0), dtype=bool), np.zeros(0), np.zeros(0))
    >>> round(optrand.certificates.certificate.lower_bound(problem, active_set(problem, nothing).dual), 6)
    2.003059
    """
    numbers = Numbers.of(problem)
    state = _Conditions(numbers) if numbers.charges.size else _Vertex(numbers)
    given = Columns.of(numbers, start.members, np.searchsorted(numbers.outputs, start.outputs))
    only_given = bool(given.at.size)
    for step in range(STEPS * numbers.rows):
        chosen, price = state.cheapest_of(given) if only_given else state.cheapest()
        if state.is_closed(price):
            if not only_given:
                feasible = state.is_feasible()
                return ActiveSet(state.staircase(), state.dual(problem), step) if feasible else None
            only_given = False
        elif not state.enter(chosen):
            return None
    return None


class _State(ABC):
    """Columns in use, their amounts, and the multipliers of equations and of biases that have a price."""

    amounts: Integers
    alpha: Integers

    def __init__(self, numbers: Numbers) -> None:
        self.numbers, digits, hard = numbers, numbers.digits, numbers.hard
        self.digits, self.one = digits, 1 << digits
        self.zero = 1 << (digits // 2 - 40)
        """Smaller numbers are rounding."""
        self.columns = Columns.artificial(numbers, 1 << (digits + digits // 4))
        self.right = np.array([self.one] * numbers.k + [0] * (hard - numbers.k), dtype=object)
        # Shifts that are of no consequence keep vertices apart.
        shifts = np.random.default_rng(hard).integers(1 << 20, 1 << 21, hard).astype(object)
        self.shifted = self.right + (shifts << (digits // 2 - 20))
        self.slopes, self.charge = np.full(0, 0, dtype=object), 0
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Start from the artificial columns."""

    @abstractmethod
    def read(self, right: Integers) -> None:
        """Take amounts and multipliers from the inverse."""

    @abstractmethod
    def enter(self, column: Columns) -> bool:
        """Take in a column and move to the optimum over those in use; False where nothing limits the move."""

    def times(self, a: Integers, b: Integers) -> Integers:
        """Matrix product."""
        product: Integers = (a @ b) >> self.digits
        return product

    @property
    def multipliers(self) -> Integers:
        """Of all rows."""
        return np.append(self.alpha, self.slopes)

    def cheapest_of(self, columns: Columns) -> tuple[Columns, int]:
        """Cheapest of some columns, and its price."""
        prices = columns.costs - self.times(self.multipliers, columns.matrix)
        least = int(prices.argmin())
        return columns.only(np.array([least])), int(prices[least])

    def cheapest(self) -> tuple[Columns, int]:
        """Cheapest of all columns, and its price."""
        numbers, k, multipliers = self.numbers, self.numbers.k, self.multipliers
        reduced = numbers.costs - multipliers[:k, np.newaxis]
        if multipliers.size > k:
            reduced = reduced - ((multipliers[k:, np.newaxis] * numbers.apart) >> self.digits)
        members = reduced < 0
        prices = np.where(members, reduced, (reduced * numbers.least) >> self.digits).sum(axis=0)
        least = np.array([int(prices.argmin())])
        return Columns.of(numbers, members[:, least].astype(bool), least), int(prices[least[0]])

    def is_closed(self, price: int) -> bool:
        """Whether nothing can be gained: amounts are optimal but for the price of the cheapest column."""
        if not self.is_feasible():  # All prices are in the unit of the artificial columns' cost.
            return price >= -(self.one >> self.digits // 4)
        used = self.columns.at >= 0
        value = abs(int(self.times(self.columns.costs[used], self.amounts[used])) + self.charge)
        return -self.numbers.k * price <= max(self.zero, int(CLOSED * value))

    def is_feasible(self) -> bool:
        """Whether artificial columns have no more than shifts and rounding ask for."""
        return bool((self.amounts[self.columns.at < 0] <= self.one >> (3 * self.digits // 8)).all())

    def first_used_up(self, falls: Integers) -> int:
        """Column that is used up first where amounts fall at some speeds; -1 where none does."""
        falling = np.flatnonzero(falls > self.zero)
        if not falling.size:
            return -1
        lengths = (np.maximum(self.amounts[falling], 0) << (2 * self.digits)) // falls[falling]
        return int(falling[int(lengths.argmin())])

    def staircase(self) -> Staircase:
        """Columns in use, with their masses."""
        self.read(self.right)
        used = np.flatnonzero((self.columns.at >= 0) & (self.amounts > 0))
        columns = self.columns.only(used)
        masses = [float(Fraction(int(x) * self.numbers.least, self.one**2)) for x in self.amounts[used]]
        return Staircase(columns.members, self.numbers.outputs[columns.at], np.array(masses))

    def dual(self, problem: Problem) -> Dual:
        """Multipliers in floats: the slopes rounded first, the levels so as to make up for it."""
        numbers, k = self.numbers, problem.k
        slopes = self.multipliers[k:].tolist() or [0] * k
        beta = [float(numbers.unit / numbers.width * Fraction(x, self.one)) for x in slopes]
        rests = [
            numbers.unit * Fraction(int(a), self.one) - Fraction(b) * Fraction(y)
            for a, b, y in zip(self.alpha[:k], beta, problem.labels.tolist(), strict=True)
        ]
        return Dual(np.array([float(x) for x in rests]), np.array(beta))


class _Vertex(_State):
    """Basis of a linear program, where no bias has a finite price, and its inverse."""

    def begin(self) -> None:
        """Start from the artificial columns."""
        self.inverse = np.full((self.numbers.hard, self.numbers.hard), 0, dtype=object)
        np.fill_diagonal(self.inverse, self.one)
        self.read(self.shifted)

    def read(self, right: Integers) -> None:
        """Take amounts and multipliers from the inverse."""
        self.amounts = self.times(self.inverse, right)
        self.alpha = self.times(self.columns.costs, self.inverse)

    def enter(self, column: Columns) -> bool:
        """Put a column in the place of the one that it uses up first."""
        w = self.times(self.inverse, column.matrix[:, 0])
        i = self.first_used_up(w)
        if i < 0:
            return False
        row = (self.inverse[i] << self.digits) // w[i]
        price = int(column.costs[0]) - int(self.times(self.alpha, column.matrix[:, 0]))
        length = (self.amounts[i] << self.digits) // w[i]
        self.inverse = self.inverse - (np.multiply.outer(w, row) >> self.digits)
        self.amounts = self.amounts - ((w * length) >> self.digits)
        self.alpha = self.alpha + ((price * row) >> self.digits)
        self.inverse[i], self.amounts[i] = row, length
        self.columns = self.columns.exchanged(i, column)
        return True


class _Conditions(_State):
    """Optimality conditions of a quadratic program, where biases have a price, and their inverse: columns first."""

    def begin(self) -> None:
        """Start from the artificial columns."""
        hard = self.numbers.hard
        self.inverse = np.full((2 * hard, 2 * hard), 0, dtype=object)
        each = np.arange(hard)
        self.inverse[each, each + hard] = self.inverse[each + hard, each] = self.one
        self.read(self.shifted)

    def read(self, right: Integers) -> None:
        """Take amounts and multipliers from the inverse."""
        numbers, n = self.numbers, self.columns.at.size
        answer = self.times(self.inverse, np.append(-self.columns.costs, right))
        self.amounts, self.alpha = answer[:n], -answer[n:]
        biases = self.times(self.columns.matrix[numbers.hard :], self.amounts)
        self.slopes = -(numbers.charges * biases) >> self.digits
        self.charge = int((-(self.slopes * biases) >> self.digits).sum()) // 2

    def enter(self, column: Columns) -> bool:
        """Take in a column, or put it in the place of one where it is a combination of those in use, and descend."""
        border, own = self._border(column), self._own(column)
        w = self.times(self.inverse, border)
        pivot = own - int(self.times(border, w))
        if abs(pivot) > self.zero:
            self._add(column, w, pivot)
            return self._descend()
        n = self.columns.at.size
        i = self.first_used_up(w[:n])
        if i < 0:
            return False
        length = (self.amounts[i] << self.digits) // w[i]
        self.amounts = self.amounts - ((length * w[:n]) >> self.digits)
        self.amounts[i] = length
        self._exchange(i, column, border, own)
        return self._descend()

    def _own(self, column: Columns) -> int:
        """Quadratic term of a column with itself."""
        biases = column.matrix[self.numbers.hard :, 0]
        return int((((biases * biases) >> self.digits) * self.numbers.charges).sum()) >> self.digits

    def _border(self, column: Columns) -> Integers:
        """Row of a new column in the conditions."""
        hard, new = self.numbers.hard, column.matrix[:, 0]
        priced = (new[hard:] * self.numbers.charges) >> self.digits
        return np.append(self.times(priced, self.columns.matrix[hard:]), new[:hard])

    def _add(self, column: Columns, w: Integers, pivot: int) -> None:
        n, size = self.columns.at.size, self.inverse.shape[0]
        bigger = np.full((size + 1, size + 1), 0, dtype=object)
        old, share = np.delete(np.arange(size + 1), n), (w << self.digits) // pivot
        bigger[np.ix_(old, old)] = self.inverse + (np.multiply.outer(w, share) >> self.digits)
        bigger[n, old] = bigger[old, n] = -share
        bigger[n, n] = (self.one << self.digits) // pivot
        self.inverse, self.columns = bigger, self.columns.with_one(column)
        self.amounts = np.append(self.amounts, 0)

    def _exchange(self, i: int, column: Columns, border: Integers, own: int) -> None:
        """Put a column in the place of another: a change of rank two."""
        leaving = self.columns.only(np.array([i]))
        change = border - self._border(leaving)
        # Row and column i of the conditions change, each by half of what they share.
        change[i] = (own - self._own(leaving)) // 2
        rank = np.zeros((self.inverse.shape[0], 2), dtype=object)
        rank[i, 0], rank[:, 1] = self.one, change
        moved = self.times(self.inverse, rank)
        (a, b), (c, d) = self.times(rank.T, moved)
        b, c = b + self.one, c + self.one
        determinant = (a * d - b * c) >> self.digits
        middle = (np.array([[d, -b], [-c, a]], dtype=object) << self.digits) // determinant
        self.inverse = self.inverse - self.times(self.times(moved, middle), moved.T)
        self.columns = self.columns.exchanged(i, column)

    def _descend(self) -> bool:
        """Move to the optimum over the columns in use; those that are used up on the way are dropped."""
        while True:
            old = self.amounts
            self.read(self.shifted)
            if (self.amounts >= -self.zero).all():
                return True
            change, self.amounts = self.amounts - old, old
            i = self.first_used_up(np.where(old + change < -self.zero, -change, 0))
            pivot = int(self.inverse[i, i])
            if i < 0 or abs(pivot) <= self.zero:
                return False
            length = (max(0, int(old[i])) << self.digits) // -int(change[i])
            self.amounts = old + ((length * change) >> self.digits)
            kept = np.delete(np.arange(self.inverse.shape[0]), i)
            row = self.inverse[i, kept]
            share = (row << self.digits) // pivot
            self.inverse = self.inverse[np.ix_(kept, kept)] - (np.multiply.outer(row, share) >> self.digits)
            inside = np.delete(np.arange(self.columns.at.size), i)
            self.columns, self.amounts = self.columns.only(inside), self.amounts[inside]
