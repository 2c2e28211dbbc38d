r"""The likelihood of a release, for every kind of randomizer: :math:`\Pr[z_i \mid y]` up to a factor a row.

========================  ==================================================================================
a table of outputs        the column of the released output
RRWithPrior, RRTop-k      ``e**epsilon`` at the released label, 1 at the others kept, ``(e**epsilon + k - 1) / k``
bits of [Z25]             ``exp(epsilon * Z_y)``
ALIBI                     its soft labels
additive noise            the noise's density at the distance, the mass beyond an end that releases are clipped to
cluster randomizers       the channel of the row's cluster
peers                     the flip of the label that was copied
========================  ==================================================================================
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

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
from optrand.learning.domain import Domain
from optrand.mechanism.mechanism import Mechanism

__all__ = ["inputs", "likelihood_table"]


def inputs(randomizer: Any, domain: Domain) -> Floats | NDArray[np.int64]:
    """What a randomizer takes for each label of the domain: the number itself, or the number of its class.

    Raises
    ------
    InvalidInput
        The randomizer is made for other labels.

    Examples
    --------
    >>> inputs(UnaryBits(2, 1.0), Domain((7, 9))).tolist()
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


def likelihood_table(randomizer: Any, values: NDArray[Any], domain: Domain) -> Floats:
    """Likelihood of released values, each row's largest entry 1; shape ``(n, K)``.

    Parameters
    ----------
    randomizer : object
        By which, or by whose kind, they were drawn.
    values : (n,) or (n, m) array
    domain : Domain
        Its order is that of the columns.

    Raises
    ------
    InvalidInput
        A kind of randomizer whose likelihood is not known, or values that it cannot have drawn.

    Examples
    --------
    >>> likelihood_table(UniformRR(3, 1.0), np.array([2]), Domain((0, 1, 2))).round(3).tolist()
    [[0.368, 0.368, 1.0]]
    """
    table = _likelihood(randomizer, values, domain)
    tops = table.max(axis=1, keepdims=True)
    if not (tops > 0).all():
        raise InvalidInput("at least one released value has no likelihood under any label: it is not a value drawn")
    table /= tops
    return table


@singledispatch
def _likelihood(randomizer: Any, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    raise InvalidInput(
        f"the likelihood of a randomizer of type {type(randomizer).__name__} is not known, expected a Mechanism, a "
        "batch of RRWithPrior, or one of optrand.baselines"
    )


@_likelihood.register
def _of_mechanism(randomizer: Mechanism, values: NDArray[Any], domain: Domain) -> Floats:
    distinct, where = np.unique(output_numbers(values, randomizer), return_inverse=True)
    rows = np.searchsorted(randomizer.labels, inputs(randomizer, domain))
    columns = randomizer.weights[np.ix_(rows, distinct)]
    # Weights may be integers beyond floats; their quotients are not.
    tops = columns.max(axis=0).tolist()
    shares = [
        [quotient(weight, top) for weight in column] for column, top in zip(columns.T.tolist(), tops, strict=True)
    ]
    table: Floats = np.array(shares)[where]
    return table


@_likelihood.register
def _of_batch(randomizer: RRWithPriorBatch, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    return _response(values, randomizer.kept, float(privacy_ratio(randomizer.epsilon)))


def _response(values: NDArray[Any], kept: NDArray[np.bool_], ratio: float) -> Floats:
    """Response of a label among those kept; another one is replaced by any of them."""
    sizes = kept.sum(axis=1, keepdims=True)
    table = np.where(kept, 1 / ratio, (1 + (sizes - 1) / ratio) / sizes)
    table[np.arange(values.size), values] = 1.0
    return table


@_likelihood.register
def _of_bits(randomizer: UnaryBits, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    return np.where(values != 0, 1.0, float(1 / randomizer.ratio))


@_likelihood.register
def _of_alibi(randomizer: Alibi, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    return randomizer.soft_labels(values)


@_likelihood.register
def _of_lattice_alibi(randomizer: LatticeAlibi, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    return randomizer.soft_labels(values)


@_likelihood.register
def _of_additive(randomizer: Additive, values: NDArray[Any], domain: Domain) -> Floats:
    labels = randomizer.positions(np.asarray(inputs(randomizer, domain), dtype=np.float64), "label")
    places = randomizer.positions(np.asarray(values, dtype=np.float64), "released value")[:, np.newaxis]
    table = randomizer.noise.density(places - labels)
    if randomizer.clip is None:
        return table
    ends = randomizer.positions(np.array([randomizer.clip.low, randomizer.clip.high]), "end of clip")
    half = 0.5 if isinstance(randomizer, LatticeAdditive) else 0.0
    below = randomizer.noise.mass(np.full(labels.size, -np.inf), ends[0] - labels + half)
    above = randomizer.noise.mass(ends[1] - labels - half, np.full(labels.size, np.inf))
    table = np.where(places <= ends[0], below, table)
    return np.where(places >= ends[1], above, table)


@_likelihood.register
def _of_randomization(randomizer: LabelRandomization, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    table: Floats = randomizer.matrix[values]
    return table


@_likelihood.register
def _of_peers(randomizer: PeerToPeer, values: NDArray[Any], domain: Domain) -> Floats:  # noqa: ARG001
    return np.where(values[:, np.newaxis] == np.arange(2), 1 - randomizer.flip, randomizer.flip)


@_likelihood.register
def _of_uniform(randomizer: UniformRR, values: NDArray[Any], domain: Domain) -> Floats:
    return _of_randomization(randomizer.channel, values, domain)


@_likelihood.register
def _of_clusters(randomizer: ClusterRelease, values: NDArray[Any], domain: Domain) -> Floats:
    table = np.empty((values.size, len(domain)))
    for cluster in range(len(randomizer.groups)):
        rows = np.flatnonzero(randomizer.groups.index == cluster)
        table[rows] = _of_randomization(randomizer.channel(cluster), values[rows], domain)
    return table


@_likelihood.register
def _of_cluster_priors(randomizer: ClusterPriorRelease, values: NDArray[Any], domain: Domain) -> Floats:
    return _of_batch(RRWithPriorBatch(randomizer.priors.of_rows, randomizer.split.labels), values, domain)
