"""Gradient descent on an interval with noisy labels: how far its last iterate is from the best, in the mean.

One dimension is enough for the rates of [G21], and small enough to be exact: of a few steps all sequences of noisy
labels are followed with their probabilities. Of many steps many descents are drawn, with a seed.

The rates have constants that are not named. Their proofs rest on Shamir and Zhang (2013), Theorem 2: with gradient
estimates of second moment ``G**2`` and steps ``D / (G sqrt(t))`` it is ``2 D G (2 + log(n + 1)) / sqrt(n + 1)`` after
`n` steps. With randomized response that is above ``D L``, and says nothing, up to a hundred thousand steps: so the
constant that is tried is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats

__all__ = ["Descent", "Outcome", "rate", "with_gaussian_noise", "with_responses"]

Indices = NDArray[np.intp]

MOST_PATHS = 5_000
"""Up to so many sequences of noisy labels are followed, all of them; beyond, descents are drawn."""


@dataclass(frozen=True)
class Outcome:
    """A mean, and its standard error: 0 where all that can happen was followed.

    Examples
    --------
    >>> Outcome(0.5, 0.01).surely
    0.45
    """

    mean: float
    error: float = 0.0

    @property
    def surely(self) -> float:
        """What the mean is above, but for five standard errors."""
        return self.mean - 5 * self.error


@dataclass(frozen=True)
class Descent:
    """Labels with losses ``lipschitz * abs(w - c_y)`` on ``[0, diameter]``, and so many steps from the upper end.

    Attributes
    ----------
    centres : tuple of float
        The `c`, as shares of the diameter.
    law : tuple of float
        How often each label occurs.
    steps : int
    diameter, lipschitz : float

    Examples
    --------
    >>> Descent((0.0, 1.0), (0.75, 0.25), 10).excess(np.array([0.0, 0.5])).tolist()
    [0.0, 0.25]
    """

    centres: tuple[float, ...]
    law: tuple[float, ...]
    steps: int
    diameter: float = 1.0
    lipschitz: float = 1.0

    def __str__(self) -> str:
        labels = f"losses L abs(w - D c) with c = {self.centres} of labels of law {self.law}"
        return f"{labels}, D = {self.diameter:g}, L = {self.lipschitz:g}, n = {self.steps} from D"

    def losses(self, w: Floats) -> Floats:
        """Of each point, a column a label."""
        distances: Floats = np.abs(w[:, np.newaxis] - self.diameter * np.array(self.centres))
        return self.lipschitz * distances

    def excess(self, w: Floats) -> Floats:
        """By how much the risk exceeds the least one, which is at one of the centres."""
        risk: Floats = self.losses(w) @ np.array(self.law)
        least = (self.losses(self.diameter * np.array(self.centres)) @ np.array(self.law)).min()
        return risk - float(least)

    def gradients(self, w: Floats) -> Floats:
        """Of each point, a column a label; at a centre, that of the upper side."""
        above = w[:, np.newaxis] >= self.diameter * np.array(self.centres)
        return np.where(above, self.lipschitz, -self.lipschitz)

    def moved(self, w: Floats, towards: Floats) -> Floats:
        """Points after a step, put back where they left the interval."""
        return np.clip(w - towards, 0.0, self.diameter)


def rate(descent: Descent) -> float:
    """``D L log(n) / sqrt(n)``."""
    return descent.diameter * descent.lipschitz * math.log(descent.steps) / math.sqrt(descent.steps)


def with_responses(descent: Descent, table: Floats, epsilon: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    r"""The mean excess of [G21], Algorithm 5, with randomized response on the labels that a table can give.

    Parameters
    ----------
    descent : Descent
    table : (K, K) array
        Probabilities of noisy labels, a row a label: randomized response, or RRTop-k. Columns of zeros are labels that
        are not kept.
    epsilon : float
    runs, seed : int
        Of descents that are drawn, where there are too many to follow all.

    Notes
    -----
    With `k` labels kept the estimate is eq. (7) for these, and the steps are :math:`D \epsilon / (6 k L \sqrt t)`.
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
    r"""The mean excess of [G21], Algorithm 6: the gradient, and Gaussian noise in the space of all labels' gradients.

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
    """All sequences of noisy labels."""
    w, chances = np.array([descent.diameter]), np.ones(1)
    for t in range(1, descent.steps + 1):
        labels = np.tile(np.arange(noisy.size), w.size)
        w = step(np.repeat(w, noisy.size), labels, t)
        chances = np.repeat(chances, noisy.size) * np.tile(noisy, chances.size)
    return Outcome(float(chances @ descent.excess(w)))


def _drawn(descent: Descent, step: Callable[[Floats, int], Floats], runs: int) -> Outcome:
    """Many descents side by side."""
    w = np.full(runs, descent.diameter)
    for t in range(1, descent.steps + 1):
        w = step(w, t)
    excess = descent.excess(w)
    return Outcome(float(excess.mean()), float(excess.std(ddof=1) / math.sqrt(runs)))
