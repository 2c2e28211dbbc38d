r"""From nearly feasible to feasible, exactly: mixed with two outputs that take back what rows and means are off.

Let a table have columns within the ratio :math:`R`, rows that sum to :math:`t_y` and means :math:`\mu_y = \sum_i T_{yi}
v_i`, nearly 1 and nearly :math:`y`. Keep a share :math:`\omega < 1` of it, and give two allowed outputs :math:`a < b`
what is missing,

.. math:: u_y + w_y = 1 - \omega t_y, \qquad a u_y + b w_y = y - \omega \mu_y .

Rows and means are then right whatever :math:`\omega` is; and as long as :math:`u` and :math:`w` are positive and within
the ratio :math:`R`, all of it is private. That is so for some :math:`\omega` unless the outputs leave no room at all:
as :math:`1 - \omega` grows, :math:`u` and :math:`w` become those of the randomizer that answers :math:`a` or :math:`b`
only, the one of widest range ([B23], Claim 8). What it costs is its own loss, computed like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from optrand.exact import float_above, float_below

__all__ = ["Completion"]

ZERO = Fraction(0)

REACH = Fraction(3, 2)
"""On the line the two outputs lie so much further out than they must."""


@dataclass(frozen=True)
class Completion:
    """Two outputs, and the chances of each label to get them.

    Attributes
    ----------
    kept : Fraction
        The share of the given table.
    low, high : float
        The outputs.
    at_low, at_high : list of Fraction
        Their probabilities, one a label.

    Examples
    --------
    >>> rows, means = [Fraction(1)] * 2, [Fraction(1, 10**6), Fraction(1)]
    >>> found = Completion.of((-math.inf, math.inf), [Fraction(0), Fraction(1)], rows, means, Fraction(3))
    >>> found.kept < 1, [found.low * u + found.high * w + found.kept * mean for u, w, mean in
    ...                  zip(found.at_low, found.at_high, means)] == [0, 1]
    (True, True)
    """

    kept: Fraction
    low: float
    high: float
    at_low: list[Fraction]
    at_high: list[Fraction]

    @classmethod
    def of(
        cls,
        ends: tuple[float, float],
        labels: list[Fraction],
        rows: list[Fraction],
        means: list[Fraction],
        ratio: Fraction,
        *,
        origin: Fraction = ZERO,
        monotone: bool = False,
    ) -> Completion | None:
        """The one that keeps the most, within a factor of 8; None where the allowed outputs leave no room.

        Parameters
        ----------
        ends : pair of float
            The two outputs; infinite where they may be chosen here.
        labels, rows, means : lists of Fraction
            What the means should be, and what the rows and means of the table are, outputs less the origin.
        ratio : Fraction
            Above 1.
        origin : Fraction
        monotone : bool
            Whether chances must not fall (or not rise) with the label, so that they are sums of interval columns.
        """
        width = max(labels) - min(labels) or abs(labels[0]) or Fraction(1)
        off = max(max(abs(1 - row), abs(y - mean) / width) for y, row, mean in zip(labels, rows, means, strict=True))
        # A power of two.
        doublings = max(0, off.denominator.bit_length() - off.numerator.bit_length() - 1) if off else 1022
        while True:
            share = Fraction(1, 1 << doublings)
            found = cls._keeping(1 - share, ends, labels, rows, means, ratio, origin)
            if found is not None and found.is_private(ratio) and not (monotone and not found.is_monotone()):
                return found
            if not doublings:
                return None
            doublings = max(0, doublings - 3)

    @classmethod
    def _keeping(
        cls,
        kept: Fraction,
        ends: tuple[float, float],
        labels: list[Fraction],
        rows: list[Fraction],
        means: list[Fraction],
        ratio: Fraction,
        origin: Fraction,
    ) -> Completion | None:
        missing = [1 - kept * row for row in rows]
        if min(missing) <= 0:
            return None
        moments = [y - kept * mean for y, mean in zip(labels, means, strict=True)]
        low, high = ends
        if not math.isfinite(low):
            wanted = [moment / part for moment, part in zip(moments, missing, strict=True)]
            middle, half = (min(wanted) + max(wanted)) / 2, (max(wanted) - min(wanted)) / 2
            half = REACH * half * (ratio + 1) / (ratio - 1) or abs(middle) or Fraction(1)
            low, high = float_below(origin + middle - half), float_above(origin + middle + half)
        if not (math.isfinite(low) and low < high < math.inf):
            return None
        a, b = Fraction(low) - origin, Fraction(high) - origin
        at_high = [(moment - a * part) / (b - a) for moment, part in zip(moments, missing, strict=True)]
        at_low = [part - chance for part, chance in zip(missing, at_high, strict=True)]
        return cls(kept, low, high, at_low, at_high)

    def is_private(self, ratio: Fraction) -> bool:
        """Whether all chances are positive, and those of an output within the ratio."""
        return all(min(chances) > 0 and max(chances) <= ratio * min(chances) for chances in (self.at_low, self.at_high))

    def is_monotone(self) -> bool:
        """Whether a higher label is at least as likely to get the high output, and at most as likely the low one."""
        rising = all(before <= after for before, after in pairwise(self.at_high))
        return rising and all(before >= after for before, after in pairwise(self.at_low))
