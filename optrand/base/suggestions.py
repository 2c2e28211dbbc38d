"""Names that are near a name that was not found."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["missing", "nearby", "same_but_spelling"]


def nearby(name: str, known: Iterable[str]) -> str:
    """Return the sentence part that names the nearest of some public names, or all of them if no name is near.

    Examples
    --------
    >>> nearby("absolut", ["squared", "absolute"]), nearby("x", ["squared", "absolute"])
    ("did you mean 'absolute'?", "expected one of 'absolute', 'squared'")
    """
    names = sorted(known)
    near = difflib.get_close_matches(name.casefold(), names, n=1)
    return f"did you mean {near[0]!r}?" if near else "expected one of " + ", ".join(map(repr, names))


def same_but_spelling(name: str, known: Iterable[str]) -> str | None:
    """Return the name that differs in case, spaces and punctuation only, if there is one.

    It reveals nothing that was not given.

    Examples
    --------
    >>> same_but_spelling("weeks_worked", ["id", "Weeks worked "]), same_but_spelling("weeks", ["id"])
    ('Weeks worked ', None)
    """
    return next((each for each in known if _bare(each) == _bare(name)), None) if _bare(name) else None


def missing(path: Path) -> str:
    """State of a path that is no file: a folder, something else, or missing, with the nearest name that exists.

    Examples
    --------
    >>> missing(Path("no/such/file.csv"))
    'not there, nor is its folder no/such'
    """
    if path.is_dir():
        return "a folder, not a file"
    if path.exists():
        return "not a regular file"
    if not path.parent.is_dir():
        return f"not there, nor is its folder {path.parent}"
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"not there, but {path.with_name(near[0])} is" if near else "not there"


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
