"""Classes on a circle, more and more of them: [Z25], Figures 2, 3 and 4, by nearest neighbours.

Means are equally spaced on the unit circle, with normal noise of deviation 0.05 (panel a) or ``2 / K`` (panel b).
Beside the methods of the paper stand neighbours by the likelihood, on bits and on noisy labels. [Z25] prints pictures,
no numbers, of 1,000 trials; it states neither how LP-2ST is tempered nor filtered: here it is not.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.experiment import Cell, Experiment, Setup, fit_classifier
from benchmarks.learning.neighbours import Neighbours
from benchmarks.learning.reports import report
from optrand.base._validation import Floats
from optrand.learning import Alibi, Bits, NearestNeighbour, Stages

BAYES = "Bayes"
"""Arm that knows the distribution."""


def find_means(k: int) -> Floats:
    """Return the means of the classes, shape ``(K, 2)``."""
    angles = 2 * math.pi * np.arange(k) / k
    return np.column_stack([np.cos(angles), np.sin(angles)])


def draw_points(k: int, deviation: float, rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
    """Draw points and their classes."""
    y = rng.integers(0, k, rows)
    return find_means(k)[y] + deviation * rng.normal(size=(rows, 2)), y


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the percentage of test points that are right, by panel and number of classes."""
    deviations = {
        f"{panel} {k}": (k, 0.05 if panel == "a" else 2 / k) for panel in "ab" for k in setup.settings["classes"]
    }
    return {name: measure_accuracy(setup, cell, *one) for name, one in deviations.items()}


def measure_accuracy(setup: Setup, cell: Cell, k: int, deviation: float) -> float:
    """Measure the percentage of test points that are right."""
    settings = setup.settings
    rng = np.random.default_rng([cell.seed, k])
    X, y = draw_points(k, deviation, settings["train"], rng)
    test, truth = draw_points(k, deviation, settings["test"], rng)
    if cell.arm == BAYES:
        return 100 * float(((test @ find_means(k).T).argmax(axis=1) == truth).mean())
    plans: dict[str, tuple[Any, str]] = {
        "bits": (NearestNeighbour(settings["neighbours"]), "bits"),
        "randomized response": (Stages(1), "labels"),
        "two stages": (Stages(2, least=1), "labels"),
        "ALIBI": (Alibi(), "soft"),
        "bits, likelihood": (Bits(), "likelihood"),
        "two stages, likelihood": (Stages(2), "likelihood"),
    }
    model = fit_classifier(cell, Neighbours(settings["neighbours"]), X, y, k, *plans.get(cell.arm, (None, "")))
    return 100 * float((model.predict(test) == truth).mean())


EXPERIMENTS = {
    f"circle{number}": Experiment(
        f"[Z25], Figure {number}: classes on a circle, {what}",
        measure,
        partial(report, error="test accuracy (percent)"),
    )
    for number, what in {2: "epsilon 1", 3: "epsilon 2, 100 neighbours", 4: "epsilon 1, 100 neighbours"}.items()
}
