r"""A randomizer for each public group of rows, all for one epsilon.

A row belongs to one group, so histograms of all groups cost as much as one of the whole table (parallel composition).
Where groups differ, each has the best randomizer for its own labels; [B23], section 6, leaves this open.

Small groups are pooled, by their public sizes. What is left of noise is met by shrinking each noisy histogram towards
the mixture of all ([JS61]): with :math:`h_g` of :math:`n_g` rows, noise of variance :math:`v`, and the mixture
:math:`q`,

.. math:: p_g \propto n_g q + \Bigl(1 - \frac{(k - 2) v}{\lVert h_g - n_g q \rVert^2}\Bigr)_{\!+} (h_g - n_g q) .

So groups that do not differ, or of which noise tells nothing, share the mixture, and no second histogram is paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, frozen, rectangular
from optrand.base.validation import epsilon as checked_epsilon
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.priors import private_histogram
from optrand.studies.many import solve_many

__all__ = ["GroupPriors", "Pools", "group_mechanisms", "noise_variance", "relative_loss"]

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pools:
    """Groups that share a histogram and a randomizer, by their public sizes alone.

    Attributes
    ----------
    sizes : (count,) array of int
        Rows of each group, at least 1.
    pool : (count,) array of int
        Pool of each group, from 0 on.

    Examples
    --------
    >>> pools = Pools.of_sizes([9_000, 40, 7_000, 300], k=53, prior_epsilon=0.05)
    >>> pools.pool.tolist(), pools.rows.tolist()
    ([0, 2, 1, 2], [9000, 7000, 340])
    """

    sizes: Indices
    pool: Indices

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name in ("sizes", "pool"):
            array = np.array(getattr(self, name), dtype=np.intp)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def of_sizes(cls, sizes: ArrayLike, *, k: int, prior_epsilon: float) -> Pools:
        """Every group by itself whose rows outnumber the noise that is expected on its counts; all others in one pool.

        The noise adds up to about ``2 k / prior_epsilon``.

        Raises
        ------
        InvalidInput
            No groups, or sizes that are no integers above 0.
        """
        given = rectangular(sizes, "sizes")
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu" or (given < 1).any():
            raise InvalidInput("sizes of groups must be a non-empty list of integers above 0, one for each group")
        alone = given > 2 * k / checked_epsilon(prior_epsilon, "prior epsilon")
        return cls(given, np.where(alone, np.cumsum(alone) - 1, alone.sum()))

    def __len__(self) -> int:
        return int(self.pool.max()) + 1

    @property
    def rows(self) -> Indices:
        """Rows of each pool."""
        return np.bincount(self.pool, self.sizes).astype(np.intp)

    def counts(self, groups: ArrayLike) -> NDArray[np.int64]:
        """Counts of labels in each pool, of those in each group, shape ``(count, k)``. Private."""
        given = rectangular(groups, "counts")
        pooled = np.zeros((len(self), given.shape[1]), dtype=np.int64)
        np.add.at(pooled, self.pool, given)
        return pooled


def noise_variance(epsilon: float) -> float:
    r"""Variance of the noise on a count of :func:`~optrand.sampling.priors.private_histogram`.

    .. math:: \frac{2 r}{(1 - r)^2}, \qquad r = e^{-\varepsilon / 2}

    Examples
    --------
    >>> round(noise_variance(0.05))
    3200
    """
    return 1 / (2 * math.sinh(checked_epsilon(epsilon) / 4) ** 2)


@dataclass(frozen=True, eq=False)
class GroupPriors:
    """Noisy histograms of disjoint groups of rows, and a prior for each.

    Attributes
    ----------
    counts : (groups, k) array of int
        Noisy counts, as they were drawn: some may be negative.
    rows : (groups,) array of int
        Sizes of the groups, public.
    epsilon : float
        What all histograms together spent, in nats.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> counts = [[600, 300, 100], [100, 300, 600], [4, 3, 3]]
    >>> priors = GroupPriors.learn(counts, 0.2, source=SeededEntropy(1))
    >>> priors.probabilities.round(2).tolist()
    [[0.63, 0.28, 0.09], [0.09, 0.3, 0.62], [0.33, 0.22, 0.44]]
    """

    counts: NDArray[np.int64]
    rows: Indices
    epsilon: float

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for name, kind in (("counts", np.int64), ("rows", np.intp)):
            array = np.array(getattr(self, name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.counts.ndim != 2 or self.counts.shape[0] != self.rows.size or not self.counts.size:
            raise InvalidInput(
                f"counts have shape {self.counts.shape} for {self.rows.size} groups, expected a row for each group and "
                "a column for each label"
            )

    @classmethod
    def learn(cls, counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> GroupPriors:
        """Noisy histograms of disjoint groups: together epsilon-DP, as :func:`private_histogram` is of each.

        Parameters
        ----------
        counts : (groups, k) array of int
            Rows of each label in each group. Private, but for the sums of rows.
        epsilon : float
            In nats.
        source : EntropySource, optional
            The operating system by default.

        Notes
        -----
        *Proof of privacy.* Groups are public and a row is in one of them, so two tables that differ in one label differ
        in one histogram.
        """
        given, words = rectangular(counts, "counts"), SystemEntropy() if source is None else source
        if given.ndim != 2:
            raise InvalidInput(f"counts have shape {given.shape}, expected a row for each group")
        noisy = [private_histogram(row, epsilon, source=words) for row in given]
        return cls(np.array(noisy), given.sum(axis=1), checked_epsilon(epsilon))

    @cached_property
    def mixture(self) -> Floats:
        """Prior of the whole table: the sum of the noisy histograms, at least one row a label, normalised."""
        total = np.maximum(self.counts.sum(axis=0), 1)
        return frozen(total / total.sum())

    @cached_property
    def shares(self) -> Floats:
        """How much of its own histogram each group keeps, from 0 (the mixture alone) to 1."""
        apart = self._apart
        noise = (self.counts.shape[1] - 2) * noise_variance(self.epsilon)
        squares = (apart**2).sum(axis=1)
        return frozen(np.maximum(0.0, 1 - noise / np.maximum(squares, max(noise, 1e-300))))

    @cached_property
    def probabilities(self) -> Floats:
        """Prior of each group, above 0 everywhere, shape ``(groups, k)``; the mixture itself where nothing is kept."""
        mean = self.rows[:, np.newaxis] * self.mixture
        kept = self.shares[:, np.newaxis]
        shrunk = np.maximum(mean + kept * self._apart, self.mixture)
        return frozen(np.where(kept > 0, shrunk / shrunk.sum(axis=1, keepdims=True), self.mixture))

    @property
    def _apart(self) -> Floats:
        difference: Floats = self.counts - self.rows[:, np.newaxis] * self.mixture
        return difference


def group_mechanisms(
    question: Problem,
    priors: GroupPriors,
    *,
    solver: Callable[[Problem], Solution] | None = None,
    executor: Executor | None = None,
) -> tuple[Mechanism, ...]:
    """The best randomizer of each group for its own prior, tabulated.

    Parameters
    ----------
    question : Problem
        Labels, epsilon, loss, penalty and outputs; its prior is replaced.
    priors : GroupPriors
    solver : callable, optional
        By default the solvers of :func:`~optrand.studies.many.solve_many`.
    executor : concurrent.futures.Executor, optional
        As for :func:`~optrand.studies.many.solve_many`; equal priors are solved once.
    """
    problems = [replace(question, prior=prior) for prior in priors.probabilities]
    if solver is not None:
        answers = {problem.prior.tobytes(): tabulate(solver(problem)) for problem in problems}
        return tuple(answers[problem.prior.tobytes()] for problem in problems)
    solutions = solve_many(problems, executor=executor)
    tables = {id(solution): tabulate(solution) for solution in solutions}
    return tuple(tables[id(solution)] for solution in solutions)


def relative_loss(mechanisms: Sequence[Mechanism], single: Mechanism, priors: GroupPriors) -> float:
    """Expected objective of one randomizer a group, as a share of that of `single` for all, under the released priors.

    Both are exact losses of the tables, rounded up and then divided; no label is looked at. Of classes it is the
    probability that a label changes.
    """
    own, common = Fraction(0), Fraction(0)
    for mechanism, rows in zip(mechanisms, priors.rows.tolist(), strict=True):
        own += rows * _objective(certify(mechanism))
        common += rows * _objective(certify(replace(single.problem, prior=mechanism.problem.prior), single))
    return float(own / common) if common else 1.0


def _objective(proof: Certificate) -> Fraction:
    return 1 - Fraction(proof.lower) if proof.maximised else Fraction(proof.upper)
