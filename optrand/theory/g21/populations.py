"""What private learning of a population loses at least ([G21], Proposition 12).

The population is uniform over `m` orthogonal directions with fair signs for labels, as in
:mod:`optrand.theory.g21.signs`; a direction that occurs `j` times in the sample is known as under a budget of ``j
epsilon``. With ``m = ceil(epsilon n)`` that is a budget of about 1, and the excess risk is at least a constant times
``D L / sqrt(m)``. This argues about all algorithms, needs no logarithm, and takes neither the paper's way over
empirical risk nor its "sufficiently large n": ``n >= 1 / epsilon`` and ``delta <= epsilon / 20`` are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.g21.groups import group_delta
from optrand.theory.g21.least_risk import known_of_a_sign

__all__ = ["CLAIMS"]

CONSTANT = Fraction(1, 10)
"""What stands for the constant of Proposition 12, of the direct argument."""

ROUTED_CONSTANT = Fraction(1, 100)
"""The same of the paper's way over empirical risk, beside one root of a logarithm."""

TOLERANCE = 1e-9

LARGEST_EXPONENT = 600
"""Of a budget; beyond it, what is known of a sign is 1 in floats."""


@dataclass(frozen=True)
class _Population:
    """A uniform distribution over signed directions, a sample and a budget; losses are in units of ``D L``."""

    n: int
    epsilon: Fraction
    delta: Fraction
    directions: int

    @cached_property
    def occurrences(self) -> Floats:
        """How likely a direction is to be drawn 0, 1, ... times."""
        from scipy.special import gammaln, xlogy

        j, share = np.arange(self.n + 1), 1 / self.directions
        chosen = gammaln(self.n + 1) - gammaln(j + 1) - gammaln(self.n - j + 1)
        found: Floats = np.exp(chosen + xlogy(j, share) + xlogy(self.n - j, 1 - share))
        return found

    @property
    def least(self) -> float:
        """What every algorithm loses at least, by what it knows of a sign in the mean over its occurrences."""
        ratio, delta = math.exp(self.epsilon), float(self.delta)
        labels = np.minimum(np.arange(self.n + 1), math.floor(LARGEST_EXPONENT / self.epsilon)).tolist()
        known = [known_of_a_sign(ratio**j, group_delta(ratio, delta, labels=j)) for j in labels]
        return (1 - math.sqrt(min(float(self.occurrences @ known), 1.0))) / (2 * math.sqrt(self.directions))

    @cached_property
    def attained(self) -> float:
        """What is lost by randomized response on every label and the majority of them in every direction.

        That a majority of `j` labels is right, less that it is wrong, is a sum of binomials; occurrences that are
        likelier than 1e-12 are counted, and the rest as if nothing were known.
        """
        from scipy.special import gammaln

        kept = 1 / (1 + math.exp(-self.epsilon))
        known = np.zeros(self.n + 1)
        for j in np.flatnonzero(self.occurrences > 1e-12):
            right = np.arange(j + 1)
            chances = np.exp(
                gammaln(j + 1)
                - gammaln(right + 1)
                - gammaln(j - right + 1)
                + right * math.log(kept)
                + (j - right) * math.log1p(-kept)
            )
            known[j] = np.sign(2 * right - j) @ chances
        return (1 - float(self.occurrences @ known)) / (2 * math.sqrt(self.directions))

    def claimed(self, constant: Fraction) -> float:
        """That constant times ``1 / sqrt(epsilon n)``."""
        return float(constant) / math.sqrt(self.epsilon * self.n)

    def __str__(self) -> str:
        return f"n = {self.n}, epsilon {self.epsilon}, delta {self.delta}, m = {self.directions}"


EPSILONS = tuple(map(Fraction, ("1", "1/2", "2/3", "1/5", "3/40", "1/20", "1/40", "1/100")))


def _populations(budget: Budget) -> Iterator[_Population]:
    for epsilon in (*EPSILONS, *budget.pick(quick=(), full=(Fraction(1, 400),))):
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least + 1, budget.pick(quick=500, full=10_000)}):
            for share in (Fraction(0), Fraction(1, 20)):
                yield _Population(n, epsilon, share * epsilon, math.ceil(epsilon * n))


def a_constant_is_enough(population: _Population) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some population.

    Where delta is at most ``epsilon / 20`` and n at least ``1 / epsilon``: the proposition has a constant without a
    name, logarithms and a sufficiently large n. Compared are that, what no algorithm goes below, and what one attains.
    """
    return worst(
        at_most(population.claimed(CONSTANT), population.least),
        at_most(population.least, population.attained, tolerance=TOLERANCE),
    )


def loss_grows_with_the_budget(population: _Population) -> Comparison:
    """Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population."""
    return _grows(population, CONSTANT)


def _grows(population: _Population, constant: Fraction) -> Comparison:
    return at_most(population.claimed(constant) / math.sqrt(population.epsilon), population.attained)


@dataclass(frozen=True)
class _Route:
    """The paper's own proof: Lemma 16 with a delta of epsilon, Lemma 15, and the last line of Proposition 13."""

    epsilon: Fraction
    directions: int

    @property
    def logarithm(self) -> float:
        """Of ``2 / delta``."""
        return math.log(2 / self.epsilon)

    @property
    def empirical_epsilon(self) -> float:
        """For empirical risk: ``4 epsilon log(2 / delta)``."""
        return 4 * float(self.epsilon) * self.logarithm

    @property
    def copies(self) -> int:
        """How often each direction is in the data set that the population is uniform over."""
        return math.floor(1 / self.empirical_epsilon)

    @property
    def delta(self) -> Fraction:
        """What Lemma 16 leaves for the population: hardly anything is "sufficiently small" if not this."""
        return Fraction(math.exp(-self.empirical_epsilon) * float(self.epsilon) / (8 * self.logarithm))

    @cached_property
    def population(self) -> _Population:
        """The population that the proof ends up with."""
        return _Population(self.directions * self.copies, self.epsilon, self.delta, self.directions)

    @property
    def bound(self) -> float:
        """What the proof gives, in units of ``D L``."""
        spent = self.copies * self.empirical_epsilon
        delta = float(self.epsilon) * math.expm1(spent) / math.expm1(self.empirical_epsilon)
        right = (math.exp(spent) + delta) / (math.exp(spent) + 1)
        return (1 - math.sqrt(right)) / (2 * math.sqrt(self.directions))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}, {self.directions} directions {self.copies} times each"


def _routes(budget: Budget) -> Iterator[_Route]:
    directions = budget.pick(quick=(100, 300, 1_000), full=(100, 200, 300, 500, 1_000, 3_000))
    for epsilon in ("1/20", "3/80", "1/40", "1/60", "1/100", "1/300"):
        yield from (_Route(Fraction(epsilon), each) for each in directions)


def the_route_is_within_a_logarithm(route: _Route) -> Comparison:
    """Any algorithm loses at least ``D L / sqrt(epsilon n)`` on some population, up to a constant and logarithms.

    Tried is the paper's proof, with a constant of 1/100 and ``sqrt(log(2 / epsilon))``: what it gives is at least that,
    and at most what randomized response attains.
    For larger epsilon the budget for empirical risk is above 1, and the proof leaves the bound without privacy.
    """
    return worst(
        at_most(route.population.claimed(ROUTED_CONSTANT) / math.sqrt(route.logarithm), route.bound),
        at_most(route.bound, route.population.attained),
    )


def the_route_leads_to_the_budget(route: _Route) -> Comparison:
    """Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population."""
    return _grows(route.population, CONSTANT)


CLAIMS = (
    Claim(
        paper="G21",
        number="Proposition 12",
        hypothesis="epsilon at most 1/20; all (epsilon, delta)-LabelDP algorithms",
        instances=_routes,
        printed=the_route_is_within_a_logarithm,
        false=the_route_leads_to_the_budget,
        quantifier="the constant and the powers of logarithms in the bound; how large n, how small delta must be",
    ),
    Claim(
        paper="G21",
        number="Proposition 12",
        part="with constants",
        hypothesis="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 20; all LabelDP algorithms",
        instances=_populations,
        printed=a_constant_is_enough,
        false=loss_grows_with_the_budget,
    ),
)
