r"""Priors learned from private labels: exact discrete Laplace noise on counts, the split of the budget, and smoothing.

The weights of a released mechanism are a function of this prior, so its noise is exact: drawn in integers, for the
rational number that the float epsilon is.

A prior without zeros is the posterior mean of every count under the noise that was added, which is post-processing. The
counts are taken as draws from one distribution, constant on the bins :math:`\{0\}, \{1\}, \{2, 3\}, \{4, \ldots, 7\},
\ldots`, whose masses are fitted to all noisy counts at once (empirical Bayes, ``docs/mathematics.md``, section 17).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import decimal_above, decimal_below, decimal_value
from optrand.base._validation import SMALLEST_NORMAL, Floats, check_epsilon, freeze_array, rectangular
from optrand.errors import InvalidInput
from optrand.sampling._discrete_noise import discrete_laplace
from optrand.sampling._entropy import EntropySource

PRIOR_SHARE = 1 / 20
"""Largest default share of the budget for the prior.

On the weeks-worked labels (k = 53, epsilon 0.3, 1 or 3, 1,000 or 20,000 rows) a share of 1/20 cost 11 to 29 % of the
optimum that knows the prior, 1/10 23 to 43 % and 1/5 54 to 90 %. A uniform prior, which has no cost, cost 0 to 27 %.
"""


@dataclass(frozen=True)
class BudgetSplit:
    """Two budgets in nats, whose exact sum is at most the one that was split.

    Attributes
    ----------
    prior : float
        For the histogram (epsilon_1 of [B23], Algorithm 3), or 0 if the prior is public.
    labels : float
        For the labels (epsilon_2).
    """

    prior: float
    labels: float

    @property
    def total(self) -> float:
        """Sum of both decimals: the least float whose decimal is at least that sum."""
        return decimal_above(decimal_value(self.prior) + decimal_value(self.labels))


def split_at(epsilon: float, prior_epsilon: float) -> BudgetSplit:
    """Give `prior_epsilon` to the prior and the rest, rounded down, to the labels. Raise if nothing is left."""
    whole, part = check_epsilon(epsilon), check_epsilon(prior_epsilon, "prior epsilon")
    if part >= whole:
        raise InvalidInput(
            f"prior epsilon is {part:g} of a budget of {whole:g}: nothing is left for the labels, lower it"
        )
    rest = decimal_below(decimal_value(whole) - decimal_value(part))
    return BudgetSplit(part, check_epsilon(rest, "the rest for the labels"))


def split_budget(epsilon: float, k: int, n: int) -> BudgetSplit:
    """Split the budget `epsilon` for `k` labels and `n` rows, both public ([B23], Appendix C, with a ceiling).

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
    """Add exact discrete Laplace noise of scale ``2 / epsilon`` to the number of rows of each of k labels.

    *Proof of privacy.* Neighbours are tables of equally many rows, a public number, that differ in one label: two
    counts change, each by one. The noise of a count has ``Pr[x] / Pr[x + 1] <= exp(epsilon / 2)``, and its inverse too,
    so the probability of any noisy histogram changes by a factor of at most ``exp(epsilon / 2) ** 2``.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
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
    """Prior estimated from private labels. Safe to publish for the budget that it states.

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
            return freeze_array(np.full(len(self.counts), 1 / len(self.counts)))
        # Division of Python integers is correctly rounded at any size. A share too small for a normal float is no
        # prior.
        shares = (count / total for count in self.counts)
        return freeze_array(np.array([share if share >= SMALLEST_NORMAL else 0.0 for share in shares]))


def private_prior(counts: ArrayLike, epsilon: float, *, source: EntropySource | None = None) -> EstimatedPrior:
    """Estimate the prior by [B23], Algorithm 4, with exact discrete noise: a noisy histogram, clipped and normalised.

    Epsilon-DP as post-processing of the histogram. If all counts are clipped to zero, the prior is uniform.

    Parameters
    ----------
    counts : (k,) array of integers
        Number of rows of each label, at least 0. Private.
    epsilon : float
        In nats. Taken as the shortest decimal that reads back as the float.
    source : EntropySource, optional
        The operating system by default, the only choice for a release.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> prior = private_prior([1000, 10, 0], 1.0, source=SeededEntropy(1))
    >>> prior.probabilities.round(4).tolist(), prior.uniform
    ([0.9813, 0.0138, 0.0049], False)
    """
    noisy = private_histogram(counts, epsilon, source=source)
    return EstimatedPrior(tuple(max(count, 0) for count in noisy), float(epsilon))


FLOOR = 1e-6
"""Share of the prior that is spread over all labels alike, so that a mechanism distinguishes neighbouring labels.

A label of share ``1e-6 / k`` moves the loss by less than the solver's own gap, except in populations that are too small
to be seen through the noise.
"""


def smoothed_prior(estimate: EstimatedPrior, rows: int) -> Floats:
    r"""Return the prior in which every label has a probability above zero, from the public number of rows.

    .. math:: p_y = (1 - \lambda) \frac{m_y}{\sum_z m_z} + \frac{\lambda}{k}, \qquad
              m_y = E[c_y \mid x_y], \quad \lambda = 10^{-6}

    It is uniform if no noisy count is above zero. That counts were clipped at zero loses nothing
    (``docs/mathematics.md``, section 17). Cost ``O(k log(rows))`` per round.
    """
    if rows < 1:
        raise InvalidInput(f"cannot smooth a histogram of {rows} row(s): expected at least one")
    k = len(estimate.counts)
    counts = np.array([float(min(max(count, 0), rows)) for count in estimate.counts])
    low, high = _list_bins(rows)
    likelihoods, means = _average_bins(counts[:, np.newaxis], low, high, max(estimate.epsilon / 2, SMALLEST_NORMAL))
    masses = np.full(low.size, 1 / low.size)
    # Expectation maximisation. The fit only has to be better than a flat one, so that its steps are few.
    steps = 100
    for step in range(steps + 1):
        joint = likelihoods * masses
        posterior = joint / joint.sum(axis=1, keepdims=True)
        if step < steps:
            # One additional count, spread over all bins, keeps every bin possible.
            masses = (posterior.sum(axis=0) + 1 / low.size) / (k + 1)
    expected = (posterior * means).sum(axis=1)
    return freeze_array((1 - FLOOR) * (expected / expected.sum()) + FLOOR / k)


def noise_variance(epsilon: float) -> float:
    """Return the variance ``2 r / (1 - r)**2``, ``r = exp(-epsilon / 2)``, of noise of :func:`private_histogram`."""
    return 1 / (2 * math.sinh(epsilon / 4) ** 2)


def shrink_histograms(counts: NDArray[np.int64], rows: NDArray[Any], epsilon: float) -> Floats:
    r"""Shrink noisy histograms towards the mixture of all ([JS61]). Return a prior for each, above 0 everywhere.

    With :math:`h_g` of :math:`n_g` rows, noise of variance :math:`v`, and the mixture :math:`q`,

    .. math:: p_g \propto n_g q + \Bigl(1 - \frac{(k - 2) v}{\lVert h_g - n_g q \rVert^2}\Bigr)_{\!+} (h_g - n_g q) .

    So histograms that do not differ, or that differ by less than the noise, share the mixture. The (pools, k) counts
    are noisy as they were drawn, so that some may be negative. The (pools,) rows that each of them counts are public.
    """
    if len(counts) == 1:
        clipped = tuple(max(count, 0) for count in counts[0].tolist())
        return smoothed_prior(EstimatedPrior(clipped, epsilon), int(rows[0]))[np.newaxis]
    total = np.maximum(counts.sum(axis=0), 1)
    mixture = total / total.sum()
    mean = rows[:, np.newaxis] * mixture
    apart = counts - mean
    noise = (counts.shape[1] - 2) * noise_variance(epsilon)
    squares = (apart**2).sum(axis=1, keepdims=True)
    kept = np.maximum(0.0, 1 - noise / np.maximum(squares, max(noise, 1e-300)))
    shrunk = np.maximum(mean + kept * apart, mixture)
    # The mixture itself, bit for bit, if nothing is kept: then pools share a randomizer.
    priors: Floats = np.where(kept > 0, shrunk / shrunk.sum(axis=1, keepdims=True), mixture)
    return priors


def _list_bins(rows: int) -> tuple[Floats, Floats]:
    """Return the first and last count of each bin."""
    low = np.array([0.0, *(float(1 << i) for i in range(rows.bit_length()))])
    return low, np.append(low[1:] - 1, float(rows))


def _average_bins(counts: Floats, low: Floats, high: Floats, rate: float) -> tuple[Floats, Floats]:
    """Return the mean of ``exp(-rate |x - c|)`` over each bin, and the mean of ``c`` under these weights."""
    above, upper = _sum_geometric(np.maximum(low - counts, 0.0), high - counts, rate)
    below, lower = _sum_geometric(np.maximum(counts - high, 1.0), counts - low, rate)
    weights = above + below
    # A bin out of reach of the noise has no weight in floats: any mean will do.
    found = np.divide(above * upper - below * lower, weights, out=np.zeros_like(weights), where=weights > 0)
    return weights / (high - low + 1), np.clip(counts + found, low, high)


def _sum_geometric(first: Floats, last: Floats, rate: float) -> tuple[Floats, Floats]:
    """Sum ``exp(-rate d)`` over integers from `first` to `last`, 0 if `last` is less. Return also the mean of ``d``."""
    terms = np.maximum(last - first + 1, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        total = np.exp(-rate * first) * (np.expm1(-rate * terms) / np.expm1(-rate))
        exact = 1 / np.expm1(rate) - terms / np.expm1(rate * terms)
    # Both terms of the exact mean are large and nearly equal if the decay over the range is small.
    series = (terms - 1) / 2 - rate * (terms**2 - 1) / 12
    return total, first + np.where(terms > 0, np.where(rate * terms < 1e-5, series, exact), 0.0)
