r"""Privacy of Gaussian noise, by its analytic delta (Balle and Wang, 2018, Theorem 8).

Two points at a distance :math:`\Delta`, each with noise :math:`N(0, \sigma^2 I)`, are :math:`(\epsilon, \delta)`-close
if and only if, with :math:`\mu = \Delta / \sigma`,

.. math:: \Phi\Big(\frac\mu2 - \frac\epsilon\mu\Big) - e^\epsilon \, \Phi\Big(-\frac\mu2 - \frac\epsilon\mu\Big)
          \leq \delta.
"""

from __future__ import annotations

import math

from scipy.special import log_ndtr, ndtr

from optrand.base.validation import check_epsilon, check_real
from optrand.errors import InvalidInput

__all__ = ["delta_of_gaussian", "least_sigma"]

ROUNDING = 1e-12
"""Rounding error of a float delta, as a share of the two probabilities whose difference it is."""

HALVINGS = 80
"""Steps of a search between two floats whose quotient is 2."""


def delta_of_gaussian(distance: float, sigma: float, epsilon: float) -> float:
    """Return the least `delta` with which Gaussian noise hides two points at a distance.

    Examples
    --------
    >>> round(delta_of_gaussian(1.0, 3.73063, 1.0), 9)
    1e-05
    """
    near, far = _tails(distance, sigma, epsilon)
    return near - far


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
        near, other = _tails(far, sigma, budget)
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


def _tails(distance: float, sigma: float, epsilon: float) -> tuple[float, float]:
    mu = distance / sigma
    return float(ndtr(mu / 2 - epsilon / mu)), math.exp(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)))
