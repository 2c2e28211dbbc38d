"""What noisy labels cost where nothing else tells the noisy distribution ([E22], Theorem 1 with `beta = 0`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.noise import renormalized

__all__ = ["CLAIMS", "LabelsAlone"]

CELLS = 30
"""Into how many parts of one row Laplace noise is cut."""


@dataclass(frozen=True)
class LabelsAlone:
    """Two labels, continuous noise, and nothing released but noisy labels: `beta = 0` keeps the loss as it is.

    Noise and resampling cost what they do in Corollary 2: with `sigma = 1 / epsilon` and `lambda = 1 / (1 +
    (exp(epsilon) - 1) tau)` both summands of Theorem 1 are epsilon.

    Attributes
    ----------
    size : int
        Rows of the cluster.
    epsilon : float
    threshold : float
        `tau`.
    """

    size: int
    epsilon: float
    threshold: float

    @cached_property
    def spent(self) -> float:
        """At least what is spent, as a share of epsilon: two neighbours, and the release of zeros alone."""
        ratios = (self._zeros(ones, low=True) / self._zeros(ones + 1, low=False) for ones in range(self.size))
        return max(math.log(ratio) for ratio in ratios) / self.epsilon

    def _zeros(self, ones: int, *, low: bool) -> float:
        """A bound on the probability that all noisy labels are 0, from below or from above.

        It grows with the noisy share of label 0.
        """
        share, n = 1 / (1 + math.expm1(self.epsilon) * self.threshold), self.size
        q = self._shares[0 if low else 1]
        chances = (1 - share + share * q) ** (n - ones) * (share * q) ** ones
        return float(self._masses(n - ones) @ chances @ self._masses(ones))

    @cached_property
    def _edges(self) -> Floats:
        """Where pieces of a clipped noisy share begin and end: the first and the last are points."""
        n, tau = self.size, self.threshold
        inner = np.linspace(tau, 1, round(n * (1 - tau) * CELLS) + 1)
        return np.concatenate((inner[:1], inner, inner[-1:]))

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """The least and the largest final share of label 0 in each pair of pieces.

        It grows with that label's clipped share and falls with the other's.
        """
        low, high = self._edges[:-1], self._edges[1:]
        pairs = [np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1) for ends in ((low, high), (high, low))]
        least, largest = (renormalized(pair, self.threshold)[..., 0] for pair in pairs)
        return least, largest

    def _masses(self, count: int) -> Floats:
        """How likely each piece is, for the label of so many rows."""
        scaled = (self._edges[1:-1] * self.size - count) * self.epsilon
        below = np.where(scaled < 0, np.exp(np.minimum(scaled, 0)) / 2, 1 - np.exp(-np.maximum(scaled, 0)) / 2)
        return np.diff(below, prepend=0.0, append=1.0)

    def __str__(self) -> str:
        return f"K = 2, {self.size} rows, epsilon = {self.epsilon}, tau = {self.threshold}"


def _labels_alone(budget: Budget) -> Iterator[LabelsAlone]:
    for size in (2, 4, 6, 8, 12, *budget.pick(quick=(), full=(20, 30))):
        yield from (LabelsAlone(size, eps, tau) for eps in (0.01, 0.1, 1.0) for tau in (0.25, 0.1, 0.4))


def labels_pay_for_the_noise_once(labels: LabelsAlone) -> Comparison:
    """If only noisy labels are released, they are private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau)).

    Both summands are epsilon; compared as shares of it.
    """
    return at_most(labels.spent, 2)


def labels_pay_for_the_noise_twice(labels: LabelsAlone) -> Comparison:
    """If only noisy labels are released, they are private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(labels.spent, 3)


def labels_pay_for_half_of_the_noise(labels: LabelsAlone) -> Comparison:
    """If only noisy labels are released, they are private at 1 / (2 sigma) + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(labels.spent, 3 / 2)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 1",
        part="noisy labels alone",
        hypothesis="two labels, continuous noise, beta = 0; both summands alike",
        instances=_labels_alone,
        printed=labels_pay_for_the_noise_once,
        corrected=labels_pay_for_the_noise_twice,
        false=labels_pay_for_half_of_the_noise,
    ),
)
