"""Bad input in three layers, the command line, a table and a call: refused with a typed error that repeats no label."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from asserting import assert_error, by_case
from commands import invoke

import optrand
from optrand.accounting import Ledger, Spent
from optrand.baselines import DiscreteLaplace
from optrand.cli._reading import parse_declared, parse_outputs
from optrand.errors import InvalidInput, OptrandError
from optrand.learning import PrivateLabels
from optrand.model._randomizer import Randomizer
from optrand.release import Question, randomize_table
from optrand.release._tables import CsvTable
from optrand.sampling._entropy import RecordStreams
from optrand.sampling._priors import private_histogram

SECRETS = ("9173", "9174", "SECRETA", "SECRETB")
"""Labels of the table. The declared set is in files, so that no argument repeats them."""

NUMBERS = ("--column", "y", "--labels", "@labels.txt")
CLASSES = ("--column", "c", "--labels", "@classes.txt")
REST = ("--epsilon", "1", "--dataset", "d")
PROBLEM = ("--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1", "-o", "out.csv")
COMMANDS = {
    "numbers": ("randomize", "in.csv", "out.csv", *NUMBERS, *REST),
    "classes": ("randomize", "in.csv", "out.csv", *CLASSES, *REST),
    "solve": ("solve", *PROBLEM[:-1], "out.json"),
    "sweep": ("sweep", *PROBLEM),
}
"""Commands that succeed as they stand. A bad option is added, and the last of two values counts."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = [f"{i},{i % 2},{9173 + i % 2},SECRET{'AB'[i % 2]}" for i in range(40)]
    (tmp_path / "in.csv").write_text("id,twice,y,c\n" + "\n".join(rows) + "\n")
    (tmp_path / "labels.txt").write_text("9173\n9174\n")
    (tmp_path / "classes.txt").write_text("SECRETA\nSECRETB\n")
    (tmp_path / "prior.csv").write_text("label,count\n0,50\n1,30\n2,20\n")
    return tmp_path


def refused(here, *arguments, words=""):
    """Assert that a command line fails in good order, with these words, and writes nothing."""
    result = invoke(*arguments)
    told = result.stdout + result.stderr
    assert result.exit_code in (1, 2, 3, 5), told
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in told
    assert "internal error" not in told
    assert words in result.stderr
    assert result.stderr
    assert not any(secret in told for secret in SECRETS)
    assert not list(here.glob("out*"))


# The command line
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_that_options_spoil_succeed(name):
    invoke(*COMMANDS[name], code=0)
    if name == "numbers":
        again = invoke("randomize", "in.csv", "again.csv", *NUMBERS, *REST, code=5)
        assert "--again" in again.stderr
        more = invoke("randomize", "in.csv", "again.csv", *NUMBERS, *REST, "--again", "--budget", "1.5", code=5)
        assert "over the budget of epsilon 1.5" in more.stderr


NO_NUMBERS = ("", " ", "nan", "-inf", "-1", "1_0", "0x1", "1e", "one", "--", "1e400", "\N{ARABIC-INDIC DIGIT ONE}")

OF_EVERY_PROBLEM = [
    *[("--epsilon", text, "epsilon is") for text in (*NO_NUMBERS, "0", "-0.0", "700.1", "True")],
    *[("--bias-penalty", text, "from 0 to inf") for text in (*NO_NUMBERS, "Inf", "infinity")],
    *[("--outputs", text, "") for text in ("", "Line", "line:1", "0:5", "grid", "grid:", "grid:9:9", "interval:0")],
    *[("--outputs", f"grid:{text}", "") for text in ("1", "0", "-3", "4.0", "1_0", "1e2")],
    *[("--outputs", f"interval:{text}", "") for text in ("5:5", "9:1", "-inf:inf", "-1_0:60", "0:nan", "0:1e200")],
    *[("--loss", text, "") for text in ("", "Squared", "hinge", "zero_one", "squared ")],
    *[("--labels", text, "is not a number") for text in ("", "0:", "0:1_0")],
    ("--labels", "@none.txt", "cannot be read"),
]
"""Each form of an invalid number, once. The readers of labels and priors have tests of their own."""

OF_A_RELEASE = [
    *[("--epsilon", text, "epsilon is") for text in ("1,5", "1e-400")],
    *[("--prior", text, "nothing is left for the labels") for text in ("1", "2")],
    *[("--budget", text, "") for text in ("", "-1", "nan", "0", "0.5")],
    *[
        ("--randomizer", text, "the randomizer is")
        for text in ("", "RR", "best", "rr-top-3", "rr ", "gauss", "laplace")
    ],
    *[
        ("--randomizer", text, "")
        for text in ("rr-top-k:0", "rr-top-k:3", "rr-top-k:", "rr-top-k:x", "rr:2", "none.json")
    ],
    *[("--prior", text, "prior") for text in ("", "nan", "0", "-1", "1", "2", "1_0")],
    *[("--nulls", text, "") for text in ("", "Drop", "skip", "class", "none")],
    *[("--dataset", text, "") for text in ("", " ", " d", "d ", "a\nb", "\x07", "x" * 201)],
    *[("--ids", text, "") for text in ("", "none", "ID", "twice", "id ")],
    *[("--keep", text, "") for text in ("", "none", "id,none", "id,id", ",", '"id', "id\nc")],
    *[("--drop", text, "") for text in ("", "none", "id,none", "id,id", ",", "y", '"id')],
    *[("--separator", text, "") for text in ("", ";;", "a", "1", '"', ".", "\n", "\\", "é", "-")],
    *[("--decimal", text, "") for text in ("", ";", "..", "1", "x")],
    *[("--ledger", text, "") for text in ("in.csv", "no/such/folder/ledger.sqlite", "labels.txt")],
    *[("--prior", text, "") for text in ("none.csv", "in.csv", ".")],
    *[("--column", text, "") for text in ("", "Y", "y ", "none", "c", "y,c")],
    *[("--labels", text, "") for text in ("0:2", "nan", "0:1e9")],
    *[("--labels", text, "") for text in ("yes,no", "", "@classes.txt")],
    ("--labels", "52:0", "run downwards: write the lower end first, 0:52"),
    ("--keep", "id", "--drop", "c", ""),
    ("--randomizer", "rr", "--prior", "0.1", "prior has no effect on 'rr'"),
    ("--randomizer", "rr", "--outputs", "grid:9", "outputs has no effect"),
    ("--randomizer", "rr", "--bias-penalty", "0", "bias_penalty has no effect"),
    ("--randomizer", "rr", "--loss", "squared", ""),
    ("--randomizer", "rr-on-bins", "--bias-penalty", "1", ""),
    ("--randomizer", "rr-on-bins", "--loss", "absolute", ""),
    ("--randomizer", "rr-with-prior", "--outputs", "line", ""),
    ("--loss", "@in.csv", "--outputs", "values:0,3", "a cell in row 1 of in.csv is not a number"),
    ("--loss", "@missing.csv", "cannot be read"),
    ("--loss", "zero-one", "--bias-penalty", "inf", ""),
    ("--no-ledger", ""),
    ("--no-ledger", "--again", ""),
    ("--randomizer", "minimax", "--outputs", "grid:9", "not a grid"),
    ("--randomizer", "minimax", "--prior", "0.1", "has no effect on 'minimax'"),
    ("--prior", "0.1", "--prior", "labels.txt", ""),
    *[(f"--{flag}=no", "") for flag in ("force", "clip", "again", "no-ledger", "diagnose", "json")],
    ("--seed", "1", ""),
    ("no", ""),
]

OF_CLASSES = [
    *[("--labels", text, "") for text in ("", ",", "a,", "a,a", '"a', "a\nb", "@none.txt", "@.", "no,yes")],
    *[
        ("--loss", "squared", ""),
        ("--bias-penalty", "0", ""),
        ("--randomizer", "debiased-rr", ""),
        ("--column", "y", ""),
    ],
    *[("--randomizer", name, "") for name in ("discrete-laplace", "laplace", "staircase")],
    *[("--prior", name, "") for name in ("in.csv", "none.csv", "classes.txt")],
    ("--randomizer", "rr-on-bins", "have no order"),
]

OF_A_SWEEP = [
    *[("--epsilon", text, "expected LOW:HIGH:N") for text in ("1:2", "1:2:0.5", "1:2:1", "1:2:1_0", "1:2:10001")],
    *[("--epsilon", text, "a finite range that runs upwards") for text in ("2:1:3", "1:1:3")],
    ("--epsilon", "1,,2", "--epsilon is ''"),
    ("--epsilon", "0:1:3", "--epsilon is 0.0"),
    ("--bias-penalty", "0:inf:3", "a finite range"),
    ("-o", "nowhere/sweep.csv", "not a folder"),
]

BAD_OPTIONS = [
    *[("solve", "--labels", text, "is not a number") for text in ("a,b", "0,1,O")],
    ("numbers", "--labels", "0,1,O", "with --task classification"),
    ("numbers", "--nulls", "class", "add --task classification"),
    *[("numbers", "--task", text, "--task") for text in ("", "classes", "Regression")],
    ("classes", "--task", "regression", "is not a number"),
    *[("numbers", *options) for options in OF_A_RELEASE],
    *[("classes", *options) for options in OF_CLASSES],
    *[("sweep", *options) for options in OF_A_SWEEP],
    *[(name, *options) for options in OF_EVERY_PROBLEM for name in ("numbers", "solve")],
    *[("sweep", *options) for options in OF_EVERY_PROBLEM[::7]],
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_options_without_meaning_are_refused(here, options):
    name, *added, words = options
    refused(here, *COMMANDS[name], *added, words=words)


@by_case("arguments", ("randomize", "in.csv", "out.csv"), COMMANDS["solve"][:-2], ("verify",), ("x",), ())
def test_wrong_usage_ends_with_two(here, arguments):
    invoke(*arguments, code=2)
    assert not list(here.glob("out*"))


EMPTY_NAMES = [
    *[("randomize", "in.csv", name, *NUMBERS, *REST) for name in ("", ".", "..", "/")],
    *[("randomize", name, "out.csv", *NUMBERS, *REST) for name in ("", ".")],
    *[(*COMMANDS["numbers"], "--ledger", name) for name in ("", ".")],
    *[(*COMMANDS["solve"][:-1], name) for name in ("", ".")],
    *[("sweep", *PROBLEM[:-1], name) for name in ("", ".")],
    *[("verify", name) for name in ("", ".")],
]


@pytest.mark.parametrize("arguments", EMPTY_NAMES, ids=" ".join)
def test_names_of_folders_or_of_nothing_are_no_files(here, arguments):
    before = sorted(here.iterdir())
    refused(here, *arguments)
    assert [path for path in sorted(here.iterdir()) if path.name != "state"] == before


NO_RELEASE = {
    "plot": ("-o", "out.html"),
    "estimate": ("in.csv",),
    "solve": ("-o", "out.json"),
    "verify": (),
    "ledger": (),
}


@pytest.mark.parametrize("command", NO_RELEASE)
@pytest.mark.parametrize("name", ["in.csv", "none.json", "."])
def test_other_commands_refuse_what_is_no_release(here, command, name):
    refused(here, command, name, *NO_RELEASE[command])


# Tables

UNDECLARED = "at least one label is not among the 2 declared ones"
NO_NUMBER = "at least one label in column 'y' is missing or no finite number"

BAD_TABLES = {
    "empty": (b"", "is empty"),
    "only a header": (b"id,y\n", "no rows"),
    "no header": (b"9173\n9174\n", "has no column 'y'"),
    "two columns of one name": (b"y,y\n9173,9174\n", "2 columns named 'y'"),
    "an undeclared label": (b"id,y\n1,9173\n2,91735\n", UNDECLARED),
    "a label between two": (b"id,y\n1,9173.5\n2,9173\n", UNDECLARED),
    "a label that is no number": (b"id,y\n1,9173\n2,SECRETA\n", NO_NUMBER),
    "a missing label": (b"id,y\n1,9173\n2,\n", NO_NUMBER),
    "an infinite label": (b"id,y\n1,inf\n2,9173\n", NO_NUMBER),
    "a zero byte": (b"id,y\n1,9173\x00\n", NO_NUMBER),
    "a ragged row": (b"id,y\n1,9173\n2,9174,9173\n", "at least one row with more or fewer cells"),
    "a short row": (b"id,y\n1,9173\n2\n", "at least one row with more or fewer cells"),
    "a ragged row of another encoding": (b"id,y\n1,9173\n\xff\xfe9174,9173,SECRETA\n", "more or fewer cells"),
    "an open quote": (b'id,y\n1,"9173\n2,9174\n', "never closed"),
    "a quote that goes on": (b'id,y\n1,"9173"9\n', "never closed"),
    "UTF-16": ("id,y\n1,9173\n".encode("utf-16"), "is UTF-16"),
    "a comma for a point": (b"id;y\n1;9173,0\n", "name the separator"),
    "a gzip by its magic": (b"\x1f\x8b\x08\x00SECRETA", "damaged gzip"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_tables_that_cannot_be_released_are_refused(here, name):
    content, words = BAD_TABLES[name]
    (here / "bad.csv").write_bytes(content)
    refused(here, "randomize", "bad.csv", "out.csv", *NUMBERS, *REST, words=words)
    with pytest.raises(InvalidInput) as error:
        randomize_table("bad.csv", "out.csv", QUESTION, ledger=None)
    assert words in str(error.value)
    assert not any(secret in str(error.value) for secret in SECRETS)


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".csv.gz", ".txt", ""])
def test_a_table_is_what_its_name_says(here, suffix):
    (here / f"bad{suffix}").write_bytes(b"id,y\n1,9173\n2,SECRETA\n")
    refused(here, "randomize", f"bad{suffix}", "out.csv", *NUMBERS, *REST)


# Calls
class Odd:
    """No label, no number."""


QUESTION = Question(column="y", labels=[9173, 9174], epsilon=1.0)


def question(**options):
    return Question(**{"labels": range(3), "epsilon": 1.0, **options})


def question_record():
    return optrand.randomize([0, 1] * 50, 1.0, labels=[0, 1]).record


def from_file(source="in.csv", target="out.csv", asked=QUESTION, **options):
    return randomize_table(source, target, asked, **{"ledger": None, **options})


SIX = np.array([0.0, 1.0, 2.0, 4.0, 5.0, 8.0])
RR = optrand.rr(range(3), 1.0)
ODD = (None, "1", "no", b"1", [], {}, Odd(), math.nan, math.inf, -1.0, 0, True, 1j, 701)

BAD_VALUES = {
    "epsilon": (lambda bad: question(epsilon=bad), ODD),
    "labels": (
        lambda bad: question(labels=bad),
        (
            *(None, "01", [], [0, 0], [0.0, -0.0], [[0, 1], [2]], ["a", 0], [np.nan], [np.inf], [Odd()], {}, [1j]),
            [0, 2**53 + 1],
        ),
    ),
    "values": (
        lambda bad: optrand.randomize(bad, 1.0, labels=[0, 1]),
        (
            *(None, "9173", [], [9173], ["SECRETA"], [[0, 1], [0]], [np.nan], [np.inf], [None], [True], Odd()),
            {"SECRETA": 1},
        ),
    ),
    "outputs": (
        lambda bad: question(outputs=bad),
        ("line", optrand.Interval(0, 2), optrand.Grid([0, 1, 2]), 1, 0, True, 2.5, 2**63, 10**400),
    ),
    "bias_penalty": (
        lambda bad: question(bias_penalty=bad),
        (-1.0, math.nan, "inf", "", [], {}, False, np.zeros(0), pd.Series([1, 2])),
    ),
    "prior": (
        lambda bad: question(prior=bad),
        (1.0, 0.0, "0.1", True, [0.5, 0.5], [0.5, 0.4, 0.05], [0.5, 0.5, 5e-324], {0: 1.0}),
    ),
    "loss": (lambda bad: question(loss=bad), ("", "hinge", "zero_one", 7, math.hypot)),
    "nulls": (lambda bad: question(nulls=bad), ("", "Drop", "class", None, 1, np.zeros(2), pd.NA)),
    "groups": (lambda bad: question(groups=bad), (("a", "a"), ("",), (7,), ("labels",), 7, {"a": 1}, ("\ud800",))),
    "ids": (lambda bad: question(ids=bad), (("a", "a"), ("",), (7,), "labels")),
    "gap": (lambda bad: question(gap=bad), (-1.0, "1", None, math.nan)),
    "column": (lambda bad: question(column=bad), ("", None, 7, "\ud800")),
    "column of an array": (lambda bad: optrand.randomize([0, 1], 1.0, labels=[0, 1], column=bad), (7, ["a"], Odd())),
    "column of a frame": (
        lambda bad: optrand.randomize(pd.DataFrame({"y": [0, 1]}), 1.0, labels=[0, 1], column=bad),
        (None, "", 7, pd.NA, [], ["y", "y"]),
    ),
    "released values": (lambda bad: optrand.estimate.mean(bad, question_record()), ({}, {"a": 1}, None, Odd())),
    "parse_declared": (parse_declared, ("", ",", '"', "a\nb", "@")),
    "parse_outputs": (parse_outputs, ("", "grid", "interval:1:0", "no")),
    "randomizer": (
        lambda bad: Question(labels=SIX, epsilon=1.0, randomizer=bad),
        ("", "RR", "gauss", "laplace", "discrete-laplace", "rr-top-k:7", 7, DiscreteLaplace(SIX, 1.0), RR),
    ),
    "separator": (lambda bad: CsvTable(Path("in.csv"), bad, "."), ("", "a", "1", "ab", '"', "\n", "é")),
    "separator of a table": (lambda bad: from_file(separator=bad), (7, [], np.zeros(2))),
    "decimal of a table": (lambda bad: from_file(decimal=bad), (7, [], np.zeros(2))),
    "keep": (lambda bad: from_file(keep=bad), (7, "none", [7], np.zeros(2), ["\ud800"], [["a"]], "y")),
    "drop": (lambda bad: from_file(drop=bad), (None, 7, "none", [7], ["\ud800"], "y")),
    "question": (lambda bad: from_file(asked=bad), (None, "y", {})),
    "listener": (lambda bad: from_file(listener=bad), (0, "", print)),
    "decimal": (lambda bad: CsvTable(Path("in.csv"), ",", bad), ("", ";", "..")),
    "spent": (Spent, (-1.0, math.nan, math.inf, "1", None)),
    "dataset": (lambda bad: from_file(dataset=bad, ledger="default"), ("", " d", "a\n", 1)),
    "ledger": (Ledger, ("in.csv", "labels.txt", "\ud800")),
    "input": (lambda bad: from_file(bad), ("none.csv", "in.txt", ".", "", " ")),
    "output": (
        lambda bad: from_file(target=bad),
        ("out.txt", "in.csv", "no/out.csv", "", ".", "..", None, 7, "\ud800"),
    ),
    "without a ledger": (
        lambda bad: from_file(**bad),
        ({"again": True}, {"budget": 1.0}, {"ledger": "ledger.sqlite"}, {"ledger": 7}),
    ),
    "options of a table": (
        lambda bad: from_file(**bad),
        (
            {"asked": question(column="c")},
            {"asked": question(column="y", ids="twice")},
            {"keep": ("a",), "drop": ("b",)},
        ),
    ),
}
BAD_CALLS = [(name, i) for name, (_, values) in BAD_VALUES.items() for i in range(len(values))]


@pytest.mark.parametrize(("name", "number"), BAD_CALLS)
def test_calls_without_meaning_raise_typed_errors(here, name, number):
    call, values = BAD_VALUES[name]
    with pytest.raises(OptrandError) as error:
        call(values[number])
    assert isinstance(error.value, InvalidInput) <= isinstance(error.value, ValueError)
    assert not any(secret in str(error.value) for secret in SECRETS)
    assert not list(here.glob("out*"))


ARRAYS = {
    "labels": lambda given: optrand.unbiased_regression(given, [0.5, 0.3, 0.2], 1.0),
    "prior": lambda given: optrand.unbiased_regression([0, 1, 9], given, 1.0),
    "outputs": lambda given: optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, outputs=given),
    "grid": optrand.Grid,
    "dual": lambda given: optrand.Dual(given, [0.0, 0.0, 0.0]),
    "classification": lambda given: optrand.classification(given, 1.0),
    "rr_with_prior": lambda given: optrand.rr_with_prior(given, 1.0),
    "rr_top_k": lambda given: optrand.rr_top_k(given, 1, 1.0),
    "batch of priors": lambda given: optrand.closed_forms.rr_with_prior_batch(given, 1.0),
    "table": lambda given: Randomizer([0, 1], [0, 1], given, 1.0),
    "loss": optrand.losses.Tabulated,
    "audit": lambda given: optrand.audit(given, 1.0),
    "decoder": lambda given: optrand.vectors.best_decoder(given, [0.5, 0.5]),
    "labels to release": lambda given: optrand.randomize(given, 1.0, labels=range(10)),
    "declared labels": lambda given: optrand.randomize([0, 1], 1.0, labels=given),
    "declared classes": lambda given: optrand.randomize([0, 1], 1.0, labels=given, task="classification"),
    "public prior": lambda given: optrand.randomize([0, 1], 1.0, labels=[0, 1, 9], prior=given),
    "outputs of a release": lambda given: optrand.randomize([0, 1], 1.0, labels=[0, 1], outputs=given),
    "ids": lambda given: optrand.randomize([0, 1, 9], 1.0, labels=[0, 1, 9], ids=given),
    "labels of a question": lambda given: question(labels=given),
    "prior of a question": lambda given: question(prior=given),
    "sample": RR.sample,
    "sample of noise": lambda given: DiscreteLaplace([0, 9], 1.0).sample(given),
    "sample of randomized response": lambda given: optrand.baselines.UniformRR(10, 1.0).sample(given),
    "function": lambda given: optrand.estimate.unbiased_values(RR, given),
    "average": lambda given: optrand.estimate.average([0, 1], RR, given),
    "kept labels": lambda given: optrand.estimate.top_k_loss_weights([0], given, 1.0),
    "counts": lambda given: private_histogram(given, 1.0),
    "PrivateLabels": lambda given: PrivateLabels(given, 1.0, [0, 1, 9]),
    "domain of PrivateLabels": lambda given: PrivateLabels([0, 1], 1.0, given),
    "rows of PrivateLabels": lambda given: PrivateLabels([0, 1, 1], 1.0, [0, 1]).of_rows(given),
    "mean": lambda given: optrand.estimate.mean([given], optrand.debiased_rr(range(3), 1.0)),
    "histogram": lambda given: optrand.estimate.histogram([given], RR),
}
MASKED = np.ma.array([0, 1, 9], mask=[False, False, True])
NO_ARRAYS = {
    "ragged": ([[1, 2], [3]], "."),
    "masked": (MASKED, "(?i)masked|missing"),
    "masked rows": ([MASKED, MASKED], "(?i)masked|missing"),
    "a masked cell": (list(MASKED), "(?i)masked|missing"),
    "a masked table": (np.ma.array([[0, 1, 9]], mask=[[False, False, True]]), "(?i)masked|missing"),
    "integers that numpy lacks": (
        pl.Series([1, 2], dtype=pl.Int128),
        "(is|are) no array|which Arrow does not have|missing or outside",
    ),
}


@pytest.mark.parametrize("name", NO_ARRAYS)
@pytest.mark.parametrize("call", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_are_none_are_refused_by_what_is_wrong(call, name):
    given, words = NO_ARRAYS[name]
    assert_error(words, call, given)


@pytest.mark.parametrize("given", ["no", 1, 0.0, None, np.str_("no"), [True], np.array([True])])
@by_case(
    "call",
    lambda given: optrand.certify(RR, worst_case=given),
    lambda given: RR.save("m.json", overwrite=given),
    lambda given: question(clip=given),
    lambda given: from_file(force=given),
    lambda given: from_file(again=given),
    lambda given: optrand.randomize([0, 1], 1.0, labels=[0, 1], clip=given),
    lambda given: optrand.randomize([0, 1], 1.0, labels=[0, 1], again=given),
    lambda given: Spent(1.0, exact=given),
    lambda given: RecordStreams(bytes(32), private=given),
)
def test_flags_are_true_or_false(here, call, given):
    assert_error("expected True or False", call, given)
    assert not (here / "m.json").exists()
