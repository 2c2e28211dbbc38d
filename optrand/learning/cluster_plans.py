"""Plans that learn from public clusters of rows: priors ([G21], Algorithm 4), a curator, and peers ([E22])."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from optrand.base.arithmetic import decimal_value, privacy_ratio
from optrand.base.validation import Floats, integer, real
from optrand.baselines.cluster import ClusterRR
from optrand.baselines.groups import Groups
from optrand.baselines.peer_to_peer import PeerToPeer
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning.beliefs import at_least_two
from optrand.learning.release import Rows
from optrand.sampling.priors import BudgetSplit, split_at

if TYPE_CHECKING:
    from optrand.learning.training import Training

__all__ = ["Clusters", "DomainPrior", "Peers", "clustered", "heterogeneity", "pooled"]

LEAST_THRESHOLD = 1e-3
"""Of the threshold of noisy shares, in units of ``1 / K``, where phi is measured to be next to nothing."""


@dataclass(frozen=True)
class DomainPrior:
    """A private prior for each public cluster of rows, and its optimal randomizer for every label.

    Parameters
    ----------
    clusters : int or callable
        Clusters by k-means of the features; or a function of the features that gives each row an id.
    share : float
        Of epsilon for the priors, above 0 and below 1.
    smallest : int
        Rows below which clusters are pooled, a choice by public sizes.
    least : int
        Labels that a randomizer keeps at least, 1 or 2. With 1, as [G21] has it, a row whose prior is sure of its label
        releases that label always, and nothing of its own.

    Notes
    -----
    A row pays ``share * epsilon`` for the histogram of its cluster and what is left of epsilon for its label. The
    likelihood begins with the priors, which are paid for.

    Examples
    --------
    >>> DomainPrior(50, share=0.1)
    DomainPrior(clusters=50, share=0.1, smallest=50, least=2)
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    informed: ClassVar[bool] = True

    clusters: int | Callable[[Any], Any] = 16
    share: float = 0.05
    smallest: int = 50
    least: int = 2

    def __post_init__(self) -> None:
        """Check all four."""
        _checked_share(self.share)
        _checked_clusters(self.clusters, self.smallest)
        integer(self.least, "least", 1, 2)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than one cluster needs."""
        _enough(rows, self.smallest)

    def priors(self, training: Training, rows: Rows) -> tuple[Floats, float]:
        """A prior for each of some rows, shape ``(m, K)``, paid for, and what is left of epsilon."""
        split = split_at(training.epsilon, self.share * training.epsilon)
        groups = pooled(clustered(training, rows, self.clusters), self.smallest)
        table = np.empty((rows.size, training.k))
        for group in range(len(groups)):
            members = np.flatnonzero(groups.index == group)
            table[members] = training.prior(rows[members], split.prior).probabilities
        return table, split.labels

    def kept(self, priors: Floats, budget: float) -> Floats:
        """Priors of the randomizers, which keep at least :attr:`least` labels."""
        return at_least_two(priors, budget) if self.least == 2 else priors

    def train(self, training: Training) -> Any:
        """One stage, with the priors of the clusters."""
        rows = np.arange(training.rows)
        priors, budget = self.priors(training, rows)
        return training.learn(
            [training.release(rows, RRWithPriorBatch(self.kept(priors, budget), budget))], beliefs=priors
        )


@dataclass(frozen=True)
class Clusters:
    """The cluster mechanism of [E22]: labels replaced, with some probability, from the noisy shares of their cluster.

    Parameters
    ----------
    clusters : int or callable
        As in :class:`DomainPrior`.
    heterogeneity : float, optional
        The paper's phi, above 0. None measures it, by a model of a pilot's labels: the mean distance, over rows, of its
        beliefs from their average in the cluster.
    share : float
        Of epsilon for the shares of labels; [E22], Corollary 2, has two thirds.
    smallest : int
        As in :class:`DomainPrior`.
    pilot : float
        Share of the rows that are asked by randomized response where phi is measured.

    Notes
    -----
    The threshold of noisy shares is the smaller of phi and ``1 / K``, at which clusters are of no use: labels are then
    replaced by uniform ones. The likelihood begins with the shares. A row pays ``share * epsilon`` for the shares of
    its cluster and what is left of epsilon for its label; a row of the pilot pays epsilon there, and is in no cluster.
    The account has the true cost, twice the printed one for the shares: see :class:`~optrand.baselines.ClusterRR`. With
    ``target="debiased"`` it is [E22], Algorithm 1, with all bias removed (line 30), with ``"labels"`` Corollary 2.
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    informed: ClassVar[bool] = True

    clusters: int | Callable[[Any], Any] = 16
    heterogeneity: float | None = 0.03
    share: float = 0.4
    smallest: int = 50
    pilot: float = 0.2

    def __post_init__(self) -> None:
        """Check all five."""
        _checked_share(self.share)
        _checked_clusters(self.clusters, self.smallest)
        if self.heterogeneity is not None and real(self.heterogeneity, "heterogeneity") <= 0:
            raise InvalidInput(f"heterogeneity is {self.heterogeneity:g}, expected a distance above 0")
        if not 0 < real(self.pilot, "pilot") < 1:
            raise InvalidInput(f"pilot is {self.pilot:g}, expected a share of the rows between 0 and 1")

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than the pilot and one cluster need."""
        asked = self._asked(rows)
        if self.heterogeneity is None and asked == 0:
            raise InvalidInput(f"a pilot of {self.pilot:g} of {rows} rows has none: raise it, or pass heterogeneity=")
        _enough(rows - asked, self.smallest)

    def _asked(self, rows: int) -> int:
        return 0 if self.heterogeneity is not None else round(self.pilot * rows)

    def train(self, training: Training) -> Any:
        """One release of the rows in clusters, after that of the pilot, if there is one."""
        order = training.generator.permutation(training.rows)
        asked, rows = np.split(order, [self._asked(training.rows)])
        clusters = clustered(training, order, self.clusters).index
        groups = pooled(Groups.of_ids(clusters[asked.size :]), self.smallest)
        phi, first = self.heterogeneity, []
        if phi is None:
            uniform = np.full((asked.size, training.k), 1 / training.k)
            first = [training.release(asked, RRWithPriorBatch(uniform, training.epsilon))]
            phi = heterogeneity(training.beliefs(training.learn(first), rows), groups)
        release = training.release(rows, self._mechanism(training.epsilon, training.k, phi), groups=groups)
        of_group = np.array(release.randomizer.distributions, dtype=np.float64)
        # A cluster that is the pilot's alone has the shares of all.
        shares = np.tile(groups.sizes @ of_group / rows.size, (clusters.max() + 1, 1))
        shares[clusters[asked.size :]] = of_group[groups.index]
        return training.learn([*first, release], beliefs=shares[clusters])

    def _mechanism(self, epsilon: float, k: int, phi: float) -> ClusterRR:
        """Mechanism that, as it is rounded, costs at most epsilon."""
        threshold = min(max(phi, LEAST_THRESHOLD / k), 1 / k)
        split = split_at(epsilon, self.share * epsilon)
        while (made := ClusterRR.for_budget(k, split, threshold=threshold)).epsilon > epsilon:
            split = BudgetSplit(split.prior, float(np.nextafter(split.labels, 0.0)))
        return made


@dataclass(frozen=True)
class Peers:
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
    Every row pays epsilon, that of the flip of its label, whether or not a label that was copied from it is sent: so
    much holds towards anybody. What the learner alone can tell, who sees no exchange, is less by
    :meth:`~optrand.learning.PeerLabelRelease.towards_learner`.

    Examples
    --------
    >>> Peers(8).mechanism(1.0)
    PeerToPeer(flip=0.26894142136999516, rate=1.0)
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    informed: ClassVar[bool] = False

    clusters: int | Callable[[Any], Any] = 16
    rate: float = 1.0
    smallest: int = 50

    def __post_init__(self) -> None:
        """Check all three."""
        _checked_clusters(self.clusters, self.smallest)
        if not 0 < real(self.rate, "rate") <= 1:
            raise InvalidInput(f"rate is {self.rate:g}, expected a share above 0 and at most 1")

    def check(self, rows: int, k: int) -> None:
        """Refuse more than two classes, and fewer rows than one cluster needs."""
        if k != 2:
            raise InvalidInput(f"peers exchange labels of 2 classes, not of {k}: take Clusters")
        _enough(rows, self.smallest)

    def mechanism(self, epsilon: float) -> PeerToPeer:
        """Exchange whose flips, as they are rounded, cost at most epsilon."""
        flip = float(1 / (1 + privacy_ratio(epsilon)))
        while (made := PeerToPeer(flip, self.rate)).exact_epsilon > decimal_value(epsilon):
            flip = float(np.nextafter(flip, 0.5))
        return made

    def train(self, training: Training) -> Any:
        """One exchange of all rows."""
        rows = np.arange(training.rows)
        groups = pooled(clustered(training, rows, self.clusters), self.smallest)
        return training.learn([training.release(rows, self.mechanism(training.epsilon), groups=groups)])


def heterogeneity(beliefs: Floats, groups: Groups) -> float:
    r"""Heterogeneity of clusters ([E22], Definition 1) by what a model believes of their rows.

    .. math:: \phi = \frac1n \sum_i \sum_y |p(y \mid x_i) - \bar p(y \mid c_i)|

    Examples
    --------
    >>> heterogeneity(np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]]), Groups.of_ids([0, 0, 1])).__round__(9)
    0.666666667
    """
    sums = np.zeros((len(groups), beliefs.shape[1]))
    np.add.at(sums, groups.index, beliefs)
    means = sums / groups.sizes[:, np.newaxis]
    return float(np.abs(beliefs - means[groups.index]).sum(axis=1).mean())


class Featured(Protocol):
    """A fit with public features, and a seed of public choices."""

    seed: int

    def features(self, rows: Rows) -> Any:
        """Features of some rows."""
        ...


def clustered(training: Featured, rows: Rows, clusters: int | Callable[[Any], Any]) -> Groups:
    """Public clusters of some rows."""
    features = training.features(rows)
    if not callable(clusters):
        return Groups.by_k_means(features, clusters, seed=training.seed)
    groups = Groups.of_ids(clusters(features))
    if groups.n != rows.size:
        raise InvalidInput(f"clusters gave {groups.n} ids for {rows.size} rows of features, expected one a row")
    return groups


def pooled(groups: Groups, smallest: int) -> Groups:
    """Groups of at least `smallest` rows: smaller ones are pooled, with the next larger if that is not enough.

    Examples
    --------
    >>> pooled(Groups.of_ids([0] * 5 + [1, 2] + [3] * 4), 3).sizes.tolist()
    [5, 6]
    """
    order = np.argsort(groups.sizes, kind="stable")
    together = np.cumsum(groups.sizes[order])
    small = int((groups.sizes < smallest).sum())
    if small == 0:
        return groups
    last = max(small, int(np.searchsorted(together, smallest)) + 1)
    names = np.arange(len(groups))
    names[order[:last]] = order[0]
    return Groups.of_ids(names[groups.index], names=[int(one) for one in dict.fromkeys(names.tolist())])


def _checked_share(share: object) -> None:
    if not 0 < real(share, "share") < 1:
        raise InvalidInput(f"share is {share}, expected a part of epsilon between 0 and 1")


def _checked_clusters(clusters: object, smallest: object) -> None:
    integer(smallest, "smallest", 1)
    if not callable(clusters):
        integer(clusters, "clusters", 1)


def _enough(rows: int, smallest: int) -> None:
    if rows < smallest:
        raise InvalidInput(f"{rows} rows are fewer than smallest={smallest}, which a histogram needs: lower it")
