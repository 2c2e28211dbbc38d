"""The command lines of the README, the tour and the how-tos run as they are printed."""

import doctest
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from asserting import by_case
from commands import invoke
from typer.main import get_command

from optrand.cli import app

ROOT = Path(__file__).parent.parent

README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")

LONG = ("theory",)
"""All claims: half a minute, which their own tests try."""


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Change to an empty folder, with a ledger of its own."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


@pytest.fixture
def clone(empty):
    """Change to a folder that has the bundled data where a clone has them."""
    (empty / "optrand").mkdir()
    (empty / "optrand" / "data").symlink_to(ROOT / "optrand" / "data")
    return empty


def lines(page):
    """Command lines of a page that take no more than seconds."""
    told = re.findall(r"^    optrand (.*)$", page.replace("\\\n", ""), flags=re.MULTILINE)
    return [line for line in told if line not in LONG and not line.startswith("theory --claim")]


@by_case("page, least", (README, 4), pytest.param(TOUR, 10, marks=pytest.mark.docs), ids=["readme", "tour"])
def test_each_command_line_runs(clone, page, least):
    own = lines(page)
    assert len(own) >= least
    for line in own:
        result = invoke(*shlex.split(line))
        assert result.exit_code == 0, f"{line}: {result.stderr}"
    spent = json.loads((clone / "noisy.csv.release.json").read_text())
    assert spent["epsilon"] == 1.0


HOW_TO = [ROOT / "docs" / "audit.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


@pytest.mark.docs
@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_pages_run_from_top_to_bottom_as_printed(page):
    """Code and command lines run in their order, in an empty folder."""
    pieces = re.findall(
        r"^```python\n(.*?)^```|^    (optrand .*?[^\\])$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    assert any(line for _, line in pieces)
    for code, line in pieces:
        if code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
            told: list[str] = []
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
                test, out=told.append, clear_globs=False
            )
            assert told == []
            names = test.globs
        else:
            result = invoke(*shlex.split(line.replace("\\\n", " "))[1:])
            assert result.exit_code == 0, f"{line}: {result.stderr}"


def test_the_tour_shows_every_command():
    assert {line.split()[0] for line in lines(TOUR)} | {"audit", "theory"} == set(get_command(app).commands)


def test_the_extras_that_pages_install_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))]
    named = [
        name for page in pages for told in re.findall(r"(?:optrand|'\.)\[([a-z,]+)\]", page) for name in told.split(",")
    ]
    assert {"learning", "release"} <= set(named) <= set(extras)


def test_the_demo_prints_what_the_tour_shows(clone):
    """Line by line, except for figures of the noise: the gap, the loss and the errors of counts."""
    (line,) = re.findall(r"^\t\$\(RUN\)optrand (randomize .*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    (clone / "demo").mkdir()
    told = invoke(*shlex.split(line)).stdout.splitlines()
    block = re.search(r"and prints\n\n((?: {4}.*\n)+)", TOUR)
    assert block is not None
    printed = [row[4:] for row in block[1].splitlines()]
    figures = re.compile(
        r"(?<=^verified gap      ).*|(?<=^randomizer        ).*|(?<=^noisy label loss  )[0-9.]+|"
        r"(?<=deviation )[0-9.]+|(?<=at most )[0-9.]+"
    )
    assert [figures.sub("*", row) for row in told] == [figures.sub("*", row) for row in printed]


def test_the_demo_is_refused_the_second_time_and_says_why(clone):
    (line,) = re.findall(r"^\t\$\(RUN\)optrand (randomize .*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    (clone / "demo").mkdir()
    invoke(*shlex.split(line), code=0)
    before = (clone / "demo" / "weeks.csv").read_bytes()
    second = invoke(*shlex.split(line), "--force", code=5)
    assert "was released before, for epsilon" in second.stderr
    assert "--again" in second.stderr
    assert (clone / "demo" / "weeks.csv").read_bytes() == before
    invoke(*shlex.split(line), "--force", "--again", code=0)
    totals = json.loads(invoke("ledger", "--ledger", "demo/ledger.sqlite", "--json").stdout)["totals"]
    assert [total["dataset"] for total in totals] == ["demo"]


SHORT = ["--column", "y", "--labels", "0:2", "--epsilon", "1"]


def test_a_release_whose_output_nobody_reads_is_complete_and_says_so(clone):
    (clone / "in.csv").write_text("y\n" + "1\n2\n" * 30)
    command = [sys.executable, "-m", "optrand", "randomize", "in.csv", "out.csv", *SHORT, "--dataset", "d"]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 4, result.stderr
    assert "out.csv had been released completely by then" in result.stderr
    assert "Traceback" not in result.stderr
    assert (clone / "out.csv.release.json").is_file()


def test_classes_keep_their_type_and_missing_ones_are_a_class(clone):
    (clone / "in.csv").write_text("x,y\n" + "1,true\n2,false\n3,\n" * 40)
    declared = ["--column", "y", "--labels", "true,false", "--nulls", "class", "--epsilon", "4", "--dataset", "d"]
    result = invoke("randomize", "in.csv", "out.csv", *declared, "--json", code=0)
    answer = json.loads(result.stdout)
    assert (answer["labels"], answer["copied"], answer["exit"]) == (3, ["x"], 0)
    assert {row.split(",")[1] for row in (clone / "out.csv").read_text().splitlines()[1:]} <= {"true", "false", ""}
    invoke("estimate", "out.csv.release.json", "out.csv", "--json", code=0)


@pytest.mark.parametrize("more", [["--loss", "absolute", "--outputs", "interval:0:2"], ["--loss", "zero-one"]])
def test_other_losses_are_released_with_a_proof(clone, more):
    (clone / "in.csv").write_text("y\n" + "1\n2\n" * 30)
    result = invoke("randomize", "in.csv", "out.csv", *SHORT, "--dataset", "d", *more, "--json", code=0)
    answer = json.loads(result.stdout)
    assert float(answer["noisy_label_loss"]) < 10
    # Of classes whose histogram would be hard to estimate, one in a hundred is drawn by randomized response.
    assert answer["verified_gap"] < (0.0102 if "zero-one" in more else 1e-6)
    invoke("verify", "out.csv.release.json", "--table", "out.csv", code=0)
