"""Mechanisms of a release, one for each pool of groups, computed once the prior has been paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import budget_above, decimal_value, float_above, least_reading
from optrand.base.validation import Floats
from optrand.certificates.certificate import Certificate, certify
from optrand.closed_forms import debiased_rr, gap_response, rr, rr_top_k
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.table import Table
from optrand.release.cells import Places
from optrand.release.conditioning import Conditioning, condition
from optrand.release.groups import ONE_GROUP, Groups, Indices, pool_groups, shrink_histograms
from optrand.release.ids import Ids
from optrand.release.question import Question
from optrand.sampling.entropy import EntropySource
from optrand.sampling.keyed import RecordStreams
from optrand.sampling.priors import BudgetSplit, private_histogram
from optrand.solvers import solve
from optrand.studies import minimax

Announce = Callable[[str], object]


def rehearse(question: Question, rows: int) -> None:
    """Solve the problem with a uniform prior, so that whatever cannot be solved is refused before it is charged."""
    if question.needs_prior:
        _find_best(question, question.problem(question.split(rows).labels))


def draw_histograms(question: Question, counts: NDArray[Any], source: EntropySource) -> NDArray[np.int64] | None:
    """Draw the noisy histogram of each pool; None if the question buys no prior.

    Parameters
    ----------
    question : Question
    counts : (groups, k) array of int
        Rows of each label in each group. Private, except the sums of rows.
    source : EntropySource

    Notes
    -----
    *Proof of privacy.* Groups are public and a row is in one of them, so two tables that differ in one label differ in
    one histogram, which is epsilon-DP (:func:`~optrand.sampling.priors.private_histogram`).
    """
    if not question.buys_prior:
        return None
    epsilon = question.split(int(counts.sum())).prior
    pools = _pools(question, counts.sum(axis=1))
    pooled = np.zeros((int(pools.max()) + 1, question.k), dtype=np.int64)
    np.add.at(pooled, pools, counts)
    return np.array([private_histogram(row, epsilon, source=source) for row in pooled], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Plan:
    """Mechanisms of a release. All of it may be published.

    Attributes
    ----------
    question : Question
    groups : Groups
    sizes : (groups,) array of int
        Labels in each group, public.
    noisy : (pools, k) array of int or None
        The noisy histograms that were paid for.
    fits : tuple of Conditioning
        The mechanism of each pool, and its fitness for histograms.
    relative_loss : float or None
        Of a release by groups: its objective under the noisy priors, as a share of that of one mechanism for all.
    """

    question: Question
    groups: Groups
    sizes: Indices
    noisy: NDArray[np.int64] | None
    fits: tuple[Conditioning, ...]
    relative_loss: float | None = None

    @classmethod
    def make(
        cls,
        question: Question,
        sizes: NDArray[Any],
        noisy: NDArray[np.int64] | None,
        *,
        groups: Groups = ONE_GROUP,
        announce: Announce = lambda _: None,
    ) -> Plan:
        """Find the mechanisms for noisy histograms.

        Examples
        --------
        >>> question = Question(labels=range(4), epsilon=1.0)
        >>> plan = Plan.make(question, np.array([3000]), np.array([[1500, 500, 500, 500]]))
        >>> plan.mechanisms[0].labels.size, plan.realised_epsilon <= 1.0
        (4, True)
        """
        epsilon = question.split(int(sizes.sum())).labels
        announce("solving")
        if not question.needs_prior:
            given = question.randomizer
            if isinstance(given, str):
                given = mechanism_without_prior(given, question.problem(epsilon))
            return cls(question, groups, sizes, noisy, (Conditioning(given),))
        # Pools with the same prior share a mechanism.
        priors, inverse = np.unique(_priors(question, sizes, noisy), axis=0, return_inverse=True)
        of_pools = inverse.ravel().tolist()
        best = [_find_best(question, question.problem(epsilon, prior)) for prior in priors]
        announce("making it fit for histograms")
        fits = [Conditioning(one) if question.draws_optimum else condition(one) for one in best]
        relative = None
        if groups.columns and noisy is not None:
            rows = np.bincount(_pools(question, sizes), sizes)
            relative = _relative_loss(question, epsilon, noisy, [best[place] for place in of_pools], rows)
        return cls(question, groups, sizes, noisy, tuple(fits[place] for place in of_pools), relative)

    @property
    def rows(self) -> int:
        """Number of labels that are drawn."""
        return int(self.sizes.sum())

    @property
    def split(self) -> BudgetSplit:
        """Cost of the prior and of the labels."""
        return self.question.split(self.rows)

    @property
    def pools(self) -> Indices:
        """Pool of each group."""
        return _pools(self.question, self.sizes) if self.noisy is not None else np.zeros(len(self.groups), np.intp)

    @property
    def pool_rows(self) -> Indices:
        """Labels in each pool."""
        return np.bincount(self.pools, self.sizes, len(self.fits)).astype(np.intp)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Mechanism of each pool."""
        return tuple(fit.mechanism for fit in self.fits)

    @cached_property
    def proofs(self) -> tuple[Certificate, ...]:
        """Certificate of the mechanism of each pool."""
        worst_case = self.question.randomizer == "minimax"
        gap = self.question.gap if worst_case else math.inf
        found = {
            id(one): (certify(one, worst_case=True) if worst_case else certify(one)).require(gap=gap)
            for one in self.mechanisms
        }
        return tuple(found[id(one)] for one in self.mechanisms)

    @property
    def realised_epsilon(self) -> float:
        """Upper end of the epsilon that prior and labels spend together, rounded up."""
        labels = max(Fraction(least_reading(proof.epsilon)) for proof in self.proofs)
        return budget_above(decimal_value(self.split.prior) + labels)

    @property
    def bias(self) -> float:
        """Largest absolute bias over labels and pools."""
        return max(proof.bias for proof in self.proofs)

    @cached_property
    def noisy_label_loss(self) -> float:
        """Expected loss of a label under the priors; of classes the probability that a label changes."""
        parts = [_expected_loss(one, bias_penalty=0.0) for one in self.mechanisms]
        return float(self.pool_rows @ np.array(parts)) / self.rows

    @property
    def prior_words(self) -> str:
        """Origin of the prior, in words."""
        if isinstance(self.question.prior, np.ndarray):
            return "public: trusted as given, nothing spent on it"
        if self.question.randomizer == "minimax":
            return "none: minimax, the randomizer whose largest loss of all labels is least"
        if self.noisy is None:
            return "none: nothing was estimated from the labels"
        if self.groups.columns:
            return f"estimated privately for {len(self.fits)} pool(s) of {len(self.groups)} group(s) of rows"
        empty = "; the noise left no count above 0, so it is uniform" if self.noisy.max() <= 0 else ""
        return f"estimated privately{empty}"


@dataclass(frozen=True, eq=False)
class Drawing:
    """Draws noisy labels: a keyed function of a record's label, id and group.

    It can be pickled, and then holds the keys of the labels.

    Attributes
    ----------
    mechanisms : tuple of Mechanism
    keys : tuple of bytes
        One for each mechanism.
    places : (groups,) array of int
        Index of the mechanism of each group.
    values : (k,) array
        Declared labels.
    """

    mechanisms: tuple[Mechanism, ...]
    keys: tuple[bytes, ...] = field(repr=False)
    places: Indices
    values: Floats

    @cached_property
    def _streams(self) -> tuple[RecordStreams, ...]:
        return tuple(RecordStreams(key, private=True) for key in self.keys)

    def __call__(self, places: Places, ids: Ids, groups: Indices) -> Floats:
        """Draw for records with these places of labels, ids and groups, 0 for a missing label."""
        if len(self.mechanisms) == 1 and places.min(initial=0) >= 0:
            return self.mechanisms[0].sample_records(self.values[places], ids, self._streams[0])
        noisy = np.zeros(places.size)
        chosen = np.where(places >= 0, self.places[groups], -1)
        for number, (mechanism, streams) in enumerate(zip(self.mechanisms, self._streams, strict=True)):
            rows = np.flatnonzero(chosen == number)
            if rows.size:
                noisy[rows] = mechanism.sample_records(self.values[places[rows]], ids[rows], streams)
        return noisy


def _pools(question: Question, sizes: NDArray[Any]) -> Indices:
    epsilon = question.split(int(sizes.sum())).prior
    return pool_groups(np.maximum(sizes, 1), k=question.k, prior_epsilon=epsilon)


def _priors(question: Question, sizes: NDArray[Any], noisy: NDArray[np.int64] | None) -> Floats:
    """Return the prior of each pool."""
    if noisy is None:
        given = question.prior if isinstance(question.prior, np.ndarray) else np.ones(1)
        return given[np.newaxis]
    rows = np.bincount(_pools(question, sizes), sizes, len(noisy))
    return shrink_histograms(noisy, rows, question.split(int(sizes.sum())).prior)


def _find_best(question: Question, problem: Any) -> Mechanism:
    """Return the mechanism of a problem, proven to be within the gap of the question."""
    best = mechanism_for(problem, question.randomizer or "")
    # Named randomizers that are no optima are released with any gap, which the record states.
    stated = question.rule in ("rr-top-k", "gap-response")
    certify(best).require(gap=math.inf if stated else question.gap)
    return best


def _relative_loss(
    question: Question, epsilon: float, noisy: NDArray[np.int64], best: list[Mechanism], rows: NDArray[Any]
) -> float:
    """Return the objective under the priors of pools, as a share of that of one mechanism for all rows."""
    total = np.maximum(noisy.sum(axis=0), 1)
    single = _find_best(question, question.problem(epsilon, total / total.sum()))
    own = sum(size * _expected_loss(one) for size, one in zip(rows, best, strict=True))
    common = sum(size * _expected_loss(single, prior=one.problem.prior) for size, one in zip(rows, best, strict=True))
    return float(own / common) if common else 1.0


def mechanism_for(problem: Problem, randomizer: str = "") -> Mechanism:
    """Return the mechanism of a problem: the optimum, or a randomizer for its prior by name."""
    name, _, size = randomizer.partition(":")
    if size:
        found = rr_top_k(problem.prior, int(size), problem.epsilon)
        outputs = problem.labels[found.outputs.astype(np.intp)]
        return Mechanism(problem, Table(problem.labels, outputs, found.table.columns), found.dual)
    if name == "gap-response" and problem.k > 1:
        found = gap_response(problem.labels, problem.prior, problem.epsilon)
        low, high = found.outputs[[0, -1]].tolist()
        if low < problem.outputs.low or high > problem.outputs.high:
            raise InvalidInput(f"gap-response has outputs from {low:g} to {high:g}: leave the outputs out")
        return Mechanism(problem, found.table, found.dual)
    return solve(problem)


def mechanism_without_prior(name: str, problem: Problem) -> Mechanism:
    """Return the mechanism of a name that needs no prior, for the labels, epsilon and outputs of a problem."""
    if name == "rr":
        return rr(problem.labels, problem.epsilon)
    if name == "debiased-rr":
        return debiased_rr(problem.labels, problem.epsilon)
    if isinstance(problem.outputs, Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: leave the grid out")
    return minimax(problem.labels, problem.epsilon, bias_penalty=problem.bias_penalty, outputs=problem.outputs)


def _expected_loss(mechanism: Mechanism, **changes: Any) -> float:
    """Return the expected loss and bias penalty, rounded up, after changes to the problem; of classes, 1 - accuracy."""
    problem = replace(mechanism.problem, **changes)
    changed = mechanism if problem == mechanism.problem else Mechanism(problem, mechanism.table)
    proof = changed.certificate
    return float_above(1 - Fraction(proof.lower)) if proof.maximised else proof.upper
