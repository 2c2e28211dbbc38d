"""Excess risk of labels that peers exchange, and labels of small clusters ([E22], Theorems 4 and 5, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.stats import binom

from optrand.baselines import ClusterRR, PeerToPeer
from optrand.baselines.groups import Groups
from optrand.baselines.peer_to_peer import theorem3, theorem3_flip
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.e22.losses import Contest, draw_contest
from optrand.theory.e22.noise import TOLERANCE
from optrand.theory.e22.risks import CONSTANT, GAMMAS, largest_loss_at
from optrand.theory.engine import Comparison, at_most, claim, corrected, draws, false, grid
from optrand.theory.instances import RATIOS
from optrand.theory.sums import total


def mislead_peers(size: int, rate: float, flip: float, ones: float) -> float:
    """Return the probability that at most half of the copies in one cluster are 1, if labels are with `ones`."""
    n = np.arange(size + 1)
    flipped = binom.pmf(n, size, flip + (1 - 2 * flip) * ones)
    sent = binom.pmf(n, size, rate)
    t = n[:, np.newaxis]
    return float(sent @ binom.cdf(t // 2, t, n / size) @ flipped)


@claim(
    "E22 Theorem 4",
    *(
        grid(size=(1, 2, 5, 20, 80), rate=[rate], flip=[flip], gamma=GAMMAS)
        for rate, flip in ((1.0, 0.1), (0.05, 0.1), (1.0, 0.0), (0.2, 0.4))
    ),
    given="any population, class and clusters; two constant hypotheses, all users in one cluster, C = 3",
    undecided=CONSTANT,
)
@false("Without theta.", power=0)
def peers_learn_at_the_rate_of_their_copies(
    size: int, rate: float, flip: float, gamma: float, power: int = 1
) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha)."""
    deviation = math.sqrt(math.log(1 / gamma) / (rate**power * size))
    lost = largest_loss_at(partial(mislead_peers, size, rate, flip), gamma)
    return at_most(lost, 3 * (deviation + flip), tolerance=TOLERANCE)


def _tempting_flips(_: int) -> Iterator[dict[str, Any]]:
    one, sure = np.array([Fraction(1)]), np.array([[Fraction(0), Fraction(1)]])
    for flip in (Fraction(1, n) for n in (4, 10, 2)):
        losses = np.array([[[0, flip / (1 - flip)]], [[1, 0]]])
        yield {"contest": Contest(one, np.array([0]), sure, losses), "flip": flip}


@claim(
    "E22 Theorem 4: bias",
    _tempting_flips,
    draws(200, lambda draw: {"contest": draw_contest(draw, 2), "flip": Fraction(draw.randint(0, 50), 100)}),
    given="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2; the constants are ours",
)
@false("With any number of rows, the excess risk among peers is at most phi + alpha.", flips=1)
def bias_is_heterogeneity_and_two_flips(contest: Contest, flip: Fraction, flips: int = 2) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    return at_most(contest.excess(flip + (1 - 2 * flip) * contest.shares), contest.heterogeneity + flips * flip)


@claim(
    "E22 Theorem 4: with Theorem 3",
    epsilon=[Fraction(1, n) for n in (4, 100, 8)],
    heterogeneity=[Fraction(1, 10**n) for n in (6, 5, 7, 9)],
    more=(1, 100),
    given="any number of rows, theta = epsilon / 2; clusters are `more` times as large as they must be",
)
@corrected("Clusters of s = 1 / (phi**2 epsilon) users and more have both.", powers=(2, 1))
@false("Clusters of s = 1 / (phi**(3/2) epsilon) users and more have both.", powers=(3 / 2, 1))
def clusters_of_one_over_phi_epsilon_squared(
    epsilon: Fraction, heterogeneity: Fraction, more: int, powers: tuple[float, int] = (1, 2)
) -> Comparison:
    """Clusters of s = 1 / (phi epsilon**2) users and more have an epsilon, and a risk of order phi but for logs."""
    of_phi, of_epsilon = powers
    size = more * math.ceil(math.pow(heterogeneity, -of_phi) * math.pow(epsilon, -of_epsilon))
    rate = float(epsilon / 2)
    mechanism = PeerToPeer(theorem3_flip(size, rate), rate)
    # What is lost where the flip just tempts to another hypothesis.
    lost, order = mechanism.flip / (1 - mechanism.flip), 16 * math.log(size) * float(heterogeneity)
    return at_most([theorem3(mechanism, size), lost], [float(epsilon), order])


@claim(
    "E22 Section 6: excess risk",
    *(grid(k=[k], size=[size], epsilon=(1.0, 4.0)) for k, size in ((2, 2), (2, 20), (5, 5), (20, 20), (20, 60))),
    given="60 pure clusters, phi = 0, beta = 0, lambda = 1, tau = 0, sigma = 1 / epsilon",
    undecided=CONSTANT,
)
@false("The same with sqrt(K) for K.", power=1 / 2)
def pure_clusters_cost_labels_over_rows(k: int, size: int, epsilon: float, power: float = 1.0) -> Comparison:
    """Excess risk is at most C (sqrt(d / n) + K / (s epsilon)), but for logarithms."""
    wrong = _draw_wrong_labels(k, size, epsilon)
    # One hypothesis loses 1 at labels drawn wrong, and the other what just makes up for them.
    return at_most(wrong / max(wrong, 1 - wrong), k**power / (size * epsilon))


@cache
def _draw_wrong_labels(k: int, size: int, epsilon: float) -> float:
    """Return the mean share of other labels in the noisy distributions of 60 clusters of label 0."""
    mechanism = ClusterRR(k, threshold=0, noise_scale=1 / epsilon, resampling=1, bias_correction=0)
    groups = Groups.of_ids(np.repeat(np.arange(60), size))
    release = mechanism.release([0] * groups.n, groups, source=SeededEntropy(7))
    return 1 - float(total(q[0] for q in release.distributions)) / 60


def find_labels(k: int, size: int, ratio: Fraction, named: int) -> Fraction:
    """Return the largest mean number of a cluster's `size` labels among `named` ones, of any private mechanism.

    Mechanisms may be averaged over permutations of labels: then each label found multiplies the probability of a set,
    and most are found where it does so by ``exp(epsilon)``.
    """
    hits = range(max(0, named - (k - size)), min(size, named) + 1)
    masses = {i: math.comb(size, i) * math.comb(k - size, named - i) * ratio**i for i in hits}
    return total(i * mass for i, mass in masses.items()) / total(masses.values())


def best_association(k: int, size: int, ratio: Fraction) -> Fraction:
    """Return the largest product of precision and recall of private mechanisms: by convexity, of sets of one size."""
    return max(find_labels(k, size, ratio, named) ** 2 / (size * named) for named in range(1, k + 1))


ASSOCIATIONS = [
    grid(k=[k], size=[size], ratio=RATIOS) for k, size in ((2, 1), (3, 1), (3, 2), (6, 2), (20, 3), (38, 5))
]


@claim("E22 Theorem 5", *ASSOCIATIONS, given="epsilon and s fixed", undecided="as s / K tends to 0")
@false("The best product of precision and recall falls to a third when K doubles.", share=Fraction(1, 3))
def more_labels_are_harder(k: int, size: int, ratio: Fraction, share: Fraction = Fraction(1)) -> Comparison:
    """At a constant epsilon and s = o(K), precision and recall cannot both be constant."""
    return at_most(best_association(2 * k, size, ratio), share * best_association(k, size, ratio))


@claim("E22 Theorem 5: inequality", *ASSOCIATIONS, given="1 <= s < K")
@false("Without exp(epsilon).", power=0)
def precision_times_recall_is_bounded(k: int, size: int, ratio: Fraction, power: int = 1) -> Comparison:
    """Precision times recall is at most exp(epsilon) s / (K - s), for every private mechanism."""
    return at_most(best_association(k, size, ratio), ratio**power * size / (k - size))
