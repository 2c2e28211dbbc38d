"""A prior estimated with noise, and labels released with it ([B23], Algorithms 3 and 4, Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.mechanism.mechanism import Mechanism
from optrand.release.job import LabelJob
from optrand.release.paid_prior import PaidPrior
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import EstimatedPrior, private_histogram, private_prior, split_budget
from optrand.theory.b23.optima import exact_law
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, none, worst
from optrand.theory.draws import drawn
from optrand.theory.instances import Instance
from optrand.theory.sums import largest_ratio, times

__all__ = ["Release", "prior_is_private", "release_is_private"]

Counts = tuple[int, ...]


def _noise(epsilon: float) -> Fraction:
    """The factor ``exp(-epsilon / 2)`` between neighbouring integers: noise of scale ``2 / epsilon``."""
    return 1 / exp_bracket(epsilon / 2)[0]


def _shift(x: int, q: Fraction) -> Fraction:
    """The probability of discrete Laplace noise."""
    return (1 - q) / (1 + q) * q ** abs(x)


def _clipped(seen: int, count: int, q: Fraction) -> Fraction:
    """The probability that a noisy count, clipped at 0, is what is seen."""
    return _shift(seen - count, q) if seen else q**count / (1 + q) if count else 1 / (1 + q)


def _prior_law(counts: Counts, q: Fraction) -> dict[Counts, Fraction]:
    """Law of clipped noisy histograms, as far as they are near the counts: farther out the ratios repeat."""
    near = product(range(sum(counts) + 2), repeat=len(counts))
    return {seen: times(_clipped(*pair, q) for pair in zip(seen, counts, strict=True)) for seen in near}


class Neighbours(Instance):
    """Counts, and those after one label has changed."""

    counts: Counts
    moved: Counts
    epsilon: float


def _neighbours(budget: Budget) -> Iterator[Neighbours]:
    for counts in (
        (1, 0),
        (2, 0),
        (1, 1),
        (0, 3),
        (1, 0, 0),
        (1, 2, 0),
        *budget.pick(quick=(), full=((3, 2, 1), (1, 1, 1, 0))),
    ):
        for source, target in product(range(len(counts)), repeat=2):
            if source != target and counts[source]:
                moved = tuple(c + (i == target) - (i == source) for i, c in enumerate(counts))
                yield from (Neighbours(counts, moved, epsilon) for epsilon in (1.0, 0.1))


def _alone(budget: Budget) -> Iterator[Neighbours]:
    for count, epsilon in product(budget.pick(quick=(2,), full=(0, 2, 9)), (2.0, 4.0, 1.0)):
        yield Neighbours((count,), (count + 1,), epsilon)


@claim(
    "B23",
    "Algorithm 4: noise",
    kind="ours",
    on=_alone,
    given="discrete noise of the package in place of the continuous one; all sequences of 12 random bits",
    false=Variant("The same with scale 1 / epsilon.", power=2),
)
def noise_has_scale_two(neighbours: Neighbours, power: int = 1) -> Comparison:
    """The package adds discrete Laplace noise of scale 2 / epsilon: each probability is as far decided as bits tell."""
    (count,), epsilon = neighbours.counts, neighbours.epsilon
    law, rest = drawn(lambda bits: private_histogram([count], epsilon, source=bits)[0], 12)
    chances = {x: _shift(x - count, _noise(epsilon) ** power) for x in law}
    return worst(*(worst(at_most(law[x], chances[x]), at_most(chances[x], law[x] + rest)) for x in law))


@claim(
    "B23",
    "Algorithm 4: privacy",
    on=_neighbours,
    given="two histograms that differ in one label; discrete noise, exact laws of clipped histograms",
    false=Variant("The same with noise of scale 1 / epsilon.", power=2),
)
def prior_is_private(neighbours: Neighbours, power: int = 1) -> Comparison:
    """Noise of scale 2 / epsilon makes the clipped histogram, and so the prior, epsilon-DP."""
    q = _noise(neighbours.epsilon) ** power
    laws = [_prior_law(counts, q) for counts in (neighbours.counts, neighbours.moved)]
    return at_most(largest_ratio(laws), exp_bracket(neighbours.epsilon)[1])


class Release(Instance, prior_epsilon="epsilon_1", epsilon="whole epsilon"):
    """Declared labels, a tiny table, the table after one label has changed, and the budget of the package's job."""

    labels: Counts
    table: Counts
    changed: Counts
    epsilon: float
    prior_epsilon: float

    @property
    def job(self) -> LabelJob:
        """The job."""
        return LabelJob(labels=np.array(self.labels, float), epsilon=self.epsilon, prior_epsilon=self.prior_epsilon)

    def law(self, table: Counts) -> dict[tuple[Counts, tuple[Fraction, ...]], Fraction]:
        """Of the clipped histogram and all noisy labels together."""
        counts = tuple(table.count(y) for y in self.labels)
        law = {}
        for seen, chance in _prior_law(counts, _noise(self.prior_epsilon)).items():
            outputs, rows = exact_law(_mechanism(self.labels, seen, len(table), self.epsilon, self.prior_epsilon))
            own = [zip(outputs, rows[self.labels.index(y)], strict=True) for y in table]
            for pairs in product(*own):
                law[seen, tuple(v for v, _ in pairs)] = chance * times(p for _, p in pairs)
        return law


@lru_cache(maxsize=1_000)
def _mechanism(labels: Counts, seen: Counts, rows: int, epsilon: float, prior_epsilon: float) -> Mechanism:
    """What the package's job makes of a noisy histogram: it never reads the labels again for that."""
    paid = PaidPrior(np.array(labels, float), EstimatedPrior(seen, prior_epsilon), epsilon, rows)
    job = LabelJob(labels=np.array(labels, float), epsilon=epsilon, prior_epsilon=prior_epsilon, paid_prior=paid)
    return job.run([labels[0]] * rows, source=SeededEntropy(0)).mechanism


def _releases(budget: Budget) -> Iterator[Release]:
    yield Release((0, 1), (0,), (1,), 1.0, 0.25)
    yield Release((0, 1), (0, 1), (1, 1), 1.0, 0.25)
    yield Release((0, 1, 3), (0,), (3,), 1.5, 0.5)
    if budget is Budget.FULL:
        yield Release((0, 1, 3), (1, 0), (1, 3), 2.0, 0.5)
        yield Release((0, 1), (0, 0, 1), (0, 1, 1), 0.5, 0.4)


@claim(
    "B23",
    "Algorithm 3: privacy",
    on=_releases,
    given="the package's job on tables of one to three labels; laws of noisy histogram and noisy labels together",
    false=Variant("They are (epsilon_1 / 2 + epsilon_2)-DP, as one count changes.", share=0.5),
)
def release_is_private(release: Release, share: float = 1.0) -> Comparison:
    """The prior and the noisy labels together are (epsilon_1 + epsilon_2)-DP.

    That is what the package's job states. The histogram that it buys is the private one of the same random bits, and
    its mechanism is that of this histogram.
    """
    bought: list[PaidPrior] = []
    made = release.job.run(release.table, source=SeededEntropy(3), keep=bought.append)
    counts = [release.table.count(y) for y in release.labels]
    seen = private_prior(counts, release.prior_epsilon, source=SeededEntropy(3)).counts
    again = _mechanism(release.labels, seen, len(release.table), release.epsilon, release.prior_epsilon)
    stated = made.summary.realised_epsilon
    laws = [release.law(table) for table in (release.table, release.changed)]
    return worst(
        none(int(bought[0].estimate.counts != seen)),
        none(int(made.mechanism != again)),
        at_most(stated, release.epsilon),
        at_most(largest_ratio(laws), exp_bracket(stated - (1 - share) * release.prior_epsilon)[1]),
    )


RUNS = 60
STANDARD_ERRORS = 5


class Estimated(Instance, epsilon="epsilon_1"):
    """Counts, and a budget for their prior."""

    counts: Counts
    epsilon: float
    runs: int = RUNS

    @cached_property
    def distances(self) -> tuple[float, float]:
        """The mean total variation over seeded runs, and its standard error."""
        true, source = np.array(self.counts) / sum(self.counts), SeededEntropy(7)
        made = [private_prior(self.counts, self.epsilon, source=source).probabilities for _ in range(self.runs)]
        found = np.abs(np.array(made) - true).sum(axis=1) / 2
        return float(found.mean()), float(found.std(ddof=1) / math.sqrt(self.runs))


def _estimated(budget: Budget) -> Iterator[Estimated]:
    for n in budget.pick(quick=(400, 10_000), full=(400, 2_000, 10_000, 100_000)):
        for k in budget.pick(quick=(2, 5), full=(2, 5, 20)):
            counts = tuple(n // 2 if i == 0 else n // (2 * (k - 1)) for i in range(k))
            yield from (Estimated(counts, round(math.sqrt(k / n) * 2**power, 4)) for power in range(-1, 4))


@claim(
    "B23",
    "Appendix C: error",
    on=_estimated,
    given="discrete noise in place of the continuous one",
    quantifier="the paper says small and names no distance: the one tried is ours",
    false=Variant("It is on average within k / (4 n epsilon_1).", factor=0.25),
)
def the_error_is_small(estimated: Estimated, factor: float = 2.0) -> Comparison:
    """The estimate is near: on average within 2 k / (n epsilon_1) in total variation, 2 sqrt(k / n) at sqrt(k / n)."""
    mean, error = estimated.distances
    bound = factor * len(estimated.counts) / (estimated.epsilon * sum(estimated.counts))
    return at_most(mean - STANDARD_ERRORS * error, bound)


class TwoLabels(Instance, root="epsilon_1", other="or", n="labels 0 and 1, n"):
    """Two labels, of which the optimal unbiased randomizer is the same for all priors; ``root = sqrt(2 / n)``."""

    n: int
    root: Fraction
    other: Fraction
    epsilon: Fraction

    def loss(self, first: Fraction) -> float:
        """Of debiased randomized response, the optimum, with the rest of the budget."""
        gain = math.expm1(float(self.epsilon - first))
        return (gain + 1) / gain**2 / 2

    def bound(self, first: Fraction) -> Fraction:
        """What bounds the loss, up to factors: what the labels lose, and the error of the prior, `k / (n e)`."""
        return first + self.root**2 / first


def _two_labels(budget: Budget) -> Iterator[TwoLabels]:
    for part, epsilon in product((10, 50, 250), (Fraction(1, 2), Fraction(1), Fraction(4))):
        root = Fraction(1, part)
        for i in budget.pick(quick=(2, 3), full=range(2, 40)):
            yield from (TwoLabels(2 * part**2, root, other, epsilon) for other in (root / i, root * i / (i - 1)))


@claim(
    "B23",
    "Appendix C: split",
    on=_two_labels,
    given="two labels; what is made small is a bound of the excess loss, up to factors",
    quantifier="the argument is quoted from another paper and leaves factors open: only its bound is tried",
)
def the_root_is_best_for_the_bound(two: TwoLabels) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does.

    The package spends that much, and no more than a twentieth of the whole.
    """
    spent = split_budget(float(two.epsilon), 2, two.n).prior
    least = min(float(two.root), float(two.epsilon) / 20)
    return worst(at_most(two.bound(two.root), two.bound(two.other)), at_most(abs(spent - least), 1e-15))


@the_root_is_best_for_the_bound.false
def _(two: TwoLabels) -> Comparison:
    """No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all."""
    return at_most(two.loss(two.root), two.loss(two.other))
