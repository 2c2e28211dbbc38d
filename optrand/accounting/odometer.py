"""Exact account of each row of a table, however often and in whatever batches it was used."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.accounting.spent import Spent
from optrand.base.validation import check_integer, rectangular
from optrand.errors import InvalidInput, OverBudget

__all__ = ["Odometer"]

SPARE = 1024
"""Sums that no row holds any longer, and that are kept until there are more of them."""


class Odometer:
    """Account of every row: charged before its label is used, never refunded.

    Parameters
    ----------
    rows : int
        How many there are.
    budget : Spent, optional
        Largest sum that a row may pay.

    Notes
    -----
    Rows that have paid the same share one exact sum, so that a charge of `m` rows costs ``O(m log m)`` and one addition
    for each distinct sum; memory is eight bytes a row. Threads take turns.

    Examples
    --------
    >>> from fractions import Fraction
    >>> odometer = Odometer(4, budget=Spent(Fraction(1)))
    >>> odometer.charge([0, 2], Spent(Fraction(2, 3)))
    >>> odometer.charge([1, 3], Spent(Fraction(1, 3)))
    >>> str(odometer.realised), [str(each) for each in odometer.of_rows([0, 1])]
    ('epsilon 0.6666666666666667', ['epsilon 0.6666666666666667', 'epsilon 0.33333333333333334'])
    >>> odometer.charge([3, 2], Spent(Fraction(2, 3)))
    Traceback (most recent call last):
        ...
    optrand.errors.OverBudget: the charge of epsilon 0.6666666666666667 would take at least one row to
    epsilon 1.3333333333333334, over the budget of epsilon 1: nothing was charged, and nothing must be drawn
    """

    def __init__(self, rows: int, *, budget: Spent | None = None) -> None:
        self._codes = np.zeros(check_integer(rows, "the number of rows", 0), dtype=np.intp)
        self._sums = [Spent()]
        self._known = {Spent(): 0}
        self._lock = threading.Lock()
        self.budget = budget

    def charge(self, rows: ArrayLike, spent: Spent) -> None:
        """Charge some rows, all of them or none.

        Parameters
        ----------
        rows : (m,) array of int
            Distinct places, from 0.
        spent : Spent
            Cost for each of them.

        Raises
        ------
        OverBudget
            A row would exceed the budget.
        InvalidInput
            A place outside the table, or the same row twice.
        """
        places = self._places(rows)
        if np.unique(places).size != places.size:
            raise InvalidInput("a charge names a row twice: charge a row once for each use of its label")
        with self._lock:
            codes, where = np.unique(self._codes[places], return_inverse=True)
            sums = [self._sums[code] + spent for code in codes.tolist()]
            over = [] if self.budget is None else [each for each in sums if not each.within(self.budget)]
            if over:
                raise OverBudget(
                    f"the charge of {spent} would take at least one row to {Spent.most(over)}, over the budget of "
                    f"{self.budget}: nothing was charged, and nothing must be drawn"
                )
            for each in sums:
                if each not in self._known:
                    self._known[each] = len(self._sums)
                    self._sums.append(each)
            new = np.array([self._known[each] for each in sums], dtype=np.intp)
            self._codes[places] = new[where]
            if len(self._sums) > SPARE + 2 * self._codes.size:
                self._compact()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._codes.size

    @property
    def realised(self) -> Spent:
        """Largest sum that a row has paid. It is the cost of the whole table, since neighbours differ in one row."""
        with self._lock:
            return Spent.most(self._sums[code] for code in np.unique(self._codes).tolist())

    def of_rows(self, rows: ArrayLike) -> tuple[Spent, ...]:
        """Return the sum that each of some rows has paid."""
        places = self._places(rows)
        with self._lock:
            return tuple(self._sums[code] for code in self._codes[places].tolist())

    def _places(self, rows: ArrayLike) -> NDArray[np.intp]:
        places = rectangular(rows, "rows")
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
            raise InvalidInput("rows must be a one-dimensional array of integers: their places, from 0")
        if places.size and not (places.min() >= 0 and places.max() < self._codes.size):
            raise InvalidInput(f"a row lies outside the table, expected places from 0 to {self._codes.size - 1}")
        return places.astype(np.intp)

    def _compact(self) -> None:
        codes, self._codes = np.unique(self._codes, return_inverse=True)
        self._sums = [self._sums[code] for code in codes.tolist()]
        self._known = {each: code for code, each in enumerate(self._sums)}
