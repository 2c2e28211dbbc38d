"""Debiased randomized response ([B23], Definition 23), with the dual that proves it optimal wherever it is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, check_epsilon, check_labels, check_prior
from optrand.closed_forms.response import response_weights
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.problem import Dual, Problem, unbiased_regression
from optrand.model.randomizer import Arcs, Randomizer, Solution, Stats

__all__ = ["debiased_rr", "design_debiased_rr"]


def debiased_rr(labels: ArrayLike, epsilon: float, *, prior: ArrayLike | None = None) -> Mechanism:
    r"""Randomized response whose outputs are moved apart until it is unbiased.

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
        Probabilities of the labels; uniform if not given. The randomizer does not depend on it, its value and dual do.

    Returns
    -------
    Mechanism
        Of unbiased regression on the real line under the prior. Under the uniform one its value is :math:`x (x + 2) s^2
        / 2` with :math:`s^2` the mean of :math:`(y - \bar y)^2`.

    Raises
    ------
    InvalidInput
        Outputs that floats cannot hold or tell apart.

    Notes
    -----
    The dual (``docs/mathematics.md``, section 8) proves optimality exactly where it holds: always for two labels,
    otherwise from some epsilon on. Elsewhere its bound is true but may be far off. For labels far from zero it loses
    digits; the outputs keep theirs. Cost ``O(k)``.

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
    """Compute debiased randomized response and its dual in floats; see :func:`debiased_rr`."""
    given = check_labels(labels)
    order = np.argsort(given)
    names = given[order]
    weights = np.full(names.size, 1 / names.size) if prior is None else check_prior(prior, names.size)[order]
    gain = math.expm1(check_epsilon(epsilon))
    offsets = _from_mean(names)
    with np.errstate(over="ignore"):
        outputs = names + names.size / gain * offsets
    if not np.isfinite(outputs).all() or (np.diff(outputs) <= 0).any():
        raise InvalidInput(
            f"the outputs of debiased randomized response at epsilon {epsilon:g} overflow or coincide in floats: "
            "rescale the labels, merge those that nearly coincide, or raise epsilon"
        )
    problem = unbiased_regression(names, weights, epsilon)
    each = np.arange(problem.k)
    arcs = Arcs(problem.k, each, each, outputs, np.full(problem.k, response_weights(problem.k, problem.epsilon)[1]))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, problem.epsilon)
    return Solution(problem, randomizer, _dual(problem, offsets, gain), Stats("debiased_rr"))


def _from_mean(labels: Floats) -> Floats:
    """Labels less their mean, by way of the lowest label so that labels far from zero lose no digits."""
    with np.errstate(over="ignore"):
        above = labels - labels[0]
    if not np.isfinite(above).all():
        raise InvalidInput("the range of the labels overflows in floats: rescale the labels")
    offsets: Floats = above - math.fsum(above / labels.size)
    return offsets


def _dual(problem: Problem, offsets: Floats, gain: float) -> Dual | None:
    """Multipliers of :func:`debiased_rr`; None where floats cannot hold them."""
    prior, x = problem.prior, problem.k / gain
    with np.errstate(over="ignore", invalid="ignore"):
        mean, square = prior @ offsets, prior @ offsets**2
        apart = (1 + x) * offsets
        pull = apart - mean + gain * prior * x * offsets
        beta = (pull - pull.sum() / (gain + problem.k)) / gain
        cost = (square - 2 * mean * apart + apart**2 + gain * prior * (x * offsets) ** 2) / 2 - apart * pull
        alpha = (cost - cost.sum() / (gain + problem.k)) / gain
        alpha -= beta * (problem.labels[0] - offsets[0])
    return Dual(alpha, beta) if np.isfinite(alpha).all() and np.isfinite(beta).all() else None
