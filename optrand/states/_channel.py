"""Bits of channels: the published formulas of randomized response over states, and the capacity of any randomizer."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import Floats, check_integer, check_real, rectangular
from optrand.errors import InvalidInput
from optrand.states._trigger import TriggerStates

GAP = 1e-9
"""Accuracy of a capacity, in bits."""


def noise_rate(states: int | TriggerStates, epsilon: float) -> float:
    """Compute the chance that randomized response picks a state at random, the true one included.

    It is ``q / (q - 1 + exp(epsilon))``.

    Parameters
    ----------
    states : int or TriggerStates
    epsilon : float
        In nats; infinite for none.

    Notes
    -----
    The published "pick rate" [ARA26]_.

    Examples
    --------
    >>> f"{noise_rate(2925, 14.0):.6f}", f"{noise_rate(3, 14.0):.9f}"
    ('0.002426', '0.000002495')
    """
    count, budget = _count(states), _budget(epsilon)
    # Divided by exp(epsilon), so that nothing overflows.
    return count * math.exp(-budget) / (1 + (count - 1) * math.exp(-budget))


def capacity(states: int | TriggerStates, epsilon: float) -> float:
    r"""Compute the channel capacity of randomized response over `q` states, in bits.

    .. math:: \log_2 q - h(p) - p \log_2 (q - 1), \qquad p = \frac{q - 1}{q} \cdot \frac{q}{q - 1 + e^\epsilon},

    with the binary entropy :math:`h`: the state is another one with probability :math:`p`, all of them alike.

    Parameters
    ----------
    states : int or TriggerStates
    epsilon : float
        In nats; infinite for none.

    Notes
    -----
    As published [ARA26]_. The capacity of any randomizer is :func:`channel_capacity`.

    Examples
    --------
    >>> round(capacity(2925, 14.0), 12), round(capacity(3, 14.0), 12)
    (11.461727965385, 1.584926511508)
    """
    count, rate = _count(states), noise_rate(states, epsilon)
    flipped = rate * (count - 1) / count
    if count == 1:
        return 0.0
    kept = 1 - flipped
    entropy = sum(-x * math.log2(x) for x in (flipped, kept) if x > 0)
    return math.log2(count) - entropy - flipped * math.log2(count - 1)


def channel_capacity(matrix: ArrayLike, *, gap: float = GAP) -> float:
    """Bound the capacity of a table of probabilities in bits from above, for any distribution of its inputs.

    Parameters
    ----------
    matrix : (k, m) array
        Probabilities, one row per input.
    gap : float
        Largest excess of the bound over the capacity in bits, if 5,000 steps suffice.

    Notes
    -----
    For any distribution `w` of the outputs the largest ``sum_i M[y, i] log2(M[y, i] / w[i])`` over inputs is a bound.
    The algorithm of Blahut and Arimoto improves it.

    Examples
    --------
    >>> coin = [[0.75, 0.25], [0.25, 0.75]]
    >>> 0 <= channel_capacity(coin) - capacity(2, np.log(3.0)) < 1e-9
    True
    """
    table = rectangular(matrix, "the channel", np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
        raise InvalidInput("a channel is a table of probabilities, one row an input")
    if (np.abs(table.sum(axis=1) - 1) > 1e-9).any():
        raise InvalidInput("rows of a channel sum to 1: divide them by their sums")
    width = check_real(gap, "gap")
    if width < 0:
        raise InvalidInput(f"gap is {width:g}, expected bits of at least 0")
    return bound_capacity(table, width)


def bound_capacity(table: Floats, gap: float = 0.0, *, limit: float = math.nan, inputs: Floats | None = None) -> float:
    """Run the algorithm of Blahut and Arimoto until its bounds are within a gap or on one side of a limit.

    Steps are longer by the reciprocal of the largest total variation of two rows: the factor by which the channel
    contracts the distance of two distributions. Return the upper bound, which is rounded up; `inputs` is the
    distribution to begin with, by default uniform.
    """
    found = np.full(table.shape[0], 1 / table.shape[0]) if inputs is None else inputs
    largest = float(np.abs(np.log2(table[table > 0])).max(initial=1.0)) + math.log2(table.shape[0] + 1)
    # A sum has as many terms as there are outputs, each the product of a logarithm, rounded by 2**-50 at most.
    rounding = 2.0**-50 * (table.shape[1] + 8) * largest
    variation = min(1.0, float((table.max(axis=0) - table.min(axis=0)).sum()))
    lower, upper = 0.0, math.inf
    for _ in range(5_000):
        # Divergence of each row from the distribution of the outputs.
        ratios = np.divide(table, found @ table, out=np.ones_like(table), where=table > 0)
        bits: Floats = np.einsum("ki,ki->k", table, np.log2(ratios))
        top = float(bits.max())
        lower, upper = max(lower, float(found @ bits)), min(upper, max(0.0, top) + rounding)
        if upper - lower <= gap + 2 * rounding or upper <= limit or lower > limit:
            break
        # No input falls below 1e-30, so that inputs that were dropped may come back.
        found = np.maximum(found * np.exp2((bits - top) / max(variation, 1e-9)), 1e-30)
        found /= found.sum()
    return upper


def _count(states: int | TriggerStates) -> int:
    return states.size if isinstance(states, TriggerStates) else check_integer(states, "states", 1)


def _budget(epsilon: float) -> float:
    budget = math.inf if epsilon == math.inf else check_real(epsilon, "epsilon")
    if budget < 0:
        raise InvalidInput(f"epsilon is {budget}, expected at least 0 (nats)")
    return budget
