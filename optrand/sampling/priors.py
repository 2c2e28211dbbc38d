"""A prior learned from private labels: exact discrete Laplace noise, and the split of the budget that pays for it.

The weights of a released mechanism are a function of this prior, so the noise must be as exact as the weights are: it
is drawn in integers from random bits, and the epsilon asked for is taken as the rational number that its float is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import float_below
from optrand.base.validation import SMALLEST_NORMAL, Floats, frozen
from optrand.base.validation import epsilon as checked_epsilon
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
"""The most of the budget that the prior may take by default.

The loss of the labels grows about like ``epsilon_2**-2``, so a share ``s`` multiplies it by ``(1 - s)**-2`` or a
little more, and what a better prior earns is bounded by what a uniform prior loses. On the weeks-worked labels (k = 53;
epsilon 0.3, 1 and 3; 1,000 and 20,000 rows; loss under the true prior, compared with the optimum that knows this prior
and has the whole budget) a share of 1/20 cost 11 to 29 %, 1/10 23 to 43 % and 1/5 54 to 90 %, while a uniform prior,
which is free, cost 0 to 27 %.
"""


@dataclass(frozen=True)
class BudgetSplit:
    """Two budgets whose exact sum is at most the one that they were split from.

    Attributes
    ----------
    prior : float
        Spent on the histogram (epsilon_1 of [B23], Algorithm 3), in nats; 0 where the prior is public.
    labels : float
        Spent on the labels themselves (epsilon_2), in nats.
    """

    prior: float
    labels: float


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
    BudgetSplit(prior=0.1, labels=0.8999999999999999)
    >>> Fraction(split.prior) + Fraction(split.labels) <= 1
    True
    """
    whole, part = checked_epsilon(epsilon), checked_epsilon(prior_epsilon, "prior epsilon")
    if part >= whole:
        raise InvalidInput(
            f"prior epsilon is {part:g} of a budget of {whole:g}: nothing is left for the labels, give it less"
        )
    rest = float_below(Fraction(whole) - Fraction(part))
    return BudgetSplit(part, checked_epsilon(rest, "what is left for the labels"))


def split_budget(epsilon: float, k: int, n: int) -> BudgetSplit:
    """The split of [B23], Appendix C, with a ceiling on what the prior may take.

    ``epsilon_1 = min(sqrt(k / n), epsilon / 20)`` and ``epsilon_2 = epsilon - epsilon_1``, rounded down so that the two
    floats, added as exact numbers, never exceed `epsilon`. Both `k` and `n` are public.

    Parameters
    ----------
    epsilon : float
        The whole budget, in nats.
    k : int
        The number of labels in the declared set.
    n : int
        The number of rows.

    Returns
    -------
    BudgetSplit

    Notes
    -----
    ``sqrt(k / n)`` balances the two losses of a large table. Of a small one it would take most of the budget, or more
    than there is: see :data:`PRIOR_SHARE`.

    Examples
    --------
    >>> split_budget(1.0, 53, 20_000).prior
    0.05
    >>> split_budget(1.0, 53, 1_000_000).prior
    0.007280109889280518
    """
    whole = checked_epsilon(epsilon)
    if k < 1 or n < 1:
        raise InvalidInput(f"cannot split a budget for {k} label(s) and {n} row(s): expected at least one of each")
    return split_at(whole, min(math.sqrt(k / n), PRIOR_SHARE * whole))


def private_histogram(counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> tuple[int, ...]:
    """Counts with exact discrete Laplace noise of scale ``2 / epsilon``: epsilon-DP.

    *Proof.* Neighbours are two tables of the same public number of rows in which one label differs: two counts change,
    each by one. The noise of a count has ``Pr[x] / Pr[x + 1] <= exp(epsilon / 2)``, either way round, so the
    probability of any noisy histogram changes by a factor of at most ``exp(epsilon / 2) ** 2``.

    Parameters
    ----------
    counts : (k,) array of integers
        How often each label occurs. Private.
    epsilon : float
        In nats; taken as the rational number that the float is.
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

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> private_histogram([1000, 10, 0], 1.0, source=SeededEntropy(1))
    (999, 14, 5)
    """
    array = np.asarray(counts)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput("counts must be a non-empty one-dimensional array of integers, one per label")
    if (array < 0).any():
        raise InvalidInput("counts must be at least 0")
    scale = 2 / Fraction(checked_epsilon(epsilon))
    noise = discrete_laplace(scale, array.size, source=source)
    return tuple(count + shift for count, shift in zip(array.tolist(), noise, strict=True))


@dataclass(frozen=True)
class EstimatedPrior:
    """A prior estimated from private labels; safe to publish for the budget that it names.

    Attributes
    ----------
    counts : tuple of int
        The noisy histogram, clipped at zero.
    epsilon : float
        What the estimate spent, in nats.
    """

    counts: tuple[int, ...]
    epsilon: float

    @property
    def uniform(self) -> bool:
        """Whether every noisy count was at most zero, so that nothing was learned and the prior is uniform."""
        return not any(self.counts)

    @cached_property
    def probabilities(self) -> Floats:
        """The counts, normalised, shape ``(k,)``."""
        total = sum(self.counts)
        if total == 0:
            return frozen(np.full(len(self.counts), 1 / len(self.counts)))
        # Division of Python integers is correctly rounded at any size. A share too small for a normal float is no
        # prior.
        shares = (count / total for count in self.counts)
        return frozen(np.array([share if share >= SMALLEST_NORMAL else 0.0 for share in shares]))


def private_prior(counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> EstimatedPrior:
    """The prior of [B23], Algorithm 4, with exact discrete noise in place of the continuous one.

    A noisy histogram, clipped at zero and normalised: epsilon-DP as :func:`private_histogram` is, since what follows
    looks at the noisy counts only. Where all of them are clipped the prior is uniform, and says so.

    Parameters
    ----------
    counts, epsilon, source
        As in :func:`private_histogram`.

    Returns
    -------
    EstimatedPrior

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
