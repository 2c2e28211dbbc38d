"""Every benchmark runs in small: it ends well, prints a table, and its rows are right."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a benchmark in small, once, in a process of its own, for it keeps itself to one core."""
    results = tmp_path_factory.mktemp("results")

    @cache
    def run_small(name, *options):
        command = [sys.executable, "-m", "benchmarks", name, "--smoke", *options, "--results", str(results)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, results

    return run_small


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_ends_well_in_small(name, run):
    printed, results = run(name)
    assert "┏" in printed
    rows = json.loads((results / f"{name}-smoke.json").read_text(encoding="utf-8"))["rows"]
    assert all(row.get("right", True) for row in rows)


@pytest.mark.parametrize("option", ["--edges", "--tails", "--thin"])
def test_the_sweeps_of_exactness_end_well_in_small(option, run):
    assert "all" in run("exactness", option)[0]


def test_learning_experiments_in_small_are_kept_and_not_measured_again(run):
    _, results = run("learning")
    kept = {path: path.stat().st_mtime_ns for path in (results / "learning").rglob("output.pkl")}
    command = [sys.executable, "-m", "benchmarks", "learning", "--smoke", "--results", str(results)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=900)
    assert kept
    assert kept == {path: path.stat().st_mtime_ns for path in (results / "learning").rglob("output.pkl")}
