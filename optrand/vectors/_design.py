r"""Best masses of staircase columns for unbiased one-hot vectors, by column generation.

With :math:`e = \exp(-\epsilon)`, means of groups :math:`x_g = d_g / K_g`, :math:`t_g = x_0 - x_g` and the share
:math:`\bar x` of all classes, the program is an A-optimal design with linear constraints,

.. math:: \min_{c \geq 0} \; \mathrm{tr} \Big( \Gamma \big( \sum_j \tfrac{c_j}{P_j} t_j t_j^T \big)^{-1} \Big)
          + \sum_g \frac{K_g - 1}{\sum_j c_j \kappa_{jg} / P_j}
          \quad \text{where} \quad \sum_j c_j (e + (1 - e) \bar x_j) = 1, \;\; \sum_j c_j t_j = 0,

:math:`\kappa_{jg} = x_g (1 - x_g) K_g / (K_g - 1)`, :math:`P_j = e + (1 - e) p(S_j)` and :math:`\Gamma = 1 / K_0 +
\mathrm{diag}(1 / K_g)` (``docs/mathematics.md``, section 14). An interior-point method solves it for some types of
subsets. The reduced cost of a type is a quadratic function of its counts, and local search finds types that violate its
sign, which join. If few types are in use, Newton's method on their optimality conditions finds the other digits. The
result is a candidate solution: :mod:`optrand.vectors._bound` proves it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError
from scipy.optimize import nnls

from optrand.base import _validation
from optrand.base._arithmetic import Integers, privacy_ratio
from optrand.base._validation import Floats, suggest_parameters
from optrand.errors import InvalidInput, SolverFailed
from optrand.vectors._bound import MOST_TYPES, ClassGroups, Counts, VectorDual, digits_for, subset_size
from optrand.vectors._program import OPTIONS, Numbers, Program, Used, drop_radii, solve_interior, solve_linear
from optrand.vectors._subsets import UnbiasedVectors


class Design(NamedTuple):
    """Types in use with their masses, and multipliers that bound the optimum."""

    counts: Counts
    masses: Integers  # (n,): up to a common factor. Rows have one sum up to their rounding
    dual: VectorDual


def best_design(groups: ClassGroups, epsilon: float) -> Design:
    """Compute a nearly optimal design of the types of subsets for the mean priors of groups.

    At large budgets floats cannot distinguish designs. The program is then solved at a smaller one, from which
    Newton's method follows the optimum upwards. Raise :class:`SolverFailed` if the numbers leave the range of floats,
    or the types found do not distinguish all classes.
    """
    budget = min(OPTIONS.start, epsilon)
    with ctx.workprec(digits_for(epsilon)):
        try:
            # Floats identify the types in use at a moderate budget, and multiprecision finds the other digits.
            program, masses, levels = _generate_columns(groups, np.exp(-budget))
            relevant = masses > OPTIONS.idle * masses.max() / masses.size
            used, kept = _sparsify(program, masses)
            fine: Numbers = np.array([arb(x) for x in kept.tolist()])
            if used.size > OPTIONS.fine and budget == epsilon:
                # Floats have no more digits.
                with ctx.workprec(100):
                    some = Program.state(groups, program.counts[used], (-arb(epsilon)).exp().mid())
                    return _round(some, fine, np.array([arb(x) for x in levels.tolist()]), epsilon)
            others = groups.counts if groups.types <= MOST_TYPES else program.counts[relevant]
            pool = np.concatenate((program.counts[used], others))
            used = np.arange(used.size)
            while True:
                program = Program.state(groups, pool, (-arb(budget)).exp().mid())
                # The optimum at one budget is near enough to that at the next for Newton's method to converge.
                used, fine, levels = _optimize(program, used, fine)
                if budget == epsilon:
                    return _round(program.keep(used), fine, levels, epsilon)
                budget = min(epsilon, OPTIONS.growth * budget)
        except (ZeroDivisionError, LinAlgError):
            raise SolverFailed(
                f"no design of subsets was found at epsilon {epsilon:g}: its equations are singular in floats, "
                "try a larger epsilon or a less extreme prior"
            ) from None


def _generate_columns(groups: ClassGroups, least: float) -> tuple[Program, Floats, Floats]:
    """Solve the program of some types, and again with those that it lacks. Return it, its masses and levels."""
    generator, accuracy, size = np.random.default_rng(0), 1e-3, round(groups.k * least / (1 + least))
    # Single classes make the program feasible, and random subsets of the size that is best for equal priors are near
    # those in use.
    draws = [
        generator.multivariate_hypergeometric(groups.sizes, min(max(d, 1), groups.k - 1), groups.m * n)
        for d, n in ((size - 1, 1), (size, groups.m), (size + 1, 1))
    ]
    counts = np.unique(np.concatenate((np.eye(groups.m, dtype=np.int64), *draws)), axis=0)
    for _ in range(OPTIONS.rounds):
        program = Program.state(groups, counts, least)
        masses, levels, slacks = solve_interior(program, accuracy)
        inverses = program.invert(masses)
        loads = masses / program.means
        shares = np.clip(loads @ counts / loads.sum() / groups.sizes, 0, 1)
        drawn = generator.binomial(groups.sizes, shares, (OPTIONS.starts, groups.m))
        starts = np.concatenate((counts[np.argsort(-masses)[: OPTIONS.starts]], drawn))
        found = _search(starts, *_build_reduced_cost(groups, least, inverses, levels), np.array(groups.sizes))
        joining = Program.state(groups, found, least)
        excess = joining.gains(inverses) / (joining.rows @ levels) - 1
        worst = float(excess.max())
        # A sample of the types that violate most, as the very worst ones are much alike.
        violated = np.flatnonzero(excess > max(OPTIONS.violated, worst / 20))
        chosen = generator.permutation(violated)[: max(60, groups.m**2 // 2)]
        kept = counts[masses > OPTIONS.idle * slacks / levels[0]]
        missing = len(np.unique(np.concatenate((counts, found[chosen])), axis=0)) > len(counts)
        if accuracy <= OPTIONS.gap and not missing:
            break
        # A preliminary program needs no more digits than the types that it lacks cost.
        accuracy = max(OPTIONS.gap, min(accuracy, worst / 100) if missing else accuracy / 1000)
        counts = np.unique(np.concatenate((kept, found[chosen])), axis=0)
    return program, np.where(masses > slacks / levels[0], masses, 0.0), levels


def _build_reduced_cost(
    groups: ClassGroups, least: float, inverses: tuple[Floats, Floats], levels: Floats
) -> tuple[Floats, Floats]:
    """Return the matrix and the linear part of gains minus levels as a quadratic function of counts, times P means."""
    m, size = groups.m, np.array(groups.sizes)
    differ = np.concatenate((np.ones((1, m - 1)), -np.eye(m - 1)))
    gamma = np.diag(1 / size[1:]) + 1 / size[0]
    left = differ @ inverses[0]
    spread = size * inverses[1] ** 2
    chance = (1 - least) * np.array([weight / groups.total for weight in groups.group_weights])
    level = (1 - least) * size / groups.k * levels[0] + differ @ levels[1:]
    matrix = left @ gamma @ left.T - np.diag(spread) - (np.outer(level, chance) + np.outer(chance, level)) / 2
    return matrix / np.outer(size, size), (spread - least * (levels[0] * chance + level)) / size


def _search(starts: Counts, matrix: Floats, linear: Floats, sizes: NDArray[np.int64]) -> Counts:
    """Climb from each start by the best step of one class or exchange of two. Return all types on the way."""
    m, counts, seen = sizes.size, starts, [starts]
    for _ in range(OPTIONS.moves):
        slope, bend = linear + 2 * counts @ matrix, np.diag(matrix)
        up = np.where(counts < sizes, slope + bend, -np.inf)
        down = np.where(counts > 0, bend - slope, -np.inf)
        # The last row and column stand for no class that enters or leaves.
        gain = np.full((len(counts), m + 1, m + 1), 0.0)
        gain[:, :m, :m] = up[:, :, np.newaxis] + down[:, np.newaxis, :] - 2 * matrix
        gain[:, :m, m], gain[:, m, :m] = up, down
        flat = gain.reshape(len(counts), -1)
        best = flat.argmax(axis=1)
        rising = flat[range(len(best)), best] > 1e-13
        if not rising.any():
            break
        enter, leave = np.divmod(best[rising], m + 1)
        moves = np.eye(m + 1, m, dtype=np.int64)
        counts = counts[rising] + moves[enter] - moves[leave]
        seen.append(counts)
    found = np.unique(np.concatenate(seen), axis=0)
    # Not the empty and the full subset.
    inner: Counts = found[(found > 0).any(axis=1) & (found < sizes).any(axis=1)]
    return inner


def _sparsify(program: Program, masses: Floats) -> tuple[Used, Floats]:
    """Reduce the types to as few as Carathéodory's theorem needs for the same information and sums."""
    used = np.flatnonzero(masses)
    some, q = program.keep(used), program.between.shape[1]
    upper = np.triu_indices(q)
    products = (some.between[:, :, np.newaxis] * some.between[:, np.newaxis, :])[:, upper[0], upper[1]]
    moments = np.concatenate(
        (np.concatenate((products, some.within), axis=1) * some.weights[:, None], some.rows), axis=1
    )
    target = masses[used] @ moments
    # The sums are known without rounding.
    target[-q - 1 :] = np.eye(q + 1)[0]
    # Least squares weigh all moments alike: bring them to one size.
    units = np.abs(moments).max(axis=0)
    units[units == 0] = 1.0
    try:
        found, _ = nnls((moments / units).T, target / units)
    except RuntimeError:
        # After too many iterations keep all types, which are as good.
        return used, masses[used]
    kept = found > 0
    return used[kept], found[kept]


def _optimize(program: Program, used: Used, masses: Numbers) -> tuple[Used, Numbers, Numbers]:
    """Find the optimum near a point: types that gain more than they cost join, types without mass leave."""
    for _ in range(OPTIONS.exchanges):
        used, masses, levels = _refine(program, used, masses)
        excess = program.gains(program.keep(used).invert(masses)) - program.rows @ levels
        best = max(range(excess.size), key=lambda place: excess[place].mid())
        if not excess[best] > levels[0] * arb(2) ** -60 or best in used:
            break
        used, masses = np.append(used, best), np.concatenate((masses, np.array([arb(0)])))
    return used, masses, levels


def _refine(program: Program, used: Used, masses: Numbers) -> tuple[Used, Numbers, Numbers]:
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
        answer = solve_linear(system, np.concatenate((gains, missing))[:, np.newaxis])[:, 0]
        step, levels = answer[:n], answer[n:]
        # A full step: types that it takes below zero leave, and the next steps correct the others.
        masses = drop_radii(masses + step)
        kept = np.array([bool(mass > 0) for mass in masses])
        if not kept.any():
            raise SolverFailed("Newton's method for the design of subsets diverges")
        used, masses = used[kept], masses[kept]
        if kept.all() and max(abs(x) for x in step) < arb(2) ** -OPTIONS.converged:
            break
    return used, masses, levels


def _round(fine: Program, masses: Numbers, levels: Numbers, epsilon: float) -> Design:
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
    return Design(fine.counts, np.maximum(_integers(plain / max(plain)), 1), dual)


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
    * *Up to 32 classes, or more with few distinct priors* (``prod (K_g + 1) <= 2**32`` for groups of ``K_g`` equal
      priors): the optimum over all subsets, proven to 1e-9 or better for epsilon from 1e-3 to 40. Not all optima are
      found if epsilon is above 12, there are more than 12 classes and some have priors between 0 and 1e-8.
    * *Otherwise* neighbouring priors are put into groups that are treated alike. Privacy, unbiasedness and the
      certificate's bounds remain exact, but its gap does not close. For 40 classes of random priors it is about ``0.05
      * epsilon**2`` up to an epsilon of 1, of which most is due to the bound.

    Proof: ``docs/mathematics.md``, section 14. Cost with the certificate: a few seconds up to 20 classes of unequal
    priors, about a minute for 30.

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
