"""Record ids of rows, and their public groups.

Ids have 128 bits. Two records of one id would share their noise, so ids are checked to be unique, with few of them in
memory at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.errors import InputChanged, InvalidInput
from optrand.release._cells import arrow_column, as_arrow, as_numpy, as_table, contents, is_bytes, is_frame, plain
from optrand.sampling._entropy import encrypt_blocks

Ids = NDArray[np.uint64]
"""Shape ``(rows, 2)``: an integer in two's complement and 0, or the two halves of a hash."""

Indices = NDArray[np.intp]


def column_ids(columns: Sequence[Any], names: Sequence[str], *, key: bytes) -> Ids:
    """Return the ids of the records that the cells of these columns identify together.

    Text of an integer of up to 18 digits stands for it: ``7``, not ``007``. The key, of at most 64 bytes, is
    that of the hash to 127 bits of all other cells.
    """
    found = [_ids(column, name, key) for column, name in zip(columns, names, strict=True)]
    if len(found) == 1:
        return found[0]
    rows = np.ascontiguousarray(np.hstack(found), dtype="<u8").view(np.uint8)
    return _hashes(rows.ravel(), np.arange(len(rows) + 1) * rows.shape[1], key)


def _ids(column: Any, name: str, key: bytes) -> Ids:
    column = plain(column)
    if column.null_count:
        raise InvalidInput(f"at least one record id in column {name!r} is missing: every row needs one")
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        kind = column.type
    if pa.types.is_integer(kind):
        integers = as_numpy(column)
        wide = integers if integers.dtype == np.uint64 else integers.astype(np.int64).view(np.uint64)
        return integer_ids(wide)
    if not (is_bytes(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise InvalidInput(f"column {name!r} is of type {kind}, expected integers, text, UUIDs or dates as record ids")
    if pa.types.is_fixed_size_binary(kind):
        return _hashes(*contents(column), key)
    return _text_ids(column.cast(pa.large_binary()), key)


def integer_ids(values: NDArray[np.uint64]) -> Ids:
    ids = np.zeros((values.size, 2), dtype=np.uint64)
    ids[:, 0] = values
    return ids


def _text_ids(column: Any, key: bytes) -> Ids:
    data, places = contents(column)
    first = np.append(data, np.uint8(0))[places[:-1]]
    # Few other texts begin like an integer, and the pattern takes as long as the hash.
    whole = (first == ord("-")) | ((first >= ord("0")) & (first <= ord("9")))
    if whole.any():
        # Only the canonical text of an integer of 64 bits counts.
        written = pc.match_substring_regex(column.filter(as_arrow(whole)), r"^(0|-?[1-9][0-9]{0,17})$")
        whole[whole] = as_numpy(written)
    if not whole.any():
        return _hashes(data, places, key)
    integers = as_numpy(column.filter(as_arrow(whole)).cast(pa.string()).cast(pa.int64()))
    ids = np.empty((len(column), 2), dtype=np.uint64)
    ids[whole] = integer_ids(integers.view(np.uint64))
    if not whole.all():
        ids[~whole] = _hashes(*contents(column.filter(as_arrow(~whole))), key)
    return ids


def _hashes(data: NDArray[np.uint8], places: NDArray[np.int64], key: bytes) -> Ids:
    """Return keyed hashes of the pieces of some bytes between neighbouring offsets.

    A piece is hashed by its CBC-MAC of AES-256. Its length is the first block, so that no piece is the beginning of
    another, as a CBC-MAC needs. Pieces of more than 1024 bytes are hashed by BLAKE2b.
    """
    own, lengths = hmac.digest(key, b"texts", "sha256"), np.diff(places)
    hashes = encrypt_blocks(own, integer_ids(lengths.astype(np.uint64)))
    padded = np.append(data, np.zeros(16, dtype=np.uint8))
    # The word that begins at each byte, and masks of its first 0 to 8 bytes.
    words = np.ndarray(padded.size - 7, dtype="<u8", buffer=padded, strides=(1,))
    masks = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
    # All pieces at once, block by block: a call for each piece would take many times as long.
    short = np.where(lengths > 1024, 0, lengths)
    for start in range(0, int(short.max(initial=0)), 16):
        rows = np.flatnonzero(short > start)
        blocks = np.take(hashes, rows, axis=0)
        for half, begin in enumerate((start, start + 8)):
            blocks[:, half] ^= words[places[rows] + begin] & masks[np.clip(short[rows] - begin, 0, 8)]
        hashes[rows] = encrypt_blocks(own, blocks)
    for row in np.flatnonzero(lengths > 1024).tolist():
        piece = data[places[row] : places[row + 1]].tobytes()
        hashes[row] = np.frombuffer(hashlib.blake2b(piece, digest_size=16, key=key).digest(), dtype="<u8")
    # The highest bit marks a hash, not an integer.
    hashes[:, 1] |= np.uint64(1 << 63)
    return hashes


@dataclass(frozen=True)
class Groups:
    """Partition of a table by public columns. Without columns there is one group.

    A group's name is the JSON list of its values. A missing value is null.
    """

    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ("[]",)

    @classmethod
    def among(cls, columns: tuple[str, ...], batches: Iterable[Any]) -> Groups:
        """Find the groups of some batches, in an order independent of that of rows."""
        found: set[str] = set()
        for batch in batches:
            found.update(_distinct_names(columns, batch)[0])
        order = sorted(found, key=lambda name: [(value is not None, value or "") for value in json.loads(name)])
        return cls(columns, tuple(order))

    def codes(self, batch: Any) -> Indices:
        """Return the index of the group of each row."""
        if not self.columns:
            return np.zeros(batch.num_rows, dtype=np.intp)
        names, codes = _distinct_names(self.columns, batch)
        places = {name: place for place, name in enumerate(self.names)}
        if any(name not in places for name in names):
            raise InputChanged("the table holds another group of rows than when it was first read: start again")
        return np.array([places[name] for name in names], dtype=np.intp)[codes]

    def codes_of(self, given: Any, rows: int) -> Indices:
        """Return the index of the group of each released row.

        Their columns are passed as a frame, a mapping by name, or the one column itself.
        """
        columns = _columns_of(given, self.columns)
        missing = [name for name in self.columns if name not in columns]
        if missing:
            raise InvalidInput(f"groups are missing for {', '.join(missing)}: pass a column for each")
        arrays = [plain(columns[name]) for name in self.columns]
        if any(len(array) != rows for array in arrays):
            raise InvalidInput(f"groups are of another number of rows than the {rows} released values")
        try:
            return self.codes(pa.RecordBatch.from_arrays(arrays, names=list(self.columns)))
        except InputChanged:
            raise InvalidInput(
                "at least one row is of a group that the release does not have: pass the columns as they were released"
            ) from None


def _columns_of(given: Any, columns: tuple[str, ...]) -> Mapping[str, Any]:
    if given is None:
        raise InvalidInput(f"the release is by groups of {', '.join(columns)}: pass their columns, groups=...")
    if isinstance(given, Mapping):
        return {name: arrow_column(column) for name, column in given.items()}
    if is_frame(given):
        table = as_table(given)
        return {name: table.column(name) for name in columns if name in table.schema.names}
    if len(columns) > 1:
        raise InvalidInput(f"groups are made by {len(columns)} columns: pass a frame, or a mapping of their names")
    return {columns[0]: arrow_column(given)}


def _distinct_names(columns: tuple[str, ...], batch: Any) -> tuple[list[str], Indices]:
    """Return the names of the groups of a batch, and the index of each row's."""
    values = [_as_json(batch.column(name), name) for name in columns]
    encoded = pc.binary_join_element_wise(*values, ", ").dictionary_encode()
    names = [f"[{name}]" for name in encoded.dictionary.to_pylist()]
    return names, as_numpy(encoded.indices).astype(np.intp)


def _as_json(cells: Any, name: str) -> Any:
    """Return cells as JSON texts, ``null`` for a missing one."""
    column = plain(cells)
    if pa.types.is_nested(column.type):
        raise InvalidInput(f"column {name!r} is of type {column.type}, which has no values to group by")
    encoded = column.dictionary_encode(null_encoding="encode")
    texts = [json.dumps(value, ensure_ascii=False) for value in _group_texts(encoded.dictionary, name)]
    return pa.array(texts, pa.string()).take(encoded.indices)


def as_group_texts(cells: Any, name: str) -> Any:
    """Return cells as the texts that the names of their groups hold, null for a missing one."""
    encoded = plain(cells).dictionary_encode()
    return pa.array(_group_texts(encoded.dictionary, name), pa.string()).take(encoded.indices)


def _group_texts(values: Any, name: str) -> list[str | None]:
    try:
        texts: list[str | None] = values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        raise InvalidInput(f"at least one cell of column {name!r} is not a text or number to group by") from None
    if pa.types.is_floating(values.type):
        # As integers, which missing cells turn into floats.
        texts = [None if text is None else text.removesuffix(".0") for text in texts]
    return texts


class UniqueIds:
    """Check that no id occurs twice, in about ten megabytes of memory for any number of ids.

    Runs of consecutive integers are kept as their ends. Other ids are held as products of 64 bits, with secret factors,
    and from `buffered` of them on in 128 temporary files that only the owner can read, each of which is sorted in
    memory: a billion ids leave 62 MB in each. Equal ids have equal products. Different integers never do, and two
    hashes with probability ``2**-64``: of 100 million distinct texts, tables are refused once in 4,000 runs.
    """

    bits = 7

    def __init__(self, folder: Path | None = None, *, buffered: int = 1 << 19) -> None:
        self._folder, self._buffered = folder, buffered
        self._files: list[Any] = []
        self._runs: list[tuple[int, int]] = []
        self._held: list[NDArray[np.uint64]] = []
        self._count = 0
        # An odd factor permutes the integers. It is secret, so that no choice of ids fills a single file.
        self._factors = [secrets.randbits(64) | 1 for _ in range(2)]

    def __enter__(self) -> UniqueIds:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def add(self, ids: Ids) -> None:
        """Add the ids of some rows."""
        if not len(ids):
            return
        first, last = int(ids[0, 0]), int(ids[-1, 0])
        consecutive = last - first == len(ids) - 1 and not ids[:, 1].any() and bool((np.diff(ids[:, 0]) == 1).all())
        # A run with the id -1, which is the greatest of 64 bits, would have no end.
        if consecutive and last < (1 << 64) - 1:
            if self._runs and self._runs[-1][1] == first:
                self._runs[-1] = self._runs[-1][0], last + 1
                return
            # Many short runs would take as much memory as a list of all ids.
            if len(ids) >= 64 or not self._runs:
                self._runs.append((first, last + 1))
                return
        low, high = (np.uint64(factor) for factor in self._factors)
        self._held.append(ids[:, 0] * low + ids[:, 1] * high)
        self._count += len(ids)
        if self._count >= self._buffered:
            self._spill()

    def _spill(self) -> None:
        if not self._files:
            self._files = [tempfile.TemporaryFile(dir=self._folder) for _ in range(1 << self.bits)]  # noqa: SIM115
        products = np.concatenate(self._held)
        self._held, self._count = [], 0
        parts = (products >> np.uint64(64 - self.bits)).astype(np.uint8)
        ends = np.cumsum(np.bincount(parts, minlength=1 << self.bits))
        ordered = products[np.argsort(parts, kind="stable")]
        for file, part in zip(self._files, np.split(ordered, ends[:-1]), strict=True):
            file.write(part.data)

    def check(self) -> None:
        """Compare all ids that were added."""
        runs = np.array(sorted(self._runs), dtype=np.uint64).reshape(-1, 2)
        if (runs[1:, 0] < runs[:-1, 1]).any() or any(self._has_repeated(part, runs) for part in self._parts()):
            raise InvalidInput("at least two records have the same id: ids must be unique over the whole table")

    def _parts(self) -> Iterator[NDArray[np.uint64]]:
        if self._held and not self._files:
            yield np.concatenate(self._held)
        elif self._held:
            self._spill()
        for file in self._files:
            file.seek(0)
            yield np.frombuffer(file.read(), dtype=np.uint64)

    def _has_repeated(self, products: NDArray[np.uint64], runs: NDArray[np.uint64]) -> bool:
        ordered = np.sort(products)
        if (ordered[1:] == ordered[:-1]).any():
            return True
        if not len(runs):
            return False
        integers = products * np.uint64(pow(self._factors[0], -1, 1 << 64))
        at = np.searchsorted(runs[:, 0], integers, side="right").astype(np.intp) - 1
        return bool(((at >= 0) & (integers < runs[at, 1])).any())
