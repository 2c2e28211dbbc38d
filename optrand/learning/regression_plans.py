"""Plans of regression: which rows are asked, by which best randomizer, and what a row pays.

=======================  ==================================================  ========================================
plan                     randomizers                                         a row pays
=======================  ==================================================  ========================================
:class:`OnePrior`        one, for a private prior of all rows                prior + rest = epsilon
:class:`PublicClusters`  one a cluster, for its private prior                prior of its cluster + rest = epsilon
:class:`TwoStages`       stage 1: unbiased, for a private prior of its rows  in stage 1: prior + rest = epsilon
                         stage 2: one a group of like predictions            in stage 2: prior of its group + rest
=======================  ==================================================  ========================================

Shares are rounded so that the exact sum of the two floats is at most epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from optrand.base.validation import Floats, integer, real
from optrand.errors import InvalidInput
from optrand.learning.group_priors import BINS, GLOBAL_SHARE, coarse_bins, group_prior, prediction_groups
from optrand.learning.plans import clustered, pooled
from optrand.learning.release import Rows
from optrand.sampling.priors import BudgetSplit, split_at, split_budget

if TYPE_CHECKING:
    from optrand.baselines.groups import Groups
    from optrand.learning.regression_training import Asked, Noisy, RegressionTraining

__all__ = ["OnePrior", "PublicClusters", "RegressionPlan", "TwoStages", "default_penalty", "default_plan"]

SMALLEST = 200
"""Rows that a group or cluster has at least."""

ROWS_A_GROUP = 2000
"""Rows of stage 2 for each group, as long as there are at most :data:`MOST_GROUPS`."""

MOST_GROUPS = 8

SMALL_EPSILON = 2.0
"""Epsilon from which one prior is the default at any size."""

GROUP_SHARE = 0.05
"""Largest share of epsilon for the histogram of a group."""


class RegressionPlan(Protocol):
    """How a regressor comes by its noisy labels."""

    def penalty(self, rows: int) -> float:
        """Price of bias where none is given."""
        ...

    def check(self, rows: int) -> None:
        """Refuse sizes that it cannot work with, before anything is drawn."""
        ...

    def train(self, training: RegressionTraining, penalty: float) -> Any:
        """Release labels, and return a model of them."""
        ...


def default_penalty(rows: int) -> float:
    """Price of squared bias: the rows for each free parameter of a model that has as many as the root of its rows.

    Examples
    --------
    >>> default_penalty(10_000)
    100.0
    """
    return math.sqrt(rows)


def default_plan(rows: int, epsilon: float) -> RegressionPlan:
    """Two stages where there are rows for two groups and epsilon is below 2, else one prior; by what is public alone.

    The bound of epsilon was set after runs on weeks worked, 60,000 rows, and has been tried on nothing else. There, in
    100 seeds, the excess error of two stages over that of one prior was 0.74 and 0.77 at epsilon 0.5, 0.89 and 0.84 at
    1, and 1.05 and 0.83 at 2 (ridge and boosting).

    Examples
    --------
    >>> default_plan(1000, 0.5)
    OnePrior(share=None)
    >>> default_plan(8000, 2.0)
    OnePrior(share=None)
    """
    return TwoStages() if rows >= 4 * ROWS_A_GROUP and epsilon < SMALL_EPSILON else OnePrior()


def split_of(epsilon: float, k: int, rows: int, share: float | None) -> BudgetSplit:
    """A given share for the prior, or by the rule of :func:`~optrand.sampling.priors.split_budget`."""
    return split_budget(epsilon, k, rows) if share is None else split_at(epsilon, share * epsilon)


@dataclass(frozen=True)
class OnePrior:
    """One randomizer for all rows, best for a private prior of their labels ([B23], Algorithm 3).

    Parameters
    ----------
    share : float, optional
        Of epsilon for the prior; by default by :func:`~optrand.sampling.priors.split_budget`.

    Notes
    -----
    Unbiased unless the regressor has a finite `bias_penalty`; with 0 it is randomized response on bins.
    """

    share: float | None = None

    def __post_init__(self) -> None:
        """Check the share."""
        checked_share(self.share)

    def penalty(self, rows: int) -> float:  # noqa: ARG002
        """No bias."""
        return math.inf

    def check(self, rows: int) -> None:
        """Any sizes will do."""

    def train(self, training: RegressionTraining, penalty: float) -> Any:
        """One release of all rows."""
        return training.learn([[released_with_prior(training, np.arange(training.rows), self.share, penalty)]])


@dataclass(frozen=True)
class PublicClusters:
    """A randomizer for each public cluster of rows, best for a private prior of the cluster.

    Parameters
    ----------
    clusters : int or callable
        Clusters by k-means of the features; or a function of the features that gives each row an id.
    share : float, optional
        Of epsilon for the prior; by default by :func:`~optrand.sampling.priors.split_budget`, for the cluster's size.
    smallest : int
        Rows below which clusters are pooled, a choice by public sizes.

    Notes
    -----
    The global prior, a small share of each cluster's, is the mixture of the released ones by public size. With
    ``bias_penalty=0`` every cluster has its randomized response on bins.
    """

    clusters: int | Callable[[Any], Any] = 16
    share: float | None = None
    smallest: int = SMALLEST

    def __post_init__(self) -> None:
        """Check all three."""
        checked_share(self.share)
        integer(self.smallest, "smallest", 1)
        if not callable(self.clusters):
            integer(self.clusters, "clusters", 1)

    def penalty(self, rows: int) -> float:
        """By :func:`default_penalty`."""
        return default_penalty(rows)

    def check(self, rows: int) -> None:
        """Refuse fewer rows than one cluster needs."""
        if rows < self.smallest:
            raise InvalidInput(f"{rows} rows are fewer than smallest={self.smallest}: take OnePrior")

    def train(self, training: RegressionTraining, penalty: float) -> Any:
        """One release of all rows."""
        from optrand.learning.regression_training import Asked

        rows = np.arange(training.rows)
        groups = pooled(clustered(training, rows, self.clusters), self.smallest)
        members = members_of(groups, rows)
        splits = [split_of(training.epsilon, training.k, one.size, self.share) for one in members]
        priors = [training.prior(one, split.prior).probabilities for one, split in zip(members, splits, strict=True)]
        overall = np.average(priors, axis=0, weights=groups.sizes)
        asked = [
            Asked(one, (1 - GLOBAL_SHARE) * prior + GLOBAL_SHARE * overall, split.labels, penalty)
            for one, prior, split in zip(members, priors, splits, strict=True)
        ]
        return training.learn([training.release(asked)])


@dataclass(frozen=True)
class TwoStages:
    """A first model without bias groups the remaining rows; each group has a randomizer with a price on bias.

    Parameters
    ----------
    split : float
        Share of the rows in stage 1.
    groups : int, optional
        Groups of like predictions in stage 2, at most; by default by its rows.
    group_share : float
        Of epsilon, at most, for the histogram of a group; large groups pay less.
    first : regressor, optional
        Model of stage 1, by default as the last one.
    smallest : int
        Rows below which groups are pooled.

    Notes
    -----
    Stage 1 releases unbiased labels for a private prior of its rows. Its predictions cut the other rows at their
    quantiles. Each group pays for a coarse histogram, projected to the nearest distribution; within a bin it has the
    shape of stage 1's prior, which is also a small share of it. The last model learns from both stages, each weighted
    by the inverse of its mean noise, price of bias included, plus the variance of labels.

    A price on bias is what makes groups worth their epsilon: an unbiased randomizer has, at every label, a variance of
    at least ``d**2 e**epsilon / (e**epsilon - 1)**2``, with the distance `d` to the farther end of all labels, however
    well the prior is known.
    """

    split: float = 0.5
    groups: int | None = None
    group_share: float = GROUP_SHARE
    first: Any = None
    smallest: int = SMALLEST

    def __post_init__(self) -> None:
        """Check what can be checked without rows."""
        checked_share(self.group_share, "group_share")
        if not 0 < real(self.split, "split") < 1:
            raise InvalidInput(f"split is {self.split:g}, expected a share of the rows between 0 and 1")
        if self.groups is not None:
            integer(self.groups, "groups", 1)
        integer(self.smallest, "smallest", 1)

    def penalty(self, rows: int) -> float:
        """By :func:`default_penalty`."""
        return default_penalty(rows)

    def parts(self, rows: int) -> tuple[int, int]:
        """Rows of each stage."""
        first = round(self.split * rows)
        return first, rows - first

    def check(self, rows: int) -> None:
        """Refuse a split that leaves a stage with fewer rows than a group needs."""
        if min(self.parts(rows)) < self.smallest:
            first, second = self.parts(rows)
            raise InvalidInput(
                f"of {rows} rows {first} are in stage 1 and {second} in stage 2, expected at least "
                f"smallest={self.smallest} in each: take OnePrior, or another split"
            )

    def train(self, training: RegressionTraining, penalty: float) -> Any:
        """Both stages."""
        order = training.generator.permutation(training.rows)
        one, two = np.split(order, [self.parts(training.rows)[0]])
        first = released_with_prior(training, one, None, math.inf)
        model = training.learn([[first]], estimator=self.first)
        count = self.groups or min(MOST_GROUPS, max(1, two.size // ROWS_A_GROUP))
        groups = prediction_groups(training.predict(model, two), count, self.smallest)
        overall = training.priors[0].probabilities
        asked = [self._asked(training, rows, overall, penalty) for rows in members_of(groups, two)]
        return training.learn([[first], training.release(asked)], spread=training.variance(overall))

    def _asked(self, training: RegressionTraining, rows: Rows, overall: Floats, penalty: float) -> Asked:
        """A group with the prior of its histogram, which is drawn."""
        from optrand.learning.regression_training import Asked

        bins = coarse_bins(overall)
        share = min(math.sqrt(BINS / rows.size) / 2 / training.epsilon, self.group_share)
        split = split_at(training.epsilon, share * training.epsilon)
        shares = training.prior(rows, split.prior, bins=bins).projected
        return Asked(rows, group_prior(shares, bins, overall), split.labels, penalty)


def released_with_prior(training: RegressionTraining, rows: Rows, share: float | None, penalty: float) -> Noisy:
    """Labels of some rows by the best randomizer for a private prior of these."""
    from optrand.learning.regression_training import Asked

    split = split_of(training.epsilon, training.k, rows.size, share)
    prior = training.prior(rows, split.prior).probabilities
    return training.release([Asked(rows, prior, split.labels, penalty)])[0]


def members_of(groups: Groups, rows: Rows) -> list[Rows]:
    """Rows of each group."""
    return [rows[groups.index == group] for group in range(len(groups))]


def checked_share(share: object, name: str = "share") -> None:
    """Refuse what is no part of epsilon.

    Raises
    ------
    InvalidInput
        It is not between 0 and 1.
    """
    if share is not None and not 0 < real(share, name) < 1:
        raise InvalidInput(f"{name} is {share}, expected a part of epsilon between 0 and 1")
