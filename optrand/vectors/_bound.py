r"""Types of subsets of classes, and a lower bound of the loss of every unbiased private randomizer of one-hot vectors.

Classes with equal priors are interchangeable, so a best randomizer may favour all subsets of one *type* alike: those
that hold ``d_g`` classes of the group ``g``. A prior with groups of sizes ``K_g`` has ``prod (K_g + 1) - 2`` types, of
subsets that are neither empty nor full: at most ``2**K - 2``, one per subset, and ``K - 1`` for the uniform prior.

For any linear map :math:`Z` of :math:`R^K` with :math:`Z 1 = 0`, and any :math:`\ell` with :math:`\sum_S c_S \ell(S) =
\lambda` for all masses :math:`c` of staircase columns whose rows sum to one, every such randomizer has a loss of at
least

.. math:: \frac12 \Big( |p|^2 - 1 + \frac{(\mathrm{tr} Z)^2}{(E - 1)^2 \, \theta \lambda} \Big),
          \qquad \theta = \max_S \frac{|Z 1_S|^2}{\ell(S) \, (1 + (E - 1) p(S))}

Proof: ``docs/mathematics.md``, section 14. This module does not import a solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from optrand.base._arithmetic import DIGITS, Integers, exp_bracket, places, scale_to_integers
from optrand.base._validation import Floats, Record

Counts = NDArray[np.int64]
"""Shape ``(n, m)``: the classes of each of `m` groups that a subset of each of `n` types holds."""

MOST_TYPES = 1 << 12
"""Number of types, the empty and the full subset included, above which classes with unequal priors share a group."""

TILTS = 14
"""Number of eighths of the level that are tried as its tilt: the best ones were 0.5 to 1.5 on 40 random problems."""


@dataclass(frozen=True, eq=False)
class ClassGroups(Record):
    """A prior in integers, and its classes in groups.

    Attributes
    ----------
    weights : tuple of int
        Integers exactly proportional to the prior of each class as it is given in floats.
    members : tuple of (K_g,) arrays of int
        Classes of each group, in rising order of their priors, and the likeliest group first.
    """

    weights: tuple[int, ...]
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def of_prior(cls, prior: Floats) -> ClassGroups:
        """Group equal priors, and join the nearest groups as long as there are too many types."""
        order = np.argsort(prior, kind="stable")[::-1]
        cuts = np.flatnonzero(np.diff(prior[order])) + 1
        found = _join(np.split(order, cuts), prior)
        return cls(tuple(scale_to_integers(prior, places(prior))), tuple(part[::-1] for part in found))

    @property
    def k(self) -> int:
        return len(self.weights)

    @property
    def m(self) -> int:
        return len(self.members)

    @property
    def total(self) -> int:
        return sum(self.weights)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(part.size for part in self.members)

    @cached_property
    def of(self) -> NDArray[np.intp]:
        """Group of each class, shape ``(K,)``."""
        of = np.empty(self.k, dtype=np.intp)
        for group, part in enumerate(self.members):
            of[part] = group
        return of

    @property
    def alike(self) -> bool:
        """Whether all classes of each group have one prior."""
        return all(self.weights[part[0]] == self.weights[part[-1]] for part in self.members)

    @property
    def uniform(self) -> bool:
        return self.m == 1 and self.alike

    @cached_property
    def group_weights(self) -> tuple[int, ...]:
        return tuple(sum(self.weights[y] for y in part.tolist()) for part in self.members)

    @cached_property
    def counts(self) -> Counts:
        """All types except the empty and the full subset, shape ``(n, m)``."""
        # The first and the last combination are the empty and the full subset.
        axes = [np.arange(size + 1) for size in self.sizes]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.m)[1:-1].astype(np.int64)

    @cached_property
    def unit(self) -> int:
        """Common multiple of the sizes of groups, the denominator of shares and of mean weights."""
        return math.lcm(*self.sizes)

    def shares(self, counts: Counts) -> Integers:
        """Return the share of each group that a subset of each type holds, times the unit, shape ``(n, m)``."""
        shares: Integers = counts.astype(object) * np.array([self.unit // size for size in self.sizes], dtype=object)
        return shares

    def mean_weights(self, counts: Counts) -> Integers:
        """Return the mean weight of the subsets of each type, times the unit."""
        weights: Integers = self.shares(counts) @ np.array(self.group_weights, dtype=object)
        return weights

    def extreme_weights(self) -> tuple[Integers, Integers]:
        """Return the least and the largest weight of a subset of each type."""
        least, most = np.zeros((2, len(self.counts)), dtype=object)
        for group, part in enumerate(self.members):
            sums = np.array([0, *accumulate(self.weights[y] for y in part.tolist())], dtype=object)
            least += sums[self.counts[:, group]]
            most += sums[-1] - sums[part.size - self.counts[:, group]]
        return least, most


def _join(parts: list[NDArray[np.intp]], prior: Floats) -> list[NDArray[np.intp]]:
    """Join neighbouring groups, those first whose join adds least to the squared deviations within groups."""
    means = [float(prior[part].mean()) for part in parts]
    # A heuristic: Ward's criterion for neighbours on the line. A single group of K classes has K + 1 types, which must
    # always be allowed. The last term allows for rounding of the logarithms.
    limit = math.log(max(MOST_TYPES, prior.size + 1)) + 1e-9
    while sum(math.log(part.size + 1) for part in parts) > limit:
        costs = [
            (means[g] - means[g + 1]) ** 2 * parts[g].size * parts[g + 1].size / (parts[g].size + parts[g + 1].size)
            for g in range(len(parts) - 1)
        ]
        at = int(np.argmin(costs))
        parts[at : at + 2] = [np.concatenate(parts[at : at + 2])]
        means[at : at + 2] = [float(prior[parts[at]].mean())]
    return parts


@dataclass(frozen=True, eq=False)
class VectorDual:
    r"""Multipliers of a bound, symmetric within groups of classes, in Python integers up to common factors.

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
    """Compute a lower bound of the loss of every unbiased epsilon-DP randomizer, of at least 0, from any multipliers.

    In ball arithmetic. With unequal priors in a group each type is priced at its least and its most likely subset, and
    the best of some multiples `tilt` of the unlikely part of a subset is taken off its level (section 14). Cost ``O(n
    m**2)`` for `n` types.
    """
    numbers = (*dual.between.flat, *dual.within, dual.level, *dual.slopes)
    with ctx.workprec(digits_for(epsilon) + max(int(number).bit_length() for number in numbers)):
        more = arb(epsilon).expm1()
        size = np.array([arb(s) for s in groups.sizes])
        x = groups.counts.astype(object) / size
        t = x[:, :1] - x[:, 1:]
        y = t @ dual.between.T
        squares = (x * (1 - x)) @ (dual.within**2 * size)
        squares += y.sum(axis=1) ** 2 / size[0] + y**2 @ (1 / size[1:])
        levels = dual.level * (1 + more * (x @ size) / groups.k) + t @ dual.slopes
        mean = 1 + more * groups.mean_weights(groups.counts) / arb(groups.total * groups.unit)
        ends = [mean]
        if not groups.alike:
            ends = [1 + more * weights / arb(groups.total) for weights in groups.extreme_weights()]
        thetas = []
        for tilt in (arb(dual.level * i) / 8 for i in range(1 if groups.alike else TILTS)):
            tilted = [levels - tilt * (chances - mean) for chances in ends]
            # Proposition 25 needs levels that are proven to be positive. Without that the bound is 0, as no loss is
            # negative.
            if dual.level > 0 and all(level > 0 for part in tilted for level in part):
                # All subsets at once, by their types. Upper ends, since a larger theta only weakens the bound.
                prices = [squares / (part * chances) for part, chances in zip(tilted, ends, strict=True)]
                thetas.append(max(price.upper() for part in prices for price in part))
        theta = min(thetas, default=arb(0))
        if not theta > 0:
            return Fraction(0)
        trace = dual.between.sum() / size[0] + np.diag(dual.between) @ (1 / size[1:]) + dual.within @ (size - 1)
        spread = arb(sum(weight * weight for weight in groups.weights)) / arb(groups.total) ** 2 - 1
        mantissa, exponent = (spread + trace**2 / (more**2 * theta * dual.level)).lower().man_exp()
        return max(Fraction(0), Fraction(int(mantissa)) * Fraction(2) ** int(exponent) / 2)


def digits_for(epsilon: float) -> int:
    """Return binary digits to compute with: five per nat, as the loss falls by ``exp(-epsilon)``."""
    return 200 + 5 * int(epsilon)


def exp_above(epsilon: float) -> Fraction:
    """Return a rational above ``exp(epsilon)``, so near that bounds lose no digit of a float."""
    return exp_bracket(epsilon, DIGITS + int(epsilon) if epsilon > 1e-9 else 400)[1]


def subset_selection_loss(k: int, ratio: Fraction, d: int) -> Fraction:
    r"""Compute the loss of the best decoder of subset selection under the uniform prior, for a `ratio` of ``E > 1``.

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

    (Proposition 26, whose bound of `a` is a line in `w`). Cost ``O(K**2)``. False proves nothing.
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
