"""What an interrupted release has left, in the folder of its output and in the ledger."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from optrand.accounting import Ledger
from optrand.accounting.charge import Charge, State
from optrand.base.validation import flag
from optrand.release.circumstances import RECORD
from optrand.release.publication import Recovered
from optrand.release.publication import recover as recover_files
from optrand.release.streams.source import digest_of

__all__ = ["recover"]


def recover(target: str | os.PathLike[str], ledger: Ledger | None = None, *, withdraw: bool = False) -> Recovered:
    """Finish or withdraw the files of a release of `target` that was interrupted, and tell the ledger.

    Parameters
    ----------
    target : path
        The released table.
    ledger : Ledger, optional
        The account of the release, if it has one.
    withdraw : bool
        Whether a release of `target` that is charged and not published is given up: its key is destroyed, and what it
        cost remains spent. By default the command that began it goes on with it at no further cost.

    Returns
    -------
    Recovered
        With the UUIDs of releases of `target` that the ledger holds as unfinished still.

    Raises
    ------
    InvalidInput, InvalidFile, OSError
        As from :func:`optrand.release.publication.recover`, and from the ledger.
    AlreadySpent
        Another process is at work on the release.
    """
    flag(withdraw, "withdraw")
    found, output = recover_files(target), Path(target)
    if ledger is None:
        return found
    waiting = []
    for charge in ledger.entries():
        if charge.state is State.PUBLISHING and _published(charge, output):
            with ledger.resume(charge.release) as entry:
                entry.complete()
            if found.state != "finished":
                found = Recovered("finished", charge.release, (output.name,))
        elif charge.state.open and charge.output == str(output.absolute()):
            if withdraw:
                with ledger.resume(charge.release) as entry:
                    entry.withdraw()
            else:
                waiting.append(charge.release)
    return replace(found, unfinished=tuple(waiting))


def _published(charge: Charge, output: Path) -> bool:
    """Whether the record beside the output, which names its release, is that which the ledger was told of."""
    record = output.with_name(output.name + RECORD)
    return record.is_file() and digest_of(record) == charge.journal
