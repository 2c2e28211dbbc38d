"""Labels rounded without bias ([B23], Section 3.1), and released with a noisy prior (Algorithms 3, 4, Appendix C)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise, permutations, product

import numpy as np

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.mechanism.mechanism import Mechanism
from optrand.release.plan import Plan, draw_histograms
from optrand.release.question import Question
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import private_histogram, private_prior, split_budget
from optrand.sampling.rounding import unbiased_rounding
from optrand.theory.b23.optima import dot, exact_law
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.draws import agrees, drawn
from optrand.theory.instances import Instance
from optrand.theory.sums import largest_ratio, pushed, times, total

__all__ = ["Release", "Rounded", "prior_is_private", "release_is_private", "rounding_is_unbiased", "variance_shrinks"]

LENGTH = 48
"""Labels lie between 0 and this, knots at whole numbers."""

BITS = 24

WIDTH = 4
"""Of a word: of longer ones than a bit most decide by floats, as those of 64 bits do."""


class Rounded(Instance, knots="even gaps from 0 to 48"):
    """A label, and into how many gaps its interval is divided."""

    value: Fraction
    knots: int

    def law(self, gaps: int) -> dict[float, Fraction]:
        """What the package rounds it to, over all random bits; what many bits do not decide goes to the lower knot."""
        knots = [LENGTH * i / gaps for i in range(gaps + 1)]
        law, rest = drawn(
            lambda bits: float(unbiased_rounding(float(self.value), knots, source=bits)), BITS, width=WIDTH
        )
        law[min(law)] += rest
        return law

    def variance(self, gaps: int) -> Fraction:
        """Of the rounded label."""
        return total(chance * (Fraction(knot) - self.value) ** 2 for knot, chance in self.law(gaps).items())


def _rounded(budget: Budget) -> Iterator[Rounded]:
    values = [Fraction(n, 2) for n in range(0, 97, budget.pick(quick=15, full=1))]
    yield from (Rounded(value, knots) for knots in (1, 2, 3, 4, 6, 12, 24) for value in (Fraction(24), *values))


@claim(
    "B23 Section 3.1: rounding",
    on=_rounded,
    given="labels of an interval, even knots; all random bits of the package's rounding",
    sides=("mean of the rounded label, its knots, or its move", "label, 2, or the mesh"),
    false=Variant("The same with the two probabilities exchanged.", exchanged=True),
)
def rounding_is_unbiased(rounded: Rounded, exchanged: bool = False) -> Comparison:
    """A label is rounded to one of its two neighbours, right on average; it moves by the mesh at most."""
    law, y = rounded.law(rounded.knots), rounded.value
    mean = dot(list(map(Fraction, law)), list(law.values())[:: -1 if exchanged else 1])
    near = equal(float(mean), float(y), tolerance=1e-6, scale=LENGTH)
    far = max(abs(Fraction(knot) - y) for knot in law)
    return worst(near, at_most(len(law), 2), at_most(far, Fraction(LENGTH, rounded.knots)))


@claim(
    "B23 Section 3.1: variance of rounding",
    on=_rounded,
    given="even knots; all bits of the package's rounding",
    sides=("variance with the finer knots", "variance with the coarser knots, or bound"),
)
def variance_shrinks(rounded: Rounded) -> Comparison:
    """As the gap between knots decreases, the variance that rounding adds to a label does not grow: one gap more."""
    return _no_larger(rounded.variance(rounded.knots + 1), rounded.variance(rounded.knots))


@variance_shrinks.corrected
def _(rounded: Rounded) -> Comparison:
    """It does not grow as knots are added to others, and is at most a quarter of the squared gap."""
    finer = rounded.variance(2 * rounded.knots)
    bounds = (rounded.variance(rounded.knots), Fraction(LENGTH, 2 * rounded.knots) ** 2 / 4)
    return worst(*(_no_larger(finer, bound) for bound in bounds))


@variance_shrinks.false
def _(rounded: Rounded) -> Comparison:
    """Of each label it becomes a quarter as the gap is halved."""
    return _no_larger(rounded.variance(2 * rounded.knots), rounded.variance(rounded.knots) / 4)


def _no_larger(left: Fraction, right: Fraction) -> Comparison:
    """Up to what is left undecided by the bits."""
    return at_most(float(left), float(right) + LENGTH**2 / 2**BITS)


class Composed(Instance, knots="knots at", weights="of weights"):
    """Knots, the optimal unbiased randomizer of the package for their weights, and labels between them."""

    knots: tuple[int, ...]
    weights: tuple[int, ...]
    epsilon: float

    @cached_property
    def mechanism(self) -> optrand.studies.ContinuousMechanism:
        """Rounding, then the randomizer."""
        prior = [weight / sum(self.weights) for weight in self.weights]
        problem = optrand.unbiased_regression(self.knots, prior, self.epsilon)
        return optrand.studies.ContinuousMechanism(optrand.solve(problem))

    def law(self, value: float, *, nearest: bool = False) -> dict[Fraction, Fraction]:
        """Of what is released for a label: the bits of the rounding, times the rows of the table."""
        knots = np.array(self.knots, dtype=float)
        rounding = {float(knots[np.abs(knots - value).argmin()]): Fraction(1)}
        if not nearest:
            rounding, _ = drawn(lambda bits: float(unbiased_rounding(value, knots, source=bits)), BITS, width=WIDTH)
        outputs, rows = exact_law(self.mechanism.mechanism)
        pairs = ((knots.tolist().index(knot), share) for knot, share in rounding.items())
        return pushed(((v, share * p) for i, share in pairs for v, p in zip(outputs, rows[i], strict=True)), Fraction)


def _composed(budget: Budget) -> Iterator[Composed]:
    more = budget.pick(quick=(), full=(((0, 2, 3, 9), (1,) * 4),))
    for (knots, weights), epsilon in product((((0, 8), (1, 1)), ((0, 1, 3), (3, 1, 2)), *more), (1.0, 0.25, 3.0)):
        yield Composed(knots, weights, epsilon)


@claim(
    "B23 Section 3.1: continuous labels",
    on=_composed,
    given="optimal unbiased randomizers of the package for the knots, labels at eighths of each gap",
    sides=("mean noisy label, a ratio, or a probability", "label, exp(epsilon), or the probability drawn"),
    false=Variant("The same with labels rounded to the nearest knot.", nearest=True),
)
def rounding_keeps_the_mean(composed: Composed, nearest: bool = False) -> Comparison:
    """`E[M(URR(y))] = y` for every label between the knots, and the two together are epsilon-DP.

    The package's sampler of both draws that law, as far as eight random bits tell.
    """
    values = (a + (b - a) * i / 8 for a, b in pairwise(composed.knots) for i in (0, 1, 4, 7))
    laws = {value: composed.law(value, nearest=nearest) for value in values}
    means = (float(total(v * p for v, p in law.items())) for law in laws.values())
    private = at_most(largest_ratio(list(laws.values())), exp_bracket(composed.epsilon)[0])
    value, law = list(laws.items())[1]
    sample = partial(composed.mechanism.sample, value)
    drawn_so = agrees(lambda bits: Fraction(float(sample(source=bits))), lambda v: law.get(v, Fraction(0)), 8)
    right = (equal(mean, y, tolerance=1e-12, scale=1) for mean, y in zip(means, laws, strict=True))
    return worst(*right, private, drawn_so)


Counts = tuple[int, ...]


def _noise(epsilon: float) -> Fraction:
    """The factor ``exp(-epsilon / 2)`` between neighbouring integers: noise of scale ``2 / epsilon``."""
    return 1 / exp_bracket(epsilon / 2)[0]


def _prior_law(counts: Counts, q: Fraction) -> dict[Counts, Fraction]:
    """Law of clipped noisy histograms, as far as they are near the counts: farther out the ratios repeat."""
    near = range(sum(counts) + 2)
    laws = [[(1 - q) / (1 + q) * q ** abs(x - count) if x else q**count / (1 + q) for x in near] for count in counts]
    return {seen: times(law[x] for law, x in zip(laws, seen, strict=True)) for seen in product(near, repeat=len(laws))}


class Neighbours(Instance):
    """Counts, and those after one label has changed."""

    counts: Counts
    moved: Counts
    epsilon: float


def _neighbours(budget: Budget) -> Iterator[Neighbours]:
    more = budget.pick(quick=(), full=((3, 2, 1), (1, 1, 1, 0)))  # type: tuple[Counts, ...]
    for counts in ((1, 0), (2, 0), (1, 1), (0, 3), (1, 0, 0), (1, 2, 0), *more):
        for source, target in permutations(range(len(counts)), 2):
            if counts[source]:
                moved = tuple(c + (i == target) - (i == source) for i, c in enumerate(counts))
                yield from (Neighbours(counts, moved, epsilon) for epsilon in (1.0, 0.1))


@claim(
    "B23 Algorithm 4: noise",
    kind="ours",
    on=lambda budget: (
        Neighbours((n,), (n + 1,), e) for n, e in product(budget.pick(quick=(2,), full=(0, 2, 9)), (2.0, 4.0, 1.0))
    ),
    given="discrete noise of the package in place of the continuous one; all sequences of 12 random bits",
    sides=("probability, or its least value by the bits drawn", "its largest value by the bits drawn, or probability"),
    false=Variant("The same with scale 1 / epsilon.", power=2),
)
def noise_has_scale_two(neighbours: Neighbours, power: int = 1) -> Comparison:
    """The package adds discrete Laplace noise of scale 2 / epsilon: each probability is as far decided as bits tell."""
    (count,), q = neighbours.counts, _noise(neighbours.epsilon) ** power
    draw = partial(private_histogram, [count], neighbours.epsilon)
    return agrees(lambda bits: draw(source=bits)[0], lambda x: (1 - q) / (1 + q) * q ** abs(x - count), 12)


@claim(
    "B23 Algorithm 4: privacy",
    on=_neighbours,
    given="two histograms that differ in one label; discrete noise, exact laws of clipped histograms",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
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

    def law(self, table: Counts) -> dict[tuple[Counts, tuple[Fraction, ...]], Fraction]:
        """Of the clipped histogram and all noisy labels together."""
        counts = tuple(table.count(y) for y in self.labels)
        law = {}
        for seen, chance in _prior_law(counts, _noise(self.prior_epsilon)).items():
            outputs, rows = exact_law(_mechanism(self, seen))
            for places in product(range(len(outputs)), repeat=len(table)):
                chances = (rows[self.labels.index(y)][i] for y, i in zip(table, places, strict=True))
                law[seen, tuple(outputs[i] for i in places)] = chance * times(chances)
        return law


@lru_cache(maxsize=1_000)
def _mechanism(release: Release, seen: Counts) -> Mechanism:
    """What the package makes of a noisy histogram: it never reads the labels again for that."""
    return Plan.make(_question(release), np.array([len(release.table)]), np.array([seen])).mechanisms[0]


def _question(release: Release) -> Question:
    return Question(labels=np.array(release.labels, float), epsilon=release.epsilon, prior=release.prior_epsilon)


def _releases(budget: Budget) -> Iterator[Release]:
    yield Release((0, 1), (0,), (1,), 1.0, 0.25)
    yield Release((0, 1), (0, 1), (1, 1), 1.0, 0.25)
    yield Release((0, 1, 3), (0,), (3,), 1.5, 0.5)
    if budget is Budget.FULL:
        yield Release((0, 1, 3), (1, 0), (1, 3), 2.0, 0.5)
        yield Release((0, 1), (0, 0, 1), (0, 1, 1), 0.5, 0.4)


@claim(
    "B23 Algorithm 3: privacy",
    on=_releases,
    given="the package's job on tables of one to three labels; laws of noisy histogram and noisy labels together",
    sides=("largest ratio of probabilities, or the epsilon stated", "exp(epsilon), or the epsilon asked"),
    false=Variant("They are (epsilon_1 / 2 + epsilon_2)-DP, as one count changes.", share=0.5),
)
def release_is_private(release: Release, share: float = 1.0) -> Comparison:
    """The prior and the noisy labels together are (epsilon_1 + epsilon_2)-DP.

    That is what the package's job states. The histogram that it buys is the private one of the same random bits, and
    its mechanism is that of this histogram.
    """
    question = _question(release)
    counts = [release.table.count(y) for y in release.labels]
    noisy = draw_histograms(question, np.array([counts]), SeededEntropy(3))
    made = Plan.make(question, np.array([len(release.table)]), noisy)
    seen = private_prior(counts, release.prior_epsilon, source=SeededEntropy(3)).counts
    bought = None if noisy is None else tuple(np.maximum(noisy[0], 0).tolist())
    stated = made.realised_epsilon
    laws = [release.law(table) for table in (release.table, release.changed)]
    return worst(
        none(int(bought != seen)),
        none(int(made.mechanisms[0] != _mechanism(release, seen))),
        at_most(stated, release.epsilon),
        at_most(largest_ratio(laws), exp_bracket(stated - (1 - share) * release.prior_epsilon)[1]),
    )


class Estimated(Instance, epsilon="epsilon_1"):
    """Counts, and a budget for their prior."""

    counts: Counts
    epsilon: float
    runs: int = 60


def _estimated(budget: Budget) -> Iterator[Estimated]:
    sizes = budget.pick(quick=(400, 10_000), full=(400, 2_000, 10_000, 100_000))
    for n, k, power in product(sizes, budget.pick(quick=(2, 5), full=(2, 5, 20)), range(-1, 4)):
        counts = (n // 2, *[n // (2 * (k - 1))] * (k - 1))
        yield Estimated(counts, round(math.sqrt(k / n) * 2**power, 4))


@claim(
    "B23 Appendix C: error",
    on=_estimated,
    given="discrete noise in place of the continuous one",
    sides=("mean error in total variation, less five errors", "bound"),
    quantifier="the paper says small and names no distance: the one tried is ours",
    false=Variant("It is on average within k / (4 n epsilon_1).", factor=0.25),
)
def the_error_is_small(estimated: Estimated, factor: float = 2.0) -> Comparison:
    """The estimate is near: on average within 2 k / (n epsilon_1) in total variation, 2 sqrt(k / n) at sqrt(k / n)."""
    counts, source, runs = np.array(estimated.counts), SeededEntropy(7), range(estimated.runs)
    made = [private_prior(estimated.counts, estimated.epsilon, source=source).probabilities for _ in runs]
    found = np.abs(np.array(made) - counts / counts.sum()).sum(axis=1) / 2
    bound = factor * len(counts) / (estimated.epsilon * sum(estimated.counts))
    return at_most(float(found.mean()) - 5 * float(found.std(ddof=1) / math.sqrt(estimated.runs)), bound)


class TwoLabels(Instance, root="epsilon_1", other="or", n="labels 0 and 1, n"):
    """Two labels, of which the optimal unbiased randomizer is the same for all priors; ``root = sqrt(2 / n)``."""

    n: int
    root: Fraction
    other: Fraction
    epsilon: Fraction


def _two_labels(budget: Budget) -> Iterator[TwoLabels]:
    parts, epsilons = budget.pick(quick=(2, 3), full=range(2, 40)), (Fraction(1, 2), Fraction(1), Fraction(4))
    for part, epsilon, i in product((10, 50, 250), epsilons, parts):
        root = Fraction(1, part)
        yield from (TwoLabels(2 * part**2, root, other, epsilon) for other in (root / i, root * i / (i - 1)))


@claim(
    "B23 Appendix C: split",
    on=_two_labels,
    given="two labels; what is made small is a bound of the excess loss, up to factors",
    sides=("bound at the chosen budget", "bound at another budget"),
    quantifier="the argument is quoted from another paper and leaves factors open: only its bound is tried",
)
def the_root_is_best_for_the_bound(two: TwoLabels) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does.

    The package spends that much, and no more than a twentieth of the whole.
    """
    spent = split_budget(float(two.epsilon), 2, two.n).prior
    least = min(float(two.root), float(two.epsilon) / 20)
    bounds = (first + two.root**2 / first for first in (two.root, two.other))
    return worst(at_most(*bounds), at_most(abs(spent - least), 1e-15))


@the_root_is_best_for_the_bound.false
def _(two: TwoLabels) -> Comparison:
    """No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all."""
    gains = (math.expm1(float(two.epsilon - first)) for first in (two.root, two.other))
    return at_most(*((gain + 1) / gain**2 / 2 for gain in gains))
