"""The priors that benchmarks share: one real, two drawn with written-down seeds, one smooth."""

from __future__ import annotations

import csv

import numpy as np

from optrand.data import weeks_worked_counts_path
from optrand.errors import InvalidInput
from optrand.validation import Floats

__all__ = ["DIRICHLET_SEED", "SPIKE_SEED", "WEEKS", "dirichlet", "exponential", "spike", "weeks"]

WEEKS = 53
"""Labels of the weeks-worked prior, 0 to 52."""

DIRICHLET_SEED = 1729
SPIKE_SEED = 4104


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


def _normalised(weights: Floats) -> Floats:
    prior: Floats = weights / weights.sum()
    return prior
