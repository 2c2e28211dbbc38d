r"""Best masses of staircase columns for unbiased one-hot vectors: a cone program, then Newton's method in many digits.

With :math:`e = \exp(-\epsilon)`, means of groups :math:`x_g = d_g / K_g`, :math:`t_g = x_0 - x_g` and the share
:math:`\bar x` of all classes, the program is an A-optimal design with linear constraints,

.. math:: \min_{c \geq 0} \; \mathrm{tr} \Big( \Gamma \big( \sum_j \tfrac{c_j}{P_j} t_j t_j^T \big)^{-1} \Big)
          + \sum_g \frac{K_g - 1}{\sum_j c_j \kappa_{jg} / P_j}
          \quad \text{where} \quad \sum_j c_j (e + (1 - e) \bar x_j) = 1, \;\; \sum_j c_j t_j = 0,

:math:`\kappa_{jg} = x_g (1 - x_g) K_g / (K_g - 1)`, :math:`P_j = e + (1 - e) p(S_j)` and :math:`\Gamma = 1 / K_0 +
\mathrm{diag}(1 / K_g)` (``docs/mathematics.md``, section 14). Its dual is a second-order cone program, which Clarabel
solves to some eight digits and thereby identifies the types in use. Newton's method on their optimality conditions
finds the other digits. The result is a candidate solution: :mod:`optrand.vectors._bound` proves it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import nnls

from optrand.base import _validation
from optrand.base._arithmetic import Integers, privacy_ratio
from optrand.base._validation import Floats, suggest_parameters
from optrand.errors import InvalidInput, SolverFailed
from optrand.solvers._clarabel import Clarabel, Cones, ConicProgram
from optrand.vectors._bound import ClassGroups, Counts, VectorDual, digits_for, subset_size
from optrand.vectors._subsets import UnbiasedVectors

Numbers = NDArray[Any]
"""Floats, or midpoints of :class:`flint.arb` in an array of objects."""

Used = NDArray[np.intp]
"""Places of the types in use."""


@dataclass(frozen=True)
class DesignOptions:
    """Tuning numbers of :func:`best_design`."""

    # Relative, for Clarabel, which stalls before it reaches the first. On some programs it does so after two steps.
    tolerances: tuple[float, ...] = (1e-13, 1e-9)
    cones: int = (
        800  # largest number of types, each a cone, of the first program, and of those that each later one adds
    )
    rounds: int = 20  # largest number of cone programs
    violated: float = 1e-7  # relative reduced cost from which a type joins them. The rest is left to exchanges
    ridge: int = 70  # curvature of 2**-ridge times the largest is added, since optimal masses may not be unique
    steps: int = 40  # largest number of Newton steps for one set of types
    converged: int = 120  # Newton's method ends at a residual of 2**-converged times the largest gain
    exchanges: int = 24  # largest number of types that join after Clarabel
    start: float = 5.0  # largest epsilon of a cone program: beyond it floats may not distinguish designs
    growth: float = 1.5  # between epsilons on the way up: masses move by exp(-epsilon), whose square is then negligible


OPTIONS = DesignOptions()


class Design(NamedTuple):
    """Types in use with their masses, and multipliers that bound the optimum."""

    counts: Counts
    masses: Integers  # (n,): up to a common factor. Rows have one sum up to their rounding
    dual: VectorDual


@dataclass(frozen=True, eq=False)
class _Program:
    """The program for scaled masses ``c (e + (1 - e) x)``, in floats or in many digits."""

    sizes: tuple[int, ...]
    means: Numbers  # (n,): e + (1 - e) x, the mean over classes of the column
    weights: Numbers  # (n,): 1 / (P means)
    between: Numbers  # (n, m - 1): t
    within: Numbers  # (n, m): kappa, 0 for groups of one

    @classmethod
    def state(cls, groups: ClassGroups, least: Any) -> _Program:
        """State the program for the mean priors of groups. `least` is ``e``, in the type of all numbers."""
        one, counts, total = least / least, groups.counts, groups.total * groups.unit
        size = np.array([one * s for s in groups.sizes])
        x = counts * one / size
        means = least + (one - least) * (counts.sum(axis=1) * one / groups.k)
        prior = np.array([one * int(weight) / total for weight in groups.mean_weights(counts)])
        within = x * (one - x) * size / np.array([one * max(s - 1, 1) for s in groups.sizes])
        return cls(groups.sizes, means, one / ((least + (one - least) * prior) * means), x[:, :1] - x[:, 1:], within)

    def keep(self, used: Used) -> _Program:
        return _Program(self.sizes, self.means[used], self.weights[used], self.between[used], self.within[used])

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
        return _inverse((self.between * loads[:, np.newaxis]).T @ self.between), np.sign(self.often) / information

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


def best_design(groups: ClassGroups, epsilon: float) -> Design:
    """Compute a nearly optimal design of the types of subsets for the mean priors of groups.

    At large budgets floats cannot distinguish designs. The cone program is then solved at a smaller one, from which
    Newton's method follows the optimum upwards. Raise :class:`SolverFailed` if the numbers leave the range of floats,
    or the types found do not distinguish all classes.
    """
    budget = min(OPTIONS.start, epsilon)
    with ctx.workprec(digits_for(epsilon)):
        try:
            # Floats identify the types in use at a moderate budget, and multiprecision finds the other digits.
            masses, used = _find_support(groups.counts, _Program.state(groups, np.exp(-budget)))
            fine: Numbers = np.array([arb(x) for x in masses.tolist()])
            while True:
                program = _Program.state(groups, (-arb(budget)).exp().mid())
                # The optimum at one budget is near enough to that at the next for Newton's method to converge.
                used, fine, levels = _optimize(program, used, fine)
                if budget == epsilon:
                    return _round(groups.counts[used], program.keep(used), fine, levels, epsilon)
                budget = min(epsilon, OPTIONS.growth * budget)
        except (ZeroDivisionError, np.linalg.LinAlgError):
            raise SolverFailed(
                f"no design of subsets was found at epsilon {epsilon:g}: its equations are singular in floats, "
                "try a larger epsilon or a less extreme prior"
            ) from None


def _find_support(counts: Counts, program: _Program) -> tuple[Floats, Used]:
    """Solve the cone program of some types, and again with those that it violates. Return masses and places in use."""
    n = len(counts)
    # Single classes make the first program feasible.
    singles = np.flatnonzero(counts.sum(axis=1) == 1)
    places = np.union1d(singles, np.linspace(0, n - 1, min(n, OPTIONS.cones)).round().astype(np.intp))
    for _ in range(OPTIONS.rounds):
        masses, some = _solve_cones(program.keep(places))
        used = places[some]
        if places.size == n:
            break
        # Price all types by the multipliers of the types in use, as column generation does.
        gains = program.gains(program.keep(used).invert(masses))
        levels = np.linalg.lstsq(program.rows[used], gains[used], rcond=None)[0]
        excess = gains - program.rows @ levels
        worst = np.argsort(excess)[::-1][: OPTIONS.cones]
        violated = worst[excess[worst] > OPTIONS.violated * levels[0]]
        if not violated.size:
            break
        # Types out of use leave the program, so that it stays small.
        places = np.union1d(used, violated)
    return masses, used


def _solve_cones(program: _Program) -> tuple[Floats, Used]:
    r"""Solve the dual in floats. Return scaled masses of the types in use, and their places.

    .. math:: \max \; \mathrm{tr} Z \quad \text{where} \quad |Z 1_j|^2 \leq P_j \, \ell_j, \;\;
              \ell_j = \mathrm{means}_j + \mathrm{slopes} \cdot t_j

    with ``Z`` given by matrices between and within groups. Masses are the multipliers of :math:`\ell_j`.
    """
    n, q = program.between.shape
    # |Z 1|**2 is a sum of squares in the coordinates of this factor of Gamma.
    root = np.linalg.cholesky(program.gamma).T if q else program.gamma
    wide = np.flatnonzero(program.often > 0)
    square, size = q * q, q + wide.size + 2
    # Columns: root @ between, within, slopes. The cone of a type, divided by means: (l + 1, l - 1, 2 Z 1 / sqrt(P)).
    scaled = 2 * program.between * np.sqrt(program.weights)[:, np.newaxis]
    block = np.zeros((n, size, square + wide.size + q))
    for i in range(q):
        block[:, 2 + i, i * q : (i + 1) * q] = scaled
    spreads = program.within[:, wide] * program.often[wide] * program.weights[:, np.newaxis]
    places = np.arange(wide.size)
    block[:, 2 + q + places, square + places] = 2 * np.sqrt(spreads)
    block[:, :2, square + wide.size :] = program.rows[:, np.newaxis, 1:]
    right = np.zeros((n, size))
    right[:, 0] = 2.0
    cost = np.concatenate((-root.reshape(-1), -program.often[wide], np.zeros(q)))
    none, no_row = sparse.csc_array((cost.size, cost.size)), sparse.csc_array((0, cost.size))
    cones = Cones(sparse.csc_array(-block.reshape(n * size, -1)), right.reshape(-1), size)
    dual = ConicProgram(none, cost / np.abs(cost).max(), no_row, np.zeros(0), no_row, np.zeros(0), cones)
    for tolerance in OPTIONS.tolerances:
        answer = Clarabel(tolerance).solve(dual)
        # Masses are sums of the first two multipliers of each cone: the coefficients of its slack l.
        z, s = answer.cone_dual, answer.cone_slack
        masses = z[:, 0] + z[:, 1]
        masses = masses / masses.sum()
        slack = 1 - np.linalg.norm(s[:, 1:], axis=1) / s[:, 0]
        # Strict complementarity: of the two, one tends to zero. Exchanges correct a wrong guess.
        used = np.flatnonzero(masses > slack)
        if used.size:
            return _sparsify(program, masses, used)
    raise SolverFailed(f"Clarabel ended with the status {answer.status} and no answer to read")


def _sparsify(program: _Program, masses: Floats, used: Used) -> tuple[Floats, Used]:
    """Reduce the types to as few as Carathéodory's theorem needs for the same information and sums."""
    some, q = program.keep(used), program.between.shape[1]
    upper = np.triu_indices(q)
    products = (some.between[:, :, np.newaxis] * some.between[:, np.newaxis, :])[:, upper[0], upper[1]]
    moments = np.concatenate(
        (np.concatenate((products, some.within), axis=1) * some.weights[:, None], some.rows), axis=1
    )
    # Least squares weigh all moments alike: bring them to one size.
    units = np.abs(moments).max(axis=0)
    moments = moments / np.where(units > 0, units, 1.0)
    try:
        found, _ = nnls(moments.T, masses[used] @ moments)
    except RuntimeError:
        # After too many iterations keep all types, which are as good.
        return masses[used], used
    kept = found > 0
    return found[kept], used[kept]


def _optimize(program: _Program, used: Used, masses: Numbers) -> tuple[Used, Numbers, Numbers]:
    """Find the optimum near a point: types that gain more than they cost join, types without mass leave."""
    for _ in range(OPTIONS.exchanges):
        used, masses, levels = _refine(program, used, masses)
        excess = program.gains(program.keep(used).invert(masses)) - program.rows @ levels
        best = max(range(excess.size), key=lambda place: excess[place].mid())
        if not excess[best] > levels[0] * arb(2) ** -60 or best in used:
            break
        used, masses = np.append(used, best), np.concatenate((masses, np.array([arb(0)])))
    return used, masses, levels


def _refine(program: _Program, used: Used, masses: Numbers) -> tuple[Used, Numbers, Numbers]:
    """Solve the optimality conditions of the types in use by Newton's method. Drop types whose mass vanishes."""
    for _ in range(OPTIONS.steps):
        some = program.keep(used)
        inverses = some.invert(masses)
        gains, rows, n = some.gains(inverses), some.rows, used.size
        hessian = some.hessian(inverses)
        # The system of the optimality conditions is singular if optimal masses are not unique: hence a small ridge.
        ridge = max(x.mid() for x in np.diag(hessian)) * arb(2) ** -OPTIONS.ridge
        corner = np.diag([-ridge / (ridge + 1)] * rows.shape[1])
        system = np.block([[hessian + np.diag([ridge] * n), rows], [rows.T, corner]])
        missing = np.array([arb(int(i == 0)) for i in range(rows.shape[1])]) - rows.T @ masses
        answer = _solve(system, np.concatenate((gains, missing))[:, np.newaxis])[:, 0]
        step, levels = answer[:n], answer[n:]
        # A full step: types that it takes below zero leave, and the next steps correct the others.
        masses = _mid(masses + step)
        kept = np.array([bool(mass > 0) for mass in masses])
        if not kept.any():
            raise SolverFailed("Newton's method for the design of subsets diverges")
        used, masses = used[kept], masses[kept]
        if kept.all() and max(abs(x) for x in step) < arb(2) ** -OPTIONS.converged:
            break
    return used, masses, levels


def _mid(numbers: Numbers) -> Numbers:
    """Drop the radii of the balls: these digits are not proven, and the bound does not rely on them."""
    flat = np.empty(numbers.size, dtype=object)
    flat[:] = [arb(x).mid() for x in numbers.flat]
    return flat.reshape(numbers.shape)


def _solve(matrix: Numbers, right: Numbers) -> Numbers:
    answer = arb_mat(_mid(matrix).tolist()).solve(arb_mat(_mid(right).tolist()), algorithm="approx")
    return np.array([[x.mid() for x in row] for row in answer.tolist()], dtype=object)


def _inverse(matrix: Numbers) -> Numbers:
    if matrix.dtype != object:
        return np.linalg.inv(matrix)
    size = len(matrix)
    return _solve(matrix, np.array([[arb(int(i == j)) for j in range(size)] for i in range(size)])) if size else matrix


def _round(counts: Counts, fine: _Program, masses: Numbers, levels: Numbers, epsilon: float) -> Design:
    """Round the design to integers."""
    between, within = fine.invert(masses)
    most = max(abs(x) for x in (*between.flat, *within.flat))
    slopes = levels[1:] * arb(epsilon).exp()
    top = max(abs(x) for x in (levels[0], *slopes))
    dual = VectorDual(
        _integers(between / most),
        _integers(within / most),
        int(_integers(levels[:1] / top)[0]),
        _integers(slopes / top),
    )
    plain = masses / fine.means
    return Design(counts, np.maximum(_integers(plain / max(plain)), 1), dual)


def _integers(numbers: Numbers) -> Integers:
    """Return integers nearest to numbers of at most 1 times a power of two of the digits in use."""
    scaled: list[Any] = [(arb(x).mid() * arb(2) ** ctx.prec).mid().floor().unique_fmpz() for x in numbers.flat]
    return np.array([int(x) for x in scaled], dtype=object).reshape(numbers.shape)


@suggest_parameters
def unbiased_vectors(prior: ArrayLike, epsilon: float) -> UnbiasedVectors:
    r"""Compute the best unbiased epsilon-label-DP randomizer of the one-hot vector of a class.

    .. math:: \min \; \tfrac12 \sum_y p_y E|v - e_y|^2 \quad \text{where} \quad E[v \mid y] = e_y \text{ for every } y

    Parameters
    ----------
    prior : (K,) array
        Prior of the classes ``0 ... K-1``, at least two. Zeros are allowed. Such classes are unbiased, too.
    epsilon : float
        Privacy budget in nats, from 1e-140 to 700.

    Returns
    -------
    UnbiasedVectors
        With `sample`, the table if it is small, and a `certificate`.

    Raises
    ------
    InvalidInput
        An invalid prior or budget.
    SolverFailed
        The design leaves the range of floats: priors with zeros at a very large budget.

    Notes
    -----
    * *Uniform prior*, any K: a random subset of one size, the better of the two integers next to ``K / (exp(epsilon) +
      1)``.
    * *A large budget*, up to 256 classes: randomized response, if its own multipliers prove it optimal.
    * *Up to 12 classes, or more with few distinct priors* (``prod (K_g + 1) <= 4096``, or at most ``K + 1``, for groups
      of ``K_g`` equal priors): the optimum over all subsets, proven to 1e-9 or better for epsilon from 1e-3 to 40.
    * *Otherwise* neighbouring priors are put into groups that are treated alike. Privacy, unbiasedness and the
      certificate's bounds remain exact, but its gap does not close. For 30 classes of random priors it is about ``0.04
      * epsilon**2`` up to an epsilon of 1, of which most is due to the bound.

    Proof: ``docs/mathematics.md``, section 14. Cost: a cone program with a cone for each type, some seconds at most.

    Examples
    --------
    >>> import optrand
    >>> randomizer = optrand.unbiased_vectors([0.85, 0.05, 0.05, 0.05], 1.0)
    >>> proof = randomizer.certificate.require(gap=1e-12)
    >>> round(proof.upper, 6), round(optrand.unbiased_vectors([0.25] * 4, 1.0).value, 6)
    (3.673274, 3.778111)
    """
    chances = _validation.check_prior(prior)
    if chances.size < 2:
        raise InvalidInput("prior has one entry, expected one for each of at least two classes")
    budget = _validation.check_epsilon(epsilon)
    # Below this the variance of a vector leaves the range of floats.
    if budget < 1e-140:
        raise InvalidInput(f"epsilon is {budget:g}, expected at least 1e-140")
    groups = ClassGroups.of_prior(chances)
    ratio, one = privacy_ratio(budget), np.array([1], dtype=object)
    if groups.uniform:
        return UnbiasedVectors(chances, budget, groups, np.array([[subset_size(groups.k, ratio)]]), one, ratio)
    # The proof that randomized response is optimal takes O(k**2): a second at 256 classes.
    if groups.k <= 256:
        # Randomized response treats all classes alike, so that one group holds them whatever their priors are.
        whole = ClassGroups(groups.weights, (np.argsort(chances, kind="stable"),))
        response = UnbiasedVectors(chances, budget, whole, np.array([[1]]), one, ratio)
        if response.certificate.gap <= 1e-9:
            return response
    design = best_design(groups, budget)
    counts, masses = _covering(groups, design.counts, design.masses)
    return UnbiasedVectors(chances, budget, groups, counts, masses, ratio, design.dual)


def _covering(groups: ClassGroups, counts: Counts, masses: Integers) -> tuple[Counts, Integers]:
    """Cover all classes equally after rounding, by adding mass to single classes of a group."""
    coverage = masses @ groups.shares(counts)
    short = max(coverage.tolist()) - coverage
    rows = {tuple(row): int(mass) * groups.unit for row, mass in zip(counts.tolist(), masses.tolist(), strict=True)}
    for g, (size, missing) in enumerate(zip(groups.sizes, short.tolist(), strict=True)):
        if missing:
            single = tuple(int(g == h) for h in range(groups.m))
            rows[single] = rows.get(single, 0) + missing * size
    divisor = math.gcd(*rows.values())
    found = np.empty(len(rows), dtype=object)
    found[:] = [mass // divisor for mass in rows.values()]
    return np.array([*rows], dtype=np.int64), found
