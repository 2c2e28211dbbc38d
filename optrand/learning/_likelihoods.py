r"""Likelihood of released values, and weights of losses, for every kind of randomizer.

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

Most are methods of the randomizers, ``likelihood(values)`` and ``loss_weights(values)``; a randomizer of a user's own
can have them as well. Weights that sum to 1 keep multinomial logistic loss convex although some are negative: the
weighted loss is a linear function of the scores, plus the logarithm of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base._arithmetic import quotient
from optrand.base._validation import Floats
from optrand.baselines._additive import Additive
from optrand.baselines._cluster import ClusterPriorRelease, ClusterRelease
from optrand.baselines._peer_to_peer import PeerToPeer
from optrand.closed_forms._batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.estimate._averages import output_numbers
from optrand.estimate._debiasing import loss_weights, top_k_loss_weights
from optrand.learning._domain import Domain
from optrand.mechanism._mechanism import Mechanism

Values = NDArray[Any]


def label_inputs(randomizer: Any, domain: Domain) -> NDArray[Any]:
    """Return the input of a randomizer for each label of a domain: the number itself, or the number of its class."""
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


def likelihood_table(randomizer: Any, values: Values, domain: Domain) -> Floats:
    """Compute :attr:`LabelRelease.likelihood`. Refuse randomizers that have none, and values that they cannot draw."""
    if isinstance(randomizer, Mechanism):
        table = _mechanism_likelihood(randomizer, values, domain)
    elif isinstance(randomizer, Additive):
        table = randomizer.likelihood(values, label_inputs(randomizer, domain))
    elif isinstance(randomizer, ClusterRelease):
        table = randomizer.likelihood()
    else:
        table = _method(randomizer, "likelihood")(values)
    largest = table.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise InvalidInput("at least one released value has no likelihood under any label: it is not a value drawn")
    scaled: Floats = table / largest
    return scaled


def loss_weight_table(randomizer: Any, values: Values, domain: Domain) -> Floats:
    """Compute :attr:`LabelRelease.loss_weights`."""
    if isinstance(randomizer, Mechanism):
        rows = np.searchsorted(randomizer.labels, label_inputs(randomizer, domain))
        weights: Floats = loss_weights(randomizer)[output_numbers(values, randomizer)][:, rows]
        return weights
    if isinstance(randomizer, ClusterRelease):
        return randomizer.loss_weights()
    batch = randomizer.batch if isinstance(randomizer, ClusterPriorRelease) else randomizer
    if isinstance(batch, RRWithPriorBatch):
        return top_k_loss_weights(values, batch.kept, batch.epsilon)
    found: Floats = _method(randomizer, "loss_weights")(values)
    return found


def _method(randomizer: Any, name: str) -> Callable[[Values], Floats]:
    owner = randomizer.batch if isinstance(randomizer, ClusterPriorRelease) else randomizer
    method: Callable[[Values], Floats] | None = getattr(owner, name, None)
    if method is None:
        raise InvalidInput(
            f"the {name} of a randomizer of type {type(randomizer).__name__} is not known, expected a Mechanism, one "
            f"of optrand.baselines, or an object with the method {name}(values)"
        )
    return method


def _mechanism_likelihood(mechanism: Mechanism, values: Values, domain: Domain) -> Floats:
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
