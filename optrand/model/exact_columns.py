"""Rows, moments and losses of interval columns in integers, without their table.

Column ``j`` favours the labels ``first[j] ... last[j]``; it has an integer mass :math:`C_j` and a first moment
:math:`x_j = C_j v_j`, so that its output :math:`v_j` is any rational. With :math:`R = r / d` its weight is :math:`C_j
r` for the labels that it favours and :math:`C_j d` for the others. Floats are integers over powers of two, so this
holds a design in floats as well as a mechanism. Sums are differences of running totals: each figure costs ``O(k + n)``
integer operations, and a float at the end is rounded once.

An output between two neighbouring floats is split between them so that its moment is kept (``docs/mathematics.md``,
Proposition 17). That costs loss, and a mechanism's figures are those of its columns at floats.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import add, mul

import numpy as np

from optrand.base.arithmetic import Integers, places, quotient, quotients, scaled
from optrand.base.records import Record
from optrand.base.validation import Floats
from optrand.model.arcs import Arcs, Indices, IntegerArcs, weighted

__all__ = ["ExactColumns", "deviations", "in_order", "twos"]

GUARD = 128
"""Further binary digits of squares that are rounded up."""


@dataclass(frozen=True, eq=False)
class ExactColumns(Record):
    """Interval columns in integers, measured from an origin.

    Attributes
    ----------
    labels : list of int
        Less the origin, in units of ``2**-digits``.
    first, last : list of int
        First and last label that each column favours.
    masses : list of int
    moments : list of int
        ``mass * (output - origin)`` of each column, in units of ``2**-digits``.
    ratio : Fraction
    digits : int
    origin : float
    unit : int, optional
        The sum of weights that counts as probability 1; by default the first row's.
    guard : int
        Further digits of second moments, which are rounded up: none where all outputs are multiples of the unit.

    Examples
    --------
    Randomized response of two labels at ``E = 3``, in floats and in integers:

    >>> coin = ExactColumns.of_arcs(np.array([0.0, 1.0]), Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.25, 0.25]), 3.0)
    >>> coin.variances.tolist(), coin.squared_error(np.array([0.5, 0.5]))
    ([0.75, 0.75], Fraction(3, 4))
    >>> two = ExactColumns.of_integers(np.array([0.0, 1.0]), np.array([-0.5, 1.5]), IntegerArcs(
    ...     2, [0, 1], [0, 1], [0, 1], [7, 7]), Fraction(3))
    >>> two.total, [str(bias) for bias in two.biases], str(two.squared_error(np.array([0.5, 0.5])))
    (28, ['0', '0'], '3/4')
    """

    labels: list[int]
    first: list[int]
    last: list[int]
    masses: list[int]
    moments: list[int]
    ratio: Fraction
    digits: int
    origin: float = 0.0
    unit: int | None = None
    guard: int = GUARD

    @classmethod
    def of_arcs(cls, labels: Floats, arcs: Arcs, ratio: float) -> ExactColumns:
        """Columns of arcs in floats, of any masses; probability 1 is 1, whatever the rows sum to."""
        digits, finer = max(map(places, (labels, arcs.outputs, arcs.rests))), places(arcs.masses)
        values = map(add, scaled(arcs.outputs, digits), scaled(arcs.rests, digits))
        masses, exact = scaled(arcs.masses, finer), Fraction(ratio)
        moments, unit = list(map(mul, masses, values)), exact.denominator << finer
        first, last = arcs.first.tolist(), arcs.last.tolist()
        return cls(scaled(labels, digits), first, last, masses, moments, exact, digits, unit=unit, guard=0)

    @classmethod
    def of_integers(
        cls,
        labels: Floats,
        outputs: Floats,
        arcs: IntegerArcs,
        ratio: Fraction,
        *,
        origin: float = 0.0,
    ) -> ExactColumns:
        """Columns of integer arcs, one each; `outputs` are less the origin."""
        middle = np.array([origin])
        digits = max(map(places, (labels, outputs, middle)))
        values, (zero,) = scaled(outputs, digits), scaled(middle, digits)
        line = [y - zero for y in scaled(labels, digits)]
        masses = arcs.masses.tolist()
        moments = [mass * values[i] for mass, i in zip(masses, arcs.at.tolist(), strict=True)]
        first, last = arcs.first.tolist(), arcs.last.tolist()
        return cls(line, first, last, masses, moments, ratio, digits, origin, guard=0)

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def factors(self) -> tuple[int, int]:
        """Factor of a mass for all labels, and the one in addition for those that its column favours."""
        return self.ratio.denominator, self.ratio.numerator - self.ratio.denominator

    @cached_property
    def total(self) -> int:
        """Sum of weights that is probability 1."""
        return self._rows[0] if self.unit is None else self.unit

    @property
    def values(self) -> list[int | Fraction]:
        """Output of each column less the origin, in units of ``2**-digits``."""
        divided = zip(map(divmod, self.moments, self.masses), self.masses, strict=True)
        return [whole if not rest else whole + Fraction(rest, mass) for (whole, rest), mass in divided]

    @cached_property
    def outputs(self) -> list[Fraction]:
        """Output of each column."""
        zero = Fraction(self.origin)
        pairs = zip(self.moments, self.masses, strict=True)
        return [zero + Fraction(moment, mass << self.digits) for moment, mass in pairs]

    def _weighted(self, amounts: Sequence[int]) -> list[int]:
        return weighted(self.k, self.first, self.last, amounts, *self.factors)

    @cached_property
    def _rows(self) -> list[int]:
        return self._weighted(self.masses)

    @cached_property
    def _means(self) -> list[int]:
        return self._weighted(self.moments)

    @cached_property
    def _squares(self) -> list[int]:
        """``mass * (output - origin)**2``, in units of ``2**-(2 digits + guard)``, rounded up."""
        pairs = zip(self.moments, self.masses, strict=True)
        return [-((-moment * moment << self.guard) // mass) if mass else 0 for moment, mass in pairs]

    @property
    def rows(self) -> Floats:
        """Sum of the probabilities of each label."""
        return quotients(self._rows, self.total)

    @property
    def means(self) -> Floats:
        """Expected output of each label, less the origin."""
        return quotients(self._means, self.total << self.digits)

    @cached_property
    def biases(self) -> list[Fraction]:
        """``E[M(y) - y]`` of each label."""
        unit = self.total << self.digits
        zero = Fraction(0)
        return [Fraction(bias, unit) if bias else zero for bias in self._biases]

    @property
    def largest_bias(self) -> Fraction:
        """Largest absolute value of :attr:`biases`."""
        return Fraction(max(map(abs, self._biases)), self.total << self.digits)

    @cached_property
    def _biases(self) -> list[int]:
        sums = zip(self._means, self._rows, self.labels, strict=True)
        return [moment - row * y for moment, row, y in sums]

    @property
    def variances(self) -> Floats:
        """Variance of the output of each label."""
        total, guard = self.total, self.guard
        sums = zip(self._weighted(self._squares), self._means, self._rows, strict=True)
        spreads = [
            total * (total * square - (2 * mean**2 << guard)) + (mean**2 * row << guard) for square, mean, row in sums
        ]
        return quotients(spreads, total**3 << (2 * self.digits + guard))

    def squared_errors(self) -> list[Fraction]:
        """``E[(v - y)**2]`` of each label, rounded up where an output has no finite binary form."""
        unit = self.total << (2 * self.digits + self.guard)
        sums = zip(self.labels, self._weighted(self._squares), self._means, self._rows, strict=True)
        return [Fraction(square + ((row * y - 2 * mean) * y << self.guard), unit) for y, square, mean, row in sums]

    def squared_error(self, prior: Floats) -> Fraction:
        """``E[(v - y)**2]`` under a prior, rounded up where an output has no finite binary form."""
        finer = places(prior)
        parts = scaled(prior, finer)
        pulls = list(map(mul, parts, self.labels))
        sums = [list(accumulate(x, initial=0)) for x in (parts, pulls, map(mul, pulls, self.labels))]
        low, more = self.factors
        (zeroth, once, twice), (every, mean, least) = sums, ([low * x[-1] for x in sums])
        error = 0
        columns = zip(self.first, self.last, self.masses, self.moments, self._squares, strict=True)
        for a, last, mass, moment, square in columns:
            b = last + 1
            weight, pull = every + more * (zeroth[b] - zeroth[a]), mean + more * (once[b] - once[a])
            rest = least + more * (twice[b] - twice[a])
            error += weight * square + ((mass * rest - 2 * moment * pull) << self.guard)
        return Fraction(error, self.total << (finer + 2 * self.digits + self.guard))

    def absolute_error(self, prior: Floats) -> Fraction:
        """``E[|v - y|]`` under a prior; cost ``O(k + n log k)``."""
        finer = places(prior)
        parts = scaled(prior, finer)
        zeroth, once = (list(accumulate(x, initial=0)) for x in (parts, map(mul, parts, self.labels)))
        (low, more), error = self.factors, 0
        for a, last, mass, moment in zip(self.first, self.last, self.masses, self.moments, strict=True):
            turn = bisect_left(self.labels, -(-moment // mass)) if mass else 0
            for start, end, factor in ((0, self.k, low), (a, last + 1, more)):
                middle = min(max(turn, start), end)
                weight, pull = (2 * sums[middle] - sums[start] - sums[end] for sums in (zeroth, once))
                error += factor * (moment * weight - mass * pull)
        return Fraction(error, self.total << (finer + self.digits))

    def in_floats(self) -> tuple[Floats, IntegerArcs]:
        """Float outputs, strictly increasing, and integer arcs: outputs between two floats are split between them."""
        (zero,) = scaled(np.array([self.origin]), self.digits)
        pieces = list[tuple[float, float, int, int]]()
        finer = 0
        for x, mass in zip(self.moments, self.masses, strict=True):
            moment = x + zero * mass
            nearest = quotient(moment, mass << self.digits)
            left = _beyond(moment, mass << self.digits, nearest)[0]
            if not left:
                pieces.append((nearest, nearest, 0, 0))
                continue
            below, above = sorted((nearest, math.nextafter(nearest, math.inf if left > 0 else -math.inf)))
            up, coarse = _beyond(moment, mass << self.digits, below)
            # Neighbouring floats are a power of two apart.
            coarse += self.digits + math.frexp(above - below)[1] - 1
            even = min(twos(up), coarse)
            up, coarse = (up >> even, coarse - even) if coarse > 0 else (up << -coarse, 0)
            finer = max(finer, coarse)
            pieces.append((below, above, up, coarse))
        arcs = list[tuple[float, int, int, int]]()
        for (below, above, up, coarse), a, b, mass in zip(pieces, self.first, self.last, self.masses, strict=True):
            high = up << (finer - coarse)
            arcs.append((below, a, b, (mass << finer) - high))
            if high:
                arcs.append((above, a, b, high))
        common = math.gcd(*(mass for *_, mass in arcs))
        outputs, first, last, masses = (list(column) for column in zip(*arcs, strict=True))
        return in_order(self.k, np.array(first), np.array(last), np.array(outputs), [mass // common for mass in masses])


def deviations(
    weights: Integers, labels: Floats, outputs: Floats, power: int = 1, *, total: int | None = None
) -> list[Fraction]:
    """``E[(v - y)**power]`` of each row of an integer table, over a total, by default the row's own.

    Examples
    --------
    >>> table = np.array([[3, 1], [1, 3]], dtype=object), np.array([0.0, 1.0]), np.array([-0.5, 1.5])
    >>> deviations(*table), deviations(*table, power=2)
    ([Fraction(0, 1), Fraction(0, 1)], [Fraction(3, 4), Fraction(3, 4)])
    """
    digits, totals = max(places(labels), places(outputs)), weights.sum(axis=1)
    rows, columns = (np.array(scaled(x, digits), dtype=object) for x in (labels, outputs))
    if power == 1:
        sums = weights @ columns - totals * rows
    else:
        sums = (weights * (columns - rows[:, np.newaxis]) ** power).sum(axis=1)
    pairs = zip(sums.tolist(), totals.tolist(), strict=True)
    return [Fraction(moment, (total or own) << (power * digits)) for moment, own in pairs]


def in_order(k: int, first: Indices, last: Indices, outputs: Floats, masses: list[int]) -> tuple[Floats, IntegerArcs]:
    """Distinct outputs and the arcs that have a mass, in the order of their outputs; all arguments are one an arc."""
    order = np.lexsort((last, first, outputs))
    order = order[[masses[j] > 0 for j in order.tolist()]]
    distinct, at = np.unique(outputs[order], return_inverse=True)
    kept = np.array([masses[j] for j in order.tolist()], dtype=object)
    return distinct, IntegerArcs(k, first[order], last[order], at, kept)


def _beyond(moment: int, mass: int, output: float) -> tuple[int, int]:
    """``moment - mass * output`` as an integer and the power of two that it is to be divided by."""
    above, below = output.as_integer_ratio()
    return moment * below - mass * above, below.bit_length() - 1


def twos(number: int) -> int:
    """Exponent of 2 in a positive integer."""
    return (number & -number).bit_length() - 1
