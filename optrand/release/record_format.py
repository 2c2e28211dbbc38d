"""Record of a release as a JSON document, and the checks of both ways."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from optrand.base import strict_json
from optrand.base.strict_json import Document, fields, integer, integers, number, numbers
from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidFile, InvalidInput
from optrand.release.circumstances import Circumstances, RandomizerFile, TableFile
from optrand.release.estimates import Estimates
from optrand.sampling.priors import BudgetSplit

__all__ = [
    "FIELDS",
    "check_budget",
    "check_circumstances",
    "check_estimates",
    "check_files",
    "check_labels",
    "document",
    "read",
    "written",
]

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
    "relative_loss",
)

TASKS = ("regression", "classification")
ENTROPY = ("system", "keyed")
NULLS = ("refuse", "drop", "pass", "class")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UUID = re.compile(r"[0-9a-f]{32}")


def check_budget(epsilon: float, delta: float, parts: BudgetSplit, *, paid: bool) -> None:
    """Refuse a total that is not the sum of its parts, or a part for a prior that nobody `paid` for."""
    checked_epsilon(parts.labels, "the labels' part")
    if not 0 <= parts.prior < math.inf:
        raise InvalidInput(f"the prior's part is {parts.prior:g}, expected at least 0")
    if epsilon != parts.total:
        raise InvalidInput(f"the total is {epsilon!r}, which is not the sum of its parts, rounded up")
    if not 0 <= delta < 1:
        raise InvalidInput(f"delta is {delta:g}, expected a probability below 1")
    if paid != (parts.prior > 0):
        raise InvalidInput("a noisy histogram belongs to a record exactly where a part was spent on the prior")


def check_labels(rows: int, labels: Sequence[float], one_each: Mapping[str, Sequence[object] | None]) -> None:
    """Refuse labels that do not increase, and sequences without one entry for each of them."""
    if rows < 1:
        raise InvalidInput(f"the record counts {rows} row(s), expected at least one")
    if not labels or any(not low < high for low, high in pairwise(labels)):
        raise InvalidInput("the declared labels do not strictly increase")
    for name, found in one_each.items():
        if found is not None and len(found) != len(labels):
            raise InvalidInput(f"there are {len(found)} {name} for {len(labels)} labels")


def check_circumstances(around: Circumstances) -> None:
    """Refuse words that mean nothing."""
    for name, value, known in (
        ("task", around.task, TASKS),
        ("entropy", around.entropy, ENTROPY),
        ("nulls", around.nulls, NULLS),
    ):
        if value not in known:
            raise InvalidInput(f"{name} is {value[:40]!r}, expected one of {', '.join(known)}")
    if not _UUID.fullmatch(around.release):
        raise InvalidInput("the release is no UUID: expected 32 hexadecimal digits")


def check_estimates(found: Estimates) -> None:
    """Refuse errors that are none, or of counts that cannot be estimated."""
    errors = [found.label, found.mean or 0.0, found.multiple or 0.0, *(found.counts or ())]
    if not all(0 <= error < math.inf for error in errors):
        raise InvalidInput("a standard deviation is negative or no number")
    if found.counts is not None and not found.histogram:
        raise InvalidInput("there are errors of counts, and no histogram to be estimated")


def check_files(rows: int, table: TableFile | None, randomizers: Sequence[RandomizerFile], *, more: bool) -> None:
    """Refuse names that lead out of the folder, and a table of other than `rows` rows; it may have `more` if asked."""
    named = [(one.name, one.sha256) for one in randomizers]
    if table is not None:
        named.append((table.name, table.sha256))
        if table.rows < rows or (table.rows > rows and not more):
            raise InvalidInput(f"the table has {table.rows} rows and {rows} were drawn")
    for name, digest in named:
        path = PurePosixPath(name)
        if not path.name or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise InvalidInput("the name of a file leads out of the folder of the record")
        if not _SHA256.fullmatch(digest):
            raise InvalidInput(f"the SHA-256 of {name[:80]!r} is not 64 hexadecimal digits")


def document(values: Mapping[str, Any]) -> Document:
    """Content of a record, ready to be sealed, from the values of its fields."""
    found = {name: values[name] for name in FIELDS}
    for name in ("parts", "estimates", "circumstances", "table"):
        found[name] = None if found[name] is None else asdict(found[name])
    found["randomizers"] = [asdict(one) for one in found["randomizers"]]
    found["rows"] = str(found["rows"])
    if found["table"] is not None:
        found["table"]["rows"] = str(found["table"]["rows"])
    if found["noisy_counts"] is not None:
        found["noisy_counts"] = [str(count) for count in found["noisy_counts"]]
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
        "relative_loss": _optional(number)(content["relative_loss"], "relative_loss"),
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
