"""Precision of what can be estimated from a release, by its randomizer, its prior and the number of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optrand.estimate.averages import UNBIASED
from optrand.mechanism.mechanism import Mechanism
from optrand.release.group_plan import GroupPlan
from optrand.release.plan import Plan
from optrand.release.randomizer_file import finite_moments

__all__ = ["Estimates"]


@dataclass(frozen=True)
class Estimates:
    """Standard deviations of the noise that a release leaves on its estimates, in units of the labels.

    All are expected under the prior; without one, were all declared labels equally frequent.

    Attributes
    ----------
    label : float
        Of one label.
    mean : float or None
        Of the mean of all rows; None where the randomizer is biased.
    histogram, losses : bool
        Whether the labels' histogram, and losses without the noise's bias, can be estimated.
    counts : tuple of float, optional
        Of each label's count among all rows; None where there is no histogram, or labels are too many to tell.
    multiple : float, optional
        Largest of them in those of debiased randomized response at the same epsilon.
    words : str
        The same in a line.
    """

    label: float
    mean: float | None
    histogram: bool
    losses: bool
    counts: tuple[float, ...] | None
    multiple: float | None
    words: str

    @classmethod
    def of_groups(cls, release: GroupPlan) -> Estimates:
        """Estimates of the whole table that a release by groups admits: their noise is independent."""
        rows, sizes = release.summary.rows, release.priors.rows
        moments = [one.moments(release.labels) for one in release.mechanisms]
        shares = (
            float(m.problem.prior @ found.variances) for m, found in zip(release.mechanisms, moments, strict=True)
        )
        one = math.sqrt(float(sizes @ np.fromiter(shares, dtype=np.float64)) / rows)
        bias = max(found.bias for found in moments)
        errors = [fit.count_errors if fit.possible else None for fit in release.fits]
        squares = [size * found**2 for size, found in zip(sizes, errors, strict=True) if found is not None]
        multiples = [fit.multiple for fit in release.fits]
        possible = all(fit.possible for fit in release.fits)
        return cls(
            label=one,
            mean=one / math.sqrt(rows) if bias <= UNBIASED * (float(np.ptp(release.labels)) or 1.0) else None,
            histogram=possible,
            losses=possible,
            counts=tuple(np.sqrt(sum(squares)).tolist()) if len(squares) == len(errors) else None,
            multiple=max(multiples) if np.isfinite(multiples).all() else None,
            words=release.summary.histograms,
        )

    @classmethod
    def of(cls, release: Plan) -> Estimates:
        """Estimates that a release admits."""
        rows, drawn = release.summary.rows, release.randomizer
        k = release.labels.size
        prior = drawn.problem.prior if isinstance(drawn, Mechanism) else np.full(k, 1 / k)
        moments = finite_moments(drawn, release.labels)
        one = math.sqrt(float(prior @ moments.variances))
        unbiased = moments.bias <= UNBIASED * (float(np.ptp(release.labels)) or 1.0)
        fit = release.conditioning
        possible = fit is not None and fit.possible
        errors = fit.count_errors if fit is not None and possible else None
        return cls(
            label=one,
            mean=one / math.sqrt(rows) if unbiased else None,
            histogram=possible,
            losses=possible,
            counts=None if errors is None else tuple((errors * math.sqrt(rows)).tolist()),
            multiple=None if fit is None or not math.isfinite(fit.multiple) else fit.multiple,
            words=release.summary.histograms,
        )
