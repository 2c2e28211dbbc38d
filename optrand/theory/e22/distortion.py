"""How far noise and threshold move the shares of a cluster ([E22], Lemma 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.noise import renormalized

__all__ = ["CLAIMS", "distortion"]

QUADRATURE = 0.02
"""Of means over Laplace noise by midpoints of its quantiles, as a share."""


@dataclass(frozen=True)
class _Noisy:
    """One cluster with Laplace noise."""

    counts: tuple[int, ...]
    threshold: Fraction
    scale: float

    @property
    def size(self) -> int:
        """`s`."""
        return sum(self.counts)

    @cached_property
    def distance(self) -> float:
        """What Lemma 5 bounds."""
        return distortion(np.array(self.counts) / self.size, float(self.threshold), self.scale / self.size)

    def __str__(self) -> str:
        return f"counts {', '.join(map(str, self.counts))}, tau = {self.threshold}, sigma = {self.scale}"


def distortion(shares: Floats, threshold: float, scale: float) -> float:
    """The mean distance of noisy shares from the shares of a cluster, with continuous noise.

    Parameters
    ----------
    shares : (K,) array
    threshold : float
        `tau`.
    scale : float
        Of the Laplace noise on shares: `sigma` divided by the size of the cluster.

    Notes
    -----
    Means over the midpoints of equally likely pieces of the noise, some 40,000 points.
    """
    k = shares.size
    points = round(40_000 ** (1 / k))
    levels = (np.arange(points) + 0.5) / points - 0.5
    noise = -scale * np.sign(levels) * np.log1p(-2 * np.abs(levels))
    grid = np.stack(np.meshgrid(*[noise] * k, indexing="ij"), axis=-1).reshape(-1, k)
    clipped = np.clip(shares + grid, threshold, 1)
    return float(np.abs(renormalized(clipped, threshold) - shares).sum(axis=1).mean())


def _noisy(budget: Budget) -> Iterator[_Noisy]:
    for scale in (1e-6, 1.0, 0.1, 100.0):
        for counts in ((1, 0), (1, 0, 0), (5, 5), (20, 0, 0, 0), (3, 2, 1), (100, 20, 3)):
            for part in (0, 2, 4):
                yield _Noisy(counts, Fraction(part, 4 * len(counts)), scale)
    random = Random(8)  # noqa: S311
    for _ in range(budget.pick(quick=20, full=2_000)):
        k = random.randint(2, 4)
        some = (random.randint(1, 20), *(random.randint(0, 20) for _ in range(k - 1)))
        yield _Noisy(some, Fraction(random.randint(0, 9), 9 * k), 10 ** random.uniform(-2, 2))


def shares_are_distorted_by_threshold_and_noise(noisy: _Noisy) -> Comparison:
    """The noisy shares of a cluster of s rows are on average within 2 K tau + 2 sqrt(2) K sigma / s of its shares."""
    return _distorted(noisy, threshold=2)


def shares_are_distorted_by_half_the_threshold(noisy: _Noisy) -> Comparison:
    """The same with K tau: as if what labels below the threshold gain were not taken from others."""
    return _distorted(noisy, threshold=1)


def _distorted(noisy: _Noisy, *, threshold: int) -> Comparison:
    k = len(noisy.counts)
    bound = threshold * k * float(noisy.threshold) + 2 * math.sqrt(2) * k * noisy.scale / noisy.size
    return at_most(noisy.distance, bound, tolerance=QUADRATURE)


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 5",
        hypothesis="any cluster of at least s rows, tau from 0 to 1/K",
        instances=_noisy,
        printed=shares_are_distorted_by_threshold_and_noise,
        false=shares_are_distorted_by_half_the_threshold,
    ),
)
