"""Regression on private labels: two stages against one prior, and the experiments of [B23], Figures 4b, 5a, 5b and G.3.

An error is the mean loss on test rows; an excess is what it is above that of the model of the kind that was
trained on true labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from benchmarks.learning import tables
from benchmarks.learning.experiment import Cell, Experiment, Row, Setup
from benchmarks.learning.poisson import PoissonLinear, poisson_loss
from benchmarks.learning.reports import NON_PRIVATE, report
from optrand import Interval, feasible_output_set, solve, unbiased_regression
from optrand.base.validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase
from optrand.learning import LabelDPRegressor, OnePrior, Plan, PrivateLabels, PublicClusters, RowPriors, TwoStages
from optrand.learning.training import Training
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import split_budget

__all__ = ["EXPERIMENTS", "OnMesh"]

MODELS: dict[str, Callable[..., Any]] = {
    "ridge": Ridge,
    "boosting": HistGradientBoostingRegressor,
    "poisson": PoissonLinear,
}
LOSSES: dict[str, tuple[str, Callable[[Any, Any], float]]] = {
    "squared": ("test error (mean squared)", lambda guesses, y: float(((guesses - y) ** 2).mean())),
    "poisson": ("test error (Poisson log loss)", poisson_loss),
}


def cells(setup: Setup, seeds: int) -> list[Cell]:
    """Without privacy once a seed, then all arms; those under `only` at the epsilons named there."""
    settings = setup.settings
    found = []
    for seed in range(seeds):
        found.append(Cell(seed, math.inf, NON_PRIVATE))
        found.extend(
            Cell(seed, epsilon, arm)
            for epsilon, arm in product(settings["epsilons"], settings["arms"])
            if epsilon in settings.get("only", {}).get(arm, settings["epsilons"])
        )
    return found


def models(setup: Setup) -> list[str]:
    """Names of the models that have settings."""
    return [name for name in MODELS if name in setup.settings]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Test error of each model, and the noisy label loss: half the mean squared distance of noisy from true labels."""
    found: dict[str, float] = {}
    given = tables.of(setup, cell.seed)
    error = LOSSES[setup.settings.get("loss", "squared")][1]
    for name in models(setup):
        X, test = given.codes if name == "boosting" else given.indicators
        model = MODELS[name](**setup.settings[name])
        if cell.arm == NON_PRIVATE:
            model.fit(X, given.y[0])
        else:
            labels = PrivateLabels(given.y[0], cell.epsilon, given.labels, source=SeededEntropy(cell.seed))
            model, noisy = trained(setup, cell, model, X, labels)
            found[f"{name} label loss"] = float(((noisy - given.y[0]) ** 2).mean() / 2)
        guesses = np.clip(model.predict(test), given.labels[0], given.labels[-1])
        found[name] = error(guesses, given.y[1])
    return found


def trained(setup: Setup, cell: Cell, model: Any, X: Floats, labels: PrivateLabels) -> tuple[Any, Floats]:
    """Model of an arm, and the noisy labels that it learned from."""
    plan = plan_of(setup, cell)
    if plan is None:
        noisy = labels.release(slice(None), additive(cell.arm, labels.domain.array, cell.epsilon)).values
        return model.fit(X, noisy), np.asarray(noisy, dtype=np.float64)
    penalty = {"bins": 0.0, "bins in clusters": 0.0}.get(cell.arm)
    learner = LabelDPRegressor(model, cell.epsilon, plan, penalty, random_state=cell.seed)
    learner.fit(X, labels)
    values = np.empty(len(labels))
    for release in learner.releases_:
        values[release.rows] = release.values
    return learner, values


def plan_of(setup: Setup, cell: Cell) -> Plan | None:
    """Plan of an arm; None for additive noise."""
    if cell.arm == "two stages":
        return TwoStages()
    if cell.arm == "per-row priors":
        return RowPriors()
    if cell.arm in ("one prior", "bins", "the line"):
        return OnePrior()
    if cell.arm == "bins in clusters":
        return PublicClusters(partial(clusters, setup, cell.seed))
    if cell.arm.startswith("mesh "):
        return OnMesh(int(cell.arm.removeprefix("mesh ")))
    return None


@lru_cache(maxsize=1)
def centres(folder: Path, data: str, sizes: tuple[int, int], seed: int, count: int) -> Any:
    """Clusters of the training rows' indicators, whose features are public."""
    rows = tables.table(data, folder, *sizes, seed).indicators[0]
    return MiniBatchKMeans(count, random_state=seed, n_init=3).fit_predict(rows)


def clusters(setup: Setup, seed: int, X: Any) -> Any:  # noqa: ARG001
    """Id of each training row, whatever features the model has."""
    settings = setup.settings
    sizes = (settings["train"], settings["test"])
    return centres(setup.data, settings["data"], sizes, seed, settings["clusters"])


def additive(arm: str, labels: NDArray[Any], epsilon: float) -> Any:
    """Noise on the lattice of the labels ([B23], Appendix F), clipped to their range or not."""
    kind = {"Laplace": DiscreteLaplace, "staircase": DiscreteStaircase}[arm.removeprefix("clipped ")]
    ends = Interval(float(labels[0]), float(labels[-1]))
    return kind(labels, epsilon, clip=ends if arm.startswith("clipped") else None)


@dataclass(frozen=True)
class OnMesh(Plan):
    """One prior, and an unbiased randomizer on a mesh ([B23], Algorithm 2)."""

    mesh: int

    def train(self, training: Training) -> Any:
        """Train as :class:`~optrand.learning.OnePrior` does, on a grid."""
        rows = np.arange(training.rows)
        split = split_budget(training.epsilon, training.k, training.rows)
        prior = training.prior(rows, split.prior).probabilities
        outputs = feasible_output_set(training.numbers, split.labels, self.mesh)
        problem = unbiased_regression(training.numbers, prior, split.labels, outputs=outputs)
        return training.learn_numbers([[training.release(rows, solve(problem))]])


def reported(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """Tables and picture of the errors."""
    error = LOSSES[setup.settings.get("loss", "squared")][0]
    return report(setup, rows, results, models=models(setup), error=error)


def experiment(summary: str) -> Experiment:
    """Experiment of these cells."""
    return Experiment(summary, cells, measure, reported)


EXPERIMENTS = {
    "weeks": experiment("weeks worked: two stages with a price on bias against one prior without; bins in clusters"),
    "rows": experiment("weeks worked, the bundled table: one prior, two stages, a prior for each row"),
    "figure5a": experiment("[B23], Figure 5a: every randomizer, weeks worked"),
    "figure4b": experiment("[B23], Figure 4b: every randomizer, on what customers spend instead of Criteo's revenue"),
    "figure5b": experiment("[B23], Figure 5b: every randomizer, Poisson loss of counts, visits to a physician"),
    "meshes": experiment("[B23], Appendix G.3: test loss on finer and finer meshes, weeks worked"),
}
