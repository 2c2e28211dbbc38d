r"""Groups of classes of one prior, and the types of their subsets.

Classes with equal priors are interchangeable, so a best randomizer may favour all subsets of one *type* alike: those
that hold ``d_g`` classes of the group ``g``. A prior with groups of sizes ``K_g`` has ``prod (K_g + 1) - 2`` types, of
subsets that are neither empty nor full; at most ``2**K - 2``, one per subset, and ``K - 1`` for the uniform prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optrand.base._arithmetic import Integers, places, scale_to_integers
from optrand.base._records import Record
from optrand.base._validation import Floats

Counts = NDArray[np.int64]
"""Shape ``(n, m)``: the classes of each of `m` groups that a subset of each of `n` types holds."""

MOST_TYPES = 1 << 12
"""Number of types, the empty and the full subset included, above which classes with unequal priors share a group."""


@dataclass(frozen=True, eq=False)
class ClassGroups(Record):
    """A prior in integers, and its classes in groups.

    Attributes
    ----------
    weights : tuple of int
        Integers exactly proportional to the prior of each class as it is given in floats.
    members : tuple of (K_g,) arrays of int
        Classes of each group, in rising order of their priors; the likeliest group first.
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
    def squares(self) -> int:
        return sum(weight * weight for weight in self.weights)

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

    def least_weights(self, counts: Counts) -> Integers:
        """Return the least weight of a subset of each type: that of the least likely classes of each group."""
        least = np.zeros(len(counts), dtype=object)
        for group, part in enumerate(self.members):
            sums = [0]
            for y in part.tolist():
                sums.append(sums[-1] + self.weights[y])
            least += np.array(sums, dtype=object)[counts[:, group]]
        return least


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
