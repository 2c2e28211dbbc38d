r"""Symmetric noise in closed form: what falls between two distances, and the moments of what is left after capping.

With :math:`Z^+ = \max(Z, 0)` the mean and the variance of a clipped release need just

.. math:: R(t) = E[\min(Z^+, t)], \qquad Q(t) = E[\min(Z^+, t)^2],

once for each end. Every kind falls by a constant factor over each period, so that its sums and integrals are those of
one period times a geometric sum. Every formula here is a sum of positive terms, so that no digits are lost at small or
at large epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import special

from optrand.base.validation import Floats

__all__ = ["DiscreteLaplaceNoise", "LaplaceNoise", "Noise", "geometric_sum", "weighted_sum"]

DIRECT = 0.25
"""Above this ``1 / (exp(x) - 1) - 1 / x`` loses no digits; below it a few terms of its series give all of them."""

SERIES = (1 / 47900160, -1 / 1209600, 1 / 30240, -1 / 720, 1 / 12)
"""Bernoulli numbers ``B_2m / (2m)!`` for m = 5, ..., 1."""


def geometric_sum(count: Floats, rate: float) -> Floats:
    """The sum of ``exp(-rate * i)`` over ``0 <= i < count``; the count may be infinite.

    Examples
    --------
    >>> geometric_sum(np.array([3.0]), math.log(2)).tolist()
    [1.75]
    """
    total: Floats = np.expm1(-rate * count) / math.expm1(-rate)
    return total


def weighted_sum(count: Floats, rate: float) -> Floats:
    """The sum of ``i * exp(-rate * i)`` over ``0 <= i < count``.

    It is :func:`geometric_sum` times ``1 / (exp(x) - 1) - n / (exp(n x) - 1)``; the two poles at 0 cancel and are taken
    out beforehand.

    Examples
    --------
    >>> weighted_sum(np.array([3.0]), math.log(2)).round(12).tolist()
    [1.0]
    """
    mean = _without_pole(np.array(rate)) - count * _without_pole(rate * count)
    return geometric_sum(count, rate) * mean


def _without_pole(x: Floats) -> Floats:
    """``1 / (exp(x) - 1) - 1 / x`` for ``x >= 0``."""
    near = np.minimum(x, DIRECT)
    series = -0.5 + near * np.polyval(SERIES, near * near)
    far = np.maximum(x, DIRECT)
    value: Floats = np.where(x < DIRECT, series, np.exp(-far) / -np.expm1(-far) - 1 / far)
    return value


class Noise(ABC):
    """A distribution around 0 that is the same on both sides."""

    @property
    @abstractmethod
    def atom(self) -> float:
        """The probability of 0."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of one draw."""

    @abstractmethod
    def density(self, distances: Floats) -> Floats:
        """The density at each distance; of noise in integers the probability of it."""

    @abstractmethod
    def between(self, low: Floats, high: Floats) -> Floats:
        """``Pr[low < Z <= high]`` for ``0 <= low <= high``, each digit of it right; `high` may be infinite."""

    @abstractmethod
    def capped(self, reach: Floats) -> tuple[Floats, Floats]:
        """``E[min(Z+, t)]`` and ``E[min(Z+, t)**2]`` for ``t >= 0``."""

    def mass(self, low: Floats, high: Floats) -> Floats:
        """The probability between any two numbers, ``low < high``; of noise in integers, halfway between integers."""
        mirrored = high <= 0
        low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
        around = low < 0
        nearer = self.between(np.where(around, 0.0, low), high)
        other = self.between(np.zeros_like(low), np.where(around, -low, 0.0))
        mass: Floats = nearer + np.where(around, other + self.atom, 0.0)
        return mass


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Density ``exp(-abs(z) / scale) / (2 scale)``."""

    scale: float

    @property
    def atom(self) -> float:
        """None."""
        return 0.0

    @property
    def variance(self) -> float:
        """Twice the squared scale."""
        return 2 * self.scale * self.scale

    def density(self, distances: Floats) -> Floats:
        """Density by the formula."""
        density: Floats = np.exp(-np.abs(distances) / self.scale) / (2 * self.scale)
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
        """Its integral."""
        share: Floats = np.exp(-low / self.scale) * -np.expm1((low - high) / self.scale) / 2
        return share

    def capped(self, reach: Floats) -> tuple[Floats, Floats]:
        """Integrals of ``Pr[Z > s]`` and of ``2 s Pr[Z > s]`` up to the reach; the latter is an incomplete gamma."""
        x = reach / self.scale
        # The square of the scale may be no float where that of the reach is one, and an incomplete gamma may vanish.
        near = reach * reach / 2 * special.hyp1f1(2, 3, -np.minimum(x, 1.0))
        far = self.scale * self.scale * special.gammainc(2, np.maximum(x, 1.0))
        return -self.scale / 2 * np.expm1(-x), np.where(x < 1, near, far)


@dataclass(frozen=True)
class DiscreteLaplaceNoise(Noise):
    """Probability ``tanh(rate / 2) * exp(-rate * abs(z))`` of every integer ``z``."""

    rate: float

    @property
    def atom(self) -> float:
        """The probability of 0."""
        return math.tanh(self.rate / 2)

    @property
    def variance(self) -> float:
        """``2 q / (1 - q)**2`` with ``q = exp(-rate)``."""
        half = math.sinh(self.rate / 2)
        return 1 / (2 * half) / half

    @property
    def _positive(self) -> float:
        """``Pr[Z >= 1]``."""
        return math.exp(-self.rate) / (1 + math.exp(-self.rate))

    def density(self, distances: Floats) -> Floats:
        """Density by the formula."""
        density: Floats = self.atom * np.exp(-self.rate * np.abs(distances))
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
        """A geometric sum."""
        low, high = np.floor(low), np.floor(high)
        share: Floats = self._positive * np.exp(-self.rate * low) * -np.expm1(-self.rate * (high - low))
        return share

    def capped(self, reach: Floats) -> tuple[Floats, Floats]:
        """Sums of ``Pr[Z >= j]`` and of ``(2 j - 1) Pr[Z >= j]`` up to the reach, an integer."""
        counted, weighted = geometric_sum(reach, self.rate), weighted_sum(reach, self.rate)
        return self._positive * counted, self._positive * (counted + 2 * weighted)
