r"""Staircase columns in integers: sets of labels, masses that cover every label equally, and exact moments.

Column ``j`` favours a set :math:`S_j` of labels. It has an integer mass :math:`C_j` and a first moment :math:`x_j = C_j
v_j`, so that its output :math:`v_j` is any rational. At the ratio :math:`R = r / d` its weight is :math:`C_j r` for the
labels in its set and :math:`C_j d` for the others. Rows have one total if every label is *covered* by the same mass,
``sum_{S has y} C``, and the table is private whatever the masses are (``docs/mathematics.md``, Proposition 13).

A set is kept as its runs of consecutive labels. Sums over labels are running sums, so figures cost ``O(k + runs)``
integer operations. An interval is one run, and intervals that cover labels equally are a flow (section 9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import truediv
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.sparse.linalg import splu

from optrand.base._arithmetic import Integers, places, quotient, scale_to_integers
from optrand.base._validation import Floats
from optrand.model._randomizer import Indices
from optrand.model._table import Steps, Table, add_steps

N = TypeVar("N", int, float)


RIDGE = 1e-14
"""Ridge on the diagonal of equations scaled to 1, so that dependent ones have a solution, too."""

DENSE = 1 << 13
"""Largest number of entries of a system for masses and outputs that is solved as a dense one."""


def node_equations(k: int, first: Indices, last: Indices, epsilon: float) -> sparse.csr_array:
    """Return the outflow less the inflow of each node, one amount per arc. The first row is the sum at the first label.

    All rows are divided by ``1 - exp(-epsilon)``, and amounts are those at labels that arcs favour. An arc touches
    the equations of its two nodes only, so that ten thousand labels are one sparse factorisation
    (``docs/mathematics.md``, Proposition 7).
    """
    # An arc leaves the node before its first label and enters the one after its last. At the nodes at both ends of the
    # line nothing is balanced: the first row is the sum at the first label in their place.
    end, every = last + 1, np.arange(first.size)
    starts, ends = first > 0, end < k
    # At the first label an amount counts in full if it is favoured there, and exp(-epsilon) times if not. Divided by
    # 1 - exp(-epsilon) that is 1 / expm1(epsilon), and 1 more if it is favoured.
    return sparse.csr_array(
        (
            np.concatenate((1 / math.expm1(epsilon) + ~starts, np.ones(starts.sum()), -np.ones(ends.sum()))),
            (
                np.concatenate((np.zeros(every.size, dtype=np.int64), first[starts], end[ends])),
                np.concatenate((every, every[starts], every[ends])),
            ),
        ),
        shape=(k, every.size),
    )


def least_change(system: sparse.csr_array, reach: Floats, residual: Floats) -> Floats:
    """Compute the vector ``x`` of least ``sum(x**2 / reach)`` with ``system @ x = residual``, up to rounding.

    The cost is that of a sparse factorisation, unless a few unknowns touch all equations, as outputs of many arcs do.
    """
    # Least squares of a dense system are more exact than its normal equations, and of a few unknowns as quick.
    if system.shape[1] <= min(256, system.shape[0] // 4):
        # In units of the root of its reach the least change is the shortest solution.
        scaled = system.toarray() * np.sqrt(reach)
        few: Floats = np.sqrt(reach) * np.linalg.lstsq(scaled, residual, rcond=RIDGE)[0]
        return few
    # Else by Lagrange multipliers z: x = reach * (A' z), with the normal equations (A reach A') z = residual.
    normal = sparse.csc_array(system @ sparse.diags_array(reach) @ system.T)
    # With a diagonal of 1 the ridge is the same share of every equation, however light its arcs are.
    size = normal.diagonal()
    scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    even = sparse.diags_array(scale) @ normal @ sparse.diags_array(scale)
    ridged = sparse.csc_array(even + sparse.diags_array(np.where(size > 0, RIDGE, 1.0)))
    # The matrix is symmetric and positive definite: pivots may stay on the diagonal, in an order of little fill.
    factors = splu(ridged, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    change: Floats = reach * (system.T @ (scale * factors.solve(scale * residual)))
    return change


def change_masses(nodes: sparse.csr_array, favoured: Floats, outputs: Floats, means: Floats) -> Floats:
    """Find the least relative change of masses that removes residuals of means at the nodes and keeps the rows.

    `favoured` holds the probability of each column at labels that it favours, and `outputs` are in the unit of `means`.
    """
    rows = np.zeros(means.size)
    if 2 * nodes.shape[0] * nodes.shape[1] <= DENSE:
        few = nodes.toarray() * favoured
        return dense_change(np.concatenate((few, few * outputs)), 1 / favoured, rows, means)
    scaled = sparse.csr_array(nodes @ sparse.diags_array(favoured))
    joint = sparse.csr_array(sparse.vstack([scaled, scaled @ sparse.diags_array(outputs)]))
    return least_change(joint, 1 / favoured, np.append(rows, means))


def dense_change(joint: Floats, reach: Floats, rows: Floats, means: Floats) -> Floats:
    """Find the least change by the equations of labels, which are sums of those of nodes.

    If not all residuals can be removed, as at degenerate vertices on a grid, one label's does not spread to others.
    """
    of_labels = np.cumsum(joint.reshape(2, rows.size, -1), axis=1).reshape(joint.shape)
    residual = np.append(np.cumsum(rows), np.cumsum(means))
    change: Floats = np.sqrt(reach) * np.linalg.lstsq(of_labels * np.sqrt(reach), residual, rcond=RIDGE)[0]
    return change


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Sets of ``k`` labels, one for each of ``n`` columns, as runs ``start ... stop - 1``.

    Each set has at least one run. Runs are in the order of their sets, the `owner`.
    """

    k: int
    n: int
    owner: Indices
    start: Indices
    stop: Indices

    @classmethod
    def of_intervals(cls, k: int, first: Indices, last: Indices) -> LabelSets:
        """Build the sets of intervals, given by their first and last labels."""
        return cls(k, first.size, np.arange(first.size), first, last + 1)

    @classmethod
    def of_members(cls, members: NDArray[np.bool_]) -> LabelSets:
        """Build sets from the (k, n) array of their members."""
        edges = np.diff(members.T.astype(np.int8), prepend=0, append=0)
        owner, start = np.nonzero(edges == 1)
        k, n = members.shape
        return cls(k, n, owner, start, np.nonzero(edges == -1)[1])

    @property
    def are_intervals(self) -> bool:
        """Whether each set is one run of labels."""
        return self.owner.size == self.n

    def only(self, kept: NDArray[np.bool_]) -> LabelSets:
        """Select some of the sets."""
        runs = kept[self.owner]
        owner = (np.cumsum(kept) - 1)[self.owner[runs]]
        return LabelSets(self.k, int(kept.sum()), owner, self.start[runs], self.stop[runs])

    def with_singletons(self, labels: Iterable[int]) -> LabelSets:
        """Add sets of one label each."""
        added = np.array(list(labels), dtype=np.int64)
        owner = np.concatenate((self.owner, self.n + np.arange(added.size)))
        start, stop = np.concatenate((self.start, added)), np.concatenate((self.stop, added + 1))
        return LabelSets(self.k, self.n + added.size, owner, start, stop)

    def sum_over(self, amounts: list[N]) -> list[N]:
        """Sum the amounts of the sets that hold each label."""
        changes, steps = np.zeros(self.k + 1, dtype=object), np.array(amounts, dtype=object)[self.owner]
        np.add.at(changes, self.start, steps)
        np.subtract.at(changes, self.stop, steps)
        sums: list[N] = np.cumsum(changes)[:-1].tolist()
        return sums

    def node_equations(self, epsilon: float) -> sparse.csr_array:
        """Return equations of :func:`node_equations`, summed over the runs of each set."""
        runs = node_equations(self.k, self.start, self.stop - 1, epsilon)
        if self.are_intervals:
            return runs
        # Each run adds the weight that its column has for all labels, which counts once.
        again = 1 - np.bincount(self.owner, minlength=self.n)
        places = np.zeros(self.n, dtype=int), np.arange(self.n)
        first_row = sparse.csr_array((again / math.expm1(epsilon), places), shape=(self.k, self.n))
        to_set = sparse.csr_array((np.ones(self.owner.size), (np.arange(self.owner.size), self.owner)))
        return sparse.csr_array(runs @ to_set + first_row)


def conserve_flow(sets: LabelSets, wanted: list[int]) -> list[int]:
    """Find masses of intervals next to the wanted ones that conserve flow (``docs/mathematics.md``, Proposition 14).

    From left to right the heaviest interval that begins at a node makes up the difference, and if it would turn
    negative, the next one. Intervals whose end no chain connects with the last label get mass 0.
    """
    starts, stops = sets.start.tolist(), sets.stop.tolist()
    # By first node, and the heaviest first.
    order = sorted(range(len(wanted)), key=wanted.__getitem__, reverse=True)
    order.sort(key=starts.__getitem__)
    # From right to left: from which nodes intervals lead on to the last label.
    leads = [False] * sets.k + [True]
    for j in reversed(order):
        leads[starts[j]] |= leads[stops[j]]
    order = [j for j in order if leads[stops[j]]]
    # The flow into each node less the flow out of it, which is 0 at inner nodes. Node 0 has outflow only.
    masses, missing = [0] * len(wanted), [0] * (sets.k + 1)
    for j in order:
        missing[starts[j]] -= wanted[j]
        missing[stops[j]] += wanted[j]
    missing[0] = 0
    for j in order:
        change = missing[starts[j]]
        if change < -wanted[j]:
            change = -wanted[j]
        masses[j] = wanted[j] + change
        missing[starts[j]] -= change
        missing[stops[j]] += change
    return masses


def cover_equally(sets: LabelSets, offsets: Floats, masses: list[int]) -> tuple[LabelSets, Floats, list[int]]:
    """Cover every label equally: singletons make up for labels that fall short.

    A singleton has the output of the heaviest column whose set holds its label.
    """
    # Raise every label to the largest coverage: masses are only ever added, so that none becomes negative.
    coverage, masses = sets.sum_over(masses), list(masses)
    most, new = max(coverage), dict[int, int]()
    # A column of the label alone takes the mass itself.
    own = {int(sets.start[j]): int(sets.owner[j]) for j in np.flatnonzero(sets.stop - sets.start == 1).tolist()}
    alone = np.bincount(sets.owner, minlength=sets.n) == 1
    for y, covered in enumerate(coverage):
        if covered < most and y in own and alone[own[y]]:
            masses[own[y]] += most - covered
        elif covered < most:
            holders = sets.owner[(sets.start <= y) & (y < sets.stop)].tolist() or range(sets.n)
            new[y] = max(holders, key=masses.__getitem__)
    outputs = np.append(offsets, offsets[list(new.values())]) if new else offsets
    return sets.with_singletons(new), outputs, masses + [most - coverage[y] for y in new]


@dataclass(frozen=True, eq=False)
class ExactColumns:
    """Columns in integers, whose sets cover every label equally.

    `labels` and `moments`, which are ``mass * output``, are measured from the origin, in units of ``2**-digits``.
    Masses are above 0.
    """

    labels: list[int]
    sets: LabelSets
    masses: list[int]
    moments: list[int]
    ratio: Fraction
    digits: int
    origin: float = 0.0

    @cached_property
    def factors(self) -> tuple[int, int]:
        """Factor of a mass for all labels, and the one in addition for those that its column favours."""
        return self.ratio.denominator, self.ratio.numerator - self.ratio.denominator

    @cached_property
    def total(self) -> int:
        """Sum of the weights of each row."""
        low, more = self.factors
        held = self.sets.owner[self.sets.start == 0].tolist()
        total: int = low * sum(self.masses) + more * sum(self.masses[j] for j in held)
        return total

    @property
    def values(self) -> list[int | Fraction]:
        """Output of each column less the origin, in units of ``2**-digits``."""
        divided = zip(map(divmod, self.moments, self.masses), self.masses, strict=True)
        return [whole + Fraction(rest, mass) if rest else whole for (whole, rest), mass in divided]

    @property
    def outputs(self) -> list[Fraction]:
        """Output of each column."""
        zero = Fraction(self.origin)
        return [zero + Fraction(x, mass << self.digits) for x, mass in zip(self.moments, self.masses, strict=True)]

    @cached_property
    def deviations(self) -> list[int]:
        """``E[output] - label`` of each label, in units of ``2**-digits / total``."""
        low, more = self.factors
        every, total = low * sum(self.moments), self.total
        sums = zip(self.sets.sum_over(self.moments), self.labels, strict=True)
        return [every + more * inside - total * y for inside, y in sums]

    @property
    def largest_bias(self) -> float:
        """Largest absolute value of :attr:`biases`, in floats."""
        return quotient(max(map(abs, self.deviations)), self.total << self.digits)

    def table(self, labels: Floats) -> Table:
        """Write the table of these columns: one between two floats is split between them, so that its moment is kept.

        The outputs of the parts are neighbouring floats (``docs/mathematics.md``, Proposition 17).
        """
        (low, more), (owner, start, stop) = self.factors, (self.sets.owner, self.sets.start, self.sets.stop)
        below, shares, digits = self._split()
        # A common power of two makes the shares of both floats integers.
        above = np.where(shares == 0, below, np.nextafter(below, math.inf))
        masses = np.array(self.masses, dtype=object) << digits
        masses = np.concatenate((masses - shares, shares))
        common = math.gcd(*masses.tolist())
        if common > 1:
            masses //= common
        outputs, at = np.unique(np.concatenate((below, above)), return_inverse=True)
        runs = np.concatenate((owner, owner + below.size))
        places = np.concatenate((np.zeros_like(at), start, start, stop, stop))
        heights = np.concatenate((low * masses, more * masses[runs], -more * masses[runs]))
        steps = Steps(places, np.concatenate((at, at[runs], at[runs])), heights)
        return Table(labels, outputs, add_steps(self.sets.k, steps))

    def _split(self) -> tuple[Floats, Integers, int]:
        """Return the float below each output or at it, and the mass of the next one, in units of ``2**-digits``."""
        (zero,) = scale_to_integers(np.array([self.origin]), self.digits)
        masses = np.array(self.masses, dtype=object)
        moments = np.array(self.moments, dtype=object) + zero * masses
        nearest = list(map(truediv, moments.tolist(), (masses << self.digits).tolist()))
        # Floats next to each other are integers of at most 53 digits times the same power of two: that of the nearest
        # one, seen from zero, or the next power if the output lies beyond.
        powers = np.frexp(np.spacing(np.nextafter(nearest, 0.0)))[1] - 1
        while True:
            digits = np.maximum(powers + self.digits, 0)
            scaled, units = moments << (digits - powers - self.digits), masses << digits
            wholes = scaled // units
            is_beyond = (wholes >= 1 << 53) | (wholes < -1 << 53)
            if not is_beyond.any():
                break
            powers += is_beyond
        rests = scaled - wholes * units
        digits = np.where(rests != 0, digits, 0)
        most = digits.max()
        return np.ldexp(wholes.astype(np.float64), powers), rests << (most - digits), most


def move_along_tree(columns: ExactColumns, movable: NDArray[np.bool_]) -> ExactColumns | None:
    """Change the moments of the movable columns, of intervals, so that all means are right.

    Moments change along a spanning tree of the nodes and one path from node 0 to node ``k`` (``docs/mathematics.md``,
    Proposition 16): with masses that are multiples of ``(r - d)(d L + r - d)``, ``L`` the length of the path, in
    integers. Cost ``O(n log n)``. None if some set is not an interval, or if the movable ones do not reach all nodes.
    """
    if not columns.sets.are_intervals:
        return None
    tree, path = _find_spanning_tree(columns, movable), _find_widest_path(columns, movable)
    if tree is None or path is None:
        return None
    sets, (low, more) = columns.sets, columns.factors
    # With these multiples every division below has no remainder.
    length = low * len(path) + more
    factor, total = more * length, columns.total * length
    scaled = np.array(columns.moments, dtype=object) * factor
    # Residual of each node, divided by r - d, in the unit of moments.
    unmet = np.zeros(sets.k + 1, dtype=object)
    unmet[1:-1] = np.diff(np.array(columns.labels, dtype=object)) * total
    np.subtract.at(unmet, sets.start, scaled)
    np.add.at(unmet, sets.stop, scaled)
    moments, residuals, starts, stops = scaled.tolist(), unmet.tolist(), sets.start.tolist(), sets.stop.tolist()
    # From the leaves inwards: a column makes its outer node right, and passes the rest on to its other node.
    for node, j in tree:
        start, stop = starts[j], stops[j]
        change = residuals[node] if start == node else -residuals[node]
        moments[j] += change
        residuals[start] -= change
        residuals[stop] += change
    # Now neighbouring means differ as their labels do. One path from end to end moves all of them alike.
    # The first mean holds low * (all moments) + more * (those of columns that hold the first label). A step of every
    # column on the path adds low * (its length) + more to it, for one column of the path begins at node 0.
    begun = sum(moments[j] for j in np.flatnonzero(sets.start == 0).tolist())
    step = (total * more * columns.labels[0] - low * sum(moments) - more * begun) // length
    for j in path:
        moments[j] += step
    return replace(columns, masses=[mass * factor for mass in columns.masses], moments=moments)


def _find_spanning_tree(columns: ExactColumns, movable: NDArray[np.bool_]) -> list[tuple[int, int]] | None:
    """Return inner nodes and the columns that correct them, each before the node at the other end of its column.

    The tree has the largest mass, with node ``k`` for node 0. None if the movable columns do not reach all nodes.
    """
    k, sets = columns.sets.k, columns.sets
    heavy = np.array(sorted(np.flatnonzero(movable).tolist(), key=columns.masses.__getitem__, reverse=True), dtype=int)
    one, other = sets.start[heavy], sets.stop[heavy] % k
    # The heaviest column between two nodes. Its weight is its rank, from 1, for 0 would be no edge.
    pairs, ranks = np.unique(np.minimum(one, other) * k + np.maximum(one, other), return_index=True)
    is_edge = one[ranks] != other[ranks]
    rows, others = np.divmod(pairs[is_edge], k)
    # SciPy 1.16 takes graphs with indices of 32 bits alone.
    begins = np.searchsorted(rows, np.arange(k + 1)).astype(np.int32)
    tree = minimum_spanning_tree(sparse.csr_array((ranks[is_edge] + 1.0, others.astype(np.int32), begins), (k, k)))
    order, parents = breadth_first_order(tree, 0, directed=False)
    if order.size < k:
        return None
    one, other = np.repeat(np.arange(k), np.diff(tree.indptr)), tree.indices
    to_parent = np.empty(k, dtype=int)
    to_parent[np.where(parents[other] == one, other, one)] = heavy[tree.data.astype(int) - 1]
    nodes = order[:0:-1]
    return list(zip(nodes.tolist(), to_parent[nodes].tolist(), strict=True))


def _find_widest_path(columns: ExactColumns, movable: NDArray[np.bool_]) -> list[int] | None:
    """Return movable columns that lead from node 0 to node k, the lightest as heavy as possible, or None."""
    sets, masses = columns.sets, columns.masses
    starts, stops = sets.start.tolist(), sets.stop.tolist()
    widths, last = [0] * (sets.k + 1), [-1] * (sets.k + 1)
    # The widest path (maximal bottleneck) by dynamic programming: intervals lead to the right, so nodes are in order.
    widths[0] = sum(masses)
    order = np.flatnonzero(movable)
    for j in order[np.argsort(sets.start[order], kind="stable")].tolist():
        width, stop = widths[starts[j]], stops[j]
        if widths[stop] < width and widths[stop] < masses[j]:
            widths[stop], last[stop] = min(width, masses[j]), j
    if not widths[sets.k]:
        return None
    path, node = list[int](), sets.k
    while node:
        path.append(last[node])
        node = starts[path[-1]]
    return path


def scale_columns(
    labels: Floats,
    sets: LabelSets,
    masses: list[int],
    offsets: Floats,
    ratio: Fraction,
    *,
    origin: float = 0.0,
    ends: tuple[float, float] = (-math.inf, math.inf),
    finest: int | None = None,
) -> ExactColumns:
    """Write columns with outputs in floats as exact ones.

    Outputs are `offsets` from the origin, clipped to `ends`. Those with more than `finest` binary digits are rounded to
    the nearest multiple. Columns of one interval and one output are joined, and those without mass left out.
    """
    if not all(masses):
        kept = np.array([mass > 0 for mass in masses])
        sets, offsets, masses = sets.only(kept), offsets[kept], [mass for mass in masses if mass]
    limits = [end for end in ends if math.isfinite(end)]
    own = places(offsets)
    digits = max(own if finest is None else min(own, finest), places(np.append(labels, [origin, *limits])))
    (zero,) = scale_to_integers(np.array([origin]), digits)
    below, above = (scale_to_integers(np.array([end]), digits)[0] - zero if math.isfinite(end) else end for end in ends)
    if own <= digits:
        values = scale_to_integers(offsets, digits)
    else:
        # Half a unit is added before the further digits are cut off.
        further = own - digits
        values = [(value + (1 << (further - 1))) >> further for value in scale_to_integers(offsets, own)]
    if limits:
        values = [int(min(max(value, below), above)) for value in values]
    if sets.are_intervals:
        sets, masses, values = _join(sets, masses, values)
    return ExactColumns(
        [y - zero for y in scale_to_integers(labels, digits)],
        sets,
        masses,
        [mass * value for mass, value in zip(masses, values, strict=True)],
        ratio,
        digits,
        origin,
    )


def _join(sets: LabelSets, masses: list[int], values: list[int]) -> tuple[LabelSets, list[int], list[int]]:
    """Join intervals of one output."""
    # Nearly always all intervals differ, which numbers show sooner than a dictionary.
    if np.unique(sets.start * (sets.k + 1) + sets.stop).size == len(masses):
        return sets, masses, values
    together = dict[tuple[int, int, int], int]()
    for key, mass in zip(zip(sets.start.tolist(), sets.stop.tolist(), values, strict=True), masses, strict=True):
        together[key] = together.get(key, 0) + mass
    if len(together) == len(masses):
        return sets, masses, values
    start, stop, joined = (list(part) for part in zip(*together, strict=True))
    intervals = LabelSets.of_intervals(sets.k, np.array(start), np.array(stop) - 1)
    return intervals, list(together.values()), joined
