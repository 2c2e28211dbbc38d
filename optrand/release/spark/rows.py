"""Digest of the rows of a table in any order and any partition, for engines that keep neither."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from optrand.release.ids import Ids

__all__ = ["HASH_BYTES", "RowSums", "digest_rows"]

HASH_BYTES = 16
"""Of a row's keyed hash; sums have as many bytes."""


@dataclass(frozen=True)
class RowSums:
    """Sums of keyed hashes of rows, a multiset hash: equal sums mean equal rows, but for one case in 2**128.

    Attributes
    ----------
    rows : int
    ids, labels : (2,) arrays of uint64
        Sums, modulo 2**64 each half, of the hashes of ids, and of ids with the places of their labels.

    Notes
    -----
    An id is hashed by AES-256, which is a pseudorandom permutation, and a row by its CBC-MAC of two blocks, the id and
    the place, under another key. Where tables differ and ids occur once in each, the difference of sums contains a hash
    with factor 1 or -1, which is uniform for whoever does not have the key.
    """

    rows: int
    ids: NDArray[np.uint64]
    labels: NDArray[np.uint64]

    @classmethod
    def none(cls) -> Self:
        """Sums of no rows."""
        return cls(0, np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.uint64))

    @classmethod
    def of(cls, key: bytes, ids: Ids, places: NDArray[np.int32] | None = None) -> Self:
        """Sums of some rows.

        Parameters
        ----------
        key : bytes
            32 of them, secret.
        ids : (rows, 2) array
        places : (rows,) array, optional
            Of the labels in the declared set, -1 for one that is missing; only ids are summed by default.
        """
        first = _encrypted(key, b"ids", ids)
        if places is None:
            return cls(len(ids), first.sum(axis=0, dtype=np.uint64), np.zeros(2, dtype=np.uint64))
        second = _encrypted(key, b"rows", ids)
        second[:, 0] ^= places.astype(np.int64).view(np.uint64)
        second = _encrypted(key, b"rows", second)
        return cls(len(ids), first.sum(axis=0, dtype=np.uint64), second.sum(axis=0, dtype=np.uint64))

    def __add__(self, other: RowSums) -> RowSums:
        return RowSums(self.rows + other.rows, self.ids + other.ids, self.labels + other.labels)

    def to_bytes(self) -> bytes:
        """Both sums, little-endian."""
        return self.ids.astype("<u8").tobytes() + self.labels.astype("<u8").tobytes()

    @classmethod
    def from_bytes(cls, rows: int, content: bytes) -> Self:
        """Sums from :meth:`to_bytes`."""
        sums = np.frombuffer(content, dtype="<u8").astype(np.uint64)
        return cls(rows, sums[:2], sums[2:])


def digest_rows(key: bytes, sums: RowSums) -> str:
    """Digest of all rows of a table, in hexadecimal.

    Examples
    --------
    >>> from optrand.release.ids import row_ids
    >>> places = np.array([2, 0, -1], dtype=np.int32)
    >>> whole = RowSums.of(bytes(32), row_ids(0, 3), places)
    >>> parts = [RowSums.of(bytes(32), row_ids(i, 1), places[i : i + 1]) for i in (2, 0, 1)]
    >>> digest_rows(bytes(32), whole) == digest_rows(bytes(32), sum(parts, RowSums.none()))
    True
    """
    content = b"sums of rows" + sums.rows.to_bytes(8, "little") + sums.to_bytes()
    return hmac.digest(key, content, "sha256").hex()


def _encrypted(key: bytes, purpose: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Blocks of 128 bits, each encrypted by itself."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # One block an input and no chaining: the cipher itself, a function of the block alone.
    cipher = Cipher(algorithms.AES(hmac.digest(key, purpose, "sha256")), modes.ECB())  # noqa: S305
    encrypted = cipher.encryptor().update(np.ascontiguousarray(blocks, dtype="<u8").tobytes())
    return np.frombuffer(encrypted, dtype="<u8").astype(np.uint64).reshape(-1, 2)
