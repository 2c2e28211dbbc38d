"""Lower bounds that grow as epsilon falls: copies of examples, and populations ([G21], Proposition 12 and Lemma 15).

Directions have fair signs for labels, as in :mod:`optrand.theory.g21.lower_bounds`; `j` occurrences of one tell of its
sign as much as a budget of ``j epsilon`` allows. So all algorithms are argued about; losses are in units of ``D L``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from itertools import product, starmap

import numpy as np
from scipy.stats import binom

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.g21.lower_bounds import group_delta, known_of_a_sign
from optrand.theory.instances import Instance

__all__ = ["Copied"]

CONSTANT = Fraction(1, 10)
"""Constant of Lemma 15 and Proposition 12."""

E1 = exp_bracket(1.0)[0] - 1
"""``e - 1``, hardly less."""


class Copied(Instance):
    """A budget at most 1, and `n` examples: directions, ``floor(1 / epsilon)`` times each, and zeros for the rest."""

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


def _epsilons(budget: Budget) -> Iterator[tuple[Fraction, int]]:
    """Budgets, and the least number of examples for each."""
    listed = ["1", "1/2", "1/3", "3/4", "501/1000", "499/1000", "1/10", "1/11", "2/21", "1/100", "2/201", "1/1000"]
    steps = budget.pick(quick=40, full=400)
    for epsilon in (*map(Fraction, listed), *(Fraction(i, steps) for i in range(1, steps))):
        yield epsilon, math.ceil(1 / epsilon)


def _copied(budget: Budget) -> Iterator[Copied]:
    for epsilon, least in _epsilons(budget):
        sizes = sorted({least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7})
        yield from (Copied(epsilon, delta, n) for n, delta in product(sizes, (Fraction(0), CONSTANT * epsilon)))


@claim(
    "G21 Lemma 15: with constants",
    on=_copied,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 10; all LabelDP algorithms",
    sides=("claimed bound, or the least excess risk", "least excess risk, or what is attained"),
    false=Variant(
        "On these data sets any algorithm loses at least ``D L / (2 sqrt(epsilon n))``.",
        lambda copied: at_most(0.5 / math.sqrt(copied.epsilon * copied.n), copied.ignorant, tolerance=1e-9),
    ),
)
def copies_are_hard(copied: Copied) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set of `n` examples."""
    claimed = float(CONSTANT) / math.sqrt(copied.epsilon * copied.n)
    return worst(at_most(claimed, copied.least), at_most(copied.least, copied.ignorant, tolerance=1e-9))


SLOWER = Variant("The same with a growth of delta by ``1 / epsilon``, the number of copies.", growth=Fraction(1))
TIMES = Variant("With ``delta = C epsilon`` the copies have a delta of at most ``(e - 1) C``.", power=1)
SMALLER = Variant("With ``delta = C epsilon`` the copies have a delta of at most `C`.", power=1, growth=Fraction(1))
of_budgets = partial(
    claim, "G21", kind="text", on=lambda budget: (Copied(each, Fraction(0), least) for each, least in _epsilons(budget))
)


@of_budgets(
    "Lemma 15: copies",
    given="epsilon at most 1",
    sides=("lower end, budget of the copies, or growth of delta", "budget of the copies, upper end, or bound"),
    false=SLOWER,
)
def copies_share_a_budget(copied: Copied, growth: Fraction = E1) -> Comparison:
    """With ``k = floor(1 / epsilon)``, ``1/2 <= k epsilon <= 1``, and delta grows at most by ``(e - 1) / epsilon``."""
    together, grown = copied.copies * copied.epsilon, at_most(copied.growth, growth / copied.epsilon)
    return worst(at_most(Fraction(1, 2), together), at_most(together, 1), grown)


@of_budgets(
    "Lemma 15: last line",
    given="epsilon at most 1, C = 1/10",
    sides=("delta of the copies", "(e - 1) C, or as the form has it"),
    corrected=TIMES,
    false=SMALLER,
)
def delta_of_the_last_line(copied: Copied, power: int = -1, growth: Fraction = E1) -> Comparison:
    """With ``delta = C / epsilon`` the copies have a delta of at most ``(e - 1) C``: small, if `C` is."""
    return at_most(copied.growth * CONSTANT * copied.epsilon**power, growth * CONSTANT)


class Population(Instance, directions="m"):
    """A uniform distribution over signed directions, a sample of it, and a budget."""

    n: int
    epsilon: Fraction
    delta: Fraction
    directions: int

    @cached_property
    def occurrences(self) -> Floats:
        """How likely a direction is to be drawn 0, 1, ... times."""
        found: Floats = binom.pmf(np.arange(self.n + 1), self.n, 1 / self.directions)
        return found

    def lost(self, known: float) -> float:
        """Loss where a sign is correlated with to that degree."""
        return 0.5 * (1 - known) / math.sqrt(self.directions)

    @property
    def least(self) -> float:
        """What every algorithm loses at least, by what it knows of a sign in the mean over its occurrences."""
        ratio, delta = math.exp(self.epsilon), float(self.delta)
        labels = (
            min(j, math.floor(600 / self.epsilon)) for j in range(self.n + 1)
        )  # beyond, signs are known in floats
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
        """That constant times ``1 / sqrt(epsilon^power n)``."""
        return float(constant) / math.sqrt(self.epsilon**power * self.n)


def _populations(budget: Budget) -> Iterator[Population]:
    full = budget is Budget.FULL
    for epsilon in map(Fraction, ("1", "1/2", "2/3", "1/5", "3/40", "1/20", "1/40", "1/100", "1/400")[: 8 + full]):
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least + 1, 10_000 if full else 500}):
            yield from (Population(n, epsilon, share * epsilon, math.ceil(epsilon * n)) for share in (0, CONSTANT / 2))


class Route(Instance):
    """The paper's own proof: Lemma 16 with a delta of epsilon, Lemma 15, and the last line of Proposition 13."""

    epsilon: Fraction
    directions: int

    @cached_property
    def found(self) -> tuple[Population, float]:
        """The population that the proof ends up with, under the delta that Lemma 16 leaves for it, and its bound."""
        epsilon, logarithm = float(self.epsilon), math.log(2 / self.epsilon)
        spent = 4 * epsilon * logarithm
        copies, delta = math.floor(1 / spent), Fraction(math.exp(-spent) * epsilon / (8 * logarithm))
        population = Population(self.directions * copies, self.epsilon, delta, self.directions)
        together, grown = math.exp(copies * spent), group_delta(math.exp(spent), epsilon, labels=copies)
        return population, population.lost(math.sqrt((together + grown) / (together + 1)))


def _routes(budget: Budget) -> Iterator[Route]:
    directions = budget.pick(quick=(100, 300, 1_000), full=(100, 200, 300, 500, 1_000, 3_000))
    return starmap(Route, product(map(Fraction, ["1/20", "3/80", "1/40", "1/60", "1/100", "1/300"]), directions))


STEEPER = "Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population."


def _steeper(population: Population) -> Comparison:
    return at_most(population.claimed(CONSTANT, power=2), population.attained)


@claim(
    "G21 Proposition 12",
    on=_routes,
    given="epsilon at most 1/20; all (epsilon, delta)-LabelDP algorithms",
    sides=("claimed bound, or what the proof gives", "what the proof gives, or what is attained"),
    quantifier="the constant and the powers of logarithms in the bound; how large n, how small delta must be",
    false=Variant(STEEPER, lambda route: _steeper(route.found[0])),
)
def the_route_is_within_a_logarithm(route: Route) -> Comparison:
    """Any algorithm loses at least ``D L / sqrt(epsilon n)`` on some population, up to a constant and logarithms.

    Tried is the paper's proof, with a constant of 1/100 and ``sqrt(log(2 / epsilon))``: what it gives is at least that,
    and at most what randomized response attains. For larger epsilon its budget for empirical risk is above 1.
    """
    population, bound = route.found
    claimed = population.claimed(Fraction(1, 100)) / math.sqrt(math.log(2 / route.epsilon))
    return worst(at_most(claimed, bound), at_most(bound, population.attained))


@claim(
    "G21 Proposition 12: with constants",
    kind="ours",
    on=_populations,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 20; all LabelDP algorithms",
    sides=("claimed bound, or the least excess risk", "least excess risk, or what is attained"),
    false=Variant(STEEPER, _steeper),
)
def a_constant_is_enough(population: Population) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some population."""
    claimed, least = population.claimed(CONSTANT), population.least
    return worst(at_most(claimed, least), at_most(least, population.attained, tolerance=1e-9))
