"""The command line: what it prints, how it ends, and that it leaves nothing behind when it ends badly."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import resource
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import optrand.certificates.certificate
import optrand.release.job
import optrand.release.table_job
import optrand.studies.sweeps
from optrand import Interval, feasible_output_set, regression, solve, unbiased_regression
from optrand.base.numerals import shown_above
from optrand.cli import FAILED, UNVERIFIED, WRONG_INPUT, app
from optrand.data import weeks_worked_counts_path, weeks_worked_path
from optrand.errors import InvalidFile, NotCertified, SolverFailed
from optrand.mechanism.mechanism import load
from optrand.model.outputs import Line
from optrand.release.table import read_labels
from optrand.studies.sweeps import Sweep

GAP = 1e-9
"""What every small problem must verify."""

HIDDEN = "9173"
"""A label that no message may repeat."""


def listing(folder):
    """Every file below a folder, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_line(result):
    """The error of a command that failed: one line, no traceback, no secret."""
    text = result.stderr
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert HIDDEN not in text
    return text


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with a table whose labels are 0, 1 and 2, a prior, and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("id,y\n" + "".join(f"{i:03},{i * i % 3}\n" for i in range(200)))
    (tmp_path / "prior.csv").write_text("label,count\n0,50\n1,30\n2,20\n")
    return tmp_path


@pytest.fixture
def saved(here):
    """A mechanism for labels 0, 1 and 2, saved as m.json."""
    result = run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1", "-o", "m.json")
    assert result.exit_code == 0, result.stderr
    return here / "m.json"


def randomized(*more, source="in.csv", target="out.csv", labels="0:2", epsilon="1", column="y"):
    declared = ["--label", column, "--labels", labels, "--epsilon", epsilon, "--no-ledger"]
    return run("randomize", source, target, *declared, *more)


def solved(*more, epsilon="1", output="m.json"):
    return run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", epsilon, "-o", output, *more)


def swept(*more, epsilon="1"):
    return run("sweep", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", epsilon, *more)


def facts(result):
    """The printed lines, by their first words."""
    lines = [line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line]
    return {name: fact.strip() for name, fact in lines}


# The commands


def test_randomize_prints_its_summary_and_leaves_two_files(here):
    result = randomized()
    assert result.exit_code == 0, result.stderr
    told = facts(result)
    assert told["rows"] == "200"
    assert told["labels"] == "3 declared"
    assert told["budget"] == "1.0: prior 0.05, labels 0.95"
    assert told["prior"] == "estimated privately"
    mechanism = load("out.csv.mechanism.json")
    assert told["outputs"] == f"{mechanism.n}, anywhere on the real line"
    assert mechanism.problem.outputs == Line()
    assert float(told["largest bias"]) < 1e-12
    assert float(told["verified gap"]) <= GAP
    assert 0.99 < float(told["realised epsilon"].split()[0]) <= 1.0
    assert told["mechanism"] == "out.csv.mechanism.json"
    assert set(read_labels("out.csv", "y")) <= set(mechanism.outputs)
    loss = optrand.certificates.certificate.certify(mechanism).upper
    assert float(told["noisy label loss"].split()[0]) == pytest.approx(loss, rel=1e-5)
    assert sorted(path.name for path in here.iterdir()) == [
        "in.csv",
        "out.csv",
        "out.csv.mechanism.json",
        "out.csv.release.json",
        "prior.csv",
    ]


def test_the_record_states_the_total_wherever_it_is_read(here):
    assert randomized().exit_code == 0
    total = "total epsilon  1.0: prior 0.05, labels 0.95"
    commands = {
        "verify": ("verify", "out.csv.release.json", "--table", "out.csv", "--gap", "1e-9"),
        "estimate": ("estimate", "out.csv.release.json", "out.csv"),
        "plot": ("plot", "out.csv.release.json", "-o", "m.svg"),
        "report": ("report", "out.csv.release.json", "-o", "r.html"),
        "gallery": ("gallery", "out.csv.release.json", "-o", "pictures"),
    }
    said = {}
    for name, arguments in commands.items():
        result = run(*arguments)
        assert result.exit_code == 0, result.stderr
        assert total in result.stdout, name
        said[name] = result.stdout
    assert said["verify"].endswith("verified\n")
    values = read_labels("out.csv", "y")
    assert f"mean           {values.mean():.6g} ±" in said["estimate"]
    shares = [float(line.split(",")[1]) for line in said["estimate"].splitlines()[-3:]]
    assert sum(shares) == pytest.approx(1.0, abs=1e-4)
    assert "A release of 3 labels at a total of ε = 1<" in (here / "r.html").read_text(encoding="utf-8")
    (here / "out.csv").write_text((here / "out.csv").read_text() + "200,1\n")
    for arguments in (commands["verify"], commands["estimate"]):
        result = run(*arguments)
        assert result.exit_code == UNVERIFIED
        assert "is not the table of this release" in result.stderr


@pytest.mark.usefixtures("here")
def test_only_a_record_knows_its_table():
    assert randomized().exit_code == 0
    for arguments in (
        ("verify", "out.csv.mechanism.json", "--table", "out.csv"),
        ("estimate", "out.csv.mechanism.json", "out.csv"),
        ("verify", "out.csv.release.json", "--table", "nowhere.csv"),
        ("estimate", "out.csv.release.json", "nowhere.csv"),
    ):
        assert run(*arguments).exit_code == WRONG_INPUT


@pytest.mark.usefixtures("here")
def test_what_cannot_be_estimated_is_noted_and_its_record_says_so():
    result = randomized("--randomizer", "discrete-laplace")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("warning: no histogram, no loss of a label: additive noise has no table")
    verified = run("verify", "out.csv.release.json", "--table", "out.csv")
    assert verified.exit_code == 0, verified.stderr
    assert "total epsilon  1.0: prior 0.0, labels 1.0" in verified.stdout


def test_randomize_then_verify_then_plot(here):
    assert randomized().exit_code == 0
    verified = run("verify", "out.csv.mechanism.json", "--gap", "1e-9")
    assert verified.exit_code == 0, verified.stderr
    assert verified.stdout.endswith("verified\n")
    drawn = run("plot", "out.csv.mechanism.json", "-o", "m.png")
    assert drawn.exit_code == 0, drawn.stderr
    assert (here / "m.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "1", "2.7"])
def test_numbers_are_rounded_to_the_side_on_which_they_are_true(here, epsilon):
    told = facts(solved("--bias-penalty", "1", epsilon=epsilon))
    assert facts(run("verify", "m.json")).items() >= {name: told[name] for name in told if name != "mechanism"}.items()
    proof = optrand.certificates.certificate.certify(load(here / "m.json"), exact=True)
    low, high = re.fullmatch("between (.*) and (.*)", told["optimal value"]).groups()
    assert Fraction(low) <= Fraction(proof.lower) <= Fraction(proof.upper) <= Fraction(high)
    assert float(high) - float(low) <= (proof.upper - proof.lower) + 3e-9 * proof.upper
    assert Fraction(told["verified gap"]) >= Fraction(proof.gap)
    assert Fraction(told["largest bias"]) >= Fraction(proof.bias)
    spent, asked = re.match("(.*) of (.*) \\(", told["realised epsilon"]).groups()
    assert asked == repr(float(epsilon))
    assert Fraction(spent) >= Fraction(proof.epsilon) or spent == asked


def test_a_table_of_rows_rounds_what_is_proven_up(here):
    result = swept("--bias-penalty", "0.1,1,inf", "-o", "rows.csv", epsilon="0.3,1,3")
    lines = result.stdout.splitlines()
    with (here / "rows.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    printed = [line.split() for line in lines[-len(rows) :]]
    for cells, row in zip(printed, rows, strict=True):
        for cell, name in zip(cells[2:6], ("value", "gap", "variance", "squared_bias"), strict=True):
            assert Fraction(cell) >= Fraction(float(row[name]))
            assert float(cell) <= float(row[name]) * (1 + 2e-5)


def test_solve_says_that_it_takes_the_prior_as_public(here):
    result = solved()
    assert result.exit_code == 0, result.stderr
    assert "prior.csv is taken as public" in result.stdout
    np.testing.assert_allclose(load(here / "m.json").problem.prior, [0.5, 0.3, 0.2])
    assert float(facts(result)["verified gap"]) <= GAP


ALLOWED = {
    "line": (Line(), "anywhere on the real line"),
    "grid:9": (feasible_output_set([0, 1, 2], 1.0, 9), "of 9 values from -1.7"),
    "interval:-1.5:1e1": (Interval(-1.5, 10), "anywhere from -1.5 to 10.0"),
}


@pytest.mark.parametrize("outputs", ALLOWED)
@pytest.mark.parametrize("penalty", ["inf", "2.5", "0"])
def test_outputs_and_bias_penalty_are_those_of_the_problem(here, outputs, penalty):
    allowed, words = ALLOWED[outputs]
    problem = regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, bias_penalty=float(penalty), outputs=allowed)
    options = ["--outputs", outputs, "--bias-penalty", penalty]
    for result, path in (
        (solved(*options), "m.json"),
        (randomized("--public-prior", "prior.csv", *options), "out.csv.mechanism.json"),
    ):
        assert result.exit_code == 0, result.stderr
        mechanism = load(here / path)
        assert mechanism.problem == problem
        assert f", {words}" in facts(result)["outputs"]
        assert (float(facts(result)["largest bias"]) > 1e-3) == (penalty != "inf")
        assert float(facts(result)["verified gap"]) <= GAP
    # The penalty is no part of the loss.
    loss = optrand.certificates.certificate.certify(replace(problem, bias_penalty=0.0), mechanism).upper
    assert float(facts(result)["noisy label loss"].split()[0]) == pytest.approx(loss, rel=1e-5)


def test_an_interval_without_an_unbiased_randomizer_is_refused_with_the_smallest_that_has_one(here):
    """At epsilon log(3) the outputs must reach beyond labels 0 and 2 by 2 / (3 - 1) = 1 on either side."""
    epsilon = repr(math.log(3))
    before = listing(here)
    for interval in ("-0.99:9", "-9:2.99", "0:2"):
        for result in (
            solved("--outputs", f"interval:{interval}", epsilon=epsilon),
            randomized("--public-prior", "prior.csv", "--outputs", f"interval:{interval}", epsilon=epsilon),
            swept("--outputs", f"interval:{interval}", epsilon=epsilon),
        ):
            assert result.exit_code == WRONG_INPUT
            message = one_line(result)
            assert "cannot be unbiased" in message
            low, high = map(float, re.search(r"from (\S+) to (\S+) or further would do", message).groups())
            assert (low, high) == pytest.approx((-1, 3), rel=1e-12)
    assert listing(here) == before
    named = solved("--outputs", f"interval:{low!r}:{high!r}", epsilon=epsilon)
    assert named.exit_code == 0, named.stderr


def test_an_interval_that_only_the_whole_budget_could_afford_is_refused_before_any_is_spent(here, monkeypatch):
    """Outputs from -1 to 3 need all of a budget of log(3): what the prior takes of it is missing."""
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    before = listing(here)
    for more in ([], ["--prior-epsilon", "0.1"]):
        result = randomized("--outputs", "interval:-1:3", *more, epsilon=repr(math.log(3) + 1e-9))
        assert result.exit_code == WRONG_INPUT
        assert "cannot be unbiased" in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    "outputs",
    [
        *("", "Line", "line:1", "0:2", "circle"),
        *("grid", "grid:", "grid:1", "grid:0", "grid:-3", "grid:4.0", "grid:1_0", "grid:1e2", "grid:9:9"),
        *("interval:0", "interval:5:5", "interval:5:-5", "interval:-inf:inf", "interval:-1_0:60"),
        *("interval:0:nan", "interval:0:1e200", "interval:0:1:2"),
    ],
)
def test_outputs_without_meaning_are_refused(here, outputs):
    before = listing(here)
    for result in (solved("--outputs", outputs), randomized("--outputs", outputs), swept("--outputs", outputs)):
        assert result.exit_code == WRONG_INPUT
        one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize("penalty", ["-1", "nan", "-inf", "Inf", "infinity", "1_0", "1e400", "", "two", "٣"])
def test_a_bias_penalty_without_meaning_is_refused(here, penalty):
    before = listing(here)
    for command in (solved, randomized, swept):
        result = command("--bias-penalty", penalty)
        assert result.exit_code == WRONG_INPUT
        assert "--bias-penalty is" in one_line(result)
        assert "from 0 to inf" in one_line(result)
    assert listing(here) == before


# Sweeps


def test_sweep_prints_a_row_for_every_pair_and_saves_all_columns(here):
    result = swept("--bias-penalty", "0,5,inf", "-o", "sweep.csv", epsilon="0.5,1:2:3")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    note, header, *lines = result.stdout.splitlines()
    assert "prior.csv is taken as public" in note
    assert re.split(" {2,}", header.strip())[:4] == ["epsilon", "bias penalty", "value", "gap"]
    expected = [(e, p) for e in (0.5, 1, 1.5, 2) for p in (0, 5, math.inf)]
    assert [tuple(map(float, line.split()[:2])) for line in lines] == expected
    with (here / "sweep.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [(float(row["epsilon"]), float(row["bias_penalty"])) for row in saved] == expected
    assert tuple(saved[0]) == Sweep(()).columns
    assert all(row["status"] == "certified" and float(row["gap"]) <= GAP for row in saved)
    values = [shown_above(float(row["value"]), 6) for row in saved]
    assert [line.split()[2] for line in lines] == values
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 2.0)
    assert float(saved[-1]["value"]) == pytest.approx(solve(problem).value, rel=GAP)


def test_a_sweep_is_drawn_and_a_picture_is_kept(here):
    assert swept("--bias-penalty", "0,inf", "--picture", "f.png").exit_code == 0
    drawn = (here / "f.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    for name, told in (("f.png", "exists"), ("f.txt", "name a .png, .svg or .pdf file")):
        result = swept("--picture", name)
        assert result.exit_code == WRONG_INPUT
        assert told in one_line(result)
    assert (here / "f.png").read_bytes() == drawn


def test_a_sweep_on_a_grid_keeps_the_widest_of_them(here):
    result = swept("--outputs", "grid:40", "-o", "sweep.csv", epsilon="2,0.7")
    assert result.exit_code == 0, result.stderr
    grid = feasible_output_set([0, 1, 2], 0.7, 40)
    for row in csv.DictReader((here / "sweep.csv").read_text().splitlines()):
        problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], float(row["epsilon"]), outputs=grid)
        assert float(row["value"]) == pytest.approx(solve(problem).value, rel=GAP)


def test_a_row_without_an_answer_says_why_and_the_others_are_there(here):
    result = swept("--outputs", "interval:-2:4", "-o", "sweep.csv", epsilon="0.5,1")
    assert result.exit_code == 0, result.stderr
    assert "note: epsilon 0.5, bias penalty inf: the lowest label, 0, cannot be unbiased" in result.stdout
    rows = list(csv.DictReader((here / "sweep.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["infeasible", "certified"]


def test_a_sweep_with_a_row_that_nothing_proves_ends_with_three_and_keeps_the_others(here, monkeypatch):
    def fails(problem, _):
        if problem.epsilon == 2:
            raise NotCertified("no useful bound")
        return solve(problem)

    monkeypatch.setattr(optrand.studies.sweeps, "solve", fails)
    result = swept("-o", "sweep.csv", epsilon="1,2")
    assert result.exit_code == UNVERIFIED
    assert "1 of 2 problems have no proof" in one_line(result)
    assert "note: epsilon 2, bias penalty inf: no useful bound" in result.stdout
    rows = list(csv.DictReader((here / "sweep.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["certified", "failed"]


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ("1:2", "'1:2', expected LOW:HIGH:N"),
        ("1:2:0.5", "expected LOW:HIGH:N with a whole N"),
        ("1:2:1", "expected LOW:HIGH:N with a whole N"),
        ("1:2:1_0", "expected LOW:HIGH:N with a whole N"),
        ("1:2:10001", "expected LOW:HIGH:N with a whole N from 2 to 10000"),
        ("2:1:3", "a finite range that runs upwards"),
        ("1:1:3", "a finite range that runs upwards"),
        ("1,,2", "--epsilon is ''"),
        ("0:1:3", "--epsilon is 0.0"),
        ("1,nan", "--epsilon is 'nan'"),
    ],
)
def test_a_list_of_numbers_without_meaning_is_refused(here, epsilon, message):
    before = listing(here)
    result = swept("-o", "sweep.csv", epsilon=epsilon)
    assert result.exit_code == WRONG_INPUT
    assert message in one_line(result)
    assert listing(here) == before
    assert "a finite range" in one_line(swept("--bias-penalty", "0:inf:3"))


def test_a_prior_is_never_overwritten(here):
    (here / "sweep.csv").write_text("precious")
    before = listing(here)
    for result, message in (
        (swept("-o", "prior.csv", "--force"), "is the input itself"),
        (solved("--force", output="prior.csv"), "is the input itself"),
        (swept("-o", "sweep.csv"), "exists"),
        (swept("-o", "nowhere/sweep.csv"), "not a folder"),
        (solved(output="nowhere/m.json"), "not a folder"),
    ):
        assert result.exit_code == WRONG_INPUT
        assert message in one_line(result)
    assert listing(here) == before
    assert swept("-o", "sweep.csv", "--force").exit_code == 0
    assert listing(here) != before


def test_labels_that_the_prior_leaves_out_are_mentioned(here):
    result = run("solve", "--labels", "0:3", "--prior", "prior.csv", "--epsilon", "1", "-o", here / "m.json")
    assert result.exit_code == 0, result.stderr
    assert "1 label(s) are not in prior.csv" in result.stdout


def test_randomize_trusts_a_public_prior_and_says_so(here):
    result = randomized("--public-prior", "prior.csv")
    assert result.exit_code == 0, result.stderr
    assert facts(result)["prior"].startswith("public: trusted as given")
    assert facts(result)["budget"] == "1.0: prior 0.0, labels 1.0"
    np.testing.assert_allclose(load(here / "out.csv.mechanism.json").problem.prior, [0.5, 0.3, 0.2])


def test_randomize_takes_a_budget_for_the_prior(here):
    result = randomized("--prior-epsilon", "0.25")
    assert facts(result)["budget"] == "1.0: prior 0.25, labels 0.75"
    assert (here / "out.csv").exists()


def test_randomize_clips_when_asked(here):
    (here / "in.csv").write_text(f"id,y\n1,{HIDDEN}\n2,-{HIDDEN}\n")
    before = listing(here)
    refused = randomized()
    assert refused.exit_code == WRONG_INPUT
    assert "at least one label is not among the 3 declared ones" in one_line(refused)
    assert listing(here) == before
    assert randomized("--clip").exit_code == 0


@pytest.mark.parametrize("more", [[], ["--randomizer", "rr"]], ids=["optimal", "rr"])
def test_the_owner_may_have_what_is_wrong_counted_on_the_standard_error(here, more, monkeypatch):
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    (here / "in.csv").write_text(f"id,y\n1,{HIDDEN}\n2,-{HIDDEN}\n3,\n4,1\n5,x\n6,0.5\n")
    before = listing(here)
    found = randomized("--diagnose", *more)
    assert (found.exit_code, found.stdout) == (WRONG_INPUT, "")
    assert "these counts are facts about the TRUE labels" in found.stderr
    assert "Do not share them" in found.stderr
    lines = dict(line.split("  ", 1) for line in found.stderr.splitlines() if "  " in line)
    assert {name: line.split()[0] for name, line in lines.items()} == {
        "rows": "6",
        "missing": "1",
        "no numbers": "1",
        "not declared": "3",
    }
    assert HIDDEN not in found.stderr
    clipped = randomized("--diagnose", "--clip", *more)
    assert "not declared  1 (not among the 3 labels)" in clipped.stderr
    (here / "in.csv").write_text("id,y\n1,2\n")
    fine = randomized("--diagnose", *more)
    assert (fine.exit_code, fine.stdout) == (0, "")
    assert "nothing was released and nothing spent" in fine.stderr
    assert set(listing(here)) == set(before)


@pytest.mark.usefixtures("here")
def test_a_run_that_breaks_off_keeps_the_prior_for_the_next(monkeypatch):
    def no_answer(_):
        raise SolverFailed("no answer that could be read")

    with monkeypatch.context() as patch:
        patch.setattr(optrand.release.job, "solve", no_answer)
        failed = randomized()
    assert failed.exit_code == FAILED
    message = one_line(failed)
    spent = "the prior was drawn before this and has spent 0.05 of the budget of 1.0"
    assert message.startswith(f"error: no answer that could be read; {spent}")
    assert "it is kept in out.csv.prior.csv: a retry with --paid-prior out.csv.prior.csv" in message
    again = randomized("--force")
    assert again.exit_code == WRONG_INPUT
    assert "out.csv.prior.csv exists, a prior that an earlier run has paid for" in one_line(again)
    assert randomized("--paid-prior", "out.csv.prior.csv", epsilon="2").exit_code == WRONG_INPUT
    assert randomized("--paid-prior", "prior.csv").exit_code == WRONG_INPUT
    assert randomized("--paid-prior", "out.csv.prior.csv", "--randomizer", "rr").exit_code == WRONG_INPUT
    done = randomized("--paid-prior", "out.csv.prior.csv")
    assert done.exit_code == 0, done.stderr
    assert facts(done)["prior"] == "estimated privately in an earlier run, epsilon 0.05 spent then"
    assert facts(done)["budget"] == "1.0: prior 0.05, labels 0.95"
    assert 0.99 < float(facts(done)["realised epsilon"].split()[0]) <= 1.0


@pytest.mark.usefixtures("here")
def test_notes_of_others_are_not_printed(monkeypatch):
    def no_answer(_):
        error = RuntimeError(HIDDEN)
        error.add_note(HIDDEN)
        raise error

    monkeypatch.setattr(optrand.release.job, "solve", no_answer)
    failed = randomized("--public-prior", "prior.csv")
    assert failed.exit_code == FAILED
    assert "internal error: RuntimeError" in one_line(failed)


def test_force_replaces_what_exists(here):
    assert randomized().exit_code == 0
    before = listing(here)
    again = randomized()
    assert again.exit_code == WRONG_INPUT
    assert "exists" in one_line(again)
    assert listing(here) == before
    assert randomized("--force").exit_code == 0
    assert listing(here) != before


def test_parquet_by_the_command_line(here):
    pa.parquet.write_table(pa.table({"y": [0, 1, 2], "a": ["x", "007", None]}), here / "in.parquet")
    result = randomized(source="in.parquet", target="out.parquet")
    assert result.exit_code == 0, result.stderr
    assert pa.parquet.read_table("out.parquet").column("a").to_pylist() == ["x", "007", None]


def test_one_label_comes_back_as_it_is(here):
    (here / "in.csv").write_text("y\n3\n3\n")
    result = randomized(labels="3")
    assert result.exit_code == 0, result.stderr
    assert (here / "out.csv").read_text() == "y\n3.0\n3.0\n"


def test_one_row_and_more_labels_than_rows(here):
    (here / "in.csv").write_text("y\n3\n")
    result = randomized(labels="0:9")
    assert result.exit_code == 0, result.stderr
    assert facts(result)["rows"] == "1"


def test_a_prior_that_drowns_in_noise_is_uniform_and_says_so(here, monkeypatch):
    monkeypatch.setattr("optrand.sampling.priors.discrete_laplace", lambda _, count, **__: (-(10**6),) * count)
    result = randomized()
    assert result.exit_code == 0, result.stderr
    assert "so it is uniform" in facts(result)["prior"]
    assert load(here / "out.csv.mechanism.json").problem.prior.tolist() == [1 / 3] * 3


def test_the_first_line_of_help_lists_the_exit_codes():
    for command in ([], ["solve"], ["verify"], ["randomize"], ["sweep"], ["plot"]):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert "3  verification failed" in result.stdout


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"optrand {version('optrand')}\n"


# Wrong usage and wrong input: exit code 2, and nothing written


@pytest.mark.parametrize(
    "epsilon", ["nan", "inf", "-inf", "0", "-0.0", "-1", "one", "", "700.1", "1e400", "1,5", "True", "1_0", "٣"]
)
@pytest.mark.parametrize("command", ["randomize", "solve", "prior"])
def test_an_epsilon_without_meaning_is_refused(here, command, epsilon):
    before = listing(here)
    if command == "randomize":
        result = randomized(epsilon=epsilon)
    elif command == "prior":
        result = randomized("--prior-epsilon", epsilon)
    else:
        result = run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", epsilon, "-o", "m.json")
    assert result.exit_code == WRONG_INPUT
    assert "epsilon is" in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("52:0", "run downwards: write the lower end first, 0:52"),
        ("", "is not a number"),
        ("0,0", "repeats 1 value"),
        ("0,-0.0", "repeats 1 value"),
        ("0:inf", "beyond the range of floats"),
        ("nan", "beyond the range of floats"),
        ("0:1_0", "is not a number"),
        ("1,2_0", "is not a number"),
        ("0:٣", "is not a number"),
        ("0,9007199254740993", "beyond 2**53"),
        ("@nowhere", "cannot be read"),
    ],
)
def test_labels_without_meaning_are_refused(here, labels, message):
    before = listing(here)
    for result in (
        randomized(labels=labels),
        run("solve", "--labels", labels, "--prior", "prior.csv", "--epsilon", "1", "-o", "m.json"),
    ):
        assert result.exit_code == WRONG_INPUT
        assert message in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0,nan\n1,1\n", "beyond the range of floats"),
        ("0,1\n1,-1\n", "negative"),
        ("0,0\n1,0\n2,0\n", "no count above 0"),
        ("0,1\n7,1\n", "is not declared"),
        ("0,1\n0,1\n", "comes twice"),
        ("0,1\n1\n", "expected two"),
        ("0,1e-310\n1,1\n", "too small for a normal float"),
        ("1_0,1\n1,1\n", "the label in line 1 of prior.csv is not a number"),
        ("0,1_0\n1,1\n", "the count in line 1 of prior.csv is not a number"),
        ("1e310,1\n1,1\n", "the label in line 1 of prior.csv is beyond the range of floats"),
        ("", "no count above 0"),
        (None, "cannot be read"),
    ],
)
def test_a_prior_without_meaning_is_refused(here, content, message):
    if content is None:
        (here / "prior.csv").unlink()
    else:
        (here / "prior.csv").write_text(content)
    before = listing(here)
    for result in (
        randomized("--public-prior", "prior.csv"),
        run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1", "-o", "m.json"),
    ):
        assert result.exit_code == WRONG_INPUT
        assert message in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"id,x\n1,{HIDDEN}\n", "has no column 'y'"),
        (f"{HIDDEN},1\n2,3\n", "has no column 'y'"),
        (f"y,y\n1,{HIDDEN}\n", "2 columns named 'y'"),
        (f"y\n{HIDDEN}x\n1\n", "at least one label in column 'y' is missing or no finite number"),
        (f"id,y\n1,\n2,{HIDDEN}\n", "at least one label in column 'y' is missing or no finite number"),
        ("id,y\n", "no rows"),
        ("", "is empty"),
        (f"id,y\n1,{HIDDEN},2\n", "at least one row with more or fewer cells"),
        (f'id,y\n"1,{HIDDEN}\n', "never closed"),
        (f"id,y\n1,{HIDDEN}\n2,1\n", "at least one label is not among the 3 declared ones"),
        ("id,y\n1,0.5\n2,1\n", "at least one label is not among the 3 declared ones"),
    ],
)
def test_a_table_without_meaning_is_refused(here, content, message):
    (here / "in.csv").write_text(content)
    before = listing(here)
    result = randomized()
    assert result.exit_code == WRONG_INPUT
    assert message in one_line(result)
    assert listing(here) == before


def test_the_same_label_written_twice_is_one_label(here):
    (here / "in.csv").write_text("y\n1\n1.0\n 1e0\n+01\n")
    result = randomized("--public-prior", "prior.csv")
    assert result.exit_code == 0, result.stderr
    assert facts(result)["rows"] == "4"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_outputs_that_may_not_be_written_are_refused(here, force):
    (here / "hard.csv").hardlink_to(here / "in.csv")
    (here / "link.csv").symlink_to(here / "in.csv")
    (here / "folder.csv").mkdir()
    before = listing(here)
    for target, message in (
        ("in.csv", "is the input itself"),
        ("./in.csv", "is the input itself"),
        ("hard.csv", "is the input itself"),
        ("link.csv", "symbolic link"),
        ("folder.csv", "not a regular file"),
        ("nowhere/out.csv", "not a folder"),
        ("out.xlsx", "of no known kind"),
    ):
        result = randomized(*force, target=target)
        assert result.exit_code == WRONG_INPUT
        assert message in one_line(result)
    for source, message in (("nowhere.csv", "is not there"), ("folder.csv", "a folder, not a file")):
        result = randomized(*force, source=source)
        assert result.exit_code == WRONG_INPUT
        assert message in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--public-prior", "prior.csv", "--prior-epsilon", "0.1"], "not both"),
        (["--prior-epsilon", "1"], "nothing is left for the labels"),
        (["--outputs", "grid:1"], "expected an integer of at least 2"),
    ],
)
def test_options_that_do_not_fit_are_refused(here, more, message):
    before = listing(here)
    result = randomized(*more)
    assert result.exit_code == WRONG_INPUT
    assert message in one_line(result)
    assert listing(here) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["randomize", "in.csv", "out.csv"],
        ["randomize", "in.csv", "out.csv", "--label", "y", "--labels", "0:2"],
        ["randomize", "in.csv", "out.csv", "--label", "y", "--labels", "0:2", "--epsilon", "1", "--seed", "1"],
        ["randomize", "in.csv", "out.csv", "--label", "y", "--labels", "0:2", "--epsilon", "1", "--mesh", "9"],
        ["solve", "--labels", "0:2", "--epsilon", "1", "-o", "m.json"],
        ["verify"],
        ["unheard-of"],
        [],
    ],
)
def test_wrong_usage_ends_with_two(here, arguments):
    before = listing(here)
    assert run(*arguments).exit_code == WRONG_INPUT
    assert listing(here) == before


def test_solve_and_plot_keep_what_exists(saved, here):
    picture = here / "m.png"
    picture.write_text("precious")
    before = listing(here)
    solved = run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1", "-o", "m.json")
    plotted = run("plot", "m.json", "-o", "m.png")
    for result in (solved, plotted):
        assert result.exit_code == WRONG_INPUT
        assert "exists" in one_line(result)
    assert run("plot", saved, "-o", "m.unknown").exit_code == WRONG_INPUT
    assert listing(here) == before
    assert run("plot", "m.json", "-o", "m.png", "--force").exit_code == 0
    forced = run("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "2", "-o", "m.json", "--force")
    assert forced.exit_code == 0
    assert load(saved).epsilon == 2


# Verification that fails: exit code 3


def tampered(path, **changes):
    """The file with fields changed and a digest that is right again."""

    def canonical(document):
        return (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode()

    document = {**json.loads(path.read_bytes()), **changes}
    del document["digest"]
    path.write_bytes(canonical({**document, "digest": "sha256:" + hashlib.sha256(canonical(document)).hexdigest()}))


def test_a_table_that_is_not_private_fails_even_with_a_right_digest(saved):
    # On a grid the file holds a table; on the line it holds arcs, which cannot but be private.
    assert solved("--outputs", "grid:9", "--force").exit_code == 0
    document = json.loads(saved.read_bytes())
    weights = [[int(weight) for weight in row] for row in document["weights"]]
    # Move nine tenths of one probability to another output of the same row: totals stay, a ratio breaks.
    moved = weights[0][0] * 9 // 10
    weights[0][0] -= moved
    weights[0][-1] += moved
    tampered(saved, weights=[[str(weight) for weight in row] for row in weights])
    for result in (run("verify", saved), run("plot", saved, "-o", saved.with_name("m.png"))):
        assert result.exit_code == UNVERIFIED
        assert "not be private" in one_line(result)
    assert not saved.with_name("m.png").exists()


def test_a_biased_mechanism_fails(saved):
    outputs = json.loads(saved.read_bytes())["outputs"]
    tampered(saved, outputs=[*outputs[:-1], outputs[-1] * 1.001])
    result = run("verify", saved)
    assert result.exit_code == UNVERIFIED
    assert "biased by up to" in one_line(result)
    assert "verified\n" not in result.stdout


def test_arcs_that_do_not_add_up_fail(saved):
    arcs = json.loads(saved.read_bytes())["arcs"]
    tampered(saved, arcs={**arcs, "masses": [*arcs["masses"][:-1], "1"]})
    for result in (run("verify", saved), run("plot", saved, "-o", saved.with_name("m.png"))):
        assert result.exit_code == UNVERIFIED
        assert "does not hold a private mechanism" in one_line(result)
    assert not saved.with_name("m.png").exists()


def test_damaged_files_and_newer_schemas_fail(saved):
    content = saved.read_bytes()
    for damage, message in (
        (content[: len(content) // 2], "not JSON"),
        (content.replace(b'"epsilon":1.0', b'"epsilon":1.5'), "digest"),
        (content.replace(b'"schema":1', b'"schema":2'), "newer optrand"),
        (b"{}", "not an optrand mechanism"),
    ):
        assert damage != content
        saved.write_bytes(damage)
        result = run("verify", saved)
        assert result.exit_code == UNVERIFIED
        assert message in one_line(result)


def test_a_gap_that_is_not_reached_fails(saved):
    tampered(saved, dual=None)
    assert run("verify", saved).exit_code == 0
    result = run("verify", saved, "--gap", "1e-6")
    assert result.exit_code == UNVERIFIED
    assert "more than the 1e-06 that was required" in one_line(result)
    assert "unknown: no bound was proven" in result.stdout
    for gap in ("-1", "nan", "inf", "1_0", "", "small"):
        refused = run("verify", saved, "--gap", gap)
        assert refused.exit_code == WRONG_INPUT
        assert "expected a share of at least 0" in one_line(refused)


def test_a_mechanism_that_is_not_there_is_wrong_input(here):
    for name, message in (("nowhere.json", "is not there"), (".", "a folder, not a file")):
        for result in (run("verify", name), run("plot", name, "-o", "m.png")):
            assert result.exit_code == WRONG_INPUT
            assert message in one_line(result)
    assert not (here / "m.png").exists()


# Errors of the run: exit code 1


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SolverFailed("the backend gave up"), FAILED, "the backend gave up"),
        (NotCertified("no useful bound"), UNVERIFIED, "no useful bound"),
        (InvalidFile("damaged"), UNVERIFIED, "damaged"),
        (MemoryError(), FAILED, "not enough memory"),
        (PermissionError(13, "Permission denied", "out.csv"), FAILED, "Permission denied (out.csv)"),
        (ValueError(f"label {HIDDEN} surprised us"), FAILED, "internal error: ValueError in test_cli.py:"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_of_a_run_are_one_line_without_secrets(here, monkeypatch, error, code, message):
    def fails(_):
        raise error

    monkeypatch.setattr(optrand.release.job, "solve", fails)
    before = listing(here)
    result = randomized()
    assert result.exit_code == code
    assert message in one_line(result)
    (here / "out.csv.prior.csv").unlink()
    assert listing(here) == before


def test_a_full_disk_ends_with_one(here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = listing(here)
    released = randomized()
    for result in (released, solved()):
        assert result.exit_code == FAILED
        assert one_line(result).startswith("error: No space left on device")
    assert "has spent 0.05 of the budget of 1.0; it was not kept" in released.stderr
    assert "spent" not in solved().stderr
    assert listing(here) == before


# The command itself


SHORT = ["--label", "y", "--labels", "0:2", "--epsilon", "1"]


def module(*arguments, **options):
    command = [sys.executable, "-m", "optrand", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_module_runs_and_reports_without_a_traceback(here):
    result = module("randomize", "in.csv", "in.csv", *SHORT, "--dataset", "d", cwd=here)
    assert result.returncode == WRONG_INPUT
    assert result.stderr == "error: in.csv is the input itself: choose another name for the output\n"
    assert result.stdout == ""


def test_a_disk_that_is_really_full_leaves_nothing_but_the_prior(here):
    """A limit on the size of files, which the operating system enforces, in place of a full disk."""
    (here / "in.csv").write_text("note,y\n" + f"{'x' * 100},1\n" * 5000)
    before = listing(here)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    arguments = ["in.csv", "out.csv", *SHORT, "--no-ledger"]
    result = module("randomize", *arguments, cwd=here, preexec_fn=limit)
    assert result.returncode == FAILED
    assert result.stderr.startswith("error: File too large; the prior was drawn before this and has spent 0.024")
    assert result.stderr.count("\n") == 1
    assert set(listing(here)) - set(before) == {Path("out.csv.prior.csv")}
    again = [*arguments, "--paid-prior", "out.csv.prior.csv"]
    assert module("randomize", *again, cwd=here).returncode == 0


def test_the_bundled_table_is_released_with_a_proof(here):
    arguments = ["--label", "weeks", "--labels", "0:52", "--epsilon", "1"]
    result = module("randomize", weeks_worked_path(), "weeks.csv", *arguments, cwd=here)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    verified = module("verify", "weeks.csv.mechanism.json", "--gap", "1e-12", cwd=here)
    assert verified.returncode == 0, verified.stderr
    checked = [sys.executable, "-m", "optrand.checker", "weeks.csv.mechanism.json"]
    assert subprocess.run(checked, cwd=here, check=False, capture_output=True).returncode == 0
    lines = (here / "weeks.csv").read_text().splitlines()
    assert len(lines) == 20_001
    assert lines[0] == "age,class_of_worker,education,marital_status,weeks"


def test_the_bundled_counts_are_a_prior_for_solve(here):
    for outputs, value in (("grid:52", 1348.3746), ("line", 1277.8781)):
        arguments = ["--labels", "0:52", "--prior", weeks_worked_counts_path(), "--epsilon", "1", "--outputs", outputs]
        result = run("solve", *arguments, "-o", "weeks.json", "--force")
        assert result.exit_code == 0, result.stderr
        # The optimum of the linear program on the paper's grid by another solver, and that of the real line by cones.
        mechanism = load(here / "weeks.json")
        assert optrand.certificates.certificate.certify(mechanism).upper == pytest.approx(value, abs=5e-4)
