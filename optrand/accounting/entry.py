"""A running release: it alone holds its key, and its line in the ledger is written before each step is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from optrand.accounting.charge import Charge, State
from optrand.accounting.request import checked_digest
from optrand.accounting.secrets import Lock, Vault
from optrand.accounting.store import Store
from optrand.base.validation import flag, integer
from optrand.errors import InputChanged, InvalidFile, InvalidInput
from optrand.sampling.keyed import subkey

__all__ = ["Entry"]


class Entry:
    """Release that was charged and may draw, locked against other processes until it is closed.

    Made by :meth:`.Ledger.begin`. Steps are taken in order: :meth:`keep_priors`, :meth:`keep_mechanisms` right before
    the first label is drawn, :meth:`publishing`, :meth:`complete`. A step that was taken before an interruption may be
    taken again, with the same content.

    Raises
    ------
    InputChanged
        A step is taken again with another content.
    InvalidInput
        A step out of order, or one after the release has ended.
    """

    def __init__(
        self, store: Store, vault: Vault, charge: Charge, *, lock: Lock, injected: bytes | None = None
    ) -> None:
        self._store, self._vault, self._lock, self._injected = store, vault, lock, injected
        self.charge = charge

    @property
    def release(self) -> str:
        """UUID of the release."""
        return self.charge.release

    @property
    def state(self) -> State:
        """How far it has come."""
        return self.charge.state

    @property
    def private(self) -> bool:
        """Whether nobody but the owner of the vault can know the key."""
        return self.charge.private

    @property
    def prior(self) -> tuple[int, ...] | None:
        """Noisy histogram of a release without groups, if it is kept already."""
        return self.charge.priors.get("")

    @property
    def key(self) -> bytes:
        """Master key, made at the first use.

        Raises
        ------
        InvalidFile
            The key is damaged, or was lost after something may have been drawn with it.
        InvalidInput
            The release draws from the operating system, or has ended.
        """
        self._require_open()
        if not self.charge.resumable:
            raise InvalidInput("the release draws from the operating system and has no key")
        if self._vault.has_key(self.release):
            return self._vault.key(self.release)
        if self.state != State.CHARGED:
            raise InvalidFile(
                f"the key of the release {self.release} is lost: restore it from a backup, or withdraw the release and "
                "spend again"
            )
        return self._vault.new_key(self.release, self._injected)

    def subkey(self, purpose: str, *, group: str = "", mechanism: str = "") -> bytes:
        """Key for one purpose: see :func:`optrand.sampling.keyed.subkey`."""
        names = {"release": self.release, "dataset": self.charge.dataset, "column": self.charge.column}
        return subkey(self.key, **names, purpose=purpose, group=group, mechanism=mechanism)

    def keep_prior(self, counts: Sequence[int]) -> None:
        """Keep the noisy histogram of a release without groups."""
        self.keep_priors({"": counts})

    def keep_priors(self, counts: Mapping[str, Sequence[int]]) -> None:
        """Keep the noisy histogram of each group, so that every retry goes on from it."""
        given = {group: tuple(_count(each) for each in every) for group, every in counts.items()}
        kept = self.charge.priors
        if self._is_new("priors", kept, given, until=State.PRIOR):
            self._write(replace(self.charge, state=State.PRIOR, priors={**kept, **given}))

    def keep_mechanism(self, digest: str) -> None:
        """Keep the SHA-256 of the mechanism of a release without groups."""
        self.keep_mechanisms({"": digest})

    def keep_mechanisms(self, digests: Mapping[str, str]) -> None:
        """Keep the SHA-256 of the mechanism of each group; from now on labels are drawn with these alone."""
        given = {group: checked_digest(digest, "a mechanism's digest") for group, digest in digests.items()}
        kept = self.charge.mechanisms
        if self._is_new("mechanisms", kept, given, until=State.SOLVED):
            self._write(replace(self.charge, state=State.SOLVED, mechanisms={**kept, **given}))

    def publishing(self, journal: str) -> None:
        """Keep the journal of the publication, from which it can be finished without the key."""
        self._require(State.SOLVED, State.PUBLISHING)
        self._write(replace(self.charge, state=State.PUBLISHING, journal=journal))

    def complete(self, *, keep_key: bool = False) -> None:
        """End the release and destroy its key, unless it is to be kept."""
        flag(keep_key, "keep_key")
        self._require(State.SOLVED, State.PUBLISHING)
        self._end(State.COMPLETE, keep_key=keep_key)

    def withdraw(self) -> None:
        """End a release that will not be published and destroy its key; what it cost remains spent."""
        self._require_open()
        self._end(State.WITHDRAWN, keep_key=False)

    def close(self) -> None:
        """Let another process go on with the release, if it has not ended."""
        self._lock.close()

    def __enter__(self) -> Self:
        """Enter the release."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _end(self, state: State, *, keep_key: bool) -> None:
        self._write(replace(self.charge, state=state, key_kept=keep_key))
        if not keep_key:
            self._vault.destroy(self.release)
        self.close()

    def _is_new(self, name: str, kept: Mapping[str, object], given: Mapping[str, object], *, until: State) -> bool:
        """Whether something is to be kept that is not, and may still be."""
        self._require_open()
        if any(group in kept and kept[group] != content for group, content in given.items()):
            raise InputChanged(
                f"the {name} of the release {self.release} are not those that it began with: begin again from the same "
                "input, with the same version of optrand, or spend again"
            )
        new = not given.keys() <= kept.keys()
        order = list(State)
        if new and order.index(self.state) > order.index(until):
            raise InvalidInput(f"the release is {self.state}: its {name} cannot change any more")
        return new

    def _require(self, *states: State) -> None:
        if self.state not in states:
            expected = " or ".join(states)
            raise InvalidInput(f"the release is {self.state}, expected {expected}: take its steps in order")

    def _require_open(self) -> None:
        if not self.state.open:
            raise InvalidInput(f"the release is {self.state}: nothing more is drawn for it")

    def _write(self, charge: Charge) -> None:
        self._lock.require()
        with self._store.transaction():
            self._store.replace(charge)
        self.charge = charge


def _count(value: object) -> int:
    return integer(value, "a noisy count", -(10**3999), 10**3999)
