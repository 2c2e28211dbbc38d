"""Columns that multipliers price below zero and that are no intervals, in long numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optrand.solvers.long_numbers.arithmetic import Long
from optrand.solvers.long_numbers.program import LongProgram, Set

__all__ = ["missing"]

Members = NDArray[np.bool_]


def missing(program: LongProgram, sums: Long, tolerance: int) -> set[Set]:
    """Sets of labels, no intervals, whose columns cost less than ``-tolerance``: in ``O(k**2)`` operations."""
    alpha, beta = np.diff(sums, prepend=0, axis=1)
    found = set[Set]()
    for low, high in pairwise(_breaks(program, alpha, beta)):
        members = _reduced(program, alpha, beta, (low + high) // 2) < 0
        if _is_interval(members):
            continue
        best = np.clip(_best(program, beta, members), low, high)
        if _price(program, _reduced(program, alpha, beta, best), members) < -tolerance:
            found.add(tuple(members.tolist()))
    return found


def _is_interval(members: Members) -> bool:
    """Whether the members follow each other."""
    inside = np.flatnonzero(members)
    return not inside.size or int(inside[-1] - inside[0]) + 1 == inside.size


def _reduced(program: LongProgram, alpha: Long, beta: Long, output: int) -> Long:
    """Reduced cost of each label at an output."""
    product, apart = program.numbers.product, output - program.labels
    reduced: Long = product(program.prior, product(apart, apart)) // 2 - alpha - product(beta, output)
    return reduced


def _weights(program: LongProgram, members: Members) -> Long:
    """The weight of each label in a column."""
    weights = np.full(members.size, program.least, dtype=object)
    weights[members] = program.numbers.one
    return weights


def _price(program: LongProgram, reduced: Long, members: Members) -> int:
    """What a column costs."""
    return int(program.numbers.product(_weights(program, members), reduced).sum())


def _best(program: LongProgram, beta: Long, members: Members) -> int:
    """The best output of a column."""
    numbers, weights = program.numbers, _weights(program, members)
    slope = numbers.product(weights, numbers.product(program.prior, program.labels) + beta).sum()
    return int(numbers.quotient(slope, numbers.product(weights, program.prior).sum()))


def _breaks(program: LongProgram, alpha: Long, beta: Long) -> list[int]:
    """Outputs at which a reduced cost changes its sign, and the ends of the outputs."""
    numbers, breaks = program.numbers, set[int]()
    for prior, label, height, slope in zip(program.prior, program.labels, alpha, beta, strict=True):
        constant = numbers.product(prior, label, label) // 2 - height
        linear = numbers.product(prior, label) + slope
        if not prior:
            breaks |= {int(numbers.quotient(constant, linear))} if linear else set()
            continue
        square = linear * linear - 2 * prior * constant
        if square >= 0:
            root = math.isqrt(square)
            breaks |= {int(numbers.quotient(linear - root, prior)), int(numbers.quotient(linear + root, prior))}
    low, high = program.box or (min(breaks, default=0) - numbers.one, max(breaks, default=0) + numbers.one)
    return sorted({low, high, *(v for v in breaks if low < v < high)})
