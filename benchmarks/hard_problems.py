"""Hard problems of few labels: every prior, label set, kind of outputs, penalty and epsilon in turn.

Seven priors of which some have entries next to zero, five sets of labels of which some lie close together or far out,
outputs on the line, in the narrowest interval and a wider one, and on a grid of the width of that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, product
from typing import NamedTuple

import numpy as np

from benchmarks.priors import DIRICHLET_SEED
from optrand import Grid, Interval, regression, unbiased_range
from optrand.base.validation import Floats
from optrand.model.outputs import OutputSet
from optrand.model.problem import Problem

__all__ = ["EPSILONS", "Hard", "hard_problems", "labels_of", "posed", "prior_of"]

PRIORS = ("uniform", "geometric", "alternating", "spike", "gaussian", "dirichlet", "half zero")
LABELS = ("equispaced", "squares", "clustered", "random", "outlier")
PLACES = ("line", "narrowest", "wider", "grid")
PENALTIES = (math.inf, 1000.0, 1.0, 0.001)
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 21)
"""Numbers of labels, in turn."""

EPSILONS = {
    "to 10": (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 7.0, 10.0),
    "16 to 40": (16.0, 28.0, 40.0),
    "100, 600": (100.0, 600.0),
}
"""Of each class."""

GRID = 17
"""Values of a grid."""


class Hard(NamedTuple):
    """Names of a hard problem's parts."""

    prior: str
    labels: str
    place: str
    penalty: float
    epsilon: float
    k: int

    @property
    def range_of_epsilon(self) -> str:
        """Its class, by epsilon."""
        return next(name for name, epsilons in EPSILONS.items() if self.epsilon in epsilons)


def hard_problems() -> Iterator[Hard]:
    """All of them, with the numbers of labels in turn.

    Examples
    --------
    >>> sum(1 for _ in hard_problems())
    7280
    """
    epsilons = [epsilon for some in EPSILONS.values() for epsilon in some]
    turns = count()
    for parts in product(PRIORS, LABELS, PLACES, PENALTIES, epsilons):
        yield Hard(*parts, SIZES[next(turns) % len(SIZES)])


def prior_of(name: str, k: int) -> Floats:
    """A prior by its name.

    Examples
    --------
    >>> prior_of("alternating", 4).round(3).tolist()
    [0.0, 0.5, 0.0, 0.5]
    """
    each = np.arange(k)
    rng = np.random.default_rng([DIRICHLET_SEED, k])
    weights = {
        "uniform": np.ones(k),
        "geometric": 0.2**each,
        "alternating": np.where(each % 2, 0.1, 1e-12),
        "spike": np.where(each == k // 3, 1.0, 1e-6),
        "gaussian": np.exp(-((each - (k - 1) / 2) ** 2) * 50 / k**1.5),
        "dirichlet": rng.dirichlet(np.full(k, 0.5)),
        "half zero": np.where(rng.permutation(k) < (k + 1) // 2, 1.0, 0.0),
    }[name]
    prior: Floats = weights / weights.sum()
    return prior


def labels_of(name: str, k: int) -> Floats:
    """A set of labels by its name.

    Examples
    --------
    >>> labels_of("outlier", 4).tolist()
    [0.0, 1.0, 2.0, 1000.0]
    """
    each = np.arange(float(k))
    labels: Floats = {
        "equispaced": each,
        "squares": each**2,
        "clustered": each // 2 + 1e-5 * (each % 2),
        "random": np.sort(np.random.default_rng([DIRICHLET_SEED, k, 1]).random(k)),
        "outlier": np.where(each == k - 1, 1000.0, each),
    }[name]
    return labels


def posed(hard: Hard) -> Problem:
    """The problem itself; boxes and grids span the outputs that unbiased answers need, or else the labels."""
    labels, prior = labels_of(hard.labels, hard.k), prior_of(hard.prior, hard.k)
    low, high = unbiased_range(labels, hard.epsilon) if math.isinf(hard.penalty) else (labels[0], labels[-1])
    margin = 0.3 * (high - low)
    outputs: dict[str, OutputSet | None] = {
        "line": None,
        "narrowest": Interval(low, high),
        "wider": Interval(low - margin, high + margin),
        "grid": Grid(np.linspace(low - margin, high + margin, GRID)),
    }
    return regression(labels, prior, hard.epsilon, bias_penalty=hard.penalty, outputs=outputs[hard.place])
