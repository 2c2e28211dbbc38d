"""Grids of outputs on which an unbiased randomizer exists ([B23]_, Algorithm 2).

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import common_scale, float_above, float_below, privacy_ratio
from optrand.base.validation import Floats
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import labels as checked_labels
from optrand.errors import InvalidInput
from optrand.outputs import Grid

__all__ = ["feasible_output_set"]


def feasible_output_set(labels: ArrayLike, epsilon: float, n: int) -> Grid:
    r"""`n` evenly spaced outputs, from the lowest to the highest output of debiased randomized response.

    .. math:: L = y_{\min} - \frac{\sum_y (y - y_{\min})}{R - 1}, \qquad
              U = y_{\max} + \frac{\sum_y (y_{\max} - y)}{R - 1}, \qquad v_i = L + i \, \frac{U - L}{n - 1}

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats, of the randomizer that will use the grid.
    n : int
        The mesh size: how many outputs, at least 2.

    Returns
    -------
    Grid
        Of `n` values; of a single label that label alone, which is the best grid whatever `n` is.

    Raises
    ------
    InvalidInput
        Labels or an epsilon without meaning, an `n` that is no integer of at least 2, or outputs that floats cannot
        hold or tell apart.

    Notes
    -----
    *The two ends are enough* ([B23]_, Proposition 7). Draw `U` with probability :math:`(y - L) / (U - L)`
    and `L` otherwise: that is unbiased. The chance of `L` is largest at :math:`y_{\min}` and smallest at
    :math:`y_{\max}`, and their ratio is :math:`1 + (y_{\max} - y_{\min}) / (U - y_{\max})`, which is at most `R` if and
    only if :math:`(R - 1)(U - y_{\max}) \geq y_{\max} - y_{\min}`. The left side is :math:`\sum_y (y_{\max} - y)`, of
    which the right side is one term. Likewise for `U`. ∎

    (The paper's proof ends with :math:`(a + b) / (a + c) \leq b / c` "for a, b, c > 0", which holds for :math:`b \geq
    c` and :math:`a \geq 0` only. Both are true there: :math:`b = e^\epsilon c`, and `a` is 0 for two labels.)

    With two labels the inequality is an equality. So the ends are computed in rationals for the ratio :math:`R =
    \mathtt{privacy\_ratio(epsilon)} < e^\epsilon` that exact mechanisms keep, and rounded outward: the formula as
    printed, in floats, often gives a grid on which no such mechanism exists.

    Where outputs may lie outside `[L, U]` they sometimes do better. Cost ``O(k + n)``.

    Examples
    --------
    >>> import math
    >>> feasible_output_set([0, 1, 2], math.log(3), 5).values.round(12).tolist()
    [-1.5, -0.25, 1.0, 2.25, 3.5]

    Proposition 7, verified for the two ends of that grid:

    >>> from optrand.certificate import certify
    >>> from optrand.problem import unbiased_regression
    >>> from optrand.randomizer import Randomizer
    >>> ends = feasible_output_set([0, 1, 2], math.log(3), 2)
    >>> upper = (np.arange(3) - ends.low) / (ends.high - ends.low)
    >>> coin = Randomizer([0, 1, 2], ends.values, np.stack([1 - upper, upper], axis=1), math.log(3))
    >>> proof = certify(unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], math.log(3), outputs=ends), coin)
    >>> proof.findings, f"{proof.upper:.6f}"
    ((), '2.775000')

    References
    ----------
    .. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023,
       Algorithm 2 and Proposition 7.
    """
    names = checked_labels(labels)
    budget = checked_epsilon(epsilon)
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)):
        raise InvalidInput(f"n is of type {type(n).__name__}, expected an integer of at least 2")
    if n < 2:
        raise InvalidInput(f"n is {n}, expected at least 2: no single output is unbiased for two labels")
    if names.size == 1:
        return Grid(names)
    low, high = _ends(names, privacy_ratio(budget))
    if not math.isfinite(high - low):
        raise InvalidInput(
            f"a grid for these labels at epsilon {budget:g} overflows in floats: rescale the labels or raise epsilon"
        )
    grid = np.linspace(low, high, n)
    # linspace may round its last value inward.
    grid[[0, -1]] = low, high
    if (np.diff(grid) <= 0).any():
        raise InvalidInput(f"{n} values between {low!r} and {high!r} coincide in floats: ask for fewer")
    return Grid(grid)


def _ends(labels: Floats, ratio: Fraction) -> tuple[float, float]:
    """The lowest and highest output of debiased randomized response with ratio `ratio`, rounded outward."""
    scale = common_scale(labels)
    whole = [int(Fraction(y) * scale) for y in labels.tolist()]
    total, lowest, highest = sum(whole), min(whole), max(whole)
    reach = scale * (ratio - 1)
    low = Fraction(lowest, scale) - (total - len(whole) * lowest) / reach
    high = Fraction(highest, scale) + (len(whole) * highest - total) / reach
    return float_below(low), float_above(high)
