"""Random words that a key and the id of a record determine: a draw can be repeated, but only with the key.

A release that is killed and resumed, retried or partitioned otherwise must not draw twice: two noisy labels of one
record reveal more than one. Here the words of a record are a pseudorandom function of its id, so that it has one draw,
whenever and wherever it is computed. Privacy is then computational. The proof is in ``docs/mathematics.md``.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import check_flag
from optrand.errors import InvalidInput, missing_extra
from optrand.sampling._entropy import EntropySource, Words

KEY_BYTES = 32
"""Length of every key: AES-256, and the output of SHA-256."""


def subkey(
    master: bytes, *, release: str, dataset: str, column: str, purpose: str, group: str = "", mechanism: str = ""
) -> bytes:
    """Return the key for one purpose, by HKDF-SHA256 of a master key, independent of the keys for all others.

    `release` is its UUID, `purpose` is "prior" or "labels", `group` one of records with a mechanism of their own, and
    `mechanism` the digest of the mechanism that draws.
    """
    return _derive(master, release, dataset, column, purpose, group, mechanism)


def _derive(key: bytes, *fields: str) -> bytes:
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from error
    # The first field names the version of this scheme: under one version, the draws of one key never change.
    version = b"optrand keyed 1"
    try:
        encoded = [version, *(field.encode("utf-8") for field in fields)]
    except UnicodeEncodeError:
        raise InvalidInput("a name that a key is derived for is no valid Unicode text: rename it") from None
    # With the lengths before them no two lists of fields give the same bytes.
    info = b"".join(struct.pack("<Q", len(field)) + field for field in encoded)
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(check_key(key))


def check_key(key: object) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        size = f"{len(key)} bytes" if isinstance(key, bytes) else f"of type {type(key).__name__}"
        raise InvalidInput(f"the key is {size}, expected {KEY_BYTES} bytes, such as os.urandom({KEY_BYTES})")
    return key


class KeyedEntropy:
    """Words of 64 bits that a key determines: AES-256 in counter mode, from block 0.

    Parameters
    ----------
    key : bytes
        32 bytes, used for nothing else: two objects of one key return the same words.
    private : bool
        Whether nobody else can know the key. False by default: the owner of a key states it.

    Notes
    -----
    Threads share one counter. A fork would copy it, so the child raises instead of repeating words.

    Examples
    --------
    >>> KeyedEntropy(bytes(32)).words(2).tolist() == KeyedEntropy(bytes(32)).words(2).tolist()
    True
    """

    width: ClassVar[int] = 64

    def __init__(self, key: bytes, *, private: bool = False) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from error
        self.private = check_flag(private, "private")
        self._process = os.getpid()
        self._lock = threading.Lock()
        # A key serves one stream, so that the counter may start anywhere.
        self._stream = Cipher(
            algorithms.AES(check_key(key)), modes.CTR(bytes(algorithms.AES.block_size // 8))
        ).encryptor()

    def words(self, count: int) -> Words:
        """Return the next `count` words of the stream.

        Raises
        ------
        InvalidInput
            In a process other than that which made the object.
        """
        if os.getpid() != self._process:
            raise InvalidInput("a keyed stream was carried into a forked process, which would repeat its words")
        with self._lock:
            # Zeros in counter mode encrypt to the key stream itself.
            stream = self._stream.update(bytes(8 * count))
        return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: the copy would repeat the words."""
        raise _secret()

    def __repr__(self) -> str:
        return f"KeyedEntropy(private={self.private})"


class RecordStreams:
    r"""Pseudorandom function from ids of records to random words.

    Record :math:`i` has the first word :math:`\lfloor \mathrm{AES}_{K}(i) \rfloor_{64}`, and further words from a
    stream of its own, whose key is a keyed hash of :math:`i`.

    Parameters
    ----------
    key : bytes
        32 bytes of :func:`subkey`, for one release, column, group and mechanism.
    private : bool
        Whether nobody else can know the key. False by default: the owner of a key states it.

    Notes
    -----
    Ids are an ``(n, 2)`` array of uint64, the low and the high half of 128 bits. They must be distinct over the whole
    release: two records of one id and one label have one noisy label, and two labels of one id share their noise.

    An object holds no counter: forks and threads may share it, as long as they draw for different records. It holds the
    key, and refuses to be pickled. A first word costs about ten nanoseconds, a stream five microseconds.

    Examples
    --------
    >>> ids = np.array([[1, 0], [2, 0], [1, 0]], dtype=np.uint64)
    >>> first, second, again = RecordStreams(bytes(32)).first_words(ids).tolist()
    >>> first == second, first == again
    (False, True)
    """

    width: ClassVar[int] = 64

    def __init__(self, key: bytes, *, private: bool = False) -> None:
        self.private = check_flag(private, "private")
        self._first = _derive(key, "first words")
        self._further = _derive(key, "further words")

    def first_words(self, ids: NDArray[np.uint64]) -> Words:
        """Return the first word of each id, shape ``(n,)``."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        # One block per id without chaining: the cipher itself, which is a function of the id alone.
        cipher = Cipher(algorithms.AES(self._first), modes.ECB())  # noqa: S305
        blocks = np.ascontiguousarray(check_ids(ids), dtype="<u8")
        # The first half of each block of 128 bits is the word.
        return np.frombuffer(cipher.encryptor().update(blocks.tobytes()), dtype="<u8")[::2].astype(np.uint64)

    def substream(self, record: NDArray[np.uint64]) -> EntropySource:
        """Return the further words of one id, shape ``(2,)``, from the beginning at every call."""
        block = check_ids(record[np.newaxis]).astype("<u8").tobytes()
        # A key of its own for each id, so that no counters can overlap.
        key = hashlib.blake2b(block, digest_size=KEY_BYTES, key=self._further).digest()
        return KeyedEntropy(key, private=self.private)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: the key would be in the file."""
        raise _secret()

    def __repr__(self) -> str:
        return f"RecordStreams(private={self.private})"


def check_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the ids of records. Raise unless they are an ``(n, 2)`` array of uint64."""
    given: object = ids
    if not isinstance(given, np.ndarray) or given.dtype != np.uint64 or given.ndim != 2 or given.shape[1] != 2:
        raise InvalidInput("ids of records must be an array of uint64 of shape (n, 2): the halves of 128 bits each")
    if isinstance(given, np.ma.MaskedArray):
        raise InvalidInput("ids of records are a masked array, expected an id for every record")
    return ids


def _secret() -> InvalidInput:
    return InvalidInput("an object that holds a key is not copied or pickled: send the key itself, on a safe way")
