"""The priors that benchmarks share: three real, one smooth, three drawn with seeds that are written down here.

`weeks` is counted from the bundled data; `visits` and `revenue` are counts of tables that two packages ship, written
down here.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable

import numpy as np

from optrand import feasible_output_set, regression, unbiased_regression
from optrand.base.validation import Floats
from optrand.data import weeks_worked_counts_path
from optrand.errors import InvalidInput
from optrand.model.problem import Problem

WEEKS = 53
"""Labels of the weeks-worked prior, 0 to 52."""

DIRICHLET_SEED = 1729
SPIKE_SEED = 4104
LOG_NORMAL_SEED = 13832

VISITS = (
    *(6308, 3817, 2797, 1884, 1345, 968, 689, 531, 408, 287, 206, 190, 118, 109, 82, 59, 56, 33, 37, 35),
    *(26, 22, 19, 19, 13, 8, 10, 6, 12, 6, 8, 8, 4, 5, 9, 5, 0, 5, 9, 1, 3, 5, 0, 0, 6, 2, 2, 0, 2, 0, 0),
    *(1, 3, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1),
)
"""How many of 20,190 persons and years had 0, 1, ... 77 visits to a physician: RAND Health Insurance Experiment, as the
package statsmodels has it (`datasets/randhie`, column `mdvis`)."""

REVENUE = (
    *(16512, 0, 1, 7, 3, 15, 26, 14, 5, 69, 50, 131, 129, 212, 196, 145, 45, 35, 46, 44, 26, 55, 58, 80, 109, 99),
    *(104, 109, 112, 90, 70, 51, 37, 38, 64, 54, 58, 81, 56, 82, 77, 94, 77, 61, 59, 53, 50, 35, 50, 58, 63, 56, 61),
    *(45, 52, 60, 39, 37, 47, 45, 40, 34, 39, 37, 26, 37, 41, 37, 37, 44, 24, 30, 37, 31, 31, 28, 31, 35, 34, 24),
    *(22, 32, 28, 26, 34, 26, 23, 27, 23, 26, 22, 26, 18, 24, 18, 30, 21, 17, 35, 28, 19, 21, 23, 19, 16, 26, 25),
    *(10, 28, 23, 19, 22, 18, 17, 13, 15, 17, 23, 17, 17, 15, 15, 18, 14, 15, 9, 13, 20, 16, 10, 17, 22, 12, 10, 10),
    *(19, 14, 15, 21, 11, 10, 10, 13, 8, 14, 20, 9, 12, 13, 18, 12, 8, 10, 10, 6, 3, 6, 8, 15, 14, 8, 12, 6, 9, 8),
    *(12, 13, 6, 11, 9, 8, 11, 14, 16, 8, 8, 11, 8, 7, 13, 5, 4, 11, 7, 9, 6, 5, 10, 4, 4, 3, 10, 10, 8, 3, 9, 4),
    *(11, 8, 3, 7, 4, 5, 6, 5, 7, 10, 6, 4, 5, 9, 8, 7, 6, 5, 4, 5, 3, 5, 8, 6, 5, 6, 2, 3, 1, 7, 3, 6, 5, 2, 2, 4),
    *(6, 3, 3, 4, 5, 4, 7, 6, 1, 4, 6, 8, 0, 7, 0, 9, 8, 4, 3, 4, 3, 5, 1, 2, 3, 4, 3, 2, 2, 1, 5, 9, 2, 4, 4, 4, 4),
    *(3, 3, 4, 7, 2, 5, 2, 2, 5, 1, 2, 2, 4, 6, 3, 2, 4, 2, 1, 1, 5, 2, 1, 3, 1, 1, 1, 4, 3, 4, 1, 4, 3, 0, 1, 1, 1),
    *(3, 4, 3, 4, 1, 5, 4, 4, 1, 0, 4, 3, 1, 3, 2, 2, 4, 4, 3, 4, 3, 2, 3, 3, 1, 2, 0, 3, 1, 1, 3, 3, 0, 1, 2, 3, 1),
    *(1, 1, 3, 1, 1, 4, 5, 1, 3, 3, 2, 3, 3, 0, 3, 4, 5, 7, 2, 5, 2, 2, 4, 2, 1, 1, 1, 6, 2, 3, 1, 0, 1, 0, 1, 3, 1),
    *(1, 1, 0, 2, 3, 3, 0, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 1, 293),
)
"""How many of 23,570 customers spent 0, 1, ... 399 dollars, rounded, and 400 or more, from October 1997 on: CDNOW, as
the package lifetimes 0.11.3 has it (`datasets/CDNOW_master.txt`)."""

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
    """Draw from the Dirichlet distribution with parameters 1/2, and raise each entry by 1e-4: rough, without zeros."""
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


def revenue(k: int = len(REVENUE)) -> Floats:
    """Return the prior of what customers of a shop spend, capped at 400, on `k` evenly spaced labels from 0 to 400.

    At 401 labels, dollars, these are the labels of [B23], Appendix G.3. A label without customers has prior zero.

    Examples
    --------
    >>> prior = revenue()
    >>> prior[[0, 1, 50, 400]].round(4).tolist(), (prior == 0).sum().item()
    ([0.7006, 0.0, 0.0027, 0.0124], 14)
    """
    dollars = np.arange(len(REVENUE))
    nearest = np.round(dollars / dollars[-1] * (k - 1)).astype(np.int64)
    return _normalised(np.bincount(nearest, REVENUE, k).astype(np.float64))


def log_normal(k: int) -> Floats:
    """Like revenue, but for any number of labels: `k` evenly spaced ones from 0 to 400.

    23,570 customers, of whom 30 % buy; what they spend is log-normal with median 50 and shape 1.25, capped at 400, and
    rounded to the nearest label. A label without customers has prior zero.

    Examples
    --------
    >>> prior = log_normal(401)
    >>> prior[[0, 1, 50, 400]].round(4).tolist(), (prior == 0).sum().item()
    ([0.7009, 0.0005, 0.0014, 0.014], 12)
    """
    source = np.random.default_rng(LOG_NORMAL_SEED)
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


PRIORS: dict[str, Callable[[int], Floats]] = {
    "Dirichlet": dirichlet,
    "exponential": exponential,
    "spike": spike,
    "revenue": revenue,
    "log-normal": log_normal,
    "weeks": weeks,
}


def posed(prior: str, k: int, epsilon: float, *, penalty: float = math.inf, mesh: int | None = None) -> Problem:
    """Pose the problem of a named prior on the labels 0 ... k-1, on the line or, unbiased, on a grid of `mesh` outputs.

    Examples
    --------
    >>> posed("weeks", 53, 1.0, mesh=52).outputs.values.size
    52
    """
    labels, chances = np.arange(float(k)), PRIORS[prior](k)
    if mesh is not None:
        return unbiased_regression(labels, chances, epsilon, outputs=feasible_output_set(labels, epsilon, mesh))
    return regression(labels, chances, epsilon, bias_penalty=penalty)
