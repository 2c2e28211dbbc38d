r"""Weights that make a loss on noisy labels an unbiased estimate of the loss on the true ones.

Train on :math:`\tilde\ell(x, v) = \sum_y w_{v y} \, \ell(x, y)` in place of :math:`\ell(x, v)`: where :math:`\sum_v
\Pr[v \mid y] \, w_{v y'} = [y = y']`, its expectation over the noise is :math:`\ell(x, y)`, and likewise for gradients.
With `losses` of shape ``(batch, k)`` it is ``(weights[numbers] * losses).sum(axis=1)``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import Floats, check_classes, check_epsilon, rectangular
from optrand.errors import InvalidInput
from optrand.estimate._debiasing import Debiasing
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released, mechanism_of

LARGEST = 1 << 24
"""Largest size of a table of weights: 128 MB."""


def unbiased_values(mechanism: Mechanism | Released, functions: ArrayLike, *, prior: ArrayLike | None = None) -> Floats:
    """Compute unbiased values of the outputs, (n,) or (n, m): their expectation is a function of the label.

    Parameters
    ----------
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    functions : (k,) or (k, m) array
        One function of the label, or one per column.
    prior : (k,) array, optional
        Prior under which the variance is minimised; by default that of the mechanism's problem.

    Raises
    ------
    InvalidInput
        A singular mechanism.

    Notes
    -----
    Squared loss ``(z - y)**2 / 2`` is linear in ``y`` and ``y**2``: their unbiased values replace a table of weights at
    any number of labels.

    Examples
    --------
    >>> import math, optrand
    >>> mechanism = optrand.rr([0, 1], math.log(3))
    >>> optrand.certify(mechanism).require(gap=1e-9).epsilon == math.log(3)
    True
    >>> unbiased_values(mechanism, [[0, 0], [1, 1]]).round(12).tolist()
    [[-0.5, -0.5], [1.5, 1.5]]
    """
    return Debiasing.of(mechanism_of(mechanism), prior).values(functions)


def loss_weights(mechanism: Mechanism | Released, *, prior: ArrayLike | None = None) -> Floats:
    """Compute weights that make any loss unbiased under a mechanism's noise.

    Parameters
    ----------
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    prior : (k,) array, optional
        Prior under which the variance is minimised; by default that of the mechanism's problem.

    Returns
    -------
    (n, k) array
        The right inverse of the least variance; of a square table the inverse ([E22], Algorithm 1, line 30). Rows sum
        to 1; ``loss_weights(m)[output_numbers(released, m)]`` has one row per released value.

    Raises
    ------
    InvalidInput
        A singular mechanism, or a table beyond 128 MB.

    Examples
    --------
    Randomized response at ``exp(epsilon) = 3`` has the weights of [G21], eq. (7):

    >>> import math, optrand
    >>> mechanism = optrand.rr([0, 1, 2], math.log(3))
    >>> optrand.certify(mechanism).epsilon == math.log(3)
    True
    >>> loss_weights(mechanism).round(12).tolist()
    [[2.0, -0.5, -0.5], [-0.5, 2.0, -0.5], [-0.5, -0.5, 2.0]]
    """
    mechanism = mechanism_of(mechanism)
    debiasing = Debiasing.of(mechanism, prior)
    k, n = mechanism.labels.size, mechanism.outputs.size
    if k * n > LARGEST:
        raise InvalidInput(
            f"the weights of {k} labels and {n} outputs have {k * n} entries, expected at most {LARGEST}: pass the few "
            "functions of the label that the loss needs to unbiased_values(mechanism, functions)"
        )
    return debiasing.values(np.eye(k))


def top_k_loss_weights(released: ArrayLike, kept: ArrayLike, epsilon: float) -> Floats:
    r"""Compute weights (N, K) for RRTop-k and, with all labels kept, for randomized response.

    .. math:: w_{j y} = \frac{[v_j = y] - p \, [y \text{ kept}]}{1 - k p}, \qquad p = \frac{1}{e^\epsilon + k - 1}.

    Unbiased if the true label is kept ([G21], eq. (18), gives the probability of that). Otherwise the expectation is
    the mean loss over the kept labels, which no weights can correct: the releases of all other labels have the same
    distribution.

    Parameters
    ----------
    released : (N,) array of int
        Noisy labels, from 0 to ``K - 1``, each of them kept.
    kept : (K,) or (N, K) array of bool
        The ``k`` labels that can be released, for all examples or for each; ``k`` may differ between rows, as for
        RRWithPrior.
    epsilon : float
        Privacy budget in nats.

    Raises
    ------
    InvalidInput
        Labels out of range or not kept, or rows that keep no label.

    Examples
    --------
    >>> import math
    >>> top_k_loss_weights([2, 0], [True, False, True], math.log(3)).round(12).tolist()
    [[-0.5, 0.0, 1.5], [1.5, 0.0, -0.5]]
    """
    budget = check_epsilon(epsilon)
    mask = rectangular(kept, "kept")
    if mask.dtype != np.bool_ or mask.ndim not in (1, 2) or not mask.size:
        raise InvalidInput(
            f"kept is of type {mask.dtype} and shape {mask.shape}, expected booleans of shape (K,) or (N, K)"
        )
    counts = mask.sum(axis=-1, keepdims=True)
    if not counts.all():
        raise InvalidInput(f"{int((counts == 0).sum())} row(s) of kept hold no label, expected one per row or more")
    numbers = rectangular(released, "released labels")
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidInput(
            f"released labels are of type {numbers.dtype} and shape {numbers.shape}, expected a vector of integers"
        )
    if mask.ndim == 2 and mask.shape[0] != numbers.size:
        raise InvalidInput(f"{mask.shape[0]} rows were given for {numbers.size} released labels, expected one each")
    numbers = check_classes(numbers, mask.shape[-1])
    each = np.arange(numbers.size)
    strangers = int((~np.broadcast_to(mask, (numbers.size, mask.shape[-1]))[each, numbers]).sum())
    if strangers:
        raise InvalidInput(f"{strangers} released label(s) are not among those kept: RRTop-k cannot have released them")
    # 1 - k p = (exp(epsilon) - 1) / (exp(epsilon) + k - 1), without cancellation.
    gain = math.expm1(budget)
    if math.isinf((gain + mask.shape[-1]) / gain):
        raise InvalidInput(f"epsilon is {budget:g}, where weights of {mask.shape[-1]} classes overflow: raise it")
    weights: Floats = np.broadcast_to(0.0 - mask / gain, (numbers.size, mask.shape[-1])).copy()
    weights[each, numbers] += 1 + counts[..., 0] / gain
    return weights
