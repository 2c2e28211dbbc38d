"""Claims: comparisons, instances, hypotheses, verdicts, blind checks, names, and the command."""

import math
import re
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from asserting import assert_error, by_case
from commands import invoke
from hypothesis import given
from hypothesis import strategies as st

from optrand.cli import UNVERIFIED, WRONG_INPUT
from optrand.theory import (
    PAPERS,
    BlindCheck,
    Claim,
    Comparison,
    Verdict,
    _catalogue,
    at_most,
    check,
    claims,
    equal,
    find,
)
from optrand.theory._catalogue import RESTATED, details, one_line, page, tally
from optrand.theory._engine import cases, claim, corrected, draws, false, grid, write_value

ROOT = Path(__file__).parent.parent

rationals = st.fractions(min_value=-100, max_value=100, max_denominator=50)


# ------------------------------------------------------------------------------------------------------- comparisons
@given(rationals, rationals)
def test_exact_comparisons_hold_if_and_only_if_their_margin_is_not_negative(left: Fraction, right: Fraction) -> None:
    assert at_most(left, right).exact
    assert at_most(left, right).holds == (left <= right) == (at_most(left, right).margin >= 0)
    assert equal(left, right).holds == (left == right) == (equal(left, right).margin == 0)


@given(st.lists(st.tuples(rationals, rationals), min_size=1))
def test_arrays_are_compared_element_by_element(pairs: list[tuple[Fraction, Fraction]]) -> None:
    left, right = zip(*pairs, strict=True)
    assert at_most(left, right).holds == all(a <= b for a, b in pairs)
    assert equal(left, right).holds == (left == right)
    assert at_most(left, 3).holds == (max(left) <= 3)
    assert not at_most([*left, 0.5], 1000).exact


def test_a_tolerance_is_a_share_of_the_larger_side() -> None:
    assert at_most(1_000.1, 1_000.0, tolerance=1e-3).holds
    assert not at_most(1_000.1, 1_000.0, tolerance=1e-5).holds
    assert not at_most(1_000.1, 1_000.0).holds
    assert not equal(0.0, 1e-12, tolerance=1e-9).holds


def test_infinite_and_huge_numbers_are_compared_and_nan_is_refused() -> None:
    assert at_most(1, math.inf).holds
    assert at_most(math.inf, math.inf).holds
    assert not at_most(math.inf, 1).holds
    assert not equal(1, math.inf, tolerance=1e-9).holds
    huge = 10**5_000
    assert at_most(huge, huge + 1).holds
    assert not at_most(huge + 1, huge).holds
    for numbers in (math.nan, [1, math.nan], []):
        assert_error("compares no numbers", at_most, numbers, 1, tolerance=1.0, error=BlindCheck)


# ------------------------------------------------------------------------------------------------- claims and verdicts
@pytest.fixture(autouse=True)
def _undeclare() -> Iterator[None]:
    """Remove the claims that a test declares."""
    claims()
    known = dict(Claim.declared)
    yield
    Claim.declared.clear()
    Claim.declared.update(known)


def declare(undecided: str = "", factor: int = 1, false_factor: int = 9) -> Claim:
    @claim("B23 Lemma 99", number=range(1, 6), given="positive integers", undecided=undecided)
    @false("Nine times a number is at most its square.", times=false_factor)
    def squares(number: int, times: int = factor) -> Comparison:
        """No number is larger than its square.

        A second paragraph, which is not the wording.
        """
        return at_most(times * number, number**2)

    return squares


def correct(printed: Claim, **form: Any) -> Claim:
    """Declare a corrected form as well."""
    declared = corrected("It is so, corrected.", **form)(printed.printed.compare)
    return claim(printed.name, number=range(1, 6), given="positive integers")(false("Nine times.", times=9)(declared))


def test_the_verdict_follows_from_the_evidence() -> None:
    assert check(declare()).verdict is Verdict.HOLDS
    assert check(declare(factor=2)).verdict is Verdict.REFUTED
    from_two_on = correct(declare(factor=2), where=lambda number: number > 1)
    assert check(from_two_on).verdict is from_two_on.verdict is Verdict.CORRECTED
    assert check(correct(declare(factor=2), times=3)).verdict is Verdict.REFUTED
    assert check(declare("all numbers")).verdict is Verdict.UNDECIDED
    assert check(declare("all numbers", factor=2)).verdict is Verdict.REFUTED


def test_the_counterexample_is_the_first_and_the_worst_case_the_worst() -> None:
    finding = check(declare(factor=4))
    assert str(finding.printed.broken) == "number = 1: 4 <= 1"
    assert str(finding.printed.worst) == "number = 1: 4 <= 1"
    assert (finding.printed.worst.comparison.margin, finding.printed.tried) == (-0.75, 5)
    assert finding.printed.exact
    held = check(declare())
    assert held.claim.printed.wording == "No number is larger than its square."
    # A false variant is tried until it is refuted.
    assert held.false.tried == 1


def test_instances_outside_the_hypothesis_are_not_tried() -> None:
    @claim("B23 Lemma 98", number=range(-5, 3), given="positive integers", where=lambda number: number > 0)
    @false("Even if it is 0.", where=lambda number: number == 0)
    def positive(number: int, above: int = 0) -> Comparison:
        """A number is above 0."""
        return at_most(above + 1, number)

    assert check(positive).printed.tried == 2
    assert str(check(positive).false.broken) == "number = 0: 1 <= 0"


def test_a_check_that_sees_nothing_is_refused() -> None:
    assert_error("Lemma 99: no instance refutes the false variant", check, declare(false_factor=1), error=BlindCheck)
    with pytest.raises(BlindCheck, match=r"no instance fulfils the hypothesis of 'It is so, corrected\.'"):
        check(correct(declare(), where=lambda number: number > 9))
    unfinished = declare()
    unfinished.false = None
    assert_error("no false variant", check, unfinished, error=BlindCheck)


def test_instances_are_the_same_each_time_and_random_ones_grow() -> None:
    space = draws(3, k=range(2, 9), a=lambda random, k: k * random.random(), b="xy")
    assert space() == space(2)[:3]
    assert len(space(2)) == 6
    assert all(2 <= each["k"] <= 8 and 0 <= each["a"] < each["k"] and each["b"] in "xy" for each in space())
    assert grid(a=(1, 2), b="xy") == [{"a": a, "b": b} for a in (1, 2) for b in "xy"]
    assert cases("a b", (1, 2)) == [{"a": 1, "b": 2}]
    assert write_value({"eta": (Fraction(1, 2), 3), "map": max}) == "eta = (1/2, 3), map = max"


# ------------------------------------------------------------------------------------------------------------- names
def test_every_claim_is_found_by_its_names() -> None:
    for each in claims():
        assert each in find(number=each.number)
        assert find(number=each.name) == find(paper=each.paper, number=each.name)
        assert each.printed.wording.endswith(".")
        assert each.given
        assert each.false is not None
        assert each.paper in PAPERS


@by_case(
    "options, words",
    ({"paper": "X1"}, "expected one of G21, E22, Z25, B23"),
    ({"paper": "B23", "number": "Propositon 7"}, "near ones: B23 Proposition 7"),
    ({"number": "the meaning of life"}, "--list"),
    ({"number": "theorem"}, "is part of the names of"),
    ({"number": " - "}, "list them all with optrand theory --list"),
    # A number is not found in a longer one.
    *(({"number": each}, r"docs/papers\.md") for each in ("B23 Definition 1", "G21 Theorem 1", "E22 Equation 2")),
    *(({"number": each}, r"docs/papers\.md") for each in ("Z25 Equation 3", "Claim 1")),
)
def test_what_is_not_found_is_answered_with_the_near_ones(options: dict[str, str], words: str) -> None:
    assert_error(words, find, **options)


def test_a_claim_is_found_by_a_part_of_its_name() -> None:
    assert [each.name for each in find(number="LP1")] == ["G21 Theorem 3: LP1", "G21 Theorem 3: LP1 implies LP2"]
    assert find(number="lp1 implies") == find(number="LP1")[1:]
    # A number comes before a part of one.
    assert {each.number for each in find(paper="G21", number="Lemma 1")} == {"Lemma 1"}
    assert [each.name for each in find(number="G21 Equation 13")] == ["G21 Proposition 13: equation 13"]


def test_a_number_that_a_paper_states_again_finds_the_claim_of_the_other() -> None:
    for old, new in RESTATED.items():
        assert find(number=old) == find(number=new)


def test_the_page_of_the_papers_names_every_number_and_each_of_its_lines_finds_a_claim() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    told = re.findall(r'`optrand theory --claim "(\w[^"]+)"`', text)
    assert {each.name for name in told for each in find(number=name)} == {each.name for each in claims()}
    experiments = re.findall(r"--experiment ([a-z0-9-]+)", text)
    assert set(experiments) <= set(tomllib.loads((ROOT / "benchmarks" / "learning" / "settings.toml").read_text()))


# ------------------------------------------------------------------------------------------------ texts and command
def test_findings_in_words() -> None:
    findings = [check(each) for each in find(paper="B23", number="Proposition 7")]
    assert tally(findings) == "2 claims: 1 holds, 1 holds as corrected"
    assert "holds as corrected" in one_line(findings[1])
    assert "a = 1, b = 1, c = 2" in details(findings[1])
    assert "For positive numbers with `b >= c`" in details(findings[1])
    written = page(findings)
    assert "| Proposition 7: last step |" in written
    assert "## [B23]" in written
    assert "## [G21]" not in written


def test_the_command_writes_a_page_and_refuses_to_replace_it(tmp_path: Path) -> None:
    target = tmp_path / "theory.md"
    arguments = ("theory", "--claim", "B23 Proposition 7: last step", "--page", target)
    invoke(*arguments, code=0)
    assert "| Proposition 7: last step |" in target.read_text()
    assert "exists" in invoke(*arguments, code=WRONG_INPUT).output
    invoke(*arguments, "--force", code=0)


@by_case(
    "arguments, words",
    (("--claim", "Propositoin 7"), "near ones"),
    (("--claim", "Proposition 7", "--page", "/nowhere/page.md"), "is not a folder"),
)
def test_the_command_refuses_what_it_cannot_do(arguments: tuple[str, ...], words: str) -> None:
    assert words in invoke("theory", *arguments, code=WRONG_INPUT).output


def test_the_command_lists_the_claims() -> None:
    assert len(invoke("theory", "--list", code=0).output.splitlines()) == len(claims())


def test_the_command_fails_if_a_claim_is_refuted_or_cannot_be_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for failing in (declare(factor=2), declare(false_factor=1)):
        monkeypatch.setattr(_catalogue, "claims", lambda each=failing: (each,))
        told = invoke("theory", "--page", tmp_path / "page.md", code=UNVERIFIED).output
        assert "another verdict than its code declares" in told
        assert not list(tmp_path.iterdir())
