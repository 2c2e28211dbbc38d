"""Priors that are learned in stages or from groups, and tempered ([G21], Observation 4, Algorithm 4, Appendix E).

A data set small enough for all its label vectors, and all that training can release, to be written down: the noisy
labels and the models of every stage. Training itself is anything at all; here a model is the prior that it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import accumulate, chain, combinations, cycle, product, starmap
from operator import ne
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket
from optrand.base.validation import Floats
from optrand.baselines import ClusterPriors
from optrand.baselines.groups import Groups
from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import EstimatedPrior
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import Rows, table
from optrand.theory.instances import Instance, prior, seeded
from optrand.theory.sums import largest_ratio, times, total

__all__ = ["Tempered", "Training"]

Prior = tuple[Fraction, ...]

Integers = NDArray[np.int64]

Released = tuple[tuple[int, int], ...]
"""Rows of the data set and their noisy labels, in order; a coin of training is row -1."""


def counting(released: Released, row: int, k: int) -> Prior:
    """A model that has counted the noisy labels of even or of odd rows, like this one, starting from one of each."""
    counts = [1] * k
    for at, label in released:
        counts[label] += at >= 0 and at % 2 == row % 2
    return tuple(Fraction(count, sum(counts)) for count in counts)


def arbitrary(released: Released, row: int, k: int) -> Prior:
    """A model that is any function of what was released."""
    return prior(seeded(crc32(repr((released, row)).encode())), k)


@lru_cache(maxsize=4096)
def _respond(predicted: Prior, epsilon: float) -> Rows:
    return table(rr_with_prior([float(share) for share in predicted], epsilon))


class Training(Instance, k="K", epsilon="eps", stages="rows of each stage"):
    """Training in stages on a small data set, with or without a coin after each stage that the next one knows."""

    k: int
    epsilon: float
    stages: tuple[tuple[int, ...], ...]
    model: Callable[[Released, int, int], Prior] = counting
    coins: bool = False

    def law(self, labels: tuple[int, ...]) -> dict[Released, Fraction]:
        """The probability of all that can be released of rows with these labels, by the package's tables."""
        chances: dict[Released, Fraction] = {(): Fraction(1)}
        for number, stage in enumerate(self.stages):
            after: dict[Released, Fraction] = {}
            for seen, chance in chances.items():
                priors = [self.model(seen, row, self.k) if number else (Fraction(1, self.k),) * self.k for row in stage]
                rows = [_respond(each, self.epsilon)[labels[row]] for each, row in zip(priors, stage, strict=True)]
                for noisy in product(range(self.k), repeat=len(stage)):
                    if here := chance * times(row[label] for row, label in zip(rows, noisy, strict=True)):
                        after[(*seen, *zip(stage, noisy, strict=True))] = here
            coins = ((-1, 0),), ((-1, 1),)
            chances = {(*s, *coin): p / 2 for s, p in after.items() for coin in coins} if self.coins else after
        return chances

    @property
    def largest_ratio(self) -> Fraction | float:
        """Largest ratio of two probabilities of one release, on data sets that differ in one label."""
        rows = range(1 + max(chain(*self.stages)))
        laws = {labels: self.law(labels) for labels in product(range(self.k), repeat=len(rows))}
        return max(
            largest_ratio([laws[(*labels[:row], y, *labels[row + 1 :])] for y in range(self.k)])
            for labels, row in product(laws, rows)
            if not labels[row]
        )


SPLITS = (((0,),), ((0,), (1,)), ((0, 1),), ((), (0, 1)), ((1,), (0, 2)), ((0,), (1,), (2,)))
EPSILONS = (math.log(2), 0.1, 0.3, 1.0, 2.3, 1e-6, 8.0, 40.0)


def _trainings(budget: Budget) -> Iterator[Training]:
    for stages, epsilon, model in product(SPLITS, EPSILONS, (counting, arbitrary)):
        yield Training(2, epsilon, stages, model)
    for epsilon in EPSILONS[:2]:
        yield Training(2, epsilon, ((0,), (1,), (2,)), arbitrary, coins=True)
        yield Training(3, epsilon, ((0,), (1,)), arbitrary)
    if budget is Budget.FULL:
        for epsilon, model in product(EPSILONS, (counting, arbitrary)):
            yield Training(3, epsilon, ((0, 1), (2,)), model)
            yield Training(4, epsilon, ((0,), (1,)), model, coins=True)
            yield Training(2, epsilon, ((0,), (1, 2), (3,)), model, coins=True)


OWN = Variant("The same with a draw for each count; a label that is replaced changes two counts.", own=1)
WHOLE = Variant("The same with a draw for each count, of all of epsilon, as if one count changed.", own=2)
HALVES = Variant("The same with noise for all of epsilon.", halves=2)
AGAIN = Variant("The same where the last stage asks for the label of row 0 again.", again=(0,))
UNSEEN = "stages chosen without a look at labels, any training algorithm"


@claim(
    "G21 Observation 4",
    on=_trainings,
    given=UNSEEN,
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    false=AGAIN,
)
def stages_cost_epsilon_once(training: Training, *, again: tuple[int, ...] = ()) -> Comparison:
    """Training in stages of disjoint rows, with priors that the stage before predicts, is epsilon-LabelDP."""
    last = tuple(dict.fromkeys((*training.stages[-1], *again)))
    asked = replace(training, stages=(*training.stages[:-1], last))
    return at_most(asked.largest_ratio, exp_bracket(training.epsilon)[0])


class Grouped(Instance, k="K", root="exp(epsilon / 2)", ids="group of each row"):
    """Rows in public groups, whose histograms get noise that is `root` times less likely with each step from 0."""

    k: int
    root: Fraction
    ids: tuple[int, ...]

    @cached_property
    def differences(self) -> Integers:
        """Histograms of all groups, less those of the data set with another label for one row."""
        histograms, several = Groups.of_ids(self.ids).histograms, product(range(self.k), repeat=len(self.ids))
        pairs = (pair for pair in product(several, repeat=2) if sum(map(ne, *pair)) == 1)
        return np.array([histograms(np.array(a), self.k) - histograms(np.array(b), self.k) for a, b in pairs])


def _grouped(budget: Budget) -> Iterator[Grouped]:
    ids = ((0,), (0, 0), (0, 1), (0, 1, 0), *budget.pick(quick=(), full=((0, 1, 1, 0), (0, 1, 2, 3))))
    return starmap(Grouped, product((2, 3), map(Fraction, ("2", "11/10", "1001/1000")), ids))


@claim(
    "G21 Algorithm 4",
    on=_grouped,
    given="public groups, at least two labels",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    corrected=OWN,
    false=WHOLE,
)
def noise_hides_groups(grouped: Grouped, *, own: int = 0) -> Comparison:
    """Histograms of the labels of disjoint groups, with ``dlaplace.rvs(epsilon / 2, K)`` added, are epsilon-LabelDP.

    That is one draw for all counts of a group, as SciPy reads the line: differences of counts stay as they are.
    """
    changed = int(np.abs(grouped.differences).sum(axis=(1, 2)).max())
    seen = math.inf if np.ptp(grouped.differences, axis=2).any() else grouped.root
    return at_most(grouped.root ** (own * changed) if own else seen, grouped.root**2)


class Histogram(Instance, counts="noisy counts"):
    """Noisy counts of one group."""

    counts: tuple[int, ...]


def _histograms(_: Budget) -> Iterator[Histogram]:
    return (Histogram(counts) for k in (1, 2, 3) for counts in product((2, 1, 0, -1, -7), repeat=k))


def _clipped(counts: Integers) -> Floats:
    shares: Floats = np.maximum(counts, 0) / max(1, np.maximum(counts, 0).sum())
    return shares


@claim(
    "G21 Algorithm 4: line 4(c)",
    kind="text",
    on=_histograms,
    given="any noisy counts, 0 / 0 taken as 0",
    sides=("sum of the shares, or zero", "1, or the least share"),
    corrected=Variant(
        "The same, and the uniform prior where no count is above 0: the prior of the package.",
        shares=lambda counts: EstimatedPrior(tuple(np.maximum(counts, 0).tolist()), 1.0).probabilities,
    ),
    false=Variant(
        "The same of counts that are not cut off, and the uniform prior where their sum is not above 0.",
        shares=lambda counts: counts / counts.sum() if counts.sum() > 0 else np.full(counts.size, 1 / counts.size),
    ),
)
def clipped_counts_are_a_prior(histogram: Histogram, shares: Callable[[Integers], Floats] = _clipped) -> Comparison:
    """Counts that are cut off at 0, over their sum, are a prior."""
    found = shares(np.array(histogram.counts)).tolist()
    return worst(equal(math.fsum(found), 1, tolerance=1e-12), at_most(0, min(found)))


class Learned(Instance, counts="labels of each group", epsilon="eps"):
    """Many groups with the same labels, so many of each kind, whose priors the package learns."""

    counts: tuple[int, int]
    epsilon: float
    groups: int


def _learned(budget: Budget) -> Iterator[Learned]:
    epsilons, groups = (1.0, *budget.pick(quick=(), full=(0.1, 0.5, 3.0))), budget.pick(quick=1_500, full=15_000)
    return (Learned(counts, epsilon, groups) for counts, epsilon in product(((1, 0), (2, 1)), epsilons))


@claim(
    "G21 Algorithm 4: draws",
    kind="ours",
    on=_learned,
    given="priors of two labels, words of a seed",
    sides=("distance of a frequency from its probability", "five standard errors"),
    false=HALVES,
)
def priors_come_as_often(learned: Learned, *, halves: int = 1) -> Comparison:
    """Learned priors come as often as noise of ratio ``exp(epsilon / 2)`` says, up to five standard errors."""
    labels = np.tile(np.repeat((0, 1), learned.counts), learned.groups)
    groups = Groups.of_ids(np.repeat(np.arange(learned.groups), sum(learned.counts)))
    priors = ClusterPriors.learn(labels, groups, 2, learned.epsilon, source=SeededEntropy(4))
    found = np.bincount(_kinds(priors.probabilities[:, 0], priors.uniform), minlength=6) / learned.groups
    noise = np.arange(-400, 401)
    law = np.exp(-halves * learned.epsilon / 2 * np.abs(noise))
    first, second = (np.maximum(count + noise, 0) for count in learned.counts)
    pairs = np.add.outer(first, second)
    shares = np.divide(first[:, np.newaxis], pairs, out=np.full(pairs.shape, 0.5), where=pairs > 0)
    wanted = np.bincount(_kinds(shares, pairs == 0).ravel(), (np.outer(law, law) / law.sum() ** 2).ravel(), minlength=6)
    errors = 5 * np.sqrt(wanted * (1 - wanted) / learned.groups)
    return worst(*map(at_most, np.abs(found - wanted).tolist(), errors.tolist()))


def _kinds(shares: Floats, uniform: NDArray[np.bool_]) -> Integers:
    return np.select([uniform, shares == 0, shares < 0.5, shares == 0.5, shares < 1], [5, 0, 1, 2, 3], 4)


HEATS = tuple(Fraction(text) for text in ("1000", "30", "27/10", "3/2", "101/100", "1000001/1000000"))
"""Values of ``exp(1 / t)``, from cold to hot."""


class Tempered(Instance, heat="exp(1 / t)"):
    """Whole logits, so that the prior is exact in fractions, and a temperature `t`."""

    logits: tuple[int, ...]
    heat: Fraction

    @cached_property
    def prior(self) -> tuple[Fraction, ...]:
        """The softmax of the logits over the temperature."""
        weights = [self.heat ** (logit - max(self.logits)) for logit in self.logits]
        return tuple(weight / sum(weights) for weight in weights)

    @property
    def tops(self) -> int:
        """Number of classes with the largest logit."""
        return self.logits.count(max(self.logits))

    @property
    def gap(self) -> int:
        """Distance of the largest logit from the next one."""
        return max(self.logits) - max((each for each in self.logits if each < max(self.logits)), default=0)


def _logits(budget: Budget) -> Iterator[tuple[int, ...]]:
    yield from ((1, 0), (0, 0), (1, 1, 0), (2, 1, 0), (5, 0, 0, 0))
    random = seeded(30)
    for _ in range(budget.pick(quick=25, full=1_000)):
        yield tuple(random.randint(-3, 3) for _ in range(random.randint(2, 9)))


temperature = partial(claim, "G21", given="any logits, any temperatures above 0")
one_temperature = partial(temperature, on=lambda budget: starmap(Tempered, product(_logits(budget), HEATS)))
ONE_OTHER = Variant("The same with ``1 / m exp(-g / t)``, as if there were one class below.", others=1)
EACH = Variant("At a lower temperature each of the likelier half of the classes is likelier.", each=True)
ONE_TOP = Variant("The same with ``exp(g / t) - 1 >= E - 1``, as if there were one top class.", tops=1)


@one_temperature(
    "Appendix E: cold priors",
    sides=("prior of the classes below the top, or top classes", "bound, or top classes (count)"),
    false=ONE_OTHER,
)
def cold_priors_are_on_the_top(given: Tempered, *, others: int | None = None) -> Comparison:
    """As t tends to 0, classes below the `m` top ones lose the prior: they have at most ``(K - m) / m exp(-g / t)``.

    Top classes, which share the rest alike, are those of the largest logit; the next one is `g` below it.
    """
    rest = len(given.logits) - given.tops
    bound = Fraction(rest and (others or rest), given.tops) * given.heat**-given.gap
    likeliest = max(given.prior)
    return worst(at_most(1 - given.tops * likeliest, bound), equal(given.prior.count(likeliest), given.tops))


@one_temperature(
    "Appendix E: hot priors",
    sides=("largest (K p)**2, or its inverse", "exp(2 d / t), or exp(d / t)"),
    false=Variant("The same with ``d / 2``.", halves=1),
)
def hot_priors_are_uniform(given: Tempered, *, halves: int = 2) -> Comparison:
    """As t grows the prior becomes uniform: ``K p`` is within a factor ``exp(d / t)`` of 1, `d` the logits' range."""
    farthest = given.heat ** (halves * (max(given.logits) - min(given.logits)))
    squares = [(len(given.prior) * share) ** 2 for share in given.prior]
    return worst(at_most(max(squares), farthest), at_most(1 / min(squares), farthest))


class Cooled(Instance, heats="exp(1 / t)"):
    """Logits at two temperatures, the colder one first, and a privacy ratio."""

    logits: tuple[int, ...]
    heats: tuple[Fraction, Fraction]
    ratio: Fraction

    @property
    def both(self) -> tuple[Tempered, Tempered]:
        """The priors."""
        return Tempered(self.logits, self.heats[0]), Tempered(self.logits, self.heats[1])


def _cooled(budget: Budget) -> Iterator[Cooled]:
    ratios = cycle(map(Fraction, ("7/3", "1009/1000", "23/2", "3001")))
    pairs = product(_logits(budget), combinations(HEATS, 2))
    return (Cooled(logits, heats, ratio) for (logits, heats), ratio in zip(pairs, ratios, strict=False))


@temperature(
    "Appendix E: confidence",
    on=_cooled,
    sides=("probability at the higher temperature", "probability at the lower temperature"),
    false=EACH,
)
def cooling_is_more_confident(given: Cooled, *, each: bool = False) -> Comparison:
    """At a lower temperature the `k` likeliest classes together are likelier, for every `k`."""
    cold, hot = (sorted(tempered.prior, reverse=True) for tempered in given.both)
    together, k = map(at_most, accumulate(hot), accumulate(cold)), len(hot) // 2
    return worst(*(map(at_most, hot[:k], cold[:k]) if each else together))


@temperature(
    "Appendix E: labels kept",
    on=_cooled,
    sides=(
        "labels kept at the lower temperature, or whether as said",
        "labels kept at the higher temperature, or whether said",
    ),
    false=ONE_TOP,
)
def heating_keeps_more(given: Cooled, *, tops: int | None = None) -> Comparison:
    """A higher temperature keeps more labels, and only the `m` top ones as long as ``m (exp(g / t) - 1) >= E - 1``.

    Of the package's RRWithPrior, which keeps all labels if and only if ``exp((f - least logit) / t) - 1`` sums to less
    than ``E - 1`` over the logits `f`. `g` is the distance of the largest logit from the next one.
    """
    priors = np.array([each.prior for each in given.both], dtype=float)
    counts = rr_with_prior_batch(priors, math.log(given.ratio)).k_star.tolist()
    said = [at_most(counts[0], counts[1])]
    for each, count in zip(given.both, counts, strict=True):
        excess = total(each.heat ** (logit - min(given.logits)) - 1 for logit in given.logits)
        said.append(equal(count == len(given.logits), excess < given.ratio - 1))
        if each.tops < len(given.logits):
            alone = (tops or each.tops) * (each.heat**each.gap - 1) >= given.ratio - 1
            said.append(equal(count == each.tops, alone))
    return worst(*said)
