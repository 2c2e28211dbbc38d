"""Excess risk on a curator's release ([E22], Lemma 7, Theorem 2, Corollaries 1 and 2).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Classes are tried whose deviations, complexities and excess risks can be summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
from optrand.theory.e22.losses import Contest, contests
from optrand.theory.e22.noise import TOLERANCE, Histogram, histograms, noisy_law
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["CONSTANT", "GAMMAS", "Choice", "Functions", "longest_walk", "most_lost"]

ANY = "any class of hypotheses and population, gamma of at most 1/2"
CONSTANT = "an unnamed constant, over all classes of hypotheses and populations"
GAMMAS = (0.5, 0.05, 1e-4)


class Thresholds(Instance, size="n"):
    """One number an example, all different, its label 0, and every threshold of numbers as a hypothesis."""

    size: int
    gamma: float


def _thresholds(budget: Budget) -> Iterator[Thresholds]:
    sizes = (1, 2, 5, 20, 100, 1_000, *budget.pick(quick=(), full=(10_000, 100_000)))
    return (Thresholds(*case) for case in product(sizes, GAMMAS))


@claim(
    "E22 Lemma 7",
    on=_thresholds,
    given=ANY,
    sides=("deviation that has the chance gamma", "bound"),
    quantifier=CONSTANT,
    false=Variant("Without the root.", power=1.0),
)
def thresholds_deviate_like_roots(thresholds: Thresholds, power: float = 0.5) -> Comparison:
    """With probability 1 - gamma, mean losses and risks differ by at most C K / (1 - beta) sqrt(dim log(1/gamma) / n).

    Tried without noise, K = 2 and beta = lambda = 0, at a dimension of 1 and C = 1.
    """
    largest = float(kstwo.ppf(1 - thresholds.gamma, thresholds.size))
    return at_most(largest, 2 * math.pow(math.log(1 / thresholds.gamma) / thresholds.size, power))


class Scaled(Instance, size="n"):
    """The mean of fair coins times `b`: one function with `b`-bounded differences."""

    b: int
    size: int
    gamma: float


def _scaled(budget: Budget) -> Iterator[Scaled]:
    cases = product((1, 2, 10, 100, *budget.pick(quick=(), full=(10_000,))), (1, 10, 100), GAMMAS)
    return (Scaled(b, n, gamma) for n, b, gamma in cases)


@claim(
    "E22 Lemma 7: equation 12",
    kind="text",
    on=_scaled,
    given="one function; gamma of at most 1/2",
    sides=("deviation that has the chance gamma", "bound"),
    corrected=Variant(
        "One function of b-bounded differences deviates, either way, by at most b sqrt(log(2/gamma) / (2 n)).", parts=2
    ),
    false=Variant("The corrected form with 4 n for 2 n.", parts=4),
)
def differences_count_by_their_root(scaled: Scaled, parts: int = 0) -> Comparison:
    """One function of b-bounded differences deviates by at most sqrt(b log(1/gamma) / n) (equation 12)."""
    b, n = scaled.b, scaled.size
    square = b**2 * math.log(2 / scaled.gamma) / (parts * n) if parts else b * math.log(1 / scaled.gamma) / n
    share = binom.isf(scaled.gamma / 2 * (1 + TOLERANCE), n, 0.5) / n
    return at_most(b * (float(share) - 0.5), math.sqrt(square), tolerance=TOLERANCE)


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


def _functions(budget: Budget) -> Iterator[Functions]:
    few: tuple[tuple[tuple[int, ...], ...], ...] = ((1,),), ((1, 0),), ((1, 0), (0, 1)), ((1, -1), (-1, 1))
    yield from (Functions(*case) for case in product(few, (1, 2)))
    random = seeded(17)
    for _ in range(budget.pick(quick=60, full=1_000)):
        n, count = random.randint(1, 6), random.randint(1, 3)
        values = [[random.randint(0, 4) for _ in range(n)] for _ in range(count)]
        yield Functions(tuple(map(tuple, values)), random.randint(1, 9))


@claim(
    "E22 Equation 14",
    on=_functions,
    given="Rademacher complexity as in the book that is cited, without absolute values; given samples",
    sides=("Rademacher complexity of the convex hull", "scaled complexity of the functions"),
    corrected=Variant(
        "The complexity of the hull is b times that of the functions and their negatives.", signs=(1, -1)
    ),
    false=Variant("The corrected form with 2 b for b.", times=2, signs=(1, -1)),
)
def hulls_are_as_complex(functions: Functions, times: int = 1, signs: tuple[int, ...] = (1,)) -> Comparison:
    """The Rademacher complexity of the absolute convex hull of functions, scaled by b, is b times theirs."""
    values = [[sign * value for value in row] for row, sign in product(functions.values, signs)]
    return equal(functions.complexity(functions.hull) / 2, times * functions.b * functions.complexity(values))


def longest_walk(steps: int) -> float:
    """Mean of the largest sum of the first fair signs, of so many, or of none: by reflection."""
    reached = np.arange(1, steps + 1)
    at_least, above = (binom.sf(np.ceil((steps + x) / 2) - 1, steps, 0.5) for x in (reached, reached + 1))
    return float((at_least + above).sum())


@claim(
    "E22 Equation 15",
    on=_thresholds,
    given=ANY,
    sides=("Rademacher complexity of the losses", "bound"),
    quantifier=CONSTANT,
    false=Variant("Without the root.", power=1.0),
)
def complexity_falls_like_a_root(thresholds: Thresholds, power: float = 0.5) -> Comparison:
    """The Rademacher complexity of the losses is at most C sqrt(dim / n)."""
    return at_most(longest_walk(thresholds.size) / thresholds.size, thresholds.size**-power)


def most_lost(misled: Callable[[float], float], gamma: float) -> float:
    """Largest excess risk, over all probabilities of a label, that is met with probability `gamma` at least.

    "Always 0" costs `2 p - 1` more than "always 1" where labels are 1 with probability `p` above 1/2; `misled` says how
    likely "always 0" is chosen, and falls with `p`.
    """
    low, high = 0.5, 1.0
    if misled(high) >= gamma:
        return 1.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if misled(middle) >= gamma else (low, middle)
    return 2 * low - 1


class Response(Instance, size="n", beta="beta = lambda"):
    """Two labels by uniform randomized response, whose inverse makes up the loss, and two constant hypotheses."""

    size: int
    beta: float
    gamma: float

    @property
    def epsilon(self) -> float:
        """What the response costs: `beta = 2 / (1 + exp(epsilon))`."""
        return math.log(2 / self.beta - 1)

    def learned(self, factor: float) -> Comparison:
        """Compare the largest excess risk, as most noisy labels say, with a factor of ``sqrt(log(1/gamma) / n)``."""
        chances = LabelRandomization((Fraction(1, 2), Fraction(1, 2)), Fraction(self.beta)).matrix[1]
        lost = most_lost(lambda p: float(binom.cdf(self.size // 2, self.size, chances @ (1 - p, p))), self.gamma)
        return at_most(lost, factor * math.sqrt(math.log(1 / self.gamma) / self.size), tolerance=TOLERANCE)


def _responses(budget: Budget) -> Iterator[Response]:
    sizes = (1, 2, 5, 20, 100, 1_000, 10_000, *budget.pick(quick=(), full=(100_000,)))
    return (Response(*case) for case in product(sizes, (0.5, 0.9, 0.99), GAMMAS))


@claim(
    "E22 Theorem 2",
    on=_responses,
    given=ANY,
    sides=("excess risk that has the chance gamma", "bound"),
    quantifier=CONSTANT,
    false=Variant("Without 1 - beta.", power=0),
)
def responses_are_learned_from(response: Response, power: int = 1) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. Tried at beta = lambda, K = 2, a dimension of 1 and C = 1.
    """
    return response.learned(2 / (1 - response.beta) ** power)


class Choice(Instance, ones="p", counts="labels", noisy="noisy labels", noise="exp(1/sigma)", beta="beta = lambda"):
    """One example, with the label 1 of probability `p`, "always 0" and "always 1", and so many rows of each label.

    The modified loss that tells which to choose has noise; `tau` and phi are 0.
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
        laws = noisy_law(self.counts, Fraction(0), self.noise).items()
        kept = 1 - self.beta
        return [(mass, ((ones - self.beta * q[1]) / kept, (zeros - self.beta * q[0]) / kept)) for q, mass in laws]

    @cached_property
    def excess(self) -> Fraction:
        """The mean excess risk; of two that look alike, "always 0" is chosen."""
        return total(mass * self.risks[look[1] < look[0]] for mass, look in self.looks) - min(self.risks)

    @cached_property
    def largest_of_means(self) -> Fraction:
        """The largest distance of a risk from the average, over the noise, of the mean modified loss."""
        means = [total(mass * look[h] for mass, look in self.looks) for h in (0, 1)]
        return max(abs(mean - risk) for mean, risk in zip(means, self.risks, strict=True))


def _noisy_choices(budget: Budget) -> Iterator[Choice]:
    """All small tables, each with labels for which mean modified losses are risks on average, and with others."""
    rest = Fraction(0), Fraction(1, 2), Fraction(3, 4)
    for size, beta in product(range(3, budget.pick(quick=6, full=10)), (Fraction(1, 2), Fraction(9, 10))):
        for counts, noisy in product(histograms(2, size), repeat=2):
            choice = Choice(Fraction(0), counts, noisy, Fraction(2), beta)
            mean = total(mass * look[0] for mass, look in choice.looks)
            yield from (replace(choice, ones=ones) for ones in (mean, *rest) if 0 <= ones <= 1)


@claim(
    "E22 Theorem 2: step to equation 22",
    kind="text",
    on=_noisy_choices,
    given="beta = lambda; means over noise in whole rows, given labels and noisy labels",
    sides=("mean of the last terms of (21)", "bound"),
    corrected=Variant(
        "They are at most twice the average, over the noise, of the largest gap of a risk and modified loss.",
        of_means=0,
    ),
    false=Variant("They are at most that average once.", of_means=0, times=1),
)
def means_are_bounded_by_means(choice: Choice, of_means: int = 1, times: int = 2) -> Comparison:
    """The last terms of (21) are on average at most twice the largest gap of a risk and average modified loss."""
    risks, best = choice.risks, int(choice.risks[1] < choice.risks[0])
    chosen = [(mass, look, int(look[1] < look[0])) for mass, look in choice.looks]
    deviations = total(mass * (risks[h] - look[h] + look[best] - risks[best]) for mass, look, h in chosen)
    gaps = total(mass * max(abs(look[h] - risks[h]) for h in (0, 1)) for mass, look in choice.looks)
    return at_most(deviations, times * (choice.largest_of_means if of_means else gaps))


@claim(
    "E22 Equation 22",
    on=_noisy_choices,
    given="the same",
    sides=("mean excess risk", "bound"),
    false=Variant("Without the first term.", biases=0),
)
def excess_is_bias_and_deviation(choice: Choice, biases: int = 1) -> Comparison:
    """Mean excess risk is at most 8 K / (1 - beta) (phi + K tau + K sigma/s) and twice that largest difference."""
    bias = 32 / float(1 - choice.beta) / math.log(choice.noise) / sum(choice.counts)
    return at_most(choice.excess, biases * bias + 2 * float(choice.largest_of_means))


@claim(
    "E22 Corollary 1",
    on=lambda budget: (each for each in _responses(budget) if each.epsilon < 1),
    given=ANY,
    sides=("excess risk that has the chance gamma", "bound"),
    quantifier=CONSTANT,
    false=Variant("With sqrt(epsilon).", power=0.5),
)
def responses_are_learned_from_at_epsilon(response: Response, power: float = 1.0) -> Comparison:
    """With probability 1 - gamma uniform response costs at most C K / epsilon sqrt(dim log(1/gamma) / n)."""
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
        kept, drawn = ((1 - self.resampling) / (1 - self.beta), (self.resampling - self.beta) / (1 - self.beta))
        found = []
        for labels, shares in zip(self.contest.labels, self.contest.shares, strict=True):
            noisy = cluster_distribution(shares, self.threshold)
            found.append(tuple(kept * p + drawn * q for p, q in zip(labels, noisy, strict=True)))
        return self.contest.excess(tuple(found))


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
    "E22 Theorem 2: residual",
    kind="text",
    on=_residuals,
    given="two hypotheses, as many rows as one likes in every cluster",
    sides=("excess risk with any number of rows", "bound"),
    false=Variant("The same without phi, as if all examples of a cluster were of one kind.", kinds=0),
)
def bias_is_heterogeneity_and_threshold(residual: Residual, kinds: int = 1) -> Comparison:
    """With any number of rows, the excess risk is at most 8 K |beta - lambda| / (1 - beta) (phi + K tau)."""
    k, moved = residual.contest.k, abs(residual.beta - residual.resampling) / (1 - residual.beta)
    return at_most(residual.excess, 8 * k * moved * (kinds * residual.contest.heterogeneity + k * residual.threshold))


@claim(
    "E22 Corollary 2",
    on=_residuals_at_a_budget,
    given="clusters of at least 1 / (epsilon phi) rows",
    sides=("excess risk with any number of rows", "bound"),
    quantifier=CONSTANT,
    false=Variant("With so many rows the excess risk is at most phi / 2 / (1 + (exp(epsilon) - 1) phi).", half=True),
)
def clusters_cost_their_heterogeneity(residual: Residual, *, half: bool = False) -> Comparison:
    """Excess risk is at most C (K sqrt(dim log(1/gamma) / n) + K**2 phi / (1 + (exp(epsilon) - 1) phi))."""
    factor = Fraction(1, 2) if half else 16 * residual.contest.k**2
    return at_most(residual.excess, factor * residual.contest.heterogeneity * residual.resampling)
