"""Randomized response on all labels, the likeliest `k` and the best number ([G21]), for one prior or many at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import privacy_ratio
from optrand.base._validation import (
    PRIOR_SUM_TOLERANCE,
    SMALLEST_NORMAL,
    Floats,
    check_classes,
    check_epsilon,
    check_integer,
    check_labels,
    freeze,
    freeze_array,
    rectangular,
    suggest_parameters,
)
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Dual, Problem, classification
from optrand.model._table import Table
from optrand.sampling._draw import settle
from optrand.sampling._entropy import EntropySource, SystemEntropy, check_width, check_words, draw_integers


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
    Theorem 3, and ``docs/mathematics.md``, section 4).

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels ``0 ... K-1``. Zeros are welcome. Equally likely ones are kept or left out together.
    epsilon : float
        Privacy budget in nats.

    Notes
    -----
    Cost ``O(K log K)``, and for each kept label as many steps as kept and other labels alternate.

    Examples
    --------
    >>> mechanism = rr_with_prior([0.5, 0.3, 0.2], 1.0)
    >>> mechanism.outputs.tolist(), round(mechanism.value, 6)
    ([0.0, 1.0], 0.584847)
    >>> mechanism.certificate.require(gap=1e-12).findings
    ()
    """
    return respond_exactly(classification(prior, epsilon))


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
        # D of docs/mathematics.md, section 4, which grows by k times the difference of two neighbours: nothing cancels.
        surplus = np.cumsum(k * (falling[:, :-1] - falling[:, 1:]), axis=1)
        last = (surplus < gain * falling[:, 1:]).sum(axis=1)
        smallest = np.take_along_axis(falling, last[:, np.newaxis], axis=1)
        kept[start : start + step] = block >= smallest
    return kept


def _compute_dual(problem: Problem, best: NDArray[np.bool_]) -> Dual:
    """Return the multipliers of :func:`rr_with_prior`, which keeps the labels `best`."""
    p = problem.prior[best]
    surplus = p - p.min()
    # From differences of priors (docs/mathematics.md, section 4): E p - S would cancel at a small epsilon.
    tilt = (p.size * surplus - math.fsum(surplus)) / math.expm1(problem.epsilon)
    alpha = np.zeros(problem.k)
    # In powers of 1 / E, which do not overflow.
    alpha[best] = -np.maximum(p + tilt, 0.0) / (1 + (p.size - 1) * math.exp(-problem.epsilon))
    return Dual(alpha, np.zeros(problem.k))


@dataclass(frozen=True, eq=False)
class RRWithPriorBatch:
    """Optimal classification randomizers of `b` priors over `K` labels, where ``batch[i]`` is the solution of row `i`.

    Attributes
    ----------
    priors : (b, K) array
        One prior per row. A row may depend on anything but the label that it is used for.
    epsilon : float
        Privacy budget of each row, in nats.
    kept : (b, K) array of bool
        The labels between which each row responds, :attr:`k_star` of them.
    """

    exact: ClassVar[Literal[True]] = True

    priors: Floats
    epsilon: float
    kept: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "priors", _check_priors(self.priors))
        object.__setattr__(self, "kept", kept_labels(self.priors, self.epsilon))
        freeze(self, "kept")

    def __len__(self) -> int:
        return int(self.priors.shape[0])

    def __getitem__(self, row: int) -> Mechanism:
        return rr_with_prior(self.priors[row], self.epsilon)

    @property
    def k(self) -> int:
        """Number of labels, `K`."""
        return int(self.priors.shape[1])

    @property
    def k_star(self) -> NDArray[np.int64]:
        """Number of labels that each row keeps, shape ``(b,)``."""
        counts: NDArray[np.int64] = np.count_nonzero(self.kept, axis=1)
        return counts

    @property
    def objective(self) -> Floats:
        """Probability that the output is the label, under each row's own prior: the optimum, shape ``(b,)``."""
        mass: Floats = np.einsum("bk,bk->b", self.priors, self.kept)
        return mass / (1 + (self.k_star - 1) * math.exp(-self.epsilon))

    def sample(self, labels: ArrayLike, *, source: EntropySource | None = None) -> NDArray[np.int64]:
        r"""Draw one output per row, shape ``(b,)``, exactly.

        One of :math:`k` kept labels is drawn as itself with probability :math:`R / (R + k - 1)`, and as each other one
        with :math:`1 / (R + k - 1)`, for a rational :math:`R` just below :math:`e^\epsilon`. All other labels become
        each of the kept ones with :math:`1 / k`. The number of random words never depends on the labels.

        Parameters
        ----------
        labels : (b,) array of integers
            The label of each row, from 0 to ``K-1``. The error does not reveal which others occur, or how often.
        source : EntropySource, optional
            By default the operating system, the only choice for a release.
        """
        array = self._check_labels(labels)
        source = SystemEntropy() if source is None else source
        sizes = self.k_star
        # A kept label stays if a coin says so. Otherwise each kept label is as likely. Both are drawn for every row.
        stays = _draw_coins(sizes, privacy_ratio(self.epsilon), source)
        stays &= self.kept[np.arange(len(self)), array]
        # The kept labels of all rows, one row after another, are these positions modulo K.
        members = np.flatnonzero(self.kept)
        chosen = np.cumsum(sizes) - sizes + draw_integers(sizes, source)
        return np.where(stays, array, members[chosen] % self.k)

    def likelihood(self, released: ArrayLike) -> Floats:
        """Return the probability of each row's output under every label, up to a factor per row, shape ``(b, K)``.

        1 at the output, ``1 / R`` at other labels that are kept, and ``(1 + (k - 1) / R) / k`` at the rest.
        """
        values, ratio = self._check_labels(released), float(privacy_ratio(self.epsilon))
        sizes = self.k_star[:, np.newaxis]
        table = np.where(self.kept, 1 / ratio, (1 + (sizes - 1) / ratio) / sizes)
        table[np.arange(len(self)), values] = 1.0
        return table

    def _check_labels(self, labels: ArrayLike) -> NDArray[np.int64]:
        array = rectangular(labels, "labels")
        if array.shape != (len(self),):
            raise InvalidInput(f"labels have shape {array.shape}, expected ({len(self)},): one label for each prior")
        return check_classes(array, self.k).astype(np.int64)


def rr_with_prior_batch(priors: ArrayLike, epsilon: float) -> RRWithPriorBatch:
    """Return :func:`~optrand.closed_forms.rr_with_prior` for every row of a (b, K) matrix of priors.

    Cost ``O(b K log K)``, memory ``O(b K)``: 0.05 s for 100,000 priors over 10 labels, 0.6 s for 10,000 over 1,000.

    Examples
    --------
    >>> batch = rr_with_prior_batch([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]], 1.0)
    >>> (
    ...     batch.k_star.tolist(),
    ...     batch.objective.round(6).tolist(),
    ...     batch[1].certificate.gap < 1e-12,
    ... )
    ([2, 1], [0.584847, 0.9], True)
    """
    return RRWithPriorBatch(rectangular(priors, "priors"), epsilon)


def _check_priors(given: ArrayLike) -> Floats:
    array = rectangular(given, "priors")
    if array.dtype.kind not in "iuf" or array.ndim != 2 or array.size == 0:
        raise InvalidInput(
            f"priors have type {array.dtype} and shape {array.shape}, expected a matrix of numbers, one prior per row"
        )
    priors = freeze_array(array)
    # NaN and infinite entries end up in the totals, so that no pass of their own is needed to find them.
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = ~(np.abs(priors.sum(axis=1) - 1) <= PRIOR_SUM_TOLERANCE)
    wrong |= (priors < 0).any(axis=1) | ((priors > 0) & (priors < SMALLEST_NORMAL)).any(axis=1)
    if wrong.any():
        raise InvalidInput(
            f"{int(wrong.sum())} of {wrong.size} priors are no probabilities, the first in row {int(wrong.argmax())}: "
            "expected finite numbers of at least 0, none subnormal, that sum to 1: "
            "pass priors / priors.sum(axis=1, keepdims=True)"
        )
    return priors


def _draw_coins(sizes: NDArray[np.int64], ratio: Fraction, source: EntropySource) -> NDArray[np.bool_]:
    """Draw True with probability ``(R - 1) / (R + size - 1)``, exactly, for each of `sizes`."""
    width = check_width(source)
    distinct, index = np.unique(sizes, return_inverse=True)
    chances = [(ratio - 1) / (ratio + int(size) - 1) for size in distinct]
    # One word decides, unless it equals the leading digits of the probability. Then further words follow.
    leading = np.array([math.floor(chance * 2**width) for chance in chances], dtype=np.uint64)[index]
    words = check_words(source, sizes.size)
    coins: NDArray[np.bool_] = words < leading
    for row in np.flatnonzero(words == leading).tolist():
        chance = chances[index[row]]
        coins[row] = settle([chance.numerator], chance.denominator, (int(words[row]), width), source) == 0
    return coins
