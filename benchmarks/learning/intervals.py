"""Means over seeds and their intervals: of one arm, of the ratio of two that are paired by seed, and slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

__all__ = ["Estimate", "mean", "ratio", "slope"]

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval at 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean(values: ArrayLike) -> Estimate:
    """Mean and its t interval.

    Examples
    --------
    >>> str(mean([1.0, 2.0, 3.0]))
    '2 [-0.484, 4.48]'
    """
    array = np.asarray(values, dtype=np.float64)
    centre = float(array.mean())
    if array.size < 2:
        return Estimate(centre, -math.inf, math.inf)
    half = _quantile(array.size) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Estimate(centre, centre - half, centre + half)


def ratio(ours: ArrayLike, theirs: ArrayLike) -> Estimate:
    """Ratio of two means that are paired, with Fieller's interval.

    It holds the ratios `r` for which the mean of ``ours - r * theirs`` is within its t interval of zero.

    Examples
    --------
    >>> str(ratio([4.0, 5.1, 6.0], [8.0, 10.0, 12.0]))
    '0.503 [0.488, 0.521]'
    >>> str(ratio([1.0], [2.0]))
    '0.5 [-inf, inf]'
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    centre = float(a.mean() / b.mean())
    if a.size < 2:
        return Estimate(centre, -math.inf, math.inf)
    (aa, ab), (_, bb) = np.cov(a, b) / a.size * _quantile(a.size) ** 2
    # r**2 (mean(b)**2 - bb) - 2 r (mean(a) mean(b) - ab) + mean(a)**2 - aa <= 0
    square, middle, rest = b.mean() ** 2 - bb, a.mean() * b.mean() - ab, a.mean() ** 2 - aa
    if square <= 0:
        return Estimate(centre, -math.inf, math.inf)
    root = math.sqrt(max(middle**2 - square * rest, 0.0))
    return Estimate(centre, float((middle - root) / square), float((middle + root) / square))


def slope(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Slope of a line through means in log-log scales, with the t interval of the jackknife over seeds.

    Parameters
    ----------
    x : (m,) array
        Positive.
    y : (m, seeds) array
        Positive on average, with any one seed left out too.

    Examples
    --------
    >>> str(slope([1.0, 2.0, 4.0], [[3.0, 3.1, 2.9], [6.1, 6.0, 5.9], [12.0, 12.2, 11.8]]))
    '1 [0.97, 1.03]'
    """
    table = np.asarray(y, dtype=np.float64)
    count = table.shape[1]
    value = _line(x, table.mean(axis=1))
    if count < 2:
        return Estimate(value, -math.inf, math.inf)
    without = np.array([_line(x, np.delete(table, seed, axis=1).mean(axis=1)) for seed in range(count)])
    spread = mean(count * value - (count - 1) * without)
    half = (spread.high - spread.low) / 2
    return Estimate(value, value - half, value + half)


def _line(x: ArrayLike, y: ArrayLike) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _quantile(size: int) -> float:
    return float(t.ppf((1 + LEVEL) / 2, size - 1))
