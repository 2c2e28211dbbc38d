"""Exact randomizers over finitely many outputs: one table of integers for every kind of column.

A column says how probable one output is as the label increases. It is kept as a step function, by the labels at which
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

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import Integers, exact_integers, places, scale_to_integers
from optrand.base.records import Record, freeze
from optrand.base.validation import Floats, check_values, frozen
from optrand.errors import InvalidInput
from optrand.model.randomizer import Indices

__all__ = ["Column", "IntegerArcs", "Table", "add_columns", "split_column"]

Column = tuple[tuple[int, int], ...]
"""Steps ``(y, height)`` of a column: from label ``y`` on its weight is higher by ``height``."""


@dataclass(frozen=True, eq=False)
class IntegerArcs(Record):
    """Columns ``(interval, output, integer mass)`` over ``k`` labels, in increasing order of outputs.

    At a ratio ``r / d`` an arc has the weight ``mass * r`` for the labels that it favours, and ``mass * d`` for others.

    Attributes
    ----------
    k : int
        Number of labels.
    first, last : (arcs,) arrays of int
        First and last label that each arc favours.
    at : (arcs,) array of int
        Index of the output of each arc: it starts at 0, never falls, and leaves none out.
    masses : (arcs,) array of Python int
        Above 0.

    Examples
    --------
    >>> coin = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])
    >>> coin.coverage, coin.total(Fraction(3))
    ([1, 1], 4)
    """

    k: int
    first: Indices
    last: Indices
    at: Indices
    masses: Integers

    def __post_init__(self) -> None:
        """Copy and freeze the arrays. :class:`Table` checks their sums."""
        freeze(self, "first", "last", "at", "masses")

    @property
    def n(self) -> int:
        """Number of outputs."""
        return int(self.at[-1]) + 1

    @property
    def coverage(self) -> list[int]:
        """Mass that favours each label, the same for all if the rows of the table have one total."""
        steps = [0] * (self.k + 1)
        for first, last, mass in zip(self.first.tolist(), self.last.tolist(), self.masses.tolist(), strict=True):
            steps[first] += mass
            steps[last + 1] -= mass
        return list(accumulate(steps[:-1]))

    def total(self, ratio: Fraction) -> int:
        """Return the total of the first row of the table."""
        low, high = ratio.denominator, ratio.numerator
        total: int = low * sum(self.masses.tolist()) + (high - low) * self.coverage[0]
        return total


@dataclass(frozen=True, eq=False)
class Table(Record):
    """Randomizer in exact integers: label ``y`` gives output ``o`` with probability ``weight[y, o] / total``.

    Parameters
    ----------
    labels : (k,) array
        Strictly increasing.
    outputs : (n,) array
        Strictly increasing.
    columns : sequence of Column
        Steps of each output's weight, in increasing order of the label, none of height 0.

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
    >>> table.largest_ratio, table.biases
    (Fraction(3, 1), (Fraction(1, 4), Fraction(-1, 4)))
    """

    labels: Floats
    outputs: Floats
    columns: tuple[Column, ...]
    extremes: list[tuple[int, int]] = field(init=False, repr=False)
    """Smallest and largest weight of each column."""

    def __post_init__(self) -> None:
        """Check the parts against each other."""
        for name in ("labels", "outputs"):
            numbers = frozen(check_values(getattr(self, name), name))
            if not (np.diff(numbers) > 0).all():
                raise InvalidInput(f"{name} of a table must strictly increase")
            object.__setattr__(self, name, numbers)
        object.__setattr__(self, "columns", tuple(map(tuple, self.columns)))
        if len(self.columns) != self.n:
            raise InvalidInput(f"there are {len(self.columns)} columns for {self.n} outputs, expected one each")
        object.__setattr__(self, "extremes", _check_columns(self.columns, self.k))
        totals = self._sum_rows()
        other = next((y for y, total in enumerate(totals) if total != totals[0]), None)
        if other is not None:
            raise InvalidInput(f"row {other} of weights has another total than row 0, expected one total for all rows")

    @classmethod
    def of_rows(cls, labels: ArrayLike, outputs: ArrayLike, rows: ArrayLike) -> Table:
        """Build a table from its weights, one row per label. Outputs that never occur are left out.

        Raises
        ------
        InvalidInput
            Weights that are not integers or masked, or another shape than ``(k, n)``.

        Examples
        --------
        >>> Table.of_rows([0, 1], [0, 1, 2], [[1, 0, 1], [1, 0, 1]]).outputs.tolist()
        [0.0, 2.0]
        """
        names, values = check_values(labels, "labels"), check_values(outputs, "outputs")
        what = ": one row per label, one column per output"
        weights = exact_integers(rows, "weights", (names.size, values.size), what).T.tolist()
        used = [i for i, column in enumerate(weights) if any(column)]
        steps = (((y, b - a) for y, (a, b) in enumerate(pairwise((0, *weights[i]))) if a != b) for i in used)
        return cls(names, values[used], tuple(map(tuple, steps)))

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
        steps: list[dict[int, int]] = [{0: 0} for _ in range(arcs.n)]
        parts = zip(arcs.first.tolist(), (arcs.last + 1).tolist(), arcs.at.tolist(), arcs.masses.tolist(), strict=True)
        for first, end, at, mass in parts:
            column, step = steps[at], more * mass
            column[0] += low * mass
            column[first] = column.get(first, 0) + step
            column[end] = column.get(end, 0) - step
        k = arcs.k
        columns = (tuple((y, step) for y, step in sorted(column.items()) if step and y < k) for column in steps)
        return cls(labels, outputs, tuple(columns))  # type: ignore[arg-type]

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
        return sum(column[0][1] for column in self.columns if column[0][0] == 0)

    def row_sums(self, amounts: Iterable[int]) -> list[int]:
        """Sum, for each label, of weight times amount over the outputs, in ``O(k + steps)`` operations."""
        steps = [0] * self.k
        for amount, column in zip(amounts, self.columns, strict=True):
            for y, height in column:
                steps[y] += height * amount
        return list(accumulate(steps))

    def _sum_rows(self) -> list[int]:
        steps = [0] * self.k
        for column in self.columns:
            for y, height in column:
                steps[y] += height
        return list(accumulate(steps))

    @cached_property
    def weights(self) -> Integers:
        """Dense array of the weights, shape ``(k, n)``, read-only."""
        dense = np.zeros((self.k, self.n), dtype=object)
        for o, column in enumerate(self.columns):
            for y, height in column:
                dense[y, o] = height
        array: Integers = np.cumsum(dense, axis=0)
        array.flags.writeable = False
        return array

    def combine(self, other: Table, factor: Fraction) -> Table:
        """Add the columns of another table for the same labels to `factor` times those of this one.

        `factor` is at least 0. Weights are multiplied by its denominator.

        Examples
        --------
        >>> coin = Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]])
        >>> coin.combine(
        ...     Table.of_rows([0, 1], [1, 2], [[1, 1], [1, 1]]), Fraction(1, 2)
        ... ).weights.tolist()
        [[3, 3, 2], [1, 5, 2]]
        """
        columns = dict[float, list[Column]]()
        for table, scale in zip((self, other), factor.as_integer_ratio(), strict=True):
            for v, column in zip(table.outputs.tolist(), table.columns, strict=True):
                columns.setdefault(v, []).append(tuple((y, scale * height) for y, height in column))
        sums = {v: add_columns(columns[v]) for v in sorted(columns)}
        used = [v for v, column in sums.items() if column]
        return Table(self.labels, np.array(used), tuple(sums[v] for v in used))

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
        most, least = self.extremes[0][1], self.extremes[0][0]
        for low, high in self.extremes:
            if not low:
                return None
            if high * least > most * low:
                most, least = high, low
        return Fraction(most, least) if least else None

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
        return Fraction(sum(high for _, high in self.extremes), self.total)

    def pointwise_leakage(self, prior: Sequence[Fraction]) -> Fraction:
        """Return the largest ratio of a probability to the prior average of its column."""
        unit = lcm(*(p.denominator for p in prior))
        shares = [int(p * unit) for p in prior]
        averages = [sum(s * w for s, w in zip(shares, column, strict=True)) for column in self.weights.T]
        if not all(averages):
            raise InvalidInput("pointwise maximal leakage is undefined: an output has probability 0 under the prior")
        return max(Fraction(high * unit, average) for (_, high), average in zip(self.extremes, averages, strict=True))

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
        """Return the average of ``E[(output - label)**2]`` over a prior, exactly.

        Examples
        --------
        >>> Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]).mean_squared_error(np.array([0.5, 0.5]))
        Fraction(1, 4)
        """
        finer = places(prior)
        whole = sum(map(mul, scale_to_integers(prior, finer), self._sum_squares()))
        return Fraction(whole, self.total << (finer + 2 * self._offsets[0]))

    def losses(self, bias_penalty: float = 0.0) -> list[Fraction]:
        """Return the half the squared error of each label and of the charge of its bias, exactly.

        An infinite penalty forbids bias and charges nothing.
        """
        penalty = Fraction(bias_penalty) if bias_penalty < inf else Fraction(0)
        rows = zip(self.squared_errors, self.biases, strict=True)
        return [(error + penalty * bias**2) / 2 for error, bias in rows]

    @property
    def variances(self) -> Floats:
        """Variance of the output of each label, correctly rounded up to one rounding."""
        pairs = zip(self.squared_errors, self.biases, strict=True)
        return np.array([float(error - bias * bias) for error, bias in pairs])

    def arcs(self, ratio: Fraction) -> IntegerArcs | None:
        """Return the interval columns of one ratio that add up to a multiple of this table, or None without them.

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
        return IntegerArcs(self.k, first, last, columns, np.array(masses, dtype=object))  # type: ignore[arg-type]

    def row_differences(self, y: int, z: int) -> int:
        """Sum over the outputs of the positive parts of ``weight[y, o] - weight[z, o]``: their total variation."""
        most = 0
        for column in self.columns:
            over = sum(step * ((at <= y) - (at <= z)) for at, step in column)
            most += max(0, over)
        return most

    @property
    def is_unimodal(self) -> bool:
        """Whether every column first rises and then falls, as sums of nested intervals do."""
        return all(_is_unimodal(column) for column in self.columns)

    def __eq__(self, other: object) -> bool:
        """Compare labels, outputs and weights."""
        return (
            isinstance(other, Table)
            and np.array_equal(self.labels, other.labels)
            and np.array_equal(self.outputs, other.outputs)
            and self.columns == other.columns
        )

    def __hash__(self) -> int:
        """Hash the columns."""
        return hash(self.columns)

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Table: {self.k} labels, {self.n} outputs>"


def add_columns(columns: Iterable[Iterable[tuple[int, int]]]) -> Column:
    """Return the sum of some columns.

    Examples
    --------
    >>> add_columns([((0, 1), (2, 3)), ((2, -3), (4, 1))])
    ((0, 1), (4, 1))
    """
    steps = dict[int, int]()
    for column in columns:
        for y, height in column:
            steps[y] = steps.get(y, 0) + height
    return tuple((y, steps[y]) for y in sorted(steps) if steps[y])


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


def _check_columns(columns: tuple[Column, ...], k: int) -> list[tuple[int, int]]:
    """Check all columns, and return the smallest and the largest weight of each."""
    extremes = []
    for at, column in enumerate(columns):
        weights = _weights(column, k)
        if not weights:
            raise InvalidInput(
                f"steps of output {at} must be integers other than 0 at increasing labels from 0 to {k - 1}"
            )
        low, high = min(weights), max(weights)
        if low < 0:
            raise InvalidInput(f"output {at} has a negative weight, expected integers of at least 0")
        if high == 0:
            raise InvalidInput(f"output {at} never occurs: leave it out")
        extremes.append((low, high))
    return extremes


def _weights(column: Column, k: int) -> list[int]:
    """Return the weights of a column; none if its steps are not integers other than 0 at increasing labels."""
    weights, before, weight = list[int](), -1, 0
    for y, step in column:
        # Subclasses of int could compare as they like.
        if type(y) is not int or type(step) is not int or y <= before or not step:
            return []
        before = y
        weight += step
        weights.append(weight)
    if before >= k:
        return []
    return weights if column and column[0][0] == 0 else [0, *weights]


def _is_unimodal(column: Column) -> bool:
    falls = [step < 0 for _, step in column]
    return falls == sorted(falls)
