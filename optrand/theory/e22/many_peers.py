"""What peers in large clusters spend and learn ([E22]_, Theorems 3 and 4).

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np
from scipy.stats import binom

from optrand.baselines.peer_accounting import PeerPair
from optrand.baselines.peer_bounds import theorem3_flip
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.e22.losses import Table, heterogeneity
from optrand.theory.instances import listed

__all__ = ["CLAIMS", "ManyPeers", "theorem3_epsilon"]

TOLERANCE = 1e-9
"""Of sums and roots in floats."""

PAPERS_CONSTANT = 4 * math.sqrt(2)
"""The constant `C` of the proof of Theorem 3."""


@dataclass(frozen=True)
class ManyPeers:
    """A cluster whose flip is set by its size and its rate, `alpha = C log(s) / sqrt(theta s)`.

    Attributes
    ----------
    size : int
        `s`.
    constant : float
        `C`.
    flip : float
        `alpha`, which decides the rate.
    """

    size: int
    constant: float
    flip: float

    @property
    def rate(self) -> float:
        """`theta`, up to 1 where the flip is large enough."""
        root = self.constant * math.log(self.size) / self.flip
        return root * root / self.size

    def delta(self, epsilon: float, flip: float) -> float:
        """The exact delta where all other users have the label 0, or half of them."""
        others = (0, (self.size - 1) // 2)
        pairs = (PeerPair.of(self.size, min(flip, 1 - flip), self.rate, ones=ones) for ones in others)
        return max(pair.delta(epsilon)[1] for pair in pairs)

    def __str__(self) -> str:
        return f"s = {self.size}, C = {self.constant:.6g}, alpha = {self.flip:.6g}, theta = {self.rate:.6g}"


def theorem3_epsilon(size: int, rate: float) -> float:
    """The epsilon of Theorem 3 with the constants in the last line of its proof.

    Examples
    --------
    >>> round(theorem3_epsilon(20_000, 1.0), 4)
    1.4249
    """
    small = 3 * rate**1.5 / (math.e * math.sqrt(size) * math.log(size))
    return rate + small + 3 * 2**0.75 * rate**0.75 / size**0.25


def _many(budget: Budget) -> Iterator[ManyPeers]:
    """Flips of 1 and near it at several constants, then clusters in which the proof's flip is at most 1/2."""
    for constant, size in ((0.25, 10), (0.5, 100), (1.0, 100), (2.0, 500), (PAPERS_CONSTANT, 4_000)):
        yield from (ManyPeers(size, constant, flip) for flip in (1.0, 0.95))
    sizes = budget.pick(quick=(11_700, 20_000), full=(11_700, 20_000, 50_000, 100_000))
    for size in sizes:
        yield ManyPeers(size, PAPERS_CONSTANT, theorem3_flip(size, 1.0))
        if budget is Budget.FULL and size > 20_000:
            yield ManyPeers(size, PAPERS_CONSTANT, 0.5)


def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """With alpha = C log(s) / sqrt(theta s) delta is at most 1/s**2 at an epsilon of order theta.

    Theorem 3 with tenfold the constants of its proof: at ten times (theta + theta**(3/2) / sqrt(s log s) +
    theta**(3/4) / s**(1/4)).
    """
    size, rate = peers.size, peers.rate
    order = rate + rate**1.5 / math.sqrt(size * math.log(size)) + rate**0.75 / size**0.25
    return at_most(peers.delta(10 * order, peers.flip), 1 / size**2)


def many_peers_that_flip_less_than_half_are_private(peers: ManyPeers) -> Comparison:
    """The same for the least of 1/2 and that alpha at C = 4 sqrt(2), at the epsilon in the last line of the proof."""
    epsilon = theorem3_epsilon(peers.size, peers.rate)
    return at_most(peers.delta(epsilon, _proven_flip(peers)), 1 / peers.size**2)


def many_peers_are_as_private_as_their_mean(peers: ManyPeers) -> Comparison:
    """The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are forgotten."""
    epsilon = peers.rate / math.sqrt(peers.size)
    return at_most(peers.delta(epsilon, _proven_flip(peers)), 1 / peers.size**2)


def _proven_flip(peers: ManyPeers) -> float:
    return min(0.5, theorem3_flip(peers.size, peers.rate))


@dataclass(frozen=True)
class _Proven:
    """Where the proof of Theorem 3 speaks."""

    size: int
    rate: float

    @property
    def flip(self) -> float:
        """`alpha`, at most 1/2."""
        return theorem3_flip(self.size, self.rate)

    @property
    def xi(self) -> float:
        """`4 sqrt(log s)`."""
        return 4 * math.sqrt(math.log(self.size))

    def __str__(self) -> str:
        return f"s = {self.size}, theta = {self.rate}, alpha = {self.flip:.6g}"


def _proven(budget: Budget) -> Iterator[_Proven]:
    for size in (11_340, 20_000, 10**6, 10**14, 10**20, *budget.pick(quick=(), full=(10**9, 10**40))):
        yield from (_Proven(size, rate) for rate in (1.0, 0.3, 1e-2) if theorem3_flip(size, rate) <= 0.5)


def xi_is_allowed_by_logs(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most 4 log s, and that at most alpha sqrt(theta s) / 2."""
    most = proven.flip * math.sqrt(proven.rate * proven.size) / 2
    logs = 4 * math.log(proven.size)
    return worst(at_most(proven.xi, logs), at_most(logs, most))


def xi_is_allowed(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most 3 alpha sqrt(theta s (1 - alpha)), as Lemma 9 asks."""
    return at_most(proven.xi, 3 * proven.flip * math.sqrt(proven.rate * proven.size * (1 - proven.flip)))


def xi_is_allowed_by_an_eighth(proven: _Proven) -> Comparison:
    """With xi = 4 sqrt(log s): xi is at most alpha sqrt(theta s) / 8."""
    return at_most(proven.xi, proven.flip * math.sqrt(proven.rate * proven.size) / 8)


def the_first_logarithm_holds_root_72(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = sqrt(72 theta) / (sqrt(s) log s)."""
    return _inside(proven, 72.0)


def the_first_logarithm_holds_less(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = sqrt(9 theta / 32) / (sqrt(s) log s)."""
    return _inside(proven, 9 / 32)


def the_first_logarithm_holds_three(proven: _Proven) -> Comparison:
    """In equation 33, 3 / (s alpha) = 3 sqrt(theta) / (sqrt(s) log s), as in the line that follows it."""
    return _inside(proven, 9.0)


def _inside(proven: _Proven, square: float) -> Comparison:
    right = math.sqrt(square * proven.rate / proven.size) / math.log(proven.size)
    return equal(3 / (proven.size * proven.flip), right, tolerance=TOLERANCE)


@dataclass(frozen=True)
class _Bias:
    """Two hypotheses judged by labels that peers exchange in large clusters: what more rows do not mend.

    Attributes
    ----------
    weights : tuple of Fraction
        The distribution of examples.
    clusters : tuple of int
    ones : tuple of Fraction
        The probability of label 1 at each example.
    losses : tuple of two tables
        Of each hypothesis, at each example and label.
    flip : Fraction
        At most 1/2.
    """

    weights: tuple[Fraction, ...]
    clusters: tuple[int, ...]
    ones: tuple[Fraction, ...]
    losses: tuple[Table, Table]
    flip: Fraction

    @property
    def heterogeneity(self) -> Fraction:
        """`phi`."""
        return heterogeneity(self.weights, self.clusters, tuple((1 - p, p) for p in self.ones))

    @cached_property
    def excess(self) -> Fraction:
        """The risk, beyond the least, of the hypothesis that exchanged labels favour; at ties, of the worse."""
        risks = [self._risk(table, self.ones) for table in self.losses]
        noisy = [self._risk(table, self._exchanged) for table in self.losses]
        return max(risk for risk, seen in zip(risks, noisy, strict=True) if seen == min(noisy)) - min(risks)

    @property
    def _exchanged(self) -> tuple[Fraction, ...]:
        return tuple(self.flip + (1 - 2 * self.flip) * self._share(cluster) for cluster in self.clusters)

    def _share(self, cluster: int) -> Fraction:
        inside = [x for x, c in enumerate(self.clusters) if c == cluster]
        ones = sum((self.weights[x] * self.ones[x] for x in inside), Fraction(0))
        return ones / sum((self.weights[x] for x in inside), Fraction(0))

    def _risk(self, table: Table, ones: tuple[Fraction, ...]) -> Fraction:
        each = zip(self.weights, table, ones, strict=True)
        return sum((w * ((1 - p) * row[0] + p * row[1]) for w, row, p in each), Fraction(0))

    def __str__(self) -> str:
        tables = " or ".join("; ".join(map(listed, table)) for table in self.losses)
        return (
            f"examples of weight {listed(self.weights)} in clusters {', '.join(map(str, self.clusters))} with labels 1 "
            f"of probability {listed(self.ones)}, losses {tables}, alpha = {self.flip}"
        )


def _biases(budget: Budget) -> Iterator[_Bias]:
    """One example that tempts to the other hypothesis by flips, two that do by their cluster, then random ones."""
    one, half = Fraction(1), Fraction(1, 2)
    for flip in (Fraction(1, 4), Fraction(1, 10), half):
        yield _Bias((one,), (0,), (one,), (((0 * one, flip / (1 - flip)),), ((one, 0 * one),)), flip)
    tempting: tuple[Table, Table] = (((0 * one, one), (0 * one, one)), ((one, one), (0 * one, 0 * one)))
    yield _Bias((half, half), (0, 0), (one, 0 * one), tempting, Fraction(0))
    random = Random(9)  # noqa: S311
    for _ in range(budget.pick(quick=400, full=20_000)):
        size = random.randint(1, 4)
        counts = [random.randint(1, 9) for _ in range(size)]
        tables = [
            tuple(tuple(Fraction(random.randint(0, 4), 4) for _ in range(2)) for _ in range(size)) for _ in range(2)
        ]
        yield _Bias(
            tuple(Fraction(count, sum(counts)) for count in counts),
            tuple(random.randint(0, 1) for _ in range(size)),
            tuple(Fraction(random.randint(0, 10), 10) for _ in range(size)),
            (tables[0], tables[1]),
            Fraction(random.randint(0, 50), 100),
        )


def bias_is_heterogeneity_and_two_flips(bias: _Bias) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    return at_most(bias.excess, bias.heterogeneity + 2 * bias.flip)


def bias_is_heterogeneity_and_a_flip(bias: _Bias) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + alpha."""
    return at_most(bias.excess, bias.heterogeneity + bias.flip)


@dataclass(frozen=True)
class _Majority:
    """Two hypotheses, "always 0" and "always 1", judged by the copies of one cluster.

    Attributes
    ----------
    size : int
        `n`, of which all are in one cluster.
    rate, flip : float
        `theta` and `alpha`.
    gamma : float
        The probability that the bound may be broken.
    """

    size: int
    rate: float
    flip: float
    gamma: float

    @cached_property
    def excess(self) -> float:
        """The largest excess risk, over all distributions of labels, that is exceeded with probability `gamma`.

        Labels are 1 with probability `p` above 1/2, and "always 0" costs `2 p - 1` more. Ties, and no copies at all,
        count for it.
        """
        low, high = 0.5, 1.0
        if self._misled(high) >= self.gamma:
            return 1.0
        while high - low > TOLERANCE:
            middle = (low + high) / 2
            low, high = (middle, high) if self._misled(middle) >= self.gamma else (low, middle)
        return 2 * low - 1

    def _misled(self, ones: float) -> float:
        """The probability that at most half of the copies are 1."""
        n = self.size
        flipped = binom.pmf(np.arange(n + 1), n, self.flip + (1 - 2 * self.flip) * ones)
        sent = binom.pmf(np.arange(n + 1), n, self.rate)
        t = np.arange(n + 1)[:, np.newaxis]
        return float(sent @ binom.cdf(t // 2, t, np.arange(n + 1) / n) @ flipped)

    def __str__(self) -> str:
        return f"n = {self.size}, theta = {self.rate}, alpha = {self.flip}, gamma = {self.gamma}"


def _majorities(budget: Budget) -> Iterator[_Majority]:
    for size in (1, 2, 5, 20, 80, *budget.pick(quick=(), full=(200, 400))):
        for rate, flip in ((1.0, 0.1), (0.05, 0.1), (1.0, 0.0), (0.2, 0.4)):
            yield from (_Majority(size, rate, flip, gamma) for gamma in (0.5, 0.05, 1e-4))


def peers_learn_at_the_rate_of_their_copies(majority: _Majority) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha).

    Tried with one cluster, so that phi = 0, on two hypotheses, at a dimension of 1 and C = 3.
    """
    return _learned(majority, majority.rate)


def peers_learn_at_the_rate_of_their_labels(majority: _Majority) -> Comparison:
    """The same with n for theta n."""
    return _learned(majority, 1.0)


def _learned(majority: _Majority, rate: float) -> Comparison:
    deviation = math.sqrt(math.log(1 / majority.gamma) / (rate * majority.size))
    return at_most(majority.excess, 3 * (deviation + majority.flip), tolerance=TOLERANCE)


@dataclass(frozen=True)
class _Combined:
    """An epsilon and a heterogeneity, below 1."""

    epsilon: Fraction
    heterogeneity: Fraction

    def flip_squared(self, size: Fraction) -> Fraction:
        """The square of `1 / sqrt(theta s)` at `theta = epsilon`: of the flip of Theorem 3 but for `C log s`."""
        return 1 / (self.epsilon * size)

    def __str__(self) -> str:
        return f"epsilon = theta = {self.epsilon}, phi = {self.heterogeneity}"


def _combined(budget: Budget) -> Iterator[_Combined]:
    shares = [Fraction(1, n) for n in budget.pick(quick=(4, 16, 2, 100), full=tuple(range(2, 200, 3)))]
    return (_Combined(epsilon, phi) for epsilon in shares for phi in shares)


def clusters_of_one_over_phi_epsilon_squared(combined: _Combined) -> Comparison:
    """From s = 1 / (phi epsilon**2) on, theta = epsilon makes Theorem 3's flip of order phi, but for its logarithm.

    Compared in squares, with C log s left out.
    """
    size = 1 / (combined.heterogeneity * combined.epsilon**2)
    return at_most(combined.flip_squared(size), combined.heterogeneity**2)


def clusters_of_one_over_phi_squared_epsilon(combined: _Combined) -> Comparison:
    """From s = 1 / (phi**2 epsilon) on, theta = epsilon makes Theorem 3's flip of order phi, but for its logarithm."""
    size = 1 / (combined.heterogeneity**2 * combined.epsilon)
    return at_most(combined.flip_squared(size), combined.heterogeneity**2)


def clusters_of_one_over_phi_epsilon(combined: _Combined) -> Comparison:
    """From s = 1 / (phi epsilon) on, theta = epsilon makes Theorem 3's flip of order phi, but for its logarithm."""
    size = 1 / (combined.heterogeneity * combined.epsilon)
    return at_most(combined.flip_squared(size), combined.heterogeneity**2)


PROVEN = "C = 4 sqrt(2) and alpha at most 1/2, as in the proof"

CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 3",
        hypothesis="a cluster of s users, alpha = C log(s) / sqrt(theta s)",
        instances=_many,
        printed=many_peers_are_private,
        corrected=many_peers_that_flip_less_than_half_are_private,
        false=many_peers_are_as_private_as_their_mean,
    ),
    Claim(
        paper="E22",
        number="Theorem 3",
        part="range of xi",
        hypothesis=PROVEN,
        instances=_proven,
        printed=xi_is_allowed_by_logs,
        corrected=xi_is_allowed,
        false=xi_is_allowed_by_an_eighth,
    ),
    Claim(
        paper="E22",
        number="Theorem 3",
        part="equation 33",
        hypothesis=PROVEN,
        instances=_proven,
        printed=the_first_logarithm_holds_root_72,
        corrected=the_first_logarithm_holds_less,
        false=the_first_logarithm_holds_three,
    ),
    Claim(
        paper="E22",
        number="Theorem 4",
        hypothesis="any population, class and clusters",
        instances=_majorities,
        printed=peers_learn_at_the_rate_of_their_copies,
        false=peers_learn_at_the_rate_of_their_labels,
        quantifier="an unnamed constant, over all populations and classes of hypotheses",
    ),
    Claim(
        paper="E22",
        number="Theorem 4",
        part="bias",
        hypothesis="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2",
        instances=_biases,
        printed=bias_is_heterogeneity_and_two_flips,
        false=bias_is_heterogeneity_and_a_flip,
    ),
    Claim(
        paper="E22",
        number="Theorem 4",
        part="with Theorem 3",
        hypothesis="epsilon and phi below 1, theta = epsilon",
        instances=_combined,
        printed=clusters_of_one_over_phi_epsilon_squared,
        corrected=clusters_of_one_over_phi_squared_epsilon,
        false=clusters_of_one_over_phi_epsilon,
    ),
)
