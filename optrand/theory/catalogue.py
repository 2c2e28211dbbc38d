"""Catalogue: all claims of all papers, found by their names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import MappingProxyType

from optrand.errors import InvalidInput
from optrand.theory.claim import Claim, stated

__all__ = ["PAPERS", "claims", "find"]

PAPERS = MappingProxyType(
    {
        "G21": "Ghazi, Golowich, Kumar, Manurangsi, Zhang: Deep Learning with Label Differential Privacy, NeurIPS 2021",
        "E22": "Esfandiari, Mirrokni, Syed, Vassilvitskii: Label Differential Privacy via Clustering, AISTATS 2022",
        "Z25": "Zhao, Wu, Liu, Shen et al.: Enhancing Learning with Label Local Differential Privacy by Vector "
        "Approximation, ICLR 2025",
        "B23": "Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang: Optimal Unbiased "
        "Randomizers for Regression with Label Differential Privacy, NeurIPS 2023",
    }
)
"""The papers whose claims are checked, by the keys under which they are cited."""


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, paper by paper, in the order of the papers."""
    return tuple(claim for paper in PAPERS for claim in _of_paper(f"{__package__}.{paper.lower()}"))


def _of_paper(package: str) -> Iterator[Claim]:
    whole = import_module(package)
    if not hasattr(whole, "MODULES"):
        yield from whole.CLAIMS
        return
    for name in whole.MODULES:
        module = import_module(f"{package}.{name}")
        yield from (*stated(module.__name__), *getattr(module, "CLAIMS", ()))


def find(*, paper: str | None = None, number: str | None = None) -> tuple[Claim, ...]:
    """The claims of a paper, those of a number, or both; at least one.

    A paper is a key of :data:`PAPERS`, in either case. A number is as printed (``"Lemma 8"``), with or without the
    paper before it and the part after it, or the key of one part (``"b23-lemma-8"``).

    Raises
    ------
    InvalidInput
        No such paper or claim; the message lists those with near names.

    Examples
    --------
    >>> [claim.name for claim in find(number="proposition 7")]
    ['B23 Proposition 7', 'B23 Proposition 7: last step']
    >>> find(paper="B24")
    Traceback (most recent call last):
    optrand.errors.InvalidInput: no paper 'B24': expected one of G21, E22, Z25, B23
    """
    if paper is not None and paper.upper() not in PAPERS:
        raise InvalidInput(f"no paper {paper!r}: expected one of {', '.join(PAPERS)}")
    within = [claim for claim in claims() if paper is None or claim.paper == paper.upper()]
    if number is None:
        return tuple(within)
    asked = _plain(number)
    named = tuple(claim for claim in within if asked in _names(claim))
    if not named:
        raise InvalidInput(_near(number, within))
    return named


def _names(claim: Claim) -> set[str]:
    number, part = claim.number, claim.name.removeprefix(f"{claim.paper} ")
    return {_plain(text) for text in (number, part, f"{claim.paper} {number}", claim.name, claim.key)}


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("[", " ").replace("]", " ").replace("-", " ").replace(":", " ").split())


def _near(number: str, within: list[Claim]) -> str:
    known = {_plain(claim.number): f"{claim.paper} {claim.number}" for claim in reversed(within)}
    known |= {_plain(claim.name): claim.name for claim in reversed(within)}
    matches = difflib.get_close_matches(_plain(number), known, n=5, cutoff=0.5)
    near = dict.fromkeys(known[match] for match in matches)
    listed = "; near ones: " + ", ".join(near) if near else ""
    return f"no claim {number!r} among {len(within)}{listed}: list them all with optrand theory --list"
