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
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: T201

Row = tuple[list[tuple[int, float, float]], str, float, float]
"""Entries (variable, value, power), the sense, and the bound as value and power."""

CONTEXT = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)

# The text of each field, with sorted names and without white space. Only bounds and multipliers keep the sign of 0.
FLOAT, PLACES = r"-?\d+(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+)", r'\[\d+,"-?[1-9]\d*"\]'
REAL, MANY = rf"(?!-0\.0\b){FLOAT}", r"\[(?:{0}(?:,{0})*+)?\]"
REALS, BOUNDS = MANY.format(REAL), MANY.format(FLOAT)
EPSILONS, TRIPLES = MANY.format(MANY.format(f'(?:{FLOAT}|"inf")')), MANY.format(rf"\[\d+,\d+,{FLOAT}\]")
PURE = rf'"epsilon":{REAL},"form":"(?:pairwise|floor)","kind":"Pure"|"epsilons":{EPSILONS},"kind":"Pairwise"'
REST = rf'"delta":{FLOAT},"epsilon":{REAL},"kind":"Approximate"|"epsilon":{REAL},"kind":"(?:Pointwise)?MaximalLeakage"'
LIMIT = rf'"kind":"Unbiased"|"bound":(?:{FLOAT}|{BOUNDS}),"kind":"(?:BiasAtMost|ProbabilityAtMost)"'
ADDED = rf'"bound":{BOUNDS},"coefficients":{TRIPLES},"name":"(?:[^"\\]|\\.)+","sense":"[<=>]="'
NOTIONS, LIMITS, ROWS = (MANY.format(rf"{{(?:{part})}}") for part in (f"{PURE}|{REST}", LIMIT, ADDED))
ASKED = rf'"constraints":{LIMITS},"labels":{REALS},"loss":{MANY.format(REALS)},"maximize":(?:true|false),'
ASKED += rf'"outputs":{REALS},"prior":{REALS},"privacy":{NOTIONS},"rows":{ROWS}'
SHAPE = {"format": r'"optrand\.program"', "schema": "1", "digest": ".*", "program": rf"{{{ASKED}}}", "outputs": REALS}
SHAPE |= {"columns": MANY.format(MANY.format(PLACES)), "multipliers": MANY.format(rf"\[\d+,{FLOAT}\]")}


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
    below, above = Fraction(CONTEXT.next_minus(value)), Fraction(CONTEXT.next_plus(value))
    return max(below, Fraction(power > 0)), above


def log_above(x: Fraction) -> float:
    """Return a float at least ``log(x)`` for ``x >= 1``, at most a few units in the last place above it."""
    found = math.log1p(float(x - 1))
    for _ in range(64):
        if x <= exp_bounds(found)[0]:
            return found
        found = math.nextafter(found, math.inf)
    return math.inf


def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Refuse one in which a field is given twice."""
    need(len(dict(pairs)) == len(pairs), "a field is given twice")
    return dict(pairs)


def parse(text: str) -> dict[str, Any]:
    """Return the document, if its fields have the right form and its digest is right."""
    try:
        document: dict[str, Any] = json.loads(text, object_pairs_hook=read_object)
        encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
        need(document.get("format") == "optrand.program", "not a mechanism of a program")
        need(document.get("schema") == 1, "written by a newer optrand: this checker knows schema 1")
        fields = {name: encode(part) for name, part in document.items()}
        digest = hashlib.sha256((encode({name: document[name] for name in {*document} - {"digest"}}) + "\n").encode())
    except (ValueError, AttributeError, RecursionError) as error:
        raise Refused(f"not JSON of finite numbers ({type(error).__name__})") from None
    need(document.get("digest") == f"sha256:{digest.hexdigest()}", "digest is not that of the content")
    wrong = [name for name in {*SHAPE, *fields} if not re.fullmatch(SHAPE.get(name, "(?!)"), fields.get(name, ""))]
    need(not wrong, f"missing, malformed or unknown: {', '.join(ascii(name[:40]) for name in sorted(wrong)[:5])}")
    return document


def pair_epsilons(notion: dict[str, Any], k: int) -> Iterator[tuple[int, int, float]]:
    """Yield ordered pairs of labels and their epsilons, for pure and pairwise privacy."""
    for y, z in itertools.product(range(k), repeat=2):
        epsilon = notion["epsilon"] if notion["kind"] == "Pure" else notion["epsilons"][y][z]
        if y == z:
            need(notion["kind"] == "Pure" or epsilon == 0, "an epsilon on the diagonal")
        elif epsilon != "inf":
            need(0 <= epsilon <= 700, "an epsilon out of range")
            yield y, z, epsilon


def privacy_rows(notion: dict[str, Any], k: int, n: int, start: int, prior: list[float]) -> tuple[int, list[Row]]:
    """Return the number of further variables, of which the first is `start`, and the rows of a notion of privacy."""
    kind, cells = notion["kind"], list(itertools.product(range(k), range(n)))
    if kind == "Pairwise" or (kind == "Pure" and notion["form"] == "pairwise"):
        # An epsilon of 0 makes two rows equal. These equations come last, one for each pair.
        pairs = [(y, z, e) for y, z, e in pair_epsilons(notion, k) if e or y < z or notion["epsilons"][z][y]]
        ends = [(y * n + o, z * n + o, e) for y, z, e in sorted(pairs, key=lambda pair: not pair[2]) for o in range(n)]
        return 0, [([(a, 1, 0), (b, -1, e)], "<=" if e else "==", 0, 0) for a, b, e in ends]
    epsilon = notion["epsilon"]
    if kind == "Pure":
        above: list[Row] = [([(start + o, 1, 0), (y * n + o, -1, 0)], "<=", 0, 0) for y, o in cells]
        return n, above + [([(y * n + o, 1, 0), (start + o, -1, epsilon)], "<=", 0, 0) for y, o in cells]
    if kind == "Approximate":
        pairs_of = enumerate(itertools.permutations(range(k), 2))
        each = [(y * n + o, z * n + o, start + at * n + o) for at, (y, z) in pairs_of for o in range(n)]
        rows: list[Row] = [([(a, 1, 0), (b, -1, epsilon), (c, -1, 0)], "<=", 0, 0) for a, b, c in each]
        starts = range(start, start + len(each), n)
        return len(each), rows + [([(i + o, 1, 0) for o in range(n)], "<=", notion["delta"], 0) for i in starts]
    if kind == "MaximalLeakage":
        largest: list[Row] = [([(y * n + o, 1, 0), (start + o, -1, 0)], "<=", 0, 0) for y, o in cells]
        return n, [*largest, ([(start + o, 1, 0) for o in range(n)], "<=", 1, epsilon)]
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
        # An output less a label may be no float: it is the sum of two coefficients.
        apart = {y: [*means[y], *((y * n + o, -labels[y], 0) for o in range(n))] for y in range(k) if each[y]}
        none: list[Row] = [(means[y], "==", labels[y], 0) for y in range(k) if not each[y]]
        above: list[Row] = [(entries, "<=", each[y], 0) for y, entries in apart.items()]
        return none + above + [(entries, ">=", -each[y], 0) for y, entries in apart.items()]
    caps = bound if isinstance(bound, list) else [bound] * n
    need(len(caps) == n and all(0 <= cap <= 1 for cap in caps), "bounds of probabilities that do not fit the outputs")
    return [([(y * n + o, 1, 0)], "<=", caps[o], 0) for y in range(k) for o in range(n)]


def read_rows(block: dict[str, Any], cells: int) -> list[Row]:
    """Read the rows that a user added to the program."""
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
    kind, columns, table = notion["kind"], list(zip(*rows, strict=True)), notion.get("epsilons", [rows] * len(rows))
    need({len(table), *map(len, table)} == {len(rows)}, "epsilons that do not fit the labels")
    need(0 < notion.get("epsilon", 1.0) <= 700 and 0 <= notion.get("delta", 0.0) < 1, "a budget out of range")
    if kind in ("Pure", "Pairwise"):
        most = 0.0
        for y, z, epsilon in pair_epsilons(notion, len(rows)):
            need(all(b > 0 or a == 0 for a, b in zip(rows[y], rows[z], strict=True)), "not private: an infinite ratio")
            ratio = max([Fraction(1), *(a / b for a, b in zip(rows[y], rows[z], strict=True) if a)])
            need(ratio <= exp_bounds(epsilon)[0], "not private: a ratio is too large")
            spent = log_above(ratio)
            most = max(most, spent if kind == "Pure" else spent / epsilon if epsilon else 0.0)
        return most
    low = exp_bounds(notion["epsilon"])[0]
    if kind == "Approximate":
        pairs = itertools.permutations(rows, 2)
        excess = [sum(max(Fraction(0), a - low * b) for a, b in zip(*pair, strict=True)) for pair in pairs]
        delta = Fraction(max(excess, default=0))
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
    need(max(map(abs, labels)) <= 1e150 and (k == 1 or labels[-1] - labels[0] >= 1e-150), "labels out of range")
    need(all(p == 0 or p >= sys.float_info.min for p in prior), "a probability is negative, or too small")
    need(abs(math.fsum(prior) - 1) <= 1e-9, "the prior must sum to 1")
    rows = read_table(document, k, outputs)
    point = [p for row in rows for p in row]
    cells, plain = k * n, [row for part in program["constraints"] for row in constraint_rows(part, labels, outputs)]
    need(len({block["name"] for block in program["rows"]}) == len(program["rows"]), "rows of one name")
    added = [row for block in program["rows"] for row in read_rows(block, cells)]
    for row in plain + added:
        need(keeps(row, point), "the table breaks a row of the program")
    facts = [(notion["kind"], measure(notion, rows, prior)) for notion in program["privacy"]]
    variables, private = cells, list[Row]()
    for notion in program["privacy"]:
        more, found = privacy_rows(notion, k, n, variables, prior)
        variables, private = variables + more, private + found
    every: list[Row] = [([], "==", 1.0, 0)] * k + plain + private + added
    sign = -1 if program["maximize"] else 1
    cost = [sign * Fraction(p * g) for p, line in zip(prior, loss, strict=True) for g in line]
    value = sum((c * x for c, x in zip(cost, point, strict=True)), Fraction(0))
    pairs = document["multipliers"]
    need(all(a < b for (a, _), (b, _) in itertools.pairwise(pairs)), "multipliers out of order")
    bound = lower_bound(cost + [Fraction(0)] * (variables - cells), every, dict(pairs), sign, n, cells)
    gap = max(Fraction(0), value - bound) / (abs(value) or 1)
    return SimpleNamespace(value=sign * value, bound=sign * bound, gap=gap, maximised=sign < 0, facts=facts)


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
    return total + sum(min(cost[y : y + n]) for y in range(0, cells, n)) + sum(c for c in cost[cells:] if c < 0)


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
