"""A loss that is right on average although labels are noisy, how steep it is, and its risk ([G21], Lemmas 18 to 20)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from operator import mul

import numpy as np

from optrand.estimate import top_k_loss_weights
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.learning import top_k
from optrand.theory.g21.response import Law, laws
from optrand.theory.instances import RATIOS, Instance, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["TopK"]

Shares = tuple[Fraction, ...]

ROUNDING = 1e-9
"""What the weights and the table of the package are forgiven, as a share of the sum of the weights."""


class TopK(Instance):
    """Randomized response on the `k` likeliest labels of a prior, and the loss that [G21] makes for it.

    Examples
    --------
    >>> response = TopK((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), 2, Fraction(3))
    >>> [str(response.debiased([Fraction(1), Fraction(0), Fraction(0)], v)) for v in range(3)]
    ['3/2', '-1/2', '-1/2']
    """

    prior: Shares
    k: int
    ratio: Fraction

    @property
    def epsilon(self) -> float:
        """The budget, as the package takes it."""
        return math.log1p(self.ratio - 1)

    @cached_property
    def tabulated(self) -> tuple[Law, ...]:
        """Law of what the package releases, for each label."""
        return laws(top_k(self.prior, self.k, self.epsilon))

    @property
    def kept(self) -> tuple[int, ...]:
        """Labels that can be released."""
        return tuple(self.tabulated[0])

    def weighed(self, losses: Sequence[Fraction], *, all_labels: bool = False) -> dict[int, Fraction]:
        """Losses by the package's weights, of each label that can be released."""
        mask = np.array([all_labels or y in self.kept for y in range(len(losses))])
        table = top_k_loss_weights(self.kept, mask, self.epsilon).tolist()
        return {v: total(map(mul, map(Fraction, row), losses)) for v, row in zip(self.kept, table, strict=True)}

    def law(self, label: int) -> Law:
        """Law of what Algorithm 1 releases of a label."""
        if label not in self.kept:
            return dict.fromkeys(self.kept, Fraction(1, self.k))
        return {v: self.other * (self.ratio if v == label else 1) for v in self.kept}

    @property
    def other(self) -> Fraction:
        """How likely a kept label is to become any one other: ``p = 1 / (E + k - 1)``."""
        return 1 / (self.ratio + self.k - 1)

    @property
    def left(self) -> Fraction:
        """``1 - k p``."""
        return 1 - self.k * self.other

    @property
    def spread(self) -> Fraction:
        """How far apart debiased losses in [0, 1] are, and the sum of the weights: ``(1 + (k - 2) p) / (1 - k p)``."""
        return (1 + (self.k - 2) * self.other) / self.left

    def debiased(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """Equation 17: of the losses of one prediction under every label, that of a released one, debiased."""
        return (losses[label] - self.other * total(losses[v] for v in self.kept)) / self.left

    def expected(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """Mean of the debiased loss over what is released of a label."""
        return total(chance * self.debiased(losses, v) for v, chance in self.law(label).items())


class Losses(Instance, response=""):
    """Losses of one prediction under every label, and what is released of these."""

    response: TopK
    losses: Shares


def _responses(budget: Budget) -> Iterator[TopK]:
    for labels in (1, 2, 3, 4):
        yield from (TopK(shares([1] * labels), k, ratio) for k in range(1, labels + 1) for ratio in RATIOS)
    random = seeded(19)
    for _ in range(budget.pick(quick=150, full=5_000)):
        labels, ratio = random.randint(2, 6), 1 + Fraction(random.randint(1, 999), 10 ** random.randint(0, 4))
        yield TopK(prior(random, labels), random.randint(1, labels), ratio)


def _losses(budget: Budget) -> Iterator[Losses]:
    random = seeded(17)
    for response in _responses(budget):
        labels = len(response.prior)
        yield Losses(response, (*(Fraction(0),) * (labels - 1), Fraction(1)))
        yield Losses(response, tuple(Fraction(random.randint(0, 12), 12) for _ in range(labels)))


@claim(
    "G21",
    "Equation 17",
    on=_losses,
    given="a label that can be released",
    false=Variant(
        "The same with the losses of all labels, and their number for ``k``, as in equation 7.", all_labels=True
    ),
)
def weights_are_those_of_the_paper(given: Losses, all_labels: bool = False) -> Comparison:
    """The debiased loss is the loss, less ``p`` times the sum over all kept labels of theirs, over ``1 - k p``.

    That is a definition; what is checked is that :func:`optrand.estimate.top_k_loss_weights` computes it.
    """
    found = given.response.weighed(given.losses, all_labels=all_labels).items()
    return worst(*(_near(loss, given.response.debiased(given.losses, v), given.response) for v, loss in found))


def _near(found: Fraction, wanted: Fraction, response: TopK) -> Comparison:
    return equal(found, wanted, tolerance=ROUNDING, scale=response.spread)


@claim(
    "G21",
    "Lemma 18",
    on=_losses,
    given="a label among the likeliest k of its prior",
    false=Variant(
        "The debiased loss of what is released of any label is on average the loss of that label.", kept=False
    ),
)
def kept_labels_are_debiased(given: Losses, kept: bool = True) -> Comparison:
    """The debiased loss of what is released of a kept label is on average the loss of that label."""
    labels = given.response.kept if kept else range(len(given.losses))
    return worst(*(equal(given.response.expected(given.losses, y), given.losses[y]) for y in labels))


@claim(
    "G21",
    "Lemma 18",
    part="as the package has it",
    kind="ours",
    on=_losses,
    given="the integer table of the package, and its weights",
    false=Variant("The same with the weights of randomized response on all labels.", all_labels=True),
)
def the_package_is_unbiased(given: Losses, all_labels: bool = False) -> Comparison:
    """Weighed losses of what is released of a kept label are on average its loss, of another the mean of the kept."""
    response, losses = given.response, given.losses
    weighed = response.weighed(losses, all_labels=all_labels)
    mean = total(losses[v] for v in weighed) / response.k
    found = (total(chance * weighed[v] for v, chance in law.items()) for law in response.tabulated)
    wanted = (loss if y in weighed else mean for y, loss in enumerate(losses))
    return worst(*(_near(one, other, response) for one, other in zip(found, wanted, strict=True)))


@claim(
    "G21",
    "Lemma 19",
    on=_responses,
    given="a loss that is L-Lipschitz in the prediction under every label, with L = 1",
    false=Variant("The debiased loss is Lipschitz in the prediction, with ``L / (1 - k p)``.", others=0),
)
def debiased_losses_are_no_steeper(response: TopK, others: int = 1) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L (1 + k p) / (1 - k p)``.

    Attained under a label that is not kept. Of a released label it is ``L (1 + (k - 2) p) / (1 - k p)``.
    """
    steepest = _largest(response, range(len(response.prior)))
    return at_most(steepest, (1 + others * response.k * response.other) / response.left)


def _largest(response: TopK, labels: Sequence[int]) -> Fraction:
    """Largest slope of the debiased loss, for slopes of either sign; or width, for losses in [0, 1]: it is linear."""
    units = [[Fraction(y == z) for y in range(len(response.prior))] for z in range(len(response.prior))]
    return max(total(abs(response.debiased(unit, v)) for unit in units) for v in labels)


@claim(
    "G21",
    "Theorem 17",
    part="range of the debiased loss",
    kind="text",
    on=_responses,
    given="losses in [0, 1]",
    corrected=Variant(
        "Debiased losses of released labels are at most ``(1 + (k - 2) p) / (1 - k p)`` apart.",
        lambda response: at_most(_largest(response, response.kept), response.spread),
    ),
    false=Variant(
        "Debiased losses of released labels are at most ``1 / (1 - k p)`` apart.",
        lambda response: at_most(_largest(response, response.kept), 1 / response.left),
    ),
)
def debiased_losses_stay_in_the_interval(response: TopK) -> Comparison:
    """Debiased losses of released labels are at most 1 apart, as those of a function into [0, 1] are."""
    return at_most(_largest(response, response.kept), 1)


@claim(
    "G21",
    "Lemma 20",
    part="inner term",
    kind="text",
    on=_losses,
    given="losses in [0, 1]",
    corrected=Variant(
        "A loss and the mean debiased loss of what is released are equal for kept labels, within 1 for others.",
        debiased=True,
    ),
    false=Variant(
        "The same, debiased, and within ``1 - 1 / k`` for others, as if the label were one of those drawn.",
        debiased=True,
        drawn=1,
    ),
)
def the_inner_term(given: Losses, debiased: bool = False, drawn: int = 0) -> Comparison:
    """A loss and the mean loss of what is released of the label are equal for kept labels, within 1 for others.

    So the proof has it to the letter: the tilde of the debiased loss is missing there.
    """
    response, losses = given.response, given.losses

    def mean(y: int) -> Fraction:
        return response.expected(losses, y) if debiased else total(p * losses[v] for v, p in response.law(y).items())

    kept, k = response.kept, response.k
    return worst(
        *(at_most(abs(loss - mean(y)), 0 if y in kept else 1 - Fraction(drawn, k)) for y, loss in enumerate(losses))
    )
