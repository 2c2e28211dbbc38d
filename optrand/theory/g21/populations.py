"""Lower bounds that grow as epsilon falls: copies of examples, and populations ([G21], Proposition 12 and Lemma 15).

Directions have fair signs for labels, as in :mod:`optrand.theory.g21.lower_bounds`; `j` occurrences of one tell of its
sign as much as a budget of ``j epsilon`` allows. So all algorithms are argued about; losses are in units of ``D L``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import binom

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.base.validation import Floats
from optrand.theory.engine import Comparison, at_most, claim, corrected, false
from optrand.theory.g21.lower_bounds import group_delta, known_of_a_sign

CONSTANT = Fraction(1, 10)
"""Constant of Lemma 15 and Proposition 12."""

E1 = exp_bracket(1.0)[0] - 1
"""``e - 1``, rounded down."""


@dataclass(frozen=True)
class Copied:
    """A budget of at most 1, and `n` examples: directions, ``floor(1 / epsilon)`` times each, and zeros."""

    epsilon: Fraction
    delta: Fraction
    n: int

    @property
    def copies(self) -> int:
        """How often each direction occurs."""
        return math.floor(1 / self.epsilon)

    @cached_property
    def growth(self) -> Fraction:
        """Delta of as many changed labels as there are copies, in units of that of one label: Fact 14."""
        return group_delta(privacy_ratio(float(self.epsilon)), Fraction(1), labels=self.copies)

    @property
    def ignorant(self) -> float:
        """Loss of the parameter 0 over fair signs: ``(m copies / n) / (2 sqrt(m))`` for `m` directions."""
        return self.copies * math.sqrt(self.n // self.copies) / (2 * self.n)

    @cached_property
    def least(self) -> float:
        """What every algorithm loses at least."""
        ratio = privacy_ratio(float(self.epsilon)) ** self.copies
        return self.ignorant * (1 - math.sqrt(known_of_a_sign(ratio, self.delta * self.growth)))


LISTED = ("1", "1/2", "1/3", "3/4", "501/1000", "499/1000", "1/10", "1/11", "2/21", "1/100", "2/201", "1/1000")
EPSILONS = [*map(Fraction, LISTED), *(Fraction(i, 40) for i in range(1, 40))]


def _copied(_: int) -> Iterator[Copied]:
    for epsilon in EPSILONS:
        least = math.ceil(1 / epsilon)
        sizes = sorted({least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7})
        yield from (Copied(epsilon, delta, n) for n, delta in product(sizes, (Fraction(0), CONSTANT * epsilon)))


def _smallest(_: int) -> Iterator[Copied]:
    return (Copied(epsilon, Fraction(0), math.ceil(1 / epsilon)) for epsilon in EPSILONS)


@claim(
    "G21 Lemma 15: with constants",
    _copied,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 10; all LabelDP algorithms, even 0",
)
@false(
    "On these data sets any algorithm loses at least ``D L / (2 sqrt(epsilon n))``.",
    lambda copied: at_most(0.5 / math.sqrt(copied.epsilon * copied.n), copied.ignorant, tolerance=1e-9),
)
def copies_are_hard(copied: Copied) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set of `n` examples."""
    claimed = float(CONSTANT) / math.sqrt(copied.epsilon * copied.n)
    return at_most([claimed, copied.least], [copied.least, copied.ignorant], tolerance=1e-9)


@claim("G21 Lemma 15: copies", _smallest, given="epsilon at most 1")
@false("The same with a growth of delta by ``1 / epsilon``, the number of copies.", growth=Fraction(1))
def copies_share_a_budget(copied: Copied, growth: Fraction = E1) -> Comparison:
    """With ``k = floor(1 / epsilon)``, ``1/2 <= k epsilon <= 1``, and delta grows at most by ``(e - 1) / epsilon``."""
    together = copied.copies * copied.epsilon
    return at_most([Fraction(1, 2), together, copied.growth], [together, 1, growth / copied.epsilon])


@claim("G21 Lemma 15: last line", _smallest, given="epsilon at most 1, C = 1/10")
@corrected("With ``delta = C epsilon`` the copies have a delta of at most ``(e - 1) C``.", power=1)
@false("With ``delta = C epsilon`` the copies have a delta of at most `C`.", power=1, growth=Fraction(1))
def delta_of_the_last_line(copied: Copied, power: int = -1, growth: Fraction = E1) -> Comparison:
    """With ``delta = C / epsilon`` the copies have a delta of at most ``(e - 1) C``: small, if `C` is."""
    return at_most(copied.growth * CONSTANT * copied.epsilon**power, growth * CONSTANT)


@dataclass(frozen=True)
class Population:
    """A uniform distribution over signed directions, a sample of it, and a budget."""

    n: int
    epsilon: Fraction
    delta: Fraction
    directions: int

    @cached_property
    def occurrences(self) -> Floats:
        """The probabilities that a direction is drawn 0, 1, ... times."""
        found: Floats = binom.pmf(np.arange(self.n + 1), self.n, 1 / self.directions)
        return found

    def lost(self, known: float) -> float:
        """Return the loss if the correlation with a sign is `known`."""
        return 0.5 * (1 - known) / math.sqrt(self.directions)

    @property
    def least(self) -> float:
        """A lower bound of every algorithm's loss, from the knowledge of a sign in the mean over its occurrences."""
        ratio, delta = math.exp(self.epsilon), float(self.delta)
        # Beyond this number of labels the ratio is no float, and the sign is known in floats.
        labels = (min(j, math.floor(600 / self.epsilon)) for j in range(self.n + 1))
        known = [known_of_a_sign(ratio**j, group_delta(ratio, delta, labels=j)) for j in labels]
        return self.lost(math.sqrt(min(float(self.occurrences @ known), 1.0)))

    @cached_property
    def attained(self) -> float:
        """Loss of randomized response on every label and the majority of them in every direction."""
        kept, known = 1 / (1 + math.exp(-self.epsilon)), np.zeros(self.n + 1)
        for j in np.flatnonzero(self.occurrences > 1e-12):
            right = np.arange(j + 1)
            known[j] = np.sign(2 * right - j) @ binom.pmf(right, j, kept)
        return self.lost(float(self.occurrences @ known))

    def claimed(self, constant: Fraction, power: int = 1) -> float:
        """Return that constant times ``1 / sqrt(epsilon^power n)``."""
        return float(constant) / math.sqrt(self.epsilon**power * self.n)


def _populations(_: int) -> Iterator[Population]:
    for epsilon in map(Fraction, ("1", "1/2", "2/3", "1/5", "3/40", "1/20", "1/40", "1/100")):
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least + 1, 500}):
            yield from (Population(n, epsilon, share * epsilon, math.ceil(epsilon * n)) for share in (0, CONSTANT / 2))


def _follow_the_proof(epsilon: Fraction, directions: int) -> tuple[Population, float]:
    """Return the population of the paper's own proof, under the delta that Lemma 16 leaves for it, and its bound.

    That is Lemma 16 with a delta of epsilon, Lemma 15, and the last line of Proposition 13.
    """
    logarithm = math.log(2 / epsilon)
    spent = 4 * float(epsilon) * logarithm
    copies, delta = math.floor(1 / spent), Fraction(math.exp(-spent) * float(epsilon) / (8 * logarithm))
    population = Population(directions * copies, epsilon, delta, directions)
    together, grown = math.exp(copies * spent), group_delta(math.exp(spent), float(epsilon), labels=copies)
    return population, population.lost(math.sqrt((together + grown) / (together + 1)))


STEEPER = "Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population."


def _steeper(population: Population) -> Comparison:
    return at_most(population.claimed(CONSTANT, power=2), population.attained)


@claim(
    "G21 Proposition 12",
    epsilon=map(Fraction, ("1/20", "3/80", "1/40", "1/60", "1/100")),
    directions=(100, 300),
    given="epsilon at most 1/20; all (epsilon, delta)-LabelDP algorithms",
    undecided="the constant and the powers of logarithms in the bound; how large n, how small delta must be",
)
@false(STEEPER, lambda epsilon, directions: _steeper(_follow_the_proof(epsilon, directions)[0]))
def the_route_is_within_a_logarithm(epsilon: Fraction, directions: int) -> Comparison:
    """Any algorithm loses at least ``D L / sqrt(epsilon n)`` on some population, up to a constant and logarithms.

    Tried is the paper's proof, with a constant of 1/100 and ``sqrt(log(2 / epsilon))``: what it gives is at least that,
    and at most what randomized response attains. For larger epsilon its budget for empirical risk is above 1.
    """
    population, bound = _follow_the_proof(epsilon, directions)
    claimed = population.claimed(Fraction(1, 100)) / math.sqrt(math.log(2 / epsilon))
    return at_most([claimed, bound], [bound, population.attained])


@claim(
    "G21 Proposition 12: with constants",
    _populations,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 20; all LabelDP algorithms; sharper than "
    "the paper, a statement of ours",
)
@false(STEEPER, _steeper)
def a_constant_is_enough(population: Population) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some population."""
    least = population.least
    return at_most([population.claimed(CONSTANT), least], [least, population.attained], tolerance=1e-9)
