"""Excess risk of labels that peers exchange, and labels of small clusters ([E22], Theorems 4 and 5, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import binom

from optrand.baselines import ClusterRR, PeerToPeer
from optrand.baselines.groups import Groups
from optrand.baselines.peer_to_peer import theorem3, theorem3_flip
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.e22.losses import Contest, contests
from optrand.theory.e22.noise import TOLERANCE
from optrand.theory.e22.risks import CONSTANT, GAMMAS, most_lost
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["Association", "Majority"]

ANY = "any population, class and clusters"


class Majority(Instance, size="n", rate="theta", flip="alpha"):
    """Two hypotheses, "always 0" and "always 1", judged by the copies of `n` users, all in one cluster."""

    size: int
    rate: float
    flip: float
    gamma: float

    def misled(self, ones: float) -> float:
        """Probability that at most half of the copies are 1, where labels are with this probability."""
        n = self.size
        flipped = binom.pmf(np.arange(n + 1), n, self.flip + (1 - 2 * self.flip) * ones)
        sent = binom.pmf(np.arange(n + 1), n, self.rate)
        t = np.arange(n + 1)[:, np.newaxis]
        return float(sent @ binom.cdf(t // 2, t, np.arange(n + 1) / n) @ flipped)


def _majorities(budget: Budget) -> Iterator[Majority]:
    sizes, settings = (1, 2, 5, 20, 80, 200, 400), ((1.0, 0.1), (0.05, 0.1), (1.0, 0.0), (0.2, 0.4))
    cases = product(sizes[: budget.pick(quick=5, full=7)], settings, GAMMAS)
    return (Majority(size, rate, flip, gamma) for size, (rate, flip), gamma in cases)


@claim(
    "E22 Theorem 4",
    on=_majorities,
    given=ANY,
    sides=("excess risk that has the chance gamma", "bound"),
    quantifier=CONSTANT,
    false=Variant("Without theta.", power=0),
)
def peers_learn_at_the_rate_of_their_copies(majority: Majority, power: int = 1) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha)."""
    deviation = math.sqrt(math.log(1 / majority.gamma) / (majority.rate**power * majority.size))
    return at_most(most_lost(majority.misled, majority.gamma), 3 * (deviation + majority.flip), tolerance=TOLERANCE)


class Bias(Instance, contest="", flip="alpha"):
    """Two hypotheses judged by labels that peers exchange in large clusters: what more rows do not mend."""

    contest: Contest
    flip: Fraction


def _biases(budget: Budget) -> Iterator[Bias]:
    one, zero = Fraction(1), Fraction(0)
    for flip in (Fraction(1, n) for n in (4, 10, 2)):
        tempting = ((zero, flip / (1 - flip)),), ((one, zero),)
        yield Bias(Contest((one,), (0,), ((zero, one),), tempting), flip)
    random = seeded(9)
    for contest in contests(budget.pick(quick=400, full=20_000), labels=2, seed=10):
        yield Bias(contest, Fraction(random.randint(0, 50), 100))


@claim(
    "E22 Theorem 4: bias",
    kind="ours",
    on=_biases,
    given="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2",
    sides=("excess risk with any number of rows", "bound"),
    false=Variant("With any number of rows, the excess risk among peers is at most phi + alpha.", flips=1),
)
def bias_is_heterogeneity_and_two_flips(bias: Bias, flips: int = 2) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    turned = (tuple(bias.flip + (1 - 2 * bias.flip) * share for share in row) for row in bias.contest.shares)
    return at_most(bias.contest.excess(tuple(turned)), bias.contest.heterogeneity + flips * bias.flip)


class Combined(Instance, heterogeneity="phi", more="clusters of so many times s"):
    """An epsilon and a heterogeneity, far below 1, and how much larger clusters are than they must be."""

    epsilon: Fraction
    heterogeneity: Fraction
    more: int


def _combined(budget: Budget) -> Iterator[Combined]:
    epsilons = [Fraction(1, n) for n in (4, 100, 8, *budget.pick(quick=(), full=tuple(range(5, 200, 3))))]
    for epsilon, n, more in product(epsilons, (6, 5, 7, 9), (1, 100)):
        yield Combined(epsilon, Fraction(1, 10**n), more)


@claim(
    "E22 Theorem 4: with Theorem 3",
    kind="text",
    on=_combined,
    given="any number of rows, theta = epsilon / 2",
    sides=("epsilon of the cluster, or the risk", "epsilon that was asked, or order of phi"),
    corrected=Variant("Clusters of s = 1 / (phi**2 epsilon) users and more have both.", powers=(2, 1)),
    false=Variant("Clusters of s = 1 / (phi**(3/2) epsilon) users and more have both.", powers=(3 / 2, 1)),
)
def clusters_of_one_over_phi_epsilon_squared(combined: Combined, powers: tuple[float, int] = (1, 2)) -> Comparison:
    """Clusters of s = 1 / (phi epsilon**2) users and more have an epsilon, and a risk of order phi but for logs."""
    of_phi, of_epsilon = powers
    least = math.pow(combined.heterogeneity, -of_phi) * math.pow(combined.epsilon, -of_epsilon)
    size, rate = combined.more * math.ceil(least), float(combined.epsilon / 2)
    mechanism = PeerToPeer(theorem3_flip(size, rate), rate)
    # What is lost where the flip just tempts to another hypothesis.
    lost, order = mechanism.flip / (1 - mechanism.flip), 16 * math.log(size) * float(combined.heterogeneity)
    return worst(at_most(theorem3(mechanism, size), float(combined.epsilon)), at_most(lost, order))


class Pure(Instance, k="K", size="s"):
    """Clusters of so many rows, all of label 0, whose labels are drawn by the mechanism of Section 6."""

    k: int
    size: int
    epsilon: float
    clusters: int = 60


def _pure(budget: Budget) -> Iterator[Pure]:
    sizes = ((2, 2), (2, 20), (5, 5), (20, 20), (20, 60), (50, 50), (50, 500), (2, 1_000))
    cases = product(sizes[: budget.pick(quick=5, full=8)], (1.0, 4.0))
    return (Pure(k, size, epsilon) for (k, size), epsilon in cases)


@claim(
    "E22 Section 6: excess risk",
    on=_pure,
    given="pure clusters, phi = 0, beta = 0, lambda = 1, tau = 0, sigma = 1 / epsilon",
    sides=("excess risk", "bound without its constant"),
    quantifier=CONSTANT,
    false=Variant("The same with sqrt(K) for K.", power=1 / 2),
)
def pure_clusters_cost_labels_over_rows(pure: Pure, power: float = 1.0) -> Comparison:
    """Excess risk is at most C (sqrt(d / n) + K / (s epsilon)), but for logarithms."""
    mechanism = ClusterRR(pure.k, threshold=0, noise_scale=1 / pure.epsilon, resampling=1, bias_correction=0)
    groups = Groups.of_ids(np.repeat(np.arange(pure.clusters), pure.size))
    release = mechanism.release([0] * groups.n, groups, source=SeededEntropy(7))
    wrong = 1 - float(total(q[0] for q in release.distributions)) / pure.clusters
    # One hypothesis loses 1 at labels drawn wrong, and the other what just makes up for them.
    lost = wrong / max(wrong, 1 - wrong)
    return at_most(lost, pure.k**power / (pure.size * pure.epsilon))


class Association(Instance, k="K", size="s"):
    """Clusters with `s` labels each, fewer than `K`, of which a mechanism names some."""

    k: int
    size: int
    ratio: Fraction

    @cached_property
    def best(self) -> Fraction:
        """The largest product of precision and recall of any private mechanism: by sets of one size, by convexity."""
        return max(self.found(named) ** 2 / (self.size * named) for named in range(1, self.k + 1))

    def found(self, named: int) -> Fraction:
        """Mean number of a cluster's labels among so many that are named, at most.

        Mechanisms may be averaged over permutations of labels: then each label found multiplies the probability of a
        set, and most are found where it does so by ``exp(epsilon)``.
        """
        s, rest = self.size, self.k - self.size
        hits = range(max(0, named - rest), min(s, named) + 1)
        masses = {i: math.comb(s, i) * math.comb(rest, named - i) * self.ratio**i for i in hits}
        return total(i * mass for i, mass in masses.items()) / total(masses.values())


def _associations(budget: Budget) -> Iterator[Association]:
    few = ((2, 1), (3, 1), (3, 2), (6, 2), (20, 3))
    sizes = budget.pick(quick=few, full=tuple(product(range(2, 40, 3), (1, 2, 5))))
    return (Association(k, size, ratio) for (k, size), ratio in product(sizes, RATIOS) if size < k)


@claim(
    "E22 Theorem 5",
    on=_associations,
    given="epsilon and s fixed",
    sides=("best precision times recall for twice the labels", "best precision times recall"),
    quantifier="as s / K tends to 0",
    false=Variant("The best product of precision and recall falls to a third when K doubles.", share=Fraction(1, 3)),
)
def more_labels_are_harder(problem: Association, share: Fraction = Fraction(1)) -> Comparison:
    """At a constant epsilon and s = o(K), precision and recall cannot both be constant."""
    return at_most(Association(2 * problem.k, problem.size, problem.ratio).best, share * problem.best)


@claim(
    "E22 Theorem 5: inequality",
    kind="text",
    on=_associations,
    given="1 <= s < K",
    sides=("best precision times recall", "bound"),
    false=Variant("Without exp(epsilon).", power=0),
)
def precision_times_recall_is_bounded(problem: Association, power: int = 1) -> Comparison:
    """Precision times recall is at most exp(epsilon) s / (K - s), for every private mechanism."""
    return at_most(problem.best, problem.ratio**power * problem.size / (problem.k - problem.size))
