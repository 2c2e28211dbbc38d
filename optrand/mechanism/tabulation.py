r"""Tabulation: from a randomizer in floats to the exact table of integers that is drawn.

1. Write the randomizer as staircase columns :math:`(S_j, v_j, c_j)`: interval columns are such, and a dense table is
   their sum (:func:`optrand.model.staircase.decompose`).
2. Round the masses to integers that cover every label equally, and replace :math:`e^\epsilon` by a rational :math:`R
   \leq e^\epsilon`. From here on privacy and the totals of rows are integer identities
   (:mod:`optrand.mechanism.columns`).
3. If the problem is unbiased, correct the outputs at the least cost, found in floats from exact residuals until nothing
   shrinks:

   .. math:: \min \tfrac12 \sum_j P_j c_j \, \Delta v_j^2 \quad \text{such that all means are right}, \qquad
             P_j = \sum_y s_j(y) \, p_y.

   It keeps optimal outputs optimal. If outputs alone do not reach, because they lie on a grid or on the ends of an
   interval or are fewer than the labels, masses change as well, at the cost :math:`\Delta c_j^2 / 2 c_j`
   (:mod:`optrand.model.feasibility`).
4. Take out the last bits of bias exactly: by moments along a tree of intervals, or by a small share of two outputs
   (:mod:`optrand.mechanism.completion`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import privacy_ratio, quotient
from optrand.base.validation import Floats
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.columns import (
    ExactColumns,
    LabelSets,
    conserve_flow,
    cover_equally,
    move_along_tree,
    scale_columns,
)
from optrand.mechanism.completion import Completion
from optrand.mechanism.mechanism import Mechanism
from optrand.model.feasibility import flow_change
from optrand.model.outputs import Grid, Interval, Line
from optrand.model.problem import Dual, Problem
from optrand.model.randomizer import Indices, Randomizer, Solution
from optrand.model.staircase import decompose, rounding_noise
from optrand.model.table import Table

__all__ = ["round_randomizer", "tabulate"]

BITS = 60
"""Masses are integers that sum to about ``2**BITS``; on a grid, where masses alone make means right, twice as long."""

TOLERANCE = 1e-6
"""Largest probability that a row may lack or exceed, made private, and that negative masses may have."""

ROUNDED = 1e-13
"""Share of the labels' range below which biases are left to exact moments."""

ROUNDS = 12
"""Largest number of corrections; two or three suffice."""

FINER = 70
"""Binary digits of outputs that may move, below the largest distance from the origin."""

NEARLY = 1 + Fraction(1, 10**12)
"""Largest factor of the loss for which columns of one output stay together."""


@overload
def tabulate(subject: Solution, /) -> Mechanism: ...
@overload
def tabulate(subject: Problem, randomizer: Randomizer, /, dual: Dual | None = ...) -> Mechanism: ...
def tabulate(
    subject: Solution | Problem, randomizer: Randomizer | None = None, /, dual: Dual | None = None
) -> Mechanism:
    """Return the exact mechanism nearest to a randomizer: private, normalised, and unbiased if the problem is.

    Parameters
    ----------
    subject : Solution or Problem
        A solution brings its randomizer and dual; a problem needs a randomizer beside it.
    randomizer : Randomizer
        Any design whose privacy is broken by rounding at most. If the problem is unbiased, outputs are moved until all
        means are right, whatever the biases are.
    dual : Dual, optional
        Kept in the mechanism, so that its optimality can be proven again.

    Returns
    -------
    Mechanism
        With :attr:`~optrand.mechanism.mechanism.Mechanism.arcs` if the randomizer has arcs.

    Raises
    ------
    NotCertified
        More than rounding keeps the table from being private, or the allowed outputs leave no room to take out the
        bias.

    Notes
    -----
    Cost ``O(n log n)`` integer operations and a few sparse factorisations for `n` interval columns, of which no array
    of size ``k n`` is made. Sets of labels that are not intervals cost as much for each of their runs.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> mechanism = tabulate(design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)))
    >>> proof = optrand.certify(mechanism)
    >>> proof.epsilon <= 1.0, proof.bias, proof.gap < 1e-9
    (True, 0.0, True)
    """
    if isinstance(subject, Solution):
        problem, randomizer, dual = subject.problem, subject.randomizer, subject.dual
    elif not isinstance(subject, Problem):
        raise InvalidInput(
            f"tabulate needs a solution, or a problem and a randomizer, not a {type(subject).__name__}: "
            "tabulate(design(problem))"
        )
    elif randomizer is None:
        raise InvalidInput("tabulate(problem, randomizer) needs a randomizer beside the problem")
    else:
        problem = subject
    if not np.array_equal(problem.labels, randomizer.labels):
        raise InvalidInput("the randomizer's labels are not those of the problem")
    # Arcs are columns of the ratio that they claim.
    narrowed = problem if randomizer.arcs is None else problem.within(randomizer.epsilon)
    return Mechanism(problem, _tabulate(narrowed, randomizer), dual)


def round_randomizer(randomizer: Randomizer) -> Table:
    """Return the exact table nearest to a randomizer, private at its epsilon, whatever its biases.

    Raises
    ------
    NotCertified
        More than rounding keeps it from being private.

    Examples
    --------
    >>> coin = Randomizer([0, 1], [-0.5, 1.5], [[0.75, 0.25], [0.25, 0.75]], math.log(3))
    >>> table = round_randomizer(coin)
    >>> table.outputs.tolist(), float(table.largest_ratio)
    ([-0.5, 1.5], 3.0)
    """
    ratio, origin = privacy_ratio(randomizer.epsilon), 0.0
    sets, offsets, masses = _round(randomizer, randomizer.epsilon, origin, BITS)
    return scale_columns(randomizer.labels, sets, masses, offsets, ratio).table(randomizer.labels)


def _tabulate(problem: Problem, randomizer: Randomizer) -> Table:
    # Taking off an origin rounds outputs: a value of a grid would become none of them, a small positive one zero.
    is_grid = isinstance(problem.outputs, Grid)
    origin = 0.0 if is_grid or problem.loss.positive_outputs else problem.origin
    bits = 2 * BITS if is_grid and problem.unbiased else BITS
    rounded = _Rounded(
        problem, *_round(randomizer, problem.epsilon, origin, bits), privacy_ratio(problem.epsilon), origin
    )
    columns = rounded.scaled()
    if not problem.unbiased or not any(columns.deviations):
        return columns.table(problem.labels)
    if is_grid or columns.largest_bias > ROUNDED * np.ptp(problem.labels):
        columns = rounded.unbiased().scaled()
    table = _with_exact_means(problem, columns)
    if table is None:
        raise NotCertified(
            f"no mechanism near this randomizer is unbiased: its largest bias is {columns.largest_bias:.3g}, and the "
            f"allowed outputs, from {problem.outputs.low:g} to {problem.outputs.high:g}, leave no room to take it out; "
            "let them reach a little further"
        )
    return table


def _round(randomizer: Randomizer, epsilon: float, origin: float, bits: int) -> tuple[LabelSets, Floats, list[int]]:
    """Round to sets of labels, outputs less the origin, and integer masses that cover every label equally.

    Raises
    ------
    NotCertified
        More than rounding keeps the randomizer from being private.
    """
    arcs = randomizer.arcs
    if arcs is not None:
        sets, offsets, masses = LabelSets.of_intervals(arcs.k, arcs.first, arcs.last), arcs.offsets(origin), arcs.masses
    else:
        found = decompose(randomizer, math.exp(epsilon), negligible=rounding_noise(epsilon))
        sets, offsets, masses = LabelSets.of_members(found.members), found.outputs - origin, found.masses
    with np.errstate(over="ignore", invalid="ignore"):
        rows = masses.sum() + math.expm1(epsilon) * sets.coverage(masses)
        off = float(np.abs(rows - 1).max())
        negative = float(-masses[masses < 0].sum()) * math.exp(epsilon)
    if not max(off, negative) <= TOLERANCE:
        raise NotCertified(
            f"the randomizer is not {epsilon:g}-DP: made private, its rows are off 1 by {off:.3g}, and negative masses "
            f"account for {negative:.3g}; rounding accounts for {TOLERANCE:g} at most; optrand.audit(matrix, epsilon) "
            "tells where"
        )
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


@dataclass(frozen=True, eq=False)
class _Rounded:
    """Columns with integer masses, and outputs in floats whose biases are to vanish."""

    problem: Problem
    sets: LabelSets
    offsets: Floats
    masses: list[int]
    ratio: Fraction
    origin: float

    def scaled(self) -> ExactColumns:
        """Return the exact columns, with digits of movable outputs that only lengthen the integers rounded off."""
        finest = None
        if self.problem.unbiased and not isinstance(self.problem.outputs, Grid):
            reach = float(np.abs(self.offsets).max()) or 1.0
            finest = max(0, FINER - math.frexp(reach)[1])
        ends = self.problem.outputs.low, self.problem.outputs.high
        columns = self.sets, self.masses, self.offsets, self.ratio
        return scale_columns(self.problem.labels, *columns, origin=self.origin, ends=ends, finest=finest)

    def unbiased(self) -> _Rounded:
        """Make means right to a rounding of the outputs, by moving outputs if that is enough."""
        if isinstance(self.problem.outputs, Grid):
            return self.corrected_often(masses=True)
        best = self.corrected_often(masses=False) if self.movable.all() else self
        rounding = float(np.spacing(np.abs(best.offsets).max()))
        if best.exact.largest_bias <= rounding:
            return best
        return min(best, best.corrected_often(masses=True), key=_sum_of_biases)

    def corrected_often(self, *, masses: bool) -> _Rounded:
        """Correct the columns until the biases, which are exact, shrink no more."""
        best = columns = self
        for _ in range(ROUNDS):
            before, columns = columns, columns.corrected(masses=masses)
            best = min(best, columns, key=_sum_of_biases)
            # A correction that ran into an end of the interval is followed by one that knows so.
            if not columns.sum_of_biases < before.sum_of_biases / 2 and columns.movable.sum() == before.movable.sum():
                break
        return best

    @cached_property
    def exact(self) -> ExactColumns:
        """Exact columns of these outputs, none of which is rounded."""
        return scale_columns(self.problem.labels, self.sets, self.masses, self.offsets, self.ratio, origin=self.origin)

    @cached_property
    def sum_of_biases(self) -> float:
        """Sum of the absolute biases: some may shrink while the largest one cannot."""
        return quotient(sum(map(abs, self.exact.deviations)), self.exact.total << self.exact.digits)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Ends of the allowed outputs, less the origin."""
        return self.problem.outputs.low - self.origin, self.problem.outputs.high - self.origin

    @cached_property
    def distinct(self) -> tuple[Floats, Indices]:
        """Distinct outputs less the origin, and the index of that of each column."""
        outputs, at = np.unique(self.offsets, return_inverse=True)
        return outputs, at.astype(np.int64)

    @cached_property
    def movable(self) -> NDArray[np.bool_]:
        """Mask of the distinct outputs strictly inside the allowed interval; on a grid, none."""
        low, high = self.ends
        outputs = self.distinct[0]
        inside: NDArray[np.bool_] = (outputs > low) & (outputs < high)
        return inside & (not isinstance(self.problem.outputs, Grid))

    def corrected(self, *, masses: bool) -> _Rounded:
        """Change the outputs, or the masses as well, at the least cost."""
        (outputs, at), epsilon = self.distinct, self.problem.epsilon
        labels, total = self.problem.labels - self.origin, self.exact.total
        width = float(max(outputs[-1] - labels[0], labels[-1] - outputs[0])) or 1.0
        shares, moves = flow_change(
            self.sets.node_equations(epsilon),
            self.sets.weights(self.problem.prior, epsilon),
            np.array([mass * self.ratio.numerator / total for mass in self.masses]),
            at,
            rows=np.zeros(self.sets.k) if masses else None,
            means=self._residual() / width,
            pull=(self.offsets - outputs.mean()) / width,
            free=self.movable,
        )
        offsets = np.clip(outputs + width * moves, *self.ends)[at]
        if not masses:
            return replace(self, offsets=offsets)
        changes = zip(self.masses, np.clip(shares, -0.5, 1.0).tolist(), strict=True)
        wanted = [mass + round(Fraction(share) * mass) for mass, share in changes]
        sets, offsets, covering = _cover(self.sets, offsets, wanted)
        return replace(self, sets=sets, offsets=offsets, masses=covering)

    def _residual(self) -> Floats:
        """Return residuals of the means at the nodes: that of the first mean, then differences of neighbours."""
        unit = self.exact.total << self.exact.digits
        residuals = [(before - after) / unit for before, after in pairwise([0, *self.exact.deviations])]
        return np.array(residuals) / -math.expm1(-self.problem.epsilon)


def _sum_of_biases(columns: _Rounded) -> float:
    return columns.sum_of_biases


def _with_exact_means(problem: Problem, columns: ExactColumns) -> Table | None:
    """Make the means right exactly. None if the allowed outputs leave no room for that.

    The loss changes by as little as the biases are small. Columns of one output stay together if they can.
    """
    values, labels = columns.values, problem.labels
    if isinstance(problem.outputs, Line):
        inside = np.ones(len(values), dtype=bool)
    else:
        low, high = problem.outputs.low, problem.outputs.high
        inside = np.array([low < v < high and not isinstance(problem.outputs, Grid) for v in columns.outputs])
    shared = Counter(values)
    alone = np.array([shared[v] == 1 for v in values])
    moved = _moved(problem, columns, inside & alone)
    if moved is not None:
        return moved.table(labels)
    rough = columns.table(labels)
    mixed = list(_complete(problem, columns, rough))
    error = _squared_error(problem, rough)
    errors = [_squared_error(problem, table) for table in mixed]
    for table, own in zip(mixed, errors, strict=True):
        if own <= NEARLY * error:
            return table
    moved = _moved(problem, columns, inside)
    if moved is None and isinstance(problem.outputs, Interval):
        # An output that rounding moved onto an end of the interval may belong just within it.
        moved = _moved(problem, columns, np.ones_like(inside))
    if moved is not None:
        return moved.table(labels)
    return mixed[errors.index(min(errors))] if mixed else None


def _moved(problem: Problem, columns: ExactColumns, movable: NDArray[np.bool_]) -> ExactColumns | None:
    """Move columns along a tree. None if the movable ones do not reach all nodes, or leave the allowed outputs."""
    moved = move_along_tree(columns, movable)
    if moved is None or isinstance(problem.outputs, Line):
        return moved
    low, high = problem.outputs.low, problem.outputs.high
    return moved if all(low <= v <= high for v, free in zip(moved.outputs, movable, strict=True) if free) else None


def _complete(problem: Problem, columns: ExactColumns, rough: Table) -> Iterator[Table]:
    """Generate mixtures of a table with two outputs that take out its biases, as far as the outputs leave room.

    The two are the ends of the allowed outputs. On the line they are the table's own, or any if its sets are not
    intervals. If they are, the first mixture is a sum of intervals as well: the probabilities of the two outputs rise
    or fall with the label, which may take more of them.
    """
    zero = Fraction(float(problem.labels[problem.k // 2]))
    labels = [Fraction(y) - zero for y in problem.labels.tolist()]
    means = [y + bias for y, bias in zip(labels, rough.biases, strict=True)]
    ends, are_intervals = (problem.outputs.low, problem.outputs.high), columns.sets.are_intervals
    if isinstance(problem.outputs, Line) and are_intervals:
        ends = float(rough.outputs[0]), float(rough.outputs[-1])
    for monotone in (True, False) if are_intervals else (False,):
        found = Completion.of(ends, labels, means, columns.ratio, origin=zero, monotone=monotone)
        if found is not None:
            yield found.mix(rough)


def _squared_error(problem: Problem, table: Table) -> Fraction:
    pairs = zip(map(Fraction, problem.prior.tolist()), table.squared_errors, strict=True)
    return sum((p * error for p, error in pairs), Fraction(0))
