"""Parts of programs as linear rows over a table: notions of privacy, each with its exact test, and constraints."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import exp_bracket, float_above, is_at_most_exp, log_above
from optrand.base._validation import MAX_EPSILON, Floats, check_epsilon, check_labels, check_real, rectangular
from optrand.errors import InvalidInput
from optrand.model._table import Table
from optrand.programs._rows import Entry, Model, Names, Rows, Sense

Pairs = NDArray[np.intp]
"""Ordered pairs of labels, one per row."""

Prior = tuple[float, ...]


class Part(ABC):
    """Linear rows over a table, for which the variable ``y * n + o`` is ``M[y, o]``."""

    @abstractmethod
    def rows(self, program: Model) -> list[Rows]:
        """Build the rows for a program, whose next new variable has the number ``program.variables``."""


class Constraint(Part):
    """Condition on a table other than a notion of privacy."""


class Privacy(Part):
    """A notion of privacy."""

    def extra_names(self, program: Model) -> Names:  # noqa: ARG002
        """Return the names of variables from 0 to 1 that the rows need beside the table, none by default."""
        return ()

    @abstractmethod
    def entries(self, k: int, n: int) -> int:
        """Count the coefficients of the rows, before they are built."""

    @abstractmethod
    def measure(self, table: Table, prior: Prior, /) -> tuple[float, bool]:
        """Measure a table: the notion's own number, rounded up, and whether the table keeps it, decided exactly."""


@dataclass(frozen=True, eq=False)
class Pairwise(Privacy):
    """An epsilon for each ordered pair of labels: ``M[y, o] <= exp(epsilons[y, z]) M[z, o]``.

    Parameters
    ----------
    epsilons : (k, k) array
        At least 0, in nats, zeros on the diagonal, infinite for pairs that need not be protected from each other.

    Raises
    ------
    InvalidInput
        A matrix that is not square, a diagonal entry other than 0, or a negative one.

    Notes
    -----
    Also called d-privacy or metric differential privacy (Chatzikokolakis et al. 2013).

    Examples
    --------
    >>> Pairwise([[0, 1], [1, 0]]).epsilons.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    epsilons: Floats

    def __post_init__(self) -> None:
        """Check the matrix and keep a read-only copy."""
        matrix = np.array(rectangular(self.epsilons, "epsilons", float))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput(f"epsilons has shape {matrix.shape}, expected a square matrix, one row per label")
        if np.isnan(matrix).any() or (matrix < 0).any():
            raise InvalidInput("epsilons has entries that are negative or NaN, expected at least 0 (nats) or infinity")
        if (np.diag(matrix) != 0).any():
            raise InvalidInput("epsilons has a diagonal entry other than 0: a label needs no protection from itself")
        if (matrix[np.isfinite(matrix)] > MAX_EPSILON).any():
            raise InvalidInput("epsilons has entries above 700, where exp(epsilon) overflows: use infinity for them")
        matrix.flags.writeable = False
        object.__setattr__(self, "epsilons", matrix)

    def pairs(self, k: int) -> Pairs:
        """Return the ordered pairs of labels that need rows."""
        if self.epsilons.shape != (k, k):
            raise InvalidInput(f"epsilons has shape {self.epsilons.shape} for {k} labels, expected ({k}, {k})")
        return np.argwhere(np.isfinite(self.epsilons) & ~np.eye(k, dtype=bool))

    def entries(self, k: int, n: int) -> int:
        return 2 * n * len(self.pairs(k))

    def rows(self, program: Model) -> list[Rows]:
        """Build the rows of each pair, equations where its epsilon is 0: no table would keep both signs strictly."""
        pairs = self.pairs(program.k)
        first, second = pairs.T
        epsilons = self.epsilons[first, second]
        rows = [_build_pair_rows(program, pairs[epsilons > 0], epsilons[epsilons > 0])]
        # Rows of one sum that are nowhere larger are equal: one direction is enough.
        once = (epsilons == 0) & ((first < second) | (self.epsilons[second, first] != 0))
        if once.any():
            rows.append(_build_pair_rows(program, pairs[once], 0.0, name="equal", sense=Sense.EQUAL))
        return rows

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the largest share of its epsilon that a pair of labels uses, and whether that is at most 1."""
        share = 0.0
        for y, z in self.pairs(table.k).tolist():
            ratio, epsilon = table.pair_ratio(y, z), float(self.epsilons[y, z])
            # The verdict is exact. The share, a figure for the reader, is rounded.
            if ratio is None or not is_at_most_exp(ratio, epsilon):
                return math.inf, False
            if epsilon:
                share = max(share, log_above(max(ratio, Fraction(1))) / epsilon)
        return share, True


def _all_pairs(k: int) -> Pairs:
    """Return the ordered pairs of labels."""
    return np.argwhere(~np.eye(k, dtype=bool))


def _name_pairs(program: Model, pairs: Pairs) -> Names:
    names = program.label_names
    return tuple(f"{names[y]} > {names[z]}" for y, z in pairs.tolist())


def _build_pair_rows(
    program: Model, pairs: Pairs, epsilons: ArrayLike, *more: Entry, name: str = "privacy", sense: Sense = Sense.LESS
) -> Rows:
    """Build the rows ``M[y, o] - exp(epsilon) M[z, o] <= 0``, one for each pair and output, with further entries."""
    row = np.arange(len(pairs) * program.n).reshape(-1, program.n)
    first, second = (labels[:, np.newaxis] * program.n + np.arange(program.n) for labels in pairs.T)
    # The exponential stays symbolic for proofs to round.
    powers = np.broadcast_to(np.asarray(epsilons), len(pairs))[:, np.newaxis]
    entries: list[Entry] = [(row, first, 1.0, 0.0), (row, second, -1.0, powers), *more]
    return Rows.of(name, sense, entries, 0.0, _name_pairs(program, pairs), program.output_names)


@dataclass(frozen=True)
class _Budgeted(Privacy):
    """A notion with one epsilon."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


@dataclass(frozen=True)
class Pure(_Budgeted):
    """Pure epsilon-differential privacy of the label ([G21], Definition 2.2).

    Parameters
    ----------
    epsilon : float
        In nats.
    form : str
        ``"pairwise"``: ``k (k - 1) n`` rows as the papers print them. ``"floor"``: ``2 k n`` rows
        ``f[o] <= M[y, o] <= exp(epsilon) f[o]`` with a floor for each output, which have the same solutions.

    Examples
    --------
    >>> Pure(1.0).form, Pure(1.0).entries(10, 20), Pure(1.0, form="floor").entries(10, 20)
    ('pairwise', 3600, 800)
    """

    form: str = "pairwise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in ("pairwise", "floor"):
            raise InvalidInput(f"form is {self.form!r}, expected 'pairwise' or 'floor'")

    def extra_names(self, program: Model) -> Names:
        return () if self.form == "pairwise" else tuple(f"floor[{v}]" for v in program.output_names)

    def entries(self, k: int, n: int) -> int:
        return 2 * n * k * (k - 1) if self.form == "pairwise" else 4 * k * n

    def rows(self, program: Model) -> list[Rows]:
        if self.form == "pairwise":
            return [_build_pair_rows(program, _all_pairs(program.k), self.epsilon)]
        cells, axes = np.arange(program.cells), (program.label_names, program.output_names)
        floors = program.variables + cells % program.n
        # ``f[o] - M[y, o] <= 0`` and ``M[y, o] - exp(epsilon) f[o] <= 0``: all pairs by way of the floor.
        above: list[Entry] = [(cells, floors, 1.0, 0.0), (cells, cells, -1.0, 0.0)]
        below: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, floors, -1.0, self.epsilon)]
        return [Rows.of(name, Sense.LESS, each, 0.0, *axes) for name, each in (("floor", above), ("privacy", below))]

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the table's epsilon, and whether it is at most the stated one."""
        ratio = table.largest_ratio
        return math.inf if ratio is None else log_above(ratio), is_at_most_exp(ratio, self.epsilon)


def Metric(labels: ArrayLike, epsilon_per_unit: float) -> Pairwise:  # noqa: N802
    """Make the pairwise notion with ``epsilon = epsilon_per_unit * abs(y - z)`` for labels on a line.

    It is required of neighbouring labels alone. That implies all pairs, since ratios of neighbours multiply and their
    epsilons add up, with a ``k``-th of the rows.

    Parameters
    ----------
    labels : (k,) array
        Increasing numbers.
    epsilon_per_unit : float
        Nats per unit of the labels.

    Examples
    --------
    >>> Metric([0, 1, 3], 0.5).epsilons.tolist()
    [[0.0, 0.5, inf], [0.5, 0.0, 1.0], [inf, 1.0, 0.0]]
    """
    numbers = check_labels(labels)
    if (np.diff(numbers) <= 0).any():
        raise InvalidInput("labels of a metric must increase: sort them")
    rate = check_real(epsilon_per_unit, "epsilon_per_unit")
    if rate <= 0:
        raise InvalidInput(f"epsilon_per_unit is {rate:g}, expected a number above 0 (nats per unit of the labels)")
    places = np.arange(numbers.size)
    apart = np.abs(np.subtract.outer(places, places)) > 1
    return Pairwise(np.where(apart, np.inf, rate * np.abs(np.subtract.outer(numbers, numbers))))


def Sensitive(mask: ArrayLike, epsilon: float) -> Pairwise:  # noqa: N802
    """Make the pairwise notion that protects only labels marked True, from each other.

    Parameters
    ----------
    mask : (k,) array of bool
        Labels to protect.
    epsilon : float
        In nats, for each pair of them.

    Examples
    --------
    >>> Sensitive([True, True, False], 1.0).epsilons.tolist()
    [[0.0, 1.0, inf], [1.0, 0.0, inf], [inf, inf, 0.0]]
    """
    protected = rectangular(mask, "mask")
    if protected.ndim != 1 or protected.dtype != bool:
        raise InvalidInput("mask must be a list of True and False, one per label")
    both = protected[:, np.newaxis] & protected
    epsilons = np.where(both, check_epsilon(epsilon), np.inf)
    np.fill_diagonal(epsilons, 0.0)
    return Pairwise(epsilons)


@dataclass(frozen=True)
class Approximate(_Budgeted):
    """Approximate (epsilon, delta)-differential privacy of the label ([G21], Definition 2.1).

    For each ordered pair of labels ``sum_o max(0, M[y, o] - exp(epsilon) M[z, o]) <= delta``, with one variable per
    pair and output for the excess.

    Parameters
    ----------
    epsilon : float
        In nats, above 0.
    delta : float
        From 0 up to, but not including, 1.
    """

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        delta = check_real(self.delta, "delta")
        if not 0 <= delta < 1:
            raise InvalidInput(f"delta is {delta}, expected a number of at least 0 and below 1")
        object.__setattr__(self, "delta", delta)

    def extra_names(self, program: Model) -> Names:
        names = _name_pairs(program, _all_pairs(program.k))
        return tuple(f"excess[{pair}, {v}]" for pair in names for v in program.output_names)

    def entries(self, k: int, n: int) -> int:
        return 4 * n * k * (k - 1)

    def rows(self, program: Model) -> list[Rows]:
        """Build the rows of pure privacy, relaxed by excess variables, and the rows that bound each pair's sum."""
        pairs = _all_pairs(program.k)
        cells = np.arange(len(pairs) * program.n)
        excess, sums = program.variables + cells, cells // program.n
        return [
            _build_pair_rows(program, pairs, self.epsilon, (cells, excess, -1.0, 0.0)),
            Rows.of("delta", Sense.LESS, [(sums, excess, 1.0, 0.0)], self.delta, _name_pairs(program, pairs)),
        ]

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the table's delta at the stated epsilon, and whether it is at most the stated one."""
        # A smaller ratio only raises the excess.
        delta = table.excess(exp_bracket(self.epsilon)[0])
        return float_above(delta), delta <= Fraction(self.delta)


@dataclass(frozen=True)
class MaximalLeakage(_Budgeted):
    """Maximal leakage of at most epsilon: ``log sum_o max_y M[y, o] <= epsilon`` (Issa, Wagner, Kamath 2020).

    Parameters
    ----------
    epsilon : float
        In nats.
    """

    def extra_names(self, program: Model) -> Names:
        return tuple(f"largest[{v}]" for v in program.output_names)

    def entries(self, k: int, n: int) -> int:
        return 2 * k * n + n

    def rows(self, program: Model) -> list[Rows]:
        """Build the rows of each column's largest entry, and the one that bounds their sum."""
        n, cells = program.n, np.arange(program.cells)
        # The variable is at least every entry of its column, so that the last row bounds the sum of the largest ones.
        below: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, program.variables + cells % n, -1.0, 0.0)]
        total = 0, program.variables + np.arange(n), 1.0, 0.0
        return [
            Rows.of("largest", Sense.LESS, below, 0.0, program.label_names, program.output_names),
            Rows.of("leakage", Sense.LESS, [total], 1.0, ("0",), bound_power=self.epsilon),
        ]

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the table's maximal leakage in nats, and whether it is at most the stated one."""
        return log_above(table.leakage), is_at_most_exp(table.leakage, self.epsilon)


@dataclass(frozen=True)
class PointwiseMaximalLeakage(_Budgeted):
    """Pointwise maximal leakage of at most epsilon for each output, under the prior (Saeidian et al. 2023).

    ``M[y, o] <= exp(epsilon) sum_z p_z M[z, o]`` for labels of positive prior. Labels of prior zero are held to the
    same rows, so that no output singles them out.

    Parameters
    ----------
    epsilon : float
        In nats.
    """

    def entries(self, k: int, n: int) -> int:
        return k * n * (k + 1)

    def rows(self, program: Model) -> list[Rows]:
        k, n, cells = program.k, program.n, np.arange(program.cells)
        others, shares = np.arange(k)[:, np.newaxis] * n + cells % n, program.prior[:, np.newaxis]
        # The label itself has two coefficients, which add up.
        entries: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, others, -shares, self.epsilon)]
        return [Rows.of("leakage", Sense.LESS, entries, 0.0, program.label_names, program.output_names)]

    def measure(self, table: Table, prior: Prior, /) -> tuple[float, bool]:
        """Return the table's pointwise maximal leakage in nats, and whether it is at most the stated one."""
        ratio = table.pointwise_leakage([Fraction(p) for p in prior])
        return log_above(ratio), is_at_most_exp(ratio, self.epsilon)


def _build_mean_rows(
    program: Model, chosen: NDArray[np.bool_], name: str, sense: Sense, bound: Floats | None = None
) -> Rows:
    """Build rows that compare the mean outputs of some labels with the labels or, if there is a bound, their biases."""
    places = np.flatnonzero(chosen)
    row, cells = np.arange(places.size)[:, np.newaxis], places[:, np.newaxis] * program.n + np.arange(program.n)
    labels, entries = program.labels[places], list[Entry]([(row, cells, program.outputs, 0.0)])
    if bound is not None:
        # An output less a label may be no float: as two coefficients of one entry, which add up, it is exact.
        entries.append((row, cells, -labels[:, np.newaxis], 0.0))
    names = tuple(program.label_names[y] for y in places.tolist())
    return Rows.of(name, sense, entries, labels if bound is None else bound[places], names)


def _check_bound(part: BiasAtMost | ProbabilityAtMost, most: float, expected: str) -> None:
    """Check the bound of a constraint, one number or an array, and keep a read-only copy."""
    array = np.array(rectangular(part.bound, "bound", float))
    if array.ndim > 1 or not ((array >= 0) & (array <= most)).all():
        raise InvalidInput(f"bound of a {expected}")
    array.flags.writeable = False
    object.__setattr__(part, "bound", array)


@dataclass(frozen=True)
class Unbiased(Constraint):
    """``sum_o M[y, o] v_o = y`` for every label ([B23], Algorithm 1)."""

    def rows(self, program: Model) -> list[Rows]:
        return [_build_mean_rows(program, np.ones(program.k, dtype=bool), "mean", Sense.EQUAL)]


@dataclass(frozen=True, eq=False)
class BiasAtMost(Constraint):
    """``abs(sum_o M[y, o] v_o - y) <= bound`` for every label.

    Parameters
    ----------
    bound : float or (k,) array
        At least 0, in units of the labels.
    """

    bound: Floats

    def __post_init__(self) -> None:
        _check_bound(self, sys.float_info.max, "bias must be a number of at least 0, or one number per label")

    def rows(self, program: Model) -> list[Rows]:
        if self.bound.ndim and self.bound.size != program.k:
            raise InvalidInput(f"there are {self.bound.size} bounds of biases for {program.k} labels")
        bound = np.broadcast_to(self.bound, program.k)
        biased = bound > 0
        # No table keeps both inequalities of a bound of 0 strictly, so that nothing could make up for rounding.
        rows = [] if biased.all() else [_build_mean_rows(program, ~biased, "mean", Sense.EQUAL)]
        if biased.any():
            rows.append(_build_mean_rows(program, biased, "bias above", Sense.LESS, bound))
            rows.append(_build_mean_rows(program, biased, "bias below", Sense.GREATER, -bound))
        return rows


@dataclass(frozen=True, eq=False)
class ProbabilityAtMost(Constraint):
    """``M[y, o] <= bound`` for every label, or for some outputs only.

    Parameters
    ----------
    bound : float or (n,) array
        From 0 to 1 (no limit).
    """

    bound: Floats

    def __post_init__(self) -> None:
        _check_bound(self, 1.0, "probability must be a number from 0 to 1, or one number per output")

    def rows(self, program: Model) -> list[Rows]:
        if self.bound.ndim and self.bound.size != program.n:
            raise InvalidInput(f"there are {self.bound.size} bounds of probabilities for {program.n} outputs")
        cells, axes = np.arange(program.cells), (program.label_names, program.output_names)
        return [Rows.of("cap", Sense.LESS, [(cells, cells, 1.0, 0.0)], self.bound, *axes)]
