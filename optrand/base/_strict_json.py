"""Canonical JSON with a digest, and a strict reader.

Exact integers are strings of decimal digits, which no reader can round. Measured quantities are JSON numbers with a
point or an exponent, which read back as the same float.

*Canonical* bytes have sorted keys, no white space, ASCII only and one newline at the end. The digest is taken over
them, so that a file indented for reading still passes. The reader raises :class:`~optrand.errors.InvalidFile` for
everything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from optrand.errors import InvalidFile

Document = dict[str, Any]

FORMAT = "optrand.mechanism"
SCHEMA = 1

MAX_DIGITS = 4000
"""Longest integer of a file. Python itself stops converting at 4,300 digits."""


def canonical(document: Document) -> bytes:
    r"""Return the canonical bytes of a document."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.encode("ascii") + b"\n"


def digest(document: Document) -> str:
    """Return ``sha256:`` and the hexadecimal digest of the canonical bytes of all fields but ``digest``."""
    content = {name: value for name, value in document.items() if name != "digest"}
    return "sha256:" + hashlib.sha256(canonical(content)).hexdigest()


def seal(content: Document, *, kind: str = FORMAT) -> Document:
    """Seal content under a format of this package and its schema, with its digest."""
    document = {**content, "format": kind, "schema": SCHEMA}
    return {**document, "digest": digest(document)}


def unseal(data: bytes, names: Iterable[str], *, kind: str = FORMAT) -> Document:
    """Check a sealed document, and return its content without ``format``, ``schema`` and ``digest``.

    Parameters
    ----------
    data : bytes
        A whole file.
    names : iterable of str
        The fields that the content must have, no more and no fewer.
    kind : str
        The format that the file must have.

    Raises
    ------
    InvalidFile
        Not UTF-8, not JSON (which has no NaN or infinities), a duplicate key, another format or schema, unknown or
        missing fields, or a wrong digest.
    """
    document = _parse(data)
    if not isinstance(document, dict) or document.get("format") != kind:
        name = kind.replace(".", " ")
        raise InvalidFile(f'the file is not an {name}: expected an object with "format": "{kind}"')
    schema, names = document.get("schema"), list(names)
    if type(schema) is not int or schema < 1:
        raise InvalidFile('the file does not state its schema: expected "schema": 1')
    if schema > SCHEMA:
        raise InvalidFile(
            f"the file was written by a newer optrand (schema {schema}, this one reads {SCHEMA}): update optrand"
        )
    wanted = {"format", "schema", "digest", *names}
    for problem, wrong in (("lacks", wanted - set(document)), ("has the unknown", set(document) - wanted)):
        if wrong:
            shown = ", ".join(repr(name[:40]) for name in sorted(wrong)[:5])
            raise InvalidFile(f"the file {problem} field(s) {shown}")
    try:
        is_whole = document["digest"] == digest(document)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"the file holds values that save() never writes: {error}") from error
    if not is_whole:
        raise InvalidFile(
            "the digest is not that of the content: the file was damaged or edited, so save the mechanism again"
        )
    return {name: document[name] for name in names}


def read_format(data: bytes) -> str | None:
    """Read the format that a file states, unverified. Return None if it states no format."""
    document = _parse(data)
    said = document.get("format") if isinstance(document, dict) else None
    return said if isinstance(said, str) else None


def _parse(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError as error:
        raise InvalidFile(f"the file is not UTF-8 text: byte {error.start} cannot be read") from error
    except RecursionError:
        raise InvalidFile("the file nests lists or objects too deeply to be a mechanism") from None
    except InvalidFile:
        raise
    except ValueError as error:
        # Also an integer of more digits than Python converts.
        raise InvalidFile(f"the file is not JSON: {error}") from error


def _without_duplicates(pairs: list[tuple[str, object]]) -> Document:
    document: Document = {}
    for name, value in pairs:
        if name in document:
            raise InvalidFile(f"the field {name[:40]!r} is given twice, expected once")
        document[name] = value
    return document
