"""A small real table for examples, which needs no download. Its source and licence are in ``README.md`` beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names

__all__ = ["WEEKS_LABEL", "weeks_worked_counts_path", "weeks_worked_path"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)

WEEKS_LABEL = "weeks"
"""The column of the table that is treated as private: weeks worked in a year, an integer from 0 to 52."""


def weeks_worked_path() -> Path:
    """Return the path of the table: 20,000 people, four public features and the label `weeks`, as gzipped CSV.

    Examples
    --------
    >>> weeks_worked_path().name
    'weeks_worked.csv.gz'
    """
    return Path(__file__).resolve().with_name("weeks_worked.csv.gz")


def weeks_worked_counts_path() -> Path:
    """Return the path of each label's count among all 199,523 people of the file that the table was drawn from.

    Two columns, ``label`` and ``count``, as ``--prior`` and ``--public-prior`` read them.

    Examples
    --------
    >>> lines = weeks_worked_counts_path().read_text().splitlines()
    >>> lines[0], len(lines) - 1, sum(int(line.split(",")[1]) for line in lines[1:])
    ('label,count', 53, 199523)
    """
    return Path(__file__).resolve().with_name("weeks_worked_counts.csv")
