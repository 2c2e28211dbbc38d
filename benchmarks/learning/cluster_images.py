"""Linear models of images on labels randomized in public clusters: [E22], Figures 1 and 2.

Clusters are those of k-means on training pixels. An error is the percentage of test images that are wrong, where the
paper draws accuracies over that without privacy. It states neither phi nor which digit its binary MNIST tells from the
others: phi is the default of the plan, and the digit is in the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from benchmarks.learning.experiment import Cell, Experiment, Row, Settings, Setup
from benchmarks.learning.images import Images, images, made_up
from benchmarks.learning.regression import cells
from benchmarks.learning.reports import NON_PRIVATE, report
from optrand.base.validation import Floats
from optrand.learning import Clusters, LabelDPClassifier, PrivateLabels, Stages
from optrand.sampling.entropy import SeededEntropy

__all__ = ["EXPERIMENTS"]

SHARE = 2 / 3
"""Of epsilon for the shares of labels in clusters ([E22], Corollary 2)."""

STAGES = {
    "randomized response": Stages(1),
    "LP-2ST": Stages(2, least=1),
    "two stages": Stages(2),
}
"""Plans without clusters, by the words of an arm before ", likelihood"."""


def data(setup: Setup, seed: int) -> tuple[Images, Images]:
    """Training and test images; with a `digit` among the settings, classes are whether it is that."""
    settings = setup.settings
    if settings["data"] == "made up":
        parts = made_up(settings["train"], seed), made_up(200, seed + 1)
    else:
        parts = images(setup.data, settings["data"])
    (X, y), (test, truth) = parts
    if "digit" in settings:
        y, truth = ((part == settings["digit"]).astype(np.uint8) for part in (y, truth))
    return (X, y), (test, truth)


@lru_cache(maxsize=8)
def centres(folder: Path, name: str, rows: int, seed: int, count: int) -> Any:
    """Clusters of the training images, whose pixels are public."""
    X = (made_up(rows, seed) if name == "made up" else images(folder, name)[0])[0]
    return MiniBatchKMeans(count, random_state=seed, n_init=3).fit(X)


def clusters(setup: Setup, seed: int, count: int, X: Floats) -> NDArray[np.intp]:
    """Cluster of each image."""
    found: NDArray[np.intp] = centres(setup.data, setup.settings["data"], setup.settings["train"], seed, count).predict(
        X
    )
    return found


def plan_of(setup: Setup, cell: Cell) -> tuple[Any, str]:
    """Plan and target of an arm."""
    words, _, target = cell.arm.partition(", ")
    if words in STAGES:
        return STAGES[words], target or "labels"
    count = int(words.removesuffix(" clusters"))
    return Clusters(partial(clusters, setup, cell.seed, count), share=SHARE), target or "labels"


def linear(settings: Settings, k: int, seed: int) -> Any:
    """Multinomial logistic model."""
    import torch

    from optrand.learning.torch import TorchClassifier

    torch.manual_seed(seed)
    return TorchClassifier(torch.nn.Linear(784, k), **settings["network"], seed=seed)


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Percentage of test images that are wrong."""
    (X, y), (test, truth) = data(setup, cell.seed)
    k = 2 if "digit" in setup.settings else 10
    model = linear(setup.settings, k, cell.seed)
    if cell.arm == NON_PRIVATE:
        model.fit(X, y)
    else:
        plan, target = plan_of(setup, cell)
        labels = PrivateLabels(y, cell.epsilon, range(k), source=SeededEntropy(cell.seed))
        learner = LabelDPClassifier(model, cell.epsilon, plan, target, random_state=cell.seed)
        model = learner.fit(X, labels)
    return {"linear": 100 * float((model.predict(test) != truth).mean())}


def reported(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """See :func:`benchmarks.learning.reports.report`."""
    return report(setup, rows, results, models=["linear"], error="test error (percent)")


EXPERIMENTS = {
    name: Experiment(summary, cells, measure, reported, ("torch",))
    for name, summary in {
        "clusters-mnist": "[E22], Figure 1, MNIST: labels randomized in clusters, and how many clusters",
        "clusters-fashion": "[E22], Figure 1, Fashion-MNIST",
        "clusters-binary": "[E22], Figure 2: one digit against all others, clusters beside two stages",
    }.items()
}
