"""The priors that benchmarks share: two real, one smooth, three drawn with seeds that are written down here.

`weeks` is counted from the bundled data, `visits` from a table in the public domain. `revenue` is a stand-in, drawn,
for sales data that may not be bundled.
"""

from __future__ import annotations

import csv

import numpy as np

from optrand.data import weeks_worked_counts_path
from optrand.errors import InvalidInput
from optrand.validation import Floats

__all__ = [
    "DIRICHLET_SEED",
    "REVENUE_SEED",
    "SPIKE_SEED",
    "WEEKS",
    "dirichlet",
    "exponential",
    "revenue",
    "spike",
    "visits",
    "weeks",
]

WEEKS = 53
"""Labels of the weeks-worked prior, 0 to 52."""

DIRICHLET_SEED = 1729
SPIKE_SEED = 4104
REVENUE_SEED = 13832

VISITS = (
    *(6308, 3817, 2797, 1884, 1345, 968, 689, 531, 408, 287, 206, 190, 118, 109, 82, 59, 56, 33, 37, 35),
    *(26, 22, 19, 19, 13, 8, 10, 6, 12, 6, 8, 8, 4, 5, 9, 5, 0, 5, 9, 1, 3, 5, 0, 0, 6, 2, 2, 0, 2, 0, 0),
    *(1, 3, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1),
)
"""How many of 20,190 persons and years had 0, 1, ... 77 visits to a physician: RAND Health Insurance Experiment, as the
package statsmodels has it (`datasets/randhie`, column `mdvis`)."""

CUSTOMERS = 23_570
CAP = 400.0


def weeks(k: int = WEEKS) -> Floats:
    """Weeks worked by the 199,523 people of the bundled counts; `k` below 53 pools neighbouring weeks evenly.

    Examples
    --------
    >>> weeks().round(3)[[0, 1, 52]].tolist(), weeks(10).size
    ([0.481, 0.002, 0.352], 10)
    """
    if not 1 <= k <= WEEKS:
        raise InvalidInput(f"k is {k}, expected 1 to {WEEKS}: there are no more weeks to pool")
    with weeks_worked_counts_path().open(newline="", encoding="utf-8") as stream:
        counts = np.array([int(row["count"]) for row in csv.DictReader(stream)], dtype=np.float64)
    pooled = np.array([part.sum() for part in np.array_split(counts, k)])
    return _normalised(pooled)


def dirichlet(k: int) -> Floats:
    """A draw from the Dirichlet distribution with parameters 1/2, each entry raised by 1e-4: rough, without zeros."""
    return _normalised(np.random.default_rng([DIRICHLET_SEED, k]).dirichlet(np.full(k, 0.5)) + 1e-4)


def exponential(k: int) -> Floats:
    """Probabilities that fall by the same factor from label to label, by ``exp(-5)`` in all.

    Examples
    --------
    >>> exponential(3).round(4).tolist()
    [0.9184, 0.0754, 0.0062]
    """
    return _normalised(np.exp(-5 * np.arange(k) / max(1, k - 1)))


def spike(k: int) -> Floats:
    """Half of all mass on one label, none on every third label, the rest even: zeros and ties.

    Examples
    --------
    >>> (spike(9) > 0).sum().item(), spike(9).max().item()
    (6, 0.5)
    """
    order = np.random.default_rng([SPIKE_SEED, k]).permutation(k)
    used = order[: max(2, k - k // 3)]
    prior = np.zeros(k)
    prior[used] = 0.5 / (used.size - 1)
    prior[used[0]] = 0.5
    return _normalised(prior)


def revenue(k: int) -> Floats:
    """A stand-in for what customers of a shop spend, capped at 400: `k` evenly spaced labels from 0 to 400.

    23,570 customers, of whom 30 % buy; what they spend is log-normal with median 50 and shape 1.25, capped, and rounded
    to the nearest label. A label without customers has prior zero. At 401 labels these are the labels of [B23]_,
    Appendix G.3.

    Examples
    --------
    >>> prior = revenue(401)
    >>> prior[[0, 1, 50, 400]].round(4).tolist(), (prior == 0).sum().item()
    ([0.7009, 0.0005, 0.0014, 0.014], 12)

    References
    ----------
    .. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
    """
    source = np.random.default_rng(REVENUE_SEED)
    buys = source.random(CUSTOMERS) < 0.3
    spent = np.minimum(np.where(buys, 50 * np.exp(1.25 * source.standard_normal(CUSTOMERS)), 0.0), CAP)
    nearest = np.round(spent / CAP * (k - 1)).astype(np.int64)
    return _normalised(np.bincount(nearest, minlength=k).astype(np.float64))


def visits(k: int = len(VISITS)) -> Floats:
    """Visits to a physician in a year, 0 to 77; more than ``k - 1`` are counted as ``k - 1``.

    Examples
    --------
    >>> visits()[[0, 1, 77]].round(4).tolist(), visits(2).round(4).tolist()
    ([0.3124, 0.1891, 0.0], [0.3124, 0.6876])
    """
    counts = np.array(VISITS, dtype=np.float64)
    return _normalised(np.append(counts[: k - 1], counts[k - 1 :].sum()))


def _normalised(weights: Floats) -> Floats:
    prior: Floats = weights / weights.sum()
    return prior
