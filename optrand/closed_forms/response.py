"""Randomized response on all labels, on the likeliest `k`, and on the best number ([G21], Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, integer
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import labels as checked_labels
from optrand.model.problem import Problem, classification
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats

__all__ = ["kept_labels", "many_rr_with_prior", "response_weights", "rr", "rr_top_k", "rr_with_prior"]

BLOCK = 1 << 20
"""Entries of a batch of priors that are sorted at a time."""


def rr(labels: ArrayLike, epsilon: float) -> Solution:
    r"""Randomized response: the label itself, ``exp(epsilon)`` times likelier than each other one.

    .. math:: \Pr[v \mid y] = \frac{e^{\epsilon \cdot 1[v = y]}}{e^\epsilon + k - 1}

    It solves classification under the uniform prior, with the dual of :func:`rr_with_prior`.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.

    Examples
    --------
    >>> from optrand.certificates.certificate import certify
    >>> solution = rr([0, 1, 2], 1.0)
    >>> solution.randomizer.matrix.round(4).tolist()
    [[0.5761, 0.2119, 0.2119], [0.2119, 0.5761, 0.2119], [0.2119, 0.2119, 0.5761]]
    >>> proof = certify(solution)
    >>> f"{proof.lower:.12f} {proof.upper:.12f}"
    '0.576116884766 0.576116884766'
    """
    names = checked_labels(labels)
    problem = classification(np.full(names.size, 1 / names.size), epsilon, labels=names)
    kept = np.arange(problem.k)
    return Solution(problem, _respond(problem, kept), _dual(problem), Stats("rr"))


def rr_top_k(prior: ArrayLike, k: int, epsilon: float) -> Solution:
    r"""Randomized response on the `k` likeliest labels; any other label gives one of these at random.

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
    >>> from optrand.certificates.certificate import certify
    >>> prior = [0.5, 0.3, 0.2]
    >>> [f"{certify(rr_top_k(prior, k, 1.0)).gap:.3f}" for k in (1, 2, 3)]
    ['0.170', '0.000', '0.015']
    """
    problem = classification(prior, epsilon)
    size = integer(k, "k", 1, problem.k, why=", the number of labels")
    kept = np.sort(np.argsort(-problem.prior, kind="stable")[:size])
    return Solution(problem, _respond(problem, kept), _dual(problem), Stats(f"rr_top_k(k={k})"))


def rr_with_prior(prior: ArrayLike, epsilon: float) -> Solution:
    r"""Optimal classification randomizer: :func:`rr_top_k` with the `k` that keeps the label most often.

    With :math:`P_k` the sum of the `k` largest priors it attains the optimum of LP1 of [G21],

    .. math:: S = \max_k w_k, \qquad w_k = \frac{e^\epsilon P_k}{e^\epsilon + k - 1}.

    The dual :math:`-\alpha_y = \max(0, (e^\epsilon p_y - S) / (e^\epsilon - 1))`, :math:`\beta = 0`, proves it ([G21],
    Theorem 3; ``docs/mathematics.md``, Theorem 5).

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels ``0 ... K-1``; zeros are welcome.
    epsilon : float
        Privacy budget in nats.

    Notes
    -----
    *The best k.* Since :math:`w_k` is the mean of :math:`w_{k-1}` and :math:`e^\epsilon p_{(k)}` with weights
    :math:`e^\epsilon + k - 2` and 1, keeping one label more pays if and only if :math:`e^\epsilon p_{(k)} > w_{k-1}`,
    that is, if

    .. math:: D_k := \sum_{j < k} (p_{(j)} - p_{(k)}) < (e^\epsilon - 1) p_{(k)}.

    The left side grows with `k` and the right side shrinks, so the labels that pay come first, and equally likely
    labels are kept or left out together. In floats :math:`-\alpha_y` is :math:`\frac{e^\epsilon}{e^\epsilon + k - 1}
    \big( p_y + \frac{k d_y - D_k}{e^\epsilon - 1} \big)` with :math:`d_y = p_y - p_{(k)}`, which loses nothing at small
    epsilon.

    Cost ``O(K log K)`` beside the ``(K, k)`` table.

    Examples
    --------
    >>> from optrand.certificates.certificate import certify
    >>> solution = rr_with_prior([0.5, 0.3, 0.2], 1.0)
    >>> solution.randomizer.outputs.tolist(), round(solution.value, 6)
    ([0.0, 1.0], 0.584847)
    >>> certify(solution).require(gap=1e-12).findings
    ()
    """
    problem = classification(prior, epsilon)
    kept = np.flatnonzero(kept_labels(problem.prior[np.newaxis], problem.epsilon)[0])
    return Solution(problem, _respond(problem, kept), _dual(problem), Stats("rr_with_prior"))


def many_rr_with_prior(problems: Sequence[Problem]) -> list[Solution]:
    """:func:`rr_with_prior` for problems of classification over the same labels, which are the outputs, in any order.

    Examples
    --------
    >>> given = [classification([0.5, 0.3, 0.2], epsilon) for epsilon in (1.0, 0.1)]
    >>> [round(solution.value, 6) for solution in many_rr_with_prior(given)]
    [0.584847, 0.5]
    """
    priors, epsilons = (np.array([getattr(one, name) for one in problems]) for name in ("prior", "epsilon"))
    kept = kept_labels(priors, epsilons)
    sizes = np.count_nonzero(kept, axis=1)
    surplus = np.where(kept, priors - np.where(kept, priors, np.inf).min(axis=1, keepdims=True), 0.0)
    tilt = sizes[:, np.newaxis] * surplus - surplus.sum(axis=1, keepdims=True)
    tilt /= np.expm1(epsilons)[:, np.newaxis]
    own = 1 / (1 + (sizes - 1) * np.exp(-epsilons))
    alpha = np.where(kept, -own[:, np.newaxis] * np.maximum(priors + tilt, 0.0), 0.0)
    return [
        Solution(one, _respond(one, np.flatnonzero(some)), Dual(a, np.zeros(one.k)), Stats("rr_with_prior"))
        for one, some, a in zip(problems, kept, alpha, strict=True)
    ]


def kept_labels(priors: Floats, epsilon: float | Floats) -> NDArray[np.bool_]:
    """Labels that :func:`rr_with_prior` keeps, for each row of a (b, K) array of priors; cost ``O(b K log K)``.

    `epsilon` is that of all rows, or a (b,) array.

    Examples
    --------
    >>> kept_labels(np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25]]), 1.0).tolist()
    [[True, True, False], [True, True, True]]
    """
    budgets = epsilon if isinstance(epsilon, np.ndarray) else np.full(len(priors), checked_epsilon(epsilon))
    gain = np.expm1(budgets)[:, np.newaxis]
    kept = np.empty(priors.shape, dtype=np.bool_)
    k = np.arange(1, priors.shape[1])
    step = max(1, BLOCK // priors.shape[1])
    for start in range(0, priors.shape[0], step):
        block = priors[start : start + step]
        falling = np.sort(block, axis=1)[:, ::-1]
        surplus = np.cumsum(k * (falling[:, :-1] - falling[:, 1:]), axis=1)
        last = (surplus < gain[start : start + step] * falling[:, 1:]).sum(axis=1)
        smallest = np.take_along_axis(falling, last[:, np.newaxis], axis=1)
        kept[start : start + step] = block >= smallest
    return kept


def response_weights(k: int, epsilon: float) -> tuple[float, float]:
    """Probabilities of the label itself and of each other one under randomized response on `k` labels.

    Examples
    --------
    >>> response_weights(2, math.log(3))
    (0.75, 0.25)
    """
    shrink = math.exp(-epsilon)
    own = 1 / (1 + (k - 1) * shrink)
    return own, own * shrink


def _respond(problem: Problem, kept: NDArray[np.intp]) -> Randomizer:
    """Randomized response on the labels at the positions `kept`, uniform over these for all others."""
    own, other = response_weights(kept.size, problem.epsilon)
    matrix = np.full((problem.k, kept.size), 1 / kept.size)
    matrix[kept] = other
    matrix[kept, np.arange(kept.size)] = own
    return Randomizer(problem.labels, problem.labels[kept], matrix, problem.epsilon)


def _dual(problem: Problem) -> Dual:
    """Multipliers of :func:`rr_with_prior`."""
    kept = kept_labels(problem.prior[np.newaxis], problem.epsilon)[0]
    p = problem.prior[kept]
    surplus = p - p.min()
    own, _ = response_weights(p.size, problem.epsilon)
    tilt = (p.size * surplus - math.fsum(surplus)) / math.expm1(problem.epsilon)
    alpha = np.zeros(problem.k)
    alpha[kept] = -own * np.maximum(p + tilt, 0.0)
    return Dual(alpha, np.zeros(problem.k))
