"""The main job on a file: a table of private labels in, a table of noisy ones and its randomizer out."""

from __future__ import annotations

import os
import secrets
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from optrand.base.files import check_target
from optrand.errors import InvalidInput
from optrand.release.circumstances import Circumstances, RandomizerFile, TableFile
from optrand.release.diagnosis import Diagnosis
from optrand.release.interruption import Signals
from optrand.release.job import Job, Plan, ProgressCallback, Summary, no_progress
from optrand.release.paid_prior import PaidPrior
from optrand.release.publication import Publication
from optrand.release.randomizer_file import MECHANISM, NOISE
from optrand.release.record import RECORD, ReleaseRecord, sha256_of
from optrand.release.scan import Pass, Scan
from optrand.release.table import open_table, suffix_of
from optrand.release.table_options import TableOptions, open_sink
from optrand.sampling.entropy import EntropySource, SystemEntropy

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
    options : TableOptions
    """

    job: Job
    column: str
    overwrite: bool = False
    options: TableOptions = field(default_factory=TableOptions)

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

        Parameters
        ----------
        table, target : path
            CSV or Parquet, by the ends of their names, each of any kind; a folder of Parquet files becomes a folder.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.
        announce : callable, optional
            Told of each stage as it begins.
        warn : callable, optional
            Told, for the owner of the labels alone, what is suspicious about the table and, before anything is drawn,
            what cannot be estimated from its release. By default the former is a Python warning.

        Raises
        ------
        InvalidInput
            A file or a label that cannot be used, a source that is not private, or a target that may not be written:
            targets are checked before the table is read. Nor is a file of another kind of randomizer replaced, or a
            prior beside the output that was paid for and not used. Or an earlier release of `target` that was
            interrupted as it was published: it is finished, and nothing else done.
        InputChanged
            The table was written to meanwhile, or is not the expected one.
        Interrupted
            A signal; the message says what was released.
        OSError
            The disk is full, the folder is read-only, ... If the prior had been paid for by then, a note says so.

        Notes
        -----
        The table is read twice, in batches: memory does not grow with its rows. A prior that is estimated from the
        labels is kept beside the output, as :func:`paid_prior_path`, from when it is drawn until all else is done.
        Everything is written to a hidden folder that only its owner can read and flushed to the disk; then all of it
        appears, the mechanism and the record, as :func:`record_path`, before the table: see
        :mod:`~optrand.release.publication`.
        """
        if source is not None and not source.private:
            raise InvalidInput(
                f"{type(source).__name__} draws words that others can draw again, and a table on disk looks released: "
                "leave the entropy to the operating system, or use LabelJob on arrays"
            )
        tell, entropy = announce or no_progress, source or SystemEntropy()
        path, output = Path(table), Path(target)
        self._check_targets(path, output)
        kept, bought = paid_prior_path(output), None

        def keep(prior: PaidPrior) -> None:
            nonlocal bought
            bought = prior
            prior.save(kept)

        with (
            Signals() as signals,
            Publication(output, release=uuid.uuid4().hex, overwrite=self.overwrite) as publication,
        ):
            try:
                tell("reading the table")
                rows = self._pass(path)
                scan = self._scanned(rows, publication.folder, warn or warnings.warn)
                counts = scan.counts.sum(axis=0)
                plan = self.job.plan(counts, source=entropy, announce=announce, keep=keep, warn=warn)
                tell("drawing labels")
                self._write(plan, rows, scan, publication, entropy)
                tell("writing")
                with signals.held():
                    publication.publish()
                    kept.unlink(missing_ok=True) if bought is not None else None
                    signals.outcome, signals.released = f"the release was complete by then: {output}", True
            except BaseException as error:
                if bought is not None and not publication.published:
                    error.add_note(bought.spent(kept if kept.exists() else None))
                raise
        return replace(plan.summary, copied=self._copied(rows))

    def diagnose(self, table: str | os.PathLike[str]) -> Diagnosis:
        """Exact counts of labels that :meth:`run` would refuse: for the owner of the labels alone, not to be shared."""
        return self._pass(Path(table)).diagnose()

    def _pass(self, path: Path) -> Pass:
        table = open_table(path, layout=self.options.layout)
        randomizer = self.options.randomizer(table, self.column, self.job.labels, clip=self.job.clip)
        return Pass(
            source=table,
            randomizer=randomizer,
            digest_key=secrets.token_bytes(32),
            id_key=secrets.token_bytes(32),
        )

    def _scanned(self, rows: Pass, temporary: Path, warn: Callable[[str], object]) -> Scan:
        """First pass over a table, and all that is expected of it."""
        self.options.check_digest(rows.source)
        scan = rows.scan(temporary=temporary)
        self.options.check_rows(scan.rows, rows.source.path.name)
        if scan.cut:
            warn(
                f"the last line of {rows.source.path.name} has no end: a copy of the table may have broken off in it "
                "and its label be cut, as 44 to 4"
            )
        return scan

    def _write(self, plan: Plan, rows: Pass, scan: Scan, publication: Publication, entropy: EntropySource) -> None:
        """Second pass: the mechanism, then the table, under their hidden names."""
        output, randomizer = publication.target, plan.randomizer
        beside, record = (publication.stage(path) for path in (self.beside(output), record_path(output)))
        plan.save(beside)
        staged = publication.stage(output, like=rows.source.files[0])
        sink = open_sink(rows.source, rows.randomizer, output, staged, layout=self.options.released_layout)
        rows.replace(scan, [lambda values, _: randomizer.sample(values, source=entropy)], sink)
        ReleaseRecord.of(
            plan,
            Circumstances(
                release=publication.release,
                column=self.column,
                task="regression" if self.options.classes is None else "classification",
                classes=self._classes,
                nulls=self.options.nulls,
                id_column=self.options.id_column,
            ),
            table=TableFile(output.name, publication.digest(output), scan.rows),
            randomizers=(RandomizerFile(self.beside(output).name, sha256_of(beside)),),
        ).save(record)

    @property
    def _classes(self) -> tuple[str, ...] | None:
        classes = self.options.classes
        return None if classes is None else tuple("" if name is None else name for name in classes)

    @staticmethod
    def _copied(rows: Pass) -> tuple[str, ...]:
        released = rows.randomizer.released or rows.source.names
        return tuple(name for name in released if name != rows.randomizer.column)

    def _check_targets(self, path: Path, output: Path) -> None:
        """Refuse what could not be written, or would stand beside files of another release."""
        if not path.is_dir() or output.suffix:
            suffix_of(output)
        beside, kept = self.beside(output), paid_prior_path(output)
        for stale in {mechanism_path(output), randomizer_path(output)} - {beside}:
            if stale.exists() or stale.is_symlink():
                raise InvalidInput(f"{stale} exists and would speak for labels that it did not draw: move it away")
        for written in (output, beside, record_path(output)):
            check_target(written, path, overwrite=self.overwrite)
        if self.job.buys_a_prior and (kept.exists() or kept.is_symlink()):
            raise InvalidInput(
                f"{kept} exists, a prior that an earlier run has paid for: go on from it (--paid-prior {kept}), or "
                "move it away and pay again"
            )
