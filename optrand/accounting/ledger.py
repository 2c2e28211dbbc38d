"""Durable account of every release: charged before anything is drawn, never refunded, and each release drawn once."""

from __future__ import annotations

import hmac
import os
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from optrand.accounting.charge import Charge
from optrand.accounting.entry import Entry
from optrand.accounting.request import Request, checked_column, checked_name
from optrand.accounting.secrets import Lock, Vault
from optrand.accounting.spent import Spent
from optrand.accounting.store import Store
from optrand.base.validation import flag
from optrand.errors import AlreadySpent, InputChanged, InvalidInput, OverBudget
from optrand.sampling.keyed import checked_key

__all__ = ["Ledger", "default_path"]


def default_path() -> Path:
    """``optrand/ledger.sqlite`` in the user's folder of state, ``$XDG_STATE_HOME`` or ``~/.local/state``."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    # Relative paths are to be ignored, says the specification.
    folder = state if state.is_absolute() else Path.home() / ".local" / "state"
    return folder / "optrand" / "ledger.sqlite"


class Ledger:
    """What the releases of named datasets have cost, and which of them is under way.

    Notes
    -----
    The file is SQLite in WAL mode with ``synchronous=FULL``, of mode 0600; keys, locks and the secret that seals its
    lines are in the folder ``keys`` beside it. It holds what was paid for, names and digests keyed by the secret;
    nothing else was computed from labels. An edited or shortened ledger is refused. An older copy of ledger *and* keys
    together is not noticed: neither is to be restored without the other, or without need.

    Examples
    --------
    >>> import tempfile
    >>> from fractions import Fraction
    >>> request = Request("census", "weeks", {"labels": Spent(Fraction(1))}, "0" * 64, "1" * 64, "out.csv")
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.sqlite") as ledger:
    ...     with ledger.begin(request) as entry:
    ...         entry.keep_mechanism("2" * 64)
    ...         entry.complete()
    ...     ledger.spent("census", "weeks").epsilon
    ...     ledger.begin(request)
    Traceback (most recent call last):
        ...
    optrand.errors.AlreadySpent: column 'weeks' of dataset 'census' was released before, for epsilon 1 in total:
    another release adds epsilon 1, to epsilon 2; ask for that with --spend-again, or again=True
    """

    def __init__(self, store: Store, vault: Vault) -> None:
        self._store, self._vault = store, vault
        for charge in store.charges():
            if not charge.state.open and not charge.key_kept and vault.has_key(charge.release):
                vault.destroy(charge.release)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None) -> Ledger:
        """Open a ledger, or make it.

        Parameters
        ----------
        path : path, optional
            On a local disk; by default :func:`default_path`.

        Raises
        ------
        InvalidFile
            A file that is no ledger, damaged, edited, of a newer optrand, or open to others.
        OSError
            The folder cannot be written.
        """
        chosen = Path(path) if path is not None else default_path()
        if path is None:
            chosen.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not chosen.parent.is_dir():
            raise InvalidInput(f"{chosen.parent} is not a folder: make it first, or keep the ledger elsewhere")
        vault = Vault(chosen.parent / "keys")
        return cls(Store(chosen, vault), vault)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    @property
    def digest_key(self) -> bytes:
        """Key for digests of inputs: a plain digest would tell one label to whoever knows all others."""
        return hmac.digest(self._vault.secret, b"digests of inputs", "sha256")

    @property
    def id_key(self) -> bytes:
        """Key for the hash of record ids that are text: the same for every retry."""
        return hmac.digest(self.digest_key, b"ids", "sha256")

    def begin(
        self, request: Request, *, again: bool = False, budget: Spent | None = None, key: bytes | None = None
    ) -> Entry:
        """Charge a release durably, or go on with the unfinished one that the request describes.

        Parameters
        ----------
        request : Request
        again : bool
            Release labels that were released before: costs add up.
        budget : Spent, optional
            What all releases of the dataset, over all its columns, may cost together.
        key : bytes, optional
            32 bytes in place of those of the operating system, for tests: the release is not private.

        Returns
        -------
        Entry
            Of state charged, or that in which the release was interrupted.

        Raises
        ------
        AlreadySpent
            The column was released before, or is being released by another process.
        OverBudget
            The release would cost more than the budget has left.
        InputChanged
            An unfinished release of the same configuration began with other labels or ids.
        InvalidInput
            Another key than that with which the release began.
        """
        flag(again, "again")
        injected = None if key is None else checked_key(key)
        with self._store.transaction():
            earlier = self._store.charges()
            unfinished = self._unfinished(earlier, request, again=again)
            if unfinished is not None:
                return self._resumed(unfinished, key)
            charge = _charged(request, again=again, private=key is None)
            _check_first(earlier, charge)
            _check_budget(earlier, charge, budget)
            lock = self._locked(charge.release)
            self._store.append(charge)
        # On the disk before anything is drawn: should the file lose the line, the mark shows it.
        lock.mark()
        return Entry(self._store, self._vault, charge, lock=lock, injected=injected)

    def resume(self, release: str) -> Entry:
        """Go on with an unfinished release, or withdraw it, whatever its request was.

        Raises
        ------
        InvalidInput
            There is none of that UUID.
        AlreadySpent
            Another process runs it.
        """
        with self._store.transaction():
            for charge in self._store.charges():
                if charge.release == release and charge.state.open:
                    return self._resumed(charge, None)
        raise InvalidInput("the ledger has no unfinished release of that UUID: see optrand ledger")

    def entries(self) -> Sequence[Charge]:
        """All releases, the oldest first."""
        return tuple(self._store.charges())

    def spent(self, dataset: str, column: str | None = None) -> Spent:
        """What the releases of a dataset, or of one column of it, have cost by basic composition."""
        name = checked_name(dataset, "the dataset's name")
        chosen = None if column is None else checked_column(column)
        return _sum(each for each in self.entries() if each.dataset == name and chosen in (None, each.column))

    def close(self) -> None:
        """Close the file; entries keep their locks."""
        self._store.close()

    def __enter__(self) -> Self:
        """Enter the ledger."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _unfinished(self, earlier: Sequence[Charge], request: Request, *, again: bool) -> Charge | None:
        """Release that the request would go on with: with `again`, only one that was itself another one."""
        same = [
            charge
            for charge in earlier
            if (charge.dataset, charge.column) == (request.dataset, request.column)
            and charge.configuration == request.configuration
            and charge.state.open
            and charge.resumable
            and request.resumable
            and (charge.again or not again)
        ]
        for charge in reversed(same):
            if charge.input_digest == request.input_digest:
                return charge
        if same and not again:
            raise InputChanged(
                f"an unfinished release of column {request.column!r} of dataset {request.dataset!r} began with other "
                "labels, ids or order: restore that input, or pay for another release with --spend-again, or again=True"
            )
        return None

    def _resumed(self, charge: Charge, key: bytes | None) -> Entry:
        lock = self._locked(charge.release)
        given = None if key is None else checked_key(key)
        known = self._vault.has_key(charge.release)
        if given is not None and (charge.private or (known and self._vault.key(charge.release) != given)):
            lock.close()
            raise InvalidInput("the key is not that with which the release began: pass that, or none")
        lock.mark()
        return Entry(self._store, self._vault, charge, lock=lock, injected=given)

    def _locked(self, release: str) -> Lock:
        lock = self._vault.lock(release)
        if lock is None:
            raise AlreadySpent("another process is at work on this release: wait for it, or end it and try again")
        return lock


def _charged(request: Request, *, again: bool, private: bool) -> Charge:
    names = ("dataset", "column", "parts", "configuration", "input_digest", "output", "resumable")
    return Charge(
        release=str(uuid.uuid4()),
        **{name: getattr(request, name) for name in names},
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        again=again,
        private=private,
    )


def _check_first(earlier: Sequence[Charge], charge: Charge) -> None:
    """Refuse a second release of a column that nobody asked for."""
    same = [each for each in earlier if (each.dataset, each.column) == (charge.dataset, charge.column)]
    if same and not charge.again:
        spent = _sum(same)
        message = (
            f"column {charge.column!r} of dataset {charge.dataset!r} was released before, for {spent} in total: "
            f"another release adds {charge.total}, to {spent + charge.total}; ask for that with --spend-again, or "
            "again=True"
        )
        if any(each.state.open for each in same):
            message += ". One of these is unfinished: the command that began it goes on with it, at no further cost"
        raise AlreadySpent(message, spent=spent)


def _check_budget(earlier: Sequence[Charge], charge: Charge, budget: Spent | None) -> None:
    if budget is None:
        return
    spent = _sum(each for each in earlier if each.dataset == charge.dataset)
    if not (spent + charge.total).within(budget):
        raise OverBudget(
            f"the release costs {charge.total} and dataset {charge.dataset!r} has cost {spent}, together "
            f"{spent + charge.total}, over the budget of {budget}: nothing was spent"
        )


def _sum(charges: Iterable[Charge]) -> Spent:
    return Spent.total(charge.total for charge in charges)
