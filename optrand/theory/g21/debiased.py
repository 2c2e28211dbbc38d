"""A loss that is right on average although labels are noisy, and how steep it is ([G21], Lemmas 18 and 19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from operator import mul

import numpy as np

from optrand.estimate import top_k_loss_weights
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21 import response
from optrand.theory.g21.response import ROUNDING, Table
from optrand.theory.instances import RATIOS, Instance, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["TopK"]


class TopK(response.TopK):
    """Randomized response on the `k` likeliest labels of a prior, and the loss that [G21] makes for it."""

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

    def slope(self, others: int = 1) -> Fraction:
        """``(1 + k p) / (1 - k p)``, or without ``k p`` in the numerator."""
        return (1 + others * self.k * self.other) / self.left

    def weights(self, *, all_labels: bool = False) -> Table:
        """The package's weights of losses, a row a label that can be released."""
        mask = np.array([all_labels or y in self.kept for y in range(self.size)])
        return np.array(
            [list(map(Fraction, row)) for row in top_k_loss_weights(self.kept, mask, self.epsilon).tolist()]
        )

    def debiased(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """Equation 17: of the losses of one prediction under every label, that of a released one, debiased."""
        return (losses[label] - self.other * total(losses[v] for v in self.kept)) / self.left

    def expected(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """Mean of the debiased loss over what Algorithm 1 releases of a label."""
        return total(self.listed[label][v] * self.debiased(losses, v) for v in self.kept)

    def largest(self, labels: Sequence[int]) -> Fraction:
        """Largest slope of the debiased loss, for slopes of either sign; or width, for losses in [0, 1]."""
        units = [[Fraction(y == z) for y in range(self.size)] for z in range(self.size)]
        return max(total(abs(self.debiased(unit, v)) for unit in units) for v in labels)

    def near(self, found: Fraction, wanted: Fraction) -> Comparison:
        """Equality up to what floats of the package are forgiven, as a share of the sum of the weights."""
        return equal(found, wanted, tolerance=ROUNDING, scale=self.spread)


class Losses(Instance, response=""):
    """Losses of one prediction under every label, and what is released of these."""

    response: TopK
    losses: tuple[Fraction, ...]


def _responses(budget: Budget) -> Iterator[TopK]:
    for labels in (1, 2, 3, 4):
        yield from (TopK(shares([1] * labels), ratio, k) for k in range(1, labels + 1) for ratio in RATIOS)
    random = seeded(19)
    for _ in range(budget.pick(quick=150, full=5_000)):
        labels, ratio = random.randint(2, 6), 1 + Fraction(random.randint(1, 999), 10 ** random.randint(0, 4))
        yield TopK(prior(random, labels), ratio, random.randint(1, labels))


def _losses(budget: Budget) -> Iterator[Losses]:
    random = seeded(17)
    for each in _responses(budget):
        yield Losses(each, (*(Fraction(0),) * (each.size - 1), Fraction(1)))
        yield Losses(each, tuple(Fraction(random.randint(0, 12), 12) for _ in range(each.size)))


of_losses, of_responses = partial(claim, "G21", on=_losses), partial(claim, "G21", on=_responses)

ALL_LABELS = Variant("The same with the losses of all labels, as in equation 7, and `K` for `k`.", all_labels=True)
LESS_STEEP = Variant("The debiased loss is Lipschitz in the prediction, with ``L / (1 - k p)``.", others=0)
WIDER = Variant("Debiased losses of released labels are at most ``(1 + (k - 2) p) / (1 - k p)`` apart.", others=1)
TOO_NEAR = Variant("Debiased losses of released labels are at most ``1 / (1 - k p)`` apart.", others=0)
DEBIASED = Variant("The same with the mean debiased loss of what is released.", debiased=True)
DRAWN = Variant("As corrected, within ``1 - 1 / k`` for others: as if it could be drawn.", debiased=True, drawn=1)
ANY_LABEL = Variant("The debiased loss of what is released of any label is on average its loss.", kept=False)


@of_losses(
    "Equation 17",
    given="a label that can be released",
    sides=("debiased loss by the package", "debiased loss by the formula"),
    false=ALL_LABELS,
)
def weights_are_those_of_the_paper(given: Losses, all_labels: bool = False) -> Comparison:
    """The package debiases a loss as printed: less ``p`` times the sum of those of kept labels, over ``1 - k p``."""
    found = given.response.weights(all_labels=all_labels) @ given.losses
    wanted = (given.response.debiased(given.losses, v) for v in given.response.kept)
    return worst(*map(given.response.near, found, wanted))


@of_losses(
    "Lemma 18",
    given="a label among the likeliest k of its prior",
    sides=("mean debiased loss", "loss of the label"),
    false=ANY_LABEL,
)
def kept_labels_are_debiased(given: Losses, kept: bool = True) -> Comparison:
    """The debiased loss of what is released of a kept label is on average the loss of that label."""
    labels = given.response.kept if kept else range(len(given.losses))
    return worst(*(equal(given.response.expected(given.losses, y), given.losses[y]) for y in labels))


@of_losses(
    "Lemma 18: as the package has it",
    kind="ours",
    given="integer tables and weights",
    sides=("mean weighed loss by the package", "loss of the label, or mean loss of the kept"),
    false=ALL_LABELS,
)
def the_package_is_unbiased(given: Losses, all_labels: bool = False) -> Comparison:
    """Weighed losses of what is released of a kept label are on average its loss, of another the mean of the kept."""
    response, kept = given.response, list(given.response.kept)
    found = np.array(response.tabulated)[:, kept] @ response.weights(all_labels=all_labels) @ given.losses
    mean = total(given.losses[v] for v in kept) / len(kept)
    return worst(*map(response.near, found, (loss if y in kept else mean for y, loss in enumerate(given.losses))))


@of_responses(
    "Lemma 19",
    given="a loss that is 1-Lipschitz in the prediction under every label",
    sides=("Lipschitz constant of the debiased loss", "bound"),
    false=LESS_STEEP,
)
def debiased_losses_are_no_steeper(response: TopK, others: int = 1) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L (1 + k p) / (1 - k p)``."""
    return at_most(response.largest(range(response.size)), response.slope(others))


@of_responses(
    "Theorem 17: range of the debiased loss",
    kind="text",
    given="losses in [0, 1]",
    sides=("range of the debiased loss", "bound"),
    corrected=WIDER,
    false=TOO_NEAR,
)
def debiased_losses_stay_in_the_interval(response: TopK, others: int | None = None) -> Comparison:
    """Debiased losses of released labels are at most 1 apart, as those of a function into [0, 1] are."""
    wider = response.spread if others else 1 / response.left
    return at_most(response.largest(response.kept), 1 if others is None else wider)


@of_losses(
    "Lemma 20: inner term",
    kind="text",
    given="losses in [0, 1]",
    sides=("distance of the loss from the mean loss", "bound"),
    corrected=DEBIASED,
    false=DRAWN,
)
def the_inner_term(given: Losses, debiased: bool = False, drawn: int = 0) -> Comparison:
    """A loss and the mean loss of what is released of the label are equal for kept labels, within 1 for others."""
    each, losses = given.response, given.losses
    plain = (total(map(mul, row, losses)) for row in each.listed)
    means = (each.expected(losses, y) for y in range(each.size)) if debiased else plain
    off = (abs(loss - mean) for loss, mean in zip(losses, means, strict=True))
    return worst(*(at_most(gap, 0 if y in each.kept else 1 - Fraction(drawn, each.k)) for y, gap in enumerate(off)))
