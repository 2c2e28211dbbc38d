r"""Best masses of staircase columns for unbiased one-hot vectors: an interior-point method, refined in decimals.

With :math:`e = \exp(-\epsilon)`, means of groups :math:`x_g = d_g / K_g`, :math:`t_g = x_0 - x_g` and the share
:math:`\bar x` of all classes, the program is an A-optimal design with linear constraints,

.. math:: \min_{c \geq 0} \; \mathrm{tr} \Big( \Gamma \big( \sum_j \tfrac{c_j}{P_j} t_j t_j^T \big)^{-1} \Big)
          + \sum_g \frac{K_g - 1}{\sum_j c_j \kappa_{jg} / P_j}
          \quad \text{where} \quad \sum_j c_j (e + (1 - e) \bar x_j) = 1, \;\; \sum_j c_j t_j = 0,

:math:`\kappa_{jg} = x_g (1 - x_g) K_g / (K_g - 1)`, :math:`P_j = e + (1 - e) p(S_j)` and :math:`\Gamma = 1 / K_0 +
\mathrm{diag}(1 / K_g)` (``docs/mathematics.md``, section 14). The Hessian has rank ``m**2`` or less, so a step costs
``O(n m**4)``. The answer is a claim: :mod:`optrand.vectors.bound` proves it.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import Integers
from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.vectors.bound import VectorDual
from optrand.vectors.groups import Counts

__all__ = ["Design", "best_design"]

Numbers = NDArray[Any]
"""Floats, or decimals in an array of objects."""

Newton = Callable[[tuple[Numbers, Numbers], Numbers], Numbers]
"""Step by the inverses of the information and a residual."""

ROUNDS = 100
"""Largest number of interior-point steps."""

CLOSE = 1e-13
"""Complementarity, relative to the objective, at which they end: decimals do the rest."""

USABLE = 1e-5
"""Largest error of a start for decimals."""

GROWTH = 2.0
"""Most that a step may multiply the error by, before it is halved."""

HALVINGS = 12
"""Largest number of times that a step is halved."""

CORRECTIONS = 2
"""Corrections of the solution of a linear system by its residual."""

REFINEMENTS = 100
"""Largest number of steps in decimals."""

EXCHANGES = 24
"""Largest number of types that join in decimals."""

DIGITS = 60
"""Significant decimal digits of the refinement, and one more for each nat of epsilon."""

FEW = 40
"""Number of types in use up to which second derivatives may be inverted in decimals."""

SPARE_DIGITS = 20
"""Decimal digits that a residual of nothing may have lost."""


@dataclass(frozen=True, eq=False)
class Design:
    """Types in use with their masses, and multipliers that bound the optimum.

    Attributes
    ----------
    counts : (n, m) array of int
    masses : (n,) array of Python integers
        Up to a common factor; rows have one sum up to the rounding of masses.
    dual : VectorDual
    """

    counts: Counts
    masses: Integers
    dual: VectorDual


@dataclass(frozen=True, eq=False)
class _Program:
    """The program for scaled masses ``c (e + (1 - e) x)``, in floats or in decimals."""

    sizes: tuple[int, ...]
    means: Numbers  # (n,): e + (1 - e) x, the mean over classes of the column
    weights: Numbers  # (n,): 1 / (P means), up to one factor
    between: Numbers  # (n, m - 1): t
    within: Numbers  # (n, m): kappa, 0 for groups of one

    @classmethod
    def stated(cls, sizes: tuple[int, ...], counts: Counts, chances: Numbers, least: Any) -> _Program:
        """State it; `least` is ``e``, in the type of all numbers."""
        one = least / least
        size = np.array([one * s for s in sizes])
        x = counts * one / size
        means = least + (one - least) * (counts.sum(axis=1) * one / sum(sizes))
        within = x * (one - x) * size / np.array([one * max(s - 1, 1) for s in sizes])
        return cls(sizes, means, one / ((least + (one - least) * chances) * means), x[:, :1] - x[:, 1:], within)

    @property
    def gamma(self) -> Numbers:
        one = self.means[0] / self.means[0]
        gamma: Numbers = np.diag([one / s for s in self.sizes[1:]]) + one / self.sizes[0]
        return gamma

    @property
    def often(self) -> Numbers:
        return np.array([s - 1 for s in self.sizes])

    @property
    def rows(self) -> Numbers:
        """Constraints: the scaled masses times the first row sum to 1, those times others to 0."""
        ones = self.means / self.means
        return np.concatenate((ones[:, np.newaxis], self.between / self.means[:, np.newaxis]), axis=1)

    def scaled(self, factor: Any) -> _Program:
        """Program with all weights times a factor."""
        return _Program(self.sizes, self.means, self.weights * factor, self.between, self.within)

    def only(self, kept: NDArray[np.intp]) -> _Program:
        """Program of some of the types."""
        return _Program(self.sizes, self.means[kept], self.weights[kept], self.between[kept], self.within[kept])

    def inverses(self, masses: Numbers, inverse: Callable[[Numbers], Numbers]) -> tuple[Numbers, Numbers]:
        """Inverses of the information between and within groups, 0 within groups of one."""
        loads = masses * self.weights
        often = self.often
        information = loads @ self.within + (often == 0)
        return inverse((self.between * loads[:, np.newaxis]).T @ self.between), (often > 0) / information

    def value(self, inverses: tuple[Numbers, Numbers]) -> Any:
        """Objective."""
        return (inverses[0] * self.gamma).sum() + self.often @ inverses[1]

    def gains(self, inverses: tuple[Numbers, Numbers]) -> Numbers:
        """Minus the derivative of the objective by each scaled mass."""
        y = self.between @ inverses[0].T
        squares = (y @ self.gamma * y).sum(axis=1) + self.within @ (self.often * inverses[1] ** 2)
        gains: Numbers = self.weights * squares
        return gains

    def curvature(self, inverses: tuple[Numbers, Numbers]) -> Floats:
        """Factor ``F`` of the Hessian ``F F'`` by scaled masses, in floats."""
        root = np.linalg.cholesky(inverses[0]) if inverses[0].size else inverses[0]
        gamma = np.linalg.cholesky(self.gamma) if self.gamma.size else self.gamma
        one, two = self.between @ root, self.between @ inverses[0] @ gamma
        products = (one[:, :, np.newaxis] * two[:, np.newaxis, :]).reshape(self.means.size, -1)
        return (
            np.concatenate((products * np.sqrt(2.0), self.within * np.sqrt(2 * self.often * inverses[1] ** 3)), axis=1)
            * self.weights[:, np.newaxis]
        )

    def matrix(self, inverses: tuple[Numbers, Numbers]) -> Numbers:
        """Second derivatives of the Lagrangian by scaled masses and by the multipliers of rows."""
        left, rows = self.between * self.weights[:, np.newaxis], self.rows
        one, two = left @ inverses[0] @ left.T, self.between @ inverses[0] @ self.gamma @ inverses[0] @ self.between.T
        within = self.within * self.weights[:, np.newaxis]
        hessian = 2 * (one * two + (within * (self.often * inverses[1] ** 3)) @ within.T)
        corner = np.zeros((rows.shape[1], rows.shape[1]), dtype=rows.dtype)
        return np.block([[hessian, rows], [rows.T, corner]])


def best_design(
    sizes: tuple[int, ...],
    counts: Counts,
    chances: Integers,
    total: int,
    epsilon: float,
    *,
    rough: float | None = None,
    exchanges: bool = True,
) -> Design:
    """Design with the least loss, nearly.

    Parameters
    ----------
    sizes : tuple of int
        Number of classes of each group.
    counts : (n, m) array
        Types of subsets.
    chances : (n,) array of Python integers
        Prior of a subset of each type, times `total`.
    total : int
    epsilon : float
    rough : float, optional
        Budget of the program in floats, `epsilon` if not given. A smaller one is for large budgets, at which floats
        confuse designs; the types in use are kept on the way up, in decimals.
    exchanges : bool
        Whether types may join in decimals, until nothing is gained to the last digit.

    Raises
    ------
    SolverFailed
        The numbers leave the range of floats.
    """
    first = epsilon if rough is None else min(rough, epsilon)
    shares = np.array([int(chance) / total for chance in chances])
    program = _Program.stated(sizes, counts, shares, np.exp(-first))
    try:
        with np.errstate(all="ignore"):
            factor, masses, levels, used = _interior(program)
    except np.linalg.LinAlgError:
        raise SolverFailed(f"the design of subsets leaves the range of floats at epsilon {first:g}") from None
    with decimal.localcontext(prec=DIGITS + int(epsilon), Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX):
        exact = np.array([Decimal(int(chance)) / total for chance in chances])

        def stated(budget: float) -> _Program:
            return _Program.stated(sizes, counts, exact, (-Decimal(budget)).exp()).scaled(Decimal(factor))

        many = EXCHANGES if exchanges else 1
        fine, start = stated(first), _Point(used, _decimals(masses[used]), _decimals(levels))
        error, point = _settled(fine, start, _Floats(program.scaled(factor)), many)
        if error > _nothing() and point.used.size <= FEW:
            error, point = min((error, point), _settled(fine, point, _Decimals(fine), many), key=lambda pair: pair[0])
        while first < epsilon:
            # Masses move by exp(-first); their square is far below the next curvature, exp(-1.5 * first).
            first = min(epsilon, 1.5 * first)
            fine = stated(first)
            error, point = _settled(fine, point, _Decimals(fine), many)
        try:
            return _design(counts[point.used], fine.only(point.used), point.masses, point.levels, epsilon)
        except ArithmeticError:
            raise SolverFailed(
                f"the design of subsets at epsilon {epsilon:g} does not tell all classes apart"
            ) from None


@dataclass(frozen=True, eq=False)
class _Iterate:
    """Point of the interior-point method."""

    program: _Program
    masses: Floats
    levels: Floats
    slack: Floats

    @cached_property
    def inverses(self) -> tuple[Floats, Floats]:
        return self.program.inverses(self.masses, np.linalg.inv)

    @cached_property
    def dual(self) -> Floats:
        """Residual of the multipliers."""
        residual: Floats = self.program.gains(self.inverses) - self.program.rows @ self.levels + self.slack
        return residual

    @cached_property
    def primal(self) -> Floats:
        """Residual of the rows."""
        rows = self.program.rows
        residual: Floats = np.eye(rows.shape[1])[0] - rows.T @ self.masses
        return residual

    @property
    def gap(self) -> float:
        return float(self.masses @ self.slack)

    @cached_property
    def error(self) -> float:
        return float(max(self.gap, np.abs(self.dual).max(), np.abs(self.primal).max()))

    def directions(self) -> tuple[Floats, Floats, Floats]:
        """Changes of masses, multipliers and slack: predicted, then corrected (Mehrotra)."""
        masses, slack, rows = self.masses, self.slack, self.program.rows
        step = _step(self.program.curvature(self.inverses), rows, masses / slack, self.primal)
        forward, _ = step(self.dual - slack)
        back = -slack - slack * forward / masses
        reach, room = _reach(masses, forward), _reach(slack, back)
        shrink = ((masses + reach * forward) @ (slack + room * back) / self.gap) ** 3
        aim = (shrink * self.gap / masses.size - masses * slack - forward * back) / masses
        forward, change = step(self.dual + aim)
        return forward, change, aim - slack * forward / masses

    def moved(self) -> _Iterate:
        """Next point, nearer where the full step would lead far off: the objective bends."""
        forward, change, back = self.directions()
        length = min(1.0, 0.995 * _reach(self.masses, forward, 2.0), 0.995 * _reach(self.slack, back, 2.0))
        for _ in range(HALVINGS):
            masses, slack = self.masses + length * forward, self.slack + length * back
            other = _Iterate(self.program, masses, self.levels + length * change, slack)
            if other.error < GROWTH * self.error:
                break
            length /= 2
        return other


def _interior(program: _Program) -> tuple[float, Floats, Floats, NDArray[np.intp]]:
    """Factor of the weights for which the objective is near 1; masses, multipliers of rows, and types in use."""
    masses, rows = np.full(program.means.size, 1 / program.means.size), program.rows
    factor = float(program.value(program.inverses(masses, np.linalg.inv)))
    program = program.scaled(factor)
    gains = program.gains(program.inverses(masses, np.linalg.inv))
    levels = np.eye(rows.shape[1])[0] * 1.5 * gains.max()
    best = now = _Iterate(program, masses, levels, rows @ levels - gains)
    for _ in range(ROUNDS):
        if now.error < best.error:
            best = now
        if not now.error < 1e3 * best.error or now.gap < CLOSE:
            break
        try:
            now = now.moved()
        except np.linalg.LinAlgError:
            break
    if not best.error < USABLE:
        raise np.linalg.LinAlgError
    return factor, best.masses, best.levels, np.flatnonzero(best.masses > best.slack)


def _step(factor: Floats, rows: Floats, ratio: Floats, primal: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Solver of ``(F F' + 1 / ratio) x + rows y = dual``, ``rows' x = primal``, by the small system of its columns."""
    border = np.concatenate((factor, rows), axis=1)
    width = factor.shape[1]
    small = border.T @ (border * ratio[:, np.newaxis])
    small[:width, :width] += np.eye(width)

    def once(dual: Floats, primal: Floats) -> tuple[Floats, Floats]:
        right = border.T @ (ratio * dual)
        right[width:] -= primal
        answer = np.linalg.solve(small, right).astype(np.float64)
        return ratio * (dual - border @ answer), answer[width:]

    def solved(dual: Floats) -> tuple[Floats, Floats]:
        x, y = once(dual, primal)
        for _ in range(CORRECTIONS):
            more = once(dual - factor @ (factor.T @ x) - x / ratio - rows @ y, primal - rows.T @ x)
            x, y = x + more[0], y + more[1]
        return x, y

    return solved


def _reach(position: Floats, direction: Floats, most: float = 1.0) -> float:
    """Longest step, up to a limit, that leaves no entry negative."""
    return 1 / max(1 / most, float((-direction / position).max()))


@dataclass(frozen=True, eq=False)
class _Point:
    """Types in use, their scaled masses, and the multipliers of rows, in decimals."""

    used: NDArray[np.intp]
    masses: Numbers
    levels: Numbers

    def moved(self, step: Numbers) -> _Point:
        """Point after a step; types whose mass vanishes are dropped."""
        masses = self.masses + step[: self.used.size]
        kept = masses > 0
        return _Point(self.used[kept], masses[kept], self.levels + step[self.used.size :])

    def joined(self, other: int) -> _Point:
        """Point with one more type in use, of mass 0."""
        masses = np.array([*self.masses.tolist(), Decimal(0)])
        return _Point(np.append(self.used, other), masses, self.levels)


@dataclass(frozen=True, eq=False)
class _Floats:
    """Newton's method by second derivatives in floats, inverted once."""

    program: _Program

    def __call__(self, point: _Point) -> Newton:
        """Steps near a point."""
        some, masses = self.program.only(point.used), point.masses.astype(np.float64)
        inverse = np.linalg.pinv(some.matrix(some.inverses(masses, np.linalg.inv)), rcond=1e-11, hermitian=True)
        return lambda _, residual: _decimals(inverse @ residual.astype(np.float64))


@dataclass(frozen=True, eq=False)
class _Decimals:
    """Newton's method in decimals throughout."""

    program: _Program

    def __call__(self, point: _Point) -> Newton:
        """Steps of the types in use."""
        some = self.program.only(point.used)
        return lambda inverses, residual: _inverse(some.matrix(inverses)) @ residual


def _nothing() -> Decimal:
    """Residual that is none."""
    return Decimal(10) ** (SPARE_DIGITS - decimal.getcontext().prec)


def _settled(
    program: _Program, point: _Point, newton: Callable[[_Point], Newton], exchanges: int
) -> tuple[Decimal, _Point]:
    """Optimum near a point, and its error: types that gain more than they cost join, those of no mass leave."""
    best = Decimal("inf"), point
    for _ in range(exchanges):
        try:
            error, point = _refined(program, point, newton)
            inverses = program.only(point.used).inverses(point.masses, _inverse)
        except (ArithmeticError, np.linalg.LinAlgError):
            break
        excess = program.gains(inverses) - program.rows @ point.levels
        other = int(np.argmax(excess))
        error = max(error, excess[other])
        if error < best[0]:
            best = error, point
        if excess[other] < _nothing() or other in point.used:
            break
        point = point.joined(other)
    return best


def _refined(program: _Program, point: _Point, newton: Callable[[_Point], Newton]) -> tuple[Decimal, _Point]:
    """Stationary point of the types in use, and its residual; inexact steps cost time, not digits."""
    best = None
    for _ in range(REFINEMENTS):
        if best is None or point.used.size < best[1].used.size:
            best, steps, some = None, newton(point), program.only(point.used)
        inverses = some.inverses(point.masses, _inverse)
        residual = np.concatenate((some.gains(inverses) - some.rows @ point.levels, -(some.rows.T @ point.masses)))
        residual[point.used.size] += 1
        error = np.abs(residual).max()
        if best is not None and not error < best[0]:
            break
        best = error, point
        if error < _nothing():
            break
        # Scaled, lest small residuals vanish in floats.
        point = point.moved(error * steps(inverses, residual / error))
    return best or (Decimal("inf"), point)


def _decimals(numbers: Floats) -> Numbers:
    return np.array([Decimal(x) for x in numbers.tolist()])


def _inverse(matrix: Numbers) -> Numbers:
    """Inverse of a matrix of decimals, by elimination."""
    size = len(matrix)
    if not size:
        return matrix
    table = np.concatenate((matrix, np.array([[Decimal(i == j) for j in range(size)] for i in range(size)])), axis=1)
    for i in range(size):
        pivot = i + int(np.abs(table[i:, i]).argmax())
        table[[i, pivot]] = table[[pivot, i]]
        table[i] = table[i] / table[i, i]
        others = table[:, i].copy()
        others[i] = Decimal(0)
        table = table - np.multiply.outer(others, table[i])
    return table[:, size:]


def _design(counts: Counts, fine: _Program, masses: Numbers, levels: Numbers, epsilon: float) -> Design:
    """Design in integers."""
    between, within = fine.inverses(masses, _inverse)
    most = max([abs(x) for x in (*between.flat, *within.flat)])
    slopes = levels[1:] * Decimal(epsilon).exp()
    top = max([abs(x) for x in (levels[0], *slopes)])
    dual = VectorDual(
        _integers(between / most),
        _integers(within / most),
        int(_integers(levels[:1] / top)[0]),
        _integers(slopes / top),
    )
    plain = masses / fine.means
    return Design(counts, np.maximum(_integers(plain / plain.max()), 1), dual)


def _integers(numbers: Numbers) -> Integers:
    """Integers nearest to numbers of at most 1 times a power of two of the digits in use."""
    scale = 1 << int(3.3 * decimal.getcontext().prec)
    flat = [int((Decimal(x) * scale).to_integral_value()) for x in numbers.flat]
    integers = np.empty(len(flat), dtype=object)
    integers[:] = flat
    return integers.reshape(numbers.shape)
