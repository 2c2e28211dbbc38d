"""A loss that is right on average although the labels are noisy ([G21], equation 17 and Lemma 18)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from optrand.estimate import top_k_loss_weights
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, equal, worst
from optrand.theory.g21.response import Rows, kept_labels, top_k_rows
from optrand.theory.instances import RATIOS, listed, prior

__all__ = ["CLAIMS", "TopK", "TopKLoss", "responses", "top_k_losses"]

TOLERANCE = 1e-12


@dataclass(frozen=True)
class TopK:
    """Randomized response on the `k` likeliest labels of a prior, and the loss that [G21] makes for it.

    Examples
    --------
    >>> response = TopK((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), 2, Fraction(3))
    >>> [str(response.debiased([Fraction(1), Fraction(0), Fraction(0)], v)) for v in range(3)]
    ['3/2', '-1/2', '-1/2']
    """

    prior: tuple[Fraction, ...]
    k: int
    ratio: Fraction

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Labels that can be released."""
        return kept_labels(self.prior, self.k)

    @cached_property
    def rows(self) -> Rows:
        """How likely each label is to be released, a row for each true one."""
        return top_k_rows(self.prior, self.k, self.ratio)

    @property
    def other(self) -> Fraction:
        """How likely a kept label is to become any one other: ``p = 1 / (E + k - 1)``."""
        return 1 / (self.ratio + self.k - 1)

    @property
    def spread(self) -> Fraction:
        """How far apart debiased losses of released labels can be: ``(1 + (k - 2) p) / (1 - k p)``.

        Of losses in [0, 1]. It is also how much steeper than the loss they can be.
        """
        return (1 + (self.k - 2) * self.other) / (1 - self.k * self.other)

    def debiased(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """Equation 17: of the losses of one prediction under every label, that of a released one, debiased."""
        kept = sum((losses[v] for v in self.kept), Fraction(0))
        return (losses[label] - self.other * kept) / (1 - self.k * self.other)

    def expected(self, losses: Sequence[Fraction], label: int) -> Fraction:
        """The mean of the debiased loss over what is released of a label."""
        chances = self.rows[label]
        return sum((chance * self.debiased(losses, v) for v, chance in enumerate(chances) if chance), Fraction(0))

    def __str__(self) -> str:
        return f"prior {listed(self.prior)}, k = {self.k}, E = {self.ratio}"


@dataclass(frozen=True)
class TopKLoss:
    """Losses of one prediction under every label, and what is released of these."""

    response: TopK
    losses: tuple[Fraction, ...]

    def __str__(self) -> str:
        return f"{self.response}, losses {listed(self.losses)}"


def responses(random: Random, count: int) -> Iterator[TopK]:
    """Small label sets under every ratio, then `count` random ones."""
    for labels in (1, 2, 3, 4):
        equal_shares = (Fraction(1, labels),) * labels
        for k in range(1, labels + 1):
            yield from (TopK(equal_shares, k, ratio) for ratio in RATIOS)
    for _ in range(count):
        labels = random.randint(2, 6)
        ratio = 1 + Fraction(random.randint(1, 999), 10 ** random.randint(0, 4))
        yield TopK(prior(random, labels), random.randint(1, labels), ratio)


def top_k_losses(budget: Budget) -> Iterator[TopKLoss]:
    """Losses between 0 and 1: one that is 1 for the last label only, and a random one, for each response."""
    random = Random(17)  # noqa: S311
    for response in responses(random, budget.pick(quick=200, full=5_000)):
        labels = len(response.prior)
        yield TopKLoss(response, (*(Fraction(0),) * (labels - 1), Fraction(1)))
        yield TopKLoss(response, tuple(Fraction(random.randint(0, 12), 12) for _ in range(labels)))


def weights_are_those_of_the_paper(loss: TopKLoss) -> Comparison:
    """The debiased loss is the loss, less ``p`` times the sum over all kept labels of theirs, over ``1 - k p``.

    That is a definition; what is checked is that :func:`optrand.estimate.top_k_loss_weights` computes it.
    """
    return worst(*_weighed(loss, loss.response))


def all_labels_are_subtracted(loss: TopKLoss) -> Comparison:
    """The same with the losses of all labels, and their number for ``k``, as in equation 7."""
    everything = TopK(loss.response.prior, len(loss.response.prior), loss.response.ratio)
    return worst(*_weighed(loss, everything))


def _weighed(loss: TopKLoss, paper: TopK) -> list[Comparison]:
    """Losses by the package's weights against the debiased losses, for every label that can be released."""
    kept = loss.response.kept
    mask = np.zeros(len(loss.losses), dtype=np.bool_)
    mask[list(kept)] = True
    weights = top_k_loss_weights(kept, mask, math.log1p(loss.response.ratio - 1))
    found = weights @ np.array([float(each) for each in loss.losses])
    scales = np.abs(weights).sum(axis=1)
    return [
        equal(float(value), float(paper.debiased(loss.losses, v)), tolerance=TOLERANCE, scale=float(scale))
        for v, value, scale in zip(kept, found, scales, strict=True)
    ]


def kept_labels_are_debiased(loss: TopKLoss) -> Comparison:
    """The debiased loss of what is released of a kept label is on average the loss of that label."""
    return worst(*(_unbiased(loss, y) for y in loss.response.kept))


def all_labels_are_debiased(loss: TopKLoss) -> Comparison:
    """The debiased loss of what is released of any label is on average the loss of that label."""
    return worst(*(_unbiased(loss, y) for y in range(len(loss.losses))))


def _unbiased(loss: TopKLoss, label: int) -> Comparison:
    return equal(loss.response.expected(loss.losses, label), loss.losses[label])


CLAIMS = (
    Claim(
        paper="G21",
        number="Equation 17",
        hypothesis="a label that can be released",
        instances=top_k_losses,
        printed=weights_are_those_of_the_paper,
        false=all_labels_are_subtracted,
    ),
    Claim(
        paper="G21",
        number="Lemma 18",
        hypothesis="a label among the likeliest k of its prior",
        instances=top_k_losses,
        printed=kept_labels_are_debiased,
        false=all_labels_are_debiased,
    ),
)
