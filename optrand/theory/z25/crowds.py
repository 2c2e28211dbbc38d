r"""What becomes of ALIBI's soft labels with more and more classes ([Z25], Appendix B.2).

In the paper's example all labels are the same. The soft label of class ``c`` is :math:`x_c / \sum_{c'} x_{c'}` with
:math:`x_c = \exp(\epsilon \, \mathrm{clip}(o_c, 0, 1))`, and the :math:`x_c` are independent. Since :math:`1 / s =
\int_0^\infty e^{-t s} dt`, the mean of one is an integral of products of one-class means :math:`E[x^n e^{-t x}]`, for
any number of classes. Under the truth, the law of :math:`x` is that of the other classes times :math:`x e^{-\epsilon /
2}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product

import numpy as np

from optrand.baselines import Alibi
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst

__all__ = ["CLAIMS", "Crowd"]

ROUNDING = 1e-12
"""What floats are forgiven."""

INTEGRAL = 1e-8
"""What integrals are forgiven: their error grows with the number of classes, and is below this at 100,000."""

INNER = 160
"""Nodes of the noisy coordinate between 0 and 1."""

OUTER = 1_600
"""Nodes of the integral over `t`, evenly spread in its logarithm: the error falls exponentially with them."""

SMALLEST, LARGEST = -60.0, 6.0
"""Logarithms of ``K t`` between which the integrand is above rounding, up to epsilon 16."""


@dataclass(frozen=True)
class Crowd:
    """`k` classes, of which the first is the true one, and noise of scale ``2 / epsilon``.

    Parameters
    ----------
    k : int
        At least 2.
    epsilon : float

    Examples
    --------
    >>> round(Crowd(10, 1.0).truth, 6)
    0.11982
    """

    k: int
    epsilon: float

    @cached_property
    def truth(self) -> float:
        """The mean soft label of the true class."""
        nodes, weights = np.polynomial.legendre.leggauss(INNER)
        between = (nodes + 1) / 2
        density = weights / 2 * self.epsilon / 4 * np.exp(-self.epsilon * between / 2)
        masses = np.concatenate(([0.5], density, [0.5 * math.exp(-self.epsilon / 2)]))
        x = np.exp(self.epsilon * np.concatenate(([0.0], between, [1.0])))
        times = np.exp(np.linspace(SMALLEST, LARGEST, OUTER)) / self.k
        decay = np.exp(-np.outer(times, x))
        own, other = decay @ (masses * x**2) * math.exp(-self.epsilon / 2), decay @ masses
        step = (LARGEST - SMALLEST) / (OUTER - 1)
        return float((times * own * other ** (self.k - 1)).sum() * step)

    @property
    def posterior(self) -> float:
        """The largest posterior probability of a class that any epsilon-DP randomizer admits, under a uniform prior."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.epsilon))

    def __str__(self) -> str:
        return f"K = {self.k}, epsilon = {self.epsilon}"


def _crowds(budget: Budget) -> Iterator[Crowd]:
    sizes = budget.pick(quick=(2, 3, 10, 100, 1_000, 100_000), full=(2, 3, 4, 5, 7, 10, 30, 100, 300, 10**3, 10**5))
    epsilons = budget.pick(quick=(1.0, 0.1, 4.0, 10.0), full=(1.0, 0.01, 0.1, 0.5, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0))
    yield from (Crowd(k, epsilon) for k in sizes for epsilon in epsilons)


def _small_crowds(budget: Budget) -> Iterator[Crowd]:
    epsilons = budget.pick(quick=(1.0, 1e-6, 0.1, 4.0, 100.0), full=(1.0, 1e-6, 0.01, 0.1, 0.5, 2.0, 4.0, 9.0, 100.0))
    yield from (Crowd(k, epsilon) for k in budget.pick(quick=(2, 3, 4), full=(2, 3, 4, 5)) for epsilon in epsilons)


def noise_of_two_over_epsilon_is_private(crowd: Crowd) -> Comparison:
    """The one-hot vector with Laplace noise of scale ``lambda = 2 / epsilon`` on each coordinate is epsilon-DP.

    The logarithm of the ratio of two densities is piecewise linear in every coordinate and constant outside of 0 and 1,
    so that it is largest at such points.
    """
    return at_most(_spent(crowd, Fraction(Alibi(crowd.k, crowd.epsilon).scale)), crowd.epsilon, tolerance=ROUNDING)


def noise_of_one_over_epsilon_is_private(crowd: Crowd) -> Comparison:
    """The same with noise of scale ``1 / epsilon``: one coordinate forgotten."""
    return at_most(_spent(crowd, 1 / Fraction(crowd.epsilon)), crowd.epsilon, tolerance=ROUNDING)


def _spent(crowd: Crowd, scale: Fraction) -> Fraction:
    def distance(point: tuple[int, ...], y: int) -> int:
        return sum(abs(o - (j == y)) for j, o in enumerate(point))

    points = product((-1, 0, 1, 2), repeat=crowd.k)
    return max(distance(o, z) - distance(o, y) for o in points for y, z in permutations(range(crowd.k), 2)) / scale


def the_truth_decays_as_posteriors_do(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth decays nearly inversely with `K`, from ``1 / K`` up to ``exp(epsilon) / K``.

    More closely, it is between ``1 / K`` and ``exp(epsilon) / (exp(epsilon) + K - 1)``: no epsilon-DP randomizer admits
    a larger posterior probability, the paper's own included.
    """
    return worst(
        at_most(crowd.truth, crowd.posterior, tolerance=INTEGRAL),
        at_most(1 / crowd.k, crowd.truth, tolerance=INTEGRAL),
    )


def the_truth_decays_inversely(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth is 2 / `K` of what it is with two classes: inversely, without "nearly"."""
    return equal(crowd.truth * crowd.k, replace(crowd, k=2).truth * 2, tolerance=INTEGRAL)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="privacy",
        hypothesis="noise in real numbers, of scale 2 / epsilon: the paper refers to another one for it",
        instances=_small_crowds,
        printed=noise_of_two_over_epsilon_is_private,
        false=noise_of_one_over_epsilon_is_private,
    ),
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="decay",
        hypothesis='all labels are the same, a uniform prior, "nearly" up to a factor of exp(epsilon)',
        instances=_crowds,
        printed=the_truth_decays_as_posteriors_do,
        false=the_truth_decays_inversely,
    ),
)
