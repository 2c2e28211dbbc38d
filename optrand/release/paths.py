"""Names of what stands beside a released table."""

from __future__ import annotations

import os
from pathlib import Path

from optrand.release.circumstances import RECORD
from optrand.release.randomizer_file import MECHANISM, NOISE

__all__ = ["beside", "mechanism_path", "mechanisms_path", "paid_prior_path", "randomizer_path", "record_path"]


def mechanism_path(target: str | os.PathLike[str]) -> Path:
    """Path of the mechanism of a released table: beside it, under its name with ``.mechanism.json`` added.

    Examples
    --------
    >>> mechanism_path("out/census.noisy.csv").name
    'census.noisy.csv.mechanism.json'
    """
    return beside(target, MECHANISM)


def randomizer_path(target: str | os.PathLike[str]) -> Path:
    """Path of the file of additive noise: beside the table, ``.randomizer.json`` added to its name."""
    return beside(target, NOISE)


def record_path(target: str | os.PathLike[str]) -> Path:
    """Path of the record of a released table: beside the table, ``.release.json`` added to its name."""
    return beside(target, RECORD)


def mechanisms_path(target: str | os.PathLike[str]) -> Path:
    """Path of the folder of mechanisms of a table released by groups: ``.mechanisms`` added to the table's name."""
    return beside(target, ".mechanisms")


def paid_prior_path(target: str | os.PathLike[str]) -> Path:
    """Path of a prior that was paid for, kept until the release is complete: beside the table, ``.prior.csv`` added."""
    return beside(target, ".prior.csv")


def beside(target: str | os.PathLike[str], ending: str) -> Path:
    """Path beside a released table, an ending added to its name."""
    path = Path(target)
    return path.with_name(path.name + ending)
