r"""Few outputs, placed for the problem, and certified against the optimum over all outputs.

Unbiased rounding of the optimum's outputs to a grid adds exactly half its variance to the loss, which is an upper bound
for that grid (``docs/mathematics.md``, section 10). :class:`.Placements` minimises the bound over grids.
From there outputs move down the slope of the optimal value. Let :math:`M` be the optimum on a grid and :math:`\beta`
its multipliers of the means. The output :math:`v_i` enters the Lagrangian as :math:`\sum_y M_{y i} \big(p_y (v_i -
y)^2 / 2 - \beta_y v_i\big)`, so the slope in :math:`v_i` is

.. math:: \sum_y M_{y i} \big( p_y (v_i - y) - \beta_y \big).

The value is not convex in the outputs: the descent ends in a local optimum.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optrand import losses
from optrand.base._arithmetic import decimal_value, privacy_ratio
from optrand.base._numerals import format_above
from optrand.base._validation import Floats, check_integer, check_real, expect, suggest_parameters
from optrand.certificates._certificate import PROVEN
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Dual, Grid, Problem
from optrand.model._randomizer import Randomizer
from optrand.programs import algorithm1
from optrand.solvers import design
from optrand.solvers._dispatch import exact_mechanism
from optrand.studies._continuous import Placements


@dataclass(frozen=True, eq=False)
class AdaptiveOutputs:
    """Small grid of outputs with its certified loss, and the lower bound over all outputs.

    Attributes
    ----------
    mechanism : Mechanism
        On the grid. Its problem has the grid as its outputs.
    lower : float
        Lower bound of the loss of every randomizer with outputs in the original problem's set.
    """

    mechanism: Mechanism
    lower: float

    @property
    def upper(self) -> float:
        """Certified loss of the mechanism."""
        return self.mechanism.certificate.upper

    @property
    def grid(self) -> Grid:
        """Outputs of the mechanism, as a grid."""
        return Grid(self.mechanism.outputs)

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.mechanism.n

    @property
    def excess(self) -> float:
        """Excess over the optimum at most: ``upper / lower - 1``, or ``upper - lower`` unless `lower` is positive."""
        return _excess(self.lower, self.upper)


@suggest_parameters
def adaptive_outputs(
    problem: Problem,
    *,
    tolerance: float | None = None,
    n: int | None = None,
    step: float | None = None,
    origin: float = 0.0,
) -> AdaptiveOutputs:
    """Place outputs for a problem: the least number found for a tolerance, or the best found for a given number.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval, any loss and bias penalty that has an optimum there.
    tolerance : float, optional
        Relative, above 0: the certified loss is at most ``1 + tolerance`` times the optimum over all outputs.
    n : int, optional
        Largest number of outputs. Pass either `tolerance` or `n`.
    step, origin : float, optional
        Outputs are multiples of `step` above `origin`: 1 for integers, 0.01 for cents. Anywhere by default.

    Raises
    ------
    InvalidInput
        A problem of another kind, or not exactly one of `tolerance` and `n`.
    Infeasible
        No `n` outputs were found on which the problem can be solved.
    NotCertified
        The lattice is too coarse for the tolerance at the values next to good outputs, or the optimum
        is not proven to within the tolerance.

    Notes
    -----
    *Guaranteed:* the tolerance, and that no single output of the grid can be left out. *Not guaranteed:* that no better
    placement exists, since the problem is not convex. The proven `lower` bound over all outputs limits its gain.

    *Method.* Solve without a grid, merge its outputs into ``n`` by the bound of the module, move them down the slope of
    the optimal value, and solve again. Bisection finds `n` for a tolerance. On a lattice, take the two values next to
    each output. Then drop single outputs, the cheapest first, while the tolerance holds, which is all that is done for
    other losses than squared. Cost: tens of solves, 0.1 to 3 s for 53 labels.

    *Sizes.* For weeks worked (53 labels, epsilon 1, 104 outputs on the line) tolerances of 1e-2, 1e-3 and 1e-4 need 2,
    4 and 10 placed outputs, or 4, 6 and 12 integers. Even grids over the optimum's outputs need 10, 24 and 72, those of
    [B23], Algorithm 2, 59, 279 and 925.

    Examples
    --------
    >>> import optrand
    >>> labels = np.arange(7)
    >>> problem = optrand.unbiased_regression(labels, np.full(7, 1 / 7), 1.0)
    >>> few = adaptive_outputs(problem, tolerance=1e-2)
    >>> few.n, few.excess <= 1e-2, few.mechanism.certificate.gap < 1e-9
    (5, True, True)
    >>> adaptive_outputs(problem, n=3).n, adaptive_outputs(problem, n=8).excess < few.excess
    (3, True)
    """
    expect(problem, Problem, "problem", "one of optrand.regression or unbiased_regression")
    if isinstance(problem.outputs, Grid):
        raise InvalidInput("the problem has its outputs on a grid already: state it on the line or an interval")
    if (tolerance is None) == (n is None):
        raise InvalidInput("adaptive_outputs takes either tolerance= or n=, such as tolerance=0.01 or n=12")
    lattice = None if step is None else (check_real(step, "step"), check_real(origin, "origin"))
    if lattice is not None and lattice[0] <= 0:
        raise InvalidInput(f"step is {lattice[0]:g}, expected a distance above 0")
    if n is not None:
        return _Search.begin(problem, math.inf, lattice).place(check_integer(n, "n", 1))
    share = check_real(tolerance, "tolerance")
    if share <= 0:
        raise InvalidInput(f"tolerance is {share:g}, expected a relative loss above 0")
    return _Search.begin(problem, share, lattice).find_fewest()


def _excess(lower: float, upper: float) -> float:
    return (upper - lower) / (lower if lower > 0 else 1.0)


@dataclass(frozen=True, eq=False)
class _Search:
    """Search for outputs that meet a tolerance against a proven lower bound.

    The `outputs` are those of the optimum, their `weights` the probabilities under the prior.
    """

    problem: Problem
    outputs: Floats
    weights: Floats
    lower: float
    tolerance: float
    lattice: tuple[float, float] | None

    @classmethod
    def begin(cls, problem: Problem, tolerance: float, lattice: tuple[float, float] | None) -> _Search:
        """Solve without a grid, and prove it."""
        candidate = design(problem)
        mechanism = exact_mechanism(candidate)
        proof = mechanism.certificate
        if not _excess(proof.lower, proof.upper) <= tolerance:
            raise NotCertified(
                f"the optimum itself is proven only to {format_above(proof.gap, 3)}, which is above the tolerance of "
                f"{tolerance:g}",
                certificate=proof,
                mechanism=mechanism,
            )
        # The mechanism may split an output of the candidate between two neighbouring floats, which count as one here.
        found = candidate.randomizer
        weights = np.concatenate([problem.prior @ columns for _, columns in found.blocks()])
        return cls(problem, found.outputs, weights, proof.lower, tolerance, lattice)

    @cached_property
    def placements(self) -> Placements:
        """Best subsets of the optimum's outputs, at least two."""
        return Placements(self.outputs, self.weights)

    @property
    def is_squared(self) -> bool:
        """Whether the loss is squared, so that rounding has a bound and outputs have a slope."""
        return self.problem.loss == losses.squared and self.outputs.size > 1

    def find_fewest(self) -> AdaptiveOutputs:
        """Bisect on the number of outputs, then drop outputs while the tolerance holds."""
        if not self.is_squared:
            return self._prune(self._require(self._solve(self._snap(self.outputs))))
        # Half the variance of rounding bounds the excess, so outputs that meet the bound are enough.
        high, most = self.placements.fewest(2 * self.tolerance * self.lower), self.outputs.size
        found = self._attempt(high, self.tolerance)
        while not self._meets(found) and high < most:
            high = min(2 * high, most)
            found = self._attempt(high, self.tolerance)
        best = self._require(found)
        # The excess need not fall with each further output, so bisection finds a small number, not always the least.
        # One output is never unbiased for two labels or more.
        low = 1 if self.problem.unbiased else 0
        while high - low > 1:
            middle = (low + high) // 2
            found = self._attempt(middle, self.tolerance)
            if found is not None and self._meets(found):
                high, best = middle, found
            else:
                low = middle
        # The descents so far stopped at the tolerance. One without a target may find better places, from which more
        # outputs can be left out.
        if self.lattice is None:
            best = self._judge(descend(self.problem, best.grid.values)) or best
        return self._prune(best)

    def place(self, n: int) -> AdaptiveOutputs:
        """Return the best placement found of at most `n` outputs."""
        found = self._attempt(n, PROVEN) if self.is_squared else self._solve(self._snap(self.outputs))
        while found is not None and found.n > n:
            found = self._leave_one_out(found)
        if found is None:
            raise Infeasible(
                f"no placement of at most {n} outputs was found on which the problem can be solved: allow more"
            )
        return found

    def _attempt(self, n: int, tolerance: float) -> AdaptiveOutputs | None:
        """Move the best `n` of the optimum's outputs until the tolerance holds, and solve there, or on the lattice."""
        start = self.outputs
        if n == 1:
            start = np.array([self.weights @ self.outputs])
        elif n < self.outputs.size:
            start = self.outputs[self.placements.places(n)]
        if self.lattice is None:
            good = self.lower + tolerance * (self.lower if self.lower > 0 else 1.0)
            return self._judge(descend(self.problem, start, until=good))
        # A heuristic: outputs are placed as if there were no lattice, and replaced by the lattice values around them.
        found = descend(self.problem, start)
        return self._solve(self._snap(start if found is None else found.randomizer.outputs))

    def _snap(self, outputs: Floats) -> Floats:
        """Return outputs, or the values of the lattice next to them that are allowed."""
        if self.lattice is None:
            return outputs
        points, allowed = lattice_around(outputs, *self.lattice), self.problem.outputs
        return points[(points >= allowed.low) & (points <= allowed.high)]

    def _solve(self, positions: Floats) -> AdaptiveOutputs | None:
        return self._judge(optimum_on(self.problem, positions) if positions.size else None)

    def _judge(self, solution: Solution | None) -> AdaptiveOutputs | None:
        return None if solution is None else AdaptiveOutputs(exact_mechanism(solution), self.lower)

    def _meets(self, found: AdaptiveOutputs | None) -> bool:
        return found is not None and found.excess <= self.tolerance

    def _require(self, found: AdaptiveOutputs | None) -> AdaptiveOutputs:
        if found is None:
            raise Infeasible("the lattice has no values inside the interval on which the problem can be solved")
        if not self._meets(found):
            raise NotCertified(
                f"the lattice values next to good outputs are {found.excess:.3g} of the optimum above it, beyond the "
                f"tolerance of {self.tolerance:g}: make the step smaller or the tolerance larger",
                certificate=found.mechanism.certificate,
                mechanism=found.mechanism,
            )
        return found

    def _prune(self, best: AdaptiveOutputs) -> AdaptiveOutputs:
        while (fewer := self._leave_one_out(best)) is not None:
            best = fewer
        return best

    def _leave_one_out(self, found: AdaptiveOutputs) -> AdaptiveOutputs | None:
        """Leave out one output so that the tolerance holds. Try those with the least estimated cost first."""
        outputs, gaps = found.grid.values, np.diff(found.grid.values)
        weights = found.mechanism.prior @ found.mechanism.matrix
        costs = np.full(outputs.size, math.inf)
        # A heuristic order. The outermost outputs have no such estimate, and are tried last.
        # Half of this is the variance that rounding to the neighbours adds.
        costs[1:-1] = weights[1:-1] * gaps[:-1] * gaps[1:]
        for i in np.argsort(costs, kind="stable").tolist():
            fewer = self._solve(np.delete(outputs, i))
            if fewer is not None and self._meets(fewer):
                return fewer
        return None


def lattice_around(positions: Floats, step: float, origin: float = 0.0) -> Floats:
    """Return the values ``origin + i * step`` next to each position: at or below it, and above it.

    Floats stand for their shortest decimals: the float 0.35 is slightly below 35 hundredths.
    """
    stride, zero = decimal_value(step), decimal_value(origin)
    below = {math.floor((decimal_value(position) - zero) / stride) for position in positions.tolist()}
    return np.unique([float(zero + Fraction(i) * stride) for i in below | {i + 1 for i in below}])


def optimum_on(problem: Problem, positions: ArrayLike) -> Solution | None:
    """Solve on these outputs, and again without those that the optimum does not use. Return None if infeasible."""
    grid = Grid(np.unique(positions))
    # For tables of up to 1,000 entries one linear program is quicker than an interior point. At an epsilon below 1e-4
    # its tolerance admits biased answers, whose outputs are infeasible.
    small = problem.epsilon >= 1e-4 and problem.k * grid.values.size <= 1_000
    solution = None
    try:
        posed = replace(problem, outputs=grid)
        if small and problem.unbiased and problem.loss == losses.squared:
            solution = _solve_program(posed, grid.values)
        solution = solution or design(posed)
    except (Infeasible, NotCertified):
        return None
    # The grid of the result holds only outputs in use, and each solve may leave out others.
    used = solution.randomizer.outputs
    return solution if used.size == grid.values.size else optimum_on(problem, used)


def _solve_program(problem: Problem, outputs: Floats) -> Solution | None:
    """Solve Algorithm 1 of [B23] for a small table, without bias. Return None if the backend has no answer."""
    # Tolerances of the backend are absolute. Division by a power of two keeps neighbouring numbers apart.
    width = 2.0 ** math.frexp(float(np.abs(outputs).max()))[1]
    answer = algorithm1(problem.labels / width, problem.prior, problem.epsilon, outputs / width, form="floor").solve()
    if not answer.point.size:
        return None
    top = answer.table.max(axis=0)
    used = top > 1e-10
    # Entries violate privacy by the tolerance of the backend, or infinitely if one that should be tiny is 0.
    table = np.clip(answer.table, top * math.exp(-problem.epsilon), top)[:, used]
    found = Randomizer(problem.labels, outputs[used], table / table.sum(axis=1, keepdims=True), problem.epsilon)
    dual = Dual(width**2 * answer.duals["sum"], width * answer.duals["mean"])
    return Solution(problem, found, dual, Stats("algorithm1", iterations=answer.iterations, status=answer.message))


def slopes(solution: Solution, positions: Floats) -> Floats:
    """Compute the slope of the optimal value in each output, 0 for a position that the solution does not use."""
    problem, found = solution.problem, solution.randomizer
    if solution.dual is None:
        return np.zeros(positions.size)
    # The envelope theorem: to first order the value changes as if the optimal masses stayed where they are.
    pull = problem.prior[:, np.newaxis] * (found.outputs - problem.labels[:, np.newaxis])
    slope = np.einsum("ki,ki->i", found.matrix, pull - solution.dual.beta[:, np.newaxis])
    at = np.minimum(np.searchsorted(found.outputs, positions), found.n - 1)
    return np.where(found.outputs[at] == positions, slope[at], 0.0)


def descend(problem: Problem, start: Floats, *, until: float = -math.inf) -> Solution | None:
    """Move outputs until the optimal value is at most `until`, or no small move improves it.

    The loss is squared, and outputs are on the line or an interval. For an unbiased problem the outermost outputs are
    first moved outward until it is feasible.
    """
    from scipy.optimize import Bounds, minimize

    unit = float(np.ptp(problem.labels)) or 1.0
    low, high = _limits(problem, start.size)
    start = np.clip(start, low, high)
    first = optimum_on(problem, start)
    if first is None or first.value <= until:
        return first
    best, scale = first, abs(first.value) or 1.0

    def objective(x: Floats) -> tuple[float, Floats]:
        nonlocal best
        positions = np.clip(unit * x, low, high)
        found = optimum_on(problem, positions)
        if found is None:
            # Without a solution a large objective, in units of the first loss, makes the line search shorten its step.
            return 1e3, np.zeros(x.size)
        if found.value < best.value:
            best = found
            if best.value <= until:
                raise StopIteration
        return found.value / scale, slopes(found, positions) * unit / scale

    # In units of the labels' range and of the first loss, so that the tolerance does not depend on the problem's units.
    # The bounds keep the outermost outputs of an unbiased problem where it is feasible.
    with suppress(StopIteration):
        minimize(
            objective,
            start / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low / unit, high / unit),
            # Smaller steps do not change the third digit of the excess.
            options={"maxiter": 40, "ftol": 1e-7},
        )
    return best


def _limits(problem: Problem, n: int) -> tuple[Floats, Floats]:
    """Return the bounds of each output: the outermost of an unbiased problem no further inward than feasible."""
    low, high = np.full(n, problem.outputs.low), np.full(n, problem.outputs.high)
    if problem.unbiased and n > 1:
        width = float(np.ptp(problem.labels))
        # A billionth of the range beyond the last feasible place.
        reach = width / float(privacy_ratio(problem.epsilon) - 1) + 1e-9 * width
        high[0] = max(problem.labels[0] - reach, problem.outputs.low)
        low[-1] = min(problem.labels[-1] + reach, problem.outputs.high)
    return low, high
