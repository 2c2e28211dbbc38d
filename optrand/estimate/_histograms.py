r"""Unbiased histograms of the labels behind a release.

With the unbiased values ``A[i, y]`` of output ``i`` for the indicator of label ``y``, the share of ``y`` is the mean of
``A[v, y]`` over the release. Its variance is, about the population's share :math:`h_y` and about the table's,

.. math:: \frac{E[A_{v y}^2] - h_y^2}{N}, \qquad \frac{E[A_{v y}^2] - h_y}{N}.

In the second the noise of a row whose label is ``y'`` has the variance :math:`E[A_{v y}^2 \mid y'] - [y = y']`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import Floats, check_values, freeze_array, suggest_parameters
from optrand.estimate._averages import tally
from optrand.estimate._debiasing import Debiasing
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released


@dataclass(frozen=True, eq=False)
class Part:
    """Mechanism of a release, or of some of its groups, and its number of draws of each output."""

    debiasing: Debiasing
    tallies: Floats

    @property
    def size(self) -> int:
        """Number of released values."""
        return int(self.tallies.sum())

    @cached_property
    def shares(self) -> Floats:
        """Share of each label among the rows of the mechanism."""
        return self.debiasing.shares(self.tallies)

    @cached_property
    def moments(self) -> Floats:
        """Mean squares of the unbiased values of each label's indicator, and mean variances of noise, shape (2, k)."""
        found = np.empty((2, self.shares.size))
        for block, indicators, values in self.debiasing.indicators():
            found[:, block] = self.debiasing.moments(self.tallies, values, indicators, self.shares[block])
        return found


@suggest_attributes(
    {
        "shares": "frequencies probabilities values",
        "shares * histogram.size": "counts",
        "pandas.Series(histogram.shares, histogram.labels)": "to_csv to_frame to_pandas to_series",
    }
)
@dataclass(frozen=True, eq=False)
class Histogram:
    r"""Unbiased shares of the labels, each group corrected for the noise of its own mechanism.

    With :math:`\hat h_g` of the :math:`n_g` rows of a mechanism, :math:`\hat h = \sum_g \frac{n_g}{N} \hat h_g`. Sizes
    are public and the noise of groups is independent.

    Attributes
    ----------
    parts : tuple of Part
        One for each mechanism. Groups that share one are together.
    """

    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"<Histogram: {self.labels.size:,} labels, {self.size:,} released values>"

    @property
    def debiasing(self) -> Debiasing:
        """Factors of the first mechanism."""
        return self.parts[0].debiasing

    @property
    def labels(self) -> Floats:
        """Increasing labels, shape ``(k,)``."""
        return self.debiasing.mechanism.labels

    @property
    def size(self) -> int:
        """Number of released values."""
        return sum(part.size for part in self.parts)

    @cached_property
    def shares(self) -> Floats:
        """Unbiased share of each label, shape ``(k,)``. They sum to 1, and some may be negative."""
        return freeze_array(np.sum([part.size / self.size * part.shares for part in self.parts], axis=0))

    @property
    def projected(self) -> Floats:
        """Nearest histogram without negative shares, which is biased and never further from the truth than `shares`."""
        return project_to_simplex(self.shares)

    @cached_property
    def _moments(self) -> Floats:
        """Mean squares and mean variances over the rows, shape ``(2, k)``."""
        return np.asarray(np.sum([part.size / self.size * part.moments for part in self.parts], axis=0))

    @property
    def noise_errors(self) -> Floats:
        """Standard errors of the shares, for the table that was released: the mechanisms' noise alone.

        First use computes ``k`` solutions with the factors, 1 s for 2,001 labels of arcs, 20 s for 10,001.
        """
        return np.asarray(np.sqrt(self._moments[1] / self.size))

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of the shares, for the population from which the rows are a random sample."""
        return np.asarray(np.sqrt(np.maximum(self._moments[0] - self.shares**2, 0.0) / (self.size - 1)))


@suggest_parameters
def histogram(
    released: ArrayLike, mechanism: Mechanism | Released, *, prior: ArrayLike | None = None, groups: Any = None
) -> Histogram:
    """Estimate the histogram of the labels behind a release.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    prior : (k,) array, optional
        Prior under which the variances are minimised, by default that of the mechanism's problem. It matters only if
        outputs outnumber labels.
    groups : array or frame, optional
        For a release by groups: the column that defined them, or a frame with such columns.

    Raises
    ------
    InvalidInput
        A singular mechanism, or values that are not outputs of it.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> classes = np.repeat([0, 1, 2], [5000, 5000, 0])
    >>> found = histogram(mechanism.sample(classes, source=SeededEntropy(1)), mechanism)
    >>> np.round([found.shares, found.noise_errors, found.projected], 3).tolist()
    [[0.501, 0.5, -0.001], [0.012, 0.012, 0.011], [0.5, 0.5, 0.0]]
    """
    return Histogram(
        tuple(
            Part(Debiasing.of(one, prior), freeze_array(counts)) for one, counts in tally(released, mechanism, groups)
        )
    )


def project_to_simplex(vector: ArrayLike) -> Floats:
    r"""Find the probability distribution nearest to a (k,) vector, :math:`\max(0, x - \theta)` for some :math:`\theta`.

    Euclidean distance, at cost ``O(k log k)``, by sorting ([DSSC08], Figure 1). The sum is 1 up to rounding. Projecting
    onto a convex set that holds the true distribution brings every vector nearer to it.

    Examples
    --------
    >>> project_to_simplex([0.75, 0.5, -0.25]).tolist()
    [0.625, 0.375, 0.0]
    """
    given = check_values(vector, "vector")
    # Subtracting a constant does not change the projection, and prevents rounding errors with large numbers. Entries at
    # least 1 below the largest project to 0.
    with np.errstate(over="ignore"):
        given = np.maximum(given - given.max(), -1.0)
    # theta belongs to the largest number of positive entries that stay positive.
    falling = np.sort(given)[::-1]
    thresholds = (np.cumsum(falling) - 1) / np.arange(1, given.size + 1)
    theta = thresholds[np.flatnonzero(falling > thresholds)[-1]]
    return np.asarray(np.maximum(given - theta, 0.0))
