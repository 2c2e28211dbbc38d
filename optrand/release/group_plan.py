"""What the labels of groups of rows are drawn with: a prior and a randomizer for each pool of groups, one epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.outputs import in_words
from optrand.release.base_job import Job
from optrand.release.charged import ChargedRelease
from optrand.release.conditioning import Conditioning
from optrand.release.groups import GroupPriors, Pools, group_mechanisms, relative_loss
from optrand.release.job import LabelJob, noisy_label_loss
from optrand.release.plan import ProgressCallback, Summary
from optrand.solvers import solve

__all__ = ["GroupPlan", "checked_job", "plan_groups"]


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """Randomizers of all pools of groups, once all that the priors cost has been spent.

    Attributes
    ----------
    labels : (k,) array
        The declared set.
    pools : Pools
    priors : GroupPriors
        One for each pool.
    fits : tuple of Conditioning
        The randomizer of each pool, and how well histograms can be estimated from it.
    summary : Summary
        Of the whole table; its bias, variance, gap and epsilon are the largest of all pools.
    """

    labels: Floats
    pools: Pools
    priors: GroupPriors
    fits: tuple[Conditioning, ...]
    summary: Summary

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Randomizer of each pool."""
        return tuple(fit.mechanism for fit in self.fits)

    @property
    def noisy_counts(self) -> tuple[int, ...]:
        """The noisy histograms of all pools together, clipped at 0."""
        return tuple(max(int(count), 0) for count in self.priors.counts.sum(axis=0).tolist())


def checked_job(job: Job) -> LabelJob:
    """Job whose randomizer depends on the prior of a group.

    Raises
    ------
    InvalidInput
        Any other.
    """
    if not isinstance(job, LabelJob) or not job.buys_a_prior:
        raise InvalidInput(
            "groups have a randomizer each for a prior of their own, estimated from the labels: leave the groups out, "
            "or the prior and the named randomizer"
        )
    return job


def plan_groups(
    job: Job,
    counts: NDArray[np.intp],
    charged: ChargedRelease,
    *,
    tell: ProgressCallback,
    warn: ProgressCallback | None = None,
) -> GroupPlan:
    """Spend on the priors what they cost, and find what the labels of each pool are to be drawn with.

    Parameters
    ----------
    job : LabelJob
    counts : (groups, k) array of int
        Private, but for the sums of rows.
    charged : ChargedRelease
    tell, warn : callable
        As for :meth:`.LabelJob.plan`.

    Notes
    -----
    *Proof of privacy.* Neighbouring tables differ in the label of one row, which is in one group: one histogram differs
    (parallel composition). Given the mechanisms each noisy label depends on one label alone.

    Raises
    ------
    InvalidInput
        A job that buys no prior.
    NotCertified
        The gap of an optimum is above that of the job.
    """
    chosen, rows = checked_job(job), int(counts.sum())
    split, question = chosen.split(rows), chosen.question(rows)
    # A group all of whose labels are missing is public, too.
    pools = Pools.of_sizes(np.maximum(counts.sum(axis=1), 1), k=chosen.labels.size, prior_epsilon=split.prior)
    tell("estimating the priors")
    priors = _priors(pools.counts(counts), split.prior, charged)
    tell("solving")
    best = group_mechanisms(question, priors, solver=chosen.rule)
    single = tabulate((chosen.rule or solve)(replace(question, prior=priors.mixture)))
    distinct = {id(one): chosen.fitted(one) for one in best}
    tell("proving")
    proofs = {id(one): chosen.proven(one, distinct[id(one)]) for one in best}
    fits = tuple(distinct[id(one)] for one in best)
    words = _histograms(fits)
    if warn is not None and not all(fit.possible for fit in fits):
        warn(words)
    loss = {id(fit): Fraction(noisy_label_loss(fit.mechanism, proofs[place])) for place, fit in distinct.items()}
    summary = Summary(
        rows=rows,
        labels=chosen.labels.size,
        outputs=max(fit.mechanism.n for fit in fits),
        allowed=in_words(question.outputs),
        epsilon=chosen.epsilon,
        split=split,
        prior=f"estimated privately for {len(pools)} pool(s) of {pools.sizes.size} group(s) of rows",
        exact=True,
        gap=max(proof.gap for proof in proofs.values()),
        bias=max(proof.bias for proof in proofs.values()),
        variance=max(float(fit.mechanism.moments(chosen.labels).variances.max()) for fit in fits),
        realised_epsilon=float_above(Fraction(split.prior) + max(Fraction(proof.epsilon) for proof in proofs.values())),
        noisy_label_loss=float_above(
            sum((size * loss[id(fit)] for size, fit in zip(priors.rows.tolist(), fits, strict=True)), Fraction(0))
            / rows
        ),
        private=charged.private,
        histograms=words,
        relative_loss=relative_loss(best, single, priors),
        rule=None if chosen.rule is None else chosen.rule.name,
    )
    return GroupPlan(chosen.labels, pools, priors, fits, summary)


def _priors(counts: NDArray[np.int64], epsilon: float, charged: ChargedRelease) -> GroupPriors:
    """Noisy histograms; those that were drawn before an interruption are not drawn again."""
    kept: Mapping[str, Sequence[int]] = charged.priors
    if kept:
        noisy = np.array([kept[str(pool)] for pool in range(len(counts))])
        return GroupPriors(noisy, counts.sum(axis=1), epsilon)
    drawn = GroupPriors.learn(counts, epsilon, source=charged.prior_source)
    charged.keep_priors({str(pool): row for pool, row in enumerate(drawn.counts.tolist())})
    return drawn


def _histograms(fits: Sequence[Conditioning]) -> str:
    """What can be estimated of the labels' histogram, in a line."""
    obstacle = next((fit for fit in fits if not fit.possible), None)
    if obstacle is not None:
        return obstacle.words
    worst = max(fit.multiple for fit in fits)
    if math.isnan(worst):
        return "histogram and losses"
    most = max(fits, key=lambda fit: fit.cost)
    mixed = f"; it draws labels at up to {most.cost:.2%} of {most.lost}" if most.weight else ""
    return (
        f"histogram and losses, each group's count within {worst:.3g} times the noise of debiased randomized response"
        f"{mixed}"
    )
