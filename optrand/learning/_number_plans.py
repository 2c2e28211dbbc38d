"""Plans of numbers, each of whose randomizers is optimal for its prior ([B23])."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats, check_integer
from optrand.baselines._groups import Groups
from optrand.errors import InvalidInput
from optrand.learning._likelihoods import LabelRelease, Rows
from optrand.learning._plans import Ids, InClusters, Plan, check_share, members_of, pool_small_groups
from optrand.learning._training import RowGroup, Training, tilt_priors
from optrand.sampling._priors import split_at, split_budget


@dataclass(frozen=True)
class GroupOptions:
    """Options of all plans of regressors."""

    bins: int = 10  # of a group's histogram, between the two extreme labels
    global_share: float = 0.005  # of the global prior in that of a group or row, which bounds the cost of a wrong one
    rows: int = 2000  # of stage 2 per group, until there are `most` groups
    most: int = 8  # groups


GROUP = GroupOptions()


def default_plan(rows: int, epsilon: float) -> Plan:
    """Return two stages if there are rows for two groups and epsilon is below 2, else one prior. All inputs are public.

    The bound of epsilon was chosen on weeks worked, and was tested on no other data. There, with 60,000 rows, the
    excess error of two stages over that of one prior was 0.74 at epsilon 0.5, 0.89 at 1, and 1.05 at 2 (ridge).
    """
    return TwoStages() if rows >= 4 * GROUP.rows and epsilon < 2.0 else OnePrior()


def _mix(prior: Floats, overall: Floats) -> Floats:
    """Mix a small share of the global prior into others, so that every label has weight."""
    mixed = (1 - GROUP.global_share) * prior + GROUP.global_share * overall
    return np.asarray(mixed / mixed.sum(axis=-1, keepdims=True))


def _release_with_priors(
    training: Training, members: Sequence[Rows], share: float | None, penalty: float
) -> list[LabelRelease]:
    """Release a private prior of each group of rows, and then its labels by the optimal randomizer for that prior.

    `share` of epsilon is for the prior, by default by :func:`~optrand.sampling.split_budget`. The mixture of all
    priors by public size is a small share of each.
    """
    epsilon, priors, rest = training.epsilon, [], []
    for rows in members:
        split = split_budget(epsilon, training.k, rows.size) if share is None else split_at(epsilon, share * epsilon)
        priors.append(training.prior(rows, split.prior).probabilities)
        rest.append(split.labels)
    overall = np.average(priors, axis=0, weights=[rows.size for rows in members])
    groups = zip(members, priors, rest, strict=True)
    return training.release_optimally([RowGroup(rows, _mix(one, overall), left, penalty) for rows, one, left in groups])


@dataclass(frozen=True)
class OnePrior(Plan):
    """One randomizer for all rows, optimal for a private prior of their labels ([B23], Algorithm 3).

    Parameters
    ----------
    share : float, optional
        Share of epsilon for the prior, by default by :func:`~optrand.sampling.split_budget`.

    Notes
    -----
    It is unbiased unless the regressor has a finite `bias_penalty`. With 0 it is randomized response on bins.
    """

    for_numbers: ClassVar[bool] = True

    share: float | None = None

    def __post_init__(self) -> None:
        check_share(self.share)

    def train(self, training: Training) -> Any:
        rows = np.arange(training.rows)
        return training.learn_numbers([_release_with_priors(training, [rows], self.share, training.bias_penalty)])


@dataclass(frozen=True)
class PublicClusters(InClusters):
    """A randomizer for each public cluster of rows, optimal for a private prior of the cluster.

    Parameters
    ----------
    clusters : int or callable
        Number of clusters by k-means of the features, or a function of the features that returns an id per row.
    share : float, optional
        Share of epsilon for the prior, by default by :func:`~optrand.sampling.split_budget`, for the cluster's size.
    smallest : int
        Number of rows below which clusters are pooled. Sizes are public.

    Notes
    -----
    The global prior, a small share of each cluster's, is the mixture of the released ones by public size. With
    ``bias_penalty=0`` every cluster has its randomized response on bins.
    """

    for_numbers: ClassVar[bool] = True
    penalises_bias: ClassVar[bool] = True

    clusters: Ids = 16
    share: float | None = None
    smallest: int = 200

    def __post_init__(self) -> None:
        check_share(self.share)
        self._check_clusters()

    def train(self, training: Training) -> Any:
        rows = np.arange(training.rows)
        members = members_of(self.groups(training, rows), rows)
        return training.learn_numbers([_release_with_priors(training, members, self.share, training.bias_penalty)])


class TwoStagePlan(Plan):
    """Plan of two stages with the fields `split`, `first` and `smallest`. Stage 1 is unbiased."""

    for_numbers: ClassVar[bool] = True
    penalises_bias: ClassVar[bool] = True

    split: float
    first: Any
    smallest: int

    def _check_stages(self) -> None:
        check_share(self.split, "split", "the rows")
        check_integer(self.smallest, "smallest", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse a split that leaves a stage with fewer rows than a group needs."""
        first = round(self.split * rows)
        if min(first, rows - first) < self.smallest:
            raise InvalidInput(
                f"of {rows} rows {first} are in stage 1 and {rows - first} in stage 2, expected at least "
                f"smallest={self.smallest} in each: use OnePrior, or another split"
            )

    def train(self, training: Training) -> Any:
        order = training.generator.permutation(training.rows)
        one, two = np.split(order, [round(self.split * training.rows)])
        first = _release_with_priors(training, [one], None, math.inf)
        model = training.learn_numbers([first], estimator=self.first)
        overall = training.priors[0].probabilities
        # Rows of stage 1 have paid for the predictions and the prior, so those of stage 2 may use them.
        groups = self.plan_second_stage(training, two, training.predict(model, two), overall)
        labels = training.numbers
        variance = float(overall @ (labels - overall @ labels) ** 2)
        return training.learn_numbers([first, training.release_optimally(list(groups))], spread=variance)

    def plan_second_stage(
        self, training: Training, rows: Rows, predictions: Floats, overall: Floats
    ) -> Iterator[RowGroup]:
        """Yield the rows of stage 2 with their priors, given stage 1's predictions and prior."""
        raise NotImplementedError


@dataclass(frozen=True)
class TwoStages(TwoStagePlan):
    """Plan in which a first model, without bias, groups the other rows. Groups have randomizers with a bias penalty.

    Parameters
    ----------
    split : float
        Share of the rows in stage 1.
    groups : int, optional
        Largest number of groups of similar predictions in stage 2, by default by its rows.
    group_share : float
        Largest share of epsilon for the histogram of a group. Large groups pay less than small ones.
    first : regressor, optional
        Model of stage 1, by default as the last one.
    smallest : int
        Number of rows below which groups are pooled.

    Notes
    -----
    Stage 1 releases unbiased labels for a private prior of its rows. Its predictions cut the other rows at their
    quantiles. Each group pays for a coarse histogram, projected to the nearest distribution. Within a bin it has the
    shape of stage 1's prior, which is also a small share of it. The last model learns from both stages, each weighted
    by the inverse of its mean noise, bias penalty included, plus the variance of labels.

    Only a finite penalty makes groups worth their epsilon: an unbiased randomizer has, at every label, a variance of
    at least ``d**2 e**epsilon / (e**epsilon - 1)**2``, with the distance `d` to the farther end of all labels, however
    well the prior is known.
    """

    split: float = 0.5
    groups: int | None = None
    group_share: float = 0.05
    first: Any = None
    smallest: int = 200

    def __post_init__(self) -> None:
        check_share(self.group_share, "group_share")
        self._check_stages()
        if self.groups is not None:
            check_integer(self.groups, "groups", 1)

    def plan_second_stage(
        self, training: Training, rows: Rows, predictions: Floats, overall: Floats
    ) -> Iterator[RowGroup]:
        """Yield groups of similar predictions, each with a prior from its private histogram."""
        count = self.groups or min(GROUP.most, max(1, rows.size // GROUP.rows))
        bins = coarse_bins(overall)
        for members in members_of(prediction_groups(predictions, count, self.smallest), rows):
            share = min(math.sqrt(GROUP.bins / members.size) / 2 / training.epsilon, self.group_share)
            split = split_at(training.epsilon, share * training.epsilon)
            shares = training.prior(members, split.prior, bins=bins).projected
            yield RowGroup(members, group_prior(shares, bins, overall), split.labels, training.bias_penalty)


def prediction_groups(predictions: Floats, count: int, smallest: int) -> Groups:
    """Group rows between quantiles of public predictions, into `count` groups, or fewer if quantiles are equal."""
    cuts = np.unique(np.quantile(predictions, np.arange(1, count) / count))
    return pool_small_groups(Groups.of_ids(np.searchsorted(cuts, predictions)), smallest)


def coarse_bins(prior: Floats) -> NDArray[np.intp]:
    """Bin labels: the extreme labels alone, the others in runs of about equal mass under a prior."""
    places = np.searchsorted(np.cumsum(prior), np.linspace(0, 1, GROUP.bins + 1)[1:-1])
    # First labels of the bins: those after equal masses, and those that separate either end.
    firsts = np.unique(np.r_[places[places < prior.size], 1, prior.size - 1])
    found: NDArray[np.intp] = np.searchsorted(firsts[firsts > 0], np.arange(prior.size), side="right")
    return found


def group_prior(shares: Floats, bins: NDArray[np.intp], overall: Floats) -> Floats:
    """Compute the prior of a group by its shares of bins, the global shape within each, and a share of the global."""
    return _mix(shares[bins] * overall / np.bincount(bins, overall)[bins], overall)


@dataclass(frozen=True)
class RowPriors(TwoStagePlan):
    """A randomizer for each row, whose prior is the distribution that the first stage's model predicts for the row.

    It is [G21], Algorithm 3, with the optimal randomizers of [B23] in place of RRWithPrior.

    Parameters
    ----------
    split : float
        Share of the rows in stage 1.
    levels : int
        Largest number of distinct priors: predictions are rounded to the mean of their quantile group.
    first : regressor, optional
        Model of stage 1, by default as the last one.
    smallest : int
        Number of rows that each stage needs.

    Notes
    -----
    Stage 1 is that of :class:`TwoStages`: a private prior of its rows, and unbiased labels. The predicted distribution
    of another row is that prior, tilted exponentially to the row's prediction, with a small share of the prior itself.
    So rows with similar predictions share a randomizer, and all randomizers are solved together.

    *Privacy.* A row of stage 2 pays epsilon for its label and for nothing else: its prior is computed from its public
    features and from the releases of stage 1, which other rows have paid for.

    Up to epsilon ``log(2)`` an unbiased optimum (``bias_penalty=math.inf``) is in closed form,
    :func:`~optrand.closed_forms.gap_response`. The default, a finite penalty, has less error: see :class:`TwoStages`.
    """

    split: float = 0.5
    levels: int = 16
    first: Any = None
    smallest: int = 200

    def __post_init__(self) -> None:
        self._check_stages()
        check_integer(self.levels, "levels", 1)

    def plan_second_stage(
        self, training: Training, rows: Rows, predictions: Floats, overall: Floats
    ) -> Iterator[RowGroup]:
        """Yield the rows of each rounded prediction, with the predicted distribution as their prior."""
        groups = prediction_groups(predictions, self.levels, 1)
        # Rows whose predictions are in one quantile group share the mean prediction, and so a randomizer.
        means = np.bincount(groups.index, predictions) / groups.sizes
        priors = _mix(tilt_priors(overall, training.numbers, means, groups.sizes), overall)
        for members, prior in zip(members_of(groups, rows), priors, strict=True):
            yield RowGroup(members, prior, training.epsilon, training.bias_penalty)
