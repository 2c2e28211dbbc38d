"""The benchmarks run, in small, and their tables hold answers that were proven. Nothing here looks at a time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import (
    closed_form,
    edges,
    exactness,
    frontier,
    hard_problems,
    histograms,
    labels,
    libqif,
    lp1,
    mesh,
    priors,
    readme,
    release,
    speed,
    structure,
    thin_tails,
    vectors,
)
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.clock import Reading, clocked, peak_memory
from benchmarks.harness import print_table
from benchmarks.lp1 import CLOSED_FORM, CLOSED_FORM_GAP, METHODS
from benchmarks.mesh import OURS, REQUIRED_GAP, judged, weeks_problem
from benchmarks.speed import PRIORS, Task, posed
from benchmarks.worker import OVER_LIMIT, Measurement, Worker
from optrand import (
    Randomizer,
    Solution,
    certify,
    classification,
    debiased_rr,
    errors,
    rr_top_k,
    rr_with_prior,
    solve,
    tabulate,
)
from optrand.model.arcs import IntegerArcs
from optrand.model.solution import Stats
from optrand.solvers import ColumnGeneration, LinearProgram
from optrand.studies import sweep

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_ROWS = ("sampling",)
ELSEWHERE = ("figures", "mutations")
"""Benchmarks that other files run in small."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run a benchmark in small, once, and leave its rows in a folder, if it has any."""
    results = tmp_path_factory.mktemp("results")

    @cache
    def run(name):
        options = () if name in WITHOUT_ROWS else ("--results", str(results))
        command = [sys.executable, "-m", "benchmarks", name, "--smoke", *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600), results

    return run


def rows_of(name, runs):
    run, results = runs(name)
    assert run.returncode == 0, run.stderr
    return json.loads((results / f"{name}-smoke.json").read_text(encoding="utf-8"))["rows"]


def has_picture(name, runs):
    return (runs(name)[1] / f"{name}-smoke.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(set(BENCHMARKS) - set(ELSEWHERE)))
def test_every_benchmark_ends_well_and_prints_a_table(runs, name):
    run = runs(name)[0]
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("┏") >= 1
    assert "Traceback" not in run.stderr


def test_releases_of_every_kind_are_right(runs):
    rows = rows_of("release", runs)
    assert [(each["table"], each["ids"]) for each in rows] == list(release.KINDS)
    assert all(each["right"] and each["megabytes"] > 0 for each in rows)


def test_the_pictures_of_the_readme_are_small_and_of_proven_answers(runs):
    rows = rows_of("readme", runs)
    folder = runs("readme")[1] / "readme-smoke"
    assert [row["picture"] for row in rows] == ["shape", "proof", "phases", "time"]
    for row in rows:
        assert row["right"], row
        assert row["gap"] <= mesh.OUR_GAP, row
        path = folder / f"{row['picture']}.png"
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size == row["bytes"] <= readme.LARGEST
    # Those in the README were made by the same command.
    assert {path.stem for path in readme.IMAGES.glob("*.png")} >= {row["picture"] for row in rows}
    assert all((readme.IMAGES / f"{row['picture']}.png").stat().st_size <= readme.LARGEST for row in rows)


def test_a_picture_of_something_unproven_or_too_large_for_the_readme_fails_the_run(tmp_path, monkeypatch):
    row = {"method": mesh.LINE, "mesh": None, "seconds": 0.1, "exact_gap": 1e-15}
    late = {"method": "column generation", "mesh": 8, "seconds": None, "limit": 1.0}
    path = tmp_path / "mesh-smoke.json"
    path.write_text(json.dumps({"rows": [row, late]}), encoding="utf-8")
    arguments = ["--smoke", "--results", str(tmp_path)]
    assert readme.main(arguments) == 0
    for gap in (1e-3, None):
        path.write_text(json.dumps({"rows": [row | {"exact_gap": gap}, late]}), encoding="utf-8")
        assert readme.main(arguments) == 1
    path.write_text(json.dumps({"rows": [row, late]}), encoding="utf-8")
    monkeypatch.setattr(readme, "LARGEST", 10)
    assert readme.main(arguments) == 1


def test_lp1_proves_the_closed_form_and_certifies_every_program(runs):
    rows = rows_of("lp1", runs)
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
            assert row["verdict"] in runs("lp1")[0].stdout


def test_lp1_programs_agree_with_the_closed_form(runs):
    rows = rows_of("lp1", runs)
    optimum = {(row["prior"], row["k"], row["epsilon"]): row["value"] for row in rows if row["method"] == CLOSED_FORM}
    for row in rows:
        assert row["value"] == pytest.approx(optimum[row["prior"], row["k"], row["epsilon"]], rel=1e-6), row


def test_mesh_proves_its_own_answers_and_finer_grids_cost_no_more(runs):
    rows = [row for row in rows_of("mesh", runs) if row["method"] in OURS]
    assert {row["method"] for row in rows} == set(OURS)
    assert all(row["exact_gap"] <= mesh.OUR_GAP for row in rows)
    bins, line, fine, coarse = sorted(rows, key=lambda row: row["upper"])
    assert (bins["method"], line["method"], fine["mesh"], coarse["mesh"]) == (mesh.BINS, mesh.LINE, 24, 8)
    assert line["upper"] < fine["lower"]
    assert fine["upper"] < coarse["lower"]
    assert "proven within 1e-06" in runs("mesh")[0].stdout
    assert has_picture("mesh", runs)


def test_a_peer_over_the_limit_is_not_asked_on_finer_grids_and_its_picture_says_so(monkeypatch, tmp_path):
    asked = []

    def measured(_, solver, problem, *, rehearsal, limit):
        assert rehearsal.k == 3
        asked.append(solver)
        slow = isinstance(solver, LinearProgram)
        return Measurement((), None, f"{OVER_LIMIT} of {limit:g} s") if slow else Measurement((0.5,), solver(problem))

    monkeypatch.setattr(mesh, "measure", measured)
    found = list(mesh.records(4, (6, 12, 18), 1.0))
    assert sum(isinstance(solver, LinearProgram) for solver in asked) == 3
    verdicts = [row["verdict"] for row in found if row["method"] == "floor, HiGHS"]
    late = "over the limit of 1 s"
    assert verdicts == [late, *[f"not asked again: {late} at mesh 6"] * 2]
    assert [mesh.row(row, 0.25)[4] for row in found if row["method"] in OURS] == ["2"] * 5
    assert {len(mesh.row(row, 0.25)) for row in found} == {len(mesh.COLUMNS)}
    mesh.picture(found, 1.0, 4, tmp_path, "late")
    assert (tmp_path / "late.png").stat().st_size > 1_000


# Half squared error of the optimal unbiased randomizers of the bundled counts at epsilon 1, as an independent prototype
# found them before this package was written.
@pytest.mark.parametrize(("size", "value"), [(52, 1348.3746), (1_664, 1277.9228), (None, 1277.8781)])
def test_the_known_values_of_the_weeks_prior_come_out_of_exact_mechanisms(size, value):
    solver = None if size is None else ColumnGeneration()
    proof = certify(tabulate(solve(weeks_problem(size), solver)))
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


def test_speed_counts_proven_rows_only_and_names_each_limit_that_is_missed(runs):
    rows = rows_of("speed", runs)
    assert all(row["counts"] and row["exact_gap"] <= 1e-9 for row in rows if row["epsilon"] < 6)
    assert all(row["counts"] and row["exact_gap"] <= 1e-8 for row in rows)
    assert [row["verdict"] for row in rows] == ["within limits"] * 4 + ["too slow"]
    task = Task("some row", "weeks", (posed("weeks", 5, 1.0), posed("weeks", 5, 6.0)), 1.0, 100.0)
    found = [
        speed.judged(task, reading)
        for reading in (
            Reading((0.5, 0.7, 9.0), (0.4,), (0.1,), (1e-9, 1e-8), (8, 8), 10**8),
            Reading((0.5, 1.7, 9.0), (0.4,), (0.1,), (1e-9, 1e-8), (8, 8), 10**8 + 1),
            Reading((0.5, 0.7, 9.0), (0.4,), (0.1,), (1.1e-9, 1e-8), (8, 8), 10**8),
            Reading(error=f"{OVER_LIMIT} of 1 s"),
        )
    ]
    assert {len(speed.row(row)) for row in found} == {len(speed.COLUMNS)}
    verdicts = [row["verdict"] for row in found]
    assert verdicts[:2] == ["within limits", "too slow; too much memory"]
    assert verdicts[2] == "does not count: 1 of 2 not proven within 1e-08"
    assert verdicts[3] == "over the limit of 1 s"


def test_the_rows_of_the_speed_table_are_those_that_were_promised():
    rows = list(speed.tasks())
    assert sum(task.what == "k = 53, 25 penalties" and len(task.problems) == 25 for task in rows) == 1
    assert [task.problems[0].k for task in rows if task.megabytes < np.inf][-1] == 10_001
    lines = [task for task in rows if task.what == "k = 401, line"]
    assert {(task.prior, task.problems[0].epsilon) for task in lines} == {
        (prior, epsilon)
        for prior in ("Dirichlet", "exponential", "spike", "revenue")
        for epsilon in (0.1, 1.0, 4.0, 8.0)
    }


def test_the_clock_reads_every_problem_of_every_run():
    reading = clocked([posed("weeks", 4, 1.0), posed("weeks", 5, 1.0)], 2)
    assert (len(reading.seconds), len(reading.processor), len(reading.tabulating)) == (2, 2, 2)
    assert reading.outputs == (6, 8)
    assert 0 < reading.gap <= 1e-9
    assert reading.median == pytest.approx(sum(reading.seconds) / 2)
    assert len(clocked([posed("weeks", 4, 1.0)], 5, patience=0.0).seconds) == 1
    assert Reading().median == Reading().gap == np.inf


def test_the_peak_of_memory_sees_what_has_been_freed_and_not_what_the_parent_holds():
    ballast = bytearray(300 * 10**6)
    ballast[::4096] = b"x" * len(ballast[::4096])
    assert peak_memory() > 300 * 10**6
    del ballast
    assert peak_memory() > 300 * 10**6
    worker = Worker()
    assert worker.call(peak_memory, limit=60)[0] < 300 * 10**6
    worker.close()


def test_growth_finds_the_powers_that_times_were_made_of():
    sizes = np.array([11, 21, 53, 101, 401, 1_001, 4_001])
    times = 1e-3 * sizes**0.5 * np.maximum(1, sizes / 101) ** 1.25
    found = labels.growth(sizes, times)
    assert (found.turn, found.before, found.after) == (101, pytest.approx(0.5), pytest.approx(1.75))
    assert found.fit == pytest.approx(times)
    assert labels.growth(sizes, 3 * sizes**1.5).overall == pytest.approx(1.5)


def test_labels_proves_every_answer_and_leaves_a_picture(runs):
    rows = rows_of("labels", runs)
    assert [row["k"] for row in rows] == list(labels.SMALL_SIZES)
    late = labels.judged("Dirichlet", 8, Reading(error=f"{OVER_LIMIT} of 1 s"), 1e-9)
    assert {len(labels.row(row, late)) for row in (*rows, late)} == {len(labels.COLUMNS)}
    assert all(row["proven"] and row["exact_gap"] <= 1e-9 for row in rows)
    assert all(row["outputs"] <= 2 * row["k"] - 2 and row["megabytes"] > 10 for row in rows)
    assert has_picture("labels", runs)


def test_many_proves_every_answer_of_every_form(runs):
    rows = rows_of("many", runs)
    assert all(row["proven"] == row["count"] and row["gap"] <= 1e-9 for row in rows)
    assert {row["form"] for row in rows} >= {"numpy and LAPACK", "the older solver"}
    assert has_picture("many", runs)


def test_frontier_ends_are_what_they_are_called_and_less_bias_costs_variance(runs):
    rows = rows_of("frontier", runs)
    assert all(row["proven"] and row["gap"] <= frontier.REQUIRED_GAP for row in rows)
    ends = json.loads((runs("frontier")[1] / "ends-of-frontier-smoke.json").read_text(encoding="utf-8"))["rows"]
    assert len(ends) == 2 * len(frontier.EPSILONS)
    for end in ends:
        for way in ("by_name", "nearly_there", "linear_program"):
            assert end[way] <= frontier.AGREEMENT, end
    for epsilon in frontier.EPSILONS:
        here = [row for row in rows if row["epsilon"] == epsilon]
        # Next to the ends the penalty hardly tells two answers apart, so that their bias is known to fewer digits.
        clear = [row for row in here if row["penalty"] not in ("1e-10", "1e+10")]
        assert len(clear) == len(here) - 2
        assert all(now["variance"] >= before["variance"] for before, now in pairwise(clear))
        assert all(now["squared_bias"] <= before["squared_bias"] for before, now in pairwise(clear))
    assert has_picture("frontier", runs)


def test_ends_of_a_frontier_that_are_none_are_found_out():
    problem = posed("weeks", 4, 1.0)
    rows = list(sweep(problem, bias_penalties=[0.0, 1e-10, 1e10, math.inf]))
    assert [end["equal"] for end in frontier.ends(problem, rows)] == [True, True]
    assert [end["equal"] for end in frontier.ends(problem, rows[::-1])] == [False, False]
    assert [end["equal"] for end in frontier.ends(problem, [rows[0], rows[2], rows[2], rows[3]])] == [False, True]
    assert "NOT EQUAL" in frontier.end_row(next(frontier.ends(problem, rows[::-1])))[-1]


def test_priors_that_fade_away_are_proven_at_every_price_of_bias(runs):
    rows = rows_of("thin_tails", runs)
    assert {(row["family"], row["place"]) for row in rows} == set(product(thin_tails.FAMILIES, thin_tails.PLACES))
    for row in rows:
        assert row["gap"] <= thin_tails.CLOSED, row
    assert len(thin_tails.classes()) == 4 * 3 * 6 * 4
    assert not thin_tails.closed(thin_tails.unanswered("poisson", "line", 1.0, 1.0))


def test_edges_are_proven_or_refused(runs):
    rows = rows_of("edges", runs)
    named = [row for row in rows if "edge" in row]
    assert {row["edge"] for row in named} == {edge.name for edge in edges.ROWS if edge.small}
    assert [row["edge"] for row in named if row["refused"]] == ["interval too narrow by 1e-6"]
    assert all(row["gap"] <= edges.CLOSED for row in named if not row["refused"])
    swept = [row for row in rows if "edge" not in row]
    assert {row["place"] for row in swept} == set(hard_problems.PLACES)
    assert {row["epsilon"] for row in swept} == {x for some in hard_problems.EPSILONS.values() for x in some}
    late = edges.unanswered(0) | {"refused": True, "seconds": 2 * edges.AT_ONCE}
    assert not edges.passed(late)
    assert not edges.passed(edges.unanswered(0))


def test_a_gap_and_a_bit_are_proven_or_beaten(runs):
    rows = rows_of("closed_form", runs)
    random = [row for row in rows if "kind" in row]
    assert {row["kind"] for row in random} == set(closed_form.KINDS)
    assert {row["holds"] for row in random} == {True, False}
    for row in random:
        assert row["right"], row
        assert row["gap"] <= closed_form.CLOSED if row["holds"] else row["chord"] >= 1 - 1e-12, row
    (large,) = [row for row in rows if "kind" not in row]
    assert large["gap"] <= closed_form.CLOSED
    _, problem = closed_form.drawn(1)
    held = closed_form.judged("any", replace(problem, epsilon=0.5))
    assert held["holds"]
    assert held["right"]


def test_smoothing_costs_little_and_every_default_release_answers(runs):
    rows = rows_of("histograms", runs)
    made = [row for row in rows if "releases" in row]
    paid = [row for row in rows if "population" in row]
    assert {row["population"] for row in paid} == {name for name, _ in histograms.populations(11)}
    assert all(row["mean cost"] <= histograms.LARGEST_COST for row in paid)
    assert all(row["answer"] == row["releases"] for row in made)
    assert all(1 < row["largest multiple"] < 3 for row in made)


def test_the_best_vectors_are_proven_and_no_rival_is_below_them(runs):
    rows = rows_of("vectors", runs)
    assert {(row["prior"], row["k"]) for row in rows} == set(product(vectors.PRIORS, vectors.SMALL))
    for row in rows:
        assert vectors.right(row), row
        assert row["bits"] <= row["debiased"], row
    assert not vectors.right(rows[0] | {"gap": 1e-3})
    assert not vectors.right(rows[0] | {"findings": "biased"})
    assert not vectors.right(rows[0] | {"selection": rows[0]["lower"] * 0.999})


def test_random_mechanisms_of_every_class_keep_their_promises(runs):
    rows = rows_of("exactness", runs)
    classes = {(row["family"], row["care"], row["place"]) for row in rows}
    assert classes == set(product(exactness.FAMILIES, exactness.CARES, exactness.PLACES))
    for row in rows:
        assert exactness.right(row), row
        assert row["private"], row
        assert row["totals"], row
        assert row["gap"] <= exactness.CLOSED, row
        assert row["arcs"] or row["outputs"] == 1, row
        assert (row["bias"] is None) == (row["care"] != "unbiased"), row


def test_what_is_wrong_with_a_mechanism_is_counted_in_its_integers():
    mechanism = tabulate(solve(posed("weeks", 4, 1.0)))
    arcs = mechanism.arcs
    parts = {name: getattr(mechanism, name) for name in ("problem", "labels", "outputs", "arcs", "ratio", "total")}

    def verdict(**changed):
        found = exactness.verified(SimpleNamespace(**(parts | changed)))
        return found.private, found.totals, found.bias <= exactness.LARGEST_BIAS

    masses = arcs.masses.copy()
    masses[0] += masses[0] >> 20
    heavier = IntegerArcs(arcs.k, arcs.first, arcs.last, arcs.at, masses)
    assert verdict() == (True, True, True)
    assert verdict(arcs=heavier) == (True, False, False)
    assert verdict(ratio=mechanism.ratio + Fraction(1, 100)) == (False, False, False)
    assert verdict(outputs=mechanism.outputs + 1e-9) == (True, True, False)
    assert verdict(total=mechanism.total + 1) == (True, False, True)
    dense = SimpleNamespace(**(parts | {"arcs": None, "weights": mechanism.weights}))
    assert exactness.verified(dense) == exactness.verified(mechanism)
    broken = mechanism.weights.copy()
    broken[0, 0] *= 2
    assert not exactness.verified(SimpleNamespace(**(parts | {"arcs": None, "weights": broken}))).private


def test_a_problem_without_a_mechanism_breaks_no_promise_and_closes_no_gap():
    unsolved = exactness.unanswered(0, 8) | {"error": f"{OVER_LIMIT} of 1 s"}
    solved = exactness.examined(0, 8)
    assert exactness.right(unsolved)
    assert exactness.right(solved)
    assert not exactness.right(solved | {"private": False})
    assert not exactness.right(solved | {"bias": 1e-11})
    assert exactness.closed([unsolved, solved], exactness.CLOSED) == 0.5
    found = dict(zip(exactness.COLUMNS, exactness.summary(("spread", "free"), [unsolved, solved]), strict=True))
    assert (found["mechanisms"], found["private"], found["<= 1e-9"]) == ("1 of 2", "1", "50.0%")


def test_optima_walk_by_unit_steps_and_say_whether_they_leave_the_range(runs):
    rows = rows_of("structure", runs)
    assert len(rows) == 44
    for row in rows:
        assert structure.sound(row), row
        # Each step moves one end of the interval on or both, from the first label alone to the last one alone.
        assert row["grow"] + row["shift"] == row["shrink"] + row["shift"] == row["k"] - 1, row
        assert row["components"] <= row["outputs"], row
        if row["response"]:
            assert (row["outputs"], row["components"], row["most_bins"]) == (row["k"], 1, row["k"]), row
            assert not row["all_leave"], row
        if row["all_leave"]:
            assert row["outside"] > 0, row
            assert row["loss_inside"] > 0, row
    assert any(row["all_leave"] for row in rows)
    assert any(row["response"] for row in rows)
    assert has_picture("structure", runs)


@pytest.mark.parametrize(("prior", "k"), [("uniform", 3), ("uniform", 6), ("weeks", 5)])
def test_debiased_response_is_beaten_below_its_threshold_and_proven_above(prior, k):
    found = structure.threshold(prior, k)
    assert found["epsilon"] - found["below"] <= structure.RESOLUTION
    for epsilon in (found["epsilon"], found["epsilon"] + 1e-3, found["epsilon"] + 2):
        assert structure.response_is_optimal(structure.posed(prior, k, epsilon))
    problem = structure.posed(prior, k, found["below"] - 1e-2)
    response = debiased_rr(problem.labels, problem.epsilon, prior=problem.prior)
    assert certify(tabulate(solve(problem))).upper < response.value * (1 - 1e-9)


def test_a_walk_that_is_none_is_not_called_sound():
    right = structure.examined(structure.drawn(1, 12))
    assert structure.sound(right)
    for wrong in (
        {"proven": False},
        {"others": 1},
        {"from_first_to_last": False},
        {"everything": True},
        {"outputs": 2 * right["k"] - 1},
        {"most_bins": right["fewest_bins"] + 2},
    ):
        assert not structure.sound(right | wrong), wrong
    unsolved = {"prior": "weeks", "k": 5, "epsilon": 1.0, "verdict": "SolverFailed: no answer"}
    assert {len(structure.table_row(row)) for row in (right | unsolved, unsolved)} == {len(structure.COLUMNS)}
    with pytest.raises(errors.InvalidInput, match="expected one that is made of arcs"):
        structure.intervals(tabulate(rr_with_prior([0.5, 0.3, 0.2], 1.0)))


def test_bands_count_shares_of_the_problems_in_them():
    right = structure.examined(structure.drawn(1, 12)) | {"k": 5, "outputs": 8, "response": False, "proven": True}
    rows = [
        right | {"epsilon": 3.0, "all_leave": True, "loss_inside": 0.02},
        right | {"epsilon": 3.0, "all_leave": False, "loss_inside": 1e-14, "outputs": 7},
        right | {"epsilon": 6.0, "all_leave": True, "loss_inside": 0.04},
    ]
    found = [dict(zip(structure.BAND_COLUMNS, row, strict=True)) for row in structure.bands(rows)]
    assert [row["epsilon"] for row in found] == ["2 to 4", "4 to 8", "0.05 to 8"]
    assert [row["problems"] for row in found] == ["2", "1", "3"]
    assert [row["2k - 2 outputs"] for row in found] == ["50%", "100%", "67%"]
    assert [row["all optima leave"] for row in found] == ["50%", "100%", "67%"]
    assert [row["largest loss inside"] for row in found] == ["2.0e-02", "4.0e-02", "4.0e-02"]


def test_tables_print_brackets_and_colons_as_they_are(capsys):
    print_table("a [title]", ["name", "[b]number[/b]", "verdict"], [["[0, 1]", "[/]", ":warning: optimum in [1, 2]"]])
    printed = capsys.readouterr().out
    assert all(part in printed for part in ("a [title]", "[b]number[/b]", "[0, 1]", "[/]", ":warning: optimum"))


def test_a_call_that_takes_too_long_is_killed_and_the_next_one_is_answered():
    worker = Worker()
    assert worker.call(abs, -3, limit=60) == (3, "")
    assert worker.call(time.sleep, 600, limit=0.2) == (None, "over the limit of 0.2 s")
    assert worker.call(abs, -4, limit=60) == (4, "")
    assert worker.call(priors.weeks, 99, limit=60)[1].startswith(f"{errors.InvalidInput.__name__}: k is 99")
    assert worker.call(sys.exit, 1, limit=60) == (None, "the process died (out of memory?)")
    assert worker.call(abs, -5, limit=60) == (5, "")
    worker.close()


@pytest.mark.parametrize("make", PRIORS.values())
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
    assert main(["no such name"]) == 2
    assert "no such name" in capsys.readouterr().err


def test_libqif_solves_what_we_prove(runs):
    rows = rows_of("libqif", runs)
    assert {row["loss"] for row in rows} == {"zero_one", "squared"}
    assert all(row["gap"] <= libqif.OUR_GAP for row in rows)


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        (rr_with_prior([0.36, 0.33, 0.31], 1.0).randomizer.matrix.tolist(), "private; within"),
        (np.eye(3).tolist(), "not 1-DP"),
        ([[0.5, 0.3, 0.3]] * 3, "sum"),
        ([[0.5, 0.5]] * 3, "shape"),
    ],
)
def test_what_libqif_answers_is_judged_by_the_certificate(table, verdict, monkeypatch):
    monkeypatch.setattr(libqif, "ask", lambda *_, **__: {"seconds": 1.0, "version": "0", "matrix": table})
    record = libqif.compared("zero_one", classification([0.36, 0.33, 0.31], 1.0), 1.0)
    assert verdict in record["verdict"], record
    assert (record["their_gap"] <= 1e-9) == (verdict == "private; within")
