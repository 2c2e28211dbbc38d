"""Who charges a release and holds its key: nobody but the release itself, unless a ledger is given."""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import TracebackType
from typing import ClassVar, Protocol, Self

from optrand.accounting.entry import Entry as LedgerEntry
from optrand.accounting.ledger import Ledger
from optrand.accounting.request import Request
from optrand.accounting.spent import Spent
from optrand.release.configuration import configuration_digest
from optrand.release.job import BaselineJob, LabelJob
from optrand.release.table_job import TableJob
from optrand.sampling.keyed import KEY_BYTES, checked_key, subkey

__all__ = ["Account", "Entry", "LedgerAccount", "NoLedger", "Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """Release that is to be charged.

    Attributes
    ----------
    task : TableJob
    rows : int
        Of the released table.
    input_digest : str
        Keyed digest of ids, labels and missing ones, in hexadecimal.
    output : str
    """

    task: TableJob
    rows: int
    input_digest: str = field(repr=False)
    output: str

    @property
    def parts(self) -> dict[str, Spent]:
        """What it costs; a prior that an earlier run has paid for costs nothing more."""
        split, job = self.task.job.split(self.rows), self.task.job
        bought = isinstance(job, LabelJob) and job.buys_a_prior
        parts = {"prior": Spent(Fraction(split.prior))} if bought else {}
        exact = not isinstance(job, BaselineJob) or job.exact
        return {**parts, "labels": Spent(Fraction(split.labels), exact=exact)}

    @property
    def configuration(self) -> str:
        """SHA-256 of all that decides what is drawn and is public."""
        task = self.task
        return configuration_digest(engine="spark", column=task.column, job=task.job, options=task.options)


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
    """Charges releases before anything is drawn.

    Attributes
    ----------
    digest_key : bytes
        Secret of digests of inputs.
    dataset : str or None
        Under which name the release is charged; None if it is charged to nothing.
    """

    @property
    def dataset(self) -> str | None:
        """Name, or None."""

    @property
    def digest_key(self) -> bytes:
        """32 bytes."""

    def begin(self, question: Question) -> Entry:
        """Charge a release durably, or go on with an unfinished one."""


@dataclass(frozen=True, kw_only=True)
class LedgerAccount:
    """Account of a named dataset in a ledger.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    again : bool
        Release a column that was released before: costs add up.
    budget : Spent, optional
        What all releases of the dataset may cost together.

    Notes
    -----
    A release that broke off goes on with the same key, prior and noise when the same frame is released again in the
    same way; it costs nothing more.
    """

    ledger: Ledger
    dataset: str
    again: bool = False
    budget: Spent | None = None

    @property
    def digest_key(self) -> bytes:
        """Of the ledger, so that an input is recognised."""
        return self.ledger.digest_key

    def begin(self, question: Question) -> LedgerEntry:
        """Charge a release durably, or go on with an unfinished one; errors as of :meth:`.Ledger.begin`."""
        request = Request(
            self.dataset,
            question.task.column,
            question.parts,
            configuration=question.configuration,
            input_digest=question.input_digest,
            output=question.output,
        )
        return self.ledger.begin(request, again=self.again, budget=self.budget)


class NoLedger:
    """Account of a release that no ledger knows of: a key for it alone, which is gone when it ends.

    Parameters
    ----------
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private.
    release : str, optional
        UUID of the release, which its noise depends on.
    """

    dataset: ClassVar[None] = None

    def __init__(self, key: bytes | None = None, release: str | None = None) -> None:
        self._key, self.release = key, release
        secret = os.urandom(KEY_BYTES) if key is None else checked_key(key)
        self.digest_key = hmac.digest(secret, b"digests of inputs", "sha256")

    def begin(self, question: Question) -> Entry:
        """Key for one release."""
        key = os.urandom(KEY_BYTES) if self._key is None else self._key
        return _Alone(key, self.release or str(uuid.uuid4()), question.task.column, private=self._key is None)


class _Alone:
    def __init__(self, key: bytes, release: str, column: str, *, private: bool) -> None:
        self._key, self.release, self.column, self.private = key, release, column, private

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        names = {"release": self.release, "dataset": "", "column": self.column}
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
