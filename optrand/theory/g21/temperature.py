"""Priors at a temperature, colder and hotter, and how many labels are kept then ([G21], Appendix E).

The prior at temperature `t` has logits divided by `t`. Logits here are whole numbers, so that it is exact in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations, product

from optrand.closed_forms import rr_with_prior_batch
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import total

__all__ = ["Tempered"]

HEATS = tuple(Fraction(text) for text in ("1000", "30", "27/10", "3/2", "101/100", "1000001/1000000"))
"""Values of ``exp(1 / t)``, from cold to hot."""


class Tempered(Instance, heat="exp(1 / t)"):
    """Logits, and a temperature.

    Examples
    --------
    >>> [str(share) for share in Tempered((1, 0, 0), Fraction(2)).prior]
    ['1/2', '1/4', '1/4']
    """

    logits: tuple[int, ...]
    heat: Fraction

    @cached_property
    def prior(self) -> tuple[Fraction, ...]:
        """The softmax of the logits over the temperature."""
        weights = [self.heat ** (logit - max(self.logits)) for logit in self.logits]
        return tuple(weight / sum(weights) for weight in weights)

    @property
    def tops(self) -> int:
        """Number of classes with the largest logit."""
        return self.logits.count(max(self.logits))

    @property
    def gap(self) -> int:
        """Distance of the largest logit from the next one."""
        return max(self.logits) - max((each for each in self.logits if each < max(self.logits)), default=0)

    @property
    def cumulated(self) -> list[Fraction]:
        """Probability of the `k` likeliest classes together, for each `k`."""
        return list(accumulate(sorted(self.prior, reverse=True)))


def _logits(budget: Budget) -> Iterator[tuple[int, ...]]:
    yield from ((1, 0), (0, 0), (1, 1, 0), (2, 1, 0), (5, 0, 0, 0))
    random = seeded(30)
    for _ in range(budget.pick(quick=25, full=1_000)):
        yield tuple(random.randint(-3, 3) for _ in range(random.randint(2, 9)))


def _tempered(budget: Budget) -> Iterator[Tempered]:
    return (Tempered(logits, heat) for logits, heat in product(_logits(budget), HEATS))


@claim("G21", "Appendix E", part="cold priors", on=_tempered, given="any logits, any temperature t above 0")
def cold_priors_are_on_the_top(given: Tempered) -> Comparison:
    """As t tends to 0 the prior is on the top classes, alike on all of them: a share of others tends to 0.

    With `m` top classes and a gap `g` to the next logit, the others have at most ``(K - m) / m exp(-g / t)``.
    """
    return _others(given, len(given.logits) - given.tops)


@cold_priors_are_on_the_top.false
def _(given: Tempered) -> Comparison:
    """The same with at most ``1 / m exp(-g / t)``, as if there were one other class."""
    return _others(given, 1)


def _others(given: Tempered, others: int) -> Comparison:
    on_top = given.cumulated[given.tops - 1]
    alike = {share for share, logit in zip(given.prior, given.logits, strict=True) if logit == max(given.logits)}
    bound = others * given.heat**-given.gap / given.tops if given.tops < len(given.logits) else Fraction(0)
    return worst(at_most(1 - on_top, bound), equal(len(alike), 1))


@claim(
    "G21",
    "Appendix E",
    part="hot priors",
    on=_tempered,
    given="any logits, any temperature t above 0",
    false=Variant("The same with half the distance.", halves=1),
)
def hot_priors_are_uniform(given: Tempered, halves: int = 2) -> Comparison:
    """As t tends to infinity the prior tends to the uniform one.

    With a distance `d` of the largest logit from the least, ``K p`` is between ``exp(-d / t)`` and ``exp(d / t)`` for
    each `p`. (Compared are squares.)
    """
    farthest = given.heat ** (halves * (max(given.logits) - min(given.logits)))
    squares = [(len(given.prior) * share) ** 2 for share in given.prior]
    return worst(at_most(max(squares), farthest), at_most(1 / min(squares), farthest))


class Cooled(Instance, heats="exp(1 / t)"):
    """Logits at two temperatures, the colder one first, and a privacy ratio."""

    logits: tuple[int, ...]
    heats: tuple[Fraction, Fraction]
    ratio: Fraction

    @property
    def both(self) -> tuple[Tempered, Tempered]:
        """The priors."""
        return Tempered(self.logits, self.heats[0]), Tempered(self.logits, self.heats[1])


def _cooled(budget: Budget) -> Iterator[Cooled]:
    ratios = tuple(Fraction(text) for text in ("7/3", "1009/1000", "23/2", "3001"))
    for number, (logits, heats) in enumerate(product(_logits(budget), combinations(HEATS, 2))):
        yield Cooled(logits, heats, ratios[number % len(ratios)])


@claim("G21", "Appendix E", part="confidence", on=_cooled, given="any logits, any two temperatures")
def cooling_is_more_confident(given: Cooled) -> Comparison:
    """At a lower temperature the `k` likeliest classes together are likelier, for every `k`."""
    cold, hot = given.both
    return worst(*map(at_most, hot.cumulated, cold.cumulated))


@cooling_is_more_confident.false
def _(given: Cooled) -> Comparison:
    """At a lower temperature each of the likelier half of the classes is likelier."""
    cold, hot = (sorted(each.prior, reverse=True)[: len(given.logits) // 2] for each in given.both)
    return worst(*map(at_most, hot, cold))


@claim("G21", "Appendix E", part="labels kept", on=_cooled, given="any logits, any two temperatures, epsilon above 0")
def heating_keeps_more(given: Cooled) -> Comparison:
    """At a higher temperature the package's RRWithPrior keeps as many labels or more.

    It keeps the `m` top classes only if and only if ``m (exp(g / t) - 1) >= E - 1`` with the gap `g` to the next logit,
    and all classes if and only if ``exp((f - least logit) / t) - 1`` sums over the logits `f` to less than ``E - 1``.
    """
    return _kept(given, weighed=True)


@heating_keeps_more.false
def _(given: Cooled) -> Comparison:
    """The same with ``exp(g / t) - 1 >= E - 1``, as if there were one top class."""
    return _kept(given, weighed=False)


def _kept(given: Cooled, *, weighed: bool) -> Comparison:
    priors = [[float(share) for share in each.prior] for each in given.both]
    counts = rr_with_prior_batch(priors, math.log(given.ratio)).k_star.tolist()
    said = [at_most(counts[0], counts[1])]
    for each, count in zip(given.both, counts, strict=True):
        excess = total(each.heat ** (logit - min(given.logits)) - 1 for logit in given.logits)
        said.append(equal(count == len(given.logits), excess < given.ratio - 1))
        if each.tops < len(given.logits):
            tops = each.tops if weighed else 1
            said.append(equal(count == each.tops, tops * (each.heat**each.gap - 1) >= given.ratio - 1))
    return worst(*said)
