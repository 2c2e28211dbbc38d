"""A release that was charged: where its noise comes from, and what is kept of each step before the next is taken."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from optrand.accounting import Entry
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput, SpentNote
from optrand.mechanism.mechanism import Mechanism
from optrand.release.batch import Draw
from optrand.release.paid_prior import PaidPrior
from optrand.sampling.entropy import EntropySource
from optrand.sampling.keyed import KeyedEntropy, RecordStreams, subkey

__all__ = ["ChargedRelease", "Drawing", "Entropy", "LedgerRelease", "LoneRelease"]

Drawing = Mapping[str, tuple[Mechanism | Additive, str]]
"""Randomizer of each group, and the SHA-256 of its file."""

Entropy = Literal["keyed", "system"]


class ChargedRelease(ABC):
    """Release that may draw, until it is complete or closed.

    Attributes
    ----------
    release : str
        UUID, in hexadecimal.
    source : EntropySource or None
        Of all noise; None where it is keyed.
    """

    release: str
    source: EntropySource | None

    @property
    def entropy(self) -> Entropy:
        """Whether noise is a keyed function of the record's id."""
        return "keyed" if self.source is None else "system"

    @property
    def private(self) -> bool:
        """Whether nobody else can draw the same noise."""
        return self._own_key if self.source is None else self.source.private

    @property
    def prior_source(self) -> EntropySource:
        """Words for the noise of the prior."""
        return self.source or KeyedEntropy(self.subkey("prior"), private=self.private)

    def draws(self, drawing: Drawing) -> list[Draw]:
        """Keep which randomizers draw, then let each draw the labels of its group."""
        if self.source is not None:
            self._keep_mechanisms({group: digest for group, (_, digest) in drawing.items()})
            return [_drawn_from(self.source, one) for one, _ in drawing.values()]
        keys = self.labels_keys({group: digest for group, (_, digest) in drawing.items()})
        return [
            _keyed(one, RecordStreams(key, private=self.private))
            for (one, _), key in zip(drawing.values(), keys, strict=True)
        ]

    def labels_keys(self, mechanisms: Mapping[str, str]) -> list[bytes]:
        """Keep which randomizers draw, by their SHA-256, then give the key of each group's labels."""
        self._keep_mechanisms(mechanisms)
        return [self.subkey("labels", group=group, mechanism=digest) for group, digest in mechanisms.items()]

    def __enter__(self) -> Self:
        """Enter the release."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @property
    @abstractmethod
    def _own_key(self) -> bool:
        """Whether the key is from the operating system."""

    @property
    @abstractmethod
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """Noisy histograms by their group that were drawn before an interruption."""

    @abstractmethod
    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        """Key for one purpose: see :func:`optrand.sampling.keyed.subkey`.

        Raises
        ------
        InvalidInput
            The release has ended, or draws from a source.
        """

    @abstractmethod
    def keep_prior(self, prior: PaidPrior) -> None:
        """Keep the prior of a release without groups for retries."""

    @abstractmethod
    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """Keep the noisy histogram of each group for retries."""

    @abstractmethod
    def _keep_mechanisms(self, digests: Mapping[str, str]) -> None:
        """Keep the SHA-256 of each group's mechanism, right before the first label is drawn."""

    @abstractmethod
    def publishing(self, record: str) -> None:
        """Hear that files are about to take their names, the SHA-256 of the record among them."""

    @abstractmethod
    def complete(self) -> None:
        """Hear that the release is made; its key is destroyed."""

    @abstractmethod
    def broken_off(self) -> SpentNote | None:
        """Hear that nothing was published; what was spent, in words."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is held, so that another process can go on with the release."""


def _drawn_from(source: EntropySource, randomizer: Mechanism | Additive) -> Draw:
    return lambda values, _: randomizer.sample(values, source=source)


def _keyed(randomizer: Mechanism | Additive, streams: RecordStreams) -> Draw:
    return lambda values, ids: randomizer.sample_records(values, ids, streams)


class LedgerRelease(ChargedRelease):
    """Release in a ledger, which keeps what a retry goes on from.

    Parameters
    ----------
    entry : Entry
    source : EntropySource, optional
    keep_key : bool
        Whether the key outlives the release.
    """

    def __init__(self, entry: Entry, source: EntropySource | None = None, *, keep_key: bool = False) -> None:
        self._entry, self.source, self._keep_key = entry, source, keep_key
        self.release = uuid.UUID(entry.release).hex

    @property
    def _own_key(self) -> bool:
        return self._entry.private

    @property
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """See :attr:`ChargedRelease.priors`."""
        return self._entry.charge.priors

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        """See :meth:`ChargedRelease.subkey`."""
        return self._entry.subkey(purpose, group=group, mechanism=mechanism)

    def keep_prior(self, prior: PaidPrior) -> None:
        """See :meth:`ChargedRelease.keep_prior`."""
        self._entry.keep_prior(prior.estimate.counts)

    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """See :meth:`ChargedRelease.keep_priors`."""
        self._entry.keep_priors(counts)

    def _keep_mechanisms(self, digests: Mapping[str, str]) -> None:
        self._entry.keep_mechanisms(digests)

    def publishing(self, record: str) -> None:
        """See :meth:`ChargedRelease.publishing`."""
        self._entry.publishing(record)

    def complete(self) -> None:
        """See :meth:`ChargedRelease.complete`."""
        self._entry.complete(keep_key=self._keep_key)

    def broken_off(self) -> SpentNote | None:
        """See :meth:`ChargedRelease.broken_off`; noise of a source cannot be drawn again."""
        charge = self._entry.charge
        if not charge.state.open:
            return None
        words = f"{charge.total} was charged to dataset {charge.dataset!r} before this and remains spent"
        if self.source is not None:
            self._entry.withdraw()
            return SpentNote(f"{words}; noise of the operating system cannot be drawn again: a retry pays again")
        return SpentNote(f"{words}; the same command goes on from there and does not pay for it again")

    def close(self) -> None:
        """See :meth:`ChargedRelease.close`."""
        self._entry.close()


class LoneRelease(ChargedRelease):
    """Release that no ledger knows of: its key is gone when it ends.

    Parameters
    ----------
    key : bytes
    names : mapping of str to str
        What subkeys are derived for: release, dataset and column.
    own_key : bool
        Whether the key is from the operating system.
    source : EntropySource, optional
    kept : path, optional
        Where a prior is kept until the release is complete.
    """

    def __init__(
        self,
        key: bytes,
        names: Mapping[str, str],
        *,
        own_key: bool,
        source: EntropySource | None = None,
        kept: Path | None = None,
    ) -> None:
        self._key, self._names, self._own, self.source, self._kept = key, names, own_key, source, kept
        self.release = uuid.UUID(names["release"]).hex
        self._bought = False
        self._note: SpentNote | None = None

    @property
    def _own_key(self) -> bool:
        return self._own

    @property
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """None: only the caller keeps them."""
        return {}

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        """See :meth:`ChargedRelease.subkey`."""
        if self.source is not None:
            raise InvalidInput("the release draws from a source and has no key")
        return subkey(self._key, **self._names, purpose=purpose, group=group, mechanism=mechanism)

    def keep_prior(self, prior: PaidPrior) -> None:
        """Write it to its file, if it has one."""
        self._note = prior.spent(None)
        if self._kept is not None:
            prior.save(self._kept)
            self._bought, self._note = True, prior.spent(self._kept)

    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """Keep nothing."""
        self._note = SpentNote(f"priors of {len(counts)} groups were drawn before this and have spent their part")

    def _keep_mechanisms(self, digests: Mapping[str, str]) -> None:
        """Keep nothing."""

    def publishing(self, record: str) -> None:
        """Nothing to note."""

    def complete(self) -> None:
        """Drop the key, and remove the file of the prior."""
        self.close()
        if self._kept is not None and self._bought:
            self._kept.unlink(missing_ok=True)

    def broken_off(self) -> SpentNote | None:
        """What the prior has spent."""
        return self._note

    def close(self) -> None:
        """Drop the key."""
        self._key = b""
