"""Accounts that releases are charged to: a dataset of a ledger, which holds the keys of its releases, or nobody's."""

from __future__ import annotations

import hmac
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from optrand.accounting import Ledger, Request, Spent
from optrand.base.validation import flag
from optrand.errors import Finished, InvalidInput
from optrand.release.charged import ChargedRelease, LedgerRelease, LoneRelease
from optrand.release.recovery import recover
from optrand.sampling.entropy import EntropySource
from optrand.sampling.keyed import KEY_BYTES, checked_key

__all__ = ["Account", "LedgerAccount", "NoLedger", "Terms"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Release of a column that is to be charged.

    Attributes
    ----------
    column : str
    parts : mapping of str to Spent
        Of the prior and of the labels: see :meth:`.Job.parts`.
    configuration, input_digest : str
        As in :class:`~optrand.accounting.request.Request`.
    output : str
        Where the release will be.
    kept_prior : path, optional
        Where a prior is kept that no ledger keeps.
    """

    column: str
    parts: Mapping[str, Spent]
    configuration: str
    input_digest: str = field(repr=False)
    output: str
    kept_prior: Path | None = None


class Account(ABC):
    """Charges releases before anything is drawn.

    Attributes
    ----------
    source : EntropySource or None
        Of all noise; None for noise that is a keyed function of the record's id.
    digest_key : bytes
        Secret of digests of inputs, 32 bytes.
    """

    source: EntropySource | None
    digest_key: bytes

    @property
    def id_key(self) -> bytes:
        """Secret of the hash of record ids that are text."""
        return hmac.digest(self.digest_key, b"ids", "sha256")

    @property
    @abstractmethod
    def dataset(self) -> str | None:
        """Name of what the labels belong to, if they have one."""

    @property
    @abstractmethod
    def in_ledger(self) -> bool:
        """Whether a ledger holds what is spent."""

    @abstractmethod
    def settle(self, output: Path) -> None:
        """Hear of an earlier release of `output` that was interrupted as it was published.

        Raises
        ------
        Finished
            There was one.
        """

    @abstractmethod
    def spent(self, column: str) -> Spent:
        """Total of all earlier releases of a column."""

    @abstractmethod
    def begin(self, terms: Terms) -> ChargedRelease:
        """Charge a release durably, or go on with an unfinished one."""


class LedgerAccount(Account):
    """Account of a named dataset in a ledger.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    again : bool
        Release a column that was released before: costs add up.
    budget : Spent, optional
        What all releases of the dataset may cost together.
    source : EntropySource, optional
        Of all noise: a release that breaks off pays again. By default noise is keyed, and the same release goes on with
        the same noise at no further cost.
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private.
    keep_key : bool
        Whether keys outlive their releases.

    Raises
    ------
    InvalidInput
        Both a source and a key.
    """

    def __init__(
        self,
        ledger: Ledger,
        dataset: str,
        *,
        again: bool = False,
        budget: Spent | None = None,
        source: EntropySource | None = None,
        key: bytes | None = None,
        keep_key: bool = False,
    ) -> None:
        if source is not None and (keep_key or key is not None):
            raise InvalidInput("noise of the operating system has no key: leave the key out, or take keyed noise")
        flag(keep_key, "keep_key")
        self._ledger, self._dataset, self._again, self._budget = ledger, dataset, again, budget
        self.source, self._key, self._keep_key = source, key, keep_key
        self.digest_key = ledger.digest_key

    @property
    def dataset(self) -> str:
        """See :attr:`Account.dataset`."""
        return self._dataset

    @property
    def in_ledger(self) -> bool:
        """True."""
        return True

    def settle(self, output: Path) -> None:
        """See :meth:`Account.settle`."""
        found = recover(output, self._ledger)
        if found.state == "finished":
            raise Finished(output, found.files)

    def spent(self, column: str) -> Spent:
        """See :meth:`Account.spent`."""
        return self._ledger.spent(self._dataset, column)

    def begin(self, terms: Terms) -> LedgerRelease:
        """See :meth:`Account.begin`; errors as of :meth:`.Ledger.begin`."""
        request = Request(
            self._dataset,
            terms.column,
            terms.parts,
            configuration=terms.configuration,
            input_digest=terms.input_digest,
            output=terms.output,
            resumable=self.source is None,
        )
        entry = self._ledger.begin(request, again=self._again, budget=self._budget, key=self._key)
        return LedgerRelease(entry, self.source, keep_key=self._keep_key)


class NoLedger(Account):
    """Account of releases that no ledger knows of.

    Parameters
    ----------
    source : EntropySource, optional
        Of all noise; by default it is keyed, and the key gone when its release ends.
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private.
    dataset : str, optional
    release : str, optional
        UUID, which keyed noise depends on; of an injected key it follows from that by default.

    Examples
    --------
    >>> terms = Terms(column="y", parts={}, configuration="", input_digest="", output="")
    >>> first, second = (NoLedger(key=bytes(32)).begin(terms).subkey("labels") for _ in range(2))
    >>> first == second
    True
    """

    def __init__(
        self,
        source: EntropySource | None = None,
        *,
        key: bytes | None = None,
        dataset: str | None = None,
        release: str | None = None,
    ) -> None:
        self.source, self._dataset, self._release = source, dataset, release
        self._injected = None if key is None else checked_key(key)
        self.digest_key = hmac.digest(self._injected or os.urandom(KEY_BYTES), b"digests of inputs", "sha256")

    @property
    def dataset(self) -> str | None:
        """See :attr:`Account.dataset`."""
        return self._dataset

    @property
    def in_ledger(self) -> bool:
        """False."""
        return False

    def settle(self, output: Path) -> None:
        """Leave it to the publication."""

    def spent(self, column: str) -> Spent:  # noqa: ARG002
        """Nothing that is known."""
        return Spent(Fraction(0))

    def begin(self, terms: Terms) -> LoneRelease:
        """Key for one release."""
        key = self._injected or os.urandom(KEY_BYTES)
        name = hmac.digest(key, b"release", "sha256")[:16] if self._injected else os.urandom(16)
        return LoneRelease(
            key,
            {
                "release": self._release or str(uuid.UUID(bytes=name, version=4)),
                "dataset": self._dataset or "",
                "column": terms.column,
            },
            own_key=self._injected is None,
            source=self.source,
            kept=terms.kept_prior,
        )
