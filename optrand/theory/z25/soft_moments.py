r"""Means and variances of ALIBI's soft labels, by one integral each, for any number of classes.

The soft label of class ``c`` is :math:`x_c / \sum_{c'} x_{c'}` with :math:`x_c = \exp(\epsilon \, \mathrm{clip}(o_c, 0,
1))`, and the :math:`x_c` are independent. Since :math:`1 / s = \int_0^\infty e^{-t s} dt`, and likewise :math:`1 / s^2`
with a factor `t`, a mean over all classes is an integral of products of one-class means :math:`B_n(t) = E[x^n e^{-t
x}]`. Under the truth, the law of :math:`x` is that of the other classes times :math:`x e^{-\epsilon / 2}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.validation import Floats

__all__ = ["SoftMoments"]

INNER = 160
"""Nodes of the noisy coordinate between 0 and 1."""

OUTER = 1_600
"""Nodes of the integral over `t`, evenly spread in its logarithm: the error falls exponentially with them."""

SMALLEST, LARGEST = -60.0, 6.0
"""Logarithms of ``K t`` between which the integrand is above rounding."""


@dataclass(frozen=True)
class SoftMoments:
    """Of the soft labels of a record of class 1 among `k` classes, with noise of scale ``2 / epsilon``.

    Parameters
    ----------
    k : int
        At least 2.
    epsilon : float

    Examples
    --------
    >>> moments = SoftMoments(10, 1.0)
    >>> round(moments.truth, 6), round(moments.truth + 9 * moments.other, 12)
    (0.11982, 1.0)
    """

    k: int
    epsilon: float

    @property
    def truth(self) -> float:
        """The mean soft label of the true class."""
        return self._integral(self._true(1) * self._means[0] ** (self.k - 1))

    @property
    def other(self) -> float:
        """The mean soft label of each other class."""
        return self._integral(self._true(0) * self._means[1] * self._means[0] ** (self.k - 2))

    @property
    def separation(self) -> float:
        """How far the two are apart in standard deviations of their difference.

        A model that averages the soft labels of `N` records takes one class for the other with a probability that is
        about that of a normal variable beyond ``separation * sqrt(N)``.
        """
        distance = self.truth - self.other
        rest = self._means[0] ** (self.k - 2)
        square = self._true(2) * self._means[0] - 2 * self._true(1) * self._means[1] + self._true(0) * self._means[2]
        return distance / math.sqrt(self._integral(self._times * square * rest) - distance**2)

    @property
    def limit(self) -> float:
        r"""What the separation tends to with `k`, when the sum of all :math:`x_c` is as good as certain.

        With :math:`r = e^{\epsilon / 2}` the moments of :math:`x` are, of another class, ``r``, ``(1 + 2 r**3) / 3``
        and ``(2 + 3 r**5) / 5``; each of the truth's is the next one of these over ``r``.
        """
        r = math.exp(self.epsilon / 2)
        second, third = (1 + 2 * r**3) / 3, (2 + 3 * r**5) / 5
        return (second / r - r) / math.sqrt(third / r - (second / r) ** 2 + second - r**2)

    @property
    def as_high(self) -> float:
        """The expected number of other classes whose noisy coordinate is at least that of the truth."""
        return (self.k - 1) * (1 + self.epsilon / 4) * math.exp(-self.epsilon / 2) / 2

    @cached_property
    def _times(self) -> Floats:
        return np.exp(np.linspace(SMALLEST, LARGEST, OUTER)) / self.k

    @cached_property
    def _means(self) -> list[Floats]:
        """``B_0`` to ``B_3`` at all times."""
        nodes, weights = np.polynomial.legendre.leggauss(INNER)
        between = (nodes + 1) / 2
        density = weights / 2 * self.epsilon / 4 * np.exp(-self.epsilon * between / 2)
        x = np.exp(self.epsilon * np.concatenate(([0.0], between, [1.0])))
        masses = np.concatenate(([0.5], density, [0.5 * math.exp(-self.epsilon / 2)]))
        decay = np.exp(-np.outer(self._times, x))
        return [decay @ (masses * x**n) for n in range(4)]

    def _true(self, n: int) -> Floats:
        """``E[x^n e^{-t x}]`` of the truth."""
        return self._means[n + 1] * math.exp(-self.epsilon / 2)

    def _integral(self, values: Floats) -> float:
        step = (LARGEST - SMALLEST) / (OUTER - 1)
        return float((values * self._times).sum() * step)
