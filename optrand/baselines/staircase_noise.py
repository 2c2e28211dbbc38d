"""The staircase as a distribution: levels, stairs and their sums, of real numbers and of integers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from optrand.base.validation import Floats
from optrand.baselines.noise import Noise, geometric_sum, weighted_sum

__all__ = ["ContinuousStaircase", "LatticeStaircase"]


class _Staircase(Noise):
    """Two levels on each stair of a given length, the upper one as far as the jump; each stair is lower by one factor.

    Subclasses say how distances are measured: by length or by counting positive integers.
    """

    epsilon: float
    length: float

    @property
    @abstractmethod
    def jump(self) -> float:
        """Length of the upper level of a stair."""

    @property
    @abstractmethod
    def height(self) -> float:
        """The upper level of the first stair."""

    @abstractmethod
    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        """Sums of ``s`` and of ``s**2`` from 0 to the reach, where the density is at some level."""

    @property
    def factor(self) -> float:
        """Factor from one level to the next."""
        return math.exp(-self.epsilon)

    @property
    def variance(self) -> float:
        """Both sides of all stairs."""
        first, second = (float(value) for value in self._on_a_stair(np.array(self.length)))
        fall = -math.expm1(-self.epsilon)
        return 2 * (second / fall + 2 * self.length * first / math.expm1(self.epsilon) / fall)

    def between(self, low: Floats, high: Floats) -> Floats:
        """Probability in parts: the rest of the stair of `low`, whole stairs, and a part of the stair of `high`."""
        stairs = np.floor(low / self.length)
        start = low - stairs * self.length
        stop = np.minimum(high - stairs * self.length, self.length)
        # Starting again from 0 where the first stair ends.
        beyond = np.maximum(high - (stairs + 1) * self.length, 0.0)
        finite = np.where(np.isinf(beyond), 0.0, beyond)
        whole = np.where(np.isinf(beyond), np.inf, np.floor(finite / self.length))
        part = finite - np.floor(finite / self.length) * self.length
        later = self._level(0.0, self.length) * geometric_sum(whole, self.epsilon)
        later = later + np.exp(-self.epsilon * whole) * self._level(0.0, part)
        share: Floats = np.exp(-self.epsilon * stairs) * (self._level(start, stop) + self.factor * later)
        return share

    def capped(self, reach: Floats) -> tuple[Floats, Floats]:
        """A stair's own sums, repeated: ``min(Z+, t)`` moves on by one length where the tail falls by one factor."""
        whole = np.floor(reach / self.length)
        rest = reach - whole * self.length
        counted, weighted = geometric_sum(whole, self.epsilon), weighted_sum(whole, self.epsilon)
        first, second = self._on_a_stair(np.array(self.length))
        part, part_squared = self._on_a_stair(rest)
        fallen = np.exp(-self.epsilon * whole)
        mean = first * counted + fallen * part
        square = second * counted + 2 * self.length * first * weighted
        return mean, square + fallen * (part_squared + 2 * whole * self.length * part)

    def _level(self, low: Floats | float, high: Floats | float) -> Floats:
        """The probability between two places on the first stair."""
        upper = np.minimum(high, self.jump) - np.minimum(low, self.jump)
        level: Floats = self.height * (upper + self.factor * (high - low - upper))
        return level

    def _on_a_stair(self, reach: Floats) -> tuple[Floats, Floats]:
        """:meth:`capped` where the reach is at most one stair."""
        tail = self._level(reach, self.length) + self._level(0.0, self.length) / math.expm1(self.epsilon)
        lower = self.sums(reach, self.height * self.factor)
        upper = self.sums(np.minimum(reach, self.jump), self.height * -math.expm1(-self.epsilon))
        first, second = (a + b for a, b in zip(lower, upper, strict=True))
        return first + reach * tail, second + reach * reach * tail


@dataclass(frozen=True)
class ContinuousStaircase(_Staircase):
    """[B23], Definition 20: the upper level takes a share `gamma` of every stair."""

    epsilon: float
    length: float
    gamma: float

    @property
    def atom(self) -> float:
        """None."""
        return 0.0

    @property
    def jump(self) -> float:
        """A length."""
        return self.gamma * self.length

    @property
    def height(self) -> float:
        """``a(gamma)``."""
        return -math.expm1(-self.epsilon) / (2 * self.length * (self.gamma + self.factor * (1 - self.gamma)))

    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        """Integrals; lengths are not cubed, which may leave the range of floats."""
        share = level * reach
        return share * reach / 2, share * reach * reach / 3

    def density(self, distances: Floats) -> Floats:
        """Density by the definition."""
        whole, rest = np.divmod(np.abs(distances), self.length)
        density: Floats = self.height * np.exp(-self.epsilon * (whole + (rest >= self.jump)))
        return density


@dataclass(frozen=True)
class LatticeStaircase(_Staircase):
    """[B23], Definition 19: the upper level takes `rise` of the `length` integers of every stair, 0 among them."""

    epsilon: float
    length: int
    rise: int

    @property
    def jump(self) -> float:
        """A number of positive integers; their first stair ends with the first integer of the second."""
        return self.rise - 1

    @property
    def height(self) -> float:
        """``a(r)``, the probability of 0."""
        fall = -math.expm1(-self.epsilon)
        # 2 r + 2 b (length - r) - (1 - b), as a sum of positive terms.
        return fall / (2 * (self.rise - 1) + 2 * self.factor * (self.length - self.rise) + 1 + self.factor)

    @property
    def atom(self) -> float:
        """The probability of 0."""
        return self.height

    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        """Sums over 1, 2, ..., reach."""
        first = level * reach * (reach + 1) / 2
        return first, first * (2 * reach + 1) / 3

    def density(self, distances: Floats) -> Floats:
        """Density by the definition."""
        whole, rest = np.divmod(np.abs(distances), self.length)
        density: Floats = self.height * np.exp(-self.epsilon * (whole + (rest >= self.rise)))
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
        """Counts of integers."""
        return super().between(np.floor(low), np.floor(high))
