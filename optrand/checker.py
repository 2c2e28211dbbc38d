"""Verifies a saved mechanism (``python checker.py weeks.json``) with none of optrand's code and nothing to install.

A file passes if it is well formed, its digest is right and its table is epsilon-DP: positive integers, one total for
all rows, no column with a ratio above R, R proven to be at most exp(epsilon); an arc adds mass R to one output for some
neighbouring labels, mass for all others, times the denominator of R. Then come, in fractions, loss, biases and a lower
bound of the loss of every epsilon-DP mechanism. Exit code: 0 it passes, 3 it does not, 2 it cannot be read.

The bound. Let h_y(v) = p_y g(v, y) - alpha_y - beta_y (v - origin), and f(v) the least sum of s_y h_y(v) over 1 <= s_y
<= E, which is sum h + (E-1) sum min(h, 0). An epsilon-DP table is a mixture of columns c s with s_y in {1, E}, not all
1; each adds at least c f(v) to the sum of M[y, v] h_y(v). So, where rows sum to 1 and b_y = E[v] - y is the bias of y,

    loss >= sum alpha + sum beta_y (y - origin) + sum (beta_y b_y + lam p_y b_y^2 / 2) + sum of c f(v)

and the third sum is at least -sum beta_y^2 / (2 lam p_y), or 0 where bias is forbidden (lam infinite). The c sum to at
least 1/E (a row sums to 1) and at most k/(E+k-1) (the table sums to k). E is rounded up: that only adds mechanisms.

On a grid each h_y is convex on one range or a few, and halving finds where it is negative. Logarithms are rounded up,
which lowers h_y by w_y at most: all it takes for negative is below w_y, all other h_y are 0 or above, by convexity.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain, pairwise
from operator import mul
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: T201
# What a file must look like. A tuple holds alternatives, a list the kind of all its entries, of which there are some.
DIGITS, RATIO = re.compile(r"0|[1-9][0-9]{0,3999}"), re.compile(r"-?[1-9][0-9]{0,3999}/[1-9][0-9]{0,3999}")
LOSS = ({"name": ("squared", "absolute", "poisson_log", "zero_one")}, {"name": "tabulated", "entries": [[float]]})
SETS = ({"kind": "line"}, {"kind": "interval", "low": float, "high": float}, {"kind": "grid", "values": [float]})
PROBLEM = {"labels": [float], "prior": [float], "epsilon": float, "bias_penalty": ("inf", float)}
SHAPE = {"format": "optrand.mechanism", "problem": PROBLEM | {"loss": LOSS, "outputs": SETS}, "digest": str}
SHAPE |= {"weights": (..., [[DIGITS]]), "arcs": (..., {"first": [int], "last": [int], "at": [int], "masses": [DIGITS]})}
SHAPE |= {"ratio": {"numerator": DIGITS, "denominator": DIGITS}, "total": DIGITS}  # ... is a field that is not there
DUAL = {"alpha": [float], "beta": [float]}
FIRST = SHAPE | {"schema": 1, "outputs": [float], "dual": (None, DUAL, DUAL | {"origin": float})}
SECOND = SHAPE | {"schema": 2, "outputs": [(float, RATIO)], "dual": (None, DUAL | {"origin": float})}


class Refused(Exception):
    """The file is not a private, well-formed mechanism; the message says why."""


def check(text: str) -> SimpleNamespace:
    """What holds of a saved mechanism, a value that is no fraction rounded up; `Refused` if it must not be used."""
    case = _read(_parse(text))
    value, (bound, note), scale = _value(case), _bound(case), case.total * case.finer * case.unit
    biases = tuple(m * case.unit - y * case.total * case.finer for m, y in zip(case.moments, case.labels, strict=True))
    bias = Fraction(max(map(abs, biases)), scale)
    if case.penalty < math.inf:
        squares = (p * (-(-abs(b) * case.unit // scale)) ** 2 for p, b in zip(case.prior, biases, strict=True))
        value += Fraction(case.penalty) * Fraction(sum(squares), 2 * case.unit**3)
    elif bias:
        bound, note = None, f"bias is forbidden, and the largest is {_up(bias)!r}"
    sign, gap = -1 if case.loss == "zero_one" else 1, None if bound is None else (value - bound) / (abs(value) or 1)
    report = {"epsilon": _up(_log_bounds(case.ratio)[1]), "ratio": case.ratio, "gap": gap, "note": note, "bias": bias}
    report |= {"value": sign * value, "bound": bound and sign * bound, "maximised": sign < 0}
    return SimpleNamespace(**report, biases=biases, scale=scale)  # the biases of all labels, times the scale


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _need(len({name for name, _ in pairs}) == len(pairs), "a field is given twice")
    return dict(pairs)


def _parse(text: str) -> dict[str, Any]:
    """The JSON object, if nothing in it is ambiguous, its parts have the right types, and its digest is right."""
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        _need(isinstance(document, dict) and type(document.get("schema")) is int, "not an optrand mechanism")
        _need(document["schema"] <= 2, "written by a newer optrand: this checker knows schemas 1 and 2")
        content = {name: value for name, value in document.items() if name != "digest"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON of finite numbers ({type(error).__name__})") from None
    shape: dict[str, Any] = SECOND if document["schema"] == 2 else FIRST
    wrong = [name for name in sorted({*shape, *document}) if not _fits(document.get(name, ...), shape.get(name, ()))]
    _need(not wrong, f"missing, malformed or unknown: {', '.join(ascii(name[:40]) for name in wrong[:5])}")
    _need(document["digest"] == f"sha256:{hashlib.sha256(canonical).hexdigest()}", "digest is not that of the content")
    return content


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(value, alternative) for alternative in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and value != [] and all(_fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and set(value) == set(shape) and all(_fits(value[n], shape[n]) for n in shape)
    if isinstance(shape, re.Pattern):
        return isinstance(value, str) and shape.fullmatch(value) is not None
    return type(value) is shape if isinstance(shape, type) else bool(value == shape)


def _read(document: dict[str, Any]) -> SimpleNamespace:
    """The content, if it has a meaning, in integers: x stands for x / unit, and unit is a power of two."""
    problem: dict[str, Any] = document["problem"]
    dual: dict[str, Any] = {"origin": 0.0} | (document["dual"] or {"alpha": [], "beta": []})
    labels, prior, epsilon, penalty = (problem[name] for name in ("labels", "prior", "epsilon", "bias_penalty"))
    loss, allowed, penalty = problem["loss"]["name"], problem["outputs"], float(penalty)
    grid, entries = allowed.get("values", []), problem["loss"].get("entries", [[]] * len(labels))
    alpha, beta, first = dual["alpha"], dual["beta"], document["schema"] == 1
    low, high = [grid[0], grid[-1]] if grid else [allowed.get("low", -math.inf), allowed.get("high", math.inf)]
    high_R, low_R = (int(document["ratio"][name]) for name in ("numerator", "denominator"))
    k, given, outputs, rest = len(labels), document["outputs"], [*map(Fraction, document["outputs"])], iter(grid)
    on_grid = (v in rest for v in outputs)
    plain = (
        v == f"{x.numerator}/{x.denominator}" and x != _up(x) for v, x in zip(given, outputs, strict=True) if v != x
    )
    sets, normal = (labels, outputs, grid or [low, high]), (p == 0 or p >= sys.float_info.min for p in prior)
    columns, total = _columns(document, k, low_R, high_R), int(document["total"])
    tops: list[Any] = [(max(c), min(c)) for c in (_levels(column, (0, k)) for column in columns)]
    most, least = reduce(lambda a, b: b if b[0] * a[1] > a[0] * b[1] else a, tops)
    for wrong, right in {
        "an output must be a float, or p/q in lowest terms that is none": all(plain),
        "outputs must be in the range of floats": max(map(abs, outputs)) <= sys.float_info.max,
        "labels, outputs and what is allowed must increase": all(a < b for x in sets for a, b in pairwise(x)),
        "no label or allowed output beyond 1e150": all(abs(v) <= 1e150 or math.isinf(v) for x in sets[::2] for v in x),
        "labels must spread over 1e-150 or more": k == 1 or labels[-1] - labels[0] >= 1e-150,
        "the prior must have one entry per label, of normal floats or 0": len(prior) == k and all(normal),
        "the prior must sum to 1": abs(math.fsum(min(abs(p), 2.0) for p in prior) - 1) <= 1e-9,
        "epsilon must be above 0 and at most 700, the penalty 0 or more": 0 < epsilon <= 700 and penalty >= 0,
        "outputs must be allowed": low <= outputs[0] and outputs[-1] <= high and (grid == [] or all(on_grid)),
        "the loss must go with the allowed set": grid != [] or loss not in ("zero_one", "tabulated"),
        "the loss must go with the penalty": penalty == 0 or loss == "squared" or (grid != [] and loss != "zero_one"),
        "poisson_log: wrong sign": loss != "poisson_log" or (labels[0] >= 0 < outputs[0] and not -math.inf < low <= 0),
        "the loss table must fit": loss != "tabulated" or list(map(len, entries)) == [len(grid)] * k,
        "the dual must have one entry per label": len(alpha) == len(beta) and len(alpha) in (0, k),
        "schema 1 leaves out an origin of 0": not first or (document["dual"] or {}).get("origin", 1) != 0,
        "the ratio must be in lowest terms": low_R > 0 and math.gcd(high_R, low_R) == 1,
        "every row of weights must have the stated total": all(x == total for x in _levels(chain(*columns), (0, k))),
        "not private: 0 or a ratio above R in a column": all(a > 0 for _, a in tops) and most * low_R <= least * high_R,
    }.items():
        _need(right, wrong)
    # So much precision decides every ratio that was not built to come close; such a one is refused.
    limit = _exp_bounds(Fraction(epsilon), 2 * high_R.bit_length())[0]
    _need(1 < Fraction(high_R, low_R) <= limit, "not private: the ratio is not between 1 and exp(epsilon)")
    reach = (labels[-1] - labels[0]) / math.expm1(epsilon)
    slack = 2.0**-50 * max(abs(labels[0] - reach), abs(labels[-1] + reach))
    short = low > labels[0] - reach + slack or high < labels[-1] + reach - slack
    _need(penalty < math.inf or not short, "no unbiased mechanism has all its outputs in the allowed set")
    ends, floats = [x for x in (low, high) if math.isfinite(x)], [v for v in given if isinstance(v, float)]
    parts = [floats, labels, prior, alpha, beta, grid, ends, [dual["origin"]], *entries]
    unit = max(x.as_integer_ratio()[1] for part in parts for x in part) << 96  # so fine that rounding costs nothing
    whole = [[above * (unit // below) for above, below in map(float.as_integer_ratio, part)] for part in parts[1:]]
    case = SimpleNamespace(unit=unit, epsilon=Fraction(epsilon), loss=loss, penalty=penalty, total=total, finer=1)
    case.labels, case.prior, case.alpha, case.beta, case.grid, ends, (case.origin,), *case.entries = whole
    case.outputs, case.columns, case.ends, case.ratio = outputs, columns, ends or (low, high), Fraction(most, least)
    for v, column in zip(outputs, columns, strict=True):
        case.finer = math.lcm(case.finer, v.denominator // math.gcd(v.denominator, *(step for _, step in column)))
        _need(case.finer < 10**4000, "outputs without a common denominator")
    lifts = [v * case.finer for v in outputs]  # a step times one of them is an integer
    moments = ((y, w * v.numerator // v.denominator) for v, c in zip(lifts, columns, strict=True) for y, w in c)
    case.moments = _levels(moments, range(k + 1))
    return case


def _columns(document: dict[str, Any], k: int, low: int, high: int) -> list[list[tuple[int, int]]]:
    """For each output the steps (y, w) of its weights: from label y on they are higher by w. At k they end at 0."""
    n, rows, arcs = len(document["outputs"]), document.get("weights", []), document.get("arcs")
    if not arcs:
        _need(list(map(len, rows)) == [n] * k, "the weights must have one row per label")
        pairs = [enumerate(pairwise([0, *map(int, column), 0])) for column in zip(*rows, strict=True)]
        return [[(y, after - before) for y, (before, after) in column if after != before] for column in pairs]
    first, last, at, masses = parts = [arcs[name] for name in ("first", "last", "at", "masses")]
    fit = not rows and len({*map(len, parts)}) == 1 and at[0] == 0 and at[-1] == n - 1 and "0" not in masses
    fit = fit and all(before <= i <= before + 1 for before, i in pairwise(at))
    fit = fit and all(0 <= a <= b < k for a, b in zip(first, last, strict=True))
    _need(fit, "arcs must replace the weights, in the order of the outputs, with masses, each for some labels")
    columns = [list[tuple[int, int]]() for _ in range(n)]
    for a, b, i, mass in zip(first, last, at, map(int, masses), strict=True):
        columns[i] += [(0, low * mass), (a, (high - low) * mass), (b + 1, (low - high) * mass), (k, -low * mass)]
    return columns


def _levels(changes: Iterable[tuple[int, int]], places: Iterable[int]) -> list[int]:
    """The totals of changes at each of the places, from 0 to k, and wherever else they change; none at k."""
    steps = dict.fromkeys(places, 0)
    for y, step in changes:
        steps[y] = steps.get(y, 0) + step
    return list(accumulate(steps[y] for y in sorted(steps)))[:-1]


def _exp_bounds(x: Fraction, more: int = 0) -> tuple[Fraction, Fraction]:
    """Below and above exp(x) for x >= 0: Taylor's series in units of 2**-bits, every term rounded both ways."""
    bits = 128 + more + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    n, below, above, low, high = 0, *[1 << bits] * 4
    while above > 1 or n <= 2 * x:
        n += 1
        below = below * x.numerator // (x.denominator * n)
        above = -(-above * x.numerator // (x.denominator * n))
        low, high = low + below, high + above
    return Fraction(low, 1 << bits), Fraction(high + above, 1 << bits)  # each further term halves at least


def _log_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Below and above log(x), from log(x) = guess + log(t), t = x / exp(guess), and 1 - 1/t <= log(t) <= t - 1."""
    if x < 1:
        return -_log_bounds(1 / x)[1], -_log_bounds(1 / x)[0]
    guess = Fraction(math.log1p(x - 1) if x < 2 else math.log(x.numerator) - math.log(x.denominator))
    low, high = _exp_bounds(guess)
    return guess + 1 - high / x, guess + x / low - 1


def _up(x: Fraction) -> float:
    """The smallest float that is at least x."""
    largest = Fraction(sys.float_info.max)
    nearest = float(min(max(x, -largest), largest))
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def _value(case: SimpleNamespace) -> Fraction:
    """The expected loss, the share of each output rounded up."""
    pulls = list(map(mul, case.prior, case.labels))
    sums = [list(accumulate(x, initial=0)) for x in (case.prior, pulls, map(mul, pulls, case.labels))]
    shares = (_share(case, sums, v, column) for v, column in zip(case.outputs, case.columns, strict=True))
    return Fraction(sum(map(math.ceil, shares)), 2 * case.unit**3 * case.total)


def _share(case: SimpleNamespace, sums: list[list[int]], v: Fraction, column: list[tuple[int, int]]) -> Any:
    """What output v adds to the loss, in units of 1 / (2 unit**3 total), or more, from sums of p, p y and p y^2.

    The sum of a step from label y on is what all labels add up to, less those before y.
    """
    unit, (mass, mean, square), x = case.unit, sums, v * case.unit
    x, place = x.numerator if x.denominator == 1 else x, bisect_left(case.labels, x)

    def share(total: Callable[[int], Any]) -> Any:
        return sum(step * (total(len(case.labels)) - total(y)) for y, step in column)

    if case.loss == "squared":
        return share(lambda y: x * (x * mass[y] - 2 * mean[y]) + square[y])
    if case.loss == "absolute":  # |v - z| = z - v + 2 max(v - z, 0)
        return 2 * unit * share(lambda y: mean[y] - x * mass[y] + 2 * (x * mass[min(y, place)] - mean[min(y, place)]))
    if case.loss == "poisson_log":
        log = math.floor(2 * unit * _log_bounds(v)[0])
        return share(lambda y: 2 * unit * x * mass[y] - log * mean[y])
    if case.loss == "tabulated":
        entries = (row[bisect_left(case.grid, x)] for row in case.entries)
        return 2 * unit * share(list(accumulate(map(mul, case.prior, entries), initial=0)).__getitem__)
    return -2 * unit**2 * share(lambda y: case.prior[place] if place < y and case.labels[place] == x else 0)


def _bound(case: SimpleNamespace) -> tuple[Fraction | None, str]:
    """A lower bound of the loss of every epsilon-DP mechanism with allowed outputs, or None and the reason."""
    if not case.alpha or (case.loss == "poisson_log" and not case.grid):
        return None, "no bound for poisson_log off a grid" if case.alpha else "the file holds no multipliers"
    unit, k, third = case.unit, len(case.labels), 0
    if case.penalty < math.inf:
        above, below = case.penalty.as_integer_ratio()  # beta != 0 where penalty * prior is 0 would make -infinity
        case.beta = [b if p and above else 0 for b, p in zip(case.beta, case.prior, strict=True)]
        charges = ((-((b * unit) ** 2) * below, 2 * p * above) for b, p in zip(case.beta, case.prior, strict=True) if b)
        third = sum(charge // weight for charge, weight in charges)
    case.alpha = [unit * a - b * case.origin for a, b in zip(case.alpha, case.beta, strict=True)]  # in 1 / unit**2
    base = Fraction(unit * (sum(case.alpha) + sum(map(mul, case.beta, case.labels))) + third, unit**3)
    excess = _exp_bounds(case.epsilon)[1] - 1
    least = Fraction(_least_column(case, excess.denominator, excess.numerator), 2 * unit**3 * excess.denominator)
    return base + least * (k / (excess + k) if least < 0 else 1 / (excess + 1)), ""


def _least_column(case: SimpleNamespace, one: int, more: int) -> int:
    """At most 2 unit**3 one f(v) at every allowed v, where E - 1 = more / one."""
    if case.loss == "squared" and not case.grid:
        return _least_quadratic(case, one, more)
    (low, high), unit, slack = case.ends, case.unit, 0
    # Absolute loss off a grid (beta = 0): between labels each h is straight, so f is concave: least at a label or end.
    points = case.grid or sorted({v for v in (low, high, *case.labels) if low <= v <= high and isinstance(v, int)})
    bounds = [_log_bounds(Fraction(v, unit)) if case.loss == "poisson_log" else (0, 0) for v in points]
    logs = [math.ceil(2 * unit * above) for _, above in bounds]
    width = max(log - math.floor(2 * unit * below) for log, (below, _) in zip(logs, bounds, strict=True))
    changes = [[0] * (len(points) + 1) for _ in range(4)]

    def value(h: Sequence[int], i: int) -> int:
        return int((h[0] * points[i] + h[1]) * points[i] + h[2] - h[3] * logs[i])

    def rises(h: Sequence[int], v: int) -> bool:
        return (2 * h[0] * v + h[1]) * (v if h[3] else 1) >= int(2 * unit * h[3])

    def negative(start: int, end: int, h: Sequence[int]) -> tuple[int, int]:
        middle = bisect_left(points, True, start, end, key=lambda v: rises(h, v))
        first = bisect_left(range(end), True, start, middle, key=lambda i: value(h, i) < 0)
        return first, bisect_left(range(end), True, middle, end, key=lambda i: value(h, i) >= 0)

    for start, end, h in _pieces(case, points):
        first, last = negative(start, end, h)
        slack += width * h[3] * (first < last)
        for place, weight in ((start, one), (end, -one), (first, more), (last, -more)):
            for change, x in zip(changes, h, strict=True):
                change[place] += weight * x
    sums = list(zip(*map(accumulate, changes), strict=True))
    return min(value(sums[i], i) for i in range(len(points))) - more * slack


def _pieces(case: SimpleNamespace, points: list[int]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Ranges of points, and A, B, C, D with 2 unit**3 h(v) = A v^2 + B v + C - D (2 unit log v), convex on them."""
    unit, n = case.unit, len(points)
    for y, p, alpha, beta, row in zip(case.labels, case.prior, case.alpha, case.beta, case.entries, strict=True):
        place, B, C = bisect_left(points, y), -2 * unit * beta, -2 * unit * alpha
        if case.loss == "squared":
            yield 0, n, (p, B - 2 * p * y, C + p * y * y, 0)
        elif case.loss == "absolute":
            yield 0, place, (0, B - 2 * unit * p, C + 2 * unit * p * y, 0)
            yield place, n, (0, B + 2 * unit * p, C - 2 * unit * p * y, 0)
        elif case.loss == "poisson_log":
            yield 0, n, (0, B + 2 * unit * p, C, p * y)
        elif case.loss == "tabulated":
            yield from ((i, i + 1, (0, B, C + 2 * unit * p * g, 0)) for i, g in enumerate(row))
        else:
            after = place + (points[place : place + 1] == [y])
            yield place, after, (0, B, C - 2 * unit**2 * p, 0)
            yield from ((start, end, (0, B, C, 0)) for start, end in ((0, place), (after, n)))


def _least_quadratic(case: SimpleNamespace, one: int, more: int) -> int:
    """The same for squared loss off a grid: each h is a quadratic, negative between its roots, here rounded outward."""
    low, high = case.ends
    state, events, slack, least, start = [0, 0, 0], list[Any](), 0, list[int](), low
    for _, _, (A, B, C, _) in _pieces(case, []):
        state = [total + one * x for total, x in zip(state, (A, B, C), strict=True)]
        left: float
        right: float
        if A and B * B > 4 * A * C:
            root = math.isqrt(B * B - 4 * A * C) + 1
            left, right = (-B - root) // (2 * A), -((B - root) // (2 * A))
        elif A or (B == 0 and C >= 0):
            continue
        else:  # p_y = 0: a straight line, negative on one side of its root, or everywhere
            left, right = -C // B if B < 0 else -math.inf, -(C // B) if B > 0 else math.inf
        events += [(left, 1, (A, B, C)), (right, -1, (A, B, C))]
        # Between a root and its rounded place h is positive, yet the sweep counts it among the negative ones.
        slack += max([0, *((A * x + B) * x + C for x in (left, right) if isinstance(x, int))])
    for x, sign, h in [*sorted(events), (math.inf, 0, (0, 0, 0))]:
        end = min(max(x, low), high)
        if start < end:  # between neighbours f is at least the quadratic `state`, less the slack
            A, B, C = state
            vertex = -B // (2 * A)
            v = start if vertex < start else end
            least.append(C + -B * B // (4 * A) if start <= vertex < end else (A * v + B) * v + C)
        state, start = [total + sign * more * x for total, x in zip(state, h, strict=True)], end
    return min(least) - more * slack


def main(arguments: list[str] | None = None) -> int:
    """Check the file that the arguments name, print what holds, return the exit code."""
    parser = argparse.ArgumentParser(description="Verify a saved mechanism of optrand.")
    parser.add_argument("file", type=Path)
    try:
        report = check(parser.parse_args(arguments).file.read_text(encoding="utf-8"))
    except (Refused, OSError, UnicodeDecodeError) as error:
        print(f"REFUSED           {error}")
        return 3 if isinstance(error, Refused) else 2
    sign = -1 if report.maximised else 1
    print(f"private           proven, with epsilon {report.epsilon!r}")
    print(f"largest bias      {_up(report.bias)!r}")
    print(f"value             {sign * _up(sign * report.value)!r}")
    if report.bound is None:
        print(f"bound             optimality not checked: {report.note}")
    else:
        print(f"bound             {-sign * _up(-sign * report.bound)!r}, {'at most' if sign < 0 else 'at least'}")
        print(f"gap               {_up(report.gap)!r}, {'relative' if report.value else 'absolute'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
