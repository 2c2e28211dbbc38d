r"""Lower bound of the loss of every unbiased private randomizer of one-hot vectors, in exact arithmetic.

For any linear map :math:`Z` of :math:`R^K` with :math:`Z 1 = 0`, and any :math:`\ell` with :math:`\sum_S c_S \ell(S) =
\lambda` for all masses :math:`c` of staircase columns whose rows sum to one, every such randomizer has a loss of at
least

.. math:: \frac12 \Big( |p|^2 - 1 + \frac{(\mathrm{tr} Z)^2}{(E - 1)^2 \, \theta \lambda} \Big),
          \qquad \theta = \max_S \frac{|Z 1_S|^2}{\ell(S) \, (1 + (E - 1) p(S))}

Proof: ``docs/mathematics.md``, section 14. This module does not import a solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from optrand.base.arithmetic import DIGITS, Integers, exp_bracket
from optrand.vectors.groups import ClassGroups, Counts

__all__ = ["VectorDual", "exp_above", "lower_bound", "response_is_best", "subset_selection_loss", "subset_size"]

RATIO_BITS = 192
"""Binary digits to which the largest price is rounded up, and two more for each nat of epsilon."""


@dataclass(frozen=True, eq=False)
class VectorDual:
    r"""Multipliers of a bound, symmetric within groups of classes; integers, whose common factors are of no account.

    With ``x_g = d_g / K_g`` and ``t_g = x_0 - x_g``, ``g = 1 ... m-1``, and ``y = between @ t``,

    .. math:: |Z 1_S|^2 = \frac{(\sum_g y_g)^2}{K_0} + \sum_{g \geq 1} \frac{y_g^2}{K_g}
              + \sum_g \mathtt{within}_g^2 K_g x_g (1 - x_g),
              \qquad \ell(S) = \mathtt{level} \Big( 1 + (E - 1) \frac{|S|}{K} \Big) + \mathtt{slopes} \cdot t

    Attributes
    ----------
    between : (m - 1, m - 1) array of Python integers
    within : (m,) array of Python integers
    level : int
    slopes : (m - 1,) array of Python integers
    """

    between: Integers
    within: Integers
    level: int
    slopes: Integers


def lower_bound(groups: ClassGroups, epsilon: float, dual: VectorDual) -> Fraction:
    """Compute a lower bound of the loss of every unbiased epsilon-DP randomizer, from any multipliers; at least 0.

    ``exp(epsilon)`` is rounded up, which admits more randomizers, and the largest price too. Within a group of unequal
    priors each type is priced at its least likely subset. Cost ``O(n m**2)`` for `n` types.

    Examples
    --------
    >>> groups = ClassGroups.of_prior(np.full(4, 0.25))
    >>> none = np.zeros((0, 0), dtype=object)
    >>> dual = VectorDual(none, np.array([1], dtype=object), 1, none[0:0].reshape(-1))
    >>> lower_bound(groups, 1.0, dual) <= subset_selection_loss(4, exp_bracket(1.0)[0], 1)
    True
    """
    high = exp_above(epsilon)
    trivial = Fraction(0)
    counts = groups.counts
    squares, unit = _squares(groups.sizes, counts, dual)
    trace = _trace(groups.sizes, dual)
    levels, scale = _levels(groups, counts, dual, high)
    if dual.level <= 0 or (levels <= 0).any():
        return trivial
    chances = high.denominator * groups.total + (high - 1).numerator * groups.least_weights(counts)
    bounds = levels * chances
    shift = RATIO_BITS + 2 * int(epsilon) + max(0, int(bounds.max()).bit_length() - int(squares.max()).bit_length())
    theta = Fraction(int((-((-(squares << shift)) // bounds)).max()), 1 << shift)
    # The prices so far: squares in units of 1/unit**2, levels of 1/scale, chances of 1/(denominator * total).
    theta *= Fraction(scale * high.denominator * groups.total, unit)
    if theta <= 0:
        return trivial
    spread = Fraction(groups.squares, groups.total**2) - 1
    return max(trivial, (spread + trace**2 / ((high - 1) ** 2 * theta * dual.level)) / 2)


def exp_above(epsilon: float) -> Fraction:
    """Return a rational above ``exp(epsilon)``, so near that bounds lose no digit of a float.

    Examples
    --------
    >>> exp_above(1.0) > exp_bracket(1.0)[0], float(exp_above(1.0))
    (True, 2.718281828459045)
    """
    return exp_bracket(epsilon, DIGITS + int(epsilon) if epsilon > 1e-9 else 400)[1]


def _squares(sizes: tuple[int, ...], counts: Counts, dual: VectorDual) -> tuple[Integers, int]:
    """Return integers ``|Z 1_S|**2 * unit`` of each type, and the unit."""
    scale = lcm(*sizes)
    shares = counts.astype(object) * np.array([scale // size for size in sizes], dtype=object)
    y = (shares[:, :1] - shares[:, 1:]) @ dual.between.T
    parts = np.concatenate((y.sum(axis=1, keepdims=True), y), axis=1)
    inverse = np.array([scale // size for size in sizes], dtype=object)
    within = shares * (scale - shares) @ (dual.within**2 * np.array(sizes, dtype=object))
    return parts**2 @ inverse + scale * within, scale**3


def _trace(sizes: tuple[int, ...], dual: VectorDual) -> Fraction:
    first = Fraction(int(dual.between.sum()), sizes[0]) if len(sizes) > 1 else Fraction(0)
    rest = sum((Fraction(int(c), size) for c, size in zip(np.diag(dual.between), sizes[1:], strict=True)), first)
    return rest + sum((size - 1) * int(z) for size, z in zip(sizes, dual.within, strict=True))


def _levels(groups: ClassGroups, counts: Counts, dual: VectorDual, high: Fraction) -> tuple[Integers, int]:
    """Return integers ``l(S) * scale`` of each type, and the scale."""
    common = lcm(*groups.sizes)
    shares = counts.astype(object) * np.array([common // size for size in groups.sizes], dtype=object)
    scale = high.denominator * groups.k * common
    sums = counts.sum(axis=1).astype(object)
    base = high.denominator * groups.k + (high - 1).numerator * sums
    slope = (shares[:, :1] - shares[:, 1:]) @ dual.slopes if groups.m > 1 else np.zeros(len(counts), dtype=object)
    return dual.level * common * base + high.denominator * groups.k * slope, scale


def subset_selection_loss(k: int, ratio: Fraction, d: int) -> Fraction:
    r"""Compute the loss of the best unbiased decoder of subset selection under the uniform prior.

    .. math:: \frac12 \Big( \frac{(K - 1)^2 (d E + K - d)^2}{K d (K - d) (E - 1)^2} - \frac{K - 1}{K} \Big)

    Parameters
    ----------
    k : int
        Number of classes.
    ratio : Fraction
        ``E``, above 1.
    d : int
        Size of the subsets, from 1 to ``k - 1``.

    Examples
    --------
    >>> subset_selection_loss(4, Fraction(3), 1)
    Fraction(3, 1)
    """
    spread = Fraction((k - 1) ** 2, k * d * (k - d)) * ((d * ratio + k - d) / (ratio - 1)) ** 2
    return (spread - Fraction(k - 1, k)) / 2


def subset_size(k: int, ratio: Fraction) -> int:
    """Choose the size of subsets under the uniform prior: one of the two integers beside ``K / (E + 1)``, at least 1.

    Examples
    --------
    >>> subset_size(10, Fraction(2)), subset_size(10, Fraction(30))
    (3, 1)
    """
    below = max(1, int(k / (ratio + 1)))
    return min((below, min(below + 1, k - 1)), key=lambda d: (subset_selection_loss(k, ratio, d), d))


def response_is_best(weights: tuple[int, ...], ratio: Fraction) -> bool:
    r"""Decide whether randomized response is proven to be the best channel for a prior, for any number of classes.

    With its own multipliers, :math:`P_y = 1 + (E - 1) p_y`, :math:`\sigma = K + E - 1`, :math:`A = \sum_y P_y^2` and
    the sums `w` and `a` of :math:`P_y` and :math:`P_y^2` over a set of `d` classes, the bound of this module asks for

    .. math:: \big( (\sigma^2 - A)(1 - d) + w (\sigma^2 + A) - 2 a \sigma \big) (w - d + 1)
              - a (\sigma^2 - 2 w \sigma) - w^2 A \geq 0

    with equality at single classes. While ``d - 1 < sigma / 2`` it falls with `a`. If `y` is the likeliest class of the
    set and `z` the least likely of all, ``(P - P_z)(P_y - P) >= 0`` for the others bounds `a` from above by a line in
    `w`, on which the left side is a parabola. Cost ``O(K**2)``; False proves nothing.

    Parameters
    ----------
    weights : tuple of int
        Prior of the classes times any number.
    ratio : Fraction
        ``E``, above 1.

    Examples
    --------
    >>> response_is_best((5, 3, 2), Fraction(20)), response_is_best((98, 1, 1), Fraction(3))
    (True, False)
    """
    k, total = len(weights), sum(weights)
    unit, extra = ratio.denominator * total, ratio.numerator - ratio.denominator
    each = np.array([unit + extra * weight for weight in sorted(weights)], dtype=object)
    sums = np.concatenate(([0], np.cumsum(each)))
    sigma, whole, least = sums[-1], (each * each).sum(), each[0]
    if 2 * (k - 2) * unit >= sigma:
        return False
    for d in range(2, k):
        top, at = each[d - 1 :], np.arange(d - 1, k)
        w = np.stack((np.full(at.size, sums[d - 1]), sums[at] - sums[at - d + 1]))
        a = top**2 + w * (least + top) - (d - 1) * least * top
        w = w + top
        slack = (sigma**2 - whole) * (1 - d) * unit + w * (sigma**2 + whole) - 2 * a * sigma
        slack = slack * (w - (d - 1) * unit) - a * (sigma**2 - 2 * w * sigma) - w**2 * whole
        # Between the ends it is a parabola with the curvature sigma**2.
        bend, rise = (sigma * (w[1] - w[0])) ** 2, slack[1] - slack[0]
        inside = (np.abs(rise) < bend) & (4 * bend * slack[0] < (rise - bend) ** 2)
        if (slack < 0).any() or inside.any():
            return False
    return True
