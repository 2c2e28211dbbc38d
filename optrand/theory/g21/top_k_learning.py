"""Learning with the likeliest labels only, and what it costs that the others are lost ([G21], Corollary 10).

A label that its prior does not keep is replaced by one that is kept, at random; then Algorithm 5 runs on these. The two
steps of the proof, eqs. (9) and (10), are tried on finite distributions in fractions: all functions involved are
piecewise linear, and largest or least at one of their breakpoints.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.descent import Descent, Outcome, rate, with_responses
from optrand.theory.g21.learning import FLOATS, UNNAMED
from optrand.theory.g21.response import Rows, kept_labels, largest_ratio, top_k_rows
from optrand.theory.instances import Setting, listed, prior, settings

__all__ = ["CLAIMS", "Replaced"]

Shares = tuple[Fraction, ...]


@dataclass(frozen=True)
class Replaced:
    """A distribution of examples, and the labels that are kept of each.

    Attributes
    ----------
    mass : tuple of tuple of Fraction
        The probability of each example, a row a feature, a column a label.
    centres : tuple of tuple of Fraction
        The same of the `c` of the losses ``L abs(w - c)``, from 0 to the diameter.
    kept : tuple of tuple of int
        The labels that the prior of each feature keeps.
    diameter, lipschitz : Fraction

    Examples
    --------
    >>> one, zero = Fraction(1), Fraction(0)
    >>> lost = Replaced(((zero, one),), ((zero, one),), ((0,),))
    >>> str(lost.probability_lost), str(lost.largest_change), str(lost.largest_loss)
    ('1', '2', '1')
    """

    mass: tuple[Shares, ...]
    centres: tuple[Shares, ...]
    kept: tuple[tuple[int, ...], ...]
    diameter: Fraction = Fraction(1)
    lipschitz: Fraction = Fraction(1)

    def __str__(self) -> str:
        rows = "; ".join(
            f"mass {listed(mass)} at centres {listed(centres)}, kept {kept}"
            for mass, centres, kept in zip(self.mass, self.centres, self.kept, strict=True)
        )
        return f"{rows}; D = {self.diameter}, L = {self.lipschitz}"

    @property
    def replaced_mass(self) -> tuple[Shares, ...]:
        """The distribution once each label that is not kept is replaced by one that is, all alike."""
        rows = []
        for mass, kept in zip(self.mass, self.kept, strict=True):
            share = (sum(mass, Fraction(0)) - sum((mass[y] for y in kept), Fraction(0))) / len(kept)
            rows.append(tuple(mass[y] + share if y in kept else Fraction(0) for y in range(len(mass))))
        return tuple(rows)

    @property
    def probability_lost(self) -> Fraction:
        """How often a label is not kept."""
        return 1 - sum((mass[y] for mass, kept in zip(self.mass, self.kept, strict=True) for y in kept), Fraction(0))

    @property
    def unit(self) -> Fraction:
        """``D L Pr[label not kept]``."""
        return self.diameter * self.lipschitz * self.probability_lost

    @cached_property
    def _points(self) -> Shares:
        return tuple({Fraction(0), self.diameter, *itertools.chain(*self.centres)})

    def _risks(self, mass: tuple[Shares, ...]) -> Shares:
        """At each breakpoint."""
        examples = list(zip(itertools.chain(*mass), itertools.chain(*self.centres), strict=True))
        return tuple(
            self.lipschitz * sum((share * abs(w - centre) for share, centre in examples), Fraction(0))
            for w in self._points
        )

    @cached_property
    def _both(self) -> tuple[Shares, Shares]:
        return self._risks(self.mass), self._risks(self.replaced_mass)

    @property
    def largest_change(self) -> Fraction:
        """By how much the difference of the risks of two points can change with the distribution."""
        gaps = [risk - replaced for risk, replaced in zip(*self._both, strict=True)]
        return max(gaps) - min(gaps)

    @property
    def largest_loss(self) -> Fraction:
        """By how much a point can be further from the least risk than under the distribution with labels replaced."""
        risks, replaced = self._both
        gaps = [risk - other for risk, other in zip(risks, replaced, strict=True)]
        return max(gaps) - min(risks) + min(replaced)


def _distributions(budget: Budget) -> Iterator[Replaced]:
    zero, one, third = Fraction(0), Fraction(1), Fraction(1, 3)
    yield Replaced(((zero, one),), ((zero, one),), ((0,),))
    yield Replaced(((zero, third), (1 - third, zero)), ((zero, one), (one, one)), ((0,), (0,)))
    random = Random(10)  # noqa: S311
    for _ in range(budget.pick(quick=300, full=10_000)):
        features, k = random.randint(1, 3), random.randint(2, 4)
        diameter, lipschitz = Fraction(random.randint(1, 5)), Fraction(random.randint(1, 5), 2)
        shares = iter(prior(random, features * k))
        mass = tuple(tuple(itertools.islice(shares, k)) for _ in range(features))
        centres = tuple(tuple(diameter * random.randint(0, 4) / 4 for _ in range(k)) for _ in range(features))
        kept = tuple(kept_labels(prior(random, k), random.randint(1, k)) for _ in range(features))
        yield Replaced(mass, centres, kept, diameter, lipschitz)


def differences_change_by_two(given: Replaced) -> Comparison:
    """With labels replaced, the difference of two points' risks changes by at most ``2 D L Pr[label not kept]``."""
    return at_most(given.largest_change, 2 * given.unit)


def differences_change_by_one(given: Replaced) -> Comparison:
    """It changes by at most ``D L Pr[label not kept]``."""
    return at_most(given.largest_change, given.unit)


def excess_grows_by_two(given: Replaced) -> Comparison:
    """Replacing labels hides at most ``2 D L Pr[label not kept]`` of any point's distance from the least risk."""
    return at_most(given.largest_loss, 2 * given.unit)


def excess_grows_by_one(given: Replaced) -> Comparison:
    """It hides at most ``D L Pr[label not kept]``."""
    return at_most(given.largest_loss, given.unit)


@dataclass(frozen=True)
class _Sampler:
    """A prior, how many labels are kept, and a ratio."""

    setting: Setting
    k: int

    def __str__(self) -> str:
        return f"prior {listed(self.setting.prior)}, k = {self.k}, E = {self.setting.ratio}"

    def rows(self, drawn: Shares) -> Rows:
        """Labels that are not kept are drawn anew; then randomized response on those that are."""
        kept, ratio = kept_labels(self.setting.prior, self.k), self.setting.ratio

        def response(y: int) -> Shares:
            chances = {v: (ratio if v == y else Fraction(1)) / (ratio + self.k - 1) for v in kept}
            return tuple(chances.get(v, Fraction(0)) for v in range(self.setting.k))

        mixed = zip(
            *([share * chance for chance in response(v)] for v, share in enumerate(drawn) if share), strict=True
        )
        stranger = tuple(sum(chances, Fraction(0)) for chances in mixed)
        return tuple(response(y) if y in kept else stranger for y in range(self.setting.k))


def _samplers(budget: Budget) -> Iterator[_Sampler]:
    for setting in settings(budget.pick(quick=60, full=1_500), most=7, seed=11):
        yield from (_Sampler(setting, k) for k in range(1, setting.k + 1))


def replaced_labels_are_top_k(sampler: _Sampler) -> Comparison:
    """Replacing a label, then randomized response on those kept, is RRTop-k, and so epsilon-DP."""
    kept = kept_labels(sampler.setting.prior, sampler.k)
    return _as_top_k(sampler, tuple(Fraction(int(y in kept), sampler.k) for y in range(sampler.setting.k)))


def labels_replaced_by_prior_are_top_k(sampler: _Sampler) -> Comparison:
    """The same where the label is replaced by one that is drawn from the prior, cut off."""
    kept = kept_labels(sampler.setting.prior, sampler.k)
    total = sum((sampler.setting.prior[y] for y in kept), Fraction(0))
    cut = tuple(share / total if y in kept else Fraction(0) for y, share in enumerate(sampler.setting.prior))
    return _as_top_k(sampler, cut)


def _as_top_k(sampler: _Sampler, drawn: Shares) -> Comparison:
    found, ratio = sampler.rows(drawn), sampler.setting.ratio
    wanted = top_k_rows(sampler.setting.prior, sampler.k, ratio)
    alike = map(equal, itertools.chain(*found), itertools.chain(*wanted))
    return worst(at_most(largest_ratio(found), ratio), *alike)


@dataclass(frozen=True)
class _Learning:
    """Algorithm 5 with the labels that a prior keeps."""

    descent: Descent
    prior: Shares
    k: int
    epsilon: float

    def __str__(self) -> str:
        return f"{self.descent}, prior {listed(self.prior)}, k = {self.k}, epsilon = {self.epsilon}"

    @cached_property
    def outcome(self) -> Outcome:
        """Its excess risk."""
        table = np.array(top_k_rows(self.prior, self.k, Fraction(math.exp(self.epsilon))), dtype=float)
        return with_responses(self.descent, table, self.epsilon)

    @property
    def price(self) -> float:
        """``D L Pr[label not kept]``."""
        kept = kept_labels(self.prior, self.k)
        lost = 1 - math.fsum(self.descent.law[y] for y in kept)
        return self.descent.diameter * self.descent.lipschitz * max(0.0, lost)


def _learnings(budget: Budget) -> Iterator[_Learning]:
    falling = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    for steps, law, k in itertools.product((2, 3, 6), ((0.5, 0.3, 0.2), (0.0, 0.5, 0.5)), (1, 2, 3)):
        yield _Learning(Descent((0.5, 0.0, 1.0), law, steps), falling, k, 0.99)
        yield _Learning(Descent((0.0, 1.0, 1.0), law, steps, diameter=2.0, lipschitz=3.0), falling, k, 0.1)
    for power in range(8, budget.pick(quick=12, full=18), 2):
        yield _Learning(Descent((0.0, 1.0, 0.5), (0.7, 0.2, 0.1), 2**power), falling, 2, 0.99)
    yield _Learning(Descent((0.0, 1.0), (0.0, 1.0), 2**8), (Fraction(2, 3), Fraction(1, 3)), 1, 0.99)


def excess_is_bounded(learning: _Learning) -> Comparison:
    """With `k` labels kept, the excess risk is ``O(D L (k log(n) / (epsilon sqrt(n)) + Pr[label not kept]))``.

    The constants that are tried are 1, and the 2 of the proof.
    """
    return _bounded(learning, 2)


def excess_is_hardly_more_than_that_of_labels_kept(learning: _Learning) -> Comparison:
    """The same with a half for the 2."""
    return _bounded(learning, 0.5)


def _bounded(learning: _Learning, factor: float) -> Comparison:
    bound = learning.k / learning.epsilon * rate(learning.descent) + factor * learning.price
    return at_most(learning.outcome.surely, bound, tolerance=FLOATS)


FINITE = "convex L-Lipschitz losses on an interval of length D, any labels kept"

CLAIMS = (
    Claim(
        paper="G21",
        number="Corollary 10",
        part="labels replaced",
        hypothesis="any prior, any number of labels kept, epsilon above 0",
        instances=_samplers,
        printed=replaced_labels_are_top_k,
        false=labels_replaced_by_prior_are_top_k,
    ),
    Claim(
        paper="G21",
        number="Corollary 10",
        part="eq. 9",
        hypothesis=FINITE,
        instances=_distributions,
        printed=differences_change_by_two,
        false=differences_change_by_one,
    ),
    Claim(
        paper="G21",
        number="Corollary 10",
        part="eq. 10",
        hypothesis=FINITE,
        instances=_distributions,
        printed=excess_grows_by_two,
        false=excess_grows_by_one,
    ),
    Claim(
        paper="G21",
        number="Corollary 10",
        part="rate",
        hypothesis="convex L-Lipschitz loss, diameter D, epsilon between 0 and 1, the steps of Theorem 9, n above 1",
        instances=_learnings,
        printed=excess_is_bounded,
        false=excess_is_hardly_more_than_that_of_labels_kept,
        quantifier=UNNAMED,
    ),
)
