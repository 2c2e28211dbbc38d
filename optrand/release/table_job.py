"""The main job on a file: a table of private labels in, a table of noisy ones and its mechanism out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from optrand.entropy import EntropySource
from optrand.errors import InvalidInput
from optrand.release.atomic import check_target, new_file
from optrand.release.job import Announce, LabelJob, Summary, silent
from optrand.release.table import read_table, suffix_of

__all__ = ["TableJob", "mechanism_path"]


def mechanism_path(target: str | os.PathLike[str]) -> Path:
    """Where the mechanism of a released table is saved: beside it, under its name with ``.mechanism.json`` added.

    Examples
    --------
    >>> mechanism_path("out/census.noisy.csv").name
    'census.noisy.csv.mechanism.json'
    """
    path = Path(target)
    return path.with_name(path.name + ".mechanism.json")


@dataclass(frozen=True, kw_only=True)
class TableJob:
    """A :class:`LabelJob` on a column of a file.

    Every other column is copied as it is: one that was computed from the labels gives them away.

    Parameters
    ----------
    job : LabelJob
    column : str
        The name of the column of labels.
    overwrite : bool
        Whether the output and its mechanism may replace files that exist.
    """

    job: LabelJob
    column: str
    overwrite: bool = False

    def run(
        self,
        source: str | os.PathLike[str],
        target: str | os.PathLike[str],
        *,
        entropy: EntropySource | None = None,
        announce: Announce | None = None,
    ) -> Summary:
        """Read `source`, release it as `target`, and save the mechanism at :func:`mechanism_path`.

        Raises
        ------
        InvalidInput
            A file or a label that cannot be used, or a source that is not private. Targets are checked before the table
            is read.
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
        for written in (output, mechanism_path(output)):
            check_target(written, path, overwrite=self.overwrite)
        tell("reading the table")
        table = read_table(path, self.column)
        release = self.job.run(table.labels, source=entropy, announce=announce)
        tell("writing")
        beside = mechanism_path(output)
        replaced, saved = beside.exists(), False
        try:
            with new_file(output, overwrite=self.overwrite) as stream:
                table.write(stream, release.values, compress=packed == ".csv.gz")
                stream.flush()
                os.fsync(stream.fileno())
                release.mechanism.save(beside, overwrite=self.overwrite)
                saved = True
        except BaseException:
            if saved and not replaced:
                beside.unlink(missing_ok=True)
            raise
        return release.summary
