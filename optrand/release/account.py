"""Accounts of a release of a table: a ledger, which charges it and holds its key, or nobody's."""

from __future__ import annotations

import secrets
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from optrand.accounting import Entry, Ledger, Request, Spent
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput, SpentNote
from optrand.mechanism.mechanism import Mechanism
from optrand.release.batch import Draw
from optrand.release.paid_prior import PaidPrior
from optrand.release.recovery import recover
from optrand.sampling.entropy import EntropySource, SystemEntropy
from optrand.sampling.keyed import KeyedEntropy, RecordStreams
from optrand.sampling.priors import BudgetSplit

__all__ = ["Account", "Entropy", "LedgerAccount", "NoAccount", "Terms"]

Drawing = Mapping[str, tuple[Mechanism | Additive, str]]
"""Randomizer of each group, and the SHA-256 of its file."""

Entropy = Literal["keyed", "system"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a release is charged for.

    Attributes
    ----------
    column : str
    split : BudgetSplit
    exact : bool
        Whether labels are drawn with exactly the probabilities that are proven private.
    configuration, input_digest : str
        As in :class:`~optrand.accounting.request.Request`.
    output : Path
    """

    column: str
    split: BudgetSplit
    exact: bool
    configuration: str
    input_digest: str
    output: Path

    @property
    def parts(self) -> dict[str, Spent]:
        """What is spent on what."""
        prior = {"prior": Spent(Fraction(self.split.prior))} if self.split.prior else {}
        return {**prior, "labels": Spent(Fraction(self.split.labels), exact=self.exact)}


class Account(ABC):
    """Where a release is charged and where its noise comes from.

    Attributes
    ----------
    digest_key, id_key : bytes
        Secrets: of the digest of the input, and of the hash of record ids that are text.
    dataset : str, optional
        The name that is charged, if any.
    entropy : {"keyed", "system"}
    """

    digest_key: bytes
    id_key: bytes
    dataset: str | None = None
    entropy: Entropy = "system"

    @abstractmethod
    def settle(self, output: Path) -> None:
        """Hear of an earlier release of `output` that was interrupted as it was published.

        Raises
        ------
        InvalidInput
            There was one, which is finished now.
        """

    @abstractmethod
    def begin(self, terms: Terms) -> str:
        """Charge a release, or go on with it: its UUID, in hexadecimal."""

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether nobody else can draw the same noise."""

    @property
    @abstractmethod
    def prior_source(self) -> EntropySource:
        """Words for the noise of the prior."""

    @property
    @abstractmethod
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """Noisy histograms by their group that were drawn before an interruption."""

    @abstractmethod
    def keep(self, prior: PaidPrior) -> None:
        """Keep the prior of a release without groups for retries."""

    @abstractmethod
    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """Keep the noisy histogram of each group for retries."""

    @abstractmethod
    def draws(self, drawing: Drawing) -> list[Draw]:
        """Keep which randomizers draw, then let each draw the labels of its group."""

    @abstractmethod
    def publishing(self, record: str) -> None:
        """Hear that files are about to take their names, the SHA-256 of the record among them."""

    @abstractmethod
    def complete(self) -> None:
        """Hear that all of them have."""

    @abstractmethod
    def broken_off(self) -> SpentNote | None:
        """Hear that nothing was published; what was spent, in words."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is held."""


class NoAccount(Account):
    """No ledger: words of the operating system, and priors that only the caller keeps.

    Parameters
    ----------
    source : EntropySource
    kept : Path
        Where a prior is kept until the release is complete.
    """

    def __init__(self, source: EntropySource, kept: Path) -> None:
        self._kept, self._bought = kept, False
        self._note: SpentNote | None = None
        self.digest_key, self.id_key = secrets.token_bytes(32), secrets.token_bytes(32)
        self._source = source

    def settle(self, output: Path) -> None:
        """Leave it to the publication."""

    def begin(self, terms: Terms) -> str:  # noqa: ARG002
        """Charge nobody."""
        return uuid.uuid4().hex

    @property
    def private(self) -> bool:
        """That of the source."""
        return self._source.private

    @property
    def prior_source(self) -> EntropySource:
        """The source."""
        return self._source

    @property
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """None."""
        return {}

    def keep(self, prior: PaidPrior) -> None:
        """Write it to its file."""
        self._note = prior.spent(None)
        prior.save(self._kept)
        self._bought, self._note = True, prior.spent(self._kept)

    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """Keep nothing."""
        self._note = SpentNote(f"priors of {len(counts)} groups were drawn before this and have spent their part")

    def draws(self, drawing: Drawing) -> list[Draw]:
        """Draw from the source, whatever the ids."""
        return [_drawn_from(self._source, one) for one, _ in drawing.values()]

    def publishing(self, record: str) -> None:
        """Nothing to note."""

    def complete(self) -> None:
        """Remove the file of the prior."""
        if self._bought:
            self._kept.unlink(missing_ok=True)

    def broken_off(self) -> SpentNote | None:
        """What the prior has spent."""
        return self._note

    def close(self) -> None:
        """Nothing is held."""


def _drawn_from(source: EntropySource, randomizer: Mechanism | Additive) -> Draw:
    return lambda values, _: randomizer.sample(values, source=source)


class LedgerAccount(Account):
    """Account of a named dataset in a ledger.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    again : bool
        Release labels that were released before: costs add up.
    budget : Spent, optional
        What all releases of the dataset may cost together.
    entropy : {"keyed", "system"}
        Whether a release that breaks off can go on with the same noise, or would pay again.
    keep_key : bool
        Whether the key outlives the release.
    key : bytes, optional
        32 bytes in place of those of the operating system, for tests: the release is not private.
    """

    def __init__(
        self,
        ledger: Ledger,
        dataset: str,
        *,
        again: bool = False,
        budget: Spent | None = None,
        entropy: Entropy = "keyed",
        keep_key: bool = False,
        key: bytes | None = None,
    ) -> None:
        if entropy not in ("keyed", "system"):
            raise InvalidInput(f"entropy is {entropy!r}, expected 'keyed' or 'system'")
        if entropy == "system" and (keep_key or key is not None):
            raise InvalidInput("noise of the operating system has no key: leave the key out, or take keyed noise")
        self.dataset, self.entropy = dataset, entropy
        self.digest_key, self.id_key = ledger.digest_key, ledger.id_key
        self._ledger, self._again, self._budget = ledger, again, budget
        self._keep_key, self._key = keep_key, key
        self._held: Entry | None = None

    @property
    def _entry(self) -> Entry:
        if self._held is None:
            raise InvalidInput("nothing was charged: begin the release first")
        return self._held

    def settle(self, output: Path) -> None:
        """See :meth:`Account.settle`."""
        found = recover(output, self._ledger)
        if found.state == "finished":
            raise InvalidInput(
                f"an earlier release of {output} had been interrupted as it was published and is finished now: "
                f"{', '.join(found.files)}; nothing else was done or spent"
            )

    def begin(self, terms: Terms) -> str:
        """See :meth:`Account.begin`; errors as of :meth:`.Ledger.begin`."""
        request = Request(
            self.dataset or "",
            terms.column,
            terms.parts,
            configuration=terms.configuration,
            input_digest=terms.input_digest,
            output=str(terms.output.absolute()),
            resumable=self.entropy == "keyed",
        )
        self._held = self._ledger.begin(request, again=self._again, budget=self._budget, key=self._key)
        return uuid.UUID(self._entry.release).hex

    @property
    def private(self) -> bool:
        """See :attr:`Account.private`."""
        return self._entry.private

    @property
    def prior_source(self) -> EntropySource:
        """See :attr:`Account.prior_source`."""
        if self.entropy == "system":
            return SystemEntropy()
        return KeyedEntropy(self._entry.subkey("prior"), private=self._entry.private)

    @property
    def priors(self) -> Mapping[str, tuple[int, ...]]:
        """See :attr:`Account.priors`."""
        return self._entry.charge.priors

    def keep(self, prior: PaidPrior) -> None:
        """See :meth:`Account.keep`."""
        self._entry.keep_prior(prior.estimate.counts)

    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """See :meth:`Account.keep_priors`."""
        self._entry.keep_priors(counts)

    def draws(self, drawing: Drawing) -> list[Draw]:
        """See :meth:`Account.draws`."""
        self._entry.keep_mechanisms({group: digest for group, (_, digest) in drawing.items()})
        if self.entropy == "system":
            return [_drawn_from(SystemEntropy(), one) for one, _ in drawing.values()]
        return [self._keyed(group, one, digest) for group, (one, digest) in drawing.items()]

    def _keyed(self, group: str, randomizer: Mechanism | Additive, digest: str) -> Draw:
        key = self._entry.subkey("labels", group=group, mechanism=digest)
        streams = RecordStreams(key, private=self._entry.private)
        return lambda values, ids: randomizer.sample_records(values, ids, streams)

    def publishing(self, record: str) -> None:
        """See :meth:`Account.publishing`."""
        self._entry.publishing(record)

    def complete(self) -> None:
        """See :meth:`Account.complete`."""
        self._entry.complete(keep_key=self._keep_key)

    def broken_off(self) -> SpentNote | None:
        """See :meth:`Account.broken_off`; noise of the operating system cannot be drawn again."""
        if self._held is None:
            return None
        charged = f"{self._held.charge.total} was charged to dataset {self.dataset!r} before this and remains spent"
        if self.entropy == "system":
            self._held.withdraw()
            return SpentNote(f"{charged}; noise of the operating system cannot be drawn again: a retry pays again")
        return SpentNote(f"{charged}; the same command goes on from there and does not pay for it again")

    def close(self) -> None:
        """Let another process go on with the release."""
        if self._held is not None:
            self._held.close()
