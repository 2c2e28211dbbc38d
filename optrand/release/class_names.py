"""Classes by their names, as a user declares them, and a public prior over them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

import numpy as np

from optrand.errors import InvalidInput
from optrand.release.decimals import decimal
from optrand.release.declared import PublicPrior

__all__ = ["MAX_CLASSES", "parse_classes", "read_class_prior"]

MAX_CLASSES = 10_000


def parse_classes(text: str) -> tuple[str, ...]:
    """Names of the classes that a text declares, in its order.

    Parameters
    ----------
    text : str
        Names separated by commas, quoted as in CSV where they hold one, or ``@FILE`` with a name a line.

    Raises
    ------
    InvalidInput
        An empty name, one that comes twice, none or too many, or a file that is no UTF-8 text.

    Examples
    --------
    >>> parse_classes('yes,no,"neither, nor"')
    ('yes', 'no', 'neither, nor')
    """
    if text.startswith("@"):
        names = [line for line in _text(Path(text[1:])).splitlines() if line]
    else:
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error:
            raise InvalidInput("the classes are misquoted, expected names separated by commas") from None
        if len(rows) != 1:
            raise InvalidInput("the classes are no single line, expected names separated by commas, or @FILE")
        names = rows[0]
    if not names or not all(names):
        raise InvalidInput("a class has an empty name: missing labels are a class with --nulls class, not by a name")
    if len(names) > MAX_CLASSES:
        raise InvalidInput(f"there are {len(names)} classes, expected at most {MAX_CLASSES}")
    if any("\ud800" <= character <= "\udfff" or character in "\r\n\0" for name in names for character in name):
        raise InvalidInput("a class has a name that is no single line of Unicode text: write the names to a file")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise InvalidInput(f"{len(twice)} of the declared classes come twice: name each once")
    return tuple(names)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError):
        raise InvalidInput(f"{path} cannot be read: expected a file of UTF-8 text") from None


def read_class_prior(path: Path, names: tuple[str | None, ...]) -> PublicPrior:
    """Public prior of classes: a file of two columns, a name and how often or with which probability it occurs.

    Parameters
    ----------
    path : path
        CSV, no header; the name of the class of missing labels is empty.
    names : tuple of str or None

    Raises
    ------
    InvalidInput
        A row of another form, a class that is not declared or comes twice, or nothing above 0.
    """
    places = {name or "": place for place, name in enumerate(names)}
    weights: dict[int, float] = {}
    try:
        rows = [row for row in csv.reader(io.StringIO(_text(path), newline=""), strict=True) if row]
    except csv.Error:
        raise InvalidInput(f"{path} is misquoted, expected a class and a count or probability a line") from None
    for line, row in enumerate(rows, 1):
        if len(row) != 2 or row[0] not in places:
            raise InvalidInput(f"line {line} of {path} is no declared class and a count, separated by a comma")
        weight = float(decimal(row[1].strip(), f"the count in line {line} of {path}"))
        if weight < 0 or places[row[0]] in weights:
            raise InvalidInput(f"line {line} of {path} has a count below 0, or a class that came before")
        weights[places[row[0]]] = weight
    shares = np.array([weights.get(place, 0.0) for place in range(len(names))])
    total = float(shares.sum())
    if not 0 < total < np.inf:
        raise InvalidInput(f"{path} holds no count above 0, or counts too large")
    return PublicPrior(shares / total, absent=len(names) - len(weights))
