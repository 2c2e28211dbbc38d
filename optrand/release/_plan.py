r"""Mechanisms of a release, one for each pool of groups, computed once the prior has been paid for.

A row belongs to one group, so the histograms of all groups cost as much as one of the whole table (parallel
composition). [B23], section 6, leaves this open. A table without groups has one group.

The optimum for squared loss may draw neighbouring labels from the same distribution. Its counts are compared with those
of debiased randomized response, which releases every label by an output of its own: with :math:`q = 1 / (e^\epsilon + k
- 1)` and :math:`p = e^\epsilon q` its noise on the count of ``y`` has, for one row under the prior ``h``, the variance

.. math:: \frac{h_y p (1 - p) + (1 - h_y) q (1 - q)}{(p - q)^2}.

If the largest ratio of standard deviations is above :attr:`Limits.multiple`, labels are drawn from debiased randomized
response with a small probability ``w``. Unbiased values of an indicator, of second moment :math:`S` from the optimum
and :math:`S'` from the other, then have a combination of at most :math:`((1 - w) / S + w / S')^{-1}`, if outputs show
which of the two drew. All of this is a function of the declared labels, epsilon and the prior.

The optimum for classes leaves out rare ones, often all except one. If its ratio is too large, randomized
response draws as many labels as cost :attr:`Limits.class_cost` of the probability that a label stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.base._arithmetic import float_above
from optrand.base._validation import Floats, freeze_array
from optrand.certificates._certificate import Certificate, certify
from optrand.closed_forms import debiased_rr, gap_response, rr, rr_top_k
from optrand.errors import InvalidInput
from optrand.estimate._averages import UNBIASED
from optrand.estimate._debiasing import OPTIONS, Debiasing
from optrand.mechanism._columns import mixture
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Grid, Line, Problem
from optrand.model._table import Table
from optrand.release._question import Question
from optrand.release._rows import Groups, Indices
from optrand.sampling._entropy import EntropySource
from optrand.sampling._priors import private_histogram, shrink_histograms
from optrand.solvers import solve


def rehearse(question: Question, rows: int) -> str:
    """Find and prove a mechanism, so that errors come before the charge: for a uniform prior if it buys one.

    Return the reason why no histogram can be estimated from its outputs, or an empty text.
    """
    public = question.prior if isinstance(question.prior, np.ndarray) else None
    return _fit(question, _find_best(question, question.split(rows).labels, public)).obstacle


def draw_histograms(question: Question, counts: NDArray[Any], source: EntropySource) -> NDArray[np.int64] | None:
    """Draw the noisy histogram of each pool from the private ``(groups, k)`` counts, or None if no prior is bought.

    Groups are public and a row is in one of them, so two tables that differ in one label differ in one histogram, which
    is epsilon-DP (:func:`~optrand.sampling._priors.private_histogram`).
    """
    if not question.buys_prior:
        return None
    epsilon, pools = question.split(int(counts.sum())).prior, pools_of(question, counts.sum(axis=1))
    # Small groups are pooled before noise is added: the noise on each of their own counts would exceed them.
    pooled = np.zeros((int(pools.max()) + 1, question.k), dtype=np.int64)
    np.add.at(pooled, pools, counts)
    return np.array([private_histogram(row, epsilon, source=source) for row in pooled], dtype=np.int64)


def find_mechanisms(
    question: Question,
    groups: Groups,
    sizes: Indices,
    noisy: NDArray[np.int64] | None,
    announce: Callable[[str], object] = lambda _: None,
) -> tuple[list[Conditioning], float | None]:
    """Find the mechanism of each pool of groups of these sizes, for their noisy histograms.

    All of the result may be published: the mechanisms with their fitness for histograms, and the objective of a release
    by groups under the noisy priors, as a share of that of one mechanism for all (None without groups).
    """
    # Sizes are public, so the split of the budget discloses nothing.
    split = question.split(int(sizes.sum()))
    announce("solving")
    rows = np.bincount(pools_of(question, sizes), sizes)
    if noisy is not None:
        of_each = shrink_histograms(noisy, rows, split.prior)
    else:
        public = question.prior if isinstance(question.prior, np.ndarray) else np.full(question.k, 1 / question.k)
        of_each = public[np.newaxis]
    # Pools with the same prior share a mechanism.
    priors, inverse = np.unique(of_each, axis=0, return_inverse=True)
    of_pools = inverse.ravel().tolist()
    best = [_find_best(question, split.labels, prior) for prior in priors]
    announce("making it fit for histograms")
    fits = [_fit(question, one) for one in best]
    relative = None
    if groups.columns and noisy is not None:
        relative = _relative_loss(question, split.labels, noisy, [best[place] for place in of_pools], rows)
    return [fits[place] for place in of_pools], relative


def pools_of(question: Question, sizes: Indices) -> Indices:
    """Return the pool of each group, from 0 on, by the public sizes of all. One pool if no prior is bought.

    A group has a pool of its own if its rows outnumber the noise on its counts, which adds up to about ``2 k`` over the
    epsilon of the prior. All others share the last one: for 53 labels and a prior of 0.05, of groups of 9,000, 40,
    7,000 and 300 rows the second and the fourth.
    """
    if not question.buys_prior:
        return np.zeros(sizes.size, dtype=np.intp)
    epsilon = question.split(int(sizes.sum())).prior
    alone = np.maximum(sizes, 1) > (2 * question.k / epsilon if epsilon else math.inf)
    pools: Indices = np.where(alone, np.cumsum(alone) - 1, alone.sum())
    return pools


def prove(question: Question, mechanism: Mechanism, gap: float = math.inf) -> Certificate:
    """Return the certificate of a mechanism. That of minimax bounds the largest loss of all labels."""
    return certify(mechanism, worst_case=question.randomizer == "minimax").require(gap=gap)


def describe_prior(question: Question, groups: Groups, noisy: NDArray[np.int64] | None) -> str:
    """Return the origin of the prior, in words."""
    if isinstance(question.prior, np.ndarray):
        return "public: trusted as given, nothing spent on it"
    if question.randomizer == "minimax":
        return "none: minimax, the randomizer whose largest loss of all labels is least"
    if noisy is None:
        return "none: nothing was estimated from the labels"
    if groups.columns:
        return f"estimated privately for {len(noisy)} pool(s) of {len(groups.names)} group(s) of rows"
    empty = ", uniform because the noise left no count above 0" if noisy.max() <= 0 else ""
    return f"estimated privately{empty}"


def _find_best(question: Question, epsilon: float, prior: Floats | None) -> Mechanism:
    """Return the mechanism of a question for a prior, by default a uniform one, proven to be within its gap."""
    given = question.randomizer
    best = given if isinstance(given, Mechanism) else mechanism_for(question.problem(epsilon, prior), given or "")
    # Randomizers that are not optimal are released with any gap, which the record states.
    optimal = given is None or given in ("optimal", "rr-with-prior", "rr-on-bins", "minimax")
    prove(question, best, question.gap if optimal else math.inf)
    return best


def _fit(question: Question, best: Mechanism) -> Conditioning:
    return Conditioning(best) if question.draws_optimum else condition(best)


def _relative_loss(
    question: Question, epsilon: float, noisy: NDArray[np.int64], best: list[Mechanism], rows: NDArray[Any]
) -> float:
    """Return the objective under the priors of pools, as a share of that of one mechanism for all rows."""
    total = np.maximum(noisy.sum(axis=0), 1)
    single = _find_best(question, epsilon, total / total.sum())
    own = sum(size * expected_loss(one) for size, one in zip(rows, best, strict=True))
    common = sum(size * expected_loss(single, prior=one.problem.prior) for size, one in zip(rows, best, strict=True))
    return float(own / common) if common else 1.0


def mechanism_for(problem: Problem, randomizer: str = "") -> Mechanism:
    """Return the mechanism of a problem: the optimum, or a randomizer by name."""
    name, _, size = randomizer.partition(":")
    if name == "rr":
        return rr(problem.labels, problem.epsilon)
    if name == "debiased-rr":
        return debiased_rr(problem.labels, problem.epsilon)
    if name == "minimax":
        return _find_minimax(problem)
    if size:
        found = rr_top_k(problem.prior, int(size), problem.epsilon)
        outputs = problem.labels[found.outputs.astype(np.intp)]
        return Mechanism(problem, Table(problem.labels, outputs, found.table.steps), found.dual)
    if name == "gap-response" and problem.k > 1:
        found = gap_response(problem.labels, problem.prior, problem.epsilon)
        low, high = found.outputs[[0, -1]].tolist()
        if low < problem.outputs.low or high > problem.outputs.high:
            raise InvalidInput(f"gap-response has outputs from {low:g} to {high:g}: leave the outputs out")
        return Mechanism(problem, found.table, found.dual)
    return solve(problem)


# Solved before the charge, and used after it: 500 labels take half a minute.
@lru_cache(maxsize=4)
def _find_minimax(problem: Problem) -> Mechanism:
    from optrand.studies import minimax

    if isinstance(problem.outputs, Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: leave the grid out")
    return minimax(problem.labels, problem.epsilon, bias_penalty=problem.bias_penalty, outputs=problem.outputs)


def expected_loss(mechanism: Mechanism, **changes: Any) -> float:
    """Return the expected loss and bias penalty, or 1 - accuracy, rounded up, after changes to the problem."""
    problem = replace(mechanism.problem, **changes)
    changed = mechanism if problem == mechanism.problem else Mechanism(problem, mechanism.table)
    proof = changed.certificate
    return float_above(1 - Fraction(proof.lower)) if proof.maximised else proof.upper


@dataclass(frozen=True)
class Limits:
    """Limits of mixing."""

    # Ratio of a count's standard deviation to that of (debiased) randomized response above which the two are mixed.
    multiple: float = 10.0
    # Largest share of the loss under the prior that mixing may cost: with the smoothing of the prior at most 1 %.
    cost: float = 0.008
    # Share of the probability that a class stays, under the prior, that mixing costs.
    class_cost: float = 0.01
    # Most labels for which errors of counts are computed, by one solution each with a factored table.
    labels: int = 2001


LIMITS = Limits()


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Fitness of a mechanism for histograms, and for losses that are corrected for the noise.

    The weight is the share of labels that (debiased) randomized response draws. Its cost is a share of the loss under
    the prior or, for classes, of the probability that one stays.
    """

    mechanism: Mechanism
    weight: float = 0.0
    cost: float = 0.0

    @cached_property
    def obstacle(self) -> str:
        """Reason why no histogram can be estimated. Empty if one can."""
        try:
            _ = self._debiasing
        except InvalidInput as error:
            return str(error)
        return ""

    @cached_property
    def count_errors(self) -> Floats | None:
        """Standard deviation of the noise on each count, ``(k,)``, for one row under the prior.

        None if there is no histogram, or too many labels to compute it.
        """
        if self.obstacle or self.mechanism.labels.size > LIMITS.labels:
            return None
        squares = [self._debiasing.chances @ values**2 for *_, values in self._debiasing.indicators()]
        return freeze_array(np.sqrt(np.maximum(np.concatenate(squares) - self._debiasing.prior, 0.0)))

    @cached_property
    def response_errors(self) -> Floats:
        """Those standard deviations under debiased randomized response at the same epsilon."""
        rest, prior = self.mechanism.labels.size - 1, self.mechanism.problem.prior
        # In powers of 1 / E, which do not overflow, and p - q without cancellation.
        shrink = math.exp(-self.mechanism.epsilon)
        stay = 1 / (1 + rest * shrink)
        other = stay * shrink
        apart = math.expm1(self.mechanism.epsilon) * other
        return freeze_array(np.sqrt(prior * stay * (other * rest) + (1 - prior) * other * (1 - other)) / apart)

    @property
    def multiple(self) -> float:
        """Largest ratio of the two errors, infinite without a histogram, NaN if it was not computed."""
        if self.obstacle:
            return math.inf
        if self.count_errors is None:
            return math.nan
        if self.mechanism.labels.size == 1:
            return 1.0
        return float((self.count_errors / self.response_errors).max())

    @cached_property
    def _debiasing(self) -> Debiasing:
        return Debiasing.of(self.mechanism)


@dataclass(frozen=True)
class Estimates:
    """Standard deviations of the noise that a release leaves on its estimates, in units of the labels.

    All are expected under the prior or, without one, the uniform prior.

    Attributes
    ----------
    label : float
        Standard deviation of one label.
    mean : float or None
        Standard deviation of the mean of all rows. None if the mechanism is biased.
    histogram : bool
        Whether the labels' histogram can be estimated, and with it losses without the noise's bias.
    counts : tuple of float, optional
        Standard deviation of each label's count. None without a histogram or for too many labels.
    multiple : float, optional
        Largest ratio to those of debiased randomized response at the same epsilon.
    words : str
        All of this in one line.
    """

    label: float
    mean: float | None
    histogram: bool
    counts: tuple[float, ...] | None
    multiple: float | None
    words: str

    @classmethod
    def of(cls, fits: Sequence[Conditioning], rows: NDArray[Any], bias: float) -> Estimates:
        """Return the errors of a release whose pools have these numbers of rows and independent noise."""
        labels, total = fits[0].mechanism.labels, int(rows.sum())
        obstacle = next((fit.obstacle for fit in fits if fit.obstacle), None)
        variances = [float(fit.mechanism.problem.prior @ fit.mechanism.table.variances) for fit in fits]
        one = math.sqrt(float(rows @ np.array(variances)) / total)
        errors = [fit.count_errors for fit in fits]
        squares = [size * found**2 for size, found in zip(rows, errors, strict=True) if found is not None]
        worst, dearest = max(fit.multiple for fit in fits), max(fits, key=lambda fit: fit.cost)
        counts = np.sqrt(sum(squares)) if len(squares) == len(errors) else None
        words = "histogram and losses" if obstacle is None else f"no histogram, no loss of a label: {obstacle}"
        if counts is not None and counts.any():
            of_share = float(counts.max()) / total
            words += f" (the noise on a share is expected to have standard deviation {of_share:.2g} or less"
            words += f", at most {worst:.3g} times that of randomized response"
            if dearest.weight:
                classes = dearest.mechanism.problem.loss == losses.zero_one
                lost = "the chance that a class stays" if classes else "the loss"
                words += f", which draws up to {dearest.weight:.2g} of the labels, at {dearest.cost:.2%} of {lost}"
            words += ")"
        return cls(
            label=one,
            mean=one / math.sqrt(total) if bias <= UNBIASED * (float(np.ptp(labels)) or 1.0) else None,
            histogram=obstacle is None,
            counts=None if counts is None else tuple(counts.tolist()),
            multiple=worst if math.isfinite(worst) else None,
            words=words,
        )


def condition(mechanism: Mechanism) -> Conditioning:
    """Mix randomized response into the optimum for a prior if histograms need it.

    The weight is just large enough for :attr:`Limits.multiple`, at a cost of at most :attr:`Limits.cost`, or of
    :attr:`Limits.class_cost` for classes. A mechanism that is neither unbiased on the line nor of classes is left as
    it is.
    """
    found, problem = Conditioning(mechanism), mechanism.problem
    if problem.loss == losses.zero_one:
        return _condition_classes(found)
    unbiased_on_the_line = mechanism.arcs is not None and problem.outputs == Line() and problem.bias_penalty == math.inf
    if not unbiased_on_the_line or not found.multiple > LIMITS.multiple:
        return found
    response = debiased_rr(mechanism.labels, mechanism.epsilon, prior=problem.prior)
    # As much as histograms need, within the limit of cost. If the response costs no more, half of it is free.
    least, dearer = (float(problem.prior @ one.losses()) for one in (mechanism, response))
    weight = min(_find_weight(found), LIMITS.cost * least / (dearer - least)) if dearer > least else 1 / 2
    mixed = mixture(mechanism, response, weight)
    return Conditioning(mixed, weight, float(problem.prior @ mixed.losses()) / least - 1)


def _condition_classes(found: Conditioning) -> Conditioning:
    """Mix randomized response into a mechanism of classes, unless its table is too large to be debiased."""
    best = found.mechanism
    k, prior = best.labels.size, best.problem.prior
    if k < 2 or k**2 > OPTIONS.factored or not found.multiple > LIMITS.multiple:
        return found
    response = rr(best.labels, best.epsilon)
    # A mixture is private at the larger ratio of the two, so both must have the same one.
    if response.ratio != best.ratio:
        return found
    stays, other = (float(prior @ _stay_probabilities(one)) for one in (best, response))
    weight = min(1 / 2, LIMITS.class_cost * stays / (stays - other)) if stays > other else 1 / 2
    mixed = mixture(best, response, weight)
    return Conditioning(mixed, weight, 1 - float(prior @ _stay_probabilities(mixed)) / stays)


def _stay_probabilities(mechanism: Mechanism) -> Floats:
    table = mechanism.randomizer
    same: Floats = np.where(table.outputs == table.labels[:, np.newaxis], table.matrix, 0.0).sum(axis=1)
    return same


def _find_weight(found: Conditioning) -> float:
    """Find the weight of debiased randomized response at which no error of a count is above the limit."""
    # Second moments S are variances plus the prior. 1 / S of the mixture is at least linear in w, so the least w is a
    # maximum over labels (module docstring).
    prior, other = found.mechanism.problem.prior, found.response_errors**2
    allowed, best = 1 / (LIMITS.multiple**2 * other + prior), 1 / (other + prior)
    now = np.zeros_like(prior) if found.count_errors is None else 1 / (found.count_errors**2 + prior)
    return float(np.max((allowed - now) / (best - now), where=now < allowed, initial=0.0))
