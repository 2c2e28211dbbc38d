r"""From nearly unbiased to unbiased, exactly: mixed with two outputs that take back what the means are off.

Let a table have columns within the ratio :math:`R`, rows that sum to 1, and means :math:`\mu_y` that are nearly
:math:`y`. Keep a share :math:`\omega < 1` of it, and let the rest answer one of two allowed outputs :math:`a < b` so
that

.. math:: u_y + w_y = 1 - \omega, \qquad a u_y + b w_y = y - \omega \mu_y .

All means are then right whatever :math:`\omega` is; and as long as :math:`u` and :math:`w` are positive and within the
ratio :math:`R`, all of it is private. That is so for some :math:`\omega` unless the outputs leave no room at all: as
:math:`\omega` falls, :math:`u` and :math:`w` become those of the randomizer that answers :math:`a` or :math:`b` only.
What it costs is its own loss, computed like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from optrand.base.arithmetic import float_above, float_below
from optrand.model.problem import Problem

__all__ = ["Completion"]

ZERO = Fraction(0)

REACH = Fraction(3, 2)
"""On the line the two outputs lie so many times as far from the middle of the means as they must."""


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
    >>> means = [Fraction(1, 10**6), Fraction(1)]
    >>> found = Completion.of((-math.inf, math.inf), [Fraction(0), Fraction(1)], means, Fraction(3))
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
        means: list[Fraction],
        ratio: Fraction,
        *,
        origin: Fraction = ZERO,
        monotone: bool = False,
    ) -> Completion | None:
        """The first that is private; None where the allowed outputs leave no room.

        The share of the two outputs is tried in powers of two: first about what the means are off, relative to the
        range of the labels, then each time eight times as much, at last all.

        Parameters
        ----------
        ends : pair of float
            The two outputs; infinite where they may be chosen here.
        labels, means : lists of Fraction
            What the means should be, and what they are, less the origin.
        ratio : Fraction
            Above 1.
        origin : Fraction
            From where labels and means are measured; `ends` are not.
        monotone : bool
            Whether chances must not fall (or not rise) with the label, so that they are sums of interval columns.
        """
        width = max(labels) - min(labels) or abs(labels[0]) or Fraction(1)
        off = max(abs(y - mean) / width for y, mean in zip(labels, means, strict=True))
        # The share of the two outputs is 2**-doublings.
        doublings = max(0, off.denominator.bit_length() - off.numerator.bit_length() - 1) if off else 1022
        while True:
            found = cls._sharing(Fraction(1, 1 << doublings), ends, labels, means, ratio, origin)
            if found is not None and found.is_private(ratio) and not (monotone and not found.is_monotone()):
                return found
            if not doublings:
                return None
            doublings = max(0, doublings - 3)

    @classmethod
    def of_biases(cls, problem: Problem, biases: list[Fraction], ratio: Fraction) -> Completion | None:
        """The first that is private and takes out the biases of a table; None where the problem leaves no room."""
        middle = Fraction(float(problem.labels[problem.k // 2]))
        labels = [Fraction(y) - middle for y in problem.labels.tolist()]
        means = [y + bias for y, bias in zip(labels, biases, strict=True)]
        return cls.of((problem.outputs.low, problem.outputs.high), labels, means, ratio, origin=middle)

    @classmethod
    def _sharing(
        cls,
        share: Fraction,
        ends: tuple[float, float],
        labels: list[Fraction],
        means: list[Fraction],
        ratio: Fraction,
        origin: Fraction,
    ) -> Completion | None:
        """The one that gives two outputs a share of all."""
        wanted = [y + (1 / share - 1) * (y - mean) for y, mean in zip(labels, means, strict=True)]
        low, high = ends
        if not math.isfinite(low):
            middle, half = (min(wanted) + max(wanted)) / 2, (max(wanted) - min(wanted)) / 2
            half = REACH * half * (ratio + 1) / (ratio - 1) or abs(middle) or Fraction(1)
            low, high = float_below(origin + middle - half), float_above(origin + middle + half)
        if not (math.isfinite(low) and low < high < math.inf):
            return None
        a, b = Fraction(low) - origin, Fraction(high) - origin
        at_high = [share * (mean - a) / (b - a) for mean in wanted]
        return cls(1 - share, low, high, [share - chance for chance in at_high], at_high)

    def is_private(self, ratio: Fraction) -> bool:
        """Whether all chances are positive, and those of an output within the ratio."""
        return all(min(chances) > 0 and max(chances) <= ratio * min(chances) for chances in (self.at_low, self.at_high))

    def is_monotone(self) -> bool:
        """Whether a higher label is at least as likely to get the high output, and at most as likely the low one."""
        rising = all(before <= after for before, after in pairwise(self.at_high))
        return rising and all(before >= after for before, after in pairwise(self.at_low))
