"""Catalogue: all claims of all papers, found by their names, and findings as text."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from optrand.errors import InvalidInput
from optrand.theory._engine import Claim, Finding, Verdict

PAPERS: Mapping[str, str] = {
    "G21": "Ghazi, Golowich, Kumar, Manurangsi, Zhang: Deep Learning with Label Differential Privacy, NeurIPS 2021",
    "E22": "Esfandiari, Mirrokni, Syed, Vassilvitskii: Label Differential Privacy via Clustering, AISTATS 2022",
    "Z25": "Zhao, Wu, Liu, Shen et al.: Enhancing Learning with Label Local Differential Privacy by Vector "
    "Approximation, ICLR 2025",
    "B23": "Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang: Optimal Unbiased "
    "Randomizers for Regression with Label Differential Privacy, NeurIPS 2023",
}
"""The papers whose claims are checked, by the keys under which they are cited."""

MODULES: Mapping[str, str] = {
    "G21": "response descent lower_bounds debiased",
    "E22": "curator losses peers",
    "Z25": "bits neighbours",
    "B23": "predictors optima transformations grids",
}
"""Modules that declare claims, in the order of each paper."""

RESTATED: Mapping[str, str] = {
    "G21 Theorem 5": "G21 Theorem 9",
    "G21 Corollary 6": "G21 Corollary 10",
    "E22 Lemma 4": "E22 Equation 1",
}
"""Numbers that a paper states again, formally or more sharply, by the number under which the claim is checked."""


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, paper by paper, in the order of the papers."""
    names = (f"{__package__}.{paper.lower()}.{name}" for paper in PAPERS for name in MODULES[paper].split())
    modules = [import_module(name).__name__ for name in names]
    declared = Claim.declared.values()
    return tuple(each for module in modules for each in declared if each.printed.compare.__module__ == module)


def find(*, paper: str | None = None, number: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of a paper (a key of :data:`PAPERS`), those of a number, or those of both, at least one.

    A number is as printed (``"Lemma 8"``), with or without the paper before it and the part after it, or, if no claim
    has it, a part of a name (``"LP1"``). ``"G21 Theorem 5"`` is found as the formal ``"G21 Theorem 9"``.

    Raises
    ------
    InvalidInput
        There is no such paper or claim (the message lists near names), or the text is part of more than five names.

    Examples
    --------
    >>> [claim.name for claim in find(number="proposition 7")]
    ['B23 Proposition 7', 'B23 Proposition 7: last step']
    >>> [claim.name for claim in find(number="lp1")]
    ['G21 Theorem 3: LP1', 'G21 Theorem 3: LP1 implies LP2']
    >>> find(paper="B24")
    Traceback (most recent call last):
    optrand.errors.InvalidInput: no paper 'B24': expected one of G21, E22, Z25, B23
    """
    if paper is not None and paper.upper() not in PAPERS:
        raise InvalidInput(f"no paper {paper!r}: expected one of {', '.join(PAPERS)}")
    within = tuple(claim for claim in claims() if paper is None or claim.paper == paper.upper())
    if number is None:
        return within
    wanted = plain(number)
    exact = tuple(each for each in within if wanted in _names(each))
    found = exact or tuple(each for each in within if wanted and _has_part(each, wanted))
    if not found:
        known = {plain(name): name for each in within for name in (f"{each.paper} {each.number}", each.name)}
        near = [known[match] for match in difflib.get_close_matches(wanted, known, n=5, cutoff=0.5)]
        hint = f" (near ones: {', '.join(near)})" if near else ""
        raise InvalidInput(
            f"no claim {number!r} among {len(within)}{hint}: list them all with optrand theory --list, or look up "
            "definitions, algorithms and figures in docs/papers.md"
        )
    if not exact and len(found) > 5:
        names = ", ".join(each.name for each in found[:5])
        raise InvalidInput(
            f"{number!r} is part of the names of {len(found)} claims, such as {names}: give more of one name, or list "
            "them all with optrand theory --list"
        )
    return found


def plain(name: str) -> str:
    """Return a name without capitals and signs."""
    return re.sub(r"[^a-z0-9.]+", " ", name.lower()).strip()


def _names(claim: Claim) -> set[str]:
    """Return the names that mean a claim exactly: its number and its whole name, with the paper or without it."""
    number = f"{claim.paper} {claim.number}"
    names = {plain(name) for name in (number, claim.name, *(old for old, new in RESTATED.items() if new == number))}
    return names | {name.removeprefix(f"{claim.paper.lower()} ") for name in names}


def _has_part(claim: Claim, wanted: str) -> bool:
    """Return whether a text is a part of a claim's name, after its paper if the text starts with one.

    A number is no part of a longer one: Lemma 2 is not found in Lemma 20.
    """
    part = wanted.removeprefix(f"{claim.paper.lower()} ")
    return re.search(rf"{re.escape(part)}(?!\d)", plain(claim.name)) is not None


_INTRODUCTION = """\
# Every claim, checked

This page is written by `optrand theory --page docs/theory.md`. A claim states of each instance that one number
is at most another, or equal to it. The margin is the smallest distance between the two over all instances, as a share
of the larger one. A margin computed in floats may be negative by at most the claim's tolerance. *Holds* means that no
instance contradicts the claim. *Holds as corrected* means that the printed form is contradicted and a corrected form is
not: [the errata](errata.md) show both. *Undecided* is a claim with a quantifier that no finite computation settles,
such as an unnamed constant. It is never counted as holding. Every check has also refuted a deliberately false variant
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
    statement = _escape(claim.printed.wording)
    if claim.corrected:
        statement += f" *Corrected*: {_escape(claim.corrected.wording)}"
    margin = f"{finding.decisive.worst.comparison.margin:.2g}"
    name = claim.name.removeprefix(f"{claim.paper} ")
    return f"| {name} | {statement} | **{finding.verdict.value}** | {margin} | {_count_instances(finding)} |"


def _count_instances(finding: Finding) -> str:
    evidence = finding.decisive
    return f"{evidence.tried:,} instance{'s' * (evidence.tried != 1)}, {'exact' if evidence.exact else 'in floats'}"


def _escape(text: str) -> str:
    """Escape text for a cell of a Markdown table: bars, and stars outside of code."""
    parts = re.split(r"(`+[^`]+`+)", text.replace("|", "\\|"))
    return "".join(part if part.startswith("`") else part.replace("*", "\\*") for part in parts)
