"""Unbiased regression on the line in closed form, each randomizer with the dual that proves it optimal wherever it is.

Debiased randomized response ([B23], Definition 23) is optimal for a large epsilon if all priors are positive. A
public gap between labels, then one private bit, is optimal for a small one.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optrand.base._arithmetic import add_exactly
from optrand.base._validation import SMALLEST_NORMAL, Floats, check_labels, suggest_parameters
from optrand.certificates._bound import FLINT
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Dual, Problem, unbiased_regression
from optrand.model._randomizer import Arcs, Randomizer, Solution, Stats


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
    >>> f"{mechanism.certificate.lower:.9f} {mechanism.certificate.upper:.9f}"
    '0.375000000 0.375000000'
    >>> [f"{debiased_rr([0, 1, 2], epsilon).certificate.gap:.3f}" for epsilon in (1.0, 4.0)]
    ['0.271', '0.000']
    """
    return tabulate(design_debiased_rr(labels, epsilon, prior=prior))


def design_debiased_rr(labels: ArrayLike, epsilon: float, *, prior: ArrayLike | None = None) -> Solution:
    """Compute debiased randomized response and its dual in floats, as in :func:`debiased_rr`."""
    count = check_labels(labels).size
    # The randomizer is the same under every prior: it enters the loss and the multipliers alone.
    problem = unbiased_regression(labels, np.full(count, 1 / count) if prior is None else prior, epsilon)
    gain = math.expm1(problem.epsilon)
    # By way of the lowest label, so that labels far from zero lose no digits.
    above = problem.labels - problem.labels[0]
    offsets = above - math.fsum(above) / problem.k
    with np.errstate(over="ignore"):
        outputs = problem.labels + problem.k / gain * offsets
    if not np.isfinite(outputs).all() or (np.diff(outputs) <= 0).any():
        raise InvalidInput(
            f"the outputs of debiased randomized response at epsilon {epsilon:g} overflow or coincide in floats: "
            "rescale the labels, merge those that nearly coincide, or raise epsilon"
        )
    each = np.arange(problem.k)
    arcs = Arcs(problem.k, each, each, outputs, np.full(problem.k, 1 / (gain + problem.k)))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    return Solution(problem, randomizer, _compute_dual(problem, offsets, gain), Stats("debiased_rr"))


def _compute_dual(problem: Problem, offsets: Floats, gain: float) -> Dual | None:
    """Return the multipliers of :func:`debiased_rr`, or None if floats cannot hold them."""
    prior, x = problem.prior, problem.k / gain
    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = prior @ offsets, prior @ offsets**2
        apart = (1 + x) * offsets
        # All columns in use have reduced cost zero at a minimum: two linear equations per label, solved by hand.
        pull = apart - mean + gain * prior * x * offsets
        beta = (pull - pull.sum() / (gain + problem.k)) / gain
        cost = (square - 2 * mean * apart + apart**2 + gain * prior * (x * offsets) ** 2) / 2 - apart * pull
        alpha = (cost - cost.sum() / (gain + problem.k)) / gain
        alpha -= beta * (problem.labels[0] - offsets[0])
    return Dual(alpha, beta) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None


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
    origin, total = problem.origin, math.fsum(problem.prior)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = _Gaps(problem.labels - origin, problem.prior / total, problem.epsilon)
        # sqrt(Q_j / P_j), where Q_j = E - (E - 1) F_j is written without a difference.
        tilt = np.sqrt((1 + gaps.gain * gaps.above) / (1 + gaps.gain * gaps.below))
        offsets = gaps.mean + np.concatenate((-gaps.reach * tilt, gaps.reach / tilt))
    largest = 1e150
    if not (np.abs(offsets) <= largest).all():
        raise InvalidInput(
            f"at epsilon {problem.epsilon:g} outputs reach beyond {largest:g}, where the square of a float overflows: "
            "rescale the labels or raise epsilon"
        )
    node = np.arange(1, problem.k)
    first, last = np.append(np.zeros_like(node), node), np.append(node - 1, np.full_like(node, problem.k - 1))
    # A gap has the probability d rho / reach, and an answer to it 1 / (E + 1) for the labels that it does not favour.
    masses = np.tile(gaps.d * (gaps.rho / gaps.reach) / (gaps.gain + 2), 2)
    outputs, rests = add_exactly(offsets, origin)
    arcs = Arcs(problem.k, first, last, outputs, masses, rests)
    alpha, beta = gaps.multipliers()
    dual = Dual(total * alpha, total * beta, origin)
    return Solution(problem, Randomizer.of_arcs(problem.labels, arcs, problem.epsilon), dual, Stats("gap_response"))


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

    Notes
    -----
    With :math:`x = E - 1`, the prior :math:`N` of the inner labels, and :math:`a = r_1^2`, :math:`b = r_{k-1}^2` the
    condition is :math:`x^2 N^2 + a + b - 1 \leq 2 \sqrt{a b}`, an inequality between polynomials in :math:`E`. It is
    decided in ball arithmetic. As :math:`E` is transcendental, the balls are apart at some precision.

    Examples
    --------
    The condition for a uniform prior is :math:`E \leq 2 (k - 1) / (k - 2)`:

    >>> [
    ...     gap_response_is_optimal(range(5), [0.2] * 5, math.log(8 / 3) + shift)
    ...     for shift in (-1e-9, 1e-9)
    ... ]
    [True, False]
    """
    return condition_holds(unbiased_regression(labels, prior, epsilon))


def condition_holds(problem: Problem) -> bool:
    """Return whether the condition of :func:`gap_response_is_optimal` holds for a problem."""
    # For two labels P_1 and P_{k-1} are one number: the condition reads 0 <= 1.
    if problem.k < 3:
        return True
    below, *within, above = map(arb, problem.prior.tolist())
    digits = 64
    # They double until the balls of both sides are apart.
    while True:
        with FLINT, ctx.workprec(digits):
            inner, excess = sum(within, arb(0)), arb(problem.epsilon).expm1()
            total = below + inner + above
            spread = excess / total
            a, b = (1 + excess + spread * spread * end * (total - end) for end in (below, above))
            left, right = (spread * inner) ** 2 + a + b - 1, 2 * (a * b).sqrt()
            if left < right or left > right:
                return bool(left < right)
        digits *= 2


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
        self.past = _sum_up(prior[1:-1])
        self.below, self.above = prior[0] + self.past, prior[-1] + _sum_up(prior[-2:0:-1])[::-1]
        self.rho = np.sqrt(self.e + self.below * self.above)
        # L / (E - 1)
        self.reach = float(np.sum(self.d * self.rho))
        self.mean = float(labels[0] + np.sum(self.d * self.above))

    def multipliers(self) -> tuple[Floats, Floats]:
        """Return the multipliers that make the reduced costs of used columns 0."""
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
        return alpha - beta * self.mean, beta

    def _first_multipliers(self) -> tuple[float, float]:
        """Return the multipliers of the first label, measured from the mean, as sums of positive terms."""
        own, others, below, above = self.below[0], self.above[0], self.below, self.above
        products = self.rho[0] * self.rho + own * above
        slopes = self.e / products * (self.e + own * others + below * above) + own / products * above * self.past
        roots = math.sqrt(others) * self.rho + math.sqrt(own) * above
        # With all prior on the first label this is 0 / 0, in place of 0.
        excess = np.sum(self.d * (others * self.e + above * self.past) / np.maximum(roots, SMALLEST_NORMAL))
        factor = math.sqrt(own) * np.sum(self.d * above) + math.sqrt(others) * self.reach
        return float(-excess * factor / 2), -float(np.sum(self.d * slopes))


def _sum_up(parts: Floats) -> Floats:
    """Return running sums from 0 on, in extended precision if the machine has it."""
    totals: Floats = np.concatenate(([0.0], np.cumsum(parts, dtype=np.longdouble))).astype(np.float64)
    return totals
