"""An experiment: cells that are measured one by one, and the report of all.

Measured cells are cached on disk, so a run that was broken off continues with the first cell that is missing.
"""

from __future__ import annotations

import importlib.util
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib

from optrand.learning import LabelDPClassifier, Plan, PrivateLabels
from optrand.sampling._entropy import SeededEntropy

SETTINGS = Path(__file__).parent / "settings.toml"
"""The settings of every experiment, written down before it is run."""

NON_PRIVATE = "non-private"
"""Arm that learns from true labels."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One measurement: a seed of split, noise and models, an epsilon (``math.inf`` without privacy), and an arm.

    Arms with the same seed are paired.
    """

    seed: int
    epsilon: float
    arm: str


@dataclass(frozen=True)
class Row:
    """The result of a cell: numbers by name, such as the test error of each model."""

    cell: Cell
    values: Mapping[str, float]


@dataclass(frozen=True)
class Setup:
    """The name of an experiment, its table in the settings, and the folder of fetched data."""

    name: str
    settings: Settings
    data: Path


def arms(setup: Setup, seeds: int) -> list[Cell]:
    """List the cells: without privacy once per seed, then all arms, those under `only` at the epsilons named there."""
    settings = setup.settings
    found = []
    for seed in range(seeds):
        found.append(Cell(seed, math.inf, NON_PRIVATE))
        for arm in settings["arms"]:
            epsilons = settings.get("only", {}).get(arm, settings["epsilons"])
            found.extend(Cell(seed, epsilon, arm) for epsilon in epsilons)
    return found


@dataclass(frozen=True)
class Experiment:
    """How cells are measured, and the report of all.

    ``measure(setup, cell)`` returns numbers by name. ``report(setup, rows)`` prints tables, and returns whether the
    experiment keeps its promises. Without the packages that it `needs` it is left out if all experiments run.
    """

    summary: str
    measure: Callable[[Setup, Cell], Mapping[str, float]]
    report: Callable[[Setup, Sequence[Row]], bool]
    needs: tuple[str, ...] = ()
    cells: Callable[[Setup, int], Sequence[Cell]] = arms

    @property
    def lacks(self) -> list[str]:
        """Packages that it needs and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def settings_of(experiment: str, *, smoke: bool) -> Settings:
    """Read the settings of an experiment, or those of a smoke run in their place.

    Examples
    --------
    >>> settings_of("weeks", smoke=True)["epsilons"]
    [1.0]
    """
    tables = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    table, small = dict[str, Any](), dict[str, Any]()
    name: str | None = experiment
    while name:
        own = tables[name]
        name = own.pop("like", None)
        small = own.pop("smoke", {}) | small
        table = own | table
    return table | small if smoke else table


def fit_classifier(cell: Cell, model: Any, X: Any, y: Any, k: int, plan: Plan | None, target: str) -> Any:
    """Fit a model to the labels ``0 ... k-1`` of a cell: to true ones, or to releases by a plan."""
    if cell.arm == NON_PRIVATE:
        return model.fit(X, y)
    labels = PrivateLabels(y, cell.epsilon, range(k), source=SeededEntropy(cell.seed))
    return LabelDPClassifier(model, cell.epsilon, plan, target, random_state=cell.seed).fit(X, labels)


def run(experiment: Experiment, setup: Setup, seeds: int, cache: Path) -> list[Row]:
    """Measure the cells that are not in the cache. Return the rows of all cells, in order.

    A cell is measured again if its settings differ, except those that the paper prints, or if `measure` has changed.
    """
    measure = joblib.Memory(cache, verbose=0).cache(experiment.measure)
    used = {name: value for name, value in setup.settings.items() if name != "printed"}
    wanted, rows = experiment.cells(setup, seeds), list[Row]()
    for place, cell in enumerate(wanted, 1):
        rows.append(Row(cell, measure(replace(setup, settings=used), cell)))
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in rows[-1].values.items())
        print(f"{place}/{len(wanted)} seed {cell.seed}, epsilon {cell.epsilon:g}, {cell.arm}: {numbers}", flush=True)
    return rows
