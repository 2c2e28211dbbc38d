"""Privacy of a curator's release ([E22], Theorems 1 and 6, Corollaries 1 and 2, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from random import Random
from typing import Any

import numpy as np
from scipy.stats import laplace

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import Floats
from optrand.baselines import ClusterRR
from optrand.baselines.cluster import cluster_distribution
from optrand.theory.e22.losses import channel, inverse_columns, label_laws
from optrand.theory.e22.noise import TOLERANCE, Distribution, Histogram, histograms, noisy_law, renormalized
from optrand.theory.engine import Comparison, Space, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory.instances import RATIOS, prior
from optrand.theory.sums import largest_ratio, times, total


@dataclass(frozen=True)
class Curator:
    """Algorithm 1 on one cluster whose first row has the label 0 or 1, the counts of its `others`, and `low` = tau s.

    `noise` is ``exp(1 / sigma)``.
    """

    others: Histogram
    low: int
    noise: Fraction
    resampling: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.others)

    @property
    def threshold(self) -> Fraction:
        """`tau`."""
        return Fraction(self.low, sum(self.others) + 1)

    @property
    def mechanism(self) -> ClusterRR:
        """The package's mechanism, which states the epsilon of a release."""
        scale = 1 / math.log(self.noise)
        return ClusterRR(self.k, noise_scale=scale, threshold=self.threshold, resampling=self.resampling)

    def histogram(self, first: int) -> Histogram:
        """Return the number of rows with each label."""
        return tuple(count + (y == first) for y, count in enumerate(self.others))

    def law(self, first: int) -> dict[tuple[Distribution, int], Fraction]:
        """Return the law of the noisy distribution, with noise in whole rows, and of the first row's noisy label."""
        laws = product(noisy_law(self.histogram(first), self.threshold, self.noise).items(), range(self.k))
        return {(q, out): mass * channel(out, first, q, self.resampling) for (q, mass), out in laws}

    @cached_property
    def whole_rows(self) -> Fraction | float:
        """Largest ratio over all that can be released, with noise in whole rows."""
        return largest_ratio([self.law(first) for first in (0, 1)])

    @cached_property
    def corners(self) -> Fraction | float:
        """Largest ratio over releases with all labels but one at the threshold, under continuous noise.

        Counts stop there in tails of Laplace noise, which begin a whole number of rows away.
        """
        tau, labels = self.threshold, range(self.k)
        corners = [tuple(1 - (self.k - 1) * tau if y == top else tau for y in labels) for top in labels]
        return largest_ratio(
            [
                {
                    (top, out): self.corner_mass(first, top) * channel(out, first, corners[top], self.resampling)
                    for top, out in product(labels, labels)
                }
                for first in (0, 1)
            ]
        )

    def corner_mass(self, first: int, top: int) -> Fraction:
        """Return the probability of the distribution in which only `top` is above the threshold."""
        counts = self.histogram(first)
        rest = sum(counts) - (self.k - 1) * self.low
        gaps = [rest - count if y == top else count - self.low for y, count in enumerate(counts)]
        return times(self.noise**-gap / 2 if gap >= 0 else 1 - self.noise**gap / 2 for gap in gaps)


def _small_curators(_: int) -> Iterator[Curator]:
    """Yield all clusters of up to five rows at a few noises."""
    spent = [(Fraction(3, 2), Fraction(99, 100)), (Fraction(101, 100), Fraction(9, 10)), (Fraction(5), Fraction(1, 2))]
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4)):
        for others, low, each in product(histograms(k, size - 1), range(1, -(-size // k)), spent):
            yield Curator(others, low, *each)
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    yield Curator((0, 5, 6), 1, Fraction(11, 10), Fraction(1, 2))


def _draw_curator(draw: Random) -> Curator:
    k, size = draw.choice(((2, 8), (2, 12), (3, 6)))
    noise, share = 1 + Fraction(draw.randint(1, 300), 100), Fraction(draw.randint(1, 999), 1_000)
    return Curator(draw.choice([*histograms(k, size - 1)]), draw.randint(1, (size - 1) // k), noise, share)


@claim(
    "E22 Theorem 1",
    _small_curators,
    draws(6, _draw_curator),
    given="beta above 0, so that the noisy distribution is told; the package states the epsilons; as ratios",
)
@corrected("A release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same with 2 / sigma and 1 / K for tau.", noises=2, floored=False)
def noise_is_paid_once(curator: Curator, noises: int = 1, *, floored: bool = True) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    mechanism = curator.mechanism
    stated = mechanism.printed_epsilon if noises == 1 else mechanism.epsilon
    if not floored:
        odds = (1 - curator.resampling) / curator.resampling
        stated = 2 * math.log(curator.noise) + math.log(1 + odds * curator.k)
    return at_most(float(curator.corners), math.exp(stated), tolerance=TOLERANCE)


@dataclass(frozen=True)
class LabelsAlone:
    """Two labels, continuous noise, and nothing released but noisy labels: `beta = 0` keeps the loss as it is.

    As in Corollary 2, `sigma = 1 / epsilon` and `lambda = 1 / (1 + (exp(epsilon) - 1) tau)`.
    """

    size: int
    epsilon: float
    threshold: float

    @property
    def mechanism(self) -> ClusterRR:
        """The package's mechanism."""
        share, scale = 1 / (1 + math.expm1(self.epsilon) * self.threshold), 1 / self.epsilon
        return ClusterRR(2, threshold=self.threshold, noise_scale=scale, resampling=share, bias_correction=0)

    def stated(self, noises: float) -> float:
        """Return the epsilon that the package states, with a multiple of the printed noise, as a share of epsilon."""
        printed, true = self.mechanism.printed_epsilon, self.mechanism.epsilon
        return (printed + (noises - 1) * (true - printed)) / self.epsilon

    @cached_property
    def spent(self) -> float:
        """A lower bound of the epsilon, as a share of the nominal one, from two neighbours and zeros alone."""
        ratios = (self.zeros(ones, low=True) / self.zeros(ones + 1, low=False) for ones in range(self.size))
        return math.log(max(ratios)) / self.epsilon

    def zeros(self, ones: int, *, low: bool) -> float:
        """Return a bound, from below or above, of the probability that all noisy labels are 0."""
        share, n = float(self.mechanism.resampling), self.size
        q = _final_shares(n, self.threshold)[0 if low else 1]
        chances = (1 - share + share * q) ** (n - ones) * (share * q) ** ones
        return float(self._masses(n - ones) @ chances @ self._masses(ones))

    def _masses(self, count: int) -> Floats:
        """Return the probability of each piece, for the label of `count` rows."""
        below = laplace.cdf((_edges(self.size, self.threshold)[1:-1] * self.size - count) * self.epsilon)
        return np.diff(below, prepend=0.0, append=1.0)


def _edges(size: int, threshold: float) -> Floats:
    """Return the ends of the pieces of a clipped noisy share, 30 for each row; the outermost pieces are points."""
    inner = np.linspace(threshold, 1, round(size * (1 - threshold) * 30) + 1)
    return np.concatenate((inner[:1], inner, inner[-1:]))


@cache
def _final_shares(size: int, threshold: float) -> list[Floats]:
    """Return the least and the largest final share of label 0, which grows with its clipped share."""
    edges = _edges(size, threshold)
    low, high = edges[:-1], edges[1:]
    pairs = [np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1) for ends in ((low, high), (high, low))]
    return [renormalized(pair, threshold)[..., 0] for pair in pairs]


def _labels_alone(sizes: Iterable[int], thresholds: Iterable[float]) -> Space:
    found = [LabelsAlone(*case) for case in product(sizes, (0.01, 0.1, 1.0), thresholds)]
    return lambda _: found


@claim(
    "E22 Theorem 1: noisy labels alone",
    _labels_alone((2, 4, 8), (0.25, 0.1, 0.4)),
    lambda _: [LabelsAlone(12, 0.1, 0.4), LabelsAlone(30, 0.01, 0.4)],
    given="two labels, continuous noise, beta = 0; both summands alike",
)
@corrected("The same at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same at 3 / (2 sigma) + log(1 + (1 - lambda) / (lambda tau)).", noises=3 / 2)
def labels_alone(labels: LabelsAlone, noises: float = 1) -> Comparison:
    """If only noisy labels are released, they are private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(labels.spent, labels.stated(noises))


@claim(
    "E22 Section 6: privacy",
    _labels_alone((2, 4, 8, 12), [0.0]),
    given="two labels, continuous noise; compared as shares of epsilon",
)
@corrected("The same at 2 epsilon.", noises=2)
@false("The same at 3/2 epsilon.", noises=3 / 2)
def drawing_all_labels_costs_epsilon(labels: LabelsAlone, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(labels.spent, labels.stated(noises))


def _draw_resampling(draw: Random) -> dict[str, Any]:
    shares = prior(draw, draw.randint(2, 6))
    threshold = Fraction(draw.randint(1, 99), 100 * len(shares))
    return {"q": cluster_distribution(shares, threshold), "share": Fraction(draw.randint(1, 100), 100)}


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@claim(
    "E22 Theorem 1: resampling",
    cases("q share", ((HALF, HALF), HALF), ((THIRD, 2 * THIRD), HALF), ((THIRD, 2 * THIRD), Fraction(1))),
    draws(200, _draw_resampling),
    given="a public distribution whose least share is tau, labels resampled with a share of lambda",
)
@false("The same with 1 / K for tau.", floored=False)
def labels_cost_their_rarest(q: Distribution, share: Fraction, *, floored: bool = True) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    tau = min(q) if floored else Fraction(1, len(q))
    return at_most(largest_ratio(label_laws(q, share)), 1 + (1 - share) / (share * tau))


def _draw_shares(draw: Random) -> dict[str, Any]:
    k = draw.randint(2, 8)
    shares = tuple(p + Fraction(draw.randint(-1_000, 1_000), 1_000) for p in prior(draw, k))
    return {"shares": shares, "part": Fraction(draw.randint(0, 100), 100)}


SHARES = (
    *(
        grid(
            shares=[tuple(Fraction(x, 2) for x in halves) for halves in product((-1, 0, 1, 3), repeat=k)],
            part=(Fraction(0), HALF, Fraction(1)),
        )
        for k in (2, 3)
    ),
    draws(100, _draw_shares),
)


def _divide_by_the_sum(shares: Distribution, threshold: Fraction) -> Distribution:
    clipped = [max(threshold, min(Fraction(1), share)) for share in shares]
    return tuple(q / total(clipped) if any(clipped) else Fraction(1, len(clipped)) for q in clipped)


@claim("E22 Theorem 6", *SHARES, given="at least two labels, tau from 0 to 1/K: a part of 1/K; any noise")
@false(
    "The same where clipped shares are divided by their sum, or shares are equal if all are 0.",
    settle=_divide_by_the_sum,
)
def distributions_are_well_defined(
    shares: Distribution, part: Fraction, settle: Any = cluster_distribution
) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau."""
    threshold = part / len(shares)
    q = settle(shares, threshold)
    return at_most([threshold, max(q), total(q), 1], [min(q), 1, 1, total(q)])


@claim("E22 Theorem 6: inverse", *SHARES, given="any distribution, beta below 1")
@false("Its inverse is (I - beta q 1') / (1 - beta)**2.", power=2)
def matrices_are_invertible(shares: Distribution, part: Fraction, power: int = 1) -> Comparison:
    """The matrix of a distribution and a beta below 1 has the inverse (I - beta q 1') / (1 - beta)."""
    q, beta = cluster_distribution(shares, part / len(shares)), Fraction(9, 10)
    matrix, inverse = (np.array(columns(q, beta)).T for columns in (label_laws, inverse_columns))
    return equal(inverse @ matrix / (1 - beta) ** (power - 1), np.identity(len(q), dtype=int))


def _draw_uniform(draw: Random) -> dict[str, Any]:
    k = draw.choice((2, 3, 10))
    shares = prior(draw, k) if draw.random() < 0.5 else tuple(Fraction(draw.randint(-30, 30), 10) for _ in range(k))
    return {"shares": shares, "ratio": draw.choice(RATIOS)}


@claim(
    "E22 Corollary 1: privacy",
    *(grid(shares=[(Fraction(1, k),) * k], ratio=RATIOS) for k in (2, 3, 10)),
    draws(50, _draw_uniform),
    given="tau = 1/K, any noise, epsilon above 0; the distribution is then uniform",
)
@false("The same with lambda = (K - 1) / (K - 1 + exp(epsilon)).", less=1)
def uniform_response_spends_epsilon(shares: Distribution, ratio: Fraction, less: int = 0) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are drawn uniformly and cost epsilon; as ratios."""
    k = len(shares)
    laws = label_laws(cluster_distribution(shares, Fraction(1, k)), (k - less) / (k - 1 + ratio))
    return at_most(largest_ratio(laws), ratio)


@claim(
    "E22 Corollary 2: privacy",
    *(
        grid(others=[*histograms(k, size - 1)], low=range(1, -(-size // k)), epsilon=(0.5, 0.125))
        for k, size in ((2, 3), (2, 4), (3, 4))
    ),
    cases("others low epsilon", ((0, 9, 2), 2, 0.125)),
    given="tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi); as ratios",
)
@false("The same with 2 epsilon: compared as ratios.", times_epsilon=2)
def release_spends_three_epsilon(others: Histogram, low: int, epsilon: float, times_epsilon: int = 3) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    The noisy distribution counts as released.
    """
    tau = Fraction(low, sum(others) + 1)
    mechanism = ClusterRR.corollary2(len(others), epsilon, heterogeneity=tau)
    curator = Curator(others, low, privacy_ratio(float(1 / mechanism.noise_scale)), mechanism.resampling)
    return at_most(max(curator.corners, curator.whole_rows), curator.noise**times_epsilon)
