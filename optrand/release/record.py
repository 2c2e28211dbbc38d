"""Record of a release: what it spent in total and on what, and what can be estimated from its table.

It stands beside the table as ``OUTPUT.release.json``, JSON with a digest, one field a line, and ties the table and its
randomizer together by their SHA-256. Of the private labels it holds nothing but the noisy histogram, paid for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optrand.base import strict_json
from optrand.base.files import write_atomically
from optrand.base.validation import flag, rectangular
from optrand.baselines.additive import Additive
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism.mechanism import Mechanism, load
from optrand.mechanism.released import Drawn, Released
from optrand.release import record_format
from optrand.release.circumstances import RECORD, Circumstances, RandomizerFile, TableFile
from optrand.release.estimates import Estimates
from optrand.release.group_plan import GroupPlan
from optrand.release.plan import Plan
from optrand.release.randomizer_file import holds_noise, load_randomizer
from optrand.release.stated_groups import group_batch, group_codes, stated_groups
from optrand.release.streams.source import digest_of
from optrand.sampling.priors import BudgetSplit

__all__ = ["RECORD", "ReleaseRecord", "load_release", "sha256_of"]

FORMAT = "optrand.release"


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(Released):
    """Record of one release.

    Attributes
    ----------
    epsilon : float
        Total in nats: the exact sum of `parts`, rounded up.
    delta : float
    parts : BudgetSplit
        Of the prior and of the labels.
    exact : bool
        Whether labels were drawn with exactly the probabilities that are proven private.
    private : bool
        False where the noise came from a source that others can repeat.
    rows : int
        How many labels were drawn.
    labels : tuple of float
        The declared set, increasing.
    prior : str
        Where the prior came from, in words.
    noisy_counts : tuple of int, optional
        The histogram that the prior's part has paid for, clipped at 0.
    randomizer : str
        What drew the labels, in words.
    estimates : Estimates
    circumstances : Circumstances
    table : TableFile, optional
        None where the release is no file.
    randomizers : tuple of RandomizerFile
        One for each group; some may share a file.
    relative_loss : float, optional
        Of a release by groups: its objective under the noisy histograms, as a share of that of one randomizer for all.
    folder : Path, optional
        From which the record was read; not a part of it.

    Raises
    ------
    InvalidInput
        Parts that do not add up to the total, names that lead out of the folder, or fields that do not fit together.

    Examples
    --------
    >>> import optrand
    >>> from optrand.release.job import LabelJob
    >>> release = LabelJob(labels=np.arange(4), epsilon=1.0).run([0, 3, 3, 1, 0, 0] * 500)
    >>> record = ReleaseRecord.of(release, Circumstances(column="weeks"))
    >>> record.epsilon, record.parts.prior, record.estimates.histogram
    (1.0, 0.03651483716701107, True)
    >>> optrand.certify(record.mechanism).epsilon <= record.parts.labels
    True
    """

    epsilon: float
    delta: float = 0.0
    parts: BudgetSplit
    exact: bool
    private: bool
    rows: int
    labels: tuple[float, ...]
    prior: str
    noisy_counts: tuple[int, ...] | None
    randomizer: str
    estimates: Estimates
    circumstances: Circumstances
    table: TableFile | None = None
    randomizers: tuple[RandomizerFile, ...] = ()
    relative_loss: float | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that all fields fit together."""
        around = self.circumstances
        flag(self.exact, "exact")
        flag(self.private, "private")
        record_format.check_budget(self.epsilon, self.delta, self.parts, paid=self.noisy_counts is not None)
        record_format.check_labels(
            self.rows,
            self.labels,
            {"noisy counts": self.noisy_counts, "classes": around.classes, "errors of counts": self.estimates.counts},
        )
        record_format.check_circumstances(around)
        record_format.check_estimates(self.estimates)
        record_format.check_files(self.rows, self.table, self.randomizers, more=around.nulls == "pass")

    def __repr__(self) -> str:
        """One line: what it cost, of how many labels, and what can be estimated."""
        spent = f"epsilon {self.epsilon!r} (prior {self.parts.prior!r}, labels {self.parts.labels!r})"
        size = f"{self.rows:,} rows, {len(self.labels):,} labels declared"
        return f"<ReleaseRecord: {spent}, {size}; {self.estimates.words}>"

    @classmethod
    def of(
        cls,
        release: Plan | GroupPlan,
        circumstances: Circumstances,
        *,
        table: TableFile | None = None,
        randomizers: tuple[RandomizerFile, ...] = (),
        group_names: tuple[str, ...] = (),
    ) -> ReleaseRecord:
        """Record of a finished release on arrays; of one on files once its table and randomizer are named.

        A release by groups has files that name its groups, or in memory `group_names`.
        """
        summary = release.summary
        outputs = "noise" if summary.outputs is None else f"{summary.outputs} outputs"
        if isinstance(release, GroupPlan):
            kind, estimates = f"{len(release.mechanisms)} Mechanisms", Estimates.of_groups(release)
        else:
            kind, estimates = type(release.randomizer).__name__, Estimates.of(release)
        if summary.rule is not None:
            kind = f"{summary.rule}: {kind}"
        record = cls(
            epsilon=summary.split.total,
            parts=summary.split,
            exact=summary.exact,
            private=summary.private,
            rows=summary.rows,
            labels=tuple(release.labels.tolist()),
            prior=summary.prior,
            noisy_counts=release.noisy_counts,
            randomizer=f"{kind}, {outputs}, {summary.allowed}",
            estimates=estimates,
            circumstances=circumstances,
            table=table,
            randomizers=randomizers,
            relative_loss=summary.relative_loss,
        )
        # Kept so that a record in memory answers as a saved one does.
        if isinstance(release, Plan):
            record.__dict__["drawn"] = release.randomizer
        elif group_names:
            of_groups = [release.mechanisms[pool] for pool in release.pools.pool.tolist()]
            record.__dict__["mechanisms"] = dict(zip(group_names, of_groups, strict=True))
        return record

    @cached_property
    def drawn(self) -> Mechanism | Additive:
        """Randomizer that drew the labels, read from its file and verified to be the recorded one.

        Raises
        ------
        InvalidInput
            A release by groups, or no such file.
        InvalidFile
            Another file than the recorded one, or one for other labels or another epsilon.
        """
        if self.circumstances.groups:
            raise InvalidInput(
                f"the release is by groups of {', '.join(self.circumstances.groups)}, each with a mechanism of its "
                "own: take one of its files, or all as mechanisms; estimates take groups=..."
            )
        if len(self.randomizers) != 1 or self.folder is None:
            raise InvalidInput(f"the record names {len(self.randomizers)} randomizers in files, expected one to read")
        return self.read(self.randomizers[0])

    def read(self, one: RandomizerFile) -> Mechanism | Additive:
        """One of :attr:`randomizers`, verified; see :attr:`drawn`."""
        path = (self.folder or Path()) / one.name
        if not path.is_file():
            raise InvalidInput(f"{path}, the randomizer of this release, is not there: keep it beside the record")
        if sha256_of(path) != one.sha256:
            raise InvalidFile(f"{path} is not the randomizer of this release: its SHA-256 is another one")
        found = load_randomizer(path) if holds_noise(path) else load(path)
        if isinstance(found, Mechanism):
            same = np.array_equal(found.labels, np.array(self.labels))
        else:
            same = found.labels.low <= self.labels[0] and self.labels[-1] <= found.labels.high
        if not same or found.epsilon != self.parts.labels:
            raise InvalidFile(f"{path} is for other labels or another epsilon than the record states")
        return found

    @cached_property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """Mechanism of each group, by the name of the group; groups may share one. Errors as of :attr:`drawn`."""
        if not self.circumstances.groups:
            raise InvalidInput("the release is not by groups: there is one mechanism")
        read = {one.name: self.read(one) for one in self.randomizers}
        found = {one.group or "": read[one.name] for one in self.randomizers}
        return {group: one for group, one in found.items() if isinstance(one, Mechanism)}

    def drawn_by(self, released: ArrayLike, groups: Any = None) -> Drawn:
        """Released labels by the mechanism that drew them.

        Parameters
        ----------
        released : array
            Of all rows of the release, or of some.
        groups : array or frame, optional
            Where the release is by groups: their column, or what has their columns by name.

        Raises
        ------
        InvalidInput
            Groups that the release does not know, or groups where it has none.
        """
        columns = self.circumstances.groups
        if not columns:
            return super().drawn_by(released, groups)
        values = rectangular(self.numbers(released), "released values").ravel()
        known = stated_groups(columns, list(self.mechanisms))
        codes = group_codes(known, group_batch(groups, columns), values.size)
        distinct = {id(one): one for one in self.mechanisms.values()}
        drawing = np.array([id(one) for one in self.mechanisms.values()])[codes]
        rows = ((one, values[drawing == place]) for place, one in distinct.items())
        return [(one, found) for one, found in rows if found.size]

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism that drew the labels; see :attr:`drawn`."""
        found = self.drawn
        if not isinstance(found, Mechanism):
            raise InvalidInput("the labels were drawn by additive noise: there is no table to estimate with")
        return found

    def numbers(self, released: ArrayLike) -> ArrayLike:
        """Released classes by the places of their names; numbers as they are.

        Raises
        ------
        InvalidInput
            A name that is no class.
        """
        classes = self.circumstances.classes
        if classes is None:
            return released
        places = {name: place for place, name in enumerate(classes)}
        names = ["" if name is None else name for name in np.asarray(released, dtype=object).ravel().tolist()]
        strangers = sum(name not in places for name in names)
        if strangers:
            raise InvalidInput(
                f"{strangers} of {len(names)} released values are no classes of the record: pass what was released"
            )
        return np.array([places[name] for name in names], dtype=np.float64).reshape(np.shape(released))

    def verify_table(self, path: str | os.PathLike[str]) -> None:
        """Refuse a table, a file or a folder, that is not the released one, byte by byte.

        Raises
        ------
        InvalidFile
            Another SHA-256; :class:`InvalidInput` where the record knows of no table.
        """
        if self.table is None:
            raise InvalidInput("the record is of a release that was no file: it knows no table to compare with")
        if digest_of(path) != self.table.sha256:
            raise InvalidFile(f"{path} is not the table of this release: its SHA-256 is another one")

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the record, whole or not at all; errors as of :func:`~optrand.base.files.write_atomically`."""
        write_atomically(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Content of the file, one field a line."""
        return record_format.written(strict_json.sealed(record_format.document(vars(self)), kind=FORMAT))


def load_release(path: str | os.PathLike[str]) -> ReleaseRecord:
    """Read the record of a release and verify it.

    Its randomizers, where they are there, are those that it names; :attr:`ReleaseRecord.drawn` verifies what they hold.

    Raises
    ------
    InvalidFile
        Damaged, edited, of a newer optrand, parts that do not add up, or a randomizer that is another file.
    OSError
        The file cannot be read.
    """
    place = Path(path)
    content = strict_json.unsealed(place.read_bytes(), record_format.FIELDS, kind=FORMAT)
    values = record_format.read(content)
    try:
        record = ReleaseRecord(
            **{
                **values,
                "parts": BudgetSplit(**values["parts"]),
                "estimates": Estimates(**values["estimates"]),
                "circumstances": Circumstances(**values["circumstances"]),
                "table": None if values["table"] is None else TableFile(**values["table"]),
                "randomizers": tuple(RandomizerFile(**one) for one in values["randomizers"]),
                "folder": place.parent,
            }
        )
    except InvalidInput as error:
        raise InvalidFile(f"the file is no record of a release: {error}") from error
    for one in record.randomizers:
        beside = place.parent / one.name
        if beside.is_file() and sha256_of(beside) != one.sha256:
            raise InvalidFile(f"{beside} is not the randomizer of this release: its SHA-256 is another one")
    return record


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Hexadecimal SHA-256 of a file."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
