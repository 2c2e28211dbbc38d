r"""Lower bound of the loss of every unbiased private randomizer of one-hot vectors, in ball arithmetic.

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

import numpy as np
from flint import arb, ctx

from optrand.base._arithmetic import DIGITS, Integers, exp_bracket
from optrand.vectors._groups import ClassGroups


@dataclass(frozen=True, eq=False)
class VectorDual:
    r"""Multipliers of a bound, symmetric within groups of classes; Python integers up to common factors.

    With ``x_g = d_g / K_g`` and ``t_g = x_0 - x_g``, ``g = 1 ... m-1``, and ``y = between @ t``,

    .. math:: |Z 1_S|^2 = \frac{(\sum_g y_g)^2}{K_0} + \sum_{g \geq 1} \frac{y_g^2}{K_g}
              + \sum_g \mathtt{within}_g^2 K_g x_g (1 - x_g),
              \qquad \ell(S) = \mathtt{level} \Big( 1 + (E - 1) \frac{|S|}{K} \Big) + \mathtt{slopes} \cdot t
    """

    between: Integers
    within: Integers
    level: int
    slopes: Integers


def lower_bound(groups: ClassGroups, epsilon: float, dual: VectorDual) -> Fraction:
    """Compute a lower bound of the loss of every unbiased epsilon-DP randomizer, from any multipliers; at least 0.

    In ball arithmetic. Within a group of unequal priors each type is priced at its least likely subset. Cost
    ``O(n m**2)`` for `n` types.
    """
    with ctx.workprec(digits_for(epsilon) + _length(dual)):
        more = arb(epsilon).expm1()
        size = np.array([arb(s) for s in groups.sizes])
        x = groups.counts.astype(object) / size
        t = x[:, :1] - x[:, 1:]
        y = t @ dual.between.T
        squares = (x * (1 - x)) @ (dual.within**2 * size)
        squares += y.sum(axis=1) ** 2 / size[0] + y**2 @ (1 / size[1:])
        levels = dual.level * (1 + more * (x @ size) / groups.k) + t @ dual.slopes
        chances = 1 + more * groups.least_weights(groups.counts) / arb(groups.total)
        # Proposition 25 needs levels that are proven to be positive. Without that the bound is 0, as no loss is
        # negative.
        if dual.level <= 0 or not all(level > 0 for level in levels):
            return Fraction(0)
        # All subsets at once, by their types. Upper ends, since a larger theta only weakens the bound.
        theta = max(price.upper() for price in squares / (levels * chances))
        if not theta > 0:
            return Fraction(0)
        trace = dual.between.sum() / size[0] + np.diag(dual.between) @ (1 / size[1:]) + dual.within @ (size - 1)
        spread = arb(groups.squares) / arb(groups.total) ** 2 - 1
        return max(Fraction(0), _exact((spread + trace**2 / (more**2 * theta * dual.level)).lower()) / 2)


def digits_for(epsilon: float) -> int:
    """Return binary digits to compute with: five per nat, as the loss falls by ``exp(-epsilon)``."""
    return 200 + 5 * int(epsilon)


def _length(dual: VectorDual) -> int:
    numbers = (*dual.between.flat, *dual.within, dual.level, *dual.slopes)
    return max(int(number).bit_length() for number in numbers)


def _exact(number: arb) -> Fraction:
    mantissa, exponent = number.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def exp_above(epsilon: float) -> Fraction:
    """Return a rational above ``exp(epsilon)``, so near that bounds lose no digit of a float."""
    return exp_bracket(epsilon, DIGITS + int(epsilon) if epsilon > 1e-9 else 400)[1]


def subset_selection_loss(k: int, ratio: Fraction, d: int) -> Fraction:
    r"""Compute the loss of the best decoder of subset selection under the uniform prior; `ratio` is ``E > 1``.

    .. math:: \frac12 \Big( \frac{(K - 1)^2 (d E + K - d)^2}{K d (K - d) (E - 1)^2} - \frac{K - 1}{K} \Big),
              \qquad 1 \leq d < K
    """
    spread = Fraction((k - 1) ** 2, k * d * (k - d)) * ((d * ratio + k - d) / (ratio - 1)) ** 2
    return (spread - Fraction(k - 1, k)) / 2


def subset_size(k: int, ratio: Fraction) -> int:
    """Choose the size of subsets under the uniform prior: an integer next to ``K / (E + 1)``, at least 1."""
    below = max(1, int(k / (ratio + 1)))
    return min((below, min(below + 1, k - 1)), key=lambda d: (subset_selection_loss(k, ratio, d), d))


def response_is_best(weights: tuple[int, ...], ratio: Fraction) -> bool:
    r"""Decide whether randomized response is proven to be the best channel for a prior, for any number of classes.

    With its own multipliers, :math:`P_y = 1 + (E - 1) p_y`, :math:`\sigma = K + E - 1`, :math:`A = \sum_y P_y^2` and
    the sums `w` and `a` of :math:`P_y` and :math:`P_y^2` over a set of `d` classes, the bound of this module requires

    .. math:: \big( (\sigma^2 - A)(1 - d) + w (\sigma^2 + A) - 2 a \sigma \big) (w - d + 1)
              - a (\sigma^2 - 2 w \sigma) - w^2 A \geq 0

    with equality at single classes. While ``d - 1 < sigma / 2`` it falls with `a`. If `y` is the likeliest class of the
    set and `z` the least likely of all, ``(P - P_z)(P_y - P) >= 0`` for the others bounds `a` from above by a line in
    `w`, on which the left side is a parabola. Cost ``O(K**2)``; False proves nothing.
    """
    # Everything is in integers: P_y times `unit`, and the condition times unit**4, as each of its terms has four
    # factors.
    k, total = len(weights), sum(weights)
    unit, extra = ratio.denominator * total, ratio.numerator - ratio.denominator
    each = np.array([unit + extra * weight for weight in sorted(weights)], dtype=object)
    sums = np.concatenate(([0], np.cumsum(each)))
    sigma, whole, least = sums[-1], (each * each).sum(), each[0]
    # For all d < k the left side must fall as a grows, or the upper bound of a proves nothing.
    if 2 * (k - 2) * unit >= sigma:
        return False
    for d in range(2, k):
        top, at = each[d - 1 :], np.arange(d - 1, k)
        # For each likeliest class of a set: the least and the largest sum of the d - 1 others, which are no likelier.
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
