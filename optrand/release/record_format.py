"""Record of a release as a JSON document, and the checks of both ways."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from optrand.base import strict_json
from optrand.base.strict_json import Document, fields, integer, integers, number, numbers
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from optrand.release.estimates import Estimates
    from optrand.release.record import Circumstances, ReleaseRecord

__all__ = ["FIELDS", "check", "document", "read", "written"]

FIELDS = (
    "epsilon",
    "delta",
    "parts",
    "exact",
    "private",
    "rows",
    "labels",
    "prior",
    "noisy_counts",
    "randomizer",
    "estimates",
    "circumstances",
    "table",
    "randomizers",
)

TASKS = ("regression", "classification")
ENTROPY = ("system", "keyed")
NULLS = ("refuse", "drop", "pass", "class")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UUID = re.compile(r"[0-9a-f]{32}")


def check(record: ReleaseRecord) -> None:
    """Refuse a record whose fields do not fit together."""
    _check_budget(record)
    _check_labels(record)
    _check_circumstances(record.circumstances)
    _check_estimates(record.estimates)
    _check_files(record)


def _check_budget(record: ReleaseRecord) -> None:
    parts = record.parts
    checked_epsilon(parts.labels, "the labels' part")
    if not 0 <= parts.prior < math.inf:
        raise InvalidInput(f"the prior's part is {parts.prior:g}, expected at least 0")
    if record.epsilon != parts.total:
        raise InvalidInput(f"the total is {record.epsilon!r}, which is not the sum of its parts, rounded up")
    if not 0 <= record.delta < 1:
        raise InvalidInput(f"delta is {record.delta:g}, expected a probability below 1")
    if (record.noisy_counts is None) != (parts.prior == 0):
        raise InvalidInput("a noisy histogram belongs to a record exactly where a part was spent on the prior")


def _check_labels(record: ReleaseRecord) -> None:
    if record.rows < 1:
        raise InvalidInput(f"the record counts {record.rows} row(s), expected at least one")
    k = len(record.labels)
    if k < 1 or any(not low < high for low, high in pairwise(record.labels)):
        raise InvalidInput("the declared labels do not strictly increase")
    for name, found in (
        ("noisy counts", record.noisy_counts),
        ("classes", record.circumstances.classes),
        ("errors of counts", record.estimates.counts),
    ):
        if found is not None and len(found) != k:
            raise InvalidInput(f"there are {len(found)} {name} for {k} labels")


def _check_circumstances(around: Circumstances) -> None:
    for name, value, known in (
        ("task", around.task, TASKS),
        ("entropy", around.entropy, ENTROPY),
        ("nulls", around.nulls, NULLS),
    ):
        if value not in known:
            raise InvalidInput(f"{name} is {value[:40]!r}, expected one of {', '.join(known)}")
    if not _UUID.fullmatch(around.release):
        raise InvalidInput("the release is no UUID: expected 32 hexadecimal digits")


def _check_estimates(found: Estimates) -> None:
    errors = [found.label, found.mean or 0.0, found.multiple or 0.0, *(found.counts or ())]
    if not all(0 <= error < math.inf for error in errors):
        raise InvalidInput("a standard deviation is negative or no number")
    if found.counts is not None and not found.histogram:
        raise InvalidInput("there are errors of counts, and no histogram to be estimated")


def _check_files(record: ReleaseRecord) -> None:
    named = [(one.name, one.sha256) for one in record.randomizers]
    if record.table is not None:
        named.append((record.table.name, record.table.sha256))
        # A label that is missing is passed through as one more row.
        if record.table.rows != record.rows and not (
            record.circumstances.nulls == "pass" and record.table.rows > record.rows
        ):
            raise InvalidInput(f"the table has {record.table.rows} rows and {record.rows} were drawn")
    for name, digest in named:
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or str(path) == ".":
            raise InvalidInput("the name of a file leads out of the folder of the record")
        if not _SHA256.fullmatch(digest):
            raise InvalidInput(f"the SHA-256 of {name[:80]!r} is not 64 hexadecimal digits")


def document(record: ReleaseRecord) -> Document:
    """Content of a record, ready to be sealed."""
    found = {name: getattr(record, name) for name in FIELDS}
    for name in ("parts", "estimates", "circumstances", "table"):
        found[name] = None if found[name] is None else asdict(found[name])
    found["randomizers"] = [asdict(one) for one in record.randomizers]
    found["rows"] = str(record.rows)
    if found["table"] is not None:
        found["table"]["rows"] = str(record.table.rows if record.table else 0)
    if record.noisy_counts is not None:
        found["noisy_counts"] = [str(count) for count in record.noisy_counts]
    return found


def written(sealed: Document) -> bytes:
    """Canonical bytes but for line ends between fields, which a person needs and no digest sees."""
    lines = (strict_json.canonical({name: sealed[name]}).decode().strip()[1:-1] for name in sorted(sealed))
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read(content: Document) -> dict[str, Any]:
    """Values of the fields of an unsealed document, each of its type."""
    table = content["table"]
    return {
        "epsilon": number(content["epsilon"], "epsilon"),
        "delta": number(content["delta"], "delta"),
        "parts": _object(content["parts"], "parts", {"prior": number, "labels": number}),
        "exact": _flag(content["exact"], "exact"),
        "private": _flag(content["private"], "private"),
        "rows": integer(content["rows"], "rows"),
        "labels": tuple(numbers(content["labels"], "labels")),
        "prior": _text(content["prior"], "prior"),
        "noisy_counts": _optional(_counts)(content["noisy_counts"], "noisy_counts"),
        "randomizer": _text(content["randomizer"], "randomizer"),
        "estimates": _object(
            content["estimates"],
            "estimates",
            {
                "label": number,
                "mean": _optional(number),
                "histogram": _flag,
                "losses": _flag,
                "counts": _optional(_errors),
                "multiple": _optional(number),
                "words": _text,
            },
        ),
        "circumstances": _object(
            content["circumstances"],
            "circumstances",
            {
                "release": _text,
                "dataset": _optional(_text),
                "column": _optional(_text),
                "task": _text,
                "classes": _optional(_classes),
                "entropy": _text,
                "nulls": _text,
                "id_column": _optional(_text),
                "groups": _texts,
                "ledger": _flag,
            },
        ),
        "table": None if table is None else _object(table, "table", {"name": _text, "sha256": _text, "rows": integer}),
        "randomizers": [
            _object(one, f"randomizers[{i}]", {"name": _text, "sha256": _text, "group": _optional(_text)})
            for i, one in enumerate(_listed(content["randomizers"], "randomizers"))
        ],
    }


Reader = Callable[[object, str], Any]


def _object(value: object, where: str, readers: dict[str, Reader]) -> dict[str, Any]:
    given = fields(value, where, readers)
    return {name: read_one(given[name], f"{where}.{name}") for name, read_one in readers.items()}


def _optional(reader: Reader) -> Reader:
    return lambda value, where: None if value is None else reader(value, where)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidFile(f"{where} is neither true nor false")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidFile(f"{where} is no string")
    return value


def _listed(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidFile(f"{where} is no list")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(_text(item, where) for item in _listed(value, where))


def _counts(value: object, where: str) -> tuple[int, ...]:
    return tuple(integers(value, where))


def _errors(value: object, where: str) -> tuple[float, ...]:
    return tuple(numbers(value, where))


def _classes(value: object, where: str) -> tuple[str | int | bool, ...]:
    found = tuple(_listed(value, where))
    if not all(isinstance(name, str | int) for name in found):
        raise InvalidFile(f"{where} holds a name that is neither a string, an integer, nor true or false")
    return found
