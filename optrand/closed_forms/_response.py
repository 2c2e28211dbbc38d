"""Randomized response on all labels, on the likeliest `k`, and on the best number ([G21], Algorithms 1 and 2)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import privacy_ratio
from optrand.base._validation import Floats, check_epsilon, check_integer, check_labels, suggest_parameters
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Dual, Problem, classification
from optrand.model._randomizer import Solution, Stats
from optrand.model._table import Table


@suggest_parameters
def rr(labels: ArrayLike, epsilon: float) -> Mechanism:
    """Return randomized response: the label itself, ``exp(epsilon)`` times likelier than each other one.

    It solves classification under the uniform prior, with the dual of :func:`rr_with_prior`.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.

    Examples
    --------
    >>> mechanism = rr([0, 1, 2], 1.0)
    >>> mechanism.matrix.round(4).tolist()
    [[0.5761, 0.2119, 0.2119], [0.2119, 0.5761, 0.2119], [0.2119, 0.2119, 0.5761]]
    >>> f"{mechanism.certificate.lower:.12f} {mechanism.certificate.upper:.12f}"
    '0.576116884766 0.576116884766'
    """
    names = check_labels(labels)
    problem = classification(np.full(names.size, 1 / names.size), epsilon, labels=names)
    return respond_exactly(problem, np.ones(problem.k, dtype=np.bool_))


@suggest_parameters
def rr_top_k(prior: ArrayLike, k: int, epsilon: float) -> Mechanism:
    r"""Return RRTop-k: randomized response on the `k` likeliest labels. Others become one of these at random.

    .. math:: \Pr[v \mid y] = \frac{e^{\epsilon \cdot 1[v = y]}}{e^\epsilon + k - 1} \quad (y \in Y_k), \qquad
              \Pr[v \mid y] = \frac{1}{k} \quad (y \notin Y_k), \qquad v \in Y_k

    Outputs are the kept labels, in increasing order. The dual is that of :func:`rr_with_prior`, so that the certified
    gap is the distance from the optimum.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels ``0 ... K-1``.
    k : int
        From 1 to ``K``. Of equally likely labels the smaller is kept.
    epsilon : float
        Privacy budget in nats.

    Examples
    --------
    >>> prior = [0.5, 0.3, 0.2]
    >>> [f"{rr_top_k(prior, k, 1.0).certificate.gap:.3f}" for k in (1, 2, 3)]
    ['0.170', '0.000', '0.015']
    """
    problem = classification(prior, epsilon)
    size = check_integer(k, "k", 1, problem.k, why=", the number of labels")
    kept = np.zeros(problem.k, dtype=np.bool_)
    kept[np.argsort(-problem.prior, kind="stable")[:size]] = True
    return respond_exactly(problem, kept)


@suggest_parameters
def rr_with_prior(prior: ArrayLike, epsilon: float) -> Mechanism:
    r"""Return RRWithPrior, the optimal randomizer of classes: :func:`rr_top_k` with the best `k` for the prior.

    With :math:`P_k` the sum of the `k` largest priors it attains the optimum of LP1 of [G21],

    .. math:: S = \max_k w_k, \qquad w_k = \frac{e^\epsilon P_k}{e^\epsilon + k - 1}.

    The dual :math:`-\alpha_y = \max(0, (e^\epsilon p_y - S) / (e^\epsilon - 1))`, :math:`\beta = 0`, proves it ([G21],
    Theorem 3, and ``docs/mathematics.md``, Theorem 5).

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels ``0 ... K-1``. Zeros are welcome.
    epsilon : float
        Privacy budget in nats.

    Notes
    -----
    Since :math:`w_k` is the mean of :math:`w_{k-1}` and :math:`e^\epsilon p_{(k)}` with weights :math:`e^\epsilon + k -
    2` and 1, the `k`-th label is kept if :math:`e^\epsilon p_{(k)} > w_{k-1}`, that is, if

    .. math:: D_k := \sum_{j < k} (p_{(j)} - p_{(k)}) < (e^\epsilon - 1) p_{(k)}.

    The left side grows with `k` and the right side shrinks: equally likely labels are kept or left out together. The
    code has :math:`-\alpha_y = \frac{e^\epsilon}{e^\epsilon + k - 1} \big( p_y + \frac{k (p_y - p_{(k)}) -
    D_k}{e^\epsilon - 1} \big)`, which loses no digits at a small epsilon. Cost ``O(K log K)``, and for each kept label
    as many steps as kept and other labels alternate.

    Examples
    --------
    >>> mechanism = rr_with_prior([0.5, 0.3, 0.2], 1.0)
    >>> mechanism.outputs.tolist(), round(mechanism.value, 6)
    ([0.0, 1.0], 0.584847)
    >>> mechanism.certificate.require(gap=1e-12).findings
    ()
    """
    return respond_exactly(classification(prior, epsilon))


def design_rr_with_prior(problem: Problem) -> Solution:
    """Return RRWithPrior and its dual in floats, for a problem of classification over the labels."""
    mechanism = respond_exactly(problem)
    return Solution(problem, mechanism.randomizer, mechanism.dual, Stats("rr_with_prior"))


def respond_exactly(problem: Problem, kept: NDArray[np.bool_] | None = None) -> Mechanism:
    """Build randomized response on the (k,) labels that are kept in integers, by default on the best ones.

    With ``R = r / d`` the rational ratio just below ``exp(epsilon)`` a kept label has the weight ``r`` for itself and
    ``d`` for each of the other `m - 1` kept labels, times `m`. All other labels have ``r + (m - 1) d`` for each.
    """
    best = kept_labels(problem.prior[np.newaxis], problem.epsilon)[0]
    kept = best if kept is None else kept
    ratio = privacy_ratio(problem.epsilon)
    size = int(np.count_nonzero(kept))
    scale = 1 if kept.all() else size
    own, other = scale * ratio.numerator, scale * ratio.denominator
    rest = ratio.numerator + (size - 1) * ratio.denominator
    # All columns have one profile, except at the label that is the output.
    levels = [other if one else rest for one in kept.tolist()]
    profile = {y: after - before for y, (before, after) in enumerate(pairwise((0, *levels))) if after != before}
    columns = []
    for y in np.flatnonzero(kept).tolist():
        steps = dict(profile)
        steps[y] = steps.get(y, 0) + own - other
        if y + 1 < problem.k:
            steps[y + 1] = steps.get(y + 1, 0) + other - own
        columns.append(tuple((place, step) for place, step in sorted(steps.items()) if step))
    table = Table.of_columns(problem.labels, problem.labels[kept], columns)
    return Mechanism(problem, table, _compute_dual(problem, best))


def kept_labels(priors: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Return the labels that :func:`rr_with_prior` keeps, for each row of (b, K) priors, in ``O(b K log K)``."""
    gain = math.expm1(check_epsilon(epsilon))
    kept = np.empty(priors.shape, dtype=np.bool_)
    k = np.arange(1, priors.shape[1])
    # A million entries at a time bound the memory of sorting.
    step = max(1, (1 << 20) // priors.shape[1])
    for start in range(0, priors.shape[0], step):
        block = priors[start : start + step]
        falling = np.sort(block, axis=1)[:, ::-1]
        # D of rr_with_prior grows by k times the difference of two neighbours, so that nothing cancels.
        surplus = np.cumsum(k * (falling[:, :-1] - falling[:, 1:]), axis=1)
        last = (surplus < gain * falling[:, 1:]).sum(axis=1)
        smallest = np.take_along_axis(falling, last[:, np.newaxis], axis=1)
        kept[start : start + step] = block >= smallest
    return kept


def _compute_dual(problem: Problem, best: NDArray[np.bool_]) -> Dual:
    """Return the multipliers of :func:`rr_with_prior`, which keeps the labels `best`."""
    p = problem.prior[best]
    surplus = p - p.min()
    # The form in the notes of rr_with_prior, from differences of priors: E p - S would cancel at a small epsilon.
    tilt = (p.size * surplus - math.fsum(surplus)) / math.expm1(problem.epsilon)
    alpha = np.zeros(problem.k)
    # In powers of 1 / E, which do not overflow.
    alpha[best] = -np.maximum(p + tilt, 0.0) / (1 + (p.size - 1) * math.exp(-problem.epsilon))
    return Dual(alpha, np.zeros(problem.k))
