"""Declarations as users write them are read as written, and slips are named."""

from pathlib import Path

import numpy as np
import pytest
from asserting import assert_error, by_case

from optrand.cli._reading import parse_columns, parse_declared, parse_labels, read_loss, read_prior


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@by_case(
    "text, labels",
    ("0:3", [0, 1, 2, 3]),
    ("-1:1:0.5", [-1, -0.5, 0, 0.5, 1]),
    ("0:0.3:0.1", [0, 0.1, 0.2, 0.3]),
    ("7, -1,2.5", [-1, 2.5, 7]),
    ("1e3", [1000]),
)
def test_labels_are_the_decimals_that_are_written(text: str, labels: list[float]) -> None:
    assert parse_labels(text).tolist() == labels
    Path("labels.txt").write_text(text.replace(",", "\n") if ":" not in text else ",".join(map(str, labels)))
    assert parse_labels("@labels.txt").tolist() == labels


@pytest.mark.parametrize("text", ["0:9007199254740994:9007199254740994", "9007199254740993,0"])
def test_integers_that_floats_cannot_tell_apart_are_refused(text: str) -> None:
    assert_error(r"beyond 2\*\*53", parse_labels, text)


def test_a_line_of_a_file_of_names_is_a_name_whatever_it_holds() -> None:
    """To str.splitlines() U+2028, U+0085 and form feeds end a line, too."""
    names = ("a\u2028b", "c\x0cd", "e\x85f", "neither, nor", " g ", "h" * 200_000)
    Path("classes.txt").write_bytes("\r\n".join(names).encode("utf-8-sig") + b"\n\n")
    assert parse_declared("@classes.txt") == names


def test_names_with_commas_are_quoted() -> None:
    assert parse_declared('yes,"neither, nor"') == ("yes", "neither, nor")


@pytest.mark.parametrize("text", ["0:3", "0:1:0.5", "2,1", "1e3", "@numbers.txt"])
def test_labels_are_numbers_if_all_of_them_are(text: str) -> None:
    Path("numbers.txt").write_text("3\n1\n")
    assert np.array_equal(np.sort(parse_declared(text)), parse_labels(text))


def test_numbers_are_names_if_the_task_says_so() -> None:
    assert parse_declared("2,01,3+", "classification") == ("2", "01", "3+")
    assert parse_declared("1:3", "classification") == ("1", "2", "3")


@by_case(
    "text, task, message",
    ("1,2,3+", None, "2 of 3 declared labels are numbers, .* with --task classification"),
    ("0,1,O", None, "2 of 3 declared labels are numbers"),
    ("0-52", None, "would be a single name: write the range of numbers as 0:52"),
    ("1 to 3", "classification", "as 1:3"),
    ("yes,no", "regression", "entry 1 of the list is not a number"),
    ("nan,1", None, "entry 1 of the list"),
    ("0:O", None, "an end of '0:O'"),
    ("1,2,", None, "entry 3 of the list"),
    ("", None, "entry 1 of the list"),
)
def test_labels_that_may_be_mistyped_are_refused(text: str, task: str | None, message: str) -> None:
    assert_error(message, parse_declared, text, task)
    assert parse_columns('id,"a,b"', "--ids") == ("id", "a,b")


PRIORS = {
    "no header": "0,1\n1,3\n",
    "header": "label,count\n1,3\n0,1\n",
    "header in other words": "weeks, people\n0,0.25\n1,0.75\n",
    "blank lines and a mark": "\ufeff\n0,1\n\n1,3\n",
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_are_shares_in_the_order_of_the_labels(name: str) -> None:
    Path("prior.csv").write_text(PRIORS[name], encoding="utf-8")
    assert read_prior("prior.csv", np.array([0.0, 1.0])).tolist() == [0.25, 0.75]


SLIPS = {
    "a first line with a letter for a digit": ("O,1\n1,3\n", "the label in line 1 of prior.csv is not a number"),
    "a first line with a slip in the count": ("0,l\n1,3\n", "the count in line 1 of prior.csv is not a number"),
    "semicolons": (
        "label;count\n0;1\n",
        "line 1 of prior.csv has 1 cell, expected two separated by a comma, not by ';': a label and",
    ),
    "a first line of three": ("label,count,share\n0,1\n", "line 1 of prior.csv has 3 cells"),
    "two headers": ("label,count\nlabel,count\n0,1\n", "the label in line 2"),
    "a label twice": ("0,1\n0.0,2\n", "line 2 of prior.csv comes twice"),
    "another label": ("0,1\n2,2\n", "line 2 of prior.csv is not declared"),
    "a negative count": ("0,1\n1,-2\n", "line 2 of prior.csv is negative"),
    "nothing": ("", "no count above 0"),
    "zeros": ("0,0\n1,0\n", "no count above 0"),
    "a long cell": ("0,1\n1," + "1" * 200_000 + "\n", "a cell is too long"),
    "an open quote": ('0,1\n"1,2\n', "misquoted"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_slips_in_a_prior_are_named_by_their_line(name: str) -> None:
    content, words = SLIPS[name]
    Path("prior.csv").write_text(content)
    assert_error(words, read_prior, "prior.csv", np.array([0.0, 1.0]))


def test_a_class_may_be_named_in_the_first_line_of_a_prior() -> None:
    Path("prior.csv").write_text("yes,3\nno,1\n")
    assert read_prior("prior.csv", ("yes", "no")).tolist() == [0.75, 0.25]
    Path("prior.csv").write_text("answer,people\n,2\nno,1\nyes,1\n")
    assert read_prior("prior.csv", ("yes", "no", None)).tolist() == [0.25, 0.25, 0.5]


def test_labels_that_a_prior_leaves_out_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prior.csv").write_text("1,3\n")
    assert read_prior("prior.csv", np.array([0.0, 1.0, 2.0])).tolist() == [0, 1, 0]
    assert "2 label(s) are not in prior.csv: their prior is 0" in capsys.readouterr().err


def test_a_loss_has_a_row_for_each_label() -> None:
    Path("loss.csv").write_text("0,1,2.5\n1,0,1e-3\n")
    assert read_loss("loss.csv").entries.tolist() == [[0, 1, 2.5], [1, 0, 0.001]]
    Path("loss.csv").write_text("0,1\n1\n")
    assert_error("several lengths", read_loss, "loss.csv")
