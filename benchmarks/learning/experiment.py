"""An experiment: cells that can be measured one by one, and what is made of the rows that they leave."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["SETTINGS", "Cell", "Experiment", "Row", "Settings", "Setup", "settings_of"]

SETTINGS = Path(__file__).parent / "settings.toml"
"""What every experiment does, written down before it is run."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One thing that is measured.

    Attributes
    ----------
    seed : int
        Of the split into training and test rows, the noise and the models. Arms with the same seed are paired.
    epsilon : float
        In nats; ``math.inf`` without privacy.
    arm : str
        What is compared.
    """

    seed: int
    epsilon: float
    arm: str

    @property
    def key(self) -> dict[str, Any]:
        """Fields, as they are written in a row."""
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """What came out of a cell: numbers by name, such as the test error of each model."""

    cell: Cell
    values: Mapping[str, float]


@dataclass(frozen=True)
class Setup:
    """What an experiment is run with.

    Attributes
    ----------
    name : str
        Of the experiment.
    settings : mapping
        The table of the experiment in the settings.
    data : Path
        Folder of fetched data.
    """

    name: str
    settings: Settings
    data: Path


@dataclass(frozen=True)
class Experiment:
    """Cells, how one is measured, and the report of all.

    Attributes
    ----------
    summary : str
        A line for the list of experiments.
    cells : callable
        ``cells(setup, seeds)``: all cells, those of one seed together.
    measure : callable
        ``measure(setup, cell)``: numbers by name.
    report : callable
        ``report(setup, rows, results)``: prints tables, leaves a picture in the folder `results`, and returns whether
        all that the experiment promises came out.
    needs : tuple of str
        Packages without which it is left out where all experiments run.
    """

    summary: str
    cells: Callable[[Setup, int], Sequence[Cell]]
    measure: Callable[[Setup, Cell], Mapping[str, float]]
    report: Callable[[Setup, Sequence[Row], Path], bool]
    needs: tuple[str, ...] = ()

    @property
    def lacks(self) -> list[str]:
        """Packages that it needs and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def settings_of(experiment: str, *, smoke: bool, path: Path = SETTINGS) -> Settings:
    """Merge the settings of an experiment with those of a smoke run, which take precedence.

    Examples
    --------
    >>> settings_of("weeks", smoke=True)["epsilons"]
    [1.0]
    """
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))[experiment]
    small = table.pop("smoke", {})
    return {**table, **small} if smoke else table
