"""Bad input through the command line and Python: refused with a typed error that repeats no label."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import optrand
from optrand.accounting import Ledger, Request, Spent
from optrand.baselines import DiscreteLaplace
from optrand.cli import app
from optrand.errors import InvalidInput, OptrandError
from optrand.release.baseline_job import BaselineJob
from optrand.release.class_names import parse_classes
from optrand.release.declared import parse_clip, parse_labels, parse_outputs
from optrand.release.groups import Pools
from optrand.release.job import LabelJob
from optrand.release.named import named_randomizer
from optrand.release.recovery import recover
from optrand.release.streams.records import CsvFormat
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions
from optrand.sampling.keyed import RecordStreams
from optrand.sampling.priors import private_histogram

SECRETS = ("9173", "9174", "SECRETA", "SECRETB")
"""Labels of the table; the declared set is in files, so that no argument repeats them."""

NUMBERS = ("--label", "y", "--labels", "@labels.txt")
CLASSES = ("--label", "c", "--classes", "@classes.txt")
REST = ("--epsilon", "1", "--dataset", "d")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = [f"{i},{i % 2},{9173 + i % 2},SECRET{'AB'[i % 2]}" for i in range(40)]
    (tmp_path / "in.csv").write_text("id,twice,y,c\n" + "\n".join(rows) + "\n")
    (tmp_path / "labels.txt").write_text("9173\n9174\n")
    (tmp_path / "classes.txt").write_text("SECRETA\nSECRETB\n")
    return tmp_path


def invoked(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(here, *arguments):
    """Assert that a command line fails in good order, and writes nothing."""
    result = invoked(*arguments)
    told = result.stdout + result.stderr
    assert result.exit_code in (1, 2, 3, 5), told
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in told
    assert "internal error" not in told
    assert result.stderr
    assert not any(secret in told for secret in SECRETS)
    assert not list(here.glob("out*"))
    return result


BAD_NUMBERS = (
    "",
    " ",
    "nan",
    "inf",
    "-1",
    "1_0",
    "0x1",
    "1e",
    "one",
    "1,5",
    "--",
    "1e400",
    "\N{ARABIC-INDIC DIGIT ONE}",
)

BAD_OPTIONS = [
    *[("--epsilon", text) for text in (*BAD_NUMBERS, "0", "701", "1e-400")],
    *[("--prior-epsilon", text) for text in (*BAD_NUMBERS, "0", "1", "2")],
    *[("--budget", text) for text in (*BAD_NUMBERS, "0", "0.5")],
    *[("--bias-penalty", text) for text in ("", " ", "nan", "-1", "1_0", "one", "-inf", "Infinity", "1e400")],
    *[("--allow-gap", text) for text in ("", " ", "nan", "-1", "1_0", "one", "1e-6%", "inf")],
    *[("--outputs", text) for text in ("", "Line", "line:1", "grid", "grid:1", "grid:0", "grid:-3", "grid:1_0")],
    *[("--outputs", text) for text in ("interval:0", "interval:5:5", "interval:9:1", "interval:0:nan", "0:5")],
    *[("--loss", text) for text in ("", "Squared", "hinge", "zero_one", "l2", "squared ")],
    *[("--task", text) for text in ("", "Regression", "ranking", "no")],
    *[("--randomizer", text) for text in ("", "RR", "best", "laplace", "staircase", "rr-top-3", "rr ", "no")],
    *[("--nulls", text) for text in ("", "Drop", "skip", "class", "no", "none")],
    *[("--entropy", text) for text in ("", "Keyed", "seed", "1", "urandom")],
    *[("--dataset", text) for text in ("", " ", " d", "d ", "a\nb", "\x07", "x" * 201)],
    *[("--id", text) for text in ("", "none", "ID", "twice", "id ")],
    *[("--keep", text) for text in ("", "none", "id,none", "id,id", ",", '"id', "id\nc")],
    *[("--drop", text) for text in ("", "none", "id,none", "id,id", ",", "y", '"id')],
    *[("--separator", text) for text in ("", ";;", "a", "1", '"', ".", "\n", "\\", "é", "-")],
    *[("--decimal", text) for text in ("", ";", "..", "1", "x")],
    *[("--expect-rows", text) for text in ("", "0", "-1", "39", "41", "4e1", "40.0", "1_0", "many")],
    *[("--expect-sha256", text) for text in ("", "0", "0" * 63, "g" * 64, "0" * 64, "md5:" + "0" * 64)],
    *[("--ledger", text) for text in ("in.csv", "no/such/folder/ledger.sqlite", "labels.txt")],
    *[("--public-prior", text) for text in ("none.csv", "in.csv", "labels.txt", ".")],
    *[("--paid-prior", text) for text in ("none.csv", "in.csv", "labels.txt", ".")],
    *[("--label", text) for text in ("", "Y", "y ", "none", "c", "y,c")],
    *[
        ("--labels", text)
        for text in ("", "0:", ":1", "1:0", "0:1:0", "0:2", "a,b", "1,1", "@none.txt", "nan", "0:1e9")
    ],
    *[("--classes", text) for text in ("yes,no", "", "@classes.txt")],
    ("--keep", "id", "--drop", "c"),
    ("--clip-outputs", "0:5"),
    ("--randomizer", "rr", "--clip-outputs", "0:5"),
    ("--randomizer", "rr", "--prior-epsilon", "0.1"),
    ("--randomizer", "rr", "--loss", "squared"),
    ("--randomizer", "rr-on-bins", "--bias-penalty", "1"),
    ("--randomizer", "rr-on-bins", "--loss", "absolute"),
    ("--randomizer", "rr-with-prior", "--outputs", "line"),
    ("--randomizer", "debiased-rr", "--task", "classification"),
    ("--randomizer", "discrete-laplace", "--clip-outputs", "5:0"),
    ("--randomizer", "discrete-laplace", "--clip-outputs", "x"),
    ("--task", "classification", "--loss", "squared"),
    ("--task", "classification", "--outputs", "line"),
    ("--task", "regression", "--loss", "zero-one"),
    ("--loss", "zero-one", "--bias-penalty", "inf"),
    ("--no-ledger",),
    ("--no-ledger", "--spend-again"),
    ("--prior-epsilon", "0.1", "--public-prior", "labels.txt"),
    ("--force=no",),
    ("--clip=no",),
    ("--spend-again=no",),
    ("--allow-inexact=false",),
    ("--diagnose=0",),
    ("--no-progress=no",),
    ("--json=no",),
    ("--seed", "1"),
    ("no",),
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_options_without_meaning_are_refused(here, options):
    """Each is added to a command that would succeed; the last of two values counts."""
    refused(here, "randomize", "in.csv", "out.csv", *NUMBERS, *REST, *options)


@pytest.mark.usefixtures("here")
def test_the_command_that_the_options_spoil_succeeds():
    result = invoked("randomize", "in.csv", "out.csv", *NUMBERS, *REST)
    assert result.exit_code == 0, result.stderr
    again = invoked("randomize", "in.csv", "again.csv", *NUMBERS, *REST)
    assert again.exit_code == 5
    assert "--spend-again" in again.stderr


BAD_WITH_CLASSES = [
    *[("--classes", text) for text in ("", ",", "a,", "a,a", '"a', "a\nb", "@none.txt", "@.", "no,yes")],
    *[("--task", "regression"), ("--clip",), ("--labels", "0:2"), ("--loss", "squared"), ("--loss", "absolute")],
    *[("--outputs", "line"), ("--bias-penalty", "0"), ("--randomizer", "debiased-rr"), ("--label", "y")],
    *[("--randomizer", name) for name in ("discrete-laplace", "laplace", "staircase", "rr-on-bins")],
    *[("--public-prior", name) for name in ("in.csv", "none.csv", "classes.txt")],
]


@pytest.mark.parametrize("options", BAD_WITH_CLASSES, ids=" ".join)
def test_options_without_meaning_for_classes_are_refused(here, options):
    refused(here, "randomize", "in.csv", "out.csv", *CLASSES, *REST, *options)


BAD_TABLES = {
    "empty": b"",
    "only a header": b"id,y\n",
    "no header": b"9173\n9174\n",
    "two columns of one name": b"y,y\n9173,9174\n",
    "an undeclared label": b"id,y\n1,9173\n2,91735\n",
    "a label that is no number": b"id,y\n1,9173\n2,SECRETA\n",
    "a missing label": b"id,y\n1,9173\n2,\n",
    "a ragged row": b"id,y\n1,9173\n2,9174,9173\n",
    "a short row": b"id,y\n1,9173\n2\n",
    "a ragged row of another encoding": b"id,y\n1,9173\n\xff\xfe9174,9173,SECRETA\n",
    "an open quote": b'id,y\n1,"9173\n2,9174\n',
    "a quote that goes on": b'id,y\n1,"9173"9\n',
    "UTF-16": "id,y\n1,9173\n".encode("utf-16"),
    "an infinite label": b"id,y\n1,inf\n2,9173\n",
    "no number at all": b"id,y\n1,nan\n2,9173\n",
    "a comma for a point": b"id;y\n1;9173,0\n",
    "a zero byte": b"id,y\n1,9173\x00\n",
    "a gzip by its magic": b"\x1f\x8b\x08\x00SECRETA",
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".csv.gz", ".txt", ""])
@pytest.mark.parametrize("content", BAD_TABLES.values(), ids=BAD_TABLES)
def test_tables_that_cannot_be_released_are_refused(here, content, suffix):
    (here / f"bad{suffix}").write_bytes(content)
    refused(here, "randomize", f"bad{suffix}", "out.csv", *NUMBERS, *REST)


@pytest.mark.parametrize("command", ["verify", "report", "plot", "estimate", "gallery", "recover", "ledger", "solve"])
@pytest.mark.parametrize("name", ["in.csv", "none.json", ".", "labels.txt"])
def test_other_commands_refuse_what_is_no_release(here, command, name):
    more = {
        "report": ("-o", "out.html"),
        "plot": ("-o", "out.png"),
        "gallery": ("-o", "out"),
        "estimate": ("in.csv",),
        "recover": ("--ledger", "in.csv"),
        "solve": ("-o", "out.json"),
    }.get(command, ())
    refused(here, command, name, *more)


class Odd:
    """No label, no number."""


def table_job(**options):
    job = LabelJob(labels=[9173, 9174], epsilon=1.0)
    return TableJob(job=job, column="y", options=TableOptions(**options))


ODD = (None, "1", "no", b"1", [], {}, Odd(), float("nan"), float("inf"), -1.0, 0, True, 1j, 701)

BAD_CALLS = {
    **{f"epsilon {odd!r:.20} {i}": lambda odd=odd: LabelJob(labels=[0, 1], epsilon=odd) for i, odd in enumerate(ODD)},
    **{
        f"labels {odd!r:.20} {i}": lambda odd=odd: LabelJob(labels=odd, epsilon=1.0)
        for i, odd in enumerate([None, "01", [], [0, 0], [[0, 1], [2]], ["a"], [np.nan], [np.inf], [Odd()], {}, [1j]])
    },
    **{
        f"values {i}": lambda odd=odd: LabelJob(labels=[0, 1], epsilon=1.0).run(odd)
        for i, odd in enumerate(
            [None, "9173", [], [9173], ["SECRETA"], [[0, 1], [0]], [np.nan], [np.inf], [None], Odd(), {"SECRETA": 1}]
        )
    },
    **{f"parse labels {t}": lambda t=t: parse_labels(t) for t in ("", "a", "1:", "1:0", "0:1:-1", "@", "1,,2", "nan")},
    **{f"parse classes {t}": lambda t=t: parse_classes(t) for t in ("", ",", "a,a", '"', "a\nb", "@", "a\0b")},
    **{f"parse clip {t}": lambda t=t: parse_clip(t) for t in ("", "0", "0:0", "1:0", "nan:1", "0:1:2", "a:b")},
    **{f"parse outputs {t}": lambda t=t: parse_outputs(t) for t in ("", "grid", "grid:1", "interval:1:0", "no")},
    **{
        f"randomizer {t}": lambda t=t: named_randomizer(t, np.arange(2.0), epsilon=1.0)
        for t in ("", "RR", "rr-top-k", "no")
    },
    **{f"separator {t!r}": lambda t=t: CsvFormat(separator=t) for t in ("", "a", "ab", '"', "\n", "é")},
    **{f"decimal {t!r}": lambda t=t: CsvFormat(decimal=t) for t in ("", ";", "..")},
    "a limit of nothing": lambda: CsvFormat(unpacked_limit=0),
    "keep and drop": lambda: TableOptions(keep=("a",), drop=("b",)),
    **{f"rows {t!r}": lambda t=t: TableOptions(expect_rows=t) for t in (0, -1, 1.5, "1", True)},
    **{f"digest {t!r:.9}": lambda t=t: TableOptions(expect_sha256=t) for t in ("", "0", "g" * 64)},
    **{f"spent {t!r}": lambda t=t: Spent(t) for t in (-1.0, float("nan"), float("inf"), "1", None)},
    **{
        f"dataset {t!r:.9}": lambda t=t: Request(
            t, "y", {"labels": Spent(1.0)}, configuration="0" * 64, input_digest="0" * 64, output="out"
        )
        for t in ("", " d", "a\n", None, 1)
    },
    "noise in floats": lambda: BaselineJob(
        labels=np.arange(2.0), randomizer=named_randomizer("laplace", np.arange(2.0), epsilon=1.0)
    ),
    "noise for other labels": lambda: BaselineJob(
        labels=np.arange(9.0), randomizer=DiscreteLaplace(np.arange(2), 1.0)
    ).run([8]),
    "no table": lambda: table_job().run("none.csv", "out.csv"),
    "no kind of table": lambda: table_job().run("in.txt", "out.csv"),
    "no kind of output": lambda: table_job().run("in.csv", "out.txt"),
    "the input itself": lambda: table_job().run("in.csv", "in.csv"),
    "a dataset without a ledger": lambda: table_job().run("in.csv", "out.csv", dataset="d"),
    "keyed noise without a ledger": lambda: table_job().run("in.csv", "out.csv", entropy="keyed"),
    "a ledger without a dataset": lambda: table_job().run("in.csv", "out.csv", ledger="ledger.sqlite"),
    "ids that come twice": lambda: table_job(id_column="twice").run("in.csv", "out.csv"),
    "another digest": lambda: table_job(expect_sha256="0" * 64).run("in.csv", "out.csv"),
    "other rows": lambda: table_job(expect_rows=3).run("in.csv", "out.csv"),
    "a ledger that is a table": lambda: Ledger.open("in.csv"),
    "classes for numbers": lambda: table_job(classes=("SECRETA",)).run("in.csv", "out.csv"),
}


@pytest.mark.parametrize("call", BAD_CALLS.values(), ids=BAD_CALLS)
def test_calls_without_meaning_raise_typed_errors(here, call):
    with pytest.raises(OptrandError) as error:
        call()
    assert not any(secret in str(error.value) for secret in SECRETS)
    assert not list(here.glob("out*"))


def test_there_are_at_least_three_hundred():
    assert len(BAD_OPTIONS) + len(BAD_WITH_CLASSES) + len(BAD_TABLES) * 6 + 32 + len(BAD_CALLS) >= 300


# Python: ragged lists and flags


RAGGED = [[1, 2], [3]]
RR = optrand.tabulate(optrand.rr(range(3), 1.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda given: optrand.classification(given, 1.0),
        lambda given: optrand.unbiased_regression(given, [0.5, 0.5], 1.0),
        lambda given: optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, outputs=given),
        lambda given: optrand.rr_with_prior(given, 1.0),
        lambda given: optrand.rr_top_k(given, 1, 1.0),
        lambda given: optrand.Randomizer([0, 1], [0, 1], given, 1.0),
        lambda given: optrand.losses.Tabulated(given),
        lambda given: optrand.closed_forms.rr_with_prior_batch(given, 1.0),
        lambda given: optrand.vectors.best_decoder(given, [0.5, 0.5]),
        lambda given: optrand.randomize(given, 1.0, domain=range(4)),
        lambda given: optrand.randomize([1, 2], 1.0, domain=given),
        lambda given: RR.sample(given),
        lambda given: DiscreteLaplace([0, 1], 1.0).sample(given),
        lambda given: optrand.baselines.UniformRR(3, 1.0).sample(given),
        lambda given: optrand.estimate.mean(given, RR),
        lambda given: optrand.estimate.histogram(given, RR),
        lambda given: optrand.estimate.unbiased_values(RR, given),
        lambda given: optrand.estimate.average([0, 1], RR, given),
        lambda given: optrand.estimate.resampling_loss_weights(given, [0.5, 0.5], resampling=0.5),
        lambda given: optrand.estimate.resampling_loss_weights([0], given, resampling=0.5),
        lambda given: optrand.estimate.top_k_loss_weights([0], given, 1.0),
        lambda given: private_histogram(given, 1.0),
        lambda given: LabelJob(labels=range(4), epsilon=1.0).run(given),
        lambda given: Pools.of_sizes(given, k=3, prior_epsilon=1.0),
    ],
)
def test_ragged_lists_are_refused_by_name(call):
    with pytest.raises(OptrandError):
        call(RAGGED)


@pytest.mark.parametrize("given", ["no", 1, 0.0, None, np.str_("no"), [True], np.array([True])])
@pytest.mark.parametrize(
    "call",
    [
        lambda given: optrand.certify(RR, worst_case=given),
        lambda given: RR.save("m.json", overwrite=given),
        lambda given: LabelJob(labels=range(4), epsilon=1.0, clip=given),
        lambda given: BaselineJob(labels=range(3), randomizer=RR, allow_inexact=given),
        lambda given: BaselineJob(labels=range(3), randomizer=RR, classes=given),
        lambda given: TableJob(job=LabelJob(labels=range(4), epsilon=1.0), column="y", overwrite=given),
        lambda given: TableJob(job=LabelJob(labels=range(4), epsilon=1.0), column="y").run(
            "in.csv", "out.csv", keep_key=given
        ),
        lambda given: TableJob(job=LabelJob(labels=range(4), epsilon=1.0), column="y").run(
            "in.csv", "out.csv", spend_again=given
        ),
        lambda given: optrand.randomize([0, 1], 1.0, domain=[0, 1], clip=given),
        lambda given: optrand.randomize([0, 1], 1.0, domain=[0, 1], spend_again=given),
        lambda given: Spent(1.0, exact=given),
        lambda given: RecordStreams(bytes(32), private=given),
        lambda given: recover("out.csv", withdraw=given),
    ],
)
def test_flags_are_true_or_false(here, call, given):
    with pytest.raises(InvalidInput, match="expected True or False"):
        call(given)
    assert not (here / "m.json").exists()
