"""The main job on a file: a table of private labels in, a table of noisy ones and its randomizer out."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from optrand.accounting import Ledger, Spent
from optrand.accounting.request import checked_name
from optrand.base.files import check_target
from optrand.base.validation import flag
from optrand.errors import Interrupted, InvalidInput
from optrand.release.account import Account, LedgerAccount, NoLedger, Terms
from optrand.release.base_job import Job
from optrand.release.charged import ChargedRelease, Entropy
from optrand.release.circumstances import Circumstances
from optrand.release.column_groups import ColumnGroups
from optrand.release.configuration import configuration_digest
from optrand.release.diagnosis import Diagnosis
from optrand.release.group_plan import checked_job, plan_groups
from optrand.release.interruption import Signals
from optrand.release.job import LabelJob
from optrand.release.paid_prior import PaidPrior
from optrand.release.paths import beside, mechanism_path, mechanisms_path, paid_prior_path, randomizer_path, record_path
from optrand.release.plan import Plan, ProgressCallback, Summary, no_progress
from optrand.release.publication import Publication
from optrand.release.record import ReleaseRecord
from optrand.release.scan import Pass, Scan
from optrand.release.staging import Staging
from optrand.release.table import open_table, suffix_of
from optrand.release.table_options import TableOptions
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.priors import EstimatedPrior

__all__ = ["TableJob"]


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
    rows_done : callable, optional
        Told how many rows of a pass over the table are done.
    """

    job: Job
    column: str
    overwrite: bool = False
    options: TableOptions = field(default_factory=TableOptions)
    rows_done: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        """Check the flag."""
        flag(self.overwrite, "overwrite")

    def beside(self, target: str | os.PathLike[str]) -> Path:
        """Path of what drew the labels: :func:`mechanism_path` or :func:`randomizer_path`."""
        return beside(target, self.job.ending) if self.options.grouping is None else mechanisms_path(target)

    def run(
        self,
        table: str | os.PathLike[str],
        target: str | os.PathLike[str],
        *,
        dataset: str | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        spend_again: bool = False,
        budget: Spent | float | None = None,
        entropy: Entropy | None = None,
        keep_key: bool = False,
        key: bytes | None = None,
        source: EntropySource | None = None,
        announce: ProgressCallback | None = None,
        warn: ProgressCallback | None = None,
    ) -> Summary:
        """Read `table`, release it as `target`, and save what drew the labels :meth:`beside`, and the record.

        Parameters
        ----------
        table, target : path
            CSV or Parquet, by the ends of their names, each of any kind; a folder of Parquet files becomes a folder.
        dataset : str, optional
            The name under which a ledger charges the release.
        ledger : Ledger or path, optional
            Charges the release before anything is drawn, and refuses to release a column twice. By default none does.
        spend_again : bool
            Release a column that was released before: costs add up.
        budget : Spent or float, optional
            What all releases of the dataset, over all its columns, may cost together.
        entropy : {"keyed", "system"}, optional
            Noise that a key and the record's id determine, so that a release that broke off goes on where it was, by
            default with a ledger; or that of the operating system, the default and the only choice without one.
        keep_key : bool
            Whether the key outlives the release; by default it is destroyed.
        key : bytes, optional
            32 bytes in place of those of the operating system, for tests: the record says that it is not private.
        source : EntropySource, optional
            Without a ledger: the operating system by default, the only choice for a release.
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
            prior beside the output that was paid for and not used.
        Finished
            An earlier release of `target` was interrupted as it was published: it is finished, and nothing else done.
        AlreadySpent, OverBudget
            As from :meth:`.Ledger.begin`.
        InputChanged
            The table was written to meanwhile, or since the release began, or is not the expected one.
        NotCertified
            The gap of the optimum is above that of the job.
        Interrupted
            A signal; the message says what was released.
        OSError
            The disk is full, the folder is read-only, ... If anything had been spent by then, a note says so.

        Notes
        -----
        The table is read twice, in batches: memory does not grow with its rows. All of epsilon is charged before the
        prior is drawn. With a ledger and keyed noise a run that was killed, wherever it was, is resumed by the same
        call, at no further cost and with the same bytes: the prior and the digest of the mechanism are in the ledger,
        and the key is destroyed once all is published. Without a ledger a prior that is estimated from the labels is
        kept beside the output, as :func:`paid_prior_path`, until all else is done.

        Everything is written to a hidden folder that only its owner can read and flushed to the disk; then all of it
        appears, the mechanism and the record, as :func:`record_path`, before the table: see
        :mod:`~optrand.release.publication`.
        """
        path, output = Path(table), Path(target)
        flag(spend_again, "spend_again")
        flag(keep_key, "keep_key")
        with ExitStack() as stack:
            if ledger is None:
                if dataset is not None or spend_again or budget is not None or keep_key or key is not None:
                    raise InvalidInput("a dataset, a budget and a key belong to a ledger: give it as ledger=")
                account: Account = self._unaccounted(source, entropy)
            else:
                if source is not None:
                    raise InvalidInput("a release with a ledger draws keyed noise, or entropy='system': give no source")
                opened = ledger if isinstance(ledger, Ledger) else stack.enter_context(Ledger.open(ledger))
                account = LedgerAccount(
                    opened,
                    checked_name(dataset, "the dataset's name"),
                    again=spend_again,
                    budget=Spent(budget) if isinstance(budget, int | float) else budget,
                    source=_source_of(entropy or "keyed"),
                    keep_key=keep_key,
                    key=key,
                )
            account.settle(output)
            self._check_targets(path, output, paid=account.in_ledger)
            return self._released(path, output, account, announce or no_progress, warn)

    def _unaccounted(self, source: EntropySource | None, entropy: Entropy | None) -> NoLedger:
        if entropy not in (None, "system"):
            raise InvalidInput(f"entropy is {entropy!r} without a ledger, which would keep the key: give a ledger")
        if source is not None and not source.private:
            raise InvalidInput(
                f"{type(source).__name__} draws words that others can draw again, and a table on disk looks released: "
                "leave the entropy to the operating system, or use LabelJob on arrays"
            )
        return NoLedger(source or SystemEntropy())

    def _released(
        self, path: Path, output: Path, account: Account, tell: ProgressCallback, warn: ProgressCallback | None
    ) -> Summary:
        with (
            Signals() as signals,
            Publication(output, release=uuid.uuid4().hex, overwrite=self.overwrite) as publication,
        ):
            tell("reading the table")
            rows = self._pass(path, account)
            scan = self._scanned(rows, publication.folder, warn or warnings.warn)
            with account.begin(self._terms(scan, output)) as charged:
                publication.release = charged.release
                try:
                    plan = (
                        self._planned(scan, charged, tell, warn)
                        if self.options.grouping is None
                        else plan_groups(self.job, scan.counts, charged, tell=tell, warn=warn)
                    )
                    tell("drawing labels")
                    staging = Staging(publication, self.beside(output), self.options.released_layout)
                    drawn = staging.drawn(plan, rows, scan, charged)
                    around = self._circumstances(charged, account)
                    ReleaseRecord.of(plan, around, table=drawn.table, randomizers=drawn.randomizers).save(drawn.record)
                    tell("writing")
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
        return replace(plan.summary, copied=self._copied(rows))

    def _terms(self, scan: Scan, output: Path) -> Terms:
        counted = int(scan.counts.sum())
        options = self.options
        return Terms(
            column=self.column,
            parts=self.job.parts(counted),
            configuration=configuration_digest(
                job=self.job,
                nulls=options.nulls,
                classes=options.classes,
                id_column=options.id_column,
                groups=None if options.grouping is None else options.grouping.columns,
            ),
            input_digest=scan.digest,
            output=str(output.absolute()),
            kept_prior=paid_prior_path(output),
        )

    def _planned(
        self, scan: Scan, charged: ChargedRelease, tell: ProgressCallback, warn: ProgressCallback | None
    ) -> Plan:
        """What the labels are drawn with; a prior that was drawn before an interruption is not drawn again."""
        counts = scan.counts.sum(axis=0)
        rows = int(counts.sum())
        drawn = None
        if isinstance(self.job, LabelJob) and (noisy := charged.priors.get("")) is not None:
            split = self.job.split(rows)
            drawn = PaidPrior(self.job.labels, EstimatedPrior(noisy, split.prior), self.job.epsilon, rows)
        return self.job.plan(
            counts, source=charged.prior_source, announce=tell, keep=charged.keep_prior, warn=warn, drawn=drawn
        )

    def diagnose(self, table: str | os.PathLike[str]) -> Diagnosis:
        """Exact counts of labels that :meth:`run` would refuse: for the owner of the labels alone, not to be shared."""
        found = self._pass(Path(table), NoLedger())
        return found.diagnose()

    def _pass(self, path: Path, account: Account) -> Pass:
        table = open_table(path, layout=self.options.layout)
        randomizer = self.options.randomizer(table, self.column, self.job.labels, clip=self.job.clip)
        return Pass(
            source=table,
            randomizer=randomizer,
            digest_key=account.digest_key,
            id_key=account.id_key,
            rows_done=self.rows_done,
            groups=len(randomizer.grouping) if isinstance(randomizer.grouping, ColumnGroups) else 1,
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

    def _circumstances(self, charged: ChargedRelease, account: Account) -> Circumstances:
        return Circumstances(
            release=charged.release,
            dataset=account.dataset,
            column=self.column,
            task="regression" if self.options.classes is None else "classification",
            classes=self._classes,
            entropy=charged.entropy,
            nulls=self.options.nulls,
            id_column=self.options.id_column,
            groups=() if self.options.grouping is None else self.options.grouping.columns,
            ledger=account.in_ledger,
        )

    @property
    def _classes(self) -> tuple[str, ...] | None:
        classes = self.options.classes
        return None if classes is None else tuple("" if name is None else name for name in classes)

    @staticmethod
    def _copied(rows: Pass) -> tuple[str, ...]:
        released = rows.randomizer.released or rows.source.names
        return tuple(name for name in released if name != rows.randomizer.column)

    def _check_targets(self, path: Path, output: Path, *, paid: bool) -> None:
        """Refuse what could not be written, or would stand beside files of another release."""
        if not path.is_dir() or output.suffix:
            suffix_of(output)
        if self.options.grouping is not None:
            checked_job(self.job)
        beside, kept = self.beside(output), paid_prior_path(output)
        for stale in {mechanism_path(output), randomizer_path(output), mechanisms_path(output)} - {beside}:
            if stale.exists() or stale.is_symlink():
                raise InvalidInput(f"{stale} exists and would speak for labels that it did not draw: move it away")
        for written in (output, beside, record_path(output)):
            if not (self.overwrite and written == mechanisms_path(output) and written.is_dir()):
                check_target(written, path, overwrite=self.overwrite)
        if paid and isinstance(self.job, LabelJob) and self.job.paid_prior is not None:
            raise InvalidInput("a ledger keeps the priors that it has charged: leave out the paid prior")
        if not paid and self.job.buys_a_prior and (kept.exists() or kept.is_symlink()):
            raise InvalidInput(
                f"{kept} exists, a prior that an earlier run has paid for: go on from it (--paid-prior {kept}), or "
                "move it away and pay again"
            )


def _source_of(entropy: Entropy) -> EntropySource | None:
    """None of keyed noise."""
    if entropy not in ("keyed", "system"):
        raise InvalidInput(f"entropy is {entropy!r}, expected 'keyed' or 'system'")
    return SystemEntropy() if entropy == "system" else None
