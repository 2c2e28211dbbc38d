"""Findings as text: one line each, all there is to say of one, and a page with a table a paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from optrand.theory.catalogue import PAPERS
from optrand.theory.checking import Finding, Verdict
from optrand.theory.claim import Claim

__all__ = ["details", "one_line", "page", "tally"]


def one_line(finding: Finding) -> str:
    """Name, verdict, and what was tried, in columns."""
    return f"{finding.claim:<42} {finding.verdict.value:<18}  {_tried(finding)}  ({finding.seconds:.1f} s)"


def tally(findings: Sequence[Finding]) -> str:
    """Number of claims of each kind, and how many have which verdict; a numbered claim may be several checks."""
    kinds, verdicts = Counter(each.kind for each in findings), Counter(each.verdict for each in findings)
    numbered = len({each.claim.split(":")[0] for each in findings if each.kind == "numbered"})
    told = f"{_counted(numbered, 'numbered claim')} of the papers ({_counted(kinds['numbered'], 'check')})"
    for kind, whose in (("text", "from their text"), ("ours", "of ours")):
        told += f", {_counted(kinds[kind], 'statement')} {whose}" if kinds[kind] else ""
    short = {Verdict.HOLDS: "holds" if verdicts[Verdict.HOLDS] == 1 else "hold", Verdict.CORRECTED: "as corrected"}
    counts = [f"{verdicts[each]} {short.get(each, each.value)}" for each in Verdict if verdicts[each]]
    return f"{told}: {', '.join(counts)}" if counts else told


def details(claim: Claim, finding: Finding) -> str:
    """Everything there is to say of one claim, a fact a line."""
    facts = {claim.name: finding.verdict.value, "statement": claim.statement, **_facts(claim, finding)}
    facts["false variant"] = f"{finding.false.wording} Refuted by {finding.false.broken}."
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def page(findings: Mapping[str, Finding], chosen: Sequence[Claim]) -> str:
    """Findings, by the names of claims, as Markdown without times: a table a paper, and what the verdicts rest on."""
    parts = [_INTRODUCTION, tally([findings[claim.name] for claim in chosen]) + "."]
    for paper, title in PAPERS.items():
        if told := [(claim, findings[claim.name]) for claim in chosen if claim.paper == paper]:
            rows = ["| claim | statement | finding | worst margin | tried |", "| --- | --- | --- | --- | --- |"]
            rows += [_row(*each) for each in told]
            parts += [f"## [{paper}]\n\n{title}.", "\n".join(rows), "\n".join(_note(*each) for each in told)]
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
    statement = _prose(claim.statement).replace("|", "\\|")
    found = f"**{finding.verdict.value}** | {finding.decisive.worst.margin:.2g} | {_tried(finding)}"
    return f"| {claim.name.removeprefix(f'{claim.paper} ')} | {statement} | {found} |"


def _note(claim: Claim, finding: Finding) -> str:
    facts = _facts(claim, finding)
    facts["false variant"] = f"{finding.false.wording} Refuted by: {finding.false.broken}."
    told = [f"* **{claim.name.removeprefix(f'{claim.paper} ')}.**"]
    for name, fact in facts.items():
        # Of large fractions, mostly digits, the beginning and the end: `optrand theory --claim` tells all of it.
        short = fact if len(fact) <= 600 else f"{fact[:300]} [...] {fact[-150:]}"
        told.append(f"*{name[0].upper() + name[1:]}*: {_prose(short.removesuffix('.'))}.")
    return " ".join(told)


def _facts(claim: Claim, finding: Finding) -> dict[str, str]:
    facts = {"hypothesis": claim.hypothesis}
    if finding.quantifier:
        facts["not settled by any computation"] = finding.quantifier
    if finding.printed.broken is not None:
        facts["counterexample"] = str(finding.printed.broken)
    if finding.corrected is not None:
        facts["corrected"] = finding.corrected.wording
    worst = finding.decisive.worst
    return facts | {"worst case": f"{worst} (margin {worst.margin:.3g})", "tried": _tried(finding)}


def _tried(finding: Finding) -> str:
    evidence = finding.decisive
    return f"{_counted(evidence.tried, 'instance')}, {'exact' if evidence.exact else 'in floats'}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _prose(text: str) -> str:
    """A text as Markdown: a star outside of code is a star."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(part if part.startswith("`") else part.replace("*", "\\*") for part in parts)
