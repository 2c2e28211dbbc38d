"""Exact costs in epsilon and delta, and the account of every row of a table."""

from __future__ import annotations

import decimal
import math
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import decimal_value
from optrand.base._validation import check_flag, check_integer, rectangular
from optrand.errors import InvalidInput, OverBudget

Amount = Fraction | float


@dataclass(frozen=True)
class Spent:
    """An (epsilon, delta) guarantee, kept exactly, that composes by addition.

    Parameters
    ----------
    epsilon : Fraction or float
        In nats, at least 0. A float stands for its shortest decimal: 0.1 for a tenth.
    delta : Fraction or float
        From 0 to 1. Sums may exceed it and then promise nothing.
    exact : bool
        Whether the noise had exactly the probabilities that were proven private, rather than those of floats.

    Raises
    ------
    InvalidInput
        An amount that is negative or not a number.

    Examples
    --------
    >>> total = Spent(Fraction(1, 20)) + Spent(Fraction(19, 20))
    >>> total.epsilon, str(total)
    (Fraction(1, 1), 'epsilon 1')
    >>> (Spent(0.1) + Spent(0.2)).epsilon
    Fraction(3, 10)
    """

    epsilon: Fraction
    delta: Fraction
    exact: bool

    def __init__(self, epsilon: Amount = Fraction(0), delta: Amount = Fraction(0), *, exact: bool = True) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _amount(delta, "delta"))
        object.__setattr__(self, "exact", check_flag(exact, "exact"))

    def __add__(self, other: Spent) -> Spent:
        """Add two costs of the same labels (basic composition)."""
        if not isinstance(other, Spent):
            return NotImplemented
        return Spent(self.epsilon + other.epsilon, self.delta + other.delta, exact=self.exact and other.exact)

    @classmethod
    def total(cls, parts: Iterable[Spent]) -> Spent:
        """Add the costs of the same labels (basic composition)."""
        return sum(parts, cls())

    @classmethod
    def most(cls, parts: Iterable[Spent]) -> Spent:
        """Return the cost of disjoint sets of records: each pays at most the maximum (parallel composition).

        Examples
        --------
        >>> Spent.most([Spent(Fraction(1, 2)), Spent(Fraction(2)), Spent()]).epsilon
        Fraction(2, 1)
        """
        every = [cls(), *parts]
        exact = all(part.exact for part in every)
        return cls(max(part.epsilon for part in every), max(part.delta for part in every), exact=exact)

    def within(self, budget: Spent) -> bool:
        """Decide exactly whether neither epsilon nor delta exceeds a budget's."""
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta

    def __str__(self) -> str:
        """Return the amounts rounded up, delta only if there is one."""
        words = f"epsilon {_write_amount(self.epsilon)}"
        if self.delta:
            words += f", delta {_write_amount(self.delta)}"
        return words if self.exact else f"{words} (for real numbers only)"


def as_budget(given: object) -> Spent | None:
    """Convert an amount of epsilon to a budget. None stays None."""
    return given if given is None or isinstance(given, Spent) else Spent(_amount(given, "budget"))


def _amount(value: object, name: str) -> Fraction:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected a Fraction or a float")
    if not value >= 0 or value == math.inf:
        raise InvalidInput(f"{name} is {value}, expected a finite amount of at least 0")
    return decimal_value(value) if isinstance(value, float) else Fraction(value)


def _write_amount(amount: Fraction) -> str:
    """Write an amount, rounded up to the shortest decimal within a relative 1e-16, or to 17 digits."""
    for digits in range(1, 18):
        context = decimal.Context(digits, decimal.ROUND_CEILING, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
        numeral = context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))
        if Fraction(numeral) - amount <= amount / 10**16:
            break
    numeral = numeral.normalize(context)
    return f"{numeral:f}" if -7 < numeral.adjusted() < 17 else f"{numeral:e}"


class Odometer:
    """Account of every row: charged before its label is used, never refunded.

    Parameters
    ----------
    rows : int
        Number of rows.
    budget : Spent, optional
        Largest sum that a row may pay.

    Notes
    -----
    Rows that have paid the same share one exact sum, so that a charge of `m` rows costs ``O(m)`` and one addition for
    each distinct sum. Memory is eight bytes per row. Threads take turns.

    Examples
    --------
    >>> odometer = Odometer(4, budget=Spent(Fraction(1)))
    >>> odometer.charge([0, 2], Spent(Fraction(2, 3)))
    >>> odometer.charge([1, 3], Spent(Fraction(1, 3)))
    >>> str(odometer.cost), [str(each) for each in odometer.of_rows([0, 1])]
    ('epsilon 0.6666666666666667', ['epsilon 0.6666666666666667', 'epsilon 0.33333333333333334'])
    >>> odometer.charge([3, 2], Spent(Fraction(2, 3)))
    Traceback (most recent call last):
        ...
    optrand.errors.OverBudget: the charge of epsilon 0.6666666666666667 would take at least one row to
    epsilon 1.3333333333333334, over the budget of epsilon 1: nothing was charged, and nothing must be drawn
    """

    def __init__(self, rows: int, *, budget: Spent | None = None) -> None:
        nothing = Spent()
        # Sums of the rows, by value. A sum that no row has any longer is dropped.
        self._known = weakref.WeakValueDictionary({_value(nothing): nothing})
        self._sums = np.full(check_integer(rows, "the number of rows", 0), nothing, dtype=object)
        self._lock = threading.Lock()
        self.budget = budget

    def charge(self, rows: ArrayLike, spent: Spent) -> None:
        """Charge some rows, all of them or none.

        Parameters
        ----------
        rows : (m,) array of int
            Distinct row numbers, from 0.
        spent : Spent
            Cost for each of them.

        Raises
        ------
        OverBudget
            A row would exceed the budget.
        InvalidInput
            A row outside the table, or the same row twice.
        """
        places = self._places(rows)
        if np.unique(places).size != places.size:
            raise InvalidInput("a charge names a row twice: charge a row once for each use of its label")
        with self._lock:
            held = self._sums[places].tolist()
            sums = {id(each): each + spent for each in _distinct(held)}
            over = [] if self.budget is None else [each for each in sums.values() if not each.within(self.budget)]
            if over:
                raise OverBudget(
                    f"the charge of {spent} would take at least one row to {Spent.most(over)}, over the budget of "
                    f"{self.budget}: nothing was charged, and nothing must be drawn"
                )
            shared = {old: self._known.setdefault(_value(each), each) for old, each in sums.items()}
            self._sums[places] = [shared[id(each)] for each in held]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._sums.size

    @property
    def cost(self) -> Spent:
        """Largest sum that a row has paid. It is the cost of the table, since neighbours differ in one row."""
        with self._lock:
            return Spent.most(_distinct(self._sums.tolist()))

    def of_rows(self, rows: ArrayLike) -> tuple[Spent, ...]:
        """Return the sum that each of some rows has paid."""
        places = self._places(rows)
        with self._lock:
            return tuple(self._sums[places].tolist())

    def _places(self, rows: ArrayLike) -> NDArray[np.intp]:
        places = rectangular(rows, "rows")
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
            raise InvalidInput("rows must be a one-dimensional array of integers: their numbers, from 0")
        if places.size and not (places.min() >= 0 and places.max() < self._sums.size):
            raise InvalidInput(f"a row lies outside the table, expected numbers from 0 to {self._sums.size - 1}")
        return places.astype(np.intp)


def _distinct(sums: list[Spent]) -> list[Spent]:
    return list({id(each): each for each in sums}.values())


def _value(spent: Spent) -> tuple[Fraction, Fraction, bool]:
    return spent.epsilon, spent.delta, spent.exact
