"""Reports of experiments whose cells are arms at several epsilons: tables of errors, promises, and a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import print_table
from benchmarks.learning.experiment import Row, Setup
from benchmarks.learning.intervals import Estimate, mean, ratio
from optrand.base.validation import Floats

__all__ = ["NON_PRIVATE", "Errors", "report"]

NON_PRIVATE = "non-private"
"""Arm that learns from true labels."""

SMALLEST_SEEDS = 2
"""Seeds that an interval needs."""


class Errors:
    """Errors by epsilon, arm and model, in the order of the seeds.

    Parameters
    ----------
    rows : sequence of Row
        Those of one arm and epsilon have the same seeds as all others.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: dict[tuple[float, str], list[Mapping[str, float]]] = {}
        for row in sorted(rows, key=lambda one: one.cell.seed):
            self.rows.setdefault((row.cell.epsilon, row.cell.arm), []).append(row.values)

    @property
    def arms(self) -> list[tuple[float, str]]:
        """Epsilons and arms with privacy, by epsilon."""
        return sorted((one for one in self.rows if one[1] != NON_PRIVATE), key=lambda one: one[0])

    def of(self, epsilon: float, arm: str, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Numbers of a name, one a seed."""
        return np.array([values[name] for values in self.rows[epsilon, arm]])

    def excess(self, epsilon: float, arm: str, model: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Errors above the model that learned from true labels, one a seed."""
        return self.of(epsilon, arm, model) - self.of(math.inf, NON_PRIVATE, model)


def report(setup: Setup, rows: Sequence[Row], results: Path, *, models: Sequence[str], error: str) -> bool:
    """Print the errors beside the paper's, and the promises; leave a picture; whether all promises are kept.

    Parameters
    ----------
    setup : Setup
        With the table `printed` of the paper's errors by arm, or by arm and epsilon, and the list `promises`, if it has
        them.
    rows : sequence of Row
    results : Path
        Folder of the picture.
    models : sequence of str
        Names of the errors.
    error : str
        What an error is.
    """
    errors = Errors(rows)
    printed = setup.settings.get("printed", {})
    seeds = len(errors.rows[math.inf, NON_PRIVATE])
    columns = ["arm", "epsilon", *(f"{model}{part}" for model in models for part in ("", ", excess"))]
    lines = [
        [
            NON_PRIVATE,
            "none",
            *(part for model in models for part in (str(mean(errors.of(math.inf, NON_PRIVATE, model))), "")),
        ]
    ]
    for epsilon, arm in errors.arms:
        numbers = [
            str(mean(part))
            for model in models
            for part in (errors.of(epsilon, arm, model), errors.excess(epsilon, arm, model))
        ]
        losses = errors.rows[epsilon, arm][0]
        loss = f"{models[0]} label loss"
        label_loss = f"{errors.of(epsilon, arm, loss).mean():.2f}" if loss in losses else ""
        theirs = printed.get(f"{arm}, {epsilon:g}", printed.get(arm, ""))
        lines.append([arm, f"{epsilon:g}", *numbers, label_loss, theirs])
    lines[0] += ["", printed.get(NON_PRIVATE, "")]
    title = f"{error}: mean of {seeds} seeds, interval at 95 %; excess: above the model of true labels"
    print_table(title, [*columns, "label loss", "the paper prints"], lines)
    kept = promises(setup, errors)
    picture(setup, errors, results, models=models, error=error)
    return kept


def promises(setup: Setup, errors: Errors) -> bool:
    """Print what was promised beside what came out; whether all is kept."""
    lines, kept = [], True
    for one in setup.settings.get("promises", ()):
        measure: Callable[..., Any] = errors.excess if one["of"] == "excess" else errors.of
        for epsilon in one["epsilons"]:
            if (epsilon, one["ours"]) not in errors.rows:
                continue
            ours = measure(epsilon, one["ours"], one["model"])
            found = (
                mean(ours)
                if "theirs" not in one
                else compared(one, ours, measure(epsilon, one["theirs"], one["model"]))
            )
            # A ratio to what may be nothing is any number.
            told = math.isfinite(found.high) or len(ours) == 1
            held = found.value <= one["most"]
            kept &= held or not told
            verdict = "kept" if held else "NOT KEPT"
            if not told:
                verdict = f"not to be told: {one['theirs']} loses no more than chance"
            elif held and found.high > one["most"]:
                verdict += ", the interval reaches beyond"
            sign = "-" if one["of"] == "difference" else "/"
            words = f"{one['ours']} {sign} {one['theirs']}" if "theirs" in one else one["ours"]
            lines.append([words, one["model"], one["of"], f"{epsilon:g}", f"{one['most']:g}", str(found), verdict])
    if lines:
        columns = ["compared", "model", "of", "epsilon", "at most", "of means, paired", "verdict"]
        print_table("Promises, written down before the run", columns, lines)
    return kept


def compared(promise: Mapping[str, Any], ours: Floats, theirs: Floats) -> Estimate:
    """Difference or ratio of means, paired by seed."""
    return mean(ours - theirs) if promise["of"] == "difference" else ratio(ours, theirs)


def picture(setup: Setup, errors: Errors, results: Path, *, models: Sequence[str], error: str) -> None:
    """Error of each arm against epsilon, a panel a model."""
    from benchmarks.pictures import FAINT, add_grid, drawing, log_x, log_y, looks

    arms = list(dict.fromkeys(arm for _, arm in errors.arms))
    epsilons = sorted({epsilon for epsilon, _ in errors.arms})
    name = f"learning-{setup.name}"
    with drawing(results, name, (4.2 * len(models), 3.6)) as figure:
        for axes, model in zip(np.atleast_1d(figure.subplots(1, len(models))), models, strict=True):
            for look, arm in zip(looks(arms, "arms"), arms, strict=True):
                here = [epsilon for epsilon in epsilons if (epsilon, arm) in errors.rows]
                means = [float(errors.of(epsilon, arm, model).mean()) for epsilon in here]
                spreads = [float(errors.of(epsilon, arm, model).std()) for epsilon in here]
                axes.errorbar(here, means, yerr=spreads, label=arm, capsize=2, **look)
            axes.axhline(float(errors.of(math.inf, NON_PRIVATE, model).mean()), label=NON_PRIVATE, **FAINT)
            log_x(axes, epsilons)
            if axes.dataLim.ymin > 0:
                log_y(axes)
            axes.set(xlabel="ε", ylabel=error)
            add_grid(axes)
            axes.set_title(model, fontsize=9)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
