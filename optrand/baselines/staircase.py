"""The staircase mechanism, with noise in real numbers and in integers, and the best staircase of each kind."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, real
from optrand.base.validation import epsilon as checked_epsilon
from optrand.baselines.additive import ContinuousAdditive, uniforms
from optrand.baselines.lattice_additive import LatticeAdditive
from optrand.baselines.staircase_noise import ContinuousStaircase, LatticeStaircase
from optrand.errors import InvalidInput
from optrand.model.outputs import Interval
from optrand.sampling.discrete_noise import discrete_staircase
from optrand.sampling.entropy import EntropySource

__all__ = ["DiscreteStaircase", "Staircase", "best_gamma", "best_rise"]


@dataclass(frozen=True, init=False)
class Staircase(ContinuousAdditive):
    r"""The staircase mechanism ([GV14]; [B23], Definition 20), in floats: a baseline, not for a release.

    .. math:: M(y) = y + Z, \qquad h(z) = a e^{-\varepsilon (\lfloor |z| / \Delta \rfloor
              + [|z| \bmod \Delta \geq \gamma \Delta])},
              \quad a = \frac{1 - e^{-\varepsilon}}{2 \Delta (\gamma + e^{-\varepsilon} (1 - \gamma))}

    *Proof of privacy.* The exponent counts jumps at the distances :math:`(j + \gamma) \Delta` and :math:`(j + 1)
    \Delta`, :math:`j \geq 0`, of which the latter undo the former: it rises by one over each :math:`\Delta`. On one
    side of 0 two places at most :math:`\Delta` apart differ by at most one; on both sides their distances from 0 add up
    to at most :math:`\Delta`, and both exponents are 0 or 1. ∎

    Parameters
    ----------
    labels : Interval or (k,) array
        Where labels lie, or all of them.
    epsilon : float
        In nats.
    clip : Interval, optional
        Clip releases to it: less loss, and a bias.
    sensitivity : float, optional
        By default the range of the labels.
    gamma : float, optional
        The share of a stair that is on its upper level, strictly between 0 and 1; by default :func:`best_gamma`.

    Raises
    ------
    InvalidInput
        Arguments without meaning, or a sensitivity below the range of the labels.

    Examples
    --------
    Never worse than Laplace noise, and much better where epsilon is large:

    >>> from optrand.baselines.laplace import Laplace
    >>> variances = [kind([0, 1], 6.0).moments([0]).variance([1.0]) for kind in (Staircase, Laplace)]
    >>> [round(variance, 5) for variance in variances]
    [0.01411, 0.05556]
    """

    gamma: float

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        clip: Interval | None = None,
        sensitivity: float | None = None,
        gamma: float | None = None,
    ) -> None:
        super().__init__(labels, epsilon, clip=clip, sensitivity=sensitivity)
        share = best_gamma(self.epsilon) if gamma is None else real(gamma, "gamma")
        if not 0 < share < 1:
            raise InvalidInput(f"gamma is {share:g}, expected a share strictly between 0 and 1")
        object.__setattr__(self, "gamma", share)

    @property
    def noise(self) -> ContinuousStaircase:
        """Stairs as long as the sensitivity."""
        return ContinuousStaircase(self.epsilon, self.sensitivity, self.gamma)

    def _draw(self, count: int, source: EntropySource) -> Floats:
        """[GV14], Algorithm 1: a sign, a stair, a level of it, and a place on that level."""
        sign = np.where(uniforms(source, count) < 0.5, -1.0, 1.0)
        stair = np.floor(-np.log(uniforms(source, count)) / self.epsilon)
        place = uniforms(source, count)
        upper = self.gamma / (self.gamma + math.exp(-self.epsilon) * (1 - self.gamma))
        on_upper = uniforms(source, count) < upper
        within = np.where(on_upper, self.gamma * place, self.gamma + (1 - self.gamma) * place)
        noise: Floats = sign * (stair + within) * self.sensitivity
        return noise


def best_gamma(epsilon: float) -> float:
    r"""The share of the upper level that makes the variance of the staircase least.

    .. math:: \gamma = \frac{(b (1 + b) / 2)^{1/3} - b}{1 - b}, \qquad b = e^{-\varepsilon}

    Parameters
    ----------
    epsilon : float
        In nats.

    Returns
    -------
    float
        Below 1/2, its limit at 0; about ``exp(-epsilon / 3) / 2**(1 / 3)`` at large epsilon.

    Notes
    -----
    [GV14] prints :math:`-b / (1 - b) + (b - 2 b^2 + 2 b^4 - b^5)^{1/3} / (2^{1/3} (1 - b)^2)`, whose radicand is
    :math:`b (1 + b) (1 - b)^3`. It is evaluated without the difference of near numbers.

    Examples
    --------
    >>> round(best_gamma(1e-9), 6), round(best_gamma(1.0), 6)
    (0.5, 0.416737)
    """
    budget = checked_epsilon(epsilon)
    fall = -math.expm1(-budget)
    return math.exp(-budget) * math.expm1((2 * budget + math.log1p(-fall / 2)) / 3) / fall


@dataclass(frozen=True, init=False)
class DiscreteStaircase(LatticeAdditive):
    r"""The discrete staircase mechanism ([GV14]; [B23], Definition 19), drawn exactly.

    .. math:: M(y) = y + s Z, \qquad \Pr[Z = i] = a e^{-\varepsilon (\lfloor |i| / D \rfloor + [|i| \bmod D \geq r])},
              \quad a = \frac{1 - e^{-\varepsilon}}{2 r + 2 e^{-\varepsilon} (D - r) - (1 - e^{-\varepsilon})}

    with the step :math:`s` of the lattice that the labels are on and :math:`D = \Delta / s`. Private as
    :class:`Staircase` is. At ``D = 1`` it is the discrete Laplace mechanism.

    Parameters
    ----------
    labels : Interval or (k,) array
        Where labels lie, or all of them: whole steps from the lowest one.
    epsilon : float
        In nats; taken as the rational number that the float is.
    clip : Interval, optional
        Clip releases to it; its ends are on the lattice.
    sensitivity : float, optional
        By default the range of the labels; a whole number of steps.
    step : float
    rise : int, optional
        How many integers of a stair are on its upper level, :math:`r`, from 1 to ``D``; by default :func:`best_rise`.

    Raises
    ------
    InvalidInput
        Arguments without meaning, a sensitivity that is no whole number of steps, or labels off the lattice.

    Notes
    -----
    Fifteen to thirty-five microseconds a draw.

    Examples
    --------
    >>> import optrand
    >>> mechanism = DiscreteStaircase([0, 1, 2, 3], 3.0, clip=optrand.Interval(0, 3))
    >>> mechanism.rise
    1
    >>> problem = optrand.regression([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1], 3.0)
    >>> proof = optrand.certify(problem, mechanism.channel(problem.labels), optrand.solve(problem).dual)
    >>> round(proof.lower, 4), round(proof.upper, 4), proof.epsilon <= 3 + 1e-12
    (0.151, 0.2671, True)
    """

    rise: int

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        clip: Interval | None = None,
        sensitivity: float | None = None,
        step: float = 1.0,
        rise: int | None = None,
    ) -> None:
        super().__init__(labels, epsilon, clip=clip, sensitivity=sensitivity, step=step)
        if rise is None:
            rise = best_rise(self.epsilon, self.steps)
        if isinstance(rise, bool) or not isinstance(rise, Integral) or not 1 <= rise <= self.steps:
            raise InvalidInput(f"rise is {rise!r}, expected an integer from 1 to the {self.steps} step(s) of a stair")
        object.__setattr__(self, "rise", int(rise))

    @property
    def noise(self) -> LatticeStaircase:
        """Stairs as long as the sensitivity, in steps."""
        return LatticeStaircase(self.epsilon, self.steps, self.rise)

    def _draw(self, count: int, source: EntropySource) -> tuple[int, ...]:
        return discrete_staircase(Fraction(self.epsilon), count, sensitivity=self.steps, rise=self.rise, source=source)


def best_rise(epsilon: float, length: int) -> int:
    r"""The number of integers on the upper level that makes the variance of the discrete staircase least.

    Parameters
    ----------
    epsilon : float
        In nats.
    length : int
        Integers on a stair, at least 1.

    Returns
    -------
    int
        From 1 to `length`.

    Notes
    -----
    Raising the integer :math:`r` of every stair to the upper level adds mass whose mean square is
    :math:`(1 - e^{-\varepsilon}) \sum_j e^{-j \varepsilon} (r + j D)^2`, and the new variance is a mean of that and of
    the old one. The former grows with :math:`r`: once it is above the variance it stays above, so that the variance
    falls and then rises, and bisection finds where it is least.
    Cost ``O(log(length))``.

    Examples
    --------
    >>> [best_rise(epsilon, 52) for epsilon in (0.1, 1.0, 4.0)]
    [26, 22, 11]
    """
    budget = checked_epsilon(epsilon)
    if length < 1:
        raise InvalidInput(f"a stair of {length} integer(s), expected at least one")
    growth = 1 / math.expm1(budget)

    def enough(rise: int) -> bool:
        # The moments of a geometric number of stairs: its mean is `growth`.
        added = rise**2 + 2 * rise * length * growth + length**2 * growth * (1 + 2 * growth)
        return added >= LatticeStaircase(budget, length, rise).variance

    return 1 + bisect_left(range(1, length), True, key=enough)
