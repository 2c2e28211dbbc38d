r"""Reduced costs of columns in floats, and the gap between an answer and the bound of its dual that they estimate.

For multipliers :math:`\alpha, \beta` write :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y (v - o)`, where :math:`o`
is the origin of the dual. The cheapest column :math:`s \in [1, E]^k` of an epsilon-DP table at output :math:`v` costs

.. math:: f(v) = \min_s \sum_y s_y h_y(v) = \sum_y \big( h_y(v) + (E - 1) \min(h_y(v), 0) \big), \qquad E = e^\epsilon,

attained by the staircase column of :math:`S = \{y : h_y(v) < 0\}`. From its least value follows the bound of
:mod:`optrand.certificates._certificate`, which solvers estimate here to know when to stop. Estimates are *unproven*:
they are in extended precision, with an allowance for rounding that is a rule of thumb. The proven bound is
:func:`optrand.lower_bound`, computed once for an answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._certificate import PROVEN
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Dual, Grid, Line, Problem, unbiased_range
from optrand.model._randomizer import Randomizer, Solution

BLOCK = 1 << 22
"""Entries of the ``k x n`` arrays that are worked on at a time."""

TINY = float(np.finfo(float).tiny)
"""Smallest positive output at which prices are evaluated."""

Extended = NDArray[np.longdouble]


@dataclass(frozen=True, eq=False)
class Prices:
    """Reduced costs of the best column at each of some outputs.

    Attributes
    ----------
    outputs : (n,) array
        Increasing. On the line, where :math:`f` may have a local minimum.
    costs : (n,) array
        :math:`f` there, for columns scaled to ``s in [1, E]^k``, up to rounding.
    rounding : (n,) array
        About how large their rounding errors are: estimates from the sizes of the terms, not bounds.
    """

    problem: Problem
    dual: Dual
    outputs: Floats
    costs: Floats
    rounding: Floats

    @property
    def lowest(self) -> float:
        """Least price, NaN if floats overflow."""
        return float(self.costs.min())

    def signatures(self, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return membership in the set ``S`` of the best column at the chosen outputs, shape ``(k, len(chosen))``."""
        return _compute_reduced_costs(self.problem, self.dual, self.outputs[chosen]) < 0

    def improving(self, tolerance: float) -> NDArray[np.intp]:
        """Return the positions of the local minima of :math:`f` below ``-tolerance``."""
        padded = np.concatenate(([math.inf], self.costs, [math.inf]))
        dips = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:]) & (self.costs < -tolerance)
        return np.flatnonzero(dips)


def price(problem: Problem, dual: Dual) -> Prices:
    """Evaluate :math:`f` wherever an allowed output could make it smallest.

    Returns
    -------
    Prices
        On a grid at each of its values. Off a grid, for squared and Poisson log loss, at up to ``2k + 1`` stationary
        points and ends of pieces, and for absolute loss at the labels and the ends of the interval.

    Notes
    -----
    Cost ``O(k log k)`` off a grid, ``O(k log k + n log k)`` on a grid for squared and absolute loss,
    ``O(k + n log k)`` for classification, and ``O(n k)`` on a grid for other losses, vectorised, in blocks.
    """
    grid = problem.outputs.values if isinstance(problem.outputs, Grid) else None
    with np.errstate(all="ignore"):
        if problem.loss == losses.squared:
            pieces = _Pieces.of_squares(problem, dual)
            return pieces.prices(problem, dual, grid)
        if problem.loss == losses.absolute:
            points = _candidates(problem) if grid is None else grid
            return _Pieces.of_distances(problem, dual).prices(problem, dual, points)
        if grid is None:
            return _Pieces.of_poisson(problem, dual).prices(problem, dual, None)
    if problem.loss == losses.zero_one:
        return _price_classes(problem, dual, grid)
    costs, rounding = np.empty(grid.size), np.empty(grid.size)
    for block in _split_blocks(grid.size, problem.k):
        costs[block], rounding[block] = _best_columns(problem, dual, grid[block])
    return Prices(problem, dual, grid, costs, rounding)


def _candidates(problem: Problem) -> Floats:
    """Return the labels and ends of the outputs: between them the price of absolute loss is concave."""
    low, high = problem.outputs.low, problem.outputs.high
    return np.union1d(np.clip(problem.labels, low, high), [x for x in (low, high) if math.isfinite(x)])


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Price as one curve between any two neighbours of some edges.

    Attributes
    ----------
    edges : (n,) array
        Increasing places, measured from `center`.
    sums : (3, n + 1) array
        Coefficients of the curve before each edge and after the last one: ``a x^2 + b x + c``, or with `pulled`
        ``b x - a log x + c``. They are running sums in extended precision.
    """

    center: float
    edges: Extended
    sums: Extended
    pulled: bool = False

    @classmethod
    def _sum_curves(
        cls, center: float, curves: Extended, changes: tuple[Extended, Extended], pulled: bool = False
    ) -> _Pieces:
        """Sum `curves` of shape (3, k) over all labels, and add the changes of coefficients, (3, n), from places on."""
        places, steps = changes
        order = np.argsort(places, kind="stable")
        # Between two edges the price is one curve: the sum over all labels, and what the open ranges add to it.
        total = curves.sum(axis=1)[:, np.newaxis]
        sums = np.concatenate((total, total + np.cumsum(steps[:, order], axis=1)), axis=1)
        return cls(center, places[order], sums, pulled)

    @classmethod
    def of_squares(cls, problem: Problem, dual: Dual) -> _Pieces:
        center, place, level = _choose_center(problem, dual)
        p, beta = problem.prior.astype(np.longdouble), dual.beta.astype(np.longdouble)
        pull = p * place
        curves = np.stack((p / 2, -pull - beta, pull * place / 2 - level))
        # Roots of p (v - y)^2 / 2 - beta v - level, written so that the square of the label cancels.
        root = np.sqrt(beta * (2 * pull + beta) + 2 * p * level)
        starts, ends = (pull + beta - root) / p, (pull + beta + root) / p
        # Lines are negative on one side of their root, constants everywhere or nowhere.
        flat = p == 0
        crossing = np.where(beta == 0, np.where(level > 0, -math.inf, math.nan), -level / beta)
        starts = np.where(flat, np.where(beta < 0, -math.inf, crossing), starts)
        ends = np.where(flat, np.where(beta < 0, crossing, math.inf), ends)
        return cls._sum_curves(center, curves, _find_changes(problem, curves, starts, ends))

    @classmethod
    def of_poisson(cls, problem: Problem, dual: Dual) -> _Pieces:
        p = problem.prior.astype(np.longdouble)
        curves = np.stack((p * problem.labels, p, -dual.alpha.astype(np.longdouble)))
        starts, ends = (end.astype(np.longdouble) for end in negative_ranges(problem, dual))
        return cls._sum_curves(0.0, curves, _find_changes(problem, curves, starts, ends), pulled=True)

    @classmethod
    def of_distances(cls, problem: Problem, dual: Dual) -> _Pieces:
        """Absolute loss: each reduced cost is a line up to its label, and another one from there on."""
        center, place, level = _choose_center(problem, dual)
        p, beta = problem.prior.astype(np.longdouble), dual.beta.astype(np.longdouble)
        zeros = np.zeros(problem.k, np.longdouble)
        left = np.stack((zeros, -p - beta, p * place - level))
        bend = np.stack((zeros, 2 * p, -2 * p * place))
        more = np.expm1(np.longdouble(problem.epsilon))
        changes = [(place, bend)]
        # The two lines are negative on ranges of their own half lines.
        for slope, sign, curve in ((-p - beta, 1, left), (p - beta, -1, left + bend)):
            crossing = -curve[2] / slope
            first = np.where(slope < 0, crossing, np.where((slope > 0) | (curve[2] < 0), -math.inf, math.inf))
            last = np.where(slope > 0, crossing, math.inf)
            first, last = (first, np.minimum(last, place)) if sign > 0 else (np.maximum(first, place), last)
            some = first < last
            changes += [(first[some], more * curve[:, some]), (last[some], -more * curve[:, some])]
        places, steps = (np.concatenate(parts, axis=-1) for parts in zip(*changes, strict=True))
        return cls._sum_curves(center, left, (places, steps))

    def prices(self, problem: Problem, dual: Dual, points: Floats | None) -> Prices:
        """Return the prices at some points, or else the least on every piece."""
        center, bottom, top = self.center, problem.outputs.low, problem.outputs.high
        if points is not None:
            x = points.astype(np.longdouble) - center
            return Prices(problem, dual, points, *self._at(self.sums[:, np.searchsorted(self.edges, x)], x))
        # Poisson log loss is defined above 0 only.
        low = max(bottom - center, TINY) if self.pulled else bottom - np.longdouble(center)
        high = top - np.longdouble(center)
        every = np.concatenate((np.full(1, low), self.edges, np.full(1, high)))
        edges: Extended = np.clip(every, low, high)
        some = edges[:-1] < edges[1:]
        sums = self.sums[:, some]
        # A piece is least at its vertex, b x - a log x at a / b, or at the end that is next to it (section 3).
        x = np.clip(sums[0] / sums[1] if self.pulled else -sums[1] / (2 * sums[0]), edges[:-1][some], edges[1:][some])
        # The line has no ends: a vertex that overflows becomes the largest float.
        limits = max(bottom, -np.finfo(float).max), min(top, np.finfo(float).max)
        outputs, first = np.unique(np.clip((x + center).astype(float), *limits), return_index=True)
        costs, rounding = self._at(sums, x)
        # Several pieces may be least at one output: at a common end, or at places that round to one float.
        least, rounding = np.minimum.reduceat(costs, first), np.maximum.reduceat(rounding, first)
        return Prices(problem, dual, outputs, least, rounding)

    def _at(self, sums: Extended, x: Extended) -> tuple[Floats, Floats]:
        """Return the values of some pieces, each at a place of its own, and estimates of their rounding errors."""
        a, b, c = sums
        terms = (b * x, -np.where(a == 0, 0, a * np.log(x)), c) if self.pulled else (a * x * x, b * x, c)
        size = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])
        # A rule of thumb: some units in the last place of the terms, for the errors of the running sums are not known.
        rounding = 8 * np.finfo(np.longdouble).eps * size
        return (terms[0] + terms[1] + terms[2]).astype(float), rounding.astype(float)


def _choose_center(problem: Problem, dual: Dual) -> tuple[float, Extended, Extended]:
    """Return the middle label, labels measured from it, and the constants of the multipliers there."""
    center = float(problem.labels[problem.k // 2])
    # From the middle of the labels the coefficients of the curves, and so the rounding errors of their sums, are small.
    place = problem.labels.astype(np.longdouble) - center
    level = dual.alpha + dual.beta.astype(np.longdouble) * (np.longdouble(center) - dual.origin)
    return center, place, level


def _find_changes(problem: Problem, curves: Extended, starts: Extended, ends: Extended) -> tuple[Extended, Extended]:
    """Return the places and changes of coefficients where each curve begins and ceases to count E times."""
    some = starts < ends
    steps = np.expm1(np.longdouble(problem.epsilon)) * curves[:, some]
    return np.concatenate((starts[some], ends[some])), np.concatenate((steps, -steps), axis=1)


def negative_ranges(problem: Problem, dual: Dual) -> tuple[Floats, Floats]:
    """Return the range of negative :math:`h_y` of Poisson log loss: an open interval per label, or ``(nan, nan)``.

    ``v - y log v < alpha / p`` for ``beta = 0``: Newton's method from outside, where it is monotone.
    """
    starts, ends = np.full(problem.k, np.nan), np.full(problem.k, np.nan)
    with np.errstate(all="ignore"):
        levels = dual.alpha / problem.prior
        # v - y log v is least at v = y. At the label 0 it is v, which falls to 0.
        least = np.where(problem.labels > 0, losses.poisson_log.evaluate(problem.labels, problem.labels), 0.0)
        dips, flat = np.flatnonzero(least < levels), problem.prior == 0
        starts[dips], ends[dips] = _poisson_roots(problem.labels[dips], levels[dips])
    # Without prior h_y is the constant -alpha_y, negative everywhere or nowhere.
    everywhere = flat & (dual.alpha > 0)
    starts[flat], ends[flat] = np.nan, np.nan
    starts[everywhere], ends[everywhere] = -math.inf, math.inf
    return starts, ends


def _poisson_roots(y: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Return the roots of ``v - y log v`` at a level that is above its least value, on either side of ``y``."""
    # At exp(-level / y), left of y, the curve exceeds the level by its first term. From 4 y (1 + |log y|) on one half
    # of v exceeds y log v, and from twice the level on the other half exceeds the level.
    low = np.where(y > 0, np.maximum(np.exp(-level / y), TINY), 0.0)
    high = np.maximum(2 * level, 0) + 4 * y * (1 + np.abs(np.log(np.maximum(y, TINY)))) + TINY
    # Convex, and started beyond its roots: Newton's steps stay on their side, and end when floats do not change.
    for _ in range(100):
        rise = np.where(y > 0, (low - y * np.log(low) - level) / (1 - y / low), 0.0)
        fall = np.where(y > 0, (high - y * np.log(high) - level) / (1 - y / high), high - level)
        closer = np.fmin(low - np.fmin(rise, 0), y), np.fmax(high - np.fmax(fall, 0), y)
        if np.array_equal(closer, (low, high)):
            break
        low, high = closer
    return low, high


def _price_classes(problem: Problem, dual: Dual, grid: Floats) -> Prices:
    """Return the prices of ``zero_one``, where an output gains at one label at most. Cost ``O(k + n log k)``."""
    more, alpha = np.expm1(np.longdouble(problem.epsilon)), dual.alpha.astype(np.longdouble)
    elsewhere = -alpha + more * np.minimum(-alpha, 0)
    own = -problem.prior - alpha
    own += more * np.minimum(own, 0)
    where = np.minimum(np.searchsorted(problem.labels, grid), problem.k - 1)
    gains = np.where(problem.labels[where] == grid, (own - elsewhere)[where], 0)
    rounding = 8 * np.finfo(np.longdouble).eps * (np.abs(elsewhere).sum() + np.abs(gains))
    return Prices(problem, dual, grid, (elsewhere.sum() + gains).astype(float), rounding.astype(float))


def _split_blocks(size: int, k: int) -> Iterator[slice]:
    step = max(1, BLOCK // k)
    return (slice(start, start + step) for start in range(0, size, step))


def _compute_reduced_costs(problem: Problem, dual: Dual, outputs: Floats) -> Floats:
    """Compute the reduced costs :math:`h_y(v)`, shape ``(k, n)``."""
    with np.errstate(over="ignore", invalid="ignore"):
        prior = problem.prior[:, np.newaxis]
        weighted = np.where(prior > 0, prior * problem.loss_table(outputs), 0.0)
        slopes = dual.beta[:, np.newaxis] * (outputs - dual.origin)
        costs: Floats = weighted - dual.alpha[:, np.newaxis] - slopes
        return costs


def _best_columns(problem: Problem, dual: Dual, outputs: Floats) -> tuple[Floats, Floats]:
    """Price of each output, and about how large its rounding error is."""
    costs = _compute_reduced_costs(problem, dual, outputs)
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.where(costs < 0, math.exp(problem.epsilon), 1.0) * costs
        # Along contiguous memory numpy adds in pairs, so that rounding grows with log k.
        return np.ascontiguousarray(terms.T).sum(axis=1), np.finfo(float).eps * np.abs(terms).sum(axis=0)


LARGE = 20.0
"""Epsilon above which a product of ``E`` and the rounding of floats leaves nothing decided."""

CLOSE = 1e-12
"""Errors of rows and ratios, and of means as a share of the spread of outputs, that count as rounding."""


def decide_gap(solution: Solution, estimate: float | None = None) -> float:
    """Return the relative gap of an answer, infinite if it is not feasible.

    It is estimated in floats, and computed in exact arithmetic if floats leave open whether it is at most
    :data:`PROVEN`: at small gaps, at an epsilon above 20, and if outputs end nearer to those that unbiased answers need
    than floats can resolve. `estimate` is :func:`estimated_gap` of the answer, if it is known.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> decide_gap(solution) <= PROVEN
    True
    """
    # Exact work takes longer than the estimate: it is done only where rounding can decide.
    gap = estimated_gap(solution) if estimate is None else estimate
    # From this gap on rounding is not all that is missing: a heuristic, tuned on random problems.
    wide_open = 1e-5
    decided = abs(gap) <= PROVEN or wide_open <= gap < math.inf
    if decided and solution.problem.epsilon <= LARGE and _is_wide_enough(solution):
        return gap
    try:
        proof = tabulate(solution).certificate
    except (Infeasible, InvalidInput, NotCertified):
        return math.inf
    return math.inf if proof.findings else proof.gap


def worst_case_gap(solution: Solution) -> float:
    """Return the relative gap that is proven of the largest loss over labels, infinite if it is not feasible."""
    try:
        proof = tabulate(solution).certify(worst_case=True)
    except (Infeasible, InvalidInput, NotCertified):
        return math.inf
    return math.inf if proof.findings else proof.gap


def estimated_gap(solution: Solution) -> float:
    """Estimate the relative gap of squared loss off grids, of other losses of arcs without bias, or of classification.

    Infinite for other problems, and for answers whose rows, ratio, outputs or means, if they must be right, are off by
    more than rounding.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> abs(estimated_gap(design(optrand.classification([0.5, 0.3, 0.2], 1.0)))) < 1e-14
    True
    """
    if solution.dual is None:
        return math.inf
    return _relative_gap(_evaluate(solution), estimated_bound(solution.problem, solution.dual))


def _relative_gap(value: float, bound: float) -> float:
    return (value - bound) / abs(value) if math.isfinite(value) and value and bound > -math.inf else math.inf


def estimated_bound(problem: Problem, dual: Dual) -> float:
    """Estimate :func:`optrand.lower_bound` in floats, ``-inf`` if they overflow or the multipliers prove nothing.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> solution = design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> proven = optrand.lower_bound(solution.problem, solution.dual)
    >>> abs(estimated_bound(solution.problem, solution.dual) - proven) < 1e-12
    True
    """
    weights = problem.bias_weights.astype(np.longdouble)
    if (dual.beta[weights == 0] != 0).any():
        return -math.inf
    alpha, beta = dual.alpha.astype(np.longdouble), dual.beta.astype(np.longdouble)
    prices, more = price(problem, dual), np.expm1(np.longdouble(problem.epsilon))
    with np.errstate(all="ignore"):
        # The total mass of columns lies between 1 / E and k / (E + k - 1): which counts depends on the sign.
        lowest = np.longdouble((prices.costs - prices.rounding).min())
        # The third term of Theorem 3 in docs/mathematics.md, 0 / 0 being 0. Infinite weights, without bias, make it
        # vanish.
        charges = np.divide(beta**2, 2 * weights, out=np.zeros_like(beta), where=beta != 0)
        base = (alpha + beta * (problem.labels.astype(np.longdouble) - dual.origin) - charges).sum()
        bound = float(base + (lowest * problem.k / (more + problem.k) if lowest < 0 else lowest / (more + 1)))
    return bound if math.isfinite(bound) else -math.inf


def _evaluate(solution: Solution) -> float:
    """Return the objective of the minimisation, infinite for randomizers that are off and for other problems."""
    problem, randomizer = solution.problem, solution.randomizer
    arcs, is_grid = randomizer.arcs, isinstance(problem.outputs, Grid)
    if arcs is not None and problem.loss == losses.squared:
        return _evaluate_squared(problem, randomizer, arcs.masses)
    is_judged = problem.loss == losses.zero_one or (arcs is not None and not is_grid)
    # Entries of a table that is written out: of larger ones the gap is left to exact arithmetic.
    most_entries = 1 << 20
    if problem.bias_penalty or not is_judged or problem.k * randomizer.outputs.size > most_entries:
        return math.inf
    table, outputs = randomizer.matrix, randomizer.outputs
    low, high = table.min(axis=0), table.max(axis=0)
    is_private = (low >= 0).all() and (high <= math.exp(problem.epsilon) * (1 + CLOSE) * low).all()
    is_allowed = problem.outputs.low <= outputs.min() and outputs.max() <= problem.outputs.high
    if isinstance(problem.outputs, Grid):
        is_allowed = np.isin(outputs, problem.outputs.values).all()
    if not (is_private and is_allowed and abs(table.sum(axis=1) - 1).max() <= CLOSE):
        return math.inf
    with np.errstate(all="ignore"):
        return float(problem.sign * problem.value(randomizer))


def _evaluate_squared(problem: Problem, randomizer: Randomizer, masses: Floats) -> float:
    """Return the squared loss of arcs in extended precision: without bias, at a price of it, or free of it."""
    outputs = randomizer.outputs
    if not problem.outputs.low <= outputs[0] <= outputs[-1] <= problem.outputs.high:
        return math.inf
    if isinstance(problem.outputs, Grid) and not np.isin(outputs, problem.outputs.values).all():
        return math.inf
    rows, biases, squares = randomizer.sum_powers(2)
    if not (abs(rows - 1).max() <= CLOSE and (masses >= 0).all()):
        return math.inf
    value = float(problem.prior @ squares) / 2
    if problem.unbiased:
        return value if abs(biases).max() <= _close_means(randomizer) and value > 0 else math.inf
    value += problem.bias_penalty * float(problem.prior @ biases**2) / 2
    return value if value > 0 else math.inf


def _close_means(randomizer: Randomizer) -> float:
    """Return the error of means that counts as rounding."""
    return CLOSE * float(max(np.ptp(randomizer.labels), np.ptp(randomizer.outputs)) or 1.0)


def _is_wide_enough(solution: Solution) -> bool:
    """Return whether outputs may lie further out than unbiased answers need, by more than rounding."""
    problem = solution.problem
    if not problem.unbiased or isinstance(problem.outputs, Line):
        return True
    (low, high), error = unbiased_range(problem.labels, problem.epsilon), _close_means(solution.randomizer)
    return problem.outputs.low < low - error and high + error < problem.outputs.high
