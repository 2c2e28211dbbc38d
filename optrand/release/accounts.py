"""Accounts that releases are charged to, and the keys that they hold: those of a ledger, or of the release alone."""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from optrand.accounting.entry import Entry as LedgerEntry
from optrand.accounting.ledger import Ledger
from optrand.accounting.request import Request
from optrand.accounting.spent import Spent
from optrand.sampling.keyed import KEY_BYTES, checked_key, subkey

__all__ = ["Account", "Entry", "LedgerAccount", "NoLedger", "Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Release of a column that is to be charged.

    Attributes
    ----------
    column : str
    parts : mapping of str to Spent
        Of the prior and of the labels.
    configuration : str
        See :func:`~optrand.release.configuration.configuration_digest`.
    input_digest : str
        Keyed digest of ids, labels and missing ones, in hexadecimal.
    """

    column: str
    parts: Mapping[str, Spent]
    configuration: str
    input_digest: str = field(repr=False)


class Entry(Protocol):
    """Release that was charged; an :class:`optrand.accounting.entry.Entry` is one."""

    @property
    def release(self) -> str:
        """UUID of the release."""

    @property
    def private(self) -> bool:
        """Whether nobody else can know its key."""

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        """Key for one purpose."""

    def keep_prior(self, counts: Sequence[int]) -> None:
        """Keep the noisy histogram that was paid for."""

    def keep_mechanism(self, digest: str) -> None:
        """Keep the SHA-256 of the mechanism, right before it draws."""

    def complete(self) -> None:
        """End the release and destroy its key."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Account(Protocol):
    """Charges releases before anything is drawn."""

    @property
    def dataset(self) -> str | None:
        """Name of what the labels belong to."""

    @property
    def in_ledger(self) -> bool:
        """Whether a ledger holds what is spent."""

    @property
    def digest_key(self) -> bytes:
        """Secret of digests of inputs, 32 bytes."""

    def begin(self, question: Question) -> Entry:
        """Charge a release durably, or go on with an unfinished one."""


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """Account of a named dataset in a ledger.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    output : str
        Where the release will be.
    again : bool
        Release a column that was released before: costs add up.
    budget : Spent, optional
        What all releases of the dataset may cost together.
    keyed : bool
        Whether noise is keyed: then the same release, after it broke off, goes on with the same noise.
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private.
    """

    ledger: Ledger
    dataset: str
    output: str
    again: bool = False
    budget: Spent | None = None
    keyed: bool = True
    key: bytes | None = field(default=None, repr=False)

    @property
    def in_ledger(self) -> bool:
        """True."""
        return True

    @property
    def digest_key(self) -> bytes:
        """Of the ledger, so that an input is recognised."""
        return self.ledger.digest_key

    def begin(self, question: Question) -> LedgerEntry:
        """Charge a release durably, or go on with an unfinished one; errors as of :meth:`.Ledger.begin`."""
        request = Request(
            self.dataset,
            question.column,
            question.parts,
            configuration=question.configuration,
            input_digest=question.input_digest,
            output=self.output,
            resumable=self.keyed,
        )
        return self.ledger.begin(request, again=self.again, budget=self.budget, key=self.key)


class NoLedger:
    """Account of a release that no ledger knows of: a key for it alone, which is gone when it ends.

    Parameters
    ----------
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private, and its UUID follows
        from them.
    dataset : str, optional

    Examples
    --------
    >>> question = Question(column="y", parts={}, configuration="", input_digest="")
    >>> first, second = (NoLedger(bytes(32)).begin(question).subkey("labels") for _ in range(2))
    >>> first == second
    True
    """

    in_ledger = False

    def __init__(self, key: bytes | None = None, *, dataset: str | None = None) -> None:
        self.dataset = dataset
        self._injected = key is not None
        self._key = os.urandom(KEY_BYTES) if key is None else checked_key(key)
        self.digest_key = hmac.digest(self._key, b"digests of inputs", "sha256")

    def begin(self, question: Question) -> Entry:
        """Key for one release."""
        name = hmac.digest(self._key, b"release", "sha256")[:16] if self._injected else os.urandom(16)
        release = str(uuid.UUID(bytes=name, version=4))
        return _Alone(self._key, release, self.dataset or "", question.column, private=not self._injected)


class _Alone:
    """Release that nobody else knows of."""

    def __init__(self, key: bytes, release: str, dataset: str, column: str, *, private: bool) -> None:
        self._key, self.release, self.private = key, release, private
        self._dataset, self._column = dataset, column

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        names = {"release": self.release, "dataset": self._dataset, "column": self._column}
        return subkey(self._key, **names, purpose=purpose, group=group, mechanism=mechanism)

    def keep_prior(self, counts: Sequence[int]) -> None:
        """Nothing is kept."""

    def keep_mechanism(self, digest: str) -> None:
        """Nothing is kept."""

    def complete(self) -> None:
        self._key = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.complete()
