"""Evenly spaced grids of outputs, and the number of outputs for a tolerance ([B23], Algorithm 2 and Lemma 8)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._arithmetic import float_above, float_below, places, privacy_ratio, scale_to_integers
from optrand.base._validation import Floats, check_epsilon, check_integer, check_labels, check_real, suggest_parameters
from optrand.errors import InvalidInput
from optrand.model._problem import Grid


@suggest_parameters
def feasible_output_set(labels: ArrayLike, epsilon: float, n: int) -> Grid:
    r"""Return `n` evenly spaced outputs, from the lowest to the highest of debiased randomized response.

    This is FeasibleOutputSet, [B23] Algorithm 2. :func:`mesh_size` computes the number of outputs for a tolerance.

    .. math:: L = y_{\min} - \frac{\sum_y (y - y_{\min})}{R - 1}, \qquad
              U = y_{\max} + \frac{\sum_y (y_{\max} - y)}{R - 1}, \qquad v_i = L + i \, \frac{U - L}{n - 1}

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats, of the randomizer that will use the grid.
    n : int
        Mesh size, at least 2.

    Returns
    -------
    Grid
        For a single label that label alone, which is the best grid for every `n`.

    Raises
    ------
    InvalidInput
        An `n` that is no integer of at least 2, or outputs that overflow or coincide in floats.

    Notes
    -----
    The two ends alone carry an unbiased randomizer ([B23], Proposition 7, and ``docs/mathematics.md``, section 6), for
    two labels without slack. They are computed in rationals for the ratio :math:`R = \mathtt{privacy\_ratio(epsilon)} <
    e^\epsilon` of exact mechanisms and rounded outward: the printed formula, in floats, often gives a grid on which
    none exists. Outputs outside `[L, U]` sometimes have a lower loss. Cost ``O(k + n)``.

    Examples
    --------
    >>> import math
    >>> feasible_output_set([0, 1, 2], math.log(3), 5).values.round(12).tolist()
    [-1.5, -0.25, 1.0, 2.25, 3.5]
    """
    names = check_labels(labels)
    budget = check_epsilon(epsilon)
    count = check_integer(n, "n", 2, why=": no single output is unbiased for two labels")
    if names.size == 1:
        return Grid(names)
    low, high = _find_ends(names, privacy_ratio(budget))
    if not math.isfinite(high - low):
        raise InvalidInput(
            f"a grid for these labels at epsilon {budget:g} overflows in floats: rescale the labels or raise epsilon"
        )
    grid = np.linspace(low, high, count)
    # linspace may round its last value inward.
    grid[[0, -1]] = low, high
    if (np.diff(grid) <= 0).any():
        raise InvalidInput(f"{n} values between {low!r} and {high!r} coincide in floats: choose fewer")
    return Grid(grid)


@suggest_parameters
def mesh_size(labels: ArrayLike, epsilon: float, tolerance: float, *, lipschitz: float | None = None) -> int:
    r"""Return the number of outputs of :func:`feasible_output_set` that lose at most a tolerance.

    The loss of the optimum on the grid exceeds that of the optimum over the whole interval between the grid's ends by
    at most :math:`K \Delta` if the loss is `K`-Lipschitz in the output ([B23], Lemma 8), and by at most
    :math:`\Delta^2 / 8` for half the squared error: unbiased rounding to neighbours at a distance :math:`\Delta` adds a
    variance of at most :math:`\Delta^2 / 4`.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers.
    epsilon : float
        In nats.
    tolerance : float
        Largest excess, above 0, in the units of the loss.
    lipschitz : float, optional
        `K` of another loss, above 0. By default the loss is half the squared error.

    Raises
    ------
    InvalidInput
        Numbers without meaning, or a mesh of more than a billion outputs.

    Examples
    --------
    Weeks worked at epsilon 1, within 0.1 and 0.001 of the least half squared error (some 1,278):

    >>> mesh_size(np.arange(53), 1.0, 0.1), mesh_size(np.arange(53), 1.0, 0.001)
    (1853, 18515)
    """
    names, budget = check_labels(labels), check_epsilon(epsilon)
    allowed = check_real(tolerance, "tolerance")
    steep = None if lipschitz is None else check_real(lipschitz, "lipschitz")
    if allowed <= 0 or (steep is not None and steep <= 0):
        raise InvalidInput(f"tolerance is {tolerance!r} and lipschitz {lipschitz!r}, expected numbers above 0")
    if names.size == 1:
        return 2
    low, high = _find_ends(names, privacy_ratio(budget))
    spacing = math.sqrt(8 * allowed) if steep is None else allowed / steep
    count = (high - low) / spacing
    if not count < 1e9:
        raise InvalidInput(f"a tolerance of {allowed:g} needs {count:.3g} outputs, more than a billion: allow more")
    return max(2, math.ceil(count) + 1)


def _find_ends(labels: Floats, ratio: Fraction) -> tuple[float, float]:
    """Return the lowest and highest output of debiased randomized response with ratio `ratio`, rounded outward."""
    digits = places(labels)
    scale, whole = 1 << digits, scale_to_integers(labels, digits)
    total, lowest, highest = sum(whole), min(whole), max(whole)
    reach = scale * (ratio - 1)
    low = Fraction(lowest, scale) - (total - len(whole) * lowest) / reach
    high = Fraction(highest, scale) + (len(whole) * highest - total) / reach
    return float_below(low), float_above(high)
