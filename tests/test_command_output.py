"""Released tables of every layout read back by the commands, and answers if usage or the output is wrong."""

import importlib
import json
import signal
import sys

import numpy as np
import pyarrow as pa
import pytest
from asserting import by_case
from commands import invoke
from pyarrow import parquet

import optrand
from optrand.cli import FAILED, WRONG_INPUT, main

ROWS = 600


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = np.random.default_rng(4).choice(["0,5", "1,5", ""], ROWS, p=[0.6, 0.3, 0.1])
    lines = [f"{i % 2};{label};{label and 'ab'[label > '1']}" for i, label in enumerate(labels)]
    (tmp_path / "in.csv").write_text("\n".join(["g;y;c", *lines, ""]))
    return labels


def released(*more):
    options = ("--epsilon", "6", "--separator", ";", "--no-ledger", *more)
    return invoke("randomize", "in.csv", "out.csv", *options)


@pytest.mark.usefixtures("here")
def test_names_of_columns_with_commas_are_in_quotes(tmp_path):
    (tmp_path / "in.csv").write_text('"a, b";c;y\n' + "1;2;0,5\n" * 50)
    told = released("--column", "y", "--labels", "0.5,1.5", "--decimal", ",", "--groups", '"a, b"').stdout
    assert 'copied            "a, b", c\n' in told
    assert '1 by "a, b"\n' in told


NUMBERS = ("--column", "y", "--labels", "0.5,1.5", "--decimal", ",")
CLASSES = ("--column", "c", "--labels", "a,b")


@pytest.mark.parametrize("nulls", ["pass", "drop"])
@pytest.mark.parametrize("more", [NUMBERS, (*NUMBERS, "--groups", "g"), CLASSES])
def test_released_tables_are_read_as_they_were_written(here, nulls, more):
    released(*more, "--nulls", nulls)
    said = json.loads(invoke("estimate", "out.csv.release.json", "out.csv", "--json").stdout)
    present = here[here != ""]
    assert said["rows"] == present.size
    for name, one in zip(("0,5", "1,5"), said["histogram"], strict=True):
        assert abs(one["share"] - (present == name).mean()) < 6 * one["error"]
    invoke("verify", "out.csv.release.json", "--table", "out.csv")


@pytest.mark.parametrize("nulls", ["pass", "class"])
def test_integer_names_that_pandas_keeps_as_floats_are_written_as_declared(tmp_path, monkeypatch, nulls):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table({"id": range(300), "c": [0.0, 1.0, None] * 100}), "in.parquet")
    options = ("--column", "c", "--labels", "0,1", "--task", "classification", "--epsilon", "6", "--no-ledger")
    invoke("randomize", "in.parquet", "out.csv", "--nulls", nulls, *options, code=0)
    cells = [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert set(cells) == {"0", "1", ""}
    said = json.loads(invoke("estimate", "out.csv.release.json", "out.csv", "--json", code=0).stdout)
    assert said["rows"] == (200 if nulls == "pass" else 300)


@pytest.mark.parametrize("cells", [[0.0, 2.0, None], [0.1, 1e20, float("nan")]], ids=str)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_groups_of_floats_are_found_in_a_released_csv(tmp_path, monkeypatch, cells, kind):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table({"y": [0, 1] * 300, "g": pa.array(cells * 200, kind)}), "in.parquet")
    options = ("--column", "y", "--labels", "0,1", "--epsilon", "2", "--no-ledger", "--groups", "g")
    invoke("randomize", "in.parquet", "out.csv", *options, code=0)
    said = json.loads(invoke("estimate", "out.csv.release.json", "out.csv", "--json", code=0).stdout)
    assert said["groups"] == "3 by g"
    assert abs(said["mean"] - 0.5) < 8 * said["mean_error"]


@pytest.mark.parametrize("groups", [(), ("--groups", "g")])
def test_numbers_are_numbers_in_json(here, groups):
    told = json.loads(released(*NUMBERS, *groups, "--nulls", "drop", "--json").stdout)
    record = optrand.load_release("out.csv.release.json")
    verified = json.loads(invoke("verify", "out.csv.release.json", "--json").stdout)
    estimated = json.loads(invoke("estimate", "out.csv.release.json", "out.csv", "--json").stdout)
    for answer in (told, verified, estimated):
        assert answer["total_epsilon"] == record.epsilon
        assert (answer["prior_epsilon"], answer["labels_epsilon"]) == (record.parts.prior, record.parts.labels)
    assert (told["realised_epsilon"], told["noisy_label_loss"]) == (record.realised_epsilon, record.noisy_label_loss)
    assert [one["digest"] for one in verified["mechanisms"]] == [one.digest for one in record.distinct]
    for shown, mechanism in zip(verified["mechanisms"], record.distinct, strict=True):
        proof = mechanism.certificate
        assert (shown["realised_epsilon"], shown["largest_bias"]) == (proof.epsilon, proof.bias)
        assert (shown["verified_gap"], shown["optimal_value"]) == (proof.gap, [proof.lower, proof.upper])
    mean = np.mean([float(label.replace(",", ".")) for label in here if label])
    assert abs(estimated["mean"] - mean) < 6 * estimated["mean_error"]


@pytest.mark.usefixtures("here")
def test_a_release_by_groups_without_their_column_is_warned_of_and_not_estimated():
    told = released(*NUMBERS, "--nulls", "drop", "--groups", "g", "--keep", "c")
    assert "warning: out.csv will have no column 'g': nothing can be estimated" in told.stderr
    refused = invoke("estimate", "out.csv.release.json", "out.csv", code=WRONG_INPUT)
    assert "by groups of 'g', a column that out.csv does not have" in refused.stderr
    assert "warning" not in released(*NUMBERS, "--nulls", "drop", "--groups", "g", "--keep", "g", "--force").stderr


@pytest.mark.usefixtures("here")
def test_a_release_from_which_nothing_can_be_estimated_is_no_success():
    released(*CLASSES, "--nulls", "drop", "--randomizer", "rr-top-k:1")
    told = invoke("estimate", "out.csv.release.json", "out.csv", code=2)
    assert "histogram      not estimated" in told.stdout
    assert "nothing can be estimated" in told.stderr
    released(*NUMBERS, "--nulls", "drop", "--randomizer", "debiased-rr", "--force")
    assert "not estimated" not in invoke("estimate", "out.csv.release.json", "out.csv").stdout


@pytest.mark.usefixtures("here")
def test_files_that_are_no_release_are_named(tmp_path):
    released(*NUMBERS, "--nulls", "pass")
    swapped = invoke("estimate", "out.csv", "out.csv.release.json", code=3)
    words = "out.csv is neither a saved mechanism nor the record of a release"
    assert words in swapped.stderr
    assert words in invoke("verify", "out.csv", code=3).stderr
    for command in ("verify", "estimate"):
        missing = invoke(command, "none.json", *(["out.csv"] if command == "estimate" else []), code=2)
        assert "none.json is not there" in missing.stderr
    optrand.load_release("out.csv.release.json").mechanism.save(tmp_path / "m.json")
    assert "needs the record of a release" in invoke("verify", "m.json", "--table", "out.csv", code=2).stderr
    assert "not a record of one release" in invoke("estimate", "m.json", "out.csv", code=2).stderr
    invoke("estimate", "out.csv.release.json", "none.csv", code=2)


@pytest.fixture
def called(monkeypatch):
    # main() hides pandas, and Arrow remembers whether it was there.
    importlib.import_module("pandas")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    def call(*arguments):
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["optrand", *arguments])
        closed = sys.stdout is None
        with pytest.raises(SystemExit) as ended:
            main()
        if closed:
            sys.stdout.close()
        return ended.value.code

    return call


@by_case(
    "arguments, message",
    (("randomize", "--json"), "Missing argument"),
    (("nothing", "--json"), "No such command"),
    (("verify", "--json", "in.csv", "--bogus"), "No such option"),
    (("solve", "--json", "--epsilon"), "requires an argument"),
)
def test_wrong_usage_is_answered_in_json(called, capsys, arguments, message):
    assert called(*arguments) == WRONG_INPUT
    told = json.loads(capsys.readouterr().out)
    assert told["exit"] == WRONG_INPUT
    assert message in told["error"]


@pytest.mark.parametrize("arguments", [("--version",), ("ledger", "--json"), ("randomize", "--json")])
def test_a_closed_output_is_an_error_in_one_line(called, monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", None)
    assert called(*arguments) == FAILED
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: Bad file descriptor")


@pytest.mark.usefixtures("here")
def test_a_release_whose_output_is_closed_says_that_it_is_complete(called, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    options = ("--epsilon", "1", "--separator", ";", "--no-ledger", "--nulls", "drop")
    assert called("randomize", "in.csv", "out.csv", *NUMBERS, *options) == 4
    assert "out.csv had been released completely by then" in capsys.readouterr().err
