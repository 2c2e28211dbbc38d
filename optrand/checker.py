"""Verifies a saved mechanism (``python checker.py weeks.json``) with none of optrand's code and nothing to install.

A file passes if it is well formed, its digest is right and its table is epsilon-DP: positive integers, one total for
all rows, no column with a ratio above R, R proven to be at most exp(epsilon); an arc adds mass R to one output for some
neighbouring labels, mass for all others, times the denominator of R. Then come, in fractions, loss, biases and a lower
bound of the loss of every epsilon-DP mechanism. Exit code: 0 it passes, 3 it does not, 2 it cannot be read.

The bound. Let h_y(v) = p_y g(v, y) - alpha_y - beta_y v, and f(v) the least sum of s_y h_y(v) over 1 <= s_y <= E, which
is sum h + (E-1) sum min(h, 0). An epsilon-DP table is a mixture of columns c s with s_y in {1, E}, not all 1; each adds
at least c f(v) to the sum of M[y, v] h_y(v). So, where rows sum to 1 and b_y = E[v] - y is the bias of label y,

    loss >= sum alpha + sum beta_y y + sum (beta_y b_y + lam p_y b_y^2 / 2) + sum of c f(v)

and the third sum is at least -sum beta_y^2 / (2 lam p_y), or 0 where bias is forbidden (lam infinite). The c sum to at
least 1/E (a row sums to 1) and at most k/(E+k-1) (the table sums to k). E is rounded up: that only adds mechanisms.
"""

import argparse
import hashlib
import json
import math
import re
import sys
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: T201
# What a file must look like. A tuple holds alternatives, a list the kind of all its entries, of which there are some.
DIGITS = re.compile(r"0|[1-9][0-9]{0,3999}")
LOSS = ({"name": ("squared", "absolute", "poisson_log", "zero_one")}, {"name": "tabulated", "entries": [[float]]})
SETS = ({"kind": "line"}, {"kind": "interval", "low": float, "high": float}, {"kind": "grid", "values": [float]})
PROBLEM = {"labels": [float], "prior": [float], "epsilon": float, "bias_penalty": ("inf", float)}
SHAPE = {"format": "optrand.mechanism", "schema": 1, "digest": str, "total": DIGITS, "outputs": [float]}
SHAPE |= {"problem": PROBLEM | {"loss": LOSS, "outputs": SETS}, "dual": (None, {"alpha": [float], "beta": [float]})}
SHAPE |= {"weights": (..., [[DIGITS]]), "arcs": (..., {"first": [int], "last": [int], "at": [int], "masses": [DIGITS]})}
SHAPE |= {"ratio": {"numerator": DIGITS, "denominator": DIGITS}}  # above, ... stands for a field that is not there
LARGEST = Fraction(sys.float_info.max)


class Refused(Exception):
    """The file is not a private, well-formed mechanism; the message says why."""


def check(text: str) -> SimpleNamespace:
    """What holds of a saved mechanism, a value that is no fraction rounded up; `Refused` if it must not be used."""
    case = _read(_parse(text))
    columns, places = list(zip(case.outputs, case.columns, strict=True)), range(len(case.labels) + 1)
    first, second = (_levels([(y, step * v**e) for v, c in columns for y, step in c], places) for e in (1, 2))
    biases = [(Fraction(m, case.total) - y) / case.unit for m, y in zip(first, case.labels, strict=True)]
    rows = zip(case.prior, case.labels, first, second, strict=True)
    terms = (p * (square - 2 * y * m + y * y * case.total) for p, y, m, square in rows)
    if case.loss != "squared":
        cells = (zip(case.prior, _losses(case, v)[1], _levels(c, places), strict=True) for v, c in columns)
        terms = (p * g * weight for column in cells for p, g, weight in column)
    value, (bound, note) = Fraction(sum(terms), 2 * case.total * case.unit**3), _bound(case)
    if case.penalty < math.inf:
        squares = (p * b * b for p, b in zip(case.prior, biases, strict=True))
        value += Fraction(case.penalty) * sum(squares) / (2 * case.unit)
    elif max(map(abs, biases)) * case.unit * 10**9 > case.labels[-1] - case.labels[0]:
        bound, note = None, "bias is forbidden, and the largest is above 1e-9 of the range of the labels"
    sign, gap = -1 if case.loss == "zero_one" else 1, None if bound is None else (value - bound) / (abs(value) or 1)
    report = SimpleNamespace(epsilon=_up(_log_bounds(case.ratio)[1]), ratio=case.ratio, biases=tuple(biases), gap=gap)
    report.note, report.maximised, report.value, report.bound = note, sign < 0, sign * value, bound and sign * bound
    return report


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


def _parse(text: str) -> dict[str, Any]:
    """The JSON object, if nothing in it is ambiguous, its parts have the right types, and its digest is right."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _need(len({name for name, _ in pairs}) == len(pairs), "a field is given twice")
        return dict(pairs)

    try:
        document = json.loads(text, object_pairs_hook=unique)
        _need(isinstance(document, dict) and type(document.get("schema")) is int, "not an optrand mechanism")
        _need(document["schema"] <= 1, "written by a newer optrand: this checker knows schema 1")
        content = {name: value for name, value in document.items() if name != "digest"}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON of finite numbers ({type(error).__name__})") from None
    wrong = [name for name in sorted({*SHAPE, *document}) if not _fits(document.get(name, ...), SHAPE.get(name, ()))]
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
    problem, dual, outputs = document["problem"], document["dual"] or {"alpha": [], "beta": []}, document["outputs"]
    labels, prior, epsilon, penalty = (problem[name] for name in ("labels", "prior", "epsilon", "bias_penalty"))
    loss, entries, allowed = problem["loss"]["name"], problem["loss"].get("entries", []), problem["outputs"]
    grid, alpha, beta, penalty = allowed.get("values", []), dual["alpha"], dual["beta"], float(penalty)
    low, high = [grid[0], grid[-1]] if grid else [allowed.get("low", -math.inf), allowed.get("high", math.inf)]
    high_R, low_R = (int(document["ratio"][name]) for name in ("numerator", "denominator"))
    k, gridded, sets = len(labels), grid != [], (labels, outputs, grid or [low, high])
    columns, total = _columns(document, k, low_R, high_R), int(document["total"])
    levels = [_levels(column, (0, k)) for column in columns]
    for wrong, right in {
        "labels, outputs and what is allowed must increase": all(a < b for x in sets for a, b in pairwise(x)),
        "no label or allowed output beyond 1e150": all(abs(v) <= 1e150 or math.isinf(v) for x in sets[::2] for v in x),
        "the prior must hold normal floats, 0 or above": all(p == 0 or p >= sys.float_info.min for p in prior),
        "labels must spread over 1e-150 or more": k == 1 or labels[-1] - labels[0] >= 1e-150,
        "the prior must sum to 1, one entry per label": len(prior) == k and abs(math.fsum(prior) - 1) <= 1e-9,
        "epsilon must be above 0 and at most 700, the penalty 0 or more": 0 < epsilon <= 700 and penalty >= 0,
        "outputs must be allowed": {*outputs} <= {*grid} if grid else low <= outputs[0] and outputs[-1] <= high,
        "the loss must go with the allowed set": gridded or loss not in ("zero_one", "tabulated"),
        "the loss must go with the penalty": penalty == 0 or loss == "squared" or (gridded and loss != "zero_one"),
        "poisson_log: wrong sign": loss != "poisson_log" or (labels[0] >= 0 < outputs[0] and not -math.inf < low <= 0),
        "the loss table must fit": loss != "tabulated" or list(map(len, entries)) == [len(grid)] * k,
        "the dual must have one entry per label": len(alpha) == len(beta) and len(alpha) in (0, k),
        "the ratio must be in lowest terms": low_R > 0 and math.gcd(high_R, low_R) == 1,
        "every row of weights must have the stated total": {*_levels([*chain(*columns)], (0, k))} == {total},
        "not private: 0 or a ratio above R in a column": all(0 < max(c) * low_R <= min(c) * high_R for c in levels),
    }.items():
        _need(right, wrong)
    # So much precision decides every ratio that was not built to come close; such a one is refused.
    limit = _exp_bounds(Fraction(epsilon), 2 * high_R.bit_length())[0]
    _need(1 < Fraction(high_R, low_R) <= limit, "not private: the ratio is not between 1 and exp(epsilon)")
    reach = (labels[-1] - labels[0]) / math.expm1(epsilon)
    slack = 2.0**-50 * max(abs(labels[0] - reach), abs(labels[-1] + reach))
    short = low > labels[0] - reach + slack or high < labels[-1] + reach - slack
    _need(penalty < math.inf or not short, "no unbiased mechanism has all its outputs in the allowed set")
    parts = [labels, prior, outputs, alpha, beta, grid, [x for x in (low, high) if math.isfinite(x)], *entries]
    unit = max(x.as_integer_ratio()[1] for part in parts for x in part) << 96  # so fine that rounding costs nothing
    whole = [[x.as_integer_ratio()[0] * (unit // x.as_integer_ratio()[1]) for x in part] for part in parts]
    case = SimpleNamespace(unit=unit, epsilon=Fraction(epsilon), loss=loss, penalty=penalty, total=total)
    case.columns, case.ratio = columns, max(Fraction(max(column), min(column)) for column in levels)
    case.labels, case.prior, case.outputs, case.alpha, case.beta, case.grid, ends, *case.entries = whole
    case.ends = ends or (low, high)
    return case


def _columns(document: dict[str, Any], k: int, low: int, high: int) -> list[list[tuple[int, int]]]:
    """For each output the steps (y, w) of its weights: from label y on they are higher by w. At k they end at 0."""
    n, rows, arcs = len(document["outputs"]), document.get("weights", []), document.get("arcs")
    if not arcs:
        _need(list(map(len, rows)) == [n] * k, "the weights must have one row per label")
        pairs = [enumerate(pairwise([0, *map(int, column), 0])) for column in zip(*rows, strict=True)]
        return [[(y, after - before) for y, (before, after) in column if after != before] for column in pairs]
    first, last, at, masses = parts = [arcs[name] for name in ("first", "last", "at", "masses")]
    fit = not rows and len({*map(len, parts)}) == 1 and at == sorted(at) and {*at} == {*range(n)}
    fit = fit and "0" not in masses and all(0 <= a <= b < k for a, b in zip(first, last, strict=True))
    _need(fit, "arcs must replace the weights, in the order of the outputs, with masses, each for some labels")
    columns = [list[tuple[int, int]]() for _ in range(n)]
    for a, b, i, mass in zip(first, last, at, map(int, masses), strict=True):
        columns[i] += [(0, low * mass), (a, (high - low) * mass), (b + 1, (low - high) * mass), (k, -low * mass)]
    return columns


def _levels(steps: list[tuple[int, int]], places: range | tuple[int, int]) -> list[int]:
    """The weights of a column at each of the places, which go from 0 to k, and wherever else they change; none at k."""
    changes = dict.fromkeys(places, 0)
    for y, step in steps:
        changes[y] = changes.get(y, 0) + step
    return list(accumulate(changes[y] for y in sorted(changes)))[:-1]


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
    nearest = float(min(max(x, -LARGEST), LARGEST))
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def _losses(case: SimpleNamespace, v: int) -> tuple[list[int], ...]:
    """Integers below and above 2 unit**2 g(v, y) for every label; the same where the loss is rational."""
    double = 2 * case.unit
    if case.loss == "poisson_log":
        low, high = _log_bounds(Fraction(v, case.unit))
        logs = math.ceil(double * high), math.floor(double * low)
        return tuple([double * v - y * log for y in case.labels] for log in logs)
    if case.loss == "tabulated":
        return ([double * row[case.grid.index(v)] for row in case.entries],) * 2
    if case.loss == "squared":
        return ([(v - y) ** 2 for y in case.labels],) * 2
    if case.loss == "absolute":
        return ([double * abs(v - y) for y in case.labels],) * 2
    return ([-double * case.unit * (v == y) for y in case.labels],) * 2


def _bound(case: SimpleNamespace) -> tuple[Fraction | None, str]:
    """A lower bound of the loss of every epsilon-DP mechanism with allowed outputs, or None and the reason."""
    if not case.alpha or (case.loss == "poisson_log" and not case.grid):
        return None, "no bound for poisson_log off a grid" if case.alpha else "the file holds no multipliers"
    unit, k, third = case.unit, len(case.labels), 0
    if case.penalty < math.inf:
        weights = [p * Fraction(case.penalty) for p in case.prior]  # beta != 0 where this is 0 would make -infinity
        case.beta = [b if w else 0 for b, w in zip(case.beta, weights, strict=True)]
        third = sum(math.ceil((b * unit) ** 2 / (2 * w)) for b, w in zip(case.beta, weights, strict=True) if w)
    base = Fraction(unit**2 * sum(case.alpha) + unit * sum(map(int.__mul__, case.beta, case.labels)) - third, unit**3)
    excess = _exp_bounds(case.epsilon)[1] - 1
    least = Fraction(_least_column(case, excess.denominator, excess.numerator), 2 * unit**3 * excess.denominator)
    return base + least * (k / (excess + k) if least < 0 else 1 / (excess + 1)), ""


def _least_column(case: SimpleNamespace, one: int, more: int) -> int:
    """At most 2 unit**3 one f(v) at every allowed v, where E - 1 = more / one."""
    if case.loss == "squared" and not case.grid:
        return _least_quadratic(case, one, more)
    low, high = case.ends
    # Absolute loss off a grid (beta = 0): between labels each h is straight, so f is concave: least at a label or end.
    points = case.grid or [v for v in (low, high, *case.labels) if low <= v <= high and isinstance(v, int)]
    cells = ((v, zip(_losses(case, v)[0], case.prior, case.alpha, case.beta, strict=True)) for v in points)
    columns = ([p * g - 2 * case.unit * (case.unit * alpha + beta * v) for g, p, alpha, beta in c] for v, c in cells)
    return int(min(one * sum(h) + more * sum(x for x in h if x < 0) for h in columns))


def _least_quadratic(case: SimpleNamespace, one: int, more: int) -> int:
    """The same for squared loss off a grid: each h is a quadratic, negative between its roots, here rounded outward."""
    unit, (low, high) = case.unit, case.ends
    state, events, slack, least, start = [0, 0, 0], [], 0, list[int](), low
    for y, p, alpha, beta in zip(case.labels, case.prior, case.alpha, case.beta, strict=True):
        h = A, B, C = p, -2 * (p * y + unit * beta), p * y * y - 2 * unit**2 * alpha
        state = [total + one * x for total, x in zip(state, h, strict=True)]
        if A and B * B > 4 * A * C:
            root = math.isqrt(B * B - 4 * A * C) + 1
            left, right = (-B - root) // (2 * A), -((B - root) // (2 * A))
        elif A or (B == 0 and C >= 0):
            continue
        else:  # p_y = 0: a straight line, negative on one side of its root, or everywhere
            left, right = -C // B if B < 0 else -math.inf, -(C // B) if B > 0 else math.inf
        events += [(left, 1, h), (right, -1, h)]
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
    print(f"largest bias      {_up(max(map(abs, report.biases))):.3g}")
    print(f"value             {sign * _up(sign * report.value)!r}")
    if report.bound is None:
        print(f"bound             optimality not checked: {report.note}")
    else:
        print(f"bound             {-sign * _up(-sign * report.bound)!r}, {'at most' if sign < 0 else 'at least'}")
        print(f"gap               {_up(report.gap):.3g}, {'relative' if report.value else 'absolute'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
