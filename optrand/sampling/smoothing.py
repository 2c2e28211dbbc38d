r"""Prior without zeros from a private histogram: posterior mean of every count under the noise that was added.

A noisy count :math:`x = c + Z` has :math:`\Pr[x \mid c] \propto a^{|x - c|}`, :math:`a = e^{-\epsilon / 2}`. The counts
are taken as draws from one distribution on :math:`0 \ldots n`, constant on the bins :math:`\{0\}, \{1\}, \{2, 3\},
\{4, \ldots, 7\}, \ldots`, whose masses are fitted to all noisy counts at once (empirical Bayes): if most labels are
empty, it decays, and noisy counts within the noise of zero are shrunk towards zero.

All of it is post-processing of the noisy histogram and of the public number of rows: it spends nothing.
"""

from __future__ import annotations

import numpy as np

from optrand.base.validation import SMALLEST_NORMAL, Floats, frozen
from optrand.errors import InvalidInput
from optrand.sampling.priors import EstimatedPrior

__all__ = ["FLOOR", "smoothed_prior"]

FLOOR = 1e-6
"""Share of the prior that is spread over all labels alike, so that a mechanism distinguishes neighbouring labels.

A label of share ``1e-6 / k`` moves the loss by less than the solver's own gap, except in populations that are too small
to be seen through the noise.
"""

ROUNDS = 100
"""Steps of expectation maximisation; the fit only has to be better than a flat one."""

SMALL = 1e-5
"""Decay over a bin below which the mean of a truncated geometric variable is that of its series."""


def smoothed_prior(estimate: EstimatedPrior, rows: int) -> Floats:
    r"""Return the prior in which every label has a probability above zero.

    .. math:: p_y = (1 - \lambda) \frac{m_y}{\sum_z m_z} + \frac{\lambda}{k}, \qquad
              m_y = E[c_y \mid x_y], \quad \lambda = 10^{-6}

    Parameters
    ----------
    estimate : EstimatedPrior
        Noisy counts with the noise of :func:`~optrand.sampling.priors.private_histogram`. Clipping them at zero loses
        nothing (Notes).
    rows : int
        Number of rows that were counted, public.

    Returns
    -------
    (k,) array
        Positive probabilities; uniform if no noisy count is above zero.

    Raises
    ------
    InvalidInput
        Fewer than one row.

    Notes
    -----
    *Clipping loses nothing.* For :math:`x \leq 0` the likelihood of ``c`` is :math:`a^{c - x} = a^{-x} a^c`, that of
    :math:`x = 0` up to a factor without ``c``; and likewise above ``rows``. ``docs/mathematics.md``, section 17, has
    the sums over a bin. Cost ``O(k log(rows))`` a round.

    Examples
    --------
    >>> smoothed_prior(EstimatedPrior((900, 70, 0, 0), 1.0), 1000).round(5).tolist()
    [0.92747, 0.07228, 0.00013, 0.00013]
    """
    if rows < 1:
        raise InvalidInput(f"cannot smooth a histogram of {rows} row(s): expected at least one")
    k = len(estimate.counts)
    counts = np.array([float(min(max(count, 0), rows)) for count in estimate.counts])
    low, high = _bins(rows)
    likelihoods, means = _over_bins(counts[:, np.newaxis], low, high, max(estimate.epsilon / 2, SMALLEST_NORMAL))
    masses = np.full(low.size, 1 / low.size)
    posterior = _posterior(likelihoods, masses)
    for _ in range(ROUNDS):
        # One additional count, spread over all bins, keeps every bin possible.
        masses = (posterior.sum(axis=0) + 1 / low.size) / (k + 1)
        posterior = _posterior(likelihoods, masses)
    expected = (posterior * means).sum(axis=1)
    return frozen((1 - FLOOR) * (expected / expected.sum()) + FLOOR / k)


def _posterior(likelihoods: Floats, masses: Floats) -> Floats:
    joint = likelihoods * masses
    posterior: Floats = joint / joint.sum(axis=1, keepdims=True)
    return posterior


def _bins(rows: int) -> tuple[Floats, Floats]:
    """Return the first and last count of each bin."""
    starts = [0, *(1 << i for i in range(rows.bit_length()))]
    low = np.array([float(start) for start in starts])
    return low, np.append(low[1:] - 1, float(rows))


def _over_bins(counts: Floats, low: Floats, high: Floats, rate: float) -> tuple[Floats, Floats]:
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
    series = (terms - 1) / 2 - rate * (terms**2 - 1) / 12
    return total, first + np.where(terms > 0, np.where(rate * terms < SMALL, series, exact), 0.0)
