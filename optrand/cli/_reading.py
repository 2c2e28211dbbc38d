"""Options, declarations and files of users: labels, priors, outputs, losses, numbers, records.

Numbers are the floats nearest to the written decimals.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import optrand
from optrand.base._numerals import format_above, read_decimal, read_number, read_whole
from optrand.base._strict_json import read_format
from optrand.base._suggestions import missing
from optrand.base._validation import MAX_INTEGER, Floats, check_epsilon, check_labels, freeze_array
from optrand.cli._console import add_members, note, show
from optrand.errors import InvalidFile, InvalidInput
from optrand.losses import Tabulated
from optrand.model._problem import Grid, Interval, Line, OutputSet

if TYPE_CHECKING:
    from optrand.programs._mechanism import ProgramMechanism
    from optrand.release._record import ReleaseRecord


def option(spelled: str, help_: str) -> Any:
    """Return an option that is spelled as in ``--output -o FILE``."""
    *names, metavar = spelled.split()
    return typer.Option(*names, metavar=metavar, help=help_)


LABEL_FORMS = "LOW:HIGH[:STEP] (both ends included), a list such as 1,2.5,7, or @FILE."
OUTPUT_FORMS = "line, interval:LOW:HIGH, values:1,2.5,7, or grid:N for N evenly spaced outputs"

Labels = Annotated[str, option("--labels SET", f"All numbers that can occur: {LABEL_FORMS}")]
Epsilon = Annotated[str, option("--epsilon NATS", "Privacy budget, above 0 and at most 700.")]
Prior = Annotated[
    Path, option("--prior FILE", "CSV of two columns, label and count (or probability). It must be PUBLIC.")
]
Outputs = Annotated[str, option("--outputs SET", f"Where outputs may lie: {OUTPUT_FORMS}.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Saved = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release, OUT.release.json.")
]
LedgerName = Annotated[
    str | None,
    option(
        "--ledger FILE|URL",
        "Ledger: a file, by default $XDG_STATE_HOME/optrand/ledger.sqlite, or postgresql://USER@HOST/DATABASE.",
    ),
]


def parse_labels(text: str) -> Floats:
    """Parse declared numbers, and return them in increasing order.

    ``LOW:HIGH`` (steps of 1), ``LOW:HIGH:STEP`` (both ends included), a list ``1,2.5,7``, or ``@FILE`` with labels
    separated by commas or line ends.
    """
    return np.sort(parse_in_order(text))


def parse_in_order(text: str) -> Floats:
    """Parse distinct numbers in the forms of :func:`parse_labels`, in the written order."""
    if ":" in text and not text.startswith("@"):
        numbers = _range(text)
    else:
        whose = text[1:] if text.startswith("@") else "the list"
        # A file may have blank lines.
        listed = [(i, token) for i, token in enumerate(_tokens(text), 1) if token or not text.startswith("@")]
        numbers = [read_decimal(token, f"entry {i} of {whose}") for i, token in listed]
    if any(each.denominator == 1 and abs(each) > MAX_INTEGER for each in numbers):
        raise InvalidInput("labels hold integers beyond 2**53, which floats cannot distinguish: rescale them")
    return check_labels([float(each) for each in numbers])


def _range(text: str) -> list[Fraction]:
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise InvalidInput(f"labels {text!r} have {len(parts)} parts, expected LOW:HIGH or LOW:HIGH:STEP")
    low, high = (read_decimal(part, f"an end of {text!r}") for part in parts[:2])
    step = read_decimal(parts[2], f"the step of {text!r}") if len(parts) == 3 else Fraction(1)
    if low > high:
        raise InvalidInput(f"labels {text!r} run downwards: write the lower end first, {parts[1]}:{parts[0]}")
    if step <= 0:
        raise InvalidInput(f"labels {text!r} have a step that is not above 0")
    steps = (high - low) / step
    if steps.denominator != 1:
        raise InvalidInput(f"labels {text!r} do not reach their high end in whole steps: choose another end or step")
    # A longer range is more likely a mistake than a set that a solver can handle.
    most = 100_000
    if steps >= most:
        raise InvalidInput(f"labels {text!r} are {steps + 1} labels, expected at most {most}: use a larger step")
    return [low + i * step for i in range(int(steps) + 1)]


def parse_declared(text: str, task: str | None = None) -> Floats | tuple[str, ...]:
    """Parse declared labels, numbers or names, in the written order.

    Numbers have the forms of :func:`parse_labels`. Names are separated by commas, and quoted as in CSV if they hold
    one, or stand on the lines of ``@FILE``, unquoted. Without a `task` labels are numbers if all are, and names if none
    is, or if one has a leading zero, as a postal code does.
    """
    if ":" in text and "," not in text and not text.startswith("@"):
        numbers = parse_in_order(text)
        names = tuple(repr(label).removesuffix(".0") for label in numbers.tolist())
        return names if task == "classification" else numbers
    if task is not None:
        return _parse_names(text) if task == "classification" else parse_in_order(text)
    tokens = [token for token in _tokens(text) if token]
    if any(re.fullmatch("[+-]?0[0-9]+", token) for token in tokens):
        note("labels with a leading zero are taken as names: write numbers without it")
        return _parse_names(text)
    count = sum(map(_is_number, tokens))
    if 0 < count < len(tokens):
        raise InvalidInput(
            f"{count} of {len(tokens)} declared labels are numbers, and the others are not: correct them. randomize "
            "takes all of them as names with --task classification"
        )
    return parse_in_order(text) if count == len(tokens) else _parse_names(text)


def _tokens(text: str) -> list[str]:
    listed = _text(text[1:]).replace("\n", ",") if text.startswith("@") else text
    return [token.strip() for token in listed.split(",")]


def _parse_names(text: str) -> tuple[str, ...]:
    if text.startswith("@"):
        # splitlines would split a name at U+2028.
        names = [line.removesuffix("\r") for line in _text(text[1:]).split("\n")]
        names = [name for name in names if name]
    else:
        names = _cells(text, "labels")
        range_of = re.fullmatch(r"\s*([0-9.]+)\s*(?:-|\.\.|to)\s*([0-9.]+)\s*", text)
        if range_of is not None:
            raise InvalidInput(
                f"labels {text!r} would be a single name: write the range of numbers as {':'.join(range_of.groups())}"
            )
    if not names or not all(names):
        raise InvalidInput("a label has an empty name: missing labels are declared by --nulls class, not by a name")
    return tuple(names)


def parse_columns(text: str | None, name: str) -> tuple[str, ...]:
    return () if text is None else tuple(_cells(text, name))


def join_columns(names: Iterable[str]) -> str:
    """Return names of columns in a line, those that hold a comma in quotes as in CSV."""
    quoted = ('"' + name.replace('"', '""') + '"' if {",", '"', "\n", "\r"} & set(name) else name for name in names)
    return ", ".join(quoted)


def _cells(text: str, what: str) -> list[str]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        rows = []
    if len(rows) != 1:
        raise InvalidInput(f"{what} is not a single line of names separated by commas, with quotes as in CSV")
    return rows[0]


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_prior(path: str | os.PathLike[str], labels: Floats | tuple[str | None, ...]) -> Floats:
    """Read a prior from two columns, a label and its count or probability, and note that it is taken as public.

    Rows are in any order, with or without a header (two cells that are neither number nor label). Return probabilities
    in the order of the labels, 0 for those that the file omits. None stands for missing labels, whose name is empty.
    """
    names = labels if isinstance(labels, tuple) else None
    places: dict[object, int] = {label or "": i for i, label in enumerate(names)} if names is not None else {}
    places = places or {label: i for i, label in enumerate(np.asarray(labels).tolist())}
    rows = _rows(path)
    if rows and len(rows[0][1]) == 2 and not any(map(_is_number, rows[0][1])) and rows[0][1][0] not in places:
        rows = rows[1:]
    weights: dict[int, Fraction] = {}
    for line, row in rows:
        where = f"line {line} of {path}"
        if len(row) != 2:
            other = next((sign for sign in "\t;|" if row[0].count(sign) == 1), None) if len(row) == 1 else None
            separated = "separated by a comma" + ("" if other is None else f", not by {other!r}")
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise InvalidInput(f"{where} has {cells}, expected two {separated}: a label and a count or probability")
        label = row[0] if names is not None else float(read_decimal(row[0].strip(), f"the label in {where}"))
        weight = read_decimal(row[1].strip(), f"the count in {where}")
        place = places.get(label)
        if place is None or place in weights:
            raise InvalidInput(f"the label in {where} {'comes twice' if place is not None else 'is not declared'}")
        if weight < 0:
            raise InvalidInput(f"the count in {where} is negative, expected a count or a probability")
        weights[place] = weight
    total = sum(weights.values())
    if not total:
        raise InvalidInput(f"{path} holds no count above 0, expected a label and a count or probability on each line")
    note(f"{path} is taken as public: if it was computed from private labels, use `optrand randomize`")
    if len(weights) < len(places):
        note(f"{len(places) - len(weights)} label(s) are not in {path}: their prior is 0")
    return freeze_array([float(weights.get(i, Fraction(0)) / total) for i in range(len(places))])


def _is_number(token: str) -> bool:
    try:
        Decimal(token.strip())
    except InvalidOperation:
        return False
    return True


def _rows(path: str | os.PathLike[str]) -> list[tuple[int, list[str]]]:
    try:
        rows = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
        return [(line, row) for line, row in enumerate(rows, 1) if row]
    except csv.Error:
        raise InvalidInput(f"{path} is misquoted, or a cell is too long: expected comma-separated text") from None


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError):
        state = "not readable" if Path(path).is_file() else missing(Path(path))
        raise InvalidInput(f"{path} cannot be read, it is {state}: expected a file of UTF-8 text") from None


def read_loss(path: str | os.PathLike[str]) -> Tabulated:
    """Read a loss from a CSV file: a row for each label and a column for each output, both in increasing order."""
    rows = [row for _, row in _rows(path)]
    if not rows or len({len(row) for row in rows}) > 1:
        raise InvalidInput(f"{path} has rows of several lengths, or none: expected a number for each output")
    entries = [
        [float(read_decimal(cell.strip(), f"a cell in row {i} of {path}")) for cell in row]
        for i, row in enumerate(rows, 1)
    ]
    return Tabulated(np.array(entries))


def parse_outputs(text: str) -> OutputSet | int:
    """Parse the allowed outputs: ``line``, ``grid:N``, ``interval:LOW:HIGH`` or ``values:`` and a set as for labels."""
    kind, *parts = text.split(":")
    if kind == "line" and not parts:
        return Line()
    if kind == "grid" and len(parts) == 1 and (n := read_whole(parts[0])) is not None:
        return n
    if kind == "values" and parts:
        return Grid(parse_labels(":".join(parts)))
    if kind == "interval" and len(parts) == 2:
        ends = (read_number(end, f"an end of the outputs {text!r}", "a number such as -10 or 62.5") for end in parts)
        return Interval(*ends)
    if kind == "adaptive":
        raise InvalidInput(
            f"outputs are {text!r}, which optrand solve places for one prior: here name them, values:1,2.5,7"
        )
    raise InvalidInput(
        f"outputs are {text!r}, expected line, grid:N such as grid:417, interval:LOW:HIGH, or values:1,2.5,7"
    )


def parse_epsilon(text: str, name: str = "--epsilon") -> float:
    return check_epsilon(read_number(text, name, "a number above 0 (nats)"), name)


def parse_penalty(text: str, name: str = "--bias-penalty") -> float:
    return math.inf if text == "inf" else _parse_from_zero(text, name, "a number from 0 to inf")


def parse_gap(text: str, name: str = "--gap") -> float:
    return _parse_from_zero(text, name, "a share of at least 0, such as 1e-6")


def _parse_from_zero(text: str, name: str, expected: str) -> float:
    if (found := read_number(text, name, expected)) < 0:
        raise InvalidInput(f"{name} is {text!r}, expected {expected}")
    return found + 0.0


def parse_several(text: str, name: str, one: Callable[[str, str], float]) -> list[float]:
    """Parse numbers separated by commas, each by `one`, and ranges ``LOW:HIGH:N`` of `N` evenly spaced ones."""
    found: list[float] = []
    most = 10_000
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            found.append(one(part, name))
            continue
        count = read_whole(ends[2]) if len(ends) == 3 else None
        if count is None or not 2 <= count <= most:
            raise InvalidInput(f"{name} holds {part!r}, expected LOW:HIGH:N with a whole N from 2 to {most}")
        low, high = (one(end, name) for end in ends[:2])
        if not low < high < math.inf:
            raise InvalidInput(f"{name} holds {part!r}, expected a finite range that runs upwards")
        found += [low + (high - low) * i / (count - 1) for i in range(count - 1)] + [high]
    return found


def read_saved(path: Path) -> optrand.Mechanism | ProgramMechanism | ReleaseRecord:
    """Read a file by the format that it states, and verify it."""
    from optrand.release import FORMAT

    if not path.is_file():
        raise InvalidInput(f"{path} is {missing(path)}: expected a saved mechanism or the record of a release")
    data = path.read_bytes()
    try:
        kind = read_format(data)
    except InvalidFile:
        kind = None
    if kind is None:
        raise InvalidFile(f"{path} is neither a saved mechanism nor the record of a release")
    if kind == FORMAT:
        # Imported here, since it needs the extra `release` and a mechanism does not.
        from optrand.release._record import ReleaseRecord

        return ReleaseRecord.from_bytes(data)
    if kind == f"{FORMAT}s":
        names = list(optrand.load_release(path).columns)
        raise InvalidInput(
            f"{path} is the record of several columns, {', '.join(map(repr, names))}: save that of one in Python, "
            f"optrand.load_release(path)[{names[0]!r}].save(...), and name its file"
        )
    return optrand.load(path)


def read_mechanism(path: Path) -> optrand.Mechanism:
    found = read_saved(path)
    if not isinstance(found, optrand.Mechanism):
        raise InvalidFile(f"{path} is not an optrand mechanism: expected one that was saved by optrand solve")
    return found


def read_record(path: Path) -> ReleaseRecord:
    from optrand.release._record import ReleaseRecord

    found = read_saved(path)
    if not isinstance(found, ReleaseRecord):
        raise InvalidInput(f"{path} is not a record of one release: expected OUT.release.json, the file beside OUT")
    return found


def record_facts(record: ReleaseRecord) -> dict[str, object]:
    """Return the facts of a release that every command prints. All of them are public."""
    parts = record.parts
    add_members(prior_epsilon=parts.prior, labels_epsilon=parts.labels)
    total = f"{record.epsilon!r}: prior {parts.prior!r}, labels {parts.labels!r}"
    facts: dict[str, object] = {"total epsilon": (record.epsilon, total), "rows": record.rows}
    if record.groups:
        facts["groups"] = f"{len(record.mechanisms)} by {join_columns(record.groups)}"
    return facts


def loss_by_groups(share: float) -> tuple[float, str]:
    return (share, f"{format_above(share, 4)} of that of one randomizer for all groups")


def show_total(subject: optrand.Mechanism | ReleaseRecord) -> None:
    """Print the total epsilon of a release. A mechanism alone has none."""
    if not isinstance(subject, optrand.Mechanism):
        show({"total epsilon": record_facts(subject)["total epsilon"]})
