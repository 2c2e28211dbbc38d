"""Multipliers of neighbouring labels that the columns in use do not separate: each has bounds, their sum is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.model._randomizer import Indices

Numbers = NDArray[Any]
"""In floats or in extended precision."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Multipliers as positions between their bounds, from 0 to 1, with given sums over groups of neighbours.

    Attributes
    ----------
    starts : (m,) array of int
        First label of each group.
    lowest, widths : (k,) arrays
        Lower bound of each label's multiplier, and how far above it the upper bound is.
    sums : (m,) array
        Sum over each group by which multipliers must exceed their lower bounds.

    Examples
    --------
    >>> two = Positions(
    ...     np.array([0, 2]), np.zeros(3), np.array([1.0, 3.0, 2.0]), np.array([2.0, 1.0])
    ... )
    >>> two.even().tolist(), two.place(np.array([1.0, 0.0, 0.0])).round(3).tolist()
    ([0.5, 0.5, 0.5], [1.0, 0.333, 0.5])
    """

    starts: Indices
    lowest: Numbers
    widths: Numbers
    sums: Numbers

    def multipliers(self, position: Numbers) -> Numbers:
        """Return the multipliers of some positions."""
        multipliers: Numbers = self.lowest + self.widths * position
        return multipliers

    def lacking(self, position: Numbers) -> Numbers:
        """Return by how much the sum of each group falls short."""
        lacking: Numbers = self.sums - self._total(self.widths * position)
        return lacking

    def even(self) -> Numbers:
        """Return one position for all labels of a group."""
        return self.balance(self.spread(divide(self.sums, self._total(self.widths))))

    def place(self, multipliers: Numbers) -> Numbers:
        """Return positions near those of some multipliers."""
        return self.balance(divide(multipliers - self.lowest, self.widths))

    def balance(self, position: Numbers) -> Numbers:
        """Move positions between 0 and 1 so that each group has its sum."""
        position = np.clip(position, 0.0, 1.0)
        # Labels that meet a bound leave the rest of the sum to the others, in the next one of a few rounds.
        for _ in range(8):
            # All labels of a group that meet no bound move by the same share of their widths.
            lacking = self.lacking(position)
            free = np.where(self.spread(lacking) > 0, position < 1, position > 0)
            moved = position + free * self.spread(divide(lacking, self._total(self.widths * free)))
            position = np.clip(moved, 0.0, 1.0)
            if np.array_equal(moved, position):
                break
        return position

    def spread(self, amounts: Numbers) -> Numbers:
        """Repeat the amount of each group at its labels."""
        return np.repeat(amounts, np.diff(np.append(self.starts, self.lowest.size)))

    def share_equally(self, amounts: Numbers) -> Numbers:
        """Divide the amount of each group among its labels."""
        return self.spread(amounts / self._total(np.ones_like(self.lowest)))

    def _total(self, amounts: Numbers) -> Numbers:
        totals: Numbers = np.add.reduceat(amounts, self.starts)
        return totals


def divide(above: Numbers, below: Numbers) -> Numbers:
    """Divide, with 0 as the quotient of any number by 0."""
    ratio: Numbers = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return ratio
