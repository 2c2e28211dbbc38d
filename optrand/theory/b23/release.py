"""Labels rounded without bias ([B23], Section 3.1), and released with a noisy prior (Algorithms 3, 4, Appendix C)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import Any

import optrand
from optrand.base._arithmetic import exp_bracket
from optrand.theory._engine import Comparison, at_most, cases, claim, corrected, false, grid
from optrand.theory._shared import Row, largest_ratio, times, total
from optrand.theory.b23.optima import exact_law

Counts = tuple[int, ...]

LENGTH = 48
"""Labels lie between 0 and this."""


def round_label(value: Fraction, knots: Row) -> dict[Fraction, Fraction]:
    """Return the law of unbiased randomized rounding of a label to its neighbours among increasing knots."""
    low, high = next((low, high) for low, high in pairwise(knots) if low <= value <= high)
    up = (value - low) / (high - low)
    return {knot: chance for knot, chance in ((low, 1 - up), (high, up)) if chance}


def _space_evenly(gaps: int) -> Row:
    return tuple(Fraction(LENGTH * i, gaps) for i in range(gaps + 1))


def variance(value: Fraction, gaps: int) -> Fraction:
    """Return the variance of a label rounded to evenly spaced knots."""
    return total(p * (knot - value) ** 2 for knot, p in round_label(value, _space_evenly(gaps)).items())


@claim(
    "B23 Section 3.1: variance of rounding",
    gaps=(1, 2, 3, 4, 6, 12, 24),
    value=[Fraction(24), *(Fraction(n, 2) for n in range(0, 97, 5))],
    given="labels of an interval, even knots; knots are added",
)
@corrected(
    "It does not grow as knots are added to others, and is at most a quarter of the squared gap.",
    lambda value, gaps: at_most(
        variance(value, 2 * gaps), [variance(value, gaps), Fraction(LENGTH, 2 * gaps) ** 2 / 4]
    ),
)
@false(
    "Of each label it becomes a quarter as the gap is halved.",
    lambda value, gaps: at_most(variance(value, 2 * gaps), variance(value, gaps) / 4),
)
def variance_shrinks(value: Fraction, gaps: int) -> Comparison:
    """As the gap between knots decreases, the variance that rounding adds to a label does not grow: one gap more."""
    return at_most(variance(value, gaps + 1), variance(value, gaps))


@lru_cache(maxsize=1_000)
def _randomize(labels: Row | Counts, counts: Counts, epsilon: float) -> tuple[Row, tuple[Row, ...]]:
    prior = [count / sum(counts) for count in counts] if any(counts) else [1 / len(counts)] * len(counts)
    return exact_law(optrand.solve(optrand.unbiased_regression([float(y) for y in labels], prior, epsilon)))


def _noise(epsilon: float) -> Fraction:
    """Return the factor ``exp(-epsilon / 2)`` between neighbouring integers: noise of scale ``2 / epsilon``."""
    return 1 / exp_bracket(epsilon / 2)[0]


def _histogram_law(counts: Counts, q: Fraction) -> dict[Counts, Fraction]:
    near = range(sum(counts) + 2)
    laws = [[(1 - q) / (1 + q) * q ** abs(x - count) if x else q**count / (1 + q) for x in near] for count in counts]
    return {seen: times(law[x] for law, x in zip(laws, seen, strict=True)) for seen in product(near, repeat=len(laws))}


def _move_one_label(counts: Counts) -> list[Counts]:
    moves = ((a, b) for a, b in permutations(range(len(counts)), 2) if counts[a])
    return [tuple(c + (i == b) - (i == a) for i, c in enumerate(counts)) for a, b in moves]


@claim(
    "B23 Algorithm 4: privacy",
    *(
        grid(counts=[counts], moved=_move_one_label(counts), epsilon=(1.0, 0.1))
        for counts in ((1, 0), (2, 0), (1, 1), (0, 3), (1, 0, 0), (1, 2, 0))
    ),
    given="two histograms that differ in one label; discrete noise, exact laws of clipped histograms",
)
@false("The same with noise of scale 1 / epsilon.", power=2)
def prior_is_private(counts: Counts, moved: Counts, epsilon: float, power: int = 1) -> Comparison:
    """Noise of scale 2 / epsilon makes the clipped histogram, and so the prior, epsilon-DP."""
    laws = [_histogram_law(each, _noise(epsilon) ** power) for each in (counts, moved)]
    return at_most(largest_ratio(laws), exp_bracket(epsilon)[1])


def _release(labels: Counts, table: Counts, first: float, second: float) -> dict[Any, Fraction]:
    """Return the joint law of the clipped noisy histogram and all noisy labels."""
    law = {}
    for seen, chance in _histogram_law(tuple(table.count(y) for y in labels), _noise(first)).items():
        outputs, rows = _randomize(labels, seen, second)
        for places in product(range(len(outputs)), repeat=len(table)):
            chances = (rows[labels.index(y)][i] for y, i in zip(table, places, strict=True))
            law[seen, tuple(outputs[i] for i in places)] = chance * times(chances)
    return law


@claim(
    "B23 Algorithm 3: privacy",
    cases(
        "labels table changed first second",
        ((0, 1), (0,), (1,), 0.25, 0.75),
        ((0, 1), (0, 1), (1, 1), 0.25, 0.75),
        ((0, 1, 3), (0,), (3,), 0.5, 1.0),
    ),
    given="tables of one to two labels, budgets epsilon_1 and epsilon_2; exact laws of histogram and noisy labels",
)
@false("They are (epsilon_1 / 2 + epsilon_2)-DP, as one count changes.", share=0.5)
def release_is_private(
    labels: Counts, table: Counts, changed: Counts, first: float, second: float, share: float = 1.0
) -> Comparison:
    """The prior and the noisy labels together are (epsilon_1 + epsilon_2)-DP."""
    laws = [_release(labels, each, first, second) for each in (table, changed)]
    return at_most(largest_ratio(laws), exp_bracket(share * first + second)[1])


def _lose_labels(first: float, epsilon: float) -> float:
    """Return the expected loss of two labels, which leave the prior unused, after its budget is spent."""
    gain = math.expm1(epsilon - first)
    return (gain + 1) / gain**2 / 2


@claim(
    "B23 Appendix C: split",
    root=[Fraction(1, part) for part in (10, 50, 250)],
    epsilon=(0.5, 1.0, 4.0),
    factor=[Fraction(1, 2), Fraction(2), Fraction(1, 3), Fraction(3, 2)],
    given="two labels, n = 2 / root**2; the root is the budget sqrt(k / n), other budgets a factor away",
    undecided="the argument is quoted from another paper and leaves factors open: only its bound is tried",
)
@false(
    "No other budget of the prior leaves less expected loss of the labels, whose prior is not used at all.",
    lambda root, epsilon, factor: at_most(*(_lose_labels(float(each), epsilon) for each in (root, factor * root))),
)
def the_root_is_best_for_the_bound(root: Fraction, factor: Fraction) -> Comparison:
    """No other budget of the prior makes the bound epsilon_1 + k / (n epsilon_1) smaller than sqrt(k / n) does."""
    return at_most(root + root**2 / root, factor * root + root**2 / (factor * root))
