"""What optimal unbiased randomizers become at large and at small epsilon, as observed in [B23], Section 3.1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import optrand
from optrand.theory.b23.columns import two_end_loss
from optrand.theory.b23.structure import response_loss
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal
from optrand.theory.instances import Setting, label_set, shares

__all__ = ["CLAIMS"]

FLOATS = 1e-9
"""What certified losses are forgiven, relatively."""

LARGE = Fraction(10**7)
"""``exp(epsilon)`` at an epsilon that is large for all priors tried: about 16."""


@dataclass(frozen=True)
class _Solved:
    """A setting and its certified optimum on the line."""

    setting: Setting

    def __str__(self) -> str:
        return str(self.setting)

    @cached_property
    def loss(self) -> float:
        """The least halved squared loss, certified."""
        labels, prior = ([float(x) for x in row] for row in (self.setting.labels, self.setting.prior))
        problem = optrand.unbiased_regression(labels, prior, math.log(self.setting.ratio))
        return optrand.certify(optrand.tabulate(optrand.solve(problem))).require(FLOATS).upper

    @property
    def without_zeros(self) -> Setting:
        """Without the labels between the two end labels that never occur."""
        last = self.setting.k - 1
        kept = [i for i, p in enumerate(self.setting.prior) if p or i in (0, last)]
        labels, prior = (tuple(row[i] for i in kept) for row in (self.setting.labels, self.setting.prior))
        return Setting(labels, prior, self.setting.ratio)


def _large(budget: Budget) -> Iterator[_Solved]:
    """The two end labels occur; priors of others are zero or not small, and labels are not far from even."""
    three = tuple(map(Fraction, range(3)))
    yield _Solved(Setting(three, shares((1, 1, 1)), LARGE))
    yield _Solved(Setting(three, shares((1, 0, 1)), LARGE))
    random = Random(51)  # noqa: S311
    for _ in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(1, 9), *(random.randint(0, 9) for _ in range(k - 2)), random.randint(1, 9)]
        steps = [Fraction(random.randint(2, 4), 2) for _ in range(k)]
        labels = tuple(sum(steps[:i], Fraction(0)) for i in range(k))
        yield _Solved(Setting(labels, shares(weights), LARGE))


def response_is_approached(solved: _Solved) -> Comparison:
    """At large epsilon the optimal unbiased randomizer has the loss of debiased randomized response.

    Over the two end labels and those that occur; the others are rounded to their neighbours, without bias.
    """
    return equal(float(response_loss(solved.without_zeros)), solved.loss, tolerance=FLOATS)


def response_is_approached_whatever_the_prior(solved: _Solved) -> Comparison:
    """At large epsilon it has the loss of debiased randomized response over all labels, also those that never occur."""
    return equal(float(response_loss(solved.setting)), solved.loss, tolerance=FLOATS)


def _two_ends(setting: Setting) -> float:
    """The loss with the outputs of debiased randomized response over the two end labels."""
    first, last = setting.labels[0], setting.labels[-1]
    overhang = (last - first) / (setting.ratio - 1)
    return float(two_end_loss(setting, first - overhang, last + overhang))


def _small(budget: Budget) -> Iterator[_Solved]:
    """Epsilons of about 0.01, 0.1 and 1, and any priors."""
    ratios = (Fraction(101, 100), Fraction(11, 10), Fraction(27, 10))
    three = tuple(map(Fraction, range(3)))
    yield from (
        _Solved(Setting(three, shares(w), ratio)) for ratio in ratios for w in ((1, 1, 1), (0, 1, 0), (1, 0, 0))
    )
    random = Random(52)  # noqa: S311
    for number in range(budget.pick(quick=25, full=600)):
        k = random.randint(2, 8)
        weights = [random.randint(0, 9) for _ in range(k)]
        yield _Solved(Setting(label_set(random, k), shares(weights if any(weights) else [1] * k), ratios[number % 3]))


def _excess(solved: _Solved) -> float:
    return _two_ends(solved.setting) / solved.loss - 1


def two_outputs_are_approached(solved: _Solved) -> Comparison:
    """At small epsilon the two outputs of debiased randomized response over the two end labels are nearly optimal.

    For epsilon up to 1 they lose at most a share of epsilon^2 / 2 more than the optimum, which keeps more outputs, in
    general 2 k - 2; they gather at the two.
    """
    return at_most(_excess(solved) - FLOATS, math.log(solved.setting.ratio) ** 2 / 2)


def two_outputs_are_approached_faster(solved: _Solved) -> Comparison:
    """For epsilon up to 1 these two outputs lose at most a share of epsilon^2 / 5 more than the optimum."""
    return at_most(_excess(solved) - FLOATS, math.log(solved.setting.ratio) ** 2 / 5)


CLAIMS = (
    Claim(
        paper="B23",
        number="Section 3.1",
        part="large epsilon",
        hypothesis="halved squared loss, end labels that occur, labels not far from even",
        instances=_large,
        printed=response_is_approached,
        false=response_is_approached_whatever_the_prior,
        quantifier="an observation that names no epsilon: tried at exp(epsilon) = 10^7",
    ),
    Claim(
        paper="B23",
        number="Section 3.1",
        part="small epsilon",
        hypothesis="halved squared loss, any labels and prior, epsilon up to 1",
        instances=_small,
        printed=two_outputs_are_approached,
        false=two_outputs_are_approached_faster,
        quantifier="an observation that names no epsilon and no rate: the rate tried is what was measured here",
    ),
)
