r"""Composition of releases: an exact dominating pair with the losses ``-rho, 0, rho``, and its n-fold composition.

Let any two rows of a table have no ratio above :math:`R = e^\rho` and a total variation of at most :math:`t`, and let
:math:`s = t / (R - 1)`. The pair

.. math:: P = (R s,\; 1 - (R + 1) s,\; s), \qquad Q = (s,\; 1 - (R + 1) s,\; R s)

dominates every two rows: no divergence of theirs is larger. Its losses are :math:`\rho, 0, -\rho`. If the columns
of a table have two levels, as in optimal randomizers, it is the pair of two rows itself (``docs/mathematics.md``,
Composition of releases).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from flint import fmpz_poly

from optrand.base._arithmetic import (
    Integers,
    exp_bracket,
    float_above,
    least_reading,
    log_above,
    log_bracket,
    privacy_ratio,
)
from optrand.base._validation import Record, check_integer, check_real
from optrand.errors import InvalidInput, MissingExtra
from optrand.model._table import Table

BITS = 320
"""Binary digits of composed masses, which are rounded so that delta only grows."""

CANDIDATES = 1000
"""Number of pairs of rows up to which the largest total variation is exact. Of more it is rounded up."""

LARGEST = 1 << 22
"""Largest table, in entries, whose rows are compared pair by pair, and entries that are compared at a time."""


@dataclass(frozen=True)
class DominatingPair(Record):
    """Two distributions on three outcomes that dominate those of a release for any two labels.

    Attributes
    ----------
    ratio : Fraction
        Above 1: exponential of the largest loss.
    mass : Fraction
        Probability of the smallest loss, from 0 to ``1 / (ratio + 1)``, which is that of a randomized bit.

    Raises
    ------
    InvalidInput
        Numbers outside of these ranges.

    Examples
    --------
    A bit, answered truthfully with probability 3/4, a hundred times:

    >>> bit = DominatingPair(Fraction(3), Fraction(1, 4))
    >>> [round(bit.delta(epsilon), 9) for epsilon in (0, math.log(2), 2)]
    [0.5, 0.25, 0.0]
    >>> round(bit.epsilon(1e-6, releases=100), 3), round(bit.epsilon(0, releases=100), 3)
    (94.29, 109.861)
    """

    ratio: Fraction
    mass: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", Fraction(self.ratio))
        object.__setattr__(self, "mass", Fraction(self.mass))
        if self.ratio <= 1 or not 0 <= self.mass * (self.ratio + 1) <= 1:
            raise InvalidInput("a dominating pair needs a ratio above 1 and a mass from 0 to 1 / (ratio + 1)")

    @classmethod
    def of_table(cls, table: Table, epsilon: float) -> DominatingPair:
        """Return the pair that dominates all labels of an epsilon-DP table.

        In ``O(n)`` if every column first rises and then falls, as sums of nested intervals do: then the first and the
        last label are furthest apart. Otherwise in ``O(k^2 n)``, and for tables of more than :data:`LARGEST` entries
        the total variation is that of a randomized bit, which is never exceeded.
        """
        ratio = table.largest_ratio
        if ratio is None or ratio == 1:
            # If labels make no difference, any ratio is right, with no mass.
            ratio = privacy_ratio(epsilon)
        most = 1 / (ratio + 1)
        apart = _compare_ends(table)
        if apart is None and table.k * table.n > LARGEST:
            return cls(ratio, most)
        if apart is None:
            apart = _find_total_variation(table.weights, table.total)
        return cls(ratio, min(apart / (ratio - 1), most))

    @cached_property
    def largest_loss(self) -> float:
        """Logarithm of :attr:`ratio`, rounded up."""
        return log_above(self.ratio)

    def delta(self, epsilon: float, *, releases: int = 1) -> float:
        """Return the least delta for which `releases` releases of one label are (epsilon, delta)-DP, rounded up.

        Mechanisms may be chosen after outputs of earlier ones were seen ([ZDW22]_, Theorem 10).
        """
        budget = check_real(epsilon, "epsilon")
        if budget < 0:
            raise InvalidInput(f"epsilon is {budget}, expected at least 0")
        count = check_integer(releases, "releases", 1)
        # No loss of the composition exceeds `releases` times the largest.
        if budget >= float_above(count * Fraction(self.largest_loss)):
            return 0.0
        # An upper bound of the sum of (P(j) - exp(epsilon) P(-j))+ over the losses j (docs/mathematics.md, section 18):
        # the first masses are rounded up, and the second ones and their factor down.
        sums, slack = _compose(self, count), 2 * count
        factor = math.floor(exp_bracket(least_reading(budget))[0] * (1 << BITS)) if budget else 1 << BITS
        # The worst event holds all losses above epsilon. Both ends of the bracket nearly always agree on the first.
        low, high = log_bracket(self.ratio)
        spent = Fraction(least_reading(budget))
        over = [0]
        for first in range(math.floor(spent / high) + 1, min(math.floor(spent / low) + 1, count) + 1):
            likely = sums[-1] - sums[count + first] + (count - first + 1) * slack
            over.append((likely << BITS) - factor * sums[count - first + 1])
        return min(1.0, float_above(Fraction(max(over), 1 << (2 * BITS))))

    def epsilon(self, delta: float, *, releases: int = 1) -> float:
        """Return the least float epsilon for which `releases` releases are proven (epsilon, delta)-DP."""
        allowed = check_real(delta, "delta")
        if not 0 <= allowed <= 1:
            raise InvalidInput(f"delta is {allowed}, expected a number from 0 to 1")
        low, high = 0.0, float_above(check_integer(releases, "releases", 1) * Fraction(self.largest_loss))
        if self.delta(low, releases=releases) <= allowed:
            return low
        # Bisect until the ends are neighbouring floats. `high` is always a proven one.
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if self.delta(middle, releases=releases) <= allowed else (middle, high)
        return high

    def distribution(self, interval: float | None = None) -> Any:
        """Return the privacy loss distribution of `dp_accounting`, to be composed with others of the same interval.

        Parameters
        ----------
        interval : float, optional
            Discretisation, to whose multiples losses are rounded up. By default the largest loss, of which all losses
            are multiples, so that nothing is lost by rounding.
        """
        try:
            from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
        except ImportError as error:
            raise MissingExtra("this needs dp_accounting: pip install 'optrand[accounting]'") from error
        step = self.largest_loss if interval is None else check_real(interval, "interval")
        if step <= 0:
            raise InvalidInput(f"interval is {step}, expected a number above 0")
        # The float loss is a little above the exact one: the masses are those of the pair with that loss.
        least = float(self.mass * (self.ratio - 1)) / math.expm1(self.largest_loss)
        most = min(1.0, least * math.exp(self.largest_loss))
        steps = self.largest_loss / step
        masses: dict[int, float] = {0: max(0.0, 1 - least - most)}
        for place, mass in ((math.ceil(steps), most), (-math.floor(steps), least)):
            masses[place] = masses.get(place, 0.0) + mass
        return PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, step)


def _compare_ends(table: Table) -> Fraction | None:
    """Return the total variation of the first row and the last, or None unless every column first rises, then falls."""
    apart = 0
    for column in table.columns:
        falls = [step < 0 for _, step in column]
        if falls != sorted(falls):
            return None
        apart += max(0, -sum(step for y, step in column if y))
    return Fraction(apart, table.total)


def _find_total_variation(weights: Integers, total: int) -> Fraction:
    """Return the largest total variation of two rows: found in floats, computed in integers."""
    k, n = weights.shape
    shares = (weights / total).astype(np.float64)
    found = np.zeros((k, k))
    for y in range(k):
        for begin in range(y + 1, k, step := max(1, LARGEST // n)):
            rows = slice(begin, begin + step)
            found[y, rows] = np.abs(shares[rows] - shares[y]).sum(axis=1) / 2
    # A share is off by half a unit of 2**-53 at most, and so is every sum of them.
    most, error = float(found.max()), (n + 4) * 2.0**-51
    pairs = np.argwhere(found >= most - error)
    if len(pairs) > CANDIDATES:
        return Fraction(most) + Fraction(error)
    # Both rows have one total: the positive parts of their difference sum to half of its absolute value.
    exact = (int(np.maximum(weights[y] - weights[other], 0).sum()) for y, other in pairs.tolist())
    return Fraction(max(exact), total)


@lru_cache(maxsize=64)
def _compose(pair: DominatingPair, releases: int) -> list[int]:
    """Compute running sums, from 0, of the masses of the losses ``-n rho ... n rho`` in units of ``2**-BITS``.

    Each mass is too low by less than ``2 n`` units. Masses sum to at most 1, so products of some that are low by ``a``
    and ``b`` units are low by less than ``a + b + 1``.
    """
    chances = pair.mass, 1 - (pair.ratio + 1) * pair.mass, pair.ratio * pair.mass
    single = [math.floor(chance * (1 << BITS)) for chance in chances]
    result = single
    # Square and multiply along the binary digits of the number of releases.
    for digit in f"{releases:b}"[1:]:
        result = _multiply(result, result)
        if digit == "1":
            result = _multiply(result, single)
    return list(accumulate(result, initial=0))


def _multiply(left: list[int], right: list[int]) -> list[int]:
    """Multiply two polynomials, and round their coefficients down."""
    coefficients = (fmpz_poly(left) * fmpz_poly(right)).coeffs()
    # FLINT stores no zeros above the degree, and rounded masses of extreme losses may be 0.
    missing = len(left) + len(right) - 1 - len(coefficients)
    return [int(coefficient) >> BITS for coefficient in coefficients] + [0] * missing
