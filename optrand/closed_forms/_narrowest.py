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
    *No other randomizer is unbiased there.* Since :math:`x_{k-1} = E x_0`, an unbiased one has
    :math:`\mathbb{E}[v - L \mid y_{k-1}] = E \, \mathbb{E}[v - L \mid y_0]`. By privacy no output is more than
    :math:`E` times as likely for :math:`y_{k-1}` as for :math:`y_0`, so that every output above :math:`L` is just
    :math:`E` times as likely. In the same way every output below :math:`U` is :math:`E` times as likely for
    :math:`y_0`. An output in between would be both. So these labels, and by privacy all labels, have the outputs
    :math:`L` and :math:`U` only, and the mean fixes their probabilities. In a wider interval the two ends are unbiased
    and private, too, but no longer the best, for the two ends of the narrowest one have a smaller value.

    *Dual.* Let the reduced costs :math:`h_y(v) = \frac12 p_y (v - y)^2 - \alpha_y - \beta_y v` be

    .. math:: h_y(v) = -p_y q(x) + a_y (1 - x) + b_y x, \qquad x = \frac{v - L}{D}, \quad q(x) = \frac{D^2}{2} x (1 - x)

    with :math:`a_0 = b_{k-1} = -t`, :math:`a_{k-1} = b_0 = E t`, and zeros at the inner labels. (Any such function has
    the leading coefficient :math:`p_y / 2`, so that it belongs to some :math:`\alpha_y, \beta_y`.) The bound of the
    multipliers is the value, as :math:`\mathbb{E}[h_y] = a_y (1 - x_y) + b_y x_y` is zero for every label:
    :math:`x_0 = 1 / (E + 1) = 1 - x_{k-1}`.

    They are feasible if no column is cheap, :math:`\sum_y s_y h_y(v) \geq 0` for all :math:`s_y \in \{1, E\}` and all
    :math:`v` in the interval. With :math:`\sum_y p_y = 1` and :math:`s_y \leq E` it is enough that

    .. math:: t \big( s_0 (E x - (1 - x)) + s_{k-1} (E (1 - x) - x) \big) \geq E q(x).

    For :math:`x \leq 1 / (E + 1)` the first bracket is not positive, so the left side is least at :math:`s_0 = E,
    s_{k-1} = 1`, where it is :math:`t (E^2 - 1) x`. The right side is at most :math:`\frac12 E D^2 x`. Likewise for
    :math:`x \geq E / (E + 1)`. In between both brackets are nonnegative, the left side is at least :math:`t (E - 1)`,
    and the right side at most :math:`\frac18 E D^2`. So

    .. math:: t = \max \Big( \frac{E D^2}{2 (E^2 - 1)}, \frac{E D^2}{8 (E - 1)} \Big)

    will do. In floats the ends are off by rounding, of which the bound takes :math:`E` times its share of the interval:
    the certified gap is near 1e-15 at a small epsilon, and at most some 1e-12 at an epsilon of 7. Cost ``O(k)``.

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

    They answer the problem if the interval is the narrowest one. The wider it is, the further the bound lies below the
    value.

    Parameters
    ----------
    problem : Problem
        Unbiased regression of squared loss on two labels or more, with outputs in an interval.
    """
    labels, low, high = problem.labels, problem.outputs.low, problem.outputs.high
    width = high - low
    shares = np.column_stack(((high - labels) / width, (labels - low) / width))
    randomizer = Randomizer(labels, np.array([low, high]), np.clip(shares, 0.0, 1.0), problem.epsilon)
    return Solution(problem, randomizer, _dual(problem), Stats("two_ends"))


def _dual(problem: Problem) -> Dual | None:
    """Return the multipliers of :func:`two_ends`; None where floats cannot hold them."""
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
