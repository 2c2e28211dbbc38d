"""The interface of solvers: a call on a problem, guarded, and reductions that simplify the problem first.

:class:`Translation` moves labels far from zero. Floats near ``1e15`` are an eighth apart, so that neither outputs nor
multipliers of labels there have digits to spare. But the differences of such labels are floats
(:attr:`optrand.model._problem.Problem.origin`). Squared and absolute loss, and tables, do not change when labels and
outputs move together. So randomizers and multipliers are found for the differences, and remember from where they are
measured.

:class:`Reduction` drops idle labels, those of zero or negligible prior. A label of prior zero adds nothing to the loss,
so the optimum without it is a lower bound of the optimum with it. And a row that is a mixture of its neighbours' rows
is as private as they are. If bias is allowed, the row of either neighbour will do. An unbiased problem keeps its two
end labels, and each dropped label mixes the rows of the kept labels around it, which is unbiased randomized rounding.
The multipliers of dropped labels are zero. The thinnest tails of a prior are dropped as well under squared loss, as
their multipliers and those of the others are too far apart for floats. Their cost counts in the certificate's gap.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from optrand import losses
from optrand.base._arithmetic import add_exactly
from optrand.base._validation import Floats
from optrand.certificates._bound import lowest_price
from optrand.errors import Infeasible, InvalidInput, OptrandError, SolverFailed
from optrand.losses import Tabulated
from optrand.mechanism._tabulation import Solution
from optrand.model._problem import Dual, Grid, Interval, OutputSet, Problem
from optrand.model._randomizer import Arcs, Indices, Randomizer
from optrand.solvers._feasibility import attainable_loss, reach


class Solver(Protocol):
    """An algorithm and its options: a frozen record, called on a problem."""

    def accepts(self, problem: Problem) -> bool:
        """Return whether the problem is of the kind that this solver answers."""
        ...

    def __call__(self, problem: Problem) -> Solution:
        """Answer it: a claim, to be certified."""
        ...


@contextmanager
def solver_failures(solver: object) -> Iterator[None]:
    """Replace errors of arithmetic and of shape while a solver works on a problem that it accepts.

    Numbers that leave the range of floats become infinite or NaN without a warning. Randomizers and multipliers refuse
    these, which is no fault of the problem.

    Raises
    ------
    SolverFailed
        In the place of errors of numpy, scipy and Python, and of `InvalidInput`. The error itself is the cause.

    Examples
    --------
    >>> import numpy as np
    >>> with solver_failures("ReducedDual()"):
    ...     np.linalg.solve(np.zeros((2, 2)), np.ones(2))
    Traceback (most recent call last):
    optrand.errors.SolverFailed: ReducedDual() has no answer: numbers left the range or the precision of floats
    """
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    # That there is no feasible randomizer is a fact about the problem, not a failure in floats.
    except Infeasible:
        raise
    except (InvalidInput, ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        # Some of our own errors are RuntimeErrors or ValueErrors as well. Except for InvalidInput they say more than
        # the message below.
        if isinstance(error, OptrandError) and not isinstance(error, InvalidInput):
            raise
        name = type(solver).__name__ + "()" if not isinstance(solver, str) else solver
        raise SolverFailed(f"{name} has no answer: numbers left the range or the precision of floats") from error


class _SingleThread:
    """Limit BLAS to one thread while any solve runs, and restore its threads after the last one.

    The factorizations are of many small blocks, and take up to twenty times as long if threads wait for each other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._limiter = _blas().limit(limits=1, user_api="blas")
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._limiter.restore_original_limits()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_SINGLE_THREAD = _SingleThread()


class GuardedSolver(ABC):
    """A solver that refuses problems that it does not accept, and states its time."""

    refusal: ClassVar[str]
    """Problems that the solver takes, in the words of an error."""

    @abstractmethod
    def accepts(self, problem: Problem) -> bool:
        """Return whether the problem is of the kind that this solver answers."""

    def _check(self, problem: Problem) -> None:
        """Refuse problems that are not to be solved."""
        if not self.accepts(problem):
            raise InvalidInput(self.refusal)

    @abstractmethod
    def _solution(self, problem: Problem) -> Solution:
        """Answer a problem that it accepts. Statistics without a name are this solver's own."""

    def __call__(self, problem: Problem) -> Solution:
        """Solve `problem`. The answer is a claim, to be certified.

        Raises
        ------
        InvalidInput
            A problem that it does not accept.
        SolverFailed
            If arithmetic in floats fails.
        """
        self._check(problem)
        start = time.perf_counter()
        with _SINGLE_THREAD, solver_failures(self):
            solution = self._solution(problem)
        # The answer of a solver that this one called keeps the name of that solver.
        name = solution.stats.solver or repr(self)
        return solution.with_stats(solver=name, seconds=time.perf_counter() - start)


@dataclass(frozen=True, eq=False)
class Translation:
    """A problem with its labels near zero, and the way back.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([1e15, 1e15 + 1, 1e15 + 3], [0.2, 0.5, 0.3], 1.0)
    >>> Translation(problem).apply().labels.tolist()
    [-1.0, 0.0, 2.0]
    """

    problem: Problem

    @cached_property
    def origin(self) -> float:
        """Number from which labels and outputs are measured: 0 if moving them is not needed, or would round them."""
        problem = self.problem
        moves = problem.loss in (losses.squared, losses.absolute) or isinstance(problem.loss, Tabulated)
        origin = problem.origin
        return origin if moves and _move(problem.outputs, origin) is not None else 0.0

    def apply(self) -> Problem:
        """Return the problem with labels near zero, or the problem itself if the origin is 0."""
        problem, outputs = self.problem, _move(self.problem.outputs, self.origin)
        if not self.origin or outputs is None:
            return problem
        return replace(problem, labels=problem.labels - self.origin, outputs=outputs)

    def invert(self, solution: Solution) -> Solution:
        """Move the answer back to the labels, under its own prior."""
        if not self.origin:
            return solution
        problem = replace(self.problem, prior=solution.problem.prior)
        given, dual = solution.randomizer, solution.dual
        if dual is not None:
            # Measured from zero first: the sum of two origins would be rounded.
            dual = Dual(dual.alpha - dual.beta * dual.origin, dual.beta, self.origin)
        if given.arcs is not None and not isinstance(problem.outputs, Grid):
            # The sum of an output and a far origin is no float: its rounding error is kept as a rest.
            outputs, rests = add_exactly(given.arcs.outputs, self.origin)
            arcs = Arcs(given.k, given.arcs.first, given.arcs.last, outputs, given.arcs.masses, rests)
            randomizer = Randomizer.of_arcs(problem.labels, arcs, given.epsilon)
        else:
            outputs = given.outputs + self.origin
            near = solution.problem.outputs
            # The value of the grid as it was given, which the sum may miss by rounding.
            if isinstance(problem.outputs, Grid) and isinstance(near, Grid):
                outputs = problem.outputs.values[np.searchsorted(near.values, given.outputs)]
            randomizer = Randomizer(problem.labels, outputs, given.matrix, given.epsilon)
        return replace(solution, problem=problem, randomizer=randomizer, dual=dual)


def near_zero(problem: Problem, solver: Callable[[Problem], Solution]) -> Solution:
    """Solve the problem with labels near zero, and move the answer back."""
    translation = Translation(problem)
    return translation.invert(solver(translation.apply()))


def _move(outputs: OutputSet, origin: float) -> OutputSet | None:
    """Measure from an origin. Return None if grid values would coincide or the ends of an interval be rounded."""
    if isinstance(outputs, Grid):
        values = outputs.values - origin
        return Grid(values) if (np.diff(values) > 0).all() else None
    if isinstance(outputs, Interval):
        low, high = outputs.low - origin, outputs.high - origin
        # fsum rounds once, so that it is 0 only if the shifted end is the exact difference.
        exact = math.fsum((low, origin, -outputs.low)) == 0 == math.fsum((high, origin, -outputs.high))
        return Interval(low, high) if exact else None
    return outputs


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem without its idle labels, and the way back.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2, 3], [0, 0.5, 0, 0.5], 1.0)
    >>> Reduction(problem).apply().labels.tolist()
    [0.0, 1.0, 3.0]
    """

    problem: Problem

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """The labels that matter, or in classification, whose outputs are the labels, all of them."""
        kept = (self.problem.prior > 0) & ~self._negligible | (self.problem.loss == losses.zero_one)
        if self.problem.unbiased:
            kept[[0, -1]] = True
        return kept

    @property
    def _negligible(self) -> NDArray[np.bool_]:
        """Labels whose losses are negligible even at the outputs farthest from them."""
        problem = self.problem
        negligible = np.zeros(problem.k, dtype=bool)
        # All dropped labels together may add this share of the loss. Both the loss and the farthest outputs are
        # estimates, so this is a heuristic, whose cost the certificate counts. Of 500 random problems it proves four
        # more.
        share = 1e-12
        if problem.loss != losses.squared or not problem.bias_penalty or problem.prior.min() > share:
            return negligible
        allowed = share * attainable_loss(problem)
        weight = 1.0 if problem.unbiased else 1 + problem.bias_penalty
        order = np.argsort(problem.prior)
        # A product of zero and an overflow is NaN, which is not negligible.
        with np.errstate(over="ignore", invalid="ignore"):
            negligible[order] = np.cumsum(problem.prior[order] * (weight * np.square(reach(problem)))) <= allowed
        return negligible

    def apply(self) -> Problem:
        """Return the problem on the kept labels."""
        problem, kept = self.problem, self.kept
        if kept.all():
            return problem
        loss = Tabulated(problem.loss.entries[kept]) if isinstance(problem.loss, Tabulated) else problem.loss
        return replace(problem, labels=problem.labels[kept], prior=problem.prior[kept], loss=loss)

    def invert(self, solution: Solution) -> Solution:
        """Extend the answer to the reduced problem to all labels."""
        if solution.problem is self.problem:
            return solution
        given = solution.randomizer
        columns = self._mix_rows() @ given.matrix if given.arcs is None else self._extend_arcs(given.arcs)
        randomizer = Randomizer(self.problem.labels, given.outputs, columns, given.epsilon)
        dual = None if solution.dual is None else self._extend_dual(solution.problem, solution.dual)
        return replace(solution, problem=self.problem, randomizer=randomizer, dual=dual)

    def _extend_dual(self, reduced: Problem, dual: Dual) -> Dual:
        """Return the multipliers with zeros for dropped labels, and no negative reduced cost.

        The bound takes a reduced cost ``m < 0`` times ``k / (E + k - 1)``, so it would weigh more among more labels.
        Lowering each of the `k` multipliers by its share has the same cost, and raises that of every column by ``-m``.
        """
        deficit = min(0.0, lowest_price(reduced, dual))
        alpha, beta = np.zeros((2, self.problem.k))
        alpha[self.kept] = dual.alpha + deficit / (np.expm1(reduced.epsilon) + reduced.k)
        beta[self.kept] = dual.beta
        return Dual(alpha, beta, dual.origin)

    def _find_neighbours(self) -> tuple[Indices, Indices, Floats]:
        """Return the kept labels around each label, itself on the left if kept, and the share of the right one."""
        labels, kept = self.problem.labels, self.problem.labels[self.kept]
        left = np.clip(np.searchsorted(kept, labels, side="right") - 1, 0, kept.size - 1)
        right = np.minimum(left + 1, kept.size - 1)
        width = np.where(right > left, kept[right] - kept[left], 1.0)
        share = np.clip((labels - kept[left]) / width, 0.0, 1.0)
        return left, right, share if self.problem.unbiased else np.round(share)

    def _mix_rows(self) -> Floats:
        """Return each label as a mixture of kept ones, shape ``(k, kept)``."""
        left, right, share = self._find_neighbours()
        each = np.eye(int(self.kept.sum()))
        return (1 - share)[:, np.newaxis] * each[left] + share[:, np.newaxis] * each[right]

    def _extend_arcs(self, arcs: Arcs) -> Arcs:
        """Return arcs over all labels: a column with an end between two kept labels is cut at each label in between.

        The pieces that favour a dropped label hold its share of the column. A column with two such ends is cut at the
        shares of both.
        """
        k, places, (_, _, shares) = self.problem.k, np.flatnonzero(self.kept), self._find_neighbours()
        # Beyond the ends a dropped label has the row of the only neighbour.
        shares[: places[0]], shares[places[-1] + 1 :] = 1.0, 0.0
        firsts, lasts, cuts = [], [], []
        for first, last in zip(arcs.first.tolist(), arcs.last.tolist(), strict=True):
            start, end = places[first], places[last]
            begin = places[first - 1] + 1 if first else 0
            finish = places[last + 1] if last + 1 < places.size else k
            # Labels before the start have increasing shares, those after the end hold what the next kept label lacks.
            before, after = shares[begin:start], shares[end + 1 : finish]
            until = np.unique(np.concatenate((before, after, [1.0])))
            until = until[until > 0]
            firsts.append(begin + np.searchsorted(before, until))
            lasts.append(end + np.searchsorted(after, until))
            cuts.append(np.diff(until, prepend=0.0))
        counts = [cut.size for cut in cuts]
        masses, outputs, rests = (np.repeat(x, counts) for x in (arcs.masses, arcs.outputs, arcs.rests))
        masses = masses * np.concatenate(cuts)
        return Arcs(k, np.concatenate(firsts), np.concatenate(lasts), outputs, masses, rests)
