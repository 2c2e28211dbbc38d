"""How claims are tried: comparisons, verdicts, blind checks, what is kept of a long run, and what is told."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from optrand.cli import FAILED, UNVERIFIED, WRONG_INPUT, app
from optrand.errors import InvalidInput, MissingExtra
from optrand.theory import (
    BlindCheck,
    Budget,
    Claim,
    Comparison,
    Finding,
    Verdict,
    at_most,
    catalogue,
    check,
    checking,
    claims,
    equal,
    find,
    none,
    running,
    worst,
)
from optrand.theory.pictures import claim_figure
from optrand.theory.writing import details, one_line, page, tally

ROOT = Path(__file__).parent.parent

rationals = st.fractions(min_value=-100, max_value=100, max_denominator=50)


@given(rationals, rationals)
def test_exact_comparisons_hold_if_and_only_if_their_margin_is_not_negative(left: Fraction, right: Fraction) -> None:
    assert at_most(left, right).exact
    assert at_most(left, right).holds == (left <= right) == (at_most(left, right).margin >= 0)
    assert equal(left, right).holds == (left == right) == (equal(left, right).margin == 0)


def test_a_tolerance_is_a_share_of_the_larger_side() -> None:
    assert at_most(1_000.1, 1_000.0, tolerance=1e-3).holds
    assert not at_most(1_000.1, 1_000.0, tolerance=1e-5).holds
    assert not at_most(1_000.1, 1_000.0).holds
    assert equal(0.0, 1e-12, tolerance=1e-9, scale=1.0).holds
    assert not equal(0.0, 1e-12, tolerance=1e-9).holds


def test_numbers_that_are_none_never_hold_and_infinite_and_huge_ones_are_compared() -> None:
    for left, right in ((math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)):
        for alike in (False, True):
            assert not Comparison(left, right, alike=alike, tolerance=1.0).holds
    assert at_most(1, math.inf).holds
    assert at_most(math.inf, math.inf).holds
    assert not at_most(math.inf, 1).holds
    assert not equal(1, math.inf, tolerance=1e-9).holds
    huge = 10**5_000
    assert at_most(huge, huge + 1).holds
    assert not at_most(huge + 1, huge).holds


def test_of_several_comparisons_one_that_fails_is_the_worst_and_all_have_to_be_exact() -> None:
    failing, near = at_most(1.0 + 1e-3, 1.0), equal(1.0, 1.0 + 1e-2, tolerance=0.1)
    for one in (worst(near, failing), worst(failing, near)):
        assert (one.left, one.right, one.holds) == (failing.left, failing.right, False)
    assert not worst(none(0), none(1), at_most(0, 5)).holds
    assert worst(at_most(1, 2), none(0)).exact
    assert not worst(at_most(1, 2), at_most(0.5, 9.0)).exact


def numbers(_: Budget) -> Iterator[int]:
    return iter(range(1, 6))


def squares_are_larger(number: int) -> Comparison:
    """No number is larger than its square.

    A second paragraph, which is not the wording.
    """
    return at_most(number, number**2)


def squares_are_much_larger(number: int) -> Comparison:
    """Twice a number is at most its square."""
    return at_most(2 * number, number**2)


def squares_are_larger_from_two_on(number: int) -> Comparison:
    """Twice a number above one is at most its square."""
    return at_most(2 * max(number, 2), max(number, 2) ** 2)


def made(
    printed: Callable[[int], Comparison] = squares_are_larger,
    false: Callable[[int], Comparison] = squares_are_much_larger,
    corrected: Callable[[int], Comparison] | None = None,
    quantifier: str = "",
    needs: tuple[str, ...] = (),
) -> Claim:
    return Claim(
        paper="B23",
        number="Lemma 99",
        hypothesis="positive integers",
        instances=numbers,
        printed=printed,
        false=false,
        corrected=corrected,
        quantifier=quantifier,
        needs=needs,
    )


def contradicted(number: int) -> Comparison:
    """Every number is zero."""
    return equal(number, 0)


LARGER = made(printed=squares_are_much_larger, false=contradicted)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (made(), Verdict.HOLDS),
        (LARGER, Verdict.REFUTED),
        (dataclasses.replace(LARGER, corrected=squares_are_larger_from_two_on), Verdict.CORRECTED),
        (dataclasses.replace(LARGER, corrected=contradicted), Verdict.REFUTED),
        (made(quantifier="all numbers"), Verdict.UNDECIDED),
        (
            dataclasses.replace(LARGER, corrected=squares_are_larger_from_two_on, quantifier="all numbers"),
            Verdict.UNDECIDED,
        ),
        (dataclasses.replace(LARGER, quantifier="all numbers"), Verdict.REFUTED),
    ],
)
def test_the_verdict_follows_from_the_evidence(claim: Claim, verdict: Verdict) -> None:
    finding = check(claim)
    assert finding.verdict is verdict
    assert finding.printed.tried == 5
    assert finding.printed.exact


def test_the_counterexample_is_the_first_and_the_worst_case_the_worst() -> None:
    finding = check(LARGER)
    assert finding.printed.broken is not None
    assert (finding.printed.broken.instance, finding.printed.broken.left) == ("1", 2.0)
    assert finding.printed.worst == finding.printed.broken
    assert finding.printed.worst.margin == -0.5
    held = check(made())
    assert held.printed.worst.instance == "1"
    assert held.printed.wording == "No number is larger than its square."
    # A false variant is asked until it is refuted.
    assert check(made(false=contradicted)).false.tried == 1


def test_a_check_that_does_not_refute_the_false_variant_is_no_check() -> None:
    with pytest.raises(BlindCheck, match="Lemma 99: no instance refutes the false variant"):
        check(made(false=squares_are_larger))
    with pytest.raises(BlindCheck, match="no instance"):
        check(dataclasses.replace(made(), instances=lambda _: iter(())))


def no_number(number: int) -> Comparison:
    """A number is at most what is none."""
    return at_most(number, math.nan)


@pytest.mark.parametrize("claim", [made(printed=no_number), made(false=no_number), made(corrected=no_number)])
def test_what_is_no_number_refutes_no_form(claim: Claim) -> None:
    with pytest.raises(BlindCheck, match=r"'A number is at most what is none\.' compares what is no number, at 1"):
        check(claim)


@pytest.mark.nightly
def test_a_claim_without_docstrings_says_so() -> None:
    code = "import optrand.theory as t; print(t.find(number='Fact 14')[0].statement)"
    told = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "(The wording is a docstring, which Python drops under -OO.)\n"


def test_a_claim_that_lacks_an_extra_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"B23 Lemma 99 needs sklearn: pip install 'optrand\[clusters\]'"):
        check(made(needs=("clusters",)))


def test_every_claim_is_found_by_its_names_and_all_names_differ() -> None:
    known = claims()
    assert len({claim.key for claim in known}) == len(known)
    for claim in known:
        assert claim in find(number=claim.number)
        assert claim in find(paper=claim.paper, number=f"{claim.number}: {claim.part}")
        assert find(number=claim.name) == find(paper=claim.paper, number=claim.name)
        assert claim in find(paper=claim.paper.lower(), number=claim.key)
        assert claim.statement.endswith(".")
        assert claim.hypothesis
        assert claim.paper in catalogue.PAPERS


def test_an_unknown_paper_or_claim_lists_the_near_ones() -> None:
    with pytest.raises(InvalidInput, match="expected one of G21, E22, Z25, B23"):
        find(paper="X1")
    with pytest.raises(InvalidInput, match="near ones: B23 Proposition 7"):
        find(paper="B23", number="Propositon 7")
    with pytest.raises(InvalidInput, match="--list"):
        find(number="the meaning of life")


def test_a_claim_is_found_by_a_part_of_its_name() -> None:
    assert [claim.name for claim in find(number="LP1")] == ["G21 Theorem 3: LP1", "G21 Theorem 3: LP1 implies LP2"]
    assert find(number="lp1 implies") == find(number="LP1")[1:]
    # A number comes before a part of one.
    assert {claim.number for claim in find(paper="G21", number="Lemma 1")} == {"Lemma 1"}
    assert [claim.number for claim in find(paper="B23", number="Definition 2")] == [
        f"Definition {i}" for i in (20, 21, 22, 23)
    ]


def test_the_page_of_the_papers_names_every_number_and_each_of_its_lines_finds_a_claim() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    told = re.findall(r'`optrand theory --claim "(\w[^"]+)"`', text)
    found = {each.name for name in told for each in find(number=name)}
    assert found == {each.name for each in claims()}
    experiments = re.findall(r"--experiment ([a-z0-9-]+)", text)
    assert set(experiments) <= set(tomllib.loads((ROOT / "benchmarks" / "learning" / "settings.toml").read_text()))


FIRST_TWO = find(paper="B23", number="Proposition 7")


def told(findings: list[Finding]) -> str:
    """Findings without their times."""
    return page({finding.claim: finding for finding in findings}, FIRST_TWO)


@pytest.mark.nightly
def test_processes_find_what_one_process_finds() -> None:
    alone = [outcome for outcome in running.run(FIRST_TWO, jobs=1) if isinstance(outcome, Finding)]
    together = [outcome for outcome in running.run(FIRST_TWO, jobs=2) if isinstance(outcome, Finding)]
    assert len(alone) == 2
    assert told(alone) == told(together)


def test_what_is_kept_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept"
    first = list(running.run(FIRST_TWO, jobs=1, kept=file))

    tried = []

    def refuse(claim: Claim, *_: object) -> None:
        tried.append(claim)
        raise BlindCheck("tried again")

    monkeypatch.setattr(running, "check", refuse)
    assert list(running.run(FIRST_TWO, jobs=1, kept=file)) == first
    assert not tried
    list(running.run(FIRST_TWO, Budget.FULL, jobs=1, kept=file))
    assert tried == list(FIRST_TWO)
    monkeypatch.setattr(running, "code_digest", lambda: "other code")
    list(running.run(FIRST_TWO, jobs=1, kept=file))
    assert tried == [*FIRST_TWO, *FIRST_TWO]


def divided_by_zero(number: int) -> Comparison:
    """One over what is zero is at most the number."""
    return at_most(1 // (number - number), number)


def test_a_check_that_breaks_off_takes_no_other_with_it() -> None:
    broken = made(printed=divided_by_zero)
    first, last = running.run([broken, FIRST_TWO[0]], jobs=1)
    assert isinstance(first, running.NotFound)
    assert first.failed
    assert "its check broke off, ZeroDivisionError in test_theory.py:" in first.reason
    assert isinstance(last, Finding)


def end_the_second(name: str, budget: Budget, _: None) -> running.Outcome:
    """A worker that is killed at the second claim."""
    if name == FIRST_TWO[1].name:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return check(FIRST_TWO[0], budget)


@pytest.mark.nightly
def test_a_process_that_is_killed_takes_no_finding_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_named", end_the_second)
    finding, killed = running.run(FIRST_TWO, jobs=2)
    assert isinstance(finding, Finding)
    assert isinstance(killed, running.NotFound)
    assert killed.failed
    assert "was ended from outside" in killed.reason


@pytest.mark.nightly
def test_no_process_outlives_the_one_that_it_works_for() -> None:
    code = """
from optrand.theory import find
from optrand.theory.running import run
if __name__ == "__main__":
    outcomes = run(find(paper="E22"), jobs=2)
    print(next(outcomes), flush=True)
    input()
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline().startswith(b"Finding")
    run.kill()
    # Processes that are left would hold the other end of the pipe open.
    run.communicate(timeout=60)


@pytest.mark.parametrize("left", [0, 200])
def test_a_finding_that_a_crash_tore_is_made_again(tmp_path: Path, left: int) -> None:
    findings = [each for each in running.run(FIRST_TWO, jobs=1, kept=tmp_path) if isinstance(each, Finding)]
    torn = next(tmp_path.rglob("output.pkl"))
    torn.write_bytes(torn.read_bytes()[:left])
    with warnings.catch_warnings(action="ignore"):
        again = [each for each in running.run(FIRST_TWO, jobs=1, kept=tmp_path) if isinstance(each, Finding)]
    assert [dataclasses.replace(each, seconds=0) for each in again] == [
        dataclasses.replace(each, seconds=0) for each in findings
    ]


def test_another_file_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "census.csv"
    file.write_text("weeks\n52\n")
    with pytest.raises(InvalidInput, match="is not a folder of findings"):
        list(running.run(FIRST_TWO, jobs=1, kept=file))
    assert file.read_text() == "weeks\n52\n"


def test_findings_in_words() -> None:
    findings = [check(claim) for claim in FIRST_TWO]
    assert tally(findings) == "1 numbered claim of the papers (2 checks): 1 holds, 1 as corrected"
    assert "holds as corrected" in one_line(findings[1])
    text = details(FIRST_TWO[1], findings[1])
    assert "a = 1, b = 1, c = 2" in text
    assert "Of positive numbers with `b >= c`" in text
    written = page({finding.claim: finding for finding in findings}, FIRST_TWO)
    assert "| Proposition 7: last step |" in written
    assert "## [B23]" in written
    assert "## [G21]" not in written


def test_the_picture_of_a_claim_names_its_quantities_and_has_a_mark_for_each_instance() -> None:
    claim, finding = FIRST_TWO[1], check(FIRST_TWO[1])
    (axes,) = claim_figure(claim, finding).axes
    assert (axes.get_ylabel(), axes.get_xlabel()) == claim.sides
    forms = [line for line in axes.lines if str(line.get_label()).split(" (")[0] in {"as printed", "false variant"}]
    assert [len(line.get_xdata()) for line in forms] == [len(finding.printed.sides), len(finding.false.sides)]
    assert (forms[0].get_ydata()[0], forms[0].get_xdata()[0]) == finding.printed.sides[0]


def test_each_claim_names_the_quantities_that_it_compares() -> None:
    unnamed = [field.default for field in dataclasses.fields(Claim) if field.name == "sides"]
    assert [claim.name for claim in claims() if claim.sides in unnamed or claim.sides[0] == claim.sides[1]] == []
    assert max(len(side) for claim in claims() for side in claim.sides) <= 60


def run_theory(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["theory", *arguments])
    return result.exit_code, result.output


def test_the_command_writes_a_page_and_pictures_and_refuses_to_replace_them(tmp_path: Path) -> None:
    target, folder = tmp_path / "theory.md", tmp_path / "pictures"
    arguments = ("--claim", "b23-proposition-7-last-step", "--page", str(target), "--pictures", str(folder))
    assert run_theory(*arguments)[0] == 0
    assert "**Proposition 7: last step.**" in target.read_text()
    assert [path.name for path in folder.iterdir()] == ["b23-proposition-7-last-step.png"]
    code, output = run_theory(*arguments)
    assert code == WRONG_INPUT
    assert "exists" in output
    assert run_theory(*arguments, "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--claim", "Propositoin 7"), "near ones"),
        (("--claim", "theorem"), "is part of the names of"),
        (("--claim", "LP9"), "list them all with optrand theory --list"),
        (("--claim", " - "), "list them all with optrand theory --list"),
        (("--paper", "B22"), "expected one of"),
        (("--budget", "huge"), "expected quick or full"),
        (("--claim", "b23-proposition-7", "--page", "/nowhere/page.md"), "is not a folder"),
        (("--claim", "b23-proposition-7", "--pictures", "/nowhere/at/all"), "cannot be made a folder"),
        (("--claim", "b23-proposition-7", "--page", ".", "--force"), "a folder or a device"),
        (("--claim", "b23-proposition-7", "--keep", "/nowhere/kept"), "is not a folder"),
        (("--claim", "b23-proposition-7", "--keep", "same", "--page", "./same"), "both the page and the folder"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "check", lambda *_: pytest.fail("tried"))
    code, output = run_theory(*arguments)
    assert code == WRONG_INPUT
    assert words in output


def test_the_command_lists_without_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "check", lambda *_: pytest.fail("tried"))
    code, output = run_theory("--list")
    assert code == 0
    assert len(output.splitlines()) == len(claims())


def test_the_command_fails_on_a_check_that_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "claims", lambda: (made(false=squares_are_larger),))
    code, output = run_theory()
    assert code == UNVERIFIED
    assert "the check sees nothing" in output


def test_the_command_fails_where_a_check_breaks_off_and_publishes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(catalogue, "claims", lambda: (made(printed=divided_by_zero), FIRST_TWO[0]))
    monkeypatch.setattr(running.os, "cpu_count", lambda: 1)
    code, output = run_theory("--budget", "QUICK", "--page", str(tmp_path / "page.md"))
    assert code == FAILED
    assert "not tried: its check broke off, ZeroDivisionError" in output
    assert "1 numbered claim of the papers (1 check): 1 holds" in output
    assert not list(tmp_path.iterdir())


def test_the_command_goes_on_without_an_extra_unless_asked_for_that_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = dataclasses.replace(made(needs=("clusters",)), number="Lemma 98")
    monkeypatch.setattr(catalogue, "claims", lambda: (lacking, FIRST_TWO[1]))
    monkeypatch.setattr(running, "claims", lambda: (lacking, FIRST_TWO[1]))
    monkeypatch.setattr(running.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(checking, "find_spec", lambda _: None)
    code, output = run_theory()
    assert code == 0
    assert "not tried: B23 Lemma 98 needs sklearn" in output
    assert "1 numbered claim of the papers (1 check): 1 as corrected" in output
    code, output = run_theory("--claim", "Lemma 98")
    assert code == 1


@pytest.mark.nightly
def test_a_full_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "optrand", "theory", "--paper", "B23", "--budget", "full", "--keep", "kept"]
    run = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(tmp_path.rglob("output.pkl"))) < 2:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    before = {finding.claim: finding for finding in map(joblib.load, tmp_path.rglob("output.pkl"))}
    assert len(before) >= 2
    chosen = [claim for claim in find(paper="B23") if claim.name in before]
    assert list(running.run(chosen, Budget.FULL, kept=tmp_path / "kept")) == [before[claim.name] for claim in chosen]


@pytest.mark.nightly
def test_a_reader_that_has_read_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "optrand", "theory", "--paper", "B23", "--jobs", "1"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stderr is not None
    assert run.stdout.readline().startswith(b"B23")
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait() == 1
    run.stderr.close()
