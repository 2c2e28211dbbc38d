"""Randomized response on the likeliest labels is private ([G21], Lemma 1 and Corollary 2).

Algorithms 1 and 2 as printed, in fractions. The other modules of this paper use both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.mechanism.mechanism import Mechanism
from optrand.theory.engine import Comparison, Space, at_most, claim, corrected, equal, false
from optrand.theory.instances import RATIOS, settings, shares
from optrand.theory.sums import largest_ratio, total

Row = tuple[Fraction, ...]

Rows = tuple[Row, ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""

Table = NDArray[Any]
"""Fractions, in an array of objects."""

ROUNDING = 1e-9
"""Largest difference of the package's floats from the printed numbers."""

ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"


def kept_labels(prior: Row, k: int) -> tuple[int, ...]:
    """Return the `k` labels of the largest prior, of equally likely ones the smaller."""
    return tuple(sorted(sorted(range(len(prior)), key=lambda y: -prior[y])[:k]))


def top_k_rows(prior: Row, k: int, ratio: Fraction, others: Row | None = None) -> Rows:
    """Return [G21], Algorithm 1, as a table. Labels that are not kept give kept ones alike, or by the law `others`."""
    kept, labels, chance = kept_labels(prior, k), range(len(prior)), 1 / (ratio + k - 1)
    own = {(y, v): (ratio if v == y else 1) * chance for y, v in product(kept, repeat=2)}
    drawn = others or tuple(Fraction(v in kept, k) for v in labels)
    return tuple(tuple(own.get((y, v), Fraction(0)) for v in labels) if y in kept else drawn for y in labels)


def best_k(prior: Row, ratio: Fraction, *, others: int = -1) -> int:
    """Return the number of labels that [G21], Algorithm 2, keeps: all are tried, the first of the best is taken."""
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k + others))


def with_prior_rows(prior: Row, ratio: Fraction) -> Rows:
    """Return [G21], Algorithm 2, as a table."""
    return top_k_rows(prior, best_k(prior, ratio), ratio)


def objective(prior: Row, rows: Rows) -> Fraction:
    """Return the probability that the output is the label, where labels follow the prior."""
    return total(share * rows[y][y] for y, share in enumerate(prior))


def table(mechanism: Mechanism) -> Rows:
    """Return the exact laws of a mechanism's outputs, by its integer table; zeros for labels that never occur."""
    outputs, rows = mechanism.outputs.astype(int).tolist(), mechanism.weights.tolist()
    found = (dict(zip(outputs, row, strict=True)) for row in rows)
    return tuple(tuple(Fraction(law.get(v, 0), mechanism.total) for v in range(len(rows))) for law in found)


@dataclass(frozen=True)
class TopK:
    """Randomized response on the `k` likeliest labels of a prior."""

    prior: Row
    ratio: Fraction
    k: int

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.prior)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The labels that are kept."""
        return kept_labels(self.prior, self.k)

    @cached_property
    def rows(self) -> Rows:
        """Algorithm 1 as printed."""
        return top_k_rows(self.prior, self.k, self.ratio)


def tasks(count: int, *, most: int) -> Space:
    """Return priors and ratios of :func:`~optrand.theory.instances.settings`."""
    return lambda times: ({"prior": each.prior, "ratio": each.ratio} for each in settings(count, most=most)(times))


def top_ks(count: int, *, most: int) -> Space:
    """Return tasks with each number of labels kept."""
    made = tasks(count, most=most)
    return lambda times: (TopK(**each, k=k) for each in made(times) for k in range(1, len(each["prior"]) + 1))


KEPT = (lambda _: [TopK((Fraction(1),), Fraction(2), 1)]), top_ks(15, most=9)
ANY_NUMBER = "any prior, any number of labels kept, epsilon above 0"


def _draw_others_by_prior(kept: TopK) -> Comparison:
    mass = total(kept.prior[v] for v in kept.kept)
    drawn = tuple(share / mass * (v in kept.kept) for v, share in enumerate(kept.prior))
    return at_most(largest_ratio(top_k_rows(kept.prior, kept.k, kept.ratio, drawn)), kept.ratio)


@claim("G21 Lemma 1", *KEPT, given=ANY_NUMBER)
@false("The same where any other label gives one of the `k` by its prior, not all alike.", _draw_others_by_prior)
def top_k_is_private(kept: TopK) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP."""
    return at_most(largest_ratio(kept.rows), kept.ratio)


@claim("G21 Appendix A.1", *KEPT, given=ANY_NUMBER)
@corrected("The same where `k` is at least 2; where it is 1 the output is certain for all labels.", alike=1)
@false("The output is least likely for a label that is not kept: with probability ``1 / k``.", alike=99)
def another_kept_label_is_least_likely(kept: TopK, *, alike: int = 0) -> Comparison:
    """RRTop-k gives an output least likely for another label that is kept: with probability ``1 / (E + k - 1)``."""
    chance = Fraction(1, kept.k) if kept.k <= alike else 1 / (kept.ratio + kept.k - 1)
    return equal([min(row[v] for row in kept.rows) for v in kept.kept], chance)


@claim("G21 Section 3.1: objective of RRTop-k", *KEPT, given=ANY_NUMBER)
@false("The same with ``E / (E + K - 1)``, of randomized response on all labels.", all_labels=True)
def top_k_keeps_the_label(kept: TopK, *, all_labels: bool = False) -> Comparison:
    """RRTop-k keeps a label that follows the prior with ``E / (E + k - 1)`` times the prior of the `k` likeliest."""
    share = kept.ratio / (kept.ratio + (kept.size if all_labels else kept.k) - 1)
    return equal(objective(kept.prior, kept.rows), share * total(kept.prior[y] for y in kept.kept))


def _raise_k_until_kept(prior: Row, ratio: Fraction) -> Comparison:
    ranks = sorted(range(len(prior)), key=lambda y: -prior[y])
    counts = [max(best_k(prior, ratio), ranks.index(y) + 1) for y in range(len(prior))]
    return at_most(largest_ratio([top_k_rows(prior, k, ratio)[y] for y, k in enumerate(counts)]), ratio)


@claim("G21 Corollary 2", tasks(100, most=9), given=ANY_PRIOR)
@false("The same where a label that is not kept has the number of labels raised until it is.", _raise_k_until_kept)
def with_prior_is_private(prior: Row, ratio: Fraction) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP."""
    return at_most(largest_ratio(with_prior_rows(prior, ratio)), ratio)


@claim("G21 Section 4: one stage", k=(1, 2, 3, 7, 10, 49), ratio=RATIOS, given="a flat first prior")
@false("The same where the model finds the first label half as likely as each other one.", first=1)
def one_stage_is_randomized_response(k: int, ratio: Fraction, first: int = 2) -> Comparison:
    """One stage of training, whose model gives all labels equal probabilities, asks by randomized response on all."""
    everything = (np.ones((k, k), dtype=int) + np.eye(k, dtype=int) * (ratio - 1)) / (ratio + k - 1)
    return equal(np.array(with_prior_rows(shares([first] + [2] * (k - 1)), ratio)), everything)
