"""Two outputs at the ends of the narrowest interval with an unbiased randomizer: the only one there, with its dual."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import check_labels
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Dual, Interval, Problem, unbiased_range, unbiased_regression
from optrand.model._randomizer import Randomizer, Solution, Stats


def two_ends(labels: ArrayLike, prior: ArrayLike, epsilon: float) -> Mechanism:
    r"""Draw one of two outputs, the ends of the narrowest interval that holds an unbiased randomizer.

    With :math:`E = e^\epsilon` and labels from :math:`y_0` to :math:`y_{k-1}` the ends are :math:`L = (E y_0 - y_{k-1})
    / (E - 1)` and :math:`U = (E y_{k-1} - y_0) / (E - 1)` (:func:`optrand.unbiased_range`), and

    .. math:: \Pr[U \mid y] = x_y := \frac{y - L}{D}, \qquad \Pr[L \mid y] = 1 - x_y, \qquad D = U - L.

    Parameters
    ----------
    labels : (k,) array
        Two or more distinct numbers in any order. They are sorted, and the prior with them.
    prior : (k,) array
        Probabilities. Zeros are welcome. The randomizer does not depend on them, its value and dual do.
    epsilon : float
        Privacy budget in nats.

    Returns
    -------
    Mechanism
        For unbiased regression with outputs in this interval, of value :math:`\tfrac12 \sum_y p_y (y - L) (U - y)`.

    Raises
    ------
    InvalidInput
        A single label, or bad arguments.

    Notes
    -----
    It is the only unbiased randomizer with outputs there, and the dual proves its value (``docs/mathematics.md``,
    section 6). In floats the ends are off by rounding, of which the bound takes :math:`E` times its share of the
    interval: the certified gap is near 1e-15 at a small epsilon, and at most some 1e-12 at an epsilon of 7. Cost
    ``O(k)``.

    Examples
    --------
    >>> mechanism = two_ends([0, 1, 2], [0.5, 0.3, 0.2], math.log(3))
    >>> mechanism.outputs.round(9).tolist(), mechanism.matrix.round(9).tolist()
    ([-1.0, 3.0], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    >>> round(mechanism.value, 9), mechanism.certificate.gap < 1e-12
    (1.65, True)
    """
    if check_labels(labels).size == 1:
        raise InvalidInput("two_ends needs two labels or more: a single label is its own unbiased output")
    interval = Interval(*unbiased_range(labels, epsilon))
    return tabulate(design_two_ends(unbiased_regression(labels, prior, epsilon, outputs=interval)))


def design_two_ends(problem: Problem) -> Solution:
    """Compute the table of the two ends of a problem's interval in floats, with the dual of :func:`two_ends`.

    The problem is unbiased regression of squared loss on two labels or more, with outputs in an interval. The wider it
    is than the narrowest one, the further the bound lies below the value.
    """
    labels, low, high = problem.labels, problem.outputs.low, problem.outputs.high
    width = high - low
    shares = np.column_stack(((high - labels) / width, (labels - low) / width))
    randomizer = Randomizer(labels, np.array([low, high]), np.clip(shares, 0.0, 1.0), problem.epsilon)
    return Solution(problem, randomizer, _compute_dual(problem), Stats("two_ends"))


def _compute_dual(problem: Problem) -> Dual | None:
    """Return the multipliers of :func:`two_ends`, or None if floats cannot hold them."""
    # The origin divides the interval by the golden ratio, so that the distance of one end is no multiple of that of the
    # other, nor is the rounding there.
    golden = (math.sqrt(5) - 1) / 2
    origin = float(problem.outputs.low + golden * (problem.outputs.high - problem.outputs.low))
    prior, epsilon = problem.prior, problem.epsilon
    labels, low, high = problem.labels - origin, problem.outputs.low - origin, problem.outputs.high - origin
    width, middle = high - low, (low + high) / 2
    with np.errstate(over="ignore", invalid="ignore"):
        # E / (E^2 - 1) and E / (E - 1), which overflow at no epsilon.
        steep = max(-np.exp(-epsilon) / np.expm1(-2 * epsilon) / 2, -1 / np.expm1(-epsilon) / 8)
        end = math.fsum(prior) * steep * width**2
        # The numbers a and b of two_ends: reduced costs at the two ends of the interval, where the parabola q is zero.
        at_low, at_high = np.zeros(problem.k), np.zeros(problem.k)
        at_low[[0, -1]] = -end, np.exp(epsilon) * end
        at_high[[0, -1]] = np.exp(epsilon) * end, -end
        # Measured from the middle of the interval, where nothing cancels, and then from the origin.
        apart = labels - middle
        beta = (at_low - at_high) / width - prior * apart
        alpha = prior * (apart**2 + width**2 / 4) / 2 - (at_low + at_high) / 2 - beta * middle
        # At its own end of the interval an end label has the reduced cost -t. Its alpha and beta are rounded so that it
        # is, since the bound takes the error E times.
        for label, output in ((0, problem.outputs.low), (-1, problem.outputs.high)):
            place = np.longdouble(output) - origin
            rest = prior[label] * (place - labels[label]) ** 2 / 2 + np.longdouble(end)
            alpha[label], beta[label] = _round_together(rest, place, beta[label])
    return Dual(alpha, beta, origin) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None


def _round_together(total: np.longdouble, place: np.longdouble, beta: float) -> tuple[float, float]:
    """Return floats `alpha` and `beta`, the latter near the given one, whose ``alpha + beta * place`` is `total`.

    Both grow with ``E`` and cancel at the label's own end of the interval. Of 64 neighbouring floats the first is taken
    that leaves no more rounding there than `total` itself has, or else the one that leaves the least.
    """
    betas = beta * (1 + np.arange(64) * np.finfo(float).eps)
    exact = total - betas.astype(np.longdouble) * place
    alphas = exact.astype(np.float64)
    off = np.maximum(np.abs(alphas - exact), abs(total) * np.finfo(float).eps)
    best = int(off.argmin())
    return float(alphas[best]), float(betas[best])
