"""What leaves the holder of private labels: noisy labels with their likelihood, and noisy histograms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optrand.accounting.spent import Spent
from optrand.base.records import freeze
from optrand.base.validation import Floats
from optrand.baselines.groups import Groups
from optrand.baselines.peer_to_peer import PeerPrivacy
from optrand.estimate.histograms import project_to_simplex
from optrand.learning.channels import likelihood_table
from optrand.learning.domain import Domain
from optrand.sampling.priors import EstimatedPrior
from optrand.sampling.smoothing import smoothed_prior

__all__ = ["CentralRelease", "LabelRelease", "PeerLabelRelease", "PriorRelease", "Rows"]

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LabelRelease:
    """Noisy labels of some rows. All that is computed from it is post-processing.

    Attributes
    ----------
    rows : (n,) array of int
        Places in the labels that it was asked of.
    values : (n,) or (n, m) array
        Drawn by the randomizer: outputs, class numbers, bits or noisy vectors.
    randomizer : object
        By which they were drawn; of cluster randomizers its release, which has the noisy distributions.
    domain : Domain
        The labels that there are.
    spent : Spent
        What each row has paid for it.
    trust : "local" or "central"
        Of the type: "local" where each row's value depends on no other row's label, so that a row needs to trust nobody
        but itself.
    """

    rows: Rows
    values: NDArray[Any]
    randomizer: Any
    domain: Domain
    spent: Spent

    trust: ClassVar[Literal["local", "central"]] = "local"

    def __post_init__(self) -> None:
        """Copy the arrays, and freeze the copies."""
        freeze(self, "rows", "values")

    def __len__(self) -> int:
        return int(self.rows.size)

    @cached_property
    def likelihood(self) -> Floats:
        """``Pr[values[i] | label y]`` up to a factor a row, in which the largest entry is 1; shape ``(n, K)``.

        Notes
        -----
        Columns are labels in the order of the domain. Training minimises ``-log sum_y likelihood[i, y] p(y | x_i)``:
        the factor of a row changes no minimiser.

        Examples
        --------
        >>> from optrand.baselines import UnaryBits
        >>> from optrand.learning import PrivateLabels
        >>> from optrand.sampling.entropy import SeededEntropy
        >>> labels = PrivateLabels(["b", "a"], 4.0, ["a", "b", "c"], source=SeededEntropy(1))
        >>> release = labels.release([0, 1], UnaryBits(3, 4.0))
        >>> release.values.tolist(), release.likelihood.round(3).tolist()
        ([[0, 1, 0], [1, 0, 0]], [[0.018, 1.0, 0.018], [1.0, 0.018, 0.018]])
        """
        table = likelihood_table(self.randomizer, self.values, self.domain)
        table.flags.writeable = False
        return table


class CentralRelease(LabelRelease):
    """Noisy labels whose distribution depends on other rows' labels too: whoever drew them has seen all of these."""

    trust: ClassVar[Literal["local", "central"]] = "central"


@dataclass(frozen=True, eq=False)
class PeerLabelRelease(LabelRelease):
    """Labels that peers exchanged, at the rows that sent one: each the flipped label of some row of its cluster.

    The likelihood is that of the label that was copied, of a row drawn from the cluster: that of the sender's own label
    where labels of a cluster are alike. Labels are flipped before they leave their rows, so `spent`, which every row of
    the clusters has paid, holds towards anybody.

    Attributes
    ----------
    groups : Groups
        Clusters of all rows that took part.
    """

    groups: Groups

    def towards_learner(self, delta: float) -> PeerPrivacy:
        """Epsilon at a delta towards a learner who sees what was sent and no exchange: the worst of all clusters.

        Notes
        -----
        :meth:`~optrand.baselines.PeerToPeer.at_delta` for each size of a cluster. It is not on the account, which
        trusts no peer.

        Examples
        --------
        >>> from optrand.baselines import Groups, PeerToPeer
        >>> from optrand.learning import PrivateLabels
        >>> labels = PrivateLabels([0, 1] * 15, 2.0, [0, 1])
        >>> release = labels.release(slice(None), PeerToPeer(0.2, 0.5), groups=Groups.of_ids([0] * 10 + [1] * 20))
        >>> round(float(labels.spent.epsilon), 4), round(release.towards_learner(1e-4).epsilon, 4)
        (1.3863, 0.6599)
        """
        sizes = np.unique(self.groups.sizes).tolist()
        found: list[PeerPrivacy] = [self.randomizer.at_delta(delta, size) for size in sizes]
        return max(found, key=lambda privacy: privacy.epsilon)


@dataclass(frozen=True, eq=False)
class PriorRelease:
    """Histogram of some rows with exact discrete Laplace noise of scale ``2 / epsilon``.

    Attributes
    ----------
    rows : (n,) array of int
        That were counted.
    counts : tuple of int
        Noisy counts, which may be negative, of each label or bin.
    epsilon : float
        In nats; what each counted row has paid.
    trust : "central"
        The labels were counted by somebody who saw them.
    """

    rows: Rows
    counts: tuple[int, ...]
    epsilon: float

    trust: ClassVar[Literal["local", "central"]] = "central"

    @property
    def clipped(self) -> EstimatedPrior:
        """Counts clipped at zero, as [B23], Algorithm 4, has them. With a price on bias they serve badly."""
        return EstimatedPrior(tuple(max(count, 0) for count in self.counts), self.epsilon)

    @cached_property
    def probabilities(self) -> Floats:
        """Posterior mean of the shares, none of them zero (:func:`~optrand.sampling.smoothing.smoothed_prior`)."""
        return smoothed_prior(self.clipped, self.rows.size)

    @cached_property
    def projected(self) -> Floats:
        """Nearest distribution to the noisy shares, with zeros: unbiased before it is projected."""
        shares: Floats = project_to_simplex(np.array([float(count) for count in self.counts]) / self.rows.size)
        return shares
