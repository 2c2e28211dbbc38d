"""The priors that benchmarks share: two real, one smooth, two drawn with seeds that are written down here.

`weeks` is counted from the bundled data, and `revenue` is from ``revenue.toml``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from optrand import regression
from optrand.base._validation import Floats
from optrand.data import weeks_worked_counts_path
from optrand.errors import InvalidInput
from optrand.model._problem import Problem

WEEKS = 53
"""Labels of the weeks-worked prior, 0 to 52."""

DIRICHLET_SEED = 1729
SPIKE_SEED = 4104

REVENUE: list[int] = tomllib.loads(Path(__file__).with_name("revenue.toml").read_text(encoding="utf-8"))["customers"]


def weeks(k: int = WEEKS) -> Floats:
    """Count the weeks worked by the 199,523 people of the bundled table. `k` below 53 pools neighbouring weeks evenly.

    Examples
    --------
    >>> weeks().round(3)[[0, 1, 52]].tolist(), weeks(10).size
    ([0.481, 0.002, 0.352], 10)
    """
    if not 1 <= k <= WEEKS:
        raise InvalidInput(f"k is {k}, expected 1 to {WEEKS}: there are no more weeks to pool")
    counts = np.loadtxt(weeks_worked_counts_path(), delimiter=",", skiprows=1)[:, 1]
    pooled = np.array([part.sum() for part in np.array_split(counts, k)])
    return _normalised(pooled)


def dirichlet(k: int) -> Floats:
    """Draw from the Dirichlet distribution with parameters 1/2, and raise each entry by 1e-4: rough, without zeros."""
    return _normalised(np.random.default_rng([DIRICHLET_SEED, k]).dirichlet(np.full(k, 0.5)) + 1e-4)


def exponential(k: int) -> Floats:
    """Return probabilities that fall by the same factor from label to label, by ``exp(-5)`` in all.

    Examples
    --------
    >>> exponential(3).round(4).tolist()
    [0.9184, 0.0754, 0.0062]
    """
    return _normalised(np.exp(-5 * np.arange(k) / max(1, k - 1)))


def spike(k: int) -> Floats:
    """Put half of all mass on one label, none on every third label, the rest even: zeros and ties.

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


def revenue(k: int = 401) -> Floats:
    """Return the prior of the spending of a shop's customers, capped at 400, on `k` evenly spaced labels from 0 to 400.

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


def _normalised(weights: Floats) -> Floats:
    prior: Floats = weights / weights.sum()
    return prior


PRIORS: dict[str, Callable[[int], Floats]] = {
    "Dirichlet": dirichlet,
    "exponential": exponential,
    "spike": spike,
    "revenue": revenue,
    "weeks": weeks,
}


def posed(prior: str, k: int, epsilon: float, *, penalty: float = math.inf) -> Problem:
    """Pose the problem of a named prior on the labels 0 ... k-1 with outputs on the line, by default unbiased."""
    return regression(np.arange(float(k)), PRIORS[prior](k), epsilon, bias_penalty=penalty)
