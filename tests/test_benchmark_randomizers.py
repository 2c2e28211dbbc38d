"""The comparison of all randomizers: each beside the certified optimum of its class, and a liar is caught."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import priors, randomizers
from benchmarks.randomizers import Entry, entries, optima, records
from optrand import unbiased_regression
from optrand.baselines import Moments

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def problem():
    return unbiased_regression(np.arange(6.0), priors.weeks(6), 1.0)


def test_every_randomizer_is_there_with_and_without_clipping(problem):
    found = {entry.name: entry for entry in entries(problem, optima(problem))}
    additive = ("Laplace", "staircase", "discrete Laplace", "discrete staircase")
    named = {"optimal unbiased", "RR-on-Bins", "debiased RR", "randomized response", "unary bits, read off"}
    assert set(found) == named | set(additive) | {f"{name}, clipped" for name in additive}
    unbiased = {name for name, entry in found.items() if entry.moments.bias < 1e-9}
    assert unbiased == {"optimal unbiased", "debiased RR", "unary bits, read off", *additive}


def test_the_optima_are_their_own_bounds_and_no_one_is_below(problem):
    best = optima(problem)
    for entry in entries(problem, best):
        loss, bound = entry.moments.loss(problem.prior), best.bound(entry, 5.0)
        assert loss >= bound * (1 - 1e-9)
        if entry.name in best.mechanisms:
            assert loss == pytest.approx(bound, rel=1e-9)


def test_moments_that_are_too_good_are_called_out(problem, monkeypatch):
    best = optima(problem)
    honest = next(entries(problem, best))
    lie = Entry("liar", honest.randomizer, Moments(np.zeros(6), 0.9 * honest.moments.variances))
    monkeypatch.setattr(randomizers, "entries", lambda *_: [honest, lie])
    rows = list(records("weeks", problem.prior, problem.labels, 10, [1.0]))
    assert [row["holds"] for row in rows] == [True, False]
    assert "BELOW" in rows[1]["verdict"]


def test_the_number_read_off_unary_bits_has_the_variance_of_its_best_weights(problem):
    """Debiased bits have independent noise of one variance: a number is the sum of them times the centred labels."""
    bits = next(entry for entry in entries(problem, optima(problem)) if entry.name.startswith("unary"))
    drawn = bits.randomizer.sample(np.full(40_000, 2))
    read = bits.randomizer.debiased(drawn) @ (problem.labels - problem.labels.mean()) + problem.labels.mean()
    assert read.mean() == pytest.approx(2.0, abs=5 * np.sqrt(bits.moments.variances[0] / 40_000))
    assert read.var() == pytest.approx(bits.moments.variances[0], rel=0.05)


def test_a_small_run_leaves_rows_and_a_picture(tmp_path):
    """In a process of its own, for it keeps itself to one core."""
    command = [sys.executable, "-m", "benchmarks", "randomizers", "--smoke", "--results", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    rows = json.loads((tmp_path / "randomizers-smoke.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 2 * 2 * 13
    assert all(row["holds"] and row["draws"] > 0 for row in rows)
    assert (tmp_path / "randomizers-smoke.png").read_bytes().startswith(b"\x89PNG")
    assert "52 rows, 0 below" in run.stdout
