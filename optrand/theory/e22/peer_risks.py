"""Excess risk on labels that peers exchange ([E22], Theorem 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import binom

from optrand.baselines import PeerToPeer
from optrand.baselines.peer_to_peer import theorem3, theorem3_flip
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.e22.contests import CONSTANT, GAMMAS, TOLERANCE, Contest, contests, most_lost
from optrand.theory.instances import Instance, seeded

__all__ = ["Combined", "Majority"]

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
    "E22", "Theorem 4", on=_majorities, given=ANY, quantifier=CONSTANT, false=Variant("With n for theta n.", power=0)
)
def peers_learn_at_the_rate_of_their_copies(majority: Majority, power: int = 1) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha).

    Tried with one cluster, so that phi = 0, on two hypotheses, at a dimension of 1 and C = 3.
    """
    deviation = math.sqrt(math.log(1 / majority.gamma) / (majority.rate**power * majority.size))
    return at_most(most_lost(majority.misled, majority.gamma), 3 * (deviation + majority.flip), tolerance=TOLERANCE)


class Bias(Instance, contest="", flip="alpha"):
    """Two hypotheses judged by labels that peers exchange in large clusters: what more rows do not mend."""

    contest: Contest
    flip: Fraction

    @cached_property
    def excess(self) -> Fraction:
        """What is lost: every example is seen with the flipped labels of its cluster."""
        turned = (tuple(self.flip + (1 - 2 * self.flip) * share for share in shares) for shares in self.contest.shares)
        return self.contest.excess(tuple(turned))


def _tempted(flip: Fraction) -> Bias:
    """One example whose flips just tempt to the other hypothesis."""
    one, none = Fraction(1), Fraction(0)
    return Bias(Contest((one,), (0,), ((none, one),), (((none, flip / (1 - flip)),), ((one, none),))), flip)


def _biases(budget: Budget) -> Iterator[Bias]:
    """One example whose flips tempt to the other hypothesis, two whose cluster does, then random ones."""
    yield from (_tempted(Fraction(1, n)) for n in (4, 10, 2))
    random = seeded(9)
    for contest in contests(budget.pick(quick=400, full=20_000), labels=2, seed=10):
        yield Bias(contest, Fraction(random.randint(0, 50), 100))


@claim(
    "E22",
    "Theorem 4: bias",
    kind="ours",
    on=_biases,
    given="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2",
    false=Variant("With any number of rows, the excess risk among peers is at most phi + alpha.", flips=1),
)
def bias_is_heterogeneity_and_two_flips(bias: Bias, flips: int = 2) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    return at_most(bias.excess, bias.contest.heterogeneity + flips * bias.flip)


class Combined(Instance, heterogeneity="phi", more="clusters of so many times s"):
    """An epsilon and a heterogeneity, far below 1, and how much larger clusters are than they must be."""

    epsilon: Fraction
    heterogeneity: Fraction
    more: int

    def reached(self, least: float) -> Comparison:
        """Whether clusters from this size on reach the epsilon, and a risk of order phi, at `theta = epsilon / 2`.

        The flip is that of Theorem 3, and the risk what it costs where it just tempts to another hypothesis.
        """
        size, rate = self.more * math.ceil(least), float(self.epsilon / 2)
        mechanism = PeerToPeer(theorem3_flip(size, rate), rate)
        lost = float(_tempted(Fraction(mechanism.flip)).excess)
        order = 16 * math.log(size) * float(self.heterogeneity)
        return worst(at_most(theorem3(mechanism, size), float(self.epsilon)), at_most(lost, order))

    def size(self, of_phi: float, of_epsilon: int) -> float:
        """One over powers of phi and epsilon."""
        return math.pow(self.heterogeneity, -of_phi) * math.pow(self.epsilon, -of_epsilon)


def _combined(budget: Budget) -> Iterator[Combined]:
    epsilons = [Fraction(1, n) for n in (4, 100, 8, *budget.pick(quick=(), full=tuple(range(5, 200, 3))))]
    for epsilon, n, more in product(epsilons, (6, 5, 7, 9), (1, 100)):
        yield Combined(epsilon, Fraction(1, 10**n), more)


@claim("E22", "Theorem 4: with Theorem 3", kind="text", on=_combined, given="any number of rows, theta = epsilon / 2")
def clusters_of_one_over_phi_epsilon_squared(combined: Combined) -> Comparison:
    """Clusters of s = 1 / (phi epsilon**2) users and more have an epsilon, and a risk of order phi but for logs.

    Tried as a risk of at most 16 log(s) phi, with Theorem 3's flip where that is at most 1/2.
    """
    return combined.reached(combined.size(1, 2))


@clusters_of_one_over_phi_epsilon_squared.corrected
def _(combined: Combined) -> Comparison:
    """Clusters of s = 1 / (phi**2 epsilon) users and more have both."""
    return combined.reached(combined.size(2, 1))


@clusters_of_one_over_phi_epsilon_squared.false
def _(combined: Combined) -> Comparison:
    """Clusters of s = 1 / (phi**(3/2) epsilon) users and more have both."""
    return combined.reached(combined.size(3 / 2, 1))
