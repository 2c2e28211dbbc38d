"""Interior-point method of the reduced dual in many digits, for supports that floats cannot identify.

Many intervals take part, so that no support has to be known: multipliers of those that are not in use fade away.
Steps solve the normal equations in floating point of twice as many digits as the numbers have. Cost of an iteration
``O(k**3)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from operator import mul

from optrand.studies.exact.nodes import Interval, Nodes, Point
from optrand.studies.exact.simplex import flint

__all__ = ["centred", "intervals", "tightest"]

ITERATIONS = 250
"""Limit of iterations."""


def tightest(point: Point) -> list[Interval]:
    """Intervals of least slack at a point, ten for each label."""
    every = intervals(point.nodes.k)
    return sorted(every, key=lambda interval: point.nodes.price(interval, point.b, point.c)[2])[: 10 * point.nodes.k]


def intervals(k: int) -> list[Interval]:
    """All intervals of nodes but that of all labels."""
    return [pair for pair in combinations(range(k + 1), 2) if pair != (0, k)]


def centred(nodes: Nodes, digits: int, every: list[Interval]) -> Point:
    """Point whose gap is about ``10**-digits`` of the spread of the labels, with the intervals that are then in use."""
    k, one = nodes.k, 1 << nodes.bits
    total = nodes.masses[k]
    point = Point(nodes, [0] * (k + 1), [(f << (nodes.bits - 1)) // total for f in nodes.masses[: k + 1]], every, [])
    slacks = [nodes.price(interval, point.b, point.c)[2] for interval in every]
    point.masses = [one * one // slack for slack in slacks]
    share = 10
    for _ in range(ITERATIONS):
        gap = sum(map(mul, point.masses, slacks)) >> nodes.bits
        if gap * 10**digits < one:
            break
        target = gap // (len(every) * share)
        moved, slacks = _step(point, slacks, target)
        share = 100 if moved > 0.95 else 10 if moved > 0.7 else 2
    used = [index for index, slack in enumerate(slacks) if point.masses[index] > slack]
    point.intervals, point.masses = [every[index] for index in used], [point.masses[index] for index in used]
    return point


def _step(point: Point, slacks: list[int], target: int) -> tuple[float, list[int]]:
    """Move a point towards all products of mass and slack at a target; the shorter step length, and new slacks."""
    nodes, inner, bits = point.nodes, point.nodes.k - 1, point.nodes.bits
    size = 2 * inner
    matrix = [[0] * size for _ in range(size)]
    right = [-d for d in nodes.distances] + [0] * inner
    rows = list[tuple[list[tuple[int, int]], int, int]]()
    for interval, mass, slack in zip(point.intervals, point.masses, slacks, strict=True):
        a, output, _ = nodes.price(interval, point.b, point.c)
        weight, pull = (mass << bits) // slack, (target << bits) // slack
        bend = weight * output >> bits
        curve = ((mass << bits) // a) + (bend * output >> bits)
        ends = [(node - 1, sign) for node, sign in zip(interval, (-1, 1), strict=True) if 0 < node < nodes.k]
        for x, sign in ends:
            right[x] -= sign * (pull * output >> bits)
            right[inner + x] += sign * pull
            for y, side in ends:
                same = sign * side
                matrix[x][y] += same * curve
                matrix[inner + x][inner + y] += same * weight
                matrix[x][inner + y] -= same * bend
                matrix[inner + x][y] -= same * bend
        rows.append((ends, output, weight))
    change = _solved(matrix, right, bits)
    in_b, in_c = change[:inner], change[inner:]
    masses = list[int]()
    for (ends, output, weight), mass, slack in zip(rows, point.masses, slacks, strict=True):
        rise = sum(sign * (in_c[x] - (in_b[x] * output >> bits)) for x, sign in ends)
        masses.append((target << bits) // slack - mass - (weight * rise >> bits))
    length = _longest(zip(point.masses, masses, strict=True))
    point.masses = [m + (length[0] * x // length[1]) for m, x in zip(point.masses, masses, strict=True)]
    moved = 64
    while True:
        b = [0, *(x + moved * d // 64 for x, d in zip(point.b[1:-1], in_b, strict=True)), 0]
        c = [0, *(x + moved * d // 64 for x, d in zip(point.c[1:-1], in_c, strict=True)), point.c[-1]]
        after = [nodes.price(interval, b, c)[2] for interval in point.intervals]
        if all(64 * new > old for new, old in zip(after, slacks, strict=True)) or moved == 1:
            break
        moved = moved * 3 // 4
    point.b, point.c = b, c
    return min(moved / 64, length[0] / length[1]), after


def _longest(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Longest step, at most 1 in units of 1/1024, that keeps every number above a hundredth of itself."""
    length = 1024
    for have, more in pairs:
        if 100 * (have + length * more // 1024) < have:
            length = max(1, 99 * have * 1024 // (-100 * more))
    return length, 1024


def _solved(matrix: list[list[int]], right: list[int], bits: int) -> list[int]:
    """Solution of a linear system in fixed point."""
    engine = flint()
    before, engine.ctx.prec = engine.ctx.prec, 2 * bits
    try:
        found = engine.arb_mat(matrix).solve(engine.arb_mat([[x] for x in right]), algorithm="approx").entries()
        parts = [tuple(map(int, x.mid().man_exp())) for x in found]
    finally:
        engine.ctx.prec = before
    return [m << (e + bits) if e + bits >= 0 else m >> -(e + bits) for m, e in parts]
