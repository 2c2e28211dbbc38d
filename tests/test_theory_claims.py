"""Every claim of the papers has the verdict that is written down here, and the decidable ones are those below."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optrand.theory import Budget, Claim, Verdict, check, claims

HOLD = {
    "G21": (
        "Lemma 1",
        "Lemma 1: integer tables",
        "Corollary 2",
        "Section 3.1: objective of RRTop-k",
        "Corollary 2: integer tables",
        "Section 4: one stage",
        "Corollary 2: sampler",
        "Theorem 3",
        "Theorem 3: closed form",
        "Theorem 3: LP1",
        "Theorem 3: LP2",
        "Theorem 3: LP1 implies LP2",
        "Theorem 3: vertices of LP2",
        "Observation 4",
        "Algorithm 4: draws",
        "Appendix E: cold priors",
        "Appendix E: hot priors",
        "Appendix E: confidence",
        "Appendix E: labels kept",
        "Theorem 9: privacy",
        "Theorem 9: unbiased",
        "Theorem 9: weights",
        "Theorem 9: variance",
        "Theorem 9: mean square",
        "Corollary 10: labels replaced",
        "Corollary 10: eq. 9",
        "Corollary 10: eq. 10",
        "Proposition 11: sensitivity",
        "Proposition 11: mean square",
        "Proposition 12: with constants",
        "Proposition 13: construction",
        "Proposition 13: equation 13",
        "Proposition 13: equation 15",
        "Proposition 13: least excess risk",
        "Fact 14",
        "Lemma 15: with constants",
        "Lemma 15: copies",
        "Lemma 16",
        "Lemma 16: draws",
        "Theorem 17: equation 25",
        "Equation 17",
        "Lemma 18",
        "Lemma 19",
        "Lemma 18: as the package has it",
        "Lemma 20",
        "Lemma 21",
        "Lemma 21: as Theorem 17 uses it",
        "Lemma 22",
    ),
    "E22": (
        "Theorem 1: as the package has it",
        "Theorem 1: draws",
        "Theorem 1: resampling",
        "Theorem 6",
        "Corollary 1: privacy",
        "Corollary 1: as the package has it",
        "Corollary 2: privacy",
        "Lemma 1",
        "Lemma 2",
        "Lemma 4",
        "Equation 1",
        "Lemma 3: as the package has it",
        "Lemma 3",
        "Lemma 5",
        "Lemma 6",
        "Equation 22",
        "Theorem 2: residual",
        "Lemma 8",
        "Lemma 9: as the package has it",
        "Lemma 9: draws",
        "Theorem 3",
        "Theorem 3: last line",
        "Section 5.1: one of s",
        "Section 5.1: as the package has it",
        "Section 5.1: subsampling alone",
        "Theorem 4: bias",
        "Theorem 5: inequality",
    ),
    "Z25": (
        "Theorem 1",
        "Theorem 1: draws",
        "Section 3.1: local to central",
        "Section 4.3: cost",
        "Equation 24",
        "Equation 44",
        "Proposition 1",
        "Theorem 2",
        "Equation 27",
        "Appendix B.1",
        "Equation 29",
        "Equation 30",
        "Appendix B.2: privacy",
        "Appendix B.2: decay",
        "Equation 34",
        "Equation 35",
        "Equation 36",
    ),
    "B23": (
        "Equation 2",
        "Table 1: bins",
        "Table 1: predictors",
        "Figure 2",
        "Algorithm 1",
        "Algorithm 1: closed form",
        "Algorithm 1: closed form elsewhere",
        "Algorithm 1: gaps",
        "Theorem 6: delay",
        "Theorem 6: phases",
        "Theorem 6: outputs",
        "Claim 11: on a grid",
        "Claim 12",
        "Appendix B: densities",
        "Claim 13",
        "Claim 14",
        "Claim 11",
        "Proposition 7",
        "Algorithm 2",
        "Lemma 8",
        "Lemma 8: half is enough",
        "Lemma 8: squared loss",
        "Lemma 8: how loose",
        "Section 3.1: rounding",
        "Section 3.1: continuous labels",
        "Algorithm 4: noise",
        "Algorithm 4: privacy",
        "Algorithm 3: privacy",
        "Lemma 15",
        "Lemma 15: simulation",
        "Definition 17",
        "Definition 18",
        "Definition 19",
        "Definition 20",
        "Appendix F: drawn",
        "Appendix F: drawn in floats",
        "Definition 21",
        "Definition 22",
        "Definition 23",
    ),
}
"""Decidable, and right as printed."""

HOLD_AS_CORRECTED = {
    "G21": (
        "Appendix A.1",
        "Theorem 3: optima at vertices",
        "Algorithm 4",
        "Algorithm 4: line 4(c)",
        "Proposition 11: privacy",
        "Lemma 15: last line",
        "Lemma 20: inner term",
        "Theorem 17",
        "Theorem 17: empirical risk minimizer",
        "Theorem 17: range of the debiased loss",
    ),
    "E22": (
        "Theorem 1",
        "Theorem 1: noisy labels alone",
        "Lemma 7: equation 12",
        "Equation 14",
        "Theorem 2: step to equation 22",
        "Lemma 9",
        "Lemma 9: number of ones",
        "Lemma 9: upper tail",
        "Section 5.1: flips",
        "Theorem 4: with Theorem 3",
        "Section 6: privacy",
    ),
    "Z25": (
        "Section 1: gap",
        "Equation 33",
        "Appendix C.1: best k",
    ),
    "B23": (
        "Equation 1",
        "Theorem 5",
        "Claim 13: symbols",
        "Appendix G.3: finer grids",
        "Section 3.1: variance of rounding",
        "Table 1: losses",
        "Theorem 6: existence",
        "Claim 13: step",
        "Proposition 7: last step",
        "Algorithm 3",
        "Lemma 15: tightness",
    ),
}
"""Decidable, with a counterexample to the printed form."""

UNDECIDED = {
    "G21": (
        "Theorem 9: rate",
        "Theorem 9: trend",
        "Corollary 10: rate",
        "Proposition 11: rate",
        "Proposition 12",
    ),
    "E22": (
        "Lemma 7",
        "Equation 15",
        "Theorem 2",
        "Corollary 1",
        "Corollary 2",
        "Theorem 4",
        "Section 6: excess risk",
        "Theorem 5",
    ),
    "Z25": (
        "Appendix C.1: rate",
        "Appendix C.1: rate with a margin",
    ),
    "B23": (
        "Appendix G.3: trend",
        "Appendix G.3: figures",
        "Section 3.1: large epsilon",
        "Section 3.1: small epsilon",
        "Appendix C: error",
        "Appendix C: split",
    ),
}
"""With a quantifier that no finite computation settles: never counted as holding."""


def named(listed: dict[str, tuple[str, ...]]) -> set[str]:
    return {f"{paper} {name}" for paper, names in listed.items() for name in names}


EXPECTED = {
    **dict.fromkeys(named(HOLD), Verdict.HOLDS),
    **dict.fromkeys(named(HOLD_AS_CORRECTED), Verdict.CORRECTED),
    **dict.fromkeys(named(UNDECIDED), Verdict.UNDECIDED),
}


def test_the_decidable_claims_are_those_listed() -> None:
    assert {claim.name for claim in claims()} == set(EXPECTED)
    assert {claim.name for claim in claims() if claim.decidable} == named(HOLD) | named(HOLD_AS_CORRECTED)
    assert {claim.name for claim in claims() if not claim.decidable} == named(UNDECIDED)


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.key)
def test_every_claim_is_found_as_listed_and_its_false_variant_refuted(claim: Claim) -> None:
    finding = check(claim, Budget.QUICK)
    assert finding.verdict is EXPECTED[claim.name], finding
    assert finding.false.broken is not None
    assert finding.decisive.tried > 1


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.key)
def test_what_is_tried_is_the_same_each_time(claim: Claim) -> None:
    first, again = (iter(claim.instances(Budget.QUICK)) for _ in range(2))
    for _ in range(3):
        assert str(next(first, None)) == str(next(again, None))


PAGE = Path(__file__).resolve().parents[1] / "docs" / "theory.md"


def test_the_page_of_the_site_has_the_same_verdicts() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = dict(part.split("]\n", 1) for part in page.split("\n## [")[1:])
    for claim in claims():
        rows = [line for line in sections[claim.paper].splitlines() if line.startswith("| ")]
        name = claim.name.removeprefix(f"{claim.paper} ")
        (row,) = [row for row in rows if row.startswith(f"| {name} | ")]
        assert f"| **{EXPECTED[claim.name].value}** |" in row
    assert page.count("| **") == len(claims())


def test_powers_on_the_page_are_not_taken_for_bold_type() -> None:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        outside_of_code = re.sub(r"(`+)[^`]+\1", "", line).replace("\\*", "")
        # The verdict of a row and the name in a note are bold.
        assert outside_of_code.count("**") in (0, 2), line
