"""The benchmarks run, in small, and their tables hold answers that were proven. Nothing here looks at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import lp1, priors
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.lp1 import CLOSED_FORM, CLOSED_FORM_GAP, METHODS
from benchmarks.mesh import OURS, REQUIRED_GAP, judged, weeks_problem
from benchmarks.worker import OVER_LIMIT, Measurement, Worker
from optrand import (
    Randomizer,
    Solution,
    Stats,
    certify,
    classification,
    errors,
    rr_top_k,
    rr_with_prior,
    solve,
    tabulate,
)
from optrand.solvers import ColumnGeneration

ROOT = Path(__file__).resolve().parents[1]
WITH_ROWS = ("lp1", "mesh")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What each benchmark printed in small, and the folder with the rows of those that leave some."""
    results = tmp_path_factory.mktemp("results")
    printed = {}
    for name in BENCHMARKS:
        options = ("--results", str(results)) if name in WITH_ROWS else ()
        command = [sys.executable, "-m", "benchmarks", name, "--smoke", *options]
        printed[name] = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    return printed, results


def rows_of(name, results):
    return json.loads((results / f"{name}-smoke.json").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_benchmark_ends_well_and_prints_a_table(runs, name):
    run = runs[0][name]
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("┏") >= 1
    assert "Traceback" not in run.stderr


def test_lp1_proves_the_closed_form_and_certifies_every_program(runs):
    rows = rows_of("lp1", runs[1])
    assert {row["method"] for row in rows} == {CLOSED_FORM, *METHODS}
    for row in rows:
        assert row["value"] <= row["upper"] * (1 + REQUIRED_GAP), row
        if row["method"] == CLOSED_FORM:
            assert row["gap"] <= CLOSED_FORM_GAP, row
        elif "cvxpy" in row["method"]:
            # An interior-point answer may be refused for its residuals, but then the row must say so.
            assert row["gap"] is not None or row["refused"], row
        else:
            assert row["gap"] <= 1e-9, row
        if row["gap"] is not None:
            assert row["verdict"] in runs[0]["lp1"].stdout


def test_lp1_programs_agree_with_the_closed_form(runs):
    rows = rows_of("lp1", runs[1])
    optimum = {(row["prior"], row["k"], row["epsilon"]): row["value"] for row in rows if row["method"] == CLOSED_FORM}
    for row in rows:
        assert row["value"] == pytest.approx(optimum[row["prior"], row["k"], row["epsilon"]], rel=1e-6), row


def test_mesh_proves_its_own_answers_and_finer_grids_cost_no_more(runs):
    rows = [row for row in rows_of("mesh", runs[1]) if row["method"] in OURS]
    assert {row["method"] for row in rows} == set(OURS)
    assert all(row["exact_gap"] <= REQUIRED_GAP for row in rows)
    line = next(row for row in rows if row["mesh"] is None)
    assert all(line["lower"] <= row["upper"] for row in rows)
    assert "proven within 1e-06" in runs[0]["mesh"].stdout


# Half squared error of the optimal unbiased randomizers of the bundled counts at epsilon 1, as an independent prototype
# found them before this package was written.
@pytest.mark.parametrize(("mesh", "value"), [(52, 1348.3746), (1_664, 1277.9228), (None, 1277.8781)])
def test_the_known_values_of_the_weeks_prior_come_out_of_exact_mechanisms(mesh, value):
    solver = None if mesh is None else ColumnGeneration()
    proof = certify(tabulate(solve(weeks_problem(mesh), solver)))
    assert proof.findings == ()
    assert proof.gap <= REQUIRED_GAP
    assert proof.upper == pytest.approx(value, abs=6e-5)


def test_an_answer_that_is_wrong_is_not_called_proven():
    problem = weeks_problem(12, k=4)
    solution = ColumnGeneration()(problem)
    broken = Randomizer(problem.labels, problem.outputs.values[[0, -1]], np.tile([0.5, 0.5], (4, 1)), problem.epsilon)
    found = judged("some method", 12, Measurement((1.0,), Solution(problem, broken, solution.dual, solution.stats)))
    assert found["exact_gap"] > REQUIRED_GAP
    assert "not closed" in found["verdict"]
    assert "biased" in found["verdict"]
    missing = judged("some method", 12, Measurement((), None, "over the limit of 1 s"))
    assert missing["verdict"] == "over the limit of 1 s"
    assert "value" not in missing


def test_the_summary_tells_late_failed_and_wrong_answers_apart():
    problem = classification([0.5, 0.3, 0.2], 1.0)
    right = rr_with_prior(problem.prior, problem.epsilon)
    wrong = rr_top_k(problem.prior, 1, problem.epsilon)
    method = next(iter(METHODS))
    answers = [
        Measurement((1.0,), right),
        Measurement((3.0,), Solution(problem, wrong.randomizer, wrong.dual, Stats("lp", status="Optimal"))),
        Measurement((), None, f"{OVER_LIMIT} of 1 s"),
        Measurement((), None, "SolverFailed: no answer"),
    ]
    rows = [lp1.judged(method, "a prior", problem, answer) | {"ratio": answer.seconds} for answer in answers]
    found = dict(zip(lp1.SUMMARY, lp1.summary(method, rows), strict=True))
    assert (found["problems"], found["over limit"], found["failed"]) == ("4", "1", "1")
    assert (found["said optimal"], found["right to 1e-9"], found["right to 1e-6"]) == ("2", "1", "1")
    assert (found["median ratio"], found["largest ratio"]) == ("2", "3")
    assert [len(lp1.row(row)) for row in rows] == [len(lp1.COLUMNS)] * 4


def test_a_call_that_takes_too_long_is_killed_and_the_next_one_is_answered():
    worker = Worker()
    assert worker.call(abs, -3, limit=60) == (3, "")
    assert worker.call(time.sleep, 600, limit=0.2) == (None, "over the limit of 0.2 s")
    assert worker.call(abs, -4, limit=60) == (4, "")
    assert worker.call(priors.weeks, 99, limit=60)[1].startswith(f"{errors.InvalidInput.__name__}: k is 99")
    assert worker.call(sys.exit, 1, limit=60) == (None, "the process died (out of memory?)")
    assert worker.call(abs, -5, limit=60) == (5, "")
    worker.close()


@pytest.mark.parametrize("make", [priors.weeks, priors.dirichlet, priors.exponential, priors.spike])
@pytest.mark.parametrize("k", [2, 10, 53])
def test_priors_are_distributions_and_the_same_every_time(make, k):
    prior = make(k)
    assert prior.shape == (k,)
    assert (prior >= 0).all()
    assert prior.sum() == pytest.approx(1, abs=1e-12)
    assert np.array_equal(prior, make(k))


def test_the_names_of_benchmarks_are_listed_and_an_unknown_one_is_refused(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHMARKS)
    assert main(["speed"]) == 2
    assert "speed" in capsys.readouterr().err
