"""Jobs that draw labels with a given randomizer and need no prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optrand.base.validation import flag
from optrand.baselines.additive import Additive
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.release.base_job import Job
from optrand.release.conditioning import Conditioning
from optrand.release.job import AFTER_THE_PRIOR, noisy_label_loss
from optrand.release.paid_prior import PaidPrior
from optrand.release.plan import Counts, Keep, Plan, ProgressCallback, Summary, no_progress
from optrand.release.randomizer_file import KINDS, MECHANISM, NOISE, finite_moments
from optrand.sampling.entropy import EntropySource
from optrand.sampling.priors import BudgetSplit

__all__ = ["BaselineJob"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineJob(Job):
    """The options of a release without a prior, all of whose budget goes to the labels; :meth:`run` does it.

    Parameters
    ----------
    labels : (k,) array
        The declared set, public, in any order.
    randomizer : Additive or Mechanism
        For these labels; :func:`~optrand.release.named.named_randomizer` finds one by its name.
    clip : bool
        Whether labels beyond the ends of the declared set are moved to the nearest end. Without it they stop the job.
    allow_inexact : bool
        Whether floating-point noise will do, whose privacy holds for real numbers only.
    classes : bool
        Whether labels stand for names, so that a noisy one is right or wrong.
    minimax_gap : float, optional
        Largest verified gap of a mechanism whose largest loss of all labels is to be the least; by default that is not
        asked of it.

    Raises
    ------
    InvalidInput
        Floating-point noise that was not allowed, a mechanism for other labels, labels beyond those of the noise, or
        noise whose variance is no float.
    NotCertified
        A mechanism whose largest loss is not the least to within `minimax_gap`.

    Examples
    --------
    >>> from optrand.baselines import DiscreteLaplace
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> job = BaselineJob(labels=np.arange(4), randomizer=DiscreteLaplace(np.arange(4), 1.0))
    >>> release = job.run([0, 3, 3, 1, 0, 0] * 500, source=SeededEntropy(1))
    >>> summary = release.summary
    >>> summary.rows, summary.realised_epsilon, summary.exact, summary.bias, round(summary.variance, 3)
    (3000, 1.0, True, 0.0, 17.834)
    """

    randomizer: Additive | Mechanism
    allow_inexact: bool = False
    classes: bool = False
    minimax_gap: float | None = field(default=None, metadata=AFTER_THE_PRIOR)

    def __post_init__(self) -> None:
        """Check every option before a private label is read."""
        super().__post_init__()
        flag(self.allow_inexact, "allow_inexact")
        flag(self.classes, "classes")
        if type(self.randomizer) not in (*KINDS.values(), Mechanism):
            raise InvalidInput(
                f"the randomizer is of type {type(self.randomizer).__name__}, expected a Mechanism or one of "
                f"{', '.join(kind.__name__ for kind in KINDS.values())}"
            )
        if not (self.exact or self.allow_inexact):
            raise InvalidInput(
                f"the noise of {type(self.randomizer).__name__} is drawn in floats, whose last bits may tell labels "
                "apart, so that its privacy holds for real numbers only: take the discrete one, or allow inexact draws "
                "(--allow-inexact)"
            )
        if isinstance(self.randomizer, Mechanism) and not np.array_equal(self.randomizer.labels, self.labels):
            raise InvalidInput("the mechanism is made for other labels than the declared ones: make it for these")
        finite_moments(self.randomizer, self.labels)
        if self.minimax_gap is not None:
            self._proven.require(gap=self.minimax_gap)

    @cached_property
    def _proven(self) -> Certificate:
        """Certificate of the largest loss."""
        if not isinstance(self.randomizer, Mechanism):
            raise InvalidInput("noise is no minimax randomizer: leave minimax_gap out")
        return certify(self.randomizer, worst_case=True)

    @property
    def exact(self) -> bool:
        """Whether draws have exactly the probabilities that were proven private."""
        return self.randomizer.exact

    def split(self, rows: int) -> BudgetSplit:  # noqa: ARG002
        """All of it goes to the labels."""
        return BudgetSplit(0.0, self.randomizer.epsilon)

    @property
    def ending(self) -> str:
        """A mechanism is saved as one; noise, which has no table, in a file of another kind."""
        return MECHANISM if self.randomizer.n else NOISE

    def plan(
        self,
        counts: Counts,
        *,
        source: EntropySource,
        announce: ProgressCallback | None = None,  # noqa: ARG002
        keep: Keep | None = None,  # noqa: ARG002
        warn: ProgressCallback | None = None,
        drawn: PaidPrior | None = None,  # noqa: ARG002
    ) -> Plan:
        """See :meth:`Job.plan`; nothing is spent on a prior."""
        drawing, k = self.randomizer, self.labels.size
        fit = Conditioning(drawing) if isinstance(drawing, Mechanism) else None
        words = "no histogram, no loss of a label: additive noise has no table" if fit is None else fit.words
        if fit is None or not fit.possible:
            (warn or no_progress)(words)
        moments = finite_moments(drawing, self.labels)
        changed = self._of_classes
        proof = changed if self.minimax_gap is None else self._proven
        summary = Summary(
            rows=int(counts.sum()),
            labels=k,
            outputs=drawing.n,
            allowed=drawing.outputs_in_words,
            epsilon=drawing.epsilon,
            split=self.split(int(counts.sum())),
            prior="none: the randomizer needs none"
            if self.minimax_gap is None
            else "none: minimax, the randomizer whose largest loss of all labels is least",
            exact=drawing.exact,
            gap=math.inf if proof is None else proof.gap,
            bias=moments.bias,
            variance=float(moments.variances.max()),
            realised_epsilon=drawing.realised_epsilon,
            noisy_label_loss=moments.loss(np.full(k, 1 / k))
            if changed is None or not isinstance(drawing, Mechanism)
            else noisy_label_loss(drawing, changed),
            private=source.private,
            histograms=words,
            rule=None if self.minimax_gap is None else "minimax",
        )
        return Plan(self.labels, drawing, summary, conditioning=fit)

    @cached_property
    def _of_classes(self) -> Certificate | None:
        """Certificate of a mechanism that keeps classes, under the prior that it was made for; None of another."""
        drawing = self.randomizer
        if not self.classes or not isinstance(drawing, Mechanism) or drawing.problem.loss != losses.zero_one:
            return None
        return certify(drawing)
