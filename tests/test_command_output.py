"""Released tables of every layout read back by the commands, and answers where usage or the output is wrong."""

from __future__ import annotations

import json
import signal
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from optrand.cli import FAILED, WRONG_INPUT, app, main

ROWS = 600


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = np.random.default_rng(4).choice(["0,5", "1,5", ""], ROWS, p=[0.6, 0.3, 0.1])
    lines = [f"{i % 2};{label};{label and 'ab'[label > '1']}" for i, label in enumerate(labels)]
    (tmp_path / "in.csv").write_text("\n".join(["g;y;c", *lines, ""]))
    return labels


def invoked(*arguments, code=0):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result


def released(*more):
    options = ("--epsilon", "6", "--separator", ";", "--no-ledger", *more)
    return invoked("randomize", "in.csv", "out.csv", *options)


NUMBERS = ("--label", "y", "--labels", "0.5,1.5", "--decimal", ",")
CLASSES = ("--label", "c", "--classes", "a,b")


@pytest.mark.parametrize("nulls", ["pass", "drop"])
@pytest.mark.parametrize("more", [NUMBERS, (*NUMBERS, "--group", "g"), CLASSES])
def test_released_tables_are_read_as_they_were_written(here, nulls, more):
    released(*more, "--nulls", nulls)
    layout = ("--separator", ";", *(("--decimal", ",") if "y" in more else ()))
    said = json.loads(invoked("estimate", "out.csv.release.json", "out.csv", *layout, "--json").stdout)
    present = here[here != ""]
    assert said["rows"] == present.size
    for name, one in zip(("0,5", "1,5"), said["histogram"], strict=True):
        assert abs(one["share"] - (present == name).mean()) < 6 * one["error"]
    invoked("verify", "out.csv.release.json", "--table", "out.csv", "--separator", ";")


@pytest.mark.usefixtures("here")
def test_labels_that_a_release_does_not_have_are_refused():
    released(*NUMBERS, "--nulls", "pass")
    without_nulls = json.loads(invoked("estimate", "out.csv.release.json", "out.csv", "--json", code=2).stdout)
    assert "name the separator" in without_nulls["error"]
    only_separator = invoked("estimate", "out.csv.release.json", "out.csv", "--separator", ";", code=2)
    assert "labels that are missing or that no such release has" in only_separator.stderr
    assert not any(sign.isdigit() for sign in only_separator.stderr)
    table = ("--separator", ";")
    assert "no record" in invoked("verify", "out.csv.mechanism.json", *table, code=2).stderr


@pytest.mark.usefixtures("here")
def test_another_digest_is_told_to_the_owner_alone():
    digest = ("--expect-sha256", "0" * 64)
    options = ("--epsilon", "1", "--separator", ";", "--no-ledger", "--nulls", "drop")
    result = invoked("randomize", "in.csv", "out.csv", *NUMBERS, *options, *digest, "--json", code=2)
    assert json.loads(result.stdout) == {"exit": 2}
    assert "its SHA-256 is another" in result.stderr


@pytest.fixture
def called(monkeypatch):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("randomize", "--json"), "Missing argument"),
        (("nothing", "--json"), "No such command"),
        (("verify", "--json", "in.csv", "--bogus"), "No such option"),
        (("solve", "--json", "--epsilon"), "requires an argument"),
    ],
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
