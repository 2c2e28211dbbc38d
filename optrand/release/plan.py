"""What a job has settled before any label is drawn: the randomizer, the prior that was paid for, a public summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.release.conditioning import Conditioning
from optrand.release.paid_prior import PaidPrior
from optrand.release.randomizer_file import save_randomizer
from optrand.sampling.priors import BudgetSplit

__all__ = ["Keep", "Plan", "ProgressCallback", "Release", "Summary", "no_progress"]

ProgressCallback = Callable[[str], object]
"""Told what a job does next, in a few words."""

Keep = Callable[[PaidPrior], object]
"""Given the prior as soon as it is drawn and paid for, before anything else can fail."""

Counts = NDArray[np.intp]


def no_progress(_: str) -> None:
    """ProgressCallback nothing."""


@dataclass(frozen=True)
class Summary:
    """Public summary of a release.

    Attributes
    ----------
    rows : int
        Public.
    labels : int
        How many labels were declared.
    outputs : int or None
        How many outputs the mechanism has; None of noise.
    allowed : str
        Where outputs may lie, in words.
    epsilon : float
        The budget that was asked for, in nats.
    split : BudgetSplit
    prior : str
        Where the prior came from, in words.
    exact : bool
        Whether the labels were drawn with exactly the probabilities that were proven private. If not, privacy holds for
        real numbers only.
    gap : float
        The objective of the mechanism, loss and penalty on bias, is within this share of the optimum for its prior:
        verified. Infinite where nothing was proven, as of a randomizer without a prior.
    bias, variance : float
        The largest ``|E[M(y)] - y|`` and the largest variance over the declared labels.
    realised_epsilon : float
        What prior and labels together have spent at most, rounded up.
    noisy_label_loss : float
        Half the mean squared change of a label, *under the prior above* (without one, *were every declared label as
        frequent as any other*), without any penalty on bias; of classes the probability that a label changes. Nothing
        is said of the true labels.
    private : bool
        False where a seeded source drew the noise: then the table must not be released.
    histograms : str
        Whether the histogram of the labels can be estimated, and how well, in words.
    copied : tuple of str
        Other columns of the released table, which were copied as they are.
    relative_loss : float, optional
        Of a release by groups: its objective under the priors, as a share of that of one randomizer for all rows.
    rule : str, optional
        Name of the randomizer that was asked for.
    """

    rows: int
    labels: int
    outputs: int | None
    allowed: str
    epsilon: float
    split: BudgetSplit
    prior: str
    exact: bool
    gap: float
    bias: float
    variance: float
    realised_epsilon: float
    noisy_label_loss: float
    private: bool
    histograms: str
    copied: tuple[str, ...] = ()
    relative_loss: float | None = None
    rule: str | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """What labels will be drawn with, once all that the prior costs has been spent.

    Attributes
    ----------
    labels : (k,) array
        The declared set.
    randomizer : Mechanism or Additive
    summary : Summary
    prior : PaidPrior, optional
        The noisy histogram of this release, or of the earlier run that paid for it.
    conditioning : Conditioning, optional
        How well the histogram of the labels can be estimated; None of additive noise.
    bought : bool
        Whether this run has paid for the prior.
    """

    labels: Floats
    randomizer: Mechanism | Additive
    summary: Summary
    prior: PaidPrior | None = field(default=None, repr=False)
    conditioning: Conditioning | None = field(default=None, repr=False)
    bought: bool = False

    @property
    def mechanism(self) -> Mechanism:
        """The randomizer, if it is a finite mechanism.

        Raises
        ------
        InvalidInput
            It is additive noise.
        """
        if not isinstance(self.randomizer, Mechanism):
            raise InvalidInput("the labels were drawn by additive noise: there is no table, see randomizer")
        return self.randomizer

    @property
    def noisy_counts(self) -> tuple[int, ...] | None:
        """The histogram that was paid for, clipped at 0."""
        return None if self.prior is None else self.prior.estimate.counts

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the randomizer, whole or not at all."""
        save_randomizer(self.randomizer, path, labels=self.labels, overwrite=overwrite)


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Plan):
    """Noisy labels, the randomizer that drew them, and what may be told about both.

    Attributes
    ----------
    values : array
        Of the shape of the labels that went in.
    """

    values: Floats = field(repr=False)
