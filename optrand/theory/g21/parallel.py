"""Training in stages, and the histograms of groups, cost epsilon once ([G21], Observation 4, Algorithms 3 and 4).

A data set small enough for all its label vectors, and all that training can release, to be written down: the noisy
labels and the models of every stage. Training itself is anything at all; here a model is the prior that it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, product
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket
from optrand.base.validation import Floats
from optrand.baselines import ClusterPriors
from optrand.baselines.groups import Groups
from optrand.closed_forms import rr_with_prior
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import EstimatedPrior
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import Rows, table
from optrand.theory.instances import Instance, prior, seeded
from optrand.theory.sums import largest_ratio, times

__all__ = ["Training"]

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
    """Training in stages on a small data set, with or without a coin after each stage that the next one knows.

    Examples
    --------
    >>> once, twice = Training(2, 1.0, ((0,), (1,))), Training(2, 1.0, ((0,), (0,)))
    >>> round(float(once.largest_ratio), 6), round(float(twice.largest_ratio), 6)
    (2.718282, 7.389056)
    """

    k: int
    epsilon: float
    stages: tuple[tuple[int, ...], ...]
    model: Callable[[Released, int, int], Prior] = counting
    coins: bool = False

    def law(self, labels: tuple[int, ...]) -> dict[Released, Fraction]:
        """The probability of all that can be released of a data set with these labels, by the package's tables.

        Models are functions of the noisy labels and coins before them, so that these say all.
        """
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

    @cached_property
    def largest_ratio(self) -> Fraction | float:
        """Largest ratio of two probabilities of one release, on data sets that differ in one label."""
        rows = 1 + max(chain(*self.stages))
        laws = {labels: self.law(labels) for labels in product(range(self.k), repeat=rows)}
        return max(
            largest_ratio([laws[(*labels[:row], label, *labels[row + 1 :])] for label in range(self.k)])
            for row in range(rows)
            for labels in laws
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


@claim(
    "G21",
    "Observation 4",
    on=_trainings,
    given="stages chosen without a look at labels, any training algorithm, the package's RRWithPrior, epsilon above 0",
)
def stages_cost_epsilon_once(training: Training) -> Comparison:
    """Training in stages of disjoint rows, with priors that the model of the stage before predicts, is epsilon-LabelDP.

    So are all models and all noisy labels together, which is what is tried here.
    """
    return at_most(training.largest_ratio, exp_bracket(training.epsilon)[0])


@stages_cost_epsilon_once.false
def _(training: Training) -> Comparison:
    """The same where the last stage asks for the label of row 0 again."""
    last = tuple(dict.fromkeys((*training.stages[-1], 0)))
    again = Training(training.k, training.epsilon, (*training.stages[:-1], last), training.model, training.coins)
    return at_most(again.largest_ratio, exp_bracket(training.epsilon)[0])


class Grouped(Instance, k="K", root="exp(epsilon / 2)", ids="group of each row"):
    """Rows in public groups, whose histograms get noise that is `root` times less likely with each step from 0."""

    k: int
    root: Fraction
    ids: tuple[int, ...]

    def largest_ratio(self, root: Fraction) -> Fraction:
        """Largest ratio of two probabilities of the same noisy histograms, on data sets that differ in one label.

        Counts have noise of their own, so that it is the product of the largest ratios of single counts.
        """
        return max(root ** int(np.abs(one - other).sum()) for one, other in self.neighbours)

    @property
    def neighbours(self) -> list[tuple[Integers, Integers]]:
        """Histograms of all groups, on data sets that differ in one label."""
        groups, several = Groups.of_ids(self.ids), product(range(self.k), repeat=len(self.ids))
        tables = {labels: groups.histograms(np.array(labels), self.k) for labels in several}
        pairs = product(tables, repeat=2)
        return [(tables[a], tables[b]) for a, b in pairs if sum(x != y for x, y in zip(a, b, strict=True)) == 1]


def _grouped(budget: Budget) -> Iterator[Grouped]:
    ids = ((0,), (0, 0), (0, 1), (0, 1, 0), *budget.pick(quick=(), full=((0, 1, 1, 0), (0, 1, 2, 3))))
    roots = tuple(map(Fraction, ("2", "11/10", "1001/1000")))
    return (Grouped(k, root, each) for k, root, each in product((2, 3), roots, ids))


@claim("G21", "Algorithm 4", on=_grouped, given="groups chosen without a look at labels, at least two labels")
def one_draw_hides_groups(grouped: Grouped) -> Comparison:
    """Histograms of the labels of disjoint groups, with ``dlaplace.rvs(epsilon / 2, K)`` added, are epsilon-LabelDP.

    That is one draw for all counts of a group, as SciPy reads the line: differences of counts stay as they are.
    """
    hidden = all(len(set((one - other).ravel().tolist())) == 1 for one, other in grouped.neighbours)
    return at_most(grouped.root if hidden else math.inf, grouped.root**2)


@one_draw_hides_groups.corrected
def _(grouped: Grouped) -> Comparison:
    """The same with a draw for each count. The half is there since a label that is replaced changes two counts."""
    return at_most(grouped.largest_ratio(grouped.root), grouped.root**2)


@one_draw_hides_groups.false
def _(grouped: Grouped) -> Comparison:
    """The same with a draw for each count, of all of epsilon, as if a label that is replaced changed one count."""
    return at_most(grouped.largest_ratio(grouped.root**2), grouped.root**2)


class Histogram(Instance, counts="noisy counts"):
    """Noisy counts of one group."""

    counts: tuple[int, ...]


def _histograms(_: Budget) -> Iterator[Histogram]:
    return (Histogram(counts) for k in (1, 2, 3) for counts in product((2, 1, 0, -1, -7), repeat=k))


@claim("G21", "Algorithm 4", part="line 4(c)", kind="text", on=_histograms, given="any noisy counts, 0 / 0 taken as 0")
def clipped_counts_are_a_prior(histogram: Histogram) -> Comparison:
    """Counts that are cut off at 0, over their sum, are a prior."""
    clipped = [max(count, 0) for count in histogram.counts]
    return _is_prior([count / sum(clipped) if any(clipped) else 0.0 for count in clipped])


@clipped_counts_are_a_prior.corrected
def _(histogram: Histogram) -> Comparison:
    """The same, and the uniform prior where no count is above 0: the prior of the package."""
    estimated = EstimatedPrior(tuple(max(count, 0) for count in histogram.counts), 1.0)
    return _is_prior(estimated.probabilities.tolist())


@clipped_counts_are_a_prior.false
def _(histogram: Histogram) -> Comparison:
    """The same of counts that are not cut off, and the uniform prior where their sum is not above 0."""
    k, mass = len(histogram.counts), sum(histogram.counts)
    return _is_prior([count / mass if mass > 0 else 1 / k for count in histogram.counts])


def _is_prior(shares: list[float]) -> Comparison:
    return worst(equal(math.fsum(shares), 1, tolerance=1e-12), at_most(0, min(shares)))


class Learned(Instance, counts="labels of each group", epsilon="eps"):
    """Many groups with the same labels, so many of each kind, whose priors the package learns."""

    counts: tuple[int, int]
    epsilon: float
    groups: int = 1_500


def _learned(budget: Budget) -> Iterator[Learned]:
    for counts, epsilon in product(((1, 0), (2, 1)), (1.0, *budget.pick(quick=(), full=(0.1, 0.5, 3.0)))):
        yield Learned(counts, epsilon, budget.pick(quick=1_500, full=15_000))


@claim(
    "G21",
    "Algorithm 4",
    part="draws",
    kind="ours",
    on=_learned,
    given="priors of two labels that the package learns, with the words of a seed",
    false=Variant("The same with noise for all of epsilon.", halves=2),
)
def priors_come_as_often(learned: Learned, halves: int = 1) -> Comparison:
    """Learned priors come as often as noise of ratio ``exp(epsilon / 2)`` says, up to five standard errors.

    Counted are those that give the first label nothing, less than half, a half, more, and all, and those of no counts.
    """
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
    kinds = np.select([shares == 0, shares < 0.5, shares == 0.5, shares < 1], [0, 1, 2, 3], 4)
    found: Integers = np.where(uniform, 5, kinds)
    return found
