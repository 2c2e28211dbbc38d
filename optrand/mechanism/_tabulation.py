r"""Tabulation: from a randomizer in floats to the exact table of integers that is drawn.

1. Write the randomizer as staircase columns :math:`(S_j, v_j, c_j)`: interval columns are such, and a dense table is
   their sum (:func:`optrand.model._randomizer.decompose`).
2. Round the masses to integers that cover every label equally, and replace :math:`e^\epsilon` by a rational :math:`R
   \leq e^\epsilon`. From here on privacy and the totals of rows are integer identities
   (:mod:`optrand.mechanism._columns`).
3. If the problem is unbiased and its outputs are those of a grid, change the masses by the least sum of :math:`\Delta
   c_j^2 / c_j` that removes the biases, found in floats from exact residuals until nothing shrinks.
4. Take out the bias that is left exactly: by moments along a tree of intervals, or by a small share of two outputs
   (:class:`Completion`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from optrand.base._arithmetic import float_above, float_below, privacy_ratio, quotient
from optrand.base._validation import Floats, expect
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism._columns import (
    ExactColumns,
    LabelSets,
    change_masses,
    conserve_flow,
    cover_equally,
    move_along_tree,
    scale_columns,
)
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Grid, Interval, Line, Problem
from optrand.model._randomizer import Randomizer, Solution, decompose, rounding_noise
from optrand.model._table import Table


@dataclass(frozen=True)
class TabulationOptions:
    """Precision of :func:`tabulate`.

    Attributes
    ----------
    bits : int
        Masses are integers that sum to about ``2**bits``. On a grid, where only masses can be changed, twice as
        long.
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
        The randomizer violates privacy by more than rounding, or the allowed outputs are too narrow to remove its
        bias.

    Notes
    -----
    Cost ``O(n log n)`` integer operations and a few sparse factorisations for `n` interval columns, of which no array
    of size ``k n`` is made. Sets of labels that are not intervals cost as much for each of their runs.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> mechanism = tabulate(
    ...     design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    ... )
    >>> proof = optrand.certify(mechanism)
    >>> proof.epsilon <= 1.0, proof.bias, proof.gap < 1e-9
    (True, 0.0, True)
    """
    expect(solution, Solution, "solution", "that of a solver: tabulate(design(problem))")
    problem, randomizer = solution.problem, solution.randomizer
    # Arcs are columns of the ratio that they claim.
    is_narrower = randomizer.arcs is not None and randomizer.epsilon < problem.epsilon
    narrowed = replace(problem, epsilon=randomizer.epsilon) if is_narrower else problem
    return Mechanism(problem, _tabulate(narrowed, randomizer), solution.dual)


def round_randomizer(randomizer: Randomizer) -> Table:
    """Return the exact table nearest to a randomizer, private at its epsilon, whatever its biases.

    Raises
    ------
    NotCertified
        More than rounding keeps it from being private.
    """
    ratio, origin = privacy_ratio(randomizer.epsilon), 0.0
    sets, offsets, masses = _round(randomizer, randomizer.epsilon, origin, OPTIONS.bits)
    return scale_columns(randomizer.labels, sets, masses, offsets, ratio).table(randomizer.labels)


def _tabulate(problem: Problem, randomizer: Randomizer) -> Table:
    # Subtracting an origin rounds outputs: they could leave a grid, and small positive ones become zero.
    is_grid = isinstance(problem.outputs, Grid)
    origin = 0.0 if is_grid or problem.loss.positive_outputs else problem.origin
    ratio, finest = privacy_ratio(problem.epsilon), None
    bits = 2 * OPTIONS.bits if is_grid and problem.unbiased else OPTIONS.bits
    sets, offsets, masses = _round(randomizer, problem.epsilon, origin, bits)
    if problem.unbiased and is_grid:
        sets, offsets, masses = _correct_masses(problem, sets, offsets, masses, ratio)
    elif problem.unbiased:
        # Further digits of outputs that may move only lengthen the integers.
        reach = float(np.abs(offsets).max()) or 1.0
        finest = max(0, OPTIONS.finer - math.frexp(reach)[1])
    ends = problem.outputs.low, problem.outputs.high
    columns = scale_columns(problem.labels, sets, masses, offsets, ratio, origin=origin, ends=ends, finest=finest)
    if not problem.unbiased or not any(columns.deviations):
        return columns.table(problem.labels)
    table = _correct_means(problem, columns)
    if table is None:
        raise NotCertified(
            f"no mechanism near this randomizer is unbiased: its largest bias is {columns.largest_bias:.3g}, and the "
            f"allowed outputs, from {problem.outputs.low:g} to {problem.outputs.high:g}, are too narrow to remove it: "
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
            sets.node_equations(problem.epsilon),
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
    values, labels = columns.values, problem.labels
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
    for table in _complete(problem, columns, rough):
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
    moved = move_along_tree(columns, movable) if movable.any() else None
    if moved is None or isinstance(problem.outputs, Line):
        return moved
    low, high = problem.outputs.low, problem.outputs.high
    return moved if all(low <= v <= high for v, free in zip(moved.outputs, movable, strict=True) if free) else None


def _complete(problem: Problem, columns: ExactColumns, rough: Table) -> Iterator[Table]:
    """Generate mixtures of a table with two outputs that take out its biases, as far as the outputs allow it.

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


@dataclass(frozen=True)
class Completion:
    r"""Two outputs with which a table of nearly right means is mixed so that all means are right.

    Keep a share :math:`\omega < 1` of a table within the ratio :math:`R` whose means are :math:`\mu_y \approx y`, and
    let the rest answer one of two allowed outputs :math:`a < b` with

    .. math:: u_y + w_y = 1 - \omega, \qquad a u_y + b w_y = y - \omega \mu_y .

    All of it is private while :math:`u` and :math:`w` are positive and within the ratio, as they are for some
    :math:`\omega` unless the outputs are too narrow (``docs/mathematics.md``, section 9).

    `kept` is the share of the table, `low` and `high` are the outputs, `at_low` and `at_high` their probabilities for
    each label, as integers over one `unit`.
    """

    kept: Fraction
    low: float
    high: float
    at_low: list[int]
    at_high: list[int]
    unit: int

    @classmethod
    def of(
        cls,
        ends: tuple[float, float],
        labels: list[Fraction],
        means: list[Fraction],
        ratio: Fraction,
        *,
        origin: Fraction = Fraction(0),
        monotone: bool = False,
    ) -> Completion | None:
        """Return the first completion that is private, None if the allowed outputs are too narrow.

        Infinite `ends` are chosen here. `labels` and `means`, the right means and the given ones, are measured from the
        origin, which `ends` are not. If it is `monotone`, probabilities do not fall (or do not rise) with the label, so
        that they are sums of interval columns.

        The share of the two outputs is tried in powers of two, from about the largest bias relative to the range of the
        labels, each time eight times as much, up to all.
        """
        # In integers of one unit: sums of fractions would look for common divisors at each step.
        scale = math.lcm(*(x.denominator for x in [*labels, *means]))
        right = [int(y * scale) for y in labels]
        missing = [y - int(mean * scale) for y, mean in zip(right, means, strict=True)]
        off = Fraction(max(map(abs, missing)), max(right) - min(right) or abs(right[0]) or scale)
        # The share of the two outputs is 2**-doublings.
        doublings = max(0, off.denominator.bit_length() - off.numerator.bit_length() - 1) if off else 1022
        while True:
            more = (1 << doublings) - 1
            wanted = [y + more * lack for y, lack in zip(right, missing, strict=True)]
            found = cls._with_share(doublings, ends, wanted, scale, ratio, origin)
            if found is not None and found.is_private(ratio) and not (monotone and not found.is_monotone()):
                return found
            if not doublings:
                return None
            doublings = max(0, doublings - 3)

    @classmethod
    def _with_share(
        cls,
        doublings: int,
        ends: tuple[float, float],
        wanted: list[int],
        scale: int,
        ratio: Fraction,
        origin: Fraction,
    ) -> Completion | None:
        """Return the completion whose two outputs have a given share, and means ``wanted / scale`` over that share."""
        low, high = ends
        if not math.isfinite(low):
            lowest, highest = Fraction(min(wanted), scale), Fraction(max(wanted), scale)
            middle, half = (lowest + highest) / 2, (highest - lowest) / 2
            # At (ratio + 1) / (ratio - 1) times the half range of the means the chances would be at the ratio itself.
            # Half as far again leaves them inside it.
            half = Fraction(3, 2) * half * (ratio + 1) / (ratio - 1) or abs(middle) or Fraction(1)
            low, high = float_below(origin + middle - half), float_above(origin + middle + half)
        if not (math.isfinite(low) and low < high < math.inf):
            return None
        a, b = Fraction(low) - origin, Fraction(high) - origin
        finer = math.lcm(scale, a.denominator, b.denominator)
        bottom, top = int(a * finer), int(b * finer)
        means = [finer // scale * mean for mean in wanted]
        # The mean m of the two outputs has probability (m - a) / (b - a) at b.
        at_low, at_high = [top - mean for mean in means], [mean - bottom for mean in means]
        share = Fraction(1, 1 << doublings)
        return cls(1 - share, low, high, at_low, at_high, (top - bottom) << doublings)

    def is_private(self, ratio: Fraction) -> bool:
        """Return whether all probabilities are positive, and those of an output within the ratio."""
        return all(min(chances) > 0 and max(chances) <= ratio * min(chances) for chances in (self.at_low, self.at_high))

    def is_monotone(self) -> bool:
        """Return whether a higher label is at least as likely to get the high output, and no likelier the low one."""
        rising = all(before <= after for before, after in pairwise(self.at_high))
        return rising and all(before >= after for before, after in pairwise(self.at_low))

    def mix(self, table: Table) -> Table:
        """Mix in the table whose means were given."""
        common = math.gcd(*self.at_low, *self.at_high)
        rows = [[u // common, w // common] for u, w in zip(self.at_low, self.at_high, strict=True)]
        ends = Table.of_rows(table.labels, [self.low, self.high], rows)
        # Weights of both become probabilities times the same number.
        share, other = self.kept / table.total, Fraction(common, self.unit)
        return table.combine(ends, share / other)


def mixture(first: Mechanism, second: Mechanism, weight: float) -> Mechanism:
    r"""Draw from `second` with a probability near `weight`, else from `first`, by a public coin.

    Masses are :math:`A C_j` and :math:`B C'_j` with :math:`B T' / (A T + B T') \approx w` for small integers ``A, B``
    and the totals :math:`T, T'` of the two. Privacy and unbiasedness are linear: no column gains a ratio above the
    larger of the two, and rows of equal totals add up to rows of equal totals. The problem and the dual are those of
    `first`, which must allow the outputs of `second`.

    Raises
    ------
    InvalidInput
        Different labels, or a weight that is not between 0 and 1.
    """
    if not np.array_equal(first.labels, second.labels):
        raise InvalidInput("the two mechanisms have different labels: make them for the same problem")
    if not 0 < weight < 1:
        raise InvalidInput(f"weight is {weight:g}, expected a probability between 0 and 1")
    # From A T / (B T') = (1 - w) / w.
    odds = Fraction(second.total, first.total) * (1 / Fraction(weight) - 1)
    # Masses gain as many digits as the two integers have, of which the smaller is at most 1,024.
    ratio = odds.limit_denominator(1 << 10) if odds >= 1 else 1 / (1 / odds).limit_denominator(1 << 10)
    table = first.table.combine(second.table, ratio)
    return Mechanism(first.problem, table, first.dual)
