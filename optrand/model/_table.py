"""Exact randomizers over finitely many outputs: one table of integers for every kind of column.

A column holds the probability of one output for each label. It is stored as a step function, by the labels at which
its height changes: randomized response and interval columns have at most three steps, a column of a dense table at most
one per label. All sums over labels are then running sums, and no dense array is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import gcd, inf, lcm
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import Integers, exact_integers, places, scale_to_integers
from optrand.base._validation import Floats, Record, check_values, expect, freeze_array
from optrand.errors import InvalidInput
from optrand.model._randomizer import Indices

Column = tuple[tuple[int, int], ...]
"""Steps ``(y, height)`` of a column: from label ``y`` on its weight is higher by ``height``."""


class IntegerArcs(NamedTuple):
    """Interval columns over ``k`` labels: an arc favours the labels from `first` to `last`, for the output `at`.

    At a ratio ``r / d`` an arc has the weight ``mass * r`` for the labels that it favours, and ``mass * d`` for others.
    `at` starts at 0, never falls, and leaves no output out. `masses` are Python integers above 0.
    """

    k: int
    first: Indices
    last: Indices
    at: Indices
    masses: Integers

    @property
    def n(self) -> int:
        """Number of outputs."""
        return int(self.at[-1]) + 1

    @property
    def coverage(self) -> list[int]:
        """Mass that favours each label, the same for all if the rows of the table have one total."""
        changes = np.zeros(self.k + 1, dtype=object)
        np.add.at(changes, self.first, self.masses)
        np.subtract.at(changes, self.last + 1, self.masses)
        sums: list[int] = np.cumsum(changes)[:-1].tolist()
        return sums

    def total(self, ratio: Fraction) -> int:
        """Return the total of the first row of the table."""
        low, high = ratio.denominator, ratio.numerator
        total: int = low * sum(self.masses.tolist()) + (high - low) * self.coverage[0]
        return total


class Steps(NamedTuple):
    """Steps of the columns of several outputs, in increasing order of the output and then of the label.

    From the label with index `places` on the weight of an output is higher by `heights`, Python integers other than 0.
    """

    places: Indices
    outputs: Indices
    heights: Integers

    def take(self, chosen: Indices | NDArray[np.bool_]) -> Steps:
        """Select some of the steps, in the order of their indices."""
        return Steps(self.places[chosen], self.outputs[chosen], self.heights[chosen])


def add_steps(k: int, steps: Steps) -> Steps:
    """Sort steps in any order, add up those at one place, and leave out those of height 0 or beyond the labels."""
    places, outputs, heights = steps.take(np.lexsort(steps[:2]))
    first = np.flatnonzero(np.append(True, (places[1:] != places[:-1]) | (outputs[1:] != outputs[:-1])))
    sums = Steps(places[first], outputs[first], np.add.reduceat(heights, first))
    return sums.take((sums.heights != 0) & (sums.places < k))


def split_column(column: Column, k: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Write a column of a table as its smallest weight and a sum of intervals ``(start, stop, mass)``, half-open.

    The step that rises first falls first, so that no interval of the column lies inside another. There are at most as
    many intervals as steps.

    Examples
    --------
    >>> split_column(((0, 2), (1, 3), (2, 1), (4, -2)), 6)
    (2, [(1, 4, 2), (1, 6, 1), (2, 6, 1)])
    """
    base = 0
    if column[0][0] == 0:
        base = min(accumulate(height for _, height in column))
    risen, intervals, oldest = list[tuple[int, int]](), list[tuple[int, int, int]](), 0
    for y, height in column:
        change = height - base if y == 0 else height
        if change > 0:
            risen.append((y, change))
        while change < 0:
            start, mass = risen[oldest]
            if mass + change > 0:
                risen[oldest] = (start, mass + change)
                intervals.append((start, y, -change))
                break
            intervals.append((start, y, mass))
            oldest += 1
            change += mass
    intervals += [(start, k, mass) for start, mass in risen[oldest:]]
    return base, intervals


def check_steps(steps: Steps, k: int, n: int) -> tuple[list[int], list[int]]:
    """Check the steps of all columns, and return the smallest weights of the columns and the largest ones."""
    places, outputs, heights = steps

    def refuse(faulty: NDArray[np.bool_], reason: str) -> None:
        if faulty.any():
            raise InvalidInput(reason.format(at=int(faulty.argmax())))

    if not n:
        return [], []
    if not places.shape == outputs.shape == heights.shape == (heights.size,):
        raise InvalidInput("labels, outputs and heights of steps must be arrays of one length")
    is_exact = heights.dtype == object and set(map(type, heights.tolist())) <= {int}
    if not (is_exact and places.dtype.kind == outputs.dtype.kind == "i"):
        raise InvalidInput("labels, outputs and heights of steps must be integers")
    if outputs.min(initial=0) < 0 or (outputs[1:] < outputs[:-1]).any():
        raise InvalidInput("outputs of steps must be in order, from 0 on")
    most = outputs.max(initial=0)
    if most >= n:
        raise InvalidInput(f"there are {most + 1} columns for {n} outputs, expected one each")
    counts = np.bincount(outputs, minlength=n)
    refuse(counts == 0, "output {at} never occurs: leave it out")
    starts = np.cumsum(counts) - counts
    before = np.empty_like(places)
    before[1:], before[starts] = places[:-1], -1
    is_sound = (before < places) & (places < k) & (heights != 0)
    reason = f"integers other than 0 at increasing labels from 0 to {k - 1}"
    refuse(~np.logical_and.reduceat(is_sound, starts), f"steps of output {{at}} must be {reason}")
    sums = np.cumsum(heights)
    others = sums[starts] - heights[starts]
    low, high = (extreme.reduceat(sums, starts) - others for extreme in (np.minimum, np.maximum))
    low[(places[starts] > 0) & (low > 0)] = 0
    refuse(low < 0, "output {at} has a negative weight, expected integers of at least 0")
    refuse(high == 0, "output {at} never occurs: leave it out")
    return low.tolist(), high.tolist()


@dataclass(frozen=True, eq=False)
class Table(Record):
    """Randomizer in exact integers: label ``y`` gives output ``o`` with probability ``weight[y, o] / total``.

    Parameters
    ----------
    labels, outputs : (k,) and (n,) arrays
        Strictly increasing.
    steps : Steps
        Steps of all weights.

    Raises
    ------
    InvalidInput
        Labels or outputs that do not increase, steps that are not integers or out of order, a negative weight, an
        output that never occurs, or rows with different totals.

    Examples
    --------
    Randomized response over two labels that keeps a label with probability 3/4:

    >>> table = Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]])
    >>> table.total, table.columns
    (4, (((0, 3), (1, -2)), ((0, 1), (1, 2))))
    >>> Table.of_columns([0, 1], [0, 1], table.columns) == table
    True
    >>> table.largest_ratio, table.biases
    (Fraction(3, 1), (Fraction(1, 4), Fraction(-1, 4)))
    """

    labels: Floats
    outputs: Floats
    steps: Steps
    extremes: tuple[list[int], list[int]] = field(init=False, repr=False)
    """Smallest weights of the columns, and largest weights."""

    def __post_init__(self) -> None:
        for name in ("labels", "outputs"):
            numbers = freeze_array(check_values(getattr(self, name), name))
            if not (np.diff(numbers) > 0).all():
                raise InvalidInput(f"{name} of a table must strictly increase")
            object.__setattr__(self, name, numbers)
        expect(self.steps, Steps, "steps", "Steps, or use Table.of_columns")
        steps = Steps._make(map(np.array, self.steps))
        for part in steps:
            part.flags.writeable = False
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "extremes", check_steps(steps, self.k, self.n))
        totals = self._sum_up(steps.heights)
        other = next((y for y, total in enumerate(totals) if total != totals[0]), None)
        if other is not None:
            raise InvalidInput(f"row {other} of weights has another total than row 0, expected one total for all rows")

    @classmethod
    def of_columns(cls, labels: ArrayLike, outputs: ArrayLike, columns: Sequence[Column]) -> Table:
        """Build a table from the steps of each column, in increasing order of the label."""
        names, values = check_values(labels, "labels"), check_values(outputs, "outputs")
        if len(columns) != values.size:
            raise InvalidInput(f"there are {len(columns)} columns for {values.size} outputs, expected one each")
        columns, known = tuple(map(tuple, columns)), range(names.size)
        # Subclasses of int could compare as they like: such a step has no place from now on, and is refused for it.
        places = [
            y if type(y) is type(height) is int and y in known else -1 for column in columns for y, height in column
        ]
        heights = [height if type(height) is int else 0 for column in columns for _, height in column]
        owners = np.repeat(np.arange(values.size), [len(column) for column in columns])
        steps = Steps(np.array(places, dtype=np.int64), owners, np.array(heights, dtype=object))
        return cls(names, values, steps)

    @classmethod
    def of_rows(cls, labels: ArrayLike, outputs: ArrayLike, rows: ArrayLike) -> Table:
        """Build a table from its weights, one row per label. Outputs that never occur are left out.

        Examples
        --------
        >>> Table.of_rows([0, 1], [0, 1, 2], [[1, 0, 1], [1, 0, 1]]).outputs.tolist()
        [0.0, 2.0]
        """
        names, values = check_values(labels, "labels"), check_values(outputs, "outputs")
        what = ": one row per label, one column per output"
        weights = exact_integers(rows, "weights", (names.size, values.size), what)
        heights = np.diff(weights.T, axis=1, prepend=0)
        owners, places = np.nonzero(heights)
        used, at = np.unique(owners, return_inverse=True)
        return cls(names, values[used], Steps(places, at, heights[owners, places]))

    @classmethod
    def of_arcs(cls, labels: ArrayLike, outputs: ArrayLike, arcs: IntegerArcs, ratio: Fraction) -> Table:
        """Build a table from interval columns: an arc adds its mass to one output, times `ratio` for its own labels.

        Weights are multiplied by the denominator of the ratio.

        Examples
        --------
        >>> coin = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])
        >>> Table.of_arcs([0, 1], [0, 1], coin, Fraction(3)).weights.tolist()
        [[3, 1], [1, 3]]
        """
        low, more = ratio.denominator, ratio.numerator - ratio.denominator
        first, last, masses = np.array(arcs.first), np.array(arcs.last), np.array(arcs.masses, dtype=object)
        places = np.concatenate((np.zeros_like(first), first, last + 1))
        heights = np.concatenate((low * masses, more * masses, -more * masses))
        steps = add_steps(arcs.k, Steps(places, np.tile(arcs.at, 3), heights))
        return cls(labels, outputs, steps)  # type: ignore[arg-type]

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.labels.size

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.outputs.size

    @cached_property
    def total(self) -> int:
        """Sum of the weights of each row."""
        return sum(self.steps.heights[self.steps.places == 0].tolist())

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Steps of each output's weight, in increasing order of the label."""
        places, outputs, heights = self.steps
        pairs = tuple(zip(places.tolist(), heights.tolist(), strict=True))
        ends = np.searchsorted(outputs, np.arange(self.n + 1)).tolist()
        return tuple([pairs[start:end] for start, end in pairwise(ends)])

    def row_sums(self, amounts: Iterable[int]) -> list[int]:
        """Sum weight times amount over the outputs, for each label, in ``O(k + steps)`` operations."""
        each = np.array(list(amounts), dtype=object).reshape(self.n)
        return self._sum_up(self.steps.heights * each[self.steps.outputs])

    def _sum_up(self, heights: Integers) -> list[int]:
        """Sum, for each label, the heights of all steps up to it."""
        changes = np.zeros(self.k, dtype=object)
        np.add.at(changes, self.steps.places, heights)
        sums: list[int] = np.cumsum(changes).tolist()
        return sums

    @cached_property
    def weights(self) -> Integers:
        """Dense array of the weights, shape ``(k, n)``, read-only."""
        dense = np.zeros((self.k, self.n), dtype=object)
        dense[self.steps.places, self.steps.outputs] = self.steps.heights
        array: Integers = np.cumsum(dense, axis=0)
        array.flags.writeable = False
        return array

    def combine(self, other: Table, factor: Fraction) -> Table:
        """Add the columns of another table for the same labels to `factor` times those of this one.

        `factor` is at least 0. Weights are multiplied by its denominator.
        """
        if not np.array_equal(self.labels, other.labels):
            raise InvalidInput("the tables are for different labels: only tables for the same labels can be combined")
        outputs, at = np.unique(np.append(self.outputs, other.outputs), return_inverse=True)
        first, second, (high, low) = self.steps, other.steps, factor.as_integer_ratio()
        steps = Steps(
            np.append(first.places, second.places),
            np.append(at[: self.n][first.outputs], at[self.n :][second.outputs]),
            np.append(high * first.heights, low * second.heights),
        )
        steps = add_steps(self.k, steps)
        used, at = np.unique(steps.outputs, return_inverse=True)
        return Table(self.labels, outputs[used], steps._replace(outputs=at))

    @property
    def matrix(self) -> Floats:
        """Probabilities in floats, each correctly rounded, shape ``(k, n)``."""
        matrix = np.zeros((self.k, self.n))
        for o, column in enumerate(self.columns):
            weight = 0
            for (start, step), (stop, _) in pairwise((*column, (self.k, 0))):
                weight += step
                matrix[start:stop, o] = weight / self.total
        return matrix

    @cached_property
    def largest_ratio(self) -> Fraction | None:
        """Largest ratio of two weights of one output. None if it is infinite."""
        lows, highs = self.extremes
        if not all(lows):
            return None
        most, least = 1, 1
        for low, high in zip(lows, highs, strict=True):
            if high * least > most * low:
                most, least = high, low
        return Fraction(most, least)

    def pair_ratio(self, y: int, z: int) -> Fraction | None:
        """Return the largest ratio ``M[y, o] / M[z, o]`` over the outputs. None if it is infinite."""
        pairs = [(a, b) for a, b in zip(self.weights[y], self.weights[z], strict=True) if a]
        if any(b == 0 for _, b in pairs):
            return None
        return max(Fraction(a, b) for a, b in pairs)

    def excess(self, ratio: Fraction) -> Fraction:
        """Return the largest ``sum_o max(0, M[y, o] - ratio * M[z, o])`` over pairs of labels: delta at that ratio.

        Examples
        --------
        >>> Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]).excess(Fraction(2))
        Fraction(1, 4)
        """
        high, low = ratio.as_integer_ratio()
        weights = [list(row) for row in self.weights]
        most = max(
            sum(over for a, b in zip(first, second, strict=True) if (over := a * low - b * high) > 0)
            for first in weights
            for second in weights
        )
        return Fraction(most, low * self.total)

    @property
    def leakage(self) -> Fraction:
        """Sum over the outputs of their largest probability: the exponential of the maximal leakage."""
        return Fraction(sum(self.extremes[1]), self.total)

    def pointwise_leakage(self, prior: Sequence[Fraction]) -> Fraction:
        """Return the largest ratio of a probability to the prior average of its column."""
        unit = lcm(*(p.denominator for p in prior))
        shares = [int(p * unit) for p in prior]
        averages = [sum(s * w for s, w in zip(shares, column, strict=True)) for column in self.weights.T]
        if not all(averages):
            raise InvalidInput("pointwise maximal leakage is undefined: an output has probability 0 under the prior")
        return max(Fraction(high * unit, average) for high, average in zip(self.extremes[1], averages, strict=True))

    @cached_property
    def _offsets(self) -> tuple[int, list[int], list[int]]:
        """Binary digits ``d``, and labels and outputs less a label, which keeps integers short, in ``2**-d``."""
        digits = max(places(self.labels), places(self.outputs))
        labels, outputs = (scale_to_integers(numbers, digits) for numbers in (self.labels, self.outputs))
        zero = labels[len(labels) // 2]
        return digits, [y - zero for y in labels], [v - zero for v in outputs]

    @cached_property
    def _first_moments(self) -> list[int]:
        """Sum of weight times output of each label, outputs as in `_offsets`."""
        return self.row_sums(self._offsets[2])

    @cached_property
    def biases(self) -> tuple[Fraction, ...]:
        """``E[output] - label`` of each label."""
        digits, labels, _ = self._offsets
        unit, zero = self.total << digits, Fraction(0)
        off = (mean - self.total * y for mean, y in zip(self._first_moments, labels, strict=True))
        return tuple(Fraction(bias, unit) if bias else zero for bias in off)

    @property
    def largest_bias(self) -> Fraction:
        """Largest absolute value of :attr:`biases`."""
        return max((abs(bias) for bias in self.biases if bias), default=Fraction(0))

    def _sum_squares(self) -> Iterator[int]:
        """Generate the sum of weight times squared distance of each label, in units of ``4**-d``."""
        _, labels, outputs = self._offsets
        second = self.row_sums([v * v for v in outputs])
        for y, mean, square in zip(labels, self._first_moments, second, strict=True):
            yield square + y * (self.total * y - 2 * mean)

    @cached_property
    def squared_errors(self) -> tuple[Fraction, ...]:
        """``E[(output - label)**2]`` of each label."""
        unit = self.total << (2 * self._offsets[0])
        return tuple(Fraction(square, unit) for square in self._sum_squares())

    def mean_squared_error(self, prior: Floats) -> Fraction:
        """Return the average of ``E[(output - label)**2]`` over a prior, exactly."""
        finer = places(prior)
        whole = sum(map(mul, scale_to_integers(prior, finer), self._sum_squares()))
        return Fraction(whole, self.total << (finer + 2 * self._offsets[0]))

    def losses(self, bias_penalty: float = 0.0) -> list[Fraction]:
        """Return half the sum of the squared error of each label and the charge of its bias, exactly.

        An infinite penalty forbids bias and charges nothing.
        """
        penalty = Fraction(bias_penalty) if bias_penalty < inf else Fraction(0)
        rows = zip(self.squared_errors, self.biases, strict=True)
        return [(error + penalty * bias**2) / 2 for error, bias in rows]

    @property
    def variances(self) -> Floats:
        """Variance of the output of each label, correct to within one rounding."""
        pairs = zip(self.squared_errors, self.biases, strict=True)
        return np.array([float(error - bias * bias) for error, bias in pairs])

    def arcs(self, ratio: Fraction) -> IntegerArcs | None:
        """Return interval columns of one ratio that add up to a multiple of this table, or None if they do not exist.

        Examples
        --------
        >>> Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]).arcs(Fraction(3)).masses.tolist()
        [1, 1]
        """
        high, low = ratio.as_integer_ratio()
        if high == low:
            return None
        found = list[tuple[int, int, int, int]]()
        for at, column in enumerate(self.columns):
            least, intervals = split_column(column, self.k)
            rest = least * (high - low) - low * sum(mass for _, _, mass in intervals)
            if rest < 0:
                return None
            found += [(at, start, stop - 1, mass * high) for start, stop, mass in intervals]
            found += [(at, 0, self.k - 1, rest)] if rest else []
        columns, first, last, masses = (list(part) for part in zip(*sorted(found), strict=True))
        common = gcd(*masses)
        masses = [mass // common for mass in masses]
        arrays = np.array(first), np.array(last), np.array(columns), np.array(masses, dtype=object)
        for array in arrays:
            array.flags.writeable = False
        return IntegerArcs(self.k, *arrays)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Table)
            and np.array_equal(self.labels, other.labels)
            and np.array_equal(self.outputs, other.outputs)
            and self.columns == other.columns
        )

    def __hash__(self) -> int:
        return hash(self.columns)

    def __repr__(self) -> str:
        return f"<Table: {self.k} labels, {self.n} outputs>"
