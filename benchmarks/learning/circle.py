"""Classes on a circle, more and more of them: [Z25], Figures 2, 3 and 4, by nearest neighbours.

Means are equally spaced on the unit circle, with normal noise of deviation 0.05 (panel a) or ``2 / K`` (panel b).
Beside the methods of the paper stand neighbours by the likelihood, on bits and on noisy labels. [Z25] prints pictures,
no numbers, of 1,000 trials; it states neither how LP-2ST is tempered nor filtered: here it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import print_table
from benchmarks.learning.experiment import Cell, Experiment, Row, Setup
from benchmarks.learning.intervals import mean
from benchmarks.learning.neighbours import Neighbours
from benchmarks.learning.reports import NON_PRIVATE, Errors
from optrand.base.validation import Floats
from optrand.learning import Alibi, Bits, LabelDPClassifier, NearestNeighbour, PrivateLabels, Stages
from optrand.sampling.entropy import SeededEntropy

__all__ = ["EXPERIMENTS", "drawn", "means"]

VECTOR = "bits"
"""The method of [Z25]."""

BAYES = "Bayes"
"""Who knows the distribution."""

THEIRS: dict[str, tuple[Any, str]] = {
    "randomized response": (Stages(1), "labels"),
    "two stages": (Stages(2, least=1), "labels"),
    "ALIBI": (Alibi(), "soft"),
}
"""Methods that the paper compares with its own."""

OURS: dict[str, tuple[Any, str]] = {
    "bits, likelihood": (Bits(), "likelihood"),
    "two stages, likelihood": (Stages(2), "likelihood"),
}

PANELS: dict[str, tuple[str, Callable[[int], float]]] = {
    "a": ("deviation 0.05", lambda k: 0.05),  # noqa: ARG005
    "b": ("deviation 2 / K", lambda k: 2 / k),
}
"""Deviation of the noise, in words and by the number of classes."""


def means(k: int) -> Floats:
    """Means of the classes, shape ``(K, 2)``."""
    angles = 2 * math.pi * np.arange(k) / k
    return np.column_stack([np.cos(angles), np.sin(angles)])


def drawn(k: int, deviation: float, rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
    """Points and their classes."""
    y = rng.integers(0, k, rows)
    return means(k)[y] + deviation * rng.normal(size=(rows, 2)), y


def cells(setup: Setup, seeds: int) -> list[Cell]:
    """All arms of a seed; a cell has both panels and all numbers of classes."""
    epsilon = setup.settings["epsilon"]
    arms = [VECTOR, *THEIRS, *OURS]
    apart = [(math.inf, BAYES), (math.inf, NON_PRIVATE)]
    return [Cell(seed, *one) for seed in range(seeds) for one in (*apart, *((epsilon, arm) for arm in arms))]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Percentage of test points that are right, by panel and number of classes."""
    return {
        f"{panel} {k}": accuracy(setup, cell, k, deviation(k))
        for panel, (_, deviation) in PANELS.items()
        for k in setup.settings["classes"]
    }


def accuracy(setup: Setup, cell: Cell, k: int, deviation: float) -> float:
    """Percentage of test points that are right."""
    settings = setup.settings
    rng = np.random.default_rng([cell.seed, k])
    X, y = drawn(k, deviation, settings["train"], rng)
    test, truth = drawn(k, deviation, settings["test"], rng)
    if cell.arm == BAYES:
        guesses = (test @ means(k).T).argmax(axis=1)
    elif cell.arm == NON_PRIVATE:
        guesses = Neighbours(settings["neighbours"]).fit(X, y).predict(test)
    else:
        plan, target = {VECTOR: (NearestNeighbour(settings["neighbours"]), "bits"), **THEIRS, **OURS}[cell.arm]
        labels = PrivateLabels(y, cell.epsilon, range(k), source=SeededEntropy(cell.seed))
        estimator = Neighbours(settings["neighbours"])
        learner = LabelDPClassifier(estimator, cell.epsilon, plan, target, random_state=cell.seed)
        guesses = learner.fit(X, labels).predict(test)
    return 100 * float((guesses == truth).mean())


def report(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """Print accuracies and what bits gain, and draw; whether they gain on all with the most classes, as [Z25] says."""
    found, epsilon, classes = Errors(rows), setup.settings["epsilon"], setup.settings["classes"]
    arms = [VECTOR, *THEIRS, *OURS]
    columns = [(math.inf, BAYES), (math.inf, NON_PRIVATE), *((epsilon, arm) for arm in arms)]
    seeds = len(found.rows[epsilon, VECTOR])
    lines, gains = [], []
    for panel in PANELS:
        for k in classes:
            name = f"{panel} {k}"
            bits = found.of(epsilon, VECTOR, name)
            lines.append([panel, str(k), *(f"{found.of(*one, name).mean():.2f}" for one in columns)])
            gains.append([panel, str(k), *(str(mean(bits - found.of(epsilon, arm, name))) for arm in arms[1:])])
    print_table(f"Test accuracy (percent): mean of {seeds} seeds", ["panel", "K", *(arm for _, arm in columns)], lines)
    print_table("Bits above, paired, interval at 95 %", ["panel", "K", *arms[1:]], gains)
    picture(setup, found, results)
    most = f"{max(classes)}"
    kept = all(
        bool((found.of(epsilon, VECTOR, f"{panel} {most}") - found.of(epsilon, arm, f"{panel} {most}")).mean() > 0)
        for panel in PANELS
        for arm in THEIRS
    )
    print(f"[Z25]: bits are above {', '.join(THEIRS)} with many classes; at K = {most}: {'so' if kept else 'NOT SO'}")
    return kept


def picture(setup: Setup, found: Errors, results: Path) -> None:
    """Accuracy against the number of classes, a panel each."""
    from benchmarks.pictures import FAINT, drawing, light, log_x, looks

    classes, epsilon = setup.settings["classes"], setup.settings["epsilon"]
    arms = [VECTOR, *THEIRS, *OURS]
    with drawing(results, f"learning-{setup.name}", (4.2 * len(PANELS), 3.6)) as figure:
        for axes, (panel, (words, _)) in zip(figure.subplots(1, len(PANELS), sharey=True), PANELS.items(), strict=True):
            for look, arm in zip(looks(arms, "arms"), arms, strict=True):
                axes.plot(classes, [found.of(epsilon, arm, f"{panel} {k}").mean() for k in classes], label=arm, **look)
            best = [found.of(math.inf, BAYES, f"{panel} {k}").mean() for k in classes]
            axes.plot(classes, best, label=BAYES, **FAINT)
            log_x(axes, classes)
            axes.set(xlabel="classes", ylabel="test accuracy (percent)")
            light(axes)
            axes.set_title(words, fontsize=9)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


EXPERIMENTS = {
    f"circle{number}": Experiment(f"[Z25], Figure {number}: classes on a circle, {what}", cells, measure, report)
    for number, what in {2: "epsilon 1", 3: "epsilon 2, 100 neighbours", 4: "epsilon 1, 100 neighbours"}.items()
}
