"""The main job: private labels in, epsilon-label-DP labels out, and a mechanism that anybody can verify.

LabelRandomizer of [B23], Algorithm 3, with three corrections: the prior is estimated with exact discrete noise, its
share of the budget has a ceiling, and outputs may lie anywhere on the real line. Where a grid is asked for, it is
feasible for epsilon_2, the budget of the randomizer that uses it (the paper prints epsilon_1).

:class:`LabelJob` solves for the best randomizer, :class:`BaselineJob` takes one that needs no prior; both work on
arrays, and :class:`~optrand.release.table_job.TableJob` on files. No figure that they return or save is computed from
the true labels, but for what the prior's budget pays for; the number of rows is public.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.accounting import Spent
from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats, frozen, rectangular
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import labels as checked_labels
from optrand.base.validation import values as checked_values
from optrand.baselines.additive import Additive
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Line, in_words
from optrand.model.problem import Problem, regression
from optrand.release.conditioning import Conditioning, conditioned
from optrand.release.declared import DeclaredOutputs, PublicPrior, allowed_outputs
from optrand.release.diagnosis import Diagnosis, Readings, declared_places
from optrand.release.paid_prior import PaidPrior
from optrand.release.randomizer_file import KINDS, MECHANISM, NOISE, finite_moments, save_randomizer
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.priors import BudgetSplit, private_prior, split_at, split_budget
from optrand.sampling.smoothing import smoothed_prior
from optrand.solvers import Flow, solve
from optrand.solvers.dispatch import choose
from optrand.solvers.flow.solver import CLOSEST

__all__ = ["BaselineJob", "Job", "Keep", "LabelJob", "Plan", "ProgressCallback", "Release", "Summary", "no_progress"]

ProgressCallback = Callable[[str], object]
"""Told what a job does next, in a few words."""

Keep = Callable[[PaidPrior], object]
"""Given the prior as soon as it is drawn and paid for, before anything else can fail."""

Counts = NDArray[np.intp]

AFTER_THE_PRIOR = {"draws": False}
"""Metadata of options that decide whether labels are drawn, not which: a retry may change them."""


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
        frequent as any other*), without any penalty on bias; nothing is said of the true labels.
    private : bool
        False where a seeded source drew the noise: then the table must not be released.
    histograms : str
        Whether the histogram of the labels can be estimated, and how well, in words.
    copied : tuple of str
        Other columns of the released table, which were copied as they are.
    relative_loss : float, optional
        Of a release by groups: its objective under the priors, as a share of that of one randomizer for all rows.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelJob(Job):
    """The options of a release; :meth:`run` does it.

    A prior that is estimated is smoothed (:func:`~optrand.sampling.smoothing.smoothed_prior`): no label has prior 0.

    Parameters
    ----------
    labels : (k,) array
        The declared set, public, in any order.
    epsilon : float
        The whole budget, in nats.
    prior_epsilon : float, optional
        What the prior may spend of it; by default see :func:`~optrand.sampling.priors.split_budget`.
    public_prior : PublicPrior, optional
        A prior that spends nothing and is trusted to be public.
    paid_prior : PaidPrior, optional
        What an earlier run with the same labels and the same budget has paid for before it broke off.
    outputs : Line, Interval, Grid or EvenGrid
        Where noisy labels may lie; the real line by default.
    bias_penalty : float
        From 0 to ``math.inf``, which is the default: no noisy label is biased.
    loss : Loss or Tabulated
        Squared by default; a table has its rows and columns in increasing order of labels and outputs.
    max_gap : float
        The largest verified gap of an optimum that draws, 0 or more.
    clip : bool
        Whether labels beyond the ends of the declared set are moved to the nearest end. Without it they stop the job.

    Raises
    ------
    InvalidInput
        An option without meaning, two that exclude each other, or outputs that admit no unbiased randomizer.

    Examples
    --------
    >>> import numpy as np
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> job = LabelJob(labels=np.arange(4), epsilon=1.0)
    >>> release = job.run([0, 3, 3, 1, 0, 0] * 500, source=SeededEntropy(1))
    >>> summary = release.summary
    >>> summary.rows, summary.split.prior, summary.gap < 1e-6, summary.realised_epsilon <= 1.0
    (3000, 0.03651483716701107, True, True)
    >>> summary.private
    False
    """

    epsilon: float
    prior_epsilon: float | None = None
    public_prior: PublicPrior | None = None
    paid_prior: PaidPrior | None = None
    outputs: DeclaredOutputs = field(default_factory=Line)
    bias_penalty: float = math.inf
    loss: Loss | Tabulated = losses.squared
    max_gap: float = field(default=1e-6, metadata=AFTER_THE_PRIOR)

    @property
    def buys_a_prior(self) -> bool:
        """Whether a part of the budget goes to a prior that is estimated from the labels."""
        return self.public_prior is None and self.paid_prior is None and self.labels.size > 1

    def __post_init__(self) -> None:
        """Check every option before a private label is read."""
        super().__post_init__()
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if not self.max_gap >= 0:
            raise InvalidInput(f"the largest gap is {self.max_gap!r}, expected a number of at least 0")
        if self.prior_epsilon is not None and self.public_prior is not None:
            raise InvalidInput("a public prior spends nothing: give either it or a budget for the prior, not both")
        # Whatever the number of rows, the labels get no more than this.
        most = self.epsilon if self.prior_epsilon is None else split_at(self.epsilon, self.prior_epsilon).labels
        if self.paid_prior is not None:
            self._check_paid(self.paid_prior)
            most = self.paid_prior.split.labels
        question = self._question(most)
        _check_apart(question)
        _check_solvable(question)
        if self.public_prior is not None:
            replace(question, prior=self.public_prior.probabilities)

    def _check_paid(self, paid: PaidPrior) -> None:
        if self.public_prior is not None:
            raise InvalidInput("a prior is either public or was paid for in an earlier run: give one of them, not both")
        if not np.array_equal(paid.labels, self.labels):
            raise InvalidInput("the prior was paid for with other declared labels: declare the same ones again")
        part = paid.split.prior if self.prior_epsilon is None else self.prior_epsilon
        if (self.epsilon, part) != (paid.epsilon, paid.split.prior):
            raise InvalidInput(
                f"the prior was paid for with {paid.split.prior!r} of a budget of {paid.epsilon!r}, not with "
                f"{'a part' if self.prior_epsilon is None else repr(part)} of {self.epsilon!r}: give the same budget"
            )

    def _question(self, epsilon: float) -> Problem:
        """The problem whose answer the labels are drawn from, but for its prior."""
        k = self.labels.size
        outputs = allowed_outputs(self.outputs, self.labels, epsilon)
        return regression(
            self.labels,
            np.full(k, 1 / k),
            epsilon,
            loss=self.loss,
            bias_penalty=self.bias_penalty,
            outputs=outputs,
        )

    def question(self, rows: int) -> Problem:
        """The problem that is solved for a table of so many rows, with a uniform prior in place of its own."""
        return self._question(self.split(rows).labels)

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
        """See :meth:`Job.plan`."""
        tell, rows = announce or no_progress, int(counts.sum())
        split = self.split(rows)
        question = self._question(split.labels)
        tell("estimating the prior")
        bought = drawn if drawn is not None and self.buys_a_prior else self._bought(counts, split, source)
        try:
            if bought is not None and keep is not None:
                keep(bought)
            prior, words = self._prior(bought)
            tell("solving")
            best = tabulate(solve(replace(question, prior=prior)))
            # A public prior may have zeros on purpose: its optimum is what was asked for.
            fit = Conditioning(best) if self.public_prior is not None else conditioned(best)
            mechanism = fit.mechanism
            tell("proving")
            proof = self.proven(best, fit)
            if not fit.possible:
                (warn or no_progress)(fit.words)
            free = mechanism.problem.bias_penalty == 0
            loss = proof.upper if free else certify(replace(mechanism.problem, bias_penalty=0.0), mechanism).upper
            variance = float(mechanism.moments(self.labels).variances.max())
        except BaseException as error:
            if bought is not None and keep is None:
                error.add_note(bought.spent(None))
            raise
        summary = Summary(
            rows=rows,
            labels=self.labels.size,
            outputs=mechanism.n,
            allowed=in_words(question.outputs),
            epsilon=self.epsilon,
            split=split,
            prior=words,
            exact=True,
            gap=proof.gap,
            bias=proof.bias,
            variance=variance,
            realised_epsilon=float_above(Fraction(split.prior) + Fraction(proof.epsilon)),
            noisy_label_loss=loss,
            private=source.private,
            histograms=fit.words,
        )
        return Plan(self.labels, mechanism, summary, bought or self.paid_prior, fit, bought is not None)

    def proven(self, best: Mechanism, fit: Conditioning) -> Certificate:
        """Proof of the mechanism that draws; the optimum is judged before anything was mixed into it.

        Raises
        ------
        NotCertified
            It is not private, or the gap of the optimum is above :attr:`max_gap`.
        """
        proof = certify(best).require(gap=self.max_gap)
        return proof if fit.mechanism is best else certify(fit.mechanism).require(gap=math.inf)

    def split(self, rows: int) -> BudgetSplit:
        """See :meth:`Job.split`."""
        if self.paid_prior is not None:
            if rows != self.paid_prior.rows:
                raise InvalidInput(
                    f"the prior was paid for with {self.paid_prior.rows} labels and there are {rows}: give the same "
                    "table, or leave out the prior and pay for another one"
                )
            return self.paid_prior.split
        if not self.buys_a_prior:
            return BudgetSplit(0.0, self.epsilon)
        if self.prior_epsilon is not None:
            return split_at(self.epsilon, self.prior_epsilon)
        return split_budget(self.epsilon, self.labels.size, rows)

    def _bought(self, counts: Counts, split: BudgetSplit, entropy: EntropySource) -> PaidPrior | None:
        """A prior drawn from the private labels, if one is needed."""
        if not self.buys_a_prior:
            return None
        estimate = private_prior(counts, split.prior, source=entropy)
        return PaidPrior(self.labels, estimate, self.epsilon, int(counts.sum()))

    def _prior(self, bought: PaidPrior | None) -> tuple[Floats, str]:
        """The prior, and where it came from in words."""
        paid = bought or self.paid_prior
        if paid is not None:
            words = "estimated privately"
            if bought is None:
                words += f" in an earlier run, epsilon {paid.split.prior!r} spent then"
            if paid.estimate.uniform:
                words += "; the noise left no count above 0, so it is uniform"
            return smoothed_prior(paid.estimate, paid.rows), words
        if self.public_prior is not None:
            words = "public: trusted as given, nothing spent on it"
            if self.public_prior.absent:
                words += f"; {self.public_prior.absent} label(s) that it does not list have prior 0"
            return self.public_prior.probabilities, words
        return np.ones(1), "none: a single label has nothing to hide"


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

    Raises
    ------
    InvalidInput
        Floating-point noise that was not allowed, a mechanism for other labels, labels beyond those of the noise, or
        noise whose variance is no float.

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

    def __post_init__(self) -> None:
        """Check every option before a private label is read."""
        super().__post_init__()
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
        summary = Summary(
            rows=int(counts.sum()),
            labels=k,
            outputs=drawing.n,
            allowed=drawing.outputs_in_words,
            epsilon=drawing.epsilon,
            split=self.split(int(counts.sum())),
            prior="none: the randomizer needs none",
            exact=drawing.exact,
            gap=math.inf,
            bias=moments.bias,
            variance=float(moments.variances.max()),
            realised_epsilon=drawing.realised_epsilon,
            noisy_label_loss=moments.loss(np.full(k, 1 / k)),
            private=source.private,
            histograms=words,
        )
        return Plan(self.labels, drawing, summary, conditioning=fit)


def _check_apart(question: Problem) -> None:
    """Refuse labels that the solver would refuse, before anything is paid."""
    if Flow().accepts(question) and np.diff(question.labels).min() < CLOSEST * np.ptp(question.labels):
        raise InvalidInput(
            f"two labels are less than {CLOSEST:g} of the labels' range apart, too close for floats to tell apart in a "
            "solution: merge them"
        )


def _check_solvable(question: Problem) -> None:
    """Refuse what no solver answers and no file can name, before anything is paid."""
    loss = question.loss
    if not isinstance(loss, Tabulated) and losses.by_name.get(loss.name) != loss:
        raise InvalidInput(
            f"the loss {loss.name!r} is not one of optrand.losses, so no release can name it: use losses.Tabulated"
        )
    if not choose(question).accepts(question):
        raise InvalidInput(
            f"no solver takes the loss {loss.name!r} with this price of bias where outputs may lie on "
            f"{in_words(question.outputs)}: allow a grid of outputs"
        )
