"""Lower bounds that grow as epsilon falls: copies of examples, and populations ([G21], Proposition 12 and Lemma 15).

Directions have fair signs for labels, as in :mod:`optrand.theory.g21.lower_bounds`; `j` occurrences of one tell of its
sign as much as a budget of ``j epsilon`` allows. So all algorithms are argued about; losses are in units of ``D L``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import binom

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.theory.engine import Comparison, at_most, claim, corrected, false
from optrand.theory.g21.lower_bounds import group_delta, known_of_a_sign

CONSTANT = Fraction(1, 10)
"""Constant of Lemma 15 and Proposition 12."""

E1 = exp_bracket(1.0)[0] - 1
"""``e - 1``, rounded down."""


def _rate(epsilon: Fraction, n: int, constant: Fraction = CONSTANT, power: int = 1) -> float:
    """Return the constant times ``1 / sqrt(epsilon^power n)``."""
    return float(constant) / math.sqrt(epsilon**power * n)


def lose_copies(epsilon: Fraction, n: int, delta: Fraction | None = None) -> float:
    """Return what every algorithm loses on average over `n` examples: directions, ``floor(1 / epsilon)`` times each.

    Without a delta, the loss of the parameter 0: ``(m copies / n) / (2 sqrt(m))`` for `m` directions.
    """
    copies = math.floor(1 / epsilon)
    ignorant = copies * math.sqrt(n // copies) / (2 * n)
    if delta is None:
        return ignorant
    ratio = privacy_ratio(float(epsilon))
    return ignorant * (1 - math.sqrt(known_of_a_sign(ratio**copies, group_delta(ratio, delta, labels=copies))))


LISTED = ("1", "1/2", "1/3", "3/4", "501/1000", "499/1000", "1/10", "1/11", "2/21", "1/100", "2/201", "1/1000")
EPSILONS = [*map(Fraction, LISTED), *(Fraction(i, 40) for i in range(1, 40))]


def _copied(_: int) -> Iterator[dict[str, Any]]:
    for epsilon in EPSILONS:
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7}):
            yield from ({"epsilon": epsilon, "n": n, "delta": share * epsilon} for share in (Fraction(0), CONSTANT))


@claim(
    "G21 Lemma 15: with constants",
    _copied,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 10; all LabelDP algorithms, even 0",
)
@false(
    "On these data sets any algorithm loses at least ``D L / (2 sqrt(epsilon n))``.",
    lambda epsilon, n: at_most(_rate(epsilon, n, Fraction(1, 2)), lose_copies(epsilon, n), tolerance=1e-9),
)
def copies_are_hard(epsilon: Fraction, n: int, delta: Fraction) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set of `n` examples."""
    least = lose_copies(epsilon, n, delta)
    return at_most([_rate(epsilon, n), least], [least, lose_copies(epsilon, n)], tolerance=1e-9)


def _grow_delta(epsilon: Fraction) -> Fraction:
    """Return the delta of ``floor(1 / epsilon)`` changed labels, in units of that of one label: Fact 14."""
    return group_delta(privacy_ratio(float(epsilon)), Fraction(1), labels=math.floor(1 / epsilon))


@claim("G21 Lemma 15: copies", epsilon=EPSILONS, given="epsilon at most 1")
@false("The same with a growth of delta by ``1 / epsilon``, the number of copies.", growth=Fraction(1))
def copies_share_a_budget(epsilon: Fraction, growth: Fraction = E1) -> Comparison:
    """With ``k = floor(1 / epsilon)``, ``1/2 <= k epsilon <= 1``, and delta grows at most by ``(e - 1) / epsilon``."""
    together = math.floor(1 / epsilon) * epsilon
    return at_most([Fraction(1, 2), together, _grow_delta(epsilon)], [together, 1, growth / epsilon])


@claim("G21 Lemma 15: last line", epsilon=EPSILONS, given="epsilon at most 1, C = 1/10")
@corrected("With ``delta = C epsilon`` the copies have a delta of at most ``(e - 1) C``.", power=1)
@false("With ``delta = C epsilon`` the copies have a delta of at most `C`.", power=1, growth=Fraction(1))
def delta_of_the_last_line(epsilon: Fraction, power: int = -1, growth: Fraction = E1) -> Comparison:
    """With ``delta = C / epsilon`` the copies have a delta of at most ``(e - 1) C``: small, if `C` is."""
    return at_most(_grow_delta(epsilon) * CONSTANT * epsilon**power, growth * CONSTANT)


def _lose(directions: int, known: float) -> float:
    """Return the loss over a uniform population of signed directions if the correlation with a sign is `known`."""
    return 0.5 * (1 - known) / math.sqrt(directions)


def lose_population(n: int, epsilon: Fraction, delta: Fraction, directions: int) -> float:
    """Return a lower bound of every algorithm's loss, from the knowledge of a sign in the mean over its occurrences."""
    ratio = math.exp(epsilon)
    # Beyond this number of labels the ratio is no float, and the sign is known in floats.
    labels = (min(j, math.floor(600 / epsilon)) for j in range(n + 1))
    known = [known_of_a_sign(ratio**j, group_delta(ratio, float(delta), labels=j)) for j in labels]
    mean = float(binom.pmf(np.arange(n + 1), n, 1 / directions) @ known)
    return _lose(directions, math.sqrt(min(mean, 1.0)))


def lose_by_majority(n: int, epsilon: Fraction, directions: int) -> float:
    """Return the loss of randomized response on every label and the majority of them in every direction."""
    chances, known = binom.pmf(np.arange(n + 1), n, 1 / directions), np.zeros(n + 1)
    for j in np.flatnonzero(chances > 1e-12):
        right = np.arange(j + 1)
        known[j] = np.sign(2 * right - j) @ binom.pmf(right, j, 1 / (1 + math.exp(-epsilon)))
    return _lose(directions, float(chances @ known))


def _follow_the_proof(epsilon: Fraction, directions: int) -> tuple[int, float]:
    """Return the number of examples and the bound of the paper's own proof, under the delta that Lemma 16 leaves.

    That is Lemma 16 with a delta of epsilon, Lemma 15, and the last line of Proposition 13.
    """
    spent = 4 * float(epsilon) * math.log(2 / epsilon)
    copies = math.floor(1 / spent)
    together, grown = math.exp(copies * spent), group_delta(math.exp(spent), float(epsilon), labels=copies)
    return directions * copies, _lose(directions, math.sqrt((together + grown) / (together + 1)))


STEEPER = "Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population."


def _steeper(n: int, epsilon: Fraction, directions: int) -> Comparison:
    return at_most(_rate(epsilon, n, power=2), lose_by_majority(n, epsilon, directions))


@claim(
    "G21 Proposition 12",
    epsilon=map(Fraction, ("1/20", "3/80", "1/40", "1/60", "1/100")),
    directions=(100, 300),
    given="epsilon at most 1/20; all (epsilon, delta)-LabelDP algorithms",
    undecided="the constant and the powers of logarithms in the bound; how large n, how small delta must be",
)
@false(STEEPER, lambda epsilon, directions: _steeper(_follow_the_proof(epsilon, directions)[0], epsilon, directions))
def the_route_is_within_a_logarithm(epsilon: Fraction, directions: int) -> Comparison:
    """Any algorithm loses at least ``D L / sqrt(epsilon n)`` on some population, up to a constant and logarithms.

    Tried is the paper's proof, with a constant of 1/100 and ``sqrt(log(2 / epsilon))``: what it gives is at least that,
    and at most what randomized response attains. For larger epsilon its budget for empirical risk is above 1.
    """
    n, bound = _follow_the_proof(epsilon, directions)
    claimed = _rate(epsilon, n, Fraction(1, 100)) / math.sqrt(math.log(2 / epsilon))
    return at_most([claimed, bound], [bound, lose_by_majority(n, epsilon, directions)])


def _populations(_: int) -> Iterator[dict[str, Any]]:
    for epsilon in map(Fraction, ("1", "1/2", "2/3", "1/5", "3/40", "1/20", "1/40", "1/100")):
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least + 1, 500}):
            found = {"n": n, "epsilon": epsilon, "directions": math.ceil(epsilon * n)}
            yield from ({**found, "delta": share * epsilon} for share in (Fraction(0), CONSTANT / 2))


@claim(
    "G21 Proposition 12: with constants",
    _populations,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 20; all LabelDP algorithms; sharper than "
    "the paper, a statement of ours",
)
@false(STEEPER, _steeper)
def a_constant_is_enough(n: int, epsilon: Fraction, delta: Fraction, directions: int) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some population."""
    least = lose_population(n, epsilon, delta, directions)
    attained = lose_by_majority(n, epsilon, directions)
    return at_most([_rate(epsilon, n), least], [least, attained], tolerance=1e-9)
