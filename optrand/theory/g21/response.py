"""Randomized response on the likeliest labels is private ([G21], Lemma 1 and Corollary 2).

Algorithms 1 and 2 as printed, in fractions, beside the integer tables and the sampler of the package; the other modules
of this paper use both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, product
from typing import ClassVar

import numpy as np

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.closed_forms import RRWithPriorBatch, rr, rr_top_k, rr_with_prior, rr_with_prior_batch
from optrand.mechanism.tabulation import tabulate
from optrand.model.solution import Solution
from optrand.sampling.entropy import Words
from optrand.theory import sums
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, Number, at_most, equal, worst
from optrand.theory.instances import RATIOS, Instance, settings, shares
from optrand.theory.sums import total

__all__ = ["Law", "Rows", "Task", "best_k", "kept_labels", "largest_ratio", "laws", "objective", "table", "top_k_rows"]

Rows = tuple[tuple[Fraction, ...], ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""

Law = dict[int, Fraction]
"""Probability of each label that can be released."""

ROUNDING = 1e-9
"""What the integer tables of the package may differ from the printed probabilities."""

ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"


def kept_labels(prior: Sequence[Fraction], k: int) -> tuple[int, ...]:
    """The `k` labels of the largest prior, of equally likely ones the smaller.

    Examples
    --------
    >>> kept_labels([Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)], 2)
    (0, 1)
    """
    return tuple(sorted(sorted(range(len(prior)), key=lambda y: -prior[y])[:k]))


def top_k_rows(prior: Sequence[Fraction], k: int, ratio: Fraction) -> Rows:
    """[G21], Algorithm 1, as a table.

    Examples
    --------
    >>> [[str(chance) for chance in row] for row in top_k_rows([Fraction(1, 2)] + [Fraction(1, 4)] * 2, 2, Fraction(3))]
    [['3/4', '1/4', '0'], ['1/4', '3/4', '0'], ['1/2', '1/2', '0']]
    """
    kept = set(kept_labels(prior, k))

    def chance(y: int, v: int) -> Fraction:
        if v not in kept:
            return Fraction(0)
        if y not in kept:
            return Fraction(1, k)
        return (ratio if v == y else 1) / (ratio + k - 1)

    return tuple(tuple(chance(y, v) for v in range(len(prior))) for y in range(len(prior)))


def best_k(prior: Sequence[Fraction], ratio: Fraction, *, others: int = -1) -> int:
    """Number of labels that [G21], Algorithm 2, keeps: all are tried, the first of the best is taken.

    Examples
    --------
    >>> best_k([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], Fraction(3))
    2
    """
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k + others))


def objective(prior: Sequence[Fraction], rows: Rows) -> Fraction:
    """Probability that the output is the label, where labels follow the prior."""
    return total(share * rows[y][y] for y, share in enumerate(prior))


def largest_ratio(rows: Rows) -> Number:
    """Largest ratio of two probabilities of one output; infinite where only one of them is 0."""
    return sums.largest_ratio([dict(enumerate(row)) for row in rows])


def laws(solution: Solution) -> tuple[Law, ...]:
    """Exact law of what is released of each label, by the integer table of a solution.

    Examples
    --------
    >>> [{v: round(float(p), 9) for v, p in law.items()} for law in laws(rr_top_k([0.9, 0.1], 1, 1.0))]
    [{0: 1.0}, {0: 1.0}]
    """
    mechanism = tabulate(solution)
    outputs = mechanism.outputs.astype(int).tolist()
    rows = mechanism.weights.tolist()
    return tuple({v: Fraction(w, mechanism.total) for v, w in zip(outputs, row, strict=True)} for row in rows)


def table(solution: Solution) -> Rows:
    """Exact laws as a table, with zeros for labels that are never released."""
    found = laws(solution)
    return tuple(tuple(law.get(v, Fraction(0)) for v in range(len(found))) for law in found)


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
        return [float(share) for share in self.prior]

    @property
    def epsilon(self) -> float:
        """The budget, as the package takes it."""
        return math.log(self.ratio)

    @cached_property
    def listed(self) -> Rows:
        """RRWithPrior as printed."""
        return top_k_rows(self.prior, best_k(self.prior, self.ratio), self.ratio)

    @cached_property
    def tabulated(self) -> Rows:
        """RRWithPrior of the package."""
        return table(rr_with_prior(self.floats, self.epsilon))

    def privacy(self, listed: Rows, tabulated: Rows) -> Comparison:
        """Both tables against the budget: fractions against `E`, integers against what is below ``exp(epsilon)``."""
        return worst(
            at_most(largest_ratio(listed), self.ratio), at_most(largest_ratio(tabulated), exp_bracket(self.epsilon)[0])
        )


def tasks(count: int, *, most: int, seed: int) -> Iterator[Task]:
    """Tasks of :func:`~optrand.theory.instances.settings`, whose labels have no values here."""
    return (Task(setting.prior, setting.ratio) for setting in settings(count, most=most, seed=seed))


class Kept(Task):
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

    @property
    def likeliest(self) -> tuple[int, ...]:
        """The labels that are kept."""
        return kept_labels(self.prior, self.k)


def _kept(budget: Budget) -> Iterator[Kept]:
    yield Kept((Fraction(1),), Fraction(2), 1)
    for task in tasks(budget.pick(quick=30, full=1_500), most=9, seed=0):
        yield from (Kept(task.prior, task.ratio, k) for k in range(1, task.size + 1))


def _chosen(budget: Budget) -> Iterator[Task]:
    return tasks(budget.pick(quick=100, full=5_000), most=9, seed=2)


LESS = Variant("The same at a ratio whose distance from 1 is a thousandth less.", share=Fraction(999, 1000))

of_top_k = partial(claim, "G21", on=_kept, given="any prior, any number of labels kept, epsilon above 0")

of_the_best_k = partial(claim, "G21", on=_chosen, given=ANY_PRIOR)


@of_top_k("Lemma 1")
def top_k_is_private(kept: Kept) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP.

    So are the printed probabilities and the integer table of the package.
    """
    return kept.privacy(kept.listed, kept.tabulated)


@top_k_is_private.false
def _(kept: Kept) -> Comparison:
    """The same where any other label gives one of the `k` by its prior, rather than any of them alike."""
    mass = total(kept.prior[v] for v in kept.likeliest)
    drawn = tuple(share / mass if v in kept.likeliest else Fraction(0) for v, share in enumerate(kept.prior))
    rows = tuple(row if y in kept.likeliest else drawn for y, row in enumerate(kept.listed))
    return at_most(largest_ratio(rows), kept.ratio)


@of_top_k("Lemma 1: integer tables", kind="ours", false=LESS)
def top_k_table_is_as_printed(kept: Kept, *, share: Fraction = Fraction(1)) -> Comparison:
    """The integer table of the package for RRTop-k has the printed probabilities, up to 1e-9."""
    printed = top_k_rows(kept.prior, kept.k, 1 + share * (kept.ratio - 1))
    gaps = (abs(p - q) for p, q in zip(chain(*kept.tabulated), chain(*printed), strict=True))
    return at_most(max(gaps), Fraction(ROUNDING))


@of_top_k(
    "Appendix A.1",
    corrected=Variant("The same where `k` is at least 2; where it is 1 the output is certain for all labels.", alike=1),
    false=Variant("The output is least likely for a label that is not kept: with probability ``1 / k``.", alike=99),
)
def another_kept_label_is_least_likely(kept: Kept, *, alike: int = 0) -> Comparison:
    """RRTop-k gives an output least likely for another label that is kept: with probability ``1 / (E + k - 1)``.

    Where `k` is 1 there is no such label.
    """
    chance = Fraction(1, kept.k) if kept.k <= alike else 1 / (kept.ratio + kept.k - 1)
    found = (min(row[v] for row in rows) for rows in (kept.listed, kept.tabulated) for v in kept.likeliest)
    return worst(*(equal(each, chance, tolerance=ROUNDING, scale=1) for each in found))


ALL_LABELS = "The same with ``E / (E + K - 1)``, of randomized response on all labels."


@of_top_k("Section 3.1: objective of RRTop-k", false=Variant(ALL_LABELS, all_labels=True))
def top_k_keeps_the_label(kept: Kept, *, all_labels: bool = False) -> Comparison:
    """RRTop-k keeps a label that follows the prior with ``E / (E + k - 1)`` times the prior of the `k` likeliest."""
    share = kept.ratio / (kept.ratio + (kept.size if all_labels else kept.k) - 1)
    chance = share * total(kept.prior[y] for y in kept.likeliest)
    found = (objective(kept.prior, rows) for rows in (kept.listed, kept.tabulated))
    return worst(*(equal(each, chance, tolerance=ROUNDING) for each in found))


@of_the_best_k("Corollary 2")
def with_prior_is_private(task: Task) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP.

    So are the printed probabilities and the integer table of the package.
    """
    return task.privacy(task.listed, task.tabulated)


@with_prior_is_private.false
def _(task: Task) -> Comparison:
    """The same where a label that is not kept has the number of labels raised until it is."""
    least = best_k(task.prior, task.ratio)
    ranks = sorted(range(task.size), key=lambda y: -task.prior[y])
    rows = (top_k_rows(task.prior, max(least, ranks.index(y) + 1), task.ratio)[y] for y in range(task.size))
    return at_most(largest_ratio(tuple(rows)), task.ratio)


@of_the_best_k("Corollary 2: integer tables", kind="ours", false=LESS)
def with_prior_table_is_as_good(task: Task, *, share: Fraction = Fraction(1)) -> Comparison:
    """The integer table of the package for RRWithPrior keeps the label as often as printed, up to 1e-9.

    Tables themselves may differ where priors or numbers of labels are equally good.
    """
    ratio = 1 + share * (task.ratio - 1)
    printed = objective(task.prior, top_k_rows(task.prior, best_k(task.prior, ratio), ratio))
    return equal(objective(task.prior, task.tabulated), printed, tolerance=ROUNDING)


class Sampled(Task):
    """A prior of few labels, a privacy ratio, and how many random bits are followed."""

    depth: int

    def law(self, batch: RRWithPriorBatch, y: int) -> tuple[dict[int, Fraction], Fraction]:
        """Law of the outputs of a label, as far as the bits decide them, and what they leave undecided."""
        found = dict.fromkeys(range(self.size), Fraction(0))
        undecided = Fraction(0)
        pending: list[tuple[int, ...]] = [()]
        while pending:
            bits = pending.pop()
            chance = Fraction(1, 1 << len(bits))
            try:
                found[int(batch.sample([y], source=_Written(bits))[0])] += chance
            except EOFError:
                if len(bits) < self.depth:
                    pending += [(*bits, 0), (*bits, 1)]
                else:
                    undecided += chance
        return found, undecided


class _Written:
    """A source of words of one bit, written down beforehand; an EOFError where they end."""

    width: ClassVar[int] = 1
    private: ClassVar[bool] = False

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.left = list(bits)

    def words(self, count: int) -> Words:
        """The next words."""
        if count > len(self.left):
            raise EOFError
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def _sampled(budget: Budget) -> Iterator[Sampled]:
    priors, ratios = ([1, 1], [3, 2, 1], [4, 4, 3, 1], [9, 1, 0]), budget.pick(quick=RATIOS[:4], full=RATIOS)
    for weights, ratio in product(priors, ratios):
        yield Sampled(shares(weights), ratio, budget.pick(quick=10, full=16))


@claim(
    "G21",
    "Corollary 2: sampler",
    kind="ours",
    on=_sampled,
    given="the sampler for many priors, from words of one bit, all of them followed until they decide",
    false=Variant("The same where the coin that keeps a label is ``E / (E + k - 1)``, and else any is drawn.", again=1),
)
def sampler_is_as_printed(task: Sampled, *, again: int = 0) -> Comparison:
    """Outputs have the probabilities of RRWithPrior, up to those of bits that have not decided; all bits are exact."""
    batch = rr_with_prior_batch([task.floats], task.epsilon)
    ratio, k = privacy_ratio(task.epsilon), int(batch.k_star[0])
    said = []
    for y in range(task.size):
        found, undecided = task.law(batch, y)
        stays = (ratio - 1 + again) / (ratio + k - 1) if batch.kept[0, y] else Fraction(0)
        for v in np.flatnonzero(batch.kept[0]).tolist():
            chance = (1 - stays) / k + stays * (v == y)
            said += [at_most(found[v], chance), at_most(chance, found[v] + undecided)]
    return worst(*said)


def _flat(_: Budget) -> Iterator[Task]:
    return (Task(shares([1] * k), ratio) for k in (1, 2, 3, 7, 10, 49) for ratio in RATIOS)


HALF = "The same where the model finds the first label half as likely as each other one."


@claim("G21", "Section 4: one stage", on=_flat, given="a flat first prior", false=Variant(HALF, first=1))
def one_stage_is_randomized_response(task: Task, *, first: int = 2) -> Comparison:
    """One stage of training, whose model gives all labels equal probabilities, asks by randomized response on all."""
    prior = shares([first] + [2] * (task.size - 1))
    found = table(rr_with_prior([float(share) for share in prior], task.epsilon))
    return worst(*map(equal, chain(*found), chain(*table(rr(range(task.size), task.epsilon)))))
