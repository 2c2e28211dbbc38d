"""Experiments that train models on private labels, by name: resumable, with settings that were fixed before.

Rows are cached in the folder ``learning`` of the results. A second call measures those that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Benchmark
from benchmarks.learning.baselines import EXPERIMENTS as BASELINES
from benchmarks.learning.circle import EXPERIMENTS as CIRCLES
from benchmarks.learning.convex import EXPERIMENTS as CONVEX
from benchmarks.learning.experiment import Experiment, Setup, run, settings_of
from benchmarks.learning.fetch import fetch
from benchmarks.learning.images import EXPERIMENTS as IMAGES
from benchmarks.learning.regression import EXPERIMENTS as REGRESSION

EXPERIMENTS: dict[str, Experiment] = REGRESSION | IMAGES | CIRCLES | CONVEX | BASELINES
"""All experiments by name. A new one is a record here, and a table of its name in the settings."""

SEEDS, SMOKE_SEEDS = 10, 1


def measure(given: Any) -> Iterator[dict[str, Any]]:
    """Fetch data, and run experiments. One that keeps its promises is right. A smoke run promises nothing."""
    if given.fetch:
        yield from ({"file": str(path)} for path in fetch(given.data))
    elif not given.experiment and not given.smoke:
        raise SystemExit("name an experiment, or --fetch")
    for name in [given.experiment] if given.experiment else EXPERIMENTS if given.smoke else ():
        experiment = EXPERIMENTS[name]
        if experiment.lacks:
            words = f"{name} needs: pip install {' '.join(experiment.lacks)}"
            if given.experiment:
                raise SystemExit(words)
            print(f"left out: {words}")
            continue
        setup = Setup(f"{name}-smoke" if given.smoke else name, settings_of(name, smoke=given.smoke), given.data)
        seeds = given.seeds or (SMOKE_SEEDS if given.smoke else SEEDS)
        rows = run(experiment, setup, seeds, given.results / "learning")
        print(f"{setup.name}: {experiment.summary}")
        kept = experiment.report(setup, rows)
        yield {"experiment": name, "verdict": "kept" if kept else "NOT KEPT", "right": kept or given.smoke}
        yield from ({"arm of": name, **asdict(row.cell), **row.values} for row in rows)


def arguments(parser: Any) -> None:
    """Add the names, the number of seeds, and the data."""
    summaries = "; ".join(f"{name}: {experiment.summary}" for name, experiment in EXPERIMENTS.items())
    parser.add_argument("--experiment", choices=EXPERIMENTS, help=summaries)
    parser.add_argument("--seeds", type=int, help=f"how many (default: {SEEDS})")
    parser.add_argument("--data", type=Path, default=RESULTS / "data", help="folder of fetched data")
    parser.add_argument("--fetch", action="store_true", help="fetch the data of all experiments")


TABLES = {"Files": "file", "Promises": "experiment verdict"}
main = Benchmark("learning", __doc__, measure, TABLES, arguments=arguments, one_core=False).run
