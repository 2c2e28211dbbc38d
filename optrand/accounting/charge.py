"""One line of the ledger: what was asked for, what it costs, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from optrand.accounting.spent import Spent
from optrand.base import strict_json
from optrand.errors import InvalidFile

__all__ = ["Charge", "State"]

FORMAT = "optrand.charge"


class State(StrEnum):
    """How far a release has come. Whatever the state, all of it is spent."""

    CHARGED = "charged"
    """Nothing drawn, or a prior that nobody has seen."""

    PRIOR = "prior"
    """Noisy histograms are in the ledger."""

    SOLVED = "solved"
    """Mechanisms are fixed, and labels may have been drawn."""

    PUBLISHING = "publishing"
    """Files are taking their final names."""

    COMPLETE = "complete"

    WITHDRAWN = "withdrawn"

    @property
    def open(self) -> bool:
        """Whether the release may still go on."""
        return self not in (State.COMPLETE, State.WITHDRAWN)


@dataclass(frozen=True)
class Charge:
    """A release as the ledger knows it.

    Attributes
    ----------
    release : str
        Its UUID.
    dataset, column, parts, configuration, input_digest, output, resumable
        As in :class:`~optrand.accounting.request.Request`.
    begun : str
        When it was charged, in UTC.
    again : bool
        Whether a second release of the same labels was asked for.
    private : bool
        Whether the key came from the operating system, rather than from a test.
    key_kept : bool
        Whether the key outlives the release.
    priors : mapping of str to tuple of int
        Noisy counts of each group, "" where there are none; paid for.
    mechanisms : mapping of str to str
        SHA-256 of the mechanism of each group.
    journal : str
        Of the publication.
    """

    release: str
    dataset: str
    column: str
    parts: Mapping[str, Spent]
    configuration: str
    input_digest: str
    output: str
    resumable: bool
    begun: str
    again: bool
    private: bool
    key_kept: bool = False
    state: State = State.CHARGED
    priors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    mechanisms: Mapping[str, str] = field(default_factory=dict)
    journal: str = ""

    @property
    def total(self) -> Spent:
        """Everything that it cost."""
        return Spent.total(self.parts.values())

    def content(self) -> bytes:
        """Canonical JSON."""
        document: dict[str, Any] = {name: getattr(self, name) for name in _TEXTS + _FLAGS}
        document["state"] = self.state.value
        document["parts"] = {name: part.document() for name, part in self.parts.items()}
        document["priors"] = {group: [str(count) for count in counts] for group, counts in self.priors.items()}
        document["mechanisms"] = dict(self.mechanisms)
        return strict_json.canonical(strict_json.sealed(document, kind=FORMAT))

    @classmethod
    def of_content(cls, content: bytes) -> Charge:
        """Read what :meth:`content` wrote.

        Raises
        ------
        InvalidFile
            Anything else.
        """
        found = strict_json.unsealed(content, [*_TEXTS, *_FLAGS, "state", *_MAPPINGS], kind=FORMAT)
        if not all(isinstance(found[name], str) for name in _TEXTS) or found["state"] not in list(State):
            raise InvalidFile("a line of the ledger lacks a text or is in an unknown state")
        if not all(isinstance(found[name], bool) for name in _FLAGS):
            raise InvalidFile("a line of the ledger has a flag that is neither true nor false")
        parts, priors, mechanisms = (_mapping(found[name], name) for name in _MAPPINGS)
        found["state"] = State(found["state"])
        found["parts"] = {name: Spent.of_document(part, f"part {name[:40]!r}") for name, part in parts.items()}
        found["priors"] = {group: _counts(counts) for group, counts in priors.items()}
        if not all(isinstance(digest, str) for digest in mechanisms.values()):
            raise InvalidFile("a line of the ledger has a digest that is no text")
        return cls(**found)


_TEXTS = ("release", "dataset", "column", "configuration", "input_digest", "output", "begun", "journal")
_FLAGS = ("resumable", "again", "private", "key_kept")
_MAPPINGS = ("parts", "priors", "mechanisms")


def _mapping(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidFile(f"{name} of a line of the ledger is no object")
    return value


def _counts(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidFile("noisy counts of a line of the ledger are no list of texts")
    return tuple(_signed(each) for each in value)


def _signed(text: str) -> int:
    size = strict_json.integer(text.removeprefix("-"), "a noisy count")
    return -size if text.startswith("-") else size
