"""Reports of experiments whose cells are arms at several epsilons: tables of errors, and promises.

Means over seeds have intervals at 95 %. Arms are paired by seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from benchmarks.harness import print_table
from benchmarks.learning.experiment import NON_PRIVATE, Row, Setup
from optrand.base._validation import Floats

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval at 95 %."""

    value: float
    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean(values: ArrayLike) -> Estimate:
    """Estimate a mean, with its t interval.

    Examples
    --------
    >>> str(mean([1.0, 2.0, 3.0]))
    '2 [-0.484, 4.48]'
    """
    array = np.asarray(values, dtype=np.float64)
    centre = float(array.mean())
    if array.size < 2:
        return Estimate(centre)
    half = _quantile(array.size) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Estimate(centre, centre - half, centre + half)


def ratio(ours: ArrayLike, theirs: ArrayLike) -> Estimate:
    """Estimate the ratio of two means that are paired, with Fieller's interval.

    It holds the ratios `r` for which the mean of ``ours - r * theirs`` is within its t interval of zero.

    Examples
    --------
    >>> str(ratio([4.0, 5.1, 6.0], [8.0, 10.0, 12.0]))
    '0.503 [0.488, 0.521]'
    >>> str(ratio([1.0], [2.0]))
    '0.5 [-inf, inf]'
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    centre = float(a.mean() / b.mean())
    if a.size < 2:
        return Estimate(centre)
    (aa, ab), (_, bb) = np.cov(a, b) / a.size * _quantile(a.size) ** 2
    # r**2 (mean(b)**2 - bb) - 2 r (mean(a) mean(b) - ab) + mean(a)**2 - aa <= 0
    square, middle, rest = b.mean() ** 2 - bb, a.mean() * b.mean() - ab, a.mean() ** 2 - aa
    if square <= 0:
        return Estimate(centre)
    root = math.sqrt(max(middle**2 - square * rest, 0.0))
    return Estimate(centre, float((middle - root) / square), float((middle + root) / square))


def slope(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Estimate the slope of a line through means in log-log scales, with the t interval of the jackknife over seeds.

    Parameters
    ----------
    x : (m,) array
        Positive.
    y : (m, seeds) array
        Positive on average, with any one seed left out too.

    Examples
    --------
    >>> str(slope([1.0, 2.0, 4.0], [[3.0, 3.1, 2.9], [6.1, 6.0, 5.9], [12.0, 12.2, 11.8]]))
    '1 [0.97, 1.03]'
    """
    table = np.asarray(y, dtype=np.float64)
    count = table.shape[1]
    value = _line(x, table.mean(axis=1))
    if count < 2:
        return Estimate(value)
    without = np.array([_line(x, np.delete(table, seed, axis=1).mean(axis=1)) for seed in range(count)])
    spread = mean(count * value - (count - 1) * without)
    half = (spread.high - spread.low) / 2
    return Estimate(value, value - half, value + half)


def _line(x: ArrayLike, y: ArrayLike) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _quantile(size: int) -> float:
    return float(t.ppf((1 + LEVEL) / 2, size - 1))


class Errors:
    """Errors by epsilon, arm and model, in the order of the seeds, which are the same for all."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: dict[tuple[float, str], list[Mapping[str, float]]] = {}
        for row in sorted(rows, key=lambda one: one.cell.seed):
            self.rows.setdefault((row.cell.epsilon, row.cell.arm), []).append(row.values)

    @property
    def models(self) -> list[str]:
        """Names of the errors."""
        return list(self.rows[math.inf, NON_PRIVATE][0])

    def of(self, epsilon: float, arm: str, name: str) -> Floats:
        """Return the numbers of a name, one per seed."""
        return np.array([values[name] for values in self.rows[epsilon, arm]])

    def excess(self, epsilon: float, arm: str, model: str) -> Floats:
        """Return the errors above those of the model that learned from true labels, one per seed."""
        return self.of(epsilon, arm, model) - self.of(math.inf, NON_PRIVATE, model)


def report(setup: Setup, rows: Sequence[Row], error: str) -> bool:
    """Print the errors beside the paper's, and the promises. Return whether all promises are kept.

    Parameters
    ----------
    setup : Setup
        Among its settings may be a table `printed` of the paper's errors, by arm or by arm and epsilon, the arm
        `against` that all others are subtracted from, paired, and the list `promises`.
    rows : sequence of Row
        Their values are errors by the names of models, and "MODEL label loss" if that was measured.
    error : str
        Name of the error, with its unit.
    """
    errors, settings = Errors(rows), setup.settings
    printed, against = settings.get("printed", {}), settings.get("against", "")
    lines: list[dict[str, str]] = []
    for epsilon, arm in sorted(errors.rows, key=lambda one: (one[1] != NON_PRIVATE, one[0])):
        for model in errors.models:
            found = errors.of(epsilon, arm, model)
            line = {"arm": arm, "epsilon": f"{epsilon:g}", "model": model, "error": str(mean(found))}
            if arm != NON_PRIVATE:
                line["excess"] = str(mean(errors.excess(epsilon, arm, model)))
            if arm != against and (epsilon, against) in errors.rows:
                line[f"less {against}"] = str(mean(found - errors.of(epsilon, against, model)))
            if f"{model} label loss" in errors.rows[epsilon, arm][0]:
                line["label loss"] = f"{errors.of(epsilon, arm, f'{model} label loss').mean():.2f}"
            lines.append(line | {"printed": printed.get(f"{arm}, {epsilon:g}", printed.get(arm, ""))})
    seeds = len(errors.rows[math.inf, NON_PRIVATE])
    title = f"{error}: mean of {seeds} seeds, interval at 95 % (excess: above the model of true labels)"
    columns = [name for name in dict.fromkeys(name for line in reversed(lines) for name in line) if name != "printed"]
    print_table(
        title, [*columns, "printed"], [[line.get(name, "") for name in (*columns, "printed")] for line in lines]
    )
    return judge_promises(setup, errors)


def judge_promises(setup: Setup, errors: Errors) -> bool:
    """Print each promise beside the mean over seeds. Return whether all are kept.

    A promise bounds `ours` by `most` at each of the `epsilons`, by default all of the experiment's. It is about an
    "error", an "excess", or with `theirs` a "difference" or, by default, a ratio.
    """
    lines, kept = [], True
    for one in setup.settings.get("promises", ()):
        numbers = errors.excess if one["of"] == "excess" else errors.of
        for epsilon in one.get("epsilons", setup.settings.get("epsilons", ())):
            if (epsilon, one["ours"]) not in errors.rows:
                continue
            ours, words = numbers(epsilon, one["ours"], one["model"]), one["ours"]
            found = mean(ours)
            if "theirs" in one:
                theirs = numbers(epsilon, one["theirs"], one["model"])
                differs = one["of"] == "difference"
                found = mean(ours - theirs) if differs else ratio(ours, theirs)
                words += f" {'-' if differs else '/'} {one['theirs']}"
            # If the interval of the denominator contains zero, no ratio can be excluded.
            decided = math.isfinite(found.high) or len(ours) == 1
            held = found.value <= one["most"]
            kept &= held or not decided
            verdict = "kept" if held else "NOT KEPT"
            if not decided:
                verdict = f"undecided: {one['theirs']} loses no more than chance"
            elif held and found.high > one["most"]:
                verdict += ", the interval reaches beyond"
            lines.append([words, one["model"], one["of"], f"{epsilon:g}", f"{one['most']:g}", str(found), verdict])
    if lines:
        columns = ["compared", "model", "of", "epsilon", "at most", "of means, paired", "verdict"]
        print_table("Promises, written down before the run", columns, lines)
    return kept
