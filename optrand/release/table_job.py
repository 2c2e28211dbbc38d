"""The main job on a file: a table of private labels in, a table of noisy ones and its randomizer out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from optrand.base.files import check_target, new_file
from optrand.errors import InvalidInput
from optrand.release.circumstances import Circumstances, RandomizerFile, TableFile
from optrand.release.diagnosis import Diagnosis
from optrand.release.job import Job, ProgressCallback, Release, Summary, no_progress
from optrand.release.paid_prior import PaidPrior
from optrand.release.randomizer_file import MECHANISM, NOISE
from optrand.release.record import RECORD, ReleaseRecord, sha256_of
from optrand.release.table import read_column, read_table, suffix_of
from optrand.release.table_base import Table
from optrand.sampling.entropy import EntropySource

__all__ = ["TableJob", "mechanism_path", "paid_prior_path", "randomizer_path", "record_path"]


def mechanism_path(target: str | os.PathLike[str]) -> Path:
    """Path of the mechanism of a released table: beside it, under its name with ``.mechanism.json`` added.

    Examples
    --------
    >>> mechanism_path("out/census.noisy.csv").name
    'census.noisy.csv.mechanism.json'
    """
    return _beside(target, MECHANISM)


def randomizer_path(target: str | os.PathLike[str]) -> Path:
    """Path of the file of additive noise: beside the table, ``.randomizer.json`` added to its name."""
    return _beside(target, NOISE)


def record_path(target: str | os.PathLike[str]) -> Path:
    """Path of the record of a released table: beside the table, ``.release.json`` added to its name."""
    return _beside(target, RECORD)


def paid_prior_path(target: str | os.PathLike[str]) -> Path:
    """Path of a prior that was paid for, kept until the release is complete: beside the table, ``.prior.csv`` added."""
    return _beside(target, ".prior.csv")


def _beside(target: str | os.PathLike[str], ending: str) -> Path:
    path = Path(target)
    return path.with_name(path.name + ending)


@dataclass(frozen=True, kw_only=True)
class TableJob:
    """A job such as :class:`~optrand.release.job.LabelJob` on a column of a file.

    Every other column is copied as it is: one that was computed from the labels discloses them.

    Parameters
    ----------
    job : LabelJob or BaselineJob
    column : str
        The name of the column of labels.
    overwrite : bool
        Whether the output and what is saved beside it may replace files that exist.
    """

    job: Job
    column: str
    overwrite: bool = False

    def beside(self, target: str | os.PathLike[str]) -> Path:
        """Path of what drew the labels: :func:`mechanism_path` or :func:`randomizer_path`."""
        return _beside(target, self.job.ending)

    def run(
        self,
        table: str | os.PathLike[str],
        target: str | os.PathLike[str],
        *,
        source: EntropySource | None = None,
        announce: ProgressCallback | None = None,
        warn: ProgressCallback | None = None,
    ) -> Summary:
        """Read `table`, release it as `target`, and save what drew the labels :meth:`beside`, and the record.

        Raises
        ------
        InvalidInput
            A file or a label that cannot be used, a source that is not private, or a target that may not be written:
            targets are checked before the table is read. Nor is a file of another kind of
            randomizer replaced, or a prior beside the output that was paid for and not used.
        OSError
            The disk is full, the folder is read-only, ... If the prior had been paid for by then, a note says so.

        Notes
        -----
        A prior that is estimated from the labels is kept beside the output, as :func:`paid_prior_path`, from when it is
        drawn until all else is done. The table is written to a temporary file and flushed to the disk; then the
        mechanism appears under its name, then the table under its own, then the record, as :func:`record_path`, that
        ties them. Whatever fails before, neither appears. A
        process that is killed between the two leaves the mechanism alone, which tells no more than the prior does.
        """
        if source is not None and not source.private:
            raise InvalidInput(
                f"{type(source).__name__} draws words that others can draw again, and a table on disk looks released: "
                "leave the entropy to the operating system, or use LabelJob on arrays"
            )
        tell = announce or no_progress
        path, output = Path(table), Path(target)
        packed = suffix_of(output)
        if (suffix_of(path) == ".parquet") != (packed == ".parquet"):
            raise InvalidInput("input and output must both be CSV or both be Parquet: cells are copied, not converted")
        self._check_targets(path, output)
        tell("reading the table")
        rows = read_table(path, self.column)
        kept, bought = paid_prior_path(output), None

        def keep(prior: PaidPrior) -> None:
            nonlocal bought
            bought = prior
            prior.save(kept)

        try:
            release = self.job.run(rows.labels, source=source, announce=announce, keep=keep, warn=warn)
            tell("writing")
            self._write(release, rows, output, compress=packed == ".csv.gz")
        except BaseException as error:
            if bought is not None:
                error.add_note(bought.spent(kept if kept.exists() else None))
            raise
        if bought is not None:
            kept.unlink(missing_ok=True)
        return release.summary

    def diagnose(self, table: str | os.PathLike[str]) -> Diagnosis:
        """Exact counts of labels that :meth:`run` would refuse: for the owner of the labels alone, not to be shared."""
        return Diagnosis.of(read_column(table, self.column), self.job.labels, clip=self.job.clip)

    def _check_targets(self, path: Path, output: Path) -> None:
        """Refuse what could not be written, or would stand beside files of another release."""
        beside, kept = self.beside(output), paid_prior_path(output)
        for written in (output, beside):
            check_target(written, path, overwrite=self.overwrite)
        for stale in {mechanism_path(output), randomizer_path(output)} - {beside}:
            if stale.exists() or stale.is_symlink():
                raise InvalidInput(f"{stale} exists and would speak for labels that it did not draw: move it away")
        check_target(record_path(output), path, overwrite=self.overwrite)
        if self.job.buys_a_prior and (kept.exists() or kept.is_symlink()):
            raise InvalidInput(
                f"{kept} exists, a prior that an earlier run has paid for: go on from it (--paid-prior {kept}), or "
                "move it away and pay again"
            )

    def _write(self, release: Release, table: Table, output: Path, *, compress: bool) -> None:
        beside = self.beside(output)
        replaced, saved = beside.exists(), False
        try:
            with new_file(output, overwrite=self.overwrite) as stream:
                table.write(stream, release.values, compress=compress)
                stream.flush()
                os.fsync(stream.fileno())
                release.save(beside, overwrite=self.overwrite)
                saved = True
        except BaseException:
            if saved and not replaced:
                beside.unlink(missing_ok=True)
            raise
        record = ReleaseRecord.of(
            release,
            Circumstances(column=self.column),
            table=TableFile(output.name, sha256_of(output), release.summary.rows),
            randomizers=(RandomizerFile(beside.name, sha256_of(beside)),),
        )
        record.save(record_path(output), overwrite=self.overwrite)
