"""The command line: its output, its exit codes, and that it leaves nothing behind when it fails."""

import csv
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
import pandas as pd
import pyarrow as pa
import pytest
from asserting import by_case
from commands import invoke
from pyarrow import parquet

import optrand
import optrand.checker
import optrand.studies._many
from optrand import Interval, feasible_output_set, regression, solve, unbiased_regression
from optrand.base._numerals import format_above
from optrand.cli import FAILED, UNVERIFIED, WRONG_INPUT
from optrand.data import weeks_worked_counts_path, weeks_worked_path
from optrand.errors import InvalidFile, NotCertified, SolverFailed
from optrand.mechanism import Mechanism
from optrand.mechanism._file_format import columns_document
from optrand.model._problem import Line
from optrand.model._table import Table
from optrand.plotting import _saving, report
from optrand.programs._mechanism import load
from optrand.release import load_release
from optrand.studies._many import Sweep
from tests.tables import resealed

GAP = 1e-9
"""Gap that every small problem must verify."""

HIDDEN = "9173"
"""A label that no message may repeat."""


def listing(folder):
    """Every file below a folder, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def one_line(result):
    """The error of a command that failed: one line, no traceback, no secret."""
    text = "".join(line for line in result.stderr.splitlines(keepends=True) if not line.startswith("note: "))
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
    solved(code=0)
    return here / "m.json"


def randomized(*more, source="in.csv", target="out.csv", labels="0:2", epsilon="1", column="y", code=None):
    declared = ["--column", column, "--labels", labels, "--epsilon", epsilon, "--no-ledger"]
    return invoke("randomize", source, target, *declared, *more, code=code)


def solved(*more, epsilon="1", output="m.json", code=None):
    declared = ["--labels", "0:2", "--prior", "prior.csv", "--epsilon", epsilon]
    return invoke("solve", *declared, "-o", output, *more, code=code)


def swept(*more, epsilon="1", code=None):
    return invoke("sweep", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", epsilon, *more, code=code)


def read_labels(path, label):
    with Path(path).open() as stream:
        return np.array([float(row[label]) for row in csv.DictReader(stream)])


def facts(result):
    """The printed lines, by their first words."""
    lines = [line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line]
    return {name: fact.strip() for name, fact in lines}


# The commands
def test_randomize_prints_its_summary_and_leaves_two_files(here):
    result = randomized(code=0)
    told = facts(result)
    assert (told["rows"], told["labels"]) == ("200", "3 declared")
    assert told["total epsilon"] == "1.0: prior 0.05, labels 0.95"
    assert told["prior"] == "estimated privately"
    mechanism = load_release("out.csv.release.json").mechanism
    assert told["randomizer"].startswith(f"Mechanism, {mechanism.n} outputs from {mechanism.outputs[0]:g}")
    assert mechanism.problem.outputs == Line()
    assert float(told["largest bias"]) < 1e-12
    assert float(told["verified gap"]) <= GAP
    assert 0.99 < float(told["realised epsilon"].split()[0]) <= 1.0
    assert told["record"] == "out.csv.release.json"
    assert set(read_labels("out.csv", "y")) <= set(mechanism.outputs)
    loss = optrand.certify(mechanism).upper
    assert float(told["noisy label loss"].split()[0]) == pytest.approx(loss, rel=1e-5)
    assert sorted(path.name for path in here.iterdir()) == ["in.csv", "out.csv", "out.csv.release.json", "prior.csv"]


def test_the_record_states_the_total_wherever_it_is_read(here, monkeypatch):
    few = dict(list(_saving.DRAWINGS.items())[:1])
    monkeypatch.setattr(_saving, "DRAWINGS", few)
    monkeypatch.setattr(report, "DRAWINGS", few)
    randomized(code=0)
    total = "total epsilon  1.0: prior 0.05, labels 0.95"
    commands = {
        "verify": ("verify", "out.csv.release.json", "--table", "out.csv", "--gap", "1e-9"),
        "estimate": ("estimate", "out.csv.release.json", "out.csv"),
        "plot": ("plot", "out.csv.release.json", "-o", "m.svg"),
        "page": ("plot", "out.csv.release.json", "-o", "r.html"),
        "gallery": ("plot", "out.csv.release.json", "-o", "pictures"),
    }
    said = {}
    for name, arguments in commands.items():
        result = invoke(*arguments, code=0)
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
        result = invoke(*arguments, code=UNVERIFIED)
        assert "is not the table of this release" in result.stderr
        assert "are taken by optrand.estimate in Python" in result.stderr


def test_what_cannot_be_estimated_is_noted_and_its_record_says_so(here):
    (here / "public.csv").write_text("label,count\n0,97\n1,1\n2,1\n")
    result = randomized("--bias-penalty", "0", "--prior", "public.csv", code=0)
    assert "warning: no histogram, no loss of a label" in result.stderr
    estimated = invoke("estimate", "out.csv.release.json", "out.csv")
    assert estimated.stdout.count("not estimated") == 2
    # A command has no functions to name.
    for told in (result.stdout, result.stderr, estimated.stdout):
        assert "optrand." not in told
        assert "average(" not in told
    verified = invoke("verify", "out.csv.release.json", "--table", "out.csv")
    assert "total epsilon  1.0: prior 0.0, labels 1.0" in verified.stdout


def test_estimates_of_names_are_csv(here):
    names = ["a,b", 'say "c"', "d"]
    with (here / "in.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["y"], *([name] for name in names * 20)])
    (here / "names").write_text("\n".join(names))
    randomized(labels="@names", code=0)
    result = invoke("estimate", "out.csv.release.json", "out.csv")
    lines = result.stdout.splitlines()
    rows = list(csv.DictReader(lines[lines.index("label,share,standard error") :]))
    assert [row["label"] for row in rows] == names
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("labels", [[0, 1, 2], [True, False]], ids=str)
def test_estimates_of_a_release_in_memory_say_that_no_file_was_compared(here, labels):
    frame = pd.DataFrame({"y": labels * 40})
    noisy, record = optrand.randomize(frame, 1.0, column="y", labels=labels, ledger=None)
    noisy.to_csv("noisy.csv")
    record.save("noisy.release.json")
    result = invoke("estimate", "noisy.release.json", "noisy.csv", "--json", code=0)
    answer = json.loads(result.stdout)
    assert answer["table"].startswith("not compared: the record is of a release in memory")
    expected = optrand.estimate.histogram(noisy["y"], record).shares
    assert [one["share"] for one in answer["histogram"]] == pytest.approx(expected.tolist(), abs=1e-12)
    refused = invoke("verify", "noisy.release.json", "--table", "noisy.csv")
    assert "there is no file to compare with" in one_line(refused)
    (here / "noisy.csv").write_text("y\n0.123\n")
    invoke("estimate", "noisy.release.json", "noisy.csv", code=WRONG_INPUT)


@pytest.mark.usefixtures("here")
def test_the_record_of_several_columns_is_named_as_such():
    frame = pd.DataFrame({"a": [0, 1] * 20, "b": ["x", "y"] * 20})
    labels = {"a": [0, 1], "b": ["x", "y"]}
    noisy, record = optrand.randomize(frame, 1.0, column=["a", "b"], labels=labels, ledger=None)
    record.save("all.json")
    for command in (("verify",), ("plot", "-o", "m.png"), ("estimate", "noisy.csv")):
        result = invoke(command[0], "all.json", *command[1:], code=WRONG_INPUT)
        told = one_line(result)
        assert "is the record of several columns, 'a', 'b'" in told
        assert "optrand.load_release(path)['a'].save(...)" in told
    load_release("all.json")["a"].save("a.json")
    noisy.to_csv("noisy.csv")
    for arguments in (("verify", "a.json"), ("estimate", "a.json", "noisy.csv")):
        invoke(*arguments, code=0)


@pytest.mark.parametrize("epsilon", ["0.3", "2.7"])
def test_numbers_are_rounded_to_the_side_on_which_they_are_true(here, epsilon):
    told = facts(solved("--bias-penalty", "1", epsilon=epsilon))
    kept = {name: fact for name, fact in told.items() if name != "mechanism"}
    assert facts(invoke("verify", "m.json")).items() >= kept.items()
    proof = optrand.certify(load(here / "m.json"))
    low, high = re.fullmatch("between (.*) and (.*)", told["optimal value"]).groups()
    assert Fraction(low) <= Fraction(proof.lower) <= Fraction(proof.upper) <= Fraction(high)
    assert float(high) - float(low) <= (proof.upper - proof.lower) + 3e-9 * proof.upper
    assert Fraction(told["verified gap"]) >= Fraction(proof.gap)
    assert Fraction(told["largest bias"]) >= Fraction(proof.bias)
    spent, asked = re.match("(.*) of (.*) \\(", told["realised epsilon"]).groups()
    assert asked == repr(float(epsilon))
    assert Fraction(spent) >= Fraction(proof.epsilon) or spent == asked


def test_solve_places_few_outputs(here):
    """At most the given number, or as few as lose at most a share. The printed excess is rounded up."""
    line = optrand.certify(solve(unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)))
    for text, outputs, share in (("adaptive:3", 3, math.inf), ("adaptive:0.2", 4, 0.2)):
        result = solved("--outputs", text, "--force", code=0)
        mechanism = load(here / "m.json")
        assert mechanism.n <= outputs
        loss = optrand.certify(mechanism).upper
        excess = loss / line.lower - 1
        assert excess <= share
        count, told = re.fullmatch(r"(\d+): at most (.*) % above .*", facts(result)["placed outputs"]).groups()
        assert int(count) == mechanism.n
        assert excess * 100 <= float(told) * (1 + 1e-9) <= excess * 101 + 1e-6


def test_solve_places_knots_among_the_labels(here):
    (here / "many.csv").write_text("label,count\n" + "".join(f"{y},{41 - y}\n" for y in range(41)))
    command = ["solve", "--labels", "0:40", "--prior", "many.csv", "--epsilon", "1", "-o", "m.json", "--knots", "5"]
    result = invoke(*command, code=0)
    knots = load(here / "m.json").labels
    assert (knots.size, knots[0], knots[-1]) == (5, 0.0, 40.0)
    # Half the variance (y - low)(high - y) of rounding, by its definition.
    high = np.searchsorted(knots, np.arange(41)).clip(1)
    variances = (np.arange(41) - knots[high - 1]) * (knots[high] - np.arange(41))
    added = ((41 - np.arange(41)) * variances).sum() / 2 / 861
    told = facts(result)
    assert float(told["loss by rounding"].split(",")[0]) == pytest.approx(added, rel=1e-5)
    alone = load(here / "m.json").certificate.upper
    assert told["labels"] == "41, rounded to the knots below"
    assert told["optimal value"].endswith(" for the knots, without rounding")
    assert float(told["total loss"].split(":")[0]) == pytest.approx(alone + added, rel=1e-5)
    # The loss is half a mean square.
    noise = math.sqrt(2 * (alone + added))
    assert float(told["noise of one label"].split()[2]) == pytest.approx(noise, rel=1e-5)
    assert float(told["noise of a mean"].split()[2]) == pytest.approx(noise / 100, rel=1e-5)


@by_case(
    "command, more, message",
    (solved, ["--outputs", "adaptive:0"], "a share of the optimum above 0"),
    (solved, ["--outputs", "adaptive:few"], "a number of outputs, such as adaptive:12"),
    (solved, ["--outputs", "adaptive:12", "--knots", "5"], "use one of them"),
    (solved, ["--knots", "1"], "a whole number of at least 2"),
    (solved, ["--knots", "2", "--bias-penalty", "1"], "leave out --bias-penalty"),
    (swept, ["--outputs", "adaptive:12"], "optrand solve"),
    (swept, ["-o", "prior.csv", "--force"], "is the input itself"),
    (solved, ["-o", "prior.csv", "--force"], "is the input itself"),
    (swept, ["-o", "kept.csv"], "exists"),
    (solved, ["-o", "kept.csv"], "exists"),
    (swept, ["-o", "nowhere/sweep.csv"], "not a folder"),
    (solved, ["-o", "nowhere/m.json"], "not a folder"),
)
def test_solve_and_sweep_refuse_what_has_no_meaning_or_would_replace_a_file(here, command, more, message):
    (here / "kept.csv").write_text("precious")
    before = listing(here)
    told = one_line(command(*more, code=WRONG_INPUT))
    assert message in told
    assert ("--force" in told) == (message == "exists")
    assert listing(here) == before


ALLOWED = {
    "line": (Line(), "anywhere on the real line"),
    "grid:9": (feasible_output_set([0, 1, 2], 1.0, 9), "of 9 values from -1.7"),
    "interval:-1.5:1e1": (Interval(-1.5, 10), "anywhere from -1.5 to 10.0"),
}


@pytest.mark.parametrize(("outputs", "penalty"), [("line", "inf"), ("grid:9", "2.5"), ("interval:-1.5:1e1", "0")])
def test_outputs_and_bias_penalty_are_those_of_the_problem(here, outputs, penalty):
    allowed, words = ALLOWED[outputs]
    problem = regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, bias_penalty=float(penalty), outputs=allowed)
    options = ["--outputs", outputs, "--bias-penalty", penalty]
    stated = solved(*options)
    assert f", {words}" in facts(stated)["outputs"]
    for result, read in (
        (stated, lambda: load(here / "m.json")),
        (randomized("--prior", "prior.csv", *options), lambda: load_release("out.csv.release.json").mechanism),
    ):
        assert result.exit_code == 0, result.stderr
        mechanism = read()
        assert mechanism.problem == problem
        assert (float(facts(result)["largest bias"]) > 1e-3) == (penalty != "inf")
        assert float(facts(result)["verified gap"]) <= GAP
    # The penalty is no part of the loss.
    loss = optrand.certify(Mechanism(replace(problem, bias_penalty=0.0), mechanism.table)).upper
    assert float(facts(result)["noisy label loss"].split()[0]) == pytest.approx(loss, rel=1e-5)


def test_an_interval_without_an_unbiased_randomizer_is_refused_with_the_smallest_that_has_one(here):
    """At epsilon log(3) the outputs must reach beyond labels 0 and 2 by 2 / (3 - 1) = 1 on either side."""
    epsilon, before = repr(math.log(3)), listing(here)
    for interval in ("-0.99:9", "-9:2.99", "0:2"):
        options = ["--outputs", f"interval:{interval}", "--prior", "prior.csv"]
        for command in (solved, randomized):
            message = one_line(command(*options, epsilon=epsilon, code=WRONG_INPUT))
            low, high = map(
                float, re.search(r"cannot be unbiased.*from (\S+) to (\S+) or further would do\n$", message).groups()
            )
            assert (low, high) == pytest.approx((-1, 3), rel=1e-12)
    assert listing(here) == before
    solved("--outputs", f"interval:{low!r}:{high!r}", epsilon=epsilon, code=0)


# Sweeps
def test_sweep_prints_a_row_for_every_pair_and_saves_all_columns(here):
    result = swept("--bias-penalty", "0,5,inf", "-o", "sweep.csv", epsilon="0.5,1:2:3", code=0)
    header, *lines = result.stdout.splitlines()
    assert "prior.csv is taken as public" in result.stderr
    assert re.split(" {2,}", header.strip())[:4] == ["epsilon", "bias penalty", "value", "gap"]
    expected = [(e, p) for e in (0.5, 1, 1.5, 2) for p in (0, 5, math.inf)]
    assert [tuple(map(float, line.split()[:2])) for line in lines] == expected
    with (here / "sweep.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [(float(row["epsilon"]), float(row["bias_penalty"])) for row in saved] == expected
    assert tuple(saved[0]) == Sweep(()).columns
    assert all(row["status"] == "certified" and float(row["gap"]) <= GAP for row in saved)
    # What is proven is rounded up.
    proven = ("value", "gap", "variance", "squared_bias")
    assert [line.split()[2:6] for line in lines] == [
        [format_above(float(row[each]), 6) for each in proven] for row in saved
    ]
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 2.0)
    assert float(saved[-1]["value"]) == pytest.approx(solve(problem).value, rel=GAP)


def test_a_sweep_that_cannot_be_saved_is_not_solved(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = swept("-o", "sweep.parquet")
    assert result.exit_code == 1
    assert "pyarrow is not installed: pip install 'optrand[release]'" in result.stderr
    assert not result.stdout
    assert not (here / "sweep.parquet").exists()


def test_a_sweep_replaces_files_by_force(here):
    (here / "rows.csv").write_text("old")
    swept("-o", "rows.csv", "--force", code=0)
    assert (here / "rows.csv").read_text().startswith("epsilon,")


def test_a_sweep_on_a_grid_keeps_the_widest_of_them(here):
    swept("--outputs", "grid:40", "-o", "sweep.csv", epsilon="2,0.7", code=0)
    grid = feasible_output_set([0, 1, 2], 0.7, 40)
    for row in csv.DictReader((here / "sweep.csv").read_text().splitlines()):
        problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], float(row["epsilon"]), outputs=grid)
        assert float(row["value"]) == pytest.approx(solve(problem).value, rel=GAP)


@by_case(
    "interval, epsilon, statuses",
    ("-2:4", "0.5,1", ["infeasible", "certified"]),
    ("0:2", "1", ["infeasible"]),
    ("0:2", "1,2", ["infeasible", "infeasible"]),
)
def test_rows_without_an_answer_say_why_and_all_are_printed(here, interval, epsilon, statuses):
    result = swept("--outputs", f"interval:{interval}", "-o", "rows.csv", epsilon=epsilon, code=0)
    rows = list(csv.DictReader((here / "rows.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == statuses
    assert result.stdout.count("infeasible") == statuses.count("infeasible")
    for row in rows:
        words = f"note: epsilon {float(row['epsilon']):g}, bias penalty inf: the lowest label, 0, cannot be unbiased"
        assert (words in result.stderr) == (row["status"] == "infeasible")


def test_a_sweep_with_a_row_that_nothing_proves_ends_with_three_and_keeps_the_others(here, monkeypatch):
    def fails(problem, _):
        if problem.epsilon == 2:
            raise NotCertified("no useful bound")
        return solve(problem)

    monkeypatch.setattr(optrand.studies._many, "solve", fails)
    result = swept("-o", "sweep.csv", epsilon="1,2", code=UNVERIFIED)
    assert "1 of 2 problems have no proof" in one_line(result)
    assert "note: epsilon 2, bias penalty inf: no useful bound" in result.stderr
    rows = list(csv.DictReader((here / "sweep.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["certified", "failed"]


@pytest.mark.parametrize("more", [[], ["--randomizer", "rr"]], ids=["optimal", "rr"])
def test_the_owner_may_have_what_is_wrong_counted_on_the_standard_error(here, more):
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
    assert "nothing was released or spent" in fine.stderr
    assert set(listing(here)) == set(before)


def test_the_version_is_that_of_the_package():
    assert invoke("--version").stdout == f"optrand {version('optrand')}\n"


@by_case("word, command", ("gallery", "plot"), ("budget", "ledger"), ("check", "verify"), ("verfy", "verify"))
def test_a_command_is_suggested_for_another_word(word, command):
    result = invoke(word, code=WRONG_INPUT)
    assert result.stderr.endswith(f"No such command '{word}'. Did you mean '{command}'?\n")


@pytest.mark.usefixtures("here")
def test_a_column_that_is_not_there_is_answered_by_the_nearest_name():
    assert "its header names 2 columns (did you mean 'id'?)" in one_line(randomized(column="idd"))
    assert one_line(randomized(column="weeks")).endswith("its header names 2 columns\n")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("labels", ["True,False", "true,false"])
def test_booleans_of_parquet_have_either_spelling(labels):
    table = pa.table({"y": [True, False, False] * 20})
    parquet.write_table(table, "in.parquet")
    randomized(source="in.parquet", target="out.parquet", labels=labels, epsilon="30", code=0)
    assert parquet.read_table("out.parquet").equals(table)
    told = json.loads(invoke("estimate", "out.parquet.release.json", "out.parquet", "--json").stdout)
    assert [one["share"] for one in told["histogram"]] == pytest.approx([1 / 3, 2 / 3], abs=1e-9)


def test_an_input_that_is_not_there_is_wrong_input_whatever_the_target(here):
    (here / "out.csv").write_text("kept")
    randomized("--force", source="none.csv", code=WRONG_INPUT)
    assert (here / "out.csv").read_text() == "kept"


def test_a_column_may_be_named_in_another_encoding(here):
    (here / "in.csv").write_bytes(b"a,\xff\n1,2\n2,1\n")
    randomized(column="\udcff", code=0)
    assert (here / "out.csv").read_bytes().startswith(b"a,\xff\n1,")


def test_numbers_with_a_leading_zero_are_names(here):
    (here / "in.csv").write_text("y\n" + "01234\n90210\n" * 20)
    result = randomized(labels="01234,90210", epsilon="30", code=0)
    assert "note: labels with a leading zero are taken as names" in result.stderr
    assert load_release("out.csv.release.json").labels == ("01234", "90210")
    assert (here / "out.csv").read_bytes() == (here / "in.csv").read_bytes()
    randomized("--task", "regression", "--force", labels="01234,90210", code=0)
    assert load_release("out.csv.release.json").labels == (1234.0, 90210.0)


def test_plot_and_solve_replace_a_file_by_force_alone(saved, here):
    picture = here / "m.png"
    picture.write_text("precious")
    before = listing(here)
    told = one_line(invoke("plot", saved, "-o", picture, code=WRONG_INPUT))
    assert re.search("exists.*--force", told)
    invoke("plot", saved, "-o", "m.unknown", code=WRONG_INPUT)
    assert listing(here) == before
    invoke("plot", saved, "-o", picture, "--force", code=0)
    solved("--force", epsilon="2", code=0)
    assert load(saved).epsilon == 2


# Verification that fails: exit code 3
def tampered(path, **changes):
    """The file with fields changed and a digest that is right again."""
    document = json.loads(resealed({**json.loads(path.read_bytes()), **changes}))
    path.write_text(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")


def test_a_table_that_is_not_private_fails_even_with_a_right_digest(saved):
    mechanism = load(saved)
    weights = mechanism.weights.tolist()
    # Move nine tenths of one probability to another output of the same row: totals stay, a ratio breaks.
    moved = weights[0][0] * 9 // 10
    weights[0][0] -= moved
    weights[0][-1] += moved
    moved_table = Table.of_rows(mechanism.labels, mechanism.outputs, weights)
    tampered(saved, columns=columns_document(moved_table))
    for result in (invoke("verify", saved), invoke("plot", saved, "-o", saved.with_name("m.png"))):
        assert result.exit_code == UNVERIFIED
        assert "not be private" in one_line(result)
    assert not saved.with_name("m.png").exists()


def test_a_biased_mechanism_fails(saved):
    outputs = json.loads(saved.read_bytes())["outputs"]
    tampered(saved, outputs=[*outputs[:-1], outputs[-1] * 1.001])
    result = invoke("verify", saved, code=UNVERIFIED)
    assert "biased by up to" in one_line(result)
    assert "verified\n" not in result.stdout


DAMAGE = {
    "cut": (lambda content: content[: len(content) // 2], "neither a saved mechanism"),
    "edited": (lambda content: re.sub(rb'"epsilon":"?1\.0"?', b'"epsilon":1.5', content), "digest"),
    "newer": (lambda content: re.sub(rb'"schema":\d+', b'"schema":99', content), "newer optrand"),
    "another": (lambda _: b"{}", "neither a saved mechanism"),
}


@pytest.mark.parametrize("name", ["m.json", "out.csv.release.json"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_mechanisms_and_records_fail(here, name, damage):
    assert (solved() if name == "m.json" else randomized()).exit_code == 0
    change, message = DAMAGE[damage]
    path = here / name
    content = path.read_bytes()
    path.write_bytes(change(content))
    assert path.read_bytes() != content
    for result in (invoke("verify", name), invoke("plot", name, "-o", "picture.png")):
        assert result.exit_code == UNVERIFIED
        assert message in one_line(result)
    assert not (here / "picture.png").exists()


def test_a_gap_that_is_not_reached_fails(saved):
    tampered(saved, dual=None)
    invoke("verify", saved, code=0)
    result = invoke("verify", saved, "--gap", "1e-6", code=UNVERIFIED)
    assert "more than the 1e-06 that was required" in one_line(result)
    assert "unknown: no bound was proven" in result.stdout
    for gap in ("-1", "nan", "inf", "1_0", "", "small"):
        refused = invoke("verify", saved, "--gap", gap, code=WRONG_INPUT)
        assert "expected a share of at least 0" in one_line(refused)


# Errors of the run: exit code 1
@by_case(
    "error, code, message",
    (SolverFailed("the backend gave up"), FAILED, "the backend gave up"),
    (NotCertified("no useful bound"), UNVERIFIED, "no useful bound"),
    (InvalidFile("damaged"), UNVERIFIED, "damaged"),
    (MemoryError(), FAILED, "not enough memory"),
    (PermissionError(13, "Permission denied", "out.csv"), FAILED, "Permission denied (out.csv)"),
    (ValueError(f"label {HIDDEN} surprised us"), FAILED, "internal error: ValueError in test_cli.py:"),
    ids=lambda value: type(value).__name__,
)
def test_errors_of_a_run_are_one_line_without_secrets(here, monkeypatch, error, code, message):
    def fails(*_):
        raise error

    monkeypatch.setattr("optrand.release._plan.mechanism_for", fails)
    before = listing(here)
    result = randomized(code=code)
    assert message in one_line(result)
    assert listing(here) == before


def test_a_full_disk_ends_with_one(here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = listing(here)
    released = randomized(code=FAILED)
    assert one_line(released).startswith("error: No space left on device")
    assert "A prior was drawn for epsilon 0.05, in no ledger" in released.stderr
    stated = solved(code=FAILED)
    assert "error: No space left on device" in stated.stderr
    assert "drawn" not in stated.stderr
    assert listing(here) == before


# The command itself
SHORT = ["--column", "y", "--labels", "0:2", "--epsilon", "1"]


def module(*arguments, **options):
    command = [sys.executable, "-m", "optrand", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_disk_that_is_really_full_leaves_nothing(here):
    """A limit on the size of files, which the operating system enforces, in place of a full disk."""
    (here / "in.csv").write_text("note,y\n" + f"{'x' * 100},1\n" * 5000)
    before = listing(here)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    arguments = ["in.csv", "out.csv", *SHORT, "--dataset", "d", "--ledger", "l.sqlite"]
    result = module("randomize", *arguments, cwd=here, preexec_fn=limit)
    assert result.returncode == FAILED
    assert result.stderr.startswith("error: File too large. Epsilon 1 is charged to dataset 'd', once")
    assert result.stderr.count("\n") == 1
    assert set(listing(here)) - set(before) == {Path("l.sqlite")}
    invoke("randomize", *arguments, code=0)
    assert "total of d, column 'y': epsilon 1\n" in invoke("ledger", "--ledger", "l.sqlite").stdout


def test_the_bundled_table_is_released_with_a_proof(here):
    arguments = ["--column", "weeks", "--labels", "0:52", "--epsilon", "1"]
    arguments += ["--ledger", "ledger.sqlite"]
    result = module("randomize", weeks_worked_path(), "weeks.csv", *arguments, cwd=here)
    assert result.returncode == 0, result.stderr
    # On a busy machine a release reports its progress every ten seconds.
    assert all(line.endswith(" s)") for line in result.stderr.splitlines())
    invoke("verify", "weeks.csv.release.json", "--gap", "1e-12", code=0)
    assert optrand.checker.main(["weeks.csv.release.json"]) == 0
    lines = (here / "weeks.csv").read_text().splitlines()
    assert len(lines) == 20_001
    assert lines[0] == "age,class_of_worker,education,marital_status,weeks"


def test_the_bundled_counts_are_a_prior_for_solve(here):
    for outputs, value in (("grid:52", 1348.3746), ("line", 1277.8781)):
        arguments = ["--labels", "0:52", "--prior", weeks_worked_counts_path(), "--epsilon", "1", "--outputs", outputs]
        invoke("solve", *arguments, "-o", "weeks.json", "--force", code=0)
        # The optimum of the linear program on the paper's grid by another solver, and that of the real line by cones.
        mechanism = load(here / "weeks.json")
        assert optrand.certify(mechanism).upper == pytest.approx(value, abs=5e-4)
