r"""Gaussian noise in the space of all labels' gradients ([G21], Algorithm 6 and Proposition 11).

What a Gaussian does to two points at distance :math:`\Delta` is known exactly (Balle and Wang (2018), Theorem 8): with
:math:`\mu = \Delta / \sigma` it is :math:`(\epsilon, \delta)`-DP if and only if

.. math:: \Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \, \Phi(-\mu / 2 - \epsilon / \mu) \leq \delta.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np
from scipy.special import ndtr

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.descent import Descent, Outcome, rate, with_gaussian_noise
from optrand.theory.g21.gradients import Gradients
from optrand.theory.g21.learning import FLOATS, UNNAMED

__all__ = ["CLAIMS", "CLASSICAL", "delta_of_gaussian"]

CLASSICAL = 2 * math.sqrt(2)
"""The constant `C` at which Dwork and Roth (2014), Theorem A.1, proves the corrected form: the distance is ``2 L``."""


def delta_of_gaussian(distance: float, sigma: float, epsilon: float) -> float:
    """The least `delta` with which Gaussian noise hides two points at a distance.

    Examples
    --------
    >>> round(delta_of_gaussian(2.0, 1.0, 0.0), 6)
    0.682689
    """
    mu = distance / sigma
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@dataclass(frozen=True)
class _Budget:
    """A constant `C` and a budget; `delta` by what it is short of 1."""

    constant: float
    epsilon: float
    short: float

    def __str__(self) -> str:
        delta = f"1 - {self.short:.4g}" if self.short < 0.1 else f"{1 - self.short:.4g}"
        return f"C = {self.constant:.6g}, epsilon = {self.epsilon:.6g}, delta = {delta}"

    @property
    def delta(self) -> float:
        """As a float."""
        return 1 - self.short

    @property
    def logarithm(self) -> float:
        """``log(1 / delta)``."""
        return -math.log1p(-self.short)

    def noise(self, logarithm: float) -> float:
        """``C L sqrt(logarithm) / epsilon`` at `L = 1`."""
        return self.constant * math.sqrt(logarithm) / self.epsilon

    def reached(self, sigma: float) -> float:
        """The least `delta` at which gradients of norm 1 are hidden."""
        return delta_of_gaussian(2.0, sigma, self.epsilon)


def _budgets(budget: Budget) -> Iterator[_Budget]:
    for constant, epsilon in itertools.product((CLASSICAL, 10.0, 100.0, 1000.0), (0.99, 0.5, 0.1, 0.01)):
        for short in (0.99, 0.9, 0.5, 0.1, 0.01, 0.001):
            yield _Budget(constant, epsilon, short)
        for power in (3, 5, 9, 12):
            yield _Budget(constant, epsilon, 1 - 10.0**-power)
        yield _Budget(constant, epsilon, (epsilon / (10 * constant)) ** 2)
    random = Random(12)  # noqa: S311
    for _ in range(budget.pick(quick=300, full=30_000)):
        yield _Budget(CLASSICAL * random.uniform(1, 3), random.uniform(0.001, 0.999), random.random())


def noise_by_log_of_inverse_is_enough(given: _Budget) -> Comparison:
    """For a constant `C` and any epsilon and delta below 1, noise ``C L sqrt(log(1 / delta)) / epsilon`` is enough.

    No `C` is: as delta tends to 1 the noise vanishes, and what it reaches tends to 1 much faster than delta does.
    """
    return at_most(given.reached(given.noise(given.logarithm)), given.delta, tolerance=FLOATS)


def noise_by_classical_logarithm_is_enough(given: _Budget) -> Comparison:
    """The same with ``log(1.25 / delta)``, from ``C = 2 sqrt(2)`` on."""
    return at_most(given.reached(given.noise(given.logarithm + math.log(1.25))), given.delta, tolerance=FLOATS)


def half_the_classical_noise_is_enough(given: _Budget) -> Comparison:
    """The same with ``log(1.25 / delta)`` and half that noise, as if gradients differed by at most `L`."""
    return at_most(given.reached(given.noise(given.logarithm + math.log(1.25)) / 2), given.delta, tolerance=FLOATS)


def _gradients(budget: Budget) -> Iterator[Gradients]:
    yield Gradients(((Fraction(1),), (Fraction(-1),)), Fraction(2))
    random = Random(13)  # noqa: S311
    for _ in range(budget.pick(quick=200, full=5_000)):
        k, size = random.randint(2, 6), random.randint(1, 9)
        vectors = [tuple(Fraction(random.randint(-2, 2)) for _ in range(size)) for _ in range(k)]
        yield Gradients(tuple(random.choice(vectors) for _ in range(k)), Fraction(2))


def gradients_are_near(given: Gradients) -> Comparison:
    """Gradients of two labels are at a distance of at most ``2 L``.

    Compared are the squares.
    """
    return at_most(_largest_distance(given), 4 * given.squared_lipschitz)


def gradients_are_nearer(given: Gradients) -> Comparison:
    """They are at a distance of at most ``sqrt(2) L``, as orthogonal ones are."""
    return at_most(_largest_distance(given), 2 * given.squared_lipschitz)


def _largest_distance(given: Gradients) -> Fraction:
    pairs = itertools.combinations(given.vectors, 2)
    return max(sum(((x - y) ** 2 for x, y in zip(*pair, strict=True)), Fraction(0)) for pair in pairs)


def projected_noise_is_small(given: Gradients) -> Comparison:
    """The gradient and the projected noise have a mean square of at most ``L**2 + K sigma**2``, in any dimension.

    At ``sigma = L``; the mean square of the noise is that times the trace of the projection.
    """
    return _mean_square(given, project=True)


def plain_noise_is_small(given: Gradients) -> Comparison:
    """The same without the projection."""
    return _mean_square(given, project=False)


def _mean_square(given: Gradients, *, project: bool) -> Comparison:
    square = float(given.squared_lipschitz)
    gradients = np.array([[float(entry) for entry in vector] for vector in given.vectors])
    span = np.linalg.pinv(gradients) @ gradients if project else np.eye(gradients.shape[1])
    return at_most(square * (1 + float(np.square(span).sum())), square * (1 + given.k), tolerance=FLOATS)


@dataclass(frozen=True)
class _Learning:
    """Algorithm 6 on an interval; `delta` by what it is short of 1."""

    descent: Descent
    budget: _Budget

    def __str__(self) -> str:
        return f"{self.descent}, {self.budget}"

    def _outcome(self, logarithm: float) -> Outcome:
        return with_gaussian_noise(self.descent, self.descent.lipschitz * self.budget.noise(logarithm))

    @cached_property
    def as_printed(self) -> Outcome:
        """The excess risk with the printed noise."""
        return self._outcome(self.budget.logarithm)

    @cached_property
    def as_corrected(self) -> Outcome:
        """The excess risk with noise that is enough."""
        return self._outcome(self.budget.logarithm + math.log(1.25))

    def bound(self, logarithm: float) -> float:
        """``D L sqrt(K logarithm) log(n) / (epsilon sqrt(n))``."""
        return math.sqrt(len(self.descent.law) * logarithm) / self.budget.epsilon * rate(self.descent)


def _learnings(budget: Budget) -> Iterator[_Learning]:
    two, three = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.6, 0.2, 0.2))
    for steps, (centres, law), short in itertools.product((2, 8, 64), (two, three), (1e-6, 0.5, 0.99999)):
        yield _Learning(Descent(centres, law, steps), _Budget(CLASSICAL, 0.99, short))
        yield _Learning(Descent(centres, law, steps, diameter=3.0, lipschitz=2.0), _Budget(CLASSICAL, 0.1, short))
    for power, (centres, law) in itertools.product(range(8, budget.pick(quick=11, full=17), 2), (two, three)):
        yield _Learning(Descent(centres, law, 2**power), _Budget(CLASSICAL, 0.99, 0.99999))
    yield _Learning(Descent((0.0, 1.0), (1.0, 0.0), 2**9), _Budget(CLASSICAL, 0.1, 0.99999))


def excess_is_bounded(learning: _Learning) -> Comparison:
    """Algorithm 6 is ``O(D L sqrt(K log(1 / delta)) log(n) / (epsilon sqrt(n)))`` from the least risk.

    The constant that is tried is 1. As delta tends to 1 the right side vanishes and the left does not: no constant is
    enough.
    """
    return at_most(learning.as_printed.surely, learning.bound(learning.budget.logarithm), tolerance=FLOATS)


def excess_is_bounded_with_classical_noise(learning: _Learning) -> Comparison:
    """The same with ``log(1.25 / delta)``, there and in the noise."""
    bound = learning.bound(learning.budget.logarithm + math.log(1.25))
    return at_most(learning.as_corrected.surely, bound, tolerance=FLOATS)


def excess_is_that_without_noise(learning: _Learning) -> Comparison:
    """The same without ``sqrt(K log(1.25 / delta)) / epsilon``: noise that is enough costs nothing."""
    return at_most(learning.as_corrected.surely, rate(learning.descent), tolerance=FLOATS)


CLAIMS = (
    Claim(
        paper="G21",
        number="Proposition 11",
        part="privacy",
        hypothesis="gradients of norm at most L, epsilon and delta between 0 and 1",
        instances=_budgets,
        printed=noise_by_log_of_inverse_is_enough,
        corrected=noise_by_classical_logarithm_is_enough,
        false=half_the_classical_noise_is_enough,
    ),
    Claim(
        paper="G21",
        number="Proposition 11",
        part="sensitivity",
        hypothesis="gradients of norm at most L",
        instances=_gradients,
        printed=gradients_are_near,
        false=gradients_are_nearer,
    ),
    Claim(
        paper="G21",
        number="Proposition 11",
        part="mean square",
        hypothesis="gradients of norm at most L",
        instances=_gradients,
        printed=projected_noise_is_small,
        false=plain_noise_is_small,
    ),
    Claim(
        paper="G21",
        number="Proposition 11",
        part="rate",
        hypothesis="convex L-Lipschitz loss, diameter D, epsilon and delta between 0 and 1, its steps, n above 1",
        instances=_learnings,
        printed=excess_is_bounded,
        corrected=excess_is_bounded_with_classical_noise,
        false=excess_is_that_without_noise,
        quantifier=UNNAMED,
    ),
)
