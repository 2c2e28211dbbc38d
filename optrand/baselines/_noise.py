r"""Symmetric noise, real or integer: densities, moments in closed form, and draws.

Every density falls by a constant factor over each period, so its sums and integrals are those of one period times a
geometric sum. Every formula here is a sum of positive terms: no digits are lost at small or at large epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

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


class _Stairs(ABC):
    """Noise with two levels on each stair of a given length, the upper one first. Successive stairs have one ratio.

    Subclasses define how distances are measured: by length or by counting positive integers.
    """

    epsilon: float | Fraction
    length: float

    @property
    def rate(self) -> float:
        """Epsilon as a float, rounded down."""
        return float_below(Fraction(self.epsilon))

    @property
    @abstractmethod
    def upper(self) -> float:
        """Distance at which the first stair drops to its lower level."""

    @property
    @abstractmethod
    def height(self) -> float:
        """The upper level of the first stair."""

    @abstractmethod
    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        """Integrate or sum ``s`` and ``s**2`` from 0 to the reach, times a level of the density."""

    @property
    def jump(self) -> float:
        """Length of the upper level of a stair, in the measure of the distances."""
        return self.upper

    @property
    def factor(self) -> float:
        """Factor from one level to the next."""
        return math.exp(-self.rate)

    @property
    def variance(self) -> float:
        # Both sides. Stair i contributes the moments of the first one, shifted by i lengths: geometric series in i.
        first, second = (float(value) for value in self._on_a_stair(np.array(self.length)))
        fall = -math.expm1(-self.rate)
        return 2 * (second / fall + 2 * self.length * first / math.expm1(self.rate) / fall)

    def density(self, distances: Floats) -> Floats:
        whole, rest = np.divmod(np.abs(distances), self.length)
        density: Floats = self.height * np.exp(-self.rate * (whole + (rest >= self.upper)))
        return density

    def between(self, low: Floats, high: Floats) -> Floats:
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
        lower = self.sums(reach, self.height * self.factor)
        upper = self.sums(np.minimum(reach, self.jump), self.height * -math.expm1(-self.rate))
        first, second = (a + b for a, b in zip(lower, upper, strict=True))
        return first + reach * tail, second + reach * reach * tail


@dataclass(frozen=True)
class ContinuousStaircase(_Stairs):
    """[B23], Definition 20: the upper level takes a share `gamma` of every stair."""

    epsilon: float
    length: float
    gamma: float
    atom: ClassVar[float] = 0.0

    @property
    def upper(self) -> float:
        return self.gamma * self.length

    @property
    def height(self) -> float:
        return -math.expm1(-self.rate) / (2 * self.length * (self.gamma + self.factor * (1 - self.gamma)))

    def draw(self, count: int, source: EntropySource) -> Floats:
        """Draw a sign, a stair, a level, and a position on it ([GV14], Algorithm 1)."""
        signs = _draw_signs(source, count)
        # A geometric number, as the whole part of an exponential one.
        stair = np.floor(-np.log(draw_uniforms(source, count)) / self.rate)
        place = draw_uniforms(source, count)
        upper = self.gamma / (self.gamma + self.factor * (1 - self.gamma))
        is_upper = draw_uniforms(source, count) < upper
        within = np.where(is_upper, self.gamma * place, self.gamma + (1 - self.gamma) * place)
        noise: Floats = signs * (stair + within) * self.length
        return noise

    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        return level * reach**2 / 2, level * reach**3 / 3


@dataclass(frozen=True)
class LatticeStaircase(_Stairs):
    """[B23], Definition 19: the upper level takes `rise` of the `length` integers of every stair, 0 among them.

    With stairs of one integer it is discrete Laplace noise of the rate `epsilon`. A float stands for its decimal.
    """

    epsilon: float | Fraction
    length: int
    rise: int

    @property
    def upper(self) -> float:
        return self.rise

    @property
    def jump(self) -> float:
        """Positive integers of a stair on the upper level. Counted from 1, a stair ends with the next one's first."""
        return self.rise - 1

    @property
    def height(self) -> float:
        """``a(r)``, the probability of 0."""
        fall = -math.expm1(-self.rate)
        # 2 r + 2 b (length - r) - (1 - b), as a sum of positive terms.
        return fall / (2 * (self.rise - 1) + 2 * self.factor * (self.length - self.rise) + 1 + self.factor)

    @property
    def atom(self) -> float:
        return self.height

    def draw(self, count: int, source: EntropySource) -> tuple[int, ...]:
        budget = self.epsilon if isinstance(self.epsilon, Fraction) else decimal_value(self.epsilon)
        return discrete_staircase(budget, count, sensitivity=self.length, rise=self.rise, source=source)

    def sums(self, reach: Floats, level: float) -> tuple[Floats, Floats]:
        first = level * reach * (reach + 1) / 2
        return first, first * (2 * reach + 1) / 3

    def between(self, low: Floats, high: Floats) -> Floats:
        return super().between(np.floor(low), np.floor(high))


Noise = LaplaceNoise | ContinuousStaircase | LatticeStaircase
"""Distribution that is symmetric about 0. The methods of :class:`LaplaceNoise` say what those of all kinds do."""


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
        return added >= LatticeStaircase(epsilon, length, rise).variance

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
