r"""Interval columns with integer masses and exact first moments: any rational output, and how floats stand for it.

Column ``j`` favours the labels ``first[j] ... last[j]``; it has an integer mass :math:`C_j` and a moment
:math:`x_j = C_j v_j`, so that its output :math:`v_j` is any rational. With :math:`R = r / d` label ``y`` has the weight
:math:`C_j (r \text{ if } y \text{ is favoured, else } d)` at it, and whatever is asked is a sum of integers.

What is released are floats. An output between two neighbouring floats is split between them so that its moment is kept:
the column stays private and its mean exact, and half its squared error grows by at most an eighth of the square of
their distance. Columns of one interval at neighbouring floats are joined again where the loss is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats
from optrand.model.arcs import Indices
from optrand.model.integer_arcs import IntegerArcs
from optrand.model.outputs import Grid
from optrand.model.problem import Problem

__all__ = ["ExactFlow", "in_order", "twos"]

FINER = 70
"""Outputs that may move lie on a lattice of this many binary digits below how far they reach."""

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
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.2)
    >>> near = ExactFlow.of(problem, [0, 1], [0, 1], [7, 7], np.array([-0.5, 1.5]), Fraction(3))
    >>> [str(bias) for bias in near.biases], str(near.squared_error(problem.prior))
    (['0', '0'], '3/4')
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
        low, more = self.factors
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
    def factors(self) -> tuple[int, int]:
        """What a mass is multiplied by for all labels, and in addition for those that its column favours."""
        return self.ratio.denominator, self.ratio.numerator - self.ratio.denominator

    def _rows(self, amounts: Iterable[int]) -> list[int]:
        """For each label the sum over columns of some integers, weighted as the label weights them."""
        low, more = self.factors
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
        low, more = self.factors
        error = 0
        columns = zip(self.first, self.last, self.masses, self.moments, self._squares(), strict=True)
        for a, last, mass, moment, square in columns:
            weight, pull, rest = (low * sums[-1] + more * (sums[last + 1] - sums[a]) for sums in (zeroth, once, twice))
            error += weight * square + ((mass * rest - 2 * moment * pull) << GUARD)
        return Fraction(error, self.total << (finer + 2 * self.digits + GUARD))

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
            finer = max(finer, twos(part.denominator))
            pieces.append((below, above, part.numerator, twos(part.denominator)))
        arcs = list[tuple[float, int, int, int]]()
        for (below, above, up, coarse), a, b, mass in zip(pieces, self.first, self.last, self.masses, strict=True):
            high = up << (finer - coarse)
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


def twos(number: int) -> int:
    """How often 2 divides a positive integer."""
    return (number & -number).bit_length() - 1
