"""Advice in messages: parameters of Python for a caller in Python, options for a user of the command line."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asserting import assert_error
from commands import invoke
from typer.main import get_command

import optrand
from optrand.accounting._ledger import Ledger
from optrand.base._suggestions import HOMES, NAMES
from optrand.cli import app
from optrand.cli._console import IN_OPTIONS, in_options
from optrand.errors import OptrandError
from optrand.release import Question, _files, randomize_table

PACKAGE = Path(optrand.__file__).parent

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]

OPTIONS = {name: {flag for given in command.params for flag in given.opts} for name, command in COMMANDS.items()}

PARAMETER, OPTION = re.compile(r"\b([a-z_]+)=(?!=)"), re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def signatures(*called: Callable[..., Any]) -> set[str]:
    return {name for one in called for name in inspect.signature(one).parameters}


def run_job(target: str = "out.csv", **options: Any) -> object:
    question = Question(column="y", labels=range(3), epsilon=1.0)
    return randomize_table("in.csv", target, question, **{"ledger": None, **options})


CHARGED = {"dataset": "d", "ledger": "accounts/ledger.sqlite"}
CHARGED_OPTIONS = ("--dataset", "d", "--ledger", "accounts/ledger.sqlite")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("accounts").mkdir()
    write_labels("in.csv", [0, 1, 2] * 50)


def write_labels(path: str, labels: list[object], separator: str = ",") -> None:
    Path(path).write_text(f"id{separator}y\n" + "".join(f"{i}{separator}{y}\n" for i, y in enumerate(labels)))


def release_once() -> None:
    run_job(**CHARGED)


def fail(*_: object, **__: object) -> None:
    raise OSError(28, "the disk is full")


def break_off() -> None:
    """Leave an unfinished release of other labels in the ledger."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_files, "publish", fail)
        assert_error("disk is full", run_job, error=OSError, **CHARGED)
    write_labels("in.csv", [2, 1, 0] * 50)


def occupy() -> None:
    Path("out.csv").touch()


def misdeclare() -> None:
    write_labels("in.csv", [0, 1, 7])


def use_semicolons() -> None:
    write_labels("in.csv", [0, 1, 2], ";")


def nothing() -> None:
    """Prepare nothing."""


NUMBERS = ("--labels", "0:2")

Case = tuple[Callable[[], None], Callable[[], object], tuple[Callable[..., Any], ...], tuple[str, ...], str]

PLAIN = ("out.csv", *NUMBERS, "--no-ledger")
AGAIN = ("other.csv", *NUMBERS, *CHARGED_OPTIONS)


def release_in_memory() -> object:
    return optrand.randomize(np.arange(3), 1.0, labels=range(3), column="y", **CHARGED)


def leave_record() -> None:
    Path("out.csv.release.json").touch()


CASES: dict[str, Case] = {
    "another release": (release_once, lambda: run_job("other.csv", **CHARGED), (randomize_table,), AGAIN, "--again"),
    "another in memory": (release_in_memory, release_in_memory, (optrand.randomize, Ledger.begin), AGAIN, "--again"),
    "other labels": (
        *(break_off, lambda: run_job(**CHARGED), (randomize_table,)),
        *(("out.csv", *NUMBERS, *CHARGED_OPTIONS), "--again"),
    ),
    "a file that exists": (occupy, run_job, (randomize_table,), PLAIN, "--force"),
    "labels that are not declared": (misdeclare, run_job, (randomize_table,), PLAIN, "--diagnose"),
    "two numbers for a range": (
        misdeclare,
        lambda: randomize_table("in.csv", "out.csv", Question(column="y", labels=[0, 7.5], epsilon=1.0), ledger=None),
        (randomize_table, Question),
        ("out.csv", "--labels", "0,7.5", "--no-ledger"),
        "--labels",
    ),
    "labels that are missing": (
        *(lambda: write_labels("in.csv", [0, 1, ""]), run_job, (randomize_table, Question), PLAIN, "--nulls"),
    ),
    "another separator": (use_semicolons, run_job, (randomize_table,), PLAIN, "--separator"),
    "a class of missing numbers": (
        nothing,
        lambda: Question(labels=range(3), nulls="class", epsilon=1.0),
        (Question,),
        ("out.csv", "--no-ledger", "--labels", "0:2", "--nulls", "class"),
        "--task",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_advice_is_in_the_language_of_its_reader(name: str) -> None:
    prepare, call, called, arguments, option = CASES[name]
    prepare()
    with pytest.raises(OptrandError) as raised:
        call()
    said = "; ".join((str(raised.value), *getattr(raised.value, "__notes__", ())))
    named = set(PARAMETER.findall(said))
    assert named or "diagnose_table()" in said, said
    assert named <= signatures(*called), said
    assert not OPTION.findall(said), said

    result = invoke("randomize", "in.csv", *arguments, "--column", "y", "--epsilon", "1")
    assert result.exit_code in (2, 5), result.output
    told = result.stderr
    assert option in OPTION.findall(told), told
    assert set(OPTION.findall(told)) <= OPTIONS["randomize"], told
    assert not PARAMETER.findall(told), told
    assert "()" not in told, told


def raised_texts(file: Path) -> list[str]:
    """Texts of the errors and notes that a module makes."""
    tree = ast.parse(file.read_text())
    made = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    made += [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "Note" in ast.unparse(node.func)]
    return [
        " ".join(
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        for node in made
    ]


def test_no_module_but_the_command_line_names_its_options() -> None:
    for file in PACKAGE.rglob("*.py"):
        if "cli" not in file.parts:
            for text in raised_texts(file):
                # A whole command is the same wherever it is read.
                assert not OPTION.findall(text.replace("optrand theory --list", "")), (file.name, text)


def test_options_that_the_command_line_names_are_those_of_a_command() -> None:
    every = set().union(*OPTIONS.values()) | {"--help"}
    for file in (PACKAGE / "cli").rglob("*.py"):
        for text in raised_texts(file):
            assert set(OPTION.findall(text)) <= every, (file.name, text)
    for _, option in IN_OPTIONS:
        assert set(OPTION.findall(option)) <= OPTIONS["randomize"]


def test_every_translation_is_of_advice_that_the_package_gives() -> None:
    sources = "".join(file.read_text() for file in PACKAGE.rglob("*.py") if "cli" not in file.parts)
    for pattern, _ in IN_OPTIONS:
        assert re.search(pattern, sources), pattern


def test_a_singular_mechanism_of_names_is_not_answered_by_one_of_numbers() -> None:
    with pytest.warns(UserWarning, match="no histogram") as told:
        optrand.randomize(list("aaab"), 1.0, labels=["a", "b", "c"], prior=[0.9, 0.05, 0.05])
    advice = in_options(str(told[0].message))
    assert "(--randomizer rr, or for numbers debiased-rr or an optimal unbiased randomizer for" in advice
    assert advice.endswith("The mean of numbers can be estimated from any unbiased mechanism")


def test_words_that_are_no_advice_are_left() -> None:
    for words in ("column 'overwrite' has no label", "the frame has again in a cell", ""):
        assert in_options(words) == words


@pytest.mark.parametrize("name", sorted(" ".join([*NAMES.values(), *HOMES.values()]).split()))
def test_a_name_that_is_elsewhere_is_said_to_be_there(name):
    with pytest.raises(AttributeError) as refused:
        getattr(optrand, name)
    found = refused.value.args[0].partition("did you mean optrand.")[2].rstrip("?")
    one: object = optrand
    for part in found.split("."):
        one = getattr(one, part)


def test_a_misspelt_name_is_told_the_nearest_one():
    with pytest.raises(AttributeError, match=r"did you mean optrand\.randomize\?"):
        optrand.randomise  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'quux'$"):
        optrand.quux  # noqa: B018
