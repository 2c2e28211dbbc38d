"""Projected gradient descent in a ball with a biased and noisy oracle ([B23], Lemma 15), simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS"]

RUNS = 200
STANDARD_ERRORS = 5


@dataclass(frozen=True)
class _Walk:
    """Descent of ``L |w - c|`` in the ball of diameter 1 around 0; `c` lies at its edge, the start opposite."""

    dimensions: int
    slope: float
    bias: float
    sigma: float
    time: int

    def __str__(self) -> str:
        return (
            f"L |w - c| in a ball of diameter 1, {self.dimensions} dimensions, L = {self.slope:g}, bias {self.bias:g} "
            f"away from c, Gaussian noise of variance {self.sigma**2:g}, T = {self.time}, {RUNS} seeded runs"
        )

    @property
    def rate(self) -> float:
        """``R sqrt(((L + alpha)**2 + sigma**2) / T)``; the printed step size is ``R**2 / (T * rate)``."""
        return math.sqrt(((self.slope + self.bias) ** 2 + self.sigma**2) / self.time)

    @cached_property
    def excess(self) -> tuple[float, float]:
        """The mean excess loss of the mean of all places, over runs, and its standard error."""
        rng = np.random.default_rng([82, self.dimensions, self.time])
        target = np.zeros(self.dimensions)
        target[0] = 0.5
        place: Floats = np.tile(-target, (RUNS, 1))
        total = place.copy()
        for _ in range(self.time - 1):
            away = place - target
            direction = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
            noise = rng.normal(0, self.sigma / math.sqrt(self.dimensions), place.shape)
            place = place - ((self.slope - self.bias) * direction + noise) / (self.time * self.rate)
            place /= np.maximum(2 * np.linalg.norm(place, axis=1, keepdims=True), 1)
            total += place
        losses = self.slope * np.linalg.norm(total / self.time - target, axis=1)
        return float(losses.mean()), float(losses.std(ddof=1) / math.sqrt(RUNS))


def _walks(budget: Budget) -> Iterator[_Walk]:
    for time in budget.pick(quick=(1, 25, 400), full=(1, 4, 25, 100, 400, 2_500, 10_000)):
        for bias in (0.0, 0.5, 1.5):
            yield from (_Walk(dimensions, 1.0, bias, sigma, time) for dimensions in (1, 3) for sigma in (0.0, 1.0, 4.0))


def walks_come_near(walk: _Walk) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    return _within(walk, walk.rate + walk.bias)


def walks_forget_the_bias(walk: _Walk) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T)."""
    return _within(walk, walk.rate)


def _within(walk: _Walk, bound: float) -> Comparison:
    mean, error = walk.excess
    return at_most(mean - STANDARD_ERRORS * error, bound * (1 + 1e-12))


CLAIMS = (
    Claim(
        paper="B23",
        number="Lemma 15",
        part="simulation",
        hypothesis="a ball in one or three dimensions, Gaussian noise, bias away from the optimum; 5 standard errors",
        instances=_walks,
        printed=walks_come_near,
        false=walks_forget_the_bias,
    ),
)
