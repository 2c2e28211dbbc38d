"""Every claim has the verdict that its code declares and the page of claims shows. Its false variant is refuted."""

import re
from itertools import chain, islice
from pathlib import Path

import pytest

from optrand.theory import Claim, check, claims

PACKAGE = re.compile("LP1|LP2|Algorithm|Definition")
"""Names of claims about the package's own functions. Those about the papers alone are tried at night."""

CLAIMS = [
    pytest.param(claim, id=claim.name, marks=() if PACKAGE.search(claim.name) else pytest.mark.nightly)
    for claim in claims()
]

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "theory.md").read_text(encoding="utf-8")


def published() -> dict[str, str]:
    """Verdict of each claim in the tables of the page."""
    found = {}
    for section in PAGE.split("\n## [")[1:]:
        paper, rows = section.split("]\n", 1)
        for name, verdict in re.findall(r"^\| ([^|]+) \| .*?\| \*\*([a-z ]+)\*\* \|", rows, re.MULTILINE):
            found[f"{paper} {name}"] = verdict
    return found


def test_the_page_shows_every_claim_with_its_verdict() -> None:
    assert published() == {claim.name: claim.verdict.value for claim in claims()}


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_evidence_confirms_the_verdict_and_refutes_the_false_variant(claim: Claim) -> None:
    finding = check(claim)
    assert finding.verdict is claim.verdict, finding
    assert finding.false.broken is not None
    assert finding.decisive.tried > 1


def test_the_same_instances_are_tried_each_time() -> None:
    for claim in claims():
        listed = (chain.from_iterable(each() if callable(each) else each for each in claim.spaces) for _ in range(2))
        first, again = ([str(each) for each in islice(instances, 3)] for instances in listed)
        assert first == again, claim.name
