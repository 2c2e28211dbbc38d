"""Priors learned from private labels: exact discrete Laplace noise on counts, and the split of the budget.

The weights of a released mechanism are a function of this prior, so its noise is exact: drawn in integers, for the
rational number that the float epsilon is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import decimal_above, decimal_below, decimal_value
from optrand.base.validation import SMALLEST_NORMAL, Floats, check_epsilon, frozen, rectangular
from optrand.errors import InvalidInput
from optrand.sampling.discrete_noise import discrete_laplace
from optrand.sampling.entropy import EntropySource

__all__ = [
    "PRIOR_SHARE",
    "BudgetSplit",
    "EstimatedPrior",
    "private_histogram",
    "private_prior",
    "split_at",
    "split_budget",
]

PRIOR_SHARE = 1 / 20
"""Largest default share of the budget for the prior.

The loss of the labels grows about like ``epsilon_2**-2``, so a share ``s`` multiplies it by ``(1 - s)**-2`` or a little
more. On the weeks-worked labels (k = 53; epsilon 0.3, 1 and 3; 1,000 and 20,000 rows) a share of 1/20 cost 11 to 29 %
of the optimum that knows the prior, 1/10 23 to 43 % and 1/5 54 to 90 %; a uniform prior, which costs no budget, 0 to
27 %.
"""


@dataclass(frozen=True)
class BudgetSplit:
    """Two budgets in nats, whose exact sum is at most the one that was split.

    Attributes
    ----------
    prior : float
        For the histogram (epsilon_1 of [B23], Algorithm 3); 0 if the prior is public.
    labels : float
        For the labels (epsilon_2).
    """

    prior: float
    labels: float

    @property
    def total(self) -> float:
        """Sum of both decimals: the least float whose decimal is at least that sum.

        Examples
        --------
        >>> split_at(1.0, 0.05).total
        1.0
        """
        return decimal_above(decimal_value(self.prior) + decimal_value(self.labels))


def split_at(epsilon: float, prior_epsilon: float) -> BudgetSplit:
    """Give `prior_epsilon` to the prior and the rest, rounded down, to the labels.

    Raises
    ------
    InvalidInput
        The prior would take the whole budget or more.

    Examples
    --------
    >>> split = split_at(1.0, 0.1)
    >>> split
    BudgetSplit(prior=0.1, labels=0.9)
    """
    whole, part = check_epsilon(epsilon), check_epsilon(prior_epsilon, "prior epsilon")
    if part >= whole:
        raise InvalidInput(
            f"prior epsilon is {part:g} of a budget of {whole:g}: nothing is left for the labels, give it less"
        )
    rest = decimal_below(decimal_value(whole) - decimal_value(part))
    return BudgetSplit(part, check_epsilon(rest, "the rest for the labels"))


def split_budget(epsilon: float, k: int, n: int) -> BudgetSplit:
    """Split of the budget `epsilon` for `k` labels and `n` rows, both public ([B23], Appendix C, with a ceiling).

    ``epsilon_1 = min(sqrt(k / n), epsilon / 20)`` and ``epsilon_2 = epsilon - epsilon_1``, rounded down so that the
    decimals of the two never add up to more than that of `epsilon`. Without the ceiling, :data:`PRIOR_SHARE`, the prior
    of a small table would take most of the budget or more.

    Examples
    --------
    >>> split_budget(1.0, 53, 20_000).prior
    0.05
    >>> split_budget(1.0, 53, 1_000_000).prior
    0.007280109889280518
    """
    whole = check_epsilon(epsilon)
    if k < 1 or n < 1:
        raise InvalidInput(f"cannot split a budget for {k} label(s) and {n} row(s): expected at least one of each")
    return split_at(whole, min(math.sqrt(k / n), PRIOR_SHARE * whole))


def private_histogram(counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> tuple[int, ...]:
    """Add exact discrete Laplace noise of scale ``2 / epsilon`` to counts, which makes them epsilon-DP.

    Parameters
    ----------
    counts : (k,) array of integers
        Number of rows of each label. Private.
    epsilon : float
        In nats; taken as the shortest decimal that reads back as the float.
    source : EntropySource, optional
        The operating system by default.

    Returns
    -------
    tuple of int
        Of length k; entries may be negative.

    Raises
    ------
    InvalidInput
        Counts that are not whole numbers of at least 0.

    Notes
    -----
    *Proof of privacy.* Neighbours are tables of equally many rows, a public number, that differ in one label: two
    counts change, each by one. The noise of a count has ``Pr[x] / Pr[x + 1] <= exp(epsilon / 2)``, and its inverse too,
    so the probability of any noisy histogram changes by a factor of at most ``exp(epsilon / 2) ** 2``.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> private_histogram([1000, 10, 0], 1.0, source=SeededEntropy(1))
    (999, 14, 5)
    """
    array = rectangular(counts, "counts")
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput("counts must be a non-empty one-dimensional array of integers, one per label")
    if (array < 0).any():
        raise InvalidInput("counts must be at least 0")
    scale = 2 / decimal_value(check_epsilon(epsilon))
    noise = discrete_laplace(scale, array.size, source=source)
    return tuple(count + shift for count, shift in zip(array.tolist(), noise, strict=True))


@dataclass(frozen=True)
class EstimatedPrior:
    """Prior estimated from private labels; safe to publish for the budget that it states.

    Attributes
    ----------
    counts : tuple of int
        Noisy histogram, clipped at zero.
    epsilon : float
        Budget of the estimate, in nats.
    """

    counts: tuple[int, ...]
    epsilon: float

    @property
    def uniform(self) -> bool:
        """Whether every noisy count was at most zero, so that the prior is uniform."""
        return not any(self.counts)

    @cached_property
    def probabilities(self) -> Floats:
        """Normalised counts, shape ``(k,)``."""
        total = sum(self.counts)
        if total == 0:
            return frozen(np.full(len(self.counts), 1 / len(self.counts)))
        # Division of Python integers is correctly rounded at any size. A share too small for a normal float is no
        # prior.
        shares = (count / total for count in self.counts)
        return frozen(np.array([share if share >= SMALLEST_NORMAL else 0.0 for share in shares]))


def private_prior(counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> EstimatedPrior:
    """Estimate the prior by [B23], Algorithm 4, with exact discrete noise: a noisy histogram, clipped and normalised.

    Epsilon-DP as post-processing of :func:`private_histogram`, whose parameters these are. If all counts are clipped to
    zero, the prior is uniform.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> private_prior([1000, 10, 0], 1.0, source=SeededEntropy(1)).probabilities.round(4).tolist()
    [0.9813, 0.0138, 0.0049]
    >>> private_prior([0, 0, 0], 1.0, source=SeededEntropy(0)).uniform
    True
    """
    noisy = private_histogram(counts, epsilon, source=source)
    return EstimatedPrior(tuple(max(count, 0) for count in noisy), float(epsilon))
