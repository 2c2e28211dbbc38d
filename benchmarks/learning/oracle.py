"""Groups that know the truth: what a randomizer for each group of like rows can save at most, with no histogram to pay.

Groups are quantiles of a boosting model's predictions, each with the exact prior of its rows; nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.harness import print_table
from benchmarks.learning import tables
from benchmarks.learning.experiment import Cell, Experiment, Row, Setup
from optrand import regression, solve, solve_many
from optrand.base.validation import Floats
from optrand.learning.plans import prediction_groups

__all__ = ["EXPERIMENTS", "losses"]


def losses(
    y: NDArray[Any], groups: NDArray[np.intp], labels: Floats, epsilon: float, penalty: float
) -> dict[str, float]:
    """Value of the optimum for the prior of all rows, and of those for the groups on average by size.

    Examples
    --------
    >>> y, groups = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 0, 1, 1, 1])
    >>> {name: round(value, 3) for name, value in losses(y, groups, np.arange(3.0), 1.0, 1.0).items()}
    {'one': 0.561, 'groups': 0.075}
    """
    codes = np.searchsorted(labels, y)
    tables = [np.bincount(codes[groups == group], minlength=labels.size) for group in range(groups.max() + 1)]
    one = solve(regression(labels, sum(tables) / y.size, epsilon, bias_penalty=penalty)).value
    found = solve_many(regression(labels, table / table.sum(), epsilon, bias_penalty=penalty) for table in tables)
    values = [solution.value for solution in found]
    return {"one": one, "groups": float(np.average(values, weights=[table.sum() for table in tables]))}


@lru_cache(maxsize=1)
def predicted(data: str, folder: Path, sizes: tuple[int, int], seed: int, groups: int) -> tuple[Any, Any, Any]:
    """Test labels, their groups and all labels."""
    given = tables.table(data, folder, *sizes, seed)
    model = HistGradientBoostingRegressor(max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed)
    guesses = model.fit(given.codes[0], given.y[0]).predict(given.codes[1])
    return given.y[1], prediction_groups(guesses, groups, 1).index, np.asarray(given.labels, dtype=np.float64)


def cells(setup: Setup, seeds: int) -> list[Cell]:  # noqa: ARG001
    """Every epsilon and price of bias; one seed, as the split alone is at random."""
    return [Cell(0, *one) for one in product(setup.settings["epsilons"], setup.settings["arms"])]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Values with one prior and with groups."""
    settings = setup.settings
    sizes = (settings["train"], settings["test"])
    y, groups, labels = predicted(settings["data"], setup.data, sizes, cell.seed, settings["groups"])
    return losses(y, groups, labels, cell.epsilon, float(cell.arm))


def report(setup: Setup, rows: Sequence[Row], results: Path) -> bool:
    """Print the table, draw, and return whether groups bring the promised loss at epsilon 1 and penalty 100."""
    from benchmarks.pictures import drawing, light, log_log, looks

    arms = list(dict.fromkeys(row.cell.arm for row in rows))
    lines = [
        [row.cell.arm, f"{row.cell.epsilon:g}", *(f"{row.values[name]:.2f}" for name in ("one", "groups"))]
        for row in rows
    ]
    print_table("Half squared error and price of bias", ["price of bias", "epsilon", "one prior", "groups"], lines)
    with drawing(results, f"learning-{setup.name}", (4.6, 3.4)) as figure:
        axes = figure.subplots()
        for look, arm in zip(looks(arms, "prices"), arms, strict=True):
            mine = [row for row in rows if row.cell.arm == arm]
            ratios = [row.values["groups"] / row.values["one"] for row in mine]
            axes.plot([row.cell.epsilon for row in mine], ratios, label=f"price {arm}", **look)
        log_log(axes, "ε", "groups / one prior", setup.settings["epsilons"])
        light(axes)
        axes.legend(fontsize=7)
    most = setup.settings.get("most", math.inf)
    found = [row.values["groups"] for row in rows if row.cell.epsilon == 1.0 and row.cell.arm == "100"]
    print(f"promised at epsilon 1 and price 100: at most {most:g}; found {found[0]:.2f}")
    return bool(found[0] <= most)


EXPERIMENTS = {"oracle": Experiment("weeks worked: groups that know the truth", cells, measure, report)}
