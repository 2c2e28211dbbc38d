"""The main job: private labels in, epsilon-label-DP labels out, and a mechanism that anybody can verify.

LabelRandomizer of [B23], Algorithm 3, with three corrections: the prior is estimated with exact discrete noise, its
share of the budget has a ceiling, and outputs may lie anywhere on the real line. Where a grid is asked for, it is
feasible for epsilon_2, the budget of the randomizer that uses it (the paper prints epsilon_1).

:class:`LabelJob` solves for the best randomizer, :class:`~optrand.release.baseline_job.BaselineJob` takes one that
needs no prior; both work on arrays, and :class:`~optrand.release.table_job.TableJob` on files. No figure that they
return or save is computed from the true labels, but for what the prior's budget pays for; the number of rows is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats, expect
from optrand.base.validation import epsilon as checked_epsilon
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Line, in_words
from optrand.model.problem import Problem, regression
from optrand.release.base_job import Job
from optrand.release.conditioning import Conditioning, conditioned
from optrand.release.declared import DeclaredOutputs, PublicPrior, allowed_outputs
from optrand.release.paid_prior import PaidPrior
from optrand.release.plan import Counts, Keep, Plan, ProgressCallback, Summary, no_progress
from optrand.release.rules import Rule
from optrand.sampling.entropy import EntropySource
from optrand.sampling.priors import BudgetSplit, private_prior, split_at, split_budget
from optrand.sampling.smoothing import smoothed_prior
from optrand.solvers import Flow, solve
from optrand.solvers.dispatch import choose
from optrand.solvers.flow.solver import CLOSEST

__all__ = ["AFTER_THE_PRIOR", "LabelJob", "noisy_label_loss"]

AFTER_THE_PRIOR = {"draws": False}
"""Metadata of options that decide whether labels are drawn, not which: a retry may change them."""


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
    rule : Rule, optional
        Randomizer of a name in place of the optimum that is fit for histograms.
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
    rule: Rule | None = None

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
        if self.public_prior is not None:
            way = "PublicPrior(probabilities), or read_prior(path, labels), of optrand.release.declared"
            expect(self.public_prior, PublicPrior, "public_prior", way)
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
        if self.rule is not None:
            self.rule.check(question)
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
            best = tabulate((self.rule or solve)(replace(question, prior=prior)))
            fit = self.fitted(best)
            mechanism = fit.mechanism
            tell("proving")
            proof = self.proven(best, fit)
            if not fit.possible:
                (warn or no_progress)(fit.words)
            loss = noisy_label_loss(mechanism, proof)
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
            rule=None if self.rule is None else self.rule.name,
        )
        return Plan(self.labels, mechanism, summary, bought or self.paid_prior, fit, bought is not None)

    def fitted(self, best: Mechanism) -> Conditioning:
        """Mechanism to draw from; one that was asked for by name, or for a public prior, zeros included, is left."""
        as_asked = self.public_prior is not None or self.rule is not None
        return Conditioning(best) if as_asked else conditioned(best)

    def proven(self, best: Mechanism, fit: Conditioning) -> Certificate:
        """Proof of the mechanism that draws; the optimum is judged before anything was mixed into it.

        Of a randomizer that is asked for by name and is no optimum the gap is stated, whatever it is.

        Raises
        ------
        NotCertified
            It is not private, or the gap of the optimum is above :attr:`max_gap`.
        """
        stated = self.rule is not None and not self.rule.optimal
        proof = certify(best).require(gap=math.inf if stated else self.max_gap)
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


def noisy_label_loss(mechanism: Mechanism, proof: Certificate) -> float:
    """Expected loss of a mechanism under its prior, rounded up; of classes the probability that a label changes."""
    problem = mechanism.problem
    if problem.loss == losses.zero_one:
        return float_above(1 - Fraction(proof.lower))
    return proof.upper if problem.bias_penalty == 0 else certify(replace(problem, bias_penalty=0.0), mechanism).upper


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
