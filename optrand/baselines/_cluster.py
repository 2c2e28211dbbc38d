r"""Randomizers that learn from public clusters of rows: [E22], Algorithm 1, and [G21], Algorithm 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import decimal_value, float_above, log_bracket, privacy_ratio
from optrand.base._validation import Floats, check_epsilon, check_integer, expect, freeze, freeze_array, rectangular
from optrand.baselines._groups import Groups
from optrand.baselines._randomization import LabelRandomization, check_fraction
from optrand.closed_forms import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.sampling._discrete_noise import discrete_laplace
from optrand.sampling._entropy import EntropySource, SystemEntropy
from optrand.sampling._priors import BudgetSplit, private_prior


@dataclass(frozen=True, eq=False)
class ClusterRelease:
    """Noisy labels of shape (n,), public clusters, and their noisy distributions, from :meth:`ClusterRR.release`."""

    labels: NDArray[np.int64]
    groups: Groups
    distributions: tuple[tuple[Fraction, ...], ...]
    mechanism: ClusterRR

    def __post_init__(self) -> None:
        freeze(self, "labels")

    def channel(self, cluster: int) -> LabelRandomization:
        """Return the channel of the rows of one cluster, counted from 0, given the distributions."""
        return LabelRandomization(self.distributions[cluster], self.mechanism.resampling)

    def likelihood(self) -> Floats:
        """Return the probability of each noisy label under every label, shape (n, K), given the distributions."""
        matrices = np.array([self.channel(cluster).matrix for cluster in range(len(self.groups))])
        rows: Floats = matrices[self.groups.index, self.labels]
        return rows

    def loss_weights(self) -> Floats:
        r"""Compute the modified loss as weights of the losses at all labels, of shape (n, K) with rows of sum 1.

        .. math:: \tilde\ell(h, x, \tilde y) = \sum_{y'} \tilde Q_{x, \beta}^{-1}[y', \tilde y] \, \ell(h, x, y')

        [E22], Algorithm 1, line 30. With ``bias_correction = resampling`` its mean over the resampling is the loss at
        the true label. With 0 it is the loss at the noisy label.
        """
        share = self.mechanism.bias_correction
        inverses = np.array([LabelRandomization(each, share).inverse.T for each in self.distributions])
        weights: Floats = inverses[self.groups.index, self.labels]
        return weights


@dataclass(frozen=True)
class ClusterRR:
    r"""The centralized cluster mechanism of [E22], Algorithm 1, drawn exactly.

    1. To each count of a label in a cluster add discrete Laplace noise with parameter :math:`\sigma`, divide by the
       size of the cluster, clip to :math:`[\tau, 1]`, and restore the sum 1.
    2. Replace each label, with probability :math:`\lambda`, by a draw from the noisy distribution of its cluster.

    Parameters
    ----------
    k : int
        The number of labels ``0 ... k-1``, at least 2.
    threshold : float or Fraction
        :math:`\tau`, from 0 to ``1/k``.
    noise_scale : float or Fraction
        :math:`\sigma`, above 0, in rows.
    resampling : float or Fraction
        :math:`\lambda`, above 0 and at most 1.
    bias_correction : float or Fraction, optional
        :math:`\beta`, from 0 to below 1: equal to the resampling, the default, it removes all bias, and 0 leaves the
        loss as it is.

    Raises
    ------
    InvalidInput
        A parameter is out of its range, or no epsilon is finite.

    Notes
    -----
    *The true epsilon* is :math:`\epsilon = \frac{2}{\sigma} + \log\big(1 + \frac{1 - \lambda}{\lambda\tau}\big)`.

    *Proof.* Neighbours are two tables of the same size that differ in one label. Two counts of its cluster differ, each
    by one, so the noisy histograms differ by a factor of at most :math:`e^{1/\sigma}` twice. Clipping and normalising
    use nothing else. Given the distributions, only one row has another law, and with :math:`q \geq \tau` the largest
    ratio of two probabilities of one output is :math:`(1 - \lambda + \lambda q) / (\lambda q)`. ∎

    *The printed epsilon* of [E22], Theorem 1, has :math:`1/\sigma` for :math:`2/\sigma`: its proof counts the change
    of one entry of the histogram, but a replaced label leaves one and enters another (``docs/errata.md``). Its noise is
    continuous, which floats cannot draw privately. The discrete one has the same ratios at whole counts.

    Examples
    --------
    >>> mechanism = ClusterRR(2, threshold=0.25, noise_scale=4, resampling=0.8)
    >>> round(mechanism.epsilon, 6), round(mechanism.printed_epsilon, 6)
    (1.193147, 0.943147)
    >>> from optrand.sampling import SeededEntropy
    >>> labels, groups = [0, 0, 0, 1, 1, 1], Groups.of_ids([7, 7, 7, 9, 9, 9])
    >>> release = mechanism.release(labels, groups, source=SeededEntropy(1))
    >>> release.labels.size, release.loss_weights().sum(axis=1).round(9).tolist()
    (6, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """

    exact: ClassVar[Literal[True]] = True

    k: int
    threshold: Fraction
    noise_scale: Fraction
    resampling: Fraction
    bias_correction: Fraction

    def __init__(
        self,
        k: int,
        *,
        threshold: float | Fraction,
        noise_scale: float | Fraction,
        resampling: float | Fraction,
        bias_correction: float | Fraction | None = None,
    ) -> None:
        size = check_integer(k, "k", 2)
        scale = check_fraction(noise_scale, "noise_scale")
        if scale <= 0:
            raise InvalidInput(f"noise_scale is {float(scale):g}, expected a number above 0: without noise, no privacy")
        share = check_fraction(resampling, "resampling", most=1)
        floor = _check_threshold(threshold, size)
        if share == 0 or (floor == 0 and share < 1):
            raise InvalidInput(
                f"resampling is {float(share):g} and threshold {float(floor):g}: a label could be identified with "
                "certainty, expected resampling above 0, and threshold above 0 unless resampling is 1"
            )
        name = "resampling" if bias_correction is None else "bias_correction"
        beta = share if bias_correction is None else check_fraction(bias_correction, name, most=1)
        # This decides whether the matrices have inverses, whatever the distributions.
        if beta == 1:
            raise InvalidInput(
                f"{name} is 1: the label-randomization matrix would be singular, since all of its columns are the "
                "distribution of the cluster. Pass bias_correction below 1"
            )
        vars(self).update(k=size, threshold=floor, noise_scale=scale, resampling=share, bias_correction=beta)

    @classmethod
    def for_budget(
        cls, k: int, split: BudgetSplit, *, threshold: float | Fraction, bias_correction: float | Fraction | None = None
    ) -> ClusterRR:
        r"""Spend ``split.prior`` on the distributions and ``split.labels`` on the labels.

        .. math:: \sigma = \frac{2}{\epsilon_1}, \qquad \lambda = \frac{1}{1 + (e^{\epsilon_2} - 1) \tau}

        Examples
        --------
        >>> from optrand.sampling import split_budget
        >>> ClusterRR.for_budget(10, split_budget(1.0, 10, 1000), threshold=0.02).epsilon
        1.0
        """
        floor = _check_threshold(threshold, check_integer(k, "k", 2))
        if floor == 0:
            raise InvalidInput("threshold is 0: no label could be kept at all, expected above 0 and at most 1/k")
        return cls(
            k,
            threshold=floor,
            noise_scale=2 / decimal_value(check_epsilon(split.prior, "the budget of the distributions")),
            resampling=1 / (1 + (privacy_ratio(check_epsilon(split.labels, "the budget of the labels")) - 1) * floor),
            bias_correction=bias_correction,
        )

    @classmethod
    def corollary2(cls, k: int, epsilon: float, *, heterogeneity: float | Fraction) -> ClusterRR:
        r"""Take the parameters of [E22], Corollary 2, whose "O(epsilon)" is 3 epsilon.

        .. math:: \tau = \phi, \quad \beta = 0, \quad \lambda = \frac{1}{1 + (e^\epsilon - 1) \phi}, \quad \sigma =
                  \frac1\epsilon

        Examples
        --------
        >>> mechanism = ClusterRR.corollary2(10, 1.0, heterogeneity=0.05)
        >>> round(mechanism.printed_epsilon, 9), round(mechanism.epsilon, 9)
        (2.0, 3.0)
        """
        rate = check_epsilon(epsilon)
        return cls.for_budget(k, BudgetSplit(2 * rate, rate), threshold=heterogeneity, bias_correction=0)

    @property
    def epsilon(self) -> float:
        """True epsilon, proven in the notes above, rounded up."""
        return float_above(self.exact_epsilon)

    @property
    def exact_epsilon(self) -> Fraction:
        """Rational upper bound of the true epsilon, at most 1e-58 above it, for privacy accounts."""
        return 2 / self.noise_scale + log_bracket(self._ratio)[1]

    @property
    def printed_epsilon(self) -> float:
        """Epsilon of [E22], Theorem 1, for comparison only: the mechanism may exceed it."""
        return float(1 / self.noise_scale + log_bracket(self._ratio)[1])

    @property
    def _ratio(self) -> Fraction:
        kept = 1 - self.resampling
        return 1 + kept / (self.resampling * self.threshold) if kept else Fraction(1)

    def release(self, labels: ArrayLike, groups: Groups, *, source: EntropySource | None = None) -> ClusterRelease:
        """Learn the distributions of the clusters, and randomize every label.

        Parameters
        ----------
        labels : (n,) array of integers
            From 0 to ``k-1``. Private.
        groups : Groups
            The public cluster of each of the `n` rows.
        source : EntropySource, optional
            By default the operating system's, the only choice for a release.
        """
        expect(groups, Groups, "groups", "the clusters of the rows, such as Groups.of_ids(ids)")
        array = groups.check_labels(labels, self.k)
        words = SystemEntropy() if source is None else source
        counts = groups.histograms(array, self.k)
        # Python integers and fractions allow noise of any size, and distributions without rounding.
        noise = np.array(discrete_laplace(self.noise_scale, counts.size, source=words), dtype=object)
        noisy = (counts.astype(object) + noise.reshape(counts.shape)).tolist()
        sizes = groups.sizes.tolist()
        distributions = tuple(
            cluster_distribution([Fraction(count, size) for count in row], self.threshold)
            for row, size in zip(noisy, sizes, strict=True)
        )
        drawn = np.empty(array.size, dtype=np.int64)
        for cluster, distribution in enumerate(distributions):
            rows = np.flatnonzero(groups.index == cluster)
            drawn[rows] = LabelRandomization(distribution, self.resampling).sample(array[rows], source=words)
        return ClusterRelease(drawn, groups, distributions, self)


@dataclass(frozen=True, eq=False)
class ClusterPriors:
    """A prior for each group, which may be published at the stated budget.

    Attributes
    ----------
    probabilities : (count, K) array
        One prior per group.
    uniform : (count,) array of bool
        Groups with the uniform prior, the initial one of Algorithm 4, since no noisy count of theirs was above zero.
    epsilon : float
        Budget of all priors together, in nats.
    """

    groups: Groups
    probabilities: Floats
    uniform: NDArray[np.bool_]
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", freeze_array(self.probabilities))
        freeze(self, "uniform")

    @classmethod
    def learn(
        cls, labels: ArrayLike, groups: Groups, k: int, epsilon: float, *, source: EntropySource | None = None
    ) -> ClusterPriors:
        """Learn a private prior for every group, all for one epsilon, with the arguments of :meth:`ClusterRR.release`.

        *Proof of privacy.* A row belongs to one group, and groups are public: of two tables that differ in one label
        one histogram differs, and each of them is released with epsilon-DP, by discrete Laplace noise.

        Examples
        --------
        >>> from optrand.sampling import SeededEntropy
        >>> groups = Groups.of_ids([0] * 60 + [1] * 40)
        >>> priors = ClusterPriors.learn(
        ...     [2] * 60 + [0] * 40, groups, 3, 1.0, source=SeededEntropy(1)
        ... )
        >>> priors.probabilities.round(2).tolist()
        [[0.0, 0.06, 0.94], [0.81, 0.19, 0.0]]
        """
        size = check_integer(k, "k", 1)
        expect(groups, Groups, "groups", "the clusters of the rows, such as Groups.of_ids(ids)")
        array = groups.check_labels(labels, size)
        words = SystemEntropy() if source is None else source
        learned = [private_prior(counts, epsilon, source=words) for counts in groups.histograms(array, size)]
        return cls(
            groups,
            np.array([prior.probabilities for prior in learned]),
            np.array([prior.uniform for prior in learned]),
            check_epsilon(epsilon),
        )

    @property
    def of_rows(self) -> Floats:
        """The prior of every row, shape ``(n, K)``: the `P` of [G21], Algorithm 4."""
        rows: Floats = self.probabilities[self.groups.index]
        return rows


@dataclass(frozen=True, eq=False)
class ClusterPriorRelease:
    """Noisy labels of shape (n,), priors and budget split, from :meth:`ClusterPriorRR.release`."""

    labels: NDArray[np.int64]
    priors: ClusterPriors
    split: BudgetSplit

    def __post_init__(self) -> None:
        freeze(self, "labels")

    @property
    def batch(self) -> RRWithPriorBatch:
        """The randomizers of all rows, each with the dual that proves it optimal."""
        return RRWithPriorBatch(self.priors.of_rows, self.split.labels)


@dataclass(frozen=True)
class ClusterPriorRR:
    """Randomizer that learns a prior for each public group, and then randomizes every label optimally for its prior.

    Parameters
    ----------
    k : int
        The number of labels ``0 ... k-1``.
    split : BudgetSplit
        The budget of the priors, which all groups share, and that of the labels. Their sum is the epsilon of the
        release. [G21] spends 0.025 to 0.05 on the priors, enough not to harm them.

    Examples
    --------
    >>> from optrand.sampling import split_budget
    >>> mechanism = ClusterPriorRR(10, split_budget(1.0, 10, 1000))
    >>> mechanism.split, mechanism.epsilon
    (BudgetSplit(prior=0.05, labels=0.95), 1.0)
    """

    exact: ClassVar[Literal[True]] = True

    k: int
    split: BudgetSplit

    def __post_init__(self) -> None:
        check_integer(self.k, "k", 1)
        check_epsilon(self.split.prior, "the budget of the priors")
        check_epsilon(self.split.labels, "the budget of the labels")

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole release, in nats, rounded up."""
        return self.split.total

    def release(self, labels: ArrayLike, groups: Groups, *, source: EntropySource | None = None) -> ClusterPriorRelease:
        """Learn the priors, and randomize every label, with the arguments of :meth:`ClusterRR.release`.

        Draws are exact, given the priors as floats. Cost ``O(n K log K)``, memory ``O(n K)``.
        """
        words = SystemEntropy() if source is None else source
        priors = ClusterPriors.learn(labels, groups, self.k, self.split.prior, source=words)
        drawn = RRWithPriorBatch(priors.of_rows, self.split.labels).sample(rectangular(labels, "labels"), source=words)
        return ClusterPriorRelease(drawn, priors, self.split)


def cluster_distribution(shares: Sequence[Fraction], threshold: Fraction) -> tuple[Fraction, ...]:
    r"""Make noisy shares a distribution with no probability below the threshold ([E22], Algorithm 1, lines 5 to 19).

    With :math:`q_y = \max(\tau, \min(1, \cdot))`, :math:`\Delta = 1 - \sum_y q_y` and :math:`\xi_y = q_y - \tau` if
    :math:`\Delta < 0`, else :math:`1 - q_y`,

    .. math:: \tilde q_y = q_y + \frac{\xi_y}{\sum_{y'} \xi_{y'}} \Delta

    Shares have any size and sign. The threshold is at most ``1 / len(shares)``. The result is in fractions: the sum is
    1 and every probability is at least the threshold, without rounding ([E22], Theorem 6). If :math:`\Delta = 0`
    nothing moves, whatever :math:`\xi` is.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> [str(q) for q in cluster_distribution([Fraction(-1, 2), third, third], Fraction(1, 6))]
    ['3/13', '5/13', '5/13']
    """
    clipped = [max(threshold, min(Fraction(1), share)) for share in shares]
    missing = 1 - sum(clipped, Fraction(0))
    if missing == 0:
        return tuple(clipped)
    slacks = [q - threshold if missing < 0 else 1 - q for q in clipped]
    step = missing / sum(slacks, Fraction(0))
    return tuple(q + x * step for q, x in zip(clipped, slacks, strict=True))


def _check_threshold(given: float | Fraction, k: int) -> Fraction:
    floor = check_fraction(given, "threshold")
    # Accept the float nearest to 1/k, which may lie above it.
    if float(floor) == 1 / k:
        floor = Fraction(1, k)
    if not 0 <= floor <= Fraction(1, k):
        raise InvalidInput(
            f"threshold is {float(floor):g}, expected a number from 0 to 1/k = {1 / k:g}: {k} probabilities of at "
            "least the threshold must sum to 1"
        )
    return floor
