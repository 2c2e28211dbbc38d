r"""Weights of the losses at all labels whose expectation is the loss at the true one, for every kind of randomizer.

[G21], equations 7 and 17, for randomized response and RRTop-k; [E22], Algorithm 1, line 30, for clusters; the right
inverse of the least variance for a table; the unbiased vectors of bits and of ALIBI, made to sum to 1.

Weights that sum to 1 keep multinomial logistic loss convex although some are negative: it is a linear function of the
scores, plus the sum of the weights times the logarithm of the sum of their exponentials.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.baselines.cluster import ClusterPriorRelease, ClusterRelease
from optrand.baselines.peer_to_peer import PeerToPeer
from optrand.baselines.randomization import LabelRandomization, UniformRR
from optrand.baselines.vector import Alibi, LatticeAlibi, UnaryBits
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.estimate.averages import output_numbers
from optrand.estimate.weights import loss_weights, top_k_loss_weights
from optrand.learning.channels import inputs
from optrand.learning.release import LabelRelease
from optrand.mechanism.mechanism import Mechanism

__all__ = ["debiased_weights"]


def debiased_weights(release: LabelRelease) -> Floats:
    r"""Weights :math:`w_{iy}` of a release, shape ``(n, K)``, with the mean :math:`[y = y_i]`.

    Where RRTop-k or RRWithPrior did not keep the true label, the expectation is the mean over the labels that it kept.

    Raises
    ------
    InvalidInput
        A randomizer that cannot be inverted, or is of a kind that is not known.

    Examples
    --------
    >>> import math
    >>> from optrand.baselines import UniformRR
    >>> from optrand.learning import PrivateLabels
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> labels = PrivateLabels([0, 1], 2.0, [0, 1, 2], source=SeededEntropy(0))
    >>> debiased_weights(labels.release([0, 1], UniformRR(3, math.log(3)))).round(9).tolist()
    [[-0.5, -0.5, 2.0], [-0.5, 2.0, -0.5]]
    """
    return _weights(release.randomizer, release.values, release)


@singledispatch
def _weights(randomizer: Any, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    raise InvalidInput(f"no debiased loss is known for a randomizer of type {type(randomizer).__name__}")


@_weights.register
def _of_mechanism(randomizer: Mechanism, values: NDArray[Any], release: LabelRelease) -> Floats:
    rows = np.searchsorted(randomizer.labels, inputs(randomizer, release.domain))
    weights: Floats = loss_weights(randomizer)[output_numbers(values, randomizer)][:, rows]
    return weights


@_weights.register
def _of_batch(randomizer: RRWithPriorBatch, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return top_k_loss_weights(values, randomizer.kept, randomizer.epsilon)


@_weights.register
def _of_bits(randomizer: UnaryBits, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return _summing_to_one(randomizer.debiased(values))


@_weights.register
def _of_alibi(randomizer: Alibi, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return _summing_to_one(np.array(values, dtype=np.float64))


@_weights.register
def _of_lattice_alibi(randomizer: LatticeAlibi, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    low, high = (float(mean) for mean in randomizer.means)
    return _summing_to_one((values - low) / (high - low))


@_weights.register
def _of_randomization(randomizer: LabelRandomization, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return randomizer.loss_weights(values)


@_weights.register
def _of_peers(randomizer: PeerToPeer, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    if randomizer.flip == 0.5:
        raise InvalidInput("flips of probability 1/2 tell nothing: no debiased loss exists, expected another flip")
    own = values[:, np.newaxis] == np.arange(2)
    weights: Floats = (own - randomizer.flip) / (1 - 2 * randomizer.flip)
    return weights


@_weights.register
def _of_uniform(randomizer: UniformRR, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return randomizer.channel.loss_weights(values)


@_weights.register
def _of_clusters(randomizer: ClusterRelease, values: NDArray[Any], release: LabelRelease) -> Floats:  # noqa: ARG001
    return randomizer.loss_weights()


@_weights.register
def _of_cluster_priors(randomizer: ClusterPriorRelease, values: NDArray[Any], release: LabelRelease) -> Floats:
    return _of_batch(RRWithPriorBatch(randomizer.priors.of_rows, randomizer.split.labels), values, release)


def _summing_to_one(estimates: Floats) -> Floats:
    """Projection to the vectors of sum 1, in which the expectation lies: as unbiased, and of no larger variance."""
    weights: Floats = estimates + (1 - estimates.sum(axis=1, keepdims=True)) / estimates.shape[1]
    return weights
