"""How well the labels of small clusters can be told at all ([E22], Theorem 5).

A cluster of `s` rows has `s` different labels out of `K`; a mechanism names a set of labels. Any mechanism may be
averaged over all permutations of the labels, which changes neither its precision nor its recall: then a set's
probability depends on its size and on how many of the cluster's labels it has. Replacing a label changes that number
by one at most; so of sets of one size most is found where each label that is found multiplies the probability by
`exp(epsilon)`. Precision times recall is convex in the mean numbers of labels named and found, so that one size of sets
is best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import RATIOS

__all__ = ["CLAIMS", "Association", "found"]


@dataclass(frozen=True)
class Association:
    """The label association problem.

    Attributes
    ----------
    k, size : int
        `K`, and `s` below it.
    ratio : Fraction
        `exp(epsilon)`.
    """

    k: int
    size: int
    ratio: Fraction

    @cached_property
    def best(self) -> Fraction:
        """The largest product of precision and recall of any private mechanism."""
        return max(found(self, named) ** 2 / (self.size * named) for named in range(1, self.k + 1))

    def __str__(self) -> str:
        return f"K = {self.k}, s = {self.size}, exp(epsilon) = {self.ratio}"


def found(problem: Association, named: int) -> Fraction:
    """The mean number of a cluster's labels among so many that are named, at most.

    Examples
    --------
    One label of three, at ``exp(epsilon) = 2``, is named with probability 2/4 by randomized response:

    >>> found(Association(3, 1, Fraction(2)), 1)
    Fraction(1, 2)
    """
    s, rest = problem.size, problem.k - problem.size
    hits = range(max(0, named - rest), min(s, named) + 1)
    masses = {i: math.comb(s, i) * math.comb(rest, named - i) * problem.ratio**i for i in hits}
    return sum((i * mass for i, mass in masses.items()), Fraction(0)) / sum(masses.values(), Fraction(0))


def _associations(budget: Budget) -> Iterator[Association]:
    sizes = budget.pick(
        quick=((2, 1), (3, 1), (3, 2), (6, 2), (20, 3)), full=tuple(product(range(2, 40, 3), (1, 2, 5)))
    )
    for (k, size), ratio in product(sizes, RATIOS):
        if size < k:
            yield Association(k, size, ratio)


def precision_times_recall_is_bounded(problem: Association) -> Comparison:
    """Precision times recall is at most exp(epsilon) s / (K - s), for every private mechanism."""
    return at_most(problem.best, problem.ratio * problem.size / (problem.k - problem.size))


def precision_times_recall_is_bounded_without_epsilon(problem: Association) -> Comparison:
    """Precision times recall is at most s / (K - s), for every private mechanism."""
    return at_most(problem.best, Fraction(problem.size, problem.k - problem.size))


def more_labels_are_harder(problem: Association) -> Comparison:
    """At a constant epsilon and s = o(K), precision and recall cannot both be constant.

    Tried as a trend: the best product of the two does not grow when K doubles.
    """
    return _doubled(problem, Fraction(1))


def more_labels_are_thrice_as_hard(problem: Association) -> Comparison:
    """The best product of precision and recall falls to a third when K doubles."""
    return _doubled(problem, Fraction(1, 3))


def _doubled(problem: Association, share: Fraction) -> Comparison:
    return at_most(Association(2 * problem.k, problem.size, problem.ratio).best, share * problem.best)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 5",
        hypothesis="epsilon and s fixed",
        instances=_associations,
        printed=more_labels_are_harder,
        false=more_labels_are_thrice_as_hard,
        quantifier="as s / K tends to 0",
    ),
    Claim(
        paper="E22",
        number="Theorem 5",
        part="inequality",
        hypothesis="1 <= s < K, the best of all private mechanisms",
        instances=_associations,
        printed=precision_times_recall_is_bounded,
        false=precision_times_recall_is_bounded_without_epsilon,
    ),
)
