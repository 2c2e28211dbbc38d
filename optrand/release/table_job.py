"""The main job on a file: a table of private labels in, a table of noisy ones and its randomizer out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from optrand.entropy import EntropySource
from optrand.errors import InvalidInput
from optrand.release.atomic import check_target, new_file
from optrand.release.job import Announce, Job, silent
from optrand.release.table import read_table, suffix_of

__all__ = ["TableJob", "mechanism_path", "randomizer_path"]

Told = TypeVar("Told")
"""The type of what may be told about a release."""


def mechanism_path(target: str | os.PathLike[str]) -> Path:
    """Where the mechanism of a released table is saved: beside it, under its name with ``.mechanism.json`` added.

    Examples
    --------
    >>> mechanism_path("out/census.noisy.csv").name
    'census.noisy.csv.mechanism.json'
    """
    return _beside(target, ".mechanism.json")


def randomizer_path(target: str | os.PathLike[str]) -> Path:
    """Where noise that is no finite mechanism is described: beside the table, ``.randomizer.json`` added to its name.

    Examples
    --------
    >>> randomizer_path("out/census.noisy.csv").name
    'census.noisy.csv.randomizer.json'
    """
    return _beside(target, ".randomizer.json")


def _beside(target: str | os.PathLike[str], ending: str) -> Path:
    path = Path(target)
    return path.with_name(path.name + ending)


@dataclass(frozen=True, kw_only=True)
class TableJob(Generic[Told]):
    """A job such as :class:`~optrand.release.job.LabelJob` on a column of a file.

    Every other column is copied as it is: one that was computed from the labels gives them away.

    Parameters
    ----------
    job : LabelJob or BaselineJob
    column : str
        The name of the column of labels.
    overwrite : bool
        Whether the output and what is saved beside it may replace files that exist.
    """

    job: Job[Told]
    column: str
    overwrite: bool = False

    def beside(self, target: str | os.PathLike[str]) -> Path:
        """Where what drew the labels is saved: :func:`mechanism_path` or :func:`randomizer_path`."""
        return _beside(target, self.job.ending)

    def run(
        self,
        source: str | os.PathLike[str],
        target: str | os.PathLike[str],
        *,
        entropy: EntropySource | None = None,
        announce: Announce | None = None,
    ) -> Told:
        """Read `source`, release it as `target`, and save the mechanism, or what else drew the labels, :meth:`beside`.

        Raises
        ------
        InvalidInput
            A file or a label that cannot be used, or a source that is not private. Targets are checked before the table
            is read. A mechanism and another randomizer beside one table would contradict each other: the old
            one is never replaced by another kind.
        OSError
            The disk is full, the folder is read-only, ...

        Notes
        -----
        The table is written to a temporary file and flushed to the disk; then the mechanism appears under its name,
        then the table under its own. Whatever fails before, neither appears. A process that is killed between the two
        leaves the mechanism alone, which tells no more than the prior that was paid for.
        """
        if entropy is not None and not entropy.private:
            raise InvalidInput(
                f"{type(entropy).__name__} draws words that others can draw again, and a table on disk looks released: "
                "leave the entropy to the operating system, or use LabelJob on arrays"
            )
        tell = announce or silent
        path, output = Path(source), Path(target)
        packed = suffix_of(output)
        if (suffix_of(path) == ".parquet") != (packed == ".parquet"):
            raise InvalidInput("input and output must both be CSV or both be Parquet: cells are copied, not converted")
        beside = self.beside(output)
        for written in (output, beside):
            check_target(written, path, overwrite=self.overwrite)
        for stale in {mechanism_path(output), randomizer_path(output)} - {beside}:
            if stale.exists() or stale.is_symlink():
                raise InvalidInput(f"{stale} exists and would speak for labels that it did not draw: move it away")
        tell("reading the table")
        table = read_table(path, self.column)
        release = self.job.run(table.labels, source=entropy, announce=announce)
        tell("writing")
        replaced, saved = beside.exists(), False
        try:
            with new_file(output, overwrite=self.overwrite) as stream:
                table.write(stream, release.values, compress=packed == ".csv.gz")
                stream.flush()
                os.fsync(stream.fileno())
                release.save(beside, overwrite=self.overwrite)
                saved = True
        except BaseException:
            if saved and not replaced:
                beside.unlink(missing_ok=True)
            raise
        return release.summary
