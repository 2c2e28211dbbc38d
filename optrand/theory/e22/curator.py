"""Privacy of a curator's release ([E22], Theorems 1 and 6, Corollaries 1 and 2, Section 6)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import laplace

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import Floats
from optrand.baselines import ClusterRR, LabelRandomization, UniformRR
from optrand.baselines.cluster import cluster_distribution
from optrand.baselines.groups import Groups
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.e22.losses import Randomization, channel
from optrand.theory.e22.noise import TOLERANCE, Distribution, Histogram, as_often, histograms, noisy_law, renormalized
from optrand.theory.instances import RATIOS, Instance, prior, seeded
from optrand.theory.sums import largest_ratio, times, total

__all__ = ["Curator", "LabelsAlone", "drawn_as_printed"]

ONCE = Variant("The same with 1 / sigma for 2 / sigma.", noises=1)
LESS = Variant("The same with lambda = (K - 1) / (K - 1 + exp(epsilon)).", less=1)


class Curator(Instance, others="others of each label", low="tau in rows", noise="exp(1/sigma)", resampling="lambda"):
    """Algorithm 1 on one cluster, of which the first row has the label 0 or 1; ratios are fractions."""

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
        """The package's."""
        scale = 1 / math.log(self.noise)
        return ClusterRR(self.k, noise_scale=scale, threshold=self.threshold, resampling=self.resampling)

    def histogram(self, first: int) -> Histogram:
        """How many rows have each label."""
        return tuple(count + (y == first) for y, count in enumerate(self.others))

    def law(self, first: int) -> dict[tuple[Distribution, int], Fraction]:
        """Law of the noisy distribution, with noise in whole rows, and of the noisy label of the first row."""
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
        tau, tops = self.threshold, range(self.k)
        corners = [tuple(1 - (self.k - 1) * tau if y == top else tau for y in tops) for top in tops]
        cases = list(product(enumerate(corners), tops))
        laws = [
            {(q, out): self.corner_mass(y, top) * channel(out, y, q, self.resampling) for (top, q), out in cases}
            for y in (0, 1)
        ]
        return largest_ratio(laws)

    def corner_mass(self, first: int, top: int) -> Fraction:
        """Probability of the distribution in which only `top` is above the threshold."""
        counts = self.histogram(first)
        rest = sum(counts) - (self.k - 1) * self.low
        gaps = [rest - count if y == top else count - self.low for y, count in enumerate(counts)]
        return times(self.noise**-gap / 2 if gap >= 0 else 1 - self.noise**gap / 2 for gap in gaps)

    def spent(self, noises: int, threshold: Fraction) -> Fraction:
        """What so many times the noise and the noisy label cost, as a ratio."""
        return self.noise**noises * (1 + (1 - self.resampling) / (self.resampling * threshold))


def _curators(budget: Budget) -> Iterator[Curator]:
    """All clusters of up to five rows at a few noises, then larger ones, then random ones."""
    spent = [(Fraction(3, 2), Fraction(99, 100)), (Fraction(101, 100), Fraction(9, 10)), (Fraction(5), Fraction(1, 2))]
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4)):
        for others, low, each in product(histograms(k, size - 1), range(1, -(-size // k)), spent):
            yield Curator(others, low, *each)
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    yield Curator((0, 5, 6), 1, Fraction(11, 10), Fraction(1, 2))
    random = seeded(3)
    for _ in range(budget.pick(quick=10, full=400)):
        k, size = random.choice(((2, 8), (2, 12), (3, 6)))
        others = random.choice([*histograms(k, size - 1)])
        share = Fraction(random.randint(1, 999), 1_000)
        yield Curator(others, random.randint(1, (size - 1) // k), 1 + Fraction(random.randint(1, 300), 100), share)


@claim(
    "E22 Theorem 1",
    on=_curators,
    given="beta above 0, so that the modified loss tells the noisy distribution",
    sides=("largest ratio of probabilities", "exp of the stated epsilon"),
    corrected=Variant("A release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2),
    false=Variant("The same with 2 / sigma and 1 / K for tau.", noises=2, floored=False),
)
def noise_is_paid_once(curator: Curator, noises: int = 1, *, floored: bool = True) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau)); compared as ratios."""
    return at_most(curator.corners, curator.spent(noises, curator.threshold if floored else Fraction(1, curator.k)))


@claim(
    "E22 Theorem 1: as the package has it",
    kind="ours",
    on=_curators,
    given="the same",
    sides=("epsilon by the formula, or of what is released", "epsilon that the package states"),
    false=ONCE,
)
def package_states_it(curator: Curator, noises: int = 2) -> Comparison:
    """The package states an epsilon of 2 / sigma + log(1 + (1 - lambda) / (lambda tau)), and releases no more."""
    spent, stated = math.log(curator.spent(noises, curator.threshold)), curator.mechanism.epsilon
    released = at_most(math.log(curator.whole_rows), stated, tolerance=TOLERANCE)
    return worst(equal(spent, stated, tolerance=TOLERANCE), released)


def _released(budget: Budget) -> Iterator[Curator]:
    yield Curator((0, 4), 1, Fraction(3), Fraction(3, 4))
    yield Curator((0, 2, 1), 1, Fraction(2), Fraction(3, 4))
    yield from budget.pick(quick=(), full=(Curator((0, 5), 2, Fraction(3, 2), Fraction(3, 4)),))


@claim(
    "E22 Theorem 1: draws",
    kind="ours",
    on=_released,
    given="many equal clusters released after another one",
    sides=("distance of a frequency from its probability", "five standard errors"),
)
def drawn_as_printed(curator: Curator, counted: Curator | None = None) -> Comparison:
    """Distributions and first labels are released as often as Algorithm 1 says, up to five standard errors."""
    labels = [0, *(y for y, count in enumerate(curator.others) for _ in range(count))]
    rows = len(labels)
    groups = Groups.of_ids(np.repeat(np.arange(2_001), rows))
    release = curator.mechanism.release([0] * rows + labels * 2_000, groups, source=SeededEntropy(5))
    seen = Counter(zip(release.distributions[1:], release.labels[rows::rows].tolist(), strict=True))
    return as_often(seen, (counted or curator).law(0), key=lambda each: each[::-1])


@drawn_as_printed.false
def _(curator: Curator) -> Comparison:
    """The same of noise of half the scale."""
    return drawn_as_printed(curator, counted=replace(curator, noise=curator.noise**2))


class LabelsAlone(Instance, size="rows", epsilon="epsilon", threshold="tau"):
    """Two labels, continuous noise, and nothing released but noisy labels: `beta = 0` keeps the loss as it is.

    As in Corollary 2, `sigma = 1 / epsilon` and `lambda = 1 / (1 + (exp(epsilon) - 1) tau)`.
    """

    size: int
    epsilon: float
    threshold: float

    @property
    def mechanism(self) -> ClusterRR:
        """The package's."""
        share, scale = 1 / (1 + math.expm1(self.epsilon) * self.threshold), 1 / self.epsilon
        return ClusterRR(2, threshold=self.threshold, noise_scale=scale, resampling=share, bias_correction=0)

    def stated(self, noises: float) -> float:
        """What the package states, the printed noise taken so many times, as a share of epsilon."""
        printed, true = self.mechanism.printed_epsilon, self.mechanism.epsilon
        return (printed + (noises - 1) * (true - printed)) / self.epsilon

    @cached_property
    def spent(self) -> float:
        """At least what is spent, as a share of epsilon: two neighbours, and the release of zeros alone."""
        ratios = (self.zeros(ones, low=True) / self.zeros(ones + 1, low=False) for ones in range(self.size))
        return math.log(max(ratios)) / self.epsilon

    def zeros(self, ones: int, *, low: bool) -> float:
        """Bound, from below or above, of the probability that all noisy labels are 0."""
        share, n = float(self.mechanism.resampling), self.size
        q = self._shares[0 if low else 1]
        chances = (1 - share + share * q) ** (n - ones) * (share * q) ** ones
        return float(self._masses(n - ones) @ chances @ self._masses(ones))

    @cached_property
    def _edges(self) -> Floats:
        """Ends of the pieces of a clipped noisy share, 30 a row: the first piece and the last are points."""
        n, tau = self.size, self.threshold
        inner = np.linspace(tau, 1, round(n * (1 - tau) * 30) + 1)
        return np.concatenate((inner[:1], inner, inner[-1:]))

    @cached_property
    def _shares(self) -> list[Floats]:
        """The least and the largest final share of label 0: it grows with its clipped share, falls with the other."""
        low, high = self._edges[:-1], self._edges[1:]
        pairs = [np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1) for ends in ((low, high), (high, low))]
        return [renormalized(pair, self.threshold)[..., 0] for pair in pairs]

    def _masses(self, count: int) -> Floats:
        """How likely each piece is, for the label of so many rows."""
        below = laplace.cdf((self._edges[1:-1] * self.size - count) * self.epsilon)
        return np.diff(below, prepend=0.0, append=1.0)


def _labels_alone(budget: Budget) -> Iterator[LabelsAlone]:
    sizes = (2, 4, 6, 8, 12, *budget.pick(quick=(), full=(20, 30)))
    yield from (LabelsAlone(*case) for case in product(sizes, (0.01, 0.1, 1.0), (0.25, 0.1, 0.4)))
    yield LabelsAlone(30, 0.01, 0.4)


@claim(
    "E22 Theorem 1: noisy labels alone",
    on=_labels_alone,
    given="two labels, continuous noise, beta = 0; both summands alike",
    sides=("largest ratio of probabilities of the labels", "exp of the stated epsilon"),
    corrected=Variant("The same at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2),
    false=Variant("The same at 3 / (2 sigma) + log(1 + (1 - lambda) / (lambda tau)).", noises=3 / 2),
)
def labels_alone(labels: LabelsAlone, noises: float = 1) -> Comparison:
    """If only noisy labels are released, they are private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(labels.spent, labels.stated(noises))


@claim(
    "E22 Section 6: privacy",
    on=lambda budget: (replace(each, threshold=0.0) for each in _labels_alone(budget) if each.threshold == 0.25),
    given="two labels, continuous noise; compared as shares of epsilon",
    sides=("largest ratio of probabilities of the labels", "exp of the stated epsilon"),
    corrected=Variant("The same at 2 epsilon.", noises=2),
    false=Variant("The same at 3/2 epsilon.", noises=3 / 2),
)
def drawing_all_labels_costs_epsilon(labels: LabelsAlone, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(labels.spent, labels.stated(noises))


def _resamplings(budget: Budget) -> Iterator[Randomization]:
    random, half, third = seeded(5), Fraction(1, 2), Fraction(1, 3)
    yield from (Randomization(q, half) for q in ((half, half), (third, 2 * third)))
    yield Randomization((third, 2 * third), Fraction(1))
    for _ in range(budget.pick(quick=200, full=5_000)):
        shares = prior(random, random.randint(2, 6))
        threshold = Fraction(random.randint(1, 99), 100 * len(shares))
        yield Randomization(cluster_distribution(shares, threshold), Fraction(random.randint(1, 100), 100))


@claim(
    "E22 Theorem 1: resampling",
    kind="text",
    on=_resamplings,
    given="a public distribution with no share below tau, lambda for beta",
    sides=("largest ratio of probabilities of the labels", "bound"),
    false=Variant("The same with 1 / K for tau.", floored=False),
)
def labels_cost_their_rarest(each: Randomization, *, floored: bool = True) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    ratio, tau = largest_ratio(each.laws), min(each.distribution) if floored else Fraction(1, each.k)
    stated = LabelRandomization(each.distribution, each.beta).ratio
    return worst(at_most(ratio, 1 + (1 - each.beta) / (each.beta * tau)), none(ratio != stated))


class Shares(Instance, shares="noisy shares", threshold="tau"):
    """Noisy shares, a threshold and a bias correction."""

    shares: tuple[Fraction, ...]
    threshold: Fraction
    beta: Fraction


def _shares(budget: Budget) -> Iterator[Shares]:
    """Shares on a coarse grid with the thresholds 0 and 1/K, then random ones."""
    for k in (2, 3):
        for halves, part in product(product((-1, 0, 1, 2, 3), repeat=k), (0, 1, 2)):
            yield Shares(tuple(Fraction(x, 2) for x in halves), Fraction(part, 2 * k), Fraction(9, 10))
    random = seeded(6)
    for _ in range(budget.pick(quick=200, full=20_000)):
        k = random.randint(2, 8)
        shares = tuple(p + Fraction(random.randint(-1_000, 1_000), 1_000) for p in prior(random, k))
        yield Shares(shares, Fraction(random.randint(0, 100), 100 * k), Fraction(random.randint(0, 999), 1_000))


@claim(
    "E22 Theorem 6",
    on=_shares,
    given="at least two labels, tau from 0 to 1/K, beta below 1, any noise",
    sides=("tau, the largest share, or the sum of shares", "least share, or 1"),
)
def distributions_are_well_defined(given: Shares, q: Distribution | None = None) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau, and matrices that invert."""
    q = q or cluster_distribution(given.shares, given.threshold)
    strays = none(Randomization(q, given.beta).strays)
    return worst(at_most(given.threshold, min(q)), at_most(max(q), 1), equal(total(q), 1), strays)


@distributions_are_well_defined.false
def _(given: Shares) -> Comparison:
    """The same where clipped shares are divided by their sum, or shares are equal if all are 0."""
    clipped = [max(given.threshold, min(Fraction(1), share)) for share in given.shares]
    q = tuple(q / total(clipped) if any(clipped) else Fraction(1, len(clipped)) for q in clipped)
    return distributions_are_well_defined(given, q=q)


class Uniform(Instance, k="K", shares="noisy shares"):
    """Randomized response by Algorithm 1 with `tau = 1 / K`."""

    k: int
    ratio: Fraction
    shares: tuple[Fraction, ...]


def _uniforms(budget: Budget) -> Iterator[Uniform]:
    random = seeded(11)
    for k, ratio in product((2, 3, 10, *budget.pick(quick=(), full=(20, 30))), RATIOS):
        yield Uniform(k, ratio, prior(random, k))
        yield Uniform(k, ratio, tuple(Fraction(random.randint(-30, 30), 10) for _ in range(k)))


@claim(
    "E22 Corollary 1: privacy",
    on=_uniforms,
    given="tau = 1/K, any noise, epsilon above 0",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    false=LESS,
)
def uniform_response_spends_epsilon(uniform: Uniform, less: int = 0) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are drawn uniformly and cost epsilon; as ratios."""
    drawn = cluster_distribution(uniform.shares, Fraction(1, uniform.k))
    laws = Randomization(drawn, (uniform.k - less) / (uniform.k - 1 + uniform.ratio)).laws
    return worst(at_most(largest_ratio(laws), uniform.ratio), none(len(set(drawn)) - 1))


@claim(
    "E22 Corollary 1: as the package has it",
    kind="ours",
    on=_uniforms,
    given="the same",
    sides=("lambda of the package", "lambda as printed"),
    false=LESS,
)
def package_responds_uniformly(uniform: Uniform, less: int = 0) -> Comparison:
    """The package's uniform response is Algorithm 1 with equal shares and lambda = K / (K - 1 + exp(epsilon))."""
    known = UniformRR(uniform.k, math.log(uniform.ratio)).channel
    drawn = cluster_distribution(uniform.shares, Fraction(1, uniform.k))
    resampling = (uniform.k - less) / (uniform.k - 1 + uniform.ratio)
    return worst(equal(float(known.resampling), resampling, tolerance=TOLERANCE), none(known.distribution != drawn))


class Spent(Instance, others="others of each label", low="tau in rows"):
    """Corollary 2 on one cluster, of which the first row has the label 0 or 1: `tau` is phi, a whole number of rows."""

    others: Histogram
    low: int
    epsilon: float


def _spent(budget: Budget) -> Iterator[Spent]:
    for epsilon, (k, size) in product((0.5, 0.125), ((2, 3), (2, 4), (3, 4))):
        for others, low in product(histograms(k, size - 1), range(1, -(-size // k))):
            yield Spent(others, low, epsilon)
    large = ((0, 9, 2), 2), ((1, 5, 5), 3), ((3, 10, 6), 4), ((5, 13, 11), 6)
    yield from (Spent(others, low, 0.125) for others, low in large[: budget.pick(quick=1, full=4)])


@claim(
    "E22 Corollary 2: privacy",
    on=_spent,
    given="tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi)",
    sides=("largest ratio of probabilities", "exp of the stated epsilon"),
    false=Variant("The same with 2 epsilon: compared as ratios.", times_epsilon=2),
)
def release_spends_three_epsilon(spent: Spent, times_epsilon: int = 3) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    Compared as ratios; the noisy distribution counts as released.
    """
    tau = Fraction(spent.low, sum(spent.others) + 1)
    mechanism = ClusterRR.corollary2(len(spent.others), spent.epsilon, heterogeneity=tau)
    noise = privacy_ratio(float(1 / mechanism.noise_scale))
    curator = Curator(spent.others, spent.low, noise, mechanism.resampling)
    return at_most(max(curator.corners, curator.whole_rows), curator.noise**times_epsilon)
