"""Regression in closed form, each randomizer with the dual that proves it optimal wherever it is."""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import add_exactly
from optrand.base._validation import SMALLEST_NORMAL, Floats, check_labels, suggest_parameters
from optrand.certificates._bound import FLINT
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, Stats, tabulate
from optrand.model._problem import Dual, Interval, Problem, unbiased_range, unbiased_regression
from optrand.model._randomizer import Arcs, Randomizer


@suggest_parameters
def debiased_rr(labels: ArrayLike, epsilon: float, *, prior: ArrayLike | None = None) -> Mechanism:
    r"""Return randomized response whose outputs are moved apart until it is unbiased.

    The outputs for :math:`k` labels with mean :math:`\bar y` are

    .. math:: \Phi(y) = \frac{(e^\epsilon + k - 1) y - \sum_{y'} y'}{e^\epsilon - 1}
                      = y + x (y - \bar y), \qquad x = \frac{k}{e^\epsilon - 1}.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.
    prior : (k,) array, optional
        Probabilities of the labels, uniform if not given. The randomizer does not depend on it, its value and dual do.

    Returns
    -------
    Mechanism
        Unbiased regression on the real line under the prior. Under the uniform one its value is :math:`x (x + 2) s^2
        / 2` with :math:`s^2` the mean of :math:`(y - \bar y)^2`.

    Raises
    ------
    InvalidInput
        Outputs that overflow or coincide in floats.

    Notes
    -----
    The dual (``docs/mathematics.md``, section 8) proves optimality whenever it holds: always for two labels,
    otherwise from some epsilon on if all priors are positive. Elsewhere its bound is true but may be far off.
    Cost ``O(k)``.

    Examples
    --------
    >>> mechanism = debiased_rr([0, 1], math.log(3))
    >>> sorted(set(mechanism.outputs.round(12).tolist())), mechanism.bias
    ([-0.5, 1.5], 0.0)
    >>> [f"{debiased_rr([0, 1, 2], epsilon).certificate.gap:.3f}" for epsilon in (1.0, 4.0)]
    ['0.271', '0.000']
    """
    return tabulate(design_debiased_rr(labels, epsilon, prior=prior))


def design_debiased_rr(labels: ArrayLike, epsilon: float, *, prior: ArrayLike | None = None) -> Solution:
    """Compute debiased randomized response and its dual in floats, as in :func:`debiased_rr`."""
    count = check_labels(labels).size
    problem = unbiased_regression(labels, np.full(count, 1 / count) if prior is None else prior, epsilon)
    gain = math.expm1(problem.epsilon)
    x = problem.k / gain
    # By way of the lowest label, so that labels far from zero lose no digits.
    above = problem.labels - problem.labels[0]
    offsets = above - math.fsum(above) / problem.k
    with np.errstate(over="ignore"):
        outputs = problem.labels + x * offsets
    if not np.isfinite(outputs).all() or (np.diff(outputs) <= 0).any():
        raise InvalidInput(
            f"the outputs of debiased randomized response at epsilon {epsilon:g} overflow or coincide in floats: "
            "rescale the labels, merge those that nearly coincide, or raise epsilon"
        )
    each, weights = np.arange(problem.k), problem.prior
    arcs = Arcs(problem.k, each, each, outputs, np.full(problem.k, 1 / (gain + problem.k)))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = weights @ offsets, weights @ offsets**2
        apart = (1 + x) * offsets
        # All columns in use have reduced cost zero at a minimum: two linear equations per label, solved by hand.
        pull = apart - mean + gain * weights * x * offsets
        beta = (pull - pull.sum() / (gain + problem.k)) / gain
        cost = (square - 2 * mean * apart + apart**2 + gain * weights * (x * offsets) ** 2) / 2 - apart * pull
        alpha = (cost - cost.sum() / (gain + problem.k)) / gain
        alpha -= beta * (problem.labels[0] - offsets[0])
    dual = Dual(alpha, beta) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None
    return Solution(problem, randomizer, dual, Stats("debiased_rr"))


@suggest_parameters
def gap_response(labels: ArrayLike, prior: ArrayLike, epsilon: float) -> Mechanism:
    r"""Draw a public gap between two labels, then answer "is the label above it?" by binary randomized response.

    With :math:`E = e^\epsilon`, :math:`F_j` the prior of the labels before :math:`y_j` and :math:`d_j = y_j - y_{j-1}`,
    let :math:`P_j = 1 + (E - 1) F_j`, :math:`Q_j = E + 1 - P_j`, :math:`r_j = \sqrt{P_j Q_j}`, :math:`L = \sum_j d_j
    r_j` and :math:`\mu` be the mean label. The gap below :math:`y_j` is drawn with probability :math:`d_j r_j / L`, and
    the outputs are

    .. math:: \mu - \frac{L}{E - 1} \sqrt{\frac{Q_j}{P_j}} \quad (\text{no}), \qquad
              \mu + \frac{L}{E - 1} \sqrt{\frac{P_j}{Q_j}} \quad (\text{yes}).

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order. They are sorted, and the prior with them.
    prior : (k,) array
        Probabilities. Zeros are welcome.
    epsilon : float
        Privacy budget in nats.

    Returns
    -------
    Mechanism
        Unbiased regression on the real line, of value :math:`\tfrac12 ((L / (E - 1))^2 - \operatorname{Var} Y)`, which
        is the optimum if :func:`gap_response_is_optimal`.

    Raises
    ------
    InvalidInput
        Bad arguments, or outputs that floats cannot hold.

    Notes
    -----
    Proof: ``docs/mathematics.md``, section 11. Up to ``2 k - 2`` outputs. Cost ``O(k log k)``.

    Examples
    --------
    >>> mechanism = gap_response([0, 1, 3], [0.5, 0.3, 0.2], math.log(2))
    >>> sorted({round(v, 6) for v in mechanism.outputs.tolist()})
    [-3.539388, -2.724745, 5.339388, 6.337117]
    >>> mechanism.certificate.gap < 1e-12
    True
    """
    return tabulate(design_gap_response(labels, prior, epsilon))


def design_gap_response(labels: ArrayLike, prior: ArrayLike, epsilon: float) -> Solution:
    """Compute the gap response and its dual in floats, as in :func:`gap_response`."""
    problem = unbiased_regression(labels, prior, epsilon)
    if problem.k == 1:
        return design_debiased_rr(problem.labels, epsilon, prior=problem.prior)
    origin = problem.origin
    total = math.fsum(problem.prior)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = _Gaps(problem.labels - origin, problem.prior / total, problem.epsilon)
        # sqrt(Q_j / P_j), where Q_j = E - (E - 1) F_j is written without a difference.
        tilt = np.sqrt((1 + gaps.gain * gaps.above) / (1 + gaps.gain * gaps.below))
        offsets = gaps.mean + np.concatenate((-gaps.reach * tilt, gaps.reach / tilt))
    if not (np.abs(offsets) <= 1e150).all():
        raise InvalidInput(
            f"outputs reach beyond 1e150 at epsilon {problem.epsilon:g}: rescale the labels or raise epsilon"
        )
    node = np.arange(1, problem.k)
    first, last = np.append(np.zeros_like(node), node), np.append(node - 1, np.full_like(node, problem.k - 1))
    # A gap has the probability d rho / reach, and an answer to it 1 / (E + 1) for the labels that it does not favour.
    masses = np.tile(gaps.d * (gaps.rho / gaps.reach) / (gaps.gain + 2), 2)
    outputs, rests = add_exactly(offsets, origin)
    arcs = Arcs(problem.k, first, last, outputs, masses, rests)
    randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    return Solution(problem, randomizer, gaps.compute_dual(total, origin), Stats("gap_response"))


def gap_response_is_optimal(labels: ArrayLike, prior: ArrayLike, epsilon: float) -> bool:
    r"""Return whether :func:`gap_response` is the best unbiased randomizer on the line, decided exactly.

    It is if and only if

    .. math:: (P_{k-1} - P_1)^2 + (r_{k-1} - r_1)^2 \leq 1,

    where the numbers are those of :func:`gap_response`. They depend on the priors of the lowest and the highest label
    only. For epsilon up to log 2 this holds whatever the prior is.

    Parameters
    ----------
    labels, prior, epsilon
        As in :func:`gap_response`.

    Examples
    --------
    The condition for a uniform prior is :math:`E \leq 2 (k - 1) / (k - 2)`:

    >>> epsilons = math.log(8 / 3) - 1e-9, math.log(8 / 3) + 1e-9
    >>> [gap_response_is_optimal(range(5), [0.2] * 5, epsilon) for epsilon in epsilons]
    [True, False]
    """
    return condition_holds(unbiased_regression(labels, prior, epsilon))


def condition_holds(problem: Problem) -> bool:
    """Return whether the condition of :func:`gap_response_is_optimal` holds for a problem."""
    # For two labels P_1 and P_{k-1} are one number: the condition reads 0 <= 1.
    if problem.k < 3:
        return True
    below, *within, above = map(arb, problem.prior.tolist())
    bits = 64
    # The precision doubles until the balls of both sides are apart, which they are at last, as E is transcendental.
    while True:
        with FLINT, ctx.workprec(bits):
            inner, excess = sum(within, arb(0)), arb(problem.epsilon).expm1()
            total = below + inner + above
            spread = excess / total
            a, b = (1 + excess + spread * spread * end * (total - end) for end in (below, above))
            left, right = (spread * inner) ** 2 + a + b - 1, 2 * (a * b).sqrt()
            if left < right or left > right:
                return bool(left < right)
        bits *= 2


class _Gaps:
    r"""Numbers of the gaps 1 ... k-1, free of cancellation at every epsilon.

    With :math:`e = E / (E - 1)^2` and :math:`S_j = 1 - F_j` it is :math:`\rho_j = r_j / (E - 1) = \sqrt{e + F_j S_j}`.
    """

    def __init__(self, labels: Floats, prior: Floats, epsilon: float) -> None:
        self.labels, self.prior, self.epsilon = labels, prior, epsilon
        self.gain = math.expm1(epsilon)
        # E / (E - 1)**2 by factors that do not overflow.
        self.e = 1 / self.gain / -math.expm1(-epsilon)
        self.d = np.diff(labels)
        # Prior of the inner labels before each gap, and of all labels before it and after it. Sums from both ends: one
        # minus the other would lose the digits of a light tail.
        self.past = np.cumsum(np.append(0.0, prior[1:-1]))
        self.below = prior[0] + self.past
        self.above = prior[-1] + np.cumsum(np.append(0.0, prior[-2:0:-1]))[::-1]
        self.rho = np.sqrt(self.e + self.below * self.above)
        # L / (E - 1)
        self.reach = float(np.sum(self.d * self.rho))
        self.mean = float(labels[0] + np.sum(self.d * self.above))

    def compute_dual(self, total: float, origin: float) -> Dual:
        """Return the multipliers that make the reduced costs of used columns 0, for `total` times the prior."""
        apart = self.labels - self.mean
        alpha, beta = self.prior * (apart**2 + self.reach**2) / 2, -self.prior * apart
        slopes = (self.above[1:] - self.below[:-1]) / (self.rho[1:] + self.rho[:-1])
        beta[1:-1] -= self.prior[1:-1] * self.reach * slopes
        # The last label mirrors the first.
        alpha[0], beta[0] = self._first_multipliers()
        alpha[-1], slope_of_last = _Gaps(-self.labels[::-1], self.prior[::-1], self.epsilon)._first_multipliers()
        beta[-1] = -slope_of_last
        # Outputs are far off at a tiny epsilon, and slopes that do not cancel would count there.
        beta[np.abs(beta).argmin()] -= math.fsum(beta)
        return Dual(total * (alpha - beta * self.mean), total * beta, origin)

    def _first_multipliers(self) -> tuple[float, float]:
        """Return the multipliers of the first label, measured from the mean, as sums of positive terms."""
        below, above = self.below, self.above
        own, others = below[0], above[0]
        products = self.rho[0] * self.rho + own * above
        slopes = self.e / products * (self.e + own * others + below * above) + own / products * above * self.past
        roots = math.sqrt(others) * self.rho + math.sqrt(own) * above
        # With all prior on the first label the quotient is 0, and would be 0 / 0.
        excess = np.sum(self.d * (others * self.e + above * self.past) / np.maximum(roots, SMALLEST_NORMAL))
        factor = math.sqrt(own) * np.sum(self.d * above) + math.sqrt(others) * self.reach
        return float(-excess * factor / 2), -float(np.sum(self.d * slopes))


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
        Probabilities, on which the value depends and not the randomizer.
    epsilon : float
        Privacy budget in nats.

    Returns
    -------
    Mechanism
        For unbiased regression with outputs in this interval, of value :math:`\tfrac12 \sum_y p_y (y - L) (U - y)`.

    Notes
    -----
    It is the only unbiased randomizer with outputs there, and the dual proves its value (``docs/mathematics.md``,
    section 6) up to the rounding of the ends, by about 1e-15 at a small epsilon, and 1e-11 at one of 7. Cost ``O(k)``.

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
    labels, prior, epsilon = problem.labels, problem.prior, problem.epsilon
    low, high = problem.outputs.low, problem.outputs.high
    width = high - low
    shares = np.column_stack(((high - labels) / width, (labels - low) / width))
    randomizer = Randomizer(labels, np.array([low, high]), np.clip(shares, 0.0, 1.0), epsilon)
    # Measured from the middle of the interval, nothing cancels.
    origin = float(low + width / 2)
    apart = labels - origin
    with np.errstate(over="ignore", invalid="ignore"):
        # E / (2 (E^2 - 1)) and E / (8 (E - 1)), which overflow at no epsilon.
        steep = max(1 / (4 * np.sinh(epsilon)), -1 / (8 * np.expm1(-epsilon)))
        end = math.fsum(prior) * steep * width**2
        # The first and the last label cost -end at their own end of the interval, E * end at the other, all others 0.
        alpha, beta = prior * (apart**2 + width**2 / 4) / 2, -prior * apart
        alpha[[0, -1]] -= np.expm1(epsilon) * end / 2
        beta[[0, -1]] += (1 + np.exp(epsilon)) * end / width * np.array([-1, 1])
    dual = Dual(alpha, beta, origin) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None
    return Solution(problem, randomizer, dual, Stats("two_ends"))


def design_one_label(problem: Problem) -> Solution | None:
    r"""Compute the best distribution for a single label on a grid of two or more outputs, and its dual.

    With the costs :math:`c(v) = p g(v, y)` and their lower convex hull :math:`\hat c` the mean output :math:`m` is the
    label or, if a bias is allowed, least in :math:`\hat c(m) + \tfrac{\lambda p}{2} (m - y)^2`. It is a corner of the
    hull, or a mixture of two neighbouring ones. Its multiplier is the slope of a line that touches the hull there.

    Return None if no bias is allowed and the label is not an allowed mean. Cost ``O(n)``.
    """
    grid: Floats = problem.outputs.values  # type: ignore[union-attr]
    pull = float(problem.bias_weights[0])
    costs, apart = problem.prior[0] * problem.loss_table(grid)[0], grid - problem.labels[0]
    hull = _find_lower_hull(apart, costs)
    x = apart[hull]
    slopes = np.diff(costs[hull]) / np.diff(x)
    if problem.unbiased:
        if x[0] > 0 or x[-1] < 0:
            return None
        mean = 0.0
    elif pull:
        # On the line through an edge, costs and penalty are least at -slope / pull, which falls from edge to edge.
        with np.errstate(over="ignore"):
            mean = float(np.minimum(x, np.append(np.inf, -slopes / pull)).max())
    else:
        mean = float(apart[costs.argmin()])
    # The first corner at the mean or beyond it.
    at = int(np.searchsorted(x, mean))
    if x[at] == mean:
        # At a corner the middle of both slopes keeps all other costs above the line in floats, too.
        slope = slopes[max(at - 1, 0) : at + 1].mean() if problem.unbiased else -pull * mean
        used = hull[at : at + 1]
        row = [1.0]
    else:
        slope = slopes[at - 1]
        used = hull[at - 1 : at + 1]
        share = (mean - x[at - 1]) / (x[at] - x[at - 1])
        row = [1 - share, share]
    randomizer = Randomizer(problem.labels, grid[used], np.array([row]), problem.epsilon)
    dual = Dual(costs[used[:1]], np.array([slope]), float(grid[used[0]]))
    return Solution(problem, randomizer, dual, Stats("one label"))


def _find_lower_hull(x: Floats, costs: Floats) -> NDArray[np.intp]:
    """Return the corners of the lower convex hull of some points, from left to right (Andrew 1979)."""
    corners = list[int]()
    for i, (place, cost) in enumerate(zip(x.tolist(), costs.tolist(), strict=True)):
        while len(corners) > 1:
            before, last = corners[-2:]
            rise = (costs[last] - costs[before]) * (place - x[before])
            if rise < (cost - costs[before]) * (x[last] - x[before]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)
