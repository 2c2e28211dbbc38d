r"""Excess risk of nearest neighbours that vote with bits, in one dimension, without a draw.

Each neighbour votes :math:`Z(1) - Z(2)`, which is -1, 0 or 1. The law of the sum is the Fourier transform of a product
of characteristic functions, taken at ``2 k + 1`` points: that is exact, as the sum has so many values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats

__all__ = ["Records", "Votes", "neighbours_of"]

PLACES = 100
"""Where the excess risk is computed: in the middle of so many parts of the unit interval."""

LEFT, RIGHT = 1.0, 2.0
"""Slopes of the probability of the first class on both sides of where it is 1/2: unequal, so that distance misleads."""


@dataclass(frozen=True)
class Records:
    """Records evenly spread on the unit interval, and bits instead of labels.

    Parameters
    ----------
    size : int
        The number of records.
    epsilon : float
    """

    size: int
    epsilon: float

    @property
    def k(self) -> int:
        """The number of neighbours."""
        return neighbours_of(self.size, self.epsilon)

    @property
    def places(self) -> Floats:
        """Where the records are."""
        places: Floats = (np.arange(self.size) + 0.5) / self.size
        return places


@dataclass(frozen=True)
class Votes(Records):
    """Records of which the first class has probability 1/2 in the middle, less to the left, more to the right.

    Examples
    --------
    >>> votes = Votes(256, 1.0)
    >>> votes.k, round(votes.excess, 4)
    (40, 0.0437)
    """

    @cached_property
    def excess(self) -> float:
        """The probability of naming a class, less the least there is; equal votes are for the first class."""
        places = (np.arange(PLACES) + 0.5) / PLACES
        nearest = np.argsort(np.abs(self.places - places[:, np.newaxis]), axis=1, kind="stable")[:, : self.k]
        eta, second = _firsts(places), self._seconds(_firsts(self.places[nearest]))
        return float((np.abs(2 * eta - 1) * np.where(eta >= 0.5, second, 1 - second)).mean())

    def _seconds(self, firsts: Floats) -> Floats:
        """The probability that the second class is named, from those of the first at all neighbours: a row a place."""
        right = 1 / (1 + math.exp(-self.epsilon / 2))
        up = firsts * right**2 + (1 - firsts) * (1 - right) ** 2
        down = (1 - firsts) * right**2 + firsts * (1 - right) ** 2
        count = 2 * self.k + 1
        turn = np.exp(2j * np.pi * np.arange(count) / count)
        transform = np.ones((firsts.shape[0], count), dtype=np.complex128)
        for rise, fall in zip(up.T[:, :, np.newaxis], down.T[:, :, np.newaxis], strict=True):
            transform *= (1 - rise - fall) + rise * turn + fall / turn
        chances = np.fft.fft(transform, axis=1).real / count
        seconds: Floats = chances[:, self.k + 1 :].sum(axis=1)
        return seconds

    def __str__(self) -> str:
        return f"N = {self.size}, epsilon = {self.epsilon}, k = {self.k}"


def neighbours_of(size: int, epsilon: float) -> int:
    """The number of neighbours in one dimension: ``(N / epsilon)**(2/3)``, as the paper has it, rounded.

    Examples
    --------
    >>> neighbours_of(1_000, 1.0)
    100
    """
    return round(math.pow(size / epsilon, 2 / 3))


def _firsts(places: Floats) -> Floats:
    """The probability of the first class."""
    steps = places - 0.5
    chances: Floats = np.clip(0.5 + np.where(steps > 0, RIGHT, LEFT) * steps, 0, 1)
    return chances
