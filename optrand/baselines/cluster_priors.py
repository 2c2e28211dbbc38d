"""RRWithPrior with a private prior for every public group of rows ([G21], Algorithm 4).

Rows with like features have like labels. The histogram of the labels of each group, with discrete Laplace noise, is a
prior for all of its rows, and each label is randomized with the randomizer that is best for this prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats, frozen, integer
from optrand.base.validation import epsilon as checked_epsilon
from optrand.baselines.groups import Groups, checked_labels
from optrand.closed_forms import RRWithPriorBatch, rr_with_prior
from optrand.model.solution import Solution
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.priors import BudgetSplit, private_prior, split_at

__all__ = ["ClusterPriorRR", "ClusterPriorRelease", "ClusterPriors"]


@dataclass(frozen=True, eq=False)
class ClusterPriors:
    """A prior for each group, safe to publish for the budget that it names.

    Attributes
    ----------
    groups : Groups
    probabilities : (count, K) array
        One prior a group.
    uniform : (count,) array of bool
        The groups of which nothing was learned, since all of their noisy counts were at most zero.
    epsilon : float
        What all of them together spent, in nats.
    """

    groups: Groups
    probabilities: Floats
    uniform: NDArray[np.bool_]
    epsilon: float

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        object.__setattr__(self, "probabilities", frozen(self.probabilities))
        self.uniform.flags.writeable = False

    @classmethod
    def learn(
        cls, labels: ArrayLike, groups: Groups, k: int, epsilon: float, *, source: EntropySource | None = None
    ) -> ClusterPriors:
        """A private prior for every group, all for one epsilon.

        *Proof of privacy.* A row belongs to one group, and groups are public: of two tables that differ in one label
        one histogram differs, and each of them is released with epsilon-DP
        (:func:`optrand.sampling.priors.private_histogram`).

        Parameters
        ----------
        labels : (n,) array of integers
            From 0 to ``k-1``. Private.
        groups : Groups
            The public group of each of the `n` rows.
        k : int
            The number of labels.
        epsilon : float
            In nats.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.

        Returns
        -------
        ClusterPriors

        Raises
        ------
        InvalidInput
            Labels for fewer or more rows than have a group, or outside ``0 ... k-1``; no message repeats one.

        Notes
        -----
        [G21] prints noise ``dlaplace(epsilon / 2)``: probabilities proportional to ``exp(-abs(x) epsilon / 2)``, the
        half because a label that is replaced changes two counts. Here it is drawn exactly. Where all noisy counts of a
        group vanish, its prior is uniform, as Algorithm 4 starts from.

        Examples
        --------
        >>> from optrand.sampling.entropy import SeededEntropy
        >>> groups = Groups.of_ids([0] * 60 + [1] * 40)
        >>> priors = ClusterPriors.learn([2] * 60 + [0] * 40, groups, 3, 1.0, source=SeededEntropy(1))
        >>> priors.probabilities.round(2).tolist()
        [[0.0, 0.06, 0.94], [0.81, 0.19, 0.0]]
        """
        size = integer(k, "k", 1)
        array = checked_labels(labels, size, groups=groups)
        words = SystemEntropy() if source is None else source
        learned = [private_prior(counts, epsilon, source=words) for counts in groups.histograms(array, size)]
        return cls(
            groups,
            np.array([prior.probabilities for prior in learned]),
            np.array([prior.uniform for prior in learned]),
            checked_epsilon(epsilon),
        )

    @property
    def of_rows(self) -> Floats:
        """The prior of every row, shape ``(n, K)``: the `P` of [G21], Algorithm 4."""
        rows: Floats = self.probabilities[self.groups.index]
        return rows


@dataclass(frozen=True, eq=False)
class ClusterPriorRelease:
    """Noisy labels, priors and budget split, from :meth:`ClusterPriorRR.release`.

    Attributes
    ----------
    labels : (n,) array of int
        The noisy labels.
    priors : ClusterPriors
    split : BudgetSplit
        What the priors spent, and what each label.
    """

    labels: NDArray[np.int64]
    priors: ClusterPriors
    split: BudgetSplit

    def __post_init__(self) -> None:
        """Freeze the labels."""
        self.labels.flags.writeable = False

    def solution(self, group: int) -> Solution:
        """The randomizer of the rows of one group, counted from 0, with the dual that proves it the best."""
        return rr_with_prior(self.priors.probabilities[group], self.split.labels)


@dataclass(frozen=True)
class ClusterPriorRR:
    """Learn a prior for each public group, then give every label the randomizer that is best for it.

    Parameters
    ----------
    k : int
        The number of labels ``0 ... k-1``.
    split : BudgetSplit
        The budget of the priors, which all groups share, and that of the labels.

    Notes
    -----
    By composition the release is epsilon-DP with the sum of the two. [G21] gives the priors 0.025 to 0.05, the least
    that does not harm them.

    Examples
    --------
    >>> mechanism = ClusterPriorRR.of_budget(10, 1.0, prior_epsilon=0.05)
    >>> mechanism.split, mechanism.epsilon
    (BudgetSplit(prior=0.05, labels=0.95), 1.0)
    """

    exact: ClassVar[Literal[True]] = True

    k: int
    split: BudgetSplit

    def __post_init__(self) -> None:
        """Check both."""
        integer(self.k, "k", 1)
        checked_epsilon(self.split.prior, "the budget of the priors")
        checked_epsilon(self.split.labels, "the budget of the labels")

    @classmethod
    def of_budget(cls, k: int, epsilon: float, *, prior_epsilon: float) -> ClusterPriorRR:
        """Spend `prior_epsilon` on the priors and what remains of `epsilon`, rounded down, on the labels."""
        return cls(k, split_at(epsilon, prior_epsilon))

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole release, in nats, rounded up."""
        return float_above(Fraction(self.split.prior) + Fraction(self.split.labels))

    def release(self, labels: ArrayLike, groups: Groups, *, source: EntropySource | None = None) -> ClusterPriorRelease:
        """Learn the priors, and randomize every label.

        Parameters
        ----------
        labels : (n,) array of integers
            From 0 to ``k-1``. Private.
        groups : Groups
            The public group of each of the `n` rows.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.

        Returns
        -------
        ClusterPriorRelease

        Raises
        ------
        InvalidInput
            As :meth:`ClusterPriors.learn`.

        Notes
        -----
        Draws are exact, given the priors as floats. Cost ``O(n K log K)``, memory ``O(n K)``.

        Examples
        --------
        >>> from optrand.sampling.entropy import SeededEntropy
        >>> mechanism = ClusterPriorRR.of_budget(3, 2.0, prior_epsilon=0.5)
        >>> groups = Groups.of_ids([0] * 60 + [1] * 40)
        >>> release = mechanism.release([2] * 60 + [0] * 40, groups, source=SeededEntropy(1))
        >>> np.bincount(release.labels[:60], minlength=3).tolist()
        [0, 0, 60]
        """
        words = SystemEntropy() if source is None else source
        priors = ClusterPriors.learn(labels, groups, self.k, self.split.prior, source=words)
        drawn = RRWithPriorBatch(priors.of_rows, self.split.labels).sample(np.asarray(labels), source=words)
        return ClusterPriorRelease(drawn, priors, self.split)
