"""Catalogue: all claims of all papers, found by their names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from optrand.errors import InvalidInput
from optrand.theory._engine import Claim, plain

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
    "G21": "response parallel descent lower_bounds debiased",
    "E22": "curator losses risks peers",
    "Z25": "bits neighbours",
    "B23": "predictors optima transformations grids release noise",
}
"""Modules that declare claims, in the order of each paper."""


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, paper by paper, in the order of the papers."""
    names = (f"{__package__}.{paper.lower()}.{name}" for paper in PAPERS for name in MODULES[paper].split())
    modules = [import_module(name).__name__ for name in names]
    declared = Claim.declared.values()
    return tuple(each for module in modules for each in declared if each.printed.compare.__module__ == module)


def find(*, paper: str | None = None, number: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of a paper, those of a number, or both; at least one.

    Parameters
    ----------
    paper
        A key of :data:`PAPERS`, in either case.
    number
        A number as printed (``"Lemma 8"``), with or without the paper before it and the part after it, or, if no claim
        has that number, a part of a name (``"LP1"``).

    Raises
    ------
    InvalidInput
        There is no such paper or claim, and the message lists near names; or the text is part of more than five names.

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
    found = exact or tuple(each for each in within if wanted and wanted in plain(each.name))
    if not found:
        known = {plain(name): name for each in within for name in (f"{each.paper} {each.number}", each.name)}
        near = [known[match] for match in difflib.get_close_matches(wanted, known, n=5, cutoff=0.5)]
        hint = f"; near ones: {', '.join(near)}" if near else ""
        raise InvalidInput(f"no claim {number!r} among {len(within)}{hint}: list them all with optrand theory --list")
    if not exact and len(found) > 5:
        names = ", ".join(each.name for each in found[:5])
        raise InvalidInput(
            f"{number!r} is part of the names of {len(found)} claims, such as {names}: give more of one name, or list "
            "them all with optrand theory --list"
        )
    return found


def _names(claim: Claim) -> set[str]:
    """Return the names that mean a claim exactly: its number and its whole name, with the paper or without it."""
    names = {plain(f"{claim.paper} {claim.number}"), plain(claim.name)}
    return names | {name.removeprefix(f"{claim.paper.lower()} ") for name in names}
