"""Exact columns whose means are right to the last bit.

Masses stay, and moments change along a spanning tree of the nodes and one path from node 0 to node ``k``
(``docs/mathematics.md``, Proposition 16): with masses that are multiples of ``(r - d)(d L + r - d)``, ``L`` the length
of the path, in integers, ``O(n log n)`` operations. Where outputs must stay, on a grid or at the ends of an interval,
:mod:`optrand.mechanism.completion` takes over.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optrand.base.arithmetic import float_above, float_below, places, scaled
from optrand.base.validation import Floats
from optrand.mechanism.completion import Completion
from optrand.model.exact_columns import ExactColumns, twos
from optrand.model.outputs import Grid, Interval, Line
from optrand.model.problem import Problem

__all__ = ["along_a_tree", "columns_near", "completed", "spanning_tree", "widest_path", "with_exact_means"]

FINER = 70
"""Binary digits of the lattice of outputs that may move, below the largest distance from the origin."""

NEARLY = 1 + Fraction(1, 10**12)
"""Largest factor of the loss for which columns of one output stay together."""


def columns_near(
    problem: Problem,
    first: list[int],
    last: list[int],
    masses: list[int],
    offsets: Floats,
    ratio: Fraction,
    origin: float = 0.0,
) -> ExactColumns:
    """Exact columns of integer masses and float outputs, one each, less the origin.

    Where means are to be made right, digits that only lengthen the integers are rounded off; not on a grid.
    """
    low, high = problem.outputs.low, problem.outputs.high
    middle, limits = np.array([origin]), np.array([end for end in (low, high) if math.isfinite(end)])
    finest = places(offsets)
    if problem.unbiased and not isinstance(problem.outputs, Grid):
        reach = float(np.abs(offsets).max()) or 1.0
        finest = min(finest, max(0, FINER - math.frexp(reach)[1]))
    digits = max(finest, *map(places, (problem.labels, middle, limits)))
    (zero,) = scaled(middle, digits)
    labels = [y - zero for y in scaled(problem.labels, digits)]
    below, above = (scaled(np.array([end]), digits)[0] - zero if math.isfinite(end) else end for end in (low, high))
    values = [int(min(max(_nearest(offset, digits), below), above)) for offset in offsets.tolist()]
    together = dict[tuple[int, int, int], int]()
    for a, b, value, mass in zip(first, last, values, masses, strict=True):
        together[a, b, value] = together.get((a, b, value), 0) + mass
    starts, ends, at = (list(column) for column in zip(*together, strict=True))
    moments = [mass * value for mass, value in zip(together.values(), at, strict=True)]
    return ExactColumns(labels, starts, ends, list(together.values()), moments, ratio, digits, origin)


def with_exact_means(problem: Problem, flow: ExactColumns) -> ExactColumns | None:
    """Exact columns with means that are right; None where the allowed outputs leave no room for that.

    The loss changes by as little as the biases are small. Columns of one output stay together if they can.

    Examples
    --------
    Outputs of randomized response that miss their means, and after the repair:

    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.2)
    >>> near = columns_near(problem, [0, 1], [0, 1], [7, 7], np.array([-0.4, 1.4]), Fraction(3))
    >>> [round(float(bias), 6) for bias in near.biases]
    [0.05, -0.05]
    >>> [str(output) for output in with_exact_means(problem, near).outputs]
    ['-1/2', '3/2']
    """
    low, high = problem.outputs.low, problem.outputs.high
    if isinstance(problem.outputs, Line):
        inside = [True] * len(flow.masses)
    else:
        inside = [low < v < high and not isinstance(problem.outputs, Grid) for v in flow.outputs]
    values = flow.values
    shared = Counter(values)
    alone = [free and shared[v] == 1 for v, free in zip(values, inside, strict=True)]
    moved = along_a_tree(problem, flow, alone)
    if moved is not None:
        return moved
    mixed = completed(problem, flow)
    if mixed is not None and mixed.squared_error(problem.prior) <= NEARLY * flow.squared_error(problem.prior):
        return mixed
    moved = along_a_tree(problem, flow, inside)
    if moved is None and isinstance(problem.outputs, Interval):
        # What rounding moved onto an end of the interval may belong just within it.
        moved = along_a_tree(problem, flow, [True] * len(inside))
    return moved or mixed


def along_a_tree(problem: Problem, flow: ExactColumns, movable: list[bool]) -> ExactColumns | None:
    """Exact columns with changed moments of the movable ones; None if these do not reach, or leave the outputs."""
    low, high = problem.outputs.low, problem.outputs.high
    tree, path = spanning_tree(flow, movable), widest_path(flow, movable)
    if tree is None or path is None:
        return None
    low_weight, more = flow.factors
    length = low_weight * len(path) + more
    masses = [mass * more * length for mass in flow.masses]
    moments = [moment * more * length for moment in flow.moments]
    # Residual of each node, divided by r - d, in the unit of moments.
    total = flow.total * length
    residuals = [0, *((after - before) * total for before, after in pairwise(flow.labels)), 0]
    for first, last, moment in zip(flow.first, flow.last, moments, strict=True):
        residuals[first] -= moment
        residuals[last + 1] += moment
    for node, j in tree:
        first, end = flow.first[j], flow.last[j] + 1
        change = residuals[node] if first == node else -residuals[node]
        moments[j] += change
        residuals[first] -= change
        residuals[end] += change
    begun = sum(moment for moment, first in zip(moments, flow.first, strict=True) if first == 0)
    step = total * more * flow.labels[0] - low_weight * sum(moments) - more * begun
    for j in path:
        moments[j] += step // length
    moved = replace(flow, masses=masses, moments=moments)
    if isinstance(problem.outputs, Line):
        return moved
    inside = all(low <= v <= high for v, free in zip(moved.outputs, movable, strict=True) if free)
    return moved if inside else None


def spanning_tree(flow: ExactColumns, movable: list[bool]) -> list[tuple[int, int]] | None:
    """Inner nodes and the columns that make them right, each before the node at the other end of its column.

    The tree is one of most mass; None where the columns that may move do not reach all nodes.
    """
    k = flow.k
    roots = list(range(k))

    def root(node: int) -> int:
        while roots[node] != node:
            roots[node] = roots[roots[node]]
            node = roots[node]
        return node

    branches: list[list[tuple[int, int]]] = [[] for _ in range(k)]
    free = [j for j, moves in enumerate(movable) if moves]
    for j in sorted(free, key=flow.masses.__getitem__, reverse=True):
        a, b = flow.first[j], (flow.last[j] + 1) % k
        if root(a) != root(b):
            roots[root(a)] = root(b)
            branches[a].append((b, j))
            branches[b].append((a, j))
    order, seen, stack = list[tuple[int, int]](), {0}, [0]
    while stack:
        node = stack.pop()
        for other, j in branches[node]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
                order.append((other, j))
    return order[::-1] if len(seen) == k else None


def widest_path(flow: ExactColumns, movable: list[bool]) -> list[int] | None:
    """Columns that may move, end to end from node 0 to node k, the lightest as heavy as can be."""
    best: list[tuple[int, int]] = [(0, -1)] * (flow.k + 1)
    best[0] = (sum(flow.masses), -1)
    for j in sorted(range(len(flow.first)), key=flow.first.__getitem__):
        reached = min(best[flow.first[j]][0], flow.masses[j])
        if movable[j] and reached > best[flow.last[j] + 1][0]:
            best[flow.last[j] + 1] = (reached, j)
    if not best[flow.k][0]:
        return None
    path, node = list[int](), flow.k
    while node:
        path.append(best[node][1])
        node = flow.first[path[-1]]
    return path


def completed(problem: Problem, flow: ExactColumns) -> ExactColumns | None:
    """Exact columns mixed with a mechanism of two outputs that takes out the biases.

    The outputs are the ends of what is allowed; on the line, the flow's own lowest and highest. The probabilities of
    the high one rise with the label, and so are sums of columns that favour all labels from some label on; those of the
    low one fall.
    """
    labels, zero = [Fraction(y, 1 << flow.digits) for y in flow.labels], Fraction(flow.origin)
    means = [y + bias for y, bias in zip(labels, flow.biases, strict=True)]
    low, high = problem.outputs.low, problem.outputs.high
    if math.isinf(low):
        low, high = float_below(min(flow.outputs)), float_above(max(flow.outputs))
    found = Completion.of((low, high), labels, means, flow.ratio, origin=zero, monotone=True)
    if found is None:
        return None
    total, more = flow.total, flow.ratio - 1
    share = found.kept * flow.ratio.denominator / total
    columns = [
        (a, b, share * mass, share * Fraction(moment, 1 << flow.digits))
        for a, b, mass, moment in zip(flow.first, flow.last, flow.masses, flow.moments, strict=True)
    ]
    last = flow.k - 1
    for output, chances in ((found.low, found.at_low[::-1]), (found.high, found.at_high)):
        steps = [(after - before) / more for before, after in pairwise(chances)]
        for i, step in enumerate([*steps, (chances[0] - sum(steps)) / flow.ratio]):
            start = (i + 1) % flow.k
            a, b = (0, last - start) if output == found.low else (start, last)
            columns.append((a, b, step, step * (Fraction(output) - zero)))
    columns = [column for column in columns if column[2]]
    unit = math.lcm(*(mass.denominator for _, _, mass, _ in columns))
    unit = math.lcm(unit, *(_odd(moment.denominator) for *_, moment in columns))
    digits = max(flow.digits, *(twos((unit * moment).denominator) for *_, moment in columns))
    return replace(
        flow,
        labels=[y << (digits - flow.digits) for y in flow.labels],
        first=[a for a, *_ in columns],
        last=[b for _, b, *_ in columns],
        masses=[int(unit * mass) for *_, mass, _ in columns],
        moments=[int(unit * moment * (1 << digits)) for *_, moment in columns],
        digits=digits,
    )


def _odd(number: int) -> int:
    """Odd part of a positive integer."""
    return number >> twos(number)


def _nearest(number: float, digits: int) -> int:
    """Integer nearest to ``number * 2**digits``."""
    above, below = number.as_integer_ratio()
    return (2 * (above << digits) + below) // (2 * below)
