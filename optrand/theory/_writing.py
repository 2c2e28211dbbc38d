"""Findings as text: one line for each, all facts about one, and a page with a table for each paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from optrand.theory._catalogue import PAPERS
from optrand.theory._engine import Finding, Verdict

_INTRODUCTION = """\
# Every claim, checked

This page is written by `optrand theory --page docs/theory.md`. A claim says of each instance that one number
is at most another, or equal to it. The margin is the smallest distance between the two over all instances, as a share
of the larger one. A margin computed in floats may be negative by at most the claim's tolerance. *Holds* means that no
instance contradicts the claim. *Holds as corrected* means that the printed form is contradicted and a corrected form is
not: [the errata](errata.md) show both. *Undecided* is a claim with a quantifier that no finite computation settles,
such as an unnamed constant; it is never counted as holding. Every check has also refuted a deliberately false variant
of its claim. `optrand theory --claim "Lemma 8"` shows the hypothesis, the worst case, the counterexample and the false
variant."""


def one_line(finding: Finding) -> str:
    """Return name, verdict and number of instances in columns."""
    name, verdict = finding.claim.name, finding.verdict.value
    return f"{name:<42} {verdict:<18}  {_count_instances(finding)}  ({finding.seconds:.1f} s)"


def tally(findings: Sequence[Finding]) -> str:
    """Return the number of claims with each verdict."""
    verdicts = Counter(each.verdict for each in findings)
    counts = [f"{verdicts[each]} {each.value}" for each in Verdict if verdicts[each]]
    return f"{len(findings)} claims: {', '.join(counts)}" if len(findings) != 1 else f"1 claim: {counts[0]}"


def details(finding: Finding) -> str:
    """Return all facts about one claim, one on each line."""
    claim, worst = finding.claim, finding.decisive.worst
    facts = {claim.name: finding.verdict.value, "statement": claim.printed.wording, "hypothesis": claim.given}
    if claim.undecided:
        facts["not settled by any computation"] = claim.undecided
    if finding.printed.broken:
        facts["counterexample"] = str(finding.printed.broken)
    if claim.corrected:
        facts["corrected"] = claim.corrected.wording
    facts["worst case"] = f"{worst} (margin {worst.comparison.margin:.3g})"
    facts["tried"] = _count_instances(finding)
    if claim.false:
        facts["false variant"] = f"{claim.false.wording} Refuted by {finding.false.broken}."
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def page(findings: Sequence[Finding]) -> str:
    """Return a page of Markdown without times: a table for each paper."""
    parts = [_INTRODUCTION, f"{tally(findings)}."]
    for paper, title in PAPERS.items():
        rows = [_format_row(each) for each in findings if each.claim.paper == paper]
        if rows:
            head = "| claim | statement | finding | worst margin | tried |\n| --- | --- | --- | --- | --- |"
            parts += [f"## [{paper}]\n\n{title}.", "\n".join([head, *rows])]
    return "\n\n".join(parts) + "\n"


def _format_row(finding: Finding) -> str:
    claim = finding.claim
    statement = _escape_stars(claim.printed.wording).replace("|", "\\|")
    if claim.corrected:
        statement += f" *Corrected*: {_escape_stars(claim.corrected.wording)}".replace("|", "\\|")
    margin = f"{finding.decisive.worst.comparison.margin:.2g}"
    name = claim.name.removeprefix(f"{claim.paper} ")
    return f"| {name} | {statement} | **{finding.verdict.value}** | {margin} | {_count_instances(finding)} |"


def _count_instances(finding: Finding) -> str:
    evidence = finding.decisive
    plural = "s" if evidence.tried != 1 else ""
    return f"{evidence.tried:,} instance{plural}, {'exact' if evidence.exact else 'in floats'}"


def _escape_stars(text: str) -> str:
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(part if part.startswith("`") else part.replace("*", "\\*") for part in parts)
