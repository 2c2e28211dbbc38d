"""The program of best designs of subsets for some types, in floats or in many digits, and its interior-point method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from optrand.base._validation import Floats
from optrand.vectors._bound import ClassGroups, Counts

Numbers = NDArray[Any]
"""Floats, or midpoints of :class:`flint.arb` in an array of objects."""

Used = NDArray[np.intp]
"""Places of the types in use."""


@dataclass(frozen=True)
class DesignOptions:
    """Tuning numbers of designs."""

    gap: float = 1e-12  # relative, at which the interior-point method ends, unless the columns are preliminary
    residual: float = 1e-11  # of the constraints, whose terms are of the order of 1
    iterations: int = 100  # largest number of its steps
    rounds: int = 60  # largest number of its programs
    violated: float = 1e-11  # relative reduced cost from which a type joins. The rest is left to exchanges
    starts: int = 300  # number of types in use, and of random ones, from which local search starts in each round
    moves: int = 60  # largest number of its moves from one of them
    idle: float = 1e-3  # types leave whose mass is below this multiple of their relative slack
    fine: int = 100  # largest number of types in use for Newton's method, which takes cubic time in many digits
    ridge: int = 70  # curvature of 2**-ridge times the largest is added, since optimal masses may not be unique
    steps: int = 40  # largest number of Newton steps for one set of types
    converged: int = 120  # Newton's method ends at a residual of 2**-converged times the largest gain
    exchanges: int = 24  # largest number of types that join after the interior-point method
    start: float = 12.0  # largest epsilon of a program in floats: beyond it they may not distinguish designs
    growth: float = 1.5  # between epsilons on the way up: masses move by exp(-epsilon), whose square is then negligible


OPTIONS = DesignOptions()


@dataclass(frozen=True, eq=False)
class Program:
    """The program for scaled masses ``c (e + (1 - e) x)``, in floats or in many digits."""

    sizes: tuple[int, ...]
    counts: Counts  # (n, m)
    means: Numbers  # (n,): e + (1 - e) x, the mean over classes of the column
    weights: Numbers  # (n,): 1 / (P means)
    between: Numbers  # (n, m - 1): t
    within: Numbers  # (n, m): kappa, 0 for groups of one

    @classmethod
    def state(cls, groups: ClassGroups, counts: Counts, least: Any) -> Program:
        """State the program of some types for the mean priors of groups. `least` is ``e``, in the type of numbers."""
        one, total = least / least, groups.total * groups.unit
        size = np.array([one * s for s in groups.sizes])
        x = counts * one / size
        means = least + (one - least) * (counts.sum(axis=1) * one / groups.k)
        prior = np.array([one * int(weight) / total for weight in groups.mean_weights(counts)])
        within = x * (one - x) * size / np.array([one * max(s - 1, 1) for s in groups.sizes])
        weights = one / ((least + (one - least) * prior) * means)
        return cls(groups.sizes, counts, means, weights, x[:, :1] - x[:, 1:], within)

    def keep(self, used: Used) -> Program:
        parts = (self.counts, self.means, self.weights, self.between, self.within)
        return Program(self.sizes, *(part[used] for part in parts))

    @cached_property
    def gamma(self) -> Numbers:
        one = self.means[0] / self.means[0]
        gamma: Numbers = np.diag([one / s for s in self.sizes[1:]]) + one / self.sizes[0]
        return gamma

    @cached_property
    def often(self) -> NDArray[np.int64]:
        """Degrees of freedom within each group."""
        return np.array([s - 1 for s in self.sizes])

    @cached_property
    def rows(self) -> Numbers:
        """Constraints: the scaled masses times the first column sum to 1, those times others to 0."""
        ones = self.means / self.means
        return np.concatenate((ones[:, np.newaxis], self.between / self.means[:, np.newaxis]), axis=1)

    def invert(self, masses: Numbers) -> tuple[Numbers, Numbers]:
        """Return the inverses of the information between and within groups, 0 within groups of one."""
        loads = masses * self.weights
        information = loads @ self.within + (self.often == 0)
        return _invert((self.between * loads[:, np.newaxis]).T @ self.between), np.sign(self.often) / information

    def gains(self, inverses: tuple[Numbers, Numbers]) -> Numbers:
        """Return minus the derivative of the objective by each scaled mass."""
        y = self.between @ inverses[0].T
        squares = (y @ self.gamma * y).sum(axis=1) + self.within @ (self.often * inverses[1] ** 2)
        gains: Numbers = self.weights * squares
        return gains

    def hessian(self, inverses: tuple[Numbers, Numbers]) -> Numbers:
        """Return the second derivatives of the objective by scaled masses."""
        left = self.between * self.weights[:, np.newaxis]
        within = self.within * self.weights[:, np.newaxis]
        one, two = left @ inverses[0] @ left.T, self.between @ inverses[0] @ self.gamma @ inverses[0] @ self.between.T
        hessian: Numbers = 2 * (one * two + (within * (self.often * inverses[1] ** 3)) @ within.T)
        return hessian

    def root(self, inverses: tuple[Numbers, Numbers]) -> Floats:
        """Return a matrix `F` of ``m (m + 1) / 2`` columns at most such that ``F @ F.T`` is the Hessian, in floats."""
        # In coordinates in which gamma is the identity and the inverse diagonal, the Hessian is a sum of squares of
        # the products of two coordinates.
        factor = np.linalg.cholesky(self.gamma).T if self.gamma.size else self.gamma
        z, basis = np.linalg.eigh(factor @ inverses[0] @ factor.T)
        y = self.between @ np.linalg.inv(factor) @ basis
        i, j = np.triu_indices(z.size)
        products = y[:, i] * y[:, j] * np.sqrt(np.where(i == j, 1, 2) * z[i] * z[j] * (z[i] + z[j]))
        wide = self.often > 0
        within = self.within[:, wide] * np.sqrt(2 * (self.often * inverses[1] ** 3)[wide])
        root: Floats = self.weights[:, np.newaxis] * np.concatenate((products, within), axis=1)
        return root


@dataclass(frozen=True, eq=False)
class _Newton:
    """Newton's equations of the interior-point method at a point.

    The Hessian has low rank. With ``v = root.T @ (step of the masses)`` the equations are those of a linear program
    with free `v`, and the normal equations have as many rows as the information has entries, however many types there
    are.
    """

    masses: Floats
    slacks: Floats
    root: Floats
    rows: Floats
    dual: Floats  # residuals
    primal: Floats

    @cached_property
    def matrix(self) -> Floats:
        return np.concatenate((self.root, self.rows), axis=1)

    @cached_property
    def factor(self) -> Any:
        normal = (self.matrix * (self.masses / self.slacks)[:, np.newaxis]).T @ self.matrix
        free = np.repeat((1.0, 0.0), (self.root.shape[1], self.rows.shape[1]))
        # The last factor is against rounding, as rows depend on each other if all types have one size.
        normal[np.diag_indices(free.size)] = (np.diag(normal) + free) * (1 + 1e-14)
        return cho_factor(normal)

    def solve(self, centre: Floats | float) -> tuple[Floats, Floats, Floats, float]:
        """Return the steps of masses, levels and slacks to products `centre`, and the share of them that is taken."""
        rank, scale = self.root.shape[1], self.masses / self.slacks
        step, move = np.zeros(scale.size), np.zeros(self.matrix.shape[1])
        # The second pass refines the first, whose normal equations are close to singular in the end.
        for _ in range(2):
            above = self.dual + centre / self.masses - self.slacks - step / scale - self.matrix @ move
            short = np.concatenate((move[:rank], self.primal)) - self.matrix.T @ step
            more = cho_solve(self.factor, self.matrix.T @ (scale * above) - short)
            step, move = step + scale * (above - self.matrix @ more), move + more
        tilt = (centre - self.slacks * step) / self.masses - self.slacks
        # Masses and slacks remain positive.
        shrink = np.concatenate((-step / self.masses, -tilt / self.slacks)).max()
        return step, move[rank:], tilt, min(1.0, 0.995 / max(shrink, 0.1))


def solve_interior(program: Program, gap: float) -> tuple[Floats, Floats, Floats]:
    """Solve the program by an interior-point method in floats. Return masses, levels and slacks.

    Mehrotra's predictor and corrector (1992) on ``gains + slacks = rows @ levels``, ``rows.T @ masses = (1, 0 ...)``
    and ``masses * slacks = 0``.
    """
    rows, n = program.rows, len(program.means)
    masses, slacks, levels = np.full(n, 1.0 / n), np.zeros(n), np.zeros(rows.shape[1])
    for iteration in range(OPTIONS.iterations):
        inverses = program.invert(masses)
        gains = program.gains(inverses)
        loss = float(gains @ masses)
        if iteration == 0:
            slacks, levels[0] = np.full(n, loss), loss
        dual, primal = gains - rows @ levels + slacks, np.eye(levels.size)[0] - rows.T @ masses
        mean = float(masses @ slacks) / n
        solved = n * mean + np.abs(dual) @ masses < gap * loss and np.abs(primal).max() < OPTIONS.residual
        # Far below the gap rounding prevails, and further steps lead away.
        if solved or n * mean < gap * loss / 1000:
            break
        newton = _Newton(masses, slacks, program.root(inverses), rows, dual, primal)
        try:
            step, _, tilt, length = newton.solve(0.0)
        except LinAlgError:
            if iteration == 0:
                raise
            break
        left = float((masses + length * step) @ (slacks + length * tilt)) / n
        step, rise, tilt, length = newton.solve(max(1e-3, (left / mean) ** 2) * mean - length**2 * step * tilt)
        masses, levels, slacks = masses + length * step, levels + length * rise, slacks + length * tilt
    return masses, levels, slacks


def drop_radii(numbers: Numbers) -> Numbers:
    """Drop the radii of the balls: these digits are not proven, and the bound does not rely on them."""
    flat = np.empty(numbers.size, dtype=object)
    flat[:] = [arb(x).mid() for x in numbers.flat]
    return flat.reshape(numbers.shape)


def solve_linear(matrix: Numbers, right: Numbers) -> Numbers:
    """Solve linear equations in many digits, unproven."""
    answer = arb_mat(drop_radii(matrix).tolist()).solve(arb_mat(drop_radii(right).tolist()), algorithm="approx")
    return np.array([[x.mid() for x in row] for row in answer.tolist()], dtype=object)


def _invert(matrix: Numbers) -> Numbers:
    """Return the inverse of a matrix in floats or in many digits."""
    if matrix.dtype != object:
        return np.linalg.inv(matrix)
    size = len(matrix)
    unit = np.array([[arb(int(i == j)) for j in range(size)] for i in range(size)])
    return solve_linear(matrix, unit) if size else matrix
