r"""Corrections of columns: the least changes of masses in floats, equal coverage in integers, and completions.

Rows and means of interval columns are equations of a flow, a few numbers for each node between labels. Least changes
of masses that meet them are found in floats, and :mod:`optrand.mechanism._tabulation` makes them exact. Two outputs in
a small share of the draws take out what no column can (:class:`Completion`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from optrand.base._arithmetic import float_above, float_below
from optrand.base._validation import Floats
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Line, Problem
from optrand.model._randomizer import Indices, LabelSets
from optrand.model._table import Table

RIDGE = 1e-14
"""Ridge on the diagonal of equations scaled to 1, so that dependent ones have a solution, too."""


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

    The cost is that of a sparse factorisation.
    """
    # By Lagrange multipliers z: x = reach * (A' z), with the normal equations (A reach A') z = residual. With a
    # diagonal of 1 the ridge is the same share of every equation, however light its arcs are.
    roots, rows = np.sqrt(reach), np.repeat(np.arange(system.shape[0]), np.diff(system.indptr))
    entries = system.data * roots[system.indices]
    size = np.bincount(rows, entries**2, system.shape[0])
    scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    even = sparse.csr_array((entries * scale[rows], system.indices, system.indptr), system.shape)
    ridged = sparse.csc_array(even @ even.T + sparse.diags_array(np.where(size > 0, RIDGE, 1.0)))
    # The matrix is symmetric and positive definite: pivots may stay on the diagonal, in an order of little fill.
    factors = splu(ridged, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    change: Floats = roots * (even.T @ factors.solve(scale * residual))
    return change


def change_masses(nodes: sparse.csr_array, favoured: Floats, outputs: Floats, means: Floats) -> Floats:
    """Find the least relative change of masses that removes residuals of means at the nodes and keeps the rows.

    `favoured` holds the probability of each column at labels that it favours, and `outputs` are in the unit of `means`.
    """
    # Changes are shares of the masses: a light column then changes no more than it has.
    shares = nodes.data * favoured[nodes.indices]
    both = np.concatenate((shares, shares * outputs[nodes.indices]))
    begins = np.append(nodes.indptr, nodes.indptr[-1] + nodes.indptr[1:])
    joint = sparse.csr_array((both, np.tile(nodes.indices, 2), begins), (2 * means.size, favoured.size))
    return least_change(joint, 1 / favoured, np.append(np.zeros(means.size), means))


def set_equations(sets: LabelSets, epsilon: float) -> sparse.csr_array:
    """Return equations of :func:`node_equations`, summed over the runs of each set."""
    runs = node_equations(sets.k, sets.start, sets.stop - 1, epsilon)
    if sets.are_intervals:
        return runs
    # Each run adds the weight that its column has for all labels, which counts once.
    again = 1 - np.bincount(sets.owner)
    places = np.zeros(sets.n, dtype=int), np.arange(sets.n)
    first_row = sparse.csr_array((again / math.expm1(epsilon), places), shape=(sets.k, sets.n))
    to_set = sparse.csr_array((np.ones(sets.owner.size), (np.arange(sets.owner.size), sets.owner)))
    return sparse.csr_array(runs @ to_set + first_row)


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
    added, number = np.array(list(new), dtype=np.int64), len(new)
    owner = np.concatenate((sets.owner, sets.n + np.arange(number)))
    start, stop = np.concatenate((sets.start, added)), np.concatenate((sets.stop, added + 1))
    outputs = np.append(offsets, offsets[list(new.values())]) if new else offsets
    return replace(sets, owner=owner, start=start, stop=stop), outputs, masses + [most - coverage[y] for y in new]


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


def complete(problem: Problem, rough: Table, ratio: Fraction, *, are_intervals: bool) -> Iterator[Table]:
    """Generate mixtures of a table with two outputs that take out its biases, as far as the outputs allow it.

    The two are the ends of the allowed outputs. On the line they are the table's own, or any if its sets are not
    intervals. If they are, the first mixture is a sum of intervals as well: the probabilities of the two outputs rise
    or fall with the label, which may take more of them.
    """
    zero = Fraction(float(problem.labels[problem.k // 2]))
    labels = [Fraction(y) - zero for y in problem.labels.tolist()]
    means = [y + bias for y, bias in zip(labels, rough.biases, strict=True)]
    ends = problem.outputs.low, problem.outputs.high
    if isinstance(problem.outputs, Line) and are_intervals:
        ends = float(rough.outputs[0]), float(rough.outputs[-1])
    for monotone in (True, False) if are_intervals else (False,):
        found = Completion.of(ends, labels, means, ratio, origin=zero, monotone=monotone)
        if found is not None:
            yield found.mix(rough)


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
