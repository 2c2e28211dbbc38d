"""Plans that learn from clusters and exchange labels among peers ([E22])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optrand.base._arithmetic import decimal_value, privacy_ratio
from optrand.base._validation import Floats, check_real
from optrand.baselines._cluster import ClusterRR
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerPrivacy, PeerToPeer
from optrand.closed_forms._response import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning._likelihoods import LabelRelease
from optrand.learning._plans import Ids, InClusters, check_share, pool_small_groups
from optrand.learning._training import Training
from optrand.sampling._priors import BudgetSplit, split_at


@dataclass(frozen=True)
class Clusters(InClusters):
    """[E22], Algorithm 1: labels are replaced, with some probability, by ones from the noisy shares of their cluster.

    Parameters
    ----------
    clusters : int or callable
        As in :class:`DomainPrior`.
    heterogeneity : float, optional
        The paper's phi, above 0. None measures it, by a model of a pilot's labels: the mean distance, over rows, of its
        beliefs from their average in the cluster.
    share : float
        Share of epsilon for the shares of labels, two thirds in [E22], Corollary 2.
    smallest : int
        As in :class:`DomainPrior`.
    pilot : float
        Share of the rows that are released by randomized response to measure phi.

    Notes
    -----
    The threshold of noisy shares is the smaller of phi and ``1 / K``, at which clusters are useless: labels are then
    replaced by uniform ones. The likelihood begins with the shares. A row pays ``share * epsilon`` for the shares of
    its cluster and the rest of epsilon for its label. A row of the pilot pays epsilon there, and is in no cluster.
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
        check_share(self.share)
        self._check_clusters()
        if self.heterogeneity is not None and check_real(self.heterogeneity, "heterogeneity") <= 0:
            raise InvalidInput(f"heterogeneity is {self.heterogeneity:g}, expected a distance above 0")
        check_share(self.pilot, "pilot", "the rows")

    def check(self, rows: int, k: int) -> None:
        """Refuse fewer rows than the pilot and one cluster need."""
        pilot = self._pilot_rows(rows)
        if self.heterogeneity is None and pilot == 0:
            raise InvalidInput(f"a pilot of {self.pilot:g} of {rows} rows is empty: raise it, or pass heterogeneity=")
        super().check(rows - pilot, k)

    def _pilot_rows(self, rows: int) -> int:
        return 0 if self.heterogeneity is not None else round(self.pilot * rows)

    def train(self, training: Training) -> Any:
        """Train on one release of the rows in clusters, and on that of the pilot, if there is one."""
        order = training.generator.permutation(training.rows)
        pilot, rows = np.split(order, [self._pilot_rows(training.rows)])
        # One clustering of all rows, as rows of the pilot have the shares of their clusters, too.
        clusters = self.ids(training, order).index
        groups = pool_small_groups(Groups.of_ids(clusters[pilot.size :]), self.smallest)
        phi, first = self.heterogeneity, []
        if phi is None:
            uniform = np.full((pilot.size, training.k), 1 / training.k)
            first = [training.release(pilot, RRWithPriorBatch(uniform, training.epsilon))]
            phi = heterogeneity(training.beliefs(training.learn(first), rows), groups)
        release = training.release(rows, self._mechanism(training.epsilon, training.k, phi), groups=groups)
        of_group = np.array(release.randomizer.distributions, dtype=np.float64)
        # A cluster with rows of the pilot alone has the shares of all clusters.
        shares = np.tile(groups.sizes @ of_group / rows.size, (clusters.max() + 1, 1))
        shares[clusters[pilot.size :]] = of_group[groups.index]
        return training.learn([*first, release], beliefs=shares[clusters])

    def _mechanism(self, epsilon: float, k: int, phi: float) -> ClusterRR:
        # Below a thousandth of 1 / k the effect of phi was measured to be negligible.
        threshold = min(max(phi, 1e-3 / k), 1 / k)
        split = split_at(epsilon, self.share * epsilon)
        # Rounding may bring the cost slightly above epsilon: lower the budget of the labels, float by float.
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
class Peers(InClusters):
    """Exchange of labels of two classes among peers within public clusters, without a server ([E22], Algorithm 2).

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
    """

    clusters: Ids = 16
    rate: float = 1.0
    smallest: int = 50

    def __post_init__(self) -> None:
        self._check_clusters()
        if not 0 < check_real(self.rate, "rate") <= 1:
            raise InvalidInput(f"rate is {self.rate:g}, expected a share above 0 and at most 1")

    def check(self, rows: int, k: int) -> None:
        """Refuse more than two classes, and fewer rows than one cluster needs."""
        if k != 2:
            raise InvalidInput(f"peers exchange labels of 2 classes, not of {k}: use Clusters")
        super().check(rows, k)

    def mechanism(self, epsilon: float) -> PeerToPeer:
        """Return the exchange whose rounded flips cost at most epsilon."""
        flip = float(1 / (1 + privacy_ratio(epsilon)))
        # The float nearest to a flip may cost slightly more than epsilon: move it towards 1/2, where epsilon is 0.
        while (made := PeerToPeer(flip, self.rate)).exact_epsilon > decimal_value(epsilon):
            flip = float(np.nextafter(flip, 0.5))
        return made

    def train(self, training: Training) -> Any:
        rows = np.arange(training.rows)
        groups = self.groups(training, rows)
        return training.learn([training.release(rows, self.mechanism(training.epsilon), groups=groups)])

    @staticmethod
    def towards_learner(release: LabelRelease, delta: float) -> PeerPrivacy:
        """Compute epsilon at a delta towards a learner who sees no exchange, the largest over clusters.

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
