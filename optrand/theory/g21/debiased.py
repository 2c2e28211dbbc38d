"""A loss that is right on average although labels are noisy, and how steep it is ([G21], Lemmas 18 and 19)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import mul
from random import Random
from typing import Any

import numpy as np

from optrand.estimate import top_k_loss_weights
from optrand.theory.engine import Comparison, at_most, claim, corrected, draws, equal, false
from optrand.theory.g21.response import ROUNDING, Row, TopK
from optrand.theory.instances import RATIOS, prior, shares
from optrand.theory.sums import total


class Debiased(TopK):
    """Randomized response on the likeliest labels, and the loss that [G21] makes for it."""

    @property
    def other(self) -> Fraction:
        """The probability that a kept label becomes any one other: ``p = 1 / (E + k - 1)``."""
        return 1 / (self.ratio + self.k - 1)

    @property
    def left(self) -> Fraction:
        """``1 - k p``."""
        return 1 - self.k * self.other

    @property
    def spread(self) -> Fraction:
        """The range of debiased losses in [0, 1], and the sum of the weights: ``(1 + (k - 2) p) / (1 - k p)``."""
        return (1 + (self.k - 2) * self.other) / self.left

    def slope(self, others: int = 1) -> Fraction:
        """Return ``(1 + k p) / (1 - k p)``, or without ``k p`` in the numerator."""
        return (1 + others * self.k * self.other) / self.left

    def loss(self, losses: Sequence[Any], label: int) -> Any:
        """Return the debiased loss of a released label, equation 17, from the losses under every label."""
        return (losses[label] - self.other * sum(losses[v] for v in self.kept)) / self.left

    def expected(self, losses: Row, label: int) -> Fraction:
        """Return the mean of the debiased loss over the outputs of Algorithm 1 for a label."""
        return total(self.rows[label][v] * self.loss(losses, v) for v in self.kept)

    def largest(self, labels: Sequence[int]) -> Fraction:
        """Return the largest slope of the debiased loss, for slopes of either sign; or width, for losses in [0, 1]."""
        units = [[Fraction(y == z) for y in range(self.size)] for z in range(self.size)]
        return max(total(abs(self.loss(unit, v)) for unit in units) for v in labels)


def _even_priors(_: int) -> Iterator[Debiased]:
    for labels in (1, 2, 3, 4):
        yield from (Debiased(shares([1] * labels), ratio, k) for k in range(1, labels + 1) for ratio in RATIOS)


def _draw_response(draw: Random) -> Debiased:
    labels, ratio = draw.randint(2, 6), 1 + Fraction(draw.randint(1, 999), 10 ** draw.randint(0, 4))
    return Debiased(prior(draw, labels), ratio, draw.randint(1, labels))


def _draw_losses(draw: Random) -> dict[str, Any]:
    each = _draw_response(draw)
    return {"response": each, "losses": tuple(Fraction(draw.randint(0, 12), 12) for _ in range(each.size))}


RESPONSES = _even_priors, draws(100, _draw_response)
LOSSES = (
    lambda _: ({"response": r, "losses": (*(Fraction(0),) * (r.size - 1), Fraction(1))} for r in _even_priors(1)),
    draws(100, _draw_losses),
)


@claim("G21 Equation 17", *LOSSES, given="a label that can be released; weights of the package")
@false("The same with the losses of all labels.", all_labels=True)
def weights_are_those_of_the_paper(response: Debiased, losses: Row, *, all_labels: bool = False) -> Comparison:
    """A loss is debiased as printed: less ``p`` times the sum of those of kept labels, over ``1 - k p``."""
    mask = np.array([all_labels or y in response.kept for y in range(response.size)])
    weights = top_k_loss_weights(response.kept, mask, math.log1p(response.ratio - 1))
    printed = [response.loss(losses, v) for v in response.kept]
    return equal(weights @ np.array(losses, float), printed, tolerance=ROUNDING, scale=response.spread)


@claim("G21 Lemma 18", *LOSSES, given="a label among the likeliest k of its prior")
@false("The same of any label.", any_label=True)
def kept_labels_are_debiased(response: Debiased, losses: Row, *, any_label: bool = False) -> Comparison:
    """The debiased loss of what is released of a kept label is on average the loss of that label."""
    found = range(response.size) if any_label else response.kept
    return equal([response.expected(losses, y) for y in found], [losses[y] for y in found])


@claim("G21 Lemma 19", *RESPONSES, given="a loss that is 1-Lipschitz in the prediction under every label")
@false("The same with ``L / (1 - k p)``.", others=0)
def debiased_losses_are_no_steeper(response: Debiased, others: int = 1) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L (1 + k p) / (1 - k p)``."""
    return at_most(response.largest(range(response.size)), response.slope(others))


@claim("G21 Theorem 17: range of the debiased loss", *RESPONSES, given="losses in [0, 1]")
@corrected("They are at most ``(1 + (k - 2) p) / (1 - k p)`` apart.", most=lambda response: response.spread)
@false("They are at most ``1 / (1 - k p)`` apart.", most=lambda response: 1 / response.left)
def debiased_losses_stay_in_the_interval(response: Debiased, most: Any = lambda _: 1) -> Comparison:
    """Debiased losses of released labels are at most 1 apart, as those of a function into [0, 1] are."""
    return at_most(response.largest(response.kept), most(response))


@claim("G21 Lemma 20: inner term", *LOSSES, given="losses in [0, 1]")
@corrected("The same of the mean debiased loss.", debiased=True)
@false("As corrected, within ``1 - 1 / k`` for others.", debiased=True, drawn=1)
def the_inner_term(response: Debiased, losses: Row, *, debiased: bool = False, drawn: int = 0) -> Comparison:
    """A loss and the mean loss of what is released of the label are equal for kept labels, within 1 for others."""
    labels, plain = range(response.size), [total(map(mul, row, losses)) for row in response.rows]
    means = [response.expected(losses, y) for y in labels] if debiased else plain
    off = [abs(loss - mean) for loss, mean in zip(losses, means, strict=True)]
    return at_most(off, [0 if y in response.kept else 1 - Fraction(drawn, response.k) for y in labels])
