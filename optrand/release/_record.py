"""Record of a release: its cost, the estimates that its table admits, and the mechanisms that drew it.

Its file is ``OUT.release.json`` beside the table, JSON with a digest. The only data about private labels in it is the
noisy histogram, which is part of the cost.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from optrand.base import _strict_json
from optrand.base._arithmetic import decimal_above, decimal_value, least_reading
from optrand.base._files import write_atomically
from optrand.base._suggestions import missing, suggest_attributes
from optrand.base._validation import Floats, expect, rectangular
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released, refuse_groups
from optrand.release import FORMAT
from optrand.release._cells import LabelColumn, Places, arrow_column, is_frame
from optrand.release._plan import Conditioning, Estimates, describe_prior, expected_loss, pools_of, prove
from optrand.release._question import Nulls, Question, Task
from optrand.release._rows import Groups, Ids, Indices
from optrand.sampling._entropy import RecordStreams, subkey
from optrand.sampling._priors import BudgetSplit


@dataclass(frozen=True)
class TableFile:
    """Released table: name beside the record, SHA-256, rows, columns, and for CSV separator and decimal point."""

    name: str
    sha256: str
    rows: int
    columns: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str | None = None


@suggest_attributes(
    {
        "epsilon": "eps spent",
        "mechanism": "certificate certify matrix plot sample summary",
        "estimates": "estimate histogram mean",
        "save(path)": "to_csv to_json",
        "optrand.load_release(path)": "load verify",
        "column": "label",
        "labels": "classes classes_ domain",
    }
)
@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(Released):
    """Record of one release of one column.

    Attributes
    ----------
    release : str
        UUID in hexadecimal.
    dataset : str or None
        Name under which a ledger charged it, None without a ledger.
    column : str
        Name of the column of labels.
    epsilon : float
        Total in nats: the exact sum of `parts`, rounded up.
    parts : BudgetSplit
        Epsilon of the prior and of the labels.
    realised_epsilon : float
        Verified upper bound of the epsilon that was spent, at most `epsilon`.
    rows : int
        Labels that were drawn.
    labels : tuple of float, or tuple of str, int, bool or None
        The declared numbers, increasing, or the declared names. None among names stands for missing labels.
    task : {"regression", "classification"}
        Whether labels are numbers or names.
    nulls : str
    ids, groups : tuple of str
        Names of columns.
    prior, randomizer : str
        Origin of the prior and the randomizer, in words.
    noisy_counts : tuple of int, optional
        The private histogram, summed over groups and clipped at 0.
    estimates : Estimates
    gap, bias, variance : float
        Proven distance from the optimum as a share, largest bias and largest variance of a label.
    noisy_label_loss : float
        Expected loss of a label under the prior. For names, the probability that one changes.
    relative_loss : float, optional
        Objective of a release by groups, as a share of that of one mechanism for all rows.
    mechanisms : mapping of str to Mechanism
        Mechanism of each group by the group's name, a JSON list of its values. Some may be the same.
    table : TableFile, optional
        None for a release in memory.

    Examples
    --------
    >>> import optrand
    >>> noisy, record = optrand.randomize(np.arange(3000) % 4, 1.0, labels=range(4))
    >>> record.epsilon, record.parts.prior, record.estimates.histogram
    (1.0, 0.03651483716701107, True)
    >>> optrand.certify(record.mechanism).epsilon <= record.parts.labels
    True
    """

    release: str
    dataset: str | None
    column: str
    epsilon: float
    parts: BudgetSplit
    realised_epsilon: float
    rows: int
    labels: tuple[Any, ...]
    task: Task
    nulls: Nulls
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    prior: str
    randomizer: str
    noisy_counts: tuple[int, ...] | None
    estimates: Estimates
    gap: float
    bias: float
    variance: float
    noisy_label_loss: float
    relative_loss: float | None
    table: TableFile | None
    mechanisms: Mapping[str, Mechanism] = field(repr=False)

    def __post_init__(self) -> None:
        """Check that all fields fit together."""
        numbers = (self.epsilon, self.realised_epsilon, self.gap, self.bias, self.variance, self.noisy_label_loss)
        if any(type(number) is not float for number in (*numbers, *vars(self.parts).values())):
            raise InvalidInput("a figure is not a number with a point or an exponent")
        if not re.fullmatch(r"[0-9a-f]{32}", self.release):
            raise InvalidInput("the release is not a UUID: expected 32 hexadecimal digits")
        if self.epsilon != self.parts.total or (self.noisy_counts is not None) != (self.parts.prior > 0):
            raise InvalidInput("the total is not the sum of its parts, or a prior is not the one that was paid for")
        if self.task not in get_args(Task) or self.rows < 1 or not self.labels:
            raise InvalidInput("the record has no rows, no labels or no task")
        if any(not low < high for low, high in pairwise(self.values)) or len(set(self.labels)) < len(self.labels):
            raise InvalidInput("the record has labels that do not increase, or a name twice")
        for each in (self.noisy_counts, self.estimates.counts):
            if each is not None and len(each) != len(self.labels):
                raise InvalidInput("the record does not have one count or error for each label")
        self._check_table()
        self._check_mechanisms()

    def _check_mechanisms(self) -> None:
        for one in self.mechanisms.values():
            if one.epsilon != self.parts.labels or tuple(one.labels.tolist()) != self.values:
                raise InvalidInput("a mechanism of the record is for other labels or another epsilon")
        if not self.mechanisms or any(len(json.loads(name)) != len(self.groups) for name in self.mechanisms):
            raise InvalidInput("a group of the record does not have one value for each of its columns")

    def _check_table(self) -> None:
        if (table := self.table) is None:
            return
        beside = PurePosixPath(table.name).name == table.name and "\\" not in table.name
        if not (beside and re.fullmatch(r"[0-9a-f]{64}", table.sha256)):
            raise InvalidInput("the table is not a name beside the record with a SHA-256")
        if table.rows < self.rows or (table.rows > self.rows and self.nulls != "pass"):
            raise InvalidInput(f"the table has {table.rows} rows and {self.rows} were drawn")

    def __repr__(self) -> str:
        """Return one line: the cost, the number of labels, and the estimates that are possible."""
        spent = f"epsilon {self.epsilon!r} (prior {self.parts.prior!r}, labels {self.parts.labels!r})"
        size = f"{self.rows:,} rows, {len(self.labels):,} labels declared"
        return f"<ReleaseRecord: {spent}, {size}, {self.estimates.words}>"

    @classmethod
    def of(
        cls,
        question: Question,
        groups: Groups,
        sizes: Indices,
        noisy: NDArray[np.int64] | None,
        fits: Sequence[Conditioning],
        relative_loss: float | None,
        *,
        release: str,
        dataset: str | None,
    ) -> ReleaseRecord:
        """Make the record of a release that draws from these mechanisms, without its table."""
        pools, split = pools_of(question, sizes), question.split(int(sizes.sum()))
        rows = np.bincount(pools, sizes, len(fits))
        mechanisms = [fit.mechanism for fit in fits]
        distinct = {id(one): one for one in mechanisms}
        proofs = [prove(question, one) for one in distinct.values()]
        # The prior's part is spent in full, the labels' part as proven for the table that draws.
        spent = decimal_value(split.prior) + max(Fraction(least_reading(proof.epsilon)) for proof in proofs)
        bias = max(proof.bias for proof in proofs)
        losses = np.array([expected_loss(one, bias_penalty=0.0) for one in mechanisms])
        kind = "Mechanism" if len(proofs) == 1 else f"{len(mechanisms)} Mechanisms"
        named = f"{question.randomizer}: " if isinstance(question.randomizer, str) else ""
        low, high = min(one.outputs[0] for one in mechanisms), max(one.outputs[-1] for one in mechanisms)
        return cls(
            release=release,
            dataset=dataset,
            column=question.column,
            epsilon=split.total,
            parts=split,
            # At most the total, which is rounded likewise.
            realised_epsilon=decimal_above(spent) + 0.0,
            rows=int(sizes.sum()),
            labels=tuple(question.labels if question.nominal else question.values.tolist()),
            task="classification" if question.nominal else "regression",
            nulls=question.nulls,
            ids=question.ids,
            groups=question.groups,
            prior=describe_prior(question, groups, noisy),
            randomizer=f"{named}{kind}, {max(one.n for one in mechanisms)} outputs from {low:g} to {high:g}",
            noisy_counts=None if noisy is None else tuple(np.maximum(noisy.sum(axis=0), 0).tolist()),
            estimates=Estimates.of(fits, rows, bias),
            gap=max(proof.gap for proof in proofs),
            bias=bias,
            variance=max(float(one.table.variances.max()) for one in mechanisms),
            noisy_label_loss=float(rows @ losses / rows.sum()),
            relative_loss=relative_loss,
            table=None,
            mechanisms={name: mechanisms[pool] for name, pool in zip(groups.names, pools.tolist(), strict=True)},
        )

    @property
    def values(self) -> tuple[float, ...]:
        """Declared labels as numbers: names by their indices, 0, 1, ..."""
        return self.labels if self.task == "regression" else tuple(map(float, range(len(self.labels))))

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism that drew the labels. Raise InvalidInput if groups have different ones."""
        if len(self.distinct) > 1:
            raise InvalidInput(
                f"the release is by groups of {', '.join(self.groups)}, each with a mechanism of its own: take one of "
                "mechanisms"
            )
        return self.distinct[0]

    @cached_property
    def distinct(self) -> list[Mechanism]:
        """Mechanisms without repetition."""
        return list({one.digest: one for one in self.mechanisms.values()}.values())

    @cached_property
    def places(self) -> Indices:
        """Index of each group's mechanism among the distinct ones."""
        digests = [one.digest for one in self.distinct]
        return np.array([digests.index(one.digest) for one in self.mechanisms.values()], dtype=np.intp)

    def label_keys(self, master_key: bytes) -> tuple[bytes, ...]:
        """Return the key of the labels of each distinct mechanism."""
        names = {"release": self.release, "dataset": self.dataset or "", "column": self.column, "purpose": "labels"}
        return tuple(subkey(master_key, **names, mechanism=one.digest) for one in self.distinct)

    def draw(self, keys: Sequence[bytes], places: Places, ids: Ids, groups: Indices) -> Floats:
        """Draw for records with these label places, ids and groups, by a keyed function. Missing labels become 0."""
        streams = [RecordStreams(key, private=True) for key in keys]
        values = np.array(self.values)
        if len(streams) == 1 and places.min(initial=0) >= 0:
            return self.distinct[0].sample_records(values[places], ids, streams[0])
        noisy = np.zeros(places.size)
        chosen = np.where(places >= 0, self.places[groups], -1)
        for number, (mechanism, stream) in enumerate(zip(self.distinct, streams, strict=True)):
            rows = np.flatnonzero(chosen == number)
            if rows.size:
                noisy[rows] = mechanism.sample_records(values[places[rows]], np.take(ids, rows, axis=0), stream)
        return noisy

    def by_row(self, released: ArrayLike, groups: Any = None) -> tuple[list[Mechanism], NDArray[np.intp], Floats]:
        """Return the mechanisms, the index of each row's, and the rows' outputs: see :class:`.Released`."""
        values: Floats = rectangular(self.numbers(released), "released values", np.float64).ravel()
        if not self.groups:
            refuse_groups(groups)
            return self.distinct, np.zeros(values.size, dtype=np.intp), values
        codes = Groups(self.groups, tuple(self.mechanisms)).codes_of(groups, values.size)
        return self.distinct, self.places[codes], values

    def numbers(self, released: ArrayLike) -> ArrayLike:
        """Return released numbers, NaN for a missing one, and names as their places. Refuse an undeclared name."""
        if self.task == "regression" and type(released) is np.ndarray and released.dtype != object:
            return released
        if is_frame(released):
            raise InvalidInput(f"released is a {type(released).__name__}: pass its column, frame[{self.column!r}]")
        column = arrow_column(released)
        if pa.types.is_string(column.type):
            # Most readers of CSV turn empty text into a missing label, others keep it.
            column = pc.if_else(pc.equal(column, ""), None, column)
        return self.reader(column.type).numbers(column).reshape(np.shape(released))

    def reader(self, kind: Any, decimal: str | None = None) -> LabelColumn:
        """Return a reader of released labels, of an Arrow type or of text with a decimal point."""
        question = Question(
            column=self.column, labels=self.labels, task=self.task, epsilon=self.epsilon, nulls=self.nulls
        )
        return LabelColumn(question, kind, decimal)

    def is_of(self, path: Path) -> bool:
        """Decide whether a file or folder is the released table, byte by byte."""
        return self.table is not None and path.exists() and digest_of(path) == self.table.sha256

    def verify_table(self, path: str | os.PathLike[str]) -> None:
        """Refuse a table, a file or a folder, that is not the released one, byte by byte.

        Raises
        ------
        InvalidFile
            The table has another SHA-256.
        InvalidInput
            There is no such table, or the record is of a release in memory.
        """
        if self.table is None:
            raise InvalidInput("the record is of a release in memory: there is no file to compare with")
        if not Path(path).exists():
            raise InvalidInput(f"{path} is {missing(Path(path))}: expected the released table")
        if not self.is_of(Path(path)):
            raise InvalidFile(
                f"{path} is not the table of this release, byte by byte: its SHA-256 is another one. Some of "
                "its rows, or a table that was written again, are taken by optrand.estimate in Python"
            )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the record, whole or not at all, with the errors of :func:`~optrand.base._files.write_atomically`."""
        write_atomically(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the content of the file, one field on each line."""
        return _lines(_strict_json.seal(self._document(), kind=FORMAT))

    def _document(self) -> dict[str, Any]:
        document = {name: getattr(self, name) for name in FIELDS}
        return {
            **document,
            **{name: asdict(document[name]) for name in PARTS if document[name] is not None},
            "gap": self.gap if math.isfinite(self.gap) else None,
            "mechanisms": [one._document for one in self.distinct],
            # Pairs, since an object is sorted and would lose their order.
            "mechanism_of_group": list(map(list, zip(self.mechanisms, self.places.tolist(), strict=True))),
        }

    @classmethod
    def from_bytes(cls, data: bytes) -> ReleaseRecord:
        """Read the output of :meth:`to_bytes`, and verify it, with the errors of :func:`load_release`."""
        return _read(_strict_json.unseal(data, [*FIELDS, "mechanism_of_group"], kind=FORMAT))


PARTS: dict[str, Any] = {"parts": BudgetSplit, "estimates": Estimates, "table": TableFile}
"""Fields that are records themselves."""

FIELDS = tuple(ReleaseRecord.__dataclass_fields__)


@dataclass(frozen=True)
class FrameRecord(Mapping[Hashable, ReleaseRecord]):
    """Records of several columns of one frame, whose costs add up.

    Attributes
    ----------
    columns : mapping of column to ReleaseRecord
    """

    FORMAT: ClassVar[str] = "optrand.releases"
    columns: Mapping[Hashable, ReleaseRecord]

    @property
    def epsilon(self) -> float:
        """Total in nats: the exact sum over the columns, rounded up."""
        parts = [decimal_value(part) for one in self.columns.values() for part in vars(one.parts).values()]
        return decimal_above(sum(parts, Fraction(0)))

    def __getitem__(self, column: Hashable) -> ReleaseRecord:
        """Return the record of one column."""
        return self.columns[column]

    def __iter__(self) -> Iterator[Hashable]:
        """Return an iterator over the columns."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the records, whole or not at all. :func:`load_release` reads them."""
        document = {"records": [one._document() for one in self.columns.values()]}
        write_atomically(path, _lines(_strict_json.seal(document, kind=self.FORMAT)), overwrite=overwrite)


def digest_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, or for a folder of the output of ``sha256sum`` on its files, sorted by path."""
    target = Path(path)
    if target.is_dir():
        below = sorted(file for file in target.rglob("*") if file.is_file())
        lines = "".join(f"{digest_of(file)}  {file.relative_to(target).as_posix()}\n" for file in below)
        return hashlib.sha256(os.fsencode(lines)).hexdigest()
    with target.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_release(path: str | os.PathLike[str]) -> Any:
    """Read the record of a release and verify it, its mechanisms included.

    Returns
    -------
    ReleaseRecord or FrameRecord

    Raises
    ------
    InvalidInput
        There is no such file.
    InvalidFile
        The file is damaged, edited or of a newer optrand, its parts do not add up, or a mechanism is not private.

    Examples
    --------
    >>> import optrand, tempfile
    >>> noisy, record = optrand.randomize([0, 1, 1] * 100, 1.0, labels=[0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record.save(f"{folder}/noisy.release.json")
    ...     load_release(f"{folder}/noisy.release.json") == record
    True
    """
    expect(path, (str, os.PathLike), "path", "the path of the record of a release")
    file = Path(path)
    if not file.is_file():
        raise InvalidInput(f"{file} is {missing(file)}: expected the record of a release")
    data = file.read_bytes()
    if _strict_json.read_format(data) == FrameRecord.FORMAT:
        content = _strict_json.unseal(data, ["records"], kind=FrameRecord.FORMAT)
        records = [_read(one) for one in content["records"]]
        return FrameRecord({one.column: one for one in records})
    return ReleaseRecord.from_bytes(data)


def _read(content: Any) -> ReleaseRecord:
    try:
        mechanisms = [Mechanism.from_bytes(_strict_json.canonical(one)) for one in content["mechanisms"]]
        fields = _with_tuples({name: value for name, value in content.items() if name != "mechanism_of_group"})
        for name, kind in PARTS.items():
            fields[name] = None if content[name] is None else kind(**_with_tuples(content[name]))
        fields["gap"] = math.inf if content["gap"] is None else content["gap"]
        fields["mechanisms"] = {name: mechanisms[place] for name, place in content["mechanism_of_group"]}
        record = ReleaseRecord(**fields)
        # The record must encode to the same bytes: then no field is unknown or of another type.
        if _strict_json.canonical(record._document()) != _strict_json.canonical(content):
            raise TypeError
    except InvalidFile:
        raise
    except InvalidInput as error:
        raise InvalidFile(f"the file is not a record of a release: {error}") from error
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InvalidFile("the file is not a record of a release: a field is of another type than expected") from error
    return record


def _lines(sealed: dict[str, Any]) -> bytes:
    """Return the canonical bytes with line ends between fields, which the digest does not cover."""
    lines = (_strict_json.canonical({name: sealed[name]}).decode().strip()[1:-1] for name in sorted(sealed))
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _with_tuples(content: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
