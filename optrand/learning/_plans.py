"""Plans: which rows are released, by which randomizer, in which order, and the charge of a row.

Plans of classes are those of [G21], [Z25], [MEMP21] and [E22]. Plans of numbers have randomizers that are each optimal
for its prior ([B23]). ``docs/learning.md`` has tables of all plans and of what a row pays, which is in one stage, one
group and one cluster.

Shares are rounded so that the exact sum of the two floats is at most epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from optrand.base._arithmetic import decimal_value, privacy_ratio
from optrand.base._validation import Floats, check_integer, check_real, expect
from optrand.baselines._cluster import ClusterRR
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerPrivacy, PeerToPeer
from optrand.baselines._vector import Alibi as LaplaceAlibi
from optrand.baselines._vector import LatticeAlibi, UnaryBits
from optrand.closed_forms._batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning._private_labels import LabelRelease
from optrand.learning._targets import BitModel
from optrand.learning._tilting import tilt_priors
from optrand.learning._training import RowGroup, Rows, Training
from optrand.sampling._priors import BudgetSplit, split_at, split_budget

Ids = int | Callable[[Any], Any]
"""Number of clusters by k-means of the features, or a function of the features that gives each row an id."""


class Plan:
    """How an estimator comes by its releases; the base of all plans.

    Attributes
    ----------
    vectors : bool
        Whether it releases noisy vectors, rather than noisy labels.
    trains : bool
        Whether it trains the estimator.
    for_numbers : bool
        Whether it is a plan of :class:`LabelDPRegressor`, rather than of :class:`LabelDPClassifier`.
    prices_bias : bool
        Whether a regressor that states no price of squared bias has one.
    """

    for_numbers: ClassVar[bool] = False
    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    prices_bias: ClassVar[bool] = False

    @property
    def informed(self) -> bool:
        """Whether its models begin with priors of clusters, which the likelihood of labels does not contain."""
        return False

    def check(self, rows: int, k: int) -> None:
        """Refuse sizes that the plan cannot work with, before anything is drawn."""

    def penalty(self, rows: int) -> float:
        """Return the price of squared bias of a regressor that states none.

        It is that of a model with as many parameters as the root of its rows: rows for each parameter.
        """
        return math.sqrt(rows) if self.prices_bias else math.inf

    def train(self, training: Training) -> Any:
        """Release labels, and return a model of them."""
        raise NotImplementedError


# ------------------------------------------------------------------------------------------------------ public clusters


class _InClusters(Plan):
    """Plan with the fields `clusters` and `smallest`."""

    clusters: Ids
    smallest: int

    def _check_clusters(self) -> None:
        check_integer(self.smallest, "smallest", 1)
        if callable(self.clusters):
            return
        if not isinstance(self.clusters, int | np.integer):
            raise InvalidInput(
                f"clusters is of type {type(self.clusters).__name__}, expected their number, or a function that "
                "returns an id for each row of features"
            )
        check_integer(self.clusters, "clusters", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than one cluster needs."""
        if rows < self.smallest:
            raise InvalidInput(
                f"{rows} rows are fewer than smallest={self.smallest}, which a histogram needs: lower it"
            )

    def ids(self, training: Training, rows: Rows) -> Groups:
        """Return the public clusters of some rows."""
        features = training.features(rows)
        if not callable(self.clusters):
            return Groups.by_k_means(features, self.clusters, seed=training.seed)
        groups = Groups.of_ids(self.clusters(features))
        if groups.n != rows.size:
            raise InvalidInput(f"clusters gave {groups.n} ids for {rows.size} rows of features, expected one per row")
        return groups

    def groups(self, training: Training, rows: Rows) -> Groups:
        """Return the public clusters of some rows, small ones pooled."""
        return pool_small_groups(self.ids(training, rows), self.smallest)


def pool_small_groups(groups: Groups, smallest: int) -> Groups:
    """Pool groups of fewer than `smallest` rows, with the next larger one if that is not enough."""
    order = np.argsort(groups.sizes, kind="stable")
    together = np.cumsum(groups.sizes[order])
    small = int((groups.sizes < smallest).sum())
    if small == 0:
        return groups
    # All small groups, and further ones until the pool is large enough.
    last = max(small, int(np.searchsorted(together, smallest)) + 1)
    names = np.arange(len(groups))
    names[order[:last]] = order[0]
    return Groups.of_ids(names[groups.index], names=[int(one) for one in dict.fromkeys(names.tolist())])


def _members(groups: Groups, rows: Rows) -> list[Rows]:
    return [rows[groups.index == group] for group in range(len(groups))]


def _check_share(share: object, name: str = "share", of: str = "epsilon") -> None:
    if share is not None and not 0 < check_real(share, name) < 1:
        raise InvalidInput(f"{name} is {share}, expected a share of {of} between 0 and 1")


# --------------------------------------------------------------------------------- stages and priors of clusters: [G21]


@dataclass(frozen=True)
class DomainPrior(_InClusters):
    """A private prior for each public cluster of rows ([G21], Algorithm 4), and its RRWithPrior for every label.

    Parameters
    ----------
    clusters : int or callable
        Clusters by k-means of the features; or a function of the features that gives each row an id.
    share : float
        Share of epsilon for the priors, above 0 and below 1.
    smallest : int
        Rows below which clusters are pooled, a choice by public sizes.
    least : int
        Labels that a randomizer keeps at least, 1 or 2. With 1, as [G21] has it, a row whose prior is sure of its label
        always releases that label, and nothing of its own.

    Notes
    -----
    A row pays ``share * epsilon`` for the histogram of its cluster and the rest of epsilon for its label. The
    likelihood begins with the priors, which are paid for.

    Examples
    --------
    >>> DomainPrior(50, share=0.1)
    DomainPrior(clusters=50, share=0.1, smallest=50, least=2)
    """

    informed = True

    clusters: Ids = 16
    share: float = 0.05
    smallest: int = 50
    least: int = 2

    def __post_init__(self) -> None:
        """Check all four."""
        _check_share(self.share)
        self._check_clusters()
        check_integer(self.least, "least", 1, 2)

    def priors(self, training: Training, rows: Rows) -> tuple[Floats, float]:
        """Release a prior for each of some rows, shape ``(m, K)``; return it with the rest of epsilon."""
        split = split_at(training.epsilon, self.share * training.epsilon)
        groups = self.groups(training, rows)
        table = np.empty((rows.size, training.k))
        for group, members in enumerate(_members(groups, rows)):
            table[groups.index == group] = training.prior(members, split.prior).probabilities
        return table, split.labels

    def train(self, training: Training) -> Any:
        """Train in one stage, with the priors of the clusters."""
        return Stages(domain_prior=self).train(training)


@dataclass(frozen=True)
class Stages(Plan):
    """Multi-stage training, LP-MST: earlier stages' model is the prior of a row's randomizer ([G21], Algorithm 3).

    Parameters
    ----------
    n : int
        Stages: 1, 2 or 3 are LP-1ST, LP-2ST and LP-3ST.
    split : tuple of float, optional
        Shares of the rows of each stage, which sum to 1; by default 60 : 40, and 40 : 30 : 30.
    temperature : float
        Temperature of the softmax of beliefs, ``p**(1 / temperature)``. The likelihood needs none; [G21] sharpens, with
        less than 1, what cross entropy on noisy labels has blurred.
    least : int
        Labels that a randomizer keeps at least, 1 or 2: with 1 an overconfident model wastes rows. The first stage has
        that of its `domain_prior`, if there is one.
    reuse : bool
        Whether later stages train on the releases of earlier ones.
    top_k_filter : bool
        [G21]: of these leave out rows whose noisy label is not among the model's likeliest.
    domain_prior : DomainPrior, optional
        Prior of the first stage, instead of the uniform one.

    Notes
    -----
    Each row is in one stage and pays epsilon there; with a `domain_prior` a row of the first stage pays both parts of
    it. The split is at random, by the classifier's `random_state`, and looks at no label.

    Examples
    --------
    >>> [part.size for part in Stages(2).parts(10, np.random.default_rng(0))]
    [6, 4]
    """

    n: int = 1
    split: tuple[float, ...] | None = None
    temperature: float = 1.0
    least: int = 2
    reuse: bool = True
    top_k_filter: bool = False
    domain_prior: DomainPrior | None = None

    def __post_init__(self) -> None:
        """Check the parameters that need no rows."""
        check_integer(self.n, "the number of stages", 1)
        check_integer(self.least, "least", 1, 2)
        if check_real(self.temperature, "temperature") <= 0:
            raise InvalidInput(f"temperature is {self.temperature:g}, expected a number above 0")
        expected = f"{self.n} numbers above 0 that sum to 1, one for each stage"
        if self.split is not None:
            expect(self.split, (tuple, list), "split", expected)
        shares = [check_real(share, "a share of split") for share in self.shares]
        if len(shares) != self.n or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
            raise InvalidInput(f"split is {self.split}, expected {expected}")

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the rows of each stage."""
        default = {2: (0.6, 0.4), 3: (0.4, 0.3, 0.3)}.get(self.n, (1 / self.n,) * self.n)
        return tuple(self.split or default)

    @property
    def informed(self) -> bool:
        """Whether the first stage has a domain prior."""
        return self.domain_prior is not None

    def parts(self, rows: int, generator: np.random.Generator) -> list[Rows]:
        """Split rows into stages at random."""
        ends = np.rint(np.cumsum((0.0, *self.shares)) * rows).astype(np.intp)
        order = generator.permutation(rows)
        return [order[low:high] for low, high in itertools.pairwise(ends)]

    def check(self, rows: int, k: int) -> None:
        """Refuse a split that leaves a stage without rows."""
        empty = [stage + 1 for stage, part in enumerate(self.parts(rows, np.random.default_rng(0))) if not part.size]
        if empty:
            raise InvalidInput(f"stage {empty[0]} of {self.n} would have none of the {rows} rows: take fewer stages")
        if self.domain_prior is not None:
            self.domain_prior.check(int(self.shares[0] * rows), k)

    def train(self, training: Training) -> Any:
        """Train stage after stage."""
        model: Any = None
        held: list[LabelRelease] = []
        for rows in self.parts(training.rows, training.generator):
            # Priors are those that the stage before predicts, those of clusters, which are paid for, or uniform ones.
            budget, least, beliefs = training.epsilon, self.least, None
            if model is not None:
                priors = temper(training.beliefs(model, rows), self.temperature)
            elif self.domain_prior is not None:
                beliefs, budget = self.domain_prior.priors(training, rows)
                priors, least = beliefs, self.domain_prior.least
            else:
                priors = np.full((rows.size, training.k), 1 / training.k)
            randomizer = RRWithPriorBatch(keep_two_labels(priors, budget) if least == 2 else priors, budget)
            release = training.release(rows, randomizer)
            old = [self._filter(training, one, model, randomizer) for one in held] if self.reuse else []
            model = training.learn([*(one for one in old if len(one)), release], before=model, beliefs=beliefs)
            held.append(release)
        return model

    def _filter(
        self, training: Training, release: LabelRelease, model: Any, randomizer: RRWithPriorBatch
    ) -> LabelRelease:
        """Leave out rows whose noisy label is not among the model's likeliest, as many as the new randomizers keep."""
        if not self.top_k_filter:
            return release
        top = max(1, round(float(randomizer.k_star.mean())))
        beliefs = training.beliefs(model, release.rows)
        likeliest = np.argsort(-beliefs, axis=1, kind="stable")[:, :top]
        return select_rows(release, (likeliest == release.values[:, np.newaxis]).any(axis=1))


def temper(beliefs: Floats, temperature: float) -> Floats:
    """Raise beliefs to the power ``1 / temperature``, each row a distribution."""
    powers = (beliefs / beliefs.max(axis=1, keepdims=True)) ** (1 / temperature)
    powers[powers < np.finfo(np.float64).tiny] = 0.0
    rows: Floats = powers / powers.sum(axis=1, keepdims=True)
    rows[rows < np.finfo(np.float64).tiny] = 0.0
    return rows


def keep_two_labels(priors: Floats, epsilon: float) -> Floats:
    """Raise the second-largest prior just above the threshold ``exp(-epsilon)`` at which RRWithPrior keeps a label."""
    lone = np.flatnonzero(RRWithPriorBatch(priors, epsilon).k_star == 1)
    lifted = np.array(priors)
    first, second = np.argsort(-priors[lone], axis=1, kind="stable")[:, :2].T
    # A billionth above the threshold, at which keeping one label is exactly as good.
    lifted[lone, second] = lifted[lone, first] * np.exp(-epsilon) * (1 + 1e-9)
    rows: Floats = lifted / lifted.sum(axis=1, keepdims=True)
    return rows


def select_rows(release: LabelRelease, kept: NDArray[np.bool_]) -> LabelRelease:
    """Return some rows of a release by RRWithPrior, chosen by public data."""
    batch = release.randomizer
    randomizer = RRWithPriorBatch(batch.priors[kept], batch.epsilon) if kept.any() else batch
    return LabelRelease(release.rows[kept], release.values[kept], randomizer, release.domain, release.spent)


# --------------------------------------------------------------------------------------- noisy vectors: [Z25], [MEMP21]


class _OneRandomizer(Plan):
    """One release of all rows, by a randomizer of noisy vectors."""

    vectors: ClassVar[bool] = True

    def randomizer(self, k: int, epsilon: float) -> Any:
        """Return the randomizer of `k` classes."""
        raise NotImplementedError

    def release(self, training: Training) -> LabelRelease:
        """Release the labels of all rows."""
        return training.release(np.arange(training.rows), self.randomizer(training.k, training.epsilon))

    def train(self, training: Training) -> Any:
        """Train on one release of all rows."""
        return training.learn([self.release(training)])


@dataclass(frozen=True)
class Bits(_OneRandomizer):
    """Random bits of the one-hot vector of every label ([Z25])."""

    def randomizer(self, k: int, epsilon: float) -> UnaryBits:
        """Return the bits of `k` classes."""
        return UnaryBits(k, epsilon)


@dataclass(frozen=True)
class Alibi(_OneRandomizer):
    """One-hot vectors with Laplace noise ([MEMP21]), by default exact on a lattice.

    Parameters
    ----------
    steps : int or None
        Steps of the lattice between 0 and 1. None draws in floats, which the labels must allow (`allow_inexact`).
    """

    steps: int | None = 16

    def __post_init__(self) -> None:
        """Check the steps."""
        if self.steps is not None:
            check_integer(self.steps, "steps", 1, 256)

    def randomizer(self, k: int, epsilon: float) -> LaplaceAlibi | LatticeAlibi:
        """Return the noise on vectors of `k` classes."""
        return LaplaceAlibi(k, epsilon) if self.steps is None else LatticeAlibi(k, epsilon, self.steps)


@dataclass(frozen=True)
class NearestNeighbour(Bits):
    """The nearest-neighbour learner of [Z25]: the bits of the nearest rows on average, and the largest wins.

    Parameters
    ----------
    neighbours : int
        How many; 200 in the paper. No estimator is trained.
    """

    trains: ClassVar[bool] = False

    neighbours: int = 200

    def __post_init__(self) -> None:
        """Check the number."""
        check_integer(self.neighbours, "neighbours", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than neighbours."""
        if rows < self.neighbours:
            raise InvalidInput(f"{rows} rows have no {self.neighbours} neighbours: ask for fewer")

    def train(self, training: Training) -> BitModel:
        """Release the bits of all rows. Features that have no neighbours are refused before the draw."""
        index = NearestNeighbors(n_neighbors=self.neighbours).fit(training.X)
        release = self.release(training)
        return BitModel(partial(_mean_bits, index, release.values.astype(np.float64)), release.randomizer)


def _mean_bits(index: NearestNeighbors, bits: Floats, X: Any) -> Floats:
    means: Floats = bits[index.kneighbors(X, return_distance=False)].mean(axis=1)
    return means


# -------------------------------------------------------------------------------------------- clusters and peers: [E22]


@dataclass(frozen=True)
class Clusters(_InClusters):
    """[E22], Algorithm 1: labels are replaced, with some probability, by ones from the noisy shares of their cluster.

    Parameters
    ----------
    clusters : int or callable
        As in :class:`DomainPrior`.
    heterogeneity : float, optional
        The paper's phi, above 0. None measures it, by a model of a pilot's labels: the mean distance, over rows, of its
        beliefs from their average in the cluster.
    share : float
        Share of epsilon for the shares of labels; [E22], Corollary 2, has two thirds.
    smallest : int
        As in :class:`DomainPrior`.
    pilot : float
        Share of the rows that are released by randomized response to measure phi.

    Notes
    -----
    The threshold of noisy shares is the smaller of phi and ``1 / K``, at which clusters are of no use: labels are then
    replaced by uniform ones. The likelihood begins with the shares. A row pays ``share * epsilon`` for the shares of
    its cluster and what is left of epsilon for its label; a row of the pilot pays epsilon there, and is in no cluster.
    The account has the true cost, twice the printed one for the shares: see :class:`~optrand.baselines.ClusterRR`. With
    ``target="debiased"`` it is [E22], Algorithm 1, with all bias removed (line 30), with ``"labels"`` Corollary 2.
    """

    informed = True

    clusters: Ids = 16
    heterogeneity: float | None = 0.03
    share: float = 0.4
    smallest: int = 50
    pilot: float = 0.2

    def __post_init__(self) -> None:
        """Check all five."""
        _check_share(self.share)
        self._check_clusters()
        if self.heterogeneity is not None and check_real(self.heterogeneity, "heterogeneity") <= 0:
            raise InvalidInput(f"heterogeneity is {self.heterogeneity:g}, expected a distance above 0")
        _check_share(self.pilot, "pilot", "the rows")

    def check(self, rows: int, k: int) -> None:
        """Refuse fewer rows than the pilot and one cluster need."""
        pilot = self._pilot_rows(rows)
        if self.heterogeneity is None and pilot == 0:
            raise InvalidInput(f"a pilot of {self.pilot:g} of {rows} rows has none: raise it, or pass heterogeneity=")
        super().check(rows - pilot, k)

    def _pilot_rows(self, rows: int) -> int:
        return 0 if self.heterogeneity is not None else round(self.pilot * rows)

    def train(self, training: Training) -> Any:
        """Train on one release of the rows in clusters, and on that of the pilot, if there is one."""
        order = training.generator.permutation(training.rows)
        pilot, rows = np.split(order, [self._pilot_rows(training.rows)])
        # One clustering of all rows: rows of the pilot have the shares of their clusters, too.
        clusters = self.ids(training, order).index
        groups = pool_small_groups(Groups.of_ids(clusters[pilot.size :]), self.smallest)
        phi, first = self.heterogeneity, []
        if phi is None:
            uniform = np.full((pilot.size, training.k), 1 / training.k)
            first = [training.release(pilot, RRWithPriorBatch(uniform, training.epsilon))]
            phi = heterogeneity(training.beliefs(training.learn(first), rows), groups)
        release = training.release(rows, self._mechanism(training.epsilon, training.k, phi), groups=groups)
        of_group = np.array(release.randomizer.distributions, dtype=np.float64)
        # A cluster that is the pilot's alone has the shares of all.
        shares = np.tile(groups.sizes @ of_group / rows.size, (clusters.max() + 1, 1))
        shares[clusters[pilot.size :]] = of_group[groups.index]
        return training.learn([*first, release], beliefs=shares[clusters])

    def _mechanism(self, epsilon: float, k: int, phi: float) -> ClusterRR:
        # Below a thousandth of 1 / k the effect of phi was measured to be negligible.
        threshold = min(max(phi, 1e-3 / k), 1 / k)
        split = split_at(epsilon, self.share * epsilon)
        # Rounding may cost a little more than epsilon: lower the budget of the labels, float by float.
        while (made := ClusterRR.for_budget(k, split, threshold=threshold)).epsilon > epsilon:
            split = BudgetSplit(split.prior, float(np.nextafter(split.labels, 0.0)))
        return made


def heterogeneity(beliefs: Floats, groups: Groups) -> float:
    r"""Compute the heterogeneity of clusters ([E22], Definition 1) by a model's probabilities for their rows.

    .. math:: \phi = \frac1n \sum_i \sum_y |p(y \mid x_i) - \bar p(y \mid c_i)|
    """
    sums = np.zeros((len(groups), beliefs.shape[1]))
    np.add.at(sums, groups.index, beliefs)
    means = sums / groups.sizes[:, np.newaxis]
    return float(np.abs(beliefs - means[groups.index]).sum(axis=1).mean())


@dataclass(frozen=True)
class Peers(_InClusters):
    """Labels of two classes that peers exchange within public clusters, with no server ([E22], Algorithm 2).

    Parameters
    ----------
    clusters : int or callable
        As in :class:`DomainPrior`.
    rate : float
        Share of the rows that send a label on, the paper's theta, above 0 and at most 1.
    smallest : int
        As in :class:`DomainPrior`.

    Notes
    -----
    Every row pays epsilon, that of the flip of its label, whether or not a label that was copied from it is sent. This
    holds towards anybody. A learner who sees no exchange has the smaller epsilon of :meth:`towards_learner`.

    Examples
    --------
    >>> Peers(8).mechanism(1.0)
    PeerToPeer(flip=0.26894142136999516, rate=1.0)
    """

    clusters: Ids = 16
    rate: float = 1.0
    smallest: int = 50

    def __post_init__(self) -> None:
        """Check all three."""
        self._check_clusters()
        if not 0 < check_real(self.rate, "rate") <= 1:
            raise InvalidInput(f"rate is {self.rate:g}, expected a share above 0 and at most 1")

    def check(self, rows: int, k: int) -> None:
        """Refuse more than two classes, and fewer rows than one cluster needs."""
        if k != 2:
            raise InvalidInput(f"peers exchange labels of 2 classes, not of {k}: take Clusters")
        super().check(rows, k)

    def mechanism(self, epsilon: float) -> PeerToPeer:
        """Return the exchange whose flips, as they are rounded, cost at most epsilon."""
        flip = float(1 / (1 + privacy_ratio(epsilon)))
        # The float nearest to a flip may cost a little more than epsilon: move it towards 1/2, where epsilon is 0.
        while (made := PeerToPeer(flip, self.rate)).exact_epsilon > decimal_value(epsilon):
            flip = float(np.nextafter(flip, 0.5))
        return made

    def train(self, training: Training) -> Any:
        """Train on one exchange of all rows."""
        rows = np.arange(training.rows)
        groups = self.groups(training, rows)
        return training.learn([training.release(rows, self.mechanism(training.epsilon), groups=groups)])

    @staticmethod
    def towards_learner(release: LabelRelease, delta: float) -> PeerPrivacy:
        """Compute epsilon at a delta towards a learner who sees no exchange: the largest of all clusters.

        It is not on the account, which trusts no peer.

        Examples
        --------
        >>> from optrand.learning import PrivateLabels
        >>> labels = PrivateLabels([0, 1] * 15, 2.0, [0, 1])
        >>> release = labels.release(
        ...     slice(None), PeerToPeer(0.2, 0.5), groups=Groups.of_ids([0] * 10 + [1] * 20)
        ... )
        >>> (
        ...     round(float(labels.spent.epsilon), 4),
        ...     round(Peers.towards_learner(release, 1e-4).epsilon, 4),
        ... )
        (1.3863, 0.6599)
        """
        if release.groups is None or not isinstance(release.randomizer, PeerToPeer):
            raise InvalidInput("the release is not an exchange of peers")
        found = [release.randomizer.at_delta(delta, size) for size in np.unique(release.groups.sizes).tolist()]
        return max(found, key=lambda privacy: privacy.epsilon)


# ------------------------------------------------------------------------------------------------------- numbers: [B23]


@dataclass(frozen=True)
class GroupOptions:
    """Numbers that the plans of regressors share."""

    bins: int = 10  # of a group's histogram, between the two extreme labels
    global_share: float = 0.005  # of the global prior in that of a group or row: it bounds the cost of a wrong one
    rows: int = 2000  # of stage 2 for each group, up to the most groups
    most: int = 8  # groups


GROUP = GroupOptions()


def default_plan(rows: int, epsilon: float) -> Plan:
    """Return two stages if there are rows for two groups and epsilon is below 2, else one prior; all of it is public.

    The bound of epsilon was set after runs on weeks worked, 60,000 rows, and has been tried on nothing else. There, in
    100 seeds, the excess error of two stages over that of one prior was 0.74 and 0.77 at epsilon 0.5, 0.89 and 0.84 at
    1, and 1.05 and 0.83 at 2 (ridge and boosting).
    """
    return TwoStages() if rows >= 4 * GROUP.rows and epsilon < 2.0 else OnePrior()


def _mix(prior: Floats, overall: Floats) -> Floats:
    """Mix a small share of the global prior into others, so that no label is without weight."""
    mixed = (1 - GROUP.global_share) * prior + GROUP.global_share * overall
    rows: Floats = mixed / mixed.sum(axis=-1, keepdims=True)
    return rows


def _release_with_priors(
    training: Training, members: Sequence[Rows], share: float | None, penalty: float
) -> list[LabelRelease]:
    """Release a private prior of each group of rows, and then its labels by the optimal randomizer for it.

    `share` of epsilon is for the prior; None splits by the rule of :func:`~optrand.sampling._priors.split_budget`. The
    mixture of all priors by public size is a small share of each.
    """
    epsilon, sizes = training.epsilon, [rows.size for rows in members]
    splits = [
        split_budget(epsilon, training.k, size) if share is None else split_at(epsilon, share * epsilon)
        for size in sizes
    ]
    priors = [training.prior(rows, split.prior).probabilities for rows, split in zip(members, splits, strict=True)]
    overall = np.average(priors, axis=0, weights=sizes)
    return training.release_optimally(
        [
            RowGroup(rows, _mix(prior, overall), split.labels, penalty)
            for rows, prior, split in zip(members, priors, splits, strict=True)
        ]
    )


@dataclass(frozen=True)
class OnePrior(Plan):
    """One randomizer for all rows, optimal for a private prior of their labels ([B23], Algorithm 3).

    Parameters
    ----------
    share : float, optional
        Share of epsilon for the prior; by default by :func:`~optrand.sampling._priors.split_budget`.

    Notes
    -----
    Unbiased unless the regressor has a finite `bias_penalty`; with 0 it is randomized response on bins.
    """

    for_numbers: ClassVar[bool] = True

    share: float | None = None

    def __post_init__(self) -> None:
        """Check the share."""
        _check_share(self.share)

    def train(self, training: Training) -> Any:
        """Train on one release of all rows."""
        rows = np.arange(training.rows)
        return training.learn_numbers([_release_with_priors(training, [rows], self.share, training.bias_penalty)])


@dataclass(frozen=True)
class PublicClusters(_InClusters):
    """A randomizer for each public cluster of rows, optimal for a private prior of the cluster.

    Parameters
    ----------
    clusters : int or callable
        Clusters by k-means of the features; or a function of the features that gives each row an id.
    share : float, optional
        Share of epsilon for the prior; by default by :func:`~optrand.sampling._priors.split_budget`, for the cluster's
        size.
    smallest : int
        Rows below which clusters are pooled, a choice by public sizes.

    Notes
    -----
    The global prior, a small share of each cluster's, is the mixture of the released ones by public size. With
    ``bias_penalty=0`` every cluster has its randomized response on bins.
    """

    for_numbers: ClassVar[bool] = True
    prices_bias: ClassVar[bool] = True

    clusters: Ids = 16
    share: float | None = None
    smallest: int = 200

    def __post_init__(self) -> None:
        """Check all three."""
        _check_share(self.share)
        self._check_clusters()

    def train(self, training: Training) -> Any:
        """Train on one release of all rows."""
        rows = np.arange(training.rows)
        members = _members(self.groups(training, rows), rows)
        return training.learn_numbers([_release_with_priors(training, members, self.share, training.bias_penalty)])


class TwoStagePlan(Plan):
    """Plan of two stages with the fields `split`, `first` and `smallest`; stage 1 is unbiased."""

    for_numbers: ClassVar[bool] = True
    prices_bias: ClassVar[bool] = True

    split: float
    first: Any
    smallest: int

    def _check_stages(self) -> None:
        _check_share(self.split, "split", "the rows")
        check_integer(self.smallest, "smallest", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse a split that leaves a stage with fewer rows than a group needs."""
        first = round(self.split * rows)
        if min(first, rows - first) < self.smallest:
            raise InvalidInput(
                f"of {rows} rows {first} are in stage 1 and {rows - first} in stage 2, expected at least "
                f"smallest={self.smallest} in each: take OnePrior, or another split"
            )

    def train(self, training: Training) -> Any:
        """Train stage 1 on unbiased labels, ask the other rows by its predictions, and train on all."""
        order = training.generator.permutation(training.rows)
        one, two = np.split(order, [round(self.split * training.rows)])
        first = _release_with_priors(training, [one], None, math.inf)
        model = training.learn_numbers([first], estimator=self.first)
        overall = training.priors[0].probabilities
        # Rows of stage 1 have paid for the predictions and the prior, which those of stage 2 may therefore use.
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
    """A first model without bias groups the remaining rows; each group has a randomizer with a price on bias.

    Parameters
    ----------
    split : float
        Share of the rows in stage 1.
    groups : int, optional
        Groups of like predictions in stage 2, at most; by default by its rows.
    group_share : float
        Share of epsilon, at most, for the histogram of a group; large groups pay less.
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
    group_share: float = 0.05
    first: Any = None
    smallest: int = 200

    def __post_init__(self) -> None:
        """Check the parameters that need no rows."""
        _check_share(self.group_share, "group_share")
        self._check_stages()
        if self.groups is not None:
            check_integer(self.groups, "groups", 1)

    def plan_second_stage(
        self, training: Training, rows: Rows, predictions: Floats, overall: Floats
    ) -> Iterator[RowGroup]:
        """Yield each group of like predictions, with the prior of its histogram, which is released."""
        count = self.groups or min(GROUP.most, max(1, rows.size // GROUP.rows))
        bins = coarse_bins(overall)
        for members in _members(prediction_groups(predictions, count, self.smallest), rows):
            share = min(math.sqrt(GROUP.bins / members.size) / 2 / training.epsilon, self.group_share)
            split = split_at(training.epsilon, share * training.epsilon)
            shares = training.prior(members, split.prior, bins=bins).projected
            yield RowGroup(members, group_prior(shares, bins, overall), split.labels, training.bias_penalty)


def prediction_groups(predictions: Floats, count: int, smallest: int) -> Groups:
    """Group rows between quantiles of public predictions, at most `count` groups; equal quantiles bound one group."""
    cuts = np.unique(np.quantile(predictions, np.arange(1, count) / count))
    return pool_small_groups(Groups.of_ids(np.searchsorted(cuts, predictions)), smallest)


def coarse_bins(prior: Floats) -> NDArray[np.intp]:
    """Bin labels: the extreme labels alone, the others in runs of about equal mass under a prior."""
    places = np.searchsorted(np.cumsum(prior), np.linspace(0, 1, GROUP.bins + 1)[1:-1])
    # First labels of the bins: those after equal masses, and those that leave either end alone.
    firsts = np.unique(np.r_[places[places < prior.size], 1, prior.size - 1])
    found: NDArray[np.intp] = np.searchsorted(firsts[firsts > 0], np.arange(prior.size), side="right")
    return found


def group_prior(shares: Floats, bins: NDArray[np.intp], overall: Floats) -> Floats:
    """Compute the prior of a group: its shares of bins, the global shape within each, and a share of the global prior.

    `bins` has the bin of each label; the global prior is positive.
    """
    return _mix(shares[bins] * overall / np.bincount(bins, overall)[bins], overall)


@dataclass(frozen=True)
class RowPriors(TwoStagePlan):
    """A randomizer for each row: its prior is the distribution that the first stage's model predicts for the row.

    It is [G21], Algorithm 3, with the optimal randomizers of [B23] in place of RRWithPrior.

    Parameters
    ----------
    split : float
        Share of the rows in stage 1.
    levels : int
        Distinct priors at most: predictions are rounded to the mean of their quantile group.
    first : regressor, optional
        Model of stage 1, by default as the last one.
    smallest : int
        Rows that each stage needs.

    Notes
    -----
    Stage 1 is that of :class:`TwoStages`: a private prior of its rows, and unbiased labels. The predicted distribution
    of another row is that prior, tilted to the row's prediction (:mod:`optrand.learning._tilting`), with a small share
    of the prior itself. So rows with like predictions share a randomizer, and all of these are solved together.

    *Privacy.* A row of stage 2 pays epsilon for its label and for nothing else: its prior is computed from its public
    features and from what stage 1 released, which other rows have paid for.

    Up to epsilon ``log(2)`` an unbiased optimum (``bias_penalty=math.inf``) is in closed form,
    :func:`~optrand.closed_forms.gap_response`. A price on bias, the default, is worth more: see :class:`TwoStages`.

    Examples
    --------
    >>> RowPriors(levels=32)
    RowPriors(split=0.5, levels=32, first=None, smallest=200)
    """

    split: float = 0.5
    levels: int = 16
    first: Any = None
    smallest: int = 200

    def __post_init__(self) -> None:
        """Check the parameters that need no rows."""
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
        for members, prior in zip(_members(groups, rows), priors, strict=True):
            yield RowGroup(members, prior, training.epsilon, training.bias_penalty)
