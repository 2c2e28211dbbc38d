"""Record ids: 128 bits for each row of a table, unique over all of it, and a digest of rows in their order.

Two records of one id would share their noise: the check is exact, and holds few of the ids in memory at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.errors import InvalidInput

__all__ = ["Ids", "RowDigest", "UniqueIds", "column_ids", "row_ids"]

Ids = NDArray[np.uint64]
"""Shape ``(rows, 2)``: an integer in two's complement and 0, or the two halves of a hash."""

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""Texts that write an integer of 64 bits in the one way in which it is written."""

_HASHED = np.uint64(1 << 63)
"""Bit of the second half that tells a hash from an integer."""


def row_ids(first: int, count: int) -> Ids:
    """Ids of rows that have none of their own: their numbers.

    Examples
    --------
    >>> row_ids(5, 2).tolist()
    [[5, 0], [6, 0]]
    """
    return _integers(np.arange(first, first + count, dtype=np.int64))


def column_ids(column: Any, *, name: str, key: bytes) -> Ids:
    """Ids of the cells of a column.

    Parameters
    ----------
    column : pyarrow array
        Integers, text or bytes. Text that writes an integer of up to 18 digits stands for it: ``7``, not ``007``.
    name : str
        Its name, for errors.
    key : bytes
        Up to 64 of them: of the hash, BLAKE2b to 127 bits, of every other text.

    Raises
    ------
    InvalidInput
        A cell is missing, or the column is of another type.

    Examples
    --------
    >>> column_ids(pa.array(["7", "-1"]), name="id", key=b"k").tolist()
    [[7, 0], [18446744073709551615, 0]]
    >>> column_ids(pa.array(["007"]), name="id", key=b"k")[0, 1] >= 2**63
    np.True_
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InvalidInput(f"at least one record id in column {name!r} is missing: every row needs one")
    kind = column.type
    if pa.types.is_integer(kind):
        integers: NDArray[Any] = np.from_dlpack(column)
        if integers.dtype == np.uint64:
            return _wide(integers, name)
        return _integers(integers.astype(np.int64, copy=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    elif not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)):
        raise InvalidInput(f"column {name!r} is of type {kind}, expected integers, text or bytes as record ids")
    return _text_ids(column, key)


def _integers(values: NDArray[np.int64]) -> Ids:
    ids = np.zeros((values.size, 2), dtype=np.uint64)
    ids[:, 0] = values.view(np.uint64)
    return ids


def _wide(values: NDArray[np.uint64], name: str) -> Ids:
    if values.size and values.max() >= _HASHED:
        raise InvalidInput(f"column {name!r} holds integers of 2**63 or more, expected smaller ones as record ids")
    return _integers(values.astype(np.int64))


def _text_ids(column: Any, key: bytes) -> Ids:
    if pa.types.is_fixed_size_binary(column.type):
        whole = np.zeros(len(column), dtype=np.bool_)
    else:
        whole = pc.match_substring_regex(column, _WHOLE).to_numpy(zero_copy_only=False)
    if whole.all():
        return _integers(column.cast(pa.string()).cast(pa.int64()).to_numpy(zero_copy_only=False))
    ids = np.empty((len(column), 2), dtype=np.uint64)
    texts = column.filter(pa.array(~whole)).to_pylist()
    start = hashlib.blake2b(key=key, digest_size=16)
    hashes = bytearray()
    for text in texts:
        one = start.copy()
        one.update(text)
        hashes += one.digest()
    ids[~whole] = np.frombuffer(bytes(hashes), dtype="<u8").reshape(-1, 2)
    ids[~whole, 1] |= _HASHED
    if whole.any():
        integers = column.filter(pa.array(whole)).cast(pa.string()).cast(pa.int64())
        ids[whole] = _integers(integers.to_numpy(zero_copy_only=False))
    return ids


class RowDigest:
    """Keyed digest of the rows of a table in their order, however they are cut into batches.

    Parameters
    ----------
    key : bytes
        Secret: a plain digest would let others test guesses of the labels.

    Examples
    --------
    >>> whole, halves = RowDigest(b"k"), RowDigest(b"k")
    >>> places = np.array([2, -1], dtype=np.int32)
    >>> whole.add(row_ids(0, 2), places)
    >>> halves.add(row_ids(0, 1), places[:1]), halves.add(row_ids(1, 1), places[1:])
    (None, None)
    >>> whole.hexdigest() == halves.hexdigest()
    True
    """

    def __init__(self, key: bytes) -> None:
        self._key, self.rows = key, 0
        self._ids = hmac.new(key, b"ids", "sha256")
        self._halves = hmac.new(key, b"second halves", "sha256")
        self._places = hmac.new(key, b"places", "sha256")
        self._groups: hmac.HMAC | None = None

    def add(self, ids: Ids, places: NDArray[np.int32], groups: NDArray[np.intp] | None = None) -> None:
        """Append rows: their ids, the places of their labels, -1 for one that is missing, and their groups, if any."""
        if groups is not None:
            self._groups = self._groups or hmac.new(self._key, b"groups", "sha256")
            self._groups.update(np.ascontiguousarray(groups, dtype=np.int64).data)
        self._ids.update(ids[:, 0].tobytes())
        # Most ids are integers: only the others have a second half.
        hashed = np.flatnonzero(ids[:, 1])
        if hashed.size:
            rows = (hashed + self.rows).astype(np.uint64)
            self._halves.update(np.column_stack((rows, ids[hashed, 1])).tobytes())
        self.rows += places.size
        self._places.update(np.ascontiguousarray(places, dtype=np.int32).data)

    def hexdigest(self) -> str:
        """Digest of all rows so far."""
        parts = self._ids.digest() + self._halves.digest() + self._places.digest() + self.rows.to_bytes(8, "little")
        if self._groups is not None:
            parts += self._groups.digest()
        return hmac.new(self._key, b"rows" + parts, "sha256").hexdigest()


PARTITIONS = 256
BUFFERED = 1 << 18
"""Ids held before they are written out by their partitions."""


class UniqueIds:
    """Exact check that no id occurs twice, in memory of some ten megabytes for any number of ids.

    Runs of consecutive integers are kept as their ends. All others are hashed into 256 parts of a temporary file that
    has no name and that only its owner can read; each part is sorted in memory.

    Parameters
    ----------
    folder : path, optional
        For the temporary file, 8 bytes for an integer and 16 for another id; the system's by default.

    Examples
    --------
    >>> with UniqueIds() as ids:
    ...     ids.add(row_ids(0, 10))
    ...     ids.add(row_ids(9, 1))
    ...     ids.check()
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: at least two records have the same id: ids must be unique over the whole table
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: Any = None
        self._runs: list[tuple[int, int]] = []
        self._held: list[Ids] = []
        self._count = 0
        self._spills: list[tuple[int, int, NDArray[np.intp]]] = []
        # Secret factors, so that no choice of ids fills one part alone.
        self._factors = [np.uint64(secrets.randbits(64) | 1) for _ in range(2)]

    def __enter__(self) -> UniqueIds:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, ids: Ids) -> None:
        """Add the ids of some rows."""
        if not len(ids):
            return
        first, last = int(ids[0, 0]), int(ids[-1, 0])
        if last - first == len(ids) - 1 and not ids[:, 1].any() and bool((np.diff(ids[:, 0]) == 1).all()):
            self._add_run(first, last + 1)
            return
        self._held.append(np.array(ids))
        self._count += len(ids)
        if self._count >= BUFFERED:
            self._spill()

    def _add_run(self, start: int, stop: int) -> None:
        if self._runs and self._runs[-1][1] == start:
            self._runs[-1] = self._runs[-1][0], stop
        elif stop - start >= 64 or not self._runs:
            self._runs.append((start, stop))
        else:
            # Many short runs would be a list of all ids.
            self._held.append(_integers(np.arange(start, stop, dtype=np.uint64).view(np.int64)))
            self._count += stop - start
            if self._count >= BUFFERED:
                self._spill()

    def _spill(self) -> None:
        ids = np.concatenate(self._held)
        self._held, self._count = [], 0
        if self._file is None:
            # Without a name from the beginning where the system can, else from right after; mode 0600.
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        wide = bool(ids[:, 1].any())
        kept = ids if wide else np.ascontiguousarray(ids[:, 0])
        parts = self._parts(ids)
        order = np.argsort(parts, kind="stable")
        bounds = np.searchsorted(parts[order], np.arange(PARTITIONS + 1))
        ordered = kept[order]
        offset, width = self._file.seek(0, os.SEEK_END), 16 if wide else 8
        data = ordered.data.cast("B")
        while data:
            data = data[self._file.write(data) :]
        self._spills.append((offset, width, bounds))

    def _parts(self, ids: Ids) -> NDArray[np.uint8]:
        # Multiply and shift: any two ids share a part with probability 2 / PARTITIONS at most.
        mixed = ids[:, 0] * self._factors[0]
        if ids[:, 1].any():
            mixed += ids[:, 1] * self._factors[1]
        parts: NDArray[np.uint8] = (mixed >> np.uint64(56)).astype(np.uint8)
        return parts

    def check(self) -> None:
        """Compare all ids that were added.

        Raises
        ------
        InvalidInput
            At least one occurs twice: neither which nor how often is said.
        OSError
            The temporary file cannot be written or read.
        """
        runs = np.array(sorted(self._runs), dtype=np.uint64).reshape(-1, 2)
        if (runs[1:, 0] < runs[:-1, 1]).any():
            raise _repeated()
        if self._file is None:
            parts = iter([np.concatenate(self._held)] if self._held else [])
        else:
            if self._held:
                self._spill()
            parts = (self._read(part) for part in range(PARTITIONS))
        for ids in parts:
            _check_part(ids, runs)

    def _read(self, part: int) -> Ids | NDArray[np.uint64]:
        """Ids of one part; of integers alone, shape ``(rows,)``, their first halves."""
        pieces = []
        for offset, width, bounds in self._spills:
            low, high = int(bounds[part]), int(bounds[part + 1])
            size = (high - low) * width
            data = os.pread(self._file.fileno(), size, offset + low * width)
            if len(data) != size:
                raise OSError(f"the temporary file of record ids is {size - len(data)} bytes short")
            read = np.frombuffer(data, dtype=np.uint64)
            pieces.append(read.reshape(-1, 2) if width == 16 else read)
        if any(piece.ndim == 2 for piece in pieces):
            pieces = [piece if piece.ndim == 2 else _integers(piece.view(np.int64)) for piece in pieces]
        return np.concatenate(pieces)


def _check_part(ids: Ids | NDArray[np.uint64], runs: Ids) -> None:
    low = np.sort(ids if ids.ndim == 1 else ids[:, 0])
    twice = low[1:][low[1:] == low[:-1]]
    if twice.size:
        # Halves of hashes may agree by chance.
        among = ids[np.isin(ids if ids.ndim == 1 else ids[:, 0], twice)]
        if len(np.unique(among, axis=0)) < len(among):
            raise _repeated()
    if len(runs) and len(ids):
        whole = ids if ids.ndim == 1 else ids[ids[:, 1] == 0, 0]
        at = np.searchsorted(runs[:, 0], whole, side="right").astype(np.intp) - 1
        if ((at >= 0) & (whole < runs[at, 1])).any():
            raise _repeated()


def _repeated() -> InvalidInput:
    return InvalidInput("at least two records have the same id: ids must be unique over the whole table")
