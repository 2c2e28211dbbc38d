"""Few outputs that lose little: placed for the problem, and certified against the optimum over all outputs.

Unbiased rounding of the optimum's outputs to a grid adds exactly half its variance to the loss, which is an upper bound
for that grid (``docs/mathematics.md``, section 10). :mod:`optrand.studies.placement` minimises the bound over grids,
and :mod:`optrand.studies.descent` moves the outputs from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optrand.base.numerals import shown_above
from optrand.base.validation import Floats, integer, real
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import design
from optrand.solvers.dispatch import exact_mechanism
from optrand.studies.descent import descend, optimum_on
from optrand.studies.lattice import Lattice
from optrand.studies.placement import Placements

__all__ = ["AdaptiveOutputs", "adaptive_outputs"]


@dataclass(frozen=True, eq=False)
class AdaptiveOutputs:
    """Small grid of outputs with its certified loss, and the lower bound over all outputs.

    Attributes
    ----------
    mechanism : Mechanism
        On the grid; its problem has the grid as its outputs.
    lower : float
        Lower bound of the loss of every randomizer with outputs in the original problem's set.
    upper : float
        Certified loss of `mechanism`.
    """

    mechanism: Mechanism
    lower: float
    upper: float

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
        """Loss beyond the optimum at most: ``upper / lower - 1``, or ``upper - lower`` unless `lower` is positive."""
        return _excess(self.lower, self.upper)


def adaptive_outputs(
    problem: Problem,
    *,
    tolerance: float | None = None,
    n: int | None = None,
    step: float | None = None,
    origin: float = 0.0,
) -> AdaptiveOutputs:
    """Place few outputs for a problem: as few as a tolerance allows, or the best that were found for a given number.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval, any loss and bias penalty that has an optimum there.
    tolerance : float, optional
        Relative, above 0: the certified loss is at most ``1 + tolerance`` times the optimum over all outputs.
    n : int, optional
        Number of outputs at most. Give either `tolerance` or `n`.
    step, origin : float, optional
        Outputs are multiples of `step` above `origin`: 1 for integers, 0.01 for cents. Anywhere by default.

    Raises
    ------
    InvalidInput
        A problem of another kind, or neither or both of `tolerance` and `n`.
    Infeasible
        No `n` outputs were found on which the problem can be solved.
    NotCertified
        The lattice is too coarse for the tolerance, as far as the values next to good outputs go, or the optimum itself
        is not proven to within it.

    Notes
    -----
    *Guaranteed:* the tolerance, and that no single output of the grid can be left out. Not that no other grid of fewer
    outputs exists, nor that no other `n` outputs are better: where outputs should lie is not a convex question. The
    proven `lower` bound over all outputs says how much a better placement could gain at most.

    *Method.* Solve without a grid, merge its outputs into ``n`` by the bound above, move them down the slope of the
    optimal value, solve again; bisection finds the least `n` for a tolerance. Of a lattice take the two values next to
    each output. Then leave out single outputs while the tolerance holds. Some tens of solves: 0.1 to 3 s for 53
    labels. For other losses than squared there is no such bound: single outputs of the optimum are left out, the
    cheapest first.

    *Sizes.* For weeks worked (53 labels, epsilon 1; 104 outputs on the line) tolerances of 1e-2, 1e-3 and 1e-4 take 2,
    4 and 10 placed outputs, or 4, 6 and 12 integers; even grids over the optimum's outputs take 10, 24 and 72, those of
    [B23], Algorithm 2, 59, 279 and 925.

    Examples
    --------
    >>> import optrand
    >>> labels = np.arange(12)
    >>> problem = optrand.unbiased_regression(labels, np.full(12, 1 / 12), 1.0)
    >>> few = adaptive_outputs(problem, tolerance=1e-2)
    >>> few.n, few.excess <= 1e-2, few.mechanism.certificate.gap < 1e-9
    (5, True, True)
    >>> adaptive_outputs(problem, n=3).n, adaptive_outputs(problem, n=8).excess < few.excess
    (3, True)
    """
    _check_problem(problem)
    lattice = None if step is None else Lattice(step, origin)
    if (tolerance is None) == (n is None):
        raise InvalidInput("adaptive_outputs takes either tolerance= or n=, such as tolerance=0.01 or n=12")
    if n is not None:
        return _Search.of(problem, math.inf, lattice).run_with(integer(n, "n", 1))
    share = real(tolerance, "tolerance")
    if share <= 0:
        raise InvalidInput(f"tolerance is {share:g}, expected a relative loss above 0")
    return _Search.of(problem, share, lattice).run()


def _check_problem(problem: Problem) -> None:
    if isinstance(problem.outputs, Grid):
        raise InvalidInput("the problem has its outputs on a grid already: state it on the line or an interval")


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
    lattice: Lattice | None

    @classmethod
    def of(cls, problem: Problem, tolerance: float, lattice: Lattice | None) -> _Search:
        """Solve without a grid, and prove it."""
        candidate = design(problem)
        mechanism = exact_mechanism(candidate)
        proof = mechanism.certificate
        if not _excess(proof.lower, proof.upper) <= tolerance:
            raise NotCertified(
                f"the optimum itself is proven to {shown_above(proof.gap, 3)} only, less than the tolerance of "
                f"{tolerance:g}",
                certificate=proof,
                mechanism=mechanism,
            )
        # The mechanism may split an output of the candidate between two neighbouring floats, which count as one here.
        found = candidate.randomizer
        weights = np.concatenate([problem.prior @ columns for _, columns in found.blocks()])
        return cls(problem, found.outputs, weights, proof.lower, tolerance, lattice)

    def run(self) -> AdaptiveOutputs:
        """Bisect on the number of outputs, then leave out what can be left out."""
        m = self.outputs.size
        if m == 1:
            return self._kept(self._solved(self.outputs))
        if self.problem.loss != losses.squared:
            best = self._kept(self._solved(self._start(self.outputs)))
            while (fewer := self._without_one(best)) is not None:
                best = fewer
            return best
        placements = Placements(self.outputs, self.weights)
        high = placements.fewest(2 * self.tolerance * self.lower)
        found = self._attempt(placements, high)
        while not self._meets(found) and high < m:
            high = min(2 * high, m)
            found = self._attempt(placements, high)
        best = self._kept(found)
        low = 1 if self.problem.unbiased else 0
        while high - low > 1:
            middle = (low + high) // 2
            found = self._attempt(placements, middle)
            if found is not None and self._meets(found):
                high, best = middle, found
            else:
                low = middle
        if self.lattice is None:
            best = self._judged(descend(self.problem, best.grid.values)) or best
        while (fewer := self._without_one(best)) is not None:
            best = fewer
        return best

    def run_with(self, n: int) -> AdaptiveOutputs:
        """Return the best placement of at most `n` outputs that is found."""
        found: AdaptiveOutputs | None
        if self.problem.loss == losses.squared and self.lattice is None:
            few = n < self.outputs.size
            placements = Placements(self.outputs, self.weights) if few and n > 1 else None
            start = self.outputs[placements.places(n)] if placements else self.outputs
            found = self._judged(descend(self.problem, start if n > 1 else np.array([self.weights @ self.outputs])))
        else:
            found = self._solved(self._start(self.outputs))
            while found is not None and found.n > n:
                found = self._without_one(found)
        if found is None:
            raise Infeasible(f"no {n} output(s) were found on which the problem can be solved: ask for more")
        return found

    def _start(self, outputs: Floats) -> Floats:
        """Return outputs, or the values of the lattice around them that are allowed."""
        if self.lattice is None:
            return outputs
        points = self.lattice.around(outputs)
        allowed = self.problem.outputs
        return points[(points >= allowed.low) & (points <= allowed.high)]

    def _meets(self, found: AdaptiveOutputs | None) -> bool:
        return found is not None and found.excess <= self.tolerance

    def _kept(self, found: AdaptiveOutputs | None) -> AdaptiveOutputs:
        if found is None:
            raise Infeasible("the lattice has no values inside the interval on which the problem can be solved")
        if not self._meets(found):
            raise NotCertified(
                f"the lattice values next to good outputs lose {found.excess:.3g} of the optimum, more than the "
                f"tolerance of {self.tolerance:g}: make the step smaller or the tolerance larger",
                certificate=found.mechanism.certificate,
                mechanism=found.mechanism,
            )
        return found

    def _attempt(self, placements: Placements, n: int) -> AdaptiveOutputs | None:
        """Best known solution on `n` outputs, or on the lattice around them."""
        start = self.outputs[placements.places(n)] if n > 1 else np.array([self.weights @ self.outputs])
        if self.lattice is None:
            return self._judged(descend(self.problem, start, until=self.lower * (1 + self.tolerance)))
        found = descend(self.problem, start)
        return self._solved(self._start(start if found is None else found.randomizer.outputs))

    def _solved(self, positions: Floats) -> AdaptiveOutputs | None:
        return self._judged(optimum_on(self.problem, positions) if positions.size else None)

    def _judged(self, solution: Solution | None) -> AdaptiveOutputs | None:
        if solution is None:
            return None
        mechanism = exact_mechanism(solution)
        return AdaptiveOutputs(mechanism, self.lower, mechanism.certificate.upper)

    def _without_one(self, found: AdaptiveOutputs) -> AdaptiveOutputs | None:
        """Adaptive outputs without one, if that meets the tolerance; those that should cost least are tried first."""
        outputs = found.grid.values
        weights = _frequencies(found.mechanism)
        gaps = np.diff(outputs)
        costs = np.full(outputs.size, math.inf)
        costs[1:-1] = weights[1:-1] * gaps[:-1] * gaps[1:]
        for i in np.argsort(costs, kind="stable").tolist():
            fewer = self._solved(np.delete(outputs, i))
            if fewer is not None and self._meets(fewer):
                return fewer
        return None


def _frequencies(mechanism: Mechanism) -> Floats:
    """Probability of each output under the prior."""
    later = np.append(np.cumsum(mechanism.prior[::-1])[::-1], 0.0)
    steps = [[(y, step / mechanism.total) for y, step in column] for column in mechanism.table.columns]
    return np.array([sum(chance * later[y] for y, chance in column) for column in steps])
