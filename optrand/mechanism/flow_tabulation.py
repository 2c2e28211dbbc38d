r"""Tabulation of interval columns: integer masses that conserve flow exactly, and outputs with exact means.

Conservation of flow gives all rows one total (``docs/mathematics.md``, section 9), so that privacy and normalisation
are integer identities. Rounding leaves a bias, which a change of outputs removes at the least cost, found in floats
from exact residuals until nothing shrinks:

.. math:: \min \tfrac12 \sum_j P_j c_j \, \Delta v_j^2 \quad \text{such that all means are right}, \qquad
          P_j = \sum_y s_j(y) \, p_y.

It keeps optimal outputs optimal. Where outputs alone do not reach, because they lie on a grid or on the ends of an
interval or are fewer than the labels, masses change as well, at the cost :math:`\Delta c_j^2 / 2 c_j`
(:mod:`optrand.model.feasibility`). Exact moments set the last bits right (:mod:`optrand.mechanism.exact_means`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import Floats
from optrand.errors import NotCertified
from optrand.mechanism.exact_means import columns_near, with_exact_means
from optrand.model.arcs import Arcs, Indices, IntegerArcs
from optrand.model.exact_columns import ExactColumns, in_order
from optrand.model.feasibility import flow_change
from optrand.model.kept import content, kept
from optrand.model.outputs import Grid
from optrand.model.problem import Problem

__all__ = ["exact_flow", "rounded_flow", "tabulated_flow"]

BITS = 60
"""Masses are integers that sum to about ``2**BITS`` before means are made exact."""

UNEVEN = 1e-9
"""Largest relative difference of the coverage of two labels that counts as rounding."""

TOLERANCE = 1e-6
"""Tolerance of the sums of rows."""

ROUNDED = 1e-13
"""Share of the labels' range below which biases are left to exact moments."""

ROUNDS = 12
"""Largest number of corrections; two or three suffice."""


def tabulated_flow(problem: Problem, arcs: Arcs) -> tuple[Floats, IntegerArcs, Fraction]:
    """Exact mechanism nearest to some arcs: its outputs, its integer masses and its ratio.

    Parameters
    ----------
    problem : Problem
    arcs : Arcs
        With rows that sum to 1 but for rounding. If the problem is unbiased, outputs are moved until all means are
        right, whatever the biases of the arcs.

    Returns
    -------
    outputs : (n,) array
        Strictly increasing.
    flow : IntegerArcs
        Of at most twice as many arcs, and two more a label where two outputs take out the last bits of bias.
    ratio : Fraction
        At most ``exp(epsilon)``.

    Raises
    ------
    NotCertified
        Labels are not covered equally by more than rounding, or no outputs that the problem allows make the means
        right.

    Notes
    -----
    Outputs between two floats are split between them, so that means are exact. ``O(k + n)`` integers and a few sparse
    factorisations; nothing of size ``k n`` is made.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> coins = Arcs(3, [0, 1, 2], [0, 1, 2], [-1.0, 1.0, 3.0], np.full(3, 1 / (2 + np.e)))
    >>> outputs, flow, ratio = tabulated_flow(problem, coins)
    >>> sorted({round(output, 6) for output in outputs.tolist()}), len(set(flow.coverage)), flow.total(ratio) > 0
    ([-1.74593, 1.0, 3.74593], 1, True)
    """
    found = kept(arcs, "tabulated", content(problem, *arcs.numbers), lambda: exact_flow(problem, arcs).in_floats())
    return *found, privacy_ratio(problem.epsilon)


def exact_flow(problem: Problem, arcs: Arcs) -> ExactColumns:
    """Exact columns nearest to some arcs, of any rational outputs; if the problem is unbiased, so are they."""
    ratio = privacy_ratio(problem.epsilon)
    # Taking off an origin rounds outputs: a value of a grid would become none of them, a small positive one zero.
    stay = isinstance(problem.outputs, Grid) or problem.loss.positive_outputs
    origin = 0.0 if stay else problem.origin
    offsets, flow = rounded_flow(problem.epsilon, arcs, origin)
    found = _columns(problem, offsets, flow, ratio, origin)
    if not problem.unbiased or not found.largest_bias:
        return found
    if found.largest_bias > ROUNDED * np.ptp(problem.labels):
        table = _Table(problem, offsets, flow, ratio, origin).unbiased()
        found = _columns(problem, table.offsets, table.flow, ratio, origin)
    unbiased = with_exact_means(problem, found)
    if unbiased is None:
        raise NotCertified(
            f"no mechanism near this randomizer is unbiased: its largest bias is "
            f"{float(found.largest_bias):.3g}, and the allowed outputs, from {problem.outputs.low:g} to "
            f"{problem.outputs.high:g}, leave no room to take it out; let them reach a little further"
        )
    return unbiased


def _columns(problem: Problem, offsets: Floats, flow: IntegerArcs, ratio: Fraction, origin: float) -> ExactColumns:
    ends = flow.first.tolist(), flow.last.tolist()
    return columns_near(problem, *ends, flow.masses.tolist(), offsets[flow.at], ratio, origin)


def rounded_flow(epsilon: float, arcs: Arcs, origin: float = 0.0) -> tuple[Floats, IntegerArcs]:
    """Integer masses, proportional to those of some arcs but for rounding, that cover every label equally.

    They come after the distinct outputs less the origin, shape (n,).

    Raises
    ------
    NotCertified
        The arcs do not cover labels equally by more than rounding.

    Examples
    --------
    >>> coin = Arcs(2, [0, 1], [0, 1], [-0.6, 1.6], [0.25, 0.25])
    >>> rounded_flow(math.log(3), coin)[1].masses.tolist() == [2**59, 2**59]
    True
    """
    _check(epsilon, arcs)
    kept = np.maximum(arcs.masses, 0.0)
    wanted = np.rint(kept / kept.sum() * 2.0**BITS).astype(np.int64).tolist()
    masses = _conserved(arcs.k, arcs.first, arcs.last + 1, wanted)
    return in_order(arcs.k, arcs.first, arcs.last, arcs.offsets(origin), masses)


def _check(epsilon: float, arcs: Arcs) -> None:
    """Refuse arcs whose masses are no probabilities, or whose rows have different totals, by more than rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        coverage = arcs.coverage
        off = float(np.abs(arcs.masses.sum() + math.expm1(epsilon) * coverage - 1).max())
        uneven = float(np.ptp(coverage) / coverage.max()) if coverage.max() > 0 else math.inf
        negative = float(-arcs.masses.min(initial=0.0) / coverage.max()) if coverage.max() > 0 else math.inf
    if not (max(uneven, negative) <= UNEVEN and off <= TOLERANCE):
        raise NotCertified(
            f"the arcs are not {epsilon:g}-DP: their masses cover the labels with differences of {uneven:.3g} of the "
            f"coverage, negative ones reach {negative:.3g} of it, and rows are off 1 by {off:.3g}; rounding accounts "
            f"for {UNEVEN:g} and {TOLERANCE:g}; optrand.audit(matrix, epsilon) tells where"
        )


def _conserved(k: int, first: Indices, end: Indices, wanted: list[int]) -> list[int]:
    """Masses next to the wanted ones that conserve flow (``docs/mathematics.md``, Proposition 14).

    From left to right the heaviest arc that leaves a node makes up the difference, and where it would turn negative,
    the next one. Arcs that lead nowhere come to nothing.
    """
    leaving: list[list[int]] = [[] for _ in range(k)]
    for j in np.argsort(first, kind="stable")[::-1].tolist():
        leaving[first[j]].append(j)
    ends = end.tolist()
    leads = [False] * k + [True]
    for node in reversed(range(k)):
        leaving[node] = [j for j in leaving[node] if leads[ends[j]]]
        leads[node] = bool(leaving[node])
    masses = [0] * len(wanted)
    arriving = [0] * (k + 1)
    arriving[0] = sum(wanted[j] for j in leaving[0])
    for node in range(k):
        missing = arriving[node] - sum(wanted[j] for j in leaving[node])
        for j in sorted(leaving[node], key=wanted.__getitem__, reverse=True):
            masses[j] = max(0, wanted[j] + missing)
            missing -= masses[j] - wanted[j]
            arriving[ends[j]] += masses[j]
    return masses


@dataclass(frozen=True, eq=False)
class _Table:
    """Flow and its outputs, whose biases are to vanish."""

    problem: Problem
    offsets: Floats
    flow: IntegerArcs
    ratio: Fraction
    origin: float

    def unbiased(self) -> _Table:
        """Table with means right to a rounding of the outputs, by moving outputs if that is enough."""
        table = self.refined(masses=False) if self.movable.all() else self
        rounding = float(np.spacing(np.abs(table.offsets).max()))
        return table if table.bias <= rounding else min(table, table.refined(masses=True), key=_bias)

    def refined(self, *, masses: bool) -> _Table:
        """Table corrected until the largest bias, which is exact, shrinks no more."""
        best = table = self
        for _ in range(ROUNDS):
            before, table = table, table.corrected(masses=masses)
            best = min(best, table, key=_bias)
            # A correction that ran into an end of the interval is followed by one that knows so.
            if not table.bias < before.bias / 2 and table.movable.sum() == before.movable.sum():
                break
        return best

    @cached_property
    def total(self) -> int:
        """Total of each row."""
        return self.flow.total(self.ratio)

    @cached_property
    def biases(self) -> list[Fraction]:
        """``E[M(y)] - y`` of each label, exactly."""
        columns = ExactColumns.of_integers(self.problem.labels, self.offsets, self.flow, self.ratio, origin=self.origin)
        return columns.biases

    @cached_property
    def bias(self) -> float:
        """Largest absolute bias."""
        return float(max(map(abs, self.biases)))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Ends of the allowed outputs, less the origin."""
        return self.problem.outputs.low - self.origin, self.problem.outputs.high - self.origin

    @cached_property
    def movable(self) -> NDArray[np.bool_]:
        """Mask of the outputs strictly inside the allowed interval; on a grid, none."""
        low, high = self.ends
        inside: NDArray[np.bool_] = (self.offsets > low) & (self.offsets < high)
        return inside & (not isinstance(self.problem.outputs, Grid))

    def corrected(self, *, masses: bool) -> _Table:
        """Table with the outputs, or the masses as well, changed at the least cost."""
        flow, labels = self.flow, self.problem.labels - self.origin
        width = float(max(self.offsets[-1] - labels[0], labels[-1] - self.offsets[0])) or 1.0
        shares, moves = flow_change(
            self.problem,
            (flow.first, flow.last),
            np.array([mass * self.ratio.numerator / self.total for mass in flow.masses.tolist()]),
            flow.at,
            rows=np.zeros(flow.k) if masses else None,
            means=self._residual() / width,
            pull=(self.offsets[flow.at] - self.offsets.mean()) / width,
            free=self.movable,
        )
        offsets = np.clip(self.offsets + width * moves, *self.ends)
        if not masses:
            return replace(self, offsets=offsets)
        changes = zip(flow.masses.tolist(), np.clip(shares, -0.5, 1.0).tolist(), strict=True)
        wanted = [mass + round(mass * share) for mass, share in changes]
        conserved = _conserved(flow.k, flow.first, flow.last + 1, wanted)
        offsets, flow = in_order(flow.k, flow.first, flow.last, offsets[flow.at], conserved)
        return replace(self, offsets=offsets, flow=flow)

    def _residual(self) -> Floats:
        """Residuals of the means at the nodes: that of the first mean, then differences of neighbours."""
        residuals = [float(before - after) for before, after in pairwise([Fraction(0), *self.biases])]
        return np.array(residuals) / -math.expm1(-self.problem.epsilon)


def _bias(table: _Table) -> float:
    return table.bias
