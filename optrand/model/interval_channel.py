r"""Exact rows, moments and ratios of a channel of interval columns, without its table.

Arc ``j`` produces its output :math:`v_j` with probability :math:`C_j (d + q [\mathrm{first}_j \leq y \leq
\mathrm{last}_j]) / T`, all integers. Floats are integers over powers of two, so this holds a design in floats as well
as a mechanism. Sums over the arcs that favour a label are running totals over the labels, and sums over the labels of
an arc are differences of two running totals: whatever is asked costs ``O(k + n)`` integer operations, nothing cancels,
and a float at the end is rounded once. (Running totals of floats would leave little of a variance of ``exp(-epsilon)``
times the range squared.)
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, groupby
from operator import add, itemgetter, mul

import numpy as np

from optrand.base.arithmetic import places, quotient, scaled
from optrand.base.validation import Floats
from optrand.model.arcs import Arcs, Indices

__all__ = ["IntervalChannel"]


@dataclass(frozen=True, eq=False)
class IntervalChannel:
    """A channel of interval columns in integers.

    Attributes
    ----------
    labels : list of int
        In units of ``2**-digits``.
    outputs : list of int
        Of each arc, in the same unit.
    first, last : list of int
        The labels that each arc favours, both ends in.
    masses : list of int
        Of each arc.
    low, more : int
        What a mass is multiplied by for all labels, and in addition for those that its arc favours.
    total : int
        The unit of probability.
    digits : int

    Examples
    --------
    Randomized response of two labels at ``E = 3``:

    >>> arcs = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.25, 0.25])
    >>> coin = IntervalChannel.of_floats(np.array([0.0, 1.0]), arcs, 3.0)
    >>> coin.variances.tolist(), coin.squared_error(np.array([0.5, 0.5]))
    ([0.75, 0.75], Fraction(3, 4))
    """

    labels: list[int]
    outputs: list[int]
    first: list[int]
    last: list[int]
    masses: list[int]
    low: int
    more: int
    total: int
    digits: int

    @classmethod
    def of_integers(
        cls, labels: Floats, outputs: Floats, intervals: tuple[Indices, Indices], masses: list[int], ratio: Fraction
    ) -> IntervalChannel:
        """Channel of float outputs, intervals and integer masses; the first row's total is the unit of probability."""
        digits = max(places(labels), places(outputs))
        first, last = (ends.tolist() for ends in intervals)
        low, more = ratio.denominator, ratio.numerator - ratio.denominator
        total = low * sum(masses) + more * sum(mass for a, mass in zip(first, masses, strict=True) if a == 0)
        return cls(scaled(labels, digits), scaled(outputs, digits), first, last, masses, low, more, total, digits)

    @classmethod
    def of_floats(cls, labels: Floats, arcs: Arcs, ratio: float) -> IntervalChannel:
        """Channel of arcs in floats, which may have any masses, and the float that stands for ``exp(epsilon)``."""
        digits, finer = max(map(places, (labels, arcs.outputs, arcs.rests))), places(arcs.masses)
        high, low = ratio.as_integer_ratio()
        return cls(
            labels=scaled(labels, digits),
            outputs=list(map(add, scaled(arcs.outputs, digits), scaled(arcs.rests, digits))),
            first=arcs.first.tolist(),
            last=arcs.last.tolist(),
            masses=scaled(arcs.masses, finer),
            low=low,
            more=high - low,
            total=low << finer,
            digits=digits,
        )

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def _rows(self, amounts: list[int]) -> list[int]:
        """For each label the sum over arcs of some integers, weighted as the label weights their arcs."""
        steps = [0] * (self.k + 1)
        for first, last, amount in zip(self.first, self.last, amounts, strict=True):
            steps[first] += amount
            steps[last + 1] -= amount
        base = self.low * sum(amounts)
        return [base + self.more * favoured for favoured in accumulate(steps[:-1])]

    @property
    def rows(self) -> Floats:
        """Sum of the probabilities of each label."""
        return _quotients(self._rows(self.masses), self.total)

    @property
    def means(self) -> Floats:
        """The expected output of each label."""
        return _quotients(self._rows(list(map(mul, self.masses, self.outputs))), self.total << self.digits)

    @property
    def biases(self) -> Floats:
        """The expectation of the output less the label, for each label."""
        return _quotients(self._biases, self.total << self.digits)

    @property
    def largest_bias(self) -> Fraction:
        """The largest of them, without its sign."""
        return Fraction(max(map(abs, self._biases)), self.total << self.digits)

    @property
    def _biases(self) -> list[int]:
        moments, rows = self._rows(list(map(mul, self.masses, self.outputs))), self._rows(self.masses)
        return [moment - row * y for moment, row, y in zip(moments, rows, self.labels, strict=True)]

    @property
    def variances(self) -> Floats:
        """The expected square of the output less its mean, for each label."""
        pulls = list(map(mul, self.masses, self.outputs))
        rows = zip(
            self._rows(list(map(mul, pulls, self.outputs))), self._rows(pulls), self._rows(self.masses), strict=True
        )
        total = self.total
        spreads = [total * (total * square - 2 * mean**2) + mean**2 * row for square, mean, row in rows]
        return _quotients(spreads, total**3 << (2 * self.digits))

    @property
    def squared_errors(self) -> list[Fraction]:
        """The expectation of ``(output - label)**2`` for each label."""
        pulls = list(map(mul, self.masses, self.outputs))
        sums = (self._rows(list(map(mul, pulls, self.outputs))), self._rows(pulls), self._rows(self.masses))
        rows = zip(self.labels, *sums, strict=True)
        unit = self.total << (2 * self.digits)
        return [Fraction(square + (row * y - 2 * mean) * y, unit) for y, square, mean, row in rows]

    def squared_error(self, prior: Floats) -> Fraction:
        """The expectation of ``(output - label)**2`` where the label has the given prior."""
        finer = places(prior)
        parts = scaled(prior, finer)
        pulls = list(map(mul, parts, self.labels))
        sums = [list(accumulate(x, initial=0)) for x in (parts, pulls, map(mul, pulls, self.labels))]
        zeroth, once, twice = sums
        base = [self.low * every[-1] for every in sums]
        error = 0
        for a, last, v, mass in zip(self.first, self.last, self.outputs, self.masses, strict=True):
            b = last + 1
            weight = base[0] + self.more * (zeroth[b] - zeroth[a])
            pull = base[1] + self.more * (once[b] - once[a])
            error += mass * ((weight * v - 2 * pull) * v + base[2] + self.more * (twice[b] - twice[a]))
        return Fraction(error, self.total << (finer + 2 * self.digits))

    def absolute_error(self, prior: Floats) -> Fraction:
        """The expectation of ``|output - label|`` where the label has the given prior; cost ``O(k + n log k)``."""
        finer = places(prior)
        parts = scaled(prior, finer)
        zeroth, once = (list(accumulate(x, initial=0)) for x in (parts, map(mul, parts, self.labels)))
        error = 0
        for a, last, v, mass in zip(self.first, self.last, self.outputs, self.masses, strict=True):
            turn = bisect_left(self.labels, v)
            for start, end, factor in ((0, self.k, self.low), (a, last + 1, self.more)):
                middle = min(max(turn, start), end)
                weight, pull = (2 * sums[middle] - sums[start] - sums[end] for sums in (zeroth, once))
                error += factor * mass * (v * weight - pull)
        return Fraction(error, self.total << (finer + self.digits))

    @property
    def extremes(self) -> tuple[Floats, Floats]:
        """The smallest and the largest probability of each output, in increasing order of outputs."""
        bottoms, tops = self._extremes
        return _quotients(bottoms, self.total), _quotients(tops, self.total)

    @property
    def largest_ratio(self) -> Fraction | None:
        """The largest ratio of two probabilities of one output; None if it is infinite, or if one is negative."""
        columns = [(bottom, top) for bottom, top in zip(*self._extremes, strict=True) if (bottom, top) != (0, 0)]
        if any(bottom <= 0 for bottom, _ in columns):
            return None
        return max((Fraction(top, bottom) for bottom, top in columns), default=Fraction(1))

    @cached_property
    def _extremes(self) -> tuple[list[int], list[int]]:
        """The arcs of an output are swept from end to end, labels are not: cost ``O(n log n)``."""
        bottoms, tops = list[int](), list[int]()
        columns = sorted(zip(self.outputs, self.first, self.last, self.masses, strict=True))
        for _, arcs in groupby(columns, key=itemgetter(0)):
            steps, base = {0: 0, self.k: 0}, 0
            for _, first, last, mass in arcs:
                steps[first] = steps.get(first, 0) + mass
                steps[last + 1] = steps.get(last + 1, 0) - mass
                base += mass
            favoured = list(accumulate(steps[y] for y in sorted(steps)))[:-1]
            bottoms.append(self.low * base + self.more * min(favoured))
            tops.append(self.low * base + self.more * max(favoured))
        return bottoms, tops


def _quotients(numerators: list[int], denominator: int) -> Floats:
    return np.array([quotient(numerator, denominator) for numerator in numerators])
