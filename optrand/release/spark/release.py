"""A release of a Spark frame: two passes of the cluster over it, and files that appear together or not at all."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from optrand.base.files import check_target, sync_directory
from optrand.errors import InputChanged, Interrupted, InvalidInput, MissingExtra
from optrand.release.account import Account, NoLedger, Terms
from optrand.release.batch import BatchRandomizer
from optrand.release.charged import ChargedRelease
from optrand.release.circumstances import Circumstances, RandomizerFile, TableFile
from optrand.release.configuration import configuration_digest
from optrand.release.interruption import Signals
from optrand.release.paths import mechanism_path, randomizer_path, record_path
from optrand.release.plan import ProgressCallback, no_progress
from optrand.release.publication import Publication
from optrand.release.record import ReleaseRecord, load_release
from optrand.release.spark.frame import SparkFrame
from optrand.release.spark.rows import digest_rows
from optrand.release.spark.tasks import REPORT, Drawing, Held, Report, Secret, Task, checking_ids, counting, writing
from optrand.release.table_job import TableJob

__all__ = ["randomize", "terms_of"]


def randomize(
    frame: Any,
    target: str | os.PathLike[str],
    task: TableJob,
    *,
    account: Account | None = None,
    announce: ProgressCallback | None = None,
    warn: ProgressCallback = warnings.warn,
) -> ReleaseRecord:
    """Release a Spark frame with noisy labels as a folder of Parquet files.

    It writes: a lazy frame of noisy labels would draw again whenever it is computed, and for changed labels under one
    key. The noise of a record is a keyed function of its id, so that tasks that are retried or run twice agree.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Computed three times: for its labels, for its ids, and to be written. Cache it where that is slow.
    target : path
        Folder on a disk that the driver and all workers share, under the same name and user.
    task : TableJob
        With an `id_column`: frames have no order, so that row numbers say nothing.
    account : Account, optional
        Charges the release and holds its key; by default no ledger knows of it.
    announce : callable, optional
        Told of each stage as it begins.
    warn : callable, optional
        Told, for the owner of the labels alone, that Spark does not encrypt its temporary files, one of which will
        hold the key of the noise, and, before anything is drawn, what cannot be estimated from the release.

    Returns
    -------
    ReleaseRecord
        Read from the file beside the table, which is published with it.

    Raises
    ------
    InvalidInput
        A column or a label that cannot be released (neither which nor how many is said), ids that are missing or not
        unique, options that frames do not have, a target that may not be written, or a session of Spark Connect, which
        has no broadcast variables.
    InputChanged
        The frame had other rows when it was computed again: nothing was released.
    MissingExtra
        pyspark is not installed.
    OSError
        As from the operating system of the driver; an error of a task is raised as Spark reports it.

    Notes
    -----
    The master key stays with the driver. Tasks get the key of the labels alone, in a broadcast variable that is
    destroyed at the end: no plan, log or page of Spark shows it. Its bytes cross the network and lie in temporary files
    of Spark meanwhile, and for longer where a worker is killed; ``spark.network.crypto.enabled`` and
    ``spark.io.encryption.enabled`` have Spark encrypt both.

    Ids are checked by Spark, exactly, before a byte is written. Sums of keyed hashes over all rows tie what is counted,
    checked and written to each other; of a task that ran twice, one file is published, whose rows were summed.
    """
    context = _context(frame)
    if context.getConf().get("spark.io.encryption.enabled", "false") != "true":
        warn(
            "Spark does not encrypt its temporary files: the key of the noise is in one of them until the release "
            "ends, or for longer where a worker is killed; start the session with spark.io.encryption.enabled=true"
        )
    source, output = SparkFrame(frame), Path(target)
    _check_options(task)
    randomizer = task.options.randomizer(source, task.column, task.job.labels, clip=task.job.clip)
    tell, chosen = announce or no_progress, account or NoLedger()
    if chosen.source is not None:
        raise InvalidInput("tasks that are retried draw again: releases on Spark are keyed, leave the source out")
    chosen.settle(output)
    _check_targets(task, output)
    with (
        Signals() as signals,
        _jobs(context) as broadcast,
        Publication(output, release=uuid.uuid4().hex, overwrite=task.overwrite) as publication,
    ):
        tell("reading the table")
        keys = Secret(chosen.digest_key), Secret(chosen.id_key)
        found = _scanned(source, randomizer, broadcast(Drawing(*keys)))
        task.options.check_rows(found.released, source.path.name)
        terms = terms_of(task, found.released, input_digest=digest_rows(chosen.digest_key, found.sums), output=output)
        with chosen.begin(terms) as charged:
            publication.release = charged.release
            try:
                counts = np.asarray(found.counts, dtype=np.intp)
                plan = task.job.plan(
                    counts, source=charged.prior_source, announce=tell, keep=charged.keep_prior, warn=warn
                )
                saved = task.beside(output)
                plan.save(publication.stage(saved))
                record = publication.stage(record_path(output))
                tell("drawing labels")
                (key,) = charged.labels_keys({"": publication.digest(saved)})
                drawing = Drawing(*keys, Secret(key), plan.randomizer, charged.private)
                _write(source, randomizer, broadcast(drawing), found, publication)
                tell("writing")
                ReleaseRecord.of(
                    plan,
                    _circumstances(task, charged, chosen),
                    table=TableFile(output.name, publication.digest(output), found.released),
                    randomizers=(RandomizerFile(saved.name, publication.digest(saved)),),
                ).save(record)
                with signals.held():
                    charged.publishing(publication.digest(record_path(output)))
                    publication.publish()
                    signals.outcome, signals.released = f"the release was complete by then: {output}", True
                    charged.complete()
            except BaseException as error:
                done = publication.published or (isinstance(error, Interrupted) and error.released)
                if not done and (note := charged.broken_off()) is not None:
                    error.add_note(note)
                raise
    return load_release(record_path(output))


def terms_of(task: TableJob, rows: int, *, input_digest: str, output: Path) -> Terms:
    """Charge of a release of so many rows: its configuration is all that decides what is drawn and is public."""
    return Terms(
        column=task.column,
        parts=task.job.parts(rows),
        configuration=configuration_digest(engine="spark", column=task.column, job=task.job, options=task.options),
        input_digest=input_digest,
        output=str(output),
    )


def _context(frame: Any) -> Any:
    """Spark context of a frame."""
    try:
        from pyspark.sql.classic.dataframe import DataFrame
    except ImportError as error:
        raise MissingExtra("releases on Spark need pyspark: pip install 'optrand[spark]'") from error
    if not isinstance(frame, DataFrame):
        raise InvalidInput(
            f"the table is of type {type(frame).__name__}, expected a frame of a Spark session with a driver in this "
            "process (not Spark Connect, which has no broadcast variables)"
        )
    if frame.isStreaming:
        raise InvalidInput("the table is a stream, which cannot be read twice: write it to a table first")
    return frame.sparkSession.sparkContext


def _check_options(task: TableJob) -> None:
    options = task.options
    if options.id_column is None:
        raise InvalidInput("frames have no order: name a column of record ids, TableOptions(id_column=...)")
    if (options.layout, options.released_layout, options.expect_sha256, options.grouping) != (None,) * 4:
        raise InvalidInput(
            "frames have no layout, SHA-256 or groups: leave layout, released_layout, expect_sha256 and grouping out"
        )


def _check_targets(task: TableJob, output: Path) -> None:
    beside = task.beside(output)
    if not output.is_absolute():
        raise InvalidInput(f"{output} is not an absolute path: name a folder on a disk that all machines share")
    for file in (beside, record_path(output)):
        check_target(file, output, overwrite=task.overwrite)
    if output.is_symlink() or output.is_file():
        raise InvalidInput(f"{output} is a file or a symbolic link: name a folder, which need not exist")
    if output.exists() and not task.overwrite:
        raise InvalidInput(f"{output} exists: choose another name, or overwrite it (overwrite=True)")
    for stale in {mechanism_path(output), randomizer_path(output)} - {beside}:
        if stale.exists() or stale.is_symlink():
            raise InvalidInput(f"{stale} exists and would speak for labels that it did not draw: move it away")


Broadcast = Callable[[Drawing], Held]


@contextmanager
def _jobs(context: Any) -> Iterator[Broadcast]:
    """Broadcast variables that are destroyed at the end; jobs are cancelled on an error."""
    sent: list[Any] = []

    def broadcast(drawing: Drawing) -> Held:
        sent.append(context.broadcast(drawing))
        held: Held = sent[-1]
        return held

    tag = f"optrand-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield broadcast
    except BaseException:
        context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
        for variable in sent:
            variable.destroy(blocking=True)


def _scanned(source: SparkFrame, randomizer: BatchRandomizer, held: Held) -> Report:
    """First pass: labels and ids, and everything that must be refused."""
    k, name = randomizer.declared.labels.size, str(randomizer.id_column)
    found = _run(source.selected(randomizer.columns), counting(randomizer, held), k)
    if found.refused is not None:
        raise InvalidInput(found.refused)
    if found.released == 0:
        raise InvalidInput(f"{source.path.name} has no rows with a label: there is nothing to randomize")
    ids = _run(source.distinct(name), checking_ids(name, held), k)
    if ids.refused is not None:
        raise InvalidInput(ids.refused)
    if (ids.sums.rows, ids.sums.ids.tolist()) != (found.sums.rows, found.sums.ids.tolist()):
        raise _changed()
    return found


def _circumstances(task: TableJob, charged: ChargedRelease, account: Account) -> Circumstances:
    options = task.options
    classes = None if options.classes is None else tuple("" if name is None else name for name in options.classes)
    return Circumstances(
        release=charged.release,
        dataset=account.dataset,
        column=task.column,
        task="regression" if classes is None else "classification",
        classes=classes,
        entropy=charged.entropy,
        nulls=options.nulls,
        id_column=options.id_column,
        ledger=account.in_ledger,
    )


def _write(
    source: SparkFrame, randomizer: BatchRandomizer, held: Held, found: Report, publication: Publication
) -> None:
    """Second pass: a file for each partition, under its hidden name."""
    attempts = publication.folder / "attempts"
    attempts.mkdir(mode=0o700)
    released = None if randomizer.released is None else (*randomizer.released, *randomizer.columns)
    frame = source.selected(tuple(dict.fromkeys(released)) if released else None)
    written = _run(frame, writing(randomizer, held, str(attempts)), randomizer.declared.labels.size)
    if written.refused is not None or written.sums.to_bytes() != found.sums.to_bytes():
        raise _changed()
    staged = publication.stage(publication.target)
    staged.mkdir(mode=0o700)
    for number, file in enumerate(written.files):
        attempt = attempts / file
        if not attempt.is_file():
            raise InvalidInput(
                f"a worker wrote its part of {publication.target} elsewhere: name a folder on a disk that all share"
            )
        attempt.rename(staged / f"part-{number:05}.parquet")
    sync_directory(staged)


def _run(frame: Any, task: Task, k: int) -> Report:
    return Report.collected(frame.mapInArrow(task, REPORT).collect(), k)


def _changed() -> InputChanged:
    return InputChanged(
        "the frame held other labels or ids when it was computed again: nothing was released; write it to a table "
        "first, or cache it, and start again"
    )
