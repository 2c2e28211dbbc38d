r"""Symmetric noise, real or integer: densities, moments in closed form, and draws.

Every density falls by a constant factor over each period, so its sums and integrals are those of one period times a
geometric sum. Every formula here is a sum of positive terms: no digits are lost at small or at large epsilon.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from scipy import special

from optrand.base._arithmetic import decimal_value, float_below
from optrand.base._validation import Floats
from optrand.sampling._discrete_noise import discrete_staircase
from optrand.sampling._entropy import EntropySource, check_width, check_words

Drawn = Sequence[int] | Floats
"""Noise in its own unit: integers of any size, or floats."""


@dataclass(frozen=True)
class LaplaceNoise:
    """Density ``exp(-abs(z) / scale) / (2 scale)``."""

    scale: float
    atom: ClassVar[float] = 0.0  # probability of 0, which only noise in integers has

    @property
    def variance(self) -> float:
        return 2 * self.scale * self.scale

    def draw(self, count: int, source: EntropySource) -> Floats:
        """Draw a sign, and a size by inversion of the distribution function."""
        noise: Floats = -self.scale * _draw_signs(source, count) * np.log(draw_uniforms(source, count))
        return noise

    def density(self, distances: Floats) -> Floats:
        """Compute the density, or for integers the probability, at each distance."""
        density: Floats = np.exp(-np.abs(distances) / self.scale) / (2 * self.scale)
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
        """Compute ``Pr[low < Z <= high]`` for ``0 <= low <= high`` to full precision. `high` may be infinite."""
        share: Floats = np.exp(-low / self.scale) * -np.expm1((low - high) / self.scale) / 2
        return share

    def cap_moments(self, reach: Floats) -> tuple[Floats, Floats]:
        """Compute ``E[min(Z+, t)]`` and ``E[min(Z+, t)**2]`` for ``t >= 0``."""
        # Integrals of Pr[Z > s] and 2 s Pr[Z > s] up to the reach. The latter is an incomplete gamma.
        x = reach / self.scale
        return -self.scale / 2 * np.expm1(-x), self.scale**2 * special.gammainc(2, x)


@dataclass(frozen=True)
class StaircaseNoise:
    """Noise with two levels on each stair, the upper one first. Each stair is lower than the one before by one factor.

    [B23], Definition 20, over the reals, or Definition 19 over the integers, 0 among those of the first upper level.
    Stairs of one integer are discrete Laplace noise of the rate `epsilon`. A float epsilon stands for its decimal.
    """

    epsilon: float | Fraction
    length: float  # of a stair
    upper: float  # length of its upper level
    grain: Literal[0, 1]  # distance of two values: 1 over the integers, 0 over the reals

    @property
    def rate(self) -> float:
        """Epsilon as a float, rounded down."""
        return float_below(Fraction(self.epsilon))

    @property
    def factor(self) -> float:
        """Factor from one level to the next."""
        return math.exp(-self.rate)

    @property
    def jump(self) -> float:
        """Length of the first stair's upper level, over the integers without 0."""
        # Integers are counted from 1, so that the first one of the next stair counts with this stair's lower level.
        return self.upper - self.grain

    @property
    def height(self) -> float:
        """The upper level of the first stair, over the integers the probability of 0."""
        fall = -math.expm1(-self.rate)
        return fall / (2 * (self.jump + self.factor * (self.length - self.jump)) + self.grain * fall)

    @property
    def atom(self) -> float:
        return self.grain * self.height

    @property
    def variance(self) -> float:
        # Both sides. Stair i contributes the moments of the first one, shifted by i lengths: geometric series in i.
        first, second = (float(value) for value in self._on_a_stair(np.array(self.length)))
        fall = -math.expm1(-self.rate)
        return 2 * (second / fall + 2 * self.length * first / math.expm1(self.rate) / fall)

    def draw(self, count: int, source: EntropySource) -> Drawn:
        """Draw a sign, a stair, a level, and a position on it ([GV14], Algorithm 1), over the integers exactly."""
        if self.grain:
            budget = self.epsilon if isinstance(self.epsilon, Fraction) else decimal_value(self.epsilon)
            return discrete_staircase(budget, count, sensitivity=int(self.length), rise=int(self.upper), source=source)
        signs = _draw_signs(source, count)
        # A geometric number, as the whole part of an exponential one.
        stair = np.floor(-np.log(draw_uniforms(source, count)) / self.rate)
        place = draw_uniforms(source, count)
        lower = self.length - self.upper
        is_upper = draw_uniforms(source, count) < self.upper / (self.upper + self.factor * lower)
        within = np.where(is_upper, self.upper * place, self.upper + lower * place)
        noise: Floats = signs * (stair * self.length + within)
        return noise

    def density(self, distances: Floats) -> Floats:
        whole, rest = np.divmod(np.abs(distances), self.length)
        density: Floats = self.height * np.exp(-self.rate * (whole + (rest >= self.upper)))
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
        if self.grain:
            low, high = np.floor(low), np.floor(high)
        # The rest of the stair of `low`, whole stairs, and a part of the stair of `high`.
        stairs = np.floor(low / self.length)
        start = low - stairs * self.length
        stop = np.minimum(high - stairs * self.length, self.length)
        # Count again from 0 where the first stair ends.
        beyond = np.maximum(high - (stairs + 1) * self.length, 0.0)
        finite = np.where(np.isinf(beyond), 0.0, beyond)
        whole = np.where(np.isinf(beyond), np.inf, np.floor(finite / self.length))
        part = finite - np.floor(finite / self.length) * self.length
        later = self._level(0.0, self.length) * _geometric_sum(whole, self.rate)
        later = later + np.exp(-self.rate * whole) * self._level(0.0, part)
        share: Floats = np.exp(-self.rate * stairs) * (self._level(start, stop) + self.factor * later)
        return share

    def cap_moments(self, reach: Floats) -> tuple[Floats, Floats]:
        # Whole stairs, each lower than the one before by one factor, and the part of a last one.
        whole = np.floor(reach / self.length)
        rest = reach - whole * self.length
        counted, weighted = _geometric_sum(whole, self.rate), _weighted_sum(whole, self.rate)
        first, second = self._on_a_stair(np.array(self.length))
        part, part_squared = self._on_a_stair(rest)
        fallen = np.exp(-self.rate * whole)
        mean = first * counted + fallen * part
        square = second * counted + 2 * self.length * first * weighted
        return mean, square + fallen * (part_squared + 2 * whole * self.length * part)

    def _level(self, low: Floats | float, high: Floats | float) -> Floats:
        upper = np.minimum(high, self.jump) - np.minimum(low, self.jump)
        level: Floats = self.height * (upper + self.factor * (high - low - upper))
        return level

    def _on_a_stair(self, reach: Floats) -> tuple[Floats, Floats]:
        """Compute :meth:`cap_moments` for a reach of at most one stair."""
        # Beyond the reach min(Z+, t) is the reach, with the mass of the rest of the stair and of all later ones.
        tail = self._level(reach, self.length) + self._level(0.0, self.length) / math.expm1(self.rate)
        # The lower level everywhere, and the excess of the upper one.
        lower = self._sums(reach, self.height * self.factor)
        upper = self._sums(np.minimum(reach, self.jump), self.height * -math.expm1(-self.rate))
        first, second = (a + b for a, b in zip(lower, upper, strict=True))
        return first + reach * tail, second + reach * reach * tail

    def _sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        """Integrate or sum ``s`` and ``s**2`` from 0 to the reach, times a level of the density."""
        first = level * reach * (reach + self.grain) / 2
        return first, first * (2 * reach + self.grain) / 3


Noise = LaplaceNoise | StaircaseNoise
"""Distribution that is symmetric about 0. Methods of both are documented at :class:`LaplaceNoise`."""


def compute_mass(noise: Noise, low: Floats, high: Floats) -> Floats:
    """Compute the probability between ``low < high``, which are halves of odd integers for noise in integers."""
    # Reflect intervals below 0. An interval around 0 has two parts and the atom.
    mirrored = high <= 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    around = low < 0
    nearer = noise.between(np.where(around, 0.0, low), high)
    other = noise.between(np.zeros_like(low), np.where(around, -low, 0.0))
    mass: Floats = nearer + np.where(around, other + noise.atom, 0.0)
    return mass


def best_gamma(epsilon: float) -> float:
    r"""Compute the share of the upper level that minimises the variance of the staircase.

    .. math:: \gamma = \frac{(b (1 + b) / 2)^{1/3} - b}{1 - b}, \qquad b = e^{-\varepsilon}

    It is below 1/2, its limit at 0, and about ``exp(-epsilon / 3) / 2**(1 / 3)`` at large epsilon. [GV14] prints the
    same in a form that loses digits by cancellation.
    """
    fall = -math.expm1(-epsilon)
    return math.exp(-epsilon) * math.expm1((2 * epsilon + math.log1p(-fall / 2)) / 3) / fall


def best_rise(epsilon: float, length: int) -> int:
    r"""Compute the number of integers on the upper level that minimises the variance of the discrete staircase.

    Raising the integer :math:`r` of every stair to the upper level adds mass whose mean square is
    :math:`(1 - e^{-\varepsilon}) \sum_j e^{-j \varepsilon} (r + j D)^2`, and the new variance is a mean of that and of
    the old one. The former grows with :math:`r`: once it is above the variance it stays above, so that the variance
    falls and then rises. Bisection finds the minimum in ``O(log(length))`` steps.
    """
    growth = 1 / math.expm1(epsilon)

    def is_enough(rise: int) -> bool:
        # The moments of a geometric number of stairs, whose mean is `growth`.
        added = rise**2 + 2 * rise * length * growth + length**2 * growth * (1 + 2 * growth)
        return added >= StaircaseNoise(epsilon, length, rise, 1).variance

    return 1 + bisect_left(range(1, length), True, key=is_enough)


def draw_uniforms(source: EntropySource, count: int) -> Floats:
    """Draw floats strictly between 0 and 1, each from at least 53 bits, the length of a significand."""
    width = check_width(source)
    each = -(-53 // width)
    words = check_words(source, each * count).reshape(count, each).astype(np.float64)
    drawn = np.ldexp(words, -width * np.arange(1, each + 1)).sum(axis=1)
    # Rounding may give 1, or 0, whose logarithm is infinite.
    inside: Floats = np.clip(drawn, 2.0**-54, 1 - 2.0**-53)
    return inside


def _draw_signs(source: EntropySource, count: int) -> Floats:
    return np.where(draw_uniforms(source, count) < 0.5, -1.0, 1.0)


def _geometric_sum(count: Floats, rate: float) -> Floats:
    """Sum ``exp(-rate * i)`` over ``0 <= i < count``. The count may be infinite."""
    total: Floats = np.expm1(-rate * count) / math.expm1(-rate)
    return total


def _weighted_sum(count: Floats, rate: float) -> Floats:
    """Sum ``i * exp(-rate * i)`` over ``0 <= i < count``."""
    # The geometric sum times 1 / (exp(x) - 1) - n / (exp(n x) - 1), whose poles at 0 cancel and are removed.
    mean = _without_pole(np.array(rate)) - count * _without_pole(rate * count)
    return _geometric_sum(count, rate) * mean


def _without_pole(x: Floats) -> Floats:
    """Compute ``1 / (exp(x) - 1) - 1 / x`` for ``x >= 0``."""
    value: Floats = special.hyp1f1(2, 3, -x) / (-2 * special.exprel(-x))
    return value
