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
from itertools import accumulate, product
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from optrand.base._arithmetic import DIGITS, Integers, exp_bracket, places, scale_to_integers
from optrand.base._validation import Floats, Record

Counts = NDArray[np.int64]
"""Shape ``(n, m)``: the classes of each of `m` groups that a subset of each of `n` types holds."""

MOST_TYPES = 1 << 12
"""Number of types, the empty and the full subset included, up to which all of them are priced in ball arithmetic."""

MOST_ENUMERATED = 1 << 32
"""Number of types above which classes with unequal priors share a group: half a minute for the bound."""

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
        return _grid(self.sizes)[1:-1]

    @property
    def types(self) -> int:
        """Number of all types, the empty and the full subset included."""
        return math.prod(size + 1 for size in self.sizes)

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


def _grid(sizes: tuple[int, ...]) -> Counts:
    """Return all types of subsets of groups of some sizes, in lexicographic order."""
    return np.array(list(product(*(range(size + 1) for size in sizes))), dtype=np.int64)


def _join(parts: list[NDArray[np.intp]], prior: Floats) -> list[NDArray[np.intp]]:
    """Join neighbouring groups if there are too many types, those first that add least to squares within groups."""
    if math.prod(part.size + 1 for part in parts) <= MOST_ENUMERATED:
        return parts
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


def lower_bound(groups: ClassGroups, epsilon: float, dual: VectorDual, used: Counts) -> Fraction:
    """Compute a lower bound of the loss of every unbiased epsilon-DP randomizer, of at least 0, from any multipliers.

    In ball arithmetic. The types `used` are priced, and :func:`_price_others` bounds the prices of the others. With
    unequal priors in a group all types are priced, each at its least and its most likely subset, and the best of some
    multiples `tilt` of the unlikely part of a subset is taken off its level (section 14).
    """
    numbers = (*dual.between.flat, *dual.within, dual.level, *dual.slopes)
    with ctx.workprec(digits_for(epsilon) + max(int(number).bit_length() for number in numbers)):
        counts = used if groups.alike else groups.counts
        more = arb(epsilon).expm1()
        size = np.array([arb(s) for s in groups.sizes])
        x = counts.astype(object) / size
        t = x[:, :1] - x[:, 1:]
        y = t @ dual.between.T
        squares = (x * (1 - x)) @ (dual.within**2 * size)
        squares += y.sum(axis=1) ** 2 / size[0] + y**2 @ (1 / size[1:])
        levels = dual.level * (1 + more * (x @ size) / groups.k) + t @ dual.slopes
        mean = 1 + more * groups.mean_weights(counts) / arb(groups.total * groups.unit)
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
        if groups.alike and theta > 0:
            theta = _price_others(groups, more, dual, theta)
        if not theta > 0:
            return Fraction(0)
        trace = dual.between.sum() / size[0] + np.diag(dual.between) @ (1 / size[1:]) + dual.within @ (size - 1)
        spread = arb(sum(weight * weight for weight in groups.weights)) / arb(groups.total) ** 2 - 1
        mantissa, exponent = (spread + trace**2 / (more**2 * theta * dual.level)).lower().man_exp()
        return max(Fraction(0), Fraction(int(mantissa)) * Fraction(2) ** int(exponent) / 2)


def _price_others(groups: ClassGroups, more: arb, dual: VectorDual, theta: arb) -> arb:
    r"""Return a price of at least `theta` that no type exceeds, or 0 if a level may not be positive.

    The slack :math:`f = \theta \ell P - |Z 1|^2` is a quadratic function of counts. If :math:`f \geq -\delta` for all
    types, no price exceeds :math:`\theta + \delta / \min \ell`, as :math:`P \geq 1`.
    """
    m, size = groups.m, np.array([arb(s) for s in groups.sizes])
    differ = np.concatenate((np.ones((1, m - 1), dtype=object), -np.eye(m - 1, dtype=object)))
    chance = more * np.array([weight / arb(groups.total) for weight in groups.group_weights]) / size
    level = more * dual.level / groups.k + differ @ dual.slopes / size
    least = dual.level + np.minimum(np.array([slope.lower() for slope in level]) * groups.sizes, 0).sum()
    if not least > 0:
        return arb(0)
    left, spread = differ @ dual.between.T / size[:, np.newaxis], dual.within**2 / size
    priced = theta * np.outer(level, chance)
    square = (left / size[1:]) @ left.T + np.outer(left.sum(axis=1), left.sum(axis=1)) / size[0] - np.diag(spread)
    form = np.full((m + 1, m + 1), arb(0), dtype=object)
    form[0, 0], form[0, 1:] = theta * dual.level, theta * (dual.level * chance + level) - spread * size
    # Each pair of groups once.
    form[1:, 1:] = np.triu(priced + priced.T - 2 * square) / (1 + np.eye(m, dtype=int))
    price: arb = theta + max(arb(0), -least_value(groups.sizes, form)) / least
    return price


def least_value(sizes: tuple[int, ...], form: Integers) -> arb:
    r"""Bound ``z @ form @ z``, ``z = (1, *counts)``, from below on all integers ``0 <= counts <= sizes``.

    By enumeration without rounding. Entries of the form, which is triangular, are rounded down to integers ``high *
    2**bits + low``, as `z` is not negative. No sum of either part has more than 53 digits, so that floats multiply them
    exactly. The first groups are enumerated against the others, in products of matrices. Counts whose value is negative
    only after this are evaluated in many digits, unless there are very many.
    """
    most = np.array([1, *sizes], dtype=object)
    entries: list[arb] = [arb(x) for x in form.ravel().tolist()]
    products = np.triu(np.outer(most, most))
    bits = 50 - int(products.sum()).bit_length()
    total = sum((abs(x) * p for x, p in zip(entries, products.ravel().tolist(), strict=True)), arb(0))
    mantissa, exponent = total.upper().man_exp()
    shift = 50 + bits - int(mantissa).bit_length() - int(exponent)
    floors: list[Any] = [(x * arb(2) ** shift).lower().floor().unique_fmpz() for x in entries]
    halves = [(int(x) >> bits, int(x) & ((1 << bits) - 1)) for x in floors]
    parts = [np.array(part, dtype=np.float64).reshape(form.shape) for part in zip(*halves, strict=True)]
    cut = min(range(most.size), key=lambda at: sum(math.prod(s + 1 for s in part) for part in (sizes[:at], sizes[at:])))
    left, right = _grid(sizes[:cut]), _grid(sizes[cut:])
    first = np.concatenate((np.ones((len(left), 1)), left), axis=1)
    factors = []
    for part in parts:
        own, cross, other = part[: cut + 1, : cut + 1], part[: cut + 1, cut + 1 :], part[cut + 1 :, cut + 1 :]
        rows = (((first @ own) * first).sum(axis=1, keepdims=True), np.ones((len(left), 1)), first @ cross)
        columns = (np.ones((len(right), 1)), ((right @ other) * right).sum(axis=1, keepdims=True), right)
        factors.append((np.concatenate(rows, axis=1), np.concatenate(columns, axis=1).T))
    # Blocks of 2**20 entries remain in the cache.
    step, least = max(1, (1 << 20) // len(right)), math.inf
    negative: list[tuple[int, ...]] = []
    for start in range(0, len(left), step):
        high, low = (rows[start : start + step] @ columns for rows, columns in factors)
        high += low * 2.0**-bits
        least = min(least, float(high.min()))
        if len(negative) <= MOST_TYPES and least < 0:
            places = np.argwhere(high < 0)[: MOST_TYPES + 1]
            negative += [(1, *left[start + i].tolist(), *right[j].tolist()) for i, j in places.tolist()]
    if len(negative) > MOST_TYPES:
        # The sum of both parts is rounded once.
        return (arb(least) - abs(arb(least)) * arb(2) ** -52) * arb(2) ** (bits - shift)
    z = np.array(negative, dtype=object).reshape(-1, most.size)
    return min((value.lower() for value in ((z @ form) * z).sum(axis=1)), default=arb(0))


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
    r"""Decide whether randomized response is the best channel for a prior.

    With its own multipliers, :math:`P_y = 1 + (E - 1) p_y`, :math:`\sigma = K + E - 1`, :math:`A = \sum_y P_y^2` and
    the sums `w` and `a` of :math:`P_y` and :math:`P_y^2` over a pair of classes, it is if and only if for all pairs

    .. math:: \big( w (\sigma^2 + A) - 2 a \sigma - \sigma^2 + A \big) (w - 1)
              - a (\sigma^2 - 2 w \sigma) - w^2 A \geq 0

    (Proposition 26). Cost ``O(K**2)``.
    """
    # Everything is in integers: P_y times `unit`, and the condition times unit**4, as each of its terms has four
    # factors.
    unit, extra = ratio.denominator * sum(weights), ratio.numerator - ratio.denominator
    each = np.array([unit + extra * weight for weight in weights], dtype=object)
    sigma, whole = each.sum(), (each * each).sum()
    first, second = each[np.triu_indices(each.size, 1)[0]], each[np.triu_indices(each.size, 1)[1]]
    w, a = first + second, first**2 + second**2
    slack = w * (sigma**2 + whole) - 2 * a * sigma - (sigma**2 - whole) * unit
    slack = slack * (w - unit) - a * (sigma**2 - 2 * w * sigma) - w**2 * whole
    return bool((slack >= 0).all())
