"""Verify a saved mechanism (``python checker.py weeks.json``) with the standard library alone.

A file passes if it is well formed, its digest is right and its table is epsilon-DP: positive integers, one total for
all rows, no column with a ratio above exp(epsilon). A column is written as its steps: from which label on it is higher,
and by how much. Then come, in fractions, loss, biases and a lower bound of the loss of every epsilon-DP mechanism. Exit
code: 0 it passes, 3 it does not, 2 it cannot be read.

The bound. Let h_y(v) = p_y g(v, y) - alpha_y - beta_y (v - origin), and f(v) the least sum of s_y h_y(v) over 1 <= s_y
<= E, which is sum h + (E-1) sum min(h, 0). An epsilon-DP table is a mixture of columns c s with s_y in {1, E}, not all
1. Each adds at least c f(v) to the sum of M[y, v] h_y(v). So, as rows sum to 1, with the biases b_y = E[v] - y,

    loss >= sum alpha + sum beta_y (y - origin) + sum (beta_y b_y + lam p_y b_y^2 / 2) + sum of c f(v)

and the third sum is at least -sum beta_y^2 / (2 lam p_y), or 0 if bias is forbidden (lam infinite). The c sum to at
least 1/E (a row sums to 1) and at most k/(E+k-1) (the table sums to k). E is rounded up, which only adds mechanisms,
and so are logarithms: where bisection finds a convex h_y negative it is below their error w_y, elsewhere at least 0.
"""

import hashlib
import json
import math
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from operator import add, mul, sub
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: T201
# Pattern of each field's text, names sorted and without white space. It matches empty text if the field is optional.
REAL, DIGITS = r"(?!-0\.0\b)-?\d+(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+)", r'"-?[1-9]\d{0,3999}"'
REALS, STEPS = (rf"\[{entry}(?:,{entry})*+\]" for entry in (REAL, rf"\[\d+,{DIGITS}\]"))
TABLE, COLUMNS = (rf"\[{row}(?:,{row})*+\]" for row in (REALS, STEPS))
LOSS = rf'"loss":(?:{{"name":"(?:squared|absolute|poisson_log|zero_one)"}}|{{"entries":{TABLE},"name":"tabulated"}})'
SETS = rf'"outputs":(?:{{"kind":"(?:line"|grid","values":{REALS})}}|{{"high":{REAL},"kind":"interval","low":{REAL}}})'
ASKED = rf'"bias_penalty":(?:"inf"|{REAL}),"epsilon":{REAL},"labels":{REALS},{LOSS},{SETS},"prior":{REALS}'
SHAPE = {"problem": rf"{{{ASKED}}}", "format": r'"optrand\.mechanism"', "schema": "1", "digest": ".*"}
SHAPE |= {
    "dual": rf'null|{{"alpha":{REALS},"beta":{REALS}(?:,"origin":(?!-?0\.0}}){REAL})?}}',
    "outputs": REALS,
    "columns": COLUMNS,
}


class Refused(Exception):
    """The file is not a private, well-formed mechanism, for the reason in the message."""


def check(text: str) -> SimpleNamespace:
    """Return the properties of a saved mechanism, rounded up to floats. Raise `Refused` if it must not be used."""
    case = _read(_parse(text))
    value, (bound, note), sign = _value(case), _bound(case), -1 if case.loss == "zero_one" else 1
    bias = Fraction(max(map(abs, case.biases)), case.total * case.unit)
    if bias and case.penalty == math.inf:
        bound, note = None, f"bias is forbidden, and the largest is {_up(bias)!r}"
    report: dict[str, Any] = {"value": sign * value, "bound": bound and sign * bound, "note": note, "bias": bias}
    report |= {"maximised": sign < 0, "ratio": case.ratio, "epsilon": _up(_log_bounds(case.ratio)[1], text=True)}
    return SimpleNamespace(**report, gap=None if bound is None else (value - bound) / (abs(value) or 1))


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


def _parse(text: str) -> Any:
    """Parse the JSON object, and refuse ambiguous text, unexpected fields and a wrong digest."""
    try:
        document = json.loads(text)
        _need(isinstance(document, dict) and type(document.get("schema")) is int, "not an optrand mechanism")
        _need(document["schema"] <= 1, "written by a newer optrand: this checker knows schema 1")
        encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
        fields = {name: encode(field) for name, field in document.items()}
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON of finite numbers ({type(error).__name__})") from None
    wrong = [name for name in {*SHAPE, *fields} if not re.fullmatch(SHAPE.get(name, "(?!)"), fields.get(name, ""))]
    _need(not wrong, f"missing, malformed or unknown: {', '.join(ascii(name[:40]) for name in sorted(wrong)[:5])}")
    # Strings that match hold no quotation mark, so this counts names, and a name that is given twice counts twice.
    _need(len(re.findall(r'"\s*:', text)) == encode(document).count('":'), "a field is given twice")
    digest = hashlib.sha256((encode({name: document[name] for name in {*document} - {"digest"}}) + "\n").encode())
    _need(document["digest"] == f"sha256:{digest.hexdigest()}", "digest is not that of the content")
    return document


def _read(document: dict[str, Any]) -> SimpleNamespace:
    """Convert the content to integers: x stands for x / unit, and unit is a power of two."""
    fields, outputs, dual = document["problem"], document["outputs"], document["dual"] or {"alpha": [], "beta": []}
    penalty, epsilon, labels, loss, allowed, prior = (fields[name] for name in sorted(fields))
    k, grid, entries = len(labels), allowed.get("values", []), loss.get("entries", [[]] * len(labels))
    low, high = [grid[0], grid[-1]] if grid else [allowed.get("low", -math.inf), allowed.get("high", math.inf)]
    sets, rest, each = (labels, outputs, grid or [low, high]), iter(grid), (prior, dual["alpha"], dual["beta"], entries)
    columns, loss, penalty = _columns(document, k), loss["name"], float(penalty)
    totals, levels = _levels(chain(*columns), (0, k)), [_levels(column, (0, k)) for column in columns]
    _need(all(min(weights) > 0 for weights in levels), "not private: a weight is 0 or negative")
    total, ratio = totals[0], max(Fraction(max(weights), min(weights)) for weights in levels)
    for wrong, right in {
        "labels, outputs and allowed outputs must increase": all(a < b for x in sets for a, b in pairwise(x)),
        "no label or allowed output beyond 1e150": all(abs(v) <= 1e150 or math.isinf(v) for x in sets[::2] for v in x),
        "labels must spread over 1e-150 or more": k == 1 or labels[-1] - labels[0] >= 1e-150,
        "the prior must consist of normal floats or 0": all(p == 0 or p >= sys.float_info.min for p in prior),
        "the prior must sum to 1": abs(math.fsum(min(abs(p), 2.0) for p in prior) - 1) <= 1e-9,
        "prior, dual, loss table: wrong length": {*map(len, each)} <= {0, k} and {*map(len, entries)} <= {0, len(grid)},
        "epsilon must be above 0 and at most 700, the penalty 0 or more": 0 < epsilon <= 700 and penalty >= 0,
        "outputs: not allowed": all(v in rest for v in outputs) if grid else low <= outputs[0] and outputs[-1] <= high,
        "the loss must go with the allowed set": grid != [] or loss not in ("zero_one", "tabulated"),
        "the loss must go with the penalty": penalty == 0 or loss == "squared" or (grid != [] and loss != "zero_one"),
        "poisson_log: wrong sign": loss != "poisson_log" or (labels[0] >= 0 < outputs[0] and not -math.inf < low <= 0),
        "every row of weights must have one total": all(x == total for x in totals),
        "the total of a row must have at most 4000 digits": total < 10**4000,
    }.items():
        _need(right, wrong)
    budget = min(map(Fraction, (epsilon, repr(epsilon))))  # below, a ratio built to come too close to decide is refused
    highest = _exp_bounds(budget, 2 * ratio.numerator.bit_length())[0]
    _need(ratio <= highest, "not private: a ratio in a column is above exp(epsilon)")
    first, last, reach = labels[0], labels[-1], (labels[-1] - labels[0]) / math.expm1(epsilon)
    short = max(low - first, last - high) + reach > 2.0**-50 * (max(abs(first), abs(last)) + reach)
    _need(penalty < math.inf or not short, "no unbiased mechanism has all its outputs in the allowed set")
    ends = [end for end in (low, high) if math.isfinite(end)]
    parts = [labels, prior, outputs, dual["alpha"], dual["beta"], [dual.get("origin", 0.0)], grid, ends, *entries]
    unit = max(x.as_integer_ratio()[1] for part in parts for x in part) << 96  # so fine that rounding costs nothing
    ints = [[top * (unit // bottom) for top, bottom in map(float.as_integer_ratio, part)] for part in parts]
    case = SimpleNamespace(unit=unit, epsilon=Fraction(epsilon), loss=loss, penalty=penalty, total=total, ratio=ratio)
    case.labels, case.prior, case.outputs, case.alpha, case.beta, [case.origin], case.grid, case.ends, *case.rows = ints
    moments = _levels(((y, w * v) for v, c in zip(case.outputs, columns, strict=True) for y, w in c), range(k + 1))
    case.columns, case.biases = columns, [m - y * total for m, y in zip(moments, case.labels, strict=True)]
    return case


def _columns(document: dict[str, Any], k: int) -> list[list[tuple[int, int]]]:
    """Return the steps (y, w) of each output's weights: from label y on they are higher by w. At k they end at 0."""
    columns = [[(y, int(digits)) for y, digits in steps] for steps in document["columns"]]
    fit = all(0 <= y < k for column in columns for y, _ in column)
    fit = fit and all(y < z for column in columns for (y, _), (z, _) in pairwise(column))
    _need(fit and len(columns) == len(document["outputs"]), "there must be one column per output, its steps in order")
    return [[*column, (k, -sum(w for _, w in column))] for column in columns]


def _levels(changes: Iterable[tuple[int, int]], places: Iterable[int]) -> list[int]:
    """Sum the changes up to each of the places, from 0 to k, and wherever else they change. The sum is 0 at k."""
    steps = dict.fromkeys(places, 0)
    for y, step in changes:
        steps[y] = steps.get(y, 0) + step
    return list(accumulate(steps[y] for y in sorted(steps)))[:-1]


def _exp_bounds(x: Fraction, more: int = 0) -> tuple[Fraction, Fraction]:
    """Bound exp(x) on both sides for x >= 0, by Taylor's series in units of 2**-bits, every term rounded both ways."""
    bits = 128 + more + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    n, below, above, low, high = 0, *[1 << bits] * 4
    while above > 1 or n <= 2 * x:
        n += 1
        below, above = below * x.numerator // (x.denominator * n), -(-above * x.numerator // (x.denominator * n))
        low, high = low + below, high + above
    return Fraction(low, 1 << bits), Fraction(high + above, 1 << bits)  # each further term halves at least


def _log_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bound log(x) on both sides: log(x) = guess + log(t), t = x / exp(guess), and 1 - 1/t <= log(t) <= t - 1."""
    if x < 1:
        return -_log_bounds(1 / x)[1], -_log_bounds(1 / x)[0]
    guess = Fraction(math.log1p(x - 1) if x < 2 else math.log(x.numerator) - math.log(x.denominator))
    low, high = _exp_bounds(guess)
    return guess + 1 - high / x, guess + x / low - 1


def _up(x: Fraction, text: bool = False) -> float:
    """Return the smallest float that is at least x. With `text` its shortest decimal is at least x, too."""
    near = float(min(max(x, -Fraction(sys.float_info.max)), Fraction(sys.float_info.max)))
    return near if near >= x <= Fraction(repr(near) if text else near) else math.nextafter(near, math.inf)


def _sides(case: SimpleNamespace, alpha: list[int], beta: list[int]) -> Iterable[list[tuple[int, ...]]]:
    """Yield A, B, C, D per label, below, at and above it or at each output: 2 unit^3 h = A v^2 + B v + C - D log."""
    two, none = 2 * case.unit, (0, 0, 0, 0)
    for y, p, a, b, entries in zip(case.labels, case.prior, alpha, beta, case.rows, strict=True):
        losses = {
            "squared": [(1, -2 * y, y * y, 0)] * 3,
            "absolute": [(0, -two, two * y, 0), none, (0, two, -two * y, 0)],
            "poisson_log": [(0, two, 0, y)] * 3,
            "zero_one": [none, (0, 0, -two * case.unit, 0), none],
            "tabulated": [(0, 0, two * entry, 0) for entry in entries],
        }[case.loss]
        yield [(p * A, p * B - two * b, p * C - two * a, p * D) for A, B, C, D in losses]


def _value(case: SimpleNamespace) -> Fraction:
    """Sum the expected loss. The steps of a column add up to 0, so each subtracts the loss of all labels before it."""
    k, value = len(case.labels), 0
    losses = zip(*_sides(case, [0] * k, [0] * k), strict=True)
    sums = [list(accumulate(side, lambda a, b: tuple(map(add, a, b)), initial=(0,) * 4)) for side in losses]
    for v, column in zip(case.outputs, case.columns, strict=True):
        log = math.floor(2 * case.unit * _log_bounds(Fraction(v, case.unit))[0]) if case.loss == "poisson_log" else 0
        left, right = bisect_left(case.labels, v), bisect_right(case.labels, v)
        ranges = list(zip(sums[::-1], (0, left, right), (left, right, k), strict=False))
        if case.loss == "tabulated":
            ranges = [(sums[bisect_left(case.grid, v)], 0, k)]
        for y, step in column:
            lost = (map(sub, side[min(y, end)], side[min(y, start)]) for side, start, end in ranges)
            value -= step * sum(sum(map(mul, h, (v * v, v, 1, -log))) for h in lost)
    if case.penalty < math.inf:
        squares = (p * (-(-abs(b) // case.total)) ** 2 for p, b in zip(case.prior, case.biases, strict=True))
        value += math.ceil(Fraction(case.penalty) * sum(squares)) * case.total
    return Fraction(value, 2 * case.unit**3 * case.total)


def _bound(case: SimpleNamespace) -> tuple[Fraction | None, str]:
    """Bound the loss of every epsilon-DP mechanism with allowed outputs from below, or return None and the reason."""
    if not case.alpha or (case.loss == "poisson_log" and not case.grid):
        return None, "no bound for poisson_log off a grid" if case.alpha else "the file holds no multipliers"
    unit, k, beta, third = case.unit, len(case.labels), case.beta, 0
    if case.penalty < math.inf:  # beta != 0 where penalty * prior is 0 would make -infinity
        weights = [2 * Fraction(case.penalty) * p for p in case.prior]
        beta = [b if w else 0 for b, w in zip(beta, weights, strict=True)]
        third = sum(-math.ceil((b * unit) ** 2 / w) for b, w in zip(beta, weights, strict=True) if w)
    alpha = [unit * a - b * case.origin for a, b in zip(case.alpha, beta, strict=True)]  # in 1 / unit**2
    base = unit * (sum(alpha) + sum(map(mul, beta, case.labels))) + third
    excess = _exp_bounds(case.epsilon)[1] - 1
    find = _least_quadratic if case.loss == "squared" and not case.grid else _least_at_points
    least = find(case, _sides(case, alpha, beta), *excess.as_integer_ratio()) / Fraction(2 * excess.denominator)
    return (base + least * (k / (excess + k) if least < 0 else 1 / (excess + 1))) / unit**3, ""


def _least_at_points(case: SimpleNamespace, sides: Iterable[Any], more: int, one: int) -> int:
    """Bound 2 unit**3 one f(v) from below at every allowed v, E - 1 = more / one. Bisection finds the negative h."""
    # Absolute loss off a grid (beta = 0): between labels each h is linear, so f is concave, least at a label or end.
    (low, high), unit, poisson, slack = case.ends or (-math.inf, math.inf), 2 * case.unit, case.loss == "poisson_log", 0
    points = case.grid or sorted({v for v in (low, high, *case.labels) if low <= v <= high and isinstance(v, int)})
    logs = [_log_bounds(Fraction(2 * v, unit)) if poisson else (0, 0) for v in points]
    width = max(math.ceil(unit * (above - below)) + 1 for below, above in logs)
    basis = [(v * v, v, 1, -math.ceil(unit * log)) for v, (_, log) in zip(points, logs, strict=True)]
    slopes = [(2 * v * v, v, 0, -unit) if poisson else (2 * v, 1, 0, 0) for v in points]
    n, changes = len(points), [[0] * (len(points) + 1) for _ in range(4)]
    for y, pieces in zip(case.labels, sides, strict=True):
        cuts = range(n + 1) if case.loss == "tabulated" else (0, bisect_left(points, y), bisect_right(points, y), n)
        for (start, end), h in zip(pairwise(cuts), pieces, strict=True):
            middle = bisect_left(slopes, 0, start, end, key=lambda x: sum(map(mul, x, h)))
            first = bisect_left(basis, 1, start, middle, key=lambda x: -sum(map(mul, x, h)))
            last = bisect_left(basis, 0, middle, end, key=lambda x: sum(map(mul, x, h)))
            slack += width * h[3] * (first < last)
            for place, weight in ((start, one), (end, -one), (first, more), (last, -more)):
                for change, x in zip(changes, h, strict=True):
                    change[place] += weight * x
    sums = zip(*map(accumulate, changes), strict=True)
    return int(min(sum(map(mul, x, h)) for x, h in zip(basis, sums, strict=False)) - more * slack)


def _least_quadratic(case: SimpleNamespace, sides: Iterable[Any], more: int, one: int) -> int:
    """Bound squared loss off a grid: each h is a quadratic, negative between its roots, which are rounded outward."""
    (low, high), slack, events = case.ends or (-math.inf, math.inf), 0, list[Any]()
    for (A, B, C, _), *_ in sides:
        left, right = low, low
        if A and B * B > 4 * A * C:
            root = math.isqrt(B * B - 4 * A * C) + 1
            left, right = (-B - root) // (2 * A), -((B - root) // (2 * A))
        elif A == 0 and (B or C < 0):  # p_y = 0: linear, negative on one side of its root, or everywhere
            left, right = -C // B if B < 0 else -math.inf, -(C // B) if B > 0 else math.inf
        # Between a root and its rounded place h is positive, yet the sweep counts it among the negative ones.
        slack += max([0, *((A * x + B) * x + C for x in (left, right) if left < right and isinstance(x, int))])
        for x, weight in ((low, one), (left, more), (right, -more), (high, -one)):
            events.append((min(max(x, low), high), weight, (A, B, C)))
    state, least = [0, 0, 0], list[int]()
    for (start, weight, h), (end, *_) in pairwise(sorted(events)):
        A, B, C = state = [total + weight * x for total, x in zip(state, h, strict=True)]
        if start < end:  # between neighbours f is at least the quadratic `state`, less the slack
            v = min(max(-B // (2 * A), start), end)
            least.append(C + -B * B // (4 * A) if v == -B // (2 * A) else (A * v + B) * v + C)
    return min(least) - more * slack


def main(arguments: list[str] | None = None) -> int:
    """Check the file that the arguments name, print the verified facts and return the exit code."""
    try:
        text = Path(*(arguments or sys.argv[1:])).read_text(encoding="utf-8")
        reports = [check(one) for one in _mechanisms(text)]
    except (Refused, OSError, UnicodeDecodeError) as error:
        print(f"REFUSED           {error}")
        return 3 if isinstance(error, Refused) else 2
    for report in reports:
        _print(report)
    return 0


def _mechanisms(text: str) -> list[str]:
    """Return the text itself, or the mechanisms inside the record of a release."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    if not isinstance(document, dict) or document.get("format") != "optrand.release":
        return [text]
    inside: Any = document.get("mechanisms")
    _need(isinstance(inside, list) and bool(inside), "the record has no mechanisms")
    return [json.dumps(one) for one in inside]


def _print(report: SimpleNamespace) -> None:
    sign = -1 if report.maximised else 1
    print(f"private           proven, with epsilon {report.epsilon!r}")
    print(f"largest bias      {_up(report.bias)!r}")
    print(f"value             {sign * _up(sign * report.value)!r}")
    if report.bound is None:
        print(f"bound             optimality not checked: {report.note}")
    else:
        print(f"bound             {-sign * _up(-sign * report.bound)!r}, {'at most' if sign < 0 else 'at least'}")
        print(f"gap               {_up(report.gap)!r}, {'relative' if report.value else 'absolute'}")


if __name__ == "__main__":
    sys.exit(main())
