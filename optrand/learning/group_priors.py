"""Groups of like rows, and a prior for each from a coarse histogram and the shape of a global one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.baselines.groups import Groups
from optrand.learning.plans import pooled

__all__ = ["BINS", "GLOBAL_SHARE", "coarse_bins", "group_prior", "prediction_groups"]

BINS = 10
"""Bins of a group's histogram between the two extreme labels."""

GLOBAL_SHARE = 0.005
"""Share of the global prior in that of a group: it bounds what a wrong histogram costs."""


def prediction_groups(predictions: Floats, count: int, smallest: int) -> Groups:
    """Groups of rows between quantiles of their predictions.

    Parameters
    ----------
    predictions : (n,) array
        By a model of earlier releases, so public.
    count : int
        How many at most: quantiles that are equal leave no group between them.
    smallest : int
        Rows below which groups are pooled, a choice by public sizes.

    Examples
    --------
    >>> prediction_groups(np.array([3.0, 1.0, 2.0, 4.0]), 2, 1).index.tolist()
    [1, 0, 0, 1]
    >>> len(prediction_groups(np.zeros(9), 4, 1))
    1
    """
    cuts = np.unique(np.quantile(predictions, np.arange(1, count) / count))
    return pooled(Groups.of_ids(np.searchsorted(cuts, predictions)), smallest)


def coarse_bins(prior: Floats, count: int = BINS) -> NDArray[np.intp]:
    """Bin of each label: the extreme labels alone, the others in runs of about equal mass under a prior.

    Examples
    --------
    >>> coarse_bins(np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.2]), 4).tolist()
    [0, 1, 1, 1, 2, 3]
    """
    places = np.searchsorted(np.cumsum(prior), np.linspace(0, 1, count + 1)[1:-1])
    firsts = np.unique(np.r_[places[places < prior.size], 1, prior.size - 1])
    found: NDArray[np.intp] = np.searchsorted(firsts[firsts > 0], np.arange(prior.size), side="right")
    return found


def group_prior(shares: Floats, bins: NDArray[np.intp], overall: Floats) -> Floats:
    """Prior of a group: its shares of bins, the global shape within each, and a share of the global prior.

    Parameters
    ----------
    shares : (b,) array
        Distribution over the bins.
    bins : (k,) array of int
        The bin of each label.
    overall : (k,) array
        Global prior, positive.

    Examples
    --------
    >>> group_prior(np.array([0.0, 1.0]), np.array([0, 1, 1]), np.array([0.5, 0.4, 0.1])).round(3).tolist()
    [0.002, 0.798, 0.2]
    """
    within = overall / np.bincount(bins, overall)[bins]
    mixed: Floats = (1 - GLOBAL_SHARE) * shares[bins] * within + GLOBAL_SHARE * overall
    mixed /= mixed.sum()
    return mixed
