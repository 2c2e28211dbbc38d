"""Findings as text: one line each, all there is to say of one, and a page with a table a paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from optrand.theory.catalogue import PAPERS
from optrand.theory.claim import Claim
from optrand.theory.finding import Evidence, Finding, Verdict

__all__ = ["details", "one_line", "page", "tally"]

LONGEST = 600
"""Characters that a page spends on one fact; `optrand theory --claim` tells all of it."""


def one_line(finding: Finding) -> str:
    """Name, verdict, and what was tried, in columns."""
    return f"{finding.claim:<42} {finding.verdict.value:<18}  {_tried(finding.decisive)}  ({finding.seconds:.1f} s)"


def tally(findings: Sequence[Finding]) -> str:
    """Number of claims of each kind, and how many have which verdict; a numbered claim may be several checks.

    Examples
    --------
    >>> tally([])
    '0 numbered claims of the papers (0 checks)'
    """
    kinds = Counter(finding.kind for finding in findings)
    numbered = len({finding.claim.split(":")[0] for finding in findings if finding.kind == "numbered"})
    checks = _counted(kinds["numbered"], "check")
    parts = [f"{_counted(numbered, 'numbered claim')} of the papers ({checks})"]
    if kinds["text"]:
        parts.append(f"{_counted(kinds['text'], 'statement')} from their text")
    if kinds["ours"]:
        parts.append(f"{_counted(kinds['ours'], 'statement')} of ours")
    counts = [(sum(each.verdict is verdict for each in findings), verdict) for verdict in Verdict]
    several = {Verdict.HOLDS: "hold", Verdict.CORRECTED: "as corrected"}
    told = [
        f"{count} {several.get(verdict, verdict.value)}{'s' * (verdict is Verdict.HOLDS and count == 1)}"
        for count, verdict in counts
        if count
    ]
    return ", ".join(parts) + (f": {', '.join(told)}" if told else "")


def details(claim: Claim, finding: Finding) -> str:
    """Everything there is to say of one claim, a fact a line."""
    facts = {
        claim.name: finding.verdict.value,
        "statement": claim.statement,
        "hypothesis": claim.hypothesis,
        **_findings(finding),
        "false variant": f"{finding.false.wording} Refuted by {finding.false.broken}.",
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def page(findings: Mapping[str, Finding], chosen: Sequence[Claim]) -> str:
    """Findings as a page of Markdown: a table a paper, and below it what the verdicts rest on.

    It tells no times, so that the same findings, by the names of their claims, are the same page.
    """
    parts = [_INTRODUCTION, tally([findings[claim.name] for claim in chosen]) + "."]
    for paper, title in PAPERS.items():
        of_paper = [claim for claim in chosen if claim.paper == paper]
        if not of_paper:
            continue
        rows = "\n".join(_row(claim, findings[claim.name]) for claim in of_paper)
        parts.append(f"## [{paper}]\n\n{title}.")
        parts.append(f"| claim | statement | finding | worst margin | tried |\n| --- | --- | --- | --- | --- |\n{rows}")
        parts.append("\n".join(_note(claim, findings[claim.name]) for claim in of_paper))
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """\
# Every claim, checked

This page is written by `optrand theory --budget full --page docs/theory.md`. A claim says of each instance that one
number is at most another, or equal to it; the margin is what is left between them, as a share of the larger one, where
it is smallest; where something is claimed not to exist, the left side counts what was found of it. In floats a margin
may lie below 0 by the tolerance of its check: rounding, or what a trend is forgiven. *Holds* means: no instance that
was tried contradicts it. *Holds as corrected* means that the printed form is contradicted and a corrected one is not;
both stand below the table, and [the errata](errata.md) say why. *Undecided* is a claim with a quantifier that no finite
computation settles: what can be computed of it was, and it is never counted as holding. Every check has also refuted a
deliberately false variant of its claim."""


def _row(claim: Claim, finding: Finding) -> str:
    decisive = finding.decisive
    cells = (
        claim.name.removeprefix(f"{claim.paper} "),
        _prose(claim.statement).replace("|", "\\|"),
        f"**{finding.verdict.value}**",
        f"{decisive.worst.margin:.2g}",
        _tried(decisive),
    )
    return f"| {' | '.join(cells)} |"


def _note(claim: Claim, finding: Finding) -> str:
    name = claim.name.removeprefix(f"{claim.paper} ")
    facts = {"hypothesis": claim.hypothesis, **_findings(finding)}
    facts["false variant"] = f"{finding.false.wording} Refuted by: {finding.false.broken}."
    told = (
        f"*{about[0].upper() + about[1:]}*: {_prose(_shortened(fact).removesuffix('.'))}."
        for about, fact in facts.items()
    )
    return f"* **{name}.** " + " ".join(told)


def _findings(finding: Finding) -> dict[str, str]:
    facts = {}
    if finding.quantifier:
        facts["not settled by any computation"] = finding.quantifier
    if finding.printed.broken is not None:
        facts["counterexample"] = str(finding.printed.broken)
    if finding.corrected is not None:
        facts["corrected"] = finding.corrected.wording
    facts["worst case"] = f"{finding.decisive.worst} (margin {finding.decisive.worst.margin:.3g})"
    facts["tried"] = _tried(finding.decisive)
    return facts


def _tried(evidence: Evidence) -> str:
    return f"{_counted(evidence.tried, 'instance')}, {'exact' if evidence.exact else 'in floats'}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _prose(text: str) -> str:
    """A text as Markdown: a star outside of code is a star."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(part if part.startswith("`") else part.replace("*", "\\*") for part in parts)


def _shortened(text: str) -> str:
    """The beginning and the end of a text that is mostly digits of large fractions."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} [...] {text[-LONGEST // 4 :]}"
