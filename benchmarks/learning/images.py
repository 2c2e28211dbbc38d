"""Classification of images on private labels: bits, ALIBI and stages, each with the likelihood and as in the papers.

[Z25], Table 1 (bits with binary cross entropy), [MEMP21] (ALIBI with soft labels) and [G21], Table 4 (one stage against
two), with one small network for all. An error is the percentage of test images that are wrong.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.experiment import Cell, Experiment, Row, Setup
from benchmarks.learning.fetch import fetched
from benchmarks.learning.reports import NON_PRIVATE, report
from optrand.base.validation import Floats
from optrand.learning import Alibi, Bits, LabelDPClassifier, PrivateLabels, Stages
from optrand.sampling.entropy import SeededEntropy

__all__ = ["EXPERIMENTS", "idx"]

CLASSES = range(10)

ARMS: dict[str, tuple[Any, str]] = {
    "bits, likelihood": (Bits(), "likelihood"),
    "bits, binary cross entropy": (Bits(), "bits"),
    "ALIBI, likelihood": (Alibi(), "likelihood"),
    "ALIBI, soft labels": (Alibi(), "soft"),
    "one stage, likelihood": (Stages(1), "likelihood"),
    "one stage, noisy labels": (Stages(1), "labels"),
    "two stages, likelihood": (Stages(2), "likelihood"),
    "two stages, noisy labels": (Stages(2), "labels"),
}
"""Plan and target of each arm."""

Images = tuple[Floats, NDArray[np.uint8]]


def idx(content: bytes) -> NDArray[np.uint8]:
    """Array of bytes in the IDX format, one row an item.

    Examples
    --------
    >>> idx(bytes([0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9])).tolist()
    [[7, 8, 9]]
    """
    axes = content[3]
    rows = int.from_bytes(content[4:8], "big")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(rows, -1)


@lru_cache(maxsize=1)
def images(folder: Path, name: str) -> tuple[Images, Images]:
    """Training and test images, shape ``(n, 784)`` from 0 to 1, and their classes."""
    parts = []
    for part in ("train", "t10k"):
        pixels, classes = (
            idx(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
            for content in (fetched(folder, f"{name}-{part}-{kind}").read_bytes() for kind in ("images", "labels"))
        )
        parts.append((pixels / np.float32(255), classes[:, 0]))
    return parts[0], parts[1]


def made_up(rows: int, seed: int) -> Images:
    """Images of one bright block a class, for a small run without data."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 10, rows).astype(np.uint8)
    pixels = rng.random((rows, 784), dtype=np.float32) / 4
    pixels.reshape(rows, 28, 28)[np.arange(rows), :, 2 * classes + 3] += 1
    return pixels, classes


def network() -> Any:
    """Two convolutions and a hidden layer."""
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


def cells(setup: Setup, seeds: int) -> list[Cell]:
    """Without privacy once a seed, then all arms."""
    settings = setup.settings
    return [
        cell
        for seed in range(seeds)
        for cell in (
            Cell(seed, math.inf, NON_PRIVATE),
            *(Cell(seed, epsilon, arm) for epsilon, arm in product(settings["epsilons"], settings["arms"])),
        )
    ]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Percentage of test images that are wrong."""
    import torch

    from optrand.learning.torch import TorchClassifier

    settings = setup.settings
    if settings["data"] == "made up":
        (X, y), (test, truth) = made_up(settings["train"], cell.seed), made_up(200, cell.seed + 1)
    else:
        (X, y), (test, truth) = images(setup.data, settings["data"])
    torch.manual_seed(cell.seed)
    model: Any = TorchClassifier(network(), **settings["network"], seed=cell.seed)
    if cell.arm == NON_PRIVATE:
        model.fit(X, y)
    else:
        plan, target = ARMS[cell.arm]
        labels = PrivateLabels(y, cell.epsilon, CLASSES, source=SeededEntropy(cell.seed))
        learner = LabelDPClassifier(model, cell.epsilon, CLASSES, plan, target, random_state=cell.seed)
        model = learner.fit(X, labels)
    return {"network": 100 * float((model.predict(test) != truth).mean())}


def reported(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """See :func:`benchmarks.learning.reports.report`."""
    return report(setup, rows, results, models=["network"], error="test error (percent)")


EXPERIMENTS = {
    name: Experiment(summary, cells, measure, reported, ("torch",))
    for name, summary in {
        "mnist": "MNIST: bits with the likelihood against binary cross entropy; one stage against two",
        "fashion": "Fashion-MNIST: the same, and ALIBI with the likelihood against soft labels",
    }.items()
}
