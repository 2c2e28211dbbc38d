"""Rows of an experiment as JSON lines: a run that is broken off goes on with the first cell that is missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.learning.experiment import Cell, Experiment, Row, Settings, Setup

__all__ = ["Journal", "digest", "run"]


def digest(settings: Settings) -> str:
    """Digest of settings: rows of others are left alone.

    Examples
    --------
    >>> digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}), len(digest({}))
    (True, 16)
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Journal:
    """A file of rows, one a line.

    Attributes
    ----------
    path : Path
    settings : str
        Digest of the settings of the rows that count.
    """

    path: Path
    settings: str

    def rows(self) -> Iterator[Row]:
        """Rows of these settings; a line that was cut short by a kill is none."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            found = _read(line)
            if found and found["settings"] == self.settings:
                yield Row(Cell(**{name: found[name] for name in ("seed", "epsilon", "arm")}), found["values"])

    def add(self, row: Row) -> None:
        """Write a row."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        broken = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        line = json.dumps({**row.cell.key, "settings": self.settings, "values": dict(row.values)})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(("\n" if broken else "") + line + "\n")


def _read(line: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return found


def run(experiment: Experiment, setup: Setup, seeds: int, journal: Journal) -> list[Row]:
    """Measure the cells that the journal lacks; the rows of all cells, in order."""
    known = {row.cell: row for row in journal.rows()}
    wanted = list(experiment.cells(setup, seeds))
    for place, cell in enumerate(wanted, 1):
        if cell not in known:
            known[cell] = Row(cell, experiment.measure(setup, cell))
            journal.add(known[cell])
            numbers = ", ".join(f"{name} {value:.4g}" for name, value in known[cell].values.items())
            print(
                f"{place}/{len(wanted)} seed {cell.seed}, epsilon {cell.epsilon:g}, {cell.arm}: {numbers}", flush=True
            )
    return [known[cell] for cell in wanted]
