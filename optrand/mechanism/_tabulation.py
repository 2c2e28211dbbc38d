r"""Tabulation: from a randomizer in floats to the exact table of integers that is drawn.

1. Write the randomizer as staircase columns :math:`(S_j, v_j, c_j)`, of which a dense table is a sum.
2. Round the masses to integers that cover every label equally, and replace :math:`e^\epsilon` by a rational :math:`R
   \leq e^\epsilon`. From here on privacy and the totals of rows are integer identities.
3. If the problem is unbiased and its outputs are those of a grid, change the masses by the least sum of :math:`\Delta
   c_j^2 / c_j` that removes the biases, found in floats from exact residuals until nothing shrinks.
4. Take out the bias that is left exactly: by moments along a tree of intervals, or by a small share of two outputs
   (:class:`~optrand.mechanism._columns.Completion`).

Column ``j`` favours a set :math:`S_j` of labels. It has an integer mass :math:`C_j` and a first moment :math:`x_j = C_j
v_j`, so that its output :math:`v_j` is any rational. At the ratio :math:`R = r / d` its weight is :math:`C_j r` for the
labels in its set and :math:`C_j d` for the others. Rows have one total if every label is *covered* by the same mass,
``sum_{S has y} C``, and the table is private whatever the masses are (``docs/mathematics.md``, Proposition 13).

Sums over labels are running sums over the runs of the sets, and intervals that cover labels equally are a flow.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import floordiv, itemgetter, truediv
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from optrand.base._arithmetic import Integers, places, privacy_ratio, quotient, scale_to_integers
from optrand.base._validation import Floats, Record, expect
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism._columns import change_masses, complete, cover_equally, set_equations
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Dual, Grid, Interval, Line, Problem
from optrand.model._randomizer import LabelSets, Randomizer, decompose
from optrand.model._table import Steps, Table, add_steps


@dataclass(frozen=True)
class TabulationOptions:
    """Precision of :func:`tabulate`.

    Attributes
    ----------
    bits : int
        Masses are integers that sum to about ``2**bits``. On a grid, where only masses can be changed, twice as long.
    tolerance : float
        Largest probability that a row may lack or exceed, made private, and that negative masses may have.
    rounds : int
        Largest number of corrections of masses on a grid. Two or three suffice.
    finer : int
        Binary digits of outputs that may move, below the largest distance from the origin.
    nearly : float
        Share of the loss that may be added so that columns of one output stay together.
    """

    bits: int = 60
    tolerance: float = 1e-6
    rounds: int = 12
    finer: int = 70
    nearly: float = 1e-12


OPTIONS = TabulationOptions()


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


@dataclass(frozen=True, eq=False)
class ExactColumns:
    """Columns in integers, whose sets cover every label equally.

    `labels` and `moments`, which are ``mass * output``, are in units of ``2**-digits``. Masses are above 0.
    """

    labels: list[int]
    sets: LabelSets
    masses: list[int]
    moments: list[int]
    ratio: Fraction
    digits: int

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
    def outputs(self) -> list[Fraction]:
        """Output of each column."""
        return [Fraction(x, mass << self.digits) for x, mass in zip(self.moments, self.masses, strict=True)]

    @cached_property
    def deviations(self) -> list[int]:
        """``E[output] - label`` of each label, in units of ``2**-digits / total``."""
        low, more = self.factors
        every, total = low * sum(self.moments), self.total
        sums = zip(self.sets.sum_over(self.moments), self.labels, strict=True)
        return [every + more * inside - total * y for inside, y in sums]

    def table(self, labels: Floats) -> Table:
        """Write the table. A column between two floats is split, so that its moment is kept (Proposition 17)."""
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
        masses, moments = np.array(self.masses, dtype=object), np.array(self.moments, dtype=object)
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
) -> ExactColumns:
    """Write columns with outputs in floats, `offsets` from the origin that are clipped to `ends`, as exact ones."""
    limits = [end for end in ends if math.isfinite(end)]
    digits = places(np.concatenate((labels, offsets, [origin], limits)))
    (zero,) = scale_to_integers(np.array([origin]), digits)
    values = [zero + offset for offset in scale_to_integers(offsets, digits)]
    if limits:
        low, high = scale_to_integers(np.array(limits), digits)
        values = [min(max(value, low), high) for value in values]
    moments = [mass * value for mass, value in zip(masses, values, strict=True)]
    return ExactColumns(scale_to_integers(labels, digits), sets, masses, moments, ratio, digits)


NO_MECHANISM = (Infeasible, InvalidInput, NotCertified)
"""Errors of candidates that cannot be made exact."""


@dataclass(frozen=True)
class Stats:
    """Statistics of a solve, never proof: how to build the solver again, seconds, outermost rounds, a status."""

    solver: str
    seconds: float = 0.0
    iterations: int = 0
    status: str = "closed form"


@dataclass(frozen=True, eq=False)
class Solution(Record):
    """Candidate of a solver: a randomizer in floats, and a dual that bounds its distance from the optimum.

    Without a dual only privacy can be certified.
    """

    problem: Problem
    randomizer: Randomizer
    dual: Dual | None = None
    stats: Stats = Stats("")

    def __post_init__(self) -> None:
        if not np.array_equal(self.problem.labels, self.randomizer.labels):
            raise InvalidInput("the randomizer's labels are not those of the problem")
        if self.dual is not None and self.dual.alpha.size != self.problem.k:
            raise InvalidInput("the dual does not have one entry per label of the problem")

    @property
    def value(self) -> float:
        """Objective at the randomizer, in floats."""
        return self.problem.value(self.randomizer)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The exact mechanism that :func:`tabulate` returns."""
        problem, randomizer = self.problem, self.randomizer
        # Arcs are columns of the ratio that they claim.
        is_narrower = randomizer.arcs is not None and randomizer.epsilon < problem.epsilon
        narrowed = replace(problem, epsilon=randomizer.epsilon) if is_narrower else problem
        return Mechanism(problem, _tabulate(narrowed, randomizer), self.dual)

    @cached_property
    def gap(self) -> float:
        """Relative gap that the certificate of the mechanism proves, infinite if there is no mechanism or no proof."""
        try:
            proof = self.mechanism.certificate
        except NO_MECHANISM:
            return math.inf
        return math.inf if proof.findings else proof.gap

    def with_dual(self, dual: Dual) -> Solution:
        """Return the same answer with other multipliers, without tabulating it again."""
        found = replace(self, dual=dual)
        with suppress(*NO_MECHANISM):
            vars(found)["mechanism"] = replace(self.mechanism, dual=dual)
        return found

    def with_stats(self, **changes: Any) -> Solution:
        """Return the same answer with other statistics, and with its mechanism and gap if these are known."""
        found = replace(self, stats=replace(self.stats, **changes))
        vars(found).update((name, made) for name, made in vars(self).items() if name in ("mechanism", "gap"))
        return found

    def __repr__(self) -> str:
        proof = "with" if self.dual is not None else "without"
        return (
            f"<Solution: {self.problem.k} labels, {self.randomizer.n} outputs, epsilon {self.problem.epsilon:g}, "
            f"value {self.value:.7g}, {proof} dual>"
        )


def tabulate(solution: Solution) -> Mechanism:
    """Return the exact mechanism nearest to a candidate: private, normalised, and unbiased if the problem is.

    Parameters
    ----------
    solution : Solution
        Its randomizer is any design whose privacy is broken by rounding at most. If the problem is unbiased, biases are
        removed, whatever they are: at negligible cost if they are rounding, otherwise at more than the least cost.

    Raises
    ------
    NotCertified
        The randomizer is not private up to rounding, or the allowed outputs are too narrow to remove its bias.

    Notes
    -----
    Cost ``O(n log n)`` integer operations for `n` interval columns, of which no array of size ``k n`` is made. Other
    sets of labels cost as much for each of their runs.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.certify(tabulate(design(problem)))
    >>> proof.epsilon <= 1.0, proof.bias, proof.gap < 1e-9
    (True, 0.0, True)
    """
    expect(solution, Solution, "solution", "that of a solver: tabulate(design(problem))")
    return solution.mechanism


def round_randomizer(randomizer: Randomizer) -> Table:
    """Return the exact table nearest to a randomizer, or raise `NotCertified` if it is not private up to rounding."""
    labels, epsilon = randomizer.labels, randomizer.epsilon
    sets, offsets, masses = _round(randomizer, epsilon, 0.0, OPTIONS.bits)
    return scale_columns(labels, sets, masses, offsets, privacy_ratio(epsilon)).table(labels)


def _tabulate(problem: Problem, randomizer: Randomizer) -> Table:
    # Subtracting an origin rounds outputs: they could leave a grid, and small positive ones become zero.
    is_grid = isinstance(problem.outputs, Grid)
    origin = 0.0 if is_grid or problem.loss.positive_outputs else problem.origin
    ratio = privacy_ratio(problem.epsilon)
    bits = 2 * OPTIONS.bits if is_grid and problem.unbiased else OPTIONS.bits
    sets, offsets, masses = _round(randomizer, problem.epsilon, origin, bits)
    if problem.unbiased and is_grid:
        sets, offsets, masses = _correct_masses(problem, sets, offsets, masses, ratio)
    elif problem.unbiased:
        # Further digits of outputs that may move only lengthen the integers.
        reach = float(np.abs(offsets).max()) or 1.0
        finest = max(OPTIONS.finer - math.frexp(reach)[1], places(problem.labels))
        with np.errstate(over="ignore"):
            scaled = np.ldexp(offsets, finest)
        # Floats of at least 2**52 are integers already.
        offsets = np.where(np.abs(scaled) < 2.0**52, np.ldexp(np.floor(scaled + 0.5), -finest), offsets)
    ends = problem.outputs.low, problem.outputs.high
    columns = scale_columns(problem.labels, sets, masses, offsets, ratio, origin=origin, ends=ends)
    if not problem.unbiased or not any(columns.deviations):
        return columns.table(problem.labels)
    table = _correct_means(problem, columns)
    if table is None:
        largest = quotient(max(map(abs, columns.deviations)), columns.total << columns.digits)
        raise NotCertified(
            f"no mechanism near this randomizer is unbiased: its largest bias is {largest:.3g}, and the allowed "
            f"outputs, from {problem.outputs.low:g} to {problem.outputs.high:g}, are too narrow to remove it: let them "
            "reach a little further"
        )
    return table


def _round(randomizer: Randomizer, epsilon: float, origin: float, bits: int) -> tuple[LabelSets, Floats, list[int]]:
    """Round to sets of labels, outputs less the origin, and integer masses that cover every label equally."""
    arcs = randomizer.arcs
    if arcs is not None:
        sets, offsets, masses = LabelSets.of_intervals(arcs.k, arcs.first, arcs.last), arcs.offsets(origin), arcs.masses
    else:
        # Differences of a column's entries that are smaller, relative to the largest one, are rounding.
        negligible = min(1e-3, -64 * 2.0**-52 / math.expm1(-epsilon))
        found = decompose(randomizer, math.exp(epsilon), negligible)
        sets, offsets, masses = LabelSets.of_members(found.members), found.outputs - origin, found.masses
    with np.errstate(over="ignore", invalid="ignore"):
        rows = masses.sum() + math.expm1(epsilon) * np.array(sets.sum_over(masses.tolist()))
        off = float(np.abs(rows - 1).max())
        negative = float(-masses[masses < 0].sum()) * math.exp(epsilon)
    if not max(off, negative) <= OPTIONS.tolerance:
        raise NotCertified(
            f"the randomizer is not {epsilon:g}-DP: made private, its rows are off 1 by {off:.3g} and negative masses "
            f"account for {negative:.3g}, more than the {OPTIONS.tolerance:g} of rounding: "
            "optrand.audit(matrix, epsilon) finds the entries"
        )
    # Rounding alone breaks the sums of rows. The flow that is conserved next restores them in integers.
    shares = np.maximum(masses, 0.0)
    wanted = [int(mass) for mass in np.rint(shares / shares.sum() * 2.0**bits).tolist()]
    return _cover(sets, offsets, wanted)


def _cover(sets: LabelSets, offsets: Floats, wanted: list[int]) -> tuple[LabelSets, Floats, list[int]]:
    """Cover every label equally by masses near the wanted ones, and leave out columns without mass."""
    if sets.are_intervals:
        masses = conserve_flow(sets, wanted)
    else:
        sets, offsets, masses = cover_equally(sets, offsets, wanted)
    kept = np.array([mass > 0 for mass in masses])
    return sets.only(kept), offsets[kept], [mass for mass in masses if mass]


def _correct_masses(
    problem: Problem, sets: LabelSets, offsets: Floats, masses: list[int], ratio: Fraction
) -> tuple[LabelSets, Floats, list[int]]:
    """Change the masses of columns on a grid until their biases, which are exact, shrink no more."""
    best, least = (sets, offsets, masses), math.inf
    for _ in range(OPTIONS.rounds):
        columns = scale_columns(problem.labels, sets, masses, offsets, ratio)
        unit = columns.total << columns.digits
        # The sum, for some biases may shrink while the largest one cannot.
        biases = quotient(sum(map(abs, columns.deviations)), unit)
        if biases < least:
            best = sets, offsets, masses
        if not 0 < biases < least / 2:
            break
        least = biases
        width = float(max(offsets.max() - problem.labels[0], problem.labels[-1] - offsets.min())) or 1.0
        # Residuals at the nodes: that of the first mean, then differences of neighbours.
        residuals = [(before - after) / unit for before, after in pairwise([0, *columns.deviations])]
        shares = change_masses(
            set_equations(sets, problem.epsilon),
            np.array([mass * ratio.numerator / columns.total for mass in masses]),
            (offsets - offsets.mean()) / width,
            np.array(residuals) / (-math.expm1(-problem.epsilon) * width),
        )
        # At most half of a mass goes, so that none becomes negative.
        changes = map(float.as_integer_ratio, np.clip(shares, -0.5, 1.0).tolist())
        moved = [mass + mass * above // below for mass, (above, below) in zip(masses, changes, strict=True)]
        sets, offsets, masses = _cover(sets, offsets, moved)
    return best


def _correct_means(problem: Problem, columns: ExactColumns) -> Table | None:
    """Make the means right exactly, or return None if the allowed outputs are too narrow.

    The loss changes by as little as the biases are small. Columns of one output stay together if they can.
    """
    # Columns that have not moved yet have outputs that are floats.
    values, labels = list(map(floordiv, columns.moments, columns.masses)), problem.labels
    if isinstance(problem.outputs, Interval):
        inside = np.array([problem.outputs.low < v < problem.outputs.high for v in columns.outputs])
    else:
        inside = np.full(len(values), isinstance(problem.outputs, Line))
    shared = Counter(values)
    alone = np.array([shared[v] == 1 for v in values])
    # Cheapest first: columns move alone, then two outputs remove the bias, then columns of one output separate.
    moved = _move_within(problem, columns, inside & alone)
    if moved is not None:
        return moved.table(labels)
    rough = columns.table(labels)
    error, mixed = rough.mean_squared_error(problem.prior), list[tuple[Fraction, Table]]()
    for table in complete(problem, rough, columns.ratio, are_intervals=columns.sets.are_intervals):
        mixed.append((table.mean_squared_error(problem.prior), table))
        if mixed[-1][0] <= (1 + Fraction(OPTIONS.nearly)) * error:
            return table
    moved = _move_within(problem, columns, inside)
    if moved is None and isinstance(problem.outputs, Interval):
        # An output that rounding moved onto an end of the interval may belong just within it.
        moved = _move_within(problem, columns, np.ones_like(inside))
    if moved is not None:
        return moved.table(labels)
    return min(mixed, key=itemgetter(0))[1] if mixed else None


def _move_within(problem: Problem, columns: ExactColumns, movable: NDArray[np.bool_]) -> ExactColumns | None:
    """Move columns along a tree. None if the movable ones do not reach all nodes, or leave the allowed outputs."""
    moved, (low, high) = move_along_tree(columns, movable), (problem.outputs.low, problem.outputs.high)
    if moved is None or isinstance(problem.outputs, Line) or all(low <= v <= high for v in moved.outputs):
        return moved
    return None
