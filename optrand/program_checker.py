"""Verify a saved mechanism of a linear program with the standard library alone.

``python program_checker.py mechanism.json`` reads a file of ``ProgramMechanism.save``: a program (labels, prior,
outputs, loss, notions of privacy, constraints, further rows), a table of integers, and multipliers of the program's
rows. It passes if the table keeps every row and every notion of privacy, decided in fractions. Then come the exact
objective and a bound of it. Exit code: 0 the file passes, 3 it does not, 2 it cannot be read.

The bound. Let a minimisation have rows A x <= b (or >=, ==), rows of the table that are distributions, and further
variables s from 0 to 1. For multipliers d with the signs of their rows every feasible x has

    c x = d (A x) + (c - d A) x
       >= d b + sum over labels of the least entry of (c - d A) + sum over s of min(0, c - d A).

Multipliers of a wrong sign count as 0. For the bound, a coefficient ``value * exp(power)`` is rounded to relax its row.
"""

import decimal
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: T201

Row = tuple[list[tuple[int, float, float]], str, float, float]
"""Entries (variable, value, power), the sense, and the bound as value and power."""

CONTEXT = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


class Refused(Exception):
    """The file is not a mechanism that keeps its program, for the reason in the message."""


def need(condition: bool, message: str) -> None:
    """Raise Refused unless a condition holds."""
    if not condition:
        raise Refused(message)


@lru_cache(maxsize=1 << 16)
def exp_bounds(power: float) -> tuple[Fraction, Fraction]:
    """Return fractions below and above ``exp(power)``: the neighbours of decimal's exp, which is rounded correctly."""
    if power == 0:
        return Fraction(1), Fraction(1)
    value = CONTEXT.exp(decimal.Decimal(power))
    return Fraction(CONTEXT.next_minus(value)), Fraction(CONTEXT.next_plus(value))


def log_above(x: Fraction) -> float:
    """Return a float at least ``log(x)`` for ``x >= 1``, at most a few units in the last place above it."""
    found = math.log1p(float(x - 1))
    for _ in range(64):
        if found >= 0 and x <= exp_bounds(found)[0]:
            return found
        found = math.nextafter(max(found, 0.0), math.inf)
    return math.inf


def parse(text: str) -> dict[str, Any]:
    """Return the document, if its text is canonical and its digest is right."""
    try:
        document: dict[str, Any] = json.loads(text)
        encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
        need(document.get("format") == "optrand.program", "not a mechanism of a program")
        need(document.get("schema") == 1, "written by a newer optrand: this checker knows schema 1")
        need(encode(document) + "\n" == text, "not written as optrand writes it")
        content = {name: part for name, part in document.items() if name != "digest"}
        digest = hashlib.sha256((encode(content) + "\n").encode()).hexdigest()
    except (ValueError, AttributeError, RecursionError) as error:
        raise Refused(f"not JSON of finite numbers ({type(error).__name__})") from None
    need(document.get("digest") == f"sha256:{digest}", "digest is not that of the content")
    need(
        set(document) == {"columns", "digest", "format", "multipliers", "outputs", "program", "schema"},
        "unknown fields",
    )
    return document


def pair_epsilons(notion: dict[str, Any], k: int) -> Iterator[tuple[int, int, float]]:
    """Yield ordered pairs of labels and their epsilons, for pure and pairwise privacy."""
    for y, z in itertools.product(range(k), repeat=2):
        epsilon = notion["epsilon"] if notion["kind"] == "Pure" else notion["epsilons"][y][z]
        if y == z:
            need(notion["kind"] == "Pure" or epsilon == 0, "an epsilon on the diagonal")
        elif epsilon != "inf":
            need(isinstance(epsilon, float) and 0 <= epsilon <= 700, "an epsilon out of range")
            yield y, z, epsilon


def privacy_rows(notion: dict[str, Any], k: int, n: int, start: int, prior: list[float]) -> tuple[int, list[Row]]:
    """Return the number of further variables, of which the first is `start`, and the rows of a notion of privacy."""
    kind, cells = notion["kind"], list(itertools.product(range(k), range(n)))
    if kind == "Pairwise" or (kind == "Pure" and notion["form"] == "pairwise"):
        pairs = list(pair_epsilons(notion, k))
        return 0, [([(y * n + o, 1, 0), (z * n + o, -1, e)], "<=", 0, 0) for y, z, e in pairs for o in range(n)]
    epsilon = notion["epsilon"]
    need(isinstance(epsilon, float) and 0 < epsilon <= 700, "an epsilon out of range")
    if kind == "Pure":
        need(notion["form"] == "floor", "an unknown form of privacy")
        above: list[Row] = [([(start + o, 1, 0), (y * n + o, -1, 0)], "<=", 0, 0) for y, o in cells]
        return n, above + [([(y * n + o, 1, 0), (start + o, -1, epsilon)], "<=", 0, 0) for y, o in cells]
    if kind == "Approximate":
        pairs_of = list(itertools.permutations(range(k), 2))
        rows: list[Row] = [
            ([(y * n + o, 1, 0), (z * n + o, -1, epsilon), (start + at * n + o, -1, 0)], "<=", 0, 0)
            for at, (y, z) in enumerate(pairs_of)
            for o in range(n)
        ]
        need(0 <= notion["delta"] < 1, "a delta out of range")
        sums: list[Row] = [
            ([(start + at * n + o, 1, 0) for o in range(n)], "<=", notion["delta"], 0) for at in range(len(pairs_of))
        ]
        return len(pairs_of) * n, rows + sums
    if kind == "MaximalLeakage":
        largest: list[Row] = [([(y * n + o, 1, 0), (start + o, -1, 0)], "<=", 0, 0) for y, o in cells]
        return n, [*largest, ([(start + o, 1, 0) for o in range(n)], "<=", 1, epsilon)]
    need(kind == "PointwiseMaximalLeakage", "an unknown notion of privacy")
    averages = {o: [(z * n + o, -prior[z], epsilon) for z in range(k)] for o in range(n)}
    return 0, [([(y * n + o, 1, 0), *averages[o]], "<=", 0, 0) for y, o in cells]


def constraint_rows(part: dict[str, Any], labels: list[float], outputs: list[float]) -> list[Row]:
    """Return the rows of a constraint."""
    k, n, kind = len(labels), len(outputs), part["kind"]
    means: list[list[tuple[int, float, float]]] = [[(y * n + o, v, 0) for o, v in enumerate(outputs)] for y in range(k)]
    if kind == "Unbiased":
        return [(means[y], "==", labels[y], 0) for y in range(k)]
    bound = part["bound"]
    if kind == "BiasAtMost":
        each = bound if isinstance(bound, list) else [bound] * k
        need(len(each) == k and min(each) >= 0, "bounds of biases that do not fit the labels")
        if not any(each):
            return [(means[y], "==", labels[y], 0) for y in range(k)]
        above: list[Row] = [(means[y], "<=", labels[y] + each[y], 0) for y in range(k)]
        return above + [(means[y], ">=", labels[y] - each[y], 0) for y in range(k)]
    need(kind == "ProbabilityAtMost", "an unknown constraint")
    caps = bound if isinstance(bound, list) else [bound] * n
    need(len(caps) == n, "bounds of probabilities that do not fit the outputs")
    return [([(y * n + o, 1, 0)], "<=", caps[o], 0) for y in range(k) for o in range(n)]


def read_rows(block: dict[str, Any], cells: int) -> list[Row]:
    """Read the rows that a user added to the program."""
    need(block["sense"] in ("<=", "==", ">="), "an unknown sense of a row")
    rows: list[Row] = [([], block["sense"], bound, 0) for bound in block["bound"]]
    places = [(i, j) for i, j, _ in block["coefficients"]]
    need(all(a < b for a, b in itertools.pairwise(places)), "coefficients out of order")
    for i, j, value in block["coefficients"]:
        need(value != 0 and 0 <= j < cells and 0 <= i < len(rows), "a coefficient without a place")
        rows[i][0].append((j, value, 0))
    return rows


def coefficient(value: float, power: float, up: bool) -> Fraction:
    """Return ``value * exp(power)`` rounded in a direction."""
    return Fraction(value) * exp_bounds(float(power))[(value > 0) == up]


def keeps(row: Row, point: list[Fraction]) -> bool:
    """Decide whether a point over the table keeps a row without exponentials."""
    entries, sense, bound, _ = row
    left, right = sum((Fraction(v) * point[j] for j, v, _ in entries), Fraction(0)), Fraction(bound)
    return {"<=": left <= right, ">=": left >= right, "==": left == right}[sense]


def measure(notion: dict[str, Any], rows: list[list[Fraction]], prior: list[float]) -> float:
    """Measure a table by the notion's own number, rounded up. Refuse a table that does not keep the notion."""
    kind, columns = notion["kind"], list(zip(*rows, strict=True))
    if kind in ("Pure", "Pairwise"):
        most = 0.0
        for y, z, epsilon in pair_epsilons(notion, len(rows)):
            need(all(b > 0 or a == 0 for a, b in zip(rows[y], rows[z], strict=True)), "not private: an infinite ratio")
            ratio = max([Fraction(1), *(a / b for a, b in zip(rows[y], rows[z], strict=True) if a)])
            need(ratio <= exp_bounds(epsilon)[0] or (epsilon == 0 and ratio == 1), "not private: a ratio is too large")
            spent = log_above(ratio)
            most = max(most, spent if kind == "Pure" else spent / epsilon if epsilon else 0.0)
        return most
    low = exp_bounds(notion["epsilon"])[0]
    if kind == "Approximate":
        pairs = itertools.permutations(rows, 2)
        zero = Fraction(0)
        excess = [sum((max(zero, a - low * b) for a, b in zip(*pair, strict=True)), zero) for pair in pairs]
        delta = max(excess, default=zero)
        need(delta <= Fraction(notion["delta"]), "not private: delta is too large")
        return up(delta)
    if kind == "MaximalLeakage":
        leakage = sum(map(max, columns), Fraction(0))
    else:
        averages = [sum(Fraction(p) * m for p, m in zip(prior, column, strict=True)) for column in columns]
        used = [(max(column), average) for column, average in zip(columns, averages, strict=True) if any(column)]
        need(all(average > 0 for _, average in used), "leakage: an output without probability under the prior")
        leakage = max(top / average for top, average in used)
    need(leakage <= low, "the leakage is too large")
    return log_above(leakage)


def up(x: Fraction) -> float:
    """Return the least float that is at least `x`."""
    near = float(x)
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def check(text: str) -> SimpleNamespace:
    """Return the facts of a saved mechanism of a program, or raise Refused."""
    document = parse(text)
    try:
        return examine(document)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
        raise Refused(f"malformed: {type(error).__name__}") from error


def examine(document: dict[str, Any]) -> SimpleNamespace:
    """Check the table against the program, and compute objective and bound."""
    program = document["program"]
    labels, prior, outputs, loss = (program[name] for name in ("labels", "prior", "outputs", "loss"))
    k, n = len(labels), len(outputs)
    for numbers in (labels, outputs, document["outputs"]):
        need(all(a < b for a, b in itertools.pairwise(numbers)), "labels and outputs must increase")
    need(len(prior) == k == len(loss) and all(len(row) == n for row in loss), "prior or loss do not fit")
    need(
        max(map(abs, labels)) <= 1e150 and (k == 1 or labels[-1] - labels[0] >= 1e-150), "labels beyond 1e-150 to 1e150"
    )
    need(
        all(p == 0 or p >= sys.float_info.min for p in prior) and abs(math.fsum(prior) - 1) <= 1e-9,
        "the prior must sum to 1",
    )
    rows = read_table(document, k, outputs)
    point = [p for row in rows for p in row]
    cells, plain = k * n, [row for part in program["constraints"] for row in constraint_rows(part, labels, outputs)]
    added = [row for block in program["rows"] for row in read_rows(block, cells)]
    for row in plain + added:
        need(keeps(row, point), "the table breaks a row of the program")
    facts = [(notion["kind"], measure(notion, rows, prior)) for notion in program["privacy"]]
    variables, private = cells, list[Row]()
    for notion in program["privacy"]:
        more, found = privacy_rows(notion, k, n, variables, prior)
        variables, private = variables + more, private + found
    sums: list[Row] = [([], "==", 1.0, 0)] * k
    every = sums + plain + private + added
    sign = -1 if program["maximize"] else 1
    cost = [sign * Fraction(p * g) for p, line in zip(prior, loss, strict=True) for g in line]
    value = sum((c * x for c, x in zip(cost, point, strict=True)), Fraction(0))
    bound = lower_bound(cost + [Fraction(0)] * (variables - cells), every, read_multipliers(document), sign, n, cells)
    gap = max(Fraction(0), value - bound) / (abs(value) or 1)
    return SimpleNamespace(value=sign * value, bound=sign * bound, gap=gap, maximised=sign < 0, facts=facts)


def read_multipliers(document: dict[str, Any]) -> dict[int, float]:
    """Return the multipliers that are not 0, by the numbers of their rows."""
    pairs = document["multipliers"]
    need(all(a < b for (a, _), (b, _) in itertools.pairwise(pairs)), "multipliers out of order")
    return dict(pairs)


def read_table(document: dict[str, Any], k: int, outputs: list[float]) -> list[list[Fraction]]:
    """Return the probabilities of all outputs of the program, one row per label."""
    need(len(document["columns"]) == len(document["outputs"]), "columns do not fit the outputs")
    weights = [[0] * len(outputs) for _ in range(k)]
    for v, column in zip(document["outputs"], document["columns"], strict=True):
        o, height, steps = outputs.index(v), 0, dict(column)
        need(all(a < b for (a, _), (b, _) in itertools.pairwise(column)), "steps of a column out of order")
        need(column and set(steps) <= set(range(k)) and "0" not in steps.values(), "steps of a column without a label")
        for y in range(k):
            height += int(steps.get(y, "0"))
            need(height >= 0, "a weight is negative")
            weights[y][o] = height
    totals = {sum(row) for row in weights}
    need(len(totals) == 1 and min(totals) > 0, "rows have different totals")
    return [[Fraction(w, sum(row)) for w in row] for row in weights]


def lower_bound(
    cost: list[Fraction], rows: list[Row], multipliers: dict[int, float], sign: int, n: int, cells: int
) -> Fraction:
    """Return the bound of the minimisation by multipliers of its rows."""
    need(all(0 <= i < len(rows) and d for i, d in multipliers.items()), "a multiplier without a row")
    total = Fraction(0)
    for i, stated in multipliers.items():
        entries, sense, bound, power = rows[i]
        price = sign * Fraction(stated)
        if i < cells // n or not price or (sense != "==" and (price > 0) != (sense == ">=")):
            continue
        larger = sense == ">="
        total += price * coefficient(bound, power, not larger)
        for j, value, exponent in entries:
            cost[j] -= price * coefficient(value, exponent, larger)
    least: Callable[[int], Fraction] = lambda y: min(cost[y : y + n])  # noqa: E731
    return total + sum(least(y) for y in range(0, cells, n)) + sum(c for c in cost[cells:] if c < 0)


def main(arguments: list[str] | None = None) -> int:
    """Check the file that the arguments name, print the verified facts and return the exit code."""
    try:
        report = check(Path(*(arguments or sys.argv[1:])).read_text(encoding="utf-8"))
    except (Refused, OSError, UnicodeDecodeError) as error:
        print(f"REFUSED           {error}")
        return 3 if isinstance(error, Refused) else 2
    for name, number in report.facts:
        print(f"{name:17} kept, at most {number!r}")
    sign = -1 if report.maximised else 1
    print(f"value             {sign * up(sign * report.value)!r}")
    print(f"bound             {-sign * up(-sign * report.bound)!r}, {'at most' if sign < 0 else 'at least'}")
    print(f"gap               {up(report.gap)!r}, {'relative' if report.value else 'absolute'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
