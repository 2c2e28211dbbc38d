"""Excess risk on a curator's release ([E22], Lemma 7, Theorem 2, Corollaries 1 and 2).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Classes are tried whose deviations, complexities and excess risks can be summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import binom, kstwo

from optrand.baselines import LabelRandomization
from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal
from optrand.theory.e22.contests import CONSTANT, GAMMAS, TOLERANCE, Contest, contests, most_lost
from optrand.theory.e22.noise import Histogram, histograms, law_of_distributions
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["Functions", "NoisyChoice", "deviation", "longest_walk"]

ANY = "any class of hypotheses and population, gamma of at most 1/2"


class Thresholds(Instance, size="n"):
    """One number an example, all different, its label 0, and every threshold of numbers as a hypothesis."""

    size: int
    gamma: float


def _thresholds(budget: Budget) -> Iterator[Thresholds]:
    sizes = (1, 2, 5, 20, 100, 1_000, *budget.pick(quick=(), full=(10_000, 100_000)))
    return (Thresholds(size, gamma) for size in sizes for gamma in GAMMAS)


@claim("E22", "Lemma 7", on=_thresholds, given=ANY, quantifier=CONSTANT, false=Variant("Without the root.", power=1.0))
def thresholds_deviate_like_roots(thresholds: Thresholds, power: float = 0.5) -> Comparison:
    """With probability 1 - gamma, mean losses and risks differ by at most C K / (1 - beta) sqrt(dim log(1/gamma) / n).

    Tried without noise (K = 2, beta = lambda = 0) on thresholds of a number, at a dimension of 1, C = 1 and gamma of at
    most 1/2.
    """
    # Kolmogorov and Smirnov: what the largest difference exceeds with probability gamma.
    deviation = float(kstwo.ppf(1 - thresholds.gamma, thresholds.size))
    return at_most(deviation, 2 * math.pow(math.log(1 / thresholds.gamma) / thresholds.size, power))


def deviation(size: int, ones: float, gamma: float) -> float:
    """Least distance that the share of ones among so many coins keeps from its mean with probability 1 - gamma.

    Examples
    --------
    >>> deviation(1, 0.5, 0.1), deviation(2, 0.5, 0.6)
    (0.5, 0.0)
    """
    counts = np.arange(size + 1)
    distances = np.abs(counts / size - ones)
    order = np.argsort(distances, kind="stable")
    kept = np.cumsum(binom.pmf(counts, size, ones)[order]) >= (1 - gamma) * (1 - TOLERANCE)
    return float(distances[order][np.argmax(kept)])


class Scaled(Instance, size="n"):
    """The mean of fair coins times `b`: one function with `b`-bounded differences."""

    b: int
    size: int
    gamma: float

    @cached_property
    def deviation(self) -> float:
        """What it keeps to its mean with probability ``1 - gamma``."""
        return self.b * deviation(self.size, 0.5, self.gamma)

    @property
    def square(self) -> float:
        """`b**2 log(2/gamma) / n`."""
        return self.b**2 * math.log(2 / self.gamma) / self.size


def _scaled(budget: Budget) -> Iterator[Scaled]:
    cases = product((1, 2, 10, 100, *budget.pick(quick=(), full=(10_000,))), (1, 10, 100), GAMMAS)
    return (Scaled(b, n, gamma) for n, b, gamma in cases)


@claim("E22", "Lemma 7: equation 12", kind="text", on=_scaled, given="one function; gamma of at most 1/2")
def differences_count_by_their_root(scaled: Scaled) -> Comparison:
    """One function of b-bounded differences deviates by at most sqrt(b log(1/gamma) / n) (equation 12).

    Its Rademacher complexity is 0.
    """
    return at_most(scaled.deviation, math.sqrt(scaled.b * math.log(1 / scaled.gamma) / scaled.size))


@differences_count_by_their_root.corrected
def _(scaled: Scaled) -> Comparison:
    """One function of b-bounded differences deviates, either way, by at most b sqrt(log(2/gamma) / (2 n))."""
    return at_most(scaled.deviation, math.sqrt(scaled.square / 2), tolerance=TOLERANCE)


@differences_count_by_their_root.false
def _(scaled: Scaled) -> Comparison:
    """One function of b-bounded differences deviates, either way, by at most b sqrt(log(2/gamma) / (4 n))."""
    return at_most(scaled.deviation, math.sqrt(scaled.square / 4), tolerance=TOLERANCE)


class Functions(Instance, values="values of each function"):
    """A few functions on a sample, in whole numbers, and how much their absolute convex hull is scaled by."""

    values: tuple[tuple[int, ...], ...]
    b: int

    def complexity(self, values: Sequence[Sequence[int]]) -> Fraction:
        """Rademacher complexity: the mean over all signs of the largest mean of signed values."""
        n = len(values[0])
        signs = np.array(list(product((-1, 1), repeat=n)))
        return Fraction(int((signs @ np.array(values).T).max(axis=1).sum()), n * len(signs))

    @property
    def hull(self) -> list[tuple[int, ...]]:
        """Twice the combinations whose weights are halves of `b` and have absolute sums of at most `b`."""
        weights = (w for w in product(range(-2, 3), repeat=len(self.values)) if sum(map(abs, w)) <= 2)
        columns = list(zip(*self.values, strict=True))
        return [tuple(self.b * sum(map(int.__mul__, w, column)) for column in columns) for w in weights]

    @property
    def negated(self) -> list[tuple[int, ...]]:
        """The functions and their negatives."""
        return [*self.values, *(tuple(-v for v in row) for row in self.values)]


def _functions(budget: Budget) -> Iterator[Functions]:
    yield from (
        Functions(values, b) for values in (((1,),), ((1, 0),), ((1, 0), (0, 1)), ((1, -1), (-1, 1))) for b in (1, 2)
    )
    random = seeded(17)
    for _ in range(budget.pick(quick=60, full=1_000)):
        n, count = random.randint(1, 6), random.randint(1, 3)
        yield Functions(
            tuple(tuple(random.randint(0, 4) for _ in range(n)) for _ in range(count)), random.randint(1, 9)
        )


@claim("E22", "Equation 14", on=_functions, given="Rademacher complexity as in the book that is cited; given samples")
def hulls_are_as_complex(functions: Functions) -> Comparison:
    """The Rademacher complexity of the absolute convex hull of functions, scaled by b, is b times theirs.

    That book has no absolute values in it.
    """
    return equal(functions.complexity(functions.hull) / 2, functions.b * functions.complexity(functions.values))


@hulls_are_as_complex.corrected
def _(functions: Functions) -> Comparison:
    """The complexity of the hull is b times that of the functions and their negatives."""
    return equal(functions.complexity(functions.hull) / 2, functions.b * functions.complexity(functions.negated))


@hulls_are_as_complex.false
def _(functions: Functions) -> Comparison:
    """The complexity of the hull is 2 b times that of the functions and their negatives."""
    return equal(functions.complexity(functions.hull) / 2, 2 * functions.b * functions.complexity(functions.negated))


def longest_walk(steps: int) -> float:
    """Mean of the largest sum of the first fair signs, of so many, or of none: by reflection.

    Examples
    --------
    >>> longest_walk(1), longest_walk(2)
    (0.5, 0.75)
    """
    reached = np.arange(1, steps + 1)
    at_least, above = (binom.sf(np.ceil((steps + x) / 2) - 1, steps, 0.5) for x in (reached, reached + 1))
    return float((at_least + above).sum())


def _samples(budget: Budget) -> Iterator[Thresholds]:
    sizes = (1, 2, 3, 5, 10, 100, 1_000, *budget.pick(quick=(), full=(10_000, 100_000)))
    return (Thresholds(size, 0.5) for size in sizes)


@claim("E22", "Equation 15", on=_samples, given=ANY, quantifier=CONSTANT, false=Variant("Without the root.", power=1.0))
def complexity_falls_like_a_root(thresholds: Thresholds, power: float = 0.5) -> Comparison:
    """The Rademacher complexity of the losses is at most C sqrt(dim / n).

    Tried on thresholds of a number, of which every sample makes a walk with fair signs; at a dimension of 1 and C = 1.
    """
    return at_most(longest_walk(thresholds.size) / thresholds.size, thresholds.size**-power)


class Response(Instance, size="n", beta="beta = lambda"):
    """Two labels by uniform randomized response, whose inverse makes up the loss."""

    size: int
    beta: float
    gamma: float

    @cached_property
    def _channel(self) -> LabelRandomization:
        return LabelRandomization((Fraction(1, 2), Fraction(1, 2)), Fraction(self.beta))

    def _misled(self, ones: float) -> float:
        return float(binom.cdf(self.size // 2, self.size, self._channel.matrix[1] @ (1 - ones, ones)))

    @property
    def epsilon(self) -> float:
        """What the response costs: `beta = 2 / (1 + exp(epsilon))`."""
        return math.log(2 / self.beta - 1)

    def learned(self, factor: float) -> Comparison:
        """Compare the largest excess risk, over labels, with a factor of ``sqrt(log(1 / gamma) / n)``.

        Of "always 0" and "always 1" the modified loss prefers what most noisy labels say; ties count against it.
        """
        bound = factor * math.sqrt(math.log(1 / self.gamma) / self.size)
        return at_most(most_lost(self._misled, self.gamma), bound, tolerance=TOLERANCE)


def _responses(budget: Budget) -> Iterator[Response]:
    """Samples of one row and up, with more and more noise."""
    sizes = (1, 2, 5, 20, 100, 1_000, 10_000, *budget.pick(quick=(), full=(100_000,)))
    return (Response(*case) for case in product(sizes, (0.5, 0.9, 0.99), GAMMAS))


@claim("E22", "Theorem 2", on=_responses, given=ANY, quantifier=CONSTANT, false=Variant("Without 1 - beta.", power=0))
def responses_are_learned_from(response: Response, power: int = 1) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. With beta = lambda the second summand is 0. Tried with uniform randomized response of
    two labels, on two hypotheses, at a dimension of 1, C = 1 and gamma of at most 1/2.
    """
    return response.learned(2 / (1 - response.beta) ** power)


class NoisyChoice(
    Instance, ones="p", counts="labels", noisy="noisy labels", noise="exp(1/sigma)", beta="beta = lambda"
):
    """One example, two labels, "always 0" and "always 1": the modified loss that tells which to choose has noise.

    Label 1 has the probability `p`; so many rows have each label, and each noisy label. `tau` is 0, and so is phi. With
    `beta = lambda` mean modified losses are risks.
    """

    ones: Fraction
    counts: Histogram
    noisy: Histogram
    noise: Fraction
    beta: Fraction

    @property
    def risks(self) -> tuple[Fraction, Fraction]:
        """Of both hypotheses."""
        return self.ones, 1 - self.ones

    @cached_property
    def looks(self) -> list[tuple[Fraction, tuple[Fraction, Fraction]]]:
        """The mean modified losses of both hypotheses, and with what probability the noise makes them so."""
        zeros, ones = (Fraction(count, sum(self.noisy)) for count in self.noisy)
        laws = law_of_distributions(self.counts, Fraction(0), self.noise).items()
        kept = 1 - self.beta
        return [(mass, ((ones - self.beta * q[1]) / kept, (zeros - self.beta * q[0]) / kept)) for q, mass in laws]

    @cached_property
    def excess(self) -> Fraction:
        """The mean excess risk; of two that look alike, "always 0" is chosen."""
        return total(mass * self.risks[look[1] < look[0]] for mass, look in self.looks) - min(self.risks)

    @cached_property
    def deviations(self) -> Fraction:
        """The last two terms of (21), averaged over the noise: how the chosen and the best hypothesis deviate."""
        best = int(self.risks[1] < self.risks[0])
        chosen = ((mass, look, int(look[1] < look[0])) for mass, look in self.looks)
        return total(mass * (self.risks[h] - look[h] + look[best] - self.risks[best]) for mass, look, h in chosen)

    @cached_property
    def largest_of_means(self) -> Fraction:
        """The largest distance of a risk from the average, over the noise, of the mean modified loss."""
        means = [total(mass * look[h] for mass, look in self.looks) for h in (0, 1)]
        return max(abs(mean - risk) for mean, risk in zip(means, self.risks, strict=True))

    @cached_property
    def mean_of_largest(self) -> Fraction:
        """The average, over the noise, of the largest distance of a risk from the mean modified loss."""
        return total(mass * max(abs(look[h] - self.risks[h]) for h in (0, 1)) for mass, look in self.looks)

    @property
    def bias(self) -> float:
        """``8 K / (1 - beta) (phi + K tau + K sigma / s)``, without the factor ``|beta - lambda|``, which is 0."""
        return 32 / float(1 - self.beta) / math.log(self.noise) / sum(self.counts)


def _noisy_choices(budget: Budget) -> Iterator[NoisyChoice]:
    """All small tables, each with labels for which mean modified losses are risks on average, and with others."""
    rest = Fraction(0), Fraction(1, 2), Fraction(3, 4)
    for size, beta in product(range(3, budget.pick(quick=6, full=10)), (Fraction(1, 2), Fraction(9, 10))):
        for counts, noisy in product(histograms(2, size), repeat=2):
            choice = NoisyChoice(Fraction(0), counts, noisy, Fraction(2), beta)
            mean = total(mass * look[0] for mass, look in choice.looks)
            yield from (replace(choice, ones=ones) for ones in (mean, *rest) if 0 <= ones <= 1)


@claim(
    "E22",
    "Theorem 2: step to equation 22",
    kind="text",
    on=_noisy_choices,
    given="beta = lambda; means over noise in whole rows, given labels and noisy labels",
)
def means_are_bounded_by_means(choice: NoisyChoice) -> Comparison:
    """The last terms of (21) are on average at most twice the largest gap of a risk and average modified loss."""
    return at_most(choice.deviations, 2 * choice.largest_of_means)


@means_are_bounded_by_means.corrected
def _(choice: NoisyChoice) -> Comparison:
    """They are at most twice the average, over the noise, of the largest gap of a risk and modified loss."""
    return at_most(choice.deviations, 2 * choice.mean_of_largest)


@means_are_bounded_by_means.false
def _(choice: NoisyChoice) -> Comparison:
    """They are at most that average once."""
    return at_most(choice.deviations, choice.mean_of_largest)


@claim(
    "E22",
    "Equation 22",
    on=_noisy_choices,
    given="the same",
    false=Variant("The same with the factor |beta - lambda| = 0 of Theorem 2 before the first term.", biases=0),
)
def excess_is_bias_and_deviation(choice: NoisyChoice, biases: int = 1) -> Comparison:
    """Mean excess risk is at most 8 K / (1 - beta) (phi + K tau + K sigma/s) and twice that largest difference."""
    return at_most(choice.excess, biases * choice.bias + 2 * float(choice.largest_of_means))


def _low_budgets(budget: Budget) -> Iterator[Response]:
    return (response for response in _responses(budget) if response.epsilon < 1)


@claim(
    "E22",
    "Corollary 1",
    on=_low_budgets,
    given=ANY,
    quantifier=CONSTANT,
    false=Variant("With sqrt(epsilon).", power=0.5),
)
def responses_are_learned_from_at_epsilon(response: Response, power: float = 1.0) -> Comparison:
    """With probability 1 - gamma uniform response costs at most C K / epsilon sqrt(dim log(1/gamma) / n).

    Tried with two labels and epsilon below 1, on two hypotheses, at a dimension of 1, C = 2 and gamma of at most 1/2.
    """
    return response.learned(4 / math.pow(response.epsilon, power))


class Residual(Instance, contest="", threshold="tau", resampling="lambda"):
    """A contest on so many rows that neither samples nor the noise on clusters matter, but the threshold does."""

    contest: Contest
    threshold: Fraction
    beta: Fraction
    resampling: Fraction

    @cached_property
    def excess(self) -> Fraction:
        """What is lost by the mean modified loss: its weights are the inverse matrix times the law of noisy labels."""
        return self.contest.excess(tuple(map(self._seen, self.contest.labels, self.contest.shares)))

    def _seen(self, labels: tuple[Fraction, ...], shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        q = cluster_distribution(shares, self.threshold)
        kept, drawn = 1 - self.resampling, self.resampling - self.beta
        return tuple((kept * p + drawn * share) / (1 - self.beta) for p, share in zip(labels, q, strict=True))


def _residuals(budget: Budget) -> Iterator[Residual]:
    random = seeded(13)
    for contest in contests(budget.pick(quick=300, full=10_000), labels=4, seed=14):
        for part in (0, random.randint(1, 4)):
            beta, share = (Fraction(random.randint(0, 19), 20) for _ in range(2))
            yield Residual(contest, Fraction(part, 4 * contest.k), random.choice((Fraction(0), beta)), share)


def _residuals_at_a_budget(budget: Budget) -> Iterator[Residual]:
    random = seeded(15)
    for contest in contests(budget.pick(quick=300, full=10_000), labels=4, seed=16):
        tau = min(contest.heterogeneity, Fraction(1, contest.k))
        for ratio in (Fraction(11, 10), random.choice(RATIOS)):
            yield Residual(contest, tau, Fraction(0), 1 / (1 + (ratio - 1) * tau))


@claim(
    "E22",
    "Theorem 2: residual",
    kind="text",
    on=_residuals,
    given="two hypotheses, as many rows as one likes in every cluster",
    false=Variant("The same without phi, as if all examples of a cluster were of one kind.", kinds=0),
)
def bias_is_heterogeneity_and_threshold(residual: Residual, kinds: int = 1) -> Comparison:
    """With any number of rows, the excess risk is at most 8 K |beta - lambda| / (1 - beta) (phi + K tau).

    The constant is that of the proof; its equations 20 to 22 drop the factor abs(beta - lambda).
    """
    k, moved = residual.contest.k, abs(residual.beta - residual.resampling) / (1 - residual.beta)
    return at_most(residual.excess, 8 * k * moved * (kinds * residual.contest.heterogeneity + k * residual.threshold))


@claim(
    "E22",
    "Corollary 2",
    on=_residuals_at_a_budget,
    given="clusters of at least 1 / (epsilon phi) rows",
    quantifier=CONSTANT,
    false=Variant(
        "With so many rows the excess risk is at most phi / 2 / (1 + (exp(epsilon) - 1) phi).",
        lambda residual: _spread(residual, Fraction(1, 2)),
    ),
)
def clusters_cost_their_heterogeneity(residual: Residual) -> Comparison:
    """Excess risk is at most C (K sqrt(dim log(1/gamma) / n) + K**2 phi / (1 + (exp(epsilon) - 1) phi)).

    Tried with C = 16 and the least of phi and 1/K as the threshold, on so many rows that the first summand is 0.
    """
    return _spread(residual, Fraction(16 * residual.contest.k**2))


def _spread(residual: Residual, factor: Fraction) -> Comparison:
    return at_most(residual.excess, factor * residual.contest.heterogeneity * residual.resampling)
