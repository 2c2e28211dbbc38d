r"""Reduced dual of the unbiased problem on the line, in fixed-point integers, and Newton's method on its support.

Nodes lie between labels; node ``j`` has the prior :math:`F_j` of the labels before it, coordinates :math:`b_j, c_j`,
and the distance :math:`d_j` of the labels beside it. With :math:`e = 1 / (R - 1)` and :math:`P` the sum of the prior

.. math:: \max W = -\sum_j d_j b_j \quad \text{s.t.} \quad C - \frac{B^2}{2A} \geq 0, \quad
          A = F_j - F_i + eP, \; B = b_j - b_i, \; C = c_j - c_i + e/2

for all intervals from node ``i`` to node ``j``; :math:`b = c = 0` at the first node, :math:`b = 0, c = 1/2` at the
last. The least loss is :math:`(W^2 - \mathrm{Var}) / 2` (``docs/mathematics.md``, sections 13 and 16).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np
from scipy.optimize import nnls

from optrand.base.validation import Floats
from optrand.certificates.rational import RationalDual
from optrand.errors import SolverFailed
from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["Interval", "Nodes", "Point", "connected", "newton", "supported"]

Interval = tuple[int, int]
"""First node and last node."""

STEPS = 40
"""Limit of steps of Newton's method."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Problem in fixed point: numbers are integers in units of ``2**-bits``, labels scaled by a power of two.

    Attributes
    ----------
    problem : Problem
    ratio : Fraction
    bits : int
    """

    problem: Problem
    ratio: Fraction
    bits: int

    @property
    def k(self) -> int:
        """Number of labels: nodes are ``0 ... k``."""
        return self.problem.k

    def fixed(self, x: Fraction | float) -> int:
        """Integer of a number."""
        exact = Fraction(x)
        return (exact.numerator << self.bits) // exact.denominator

    def real(self, x: int) -> float:
        """Float of an integer."""
        return float(Fraction(x, 1 << self.bits))

    @cached_property
    def scale(self) -> Fraction:
        """Power of two by which labels are divided."""
        return Fraction(2) ** math.frexp(float(np.ptp(self.problem.labels)))[1]

    @cached_property
    def labels(self) -> list[Fraction]:
        """Labels, scaled."""
        return [Fraction(y) / self.scale for y in self.problem.labels.tolist()]

    @cached_property
    def prior(self) -> list[Fraction]:
        """Prior."""
        return [Fraction(p) for p in self.problem.prior.tolist()]

    @cached_property
    def masses(self) -> list[int]:
        """Prior before each node, and that of all labels over ``R - 1`` added at the end."""
        before = accumulate(self.prior, initial=Fraction(0))
        return [*map(self.fixed, before), self.fixed(sum(self.prior, Fraction(0)) / (self.ratio - 1))]

    @cached_property
    def half(self) -> int:
        """The constant ``e / 2``."""
        return self.fixed(1 / (2 * (self.ratio - 1)))

    @cached_property
    def distances(self) -> list[int]:
        """Distance of the labels beside each inner node."""
        return [self.fixed(y - x) for x, y in zip(self.labels, self.labels[1:], strict=False)]

    def price(self, interval: Interval, b: Sequence[int], c: Sequence[int]) -> tuple[int, int, int]:
        """The numbers ``A``, ``B / A`` and ``C - B**2 / 2A`` of an interval."""
        i, j = interval
        a, rise = self.masses[j] - self.masses[i] + self.masses[-1], b[j] - b[i]
        output = (rise << self.bits) // a
        return a, output, c[j] - c[i] + self.half - (rise * output >> (self.bits + 1))


@dataclass(eq=False)
class Point:
    """Primal and dual point: coordinates of nodes, and intervals with their masses up to one factor."""

    nodes: Nodes
    b: list[int]
    c: list[int]
    intervals: list[Interval]
    masses: list[int]

    @classmethod
    def of_dual(cls, nodes: Nodes, dual: Dual, intervals: list[Interval]) -> Point:
        """Point at multipliers in floats, shifted and scaled so that the last node is at its place."""
        origin, scale = Fraction(dual.origin) / nodes.scale, nodes.scale
        rows = zip(nodes.prior, nodes.labels, dual.alpha.tolist(), dual.beta.tolist(), strict=True)
        steps = [
            (p, p * (y - origin) + Fraction(beta) / scale, p * (y - origin) ** 2 / 2 - Fraction(alpha) / scale**2)
            for p, y, alpha, beta in rows
        ]
        shift = sum((step[1] for step in steps), Fraction(0)) / sum(nodes.prior, Fraction(0))
        steps = [(p, b - shift * p, c - shift * b + shift * shift * p / 2) for p, b, c in steps]
        width = Fraction(math.sqrt(max(float(2 * sum(step[2] for step in steps)), 1e-300)))
        b = list(accumulate((nodes.fixed(step[1] / width) for step in steps), initial=0))
        c = list(accumulate((nodes.fixed(step[2] / width**2) for step in steps), initial=0))
        b[-1], c[-1] = 0, 1 << (nodes.bits - 1)
        return cls(nodes, b, c, intervals, [0] * len(intervals))

    @property
    def objective(self) -> Fraction:
        """The number ``W``, in units of the scaled labels."""
        return -Fraction(sum(map(mul, self.nodes.distances, self.b[1:-1])), 1 << 2 * self.nodes.bits)

    def residuals(self) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Prices of the intervals, and residuals of stationarity in ``b``, in ``c``, and of the prices."""
        nodes, inner = self.nodes, self.nodes.k - 1
        prices = [nodes.price(interval, self.b, self.c) for interval in self.intervals]
        in_b, in_c = [-d for d in nodes.distances], [0] * inner
        for (i, j), (_, output, _), mass in zip(self.intervals, prices, self.masses, strict=True):
            moment = mass * output >> nodes.bits
            if i > 0:
                in_b[i - 1] += moment
                in_c[i - 1] -= mass
            if j < nodes.k:
                in_b[j - 1] -= moment
                in_c[j - 1] += mass
        return prices, [*in_b, *in_c, *(slack for _, _, slack in prices)]

    def dual(self) -> RationalDual:
        """Multipliers of the point, at the best scale, dyadic."""
        nodes, one = self.nodes, 1 << self.nodes.bits
        width, total = self.objective, sum(nodes.prior, Fraction(0))
        origin = sum(map(mul, nodes.prior, nodes.labels), Fraction(0)) / total
        alpha, beta = list[Fraction](), list[Fraction]()
        for j, (p, y) in enumerate(zip(nodes.prior, nodes.labels, strict=True)):
            rise, lift = (Fraction(x[j + 1] - x[j], one) for x in (self.b, self.c))
            rise, lift = width * rise, width * width * lift
            lift += origin * rise + origin * origin * p / 2
            rise += origin * p
            alpha.append(Fraction(nodes.fixed(p * y * y / 2 - lift), one) * nodes.scale**2)
            beta.append(Fraction(nodes.fixed(rise - p * y), one) * nodes.scale)
        return RationalDual(tuple(alpha), tuple(beta))

    def mechanism(self) -> RationalMechanism:
        """Mechanism of the intervals with positive masses, exactly private and exactly unbiased.

        Masses of a spanning tree of heaviest intervals follow from the others by the conservation of mass at inner
        nodes, and so do moments, whose balance at a node is the distance of its labels; a shift of all outputs makes
        the first mean right.
        """
        nodes, k = self.nodes, self.nodes.k
        flow = [(interval, mass) for interval, mass in zip(self.intervals, self.masses, strict=True) if mass > 0]
        flow.sort(key=lambda pair: -pair[1])
        intervals = [interval for interval, _ in flow]
        tree = _spanning(intervals, k)
        if len(tree) < k:
            raise SolverFailed("the intervals in use do not connect the labels: report this problem")
        moments = [m * nodes.price(q, self.b, self.c)[1] >> nodes.bits for q, m in flow]
        first = sum(m for (i, _), m in flow if i == 0)
        first_moment = sum(x for (i, _), x in zip(intervals, moments, strict=True) if i == 0)
        masses = _balanced(intervals, [m for _, m in flow], tree, [first, *[0] * (k - 1), -first])
        rises = sum(nodes.distances)
        balance = [first_moment, *nodes.distances, -first_moment - rises]
        moments = _balanced(intervals, moments, tree, balance)
        kept = [(q, m, x) for q, m, x in zip(intervals, masses, moments, strict=True) if m > 0]
        # The total of each row in units of the masses, and of the first row's moments.
        high, low = nodes.ratio.as_integer_ratio()
        weight = [high if q[0] == 0 else low for q, _, _ in kept]
        total = sum(w * m for w, (_, m, _) in zip(weight, kept, strict=True))
        factor = Fraction(total, (high - low) << nodes.bits)
        outputs = [Fraction(x, m) * factor for _, m, x in kept]
        mean = sum((w * m * v for w, (_, m, _), v in zip(weight, kept, outputs, strict=True)), Fraction(0)) / total
        shift = nodes.labels[0] - mean
        columns = [
            ((v + shift) * nodes.scale, m, [i <= y < j for y in range(k)])
            for ((i, j), m, _), v in zip(kept, outputs, strict=True)
        ]
        return RationalMechanism.of_columns([y * nodes.scale for y in nodes.labels], columns, nodes.ratio)


def _spanning(intervals: Iterable[Interval], k: int) -> list[int]:
    """Indices of the first intervals that close no circle between the nodes."""
    root = list(range(k + 1))

    def top(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    tree = list[int]()
    for index, (i, j) in enumerate(intervals):
        if top(i) != top(j):
            root[top(i)] = top(j)
            tree.append(index)
    return tree


def _balanced(intervals: list[Interval], amounts: list[int], tree: list[int], supply: list[int]) -> list[int]:
    """Amounts with those of the tree replaced, so that what leaves each node less what enters is its supply."""
    amounts, missing, left = list(amounts), list(supply), set(tree)
    for index, (i, j) in enumerate(intervals):
        if index not in left:
            missing[i] -= amounts[index]
            missing[j] += amounts[index]
    degree = [0] * len(supply)
    for index in left:
        for node in intervals[index]:
            degree[node] += 1
    while left:
        # A leaf settles the one interval that it has left.
        index = next(x for x in left if min(degree[node] for node in intervals[x]) == 1)
        i, j = intervals[index]
        amounts[index] = missing[i] if degree[i] == 1 else -missing[j]
        missing[i] -= amounts[index]
        missing[j] += amounts[index]
        for node in (i, j):
            degree[node] -= 1
        left.remove(index)
    return amounts


def supported(point: Point) -> bool:
    """Keep independent intervals with masses that balance, by nonnegative least squares in floats; whether it ended."""
    nodes, inner = point.nodes, point.nodes.k - 1
    matrix = np.zeros((2 * inner, len(point.intervals)))
    for column, interval in enumerate(point.intervals):
        output = nodes.real(nodes.price(interval, point.b, point.c)[1])
        for node, sign in zip(interval, (1, -1), strict=True):
            if 0 < node < nodes.k:
                matrix[[node - 1, inner + node - 1], column] += sign * output, sign
    target = np.array([*map(nodes.real, nodes.distances), *[0.0] * inner])
    try:
        found, _ = nnls(matrix, target, maxiter=50 * len(point.intervals))
    except RuntimeError:
        return False
    used = np.flatnonzero(found > 0).tolist()
    point.intervals = [point.intervals[index] for index in used]
    point.masses = [nodes.fixed(float(found[index])) for index in used]
    return connected(point)


def connected(point: Point) -> bool:
    """Whether the intervals join all nodes."""
    return len(_spanning(point.intervals, point.nodes.k)) == point.nodes.k


def newton(point: Point) -> bool:
    """Newton's method on the intervals of a point as equations, to all digits; whether it got there.

    Residuals are exact to the last digits and steps are in floats, so each step gains as many digits as floats have
    over the condition of the Jacobian.
    """
    nodes, inner = point.nodes, point.nodes.k - 1
    goal, sizes = 1 << (nodes.bits // 6), list[int]()
    for _ in range(STEPS):
        prices, residuals = point.residuals()
        size = max(map(abs, residuals))
        if size <= goal:
            return True
        sizes.append(size)
        if len(sizes) > 3 and sizes[-1] * 100 > sizes[-3]:
            return False
        try:
            step = np.linalg.solve(_jacobian(point, prices), np.array([float(Fraction(x, size)) for x in residuals]))
        except np.linalg.LinAlgError:
            return False
        if not np.isfinite(step).all():
            return False
        whole = [nodes.fixed(x) * size >> nodes.bits for x in step.tolist()]
        for j in range(inner):
            point.b[j + 1] -= whole[j]
            point.c[j + 1] -= whole[inner + j]
        point.masses = [m - x for m, x in zip(point.masses, whole[2 * inner :], strict=True)]
    return False


def _jacobian(point: Point, prices: list[tuple[int, int, int]]) -> Floats:
    """Derivatives of the residuals by ``b``, ``c`` and the masses."""
    nodes, inner = point.nodes, point.nodes.k - 1
    matrix = np.zeros((2 * inner + len(prices), 2 * inner + len(prices)))
    for row, (interval, mass, (a, output, _)) in enumerate(
        zip(point.intervals, point.masses, prices, strict=True), 2 * inner
    ):
        slope, curve = nodes.real(output), mass / a
        ends = [(node - 1, sign) for node, sign in zip(interval, (-1, 1), strict=True) if 0 < node < nodes.k]
        for node, sign in ends:
            matrix[[row, node], [node, row]] -= slope * sign
            matrix[[row, inner + node], [inner + node, row]] += sign
            for other, side in ends:
                matrix[node, other] -= curve * sign * side
    return matrix
