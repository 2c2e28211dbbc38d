"""Labels of small clusters: whether they can be told at all, and the mechanism without a threshold ([E22], Section 6).

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
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.baselines import ClusterRR
from optrand.baselines.groups import Groups
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.e22.contests import CONSTANT
from optrand.theory.e22.curator import LabelsAlone
from optrand.theory.instances import RATIOS, Instance
from optrand.theory.sums import total

__all__ = ["Association", "found"]


def _alone(budget: Budget) -> Iterator[LabelsAlone]:
    sizes = (2, 4, 6, 8, 12, *budget.pick(quick=(), full=(20, 30)))
    return (LabelsAlone(size, epsilon, 0.0) for size, epsilon in product(sizes, (0.01, 0.1, 1.0)))


@claim(
    "E22",
    "Section 6: privacy",
    on=_alone,
    given="two labels, continuous noise; compared as shares of epsilon",
    corrected=Variant("The same at 2 epsilon.", noises=2),
    false=Variant("The same at 3/2 epsilon.", noises=3 / 2),
)
def drawing_all_labels_costs_epsilon(labels: LabelsAlone, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(labels.spent, labels.stated(noises))


class Pure(Instance, k="K", size="s"):
    """Clusters of so many rows, all of label 0, whose labels are drawn by the mechanism of Section 6."""

    k: int
    size: int
    epsilon: float
    clusters: int = 60

    @cached_property
    def excess(self) -> float:
        """Excess risk of the worst of two hypotheses on any number of such clusters, as drawn by the package.

        One loses what just makes up for the labels drawn wrong, the other loses 1 at these.
        """
        scale = 1 / self.epsilon
        mechanism = ClusterRR(self.k, threshold=0, noise_scale=scale, resampling=1, bias_correction=0)
        groups = Groups.of_ids(np.repeat(np.arange(self.clusters), self.size))
        release = mechanism.release([0] * groups.n, groups, source=SeededEntropy(7))
        wrong = 1 - float(total(q[0] for q in release.distributions)) / self.clusters
        return min(1.0, wrong / (1 - wrong)) if wrong < 1 else 1.0


def _pure(budget: Budget) -> Iterator[Pure]:
    sizes = ((2, 2), (2, 20), (5, 5), (20, 20), (20, 60), (50, 50), (50, 500), (2, 1_000))
    cases = product(sizes[: budget.pick(quick=5, full=8)], (1.0, 4.0))
    return (Pure(k, size, epsilon) for (k, size), epsilon in cases)


@claim(
    "E22",
    "Section 6: excess risk",
    on=_pure,
    given="pure clusters, phi = 0, beta = 0, lambda = 1, tau = 0, sigma = 1 / epsilon",
    quantifier=CONSTANT,
    false=Variant("The same with sqrt(K) for K.", power=1 / 2),
)
def pure_clusters_cost_labels_over_rows(pure: Pure, power: float = 1.0) -> Comparison:
    """Excess risk is at most C (sqrt(d / n) + K / (s epsilon)), but for logarithms.

    Tried with C = 1 on two hypotheses, on so many clusters that the first summand is 0.
    """
    return at_most(pure.excess, pure.k**power / (pure.size * pure.epsilon))


class Association(Instance, k="K", size="s"):
    """The label association problem with `s` labels a cluster, fewer than `K`."""

    k: int
    size: int
    ratio: Fraction

    @cached_property
    def best(self) -> Fraction:
        """The largest product of precision and recall of any private mechanism."""
        return max(found(self, named) ** 2 / (self.size * named) for named in range(1, self.k + 1))


def found(problem: Association, named: int) -> Fraction:
    """Mean number of a cluster's labels among so many that are named, at most.

    Examples
    --------
    One label of three, at ``exp(epsilon) = 2``, is named with probability 2/4 by randomized response:

    >>> found(Association(3, 1, Fraction(2)), 1)
    Fraction(1, 2)
    """
    s, rest = problem.size, problem.k - problem.size
    hits = range(max(0, named - rest), min(s, named) + 1)
    masses = {i: math.comb(s, i) * math.comb(rest, named - i) * problem.ratio**i for i in hits}
    return total(i * mass for i, mass in masses.items()) / total(masses.values())


def _associations(budget: Budget) -> Iterator[Association]:
    few = ((2, 1), (3, 1), (3, 2), (6, 2), (20, 3))
    sizes = budget.pick(quick=few, full=tuple(product(range(2, 40, 3), (1, 2, 5))))
    return (Association(k, size, ratio) for (k, size), ratio in product(sizes, RATIOS) if size < k)


@claim(
    "E22",
    "Theorem 5",
    on=_associations,
    given="epsilon and s fixed",
    quantifier="as s / K tends to 0",
    false=Variant("The best product of precision and recall falls to a third when K doubles.", share=Fraction(1, 3)),
)
def more_labels_are_harder(problem: Association, share: Fraction = Fraction(1)) -> Comparison:
    """At a constant epsilon and s = o(K), precision and recall cannot both be constant.

    Tried as a trend: the best product of the two does not grow when K doubles.
    """
    return at_most(Association(2 * problem.k, problem.size, problem.ratio).best, share * problem.best)


@claim(
    "E22",
    "Theorem 5: inequality",
    kind="text",
    on=_associations,
    given="1 <= s < K, the best of all private mechanisms",
    false=Variant("Precision times recall is at most s / (K - s), for every private mechanism.", power=0),
)
def precision_times_recall_is_bounded(problem: Association, power: int = 1) -> Comparison:
    """Precision times recall is at most exp(epsilon) s / (K - s), for every private mechanism."""
    return at_most(problem.best, problem.ratio**power * problem.size / (problem.k - problem.size))
