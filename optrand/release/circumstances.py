"""Circumstances of a release, all of them public, and the files that it has become."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

__all__ = ["RECORD", "Circumstances", "RandomizerFile", "TableFile"]

RECORD = ".release.json"
"""Ending of the file of a record beside a table."""


@dataclass(frozen=True)
class TableFile:
    """The released table: its name in the folder of the record, SHA-256 and number of rows."""

    name: str
    sha256: str
    rows: int


@dataclass(frozen=True)
class RandomizerFile:
    """A saved randomizer: its path from the folder of the record, SHA-256, and the group whose labels it drew."""

    name: str
    sha256: str
    group: str | None = None


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What a release knows of itself beyond its labels: all of it public.

    Attributes
    ----------
    release : str
        UUID of the release, in hexadecimal.
    dataset, column : str, optional
    task : str
        ``"regression"`` or ``"classification"``.
    classes : tuple of str, int or bool, optional
        Names of the classes that the labels 0, 1, ... stand for.
    entropy : str
        ``"system"``, or ``"keyed"``: noise is a keyed pseudo-random function of the record's id.
    nulls : str
        What was done with missing labels: ``"refuse"``, ``"drop"``, ``"pass"`` or ``"class"``.
    id_column : str, optional
    groups : tuple of str
        Columns by which the table was partitioned.
    ledger : bool
        Whether a ledger holds what was spent.
    """

    release: str = field(default_factory=lambda: uuid.uuid4().hex)
    dataset: str | None = None
    column: str | None = None
    task: str = "regression"
    classes: tuple[str | int | bool, ...] | None = None
    entropy: str = "system"
    nulls: str = "refuse"
    id_column: str | None = None
    groups: tuple[str, ...] = ()
    ledger: bool = False
