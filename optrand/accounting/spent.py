"""Privacy that was spent, in rationals."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import decimal_value
from optrand.base.validation import check_flag
from optrand.errors import InvalidInput

__all__ = ["Spent"]

Amount = Fraction | float

ABOVE = Fraction(1, 10**16)
"""Share by which a shown amount may exceed what was spent."""


@dataclass(frozen=True)
class Spent:
    """An (epsilon, delta) guarantee, kept exactly, that composes by addition.

    Parameters
    ----------
    epsilon : Fraction or float
        In nats, at least 0. A float stands for the shortest decimal that reads back as it: 0.1 for a tenth.
    delta : Fraction or float
        From 0 to 1; sums may exceed it and then promise nothing.
    exact : bool
        Whether the noise had exactly the probabilities that were proven private, rather than those of floats.

    Raises
    ------
    InvalidInput
        An amount that is negative or no number.

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
        """Return whether neither epsilon nor delta exceeds a budget's, exactly."""
        return self.epsilon <= budget.epsilon and self.delta <= budget.delta

    def __str__(self) -> str:
        """Return the amounts rounded up, delta only where there is one."""
        words = f"epsilon {_shown(self.epsilon)}"
        if self.delta:
            words += f", delta {_shown(self.delta)}"
        return words if self.exact else f"{words} (for real numbers only)"


def _amount(value: object, name: str) -> Fraction:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected a Fraction or a float")
    if not (math.isfinite(value) and value >= 0):
        raise InvalidInput(f"{name} is {value}, expected a finite amount of at least 0")
    return decimal_value(value) if isinstance(value, float) else Fraction(value)


def _shown(amount: Fraction) -> str:
    """Return the shortest decimal from an amount to :data:`ABOVE` of it above it, or one of 17 digits."""
    for digits in range(1, 18):
        context = decimal.Context(digits, decimal.ROUND_CEILING, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
        numeral = context.divide(decimal.Decimal(amount.numerator), decimal.Decimal(amount.denominator))
        if Fraction(numeral) - amount <= ABOVE * amount:
            break
    numeral = numeral.normalize(context)
    return f"{numeral:f}" if -7 < numeral.adjusted() < 17 else f"{numeral:e}"
