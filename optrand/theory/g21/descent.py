r"""Gradient descent on an interval with noisy labels, and Gaussian noise instead ([G21], Algorithms 5 and 6).

One dimension is enough for the rates of [G21], and small enough to be exact: of a few steps all sequences of noisy
labels are followed with their probabilities. Of many steps many descents are drawn, with a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.gradients import Gradients, bounded_gradients
from optrand.theory.instances import Instance, seeded

__all__ = ["Descent", "Outcome", "delta_of_gaussian", "rate", "with_gaussian_noise", "with_responses"]

Indices = NDArray[np.intp]

MOST_PATHS = 5_000
"""Up to so many sequences of noisy labels are followed, all of them; beyond, descents are drawn."""

FLOATS = 1e-12
"""What the means of descents are forgiven beside their standard errors."""

UNNAMED = "the constant is not named, and all convex losses and distributions are meant"

CLASSICAL = 2 * math.sqrt(2)
"""The constant `C` at which Dwork and Roth (2014), Theorem A.1, proves the corrected form: the distance is ``2 L``."""

LOGARITHM = math.log(1.25)
"""What is added to ``log(1 / delta)`` where it is corrected."""


class Outcome(Instance):
    """A mean, and its standard error: 0 where all that can happen was followed."""

    mean: float
    error: float = 0.0

    @property
    def surely(self) -> float:
        """Lower bound of the mean: five standard errors below it."""
        return self.mean - 5 * self.error


class Descent(Instance, centres="losses L abs(w - D c) with c", diameter="D", lipschitz="L", steps="n"):
    """Labels of some law with losses ``lipschitz * abs(w - diameter * c)``, and so many steps from the diameter."""

    centres: tuple[float, ...]
    law: tuple[float, ...]
    steps: int
    diameter: float = 1.0
    lipschitz: float = 1.0

    def losses(self, w: Floats) -> Floats:
        """Losses at points, shape (points, labels)."""
        losses: Floats = self.lipschitz * np.abs(w[:, np.newaxis] - self.diameter * np.array(self.centres))
        return losses

    def excess(self, w: Floats) -> Floats:
        """Excess risk at points: the least risk is at one of the centres."""
        risk: Floats = self.losses(w) @ np.array(self.law)
        least = (self.losses(self.diameter * np.array(self.centres)) @ np.array(self.law)).min()
        return risk - float(least)

    def gradients(self, w: Floats) -> Floats:
        """Gradients at points, shape (points, labels); at a centre, that of the upper side."""
        above = w[:, np.newaxis] >= self.diameter * np.array(self.centres)
        return np.where(above, self.lipschitz, -self.lipschitz)

    def moved(self, w: Floats, towards: Floats) -> Floats:
        """Points after a step, put back where they left the interval."""
        return np.clip(w - towards, 0.0, self.diameter)


def rate(descent: Descent) -> float:
    """``D L log(n) / sqrt(n)``."""
    return descent.diameter * descent.lipschitz * math.log(descent.steps) / math.sqrt(descent.steps)


def with_responses(descent: Descent, table: Floats, epsilon: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    r"""Mean excess risk of [G21], Algorithm 5, with randomized response on the labels that a table can give.

    Of `table`, a row a label, columns of zeros are labels that are not kept. With `k` labels kept the estimate is eq.
    (7) for these, and the steps are :math:`D \epsilon / (6 k L \sqrt t)`.
    """
    kept = np.flatnonzero(table.any(axis=0))
    noisy = (np.array(descent.law) @ table)[kept]
    noisy /= noisy.sum()
    size = math.expm1(epsilon) + kept.size
    first = descent.diameter * epsilon / (6 * kept.size * descent.lipschitz)

    def step(w: Floats, labels: Indices, t: int) -> Floats:
        own = descent.gradients(w)[:, kept]
        drawn = np.take_along_axis(own, labels[:, np.newaxis], axis=1)[:, 0]
        estimate = (drawn - own.sum(axis=1) / size) * size / math.expm1(epsilon)
        return descent.moved(w, first / math.sqrt(t) * estimate)

    if kept.size**descent.steps <= MOST_PATHS:
        return _followed(descent, noisy, step)
    random = np.random.default_rng(seed)
    below = noisy.cumsum()[:-1]
    return _drawn(descent, lambda w, t: step(w, below.searchsorted(random.random(runs)), t), runs)


def with_gaussian_noise(descent: Descent, sigma: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    r"""Mean excess risk of [G21], Algorithm 6: the gradient, and Gaussian noise in the space of all labels' gradients.

    That space is the whole line. The steps are :math:`D / \sqrt{(L^2 + K \sigma^2) t}`.
    """
    random = np.random.default_rng(seed)
    moment = math.hypot(descent.lipschitz, math.sqrt(len(descent.law)) * sigma)
    below = np.cumsum(descent.law)[:-1]

    def step(w: Floats, t: int) -> Floats:
        labels = below.searchsorted(random.random(runs))
        gradient = np.take_along_axis(descent.gradients(w), labels[:, np.newaxis], axis=1)[:, 0]
        estimate = gradient + sigma * random.standard_normal(runs)
        return descent.moved(w, descent.diameter / (moment * math.sqrt(t)) * estimate)

    return _drawn(descent, step, runs)


def _followed(descent: Descent, noisy: Floats, step: Callable[[Floats, Indices, int], Floats]) -> Outcome:
    """Outcome of all sequences of noisy labels."""
    w, chances = np.array([descent.diameter]), np.ones(1)
    for t in range(1, descent.steps + 1):
        labels = np.tile(np.arange(noisy.size), w.size)
        w = step(np.repeat(w, noisy.size), labels, t)
        chances = np.repeat(chances, noisy.size) * np.tile(noisy, chances.size)
    return Outcome(float(chances @ descent.excess(w)))


def _drawn(descent: Descent, step: Callable[[Floats, int], Floats], runs: int) -> Outcome:
    """Outcome of many descents side by side."""
    w = np.full(runs, descent.diameter)
    for t in range(1, descent.steps + 1):
        w = step(w, t)
    excess = descent.excess(w)
    return Outcome(float(excess.mean()), float(excess.std(ddof=1) / math.sqrt(runs)))


def delta_of_gaussian(distance: float, sigma: float, epsilon: float) -> float:
    r"""Least `delta` with which Gaussian noise hides two points at a distance (Balle and Wang, 2018, Theorem 8).

    .. math:: \Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \, \Phi(-\mu / 2 - \epsilon / \mu), \mu = \Delta / \sigma

    Examples
    --------
    >>> round(delta_of_gaussian(2.0, 1.0, 0.0), 6)
    0.682689
    """
    mu = distance / sigma
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


class Noise(Instance, constant="C", short="1 - delta"):
    """A constant `C` and a budget; `delta` by what it is short of 1."""

    constant: float
    epsilon: float
    short: float

    @property
    def logarithm(self) -> float:
        """``log(1 / delta)``."""
        return -math.log1p(-self.short)

    def sigma(self, added: float) -> float:
        """``C L sqrt(log(1 / delta) + added) / epsilon`` at `L = 1`."""
        return self.constant * math.sqrt(self.logarithm + added) / self.epsilon


def _noises(budget: Budget) -> Iterator[Noise]:
    for constant, epsilon in product((CLASSICAL, 10.0, 100.0, 1000.0), (0.99, 0.5, 0.1, 0.01)):
        shorts = (0.99, 0.9, 0.5, 0.1, 0.01, 0.001, *(1 - 10.0**-power for power in (3, 5, 9, 12)))
        yield from (Noise(constant, epsilon, short) for short in (*shorts, (epsilon / (10 * constant)) ** 2))
    random = seeded(12)
    for _ in range(budget.pick(quick=300, full=30_000)):
        yield Noise(CLASSICAL * random.uniform(1, 3), random.uniform(0.001, 0.999), random.random())


@claim(
    "G21",
    "Proposition 11: privacy",
    on=_noises,
    given="gradients of norm at most L, epsilon and delta between 0 and 1",
    corrected=Variant("The same with ``log(1.25 / delta)``, from ``C = 2 sqrt(2)`` on.", added=LOGARITHM),
    false=Variant(
        "The same with ``log(1.25 / delta)`` and half that noise, as if gradients differed by at most `L`.",
        added=LOGARITHM,
        distance=4.0,
    ),
)
def noise_is_enough(noise: Noise, *, added: float = 0.0, distance: float = 2.0) -> Comparison:
    """For a constant `C` and any epsilon and delta below 1, noise ``C L sqrt(log(1 / delta)) / epsilon`` is enough.

    No `C` is: as delta tends to 1 the noise vanishes, and what it reaches tends to 1 much faster than delta does.
    """
    reached = delta_of_gaussian(distance, noise.sigma(added), noise.epsilon)
    return at_most(reached, 1 - noise.short, tolerance=FLOATS)


of_gradients = partial(
    claim, "G21", "Proposition 11", kind="text", on=bounded_gradients, given="gradients of norm at most L"
)

ORTHOGONAL = Variant("They are at a distance of at most ``sqrt(2) L``, as orthogonal ones are.", square=2)


@of_gradients(part="sensitivity", false=ORTHOGONAL)
def gradients_are_near(given: Gradients, *, square: int = 4) -> Comparison:
    """Gradients of two labels are at a distance of at most ``2 L``.

    Compared are the squares.
    """
    pairs = combinations(given.vectors, 2)
    largest = max(sum((x - y) ** 2 for x, y in zip(*pair, strict=True)) for pair in pairs)
    return at_most(largest, square * given.squared_lipschitz)


@of_gradients(part="mean square", false=Variant("The same without the projection.", project=False))
def projected_noise_is_small(given: Gradients, *, project: bool = True) -> Comparison:
    """The gradient and the projected noise have a mean square of at most ``L**2 + K sigma**2``, in any dimension.

    At ``sigma = L``; the mean square of the noise is that times the trace of the projection.
    """
    square = float(given.squared_lipschitz)
    vectors = np.array(given.vectors, dtype=float)
    span = np.linalg.pinv(vectors) @ vectors if project else np.eye(vectors.shape[1])
    return at_most(square * (1 + float(np.square(span).sum())), square * (1 + given.k), tolerance=FLOATS)


class Learning(Instance, descent="", noise=""):
    """Algorithm 6 on an interval."""

    descent: Descent
    noise: Noise

    @cached_property
    def outcomes(self) -> dict[float, Outcome]:
        """The excess risk with the printed noise, and with noise that is enough."""
        length = self.descent.lipschitz
        return {x: with_gaussian_noise(self.descent, length * self.noise.sigma(x)) for x in (0.0, LOGARITHM)}


def _learnings(budget: Budget) -> Iterator[Learning]:
    two, three = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.6, 0.2, 0.2))
    for steps, (centres, law), short in product((2, 8, 64), (two, three), (1e-6, 0.5, 0.99999)):
        yield Learning(Descent(centres, law, steps), Noise(CLASSICAL, 0.99, short))
        yield Learning(Descent(centres, law, steps, diameter=3.0, lipschitz=2.0), Noise(CLASSICAL, 0.1, short))
    for power, (centres, law) in product(range(8, budget.pick(quick=11, full=17), 2), (two, three)):
        yield Learning(Descent(centres, law, 2**power), Noise(CLASSICAL, 0.99, 0.99999))
    for epsilon, short in ((0.1, 0.99999), (0.001, 0.5)):
        yield Learning(Descent((0.0, 1.0), (1.0, 0.0), 2**9), Noise(CLASSICAL, epsilon, short))


@claim(
    "G21",
    "Proposition 11: rate",
    on=_learnings,
    given="convex L-Lipschitz loss, diameter D, epsilon and delta between 0 and 1, its steps, n above 1",
    quantifier=UNNAMED,
    corrected=Variant("The same with ``log(1.25 / delta)``, there and in the noise.", added=LOGARITHM),
    false=Variant("The same with ``log(1.25 / delta)`` and without ``1 / epsilon``.", added=LOGARITHM, power=0),
)
def excess_is_bounded(learning: Learning, *, added: float = 0.0, power: int = 1) -> Comparison:
    """Algorithm 6 is ``O(D L sqrt(K log(1 / delta)) log(n) / (epsilon sqrt(n)))`` from the least risk.

    The constant that is tried is 1. As delta tends to 1 the right side vanishes and the left does not: no constant is
    enough.
    """
    descent, noise = learning.descent, learning.noise
    price = math.sqrt(len(descent.law) * (noise.logarithm + added)) / noise.epsilon**power
    return at_most(learning.outcomes[added].surely, price * rate(descent), tolerance=FLOATS)
