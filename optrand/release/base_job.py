"""A way to replace labels by private ones: what every job has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optrand.accounting import Spent
from optrand.base.validation import Floats, flag, frozen, rectangular
from optrand.base.validation import labels as checked_labels
from optrand.base.validation import values as checked_values
from optrand.release.diagnosis import Diagnosis, Readings, declared_places
from optrand.release.paid_prior import PaidPrior
from optrand.release.plan import Counts, Keep, Plan, ProgressCallback, Release, no_progress
from optrand.release.randomizer_file import MECHANISM
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.priors import BudgetSplit

__all__ = ["Job"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job(ABC):
    """A way to replace labels by private ones.

    Attributes
    ----------
    labels : (k,) array
        The declared set, increasing.
    clip : bool
        Whether labels beyond the ends of the declared set are moved to the nearest end. Without it they stop the job.
    """

    labels: Floats
    clip: bool = False

    def __post_init__(self) -> None:
        """Sort the labels."""
        flag(self.clip, "clip")
        object.__setattr__(self, "labels", frozen(np.sort(checked_labels(self.labels))))

    @property
    def ending(self) -> str:
        """Suffix that the file of the randomizer adds to the name of the table that it is beside."""
        return MECHANISM

    @property
    def buys_a_prior(self) -> bool:
        """Whether a part of the budget goes to a prior that is estimated from the labels."""
        return False

    @property
    def exact(self) -> bool:
        """Whether draws have exactly the probabilities that were proven private."""
        return True

    def diagnose(self, values: ArrayLike) -> Diagnosis:
        """Exact counts of labels that :meth:`run` would refuse: for the owner of the labels alone, not to be shared."""
        return Diagnosis.of(Readings.of_array(values), self.labels, clip=self.clip)

    def run(
        self,
        values: ArrayLike,
        *,
        source: EntropySource | None = None,
        announce: ProgressCallback | None = None,
        keep: Keep | None = None,
        warn: ProgressCallback | None = None,
    ) -> Release:
        """Replace every label.

        Parameters
        ----------
        values : array of labels, any shape
            Private.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.
        announce : callable, optional
            Told of each stage as it begins.
        keep : callable, optional
            Given the prior as soon as it is paid for. Should anything fail later, a job with it as `paid_prior` does
            not pay again. Never called by a job that needs no prior.
        warn : callable, optional
            Told, before any label is drawn, what cannot be estimated from the release; what it raises stops the job.

        Raises
        ------
        InvalidInput
            No labels, or labels outside the declared set: the message says neither which nor how many. Or outputs that
            admit no unbiased randomizer with what the prior leaves of the budget; or a number of rows that is not that
            of the prior paid for. In all these cases nothing is spent.
        NotCertified
            The solver's answer could not be proven to be any good. A note says what the prior has spent by then, as
            with every error that comes after it.

        Notes
        -----
        *Privacy.* The prior is epsilon_1-DP (:func:`~optrand.sampling.priors.private_histogram`) and the mechanism is a
        function of it, or fixed before any label is read; given the mechanism, the noisy labels are epsilon_2-DP, for
        each depends on one label only: epsilon_1 + epsilon_2 by composition, at most `epsilon` as exact numbers.
        """
        entropy = SystemEntropy() if source is None else source
        tell = announce or no_progress
        given = rectangular(values, "the labels")
        places = declared_places(checked_values(given.ravel(), "the labels"), self.labels, clip=self.clip)
        counts = np.bincount(places, minlength=self.labels.size)
        plan = self.plan(counts, source=entropy, announce=tell, keep=keep, warn=warn)
        try:
            tell("drawing labels")
            noisy = plan.randomizer.sample(self.labels[places], source=entropy)
        except BaseException as error:
            # A caller that keeps the prior adds a note of its own, with the place.
            if plan.bought and plan.prior is not None and keep is None:
                error.add_note(plan.prior.spent(None))
            raise
        return Release(**vars(plan), values=noisy.reshape(given.shape))

    @abstractmethod
    def split(self, rows: int) -> BudgetSplit:
        """Budgets of the prior and of the labels for a number of rows: public, as that is."""

    def parts(self, rows: int) -> dict[str, Spent]:
        """What prior and labels of a number of rows cost; a prior that an earlier run has paid for costs no more."""
        split = self.split(rows)
        prior = {"prior": Spent(Fraction(split.prior))} if self.buys_a_prior else {}
        return {**prior, "labels": Spent(Fraction(split.labels), exact=self.exact)}

    @abstractmethod
    def plan(
        self,
        counts: Counts,
        *,
        source: EntropySource,
        announce: ProgressCallback | None = None,
        keep: Keep | None = None,
        warn: ProgressCallback | None = None,
        drawn: PaidPrior | None = None,
    ) -> Plan:
        """Spend on the prior what it costs, and find what the labels are to be drawn with.

        Parameters
        ----------
        counts : (k,) array of integers
            How often each declared label occurs. Private.
        source, announce, keep, warn
            As for :meth:`run`.
        drawn : PaidPrior, optional
            The prior of this very release, drawn before it was interrupted; ignored by a job that buys none.
        """
