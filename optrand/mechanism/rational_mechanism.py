"""Randomizers in rationals: outputs are fractions, probabilities integers over one total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul

from optrand.errors import InvalidInput

__all__ = ["RationalMechanism"]


@dataclass(frozen=True)
class RationalMechanism:
    """Randomizer in rationals: label ``y`` produces output ``i`` with probability ``weights[y][i] / total``.

    Attributes
    ----------
    labels : (k,) tuple of Fraction
    outputs : (n,) tuple of Fraction
        Strictly increasing.
    weights : (k,) tuple of (n,) tuples of int
        Positive; every row has one total.

    Raises
    ------
    InvalidInput
        Outputs out of order, a weight below 1, or rows with different totals.

    Examples
    --------
    >>> coin = RationalMechanism((Fraction(0), Fraction(1)), (Fraction(-1, 2), Fraction(3, 2)), ((3, 1), (1, 3)))
    >>> coin.ratio, coin.biases
    (Fraction(3, 1), (Fraction(0, 1), Fraction(0, 1)))
    """

    labels: tuple[Fraction, ...]
    outputs: tuple[Fraction, ...]
    weights: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Refuse a table that is no distribution of outputs for each label."""
        if any(low >= high for low, high in zip(self.outputs, self.outputs[1:], strict=False)):
            raise InvalidInput("outputs must increase strictly: join the columns of equal outputs")
        if len(self.weights) != len(self.labels) or any(len(row) != len(self.outputs) for row in self.weights):
            raise InvalidInput("weights need a row for each label and a column for each output")
        if min(map(min, self.weights)) < 1:
            raise InvalidInput("weights must be positive: leave out outputs that never occur")
        if len({sum(row) for row in self.weights}) != 1:
            raise InvalidInput("rows of weights must have one total")

    @classmethod
    def of_columns(
        cls, labels: Sequence[Fraction], columns: Sequence[tuple[Fraction, int, Sequence[bool]]], ratio: Fraction
    ) -> RationalMechanism:
        """Sum of columns ``(output, mass, favoured labels)``: of weight ``mass`` times the ratio where favoured.

        Columns of one output are joined; masses are integers, those of 0 are left out.
        """
        high, low = ratio.as_integer_ratio()
        joined = dict[Fraction, list[int]]()
        for output, mass, favoured in columns:
            if mass:
                column = joined.setdefault(output, [0] * len(labels))
                joined[output] = [w + mass * (high if own else low) for w, own in zip(column, favoured, strict=True)]
        outputs = sorted(joined)
        return cls(tuple(labels), tuple(outputs), tuple(zip(*(joined[v] for v in outputs), strict=True)))

    @cached_property
    def total(self) -> int:
        """Total of each row."""
        return sum(self.weights[0])

    @property
    def probabilities(self) -> tuple[tuple[Fraction, ...], ...]:
        """Table of probabilities, one row a label."""
        return tuple(tuple(Fraction(weight, self.total) for weight in row) for row in self.weights)

    @cached_property
    def ratio(self) -> Fraction:
        """Largest ratio of two probabilities of one output: the exponential of the realised epsilon."""
        return max(Fraction(max(column), min(column)) for column in zip(*self.weights, strict=True))

    @cached_property
    def biases(self) -> tuple[Fraction, ...]:
        """``E[v] - y`` of each label."""
        unit = math.lcm(*(v.denominator for v in self.outputs))
        places = [v.numerator * (unit // v.denominator) for v in self.outputs]
        means = [Fraction(sum(map(mul, row, places)), self.total * unit) for row in self.weights]
        return tuple(mean - label for mean, label in zip(means, self.labels, strict=True))
