"""Classification of images on private labels: bits, ALIBI and stages, each with the likelihood and as in the papers.

[Z25], Table 1 (bits with binary cross entropy), [MEMP21] (ALIBI with soft labels) and [G21], Table 4 (one stage against
two), with one small network for all. [E22], Figures 1 and 2, with a linear model: labels randomized in public clusters,
those of k-means on training pixels. The paper states neither phi nor which digit its binary MNIST separates:
phi is the default of the plan, and the digit is in the settings. An error is the percentage of test images that are
wrong. The printed ones are of larger networks, trained longer. [Z25] tunes the parameters of each method, and ignores
the privacy cost of tuning.
"""

from __future__ import annotations

import gzip
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from benchmarks.learning.experiment import Cell, Experiment, Setup, fit_classifier
from benchmarks.learning.fetch import find_file
from benchmarks.learning.reports import report
from optrand.base._validation import Floats
from optrand.learning import Alibi, Bits, Clusters, Plan, Stages

ARMS: dict[str, tuple[Any, str]] = {
    "bits, likelihood": (Bits(), "likelihood"),
    "bits, binary cross entropy": (Bits(), "bits"),
    "ALIBI, likelihood": (Alibi(), "likelihood"),
    "ALIBI, soft labels": (Alibi(), "soft"),
    "one stage, likelihood": (Stages(1), "likelihood"),
    "one stage, noisy labels": (Stages(1), "labels"),
    "two stages, likelihood": (Stages(2), "likelihood"),
    "two stages, noisy labels": (Stages(2), "labels"),
    "LP-1ST": (Stages(1), "labels"),
    "LP-2ST": (Stages(2, temperature=0.5, least=1, top_k_filter=True), "labels"),
    "LP-2ST, untempered": (Stages(2, least=1), "labels"),
    "randomized response": (Stages(1), "labels"),
    "randomized response, likelihood": (Stages(1), "likelihood"),
}
"""Plan and target of each arm."""

ROBUST: dict[str, dict[str, Any]] = {
    "LP-1ST": {"mixup": 4.0},
    "LP-2ST": {"mixup": 4.0, "warm_start": True},
}
"""Training as in [G21]: mixup of 4 (4 to 8 were good), and stage 2 continues with the network of stage 1."""

Images = tuple[Floats, NDArray[np.uint8]]


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Return the bytes of the IDX format, one row per item.

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [[7, 8, 9]]
    """
    axes = content[3]
    rows = int.from_bytes(content[4:8], "big")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(rows, -1)


@lru_cache(maxsize=1)
def images(folder: Path, name: str) -> tuple[Images, Images]:
    """Return training and test images, shape ``(n, 784)`` from 0 to 1, and their classes."""
    parts = []
    for part in ("train", "t10k"):
        pixels, classes = (
            parse_idx(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
            for content in (find_file(folder, f"{name}-{part}-{kind}").read_bytes() for kind in ("images", "labels"))
        )
        parts.append((pixels / np.float32(255), classes[:, 0]))
    return parts[0], parts[1]


def make_up(rows: int, seed: int) -> Images:
    """Make images of one bright block per class, for a small run without data."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 10, rows).astype(np.uint8)
    pixels = rng.random((rows, 784), dtype=np.float32) / 4
    pixels.reshape(rows, 28, 28)[np.arange(rows), :, 2 * classes + 3] += 1
    return pixels, classes


def make_network() -> Any:
    """Make a network of two convolutions and a hidden layer."""
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(800, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


def data(setup: Setup, seed: int) -> tuple[Images, Images]:
    """Return training and test images. With a `digit` among the settings, the class is whether an image shows it."""
    settings = setup.settings
    if settings["data"] == "made up":
        parts = make_up(settings["train"], seed), make_up(200, seed + 1)
    else:
        parts = images(setup.data, settings["data"])
    if "digit" not in settings:
        return parts
    (X, y), (test, truth) = parts
    y, truth = ((part == settings["digit"]).astype(np.uint8) for part in (y, truth))
    return (X, y), (test, truth)


@lru_cache(maxsize=8)
def find_centres(folder: Path, name: str, rows: int, seed: int, count: int) -> Any:
    """Cluster the training images, whose pixels are public, by k-means."""
    X = (make_up(rows, seed) if name == "made up" else images(folder, name)[0])[0]
    return MiniBatchKMeans(count, random_state=seed, n_init=3).fit(X)


def assign_clusters(setup: Setup, seed: int, count: int, X: Floats) -> NDArray[np.intp]:
    """Return the cluster of each image."""
    centres = find_centres(setup.data, setup.settings["data"], setup.settings["train"], seed, count)
    found: NDArray[np.intp] = centres.predict(X)
    return found


def plan_of(setup: Setup, cell: Cell) -> tuple[Plan | None, str]:
    """Return the plan and the target of an arm. "100 clusters" and the like have a plan of their own."""
    words, _, target = cell.arm.partition(", ")
    if not words.endswith(" clusters"):
        return ARMS.get(cell.arm, (None, ""))
    count = int(words.removesuffix(" clusters"))
    # Two thirds of epsilon go to the shares of labels in clusters ([E22], Corollary 2).
    return Clusters(partial(assign_clusters, setup, cell.seed, count), share=2 / 3), target or "labels"


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the percentage of test images that are wrong."""
    import torch

    from optrand.learning.torch import TorchClassifier

    (X, y), (test, truth) = data(setup, cell.seed)
    k = 2 if "digit" in setup.settings else 10
    kind = setup.settings.get("model", "network")
    torch.manual_seed(cell.seed)
    module = torch.nn.Linear(784, k) if kind == "linear" else make_network()
    model: Any = TorchClassifier(module, **setup.settings["network"], **ROBUST.get(cell.arm, {}), seed=cell.seed)
    model = fit_classifier(cell, model, X, y, k, *plan_of(setup, cell))
    return {kind: 100 * float((model.predict(test) != truth).mean())}


EXPERIMENTS = {
    name: Experiment(summary, measure, partial(report, error="test error (percent)"), ("torch",))
    for name, summary in {
        "mnist": "MNIST: bits with the likelihood against binary cross entropy, one stage against two",
        "fashion": "Fashion-MNIST: the same, and ALIBI with the likelihood against soft labels",
        "fashion-longer": "Fashion-MNIST with twice the epochs, after 4 had missed a promise",
        "table4-mnist": "[G21], Table 4, MNIST: one stage against two, as in the paper and by the likelihood",
        "table4-fashion": "[G21], Table 4, Fashion-MNIST: one stage against two",
        "clusters-mnist": "[E22], Figure 1, MNIST: labels randomized in clusters, and how many clusters",
        "clusters-fashion": "[E22], Figure 1, Fashion-MNIST",
        "clusters-binary": "[E22], Figure 2: one digit against all others, clusters beside two stages",
    }.items()
}
