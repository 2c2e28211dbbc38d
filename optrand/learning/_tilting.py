r"""Distribution of each row's label from its predicted mean, by exponential tilting of a prior.

.. math:: p_i(y) \propto p(y) \, e^{\theta_i y - \tau y^2 / 2}

The tilt :math:`\theta_i` gives row `i` its mean. One :math:`\tau \geq 0` for all rows takes from the prior's variance
the part that the predictions explain, so that the rows' distributions have, together, the variance of the prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from optrand.base._validation import Floats


def tilt_priors(prior: Floats, labels: Floats, means: Floats, weights: NDArray[Any] | None = None) -> Floats:
    """Compute the distribution over increasing labels of each predicted mean, shape ``(m, K)``.

    The prior of all rows together is positive. Means outside the labels, or nearly at an end, are moved inside;
    `weights` are the numbers of rows of each, by default 1.
    """
    scale = labels[-1] - labels[0]
    places = (labels - labels[0]) / scale
    # At the very ends a tilt would be infinite, and the prior of the randomizer have no second label.
    wanted = np.clip((means - labels[0]) / scale, 1e-3, 1 - 1e-3)
    shares = np.full(means.size, 1 / means.size) if weights is None else weights / weights.sum()
    total = float(prior @ (places - prior @ places) ** 2)
    left = total - float(shares @ (wanted - shares @ wanted) ** 2)

    def excess(tau: float) -> float:
        rows = _tilt(prior, places, wanted, tau)
        return float(shares @ (rows @ places**2 - (rows @ places) ** 2)) - left

    # The variance within rows falls as tau grows. At 1e4 a row is as narrow as a hundredth of the range.
    narrowest = 1e4
    if excess(0.0) <= 0:
        return _tilt(prior, places, wanted, 0.0)
    if excess(narrowest) >= 0:
        return _tilt(prior, places, wanted, narrowest)
    return _tilt(prior, places, wanted, float(brentq(excess, 0.0, narrowest, rtol=1e-6)))


def _tilt(prior: Floats, places: Floats, means: Floats, tau: float) -> Floats:
    """Tilt a narrowed prior to each mean, by bisection; means increase with the tilt."""
    logs = np.log(prior) - tau * places**2 / 2
    low, high = np.full(means.size, -1e4), np.full(means.size, 1e4)
    # 60 halvings bring a tilt to the precision of floats.
    for _ in range(60):
        middle = (low + high) / 2
        above = _normalize(logs + middle[:, np.newaxis] * places) @ places > means
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return _normalize(logs + ((low + high) / 2)[:, np.newaxis] * places)


def _normalize(logs: Floats) -> Floats:
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    rows: Floats = powers / powers.sum(axis=1, keepdims=True)
    return rows
