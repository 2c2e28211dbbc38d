"""Randomized response on the likeliest labels is private ([G21], Lemma 1 and Corollary 2).

The tables here are written down from Algorithms 1 and 2 as they are printed, in fractions, and know nothing of
:mod:`optrand.closed_forms`; the other modules of this paper use them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.closed_forms import rr_top_k, rr_with_prior
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.solution import Solution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, Number, at_most, equal, worst
from optrand.theory.instances import Setting, listed, settings

__all__ = ["CLAIMS", "Rows", "best_k", "kept_labels", "largest_ratio", "objective", "top_k_rows"]

Rows = tuple[tuple[Fraction, ...], ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""

ROUNDING = 1e-9
"""What the integer tables of the package may differ from the printed probabilities, as a share of the largest."""

SLIGHTLY_LESS = Fraction(999, 1000)
"""Of the distance of the ratio from 1, what the false variants allow."""

WITHOUT_BUDGET = Setting(
    tuple(map(Fraction, range(3))), tuple(Fraction(weight, 6) for weight in (3, 2, 1)), Fraction(1)
)
"""An epsilon of 0, where a release may say nothing."""


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


def best_k(prior: Sequence[Fraction], ratio: Fraction) -> int:
    """The number of labels that [G21], Algorithm 2, keeps: all are tried, the first of the best is taken.

    Examples
    --------
    >>> best_k([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], Fraction(3))
    2
    """
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k - 1))


def objective(prior: Sequence[Fraction], rows: Rows) -> Fraction:
    """How often the output is the label, where labels follow the prior."""
    return sum((share * rows[y][y] for y, share in enumerate(prior)), Fraction(0))


def largest_ratio(rows: Rows) -> Number:
    """The largest ratio of two probabilities of one output; infinite where only one of them is 0."""
    ratios: list[Number] = []
    for column in zip(*rows, strict=True):
        if any(column):
            ratios.append(max(column) / min(column) if min(column) else math.inf)
    return max(ratios)


@dataclass(frozen=True)
class _Kept:
    """A prior, a privacy ratio and a number of labels to keep."""

    prior: tuple[Fraction, ...]
    ratio: Fraction
    k: int

    def __str__(self) -> str:
        return f"prior {listed(self.prior)}, E = {self.ratio}, k = {self.k}"

    @cached_property
    def rows(self) -> Rows:
        """The table as printed."""
        return top_k_rows(self.prior, self.k, self.ratio)

    @cached_property
    def mechanism(self) -> Mechanism:
        """What the package would sample from."""
        return tabulate(rr_top_k(_floats(self.prior), self.k, math.log(self.ratio)))


def _kept(budget: Budget) -> Iterator[_Kept]:
    yield _Kept((Fraction(1),), Fraction(2), 1)
    for setting in settings(budget.pick(quick=60, full=1_500), most=9):
        yield from (_Kept(setting.prior, setting.ratio, k) for k in range(1, setting.k + 1))
    yield from (_Kept(WITHOUT_BUDGET.prior, WITHOUT_BUDGET.ratio, k) for k in range(1, WITHOUT_BUDGET.k + 1))


def _tabulated(budget: Budget) -> Iterator[_Kept]:
    for number, setting in enumerate(settings(budget.pick(quick=20, full=600), most=9, seed=1)):
        yield _Kept(setting.prior, setting.ratio, number % setting.k + 1)


def top_k_is_private(kept: _Kept) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP.

    Compared are the largest ratio of two probabilities of one output, and `E`. (The proof's least likely label is
    another one that is kept; where `k` is 1 there is none, and the ratio is 1.)
    """
    return at_most(largest_ratio(kept.rows), kept.ratio)


def top_k_with_prior_draws_is_private(kept: _Kept) -> Comparison:
    """The same where any other label gives one of the `k` by its prior, rather than any of them alike."""
    likeliest = kept_labels(kept.prior, kept.k)
    total = sum((kept.prior[v] for v in likeliest), Fraction(0))
    drawn = tuple(share / total if v in likeliest else Fraction(0) for v, share in enumerate(kept.prior))
    rows = tuple(row if y in likeliest else drawn for y, row in enumerate(kept.rows))
    return at_most(largest_ratio(rows), kept.ratio)


def top_k_table_is_private(kept: _Kept) -> Comparison:
    """The integer table of the package for RRTop-k is epsilon-DP, and has the printed probabilities."""
    return worst(_private(kept.mechanism), *_alike(kept.mechanism, kept.rows))


def top_k_table_is_private_below(kept: _Kept) -> Comparison:
    """The same at a ratio whose distance from 1 is a thousandth less."""
    return worst(_private(kept.mechanism, share=SLIGHTLY_LESS), *_alike(kept.mechanism, kept.rows))


@dataclass(frozen=True)
class _Chosen:
    """A prior and a privacy ratio: the rest is chosen by RRWithPrior."""

    setting: Setting

    def __str__(self) -> str:
        return f"prior {listed(self.setting.prior)}, E = {self.setting.ratio}"

    @cached_property
    def rows(self) -> Rows:
        """The table as printed."""
        prior, ratio = self.setting.prior, self.setting.ratio
        return top_k_rows(prior, best_k(prior, ratio), ratio)

    @cached_property
    def mechanism(self) -> Mechanism:
        """What the package would sample from."""
        return tabulate(self._solution)

    @cached_property
    def _solution(self) -> Solution:
        return rr_with_prior(_floats(self.setting.prior), math.log(self.setting.ratio))


def _chosen(budget: Budget) -> Iterator[_Chosen]:
    yield from map(_Chosen, settings(budget.pick(quick=200, full=5_000), most=9, seed=2))
    yield _Chosen(WITHOUT_BUDGET)


def _chosen_tables(budget: Budget) -> Iterator[_Chosen]:
    return map(_Chosen, settings(budget.pick(quick=20, full=600), most=9, seed=3))


def with_prior_is_private(chosen: _Chosen) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP."""
    return at_most(largest_ratio(chosen.rows), chosen.setting.ratio)


def with_prior_and_label_is_private(chosen: _Chosen) -> Comparison:
    """The same where a label that is not kept has the number of labels raised until it is."""
    prior, ratio = chosen.setting.prior, chosen.setting.ratio
    least = best_k(prior, ratio)
    ranks = sorted(range(len(prior)), key=lambda y: -prior[y])
    rows = tuple(top_k_rows(prior, max(least, ranks.index(y) + 1), ratio)[y] for y in range(len(prior)))
    return at_most(largest_ratio(rows), ratio)


def with_prior_table_is_private(chosen: _Chosen) -> Comparison:
    """The integer table of the package for RRWithPrior is epsilon-DP, and keeps the label as often as printed."""
    return worst(_private(chosen.mechanism), _as_good(chosen))


def with_prior_table_is_private_below(chosen: _Chosen) -> Comparison:
    """The same at a ratio whose distance from 1 is a thousandth less."""
    return worst(_private(chosen.mechanism, share=SLIGHTLY_LESS), _as_good(chosen))


def _floats(prior: tuple[Fraction, ...]) -> list[float]:
    return [float(share) for share in prior]


def _private(mechanism: Mechanism, *, share: Fraction = Fraction(1)) -> Comparison:
    """Integers against a ratio that is below ``exp(epsilon)`` for certain."""
    rows = tuple(tuple(map(Fraction, row)) for row in mechanism.weights.tolist())
    return at_most(largest_ratio(rows), 1 + share * (exp_bracket(mechanism.epsilon)[0] - 1))


def _alike(mechanism: Mechanism, rows: Rows) -> Iterator[Comparison]:
    """Each probability of the package against the printed one."""
    outputs = mechanism.outputs.astype(int)
    for label, weights in zip(rows, mechanism.weights.tolist(), strict=True):
        found = dict(zip(outputs.tolist(), weights, strict=True))
        for v, chance in enumerate(label):
            yield equal(Fraction(found.get(v, 0), mechanism.total), chance, tolerance=ROUNDING, scale=1)


def _as_good(chosen: _Chosen) -> Comparison:
    """How often the label is kept: tables themselves may differ where priors or numbers of labels are equally good."""
    mechanism = chosen.mechanism
    hit = np.equal.outer(mechanism.labels, mechanism.outputs)
    kept = (Fraction(int(own), mechanism.total) for own in (mechanism.weights * hit).sum(axis=1))
    found = sum((share * own for share, own in zip(chosen.setting.prior, kept, strict=True)), Fraction(0))
    return equal(found, objective(chosen.setting.prior, chosen.rows), tolerance=ROUNDING)


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 1",
        hypothesis="any prior, any number of labels kept, epsilon at least 0",
        instances=_kept,
        printed=top_k_is_private,
        false=top_k_with_prior_draws_is_private,
    ),
    Claim(
        paper="G21",
        number="Lemma 1",
        part="integer tables",
        hypothesis="any prior, any number of labels kept, epsilon above 0",
        instances=_tabulated,
        printed=top_k_table_is_private,
        false=top_k_table_is_private_below,
    ),
    Claim(
        paper="G21",
        number="Corollary 2",
        hypothesis="any prior, epsilon at least 0",
        instances=_chosen,
        printed=with_prior_is_private,
        false=with_prior_and_label_is_private,
    ),
    Claim(
        paper="G21",
        number="Corollary 2",
        part="integer tables",
        hypothesis="any prior, epsilon above 0",
        instances=_chosen_tables,
        printed=with_prior_table_is_private,
        false=with_prior_table_is_private_below,
    ),
)
