r"""Releases, the likelihood of their values, and weights of losses, for every kind of randomizer.

========================  ==================================================  =======================================
randomizer                likelihood of label `y`, up to one factor per row   weights of losses
========================  ==================================================  =======================================
a table of outputs        column of the released output                       right inverse of least variance
RRWithPrior, RRTop-k      ``e**epsilon`` at the released label, 1 at others   [G21], equations 7 and 17
                          kept, ``(e**epsilon + k - 1) / k`` at the rest
bits of [Z25]             ``exp(epsilon * Z_y)``                              [Z25], equation 24, made to sum to 1
ALIBI                     its soft labels                                     the noisy vector, made to sum to 1
additive noise            density at the distance, or mass beyond a clip      not known
clusters of [E22]         channel of the row's cluster                        [E22], Algorithm 1, line 30
peers of [E22]            flip of the label that was copied                   inverse of the flip
========================  ==================================================  =======================================

Most are methods of the randomizers, ``likelihood(values)`` and ``loss_weights(values)``. A user's own randomizer may
have them, too. Weights that sum to 1 keep multinomial logistic loss convex although some are negative: the
weighted loss is a linear function of the scores, plus the logarithm of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optrand.accounting._spent import Spent
from optrand.base._validation import Floats, freeze
from optrand.baselines._additive import Additive
from optrand.baselines._cluster import ClusterPriorRelease, ClusterRelease
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerToPeer
from optrand.closed_forms._response import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.estimate._averages import output_numbers
from optrand.estimate._debiasing import loss_weights, top_k_loss_weights
from optrand.estimate._histograms import project_to_simplex
from optrand.learning._domain import Domain
from optrand.mechanism._mechanism import Mechanism
from optrand.sampling._priors import EstimatedPrior, smoothed_prior

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LabelRelease:
    """Noisy labels of some rows. Everything that is computed from them is post-processing.

    Attributes
    ----------
    rows : (n,) array of int
        Rows of the table to which the values belong.
    values : (n,) or (n, m) array
        Drawn by the randomizer: outputs, class numbers, bits or noisy vectors.
    randomizer : object
        The randomizer that drew them, or for a cluster randomizer its release, which has the noisy distributions.
    domain : Domain
        The declared labels. Its order is that of the columns of :attr:`likelihood` and :attr:`loss_weights`.
    spent : Spent
        Charge of each row for the release.
    groups : Groups, optional
        Public clusters of all rows that took part, if the randomizer learned from clusters.
    priors : tuple of PriorRelease
        Private histograms by which the randomizer was chosen. The counted rows have paid for them, too.
    """

    rows: Rows
    values: NDArray[Any]
    randomizer: Any
    domain: Domain
    spent: Spent
    groups: Groups | None = None
    priors: tuple[PriorRelease, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, "rows", "values")

    def __len__(self) -> int:
        return int(self.rows.size)

    @property
    def trust(self) -> Literal["local", "central"]:
        """Trust that a row needs: "local" in nobody else, "central" in a curator who sees all true labels."""
        return "central" if isinstance(self.randomizer, (ClusterRelease, ClusterPriorRelease)) else "local"

    @cached_property
    def likelihood(self) -> Floats:
        """``Pr[values[i] | label y]``, shape ``(n, K)``, scaled so that the largest entry of a row is 1.

        Notes
        -----
        Training minimises ``-log sum_y likelihood[i, y] p(y | x_i)``. The scale of a row changes no minimiser. Labels
        that peers exchanged have the likelihood of the label that was copied.

        Examples
        --------
        >>> from optrand.baselines import UnaryBits
        >>> from optrand.learning import PrivateLabels
        >>> from optrand.sampling import SeededEntropy
        >>> labels = PrivateLabels(["b", "a"], 4.0, ["a", "b", "c"], source=SeededEntropy(1))
        >>> release = labels.release([0, 1], UnaryBits(3, 4.0))
        >>> release.values.tolist(), release.likelihood.round(3).tolist()
        ([[0, 1, 0], [1, 0, 0]], [[0.018, 1.0, 0.018], [1.0, 0.018, 0.018]])
        """
        randomizer: Any = self.randomizer
        if isinstance(randomizer, Mechanism):
            table = randomizer.matrix[self._inputs][:, output_numbers(self.values, randomizer)].T
        elif isinstance(randomizer, Additive):
            table = randomizer.likelihood(self.values, label_inputs(randomizer, self.domain))
        elif isinstance(randomizer, ClusterRelease):
            table = randomizer.likelihood()
        else:
            table = _method(randomizer, "likelihood")(self.values)
        largest = table.max(axis=1, keepdims=True)
        if not (largest > 0).all():
            raise InvalidInput("at least one released value has probability 0 under every label: it was not drawn")
        scaled: Floats = table / largest
        scaled.flags.writeable = False
        return scaled

    @cached_property
    def loss_weights(self) -> Floats:
        r"""Weights :math:`w_{iy}` with the mean :math:`[y = y_i]` over the noise, shape ``(n, K)``.

        The sum of weight times loss over all labels is an unbiased estimate of the loss at the true label ([G21],
        equations 7 and 17, and [E22], Algorithm 1, line 30). If RRTop-k or RRWithPrior did not keep the true label, its
        expectation is the mean loss over the labels that it kept.

        Raises
        ------
        InvalidInput
            The randomizer cannot be inverted, or is of an unknown kind.

        Examples
        --------
        >>> import math
        >>> from optrand.baselines import UniformRR
        >>> from optrand.learning import PrivateLabels
        >>> from optrand.sampling import SeededEntropy
        >>> labels = PrivateLabels([0, 1], 2.0, [0, 1, 2], source=SeededEntropy(0))
        >>> labels.release([0, 1], UniformRR(3, math.log(3))).loss_weights.round(9).tolist()
        [[-0.5, -0.5, 2.0], [-0.5, 2.0, -0.5]]
        """
        randomizer: Any = self.randomizer
        if isinstance(randomizer, Mechanism):
            weights: Floats = loss_weights(randomizer)[output_numbers(self.values, randomizer)][:, self._inputs]
            return weights
        if isinstance(randomizer, ClusterRelease):
            return randomizer.loss_weights()
        batch = randomizer.batch if isinstance(randomizer, ClusterPriorRelease) else randomizer
        if isinstance(batch, RRWithPriorBatch):
            return top_k_loss_weights(self.values, batch.kept, batch.epsilon)
        return _method(randomizer, "loss_weights")(self.values)

    @property
    def _inputs(self) -> NDArray[np.intp]:
        """Row of a mechanism's table for each label of the domain."""
        return np.searchsorted(self.randomizer.labels, label_inputs(self.randomizer, self.domain))


@dataclass(frozen=True, eq=False)
class PriorRelease:
    """Histogram of some rows with exact discrete Laplace noise of scale ``2 / epsilon``.

    Attributes
    ----------
    rows : (n,) array of int
        Rows that were counted.
    counts : tuple of int
        Noisy count of each label or bin, which may be negative.
    epsilon : float
        Charge of each counted row, in nats.
    trust : "central"
        A curator who saw the labels counted them.
    """

    rows: Rows
    counts: tuple[int, ...]
    epsilon: float

    trust: ClassVar[Literal["local", "central"]] = "central"

    @property
    def clipped(self) -> EstimatedPrior:
        """Counts clipped at zero, as in [B23], Algorithm 4. They are a bad choice with a finite bias penalty."""
        return EstimatedPrior(tuple(max(count, 0) for count in self.counts), self.epsilon)

    @cached_property
    def probabilities(self) -> Floats:
        """Posterior mean of the shares, none of them zero (:func:`~optrand.sampling._priors.smoothed_prior`)."""
        return smoothed_prior(self.clipped, self.rows.size)

    @cached_property
    def projected(self) -> Floats:
        """Nearest distribution to the noisy shares, which are unbiased. Entries may be zero."""
        return project_to_simplex(np.array(self.counts, dtype=np.float64) / self.rows.size)


def label_inputs(randomizer: Any, domain: Domain) -> NDArray[Any]:
    """Return the input of a randomizer for each label of a domain: the number itself, or the index of its class."""
    k = len(domain)
    if isinstance(randomizer, Mechanism):
        known = set(randomizer.labels.tolist())
        if domain.numbers is not None and known.issuperset(domain.numbers.tolist()):
            return domain.numbers
        if randomizer.labels.tolist() == list(range(k)):
            return np.arange(k)
        raise InvalidInput(
            f"the mechanism is made for {randomizer.labels.size} labels, which are neither those of the domain nor "
            f"0 ... {k - 1}: state its problem over the labels of the domain"
        )
    if isinstance(randomizer, Additive):
        if domain.numbers is None:
            raise InvalidInput("additive noise needs a domain of numbers")
        # This refuses labels outside the range, or off the lattice.
        randomizer.moments(domain.numbers)
        return domain.numbers
    if (2 if isinstance(randomizer, PeerToPeer) else getattr(randomizer, "k", None)) != k:
        raise InvalidInput(
            f"the randomizer {type(randomizer).__name__} is for {getattr(randomizer, 'k', 'no')} classes, expected "
            f"{k}, the number of labels in the domain"
        )
    return np.arange(k)


def _method(randomizer: Any, name: str) -> Callable[[NDArray[Any]], Floats]:
    owner = randomizer.batch if isinstance(randomizer, ClusterPriorRelease) else randomizer
    method: Callable[[NDArray[Any]], Floats] | None = getattr(owner, name, None)
    if method is None:
        raise InvalidInput(
            f"the {name} of a randomizer of type {type(randomizer).__name__} is not known, expected a Mechanism, one "
            f"of optrand.baselines, or an object with the method {name}(values)"
        )
    return method
