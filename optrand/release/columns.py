"""Private columns in memory on their way to a release: read and checked, charged, and only then drawn."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from optrand.errors import InvalidInput
from optrand.release.account import Account, Terms
from optrand.release.asked import Asked
from optrand.release.batch import BatchRandomizer, Nulls, Records
from optrand.release.charged import ChargedRelease
from optrand.release.circumstances import Circumstances
from optrand.release.column_groups import ColumnGroups
from optrand.release.configuration import configuration_digest
from optrand.release.declared_sets import DeclaredClasses
from optrand.release.frames import has_columns, opened
from optrand.release.group_plan import GroupPlan, checked_job, plan_groups
from optrand.release.ids import Ids, RowDigest, UniqueIds, column_ids, row_ids
from optrand.release.plan import Plan, no_progress
from optrand.release.randomizer_file import randomizer_digest
from optrand.release.record import ReleaseRecord
from optrand.release.row_groups import RowGroups
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.keyed import checked_key

__all__ = ["Columns", "Noise"]


@dataclass(frozen=True)
class Noise:
    """Where the noise of a release comes from.

    Attributes
    ----------
    source : EntropySource or None
        None: from the release's key and the ids.
    key : bytes, optional
        In place of that of the operating system.
    """

    source: EntropySource | None
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, entropy: str | None, source: EntropySource | bytes | None, *, keyed: bool) -> Noise:
        """Noise as a user asks for it, by default `keyed` or of the operating system.

        Raises
        ------
        InvalidInput
            Words without meaning, or a source that is no keyed noise where that is asked for.
        """
        if entropy not in (None, "keyed", "system"):
            raise InvalidInput("entropy is another word than expected: 'keyed' or 'system'")
        if source is None:
            return cls(None if entropy == "keyed" or (keyed and entropy is None) else SystemEntropy())
        if isinstance(source, bytes):
            if entropy == "system":
                raise InvalidInput("a key makes noise keyed: leave it out, or entropy='system'")
            return cls(None, checked_key(source))
        if not isinstance(source, EntropySource):
            raise InvalidInput(f"the source is of type {type(source).__name__}, expected an EntropySource or a key")
        if entropy == "keyed":
            raise InvalidInput("keyed noise comes from a key, not from a source: pass 32 bytes, or leave it out")
        return cls(source)


@dataclass(frozen=True, kw_only=True)
class PrivateColumn:
    """Labels of one column, read and checked. Private.

    Attributes
    ----------
    name : str
        Empty where it has none.
    asked : Asked
    randomizer : BatchRandomizer
    batch : pyarrow.RecordBatch
        Of the labels alone.
    records : Records
    grouping : ColumnGroups, optional
        What the groups of the records are.
    """

    name: str
    asked: Asked
    randomizer: BatchRandomizer
    batch: Any = field(repr=False)
    records: Records = field(repr=False)
    grouping: ColumnGroups | None = None

    @classmethod
    def read(
        cls, labels: Any, name: str, asked: Asked, *, nulls: Nulls, ids: Ids, groups: RowGroups | None = None
    ) -> PrivateColumn:
        """Read an Arrow array of labels, and refuse what cannot be released; errors name neither which nor how many."""
        if groups is not None:
            checked_job(asked.job)
        shown = name or "labels"
        asked.check_type(labels.type, shown)
        randomizer = BatchRandomizer(column=shown, declared=asked.declared, nulls=nulls)
        batch = pa.RecordBatch.from_arrays([labels], names=[shown])
        places = randomizer.read(batch).places
        records = Records(places, ids, None if groups is None else groups.codes)
        column = cls(
            name=name,
            asked=asked,
            randomizer=randomizer,
            batch=batch,
            records=records,
            grouping=None if groups is None else groups.grouping,
        )
        randomizer.check(column.records)
        return column

    @property
    def present(self) -> NDArray[np.bool_]:
        """Rows whose label is not missing."""
        return self.records.places >= 0

    @property
    def counts(self) -> NDArray[np.intp]:
        """How often each declared label occurs, a row for each group."""
        groups = 1 if self.grouping is None else len(self.grouping)
        return self.records.counts(groups, self.randomizer.declared.labels.size)

    def only(self, kept: NDArray[np.bool_]) -> PrivateColumn:
        """Some of the rows."""
        groups = self.records.groups
        records = Records(self.records.places[kept], self.records.ids[kept], None if groups is None else groups[kept])
        return replace(self, batch=self.batch.filter(pa.array(kept)), records=records)

    def terms(self, key: bytes) -> Terms:
        """What is charged; the key is that of digests of inputs."""
        job = self.asked.job
        digest = RowDigest(key)
        digest.add(self.records.ids, self.records.places, self.records.groups)
        return Terms(
            column=self.name,
            parts=job.parts(int(self.counts.sum())),
            configuration=configuration_digest(
                kind="memory",
                column=self.name,
                job=job,
                classes=self.asked.names,
                nulls=self.randomizer.nulls,
                groups=None if self.grouping is None else self.grouping.columns,
            ),
            input_digest=digest.hexdigest(),
            output="in memory",
        )

    def planned(self, charged: ChargedRelease) -> Plan | GroupPlan:
        """Priors and randomizers; what cannot be estimated is said."""
        if self.grouping is not None:
            return plan_groups(self.asked.job, self.counts, charged, tell=no_progress, warn=_warn)
        return self.asked.job.plan(self.counts[0], source=charged.prior_source, keep=charged.keep_prior, warn=_warn)

    def drawn(self, plan: Plan | GroupPlan, charged: ChargedRelease) -> Any:
        """Noisy labels as an Arrow array, null where one is missing."""
        if isinstance(plan, Plan):
            draws = charged.draws({"": (plan.randomizer, randomizer_digest(plan.randomizer, plan.labels))})
        else:
            of_pools = charged.draws({str(pool): (one, one.digest) for pool, one in enumerate(plan.mechanisms)})
            draws = [of_pools[pool] for pool in plan.pools.pool.tolist()]
        return self.randomizer(self.batch, draws, records=self.records).column(0)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns of one object that are released together. Private.

    Attributes
    ----------
    given : object
    columns : mapping of name to PrivateColumn
        Of the rows that are kept.
    kept : (rows,) array of bool, optional
        Which of the rows of `given` those are; all by default.
    id_column : str, optional
    """

    given: Any = field(repr=False)
    columns: Mapping[Hashable, PrivateColumn] = field(repr=False)
    kept: NDArray[np.bool_] | None = field(default=None, repr=False)
    id_column: str | None = None

    @classmethod
    def read(
        cls,
        given: Any,
        asked: Mapping[Hashable, Asked],
        *,
        nulls: Nulls,
        ids: Any,
        groups: Any = None,
        account: Account,
    ) -> Columns:
        """Read and check labels, ids and groups; nothing is drawn or charged."""
        framed = has_columns(given)
        if framed and ids is not None and isinstance(ids, Hashable) and ids in asked:
            raise InvalidInput("the column of ids is one of labels, expected another one")
        arrays = {}
        for name, wanted in asked.items():
            column = opened(given, name if framed else None)
            if isinstance(wanted.declared, DeclaredClasses):
                column.check_holds(pa.array(wanted.declared.names, pa.string()))
            arrays[name] = column.labels
        if not framed and len(arrays) > 1:
            raise InvalidInput(f"labels are of type {type(given).__name__}, which has no columns: give a frame")
        rows = len(next(iter(arrays.values())))
        record_ids = _ids(given, ids, rows, key=account.id_key)
        of_rows = None if groups is None else RowGroups.read(given, groups, rows, private=list(asked))
        columns = {
            name: PrivateColumn.read(
                array,
                _name(given, name, framed=framed),
                asked[name],
                nulls=nulls,
                ids=record_ids,
                groups=of_rows,
            )
            for name, array in arrays.items()
        }
        kept = None
        if nulls == "drop":
            kept = np.logical_and.reduce([column.present for column in columns.values()])
            columns = {name: column.only(kept) for name, column in columns.items()}
        if not all(column.present.any() for column in columns.values()):
            raise InvalidInput("there are no rows with a label: there is nothing to randomize")
        named = str(ids) if framed and isinstance(ids, str | int) else None
        return cls(given=given, columns=columns, kept=kept, id_column=named)

    def released(self, account: Account) -> tuple[Any, dict[Hashable, ReleaseRecord]]:
        """Charge all columns, then draw them: the object with noisy labels, and the record of each."""
        with ExitStack() as stack:
            charged: dict[Hashable, ChargedRelease] = {}
            try:
                for name in self._in_order(account):
                    charged[name] = stack.enter_context(account.begin(self.columns[name].terms(account.digest_key)))
                plans = {name: column.planned(charged[name]) for name, column in self.columns.items()}
                drawn = {name: column.drawn(plans[name], charged[name]) for name, column in self.columns.items()}
                table, records = self._replaced(drawn), self._records(plans, charged, account)
                for one in charged.values():
                    one.complete()
            except BaseException as error:
                for note in filter(None, [one.broken_off() for one in charged.values()]):
                    error.add_note(note)
                raise
        return table, records

    def _in_order(self, account: Account) -> list[Hashable]:
        """Columns that the ledger knows first: where one is refused, none has been charged."""
        spent = {name: account.spent(column.name).epsilon for name, column in self.columns.items()}
        return sorted(self.columns, key=lambda name: spent[name] == 0)

    def _replaced(self, drawn: Mapping[Hashable, Any]) -> Any:
        table, kept = self.given, self.kept
        framed = has_columns(table)
        for name, labels in drawn.items():
            table = opened(table, name if framed else None).replaced(labels, kept)
            # Rows without a label are gone from now on.
            kept = None
        return table

    def _records(
        self, plans: Mapping[Hashable, Plan | GroupPlan], charged: Mapping[Hashable, ChargedRelease], account: Account
    ) -> dict[Hashable, ReleaseRecord]:
        records = {}
        for name, column in self.columns.items():
            classes = column.asked.names
            around = Circumstances(
                release=charged[name].release,
                dataset=account.dataset,
                column=column.name or None,
                task="regression" if classes is None else "classification",
                classes=None if classes is None else tuple("" if each is None else each for each in classes),
                entropy=charged[name].entropy,
                nulls=column.randomizer.nulls,
                id_column=self.id_column,
                groups=() if column.grouping is None else column.grouping.columns,
                ledger=account.in_ledger,
            )
            names = () if column.grouping is None else column.grouping.names
            records[name] = ReleaseRecord.of(plans[name], around, group_names=names)
        return records


def _ids(given: Any, ids: Any, rows: int, *, key: bytes) -> Ids:
    """Ids of the records, unique; row numbers where none are given."""
    if ids is None:
        return row_ids(0, rows)
    if isinstance(ids, str | int):
        if not has_columns(given):
            raise InvalidInput("labels have no columns that could hold ids: pass the ids themselves")
        column, name = opened(given, ids).labels, str(ids)
    else:
        column, name = opened(ids).labels, "ids"
    if len(column) != rows:
        raise InvalidInput(f"there are {len(column)} ids for {rows} labels, expected one for each")
    found = column_ids(column, name=name, key=key)
    with UniqueIds() as unique:
        unique.add(found)
        unique.check()
    return found


def _name(given: Any, column: Hashable, *, framed: bool) -> str:
    """Name of a column in records and in the ledger: of a Series its own, unless another is given."""
    if framed or column is not None:
        return str(column)
    own = getattr(given, "name", None)
    return own if isinstance(own, str) else ""


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=6)
