"""What a release asks of the ledger."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from optrand.accounting.spent import Spent
from optrand.base.validation import flag
from optrand.errors import InvalidInput

__all__ = ["Request", "checked_column", "checked_digest", "checked_name"]

MAX_NAME = 200
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{64}")


@dataclass(frozen=True)
class Request:
    """What is to be released, and what it costs.

    Parameters
    ----------
    dataset, column : str
        The unit of spending; other forms of the same characters are one name.
    parts : mapping of str to Spent
        What is spent on what: ``{"prior": ..., "labels": ...}``. They add up; of groups, pass the most.
    configuration : str
        SHA-256, in hexadecimal, of all that decides what is drawn and is public: a resumed release has the same.
    input_digest : str
        Digest of ids, labels and missing labels in their order, keyed with :attr:`.Ledger.digest_key`.
    output : str
        Where the release will be.
    resumable : bool
        Whether noise is keyed, so that the same request after an interruption goes on and costs nothing more.

    Raises
    ------
    InvalidInput
        A name that is empty, too long, or has control characters or spaces at its ends; parts that are none, or a
        digest of another form.

    Examples
    --------
    >>> from fractions import Fraction
    >>> parts = {"prior": Spent(Fraction(1, 20)), "labels": Spent(Fraction(19, 20))}
    >>> str(Request("census", "weeks", parts, configuration="0" * 64, input_digest="1" * 64, output="out.csv").total)
    'epsilon 1'
    """

    dataset: str
    column: str
    parts: Mapping[str, Spent]
    configuration: str
    input_digest: str
    output: str
    resumable: bool = True

    def __post_init__(self) -> None:
        """Check and normalise."""
        object.__setattr__(self, "dataset", checked_name(self.dataset, "the dataset's name"))
        object.__setattr__(self, "column", checked_column(self.column))
        if not self.parts or not all(isinstance(part, Spent) for part in self.parts.values()):
            raise InvalidInput("a request has no parts, expected what is spent on each, such as {'labels': Spent(1.0)}")
        parts = {checked_name(name, "the name of a part"): part for name, part in self.parts.items()}
        object.__setattr__(self, "parts", parts)
        for name in ("configuration", "input_digest"):
            checked_digest(getattr(self, name), name)
        flag(self.resumable, "resumable")

    @property
    def total(self) -> Spent:
        """Everything that the release costs."""
        return Spent.total(self.parts.values())


def checked_name(name: object, what: str) -> str:
    r"""Name in its composed form, of 1 to 200 characters that can be printed.

    Examples
    --------
    >>> checked_name("Cafe\u0301", "the dataset's name") == "Caf\u00e9"
    True
    """
    if not isinstance(name, str):
        raise InvalidInput(f"{what} is of type {type(name).__name__}, expected a text")
    composed = unicodedata.normalize("NFC", name)
    if not 1 <= len(composed) <= MAX_NAME or composed != composed.strip() or not composed.isprintable():
        raise InvalidInput(
            f"{what} is {composed[:MAX_NAME]!r}, expected 1 to {MAX_NAME} printable characters without spaces at the "
            "ends"
        )
    return composed


def checked_column(name: object) -> str:
    """Name of a column, composed; unlike those of datasets it is not ours to choose, and any text will do."""
    if not isinstance(name, str) or any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidInput("the column's name is no valid Unicode text: rename the column")
    return unicodedata.normalize("NFC", name)


def checked_digest(digest: object, what: str) -> str:
    """Digest of SHA-256 in lower-case hexadecimal, with or without ``sha256:``."""
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidInput(f"{what} must be 64 hexadecimal digits in lower case, with or without sha256:")
    return digest
