r"""Histogram of the labels behind a release, with the noise of the mechanism undone.

With the unbiased values ``A[i, y]`` of output ``i`` for the indicator of label ``y``, the share of ``y`` is the mean of
``A[v, y]`` over the release. Its variance is, about the population's share :math:`h_y` and about the table's,

.. math:: \frac{E[A_{v y}^2] - h_y^2}{N}, \qquad \frac{E[A_{v y}^2] - h_y}{N}.

In the second the noise of a row whose label is ``y'`` has the variance :math:`E[A_{v y}^2 \mid y'] - [y = y']`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, frozen
from optrand.base.validation import values as checked_values
from optrand.estimate.averages import tallied
from optrand.estimate.debiasing import Debiasing
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.released import Released

__all__ = ["GroupHistogram", "Histogram", "histogram", "project_to_simplex"]

BLOCK = 1 << 21
"""Values of outputs that are held at a time while standard errors are computed."""


class _Shares(ABC):
    """Shares of which some may be negative."""

    @property
    @abstractmethod
    def shares(self) -> Floats:
        """Share of each label."""

    @property
    def projected(self) -> Floats:
        """Nearest histogram without negative shares; biased, and never further from the truth."""
        return project_to_simplex(self.shares)


@dataclass(frozen=True, eq=False)
class Histogram(_Shares):
    """Unbiased shares of the labels.

    Attributes
    ----------
    debiasing : Debiasing
    tallies : (n,) array
        Count of each output.
    """

    debiasing: Debiasing
    tallies: Floats

    def __repr__(self) -> str:
        """One line, without the shares."""
        return f"<Histogram: {self.labels.size:,} labels, {self.size:,} released values>"

    @property
    def labels(self) -> Floats:
        """Increasing labels, shape ``(k,)``."""
        return self.debiasing.mechanism.labels

    @property
    def size(self) -> int:
        """Number of released values."""
        return int(self.tallies.sum())

    @cached_property
    def shares(self) -> Floats:
        """Share of each label, shape ``(k,)``: unbiased, summing to 1, and some may be negative."""
        return frozen(self.debiasing.shares(self.tallies))

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the shares, for the population from which the rows are a random sample.

        Computed on first use: ``k`` solutions with the factors, 1 s for 2,001 labels of arcs, 20 s for 10,001.
        """
        errors: Floats = np.sqrt(np.maximum(self._squares - self.shares**2, 0.0) / (self.size - 1))
        return errors

    @property
    def noise_errors(self) -> Floats:
        """Standard errors of the shares, for the table that was released: the mechanism's noise alone.

        They lie between those of the labels with the least and with the most noise.
        """
        low, high = self._moments[1:]
        errors: Floats = np.sqrt(np.clip(self._squares - self.shares, low, high) / self.size)
        return errors

    @property
    def _squares(self) -> Floats:
        """Mean square of the unbiased values of each label's indicator."""
        return self._moments[0]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Mean squares of the unbiased values; least and largest of their variances given the true label."""
        k, n = self.labels.size, self.tallies.size
        found, step = np.empty((3, k)), max(1, BLOCK // n)
        for start in range(0, k, step):
            block = slice(start, min(start + step, k))
            indicators = np.eye(k, block.stop - start, -start)
            squares = self.debiasing.values(indicators) ** 2
            variances = self.debiasing.expectations(squares) - indicators
            found[:, block] = self.tallies @ squares / self.size, variances.min(axis=0), variances.max(axis=0)
        return found[0], np.maximum(found[1], 0.0), np.maximum(found[2], 0.0)


@dataclass(frozen=True, eq=False)
class GroupHistogram(_Shares):
    r"""Unbiased shares of the labels of a release by groups, the noise of each undone by its own mechanism.

    With :math:`\hat h_g` of the :math:`n_g` rows of a mechanism, :math:`\hat h = \sum_g \frac{n_g}{N} \hat h_g`; sizes
    are public and the noise of groups is independent.

    Attributes
    ----------
    parts : tuple of Histogram
        One for each mechanism; groups that share one are together.
    """

    parts: tuple[Histogram, ...]

    @property
    def labels(self) -> Floats:
        """Increasing labels, shape ``(k,)``."""
        return self.parts[0].labels

    @property
    def size(self) -> int:
        """Number of released values."""
        return sum(part.size for part in self.parts)

    @cached_property
    def shares(self) -> Floats:
        """Share of each label, shape ``(k,)``: unbiased, summing to 1, and some may be negative."""
        return frozen(np.sum([part.size / self.size * part.shares for part in self.parts], axis=0))

    @cached_property
    def noise_errors(self) -> Floats:
        """Standard errors of the shares, for the table that was released: the mechanisms' noise alone."""
        squares = [(part.size / self.size * part.noise_errors) ** 2 for part in self.parts]
        return frozen(np.sqrt(np.sum(squares, axis=0)))

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the shares, for the population from which the rows are a random sample."""
        spread = np.maximum(self.shares * (1 - self.shares), 0.0) / (self.size - 1)
        errors: Floats = np.sqrt(self.noise_errors**2 + spread)
        return errors


def histogram(
    released: ArrayLike,
    mechanism: Mechanism | Released,
    *,
    prior: ArrayLike | None = None,
    groups: Any = None,
) -> Histogram | GroupHistogram:
    """Histogram of the labels behind a release.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    prior : (k,) array, optional
        Under which the variances are least; by default that of the mechanism's problem. It matters only where outputs
        outnumber labels.
    groups : array or frame, optional
        Of a release by groups the column that made them, or what has the columns by their names: a
        :class:`GroupHistogram` of all rows is the answer.

    Raises
    ------
    InvalidInput
        A singular mechanism, or values that are no outputs of it.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> optrand.certify(mechanism).epsilon
    1.0
    >>> classes = np.repeat([0, 1, 2], [5000, 5000, 0])
    >>> found = histogram(mechanism.sample(classes, source=SeededEntropy(1)), mechanism)
    >>> found.shares.round(3).tolist(), found.noise_errors.round(3).tolist(), found.projected.round(3).tolist()
    ([0.501, 0.5, -0.001], [0.012, 0.012, 0.011], [0.5, 0.5, 0.0])
    """
    parts = tuple(
        Histogram(Debiasing.of(one, prior), frozen(tallies)) for one, tallies in tallied(released, mechanism, groups)
    )
    return parts[0] if len(parts) == 1 else GroupHistogram(parts)


def project_to_simplex(vector: ArrayLike) -> Floats:
    r"""Probability distribution nearest to a (k,) vector, :math:`\max(0, x - \theta)` for some :math:`\theta`.

    Euclidean distance, by sorting ([DSSC08], Figure 1), ``O(k log k)``; the sum is 1 but for rounding. A projection
    onto a convex set that holds the true distribution brings every vector nearer to it.

    Examples
    --------
    >>> project_to_simplex([0.75, 0.5, -0.25]).tolist()
    [0.625, 0.375, 0.0]
    """
    given = checked_values(vector, "vector")
    # Less a constant the projection is the same, and 1 is not lost among large numbers; 1 below the largest it is 0.
    with np.errstate(over="ignore"):
        given = np.maximum(given - given.max(), -1.0)
    falling = np.sort(given)[::-1]
    thresholds = (np.cumsum(falling) - 1) / np.arange(1, given.size + 1)
    theta = thresholds[np.flatnonzero(falling > thresholds)[-1]]
    projected: Floats = np.maximum(given - theta, 0.0)
    return projected
