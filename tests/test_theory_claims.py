"""Every claim of the papers has the verdict that the page of claims publishes, and its false variant is refuted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optrand.theory import Budget, Claim, check, claims

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "theory.md").read_text(encoding="utf-8")
OURS = re.compile("as the package has it|draws|sampler|LP1|LP2|closed form|Algorithm")
"""Names of claims about the package itself; those about the papers alone are tried at night."""


def published() -> dict[str, str]:
    """Verdict of each claim in the tables of the page."""
    found = {}
    for section in PAGE.split("\n## [")[1:]:
        paper, rows = section.split("]\n", 1)
        for name, verdict in re.findall(r"^\| ([^|]+) \| .*?\| \*\*([a-z ,]+)\*\* \|", rows, re.MULTILINE):
            found[f"{paper} {name}"] = verdict
    return found


PUBLISHED = published()
CLAIMS = [
    pytest.param(claim, id=claim.key, marks=() if OURS.search(claim.name) else pytest.mark.nightly)
    for claim in claims()
]


def test_the_page_has_every_claim_and_no_other() -> None:
    assert set(PUBLISHED) == {claim.name for claim in claims()}


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_is_found_as_published_and_its_false_variant_refuted(claim: Claim) -> None:
    finding = check(claim, Budget.QUICK)
    assert finding.verdict.value == PUBLISHED[claim.name], finding
    assert finding.false.broken is not None
    assert finding.decisive.tried > 1


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_same_instances_are_tried_each_time(claim: Claim) -> None:
    first, again = (iter(claim.instances(Budget.QUICK)) for _ in range(2))
    for _ in range(3):
        assert str(next(first, None)) == str(next(again, None))


def test_powers_on_the_page_are_not_taken_for_bold_type() -> None:
    for line in PAGE.splitlines():
        outside_of_code = re.sub(r"(`+)[^`]+\1", "", line).replace("\\*", "")
        # The verdict of a row and the name in a note are bold.
        assert outside_of_code.count("**") in (0, 2), line
