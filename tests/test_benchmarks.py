"""The parts of the benchmarks that judge: the raw judge, the harness's exit code, its clock and its arithmetic."""

import json
import os
import sys
import time
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import labels, libqif, priors, randomizers
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.exactness import verify
from benchmarks.harness import Benchmark, Case, Clock, Method, Worker, compare, peak_memory, prove, show, solve_program
from benchmarks.mesh import state, weeks_problem
from benchmarks.raw import judge_metric_table, judge_table
from optrand import Mechanism, certify, classification, regression, rr_with_prior, solve
from optrand.baselines import Moments
from optrand.errors import InvalidInput
from optrand.model._table import Table as ExactTable
from optrand.programs import Highs
from optrand.solvers import ColumnGeneration


def test_the_names_of_benchmarks_are_listed_and_an_unknown_one_is_refused(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHMARKS)
    assert main(["no such name"]) == 2
    assert "no such name" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "code"), [([{"k": 1}], 0), ([{"k": 1}, {"k": 2, "right": False}], 1), ([], 1)])
def test_a_row_that_is_not_proven_makes_the_exit_code_1(rows, code, tmp_path, capsys):
    tables = {"a [title]": "k gap"}
    made = Benchmark("made", "", lambda _: rows, tables, one_core=False)
    assert made.run(["--smoke", "--results", str(tmp_path)]) == code
    assert json.loads((tmp_path / "made-smoke.json").read_text())["rows"] == rows
    assert ("a [title]" in capsys.readouterr().out) == bool(rows)


def test_a_call_that_takes_too_long_is_killed_and_the_next_one_is_answered():
    ballast = bytearray(300 * 10**6)
    ballast[::4096] = b"x" * len(ballast[::4096])
    worker = Worker()
    assert worker.call(abs, -3, limit=60) == (3, "")
    assert worker.call(time.sleep, 600, limit=0.2) == (None, "over the limit of 0.2 s")
    assert worker.call(priors.weeks, 99, limit=60)[1].startswith(f"{InvalidInput.__name__}: k is 99")
    assert worker.call(sys.exit, 1, limit=60) == (None, "SystemExit: 1")
    assert worker.call(os._exit, 1, limit=60) == (None, "the process died (out of memory?)")
    # The peak of memory is the worker's own, and includes freed memory.
    assert worker.call(peak_memory, limit=60)[0] < 300 * 10**6
    worker.close()
    del ballast
    assert peak_memory() > 300 * 10**6


def test_a_peer_over_the_limit_is_not_run_again_and_never_fails_the_run(monkeypatch):
    solved = []

    def measure(_clock, _worker, method, *_):
        solved.append(method.solver)
        return {"seconds": None, "runs": 0, "right": method.is_peer, "verdict": "over the limit of 1 s"}

    monkeypatch.setattr(Clock, "measure", measure)
    peer = Method("a peer", partial(solve_program, partial(state, "floor"), Highs()), show, is_peer=True)
    cases = [Case({"mesh": m}, weeks_problem(m, 4), weeks_problem(5, 3), f"mesh {m}") for m in (6, 12)]
    found = list(compare(cases, [peer, Method("ours", ColumnGeneration())], Clock(1.0)))
    assert solved == [ColumnGeneration(), peer.solver, ColumnGeneration()]
    late = "over the limit of 1 s"
    assert [row["verdict"] for row in found[::2]] == [late, f"not run again: {late} at mesh 6"]
    assert [row["right"] for row in found] == [True, False, True, False]


def test_a_small_run_is_proven_and_its_clock_takes_the_median():
    (row,) = labels.records("Dirichlet", (6,), 60.0)
    assert row["right"]
    assert (row["runs"], row["outputs"]) == (5, 10)
    assert 0 < row["seconds"] < 60


def test_an_answer_that_is_wrong_is_not_called_proven():
    problem = weeks_problem(12, k=4)
    mechanism = solve(problem, ColumnGeneration())
    assert prove(problem, mechanism)["right"]
    ends = ExactTable.of_rows(problem.labels, problem.outputs.values[[0, -1]], np.ones((4, 2), dtype=int))
    found = prove([problem] * 2, [mechanism, Mechanism(problem, ends, mechanism.dual)])
    assert not found["right"]
    assert "1 of 2 not proven" in found["verdict"]


# Half squared error of the optimal unbiased randomizers of the bundled counts at epsilon 1, as an independent prototype
# found them before this package was written.
@pytest.mark.parametrize(("size", "value"), [(52, 1348.3746), (1_664, 1277.9228), (None, 1277.8781)])
def test_the_known_values_of_the_weeks_prior_come_out_of_exact_mechanisms(size, value):
    proof = certify(solve(weeks_problem(size), None if size is None else ColumnGeneration()))
    assert proof.require(gap=1e-9).upper == pytest.approx(value, abs=6e-5)


def test_what_is_wrong_with_a_mechanism_is_counted_in_its_integers():
    mechanism = solve(weeks_problem(None, 4))
    columns = mechanism.table.columns
    parts = {
        name: getattr(mechanism, name) for name in ("problem", "labels", "outputs", "table", "realised_ratio", "total")
    }

    def verdict(**changed):
        found = verify(SimpleNamespace(**(parts | changed)))
        return found["private"], found["totals"], found["bias"] == 0

    (first, *others), *rest = columns
    more = SimpleNamespace(columns=(((first[0], first[1] + (first[1] >> 20)), *others), *rest))
    assert verdict() == (True, True, True)
    assert verdict(table=more) == (True, False, False)
    for step in (Fraction(-1, 100), Fraction(1, 100)):
        # Less than the table spends, and more than its budget.
        assert verdict(realised_ratio=mechanism.realised_ratio + step) == (False, True, True)
    assert verdict(outputs=mechanism.outputs + 1e-9) == (True, True, False)
    assert verdict(total=mechanism.total + 1) == (True, False, True)


RAW = {
    "right to 1e-09": rr_with_prior([0.36, 0.33, 0.31], 1.0).randomizer.matrix,
    "epsilon inf": np.eye(3),
    "rows off by 1e-01": np.tile([0.5, 0.3, 0.3], (3, 1)),
}


@pytest.mark.parametrize("words", RAW)
def test_a_table_of_a_peer_is_judged_as_it_is(words, monkeypatch):
    problem = classification([0.36, 0.33, 0.31], 1.0)
    optimum = rr_with_prior(problem.prior, 1.0).value
    assert words in judge_table(problem, problem.labels, RAW[words], optimum)["verdict"]
    assert "value off by +nan" in judge_table(problem, problem.labels, RAW[words], np.nan)["verdict"]
    answer = {"seconds": 1.0, "version": "0", "matrix": RAW[words].tolist()}
    monkeypatch.setattr(libqif.Peer, "run", lambda *_, **__: answer)
    assert words in libqif.their_answer("zero_one", problem, optimum, 1.0)["verdict"]
    answer["matrix"] = [[0.5, 0.5]] * 3
    assert "shape" in libqif.their_answer("zero_one", problem, optimum, 1.0)["verdict"]


def test_a_table_of_metric_privacy_is_judged_by_its_neighbours(monkeypatch):
    problem = regression(range(3), np.full(3, 1 / 3), 2.0, outputs=range(3))
    best = libqif.our_answer("squared", problem, "metric")
    table = best.matrix
    assert "right" in judge_metric_table(problem, table, best.value)["verdict"]
    # Pure privacy of the same number is more than metric privacy gives: labels 0 and 2 may differ by exp(4).
    assert "epsilon" in judge_table(problem, problem.labels, table, best.value)["verdict"]
    monkeypatch.setattr(libqif.Peer, "run", lambda *_, **__: {"seconds": 1.0, "matrix": np.eye(3).tolist()})
    row = libqif.their_answer("squared", problem, best.value, 1.0, "metric")
    assert "epsilon inf" in row["verdict"]
    assert row["their_value"] == 0


def test_moments_that_are_too_good_are_called_out(monkeypatch):
    problem = weeks_problem(None, 6)
    best = {"optimal unbiased": solve(problem)}
    honest = next(randomizers.entries(problem, best))
    lie = honest._replace(moments=Moments(np.zeros(6), 0.9 * honest.moments.variances))
    monkeypatch.setattr(randomizers, "entries", lambda *_: [honest, lie])
    rows = list(randomizers.compare_with_optima("weeks", problem.labels, problem.prior, 1.0, 10))
    assert [row["right"] for row in rows] == [True, False]
