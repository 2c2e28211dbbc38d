"""Classification of images on private labels: bits, ALIBI and stages, each with the likelihood and as in the papers.

[Z25], Table 1 (bits with binary cross entropy), [MEMP21] (ALIBI with soft labels) and [G21], Table 4 (one stage against
two), with one small network for all. An error is the percentage of test images that are wrong.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from dataclasses import replace
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
    "LP-1ST": (Stages(1), "labels"),
    "LP-2ST": (Stages(2, temperature=0.5, least=1, top_k_filter=True), "labels"),
}
"""Plan and target of each arm."""

ROBUST: dict[str, dict[str, Any]] = {
    "LP-1ST": {"mixup": 4.0},
    "LP-2ST": {"mixup": 4.0, "warm_start": True},
}
"""How [G21] trains: it found mixing of 4 to 8 and temperatures below 1 good, and goes on with the model of stage 1."""

PRINTED: dict[str, dict[str, str]] = {
    "mnist": {
        "non-private": "1 [Z25], 0.67 [G21]",
        "bits, binary cross entropy, 0.5": "12.1 [Z25]",
        "bits, binary cross entropy, 1": "3.8 [Z25]",
        "one stage, noisy labels, 0.5": "25.1 [Z25]",
        "one stage, noisy labels, 1": "4.7 [Z25]",
        "two stages, noisy labels, 0.5": "18.6 [Z25]",
        "two stages, noisy labels, 1": "8.2 [Z25]",
        "LP-1ST, 1": "4.66 [G21]",
        "LP-1ST, 2": "1.84 [G21]",
        "LP-2ST, 1": "4.18 [G21]",
        "LP-2ST, 2": "1.22 [G21]",
    },
    "fashion": {
        "non-private": "5.72 [G21]",
        "bits, binary cross entropy, 0.5": "24.3 [Z25]",
        "bits, binary cross entropy, 1": "16.6 [Z25]",
        "ALIBI, soft labels, 0.5": "45.7 [Z25]",
        "ALIBI, soft labels, 1": "20.2 [Z25]",
        "LP-1ST, 1": "19.22 [G21]",
        "LP-1ST, 2": "9.82 [G21]",
        "LP-2ST, 1": "16.74 [G21]",
        "LP-2ST, 2": "8.76 [G21]",
    },
}
"""Errors of [Z25], Table 1 and [G21], Table 4, by arm and epsilon: of larger networks, trained longer.

[Z25] says that each method has its own best parameters, and ignores what choosing them cost; its 99 % without privacy
are MNIST's.
"""

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
    options = {**settings["network"], **ROBUST.get(cell.arm, {})}
    model: Any = TorchClassifier(network(), **options, seed=cell.seed)
    if cell.arm == NON_PRIVATE:
        model.fit(X, y)
    else:
        plan, target = ARMS[cell.arm]
        labels = PrivateLabels(y, cell.epsilon, CLASSES, source=SeededEntropy(cell.seed))
        learner = LabelDPClassifier(model, cell.epsilon, plan, target, random_state=cell.seed)
        model = learner.fit(X, labels)
    return {"network": 100 * float((model.predict(test) != truth).mean())}


def reported(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """See :func:`benchmarks.learning.reports.report`."""
    # What papers print is no setting: rows that were measured stay valid.
    setup = replace(setup, settings={**setup.settings, "printed": PRINTED.get(setup.settings["data"], {})})
    return report(setup, rows, results, models=["network"], error="test error (percent)")


EXPERIMENTS = {
    name: Experiment(summary, cells, measure, reported, ("torch",))
    for name, summary in {
        "mnist": "MNIST: bits with the likelihood against binary cross entropy; one stage against two",
        "fashion": "Fashion-MNIST: the same, and ALIBI with the likelihood against soft labels",
        "fashion-longer": "Fashion-MNIST with twice the epochs, after 4 had missed a promise",
        "table4-mnist": "[G21], Table 4, MNIST: one stage against two, as in the paper and by the likelihood",
        "table4-fashion": "[G21], Table 4, Fashion-MNIST: one stage against two",
    }.items()
}
