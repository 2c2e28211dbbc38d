r"""Mixtures: of a nearly unbiased table with two outputs that take out its biases exactly, and of two mechanisms.

Keep a share :math:`\omega < 1` of a table within the ratio :math:`R` whose means are :math:`\mu_y \approx y`, and let
the rest answer one of two allowed outputs :math:`a < b` with

.. math:: u_y + w_y = 1 - \omega, \qquad a u_y + b w_y = y - \omega \mu_y .

All means are right, and all of it is private while :math:`u` and :math:`w` are positive and within the ratio, as they
are for some :math:`\omega` unless the outputs are too narrow (``docs/mathematics.md``, section 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optrand.base._arithmetic import float_above, float_below
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.model._table import Table


@dataclass(frozen=True)
class Completion:
    """Two outputs, and their probabilities for each label, as integers over one unit.

    Attributes
    ----------
    kept : Fraction
        Share of the given table.
    low, high : float
        The outputs.
    at_low, at_high : list of int
        Their probabilities times `unit`, one per label.
    unit : int
    """

    kept: Fraction
    low: float
    high: float
    at_low: list[int]
    at_high: list[int]
    unit: int

    @classmethod
    def of(
        cls,
        ends: tuple[float, float],
        labels: list[Fraction],
        means: list[Fraction],
        ratio: Fraction,
        *,
        origin: Fraction = Fraction(0),
        monotone: bool = False,
    ) -> Completion | None:
        """Return the first completion that is private; None if the allowed outputs are too narrow.

        Infinite `ends` are chosen here. `labels` and `means`, the right means and the given ones, are measured from the
        origin, which `ends` are not. If it is `monotone`, probabilities do not fall (or do not rise) with the label, so
        that they are sums of interval columns.

        The share of the two outputs is tried in powers of two, from about the largest bias relative to the range of the
        labels, each time eight times as much, up to all.
        """
        # In integers of one unit: sums of fractions would look for common divisors at each step.
        scale = math.lcm(*(x.denominator for x in [*labels, *means]))
        right = [int(y * scale) for y in labels]
        missing = [y - int(mean * scale) for y, mean in zip(right, means, strict=True)]
        off = Fraction(max(map(abs, missing)), max(right) - min(right) or abs(right[0]) or scale)
        # The share of the two outputs is 2**-doublings.
        doublings = max(0, off.denominator.bit_length() - off.numerator.bit_length() - 1) if off else 1022
        while True:
            more = (1 << doublings) - 1
            wanted = [y + more * lack for y, lack in zip(right, missing, strict=True)]
            found = cls._sharing(doublings, ends, wanted, scale, ratio, origin)
            if found is not None and found.is_private(ratio) and not (monotone and not found.is_monotone()):
                return found
            if not doublings:
                return None
            doublings = max(0, doublings - 3)

    @classmethod
    def _sharing(
        cls,
        doublings: int,
        ends: tuple[float, float],
        wanted: list[int],
        scale: int,
        ratio: Fraction,
        origin: Fraction,
    ) -> Completion | None:
        """Return the completion whose two outputs have a given share, and means ``wanted / scale`` over that share."""
        low, high = ends
        if not math.isfinite(low):
            lowest, highest = Fraction(min(wanted), scale), Fraction(max(wanted), scale)
            middle, half = (lowest + highest) / 2, (highest - lowest) / 2
            # At (ratio + 1) / (ratio - 1) times the half range of the means the chances would be at the ratio itself.
            # Half as far again leaves them inside it.
            half = Fraction(3, 2) * half * (ratio + 1) / (ratio - 1) or abs(middle) or Fraction(1)
            low, high = float_below(origin + middle - half), float_above(origin + middle + half)
        if not (math.isfinite(low) and low < high < math.inf):
            return None
        a, b = Fraction(low) - origin, Fraction(high) - origin
        finer = math.lcm(scale, a.denominator, b.denominator)
        bottom, top = int(a * finer), int(b * finer)
        means = [finer // scale * mean for mean in wanted]
        # The mean m of the two outputs has probability (m - a) / (b - a) at b.
        at_low, at_high = [top - mean for mean in means], [mean - bottom for mean in means]
        share = Fraction(1, 1 << doublings)
        return cls(1 - share, low, high, at_low, at_high, (top - bottom) << doublings)

    def is_private(self, ratio: Fraction) -> bool:
        """Return whether all probabilities are positive, and those of an output within the ratio."""
        return all(min(chances) > 0 and max(chances) <= ratio * min(chances) for chances in (self.at_low, self.at_high))

    def is_monotone(self) -> bool:
        """Return whether a higher label is at least as likely to get the high output, and no likelier the low one."""
        rising = all(before <= after for before, after in pairwise(self.at_high))
        return rising and all(before >= after for before, after in pairwise(self.at_low))

    def mix(self, table: Table) -> Table:
        """Mix the table in, whose means are those that were given."""
        common = math.gcd(*self.at_low, *self.at_high)
        rows = [[u // common, w // common] for u, w in zip(self.at_low, self.at_high, strict=True)]
        ends = Table.of_rows(table.labels, [self.low, self.high], rows)
        # Weights of both become probabilities times the same number.
        share, other = self.kept / table.total, Fraction(common, self.unit)
        return table.combine(ends, share / other)


def mixture(first: Mechanism, second: Mechanism, weight: float) -> Mechanism:
    r"""Draw from `second` with a probability near `weight`, else from `first`, by a public coin.

    Masses are :math:`A C_j` and :math:`B C'_j` with :math:`B T' / (A T + B T') \approx w` for small integers ``A, B``
    and the totals :math:`T, T'` of the two. Privacy and unbiasedness are linear: no column gains a ratio above the
    larger of the two, and rows of equal totals add up to rows of equal totals. The problem and the dual are those of
    `first`, which must allow the outputs of `second`.

    Raises
    ------
    InvalidInput
        Other labels, or a weight that is not between 0 and 1.
    """
    if not np.array_equal(first.labels, second.labels):
        raise InvalidInput("the two mechanisms have other labels: make them for the same problem")
    if not 0 < weight < 1:
        raise InvalidInput(f"weight is {weight:g}, expected a probability between 0 and 1")
    # From A T / (B T') = (1 - w) / w.
    odds = Fraction(second.total, first.total) * (1 / Fraction(weight) - 1)
    # Masses gain as many digits as the two integers have, of which the smaller is at most 1,024.
    ratio = odds.limit_denominator(1 << 10) if odds >= 1 else 1 / (1 / odds).limit_denominator(1 << 10)
    table = first.table.combine(second.table, ratio)
    return Mechanism(first.problem, table, first.dual)
