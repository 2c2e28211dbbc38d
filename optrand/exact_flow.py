r"""Interval columns with integer masses and exact first moments: where means become right to the last bit.

Column ``j`` favours the labels ``first[j] ... last[j]``, an arc from node ``first[j]`` to node ``last[j] + 1``; it has
an integer mass :math:`C_j` and a moment :math:`x_j = C_j v_j`, so that its output :math:`v_j` is any rational. With
:math:`R = r / d` and the row total :math:`T`, all means are right if and only if

.. math:: (r - d) \Big( \sum_{\text{begin at } i} x_j - \sum_{\text{end at } i} x_j \Big) = T (y_i - y_{i-1}),
          \quad 0 < i < k, \qquad d \sum_j x_j + (r - d) \sum_{\text{begin at } 0} x_j = T y_0 .

**The repair.** Masses stay. Along a spanning tree of the nodes, of which 0 and k are one, each inner node has a branch
of its own: from the leaves inward its moment makes the node's equation true. What is then added to all moments along
one path from node 0 to node k changes no inner node, and makes the first mean right. With masses that are multiples of
``(r - d)(d L + r - d)``, ``L`` the length of the path, all of it is integer arithmetic, ``O(n log n)`` operations.
Where outputs must stay, at the ends of an interval, :mod:`optrand.completion` takes over.

**Floats.** What is released are floats. An output between two neighbouring floats is split between them so that its
moment is kept: the column stays private and its mean exact, and half its squared error grows by at most an eighth of
the square of their distance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul

import numpy as np

from optrand.arcs import Indices
from optrand.arcs.integers import IntegerArcs
from optrand.completion import Completion
from optrand.dyadic import places, quotient, scaled
from optrand.exact import float_above, float_below
from optrand.outputs import Grid
from optrand.problem import Problem
from optrand.validation import Floats

__all__ = ["ExactFlow", "in_order"]

FINER = 70
"""Outputs that may move lie on a lattice of this many binary digits below how far they reach."""

CHEAP = 1 + Fraction(1, 10**12)
"""What the loss may be multiplied by so that columns of one output stay together."""

GUARD = 128
"""Further binary digits of squares that are rounded up."""


@dataclass(frozen=True, eq=False)
class ExactFlow:
    """Interval columns in integers, measured from an origin.

    Attributes
    ----------
    labels : list of int
        Less the origin, in units of ``2**-digits``.
    first, last : list of int
        The labels that each column favours, both ends in.
    masses : list of int
        Above 0.
    moments : list of int
        ``mass * (output - origin)`` of each column, in units of ``2**-digits``.
    ratio : Fraction
    digits : int
    origin : float

    Examples
    --------
    Outputs of randomized response that miss their means, and after the repair:

    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.2)
    >>> near = ExactFlow.of(problem, [0, 1], [0, 1], [7, 7], np.array([-0.4, 1.4]), Fraction(3))
    >>> [str(bias) for bias in near.biases], [str(bias) for bias in near.unbiased(problem).biases]
    (['1801439850948197/36028797018963968', '-1801439850948201/36028797018963968'], ['0', '0'])
    >>> [str(output) for output in near.unbiased(problem).outputs]
    ['-1/2', '3/2']
    """

    labels: list[int]
    first: list[int]
    last: list[int]
    masses: list[int]
    moments: list[int]
    ratio: Fraction
    digits: int
    origin: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        first: list[int],
        last: list[int],
        masses: list[int],
        offsets: Floats,
        ratio: Fraction,
        origin: float = 0.0,
    ) -> ExactFlow:
        """Of one float output an arc, less the origin.

        Where means are to be made right, digits that only lengthen the integers are rounded off; not on a grid, whose
        values are what they are.
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
        return cls(labels, starts, ends, list(together.values()), moments, ratio, digits, origin)

    @classmethod
    def of_integers(
        cls, labels: Floats, outputs: Floats, arcs: IntegerArcs, ratio: Fraction, *, joined: bool = True
    ) -> ExactFlow:
        """Of integer arcs, those of one interval at neighbouring floats joined into the column that they split.

        Not `joined` they stay as they are: on a grid the mean of two outputs is none.
        """
        digits = max(places(labels), places(outputs))
        values, floats = scaled(outputs, digits), outputs.tolist()
        first, last, at = (ends.tolist() for ends in (arcs.first, arcs.last, arcs.at))
        masses = arcs.masses.tolist()
        columns = list[tuple[int, int, int, int]]()
        before: tuple[int, int, float] | None = None
        for j in np.lexsort((arcs.at, arcs.last, arcs.first)).tolist():
            a, b, output = first[j], last[j], floats[at[j]]
            mass, moment = masses[j], masses[j] * values[at[j]]
            if joined and before == (a, b, math.nextafter(output, -math.inf)):
                *_, more, further = columns.pop()
                mass, moment = mass + more, moment + further
            columns.append((a, b, mass, moment))
            before = a, b, output
        starts, ends, total, moments = (list(part) for part in zip(*columns, strict=True))
        return cls(scaled(labels, digits), starts, ends, total, moments, ratio, digits, 0.0)

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def total(self) -> int:
        """The total of each row."""
        low, more = self._factors
        return low * sum(self.masses) + more * sum(
            mass for mass, first in zip(self.masses, self.first, strict=True) if first == 0
        )

    @property
    def outputs(self) -> list[Fraction]:
        """The output of each column."""
        zero = Fraction(self.origin)
        return [
            zero + Fraction(moment, mass << self.digits) for moment, mass in zip(self.moments, self.masses, strict=True)
        ]

    @property
    def biases(self) -> list[Fraction]:
        """``E[M(y)] - y`` of each label."""
        total = self.total
        unit = total << self.digits
        sums = zip(self._rows(self.moments), self.labels, strict=True)
        return [Fraction(moment - total * y, unit) for moment, y in sums]

    @property
    def _factors(self) -> tuple[int, int]:
        """What a mass is multiplied by for all labels, and in addition for those that its column favours."""
        return self.ratio.denominator, self.ratio.numerator - self.ratio.denominator

    def _rows(self, amounts: Iterable[int]) -> list[int]:
        """For each label the sum over columns of some integers, weighted as the label weights them."""
        low, more = self._factors
        steps, base = [0] * (self.k + 1), 0
        for first, last, amount in zip(self.first, self.last, amounts, strict=True):
            steps[first] += amount
            steps[last + 1] -= amount
            base += amount
        return [low * base + more * favoured for favoured in accumulate(steps[:-1])]

    def _squares(self) -> list[int]:
        """``mass * (output - origin)**2``, in units of ``2**-(2 digits + GUARD)``, rounded up."""
        return [-((-moment * moment << GUARD) // mass) for moment, mass in zip(self.moments, self.masses, strict=True)]

    def squared_errors(self) -> list[Fraction]:
        """``E[(v - y)**2]`` of each label, rounded up where an output has no end of digits."""
        unit = self.total << (2 * self.digits + GUARD)
        rows = zip(self.labels, self._rows(self._squares()), self._rows(self.moments), strict=True)
        total = self.total
        return [Fraction(square + ((total * y - 2 * mean) * y << GUARD), unit) for y, square, mean in rows]

    def squared_error(self, prior: Floats) -> Fraction:
        """``E[(v - y)**2]`` where the label has the given prior, rounded up where an output has no end of digits."""
        finer = places(prior)
        parts = scaled(prior, finer)
        pulls = list(map(mul, parts, self.labels))
        zeroth, once, twice = (list(accumulate(x, initial=0)) for x in (parts, pulls, map(mul, pulls, self.labels)))
        low, more = self._factors
        error = 0
        columns = zip(self.first, self.last, self.masses, self.moments, self._squares(), strict=True)
        for a, last, mass, moment, square in columns:
            weight, pull, rest = (low * sums[-1] + more * (sums[last + 1] - sums[a]) for sums in (zeroth, once, twice))
            error += weight * square + ((mass * rest - 2 * moment * pull) << GUARD)
        return Fraction(error, self.total << (finer + 2 * self.digits + GUARD))

    def unbiased(self, problem: Problem) -> ExactFlow | None:
        """The same with means that are right, exactly; None where the allowed outputs leave no room for that.

        The loss changes by as little as the biases are small. Columns of one output stay together if they can: they are
        one column to whoever sees outputs.
        """
        low, high = problem.outputs.low, problem.outputs.high
        outputs = self.outputs
        inside = [low < v < high and not isinstance(problem.outputs, Grid) for v in outputs]
        shared = Counter(outputs)
        alone = [free and shared[v] == 1 for v, free in zip(outputs, inside, strict=True)]
        moved = self._along_a_tree(problem, alone)
        if moved is not None:
            return moved
        mixed = self._completed(problem)
        if mixed is not None and mixed.squared_error(problem.prior) <= CHEAP * self.squared_error(problem.prior):
            return mixed
        return self._along_a_tree(problem, inside) or mixed

    def _along_a_tree(self, problem: Problem, movable: list[bool]) -> ExactFlow | None:
        """Moments of movable columns changed, as at the top of the module."""
        low, high = problem.outputs.low, problem.outputs.high
        tree, path = self._tree(movable), self._path(movable)
        if tree is None or path is None:
            return None
        low_weight, more = self._factors
        length = low_weight * len(path) + more
        masses = [mass * more * length for mass in self.masses]
        moments = [moment * more * length for moment in self.moments]
        # What each node still lacks, divided by r - d, in the unit of moments.
        total = self.total * length
        lacking = [0, *((after - before) * total for before, after in pairwise(self.labels)), 0]
        for first, last, moment in zip(self.first, self.last, moments, strict=True):
            lacking[first] -= moment
            lacking[last + 1] += moment
        for node, j in tree:
            first, end = self.first[j], self.last[j] + 1
            change = lacking[node] if first == node else -lacking[node]
            moments[j] += change
            lacking[first] -= change
            lacking[end] += change
        begun = sum(moment for moment, first in zip(moments, self.first, strict=True) if first == 0)
        step = total * more * self.labels[0] - low_weight * sum(moments) - more * begun
        for j in path:
            moments[j] += step // length
        moved = replace(self, masses=masses, moments=moments)
        inside = all(low <= v <= high for v, free in zip(moved.outputs, movable, strict=True) if free)
        return moved if inside else None

    def _tree(self, movable: list[bool]) -> list[tuple[int, int]] | None:
        """Inner nodes and the columns that make them right, each before the node at the other end of its column.

        The tree is one of most mass; None where the columns that may move do not reach all nodes.
        """
        k = self.k
        roots = list(range(k))

        def root(node: int) -> int:
            while roots[node] != node:
                roots[node] = roots[roots[node]]
                node = roots[node]
            return node

        branches: list[list[tuple[int, int]]] = [[] for _ in range(k)]
        free = [j for j, moves in enumerate(movable) if moves]
        for j in sorted(free, key=self.masses.__getitem__, reverse=True):
            a, b = self.first[j], (self.last[j] + 1) % k
            if root(a) != root(b):
                roots[root(a)] = root(b)
                branches[a].append((b, j))
                branches[b].append((a, j))
        order, seen, heap = list[tuple[int, int]](), {0}, [0]
        while heap:
            node = heap.pop()
            for other, j in branches[node]:
                if other not in seen:
                    seen.add(other)
                    heap.append(other)
                    order.append((other, j))
        return order[::-1] if len(seen) == k else None

    def _path(self, movable: list[bool]) -> list[int] | None:
        """Columns that may move, end to end from node 0 to node k, the lightest as heavy as can be."""
        best: list[tuple[int, int]] = [(0, -1)] * (self.k + 1)
        best[0] = (sum(self.masses), -1)
        for j in sorted(range(len(self.first)), key=self.first.__getitem__):
            reached = min(best[self.first[j]][0], self.masses[j])
            if movable[j] and reached > best[self.last[j] + 1][0]:
                best[self.last[j] + 1] = (reached, j)
        if not best[self.k][0]:
            return None
        path, node = list[int](), self.k
        while node:
            path.append(best[node][1])
            node = self.first[path[-1]]
        return path

    def _completed(self, problem: Problem) -> ExactFlow | None:
        """Mixed with a mechanism of two outputs that takes the biases back (:mod:`optrand.completion`)."""
        labels, zero = [Fraction(y, 1 << self.digits) for y in self.labels], Fraction(self.origin)
        means = [y + bias for y, bias in zip(labels, self.biases, strict=True)]
        low, high = problem.outputs.low, problem.outputs.high
        if math.isinf(low):
            low, high = float_below(min(self.outputs)), float_above(max(self.outputs))
        found = Completion.of((low, high), labels, means, self.ratio, origin=zero, monotone=True)
        if found is None:
            return None
        total, more = self.total, self.ratio - 1
        share = found.kept * self.ratio.denominator / total
        columns = [
            (a, b, share * mass, share * Fraction(moment, 1 << self.digits))
            for a, b, mass, moment in zip(self.first, self.last, self.masses, self.moments, strict=True)
        ]
        last = self.k - 1
        for output, chances in ((found.low, found.at_low[::-1]), (found.high, found.at_high)):
            steps = [(after - before) / more for before, after in pairwise(chances)]
            for i, step in enumerate([*steps, (chances[0] - sum(steps)) / self.ratio]):
                start = (i + 1) % self.k
                a, b = (0, last - start) if output == found.low else (start, last)
                columns.append((a, b, step, step * (Fraction(output) - zero)))
        columns = [column for column in columns if column[2]]
        unit = math.lcm(*(mass.denominator for _, _, mass, _ in columns))
        unit = math.lcm(unit, *(_odd(moment.denominator) for *_, moment in columns))
        digits = max(self.digits, *(_twos((unit * moment).denominator) for *_, moment in columns))
        return replace(
            self,
            labels=[y << (digits - self.digits) for y in self.labels],
            first=[a for a, *_ in columns],
            last=[b for _, b, *_ in columns],
            masses=[int(unit * mass) for *_, mass, _ in columns],
            moments=[int(unit * moment * (1 << digits)) for *_, moment in columns],
            digits=digits,
        )

    def in_floats(self) -> tuple[Floats, IntegerArcs]:
        """Float outputs, strictly increasing, and integer arcs: outputs between two floats are split between them."""
        zero = Fraction(self.origin)
        pieces = list[tuple[float, float, int, int]]()
        finer = 0
        for x, mass in zip(self.moments, self.masses, strict=True):
            where = zero * mass + Fraction(x, 1 << self.digits)
            nearest = quotient(where.numerator, where.denominator * mass)
            left = where - mass * Fraction(nearest)
            if not left:
                pieces.append((nearest, nearest, 0, 0))
                continue
            below, above = sorted((nearest, math.nextafter(nearest, math.inf if left > 0 else -math.inf)))
            part = (where - mass * Fraction(below)) / (Fraction(above) - Fraction(below))
            finer = max(finer, _twos(part.denominator))
            pieces.append((below, above, part.numerator, _twos(part.denominator)))
        arcs = list[tuple[float, int, int, int]]()
        for (below, above, up, twos), a, b, mass in zip(pieces, self.first, self.last, self.masses, strict=True):
            high = up << (finer - twos)
            arcs.append((below, a, b, (mass << finer) - high))
            if high:
                arcs.append((above, a, b, high))
        common = math.gcd(*(mass for *_, mass in arcs))
        outputs, first, last, masses = (list(column) for column in zip(*arcs, strict=True))
        return in_order(self.k, np.array(first), np.array(last), np.array(outputs), [mass // common for mass in masses])

    def rounded(self) -> tuple[Floats, IntegerArcs]:
        """The same with each output rounded to the nearest float: for pictures and tables, where no bit counts."""
        outputs = np.array([float(output) for output in self.outputs])
        return in_order(self.k, np.array(self.first), np.array(self.last), outputs, self.masses)


def in_order(k: int, first: Indices, last: Indices, outputs: Floats, masses: list[int]) -> tuple[Floats, IntegerArcs]:
    """Distinct outputs and the arcs that have a mass, in the order of their outputs; all arguments are one an arc."""
    order = np.lexsort((last, first, outputs))
    order = order[[masses[j] > 0 for j in order.tolist()]]
    distinct, at = np.unique(outputs[order], return_inverse=True)
    kept = np.array([masses[j] for j in order.tolist()], dtype=object)
    return distinct, IntegerArcs(k, first[order], last[order], at, kept)


def _nearest(number: float, digits: int) -> int:
    """The integer nearest to ``number * 2**digits``."""
    above, below = number.as_integer_ratio()
    return (2 * (above << digits) + below) // (2 * below)


def _odd(number: int) -> int:
    """A positive integer without its factors of 2."""
    return number >> _twos(number)


def _twos(number: int) -> int:
    """How often 2 divides a positive integer."""
    return (number & -number).bit_length() - 1
