"""Training in stages, each on rows of its own, costs epsilon once ([G21], Algorithm 3 and Observation 4).

A data set small enough for all its label vectors, and all that training can release, to be written down: the noisy
labels and the models of every stage. Training itself is anything at all. Here a model is the prior that it predicts.
The histograms of groups of Algorithm 4 are the other use of parallel composition.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from random import Random

import numpy as np

from optrand.baselines.groups import Groups
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.response import Rows, best_k, top_k_rows
from optrand.theory.instances import RATIOS, prior

__all__ = ["CLAIMS", "Training"]

Prior = tuple[Fraction, ...]

Released = tuple[tuple[int, int], ...]
"""What was released so far: rows of the data set and their noisy labels, in order; a coin of training is row -1."""


def counting(released: Released, row: int, k: int) -> Prior:
    """A model that has counted the noisy labels of even or of odd rows, like this one, starting from one of each."""
    counts = [1] * k
    for at, label in released:
        counts[label] += at >= 0 and at % 2 == row % 2
    return tuple(Fraction(count, sum(counts)) for count in counts)


def arbitrary(released: Released, row: int, k: int) -> Prior:
    """A model that is any function of what it saw."""
    return prior(Random(repr((released, row))), k)  # noqa: S311


MODELS: dict[str, Callable[[Released, int, int], Prior]] = {"counting": counting, "arbitrary": arbitrary}


@dataclass(frozen=True)
class Training:
    """Training in stages on a small data set.

    Attributes
    ----------
    k : int
        The number of labels.
    ratio : Fraction
    stages : tuple of tuples of int
        The rows of each stage.
    model : str
        How a model predicts from what was released: a key of ``MODELS``.
    coins : bool
        Whether training tosses a coin after each stage, and hands it on with the model.

    Examples
    --------
    >>> once = Training(2, Fraction(3), ((0,), (1,)))
    >>> str(once.largest_ratio), str(replace(once, stages=((0,), (0,))).largest_ratio)
    ('3', '9')
    """

    k: int
    ratio: Fraction
    stages: tuple[tuple[int, ...], ...]
    model: str = "counting"
    coins: bool = False

    def __str__(self) -> str:
        coins = ", with coins" if self.coins else ""
        return f"{self.k} labels, E = {self.ratio}, rows by stage {self.stages}, {self.model} model{coins}"

    @property
    def rows(self) -> int:
        """The number of rows of the data set."""
        return 1 + max(itertools.chain(*self.stages))

    def law(self, labels: tuple[int, ...]) -> dict[Released, Fraction]:
        """The probability of all that can be released of a data set with these labels.

        Models are functions of the noisy labels and coins before them, so that these say all.
        """
        chances: dict[Released, Fraction] = {(): Fraction(1)}
        for number, stage in enumerate(self.stages):
            after: dict[Released, Fraction] = {}
            for seen, chance in chances.items():
                predicted = [self._predict(seen, row, first=not number) for row in stage]
                tables = [_respond(each, self.ratio)[labels[row]] for each, row in zip(predicted, stage, strict=True)]
                for noisy in itertools.product(range(self.k), repeat=len(stage)):
                    here = chance
                    for table, label in zip(tables, noisy, strict=True):
                        here *= table[label]
                    if here:
                        after[(*seen, *zip(stage, noisy, strict=True))] = here
            chances = _tossed(after) if self.coins else after
        return chances

    def _predict(self, released: Released, row: int, *, first: bool) -> Prior:
        """The prior of a row: of the first stage that of the model that knows nothing."""
        if first:
            return (Fraction(1, self.k),) * self.k
        return MODELS[self.model](released, row, self.k)

    @cached_property
    def largest_ratio(self) -> Fraction | float:
        """The largest ratio of two probabilities of one release, on data sets that differ in one label."""
        laws = {labels: self.law(labels) for labels in itertools.product(range(self.k), repeat=self.rows)}
        largest: Fraction | float = Fraction(1)
        for labels, law in laws.items():
            for row, label in itertools.product(range(self.rows), range(self.k)):
                other = laws[(*labels[:row], label, *labels[row + 1 :])]
                largest = max(largest, *(_quotient(chance, other.get(seen)) for seen, chance in law.items()))
        return largest


def _tossed(chances: dict[Released, Fraction]) -> dict[Released, Fraction]:
    return {(*seen, (-1, coin)): chance / 2 for seen, chance in chances.items() for coin in (0, 1)}


def _quotient(chance: Fraction, other: Fraction | None) -> Fraction | float:
    return chance / other if other else float("inf")


@lru_cache(maxsize=4096)
def _respond(predicted: Prior, ratio: Fraction) -> Rows:
    """RRWithPrior."""
    return top_k_rows(predicted, best_k(predicted, ratio), ratio)


SPLITS = (((0,),), ((0,), (1,)), ((0, 1),), ((), (0, 1)), ((1,), (0, 2)), ((0,), (1,), (2,)))


def _trainings(budget: Budget) -> Iterator[Training]:
    for stages, ratio, model in itertools.product(SPLITS, RATIOS, MODELS):
        yield Training(2, ratio, stages, model)
    for ratio in RATIOS[:2]:
        yield Training(2, ratio, ((0,), (1,), (2,)), "arbitrary", coins=True)
        yield Training(3, ratio, ((0,), (1,)), "arbitrary")
    if budget is Budget.FULL:
        for ratio, model in itertools.product(RATIOS, MODELS):
            yield Training(3, ratio, ((0, 1), (2,)), model)
            yield Training(4, ratio, ((0,), (1,)), model, coins=True)
            yield Training(2, ratio, ((0,), (1, 2), (3,)), model, coins=True)


def stages_cost_epsilon_once(training: Training) -> Comparison:
    """Training in stages of disjoint rows, with priors that the model of the stage before predicts, is epsilon-LabelDP.

    So are all models and all noisy labels together, which is what is tried here.
    """
    return at_most(training.largest_ratio, training.ratio)


def overlapping_stages_cost_epsilon_once(training: Training) -> Comparison:
    """The same where the last stage asks for the label of row 0 again."""
    again = replace(training, stages=(*training.stages[:-1], tuple(dict.fromkeys((*training.stages[-1], 0)))))
    return at_most(again.largest_ratio, training.ratio)


@dataclass(frozen=True)
class _Grouped:
    """Rows in public groups, whose histograms get noise that is ``root`` times less likely with each step from 0."""

    k: int
    root: Fraction
    ids: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.k} labels, E = {self.root**2}, groups of rows {self.ids}"

    def largest_ratio(self, root: Fraction) -> Fraction:
        """Of two probabilities of the same noisy histograms, on data sets that differ in one label.

        Counts have noise of their own, so that the largest ratio is the product of those of single counts.
        """
        groups = Groups.of_ids(self.ids)
        tables = {
            labels: groups.histograms(np.array(labels), self.k).ravel().tolist()
            for labels in itertools.product(range(self.k), repeat=len(self.ids))
        }
        seen = range(-1, len(self.ids) + 2)
        return max(
            math.prod(
                (
                    max(root ** (abs(x - other) - abs(x - count)) for x in seen)
                    for count, other in zip(one, another, strict=True)
                ),
                start=Fraction(1),
            )
            for (labels, one), (others, another) in itertools.product(tables.items(), repeat=2)
            if sum(map(operator.ne, labels, others)) <= 1
        )


def _grouped(budget: Budget) -> Iterator[_Grouped]:
    ids = ((0,), (0, 0), (0, 1), (0, 1, 0), *budget.pick(quick=(), full=((0, 1, 1, 0), (0, 1, 2, 3))))
    roots = tuple(map(Fraction, ("2", "11/10", "1001/1000")))
    return (_Grouped(k, root, each) for k, root, each in itertools.product((2, 3), roots, ids))


def groups_cost_epsilon_once(grouped: _Grouped) -> Comparison:
    """Histograms of the labels of disjoint groups, all with noise for half the epsilon, are epsilon-LabelDP together.

    The half is what Algorithm 4 prints: a label that is replaced changes two counts of its group.
    """
    return at_most(grouped.largest_ratio(grouped.root), grouped.root**2)


def groups_cost_epsilon_with_half_the_noise(grouped: _Grouped) -> Comparison:
    """The same with noise for all of epsilon, as if a label that is replaced changed one count."""
    return at_most(grouped.largest_ratio(grouped.root**2), grouped.root**2)


CLAIMS = (
    Claim(
        paper="G21",
        number="Observation 4",
        hypothesis="stages chosen without a look at labels, any training algorithm, epsilon above 0",
        instances=_trainings,
        printed=stages_cost_epsilon_once,
        false=overlapping_stages_cost_epsilon_once,
    ),
    Claim(
        paper="G21",
        number="Algorithm 4",
        hypothesis="groups chosen without a look at labels, at least two labels, epsilon above 0",
        instances=_grouped,
        printed=groups_cost_epsilon_once,
        false=groups_cost_epsilon_with_half_the_noise,
    ),
)
