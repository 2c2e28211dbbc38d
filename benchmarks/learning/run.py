"""Experiments that train models on private labels, by name: resumable, with settings that were fixed before.

Rows are cached in the folder ``learning`` of the results; a second call measures those that are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import RESULTS, circumstances, options, write_json
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


def main(arguments: Sequence[str]) -> int:
    """Run an experiment, or fetch data; return 1 if something that was promised did not come out."""
    parser = options("learning", __doc__)
    parser.add_argument(
        "--experiment", choices=EXPERIMENTS, help="; ".join(f"{k}: {v.summary}" for k, v in EXPERIMENTS.items())
    )
    parser.add_argument("--seeds", type=int, help=f"how many (default: {SEEDS})")
    parser.add_argument("--data", type=Path, default=RESULTS / "data", help="folder of fetched data")
    parser.add_argument("--fetch", action="store_true", help="fetch the data of all experiments")
    given = parser.parse_args(arguments)
    if given.fetch:
        fetch(given.data)
    names = [given.experiment] if given.experiment else list(EXPERIMENTS) if given.smoke else []
    for name in [name for name in names if EXPERIMENTS[name].lacks]:
        if given.experiment:
            parser.error(f"{name} needs: pip install {' '.join(EXPERIMENTS[name].lacks)}")
        print(f"{name} is left out: it needs {', '.join(EXPERIMENTS[name].lacks)}")
        names.remove(name)
    if not given.experiment and not given.smoke and not given.fetch:
        parser.error("name an experiment, or --fetch")
    kept = [run_one(name, given.smoke, given.seeds, given.data, given.results) for name in names]
    return 0 if all(kept) else 1


def run_one(name: str, smoke: bool, seeds: int | None, data: Path, results: Path) -> bool:
    """Run one, report it, and return whether it kept its promises. A smoke run promises nothing."""
    setup = Setup(f"{name}-smoke" if smoke else name, settings_of(name, smoke=smoke), data)
    rows = run(EXPERIMENTS[name], setup, seeds or (SMOKE_SEEDS if smoke else SEEDS), results / "learning")
    print(f"{setup.name}: {EXPERIMENTS[name].summary}\n{circumstances()}")
    write_json(results, f"learning-{setup.name}", [{**asdict(row.cell), **row.values} for row in rows])
    return EXPERIMENTS[name].report(setup, rows) or smoke
