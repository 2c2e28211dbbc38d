"""Best unbiased randomizers of one-hot vectors: closed form, enumeration of types, and integers with a proof."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from optrand.base import _validation
from optrand.base._arithmetic import Integers, privacy_ratio
from optrand.base._validation import Floats, suggest_parameters
from optrand.errors import InvalidInput
from optrand.vectors._bound import subset_size
from optrand.vectors._design import Design, best_design
from optrand.vectors._groups import ClassGroups, Counts
from optrand.vectors._subsets import UnbiasedVectors


@suggest_parameters
def unbiased_vectors(prior: ArrayLike, epsilon: float) -> UnbiasedVectors:
    r"""Compute the best unbiased epsilon-label-DP randomizer of the one-hot vector of a class.

    .. math:: \min \; \tfrac12 \sum_y p_y E|v - e_y|^2 \quad \text{where} \quad E[v \mid y] = e_y \text{ for every } y

    Parameters
    ----------
    prior : (K,) array
        Prior of the classes ``0 ... K-1``, at least two. Zeros are allowed; such classes are unbiased, too.
    epsilon : float
        Privacy budget in nats, from 1e-140 to 700.

    Returns
    -------
    UnbiasedVectors
        With `sample`, the table if it is small, and a `certificate`.

    Raises
    ------
    InvalidInput
        An invalid prior or budget.
    SolverFailed
        The design leaves the range of floats: priors with zeros at a very large budget.

    Notes
    -----
    * *Uniform prior*, any K: a random subset of one size, the better of the two integers next to ``K / (exp(epsilon) +
      1)``.
    * *A large budget*, up to 256 classes: randomized response, if its own multipliers prove it optimal.
    * *Up to 12 classes, or more with few distinct priors* (``prod (K_g + 1) <= 4096``, or at most ``K + 1``, for groups
      of ``K_g`` equal priors): the optimum over all subsets, proven to 1e-9 or better for epsilon from 1e-3 to 40.
    * *Otherwise* neighbouring priors are put into groups that are treated alike. Privacy, unbiasedness and the
      certificate's bounds remain exact, but its gap does not close: it bounds the possible loss.

    Proof: ``docs/mathematics.md``, section 14. Cost: a cone program with a cone for each type, some seconds at most.

    Examples
    --------
    >>> import optrand
    >>> randomizer = optrand.unbiased_vectors([0.85, 0.05, 0.05, 0.05], 1.0)
    >>> proof = randomizer.certificate.require(gap=1e-12)
    >>> round(proof.upper, 6), round(optrand.unbiased_vectors([0.25] * 4, 1.0).value, 6)
    (3.673274, 3.778111)
    """
    chances = _validation.check_prior(prior)
    if chances.size < 2:
        raise InvalidInput("prior has one entry, expected one for each of at least two classes")
    budget = _validation.check_epsilon(epsilon)
    # Below this the variance of a vector leaves the range of floats.
    if budget < 1e-140:
        raise InvalidInput(f"epsilon is {budget:g}, expected at least 1e-140")
    groups = ClassGroups.of_prior(chances)
    if groups.uniform:
        return _selection(chances, budget, groups, subset_size(groups.k, privacy_ratio(budget)))
    # The proof that randomized response is optimal takes O(k**2): a second at 256 classes.
    if groups.k <= 256:
        # Randomized response treats all classes alike, so that one group holds them whatever their priors are.
        whole = ClassGroups(groups.weights, (np.argsort(chances, kind="stable"),))
        response = _selection(chances, budget, whole, 1)
        if response.certificate.gap <= 1e-9:
            return response
    design = _design(groups, budget)
    counts, masses = _covering(groups, design.counts, design.masses)
    return UnbiasedVectors(chances, budget, groups, counts, masses, privacy_ratio(budget), design.dual)


def _selection(prior: Floats, epsilon: float, whole: ClassGroups, size: int) -> UnbiasedVectors:
    """Build subset selection of one size, which is randomized response for size 1."""
    counts, masses = np.array([[size]]), np.array([1], dtype=object)
    return UnbiasedVectors(prior, epsilon, whole, counts, masses, privacy_ratio(epsilon))


def _design(groups: ClassGroups, epsilon: float) -> Design:
    """Compute the design for the mean priors of groups, with multipliers for the least ones."""
    counts = groups.counts
    design = best_design(groups.sizes, counts, groups.mean_weights(counts), groups.total * groups.unit, epsilon)
    if groups.alike:
        return design
    # The bound prices the least likely subset of each type (section 14), so the multipliers are computed for these.
    least = groups.least_weights(counts)
    other = best_design(groups.sizes, counts, least, groups.total, epsilon)
    return replace(design, dual=other.dual)


def _covering(groups: ClassGroups, counts: Counts, masses: Integers) -> tuple[Counts, Integers]:
    """Cover all classes equally after rounding, by adding mass to single classes of a group."""
    coverage = masses @ groups.shares(counts)
    short = max(coverage.tolist()) - coverage
    rows = {tuple(row): int(mass) * groups.unit for row, mass in zip(counts.tolist(), masses.tolist(), strict=True)}
    for g, (size, missing) in enumerate(zip(groups.sizes, short.tolist(), strict=True)):
        if missing:
            single = tuple(int(g == h) for h in range(groups.m))
            rows[single] = rows.get(single, 0) + missing * size
    divisor = math.gcd(*rows.values())
    found = np.empty(len(rows), dtype=object)
    found[:] = [mass // divisor for mass in rows.values()]
    return np.array([*rows], dtype=np.int64), found
