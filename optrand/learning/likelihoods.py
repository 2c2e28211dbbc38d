r"""Likelihood of released values, and weights of losses, for every kind of randomizer.

========================  ==================================================  =======================================
randomizer                likelihood of label `y`, up to a factor a row       weights of losses
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

Weights that sum to 1 keep multinomial logistic loss convex although some are negative: the weighted loss is a linear
function of the scores, plus the logarithm of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import privacy_ratio, quotient
from optrand.base.validation import Floats
from optrand.baselines.additive import Additive, LatticeAdditive
from optrand.baselines.cluster import ClusterPriorRelease, ClusterRelease
from optrand.baselines.peer_to_peer import PeerToPeer
from optrand.baselines.randomization import LabelRandomization, UniformRR
from optrand.baselines.vector import Alibi, LatticeAlibi, UnaryBits
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.estimate.averages import output_numbers
from optrand.estimate.weights import loss_weights as mechanism_weights
from optrand.estimate.weights import top_k_loss_weights
from optrand.mechanism.mechanism import Mechanism

__all__ = ["label_inputs", "likelihood_table", "loss_weight_table"]

Values = NDArray[Any]


class DeclaredLabels(Protocol):
    """Declared labels, as a :class:`~optrand.learning.Domain` has them."""

    @property
    def numbers(self) -> Floats | None:
        """Labels as numbers, if they are."""

    def __len__(self) -> int: ...


Rule = Callable[[Any, Values, Any], Floats]


def label_inputs(randomizer: Any, domain: DeclaredLabels) -> NDArray[Any]:
    """Return the input of a randomizer for each label of a domain: the number itself, or the number of its class.

    Raises
    ------
    InvalidInput
        The randomizer is made for other labels.

    Examples
    --------
    >>> from optrand.learning import Domain
    >>> label_inputs(UnaryBits(2, 1.0), Domain((7, 9))).tolist()
    [0, 1]
    """
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
        # Refuses labels outside the range, or off the lattice.
        randomizer.moments(domain.numbers)
        return domain.numbers
    if (2 if isinstance(randomizer, PeerToPeer) else getattr(randomizer, "k", None)) != k:
        raise InvalidInput(
            f"the randomizer {type(randomizer).__name__} is for {getattr(randomizer, 'k', 'no')} classes, expected "
            f"{k}, as many as the domain has labels"
        )
    return np.arange(k)


def likelihood_table(randomizer: Any, values: Values, domain: DeclaredLabels) -> Floats:
    """Compute the likelihood of released values under every label; as ``LabelRelease`` holds it.

    Raises
    ------
    InvalidInput
        A kind of randomizer whose likelihood is not known, or values that it cannot have drawn.

    Examples
    --------
    >>> from optrand.learning import Domain
    >>> likelihood_table(UniformRR(3, 1.0), np.array([2]), Domain((0, 1, 2))).round(3).tolist()
    [[0.368, 0.368, 1.0]]
    """
    table = _apply(_LIKELIHOODS, "likelihood", randomizer, values, domain)
    largest = table.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise InvalidInput("at least one released value has no likelihood under any label: it is not a value drawn")
    scaled: Floats = table / largest
    return scaled


def loss_weight_table(randomizer: Any, values: Values, domain: DeclaredLabels) -> Floats:
    """Compute the weights of losses of released values; as ``LabelRelease`` holds it.

    Raises
    ------
    InvalidInput
        A randomizer that cannot be inverted, or is of a kind that is not known.
    """
    return _apply(_WEIGHTS, "unbiased loss", randomizer, values, domain)


def _apply(rules: dict[type, Rule], wanted: str, randomizer: Any, values: Values, domain: DeclaredLabels) -> Floats:
    plain = _reduce(randomizer)
    for kind, rule in rules.items():
        if isinstance(plain, kind):
            return rule(plain, values, domain)
    raise InvalidInput(
        f"the {wanted} of a randomizer of type {type(randomizer).__name__} is not known, expected a Mechanism, a batch "
        "of RRWithPrior, or one of optrand.baselines"
    )


def _reduce(randomizer: Any) -> Any:
    """Return the channel or batch that a randomizer is, if it is one."""
    if isinstance(randomizer, UniformRR):
        return randomizer.channel
    if isinstance(randomizer, PeerToPeer):
        # A flip of probability a is a fair coin in place of the label, with probability 2 a.
        return LabelRandomization((Fraction(1, 2), Fraction(1, 2)), 2 * Fraction(randomizer.flip))
    if isinstance(randomizer, ClusterPriorRelease):
        return RRWithPriorBatch(randomizer.priors.of_rows, randomizer.split.labels)
    return randomizer


def _mechanism_likelihood(mechanism: Mechanism, values: Values, domain: DeclaredLabels) -> Floats:
    distinct, where = np.unique(output_numbers(values, mechanism), return_inverse=True)
    rows = np.searchsorted(mechanism.labels, label_inputs(mechanism, domain))
    columns = mechanism.weights[np.ix_(rows, distinct)]
    # Weights may be integers beyond floats, but their quotients are not.
    largest = columns.max(axis=0).tolist()
    shares = [
        [quotient(weight, top) for weight in column] for column, top in zip(columns.T.tolist(), largest, strict=True)
    ]
    table: Floats = np.array(shares)[where]
    return table


def _batch_likelihood(batch: RRWithPriorBatch, values: Values, _: DeclaredLabels) -> Floats:
    ratio = float(privacy_ratio(batch.epsilon))
    sizes = batch.k_star[:, np.newaxis]
    table = np.where(batch.kept, 1 / ratio, (1 + (sizes - 1) / ratio) / sizes)
    table[np.arange(values.size), values] = 1.0
    return table


def _additive_likelihood(additive: Additive, values: Values, domain: DeclaredLabels) -> Floats:
    labels = additive.positions(np.asarray(label_inputs(additive, domain), dtype=np.float64), "label")
    places = additive.positions(np.asarray(values, dtype=np.float64), "released value")[:, np.newaxis]
    table = additive.noise.density(places - labels)
    if additive.clip is None:
        return table
    ends = additive.positions(np.array([additive.clip.low, additive.clip.high]), "end of clip")
    half = 0.5 if isinstance(additive, LatticeAdditive) else 0.0
    below = additive.noise.mass(np.full(labels.size, -np.inf), ends[0] - labels + half)
    above = additive.noise.mass(ends[1] - labels - half, np.full(labels.size, np.inf))
    table = np.where(places <= ends[0], below, table)
    return np.where(places >= ends[1], above, table)


def _cluster_likelihood(release: ClusterRelease, values: Values, _: DeclaredLabels) -> Floats:
    matrices = np.array([release.channel(cluster).matrix for cluster in range(len(release.groups))])
    table: Floats = matrices[release.groups.index, values]
    return table


def _mechanism_loss_weights(mechanism: Mechanism, values: Values, domain: DeclaredLabels) -> Floats:
    rows = np.searchsorted(mechanism.labels, label_inputs(mechanism, domain))
    weights: Floats = mechanism_weights(mechanism)[output_numbers(values, mechanism)][:, rows]
    return weights


def _lattice_loss_weights(alibi: LatticeAlibi, values: Values, _: DeclaredLabels) -> Floats:
    low, high = (float(mean) for mean in alibi.means)
    return _sum_to_one((values - low) / (high - low))


def _sum_to_one(estimates: Floats) -> Floats:
    """Project to the vectors of sum 1, in which the expectation lies: as unbiased, and of no larger variance."""
    weights: Floats = estimates + (1 - estimates.sum(axis=1, keepdims=True)) / estimates.shape[1]
    return weights


_LIKELIHOODS: dict[type, Rule] = {
    Mechanism: _mechanism_likelihood,
    RRWithPriorBatch: _batch_likelihood,
    LabelRandomization: lambda channel, values, _: channel.matrix[values],
    ClusterRelease: _cluster_likelihood,
    UnaryBits: lambda bits, values, _: np.where(values != 0, 1.0, float(1 / bits.ratio)),
    Alibi: lambda alibi, values, _: alibi.soft_labels(values),
    LatticeAlibi: lambda alibi, values, _: alibi.soft_labels(values),
    Additive: _additive_likelihood,
}

_WEIGHTS: dict[type, Rule] = {
    Mechanism: _mechanism_loss_weights,
    RRWithPriorBatch: lambda batch, values, _: top_k_loss_weights(values, batch.kept, batch.epsilon),
    LabelRandomization: lambda channel, values, _: channel.loss_weights(values),
    ClusterRelease: lambda release, *_: release.loss_weights(),
    UnaryBits: lambda bits, values, _: _sum_to_one(bits.debiased(values)),
    Alibi: lambda _, values, __: _sum_to_one(np.array(values, dtype=np.float64)),
    LatticeAlibi: _lattice_loss_weights,
}
