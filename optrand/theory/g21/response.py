"""Randomized response on the likeliest labels is private ([G21], Lemma 1 and Corollary 2).

Algorithms 1 and 2 as printed, in fractions, beside the integer tables and the sampler of the package; the other modules
of this paper use both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, product
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.closed_forms import RRWithPriorBatch, rr, rr_top_k, rr_with_prior, rr_with_prior_batch
from optrand.mechanism.mechanism import Mechanism
from optrand.sampling.entropy import Words
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Instance, settings, shares
from optrand.theory.sums import largest_ratio, total

__all__ = ["Rows", "Table", "Task", "TopK", "best_k", "kept_labels", "objective", "table", "tasks", "top_k_rows"]

Rows = tuple[tuple[Fraction, ...], ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""

Table = NDArray[Any]
"""Fractions, in an array of objects."""

ROUNDING = 1e-9
"""What the integer tables of the package may differ from the printed probabilities."""

ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"


def kept_labels(prior: Sequence[Fraction], k: int) -> tuple[int, ...]:
    """The `k` labels of the largest prior, of equally likely ones the smaller."""
    return tuple(sorted(sorted(range(len(prior)), key=lambda y: -prior[y])[:k]))


def top_k_rows(prior: Sequence[Fraction], k: int, ratio: Fraction) -> Rows:
    """[G21], Algorithm 1, as a table."""
    kept, labels, chance = kept_labels(prior, k), range(len(prior)), 1 / (ratio + k - 1)
    own = {(y, v): (ratio if v == y else 1) * chance for y, v in product(kept, repeat=2)}
    drawn = [Fraction(v in kept, k) for v in labels]
    return tuple(tuple(own.get((y, v), Fraction(0)) if y in kept else drawn[v] for v in labels) for y in labels)


def best_k(prior: Sequence[Fraction], ratio: Fraction, *, others: int = -1) -> int:
    """Number of labels that [G21], Algorithm 2, keeps: all are tried, the first of the best is taken."""
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k + others))


def objective(prior: Sequence[Fraction], rows: Rows) -> Fraction:
    """Probability that the output is the label, where labels follow the prior."""
    return total(share * rows[y][y] for y, share in enumerate(prior))


def table(mechanism: Mechanism) -> Rows:
    """Exact laws of what is released, by the integer table of a mechanism; zeros for labels that never are."""
    outputs, rows = mechanism.outputs.astype(int).tolist(), mechanism.weights.tolist()
    found = (dict(zip(outputs, row, strict=True)) for row in rows)
    return tuple(tuple(Fraction(law.get(v, 0), mechanism.total) for v in range(len(rows))) for law in found)


class Task(Instance):
    """A prior and a privacy ratio."""

    prior: tuple[Fraction, ...]
    ratio: Fraction

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.prior)

    @property
    def floats(self) -> list[float]:
        """The prior, as the package takes it."""
        return list(map(float, self.prior))

    @property
    def epsilon(self) -> float:
        """The budget, as the package takes it."""
        return math.log1p(self.ratio - 1)

    @cached_property
    def listed(self) -> Rows:
        """RRWithPrior as printed."""
        return top_k_rows(self.prior, best_k(self.prior, self.ratio), self.ratio)

    @cached_property
    def tabulated(self) -> Rows:
        """RRWithPrior of the package."""
        return table(rr_with_prior(self.floats, self.epsilon))

    @property
    def privacy(self) -> Comparison:
        """Both against the budget: fractions against `E`, integers against what is below ``exp(epsilon)``."""
        budgets = self.ratio, exp_bracket(self.epsilon)[0]
        return worst(*map(at_most, map(largest_ratio, (self.listed, self.tabulated)), budgets))


class TopK(Task):
    """A prior, a privacy ratio, and how many labels are kept."""

    k: int

    @cached_property
    def listed(self) -> Rows:
        """RRTop-k as printed."""
        return top_k_rows(self.prior, self.k, self.ratio)

    @cached_property
    def tabulated(self) -> Rows:
        """RRTop-k of the package."""
        return table(rr_top_k(self.floats, self.k, self.epsilon))

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The labels that are kept."""
        return kept_labels(self.prior, self.k)


def tasks(count: int, *, most: int, seed: int) -> Iterator[Task]:
    """Tasks of :func:`~optrand.theory.instances.settings`, whose labels have no values here."""
    return (Task(setting.prior, setting.ratio) for setting in settings(count, most=most, seed=seed))


def top_ks(count: int, *, most: int, seed: int) -> Iterator[TopK]:
    """Tasks with each number of labels kept."""
    for task in tasks(count, most=most, seed=seed):
        yield from (TopK(task.prior, task.ratio, k) for k in range(1, task.size + 1))


def _kept(budget: Budget) -> Iterator[TopK]:
    yield TopK((Fraction(1),), Fraction(2), 1)
    yield from top_ks(budget.pick(quick=30, full=1_500), most=9, seed=0)


LESS = Variant("The same at a ratio whose distance from 1 is a thousandth less.", share=Fraction(999, 1000))
CERTAIN = Variant("The same where `k` is at least 2; where it is 1 the output is certain for all labels.", alike=1)
STRANGER = Variant("The output is least likely for a label that is not kept: with probability ``1 / k``.", alike=99)
AGAIN = Variant("The same where the coin that keeps a label is ``E / (E + k - 1)``, and else any is drawn.", again=1)
HALF = Variant("The same where the model finds the first label half as likely as each other one.", first=1)
ALL_LABELS = Variant("The same with ``E / (E + K - 1)``, of randomized response on all labels.", all_labels=True)
of_top_k = partial(claim, "G21", on=_kept, given="any prior, any number of labels kept, epsilon above 0")
of_the_best_k = partial(
    claim, "G21", on=lambda budget: tasks(budget.pick(quick=100, full=5_000), most=9, seed=2), given=ANY_PRIOR
)


@of_top_k("Lemma 1", sides=("largest ratio of probabilities", "E = exp(epsilon)"))
def top_k_is_private(kept: TopK) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP."""
    return kept.privacy


@top_k_is_private.false
def _(kept: TopK) -> Comparison:
    """The same where any other label gives one of the `k` by its prior, rather than any of them alike."""
    mass = total(kept.prior[v] for v in kept.kept)
    drawn = [share / mass * (v in kept.kept) for v, share in enumerate(kept.prior)]
    return at_most(largest_ratio([row if y in kept.kept else drawn for y, row in enumerate(kept.listed)]), kept.ratio)


@of_top_k(
    "Lemma 1: integer tables",
    sides=("largest distance of the table from the printed one", "1e-9"),
    kind="ours",
    false=LESS,
)
def top_k_table_is_as_printed(kept: TopK, *, share: Fraction = Fraction(1)) -> Comparison:
    """The integer table of the package for RRTop-k has the printed probabilities, up to 1e-9."""
    printed = top_k_rows(kept.prior, kept.k, 1 + share * (kept.ratio - 1))
    gaps = map(sub, chain(*kept.tabulated), chain(*printed))
    return at_most(max(map(abs, gaps)), Fraction(ROUNDING))


@of_top_k(
    "Appendix A.1",
    sides=("least probability of an output", "probability as claimed"),
    corrected=CERTAIN,
    false=STRANGER,
)
def another_kept_label_is_least_likely(kept: TopK, *, alike: int = 0) -> Comparison:
    """RRTop-k gives an output least likely for another label that is kept: with probability ``1 / (E + k - 1)``."""
    chance = Fraction(1, kept.k) if kept.k <= alike else 1 / (kept.ratio + kept.k - 1)
    found = (min(row[v] for row in rows) for rows in (kept.listed, kept.tabulated) for v in kept.kept)
    return worst(*(equal(each, chance, tolerance=ROUNDING, scale=1) for each in found))


@of_top_k(
    "Section 3.1: objective of RRTop-k",
    sides=("probability that the label is kept", "probability as claimed"),
    false=ALL_LABELS,
)
def top_k_keeps_the_label(kept: TopK, *, all_labels: bool = False) -> Comparison:
    """RRTop-k keeps a label that follows the prior with ``E / (E + k - 1)`` times the prior of the `k` likeliest."""
    share = kept.ratio / (kept.ratio + (kept.size if all_labels else kept.k) - 1)
    chance = share * total(kept.prior[y] for y in kept.kept)
    found = (objective(kept.prior, rows) for rows in (kept.listed, kept.tabulated))
    return worst(*(equal(each, chance, tolerance=ROUNDING) for each in found))


@of_the_best_k("Corollary 2", sides=("largest ratio of probabilities", "E = exp(epsilon)"))
def with_prior_is_private(task: Task) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP."""
    return task.privacy


@with_prior_is_private.false
def _(task: Task) -> Comparison:
    """The same where a label that is not kept has the number of labels raised until it is."""
    least = best_k(task.prior, task.ratio)
    ranks = sorted(range(task.size), key=lambda y: -task.prior[y])
    rows = [top_k_rows(task.prior, max(least, ranks.index(y) + 1), task.ratio)[y] for y in range(task.size)]
    return at_most(largest_ratio(rows), task.ratio)


@of_the_best_k(
    "Corollary 2: integer tables",
    sides=("probability that the table keeps the label", "probability as printed"),
    kind="ours",
    false=LESS,
)
def with_prior_table_is_as_good(task: Task, *, share: Fraction = Fraction(1)) -> Comparison:
    """The integer table of the package for RRWithPrior keeps the label as often as printed, up to 1e-9."""
    ratio = 1 + share * (task.ratio - 1)
    printed = objective(task.prior, top_k_rows(task.prior, best_k(task.prior, ratio), ratio))
    return equal(objective(task.prior, task.tabulated), printed, tolerance=ROUNDING)


class Sampled(Task):
    """A prior of few labels, a privacy ratio, and how many random bits are followed."""

    depth: int

    def outcomes(self, batch: RRWithPriorBatch, y: int, bits: tuple[int, ...] = ()) -> Counter[int]:
        """Outputs of a label, by how many rows of bits decide on them; those that leave them undecided are -1."""
        try:
            return Counter({int(batch.sample([y], source=_Written(bits))[0]): 1 << self.depth - len(bits)})
        except EOFError:
            if len(bits) == self.depth:
                return Counter({-1: 1})
            return self.outcomes(batch, y, (*bits, 0)) + self.outcomes(batch, y, (*bits, 1))


class _Written:
    """A source of words of one bit, written down beforehand; an EOFError where they end."""

    width = 1
    private = False

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.left = list(bits)

    def words(self, count: int) -> Words:
        """The next words."""
        if count > len(self.left):
            raise EOFError
        return np.array([self.left.pop(0) for _ in range(count)], dtype=np.uint64)


def _sampled(budget: Budget) -> Iterator[Sampled]:
    priors, ratios = ([1, 1], [3, 2, 1], [4, 4, 3, 1], [9, 1, 0]), budget.pick(quick=RATIOS[:4], full=RATIOS)
    depth = budget.pick(quick=10, full=16)
    return (Sampled(shares(weights), ratio, depth) for weights, ratio in product(priors, ratios))


@claim(
    "G21 Corollary 2: sampler",
    kind="ours",
    on=_sampled,
    given="words of one bit, until they decide",
    sides=("probability, or its least value by the bits drawn", "its largest value by the bits drawn, or probability"),
    false=AGAIN,
)
def sampler_is_as_printed(task: Sampled, *, again: int = 0) -> Comparison:
    """Outputs have the probabilities of RRWithPrior, up to those of bits that have not decided; all bits are exact."""
    batch = rr_with_prior_batch([task.floats], task.epsilon)
    ratio, k = privacy_ratio(task.epsilon), int(batch.k_star[0])
    said = []
    for y in range(task.size):
        found = task.outcomes(batch, y)
        stays = (ratio - 1 + again) / (ratio + k - 1) if batch.kept[0, y] else Fraction(0)
        for v in np.flatnonzero(batch.kept[0]).tolist():
            chance = (1 - stays) / k + stays * (v == y)
            least, most = (Fraction(n, 1 << task.depth) for n in (found[v], found[v] + found[-1]))
            said += [at_most(least, chance), at_most(chance, most)]
    return worst(*said)


def _flat(_: Budget) -> Iterator[Task]:
    return (Task(shares([1] * k), ratio) for k in (1, 2, 3, 7, 10, 49) for ratio in RATIOS)


@claim(
    "G21 Section 4: one stage",
    on=_flat,
    given="a flat first prior",
    sides=("probability by the table of the stage", "probability by randomized response"),
    false=HALF,
)
def one_stage_is_randomized_response(task: Task, *, first: int = 2) -> Comparison:
    """One stage of training, whose model gives all labels equal probabilities, asks by randomized response on all."""
    found = Task(shares([first] + [2] * (task.size - 1)), task.ratio).tabulated
    return worst(*map(equal, chain(*found), chain(*table(rr(range(task.size), task.epsilon)))))
