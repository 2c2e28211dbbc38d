"""Parts of programs as linear rows over a table: notions of privacy, each with its exact test, and constraints.

===================================  ==================================================================================
:class:`Pure`                        ``M[y, o] <= exp(epsilon) M[z, o]`` for all pairs of labels
:class:`Pairwise`                    the same with an epsilon for each pair, infinite for unprotected pairs
:class:`Metric`                      pairwise, epsilon proportional to the distance of the labels
:class:`Sensitive`                   pure privacy among some of the labels only
:class:`Approximate`                 (epsilon, delta)-differential privacy
:class:`MaximalLeakage`              ``sum_o max_y M[y, o] <= exp(epsilon)``
:class:`PointwiseMaximalLeakage`     ``M[y, o] <= exp(epsilon) sum_z p_z M[z, o]``
:class:`Unbiased`                    the mean output of each label is the label
:class:`BiasAtMost`                  ``abs(mean output - label) <= bound``
:class:`ProbabilityAtMost`           probabilities of outputs are capped
===================================  ==================================================================================

Any other linear rows are added by :meth:`optrand.programs.Program.add`.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import exp_bracket, float_above, is_at_most_exp, log_above
from optrand.base._validation import MAX_EPSILON, Floats, check_epsilon, check_labels, check_real, rectangular
from optrand.errors import InvalidInput
from optrand.model._table import Table
from optrand.programs._rows import Entry, Names, Rows, Sense, Size

Prior = tuple[float, ...]


class Constraint(Protocol):
    """Linear rows over a table: the variable ``y * n + o`` is ``M[y, o]``."""

    def rows(self, size: Size) -> list[Rows]:
        """Build the rows."""
        ...


class Privacy(Constraint, Protocol):
    """A notion of privacy."""

    def extra_names(self, size: Size) -> list[str]:
        """Return the names of variables from 0 to 1 that the rows need beside the table, none by default."""
        del size
        return []

    def entries(self, k: int, n: int) -> int:
        """Count the coefficients of the rows, before they are built."""
        ...

    def measure(self, table: Table, prior: Prior, /) -> tuple[float, bool]:
        """Measure a table: the notion's own number, rounded up, and whether the table keeps it, decided exactly."""
        ...


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
        finite = matrix[np.isfinite(matrix)]
        if (finite > MAX_EPSILON).any():
            raise InvalidInput("epsilons has entries above 700, where exp(epsilon) overflows: use infinity for them")
        matrix.flags.writeable = False
        object.__setattr__(self, "epsilons", matrix)

    def pairs(self, k: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Return the ordered pairs of labels that need rows, and their epsilons."""
        if self.epsilons.shape != (k, k):
            raise InvalidInput(f"epsilons has shape {self.epsilons.shape} for {k} labels, expected ({k}, {k})")
        first, second = np.nonzero(np.isfinite(self.epsilons) & ~np.eye(k, dtype=bool))
        return first, second, self.epsilons[first, second]

    def entries(self, k: int, n: int) -> int:
        return 2 * n * self.pairs(k)[0].size

    def rows(self, size: Size) -> list[Rows]:
        """Build the rows of each pair, equations where its epsilon is 0: no table would keep both signs strictly."""
        first, second, epsilons = self.pairs(size.k)
        same = epsilons == 0
        rows = [_build_pair_rows(size, first[~same], second[~same], epsilons[~same])]
        # Rows of one sum that are nowhere larger are equal: one direction is enough.
        once = same & ((first < second) | (self.epsilons[second, first] != 0))
        if once.any():
            pairs = first[once], second[once]
            names = _name_pairs(size, zip(*(part.tolist() for part in pairs), strict=True))
            entries = _pair_entries(size.n, *pairs, 0.0)
            rows.append(Rows.of("equal", Sense.EQUAL, entries, 0.0, names, size.output_names))
        return rows

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the largest share of its epsilon that a pair of labels uses, and whether that is at most 1."""
        shares, kept = [0.0], True
        for y, z, epsilon in zip(*self.pairs(table.k), strict=True):
            ratio = table.pair_ratio(int(y), int(z))
            # The verdict is exact. The share, a figure for the reader, is rounded.
            kept = kept and is_at_most_exp(ratio, float(epsilon))
            spent = math.inf if ratio is None else max(0.0, log_above(max(ratio, Fraction(1))))
            shares.append(spent / epsilon if epsilon else (0.0 if spent == 0 else math.inf))
        return max(shares), kept


def _name_pairs(size: Size, pairs: Iterable[tuple[int, int]]) -> Names:
    labels = size.label_names
    return tuple(f"{labels[y]} > {labels[z]}" for y, z in pairs)


def _pair_entries(n: int, first: NDArray[np.intp], second: NDArray[np.intp], epsilons: ArrayLike) -> list[Entry]:
    """Return the coefficients of ``M[y, o] - exp(epsilon) M[z, o] <= 0``, one row for each pair and output."""
    row, o = np.arange(first.size * n).reshape(-1, n), np.arange(n)
    # The exponential stays symbolic for proofs to round.
    powers = np.broadcast_to(np.asarray(epsilons), first.shape)[:, np.newaxis]
    return [(row, first[:, np.newaxis] * n + o, 1.0, 0.0), (row, second[:, np.newaxis] * n + o, -1.0, powers)]


def _build_pair_rows(size: Size, first: NDArray[np.intp], second: NDArray[np.intp], epsilons: ArrayLike) -> Rows:
    names = _name_pairs(size, zip(first.tolist(), second.tolist(), strict=True))
    return Rows.of("privacy", Sense.LESS, _pair_entries(size.n, first, second, epsilons), 0.0, names, size.output_names)


@dataclass(frozen=True)
class _Budgeted(Privacy, Protocol):
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

    def extra_names(self, size: Size) -> list[str]:
        return [] if self.form == "pairwise" else [f"floor[{v}]" for v in size.output_names]

    def entries(self, k: int, n: int) -> int:
        return 2 * n * k * (k - 1) if self.form == "pairwise" else 4 * k * n

    def rows(self, size: Size) -> list[Rows]:
        k, n = size.k, size.n
        if self.form == "pairwise":
            first, second = np.nonzero(~np.eye(k, dtype=bool))
            return [_build_pair_rows(size, first, second, self.epsilon)]
        cells, axes = np.arange(k * n), (size.label_names, size.output_names)
        floors = size.extra + cells % n
        # ``f[o] - M[y, o] <= 0`` and ``M[y, o] - exp(epsilon) f[o] <= 0``: all pairs by way of the floor.
        above: list[Entry] = [(cells, floors, 1.0, 0.0), (cells, cells, -1.0, 0.0)]
        below: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, floors, -1.0, self.epsilon)]
        return [Rows.of(name, Sense.LESS, each, 0.0, *axes) for name, each in (("floor", above), ("privacy", below))]

    def measure(self, table: Table, _prior: Prior, /) -> tuple[float, bool]:
        """Return the table's epsilon, and whether it is at most the stated one."""
        ratio = table.largest_ratio
        return math.inf if ratio is None else log_above(ratio), is_at_most_exp(ratio, self.epsilon)


def Metric(labels: ArrayLike, epsilon_per_unit: float, *, neighbours: bool = True) -> Pairwise:  # noqa: N802
    """Make the pairwise notion with ``epsilon = epsilon_per_unit * abs(y - z)`` for labels on a line.

    Parameters
    ----------
    labels : (k,) array
        Increasing numbers.
    epsilon_per_unit : float
        Nats per unit of the labels.
    neighbours : bool
        Whether to require it of neighbouring labels alone. That implies all pairs, since ratios of neighbours multiply
        and their epsilons add up, with a ``k``-th of the rows.

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
    epsilons = rate * np.abs(numbers[:, np.newaxis] - numbers)
    if neighbours:
        places = np.arange(numbers.size)
        epsilons[np.abs(places[:, np.newaxis] - places) > 1] = np.inf
    widest = float(epsilons.max(where=np.isfinite(epsilons), initial=0.0))
    if widest > MAX_EPSILON:
        raise InvalidInput(
            f"epsilon_per_unit is {rate:g}, so that two labels have an epsilon of {widest:g}: expected at most "
            f"{MAX_EPSILON:g}, beyond which exp(epsilon) overflows (Pairwise takes infinity for such pairs)"
        )
    return Pairwise(epsilons)


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

    def extra_names(self, size: Size) -> list[str]:
        pairs = _name_pairs(size, itertools.permutations(range(size.k), 2))
        return [f"excess[{pair}, {v}]" for pair in pairs for v in size.output_names]

    def entries(self, k: int, n: int) -> int:
        return 4 * n * k * (k - 1)

    def rows(self, size: Size) -> list[Rows]:
        """Build the rows of pure privacy, relaxed by excess variables, and the rows that bound each pair's sum."""
        pairs = list(itertools.permutations(range(size.k), 2))
        names = _name_pairs(size, pairs)
        first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        cells = np.arange(first.size * size.n)
        relaxed = [*_pair_entries(size.n, first, second, self.epsilon), (cells, size.extra + cells, -1.0, 0.0)]
        sums: list[Entry] = [(cells // size.n, size.extra + cells, 1.0, 0.0)]
        return [
            Rows.of("privacy", Sense.LESS, relaxed, 0.0, names, size.output_names),
            Rows.of("delta", Sense.LESS, sums, self.delta, names),
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

    def extra_names(self, size: Size) -> list[str]:
        return [f"largest[{v}]" for v in size.output_names]

    def entries(self, k: int, n: int) -> int:
        return 2 * k * n + n

    def rows(self, size: Size) -> list[Rows]:
        """Build the rows of each column's largest entry, and the one that bounds their sum."""
        n, cells = size.n, np.arange(size.k * size.n)
        # The variable is at least every entry of its column, so that the last row bounds the sum of the largest ones.
        below: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, size.extra + cells % n, -1.0, 0.0)]
        total: list[Entry] = [(np.zeros(n, dtype=int), size.extra + np.arange(n), 1.0, 0.0)]
        return [
            Rows.of("largest", Sense.LESS, below, 0.0, size.label_names, size.output_names),
            Rows.of("leakage", Sense.LESS, total, 1.0, ("0",), bound_power=self.epsilon),
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

    def rows(self, size: Size) -> list[Rows]:
        cells = np.arange(size.k * size.n)
        others = np.arange(size.k)[:, np.newaxis] * size.n + cells % size.n
        # The label itself has two coefficients, which add up.
        entries: list[Entry] = [(cells, cells, 1.0, 0.0), (cells, others, -size.prior[:, np.newaxis], self.epsilon)]
        return [Rows.of("leakage", Sense.LESS, entries, 0.0, size.label_names, size.output_names)]

    def measure(self, table: Table, prior: Prior, /) -> tuple[float, bool]:
        """Return the table's pointwise maximal leakage in nats, and whether it is at most the stated one."""
        ratio = table.pointwise_leakage([Fraction(p) for p in prior])
        return log_above(ratio), is_at_most_exp(ratio, self.epsilon)


def _build_mean_rows(size: Size, chosen: NDArray[np.bool_]) -> Rows:
    """Build the equations for the mean outputs of some labels."""
    names, cells = _cells_of_labels(size, chosen)
    entries: list[Entry] = [(np.arange(len(names))[:, np.newaxis], cells, size.outputs, 0.0)]
    return Rows.of("mean", Sense.EQUAL, entries, size.labels[chosen], names)


def _build_bias_rows(name: str, sense: Sense, size: Size, chosen: NDArray[np.bool_], bound: Floats) -> Rows:
    """Build the rows that bound the biases of some labels from one side."""
    names, cells = _cells_of_labels(size, chosen)
    row = np.arange(len(names))[:, np.newaxis]
    # An output less a label may be no float: as two coefficients of one entry, which add up, it is exact.
    labels = size.labels[chosen][:, np.newaxis]
    entries: list[Entry] = [(row, cells, size.outputs, 0.0), (row, cells, -labels, 0.0)]
    return Rows.of(name, sense, entries, bound[chosen], names)


def _cells_of_labels(size: Size, chosen: NDArray[np.bool_]) -> tuple[Names, NDArray[np.intp]]:
    """Return the names of some labels, and the variables of their entries, a row for each label."""
    places = np.flatnonzero(chosen)
    names = tuple(size.label_names[y] for y in places.tolist())
    return names, places[:, np.newaxis] * size.n + np.arange(size.n)


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

    def rows(self, size: Size) -> list[Rows]:
        return [_build_mean_rows(size, np.ones(size.k, dtype=bool))]


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

    def rows(self, size: Size) -> list[Rows]:
        if self.bound.ndim and self.bound.size != size.k:
            raise InvalidInput(f"there are {self.bound.size} bounds of biases for {size.k} labels")
        bound = np.broadcast_to(self.bound, size.k)
        biased = bound > 0
        rows = []
        # No table keeps both inequalities of a bound of 0 strictly, so that nothing could make up for rounding.
        if not biased.all():
            rows.append(_build_mean_rows(size, ~biased))
        if biased.any():
            rows.append(_build_bias_rows("bias above", Sense.LESS, size, biased, bound))
            rows.append(_build_bias_rows("bias below", Sense.GREATER, size, biased, -bound))
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

    def rows(self, size: Size) -> list[Rows]:
        if self.bound.ndim and self.bound.size != size.n:
            raise InvalidInput(f"there are {self.bound.size} bounds of probabilities for {size.n} outputs")
        cells = np.arange(size.k * size.n)
        return [Rows.of("cap", Sense.LESS, [(cells, cells, 1.0, 0.0)], self.bound, size.label_names, size.output_names)]
