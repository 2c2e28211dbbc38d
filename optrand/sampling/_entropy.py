"""Sources of random words: the operating system, a key and the id of a record, or a seed, and exact uniform integers.

The operating system's source keeps no words for later: a buffer would be copied by a fork, and two processes would
release noise drawn from the same words.

A release that is killed and resumed, retried or partitioned otherwise must not draw twice: two noisy labels of one
record reveal more than one. With a key the words of a record are a pseudorandom function of its id, so that it has one
draw, whenever and wherever it is computed. Privacy is then computational. The proof is in ``docs/mathematics.md``.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from typing import Any, ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import check_flag, check_integer
from optrand.errors import InvalidInput, missing_extra

Words = NDArray[np.uint64]

MAX_WIDTH = 64
"""Largest number of bits in a word."""

KEY_BYTES = 32
"""Length of every key: AES-256, and the output of SHA-256."""


@runtime_checkable
class EntropySource(Protocol):
    """Source of random words for a sampler."""

    @property
    def width(self) -> int:
        """Number of bits in a word, from 1 to 64."""
        ...

    @property
    def private(self) -> bool:
        """Whether nobody can predict or repeat the words. False for anything seeded or written down."""
        ...

    def words(self, count: int) -> Words:
        """Return independent words, each uniform on ``[0, 2**width)``, shape ``(count,)``."""
        ...


class RecordEntropy(Protocol):
    """Random words that belong to records: the same for one id at every request, independent over ids."""

    @property
    def width(self) -> int:
        """Number of bits in a word, from 1 to 64."""
        ...

    def first_words(self, ids: NDArray[np.uint64]) -> Words:
        """Return the first word of each of the ``(n, 2)`` ids, shape ``(n,)``."""
        ...

    def substream(self, record: NDArray[np.uint64]) -> EntropySource:
        """Return further words of one id of shape ``(2,)``, independent of its first, always from the beginning."""
        ...


class SystemEntropy:
    """Words of 64 bits from the operating system's cryptographic generator, the only source fit for a release.

    Examples
    --------
    >>> source = SystemEntropy()
    >>> source.private, source.words(3).shape
    (True, (3,))
    """

    width: ClassVar[int] = 64
    private: ClassVar[bool] = True

    def words(self, count: int) -> Words:
        """Return the fresh words, requested from the operating system at the time of the call."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemEntropy()"


class SeededEntropy:
    """Words of 64 bits that anybody who knows the seed can repeat: for tests and notebooks, never for a release.

    Parameters
    ----------
    seed : int
        At least 0. Equal seeds give equal words on every machine.

    Examples
    --------
    >>> source = SeededEntropy(7)
    >>> source
    SeededEntropy(seed=7, private=False: not for a release)
    >>> bool((SeededEntropy(7).words(4) == source.words(4)).all())
    True
    """

    width: ClassVar[int] = 64
    private: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self._seed = check_integer(seed, "seed", 0)
        self._generator = np.random.PCG64DXSM(self._seed)

    def words(self, count: int) -> Words:
        """Return the next `count` words of the stream."""
        words: Words = self._generator.random_raw(count)
        return words

    def __repr__(self) -> str:
        return f"SeededEntropy(seed={self._seed}, private=False: not for a release)"


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
        raise InvalidInput("a name from which a key is derived is not valid Unicode text: rename it") from None
    # With the lengths before them no two lists of fields give the same bytes.
    info = b"".join(struct.pack("<Q", len(field)) + field for field in encoded)
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(check_key(key))


def check_key(key: object) -> bytes:
    """Return the key. Raise unless it is 32 bytes."""
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
        # A key serves one stream, so that the counter may start anywhere.
        self._stream = _encryptor(check_key(key), counts=True)
        self.private = check_flag(private, "private")
        self._process = os.getpid()
        self._lock = threading.Lock()

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
            stream: bytes = self._stream.update(bytes(8 * count))
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
        # The first half of each block of 128 bits is the word.
        return encrypt_blocks(self._first, check_ids(ids))[:, 0].copy()

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


def encrypt_blocks(key: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Encrypt the ``(n, 2)`` halves of blocks of 128 bits by AES-256, each block by itself."""
    # The cipher requires a buffer of one block more than it fills.
    encrypted = np.empty((len(blocks) + 1, 2), dtype="<u8")
    plain = np.ascontiguousarray(blocks, dtype="<u8")
    encryptor = _encryptor(key, counts=False)
    encryptor.update_into(plain.ravel().view(np.uint8).data, encrypted.ravel().view(np.uint8).data)
    return encrypted[:-1].astype(np.uint64, copy=False)


def _encryptor(key: bytes, *, counts: bool) -> Any:
    """Return AES-256 in counter mode, from block 0, or without chaining, as a function of each block alone."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from error
    mode = modes.CTR(bytes(16)) if counts else modes.ECB()  # noqa: S305
    return Cipher(algorithms.AES(key), mode).encryptor()


def check_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the ids of records. Raise unless they are an ``(n, 2)`` array of uint64."""
    given: object = ids
    if not isinstance(given, np.ndarray) or given.dtype != np.uint64 or given.ndim != 2 or given.shape[1] != 2:
        raise InvalidInput("ids of records must be an array of uint64 of shape (n, 2): the halves of 128 bits each")
    if isinstance(given, np.ma.MaskedArray):
        raise InvalidInput("ids of records are a masked array, expected an id for every record")
    return ids


def _secret() -> InvalidInput:
    return InvalidInput("an object that holds a key is not copied or pickled: send the key itself, over a safe channel")


def check_width(source: EntropySource | RecordEntropy) -> int:
    """Return the width of `source`. Raise unless it is an integer from 1 to 64."""
    if not hasattr(source, "width"):
        raise InvalidInput(
            f"source is of type {type(source).__name__}, expected a source of random words: leave it out, or in an "
            "experiment pass optrand.sampling.SeededEntropy(seed)"
        )
    return check_integer(source.width, "the width of the entropy source's words", 1, MAX_WIDTH)


def check_words(source: EntropySource, count: int) -> Words:
    """Return words of `source`. Raise if their number, type or width is wrong: they would draw for another label."""
    return _check(source.words(count), count, source.width)


def check_first_words(streams: RecordEntropy, ids: NDArray[np.uint64]) -> Words:
    """Return the first words of records, checked as by :func:`check_words`."""
    return _check(streams.first_words(ids), len(ids), streams.width)


def _check(words: Words, count: int, width: int) -> Words:
    given: object = words
    if not isinstance(given, np.ndarray) or given.dtype != np.uint64 or given.shape != (count,):
        raise InvalidInput(f"the entropy source did not return {count} words as a one-dimensional array of uint64")
    if width < MAX_WIDTH and count and int(words.max()) >> width:
        raise InvalidInput(f"the entropy source returned a word of more than its {width} bits")
    return words


def draw_integers(sizes: NDArray[np.int64], source: EntropySource) -> NDArray[np.int64]:
    """Draw uniform integers from 0 to ``size - 1``, exactly, for each of the (n,) array of `sizes` above 0.

    Words beyond the last multiple of the size are rejected.
    """
    width = check_width(source)
    parts = -(-int(sizes.max(initial=1)).bit_length() // width)
    # Sizes have at most 63 bits: the last of several words contributes only the bits that fit into 64.
    bits = min(64, width * parts)
    last_bits = bits - width * (parts - 1)
    # The last number before the cut at a multiple of the size: up to it every remainder is equally likely.
    distinct, index = np.unique(sizes, return_inverse=True)
    last = np.array([(1 << bits) // int(size) * int(size) - 1 for size in distinct], dtype=np.uint64)[index]
    drawn = np.zeros(sizes.size, dtype=np.uint64)
    pending = np.arange(sizes.size)
    while pending.size:
        numbers = np.zeros(pending.size, dtype=np.uint64)
        for _ in range(parts - 1):
            numbers = (numbers << np.uint64(width)) | check_words(source, pending.size)
        numbers = (numbers << np.uint64(last_bits % 64)) | (
            check_words(source, pending.size) >> np.uint64(width - last_bits)
        )
        drawn[pending] = numbers
        pending = pending[numbers > last[pending]]
    return (drawn % sizes.astype(np.uint64)).astype(np.int64)
