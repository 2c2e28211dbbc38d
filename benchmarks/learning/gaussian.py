"""Least Gaussian noise for a distance, epsilon and delta."""

from __future__ import annotations

import math

from optrand.base._validation import check_epsilon, check_real
from optrand.errors import InvalidInput
from optrand.theory.g21.descent import gaussian_tails

ROUNDING = 1e-12
"""Rounding error of a float delta, as a share of the two probabilities whose difference it is."""

HALVINGS = 80
"""Steps of a search between two floats whose quotient is 2."""


def least_sigma(distance: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation of Gaussian noise that hides two points at a distance, rounded up.

    Parameters
    ----------
    distance : float
        Above 0.
    epsilon : float
        In nats.
    delta : float
        From 1e-100 to below 1.

    Raises
    ------
    InvalidInput
        A distance or a delta out of range.

    Notes
    -----
    Delta falls as sigma grows. Rounding of floats is counted against the noise.

    Examples
    --------
    >>> round(least_sigma(1.0, 1.0, 1e-5), 6)
    3.730632
    """
    budget, far, most = check_epsilon(epsilon), check_real(distance, "distance"), check_real(delta, "delta")
    if not 0 < far < math.inf:
        raise InvalidInput(f"distance is {far:g}, expected a finite number above 0")
    if not 1e-100 <= most < 1:
        raise InvalidInput(f"delta is {most:g}, expected at least 1e-100 and below 1")

    def enough(sigma: float) -> bool:
        near, other = gaussian_tails(far, sigma, budget)
        return near - other + ROUNDING * (near + other) <= most

    high = far
    while not enough(high):
        high *= 2
    while enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
