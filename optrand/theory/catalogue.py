"""Catalogue: all claims of all papers, found by their names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from optrand.errors import InvalidInput
from optrand.theory.claim import Claim, Stated, plain

__all__ = ["PAPERS", "claims", "find"]

PAPERS: Mapping[str, str] = {
    "G21": "Ghazi, Golowich, Kumar, Manurangsi, Zhang: Deep Learning with Label Differential Privacy, NeurIPS 2021",
    "E22": "Esfandiari, Mirrokni, Syed, Vassilvitskii: Label Differential Privacy via Clustering, AISTATS 2022",
    "Z25": "Zhao, Wu, Liu, Shen et al.: Enhancing Learning with Label Local Differential Privacy by Vector "
    "Approximation, ICLR 2025",
    "B23": "Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang: Optimal Unbiased "
    "Randomizers for Regression with Label Differential Privacy, NeurIPS 2023",
}
"""The papers whose claims are checked, by the keys under which they are cited."""


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, paper by paper, in the order of the papers."""
    found: list[Claim] = []
    for paper in PAPERS:
        package = import_module(f"{__package__}.{paper.lower()}")
        for name in package.MODULES:
            module = import_module(f"{package.__name__}.{name}").__name__
            found += [each.claim for each in Stated.declared if each.printed.__module__ == module]
    return tuple(found)


def find(*, paper: str | None = None, number: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of a paper, those of a number, or both; at least one.

    A paper is a key of :data:`PAPERS`, in either case. A number is as printed (``"Lemma 8"``), with or without the
    paper before it and the part after it, or the key of one part (``"b23-lemma-8"``). If no claim has that number, it
    is taken for a part of a name (``"LP1"``).

    Raises
    ------
    InvalidInput
        No such paper or claim, and the message lists those with near names; or a part of more than five names.

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
    asked = plain(number)
    named = tuple(
        each
        for each in within
        if asked.removeprefix(f"{each.paper.lower()} ") in (plain(each.number), plain(f"{each.number} {each.part}"))
    )
    named = named or _containing(number, within)
    if not named:
        known = {plain(each.number): f"{each.paper} {each.number}" for each in reversed(within)}
        known |= {plain(each.name): each.name for each in reversed(within)}
        matches = dict.fromkeys(known[match] for match in difflib.get_close_matches(asked, known, n=5, cutoff=0.5))
        near = f"; near ones: {', '.join(matches)}" if matches else ""
        raise InvalidInput(f"no claim {number!r} among {len(within)}{near}: list them all with optrand theory --list")
    return named


def _containing(text: str, within: tuple[Claim, ...], most: int = 5) -> tuple[Claim, ...]:
    """Return the claims whose names contain a text, in either case, none if the text is empty."""
    wanted = plain(text)
    found = tuple(each for each in within if wanted and wanted in plain(each.name))
    if len(found) > most:
        names = ", ".join(each.name for each in found[:most])
        raise InvalidInput(
            f"{text!r} is part of the names of {len(found)} claims, such as {names}: give more of one name, or list "
            "them all with optrand theory --list"
        )
    return found
